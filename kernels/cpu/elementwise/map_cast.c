// SPDX-License-Identifier: MIT
// Conversions between element types, as <tenon/expr.h> defines CAST. Halves (f16, bf16) are
// widened to f32, and rounded from f32 to nearest, ties to even, with NaNs made quiet, as
// the instructions of F16C do. Floats become integers by saturation, and NaN becomes 0.
#include "map_loops.h"
#include "variants.h"
#include "cpu/x86.h"

static inline float f32_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    uint32_t exponent = rest & 0x0f800000;
    uint32_t normal = rest + (112u << 23); // the bias is 127 there and 15 here
    uint32_t special = normal + (112u << 23);
    special |= (rest & 0x007fffff) != 0 ? 0x00400000 : 0;
    // A subnormal is its fraction times 2^-24. Adding 2^-14 (113 << 23) as bits puts the
    // fraction behind a leading 1; subtracting 2^-14 as a float takes the 1 away.
    uint32_t small =
        bits_of_f32(f32_of_bits(rest + (113u << 23)) - f32_of_bits(113u << 23));
    uint32_t bits = exponent == 0 ? small : normal;
    bits = exponent == 0x0f800000 ? special : bits;
    return f32_of_bits(sign | bits);
}

static inline uint16_t f16_of_f32(float x)
{
    uint32_t bits = bits_of_f32(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    // Rounds to nearest even: adds half an ulp of f16, less 1 unless the last bit that
    // remains is odd.
    uint32_t normal = (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    // Below 2^-14 the result is a multiple of 2^-24, which is the ulp of f32 from 0.5 on:
    // so adding 0.5 rounds to it.
    uint32_t small = bits_of_f32(f32_of_bits(rest) + 0.5f) - bits_of_f32(0.5f);
    uint32_t nan = 0x7e00 | (rest >> 13 & 0x3ff);
    uint32_t half = rest < (113u << 23) ? small : normal;
    half = rest >= 0x47800000 ? 0x7c00 : half;
    half = rest > 0x7f800000 ? nan : half;
    return (uint16_t)(sign | half);
}

static inline float f32_of_bf16(uint16_t half)
{
    return f32_of_bits((uint32_t)half << 16);
}

static inline uint16_t bf16_of_f32(float x)
{
    uint32_t bits = bits_of_f32(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

static void widen_f16(void *out_, const void *const *in, int64_t n, uint32_t scalars)
{
    float *out = out_;
    const uint16_t *a = in[0];
    int64_t i = 0;
    (void)scalars;
#ifdef __AVX512F__
    for (; i + 16 <= n; i += 16) {
        x86_f32x16 x = x86_widen_16_f16(a + i);
        memcpy(out + i, &x, sizeof(x));
    }
#endif
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) {
        x86_f32x8 x = x86_widen_f16(a + i);
        memcpy(out + i, &x, sizeof(x));
    }
#endif
    for (; i < n; i++)
        out[i] = f32_of_f16(a[i]);
}

static void narrow_f16(void *out_, const void *const *in, int64_t n, uint32_t scalars)
{
    uint16_t *out = out_;
    const float *a = in[0];
    int64_t i = 0;
    (void)scalars;
#ifdef __AVX512F__
    for (; i + 16 <= n; i += 16) {
        x86_f32x16 x;
        memcpy(&x, a + i, sizeof(x));
        x86_i16x16 halves =
            __builtin_ia32_vcvtps2ph512_mask(x, 0, (x86_i16x16){0}, (uint16_t)-1);
        memcpy(out + i, &halves, sizeof(halves));
    }
#endif
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        x86_narrow_f16(out + i, a + i);
#endif
    for (; i < n; i++)
        out[i] = f16_of_f32(a[i]);
}

MAP1(widen_bf16, uint16_t, float, f32_of_bf16(x))
MAP1(narrow_bf16, float, uint16_t, bf16_of_f32(x))

// Floats of 8 bits, as <tenon/ops/reference.h> defines them, without branches.
static inline float f32_of_e4m3(uint8_t bits)
{
    uint32_t rest = (uint32_t)(bits & 0x7f) << 20;
    // A subnormal is its fraction times 2^-9: see f32_of_f16().
    float small = f32_of_bits(rest + (121u << 23)) - f32_of_bits(121u << 23);
    uint32_t value = rest < (1u << 23) ? bits_of_f32(small) : rest + (120u << 23);
    value = rest == 0x07f00000 ? 0x7fc00000 : value;
    return f32_of_bits((uint32_t)(bits & 0x80) << 24 | value);
}

static inline uint8_t e4m3_of_f32(float x)
{
    uint32_t bits = bits_of_f32(x), sign = bits >> 24 & 0x80, rest = bits & 0x7fffffff;
    uint32_t normal = (rest - (120u << 23) + 0x7ffff + (rest >> 20 & 1)) >> 20;
    uint32_t small = bits_of_f32(f32_of_bits(rest) + 16384.0f) - bits_of_f32(16384.0f);
    uint32_t value = rest < 0x3c800000 ? small : normal;
    return (uint8_t)(sign | (rest > 0x43e80000 ? 0x7f : value));
}

static inline uint8_t e5m2_of_f32(float x)
{
    uint32_t bits = bits_of_f32(x), sign = bits >> 24 & 0x80, rest = bits & 0x7fffffff;
    uint32_t normal = (rest - (112u << 23) + 0xfffff + (rest >> 21 & 1)) >> 21;
    uint32_t small = bits_of_f32(f32_of_bits(rest) + 128.0f) - bits_of_f32(128.0f);
    uint32_t value = rest < 0x38800000 ? small : normal;
    value = rest >= 0x47700000 ? 0x7c : value;
    return (uint8_t)(sign | (rest > 0x7f800000 ? 0x7f : value));
}

MAP1(widen_e4m3, uint8_t, float, f32_of_e4m3(x))
MAP1(narrow_e4m3, float, uint8_t, e4m3_of_f32(x))
MAP1(widen_e5m2, uint8_t, float, f32_of_f16((uint16_t)(x << 8)))
MAP1(narrow_e5m2, float, uint8_t, e5m2_of_f32(x))

// Defines the conversion of one float F to an integer T in the range low .. high. `below`
// is the greatest F that T can hold. Both comparisons fail for a NaN and then choose an end
// of the range, so the C conversion, which is undefined out of range, never sees such a
// number.
#define SATURATE(name, F, T, low, high, below)                                             \
    static inline T name(F x)                                                              \
    {                                                                                      \
        F y = x > (F)(low) ? x : (F)(low);                                                 \
        y = y < (below) ? y : (below);                                                     \
        T most = (T)y;                                                                     \
        if ((below) != (F)(high))                                                          \
            most = x > (below) ? (T)(high) : most;                                         \
        return x == x ? most : 0;                                                          \
    }

// Elements of a block, which one test of the range covers.
#define RANGE_BLOCK 1024

// Marks a function that converts elements before it knows whether they are in range, and
// drops the results if they are not.
#ifdef __clang__
#define OUT_OF_RANGE_TOO __attribute__((no_sanitize("float-cast-overflow")))
#else
#define OUT_OF_RANGE_TOO
#endif

// Saturating loops. Nearly all blocks have all elements in range: these are converted by
// the plain instruction, in the same loop that tests the range, and once more with
// saturation when the test fails. To 64 bits most processors convert one element at a time,
// so there the test goes first.
//
// The test is on the bits of a float. Without the sign they grow with the magnitude, a NaN
// being the greatest; so bits - end, where `end` has the bits of the first power of 2 out
// of range, has its top bit set exactly for magnitudes in range. For unsigned types the
// sign must be clear as well. The least integer of a signed type fails the test, which only
// costs time.
#define WITHIN_SIGNED(bits, end) (((bits) << 1 >> 1) - (end))
#define WITHIN_UNSIGNED(bits, end) (((bits) - (end)) & ~(bits))
#define SATURATED_LOOP(from, F, BITS, to, T, WITHIN, end)                                  \
    OUT_OF_RANGE_TOO static bool from##_to_##to##_if_within(T *out, const F *a, int64_t n) \
    {                                                                                      \
        BITS all = (BITS)-1;                                                               \
        VECTORIZE for (int64_t i = 0; i < n; i++)                                          \
        {                                                                                  \
            BITS bits = bits_of_##from(a[i]);                                              \
            all &= WITHIN(bits, end);                                                      \
            if (sizeof(T) < 8)                                                             \
                out[i] = (T)a[i];                                                          \
        }                                                                                  \
        bool is_within = all >> (8 * sizeof(BITS) - 1);                                    \
        for (int64_t i = 0; sizeof(T) == 8 && is_within && i < n; i++)                     \
            out[i] = (T)a[i];                                                              \
        return is_within;                                                                  \
    }                                                                                      \
    static void from##_to_##to(void *out_, const void *const *in, int64_t n,               \
                               uint32_t scalars)                                           \
    {                                                                                      \
        F kept[RANGE_BLOCK];                                                               \
        (void)scalars;                                                                     \
        for (int64_t at = 0; at < n; at += RANGE_BLOCK) {                                  \
            int64_t count = n - at < RANGE_BLOCK ? n - at : RANGE_BLOCK;                   \
            T *out = (T *)out_ + at;                                                       \
            const F *a = (const F *)in[0] + at;                                            \
            if (out_ == in[0]) /* a failed test reads a again, after out is written */     \
                a = memcpy(kept, a, (size_t)count * sizeof(F));                            \
            if (from##_to_##to##_if_within(out, a, count))                                 \
                continue;                                                                  \
            VECTORIZE for (int64_t i = 0; i < count; i++)                                  \
            {                                                                              \
                out[i] = from##_as_##to(a[i]);                                             \
            }                                                                              \
        }                                                                                  \
    }
#define SATURATED_F32(to, T, low, high, below, WITHIN, end)                                \
    SATURATE(f32_as_##to, float, T, low, high, below)                                      \
    SATURATED_LOOP(f32, float, uint32_t, to, T, WITHIN, (127u + (end)) << 23)
#define SATURATED_F64(to, T, low, high, below, WITHIN, end)                                \
    SATURATE(f64_as_##to, double, T, low, high, below)                                     \
    SATURATED_LOOP(f64, double, uint64_t, to, T, WITHIN, (uint64_t)(1023 + (end)) << 52)
SATURATED_F32(i8, int8_t, INT8_MIN, INT8_MAX, INT8_MAX, WITHIN_SIGNED, 7)
SATURATED_F32(i16, int16_t, INT16_MIN, INT16_MAX, INT16_MAX, WITHIN_SIGNED, 15)
SATURATED_F32(i32, int32_t, INT32_MIN, INT32_MAX, 0x1.fffffep30f, WITHIN_SIGNED, 31)
SATURATED_F32(i64, int64_t, INT64_MIN, INT64_MAX, 0x1.fffffep62f, WITHIN_SIGNED, 63)
SATURATED_F32(u8, uint8_t, 0, UINT8_MAX, UINT8_MAX, WITHIN_UNSIGNED, 8)
SATURATED_F32(u16, uint16_t, 0, UINT16_MAX, UINT16_MAX, WITHIN_UNSIGNED, 16)
SATURATED_F32(u32, uint32_t, 0, UINT32_MAX, 0x1.fffffep31f, WITHIN_UNSIGNED, 32)
SATURATED_F32(u64, uint64_t, 0, UINT64_MAX, 0x1.fffffep63f, WITHIN_UNSIGNED, 64)
SATURATED_F64(i8, int8_t, INT8_MIN, INT8_MAX, INT8_MAX, WITHIN_SIGNED, 7)
SATURATED_F64(i16, int16_t, INT16_MIN, INT16_MAX, INT16_MAX, WITHIN_SIGNED, 15)
SATURATED_F64(i32, int32_t, INT32_MIN, INT32_MAX, INT32_MAX, WITHIN_SIGNED, 31)
SATURATED_F64(i64, int64_t, INT64_MIN, INT64_MAX, 0x1.fffffffffffffp62, WITHIN_SIGNED, 63)
SATURATED_F64(u8, uint8_t, 0, UINT8_MAX, UINT8_MAX, WITHIN_UNSIGNED, 8)
SATURATED_F64(u16, uint16_t, 0, UINT16_MAX, UINT16_MAX, WITHIN_UNSIGNED, 16)
SATURATED_F64(u32, uint32_t, 0, UINT32_MAX, UINT32_MAX, WITHIN_UNSIGNED, 32)
SATURATED_F64(u64, uint64_t, 0, UINT64_MAX, 0x1.fffffffffffffp63, WITHIN_UNSIGNED, 64)

// Casts from integers. Signedness of the result makes no difference to its bits, signedness
// of the operand only where the result is wider; bool is a byte. So each pair of widths has
// a loop (`i8_to_16`), and casts from unsigned integers to wider ones have their own.
#define CASTS_TO_FLOATS(from, T)                                                           \
    MAP1(from##_to_f32, T, float, x)                                                       \
    MAP1(from##_to_f64, T, double, x)
#define CASTS_TO_BITS(from, T)                                                             \
    MAP1(from##_to_8, T, uint8_t, x)                                                       \
    MAP1(from##_to_16, T, uint16_t, x)                                                     \
    MAP1(from##_to_32, T, uint32_t, x)                                                     \
    MAP1(from##_to_64, T, uint64_t, x)
CASTS_TO_BITS(i8, int8_t)
CASTS_TO_BITS(i16, int16_t)
CASTS_TO_BITS(i32, int32_t)
CASTS_TO_BITS(i64, int64_t)
MAP1(u8_to_16, uint8_t, uint16_t, x)
MAP1(u8_to_32, uint8_t, uint32_t, x)
MAP1(u8_to_64, uint8_t, uint64_t, x)
MAP1(u16_to_32, uint16_t, uint32_t, x)
MAP1(u16_to_64, uint16_t, uint64_t, x)
MAP1(u32_to_64, uint32_t, uint64_t, x)
#define u8_to_8 i8_to_8
#define u16_to_8 i16_to_8
#define u16_to_16 i16_to_16
#define u32_to_8 i32_to_8
#define u32_to_16 i32_to_16
#define u32_to_32 i32_to_32
#define u64_to_8 i64_to_8
#define u64_to_16 i64_to_16
#define u64_to_32 i64_to_32
#define u64_to_64 i64_to_64
CASTS_TO_FLOATS(i8, int8_t)
CASTS_TO_FLOATS(i16, int16_t)
CASTS_TO_FLOATS(i32, int32_t)
CASTS_TO_FLOATS(i64, int64_t)
CASTS_TO_FLOATS(u8, uint8_t)
CASTS_TO_FLOATS(u16, uint16_t)
CASTS_TO_FLOATS(u32, uint32_t)
CASTS_TO_FLOATS(u64, uint64_t)
CASTS_TO_FLOATS(f32, float)
CASTS_TO_FLOATS(f64, double)
MAP1(i8_to_bool, uint8_t, uint8_t, x != 0)
MAP1(i16_to_bool, uint16_t, uint8_t, x != 0)
MAP1(i32_to_bool, uint32_t, uint8_t, x != 0)
MAP1(i64_to_bool, uint64_t, uint8_t, x != 0)
MAP1(f32_to_bool, float, uint8_t, x != 0)
MAP1(f64_to_bool, double, uint8_t, x != 0)

#define REAL_ROW(from, bits)                                                               \
    [TN_BOOL] = bits##_to_bool, [TN_F32] = from##_to_f32, [TN_F64] = from##_to_f64
#define COMPLEX_ROW(from)                                                                  \
    [TN_COMPLEX64] = VC(from##_to_complex64), [TN_COMPLEX128] = VC(from##_to_complex128)
#define INTEGER_ROW(from, bits)                                                            \
    [TN_I8] = from##_to_8, [TN_I16] = from##_to_16, [TN_I32] = from##_to_32,               \
    [TN_I64] = from##_to_64, [TN_U8] = from##_to_8, [TN_U16] = from##_to_16,               \
    [TN_U32] = from##_to_32, [TN_U64] = from##_to_64, REAL_ROW(from, bits)
#define FLOAT_ROW(from)                                                                    \
    [TN_I8] = from##_to_i8, [TN_I16] = from##_to_i16, [TN_I32] = from##_to_i32,            \
    [TN_I64] = from##_to_i64, [TN_U8] = from##_to_u8, [TN_U16] = from##_to_u16,            \
    [TN_U32] = from##_to_u32, [TN_U64] = from##_to_u64, REAL_ROW(from, from),              \
    COMPLEX_ROW(from)
#define COMPLEX_ENTRY(name, dtype) [dtype] = VC(FROM_COMPLEX(name)),

cpu_map_fn *const V(cpu_casts)[TN_NUM_DTYPES][TN_NUM_DTYPES] = {
    [TN_BOOL] = {INTEGER_ROW(u8, i8), COMPLEX_ROW(bool)},
    [TN_I8] = {INTEGER_ROW(i8, i8), COMPLEX_ROW(i8)},
    [TN_I16] = {INTEGER_ROW(i16, i16), COMPLEX_ROW(i16)},
    [TN_I32] = {INTEGER_ROW(i32, i32), COMPLEX_ROW(i32)},
    [TN_I64] = {INTEGER_ROW(i64, i64), COMPLEX_ROW(i64)},
    [TN_U8] = {INTEGER_ROW(u8, i8), COMPLEX_ROW(u8)},
    [TN_U16] = {INTEGER_ROW(u16, i16), COMPLEX_ROW(u16)},
    [TN_U32] = {INTEGER_ROW(u32, i32), COMPLEX_ROW(u32)},
    [TN_U64] = {INTEGER_ROW(u64, i64), COMPLEX_ROW(u64)},
    [TN_F16] = {[TN_F32] = widen_f16, [TN_F16] = i16_to_16},
    [TN_BF16] = {[TN_F32] = widen_bf16, [TN_BF16] = i16_to_16},
    [TN_F32] = {FLOAT_ROW(f32), [TN_F16] = narrow_f16, [TN_BF16] = narrow_bf16,
                [TN_F8_E4M3] = narrow_e4m3, [TN_F8_E5M2] = narrow_e5m2},
    [TN_F64] = {FLOAT_ROW(f64)},
#define FROM_COMPLEX(name) complex64_to_##name
    [TN_COMPLEX64] = {[TN_BOOL] = VC(complex64_to_bool),
                      [TN_COMPLEX64] = VC(complex64_to_complex64),
                      [TN_COMPLEX128] = VC(complex64_to_complex128),
                      CPU_REAL_DTYPES(COMPLEX_ENTRY)},
#undef FROM_COMPLEX
#define FROM_COMPLEX(name) complex128_to_##name
    [TN_COMPLEX128] = {[TN_BOOL] = VC(complex128_to_bool),
                       [TN_COMPLEX64] = VC(complex128_to_complex64),
                       [TN_COMPLEX128] = VC(complex128_to_complex128),
                       CPU_REAL_DTYPES(COMPLEX_ENTRY)},
    [TN_F8_E4M3] = {[TN_F32] = widen_e4m3, [TN_F8_E4M3] = i8_to_8},
    [TN_F8_E5M2] = {[TN_F32] = widen_e5m2, [TN_F8_E5M2] = i8_to_8},
};
