// SPDX-License-Identifier: MIT
// Composites: what they build takes their place, and what they give is checked.
#include "plugin/load/primitives.h"
#include "../support/common.h"

static tn_array *foreign;
static tn_status answer;

static tn_status doubled(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
    outputs[0] = build->expr(build, "x -> x + x", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    return TN_OK;
}

static tn_status passed(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
    (void)build;
    outputs[0] = rule->inputs[0];
    return TN_OK;
}

static tn_status unknown_built(const tn_build *build, const tn_rule *rule,
                               tn_array **outputs)
{
    outputs[0] = build->op(build, "acme.missing/1", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    return TN_OK;
}

static tn_status nothing_built(const tn_build *build, const tn_rule *rule,
                               tn_array **outputs)
{
    (void)build, (void)rule, (void)outputs;
    return answer;
}

static tn_status foreign_built(const tn_build *build, const tn_rule *rule,
                               tn_array **outputs)
{
    (void)build, (void)rule;
    outputs[0] = foreign;
    return TN_OK;
}

static const tn_input_info inputs[] = {{.name = "x", .doc = "x"}};
#define COMPOSITE(name, function)                                                          \
    {                                                                                      \
        .struct_size = sizeof(tn_primitive), .id = "acme." name "/1", .doc = "x",          \
        TN_INPUTS(inputs), .decompose = function                                           \
    }
static const tn_primitive operators[] = {
    COMPOSITE("doubled", doubled),       COMPOSITE("passed", passed),
    COMPOSITE("unknown", unknown_built), COMPOSITE("nothing", nothing_built),
    COMPOSITE("foreign", foreign_built),
};

static void open_state(void)
{
    runtime = open_with((const char *const[]){"TENON_BACKEND=cpu-blas", NULL});
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
        must(NULL, prim_register(runtime, NULL, &operators[i]));
}

TestSuite(composites, .init = open_state, .fini = teardown);

static tn_array *apply(tn_scope *s, const char *name, const tn_array *x)
{
    return tn_op(s, name, TN_IN(x), TN_NO_ATTRS);
}

// It has a type and a derivative without a rule, and an input may be what it gives.
Test(composites, are_what_they_build)
{
    tn_scope *s = tn_scope_open(runtime);
    float got[6];
    tn_array *x = ramp(s, 2, 3, 0, 1), *g;
    tn_array *y = apply(s, "acme.doubled", apply(s, "acme.passed", x));
    tn_array *sum = tn_op(s, "base.sum", TN_IN(y), TN_NO_ATTRS);
    must(s, tn_vjp(s, &sum, NULL, 1, &x, 1, &g));
    must(s, tn_read(s, y, got, sizeof(got)));
    cr_assert(got[0] == 0 && got[5] == 10);
    must(s, tn_read(s, g, got, sizeof(got)));
    cr_assert(got[0] == 2 && got[5] == 2);
    cr_assert(apply(s, "acme.passed", x) == x);
    tn_scope_close(s);
}

// A failure within one names it first.
Test(composites, wrong_answers_are_refused)
{
    static const struct {
        const char *name, *says;
        tn_status answer, status;
    } rows[] = {
        {"acme.unknown", "acme.unknown/1: ", 0, TN_ERR_NOT_FOUND},
        {"acme.nothing", "decompose of the application gives NULL for output 0", TN_OK,
         TN_ERR_INTERNAL},
        {"acme.nothing", "acme.nothing/1: rule decompose of the application",
         TN_ERR_ARGUMENT, TN_ERR_ARGUMENT},
        {"acme.foreign", "an array of another scope for output 0", 0, TN_ERR_INTERNAL},
    };
    tn_scope *other = tn_scope_open(runtime);
    foreign = ramp(other, 2, 3, 0, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        answer = rows[i].answer;
        cr_assert(apply(s, rows[i].name, ramp(s, 2, 3, 0, 1)) == NULL);
        check_status(tn_scope_status(s), rows[i].status);
        check_says(tn_scope_error(s), rows[i].says);
        tn_scope_close(s);
    }
    tn_scope_close(other);
}

// What a composite would never use tells of a forgotten `infer`.
Test(composites, have_no_other_rules)
{
    tn_primitive r = operators[0];
    r.id = "acme.more/1";
    r.role = TN_ROLE_SUM;
    check_status(prim_register(runtime, NULL, &r), TN_ERR_REFUSED);
    check_says(tn_last_error(), "infer is NULL, and role is given");
    r.role = NULL;
    r.flags = TN_PRIM_OWN_TYPE;
    check_status(prim_register(runtime, NULL, &r), TN_ERR_REFUSED);
    check_says(tn_last_error(), "infer is NULL, and flags is given");
}
