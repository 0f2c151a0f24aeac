// SPDX-License-Identifier: MIT
// Gathers in elementwise and row programs, and what is scattered computed by one: each
// graph computed at once gives what its nodes give when each is evaluated alone on the CPU,
// in as many steps as the table says. TENON_TEST_BACKEND says on which backend; only
// vulkan-jit has programs that gather.
#include "device/device.h"
#include "graph/graph.h"
#include <string.h>
#include "gather_rows.h"

static const char *backend(void)
{
    const char *name = getenv("TENON_TEST_BACKEND");
    return name ? name : "cpu-blas";
}

static bool is_jit(void)
{
    return strcmp(backend(), "vulkan-jit") == 0;
}

static tn_runtime *cpu; // what is compared with

static void open_both(const char *option, const char *other)
{
    char variable[96];
    need_device(backend());
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend());
    runtime = open_with((const char *const[]){variable, option, other, NULL});
    cpu = open_on("cpu-blas");
}

static void open_backends(void)
{
    open_both(NULL, NULL);
}

static void close_backends(void)
{
    tn_runtime_close(cpu);
    tn_runtime_close(runtime);
}

// --- graphs ----------------------------------------------------------------------------

typedef int build_graph(const struct maker *m, tn_array *out[MOST_RESULTS]);

static int embed_8(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return embed(m, out, 8);
}

static int embed_5(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return embed(m, out, 5);
}

static int embed_400(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return embed(m, out, 400);
}

// Several indices mean one row.
static tn_array *message(const struct maker *m, tn_array *x)
{
    tn_array *w = take(m, data(m, TN_SHAPE(4, 6), 2), indices(m, TN_SHAPE(40), 4, 2), 0);
    tn_array *b = take(m, data(m, TN_SHAPE(3, 6), 3), indices(m, TN_SHAPE(40), 3, 3), 0);
    x = take(m, x, indices(m, TN_SHAPE(40), 9, 1), 0);
    return bin2(m, "maximum", bin2(m, "add", bin2(m, "multiply", x, w), b),
                data(m, TN_SHAPE(1), 0));
}

static int messages(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *y = message(m, data(m, TN_SHAPE(9, 6), 1));
    out[0] = scatter(m, "scatter_add", data(m, TN_SHAPE(9, 6), 5),
                     indices(m, TN_SHAPE(40), 9, 7), y);
    return 1;
}

// Updates come from the array that is scattered into, which must not be overwritten.
static int own_messages(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x =
        kept(m, tn_op(m->s, "negative", TN_IN(data(m, TN_SHAPE(9, 6), 1)), TN_NO_ATTRS));
    out[0] = scatter(m, "scatter_add", x, indices(m, TN_SHAPE(40), 9, 7), message(m, x));
    return 1;
}

static int other_scatters(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    static const char *const ops[] = {"scatter_set", "scatter_max", "scatter_min"};
    for (int i = 0; i < 3; i++) {
        tn_array *y = take(m, data(m, TN_SHAPE(5, 3), i), indices(m, TN_SHAPE(8), 5, 1), 0);
        y = bin2(m, "add", y, data(m, TN_SHAPE(8, 3), 2));
        out[i] = scatter(m, ops[i], data(m, TN_SHAPE(4, 3), 3),
                         indices(m, TN_SHAPE(8), 4, i), y);
    }
    return 3;
}

// Enough updates that the indices are sorted.
static int many_messages(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *y =
        take(m, data(m, TN_SHAPE(50, 3), 1), indices(m, TN_SHAPE(5000), 50, 1), 0);
    y = bin2(m, "multiply", y, data(m, TN_SHAPE(3), 2));
    out[0] = scatter(m, "scatter_add", data(m, TN_SHAPE(90, 3), 5),
                     indices(m, TN_SHAPE(5000), 90, 7), y);
    return 1;
}

static int codes(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *value =
        take(m, data(m, TN_SHAPE(16), 1), indices(m, TN_SHAPE(7, 29), 16, 3), 0);
    tn_array *scale = take(m, data(m, TN_SHAPE(5), 2), indices(m, TN_SHAPE(7, 1), 5, 1), 0);
    out[0] = bin2(m, "multiply", value, scale);
    return 1;
}

