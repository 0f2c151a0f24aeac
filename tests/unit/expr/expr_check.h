// SPDX-License-Identifier: MIT
// What the tests of expressions share: a runtime of nothing but an expression set, and one
// call from text to value.
#ifndef TESTS_UNIT_EXPR_CHECK_H
#define TESTS_UNIT_EXPR_CHECK_H

#include "check.h"
#include <inttypes.h>
#include <math.h>
#include "expr/tree.h"

static tn_runtime runtime;

static void open_set(void)
{
    check_status(expr_set_create(&runtime), TN_OK);
}

static void close_set(void)
{
    expr_set_destroy(&runtime);
}

static inline const struct expr *parsed(const char *text)
{
    const struct expr *expr = NULL;
    if (expr_parse_arrow(&runtime, text, &expr) != TN_OK)
        cr_fatal("%s: %s", text, fail_text());
    return expr;
}

static inline const tn_expr_program *
compiled(const struct expr *expr, const struct expr_input *inputs, const tn_dtype *outputs)
{
    const tn_expr_program *program = NULL;
    if (expr_compile(expr, inputs, outputs, &program) != TN_OK)
        cr_fatal("%s: %s", expr->text, fail_text());
    return program;
}

// The first output for inputs of one dtype each; values as bits.
static inline uint64_t run_bits(const char *text, const tn_dtype *dtypes,
                                const uint64_t *bits, tn_dtype *out_dtype)
{
    const struct expr *expr = parsed(text);
    struct expr_input inputs[TN_EXPR_MAX_INPUTS] = {{0}};
    uint64_t outputs[TN_EXPR_MAX_OUTPUTS];
    for (uint32_t i = 0; i < expr->num_inputs; i++)
        inputs[i].dtype = dtypes[i];
    const tn_expr_program *program = compiled(expr, inputs, NULL);
    program_run_scalar(program, bits, NULL, 0, outputs);
    if (out_dtype)
        *out_dtype = program->output_dtypes[0];
    return outputs[0];
}

// The same for doubles in and out: inputs of one dtype.
static inline double run_double(const char *text, tn_dtype dtype, const double *values)
{
    tn_dtype dtypes[TN_EXPR_MAX_INPUTS], out;
    uint64_t bits[TN_EXPR_MAX_INPUTS];
    uint32_t count = parsed(text)->num_inputs;
    for (uint32_t i = 0; i < count; i++) {
        dtypes[i] = dtype;
        bits[i] = scalar_cast(TN_F64, dtype, double_to_bits(values[i]));
    }
    uint64_t result = run_bits(text, dtypes, bits, &out);
    return bits_to_double(scalar_cast(out, TN_F64, result));
}

static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static inline uint64_t random_seed(void)
{
    uint64_t seed = check_seed(UINT64_C(0x9e3779b97f4a7c15));
    return seed ? seed : 1;
}

#endif // TESTS_UNIT_EXPR_CHECK_H
