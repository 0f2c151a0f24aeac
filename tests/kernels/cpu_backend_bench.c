// SPDX-License-Identifier: MIT
// Times the CPU backend beside OpenBLAS called directly: cpu_backend_bench PLUGIN.so
// Medians of interleaved runs; ratios matter, since machines differ.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/reference.h>
#include "device_harness.h"

#define ROUNDS 41

static struct device_harness harness;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), by_value);
    return values[n / 2];
}

static double run_ns(int times)
{
    uint64_t begin = harness_now_ns();
    for (int i = 0; i < times; i++)
        if (harness_run(&harness) != TN_OK)
            exit(1);
    return (double)(harness_now_ns() - begin) / times;
}

// --- alpha * x + beta * y --------------------------------------------------------------

static const tn_expr_insn axpby_insns[] = {
    {TN_EXPR_LOAD, TN_F32, 0, 0, 0},  {TN_EXPR_LOAD, TN_F32, 1, 0, 0},
    {TN_EXPR_PARAM, TN_F32, 0, 0, 0}, {TN_EXPR_PARAM, TN_F32, 1, 0, 0},
    {TN_EXPR_MUL, TN_F32, 2, 0, 0},   {TN_EXPR_MUL, TN_F32, 3, 1, 0},
    {TN_EXPR_ADD, TN_F32, 4, 5, 0},
};
static const tn_dtype f32s[] = {TN_F32, TN_F32};
static const uint32_t axpby_outputs[] = {6};
static const tn_expr_program axpby_program = {
    .struct_size = sizeof(axpby_program),
    .insns = axpby_insns,
    .input_dtypes = f32s,
    .output_dtypes = f32s,
    .outputs = axpby_outputs,
    .num_insns = 7,
    .num_params = 2,
    .num_inputs = 2,
    .num_outputs = 1,
};
static uint64_t axpby_params[2];

static void add_axpby(int64_t n, uint32_t x, uint32_t y, uint32_t z)
{
    tn_layout layout = harness_layout(TN_F32, 1, &n);
    tn_step *step = harness_step(&harness, 2, 1);
    double four = 4, two = 2;
    memcpy(&axpby_params[0], &four, 8);
    memcpy(&axpby_params[1], &two, 8);
    step->program = &axpby_program;
    step->params = axpby_params;
    harness_set(step, 0, x, &layout);
    harness_set(step, 1, y, &layout);
    harness_set(step, 2, z, &layout);
}

typedef void axpby_fn(int n, float alpha, const float *x, int incx, float beta, float *y,
                      int incy);
typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta,
                      float *c, int ldc);

static void time_axpby(void *blas)
{
    axpby_fn *saxpby = (axpby_fn *)dlsym(blas, "cblas_saxpby");
    int64_t n = 256 * 512;
    uint32_t x = harness_slot(&harness, (uint64_t)n * 4),
             y = harness_slot(&harness, (uint64_t)n * 4);
    uint32_t z = harness_slot(&harness, (uint64_t)n * 4);
    float *px = harness_memory(&harness, x), *py = harness_memory(&harness, y);
    float *pz = harness_memory(&harness, z);
    double ours[ROUNDS], theirs[ROUNDS];

    for (int64_t i = 0; i < n; i++)
        px[i] = py[i] = (float)i;
    add_axpby(n, x, y, z);
    run_ns(50);
    for (int round = 0; round < ROUNDS; round++) {
        ours[round] = run_ns(200);
        uint64_t begin = harness_now_ns();
        for (int i = 0; i < 200; i++) {
            memcpy(pz, py, (size_t)n * 4);
            saxpby((int)n, 4, px, 1, 2, pz, 1);
        }
        theirs[round] = (double)(harness_now_ns() - begin) / 200;
    }
    double a = median(ours, ROUNDS), b = median(theirs, ROUNDS);
    printf("axpby 256x512 f32: %.1f us; copy and cblas_saxpby %.1f us; ratio %.3f\n",
           a / 1000, b / 1000, a / b);
    harness_clear(&harness);
}

