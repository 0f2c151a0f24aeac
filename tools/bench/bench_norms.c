// SPDX-License-Identifier: MIT
// Softmax and layer norm over rows, as operators and from base operators, beside PyTorch's
// fused kernels.
#include "bench.h"

#define ROWS 4096
#define COLUMNS 1024
#define CALLS 10 // of a round

struct norm {
    struct bench *bench;
    tn_function *function;
    tn_array *inputs[3]; // kept: rows, weight, bias
    uint64_t num_inputs;
    struct peers *peers;
    const char *work; // request to the peer; NULL: Tenon
};

typedef tn_array *build_function(tn_scope *s, tn_array *const *inputs);

static tn_array *softmax(tn_scope *s, tn_array *const *in)
{
    return tn_op(s, "nn.softmax/1", TN_IN(in[0]), TN_NO_ATTRS);
}

static tn_array *layer_norm(tn_scope *s, tn_array *const *in)
{
    return tn_op(s, "nn.layer_norm/1", TN_IN(in[0], in[1], in[2]), TN_NO_ATTRS);
}

static tn_array *over_rows(tn_scope *s, const char *op, tn_array *x)
{
    return tn_op(s, op, TN_IN(x), tn_attrs("axis", -1, "keepdims", 1));
}

static tn_array *pair(tn_scope *s, const char *op, tn_array *a, tn_array *b)
{
    return tn_op(s, op, TN_IN(a, b), TN_NO_ATTRS);
}

static tn_array *softmax_of_base(tn_scope *s, tn_array *const *in)
{
    tn_array *centred =
        pair(s, "base.subtract/1", in[0], over_rows(s, "base.max/1", in[0]));
    tn_array *e = tn_op(s, "base.exp/1", TN_IN(centred), TN_NO_ATTRS);
    return pair(s, "base.divide/1", e, over_rows(s, "base.sum/1", e));
}

static tn_array *layer_norm_of_base(tn_scope *s, tn_array *const *in)
{
    tn_array *centred =
        pair(s, "base.subtract/1", in[0], over_rows(s, "base.mean/1", in[0]));
    tn_array *squares = pair(s, "base.multiply/1", centred, centred);
    tn_array *variance =
        pair(s, "base.add/1", over_rows(s, "base.mean/1", squares), tn_float(s, 1e-5));
    tn_array *scaled = pair(s, "base.multiply/1", centred,
                            tn_op(s, "base.rsqrt/1", TN_IN(variance), TN_NO_ATTRS));
    return pair(s, "base.add/1", pair(s, "base.multiply/1", scaled, in[1]), in[2]);
}

static tn_status apply(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                       tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs;
    outputs[0] = (*(build_function *const *)user)(s, inputs);
    return tn_scope_status(s);
}

static double run_tenon(struct contestant *self, uint64_t times)
{
    struct norm *n = self->state;
    double begin = now_seconds();
    for (uint64_t i = 0; i < times; i++) {
        tn_array *y = NULL;
        tn_scope *s = tn_scope_open(n->bench->runtime);
        if (tn_function_call(n->function, s, n->inputs, n->num_inputs, &y, 1) ||
            tn_eval(s, y)) {
            failed_run(s);
            tn_scope_close(s);
            return -1;
        }
        tn_scope_close(s);
    }
    return now_seconds() - begin;
}

static double run_peer(struct contestant *self, uint64_t times)
{
    struct norm *n = self->state;
    return peers_run(n->peers, n->work, times);
}

static const struct way {
    const char *name;
    build_function *build; // NULL: a peer
    const char *work;
    uint64_t num_inputs;
} softmaxes[] = {{"nn.softmax", softmax, NULL, 1},
                 {"softmax of base operators", softmax_of_base, NULL, 1},
                 {"PyTorch", NULL, "torch softmax", 0}},
  layer_norms[] = {{"nn.layer_norm", layer_norm, NULL, 3},
                   {"layer norm of base operators", layer_norm_of_base, NULL, 3},
                   {"PyTorch", NULL, "torch layer_norm", 0}};

static void compare(struct bench *bench, struct peers *peers, const struct way *ways,
                    tn_array *const *inputs)
{
    struct norm states[3];
    struct contestant list[3];
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        struct norm *n = &states[count];
        if (!ways[i].build && !peers->has_torch)
            continue;
        *n = (struct norm){
            bench, NULL,        {inputs[0], inputs[1], inputs[2]}, ways[i].num_inputs,
            peers, ways[i].work};
        if (ways[i].build &&
            tn_function_create(bench->runtime, apply, (void *)&ways[i].build, NULL,
                               &n->function)) {
            failed_run(NULL);
            continue;
        }
        list[count++] = (struct contestant){
            ways[i].name, ways[i].build ? run_tenon : run_peer, n, {0}, -1};
    }
    contest(list, count, bench->rounds, CALLS);
    for (size_t i = 0; i < count; i++) {
        report(bench, &list[i], "%.2f times the operator's time",
               list[i].median / list[0].median);
        tn_function_destroy(states[i].function);
    }
}

void bench_norms(struct bench *bench)
{
    struct peers peers;
    title(bench,
          "softmax and layer norm of the rows of %dx%d f32 (PyTorch over Tenon: at "
          "least 1.2 and 1)",
          ROWS, COLUMNS);
    peers_start(&peers, bench);
    tn_scope *s = tn_scope_open(bench->runtime);
    const tn_type matrix = {.dtype = TN_F32, .rank = 2, .extent = {ROWS, COLUMNS}};
    const tn_type row = {.dtype = TN_F32, .rank = 1, .extent = {COLUMNS}};
    tn_array *inputs[] = {bench_values(s, &matrix, 0), bench_values(s, &row, 0),
                          bench_values(s, &row, 0)};
    if (tn_scope_status(s)) {
        failed_run(s);
    } else {
        compare(bench, &peers, softmaxes, inputs);
        compare(bench, &peers, layer_norms, inputs);
    }
    for (size_t i = 0; i < COUNT(inputs); i++)
        tn_release(inputs[i]);
    tn_scope_close(s);
    peers_stop(&peers);
}
