// SPDX-License-Identifier: MIT
// Files of graphs: what is saved comes back as the same graph, runs to the same bytes, in
// this process and in another one; and operators that are not as they were are named.
#include <errno.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "graph_file.h"

TestSuite(graph_file, .init = begin, .fini = end);

// --- bodies ------------------------------------------------------------------------------

BODY(numbers)
{
    UNUSED;
    tn_array *weak = bin_in(scope, "base.multiply", tn_float(scope, 0.1), tn_int(scope, 3));
    tn_array *sum = bin_in(scope, "base.add", in[0], weak);
    sum = bin_in(scope, "base.multiply", sum, tn_f32(scope, 1.0F / 3));
    out[0] = bin_in(scope, "base.minimum", sum, tn_f64(scope, (double)INFINITY));
    out[1] = bin_in(scope, "base.add", in[1], tn_i64(scope, INT64_MAX - 3));
    out[2] = bin_in(scope, "base.logical_and", tn_bool(scope, 1), tn_bool(scope, 0));
    out[3] = tn_float(scope, -0.0);
    return TN_OK;
}

BODY(expressions)
{
    UNUSED;
    out[0] = tn_expr(scope, "x, y -> a * x + tanh(y) * b", TN_IN(in[0], in[1]),
                     tn_attrs("a", 0.1, "b", (int64_t)3));
    out[1] = tn_expr(scope, "x -> exp(x - max(x)) / sum(exp(x - max(x)))", TN_IN(in[0]),
                     tn_attrs("axis", (int64_t)0));
    out[2] = tn_expr(scope, "x -> index * 2 + x", TN_IN(in[1]), TN_NO_ATTRS);
    return TN_OK;
}

static const int64_t some_ints[] = {-1, INT64_MAX / 64, 5};
static const double some_reals[] = {0.1, -2.5e-300, 3};

BODY(all_kinds)
{
    UNUSED;
    const tn_ints axes = {.count = 2, .given = 1, .value = {1, -1}};
    const tn_int_list whole = {3, some_ints};
    const tn_float_list real = {3, some_reals};
    const tn_graph *body;
    tn_status status =
        tn_graph_trace(scope, plus_one, NULL, tn_array_type(in[0]), 1, 1, NULL, &body);
    if (status != TN_OK)
        return status;
    const tn_attr given[] = {
        {.name = "flag", .kind = TN_ATTR_BOOL, .i = 1},
        {.name = "whole", .kind = TN_ATTR_I64, .i = -9},
        {.name = "choice", .kind = TN_ATTR_TEXT, .text = "second"},
        {.name = "real", .kind = TN_ATTR_F64, .f = 0.1},
        {.name = "rate", .kind = TN_ATTR_F64, .f = 2.5},
        {.name = "position", .kind = TN_ATTR_I64, .i = 11},
        {.name = "ints", .kind = TN_ATTR_INTS, .ints = &axes},
        {.name = "bits", .kind = TN_ATTR_BITS, .i = 0x123456789abcdef},
        {.name = "text", .kind = TN_ATTR_STRING, .text = "a \"text\"\n\xc3\xa9"},
        {.name = "whole_list", .kind = TN_ATTR_INT_LIST, .int_list = &whole},
        {.name = "real_list", .kind = TN_ATTR_FLOAT_LIST, .float_list = &real},
        {.name = "body", .kind = TN_ATTR_GRAPH, .graph = body}};
    out[0] = tn_op(scope, "test.kinds/1", TN_IN(in[0]), TN_NO_ATTRS);
    out[1] = tn_op(scope, "test.kinds/1", TN_IN(in[0]),
                   TN_ATTR_LIST(given, sizeof(given) / sizeof(*given)));
    const tn_attr computed[] = {{.name = "dtype", .kind = TN_ATTR_DTYPE, .i = TN_F16},
                                {.name = "rate", .kind = TN_ATTR_ARRAY, .array = in[1]}};
    out[2] = tn_op(scope, "test.kinds/1", TN_IN(in[0]), TN_ATTR_LIST(computed, 2));
    return TN_OK;
}

BODY(is_small)
{
    UNUSED;
    tn_array *sum = tn_op(scope, "base.sum", TN_IN(in[0]), TN_NO_ATTRS);
    out[0] = bin_in(scope, "base.less", sum, tn_float(scope, 300));
    return TN_OK;
}

