// SPDX-License-Identifier: MIT
// Factors by blocks of columns: LAPACK factors a panel, then threads update the columns
// right of it, some columns in each task. Each task calls OpenBLAS on one thread.
#include "threads.h"

#define PANEL 64 // columns that LAPACK factors at once
#define TASK 32  // columns, or right-hand sides, of a task

static const tn_complex128 minus_one_f64 = {-1, 0};
static const tn_complex64 minus_one_f32 = {-1, 0};

static const void *minus_one(tn_dtype dtype)
{
    return tn_dtype_real(dtype) == TN_F32 ? (const void *)&minus_one_f32 : &minus_one_f64;
}

bool job_has_threads(const struct batch_job *job)
{
    return job->count == 1 && job->call->parallel_for && job->call->num_threads > 1 &&
           !lapack_is_threaded();
}

static int linalg_threads_least(int a, int b)
{
    return a < b ? a : b;
}

// One step: columns [panel, panel + width) have been factored.
struct linalg_threads_step {
    const struct batch_job *job;
    char *a; // m x n, columns lda apart
    int m, n, lda, panel, width;
    const int *pivots;
    bool upper;
};

static char *linalg_threads_element(const struct linalg_threads_step *s, int i, int j)
{
    return s->a + ((int64_t)i + (int64_t)j * s->lda) * tn_dtype_bytes(s->job->dtype);
}

// Runs `body` over `count` columns in tasks, numbered from 0.
static void in_tasks(const struct linalg_threads_step *s, int count,
                     void (*body)(void *s, int64_t begin, int64_t end, uint32_t worker))
{
    if (count > 0)
        s->job->call->parallel_for(s->job->call, (count + TASK - 1) / TASK, 1, body,
                                   (void *)s);
}

// --- LU factors ------------------------------------------------------------------------

#define SWAP_ROWS(T)                                                                       \
    for (int i = s->panel; i < s->panel + s->width; i++) {                                 \
        T *row = (T *)linalg_threads_element(s, 0, column), v = row[i];                    \
        row[i] = row[s->pivots[i] - 1];                                                    \
        row[s->pivots[i] - 1] = v;                                                         \
    }
typedef uint32_t __attribute__((may_alias)) swapped32;
typedef uint64_t __attribute__((may_alias)) swapped64;
typedef struct {
    uint64_t word[2];
} __attribute__((may_alias)) swapped128;

static void swap_rows(const struct linalg_threads_step *s, int column)
{
    switch (tn_dtype_bytes(s->job->dtype)) {
    case 4:
        SWAP_ROWS(swapped32);
        break;
    case 8:
        SWAP_ROWS(swapped64);
        break;
    default:
        SWAP_ROWS(swapped128);
    }
}

// Updates columns [first, last) right of the panel.
static void update_right(const struct linalg_threads_step *s, int first, int last)
{
    const struct lapack *lapack = s->job->lapack;
    int columns = last - first, below = s->m - s->panel - s->width;
    const void *one = lapack_one(s->job->dtype);
    char *top = linalg_threads_element(s, s->panel, first);
    lapack->trsm("L", "L", "N", "U", &s->width, &columns, one,
                 linalg_threads_element(s, s->panel, s->panel), &s->lda, top, &s->lda, 1, 1,
                 1, 1);
    if (below > 0)
        lapack->gemm("N", "N", &below, &columns, &s->width, minus_one(s->job->dtype),
                     linalg_threads_element(s, s->panel + s->width, s->panel), &s->lda, top,
                     &s->lda, one, linalg_threads_element(s, s->panel + s->width, first),
                     &s->lda, 1, 1);
}

// The first tasks update columns right of the panel; the others exchange rows in the
// columns left of it.
static void lu_task(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct linalg_threads_step *s = context;
    int right = s->panel + s->width, tasks = (s->n - right + TASK - 1) / TASK;
    (void)worker;
    for (int task = (int)begin; task < (int)end; task++) {
        bool is_right = task < tasks;
        int first = is_right ? right + task * TASK : (task - tasks) * TASK;
        int last = linalg_threads_least(first + TASK, is_right ? s->n : s->panel);
        for (int column = first; column < last; column++)
            swap_rows(s, column);
        if (is_right)
            update_right(s, first, last);
    }
}

