// SPDX-License-Identifier: MIT
// Writes the kernel of a row program, in a language that is given as a table of functions.
#include <stdlib.h>
#include <tenon/ops/program_rows.h>
#include "program_rows_writer.h"

static uint32_t program_rows_num_operands(const struct rows_writer *w)
{
    return w->class->num_inputs + w->class->num_outputs;
}

static uint32_t shift_of(uint32_t power)
{
    return (uint32_t)__builtin_ctz(power);
}

// --- what is computed when -------------------------------------------------------------

// The instructions whose values this one computes with: of TAKE the index.
static uint32_t program_rows_list_operands(const tn_expr_insn *insn, uint32_t from[3])
{
    from[0] = insn->op == TN_EXPR_TAKE ? insn->b : insn->a;
    from[1] = insn->b;
    from[2] = insn->c;
    return insn->op == TN_EXPR_TAKE ? 1 : tn_expr_operands(insn->op);
}

static void program_rows_find_level(struct rows_writer *w, uint32_t i)
{
    uint32_t from[3], count = program_rows_list_operands(&w->program->insns[i], from);
    for (uint32_t k = 0; k < count; k++)
        w->levels[i] =
            w->levels[from[k]] > w->levels[i] ? w->levels[from[k]] : w->levels[i];
    w->levels[i] += rows_is_reduction(w->program, i);
    if (w->levels[i] >= w->num_phases)
        w->num_phases = w->levels[i] + 1;
}

static void find_scopes(struct rows_writer *w)
{
    uint32_t word = rows_first_param(w->class);
    w->num_phases = 1;
    rows_find_scopes(w->program, w->class, w->scopes);
    for (uint32_t i = 0; i < w->program->num_insns; i++) {
        const tn_expr_insn *insn = &w->program->insns[i];
        program_rows_find_level(w, i);
        w->param_words[i] = word;
        if (insn->op == TN_EXPR_PARAM)
            word += dtype_bytes(insn->dtype) == 8 ? 2 : 1;
        else if (insn->op == TN_EXPR_TAKE)
            word += 2;
    }
}

static bool folds_in(const struct rows_writer *w, uint32_t i, uint32_t phase)
{
    return rows_is_reduction(w->program, i) && w->levels[i] == phase + 1;
}

static bool program_rows_is_last(const struct rows_writer *w, uint32_t phase)
{
    return phase + 1 == w->num_phases;
}

static bool is_written(const struct rows_writer *w, uint32_t i)
{
    return w->scopes[i] == ROWS_ELEMENT ? w->elements[i][0] != 0 : w->rows[i] != 0;
}

// Marks what the phase has to compute: its targets, and what these need.
static void program_rows_mark_needed(struct rows_writer *w, uint32_t phase)
{
    const tn_expr_program *program = w->program;
    memset(w->needed, 0, sizeof(w->needed));
    for (uint32_t i = 0; i < program->num_insns; i++)
        if (folds_in(w, i, phase))
            w->needed[program->insns[i].a] = true;
    for (uint32_t k = 0; k < program->num_outputs && program_rows_is_last(w, phase); k++)
        w->needed[program->outputs[k]] = true;
    // One element a row is read before the first barrier: an output may be in its memory.
    for (uint32_t i = 0; i < program->num_insns && phase == 0; i++)
        if (program->insns[i].op == TN_EXPR_LOAD && w->scopes[i] != ROWS_ELEMENT)
            w->needed[i] = true;
    for (uint32_t left = program->num_insns; left > 0; left--) {
        uint32_t i = left - 1;
        uint32_t from[3], count = program_rows_list_operands(&program->insns[i], from);
        w->needed[i] = w->needed[i] && !is_written(w, i);
        for (uint32_t k = 0; w->needed[i] && k < count; k++)
            w->needed[from[k]] = true;
    }
}

// --- one value a row -------------------------------------------------------------------

