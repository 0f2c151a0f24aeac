// SPDX-License-Identifier: MIT
// Generates the GLSL of a launch of sibling reductions, around the texts that all
// reductions have: an accumulator of all of them, the load of the operands' elements, and
// the function that makes the accumulator of these.
#include "siblings.h"

#include "embedded.h"
#include "../program/program_glsl.h"

struct siblings_writer {
    struct text *out;
    const struct siblings *s;
    enum siblings_role role;
    bool args_in_buffer;
};

// --- the head --------------------------------------------------------------------------

static bool is_op(const struct sibling *own, const char *name)
{
    return own->length == strlen(name) && memcmp(own->op, name, own->length) == 0;
}

// The program before a reduction, for the writers of program_glsl.h. Its params begin at
// word `first_param` of the arguments.
static struct glsl_writer writer_of(const struct siblings_writer *w,
                                    const struct sibling *own, struct program_class *class,
                                    uint32_t first_param)
{
    *class = (struct program_class){.per_item = 1,
                                    .num_inputs = own->before->num_inputs,
                                    .num_outputs = 1,
                                    .is_function = true};
    return (struct glsl_writer){
        w->out, own->before->program, class, {.first_param = first_param}};
}

static void write_needs(const struct siblings_writer *w, bool *out_complex)
{
    uint32_t dtypes = 0;
    for (uint32_t i = 0; i < w->s->count; i++) {
        const struct sibling *own = &w->s->all[i];
        bool is_sum_of_exp = is_op(own, "logsumexp");
        dtypes |=
            TN_DTYPE_BIT(own->in) | TN_DTYPE_BIT(own->out) | TN_DTYPE_BIT(own->computed);
        if (is_op(own, "max") || is_op(own, "min"))
            text_add(w->out, "#define NEED_MAX\n#define NEED_MIN\n");
        if (is_sum_of_exp)
            text_add(w->out, "#define NEED_EXP\n#define NEED_LOG\n");
        if (is_sum_of_exp && own->computed == TN_F64)
            text_add(w->out, "#define NEED_F64_FUNCTIONS\n");
        if (own->before) {
            struct program_class class;
            const struct glsl_writer program = writer_of(w, own, &class, 0);
            glsl_write_needs(&program);
            *out_complex |= program_dtypes(own->before->program) & TN_COMPLEX_DTYPES;
        }
    }
    if (dtypes & (TN_DTYPE_BIT(TN_F64) | TN_DTYPE_BIT(TN_COMPLEX128)))
        text_add(w->out, "#define NEED_F64\n");
    if (dtypes & (TN_DTYPE_BIT(TN_I64) | TN_DTYPE_BIT(TN_U64)))
        text_add(w->out, "#define NEED_I64\n");
}

static void write_args(const struct siblings_writer *w, uint32_t binding,
                       uint32_t num_words)
{
    if (w->args_in_buffer)
        text_add(w->out,
                 "layout(std430, binding = %u) restrict readonly buffer Args { uint d[]; } "
                 "args;\n",
                 binding);
    else
        text_add(w->out, "layout(push_constant) uniform Args { uint d[%u]; } args;\n",
                 num_words);
    text_add(w->out,
             "#define A(i) args.d[i]\n"
             "#define NUM_OUTPUTS A(%d)\n"
             "#define NUM_REDUCED A(%d)\n"
             "#define SPLITS A(%d)\n"
             "layout(local_size_x = %d) in;\n"
             "layout(constant_id = 0) const uint LANES = 1;\n",
             SIBLINGS_ARG_OUTPUTS, SIBLINGS_ARG_REDUCED, SIBLINGS_ARG_SPLITS, REDUCE_GROUP);
}

// --- one reduction ---------------------------------------------------------------------

