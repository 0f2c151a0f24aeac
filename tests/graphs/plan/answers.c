// SPDX-License-Identifier: MIT
// What plugins answer is checked before it is used: planted rules and kernels give layouts
// outside of their input, types that are none, arrays of other scopes, sizes that fit no
// memory, and failures without a reason. Each is refused with a message that names the
// plugin, and nothing is read or written out of bounds (the address sanitizer watches).
#include "graph/rules.h"
#include "plugin/load/primitives.h"
#include "check/oracle.h"
#include "../support/common.h"

#include <tenon/kernel.h>

#define VENDOR "com.acme.kernels"
#define END INT64_MAX

// --- the planted rules ------------------------------------------------------------------

struct attrs {
    int64_t number; // of the case
};
static const tn_attr_field fields[] = {
    {.name = "number", .kind = TN_ATTR_I64, .offset = offsetof(struct attrs, number)}};
#define TABLE                                                                              \
    {                                                                                      \
        sizeof(struct attrs), 1, sizeof(fields[0]), fields                                 \
    }

// Of an f32[2, 3] in order, behind 2 other elements and before none: what `view` gives.
static const struct view_case {
    const char *what, *says;
    tn_layout layout;
} views[] = {
    {"the input itself", NULL, {TN_F32, 2, 2, {2, 3}, {3, 1}}},
    {"from the last element on", NULL, {TN_F32, 2, 7, {2, 3}, {-3, -1}}},
    {"one element, repeated", NULL, {TN_F32, 2, 7, {2, 3}, {0, 0}}},
    {"rank 12", "dtype or rank", {TN_F32, 12, 2, {2, 3}, {3, 1}}},
    {"rank -1", "dtype or rank", {TN_F32, -1, 2, {2, 3}, {3, 1}}},
    {"a dtype that is none", "dtype or rank", {99, 2, 2, {2, 3}, {3, 1}}},
    {"a larger dtype", "dtype or rank", {TN_F64, 2, 2, {2, 3}, {3, 1}}},
    {"another extent", "an extent", {TN_F32, 2, 2, {2, 2}, {3, 1}}},
    {"a negative extent", "an extent", {TN_F32, 2, 2, {-2, 3}, {3, 1}}},
    {"an offset past the end", "leaves the memory", {TN_F32, 2, 3, {2, 3}, {3, 1}}},
    {"an offset before it", "leaves the memory", {TN_F32, 2, 1, {2, 3}, {3, 1}}},
    {"a negative offset", "leaves the memory", {TN_F32, 2, -1, {2, 3}, {3, 1}}},
    {"a stride too large", "leaves the memory", {TN_F32, 2, 2, {2, 3}, {4, 1}}},
    {"a stride backwards", "leaves the memory", {TN_F32, 2, 2, {2, 3}, {3, -1}}},
    {"a stride that wraps", "leaves the memory", {TN_F32, 2, 2, {2, 3}, {END, END}}},
    {"a stride that wraps twice",
     "leaves the memory",
     {TN_F32, 2, 2, {2, 3}, {3, 1 - END}}},
    {"the lowest stride", "leaves the memory", {TN_F32, 2, 2, {2, 3}, {INT64_MIN, 1}}},
    {"the highest offset", "leaves the memory", {TN_F32, 2, END, {2, 3}, {0, 0}}},
    {"a flag", "flags are set", {TN_F32, 2, 2, {2, 3}, {3, 1}, 4, 0}},
};
#define NUM_VIEWS ((int64_t)(sizeof(views) / sizeof(views[0])))