BODY(twice)
{
    UNUSED;
    out[0] = bin_in(scope, "base.add", in[0], in[0]);
    return TN_OK;
}

BODY(accumulate)
{
    UNUSED;
    out[0] = bin_in(scope, "base.add", in[0], in[1]);
    out[1] = bin_in(scope, "base.multiply", out[0], in[1]);
    return TN_OK;
}

// A loop in a branch in a loop.
BODY(nested)
{
    UNUSED;
    tn_array *pred;
    is_small(scope, in, 1, &pred, 1, NULL);
    return tn_cond_call(scope, pred, twice, plus_one, NULL, in, 1, out, 1);
}

BODY(control)
{
    UNUSED;
    tn_array *scanned[2],
        *first = tn_op(scope, "base.sum", TN_IN(in[0]), tn_attrs("axis", (int64_t)0));
    tn_while_call(scope, is_small, nested, NULL, 5, in, 1, out);
    const tn_scan_call_options options = {.struct_size = sizeof(options), .carries = 1};
    tn_scan_call(scope, accumulate, NULL, &options, TN_ARRAYS(first, in[0]), scanned, 2);
    out[1] = scanned[0];
    out[2] = scanned[1];
    return tn_checkpoint_call(scope, nested, NULL, in, 1, &out[3], 1);
}

// Derivatives of both kinds and a batch: expressions that the core made.
BODY(derived)
{
    UNUSED;
    tn_array *y = tn_expr(scope, "x, y -> tanh(a * x) * y ** 2", TN_IN(in[0], in[1]),
                          tn_attrs("a", 0.3));
    tn_array *norm = tn_op(scope, "nn.softmax", TN_IN(y), TN_NO_ATTRS);
    tn_array *loss = tn_op(scope, "base.sum",
                           TN_IN(bin_in(scope, "base.multiply", norm, y)), TN_NO_ATTRS);
    tn_status status = tn_vjp(scope, &loss, NULL, 1, TN_ARRAYS(in[0], in[1]), out);
    if (status == TN_OK)
        status = tn_jvp(scope, &y, 1, &in[0], &in[1], 1, &out[2]);
    return status == TN_OK
               ? tn_vmap_call(scope, is_small, NULL, in, NULL, 1, &out[3], NULL, 1)
               : status;
}

BODY(operators)
{
    UNUSED;
    tn_array *parts[2];
    out[0] =
        tn_op(scope, "base.einsum", TN_IN(in[0], in[1]), tn_attrs("equation", "ij,kj->ik"));
    out[1] = tn_op(scope, "base.concatenate", TN_IN(in[0], in[1], in[0]), TN_NO_ATTRS);
    tn_status status = tn_op_n(scope, "base.split", TN_IN(in[0]),
                               tn_attrs("sections", (int64_t)2), parts, 2);
    out[2] = parts[1];
    out[3] = tn_op(scope, "base.matmul", TN_IN(parts[0], in[0]), TN_NO_ATTRS);
    return status;
}

// --- the round trip ----------------------------------------------------------------------

enum { MOST = 4 };

static const struct row {
    const char *name;
    tn_function_body body;
    tn_type types[2];
    uint64_t num_inputs, num_outputs;
} rows[] = {
    {"numbers", numbers, {{TN_F32, 2, {3, 4}}, {TN_I64, 1, {5}}}, 2, 4},
    {"expressions", expressions, {{TN_F32, 2, {3, 4}}, {TN_F64, 2, {3, 4}}}, 2, 3},
    {"all kinds", all_kinds, {{TN_F32, 2, {3, 4}}, {TN_F64, 0}}, 2, 3},
    {"control", control, {{TN_F32, 2, {3, 4}}}, 1, 4},
    {"derived", derived, {{TN_F32, 2, {4, 4}}, {TN_F32, 2, {4, 4}}}, 2, 4},
    {"operators", operators, {{TN_F32, 2, {4, 4}}, {TN_F32, 2, {6, 4}}}, 2, 4},
};

