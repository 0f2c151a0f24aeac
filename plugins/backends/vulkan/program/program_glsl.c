// SPDX-License-Identifier: MIT
// GLSL of what a program's values are: declarations, constants, params, instructions.
#include "program_glsl.h"

#include <stdio.h>

#define MAX_PART 32 // bytes of "r255.x"

static bool is_wide(tn_dtype dtype)
{
    return dtype_bytes(dtype) == 8;
}

// --- declarations ----------------------------------------------------------------------

void glsl_write_needs(const struct glsl_writer *w)
{
    const tn_expr_program *program = w->program;
    uint32_t dtypes = program_dtypes(program);
    bool seen[TN_EXPR_NUM_OPS] = {false};
    if (dtypes & (TN_DTYPE_BIT(TN_I64) | TN_DTYPE_BIT(TN_U64)))
        text_add(w->out, "#define NEED_I64\n");
    if (dtypes & TN_DTYPE_BIT(TN_F64))
        text_add(w->out, "#define NEED_F64\n");
    for (uint32_t i = 0; i < w->class->num_inputs + w->class->num_outputs; i++)
        if (tn_dtype_in(glsl_operand_dtype(w, i), TN_FLOAT8_DTYPES))
            text_add(w->out, "#define NEED_FLOAT8\n");
    if (dtypes & TN_COMPLEX_DTYPES)
        text_add(w->out, "#define NEED_COMPLEX_NUMBERS\n");
    if (program_has_f64_function(program))
        text_add(w->out, "#define NEED_F64_FUNCTIONS\n");
    for (uint32_t i = 0; i < program->num_insns; i++) {
        uint32_t op = program->insns[i].op;
        if (!seen[op])
            text_add(w->out, "#define NEED_%s\n", tn_expr_name(op));
        seen[op] = true;
    }
    if (seen[TN_EXPR_REDUCE_MIN] || seen[TN_EXPR_REDUCE_MAX])
        text_add(w->out, "#define NEED_MIN\n#define NEED_MAX\n");
}

void glsl_write_bindings(const struct glsl_writer *w)
{
    uint32_t num_operands = w->class->num_inputs + w->class->num_outputs;
    text_add(w->out, "layout(local_size_x = %u) in;\n", program_group(w->class));
    for (uint32_t i = 0; i < num_operands; i++) {
        const char *type = dtype_glsl(glsl_operand_dtype(w, i));
        const char *mode = i < w->class->num_inputs ? "readonly" : "writeonly";
        text_add(w->out, "layout(std430, binding = %u) %s buffer B%u { S_%s d[]; } b%u;\n",
                 i, mode, i, type, i);
        if (!tn_is_complex(glsl_operand_dtype(w, i)))
            text_add(w->out,
                     "layout(std430, binding = %u) %s buffer V%u { SV_%s d[]; } v%u;\n", i,
                     mode, i, type, i);
    }
    if (w->class->is_function) // restrict: loaded once for all elements of an invocation
        text_add(w->out,
                 "layout(std430, binding = %u) restrict readonly buffer Args { uint d[]; } "
                 "args;\n"
                 "#define A(i) args.d[i]\n",
                 num_operands);
    else if (w->class->args_in_buffer)
        text_add(w->out,
                 "layout(std430, binding = %u) readonly buffer Args { uint d[]; } args;\n"
                 "layout(push_constant) uniform Start { uint at; } start;\n"
                 "#define A(i) args.d[start.at + i]\n",
                 num_operands);
    else
        text_add(w->out,
                 "layout(push_constant) uniform Args { uint d[%u]; } args;\n"
                 "#define A(i) args.d[i]\n",
                 w->words.num_args);
}

// --- values ----------------------------------------------------------------------------

void glsl_write_constant(const struct glsl_writer *w, tn_dtype dtype, uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    float narrow = (float)value;
    uint32_t word;
    memcpy(&word, &narrow, sizeof(word));
    uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32);
    if (tn_is_complex(dtype)) {
        text_add(w->out, "C_%s(", dtype_glsl(dtype));
        glsl_write_constant(w, tn_dtype_real(dtype), bits);
        text_add(w->out, ", 0)");
        return;
    }
    switch (dtype) {
    case TN_F32:
        text_add(w->out, "uintBitsToFloat(%uu)", word);
        break;
    case TN_F64:
        text_add(w->out, "packDouble2x32(uvec2(%uu, %uu))", low, high);
        break;
    case TN_BOOL:
        text_add(w->out, bits ? "true" : "false");
        break;
    case TN_I64:
    case TN_U64:
        text_add(w->out, "C_%s(packUint2x32(uvec2(%uu, %uu)))", dtype_glsl(dtype), low,
                 high);
        break;
    default:
        text_add(w->out, "C_%s(%uu)", dtype_glsl(dtype), low);
    }
}

