// SPDX-License-Identifier: MIT
// Steps that share an input: reductions that become one row program, and on vulkan-jit
// launches that do the work of several steps. Each graph computed at once gives what its
// nodes give alone on the CPU, by as many steps and launches as a table says. Reductions
// give the bits that they give alone on the same device.
#include "siblings_axes.h"
#include <tenon/launches.h>

#define INTEGERS TN_DTYPE_BIT(TN_I32)

// --- graphs ----------------------------------------------------------------------------

static tn_array *over_two(const struct maker *m, const char *op, tn_array *x)
{
    return kept(m, tn_op(m->s, op, TN_IN(x), tn_attrs("axis", TN_INTS(-2, -1))));
}

static int statistics(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(40, 48), 1);
    out[0] = over(m, "sum", x, -1);
    out[1] = over(m, "max", x, -1);
    out[2] = over(m, "sum", square(m, x), -1);
    out[3] = over(m, "min", un1(m, "abs", x), -1);
    return 4;
}

static int over_several_axes(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(12, 6, 16), 2);
    out[0] = over_two(m, "mean", x);
    out[1] = over_two(m, "max", x);
    return 2;
}

// Rows of one axis and of two are not the same rows.
static int other_rows(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(12, 40, 48), 2);
    out[0] = over_two(m, "mean", x);
    out[1] = over(m, "max", x, -1);
    return 2;
}

// A norm and a maximum of what is normalised, and their elements.
static int beside_a_norm(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(40, 48), 3), *w = data(m, TN_SHAPE(48), 4);
    out[0] = kept(m, tn_op(m->s, "nn.rms_norm", TN_IN(x, w), tn_attrs("eps", 1e-5)));
    out[1] = over(m, "max", x, -1);
    return 2;
}

// Two arrays, each of which one of the reductions reads alone.
static int of_two_arrays(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(40, 48), 3), *y = data(m, TN_SHAPE(40, 48), 5);
    out[0] = over(m, "sum", x, -1);
    out[1] = over(m, "sum", bin2(m, "multiply", x, y), -1);
    out[2] = over(m, "max", y, -1);
    return 3;
}

// What both read is a row of weights.
static int of_weights(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *w = data(m, TN_SHAPE(48), 4);
    for (int i = 0; i < 2; i++)
        out[i] = over(m, "sum", bin2(m, "multiply", data(m, TN_SHAPE(40, 48), i), w), -1);
    return 2;
}

// The second sum needs the first one, by way of a product.
static int dependent(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(40, 48), 1);
    tn_array *sum = over(m, "max", x, -1);
    tn_array *y = bin2(m, "matmul", data(m, TN_SHAPE(48, 40), 2), sum);
    out[0] = over(m, "sum", bin2(m, "multiply", x, y), -1);
    return 1;
}

// The norm reads the maxima of rows as weights of columns.
static int in_another_order(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(48, 48), 1), *most = over(m, "max", x, -1);
    out[0] = kept(m, tn_op(m->s, "nn.rms_norm", TN_IN(x, most), tn_attrs("eps", 1e-5)));
    return 1;
}

// A sibling that devices decline, for its gaps, leaves the others as they are.
static int with_gaps(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(48, 48), 1), *y = data(m, TN_SHAPE(48, 48), 2);
    tn_array *mean = kept(
        m, tn_op(m->s, "mean", TN_IN(x), tn_attrs("axis", (int64_t)-1, "keepdims", 1)));
    out[0] = bin2(m, "subtract", x, mean);
    y = kept(m, tn_op(m->s, "transpose", TN_IN(y), tn_attrs("axes", TN_INTS(1, 0))));
    out[1] = over(m, "sum", bin2(m, "multiply", x, y), -1);
    return 2;
}

// More results than a program has.
static int many(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(40, 48), 1);
    for (int i = 0; i < 10; i++)
        out[i] = over(m, "sum", bin2(m, "maximum", x, tn_float(m->s, i * 0.25)), -1);
    return 10;
}

static int projections(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(3, 70), 1);
    out[0] = product(m, x, 24, 1);
    out[1] = product(m, x, 1, 2);
    out[2] = product(m, x, 57, 3);
    return 3;
}

