// SPDX-License-Identifier: MIT
// Systems with general matrices, a x = b, and inverses.
//
// Memory of a by rows is memory of its transpose by columns, whose factors serve a, too.
// Derivatives: Giles, "Collected matrix derivative results", 2008, sections 2.2.3 and
// 2.3.1.
#include "memory/threads.h"

static const char *explain_singular(int code)
{
    return code > 0 ? "is singular" : job_refused(code);
}

// --- memory -----------------------------------------------------------------------------

enum { INVERSE_THREADS = 4 }; // threads from which solving is faster than getri
enum { FACTORS, PIVOTS, SOLUTIONS, WORK = SOLUTIONS }; // parts of the room

static int64_t last_extent(const tn_layout *l)
{
    return l->extent[l->rank - 1];
}

static struct batch_room solve_room(const tn_layout *a, const tn_layout *b)
{
    struct batch_room room = {.size = 0};
    uint64_t n = (uint64_t)last_extent(a), bytes = (uint64_t)tn_dtype_bytes(a->dtype);
    uint64_t columns = b->rank == 1 ? 1 : (uint64_t)last_extent(b);
    room_add(&room, FACTORS, n * n, bytes);
    room_add(&room, PIVOTS, 2 * n, sizeof(int)); // and the order of rows
    room_add(&room, SOLUTIONS, columns == 1 ? 0 : tn_saturated_multiply(n, columns), bytes);
    if (columns > 0)
        room_add_group(&room, a->dtype, (int64_t)n, (int64_t)columns);
    return room;
}

// Factors a's transpose in `to`. Returns INT32_MIN where a has NaN, with which OpenBLAS may
// look for its pivot outside of the matrix.
static int factor_transposed(const struct batch_job *job, struct matrix_view a, void *to,
                             int *pivots)
{
    int n = (int)a.rows, info = 0;
    if (!matrix_copy_numbers(matrix_by_rows(to, a.dtype, n, n), a))
        return INT32_MIN;
    threads_lu(job, n, n, to, n, pivots, &info);
    return info;
}

// With p a^T = l u, a x = b is y u l = b^T with y = x^T p^T, and memory of b by rows is
// memory of b^T by columns. So nothing is transposed, and rows are permuted at the end.
static void solve_rows(const struct batch_job *job, struct matrix_view b,
                       struct matrix_view x, char *room)
{
    const char *factors = room + job->room.at[FACTORS];
    const int *pivots = (const int *)(room + job->room.at[PIVOTS]);
    int n = (int)b.rows, k = (int)b.columns, *order = (int *)pivots + n;
    struct matrix_view y = matrix_by_rows(room + job->room.at[SOLUTIONS], b.dtype, n, k);
    matrix_copy(y, b);
    threads_triangular(job, "U", "N", "N", k, n, factors, n, y.data);
    threads_triangular(job, "L", "N", "U", k, n, factors, n, y.data);
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = 0; i < n; i++) {
        int own = order[i];
        order[i] = order[pivots[i] - 1];
        order[pivots[i] - 1] = own;
    }
    x.rows = y.rows = 1;
    for (int i = 0; i < n; i++) {
        struct matrix_view to = x, from = y;
        to.data = matrix_at(&x, order[i], 0);
        from.data = matrix_at(&y, i, 0);
        matrix_copy(to, from);
    }
}

static int solve_system(const struct batch_job *job, int64_t index, char *room)
{
    int32_t core = job->call->inputs[1].layout.rank == 1 ? 1 : 2;
    struct matrix_view a = job_matrix(job, &job->call->inputs[0], 2, index);
    struct matrix_view b = job_matrix(job, &job->call->inputs[1], core, index);
    struct matrix_view x = job_matrix(job, &job->call->outputs[0], core, index);
    char *factors = room + job->room.at[FACTORS];
    int *pivots = (int *)(room + job->room.at[PIVOTS]);
    int n = (int)a.rows, k = (int)b.columns;
    if (n == 0 || k == 0)
        return 0;
    int info = factor_transposed(job, a, factors, pivots);
    if (info == INT32_MIN) {
        matrix_fill_nan(x);
        return 0;
    }
    if (info != 0)
        return info;
    if (k > 1) {
        solve_rows(job, b, x, room);
        return 0;
    }
    struct matrix_view solution = matrix_by_columns(x.data, x.dtype, n, 1);
    matrix_copy(solution, b);
    threads_solve(job, "T", n, k, factors, pivots, solution.data, &info);
    return info;
}

