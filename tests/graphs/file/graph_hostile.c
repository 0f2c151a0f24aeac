// SPDX-License-Identifier: MIT
// Graphs that cannot be saved, and hostile files of graphs: each ends in an error that says
// where and why.
#include <jansson.h>
#include "base/memory.h"
#include "graph_file.h"

TestSuite(graph_hostile, .init = begin, .fini = end);

// --- what cannot be saved ----------------------------------------------------------------

static tn_status keep_vjp(tn_scope *scope, const tn_rule *rule, tn_array *const *cotangents,
                          const uint64_t *wanted, tn_array **gradients, void *user)
{
    (void)scope, (void)rule, (void)wanted, (void)user;
    gradients[0] = cotangents[0];
    return TN_OK;
}

BODY(customised)
{
    UNUSED;
    static const tn_custom_rules rules = {.struct_size = sizeof(rules), .vjp = keep_vjp};
    return tn_custom_call(scope, plus_one, NULL, &rules, in, 1, out, 1);
}

// Checkpoints in checkpoints, *user of them.
BODY(deep)
{
    UNUSED;
    int left = *(int *)user;
    if (left == 0)
        return plus_one(scope, in, 1, out, 1, NULL);
    *(int *)user = left - 1;
    return tn_checkpoint_call(scope, deep, user, in, 1, out, 1);
}

static const tn_graph *trace_one(tn_function_body body, void *user)
{
    const tn_graph *graph = NULL;
    const tn_type type = {TN_F32, 1, {2}};
    must(s, tn_graph_trace(s, body, user, &type, 1, 1, NULL, &graph));
    return graph;
}

static void unsaved(const tn_graph_signature *signatures, uint64_t count,
                    const tn_graph_save_options *options, tn_status status,
                    const char *wanted)
{
    cr_assert_eq(tn_graph_save(s, "no.graph", signatures, count, options), status, "%s",
                 wanted);
    cr_assert_not_null(strstr(tn_scope_error(s), wanted), "got '%s', expected '%s'",
                       tn_scope_error(s), wanted);
    cr_assert_neq(access("no.graph", F_OK), 0);
    tn_scope_clear_error(s);
}

Test(graph_hostile, what_cannot_be_saved_says_why)
{
    int depth = 63, deeper = 64;
    const tn_graph *graph = trace_one(plus_one, NULL);
    const tn_graph_signature good = {
        .struct_size = sizeof(good), .name = "f", .graph = graph, .num_inputs = 1};
    tn_graph_signature s1 = good, two[2] = {good, good};
    const tn_graph_save_options up = {.struct_size = sizeof(up), .constants = "../w"};
    s1.graph = trace_one(customised, NULL);
    unsaved(&s1, 1, NULL, TN_ERR_UNSUPPORTED, "rules of the application");
    s1.graph = trace_one(deep, &deeper);
    unsaved(&s1, 1, NULL, TN_ERR_UNSUPPORTED, "deeper than 64");
    unsaved(two, 2, NULL, TN_ERR_ARGUMENT, "no.graph: 'f': two signatures have this name");
    unsaved(&good, 1, &up, TN_ERR_ARGUMENT, "without a folder");
    unsaved(NULL, 0, NULL, TN_ERR_ARGUMENT, "no signatures");
    s1 = good;
    s1.name = "";
    unsaved(&s1, 1, NULL, TN_ERR_ARGUMENT, "signature 0 has no name");
    s1 = good;
    s1.num_inputs = 0;
    unsaved(&s1, 1, NULL, TN_ERR_ARGUMENT, "0 inputs and 0 constants for a graph with 1");
    tn_array *wrong = tn_f64(s, 1);
    s1.constants = &wrong;
    s1.num_constants = 1;
    unsaved(&s1, 1, NULL, TN_ERR_ARGUMENT, "constant 0 has another type");
    s1 = good;
    s1.donated = (const uint32_t[]){0, 0};
    s1.num_donated = 2;
    unsaved(&s1, 1, NULL, TN_ERR_ARGUMENT, "input 0 is donated, twice");
    s1 = good;
    s1.input_names = (const char *const[]){""};
    unsaved(&s1, 1, NULL, TN_ERR_ARGUMENT, "input 0 has no name");
    s1 = good;
    s1.graph = trace_one(deep, &depth);
    must(s, tn_graph_save(s, "deep.graph", &s1, 1, NULL));
    const tn_graph_file *file = NULL;
    must(NULL, tn_graph_load(runtime, "deep.graph", NULL, &file));
    cr_assert(file->signatures[0]->graph == s1.graph);
    tn_graph_unload(runtime, file);
}