static tn_array *some_data(const tn_type *type, int seed)
{
    tn_shape shape = {.rank = type->rank};
    double values[64];
    int64_t count = 1;
    for (int32_t i = 0; i < type->rank; i++)
        count *= shape.extent[i] = type->extent[i];
    for (int64_t i = 0; i < count; i++)
        values[i] = sin((double)(i + seed)) + 0.25 * (double)i;
    tn_array *wide = tn_from_data(s, TN_F64, &shape, values);
    return tn_op(s, "base.astype", TN_IN(wide), tn_attrs("dtype", (int64_t)type->dtype));
}

static void run_signature(const tn_graph_signature *signature, tn_array *const *inputs,
                          tn_array **outputs)
{
    tn_function *f = NULL;
    const tn_function_options options = {.struct_size = sizeof(options),
                                         .donated = signature->donated,
                                         .num_donated = signature->num_donated};
    must(NULL, tn_function_create(runtime, tn_graph_body, (void *)(uintptr_t)signature,
                                  &options, &f));
    must(s, tn_function_call(f, s, inputs, signature->num_inputs, outputs,
                             signature->graph->num_outputs));
    for (uint64_t i = 0; i < signature->graph->num_outputs; i++)
        cr_assert_not_null(tn_data(s, outputs[i]), "%s", tn_scope_error(s));
    tn_function_destroy(f);
}

static void expect_same(tn_array *const *a, tn_array *const *b, uint64_t count,
                        const char *name)
{
    for (uint64_t i = 0; i < count; i++) {
        void *x = read_bytes(s, a[i]), *y = read_bytes(s, b[i]);
        cr_assert(memcmp(x, y, size_of(tn_array_type(a[i]))) == 0, "%s: output %d differs",
                  name, (int)i);
        free(x);
        free(y);
    }
}

static bool same_file(const char *a, const char *b)
{
    char command[128];
    snprintf(command, sizeof(command), "cmp %s %s", a, b);
    return system(command) == 0;
}

static void check_row(const struct row *row)
{
    const tn_graph *graph;
    const tn_graph_file *file = NULL;
    tn_array *inputs[2], *ours[MOST], *theirs[MOST];
    must(s, tn_graph_trace(s, row->body, NULL, row->types, row->num_inputs,
                           row->num_outputs, NULL, &graph));
    const tn_graph_signature signature = {.struct_size = sizeof(signature),
                                          .name = row->name,
                                          .graph = graph,
                                          .num_inputs = row->num_inputs};
    must(s, tn_graph_save(s, "a.graph", &signature, 1, NULL));
    must(NULL, tn_graph_load(runtime, "a.graph", NULL, &file));
    cr_assert(eq(u64, file->num_signatures, 1));
    const tn_graph_signature *loaded = file->signatures[0];
    cr_assert_str_eq(loaded->name, row->name);
    cr_assert(loaded->graph == graph, "%s: the graph that was loaded is another one",
              row->name);
    must(s, tn_graph_save(s, "b.graph", loaded, 1, NULL));
    cr_assert(same_file("a.graph", "b.graph"), "%s: saved again it is another file",
              row->name);
    for (uint64_t i = 0; i < row->num_inputs; i++)
        inputs[i] = some_data(&row->types[i], (int)i);
    run_signature(&signature, inputs, ours);
    run_signature(loaded, inputs, theirs);
    expect_same(ours, theirs, row->num_outputs, row->name);
    tn_graph_unload(runtime, file);
}

Test(graph_file, what_is_saved_comes_back)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        check_row(&rows[i]);
}

Test(graph_file, one_graph_on_a_device)
{
    check_row(&rows[4]);
}

// --- constants and names -----------------------------------------------------------------

static tn_array *captured[TN_NUM_DTYPES];

BODY(uses_weights)
{
    UNUSED;
    for (int32_t i = 1; i < TN_NUM_DTYPES; i++) {
        tn_array *wide = tn_op(scope, "base.astype", TN_IN(captured[i]),
                               tn_attrs("dtype", (int64_t)TN_COMPLEX128));
        tn_array *sum = tn_op(scope, "base.sum", TN_IN(wide), TN_NO_ATTRS);
        out[0] = i == 1 ? sum : bin_in(scope, "base.add", out[0], sum);
    }
    out[0] = bin_in(scope, "base.add", in[0],
                    tn_op(scope, "base.real", TN_IN(out[0]), TN_NO_ATTRS));
    return TN_OK;
}

