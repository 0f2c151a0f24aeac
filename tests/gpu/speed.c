// SPDX-License-Identifier: MIT
// How fast a Vulkan backend is: speed PLUGIN.so [--quick]. One line a measurement, of warm
// replays submitted back to back.
#include "speed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/nn_attrs.h>

struct vulkan_bench bench;
bool quick;

tn_layout dense(tn_dtype dtype, int32_t rank, const int64_t *extents)
{
    tn_layout layout = {.dtype = dtype, .rank = rank};
    int64_t stride = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        layout.extent[i] = extents[i];
        layout.stride[i] = stride;
        stride *= extents[i];
    }
    return layout;
}

tn_layout matrix(tn_dtype dtype, int64_t rows, int64_t columns)
{
    return dense(dtype, 2, (int64_t[]){rows, columns});
}

uint64_t bytes_of(const tn_layout *layout)
{
    uint64_t n = (uint64_t)tn_dtype_bytes(layout->dtype);
    for (int32_t i = 0; i < layout->rank; i++)
        n *= (uint64_t)layout->extent[i];
    return n;
}

uint32_t device_slot(uint64_t size)
{
    uint32_t slot = bench.num_slots++;
    bench.slots[slot] = (tn_slot){.flags = TN_SLOT_READ | TN_SLOT_WRITE, .size = size};
    bench.bindings[slot] = (tn_binding){0};
    bench.memory[slot] = NULL;
    if (bench.backend->buffer_create(bench.device, size, &bench.bindings[slot].buffer)) {
        fprintf(stderr, "buffer_create: %s\n", vb_failure);
        exit(1);
    }
    return slot;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return values[count / 2];
}

double measure(void)
{
    double rounds[5];
    int times = 1;
    const double enough = quick ? 0.005 : 0.03;
    if (vb_compile(&bench) != TN_OK || vb_submit(&bench, 2) != TN_OK) {
        fprintf(stderr, "%s\n", vb_failure);
        exit(1);
    }
    for (int i = 0; i < 5; i++) {
        uint64_t begin = vb_now_ns();
        if (vb_submit(&bench, times) != TN_OK) {
            fprintf(stderr, "%s\n", vb_failure);
            exit(1);
        }
        double seconds = (double)(vb_now_ns() - begin) * 1e-9;
        rounds[i] = seconds / times;
        if (seconds < enough && times < 4096) {
            times *= 2;
            i = -1; // begin again with more
        }
    }
    vb_clear(&bench);
    return median(rounds, 5);
}

void report(const char *what, double amount, const char *unit)
{
    printf("%-12s %-36s %12.2f %s\n", bench.backend->name, what, amount, unit);
    fflush(stdout);
}

// --- elementwise -------------------------------------------------------------------------

struct program {
    tn_expr_program record;
    tn_expr_insn insns[12];
    tn_dtype inputs[2], output;
    uint32_t position;
};

static struct program make_program(tn_dtype dtype, uint32_t num_inputs, const char *name)
{
    struct program p = {.inputs = {dtype, dtype}, .output = dtype};
    uint16_t computed = dtype == TN_F16 ? TN_F32 : (uint16_t)dtype;
    for (uint32_t i = 0; i < num_inputs; i++)
        p.insns[i] = (tn_expr_insn){TN_EXPR_LOAD, computed, i, 0, 0};
    p.record = (tn_expr_program){.struct_size = sizeof(p.record),
                                 .num_insns = num_inputs,
                                 .num_inputs = num_inputs,
                                 .num_outputs = 1,
                                 .name = name};
    return p;
}

static void add_insn(struct program *p, uint16_t op, uint32_t a, uint32_t b)
{
    p->insns[p->record.num_insns++] = (tn_expr_insn){op, TN_F32, a, b, 0};
}

static void add_step(struct program *p, const uint64_t *params, const uint32_t *slots,
                     const tn_layout *layout)
{
    p->record.insns = p->insns;
    p->record.input_dtypes = p->inputs;
    p->record.output_dtypes = &p->output;
    p->record.outputs = &p->position;
    p->position = p->record.num_insns - 1;
    tn_step *step = vb_step(&bench, p->record.num_inputs, 1);
    step->program = &p->record;
    step->params = params;
    for (uint32_t i = 0; i <= p->record.num_inputs; i++)
        vb_set(step, i, slots[i], layout);
}