Test(graph_hostile, a_body_names_its_signature)
{
    tn_function *f = NULL;
    tn_array *in[2] = {tn_f32(s, 1), tn_f32(s, 2)}, *out;
    const tn_graph_signature step = {.struct_size = sizeof(step),
                                     .name = "step",
                                     .graph = trace_one(plus_one, NULL),
                                     .num_inputs = 1};
    must(NULL,
         tn_function_create(runtime, tn_graph_body, (void *)(uintptr_t)&step, NULL, &f));
    cr_assert_eq(tn_function_call(f, s, in, 2, &out, 1), TN_ERR_ARGUMENT);
    cr_assert_not_null(strstr(tn_scope_error(s), "step: got 2 inputs, expected 1"), "%s",
                       tn_scope_error(s));
    tn_scope_clear_error(s);
    cr_assert_eq(tn_function_call(f, s, in, 1, &out, 1), TN_ERR_ARGUMENT);
    cr_assert_not_null(strstr(tn_scope_error(s), "the graph takes"), "%s",
                       tn_scope_error(s));
    tn_function_destroy(f);
}

// --- hostile files -----------------------------------------------------------------------

// Writes a file with this text, by the format's rules for the bytes around it.
static void write_text(const char *path, const char *text, const char *entries, size_t cut)
{
    json_t *string = json_string(text);
    char *quoted = json_dumps(string, JSON_ENCODE_ANY), *header = NULL;
    int length =
        asprintf(&header, "{\"__metadata__\":{\"tenon.graph\":%s}%s}", quoted, entries);
    FILE *file = fopen(path, "wb");
    uint64_t size = (uint64_t)length;
    cr_assert(file && string && length > 0);
    fwrite(&size, 1, 8, file);
    fwrite(header, 1, size - cut, file);
    fclose(file);
    free(quoted);
    free(header);
    json_decref(string);
}

#define F32X2 "[\"f32\",[2]]"
#define FILE_OF(operators, inputs, nodes, outputs, constants, signatures)                  \
    "{\"version\":1,\"operators\":[" operators "],\"graphs\":[{\"inputs\":[" inputs        \
    "],\"nodes\":[" nodes "],\"outputs\":[" outputs "]}],\"constants\":[" constants        \
    "],\"signatures\":[" signatures "]}"
#define SIGNATURE SIGNATURE_OF("0")
#define SIGNATURE_OF(graph)                                                                \
    "{\"name\":\"f\",\"graph\":" graph                                                     \
    ",\"inputs\":[\"x\"],\"outputs\":[\"y\"],\"constants\":[],"                            \
    "\"donated\":[]}"
// A graph of one node over one input, x; its output is array 1.
#define NODE(node)                                                                         \
    FILE_OF("\"base.sum/1\",\"test.kinds/1\"", F32X2, node, "1", "", SIGNATURE)
#define SUM(in, attrs, out)                                                                \
    "{\"op\":0,\"in\":[" in "],\"attrs\":{" attrs "},\"out\":[" out "]}"
#define KINDS(attrs) NODE("{\"op\":1,\"in\":[0],\"attrs\":{" attrs "},\"out\":[" F32X2 "]}")
#define SIGNED(signature) FILE_OF("", F32X2, "", "0", "", signature)
#define SCALAR "[\"f32\",[]]"