static tn_status same_type(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

static tn_status wrong_view(const tn_view *view, tn_layout *out)
{
    *out = views[((const struct attrs *)view->attrs)->number].layout;
    out->offset += view->input->offset - 2;
    return TN_OK;
}

static const struct type_case {
    const char *says;
    tn_type type;
} types_given[] = {
    {NULL, {TN_F32, 1, {3}}},
    {"dtype 0: expected 1 .. 17", {TN_DTYPE_NONE, 1, {3}}},
    {"dtype 99", {99, 1, {3}}},
    {"rank 12", {TN_F32, 12, {3}}},
    {"rank -1", {TN_F32, -1, {3}}},
    {"extent -3 of axis 0 is negative", {TN_F32, 1, {-3}}},
    {"does not fit 63 bits", {TN_F32, 2, {INT64_C(1) << 31, INT64_C(1) << 30}}},
    {"does not fit 63 bits", {TN_F32, 3, {INT64_C(1) << 40, 0, INT64_C(1) << 40}}},
    {"flags 0x4 of a type: expected 0", {TN_F32, 1, {3}, 4, 0}},
};
#define NUM_TYPES ((int64_t)(sizeof(types_given) / sizeof(types_given[0])))

static tn_status wrong_type(const tn_infer *infer, tn_type *types)
{
    types[0] = types_given[((const struct attrs *)infer->attrs)->number].type;
    return TN_OK;
}

static tn_array *foreign; // of a scope that is not the rule's
static tn_status answer = TN_ERR_ARGUMENT;

static tn_status silent_infer(const tn_infer *infer, tn_type *types)
{
    (void)infer, (void)types;
    return answer;
}

static tn_status silent_view(const tn_view *view, tn_layout *out)
{
    (void)view, (void)out;
    return answer;
}

static tn_status silent_reference(const tn_cpu_call *call)
{
    (void)call;
    return answer;
}

static tn_status silent_decompose(const tn_build *build, const tn_rule *rule,
                                  tn_array **outputs)
{
    (void)build, (void)rule, (void)outputs;
    return answer;
}

static tn_status silent_vjp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *cotangents, const uint64_t *wanted,
                            tn_array **gradients)
{
    (void)build, (void)rule, (void)cotangents, (void)wanted, (void)gradients;
    return answer;
}

static tn_status silent_jvp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *tangents, tn_array **out_tangents)
{
    (void)build, (void)rule, (void)tangents, (void)out_tangents;
    return answer;
}

static tn_status silent_vmap(const tn_build *build, const tn_rule *rule,
                             const int32_t *axes, int64_t size, tn_array **outputs,
                             int32_t *out_axes)
{
    (void)build, (void)rule, (void)axes, (void)size, (void)outputs, (void)out_axes;
    return answer;
}

static tn_status nothing_built(const tn_build *build, const tn_rule *rule,
                               tn_array **outputs)
{
    (void)build, (void)rule, (void)outputs;
    return TN_OK;
}

static tn_status other_type_built(const tn_build *build, const tn_rule *rule,
                                  tn_array **outputs)
{
    (void)rule;
    outputs[0] = build->scalar(build, TN_F32, 1);
    return TN_OK;
}

static tn_status foreign_decompose(const tn_build *build, const tn_rule *rule,
                                   tn_array **outputs)
{
    (void)build, (void)rule;
    outputs[0] = foreign;
    return TN_OK;
}

static tn_status foreign_vjp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *cotangents, const uint64_t *wanted,
                             tn_array **gradients)
{
    (void)build, (void)rule, (void)cotangents, (void)wanted;
    gradients[0] = foreign;
    return TN_OK;
}

static tn_status foreign_jvp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *tangents, tn_array **out_tangents)
{
    (void)build, (void)rule, (void)tangents;
    out_tangents[0] = foreign;
    return TN_OK;
}

static tn_status foreign_vmap(const tn_build *build, const tn_rule *rule,
                              const int32_t *axes, int64_t size, tn_array **outputs,
                              int32_t *out_axes)
{
    (void)build, (void)rule, (void)axes, (void)size, (void)out_axes;
    outputs[0] = foreign;
    return TN_OK;
}

// All have a meaning that works, unless it is what is tried.
static tn_status fill_ones(const tn_cpu_call *call)
{
    float *out = call->outputs[0].data;
    for (int64_t i = 0; i < 6; i++)
        out[i] = 1;
    return TN_OK;
}

static const tn_input_info inputs[] = {{.name = "x", .doc = "x"}};
static const tn_input_info floats[] = {
    {.name = "x", .doc = "x", .dtypes = TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64)}};
static const tn_input_info halves[] = {
    {.name = "x", .doc = "x", .dtypes = TN_DTYPE_BIT(TN_F16)}};
