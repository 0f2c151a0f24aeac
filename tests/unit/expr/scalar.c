// SPDX-License-Identifier: MIT
// What operations and conversions mean at the edges of their dtypes: rows of what NumPy
// gives (or, where C and NumPy leave it open, what <tenon/expr.h> says), each computed from
// inputs and folded from constants.
#include "expr_check.h"
#include <ctype.h>
#include <tenon/ops/program.h>

#define I64_MIN "-9223372036854775808"
#define I64_MAX "9223372036854775807"
#define U64_MAX "18446744073709551615"

static const struct row {
    const char *body; // over x and y
    tn_dtype dtype;   // of both
    const char *x, *y, *want;
} rows[] = {
    // floats to integers: cut, saturated, NaN 0
    {"i8(x)", TN_F32, "127.9", "0", "127"},
    {"i8(x)", TN_F32, "128", "0", "127"},
    {"i8(x)", TN_F32, "-128.9", "0", "-128"},
    {"i8(x)", TN_F64, "-1e300", "0", "-128"},
    {"i8(x)", TN_F16, "300", "0", "127"},
    {"i16(x)", TN_BF16, "1e30", "0", "32767"},
    {"i32(x)", TN_F32, "2147483647", "0", "2147483647"},
    {"i32(x)", TN_F32, "-2147483648", "0", "-2147483648"},
    {"i32(x)", TN_F32, "inf", "0", "2147483647"},
    {"i32(x)", TN_F32, "-inf", "0", "-2147483648"},
    {"i32(x)", TN_F64, "nan", "0", "0"},
    {"i64(x)", TN_F64, "9223372036854775807", "0", I64_MAX},
    {"i64(x)", TN_F64, "9223372036854774784", "0", "9223372036854774784"},
    {"i64(x)", TN_F64, "-9223372036854775808", "0", I64_MIN},
    {"i64(x)", TN_F32, "-1e30", "0", I64_MIN},
    {"i64(x)", TN_F32, "nan", "0", "0"},
    {"u8(x)", TN_F32, "255.9", "0", "255"},
    {"u8(x)", TN_F32, "256", "0", "255"},
    {"u8(x)", TN_F32, "-0.9", "0", "0"},
    {"u8(x)", TN_F32, "-1", "0", "0"},
    {"u16(x)", TN_F16, "inf", "0", "65535"},
    {"u32(x)", TN_F64, "4294967295.5", "0", "4294967295"},
    {"u32(x)", TN_F32, "4294967296", "0", "4294967295"},
    {"u64(x)", TN_F64, "1e30", "0", U64_MAX},
    {"u64(x)", TN_F64, "18446744073709549568", "0", "18446744073709549568"},
    {"u64(x)", TN_F32, "-5", "0", "0"},
    {"bool(x)", TN_F32, "nan", "0", "1"},
    {"bool(x)", TN_F64, "-0.0", "0", "0"},
    {"bool(x)", TN_F64, "5e-324", "0", "1"},
    // integers to integers: the low bits
    {"i8(x)", TN_I64, "300", "0", "44"},
    {"i8(x)", TN_I32, "128", "0", "-128"},
    {"u8(x)", TN_I8, "-1", "0", "255"},
    {"u64(x)", TN_I8, "-1", "0", U64_MAX},
    {"i64(x)", TN_U64, U64_MAX, "0", "-1"},
    {"u32(x)", TN_I64, I64_MIN, "0", "0"},
    {"bool(x)", TN_I64, "256", "0", "1"},
    // integers to floats: rounded once, to nearest even
    {"f32(x)", TN_I64, "1152921573326323713", "0", "1152921641045688320"},
    {"f32(x)", TN_I32, "16777217", "0", "16777216"},
    {"f32(x)", TN_I32, "16777219", "0", "16777220"},
    {"f64(x)", TN_I64, "9007199254740993", "0", "9007199254740992"},
    {"f32(x)", TN_U64, U64_MAX, "0", "18446744073709551616"},
    {"f16(x)", TN_I32, "65519", "0", "65504"},
    {"f16(x)", TN_I32, "65520", "0", "inf"},
    {"bf16(x)", TN_I16, "257", "0", "256"},
    {"f32(x)", TN_I64, "9007199791611905", "0", "9007200328482816"},
    {"f32(x)", TN_I64, I64_MAX, "0", "9223372036854775808"},
    {"f64(x)", TN_U64, U64_MAX, "0", "18446744073709551616"},
    {"f64(x)", TN_I64, I64_MAX, "0", "9223372036854775808"},
    {"f16(x)", TN_I64, "2049", "0", "2048"},
    {"f16(x)", TN_I64, "2051", "0", "2052"},
    {"bf16(x)", TN_U64, "259", "0", "260"},
    // floats to narrower floats
    {"f16(x)", TN_F64, "1.00048828126", "0", "1"}, // f32 has the tie
    {"bf16(x)", TN_F64, "1.00390625001", "0", "1"},
    {"f16(x)", TN_F32, "65519.996", "0", "65504"},
    {"f16(x)", TN_F32, "65520", "0", "inf"},
    {"f16(x)", TN_F32, "-1e30", "0", "-inf"},
    {"f16(x)", TN_F32, "2.98023223876953125e-8", "0", "0"},
    {"f16(x)", TN_F32, "2.9802325e-8", "0", "5.9604644775390625e-8"},
    {"f16(x)", TN_F32, "nan", "0", "nan"},
    {"bf16(x)", TN_F32, "3.4e38", "0", "inf"},
    {"bf16(x)", TN_F32, "1.00390625", "0", "1"},
    {"f32(x)", TN_F64, "1e300", "0", "inf"},
    {"f32(x)", TN_F64, "3.4028235677973366e38", "0", "inf"},
    // shifts by the width or more, and by negative amounts
    {"x >> y", TN_I32, "-5", "1", "-3"},
    {"x >> y", TN_I32, "-5", "31", "-1"},
    {"x >> y", TN_I32, "-5", "32", "-1"},
    {"x >> y", TN_I32, "5", "32", "0"},
    {"x >> y", TN_I32, "-5", "-1", "-1"},
    {"x >> y", TN_I64, "-5", "64", "-1"},
    {"x >> y", TN_I64, "-5", I64_MIN, "-1"},
    {"x >> y", TN_I64, "5", "4294967297", "0"},
    {"x >> y", TN_U64, U64_MAX, "64", "0"},
    {"x >> y", TN_U64, U64_MAX, "4294967297", "0"},
    {"x >> y", TN_I8, "-128", "8", "-1"},
    {"x << y", TN_I8, "1", "7", "-128"},
    {"x << y", TN_I8, "1", "8", "0"},
    {"x << y", TN_U8, "255", "4", "240"},
    {"x << y", TN_I32, "1", "32", "0"},
    {"x << y", TN_I32, "1", "-1", "0"},
    {"x << y", TN_I64, "1", "63", I64_MIN},
    {"x << y", TN_I64, "1", "64", "0"},
    {"x << y", TN_U64, "1", U64_MAX, "0"},
    {"i32(x) >> y", TN_I64, "-5", "64", "-1"},
    {"i32(x) >> y", TN_I64, "-5", "40", "-1"},
    {"i32(x) << y", TN_I64, "1", "40", "1099511627776"},
    // integer division and remainder
    {"x // y", TN_I32, "-7", "2", "-4"},
    {"x % y", TN_I32, "-7", "2", "1"},
    {"x // y", TN_I32, "7", "-2", "-4"},
    {"x % y", TN_I32, "7", "-2", "-1"},
    {"x // y", TN_I32, "7", "0", "0"},
    {"x % y", TN_I32, "7", "0", "0"},
    {"x // y", TN_I32, "-2147483648", "-1", "-2147483648"},
    {"x % y", TN_I32, "-2147483648", "-1", "0"},
    {"x // y", TN_I64, I64_MIN, "-1", I64_MIN},
    {"x % y", TN_I64, I64_MIN, "-1", "0"},
    {"x // y", TN_I8, "-128", "-1", "-128"},
    {"x // y", TN_U64, U64_MAX, "2", "9223372036854775807"},
    {"x % y", TN_U8, "5", "0", "0"},
    // integers wrap
    {"abs(x)", TN_I8, "-128", "0", "-128"},
    {"abs(x)", TN_I64, I64_MIN, "0", I64_MIN},
    {"-x", TN_I16, "-32768", "0", "-32768"},
    {"x * y", TN_I32, "65536", "65536", "0"},
    {"x + y", TN_U8, "200", "100", "44"},
    {"sign(x)", TN_I64, I64_MIN, "0", "-1"},
    {"x ** y", TN_I32, "3", "20", "-808182895"},
    {"x ** y", TN_I32, "2", "-1", "0"},
    {"x ** y", TN_I32, "-1", "-3", "-1"},
    {"x ** y", TN_I32, "1", "-2147483648", "1"},
    {"x ** y", TN_I32, "0", "-1", "0"},
    {"x ** y", TN_I64, "0", "0", "1"},
    // remainders and quotients of floats
    {"x % y", TN_F32, "-5.5", "2", "0.5"},
    {"x % y", TN_F32, "5.5", "-2", "-0.5"},
    {"x % y", TN_F64, "5", "inf", "5"},
    {"x % y", TN_F64, "-5", "inf", "inf"},
    {"x % y", TN_F64, "inf", "3", "nan"},
    {"x % y", TN_F32, "5", "0", "nan"},
    {"x % y", TN_F32, "4", "-2", "-0.0"},
    {"x / y", TN_F32, "1", "-0.0", "-inf"},
    {"x / y", TN_F32, "0", "0", "nan"},
    {"x // y", TN_F64, "-7", "2", "-4"},
    {"x // y", TN_F64, "1", "0.1", "9"},
    {"x // y", TN_F64, "6", "0.1", "59"},
    {"x // y", TN_F32, "1", "0.1", "9"},
    {"x // y", TN_F64, "-1", "inf", "-1"},
    {"x // y", TN_F32, "1", "-inf", "-1"},
    {"x // y", TN_F32, "-0.0", "inf", "-0.0"},
    {"x // y", TN_F64, "5", "-inf", "-1"},
    {"x // y", TN_F64, "inf", "2", "nan"},
    {"x // y", TN_F64, "inf", "-0.0", "-inf"},
    {"x // y", TN_F32, "-3", "0", "-inf"},
    {"x // y", TN_F64, "5e-324", "-1e300", "-1"},
    {"x // y", TN_F64, "-0.0", "3", "-0.0"},
    {"x // y", TN_F32, "3.4028235e38", "1e-45", "inf"},
    {"x // y", TN_F32, "16777216", "0.1", "167772160"},
    {"x ** y", TN_F64, "nan", "0", "1"},
    {"x ** y", TN_F64, "1", "nan", "1"},
    {"x ** y", TN_F32, "-8", "0.5", "nan"},
    // zeros and NaN
    {"sign(x)", TN_F32, "-0.0", "0", "0"},
    {"sign(x)", TN_F64, "nan", "0", "nan"},
    {"trunc(x)", TN_F32, "-0.5", "0", "-0.0"},
    {"round(x)", TN_F32, "-0.5", "0", "-0.0"},
    {"ceil(x)", TN_F64, "-0.5", "0", "-0.0"},
    {"round(x)", TN_F32, "2.5", "0", "2"},
    {"abs(x)", TN_F32, "-0.0", "0", "0"},
    {"-x", TN_F64, "0", "0", "-0.0"},
    {"min(x, y)", TN_F32, "nan", "1", "nan"},
    {"min(x, y)", TN_F32, "1", "nan", "nan"},
    {"max(x, y)", TN_F64, "inf", "nan", "nan"},
    {"max(x, y)", TN_F32, "-inf", "-1", "-1"},
    // the inverse of the error function, at the ends of its range
    {"erfinv(x)", TN_F32, "1", "0", "inf"},
    {"erfinv(x)", TN_F64, "-1", "0", "-inf"},
    {"erfinv(x)", TN_F64, "1.0000000000000002", "0", "nan"},
    {"erfinv(x)", TN_F32, "-inf", "0", "nan"},
    {"erfinv(x)", TN_F64, "nan", "0", "nan"},
    {"erfinv(x)", TN_F32, "-0.0", "0", "-0.0"},
    {"erfinv(x)", TN_F64, "5e-324", "0", "5e-324"},
    {"erfinv(x)", TN_F64, "0.5", "0", "0.47693627620446987"},
    {"erfinv(x)", TN_F64, "-0.99999999999999989", "0", "-5.8635847487551676"},
    {"erfinv(x)", TN_F32, "0.99999994", "0", "3.83250689506530762"},
    // comparisons, across signedness as NumPy promotes
    {"u64(x) > i64(y)", TN_U64, U64_MAX, "1", "1"},
    {"x == y", TN_F32, "nan", "nan", "0"},
    {"x != y", TN_F32, "nan", "nan", "1"},
    {"x < y", TN_U64, "1", U64_MAX, "1"},
    {"x < y", TN_I64, "-1", "1", "1"},
    {"x == y", TN_F64, "0", "-0.0", "1"},
    // bool
    {"x + y", TN_BOOL, "1", "1", "1"},
    {"x * y", TN_BOOL, "1", "0", "0"},
    {"~x", TN_BOOL, "1", "0", "0"},
    {"x ^ y", TN_BOOL, "1", "1", "0"},
    {"max(x, y)", TN_BOOL, "0", "1", "1"},
    {"x << y", TN_BOOL, "1", "1", "2"},
};
#define NUM_ROWS (sizeof(rows) / sizeof(*rows))

