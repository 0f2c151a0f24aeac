// SPDX-License-Identifier: MIT
// nn.conv2d/1 and nn.conv2d_input/1 of f32, f16 and bf16 in register tiles. See tiles.h.
//
// Weights become panels of as many filters as a tile is wide, for each class of outputs its
// own taps, before anything is computed. An item is a band of what is written by some of
// the panels: all of them, unless there are too few bands for the threads.
#include <string.h>
#include "tiles.h"

// Least multiplications of a piece.
#define PIECE_WORK 50000
#define CAST_ELEMENTS 128 // of a filter that become floats at a time

struct tiles_run {
    struct tiles_plan t;
    const struct cpu_tiles_kernels *loops;
    const struct cpu_tiles_amx *amx; // NULL: f32 is computed
    cpu_tiles_rows_fn *rows;
    const char *w;
    const tn_tensor *bias;             // NULL: none
    int64_t taps, panels_each, panels; // of a filter; panels of a group, of all
    int64_t width, inner;   // filters of a panel; elements of a tap, up to whole steps
    int64_t panel_elements; // of `unit` bytes
    int64_t unit;
    char *weights;        // panels
    float *start;         // what sums start with; NULL: 0
    unsigned char *clips; // of each panel: whether outputs run one by one
    char *workers;
    int64_t parts; // of the panels
    uint64_t worker_bytes;
};

// --- memory ----------------------------------------------------------------------------

static uint64_t round_64(uint64_t bytes)
{
    return tn_saturated_add(bytes, 63) & ~UINT64_C(63);
}

static bool cpu_tiles_is_narrow(const struct tiles_plan *t)
{
    return t->dtype != TN_F32;
}

// Floats of a band's results, where they pass through a worker's memory.
static int64_t tile_floats(const struct tiles_plan *t, bool fused)
{
    int64_t pixels = t->images * t->band * t->cut;
    return cpu_tiles_is_narrow(t) || fused ? (pixels * t->to_channels + 15) / 16 * 16 : 0;
}

// Halves that a program takes lie behind the floats from which they are rounded.
static uint64_t cpu_tiles_bytes_of_worker(const struct tiles_plan *t, bool fused)
{
    uint64_t floats = (uint64_t)tile_floats(t, fused);
    uint64_t bytes = tn_saturated_multiply(floats, cpu_tiles_is_narrow(t) && fused ? 6 : 4);
    return tn_saturated_add(round_64(bytes),
                            (uint64_t)tiles_copy_floats(t) * sizeof(float));
}

// Panels of any variant's width: weights, starts, flags.
static uint64_t bytes_of_panels(const struct tiles_plan *t)
{
    uint64_t filters = ((uint64_t)t->out + CPU_TILES_MOST - 1) / CPU_TILES_MOST *
                       CPU_TILES_MOST * (uint64_t)t->conv.groups;
    uint64_t each = (uint64_t)(t->conv.kh * t->conv.kw * t->in);
    uint64_t floats = tn_saturated_multiply(filters, tn_saturated_add(each, 1));
    return round_64(
        tn_saturated_add(tn_saturated_multiply(floats, sizeof(float)), filters + 128));
}

// --- panels ----------------------------------------------------------------------------

// Filters [first, first + count) of the forward pass: those of the panel side by side.
static void pack_filters(const struct tiles_run *r, int64_t first, int64_t count, float *to)
{
    const int64_t n = r->taps * r->t.in, width = r->width;
    const char *from = r->w + first * n * r->t.size;
    if (r->t.dtype == TN_F32) {
        r->loops->pack(to, (const float *)(const void *)from, n, count, n);
        return;
    }
    float block[CPU_TILES_MOST * CAST_ELEMENTS];
    for (int64_t at = 0; at < n; at += CAST_ELEMENTS) {
        const int64_t part = n - at < CAST_ELEMENTS ? n - at : CAST_ELEMENTS;
        for (int64_t i = 0; i < count; i++) {
            const void *in = from + (i * n + at) * r->t.size;
            r->t.kernels->cast[r->t.dtype][TN_F32](block + i * CAST_ELEMENTS, &in, part, 0);
        }
        r->loops->pack(to + at * width, block, CAST_ELEMENTS, count, part);
    }
}

