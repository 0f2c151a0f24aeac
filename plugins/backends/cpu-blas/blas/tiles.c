// SPDX-License-Identifier: MIT
// Bands of convolutions in register tiles. See tiles.h.
#include "tiles.h"
#include <string.h>
#include "depthwise.h"

#define APART 512 // floats: pixels a multiple of it apart share few sets of a cache
#define ASIDE 16  // floats more between their copies

static int64_t blas_tiles_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t blas_tiles_round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static int64_t divide_down(int64_t n, int64_t by)
{
    return n >= 0 ? n / by : -((-n + by - 1) / by);
}

int64_t tiles_rows_of(const struct tiles_line *l, int64_t low, int64_t high, int64_t *first)
{
    int64_t reach = (l->window - 1) * l->dilation, last;
    if (l->is_backward) {
        *first = -divide_down(-(low + l->padding - reach), l->stride);
        last = divide_down(high - 1 + l->padding, l->stride);
    } else {
        *first = low * l->stride - l->padding;
        last = (high - 1) * l->stride - l->padding + reach;
    }
    return last >= *first ? last - *first + 1 : 0;
}

struct cpu_depthwise_axis tiles_axis(const struct tiles_plan *t, int axis, int64_t r)
{
    return t->is_backward ? depthwise_backward(&t->conv, axis, r)
                          : depthwise_forward(&t->conv, axis);
}

void tiles_read(const tn_conv2d_attrs *attrs, const tn_layout *x, const tn_layout *w,
                const tn_layout *y, bool is_backward, struct tiles_plan *t)
{
    *t = (struct tiles_plan){.dtype = x->dtype, .is_backward = is_backward};
    struct cpu_conv *v = &t->conv;
    conv_read(attrs, x, w, y, v);
    t->size = (int64_t)cpu_dtype_size(t->dtype);
    t->y = (struct tiles_line){v->h, v->oh, v->kh, v->sh, v->ph, v->dh, is_backward};
    t->x = (struct tiles_line){v->w, v->ow, v->kw, v->sw, v->pw, v->dw, is_backward};
    t->from_channels = is_backward ? v->o : v->c;
    t->to_channels = is_backward ? v->c : v->o;
    t->in = is_backward ? v->og : v->cg;
    t->out = is_backward ? v->cg : v->og;
    t->from_rows = is_backward ? v->oh : v->h;
    t->from_row = is_backward ? v->ow : v->w;
    t->to_rows = is_backward ? v->h : v->oh;
    t->to_row = is_backward ? v->w : v->ow;
    int64_t top, rows = tiles_rows_of(&t->y, 0, t->to_rows, &top);
    t->width = tiles_rows_of(&t->x, 0, t->to_row, &t->left);
    t->pitch = t->from_channels + (t->from_channels % APART == 0 ? ASIDE : 0);
    t->pads = top < 0 || t->left < 0 || top + rows > t->from_rows ||
              t->left + t->width > t->from_row;
    t->copies = t->pads || t->dtype != TN_F32 || t->pitch != t->from_channels;
    t->band = t->images = t->cuts = 1;
    t->bands = t->to_rows;
    t->cut = t->to_row;
}

// Rows that a copy has for `rows` rows of what is written, wherever these are.
static int64_t most_rows(const struct tiles_plan *t, int64_t rows)
{
    int64_t first, n = tiles_rows_of(&t->y, 0, rows, &first);
    return n + (t->is_backward ? 1 : 0);
}

// Pixels of a copied row.
static int64_t most_pixels(const struct tiles_plan *t)
{
    int64_t first, n = tiles_rows_of(&t->x, 0, t->cut, &first);
    return t->cuts == 1 ? t->width : n + (t->is_backward ? 1 : 0);
}

bool tiles_fit(const struct tiles_plan *t)
{
    uint64_t row = tn_saturated_multiply((uint64_t)most_pixels(t), (uint64_t)t->pitch);
    return tn_saturated_multiply(row, (uint64_t)most_rows(t, t->band)) <=
               (uint64_t)TILES_FLOATS &&
           (!t->is_backward ||
            (t->conv.sh <= TILES_STRIDES && t->conv.sw <= TILES_STRIDES));
}

bool tiles_can_keep(const struct tiles_plan *t)
{
    return t->dtype == TN_BF16 && t->in >= CPU_TILES_AMX / 2 &&
           (t->conv.groups == 1 || t->in % CPU_TILES_AMX == 0);
}

void tiles_keep(struct tiles_plan *t)
{
    t->keeps = t->copies = true;
    t->pitch = blas_tiles_round_up(t->from_channels, CPU_TILES_AMX);
    t->pitch += t->pitch % (2 * APART) == 0 ? CPU_TILES_AMX : 0;
}

int64_t tiles_copy_floats(const struct tiles_plan *t)
{
    if (t->keeps) {
        // As many outputs behind the last one as a tile reads.
        int64_t step = t->is_backward ? 1 : t->conv.sw;
        int64_t row = most_pixels(t) * t->pitch, rows = most_rows(t, t->band);
        return blas_tiles_round_up(t->images * blas_tiles_round_up(rows * row, 32) +
                                       32 * step * t->pitch,
                                   32) /
               2;
    }
    return t->copies
               ? t->images * blas_tiles_round_up(
                                 most_rows(t, t->band) * most_pixels(t) * t->pitch, 32)
               : 0;
}