// Four neighbours, by two indices each.
static int corners(const struct maker *m, tn_array *out[MOST_RESULTS], tn_array *image)
{
    tn_array *y = indices(m, TN_SHAPE(3, 4), 6, 1), *x = indices(m, TN_SHAPE(4), 5, 2);
    tn_array *one =
        as(m, tn_from_data(m->s, TN_I64, TN_SHAPE(), (int64_t[]){1}), m->indices);
    tn_array *next_y = bin2(m, "add", y, one), *next_x = bin2(m, "add", x, one),
             *sum = NULL;
    for (int i = 0; i < 4; i++) {
        tn_array *part = kept(m, tn_op(m->s, "gather",
                                       TN_IN(image, i & 1 ? next_y : y, i & 2 ? next_x : x),
                                       TN_NO_ATTRS));
        part = bin2(m, "multiply", part, data(m, TN_SHAPE(1), i + 4));
        sum = sum ? bin2(m, "add", sum, part) : part;
    }
    out[0] = sum;
    return 1;
}

static int bilinear(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return corners(m, out, data(m, TN_SHAPE(6, 5), 1));
}

static int bilinear_channels(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return corners(m, out, data(m, TN_SHAPE(6, 5, 3), 1));
}

// Four at a time: each four have one place, computed once.
static int bilinear_fours(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return corners(m, out, data(m, TN_SHAPE(6, 5, 8), 1));
}

static int three_indices(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(3, 4, 2, 5), 1);
    tn_array *h = kept(
        m, tn_op(m->s, "gather",
                 TN_IN(x, indices(m, TN_SHAPE(6, 1), 5, 1), indices(m, TN_SHAPE(2), 3, 2),
                       indices(m, TN_SHAPE(6, 2), 2, 3)),
                 tn_attrs("axes", TN_INTS(3, 0, 2))));
    out[0] = bin2(m, "subtract", h, data(m, TN_SHAPE(4), 2));
    return 1;
}

static int along_axis(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h =
        kept(m, tn_op(m->s, "take_along_axis",
                      TN_IN(data(m, TN_SHAPE(5, 6), 1), indices(m, TN_SHAPE(5, 3), 6, 2)),
                      tn_attrs("axis", 1)));
    out[0] = bin2(m, "multiply", h, data(m, TN_SHAPE(5, 3), 2));
    return 1;
}

// Along a middle axis, by indices with axes of their own, from an array that is turned.
static int middle_axis(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(4, 7, 3), 1);
    x = kept(m, tn_op(m->s, "transpose", TN_IN(x), tn_attrs("axes", TN_INTS(2, 1, 0))));
    tn_array *h = take(m, x, indices(m, TN_SHAPE(2, 5), 7, 1), 1);
    out[0] = bin2(m, "add", h, data(m, TN_SHAPE(3, 1, 5, 1), 2));
    return 1;
}

// What is gathered is wanted too, and written once.
static int also_wanted(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    out[0] = take(m, data(m, TN_SHAPE(5, 6), 1), indices(m, TN_SHAPE(7), 5, 1), 0);
    out[1] = bin2(m, "add", out[0], data(m, TN_SHAPE(7, 6), 2));
    out[2] = bin2(m, "multiply", out[0], data(m, TN_SHAPE(6), 3));
    return 3;
}

// Each element that is gathered is read many times: it is gathered once.
static int broadcast_after(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *h = take(m, data(m, TN_SHAPE(5), 1), indices(m, TN_SHAPE(7), 5, 1), 0);
    h = reshaped(m, h, tn_attrs("shape", TN_INTS(7, 1)));
    out[0] = bin2(m, "add", h, data(m, TN_SHAPE(7, 6), 2));
    return 1;
}

// The indices are gathered, too.
static int nested(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *i =
        take(m, indices(m, TN_SHAPE(11), 6, 1), indices(m, TN_SHAPE(9), 11, 2), 0);
    tn_array *h = take(m, data(m, TN_SHAPE(6), 1), i, 0);
    out[0] = bin2(m, "add", h, data(m, TN_SHAPE(9), 2));
    return 1;
}

// What a program computes has to lie in memory before it is gathered from.
static int computed(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = bin2(m, "add", data(m, TN_SHAPE(5, 6), 1), data(m, TN_SHAPE(6), 2));
    tn_array *h = take(m, x, indices(m, TN_SHAPE(5), 5, 1), 0);
    out[0] = bin2(m, "multiply", h, x);
    return 1;
}

