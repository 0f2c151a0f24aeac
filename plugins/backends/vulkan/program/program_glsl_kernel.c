// SPDX-License-Identifier: MIT
// The language of elementwise programs' kernels that is GLSL. Names by position: r<i> is an
// instruction's value; of an input x<i>, or p<i> where it is gathered from; y<i> an output;
// at<i> and step<i> an operand's position. Of four elements: w<i> are loaded, o<i> are
// stored, q<i> is the position that a TAKE finds and f<i> the elements there, which
// element() gets as t<i>.
#include <stdio.h>
#include "program_glsl.h"

#define MAX_NAME 16

static const char *glsl_insn_type(const struct glsl_writer *w, uint32_t position)
{
    return dtype_glsl(w->program->insns[position].dtype);
}

static const char *glsl_operand_type(const struct glsl_writer *w, uint32_t operand)
{
    return dtype_glsl(glsl_operand_dtype(w, operand));
}

static const char *glsl_output_type(const struct glsl_writer *w, uint32_t output)
{
    return dtype_glsl(w->program->output_dtypes[output]);
}

static bool glsl_takes_four(const struct glsl_writer *w, uint32_t position)
{
    return program_takes_four(w->program, w->class, position);
}

// --- one element -----------------------------------------------------------------------

static void glsl_begin_value(const struct glsl_writer *w, uint32_t position)
{
    const tn_expr_insn *insn = &w->program->insns[position];
    text_add(w->out, "    %sC_%s r%u = ", glsl_qualifier(insn->op, insn->dtype),
             glsl_insn_type(w, position), position);
}

static void glsl_end_value(const struct glsl_writer *w)
{
    text_add(w->out, ";\n");
}

static void glsl_load(void *out, uint32_t position)
{
    const struct glsl_writer *w = out;
    glsl_begin_value(w, position);
    text_add(w->out, "x%u", w->program->insns[position].a);
    glsl_end_value(w);
}

static void glsl_constant(void *out, uint32_t position)
{
    const struct glsl_writer *w = out;
    const tn_expr_insn *insn = &w->program->insns[position];
    glsl_begin_value(w, position);
    glsl_write_constant(w, insn->dtype, w->program->constants[insn->a]);
    glsl_end_value(w);
}

static void glsl_param(void *out, uint32_t position, uint32_t word)
{
    const struct glsl_writer *w = out;
    glsl_begin_value(w, position);
    glsl_write_param(w, w->program->insns[position].dtype, word);
    glsl_end_value(w);
}

static void glsl_index(void *out, uint32_t position)
{
    const struct glsl_writer *w = out;
    glsl_begin_value(w, position);
    text_add(w->out, "int64_t(index)");
    glsl_end_value(w);
}

// The distance to which the index of the TAKE at `position` leads, in elements.
static void glsl_write_distance(const struct glsl_writer *w, uint32_t position,
                                uint32_t word)
{
    const tn_expr_insn *insn = &w->program->insns[position];
    char index[MAX_NAME];
    snprintf(index, sizeof(index), "r%u", insn->b);
    glsl_write_taken(w, w->program->insns[insn->b].dtype, index, word);
}

// Loads from operand insn->a at the index.
static void glsl_take(void *out, uint32_t position, uint32_t word)
{
    const struct glsl_writer *w = out;
    const tn_expr_insn *insn = &w->program->insns[position];
    const char *type = glsl_operand_type(w, insn->a);
    glsl_begin_value(w, position);
    text_add(w->out, "FROM_%s(W_%s(b%u.d[p%u + ", type, type, insn->a, insn->a);
    glsl_write_distance(w, position, word);
    text_add(w->out, "]))");
    glsl_end_value(w);
}

static void glsl_found(void *out, uint32_t position)
{
    const struct glsl_writer *w = out;
    glsl_begin_value(w, position);
    text_add(w->out, "t%u", position);
    glsl_end_value(w);
}

static void glsl_operation(void *out, uint32_t position)
{
    const struct glsl_writer *w = out;
    const tn_expr_insn *insn = &w->program->insns[position];
    const uint32_t operands[] = {insn->a, insn->b, insn->c};
    char text[3][MAX_NAME];
    const char *names[3];
    for (uint32_t i = 0; i < tn_expr_operands(insn->op); i++) {
        snprintf(text[i], sizeof(text[i]), "r%u", operands[i]);
        names[i] = text[i];
    }
    glsl_begin_value(w, position);
    glsl_write_operation(w, insn->op, w->program->insns[insn->a].dtype, insn->dtype, names);
    glsl_end_value(w);
}

