// SPDX-License-Identifier: MIT
// Convolutions in register tiles that read images where they lie
// (kernels/cpu/conv/tiles.h): what the forward pass and both gradients share.
//
// The forward pass reads x and writes the output; the gradient of the input reads the
// gradient and writes that of x, and with a stride s it is s convolutions along each axis,
// "classes", each with its own taps. Bands of rows of what is read are copied into a
// worker's memory where there is padding, where elements are halves, and where pixels lie
// so far apart that a cache has few sets for them; else they are read in place.
//
// What is copied has zeros for padding, which add nothing to a sum, unless a weight is
// infinite or not a number: its panel then runs output by output, with the taps that are
// within the image.
#ifndef CPU_BLAS_TILES_H
#define CPU_BLAS_TILES_H

#include "conv.h"

#define TILES_STRIDES 16                // the greatest stride of a gradient of the input
#define TILES_FLOATS (INT64_C(1) << 22) // the most of a worker's copy of a band
#define TILES_PIXELS 448                // of a band, about
#define TILES_LEAST_PIXELS 112          // the same where bands are few for the threads
#define TILES_BAND_FLOATS (INT64_C(1) << 17) // of a copy of a band, about

// Along one axis: what is read for rows [low, high) of what is written.
struct tiles_line {
    int64_t in, out, window, stride, padding, dilation; // `in` of x, `out` of the output
    bool is_backward;
};

struct tiles_plan {
    struct cpu_conv conv;
    const tn_cpu_call *call; // NULL: only sizes are asked for
    const struct cpu_kernels *kernels;
    tn_dtype dtype;
    int64_t size; // bytes of an element
    bool is_backward;
    struct tiles_line y, x;
    int64_t from_channels, to_channels;           // of a pixel
    int64_t in, out;                              // of a group, read and written
    int64_t from_rows, from_row, to_rows, to_row; // rows of an image, pixels of a row
    bool pads;                                    // some of what is read is padding
    bool copies;                                  // bands are copied
    bool keeps;                  // copies have the elements as they are, else floats
    int64_t left, width, pitch;  // of a copied row: first pixel, pixels, floats of one
    int64_t images, band, bands; // of a band: images, rows; bands of those images
    int64_t cut, cuts; // pixels of a row's parts, which long rows have; their number
    const char *from;
    char *to; // NULL: it passes through a program
};

// Fills *t, but for what depends on memory, from the layouts of x, the weights and the
// output. `most` rows or images are a band at most.
void tiles_read(const tn_conv2d_attrs *attrs, const tn_layout *x, const tn_layout *w,
                const tn_layout *y, bool is_backward, struct tiles_plan *t);

// Whether sizes are within what a worker's memory holds, once *t is cut.
bool tiles_fit(const struct tiles_plan *t);

// Cuts what is written into bands of about `pixels` pixels.
void tiles_cut(struct tiles_plan *t, int64_t pixels);
int64_t tiles_count_bands(const struct tiles_plan *t);

// Rows [low, high) of what is written, of each of some images, and pixels [left, right) of
// these rows: one of the parts that long rows are cut into.
struct tiles_area {
    int64_t image, images, low, high, left, right;
};
struct tiles_area tiles_area(const struct tiles_plan *t, int64_t number);

// The rows that are read for rows [low, high) of what is written: the first one, which may
// be in the padding, and how many.
int64_t tiles_rows_of(const struct tiles_line *line, int64_t low, int64_t high,
                      int64_t *first);

// BF16 copies for the tiles of AMX, whose pixels have whole steps of elements.
bool tiles_can_keep(const struct tiles_plan *t);
void tiles_keep(struct tiles_plan *t);

// Floats of a copy of one band.
int64_t tiles_copy_floats(const struct tiles_plan *t);

// The elements that an area of an image needs: copied to `memory`, or found in place.
// Strides are of elements.
struct tiles_source {
    const char *data; // pixel `left` of row `first`
    int64_t first, left, row, pixel;
    int64_t size; // elements of the copy
};
void tiles_find(const struct tiles_plan *t, int64_t image, const struct tiles_area *area,
                char *memory, struct tiles_source *out);

// Bytes of an element of a tiles_source.
static inline int64_t tiles_found_size(const struct tiles_plan *t)
{
    return t->keeps ? t->size : (int64_t)sizeof(float);
}

// The axis of outputs r, r + stride, .. (only 0 is one of the forward pass).
struct cpu_depthwise_axis tiles_axis(const struct tiles_plan *t, int axis, int64_t r);

// Whether all of n numbers are finite.
bool tiles_are_finite(const float *x, int64_t n);
bool tiles_are_finite_bf16(const uint16_t *x, int64_t n);

#endif // CPU_BLAS_TILES_H