static void time_tiny_steps(void)
{
    uint32_t x = harness_slot(&harness, 64), y = harness_slot(&harness, 64);
    for (int i = 0; i < 100; i++)
        add_axpby(16, x, y, harness_slot(&harness, 64));
    double ours[ROUNDS];
    run_ns(50);
    for (int round = 0; round < ROUNDS; round++)
        ours[round] = run_ns(500);
    printf("100 tiny steps: %.1f ns a step\n", median(ours, ROUNDS) / 100);
    harness_clear(&harness);
}

static void time_matmul(const tn_plugin *plugin, void *blas, int64_t m, int64_t k,
                        int64_t n, int times)
{
    sgemm_fn *sgemm = (sgemm_fn *)dlsym(blas, "cblas_sgemm");
    tn_layout la = harness_layout(TN_F32, 2, (int64_t[]){m, k});
    tn_layout lb = harness_layout(TN_F32, 2, (int64_t[]){k, n});
    tn_layout lc = harness_layout(TN_F32, 2, (int64_t[]){m, n});
    uint32_t a = harness_slot(&harness, harness_bytes(&la)),
             b = harness_slot(&harness, harness_bytes(&lb));
    uint32_t c = harness_slot(&harness, harness_bytes(&lc));
    float *pa = harness_memory(&harness, a), *pb = harness_memory(&harness, b);
    double ours[ROUNDS], theirs[ROUNDS];

    for (int64_t i = 0; i < m * k; i++)
        pa[i] = (float)(i % 7);
    for (int64_t i = 0; i < k * n; i++)
        pb[i] = (float)(i % 5);
    tn_step *step = harness_step(&harness, 2, 1);
    step->kernel = harness_kernel(plugin, "base.matmul/1", NULL);
    harness_set(step, 0, a, &la);
    harness_set(step, 1, b, &lb);
    harness_set(step, 2, c, &lc);
    harness_scratch(&harness, step);
    run_ns(2);
    for (int round = 0; round < 15; round++) {
        ours[round] = run_ns(times);
        sgemm(101, 111, 111, (int)m, (int)n, (int)k, 1, pa, (int)k, pb, (int)n, 0,
              harness_memory(&harness, c), (int)n);
        uint64_t begin = harness_now_ns();
        for (int i = 0; i < times; i++)
            sgemm(101, 111, 111, (int)m, (int)n, (int)k, 1, pa, (int)k, pb, (int)n, 0,
                  harness_memory(&harness, c), (int)n);
        theirs[round] = (double)(harness_now_ns() - begin) / times;
    }
    double x = median(ours, 15), y = median(theirs, 15);
    printf("matmul %ldx%ldx%ld: %.3f ms; cblas_sgemm %.3f ms; speed %.3f of it\n", (long)m,
           (long)k, (long)n, x / 1e6, y / 1e6, y / x);
    harness_clear(&harness);
}

// --- the layers of LeNet, batch 64 -----------------------------------------------------

static int num_rounds = ROUNDS; // fewer, where one takes long

// Microseconds of a step whose kernel or program is set.
static double time_step(tn_step *step, uint32_t num_inputs, const tn_layout *layouts)
{
    double ns[ROUNDS];
    for (uint32_t i = 0; i <= num_inputs; i++) {
        uint32_t slot = harness_slot(&harness, harness_bytes(&layouts[i]));
        float *data = harness_memory(&harness, slot);
        for (uint64_t k = 0; k < harness_bytes(&layouts[i]) / sizeof(float); k++)
            data[k] = (float)(k * 7919 % 1000) / 500 - 1;
        tn_tensor tensor = {data, {.dtype = layouts[i].dtype}};
        for (int64_t k = 0;
             tn_dtype_bytes(layouts[i].dtype) == 2 && k < harness_count(&layouts[i]); k++)
            tn_set_f64(&tensor, k, (double)(k * 7919 % 1000) / 500 - 1);
        for (int64_t k = 0; layouts[i].dtype == TN_I64 && k < harness_count(&layouts[i]);
             k++)
            ((int64_t *)harness_memory(&harness, slot))[k] = k * 7919 % 10000;
        harness_set(step, i, slot, &layouts[i]);
    }
    if (step->kernel)
        harness_scratch(&harness, step);
    run_ns(num_rounds < ROUNDS ? 1 : 3);
    for (int round = 0; round < num_rounds; round++)
        ns[round] = run_ns(num_rounds < ROUNDS ? 1 : 2);
    harness_clear(&harness);
    return median(ns, num_rounds) / 1000;
}

