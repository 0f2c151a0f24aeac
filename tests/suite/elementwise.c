// SPDX-License-Identifier: MIT
// Elementwise primitives against plain C on each element, over dtypes, layouts and values
// that hurt.
//
// Bounds. A result is computed in f32 (f64 when it is stored as f64) and rounded once when
// stored: the bound is that rounding and some units in the last place for the function
// itself. On the CPU: arithmetic is exact, functions are within 4. On GPUs: what Vulkan's
// precision table promises for these ranges (exp: 3 + 2 |x| units; log: 3 or 2^-21;
// division: 2.5; sin and cos only 2^-11, of which 1e-6 is asked), functions that GLSL lacks
// being composed of those.
#include "suite.h"
#include <tenon/ops/program.h>
#include <inttypes.h>

#define NUMBERS (TN_INTEGER_DTYPES | TN_FLOAT_DTYPES)

// One application: operands as doubles, and as integers when they are.
struct args {
    double x, y;
    int64_t i, j;
    tn_dtype dtype; // of both
};

struct op {
    const char *name;
    int arity;
    uint32_t dtypes;
    double lo, hi;   // of x
    double lo2, hi2; // of y
    double (*f)(struct args a);
    int64_t (*i)(struct args a); // for integers and bool; NULL: f, in a float dtype
    double cpu_ulps, gpu_ulps, gpu_absolute;
};

static bool is_unsigned(tn_dtype dtype)
{
    return tn_dtype_in(dtype, TN_UNSIGNED_DTYPES);
}

static int64_t floor_div(struct args a)
{
    if (a.j == 0)
        return 0;
    if (is_unsigned(a.dtype))
        return (int64_t)((uint64_t)a.i / (uint64_t)a.j);
    if (a.j == -1) // the one quotient that overflows wraps
        return (int64_t)(0 - (uint64_t)a.i);
    return a.i / a.j - (a.i % a.j != 0 && (a.i < 0) != (a.j < 0));
}

static int64_t int_remainder(struct args a)
{
    return a.j == 0 ? 0 : (int64_t)((uint64_t)a.i - (uint64_t)floor_div(a) * (uint64_t)a.j);
}

static int64_t int_power(struct args a)
{
    uint64_t result = 1, base = (uint64_t)a.i;
    if (!is_unsigned(a.dtype) && a.j < 0)
        return a.i == 1 ? 1 : a.i == -1 ? (a.j % 2 ? -1 : 1) : 0;
    for (uint64_t n = (uint64_t)a.j; n > 0; n /= 2, base *= base)
        result *= n % 2 ? base : 1;
    return (int64_t)result;
}

static double sign_of(double x)
{
    return isnan(x) ? x : (x > 0) - (x < 0);
}

static double larger(double x, double y)
{
    return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
}

static double smaller(double x, double y)
{
    return isnan(x) || isnan(y) ? NAN : x < y ? x : y;
}

static bool shifts_all_out(struct args a)
{
    return (uint64_t)a.j >= (uint64_t)tn_dtype_bytes(a.dtype) * 8; // negative ones, too
}

static int64_t shift_right(struct args a)
{
    if (shifts_all_out(a))
        return !is_unsigned(a.dtype) && a.i < 0 ? -1 : 0;
    return is_unsigned(a.dtype) ? (int64_t)((uint64_t)a.i >> a.j) : a.i >> a.j;
}

static int64_t shift_left(struct args a)
{
    return shifts_all_out(a) ? 0 : (int64_t)((uint64_t)a.i << a.j);
}

#define LESS(op) (is_unsigned(a.dtype) ? (uint64_t)a.i op(uint64_t) a.j : a.i op a.j)

// F: name, float meaning. I: the integers' meaning.
#define F(name, value)                                                                     \
    static double f_##name(struct args a)                                                  \
    {                                                                                      \
        (void)a;                                                                           \
        return value;                                                                      \
    }
