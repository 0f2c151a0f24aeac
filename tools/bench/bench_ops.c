// SPDX-License-Identifier: MIT
// Single operators through tn_function: a table of operators, extents and attributes. Run
// with two builds in turns, on one pinned thread, it shows which operators a change made
// slower: compare the least times. Products beside BLAS are in bench_matmul.c, a fused
// graph in bench_axpby.c, the core alone in bench_graph.c, training in bench_lenet.c. With
// --beside two devices take turns at each row.
#include "bench.h"

#include <math.h>
#include <string.h>

#define MAX_INPUTS 6
#define MAX_ATTRS 5
#define MAX_RESULTS 5
#define SLOWER 0.95        // beside another device: a row below is measured thrice
#define QUICK_ROWS 8       // each eighth one
#define ROUND_SECONDS 2e-3 // a round makes calls for about so long

// An input: as bench_values() makes it.
struct bench_ops_input {
    tn_dtype dtype;
    int below;
    tn_shape shape;
};

#define SHAPE(...)                                                                         \
    {                                                                                      \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), 0,                             \
        {                                                                                  \
            __VA_ARGS__                                                                    \
        }                                                                                  \
    }
// clang-format off
#define F32(...) {TN_F32, 0, SHAPE(__VA_ARGS__)}
#define F64(...) {TN_F64, 0, SHAPE(__VA_ARGS__)}
#define F16(...) {TN_F16, 0, SHAPE(__VA_ARGS__)}
#define I32(below, ...) {TN_I32, below, SHAPE(__VA_ARGS__)}
#define SCALAR {TN_F32, 0, {0}}
#define A(n, value) {.name = n, .kind = TN_ATTR_TEXT, .text = value}
// clang-format on

// A step of stochastic gradient descent of 784-128-10: loss, and what the weights become.
static tn_status mlp_step(tn_scope *s, tn_array *const *in, tn_array **out)
{
    tn_array *const *weights = in + 2, *grads[4];
    tn_array *h = tn_op(s, "base.matmul/1", TN_IN(in[0], weights[0]), TN_NO_ATTRS);
    h = tn_op(s, "base.add/1", TN_IN(h, weights[1]), TN_NO_ATTRS);
    h = tn_op(s, "nn.relu/1", TN_IN(h), TN_NO_ATTRS);
    h = tn_op(s, "base.matmul/1", TN_IN(h, weights[2]), TN_NO_ATTRS);
    h = tn_op(s, "base.add/1", TN_IN(h, weights[3]), TN_NO_ATTRS);
    h = tn_op(s, "nn.cross_entropy/1", TN_IN(h, in[1]), TN_NO_ATTRS);
    out[0] = tn_op(s, "base.mean/1", TN_IN(h), TN_NO_ATTRS);
    tn_status status = tn_vjp(s, out, NULL, 1, weights, 4, grads);
    for (int i = 0; i < 4 && !status; i++) {
        tn_array *by =
            tn_op(s, "base.multiply/1", TN_IN(tn_float(s, 0.1), grads[i]), TN_NO_ATTRS);
        out[1 + i] = tn_op(s, "base.subtract/1", TN_IN(weights[i], by), TN_NO_ATTRS);
    }
    return status;
}

// --- expressions of several operators ----------------------------------------------------

static tn_array *bench_ops_rows_of(tn_scope *s, const tn_array *x, const tn_array *indices)
{
    return tn_op(s, "base.take/1", TN_IN(x, indices), tn_attrs("axis", 0));
}

static tn_array *bench_ops_two(tn_scope *s, const char *op, const tn_array *x,
                               const tn_array *y)
{
    return tn_op(s, op, TN_IN(x, y), TN_NO_ATTRS);
}

// Nodes, weights and offsets by kind of edge; where edges begin and end, and their kinds.
static tn_status bench_ops_messages(tn_scope *s, tn_array *const *in, tn_array **out)
{
    tn_array *sent = bench_ops_two(s, "base.multiply/1", bench_ops_rows_of(s, in[0], in[3]),
                                   bench_ops_rows_of(s, in[1], in[5]));
    sent = bench_ops_two(s, "base.add/1", sent, bench_ops_rows_of(s, in[2], in[5]));
    sent = tn_op(s, "nn.gelu/1", TN_IN(sent), TN_NO_ATTRS);
    out[0] = tn_op(s, "base.scatter_add/1", TN_IN(in[0], in[4], sent), tn_attrs("axis", 0));
    return tn_scope_status(s);
}