// An axis of one element: the result has the place and the order of what it is taken from.
static int one_row(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = bin2(m, "matmul", data(m, TN_SHAPE(1, 3), 1), data(m, TN_SHAPE(3, 6), 2));
    tn_array *h = take(m, x, indices(m, TN_SHAPE(1), 1, 1), 0);
    out[0] = bin2(m, "multiply", h, data(m, TN_SHAPE(6), 1));
    return 1;
}

// Gathers pass into a reduction, and are read beside a product.
static int beside_kernels(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *i = indices(m, TN_SHAPE(7), 5, 1);
    tn_array *h = take(m, data(m, TN_SHAPE(5, 6), 1), i, 0);
    h = bin2(m, "multiply", h, data(m, TN_SHAPE(7, 6), 2));
    out[0] = kept(m, tn_op(m->s, "sum", TN_IN(h), tn_attrs("axis", 0)));
    h = bin2(m, "matmul", data(m, TN_SHAPE(7, 3), 1), data(m, TN_SHAPE(3, 6), 2));
    tn_array *b = take(m, data(m, TN_SHAPE(5, 6), 4), i, 0);
    out[1] = bin2(m, "add", bin2(m, "multiply", b, data(m, TN_SHAPE(7, 6), 6)), h);
    return 2;
}

static int nothing(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(5, 6), 1), *i = indices(m, TN_SHAPE(0), 5, 1);
    out[0] = bin2(m, "add", take(m, x, i, 0), data(m, TN_SHAPE(6), 2));
    tn_array *y = bin2(m, "multiply", take(m, x, i, 0), data(m, TN_SHAPE(6), 3));
    out[1] = scatter(m, "scatter_add", x, i, y);
    return 2;
}

// The gradient of what was gathered is scattered, of what was scattered gathered.
static int gradients(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    const struct maker build = {m->s, m->dtype, m->indices, false};
    tn_array *x = data(m, TN_SHAPE(9, 6), 1);
    tn_array *y = scatter(&build, "scatter_add", data(m, TN_SHAPE(9, 6), 5),
                          indices(m, TN_SHAPE(40), 9, 7), message(&build, x));
    tn_array *g = data(m, TN_SHAPE(9, 6), 2);
    must(m->s, tn_vjp(m->s, &y, &g, 1, &x, 1, &out[0]));
    out[0] = kept(m, out[0]);
    return 1;
}

static tn_status slice_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    tn_array *h = tn_op(s, "take", TN_IN(in[0], in[1]), tn_attrs("axis", 0));
    h = bin(s, "multiply", h, in[2]);
    out[0] = tn_op(s, "scatter_add", TN_IN(in[0], in[1], h), tn_attrs("axis", 0));
    return TN_OK;
}

static int mapped(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *in[] = {data(m, TN_SHAPE(3, 5, 4), 1), indices(m, TN_SHAPE(3, 8), 5, 2),
                      data(m, TN_SHAPE(4), 3)};
    const int32_t axes[] = {0, 0, -1};
    must(m->s, tn_vmap_call(m->s, slice_body, NULL, in, axes, 3, out, NULL, 1));
    out[0] = kept(m, out[0]);
    return 1;
}

#define F(dtype) TN_DTYPE_BIT(TN_##dtype)
#define ALL (F(F32) | F(F64) | F(F16) | F(BF16) | F(I32) | F(COMPLEX64))
#define ANY_INDEX (F(I8) | F(I16) | F(I32) | F(I64) | F(U8) | F(U16) | F(U32) | F(U64))

