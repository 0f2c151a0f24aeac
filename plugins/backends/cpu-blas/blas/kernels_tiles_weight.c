// SPDX-License-Identifier: MIT
// nn.conv2d_weight/1 of f32, f16 and bf16 in register tiles. See tiles.h.
//
// Bands of the output's rows are dealt to chunks, by sizes alone. Each chunk is summed on
// its own, and the sums are added in order: the result does not depend on the number of
// threads. Where chunks are few for these, filters are divided among them, too.
#include <string.h>
#include "tiles.h"

#define PIECE_WORK 50000
#define CHUNK_PIXELS 512 // the least of a chunk: as many as make adding it cheap
#define MAX_CHUNKS 16
#define MAX_PARTIALS (INT64_C(32) << 20) // bytes
#define BAND_PIXELS 256
#define FILTERS 32        // the least that an item has of them
#define SLACK 32          // floats behind what vectors read
#define PLANE_PIXELS 1024 // of a band of one channel
#define PLANE_FILTERS 64  // and, at most, filters
#define PLANE_SUMS 2048   // by elements of a window
#define PLANE_LANES 16    // of a vector, at most

struct tiles_weights {
    struct tiles_plan t;
    const struct cpu_tiles_kernels *loops;
    const char *g;
    bool by_filters; // vectors run over filters, and the sums are transposed
    bool is_direct;  // the first chunk is the result
    bool by_planes;  // of one channel: vectors run over pixels
    int64_t pitch;   // floats of the gradient from pixel to pixel
    int64_t chunks, parts, elements;
    float *sums;
    char *workers, *out;
    uint64_t worker_bytes;
};

// How much of `n` elements the vectors of AVX-512 fill.
static double cpu_tiles_weight_filled(int64_t n)
{
    return (double)n / (double)((n + 15) / 16 * 16);
}

static bool cpu_tiles_weight_is_dense(const struct tiles_plan *t)
{
    return t->conv.dw == 1 && t->conv.groups == 1 && t->pitch == t->in;
}

// Floats between pixels that are copied: where many of them would share few sets of a
// cache, some more than they have.
static int64_t pitch_of(int64_t channels)
{
    return channels + (channels % 64 == 0 ? 16 : 0);
}

// One channel whose window has short rows, which would leave most of a vector empty: pixels
// of gradients become planes, whose rows are as long as those that are copied of x.
static bool has_planes(const struct tiles_weights *r)
{
    const struct tiles_plan *t = &r->t;
    const struct cpu_conv *v = &t->conv;
    return !r->by_filters && t->dtype == TN_F32 && v->c == 1 && v->o <= PLANE_FILTERS &&
           v->sh == 1 && v->sw == 1 && v->ow >= 8 && v->ow <= PLANE_PIXELS &&
           v->kw * v->o >= 8 && 2 * v->ow >= t->width && (v->kw - 1) * v->dw <= SLACK / 2 &&
           v->o * v->k <= PLANE_SUMS;
}

static void read_weight(const tn_conv2d_attrs *attrs, const tn_layout *x,
                        const tn_layout *w, const tn_layout *g, struct tiles_weights *r)
{
    struct tiles_plan *t = &r->t;
    tiles_read(attrs, x, w, g, false, t);
    const struct cpu_conv *v = &t->conv;
    t->pitch = pitch_of(v->c);
    t->copies |= t->pitch != v->c;
    r->pitch = t->dtype == TN_F32 ? pitch_of(v->o) : v->o;
    const int64_t run = cpu_tiles_weight_is_dense(t) ? v->kw * t->in : t->in;
    r->by_filters = v->og % 16 == 0 &&
                    cpu_tiles_weight_filled(v->og) > 1.2 * cpu_tiles_weight_filled(run);
    // Vectors read beyond the end of a copy, never beyond that of x.
    t->copies |= !r->by_filters && run % 16 != 0;
    r->by_planes = has_planes(r);
    t->copies |= r->by_planes;
    tiles_cut(t, r->by_planes ? PLANE_PIXELS : BAND_PIXELS);
    r->elements = v->o * v->k;
    int64_t room = MAX_PARTIALS / (r->elements * (int64_t)sizeof(float) + 1);
    r->chunks = v->pixels / CHUNK_PIXELS;
    r->chunks = r->chunks < MAX_CHUNKS ? r->chunks : MAX_CHUNKS;
    r->chunks = r->chunks < room ? r->chunks : room;
    r->chunks = r->chunks < tiles_count_bands(t) ? r->chunks : tiles_count_bands(t);
    r->chunks = r->chunks > 1 ? r->chunks : 1;
    r->is_direct = t->dtype == TN_F32 && !r->by_filters;
}

