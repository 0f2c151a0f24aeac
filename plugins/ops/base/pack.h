// SPDX-License-Identifier: MIT
// Shared by this pack's files: the list of its primitives, the checks of arguments, and the
// graph-building helpers of the rules.
#ifndef BASE_PACK_H
#define BASE_PACK_H

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <tenon/checked.h>
#include <tenon/kernel.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/promote.h>
#include <tenon/ops/reference.h>
#include <tenon/ops/rules.h>
#include <tenon/plugin.h>
#include <tenon/primitive.h>
#include "elementwise.h"

// The primitives that are not in the tables of elementwise.h, and the files that define
// them, which meson.build reads here: X(name, "file") for base_<name>. Primitives in
// BASE_BATCHED have a hand-written batching rule <name>_vmap in the folder of their family;
// expand_dims and squeeze use reshape's.
#define BASE_BATCHED(X)                                                                    \
    X(reshape, "move/view.c")                                                              \
    X(transpose, "move/view.c")                                                            \
    X(broadcast_to, "move/view.c")                                                         \
    X(stop_gradient, "move/view.c")                                                        \
    X(slice, "move/slice.c")                                                               \
    X(slice_update, "move/slice.c")                                                        \
    X(dynamic_slice, "move/dynamic_slice.c")                                               \
    X(dynamic_slice_update, "move/dynamic_slice.c")                                        \
    X(concatenate, "move/move.c")                                                          \
    X(split, "move/split.c")                                                               \
    X(cond, "control/cond.c")                                                              \
    X(while_loop, "control/loop.c")                                                        \
    X(scan, "control/scan.c")                                                              \
    X(checkpoint, "control/cond.c")                                                        \
    X(pad_constant, "move/move.c")                                                         \
    X(take, "index/index.c")                                                               \
    X(scatter_add, "index/index.c")                                                        \
    X(scatter_set, "index/scatter.c")                                                      \
    X(scatter_max, "index/scatter.c")                                                      \
    X(scatter_min, "index/scatter.c")                                                      \
    TN_REDUCTIONS(X)                                                                       \
    X(argmax, "reduce/reduce_rules.c")                                                     \
    X(cumsum, "reduce/cumulative.c")                                                       \
    X(cumprod, "reduce/cumulative.c")                                                      \
    X(cummax, "reduce/cumulative.c")                                                       \
    X(cummin, "reduce/cumulative.c")                                                       \
    X(sort, "sort/sort.c")                                                                 \
    X(argsort, "sort/sort.c")                                                              \
    X(topk, "sort/sort.c")                                                                 \
    X(partition, "sort/partition.c")                                                       \
    X(argpartition, "sort/partition.c")                                                    \
    X(matmul, "matmul/matmul.c")
// Primitives that decompose into others; so do all their rules.
#define BASE_DECOMPOSED(X)                                                                 \
    X(stack, "move/arrange.c")                                                             \
    X(flip, "move/arrange.c")                                                              \
    X(roll, "move/arrange.c")                                                              \
    X(repeat, "move/arrange.c")                                                            \
    X(tile, "move/arrange.c")                                                              \
    X(tril, "move/arrange.c")                                                              \
    X(triu, "move/arrange.c")                                                              \
    X(eye, "create/create.c")                                                              \
    X(one_hot, "create/create.c")                                                          \
    X(linspace, "create/create.c")                                                         \
    X(argmin, "reduce/statistics.c")                                                       \
    X(all, "reduce/statistics.c")                                                          \
    X(any, "reduce/statistics.c")                                                          \
    X(var, "reduce/statistics.c")                                                          \
    X(std, "reduce/statistics.c")                                                          \
    X(take_along_axis, "index/gather.c")                                                   \
    X(put_along_axis, "index/gather.c")                                                    \
    X(gather, "index/gather.c")                                                            \
    X(scatter, "index/gather.c")                                                           \
    X(einsum, "matmul/einsum.c")                                                           \
    X(nonzero, "sort/unique.c")                                                            \
    X(boolean_mask, "sort/unique.c")
