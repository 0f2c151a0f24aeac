// SPDX-License-Identifier: MIT
// What the tests of graphs share: a runtime, short names for operators, comparing.
#ifndef TESTS_GRAPHS_COMMON_H
#define TESTS_GRAPHS_COMMON_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/tenon.h>

static inline tn_runtime *open_with(const char *const *variables)
{
    tn_runtime *rt = NULL;
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .variables = variables};
    if (tn_runtime_open(&options, &rt) != TN_OK)
        fail_msg("%s", tn_last_error());
    return rt;
}

static inline int setup(void **state)
{
    *state = open_with(NULL);
    return 0;
}

static inline int teardown(void **state)
{
    tn_runtime_close(*state);
    return 0;
}

static inline void must(tn_scope *s, tn_status status)
{
    if (status != TN_OK)
        fail_msg("status %d (%s): %s", (int)status, tn_status_name(status),
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

static inline void assert_message(const char *text, const char *part)
{
    if (!text || !strstr(text, part))
        fail_msg("message \"%s\" does not say \"%s\"", text ? text : "", part);
}

#endif // TESTS_GRAPHS_COMMON_H
