// SPDX-License-Identifier: MIT
// What tests of joined steps share: graphs of small samples, computed at once and, on the
// CPU, node by node. TENON_TEST_BACKEND says on which backend; without it, on cpu-blas.
#ifndef TESTS_GRAPHS_SAMPLES_H
#define TESTS_GRAPHS_SAMPLES_H

#include "device/device.h"
#include "graph/graph.h"
#include <string.h>
#include "../support/common.h"

static inline const char *backend(void)
{
    const char *name = getenv("TENON_TEST_BACKEND");
    return name ? name : "cpu-blas";
}

static inline bool is_cpu(void)
{
    return strcmp(backend(), "cpu-blas") == 0;
}

static tn_runtime *cpu; // what is compared with

static inline void open_with_cpu(const char *option)
{
    char variable[96];
    need_device(backend());
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend());
    runtime = open_with((const char *const[]){variable, option, NULL});
    cpu = is_cpu() ? runtime : open_on("cpu-blas");
}

static inline void open_backend(void)
{
    open_with_cpu(NULL);
}

static inline void close_both(void)
{
    if (cpu != runtime)
        tn_runtime_close(cpu);
    tn_runtime_close(runtime);
}

enum { MOST_RESULTS = 14, MOST_ELEMENTS = 1 << 20 };

// How a graph is built: with `alone`, each node is evaluated when it is made.
struct maker {
    tn_scope *s;
    tn_dtype dtype;
    bool alone;
};

static inline tn_array *kept(const struct maker *m, tn_array *x)
{
    must(m->s, tn_scope_status(m->s));
    if (m->alone)
        must(m->s, tn_eval(m->s, x));
    return x;
}

static inline tn_array *un1(const struct maker *m, const char *op, tn_array *x)
{
    return kept(m, un(m->s, op, x));
}

static inline tn_array *bin2(const struct maker *m, const char *op, tn_array *x,
                             tn_array *y)
{
    return kept(m, bin(m->s, op, x, y));
}

// Data of the maker's dtype: small numbers, also negative ones.
static inline tn_array *data(const struct maker *m, const tn_shape *shape, int start)
{
    static float values[MOST_ELEMENTS];
    int64_t count = 1;
    for (int32_t i = 0; i < shape->rank; i++)
        count *= shape->extent[i];
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((i * 7 + start) % 23 - 11) * (m->dtype == TN_I32 ? 1 : 0.125f);
    tn_array *x = tn_from_data(m->s, TN_F32, shape, values);
    if (m->dtype != TN_F32)
        x = tn_op(m->s, "astype", TN_IN(x), tn_attrs("dtype", tn_dtype_name(m->dtype)));
    must(m->s, tn_eval(m->s, x));
    return x;
}

typedef int build_graph(const struct maker *m, tn_array *out[MOST_RESULTS]);

#define FLOATS (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64) | TN_DTYPE_BIT(TN_F16))
#define ALL (FLOATS | TN_DTYPE_BIT(TN_I32))
#define ONLY_F32 TN_DTYPE_BIT(TN_F32)
#define ONLY_F64 TN_DTYPE_BIT(TN_F64)
#define HALF (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F16))

static inline void read_as_f64(tn_scope *s, tn_array *x, double *out, int64_t count)
{
    tn_array *wide = tn_op(s, "astype", TN_IN(x), tn_attrs("dtype", "f64"));
    must(s, tn_read(s, wide, out, (uint64_t)count * sizeof(*out)));
}

static inline void compare(const char *name, tn_scope *s, tn_array *x, tn_scope *t,
                           tn_array *y)
{
    static double got[MOST_ELEMENTS], want[MOST_ELEMENTS];
    const tn_type *type = tn_array_type(x);
    int64_t count = 1;
    for (int32_t i = 0; i < type->rank; i++)
        count *= type->extent[i];
    read_as_f64(s, x, got, count);
    read_as_f64(t, y, want, count);
    // Sums inside kernels may be regrouped.
    double allowed = !tn_is_float(type->dtype) ? 0 : type->dtype == TN_F16 ? 0x1p-9 : 1e-5;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= allowed * (1 + fabs(want[i]))) &&
            !(isnan(got[i]) && isnan(want[i])) && got[i] != want[i])
            cr_fatal("%s, %s, element %lld of %lld: got %g, expected %g", name,
                     tn_dtype_name(type->dtype), (long long)i, (long long)count, got[i],
                     want[i]);
}

static inline bool is_gpu(void)
{
    struct device **devices;
    uint32_t count;
    must(NULL, devices_open(runtime, &devices, &count));
    return !is_cpu() && !(devices[0]->info.flags & TN_DEVICE_SOFTWARE);
}

#endif // TESTS_GRAPHS_SAMPLES_H
