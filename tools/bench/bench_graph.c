// SPDX-License-Identifier: MIT
// Overhead of the core: replay of a traced function, and the first evaluation of a new
// graph.
#include "bench.h"

#include <stdlib.h>

// --- replay ----------------------------------------------------------------------------

#define REPLAY_NODES 100

struct replay {
    struct bench *bench;
    tn_function *function;
    tn_array *input; // kept
};

// Each node is a sum over one element, a kernel that cannot be fused with the next.
static tn_status chain(tn_scope *trace, tn_array *const *inputs, uint64_t num_inputs,
                       tn_array **outputs, uint64_t num_outputs, void *user)
{
    tn_array *x = inputs[0];
    (void)num_inputs;
    (void)num_outputs;
    (void)user;
    for (int i = 0; i < REPLAY_NODES; i++)
        x = tn_op(trace, "base.sum/1", TN_IN(x),
                  tn_attrs("axis", TN_INTS(1), "keepdims", 1));
    outputs[0] = x;
    return tn_scope_status(trace);
}

static double run_replay(struct contestant *self, uint64_t times)
{
    struct replay *r = self->state;
    double begin = now_seconds();
    tn_scope *s = tn_scope_open(r->bench->runtime);
    for (uint64_t i = 0; i < times; i++) {
        tn_array *output;
        if (tn_function_call(r->function, s, &r->input, 1, &output, 1)) {
            failed_run(s);
            tn_scope_close(s);
            return -1;
        }
    }
    tn_scope_close(s);
    return now_seconds() - begin;
}

void bench_replay(struct bench *bench)
{
    static const float data[4] = {1, 2, 3, 4};
    struct replay r = {.bench = bench};
    tn_scope *s = tn_scope_open(bench->runtime);
    r.input = tn_keep(s, tn_from_data(s, TN_F32, TN_SHAPE(4, 1), data));
    title(bench, "replay of a function of %d tiny nodes (at most 100 ns a node)",
          REPLAY_NODES);
    if (r.input && !tn_function_create(bench->runtime, chain, NULL, NULL, &r.function)) {
        struct contestant c = {"one call", run_replay, &r, {0}, 0};
        contest(&c, 1, bench->rounds, 200);
        report(bench, &c, "%.1f ns a node", c.median * 1e9 / REPLAY_NODES);
    } else {
        failed_run(s);
    }
    tn_function_destroy(r.function);
    tn_release(r.input);
    tn_scope_close(s);
}

// --- first evaluation ------------------------------------------------------------------

#define FIRST_NODES 1000

struct first {
    struct bench *bench;
    tn_array *input; // kept
    uint64_t random;
};

// A chain of operators in a new random order, so that no plan for it is cached.
static tn_array *new_graph(struct first *f, tn_scope *s)
{
    static const char *const operators[] = {"base.add/1", "base.multiply/1",
                                            "base.maximum/1", "base.subtract/1"};
    tn_array *x = f->input, *before = f->input;
    for (int i = 0; i < FIRST_NODES; i++) {
        f->random = f->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        tn_array *next =
            tn_op(s, operators[f->random >> 62], TN_IN(x, before), TN_NO_ATTRS);
        before = x;
        x = next;
    }
    return x;
}

static double run_first(struct contestant *self, uint64_t times)
{
    struct first *f = self->state;
    double total = 0;
    for (uint64_t i = 0; i < times; i++) {
        tn_scope *s = tn_scope_open(f->bench->runtime);
        tn_array *x = new_graph(f, s);
        double begin = now_seconds();
        if (tn_eval(s, x)) {
            failed_run(s);
            tn_scope_close(s);
            return -1;
        }
        total += now_seconds() - begin;
        tn_scope_close(s);
    }
    return total;
}

void bench_first(struct bench *bench)
{
    static const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct first f = {.bench = bench, .random = 1};
    tn_scope *s = tn_scope_open(bench->runtime);
    f.input = tn_keep(s, tn_from_data(s, TN_F32, TN_SHAPE(8), data));
    struct contestant c = {"hash, plan and run", run_first, &f, {0}, 0};
    title(bench, "first evaluation of a new graph of %d nodes (at most 2 us a node)",
          FIRST_NODES);
    contest(&c, 1, bench->rounds, 5);
    report(bench, &c, "%.3f us a node", c.median * 1e6 / FIRST_NODES);
    tn_release(f.input);
    tn_scope_close(s);
}