// Each product with work of its own behind it, in other memory or in that of an input.
static int with_epilogues(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(5, 33), 1);
    out[0] = un1(m, "abs", bin2(m, "add", product(m, x, 24, 1), data(m, TN_SHAPE(24), 4)));
    out[1] = product(m, x, 24, 2);
    tn_array *residual = un1(m, "negative", product(m, x, 9, 5));
    out[2] = bin2(m, "add", product(m, x, 9, 3), residual);
    return 3;
}

// Factors that lie transposed are multiplied by another kernel.
static int transposed(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(6, 40), 1);
    out[0] = product(m, x, 24, 1);
    out[1] = product(m, x, 16, 2);
    out[2] = bin2(m, "matmul", x, turned(m, data(m, TN_SHAPE(24, 40), 3)));
    out[3] = bin2(m, "matmul", x, turned(m, data(m, TN_SHAPE(16, 40), 4)));
    return 4;
}

// Batches of the left operand are rows; those of both are not.
static int batches(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(2, 3, 20), 1);
    out[0] = product(m, x, 24, 1);
    out[1] = product(m, x, 9, 2);
    out[2] = bin2(m, "matmul", x, data(m, TN_SHAPE(2, 20, 8), 3));
    return 3;
}

// The second product reads the first one's result; the third is neither's.
static int chained(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(4, 16), 1);
    tn_array *y = product(m, x, 16, 1);
    out[0] = product(m, y, 16, 2);
    out[1] = product(m, x, 16, 3);
    return 2;
}

// The later product of x is moved up, past what is made of the first one.
static int moved_up(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(4, 16), 1), *h = product(m, x, 16, 1);
    h = over(m, "cumsum", h, 0);
    out[0] = over(m, "cumsum", h, 1);
    out[1] = over(m, "cumsum", product(m, x, 16, 3), 0);
    return 2;
}

// Two left operands, and more products than a launch takes.
static int many_products(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(4, 16), 1), *y = data(m, TN_SHAPE(7, 12), 2);
    for (int i = 0; i < 4; i++) {
        out[2 * i] = product(m, x, 8 + i, i);
        out[2 * i + 1] = product(m, y, 8 + i, i + 4);
    }
    return 8;
}

// By tiles of 64, and of 128, of which each fills a device.
static int of_large_tiles(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    // Rows of 21 elements are not read four at a time, as by matmul_wide.comp, which is
    // alone.
    tn_array *x = data(m, TN_SHAPE(300, 21), 1);
    out[0] = product(m, x, 400, 1);
    out[1] = product(m, x, 450, 2);
    return 2;
}

// --- products whose results one program reads ------------------------------------------

// What passes through the gate times the other product.
static tn_array *gated(const struct maker *m, const char *gate, tn_array *x,
                       int64_t columns)
{
    tn_array *opened = un1(m, gate, product(m, x, columns, 4));
    return bin2(m, "multiply", opened, product(m, x, columns, 9));
}

// Few terms and many, with biases.
static int gated_units(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(1, 2100), 1), *bias = data(m, TN_SHAPE(9), 2);
    tn_array *opened = un1(m, "sigmoid", bin2(m, "add", product(m, x, 9, 4), bias));
    out[0] = bin2(m, "multiply", opened, bin2(m, "subtract", product(m, x, 9, 5), bias));
    out[1] = gated(m, "nn.silu", data(m, TN_SHAPE(3, 5), 1), 57);
    return 2;
}

// A batch of rows, and as many as a launch takes.
static int gated_rows(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    out[0] = gated(m, "tanh", data(m, TN_SHAPE(2, 1, 40), 1), 8);
    out[1] = gated(m, "abs", data(m, TN_SHAPE(16, 300), 1), 24);
    return 2;
}

// A step of a recurrent cell: four products, two results.
static int cell(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = data(m, TN_SHAPE(2, 33), 1), *c = data(m, TN_SHAPE(2, 12), 2);
    tn_array *i = un1(m, "sigmoid", product(m, h, 12, 1));
    tn_array *f = un1(m, "sigmoid", product(m, h, 12, 2));
    tn_array *g = un1(m, "tanh", product(m, h, 12, 3));
    tn_array *o = un1(m, "sigmoid", product(m, h, 12, 4));
    out[0] = bin2(m, "add", bin2(m, "multiply", f, c), bin2(m, "multiply", i, g));
    out[1] = bin2(m, "multiply", o, un1(m, "tanh", out[0]));
    return 2;
}