static void time_elementwise(struct program *p, int64_t n, const uint64_t *params)
{
    tn_layout layout = {.dtype = p->output, .rank = 1, .extent = {n}, .stride = {1}};
    uint64_t bytes = bytes_of(&layout);
    uint32_t slots[3];
    for (uint32_t i = 0; i <= p->record.num_inputs; i++)
        slots[i] = device_slot(bytes);
    add_step(p, params, slots, &layout);
    double moved = (double)bytes * (p->record.num_inputs + 1);
    report(p->record.name, moved / measure() * 1e-9, "GB/s");
}

// x * 0.5 * (1 + erf(x / sqrt(2)))
static void gelu(int64_t n)
{
    const double values[] = {0.70710678118654752, 1, 0.5};
    uint64_t params[3];
    memcpy(params, values, sizeof(params));
    struct program p = make_program(TN_F32, 1, "gelu f32, fused");
    add_insn(&p, TN_EXPR_PARAM, 0, 0);
    add_insn(&p, TN_EXPR_MUL, 0, 1);
    add_insn(&p, TN_EXPR_ERF, 2, 0);
    add_insn(&p, TN_EXPR_PARAM, 1, 0);
    add_insn(&p, TN_EXPR_ADD, 3, 4);
    add_insn(&p, TN_EXPR_PARAM, 2, 0);
    add_insn(&p, TN_EXPR_MUL, 0, 6);
    add_insn(&p, TN_EXPR_MUL, 7, 5);
    p.record.num_params = 3;
    time_elementwise(&p, n, params);
}

static void cast_to_half(int64_t n)
{
    struct program p = make_program(TN_F32, 1, "cast f32 to f16");
    tn_layout from = {.dtype = TN_F32, .rank = 1, .extent = {n}, .stride = {1}}, to = from;
    to.dtype = p.output = TN_F16;
    uint32_t slots[] = {device_slot(bytes_of(&from)), device_slot(bytes_of(&to))};
    add_step(&p, NULL, slots, &from);
    vb_set(&bench.steps[0], 1, slots[1], &to);
    report(p.record.name, 6.0 * (double)n / measure() * 1e-9, "GB/s");
}

static void transposed(tn_dtype dtype, const char *name)
{
    int64_t n = quick ? 512 : 8192;
    struct program p = make_program(dtype, 1, name);
    tn_layout to = matrix(dtype, n, n), from = to;
    from.stride[0] = 1;
    from.stride[1] = n;
    uint32_t slots[] = {device_slot(bytes_of(&to)), device_slot(bytes_of(&to))};
    add_step(&p, NULL, slots, &to);
    vb_set(&bench.steps[0], 0, slots[0], &from);
    report(name, 2.0 * (double)bytes_of(&to) / measure() * 1e-9, "GB/s");
}

static void elementwise(void)
{
    int64_t n = quick ? INT64_C(1) << 18 : INT64_C(1) << 27;
    double four = 4, two = 2;
    uint64_t params[2];
    memcpy(&params[0], &four, 8);
    memcpy(&params[1], &two, 8);

    struct program copy = make_program(TN_F32, 1, "copy f32");
    time_elementwise(&copy, n, NULL);
    struct program add = make_program(TN_F32, 2, "add f32");
    add_insn(&add, TN_EXPR_ADD, 0, 1);
    time_elementwise(&add, n, NULL);
    struct program exponential = make_program(TN_F32, 1, "exp f32");
    add_insn(&exponential, TN_EXPR_EXP, 0, 0);
    time_elementwise(&exponential, n, NULL);
    struct program half = make_program(TN_F16, 2, "add f16");
    add_insn(&half, TN_EXPR_ADD, 0, 1);
    time_elementwise(&half, n, NULL);
    struct program chain = make_program(TN_F32, 2, "4 * x + 2 * y f32, fused");
    add_insn(&chain, TN_EXPR_PARAM, 0, 0);
    add_insn(&chain, TN_EXPR_PARAM, 1, 0);
    add_insn(&chain, TN_EXPR_MUL, 0, 2);
    add_insn(&chain, TN_EXPR_MUL, 1, 3);
    add_insn(&chain, TN_EXPR_ADD, 4, 5);
    chain.record.num_params = 2;
    time_elementwise(&chain, n, params);
    gelu(n);
    cast_to_half(n);
    transposed(TN_F32, "copy f32, transposed");
    transposed(TN_F16, "copy f16, transposed");
}

