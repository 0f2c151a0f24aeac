// SPDX-License-Identifier: MIT
// nn.conv2d/1 and its gradients, nn.conv2d_input/1 and nn.conv2d_weight/1, for as many
// groups as channels and all floats. Pieces are bands of rows; see depthwise.h.
#include <string.h>
#include "depthwise.h"

// Least multiplications of a piece, and of a chunk of a weights' gradient.
#define PIECE_WORK 100000
#define CHUNK_WORK 400000
#define MAX_CHUNKS 64
// Most bytes for partial sums of the weights' gradient.
#define MAX_PARTIALS (UINT64_C(32) << 20)

static void depthwise_open(struct depthwise *d, const tn_cpu_call *call)
{
    d->call = call;
    d->kernels = kernel_variant(call);
    d->loops = d->real == TN_F64 ? d->kernels->depthwise_f64 : d->kernels->depthwise_f32;
    d->workers = (char *)call->scratch + d->fixed;
}

// Gives a worker's buffer `i` room for `elements` elements.
static void depthwise_reserve(struct depthwise *d, int i, int64_t elements, int64_t size)
{
    uint64_t bytes = tn_saturated_multiply((uint64_t)elements, (uint64_t)size);
    d->buffer[i] = tn_saturated_add(bytes, 63) & ~UINT64_C(63);
    d->worker = tn_saturated_add(d->worker, d->buffer[i]);
}

static char *depthwise_buffer(const struct depthwise *d, uint32_t worker, int i)
{
    char *at = d->workers + worker * d->worker;
    for (int k = 0; k < i; k++)
        at += d->buffer[k];
    return at;
}

static uint64_t depthwise_scratch(const struct depthwise *d, uint32_t workers)
{
    return tn_saturated_add(d->fixed, tn_saturated_multiply(d->worker, workers));
}

static int64_t depthwise_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Clips rows [from, to] to a source of `extent` rows: rows [*first, *first + *rows) are
// left.
static void depthwise_clip(int64_t from, int64_t to, int64_t extent, int64_t *first,
                           int64_t *rows)
{
    *first = from > 0 ? depthwise_least(from, extent) : 0;
    int64_t end = depthwise_least(to + 1, extent);
    *rows = end > *first ? end - *first : 0;
}

static void depthwise_run_bands(struct depthwise *d, int64_t row_work,
                                void (*body)(void *, int64_t, int64_t, uint32_t))
{
    d->call->parallel_for(d->call, d->conv.n * d->bands,
                          1 + PIECE_WORK / (d->band * row_work * d->taps + 1), body, d);
}

// --- out = x * w -----------------------------------------------------------------------

enum { READ, PLANES, JOINED, ROUNDED }; // buffers of the forward pass

static void depthwise_size_forward(struct depthwise *d, bool fused)
{
    const struct cpu_conv *v = &d->conv;
    int64_t row = v->ow * v->o;
    depthwise_cut(d, v->oh, row, d->is_narrow || d->each > 1 || fused);
    int64_t read = depthwise_least((d->band - 1) * v->sh + (v->kh - 1) * v->dh + 1, v->h);
    if (d->is_narrow)
        depthwise_reserve(d, READ, read * v->w * v->c, d->wide);
    if (d->is_narrow || d->each > 1 || fused)
        depthwise_reserve(d, PLANES, d->band * row, d->wide);
    if (d->each > 1)
        depthwise_reserve(d, JOINED, d->band * row, d->wide);
    if (d->is_narrow && fused)
        depthwise_reserve(d, ROUNDED, d->band * row, d->size);
}

// Brings `rows` rows of planes to where they belong.
static void depthwise_finish(const struct depthwise *d, int64_t row, int64_t rows,
                             char *planes, uint32_t worker)
{
    const int64_t each_row = d->conv.ow * d->conv.o, n = rows * each_row;
    char *out = d->to.data ? (char *)d->to.data + row * each_row * d->size : NULL;
    const void *values = planes;
    if (d->each > 1) {
        char *joined = !d->is_narrow && out ? out : depthwise_buffer(d, worker, JOINED);
        d->kernels->transpose[d->wide == 8 ? 3 : 2](joined, d->each, planes, n / d->each,
                                                    d->each, n / d->each);
        values = joined;
    }
    if (d->is_narrow) {
        char *rounded = out ? out : depthwise_buffer(d, worker, ROUNDED);
        d->kernels->cast[d->real][d->dtype](rounded, &values, n, 0);
        values = rounded;
    }
    if (!out)
        d->call->store(d->call, 0, row * each_row, n, values, worker);
}

