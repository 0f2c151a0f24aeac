// SPDX-License-Identifier: MIT
// The language of row programs' kernels that is GLSL: each value is a variable that is
// assigned once. A number stands for a variable, or for a constant.
#include <stdio.h>
#include "program_glsl.h"
#include "program_rows.h"

#define CONSTANT 0x80000000u // flag of a number that is itself the value
#define MAX_NAME 16

struct glsl_rows {
    struct glsl_writer writer; // its text: the body of main
    struct text head;          // before main
    uint32_t num_values;       // variables so far: r1, r2, ..
    uint32_t shared_dtypes;    // set of dtypes that have an array in shared memory
    uint32_t shared_size;
};

static const char *rows_glsl_name_of(uint32_t value, char text[MAX_NAME])
{
    if (value & CONSTANT)
        snprintf(text, MAX_NAME, "%uu", value & ~CONSTANT);
    else
        snprintf(text, MAX_NAME, "r%u", value);
    return text;
}
#define NAME(value) rows_glsl_name_of(value, (char[MAX_NAME]){0})

// Begins the definition of a value.
static uint32_t rows_glsl_define(struct glsl_rows *w, const char *type)
{
    text_add(w->writer.out, "    %s r%u = ", type, ++w->num_values);
    return w->num_values;
}

static uint32_t define_dtype(struct glsl_rows *w, tn_dtype dtype)
{
    char type[MAX_NAME];
    snprintf(type, sizeof(type), "C_%s", dtype_glsl(dtype));
    return rows_glsl_define(w, type);
}

static void rows_glsl_end(struct glsl_rows *w)
{
    text_add(w->writer.out, ";\n");
}

// --- numbers ---------------------------------------------------------------------------

static uint32_t rows_glsl_number(void *out, uint32_t value)
{
    (void)out;
    return value | CONSTANT;
}

static uint32_t rows_glsl_argument(void *out, uint32_t word)
{
    struct glsl_rows *w = out;
    uint32_t value = rows_glsl_define(w, "uint");
    text_add(w->writer.out, "A(%u);\n", word);
    return value;
}

static uint32_t group_number(void *out)
{
    uint32_t value = rows_glsl_define(out, "uint");
    text_add(((struct glsl_rows *)out)->writer.out, "group_number();\n");
    return value;
}

static uint32_t rows_glsl_invocation(void *out)
{
    struct glsl_rows *w = out;
    uint32_t value = rows_glsl_define(w, "uint");
    text_add(w->writer.out, "%s;\n",
             w->writer.class->subgroup > 0
                 ? "gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID"
                 : "gl_LocalInvocationIndex");
    return value;
}

static uint32_t rows_glsl_compute(void *out, enum rows_operator operator, uint32_t a,
                                  uint32_t b)
{
    static const char *const signs[] = {
        [ROWS_ADD] = "+", [ROWS_SUB] = "-", [ROWS_MUL] = "*",
        [ROWS_DIV] = "/", [ROWS_AND] = "&", [ROWS_SHIFT_RIGHT] = ">>"};
    struct glsl_rows *w = out;
    uint32_t value = rows_glsl_define(w, "uint");
    text_add(w->writer.out, "%s %s %s;\n", NAME(a), signs[operator], NAME(b));
    return value;
}

static uint32_t is_less(void *out, uint32_t a, uint32_t b)
{
    struct glsl_rows *w = out;
    uint32_t value = rows_glsl_define(w, "bool");
    text_add(w->writer.out, "%s < %s;\n", NAME(a), NAME(b));
    return value;
}

static uint32_t rows_glsl_both(void *out, uint32_t a, uint32_t b)
{
    struct glsl_rows *w = out;
    uint32_t value = rows_glsl_define(w, "bool");
    text_add(w->writer.out, "%s && %s;\n", NAME(a), NAME(b));
    return value;
}

static uint32_t rows_glsl_choose(void *out, tn_dtype dtype, uint32_t test, uint32_t a,
                                 uint32_t b)
{
    struct glsl_rows *w = out;
    uint32_t value = define_dtype(w, dtype);
    text_add(w->writer.out, "%s ? %s : %s;\n", NAME(test), NAME(a), NAME(b));
    return value;
}

// --- memory ----------------------------------------------------------------------------

static void rows_glsl_load(void *out, uint32_t operand, bool four, uint32_t index,
                           uint32_t *values)
{
    struct glsl_rows *w = out;
    tn_dtype dtype = glsl_operand_dtype(&w->writer, operand);
    const char *type = dtype_glsl(dtype);
    if (!four) {
        values[0] = define_dtype(w, dtype);
        text_add(w->writer.out, "FROM_%s(W_%s(b%u.d[%s]));\n", type, type, operand,
                 NAME(index));
        return;
    }
    uint32_t all = ++w->num_values;
    text_add(w->writer.out, "    WV_%s r%u = WV_%s(v%u.d[%s >> 2]);\n", type, all, type,
             operand, NAME(index));
    for (uint32_t lane = 0; lane < 4; lane++) {
        values[lane] = define_dtype(w, dtype);
        text_add(w->writer.out, "FROM_%s(r%u[%u]);\n", type, all, lane);
    }
}

