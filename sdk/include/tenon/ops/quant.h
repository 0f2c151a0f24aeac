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
// Rows packed for kernels. Of every format there is a packing (<tenon/packing.h>) that
// keeps the shape, and in each 16 rows the same bits in another order, by which a processor
// multiplies 16 rows at once: "org.tenon.q4_0_r16" of q4_0. Block i of the 16 rows lies
// where 16 blocks are, from byte i * 16 * bytes on of the first row. There each block is
// arranged first, as tn_quant_arrange does it: numbers of 16 bits come to its beginning, a
// lone byte to its end, other bytes to where kernels read them; of 32 bits with one bit an
// element, those of elements 4 apart come to one byte. Then come
//
//   each number of 16 bits of row 0, of row 1, ... row 15; then the next one, if there are
//   two; 4 bytes of row 0, of row 1, ... row 15; then the next 4 bytes, ...; what is left,
//   less than 4 bytes, of row 0, of row 1, ... row 15
//
// as tn_quant_r16_at says. The rows beyond the last multiple of 16 lie as they were. The
// order is the same for all processors, and suits vectors of 4, 8 and 16 words, and GPUs,
// where four invocations read 16 bytes of 4 rows each. Of q4_0, whose blocks of 18 bytes
// are d and 16 bytes with two elements each, 16 blocks have 288 bytes:
//
//   byte 0      d of row 0, d of row 1, ... d of row 15                        2 bytes each
//   byte 32     elements 0 to 3 and 16 to 19 of row 0, of row 1, ... row 15    4 bytes each
//   byte 96     elements 4 to 7 and 20 to 23 of row 0, of row 1, ... row 15
//   byte 160    elements 8 to 11 and 24 to 27 of row 0, ...
//   byte 224    elements 12 to 15 and 28 to 31 of row 0, ...
//
// Kernels for packed rows multiply x that is rounded to bytes by the bytes of 16 rows, and
// have the scales in one vector beside them: so scales come first and in one piece. Who
// wants the elements of a row by themselves has them by `unpack` of the packing.
//
// Threads. Pure functions and constant data: any thread. None fails.
#ifndef TENON_OPS_QUANT_H
#define TENON_OPS_QUANT_H

#include <stddef.h>
#include <stdint.h>
#include <tenon/ops/quant_blocks.h>
#include <tenon/ops/quant_k.h>
#include <tenon/packing.h>

// The formats: X(name, elements of a block, bytes of a block, number of the type in GGUF).
// The meaning of a block is tn_quant_decode_NAME.
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

// The formats with packed rows: X(name in C, name of the plain one, and of its
// tn_quant_order head, bits and pieces). TN_QUANT_R16_ID(plain) is the packing's id.
#define TN_QUANT_PACKED_FORMATS(X)                                                         \
    X(q4_0_r16, q4_0, 2, 0, 0, 18)                                                         \
    X(q4_1_r16, q4_1, 4, 0, 0, 20)                                                         \
    X(q5_0_r16, q5_0, 2, 2, 0, 22)                                                         \
    X(q5_1_r16, q5_1, 4, 4, 0, 24)                                                         \
    X(q8_0_r16, q8_0, 2, 0, 0, 34)                                                         \
    X(q2_k_r16, q2_k, 4, 0, 80, 4, 0, 80)                                                  \
    X(q3_k_r16, q3_k, 2, 0, 108, 2, 96, 12, 0, 96)                                         \
    X(q4_k_r16, q4_k, 4, 0, 0, 144)                                                        \
    X(q5_k_r16, q5_k, 4, 0, 0, 176)                                                        \
    X(q6_k_r16, q6_k, 2, 0, 208, 2, 192, 16, 128, 32, 0, 64, 160, 32, 64, 64)              \
    X(iq4_nl_r16, iq4_nl, 2, 0, 0, 18)                                                     \
    X(iq4_xs_r16, iq4_xs, 4, 0, 0, 136)                                                    \
    X(mxfp4_r16, mxfp4, 0, 0, 1, 16, 0, 1)

