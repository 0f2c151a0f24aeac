// SPDX-License-Identifier: MIT
// The CPU backend's kernels against the references of the primitives, on random shapes,
// strides and values. TENON_TEST_PLUGIN, _BASE and _NN name the plugins.
#include "check.h"

#include <math.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/reference.h>
#include "../sanitized.h"
#include "device_harness.h"

static const tn_plugin *cpu, *packs[2];
static struct device_harness harness;
static uint64_t seed, state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(draw() % (uint64_t)(high - low + 1));
}

// --- one application --------------------------------------------------------------------

struct application {
    const char *primitive;
    const void *attrs;
    tn_layout operands[8]; // inputs, then the output
    uint32_t num_inputs;
    double tolerance;   // of |reference| + 1
    int64_t limit;      // integers are drawn from [-limit, limit]
    const char *kernel; // NULL: the only one
    int64_t hostile;    // of floats, every so many is infinite or NaN; 0: none
};

static const tn_primitive *find_primitive(const char *id)
{
    for (int k = 0; k < 2; k++) {
        const tn_ops *ops = packs[k]->query(TN_IFACE_OPS);
        for (uint32_t i = 0; i < ops->num_primitives; i++)
            if (strcmp(ops->primitives[i]->id, id) == 0)
                return ops->primitives[i];
    }
    cr_fatal("no primitive %s", id);
    return NULL;
}

// Bytes from the buffer's start to the end of the furthest element.
static uint64_t span(const tn_layout *layout)
{
    int64_t last = layout->offset;
    for (int32_t i = 0; i < layout->rank; i++)
        if (layout->stride[i] > 0 && layout->extent[i] > 0)
            last += (layout->extent[i] - 1) * layout->stride[i];
    return (uint64_t)((last + 1) * tn_dtype_bytes(layout->dtype));
}

static void fill(void *data, tn_dtype dtype, uint64_t bytes, int64_t limit)
{
    tn_tensor tensor = {data, {.dtype = dtype}};
    int64_t n = (int64_t)bytes / tn_dtype_bytes(dtype);
    for (int64_t i = 0; i < n; i++) {
        if (tn_dtype_in(dtype, TN_FLOAT_DTYPES))
            // Few distinct values now and then, so that there are equal ones.
            tn_set_f64(&tensor, i,
                       limit < 4 ? (double)between(-limit, limit)
                                 : (double)between(-1000, 1000) / 500);
        else
            tn_set_i64(&tensor, i,
                       between(tn_dtype_in(dtype, TN_UNSIGNED_DTYPES) ? 0 : -limit, limit));
    }
}

// Infinities and NaNs in places that are drawn: where they come out does not depend on the
// order of sums.
static void spoil(void *data, tn_dtype dtype, uint64_t bytes, int64_t every)
{
    static const double values[] = {INFINITY, -INFINITY, NAN, -0.0};
    tn_tensor tensor = {data, {.dtype = dtype}};
    int64_t n = (int64_t)bytes / tn_dtype_bytes(dtype);
    for (int64_t i = between(0, every); i < n; i += between(1, 2 * every))
        tn_set_f64(&tensor, i, values[between(0, 3)]);
}

#define CANARY 0xa5
#define GUARD 64 // bytes

static void check_guards(const unsigned char *memory, uint64_t bytes)
{
    for (uint64_t i = 0; i < GUARD; i++) {
        cr_assert(eq(u8, memory[i], CANARY));
        cr_assert(eq(u8, memory[GUARD + bytes + i], CANARY));
    }
}

static void compare(const struct application *a, const tn_tensor *got,
                    const tn_tensor *want)
{
    int64_t n = harness_count(&got->layout);
    for (int64_t i = 0; i < n; i++) {
        double x = tn_get_f64(got, i), y = tn_get_f64(want, i);
        if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= a->tolerance * (1 + fabs(y)))
            continue;
        cr_fatal("%s, seed %llu: element %lld is %.9g, expected %.9g", a->primitive,
                 (unsigned long long)seed, (long long)i, x, y);
    }
}

