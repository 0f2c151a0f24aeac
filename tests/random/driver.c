// SPDX-License-Identifier: MIT
// Evaluates programs of the language of `tenon eval` for cases.py, any number in one
// process: requests on standard input, answers on standard output.
//
//   request = one line of JSON, then the elements of its "arrays", row-major
//   answer  = {"arrays": [{"dtype": .., "shape": [..]}]} and elements, or {"error": ".."}
//
// A request has "program", "names" of its inputs, and "outputs", how many it gives. The
// arrays are the inputs, followed by cotangents or tangents with "derive": "vjp" or "jvp"
// by the inputs "wrt", and "way" says how that is computed:
//
//   "value"  as it is
//   "vmap"   for each slice along "axes" (-1: whole) of the arrays; outputs are stacked
//            along "out_axes"
//   "call"   by a function that is called "calls" times, each with arrays of its own, of
//            which those in "donated" are given away; "held" lists for each call the arrays
//            of which a view is held, whose elements are answered, too. With "apart" each
//            call has a scope of its own, else all are read at the end.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/tool.h"
#include "lang/lang.h"

enum { MOST = 64 };

struct request {
    json_t *json;
    struct lang_tree tree;
    tn_runtime *runtime;
    size_t num_arrays, num_inputs, num_outputs; // inputs: the first arrays of a call
    struct host_array arrays[MOST * 8];
    const char *derive;
    struct host_array answers[MOST * 8];
    size_t num_answers;
    int failed; // of a body, whose message is recorded
};

// --- reading ----------------------------------------------------------------------------

static int64_t number_of(const struct request *r, const char *key, size_t i, int64_t none)
{
    json_t *item = json_array_get(json_object_get(r->json, key), i);
    return item ? json_integer_value(item) : none;
}

static size_t count_of(const struct request *r, const char *key)
{
    return json_array_size(json_object_get(r->json, key));
}

static const char *word_of(const struct request *r, const char *key)
{
    const char *word = json_string_value(json_object_get(r->json, key));
    return word ? word : "";
}

static tn_dtype dtype_named(const char *name)
{
    for (tn_dtype i = 1; i < TN_NUM_DTYPES; i++)
        if (strcmp(tn_dtype_name(i), name) == 0)
            return i;
    return TN_DTYPE_NONE;
}

static int read_array(const json_t *told, struct host_array *out)
{
    const json_t *shape = json_object_get(told, "shape");
    uint64_t elements;
    const char *name = json_string_value(json_object_get(told, "dtype"));
    out->dtype = dtype_named(name ? name : "");
    out->shape.rank = (int32_t)json_array_size(shape);
    for (int32_t i = 0; i < out->shape.rank && i < TN_MAX_RANK; i++)
        out->shape.extent[i] = json_integer_value(json_array_get(shape, (size_t)i));
    if (!out->dtype || out->shape.rank > TN_MAX_RANK ||
        !type_bytes(out->dtype, &out->shape, &elements, &out->bytes))
        return oops("request: no array is of dtype '%s' and this shape", name);
    out->data = malloc(out->bytes + 1);
    if (!out->data)
        return oops_memory();
    return fread(out->data, 1, out->bytes, stdin) == out->bytes
               ? 0
               : oops("request: ends before its arrays");
}

static int read_request(struct request *r, const char *line)
{
    json_error_t error;
    r->json = json_loads(line, 0, &error);
    if (!r->json)
        return oops("request: %s", error.text);
    const json_t *arrays = json_object_get(r->json, "arrays");
    size_t count = json_array_size(arrays);
    if (count > COUNT(r->arrays))
        return oops("request: %zu arrays, expected at most %zu", count, COUNT(r->arrays));
    int failed = 0;
    for (size_t i = 0; i < count; i++) { // all: the next request is behind them
        int one = read_array(json_array_get(arrays, i), &r->arrays[i]);
        failed = failed ? failed : one;
        r->num_arrays++;
    }
    r->num_inputs = count_of(r, "names");
    r->num_outputs = (size_t)json_integer_value(json_object_get(r->json, "outputs"));
    r->derive = word_of(r, "derive");
    return failed ? failed : lang_parse(word_of(r, "program"), &r->tree);
}

static tn_array *make_array(tn_scope *scope, const struct host_array *from)
{
    return tn_from_data(scope, from->dtype, &from->shape, from->data);
}

// --- building ---------------------------------------------------------------------------

// Takes what the derivative is of from the inputs of a call: arrays by "wrt".
static size_t list_wrt(const struct request *r, tn_array *const *inputs, tn_array **out)
{
    size_t count = count_of(r, "wrt");
    for (size_t i = 0; i < count && i < MOST; i++)
        out[i] = inputs[number_of(r, "wrt", i, 0)];
    return count;
}