static void glsl_begin_branch(void *out, uint32_t position)
{
    const struct glsl_writer *w = out;
    text_add(w->out, "    C_%s r%u;\n    if (r%u) {\n", glsl_insn_type(w, position),
             position, w->program->insns[position].a);
}

static void glsl_other_side(void *out, uint32_t position)
{
    const struct glsl_writer *w = out;
    text_add(w->out, "    r%u = r%u;\n    } else {\n", position,
             w->program->insns[position].b);
}

static void glsl_end_branch(void *out, uint32_t position)
{
    const struct glsl_writer *w = out;
    text_add(w->out, "    r%u = r%u;\n    }\n", position, w->program->insns[position].c);
}

static void glsl_write_inputs(const struct glsl_writer *w)
{
    for (uint32_t i = 0; i < w->program->num_inputs; i++) {
        if (access_is_taken(w->class->access[i]))
            text_add(w->out, ", uint p%u", i);
        else
            text_add(w->out, ", C_%s x%u", dtype_glsl(w->program->input_dtypes[i]), i);
    }
}

static void glsl_begin_element(void *out)
{
    const struct glsl_writer *w = out;
    text_add(w->out, "void element(uint index");
    glsl_write_inputs(w);
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (glsl_takes_four(w, i))
            text_add(w->out, ", C_%s t%u", glsl_insn_type(w, i), i);
    for (uint32_t i = 0; i < w->program->num_outputs; i++)
        text_add(w->out, ", out C_%s y%u", glsl_output_type(w, i), i);
    text_add(w->out, ")\n{\n");
}

static void glsl_end_element(void *out)
{
    const struct glsl_writer *w = out;
    for (uint32_t i = 0; i < w->program->num_outputs; i++)
        text_add(w->out, "    y%u = r%u;\n", i, w->program->outputs[i]);
    text_add(w->out, "}\n");
}

static void glsl_begin_positions(void *out)
{
    const struct glsl_writer *w = out;
    text_add(w->out, "void positions(uint index");
    glsl_write_inputs(w);
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (glsl_takes_four(w, i))
            text_add(w->out, ", out uint q%u", i);
    text_add(w->out, ")\n{\n");
}

static void glsl_position(void *out, uint32_t position, uint32_t word)
{
    const struct glsl_writer *w = out;
    text_add(w->out, "    q%u = p%u + ", position, w->program->insns[position].a);
    glsl_write_distance(w, position, word);
    text_add(w->out, ";\n");
}

static void glsl_end_block(void *out)
{
    text_add(((const struct glsl_writer *)out)->out, "}\n");
}

// --- positions -------------------------------------------------------------------------

static void glsl_begin_axes(void *out)
{
    text_add(((const struct glsl_writer *)out)->out, "    uint rest = i;\n");
}

static void glsl_split(void *out, uint32_t axis, uint32_t extent, uint32_t divisor)
{
    const struct glsl_writer *w = out;
    if (divisor > 0)
        text_add(w->out, "    uint next%u = divide(rest, A(%u), A(%u));\n", axis, divisor,
                 divisor + 1);
    else
        text_add(w->out, "    uint next%u = rest / A(%u);\n", axis, extent);
    text_add(w->out,
             "    uint c%u = rest - next%u * A(%u);\n"
             "    rest = next%u;\n",
             axis, axis, extent, axis);
}

static void glsl_end_axes(void *out)
{
    text_add(((const struct glsl_writer *)out)->out, "    uint c0 = rest;\n");
}

static void glsl_begin_position(void *out, uint32_t operand, uint32_t word,
                                bool adds_number)
{
    const struct glsl_writer *w = out;
    text_add(w->out, "    uint at%u = A(%u)%s", operand, word, adds_number ? " + i" : "");
}

static void glsl_add_axis(void *out, uint32_t operand, uint32_t axis, uint32_t stride)
{
    (void)operand;
    text_add(((const struct glsl_writer *)out)->out, " + c%u * A(%u)", axis, stride);
}