static double time_named(const tn_plugin *plugin, const char *primitive, const char *name,
                         const void *attrs, uint32_t num_inputs, const tn_layout *layouts)
{
    tn_step *step = harness_step(&harness, num_inputs, 1);
    step->kernel = harness_kernel(plugin, primitive, name);
    step->attrs = attrs;
    return time_step(step, num_inputs, layouts);
}

static double time_kernel(const tn_plugin *plugin, const char *primitive, const void *attrs,
                          uint32_t num_inputs, const tn_layout *layouts)
{
    return time_named(plugin, primitive, NULL, attrs, num_inputs, layouts);
}

static void time_convolution(const tn_plugin *plugin, const int64_t *x, const int64_t *w,
                             const int64_t *out, int64_t padding)
{
    tn_ints pad = {.count = 2, .given = 1, .value = {padding, padding}};
    tn_ints two = {.count = 2, .given = 1, .value = {2, 2}};
    tn_conv2d_attrs attrs = {.padding = pad, .groups = 1};
    tn_pool2d_attrs pool = {.window = two};
    tn_layout lx = harness_layout(TN_F32, 4, x), lw = harness_layout(TN_F32, 4, w);
    tn_layout lo = harness_layout(TN_F32, 4, out);
    int64_t pooled[4] = {out[0], out[1] / 2, out[2] / 2, out[3]};
    tn_layout lp = harness_layout(TN_F32, 4, pooled);
    printf("convolution %ldx%ldx%ldx%ld by %ld: forward %.0f us", (long)x[0], (long)x[1],
           (long)x[2], (long)x[3], (long)w[0],
           time_kernel(plugin, "nn.conv2d/1", &attrs, 2, (tn_layout[]){lx, lw, lo}));
    printf(", input %.0f us",
           time_kernel(plugin, "nn.conv2d_input/1", &attrs, 2, (tn_layout[]){lo, lw, lx}));
    printf(", weight %.0f us",
           time_kernel(plugin, "nn.conv2d_weight/1", &attrs, 2, (tn_layout[]){lx, lo, lw}));
    printf("; pooling %.0f us",
           time_kernel(plugin, "nn.max_pool2d/1", &pool, 1, (tn_layout[]){lo, lp}));
    printf(", gradient %.0f us", time_kernel(plugin, "nn.max_pool2d_grad/1", &pool, 3,
                                             (tn_layout[]){lo, lp, lp, lo}));
    tn_reduce_attrs sum = {.axis = {.count = 3, .given = 1, .value = {0, 1, 2}}};
    tn_layout lb = harness_layout(TN_F32, 1, &out[3]);
    printf(", sum %.0f us\n",
           time_kernel(plugin, "base.sum/1", &sum, 1, (tn_layout[]){lo, lb}));
}

// --- other dtypes, copies and indices ----------------------------------------------------

static void time_products(const tn_plugin *plugin, int64_t n)
{
    static const struct {
        const char *name, *kernel;
        tn_dtype dtype;
    } rows[] = {{"f16", "panels", TN_F16},
                {"bf16", "panels", TN_BF16},
                {"i8", "blocked", TN_I8},
                {"i32", "blocked", TN_I32},
                {"i64", "blocked", TN_I64}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_layout layout = harness_layout(rows[i].dtype, 2, (int64_t[]){n, n});
        printf("matmul %ldx%ld %s: %.0f us\n", (long)n, (long)n, rows[i].name,
               time_named(plugin, "base.matmul/1", rows[i].kernel, NULL, 2,
                          (tn_layout[]){layout, layout, layout}));
    }
}

static const tn_expr_insn copy_insns[] = {{TN_EXPR_LOAD, TN_F32, 0, 0, 0}};
static const uint32_t copy_outputs[] = {0};
static const tn_expr_program copy_program = {
    .struct_size = sizeof(copy_program),
    .insns = copy_insns,
    .input_dtypes = f32s,
    .output_dtypes = f32s,
    .outputs = copy_outputs,
    .num_insns = 1,
    .num_inputs = 1,
    .num_outputs = 1,
};