// Solves small systems side by side, each with its own row exchanges.
static int solve_group(const struct batch_job *job, int64_t index, int64_t count,
                       char *room, int64_t *out_failed)
{
    const tn_cpu_call *call = job->call;
    int32_t core = call->inputs[1].layout.rank == 1 ? 1 : 2;
    int64_t n = last_extent(&call->inputs[0].layout);
    struct small_matrices a = job_matrices(job, &call->inputs[0], 2, index, count);
    struct small_matrices b = job_matrices(job, &call->inputs[1], core, index, count);
    struct small_matrices x = job_matrices(job, &call->outputs[0], core, index, count);
    int64_t k = core == 1 ? 1 : last_extent(&call->inputs[1].layout);
    struct small_group group = job_group(job, room, n, k);
    struct small_answer answer;
    job->small->load(&group, &a, 0, n);
    job->small->load(&group, &b, n, k);
    job->small->factor(&group, &answer);
    int code = job_group_zero(&answer, index, count, out_failed);
    if (code != 0)
        return code;
    job->small->solve(&group, false, false);
    job->small->store(&group, &x, n, k, count);
    job_group_fill_nan(job, core, index, count, &answer);
    return 0;
}

static uint64_t solve_scratch(const tn_kernel_query *query)
{
    const tn_layout *b = &query->inputs[1];
    const tn_layout batch = job_batch(&query->outputs[0], b->rank == 1 ? 1 : 2);
    return job_scratch(query, tn_layout_count(&batch),
                       solve_room(&query->inputs[0], b).size);
}

static tn_status solve_launch(const tn_cpu_call *call)
{
    const tn_layout *a = &call->inputs[0].layout, *b = &call->inputs[1].layout;
    double n = (double)last_extent(a), k = b->rank == 1 ? 1 : (double)last_extent(b);
    struct batch_job job =
        job_start(call, "linalg.solve", solve_system, &call->outputs[0].layout,
                  b->rank == 1 ? 1 : 2, n * n * (n * 2 / 3 + 2 * k));
    job.room = solve_room(a, b);
    job_use_groups(&job, solve_group);
    return job_launch(&job, explain_singular);
}

static struct batch_room inv_room(const struct lapack *lapack, const tn_layout *a)
{
    struct batch_room room = {.size = 0};
    int n = (int)last_extent(a), query = -1, info = 0, pivot = 1;
    tn_complex128 answer = {0, 0}, none = {0, 0};
    bool may_thread = n >= LINALG_LEAST_THREADED; // then factors are beside the result
    room_add(&room, FACTORS, may_thread ? (uint64_t)n * (uint64_t)n : 0,
             (uint64_t)tn_dtype_bytes(a->dtype));
    room_add(&room, PIVOTS, (uint64_t)n, sizeof(int));
    int lda = n > 0 ? n : 1;
    if (lapack)
        lapack->getri(&n, &none, &lda, &pivot, &answer, &query, &info);
    room_add_work(&room, WORK, a->dtype, &answer);
    room_add_group(&room, a->dtype, n, n);
    return room;
}

static int invert_matrix(const struct batch_job *job, int64_t index, char *room)
{
    struct matrix_view a = job_matrix(job, &job->call->inputs[0], 2, index);
    struct matrix_view x = job_matrix(job, &job->call->outputs[0], 2, index);
    int *pivots = (int *)(room + job->room.at[PIVOTS]);
    int n = (int)a.rows, lwork = (int)job->room.length[WORK];
    if (n == 0)
        return 0;
    // Solving for the identity takes 1.5 times the arithmetic of getri.
    bool threads = n >= LINALG_LEAST_THREADED && job_has_threads(job) &&
                   job->call->num_threads >= INVERSE_THREADS;
    char *factors = threads ? room + job->room.at[FACTORS] : x.data;
    int info = factor_transposed(job, a, factors, pivots);
    if (info == INT32_MIN) {
        matrix_fill_nan(x);
        return 0;
    }
    if (info == 0 && threads) {
        matrix_fill_identity(x);
        threads_solve(job, "N", n, n, factors, pivots, x.data, &info);
    } else if (info == 0)
        job->lapack->getri(&n, x.data, &n, pivots, room + job->room.at[WORK], &lwork,
                           &info);
    return info;
}

static int invert_group(const struct batch_job *job, int64_t index, int64_t count,
                        char *room, int64_t *out_failed)
{
    const tn_cpu_call *call = job->call;
    int64_t n = last_extent(&call->inputs[0].layout);
    struct small_matrices a = job_matrices(job, &call->inputs[0], 2, index, count);
    struct small_matrices x = job_matrices(job, &call->outputs[0], 2, index, count);
    struct small_group group = job_group(job, room, n, n);
    struct small_answer answer;
    job->small->load(&group, &a, 0, n);
    job->small->load_identity(&group, n);
    job->small->factor(&group, &answer);
    int code = job_group_zero(&answer, index, count, out_failed);
    if (code != 0)
        return code;
    job->small->solve(&group, false, false);
    job->small->store(&group, &x, n, n, count);
    job_group_fill_nan(job, 2, index, count, &answer);
    return 0;
}