// How a block is arranged before 16 of them are laid side by side: so that a kernel reads
// forwards, with the scales first, and finds the bits of four elements that one word of
// products takes at the same position of every byte. Most formats lie so already, and have
// one piece. Reading forwards matters: a processor fetches ahead what lies ahead, and gives
// up where lines are left out and asked for later.
typedef struct tn_quant_order {
    int32_t bytes; // of a block
    int32_t head;  // bytes of numbers of 16 bits at the beginning, once arranged: 0, 2 or 4
    int32_t bits;  // where 4 bytes begin whose bits are transposed; 0: there are none
    int32_t reserved;   // 0
    int32_t pieces[12]; // of the plain block, in order: where each begins, and its bytes
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

// The id of the packing of a format's rows by 16: TN_QUANT_R16_ID(q4_0).
#define TN_QUANT_R16_ID(plain) "org.tenon." #plain "_r16"

// The plain format of a packing of 16 rows, and in *out_order how its blocks are arranged;
// NULL, and *out_order unchanged: `id` is that of no such packing. Borrows the text.
static inline const tn_quant_format *tn_quant_unpacked(const char *id,
                                                       tn_quant_order *out_order)
{
#define TN_QUANT_PLAIN_OF(name, plain, head, bits, ...)                                    \
    if (tn_quant_same(id, TN_QUANT_R16_ID(plain))) {                                       \
        const tn_quant_order order = {                                                     \
            TN_QUANT_BYTES_##plain, head, bits, 0, {__VA_ARGS__}};                         \
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

// Writes the u32 `bits` to `p`, which need not be aligned: little-endian on every host, as
// tn_quant_u32() reads it.
static inline void tn_quant_put_u32(uint8_t *p, uint32_t bits)
{
    for (int32_t i = 0; i < 4; i++)
        p[i] = (uint8_t)(bits >> 8 * i);
}

// Writes the plain block `from` to `to` as packed rows have it: `order->bytes` bytes each,
// which do not overlap. Every bit of one is a bit of the other, so that all contents of a
// block, also those that no encoder writes, survive.
static inline void tn_quant_arrange(const tn_quant_order *order, const uint8_t *from,
                                    uint8_t *to)
{
    int32_t at = 0;
    for (const int32_t *piece = order->pieces; at < order->bytes; piece += 2)
        for (int32_t i = 0; i < piece[1]; i++)
            to[at++] = from[piece[0] + i];
    if (order->bits > 0)
        tn_quant_put_u32(to + order->bits,
                         tn_quant_unshuffled(tn_quant_u32(from + order->bits), 2));
}

// Writes the arranged block `from` to `to` as a plain one: the reverse of
// tn_quant_arrange(), so that a file's bytes come back from packed rows. Both have
// `order->bytes` bytes and do not overlap.
static inline void tn_quant_restore(const tn_quant_order *order, const uint8_t *from,
                                    uint8_t *to)
{
    int32_t at = 0;
    for (const int32_t *piece = order->pieces; at < order->bytes; piece += 2)
        for (int32_t i = 0; i < piece[1]; i++)
            to[piece[0] + i] = from[at++];
    if (order->bits > 0)
        tn_quant_put_u32(to + order->bits,
                         tn_quant_unshuffled(tn_quant_u32(from + order->bits), 3));
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

// --- the packings -----------------------------------------------------------------------
//
// Each keeps the bytes of a row, and of 16 rows the bytes of these: [n, row bytes] stays
// the shape of the array. Rows behind the last 16 are packed alone, as what they are; so
// are all of a matrix of less than 16 rows. Two backends that list the same packing read
// the same bytes, and weights go from one to the other as they are.

// Bytes of rows of a packing of 16 rows: those of plain ones.
static inline int64_t tn_quant_r16_bytes(const tn_packing *self, int64_t rows,
                                         int64_t columns)
{
    const tn_quant_format *format = tn_quant_find(self->format);
    int64_t blocks = columns / format->block;
    if (blocks > INT64_MAX / format->bytes || rows > INT64_MAX / (blocks * format->bytes))
        return -1;
    return rows * blocks * format->bytes;
}

// Copies rows to the order of a packing of 16 rows, or back: what is read is left alone.
// Plainly, a byte at a time, as the definition: kernels of devices do it faster.
static inline void tn_quant_r16_move(const tn_packing *self, uint8_t *plain, int64_t rows,
                                     int64_t columns, uint8_t *packed, int32_t is_packing)
{
    tn_quant_order order = {0, 0, 0, 0, {0}};
    int64_t blocks = columns / tn_quant_unpacked(self->id, &order)->block;
    int64_t bytes = order.bytes, each = TN_QUANT_PACKED_ROWS, whole = rows / each * each;
    uint8_t arranged[TN_QUANT_MAX_BYTES] = {0};
    for (int64_t i = 0; i < whole * blocks; i++) {
        int64_t inside = i / blocks % each, first = (i / blocks - inside) * blocks;
        uint8_t *group = packed + (first + i % blocks * each) * bytes;
        if (is_packing)
            tn_quant_arrange(&order, plain + i * bytes, arranged);
        for (int32_t byte = 0; byte < order.bytes; byte++) {
            uint8_t *at = group + tn_quant_r16_at(&order, (int32_t)inside, byte);
            *(is_packing ? at : &arranged[byte]) = is_packing ? arranged[byte] : *at;
        }
        if (!is_packing)
            tn_quant_restore(&order, arranged, plain + i * bytes);
    }
    for (int64_t i = whole * blocks * bytes; i < rows * blocks * bytes; i++)
        *(is_packing ? &packed[i] : &plain[i]) = is_packing ? plain[i] : packed[i];
}

// `pack` and `unpack` of a packing of 16 rows, for TN_QUANT_R16. Both may be called with
// other columns each time, for the format of `self` alone tells what a block is.
static inline void tn_quant_r16_pack(const tn_packing *self, const uint8_t *plain,
                                     int64_t rows, int64_t columns, uint8_t *packed)
{
    tn_quant_r16_move(self, (uint8_t *)plain, rows, columns, packed, 1);
}
static inline void tn_quant_r16_unpack(const tn_packing *self, const uint8_t *packed,
                                       int64_t rows, int64_t columns, uint8_t *plain)
{
    tn_quant_r16_move(self, plain, rows, columns, (uint8_t *)packed, 0);
}

// The packing of 16 rows of a format, as an initialiser: TN_QUANT_R16(q4_0, flags), where
// flags are those of tn_packing. A backend lists what its kernels read, in the order of
// preference:
//
//   static const tn_packing packings[] = {TN_QUANT_R16(q4_0, 0), TN_QUANT_R16(q8_0, 0)};
//   static const tn_backend backend = {...
//       .packings = packings, .num_packings = 2, .packing_size = sizeof(packings[0])};
//
// It needs no interface TN_IFACE_PACKING for these: pack "quant" has them from here.
#define TN_QUANT_R16(plain, flags)                                                         \
    {                                                                                      \
        sizeof(tn_packing), flags, TN_QUANT_R16_ID(plain), #plain, TN_QUANT_PACKED_ROWS,   \
            tn_quant_r16_bytes, tn_quant_r16_pack, tn_quant_r16_unpack                     \
    }

// Packing `index` of TN_QUANT_PACKED_FORMATS; NULL beyond the last one. Its flags are 0:
// what kernels of a backend do with it is said by the record in that backend's table, which
// tn_selected_packing gives (<tenon/selected.h>).
static inline const tn_packing *tn_quant_packing_at(uint32_t index)
{
#define TN_QUANT_PACKING_ROW(name, plain, ...) TN_QUANT_R16(plain, 0),
    static const tn_packing packings[] = {TN_QUANT_PACKED_FORMATS(TN_QUANT_PACKING_ROW)};
#undef TN_QUANT_PACKING_ROW
    return index < sizeof(packings) / sizeof(packings[0]) ? &packings[index] : NULL;
}

// The packing with this id; NULL: the table has none. Borrows `id`. To pack in memory of
// one's own, such as a file that is written packed:
//
//   const tn_packing *packing = tn_quant_packing_find("org.tenon.q4_0_r16");
//   uint8_t *packed = malloc((size_t)packing->rows_bytes(packing, n, k));
//   packing->pack(packing, plain, n, k, packed); // from n * k / 32 * 18 bytes at `plain`
//
// A packing that a plugin brings is found by tn_interface_find (<tenon/tenon.h>), with
// TN_IFACE_PACKING of its id.
static inline const tn_packing *tn_quant_packing_find(const char *id)
{
    uint32_t i = 0;
    const tn_packing *packing = tn_quant_packing_at(i);
    while (packing && !tn_quant_same(packing->id, id))
        packing = tn_quant_packing_at(++i);
    return packing;
}

#endif // TENON_OPS_QUANT_H