// The axes of the copy, and which of them is the last one of the source.
static void time_copy(const char *what, int32_t rank, const int64_t *extent, int32_t last)
{
    tn_layout out = harness_layout(TN_F32, rank, extent), in = out;
    int64_t stride = extent[last];
    in.stride[last] = 1;
    for (int32_t i = rank - 1; i >= 0; i--)
        if (i != last) {
            in.stride[i] = stride;
            stride *= extent[i];
        }
    tn_step *step = harness_step(&harness, 1, 1);
    step->program = &copy_program;
    double us = time_step(step, 1, (tn_layout[]){in, out});
    printf("copy %s: %.1f us, %.1f GB/s read and written\n", what, us,
           2e-3 * (double)harness_bytes(&out) / us);
}

static void time_indices(const tn_plugin *plugin, int64_t rows, int64_t columns, int64_t n)
{
    tn_take_attrs attrs = {.axis = 0};
    tn_layout x = harness_layout(TN_F32, 2, (int64_t[]){rows, columns});
    tn_layout at = harness_layout(TN_I64, 1, &n);
    tn_layout taken = harness_layout(TN_F32, 2, (int64_t[]){n, columns});
    printf("take %ld of %ldx%ld: %.1f us", (long)n, (long)rows, (long)columns,
           time_kernel(plugin, "base.take/1", &attrs, 2, (tn_layout[]){x, at, taken}));
    printf("; scatter_add %.1f us\n", time_kernel(plugin, "base.scatter_add/1", &attrs, 3,
                                                  (tn_layout[]){x, at, taken, x}));
}

static void time_argmax(const tn_plugin *plugin, int64_t rows, int64_t columns)
{
    tn_layout x = harness_layout(TN_F32, 2, (int64_t[]){rows, columns});
    for (int64_t axis = 0; axis < 2; axis++) {
        tn_argmax_attrs attrs = {.axis = axis};
        tn_layout out = harness_layout(TN_I64, 1, axis ? &rows : &columns);
        double us = time_kernel(plugin, "base.argmax/1", &attrs, 1, (tn_layout[]){x, out});
        printf("argmax %ldx%ld along %ld: %.1f us, %.1f GB/s\n", (long)rows, (long)columns,
               (long)axis, us, 1e-3 * (double)harness_bytes(&x) / us);
    }
}

// 32 heads that share 4 heads of keys, as a step of a language model: of one query, and of
// a text's first ones. What OpenBLAS takes for the products alone is a fair bound of the
// latter; reading keys and values once is that of the former.
static void time_attention(const tn_plugin *plugin, tn_dtype dtype, int64_t queries,
                           int64_t depth)
{
    const int64_t heads = 32, groups = 4, keys = 4096;
    static const tn_attention_attrs none;
    tn_layout q = harness_layout(dtype, 4, (int64_t[]){1, heads, queries, depth});
    tn_layout k = harness_layout(dtype, 4, (int64_t[]){1, groups, keys, depth});
    num_rounds = queries == 1 ? ROUNDS : 5;
    double us = time_kernel(plugin, "nn.scaled_dot_product_attention/1", &none, 3,
                            (tn_layout[]){q, k, k, q});
    num_rounds = ROUNDS;
    printf("attention %s, %ld queries of %ld: %.0f us, %.1f GB/s, %.1f GFLOP/s\n",
           tn_dtype_name(dtype), (long)queries, (long)depth, us,
           2e-3 * (double)harness_bytes(&k) / us,
           4e-3 * (double)(heads * queries * keys * depth) / us);
}

static void time_attentions(const tn_plugin *plugin)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F16, TN_BF16};
    for (int i = 0; i < 3; i++)
        for (int64_t depth = 64; depth <= 128; depth *= 2) {
            time_attention(plugin, dtypes[i], 1, depth);
            time_attention(plugin, dtypes[i], 512, depth);
        }
}

