// SPDX-License-Identifier: MIT
// Decompositions of the groupwise operators, for devices without kernels: codes by shifts,
// values by exact arithmetic, and products of floats.
#include "groupwise_product.h"

static tn_array *groupwise_decompose_shaped(const tn_build *build, tn_array *x,
                                            const tn_ints *shape)
{
    return build->op(build, "base.reshape/1", TN_IN(x), tn_attrs("shape", shape));
}

static tn_array *numbers_up_to(const tn_build *build, int64_t stop, int64_t step,
                               tn_dtype dtype)
{
    return build->op(build, "base.arange/1", NULL, 0,
                     tn_attrs("stop", stop, "step", step, "dtype", (int64_t)dtype));
}

static tn_array *with_last_axis(const tn_build *build, tn_array *x)
{
    return build->op(build, "base.expand_dims/1", TN_IN(x), tn_attrs("axis", TN_INTS(-1)));
}

// Codes that may lie in two words: reads the word in which a code begins, and the next.
static tn_array *codes_across(const tn_build *build, tn_array *w, int64_t bits,
                              int64_t words)
{
    tn_array *i = numbers_up_to(build, words * 32 / bits, 1, TN_I64);
    tn_array *first =
        build->expr(build, "i -> i * bits // 32", TN_IN(i), tn_attrs("bits", bits));
    tn_array *next = build->expr(build, "i -> min(i * bits // 32 + 1, last)", TN_IN(i),
                                 tn_attrs("bits", bits, "last", words - 1));
    const tn_attr_list last = tn_attrs("axis", (int64_t)-1);
    return build->expr(build,
                       "a, b, i -> s = u32(i * bits % 32); "
                       "(a >> s | b << (u32(32) - s)) & u32(mask)",
                       TN_IN(build->op(build, "base.take/1", TN_IN(w, first), last),
                             build->op(build, "base.take/1", TN_IN(w, next), last), i),
                       tn_attrs("bits", bits, "mask", (INT64_C(1) << bits) - 1));
}

// The codes of w, whose last axis becomes an axis of groups and one of their elements.
static tn_array *groupwise_decompose_codes(const tn_build *build, tn_array *w,
                                           const struct groupwise *format, int64_t groups)
{
    tn_ints shape = tn_extents(build, w);
    if (shape.count < 1 || shape.count >= TN_MAX_RANK)
        return NULL;
    const int64_t words = shape.value[shape.count - 1];
    shape.value[shape.count - 1] = groups;
    shape.value[shape.count++] = format->group;
    if (words == 0 || 32 % format->bits)
        w = words ? codes_across(build, w, format->bits, words) : w;
    else
        w = build->expr(
            build, "w, s -> (w >> s) & u32(mask)",
            TN_IN(with_last_axis(build, w), numbers_up_to(build, 32, format->bits, TN_U32)),
            tn_attrs("mask", (INT64_C(1) << format->bits) - 1));
    return groupwise_decompose_shaped(build, w, &shape);
}

// The float of a 4-bit and of an 8-bit code: a fraction shifted by its exponent.
#define E2M1                                                                               \
    "c -> m = f32(c & u32(7)); "                                                           \
    "v = select(m < 4, m * 0.5, select(m < 6, m - 2, (m - 4) * 2)); "                      \
    "select(c > 7, -v, v)"
#define E4M3                                                                               \
    "c -> e = (c >> u32(3)) & u32(15); f = c & u32(7); "                                   \
    "v = f32(select(e == 0, f * u32(2), (f + u32(8)) << e)) * 0.0009765625; "              \
    "select(c > 127, -v, v)"

// 2^(c - 127), by bits of the exponent's magnitude: a driver may fold two constants of a
// product, and 2^-127 as one constant is flushed to 0.
static const char e8m0[] =
    "c -> d = select(c > 127, c - u32(127), u32(127) - c); "
    "s = select(d > 127, 1.8446744073709552e19, 1.0); f32(s * s"
    " * select((d & u32(1)) > 0, select(c > 127, 2.0, 0.5), 1.0)"
    " * select((d & u32(2)) > 0, select(c > 127, 4.0, 0.25), 1.0)"
    " * select((d & u32(4)) > 0, select(c > 127, 16.0, 0.0625), 1.0)"
    " * select((d & u32(8)) > 0, select(c > 127, 256.0, 0.00390625), 1.0)"
    " * select((d & u32(16)) > 0, select(c > 127, 65536.0, 1.52587890625e-05), 1.0)"
    " * select((d & u32(32)) > 0, select(c > 127, 4294967296.0, 2.3283064365386963e-10), "
    "1.0)"
    " * select((d & u32(64)) > 0, select(c > 127, 1.8446744073709552e19, "
    "5.421010862427522e-20), 1.0)"
    ")";

static tn_array *of_codes(const tn_build *build, const char *text, tn_array *c)
{
    return build->expr(build, text, TN_IN(c), TN_NO_ATTRS);
}