// An array of each dtype, of two elements that each dtype has.
static tn_captures capture_all(const tn_graph **out_graph)
{
    static const tn_type type = {TN_F64, 1, {3}};
    tn_captures captures = {0};
    for (int32_t i = 1; i < TN_NUM_DTYPES; i++) {
        tn_array *wide = tn_from_data(s, TN_F64, TN_SHAPE(2), (const double[]){1, 0});
        captured[i] = tn_op(s, "base.astype", TN_IN(wide), tn_attrs("dtype", (int64_t)i));
    }
    const tn_complex128 pairs[] = {{1, 2}, {-3, 0.5}};
    captured[TN_COMPLEX128] = tn_from_data(s, TN_COMPLEX128, TN_SHAPE(2), pairs);
    must(s, tn_graph_trace(s, uses_weights, NULL, &type, 1, 1, &captures, out_graph));
    return captures;
}

static const char *const in_names[] = {"x"}, *const out_names[] = {"total"};

static void check_constants(const tn_graph_signature *ours, const char *path,
                            const tn_graph_load_options *options)
{
    const tn_graph_file *file = NULL;
    tn_array *x = tn_from_data(s, TN_F64, TN_SHAPE(3), (const double[]){1, 2, 3}), *a, *b;
    must(NULL, tn_graph_load(runtime, path, options, &file));
    const tn_graph_signature *theirs = file->signatures[0];
    cr_assert(theirs->graph == ours->graph);
    cr_assert(eq(u64, theirs->num_constants, ours->num_constants));
    cr_assert_str_eq(theirs->input_names[0], "x");
    cr_assert_str_eq(theirs->output_names[0], "total");
    cr_assert_str_eq(theirs->constant_names[1], "c1");
    for (uint64_t i = 0; i < ours->num_constants; i++)
        expect_same(&ours->constants[i], &theirs->constants[i], 1, "constant");
    // Of the loaded ones: the application's are arrays of its scope.
    run_signature(theirs, &x, &a);
    tn_array *all[TN_NUM_DTYPES] = {x};
    memcpy(all + 1, ours->constants, ours->num_constants * sizeof(*all));
    must(s, tn_graph_call(s, ours->graph, all, 1 + ours->num_constants, &b, 1));
    expect_same(&a, &b, 1, path);
    tn_graph_unload(runtime, file);
}

Test(graph_file, constants_of_each_dtype_are_inside_or_beside)
{
    const tn_graph *graph;
    tn_captures captures = capture_all(&graph);
    const tn_graph_signature signature = {.struct_size = sizeof(signature),
                                          .name = "f",
                                          .graph = graph,
                                          .num_inputs = 1,
                                          .input_names = in_names,
                                          .output_names = out_names,
                                          .constants = captures.arrays,
                                          .num_constants = captures.count};
    const tn_graph_save_options beside = {.struct_size = sizeof(beside),
                                          .constants = "weights.safetensors"};
    const tn_graph_load_options map = {.struct_size = sizeof(map), .flags = TN_FILE_MAP};
    const tn_graph_load_options moved = {.struct_size = sizeof(moved),
                                         .constants = "moved.safetensors"};
    must(s, tn_graph_save(s, "inside.graph", &signature, 1, NULL));
    must(s, tn_graph_save(s, "beside.graph", &signature, 1, &beside));
    check_constants(&signature, "inside.graph", NULL);
    check_constants(&signature, "inside.graph", &map);
    check_constants(&signature, "./beside.graph", NULL);
    cr_assert(eq(int, rename("weights.safetensors", "moved.safetensors"), 0));
    check_constants(&signature, "beside.graph", &moved);
    const tn_graph_file *file = NULL;
    cr_assert_neq(tn_graph_load(runtime, "beside.graph", NULL, &file), TN_OK);
    cr_assert_not_null(strstr(tn_last_error(), "weights.safetensors"), "%s",
                       tn_last_error());
}

// A sum of numbers without a dtype is one, too: beside f32 it is rounded to f32.
BODY(scales)
{
    UNUSED;
    out[0] = bin_in(scope, "base.multiply", in[0], user);
    return TN_OK;
}