static const struct sample {
    const char *name;
    build_graph *build;
    uint32_t dtypes, indices; // of the data with indices of i32, and of indices with f32
    uint32_t steps[2];        // on vulkan, on vulkan-jit
    bool
        rounds; // compared with the same device's nodes, since the CPU adds in other orders
} graphs[] = {
    {"embeddings, rows of 8", embed_8, ALL, ANY_INDEX, {3, 1}},
    {"embeddings, rows of 5", embed_5, F(F32) | F(F16), F(I32), {3, 1}},
    {"embeddings, rows of 400", embed_400, F(F32), F(I32), {3, 1}},
    {"messages", messages, F(F32) | F(F64), F(I64), {4, 2}},
    {"messages to where they come from", own_messages, F(F32), F(I32), {5, 3}},
    {"other scatters", other_scatters, F(F32), F(I32), {6, 6}},
    {"many messages", many_messages, F(F32), F(I32), {2, 2}},
    {"codes", codes, F(F32), F(U8), {2, 2}},
    {"corners", bilinear, F(F32) | F(BF16), F(I8), {12, 1}},
    {"corners of several channels", bilinear_channels, F(F32), F(I32), {12, 1}},
    {"corners of eight channels",
     bilinear_fours,
     F(F32) | F(F16) | F(F64),
     F(I32),
     {12, 1}},
    {"three indices", three_indices, F(F32), F(I32), {5, 2}},
    {"along an axis", along_axis, F(F32), F(I32), {3, 2}},
    {"along a middle axis", middle_axis, F(F32) | F(COMPLEX64), F(I32), {2, 2}},
    {"gathered and wanted", also_wanted, F(F32), F(I32), {2, 1}},
    {"broadcast afterwards", broadcast_after, F(F32), F(I32), {2, 2}},
    {"gathered indices", nested, F(F32), F(I32) | F(U64), {2, 1}},
    {"from a computed array", computed, F(F32), F(I32), {2, 2}},
    {"from one row", one_row, F(F32), F(I32), {2, 2}},
    {"beside kernels", beside_kernels, F(F32), F(I32), {4, 2}},
    {"nothing", nothing, F(F32), F(I32), {1, 1}},
    {"gradients", gradients, F(F32), F(I32), {8, 5}},
    {"mapped", mapped, F(F32), F(I32), {5, 4}},
    {"norms, rows of 8", norm_8, F(F32) | F(F16) | F(F64), ANY_INDEX, {4, 1}, true},
    {"norms, rows of 5", norm_5, F(F32) | F(BF16), F(I32), {4, 1}, true},
    {"norms, long rows", norm_2400, F(F32), F(I32), {4, 1}, true},
    {"norms, long rows of any length", norm_2402, F(F32), F(I32), {4, 1}, true},
    {"softmax along an axis", softmax_along, F(F32), F(I32) | F(U8), {4, 2}, true},
    {"softmax of columns", softmax_columns, F(F32), F(I32), {3, 2}, true},
    {"sums of turned rows", sum_of_turned, F(F32) | F(I32), F(I32), {3, 2}},
    {"rows of two axes", two_axes, F(F32), F(I32), {2, 1}},
    {"an index of a row", index_of_row, F(F32), F(I32) | F(I64), {3, 1}},
    {"softmax of several indices", softmax_corners, F(F32), F(I32), {5, 1}, true},
    {"softmax of indices with gaps", softmax_gaps, F(F32), F(I32), {4, 2}, true},
    {"a label a row", label_of_row, F(F32) | F(I32), F(I32), {4, 2}},
};

// The first with row programs.
enum { FIRST_OF_ROWS = 23 };

// --- comparing -------------------------------------------------------------------------

static void compare(const struct sample *g, const struct maker *m, tn_array *x,
                    const struct maker *n, tn_array *y)
{
    static char got[MOST_ELEMENTS * 16], want[MOST_ELEMENTS * 16];
    const tn_type *type = tn_array_type(x);
    uint64_t size = (uint64_t)tn_dtype_bytes(type->dtype);
    for (int32_t i = 0; i < type->rank; i++)
        size *= (uint64_t)type->extent[i];
    cr_assert(le(u64, size, sizeof(got)));
    must(m->s, tn_read(m->s, x, got, size));
    must(n->s, tn_read(n->s, y, want, size));
    if (memcmp(got, want, size) != 0)
        cr_fatal("%s of %s by %s: other bits than %s", g->name, tn_dtype_name(m->dtype),
                 tn_dtype_name(m->indices), g->rounds ? "its nodes" : "on the CPU");
}