static void write_row_value(struct rows_writer *w, uint32_t i)
{
    const tn_expr_insn *insn = &w->program->insns[i];
    uint32_t at;
    switch (insn->op) {
    case TN_EXPR_TAKE:
        at = rows_write_position(w, i);
        w->to->load(w->out, insn->a, false, at, &w->rows[i]);
        break;
    case TN_EXPR_LOAD:
        w->to->load(w->out, insn->a, false, w->first[insn->a], &w->rows[i]);
        break;
    case TN_EXPR_CONST:
        w->rows[i] = w->to->constant(w->out, insn->dtype, w->program->constants[insn->a]);
        break;
    case TN_EXPR_PARAM:
        w->rows[i] = w->to->param(w->out, insn->dtype, w->param_words[i]);
        break;
    case TN_EXPR_EXTENT:
        w->rows[i] = w->to->wide(w->out, w->extent);
        break;
    default:
        w->rows[i] = w->to->instruction(w->out, i, w->rows);
    }
}

static void write_row_values(struct rows_writer *w)
{
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (w->needed[i] && w->scopes[i] != ROWS_ELEMENT)
            write_row_value(w, i);
        else if (w->needed[i] && rows_takes_row(w, i) && !w->rows[i])
            w->rows[i] = rows_write_position(w, i);
}

// --- elements --------------------------------------------------------------------------

// Where chunk c has the lane's first element, and whether the row has it. An index past the
// end is replaced by the last one, so that loads need no branch.
static void write_position(struct rows_writer *w, uint32_t c)
{
    const struct program_class *class = w->class;
    uint32_t per = class->per_item, at = w->lane;
    if (c > 0)
        at = compute(w, ROWS_ADD, at, number(w, c * class->lanes));
    if (per > 1)
        at = compute(w, ROWS_MUL, at, number(w, per));
    if (w->block)
        at = compute(w, ROWS_ADD, at, w->block);
    w->at[c] = at;
    w->inside[c] = 0;
    if (class->whole || (!class->loops && c + 1 < class->chunks))
        return;
    w->inside[c] = w->to->is_less(w->out, at, w->extent);
    w->at[c] = w->to->choose(w->out, TN_U32, w->inside[c], at,
                             compute(w, ROWS_SUB, w->extent, number(w, per)));
}

static uint32_t write_index(struct rows_writer *w, uint32_t element)
{
    uint32_t per = w->class->per_item;
    uint32_t at = compute(w, ROWS_MUL, w->row, w->extent);
    at = compute(w, ROWS_ADD, at, w->at[element / per]);
    if (element % per > 0)
        at = compute(w, ROWS_ADD, at, number(w, element % per));
    return w->to->wide(w->out, at);
}

// The value of instruction i at an element, or the row's.
static uint32_t program_rows_value_at(const struct rows_writer *w, uint32_t i,
                                      uint32_t element)
{
    return w->scopes[i] == ROWS_ELEMENT ? w->elements[i][element] : w->rows[i];
}

static void program_rows_write_element(struct rows_writer *w, uint32_t element)
{
    uint32_t values[TN_EXPR_MAX_INSNS], from[3];
    for (uint32_t i = 0; i < w->program->num_insns; i++) {
        const tn_expr_insn *insn = &w->program->insns[i];
        if (!w->needed[i] || w->scopes[i] != ROWS_ELEMENT || rows_is_loaded(w, i))
            continue;
        for (uint32_t k = program_rows_list_operands(insn, from); k > 0; k--)
            values[from[k - 1]] = program_rows_value_at(w, from[k - 1], element);
        w->elements[i][element] = insn->op == TN_EXPR_INDEX ? write_index(w, element)
                                  : insn->op == TN_EXPR_TAKE
                                      ? rows_write_take(w, i, element)
                                      : w->to->instruction(w->out, i, values);
    }
}

// --- folding ---------------------------------------------------------------------------