static int linalg_threads_round_up(int columns)
{
    return (columns + TASK - 1) / TASK * TASK;
}

void threads_lu(const struct batch_job *job, int m, int n, void *a, int lda, int *pivots,
                int *info)
{
    struct linalg_threads_step s = {job, a, m, n, lda, 0, 0, pivots, false};
    int k = linalg_threads_least(m, n);
    if (k < LINALG_LEAST_THREADED || !job_has_threads(job)) {
        job->lapack->getrf(&m, &n, a, &lda, pivots, info);
        return;
    }
    *info = 0;
    for (; s.panel < k; s.panel += s.width) {
        int rows = m - s.panel, failed = 0;
        s.width = linalg_threads_least(PANEL, k - s.panel);
        job->lapack->getrf(&rows, &s.width, linalg_threads_element(&s, s.panel, s.panel),
                           &lda, pivots + s.panel, &failed);
        for (int i = s.panel; i < s.panel + s.width; i++)
            pivots[i] += s.panel;
        if (failed > 0 && *info == 0)
            *info = s.panel + failed;
        in_tasks(&s, linalg_threads_round_up(n - s.panel - s.width) + s.panel, lu_task);
    }
}

struct solution {
    const struct batch_job *job;
    const char *trans, *uplo, *diag;
    int n, k, lda;
    const void *factors;
    const int *pivots;
    char *b;
};

static void solve_task(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct solution *s = context;
    (void)worker;
    for (int64_t task = begin; task < end; task++) {
        int columns = linalg_threads_least(TASK, s->k - (int)task * TASK), info;
        char *b = s->b + task * TASK * s->n * tn_dtype_bytes(s->job->dtype);
        s->job->lapack->getrs(s->trans, &s->n, &columns, s->factors, &s->n, s->pivots, b,
                              &s->n, &info, 1);
    }
}

void threads_solve(const struct batch_job *job, const char *trans, int n, int k,
                   const void *factors, const int *pivots, void *b, int *info)
{
    struct solution s = {job, trans, NULL, NULL, n, k, n, factors, pivots, b};
    *info = 0;
    if (n < LINALG_LEAST_THREADED || k <= TASK || !job_has_threads(job))
        job->lapack->getrs(trans, &n, &k, factors, &n, pivots, b, &n, info, 1);
    else
        job->call->parallel_for(job->call, (k + TASK - 1) / TASK, 1, solve_task, &s);
}

// Solves x op(a) = b for some rows of b, by squares on the diagonal and products beside
// them: a single call of OpenBLAS takes 1.2 to 1.4 times as long.
static void linalg_threads_divide_rows(const struct solution *s, char *b, int rows)
{
    const struct lapack *lapack = s->job->lapack;
    const void *one = lapack_one(s->job->dtype), *minus = minus_one(s->job->dtype);
    const struct linalg_threads_step a = {
        .job = s->job, .a = (char *)s->factors, .lda = s->lda};
    int64_t column = s->k * (int64_t)tn_dtype_bytes(s->job->dtype);
    bool is_plain = s->trans[0] == 'N', forwards = (s->uplo[0] == 'U') == is_plain;
    for (int done = 0, width; done < s->n; done += width) {
        width = linalg_threads_least(PANEL, s->n - done);
        int rest = s->n - done - width, at = forwards ? done : rest;
        int to = forwards ? at + width : 0;
        lapack->trsm("R", s->uplo, s->trans, s->diag, &rows, &width, one,
                     linalg_threads_element(&a, at, at), &s->lda, b + at * column, &s->k, 1,
                     1, 1, 1);
        if (rest > 0)
            lapack->gemm("N", s->trans, &rows, &rest, &width, minus, b + at * column, &s->k,
                         is_plain ? linalg_threads_element(&a, at, to)
                                  : linalg_threads_element(&a, to, at),
                         &s->lda, one, b + to * column, &s->k, 1, 1);
    }
}

