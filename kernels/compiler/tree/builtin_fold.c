// SPDX-License-Identifier: MIT
// Built-in functions of constants, for constant expressions.
#include "builtins.h"

#include <math.h>
#include <string.h>

static bool fold_float_1(uint32_t number, double x, double *out)
{
    static const double pi = 3.14159265358979323846;
    switch (number) {
    case GlslRound:
    case GlslRoundEven:
        *out = nearbyint(x);
        return true;
    case GlslTrunc:
        *out = trunc(x);
        return true;
    case GlslFAbs:
        *out = fabs(x);
        return true;
    case GlslFSign:
        *out = x > 0 ? 1 : x < 0 ? -1 : 0;
        return true;
    case GlslFloor:
        *out = floor(x);
        return true;
    case GlslCeil:
        *out = ceil(x);
        return true;
    case GlslFract:
        *out = x - floor(x);
        return true;
    case GlslRadians:
        *out = x * pi / 180;
        return true;
    case GlslDegrees:
        *out = x * 180 / pi;
        return true;
    case GlslSin:
        *out = sin(x);
        return true;
    case GlslCos:
        *out = cos(x);
        return true;
    case GlslTan:
        *out = tan(x);
        return true;
    case GlslAsin:
        *out = asin(x);
        return true;
    case GlslAcos:
        *out = acos(x);
        return true;
    case GlslAtan:
        *out = atan(x);
        return true;
    default:
        return false;
    }
}

static bool fold_float_more(uint32_t number, double x, double *out)
{
    switch (number) {
    case GlslExp:
        *out = exp(x);
        return true;
    case GlslLog:
        *out = log(x);
        return true;
    case GlslExp2:
        *out = exp2(x);
        return true;
    case GlslLog2:
        *out = log2(x);
        return true;
    case GlslSqrt:
        *out = sqrt(x);
        return true;
    case GlslInverseSqrt:
        *out = 1 / sqrt(x);
        return true;
    default:
        return false;
    }
}

static bool fold_float_2(uint32_t number, double x, double y, double *out)
{
    switch (number) {
    case GlslAtan2:
        *out = atan2(x, y);
        return true;
    case GlslPow:
        *out = pow(x, y);
        return true;
    case GlslFMin:
        *out = y < x ? y : x;
        return true;
    case GlslFMax:
        *out = x < y ? y : x;
        return true;
    case GlslStep:
        *out = y < x ? 0 : 1;
        return true;
    default:
        return false;
    }
}

static bool builtin_fold_is_less(enum base base, uint64_t a, uint64_t b)
{
    uint64_t flip = base_is_signed(base) ? (uint64_t)1 << 63 : 0;
    return (a ^ flip) < (b ^ flip);
}

static bool builtin_fold_int(uint32_t number, enum base base, const uint64_t *x,
                             uint64_t *out)
{
    switch (number) {
    case GlslUMin:
    case GlslSMin:
        *out = builtin_fold_is_less(base, x[1], x[0]) ? x[1] : x[0];
        return true;
    case GlslUMax:
    case GlslSMax:
        *out = builtin_fold_is_less(base, x[0], x[1]) ? x[1] : x[0];
        return true;
    case GlslUClamp:
    case GlslSClamp:
        *out = builtin_fold_is_less(base, x[0], x[1]) ? x[1] : x[0];
        *out = builtin_fold_is_less(base, x[2], *out) ? x[2] : *out;
        return true;
    case GlslSAbs:
        *out = x[0] >> 63 ? fold_wrap(base, ~x[0] + (x[0] != 0)) : x[0];
        return true;
    case GlslSSign:
        *out = x[0] == 0 ? 0 : x[0] >> 63 ? ~(uint64_t)0 : 1;
        return true;
    default:
        return false;
    }
}

static bool fold_extended(uint32_t number, enum base base, const uint64_t *x, uint64_t *out)
{
    double value = 0, a = bits_double(x[0]), b = bits_double(x[1]);
    if (!base_is_float(base))
        return builtin_fold_int(number, base, x, out);
    if (number == GlslFClamp) {
        double c = bits_double(x[2]);
        value = a < b ? b : a;
        *out = double_bits(c < value ? c : value);
        return true;
    }
    if (!fold_float_1(number, a, &value) && !fold_float_more(number, a, &value) &&
        !fold_float_2(number, a, b, &value))
        return false;
    *out = double_bits(value);
    return true;
}

// Bits of a float as an integer, and back.
static bool fold_bitcast(enum base from, enum base to, uint64_t bits, uint64_t *out)
{
    if (base_width(from) != base_width(to) || base_width(from) < 32)
        return false;
    bits = base_is_float(from) ? constant_bits(from, bits) : bits;
    if (to == TYPE_FLOAT32) {
        uint32_t word = (uint32_t)(bits & 0xffffffffu);
        float value;
        memcpy(&value, &word, sizeof value);
        *out = double_bits((double)value);
        return value == value || word & 0x400000; // a signalling NaN becomes a quiet one
    }
    *out = fold_wrap(to, bits);
    return true;
}

struct tree_expr *builtin_fold(struct translator *t, const struct tree_expr *call)
{
    const struct builtin *b = call->builtin;
    enum base base = (enum base)call->op;
    bool is_bitcast = b->how == HOW_OP && b->code[0] == OpBitcast;
    if (call->number == 0 || call->number > 3 || (b->how != HOW_EXTENDED && !is_bitcast) ||
        (b->how == HOW_EXTENDED && b->classes == 0))
        return NULL;
    for (uint32_t i = 0; i < call->number; i++)
        if (call->arguments[i]->kind != EXPR_CONSTANT)
            return NULL;
    uint32_t kind = base_is_float(base) ? 0 : base_is_signed(base) ? 1 : 2;
    struct tree_expr *e = expr_constant(t, call->type, &call->at);
    for (uint32_t i = 0; i < call->type->components; i++) {
        uint64_t x[3] = {0, 0, 0};
        for (uint32_t j = 0; j < call->number; j++) {
            const struct tree_expr *argument = call->arguments[j];
            x[j] = argument->bits[type_is_scalar(argument->type) ? 0 : i];
        }
        bool is_done = is_bitcast && b->classes != 0
                           ? fold_bitcast(base, call->type->base, x[0], &e->bits[i])
                           : b->how == HOW_EXTENDED &&
                                 fold_extended(b->code[kind], base, x, &e->bits[i]);
        if (!is_done)
            return NULL;
    }
    return e;
}