// --- memory ----------------------------------------------------------------------------

static bool copies_gradient(const struct tiles_weights *r)
{
    return r->t.dtype != TN_F32 || r->pitch != r->t.conv.o;
}

static int64_t gradient_floats(const struct tiles_weights *r)
{
    int64_t pixels = r->t.images * r->t.band * r->t.cut;
    return copies_gradient(r) ? (pixels * r->pitch + 15) / 16 * 16 : 0;
}

// Floats of a plane of `rows` rows, and of all planes of a band with their sums.
static int64_t plane_floats(const struct tiles_weights *r, int64_t rows)
{
    return (rows * r->t.width + PLANE_LANES - 1) / PLANE_LANES * PLANE_LANES;
}

static int64_t planes_floats(const struct tiles_weights *r)
{
    const struct tiles_plan *t = &r->t;
    return r->by_planes ? t->images * t->conv.o * plane_floats(r, t->band) +
                              r->elements * PLANE_LANES
                        : 0;
}

static uint64_t cpu_tiles_weight_bytes_of_worker(const struct tiles_weights *r)
{
    uint64_t floats = tn_saturated_add((uint64_t)tiles_copy_floats(&r->t) + SLACK,
                                       (uint64_t)gradient_floats(r) + SLACK);
    floats = tn_saturated_add(floats, (uint64_t)planes_floats(r));
    return tn_saturated_multiply(floats, sizeof(float));
}

static uint64_t bytes_of_sums(const struct tiles_weights *r)
{
    int64_t sums = r->is_direct ? r->chunks - 1 : r->chunks;
    // Transposed halves are floats first.
    sums += r->by_filters && r->t.dtype != TN_F32;
    uint64_t floats = tn_saturated_multiply((uint64_t)sums, (uint64_t)r->elements);
    return tn_saturated_add(tn_saturated_multiply(floats, sizeof(float)), 63) &
           ~UINT64_C(63);
}

static float *cpu_tiles_weight_sums_of(const struct tiles_weights *r, int64_t chunk)
{
    if (!r->is_direct)
        return r->sums + chunk * r->elements;
    return chunk == 0 ? (float *)(void *)r->out : r->sums + (chunk - 1) * r->elements;
}

// --- a band ----------------------------------------------------------------------------

// A band: what is read of x, and the gradient's pixels, as floats.
struct tiles_piece {
    const struct tiles_weights *r;
    struct tiles_source x; // of the first image
    const float *g;
    int64_t x_image, g_image; // floats from image to image
    struct tiles_area of;
    int64_t first, end; // filters
    float *to;
    float *planes; // of r->by_planes: sums of vectors, and planes behind them
    bool adds;
    bool clips; // products with padding are left out: 0 times infinity is no number
};

// The outputs [*low, *high) that a tap, `at` in the window, reads within the image.
static void cpu_tiles_weight_clip(const struct tiles_line *l, int64_t at, int64_t *low,
                                  int64_t *high)
{
    const int64_t from = at * l->dilation - l->padding;
    while (*low < *high && *low * l->stride + from < 0)
        ++*low;
    while (*low < *high && (*high - 1) * l->stride + from >= l->in)
        --*high;
}

