// SPDX-License-Identifier: MIT
// Parts of numbers and common divisors: fmod, modf, frexp, ldexp, gcd, lcm; i0.
#include "../pack.h"

static const tn_input_info x_and_y[] = {
    {"x", "the left operand", 0, 0},
    {"y", "the right operand", 0, 0},
};

// --- fmod and modf ----------------------------------------------------------------------

// The remainder of floats is computed of magnitudes, which is exact; magnitudes of integers
// may overflow.
DECOMPOSE(fmod)
{
    tn_dtype dtype = tn_dtype_promote(build->type(rule->inputs[0])->dtype,
                                      build->type(rule->inputs[1])->dtype);
    outputs[0] = build->expr(
        build,
        tn_is_float(dtype)
            ? "x, y -> r = abs(x) % abs(y); x < 0 ? -r : r == 0 & x == 0 ? x : r"
            : "x, y -> r = x % y; r != 0 & (r < 0) != (x < 0) ? r - y : r",
        TN_IN(rule->inputs[0], rule->inputs[1]), TN_NO_ATTRS);
    return built(outputs[0]);
}

COMPOSITE(fmod, "x - y * trunc(x / y): it has the sign of x.", TN_INPUTS(x_and_y));

static const tn_output_info modf_outputs[] = {
    {"fraction", "what is behind the point, with x's sign", 0, 0},
    {"whole", "trunc(x), as a float", 0, 0},
};
const tn_primitive base_modf = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.modf/1",
    .doc = "The fraction of x, and x without it.",
    TN_INPUTS(base_x),
    TN_OUTPUTS(modf_outputs),
    .expr = "y = 1.0 * x; a = abs(y); f = a - trunc(a); "
            "isinf(y) ? 0 * sign(y) : y == 0 ? y : y < 0 ? -f : f, trunc(y)",
};

// --- frexp and ldexp --------------------------------------------------------------------

// The layout of float dtypes.
static const struct parts_format {
    tn_dtype dtype, bits;
    int64_t point, bias; // bits of the fraction; the exponent of 1
    double least;        // the least normal number
} parts_formats[] = {
    {TN_F32, TN_I32, 23, 127, 0x1p-126},
    {TN_F64, TN_I64, 52, 1023, 0x1p-1022},
};

// The layout in which numbers of `dtype` are computed: halves as f32, integers as f64.
static const struct parts_format *elementwise_parts_of(tn_dtype dtype)
{
    return &parts_formats[!tn_is_float(dtype) || dtype == TN_F64];
}

static tn_array *parts_view(const tn_build *build, const tn_array *x, tn_dtype dtype)
{
    return build->op(build, "base.view/1", TN_IN(x), tn_attrs("dtype", (int64_t)dtype));
}

// x * 2^i. Three factors cover the range from the greatest number to the least; where the
// result is subnormal each factor is so much greater that only the last product is rounded.
static tn_array *parts_scale(const tn_build *build, tn_array *x, tn_array *i,
                             const struct parts_format *f)
{
    const tn_attr_list range =
        tn_attrs("least", 1 - f->bias, "some", 1 - f->bias + f->point + 1, "most", f->bias);
    const tn_attr_list bits = tn_attrs("bias", f->bias, "point", f->point);
    i = build->expr(build, "i -> i < -4000 ? -4000 : i > 4000 ? 4000 : i64(i)", TN_IN(i),
                    TN_NO_ATTRS);
    for (int32_t step = 0; step < 3; step++) {
        tn_array *part = build->expr(build, "i -> i < least ? some : i > most ? most : i",
                                     TN_IN(i), range);
        tn_array *power = build->expr(build, "p -> p + bias << point", TN_IN(part), bits);
        power = parts_view(build, as_dtype(build, power, f->bits), f->dtype);
        x = build->expr(build, "x, p -> x * p", TN_IN(x, power), TN_NO_ATTRS);
        i = build->expr(build, "i, p -> i - p", TN_IN(i, part), TN_NO_ATTRS);
    }
    return x;
}

static const tn_input_info ldexp_inputs[] = {
    {"x", "the number", 0, 0},
    {"i", "integers: the power of 2", TN_INPUT_CONSTANT, 0},
};

DECOMPOSE(ldexp)
{
    tn_dtype dtype = build->type(rule->inputs[0])->dtype;
    const struct parts_format *f = elementwise_parts_of(dtype);
    tn_status status =
        check_integers(build->host, "i", build->type(rule->inputs[1])->dtype);
    if (status)
        return status;
    tn_array *x = as_dtype(build, rule->inputs[0], f->dtype);
    outputs[0] = as_dtype(build, parts_scale(build, x, rule->inputs[1], f),
                          tn_is_float(dtype) ? dtype : TN_F64);
    return built(outputs[0]);
}

COMPOSITE(ldexp, "x * 2 ** i, as a float, without overflow of the power.",
          TN_INPUTS(ldexp_inputs));

static const tn_output_info frexp_outputs[] = {
    {"mantissa", "in (-1, -0.5], [0.5, 1), or x itself: 0, infinite, NaN", 0, 0},
    {"exponent", "i32", 0, 0},
};