// Tables of words, places and kinds, and the indices of each.
static tn_status bench_ops_embeddings(tn_scope *s, tn_array *const *in, tn_array **out)
{
    tn_array *sum = bench_ops_two(s, "base.add/1", bench_ops_rows_of(s, in[0], in[3]),
                                  bench_ops_rows_of(s, in[1], in[4]));
    out[0] = bench_ops_two(s, "base.add/1", sum, bench_ops_rows_of(s, in[2], in[5]));
    return tn_scope_status(s);
}

// An image, the weights of the further rows and columns, and the nearer ones.
static tn_status bench_ops_bilinear(tn_scope *s, tn_array *const *in, tn_array **out)
{
    tn_array *further[2], *sum = NULL;
    for (int i = 0; i < 2; i++)
        further[i] = tn_expr(s, "i -> i + 1", TN_IN(in[3 + i]), TN_NO_ATTRS);
    for (int i = 0; i < 4; i++) {
        tn_array *y = i & 1 ? further[0] : in[3], *x = i & 2 ? further[1] : in[4];
        tn_array *pixel = tn_op(s, "base.gather/1", TN_IN(in[0], y, x), TN_NO_ATTRS);
        tn_array *part = tn_expr(s,
                                 i == 0   ? "p, a, b -> p * (1 - a) * (1 - b)"
                                 : i == 1 ? "p, a, b -> p * a * (1 - b)"
                                 : i == 2 ? "p, a, b -> p * (1 - a) * b"
                                          : "p, a, b -> p * a * b",
                                 TN_IN(pixel, in[1], in[2]), TN_NO_ATTRS);
        sum = sum ? bench_ops_two(s, "base.add/1", sum, part) : part;
    }
    out[0] = sum;
    return tn_scope_status(s);
}