static const struct hostile {
    const char *text, *wanted;
} hostile[] = {
    {"", "damaged text"},
    {"[]", "no version"},
    {"{\"version\":2}", "version 2 of the format, expected 1"},
    {"{\"version\":1}", "expected a list 'operators'"},
    {"{\"version\":1,\"operators\":[7]}", "expected a text for operators"},
    {"{\"version\":1,\"operators\":[\"a.b/1\",\"a.b/1\"]}", "is there twice"},
    {"{\"version\":1,\"operators\":[],\"more\":1}", "unknown member 'more'"},
    {"{\"version\":1,\"operators\":[],\"graphs\":[]}", "expected a list 'constants'"},
    {"{\"version\":1,\"operators\":[\"tn.custom_vjp/1\"],\"graphs\":[]}",
     "rules of an application"},
    {FILE_OF("\"none.such/1\"", F32X2, "", "0", "", SIGNATURE),
     "needs operators that no installed plugin provides: none.such/1"},
    {FILE_OF("\"sum\"", F32X2, "", "0", "", SIGNATURE),
     "no installed plugin provides: sum"},
    {FILE_OF("", "[\"f33\",[2]]", "", "0", "", SIGNATURE), "graph 0: 'f33' is no dtype"},
    {FILE_OF("", "[\"f32\",[-1]]", "", "0", "", SIGNATURE), "extent 0 is no number"},
    {FILE_OF("", "[\"f32\",[4611686018427387904,4]]", "", "0", "", SIGNATURE), "overflow"},
    {FILE_OF("", "[\"f32\",[1,1,1,1,1,1,1,1,1]]", "", "0", "", SIGNATURE),
     "at most 8 axes"},
    {FILE_OF("", "[\"f32\",[2],\"strong\"]", "", "0", "", SIGNATURE), "expected a type"},
    {FILE_OF("", F32X2, "", "1", "", SIGNATURE), "outputs: expected a number below 1"},
    {FILE_OF("", F32X2, "", "-1", "", SIGNATURE), "outputs: expected a number below 1"},
    {NODE("7"), "graph 0, node 0: expected an object"},
    {NODE("{\"op\":0,\"expr\":\"x -> x\",\"in\":[0],\"out\":[" SCALAR "]}"),
     "expected 'number'"},
    {NODE("{\"op\":2,\"in\":[0],\"out\":[" SCALAR "]}"), "op: expected a number below 2"},
    {NODE("{\"op\":0,\"in\":[0],\"out\":[]}"), "0 outputs, expected 1 to 64"},
    {NODE(SUM("1", "", SCALAR)), "in: expected a number below 1"},
    {NODE(SUM("0.5", "", SCALAR)), "in: expected a number below 1"},
    {NODE(SUM("", "", SCALAR)), "got 0 inputs, expected 1"},
    {NODE(SUM("null", "", SCALAR)), "input x is NULL"},
    {NODE(SUM("0", "", F32X2)), "base.sum/1: output 0 is f32"},
    {NODE(SUM("0", "", "[\"f64\",[]]")), "base.sum/1: output 0 is f32"},
    {NODE(SUM("0", "", SCALAR "," SCALAR)), "the call asks for 2"},
    {NODE(SUM("0", "\"axis\":{\"i64\":0}", SCALAR)),
     "attribute 'axis' is i64 in the file, expected ints"},
    {NODE(SUM("0", "\"axle\":{\"i64\":0}", SCALAR)), "did you mean 'ax"},
    {NODE(SUM("0", "\"axis\":{\"f32\":0}", SCALAR)), "'f32' is no kind of attribute"},
    {NODE(SUM("0", "\"axis\":0", SCALAR)), "attribute 'axis': expected a kind and a value"},
    {NODE(SUM("0", "\"axis\":{\"ints\":[0,1,2,3,4,5,6,7,8]}", SCALAR)),
     "at most 8 integers"},
    {NODE(SUM("0", "\"axis\":{\"ints\":[9]}", SCALAR)), "base.sum/1"},
    {NODE(SUM("0", "\"keepdims\":{\"bool\":2}", SCALAR)), "expected true or false"},
    {NODE(SUM("0", "\"axis\":{\"runtime\":0}", SCALAR)), "is runtime in the file"},
    {NODE("{\"number\":\"0x7ff\",\"type\":" SCALAR "}"), "expected a number"},
    {NODE("{\"number\":1,\"type\":" F32X2 "}"), "a number has no axes"},
    {NODE("{\"number\":2,\"type\":[\"bool\",[]]}"), "expected 0 or 1"},
    {NODE("{\"number\":1.5,\"type\":[\"i32\",[]]}"), "expected an integer"},
    {NODE("{\"expr\":\"x -> x +\",\"in\":[0],\"out\":[" F32X2 "]}"),
     "expression: expected a value"},
    {NODE("{\"expr\":\"x -> x * a\",\"in\":[0],\"out\":[" F32X2 "]}"), "got 0 attributes"},
    {NODE("{\"expr\":\"x -> x\",\"in\":[0],\"out\":[" F32X2 "," F32X2 "]}"),
     "has 1 outputs"},
    {NODE("{\"expr\":\"x -> x\",\"in\":[0],\"out\":[[\"i8\",[2]]]}"), "output 0 is f32"},
    {NODE("{\"expr\":\"x -> x\",\"typed\":false,\"in\":[0],\"out\":[" F32X2 "]}"),
     "which may be 'typed'"},
    {KINDS("\"rate\":{\"f64\":1}"), "'rate' is f64 in the file, expected runtime"},
    {KINDS("\"rate\":{\"runtime\":0}"),
     "'rate': got f32[2], expected a number or a scalar"},
    {KINDS("\"rate\":{\"runtime\":1}"), "expected the number of an array below 1"},
    {KINDS("\"choice\":{\"choice\":\"third\"}"), "third"},
    {KINDS("\"dtype\":{\"dtype\":\"f33\"}"), "f33"},
    {KINDS("\"bits\":{\"bits\":\"xyz\"}"), "bits"},
    {KINDS("\"body\":{\"graph\":0}"), "expected the number of a graph below 0"},
    {KINDS("\"text\":{\"string\":5}"), "expected a text"},
    {KINDS("\"real_list\":{\"float_list\":[\"a\"]}"), "expected a number"},
    {SIGNED(""), "no signatures"},
    {SIGNED(SIGNATURE "," SIGNATURE), "signature 1: there are two of the name 'f'"},
    {SIGNED("{\"name\":\"f\",\"graph\":1}"), "graph: expected a number below 1"},
    {SIGNED("{\"name\":\"f\",\"graph\":0,\"inputs\":[\"x\",\"x\"]}"), "'x' is there twice"},
    {SIGNED(
         "{\"name\":\"f\",\"graph\":0,\"inputs\":[],\"outputs\":[\"y\"],\"constants\":[],"
         "\"donated\":[]}"),
     "0 inputs and 0 constants for a graph with 1 inputs"},
    {SIGNED(
         "{\"name\":\"f\",\"graph\":0,\"inputs\":[\"x\"],\"outputs\":[],\"constants\":[]}"),
     "0 names for the 1 outputs"},
    {SIGNED("{\"name\":\"f\",\"graph\":0,\"inputs\":[\"x\"],\"outputs\":[\"y\"],"
            "\"constants\":[0]}"),
     "constants: expected a number below 0"},
    {SIGNED("{\"name\":\"f\",\"graph\":0,\"inputs\":[\"x\"],\"outputs\":[\"y\"],"
            "\"constants\":[],\"donated\":[0,0]}"),
     "input 0 is donated twice"},
    {FILE_OF(
         "", F32X2, "", "0", "{\"name\":\"c\",\"type\":" F32X2 "}",
         "{\"name\":\"f\",\"graph\":0,\"inputs\":[],\"outputs\":[\"y\"],\"constants\":[0],"
         "\"donated\":[]}"),
     "constant 'c': "},
    {FILE_OF(
         "", F32X2, "", "0", "{\"name\":\"c\",\"type\":" SCALAR "}",
         "{\"name\":\"f\",\"graph\":0,\"inputs\":[],\"outputs\":[\"y\"],\"constants\":[0],"
         "\"donated\":[]}"),
     "constant 'c' has another type than its input"},
};

