// SPDX-License-Identifier: MIT
// Promotion as NumPy does it, and conversion of single elements.
#include <math.h>
#include "check.h"
#include "base/dtype.h"
#include <tenon/ops/reference.h>

enum {
    BOOL = TN_BOOL,
    I8 = TN_I8,
    I16 = TN_I16,
    I32 = TN_I32,
    I64 = TN_I64,
    U8 = TN_U8,
    U16 = TN_U16,
    U32 = TN_U32,
    U64 = TN_U64,
    F16 = TN_F16,
    BF16 = TN_BF16,
    F32 = TN_F32,
    F64 = TN_F64,
    C64 = TN_COMPLEX64,
    C128 = TN_COMPLEX128,
    E4M3 = TN_F8_E4M3,
    E5M2 = TN_F8_E5M2,
};

// numpy.promote_types of NumPy 1.24, rows and columns in the order of the dtypes. With
// bf16: 8-bit integers are exact in it, 16-bit ones in f32, wider ones need f64, as beside
// f16.
static const tn_dtype promoted[13][13] = {
    {BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64},
    {I8, I8, I16, I32, I64, I16, I32, I64, F64, F16, BF16, F32, F64},
    {I16, I16, I16, I32, I64, I16, I32, I64, F64, F32, F32, F32, F64},
    {I32, I32, I32, I32, I64, I32, I32, I64, F64, F64, F64, F64, F64},
    {I64, I64, I64, I64, I64, I64, I64, I64, F64, F64, F64, F64, F64},
    {U8, I16, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64},
    {U16, I32, I32, I32, I64, U16, U16, U32, U64, F32, F32, F32, F64},
    {U32, I64, I64, I64, I64, U32, U32, U32, U64, F64, F64, F64, F64},
    {U64, F64, F64, F64, F64, U64, U64, U64, U64, F64, F64, F64, F64},
    {F16, F16, F32, F64, F64, F16, F32, F64, F64, F16, F32, F32, F64},
    {BF16, BF16, F32, F64, F64, BF16, F32, F64, F64, F32, BF16, F32, F64},
    {F32, F32, F32, F64, F64, F32, F32, F64, F64, F32, F32, F32, F64},
    {F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, F64},
};

// Of the 13 dtypes above with complex64. With complex128 all give complex128, and floats of
// 8 bits promote with nothing but themselves.
static const tn_dtype with_complex64[13] = {C64,  C64,  C64, C128, C128, C64, C64,
                                            C128, C128, C64, C64,  C64,  C128};

static tn_dtype expected(tn_dtype a, tn_dtype b)
{
    if (a > b)
        return expected(b, a);
    if (b <= F64 || a == b)
        return b <= F64 ? promoted[a - 1][b - 1] : a;
    return b >= E4M3 ? TN_DTYPE_NONE : b == C64 ? with_complex64[a - 1] : C128;
}

// numpy.exp(zeros(1, dtype)).dtype
static const tn_dtype float_of[17] = {F16, F16,  F32, F64, F64, F16,  F32,  F64, F64,
                                      F16, BF16, F32, F64, C64, C128, E4M3, E5M2};

Test(dtype, promotion_is_that_of_numpy)
{
    for (tn_dtype a = TN_BOOL; a < TN_NUM_DTYPES; a++)
        for (tn_dtype b = TN_BOOL; b < TN_NUM_DTYPES; b++)
            cr_assert(eq(int, dtype_promote(a, b), expected(a, b)));
    cr_assert(eq(int, dtype_promote(TN_DTYPE_NONE, TN_F32), TN_DTYPE_NONE));
    cr_assert(eq(int, dtype_promote(TN_F32, TN_NUM_DTYPES), TN_DTYPE_NONE));
}

Test(dtype, functions_of_integers_are_floats_of_the_size_that_numpy_takes)
{
    for (tn_dtype a = TN_BOOL; a < TN_NUM_DTYPES; a++)
        cr_assert(eq(int, dtype_to_float(a), float_of[a - 1]));
}

