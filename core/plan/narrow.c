// SPDX-License-Identifier: MIT
// Narrow: programs read halves as they are where an operation only casts them to f32 for
// several readers. The cast array, twice as large, lives no longer than kernels read it,
// and not from a forward pass to the backward one. Programs compute halves in f32, so each
// element is the same.
#include <string.h>
#include "../base/dtype.h"
#include "../base/shape.h"
#include "../expr/expr.h"
#include "plan.h"

// Whether the operation gives its input's elements in the dtype that they are computed in.
static bool is_widening(const struct plan_work *work, const struct plan_op *op)
{
    if (op->kind != OP_PROGRAM || op->num_inputs != 1 || op->num_outputs != 1 ||
        op->program->num_insns != 1 || op->program->insns[0].op != TN_EXPR_LOAD)
        return false;
    const struct plan_value *wide = &work->values[op->outputs[0]];
    tn_layout from = op->inputs[0].layout;
    tn_dtype narrow = from.dtype;
    from.dtype = wide->layout.dtype;
    return narrow != from.dtype && tn_dtype_computed(narrow) == from.dtype &&
           !wide->is_output && from.offset == 0 && layout_is_contiguous(&from) &&
           wide->base == op->outputs[0] && layout_is_contiguous(&wide->layout);
}

static bool narrow_is_of(const struct plan_work *work, const struct operand *in,
                         uint32_t wide)
{
    return in->value != NONE && work->values[in->value].base == wide;
}

// Whether the operation is an elementwise program on the value's device that reads the cast
// array in its dtype, not its bits as another dtype.
static bool may_read(const struct plan_work *work, const struct plan_op *reader,
                     uint32_t wide)
{
    const struct plan_value *value = &work->values[wide];
    bool may = reader->kind == OP_PROGRAM && reader->device == value->device &&
               !(reader->program->flags & (TN_EXPR_ROWS | TN_EXPR_TAKES));
    for (uint32_t i = 0; i < reader->num_inputs && may; i++)
        may = !narrow_is_of(work, &reader->inputs[i], wide) ||
              reader->inputs[i].layout.dtype == value->layout.dtype;
    return may;
}

static tn_status read_narrow(struct plan_work *work, struct plan_op *reader, uint32_t wide,
                             const struct operand *narrow)
{
    tn_dtype dtypes[TN_EXPR_MAX_INPUTS];
    tn_expr_program program = *reader->program;
    memcpy(dtypes, program.input_dtypes, program.num_inputs * sizeof(*dtypes));
    for (uint32_t i = 0; i < reader->num_inputs; i++) {
        struct operand *in = &reader->inputs[i];
        if (!narrow_is_of(work, in, wide))
            continue;
        in->value = narrow->value;
        in->layout.dtype = dtypes[i] = narrow->layout.dtype;
    }
    program.input_dtypes = dtypes;
    return program_intern(work->exprs, &program, &reader->program);
}

// Makes readers of operation k's result read its input. *out_left: some still read the
// result.
static tn_status narrow_readers(struct plan_work *work, uint32_t k, bool *out_left)
{
    const struct plan_op *op = &work->ops[k];
    uint32_t wide = op->outputs[0];
    tn_status status = TN_OK;
    *out_left = false;
    for (uint32_t u = work->values[wide].first_use; u != NONE && status == TN_OK;
         u = work->uses[u].next) {
        struct plan_op *reader = &work->ops[work->uses[u].op];
        if (may_read(work, reader, wide))
            status = read_narrow(work, reader, wide, &op->inputs[0]);
        else
            *out_left = true;
    }
    return status;
}

tn_status plan_narrow(struct plan_work *work)
{
    uint32_t k = 0;
    while (k < work->num_ops && !is_widening(work, &work->ops[k]))
        k++;
    if (k == work->num_ops)
        return TN_OK;
    bool *gone = mem_zalloc(work->num_ops);
    tn_status status = gone ? work_list_uses(work) : TN_ERR_MEMORY;
    for (; k < work->num_ops && status == TN_OK; k++) {
        bool is_left = true;
        if (is_widening(work, &work->ops[k]))
            status = narrow_readers(work, k, &is_left);
        gone[k] = !is_left;
    }
    if (status == TN_OK)
        work_remove_ops(work, gone);
    mem_free(gone);
    return status;
}