// clang-format off
static const struct bench_ops_row {
    const char *name, *op; // op: with `build`, an operator among those that it applies
    struct bench_ops_input inputs[MAX_INPUTS];
    tn_attr attrs[MAX_ATTRS]; // texts; end with an entry without a name
    uint32_t results;         // 0: one
    bool derivative;          // times the gradient by input 0; cotangent: the result itself
    tn_status (*build)(tn_scope *s, tn_array *const *inputs, tn_array **outputs); // NULL: applies `op`
} rows[] = {
    {"add 4", "base.add/1", {F32(4), F32(4)}},
    {"add 1K", "base.add/1", {F32(1024), F32(1024)}},
    {"add 4M", "base.add/1", {F32(4194304), F32(4194304)}},
    {"add column 256x512", "base.add/1", {F32(256, 512), F32(256, 1)}},
    {"exp 64K", "base.exp/1", {F32(65536)}},
    {"tanh 64K", "base.tanh/1", {F32(65536)}},
    {"where 64K", "base.where/1", {I32(2, 65536), F32(65536), F32(65536)}},
    {"cast to f16 64K", "base.astype/1", {F32(65536)}, {A("dtype", "f16")}},
    {"copy of transpose 1Kx1K", "base.copy/1", {F32(1024, 1024)}},
    {"random uniform 64K", "base.random_uniform/1",
     {{TN_U32, 100, SHAPE(2)}}, {A("shape", "[65536]")}},
    {"sum 64x10 rows", "base.sum/1", {F32(64, 10)}, {A("axis", "-1")}},
    {"sum 1Kx1K rows", "base.sum/1", {F32(1024, 1024)}, {A("axis", "-1")}},
    {"sum 1Kx1K columns", "base.sum/1", {F32(1024, 1024)}, {A("axis", "0")}},
    {"sum 1Kx1K all", "base.sum/1", {F32(1024, 1024)}},
    {"sum of 64x28x28x6 but channels", "base.sum/1",
     {F32(64, 28, 28, 6)}, {A("axis", "[0, 1, 2]")}},
    {"max 64x10 rows", "base.max/1", {F32(64, 10)}, {A("axis", "-1")}},
    {"argmax 1Kx1K", "base.argmax/1", {F32(1024, 1024)}, {A("axis", "-1")}},
    {"cumsum 1Kx1K", "base.cumsum/1", {F32(1024, 1024)}, {A("axis", "-1")}},
    {"logsumexp 64x10", "base.logsumexp/1", {F32(64, 10)}, {A("axis", "-1")}},
    {"logsumexp 1Kx1K", "base.logsumexp/1", {F32(1024, 1024)}, {A("axis", "-1")}},
    {"softmax 8x4", "nn.softmax/1", {F32(8, 4)}},
    {"softmax 64x10", "nn.softmax/1", {F32(64, 10)}},
    {"softmax 1Kx1K", "nn.softmax/1", {F32(1024, 1024)}},
    {"softmax f16 1Kx1K", "nn.softmax/1", {F16(1024, 1024)}},
    {"log_softmax 64x10", "nn.log_softmax/1", {F32(64, 10)}},
    {"cross_entropy 8x4", "nn.cross_entropy/1", {F32(8, 4), I32(4, 8)}},
    {"cross_entropy 64x10", "nn.cross_entropy/1", {F32(64, 10), I32(10, 64)}},
    {"cross_entropy 1Kx1K", "nn.cross_entropy/1", {F32(1024, 1024), I32(1024, 1024)}},
    {"cross_entropy derivative 64x10", "nn.cross_entropy/1",
     {F32(64, 10), I32(10, 64)}, .derivative = true},
    {"layer_norm 1Kx1K", "nn.layer_norm/1", {F32(1024, 1024), F32(1024), F32(1024)}},
    {"rms_norm 1Kx1K", "nn.rms_norm/1", {F32(1024, 1024), F32(1024)}},
    {"matmul 4x4", "base.matmul/1", {F32(4, 4), F32(4, 4)}},
    {"matmul 64x400x120", "base.matmul/1", {F32(64, 400), F32(400, 120)}},
    {"matmul 256 cubed", "base.matmul/1", {F32(256, 256), F32(256, 256)}},
    {"matmul 16 of 64 cubed", "base.matmul/1", {F32(16, 64, 64), F32(16, 64, 64)}},
    {"matmul derivative 64x400x120", "base.matmul/1",
     {F32(64, 400), F32(400, 120)}, .derivative = true},
    {"conv2d 28x28x1 to 6", "nn.conv2d/1",
     {F32(64, 28, 28, 1), F32(6, 5, 5, 1), F32(6)}, {A("padding", "2")}},
    {"conv2d 14x14x6 to 16", "nn.conv2d/1",
     {F32(64, 14, 14, 6), F32(16, 5, 5, 6), F32(16)}},
    {"conv2d 3x3 32x32x32", "nn.conv2d/1",
     {F32(4, 32, 32, 32), F32(32, 3, 3, 32)}, {A("padding", "1")}},
    {"conv2d_input 14x14x6 to 16", "nn.conv2d_input/1",
     {F32(64, 10, 10, 16), F32(16, 5, 5, 6)}, {A("extent", "[14, 14]")}},
    {"conv2d_weight 28x28x1 to 6", "nn.conv2d_weight/1",
     {F32(64, 28, 28, 1), F32(64, 28, 28, 6)}, {A("padding", "2"), A("extent", "[5, 5]")}},
    {"max_pool2d 28x28x6", "nn.max_pool2d/1", {F32(64, 28, 28, 6)}, {A("window", "2")}},
    {"max_pool2d derivative 28x28x6", "nn.max_pool2d/1",
     {F32(64, 28, 28, 6)}, {A("window", "2")}, .derivative = true},
    {"take 64 rows of 784", "base.take/1", {F32(1000, 784), I32(1000, 64)}},
    {"take columns 1Kx1K", "base.take/1",
     {F32(1024, 1024), I32(1024, 1024)}, {A("axis", "1")}},
    {"scatter_add 1K rows of 64", "base.scatter_add/1",
     {F32(1024, 64), I32(1024, 1024), F32(1024, 64)}},
    {"concatenate 2 of 256x256", "base.concatenate/1",
     {F32(256, 256), F32(256, 256)}, {A("axis", "1")}},
    {"pad 256x256", "base.pad/1",
     {F32(256, 256)}, {A("before", "[1, 1]"), A("after", "[1, 1]")}},
    {"slice_update 256x256", "base.slice_update/1",
     {F32(256, 256), F32(128, 128)}, {A("start", "[0, 0]"), A("stop", "[128, 128]")}},
    {"sgd 48000", "nn.sgd/1", {F32(48000), F32(48000), F32(48000)}, .results = 2},
    {"adam 48000", "nn.adam/1",
     {F32(48000), F32(48000), F32(48000), F32(48000), SCALAR}, .results = 3},
    {"training step of an MLP, batch 64", "nn.cross_entropy/1",
     {F32(64, 784), I32(10, 64), F32(784, 128), F32(128), F32(128, 10), F32(10)},
     .results = 5, .build = mlp_step},
    {"messages along 2K edges of 16", "base.scatter_add/1",
     {F32(500, 16), F32(16, 16), F32(16, 16), I32(500, 2000), I32(500, 2000), I32(16, 2000)},
     .build = bench_ops_messages},
    {"messages along 200K edges of 64", "base.scatter_add/1",
     {F32(20000, 64), F32(16, 64), F32(16, 64), I32(20000, 200000), I32(20000, 200000),
      I32(16, 200000)}, .build = bench_ops_messages},
    {"embeddings 2x64x128", "base.take/1",
     {F32(1000, 128), F32(64, 128), F32(2, 128), I32(1000, 2, 64), I32(64, 2, 64), I32(2, 2, 64)},
     .build = bench_ops_embeddings},
    {"embeddings 64x512x768", "base.take/1",
     {F32(30000, 768), F32(512, 768), F32(2, 768), I32(30000, 64, 512), I32(512, 64, 512),
      I32(2, 64, 512)}, .build = bench_ops_embeddings},
    {"bilinear 64x64", "base.gather/1",
     {F32(64, 64), F32(64, 64), F32(64, 64), I32(64, 64, 64), I32(64, 64, 64)},
     .build = bench_ops_bilinear},
    {"bilinear 2Kx2K", "base.gather/1",
     {F32(2048, 2048), F32(2048, 2048), F32(2048, 2048), I32(2048, 2048, 2048),
      I32(2048, 2048, 2048)}, .build = bench_ops_bilinear},
};
// clang-format on