static void dependent_dispatches(void)
{
    enum { STEPS = 400, TIMES = 401 };
    static struct program add;
    tn_layout layout = {.dtype = TN_F32, .rank = 1, .extent = {64}, .stride = {1}};
    uint32_t a = device_slot(256), b = device_slot(256), ones = device_slot(256);
    add = make_program(TN_F32, 2, "add");
    add_insn(&add, TN_EXPR_ADD, 0, 1);
    for (int i = 0; i < STEPS; i++)
        add_step(&add, NULL, (uint32_t[]){i % 2 ? b : a, ones, i % 2 ? a : b}, &layout);
    report("a dependent dispatch, replayed", measure() / STEPS * 1e6, "us");
    a = device_slot(256), b = device_slot(256), ones = device_slot(256);
    add_step(&add, NULL, (uint32_t[]){a, ones, b}, &layout);
    if (vb_compile(&bench) != TN_OK)
        exit(1);
    // The median: NVIDIA's driver takes milliseconds over one of the first submissions.
    double times[TIMES];
    for (int i = 0; i < TIMES; i++) {
        uint64_t begin = vb_now_ns();
        vb_submit(&bench, 1);
        times[i] = (double)(vb_now_ns() - begin) * 1e-3;
    }
    report("submit and wait of one dispatch", median(times, TIMES), "us");
    vb_clear(&bench);
}

// --- kernels ----------------------------------------------------------------------------

static uint32_t draw(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void upload(uint32_t slot, const void *data, uint64_t size)
{
    if (bench.backend->buffer_write(bench.device, bench.bindings[slot].buffer, 0, data,
                                    size) != TN_OK) {
        fprintf(stderr, "%s\n", vb_failure);
        exit(1);
    }
}

// Numbers of (0, 1) in both halves of each word, which as f32 are some as small as 1e-10:
// an old buffer may hold NaN, of which kernels make more work. The period is as long as
// `numbers`.
static void upload_numbers(uint32_t slot, uint64_t size)
{
    static uint16_t numbers[1 << 15];
    unsigned char *data = malloc(size);
    if (!data)
        exit(1);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers) && !numbers[i]; i++)
        numbers[i] = (uint16_t)(0x3000 + draw() % 0xb80);
    for (uint64_t at = 0; at < size; at += sizeof(numbers))
        memcpy(data + at, numbers,
               size - at < sizeof(numbers) ? size - at : sizeof(numbers));
    upload(slot, data, size);
    free(data);
}

void add_outputs(const char *primitive, const void *attrs, uint32_t num_inputs,
                 uint32_t num_outputs, const tn_layout *layouts)
{
    tn_step *step = vb_step(&bench, num_inputs, num_outputs);
    step->attrs = attrs;
    for (uint32_t i = 0; i < num_inputs + num_outputs; i++) {
        uint32_t slot = device_slot(bytes_of(&layouts[i]));
        vb_set(step, i, slot, &layouts[i]);
        tn_dtype dtype = layouts[i].dtype;
        if (i < num_inputs && (dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16))
            upload_numbers(slot, bytes_of(&layouts[i]));
    }
    if (!vb_use_kernel(&bench, step, primitive)) {
        fprintf(stderr, "%s: no kernel\n", primitive);
        exit(1);
    }
}

void add_kernel(const char *primitive, const void *attrs, uint32_t num_inputs,
                const tn_layout *layouts)
{
    add_outputs(primitive, attrs, num_inputs, 1, layouts);
}

static void products(void)
{
    static const tn_matmul_attrs none;
    static const struct {
        tn_dtype dtype;
        int64_t m, k, n;
        const char *name;
    } sizes[] = {{TN_F32, 4096, 4096, 4096, "matmul f32 4096"},
                 {TN_F16, 4096, 4096, 4096, "matmul f16 4096"},
                 {TN_F32, 1024, 1024, 1024, "matmul f32 1024"},
                 {TN_F32, 4096, 64, 4096, "matmul f32 4096x64x4096"}};
    int64_t part = quick ? 32 : 1;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int64_t m = sizes[i].m / part, k = sizes[i].k / part, n = sizes[i].n / part;
        tn_layout layouts[] = {matrix(sizes[i].dtype, m, k), matrix(sizes[i].dtype, k, n),
                               matrix(sizes[i].dtype, m, n)};
        add_kernel("base.matmul/1", &none, 2, layouts);
        report(sizes[i].name, 2.0 * (double)(m * k * n) / measure() * 1e-9, "GFLOP/s");
    }
}