// One tap of filters [first, first + count) of a group, or of channels of its input, as AMX
// reads them.
static void pack_amx(const struct tiles_run *r, int64_t group, int64_t tap, int64_t first,
                     int64_t count, uint16_t *to)
{
    const struct cpu_conv *v = &r->t.conv;
    const int64_t filter = r->taps * v->cg;
    const uint16_t *from = (const uint16_t *)(const void *)r->w;
    from += group * v->og * filter + tap * v->cg;
    if (r->t.is_backward)
        r->amx->pack(to, from + first, 1, filter, count, v->og);
    else
        r->amx->pack(to, from + first * filter, filter, 1, count, v->cg);
}

// Channels [first, first + count) of a group's input, for one tap of the window.
static void pack_tap(const struct tiles_run *r, int64_t group, int64_t tap, int64_t first,
                     int64_t count, float *to)
{
    const struct cpu_conv *v = &r->t.conv;
    if (count < r->width)
        memset(to, 0, (size_t)(v->og * r->width) * sizeof(float));
    for (int64_t o = 0; o < v->og; o++, to += r->width) {
        const void *in =
            r->w + (((group * v->og + o) * r->taps + tap) * v->cg + first) * r->t.size;
        if (r->t.dtype == TN_F32)
            memcpy(to, in, (size_t)count * sizeof(float));
        else
            r->t.kernels->cast[r->t.dtype][TN_F32](to, &in, count, 0);
    }
}

static int64_t count_classes(const struct tiles_plan *t, int axis)
{
    const struct tiles_line *l = axis ? &t->x : &t->y;
    return !t->is_backward ? 1 : l->stride < l->in ? l->stride : l->in;
}

// Packs the taps of a panel, class after class, row by row.
static void pack_classes(const struct tiles_run *r, int64_t group, int64_t first,
                         int64_t count, char *to)
{
    for (int64_t i = 0; i < count_classes(&r->t, 0); i++)
        for (int64_t j = 0; j < count_classes(&r->t, 1); j++) {
            const struct cpu_depthwise_axis y = tiles_axis(&r->t, 0, i);
            const struct cpu_depthwise_axis x = tiles_axis(&r->t, 1, j);
            for (int64_t k = 0; k < y.taps * x.taps; k++) {
                int64_t row = y.tap + k / x.taps * y.tap_step;
                int64_t tap = row * r->t.conv.kw + x.tap + k % x.taps * x.tap_step;
                if (r->amx)
                    pack_amx(r, group, tap, first, count, (uint16_t *)(void *)to);
                else
                    pack_tap(r, group, tap, first, count, (float *)(void *)to);
                to += r->inner * r->width * r->unit;
            }
        }
}

static void pack_start(const struct tiles_run *r, int64_t panel, int64_t first,
                       int64_t count)
{
    float *start = r->start + panel * r->width;
    const void *in = (const char *)first_element(r->bias) + first * r->t.size;
    memset(start, 0, (size_t)r->width * sizeof(float));
    if (r->t.dtype == TN_F32)
        memcpy(start, in, (size_t)count * sizeof(float));
    else
        r->t.kernels->cast[r->t.dtype][TN_F32](start, &in, count, 0);
}

static void pack_panels(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct tiles_run *r = context;
    const int64_t width = r->width, out = r->t.out;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / r->panels_each, first = i % r->panels_each * width;
        const int64_t count = out - first < width ? out - first : width;
        char *to = r->weights + i * r->panel_elements * r->unit;
        if (r->t.is_backward || r->amx)
            pack_classes(r, group, first, count, to);
        else
            pack_filters(r, group * out + first, count, (float *)(void *)to);
        r->clips[i] =
            r->t.pads &&
            !(r->amx
                  ? tiles_are_finite_bf16((const uint16_t *)(void *)to, r->panel_elements)
                  : tiles_are_finite((const float *)(void *)to, r->panel_elements));
        if (r->start)
            pack_start(r, i, group * out + first, count);
    }
}

// --- a band ----------------------------------------------------------------------------

// The destination of panels: floats, `pitch` of them for each pixel.
struct tiles_target {
    float *data; // of the area's first pixel
    int64_t pitch, row;
};

// A class of the outputs of an area: those from number `first` and `left` of the class on.
struct tiles_part {
    struct cpu_depthwise_axis y, x;
    int64_t first, rows, left, pixels;
};

