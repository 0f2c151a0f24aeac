// SPDX-License-Identifier: MIT
// Convolutions of f32 in register tiles that read images where they lie, without a matrix
// of patches: outputs of one row by filters, or filters by elements of a window.
#ifndef KERNELS_CPU_TILES_H
#define KERNELS_CPU_TILES_H

#include <stdbool.h>
#include <stdint.h>

// Filters of a panel of weights, at most, in any variant.
#define CPU_TILES_MOST 32

// Sums over taps: `rows` by `pixels` outputs, of each `columns` adjacent filters. A tap has
// `conv_run` adjacent elements. Strides are in elements, any, 0 and negative ones too.
struct cpu_tiles_rows {
    const void *from;    // the first tap of the first output
    const void *weights; // a panel: `width` filters for each element of each tap
    const float *start;  // what the sums of `width` filters start with; NULL: 0
    float *to;
    int64_t rows, pixels, columns;
    int64_t taps_y, taps_x, run;
    int64_t tap_y, tap_x, row, pixel; // in `from`
    int64_t weight_y, weight_x;       // in `weights`, from tap to tap
    int64_t to_row, to_pixel;
    bool adds; // to what is there
};

typedef void cpu_tiles_rows_fn(const struct cpu_tiles_rows *p);

// Sums over images, rows and pixels: of `lines` adjacent elements of a by `columns` of b,
// which is readable up to whole vectors.
struct cpu_tiles_sums {
    const float *a, *b;
    float *to;
    int64_t to_line;
    int64_t images, rows, pixels;
    int64_t a_image, a_row, a_pixel, b_image, b_row, b_pixel;
    int64_t lines, columns;
    bool adds; // to what is there
};

// Sums over images and pixels of one channel: of g, which has a plane for each of `lines`
// filters, by x at each tap of a window. Rows of planes are as long as those of x, with
// zeros behind their pixels, up to whole vectors; x is readable as far as taps of these
// reach.
struct cpu_tiles_planes {
    const float *x, *g;
    float *sums; // a vector for each filter and tap, added to: their elements are the sum
    int64_t images, pixels;
    int64_t x_image, g_image, g_plane;
    int64_t lines, taps_y, taps_x, tap_y, tap_x; // tap_y: floats of x from tap to tap
};

// The loops of one variant.
struct cpu_tiles_kernels {
    cpu_tiles_rows_fn *rows;
    void (*sums)(const struct cpu_tiles_sums *p);
    void (*planes)(const struct cpu_tiles_planes *p);
    // The panel of `lines` filters, `width` at most, of `inner` adjacent elements: `line`
    // elements from one to the next. Zeros are behind the last one.
    void (*pack)(float *to, const float *from, int64_t line, int64_t lines, int64_t inner);
    int64_t width; // of a panel: filters, the last ones of which may be zeros
    int64_t lane;  // elements of a vector
    int64_t tile;  // outputs of a tile, or elements of a
};

// Functions of the tiles of AMX for BF16.
#define CPU_TILES_AMX 32 // elements of a step, and filters of a panel
struct cpu_tiles_amx {
    // `conv_run` is a multiple of CPU_TILES_AMX; memory behind the last output is readable
    // as if there were 31 more.
    cpu_tiles_rows_fn *rows;
    // One tap of a panel: filters `line` elements apart, their elements `step`, and zeros
    // up to whole steps.
    void (*pack)(uint16_t *to, const uint16_t *from, int64_t line, int64_t step,
                 int64_t lines, int64_t inner);
};
extern const struct cpu_tiles_amx cpu_tiles_amx;

#endif // KERNELS_CPU_TILES_H