static const tn_primitive limited[] = {
    {.struct_size = sizeof(tn_primitive),
     .id = "acme.floats/1",
     .doc = "x",
     TN_INPUTS(floats),
     .expr = "x + x"},
    {.struct_size = sizeof(tn_primitive),
     .id = "acme.halves/1",
     .doc = "x",
     TN_INPUTS(halves),
     .expr = "x + x"},
};
#define OPERATOR(name, ...)                                                                \
    {                                                                                      \
        .struct_size = sizeof(tn_primitive), .id = "acme." name "/1", .doc = "x",          \
        TN_INPUTS(inputs), .attrs = TABLE, __VA_ARGS__                                     \
    }
static const tn_primitive operators[] = {
    OPERATOR("view", .flags = TN_PRIM_VIEW, .infer = same_type, .view = wrong_view),
    OPERATOR("typed", .infer = wrong_type, .reference = fill_ones),
    OPERATOR("right", .infer = same_type, .reference = fill_ones),
    OPERATOR("silent_infer", .infer = silent_infer, .reference = fill_ones),
    OPERATOR("silent_view", .flags = TN_PRIM_VIEW, .infer = same_type, .view = silent_view),
    OPERATOR("silent_reference", .infer = same_type, .reference = silent_reference),
    OPERATOR("silent_decompose", .infer = same_type, .decompose = silent_decompose),
    OPERATOR("silent_vjp", .infer = same_type, .reference = fill_ones, .vjp = silent_vjp),
    OPERATOR("silent_jvp", .infer = same_type, .reference = fill_ones, .jvp = silent_jvp),
    OPERATOR("silent_vmap", .infer = same_type, .reference = fill_ones,
             .vmap = silent_vmap),
    OPERATOR("nothing", .infer = same_type, .decompose = nothing_built),
    OPERATOR("other_type", .infer = same_type, .decompose = other_type_built),
    OPERATOR("foreign", .infer = same_type, .decompose = foreign_decompose,
             .vjp = foreign_vjp, .jvp = foreign_jvp, .vmap = foreign_vmap),
};

static tn_runtime *open_planted(void)
{
    tn_runtime *rt = open_with((const char *const[]){"TENON_BACKEND=cpu-blas", NULL});
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
        must(NULL, prim_register(rt, NULL, &operators[i]));
    return rt;
}

static tn_array *apply(tn_scope *s, const char *name, const tn_array *x, int64_t number)
{
    return tn_op(s, name, TN_IN(x), tn_attrs("number", number));
}

// --- layouts ----------------------------------------------------------------------------

static void open_state(void)
{
    runtime = open_planted();
}

TestSuite(answers, .init = open_state, .fini = teardown);

Test(answers, views_stay_in_the_memory_of_their_input)
{
    tn_runtime *rt = runtime;
    const struct prim *prim;
    const tn_layout input = {TN_F32, 2, 2, {2, 3}, {3, 1}};
    const tn_type type = {TN_F32, 2, {2, 3}};
    must(NULL, prim_find(rt, "acme.view", &prim));
    for (int64_t i = 0; i < NUM_VIEWS; i++) {
        const struct attrs attrs = {i};
        tn_layout got = {.rank = 77};
        tn_status status = rule_view(prim, &input, &type, &attrs, &got);
        fprintf(stderr, "# %s\n", views[i].what);
        if (!views[i].says) {
            must(NULL, status);
            cr_assert(eq(mem, bytes_of(&got, sizeof(got)),
                         bytes_of(&views[i].layout, sizeof(got))));
            continue;
        }
        check_status(status, TN_ERR_INTERNAL);
        check_says(tn_last_error(), "rule view of the application gives");
        check_says(tn_last_error(), views[i].says);
        cr_assert(eq(int, got.rank, 77)); // untouched
    }
}