static void write_operation(const struct siblings_writer *w, uint32_t i,
                            const char *operation)
{
    const struct sibling *own = &w->s->all[i];
    // Bool is computed as a number: the larger of two is one of them.
    const char *computed = own->computed == TN_BOOL ? "u32" : dtype_glsl(own->computed);
    text_add(w->out,
             "#define accumulator accumulator%u\n#define accumulate accumulate%u\n"
             "#define neutral neutral%u\n#define OP_%.*s\n#define IN %s\n#define OUT %s\n"
             "#define ACC C_%s\n",
             i, i, i, (int)own->length, own->op, dtype_glsl(own->in), dtype_glsl(own->out),
             computed);
    if (tn_is_complex(own->in))
        text_add(w->out, "#define IS_COMPLEX\n");
    if (tn_is_float(own->in))
        text_add(w->out, "#define IS_FLOAT\n");
    text_add(w->out,
             "%s#undef accumulator\n#undef accumulate\n#undef neutral\n#undef OP_%.*s\n"
             "#undef IN\n#undef OUT\n#undef ACC\n#undef IS_COMPLEX\n#undef IS_FLOAT\n",
             operation, (int)own->length, own->op);
}

// The function element<i> of the program before reduction i.
static void write_program(const struct siblings_writer *w, uint32_t i, uint32_t first_param)
{
    struct program_class class;
    struct glsl_writer program = writer_of(w, &w->s->all[i], &class, first_param);
    text_add(w->out, "#define element element%u\n", i);
    glsl_write_element(&program);
    text_add(w->out, "#undef element\n");
}

// --- all of them -----------------------------------------------------------------------

// Writes `format` with the number of each reduction, separated by commas.
static void write_each(const struct siblings_writer *w, const char *before,
                       const char *after)
{
    for (uint32_t i = 0; i < w->s->count; i++)
        text_add(w->out, "%s%s%u%s", i ? ", " : "", before, i, after);
}

static void write_accumulator(const struct siblings_writer *w)
{
    text_add(w->out, "struct accumulator {");
    for (uint32_t i = 0; i < w->s->count; i++)
        text_add(w->out, " accumulator%u m%u;", i, i);
    text_add(w->out, " };\naccumulator combine(accumulator a, accumulator b)\n{\n"
                     "    return accumulator(");
    for (uint32_t i = 0; i < w->s->count; i++)
        text_add(w->out, "%scombine(a.m%u, b.m%u)", i ? ", " : "", i, i);
    text_add(w->out, ");\n}\naccumulator neutral_all()\n{\n    return accumulator(");
    write_each(w, "neutral", "()");
    text_add(w->out, ");\n}\n");
}

static void write_bindings(const struct siblings_writer *w)
{
    uint32_t binding = 0;
    for (uint32_t i = 0; w->role != SIBLINGS_SECOND && i < w->s->num_operands; i++)
        text_add(w->out,
                 "layout(std430, binding = %u) readonly buffer B%u { S_%s d[]; } b%u;\n",
                 binding++, i, dtype_glsl(w->s->operands[i].value->layout.dtype), i);
    for (uint32_t i = 0; w->role != SIBLINGS_WHOLE && i < w->s->count; i++)
        text_add(w->out,
                 "layout(std430, binding = %u) buffer P%u { accumulator%u d[]; } p%u;\n",
                 binding++, i, i, i);
    for (uint32_t i = 0; w->role != SIBLINGS_FIRST && i < w->s->count; i++)
        text_add(w->out,
                 "layout(std430, binding = %u) writeonly buffer R%u { S_%s d[]; } r%u;\n",
                 binding++, i, dtype_glsl(w->s->all[i].out), i);
}

// Coordinates c<axis> of element `number` of the axes from `first` up to `end`.
static void write_coordinates(const struct siblings_writer *w, const char *number,
                              uint32_t first, uint32_t end)
{
    text_add(w->out, "    uint rest = %s;\n", number);
    for (uint32_t left = end; left > first; left--) {
        uint32_t axis = left - 1, extent = SIBLINGS_ARGS + axis;
        if (axis == first)
            text_add(w->out, "    uint c%u = rest;\n", axis);
        else
            text_add(w->out,
                     "    uint c%u = rest %% A(%u);\n"
                     "    rest /= A(%u);\n",
                     axis, extent, extent);
    }
}