#define I(name, value)                                                                     \
    static int64_t i_##name(struct args a)                                                 \
    {                                                                                      \
        return value;                                                                      \
    }
// A list, not functions.
// clang-format off
F(negative, -a.x)
I(negative, (int64_t)(0 - (uint64_t)a.i))
F(abs, fabs(a.x))
I(abs, is_unsigned(a.dtype) || a.i >= 0 ? a.i : (int64_t)(0 - (uint64_t)a.i))
F(sign, sign_of(a.x))
I(sign, a.i == 0 ? 0 : is_unsigned(a.dtype) || a.i > 0 ? 1 : -1)
F(floor, floor(a.x))
F(ceil, ceil(a.x))
F(trunc, trunc(a.x))
F(round, rint(a.x))
F(sqrt, sqrt(a.x))
F(rsqrt, 1 / sqrt(a.x))
F(reciprocal, 1 / a.x)
F(square, a.x * a.x)
I(square, (int64_t)((uint64_t)a.i * (uint64_t)a.i))
F(exp, exp(a.x))
F(exp2, exp2(a.x))
F(expm1, expm1(a.x))
F(log, log(a.x))
F(log2, log2(a.x))
F(log10, log10(a.x))
F(log1p, log1p(a.x))
F(sin, sin(a.x))
F(cos, cos(a.x))
F(tan, tan(a.x))
F(arcsin, asin(a.x))
F(arccos, acos(a.x))
F(arctan, atan(a.x))
F(sinh, sinh(a.x))
F(cosh, cosh(a.x))
F(tanh, tanh(a.x))
F(arcsinh, asinh(a.x))
F(arccosh, acosh(a.x))
F(arctanh, atanh(a.x))
F(erf, erf(a.x))
F(erfinv, tn_erfinv(a.x))
F(sigmoid, 1 / (1 + exp(-a.x)))
F(isnan, isnan(a.x))
F(isinf, isinf(a.x) != 0)
F(isfinite, isfinite(a.x) != 0)
F(logical_not, a.x == 0) I(logical_not, a.i == 0)
I(invert, a.dtype == TN_BOOL ? !a.i : ~a.i)
F(copy, a.x) I(copy, a.i)
F(real, a.x) F(imag, 0) F(conjugate, a.x) I(imag, a.i & 0)
F(angle, isnan(a.x) ? a.x : a.x < 0 ? 3.14159265358979323846 : 0)
F(relu, isnan(a.x) ? a.x : a.x > 0 ? a.x : 0)
I(relu, is_unsigned(a.dtype) || a.i > 0 ? a.i : 0)
F(add, a.x + a.y)
I(add, (int64_t)((uint64_t)a.i + (uint64_t)a.j))
F(subtract, a.x - a.y)
I(subtract, (int64_t)((uint64_t)a.i - (uint64_t)a.j))
F(multiply, a.x * a.y)
I(multiply, (int64_t)((uint64_t)a.i * (uint64_t)a.j))
F(divide, a.x / a.y)
F(floor_divide, floor(a.x / a.y))
I(floor_divide, floor_div(a))
F(remainder, a.x - a.y * floor(a.x / a.y))
I(remainder, int_remainder(a))
F(power, pow(a.x, a.y))
I(power, int_power(a))
F(maximum, larger(a.x, a.y))
I(maximum, LESS(<) ? a.j : a.i)
F(minimum, smaller(a.x, a.y))
I(minimum, LESS(<) ? a.i : a.j)
F(arctan2, atan2(a.x, a.y))
F(logical_and, a.x != 0 && a.y != 0)
I(logical_and, a.i && a.j)
F(logical_or, a.x != 0 || a.y != 0)
I(logical_or, a.i || a.j)
F(logical_xor, (a.x != 0) != (a.y != 0))
I(logical_xor, !a.i != !a.j)
I(bitwise_and, a.i & a.j)
I(bitwise_or, a.i | a.j)
I(bitwise_xor, a.i ^ a.j)
F(equal, a.x == a.y)
I(equal, a.i == a.j)
F(not_equal, a.x != a.y)
I(not_equal, a.i != a.j)
F(less, a.x < a.y) I(less, LESS(<))
F(less_equal, a.x <= a.y)
I(less_equal, LESS(<=))
F(greater, a.x > a.y) I(greater, LESS(>))
F(greater_equal, a.x >= a.y)
I(greater_equal, LESS(>=))
// clang-format on
#undef F
#undef I