// Left operands of their own, which lie transposed, as the right ones of two.
static int of_other_arrays(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *sum = NULL;
    for (int i = 0; i < 3; i++) {
        tn_array *x = turned(m, data(m, TN_SHAPE(70, 2), i));
        tn_array *one = product(m, x, 11, i + 3);
        sum = sum ? bin2(m, "add", sum, one) : one;
    }
    out[0] = sum;
    tn_array *x = data(m, TN_SHAPE(1, 40), 1);
    tn_array *a = turned(m, data(m, TN_SHAPE(24, 40), 3));
    tn_array *b = turned(m, data(m, TN_SHAPE(24, 40), 4));
    out[1] = bin2(m, "maximum", bin2(m, "matmul", x, a), bin2(m, "matmul", x, b));
    return 2;
}

// More products than a launch has, and an array between them.
static int sum_of_products(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(4, 20), 1), *sum = data(m, TN_SHAPE(4, 16), 5);
    for (int i = 0; i < 5; i++)
        sum = bin2(m, "add", sum, product(m, x, 16, i));
    out[0] = kept(m, tn_op(m->s, "astype", TN_IN(sum), tn_attrs("dtype", "f16")));
    return 1;
}

// Somebody else reads a product's result: the application, or a step before or behind.
static int read_twice(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(4, 20), 1), *p = product(m, x, 16, 1);
    out[0] = product(m, x, 16, 2);
    out[1] = bin2(m, "multiply", p, out[0]);
    tn_array *y = data(m, TN_SHAPE(3, 20), 1), *q = product(m, y, 16, 3);
    tn_array *r = product(m, y, 16, 4), *sums = over(m, "cumsum", r, 0);
    out[2] = bin2(m, "multiply", q, r);
    out[3] = bin2(m, "multiply", out[2], sums);
    return 4;
}

// Not element by element, and too many rows.
static int in_other_orders(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(6, 20), 1), *p = product(m, x, 6, 1);
    out[0] = bin2(m, "multiply", p, turned(m, product(m, x, 6, 2)));
    out[1] = gated(m, "abs", data(m, TN_SHAPE(17, 5), 1), 8);
    tn_array *row = data(m, TN_SHAPE(1, 20), 1);
    out[2] = bin2(m, "multiply", product(m, row, 16, 1), product(m, row, 1, 2));
    return 3;
}

// Steps between the product and the program, which may have the memory of its factor.
static int waiting(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(16, 16), 1), *t = data(m, TN_SHAPE(16, 16), 2);
    tn_array *factor = over(m, "cumsum", un1(m, "negative", t), 0);
    tn_array *both =
        bin2(m, "multiply", product(m, x, 16, 3), bin2(m, "matmul", x, factor));
    for (int64_t i = 0; i < 4; i++)
        t = over(m, "cumsum", un1(m, "sin", t), i % 2);
    out[0] = bin2(m, "add", both, t);
    return 1;
}

// The result may lie where an array lies that the program reads, and so does a product.
static int over_a_factor(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(4, 16), 1);
    tn_array *y = over(m, "cumsum", data(m, TN_SHAPE(4, 16), 2), 0);
    tn_array *sum = bin2(m, "add", product(m, x, 16, 3), y);
    out[0] = over(m, "cumsum", bin2(m, "add", sum, product(m, y, 16, 4)), 0);
    return 1;
}

// Each unit reads the one before, and its residual may lie in the same memory.
static int units_in_a_row(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    out[0] = data(m, TN_SHAPE(4, 24), 1);
    for (int i = 0; i < 3; i++)
        out[0] = bin2(m, "add", out[0], un1(m, "tanh", gated(m, "sigmoid", out[0], 24)));
    return 1;
}

