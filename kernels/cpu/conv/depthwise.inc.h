// SPDX-License-Identifier: MIT
// Depthwise convolutions of one dtype: see depthwise.h. Included with REAL, the dtype, and
// TABLE, the name of the loops.
//
// Vectors run over channels. Registers hold the sums of 8 pixels, so that a weight is
// loaded once for 8 products, or for the gradient of the weights the sums of 9 taps. A
// product is rounded together with its sum where the processor can (this file is compiled
// with -ffp-contract=fast), and a channel's products are added in the order of taps or
// pixels, whatever the width of vectors.
#include "variants.h"

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
typedef REAL wide __attribute__((vector_size(BYTES)));
typedef REAL narrow __attribute__((vector_size(16)));
typedef REAL one;
#define LANES(V) ((int64_t)(sizeof(V) / sizeof(REAL)))
#define INLINE static inline __attribute__((always_inline))

// --- which taps read within the source ---------------------------------------------------

static bool axis_is_inside(const struct cpu_depthwise_axis *a, int64_t output, int64_t tap)
{
    int64_t at = a->from + output * a->by_output + tap * a->by_tap;
    return at >= 0 && at < a->extent;
}

// Finds the taps [*first, *end) that read within the source for an output.
static void axis_taps(const struct cpu_depthwise_axis *a, int64_t output, int64_t *first,
                      int64_t *end)
{
    *first = 0;
    *end = a->taps;
    while (*first < *end && !axis_is_inside(a, output, *first))
        ++*first;
    while (*first < *end && !axis_is_inside(a, output, *end - 1))
        --*end;
}

// Finds the outputs [*first, *end) for which all taps read within the source.
static void axis_whole(const struct cpu_depthwise_axis *a, int64_t *first, int64_t *end)
{
    int64_t last = (a->taps - 1) * a->by_tap, low = last < 0 ? last : 0;
    int64_t before = -(a->from + low), room = a->extent - 1 - a->from - (last - low);
    *first = before > 0 ? (before + a->by_output - 1) / a->by_output : 0;
    *end = room < 0 ? 0 : room / a->by_output + 1;
    if (a->taps == 0) {
        *first = 0;
        *end = a->count;
    }
    if (*first > a->count)
        *first = a->count;
    if (*end > a->count)
        *end = a->count;
    if (*end < *first)
        *end = *first;
}

// --- sums over taps ----------------------------------------------------------------------

// Adjacent outputs that have the same taps.
struct conv_span {
    const REAL *from, *weights, *start; // for the first tap and output
    REAL *to;
    int64_t rows, columns; // numbers of taps
    int64_t from_y, from_x, weight_y, weight_x;
    int64_t from_pixel, to_pixel, start_pixel;
};

// The sums of PIXELS outputs from `pixel` on, for the channels of VECTORS vectors.
#define SUMS(V, PIXELS, VECTORS)                                                           \
    INLINE void sums_##V##_##PIXELS##_##VECTORS(const struct conv_span *s, int64_t pixel,  \
                                                int64_t channel)                           \
    {                                                                                      \
        V sum[PIXELS * VECTORS], weight, value;                                            \
        for (int64_t i = 0; i < PIXELS * VECTORS; i++) {                                   \
            sum[i] = (V){0};                                                               \
            if (s->start)                                                                  \
                memcpy(&sum[i],                                                            \
                       s->start + (pixel + i / VECTORS) * s->start_pixel + channel +       \
                           i % VECTORS * LANES(V),                                         \
                       sizeof(V));                                                         \
        }                                                                                  \
        for (int64_t y = 0; y < s->rows; y++) {                                            \
            const REAL *from = s->from + y * s->from_y + pixel * s->from_pixel + channel;  \
            const REAL *weights = s->weights + y * s->weight_y + channel;                  \
            for (int64_t x = 0; x < s->columns; x++)                                       \
                for (int64_t v = 0; v < VECTORS; v++) {                                    \
                    memcpy(&weight, weights + x * s->weight_x + v * LANES(V), sizeof(V));  \
                    for (int64_t p = 0; p < PIXELS; p++) {                                 \
                        memcpy(&value,                                                     \
                               from + x * s->from_x + p * s->from_pixel + v * LANES(V),    \
                               sizeof(V));                                                 \
                        sum[p * VECTORS + v] += value * weight;                            \
                    }                                                                      \
                }                                                                          \
        }                                                                                  \
        for (int64_t i = 0; i < PIXELS * VECTORS; i++)                                     \
            memcpy(s->to + (pixel + i / VECTORS) * s->to_pixel + channel +                 \
                       i % VECTORS * LANES(V),                                             \
                   &sum[i], sizeof(V));                                                    \
    }