Test(answers, graphs_refuse_views_outside_of_memory)
{
    const tn_array *x;
    for (int64_t i = 0; i < NUM_VIEWS; i++) {
        tn_scope *s = tn_scope_open(runtime);
        float read[6], tail[6];
        x = ramp(s, 4, 2, 0, 1);
        // The last 6 of 8 elements: behind 2 others.
        x = tn_op(s, "base.slice", TN_IN(x),
                  tn_attrs("start", TN_INTS(1), "stop", TN_INTS(4)));
        x = tn_op(s, "base.reshape", TN_IN(x), tn_attrs("shape", TN_INTS(2, 3)));
        tn_status status = tn_read(s, apply(s, "acme.view", x, i), read, sizeof(read));
        if (views[i].says) {
            check_status(status, TN_ERR_INTERNAL);
            check_says(tn_scope_error(s), "acme.view/1: ");
            check_says(tn_scope_error(s), views[i].says);
            tn_scope_clear_error(s); // the scope works on
        } else {
            must(s, status);
        }
        must(s, tn_read(s, apply(s, "acme.view", x, 0), tail, sizeof(tail)));
        cr_assert(tail[0] == 2 && tail[5] == 7);
        tn_scope_close(s);
    }
}

// The oracle runs a view by itself: of memory on the host.
Test(answers, definitions_refuse_views_outside_of_memory)
{
    tn_runtime *rt = runtime;
    const struct prim *prim;
    must(NULL, prim_find(rt, "acme.view", &prim));
    for (int64_t i = 0; i < NUM_VIEWS; i++) {
        const struct attrs attrs = {i};
        float *from = malloc(8 * sizeof(*from)), *to = malloc(6 * sizeof(*to));
        memset(from, 0, 8 * sizeof(*from));
        memset(to, 0, 6 * sizeof(*to));
        const tn_tensor in = {from, {TN_F32, 2, 2, {2, 3}, {3, 1}}};
        const tn_tensor out = {to, {TN_F32, 2, 0, {2, 3}, {3, 1}}};
        const tn_step step = {.struct_size = sizeof(step),
                              .primitive = &prim->record,
                              .attrs = &attrs,
                              .num_inputs = 1,
                              .num_outputs = 1};
        tn_status status = oracle_step(rt, &step, &in, &out);
        cr_assert(eq(int, status, views[i].says ? TN_ERR_INTERNAL : TN_OK));
        if (views[i].says)
            check_says(tn_last_error(), views[i].says);
        free(from);
        free(to);
    }
}

// --- types and arrays -------------------------------------------------------------------

Test(answers, inferred_types_exist)
{
    for (int64_t i = 0; i < NUM_TYPES; i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *y = apply(s, "acme.typed", ramp(s, 1, 3, 0, 1), i);
        cr_assert(eq(int, y != NULL, types_given[i].says == NULL));
        if (types_given[i].says) {
            check_says(tn_scope_error(s), "acme.typed/1: ");
            check_says(tn_scope_error(s), types_given[i].says);
        }
        tn_scope_close(s);
    }
}

static tn_status map_it(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                        uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = un(s, user, in[0]);
    return tn_scope_status(s);
}

enum what { EVAL, VJP, JVP, VMAP };

// Makes the rule run.
static tn_status provoke(tn_scope *s, const char *name, enum what what)
{
    tn_array *x = ramp(s, 2, 3, 0, 1), *out = NULL;
    if (what == VMAP)
        return tn_vmap_call(s, map_it, (void *)(uintptr_t)name, &x, NULL, 1, &out, NULL, 1);
    tn_array *y = un(s, name, x);
    if (what == VJP)
        return tn_vjp(s, &y, &x, 1, &x, 1, &out);
    return what == JVP ? tn_jvp(s, &y, 1, &x, &x, 1, &out) : tn_eval(s, y);
}

Test(answers, arrays_of_rules_belong_to_the_graph)
{
    static const struct {
        const char *name;
        enum what what;
        const char *says;
    } rows[] = {
        {"acme.nothing", EVAL,
         "acme.nothing/1: decompose of the application leaves output "
         "0 NULL"},
        {"acme.nothing", VJP, "decompose of the application leaves output 0 NULL"},
        {"acme.other_type", EVAL,
         "decompose of the application gives f32[] for output 0, "
         "infer f32[2, 3]"},
        {"acme.other_type", VMAP, "decompose of the application gives f32[] for output 0"},
        {"acme.foreign", EVAL, "an array of another scope for output 0"},
        {"acme.foreign", VJP, "an array of another scope for the gradient of input 0"},
        {"acme.foreign", JVP, "an array of another scope for the tangent of output 0"},
        {"acme.foreign", VMAP, "an array of another scope for output 0"},
    };
    tn_scope *other = tn_scope_open(runtime);
    foreign = ramp(other, 2, 3, 0, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        check_status(provoke(s, rows[i].name, rows[i].what), TN_ERR_INTERNAL);
        check_says(tn_scope_error(s), rows[i].says);
        tn_scope_close(s);
    }
    tn_scope_close(other);
}

