// SPDX-License-Identifier: MIT
// Elements chosen by data: nonzero, argwhere, boolean_mask, and unique and its forms. Their
// number depends on data, so the attribute `size` bounds it and gives the extents: the
// first `size` elements are kept, positions behind the last one are filled, and `count` is
// the number of elements, which may exceed the bound.
#include "../pack.h"

static tn_status unique_check_size(const tn_host *host, int64_t size)
{
    if (size >= 0)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "size is %" PRId64 ", expected at least 0",
                      size);
}

static tn_status unique_check(const tn_host *host, const tn_bounded_attrs *attrs,
                              tn_dtype dtype)
{
    tn_status status = unique_check_size(host, attrs->size);
    return status ? status : check_holds(host, "fill_value", attrs->fill_value, dtype);
}

// Extents [size, ...]: followed by the extents of `x` from axis `from` on.
static tn_ints bounded_shape(const tn_build *build, const tn_array *x, int64_t size,
                             uint32_t from)
{
    tn_ints of_x = tn_extents(build, x), shape = {1, 1, {size}};
    for (uint32_t i = from; i < of_x.count; i++)
        shape.value[shape.count++] = of_x.value[i];
    return shape;
}

// The elements of `values` whose `at` is below `size`, each at position `at`; else `fill`.
static tn_array *unique_position(const tn_build *build, tn_array *values, tn_array *at,
                                 int64_t size, double fill)
{
    const tn_type *type = build->type(values);
    if (!type)
        return NULL;
    const tn_ints shape = bounded_shape(build, values, size, 1);
    tn_array *filled =
        build->op(build, "base.full/1", NULL, 0,
                  tn_attrs("shape", &shape, "value", fill, "dtype", (int64_t)type->dtype));
    return build->op(build, "base.scatter_set/1", TN_IN(filled, at, values), TN_NO_ATTRS);
}

// Elements chosen by a mask of one axis: the position of each (`size` where it is not
// chosen), and the number of chosen elements.
struct chosen {
    tn_array *at, *count;
    int64_t n;
};

static struct chosen unique_choose(const tn_build *build, tn_array *mask, int64_t size)
{
    struct chosen c = {.n = build->type(mask) ? build->type(mask)->extent[0] : 0};
    // 32-bit positions, where they suffice, halve the memory.
    int is_short = c.n < INT32_MAX && size < INT32_MAX;
    tn_array *is = build->expr(build, is_short ? "m -> i32(bool(m))" : "m -> i64(bool(m))",
                               TN_IN(mask), TN_NO_ATTRS);
    tn_array *running =
        build->op(build, "base.cumsum/1", TN_IN(is),
                  tn_attrs("axis", 0, "dtype", (int64_t)(is_short ? TN_I32 : TN_I64)));
    c.at = build->expr(build,
                       is_short ? "m, r -> m != 0 ? r - 1 : i32(size)"
                                : "m, r -> m != 0 ? r - 1 : size",
                       TN_IN(is, running), tn_attrs("size", size));
    c.count = build->op(build, "base.sum/1", TN_IN(is), TN_NO_ATTRS);
    return c;
}

// --- nonzero ----------------------------------------------------------------------------