static int derive(const struct request *r, tn_scope *scope, tn_array *const *inputs,
                  const struct lang_results *results, tn_array **outputs)
{
    tn_array *wrt[MOST], *const *with = inputs + r->num_inputs;
    size_t count = list_wrt(r, inputs, wrt);
    tn_status status = TN_OK;
    if (strcmp(r->derive, "vjp") == 0)
        status = tn_vjp(scope, results->items, with, results->count, wrt, count, outputs);
    else if (strcmp(r->derive, "jvp") == 0)
        status = tn_jvp(scope, results->items, results->count, wrt, with, count, outputs);
    else
        memcpy(outputs, results->items, results->count * sizeof(*outputs));
    return status == TN_OK ? 0 : oops_scope(scope);
}

// A tn_function_body: the program, or its derivative.
static tn_status build(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                       tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct request *r = user;
    struct lang_names names = {0};
    struct lang_results results = {0};
    int failed = 0;
    (void)num_inputs;
    for (size_t i = 0; !failed && i < r->num_inputs; i++) {
        json_t *name = json_array_get(json_object_get(r->json, "names"), i);
        failed = lang_names_set(&names, json_string_value(name), inputs[i]);
    }
    if (!failed)
        failed = lang_eval(&r->tree, scope, &names, &results);
    if (!failed && !*r->derive && results.count != num_outputs)
        failed = oops("request: %zu outputs, expected %d", results.count, (int)num_outputs);
    if (!failed)
        failed = derive(r, scope, inputs, &results, outputs);
    lang_names_finish(&names);
    free(results.items);
    r->failed = failed;
    return failed ? TN_ERR_ARGUMENT : TN_OK;
}

// --- computing --------------------------------------------------------------------------

static int answer(struct request *r, tn_scope *scope, tn_array *array)
{
    if (r->num_answers >= COUNT(r->answers))
        return oops("request: too many answers");
    int failed = host_array_read(scope, array, &r->answers[r->num_answers]);
    r->num_answers += !failed;
    return failed;
}

static int answer_all(struct request *r, tn_scope *scope, tn_array *const *arrays,
                      size_t count)
{
    int failed = tn_eval_n(scope, arrays, count) ? oops_scope(scope) : 0;
    for (size_t i = 0; !failed && i < count; i++)
        failed = answer(r, scope, arrays[i]);
    return failed;
}

// Computes it as it is, or mapped.
static int compute_once(struct request *r, bool is_mapped)
{
    tn_array *inputs[MOST * 8], *outputs[MOST] = {NULL};
    int32_t in_axes[MOST * 8], out_axes[MOST];
    tn_scope *scope = tn_scope_open(r->runtime);
    for (size_t i = 0; i < r->num_arrays; i++) {
        inputs[i] = make_array(scope, &r->arrays[i]);
        in_axes[i] = (int32_t)number_of(r, "axes", i, 0);
    }
    for (size_t i = 0; i < r->num_outputs; i++)
        out_axes[i] = (int32_t)number_of(r, "out_axes", i, 0);
    if (is_mapped)
        tn_vmap_call(scope, build, r, inputs, in_axes, r->num_arrays, outputs, out_axes,
                     r->num_outputs);
    else
        build(scope, inputs, r->num_arrays, outputs, r->num_outputs, r);
    int failed = r->failed ? r->failed : tn_scope_status(scope) ? oops_scope(scope) : 0;
    if (!failed)
        failed = answer_all(r, scope, outputs, r->num_outputs);
    tn_scope_close(scope);
    return failed;
}

// A view of all elements, which shares the memory of an array that was evaluated.
static tn_array *hold_view(tn_scope *scope, tn_array *array)
{
    tn_array *view =
        tn_op(scope, "expand_dims", TN_IN(array), tn_attrs("axis", TN_INTS(0)));
    tn_eval(scope, view);
    return view;
}

// What one call gives: its outputs, followed by the views that are held.
struct called {
    tn_array *arrays[2 * MOST];
    size_t count;
};

static int call_once(struct request *r, tn_function *function, tn_scope *scope, size_t call,
                     size_t per_call, struct called *out)
{
    tn_array *inputs[MOST];
    json_t *held = json_array_get(json_object_get(r->json, "held"), call);
    for (size_t i = 0; i < per_call; i++) {
        inputs[i] = make_array(scope, &r->arrays[call * per_call + i]);
        tn_eval(scope, inputs[i]);
    }
    out->count = r->num_outputs;
    for (size_t i = 0; i < json_array_size(held); i++) {
        json_int_t which = json_integer_value(json_array_get(held, i));
        out->arrays[out->count++] = hold_view(scope, inputs[which]);
    }
    tn_function_call(function, scope, inputs, per_call, out->arrays, r->num_outputs);
    return r->failed ? r->failed : tn_scope_status(scope) ? oops_scope(scope) : 0;
}