DECOMPOSE(frexp)
{
    tn_dtype dtype = build->type(rule->inputs[0])->dtype;
    const struct parts_format *f = elementwise_parts_of(dtype);
    tn_array *x = as_dtype(build, rule->inputs[0], f->dtype);
    // Subnormal numbers are scaled up to have an exponent.
    tn_array *normal =
        build->expr(build, "x -> abs(x) < least ? x * 0x100000000 * 0x100000000 : x",
                    TN_IN(x), tn_attrs("least", f->least));
    tn_array *exponent =
        build->expr(build,
                    "x, b -> e = (b >> point & 2 * bias + 1) - (bias - 1); "
                    "x == 0 | !isfinite(x) ? 0 : i32(abs(x) < least ? e - 64 : e)",
                    TN_IN(x, parts_view(build, normal, f->bits)),
                    tn_attrs("point", f->point, "bias", f->bias, "least", f->least));
    tn_array *down = build->expr(build, "e -> -e", TN_IN(exponent), TN_NO_ATTRS);
    outputs[0] = as_dtype(build, parts_scale(build, x, down, f),
                          tn_is_float(dtype) ? dtype : TN_F64);
    outputs[1] = exponent;
    return built(outputs[0]);
}

COMPOSITE(frexp, "x as mantissa * 2 ** exponent.", TN_INPUTS(base_x),
          TN_OUTPUTS(frexp_outputs));

// --- gcd and lcm ------------------------------------------------------------------------

// The magnitudes of both, and their greatest common divisor, in the unsigned dtype that
// holds them. Euclid's algorithm with the remainder of least magnitude: the number of steps
// is what the largest Pell numbers need (a step divides magnitudes by 1 + sqrt(2) at
// least), plus two.
static tn_status divisors_of(const tn_build *build, const tn_rule *rule, tn_array *out[3])
{
    tn_dtype dtype = TN_BOOL;
    for (int32_t i = 0; i < 2; i++) {
        tn_dtype own = build->type(rule->inputs[i])->dtype;
        tn_status status = check_integers(build->host, i ? "y" : "x", own);
        if (status)
            return status;
        dtype = i ? tn_dtype_promote(dtype, own) : own;
    }
    if (!tn_dtype_in(dtype, TN_INTEGER_DTYPES))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x and y promote to %s, expected integers",
                                 dtype_text(dtype));
    int64_t bytes = tn_dtype_bytes(dtype);
    // Dtypes of 8 to 64 bits are numbered in a row, the signed ones first.
    tn_dtype wide = tn_is_signed(dtype) ? dtype - TN_I8 + TN_U8 : dtype;
    for (int32_t i = 0; i < 2; i++)
        out[i] = as_dtype(build,
                          build->expr(build, "x -> x < 0 ? -x : x",
                                      TN_IN(as_dtype(build, rule->inputs[i], dtype)),
                                      TN_NO_ATTRS),
                          wide);
    tn_array *a = out[0], *b = out[1];
    for (int64_t i = 0; i < (bytes * 63 + 9) / 10 + 2; i++) {
        tn_array *rest = build->expr(build, "a, b -> r = a % b; b == 0 ? a : min(r, b - r)",
                                     TN_IN(a, b), TN_NO_ATTRS);
        a = b;
        b = rest;
    }
    // One of them is 0 now, and the other is the divisor.
    out[2] = build->expr(build, "a, b -> a | b", TN_IN(a, b), TN_NO_ATTRS);
    return built(out[2]);
}

static tn_array *divisors_as(const tn_build *build, const tn_rule *rule, tn_array *result)
{
    return as_dtype(build, result,
                    tn_dtype_promote(build->type(rule->inputs[0])->dtype,
                                     build->type(rule->inputs[1])->dtype));
}

DECOMPOSE(gcd)
{
    tn_array *found[3];
    tn_status status = divisors_of(build, rule, found);
    outputs[0] = status ? NULL : divisors_as(build, rule, found[2]);
    return status ? status : built(outputs[0]);
}

DECOMPOSE(lcm)
{
    tn_array *found[3];
    tn_status status = divisors_of(build, rule, found);
    if (status)
        return status;
    tn_array *product = build->expr(build, "a, b, g -> g == 0 ? g : a // g * b",
                                    TN_IN(found[0], found[1], found[2]), TN_NO_ATTRS);
    outputs[0] = divisors_as(build, rule, product);
    return built(outputs[0]);
}

static const tn_input_info divisor_inputs[] = {
    {"x", "integers", TN_INPUT_CONSTANT, 0},
    {"y", "integers", TN_INPUT_CONSTANT, 0},
};
COMPOSITE(gcd, "The greatest integer that divides both; 0 of zeros.",
          TN_INPUTS(divisor_inputs));
COMPOSITE(lcm, "The least integer that both divide; 0 where one is 0.",
          TN_INPUTS(divisor_inputs));

// --- i0 ---------------------------------------------------------------------------------

// exp(abs(x)) would overflow before the result does.
DECOMPOSE(i0)
{
    tn_array *x = rule->inputs[0];
    outputs[0] = build->expr(
        build,
        "x, s -> a = abs(x * 1.0); is_large = a > 80; "
        "s * (is_large ? 6.235149080811617e27 : 1) * exp(is_large ? a - 64 : a)",
        TN_IN(x, build->op(build, "base.i0e/1", TN_IN(x), TN_NO_ATTRS)), TN_NO_ATTRS);
    return built(outputs[0]);
}

COMPOSITE(i0, "I0(x), the modified Bessel function of order 0.", TN_INPUTS(base_x));