Test(graph_file, weak_constants_stay_weak)
{
    const tn_type type = {TN_F32, 1, {8}};
    const tn_graph *graph;
    const tn_graph_file *file = NULL;
    tn_captures captures = {0};
    tn_array *sum = bin_in(s, "base.add", tn_float(s, 0.1), tn_float(s, 0.2));
    must(s, tn_graph_trace(s, scales, sum, &type, 1, 1, &captures, &graph));
    cr_assert(eq(u64, captures.count, 1));
    const tn_graph_signature signature = {.struct_size = sizeof(signature),
                                          .name = "f",
                                          .graph = graph,
                                          .num_inputs = 1,
                                          .constants = captures.arrays,
                                          .num_constants = captures.count};
    must(s, tn_graph_save(s, "weak.graph", &signature, 1, NULL));
    must(NULL, tn_graph_load(runtime, "weak.graph", NULL, &file));
    tn_array *x = some_data(&type, 3), *a, *b;
    tn_array *all[] = {x, captures.arrays[0]};
    cr_assert(file->signatures[0]->graph == graph);
    must(s, tn_graph_call(s, graph, all, 2, &a, 1));
    run_signature(file->signatures[0], &x, &b);
    expect_same(&a, &b, 1, "weak");
    tn_graph_unload(runtime, file);
}

Test(graph_file, a_loaded_graph_replays_its_plan)
{
    const tn_type type = {TN_F32, 1, {2}};
    const tn_graph *graph;
    const tn_graph_file *file = NULL;
    tn_function *f = NULL;
    must(s, tn_graph_trace(s, plus_one, NULL, &type, 1, 1, NULL, &graph));
    const tn_graph_signature one = {
        .struct_size = sizeof(one), .name = "one", .graph = graph, .num_inputs = 1};
    must(s, tn_graph_save(s, "one.graph", &one, 1, NULL));
    must(NULL, tn_graph_load(runtime, "one.graph", NULL, &file));
    void *user = (void *)(uintptr_t)file->signatures[0];
    must(NULL, tn_function_create(runtime, tn_graph_body, user, NULL, &f));
    uint64_t plans = 0;
    for (int i = 0; i < 3; i++) {
        tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(2), (const float[]){1, (float)i}),
                 *y;
        must(s, tn_function_call(f, s, &x, 1, &y, 1));
        const float *got = tn_data(s, y);
        cr_assert(got && got[0] == 2 && got[1] == (float)i + 1);
        uint64_t made = stats_of(runtime).plans_made;
        cr_assert(i == 0 ? made > plans : made == plans, "call %d made a plan", i);
        plans = made;
    }
    tn_function_destroy(f);
    cr_assert_eq(tn_graph_load(runtime, "one.graph", NULL, NULL), TN_ERR_ARGUMENT);
    cr_assert_eq(tn_graph_load(NULL, "one.graph", NULL, &file), TN_ERR_ARGUMENT);
    cr_assert_neq(tn_runtime_close(runtime), TN_OK); // the file is loaded
    tn_graph_unload(runtime, file);
}

Test(graph_file, signatures_share_constants)
{
    const tn_graph *graph;
    const tn_graph_file *file = NULL;
    tn_captures captures = capture_all(&graph);
    tn_graph_signature two[2] = {{.struct_size = sizeof(*two),
                                  .name = "f",
                                  .graph = graph,
                                  .num_inputs = 1,
                                  .constants = captures.arrays,
                                  .num_constants = captures.count,
                                  .donated = (const uint32_t[]){0},
                                  .num_donated = 1}};
    two[1] = two[0];
    two[1].name = "g";
    must(s, tn_graph_save(s, "two.graph", two, 2, NULL));
    must(NULL, tn_graph_load(runtime, "two.graph", NULL, &file));
    cr_assert(eq(u64, file->num_signatures, 2));
    cr_assert(file->signatures[0]->constants[3] == file->signatures[1]->constants[3]);
    cr_assert(eq(u64, file->signatures[1]->num_donated, 1));
    tn_graph_unload(runtime, file);
    tn_graph_unload(runtime, NULL);
}

// --- operators that are not as they were -------------------------------------------------

BODY(moves)
{
    UNUSED;
    out[0] = tn_op(scope, "test.moved", TN_IN(in[0]), TN_NO_ATTRS);
    return TN_OK;
}

static void save_body(tn_function_body body, const char *path)
{
    const tn_graph *graph;
    const tn_type type = {TN_F32, 1, {2}};
    must(s, tn_graph_trace(s, body, NULL, &type, 1, 1, NULL, &graph));
    const tn_graph_signature signature = {
        .struct_size = sizeof(signature), .name = "f", .graph = graph, .num_inputs = 1};
    must(s, tn_graph_save(s, path, &signature, 1, NULL));
}