// --- inputs ------------------------------------------------------------------------------

static bool has_input(const struct bench_ops_row *row, size_t i)
{
    return i < MAX_INPUTS && row->inputs[i].dtype != 0;
}

// The kept values of an input.
static tn_array *make_input(tn_scope *s, const struct bench_ops_input *in)
{
    tn_type type = {.dtype = in->dtype, .rank = in->shape.rank};
    memcpy(type.extent, in->shape.extent, sizeof(type.extent));
    return bench_values(s, &type, in->below);
}

// --- a row -------------------------------------------------------------------------------

struct bench_ops_timed {
    struct bench *bench;
    const struct bench_ops_row *row;
    const char *device; // NULL: the default one
    tn_function *function;
    tn_array *inputs[MAX_INPUTS]; // kept
    uint64_t num_inputs, num_outputs;
};

static tn_status bench_ops_apply(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                                 tn_array **outputs, uint64_t num_outputs, void *user)
{
    const struct bench_ops_timed *t = user;
    const struct bench_ops_row *row = t->row;
    if (t->device && tn_scope_device(s, t->device))
        return tn_scope_status(s);
    if (row->build)
        return row->build(s, inputs, outputs);
    tn_attr_list attrs = TN_ATTR_LIST(row->attrs, 0);
    while (attrs.count < MAX_ATTRS && row->attrs[attrs.count].name)
        attrs.count++;
    tn_status status = tn_op_n(s, row->op, (const tn_array *const *)inputs, num_inputs,
                               attrs, outputs, num_outputs);
    if (row->derivative && !status)
        status = tn_vjp(s, outputs, outputs, 1, inputs, 1, outputs);
    return status;
}

static double bench_ops_run_row(struct contestant *self, uint64_t times)
{
    struct bench_ops_timed *t = self->state;
    tn_array *outputs[MAX_RESULTS];
    double begin = now_seconds();
    for (uint64_t i = 0; i < times; i++) {
        tn_scope *s = tn_scope_open(t->bench->runtime);
        if (tn_function_call(t->function, s, t->inputs, t->num_inputs, outputs,
                             t->num_outputs) ||
            tn_eval_n(s, outputs, t->num_outputs)) {
            failed_run(s);
            tn_scope_close(s);
            return -1;
        }
        tn_scope_close(s);
    }
    return now_seconds() - begin;
}

