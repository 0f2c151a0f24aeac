// SPDX-License-Identifier: MIT
// What the tests of graphs share: a runtime, short names for operators, comparing.
#ifndef TESTS_GRAPHS_COMMON_H
#define TESTS_GRAPHS_COMMON_H

#include <math.h>
#include "check.h"
#include <tenon/ops/base_attrs.h>
#include <tenon/stats.h>
#include <tenon/tenon.h>

static inline tn_runtime *open_with(const char *const *variables)
{
    tn_runtime *rt = NULL;
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .variables = variables};
    if (tn_runtime_open(&options, &rt) != TN_OK)
        cr_fatal("%s", tn_last_error());
    return rt;
}

static inline tn_runtime *open_on(const char *backend)
{
    char variable[96];
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend);
    return open_with((const char *const[]){variable, NULL});
}

static tn_runtime *runtime; // of the test that runs

static inline void setup(void)
{
    runtime = open_with(NULL);
}

static inline void teardown(void)
{
    tn_runtime_close(runtime);
}

static inline void must(tn_scope *s, tn_status status)
{
    if (status != TN_OK)
        cr_fatal("status %d (%s): %s", (int)status, tn_status_name(status),
                 s ? tn_scope_error(s) : tn_last_error());
}

static inline tn_array *un(tn_scope *s, const char *op, const tn_array *x)
{
    return tn_op(s, op, &x, 1, TN_NO_ATTRS);
}

static inline tn_array *bin(tn_scope *s, const char *op, const tn_array *x,
                            const tn_array *y)
{
    return tn_op(s, op, TN_IN(x, y), TN_NO_ATTRS);
}

static inline tn_array *ramp(tn_scope *s, int64_t rows, int64_t columns, float start,
                             float step)
{
    float *data = malloc((size_t)(rows * columns + 1) * sizeof(*data));
    for (int64_t i = 0; i < rows * columns; i++)
        data[i] = start + step * (float)i;
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(rows, columns), data);
    free(data);
    return x;
}

static inline tn_stats stats_of(tn_runtime *rt)
{
    tn_stats stats = {.struct_size = sizeof(stats)};
    tn_runtime_stats(rt, &stats);
    return stats;
}

// Skips the test where a backend has no device, or was not built.
static inline void need_device(const char *backend)
{
    char variable[96], reason[256] = "";
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend);
    tn_runtime *rt = open_with((const char *const[]){variable, NULL});
    tn_scope *s = tn_scope_open(rt);
    if (tn_eval(s, ramp(s, 1, 1, 0, 0)) == TN_ERR_NOT_FOUND &&
        (strstr(tn_scope_error(s), "has no device here") ||
         strstr(tn_scope_error(s), "is not known")))
        snprintf(reason, sizeof(reason), "%s", tn_scope_error(s));
    tn_scope_close(s);
    tn_runtime_close(rt);
    if (reason[0])
        cr_skip("%s", reason);
}

// As setup(), on the backend that TENON_TEST_BACKEND names.
static inline void setup_backend(void)
{
    const char *backend = getenv("TENON_TEST_BACKEND");
    if (!backend)
        cr_fatal("TENON_TEST_BACKEND is not set");
    need_device(backend);
    runtime = open_on(backend);
}

#endif // TESTS_GRAPHS_COMMON_H
