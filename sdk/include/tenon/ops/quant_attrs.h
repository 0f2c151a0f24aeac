// SPDX-License-Identifier: MIT
// Attribute structs of the primitives of pack "quant": for plugins that bring kernels or
// rules for these primitives. Each struct is frozen with the revision of its primitives.
//
//   // In a kernel for "quant.quantized_matmul/1".
//   const tn_quant_matmul_attrs *attrs = call->attrs;
//   const tn_quant_format *format = tn_quant_find(attrs->format); // NULL: not in the table
//
// Weights are u8 arrays of rows of blocks: [..., n, row bytes] for [..., n, k]; what the
// bytes mean is in <tenon/ops/quant.h>. `format` is a name of TN_QUANT_FORMATS or the id of
// a packing (<tenon/packing.h>), or one that a plugin brings; an unknown one is
// TN_ERR_NOT_FOUND (TN_ERR_ARGUMENT where it cannot be a name), with the known names in the
// message; rows that do not consist of whole blocks are TN_ERR_ARGUMENT. Packed rows need
// rank 2 or more, as several lie together.
//
// The core fills the structs, defaults included; they are borrowed for the call, and infer
// has accepted the values.
//
// Threads. Plain data: any thread.
#ifndef TENON_OPS_QUANT_ATTRS_H
#define TENON_OPS_QUANT_ATTRS_H

#include <tenon/attr.h>
#include <tenon/types.h>

// quant.dequantize/1 (w: u8 ..., row bytes) -> ..., k: the elements that blocks stand for,
// rounded to the dtype.
typedef struct tn_quant_dequantize_attrs {
    const char *format; // required
    int64_t dtype;      // f16, bf16, f32 or f64; default f32
} tn_quant_dequantize_attrs;

// quant.quantize/1 (x: floats ..., k) -> u8 ..., row bytes: the blocks that are near to x,
// which is read as f32; k is a multiple of the block. Packed formats are refused. q4_0,
// q4_1, q5_0, q5_1, q8_0 and mxfp4 have the rules by which other programs write GGUF: the
// scale that the extreme element (of q4_1 and q5_1 the range) asks for, and the nearest
// multiples. Of the others the block of least squared error is taken that a search finds,
// which is the same on every processor; NaN counts as 0, and magnitudes beyond 2^20 as
// 2^20.
typedef struct tn_quant_quantize_attrs {
    const char *format; // required
} tn_quant_quantize_attrs;

// quant.quantized_matmul/1 (x: floats ..., k; w: u8 n, row bytes, or floats n, k) -> ...,
// n: x times the transposed matrix of w, in x's dtype. Its derivative is that for x. With
// w of floats, of x's dtype or another one, nothing is rounded but sums and the result: f32
// times f16 or bf16 has sums in f32. Only GPUs with cooperative matrices take an element of
// more than 16 rows of x as two floats of w's dtype, not where `exact` is true: what is
// left is at most 2^-16 of it with bf16, and with f16 2^-22 of it or 2^-39 of the greatest
// magnitude of its row, whichever is more.
//
// A kernel may round x to 8 bits: in each 32 elements to multiples of their greatest
// magnitude / 127, so that an element of the result is off by at most the sum over these of
// |w| * greatest magnitude / 254. Not where `exact` is true: then products are of floats,
// as in base.matmul. The Vulkan backends round x so for up to 2, 4 or 8 rows of it, by
// format, size and device, and packed rows of w; more rows, and both operands, become
// floats of 16 bits where the device has cooperative matrices of them: f16, rows of x
// scaled to its range, and from 256 rows on bfloat16, whose error is below that bound, or
// else f16, which has less error but ends at 65504. Other kernels never round x, and give
// the same with either.
typedef struct tn_quant_matmul_attrs {
    const char *format; // of w; NULL or "": floats
    int64_t exact;      // 0 or 1; default 0
} tn_quant_matmul_attrs;

// quant.normed_matmul/1 (x: floats ..., k; weight: floats k; w: u8 n, row bytes) -> ..., n:
// quant.quantized_matmul/1 of nn.rms_norm/1 of x along its last axis, in x's dtype. A
// kernel may round x times weight as it may round x there. The core makes it of these two
// where nothing else reads the norm, `exact` is false and the device has a kernel; on
// others it is made of them.
typedef struct tn_quant_normed_attrs {
    const char *format; // of w; required
    double eps;         // added to the mean of the squares; default 1e-5
} tn_quant_normed_attrs;

// quant.experts_matmul/1 (x: floats n, 1 or m, k; w: u8 experts, r, row bytes, or floats
// experts, r, k; experts: integers n, m) -> n, m, r: row (i, j) of x, or (i, 0) where m
// rows share it, times the transposed matrix experts[i, j] of w, in x's dtype; numbers of
// experts as ids of quant.quantized_take. The derivative, `exact` and kernels as those of
// quant.quantized_matmul. A kernel reads the matrices that are chosen, and no others.
typedef struct tn_quant_experts_attrs {
    const char *format; // of w; NULL or "": floats
    int64_t exact;      // 0 or 1; default 0
} tn_quant_experts_attrs;

// quant.quantized_take/1 (w: u8 n, row bytes; ids: integers ...) -> f32 ..., k: rows of w,
// as values. Negative ids count from the end, others out of range are the nearest, as of
// base.take.
typedef struct tn_quant_take_attrs {
    const char *format; // required
} tn_quant_take_attrs;