// Attention of 32 heads that share 8 heads of keys, over 4096 keys: of as many queries, and
// of one, whose time is that of reading keys and values.
static void attention_of(tn_dtype dtype, int64_t depth)
{
    static const tn_attention_attrs none, causal = {.is_causal = 1};
    int64_t heads = quick ? 2 : 32, groups = quick ? 1 : 8, keys = quick ? 64 : 4096;
    char name[64];
    tn_layout k = {dtype, 4, 0, {1, groups, keys, depth}, {0, keys * depth, depth, 1}};
    tn_layout q = {dtype, 4, 0, {1, heads, keys, depth}, {0, keys * depth, depth, 1}};
    tn_layout one = {dtype, 4, 0, {1, heads, 1, depth}, {0, depth, depth, 1}};
    double work = 4.0 * (double)(heads * keys * keys * depth), bytes = (double)bytes_of(&k);
    const char *type = dtype == TN_F32 ? "f32" : dtype == TN_F16 ? "f16" : "bf16";
    k.stride[0] = q.stride[0] = one.stride[0] = 1; // of one element: any
    add_kernel("nn.scaled_dot_product_attention/1", &none, 3, (tn_layout[]){q, k, k, q});
    snprintf(name, sizeof(name), "attention %s of %d", type, (int)depth);
    report(name, work / measure() * 1e-9, "GFLOP/s");
    add_kernel("nn.scaled_dot_product_attention/1", &causal, 3, (tn_layout[]){q, k, k, q});
    snprintf(name, sizeof(name), "attention %s of %d, causal", type, (int)depth);
    report(name, work / 2 / measure() * 1e-9, "GFLOP/s");
    // Of the derivative the 5 products that it cannot do without.
    add_outputs("nn.attention_grad/1", &causal, 5, 3,
                (tn_layout[]){q, k, k, q, q, q, k, k});
    report("its derivative", work * 5 / 4 / measure() * 1e-9, "GFLOP/s");
    add_kernel("nn.scaled_dot_product_attention/1", &none, 3,
               (tn_layout[]){one, k, k, one});
    snprintf(name, sizeof(name), "attention %s of %d, one query", type, (int)depth);
    report(name, 2 * bytes / measure() * 1e-9, "GB/s");
}

static void attention(void)
{
    attention_of(TN_F32, 128);
    attention_of(TN_F16, 64);
    attention_of(TN_F16, 128);
    attention_of(TN_BF16, 128);
}

static void reductions(void)
{
    static const tn_reduce_attrs all,
        rows = {.axis = {.count = 1, .given = 1, .value = {1}}},
        columns = {.axis = {.count = 1, .given = 1}};
    int64_t n = quick ? 256 : 8192;
    tn_layout x = matrix(TN_F32, n, n), line = {TN_F32, 1, 0, {n}, {1}};
    tn_layout one = {.dtype = TN_F32};
    double bytes = (double)bytes_of(&x);
    add_kernel("base.sum/1", &all, 1, (tn_layout[]){x, one});
    report("sum f32, all", bytes / measure() * 1e-9, "GB/s");
    add_kernel("base.sum/1", &rows, 1, (tn_layout[]){x, line});
    report("sum f32, rows", bytes / measure() * 1e-9, "GB/s");
    add_kernel("base.sum/1", &columns, 1, (tn_layout[]){x, line});
    report("sum f32, columns", bytes / measure() * 1e-9, "GB/s");
    static const tn_argmax_attrs of_rows = {.axis = 1};
    tn_layout indices = line;
    indices.dtype = TN_I64;
    add_kernel("base.argmax/1", &of_rows, 1, (tn_layout[]){x, indices});
    report("argmax f32, rows", bytes / measure() * 1e-9, "GB/s");
    tn_layout doubles = matrix(TN_F64, n, n);
    add_kernel("base.argmax/1", &of_rows, 1, (tn_layout[]){doubles, indices});
    report("argmax f64, rows", 2 * bytes / measure() * 1e-9, "GB/s");
}

// --- rows by index -----------------------------------------------------------------------

