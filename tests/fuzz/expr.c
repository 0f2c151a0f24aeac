// SPDX-License-Identifier: MIT
// The one-line language: parse, print and parse again, types, derivatives, programs run on
// a few values.
//
// The first byte chooses dtypes, and whether the text has an arrow and attributes of any
// name, or inputs x and y and a table of attributes.
#include "fuzz.h"
#include "expr/tree.h"

#include <math.h>

static tn_runtime runtime;

struct attrs {
    int64_t count, flag, which;
    double alpha;
    tn_ints axes;
    uint64_t bits;
};
static const char *const words[] = {"one", "two", NULL};
static const tn_attr_field fields[] = {
    TN_I64_FIELD(struct attrs, count, 3, ""),
    TN_BOOL_FIELD(struct attrs, flag, 1, ""),
    TN_F64_FIELD(struct attrs, alpha, 0.5, ""),
    TN_INTS_FIELD(struct attrs, axes, ""),
    TN_BITS_FIELD(struct attrs, bits, 0xff, ""),
    TN_CHOICE_FIELD(struct attrs, which, 1, words, ""),
};
static const tn_attr_table table = TN_ATTR_TABLE(struct attrs, fields);
static const struct attrs values_of_attrs = {-3, 1, 1, 0.5, {0}, UINT64_MAX};

struct subject {
    const struct expr *expr;
    const tn_attr_table *attrs;
    uint8_t seed;
};

// The text of an expression means that expression.
static void print_and_parse(const struct subject *s, const struct expr *expr, bool must)
{
    const struct expr *again = NULL;
    if (expr_parse(&runtime, expr->text, expr->input_names, expr->num_inputs, s->attrs,
                   &again) == TN_OK)
        FUZZ_CHECK(hash_equal(again->hash, expr->hash) ||
                       (again->num_outputs == expr->num_outputs &&
                        strcmp(again->text, expr->text) == 0),
                   "'%s' reads as '%s'", expr->text, again->text);
    else
        FUZZ_CHECK(!must, "'%s' does not read: %s", expr->text, fail_text());
}

static uint64_t value_of(tn_dtype dtype, uint32_t which)
{
    static const double values[] = {0,         -0.0,  1,      -1,      0.5,
                                    -2.5,      1e300, -1e300, 3,       INFINITY,
                                    -INFINITY, NAN,   0x1p63, -0x1p63, 200};
    static const uint64_t bits[] = {0,  1, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN,
                                    63, 64};
    if (dtype_is_float(dtype))
        return scalar_cast(
            TN_F64, dtype,
            double_to_bits(values[which % (sizeof(values) / sizeof(*values))]));
    return scalar_cast(tn_is_signed(dtype) ? TN_I64 : TN_U64, dtype,
                       bits[which % (sizeof(bits) / sizeof(*bits))]);
}

// Positions lie before their users, and results are values of their dtype.
static void check_program(const tn_expr_program *program)
{
    FUZZ_CHECK(program->num_insns <= TN_EXPR_MAX_INSNS &&
                   program->num_inputs <= TN_EXPR_MAX_INPUTS &&
                   program->num_outputs <= TN_EXPR_MAX_OUTPUTS,
               "the limits of programs");
    for (uint32_t i = 0; i < program->num_insns; i++) {
        const tn_expr_insn *insn = &program->insns[i];
        uint32_t num_args = op_table[insn->op].num_args;
        FUZZ_CHECK((num_args < 1 || insn->a < i) && (num_args < 2 || insn->b < i) &&
                       (num_args < 3 || insn->c < i),
                   "operands of %u come before it", i);
    }
}

static void run(const struct subject *s, const struct expr *expr)
{
    struct expr_input inputs[64] = {{0}};
    const tn_expr_program *program = NULL;
    tn_dtype dtypes[TN_EXPR_MAX_OUTPUTS];
    for (uint32_t i = 0; i < expr->num_inputs; i++)
        inputs[i].dtype = 1 + (s->seed / 2u + i * 5u) % (TN_NUM_DTYPES - 1);
    tn_status inferred = expr_infer(expr, inputs, dtypes);
    tn_status compiled = expr_compile(expr, inputs, NULL, &program);
    FUZZ_CHECK(inferred == TN_OK || compiled != TN_OK, "'%s' compiles without types",
               expr->text);
    if (compiled != TN_OK)
        return;
    check_program(program);
    uint64_t params[2 * TREE_MAX_NODES] = {0}, in[TN_EXPR_MAX_INPUTS],
                        out[TN_EXPR_MAX_OUTPUTS];
    FUZZ_CHECK(program->num_params <= 2 * TREE_MAX_NODES, "%u params", program->num_params);
    for (uint32_t i = 0; i < program->num_params; i++)
        params[i] = double_to_bits(i % 2 ? -0.5 : 2);
    if (s->attrs)
        FUZZ_CHECK(expr_params(program, expr, s->attrs, &values_of_attrs, params) == TN_OK,
                   "%s", fail_text());
    for (uint32_t k = 0; k < 15; k++) {
        for (uint32_t i = 0; i < program->num_inputs; i++)
            in[i] = value_of(program->input_dtypes[i], k + i * s->seed);
        program_run_scalar(program, in, params, (int64_t)k * 977, out);
        for (uint32_t i = 0; i < program->num_outputs; i++)
            FUZZ_CHECK(dtypes[i] == program->output_dtypes[i], "dtype of output %u", i);
    }
}

static void try_derived(const struct subject *s, tn_status status,
                        const struct expr *derived)
{
    if (status != TN_OK || !derived)
        return;
    print_and_parse(s, derived, false);
    run(s, derived);
}

static void derive(const struct subject *s)
{
    const struct expr *expr = s->expr, *derived = NULL;
    tn_status status;
    for (uint32_t i = 0; i < expr->num_inputs && i < 2; i++) {
        status = expr_derive(expr, expr->num_outputs - 1, i, &derived);
        try_derived(s, status, derived);
        status = expr_vjp(expr, i, UINT64_MAX, s->seed & 3u, &derived);
        try_derived(s, status, derived);
    }
    status = expr_jvp(expr, 0, UINT64_MAX, s->seed & 3u, &derived);
    try_derived(s, status, derived);
}

static void rewrite(const struct subject *s)
{
    const struct expr *made = NULL;
    uint32_t kept[64];
    if (expr_prune(s->expr, &made, kept) == TN_OK)
        print_and_parse(s, made, true);
    if (s->attrs && expr_bind(s->expr, s->attrs, &made) == TN_OK)
        run(s, made);
    if (expr_repeat(runtime.exprs, s->expr, 7, &made) == TN_OK)
        print_and_parse(s, made, false);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"x", "y"};
    if (!size)
        return;
    struct subject s = {.seed = data[0], .attrs = data[0] & 1 ? &table : NULL};
    char *text = fuzz_text(data + 1, size - 1);
    FUZZ_CHECK(expr_set_create(&runtime) == TN_OK, "%s", fail_text());
    fail_clear();
    tn_status status = s.attrs ? expr_parse(&runtime, text, names, 2, s.attrs, &s.expr)
                               : expr_parse_arrow(&runtime, text, &s.expr);
    FUZZ_CHECK(status == TN_OK || fail_text()[0], "a failure has a text");
    if (status == TN_OK) {
        print_and_parse(&s, s.expr, true);
        run(&s, s.expr);
        derive(&s);
        rewrite(&s);
    }
    expr_set_destroy(&runtime);
    free(text);
}
