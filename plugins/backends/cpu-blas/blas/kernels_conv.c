// SPDX-License-Identifier: MIT
// nn.conv2d/1 and its gradients, nn.conv2d_input/1 and nn.conv2d_weight/1, for f32.
#include <string.h>
#include "conv.h"

// Least multiplications of a piece.
#define PIECE_WORK 50000
// Most bytes for partial sums of the weights' gradient.
#define MAX_PARTIALS (INT64_C(32) << 20)
#define MAX_CHUNKS 16

static int64_t tile_grain(const struct cpu_conv *conv, int64_t pixels_each)
{
    return 1 + PIECE_WORK / (pixels_each * conv->k * conv->og + 1);
}

// --- out = x * w -----------------------------------------------------------------------

struct forward {
    struct cpu_conv conv;
    const struct blas *blas;
    const float *x, *w, *bias;
    float *out;              // with `call`: a tile for each worker, in scratch memory
    const tn_cpu_call *call; // not NULL: the output passes through a program
};

// Most floats of a tile of the output that passes through a program: it stays in the
// second-level cache between the product and the program.
#define FUSED_TILE 65536

static void cut_tile(struct cpu_conv *conv)
{
    int64_t most = FUSED_TILE / (conv->o + 1) + 1;
    conv->tile = conv->tile < most ? conv->tile : most;
}

// Writes the n numbers at `from` to `to`, `times` times. The copies double: a call of
// memcpy for each pixel took a tenth of a convolution with 6 filters.
static void cpu_conv_repeat(float *to, const float *from, int64_t n, int64_t times)
{
    const int64_t all = n * times;
    memcpy(to, from, (size_t)(all < n ? all : n) * sizeof(float));
    for (int64_t done = n; done < all; done *= 2)
        memcpy(to + done, to,
               (size_t)(all - done < done ? all - done : done) * sizeof(float));
}

static void forward_tile(const struct forward *f, float *out, int64_t first, int64_t count)
{
    const struct cpu_conv *v = &f->conv;
    _Alignas(64) float patches[CONV_TILE];

    if (f->bias)
        cpu_conv_repeat(out, f->bias, v->o, count);
    for (int64_t g = 0; g < v->groups; g++) {
        cpu_conv_gather(v, f->x, g, first, count, patches);
        f->blas->sgemm(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_TRANS, (int)count, (int)v->og,
                       (int)v->k, 1, patches, (int)v->k, f->w + g * v->og * v->k, (int)v->k,
                       f->bias ? 1 : 0, out + g * v->og, (int)v->o);
    }
}

// The loop runs over tiles.
static void forward_tiles(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct forward *f = context;
    int64_t tile = f->conv.tile, o = f->conv.o;
    for (int64_t i = begin; i < end; i++) {
        int64_t left = f->conv.pixels - i * tile, count = left < tile ? left : tile;
        float *out = f->out + (f->call ? (int64_t)worker : i) * tile * o;
        forward_tile(f, out, i * tile, count);
        if (f->call)
            f->call->store(f->call, 0, i * tile * o, count * o, out, worker);
    }
}

static tn_status conv2d(const tn_cpu_call *call)
{
    const tn_tensor *in = call->inputs;
    struct forward f = {
        .x = first_element(&in[0]),
        .w = first_element(&in[1]),
        .bias = call->num_inputs > 2 && in[2].data ? first_element(&in[2]) : NULL,
        .out = call->outputs[0].data ? first_element(&call->outputs[0]) : NULL,
    };
    conv_read(call->attrs, &in[0].layout, &in[1].layout, &call->outputs[0].layout, &f.conv);
    if (f.conv.pixels * f.conv.o == 0)
        return TN_OK;
    if (!call->outputs[0].data) {
        cut_tile(&f.conv);
        f.call = call;
        f.out = call->scratch;
    }
    tn_status status = blas_enter(call, &f.blas);
    if (status != TN_OK)
        return status;
    int64_t tiles = (f.conv.pixels + f.conv.tile - 1) / f.conv.tile;
    call->parallel_for(call, tiles, tile_grain(&f.conv, f.conv.tile), forward_tiles, &f);
    blas_leave();
    return TN_OK;
}

static int32_t conv2d_accepts(const tn_kernel_query *query)
{
    struct cpu_conv conv;
    // A rule stands for the bias and for the output.
    if (query->fused & ~(UINT64_C(1) << query->num_inputs))
        return 0;
    conv_read(query->attrs, &query->inputs[0], &query->inputs[1], &query->outputs[0],
              &conv);
    return conv_accepts(&conv);
}

static uint64_t conv2d_scratch(const tn_kernel_query *query)
{
    struct cpu_conv conv;
    if (!query->fused)
        return 0;
    conv_read(query->attrs, &query->inputs[0], &query->inputs[1], &query->outputs[0],
              &conv);
    cut_tile(&conv);
    return tn_saturated_multiply((uint64_t)(conv.tile * conv.o) * sizeof(float),
                                 query->num_workers);
}