// clang-format off
#define UNARY(name, dtypes, lo, hi, i, cpu, gpu, gpu_absolute)                             \
    {#name, 1, dtypes, lo, hi, 0, 0, f_##name, i, cpu, gpu, gpu_absolute}
#define BINARY(name, dtypes, lo, hi, lo2, hi2, i, cpu, gpu)                                \
    {#name, 2, dtypes, lo, hi, lo2, hi2, f_##name, i, cpu, gpu, 0}
#define BITS(name, dtypes, arity, lo2, hi2, i)                                             \
    {#name, arity, dtypes, -99, 99, lo2, hi2, NULL, i, 0, 0, 0}
    // clang-format on
    static const struct op ops[] = {
        UNARY(negative, NUMBERS, -50, 50, i_negative, 0, 0, 0),
        UNARY(abs, NUMBERS, -50, 50, i_abs, 0, 0, 0),
        UNARY(sign, NUMBERS, -3, 3, i_sign, 0, 0, 0),
        UNARY(floor, TN_FLOAT_DTYPES, -50, 50, NULL, 0, 0, 0),
        UNARY(ceil, TN_FLOAT_DTYPES, -50, 50, NULL, 0, 0, 0),
        UNARY(trunc, TN_FLOAT_DTYPES, -50, 50, NULL, 0, 0, 0),
        UNARY(round, TN_FLOAT_DTYPES, -50, 50, NULL, 0, 0, 0),
        UNARY(sqrt, NUMBERS, 0, 90, NULL, 0.5, 4, 0),
        UNARY(rsqrt, NUMBERS, 1, 90, NULL, 1.5, 4, 0),
        UNARY(square, NUMBERS, -50, 50, i_square, 0, 0, 0),
        UNARY(reciprocal, NUMBERS, 1, 90, NULL, 0.5, 3, 0),
        UNARY(exp, NUMBERS, -9, 9, NULL, 4, 32, 0),
        UNARY(exp2, NUMBERS, -9, 9, NULL, 4, 32, 0),
        UNARY(expm1, NUMBERS, -3, 3, NULL, 4, 64, 1e-6),
        UNARY(log, NUMBERS, 1, 99, NULL, 4, 8, 1e-6),
        UNARY(log2, NUMBERS, 1, 99, NULL, 4, 8, 1e-6),
        UNARY(log10, NUMBERS, 1, 99, NULL, 4, 8, 1e-6),
        UNARY(log1p, NUMBERS, 0, 50, NULL, 4, 16, 1e-6),
        UNARY(sin, NUMBERS, -6, 6, NULL, 4, 8, 1e-6),
        UNARY(cos, NUMBERS, -6, 6, NULL, 4, 8, 1e-6),
        UNARY(tan, NUMBERS, -1, 1, NULL, 4, 64, 1e-6),
        UNARY(arcsin, NUMBERS, -1, 1, NULL, 4, 4096, 1e-6),
        UNARY(arccos, NUMBERS, -1, 1, NULL, 4, 4096, 1e-6),
        UNARY(arctan, NUMBERS, -9, 9, NULL, 4, 4096, 1e-6),
        UNARY(sinh, NUMBERS, -5, 5, NULL, 4, 64, 1e-6),
        UNARY(cosh, NUMBERS, -5, 5, NULL, 4, 64, 1e-6),
        UNARY(tanh, NUMBERS, -5, 5, NULL, 4, 64, 1e-6),
        UNARY(arcsinh, NUMBERS, -5, 5, NULL, 4, 64, 1e-6),
        UNARY(arccosh, NUMBERS, 2, 9, NULL, 4, 64, 1e-6),
        UNARY(arctanh, TN_FLOAT_DTYPES, -0.9, 0.9, NULL, 4, 64, 1e-6),
        UNARY(erf, NUMBERS, -3, 3, NULL, 4, 64, 1e-6),
        UNARY(erfinv, TN_FLOAT_DTYPES, -0.99, 0.99, NULL, 4, 64, 1e-6),
        UNARY(sigmoid, NUMBERS, -9, 9, NULL, 4, 64, 0),
        UNARY(isnan, TN_FLOAT_DTYPES, -9, 9, NULL, 0, 0, 0),
        UNARY(isinf, TN_FLOAT_DTYPES, -9, 9, NULL, 0, 0, 0),
        UNARY(isfinite, TN_FLOAT_DTYPES, -9, 9, NULL, 0, 0, 0),
        UNARY(logical_not, TN_FIRST_DTYPES, -1, 1, i_logical_not, 0, 0, 0),
        UNARY(copy, TN_FIRST_DTYPES, -99, 99, i_copy, 0, 0, 0),
        UNARY(real, NUMBERS, -99, 99, i_copy, 0, 0, 0),
        UNARY(imag, NUMBERS, -99, 99, i_imag, 0, 0, 0),
        UNARY(conjugate, NUMBERS, -99, 99, i_copy, 0, 0, 0),
        UNARY(angle, NUMBERS, -9, 9, NULL, 4, 4096, 0),
        BITS(invert, TN_INTEGER_DTYPES | TN_DTYPE_BIT(TN_BOOL), 1, 0, 0, i_invert),
        UNARY(relu, NUMBERS, -9, 9, i_relu, 0, 0, 0),
        BINARY(add, NUMBERS, -99, 99, -99, 99, i_add, 0, 0),
        BINARY(subtract, NUMBERS, -99, 99, -99, 99, i_subtract, 0, 0),
        BINARY(multiply, NUMBERS, -99, 99, -99, 99, i_multiply, 0, 0),
        BINARY(divide, NUMBERS, -99, 99, 1, 9, NULL, 0.5, 3),
        BINARY(floor_divide, TN_INTEGER_DTYPES, -99, 99, -9, 9, i_floor_divide, 0, 0),
        BINARY(remainder, TN_INTEGER_DTYPES, -99, 99, -9, 9, i_remainder, 0, 0),
        BINARY(power, NUMBERS, 1, 5, 0, 3, i_power, 4, 128),
        BINARY(maximum, NUMBERS, -9, 9, -9, 9, i_maximum, 0, 0),
        BINARY(minimum, NUMBERS, -9, 9, -9, 9, i_minimum, 0, 0),
        BINARY(arctan2, NUMBERS, -9, 9, 1, 9, NULL, 4, 4096),
        BINARY(logical_and, TN_FIRST_DTYPES, -1, 1, -1, 1, i_logical_and, 0, 0),
        BINARY(logical_or, TN_FIRST_DTYPES, -1, 1, -1, 1, i_logical_or, 0, 0),
        BINARY(logical_xor, TN_FIRST_DTYPES, -1, 1, -1, 1, i_logical_xor, 0, 0),
        BITS(bitwise_and, TN_INTEGER_DTYPES | TN_DTYPE_BIT(TN_BOOL), 2, -99, 99,
             i_bitwise_and),
        BITS(bitwise_or, TN_INTEGER_DTYPES | TN_DTYPE_BIT(TN_BOOL), 2, -99, 99,
             i_bitwise_or),
        BITS(bitwise_xor, TN_INTEGER_DTYPES | TN_DTYPE_BIT(TN_BOOL), 2, -99, 99,
             i_bitwise_xor),
        BITS(left_shift, TN_INTEGER_DTYPES, 2, 0, 70, shift_left),
        BITS(right_shift, TN_INTEGER_DTYPES, 2, 0, 70, shift_right),
        BINARY(equal, TN_FIRST_DTYPES, -3, 3, -3, 3, i_equal, 0, 0),
        BINARY(not_equal, TN_FIRST_DTYPES, -3, 3, -3, 3, i_not_equal, 0, 0),
        BINARY(less, TN_FIRST_DTYPES, -3, 3, -3, 3, i_less, 0, 0),
        BINARY(less_equal, TN_FIRST_DTYPES, -3, 3, -3, 3, i_less_equal, 0, 0),
        BINARY(greater, TN_FIRST_DTYPES, -3, 3, -3, 3, i_greater, 0, 0),
        BINARY(greater_equal, TN_FIRST_DTYPES, -3, 3, -3, 3, i_greater_equal, 0, 0),
};
#undef UNARY
#undef BINARY
#undef BITS

// --- one check --------------------------------------------------------------------------

static const char *id_of(const struct op *op)
{
    static char id[64];
    snprintf(id, sizeof(id), "%s.%s", strcmp(op->name, "relu") == 0 ? "nn" : "base",
             op->name);
    return id;
}

// Offset in a value of the element that broadcasts to `index`.
static int64_t broadcast_at(const tn_layout *x, const tn_layout *out, const int64_t *index)
{
    int64_t offset = 0;
    int32_t shift = out->rank - x->rank;
    for (int32_t i = 0; i < x->rank; i++)
        if (x->extent[i] != 1)
            offset += index[i + shift] * x->stride[i];
    return offset;
}

static void expect(const struct op *op, const struct host_array *in,
                   struct host_array *want)
{
    const tn_layout *out = &want->tensor.layout;
    tn_dtype dtype = in[0].tensor.layout.dtype;
    bool as_integers = op->i && !tn_dtype_in(dtype, TN_FLOAT_DTYPES);
    int64_t index[TN_MAX_RANK] = {0}, k = 0;
    if (want->count == 0)
        return;
    do {
        int64_t at = broadcast_at(&in[0].tensor.layout, out, index);
        int64_t bt = op->arity > 1 ? broadcast_at(&in[1].tensor.layout, out, index) : 0;
        const struct host_array *y = op->arity > 1 ? &in[1] : &in[0];
        struct args a = {host_array_get(&in[0], at), host_array_get(y, bt),
                         tn_get_i64(&in[0].tensor, at), tn_get_i64(&y->tensor, bt), dtype};
        if (as_integers)
            tn_set_i64(&want->tensor, k++, op->i(a));
        else
            tn_set_f64(&want->tensor, k++, op->f(a));
    } while (tn_index_next(out->rank, out->extent, index));
}

static const char *compare(struct suite *s, const struct op *op, tn_array *array,
                           tn_scope *scope, const struct host_array *in)
{
    struct host_array got, want;
    if (!host_array_read(scope, array, &got))
        return tn_scope_error(scope);
    tn_dtype dtype = got.tensor.layout.dtype;
    want = host_array_new(dtype, got.tensor.layout.rank, got.tensor.layout.extent);
    expect(op, in, &want);
    double unit = 2 * (dtype == TN_F64 ? 0x1p-53 : 0x1p-24), relative = 0, absolute = 0;
    double ulps = s->is_cpu ? op->cpu_ulps : op->gpu_ulps;
    if (tn_dtype_in(dtype, TN_FLOAT_DTYPES) && ulps > 0) {
        // Both are rounded when stored: neighbours may be chosen.
        relative = 2 * dtype_rounding(dtype) + ulps * unit;
        absolute = s->is_cpu ? 0 : op->gpu_absolute;
    }
    const char *failure = host_array_compare(&got, &want, relative, absolute);
    host_array_free(&got);
    host_array_free(&want);
    return failure;
}

struct shape {
    int32_t rank;
    int64_t extent[TN_MAX_RANK];
};

static void check_op(struct suite *s, const struct op *op, tn_dtype dtype,
                     const struct shape *shapes, const enum layout_kind *kinds)
{
    struct host_array in[2] = {0};
    tn_array *arrays[2] = {NULL};
    tn_scope *scope = tn_scope_open(s->runtime);
    for (int i = 0; i < op->arity; i++) {
        in[i] = host_array_new(dtype, shapes[i].rank, shapes[i].extent);
        host_array_fill(s, &in[i], i ? op->lo2 : op->lo, i ? op->hi2 : op->hi);
        arrays[i] = host_array_upload(scope, &in[i], kinds[i]);
    }
    tn_array *out = tn_op(scope, id_of(op), (const tn_array *const *)arrays,
                          (uint64_t)op->arity, TN_NO_ATTRS);
    check(s, compare(s, op, out, scope, in), "%s rank %d and %d %s %s",
          tn_dtype_name(dtype), shapes[0].rank, op->arity > 1 ? shapes[1].rank : 0,
          layout_names[kinds[0]], op->arity > 1 ? layout_names[kinds[1]] : "");
    for (int i = 0; i < op->arity; i++)
        host_array_free(&in[i]);
    tn_scope_close(scope);
}

// --- groups -----------------------------------------------------------------------------

// Every dtype on rows of odd length, and one pair that broadcasts.
static void dtype_tests(struct suite *s, const struct op *op)
{
    static const struct shape flat[2] = {{1, {67}}, {1, {67}}};
    static const struct shape wide[2] = {{2, {5, 1}}, {1, {7}}};
    static const enum layout_kind plain[2] = {PLAIN, PLAIN};
    cover(op->f == f_relu ? "nn.relu" : id_of(op));
    if (!test_begin(s, "%s", id_of(op)))
        return;
    for (tn_dtype dtype = TN_BOOL; dtype <= TN_F64; dtype++)
        if (tn_dtype_in(dtype, op->dtypes))
            check_op(s, op, dtype, flat, plain);
    if (op->arity == 2)
        check_op(s, op, tn_dtype_in(TN_F32, op->dtypes) ? TN_F32 : TN_I32, wide, plain);
    test_end(s);
}

static const struct op *op_named(const char *name)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (strcmp(ops[i].name, name) == 0)
            return &ops[i];
    return NULL;
}

// Every pair of layouts, over ranks, with empty and scalar arrays.
static void layout_tests(struct suite *s, const char *name, tn_dtype dtype)
{
    static const struct shape shapes[][2] = {
        {{0, {0}}, {0, {0}}},
        {{1, {1}}, {1, {1}}},
        {{1, {0}}, {1, {0}}},
        {{2, {3, 0}}, {2, {3, 0}}},
        {{1, {33}}, {1, {33}}},
        {{2, {6, 17}}, {2, {6, 17}}},
        {{3, {2, 3, 5}}, {3, {2, 3, 5}}},
        {{2, {4, 1}}, {3, {3, 1, 6}}},
        {{0, {0}}, {2, {3, 4}}},
        {{5, {2, 1, 3, 1, 4}}, {4, {5, 1, 2, 1}}},
    };
    const struct op *op = op_named(name);
    if (!test_begin(s, "layouts of %s %s", id_of(op), tn_dtype_name(dtype)))
        return;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int a = 0; a < NUM_LAYOUTS; a++)
            for (int b = 0; b < (op->arity > 1 ? NUM_LAYOUTS : 1); b++)
                check_op(
                    s, op, dtype, shapes[i],
                    (const enum layout_kind[]){(enum layout_kind)a, (enum layout_kind)b});
    test_end(s);
}

// Numbers that hurt, each with each.
static const double specials[] = {0,   -0.0, 1,        -1,        0.5, -0.5,     1.5,
                                  2.5, -2.5, INFINITY, -INFINITY, NAN, 0x1p-120, 3.25};

static void special_tests(struct suite *s, const char *name, tn_dtype dtype)
{
    enum { COUNT = sizeof(specials) / sizeof(specials[0]) };
    const struct op *op = op_named(name);
    int64_t rows[2] = {COUNT, 1}, columns[2] = {1, COUNT};
    struct host_array in[2] = {host_array_new(dtype, 2, rows),
                               host_array_new(dtype, 2, columns)};
    tn_scope *scope = tn_scope_open(s->runtime);
    for (int i = 0; i < COUNT; i++) {
        tn_set_f64(&in[0].tensor, i, specials[i]);
        tn_set_f64(&in[1].tensor, i, specials[i]);
    }
    tn_array *x = host_array_upload(scope, &in[0], PLAIN),
             *y = host_array_upload(scope, &in[1], PLAIN);
    tn_array *out = tn_op(scope, id_of(op), TN_IN(x, y), TN_NO_ATTRS);
    if (op->arity == 1)
        tn_scope_clear_error(scope), out = tn_op(scope, id_of(op), TN_IN(x), TN_NO_ATTRS);
    check(s, compare(s, op, out, scope, in), "%s %s", name, tn_dtype_name(dtype));
    host_array_free(&in[0]);
    host_array_free(&in[1]);
    tn_scope_close(scope);
}

static void all_special_tests(struct suite *s)
{
    static const char *const names[] = {
        "negative",    "abs",         "sign",  "floor",      "ceil",    "trunc",
        "round",       "isnan",       "isinf", "isfinite",   "maximum", "minimum",
        "equal",       "not_equal",   "less",  "less_equal", "greater", "greater_equal",
        "logical_not", "logical_and", "relu",  "copy",       "add",     "multiply"};
    if (!test_begin(s, "infinities, NaN, zeros and halves"))
        return;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        special_tests(s, names[i], TN_F32);
        special_tests(s, names[i], TN_F64);
    }
    test_end(s);
}

