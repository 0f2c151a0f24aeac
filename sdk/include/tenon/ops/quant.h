// SPDX-License-Identifier: MIT
// Formats of quantised weights: blocks of a few bits an element with shared scales, as the
// files of language models (GGUF) hold them. For authors of formats, kernels and tools:
// what each byte means, in plain C, to compare faster code with.
//
//   const tn_quant_format *format = tn_quant_find("q4_0");
//   float values[TN_QUANT_MAX_BLOCK];
//   for (int64_t i = 0; i < k / format->block; i++)
//       format->decode(row + i * format->bytes, values); // values of 32 elements
//
// Arrays. A matrix [n, k] of a format is a u8 array [n, k / block * bytes], row by row,
// each row its blocks in order; so k is a multiple of the block. Which format it is stands
// beside it, as a text in small letters: the attribute `format` of pack "quant". Numbers of
// several bytes are little-endian; "f16" is a binary16 (IEEE 754-2019), of any value.
//
// Elements of a format are fractions q of a few bits, times a scale d, with or without a
// minimum m:
//
//   q4_0     d * (q - 8), 4 bits                q4_1, q5_1   d * q + m, 4 and 5 bits
//   q5_0     d * (q - 16), 5 bits               q8_0         d * q, 8 bits with a sign
//   iq4_nl   d * a value that 4 bits choose     mxfp4        2^e * a float of 4 bits
//
// Formats of 256 elements have parts of 16 or 32 elements, whose scales (and minima) are
// integers of a few bits times the block's d (and m):
//
//   q2_k, q4_k, q5_k   d * scale * q - m * minimum, 2, 4 and 5 bits
//   q3_k, q6_k         d * scale * (q - 4) and d * scale * (q - 32), 3 and 6 bits
//   iq4_xs             d * scale * a value that 4 bits choose
//
// The order of the bits is in <tenon/ops/quant_blocks.h> and <tenon/ops/quant_k.h>.
//
// Decoding is exact up to one rounding: a product of d and integers fits an f32 (of normal
// size), and one sum is rounded. So fused multiply-adds give the same bits, and so does
// every order of the factors that forms no product beyond 24 bits on the way.
//
// Rows packed for kernels. A packed format has the name of a plain one with "_r16" behind
// it, the same shape, and in each 16 rows the same bytes in another order, by which a
// processor multiplies 16 rows at once: block i of the 16 rows lies where 16 blocks are,
// from byte i * 16 * bytes on of the first row, and in these
//
//   each f16 of the head of row 0, of row 1, ... row 15; then the next f16, if there are
//   two 4 bytes of fractions of row 0, of row 1, ... row 15; then the next 4 bytes, ...
//
// as tn_quant_r16_at says. The rows beyond the last multiple of 16 lie as they were. The
// order is the same for all processors, and suits vectors of 4, 8 and 16 words, and GPUs,
// where four invocations read 16 bytes of 4 rows each.
//
//   const char *to = tn_quant_packed("q4_0", "cpu-blas"); // "q4_0_r16"
//   const char *same = tn_quant_packed("q5_0", "vulkan"); // NULL: as it is
//
// So who loads a model asks by format and backend, applies quant.pack where there is an
// answer, and gives quant.quantized_matmul the name that it got.
//
// Threads. Pure functions and constant data: any thread. None fails.
#ifndef TENON_OPS_QUANT_H
#define TENON_OPS_QUANT_H

#include <stddef.h>
#include <stdint.h>
#include <tenon/ops/quant_blocks.h>
#include <tenon/ops/quant_k.h>

// The formats: X(name, elements of a block, bytes of a block, number of the type in GGUF).
// What is known of a format in a word is here; its meaning is tn_quant_decode_NAME.
#define TN_QUANT_FORMATS(X)                                                                \
    X(q4_0, 32, 18, 2)                                                                     \
    X(q4_1, 32, 20, 3)                                                                     \
    X(q5_0, 32, 22, 6)                                                                     \
    X(q5_1, 32, 24, 7)                                                                     \
    X(q8_0, 32, 34, 8)                                                                     \
    X(q2_k, 256, 84, 10)                                                                   \
    X(q3_k, 256, 110, 11)                                                                  \
    X(q4_k, 256, 144, 12)                                                                  \
    X(q5_k, 256, 176, 13)                                                                  \
    X(q6_k, 256, 210, 14)                                                                  \
    X(iq4_nl, 32, 18, 20)                                                                  \
    X(iq4_xs, 256, 136, 23)                                                                \
    X(mxfp4, 32, 17, 39)

// The most elements, and bytes, of a block of any format, of third parties' too.
#define TN_QUANT_MAX_BLOCK 256
#define TN_QUANT_MAX_BYTES 1024

// Elements and bytes of a block, as constants: TN_QUANT_BLOCK_q4_0, TN_QUANT_BYTES_q4_0.
enum {
#define TN_QUANT_SIZES(name, block, bytes, type)                                           \
    TN_QUANT_BLOCK_##name = (block), TN_QUANT_BYTES_##name = (bytes),
    TN_QUANT_FORMATS(TN_QUANT_SIZES)
#undef TN_QUANT_SIZES
};

// The formats with packed rows: X(name of the packed one, name of the plain one, bytes of
// f16 at the beginning of a block of the plain one).
#define TN_QUANT_PACKED_FORMATS(X)                                                         \
    X(q4_0_r16, q4_0, 2)                                                                   \
    X(q4_1_r16, q4_1, 4)                                                                   \
    X(q8_0_r16, q8_0, 2)                                                                   \
    X(q4_k_r16, q4_k, 4)                                                                   \
    X(q5_k_r16, q5_k, 4)                                                                   \
    X(q6_k_r16, q6_k, 0)