// Sums filters [first, end) of a group by `run` elements of x: of a tap, or of a window's
// row.
static void sum_tap(const struct tiles_piece *p, int64_t first, int64_t end, int64_t row,
                    int64_t column, int64_t run)
{
    const struct tiles_plan *t = &p->r->t;
    const struct cpu_conv *v = &t->conv;
    int64_t low = p->of.low, high = p->of.high, left = p->of.left, right = p->of.right;
    if (p->clips) {
        cpu_tiles_weight_clip(&t->y, row, &low, &high);
        cpu_tiles_weight_clip(&t->x, column, &left, &right);
    }
    const int64_t x_row = v->sh * p->x.row, x_pixel = v->sw * p->x.pixel;
    const int64_t position = (row * v->kw + column) * v->cg, down = low - p->of.low,
                  aside = left - p->of.left;
    const float *x = (const float *)(const void *)p->x.data + row * v->dh * p->x.row +
                     column * v->dw * p->x.pixel + first / v->og * v->cg + down * x_row +
                     aside * x_pixel;
    const float *g = p->g + (down * v->ow + aside) * p->r->pitch + first;
    struct cpu_tiles_sums s = {.images = p->of.images,
                               .rows = high - low,
                               .pixels = right - left,
                               .adds = p->adds};
    if (p->r->by_filters) {
        s.a = x;
        s.b = g;
        s.to = p->to + position * v->o + first;
        s.to_line = v->o;
        s.a_image = p->x_image, s.a_row = x_row, s.a_pixel = x_pixel;
        s.b_image = p->g_image, s.b_row = v->ow * p->r->pitch, s.b_pixel = p->r->pitch;
        s.lines = run, s.columns = end - first;
    } else {
        s.a = g;
        s.b = x;
        s.to = p->to + first * v->k + position;
        s.to_line = v->k;
        s.a_image = p->g_image, s.a_row = v->ow * p->r->pitch, s.a_pixel = p->r->pitch;
        s.b_image = p->x_image, s.b_row = x_row, s.b_pixel = x_pixel;
        s.lines = end - first, s.columns = run;
    }
    p->r->loops->sums(&s);
}

static void sum_groups(const struct tiles_piece *p)
{
    const struct cpu_conv *v = &p->r->t.conv;
    const int64_t taps = cpu_tiles_weight_is_dense(&p->r->t) && !p->clips ? 1 : v->kw;
    for (int64_t at = p->first, end; at < p->end; at = end) {
        end = (at / v->og + 1) * v->og;
        end = end < p->end ? end : p->end;
        for (int64_t row = 0; row < v->kh; row++)
            for (int64_t column = 0; column < taps; column++)
                sum_tap(p, at, end, row, column, v->kw / taps * v->cg);
    }
}

// The band's gradient as floats, in place or in `memory`.
static const float *find_gradient(const struct tiles_weights *r, int64_t pixel,
                                  int64_t count, float *memory)
{
    const struct tiles_plan *t = &r->t;
    const void *in = r->g + pixel * t->conv.o * t->size;
    if (!copies_gradient(r))
        return in;
    if (t->dtype != TN_F32)
        t->kernels->cast[t->dtype][TN_F32](memory, &in, count * t->conv.o, 0);
    const int64_t o = t->conv.o;
    for (int64_t i = 0; i < count && t->dtype == TN_F32; i++) {
        float *to = memory + i * r->pitch;
        memcpy(to, (const float *)in + i * o, (size_t)o * sizeof(float));
        memset(to + o, 0, (size_t)(r->pitch - o) * sizeof(float));
    }
    return memory;
}

// Sums a band of one channel by planes, if its numbers are finite: zeros between rows add
// nothing then. `copies` are those of x, of which `size` floats an image are there.
static bool sum_by_planes(const struct tiles_piece *p, float *copies, int64_t size)
{
    const struct tiles_weights *r = p->r;
    const struct cpu_conv *v = &r->t.conv;
    const int64_t rows = p->of.high - p->of.low, width = r->t.width, o = v->o,
                  plane = plane_floats(r, rows),
                  used = (rows + (v->kh - 1) * v->dh) * width, images = p->of.images;
    for (int64_t i = 0; i < images; i++)
        memset(copies + i * size + used, 0,
               (size_t)(size - used + (i + 1 == images ? SLACK : 0)) * sizeof(float));
    if (!tiles_are_finite(copies, images * size) ||
        !tiles_are_finite(p->g, images * rows * v->ow * r->pitch))
        return false;
    float *planes = p->planes + r->elements * PLANE_LANES;
    memset(planes, 0, (size_t)(images * o * plane) * sizeof(float));
    for (int64_t i = 0; i < images * rows; i++)
        r->t.kernels->transpose[2](planes + i / rows * o * plane + i % rows * width, plane,
                                   p->g + i * v->ow * r->pitch, r->pitch, v->ow, o);
    r->loops->planes(&(struct cpu_tiles_planes){.x = copies,
                                                .g = planes,
                                                .sums = p->planes,
                                                .images = images,
                                                .pixels = plane,
                                                .x_image = size,
                                                .g_image = o * plane,
                                                .g_plane = plane,
                                                .lines = o,
                                                .taps_y = v->kh,
                                                .taps_x = v->kw,
                                                .tap_y = v->dh * width,
                                                .tap_x = v->dw});
    return true;
}