// Computes at least 4 sums at a time, where there are enough channels: an addition waits
// for the one before it in the same sum.
#define PIXELS(count, vectors)                                                             \
    SUMS(wide, count, vectors)                                                             \
    SUMS(narrow, count, 1)                                                                 \
    SUMS(one, count, 1)                                                                    \
    static void pixels_##count(const struct conv_span *s, int64_t pixel, int64_t channels) \
    {                                                                                      \
        int64_t c = 0;                                                                     \
        for (; c + vectors * LANES(wide) <= channels; c += vectors * LANES(wide))          \
            sums_wide_##count##_##vectors(s, pixel, c);                                    \
        for (; c + LANES(wide) <= channels; c += LANES(wide))                              \
            sums_wide_##count##_1(s, pixel, c);                                            \
        for (; c + LANES(narrow) <= channels; c += LANES(narrow))                          \
            sums_narrow_##count##_1(s, pixel, c);                                          \
        for (; c < channels; c++)                                                          \
            sums_one_##count##_1(s, pixel, c);                                             \
    }
SUMS(wide, 4, 1)
SUMS(wide, 1, 1)
PIXELS(8, 1)
PIXELS(4, 2)
PIXELS(1, 8)
#undef PIXELS
#undef SUMS

static void span_run(const struct conv_span *s, int64_t pixels, int64_t channels)
{
    int64_t at = 0;
    for (; at + 8 <= pixels; at += 8)
        pixels_8(s, at, channels);
    for (; at + 4 <= pixels; at += 4)
        pixels_4(s, at, channels);
    for (; at < pixels; at++)
        pixels_1(s, at, channels);
}

static void depthwise_row(const struct cpu_depthwise *p, const struct cpu_depthwise_axis *y,
                          const struct cpu_depthwise_axis *x, int64_t row)
{
    int64_t top, bottom, left, right, first, end, next, to = y->first + row * y->step;
    const REAL *from = p->from, *weights = p->weights, *start = p->start;
    struct conv_span s = {
        .from_y = y->by_tap * p->from_row,
        .from_x = x->by_tap * p->from_pixel,
        .weight_y = y->tap_step * p->window * p->channels,
        .weight_x = x->tap_step * p->channels,
        .from_pixel = x->by_output * p->from_pixel,
        .to_pixel = x->step * p->to_pixel,
        .start_pixel = x->step * p->start_pixel,
    };
    axis_taps(y, row, &top, &bottom);
    axis_whole(x, &first, &end);
    s.rows = bottom - top;
    for (int64_t i = 0; i < x->count; i = next) {
        next = i == first && first < end ? end : i + 1;
        axis_taps(x, i, &left, &right);
        int64_t pixel = x->first + i * x->step;
        s.columns = right - left;
        s.to = (REAL *)p->to + to * p->to_row + pixel * p->to_pixel;
        s.start = start ? start + to * p->start_row + pixel * p->start_pixel : NULL;
        if (s.rows > 0 && s.columns > 0) {
            s.from = from + (y->from + row * y->by_output + top * y->by_tap) * p->from_row +
                     (x->from + i * x->by_output + left * x->by_tap) * p->from_pixel;
            s.weights = weights + ((y->tap + top * y->tap_step) * p->window + x->tap +
                                   left * x->tap_step) *
                                      p->channels;
        }
        span_run(&s, next - i, p->channels);
    }
}

// --- sums over pixels --------------------------------------------------------------------

// Adjacent pixels of the gradient, for which the same taps read within the source.
struct conv_run {
    const REAL *x, *g;
    REAL *to;
    int64_t pixels, x_pixel, g_pixel;
    int64_t taps;
    int64_t from[CPU_DEPTHWISE_TAPS], slot[CPU_DEPTHWISE_TAPS]; // offsets in x; in `to`
};

