// SPDX-License-Identifier: MIT
// Convolutions of f32 in register tiles that read images where they lie, without a matrix
// of patches. A tile is outputs of one row by filters, or filters by elements of a window.
#ifndef KERNELS_CPU_TILES_H
#define KERNELS_CPU_TILES_H

#include <stdbool.h>
#include <stdint.h>

// Most filters of a panel of weights, in any variant.
#define CPU_TILES_MOST 32

// Sums over taps: `rows` by `pixels` outputs of `columns` adjacent filters each. A tap has
// `run` adjacent elements. Strides are in elements and may be 0 or negative.
struct cpu_tiles_rows {
    const void *from;    // the first tap of the first output
    const void *weights; // a panel: `width` filters for each element of each tap
    const float *start;  // initial sums of `width` filters; NULL: 0
    float *to;
    int64_t rows, pixels, columns;
    int64_t taps_y, taps_x, run;
    int64_t tap_y, tap_x, row, pixel; // strides of `from`
    int64_t weight_y, weight_x;       // strides of `weights`, from tap to tap
    int64_t to_row, to_pixel;
    bool adds; // adds to the elements of `to`; false: overwrites them
};

typedef void cpu_tiles_rows_fn(const struct cpu_tiles_rows *p);

// Sums over images, rows and pixels of products of `lines` adjacent elements of a and
// `columns` adjacent elements of b. b is readable up to whole vectors.
struct cpu_tiles_sums {
    const float *a, *b;
    float *to;
    int64_t to_line;
    int64_t images, rows, pixels;
    int64_t a_image, a_row, a_pixel, b_image, b_row, b_pixel;
    int64_t lines, columns;
    bool adds; // adds to the elements of `to`; false: overwrites them
};

// Sums over images and pixels of one channel: products of g, which has a plane for each of
// `lines` filters, and of x at each tap of a window. Rows of g's planes are as long as the
// rows of x, padded with zeros up to whole vectors; x is readable as far as taps of the
// padding reach.
struct cpu_tiles_planes {
    const float *x, *g;
    float *sums; // a vector of partial sums for each filter and tap, added to
    int64_t images, pixels;
    int64_t x_image, g_image, g_plane;
    int64_t lines, taps_y, taps_x, tap_y, tap_x; // tap_y, tap_x: floats of x between taps
};

// The loops of one variant.
struct cpu_tiles_kernels {
    cpu_tiles_rows_fn *rows;
    void (*sums)(const struct cpu_tiles_sums *p);
    void (*planes)(const struct cpu_tiles_planes *p);
    // Packs `lines` filters, at most `width`, of `inner` adjacent elements each into a
    // panel, with zeros behind the last filter. Filters lie `line` elements apart.
    void (*pack)(float *to, const float *from, int64_t line, int64_t lines, int64_t inner);
    int64_t width; // filters of a panel, the padding included
    int64_t lane;  // elements of a vector
    int64_t tile;  // outputs of a tile, or elements of operand a
};

// Functions of the tiles of AMX for BF16.
#define CPU_TILES_AMX 32 // elements of a step, and filters of a panel
struct cpu_tiles_amx {
    // `run` is a multiple of CPU_TILES_AMX; memory of `from` behind the last output is
    // readable as if there were 31 outputs more.
    cpu_tiles_rows_fn *rows;
    // Packs one tap of a panel, padded with zeros to whole steps. Filters lie `line`
    // elements apart, the elements of a filter `step`.
    void (*pack)(uint16_t *to, const uint16_t *from, int64_t line, int64_t step,
                 int64_t lines, int64_t inner);
};
extern const struct cpu_tiles_amx cpu_tiles_amx;

#endif // KERNELS_CPU_TILES_H
