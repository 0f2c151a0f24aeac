// SPDX-License-Identifier: MIT
// Graphs as values: equal ones are one, they live as long as something refers to them, go
// into attributes, and say what does not fit; functions that call functions; primitives of
// an application that run graphs.
#include "attr/intern.h"
#include "base/fail.h"
#include "graph/graph.h"
#include "plugin/host/host.h"
#include "primitive/prim_set.h"
#include <pthread.h>
#include <stdatomic.h>
#include <tenon/control.h>
#include <tenon/pack.h>
#include "../support/common.h"

static tn_scope *s;

#define BODY(name)                                                                         \
    static tn_status name(tn_scope *scope, tn_array *const *in, uint64_t num_in,           \
                          tn_array **out, uint64_t num_out, void *user)
#define UNUSED (void)scope, (void)in, (void)num_in, (void)out, (void)num_out, (void)user

static const tn_type scalar = {.dtype = TN_F32};
static const tn_type pair = {.dtype = TN_F32, .rank = 1, .extent = {2}};

BODY(plus_number)
{
    UNUSED;
    out[0] = tn_expr(scope, "x, n -> x + n", TN_IN(in[0], tn_float(scope, *(double *)user)),
                     TN_NO_ATTRS);
    return TN_OK;
}
BODY(times_user)
{
    UNUSED;
    out[0] = tn_expr(scope, "x, w -> x * w", TN_IN(in[0], user), TN_NO_ATTRS);
    return TN_OK;
}
BODY(evaluates)
{
    UNUSED;
    out[0] = in[0];
    return tn_eval(scope, in[0]);
}
BODY(gives_nothing)
{
    UNUSED;
    return TN_OK;
}
BODY(makes_data)
{
    UNUSED;
    out[0] = tn_expr(scope, "x, d -> x + d",
                     TN_IN(in[0], tn_from_data(scope, TN_F32, TN_SCALAR, (float[]){5})),
                     TN_NO_ATTRS);
    return TN_OK;
}

static const tn_graph *plus(double number, const tn_type *type)
{
    const tn_graph *graph = NULL;
    must(s, tn_graph_trace(s, plus_number, &number, type, 1, 1, NULL, &graph));
    return graph;
}

static void says(const char *text)
{
    cr_assert_not_null(strstr(tn_scope_error(s), text), "got: %s", tn_scope_error(s));
    tn_scope_clear_error(s);
}

// --- a primitive with a text and a graph ------------------------------------------------

// What `body` makes of x, `times` times, on the host; how often it was asked to.
typedef struct repeat_attrs {
    const char *label;
    const tn_graph *body;
    int64_t times;
    int64_t fault; // what `run` does wrong
} repeat_attrs;
static const tn_attr_field repeat_fields[] = {
    TN_STRING_FIELD(repeat_attrs, label, "a text"),
    TN_REQUIRED_FIELD(repeat_attrs, body, TN_ATTR_GRAPH, "what is repeated"),
    TN_I64_FIELD(repeat_attrs, times, 1, "how often"),
    TN_I64_FIELD(repeat_attrs, fault, 0, "a planted fault"),
};
static atomic_int num_runs;

