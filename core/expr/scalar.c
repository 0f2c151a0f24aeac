// SPDX-License-Identifier: MIT
// Programs run on one element in plain C, as the reference for every backend. The
// operations are defined by the SDK (tenon/ops/program.h), so that backend authors can
// compare with them.
#include <string.h>
#include <tenon/ops/program_rows.h>
#include "tree.h"

static tn_scalar_value scalar_value_of(uint64_t bits)
{
    tn_scalar_value value = {.c = {0, 0}};
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

uint64_t scalar_cast(tn_dtype from, tn_dtype to, uint64_t bits)
{
    return tn_value_cast(from, to, scalar_value_of(bits)).u;
}

uint64_t scalar_op(int op, tn_dtype dtype, tn_dtype from, uint64_t a, uint64_t b,
                   uint64_t c)
{
    return tn_operation((uint32_t)op, dtype, from, scalar_value_of(a), scalar_value_of(b),
                        scalar_value_of(c))
        .u;
}

void program_run(const tn_expr_program *program, const uint64_t *params,
                 const tn_tensor *inputs, const tn_tensor *outputs)
{
    if (program->flags & TN_EXPR_ROWS)
        tn_program_run_rows(program, params, inputs, outputs);
    else
        tn_program_run(program, params, inputs, outputs);
}

void program_run_scalar(const tn_expr_program *program, const uint64_t *inputs,
                        const uint64_t *params, int64_t index, uint64_t *outputs)
{
    tn_scalar_value values[TN_EXPR_MAX_INSNS];
    for (uint32_t i = 0; i < program->num_insns; i++) {
        const tn_expr_insn *insn = &program->insns[i];
        if (insn->op == TN_EXPR_LOAD)
            values[i] = scalar_value_of(inputs[insn->a]);
        else if (insn->op == TN_EXPR_INDEX)
            values[i].i = index;
        else
            values[i] = tn_program_step(program, i, params, values);
    }
    for (uint32_t i = 0; i < program->num_outputs; i++) {
        tn_dtype dtype = program->insns[program->outputs[i]].dtype;
        outputs[i] =
            tn_value_cast(dtype, program->output_dtypes[i], values[program->outputs[i]]).u;
    }
}