static void run_graph(const struct sample *g, tn_dtype dtype, tn_dtype of_indices)
{
    tn_array *fused[MOST_RESULTS], *alone[MOST_RESULTS];
    struct maker a = {tn_scope_open(runtime), dtype, of_indices, false};
    struct maker b = {tn_scope_open(g->rounds ? runtime : cpu), dtype, of_indices, true};
    int count = g->build(&a, fused);
    cr_assert(eq(int, g->build(&b, alone), count));
    uint64_t before = stats_of(runtime).steps;
    must(a.s, tn_eval_n(a.s, fused, (uint64_t)count));
    uint64_t steps = stats_of(runtime).steps - before;
    if (dtype == TN_F32 && steps != g->steps[is_jit()])
        cr_fatal("%s: %llu steps, expected %u", g->name, (unsigned long long)steps,
                 g->steps[is_jit()]);
    for (int i = 0; i < count; i++)
        compare(g, &a, fused[i], &b, alone[i]);
    tn_scope_close(a.s);
    tn_scope_close(b.s);
}

// vulkan, whose kernels have their own tests, runs each graph once.
static void run_graphs(size_t first, size_t count, bool every_dtype)
{
    for (size_t i = first; i < first + count; i++) {
        run_graph(&graphs[i], TN_F32, TN_I32);
        for (tn_dtype k = 0; k < 32 && every_dtype && is_jit(); k++) {
            if (graphs[i].dtypes & TN_DTYPE_BIT(k) && k != TN_F32)
                run_graph(&graphs[i], k, TN_I32);
            if (graphs[i].indices & TN_DTYPE_BIT(k) && k != TN_I32)
                run_graph(&graphs[i], TN_F32, k);
        }
    }
}

TestSuite(gather, .init = open_backends, .fini = close_backends);

Test(gather, fused_gathers_give_the_bits_of_their_parts)
{
    run_graphs(0, sizeof(graphs) / sizeof(*graphs), true);
}

// --- memory of others ------------------------------------------------------------------

static tn_status add_messages(tn_scope *s, tn_array *const *in, uint64_t num_in,
                              tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    tn_array *h = tn_op(s, "take", TN_IN(in[1], in[2]), tn_attrs("axis", 0));
    h = bin(s, "multiply", h, h);
    out[0] = tn_op(s, "scatter_add", TN_IN(in[0], in[2], h), tn_attrs("axis", 0));
    return TN_OK;
}

// x + messages from y, where x is donated; with `same`, y is x.
static void run_donated(bool same)
{
    const uint32_t donated[] = {0};
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = donated, .num_donated = 1};
    static const struct sample sample = {.name = "donated"};
    tn_function *f;
    must(NULL, tn_function_create(runtime, add_messages, NULL, &options, &f));
    for (int call = 0; call < 2; call++) {
        struct maker m = {tn_scope_open(runtime), TN_F32, TN_I32, false};
        struct maker n = {tn_scope_open(cpu), TN_F32, TN_I32, true};
        tn_array *in[3], *want_in[3], *want, *out;
        for (int i = 0; i < 2; i++) {
            in[i] = i && same ? in[0] : data(&m, TN_SHAPE(40, 6), i);
            want_in[i] = data(&n, TN_SHAPE(40, 6), same ? 0 : i);
        }
        in[2] = indices(&m, TN_SHAPE(50), 40, 3);
        want_in[2] = indices(&n, TN_SHAPE(50), 40, 3);
        must(n.s, add_messages(n.s, want_in, 3, &want, 1, NULL));
        const struct storage *memory = in[0]->value->storage;
        must(m.s, tn_function_call(f, m.s, in, 3, &out, 1));
        compare(&sample, &m, out, &n, want);
        cr_assert(same != (out->value->storage == memory));
        tn_scope_close(m.s);
        tn_scope_close(n.s);
    }
    tn_function_destroy(f);
}

Test(gather, a_donated_array_is_scattered_into_where_it_is_not_gathered_from)
{
    run_donated(false);
    run_donated(true);
}

// Each launch is computed again in its parts.
TestSuite(gather_checked, .fini = close_backends);

static void expect_checked(void)
{
    tn_stats stats = stats_of(runtime);
    cr_assert(stats.checked > 0);
    cr_assert(eq(u64, stats.differing, 0));
}

Test(gather_checked, a_check_compares_with_the_definition_of_programs)
{
    open_both("TENON_CHECK=1", NULL);
    run_graphs(0, 5, false);
    expect_checked();
}

// Where lanes meet in shared memory, and long rows are gathered again by each phase.
Test(gather_checked, of_row_programs_for_software_too)
{
    open_both("TENON_CHECK=1", "TENON_VULKAN_AS_GPU=0");
    if (!is_jit())
        return;
    run_graphs(FIRST_OF_ROWS, 6, false);
    expect_checked();
}