// Each of a list of integers with each, wrapped to the dtype.
static void integer_special_tests(struct suite *s, const struct op *op, tn_dtype dtype)
{
    static const int64_t integers[] = {
        0,      1,         -1,        2,         -2,        3,        7,   8,
        31,     32,        33,        63,        64,        127,      128, -128,
        -32768, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1LL << 32};
    enum { COUNT = sizeof(integers) / sizeof(integers[0]) };
    int64_t rows[2] = {COUNT, 1}, columns[2] = {1, COUNT};
    struct host_array in[2] = {host_array_new(dtype, 2, rows),
                               host_array_new(dtype, 2, columns)};
    tn_scope *scope = tn_scope_open(s->runtime);
    for (int i = 0; i < COUNT; i++) {
        tn_set_i64(&in[0].tensor, i, integers[i]);
        tn_set_i64(&in[1].tensor, i, integers[i]);
    }
    tn_array *arrays[2] = {host_array_upload(scope, &in[0], PLAIN),
                           host_array_upload(scope, &in[1], PLAIN)};
    tn_array *out = tn_op(scope, id_of(op), (const tn_array *const *)arrays,
                          (uint64_t)op->arity, TN_NO_ATTRS);
    check(s, compare(s, op, out, scope, in), "%s %s", op->name, tn_dtype_name(dtype));
    host_array_free(&in[0]);
    host_array_free(&in[1]);
    tn_scope_close(scope);
}