// Composites have a decomposition and no type rule: the core applies the decomposition in
// their place.
#define BASE_COMPOSITES(X)                                                                 \
    X(zeros, "create/filled.c")                                                            \
    X(ones, "create/filled.c")                                                             \
    X(empty, "create/filled.c")                                                            \
    X(zeros_like, "create/filled.c")                                                       \
    X(ones_like, "create/filled.c")                                                        \
    X(empty_like, "create/filled.c")                                                       \
    X(full_like, "create/filled.c")                                                        \
    X(tri, "create/filled.c")                                                              \
    X(meshgrid, "create/filled.c")                                                         \
    X(hanning, "create/windows.c")                                                         \
    X(hamming, "create/windows.c")                                                         \
    X(blackman, "create/windows.c")                                                        \
    X(bartlett, "create/windows.c")                                                        \
    X(kaiser, "create/windows.c")                                                          \
    X(moveaxis, "move/axes.c")                                                             \
    X(swapaxes, "move/axes.c")                                                             \
    X(matrix_transpose, "move/axes.c")                                                     \
    X(flatten, "move/axes.c")                                                              \
    X(unflatten, "move/axes.c")                                                            \
    X(unstack, "move/axes.c")                                                              \
    X(atleast_1d, "move/axes.c")                                                           \
    X(atleast_2d, "move/axes.c")                                                           \
    X(atleast_3d, "move/axes.c")                                                           \
    X(broadcast_arrays, "move/axes.c")                                                     \
    X(rot90, "move/axes.c")                                                                \
    X(pad, "move/pad.c")                                                                   \
    X(hstack, "move/stacks.c")                                                             \
    X(vstack, "move/stacks.c")                                                             \
    X(dstack, "move/stacks.c")                                                             \
    X(column_stack, "move/stacks.c")                                                       \
    X(cumulative_sum, "reduce/running.c")                                                  \
    X(cumulative_prod, "reduce/running.c")                                                 \
    X(nancumsum, "reduce/running.c")                                                       \
    X(nancumprod, "reduce/running.c")                                                      \
    X(logcumsumexp, "reduce/running.c")                                                    \
    X(convolve, "matmul/transforms.c")                                                     \
    X(correlate, "matmul/transforms.c")                                                    \
    X(hadamard_transform, "matmul/transforms.c")                                           \
    X(diagonal, "move/diagonal.c")                                                         \
    X(trace, "move/diagonal.c")                                                            \
    X(diag, "move/diagonal.c")                                                             \
    X(diff, "move/diagonal.c")                                                             \
    X(outer, "matmul/products.c")                                                          \
    X(tensordot, "matmul/products.c")                                                      \
    X(inner, "matmul/products.c")                                                          \
    X(dot, "matmul/products.c")                                                            \
    X(vecdot, "matmul/products.c")                                                         \
    X(vdot, "matmul/products.c")                                                           \
    X(kron, "matmul/products.c")                                                           \
    X(cross, "matmul/products.c")                                                          \
    X(matvec, "matmul/products.c")                                                         \
    X(vecmat, "matmul/products.c")                                                         \
    X(addmm, "matmul/products.c")                                                          \
    X(round, "elementwise/numbers.c")                                                      \
    X(isclose, "elementwise/numbers.c")                                                    \
    X(allclose, "elementwise/numbers.c")                                                   \
    X(array_equal, "elementwise/numbers.c")                                                \
    X(nan_to_num, "elementwise/numbers.c")                                                 \
    X(signbit, "elementwise/numbers.c")                                                    \
    X(copysign, "elementwise/numbers.c")                                                   \
    X(nextafter, "elementwise/numbers.c")                                                  \
    X(nansum, "reduce/nan.c")                                                              \
    X(nanprod, "reduce/nan.c")                                                             \
    X(nanmean, "reduce/nan.c")                                                             \
    X(nanmax, "reduce/nan.c")                                                              \
    X(nanmin, "reduce/nan.c")                                                              \
    X(nanvar, "reduce/nan.c")                                                              \
    X(nanstd, "reduce/nan.c")                                                              \
    X(count_nonzero, "reduce/nan.c")                                                       \
    X(minmax, "reduce/nan.c")                                                              \
    X(ptp, "reduce/nan.c")                                                                 \
    X(average, "reduce/nan.c")                                                             \
    X(median, "reduce/quantile.c")                                                         \
    X(quantile, "reduce/quantile.c")                                                       \
    X(percentile, "reduce/quantile.c")                                                     \
    X(nanquantile, "reduce/quantile.c")                                                    \
    X(nanpercentile, "reduce/quantile.c")                                                  \
    X(nanmedian, "reduce/quantile.c")                                                      \
    X(searchsorted, "sort/search.c")                                                       \
    X(digitize, "sort/search.c")                                                           \
    X(isin, "sort/search.c")                                                               \
    X(bincount, "sort/search.c")                                                           \
    X(histogram, "sort/search.c")                                                          \
    X(fmod, "elementwise/parts.c")                                                         \
    X(frexp, "elementwise/parts.c")                                                        \
    X(ldexp, "elementwise/parts.c")                                                        \
    X(gcd, "elementwise/parts.c")                                                          \
    X(lcm, "elementwise/parts.c")                                                          \
    X(i0, "elementwise/parts.c")                                                           \
    X(indices, "index/positions.c")                                                        \
    X(diag_indices, "index/positions.c")                                                   \
    X(diag_indices_from, "index/positions.c")                                              \
    X(tril_indices, "index/positions.c")                                                   \
    X(triu_indices, "index/positions.c")                                                   \
    X(tril_indices_from, "index/positions.c")                                              \
    X(triu_indices_from, "index/positions.c")                                              \
    X(ravel_multi_index, "index/positions.c")                                              \
    X(unravel_index, "index/positions.c")                                                  \
    X(choose, "index/positions.c")                                                         \
    X(select, "index/positions.c")                                                         \
    X(delete, "move/change.c")                                                             \
    X(insert, "move/change.c")                                                             \
    X(resize, "move/change.c")                                                             \
    X(diagflat, "move/change.c")                                                           \
    X(ediff1d, "move/change.c")                                                            \
    X(packbits, "move/change.c")                                                           \
    X(unpackbits, "move/change.c")                                                         \
    X(intersect1d, "sort/sets.c")                                                          \
    X(setdiff1d, "sort/sets.c")                                                            \
    X(setxor1d, "sort/sets.c")                                                             \
    X(trim_zeros, "sort/sets.c")                                                           \
    X(lexsort, "sort/sets.c")                                                              \
    X(interp, "sort/sets.c")                                                               \
    X(histogramdd, "sort/search.c")                                                        \
    X(histogram2d, "sort/search.c")                                                        \
    X(cov, "reduce/slopes.c")                                                              \
    X(corrcoef, "reduce/slopes.c")                                                         \
    X(gradient, "reduce/slopes.c")                                                         \
    X(unwrap, "reduce/slopes.c")                                                           \
    X(nanargmax, "reduce/slopes.c")                                                        \
    X(nanargmin, "reduce/slopes.c")                                                        \
    X(logspace, "create/spaces.c")                                                         \
    X(geomspace, "create/spaces.c")                                                        \
    X(vander, "create/spaces.c")                                                           \
    X(argwhere, "sort/unique.c")                                                           \
    X(unique_all, "sort/unique.c")                                                         \
    X(unique_counts, "sort/unique.c")                                                      \
    X(unique_inverse, "sort/unique.c")                                                     \
    X(unique_values, "sort/unique.c")
