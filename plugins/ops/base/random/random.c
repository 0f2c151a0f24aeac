// SPDX-License-Identifier: MIT
// Random numbers from a key and a counter, with no state: Threefry-2x32 of 20 rounds
// (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3").
//
// Element i encrypts the 64-bit counter i under the key: the same key gives the same
// numbers on every device, in any order. Each primitive is one expression, so it fuses with
// its consumers where a device has no kernel for it. Kernels serve u32, and f32 between the
// usual bounds; other bounds and half floats are made of these.
#include <tenon/ops/threefry.h>
#include "../pack.h"

// The two random words of an element, from its index: a60 and b60.
#define THREEFRY TN_THREEFRY_TEXT("u32(index)", "u32(index >> 32)")

#define BITS "k0, k1 -> " THREEFRY "a60"

// Uniform in [0, 1): 24 bits for f32, 53 for f64. The factors 2^-24, 2^26 and 2^-53 are
// exact. The sum may round up to `high`, as may the conversion to a half float: `last`, the
// greatest number below `high` in the result's dtype, bounds it.
#define UNIFORM_F32                                                                        \
    "k0, k1 -> " THREEFRY                                                                  \
    "min(low + (high - low) * (f32(a60 >> 8) * 5.9604644775390625e-8), last)"
#define UNIFORM_F64                                                                        \
    "k0, k1 -> " THREEFRY                                                                  \
    "min(low + (high - low) * ((f64(a60 >> 5) * 67108864.0 + f64(b60 >> 6)) * "            \
    "1.1102230246251565e-16), last)"

// Box and Muller 1958: one word gives the radius, scaled to (0, 1] so that its logarithm is
// finite; the other gives the angle. 24 bits (f32) reach 5.7 standard deviations, 32 bits
// (f64) 6.6.
#define NORMAL_F32                                                                         \
    "k0, k1 -> " THREEFRY                                                                  \
    "mean + deviation * (sqrt(-2.0 * log(f32((a60 >> 8) + 1) * 5.9604644775390625e-8)) * " \
    "cos(f32(b60 >> 8) * 3.7450702e-7))"
#define NORMAL_F64                                                                         \
    "k0, k1 -> " THREEFRY                                                                  \
    "mean + deviation * (sqrt(-2.0 * log((f64(a60) + 1.0) * 2.3283064365386963e-10)) * "   \
    "cos(f64(b60) * 1.4629180792671596e-9))"

static const tn_input_info key_input[] = {
    {"key", "u32[2]: any two numbers", TN_INPUT_CONSTANT, 0},
};
static const tn_attr_field bits_fields[] = {
    TN_REQUIRED_FIELD(tn_random_attrs, shape, TN_ATTR_INTS, "extents of the result"),
};
static const tn_attr_field uniform_fields[] = {
    TN_REQUIRED_FIELD(tn_random_attrs, shape, TN_ATTR_INTS, "extents of the result"),
    TN_DTYPE_FIELD(tn_random_attrs, dtype, 0, "a float dtype; not given: f32"),
    TN_F64_FIELD(tn_random_attrs, a, 0, "the least value"),
    TN_F64_FIELD(tn_random_attrs, b, 1, "where the values stop before; up to a: all are a"),
};
static const tn_attr_field normal_fields[] = {
    TN_REQUIRED_FIELD(tn_random_attrs, shape, TN_ATTR_INTS, "extents of the result"),
    TN_DTYPE_FIELD(tn_random_attrs, dtype, 0, "a float dtype; not given: f32"),
    TN_F64_FIELD(tn_random_attrs, a, 0, "the mean"),
    TN_F64_FIELD(tn_random_attrs, b, 1, "the standard deviation"),
};

static tn_status random_infer(const tn_infer *infer, tn_dtype dtype, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_random_attrs *attrs = infer->attrs;
    const tn_type *key = &infer->types[0];
    char text[SHAPE_TEXT];
    if (key->dtype != TN_U32 || key->rank != 1 || key->extent[0] != 2)
        return host->fail(host, TN_ERR_ARGUMENT, "key is %s%s, expected u32[2]",
                          dtype_text(key->dtype), shape_text(key->rank, key->extent, text));
    tn_status status = check_shape(host, &attrs->shape);
    if (status)
        return status;
    types[0] = (tn_type){.dtype = dtype, .rank = (int32_t)attrs->shape.count};
    memcpy(types[0].extent, attrs->shape.value, sizeof(types[0].extent));
    return TN_OK;
}

static tn_status random_bits_infer(const tn_infer *infer, tn_type *types)
{
    return random_infer(infer, TN_U32, types);
}

static tn_status random_float_infer(const tn_infer *infer, tn_type *types)
{
    const tn_random_attrs *attrs = infer->attrs;
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_F32;
    if (!tn_dtype_in(dtype, TN_FLOAT_DTYPES))
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "dtype is %s, expected a float dtype", dtype_text(dtype));
    return random_infer(infer, dtype, types);
}

// Word `word` of the key, broadcast to `shape`: a view.
static tn_array *key_word(const tn_build *build, const tn_array *key, int64_t word,
                          tn_ints shape)
{
    tn_ints scalar = {.given = 1};
    tn_array *one = build->op(build, "base.slice/1", TN_IN(key),
                              tn_attrs("start", TN_INTS(word), "stop", TN_INTS(word + 1)));
    return with_shape(build, "base.broadcast_to/1",
                      with_shape(build, "base.reshape/1", one, scalar), shape);
}

