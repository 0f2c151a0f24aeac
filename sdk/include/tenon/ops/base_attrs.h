// SPDX-License-Identifier: MIT
// Attribute structs of the primitives of pack "base": for plugins that bring kernels or
// rules for these primitives. Each struct is frozen with the revision of its primitives.
//
//   static tn_status launch(const tn_cpu_call *call) // of a kernel for "base.sum/1"
//   {
//       const tn_reduce_attrs *attrs = call->attrs;
//       uint32_t axes = tn_axis_set(&attrs->axis, call->inputs[0].layout.rank);
//       ...
//
// The core fills the structs, defaults included; they are borrowed for the call. infer has
// accepted the values: axes are in range and lists have the right length. Axes count from
// the end when negative, and reach kernels and rules as they were given: tn_axis() resolves
// them.
//
// Applications pass attributes by name, tn_attrs("axis", TN_INTS(0, 2), "keepdims", 1), or
// call the C functions of <tenon/ops/base.h>, which is made from these tables.
//
// Threads. Plain data and pure functions: any thread.
#ifndef TENON_OPS_BASE_ATTRS_H
#define TENON_OPS_BASE_ATTRS_H

#include <tenon/attr.h>
#include <tenon/graph.h>
#include <tenon/types.h>

// `axis`, which counts from the end when negative, as an axis from 0; -1 when it is not
// within `rank`.
static inline int32_t tn_axis(int64_t axis, int32_t rank)
{
    int64_t from_front = axis < 0 ? axis + rank : axis;
    return from_front >= 0 && from_front < rank ? (int32_t)from_front : -1;
}

// The set of axes that a list names, as bits 1 << axis from the front: all axes below
// `rank` when the list is not given, none when it is empty. An axis out of range is left
// out.
static inline uint32_t tn_axis_set(const tn_ints *axes, int32_t rank)
{
    uint32_t set = 0;
    if (!axes->given)
        return (UINT32_C(1) << rank) - 1;
    for (uint32_t i = 0; i < axes->count; i++) {
        int32_t axis = tn_axis(axes->value[i], rank);
        if (axis >= 0)
            set |= UINT32_C(1) << axis;
    }
    return set;
}

// base.astype/1 (x): x converted as CAST of <tenon/expr.h> does; numpy.ndarray.astype.
typedef struct tn_astype_attrs {
    int64_t dtype; // a tn_dtype, of the result; required
} tn_astype_attrs;

// The table of reductions over any axes, X(name, DTYPES), for base.<name>/1. DTYPES: the
// dtypes that kernels take, ALL (TN_ALL_DTYPES) or FLOAT (TN_FLOAT_DTYPES); arrays of other
// dtypes are converted first.
#define TN_REDUCTIONS(X)                                                                   \
    X(sum, ALL)                                                                            \
    X(prod, ALL)                                                                           \
    X(mean, ALL)                                                                           \
    X(max, ALL)                                                                            \
    X(min, ALL)                                                                            \
    X(logsumexp, FLOAT)

// Attributes of each primitive of TN_REDUCTIONS (x), as NumPy's functions of these names;
// logsumexp is log(sum(exp(x))) without overflow.
//
// Result: sums and products of bool and signed integers are i64, of unsigned ones u64; mean
// and logsumexp of bool and integers are f64; others keep x's dtype. F16 and BF16 are
// accumulated in f32. `dtype`, which sum, prod, mean, var, std and running sums and
// products have, is TN_ATTR_RESULT: no kernel and no rule sees it. max and min of a NaN are
// NaN, and of no elements an error.
//
// base.all/1, base.any/1 (x): whether all elements, or one, are nonzero or true: bool. Of
// no elements all is true and any false.
typedef struct tn_reduce_attrs {
    tn_ints axis;     // axes to reduce, one or several; not given: all
    int64_t keepdims; // 1: reduced axes stay, with extent 1; 0: they are removed
} tn_reduce_attrs;

// base.argmax/1, base.argmin/1 (x): an i64 index along `axis`, of the greatest or the least
// element; the first of equal elements, and the first NaN when there is one, as
// numpy.argmax and numpy.argmin.
typedef struct tn_argmax_attrs {
    int64_t axis;     // TN_NO_AXIS: x is taken as flattened in row-major order
    int64_t keepdims; // as in tn_reduce_attrs
} tn_argmax_attrs;