static void glsl_end_position(void *out, uint32_t operand, uint32_t step)
{
    const struct glsl_writer *w = out;
    text_add(w->out, ";\n");
    if (step > 0)
        text_add(w->out, "    uint step%u = A(%u);\n", operand, step);
}

// --- a call of element() ---------------------------------------------------------------

static const char *const lanes[] = {"0u", "1u", "2u", "3u", [PROGRAM_TAIL] = "lane"};

static const char *glsl_indent(uint32_t lane)
{
    return lane == PROGRAM_TAIL ? "        " : "    ";
}

static void glsl_write_index(const struct glsl_writer *w, uint32_t operand,
                             enum program_index index, uint32_t lane)
{
    text_add(w->out, "at%u", operand);
    if (index != PROGRAM_AT)
        text_add(w->out, " + %s", lanes[lane]);
    if (index == PROGRAM_STEPS)
        text_add(w->out, " * step%u", operand);
}

static void glsl_begin_outputs(void *out, uint32_t lane)
{
    const struct glsl_writer *w = out;
    for (uint32_t i = 0; i < w->class->num_outputs; i++)
        text_add(w->out, "%sC_%s y%u;\n", glsl_indent(lane), glsl_output_type(w, i), i);
}

static void glsl_begin_call(void *out, uint32_t lane)
{
    const struct glsl_writer *w = out;
    // Calls for four elements stand in a block.
    bool is_alone = w->class->per_item == 1 || lane == PROGRAM_ONLY;
    text_add(w->out, "%selement(i", is_alone ? "    " : "        ");
    if (lane != PROGRAM_ONLY)
        text_add(w->out, " + %s", lanes[lane]);
}

// Inputs are loaded where they are passed.
static void glsl_load_input(void *out, uint32_t input, enum program_index index,
                            uint32_t lane)
{
    (void)out, (void)input, (void)index, (void)lane;
}

static void glsl_pass_input(void *out, uint32_t input, enum program_index index,
                            uint32_t lane)
{
    const struct glsl_writer *w = out;
    const char *type = glsl_operand_type(w, input);
    text_add(w->out, ", FROM_%s(W_%s(b%u.d[", type, type, input);
    glsl_write_index(w, input, index, lane);
    text_add(w->out, "]))");
}

static void glsl_pass_position(void *out, uint32_t input, enum program_index index,
                               uint32_t lane)
{
    const struct glsl_writer *w = out;
    text_add(w->out, ", ");
    glsl_write_index(w, input, index, lane);
}

static void glsl_write_outputs(const struct glsl_writer *w)
{
    for (uint32_t i = 0; i < w->class->num_outputs; i++)
        text_add(w->out, ", y%u", i);
    text_add(w->out, ");\n");
}

static void glsl_end_call(void *out)
{
    glsl_write_outputs(out);
}

// Outputs are computed where they are stored.
static void glsl_output(void *out, uint32_t number)
{
    (void)out, (void)number;
}

static void glsl_store(void *out, uint32_t number, enum program_index index, uint32_t lane)
{
    const struct glsl_writer *w = out;
    const char *type = glsl_output_type(w, number);
    uint32_t operand = w->class->num_inputs + number;
    text_add(w->out, "%sb%u.d[", glsl_indent(lane), operand);
    glsl_write_index(w, operand, index, lane);
    text_add(w->out, "] = S_%s(TO_%s(y%u));\n", type, type, number);
}

// --- four elements ---------------------------------------------------------------------

static void glsl_load_four(void *out, uint32_t input, enum program_four how,
                           enum program_index index)
{
    const struct glsl_writer *w = out;
    const char *type = glsl_operand_type(w, input);
    text_add(w->out, "        WV_%s w%u = WV_%s(", type, input, type);
    if (how == PROGRAM_WHOLE)
        text_add(w->out, "v%u.d[at%u >> 2]", input, input);
    else if (how == PROGRAM_SAME)
        text_add(w->out, "W_%s(b%u.d[at%u])", type, input, input);
    for (uint32_t lane = 0; how == PROGRAM_EACH && lane < 4; lane++) {
        text_add(w->out, "%sW_%s(b%u.d[", lane ? ", " : "", type, input);
        glsl_write_index(w, input, index, lane);
        text_add(w->out, "])");
    }
    text_add(w->out, ");\n");
}