// --- failures without a reason ----------------------------------------------------------

Test(answers, a_failure_without_a_reason_gets_one)
{
    static const struct {
        const char *name, *who;
        enum what what;
    } rows[] = {
        {"acme.silent_infer", "rule infer of the application", EVAL},
        {"acme.silent_view", "rule view of the application", EVAL},
        {"acme.silent_decompose", "rule decompose of the application", EVAL},
        {"acme.silent_vjp", "rule vjp of the application", VJP},
        {"acme.silent_jvp", "rule jvp of the application", JVP},
        {"acme.silent_vmap", "rule vmap of the application", VMAP},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char said[256];
        tn_scope *s = tn_scope_open(runtime);
        answer = TN_ERR_ARGUMENT;
        check_status(provoke(s, rows[i].name, rows[i].what), TN_ERR_ARGUMENT);
        snprintf(said, sizeof(said), "%s failed (argument) and gave no reason",
                 rows[i].who);
        check_says(tn_scope_error(s), said);
        tn_scope_clear_error(s);
        answer = 17; // no status
        check_status(provoke(s, rows[i].name, rows[i].what), TN_ERR_INTERNAL);
        snprintf(said, sizeof(said), "%s returned 17, which is no status", rows[i].who);
        check_says(tn_scope_error(s), said);
        tn_scope_close(s);
    }
}

// --- sizes ------------------------------------------------------------------------------

static uint64_t asked; // of the kernel

static uint64_t ask(const tn_kernel_query *query)
{
    (void)query;
    return asked;
}

static const tn_cpu_kernel payloads[] = {{sizeof(tn_cpu_kernel), 0, fill_ones},
                                         {sizeof(tn_cpu_kernel), 0, silent_reference}};

static tn_runtime *open_with_kernel(int which)
{
    tn_runtime *rt = open_planted();
    const tn_kernel kernel = {.struct_size = sizeof(kernel),
                              .primitive = "acme.right/1",
                              .family = TN_FAMILY_CPU,
                              .name = "fast",
                              .priority = 500,
                              .scratch_size = ask,
                              .payload = &payloads[which]};
    must(NULL, kernel_register(rt, &(struct provider){.id = VENDOR}, &kernel));
    return rt;
}

Test(answers, scratch_that_fits_no_memory_is_refused)
{
    static const struct {
        uint64_t size;
        tn_status status;
        const char *says;
    } rows[] = {
        {UINT64_MAX, TN_ERR_INTERNAL,
         "kernel fast of " VENDOR ", for acme.right/1: "
         "scratch_size gives 18446744073709551615 bytes"},
        {UINT64_MAX - 63, TN_ERR_INTERNAL, "scratch_size gives"},
        {(uint64_t)INT64_MAX + 1, TN_ERR_INTERNAL, "scratch_size gives"},
        {INT64_MAX, TN_ERR_MEMORY, "a buffer of 9223372036854775808 bytes"},
        {64, TN_OK, ""},
        {0, TN_OK, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_runtime *rt = open_with_kernel(0);
        tn_scope *s = tn_scope_open(rt);
        asked = rows[i].size;
        cr_assert(eq(int, provoke(s, "acme.right", EVAL), rows[i].status));
        check_says(tn_scope_error(s), rows[i].says);
        tn_scope_clear_error(s);
        must(s, tn_eval(s, un(s, "base.exp", ramp(s, 2, 2, 0, 1)))); // works on
        tn_scope_close(s);
        tn_runtime_close(rt);
    }
    asked = 0;
}

Test(answers, a_silent_kernel_is_named)
{
    static const struct {
        const char *name, *says;
        tn_status answer, status;
    } rows[] = {
        {"acme.right",
         "acme.right/1, kernel fast of " VENDOR ", failed (status -8) and gave no reason",
         TN_ERR_INTERNAL, TN_ERR_INTERNAL},
        {"acme.silent_reference",
         "acme.silent_reference/1, reference, failed (status -1) and gave no reason",
         TN_ERR_ARGUMENT, TN_ERR_ARGUMENT},
        {"acme.silent_reference", " of org.tenon.cpu-blas returned 17, which is no status",
         17, TN_ERR_INTERNAL},
    };
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        bool async = i % 2;
        tn_runtime *rt = open_with_kernel(1);
        tn_scope *s = tn_scope_open(rt);
        answer = rows[i / 2].answer;
        tn_array *y = un(s, rows[i / 2].name, ramp(s, 2, 3, 0, 1));
        if (async)
            must(s, tn_eval_async(s, y));
        float read[6];
        cr_assert(eq(int, tn_read(s, y, read, sizeof(read)), rows[i / 2].status));
        check_says(tn_scope_error(s), rows[i / 2].says);
        tn_scope_close(s);
        tn_runtime_close(rt);
    }
}