// base.var/1, base.std/1 (x): the mean square of the distance from the mean, and its square
// root, as numpy.var and numpy.std; f64 for bool and integers. With n reduced elements the
// sum of squares is divided by n - ddof, or by 0 when that is negative. The derivative of
// std where it is 0 is 0.
typedef struct tn_var_attrs {
    tn_ints axis;     // as in tn_reduce_attrs
    int64_t keepdims; // as in tn_reduce_attrs
    double ddof;      // 1 gives the unbiased estimate; default 0
} tn_var_attrs;

// base.cumsum/1, cumprod/1, cummax/1, cummin/1 (x): element i is the sum (product,
// greatest, least) of elements 0 ... i along `axis`, as numpy.cumsum, numpy.cumprod and the
// `accumulate` of numpy.maximum and numpy.minimum. Dtypes are those of tn_reduce_attrs; the
// order of additions is open. A NaN makes all behind it NaN. Equal greatest elements: the
// derivative goes to the last of those so far, as torch.cummax.
typedef struct tn_cumulative_attrs {
    int64_t axis;    // TN_NO_AXIS: x is taken as flattened in row-major order
    int64_t reverse; // 1: of elements i ... n - 1; default 0
} tn_cumulative_attrs;

// base.sort/1 (x): the elements along `axis` in ascending order; base.argsort/1 (x): their
// i64 positions in x, so that take_along_axis(x, argsort(x)) is sort(x). Stable: equal
// elements keep their order. NaN counts as greatest.
typedef struct tn_sort_attrs {
    int64_t axis;       // default -1
    int64_t descending; // 1: from the greatest to the least; default 0
} tn_sort_attrs;

// base.topk/1 (x) -> values, indices: the k greatest elements along `axis` in descending
// order, and their i64 positions in x, as torch.topk; the first of equal elements comes
// first, and NaN counts as greatest.
typedef struct tn_topk_attrs {
    int64_t k;       // 0 ... the extent of the axis; required
    int64_t axis;    // default -1
    int64_t largest; // 0: the k least elements, in ascending order; default 1
} tn_topk_attrs;

// base.partition/1 (x): the elements along `axis`, that of position `kth` in sort(x) at
// this position, those before it in front and the others behind, each in x's order;
// base.argpartition/1 (x): their i64 positions in x. Which of equal elements come before,
// and NaN, are as in sort.
typedef struct tn_partition_attrs {
    int64_t kth;  // negative: from the end; required
    int64_t axis; // default -1
} tn_partition_attrs;

// The axis of tn_argmax_attrs, tn_cumulative_attrs and tn_repeat_attrs when none is given.
#define TN_NO_AXIS INT64_MIN

// base.reshape/1 (x): the same elements in row-major order under other extents.
// base.broadcast_to/1 (x): x repeated along new leading axes and along axes of extent 1, as
// numpy.broadcast_to. base.sum_to/1 (x): its transpose, x summed over the axes along which
// `shape` would be repeated to give x's extents.
typedef struct tn_shape_attrs {
    tn_ints
        shape; // extents of the result; required. reshape: one may be -1, and is inferred
} tn_shape_attrs;

// base.full/1 (no input): every element is `value`, converted to the dtype.
typedef struct tn_full_attrs {
    tn_ints shape; // required
    double value;  // default 0
    int64_t dtype; // TN_DTYPE_NONE: f32
} tn_full_attrs;

// base.clip/1 (x): max(lo, min(x, hi)) in x's dtype, lo <= hi. Of an integer dtype the
// limits are rounded inwards to whole numbers, and limits outside of its range are the
// range's ends.
typedef struct tn_clip_attrs {
    double lo; // default minus infinity
    double hi; // default infinity
} tn_clip_attrs;

// base.eye/1 (no input): 1 on the diagonal k of a matrix, else 0, as numpy.eye.
typedef struct tn_eye_attrs {
    int64_t n;     // rows; required
    int64_t m;     // columns; -1: as many as rows
    int64_t k;     // above 0: above the main diagonal; default 0
    int64_t dtype; // TN_DTYPE_NONE: f32
} tn_eye_attrs;

// base.tril/1, base.triu/1 (x): x with zeros above, or below, diagonal k of its last two
// axes, as numpy.tril and numpy.triu.
typedef struct tn_diagonal_attrs {
    int64_t k; // above 0: above the main diagonal; default 0
} tn_diagonal_attrs;