// The outputs of class i of an axis that lie in [low, high): the first one, and how many.
static int64_t find_outputs(int64_t step, int64_t i, int64_t low, int64_t high,
                            int64_t *first)
{
    *first = low > i ? (low - i + step - 1) / step : 0;
    const int64_t end = high > i ? (high - i + step - 1) / step : 0;
    return end > *first ? end - *first : 0;
}

static struct tiles_part cpu_tiles_find_part(const struct tiles_plan *t,
                                             const struct tiles_area *a, int64_t i,
                                             int64_t j)
{
    struct tiles_part p = {.y = tiles_axis(t, 0, i), .x = tiles_axis(t, 1, j)};
    p.rows = find_outputs(p.y.step, i, a->low, a->high, &p.first);
    p.pixels = find_outputs(p.x.step, j, a->left, a->right, &p.left);
    return p;
}

// The taps [*begin, *end) of output i that are within what is read.
static void cpu_tiles_clip(const struct cpu_depthwise_axis *a, int64_t i, int64_t *begin,
                           int64_t *end)
{
    const int64_t from = a->from + i * a->by_output;
    *begin = 0;
    *end = a->taps;
    while (*begin < *end &&
           (from + *begin * a->by_tap < 0 || from + *begin * a->by_tap >= a->extent))
        ++*begin;
    while (*begin < *end && (from + (*end - 1) * a->by_tap < 0 ||
                             from + (*end - 1) * a->by_tap >= a->extent))
        --*end;
}

// Output by output, with the taps that are within the image.
static void run_clipped(const struct tiles_run *r, const struct tiles_part *p,
                        struct cpu_tiles_rows s)
{
    const char *from = s.from, *weights = s.weights;
    float *to = s.to;
    const int64_t rows = s.rows, pixels = s.pixels;
    int64_t top, bottom, left, right;
    s.rows = s.pixels = 1;
    for (int64_t i = 0; i < rows; i++) {
        cpu_tiles_clip(&p->y, p->first + i, &top, &bottom);
        for (int64_t j = 0; j < pixels; j++) {
            cpu_tiles_clip(&p->x, p->left + j, &left, &right);
            s.taps_y = bottom - top;
            s.taps_x = right - left;
            s.from =
                from + (i * s.row + j * s.pixel + top * s.tap_y + left * s.tap_x) * r->unit;
            s.weights = weights + (top * s.weight_y + left * s.weight_x) * r->unit;
            s.to = to + i * s.to_row + j * s.to_pixel;
            r->rows(&s);
        }
    }
}

// Where taps or rows lie one behind the other, they are one.
static void cpu_tiles_join(struct cpu_tiles_rows *s)
{
    if (s->taps_x > 1 && s->tap_x == s->run) {
        s->run *= s->taps_x;
        s->taps_x = 1;
    }
    if (s->rows > 1 && s->row == s->pixels * s->pixel &&
        s->to_row == s->pixels * s->to_pixel) {
        s->pixels *= s->rows;
        s->rows = 1;
    }
}

// Computes panel `panel` for an area, whose input is `source`. `column`: position of the
// panel's results in the target.
static void cpu_tiles_run_part(const struct tiles_run *r, const struct tiles_part *p,
                               const struct tiles_area *a, int64_t panel,
                               const char *weights, const struct tiles_source *source,
                               const struct tiles_target *to, int64_t column)
{
    const struct tiles_plan *t = &r->t;
    const int64_t width = r->width, first = panel % r->panels_each * width;
    struct cpu_tiles_rows s = {
        .from = source->data +
                ((p->y.from + p->first * p->y.by_output - source->first) * source->row +
                 (p->x.from + p->left * p->x.by_output - source->left) * source->pixel +
                 panel / r->panels_each * t->in) *
                    r->unit,
        .weights = weights,
        .start = r->start ? r->start + panel * width : NULL,
        .to = to->data + (p->y.first + p->first * p->y.step - a->low) * to->row +
              (p->x.first + p->left * p->x.step - a->left) * to->pitch + column,
        .rows = p->rows,
        .pixels = p->pixels,
        .columns = t->out - first < width ? t->out - first : width,
        .taps_y = p->y.taps,
        .taps_x = p->x.taps,
        .run = r->inner,
        .tap_y = p->y.by_tap * source->row,
        .tap_x = p->x.by_tap * source->pixel,
        .row = p->y.by_output * source->row,
        .pixel = p->x.by_output * source->pixel,
        .weight_y = p->x.taps * r->inner * width,
        .weight_x = r->inner * width,
        .to_row = p->y.step * to->row,
        .to_pixel = p->x.step * to->pitch,
    };
    if (r->clips[panel]) {
        run_clipped(r, p, s);
        return;
    }
    cpu_tiles_join(&s);
    r->rows(&s);
}