// Runs the backend's kernel and the reference on the same inputs, and compares.
static void check(const struct application *a)
{
    const tn_layout *out = &a->operands[a->num_inputs];
    uint64_t bytes = harness_bytes(out);
    tn_step *steps[2];
    uint32_t outs[2], ins[8];

    for (uint32_t i = 0; i < a->num_inputs; i++) {
        ins[i] = harness_slot(&harness, span(&a->operands[i]) + 8);
        fill(harness_memory(&harness, ins[i]), a->operands[i].dtype, span(&a->operands[i]),
             a->limit);
        if (a->hostile)
            spoil(harness_memory(&harness, ins[i]), a->operands[i].dtype,
                  span(&a->operands[i]), a->hostile);
    }
    for (int k = 0; k < 2; k++) {
        steps[k] = harness_step(&harness, a->num_inputs, 1);
        steps[k]->primitive = find_primitive(a->primitive);
        steps[k]->attrs = a->attrs;
        steps[k]->label = a->primitive;
        outs[k] = harness_slot(&harness, bytes + 2 * GUARD);
        memset(harness_memory(&harness, outs[k]), CANARY, bytes + 2 * GUARD);
        for (uint32_t i = 0; i < a->num_inputs; i++)
            harness_set(steps[k], i, ins[i], &a->operands[i]);
        harness_set(steps[k], a->num_inputs, outs[k], out);
        ((tn_value *)steps[k]->outputs)->offset = GUARD;
    }
    steps[0]->kernel = harness_kernel(cpu, a->primitive, a->kernel);
    cr_assert(ne(ptr, steps[0]->kernel, NULL));
    harness_scratch(&harness, steps[0]);
    if (harness_run(&harness) != TN_OK)
        cr_fatal("%s, seed %llu: %s", a->primitive, (unsigned long long)seed,
                 harness_message);

    tn_tensor got = {(char *)harness_memory(&harness, outs[0]) + GUARD, *out};
    tn_tensor want = {(char *)harness_memory(&harness, outs[1]) + GUARD, *out};
    check_guards(harness_memory(&harness, outs[0]), bytes);
    compare(a, &got, &want);
    harness_clear(&harness);
}

// --- layouts ---------------------------------------------------------------------------