Test(dtype, a_plain_number_takes_the_dtype_of_what_it_meets)
{
    cr_assert(eq(int, dtype_promote_weak(KIND_SIGNED, TN_BOOL), TN_I64));
    cr_assert(eq(int, dtype_promote_weak(KIND_SIGNED, TN_U8), TN_U8));
    cr_assert(eq(int, dtype_promote_weak(KIND_SIGNED, TN_F16), TN_F16));
    cr_assert(eq(int, dtype_promote_weak(KIND_FLOAT, TN_BF16), TN_BF16));
    cr_assert(eq(int, dtype_promote_weak(KIND_FLOAT, TN_F32), TN_F32));
    cr_assert(eq(int, dtype_promote_weak(KIND_FLOAT, TN_I8), TN_F64));
    cr_assert(eq(int, dtype_promote_weak(KIND_FLOAT, TN_BOOL), TN_F64));
    cr_assert(eq(int, dtype_promote_weak(KIND_SIGNED, C64), C64));
    cr_assert(eq(int, dtype_promote_weak(KIND_FLOAT, C64), C64));
    cr_assert(eq(int, dtype_promote_weak(KIND_COMPLEX, C64), C64));
    cr_assert(eq(int, dtype_promote_weak(KIND_COMPLEX, BF16), C64));
    cr_assert(eq(int, dtype_promote_weak(KIND_COMPLEX, F64), C128));
    cr_assert(eq(int, dtype_promote_weak(KIND_COMPLEX, I8), C128));
    cr_assert(eq(int, dtype_promote_weak(KIND_COMPLEX, BOOL), C128));
    cr_assert(eq(int, dtype_promote_weak(KIND_COMPLEX, E4M3), TN_DTYPE_NONE));
}

Test(dtype, names_are_read_in_both_spellings)
{
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++) {
        cr_assert(eq(int, dtype_parse(dtype_name(dtype)), dtype));
        cr_assert(eq(int, dtype_parse(dtype_numpy_name(dtype)), dtype));
    }
    cr_assert(eq(int, dtype_parse("f8"), TN_DTYPE_NONE));
    cr_assert(eq(int, dtype_parse("none"), TN_DTYPE_NONE));
    cr_assert(eq(str, dtype_name(99), "none"));
}

Test(dtype, every_half_float_survives_a_round_trip)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float half = tn_f32_of_f16((uint16_t)bits), bfloat = tn_f32_of_bf16((uint16_t)bits);
        if (isnan(half))
            cr_assert(isnan(tn_f32_of_f16(tn_f16_of_f32(half))));
        else
            cr_assert(eq(uint, tn_f16_of_f32(half), bits));
        if (isnan(bfloat))
            cr_assert(isnan(tn_f32_of_bf16(tn_bf16_of_f32(bfloat))));
        else
            cr_assert(eq(uint, tn_bf16_of_f32(bfloat), bits));
    }
}

// Between two neighbours: below, at and above the middle, both signs.
static void check_between(tn_dtype dtype, uint16_t low)
{
    double a = dtype_load(dtype, &low), b = dtype_load(dtype, &(uint16_t){low + 1});
    if (isinf(b)) // the middle is where the next power of two would begin
        b = dtype == TN_F16 ? 65536.0 : 0x1p128;
    double middle = (a + b) / 2;
    double values[] = {nextafter(middle, a), middle, nextafter(middle, b)};
    uint16_t wanted[] = {low, low & 1 ? low + 1 : low, low + 1};
    for (int i = 0; i < 3; i++) {
        uint16_t got;
        dtype_store(dtype, &got, values[i]);
        cr_assert(eq(u16, got, wanted[i]));
        dtype_store(dtype, &got, -values[i]);
        cr_assert(eq(int, got, wanted[i] | 0x8000));
    }
}

Test(dtype, doubles_round_to_half_floats_once)
{
    for (uint16_t low = 0; low < 0x7c00; low++)
        check_between(TN_F16, low);
    for (uint16_t low = 0; low < 0x7f80; low++)
        check_between(TN_BF16, low);
}

// All codes of the two formats, by the definition of the OCP specification: the value is
// (-1)^s 2^(e - bias) 1.m, or 2^(1 - bias) 0.m for e = 0.
static double float8(tn_dtype dtype, uint32_t bits)
{
    int digits = dtype == E4M3 ? 3 : 2, bias = dtype == E4M3 ? 7 : 15;
    int exponent = (int)(bits & 0x7f) >> digits, most = dtype == E4M3 ? 16 : 31;
    double mantissa = (double)(bits & ((1u << digits) - 1)) / (1 << digits);
    double value =
        exponent ? ldexp(1 + mantissa, exponent - bias) : ldexp(mantissa, 1 - bias);
    if (dtype == E4M3 && (bits & 0x7f) == 0x7f)
        value = NAN;
    if (exponent == most)
        value = mantissa > 0 ? NAN : INFINITY;
    return bits & 0x80 ? -value : value;
}