// Writes the terms that the coordinates add to the position of operand i.
static void write_steps(const struct siblings_writer *w, uint32_t i, uint32_t first,
                        uint32_t end)
{
    uint32_t at = SIBLINGS_ARGS + w->s->num_axes + i * (1 + w->s->num_axes);
    for (uint32_t axis = first; axis < end; axis++)
        text_add(w->out, " + c%u * A(%u)", axis, at + 1 + axis);
}

// Where operand i has the first element of an output: an index, to be continued.
static void siblings_glsl_write_start(const struct siblings_writer *w, uint32_t i)
{
    text_add(w->out, "A(%u)", SIBLINGS_ARGS + w->s->num_axes + i * (1 + w->s->num_axes));
    write_steps(w, i, 0, w->s->num_kept);
}

static const char *operand_type(const struct siblings *s, uint32_t i)
{
    return dtype_glsl(s->operands[i].value->layout.dtype);
}

// `position` has, by operand, the element that all reduced ones share, or where the first
// of these is.
static void siblings_glsl_write_positions(const struct siblings_writer *w)
{
    const struct siblings *s = w->s;
    text_add(w->out, "struct position {");
    for (uint32_t i = 0; i < s->num_operands; i++)
        if (s->operands[i].is_kept)
            text_add(w->out, " W_%s x%u;", operand_type(s, i), i);
        else
            text_add(w->out, " uint at%u;", i);
    text_add(w->out, " };\nposition position_of(uint output_index)\n{\n");
    write_coordinates(w, "output_index", 0, s->num_kept);
    text_add(w->out, "    return position(");
    for (uint32_t i = 0; i < s->num_operands; i++) {
        bool is_kept = s->operands[i].is_kept;
        text_add(w->out, i ? ", " : "");
        if (is_kept)
            text_add(w->out, "W_%s(b%u.d[", operand_type(s, i), i);
        siblings_glsl_write_start(w, i);
        text_add(w->out, is_kept ? "])" : "");
    }
    text_add(w->out, ");\n}\n");
}

static void write_loads(const struct siblings_writer *w)
{
    const struct siblings *s = w->s;
    const char *comma = "";
    text_add(w->out, "struct loaded {");
    for (uint32_t i = 0; i < s->num_operands; i++)
        if (!s->operands[i].is_kept)
            text_add(w->out, " W_%s x%u;", operand_type(s, i), i);
    text_add(w->out, " };\nloaded load(position from, uint output_index, uint r)\n{\n");
    write_coordinates(w, "r", s->num_kept, s->num_axes);
    text_add(w->out, "    return loaded(");
    for (uint32_t i = 0; i < s->num_operands; i++) {
        if (s->operands[i].is_kept)
            continue;
        text_add(w->out, "%sW_%s(b%u.d[from.at%u", comma, operand_type(s, i), i, i);
        write_steps(w, i, s->num_kept, s->num_axes);
        text_add(w->out, "])");
        comma = ", ";
    }
    text_add(w->out, ");\n}\n");
}

// The element of operand i, as it was loaded.
static void write_element_of(const struct siblings_writer *w, uint32_t i)
{
    text_add(w->out, "%s.x%u", w->s->operands[i].is_kept ? "from" : "x", i);
}

// Makes the accumulator of loaded elements, by way of the programs.
static void siblings_glsl_write_taken(const struct siblings_writer *w)
{
    text_add(w->out, "accumulator taken(position from, loaded x, uint r)\n{\n");
    for (uint32_t i = 0; i < w->s->count; i++) {
        const struct sibling *own = &w->s->all[i];
        const char *type = dtype_glsl(own->in);
        if (!own->before) {
            text_add(w->out, "    W_%s y%u = ", type, i);
            write_element_of(w, own->operands[0]);
            text_add(w->out, ";\n");
            continue;
        }
        text_add(w->out, "    C_%s c%u;\n    element%u(0u", type, i, i);
        for (uint32_t k = 0; k < own->before->num_inputs; k++) {
            text_add(w->out, ", FROM_%s(", operand_type(w->s, own->operands[k]));
            write_element_of(w, own->operands[k]);
            text_add(w->out, ")");
        }
        text_add(w->out, ", c%u);\n    W_%s y%u = W_%s(TO_%s(c%u));\n", i, type, i, type,
                 type, i);
    }
    text_add(w->out, "    return accumulator(");
    for (uint32_t i = 0; i < w->s->count; i++)
        text_add(w->out, "%saccumulate%u(y%u, r)", i ? ", " : "", i, i);
    text_add(w->out, ");\n}\n");
}