// Scales of u8 as f32, times the factor of the matrix or of its parts.
static tn_array *scales_of(const tn_build *build, const tn_rule *rule,
                           const struct groupwise *format, tn_array *scales,
                           uint32_t global)
{
    scales = of_codes(build, format->mode == TN_GROUPWISE_nvfp4 ? E4M3 : e8m0,
                      cast(build, scales, TN_U32));
    tn_array *factor = global < rule->num_inputs ? rule->inputs[global] : NULL;
    const tn_type *type = build->type(scales);
    if (!factor || !type)
        return scales;
    tn_ints shape = tn_extents(build, factor);
    while (shape.count < (uint32_t)type->rank)
        shape.value[shape.count++] = 1;
    return build->expr(build, "s, g -> s * (g / 2688)",
                       TN_IN(scales, groupwise_decompose_shaped(build, factor, &shape)),
                       TN_NO_ATTRS);
}

tn_status groupwise_dequantize_decompose(const tn_build *build, const tn_rule *rule,
                                         tn_array **outputs)
{
    const tn_groupwise_dequantize_attrs *attrs = rule->attrs;
    const tn_type *w = build->type(rule->inputs[0]), *of = build->type(rule->inputs[1]);
    struct groupwise format;
    tn_status status = GROUPWISE_FORMAT(build->host, attrs, &format);
    if (status || !w || !of)
        return status ? status : TN_ERR_ARGUMENT;
    const int64_t groups = of->extent[of->rank - 1];
    tn_dtype dtype = (tn_dtype)attrs->dtype;
    tn_array *values = groupwise_decompose_codes(build, rule->inputs[0], &format, groups);
    if (format.mode == TN_GROUPWISE_affine) {
        const tn_type *biases = build->type(rule->inputs[2]);
        values = build->expr(build, "c, s, b -> f32(c) * f32(s) + f32(b)",
                             TN_IN(values, with_last_axis(build, rule->inputs[1]),
                                   with_last_axis(build, rule->inputs[2])),
                             TN_NO_ATTRS);
        if (dtype == TN_DTYPE_NONE && biases)
            dtype = groupwise_dtype(of->dtype, of->dtype, biases->dtype);
    } else {
        values = of_codes(build, format.bits == 8 ? E4M3 : E2M1, values);
        values =
            build->expr(build, "v, s -> v * s",
                        TN_IN(values, with_last_axis(build, scales_of(build, rule, &format,
                                                                      rule->inputs[1], 3))),
                        TN_NO_ATTRS);
        dtype = dtype == TN_DTYPE_NONE ? TN_BF16 : dtype;
    }
    tn_ints shape = tn_extents(build, rule->inputs[0]);
    shape.value[shape.count - 1] = groups * format.group;
    outputs[0] = cast(build, groupwise_decompose_shaped(build, values, &shape), dtype);
    return built(outputs[0]);
}

// --- products ---------------------------------------------------------------------------

// x times the elements of w, in `dtype`. The attributes begin as those of
// quant.groupwise_matmul.
static tn_array *groupwise_decompose_product(const tn_build *build, const tn_rule *rule,
                                             tn_array *x, tn_array *const w[3],
                                             int64_t transpose)
{
    const tn_groupwise_matmul_attrs *attrs = rule->attrs;
    const tn_type *given = build->type(x), *scales = build->type(w[1]);
    const tn_type *biases = build->type(w[2] ? w[2] : w[1]);
    if (!given || !scales || !biases)
        return NULL;
    const tn_dtype dtype = groupwise_dtype(given->dtype, scales->dtype, biases->dtype);
    tn_array *values =
        build->op(build, "quant.groupwise_dequantize/1", TN_IN(w[0], w[1], w[2]),
                  tn_attrs("mode", attrs->mode, "bits", attrs->bits, "group", attrs->group,
                           "dtype", (int64_t)dtype));
    if (transpose)
        values = groupwise_swapped(build, values);
    return build->op(build, "base.matmul/1", TN_IN(cast(build, x, dtype), values),
                     TN_NO_ATTRS);
}

tn_status groupwise_matmul_decompose(const tn_build *build, const tn_rule *rule,
                                     tn_array **outputs)
{
    const tn_groupwise_matmul_attrs *attrs = rule->attrs;
    tn_array *const w[3] = {rule->inputs[1], rule->inputs[2],
                            rule->num_inputs > 3 ? rule->inputs[3] : NULL};
    outputs[0] =
        groupwise_decompose_product(build, rule, rule->inputs[0], w, attrs->transpose);
    return built(outputs[0]);
}

tn_status groupwise_gather_decompose(const tn_build *build, const tn_rule *rule,
                                     tn_array **outputs)
{
    const tn_groupwise_gather_attrs *attrs = rule->attrs;
    tn_array *in[4] = {NULL};
    for (uint32_t i = 0; i < 4 && i < rule->num_inputs; i++) {
        const uint32_t ids = i == 0 ? 4 : 5;
        in[i] = rule->inputs[i];
        if (in[i] && ids < rule->num_inputs && rule->inputs[ids])
            in[i] = build->op(build, "base.take/1",
                              TN_IN(groupwise_flat(build, in[i]), rule->inputs[ids]),
                              TN_NO_ATTRS);
    }
    outputs[0] = groupwise_decompose_product(build, rule, in[0], in + 1, attrs->transpose);
    return built(outputs[0]);
}