// Adds the elements of vectors to the sums of an item.
static void add_planes(const struct tiles_piece *p)
{
    const int64_t lanes = p->r->loops->lane;
    for (int64_t i = 0; i < p->r->elements; i++) {
        float sum = 0;
        for (int64_t l = 0; l < lanes; l++)
            sum += p->planes[i * lanes + l];
        p->to[i] = (p->adds ? p->to[i] : 0) + sum;
    }
}

// False: the sums are in p->planes.
static bool sum_band(const struct tiles_weights *r, int64_t number, struct tiles_piece *p,
                     char *memory)
{
    const struct tiles_plan *t = &r->t;
    const struct cpu_conv *v = &t->conv;
    float *copies = (float *)(void *)memory;
    struct tiles_source source = {0};
    const struct tiles_area a = p->of = tiles_area(t, number);
    for (int64_t i = 0, at = 0; i < a.images; i++, at += source.size) {
        tiles_find(t, a.image + i, &a, (char *)(copies + at), &source);
        if (i == 0)
            p->x = source;
    }
    const int64_t each = (a.high - a.low) * (a.right - a.left), count = a.images * each;
    p->x_image = t->copies ? source.size : v->h * v->w * v->c;
    p->g_image = each * r->pitch;
    p->g = find_gradient(r, (a.image * v->oh + a.low) * v->ow + a.left, count,
                         copies + tiles_copy_floats(t) + SLACK);
    if (r->by_planes && sum_by_planes(p, copies, source.size))
        return false;
    p->clips = t->pads && !tiles_are_finite(p->g, count * r->pitch);
    sum_groups(p);
    return true;
}

static void sum_items(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct tiles_weights *r = context;
    const int64_t all = tiles_count_bands(&r->t), o = r->t.conv.o;
    for (int64_t i = begin; i < end; i++) {
        const int64_t chunk = i / r->parts, part = i % r->parts;
        struct tiles_piece p = {.r = r,
                                .to = cpu_tiles_weight_sums_of(r, chunk),
                                .first = part * o / r->parts / 16 * 16,
                                .end = (part + 1) * o / r->parts / 16 * 16};
        p.end = part + 1 == r->parts ? o : p.end;
        char *memory = r->workers + worker * r->worker_bytes;
        if (r->by_planes) {
            p.planes = (float *)(void *)memory + tiles_copy_floats(&r->t) + SLACK +
                       gradient_floats(r) + SLACK;
            memset(p.planes, 0, (size_t)(r->elements * PLANE_LANES) * sizeof(float));
        }
        for (int64_t k = chunk * all / r->chunks; k < (chunk + 1) * all / r->chunks; k++)
            p.adds |= sum_band(r, k, &p, memory);
        if (r->by_planes)
            add_planes(&p);
    }
}

// --- the sums of chunks ----------------------------------------------------------------

// Adds elements [begin, end) of all chunks to those of the first.
static void cpu_tiles_weight_add_chunks(void *context, int64_t begin, int64_t end,
                                        uint32_t worker)
{
    const struct tiles_weights *r = context;
    (void)worker;
    for (int64_t i = 1; i < r->chunks; i++)
        r->t.kernels->conv->add_into_f32(cpu_tiles_weight_sums_of(r, 0) + begin,
                                         cpu_tiles_weight_sums_of(r, i) + begin,
                                         end - begin);
}

