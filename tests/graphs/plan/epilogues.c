// SPDX-License-Identifier: MIT
// Programs that become part of a kernel's step: each graph computed at once, which fuses,
// gives what its nodes give when each is evaluated alone on the CPU. TENON_TEST_BACKEND
// says on which backend.
#include "samples.h"
#include <unistd.h>

static tn_array *along(const struct maker *m, const char *op, tn_array *x)
{
    return kept(m, tn_op(m->s, op, TN_IN(x), tn_attrs("axis", 0)));
}

// --- graphs ----------------------------------------------------------------------------

static tn_array *product(const struct maker *m, int64_t rows, int64_t k, int64_t columns)
{
    return bin2(m, "matmul", data(m, TN_SHAPE(rows, k), 1),
                data(m, TN_SHAPE(k, columns), 5));
}

static int residual(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = bin2(m, "add", product(m, 5, 7, 6), data(m, TN_SHAPE(6), 2));
    h = m->dtype == TN_I32 ? un1(m, "abs", h) : un1(m, "tanh", h);
    out[0] = bin2(m, "add", h, data(m, TN_SHAPE(5, 6), 3));
    return 1;
}

static int several_blocks(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = product(m, 600, 32, 70);
    out[0] = bin2(m, "multiply", h, data(m, TN_SHAPE(600, 1), 2));
    return 1;
}

static int batch_reshaped(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h =
        bin2(m, "matmul", data(m, TN_SHAPE(2, 3, 4), 1), data(m, TN_SHAPE(4, 5), 2));
    h = kept(m, tn_op(m->s, "reshape", TN_IN(h), tn_attrs("shape", TN_INTS(6, 5))));
    out[0] = bin2(m, "add", h, data(m, TN_SHAPE(5), 4));
    return 1;
}

static int also_wanted(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    out[0] = product(m, 4, 3, 5);
    out[1] = un1(m, "negative", out[0]);
    out[2] = along(m, "sum", out[0]);
    return 3;
}

static int turned(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = product(m, 4, 3, 4);
    out[0] = bin2(m, "subtract", h, un1(m, "transpose", h));
    return 1;
}

static int one_element(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    out[0] = un1(m, "negative", product(m, 1, 9, 1));
    return 1;
}

// The sum may lie in the memory of the second product, which it reads in order.
static int two_products(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    out[0] = bin2(m, "subtract", product(m, 5, 3, 6), product(m, 5, 4, 6));
    return 1;
}

// The result must not lie in the memory of what the kernel reads too.
static int own_input(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = un1(m, "negative", data(m, TN_SHAPE(300, 6), 1));
    tn_array *h = bin2(m, "matmul", x, data(m, TN_SHAPE(6, 6), 2));
    out[0] = bin2(m, "add", h, x);
    return 1;
}

static int narrowed(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = product(m, 6, 3, 4);
    out[0] = kept(m, tn_op(m->s, "astype", TN_IN(h), tn_attrs("dtype", "i16")));
    out[1] = bin2(m, "greater", h, data(m, TN_SHAPE(4), 9));
    return 2;
}

static int convolution(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(2, 9, 8, 4), 1), *w = data(m, TN_SHAPE(6, 3, 3, 2), 2);
    tn_array *h = kept(m, tn_op(m->s, "nn.conv2d", TN_IN(x, w),
                                tn_attrs("groups", 2, "padding", TN_INTS(1, 1))));
    h = bin2(m, "add", h, data(m, TN_SHAPE(6), 4));
    out[0] = bin2(m, "maximum", h, data(m, TN_SHAPE(1), 0));
    return 1;
}

static int sum_of_products(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h =
        bin2(m, "multiply", data(m, TN_SHAPE(70, 50), 1), data(m, TN_SHAPE(50), 2));
    h = along(m, "sum", h);
    out[0] = bin2(m, "add", h, data(m, TN_SHAPE(50), 3));
    return 1;
}

static int outer_and_inner(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = un1(m, "square", data(m, TN_SHAPE(4, 5, 40), 1));
    h = kept(m, tn_op(m->s, "max", TN_IN(h), tn_attrs("axis", TN_INTS(0, 2))));
    out[0] = un1(m, "negative", h);
    return 1;
}

static int read_twice(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = un1(m, "abs", data(m, TN_SHAPE(9, 40), 1));
    out[0] = along(m, "sum", h);
    out[1] = h;
    return 2;
}