static void glsl_begin_four(void *out)
{
    const struct glsl_writer *w = out;
    for (uint32_t i = 0; i < w->class->num_outputs; i++) {
        const char *type = glsl_output_type(w, i);
        text_add(w->out, "        WV_%s o%u;\n        C_%s y%u;\n", type, i, type, i);
    }
}

static void glsl_begin_find(void *out)
{
    const struct glsl_writer *w = out;
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (glsl_takes_four(w, i))
            text_add(w->out, "        uint q%u;\n", i);
    text_add(w->out, "        positions(i");
}

static void glsl_end_find(void *out)
{
    const struct glsl_writer *w = out;
    const tn_expr_insn *insns = w->program->insns;
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (glsl_takes_four(w, i))
            text_add(w->out, ", q%u", i);
    text_add(w->out, ");\n");
    for (uint32_t i = 0; i < w->program->num_insns; i++) {
        if (!glsl_takes_four(w, i))
            continue;
        const char *type = glsl_operand_type(w, insns[i].a);
        text_add(w->out, "        WV_%s f%u = WV_%s(v%u.d[q%u >> 2]);\n", type, i, type,
                 insns[i].a, i);
    }
}

static void glsl_pass_lane(void *out, uint32_t input, uint32_t lane)
{
    const struct glsl_writer *w = out;
    text_add(w->out, ", FROM_%s(w%u[%u])", glsl_operand_type(w, input), input, lane);
}

static void glsl_pass_found(void *out, uint32_t position, uint32_t lane)
{
    const struct glsl_writer *w = out;
    text_add(w->out, ", FROM_%s(f%u[%u])",
             glsl_operand_type(w, w->program->insns[position].a), position, lane);
}

static void glsl_output_of_four(void *out, uint32_t number, uint32_t lane)
{
    const struct glsl_writer *w = out;
    text_add(w->out, "        o%u[%u] = TO_%s(y%u);\n", number, lane,
             glsl_output_type(w, number), number);
}

static void glsl_store_four(void *out, uint32_t number, enum program_four how,
                            enum program_index index)
{
    const struct glsl_writer *w = out;
    const char *type = glsl_output_type(w, number);
    uint32_t operand = w->class->num_inputs + number;
    if (how == PROGRAM_WHOLE) {
        text_add(w->out, "        v%u.d[at%u >> 2] = SV_%s(o%u);\n", operand, operand, type,
                 number);
        return;
    }
    for (uint32_t lane = 0; lane < 4; lane++) {
        text_add(w->out, "        b%u.d[", operand);
        glsl_write_index(w, operand, index, lane);
        text_add(w->out, "] = S_%s(o%u[%u]);\n", type, number, lane);
    }
}

// --- main ------------------------------------------------------------------------------

static void glsl_begin_main(void *out)
{
    const struct glsl_writer *w = out;
    text_add(w->out,
             "void main()\n{\n"
             "    uint i = (group_number() * %uu + gl_LocalInvocationIndex) * %uu;\n"
             "    uint n = A(0);\n"
             "    if (i >= n)\n        return;\n",
             PROGRAM_GROUP, w->class->per_item);
}

static void glsl_begin_all(void *out)
{
    text_add(((const struct glsl_writer *)out)->out, "    {\n");
}

static void glsl_begin_whole(void *out)
{
    text_add(((const struct glsl_writer *)out)->out, "    if (n - i >= 4u) {\n");
}

static void glsl_begin_tail(void *out)
{
    text_add(((const struct glsl_writer *)out)->out,
             "    } else for (uint lane = 0u; lane < n - i; lane++) {\n");
}

static void glsl_end_inner_block(void *out)
{
    text_add(((const struct glsl_writer *)out)->out, "    }\n");
}

// --- a function ------------------------------------------------------------------------

// Whether the program's input is the element that the kernel would store, not one that it
// loads.
static bool glsl_is_store(const struct glsl_writer *w)
{
    return program_through(w->class) < w->class->num_inputs;
}