static tn_status repeat_infer(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

static tn_status repeat_run(const tn_run *run)
{
    const repeat_attrs *attrs = run->attrs;
    tn_elements *x = run->retain(run, run->inputs[0]), *y = NULL;
    num_runs++;
    if (attrs->fault == 1)
        return run->release(run, x), TN_OK; // leaves the output NULL
    if (attrs->fault == 2)
        return run->release(run, x), TN_ERR_DEVICE; // and says nothing
    if (attrs->fault == 3)
        return run->release(run, x), run->call(run, attrs->body, NULL, 0, 0, run->outputs);
    for (int64_t i = 0; i < attrs->times; i++, x = y) {
        tn_status status = run->call(run, attrs->body, &x, 1, 1, &y);
        if (status)
            return status;
    }
    run->outputs[0] = x;
    return TN_OK;
}

TN_OP(repeat, "test.repeat/1", (x), .attrs = TN_ATTR_TABLE(repeat_attrs, repeat_fields),
      .infer = repeat_infer, .run = repeat_run);

static void open_all(void)
{
    runtime = open_on("cpu-blas");
    must(NULL, prim_register(runtime, NULL, &repeat));
    s = tn_scope_open(runtime);
    num_runs = 0;
}

static void close_all(void)
{
    tn_scope_close(s);
    cr_assert_eq(tn_runtime_close(runtime), TN_OK, "%s", tn_last_error());
}

TestSuite(traced, .init = open_all, .fini = close_all);

Test(traced, equal_graphs_are_one)
{
    const tn_graph *a = plus(1, &scalar);
    cr_assert_eq(a, plus(1, &scalar));
    cr_assert_neq(a, plus(2, &scalar));
    cr_assert_neq(a, plus(1, &pair));
    cr_assert(a->num_inputs == 1 && a->num_outputs == 1 && a->num_nodes == 1);
    tn_scope *other = tn_scope_open(runtime);
    const tn_graph *b = NULL;
    must(other, tn_graph_trace(other, plus_number, &(double){1}, &scalar, 1, 1, NULL, &b));
    cr_assert_eq(a, b);
    tn_scope_close(other);
    cr_assert_eq(a, plus(1, &scalar));
}

Test(traced, a_graph_goes_with_the_last_that_refers_to_it)
{
    uint32_t before = intern_set_count(runtime->interned);
    tn_scope *other = s;
    s = tn_scope_open(runtime);
    const tn_graph *graph = tn_graph_retain(plus(3, &scalar));
    tn_scope_close(s);
    s = other;
    cr_assert_eq(intern_set_count(runtime->interned), before + 1);
    cr_assert_neq(tn_runtime_close(runtime), TN_OK);
    cr_assert_not_null(strstr(tn_last_error(), "1 graph"), "%s", tn_last_error());
    tn_array *y, *x = tn_f32(s, 4);
    must(s, tn_graph_call(s, graph, &x, 1, &y, 1));
    tn_graph_release(graph);
    cr_assert_eq(tn_item(s, y), 7); // the scope holds it now
    tn_scope_close(s);
    cr_assert_eq(intern_set_count(runtime->interned), before);
    s = tn_scope_open(runtime);
}

Test(traced, arrays_around_become_inputs_in_one_order)
{
    tn_captures captures = {0};
    const tn_graph *a = NULL, *b = NULL;
    tn_array *w = tn_from_data(s, TN_F32, TN_SCALAR, (float[]){2});
    tn_array *kept = tn_keep(s, tn_f32(s, 3)), *x = tn_f32(s, 10), *y;
    must(s, tn_graph_trace(s, times_user, w, &scalar, 1, 1, &captures, &a));
    must(s, tn_graph_trace(s, times_user, kept, &scalar, 1, 1, &captures, &b));
    cr_assert(captures.count == 2 && a->num_inputs == 2 && b->num_inputs == 3);
    cr_assert_eq(captures.arrays[0], w);
    must(s, tn_graph_call(s, b, (tn_array *[]){x, w, captures.arrays[1]}, 3, &y, 1));
    cr_assert_eq(tn_item(s, y), 30);
    // what a body makes is an input, too: a graph has no data
    must(s, tn_graph_trace(s, makes_data, NULL, &scalar, 1, 1, &captures, &b));
    cr_assert_eq(captures.count, 3);
    must(s, tn_graph_call(s, b, (tn_array *[]){x, w, x, captures.arrays[2]}, 4, &y, 1));
    cr_assert_eq(tn_item(s, y), 15);
    // numbers are part of the graph
    must(s, tn_graph_trace(s, times_user, tn_float(s, 7), &scalar, 1, 1, NULL, &b));
    cr_assert_eq(b->num_inputs, 1);
    tn_release(kept);
}

// A body that has as many outputs as its user says.
BODY(gives_several)
{
    UNUSED;
    const int *count = user;
    tn_array *outputs[4] = {in[0], NULL, in[0], in[0]};
    if (*count > 1)
        outputs[1] = tn_expr(scope, "x -> x + 1", TN_IN(in[0]), TN_NO_ATTRS);
    tn_status status =
        tn_graph_outputs(scope, outputs, (uint64_t)(*count < 0 ? 2 : *count));
    return *count == 4 ? tn_graph_outputs(scope, outputs, 1) : status;
}

Test(traced, a_body_says_how_many_outputs_it_has)
{
    const tn_graph *graph = NULL;
    tn_array *y[3], *x = tn_f32(s, 4);
    for (int count = 0; count <= 3; count++) {
        must(s, tn_graph_trace(s, gives_several, &count, &scalar, 1, TN_OUTPUTS_ANY, NULL,
                               &graph));
        cr_assert_eq(graph->num_outputs, (uint32_t)count);
    }
    must(s, tn_graph_call(s, graph, &x, 1, y, 3));
    cr_assert(tn_item(s, y[0]) == 4 && tn_item(s, y[1]) == 5 && tn_item(s, y[2]) == 4);
    static const struct {
        tn_function_body body;
        int count;
        const char *text;
    } wrong[] = {{gives_several, -1, "output 1 is NULL"},
                 {gives_several, 4, "expected one call"},
                 {gives_nothing, 0, "the body gave no outputs"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int count = wrong[i].count;
        cr_assert_eq(tn_graph_trace(s, wrong[i].body, &count, &scalar, 1, TN_OUTPUTS_ANY,
                                    NULL, &graph),
                     TN_ERR_ARGUMENT);
        says(wrong[i].text);
    }
    cr_assert_eq(tn_graph_outputs(s, &x, 1), TN_ERR_ARGUMENT);
    says("expected one call, in the scope of a body");
}

Test(traced, what_does_not_fit_is_refused_by_number)
{
    const tn_graph *graph = plus(1, &scalar), *none = NULL;
    tn_array *y, *x = tn_from_data(s, TN_F32, TN_SHAPE(2), (float[]){1, 2});
    cr_assert_eq(tn_graph_call(s, graph, &x, 1, &y, 1), TN_ERR_ARGUMENT);
    says("input 0 is f32[2], the graph takes f32");
    cr_assert_eq(tn_graph_call(s, graph, NULL, 0, &y, 1), TN_ERR_ARGUMENT);
    says("got 0 inputs, the graph has 1");
    cr_assert_eq(tn_graph_call(s, graph, &x, 1, (tn_array *[2]){0}, 2), TN_ERR_ARGUMENT);
    says("asked for 2 outputs, the graph has 1");
    cr_assert_eq(tn_graph_trace(s, times_user, x, &scalar, 1, 1, NULL, &none),
                 TN_ERR_ARGUMENT);
    says("the body uses an array, f32[2], of the scope around it");
    cr_assert_eq(tn_graph_trace(s, evaluates, NULL, &scalar, 1, 1, NULL, &none),
                 TN_ERR_ARGUMENT);
    says("it cannot evaluate");
    cr_assert_eq(tn_graph_trace(s, gives_nothing, NULL, &scalar, 1, 1, NULL, &none),
                 TN_ERR_ARGUMENT);
    says("the body left output 0 NULL");
    const tn_type odd = {.dtype = TN_F32, .rank = 1, .extent = {-4}};
    cr_assert_neq(tn_graph_trace(s, gives_nothing, NULL, &odd, 1, 1, NULL, &none), TN_OK);
    says("input 0");
    tn_runtime *other = open_on("cpu-blas");
    tn_scope *there = tn_scope_open(other);
    cr_assert_eq(tn_graph_call(there, graph, &x, 1, &y, 1), TN_ERR_ARGUMENT);
    cr_assert_not_null(strstr(tn_scope_error(there), "belongs to another runtime"));
    tn_scope_close(there);
    tn_runtime_close(other);
}

static tn_array *repeated(const tn_array *x, const tn_graph *body, int64_t times,
                          int64_t fault)
{
    return tn_op(s, "test.repeat", &x, 1,
                 tn_attrs("label", "again", "body", body, "times", times, "fault", fault));
}

Test(traced, a_primitive_runs_a_graph_of_its_attributes)
{
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(2), (float[]){1, 2});
    for (int i = 0; i < 3; i++) {
        tn_array *y =
            repeated(tn_expr(s, "x -> x * 2", TN_IN(x), TN_NO_ATTRS), plus(1, &pair), 5, 0);
        float got[2];
        tn_array *z = tn_expr(s, "y -> y * 10", TN_IN(y), TN_NO_ATTRS);
        uint64_t made = stats_of(runtime).plans_made;
        must(s, tn_read(s, z, got, sizeof(got)));
        cr_assert(got[0] == 70 && got[1] == 90, "got %g %g", got[0], got[1]);
        cr_assert(i == 0 || stats_of(runtime).plans_made == made);
    }
    cr_assert_eq((int)num_runs, 3);
    // another graph is another plan, an equal one is not
    uint64_t made = stats_of(runtime).plans_made;
    cr_assert_eq(tn_item(s, un(s, "base.sum", repeated(x, plus(2, &pair), 1, 0))), 7);
    cr_assert_gt(stats_of(runtime).plans_made, made);
}

Test(traced, attributes_print_their_graphs)
{
    const repeat_attrs attrs = {"again", plus(1, &pair), 5, 0};
    char *text = tn_attrs_print(&repeat.attrs, &attrs, 0);
    cr_assert_not_null(strstr(text, "label=\"again\", body=(f32[2] -> f32[2]: 1 node, #"),
                       "got %s", text);
    tn_text_free(text);
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(2), (float[]){1, 2});
    cr_assert_null(tn_op(s, "test.repeat", TN_IN(x), tn_attrs("body", "x + 1")));
    says("attribute 'body': got 'x + 1', expected a graph");
    cr_assert_null(tn_op(s, "test.repeat", TN_IN(x), tn_attrs("body", 5)));
    says("attribute 'body': got 5, expected a graph");
    cr_assert_null(tn_op(s, "test.repeat", TN_IN(x),
                         tn_attrs("times", plus(1, &pair), "body", plus(1, &pair))));
    says("attribute 'times': got a graph, expected an integer");
}