// Values, each of a valid size, whose sum or whose size rounded up wraps at 64 bits.
Test(answers, plans_that_fit_no_memory_are_refused)
{
    static const struct {
        const char *name;
        int64_t extent;
        int values;
    } rows[] = {
        {"base.add", INT64_C(576460752303423504), 2}, // its arena wrapped to 256 bytes
        {"base.add", INT64_MAX / 8, 3},
        {"base.add", INT64_MAX / 8, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = tn_from_data(s, TN_F64, TN_SHAPE(1), &(double){1});
        tn_array *sum = tn_f64(s, 0);
        for (int k = 0; k < rows[i].values; k++) {
            tn_array *at = tn_from_data(s, TN_I64, TN_SHAPE(1), &(int64_t){0});
            at = tn_op(s, "base.broadcast_to", TN_IN(at),
                       tn_attrs("shape", TN_INTS(rows[i].extent)));
            sum = bin(s, "add", sum,
                      un(s, "sum",
                         un(s, "exp", tn_op(s, "base.take", TN_IN(x, at), TN_NO_ATTRS))));
        }
        check_status(tn_eval(s, sum), TN_ERR_MEMORY);
        check_says(tn_scope_error(s), "cpu-blas:0: ");
        tn_scope_clear_error(s);
        must(s, tn_eval(s, un(s, "base.exp", x)));
        tn_scope_close(s);
    }
}

// Half floats are packed as f32, panel by panel: working memory does not grow with operands
// whose elements are one. What is more than any machine has is the product.
Test(answers, working_memory_of_kernels_does_not_wrap)
{
    const int64_t m = INT32_MAX, k = INT64_C(1) << 30;
    tn_scope *s = tn_scope_open(runtime);
    tn_array *one = tn_from_data(s, TN_F16, TN_SHAPE(1), &(uint16_t){0x3c00});
    tn_array *a =
        tn_op(s, "base.broadcast_to", TN_IN(one), tn_attrs("shape", TN_INTS(m, k)));
    tn_array *b =
        tn_op(s, "base.broadcast_to", TN_IN(one), tn_attrs("shape", TN_INTS(k, m)));
    check_status(tn_eval(s, un(s, "sum", bin(s, "matmul", a, b))), TN_ERR_MEMORY);
    check_says(tn_scope_error(s), "a buffer of 92233720282");
    tn_scope_close(s);
}

// --- dtypes ----------------------------------------------------------------------------

Test(answers, inputs_take_the_dtypes_that_they_name)
{
    tn_scope *s = tn_scope_open(runtime);
    for (int i = 0; i < 2; i++)
        must(NULL, prim_register(runtime, NULL, &limited[i]));
    must(s, tn_eval(s, un(s, "acme.floats", tn_f64(s, 2))));
    tn_array *integer = tn_from_data(s, TN_I32, TN_SHAPE(1), &(int32_t){1});
    un(s, "acme.floats", integer);
    check_status(tn_scope_status(s), TN_ERR_ARGUMENT);
    check_says(tn_scope_error(s), "acme.floats/1");
    check_says(tn_scope_error(s), "input x is i32, expected one of f32, f64");
    tn_scope_clear_error(s);
    un(s, "acme.halves", tn_f64(s, 2));
    check_says(tn_scope_error(s), "input x is f64, expected f16");
    tn_scope_close(s);
}