// base.one_hot/1 (x: integers): 1 at the position that x names along a new axis, else 0, as
// torch.nn.functional.one_hot. What is no class, as -1, gives zeros.
typedef struct tn_one_hot_attrs {
    int64_t num_classes; // at least 0; required
    int64_t axis;        // of the result; default -1
    int64_t dtype;       // TN_DTYPE_NONE: i64
} tn_one_hot_attrs;

// base.nonzero/1 (x): the indices of the nonzero elements, an output an axis, and their
// number; base.boolean_mask/1 (x, mask): the elements of x where the mask is true, and
// their number, both i64. The first `size` elements are kept, those behind the last one
// filled, and the number may be more than the bound.
typedef struct tn_bounded_attrs {
    int64_t size;      // at least 0; required
    double fill_value; // behind the last one; default 0
} tn_bounded_attrs;

// base.transpose/1 (x): axis i of the result is axis axes[i] of x, as numpy.transpose.
typedef struct tn_transpose_attrs {
    tn_ints axes; // a permutation; not given: all axes in reverse order
} tn_transpose_attrs;

// base.expand_dims/1 (x): x with axes of extent 1 added. base.squeeze/1 (x): x with axes of
// extent 1 removed. base.flip/1 (x): x with the order of elements reversed along axes.
typedef struct tn_axis_attrs {
    tn_ints axis; // one or several. expand_dims: axes of the result; required
                  // squeeze: axes of x; not given: all of extent 1
                  // flip: axes of x; not given: all
} tn_axis_attrs;

// base.slice/1 (x): Python's x[start:stop:step] on each axis, negative steps included.
// base.slice_update/1 (x, update): x with the elements of that slice replaced by `update`,
// which has the slice's extents. Lists have up to as many entries as x has axes; axes
// behind their end are taken whole.
typedef struct tn_slice_attrs {
    tn_ints start; // first index on each axis; not given: the start
    tn_ints stop;  // index to stop before; not given: the end
    tn_ints step;  // not 0; not given: 1
} tn_slice_attrs;

// A bound or step left out, within a list of tn_slice_attrs: what an omitted one means to
// Python, which depends on the sign of the step.
#define TN_SLICE_END INT64_MAX

// base.dynamic_slice/1 (x, start): the part of x of these sizes that begins at the indices
// `start`; base.dynamic_slice_update/1 (x, update, start; no attributes): x with the part
// that begins there, of the update's extents, replaced by `update`. `start` is an array of
// integers, so one plan serves all positions: a list for the first axes of x, or one number
// (rank 0) for the first; on the other axes a part begins at 0. A negative index counts
// from the end. Out of range is clamped to 0 ... extent - size, so that the part fits, as
// in jax.lax.dynamic_slice and dynamic_update_slice.
typedef struct tn_dynamic_slice_attrs {
    tn_ints sizes; // extents of the part on the first axes; others are whole; required
} tn_dynamic_slice_attrs;

// base.split/1 (x): parts of x along `axis`, as many as tn_op_outputs() gives, in order, as
// views of x. Either `sections` parts of equal extent, as numpy.split, or with `uneven` of
// extents that differ by one at most, the longer ones first, as numpy.array_split; or parts
// that end before each of `indices` and at x's end.
typedef struct tn_split_attrs {
    int64_t sections;           // 1 .. TN_MAX_OUTPUTS; 0: by indices
    const tn_int_list *indices; // ascending, below TN_MAX_OUTPUTS of them; negative ones
                                // count from the end, and are cut to x's extent
    int64_t axis;               // default 0; a negative one counts from the end
    int64_t uneven;             // 1: of sections, the extent need not be a multiple
} tn_split_attrs;

// base.concatenate/1 (x, ...): arrays of one dtype joined along `axis`. Their other extents
// are equal. base.stack/1 (x, ...): arrays of one dtype and equal extents joined along a
// new axis, `axis` of the result.
typedef struct tn_concatenate_attrs {
    int64_t axis; // default 0
} tn_concatenate_attrs;

// base.roll/1 (x): element i comes to i + shift along an axis, and those beyond its end to
// its start, as numpy.roll.
typedef struct tn_roll_attrs {
    tn_ints shift; // one for each of `axis`, or one for all; required
    tn_ints axis;  // an axis that is given twice is shifted twice; not given: x is taken as
                   // flattened, and one shift is given
} tn_roll_attrs;

