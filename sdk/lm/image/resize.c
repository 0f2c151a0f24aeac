// SPDX-License-Identifier: MIT
// Resizing: weights of one axis, and sums along it.
#include "resize.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/vision.h>

enum { FRACTION = 22, CHANNELS = 3 };

static const double pi = 3.14159265358979323846;

// --- filters ---------------------------------------------------------------------------

static double resize_sinc(double x)
{
    return x == 0 ? 1 : sin(pi * x) / (pi * x);
}

static double resize_lanczos(double x)
{
    return x >= -3 && x < 3 ? resize_sinc(x) * resize_sinc(x / 3) : 0;
}

static double resize_bilinear(double x)
{
    return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

static double resize_bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static const struct filter {
    double (*value)(double x);
    double reach; // beyond it the filter is 0
} filters[] = {
    [TN_VISION_LANCZOS] = {resize_lanczos, 3},
    [TN_VISION_BILINEAR] = {resize_bilinear, 1},
    [TN_VISION_BICUBIC] = {resize_bicubic, 2},
};

// --- weights ---------------------------------------------------------------------------

// Weights of an axis: output i is the sum of inputs first[i] .. first[i] + count[i] - 1
// times weights from i * room on.
struct resize_weights {
    int32_t *weight;
    int64_t *first, *count;
    int64_t room;
};

static void weights_finish(struct resize_weights *w)
{
    free(w->weight);
    free(w->first);
    free(w->count);
}

// Fills the weights of output `i`: whole numbers that sum up to 1 in their unit.
static void fill_weights(struct resize_weights *w, int64_t i, const struct filter *filter,
                         int64_t from, double scale, double *scratch)
{
    double wider = scale > 1 ? scale : 1, reach = filter->reach * wider;
    double center = ((double)i + 0.5) * scale, sum = 0;
    double low = center - reach + 0.5, high = center + reach + 0.5;
    int64_t first = low < 0 ? 0 : (int64_t)low;
    int64_t end = high > (double)from ? from : (int64_t)high;
    double narrower = 1 / wider;
    for (int64_t k = first; k < end; k++) {
        scratch[k - first] = filter->value(((double)k - center + 0.5) * narrower);
        sum += scratch[k - first];
    }
    w->first[i] = first;
    w->count[i] = end - first;
    for (int64_t k = 0; k < end - first; k++) {
        double x = sum != 0 ? scratch[k] / sum : scratch[k];
        w->weight[i * w->room + k] =
            (int32_t)((x < 0 ? -0.5 : 0.5) + x * (double)(1 << FRACTION));
    }
}

static bool weights_make(struct resize_weights *w, const struct filter *filter,
                         int64_t from, int64_t to)
{
    double scale = (double)from / (double)to;
    w->room = (int64_t)ceil(filter->reach * (scale > 1 ? scale : 1)) * 2 + 1;
    w->weight = calloc((size_t)(to * w->room), sizeof(*w->weight));
    w->first = calloc((size_t)to, sizeof(*w->first));
    w->count = calloc((size_t)to, sizeof(*w->count));
    double *scratch = calloc((size_t)w->room, sizeof(*scratch));
    bool made = w->weight && w->first && w->count && scratch;
    for (int64_t i = 0; made && i < to; i++)
        fill_weights(w, i, filter, from, scale, scratch);
    free(scratch);
    if (!made)
        weights_finish(w);
    return made;
}

// --- sums ------------------------------------------------------------------------------

static uint8_t to_byte(int64_t sum)
{
    int64_t x = sum >> FRACTION;
    return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

// Computes output i of one line, whose pixels are `step` bytes apart.
static void sum_pixel(const struct resize_weights *w, int64_t i, const uint8_t *line,
                      int64_t step, uint8_t *out)
{
    const int32_t *weight = w->weight + i * w->room;
    int64_t sums[CHANNELS];
    for (int c = 0; c < CHANNELS; c++)
        sums[c] = INT64_C(1) << (FRACTION - 1);
    for (int64_t k = 0; k < w->count[i]; k++) {
        const uint8_t *pixel = line + (w->first[i] + k) * step;
        for (int c = 0; c < CHANNELS; c++)
            sums[c] += (int64_t)weight[k] * pixel[c];
    }
    for (int c = 0; c < CHANNELS; c++)
        out[c] = to_byte(sums[c]);
}

// Resizes along one axis: the vertical one if `down`.
static bool resize_axis(const struct image *from, int64_t size, bool down,
                        const struct filter *filter, struct image *out)
{
    struct resize_weights w;
    int64_t height = down ? size : from->height, width = down ? from->width : size;
    if (!weights_make(&w, filter, down ? from->height : from->width, size))
        return false;
    uint8_t *bytes = malloc((size_t)(height * width * CHANNELS));
    int64_t row = from->width * CHANNELS, step = down ? row : CHANNELS;
    for (int64_t y = 0; bytes && y < height; y++)
        for (int64_t x = 0; x < width; x++)
            sum_pixel(&w, down ? y : x, from->bytes + (down ? x * CHANNELS : y * row), step,
                      bytes + (y * width + x) * CHANNELS);
    weights_finish(&w);
    if (bytes)
        *out = (struct image){bytes, height, width};
    return bytes != NULL;
}

bool image_resize(const struct image *from, int64_t height, int64_t width, uint32_t filter,
                  struct image *out)
{
    struct image wide = {.bytes = NULL};
    const struct filter *how = &filters[filter];
    if (width != from->width && !resize_axis(from, width, false, how, &wide))
        return false;
    const struct image *behind = wide.bytes ? &wide : from;
    if (height != from->height) {
        bool made = resize_axis(behind, height, true, how, out);
        free(wide.bytes);
        return made;
    }
    if (!wide.bytes) { // neither axis changes
        size_t size = (size_t)(height * width * CHANNELS);
        wide = (struct image){malloc(size), height, width};
        if (!wide.bytes)
            return false;
        memcpy(wide.bytes, from->bytes, size);
    }
    *out = wide;
    return true;
}