// Writes filters [begin, end) of the result from the sums of all.
static void write_filters(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct tiles_weights *r = context;
    const struct tiles_plan *t = &r->t;
    const struct cpu_conv *v = &t->conv;
    const float *from = cpu_tiles_weight_sums_of(r, 0) + begin * v->k;
    (void)worker;
    if (r->by_filters) {
        float *to = t->dtype == TN_F32 ? (float *)(void *)r->out
                                       : cpu_tiles_weight_sums_of(r, r->chunks);
        t->kernels->transpose[2](to + begin * v->k, v->k,
                                 cpu_tiles_weight_sums_of(r, 0) + begin, v->o, v->k,
                                 end - begin);
        from = to + begin * v->k;
    }
    const void *in = from;
    if (t->dtype != TN_F32)
        t->kernels->cast[TN_F32][t->dtype](r->out + begin * v->k * t->size, &in,
                                           (end - begin) * v->k, 0);
}

// --- the kernel ------------------------------------------------------------------------

static void cpu_tiles_weight_divide(struct tiles_weights *r, int64_t threads)
{
    int64_t most = r->t.conv.o / FILTERS,
            wanted = (2 * threads + r->chunks - 1) / r->chunks;
    r->parts = threads > 1 && r->chunks < 2 * threads && !r->by_planes ? wanted : 1;
    r->parts = r->parts < most ? r->parts : most;
    r->parts = r->parts > 1 ? r->parts : 1;
}

static tn_status tiles_conv2d_weight(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *g = &call->inputs[1], *out = &call->outputs[0];
    struct tiles_weights r = {.g = first_element(g), .out = first_element(out)};
    read_weight(call->attrs, &x->layout, &out->layout, &g->layout, &r);
    struct tiles_plan *t = &r.t;
    if (r.elements == 0)
        return TN_OK;
    if (t->conv.pixels == 0) {
        memset(r.out, 0, (size_t)(r.elements * t->size));
        return TN_OK;
    }
    t->call = call;
    t->kernels = kernel_variant(call);
    t->from = first_element(x);
    r.loops = t->kernels->tiles;
    r.sums = call->scratch;
    r.workers = (char *)call->scratch + bytes_of_sums(&r);
    r.worker_bytes = cpu_tiles_weight_bytes_of_worker(&r);
    cpu_tiles_weight_divide(&r, call->num_threads);
    int64_t items = r.chunks * r.parts,
            work = t->conv.pixels * t->conv.k * t->conv.o / items;
    call->parallel_for(call, items, 1 + PIECE_WORK / (work + 1), sum_items, &r);
    if (r.chunks > 1)
        call->parallel_for(call, r.elements, 1 + PIECE_WORK / r.chunks,
                           cpu_tiles_weight_add_chunks, &r);
    if (!r.is_direct)
        call->parallel_for(call, t->conv.o, 1 + PIECE_WORK / (t->conv.k + 1), write_filters,
                           &r);
    return TN_OK;
}

static void read_query(const tn_kernel_query *query, struct tiles_weights *r)
{
    *r = (struct tiles_weights){.out = NULL};
    read_weight(query->attrs, &query->inputs[0], &query->outputs[0], &query->inputs[1], r);
}

static int32_t tiles_conv2d_weight_accepts(const tn_kernel_query *query)
{
    struct tiles_weights r;
    read_query(query, &r);
    return tiles_fit(&r.t);
}

static uint64_t tiles_conv2d_weight_scratch(const tn_kernel_query *query)
{
    struct tiles_weights r;
    read_query(query, &r);
    return tn_saturated_add(
        bytes_of_sums(&r),
        tn_saturated_multiply(cpu_tiles_weight_bytes_of_worker(&r), query->num_workers));
}

#define FLOATS                                                                             \
    TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16), TN_NEEDS_CONTIGUOUS
static const tn_operand_rule rules[] = {{FLOATS}};
static const tn_cpu_kernel payload = {.struct_size = sizeof(tn_cpu_kernel),
                                      .launch = tiles_conv2d_weight};
const tn_kernel conv2d_weight_tiles_kernel = {.struct_size = sizeof(tn_kernel),
                                              .flags = TN_KERNEL_SAME_DTYPE,
                                              .primitive = "nn.conv2d_weight/1",
                                              .family = TN_FAMILY_CPU,
                                              .name = "tiles",
                                              .priority = 720,
                                              TN_OPERANDS(rules),
                                              .accepts = tiles_conv2d_weight_accepts,
                                              .scratch_size = tiles_conv2d_weight_scratch,
                                              .payload = &payload};