static void all_integer_special_tests(struct suite *s)
{
    if (!test_begin(s, "integers at the ends of their range"))
        return;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        for (tn_dtype dtype = TN_BOOL; dtype <= TN_F64 && ops[i].i; dtype++)
            if (tn_dtype_in(dtype, ops[i].dtypes & TN_INTEGER_DTYPES))
                integer_special_tests(s, &ops[i], dtype);
    test_end(s);
}

// Conversions between all pairs, of numbers that both can hold.
static void astype_tests(struct suite *s)
{
    cover("base.astype");
    if (!test_begin(s, "base.astype"))
        return;
    for (tn_dtype from = TN_BOOL; from <= TN_F64; from++)
        for (tn_dtype to = TN_BOOL; to <= TN_F64; to++) {
            bool both_signed = !is_unsigned(from) && !is_unsigned(to);
            struct host_array in = host_array_new(from, 1, (int64_t[]){21}), got;
            struct host_array want = host_array_new(to, 1, (int64_t[]){21});
            host_array_fill(s, &in, both_signed ? -99.5 : 0, 99.5);
            for (int64_t i = 0; i < in.count; i++)
                if (tn_dtype_in(to, TN_FLOAT_DTYPES) || to == TN_BOOL)
                    tn_set_f64(&want.tensor, i, host_array_get(&in, i));
                else
                    tn_set_i64(&want.tensor, i, tn_get_i64(&in.tensor, i));
            tn_scope *scope = tn_scope_open(s->runtime);
            tn_array *out =
                tn_op(scope, "base.astype", TN_IN(host_array_upload(scope, &in, PLAIN)),
                      tn_attrs("dtype", (int64_t)to));
            const char *failure = tn_scope_error(scope);
            if (host_array_read(scope, out, &got)) {
                failure = host_array_compare(&got, &want, 0, 0);
                host_array_free(&got);
            } else {
                failure = tn_scope_error(scope);
            }
            check(s, failure, "%s to %s", tn_dtype_name(from), tn_dtype_name(to));
            tn_scope_close(scope);
            host_array_free(&in);
            host_array_free(&want);
        }
    test_end(s);
}