static bool bench_ops_begin_row(struct bench_ops_timed *t, struct contestant *c,
                                tn_scope *s)
{
    const struct bench_ops_row *row = t->row;
    t->num_outputs = row->results ? row->results : 1;
    *c = (struct contestant){
        t->device ? t->device : row->name, bench_ops_run_row, t, {0}, -1};
    if (t->device)
        tn_scope_device(s, t->device);
    for (; has_input(row, t->num_inputs); t->num_inputs++)
        t->inputs[t->num_inputs] = make_input(s, &row->inputs[t->num_inputs]);
    if (!tn_scope_status(s) &&
        !tn_function_create(t->bench->runtime, bench_ops_apply, t, NULL, &t->function))
        return true;
    failed_run(s);
    return false;
}

static void end_row(struct bench_ops_timed *t)
{
    tn_function_destroy(t->function);
    for (uint64_t i = 0; i < t->num_inputs; i++)
        tn_release(t->inputs[i]);
}

static void bench_row(struct bench *bench, const struct bench_ops_row *row)
{
    struct bench_ops_timed t = {.bench = bench, .row = row};
    struct contestant c;
    tn_scope *s = tn_scope_open(bench->runtime);
    if (bench_ops_begin_row(&t, &c, s))
        contest(&c, 1, bench->rounds, bench_times(&c, ROUND_SECONDS));
    report_least(bench, &c);
    end_row(&t);
    tn_scope_close(s);
}

// Prints the ratio of times, the second device's over the first's: below 1 the first is
// slower. Returns it; negative: the row failed.
static double compare_row(struct bench *bench, const struct bench_ops_row *row)
{
    struct bench_ops_timed t[2] = {
        {.bench = bench, .row = row, .device = bench->beside[0]},
        {.bench = bench, .row = row, .device = bench->beside[1]}};
    struct contestant c[2];
    double ratio = -1, ratios[3];
    int times = 0;
    tn_scope *s = tn_scope_open(bench->runtime);
    if (bench_ops_begin_row(&t[0], &c[0], s) && bench_ops_begin_row(&t[1], &c[1], s)) {
        uint64_t calls = bench_times(&c[0], ROUND_SECONDS);
        bench_times(&c[1], ROUND_SECONDS); // warms up
        do {
            contest(c, 2, bench->rounds, calls);
            ratio = c[0].median > 0 ? c[1].median / c[0].median : -1;
            ratios[times++] = ratio;
        } while (ratio > 0 && times < 3 && (times > 1 || ratio < SLOWER));
    }
    if (times == 3)
        ratio = fmax(fmin(ratios[0], ratios[1]),
                     fmin(fmax(ratios[0], ratios[1]), ratios[2])); // the middle one
    c[0].name = row->name;
    report(bench, &c[0], "%s %.3f us, ratio %.3f%s", bench->beside[1], c[1].median * 1e6,
           ratio, ratio < SLOWER ? ", slower in the middle of three" : "");
    end_row(&t[0]);
    end_row(&t[1]);
    tn_scope_close(s);
    return ratio;
}

void bench_ops(struct bench *bench)
{
    double log_sum = 0;
    int count = 0, slower = 0, failed = 0;
    title(bench, "operators, called through a function and waited for");
    for (size_t i = 0; i < COUNT(rows); i += bench->quick ? QUICK_ROWS : 1) {
        const struct bench_ops_row *row = &rows[i];
        // An older build may lack the operator.
        if (!tn_primitive_find(bench->runtime, row->op)) {
            fprintf(bench->out, "  %-36s %s is not installed\n", row->name, row->op);
        } else if (!bench->beside[0]) {
            bench_row(bench, row);
        } else {
            double ratio = compare_row(bench, row);
            log_sum += ratio > 0 ? log(ratio) : 0;
            count += ratio > 0;
            failed += ratio <= 0;
            slower += ratio > 0 && ratio < SLOWER;
        }
    }
    if (bench->beside[0])
        fprintf(bench->out,
                "  %s over %s: geometric mean %.3f of %d, %d below %.2f, %d failed\n",
                bench->beside[1], bench->beside[0], count ? exp(log_sum / count) : 0, count,
                slower, SLOWER, failed);
}
