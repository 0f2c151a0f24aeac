// SPDX-License-Identifier: MIT
#include "program_writer.h"

#include "program_branches.h"

#include <string.h>

struct program_writer_walk {
    const struct program_language *to;
    void *out;
    const tn_expr_program *program;
    const struct program_class *class;
    struct program_words words;
};

// --- arguments -------------------------------------------------------------------------

// The words that an instruction's params take among the arguments.
static uint32_t param_words(const tn_expr_insn *insn)
{
    if (insn->op == TN_EXPR_PARAM)
        return dtype_bytes(tn_dtype_real(insn->dtype)) == 8 ? 2 : 1;
    return insn->op == TN_EXPR_TAKE ? 2 : 0;
}

uint32_t program_count_params(const tn_expr_program *program)
{
    uint32_t words = 0;
    for (uint32_t i = 0; i < program->num_insns; i++)
        words += param_words(&program->insns[i]);
    return words;
}

struct program_words program_words_of(const tn_expr_program *program,
                                      const struct program_class *class)
{
    uint32_t num_operands = class->num_inputs + class->num_outputs;
    struct program_words words = {.first_extent = 1 + num_operands};
    words.first_stride = words.first_extent + program_extent_words(class);
    words.first_param = words.first_stride;
    for (uint32_t i = 0; i < num_operands; i++)
        words.first_param += access_has_strides(class->access[i]) ? class->rank : 0;
    words.num_args = words.first_param + program_count_params(program);
    return words;
}

// --- one element -----------------------------------------------------------------------

bool program_takes_four(const tn_expr_program *program, const struct program_class *class,
                        uint32_t position)
{
    const tn_expr_insn *insn = &program->insns[position];
    return insn->op == TN_EXPR_TAKE && class->access[insn->a] == ACCESS_TAKEN_FOUR;
}

static bool takes_four(const struct program_writer_walk *w, uint32_t position)
{
    return program_takes_four(w->program, w->class, position);
}

static bool has_four(const struct program_writer_walk *w)
{
    bool any = false;
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        any = any || takes_four(w, i);
    return any;
}

static void write_insn(const struct program_writer_walk *w, uint32_t position,
                       uint32_t word)
{
    if (takes_four(w, position)) {
        w->to->found(w->out, position);
        return;
    }
    switch (w->program->insns[position].op) {
    case TN_EXPR_LOAD:
        w->to->load(w->out, position);
        break;
    case TN_EXPR_CONST:
        w->to->constant(w->out, position);
        break;
    case TN_EXPR_PARAM:
        w->to->param(w->out, position, word);
        break;
    case TN_EXPR_INDEX:
        w->to->index(w->out, position);
        break;
    case TN_EXPR_TAKE:
        w->to->take(w->out, position, word);
        break;
    default:
        w->to->operation(w->out, position);
    }
}

// Writes the instructions of a region, and the branches in it with theirs. words: the
// position of each instruction's params among the arguments.
static void write_region(const struct program_writer_walk *w,
                         const struct program_branches *branches, const uint32_t *words,
                         uint32_t region)
{
    for (uint32_t i = 0; i < w->program->num_insns; i++) {
        if (branches->region[i] != region)
            continue;
        if (!branches->is_branch[i]) {
            write_insn(w, i, words[i]);
            continue;
        }
        w->to->begin_branch(w->out, i);
        write_region(w, branches, words, region_of_side(i, 0));
        w->to->other_side(w->out, i);
        write_region(w, branches, words, region_of_side(i, 1));
        w->to->end_branch(w->out, i);
    }
}

static void program_writer_write_element(const struct program_writer_walk *w)
{
    struct program_branches branches;
    uint32_t words[TN_EXPR_MAX_INSNS], word = w->words.first_param;
    for (uint32_t i = 0; i < w->program->num_insns; i++) {
        words[i] = word;
        word += param_words(&w->program->insns[i]);
    }
    program_find_branches(w->program, &branches);
    w->to->begin_element(w->out);
    write_region(w, &branches, words, REGION_PROGRAM);
    w->to->end_element(w->out);
}