Test(traced, mistakes_of_run_are_named)
{
    static const char *const texts[] = {
        "run of the application leaves output 0 NULL",
        "rule run of the application",
        "got 0 inputs, the graph has 1",
    };
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(2), (float[]){1, 2});
    for (int64_t i = 0; i < 3; i++) {
        cr_assert_neq(tn_eval(s, repeated(x, plus(1, &pair), 1, i + 1)), TN_OK);
        says(texts[i]);
    }
    cr_assert_neq(tn_eval(s, repeated(x, plus(1, &scalar), 1, 0)), TN_OK);
    says("input 0 is f32[2], the graph takes f32");
}

// --- functions that call functions ------------------------------------------------------

static tn_function *functions[2];

BODY(square)
{
    UNUSED;
    out[0] = tn_expr(scope, "x -> x * x", TN_IN(in[0]), TN_NO_ATTRS);
    return TN_OK;
}
BODY(calls)
{
    UNUSED;
    tn_array *y = NULL;
    tn_status status = tn_function_call(user ? user : functions[0], scope, in, 1, &y, 1);
    out[0] = tn_expr(scope, "y -> y + 1", TN_IN(y), TN_NO_ATTRS);
    return status;
}

Test(traced, a_function_calls_functions)
{
    must(NULL, tn_function_create(runtime, square, NULL, NULL, &functions[0]));
    must(NULL, tn_function_create(runtime, calls, functions[0], NULL, &functions[1]));
    tn_array *x = tn_f32(s, 3), *y, *g;
    for (int i = 0; i < 3; i++) {
        uint64_t steps = stats_of(runtime).steps;
        must(s, tn_function_call(functions[1], s, &x, 1, &y, 1));
        cr_assert_eq(tn_item(s, y), 10);
        cr_assert_eq(stats_of(runtime).steps - steps, 1); // fused with what it calls
    }
    const tn_graph *graph = NULL;
    must(s, tn_graph_trace(s, calls, functions[1], &scalar, 1, 1, NULL, &graph));
    must(s, tn_graph_call(s, graph, &x, 1, &y, 1));
    must(s, tn_vjp(s, &y, NULL, 1, &x, 1, &g));
    cr_assert(tn_item(s, y) == 11 && tn_item(s, g) == 6);
    tn_function_destroy(functions[1]);
    tn_function_destroy(functions[0]);
}

