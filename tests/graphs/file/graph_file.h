// SPDX-License-Identifier: MIT
// What the tests of graph files share: a folder, a runtime with an operator that has an
// attribute of each kind, and one of which only a revision is there.
#ifndef TESTS_GRAPHS_GRAPH_FILE_H
#define TESTS_GRAPHS_GRAPH_FILE_H

#include <string.h>
#include <tenon/graph_format.h>
#include <unistd.h>
#include "primitive/prim_set.h"
#include <tenon/ops/reference.h>
#include <tenon/pack.h>
#include "../support/common.h"
#include "graph_step.h"

#define TEMPLATE "/tmp/tenon-graphs-XXXXXX"
static char folder[sizeof(TEMPLATE)];
static tn_scope *s;

static const char *backend(void)
{
    const char *name = getenv("TENON_TEST_BACKEND");
    return name ? name : "cpu-blas";
}

// --- an operator with an attribute of each kind -----------------------------------------

typedef struct kinds_attrs {
    int64_t flag, whole, dtype, choice;
    double real, rate;
    int64_t position;
    tn_ints ints;
    uint64_t bits;
    const char *text;
    const tn_int_list *whole_list;
    const tn_float_list *real_list;
    const tn_graph *body;
} kinds_attrs;

static const char *const choices[] = {"first", "second", NULL};
static const tn_attr_field kinds_fields[] = {
    TN_BOOL_FIELD(kinds_attrs, flag, 0, "a bool"),
    TN_I64_FIELD(kinds_attrs, whole, 3, "an integer"),
    TN_DTYPE_FIELD(kinds_attrs, dtype, 0, "a dtype"),
    TN_CHOICE_FIELD(kinds_attrs, choice, 0, choices, "a choice"),
    TN_F64_FIELD(kinds_attrs, real, 0.5, "a number"),
    TN_RUNTIME_F64_FIELD(kinds_attrs, rate, 0.25, "a number that changes"),
    TN_RUNTIME_I64_FIELD(kinds_attrs, position, 7, "an integer that changes"),
    TN_INTS_FIELD(kinds_attrs, ints, "axes"),
    TN_BITS_FIELD(kinds_attrs, bits, 0, "raw"),
    TN_STRING_FIELD(kinds_attrs, text, "a text"),
    TN_INT_LIST_FIELD(kinds_attrs, whole_list, "integers"),
    TN_FLOAT_LIST_FIELD(kinds_attrs, real_list, "numbers"),
    TN_GRAPH_FIELD(kinds_attrs, body, "applied to x"),
};

static tn_status kinds_infer(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

// Everything that an attribute says changes the result.
static double sum_of_attrs(const kinds_attrs *a)
{
    double sum = (double)(a->flag + 2 * a->whole + 4 * a->dtype + 8 * a->choice) + a->real +
                 (double)a->bits + (a->text ? (double)strlen(a->text) : 0);
    for (uint32_t i = 0; i < a->ints.count; i++)
        sum += 16 * (double)a->ints.value[i];
    for (uint64_t i = 0; a->whole_list && i < a->whole_list->count; i++)
        sum += 32 * (double)a->whole_list->value[i];
    for (uint64_t i = 0; a->real_list && i < a->real_list->count; i++)
        sum += a->real_list->value[i];
    return sum;
}

static tn_status kinds_decompose(const tn_build *build, const tn_rule *rule,
                                 tn_array **outputs)
{
    const kinds_attrs *a = rule->attrs;
    tn_array *x = rule->inputs[0];
    if (a->body && build->call(build, a->body, &x, 1, &x, 1) != TN_OK)
        return TN_ERR_ARGUMENT;
    outputs[0] = build->expr(build, "x, r, p -> x * s + r * p",
                             TN_IN(x, rule->inputs[1], rule->inputs[2]),
                             tn_attrs("s", sum_of_attrs(a)));
    outputs[0] = build->op(build, "base.astype/1", TN_IN(outputs[0]),
                           tn_attrs("dtype", (int64_t)TN_F32));
    return TN_OK;
}

TN_OP(kinds, "test.kinds/1", (x), .attrs = TN_ATTR_TABLE(kinds_attrs, kinds_fields),
      .infer = kinds_infer, .decompose = kinds_decompose);

// Revisions of one operator.
TN_OP(moved_1, "test.moved/1", (x), .expr = "x + 1");
TN_OP(moved_2, "test.moved/2", (x), .expr = "x + 2");
TN_OP(moved_3, "test.moved/3", (x), .expr = "x + 3");

static tn_runtime *open_with_operators(const tn_primitive *moved)
{
    tn_runtime *rt = open_on(backend());
    must(NULL, prim_register(rt, NULL, &kinds));
    if (moved)
        must(NULL, prim_register(rt, NULL, moved));
    return rt;
}

static void begin(void)
{
    need_device(backend());
    memcpy(folder, TEMPLATE, sizeof(TEMPLATE)); // tests may share a process
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    cr_assert(eq(int, chdir(folder), 0));
    runtime = open_with_operators(&moved_2);
    s = tn_scope_open(runtime);
}

static void end(void)
{
    char command[128];
    tn_scope_close(s);
    cr_assert_eq(tn_runtime_close(runtime), TN_OK, "%s", tn_last_error());
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    cr_assert(eq(int, system(command), 0));
}

// --- bodies ------------------------------------------------------------------------------

#define BODY(name)                                                                         \
    static inline tn_status name(tn_scope *scope, tn_array *const *in, uint64_t num_in,    \
                                 tn_array **out, uint64_t num_out, void *user)
#define UNUSED (void)scope, (void)in, (void)num_in, (void)out, (void)num_out, (void)user

static inline tn_array *bin_in(tn_scope *scope, const char *op, tn_array *a, tn_array *b)
{
    return tn_op(scope, op, TN_IN(a, b), TN_NO_ATTRS);
}

BODY(plus_one)
{
    UNUSED;
    out[0] = bin_in(scope, "base.add", in[0], tn_int(scope, 1));
    return TN_OK;
}

#endif // TESTS_GRAPHS_GRAPH_FILE_H
