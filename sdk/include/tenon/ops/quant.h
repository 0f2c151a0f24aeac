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
// it, the same shape, and in each 16 rows the same bits in another order, by which a
// processor multiplies 16 rows at once: block i of the 16 rows lies where 16 blocks are,
// from byte i * 16 * bytes on of the first row. There each block is arranged first, as
// tn_quant_arrange does it: numbers of 16 bits come to its beginning, a lone byte to its
// end, and bits that stand for single elements of 32 to those that elements 4 apart share
// a byte with. Then come
//
//   each number of 16 bits of row 0, of row 1, ... row 15; then the next one, if there are
//   two; 4 bytes of row 0, of row 1, ... row 15; then the next 4 bytes, ...; what is left,
//   less than 4 bytes, of row 0, of row 1, ... row 15
//
// as tn_quant_r16_at says. The rows beyond the last multiple of 16 lie as they were. The
// order is the same for all processors, and suits vectors of 4, 8 and 16 words.
//
//   const char *to = tn_quant_packed("q4_0", "cpu-blas"); // "q4_0_r16"
//   const char *same = tn_quant_packed("q4_0", "vulkan"); // NULL: as it is
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

// The formats with packed rows: X(name of the packed one, name of the plain one, and the
// three numbers of its tn_quant_order).
#define TN_QUANT_PACKED_FORMATS(X)                                                         \
    X(q4_0_r16, q4_0, 0, 2, 0)                                                             \
    X(q4_1_r16, q4_1, 0, 4, 0)                                                             \
    X(q5_0_r16, q5_0, 0, 2, 2)                                                             \
    X(q5_1_r16, q5_1, 0, 4, 4)                                                             \
    X(q8_0_r16, q8_0, 0, 2, 0)                                                             \
    X(q2_k_r16, q2_k, 80, 4, 0)                                                            \
    X(q3_k_r16, q3_k, 0, 0, 0)                                                             \
    X(q4_k_r16, q4_k, 0, 4, 0)                                                             \
    X(q5_k_r16, q5_k, 0, 4, 0)                                                             \
    X(q6_k_r16, q6_k, 0, 0, 0)                                                             \
    X(iq4_nl_r16, iq4_nl, 0, 2, 0)                                                         \
    X(iq4_xs_r16, iq4_xs, 0, 4, 0)                                                         \
    X(mxfp4_r16, mxfp4, 1, 0, 0)

// How a block is arranged before 16 of them are laid side by side: so that a kernel finds
// scales, and the bits of four elements that one word of products takes, at the same place
// of every row, without moving bits across bytes. A format whose blocks lie so already has
// 0, and the bytes of its scales.
typedef struct tn_quant_order {
    int32_t bytes; // of a block
    int32_t first; // the byte of the plain block that comes first; those before it go last
    int32_t head;  // bytes of numbers of 16 bits at the beginning, once arranged: 0, 2 or 4
    int32_t bits;  // where 4 bytes begin whose bits are transposed; 0: there are none
} tn_quant_order;

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
    if (!tn_quant_same(backend, "cpu-blas"))
        return NULL;
#define TN_QUANT_PACKED_NAME(name, plain, ...)                                             \
    if (tn_quant_same(format, #plain))                                                     \
        return #name;
    TN_QUANT_PACKED_FORMATS(TN_QUANT_PACKED_NAME)
#undef TN_QUANT_PACKED_NAME
    return NULL;
}

// The plain format of a packed one, and in *out_order how its blocks are arranged; NULL,
// and *out_order unchanged: `format` is not the name of a packed one. Borrows the text.
static inline const tn_quant_format *tn_quant_unpacked(const char *format,
                                                       tn_quant_order *out_order)
{
#define TN_QUANT_PLAIN_OF(name, plain, first, head, bits)                                  \
    if (tn_quant_same(format, #name)) {                                                    \
        const tn_quant_order order = {TN_QUANT_BYTES_##plain, first, head, bits};          \
        *out_order = order;                                                                \
        return tn_quant_find(#plain);                                                      \
    }
    TN_QUANT_PACKED_FORMATS(TN_QUANT_PLAIN_OF)
#undef TN_QUANT_PLAIN_OF
    return NULL;
}

// `bits` with those of `mask` exchanged with those `by` above them.
static inline uint32_t tn_quant_exchanged(uint32_t bits, uint32_t mask, uint32_t by)
{
    uint32_t differ = (bits ^ bits >> by) & mask;
    return bits ^ differ ^ differ << by;
}

// The 32 bits with the even ones in the low half and the odd ones in the high half, `times`
// times. Twice brings bit 4 * i + j, for i of 0 .. 7 and j of 0 .. 3, to 8 * j + i: of the
// elements of word i of 4 bytes, those of byte j come together. Five times changes nothing,
// so that three times more is the reverse.
static inline uint32_t tn_quant_unshuffled(uint32_t bits, int32_t times)
{
    for (int32_t i = 0; i < times; i++) {
        bits = tn_quant_exchanged(bits, 0x22222222, 1);
        bits = tn_quant_exchanged(bits, 0x0c0c0c0c, 2);
        bits = tn_quant_exchanged(bits, 0x00f000f0, 4);
        bits = tn_quant_exchanged(bits, 0x0000ff00, 8);
    }
    return bits;
}

// Writes `from` to `to` with byte `first` first, and the order's 4 bytes of bits unshuffled
// `times` times. Both have `order->bytes` bytes and do not overlap.
static inline void tn_quant_moved(const tn_quant_order *order, int32_t first, int32_t times,
                                  const uint8_t *from, uint8_t *to)
{
    for (int32_t i = 0; i < order->bytes; i++)
        to[i] = from[i + first < order->bytes ? i + first : i + first - order->bytes];
    if (order->bits == 0)
        return;
    uint32_t bits = tn_quant_unshuffled(tn_quant_u32(from + order->bits), times);
    for (int32_t i = 0; i < 4; i++)
        to[order->bits + i] = (uint8_t)(bits >> 8 * i);
}

// Writes the plain block `from` to `to` as packed rows have it. Every bit of one is a bit
// of the other, so that all contents of a block, also those that no encoder writes,
// survive.
static inline void tn_quant_arrange(const tn_quant_order *order, const uint8_t *from,
                                    uint8_t *to)
{
    tn_quant_moved(order, order->first, 2, from, to);
}

// Writes the arranged block `from` to `to` as a plain one: the reverse of
// tn_quant_arrange().
static inline void tn_quant_restore(const tn_quant_order *order, const uint8_t *from,
                                    uint8_t *to)
{
    tn_quant_moved(order, order->first ? order->bytes - order->first : 0, 3, from, to);
}

// Where byte `byte` of an arranged block of row `row`, 0 .. 15, lies in the 16 blocks of
// packed rows.
static inline int32_t tn_quant_r16_at(const tn_quant_order *order, int32_t row,
                                      int32_t byte)
{
    int32_t behind = byte - order->head;
    int32_t left = order->bytes - order->head - behind / 4 * 4;
    if (behind < 0)
        return byte / 2 * 32 + row * 2 + byte % 2;
    return order->head * 16 + behind / 4 * 64 + row * (left < 4 ? left : 4) + behind % 4;
}

#endif // TENON_OPS_QUANT_H