static void expect_refusal(const char *text, const char *wanted)
{
    const tn_graph_file *file = NULL;
    tn_status status = tn_graph_load(runtime, "h.graph", NULL, &file);
    cr_expect(status != TN_OK && !file, "taken: %s", text);
    cr_expect(strstr(tn_last_error(), "h.graph: ") && strstr(tn_last_error(), wanted),
              "got '%s', expected '%s', for %s", tn_last_error(), wanted, text);
    tn_graph_unload(runtime, file);
}

Test(graph_hostile, hostile_files_end_in_an_error)
{
    for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
        write_text("h.graph", hostile[i].text, "", 0);
        expect_refusal(hostile[i].text, hostile[i].wanted);
    }
    write_text("h.graph", NODE(SUM("0", "", SCALAR)), "", 1); // truncated
    expect_refusal("truncated", "truncated");
    write_text("h.graph", "x",
               ",\"c\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", 0);
    expect_refusal("an offset outside", "data up to byte 8, the file has 0");
    tn_array *one = tn_f32(s, 1);
    const char *const name = "a";
    const tn_save_options options = {.plugin = "org.tenon.safetensors"};
    must(s, tn_save(s, "h.graph", &one, &name, 1, &options));
    expect_refusal("arrays", "no file of graphs");
}

