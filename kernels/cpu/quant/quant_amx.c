// SPDX-License-Identifier: MIT
// Products with quantised weights on the tiles of AMX: 16 rows of x at a time; remaining
// rows by the kernels for AVX-512 VNNI. Weights that quant_unpack.h unpacks are a tile:
// each of its rows has four elements of 16 rows of weights. Sums of 32 products are of
// integers, so results have the same bits as other variants (Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 1, chapter 18).
#include "quant.h"
#include "cpu/instruction_sets.h"
#include "cpu/variant.h"
#include "quant_sums.h"

#define TILE 16 // rows of x in a tile

// Tile registers: sums of two tiles of rows of x; 32 elements of these two tiles and of the
// weights; 16 elements of x and of the weights.
#define SUMS 0
#define MORE_SUMS 1
#define X 2
#define MORE_X 3
#define W 4
#define HALF_X 5
#define HALF_W 6

struct tile_config { // the 64 bytes that LDTILECFG loads
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

// Callers release the tile registers at the end, which zeroes them, so that context
// switches need not save them.
static void begin_tiles(void)
{
    static const struct tile_config config = {.palette = 1,
                                              .row_bytes = {[SUMS] = 64,
                                                            [MORE_SUMS] = 64,
                                                            [X] = 32,
                                                            [MORE_X] = 32,
                                                            [W] = 64,
                                                            [HALF_X] = 16,
                                                            [HALF_W] = 64},
                                              .rows = {[SUMS] = TILE,
                                                       [MORE_SUMS] = TILE,
                                                       [X] = TILE,
                                                       [MORE_X] = TILE,
                                                       [W] = 8,
                                                       [HALF_X] = TILE,
                                                       [HALF_W] = 4}};
    _Static_assert(sizeof(config) == 64, "what LDTILECFG reads");
    _tile_loadconfig(&config);
}

// 32 elements of 16 rows of weights, and the sums of their products with rows of x: sums[0]
// over all 32, or sums[half] over each half.
struct block {
    struct unpacked w;
    words sums[2][2 * TILE];
    int64_t number; // position of the block in a row
};

// Starts the products of a block with one or two tiles of rows of x.
INLINE void start(const struct cpu_quant_product *p, const struct traits *f, int tiles,
                  const uint8_t *x, struct block *out)
{
    const int64_t row = cpu_quant_row_bytes(p->k);
    const uint8_t *first = x + 32 * out->number, *second = first + TILE * row;
    if (!f->has_halves) {
        _tile_loadd(W, out->w.bits, 64);
        _tile_zero(SUMS);
        _tile_loadd(X, first, row);
        _tile_dpbsud(SUMS, X, W);
        _tile_stored(SUMS, out->sums[0], 64);
        if (tiles > 1) {
            _tile_zero(MORE_SUMS);
            _tile_loadd(MORE_X, second, row);
            _tile_dpbsud(MORE_SUMS, MORE_X, W);
            _tile_stored(MORE_SUMS, out->sums[0] + TILE, 64);
        }
        return;
    }
    UNROLL
    for (int half = 0; half < 2; half++) {
        _tile_loadd(HALF_W, out->w.bits + 4 * half, 64);
        _tile_zero(SUMS);
        _tile_loadd(HALF_X, first + 16 * half, row);
        _tile_dpbsud(SUMS, HALF_X, HALF_W);
        _tile_stored(SUMS, out->sums[half], 64);
        if (tiles > 1) {
            _tile_zero(MORE_SUMS);
            _tile_loadd(HALF_X, second + 16 * half, row);
            _tile_dpbsud(MORE_SUMS, HALF_X, HALF_W);
            _tile_stored(MORE_SUMS, out->sums[half] + TILE, 64);
        }
    }
}

// Adds the sums of a block, with all factors, to the sums of the rows.
INLINE void finish(const struct cpu_quant_product *p, const struct traits *f, int tiles,
                   const uint8_t *x, const struct block *block, floats *sums)
{
    const int64_t row = cpu_quant_row_bytes(p->k), extra = p->k / 32 * 4;
    const uint8_t *scale = x + p->k + 4 * block->number;
    UNROLL
    for (int t = 0; t < tiles * TILE; t++, scale += row) {
        const struct part at = {NULL, scale + extra, f32_of_bits((uint32_t)word_at(scale))};
        words sum = block->sums[0][t];
        if (f->has_halves) {
            int16_t halves[2];
            memcpy(halves, at.extra, sizeof(halves));
            sum = sum_of_products(block->w.scale[0], lowered(sum, f->offset * halves[0]),
                                  block->w.scale[1],
                                  lowered(block->sums[1][t], f->offset * halves[1]));
        } else if (f->extra == EXTRA_FIRST) {
            sum = lowered(sum, -word_at(at.extra));
        }
        sums[t] = scaled(f, &block->w, &at, sum, sums[t]);
    }
}

// Computes the product of tiles of rounded rows at x and 16 rows of weights. Each block is
// started before the block before it is finished, since sums take a hundred cycles.
INLINE void multiply_tile(const struct cpu_quant_product *p, int32_t format, int tiles,
                          const uint8_t *w, const uint8_t *x, float *out)
{
    const struct traits *f = &traits_of[format];
    struct block blocks[2];
    floats sums[2 * TILE];
    int now = 0;
    for (int t = 0; t < tiles * TILE; t++)
        sums[t] = all_floats(0);
    for (int64_t b = 0; b < p->k / 32; b += f->parts, w += 16 * bytes_of[format])
        for (int half = 0; half < (f->parts + 3) / 4; half++) {
            UNROLL
            for (int i = 0; i < (f->parts < 4 ? f->parts : 4); i++, now ^= 1) {
                const int quarter = f->is_crossed ? i % 2 * 2 + i / 2 : i;
                blocks[now].number = b + 4 * half + quarter;
                unpack(format, w, 0, half, quarter, &blocks[now].w);
                start(p, f, tiles, x, &blocks[now]);
                if (b + half + i > 0)
                    finish(p, f, tiles, x, &blocks[now ^ 1], sums);
            }
        }
    if (p->k > 0)
        finish(p, f, tiles, x, &blocks[now ^ 1], sums);
    for (int t = 0; t < tiles * TILE; t++)
        store(out + t * p->out_row, sums[t]);
}

#define GROUP(name, ...)                                                                   \
    static void group_##name(const struct cpu_quant_product *p, const uint8_t *w,          \
                             float *out)                                                   \
    {                                                                                      \
        const int64_t row = cpu_quant_row_bytes(p->k);                                     \
        int64_t r = 0;                                                                     \
        for (; r + 2 * TILE <= p->rows; r += 2 * TILE)                                     \
            multiply_tile(p, CPU_QUANT_##name, 2, w, p->x + r * row,                       \
                          out + r * p->out_row);                                           \
        if (r + TILE <= p->rows)                                                           \
            multiply_tile(p, CPU_QUANT_##name, 1, w, p->x + r * row,                       \
                          out + r * p->out_row);                                           \
    }