static void depthwise_forward_band(const struct depthwise *d, int64_t image, int64_t first,
                                   uint32_t worker)
{
    const struct cpu_conv *v = &d->conv;
    int64_t rows = depthwise_least(d->band, v->oh - first), from, count,
            row = image * v->oh + first;
    bool direct = !d->is_narrow && d->each == 1 && d->to.data;
    struct cpu_depthwise_axis y = depthwise_forward(v, 0), x = depthwise_forward(v, 1);
    depthwise_clip(first * v->sh - v->ph,
                   (first + rows - 1) * v->sh - v->ph + (v->kh - 1) * v->dh, v->h, &from,
                   &count);
    char *planes = direct ? (char *)d->to.data + row * v->ow * v->o * d->wide
                          : depthwise_buffer(d, worker, PLANES);
    struct cpu_depthwise p = {
        .from = depthwise_stage(d, &d->from, image, from, count,
                                depthwise_buffer(d, worker, READ), NULL),
        .channels = v->c,
        .window = v->kw,
        .from_row = v->w * v->c,
        .from_pixel = v->c,
        .to_row = v->ow * v->c,
        .to_pixel = v->c,
    };
    y.first -= first;
    y.from -= from;
    y.extent = count;
    for (int64_t j = 0; j < d->each; j++) {
        p.weights = d->weights + j * d->taps * v->c * d->wide;
        p.start = d->start ? d->start + j * v->c * d->wide : NULL;
        p.to = planes + j * rows * v->ow * v->c * d->wide;
        for (int64_t i = 0; i < rows; i++)
            d->loops->row(&p, &y, &x, first + i);
    }
    if (!direct)
        depthwise_finish(d, row, rows, planes, worker);
}

static void depthwise_forward_bands(void *context, int64_t begin, int64_t end,
                                    uint32_t worker)
{
    const struct depthwise *d = context;
    for (int64_t i = begin; i < end; i++)
        depthwise_forward_band(d, i / d->bands, i % d->bands * d->band, worker);
}

static tn_status depthwise_conv2d(const tn_cpu_call *call)
{
    const tn_tensor *in = call->inputs, *out = &call->outputs[0];
    const tn_tensor *bias = call->num_inputs > 2 && in[2].data ? &in[2] : NULL;
    struct depthwise d;
    depthwise_read(call->attrs, &in[0].layout, &in[1].layout, &out->layout, &d);
    const struct cpu_conv *v = &d.conv;
    if (v->pixels * v->o == 0)
        return TN_OK;
    depthwise_size_forward(&d, !out->data);
    depthwise_open(&d, call);
    d.from = (struct images){first_element(&in[0]), v->h, v->w, v->c, 1};
    d.to =
        (struct images){out->data ? first_element(out) : NULL, v->oh, v->ow, v->o, d.each};
    depthwise_pack(&d, &in[1], bias);
    depthwise_run_bands(&d, v->ow * v->o, depthwise_forward_bands);
    return TN_OK;
}

static void depthwise_read_conv2d(const tn_kernel_query *query, struct depthwise *d)
{
    depthwise_read(query->attrs, &query->inputs[0], &query->inputs[1], &query->outputs[0],
                   d);
    depthwise_size_forward(d, query->fused != 0);
}

static int32_t depthwise_conv2d_accepts(const tn_kernel_query *query)
{
    struct depthwise d;
    // A rule stands for the bias and for the output.
    if (query->fused & ~(UINT64_C(1) << query->num_inputs))
        return 0;
    depthwise_read_conv2d(query, &d);
    return depthwise_accepts(&d);
}

static uint64_t depthwise_conv2d_scratch(const tn_kernel_query *query)
{
    struct depthwise d;
    depthwise_read_conv2d(query, &d);
    return depthwise_scratch(&d, query->num_workers);
}

// --- x = gradient * w ------------------------------------------------------------------

enum { WIDENED, SPLIT, RESULT }; // buffers of the gradient of the input

