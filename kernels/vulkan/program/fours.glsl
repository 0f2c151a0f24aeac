// SPDX-License-Identifier: MIT
// Elements of dtype IN by fours, in memory and in f32. VECTORS: buffers have ELEMENTs of four;
// otherwise of one. STORE writes to a buffer `result`, STORE_TO to another one.
#define LINE_f32 vec4
#define LINE_f16 uvec2
#define LINE_bf16 uvec2
#define WIDEN_f32(w) (w)
#define WIDEN_f16(w) vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y))
#define WIDEN_bf16(w)                                                                              \
    uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u))
#define PACK_f32(v) (v)
#define PACK_f16(v)                                                                                \
    uvec2(f16_bits(v.x) | f16_bits(v.y) << 16, f16_bits(v.z) | f16_bits(v.w) << 16)
#define PACK_bf16(v)                                                                               \
    uvec2(bf16_bits(v.x) | bf16_bits(v.y) << 16, bf16_bits(v.z) | bf16_bits(v.w) << 16)
#ifdef VECTORS
#define ELEMENT PASTE(LINE_, IN)
#else
#define ELEMENT PASTE(S_, IN)
#endif

// Where element `at` of the output is written, and the three behind it that are below `end`.
#ifdef VECTORS
#define STORE_TO(buffer, at, end, x) buffer.d[(at) / 4u] = PASTE(PACK_, IN)(x)
#else
#define STORE_TO(buffer, at, end, x)                                                               \
    for (uint component = 0u; component < 4u && (at) + component < (end); component++)             \
    buffer.d[(at) + component] = PASTE(S_, IN)(PASTE(TO_, IN)((x)[component]))
#endif
#define STORE(at, end, x) STORE_TO(result, at, end, x)