static const tn_input_info nonzero_inputs[] = {
    {"x", "the array", TN_INPUT_CONSTANT, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};
static const tn_output_info nonzero_outputs[] = {
    {"indices", "of each axis in turn, i64, in row-major order; last how many there are", 0,
     0}};
static const tn_output_info argwhere_outputs[] = {
    {"indices", "a row an element, i64, in row-major order", 0, 0},
    {"count", "how many there are, i64", 0, 0},
};
static const tn_attr_field nonzero_fields[] = {
    TN_REQUIRED_FIELD(tn_bounded_attrs, size, TN_ATTR_I64, "the most elements"),
    TN_F64_FIELD(tn_bounded_attrs, fill_value, 0, "the indices behind the last element"),
};

static tn_status nonzero_count(const tn_infer *infer, uint64_t *out_count)
{
    if (infer->types[0].rank == 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "x has rank 0, expected at least 1");
    *out_count = (uint64_t)infer->types[0].rank + 1;
    return TN_OK;
}

static tn_status nonzero_infer(const tn_infer *infer, tn_type *types)
{
    const tn_bounded_attrs *attrs = infer->attrs;
    tn_status status = unique_check(infer->host, attrs, TN_I64);
    if (status)
        return status;
    for (uint32_t i = 0; i + 1 < infer->num_outputs; i++)
        types[i] = (tn_type){TN_I64, 1, {attrs->size}};
    types[infer->num_outputs - 1] = (tn_type){TN_I64, 0, {0}};
    return TN_OK;
}

// The indices of a mask's elements along each axis, and their number: some devices have a
// kernel for it.
static tn_status nonzero_indices(const tn_build *build, const tn_rule *rule,
                                 tn_array **indices)
{
    const tn_bounded_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_ints shape = tn_extents(build, x);
    tn_array *mask = cast(build, x, TN_BOOL);
    return build->op_n(build, "base.nonzero/1", TN_IN(mask),
                       tn_attrs("size", attrs->size, "fill_value", attrs->fill_value),
                       indices, shape.count + 1);
}

// nonzero_indices() from running counts.
static tn_status nonzero_by_counts(const tn_build *build, const tn_rule *rule,
                                   tn_array **indices)
{
    const tn_bounded_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_ints shape = tn_extents(build, x);
    struct chosen c = unique_choose(build, flattened(build, x), attrs->size);
    tn_array *positions = counted(build, c.n, 0);
    int is_short = c.n < INT32_MAX;
    if (is_short)
        positions = cast(build, positions, TN_I32);
    tn_array *flat = unique_position(build, positions, c.at, attrs->size, -1);
    int64_t inner = 1;
    for (int32_t axis = (int32_t)shape.count - 1; axis >= 0; axis--) {
        int64_t n = shape.value[axis];
        indices[axis] = build->expr(
            build,
            is_short ? "f -> f < 0 ? i64(fill) : i64(f // i32(inner) % i32(n))"
                     : "f -> f < 0 ? i64(fill) : f // inner % n",
            TN_IN(flat),
            tn_attrs("inner", inner, "n", n ? n : 1, "fill", (int64_t)attrs->fill_value));
        inner *= n ? n : 1; // at most the number of elements
    }
    indices[shape.count] = c.count;
    return built(c.count);
}

DECOMPOSE(nonzero)
{
    return build->type(rule->inputs[0])->dtype == TN_BOOL
               ? nonzero_by_counts(build, rule, outputs)
               : nonzero_indices(build, rule, outputs);
}

DECOMPOSE(argwhere)
{
    const tn_bounded_attrs *attrs = rule->attrs;
    tn_array *indices[TN_MAX_RANK + 1];
    uint32_t rank = (uint32_t)build->type(rule->inputs[0])->rank;
    tn_status status = nonzero_indices(build, rule, indices);
    if (status)
        return status;
    const tn_ints none = {2, 1, {attrs->size, 0}};
    outputs[0] = rank ? build->op(build, "base.stack/1", (const tn_array *const *)indices,
                                  rank, tn_attrs("axis", 1))
                      : build->op(build, "base.full/1", NULL, 0,
                                  tn_attrs("shape", &none, "dtype", (int64_t)TN_I64));
    outputs[1] = indices[rank];
    return built(outputs[0]);
}

DECOMPOSED(nonzero, tn_bounded_attrs, nonzero_fields,
           "The indices of the elements that are nonzero or true.",
           TN_INPUTS(nonzero_inputs), TN_OUTPUTS(nonzero_outputs),
           .count_outputs = nonzero_count);
COMPOSITE(argwhere, "The indices of the elements that are nonzero or true, as rows.",
          TN_INPUTS(nonzero_inputs), TN_OUTPUTS(argwhere_outputs),
          .attrs = TN_ATTR_TABLE(tn_bounded_attrs, nonzero_fields));

// --- boolean_mask -----------------------------------------------------------------------

static const tn_input_info mask_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"mask", "which: of the extents of x's first axes", TN_INPUT_CONSTANT,
     TN_DTYPE_BIT(TN_BOOL)},
};
static const tn_output_info mask_outputs[] = {
    {"values", "x where the mask is true, along one axis in front", 0, 0},
    {"count", "how many there are, i64", 0, 0},
};
static const tn_attr_field bounded_fields[] = {
    TN_REQUIRED_FIELD(tn_bounded_attrs, size, TN_ATTR_I64, "the most elements"),
    TN_F64_FIELD(tn_bounded_attrs, fill_value, 0, "what elements behind the last are"),
};

static tn_status boolean_mask_infer(const tn_infer *infer, tn_type *types)
{
    const tn_bounded_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0], *mask = &infer->types[1];
    char got[SHAPE_TEXT], of_x[SHAPE_TEXT];
    tn_status status = unique_check(infer->host, attrs, x->dtype);
    if (status)
        return status;
    if (mask->rank < 1 || mask->rank > x->rank ||
        memcmp(mask->extent, x->extent, sizeof(int64_t) * (size_t)mask->rank) != 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "mask has shape %s, expected the first extents of x, %s",
                                 shape_text(mask->rank, mask->extent, got),
                                 shape_text(x->rank, x->extent, of_x));
    types[0] = (tn_type){x->dtype, 1 + x->rank - mask->rank, {attrs->size}};
    for (int32_t i = mask->rank; i < x->rank; i++)
        types[0].extent[1 + i - mask->rank] = x->extent[i];
    types[1] = (tn_type){TN_I64, 0, {0}};
    return TN_OK;
}