static void depthwise_size_input(struct depthwise *d)
{
    const struct cpu_conv *v = &d->conv;
    int64_t row = v->w * v->c;
    depthwise_cut(d, v->h, row, d->is_narrow || d->each > 1);
    int64_t read = depthwise_least((d->band - 1 + (v->kh - 1) * v->dh) / v->sh + 1, v->oh);
    if (d->is_narrow)
        depthwise_reserve(d, WIDENED, read * v->ow * v->o, d->wide);
    if (d->each > 1)
        depthwise_reserve(d, SPLIT, read * v->ow * v->o, d->wide);
    if (d->is_narrow)
        depthwise_reserve(d, RESULT, d->band * row, d->wide);
}

// Row `row` of the gradient, by columns that have the same taps. `first`: the first row of
// the band; [from, from + count): the rows that p->from has.
static void depthwise_input_row(const struct depthwise *d, const struct cpu_depthwise *p,
                                int64_t row, int64_t first, int64_t from, int64_t count)
{
    const struct cpu_conv *v = &d->conv;
    struct cpu_depthwise_axis y = depthwise_backward(v, 0, row % v->sh);
    y.first -= first;
    y.from -= from;
    y.extent = count;
    for (int64_t r = 0; r < v->sw && r < v->w; r++) {
        struct cpu_depthwise_axis x = depthwise_backward(v, 1, r);
        d->loops->row(p, &y, &x, row / v->sh);
    }
}

static void depthwise_input_band(const struct depthwise *d, int64_t image, int64_t first,
                                 uint32_t worker)
{
    const struct cpu_conv *v = &d->conv;
    int64_t rows = depthwise_least(d->band, v->h - first), from, count;
    int64_t least = first + v->ph - (v->kh - 1) * v->dh;
    depthwise_clip(least > 0 ? (least + v->sh - 1) / v->sh : 0,
                   (first + rows - 1 + v->ph) / v->sh, v->oh, &from, &count);
    char *to = (char *)d->to.data + (image * v->h + first) * v->w * v->c * d->size;
    char *result = d->is_narrow ? depthwise_buffer(d, worker, RESULT) : to;
    const char *g = depthwise_stage(d, &d->from, image, from, count,
                                    depthwise_buffer(d, worker, WIDENED),
                                    depthwise_buffer(d, worker, SPLIT));
    struct cpu_depthwise p = {
        .to = result,
        .channels = v->c,
        .window = v->kw,
        .from_row = v->ow * v->c,
        .from_pixel = v->c,
        .to_row = v->w * v->c,
        .to_pixel = v->c,
    };
    for (int64_t j = 0; j < d->each; j++) {
        p.from = g + j * count * v->ow * v->c * d->wide;
        p.weights = d->weights + j * d->taps * v->c * d->wide;
        for (int64_t i = 0; i < rows; i++)
            depthwise_input_row(d, &p, first + i, first, from, count);
        p.start = result; // the next filters add to what is there
        p.start_row = p.to_row;
        p.start_pixel = p.to_pixel;
    }
    if (d->is_narrow) {
        const void *values = result;
        d->kernels->cast[d->real][d->dtype](to, &values, rows * v->w * v->c, 0);
    }
}

static void depthwise_input_bands(void *context, int64_t begin, int64_t end,
                                  uint32_t worker)
{
    const struct depthwise *d = context;
    for (int64_t i = begin; i < end; i++)
        depthwise_input_band(d, i / d->bands, i % d->bands * d->band, worker);
}

static tn_status depthwise_conv2d_input(const tn_cpu_call *call)
{
    const tn_tensor *g = &call->inputs[0], *w = &call->inputs[1], *out = &call->outputs[0];
    struct depthwise d;
    depthwise_read(call->attrs, &out->layout, &w->layout, &g->layout, &d);
    const struct cpu_conv *v = &d.conv;
    int64_t elements = v->n * v->h * v->w * v->c;
    if (elements == 0)
        return TN_OK;
    if (d.each == 0) {
        memset(first_element(out), 0, (size_t)(elements * d.size));
        return TN_OK;
    }
    depthwise_size_input(&d);
    depthwise_open(&d, call);
    d.from = (struct images){first_element(g), v->oh, v->ow, v->o, d.each};
    d.to = (struct images){first_element(out), v->h, v->w, v->c, 1};
    depthwise_pack(&d, w, NULL);
    depthwise_run_bands(&d, v->w * v->o, depthwise_input_bands);
    return TN_OK;
}

static void depthwise_read_input(const tn_kernel_query *query, struct depthwise *d)
{
    depthwise_read(query->attrs, &query->outputs[0], &query->inputs[1], &query->inputs[0],
                   d);
    depthwise_size_input(d);
}