static uint32_t program_rows_fold(struct rows_writer *w, uint32_t i, uint32_t a, uint32_t b)
{
    const tn_expr_insn *insn = &w->program->insns[i];
    uint32_t by = insn->op == TN_EXPR_REDUCE_SUM    ? TN_EXPR_ADD
                  : insn->op == TN_EXPR_REDUCE_PROD ? TN_EXPR_MUL
                  : insn->op == TN_EXPR_REDUCE_MIN  ? TN_EXPR_MIN
                                                    : TN_EXPR_MAX;
    return w->to->fold(w->out, by, insn->dtype, a, b);
}

static uint32_t program_rows_write_start(struct rows_writer *w, uint32_t i)
{
    const tn_expr_insn *insn = &w->program->insns[i];
    tn_scalar_value start = tn_reduction_start(insn->op, insn->dtype);
    uint64_t bits;
    memcpy(&bits, &start, sizeof(bits));
    return w->to->constant(w->out, insn->dtype, bits);
}

// Folds the lane's elements.
static void fold_elements(struct rows_writer *w, uint32_t i)
{
    const tn_expr_insn *insn = &w->program->insns[i];
    uint32_t per = w->class->per_item, start = 0;
    uint32_t sum = w->block ? w->to->get(w->out, insn->dtype, w->folded[i]) : 0;
    for (uint32_t c = 0; c < w->class->chunks; c++)
        for (uint32_t k = 0; k < per; k++) {
            uint32_t value = program_rows_value_at(w, insn->a, c * per + k);
            if (w->inside[c]) {
                start = start ? start : program_rows_write_start(w, i);
                value = w->to->choose(w->out, insn->dtype, w->inside[c], value, start);
            }
            sum = sum ? program_rows_fold(w, i, sum, value) : value;
        }
    if (w->block)
        w->to->set(w->out, w->folded[i], sum);
    else
        w->folded[i] = sum;
}

// Bools travel between invocations as numbers.
static tn_dtype travel_dtype(tn_dtype dtype)
{
    return dtype == TN_BOOL ? TN_U32 : dtype;
}

static uint32_t program_rows_pack(struct rows_writer *w, tn_dtype dtype, uint32_t value)
{
    return dtype == TN_BOOL
               ? w->to->choose(w->out, TN_U32, value, number(w, 1), number(w, 0))
               : value;
}

static uint32_t program_rows_unpack(struct rows_writer *w, tn_dtype dtype, uint32_t value)
{
    return dtype == TN_BOOL ? w->to->is_less(w->out, number(w, 0), value) : value;
}

// Folds the values of `count` adjacent lanes of a subgroup; each gets the result.
static uint32_t program_rows_shuffle(struct rows_writer *w, uint32_t i, uint32_t value,
                                     uint32_t count)
{
    tn_dtype dtype = w->program->insns[i].dtype;
    for (uint32_t mask = count / 2; mask > 0; mask /= 2) {
        uint32_t other =
            w->to->shuffle(w->out, travel_dtype(dtype), program_rows_pack(w, dtype, value),
                           number(w, mask));
        value = program_rows_fold(w, i, value, program_rows_unpack(w, dtype, other));
    }
    return value;
}

static uint32_t load_shared(struct rows_writer *w, uint32_t i, uint32_t index)
{
    tn_dtype dtype = w->program->insns[i].dtype;
    return program_rows_unpack(w, dtype,
                               w->to->shared_load(w->out, travel_dtype(dtype), index));
}

static void store_shared(struct rows_writer *w, uint32_t i, uint32_t index, uint32_t value)
{
    tn_dtype dtype = w->program->insns[i].dtype;
    w->to->shared_store(w->out, travel_dtype(dtype), index,
                        program_rows_pack(w, dtype, value));
}