void program_write_element(const struct program_language *language, void *out,
                           const tn_expr_program *program,
                           const struct program_class *class, uint32_t first_param)
{
    const struct program_writer_walk w = {
        language, out, program, class, {.first_param = first_param}};
    program_writer_write_element(&w);
}

// Marks the instructions that the indices of those that find four are computed from.
static void mark_positions(const struct program_writer_walk *w,
                           bool needed[TN_EXPR_MAX_INSNS])
{
    memset(needed, 0, TN_EXPR_MAX_INSNS * sizeof(*needed));
    for (uint32_t left = w->program->num_insns; left > 0; left--) {
        const tn_expr_insn *insn = &w->program->insns[left - 1];
        uint32_t operands = needed[left - 1] ? tn_expr_operands(insn->op) : 0;
        const uint32_t from[] = {insn->a, insn->b, insn->c};
        for (uint32_t k = 0; k < operands; k++)
            needed[from[k]] = true;
        if (takes_four(w, left - 1) || (needed[left - 1] && insn->op == TN_EXPR_TAKE))
            needed[insn->b] = true;
    }
}

static void program_writer_write_positions(const struct program_writer_walk *w)
{
    bool needed[TN_EXPR_MAX_INSNS];
    uint32_t word = w->words.first_param;
    mark_positions(w, needed);
    w->to->begin_positions(w->out);
    for (uint32_t i = 0; i < w->program->num_insns; i++) {
        if (takes_four(w, i))
            w->to->operand_position(w->out, i, word);
        if (needed[i])
            write_insn(w, i, word);
        word += param_words(&w->program->insns[i]);
    }
    w->to->end_positions(w->out);
}

// --- loads, stores and indices ---------------------------------------------------------

static void write_positions(const struct program_writer_walk *w)
{
    uint32_t rank = w->class->rank, stride = w->words.first_stride;
    uint32_t num_operands = w->class->num_inputs + w->class->num_outputs;
    if (rank > 0)
        w->to->begin_axes(w->out);
    for (uint32_t axis = rank ? rank - 1 : 0; axis > 0; axis--) {
        uint32_t extent = w->words.first_extent + axis;
        w->to->split(w->out, axis, extent, w->class->divides ? extent + rank + axis : 0);
    }
    if (rank > 0)
        w->to->end_axes(w->out);
    for (uint32_t i = 0; i < num_operands; i++) {
        char access = w->class->access[i];
        bool has_step = access == ACCESS_STRIDED || access == ACCESS_TAKEN;
        w->to->begin_position(w->out, i, 1 + i,
                              access == ACCESS_FLAT || access == ACCESS_LOOSE);
        for (uint32_t axis = 0; access_has_strides(access) && axis < rank; axis++)
            w->to->add_axis(w->out, i, axis, stride + axis);
        w->to->end_position(w->out, i, has_step ? stride + rank - 1 : 0);
        stride += access_has_strides(access) ? rank : 0;
    }
}

static enum program_index index_of(char access)
{
    if (access == ACCESS_SCALAR || access == ACCESS_REPEAT || access == ACCESS_TAKEN_FLAT)
        return PROGRAM_AT;
    return access == ACCESS_STRIDED || access == ACCESS_TAKEN ? PROGRAM_STEPS
                                                              : PROGRAM_BEHIND;
}

static enum program_four four_of(char access)
{
    if (access == ACCESS_FLAT || access == ACCESS_ROW)
        return PROGRAM_WHOLE;
    return access == ACCESS_SCALAR || access == ACCESS_REPEAT ? PROGRAM_SAME : PROGRAM_EACH;
}

// Computes one element.
static void write_single(const struct program_writer_walk *w, uint32_t lane)
{
    const struct program_class *class = w->class;
    const char *access = class->access;
    w->to->begin_outputs(w->out, lane);
    for (uint32_t i = 0; i < class->num_inputs; i++)
        if (!access_is_taken(access[i]))
            w->to->load_input(w->out, i, index_of(access[i]), lane);
    w->to->begin_call(w->out, lane);
    for (uint32_t i = 0; i < class->num_inputs; i++)
        if (access_is_taken(access[i]))
            w->to->pass_position(w->out, i, index_of(access[i]), lane);
        else
            w->to->pass_input(w->out, i, index_of(access[i]), lane);
    w->to->end_call(w->out);
    for (uint32_t i = 0; i < class->num_outputs; i++)
        w->to->output(w->out, i);
    for (uint32_t i = 0; i < class->num_outputs; i++)
        w->to->store(w->out, i, index_of(access[class->num_inputs + i]), lane);
}