struct sample {
    const char *name;
    build_graph *build;
    uint32_t dtypes, vulkan_dtypes;
    uint32_t steps, vulkan_steps; // for f32; 0: open
    uint32_t launches;            // of vulkan-jit, for f32; 0: open
    uint32_t jit_steps;           // where vulkan-jit has others; 0: it has not
} graphs[] = {
    {"statistics of rows", statistics, ALL, HALF, 1, 1, 1},
    {"over several axes", over_several_axes, ONLY_F32, ONLY_F32, 1, 1, 1},
    {"rows of one axis and of two", other_rows, ONLY_F32, ONLY_F32, 2, 2, 0},
    {"beside a norm", beside_a_norm, FLOATS, ONLY_F32, 1, 1, 1},
    {"of two arrays", of_two_arrays, ONLY_F32, ONLY_F32, 1, 1, 1},
    {"of weights", of_weights, ONLY_F32, ONLY_F32, 2, 2, 0},
    {"dependent", dependent, ONLY_F32, ONLY_F32, 3, 3, 0},
    {"in another order", in_another_order, ONLY_F32, ONLY_F32, 2, 2, 0},
    {"with gaps", with_gaps, ONLY_F32, ONLY_F32, 2, 2, 0},
    {"many", many, ONLY_F32, ONLY_F32, 2, 2, 0},
    {"projections", projections, ALL, ALL, 3, 3, 1},
    {"with epilogues", with_epilogues, ALL, HALF, 4, 4, 2},
    {"transposed", transposed, ONLY_F32, HALF, 4, 4, 2},
    {"batches", batches, ONLY_F32, HALF, 3, 3, 2},
    {"chained", chained, ONLY_F32, ONLY_F32, 3, 3, 2},
    {"moved up", moved_up, ONLY_F32, ONLY_F32, 5, 5, 4},
    {"many products", many_products, ONLY_F32, ONLY_F32, 8, 8, 2},
    {"of large tiles", of_large_tiles, ONLY_F32, ONLY_F32, 2, 2, 1},
    {"gated units", gated_units, ONLY_F32, HALF, 4, 4, 2},
    {"gated rows", gated_rows, ONLY_F32, ONLY_F32, 4, 4, 2},
    {"cell", cell, ONLY_F32, ONLY_F32, 4, 4, 1},
    {"of other arrays", of_other_arrays, ONLY_F32, ONLY_F32, 5, 5, 2},
    {"sum of products", sum_of_products, ONLY_F32, ONLY_F32, 5, 5, 2},
    {"read twice", read_twice, ONLY_F32, ONLY_F32, 5, 5, 0},
    {"in other orders", in_other_orders, ONLY_F32, ONLY_F32, 6, 6, 0},
    {"waiting", waiting, ONLY_F32, ONLY_F32, 12, 12, 0},
    {"over a factor", over_a_factor, ONLY_F32, ONLY_F32, 4, 4, 4},
    {"units in a row", units_in_a_row, ONLY_F32, ONLY_F32, 6, 6, 3},
};

static const struct sample reductions[] = {
    {"columns", columns, ALL, ALL, 0, 7, 1},
    {"of everything", of_everything, FLOATS, FLOATS, 0, 5, 2},
    {"of integers", of_integers, INTEGERS, INTEGERS, 0, 4, 2},
    {"of a view", of_a_view, ONLY_F32, HALF, 0, 3, 2},
    {"spread", spread, ALL, ALL, 0, 6, 2},
    {"with work behind", with_work_behind, ONLY_F32, HALF, 0, 3, 1},
    {"of products", of_products, ONLY_F32, HALF, 0, 4, 2},
    {"of one program", of_one_program, ONLY_F32, ONLY_F32, 0, 5, 2, 4},
    {"of a kept program", of_a_kept_program, ONLY_F32, ONLY_F32, 0, 4, 3},
    {"many columns", many_columns, ONLY_F32, ONLY_F32, 0, 14, 2},
    {"not siblings", not_siblings, ONLY_F32, ONLY_F32, 0, 3, 3},
    {"of the first", of_the_first, ONLY_F32, ONLY_F32, 0, 3, 2},
    {"with NaN", with_nan, ONLY_F32, HALF, 0, 6, 2},
    {"of few", of_few, ONLY_F32, HALF, 0, 8, 0},
};

// --- comparing -------------------------------------------------------------------------

static void count_launch(void *context, const tn_planned_launch *launch)
{
    (void)launch;
    ++*(uint32_t *)context;
}