static int taken(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    const int64_t at[] = {3, 0, 3, 7, 1, 2};
    tn_array *i = tn_from_data(m->s, TN_I64, TN_SHAPE(6), at);
    tn_array *h = kept(m, tn_op(m->s, "take", TN_IN(data(m, TN_SHAPE(8, 3, 5), 1), i),
                                tn_attrs("axis", 0)));
    h = bin2(m, "multiply", h, data(m, TN_SHAPE(3, 5), 2));
    out[0] =
        kept(m, tn_op(m->s, "take", TN_IN(un1(m, "negative", h), i), tn_attrs("axis", 2)));
    out[0] = bin2(m, "add", out[0], data(m, TN_SHAPE(6, 3, 6), 2));
    return 1;
}

// Products that take one of the Vulkan backends' tiles each, with edges inside of them.
static int tiles(const struct maker *m, tn_array *out[MOST_RESULTS], int64_t batch,
                 int64_t rows, int64_t columns)
{
    tn_array *h = bin2(m, "matmul", data(m, TN_SHAPE(batch, rows, 3), 1),
                       data(m, TN_SHAPE(3, columns), 5));
    h = bin2(m, "add", h, data(m, TN_SHAPE(columns), 2));
    h = m->dtype == TN_I32 ? un1(m, "square", h) : un1(m, "nn.gelu", h);
    h = bin2(m, "multiply", h, data(m, TN_SHAPE(rows, 1), 4));
    out[0] = bin2(m, "add", h, data(m, TN_SHAPE(batch, rows, columns), 3));
    return 1;
}

static int tiles_8(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return tiles(m, out, 3, 9, 17);
}

static int tiles_16(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return tiles(m, out, 1, 131, 135);
}

static int tiles_64(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return tiles(m, out, 16, 65, 66);
}

// The program is written out 64 times, which takes drivers long: a short one.
static int tiles_128(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h =
        bin2(m, "matmul", data(m, TN_SHAPE(32, 129, 3), 1), data(m, TN_SHAPE(3, 130), 5));
    out[0] = bin2(m, "add", h, data(m, TN_SHAPE(129, 1), 2));
    return 1;
}

// The program reads the numbers of its elements.
static int numbered(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = bin2(m, "matmul", data(m, TN_SHAPE(23, 5), 1), data(m, TN_SHAPE(5), 2));
    tn_array *i =
        kept(m, tn_op(m->s, "arange", NULL, 0, tn_attrs("start", 3.0, "stop", 26.0)));
    i = kept(m,
             tn_op(m->s, "astype", TN_IN(i), tn_attrs("dtype", tn_dtype_name(m->dtype))));
    out[0] = bin2(m, "maximum", h, i);
    return 1;
}

static int joined(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = un1(m, "square", data(m, TN_SHAPE(4, 6), 1));
    tn_array *y = data(m, TN_SHAPE(4, 8), 2);
    tn_array *h = kept(m, tn_op(m->s, "concatenate", TN_IN(x, y), tn_attrs("axis", 1)));
    out[0] = un1(m, "negative", h);
    return 1;
}

static int part_at(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    const int32_t at[] = {2, 1};
    tn_array *i = tn_from_data(m->s, TN_I32, TN_SHAPE(2), at);
    tn_array *h =
        kept(m, tn_op(m->s, "dynamic_slice", TN_IN(data(m, TN_SHAPE(8, 10), 1), i),
                      tn_attrs("sizes", TN_INTS(4, 8))));
    out[0] = bin2(m, "subtract", h, data(m, TN_SHAPE(8), 2));
    return 1;
}

// Split in parts on a GPU, and the parts added by a launch of their own.
static int long_sum(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = un1(m, "abs", data(m, TN_SHAPE(2, 900, 3), 1));
    h = kept(m, tn_op(m->s, "mean", TN_IN(h), tn_attrs("axis", TN_INTS(0, 1))));
    out[0] = bin2(m, "multiply", h, data(m, TN_SHAPE(3), 5));
    return 1;
}

static int index_of_largest(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = un1(m, "negative", data(m, TN_SHAPE(11, 4), 1));
    out[0] = un1(m, "square", along(m, "argmax", h));
    return 1;
}