// base.repeat/1 (x): each element along `axis` so many times in a row, as numpy.repeat.
typedef struct tn_repeat_attrs {
    const tn_int_list *repeats; // one for all elements, or one for each; at least 0
    int64_t axis;               // TN_NO_AXIS: x is taken as flattened; the default
} tn_repeat_attrs;

// base.tile/1 (x): x so many times along each axis, as numpy.tile.
typedef struct tn_tile_attrs {
    tn_ints reps; // at least 0, of the last axes; x gets axes in front to have as many
} tn_tile_attrs;

// base.pad/1 (x): x with a border of one value, as numpy.pad in mode "constant".
typedef struct tn_pad_attrs {
    tn_ints before; // elements put in front, one count for each axis of x; required
    tn_ints after;  // elements put behind, likewise
    double value;   // of the border, converted to x's dtype; default 0
} tn_pad_attrs;

// base.take/1 (x, indices): x with `axis` replaced by the indices' shape, as numpy.take in
// mode "clip", except that negative indices count from the end. Out of range: clamped.
//
// base.scatter_add/1 (x, indices, updates): x with `updates` added at the indices along
// `axis`; `updates` has x's dtype and the shape that take gives. Negative indices count
// from the end; indices out of range are dropped; each of several equal indices adds
// (numpy.add.at).
//
// base.scatter_set/1, scatter_max/1, scatter_min/1 (x, indices, updates): as scatter_add,
// but the element is replaced by the update (by the last of those for equal indices), or by
// the greater or the lesser of both (NaN when either is).
typedef struct tn_take_attrs {
    int64_t axis; // of x; default 0
} tn_take_attrs;

// Effects of an update on an element: the values of `mode` below.
enum { TN_SCATTER_SET = 0, TN_SCATTER_ADD = 1, TN_SCATTER_MAX = 2, TN_SCATTER_MIN = 3 };

// base.take_along_axis/1 (x, indices): element i of the result along `axis` is that of x at
// the index which `indices` has there, as numpy.take_along_axis; other axes broadcast.
//
// base.put_along_axis/1 (x, indices, values): x with the elements at these indices changed
// by `values`, which has x's dtype and broadcasts to the indices' extents, as
// numpy.put_along_axis leaves x. The other extents of `indices` are x's, or 1.
//
// Indices out of range: take_along_axis clamps them, as take; put_along_axis drops them.
typedef struct tn_along_axis_attrs {
    int64_t axis; // of x; default -1
    int64_t mode; // put_along_axis: TN_SCATTER_...; default TN_SCATTER_SET
} tn_along_axis_attrs;

// base.gather/1 (x, indices, ...): NumPy's x[i, j, ...]: the elements at the indices of
// several axes at once. The arrays of indices broadcast; the result has their axes in front
// and x's other axes behind. base.scatter/1 (x, updates, indices, ...): x with `updates`,
// which has x's dtype and broadcasts to what gather gives, put there: NumPy's
// x[i, j, ...] = updates, += updates, numpy.maximum.at and minimum.at.
//
// Indices out of range: gather clamps them, as take does; scatter drops an element where
// one of its indices is out of range, as scatter_add does.
typedef struct tn_gather_attrs {
    tn_ints axes; // of x, one for each array of indices; not given: the first ones
    int64_t mode; // scatter: TN_SCATTER_...; default TN_SCATTER_SET
} tn_gather_attrs;

// base.einsum/1 (x, ...: dtypes promote): sums of products by an equation, as numpy.einsum:
// "ij,jk->ik". Letters are axes; those that the result lacks are summed, and extents of 1
// broadcast. Without "->" the result has the letters that are there once, in the order of
// ASCII. "..." stands for any axes, which broadcast and come first in a result that is not
// written. A letter that an operand has twice takes its diagonal. Spaces do not count.
typedef struct tn_einsum_attrs {
    const char *equation; // required
} tn_einsum_attrs;

// base.matmul/1 (a, b: of one dtype): the matrix product of the last two axes, as
// numpy.matmul: leading axes broadcast; an operand of rank 1 is a row (a) or a column (b).
// A transposed operand is a view: kernels see its strides.
typedef struct tn_matmul_attrs {
    int64_t reserved; // 0
} tn_matmul_attrs;