#define BASE_PRIMITIVES(X)                                                                 \
    X(where, "elementwise/elementwise.c")                                                  \
    X(sigmoid, "elementwise/elementwise.c")                                                \
    X(clip, "elementwise/elementwise.c")                                                   \
    X(astype, "elementwise/elementwise.c")                                                 \
    X(arange, "create/create.c")                                                           \
    X(full, "create/create.c")                                                             \
    X(random_bits, "random/random.c")                                                      \
    X(random_uniform, "random/random.c")                                                   \
    X(random_normal, "random/random.c")                                                    \
    X(print, "control/print.c")                                                            \
    X(expand_dims, "move/view.c")                                                          \
    X(squeeze, "move/view.c")                                                              \
    X(sum_to, "reduce/reduce_rules.c")                                                     \
    X(divmod, "elementwise/numbers.c")                                                     \
    X(modf, "elementwise/parts.c")                                                         \
    X(gamma, "elementwise/special.c")                                                      \
    X(lgamma, "elementwise/special.c")                                                     \
    X(digamma, "elementwise/special.c")                                                    \
    X(trigamma, "elementwise/special.c")                                                   \
    X(i0e, "elementwise/special.c")                                                        \
    X(i1e, "elementwise/special.c")                                                        \
    X(view, "move/strided.c")                                                              \
    X(as_strided, "move/strided.c")                                                        \
    BASE_COMPOSITES(X)                                                                     \
    BASE_DECOMPOSED(X)                                                                     \
    BASE_BATCHED(X)