static uint64_t inv_scratch(const tn_kernel_query *query)
{
    const tn_layout *a = &query->inputs[0], batch = job_batch(a, 2);
    return job_scratch(query, tn_layout_count(&batch),
                       inv_room(lapack_find(a->dtype, NULL), a).size);
}

static tn_status inv_launch(const tn_cpu_call *call)
{
    const tn_layout *a = &call->inputs[0].layout;
    double n = (double)last_extent(a);
    struct batch_job job =
        job_start(call, "linalg.inv", invert_matrix, a, 2, n * n * n * 2);
    job.room = inv_room(lapack_find(a->dtype, NULL), a);
    job_use_groups(&job, invert_group);
    return job_launch(&job, explain_singular);
}

// --- types and rules --------------------------------------------------------------------

static tn_status solve_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *a = &infer->types[0], *b = &infer->types[1];
    tn_status status = check_square(infer->host, "a", a);
    return status == TN_OK ? check_system(infer->host, a, b, &types[0]) : status;
}

static tn_status inv_infer(const tn_infer *infer, tn_type *types)
{
    tn_status status = check_square(infer->host, "a", &infer->types[0]);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

static tn_array *system_solution(const tn_build *build, tn_array *a, tn_array *b)
{
    return build->op(build, "linalg.solve/1", TN_IN(a, b), TN_NO_ATTRS);
}

static bool is_vector_system(const tn_build *build, const tn_rule *rule)
{
    const tn_type *b = build->type(rule->inputs[1]);
    return b && b->rank == 1;
}

// g' = a^-H g for b, and -g' x^H for a.
TN_VJP(solve_vjp)
{
    tn_array *g = cotangents[0], *x = rule->outputs[0];
    bool vector = is_vector_system(build, rule);
    if (!g)
        return TN_OK;
    if (vector) {
        g = as_column(build, g);
        x = as_column(build, x);
    }
    g = system_solution(build, adjoint(build, rule->inputs[0]), g);
    gradients[1] = vector ? as_vector(build, g) : g;
    if (wants(wanted, 0))
        gradients[0] = scaled(build, product(build, g, adjoint(build, x)), -1);
    return TN_OK;
}

// a^-1 (t_b - t_a x).
TN_JVP(solve_jvp)
{
    tn_array *t = tangents[1], *x = rule->outputs[0];
    bool vector = is_vector_system(build, rule);
    if (vector) {
        t = t ? as_column(build, t) : NULL;
        x = as_column(build, x);
    }
    if (tangents[0])
        t = plus(build, t, scaled(build, product(build, tangents[0], x), -1));
    if (!t)
        return TN_OK;
    t = system_solution(build, rule->inputs[0], t);
    out_tangents[0] = vector ? as_vector(build, t) : t;
    return TN_OK;
}

TN_VMAP(solve_vmap)
{
    tn_array *a, *b;
    bool vector = batched_system(build, rule, axes, &a, &b);
    tn_array *x = system_solution(build, a, b);
    outputs[0] = vector ? as_vector(build, x) : x;
    out_axes[0] = 0;
    return built(outputs[0]);
}

TN_VJP(inv_vjp)
{
    tn_array *x = adjoint(build, rule->outputs[0]);
    if (cotangents[0])
        gradients[0] =
            scaled(build, product(build, product(build, x, cotangents[0]), x), -1);
    return TN_OK;
}

TN_JVP(inv_jvp)
{
    tn_array *x = rule->outputs[0];
    if (tangents[0])
        out_tangents[0] =
            scaled(build, product(build, product(build, x, tangents[0]), x), -1);
    return TN_OK;
}

TN_VMAP(inv_vmap)
{
    return batched_matrices(build, rule, axes, "linalg.inv/1", TN_NO_ATTRS, outputs,
                            out_axes);
}

static const tn_input_info solve_inputs[] = {
    {"a", "square matrices", 0, LINALG_DTYPES},
    {"b", "right-hand sides, columns of matrices; one vector if it has one axis", 0,
     LINALG_DTYPES},
};
LAPACKS(solve, TN_INPUTS(solve_inputs), "The solution of a x = b.");
LAPACKS(inv, TN_INPUTS(linalg_a), "The inverse of matrices.");