// Bools pass into the sum.
static int counted(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = bin2(m, "greater", data(m, TN_SHAPE(30, 6), 1), data(m, TN_SHAPE(6), 2));
    out[0] = along(m, "sum", h);
    return 1;
}

// A program of no elements.
static int empty_sum(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h =
        bin2(m, "multiply", data(m, TN_SHAPE(3, 0, 5), 1), data(m, TN_SHAPE(5), 2));
    out[0] = kept(m, tn_op(m->s, "sum", TN_IN(h), tn_attrs("axis", 1)));
    return 1;
}

static tn_array *narrow(const struct maker *m, const tn_shape *shape, int start)
{
    const struct maker whole = {m->s, TN_I32, m->alone};
    tn_array *x = data(&whole, shape, start);
    x = tn_op(m->s, "astype", TN_IN(x), tn_attrs("dtype", "i8"));
    must(m->s, tn_eval(m->s, x));
    return x;
}

// Elements of 8 bits, negative ones too, pass from a kernel and into one.
static int narrow_elements(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    const int32_t at[] = {4, 0, -1};
    tn_array *i = tn_from_data(m->s, TN_I32, TN_SHAPE(3), at);
    tn_array *x = narrow(m, TN_SHAPE(5, 6), 1), *y = narrow(m, TN_SHAPE(3, 6), 2);
    tn_array *h = kept(m, tn_op(m->s, "take", TN_IN(x, i), tn_attrs("axis", 0)));
    out[0] = kept(m, tn_op(m->s, "astype", TN_IN(bin2(m, "maximum", h, y)),
                           tn_attrs("dtype", "i32")));
    h = un1(m, "negative", y);
    out[1] = kept(m, tn_op(m->s, "concatenate", TN_IN(x, h), tn_attrs("axis", 0)));
    return 2;
}

static int convolution_gradient(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(2, 9, 8, 4), 1), *w = data(m, TN_SHAPE(6, 3, 3, 4), 2);
    tn_array *g = data(m, TN_SHAPE(2, 9, 8, 6), 3), *both[2];
    tn_array *y = tn_op(m->s, "nn.conv2d", TN_IN(x, w), tn_attrs("padding", TN_INTS(1, 1)));
    must(m->s, tn_vjp(m->s, &y, &g, 1, (tn_array *const[]){x, w}, 2, both));
    out[0] = bin2(m, "multiply", kept(m, both[0]), data(m, TN_SHAPE(4), 3));
    out[1] = un1(m, "abs", kept(m, both[1]));
    return 2;
}

// Three layers whose activations have a megabyte, and gradients of their weights.
static int activations(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *weights[6], *h = data(m, TN_SHAPE(1024, 8), 1);
    for (int i = 0; i < 6; i++) {
        tn_array *w = data(m, i % 2 ? TN_SHAPE(256, 8) : TN_SHAPE(8, 256), i);
        weights[i] = kept(m, tn_expr(m->s, "x -> x / 64", TN_IN(w), TN_NO_ATTRS));
    }
    for (int i = 0; i < 6; i += 2) {
        tn_array *up = bin2(m, "matmul", h, weights[i]);
        h = bin2(m, "add", h, bin2(m, "matmul", un1(m, "nn.gelu", up), weights[i + 1]));
    }
    tn_array *loss = un1(m, "mean", bin2(m, "multiply", h, h));
    must(m->s, tn_vjp(m->s, &loss, NULL, 1, weights, 6, out));
    return 6;
}

// A program that has a kernel's result as input, of which nothing reaches its output.
static int not_used(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(2, 4, 6), 1), *y = data(m, TN_SHAPE(2, 4), 3);
    tn_array *h = kept(m, tn_op(m->s, "sum", TN_IN(x), tn_attrs("axis", -1)));
    tn_array *k = product(m, 5, 7, 6);
    h = kept(m, tn_op(m->s, "nn.dropout", TN_IN(h), tn_attrs("p", 1.0)));
    k = kept(m, tn_op(m->s, "nn.dropout", TN_IN(k), tn_attrs("p", 1.0)));
    out[0] = bin2(m, "add", h, y);
    out[1] = bin2(m, "add", k, data(m, TN_SHAPE(5, 6), 2));
    return 2;
}

