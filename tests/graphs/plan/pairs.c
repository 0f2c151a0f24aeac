// SPDX-License-Identifier: MIT
// Pair rules: a planted primitive that takes in the one that makes its input. When both
// become one step, when they stay two, and what a wrong rule gets told.
#include "plugin/load/primitives.h"
#include "../support/common.h"

#include <tenon/kernel.h>
#include <tenon/ops/reference.h>

// What the rule does, by attribute `mode`.
enum {
    RIGHT,
    DECLINES,
    ANOTHER_TYPE,
    TWO_NODES,
    VIEWS,
    FAILS,
    NO_KERNEL,
    SILENT,
    FOREIGN,
    GIVES_INPUT
};

static tn_array *foreign;

struct attrs {
    int64_t mode;
};
static const tn_attr_field fields[] = {
    {.name = "mode", .kind = TN_ATTR_I64, .offset = offsetof(struct attrs, mode)}};
#define TABLE                                                                              \
    {                                                                                      \
        sizeof(struct attrs), 1, sizeof(fields[0]), fields                                 \
    }

static tn_status same_type(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

// x * factor + summand
static tn_status compute(const tn_cpu_call *call, float factor, float summand)
{
    const float *x = (const float *)call->inputs[0].data + call->inputs[0].layout.offset;
    float *out = (float *)call->outputs[0].data + call->outputs[0].layout.offset;
    for (int64_t i = 0; i < tn_layout_count(&call->outputs[0].layout); i++)
        out[i] = x[i] * factor + summand;
    return TN_OK;
}

static tn_status halve(const tn_cpu_call *call)
{
    return compute(call, 0.5f, 0);
}

static tn_status increment(const tn_cpu_call *call)
{
    return compute(call, 1, 1);
}

// As both would, and 100 more, so that a test sees which step computed the result.
static tn_status both(const tn_cpu_call *call)
{
    return compute(call, 0.5f, 101);
}

static tn_status rewrite(const tn_build *build, const tn_rule *rule, const tn_rule *made,
                         tn_array **output)
{
    tn_array *x = made->inputs[0];
    int64_t mode = ((const struct attrs *)rule->attrs)->mode;
    cr_assert(rule->inputs[0] == NULL && made->num_inputs == 1);
    cr_assert(eq(i64, ((const struct attrs *)made->attrs)->mode, 7));
    switch (mode) {
    case DECLINES:
        return TN_OK;
    case ANOTHER_TYPE:
        *output =
            build->op(build, "base.astype/1", TN_IN(x), tn_attrs("dtype", (int64_t)TN_F64));
        return TN_OK;
    case TWO_NODES:
        x = build->op(build, "base.exp/1", TN_IN(x), TN_NO_ATTRS);
        break;
    case VIEWS:
        *output =
            build->op(build, "base.reshape/1", TN_IN(x), tn_attrs("shape", TN_INTS(2, 3)));
        return TN_OK;
    case FAILS:
        *output = build->op(build, "acme.missing/1", TN_IN(x), TN_NO_ATTRS);
        return TN_ERR_NOT_FOUND;
    case SILENT:
        return TN_ERR_ARGUMENT;
    case FOREIGN:
        *output = foreign;
        return TN_OK;
    case GIVES_INPUT:
        *output = x;
        return TN_OK;
    }
    *output = build->op(build, mode == NO_KERNEL ? "acme.plain/1" : "acme.both/1", TN_IN(x),
                        TN_NO_ATTRS);
    return *output ? TN_OK : TN_ERR_ARGUMENT;
}

static const tn_input_info inputs[] = {{.name = "x", .doc = "x"}};
static const tn_pair_rule pair_rules[] = {
    {.primitive = "acme.nobody/1", .rewrite = rewrite},
    {.primitive = "acme.halve/1", .rewrite = rewrite},
};
#define PRIMITIVE(name, ...)                                                               \
    {                                                                                      \
        .struct_size = sizeof(tn_primitive), .id = "acme." name "/1", .doc = "x",          \
        TN_INPUTS(inputs), .infer = same_type, __VA_ARGS__                                 \
    }
static const tn_primitive primitives[] = {
    PRIMITIVE("halve", .attrs = TABLE, .reference = halve),
    PRIMITIVE("increment", .attrs = TABLE, .reference = increment,
              TN_PAIR_RULES(pair_rules)),
    PRIMITIVE("both", .reference = both),
    PRIMITIVE("plain", .reference = both),
};

static void open_planted(void)
{
    static const tn_cpu_kernel payload = {sizeof(payload), 0, both};
    static const tn_kernel kernel = {.struct_size = sizeof(kernel),
                                     .primitive = "acme.both/1",
                                     .family = TN_FAMILY_CPU,
                                     .name = "fast",
                                     .priority = 500,
                                     .payload = &payload};
    runtime = open_on("cpu-blas");
    for (size_t i = 0; i < sizeof(primitives) / sizeof(primitives[0]); i++)
        must(NULL, prim_register(runtime, NULL, &primitives[i]));
    must(NULL,
         kernel_register(runtime, &(struct provider){.id = "com.acme.kernels"}, &kernel));
}

TestSuite(pairs, .init = open_planted, .fini = teardown);

static tn_array *halved(tn_scope *s, const tn_array *x)
{
    return tn_op(s, "acme.halve", TN_IN(x), tn_attrs("mode", (int64_t)7));
}

static tn_array *incremented(tn_scope *s, const tn_array *x, int64_t mode)
{
    return tn_op(s, "acme.increment", TN_IN(x), tn_attrs("mode", mode));
}

// The elements of 0, 1, ... 5, halved and incremented, and `more`.
static void check_values(tn_scope *s, tn_array *y, float more)
{
    float got[6];
    must(s, tn_read(s, y, got, sizeof(got)));
    for (int i = 0; i < 6; i++)
        cr_assert(eq(flt, got[i], (float)i * 0.5f + 1 + more));
}

Test(pairs, pairs_are_one_step)
{
    for (int again = 0; again < 2; again++) { // with a new plan, and that plan
        tn_scope *s = tn_scope_open(runtime);
        uint64_t before = stats_of(runtime).steps;
        tn_array *x = ramp(s, 2, 3, 0, 1);
        check_values(s, incremented(s, halved(s, x), RIGHT), 100);
        cr_assert(eq(u64, stats_of(runtime).steps - before, 1));
        // Equal ones are one, and so is a chain's last pair.
        tn_array *a = incremented(s, halved(s, x), RIGHT);
        tn_array *b = incremented(s, halved(s, x), RIGHT);
        float got[6];
        before = stats_of(runtime).steps;
        must(s,
             tn_read(s, bin(s, "subtract", incremented(s, a, RIGHT), b), got, sizeof(got)));
        cr_assert(eq(flt, got[5], 1));
        cr_assert(eq(u64, stats_of(runtime).steps - before, 3));
        tn_scope_close(s);
    }
}

// Of each both steps stay, and give what they do alone.
Test(pairs, what_else_is_read_stays)
{
    static const int64_t modes[] = {DECLINES, NO_KERNEL};
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 3, 0, 1);
    for (size_t i = 0; i < 2; i++)
        check_values(s, incremented(s, halved(s, x), modes[i]), 0);
    tn_array *read_twice = halved(s, x);
    check_values(s,
                 bin(s, "subtract",
                     bin(s, "add", incremented(s, read_twice, RIGHT), read_twice),
                     read_twice),
                 0);
    tn_array *wanted = halved(s, x), *y = incremented(s, wanted, RIGHT);
    tn_array *outputs[] = {wanted, y};
    must(s, tn_eval_n(s, outputs, 2));
    check_values(s, y, 0);
    tn_array *given = halved(s, x); // evaluated before
    must(s, tn_eval(s, given));
    check_values(s, incremented(s, given, RIGHT), 0);
    tn_scope_close(s);
}