struct tiles_band {
    struct tiles_area of;
    int64_t first, end; // panels
};

// Where the filters of a panel begin, among all.
static int64_t column_of(const struct tiles_run *r, int64_t panel)
{
    const int64_t first = panel % r->panels_each * r->width;
    return panel / r->panels_each * r->t.out + (first < r->t.out ? first : r->t.out);
}

// Copies of the band's images lie one behind the other, as do the targets'.
static void run_panels(const struct tiles_run *r, const struct tiles_band *b, float *copies,
                       const struct tiles_target *to)
{
    const struct tiles_plan *t = &r->t;
    const int64_t rows = b->of.high - b->of.low, begin = column_of(r, b->first);
    struct tiles_source source = {0};
    char *memory = (char *)copies;
    int64_t each = 0;
    for (int64_t n = 0; n < b->of.images; n++, memory += each * r->unit) {
        tiles_find(t, b->of.image + n, &b->of, memory, &source);
        each = source.size;
    }
    const int64_t image = t->copies ? each : t->from_rows * source.row;
    const char *last = source.data;
    const int64_t tap = r->inner * r->width * r->unit;
    int64_t row = 0; // taps of all classes along x
    for (int64_t j = 0; j < count_classes(t, 1); j++)
        row += tiles_axis(t, 1, j).taps;
    for (int64_t i = 0; i < count_classes(t, 0); i++)
        for (int64_t panel = b->first; panel < b->end; panel++) {
            const char *weights = r->weights + panel * r->panel_elements * r->unit;
            // Classes before this one have whole rows of taps.
            for (int64_t k = 0; k < i; k++)
                weights += tiles_axis(t, 0, k).taps * row * tap;
            for (int64_t j = 0; j < count_classes(t, 1); j++) {
                const struct tiles_part p = cpu_tiles_find_part(t, &b->of, i, j);
                for (int64_t n = 0; n < b->of.images; n++) {
                    source.data = last - (b->of.images - 1 - n) * image * r->unit;
                    cpu_tiles_run_part(r, &p, &b->of, panel, weights, &source,
                                       &(struct tiles_target){to->data + n * rows * to->row,
                                                              to->pitch, to->row},
                                       column_of(r, panel) - begin);
                }
                weights += p.y.taps * p.x.taps * tap;
            }
        }
}

// Brings `count` pixels from number `first` on, of columns [begin, end), to where they
// belong.
static void cpu_tiles_finish(const struct tiles_run *r, float *values, int64_t first,
                             int64_t count, int64_t begin, int64_t end, uint32_t worker)
{
    const struct tiles_plan *t = &r->t;
    const int64_t all = t->to_channels, n = end - begin;
    const int64_t step = n == all ? count : 1;
    char *rounded = (char *)(values + tile_floats(t, true));
    for (int64_t i = 0; i < count; i += step) {
        const int64_t at = (first + i) * all + begin;
        const void *in = values + i * n;
        char *to = t->to ? t->to + at * t->size : rounded;
        if (cpu_tiles_is_narrow(t)) {
            t->kernels->cast[TN_F32][t->dtype](to, &in, step * n, 0);
            in = to;
        }
        if (!t->to)
            t->call->store(t->call, 0, at, step * n, (void *)(uintptr_t)in, worker);
    }
}

static void run_band(const struct tiles_run *r, const struct tiles_band *b, uint32_t worker)
{
    const struct tiles_plan *t = &r->t;
    char *memory = r->workers + worker * r->worker_bytes;
    float *copies = (float *)(void *)memory, *tile = copies + tiles_copy_floats(t);
    const struct tiles_area *a = &b->of;
    const int64_t begin = column_of(r, b->first), row = a->right - a->left;
    const int64_t end = b->end == r->panels ? t->to_channels : column_of(r, b->end);
    const int64_t pixel = (a->image * t->to_rows + a->low) * t->to_row + a->left;
    if (t->to && !cpu_tiles_is_narrow(t)) {
        float *to = (float *)(void *)t->to + pixel * t->to_channels + begin;
        run_panels(r, b, copies,
                   &(struct tiles_target){to, t->to_channels, t->to_row * t->to_channels});
        return;
    }
    run_panels(r, b, copies,
               &(struct tiles_target){tile, end - begin, row * (end - begin)});
    cpu_tiles_finish(r, tile, pixel, a->images * (a->high - a->low) * row, begin, end,
                     worker);
}