// --- x = gradient * w ------------------------------------------------------------------

struct input_gradient {
    struct cpu_conv conv;
    const struct blas *blas;
    const float *g, *w;
    float *x;
    int64_t bands; // of an image
};

static int64_t cpu_conv_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Rows [top, bottom) of an image: an image of its own, whose padding is what lies before.
static void rebuild_band(const struct input_gradient *f, int64_t image, int64_t top,
                         int64_t bottom)
{
    struct cpu_conv v = f->conv;
    _Alignas(64) float patches[CONV_TILE];
    float *x = f->x + (image * v.h + top) * v.w * v.c;
    // The rows of the output whose patches reach the band.
    int64_t lowest = top + v.ph - (v.kh - 1) * v.dh, row = v.ow;
    int64_t begin = lowest > 0 ? (lowest + v.sh - 1) / v.sh * row : 0;
    int64_t end = cpu_conv_least((bottom - 1 + v.ph) / v.sh + 1, v.oh) * row;
    memset(x, 0, (size_t)((bottom - top) * v.w * v.c) * sizeof(float));
    v.h = bottom - top;
    v.ph += top;
    for (int64_t first = begin; first < end; first += v.tile) {
        int64_t count = cpu_conv_least(end - first, v.tile);
        for (int64_t g = 0; g < v.groups; g++) {
            const float *from = f->g + (image * v.oh * row + first) * v.o + g * v.og;
            f->blas->sgemm(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_NO_TRANS, (int)count,
                           (int)v.k, (int)v.og, 1, from, (int)v.o, f->w + g * v.og * v.k,
                           (int)v.k, 0, patches, (int)v.k);
            cpu_conv_scatter(&v, x, g, first, count, patches);
        }
    }
}

// The loop runs over bands of images.
static void rebuild_bands(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct input_gradient *f = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t image = i / f->bands, band = i - image * f->bands, rows = f->conv.h;
        rebuild_band(f, image, band * rows / f->bands, (band + 1) * rows / f->bands);
    }
}

// Bands of an image: one, but where images are fewer than keep all threads busy. Patches
// that reach two bands are computed for both, so a band has several times their rows.
static int64_t count_bands(const struct cpu_conv *v, int64_t threads)
{
    int64_t shared = (v->kh - 1) * v->dh, most = v->h / (4 * shared + 1);
    if (threads == 1 || v->n >= 2 * threads || v->n % threads == 0 || most <= 1)
        return 1;
    return cpu_conv_least(most, (2 * threads + v->n - 1) / v->n);
}

static tn_status conv2d_input(const tn_cpu_call *call)
{
    struct input_gradient f = {
        .g = first_element(&call->inputs[0]),
        .w = first_element(&call->inputs[1]),
        .x = first_element(&call->outputs[0]),
    };
    conv_read(call->attrs, &call->outputs[0].layout, &call->inputs[1].layout,
              &call->inputs[0].layout, &f.conv);
    if (f.conv.n * f.conv.h * f.conv.w * f.conv.c == 0)
        return TN_OK;
    tn_status status = blas_enter(call, &f.blas);
    if (status != TN_OK)
        return status;
    f.bands = count_bands(&f.conv, call->num_threads);
    call->parallel_for(call, f.conv.n * f.bands,
                       tile_grain(&f.conv, f.conv.oh * f.conv.ow / f.bands + 1),
                       rebuild_bands, &f);
    blas_leave();
    return TN_OK;
}

static int32_t conv2d_input_accepts(const tn_kernel_query *query)
{
    struct cpu_conv conv;
    conv_read(query->attrs, &query->outputs[0], &query->inputs[1], &query->inputs[0],
              &conv);
    return conv_accepts(&conv);
}

// --- w = gradient^T * x ----------------------------------------------------------------

// Output pixels are cut into chunks, by sizes alone. Each chunk is summed on its own, and
// the sums are added in order: the result does not depend on the number of threads.
struct cpu_conv_weight_gradient {
    struct cpu_conv conv;
    const struct blas *blas;
    const float *x, *g;
    float *w, *partials;
    int64_t chunks;
    const struct cpu_kernels *kernels;
};

static int64_t count_chunks(const struct cpu_conv *v)
{
    int64_t tiles = (v->pixels + v->tile - 1) / v->tile;
    int64_t room = MAX_PARTIALS / (v->o * v->k * (int64_t)sizeof(float) + 1);
    int64_t chunks = tiles < MAX_CHUNKS ? tiles : MAX_CHUNKS;
    if (chunks > room)
        chunks = room;
    return chunks > 1 ? chunks : 1;
}

