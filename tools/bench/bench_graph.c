// SPDX-License-Identifier: MIT
// Overhead of the core: replay of a traced function, the first evaluation of a new graph,
// operators whose arrays outlive their scope.
#include "bench.h"

#include <stdlib.h>
#include <tenon/retain.h>

// --- replay ----------------------------------------------------------------------------

#define REPLAY_NODES 100

struct replay {
    struct bench *bench;
    tn_function *function;
    tn_array *input; // kept
};

// Each node is a sum over one element, a kernel that cannot be fused with the next.
static tn_status bench_graph_chain(tn_scope *trace, tn_array *const *inputs,
                                   uint64_t num_inputs, tn_array **outputs,
                                   uint64_t num_outputs, void *user)
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
    if (r.input &&
        !tn_function_create(bench->runtime, bench_graph_chain, NULL, NULL, &r.function)) {
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

static double bench_graph_run_first(struct contestant *self, uint64_t times)
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
    struct contestant c = {"hash, plan and run", bench_graph_run_first, &f, {0}, 0};
    title(bench, "first evaluation of a new graph of %d nodes (at most 2 us a node)",
          FIRST_NODES);
    contest(&c, 1, bench->rounds, 5);
    report(bench, &c, "%.3f us a node", c.median * 1e6 / FIRST_NODES);
    tn_release(f.input);
    tn_scope_close(s);
}

// --- operators of a language's objects -------------------------------------------------

#define HELD 256 // arrays, which are released together

struct held {
    struct bench *bench;
    tn_array *input; // kept
    tn_array *made[HELD];
};

// Operators in a scope that frees their arrays when it closes.
static double run_scope(struct contestant *self, uint64_t times)
{
    struct held *h = self->state;
    double total = 0;
    for (uint64_t i = 0; i < times; i++) {
        tn_scope *s = tn_scope_open(h->bench->runtime);
        tn_array *local = tn_op(s, "base.add/1", TN_IN(h->input, h->input), TN_NO_ATTRS);
        double begin = now_seconds();
        for (int k = 0; k < HELD; k++)
            tn_op(s, "base.add/1", TN_IN(local, local), TN_NO_ATTRS);
        total += now_seconds() - begin;
        if (tn_scope_status(s))
            total = failed_run(s);
        tn_scope_close(s);
    }
    return total;
}

// Operators by tn_op_retained_n: their arrays outlive the scope.
static double run_retained(struct contestant *self, uint64_t times)
{
    struct held *h = self->state;
    double total = 0;
    tn_scope *s = tn_scope_open(h->bench->runtime);
    for (uint64_t i = 0; i < times && total >= 0; i++) {
        double begin = now_seconds();
        for (int k = 0; k < HELD; k++)
            tn_op_retained_n(s, "base.add/1", TN_IN(h->input, h->input), TN_NO_ATTRS,
                             &h->made[k], 1);
        total += now_seconds() - begin;
        if (tn_scope_status(s))
            total = failed_run(s);
        for (int k = 0; k < HELD && total >= 0; k++)
            tn_release(h->made[k]);
    }
    tn_scope_close(s);
    return total;
}

// The same without tn_op_retained_n: a scope and tn_retain for each operator.
static double run_retain(struct contestant *self, uint64_t times)
{
    struct held *h = self->state;
    double total = 0;
    for (uint64_t i = 0; i < times && total >= 0; i++) {
        double begin = now_seconds();
        bool failed = false;
        for (int k = 0; k < HELD; k++) {
            tn_scope *s = tn_scope_open(h->bench->runtime);
            h->made[k] = tn_retain(
                s, tn_op(s, "base.add/1", TN_IN(h->input, h->input), TN_NO_ATTRS));
            if (tn_scope_status(s))
                failed = failed_run(s) < 0;
            tn_scope_close(s);
        }
        total = failed ? -1 : total + now_seconds() - begin;
        for (int k = 0; k < HELD; k++)
            tn_release(h->made[k]);
    }
    return total;
}

// Each array is released at once, as a temporary object of a language is.
static double run_both(struct contestant *self, uint64_t times)
{
    struct held *h = self->state;
    tn_scope *s = tn_scope_open(h->bench->runtime);
    double begin = now_seconds();
    for (uint64_t i = 0; i < times * HELD; i++) {
        tn_op_retained_n(s, "base.add/1", TN_IN(h->input, h->input), TN_NO_ATTRS, h->made,
                         1);
        tn_release(h->made[0]);
    }
    double total = tn_scope_status(s) ? failed_run(s) : now_seconds() - begin;
    tn_scope_close(s);
    return total;
}

// Each array is evaluated by a call of its own, then released.
static double run_evaluated(struct contestant *self, uint64_t times)
{
    struct held *h = self->state;
    tn_scope *s = tn_scope_open(h->bench->runtime);
    double begin = now_seconds();
    for (uint64_t i = 0; i < times * HELD; i++) {
        tn_op_retained_n(s, "base.add/1", TN_IN(h->input, h->input), TN_NO_ATTRS, h->made,
                         1);
        tn_eval_held_n(s, h->made, 1, 0);
        tn_release(h->made[0]);
    }
    double total = tn_scope_status(s) ? failed_run(s) : now_seconds() - begin;
    tn_scope_close(s);
    return total;
}

void bench_held(struct bench *bench)
{
    static const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct held h = {.bench = bench};
    tn_scope *s = tn_scope_open(bench->runtime);
    h.input = tn_keep(s, tn_from_data(s, TN_F32, TN_SHAPE(8), data));
    struct contestant list[] = {
        {.name = "in a scope", .run = run_scope, .state = &h},
        {.name = "retained", .run = run_retained, .state = &h},
        {.name = "and released", .run = run_both, .state = &h},
        {.name = "and evaluated", .run = run_evaluated, .state = &h},
        {.name = "by a scope each", .run = run_retain, .state = &h}};
    title(bench, "add(x, x) of arrays that outlive their scope (at most 60 ns more)");
    if (!h.input)
        failed_run(s);
    else
        contest(list, COUNT(list), bench->rounds, 200);
    for (size_t i = 0; h.input && i < COUNT(list); i++)
        report(bench, &list[i], "%.0f ns each, least %.0f", list[i].median * 1e9 / HELD,
               bench_least(&list[i], bench->rounds) * 1e9 / HELD);
    tn_release(h.input);
    tn_scope_close(s);
}
