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

// numpy.exp(zeros(1, dtype)).dtype
static const tn_dtype float_of[13] = {F16, F16, F32, F64,  F64, F16, F32,
                                      F64, F64, F16, BF16, F32, F64};

Test(dtype, promotion_is_that_of_numpy)
{
    for (tn_dtype a = TN_BOOL; a < TN_NUM_DTYPES; a++)
        for (tn_dtype b = TN_BOOL; b < TN_NUM_DTYPES; b++)
            cr_assert(eq(int, dtype_promote(a, b), promoted[a - 1][b - 1]));
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