static void where_tests(struct suite *s)
{
    cover("base.where");
    if (!test_begin(s, "base.where"))
        return;
    for (tn_dtype dtype = TN_BOOL; dtype <= TN_F64; dtype++)
        for (int kind = 0; kind < NUM_LAYOUTS; kind++) {
            struct host_array c = host_array_new(TN_BOOL, 2, (int64_t[]){4, 1});
            struct host_array x = host_array_new(dtype, 2, (int64_t[]){4, 9}), got;
            struct host_array y = host_array_new(dtype, 1, (int64_t[]){9});
            struct host_array want = host_array_new(dtype, 2, (int64_t[]){4, 9});
            tn_scope *scope = tn_scope_open(s->runtime);
            host_array_fill(s, &c, 0, 1), host_array_fill(s, &x, -9, 9),
                host_array_fill(s, &y, -9, 9);
            tn_array *in[3] = {host_array_upload(scope, &c, (enum layout_kind)kind),
                               host_array_upload(scope, &x, (enum layout_kind)kind),
                               host_array_upload(scope, &y, PLAIN)};
            for (int64_t i = 0; i < want.count; i++)
                tn_set_f64(&want.tensor, i,
                           host_array_get(&c, i / 9) ? host_array_get(&x, i)
                                                     : host_array_get(&y, i % 9));
            tn_array *out =
                tn_op(scope, "base.where", TN_IN(in[0], in[1], in[2]), TN_NO_ATTRS);
            const char *failure = "";
            if (host_array_read(scope, out, &got)) {
                failure = host_array_compare(&got, &want, 0, 0);
                host_array_free(&got);
            } else {
                failure = tn_scope_error(scope);
            }
            check(s, failure, "%s %s", tn_dtype_name(dtype), layout_names[kind]);
            tn_scope_close(scope);
            host_array_free(&c), host_array_free(&x), host_array_free(&y),
                host_array_free(&want);
        }
    test_end(s);
}

void elementwise_tests(struct suite *s)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        dtype_tests(s, &ops[i]);
    layout_tests(s, "add", TN_F32);
    layout_tests(s, "subtract", TN_I16);
    layout_tests(s, "multiply", TN_F16);
    layout_tests(s, "copy", TN_U8);
    layout_tests(s, "copy", TN_F64);
    all_special_tests(s);
    all_integer_special_tests(s);
    astype_tests(s);
    where_tests(s);
}
