// SPDX-License-Identifier: MIT
// Reads the operands of row programs: elements in their order, or gathered.
#include "program_rows_writer.h"

// --- positions -------------------------------------------------------------------------

// Where the operand's row that begins at `first` has element `lane` of chunk c.
static uint32_t index_in_row(struct rows_writer *w, uint32_t operand, uint32_t first,
                             uint32_t c, uint32_t lane)
{
    char access = w->class->access[operand];
    uint32_t at = w->at[c];
    if (access == ACCESS_REPEAT || access == ACCESS_TAKEN_REPEAT ||
        access == ACCESS_TAKEN_FLAT)
        return first;
    if (lane > 0)
        at = compute(w, ROWS_ADD, at, number(w, lane));
    if (rows_has_step(access))
        at = compute(w, ROWS_MUL, at, w->step[operand]);
    return compute(w, ROWS_ADD, first, at);
}

uint32_t rows_index(struct rows_writer *w, uint32_t operand, uint32_t c)
{
    return index_in_row(w, operand, w->first[operand], c, 0);
}

// Where a TAKE reads whose index is a value: behind `position`, the position for index 0.
static uint32_t rows_load_write_taken(struct rows_writer *w, uint32_t i, uint32_t index,
                                      uint32_t position)
{
    tn_dtype dtype = w->program->insns[w->program->insns[i].b].dtype;
    uint32_t taken = w->to->taken(w->out, dtype, index, w->param_words[i]);
    return compute(w, ROWS_ADD, position, taken);
}

uint32_t rows_write_position(struct rows_writer *w, uint32_t i)
{
    const tn_expr_insn *insn = &w->program->insns[i];
    return rows_load_write_taken(w, i, w->rows[insn->b], w->first[insn->a]);
}

// --- elements --------------------------------------------------------------------------

bool rows_takes_row(const struct rows_writer *w, uint32_t i)
{
    const tn_expr_insn *insn = &w->program->insns[i];
    return insn->op == TN_EXPR_TAKE && w->scopes[i] == ROWS_ELEMENT &&
           w->scopes[insn->b] != ROWS_ELEMENT;
}

bool rows_is_loaded(const struct rows_writer *w, uint32_t i)
{
    return w->scopes[i] == ROWS_ELEMENT &&
           (w->program->insns[i].op == TN_EXPR_LOAD || rows_takes_row(w, i));
}

// Loads the elements of instruction i, a LOAD or a TAKE of a row.
static void rows_write_load(struct rows_writer *w, uint32_t i)
{
    const tn_expr_insn *insn = &w->program->insns[i];
    uint32_t per = w->class->per_item;
    uint32_t first = insn->op == TN_EXPR_LOAD ? w->first[insn->a] : w->rows[i];
    bool four = per == 4 && w->class->access[insn->a] != ACCESS_TAKEN;
    for (uint32_t e = 0; e < w->class->chunks * per; e += four ? 4 : 1)
        w->to->load(w->out, insn->a, four,
                    index_in_row(w, insn->a, first, e / per, e % per), &w->elements[i][e]);
}

void rows_write_loads(struct rows_writer *w)
{
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (w->needed[i] && rows_is_loaded(w, i))
            rows_write_load(w, i);
}

uint32_t rows_write_take(struct rows_writer *w, uint32_t i, uint32_t element)
{
    const tn_expr_insn *insn = &w->program->insns[i];
    uint32_t per = w->class->per_item, value;
    uint32_t position =
        index_in_row(w, insn->a, w->first[insn->a], element / per, element % per);
    w->to->load(w->out, insn->a, false,
                rows_load_write_taken(w, i, w->elements[insn->b][element], position),
                &value);
    return value;
}