static void refused_by(const tn_primitive *moved, const char *wanted)
{
    tn_runtime *rt = open_with_operators(moved);
    const tn_graph_file *file = NULL;
    cr_assert_eq(tn_graph_load(rt, "moves.graph", NULL, &file), TN_ERR_NOT_FOUND);
    cr_assert_str_eq(tn_last_error(), wanted);
    cr_assert_null(file);
    must(NULL, tn_runtime_close(rt));
}

Test(graph_file, another_revision_is_named)
{
    save_body(moves, "moves.graph");
    refused_by(&moved_3, "plugin org.tenon.graph: moves.graph: needs operators that no "
                         "installed plugin provides: "
                         "test.moved/2 (test.moved/3 is installed: the file was made by an "
                         "older revision)");
    refused_by(&moved_1, "plugin org.tenon.graph: moves.graph: needs operators that no "
                         "installed plugin provides: "
                         "test.moved/2 (test.moved/1 is installed: the file was made by a "
                         "newer revision)");
    refused_by(NULL, "plugin org.tenon.graph: moves.graph: needs operators that no "
                     "installed plugin provides: "
                     "test.moved/2");
}

// --- training in another process ---------------------------------------------------------

// Forward, cross entropy, gradients and Adam for two layers.
BODY(train_step)
{
    UNUSED;
    tn_array *h =
        bin_in(scope, "base.add", bin_in(scope, "base.matmul", in[STATE], in[0]), in[1]);
    h = tn_op(scope, "nn.relu", TN_IN(h), TN_NO_ATTRS);
    tn_array *logits =
        bin_in(scope, "base.add", bin_in(scope, "base.matmul", h, in[2]), in[3]);
    tn_array *loss =
        tn_op(scope, "base.mean",
              TN_IN(bin_in(scope, "nn.cross_entropy", logits, in[STATE + 1])), TN_NO_ATTRS);
    tn_array *gradients[PARAMS], *updated[3];
    out[STATE] = loss;
    tn_status status = tn_vjp(scope, &loss, NULL, 1, in, PARAMS, gradients);
    const tn_attr lr = {.name = "lr", .kind = TN_ATTR_ARRAY, .array = in[STATE + 3]};
    for (int i = 0; i < PARAMS && status == TN_OK; i++) {
        status = tn_op_n(
            scope, "nn.adam",
            TN_IN(in[i], gradients[i], in[PARAMS + i], in[2 * PARAMS + i], in[STATE + 2]),
            TN_ATTR_LIST(&lr, 1), updated, 3);
        for (int k = 0; k < 3; k++)
            out[k * PARAMS + i] = updated[k];
    }
    return status;
}

static void run_child(void)
{
    extern char **environ;
    const char *program = getenv("TENON_TEST_GRAPH_STEP");
    char *const argv[] = {(char *)program, (char *)"step.graph", (char *)"there.bin", NULL};
    pid_t child;
    int status = -1;
    cr_assert_not_null(program, "TENON_TEST_GRAPH_STEP names the program graph_step");
    cr_assert(eq(int, posix_spawn(&child, program, NULL, NULL, argv, environ), 0));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    cr_assert_eq(status, 0, "the child ended with status %d", status);
}

Test(graph_file, a_saved_training_step_runs_to_the_bit_in_another_process)
{
    const tn_graph *graph;
    uint32_t donated[STATE];
    for (uint32_t i = 0; i < STATE; i++)
        donated[i] = i;
    must(s, tn_graph_trace(s, train_step, NULL, train_types, STATE + 4, STATE + 1, NULL,
                           &graph));
    const tn_graph_signature step = {.struct_size = sizeof(step),
                                     .name = "step",
                                     .graph = graph,
                                     .num_inputs = STATE + 4,
                                     .donated = donated,
                                     .num_donated = STATE};
    must(s, tn_graph_save(s, "step.graph", &step, 1, NULL));
    train(s, &step, "here.bin");
    run_child();
    cr_assert(same_file("here.bin", "there.bin"));
    struct stat info;
    cr_assert(stat("here.bin", &info) == 0 && info.st_size > 2400);
}