// A plugin's own kernel for the primitive is not passed over, unless it is for both.
Test(pairs, kernels_of_others_are_kept)
{
    static const tn_cpu_kernel payload = {sizeof(payload), 0, increment};
    static const char *const plugins[] = {"com.acme.others", "com.acme.kernels"};
    tn_kernel kernel = {.struct_size = sizeof(kernel),
                        .primitive = "acme.increment/1",
                        .family = TN_FAMILY_CPU,
                        .name = "own",
                        .payload = &payload};
    for (int i = 0; i < 2; i++) {
        kernel.priority = 600 + 100 * i;
        must(NULL, kernel_register(runtime, &(struct provider){.id = plugins[i]}, &kernel));
        tn_scope *s = tn_scope_open(runtime);
        // Other extents, so that there is a new plan.
        tn_array *x = ramp(s, 2 + i, 3, 0, 1);
        float got[9];
        must(s, tn_read(s, incremented(s, halved(s, x), RIGHT), got,
                        (size_t)(6 + 3 * i) * sizeof(*got)));
        cr_assert(eq(flt, got[5], i ? 103.5f : 3.5f));
        tn_scope_close(s);
    }
}

Test(pairs, wrong_rules_are_named)
{
    static const struct {
        int64_t mode;
        tn_status status;
        const char *says;
    } rows[] = {
        {ANOTHER_TYPE, TN_ERR_INTERNAL,
         "acme.increment/1: rewrite of the application gives f64[2, 3] for output 0, infer "
         "f32[2, 3]"},
        {TWO_NODES, TN_ERR_INTERNAL,
         "acme.increment/1: rewrite gives 2 nodes, expected one application of a "
         "primitive"},
        {VIEWS, TN_ERR_INTERNAL, "rewrite gives 1 node, expected one application"},
        {GIVES_INPUT, TN_ERR_INTERNAL, "rewrite gives 0 nodes, expected one application"},
        {FAILS, TN_ERR_NOT_FOUND, "acme.missing"},
        {SILENT, TN_ERR_ARGUMENT,
         "rule rewrite of the application failed (argument) and gave no reason"},
        {FOREIGN, TN_ERR_INTERNAL, "an array of another scope for output 0"},
    };
    tn_scope *other = tn_scope_open(runtime);
    foreign = ramp(other, 2, 3, 0, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *y = incremented(s, halved(s, ramp(s, 2, 3, 0, 1)), rows[i].mode);
        check_status(tn_eval(s, y), rows[i].status);
        check_says(tn_scope_error(s), rows[i].says);
        tn_scope_clear_error(s); // the scope works on
        check_values(s, incremented(s, halved(s, ramp(s, 2, 3, 0, 1)), DECLINES), 0);
        tn_scope_close(s);
    }
    tn_scope_close(other);
}