// base.arange/1 (no input): start + i * step, up to but without `stop`, as numpy.arange:
// ceil((stop - start) / step) elements, at least 0. All three are finite, and step is not
// 0.
typedef struct tn_arange_attrs {
    double start;  // default 0
    double stop;   // required
    double step;   // default 1
    int64_t dtype; // TN_DTYPE_NONE: i64 when all three are whole numbers, else f64
} tn_arange_attrs;

// base.linspace/1 (no input): `num` numbers at equal distances from start to stop, as
// numpy.linspace. Of an integer dtype they are rounded down.
typedef struct tn_linspace_attrs {
    double start;     // required
    double stop;      // required
    int64_t num;      // at least 0; default 50
    int64_t endpoint; // 0: stop is left out, and the distance is (stop - start) / num
    int64_t dtype;    // TN_DTYPE_NONE: f64
} tn_linspace_attrs;

// Random arrays from a key (u32[2]) and no state: Threefry-2x32 of 20 rounds (Salmon,
// Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011) of the element's
// number, so the same key gives the same numbers on every device. base.random_bits/1 gives
// the words, base.random_uniform/1 numbers in [a, b), base.random_normal/1 the normal
// distribution by the method of Box and Muller (1958). Uniform numbers are never b, with
// both bounds rounded to the dtype; where a is not below b then, all are a. Pack "random"
// has these distributions and others, with parameters that are arrays: use that one.
typedef struct tn_random_attrs {
    tn_ints shape; // required
    int64_t dtype; // a float dtype; TN_DTYPE_NONE: f32. random_bits: not read, always u32
    double a;      // uniform: the least value, 0; normal: the mean, 0
    double b;      // uniform: the end, 1; normal: the standard deviation, 1
} tn_random_attrs;

// base.print/1: the identity, which writes a line to standard error when it is computed:
// the text, dtype and extents, and the first 32 elements. Lines of one runtime come in the
// order of TN_EFFECTS_OUTPUT. No derivative, no batching.
typedef struct tn_print_attrs {
    const char *text; // NULL or "": none
} tn_print_attrs;

// --- control flow ----------------------------------------------------------------------

// Primitives over graphs (<tenon/graph.h>); <tenon/control.h> applies them to bodies in C.
// A graph takes the first inputs of those that are named here, as many as it has, and a
// wrong type is an error that says which input, what was got and what was expected.

// base.cond/1 (pred: one bool; x: any number of arrays): what `then` gives for x where pred
// holds, else what `otherwise` gives. Both give the same types. Only the taken branch runs;
// mapped over a batch of conditions, both run, and each slice takes its own.
typedef struct tn_cond_attrs {
    const tn_graph *then;      // required
    const tn_graph *otherwise; // required
} tn_cond_attrs;

// base.while_loop/1 (x): the carried values, then constants. As long as `cond` gives true
// for x, `body` gives new carried values from x, of the same types; as many as it has
// outputs. Without `cond` it runs `times` times; with both until either says to stop. Given
// `times`, it has a reverse-mode derivative, for which it counts as a scan of that length.
typedef struct tn_while_loop_attrs {
    const tn_graph *cond; // NULL: always true
    const tn_graph *body; // required
    int64_t times;        // the most iterations; -1: any number
} tn_while_loop_attrs;

// base.scan/1 (x): `carries` carried values, `slices` arrays that are cut along their first
// axis, then constants. For each position in order `body` gives, from the carried values,
// the slices there and the constants, new carried values of the same types, and further
// outputs. Gives the last carried values; the further outputs of all positions, stacked
// along a new first axis; and for the derivative the carried values before each position,
// stacked too, which are computed only when something reads them.
typedef struct tn_scan_attrs {
    const tn_graph *body; // required
    int64_t carries;      // default 0
    int64_t slices;       // default 0
    int64_t length;       // the number of positions; -1: the first extent of the slices
    int64_t reverse;      // bool; from the last position to the first
} tn_scan_attrs;

// base.checkpoint/1 (x): what `body` gives for x. Its reverse-mode derivative computes the
// body again instead of keeping what lies between, so a training step needs less memory.
typedef struct tn_checkpoint_attrs {
    const tn_graph *body; // required
} tn_checkpoint_attrs;

#endif // TENON_OPS_BASE_ATTRS_H