// Shared memory has an element for each reduction and subgroup of the workgroup. `own`: of
// this invocation's subgroup, `first`: of the row's first one, for the first reduction.
static void store_subgroups(struct rows_writer *w, uint32_t phase, uint32_t own)
{
    uint32_t slot = 0;
    for (uint32_t i = 0; i < w->program->num_insns; i++) {
        if (folds_in(w, i, phase)) // all invocations of the subgroup write the same
            store_shared(w, i, compute(w, ROWS_ADD, own, number(w, slot)), w->rows[i]);
        if (rows_is_reduction(w->program, i))
            slot += w->class->group / w->class->subgroup;
    }
}

// Each lane reads its share of the row's subgroups, and the lanes of a subgroup fold these.
static void load_subgroups(struct rows_writer *w, uint32_t phase, uint32_t first)
{
    uint32_t size = w->class->subgroup, several = w->class->lanes / size, slot = 0;
    uint32_t readers = several < size ? several : size;
    uint32_t own = compute(w, ROWS_AND, w->lane, number(w, readers - 1));
    first = compute(w, ROWS_ADD, first, own);
    for (uint32_t i = 0; i < w->program->num_insns; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < several && folds_in(w, i, phase); k += readers) {
            uint32_t at = compute(w, ROWS_ADD, first, number(w, slot + k));
            uint32_t value = load_shared(w, i, at);
            sum = sum ? program_rows_fold(w, i, sum, value) : value;
        }
        if (sum)
            w->rows[i] = program_rows_shuffle(w, i, sum, readers);
        if (rows_is_reduction(w->program, i))
            slot += w->class->group / size;
    }
}

static void fold_subgroups(struct rows_writer *w, uint32_t phase)
{
    uint32_t size = w->class->subgroup, lanes = w->class->lanes;
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (folds_in(w, i, phase))
            w->rows[i] =
                program_rows_shuffle(w, i, w->folded[i], lanes < size ? lanes : size);
    if (lanes <= size)
        return;
    uint32_t by = number(w, shift_of(size));
    uint32_t first = compute(w, ROWS_SUB, w->invocation, w->lane);
    store_subgroups(w, phase, compute(w, ROWS_SHIFT_RIGHT, w->invocation, by));
    w->to->barrier(w->out);
    load_subgroups(w, phase, compute(w, ROWS_SHIFT_RIGHT, first, by));
}

// Folds `count` values in shared memory, from `first` on.
static uint32_t program_rows_fold_run(struct rows_writer *w, uint32_t i, uint32_t first,
                                      uint32_t count)
{
    tn_dtype dtype = w->program->insns[i].dtype;
    uint32_t sum = w->to->variable(w->out, dtype, load_shared(w, i, first));
    uint32_t k = w->to->begin_loop(w->out, number(w, count - 1), number(w, 1));
    uint32_t at = compute(w, ROWS_ADD, compute(w, ROWS_ADD, first, k), number(w, 1));
    uint32_t so_far = w->to->get(w->out, dtype, sum);
    w->to->set(w->out, sum, program_rows_fold(w, i, so_far, load_shared(w, i, at)));
    w->to->end_loop(w->out);
    return w->to->get(w->out, dtype, sum);
}

// By shared memory alone: the first 16th of the invocations fold 16 lanes each, then all
// invocations of a row fold these. The two barriers also keep the next reduction from
// writing what is still read.
static void fold_shared(struct rows_writer *w, uint32_t i)
{
    uint32_t lanes = w->class->lanes, group = w->class->group;
    uint32_t first = compute(w, ROWS_SUB, w->invocation, w->lane);
    store_shared(w, i, w->invocation, w->folded[i]);
    w->to->barrier(w->out);
    if (lanes <= 16) {
        w->rows[i] = program_rows_fold_run(w, i, first, lanes);
        w->to->barrier(w->out);
        return;
    }
    uint32_t folds = w->to->is_less(w->out, w->invocation, number(w, group / 16));
    w->to->begin_if(w->out, folds);
    uint32_t sixteen = compute(w, ROWS_MUL, w->invocation, number(w, 16));
    uint32_t own = compute(w, ROWS_ADD, w->invocation, number(w, group));
    store_shared(w, i, own, program_rows_fold_run(w, i, sixteen, 16));
    w->to->end_if(w->out);
    w->to->barrier(w->out);
    first = compute(w, ROWS_SHIFT_RIGHT, first, number(w, 4));
    first = compute(w, ROWS_ADD, first, number(w, group));
    w->rows[i] = program_rows_fold_run(w, i, first, lanes / 16);
}

