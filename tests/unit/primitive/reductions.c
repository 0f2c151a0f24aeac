// SPDX-License-Identifier: MIT
// What the registry knows of reductions: the axis of expressions, and roles.
#include "check.h"
#include "base/fail.h"
#include "expr/expr.h"
#include "plugin/load/primitives.h"
#include "primitive/registry.h"

static tn_runtime runtime;

static void open_sets(void)
{
    runtime = (tn_runtime){0};
    check_status(expr_set_create(&runtime), TN_OK);
    check_status(prim_set_create(&runtime), TN_OK);
}

static void close_sets(void)
{
    prim_set_destroy(&runtime);
    expr_set_destroy(&runtime);
}

static const tn_input_info xy[] = {{.name = "x"}, {.name = "y"}};

static tn_primitive record(const char *id)
{
    return (tn_primitive){
        .struct_size = sizeof(tn_primitive), .id = id, TN_INPUTS(xy), .expr = "x + y"};
}

static void refused(const tn_primitive *r, const char *part)
{
    check_status(prim_register(&runtime, NULL, r), TN_ERR_REFUSED);
    check_says(fail_text(), part);
}

TestSuite(reductions, .init = open_sets, .fini = close_sets);

// An attribute `axis` of integers is added where an expression reduces and has none.
Test(reductions, expressions_that_reduce_have_an_axis)
{
    static const struct {
        const char *expr;
        tn_attr_field field; // with a name: the only one of the record
        uint32_t size, num_fields;
    } cases[] = {
        {"x / sum(y)", {0}, 8, 1},
        {"x * k / sum(y)", {.name = "k", .kind = TN_ATTR_F64}, 16, 2},
        {"x / sum(y)", {.name = "axis", .kind = TN_ATTR_I64, .default_i = 1}, 8, 1},
        {"x / y", {0}, 0, 0},
        {"max(x, y)", {0}, 0, 0},
    };
    static char ids[sizeof(cases) / sizeof(*cases)][16]; // live as long as their records
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *id = ids[i];
        snprintf(id, sizeof(ids[i]), "a.b%zu/1", i);
        tn_primitive r = record(id);
        r.expr = cases[i].expr;
        if (cases[i].field.name)
            r.attrs = (tn_attr_table){8, 1, sizeof(tn_attr_field), &cases[i].field};
        check_status(prim_register(&runtime, NULL, &r), TN_OK);
        const struct prim *prim = NULL;
        check_status(prim_find(&runtime, id, &prim), TN_OK);
        const tn_attr_table *table = &prim->record.attrs;
        cr_assert(eq(u32, table->size, cases[i].size));
        cr_assert(eq(u32, table->num_fields, cases[i].num_fields));
        if (!prim->expr->reduces)
            continue;
        const tn_attr_field *axis = &table->fields[table->num_fields - 1];
        cr_assert(eq(str, (char *)axis->name, "axis"));
        cr_assert(eq(u32, axis->kind, TN_ATTR_I64));
        cr_assert(eq(u64, axis->offset, cases[i].size - 8));
        cr_assert(eq(long, axis->default_i, cases[i].field.default_i ? 1 : -1));
    }
}

Test(reductions, reductions_without_room_for_an_axis_are_refused)
{
    const tn_attr_field real = {.name = "axis", .kind = TN_ATTR_F64};
    static const tn_input_info axis[] = {{.name = "x"}, {.name = "axis"}};
    tn_primitive r = record("a.b/1");
    r.expr = "x / sum(y)";
    r.attrs = (tn_attr_table){8, 1, sizeof(real), &real};
    refused(&r, "attribute 'axis' is a number, expected an integer");
    r.attrs = (tn_attr_table){0};
    r.inputs = axis;
    r.expr = "x / sum(axis)";
    refused(&r, "input 'axis' has the name of the attribute");
    r = record("a.b/1");
    r.expr = "x + sum(2)";
    refused(&r, "'sum' of a constant");
}

Test(reductions, reductions_by_role_have_the_attributes_that_the_core_sets)
{
    struct attrs {
        tn_ints axis;
        int64_t keepdims;
    };
    const tn_attr_field fields[] = {TN_INTS_FIELD(struct attrs, axis, ""),
                                    TN_BOOL_FIELD(struct attrs, keepdims, 0, "")};
    static const char *const roles[] = {TN_ROLE_SUM, TN_ROLE_PROD, TN_ROLE_MEAN,
                                        TN_ROLE_MIN, TN_ROLE_MAX};
    for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
        tn_primitive r = record("a.b/1");
        r.role = roles[i];
        refused(&r, "needs an attribute `axis` of integers");
        r.attrs = (tn_attr_table){sizeof(struct attrs), 1, sizeof(*fields), fields};
        refused(&r, "needs an attribute `keepdims`, a bool");
        r.attrs.num_fields = 2;
        refused(&r, "needs one input and one output, got 2 and 1");
    }
}

// --- the dtype of the result ------------------------------------------------------------

struct attrs {
    int64_t a, b;
};

Test(reductions, the_dtype_of_a_result_is_one_attribute_of_its_kind)
{
    static const tn_attr_field fields[] = {
        {.name = "a", .kind = TN_ATTR_I64, .flags = TN_ATTR_RESULT},
        {.name = "a", .kind = TN_ATTR_DTYPE, .flags = TN_ATTR_RESULT | TN_ATTR_REQUIRED},
        {.name = "a", .kind = TN_ATTR_DTYPE, .flags = TN_ATTR_RESULT, .default_i = TN_F32},
    };
    static const tn_attr_field two[] = {TN_RESULT_DTYPE_FIELD(struct attrs, a, ""),
                                        TN_RESULT_DTYPE_FIELD(struct attrs, b, "")};
    tn_primitive r = record("a.b/1");
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        r.attrs =
            (tn_attr_table){sizeof(struct attrs), 1, sizeof(tn_attr_field), &fields[i]};
        refused(&r, "'a': expected a dtype without a default");
    }
    r.attrs = (tn_attr_table){sizeof(struct attrs), 2, sizeof(tn_attr_field), two};
    refused(&r, "the dtype of a result: one");
    r.attrs.num_fields = 1;
    r.num_inputs = 0;
    r.expr = "1";
    refused(&r, "and an input");
}