// Sums of TAPS taps from `tap` on, each divided into SPLIT sums.
#define TAPS(V, TAPS, SPLIT)                                                               \
    INLINE void taps_##V##_##TAPS(const struct conv_run *r, int64_t tap, int64_t channel)  \
    {                                                                                      \
        V sum[SPLIT][TAPS], g, x;                                                          \
        const REAL *from = r->x + channel, *by = r->g + channel;                           \
        int64_t pixel = 0;                                                                 \
        for (int64_t k = 0; k < SPLIT; k++)                                                \
            for (int64_t t = 0; t < TAPS; t++)                                             \
                sum[k][t] = (V){0};                                                        \
        for (; pixel + SPLIT <= r->pixels; pixel += SPLIT)                                 \
            for (int64_t k = 0; k < SPLIT; k++) {                                          \
                memcpy(&g, by + (pixel + k) * r->g_pixel, sizeof(V));                      \
                for (int64_t t = 0; t < TAPS; t++) {                                       \
                    memcpy(&x, from + (pixel + k) * r->x_pixel + r->from[tap + t],         \
                           sizeof(V));                                                     \
                    sum[k][t] += x * g;                                                    \
                }                                                                          \
            }                                                                              \
        for (; pixel < r->pixels; pixel++) {                                               \
            memcpy(&g, by + pixel * r->g_pixel, sizeof(V));                                \
            for (int64_t t = 0; t < TAPS; t++) {                                           \
                memcpy(&x, from + pixel * r->x_pixel + r->from[tap + t], sizeof(V));       \
                sum[0][t] += x * g;                                                        \
            }                                                                              \
        }                                                                                  \
        for (int64_t t = 0; t < TAPS; t++) {                                               \
            REAL *to = r->to + r->slot[tap + t] + channel;                                 \
            memcpy(&x, to, sizeof(V));                                                     \
            for (int64_t k = 0; k < SPLIT; k++)                                            \
                x += sum[k][t];                                                            \
            memcpy(to, &x, sizeof(V));                                                     \
        }                                                                                  \
    }
#define ALL_TAPS(V)                                                                        \
    TAPS(V, 9, 1)                                                                          \
    TAPS(V, 5, 2)                                                                          \
    TAPS(V, 3, 3)                                                                          \
    TAPS(V, 1, 8)                                                                          \
    static void all_taps_##V(const struct conv_run *r, int64_t channel)                    \
    {                                                                                      \
        int64_t tap = 0;                                                                   \
        for (; tap + 9 <= r->taps; tap += 9)                                               \
            taps_##V##_9(r, tap, channel);                                                 \
        for (; tap + 5 <= r->taps; tap += 5)                                               \
            taps_##V##_5(r, tap, channel);                                                 \
        for (; tap + 3 <= r->taps; tap += 3)                                               \
            taps_##V##_3(r, tap, channel);                                                 \
        for (; tap < r->taps; tap++)                                                       \
            taps_##V##_1(r, tap, channel);                                                 \
    }
ALL_TAPS(wide)
ALL_TAPS(narrow)
ALL_TAPS(one)
#undef ALL_TAPS
#undef TAPS

static void run_sum(const struct conv_run *r, int64_t channels)
{
    int64_t c = 0;
    for (; c + LANES(wide) <= channels; c += LANES(wide))
        all_taps_wide(r, c);
    for (; c + LANES(narrow) <= channels; c += LANES(narrow))
        all_taps_narrow(r, c);
    for (; c < channels; c++)
        all_taps_one(r, c);
}

static void depthwise_sum_row(const struct cpu_depthwise_sums *p,
                              const struct cpu_depthwise_axis *y,
                              const struct cpu_depthwise_axis *x, int64_t row)
{
    int64_t top, bottom, left, right, first, end, next;
    struct conv_run r; // run_sum reads the first `taps` entries of its arrays
    r.to = p->to;
    r.x_pixel = x->by_output * p->x_pixel;
    r.g_pixel = x->step * p->g_pixel;
    axis_taps(y, row, &top, &bottom);
    axis_whole(x, &first, &end);
    for (int64_t i = 0; i < x->count && top < bottom; i = next) {
        next = i == first && first < end ? end : i + 1;
        axis_taps(x, i, &left, &right);
        r.pixels = next - i;
        r.taps = 0;
        r.g = (const REAL *)p->g + (y->first + row * y->step) * p->g_row +
              (x->first + i * x->step) * p->g_pixel;
        r.x = p->x;
        for (int64_t j = top; j < bottom; j++)
            for (int64_t k = left; k < right; k++) {
                r.from[r.taps] = (y->from + row * y->by_output + j * y->by_tap) * p->x_row +
                                 (x->from + i * x->by_output + k * x->by_tap) * p->x_pixel;
                r.slot[r.taps++] =
                    ((y->tap + j * y->tap_step) * p->window + x->tap + k * x->tap_step) *
                    p->channels;
            }
        run_sum(&r, p->channels);
    }
}

const struct cpu_depthwise_kernels TABLE = {.row = depthwise_row,
                                            .sums = depthwise_sum_row};
