// SPDX-License-Identifier: MIT
// A graph in a file: traced and saved with its weights, then loaded and run by a runtime
// that knows nothing of the code that built it. `tenon graph layer.graph` shows what is in
// the file.
//
// Prints:
//   layer takes 1 input, has 1 constant and 2 nodes
//   0.905148 0.995055
#include <stdio.h>
#include <tenon/graph_file.h>
#include <tenon/ops/base.h>

// tanh(x @ w): w, of the scope around, becomes a constant of the file.
static tn_status layer(tn_scope *trace, tn_array *const *inputs, uint64_t num_inputs,
                       tn_array **outputs, uint64_t num_outputs, void *w)
{
    (void)num_inputs, (void)num_outputs;
    outputs[0] = tn_tanh(trace, tn_matmul(trace, inputs[0], w));
    return tn_scope_status(trace);
}

static tn_status save(tn_runtime *runtime, const char *path)
{
    const tn_type x = {.dtype = TN_F64, .rank = 2, .extent = {1, 2}};
    const tn_graph *graph = NULL;
    tn_captures weights = {0};
    tn_scope *s = tn_scope_open(runtime);
    tn_array *w = tn_from_data(s, TN_F64, TN_SHAPE(2, 2), (const double[]){0.5, 1, 1, 2});
    tn_graph_trace(s, layer, w, &x, 1, 1, &weights, &graph);
    const tn_graph_signature signature = {.struct_size = sizeof(signature),
                                          .name = "layer",
                                          .graph = graph,
                                          .num_inputs = 1,
                                          .constants = weights.arrays,
                                          .num_constants = weights.count};
    tn_status status = tn_graph_save(s, path, &signature, 1, NULL);
    if (status)
        fprintf(stderr, "%s\n", tn_scope_error(s));
    tn_scope_close(s);
    return status;
}

static tn_status run(tn_function *function, tn_scope *s)
{
    tn_array *y, *x = tn_from_data(s, TN_F64, TN_SHAPE(1, 2), (const double[]){1, 1});
    if (tn_function_call(function, s, &x, 1, &y, 1))
        return tn_scope_status(s);
    const double *values = tn_data(s, y);
    if (values)
        printf("%.6f %.6f\n", values[0], values[1]);
    return tn_scope_status(s);
}

static tn_status load_and_run(tn_runtime *runtime, const char *path)
{
    const tn_graph_file *file;
    tn_function *function;
    tn_status status = tn_graph_load(runtime, path, NULL, &file);
    if (status)
        return fprintf(stderr, "%s\n", tn_last_error()), status;
    const tn_graph_signature *first = file->signatures[0];
    printf("%s takes %d input, has %d constant and %d nodes\n", first->name,
           (int)first->num_inputs, (int)first->num_constants, (int)first->graph->num_nodes);
    status = tn_function_create(runtime, tn_graph_body, (void *)(uintptr_t)first, NULL,
                                &function);
    if (status == TN_OK) {
        tn_scope *s = tn_scope_open(runtime);
        status = run(function, s);
        if (status)
            fprintf(stderr, "%s\n", tn_scope_error(s));
        tn_scope_close(s);
        tn_function_destroy(function);
    }
    tn_graph_unload(runtime, file);
    return status;
}

int main(void)
{
    tn_runtime *runtime;
    if (tn_runtime_open(NULL, &runtime)) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_status status = save(runtime, "layer.graph");
    if (status == TN_OK)
        status = load_and_run(runtime, "layer.graph");
    remove("layer.graph");
    tn_runtime_close(runtime);
    return status != TN_OK;
}