static void rows_glsl_store(void *out, uint32_t operand, bool four, uint32_t index,
                            const uint32_t *values)
{
    struct glsl_rows *w = out;
    const char *type = dtype_glsl(glsl_operand_dtype(&w->writer, operand));
    if (!four) {
        text_add(w->writer.out, "    b%u.d[%s] = S_%s(TO_%s(%s));\n", operand, NAME(index),
                 type, type, NAME(values[0]));
        return;
    }
    text_add(w->writer.out, "    v%u.d[%s >> 2] = SV_%s(WV_%s(", operand, NAME(index), type,
             type);
    for (uint32_t lane = 0; lane < 4; lane++)
        text_add(w->writer.out, "%sTO_%s(%s)", lane ? ", " : "", type, NAME(values[lane]));
    text_add(w->writer.out, "));\n");
}

// --- instructions ----------------------------------------------------------------------

static uint32_t rows_glsl_constant(void *out, tn_dtype dtype, uint64_t bits)
{
    struct glsl_rows *w = out;
    uint32_t value = define_dtype(w, dtype);
    glsl_write_constant(&w->writer, dtype, bits);
    rows_glsl_end(w);
    return value;
}

static uint32_t rows_glsl_param(void *out, tn_dtype dtype, uint32_t word)
{
    struct glsl_rows *w = out;
    uint32_t value = define_dtype(w, dtype);
    glsl_write_param(&w->writer, dtype, word);
    rows_glsl_end(w);
    return value;
}

static uint32_t rows_glsl_wide(void *out, uint32_t value)
{
    struct glsl_rows *w = out;
    uint32_t result = rows_glsl_define(w, "int64_t");
    text_add(w->writer.out, "int64_t(%s);\n", NAME(value));
    return result;
}

static uint32_t rows_glsl_taken(void *out, tn_dtype dtype, uint32_t index, uint32_t word)
{
    struct glsl_rows *w = out;
    uint32_t result = rows_glsl_define(w, "uint");
    glsl_write_taken(&w->writer, dtype, NAME(index), word);
    rows_glsl_end(w);
    return result;
}

static uint32_t rows_glsl_operation(struct glsl_rows *w, uint32_t op, tn_dtype from,
                                    tn_dtype dtype, const uint32_t *operands)
{
    char text[3][MAX_NAME];
    const char *names[3];
    for (uint32_t i = 0; i < tn_expr_operands(op); i++)
        names[i] = rows_glsl_name_of(operands[i], text[i]);
    char type[2 * MAX_NAME];
    snprintf(type, sizeof(type), "%sC_%s", glsl_qualifier(op, dtype), dtype_glsl(dtype));
    uint32_t value = rows_glsl_define(w, type);
    glsl_write_operation(&w->writer, op, from, dtype, names);
    rows_glsl_end(w);
    return value;
}

static uint32_t rows_glsl_instruction(void *out, uint32_t position, const uint32_t *values)
{
    struct glsl_rows *w = out;
    const tn_expr_insn *insn = &w->writer.program->insns[position];
    const uint32_t positions[] = {insn->a, insn->b, insn->c};
    uint32_t operands[3] = {0};
    for (uint32_t i = 0; i < tn_expr_operands(insn->op); i++)
        operands[i] = values[positions[i]];
    return rows_glsl_operation(w, insn->op, w->writer.program->insns[insn->a].dtype,
                               insn->dtype, operands);
}

static uint32_t rows_glsl_fold(void *out, uint32_t op, tn_dtype dtype, uint32_t a,
                               uint32_t b)
{
    return rows_glsl_operation(out, op, dtype, dtype, (const uint32_t[]){a, b});
}

// --- other invocations -----------------------------------------------------------------

static uint32_t rows_glsl_shuffle(void *out, tn_dtype dtype, uint32_t value, uint32_t mask)
{
    struct glsl_rows *w = out;
    uint32_t result = define_dtype(w, dtype);
    text_add(w->writer.out, "shuffle_xor(%s, %s);\n", NAME(value), NAME(mask));
    return result;
}

static void need_shared(struct glsl_rows *w, tn_dtype dtype)
{
    if (w->shared_dtypes & TN_DTYPE_BIT(dtype))
        return;
    w->shared_dtypes |= TN_DTYPE_BIT(dtype);
    text_add(&w->head, "shared C_%s s_%s[%u];\n", dtype_glsl(dtype), dtype_glsl(dtype),
             w->shared_size);
}

static uint32_t shared_load(void *out, tn_dtype dtype, uint32_t index)
{
    struct glsl_rows *w = out;
    need_shared(w, dtype);
    uint32_t value = define_dtype(w, dtype);
    text_add(w->writer.out, "s_%s[%s];\n", dtype_glsl(dtype), NAME(index));
    return value;
}