static void fold_lanes(struct rows_writer *w, uint32_t phase)
{
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (folds_in(w, i, phase) && w->class->loops)
            w->folded[i] = w->to->get(w->out, w->program->insns[i].dtype, w->folded[i]);
    if (w->class->lanes > 1 && w->class->subgroup > 0) {
        fold_subgroups(w, phase);
        return;
    }
    for (uint32_t i = 0; i < w->program->num_insns; i++) {
        if (!folds_in(w, i, phase))
            continue;
        if (w->class->lanes > 1)
            fold_shared(w, i);
        else
            w->rows[i] = w->folded[i];
    }
}

// --- outputs ---------------------------------------------------------------------------

static void store_chunk(struct rows_writer *w, uint32_t c)
{
    const tn_expr_program *program = w->program;
    uint32_t per = w->class->per_item, values[4];
    if (w->inside[c])
        w->to->begin_if(w->out, w->inside[c]);
    for (uint32_t k = 0; k < program->num_outputs; k++) {
        uint32_t operand = w->class->num_inputs + k;
        if (w->class->access[operand] == ACCESS_REPEAT)
            continue;
        for (uint32_t lane = 0; lane < per; lane++)
            values[lane] = program_rows_value_at(w, program->outputs[k], c * per + lane);
        w->to->store(w->out, operand, per == 4, rows_index(w, operand, c), values);
    }
    if (w->inside[c])
        w->to->end_if(w->out);
}

// Outputs with one element a row: by the row's first lane.
static void store_rows(struct rows_writer *w)
{
    const tn_expr_program *program = w->program;
    bool any = false;
    for (uint32_t k = 0; k < program->num_outputs; k++)
        any = any || w->class->access[w->class->num_inputs + k] == ACCESS_REPEAT;
    if (!any)
        return;
    uint32_t is_first = w->to->is_less(w->out, w->lane, number(w, 1));
    w->to->begin_if(w->out, w->to->both(w->out, w->is_row, is_first));
    for (uint32_t k = 0; k < program->num_outputs; k++) {
        uint32_t operand = w->class->num_inputs + k;
        if (w->class->access[operand] == ACCESS_REPEAT)
            w->to->store(w->out, operand, false, w->first[operand],
                         &w->rows[program->outputs[k]]);
    }
    w->to->end_if(w->out);
}

// --- phases ----------------------------------------------------------------------------

static void program_rows_write_block(struct rows_writer *w, uint32_t phase)
{
    for (uint32_t c = 0; c < w->class->chunks && (phase == 0 || w->class->loops); c++)
        write_position(w, c);
    rows_write_loads(w);
    for (uint32_t e = 0; e < w->class->chunks * w->class->per_item; e++)
        program_rows_write_element(w, e);
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (folds_in(w, i, phase))
            fold_elements(w, i);
    if (!program_rows_is_last(w, phase))
        return;
    w->to->begin_if(w->out, w->is_row);
    for (uint32_t c = 0; c < w->class->chunks; c++)
        store_chunk(w, c);
    w->to->end_if(w->out);
}

static bool has_work(const struct rows_writer *w, uint32_t phase)
{
    for (uint32_t k = 0; k < w->class->num_outputs; k++)
        if (w->class->access[w->class->num_inputs + k] != ACCESS_REPEAT)
            return true;
    return !program_rows_is_last(w, phase);
}