// Passes the inputs of one of four elements.
static void pass_lane(const struct program_writer_walk *w, uint32_t lane)
{
    for (uint32_t i = 0; i < w->class->num_inputs; i++)
        if (access_is_taken(w->class->access[i]))
            w->to->pass_position(w->out, i, index_of(w->class->access[i]), lane);
        else
            w->to->pass_lane(w->out, i, lane);
}

static void write_lane(const struct program_writer_walk *w, uint32_t lane)
{
    w->to->begin_call(w->out, lane);
    pass_lane(w, lane);
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (takes_four(w, i))
            w->to->pass_found(w->out, i, lane);
    w->to->end_call(w->out);
    for (uint32_t i = 0; i < w->class->num_outputs; i++)
        w->to->output_of_four(w->out, i, lane);
}

static void write_four(const struct program_writer_walk *w)
{
    const struct program_class *class = w->class;
    for (uint32_t i = 0; i < class->num_inputs; i++)
        if (!access_is_taken(class->access[i]))
            w->to->load_four(w->out, i, four_of(class->access[i]),
                             index_of(class->access[i]));
    w->to->begin_four(w->out);
    if (has_four(w)) {
        w->to->begin_find(w->out);
        pass_lane(w, 0);
        w->to->end_find(w->out);
    }
    for (uint32_t lane = 0; lane < 4; lane++)
        write_lane(w, lane);
    for (uint32_t i = 0; i < class->num_outputs; i++) {
        char access = class->access[class->num_inputs + i];
        bool is_whole = four_of(access) == PROGRAM_WHOLE;
        w->to->store_four(w->out, i, is_whole ? PROGRAM_WHOLE : PROGRAM_EACH,
                          index_of(access));
    }
}

// --- kernels and functions -------------------------------------------------------------

static void write_main(const struct program_writer_walk *w)
{
    w->to->begin_main(w->out);
    write_positions(w);
    if (w->class->per_item == 1)
        write_single(w, 0);
    else if (has_four(w)) { // rows are multiples of four
        w->to->begin_all(w->out);
        write_four(w);
        w->to->end_all(w->out);
    } else {
        w->to->begin_whole(w->out);
        write_four(w);
        w->to->begin_tail(w->out);
        write_single(w, PROGRAM_TAIL);
        w->to->end_tail(w->out);
    }
    w->to->end_main(w->out);
}

static void write_function(const struct program_writer_walk *w)
{
    const struct program_class *class = w->class;
    w->to->begin_function(w->out);
    write_positions(w);
    w->to->begin_outputs(w->out, PROGRAM_ONLY);
    w->to->begin_call(w->out, PROGRAM_ONLY);
    for (uint32_t i = 0; i < class->num_inputs; i++) {
        if (access_is_through(class->access[i]))
            w->to->pass_given(w->out, i);
        else if (access_is_taken(class->access[i]))
            w->to->pass_position(w->out, i, PROGRAM_AT, PROGRAM_ONLY);
        else {
            w->to->load_input(w->out, i, PROGRAM_AT, PROGRAM_ONLY);
            w->to->pass_input(w->out, i, PROGRAM_AT, PROGRAM_ONLY);
        }
    }
    w->to->end_call(w->out);
    for (uint32_t i = 0; i < class->num_outputs; i++) {
        w->to->output(w->out, i);
        if (access_is_through(class->access[class->num_inputs + i]))
            w->to->give(w->out, i);
        else
            w->to->store(w->out, i, PROGRAM_AT, PROGRAM_ONLY);
    }
    w->to->end_function(w->out);
}

void program_write_code(const struct program_language *language, void *out,
                        const tn_expr_program *program, const struct program_class *class)
{
    const struct program_writer_walk w = {language, out, program, class,
                                          program_words_of(program, class)};
    if (has_four(&w))
        program_writer_write_positions(&w);
    program_writer_write_element(&w);
    if (class->is_function)
        write_function(&w);
    else
        write_main(&w);
}