#define BASE_DECLARE(name, ...) extern const tn_primitive base_##name;
BASE_PRIMITIVES(BASE_DECLARE)
BASE_UNARY(BASE_DECLARE)
BASE_BINARY(BASE_DECLARE)
#undef BASE_DECLARE
#define BASE_DECLARE(name, ...)                                                            \
    tn_status name##_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes, \
                          int64_t size, tn_array **outputs, int32_t *out_axes);
BASE_BATCHED(BASE_DECLARE)
#undef BASE_DECLARE

// The record of a primitive made of others: functions NAME_infer and NAME_decompose,
// attributes TYPE described by FIELDS. Further fields may follow.
#define DECOMPOSED(name, type, fields, sentence, ...)                                      \
    const tn_primitive base_##name = {.struct_size = sizeof(tn_primitive),                 \
                                      .id = "base." #name "/1",                            \
                                      .doc = sentence,                                     \
                                      .attrs = TN_ATTR_TABLE(type, fields),                \
                                      .infer = name##_infer,                               \
                                      .decompose = name##_decompose,                       \
                                      __VA_ARGS__}
// The record of a composite: function NAME_decompose; further fields may follow.
#define COMPOSITE(name, sentence, ...)                                                     \
    const tn_primitive base_##name = {.struct_size = sizeof(tn_primitive),                 \
                                      .id = "base." #name "/1",                            \
                                      .doc = sentence,                                     \
                                      .decompose = name##_decompose,                       \
                                      __VA_ARGS__}
#define DECOMPOSE(name)                                                                    \
    static tn_status name##_decompose(const tn_build *build, const tn_rule *rule,          \
                                      tn_array **outputs)

// Attributes followed by the dtype of the result. Rules, which do not use the dtype, read
// the struct as its first member.
typedef struct {
    tn_reduce_attrs of;
    int64_t dtype;
} reduce_dtype_attrs;
typedef struct {
    tn_var_attrs of;
    int64_t dtype;
} var_dtype_attrs;
typedef struct {
    tn_cumulative_attrs of;
    int64_t dtype;
} cumulative_dtype_attrs;
#define RESULT_DTYPE(type)                                                                 \
    TN_RESULT_DTYPE_FIELD(type, dtype, "dtype of the result, in which it is computed")

// Primitives that only move elements. On a CPU their reference is as fast as any kernel and
// faster than their decomposition, so the reference is registered as a kernel, too. X(name)
#define BASE_CPU_KERNELS(X)                                                                \
    X(slice_update)                                                                        \
    X(dynamic_slice) X(dynamic_slice_update) X(concatenate) X(pad_constant)
#define BASE_DECLARE(name) tn_status name##_reference(const struct tn_cpu_call *call);
BASE_CPU_KERNELS(BASE_DECLARE)
#undef BASE_DECLARE

// Input lists of primitives with one input, "x".
extern const tn_input_info base_x[1];        // of TN_FIRST_DTYPES
extern const tn_input_info base_any_x[1];    // of any dtype
extern const tn_input_info base_number_x[1]; // of TN_FIRST_DTYPES and complex ones

// --- checks (common/check.c)
// -------------------------------------------------------------------

#define SHAPE_TEXT 200
// Writes "[256, 512]" to `buffer`, and returns `buffer`.
const char *shape_text(int32_t rank, const int64_t *extent, char buffer[SHAPE_TEXT]);
const char *dtype_text(int64_t dtype);

// Sets bit i of *out_set for each axis i of `axes`, or all bits when `axes` is not given.
// Fails on an axis that is out of range or given twice; `name` is the attribute's name.
tn_status check_axes(const tn_host *host, const char *name, const tn_ints *axes,
                     int32_t rank, uint32_t *out_set);

// Gives `axis` counted from the front; a negative `axis` counts from the end. Fails when
// the axis is out of range.
tn_status check_axis(const tn_host *host, int64_t axis, int32_t rank, int32_t *out_axis);

// Fails unless `other`, input `name`, has the dtype of x.
tn_status check_same_dtype(const tn_host *host, const char *name, tn_dtype other,
                           tn_dtype x);

// The common extents that x and y broadcast to, into *out (its dtype stays). False: none.
int broadcast_types(const tn_type *x, const tn_type *y, tn_type *out);