static void shared_store(void *out, tn_dtype dtype, uint32_t index, uint32_t value)
{
    struct glsl_rows *w = out;
    need_shared(w, dtype);
    text_add(w->writer.out, "    s_%s[%s] = %s;\n", dtype_glsl(dtype), NAME(index),
             NAME(value));
}

static void rows_glsl_barrier(void *out)
{
    text_add(((struct glsl_rows *)out)->writer.out, "    barrier();\n");
}

// --- control flow ----------------------------------------------------------------------

static uint32_t rows_glsl_variable(void *out, tn_dtype dtype, uint32_t value)
{
    struct glsl_rows *w = out;
    uint32_t result = define_dtype(w, dtype);
    text_add(w->writer.out, "%s;\n", NAME(value));
    return result;
}

static uint32_t rows_glsl_get(void *out, tn_dtype dtype, uint32_t variable_)
{
    return rows_glsl_variable(out, dtype, variable_);
}

static void rows_glsl_set(void *out, uint32_t variable_, uint32_t value)
{
    text_add(((struct glsl_rows *)out)->writer.out, "    %s = %s;\n", NAME(variable_),
             NAME(value));
}

static void begin_if(void *out, uint32_t test)
{
    text_add(((struct glsl_rows *)out)->writer.out, "    if (%s) {\n", NAME(test));
}

static void end_block(void *out)
{
    text_add(((struct glsl_rows *)out)->writer.out, "    }\n");
}

static uint32_t begin_loop(void *out, uint32_t stop, uint32_t step)
{
    struct glsl_rows *w = out;
    uint32_t i = ++w->num_values;
    text_add(w->writer.out, "    for (uint r%u = 0u; r%u < %s; r%u += %s) {\n", i, i,
             NAME(stop), i, NAME(step));
    return i;
}

static const struct rows_language glsl = {
    .number = rows_glsl_number,
    .argument = rows_glsl_argument,
    .group_number = group_number,
    .invocation = rows_glsl_invocation,
    .compute = rows_glsl_compute,
    .is_less = is_less,
    .both = rows_glsl_both,
    .choose = rows_glsl_choose,
    .load = rows_glsl_load,
    .store = rows_glsl_store,
    .constant = rows_glsl_constant,
    .param = rows_glsl_param,
    .wide = rows_glsl_wide,
    .taken = rows_glsl_taken,
    .instruction = rows_glsl_instruction,
    .fold = rows_glsl_fold,
    .shuffle = rows_glsl_shuffle,
    .shared_load = shared_load,
    .shared_store = shared_store,
    .barrier = rows_glsl_barrier,
    .variable = rows_glsl_variable,
    .get = rows_glsl_get,
    .set = rows_glsl_set,
    .begin_if = begin_if,
    .end_if = end_block,
    .begin_loop = begin_loop,
    .end_loop = end_block,
};

// --- the kernel ------------------------------------------------------------------------

// 64-bit values are exchanged as two words: this needs no further feature of the device.
static const char shuffles[] =
    "int shuffle_xor(int v, uint mask) { return subgroupShuffleXor(v, mask); }\n"
    "uint shuffle_xor(uint v, uint mask) { return subgroupShuffleXor(v, mask); }\n"
    "float shuffle_xor(float v, uint mask) { return subgroupShuffleXor(v, mask); }\n"
    "#ifdef NEED_I64\n"
    "uint64_t shuffle_xor(uint64_t v, uint mask)\n"
    "{ return packUint2x32(subgroupShuffleXor(unpackUint2x32(v), mask)); }\n"
    "int64_t shuffle_xor(int64_t v, uint mask)\n"
    "{ return int64_t(shuffle_xor(uint64_t(v), mask)); }\n"
    "#endif\n"
    "#ifdef NEED_F64\n"
    "double shuffle_xor(double v, uint mask)\n"
    "{ return packDouble2x32(subgroupShuffleXor(unpackDouble2x32(v), mask)); }\n"
    "#endif\n";

void program_write_rows_glsl(struct text *out, const char *prelude,
                             const tn_expr_program *program,
                             const struct program_class *class)
{
    struct text body = {0};
    struct glsl_rows w = {.writer = {.out = &body, .program = program, .class = class},
                          .shared_size = rows_shared_size(program, class)};
    bool written = program_write_rows(&glsl, &w, program, class);
    w.writer.out = out;
    w.writer.words.num_args = rows_first_param(class) + program_count_params(program);
    text_add(out, "#version 460\n");
    if (class->subgroup > 0)
        text_add(out, "#extension GL_KHR_shader_subgroup_basic : require\n"
                      "#extension GL_KHR_shader_subgroup_shuffle : require\n");
    glsl_write_needs(&w.writer);
    text_add(out, "%s" GLSL_PROGRAM_LINES, prelude);
    glsl_write_bindings(&w.writer);
    if (class->subgroup > 0)
        text_add(out, "%s", shuffles);
    text_add(out, "%s", w.head.data ? w.head.data : "");
    text_add(out, "void main()\n{\n%s}\n", body.data ? body.data : "");
    out->failed = out->failed || body.failed || w.head.failed || !written;
    text_finish(&body);
    text_finish(&w.head);
}