// Counts the launches that vulkan-jit plans from now on; NULL: no more.
static void watch_launches(uint32_t *count)
{
    const void *table;
    const tn_host *host;
    if (strcmp(backend(), "vulkan-jit") != 0)
        return;
    must(NULL, tn_provider_load(runtime, TN_IFACE_LAUNCHES, "org.tenon.vulkan-jit", &table,
                                &host));
    const tn_launches *launches = table;
    must(NULL, launches->watch(host, count ? count_launch : NULL, count));
}

// What the graph's nodes give alone on the same device, to the bit.
static void compare_bits(const struct sample *g, const struct maker *a, tn_array **at_once)
{
    static unsigned char got[1 << 16], want[1 << 16];
    tn_array *alone[MOST_RESULTS];
    struct maker b = {tn_scope_open(runtime), a->dtype, true};
    int count = g->build(&b, alone);
    for (int i = 0; i < count; i++) {
        const tn_type *type = tn_array_type(at_once[i]);
        uint64_t size = (uint64_t)tn_dtype_bytes(type->dtype);
        for (int32_t k = 0; k < type->rank; k++)
            size *= (uint64_t)type->extent[k];
        must(a->s, tn_read(a->s, at_once[i], got, size));
        must(b.s, tn_read(b.s, alone[i], want, size));
        for (uint64_t k = 0; k < size; k++)
            if (got[k] != want[k])
                cr_fatal("%s, %s, result %d: byte %llu of %llu is %02x, alone %02x",
                         g->name, tn_dtype_name(type->dtype), i, (unsigned long long)k,
                         (unsigned long long)size, got[k], want[k]);
    }
    tn_scope_close(b.s);
}

static uint32_t wanted_steps(const struct sample *g)
{
    if (is_cpu())
        return g->steps;
    bool is_jit = strcmp(backend(), "vulkan-jit") == 0;
    return is_jit && g->jit_steps > 0 ? g->jit_steps : g->vulkan_steps;
}

// `has_bits`: results have the bits of the nodes alone.
static void run_graph(const struct sample *g, tn_dtype dtype, bool has_bits)
{
    tn_array *at_once[MOST_RESULTS], *alone[MOST_RESULTS];
    struct maker a = {tn_scope_open(runtime), dtype, false};
    struct maker b = {tn_scope_open(cpu), dtype, true};
    int count = g->build(&a, at_once);
    cr_assert(eq(int, g->build(&b, alone), count));
    uint64_t before = stats_of(runtime).steps;
    uint32_t launches = 0;
    watch_launches(&launches);
    must(a.s, tn_eval_n(a.s, at_once, (uint64_t)count));
    watch_launches(NULL);
    uint64_t steps = stats_of(runtime).steps - before;
    uint32_t wanted = wanted_steps(g);
    if (dtype == TN_F32 && wanted > 0 && steps != wanted)
        cr_fatal("%s: %llu steps, expected %u", g->name, (unsigned long long)steps, wanted);
    bool is_counted = !is_gpu() && !getenv("TENON_VULKAN_AS_GPU") && g->launches > 0;
    if (dtype == TN_F32 && launches > 0 && is_counted && launches != g->launches)
        cr_fatal("%s: %u launches, expected %u", g->name, launches, g->launches);
    for (int i = 0; i < count; i++)
        compare(g->name, a.s, at_once[i], b.s, alone[i]);
    if (has_bits)
        compare_bits(g, &a, at_once);
    tn_scope_close(a.s);
    tn_scope_close(b.s);
}

static void run_graphs(const struct sample *list, size_t count, bool have_bits)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_I32};
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof(dtypes) / sizeof(*dtypes); k++)
            if ((is_cpu() ? list[i].dtypes : list[i].vulkan_dtypes) &
                TN_DTYPE_BIT(dtypes[k]))
                run_graph(&list[i], dtypes[k], have_bits);
}

TestSuite(siblings, .init = open_backend, .fini = close_both);

Test(siblings, joined_steps_give_what_their_parts_give)
{
    run_graphs(graphs, sizeof(graphs) / sizeof(*graphs), false);
}

// On a GPU the numbers of launches differ, and a driver may contract other sums.
Test(siblings, reductions_over_any_axes_give_what_they_give_alone)
{
    bool is_exact = !is_cpu() && !is_gpu();
    run_graphs(reductions, sizeof(reductions) / sizeof(*reductions), is_exact);
}