// One filter for each channel, and the gradients; of f32, beside products of OpenBLAS.
static void time_depthwise(const tn_plugin *plugin, const char *name, tn_dtype dtype,
                           int64_t images, int64_t side, int64_t channels, int64_t window,
                           int64_t stride)
{
    int64_t to = (side - 1) / stride + 1;
    tn_ints pad = {.count = 1, .given = 1, .value = {window / 2}};
    tn_ints step = {.count = 1, .given = 1, .value = {stride}};
    tn_conv2d_attrs attrs = {.padding = pad, .stride = step, .groups = channels};
    tn_layout x = harness_layout(dtype, 4, (int64_t[]){images, side, side, channels});
    tn_layout w = harness_layout(dtype, 4, (int64_t[]){channels, window, window, 1});
    tn_layout out = harness_layout(dtype, 4, (int64_t[]){images, to, to, channels});
    double forward =
        time_named(plugin, "nn.conv2d/1", name, &attrs, 2, (tn_layout[]){x, w, out});
    double input =
        time_named(plugin, "nn.conv2d_input/1", name, &attrs, 2, (tn_layout[]){out, w, x});
    double weight =
        time_named(plugin, "nn.conv2d_weight/1", name, &attrs, 2, (tn_layout[]){x, out, w});
    printf("%s convolution %s %ldx%ldx%ldx%ld, %ldx%ld by %ld: %.0f us, input %.0f us, "
           "weight %.0f us\n",
           name, tn_dtype_name(dtype), (long)images, (long)side, (long)side, (long)channels,
           (long)window, (long)window, (long)stride, forward, input, weight);
}

static void time_depthwise_all(const tn_plugin *plugin)
{
    static const int64_t cases[][5] = {{8, 56, 64, 3, 1},  {8, 56, 64, 3, 2},
                                       {1, 112, 32, 3, 1}, {8, 14, 512, 5, 1},
                                       {8, 7, 960, 7, 1},  {1, 8, 32, 3, 1}};
    for (int i = 0; i < 6; i++) {
        const int64_t *c = cases[i];
        num_rounds = 5;
        time_depthwise(plugin, "openblas", TN_F32, c[0], c[1], c[2], c[3], c[4]);
        num_rounds = ROUNDS;
        time_depthwise(plugin, "depthwise", TN_F32, c[0], c[1], c[2], c[3], c[4]);
        time_depthwise(plugin, "depthwise", TN_BF16, c[0], c[1], c[2], c[3], c[4]);
        time_depthwise(plugin, "depthwise", TN_F16, c[0], c[1], c[2], c[3], c[4]);
    }
}

// --- what threads share
// --------------------------------------------------------------------

#define LAYOUT(rank, ...) harness_layout(TN_F32, rank, (int64_t[]){__VA_ARGS__})

// Of pack base, whose plugin TENON_TEST_BASE names: two arrays joined, one with a border.
static void time_moves(int64_t rows, int64_t columns)
{
    static const tn_concatenate_attrs axes[] = {{.axis = 0}, {.axis = 1}, {.axis = 2}};
    static const tn_pad_attrs border = {.before = {2, 1, {1, 1}}, .after = {2, 1, {1, 1}}};
    const char *path = getenv("TENON_TEST_BASE");
    if (!path)
        return;
    const tn_plugin *base = harness_load(path);
    tn_layout x = LAYOUT(2, rows, columns), one = LAYOUT(3, rows, columns, 1);
    const tn_layout joined[] = {LAYOUT(2, 2 * rows, columns), LAYOUT(2, rows, 2 * columns),
                                LAYOUT(3, rows, columns, 2)};
    for (int i = 0; i < 3; i++) {
        tn_layout from = i == 2 ? one : x;
        printf("join along axis %d to %ld KiB: %.2f us\n", i, (long)(rows * columns / 128),
               time_kernel(base, "base.concatenate/1", &axes[i], 2,
                           (tn_layout[]){from, from, joined[i]}));
    }
    printf("pad %ld KiB: %.2f us\n", (long)(rows * columns / 256),
           time_kernel(base, "base.pad_constant/1", &border, 1,
                       (tn_layout[]){x, LAYOUT(2, rows + 2, columns + 2)}));
}

static void time_sum(const tn_plugin *plugin, int64_t axis, tn_layout x, tn_layout out)
{
    tn_reduce_attrs attrs = {.axis = {.count = 1, .given = 1, .value = {axis}}};
    printf("sum of %ld MiB along axis %ld: %.1f us\n", (long)(harness_bytes(&x) >> 20),
           (long)axis, time_kernel(plugin, "base.sum/1", &attrs, 1, (tn_layout[]){x, out}));
}