// Into one kernel pass a program with numbers of its own and one of a number alone, which
// has no memory.
static int counted_bins(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = un1(m, "abs", data(m, TN_SHAPE(60000), 1));
    tn_array *bin = un1(m, "floor", bin2(m, "multiply", x, tn_float(m->s, 7)));
    bin = kept(m, tn_op(m->s, "astype", TN_IN(bin), tn_attrs("dtype", "i64")));
    tn_array *ones =
        kept(m, tn_op(m->s, "full", NULL, 0,
                      tn_attrs("shape", TN_INTS(60000), "value", 1.0, "dtype", "i32")));
    tn_array *none =
        kept(m, tn_op(m->s, "full", NULL, 0,
                      tn_attrs("shape", TN_INTS(90), "value", 0.0, "dtype", "i32")));
    out[0] = kept(m, tn_op(m->s, "scatter_add", TN_IN(none, bin, ones), TN_NO_ATTRS));
    return 1;
}

static const struct sample {
    const char *name;
    build_graph *build;
    uint32_t dtypes;
    uint32_t steps; // of the plan, for f32
    // The same on Vulkan, where each dtype is another kernel to compile.
    uint32_t vulkan_dtypes, vulkan_steps;
} graphs[] = {
    {"bias, tanh and residual", residual, ALL, 1, ALL, 1},
    {"other dtypes", narrowed, ALL, 2, ALL, 2},
    {"a sum of products", sum_of_products, ALL, 1, ALL, 1},
    {"several blocks", several_blocks, ALL, 1, ONLY_F32, 1},
    {"a batch, reshaped", batch_reshaped, FLOATS, 1, ONLY_F64, 1},
    {"a product that is wanted too", also_wanted, ALL, 2, HALF, 2},
    {"a product beside its transpose", turned, ALL, 2, ONLY_F32, 2},
    {"one element", one_element, ALL, 2, ONLY_F32, 1},
    {"two products", two_products, ALL, 2, ONLY_F32, 2},
    {"an input of the product", own_input, ALL, 2, ONLY_F32, 2},
    {"a convolution", convolution, ONLY_F32, 1, HALF, 1},
    {"outer and inner axes", outer_and_inner, ALL, 1, HALF, 1},
    {"what is read twice", read_twice, ONLY_F32, 2, ONLY_F32, 2},
    {"taken along two axes", taken, ALL, 2, ALL, 2},
    {"tiles of 8", tiles_8, ALL, 1, HALF, 1},
    {"tiles of 16", tiles_16, ALL, 1, ONLY_F32, 1},
    {"tiles of 64", tiles_64, ALL, 1, ONLY_F32, 1},
    {"tiles of 128", tiles_128, ONLY_F32, 1, ONLY_F32, 1},
    {"numbers of the elements", numbered, ALL, 1, ALL, 1},
    {"parts that are joined", joined, ALL, 3, HALF, 1},
    {"a part at an index", part_at, ALL, 2, HALF, 1},
    {"a long mean", long_sum, FLOATS, 2, HALF, 1},
    {"the index of the largest", index_of_largest, ALL, 3, HALF, 1},
    {"a count", counted, ONLY_F32, 2, ONLY_F32, 1},
    {"a sum of nothing", empty_sum, ONLY_F32, 1, ONLY_F32, 1},
    {"elements of 8 bits", narrow_elements, ONLY_F32, 3, ONLY_F32, 2},
    {"gradients of a convolution", convolution_gradient, ONLY_F32, 4, ONLY_F32, 2},
    {"results that are not used", not_used, FLOATS, 4, ONLY_F32, 4},
    {"elements in bins", counted_bins, ONLY_F32, 4, ONLY_F32, 2},
};

// --- comparing -------------------------------------------------------------------------

// A GPU computes large products alone.
static uint32_t wanted_steps(const struct sample *g)
{
    if (is_cpu())
        return g->steps;
    return g->vulkan_steps + (g->build == tiles_128 && is_gpu());
}

