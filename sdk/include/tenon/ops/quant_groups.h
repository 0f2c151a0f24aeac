// SPDX-License-Identifier: MIT
// Groupwise quantisation: rows of codes of a few bits in words of 32, with a scale (and a
// bias) for each group of them in arrays beside, as MLX holds the weights of its models.
// For authors of kernels and tools: what each bit means, in plain C, to compare faster code
// with.
//
//   // Element i of a row: codes of 4 bits, with scale and bias of group i / 64.
//   uint32_t code = tn_groupwise_code(row, i, 4);
//   float value = tn_groupwise_affine(code, scale, bias);
//
// Arrays. A matrix [n, k] has words u32 [n, k * bits / 32] and scales [n, k / group]. Code
// i of a row is the bits i * bits .. (i + 1) * bits - 1 of its words, counted from the
// lowest bit of the first word on, so that codes of 3, 5 and 6 bits may lie in two words. k
// is a multiple of the group, and so all words of a row are full.
//
// Modes. What a code stands for:
//
//   affine   scale * code + bias; 2, 3, 4, 5, 6 or 8 bits, groups of 32, 64 or 128; scales
//            and biases are floats
//   mxfp4    2^(scale - 127) * a float of 4 bits, E2M1; groups of 32; scales are u8, E8M0
//   mxfp8    2^(scale - 127) * a float of 8 bits, E4M3; groups of 32; scales as above
//   nvfp4    scale * a float of 4 bits, E2M1; groups of 16; scales are u8, E4M3, and a
//            factor for the whole matrix may stand beside them
//
// The floats are those of the OCP Microscaling Formats (MX) Specification 1.0, but for the
// NaN of E4M3, 0x7f and 0xff, which is 480 and -480, as MLX reads it.
//
// Scales and biases lie apart, so that a kernel reads words in one piece, and the sum of a
// group is that of codes times x, which the scale multiplies once; the bias multiplies the
// sum of x of the group, which is the same for all rows of the matrix. That changes the
// order of roundings, and nothing else: what an element is, the functions here say.
//
// Words are little-endian as all numbers of the host are: the bytes of a row are its codes
// in order, where these have 4 bits the lower ones first.
//
// Threads. Pure functions and constant data: any thread. None fails.
#ifndef TENON_OPS_QUANT_GROUPS_H
#define TENON_OPS_QUANT_GROUPS_H

#include <stdint.h>
#include <tenon/ops/float8.h>
#include <tenon/ops/quant_blocks.h>

// The modes: X(name, bits and group where none are given). Their numbers are
// TN_GROUPWISE_name, in this order, from 0 on.
#define TN_GROUPWISE_MODES(X)                                                              \
    X(affine, 4, 64)                                                                       \
    X(mxfp4, 4, 32)                                                                        \
    X(mxfp8, 8, 32)                                                                        \
    X(nvfp4, 4, 16)

enum {
// The number of a mode.
#define TN_GROUPWISE_NUMBER(name, bits, group) TN_GROUPWISE_##name,
    TN_GROUPWISE_MODES(TN_GROUPWISE_NUMBER)
#undef TN_GROUPWISE_NUMBER
};

// The greatest magnitudes of E2M1 and E4M3, and their product: what the greatest magnitude
// of a whole matrix becomes in nvfp4 with a factor of the matrix.
#define TN_GROUPWISE_E2M1_MAX 6.0f
#define TN_GROUPWISE_E4M3_MAX 448.0f
#define TN_GROUPWISE_NVFP4_MAX 2688.0f

// Whether there is such a format: the bits and groups above.
static inline int32_t tn_groupwise_is_known(int64_t mode, int64_t bits, int64_t group)
{
    if (mode == TN_GROUPWISE_affine)
        return bits >= 2 && bits <= 8 && bits != 7 &&
               (group == 32 || group == 64 || group == 128);
    if (mode == TN_GROUPWISE_mxfp8)
        return bits == 8 && group == 32;
    return bits == 4 && (mode == TN_GROUPWISE_mxfp4   ? group == 32
                         : mode == TN_GROUPWISE_nvfp4 ? group == 16
                                                      : 0);
}

// Code i of a row of words, from 0 on. Reads the word in which the code begins, and the
// next one where it ends there.
static inline uint32_t tn_groupwise_code(const uint32_t *row, int64_t i, int32_t bits)
{
    int64_t at = i * bits;
    int32_t shift = (int32_t)(at % 32);
    uint32_t code = row[at / 32] >> shift;
    if (shift + bits > 32)
        code |= row[at / 32 + 1] << (32 - shift);
    return code & ((UINT32_C(1) << bits) - 1);
}

// Stores `code`, which has no more than `bits` bits, as code i of a row, whose bits there
// are 0.
static inline void tn_groupwise_put(uint32_t *row, int64_t i, int32_t bits, uint32_t code)
{
    int64_t at = i * bits;
    int32_t shift = (int32_t)(at % 32);
    row[at / 32] |= code << shift;
    if (shift + bits > 32)
        row[at / 32 + 1] |= code >> (32 - shift);
}

// The element of a code in mode affine: the product is exact for scales of f16 and bf16, of
// 11 bits and fewer; the sum is rounded.
static inline float tn_groupwise_affine(uint32_t code, float scale, float bias)
{
    float product = (float)code * scale;
    return product + bias;
}

// The value of an E4M3: as the f16 with the same bits of exponent and fraction, whose bias
// is 8 more.
static inline float tn_groupwise_e4m3(uint8_t bits)
{
    float magnitude = tn_f32_of_f16((uint16_t)((bits & 0x7f) << 7)) * 256;
    return bits & 0x80 ? -magnitude : magnitude;
}

// The float that a code is in the other modes, without its scale.
static inline float tn_groupwise_float(int64_t mode, uint32_t code)
{
    if (mode == TN_GROUPWISE_mxfp8)
        return tn_groupwise_e4m3((uint8_t)code);
    float magnitude = (float)tn_quant_mxfp4_value((int32_t)code & 7) * 0.5f;
    return code & 8 ? -magnitude : magnitude;
}

// The number that a scale of u8 is. Of E8M0 0 is 2^-127, subnormal as an f32, and 255
// infinity.
static inline float tn_groupwise_scale(int64_t mode, uint8_t scale)
{
    union {
        uint32_t u;
        float f;
    } v;
    if (mode == TN_GROUPWISE_nvfp4)
        return tn_groupwise_e4m3(scale);
    v.u = scale == 0 ? UINT32_C(0x400000) : (uint32_t)scale << 23;
    return v.f;
}

#endif // TENON_OPS_QUANT_GROUPS_H