// Calls `functions[0]` in a body of its own: *user tells of what.
enum way { LOOP, BRANCH, SCAN, CHECKPOINT, CUSTOM, BATCH, WAYS };

BODY(calls_first)
{
    UNUSED;
    tn_array *x = in[0];
    return tn_function_call(functions[0], scope, &x, 1, out, 1);
}
BODY(calls_in_body)
{
    static const tn_custom_rules no_rules = {.struct_size = sizeof(no_rules)};
    const tn_scan_call_options twice = {.carries = 1, .length = 2};
    tn_array *x = in[0], *yes = tn_bool(scope, 1);
    (void)num_in, (void)num_out;
    switch (*(const enum way *)user) {
    case LOOP:
        return tn_while_call(scope, NULL, calls_first, NULL, 3, TN_ARRAYS(x), out);
    case BRANCH:
        return tn_cond_call(scope, yes, calls_first, calls_first, NULL, TN_ARRAYS(x), out,
                            1);
    case SCAN:
        return tn_scan_call(scope, calls_first, NULL, &twice, TN_ARRAYS(x), out, 1);
    case CHECKPOINT:
        return tn_checkpoint_call(scope, calls_first, NULL, TN_ARRAYS(x), out, 1);
    case CUSTOM:
        return tn_custom_call(scope, calls_first, NULL, &no_rules, TN_ARRAYS(x), out, 1);
    default:
        return tn_vmap_call(scope, calls_first, NULL, &x, NULL, 1, out, NULL, 1);
    }
}