// quant.pack/1 (w: u8 ..., n, row bytes) -> u8 ..., n, bytes of a packed row: the rows in
// the order of a packing, or from a packing in the plain order, or in that of another
// packing of the same format.
typedef struct tn_quant_pack_attrs {
    const char *format; // of w; required
    const char *to;     // a packing's id, or the plain format's name; required
} tn_quant_pack_attrs;

// quant.cache_update/1 (cache: floats slots, groups, capacity, width; rows: floats
// sequences, groups, count, width; positions: integers sequences; slots: integers
// sequences) -> as cache: the cache with row j of sequence i at position positions[i] + j
// of slot slots[i], rounded to the cache's dtype. What lies outside of the cache is not
// written, so a position of -1 - capacity, or a slot of -1, leaves a sequence out. Of
// sequences with the same slot the last one counts. With a format the cache is u8, of rows
// of blocks as quant.quantize gives them. The output takes over the cache's memory where it
// may.
typedef struct tn_quant_cache_update_attrs {
    const char *format; // of the cache's rows; NULL: floats
} tn_quant_cache_update_attrs;

// quant.cached_attention/1 (q: floats N, H, L, E; k: slots, G, S, E; v: slots, G, S, F;
// lengths: integers N; slots: integers N) -> N, H, L, F: for each sequence what
// nn.scaled_dot_product_attention/1 gives with its lengths, over the keys and values of its
// slot, slots[i] clamped to those that there are. k and v have q's dtype, or with a format
// are u8, of rows of blocks.
typedef struct tn_quant_cached_attention_attrs {
    double scale;       // of the scores; 0: 1 / sqrt(E)
    int64_t is_causal;  // 1: a query sees keys up to its own position; default 0
    int64_t window;     // keys that a query sees up to its position; 0: all
    double soft_cap;    // scores become soft_cap * tanh(score / soft_cap); 0: they stay
    const char *format; // of the rows of k and v; NULL: floats
} tn_quant_cached_attention_attrs;

// --- groupwise quantisation ------------------------------------------------------------

// Weights as words of codes with scales (and biases) of groups in arrays beside them, in
// the modes of <tenon/ops/quant_groups.h>. The attributes `mode` (TN_GROUPWISE_...), `bits`
// and `group` are the first of each struct below; bits and group may be 0, those of the
// mode. TN_ERR_ARGUMENT: a mode without these bits and groups, words that do not fit the
// scales, biases in another mode than affine or none there, another dtype of scales.

// quant.groupwise_quantize/1 (w: floats ..., k; global_scale: f32, optional) -> u32 ..., k
// * bits / 32; scales ..., k / group; of affine biases ..., k / group: the codes that are
// near to w, which is read as f32. Scales and biases have w's dtype in mode affine, u8 in
// others. k is a multiple of the group. With global_scale, of nvfp4 alone, one element or
// one for each index of the first axes of w, scales are of w times 2688 / global_scale,
// which is the greatest magnitude of w then.
//
// affine: the scale is the range of the group over 2^bits - 1, at least 1e-7, changed so
// that the end of greater magnitude is a multiple of it, which is the bias; codes are
// nearest multiples, ties to even, of scales and biases before these are rounded to w's
// dtype. mxfp4, mxfp8: the scale is the least power of two that is not below
// the greatest magnitude over 6 or 448; nvfp4: the nearest E4M3 to that. Codes of 4 bits
// are the nearest floats, the first of two that are equally near in the order of codes; of
// 8 bits ties go to even, and magnitudes beyond 448 are 448.
typedef struct tn_groupwise_quantize_attrs {
    int64_t mode;  // default affine
    int64_t bits;  // default 0
    int64_t group; // default 0
} tn_groupwise_quantize_attrs;

// quant.groupwise_dequantize/1 (w: u32 ..., words; scales; biases: optional; global_scale:
// f32, optional) -> ..., k: the elements that codes stand for, rounded to the dtype. Its
// derivatives are those for scales and biases of floats.
typedef struct tn_groupwise_dequantize_attrs {
    int64_t mode, bits, group;
    int64_t dtype; // f16, bf16, f32 or f64; default none: that of scales, bf16 of u8 ones
} tn_groupwise_dequantize_attrs;

// quant.groupwise_matmul/1 (x: floats ..., m, k or k; w: u32 ..., n, words; scales; biases:
// optional) -> ..., m, n: x times the transposed matrix of w, or with `transpose` false,
// where w has k rows of n elements, times w. Batch axes of x and w broadcast as in
// base.matmul. The dtype is that to which x, scales and biases promote, x's with scales of
// u8. Derivatives are those for x, scales and biases. `exact` as of quant.quantized_matmul,
// but where it is false kernels round x to two bytes: 254 times finer.
typedef struct tn_groupwise_matmul_attrs {
    int64_t mode, bits, group;
    int64_t transpose; // 0 or 1; default 1
    int64_t exact;     // 0 or 1; default 0
} tn_groupwise_matmul_attrs;

// quant.groupwise_gather_matmul/1 (x: floats ..., m, k; w: u32 ..., n, words; scales;
// biases: optional; lhs_indices, rhs_indices: integers, optional) -> indices' extents, m,
// n: products of matrices of x and of w, whose batch axes count as one, with numbers as ids
// of quant.quantized_take. Both indices broadcast against each other; absent ones are 0, 1,
// ... in the batch axes of x, or of w. All else is as of quant.groupwise_matmul.
typedef struct tn_groupwise_gather_attrs {
    int64_t mode, bits, group;
    int64_t transpose; // 0 or 1; default 1
    int64_t exact;     // 0 or 1; default 0
    int64_t sorted;    // whether the given indices rise: a hint; default 0
} tn_groupwise_gather_attrs;

#endif // TENON_OPS_QUANT_ATTRS_H
