// SPDX-License-Identifier: MIT
// Graphs of files, such as kernel_graphs.py saves: each signature through tn_function,
// waited for. With two builds or on two backends in turns, compare the least times.
#include "bench.h"

#include <tenon/graph_file.h>

#define MAX_VALUES 1024     // inputs, outputs
#define ROUND_SECONDS 20e-3 // a round makes calls for about so long

struct graph_calls {
    struct bench *bench;
    tn_function *function;
    tn_array *inputs[MAX_VALUES]; // kept
    uint64_t num_inputs, num_outputs;
};

static double bench_file_run_graph(struct contestant *self, uint64_t times)
{
    struct graph_calls *g = self->state;
    tn_array *outputs[MAX_VALUES];
    double begin = now_seconds();
    for (uint64_t i = 0; i < times; i++) {
        tn_scope *s = tn_scope_open(g->bench->runtime);
        tn_status status = tn_function_call(g->function, s, g->inputs, g->num_inputs,
                                            outputs, g->num_outputs);
        if (status || tn_eval_n(s, outputs, g->num_outputs)) {
            failed_run(s);
            tn_scope_close(s);
            return -1;
        }
        tn_scope_close(s);
    }
    return now_seconds() - begin;
}

static void bench_signature(struct bench *bench, const char *path,
                            const tn_graph_signature *signature)
{
    struct graph_calls g = {.bench = bench, .num_outputs = signature->graph->num_outputs};
    struct contestant c = {path, bench_file_run_graph, &g, {0}, -1};
    if (signature->num_inputs > MAX_VALUES || g.num_outputs > MAX_VALUES) {
        fprintf(stderr,
                "tenon: bench: %s has %llu inputs and %llu outputs, expected at most %d\n",
                path, (unsigned long long)signature->num_inputs,
                (unsigned long long)g.num_outputs, MAX_VALUES);
        return;
    }
    tn_scope *s = tn_scope_open(bench->runtime);
    for (; g.num_inputs < signature->num_inputs; g.num_inputs++) {
        const tn_type *type = &signature->graph->inputs[g.num_inputs];
        g.inputs[g.num_inputs] = bench_values(s, type, tn_is_float(type->dtype) ? 0 : 4);
    }
    if (tn_scope_status(s) ||
        tn_function_create(bench->runtime, tn_graph_body, (void *)(uintptr_t)signature,
                           NULL, &g.function))
        failed_run(s);
    else
        contest(&c, 1, bench->rounds, bench_times(&c, ROUND_SECONDS));
    report_least(bench, &c);
    tn_function_destroy(g.function);
    for (uint64_t i = 0; i < g.num_inputs; i++)
        tn_release(g.inputs[i]);
    tn_scope_close(s);
}

void bench_file(struct bench *bench, const char *path)
{
    const tn_graph_file *file;
    if (tn_graph_load(bench->runtime, path, NULL, &file)) {
        failed_run(NULL);
        return;
    }
    for (uint64_t i = 0; i < file->num_signatures; i++)
        bench_signature(bench, path, file->signatures[i]);
    tn_graph_unload(bench->runtime, file);
}