Test(dtype, every_float_of_8_bits_has_its_value_and_survives)
{
    for (tn_dtype dtype = E4M3; dtype <= E5M2; dtype++)
        for (uint32_t bits = 0; bits < 256; bits++) {
            uint8_t code = (uint8_t)bits, back = 0;
            double got = dtype_load(dtype, &code), want = float8(dtype, bits);
            dtype_store(dtype, &back, got);
            cr_assert(isnan(want) ? isnan(got) : got == want,
                      "%s 0x%02x is %g, expected %g", dtype_name(dtype), bits, got, want);
            cr_assert(signbit(got) == signbit(want) || isnan(want));
            cr_assert(isnan(want) ? (back & 0x7f) == 0x7f : back == code);
        }
}

// Between two neighbours: below, at (to even) and above the middle, both signs; and where
// the numbers end: E4M3 has NaN from beyond 464 on, E5M2 infinity from 61440 on.
Test(dtype, floats_of_8_bits_round_once_to_nearest_even)
{
    for (tn_dtype dtype = E4M3; dtype <= E5M2; dtype++) {
        uint32_t greatest = dtype == E4M3 ? 0x7e : 0x7b;
        for (uint32_t low = 0; low <= greatest; low++) {
            double a = float8(dtype, low);
            double b = low < greatest  ? float8(dtype, low + 1)
                       : dtype == E4M3 ? 480
                                       : 65536;
            double middle = (a + b) / 2;
            double values[] = {nextafter(middle, a), middle, nextafter(middle, b)};
            uint32_t wanted[] = {low, low & 1 ? low + 1 : low, low + 1};
            for (int i = 0; i < 3; i++) {
                uint8_t got[2];
                dtype_store(dtype, &got[0], values[i]);
                dtype_store(dtype, &got[1], -values[i]);
                cr_assert(eq(uint, got[0], wanted[i]));
                cr_assert(eq(uint, got[1], wanted[i] | 0x80));
            }
        }
        const double ends[] = {1e30, INFINITY, NAN};
        for (int i = 0; i < 3; i++) {
            uint8_t got;
            dtype_store(dtype, &got, ends[i]);
            cr_assert(eq(uint, got, dtype == E5M2 && i < 2 ? 0x7c : 0x7f));
        }
    }
}

Test(dtype, complex_numbers_keep_both_parts_and_convert_by_the_real_one)
{
    const tn_complex128 z = {1.25, -3}, imaginary = {0, 2};
    tn_complex64 single;
    tn_complex128 wide = {9, 9};
    uint8_t boolean = 9;
    const tn_tensor as_single = {&single, {.dtype = C64}},
                    as_wide = {&wide, {.dtype = C128}};
    const tn_tensor as_bool = {&boolean, {.dtype = BOOL}};
    tn_set_complex(&as_single, 0, z);
    tn_complex128 back = tn_get_complex(&as_single, 0);
    cr_assert(back.re == 1.25 && back.im == -3);
    cr_assert(eq(dbl, tn_get_f64(&as_single, 0), 1.25));
    cr_assert(eq(i64, tn_get_i64(&as_single, 0), 1));
    tn_set_f64(&as_wide, 0, 7);
    cr_assert(wide.re == 7 && wide.im == 0);
    tn_set_complex(&as_bool, 0, imaginary);
    cr_assert(eq(u8, boolean, 1));
}

Test(dtype, integers_are_cut_off_and_never_trap)
{
    const struct {
        tn_dtype dtype;
        double value, wanted;
    } cases[] = {
        {TN_I8, 300, 127},        {TN_I8, -300, -128},
        {TN_I8, -1.9, -1},        {TN_U8, -5, 0},
        {TN_U8, 255.9, 255},      {TN_U8, 1e30, 255},
        {TN_I32, NAN, 0},         {TN_I32, INFINITY, 2147483647.0},
        {TN_U64, 1e30, 0x1p64},   {TN_I64, -INFINITY, -0x1p63},
        {TN_I64, 0x1p53, 0x1p53}, {TN_BOOL, 0.5, 1},
        {TN_BOOL, 0, 0},          {TN_U32, 4294967295.0, 4294967295.0},
        {TN_F32, 0.5, 0.5},       {TN_F64, -0.1, -0.1},
        {TN_U16, 65536, 65535},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t element = 0;
        dtype_store(cases[i].dtype, &element, cases[i].value);
        cr_assert(dtype_load(cases[i].dtype, &element) == cases[i].wanted);
    }
}