DECOMPOSE(boolean_mask)
{
    const tn_bounded_attrs *attrs = rule->attrs;
    const tn_type *mask = build->type(rule->inputs[1]);
    struct chosen c = unique_choose(build, flattened(build, rule->inputs[1]), attrs->size);
    const tn_ints rows = bounded_shape(build, rule->inputs[0], c.n, (uint32_t)mask->rank);
    outputs[0] =
        unique_position(build, with_shape(build, "base.reshape/1", rule->inputs[0], rows),
                        c.at, attrs->size, attrs->fill_value);
    outputs[1] = c.count;
    return built(outputs[0]);
}

DECOMPOSED(boolean_mask, tn_bounded_attrs, bounded_fields,
           "The elements of x where a mask is true: NumPy's x[mask].",
           TN_INPUTS(mask_inputs), TN_OUTPUTS(mask_outputs));

// --- unique -----------------------------------------------------------------------------

typedef struct {
    int64_t size;
    double fill_value;
    int64_t equal_nan;
} unique_attrs;

static const tn_input_info unique_inputs[] = {
    {"x", "the array", TN_INPUT_CONSTANT, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};
static const tn_attr_field unique_fields[] = {
    TN_REQUIRED_FIELD(unique_attrs, size, TN_ATTR_I64, "the most values"),
    TN_F64_FIELD(unique_attrs, fill_value, 0, "what values behind the last are"),
    TN_BOOL_FIELD(unique_attrs, equal_nan, 0, "all NaN are one value"),
};

enum {
    UNIQUE_VALUES,
    UNIQUE_INDICES,
    UNIQUE_INVERSE,
    UNIQUE_COUNTS,
    UNIQUE_COUNT,
    UNIQUE_RESULTS
};

// The order that sorts a vector. Complex numbers as in NumPy: by real, then imaginary part;
// behind all others come numbers with NaN in the imaginary part, in the real part, in both.
static tn_array *unique_order(const tn_build *build, tn_array *x, tn_dtype dtype)
{
    static const char *const texts[] = {
        "x -> imag(x)", "x -> real(x)",
        "x -> (isnan(imag(x)) ? 1 : 0) + (isnan(real(x)) ? 2 : 0)"};
    tn_array *keys[3];
    if (!tn_is_complex(dtype))
        return build->op(build, "base.argsort/1", TN_IN(x), TN_NO_ATTRS);
    for (int32_t i = 0; i < 3; i++)
        keys[i] = as_dtype(build, build->expr(build, texts[i], TN_IN(x), TN_NO_ATTRS),
                           tn_dtype_real(dtype));
    return build->op(build, "base.lexsort/1", TN_IN(keys[0], keys[1], keys[2]),
                     TN_NO_ATTRS);
}

// The first of equal elements of a sorted vector.
static tn_array *unique_first(const tn_build *build, tn_array *sorted, int equal_nan)
{
    const tn_type *type = build->type(sorted);
    if (!type)
        return NULL;
    int64_t n = type->extent[0];
    tn_array *before =
        n ? build->op(build, "base.roll/1", TN_IN(sorted), tn_attrs("shift", TN_INTS(1)))
          : sorted;
    int both = equal_nan && (tn_is_float(type->dtype) || tn_is_complex(type->dtype));
    return build->expr(build,
                       both ? "a, b, i -> i == 0 | (a != b & !(isnan(a) & isnan(b)))"
                            : "a, b, i -> i == 0 | a != b",
                       TN_IN(sorted, before, counted(build, n, 0)), TN_NO_ATTRS);
}

// The number of times that each value occurs: from its first element to the next value's,
// or the end.
static tn_array *unique_counts_of(const tn_build *build, tn_array *first, int64_t n,
                                  int64_t size)
{
    tn_array *positions[2];
    if (build->op_n(build, "base.nonzero/1", TN_IN(first),
                    tn_attrs("size", size + 1, "fill_value", (double)n), positions, 2))
        return NULL;
    return build->expr(build, "a, b -> b - a",
                       TN_IN(part_of_axis(build, positions[0], 0, 0, 1, size),
                             part_of_axis(build, positions[0], 0, 1, 1, size)),
                       TN_NO_ATTRS);
}

// Sorts x and marks the first of equal elements; the number of a value counts the marks
// before it. Values and counts alone need no order of x's elements.
static tn_status unique_results(const tn_build *build, const tn_rule *rule, int has_order,
                                tn_array **results)
{
    const unique_attrs *attrs = rule->attrs;
    tn_array *x = flattened(build, rule->inputs[0]), *order = NULL, *sorted = x;
    const tn_type *type = build->type(x);
    tn_status status = unique_check_size(build->host, attrs->size);
    if (status || !type)
        return status ? status : TN_ERR_ARGUMENT;
    const int64_t n = type->extent[0];
    tn_array *values[2], *indices[2];
    if (has_order || tn_is_complex(type->dtype)) {
        order = unique_order(build, x, type->dtype);
        if (n)
            sorted = build->op(build, "base.take/1", TN_IN(x, order), TN_NO_ATTRS);
    } else {
        sorted = build->op(build, "base.sort/1", TN_IN(x), TN_NO_ATTRS);
    }
    tn_array *first = unique_first(build, sorted, attrs->equal_nan != 0);
    status = build->op_n(build, "base.boolean_mask/1", TN_IN(sorted, first),
                         tn_attrs("size", attrs->size, "fill_value", attrs->fill_value),
                         values, 2);
    results[UNIQUE_VALUES] = status ? NULL : values[0];
    results[UNIQUE_COUNT] = status ? NULL : values[1];
    results[UNIQUE_COUNTS] = unique_counts_of(build, first, n, attrs->size);
    if (status == TN_OK && has_order) {
        tn_array *number = build->expr(
            build, "r -> r - 1",
            TN_IN(build->op(build, "base.cumsum/1", TN_IN(cast(build, first, TN_I64)),
                            tn_attrs("axis", 0))),
            TN_NO_ATTRS);
        status = build->op_n(build, "base.boolean_mask/1", TN_IN(order, first),
                             tn_attrs("size", attrs->size), indices, 2);
        results[UNIQUE_INDICES] = status ? NULL : indices[0];
        results[UNIQUE_INVERSE] =
            with_shape(build, "base.reshape/1", unique_position(build, number, order, n, 0),
                       tn_extents(build, rule->inputs[0]));
    }
    for (int32_t i = 0; i < UNIQUE_RESULTS; i++)
        if (!results[i] && (has_order || (i != UNIQUE_INDICES && i != UNIQUE_INVERSE)))
            return TN_ERR_ARGUMENT;
    return status;
}

#define VALUES                                                                             \
    {                                                                                      \
        "values", "in ascending order", 0, 0                                               \
    }
#define INDICES                                                                            \
    {                                                                                      \
        "indices", "of the first of each in x flattened, i64", 0, 0                        \
    }
#define INVERSE                                                                            \
    {                                                                                      \
        "inverse", "of x's extents: the number of each element's value, i64", 0, 0         \
    }
#define COUNTS                                                                             \
    {                                                                                      \
        "counts", "how often each occurs, i64", 0, 0                                       \
    }
#define COUNT                                                                              \
    {                                                                                      \
        "count", "how many values there are, i64", 0, 0                                    \
    }
static const tn_output_info all_outputs[] = {VALUES, INDICES, INVERSE, COUNTS, COUNT};
static const tn_output_info counts_outputs[] = {VALUES, COUNTS, COUNT};
static const tn_output_info inverse_outputs[] = {VALUES, INVERSE, COUNT};
static const tn_output_info values_outputs[] = {VALUES, COUNT};

static tn_status unique_some(const tn_build *build, const tn_rule *rule, int32_t which,
                             tn_array **outputs)
{
    tn_array *results[UNIQUE_RESULTS];
    tn_status status = unique_results(build, rule, which == UNIQUE_INVERSE, results);
    if (status)
        return status;
    outputs[0] = results[UNIQUE_VALUES];
    outputs[1] = results[which];
    if (which != UNIQUE_COUNT)
        outputs[2] = results[UNIQUE_COUNT];
    return TN_OK;
}

DECOMPOSE(unique_all)
{
    return unique_results(build, rule, 1, outputs);
}

DECOMPOSE(unique_counts)
{
    return unique_some(build, rule, UNIQUE_COUNTS, outputs);
}

DECOMPOSE(unique_inverse)
{
    return unique_some(build, rule, UNIQUE_INVERSE, outputs);
}

DECOMPOSE(unique_values)
{
    return unique_some(build, rule, UNIQUE_COUNT, outputs);
}

#define UNIQUE(name, results, sentence)                                                    \
    COMPOSITE(name, sentence, TN_INPUTS(unique_inputs), TN_OUTPUTS(results),               \
              .attrs = TN_ATTR_TABLE(unique_attrs, unique_fields))
UNIQUE(unique_all, all_outputs,
       "The different values of x, where they are, and how often each occurs.");
UNIQUE(unique_counts, counts_outputs,
       "The different values of x, and how often each occurs.");
UNIQUE(unique_inverse, inverse_outputs,
       "The different values of x, and the number of each element's value.");
UNIQUE(unique_values, values_outputs, "The different values of x.");