static uint64_t read_bits(tn_dtype dtype, const char *text)
{
    if (dtype_is_float(dtype)) // an input is what its dtype holds
        return scalar_cast(TN_F64, dtype, double_to_bits(strtod(text, NULL)));
    return text[0] == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
}

static bool same_bits(tn_dtype dtype, uint64_t a, uint64_t b)
{
    bool both_nan =
        dtype_is_float(dtype) && isnan(bits_to_double(a)) && isnan(bits_to_double(b));
    return a == b || both_nan;
}

static void print_bits(tn_dtype dtype, uint64_t bits, char *text, size_t size)
{
    if (dtype_is_float(dtype))
        snprintf(text, size, "%.17g", bits_to_double(bits));
    else
        snprintf(text, size, "%" PRId64, (int64_t)bits);
}

static void expect(const struct row *row, const char *how, tn_dtype dtype, uint64_t got)
{
    char text[40];
    print_bits(dtype, got, text, sizeof(text));
    if (!same_bits(dtype, got, read_bits(dtype, row->want)))
        cr_fatal("%s, x = %s, y = %s as %s, %s: got %s %s, expected %s", row->body, row->x,
                 row->y, dtype_name(row->dtype), how, dtype_name(dtype), text, row->want);
}

TestSuite(scalar, .init = open_set, .fini = close_set);