void glsl_write_param(const struct glsl_writer *w, tn_dtype dtype, uint32_t at)
{
    if (tn_is_complex(dtype)) {
        text_add(w->out, "C_%s(", dtype_glsl(dtype));
        glsl_write_param(w, tn_dtype_real(dtype), at);
        text_add(w->out, ", 0)");
    } else if (dtype == TN_F32)
        text_add(w->out, "uintBitsToFloat(A(%u))", at);
    else if (dtype == TN_BOOL)
        text_add(w->out, "(A(%u) != 0u)", at);
    else if (dtype == TN_F64)
        text_add(w->out, "packDouble2x32(uvec2(A(%u), A(%u)))", at, at + 1);
    else if (is_wide(dtype))
        text_add(w->out, "C_%s(packUint2x32(uvec2(A(%u), A(%u))))", dtype_glsl(dtype), at,
                 at + 1);
    else
        text_add(w->out, "C_%s(A(%u))", dtype_glsl(dtype), at);
}

// Whether scalar.glsl has a function of its own for the conversion.
static bool has_function(tn_dtype from, tn_dtype to)
{
    if (to == TN_BOOL)
        return from == TN_F32 || tn_is_complex(from);
    if (tn_is_float(from))
        return !tn_is_float(to);
    return tn_is_signed(from) && !is_wide(from) && !tn_is_float(to) && is_wide(to);
}

static void program_glsl_write_cast(const struct glsl_writer *w, tn_dtype from,
                                    tn_dtype dtype, const char *name)
{
    const char *to = dtype_glsl(dtype);
    char part[MAX_PART];
    snprintf(part, sizeof(part), "%s.x", name);
    if (tn_is_complex(from) && dtype != TN_BOOL && !tn_is_complex(dtype))
        program_glsl_write_cast(w, tn_dtype_real(from), dtype, part);
    else if (tn_is_complex(dtype) && !tn_is_complex(from)) {
        text_add(w->out, "C_%s(", to);
        program_glsl_write_cast(w, from, tn_dtype_real(dtype), name);
        text_add(w->out, ", 0)");
    } else if (has_function(from, dtype))
        text_add(w->out, "to_%s(%s)", to, name);
    else if (dtype == TN_BOOL && from == TN_BOOL)
        text_add(w->out, "%s", name);
    else if (dtype == TN_BOOL)
        text_add(w->out, "!(%s == C_%s(0))", name, dtype_glsl(from));
    else
        text_add(w->out, "WRAP_%s(C_%s(%s))", to, to, name);
}

const char *glsl_qualifier(uint32_t op, tn_dtype dtype)
{
    bool is_sum = op == TN_EXPR_ADD || op == TN_EXPR_SUB;
    return is_sum && (tn_dtype_in(dtype, TN_FLOAT_DTYPES) || tn_is_complex(dtype))
               ? "precise "
               : "";
}

void glsl_write_operation(const struct glsl_writer *w, uint32_t op, tn_dtype from,
                          tn_dtype dtype, const char *const *names)
{
    if (op == TN_EXPR_CAST) {
        program_glsl_write_cast(w, from, dtype, names[0]);
        return;
    }
    text_add(w->out, "WRAP_%s(op_%s%s(", dtype_glsl(dtype), tn_expr_name(op),
             from == TN_BOOL       ? "_b"
             : tn_is_complex(from) ? "_c"
                                   : "");
    for (uint32_t i = 0; i < tn_expr_operands(op); i++)
        text_add(w->out, "%s%s", i ? ", " : "", names[i]);
    if (tn_expr_class(op) == TN_EXPR_CLASS_SHIFT)
        text_add(w->out, ", %u", 8 * dtype_bytes(dtype));
    text_add(w->out, "))");
}

void glsl_write_taken(const struct glsl_writer *w, tn_dtype dtype, const char *index,
                      uint32_t at)
{
    text_add(w->out, "taken_%s%u(%s, A(%u)) * A(%u)", tn_is_signed(dtype) ? "i" : "u",
             is_wide(dtype) ? 64 : 32, index, at, at + 1);
}