// Rows that are packed together.
#define TN_QUANT_PACKED_ROWS 16

// The interface by which a plugin brings a format of its own: its query answers this id, in
// which NAME is the format's name, with a constant tn_quant_format, and TN_IFACE_LIST has
// the id. Pack "quant" asks for it where the table above does not have a name; no plugin is
// loaded before. What a name means is frozen with its first release.
//
//   "tn.quant_format.acme_3/1"     of the format "acme_3"
#define TN_IFACE_QUANT_FORMAT(name) "tn.quant_format." name "/1"

// The most bytes of a format's name.
#define TN_QUANT_MAX_NAME 31

// A format: constant data, that of the table above or a plugin's.
typedef struct tn_quant_format {
    uint32_t struct_size;
    uint32_t flags;    // 0
    const char *name;  // small letters, digits and "_": the attribute's text
    int64_t block;     // elements of a block, 1 .. TN_QUANT_MAX_BLOCK
    int64_t bytes;     // of a block, 1 .. TN_QUANT_MAX_BYTES
    int64_t gguf_type; // the type's number in GGUF; -1: it has none

    // Writes the values of one block, `block` floats. Reads `bytes` bytes, of any contents
    // and at any address. [any-thread]
    void (*decode)(const uint8_t *from, float *out);

    // Writes the block, `bytes` bytes, that is near to `block` finite floats. NULL: there
    // is no plain rule for it, and quant.quantize refuses the format. [any-thread]
    void (*encode)(const float *values, uint8_t *out);
} tn_quant_format;

// Format `index` of TN_QUANT_FORMATS; NULL beyond the last one. `encode` is NULL in these:
// the rules by which floats become blocks are those of pack "quant" (quant.quantize).
static inline const tn_quant_format *tn_quant_at(uint32_t index)
{
#define TN_QUANT_ROW(name, block, bytes, type)                                             \
    {sizeof(tn_quant_format), 0, #name, block, bytes, type, tn_quant_decode_##name, NULL},
    static const tn_quant_format formats[] = {TN_QUANT_FORMATS(TN_QUANT_ROW)};
#undef TN_QUANT_ROW
    return index < sizeof(formats) / sizeof(formats[0]) ? &formats[index] : NULL;
}

// Whether two texts are the same.
static inline int32_t tn_quant_same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

// The format of this name; NULL: the table has none. Borrows `name`.
static inline const tn_quant_format *tn_quant_find(const char *name)
{
    uint32_t i = 0;
    const tn_quant_format *format = tn_quant_at(i);
    while (format && !tn_quant_same(format->name, name))
        format = tn_quant_at(++i);
    return format;
}

// The format with this number in GGUF; NULL: the table has none.
static inline const tn_quant_format *tn_quant_of_gguf(int64_t type)
{
    uint32_t i = 0;
    const tn_quant_format *format = tn_quant_at(i);
    while (format && format->gguf_type != type)
        format = tn_quant_at(++i);
    return format;
}

// The packed format in which kernels of a backend ("cpu-blas", as tn_device_info has it)
// read a plain format fastest; NULL: the plain one itself. Borrows the texts.
static inline const char *tn_quant_packed(const char *format, const char *backend)
{
    if (tn_quant_same(backend, "vulkan") || tn_quant_same(backend, "vulkan-jit")) {
        if (!tn_quant_same(format, "q4_0") && !tn_quant_same(format, "q4_1") &&
            !tn_quant_same(format, "q8_0") && !tn_quant_same(format, "q4_k") &&
            !tn_quant_same(format, "q5_k") && !tn_quant_same(format, "q6_k"))
            return NULL;
    } else if (!tn_quant_same(backend, "cpu-blas")) {
        return NULL;
    }
#define TN_QUANT_PACKED_NAME(name, plain, head)                                            \
    if (tn_quant_same(format, #plain))                                                     \
        return #name;
    TN_QUANT_PACKED_FORMATS(TN_QUANT_PACKED_NAME)
#undef TN_QUANT_PACKED_NAME
    return NULL;
}

// The plain format of a packed one, and in *head the bytes of f16 at a block's beginning;
// NULL, and *head unchanged: `format` is not the name of a packed one. Borrows the text.
static inline const tn_quant_format *tn_quant_unpacked(const char *format, int32_t *head)
{
#define TN_QUANT_PLAIN_OF(name, plain, bytes)                                              \
    if (tn_quant_same(format, #name)) {                                                    \
        *head = (bytes);                                                                   \
        return tn_quant_find(#plain);                                                      \
    }
    TN_QUANT_PACKED_FORMATS(TN_QUANT_PLAIN_OF)
#undef TN_QUANT_PLAIN_OF
    return NULL;
}

// Where byte `byte` of a block of `bytes` bytes of row `row`, 0 .. 15, lies in the 16
// blocks of packed rows. `head`: as tn_quant_unpacked gives it.
static inline int32_t tn_quant_r16_at(int32_t head, int32_t bytes, int32_t row,
                                      int32_t byte)
{
    int32_t behind = byte - head, left = bytes - head - behind / 4 * 4;
    if (behind < 0)
        return byte / 2 * 32 + row * 2 + byte % 2;
    return head * 16 + behind / 4 * 64 + row * (left < 4 ? left : 4) + behind % 4;
}

#endif // TENON_OPS_QUANT_H