Test(traced, a_function_that_calls_itself_in_a_body_is_refused)
{
    for (enum way way = LOOP; way < WAYS; way++) {
        must(NULL, tn_function_create(runtime, calls_in_body, &way, NULL, &functions[0]));
        tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(2), ((float[]){1, 2})), *y;
        cr_assert_eq(tn_function_call(functions[0], s, &x, 1, &y, 1), TN_ERR_ARGUMENT);
        says("the function calls itself, through 1 function");
        tn_scope_clear_error(s);
        tn_function_destroy(functions[0]);
    }
}

Test(traced, a_function_that_calls_itself_is_refused)
{
    must(NULL, tn_function_create(runtime, calls, NULL, NULL, &functions[0]));
    must(NULL, tn_function_create(runtime, calls, functions[0], NULL, &functions[1]));
    tn_array *x = tn_f32(s, 3), *y;
    cr_assert_eq(tn_function_call(functions[0], s, &x, 1, &y, 1), TN_ERR_ARGUMENT);
    says("the function calls itself, through 1 function: its graph would have no end");
    cr_assert_eq(tn_function_call(functions[1], s, &x, 1, &y, 1), TN_ERR_ARGUMENT);
    says("the function calls itself");
    tn_function_destroy(functions[1]);
    tn_function_destroy(functions[0]);
}

// --- rules of the application -----------------------------------------------------------

static tn_status sign(tn_scope *scope, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    UNUSED;
    out[0] = tn_expr(scope, "x -> sign(x)", TN_IN(in[0]), TN_NO_ATTRS);
    return TN_OK;
}