static int32_t depthwise_conv2d_input_accepts(const tn_kernel_query *query)
{
    struct depthwise d;
    depthwise_read_input(query, &d);
    return depthwise_accepts(&d);
}

static uint64_t depthwise_conv2d_input_scratch(const tn_kernel_query *query)
{
    struct depthwise d;
    depthwise_read_input(query, &d);
    return depthwise_scratch(&d, query->num_workers);
}

// --- w = gradient^T * x ----------------------------------------------------------------

// Bands are cut into chunks, by sizes alone. Each chunk is summed on its own, and the sums
// are added in order: the result does not depend on the number of threads.
struct cpu_depthwise_weight_gradient {
    struct depthwise d;
    char *sums; // of each chunk, as planes of taps
    int64_t chunks, elements;
};

enum { WIDE_X, WIDE_G, SPLIT_G }; // buffers of the gradient of the weights

static void depthwise_size_weight(struct cpu_depthwise_weight_gradient *f)
{
    struct depthwise *d = &f->d;
    const struct cpu_conv *v = &d->conv;
    int64_t row = v->ow * v->o;
    depthwise_cut(d, v->oh, row, d->is_narrow || d->each > 1);
    int64_t read = depthwise_least((d->band - 1) * v->sh + (v->kh - 1) * v->dh + 1, v->h);
    if (d->is_narrow) {
        depthwise_reserve(d, WIDE_X, read * v->w * v->c, d->wide);
        depthwise_reserve(d, WIDE_G, d->band * row, d->wide);
    }
    if (d->each > 1)
        depthwise_reserve(d, SPLIT_G, d->band * row, d->wide);
    f->elements = v->o * d->taps;
    uint64_t bytes = (uint64_t)(f->elements * d->wide);
    int64_t room = (int64_t)(MAX_PARTIALS / (bytes + 1));
    double work = (double)v->n * (double)v->oh * (double)row * (double)d->taps;
    double wanted = work / CHUNK_WORK < MAX_CHUNKS ? work / CHUNK_WORK : MAX_CHUNKS;
    f->chunks = depthwise_least(depthwise_least((int64_t)wanted, room), v->n * d->bands);
    f->chunks = f->chunks > 1 ? f->chunks : 1;
    // Before the workers' memory: sums, and the result before it is rounded.
    d->fixed = tn_saturated_add(tn_saturated_multiply((uint64_t)f->chunks + 1, bytes), 63) &
               ~UINT64_C(63);
}

static void depthwise_sum_band(const struct cpu_depthwise_weight_gradient *f, int64_t image,
                               int64_t first, char *to, uint32_t worker)
{
    const struct depthwise *d = &f->d;
    const struct cpu_conv *v = &d->conv;
    int64_t rows = depthwise_least(d->band, v->oh - first), from, count;
    struct cpu_depthwise_axis y = depthwise_forward(v, 0), x = depthwise_forward(v, 1);
    depthwise_clip(first * v->sh - v->ph,
                   (first + rows - 1) * v->sh - v->ph + (v->kh - 1) * v->dh, v->h, &from,
                   &count);
    struct cpu_depthwise_sums p = {
        .x = depthwise_stage(d, &d->from, image, from, count,
                             depthwise_buffer(d, worker, WIDE_X), NULL),
        .channels = v->c,
        .window = v->kw,
        .x_row = v->w * v->c,
        .x_pixel = v->c,
        .g_row = v->ow * v->c,
        .g_pixel = v->c,
    };
    const char *g =
        depthwise_stage(d, &d->to, image, first, rows, depthwise_buffer(d, worker, WIDE_G),
                        depthwise_buffer(d, worker, SPLIT_G));
    y.first -= first;
    y.from -= from;
    y.extent = count;
    for (int64_t j = 0; j < d->each; j++) {
        p.g = g + j * rows * v->ow * v->c * d->wide;
        p.to = to + j * d->taps * v->c * d->wide;
        for (int64_t i = 0; i < rows; i++)
            d->loops->sums(&p, &y, &x, first + i);
    }
}

static void depthwise_sum_chunks(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct cpu_depthwise_weight_gradient *f = context;
    int64_t bytes = f->elements * f->d.wide, all = f->d.conv.n * f->d.bands;
    for (int64_t i = begin; i < end; i++) {
        char *to = f->sums + i * bytes;
        memset(to, 0, (size_t)bytes);
        for (int64_t k = i * all / f->chunks; k < (i + 1) * all / f->chunks; k++)
            depthwise_sum_band(f, k / f->d.bands, k % f->d.bands * f->d.band, to, worker);
    }
}