static int call_all(struct request *r, tn_function *function, size_t calls, bool is_apart)
{
    size_t per_call = r->num_arrays / calls;
    struct called *called = calloc(calls, sizeof(*called));
    tn_scope *scope = called && !is_apart ? tn_scope_open(r->runtime) : NULL;
    int failed = called ? 0 : oops_memory();
    for (size_t i = 0; !failed && i < calls; i++) {
        tn_scope *own = is_apart ? tn_scope_open(r->runtime) : scope;
        failed = call_once(r, function, own, i, per_call, &called[i]);
        if (!failed && is_apart)
            failed = answer_all(r, own, called[i].arrays, called[i].count);
        if (is_apart)
            tn_scope_close(own);
    }
    for (size_t i = 0; !failed && !is_apart && i < calls; i++)
        failed = answer_all(r, scope, called[i].arrays, called[i].count);
    tn_scope_close(scope);
    free(called);
    return failed;
}

static int compute_calls(struct request *r)
{
    uint32_t donated[MOST];
    tn_function *function = NULL;
    size_t calls = (size_t)json_integer_value(json_object_get(r->json, "calls"));
    const tn_function_options options = {.struct_size = sizeof(options),
                                         .donated = donated,
                                         .num_donated = count_of(r, "donated")};
    for (size_t i = 0; i < options.num_donated && i < MOST; i++)
        donated[i] = (uint32_t)number_of(r, "donated", i, 0);
    if (!calls || r->num_arrays % calls || r->num_arrays / calls > MOST)
        return oops("request: %zu arrays for %zu calls", r->num_arrays, calls);
    if (tn_function_create(r->runtime, build, r, &options, &function))
        return oops_library();
    int failed =
        call_all(r, function, calls, json_is_true(json_object_get(r->json, "apart")));
    tn_function_destroy(function);
    return failed;
}

static int compute(struct request *r)
{
    const char *way = word_of(r, "way");
    if (r->num_outputs > MOST)
        return oops("request: %zu outputs, expected at most %d", r->num_outputs, MOST);
    if (strcmp(way, "call") == 0)
        return compute_calls(r);
    return compute_once(r, strcmp(way, "vmap") == 0);
}

// --- answering --------------------------------------------------------------------------

static json_t *tell_array(const struct host_array *array)
{
    json_t *shape = json_array();
    for (int32_t i = 0; i < array->shape.rank; i++)
        json_array_append_new(shape, json_integer(array->shape.extent[i]));
    return json_pack("{s:s, s:o}", "dtype", tn_dtype_name(array->dtype), "shape", shape);
}

static void write_answer(const struct request *r, int failed)
{
    json_t *told = json_object(), *arrays = json_array();
    for (size_t i = 0; i < r->num_answers; i++)
        json_array_append_new(arrays, tell_array(&r->answers[i]));
    json_object_set_new(told, "arrays", arrays);
    if (failed)
        json_object_set_new(told, "error", json_string(oops_text()));
    char *line = json_dumps(told, JSON_COMPACT);
    puts(line ? line : "{\"error\": \"the message is no UTF-8\", \"arrays\": []}");
    for (size_t i = 0; line && i < r->num_answers; i++)
        fwrite(r->answers[i].data, 1, r->answers[i].bytes, stdout);
    fflush(stdout);
    free(line);
    json_decref(told);
}

static void finish(struct request *r)
{
    for (size_t i = 0; i < r->num_arrays; i++)
        host_array_finish(&r->arrays[i]);
    for (size_t i = 0; i < r->num_answers; i++)
        host_array_finish(&r->answers[i]);
    lang_tree_finish(&r->tree);
    json_decref(r->json);
    free(r);
}

int main(void)
{
    tn_runtime *runtime = NULL;
    char *line = NULL;
    size_t room = 0;
    int failed = open_runtime(&runtime);
    while (!failed && getline(&line, &room, stdin) > 0) {
        struct request *r = calloc(1, sizeof(*r));
        if (!r)
            return EXIT_FAILURE;
        r->runtime = runtime;
        int one = read_request(r, line);
        write_answer(r, one ? one : compute(r));
        finish(r);
        forget_oops();
    }
    free(line);
    tn_runtime_close(runtime);
    if (failed)
        complain(oops_text());
    return failed;
}