static void run_graph(const struct sample *g, tn_dtype dtype, bool count_steps)
{
    tn_array *fused[MOST_RESULTS], *alone[MOST_RESULTS];
    struct maker a = {tn_scope_open(runtime), dtype, false};
    struct maker b = {tn_scope_open(cpu), dtype, true};
    int count = g->build(&a, fused);
    cr_assert(eq(int, g->build(&b, alone), count));
    uint64_t before = stats_of(runtime).steps;
    must(a.s, tn_eval_n(a.s, fused, (uint64_t)count));
    uint64_t steps = stats_of(runtime).steps - before;
    uint32_t wanted = wanted_steps(g);
    if (count_steps && dtype == TN_F32 && steps != wanted)
        cr_fatal("%s: %llu steps, expected %u", g->name, (unsigned long long)steps, wanted);
    for (int i = 0; i < count; i++)
        compare(g->name, a.s, fused[i], b.s, alone[i]);
    tn_scope_close(a.s);
    tn_scope_close(b.s);
}

enum { NUM_GRAPHS = sizeof(graphs) / sizeof(*graphs) };

// Runs the first `count` graphs in each of their dtypes.
static void run_graphs(size_t count, bool count_steps)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_I32};
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof(dtypes) / sizeof(*dtypes); k++)
            if ((is_cpu() ? graphs[i].dtypes : graphs[i].vulkan_dtypes) &
                TN_DTYPE_BIT(dtypes[k]))
                run_graph(&graphs[i], dtypes[k], count_steps);
}

TestSuite(epilogues, .init = open_backend, .fini = close_both);

Test(epilogues, fused_steps_give_what_their_parts_give)
{
    run_graphs(NUM_GRAPHS, true);
}

// The layers see modules that were linked, and say nothing.
Test(epilogues, validation_is_silent)
{
    static char said[65536];
    if (is_cpu())
        cr_skip("there is nothing to validate on the CPU");
    close_both();
    FILE *file = tmpfile();
    int errors = dup(STDERR_FILENO);
    cr_assert(file && errors >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    open_with_cpu("TENON_VULKAN_VALIDATION=1");
    run_graphs(3, true);
    cr_assert(dup2(errors, STDERR_FILENO) >= 0);
    rewind(file);
    said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
    fclose(file);
    close(errors);
    if (strstr(said, "is not installed"))
        cr_skip("the validation layers are not installed");
    if (strstr(said, "validation"))
        cr_fatal("%s", said);
}

TestSuite(epilogues_threads, .fini = close_both);

// More threads than processors: the blocks of workers do not overlap.
Test(epilogues_threads, of_several_workers_each_has_its_own_memory)
{
    open_with_cpu("TENON_THREADS=4");
    if (!is_cpu())
        cr_skip("threads are those of the CPU");
    run_graphs(NUM_GRAPHS, false);
}

// Of two layers a device with memory of its own computes activations again: those of the
// last one are alive when most memory is in use.
Test(epilogues, large_activations_are_computed_again)
{
    static const char again[] = "gelu\xc2\xb7";
    tn_array *out[MOST_RESULTS], *wanted[MOST_RESULTS];
    struct maker a = {tn_scope_open(runtime), TN_F32, false};
    struct maker b = {tn_scope_open(cpu), TN_F32, true};
    int count = activations(&a, out), found = 0;
    cr_assert(eq(int, activations(&b, wanted), count));
    char *text = NULL;
    must(a.s, tn_explain(a.s, out, (uint64_t)count, &text));
    for (const char *at = text; (at = strstr(at, again)); at++)
        found++;
    tn_text_free(text);
    cr_assert(eq(int, found, is_cpu() ? 0 : 2));
    must(a.s, tn_eval_n(a.s, out, (uint64_t)count));
    for (int i = 0; i < count; i++)
        compare("activations", a.s, out[i], b.s, wanted[i]);
    tn_scope_close(a.s);
    tn_scope_close(b.s);
}

// A GPU computes a large product and what follows it by two launches, a small one by one.
Test(epilogues_threads, large_products_stay_alone_on_a_gpu)
{
    open_with_cpu("TENON_VULKAN_AS_GPU=1");
    for (int64_t n = 4; n <= 512; n *= 128) {
        struct maker m = {.s = tn_scope_open(runtime), .dtype = TN_F32};
        tn_array *x = data(&m, TN_SHAPE(n, 3), 1), *w = data(&m, TN_SHAPE(3, n), 2);
        uint64_t before = stats_of(runtime).steps;
        must(m.s, tn_eval(m.s, un1(&m, "negative", bin2(&m, "matmul", x, w))));
        cr_assert(eq(u64, stats_of(runtime).steps - before, !is_cpu() && n > 4 ? 2 : 1));
        tn_scope_close(m.s);
    }
}

// A GPU computes the terms of a product of few tiles in parts; the program takes their
// sums.
Test(epilogues_threads, a_program_takes_products_in_parts)
{
    enum { M = 97, K = 512, N = 160 };
    static float got[M * N];
    open_with_cpu("TENON_VULKAN_AS_GPU=1");
    struct maker m = {.s = tn_scope_open(runtime), .dtype = TN_F32};
    tn_array *x = data(&m, TN_SHAPE(M, K), 1), *w = data(&m, TN_SHAPE(K, N), 2);
    tn_array *b = data(&m, TN_SHAPE(N), 3);
    tn_array *y = un1(&m, "negative", bin2(&m, "add", bin2(&m, "matmul", x, w), b));
    uint64_t before = stats_of(runtime).steps;
    must(m.s, tn_eval(m.s, y));
    cr_assert(eq(u64, stats_of(runtime).steps - before, 1));
    must(m.s, tn_read(m.s, y, got, sizeof(got)));
    float(*xs)[K] = malloc(sizeof(float[M][K])), (*ws)[N] = malloc(sizeof(float[K][N]));
    float bs[N];
    must(m.s, tn_read(m.s, x, xs, sizeof(float[M][K])));
    must(m.s, tn_read(m.s, w, ws, sizeof(float[K][N])));
    must(m.s, tn_read(m.s, b, bs, sizeof(bs)));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double want = bs[j], size = 1;
            for (int k = 0; k < K; k++) {
                want += (double)xs[i][k] * (double)ws[k][j];
                size += fabs((double)xs[i][k] * (double)ws[k][j]);
            }
            cr_assert(fabs((double)got[i * N + j] + want) <= 1e-6 * size,
                      "[%d, %d] is %g, expected %g", i, j, (double)got[i * N + j], -want);
        }
    free(xs);
    free(ws);
    tn_scope_close(m.s);
}