TN_QUANT_PACKED_FORMATS(GROUP)

static void multiply_tiles(const struct cpu_quant_product *p)
{
    static group_fn *const by_format[] = {
#define ENTRY(name, ...) [CPU_QUANT_##name] = group_##name,
        TN_QUANT_PACKED_FORMATS(ENTRY)
#undef ENTRY
    };
    begin_tiles();
    multiply_groups(p, by_format[p->format]);
    _tile_release();
}

extern const struct cpu_quant_kernels cpu_quant_kernels_vnni, cpu_quant_kernels_amx;

static void quant_amx_product(const struct cpu_quant_product *p)
{
    struct cpu_quant_product rest = *p;
    int64_t whole = p->rows / TILE * TILE;
    if (whole > 0)
        multiply_tiles(p);
    rest.x += whole * cpu_quant_row_bytes(p->k);
    rest.out += whole * p->out_row;
    rest.rows -= whole;
    if (rest.rows > 0)
        cpu_quant_kernels_vnni.product(&rest);
}

static void round_row(int32_t format, const float *x, int64_t k, uint8_t *out)
{
    cpu_quant_kernels_vnni.round(format, x, k, out);
}

static void quant_amx_decode(uint32_t format, const uint8_t *from, int64_t blocks,
                             float *out)
{
    cpu_quant_kernels_vnni.decode(format, from, blocks, out);
}

const struct cpu_quant_kernels cpu_quant_kernels_amx = {
    .name = "amx",
    .needs = CPU_HAS_AVX512 | CPU_HAS_VNNI | CPU_HAS_AMX,
    .round = round_row,
    .product = quant_amx_product,
    .decode = quant_amx_decode,
};