static void glsl_begin_function(void *out)
{
    const struct glsl_writer *w = out;
    const char *type = glsl_operand_type(w, program_through(w->class));
    // A const parameter is passed by value, not by pointer.
    if (w->class->parts > 0)
        text_add(w->out, "void fused(const uint i, const vec%u value)\n{\n",
                 w->class->parts);
    else if (glsl_is_store(w))
        text_add(w->out, "void fused(const uint i, const W_%s value)\n{\n", type);
    else
        text_add(w->out, "W_%s fused(const uint i)\n{\n", type);
}

static void glsl_pass_given(void *out, uint32_t input)
{
    const struct glsl_writer *w = out;
    char access = w->class->access[input];
    if (access_is_part(access))
        text_add(w->out, ", value[%u]", (uint32_t)(access - ACCESS_PART));
    else
        text_add(w->out, ", FROM_%s(value)", glsl_operand_type(w, input));
}

static void glsl_give(void *out, uint32_t number)
{
    const struct glsl_writer *w = out;
    text_add(w->out, "    return TO_%s(y%u);\n", glsl_output_type(w, number), number);
}

// A main calls the function, so that it is compiled.
static void glsl_end_function(void *out)
{
    const struct glsl_writer *w = out;
    text_add(w->out, "}\n");
    if (w->class->parts > 0)
        text_add(w->out, "void main()\n{\n    fused(0u, vec%u(0));\n}\n", w->class->parts);
    else if (glsl_is_store(w))
        text_add(w->out, "void main()\n{\n    fused(0u, W_%s(0));\n}\n",
                 glsl_operand_type(w, program_through(w->class)));
    else
        text_add(w->out, "void main()\n{\n    fused(0u);\n}\n");
}

static const struct program_language glsl = {
    .begin_element = glsl_begin_element,
    .load = glsl_load,
    .constant = glsl_constant,
    .param = glsl_param,
    .index = glsl_index,
    .take = glsl_take,
    .found = glsl_found,
    .operation = glsl_operation,
    .begin_branch = glsl_begin_branch,
    .other_side = glsl_other_side,
    .end_branch = glsl_end_branch,
    .end_element = glsl_end_element,
    .begin_positions = glsl_begin_positions,
    .operand_position = glsl_position,
    .end_positions = glsl_end_block,
    .begin_axes = glsl_begin_axes,
    .split = glsl_split,
    .end_axes = glsl_end_axes,
    .begin_position = glsl_begin_position,
    .add_axis = glsl_add_axis,
    .end_position = glsl_end_position,
    .begin_outputs = glsl_begin_outputs,
    .begin_call = glsl_begin_call,
    .load_input = glsl_load_input,
    .pass_input = glsl_pass_input,
    .pass_position = glsl_pass_position,
    .end_call = glsl_end_call,
    .output = glsl_output,
    .store = glsl_store,
    .load_four = glsl_load_four,
    .begin_four = glsl_begin_four,
    .begin_find = glsl_begin_find,
    .end_find = glsl_end_find,
    .pass_lane = glsl_pass_lane,
    .pass_found = glsl_pass_found,
    .output_of_four = glsl_output_of_four,
    .store_four = glsl_store_four,
    .begin_main = glsl_begin_main,
    .begin_all = glsl_begin_all,
    .end_all = glsl_end_inner_block,
    .begin_whole = glsl_begin_whole,
    .begin_tail = glsl_begin_tail,
    .end_tail = glsl_end_inner_block,
    .end_main = glsl_end_block,
    .begin_function = glsl_begin_function,
    .pass_given = glsl_pass_given,
    .give = glsl_give,
    .end_function = glsl_end_function,
};

void glsl_write_element(struct glsl_writer *w)
{
    program_write_element(&glsl, w, w->program, w->class, w->words.first_param);
}

void program_write_glsl(struct text *out, const char *prelude, const char *complex_prelude,
                        const tn_expr_program *program, const struct program_class *class)
{
    if (class->lanes > 0) {
        program_write_rows_glsl(out, prelude, program, class);
        return;
    }
    struct glsl_writer w = {out, program, class, program_words_of(program, class)};
    text_add(out, "#version 460\n");
    glsl_write_needs(&w);
    text_add(out, "%s", prelude);
    if (program_dtypes(program) & TN_COMPLEX_DTYPES)
        text_add(out, "%s", complex_prelude);
    text_add(out, GLSL_PROGRAM_LINES);
    glsl_write_bindings(&w);
    program_write_code(&glsl, &w, program, class);
}