// Each graph has the one before twice: what is small in the file may not grow for ever.
Test(graph_hostile, endless_work_is_refused)
{
    char text[16384] = "{\"version\":1,\"operators\":[\"base.checkpoint/1\"],\"graphs\":[";
    strcat(text, "{\"inputs\":[" F32X2 "],\"nodes\":[],\"outputs\":[0]}");
    for (int i = 0; i < 40; i++)
        sprintf(
            text + strlen(text),
            ",{\"inputs\":[" F32X2 "],\"nodes\":[{\"op\":0,\"in\":[0],\"attrs\":{\"body\":{"
            "\"graph\":%d}},\"out\":[" F32X2 "]},{\"op\":0,\"in\":[1],\"attrs\":{\"body\":{"
            "\"graph\":%d}},\"out\":[" F32X2 "]}],\"outputs\":[2]}",
            i, i);
    strcat(text, "],\"constants\":[],\"signatures\":[" SIGNATURE_OF("40") "]}");
    write_text("h.graph", text, "", 0);
    expect_refusal(text,
                   "it has more than 10922 nodes, which take more than 67108864 bytes; "
                   "TENON_GRAPH_LIMIT=BYTES raises the limit");
}

// --- allocations that fail ---------------------------------------------------------------

BODY(looped)
{
    UNUSED;
    tn_array *y;
    tn_status status = tn_checkpoint_call(scope, plus_one, NULL, in, 1, &y, 1);
    out[0] = tn_expr(scope, "x, w -> x * w * a", TN_IN(y, user), tn_attrs("a", 2.0));
    return status;
}

// Saves a graph with a constant and a graph among its attributes, and loads it.
static tn_status save_and_load(void)
{
    const tn_graph *graph;
    const tn_graph_file *file = NULL;
    const tn_type type = {TN_F32, 1, {2}};
    tn_captures captures = {0};
    tn_array *w = tn_from_data(s, TN_F32, TN_SHAPE(2), (const float[]){1, 2});
    tn_status status = tn_graph_trace(s, looped, w, &type, 1, 1, &captures, &graph);
    if (status != TN_OK)
        return status;
    const tn_graph_signature signature = {.struct_size = sizeof(signature),
                                          .name = "f",
                                          .graph = graph,
                                          .num_inputs = 1,
                                          .constants = captures.arrays,
                                          .num_constants = captures.count};
    status = tn_graph_save(s, "m.graph", &signature, 1, NULL);
    if (status == TN_OK)
        status = tn_graph_load(runtime, "m.graph", NULL, &file);
    cr_assert(status == TN_OK ? file->signatures[0]->graph == graph : !file);
    tn_graph_unload(runtime, file);
    return status;
}

// What is left behind, the runtime would refuse to close with.
Test(graph_hostile, each_allocation_may_fail)
{
    int64_t n = 1, fine = 0, failures = 0;
    must(s, save_and_load());
    for (; fine < 20; n++) {
        mem_fail_nth(n);
        tn_status status = save_and_load();
        mem_fail_nth(0);
        cr_assert(status == TN_OK || status == TN_ERR_MEMORY, "allocation %d: %s: %s %s",
                  (int)n, tn_status_name(status), tn_scope_error(s), tn_last_error());
        fine = status == TN_OK ? fine + 1 : 0;
        failures += status != TN_OK;
        tn_scope_clear_error(s);
    }
    cr_assert(failures > 50, "%d allocations failed", (int)failures);
    must(s, save_and_load());
}