static void triangular_task(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct solution *s = context;
    (void)worker;
    for (int64_t task = begin; task < end; task++)
        linalg_threads_divide_rows(s, s->b + task * TASK * tn_dtype_bytes(s->job->dtype),
                                   linalg_threads_least(TASK, s->k - (int)task * TASK));
}

void threads_triangular(const struct batch_job *job, const char *uplo, const char *trans,
                        const char *diag, int k, int n, const void *a, int lda, void *b)
{
    struct solution s = {job, trans, uplo, diag, n, k, lda, a, NULL, b};
    if (n < LINALG_LEAST_THREADED || k <= TASK || !job_has_threads(job))
        linalg_threads_divide_rows(&s, b, k);
    else
        job->call->parallel_for(job->call, (k + TASK - 1) / TASK, 1, triangular_task, &s);
}

// --- Cholesky factors ------------------------------------------------------------------

// Updates the rows right of the factored square, or the columns below it.
static void cholesky_panel_task(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct linalg_threads_step *s = context;
    int right = s->panel + s->width;
    (void)worker;
    for (int64_t task = begin; task < end; task++) {
        int first = right + (int)task * TASK,
            count = linalg_threads_least(TASK, s->n - first);
        if (s->upper)
            s->job->lapack->trsm(
                "L", "U", "C", "N", &s->width, &count, lapack_one(s->job->dtype),
                linalg_threads_element(s, s->panel, s->panel), &s->lda,
                linalg_threads_element(s, s->panel, first), &s->lda, 1, 1, 1, 1);
        else
            s->job->lapack->trsm(
                "R", "L", "C", "N", &count, &s->width, lapack_one(s->job->dtype),
                linalg_threads_element(s, s->panel, s->panel), &s->lda,
                linalg_threads_element(s, first, s->panel), &s->lda, 1, 1, 1, 1);
    }
}

// Updates some columns of the rest: their part of the diagonal's triangle, and the part
// above or below.
static void cholesky_rest_task(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct linalg_threads_step *s = context;
    const struct lapack *lapack = s->job->lapack;
    const void *one = lapack_one(s->job->dtype), *minus = minus_one(s->job->dtype);
    int right = s->panel + s->width, p = s->panel;
    (void)worker;
    for (int64_t task = begin; task < end; task++) {
        int first = right + (int)task * TASK,
            count = linalg_threads_least(TASK, s->n - first);
        int above = first - right, next = first + count, below = s->n - next;
        const void *own = s->upper ? linalg_threads_element(s, p, first)
                                   : linalg_threads_element(s, first, p);
        lapack->herk(s->upper ? "U" : "L", s->upper ? "C" : "N", &count, &s->width, minus,
                     own, &s->lda, one, linalg_threads_element(s, first, first), &s->lda, 1,
                     1);
        if (s->upper && above > 0)
            lapack->gemm("C", "N", &above, &count, &s->width, minus,
                         linalg_threads_element(s, p, right), &s->lda, own, &s->lda, one,
                         linalg_threads_element(s, right, first), &s->lda, 1, 1);
        if (!s->upper && below > 0)
            lapack->gemm("N", "C", &below, &count, &s->width, minus,
                         linalg_threads_element(s, next, p), &s->lda, own, &s->lda, one,
                         linalg_threads_element(s, next, first), &s->lda, 1, 1);
    }
}

void threads_cholesky(const struct batch_job *job, bool upper, int n, void *a, int *info)
{
    struct linalg_threads_step s = {job, a, n, n, n, 0, 0, NULL, upper};
    if (!threads_share(job, n)) {
        job->lapack->potrf(upper ? "U" : "L", &n, a, &n, info, 1);
        return;
    }
    for (; s.panel < n; s.panel += s.width) {
        s.width = linalg_threads_least(PANEL, n - s.panel);
        job->lapack->potrf(upper ? "U" : "L", &s.width,
                           linalg_threads_element(&s, s.panel, s.panel), &n, info, 1);
        *info += *info > 0 ? s.panel : 0;
        if (*info != 0)
            return;
        in_tasks(&s, n - s.panel - s.width, cholesky_panel_task);
        in_tasks(&s, n - s.panel - s.width, cholesky_rest_task);
    }
}
