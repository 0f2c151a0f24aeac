// SPDX-License-Identifier: MIT
// The GLSL of a program beside a kernel: a function for one element, and a main that calls
// it so that it is compiled. program_function_spirv.c generates the same as SPIR-V: change
// both.
#include "program_glsl.h"

static bool is_through(const struct glsl_writer *w, uint32_t operand)
{
    return access_is_through(w->class->access[operand]);
}

// Calls element() with what is loaded and what the kernel has.
static void write_call(const struct glsl_writer *w)
{
    const struct program_class *class = w->class;
    for (uint32_t i = 0; i < class->num_outputs; i++)
        text_add(w->out, "    C_%s y%u;\n", dtype_glsl(w->program->output_dtypes[i]), i);
    text_add(w->out, "    element(i");
    for (uint32_t i = 0; i < class->num_inputs; i++) {
        const char *type = dtype_glsl(glsl_operand_dtype(w, i));
        if (access_is_part(class->access[i]))
            text_add(w->out, ", value[%u]", (uint32_t)(class->access[i] - ACCESS_PART));
        else if (is_through(w, i))
            text_add(w->out, ", FROM_%s(value)", type);
        else if (access_is_taken(class->access[i]))
            text_add(w->out, ", at%u", i);
        else
            text_add(w->out, ", FROM_%s(W_%s(b%u.d[at%u]))", type, type, i, i);
    }
    for (uint32_t i = 0; i < class->num_outputs; i++)
        text_add(w->out, ", y%u", i);
    text_add(w->out, ");\n");
}

static void write_function(const struct glsl_writer *w, bool is_output, const char *type)
{
    const struct program_class *class = w->class;
    // Of const parameters the value is passed, not a pointer.
    if (class->parts > 0)
        text_add(w->out, "void fused(const uint i, const vec%u value)\n{\n", class->parts);
    else if (is_output)
        text_add(w->out, "void fused(const uint i, const W_%s value)\n{\n", type);
    else
        text_add(w->out, "W_%s fused(const uint i)\n{\n", type);
    glsl_write_positions(w);
    write_call(w);
    for (uint32_t i = 0; i < class->num_outputs; i++) {
        uint32_t operand = class->num_inputs + i;
        const char *own = dtype_glsl(w->program->output_dtypes[i]);
        if (is_through(w, operand))
            text_add(w->out, "    return TO_%s(y%u);\n", own, i);
        else
            text_add(w->out, "    b%u.d[at%u] = S_%s(TO_%s(y%u));\n", operand, operand, own,
                     own, i);
    }
    text_add(w->out, "}\n");
}

void program_write_function_glsl(struct text *out, const char *prelude,
                                 const char *complex_prelude,
                                 const tn_expr_program *program,
                                 const struct program_class *class)
{
    struct glsl_writer w;
    uint32_t through = program_through(class);
    bool is_output = through < class->num_inputs; // what the kernel would store comes in
    glsl_begin(&w, out, program, class);
    const char *type = dtype_glsl(glsl_operand_dtype(&w, through));
    text_add(out, "#version 460\n");
    glsl_write_needs(&w);
    text_add(out, "%s", prelude);
    if (program_dtypes(program) & TN_COMPLEX_DTYPES)
        text_add(out, "%s", complex_prelude);
    text_add(out, GLSL_PROGRAM_LINES);
    glsl_write_bindings(&w);
    glsl_write_element(&w);
    write_function(&w, is_output, type);
    if (class->parts > 0)
        text_add(out, "void main()\n{\n    fused(0u, vec%u(0));\n}\n", class->parts);
    else if (is_output)
        text_add(out, "void main()\n{\n    fused(0u, W_%s(0));\n}\n", type);
    else
        text_add(out, "void main()\n{\n    fused(0u);\n}\n");
}
