// SPDX-License-Identifier: MIT
// Primitives that copy arrays into a larger array: concatenate and pad.
#include "../pack.h"

#include <tenon/checked.h>
#include <tenon/ops/copies.h>

// Bytes that are written at a time. JOIN_BYTES: of rows that several inputs have parts of,
// which stay in the second-level cache; PAD's: of a range that is filled first, in the
// first-level one.
#define JOIN_BYTES 131072
#define PAD_BYTES 32768

// Elements [first, first + count) of `axis`, by base.slice.
static tn_array *base_move_part(const tn_build *build, const tn_array *x, int32_t axis,
                                int64_t first, int64_t count)
{
    tn_ints start = {.count = (uint32_t)axis + 1, .given = 1}, stop = start;
    for (int32_t i = 0; i < axis; i++)
        stop.value[i] = TN_SLICE_END;
    start.value[axis] = first;
    stop.value[axis] = first + count;
    return build->op(build, "base.slice/1", TN_IN(x),
                     tn_attrs("start", &start, "stop", &stop));
}

// x at [first, first + extent of x) of `axis`, and `other` elsewhere; the result has extent
// n along `axis`. Clamps indices and selects, for devices without a kernel.
static tn_array *base_move_overlay(const tn_build *build, const tn_array *x,
                                   const tn_array *other, int32_t axis, int64_t first,
                                   int64_t n)
{
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    if (type->extent[axis] == 0)
        return build->expr(build, "x -> x", TN_IN(other), TN_NO_ATTRS);
    int64_t last = type->extent[axis] - 1;
    tn_array *i = build->op(build, "base.arange/1", NULL, 0,
                            tn_attrs("stop", n, "dtype", (int64_t)TN_I64));
    tn_array *from = build->expr(build, "i -> min(max(i - i64(first), 0), i64(last))",
                                 TN_IN(i), tn_attrs("first", first, "last", last));
    tn_array *taken =
        build->op(build, "base.take/1", TN_IN(x, from), tn_attrs("axis", (int64_t)axis));
    tn_ints column = {.count = (uint32_t)(type->rank - axis), .given = 1, .value = {n}};
    for (int32_t k = 1; k < type->rank - axis; k++)
        column.value[k] = 1;
    i = build->op(build, "base.reshape/1", TN_IN(i), tn_attrs("shape", &column));
    return build->expr(
        build, "i, x, y -> d = i - i64(first); select(d >= 0 & d <= i64(last), x, y)",
        TN_IN(i, taken, other), tn_attrs("first", first, "last", last));
}

// --- concatenate ------------------------------------------------------------------------

static const tn_input_info concatenate_inputs[] = {
    {"arrays", "of one dtype, and of equal extents but along the axis", TN_INPUT_VARIADIC,
     TN_ALL_DTYPES},
};
static const tn_attr_field concatenate_fields[] = {
    TN_I64_FIELD(tn_concatenate_attrs, axis, 0, "axis along which they are joined"),
};

static tn_status concatenate_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_concatenate_attrs *attrs = infer->attrs;
    char got[SHAPE_TEXT], first[SHAPE_TEXT];
    int32_t axis;
    tn_type out = infer->types[0];
    tn_status status = check_axis(host, attrs->axis, out.rank, &axis);
    for (uint32_t i = 1; i < infer->num_inputs && status == TN_OK; i++) {
        const tn_type *x = &infer->types[i];
        int fits = x->rank == out.rank;
        for (int32_t k = 0; fits && k < x->rank; k++)
            fits = k == axis || x->extent[k] == out.extent[k];
        if (x->dtype != out.dtype)
            status = host->fail(host, TN_ERR_ARGUMENT,
                                "array %u is %s, expected %s as the first", i,
                                dtype_text(x->dtype), dtype_text(out.dtype));
        else if (!fits)
            status =
                host->fail(host, TN_ERR_ARGUMENT,
                           "array %u has shape %s, which does not join %s along axis %d", i,
                           shape_text(x->rank, x->extent, got),
                           shape_text(out.rank, infer->types[0].extent, first), axis);
        else if (!tn_checked_add_signed(out.extent[axis], x->extent[axis],
                                        &out.extent[axis]))
            status = host->fail(host, TN_ERR_ARGUMENT,
                                "the sum of extents of axis %d overflows", axis);
    }
    if (status == TN_OK)
        types[0] = out;
    return status;
}