static void cpu_tiles_run_items(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct tiles_run *r = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t part = i % r->parts, number = i / r->parts;
        struct tiles_band b = {.of = tiles_area(&r->t, number),
                               .first = part * r->panels / r->parts,
                               .end = (part + 1) * r->panels / r->parts};
        run_band(r, &b, worker);
    }
}

// --- launches --------------------------------------------------------------------------

// Cuts smaller bands, and then parts of the panels, if threads would have no work.
static void cpu_tiles_divide(struct tiles_run *r, int64_t threads)
{
    struct tiles_plan *t = &r->t;
    int64_t wanted = 6 * threads, pixels = t->conv.n * t->to_rows * t->to_row / wanted;
    if (threads > 1 && tiles_count_bands(t) < wanted)
        tiles_cut(t, pixels > TILES_LEAST_PIXELS ? pixels : TILES_LEAST_PIXELS);
    int64_t bands = tiles_count_bands(t);
    r->parts = threads > 1 && bands < 2 * threads ? (2 * threads + bands - 1) / bands : 1;
    r->parts = r->parts < r->panels ? r->parts : r->panels;
}

// Chooses BF16 on AMX if the processor has it, else f32 in registers.
static void choose_loops(struct tiles_run *r)
{
    struct tiles_plan *t = &r->t;
    r->amx = tiles_can_keep(t) ? tiles_amx_variant(t->call) : NULL;
    if (r->amx)
        tiles_keep(t);
    r->rows = r->amx ? r->amx->rows : r->loops->rows;
    r->unit = tiles_found_size(t);
    r->width = r->amx ? CPU_TILES_AMX : r->loops->width;
    r->inner = r->amx ? (t->in + CPU_TILES_AMX - 1) / CPU_TILES_AMX * CPU_TILES_AMX : t->in;
}

static tn_status run_tiles(const tn_cpu_call *call, struct tiles_run *r,
                           const tn_tensor *from, const tn_tensor *w, const tn_tensor *to)
{
    struct tiles_plan *t = &r->t;
    if (t->conv.n * t->to_rows * t->to_row * t->to_channels == 0)
        return TN_OK;
    t->call = call;
    t->kernels = kernel_variant(call);
    t->from = first_element(from);
    t->to = to->data ? first_element(to) : NULL;
    r->loops = t->kernels->tiles;
    r->w = first_element(w);
    choose_loops(r);
    r->taps = t->conv.kh * t->conv.kw;
    r->panels_each = (t->out + r->width - 1) / r->width;
    r->panels = r->panels_each * t->conv.groups;
    r->panel_elements = r->taps * r->inner * r->width;
    r->weights = call->scratch;
    float *behind = (float *)(void *)(r->weights + r->panels * r->panel_elements * r->unit);
    r->start = r->bias ? behind : NULL;
    r->clips = (unsigned char *)(behind + r->panels * r->width);
    r->workers = (char *)call->scratch + bytes_of_panels(t);
    tiles_cut(t, TILES_PIXELS);
    r->worker_bytes = cpu_tiles_bytes_of_worker(t, !t->to);
    cpu_tiles_divide(r, call->num_threads);
    call->parallel_for(call, r->panels, 1 + 16384 / (r->panel_elements + 1), pack_panels,
                       r);
    int64_t items = tiles_count_bands(t) * r->parts;
    int64_t work = t->conv.pixels * t->conv.k * t->conv.o / items;
    call->parallel_for(call, items, 1 + PIECE_WORK / (work + 1), cpu_tiles_run_items, r);
    return TN_OK;
}

static uint64_t cpu_tiles_scratch(struct tiles_plan *t, const tn_kernel_query *query)
{
    const bool fused = query->fused != 0;
    tiles_cut(t, TILES_PIXELS);
    uint64_t each = cpu_tiles_bytes_of_worker(t, fused), kept = 0;
    // The processor's loops are not known here.
    if (tiles_can_keep(t)) {
        tiles_keep(t);
        tiles_cut(t, TILES_PIXELS);
        kept = cpu_tiles_bytes_of_worker(t, fused);
    }
    return tn_saturated_add(
        bytes_of_panels(t),
        tn_saturated_multiply(each > kept ? each : kept, query->num_workers));
}

