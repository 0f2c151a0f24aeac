// SPDX-License-Identifier: MIT
// What the files of this pack share: the list of its primitives, and the checks and pieces
// that most rules are made of.
#ifndef BASE_PACK_H
#define BASE_PACK_H

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <tenon/kernel.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/reference.h>
#include <tenon/ops/rules.h>
#include <tenon/plugin.h>
#include <tenon/primitive.h>
#include "elementwise.h"

// The primitives that are not in the tables of elementwise.h, base_where, ...; and those
// of them with a batching rule by hand, <name>_vmap (reshape's is also that of expand_dims
// and squeeze): batch.c, index.c, matmul.c. X(name)
#define BASE_BATCHED(X)                                                                    \
    X(reshape)                                                                             \
    X(transpose)                                                                           \
    X(broadcast_to)                                                                        \
    X(stop_gradient)                                                                       \
    X(slice)                                                                               \
    X(slice_update)                                                                        \
    X(concatenate)                                                                         \
    X(pad)                                                                                 \
    X(take)                                                                                \
    X(scatter_add)                                                                         \
    X(sum)                                                                                 \
    X(mean)                                                                                \
    X(max)                                                                                 \
    X(min)                                                                                 \
    X(argmax)                                                                              \
    X(logsumexp)                                                                           \
    X(matmul)
#define BASE_PRIMITIVES(X)                                                                 \
    X(where)                                                                               \
    X(sigmoid)                                                                             \
    X(clip)                                                                                \
    X(astype)                                                                              \
    X(arange)                                                                              \
    X(full)                                                                                \
    X(random_bits)                                                                         \
    X(random_uniform)                                                                      \
    X(random_normal)                                                                       \
    X(expand_dims)                                                                         \
    X(squeeze)                                                                             \
    X(sum_to)                                                                              \
    BASE_BATCHED(X)
#define BASE_DECLARE(name, ...) extern const tn_primitive base_##name;
BASE_PRIMITIVES(BASE_DECLARE)
BASE_UNARY(BASE_DECLARE)
BASE_BINARY(BASE_DECLARE)
#undef BASE_DECLARE
#define BASE_DECLARE(name)                                                                 \
    tn_status name##_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes, \
                          int64_t size, tn_array **outputs, int32_t *out_axes);
BASE_BATCHED(BASE_DECLARE)
#undef BASE_DECLARE

// The references of primitives that only move elements are as good as any kernel on a CPU,
// and better there than their decompositions: they are brought as kernels too. X(name)
#define BASE_CPU_KERNELS(X) X(slice_update) X(concatenate) X(pad)
#define BASE_DECLARE(name) tn_status name##_reference(const struct tn_cpu_call *call);
BASE_CPU_KERNELS(BASE_DECLARE)
#undef BASE_DECLARE

// The one input of many.
extern const tn_input_info base_x[1];

// --- checks (check.c) -------------------------------------------------------------------

#define SHAPE_TEXT 200
// "[256, 512]"; returns buffer.
const char *shape_text(int32_t rank, const int64_t *extent, char buffer[SHAPE_TEXT]);
const char *dtype_text(int64_t dtype);

// The axes named by attribute `name`, as bits. Fails when one is out of range or twice.
tn_status check_axes(const tn_host *host, const char *name, const tn_ints *axes,
                     int32_t rank, uint32_t *out_set);

// `axis` counted from the front. Fails when out of range.
tn_status check_axis(const tn_host *host, int64_t axis, int32_t rank, int32_t *out_axis);

// Fails when an extent is negative or there are none given.
tn_status check_shape(const tn_host *host, const tn_ints *shape);

// Fails unless `dtype` is of an integer.
tn_status check_integers(const tn_host *host, const char *input, tn_dtype dtype);

// --- pieces -----------------------------------------------------------------------------

static inline int wants(const uint64_t *wanted, uint32_t input)
{
    return (wanted[input / 64] >> input % 64 & 1) != 0;
}

static inline tn_ints ints_of(int32_t count, const int64_t *values)
{
    tn_ints ints = {(uint32_t)count, 1, {0}};
    for (int32_t i = 0; i < count; i++)
        ints.value[i] = values[i];
    return ints;
}

// One input, the attribute `shape`: reshape, broadcast_to, sum_to.
tn_array *with_shape(const tn_build *build, const char *primitive, const tn_array *x,
                     tn_ints shape);

// Zeros with the extents of `like`, which nothing is stored for.
tn_array *zeros_like(const tn_build *build, const tn_array *like, tn_dtype dtype);

// What a rule that built `array` returns: the failure has been recorded already.
static inline tn_status built(const tn_array *array)
{
    return array ? TN_OK : TN_ERR_ARGUMENT;
}

// The same for a vjp: fails when a wanted gradient was not built.
static inline tn_status built_wanted(const uint64_t *wanted, tn_array *const *gradients,
                                     uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (wants(wanted, i) && !gradients[i])
            return TN_ERR_ARGUMENT;
    return TN_OK;
}

// A vjp of what has no derivative: all zero.
tn_status zero_vjp(const tn_build *build, const tn_rule *rule, tn_array *const *cotangents,
                   const uint64_t *wanted, tn_array **gradients);
tn_status zero_jvp(const tn_build *build, const tn_rule *rule, tn_array *const *tangents,
                   tn_array **out_tangents);

#endif // BASE_PACK_H