static void write_loads_of_parts(const struct siblings_writer *w)
{
    text_add(
        w->out,
        "#define position uint\n#define loaded accumulator\n#define taken(from, x, r) (x)\n"
        "uint position_of(uint output_index)\n{\n    return 0u;\n}\n"
        "accumulator load(uint from, uint output_index, uint r)\n{\n"
        "    return accumulator(");
    write_each(w, "p", ".d[output_index + NUM_OUTPUTS * r]");
    text_add(w->out, ");\n}\n");
}

static void siblings_glsl_write_results(const struct siblings_writer *w,
                                        uint32_t first_offset)
{
    text_add(w->out, "void write_result(uint unit, uint output_index, accumulator a)\n{\n");
    for (uint32_t i = 0; i < w->s->count; i++)
        if (w->role == SIBLINGS_FIRST)
            text_add(w->out, "    p%u.d[unit] = a.m%u;\n", i, i);
        else
            text_add(w->out,
                     "    r%u.d[A(%u) + output_index] = S_%s(result_of(a.m%u, A(%d)));\n",
                     i, first_offset + i, dtype_glsl(w->s->all[i].out), i,
                     SIBLINGS_ARG_COUNT);
    text_add(w->out, "}\n");
}

static void siblings_glsl_write_elements(const struct siblings_writer *w,
                                         uint32_t first_param)
{
    for (uint32_t i = 0; i < w->s->count; i++)
        if (w->s->all[i].before) {
            write_program(w, i, first_param);
            first_param += program_count_params(w->s->all[i].before->program);
        }
    siblings_glsl_write_positions(w);
    write_loads(w);
    siblings_glsl_write_taken(w);
}

tn_status siblings_write_glsl(struct text *out, const struct siblings *s,
                              enum siblings_role role, bool args_in_buffer)
{
    const struct siblings_writer w = {out, s, role, args_in_buffer};
    const char *head = glsl_expression(), *complex_head = glsl_complex();
    const char *operation = glsl_reduce_op(), *loop = glsl_reduce_loop();
    uint32_t first_offset =
        SIBLINGS_ARGS + s->num_axes + s->num_operands * (1 + s->num_axes);
    uint32_t first_param = first_offset + s->count, num_words = first_param;
    bool is_complex = false;
    if (!head || !complex_head || !operation || !loop)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->all[i].before)
            num_words += program_count_params(s->all[i].before->program);
    text_add(out, "#version 460\n");
    write_needs(&w, &is_complex);
    text_add(out, "%s%s", head, is_complex ? complex_head : "");
    write_args(&w,
               (role == SIBLINGS_WHOLE ? 0 : s->count) +
                   (role == SIBLINGS_FIRST ? 0 : s->count) +
                   (role == SIBLINGS_SECOND ? 0 : s->num_operands),
               num_words);
    for (uint32_t i = 0; i < s->count; i++)
        write_operation(&w, i, operation);
    text_add(out, "#line 1 \"siblings\"\n");
    write_bindings(&w);
    write_accumulator(&w);
    if (role == SIBLINGS_SECOND)
        write_loads_of_parts(&w);
    else
        siblings_glsl_write_elements(&w, first_param);
    siblings_glsl_write_results(&w, first_offset);
    text_add(out, "%s", loop);
    return out->failed ? TN_ERR_MEMORY : TN_OK;
}