struct join {
    const tn_cpu_call *call;
    int32_t axis;
    int64_t rows, row; // of the result: number of rows; elements of a row
};

// The region of input `i` in the result, behind *first elements along the axis; adds the
// input's extent to *first.
static tn_tensor base_move_position_of(const struct join *join, uint32_t i, int64_t *first)
{
    tn_tensor to = join->call->outputs[0];
    to.layout.offset += *first * to.layout.stride[join->axis];
    *first += join->call->inputs[i].layout.extent[join->axis];
    return to;
}

// Writes rows [begin, end) of the result, some at a time: each row has a part of every
// input, which may be a single element.
static void base_move_join_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct join *join = context;
    int64_t bytes = tn_dtype_bytes(join->call->outputs[0].layout.dtype);
    int64_t step = 1 + JOIN_BYTES / (join->row * bytes + 1);
    (void)worker;
    for (int64_t next; begin < end; begin = next) {
        int64_t first = 0;
        next = end - begin < step ? end : begin + step;
        for (uint32_t i = 0; i < join->call->num_inputs; i++) {
            const tn_tensor *from = &join->call->inputs[i];
            tn_tensor to = base_move_position_of(join, i, &first);
            int64_t row = tn_layout_count(&from->layout) / join->rows;
            tn_copy_range(&to, from, begin * row, next * row);
        }
    }
}

// Writes elements [begin, end) of all inputs, counted one input after the other.
static void join_elements(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct join *join = context;
    int64_t first = 0, done = 0;
    (void)worker;
    for (uint32_t i = 0; i < join->call->num_inputs && done < end; i++) {
        const tn_tensor *from = &join->call->inputs[i];
        tn_tensor to = base_move_position_of(join, i, &first);
        tn_copy_range(&to, from, begin - done, end - done);
        done += tn_layout_count(&from->layout);
    }
}

tn_status concatenate_reference(const tn_cpu_call *call)
{
    const tn_concatenate_attrs *attrs = call->attrs;
    const tn_layout *out = &call->outputs[0].layout;
    int64_t count = tn_layout_count(out), bytes = tn_dtype_bytes(out->dtype);
    struct join join = {.call = call, .axis = tn_axis(attrs->axis, out->rank), .rows = 1};
    if (count == 0)
        return TN_OK;
    for (int32_t i = 0; i < join.axis; i++)
        join.rows *= out->extent[i];
    join.row = count / join.rows;
    if (join.rows >= 4 * (int64_t)call->num_threads)
        call->parallel_for(call, join.rows, 1 + TN_COPY_BYTES / (join.row * bytes),
                           base_move_join_rows, &join);
    else
        call->parallel_for(call, count, tn_copy_grain(&call->outputs[0]), join_elements,
                           &join);
    return TN_OK;
}

static tn_status concatenate_decompose(const tn_build *build, const tn_rule *rule,
                                       tn_array **outputs)
{
    const tn_concatenate_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    if (!type)
        return TN_ERR_ARGUMENT;
    int32_t axis = tn_axis(attrs->axis, type->rank);
    int64_t n = 0, first = 0;
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        n += build->type(rule->inputs[i])->extent[axis];
    tn_ints shape = tn_extents(build, rule->inputs[0]);
    shape.value[axis] = n;
    tn_array *out = with_shape(build, "base.broadcast_to/1",
                               build->scalar(build, type->dtype, 0), shape);
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        out = base_move_overlay(build, rule->inputs[i], out, axis, first, n);
        first += build->type(rule->inputs[i])->extent[axis];
    }
    outputs[0] = out;
    return built(out);
}