Test(scalar, edges_are_computed_as_defined)
{
    for (size_t i = 0; i < NUM_ROWS; i++) {
        const struct row *row = &rows[i];
        tn_dtype dtypes[2] = {row->dtype, row->dtype}, out;
        uint64_t bits[2] = {read_bits(row->dtype, row->x), read_bits(row->dtype, row->y)};
        char text[100];
        snprintf(text, sizeof(text), "x, y -> %s", row->body);
        uint64_t got = run_bits(text, dtypes, bits, &out);
        expect(row, "computed", out, got);
    }
}

// The body with constants in place of x and y.
static void write_constants(const struct row *row, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "unused -> ");
    for (const char *p = row->body; *p; p++) {
        bool is_name = (*p == 'x' || *p == 'y') && !isalnum(p[1]) &&
                       (p == row->body || !isalnum(p[-1]));
        if (is_name)
            at += (size_t)snprintf(out + at, size - at, "%s(%s)", dtype_name(row->dtype),
                                   *p == 'x' ? row->x : row->y);
        else
            at += (size_t)snprintf(out + at, size - at, "%c", *p);
    }
}

Test(scalar, edges_are_folded_as_computed)
{
    for (size_t i = 0; i < NUM_ROWS; i++) {
        char text[200];
        write_constants(&rows[i], text, sizeof(text));
        const struct expr_input input = {TN_F32, 0};
        const tn_expr_program *program = compiled(parsed(text), &input, NULL);
        uint64_t unused = 0, got;
        if (program->num_insns != 1)
            cr_fatal("%s: not folded", text);
        program_run_scalar(program, &unused, NULL, 0, &got);
        expect(&rows[i], "folded", program->output_dtypes[0], got);
    }
}

// Against long double: two units in the last place, over the whole range.
Test(scalar, the_inverse_of_the_error_function_is_within_two_units)
{
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        double part = (double)(state >> 11) * 0x1p-53, scale = ldexp(part, -(i % 60));
        double x = i % 2 ? 1 - scale : scale, y = tn_erfinv(x);
        if (!(x > 0 && x < 1))
            continue;
        long double rest = 1 - (long double)x;
        long double error = y < 1 ? erfl(y) - x : rest - erfcl(y);
        double apart = (double)(error / M_2_SQRTPIl * expl((long double)y * y));
        double unit = nextafter(y, INFINITY) - y;
        if (!(fabs(apart) <= 2 * unit))
            cr_fatal("erfinv(%a): got %a, %g units off, expected at most 2", x, y,
                     apart / unit);
    }
}