void tiles_cut(struct tiles_plan *t, int64_t pixels)
{
    const int64_t most = t->copies ? TILES_BAND_FLOATS : INT64_MAX;
    int64_t rows = pixels / (t->to_row + 1) + 1, row;
    t->images = 1;
    t->band = blas_tiles_least(rows, t->to_rows);
    t->cuts = t->to_row > 2 * pixels ? (t->to_row + pixels - 1) / pixels : 1;
    t->cut = t->cuts > 1 ? pixels : t->to_row;
    row = most_pixels(t) * t->pitch;
    while (t->band > 1 && most_rows(t, t->band) * row > most)
        t->band = (t->band + 1) / 2;
    t->bands = t->to_rows > 0 ? (t->to_rows + t->band - 1) / t->band : 0;
    if (t->bands != 1 || t->cuts > 1)
        return;
    t->images = blas_tiles_least(rows / t->to_rows, t->conv.n);
    if (t->copies)
        t->images = blas_tiles_least(t->images, most / (most_rows(t, t->band) * row + 1));
    t->images = t->images > 1 ? t->images : 1;
}

int64_t tiles_count_bands(const struct tiles_plan *t)
{
    return (t->conv.n + t->images - 1) / t->images * t->bands * t->cuts;
}

struct tiles_area tiles_area(const struct tiles_plan *t, int64_t number)
{
    const int64_t part = number % t->cuts, band = number / t->cuts;
    const int64_t image = band / t->bands * t->images, low = band % t->bands * t->band;
    return (struct tiles_area){.image = image,
                               .images = blas_tiles_least(t->conv.n - image, t->images),
                               .low = low,
                               .high = blas_tiles_least(low + t->band, t->to_rows),
                               .left = part * t->cut,
                               .right = blas_tiles_least((part + 1) * t->cut, t->to_row)};
}

// `count` pixels at `from`, `pitch` apart at `to`, with zeros behind each.
static void copy_pixels(const struct tiles_plan *t, const char *from, int64_t count,
                        char *to)
{
    const int64_t channels = t->from_channels, pitch = t->pitch, size = tiles_found_size(t);
    const int64_t step = pitch == channels ? count * channels : channels;
    for (int64_t done = 0; done < count * channels; done += step, to += pitch * size) {
        const void *in = from + done * t->size;
        if (size == t->size)
            memcpy(to, in, (size_t)(step * size));
        else
            t->kernels->cast[t->dtype][TN_F32](to, &in, step, 0);
        if (pitch != channels)
            memset(to + channels * size, 0, (size_t)((pitch - channels) * size));
    }
}

void tiles_find(const struct tiles_plan *t, int64_t image, const struct tiles_area *area,
                char *memory, struct tiles_source *out)
{
    const int64_t rows = tiles_rows_of(&t->y, area->low, area->high, &out->first);
    const int64_t width = tiles_rows_of(&t->x, area->left, area->right, &out->left);
    const int64_t size = tiles_found_size(t), pixel = t->pitch * size, row = width * pixel;
    const char *from =
        t->from + image * t->from_rows * t->from_row * t->from_channels * t->size;
    if (!t->copies) {
        out->row = t->from_row * t->from_channels;
        out->pixel = t->from_channels;
        out->data = from + (out->first * out->row + out->left * out->pixel) * size;
        return;
    }
    out->data = memory;
    out->row = width * t->pitch;
    out->pixel = t->pitch;
    out->size = blas_tiles_round_up(rows * out->row, 32);
    const int64_t begin = out->left < 0 ? blas_tiles_least(-out->left, width) : 0;
    const int64_t inside = t->from_row - (out->left + begin);
    const int64_t count = inside < 0 ? 0 : blas_tiles_least(width - begin, inside);
    for (int64_t i = 0; i < rows; i++, memory += row) {
        const int64_t y = out->first + i;
        if (y < 0 || y >= t->from_rows) {
            memset(memory, 0, (size_t)row);
            continue;
        }
        from = t->from + ((image * t->from_rows + y) * t->from_row + out->left + begin) *
                             t->from_channels * t->size;
        memset(memory, 0, (size_t)(begin * pixel));
        copy_pixels(t, from, count, memory + begin * pixel);
        memset(memory + (begin + count) * pixel, 0,
               (size_t)((width - begin - count) * pixel));
    }
}

bool tiles_are_finite(const float *x, int64_t n)
{
    typedef uint32_t words __attribute__((vector_size(16), aligned(4), may_alias));
    const uint32_t exponent = 0x7f800000;
    words special = {0};
    uint32_t any = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const words *at = (const words *)(const void *)(x + i);
        special |= (words)((at[0] & exponent) == exponent) |
                   (words)((at[1] & exponent) == exponent);
    }
    for (int l = 0; l < 4; l++)
        any |= special[l];
    for (; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        any |= (bits & exponent) == exponent;
    }
    return !any;
}

bool tiles_are_finite_bf16(const uint16_t *x, int64_t n)
{
    uint16_t special = 0;
    for (int64_t i = 0; i < n; i++)
        special |= (x[i] & 0x7f80) == 0x7f80;
    return !special;
}