static tn_status concatenate_vjp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *cotangents, const uint64_t *wanted,
                                 tn_array **gradients)
{
    const tn_concatenate_attrs *attrs = rule->attrs;
    int64_t first = 0;
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        const tn_type *type = build->type(rule->inputs[i]);
        int32_t axis = tn_axis(attrs->axis, type->rank);
        if (wants(wanted, i))
            gradients[i] =
                base_move_part(build, cotangents[0], axis, first, type->extent[axis]);
        first += type->extent[axis];
    }
    return built_wanted(wanted, gradients, rule->num_inputs);
}

// Joins the tangents, with zeros for absent ones. Joins one at a time, as the number of
// inputs has no bound for an array on the stack.
static tn_status concatenate_jvp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_concatenate_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    tn_array *out = NULL;
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        tn_array *t =
            tangents[i] ? tangents[i] : zeros_like(build, rule->inputs[i], type->dtype);
        out = i == 0 ? t
                     : build->op(build, "base.concatenate/1", TN_IN(out, t),
                                 tn_attrs("axis", attrs->axis));
    }
    out_tangents[0] = out;
    return built(out);
}

const tn_primitive base_concatenate = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.concatenate/1",
    .doc = "Arrays joined along an axis.",
    .role = "tn.concatenate/1",
    TN_INPUTS(concatenate_inputs),
    .attrs = TN_ATTR_TABLE(tn_concatenate_attrs, concatenate_fields),
    .infer = concatenate_infer,
    .reference = concatenate_reference,
    .decompose = concatenate_decompose,
    .vjp = concatenate_vjp,
    .jvp = concatenate_jvp,
    .vmap = concatenate_vmap,
};

// --- pad --------------------------------------------------------------------------------

static const tn_attr_field pad_constant_fields[] = {
    TN_REQUIRED_FIELD(tn_pad_attrs, before, TN_ATTR_INTS,
                      "elements put before, on each axis"),
    TN_REQUIRED_FIELD(tn_pad_attrs, after, TN_ATTR_INTS,
                      "elements put after, on each axis"),
    TN_F64_FIELD(tn_pad_attrs, value, 0, "what they are"),
};

static tn_status pad_constant_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_pad_attrs *attrs = infer->attrs;
    tn_type out = infer->types[0];
    const tn_ints *lists[] = {&attrs->before, &attrs->after};
    static const char *const names[] = {"before", "after"};
    for (int l = 0; l < 2; l++) {
        if ((int32_t)lists[l]->count != out.rank)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "%s has %u values, expected %d, x's rank", names[l],
                              lists[l]->count, out.rank);
        for (int32_t i = 0; i < out.rank; i++) {
            if (lists[l]->value[i] < 0)
                return host->fail(host, TN_ERR_ARGUMENT,
                                  "%s is %" PRId64 " for axis %d, expected at least 0",
                                  names[l], lists[l]->value[i], i);
            if (!tn_checked_add_signed(out.extent[i], lists[l]->value[i], &out.extent[i]))
                return host->fail(host, TN_ERR_ARGUMENT, "the extent of axis %d overflows",
                                  i);
        }
    }
    tn_status status = check_holds(host, "value", attrs->value, out.dtype);
    if (status == TN_OK)
        types[0] = out;
    return status;
}

struct padding {
    const tn_tensor *x, *out;
    tn_tensor value, inner; // `value` repeated over all of out; x's region in out
    const int64_t *before;
};

// The number of x's elements among the result's first `index` elements.
static int64_t count_inner(const struct padding *p, int64_t index)
{
    const tn_layout *x = &p->x->layout, *out = &p->out->layout;
    int64_t count = 0, behind = tn_layout_count(out), inner = tn_layout_count(x);
    if (index == behind)
        return inner;
    for (int32_t i = 0; i < x->rank && inner > 0; i++) {
        behind /= out->extent[i];
        int64_t at = index / behind - p->before[i];
        if (at < 0)
            return count;
        if (at >= x->extent[i])
            return count + inner;
        inner /= x->extent[i];
        count += at * inner;
        index %= behind;
    }
    return count;
}