static void sum_chunk(const struct cpu_conv_weight_gradient *f, int64_t chunk)
{
    const struct cpu_conv *v = &f->conv;
    _Alignas(64) float patches[CONV_TILE];
    float *w = chunk == 0 ? f->w : f->partials + (chunk - 1) * v->o * v->k;
    int64_t size = (v->pixels + f->chunks - 1) / f->chunks;
    int64_t begin = chunk * size, end = begin + size < v->pixels ? begin + size : v->pixels;

    if (begin >= end)
        memset(w, 0, (size_t)(v->o * v->k) * sizeof(float));
    for (int64_t first = begin; first < end; first += v->tile) {
        int64_t count = end - first < v->tile ? end - first : v->tile;
        for (int64_t g = 0; g < v->groups; g++) {
            cpu_conv_gather(v, f->x, g, first, count, patches);
            f->blas->sgemm(BLAS_ROW_MAJOR, BLAS_TRANS, BLAS_NO_TRANS, (int)v->og, (int)v->k,
                           (int)count, 1, f->g + first * v->o + g * v->og, (int)v->o,
                           patches, (int)v->k, first > begin ? 1 : 0, w + g * v->og * v->k,
                           (int)v->k);
        }
    }
}

static void sum_chunks(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct cpu_conv_weight_gradient *f = context;
    for (int64_t i = begin; i < end; i++)
        sum_chunk(f, i);
}

// Adds elements [begin, end) of all chunks to those of the first.
static void cpu_conv_add_chunks(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct cpu_conv_weight_gradient *f = context;
    int64_t elements = f->conv.o * f->conv.k;
    (void)worker;
    for (int64_t i = 1; i < f->chunks; i++)
        f->kernels->conv->add_into_f32(
            f->w + begin, f->partials + (i - 1) * elements + begin, end - begin);
}

static tn_status conv2d_weight(const tn_cpu_call *call)
{
    struct cpu_conv_weight_gradient f = {
        .x = first_element(&call->inputs[0]),
        .g = first_element(&call->inputs[1]),
        .w = first_element(&call->outputs[0]),
        .partials = call->scratch,
        .kernels = kernel_variant(call),
    };
    conv_read(call->attrs, &call->inputs[0].layout, &call->outputs[0].layout,
              &call->inputs[1].layout, &f.conv);
    int64_t elements = f.conv.o * f.conv.k;
    if (elements == 0)
        return TN_OK;
    tn_status status = blas_enter(call, &f.blas);
    if (status != TN_OK)
        return status;
    f.chunks = count_chunks(&f.conv);
    call->parallel_for(call, f.chunks, tile_grain(&f.conv, f.conv.pixels / f.chunks),
                       sum_chunks, &f);
    blas_leave();
    call->parallel_for(call, elements, 1 + PIECE_WORK / f.chunks, cpu_conv_add_chunks, &f);
    return TN_OK;
}

static void read_weight_query(const tn_kernel_query *query, struct cpu_conv *conv)
{
    conv_read(query->attrs, &query->inputs[0], &query->outputs[0], &query->inputs[1], conv);
}

static int32_t conv2d_weight_accepts(const tn_kernel_query *query)
{
    struct cpu_conv conv;
    read_weight_query(query, &conv);
    return conv_accepts(&conv);
}

static uint64_t conv2d_weight_scratch(const tn_kernel_query *query)
{
    struct cpu_conv conv;
    read_weight_query(query, &conv);
    uint64_t bytes = tn_saturated_multiply((uint64_t)(conv.o * conv.k), sizeof(float));
    return tn_saturated_multiply((uint64_t)(count_chunks(&conv) - 1), bytes);
}

// --- records ---------------------------------------------------------------------------

#define F32 TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS
static const tn_operand_rule conv2d_rules[] = {{F32}, {F32}, {F32, TN_OPERAND_FUSES}};
static const tn_operand_rule conv2d_input_rules[] = {{F32}};
static const tn_operand_rule conv2d_weight_rules[] = {{F32}};

#define RECORD(id, ...)                                                                    \
    static const tn_cpu_kernel id##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = id,                                                                      \
    };                                                                                     \
    const tn_kernel id##_kernel = {.struct_size = sizeof(tn_kernel),                       \
                                   .primitive = "nn." #id "/1",                            \
                                   .family = TN_FAMILY_CPU,                                \
                                   .name = "openblas",                                     \
                                   .priority = 700,                                        \
                                   TN_OPERANDS(id##_rules),                                \
                                   .accepts = id##_accepts,                                \
                                   .payload = &id##_payload,                               \
                                   __VA_ARGS__}
RECORD(conv2d, .scratch_size = conv2d_scratch);
RECORD(conv2d_input, .scratch_size = NULL);
RECORD(conv2d_weight, .scratch_size = conv2d_weight_scratch);
#undef RECORD