static void write_loop(struct rows_writer *w, uint32_t phase)
{
    const struct program_class *class = w->class;
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (folds_in(w, i, phase))
            w->folded[i] = w->to->variable(w->out, w->program->insns[i].dtype,
                                           program_rows_write_start(w, i));
    uint32_t step = number(w, class->lanes * class->per_item * class->chunks);
    w->block = w->to->begin_loop(w->out, w->extent, step);
    program_rows_write_block(w, phase);
    w->to->end_loop(w->out);
    w->block = 0;
    memset(w->elements, 0, sizeof(w->elements));
}

static void write_phase(struct rows_writer *w, uint32_t phase)
{
    program_rows_mark_needed(w, phase);
    write_row_values(w);
    if (w->class->loops && has_work(w, phase))
        write_loop(w, phase);
    else if (!w->class->loops)
        program_rows_write_block(w, phase);
    if (program_rows_is_last(w, phase))
        store_rows(w);
    else
        fold_lanes(w, phase);
}

// --- the row ---------------------------------------------------------------------------

// Sets `first` and `step` of each operand.
static void write_addresses(struct rows_writer *w)
{
    uint32_t outer = w->class->rank - 1, word = 2 + program_rows_num_operands(w),
             rest = w->row;
    uint32_t coordinate[TN_MAX_RANK] = {0};
    for (uint32_t left = outer; left > 1; left--) {
        uint32_t extent = w->to->argument(w->out, word + left - 1);
        uint32_t next = compute(w, ROWS_DIV, rest, extent);
        coordinate[left - 1] =
            compute(w, ROWS_SUB, rest, compute(w, ROWS_MUL, next, extent));
        rest = next;
    }
    coordinate[0] = rest;
    word += outer;
    for (uint32_t i = 0; i < program_rows_num_operands(w); i++) {
        uint32_t at = w->to->argument(w->out, 2 + i);
        for (uint32_t axis = 0; rows_has_strides(w->class->access[i]) && axis < outer;
             axis++) {
            uint32_t stride = w->to->argument(w->out, word++);
            at = compute(w, ROWS_ADD, at, compute(w, ROWS_MUL, coordinate[axis], stride));
        }
        w->first[i] = at;
        if (rows_has_step(w->class->access[i]))
            w->step[i] = w->to->argument(w->out, word++);
    }
}

// Invocations without a row compute the last one again, and store nothing: barriers need
// all of a workgroup.
static void program_write_row(struct rows_writer *w)
{
    const struct program_class *class = w->class;
    uint32_t group = w->to->group_number(w->out);
    w->num_rows = w->to->argument(w->out, 0);
    w->extent = w->to->argument(w->out, 1);
    w->invocation = w->to->invocation(w->out);
    w->lane = compute(w, ROWS_AND, w->invocation, number(w, class->lanes - 1));
    w->row = compute(
        w, ROWS_ADD, compute(w, ROWS_MUL, group, number(w, class->group / class->lanes)),
        compute(w, ROWS_SHIFT_RIGHT, w->invocation, number(w, shift_of(class->lanes))));
    w->is_row = w->to->is_less(w->out, w->row, w->num_rows);
    w->row = w->to->choose(w->out, TN_U32, w->is_row, w->row,
                           compute(w, ROWS_SUB, w->num_rows, number(w, 1)));
}

bool program_write_rows(const struct rows_language *language, void *out,
                        const tn_expr_program *program, const struct program_class *class)
{
    struct rows_writer *w = calloc(1, sizeof(*w));
    if (!w)
        return false;
    w->to = language;
    w->out = out;
    w->program = program;
    w->class = class;
    find_scopes(w);
    program_write_row(w);
    write_addresses(w);
    for (uint32_t phase = 0; phase < w->num_phases; phase++)
        write_phase(w, phase);
    free(w);
    return true;
}