// Writes elements [begin, end) of the result: fills a range that stays in the cache, then
// writes x's elements of it.
static void pad_elements(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct padding *p = context;
    int64_t step = PAD_BYTES / tn_dtype_bytes(p->out->layout.dtype);
    (void)worker;
    for (int64_t next; begin < end; begin = next) {
        next = end - begin < step ? end : begin + step;
        tn_copy_range(p->out, &p->value, begin, next);
        tn_copy_range(&p->inner, p->x, count_inner(p, begin), count_inner(p, next));
    }
}

tn_status pad_constant_reference(const tn_cpu_call *call)
{
    const tn_pad_attrs *attrs = call->attrs;
    const tn_tensor *out = &call->outputs[0];
    tn_complex128 value; // of any dtype
    struct padding p = {
        &call->inputs[0], out, {&value, out->layout}, *out, attrs->before.value};
    if (tn_layout_count(&out->layout) == 0)
        return TN_OK;
    p.value.layout.offset = 0;
    tn_set_f64(&p.value, 0, attrs->value);
    memset(p.value.layout.stride, 0, sizeof(p.value.layout.stride));
    p.inner.layout.offset = tn_offset_at(&out->layout, attrs->before.value);
    call->parallel_for(call, tn_layout_count(&out->layout), tn_copy_grain(out),
                       pad_elements, &p);
    return TN_OK;
}

static tn_status pad_constant_decompose(const tn_build *build, const tn_rule *rule,
                                        tn_array **outputs)
{
    const tn_pad_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    if (!type)
        return TN_ERR_ARGUMENT;
    tn_array *x = rule->inputs[0], *value = build->scalar(build, type->dtype, attrs->value);
    tn_ints shape = tn_extents(build, x);
    for (int32_t i = 0; i < (int32_t)shape.count; i++) {
        int64_t extent = shape.value[i];
        shape.value[i] += attrs->before.value[i] + attrs->after.value[i];
        if (shape.value[i] != extent)
            x = base_move_overlay(build, x,
                                  with_shape(build, "base.broadcast_to/1", value, shape), i,
                                  attrs->before.value[i], shape.value[i]);
    }
    outputs[0] =
        x == rule->inputs[0] ? build->expr(build, "x -> x", TN_IN(x), TN_NO_ATTRS) : x;
    return built(outputs[0]);
}

static tn_status pad_constant_vjp(const tn_build *build, const tn_rule *rule,
                                  tn_array *const *cotangents, const uint64_t *wanted,
                                  tn_array **gradients)
{
    const tn_pad_attrs *attrs = rule->attrs;
    tn_ints start = attrs->before, stop = tn_extents(build, rule->inputs[0]);
    (void)wanted;
    for (uint32_t i = 0; i < stop.count; i++)
        stop.value[i] += start.value[i];
    gradients[0] = build->op(build, "base.slice/1", TN_IN(cotangents[0]),
                             tn_attrs("start", &start, "stop", &stop));
    return built(gradients[0]);
}

static tn_status pad_constant_jvp(const tn_build *build, const tn_rule *rule,
                                  tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_pad_attrs *attrs = rule->attrs;
    out_tangents[0] = build->op(build, "base.pad_constant/1", TN_IN(tangents[0]),
                                tn_attrs("before", &attrs->before, "after", &attrs->after));
    return built(out_tangents[0]);
}

const tn_primitive base_pad_constant = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.pad_constant/1",
    .doc = "x with a border of one value.",
    TN_INPUTS(base_any_x),
    .attrs = TN_ATTR_TABLE(tn_pad_attrs, pad_constant_fields),
    .infer = pad_constant_infer,
    .reference = pad_constant_reference,
    .decompose = pad_constant_decompose,
    .vjp = pad_constant_vjp,
    .jvp = pad_constant_jvp,
    .vmap = pad_constant_vmap,
};