Test(pairs, wrong_records_are_refused)
{
    static const tn_pair_rule second = {.primitive = "a.b/1",
                                        .input = 1,
                                        .rewrite = rewrite},
                              none = {.primitive = "a.b/1"},
                              newer = {.primitive = "a.b/1",
                                       .rewrite = rewrite,
                                       .reserved = 1},
                              unnamed = {.primitive = "a.b", .rewrite = rewrite};
    static const struct {
        const tn_pair_rule *table;
        uint32_t count;
        const char *says;
    } rows[] = {
        {&second, 1, "pair_rules[0]: input 1, expected below 1"},
        {&none, 1, "pair_rules[0]: input 0, expected below 1, and rewrite"},
        {&newer, 1, "reserved is not 0"},
        {&unnamed, 1, "pair_rules[].primitive is 'a.b', expected pack.name/revision"},
        {NULL, 1, "pair_rules: got 1 in no table"},
        {&second, 17, "pair_rules: got 17, expected at most 16"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_primitive wrong = PRIMITIVE("wrong", .reference = both);
        wrong.pair_rules = rows[i].table;
        wrong.num_pair_rules = rows[i].count;
        wrong.pair_rule_size = sizeof(tn_pair_rule);
        check_status(prim_register(runtime, NULL, &wrong), TN_ERR_REFUSED);
        check_says(tn_last_error(), rows[i].says);
    }
}