static tn_array *random_expr(const tn_build *build, const tn_rule *rule, const char *text,
                             tn_attr_list list)
{
    const tn_random_attrs *attrs = rule->attrs;
    return build->expr(build, text,
                       TN_IN(key_word(build, rule->inputs[0], 0, attrs->shape),
                             key_word(build, rule->inputs[0], 1, attrs->shape)),
                       list);
}

// Rounds x to `dtype` when that is a half float, as the expression computes in f32.
static tn_array *to_dtype(const tn_build *build, tn_array *x, int64_t dtype)
{
    if (tn_dtype_computed((tn_dtype)dtype) == dtype)
        return x;
    return build->op(build, "base.astype/1", TN_IN(x), tn_attrs("dtype", dtype));
}

// Numbers in f32 between the usual bounds, of the rule's shape.
static tn_array *usual_numbers(const tn_build *build, const tn_rule *rule,
                               const char *primitive)
{
    const tn_random_attrs *attrs = rule->attrs;
    return build->op(build, primitive, TN_IN(rule->inputs[0]),
                     tn_attrs("shape", &attrs->shape));
}

static tn_status random_bits_decompose(const tn_build *build, const tn_rule *rule,
                                       tn_array **outputs)
{
    outputs[0] = random_expr(build, rule, BITS, TN_NO_ATTRS);
    return built(outputs[0]);
}

// x rounded to `dtype`; with `steps` -1 the number before that. Subnormal numbers count as
// 0, as devices may treat them so.
static double base_random_rounded(tn_dtype dtype, double x, int steps)
{
    static const double least_normal[] = {[TN_F16] = 0x1p-14,
                                          [TN_BF16] = 0x1p-126,
                                          [TN_F32] = 0x1p-126,
                                          [TN_F64] = 0x1p-1022};
    uint64_t bits = 0;
    const tn_tensor one = {.data = &bits, .layout = {.dtype = dtype}};
    tn_set_f64(&one, 0, x);
    double nearest = tn_get_f64(&one, 0);
    if (steps == 0 || nearest != nearest)
        return nearest;
    if (fabs(nearest) < least_normal[dtype])
        return -least_normal[dtype];
    if (nearest == least_normal[dtype])
        return 0;
    bits = nearest > 0 ? bits - 1 : bits + 1; // bits are ordered as magnitudes
    return tn_get_f64(&one, 0);
}

static tn_status random_uniform_decompose(const tn_build *build, const tn_rule *rule,
                                          tn_array **outputs)
{
    const tn_random_attrs *attrs = rule->attrs;
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_F32;
    const char *text = dtype == TN_F64 ? UNIFORM_F64 : UNIFORM_F32;
    double low = attrs->a, high = attrs->b, first = base_random_rounded(dtype, low, 0);
    double last = fmax(first, base_random_rounded(dtype, high, -1));
    if (first >= base_random_rounded(dtype, high, 0)) // no number between the bounds
        low = high = last = first;
    tn_attr_list bounds = tn_attrs("low", low, "high", high, "last", last);
    int is_usual = dtype == TN_F64 || (dtype == TN_F32 && low == 0 && high == 1);
    tn_array *x =
        is_usual ? random_expr(build, rule, text, bounds)
                 : build->expr(build, "x -> min(low + (high - low) * x, last)",
                               TN_IN(usual_numbers(build, rule, "base.random_uniform/1")),
                               bounds);
    outputs[0] = to_dtype(build, x, attrs->dtype);
    return built(outputs[0]);
}

static tn_status random_normal_decompose(const tn_build *build, const tn_rule *rule,
                                         tn_array **outputs)
{
    const tn_random_attrs *attrs = rule->attrs;
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_F32;
    const char *text = dtype == TN_F64 ? NORMAL_F64 : NORMAL_F32;
    tn_attr_list positions = tn_attrs("mean", attrs->a, "deviation", attrs->b);
    int is_usual = dtype == TN_F64 || (dtype == TN_F32 && attrs->a == 0 && attrs->b == 1);
    tn_array *x =
        is_usual ? random_expr(build, rule, text, positions)
                 : build->expr(build, "x -> mean + deviation * x",
                               TN_IN(usual_numbers(build, rule, "base.random_normal/1")),
                               positions);
    outputs[0] = to_dtype(build, x, attrs->dtype);
    return built(outputs[0]);
}

const tn_primitive base_random_bits = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.random_bits/1",
    .doc = "Random 32-bit words: Threefry-2x32 of the key and the element's number.",
    TN_INPUTS(key_input),
    .attrs = TN_ATTR_TABLE(tn_random_attrs, bits_fields),
    .infer = random_bits_infer,
    .decompose = random_bits_decompose,
    .vjp = zero_vjp,
    .jvp = zero_jvp,
};

const tn_primitive base_random_uniform = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.random_uniform/1",
    .doc = "Random numbers spread evenly from a up to but without b; a where no number is "
           "between.",
    TN_INPUTS(key_input),
    .attrs = TN_ATTR_TABLE(tn_random_attrs, uniform_fields),
    .infer = random_float_infer,
    .decompose = random_uniform_decompose,
    .vjp = zero_vjp,
    .jvp = zero_jvp,
};

const tn_primitive base_random_normal = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.random_normal/1",
    .doc = "Random numbers of the normal distribution with mean a and deviation b.",
    TN_INPUTS(key_input),
    .attrs = TN_ATTR_TABLE(tn_random_attrs, normal_fields),
    .infer = random_float_infer,
    .decompose = random_normal_decompose,
    .vjp = zero_vjp,
    .jvp = zero_jvp,
};
