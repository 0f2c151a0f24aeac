// SPDX-License-Identifier: MIT
// A library with an argument of each kind, which tells what it was passed.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API                                                                                \
    __attribute__((visibility("default"))) // and no header: manifests are all there is

// --- numbers ---------------------------------------------------------------------------

double kinds_by_value(int8_t a, int16_t b, int32_t c, int64_t d, uint8_t e, uint16_t f,
                      uint32_t g, uint64_t h, float i, double j, bool k, char l, size_t m);
API double kinds_by_value(int8_t a, int16_t b, int32_t c, int64_t d, uint8_t e, uint16_t f,
                          uint32_t g, uint64_t h, float i, double j, bool k, char l,
                          size_t m)
{
    return a + b + c + (double)d + e + f + g + (double)h + (double)i + j + k + l +
           (double)m;
}

void kinds_by_pointer(const int8_t *a, const int16_t *b, const int32_t *c, const int64_t *d,
                      const uint8_t *e, const float *f, const double *g, const char *h,
                      double *out);
API void kinds_by_pointer(const int8_t *a, const int16_t *b, const int32_t *c,
                          const int64_t *d, const uint8_t *e, const float *f,
                          const double *g, const char *h, double *out)
{
    *out = *a + *b + *c + (double)*d + *e + (double)*f + *g + *h;
}

// --- memory ----------------------------------------------------------------------------

// The strides that came, and the sum of elements that they lead to.
void kinds_strides(const double *rows, int64_t m, int64_t n, int64_t ld_rows,
                   const double *columns, int64_t ld_columns, const double *vector,
                   int64_t step, double *out);
API void kinds_strides(const double *rows, int64_t m, int64_t n, int64_t ld_rows,
                       const double *columns, int64_t ld_columns, const double *vector,
                       int64_t step, double *out)
{
    double sum = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < n; k++)
            sum += rows[i * ld_rows + k] + 10 * columns[k * ld_columns + i] +
                   100 * vector[i * step];
    out[0] = (double)ld_rows;
    out[1] = (double)ld_columns;
    out[2] = (double)step;
    out[3] = sum;
}

// Writes to its input and to all of its working memory.
int kinds_destroys(double *x, double *work, int *iwork, int64_t n, double *out, int *info);
API int kinds_destroys(double *x, double *work, int *iwork, int64_t n, double *out,
                       int *info)
{
    *info = n == 3 ? 3 : n == 4 ? -4 : 0;
    *out = ((uintptr_t)work % 16) + ((uintptr_t)iwork % 16); // 0: aligned
    for (int64_t i = 0; i < n; i++) {
        *out += x[i];
        x[i] = -1;
        work[2 * i] = work[2 * i + 1] = iwork[i] = -1;
    }
    return n == 5 ? 55 : 0;
}

// --- threads ---------------------------------------------------------------------------

static int in_use, calls;

// 1 when another thread is in it.
double kinds_alone(double x);
API double kinds_alone(double x)
{
    double other = in_use;
    in_use = 1;
    for (volatile int i = 0; i < 200; i++)
        calls++;
    in_use = 0;
    return x + 1000 * other;
}

// --- set-up calls and handles ----------------------------------------------------------

static int set_up; // 0: every other function ends the process

int kinds_set_up(int level, double scale);
API int kinds_set_up(int level, double scale)
{
    set_up = level + (int)scale;
    return level < 0;
}

double kinds_needs_set_up(double x);
API double kinds_needs_set_up(double x)
{
    if (!set_up)
        abort();
    return x + set_up;
}

// A plan counts itself: how many were made, and how many are left.
struct kinds_plan {
    int64_t n;
    const double *input;
};
static _Atomic int64_t num_made, num_left;

struct kinds_plan *kinds_plan_new(int64_t n);
API struct kinds_plan *kinds_plan_new(int64_t n)
{
    if (n == 5)
        return NULL;
    struct kinds_plan *plan = calloc(1, sizeof(*plan));
    plan->n = n;
    num_made++;
    num_left++;
    return plan;
}

int kinds_plan_open(struct kinds_plan **out, const double *input, int64_t n);
API int kinds_plan_open(struct kinds_plan **out, const double *input, int64_t n)
{
    if (n == 6)
        return 3;
    *out = kinds_plan_new(n);
    (*out)->input = input;
    return 0;
}

void kinds_plan_free(struct kinds_plan *plan);
API void kinds_plan_free(struct kinds_plan *plan)
{
    free(plan);
    num_left--;
}

int kinds_planned(const struct kinds_plan *plan, const double *x, double *out);
API int kinds_planned(const struct kinds_plan *plan, const double *x, double *out)
{
    out[0] = 0;
    for (int64_t i = 0; i < plan->n; i++)
        out[0] += x[i];
    out[1] = (double)num_made;
    out[2] = (double)num_left;
    out[3] = !plan->input || plan->input == x;
    return x[0] < 0;
}

// Counts nothing.
void kinds_plan_keep(struct kinds_plan *plan);
API void kinds_plan_keep(struct kinds_plan *plan)
{
    free(plan);
}

__attribute__((destructor)) static void tell_left(void)
{
    if (num_left)
        fprintf(stderr, "kinds: %lld plans left\n", (long long)num_left);
}

double kinds_counts(double x);
API double kinds_counts(double x)
{
    return x + 1000 * (double)num_made + (double)num_left;
}