// The gradient goes straight through, times the number at `user`.
static tn_status through(tn_scope *scope, const tn_rule *rule, tn_array *const *cotangents,
                         const uint64_t *wanted, tn_array **gradients, void *user)
{
    cr_assert(rule->num_inputs == 1 && rule->num_outputs == 1 && (wanted[0] & 1));
    cr_assert_not_null(rule->outputs[0]);
    gradients[0] =
        tn_expr(scope, "g, k -> g * k",
                TN_IN(cotangents[0], tn_float(scope, *(double *)user)), TN_NO_ATTRS);
    return TN_OK;
}
static tn_status along(tn_scope *scope, const tn_rule *rule, tn_array *const *tangents,
                       tn_array **out_tangents, void *user)
{
    (void)rule;
    out_tangents[0] =
        tn_expr(scope, "t, k -> t * k",
                TN_IN(tangents[0], tn_float(scope, *(double *)user)), TN_NO_ATTRS);
    return TN_OK;
}
static tn_status in_batch(tn_scope *scope, const tn_rule *rule, const int32_t *axes,
                          int64_t size, tn_array **outputs, int32_t *out_axes, void *user)
{
    (void)size, (void)user;
    outputs[0] = tn_expr(scope, "x -> 7 * sign(x)", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    out_axes[0] = axes[0];
    return TN_OK;
}
static tn_status refuses(tn_scope *scope, const tn_rule *rule, tn_array *const *cotangents,
                         const uint64_t *wanted, tn_array **gradients, void *user)
{
    (void)rule, (void)cotangents, (void)wanted, (void)gradients, (void)user;
    return tn_scope_fail(scope, TN_ERR_UNSUPPORTED, "no gradient today");
}

static double factor = 3;
static const tn_custom_rules rules[] = {
    {.user = &factor, .vjp = through},
    {.user = &factor, .vjp = through, .jvp = along, .vmap = in_batch},
    {.vjp = refuses},
    {0},
};
BODY(sign_of_slice)
{
    UNUSED;
    return tn_custom_call(scope, sign, NULL, user, in, 1, out, 1);
}

Test(traced, a_function_has_rules_of_the_application)
{
    tn_array *x = tn_from_data(s, TN_F32, TN_SCALAR, (float[]){-2}), *y, *g, *t;
    tn_array *wide = tn_from_data(s, TN_F32, TN_SHAPE(2), (float[]){-2, 5}), *z;
    static const double expected[][4] = {// y, gradient, tangent, sum of the batch
                                         {-1, 3, 0, 0},
                                         {-1, 3, 3, 0},
                                         {-1, 0, 0, 0},
                                         {-1, 0, 0, 0}};
    for (int i = 0; i < 4; i++) {
        must(s, tn_custom_call(s, sign, NULL, &rules[i], TN_ARRAYS(x), &y, 1));
        cr_assert_eq(tn_item(s, y), expected[i][0]);
        tn_status status = tn_vjp(s, &y, NULL, 1, &x, 1, &g);
        if (i == 2) {
            cr_assert_eq(status, TN_ERR_UNSUPPORTED);
            says("no gradient today");
            continue;
        }
        cr_assert_eq(tn_item(s, g), expected[i][1], "rules %d", i);
        must(s, tn_jvp(s, &y, 1, &x, (tn_array *[]){tn_f32(s, 1)}, 1, &t));
        cr_assert_eq(tn_item(s, t), expected[i][2], "rules %d", i);
        must(s, tn_vmap_call(s, sign_of_slice, (void *)&rules[i], &wide, NULL, 1, &z, NULL,
                             1));
        float got[2];
        must(s, tn_read(s, z, got, sizeof(got)));
        float scale = i == 1 ? 7 : 1;
        cr_assert(got[0] == -scale && got[1] == scale, "rules %d: %g %g", i, got[0],
                  got[1]);
    }
}

Test(traced, what_is_no_set_of_rules_is_refused)
{
    tn_array *x = tn_f32(s, 2), *y, *w = tn_from_data(s, TN_F32, TN_SCALAR, (float[]){2});
    const tn_custom_rules later = {.struct_size = 4};
    cr_assert_eq(tn_custom_call(s, sign, NULL, NULL, &x, 1, &y, 1), TN_ERR_ARGUMENT);
    says("the rules are NULL");
    cr_assert_eq(tn_custom_call(s, sign, NULL, &later, &x, 1, &y, 1), TN_ERR_REFUSED);
    says("struct_size is 4");
    cr_assert_eq(tn_custom_call(s, times_user, w, &rules[0], &x, 1, &y, 1),
                 TN_ERR_ARGUMENT);
    says("the body uses 1 arrays of the scope that are not its inputs");
    const tn_graph *graph = plus(1, &scalar);
    cr_assert_null(tn_op(s, "tn.custom_vjp/1", TN_IN(x), tn_attrs("body", graph)));
    says("rules is 0");
    for (const char *const *name = tn_primitive_names(runtime); *name; name++)
        cr_assert_null(strstr(*name, "tn.custom"), "%s is listed", *name);
}

static void count_destroyed(void *user)
{
    ++*(int *)user;
}

Test(traced, rules_are_destroyed_once_a_call)
{
    static int destroyed; // until the scope of the test is closed
    const tn_custom_rules counted = {
        .user = &destroyed, .vjp = through, .destroy = count_destroyed};
    tn_scope *own = tn_scope_open(runtime);
    tn_array *x = tn_f32(own, 2), *y = tn_f32(s, 3), *z;
    must(own, tn_custom_call(own, sign, NULL, &counted, &x, 1, &z, 1));
    must(s, tn_custom_call(s, sign, NULL, &counted, &y, 1, &z, 1));
    cr_assert_eq(destroyed, 1, "the second graph is the first one");
    tn_scope_close(own);
    cr_assert_neq(tn_custom_call(s, times_user, y, &counted, NULL, 1, &z, 1), TN_OK);
    cr_assert_eq(destroyed, 2, "a call fails, and another scope has the graph");
}

// --- threads ----------------------------------------------------------------------------

static void *use_one_graph(void *failures)
{
    for (int i = 0; i < 40; i++) {
        tn_scope *own = tn_scope_open(runtime);
        const tn_graph *graph = NULL;
        double number = i % 2;
        tn_array *x = tn_from_data(own, TN_F32, TN_SHAPE(2), (float[]){1, 2}), *y;
        (void)tn_graph_trace(own, plus_number, &number, &pair, 1, 1, NULL, &graph);
        tn_graph_release(tn_graph_retain(graph));
        y = tn_op(own, "test.repeat", TN_IN(x), tn_attrs("body", graph, "times", 3));
        float got[2] = {0};
        if (tn_read(own, y, got, sizeof(got)) != TN_OK || got[1] != 2 + 3 * (float)number)
            atomic_fetch_add((atomic_int *)failures, 1);
        tn_scope_close(own);
    }
    return NULL;
}

Test(traced, threads_share_graphs_that_come_and_go)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    atomic_int failures = 0;
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, use_one_graph, &failures), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq((int)failures, 0, "%d evaluations failed", (int)failures);
}

// --- the service ------------------------------------------------------------------------

Test(traced, a_plugin_builds_graph_in_a_scope)
{
    tn_host host;
    struct tn_host_self self = {.runtime = runtime};
    host = host_table;
    host.self = &self;
    const tn_host_graph *service = host.query(&host, TN_HOST_GRAPH);
    tn_build build = {.struct_size = sizeof(build)};
    cr_assert_eq(service->build(&host, NULL, &build), TN_ERR_ARGUMENT);
    must(NULL, service->build(&host, s, &build));
    tn_array *x = build.scalar(&build, TN_F32, 4);
    tn_array *y = build.expr(&build, "x -> x * x", TN_IN(x), TN_NO_ATTRS), *g;
    must(s, build.vjp(&build, &y, NULL, 1, &x, 1, &g));
    cr_assert(tn_item(s, y) == 16 && tn_item(s, g) == 8);
    tn_runtime *other = open_on("cpu-blas");
    self.runtime = other;
    cr_assert_eq(service->build(&host, s, &build), TN_ERR_ARGUMENT);
    tn_runtime_close(other);
}