// Adds elements [begin, end) of all chunks to those of the first.
static void depthwise_add_chunks(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct cpu_depthwise_weight_gradient *f = context;
    int64_t wide = f->d.wide;
    char *to = f->sums + begin * wide;
    (void)worker;
    for (int64_t i = 1; i < f->chunks; i++) {
        const void *in[] = {to, f->sums + (i * f->elements + begin) * wide};
        f->d.kernels->map[f->d.real][TN_EXPR_ADD](to, in, end - begin, 0);
    }
}

static tn_status depthwise_conv2d_weight(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *g = &call->inputs[1], *out = &call->outputs[0];
    struct cpu_depthwise_weight_gradient f;
    struct depthwise *d = &f.d;
    depthwise_read(call->attrs, &x->layout, &out->layout, &g->layout, d);
    const struct cpu_conv *v = &d->conv;
    depthwise_size_weight(&f);
    if (f.elements == 0)
        return TN_OK;
    depthwise_open(d, call);
    f.sums = call->scratch;
    d->from = (struct images){first_element(x), v->h, v->w, v->c, 1};
    d->to = (struct images){first_element(g), v->oh, v->ow, v->o, d->each};
    call->parallel_for(call, f.chunks, 1, depthwise_sum_chunks, &f);
    call->parallel_for(call, f.elements, 1 + PIECE_WORK / f.chunks, depthwise_add_chunks,
                       &f);
    char *to = d->is_narrow ? f.sums + f.chunks * f.elements * d->wide : first_element(out);
    for (int64_t j = 0; j < d->each; j++)
        d->kernels->transpose[d->wide == 8 ? 3 : 2](
            to + j * d->taps * d->wide, d->each * d->taps,
            f.sums + j * d->taps * v->c * d->wide, v->c, d->taps, v->c);
    if (d->is_narrow) {
        const void *values = to;
        d->kernels->cast[d->real][d->dtype](first_element(out), &values, f.elements, 0);
    }
    return TN_OK;
}

static void depthwise_read_weight(const tn_kernel_query *query,
                                  struct cpu_depthwise_weight_gradient *f)
{
    depthwise_read(query->attrs, &query->inputs[0], &query->outputs[0], &query->inputs[1],
                   &f->d);
    depthwise_size_weight(f);
}

static int32_t depthwise_conv2d_weight_accepts(const tn_kernel_query *query)
{
    struct cpu_depthwise_weight_gradient f;
    depthwise_read_weight(query, &f);
    return depthwise_accepts(&f.d);
}

static uint64_t depthwise_conv2d_weight_scratch(const tn_kernel_query *query)
{
    struct cpu_depthwise_weight_gradient f;
    depthwise_read_weight(query, &f);
    return depthwise_scratch(&f.d, query->num_workers);
}

// --- records ---------------------------------------------------------------------------

#define FLOATS TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS
static const tn_operand_rule depthwise_conv2d_rules[] = {
    {FLOATS}, {FLOATS}, {FLOATS, TN_OPERAND_FUSES}};
static const tn_operand_rule depthwise_conv2d_input_rules[] = {{FLOATS}};
static const tn_operand_rule depthwise_conv2d_weight_rules[] = {{FLOATS}};

#define RECORD(id)                                                                         \
    static const tn_cpu_kernel depthwise_##id##_payload = {                                \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = depthwise_##id,                                                          \
    };                                                                                     \
    const tn_kernel id##_depthwise_kernel = {                                              \
        .struct_size = sizeof(tn_kernel),                                                  \
        .flags = TN_KERNEL_SAME_DTYPE,                                                     \
        .primitive = "nn." #id "/1",                                                       \
        .family = TN_FAMILY_CPU,                                                           \
        .name = "depthwise",                                                               \
        .priority = 750,                                                                   \
        TN_OPERANDS(depthwise_##id##_rules),                                               \
        .accepts = depthwise_##id##_accepts,                                               \
        .scratch_size = depthwise_##id##_scratch,                                          \
        .payload = &depthwise_##id##_payload,                                              \
    }
RECORD(conv2d);
RECORD(conv2d_input);
RECORD(conv2d_weight);
#undef RECORD