static tn_status tiles_conv2d(const tn_cpu_call *call)
{
    const tn_tensor *in = call->inputs, *out = &call->outputs[0];
    struct tiles_run r = {.bias = call->num_inputs > 2 && in[2].data ? &in[2] : NULL};
    tiles_read(call->attrs, &in[0].layout, &in[1].layout, &out->layout, false, &r.t);
    return run_tiles(call, &r, &in[0], &in[1], out);
}

static tn_status tiles_conv2d_input(const tn_cpu_call *call)
{
    const tn_tensor *in = call->inputs, *out = &call->outputs[0];
    struct tiles_run r = {.bias = NULL};
    tiles_read(call->attrs, &out->layout, &in[1].layout, &in[0].layout, true, &r.t);
    return run_tiles(call, &r, &in[0], &in[1], out);
}

static void read_forward(const tn_kernel_query *query, struct tiles_plan *t)
{
    tiles_read(query->attrs, &query->inputs[0], &query->inputs[1], &query->outputs[0],
               false, t);
    tiles_cut(t, TILES_PIXELS);
}

static void read_backward(const tn_kernel_query *query, struct tiles_plan *t)
{
    tiles_read(query->attrs, &query->outputs[0], &query->inputs[1], &query->inputs[0], true,
               t);
    tiles_cut(t, TILES_PIXELS);
}

static uint64_t tiles_conv2d_scratch(const tn_kernel_query *query)
{
    struct tiles_plan t;
    read_forward(query, &t);
    return cpu_tiles_scratch(&t, query);
}

static uint64_t tiles_conv2d_input_scratch(const tn_kernel_query *query)
{
    struct tiles_plan t;
    read_backward(query, &t);
    return cpu_tiles_scratch(&t, query);
}

static int32_t tiles_conv2d_accepts(const tn_kernel_query *query)
{
    struct tiles_plan t;
    // A rule stands for the bias and for the output.
    if (query->fused & ~(UINT64_C(1) << query->num_inputs))
        return 0;
    read_forward(query, &t);
    return tiles_fit(&t);
}

// A pixel of few channels fills a small part of a vector. ms on one core of a Xeon (Emerald
// Rapids), tiles and OpenBLAS: 3 channels, 7x7, 64 filters, stride 2 of 8x224x224: 81 and
// 30; 6 channels, 5x5, 16 filters of 64x14x14: 1.2 and 0.58; 16 of each of 4 groups, 3x3 of
// 8x56x56: 4.6 and 8.1; 64, 3x3, 64 filters: 12 and 19.
static bool openblas_is_faster(const struct tiles_plan *t)
{
    return blas_open() && t->dtype == TN_F32 && t->conv.groups == 1 && t->out < 12 &&
           conv_accepts(&t->conv);
}

static int32_t tiles_conv2d_input_accepts(const tn_kernel_query *query)
{
    struct tiles_plan t;
    read_backward(query, &t);
    return tiles_fit(&t) && !openblas_is_faster(&t);
}

// --- records ---------------------------------------------------------------------------

#define FLOATS                                                                             \
    TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16), TN_NEEDS_CONTIGUOUS
static const tn_operand_rule tiles_conv2d_rules[] = {
    {FLOATS}, {FLOATS}, {FLOATS, TN_OPERAND_FUSES}};
static const tn_operand_rule tiles_conv2d_input_rules[] = {{FLOATS}};

#define RECORD(id)                                                                         \
    static const tn_cpu_kernel tiles_##id##_payload = {                                    \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = tiles_##id,                                                              \
    };                                                                                     \
    const tn_kernel id##_tiles_kernel = {                                                  \
        .struct_size = sizeof(tn_kernel),                                                  \
        .flags = TN_KERNEL_SAME_DTYPE,                                                     \
        .primitive = "nn." #id "/1",                                                       \
        .family = TN_FAMILY_CPU,                                                           \
        .name = "tiles",                                                                   \
        .priority = 720,                                                                   \
        TN_OPERANDS(tiles_##id##_rules),                                                   \
        .accepts = tiles_##id##_accepts,                                                   \
        .scratch_size = tiles_##id##_scratch,                                              \
        .payload = &tiles_##id##_payload,                                                  \
    }
RECORD(conv2d);
RECORD(conv2d_input);
#undef RECORD