static void upload_floats(uint32_t slot, uint64_t size)
{
    float *data = malloc(size);
    if (!data)
        exit(1);
    for (uint64_t i = 0; i < size / sizeof(*data); i++)
        data[i] = (float)draw() * 1e-6f;
    upload(slot, data, size);
    free(data);
}

void upload_indices(uint32_t slot, int64_t count, uint32_t rows)
{
    int64_t *data = malloc((size_t)count * sizeof(*data));
    if (!data)
        exit(1);
    for (int64_t i = 0; i < count; i++)
        data[i] = rows ? draw() % rows : 7;
    upload(slot, data, (uint64_t)count * sizeof(*data));
    free(data);
}

// The peer's time is that of PyTorch 2.11 on an H200 for these sizes, 0: not measured.
static void scatter(const char *name, bool in_place, bool same_row, double peer_ms)
{
    static const tn_take_attrs first;
    int64_t rows = quick ? 200 : 200000, columns = 512, count = quick ? 2000 : 131072;
    tn_layout x = matrix(TN_F32, rows, columns), updates = matrix(TN_F32, count, columns);
    tn_layout indices = {TN_I64, 1, 0, {count}, {1}};
    add_kernel("base.scatter_add/1", &first, 3, (tn_layout[]){x, indices, updates, x});
    tn_step *step = &bench.steps[bench.num_steps - 1];
    if (in_place)
        *(tn_value *)(uintptr_t)step->inputs = step->outputs[0];
    upload_floats(tn_step_input(step, 0)->slot, bytes_of(&x));
    upload_indices(tn_step_input(step, 1)->slot, count, same_row ? 0 : (uint32_t)rows);
    upload_floats(tn_step_input(step, 2)->slot, bytes_of(&updates));
    char unit[64] = "us";
    if (peer_ms > 0 && !quick)
        snprintf(unit, sizeof(unit), "us (PyTorch on an H200: %.0f)", peer_ms * 1e3);
    report(name, measure() * 1e6, unit);
}

static void take_rows(void)
{
    static const tn_take_attrs first;
    int64_t rows = quick ? 200 : 200000, columns = 512, count = quick ? 2000 : 131072;
    tn_layout x = matrix(TN_F32, rows, columns), out = matrix(TN_F32, count, columns);
    tn_layout indices = {TN_I64, 1, 0, {count}, {1}};
    add_kernel("base.take/1", &first, 2, (tn_layout[]){x, indices, out});
    upload_indices(bench.steps[0].inputs[1].slot, count, (uint32_t)rows);
    report("take f32, rows of 512", 2.0 * (double)bytes_of(&out) / measure() * 1e-9,
           "GB/s");
}

static void indexed(void)
{
    take_rows();
    scatter("scatter-add f32, 131072 rows of 512", false, false, 0.7);
    scatter("scatter-add, in place", true, false, 0);
    scatter("scatter-add, all to one row", true, true, 0);
}

static const struct {
    const char *name;
    void (*measure)(void);
} parts[] = {{"elementwise", elementwise},
             {"dispatches", dependent_dispatches},
             {"products", products},
             {"attention", attention},
             {"reductions", reductions},
             {"indexed", indexed},
             {"rows", rows},
             {"convolutions", convolutions},
             {"orders", orders},
             {"others", others},
             {"quantised", quantised},
             {"small", small},
             {"decoding", decoding}};

static bool is_named(const char *part, char **names, int num_names)
{
    for (int i = 0; i < num_names; i++)
        if (strcmp(names[i], part) == 0)
            return true;
    return num_names == 0;
}

static bool is_part(const char *name)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strcmp(parts[i].name, name) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    bool usable = argc >= 2;
    quick = argc > 2 && strcmp(argv[2], "--quick") == 0;
    for (int i = 2 + quick; i < argc; i++)
        usable &= is_part(argv[i]);
    if (!usable) {
        fprintf(stderr,
                "usage: speed PLUGIN.so [--quick] "
                "[elementwise|dispatches|products|attention|reductions|indexed|rows|"
                "convolutions|orders|others|quantised|small|decoding...]\n");
        return 2;
    }
    if (!vb_begin(&bench, argv[1]))
        return 77;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (is_named(parts[i].name, argv + 2 + quick, argc - 2 - quick)) {
            printf("# part %s\n", parts[i].name);
            parts[i].measure();
        }
    vb_end(&bench);
    return 0;
}