// Number of elements; INT64_MAX where it overflows, which no array reaches, as the core
// refuses arrays of over 2^63 bytes.
static inline int64_t type_count(const tn_type *type)
{
    int64_t count = 1;
    for (int32_t i = 0; i < type->rank; i++)
        if (type->extent[i] == 0)
            return 0;
    for (int32_t i = 0; i < type->rank; i++)
        if (!tn_checked_multiply_extents(count, type->extent[i], &count))
            return INT64_MAX;
    return count;
}

// Fails when `shape` is not given or has a negative extent.
tn_status check_shape(const tn_host *host, const tn_ints *shape);

// The least and the greatest value of a dtype, as doubles: infinite for floats. The
// greatest 64-bit integers are not doubles: the double before them stands for them.
void dtype_range(tn_dtype dtype, double *out_least, double *out_most);

// Fails when `dtype` is an integer dtype that cannot hold `value` truncated to an integer;
// `name` is the attribute's name.
tn_status check_holds(const tn_host *host, const char *name, double value, tn_dtype dtype);

// Fails unless `dtype` is an integer dtype; `input` is the input's name.
tn_status check_integers(const tn_host *host, const char *input, tn_dtype dtype);

// --- graph building ---------------------------------------------------------------------

// Whether a vjp has to give the gradient of input `input`: one bit an input.
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

// Applies reshape, broadcast_to or sum_to to x.
tn_array *with_shape(const tn_build *build, const char *primitive, const tn_array *x,
                     tn_ints shape);

tn_array *cast(const tn_build *build, const tn_array *x, tn_dtype dtype);

// x, converted where its dtype is not `dtype`.
tn_array *as_dtype(const tn_build *build, tn_array *x, tn_dtype dtype);

// A reduction of x over `axes`; over all axes where they are not given.
tn_array *reduced_over(const tn_build *build, const char *primitive, const tn_array *x,
                       const tn_ints *axes, int64_t keepdims);

// The sum along one axis, in `dtype`.
tn_array *sum_along(const tn_build *build, const tn_array *x, int64_t axis, tn_dtype dtype);

// count_outputs of a primitive with one output for each input.
tn_status output_each_input(const tn_infer *infer, uint64_t *out_count);

// x with all axes merged into one.
tn_array *flattened(const tn_build *build, const tn_array *x);

// 0, 1, ... n - 1 along an axis that has `behind` axes of extent 1 behind it: i64.
tn_array *counted(const tn_build *build, int64_t n, int32_t behind);

// Elements first, first + step, ... of `axis`, `count` of them: a view. Step is not 0.
tn_array *part_of_axis(const tn_build *build, const tn_array *x, int32_t axis,
                       int64_t first, int64_t step, int64_t count);

tn_array *turned(const tn_build *build, const tn_array *x, const tn_ints *order);
tn_array *joined(const tn_build *build, tn_array *const *parts, uint64_t count,
                 int64_t axis);

// Makes the rule's own result of an input that it gives unchanged.
tn_array *passed(const tn_build *build, const tn_array *x);

// Zeros with the extents of `like`: a broadcast scalar, which takes no memory.
tn_array *zeros_like(const tn_build *build, const tn_array *like, tn_dtype dtype);

// Merges x's batch axis `from` into axis `axis` of a slice, which joins the slices there.
tn_array *joined_batch(const tn_build *build, tn_array *x, int32_t from, int32_t axis);
// Moves a batch axis to the front of x. *along, an axis of a slice counted from either end,
// becomes the number of that axis in the result.
tn_array *batch_along(const tn_build *build, tn_array *x, int32_t batch_axis,
                      int64_t *along);

// Status of a rule that built `array`. The builder has recorded the failure behind a NULL.
static inline tn_status built(const tn_array *array)
{
    return array ? TN_OK : TN_ERR_ARGUMENT;
}

// Status of a vjp: fails when a wanted gradient is NULL.
static inline tn_status built_wanted(const uint64_t *wanted, tn_array *const *gradients,
                                     uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (wants(wanted, i) && !gradients[i])
            return TN_ERR_ARGUMENT;
    return TN_OK;
}

// Rules of primitives without a derivative: gradients and tangents stay NULL, which is
// zero.
tn_status zero_vjp(const tn_build *build, const tn_rule *rule, tn_array *const *cotangents,
                   const uint64_t *wanted, tn_array **gradients);
tn_status zero_jvp(const tn_build *build, const tn_rule *rule, tn_array *const *tangents,
                   tn_array **out_tangents);

#endif // BASE_PACK_H
