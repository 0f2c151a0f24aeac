// SPDX-License-Identifier: MIT
// Conversions between element types, as <tenon/expr.h> defines CAST. Halves are widened to,
// and rounded from, f32: to nearest, ties to even, NaNs made quiet, as the instructions of
// F16C do. Floats become integers by saturation, and NaN becomes 0.
#include "variant.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

static inline float f32_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    uint32_t exponent = rest & 0x0f800000;
    uint32_t normal = rest + (112u << 23); // the bias is 127 there and 15 here
    uint32_t special = normal + (112u << 23);
    special |= (rest & 0x007fffff) != 0 ? 0x00400000 : 0;
    // A subnormal is its fraction times 2^-24: put behind 2^-14, which is taken off again.
    uint32_t small =
        bits_of_f32(f32_of_bits(rest + (113u << 23)) - f32_of_bits(113u << 23));
    uint32_t bits = exponent == 0 ? small : normal;
    bits = exponent == 0x0f800000 ? special : bits;
    return f32_of_bits(sign | bits);
}

static inline uint16_t f16_of_f32(float x)
{
    uint32_t bits = bits_of_f32(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    // Half an ulp is added, less one unless the last bit that stays is odd.
    uint32_t normal = (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    // Below 2^-14, adding 0.5 puts the last bit that stays where f32 rounds.
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
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(a + i))));
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
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(a + i),
                                                            _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++)
        out[i] = f16_of_f32(a[i]);
}

MAP1(widen_bf16, uint16_t, float, f32_of_bf16(x))
MAP1(narrow_bf16, float, uint16_t, bf16_of_f32(x))

// Floats to integers. `below` is the greatest F that T can hold; comparisons that fail for
// NaN choose an end of the range, so that what is converted is always in it.
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

// Elements that a test looks at before they are converted.
#define RANGE_BLOCK 1024

// A block whose elements are all in range, as nearly all are, is converted by one
// instruction each. The test: a float's bits without its sign grow with it, NaN being the
// greatest, so they less `end`, the bits of the first power of 2 that is out of range, are
// negative. For unsigned types the sign must be clear as well. The one end of a signed
// range itself fails the test; that is only slower.
#define WITHIN_SIGNED(bits, end) (((bits) << 1 >> 1) - (end))
#define WITHIN_UNSIGNED(bits, end) (((bits) - (end)) & ~(bits))
#define SATURATED_LOOP(from, F, BITS, to, T, WITHIN, end)                                  \
    static void from##_to_##to(void *out_, const void *const *in, int64_t n,               \
                               uint32_t scalars)                                           \
    {                                                                                      \
        (void)scalars;                                                                     \
        for (int64_t at = 0; at < n; at += RANGE_BLOCK) {                                  \
            int64_t count = n - at < RANGE_BLOCK ? n - at : RANGE_BLOCK;                   \
            T *out = (T *)out_ + at;                                                       \
            const F *a = (const F *)in[0] + at;                                            \
            BITS all = (BITS)-1;                                                           \
            for (int64_t i = 0; i < count; i++) {                                          \
                BITS bits = bits_of_##from(a[i]);                                          \
                all &= WITHIN(bits, end);                                                  \
            }                                                                              \
            if (all >> (8 * sizeof(BITS) - 1)) {                                           \
                VECTORIZE for (int64_t i = 0; i < count; i++)                              \
                {                                                                          \
                    out[i] = (T)a[i];                                                      \
                }                                                                          \
                continue;                                                                  \
            }                                                                              \
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

// From one type to all others; a copy is a cast to itself.
#define CASTS_TO_FLOATS(from, T)                                                           \
    MAP1(from##_to_bool, T, uint8_t, x != 0)                                               \
    MAP1(from##_to_f32, T, float, x)                                                       \
    MAP1(from##_to_f64, T, double, x)
#define CASTS_TO_INTEGERS(from, T)                                                         \
    MAP1(from##_to_i8, T, int8_t, x)                                                       \
    MAP1(from##_to_i16, T, int16_t, x)                                                     \
    MAP1(from##_to_i32, T, int32_t, x)                                                     \
    MAP1(from##_to_i64, T, int64_t, x)                                                     \
    MAP1(from##_to_u8, T, uint8_t, x)                                                      \
    MAP1(from##_to_u16, T, uint16_t, x)                                                    \
    MAP1(from##_to_u32, T, uint32_t, x)                                                    \
    MAP1(from##_to_u64, T, uint64_t, x)
CASTS_TO_FLOATS(bool, uint8_t)
CASTS_TO_INTEGERS(bool, uint8_t)
CASTS_TO_FLOATS(i8, int8_t)
CASTS_TO_INTEGERS(i8, int8_t)
CASTS_TO_FLOATS(i16, int16_t)
CASTS_TO_INTEGERS(i16, int16_t)
CASTS_TO_FLOATS(i32, int32_t)
CASTS_TO_INTEGERS(i32, int32_t)
CASTS_TO_FLOATS(i64, int64_t)
CASTS_TO_INTEGERS(i64, int64_t)
CASTS_TO_FLOATS(u8, uint8_t)
CASTS_TO_INTEGERS(u8, uint8_t)
CASTS_TO_FLOATS(u16, uint16_t)
CASTS_TO_INTEGERS(u16, uint16_t)
CASTS_TO_FLOATS(u32, uint32_t)
CASTS_TO_INTEGERS(u32, uint32_t)
CASTS_TO_FLOATS(u64, uint64_t)
CASTS_TO_INTEGERS(u64, uint64_t)
CASTS_TO_FLOATS(f32, float)
CASTS_TO_FLOATS(f64, double)

#define ROW(from)                                                                          \
    [CPU_BOOL] = from##_to_bool, [CPU_I8] = from##_to_i8, [CPU_I16] = from##_to_i16,       \
    [CPU_I32] = from##_to_i32, [CPU_I64] = from##_to_i64, [CPU_U8] = from##_to_u8,         \
    [CPU_U16] = from##_to_u16, [CPU_U32] = from##_to_u32, [CPU_U64] = from##_to_u64,       \
    [CPU_F32] = from##_to_f32, [CPU_F64] = from##_to_f64

cpu_map_fn *const V(cpu_casts)[CPU_NUM_DTYPES][CPU_NUM_DTYPES] = {
    [CPU_BOOL] = {ROW(bool)},
    [CPU_I8] = {ROW(i8)},
    [CPU_I16] = {ROW(i16)},
    [CPU_I32] = {ROW(i32)},
    [CPU_I64] = {ROW(i64)},
    [CPU_U8] = {ROW(u8)},
    [CPU_U16] = {ROW(u16)},
    [CPU_U32] = {ROW(u32)},
    [CPU_U64] = {ROW(u64)},
    [CPU_F16] = {[CPU_F32] = widen_f16, [CPU_F16] = u16_to_u16},
    [CPU_BF16] = {[CPU_F32] = widen_bf16, [CPU_BF16] = u16_to_u16},
    [CPU_F32] = {ROW(f32), [CPU_F16] = narrow_f16, [CPU_BF16] = narrow_bf16},
    [CPU_F64] = {ROW(f64)},
};