// Contiguous, permuted, with gaps, reversed or broadcast.
static tn_layout any_layout(tn_dtype dtype, int32_t rank, const int64_t *extent)
{
    tn_layout layout = harness_layout(dtype, rank, extent);
    int32_t order[TN_MAX_RANK];
    int64_t stride = 1;
    if (between(0, 3) == 0)
        return layout;
    for (int32_t i = 0; i < rank; i++)
        order[i] = i;
    for (int32_t i = rank - 1; i > 0; i--) {
        int32_t k = (int32_t)between(0, i), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    layout.offset = between(0, 3);
    for (int32_t i = rank - 1; i >= 0; i--) {
        int32_t axis = order[i];
        layout.stride[axis] = stride;
        stride *= layout.extent[axis] + between(0, 1);
        if (between(0, 7) == 0) {
            layout.stride[axis] = 0;
        } else if (between(0, 7) == 0 && layout.extent[axis] > 0) {
            layout.offset += (layout.extent[axis] - 1) * layout.stride[axis];
            layout.stride[axis] = -layout.stride[axis];
        }
    }
    return layout;
}

// --- matmul ----------------------------------------------------------------------------

static void open_device(void)
{
    cpu = harness_load(check_getenv("TENON_TEST_PLUGIN"));
    packs[0] = harness_load(check_getenv("TENON_TEST_BASE"));
    packs[1] = harness_load(check_getenv("TENON_TEST_NN"));
    seed = check_seed(harness_now_ns() % 1000000 + 1);
    state = seed * UINT64_C(0x9e3779b97f4a7c15);
    harness_print_device(cpu);
    harness_open(&harness, cpu);
}

static void close_device(void)
{
    harness_close(&harness);
    cr_assert(eq(i64, harness_leaks(), 0));
}

TestSuite(cpu_backend, .init = open_device, .fini = close_device);

static void check_products(int rounds)
{
    static const tn_matmul_attrs attrs = {0};
    for (int round = 0; round < rounds; round++) {
        tn_dtype dtype = round % 3       ? (tn_dtype)between(TN_BOOL, TN_F64)
                         : between(0, 1) ? TN_F32
                         : between(0, 1) ? TN_F64
                         : between(0, 1) ? TN_COMPLEX64
                                         : TN_COMPLEX128;
        int64_t m = between(0, 40), k = between(0, 40), n = between(0, 40);
        int64_t b0 = between(1, 3), b1 = between(1, 3);
        if (between(0, 9) == 0)
            m = between(100, 300), k = between(30, 60), n = between(50, 80);
        if (between(0, 99) == 0) // threads share a copy of b
            m = between(130, 300), k = between(100, 200), n = between(90, 200);
        int32_t ra = (int32_t)between(1, 4), rb = (int32_t)between(1, 4);
        int64_t ea[4] = {b0, between(0, 1) ? b1 : 1, m, k};
        int64_t eb[4] = {between(0, 1) ? b0 : 1, b1, k, n};
        int64_t eo[4], rank = 0;
        int32_t most = ra > rb ? ra : rb;
        for (int32_t i = 4 - most; i < 2; i++) {
            int64_t x = i >= 4 - ra ? ea[i] : 1, y = i >= 4 - rb ? eb[i] : 1;
            eo[rank++] = x == 1 ? y : x;
        }
        if (ra > 1)
            eo[rank++] = m;
        if (rb > 1)
            eo[rank++] = n;
        int is_float = tn_dtype_in(dtype, TN_FLOAT_DTYPES | TN_COMPLEX_DTYPES);
        int has_panels = is_float;
        struct application a = {.primitive = "base.matmul/1",
                                .kernel = has_panels && between(0, 3) ? "panels"
                                          : is_float                  ? "openblas"
                                                                      : "blocked",
                                .attrs = &attrs,
                                .num_inputs = 2,
                                .limit = 3};
        a.operands[0] = any_layout(dtype, ra, ra == 1 ? &ea[3] : &ea[4 - ra]);
        a.operands[1] = any_layout(dtype, rb, rb == 1 ? &eb[2] : &eb[4 - rb]);
        a.operands[2] = harness_layout(dtype, (int32_t)rank, eo);
        // Small integers: sums are exact in any order.
        check(&a);
    }
}

Test(cpu_backend, products_agree)
{
    check_products(ROUNDS(900));
}

// A product that many threads share has parts of few rows.
Test(cpu_backend, products_on_many_threads_agree)
{
    harness_close(&harness);
    harness_threads = "16"; // however many processors there are
    harness_open(&harness, cpu);
    harness_threads = NULL;
    check_products(IS_SANITIZED ? 200 : 4000); // races and bounds show in few
}

// --- reductions ------------------------------------------------------------------------

static tn_dtype sum_dtype(tn_dtype dtype)
{
    if (tn_dtype_in(dtype, TN_FLOAT_DTYPES))
        return dtype;
    return tn_dtype_in(dtype, TN_UNSIGNED_DTYPES) ? TN_U64 : TN_I64;
}

Test(cpu_backend, reductions_agree)
{
    static const char *const ids[] = {"base.sum/1", "base.max/1", "base.min/1"};
    for (int round = 0; round < ROUNDS(600); round++) {
        int kind = (int)between(0, 2);
        tn_dtype dtype = (tn_dtype)between(1, 13);
        int32_t rank = (int32_t)between(1, 4);
        int64_t extent[4], kept[4], n = 0;
        tn_reduce_attrs attrs = {0};
        int64_t most = rank == 1 ? 5000 : rank == 2 ? 300 : 20;
        for (int32_t i = 0; i < rank; i++)
            extent[i] = between(1, between(0, 2) ? 8 : most);
        uint32_t set = (uint32_t)between(1, (1 << rank) - 1);
        attrs.axis.given = between(0, 4) > 0;
        if (!attrs.axis.given)
            set = (1u << rank) - 1;
        double terms = 1;
        for (int32_t i = 0; i < rank; i++) {
            if (set >> i & 1) {
                attrs.axis.value[attrs.axis.count++] = between(0, 1) ? i : i - rank;
                terms *= (double)extent[i];
            } else {
                kept[n++] = extent[i];
            }
        }
        struct application a = {ids[kind], &attrs, .num_inputs = 1, .limit = 100};
        a.operands[0] = any_layout(dtype, rank, extent);
        a.operands[1] =
            harness_layout(kind == 0 ? sum_dtype(dtype) : dtype, (int32_t)n, kept);
        // Halves: one rounding at the end. f32: where the terms of a sum cancel, its error
        // is relative to the sum of their magnitudes (about one each), here 1/16 of an
        // epsilon.
        a.tolerance = dtype == TN_F16    ? 1e-3
                      : dtype == TN_BF16 ? 8e-3
                      : dtype == TN_F64  ? 1e-12
                                         : 4e-6 + (kind == 0 ? terms * 4e-9 : 0);
        check(&a);
    }
}

Test(cpu_backend, argmax_agrees)
{
    for (int round = 0; round < ROUNDS(300); round++) {
        int64_t extent[3] = {between(1, 9), between(1, 40), between(1, 9)}, kept[3], n = 0;
        if (between(0, 3) == 0)
            extent[between(0, 2)] = between(1, 400);
        if (round % 60 == 0) // cut into parts
            extent[0] = between(1, 3), extent[1] = between(60000, 90000), extent[2] = 1;
        int32_t axis = round % 60 == 0 ? 1 : (int32_t)between(0, 3);
        tn_argmax_attrs attrs = {.axis = axis == 3 ? TN_NO_AXIS : axis};
        for (int32_t i = 0; i < 3 && axis < 3; i++)
            if (i != axis)
                kept[n++] = extent[i];
        struct application a = {"base.argmax/1", &attrs, .num_inputs = 1, .limit = 3};
        a.operands[0] = any_layout(TN_F32, 3, extent);
        a.operands[1] = harness_layout(TN_I64, (int32_t)n, kept);
        check(&a);
    }
}

// --- indices ---------------------------------------------------------------------------

// The layout of what take gives: x's extents with `axis` replaced by those of the indices.
static tn_layout taken_layout(const tn_layout *x, int32_t axis, const tn_layout *indices)
{
    int64_t extent[TN_MAX_RANK], rank = 0;
    for (int32_t i = 0; i < axis; i++)
        extent[rank++] = x->extent[i];
    for (int32_t i = 0; i < indices->rank; i++)
        extent[rank++] = indices->extent[i];
    for (int32_t i = axis + 1; i < x->rank; i++)
        extent[rank++] = x->extent[i];
    return harness_layout(x->dtype, (int32_t)rank, extent);
}

static int is_accepted(const struct application *a)
{
    const tn_kernel *kernel = harness_kernel(cpu, a->primitive, NULL);
    tn_kernel_query query = {.struct_size = sizeof(query),
                             .inputs = a->operands,
                             .outputs = &a->operands[a->num_inputs],
                             .attrs = a->attrs,
                             .num_inputs = a->num_inputs,
                             .num_outputs = 1};
    return !kernel->accepts || kernel->accepts(&query);
}

static void draw_indexing(struct application *a, tn_take_attrs *attrs, int scatters)
{
    static const tn_dtype integers[] = {TN_I64, TN_I32, TN_I8, TN_U64, TN_U8, TN_I64};
    tn_dtype dtype = (tn_dtype)between(scatters ? TN_I8 : TN_BOOL, TN_F64);
    int32_t rank = (int32_t)between(1, 4), axis = (int32_t)between(0, rank - 1);
    int64_t extent[4], count[2] = {between(0, 9), between(1, 5)};
    for (int32_t i = 0; i < rank; i++)
        extent[i] = between(1, i == rank - 1 && between(0, 3) == 0 ? 300 : 7);
    if (between(0, 9) == 0)
        count[0] = between(100, 900);
    attrs->axis = between(0, 1) ? axis : axis - rank;
    a->primitive = scatters ? "base.scatter_add/1" : "base.take/1";
    a->num_inputs = scatters ? 3 : 2;
    a->operands[0] = any_layout(dtype, rank, extent);
    a->operands[1] = harness_layout(integers[between(0, 5)], (int32_t)between(0, 2), count);
    a->operands[2] = taken_layout(&a->operands[0], axis, &a->operands[1]);
    if (scatters)
        a->operands[3] = harness_layout(dtype, rank, extent);
}

Test(cpu_backend, taking_and_scattering_agree)
{
    int taken = 0;
    for (int round = 0; round < ROUNDS(600); round++) {
        tn_take_attrs attrs = {0};
        struct application a = {.attrs = &attrs, .limit = 9};
        draw_indexing(&a, &attrs, round % 2);
        if (!is_accepted(&a)) // what comes after the axis is no run
            continue;
        check(&a);
        taken++;
    }
    cr_assert(taken > ROUNDS(300));
}

// --- networks --------------------------------------------------------------------------

struct window_case {
    tn_conv2d_attrs attrs;
    int64_t x[4], w[4], out[4];
};

static tn_ints pair_of(int64_t a, int64_t b)
{
    return (tn_ints){.count = 2, .given = 1, .value = {a, b}};
}

// `depth`: as many groups as channels, at least 4.
static void draw_convolution(struct window_case *c, int depth)
{
    int64_t groups = depth ? between(4, 40) : between(1, 2), kernel[2], stride[2], pad[2],
            dilation[2];
    *c = (struct window_case){
        .x = {between(1, 3), 0, 0, depth ? groups : groups * between(1, 4)}};
    for (int i = 0; i < 2; i++) {
        kernel[i] = between(1, 5);
        stride[i] = between(1, 3);
        pad[i] = between(0, 5); // more than a window: some patches are all padding
        dilation[i] = between(1, 2);
        int64_t reach = (kernel[i] - 1) * dilation[i] + 1, least = reach - 2 * pad[i];
        c->x[i + 1] = (least > 1 ? least : 1) + between(0, 12);
        c->out[i + 1] = (c->x[i + 1] + 2 * pad[i] - reach) / stride[i] + 1;
        c->w[i + 1] = kernel[i];
    }
    c->out[0] = c->x[0];
    c->out[3] = c->w[0] = groups * (depth && between(0, 1) ? 1 : between(1, 5));
    c->w[3] = c->x[3] / groups;
    c->attrs = (tn_conv2d_attrs){.stride = pair_of(stride[0], stride[1]),
                                 .padding = pair_of(pad[0], pad[1]),
                                 .dilation = pair_of(dilation[0], dilation[1]),
                                 .groups = groups};
}

// The forward pass and both gradients, by the kernels of a name.
static void check_convolution(const char *kernel, struct window_case *c, tn_dtype dtype,
                              int64_t hostile)
{
    struct application a = {.attrs = &c->attrs, .kernel = kernel, .limit = 3};
    tn_layout x = harness_layout(dtype, 4, c->x), w = harness_layout(dtype, 4, c->w);
    tn_layout out = harness_layout(dtype, 4, c->out), bias = harness_layout(dtype, 1, c->w);
    a.hostile = hostile;
    a.primitive = "nn.conv2d/1";
    a.num_inputs = between(0, 1) ? 2 : 3;
    memcpy(a.operands, (tn_layout[]){x, w, a.num_inputs == 2 ? out : bias, out},
           4 * sizeof(x));
    check(&a);
    a.num_inputs = 2;
    a.primitive = "nn.conv2d_input/1";
    c->attrs.extent = pair_of(c->x[1], c->x[2]);
    memcpy(a.operands, (tn_layout[]){out, w, x}, 3 * sizeof(x));
    check(&a);
    a.primitive = "nn.conv2d_weight/1";
    c->attrs.extent = pair_of(c->w[1], c->w[2]);
    memcpy(a.operands, (tn_layout[]){x, out, w}, 3 * sizeof(x));
    check(&a);
}

Test(cpu_backend, convolutions_agree)
{
    for (int round = 0; round < ROUNDS(120); round++) {
        struct window_case c;
        draw_convolution(&c, 0);
        check_convolution("openblas", &c, TN_F32, 0);
    }
}

static const tn_dtype tile_floats[] = {TN_F32, TN_F16, TN_F32, TN_BF16};

// Integers, so that each order of a sum gives the same, also where it is rounded to a half
// at its end.
Test(cpu_backend, convolutions_in_tiles_agree)
{
    for (int round = 0; round < ROUNDS(160); round++) {
        struct window_case c;
        draw_convolution(&c, 0);
        check_convolution("tiles", &c, tile_floats[round % 4], between(0, 2) ? 0 : 40);
    }
}

// Filters and channels around the widths of tiles, several panels, bands and images in one,
// long rows; pixels far apart, whose copies lie otherwise; windows of one element; one
// channel.
Test(cpu_backend, large_convolutions_in_tiles_agree)
{
    struct window_case cases[] = {
        {{.padding = pair_of(1, 1)}, {2, 12, 17, 17}, {65, 3, 3, 17}, {2, 12, 17, 65}},
        {{.stride = pair_of(2, 2), .padding = pair_of(3, 3)},
         {1, 41, 30, 3},
         {33, 7, 7, 3},
         {1, 21, 15, 33}},
        {{.stride = pair_of(2, 3), .padding = pair_of(1, 2), .dilation = pair_of(2, 1)},
         {5, 9, 8, 32},
         {48, 3, 4, 32},
         {5, 4, 3, 48}},
        {{.groups = 3}, {3, 11, 5, 48}, {96, 1, 1, 16}, {3, 11, 5, 96}},
        {{.padding = pair_of(1, 0)}, {4, 3, 4, 512}, {6, 3, 1, 512}, {4, 3, 4, 6}},
        {{.stride = pair_of(1, 2), .padding = pair_of(0, 3), .dilation = pair_of(1, 2)},
         {2, 1, 2600, 3},
         {20, 1, 5, 3},
         {2, 1, 1299, 20}},
        {{.stride = pair_of(2, 2)}, {3, 7, 6, 20}, {512, 1, 1, 20}, {3, 4, 3, 512}},
        {{.padding = pair_of(2, 2)}, {3, 28, 28, 1}, {6, 5, 5, 1}, {3, 28, 28, 6}},
        {{.dilation = pair_of(2, 1)}, {2, 40, 31, 1}, {11, 3, 7, 1}, {2, 36, 25, 11}},
    };
    for (int i = 0; i < 9; i++) {
        cases[i].attrs.groups = cases[i].attrs.groups ? cases[i].attrs.groups : 1;
        check_convolution("tiles", &cases[i], TN_F32, i < 8 ? 0 : 997);
        check_convolution("tiles", &cases[i], i % 2 ? TN_BF16 : TN_F16, 997);
    }
}

// One image, which the threads take bands of; also with a stride, gaps and an edge.
Test(cpu_backend, gradients_of_one_tall_image_agree)
{
    struct window_case cases[] = {
        {{.padding = pair_of(1, 1), .groups = 1},
         {1, 60, 20, 3},
         {5, 3, 3, 3},
         {1, 60, 20, 5}},
        {{.stride = pair_of(2, 1),
          .padding = pair_of(3, 0),
          .dilation = pair_of(2, 1),
          .groups = 2},
         {1, 75, 12, 4},
         {6, 3, 2, 2},
         {1, 39, 11, 6}},
    };
    for (int i = 0; i < 2; i++) {
        struct window_case *c = &cases[i];
        c->attrs.extent = pair_of(c->x[1], c->x[2]);
        struct application a = {"nn.conv2d_input/1", &c->attrs, .num_inputs = 2,
                                .kernel = "openblas", .limit = 3};
        a.operands[0] = harness_layout(TN_F32, 4, c->out);
        a.operands[1] = harness_layout(TN_F32, 4, c->w);
        a.operands[2] = harness_layout(TN_F32, 4, c->x);
        check(&a);
    }
}

// Integers, so that each order of a sum gives the same, also where it is rounded to a half
// at its end.
Test(cpu_backend, depthwise_convolutions_agree)
{
    static const tn_dtype floats[] = {TN_F32, TN_F16, TN_F32, TN_BF16, TN_F64};
    for (int round = 0; round < ROUNDS(250); round++) {
        struct window_case c;
        draw_convolution(&c, 1);
        check_convolution("depthwise", &c, floats[round % 5], between(0, 2) ? 0 : 40);
    }
}

// Several bands of rows of halves, and several chunks of a gradient of the weights.
Test(cpu_backend, large_depthwise_convolutions_agree)
{
    struct window_case cases[] = {
        {{.padding = pair_of(1, 1), .groups = 33},
         {2, 40, 50, 33},
         {33, 3, 3, 1},
         {2, 40, 50, 33}},
        {{.stride = pair_of(2, 2), .padding = pair_of(2, 2), .groups = 24},
         {1, 67, 60, 24},
         {48, 5, 5, 1},
         {1, 34, 30, 48}},
    };
    for (int i = 0; i < 2; i++) {
        check_convolution("depthwise", &cases[i], TN_F32, 0);
        check_convolution("depthwise", &cases[i], TN_BF16, 0);
        check_convolution("depthwise", &cases[i], TN_F16, 997);
    }
}

Test(cpu_backend, pooling_agrees)
{
    for (int round = 0; round < ROUNDS(120); round++) {
        tn_pool2d_attrs attrs = {0};
        int64_t x[4] = {between(1, 3), 0, 0, between(1, 9)}, out[4] = {x[0], 0, 0, x[3]};
        int64_t window[2], stride[2], pad[2];
        for (int i = 0; i < 2; i++) {
            window[i] = between(1, 4);
            stride[i] = between(1, 4);
            pad[i] = between(0, window[i] / 2);
            x[i + 1] = window[i] + between(0, 9);
            out[i + 1] = (x[i + 1] + 2 * pad[i] - window[i]) / stride[i] + 1;
        }
        attrs.window = pair_of(window[0], window[1]);
        attrs.stride = pair_of(stride[0], stride[1]);
        attrs.padding = pair_of(pad[0], pad[1]);
        struct application a = {"nn.max_pool2d/1", &attrs, .num_inputs = 1, .limit = 3};
        a.operands[0] = harness_layout(TN_F32, 4, x);
        a.operands[1] = harness_layout(TN_F32, 4, out);
        check(&a);
    }
}