// Each launch is computed again in its parts.
Test(epilogues_threads, a_check_compares_fused_steps_with_their_parts)
{
    open_with_cpu("TENON_CHECK=1");
    run_graphs(is_cpu() ? NUM_GRAPHS : 1, false);
    tn_stats stats = stats_of(runtime);
    cr_assert(stats.checked > 0);
    cr_assert(eq(u64, stats.differing, 0));
}

// --- donated inputs --------------------------------------------------------------------

static tn_status add_product(tn_scope *s, tn_array *const *in, uint64_t num_in,
                             tn_array **out, uint64_t num_out, void *user)
{
    (void)num_out, (void)user;
    out[0] = bin(s, "add", bin(s, "matmul", in[0], in[1]), in[num_in == 3 ? 2 : 0]);
    return TN_OK;
}

// x @ w + r, where r is donated; with `same`, r is x.
static void run_donated(bool same)
{
    enum { N = 300 };
    static float got[N * 6], want[N * 6];
    const uint32_t donated[] = {same ? 0 : 2};
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = donated, .num_donated = 1};
    tn_function *f;
    must(NULL, tn_function_create(runtime, add_product, NULL, &options, &f));
    for (int call = 0; call < 2; call++) {
        struct maker m = {tn_scope_open(runtime), TN_F32, true};
        tn_array *x = data(&m, TN_SHAPE(N, 6), 1), *w = data(&m, TN_SHAPE(6, 6), 2);
        tn_array *in[] = {x, w, same ? x : data(&m, TN_SHAPE(N, 6), 3)}, *out;
        tn_array *alone = bin2(&m, "add", bin2(&m, "matmul", x, w), in[2]);
        must(m.s, tn_read(m.s, alone, want, sizeof(want)));
        const struct storage *memory = in[2]->value->storage;
        must(m.s, tn_function_call(f, m.s, in, same ? 2 : 3, &out, 1));
        must(m.s, tn_read(m.s, out, got, sizeof(got)));
        for (int i = 0; i < N * 6; i++)
            if (!(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i]))))
                cr_fatal("element %d: got %g, expected %g", i, (double)got[i],
                         (double)want[i]);
        cr_assert(same != (out->value->storage == memory));
        tn_scope_close(m.s);
    }
    tn_function_destroy(f);
}

Test(epilogues, a_donated_residual_becomes_the_result_and_a_factor_does_not)
{
    run_donated(false);
    run_donated(true);
}