static void time_threads(const tn_plugin *plugin)
{
    static const tn_conv2d_attrs input = {
        .padding = {1, 1, {1}}, .groups = 1, .extent = {2, 1, {56, 56}}};
    static const tn_conv2d_attrs weight = {
        .padding = {1, 1, {1}}, .groups = 1, .extent = {2, 1, {3, 3}}};
    tn_layout w = LAYOUT(4, 64, 3, 3, 64);
    for (int64_t rows = 16; rows <= 4096; rows *= 4)
        time_moves(rows, 64);
    time_moves(4096, 1024);
    time_sum(plugin, 0, LAYOUT(2, 4096, 1024), LAYOUT(1, 1024));
    time_sum(plugin, 1, LAYOUT(3, 64, 256, 1024), LAYOUT(2, 64, 1024));
    time_sum(plugin, 1, LAYOUT(2, 100000, 32), LAYOUT(1, 100000));
    time_indices(plugin, 10000, 1, 1000000);
    for (int64_t images = 1; images <= 8; images *= 2) {
        tn_layout x = LAYOUT(4, images, 56, 56, 64);
        printf("gradients of a convolution, %ldx56x56x64: input %.0f us", (long)images,
               time_kernel(plugin, "nn.conv2d_input/1", &input, 2, (tn_layout[]){x, w, x}));
        printf(", weights %.0f us\n", time_kernel(plugin, "nn.conv2d_weight/1", &weight, 2,
                                                  (tn_layout[]){x, x, w}));
    }
    for (int64_t times = 2; times <= 8; times *= 2) {
        tn_layout out = LAYOUT(2, 1 << 20, times), in = out;
        in.stride[0] = 1;
        in.stride[1] = 0;
        tn_step *step = harness_step(&harness, 1, 1);
        step->program = &copy_program;
        printf("1048576 elements, each %ld times: %.0f us\n", (long)times,
               time_step(step, 1, (tn_layout[]){in, out}));
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s PLUGIN.so [attention|depthwise|threads]\n", argv[0]);
        return 2;
    }
    const tn_plugin *plugin = harness_load(argv[1]);
    uint64_t begin = harness_now_ns();
    void *blas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    printf("loading OpenBLAS: %.2f ms\n", (double)(harness_now_ns() - begin) / 1e6);
    if (!blas)
        return 77;
    harness_open(&harness, plugin);
    if (argc > 2) {
        (strcmp(argv[2], "depthwise") == 0 ? time_depthwise_all
         : strcmp(argv[2], "threads") == 0 ? time_threads
                                           : time_attentions)(plugin);
        harness_close(&harness);
        return 0;
    }
    time_axpby(blas);
    time_tiny_steps();
    time_matmul(plugin, blas, 1024, 1024, 1024, 3);
    time_matmul(plugin, blas, 4096, 64, 4096, 3);
    time_matmul(plugin, blas, 64, 256, 120, 100);
    time_convolution(plugin, (int64_t[]){64, 28, 28, 1}, (int64_t[]){6, 5, 5, 1},
                     (int64_t[]){64, 28, 28, 6}, 2);
    time_convolution(plugin, (int64_t[]){64, 14, 14, 6}, (int64_t[]){16, 5, 5, 6},
                     (int64_t[]){64, 10, 10, 16}, 0);
    time_copy("512x512", 2, (int64_t[]){512, 512}, 1);
    time_copy("512x512 transposed", 2, (int64_t[]){512, 512}, 0);
    time_copy("2048x2048 transposed", 2, (int64_t[]){2048, 2048}, 0);
    time_copy("64x28x28x6, channels first", 4, (int64_t[]){64, 6, 28, 28}, 1);
    time_indices(plugin, 10000, 128, 4096);
    time_indices(plugin, 10000, 1, 4096);
    time_argmax(plugin, 1024, 1024);
    time_argmax(plugin, 8192, 10);
    time_products(plugin, 128);
    time_products(plugin, 512);
    time_attentions(plugin);
    time_depthwise_all(plugin);
    harness_close(&harness);
    return 0;
}
