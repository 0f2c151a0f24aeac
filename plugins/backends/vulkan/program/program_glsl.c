// SPDX-License-Identifier: MIT
// Generates the GLSL of an expression program: a function of straight-line code for one
// element, and a main with the loads and stores of the program's class. program_spirv.c
// generates the same kernel as SPIR-V: change both.
#include "program_glsl.h"

#include <inttypes.h>
#include <stdio.h>
#include <tenon/ops/program.h>
#include "program_rows.h"

#define MAX_PART 32 // bytes of "r255.x"

static bool is_wide(tn_dtype dtype)
{
    return dtype_bytes(dtype) == 8;
}

// The words that an instruction's params take among the arguments.
static uint32_t param_words(const tn_expr_insn *insn)
{
    if (insn->op == TN_EXPR_PARAM)
        return is_wide(tn_dtype_real(insn->dtype)) ? 2 : 1;
    return insn->op == TN_EXPR_TAKE ? 2 : 0;
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
                 w->num_args);
}

// --- one element -----------------------------------------------------------------------

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

static void write_cast(const struct glsl_writer *w, tn_dtype from, tn_dtype dtype,
                       const char *name)
{
    const char *to = dtype_glsl(dtype);
    char part[MAX_PART];
    snprintf(part, sizeof(part), "%s.x", name);
    if (tn_is_complex(from) && dtype != TN_BOOL && !tn_is_complex(dtype))
        write_cast(w, tn_dtype_real(from), dtype, part);
    else if (tn_is_complex(dtype) && !tn_is_complex(from)) {
        text_add(w->out, "C_%s(", to);
        write_cast(w, from, tn_dtype_real(dtype), name);
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

void glsl_write_operation(const struct glsl_writer *w, uint32_t op, tn_dtype from,
                          tn_dtype dtype, const char *const *names)
{
    if (op == TN_EXPR_CAST) {
        write_cast(w, from, dtype, names[0]);
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

static void write_operation(const struct glsl_writer *w, const tn_expr_insn *insn)
{
    const uint32_t operands[] = {insn->a, insn->b, insn->c};
    char text[3][16];
    const char *names[3];
    for (uint32_t i = 0; i < tn_expr_operands(insn->op); i++) {
        snprintf(text[i], sizeof(text[i]), "r%u", operands[i]);
        names[i] = text[i];
    }
    glsl_write_operation(w, insn->op, w->program->insns[insn->a].dtype, insn->dtype, names);
}

void glsl_write_taken(const struct glsl_writer *w, tn_dtype dtype, const char *index,
                      uint32_t at)
{
    text_add(w->out, "taken_%s%u(%s, A(%u)) * A(%u)", tn_is_signed(dtype) ? "i" : "u",
             is_wide(dtype) ? 64 : 32, index, at, at + 1);
}

// Loads from operand insn->a at the index.
static void write_take(const struct glsl_writer *w, const tn_expr_insn *insn, uint32_t at)
{
    const char *type = dtype_glsl(glsl_operand_dtype(w, insn->a));
    char index[MAX_PART];
    snprintf(index, sizeof(index), "r%u", insn->b);
    text_add(w->out, "FROM_%s(W_%s(b%u.d[p%u + ", type, type, insn->a, insn->a);
    glsl_write_taken(w, w->program->insns[insn->b].dtype, index, at);
    text_add(w->out, "]))");
}

// Whether the instruction finds four adjacent elements: element() gets what is there.
static bool takes_four(const struct glsl_writer *w, uint32_t position)
{
    const tn_expr_insn *insn = &w->program->insns[position];
    return insn->op == TN_EXPR_TAKE && w->class->access[insn->a] == ACCESS_TAKEN_FOUR;
}

static void write_insn(const struct glsl_writer *w, uint32_t position, uint32_t *param_at)
{
    const tn_expr_insn *insn = &w->program->insns[position];
    text_add(w->out, "    C_%s r%u = ", dtype_glsl(insn->dtype), position);
    if (takes_four(w, position)) {
        text_add(w->out, "t%u;\n", position);
        *param_at += 2;
        return;
    }
    switch (insn->op) {
    case TN_EXPR_LOAD:
        text_add(w->out, "x%u", insn->a);
        break;
    case TN_EXPR_CONST:
        glsl_write_constant(w, insn->dtype, w->program->constants[insn->a]);
        break;
    case TN_EXPR_PARAM:
        glsl_write_param(w, insn->dtype, *param_at);
        *param_at += is_wide(tn_dtype_real(insn->dtype)) ? 2 : 1;
        break;
    case TN_EXPR_INDEX:
        text_add(w->out, "int64_t(index)");
        break;
    case TN_EXPR_TAKE:
        write_take(w, insn, *param_at);
        *param_at += 2;
        break;
    default:
        write_operation(w, insn);
    }
    text_add(w->out, ";\n");
}

static void write_inputs(const struct glsl_writer *w)
{
    for (uint32_t i = 0; i < w->program->num_inputs; i++) {
        if (access_is_taken(w->class->access[i]))
            text_add(w->out, ", uint p%u", i);
        else
            text_add(w->out, ", C_%s x%u", dtype_glsl(w->program->input_dtypes[i]), i);
    }
}

static bool has_four(const struct glsl_writer *w)
{
    bool any = false;
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        any = any || takes_four(w, i);
    return any;
}

// Marks the instructions that the indices of those that find four are computed from.
static void mark_places(const struct glsl_writer *w, bool needed[TN_EXPR_MAX_INSNS])
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

// The function places(): where each instruction that finds four has the first of them.
static void write_places(const struct glsl_writer *w)
{
    bool needed[TN_EXPR_MAX_INSNS];
    mark_places(w, needed);
    text_add(w->out, "void places(uint index");
    write_inputs(w);
    for (uint32_t i = 0; i < w->program->num_insns; i++)
        if (takes_four(w, i))
            text_add(w->out, ", out uint q%u", i);
    text_add(w->out, ")\n{\n");
    uint32_t param_at = w->first_param;
    for (uint32_t i = 0; i < w->program->num_insns; i++) {
        const tn_expr_insn *insn = &w->program->insns[i];
        char index[MAX_PART];
        snprintf(index, sizeof(index), "r%u", insn->b);
        if (takes_four(w, i)) {
            text_add(w->out, "    q%u = p%u + ", i, insn->a);
            glsl_write_taken(w, w->program->insns[insn->b].dtype, index, param_at);
            text_add(w->out, ";\n");
        }
        if (needed[i])
            write_insn(w, i, &param_at);
        else
            param_at += param_words(insn);
    }
    text_add(w->out, "}\n");
}

void glsl_write_element(const struct glsl_writer *w)
{
    const tn_expr_program *program = w->program;
    text_add(w->out, "void element(uint index");
    write_inputs(w);
    for (uint32_t i = 0; i < program->num_insns; i++)
        if (takes_four(w, i))
            text_add(w->out, ", C_%s t%u", dtype_glsl(program->insns[i].dtype), i);
    for (uint32_t i = 0; i < program->num_outputs; i++)
        text_add(w->out, ", out C_%s y%u", dtype_glsl(program->output_dtypes[i]), i);
    text_add(w->out, ")\n{\n");
    uint32_t param_at = w->first_param;
    for (uint32_t i = 0; i < program->num_insns; i++)
        write_insn(w, i, &param_at);
    for (uint32_t i = 0; i < program->num_outputs; i++)
        text_add(w->out, "    y%u = r%u;\n", i, program->outputs[i]);
    text_add(w->out, "}\n");
}

// --- loads, stores and indices ---------------------------------------------------------

void glsl_write_positions(const struct glsl_writer *w)
{
    uint32_t rank = w->class->rank, stride = w->first_stride;
    uint32_t num_operands = w->class->num_inputs + w->class->num_outputs;
    if (rank > 0)
        text_add(w->out, "    uint rest = i;\n");
    for (uint32_t axis = rank ? rank - 1 : 0; axis > 0; axis--) {
        uint32_t extent = w->first_extent + axis, divisor = extent + rank + axis;
        if (w->class->divides)
            text_add(w->out, "    uint next%u = divide(rest, A(%u), A(%u));\n", axis,
                     divisor, divisor + 1);
        else
            text_add(w->out, "    uint next%u = rest / A(%u);\n", axis, extent);
        text_add(w->out,
                 "    uint c%u = rest - next%u * A(%u);\n"
                 "    rest = next%u;\n",
                 axis, axis, extent, axis);
    }
    if (rank > 0)
        text_add(w->out, "    uint c0 = rest;\n");
    for (uint32_t i = 0; i < num_operands; i++) {
        char access = w->class->access[i];
        text_add(w->out, "    uint at%u = A(%u)", i, 1 + i);
        if (access == ACCESS_FLAT || access == ACCESS_LOOSE)
            text_add(w->out, " + i");
        for (uint32_t axis = 0; access_has_strides(access) && axis < rank; axis++)
            text_add(w->out, " + c%u * A(%u)", axis, stride + axis);
        text_add(w->out, ";\n");
        if (access == ACCESS_STRIDED || access == ACCESS_TAKEN)
            text_add(w->out, "    uint step%u = A(%u);\n", i, stride + rank - 1);
        stride += access_has_strides(access) ? rank : 0;
    }
}

// The index of element `lane` of an invocation in operand `i`.
static void write_index(const struct glsl_writer *w, uint32_t i, const char *lane)
{
    char access = w->class->access[i];
    if (access == ACCESS_SCALAR || access == ACCESS_REPEAT || access == ACCESS_TAKEN_FLAT)
        text_add(w->out, "at%u", i);
    else if (access == ACCESS_STRIDED || access == ACCESS_TAKEN)
        text_add(w->out, "at%u + %s * step%u", i, lane, i);
    else
        text_add(w->out, "at%u + %s", i, lane);
}

// Writes the code for one element. `lane` is a GLSL expression.
static void write_single(const struct glsl_writer *w, const char *indent, const char *lane)
{
    const struct program_class *class = w->class;
    for (uint32_t i = 0; i < class->num_outputs; i++)
        text_add(w->out, "%sC_%s y%u;\n", indent, dtype_glsl(w->program->output_dtypes[i]),
                 i);
    text_add(w->out, "%selement(i + %s", indent, lane);
    for (uint32_t i = 0; i < class->num_inputs; i++) {
        const char *type = dtype_glsl(glsl_operand_dtype(w, i));
        bool is_taken = access_is_taken(class->access[i]);
        if (is_taken)
            text_add(w->out, ", ");
        else
            text_add(w->out, ", FROM_%s(W_%s(b%u.d[", type, type, i);
        write_index(w, i, lane);
        text_add(w->out, is_taken ? "" : "]))");
    }
    for (uint32_t i = 0; i < class->num_outputs; i++)
        text_add(w->out, ", y%u", i);
    text_add(w->out, ");\n");
    for (uint32_t i = 0; i < class->num_outputs; i++) {
        const char *type = dtype_glsl(w->program->output_dtypes[i]);
        text_add(w->out, "%sb%u.d[", indent, class->num_inputs + i);
        write_index(w, class->num_inputs + i, lane);
        text_add(w->out, "] = S_%s(TO_%s(y%u));\n", type, type, i);
    }
}

static void write_load_four(const struct glsl_writer *w, uint32_t i)
{
    const char *type = dtype_glsl(glsl_operand_dtype(w, i));
    char access = w->class->access[i];
    text_add(w->out, "        WV_%s w%u = WV_%s(", type, i, type);
    if (access == ACCESS_FLAT || access == ACCESS_ROW) {
        text_add(w->out, "v%u.d[at%u >> 2]);\n", i, i);
        return;
    }
    if (access == ACCESS_SCALAR || access == ACCESS_REPEAT) {
        text_add(w->out, "W_%s(b%u.d[at%u]));\n", type, i, i);
        return;
    }
    const char *const lanes[] = {"0u", "1u", "2u", "3u"};
    for (uint32_t lane = 0; lane < 4; lane++) {
        text_add(w->out, "%sW_%s(b%u.d[", lane ? ", " : "", type, i);
        write_index(w, i, lanes[lane]);
        text_add(w->out, "])");
    }
    text_add(w->out, ");\n");
}

static void write_store_four(const struct glsl_writer *w, uint32_t output)
{
    uint32_t i = w->class->num_inputs + output;
    const char *type = dtype_glsl(w->program->output_dtypes[output]);
    char access = w->class->access[i];
    if (access == ACCESS_FLAT || access == ACCESS_ROW) {
        text_add(w->out, "        v%u.d[at%u >> 2] = SV_%s(o%u);\n", i, i, type, output);
        return;
    }
    const char *const lanes[] = {"0u", "1u", "2u", "3u"};
    for (uint32_t lane = 0; lane < 4; lane++) {
        text_add(w->out, "        b%u.d[", i);
        write_index(w, i, lanes[lane]);
        text_add(w->out, "] = S_%s(o%u[%u]);\n", type, output, lane);
    }
}

// The inputs of one of four elements, as arguments.
static void write_lane(const struct glsl_writer *w, uint32_t lane)
{
    static const char *const lanes[] = {"0u", "1u", "2u", "3u"};
    for (uint32_t i = 0; i < w->class->num_inputs; i++) {
        text_add(w->out, ", ");
        if (access_is_taken(w->class->access[i]))
            write_index(w, i, lanes[lane]);
        else
            text_add(w->out, "FROM_%s(w%u[%u])", dtype_glsl(glsl_operand_dtype(w, i)), i,
                     lane);
    }
}

// Loads what is found four at a time: f<i>, by instruction.
static void write_taken_four(const struct glsl_writer *w)
{
    const tn_expr_program *program = w->program;
    for (uint32_t i = 0; i < program->num_insns; i++)
        if (takes_four(w, i))
            text_add(w->out, "        uint q%u;\n", i);
    text_add(w->out, "        places(i");
    write_lane(w, 0);
    for (uint32_t i = 0; i < program->num_insns; i++)
        if (takes_four(w, i))
            text_add(w->out, ", q%u", i);
    text_add(w->out, ");\n");
    for (uint32_t i = 0; i < program->num_insns; i++) {
        const char *type = dtype_glsl(glsl_operand_dtype(w, program->insns[i].a));
        if (takes_four(w, i))
            text_add(w->out, "        WV_%s f%u = WV_%s(v%u.d[q%u >> 2]);\n", type, i, type,
                     program->insns[i].a, i);
    }
}

static void write_four(const struct glsl_writer *w)
{
    const struct program_class *class = w->class;
    for (uint32_t i = 0; i < class->num_inputs; i++)
        if (!access_is_taken(class->access[i]))
            write_load_four(w, i);
    for (uint32_t i = 0; i < class->num_outputs; i++) {
        const char *type = dtype_glsl(w->program->output_dtypes[i]);
        text_add(w->out, "        WV_%s o%u;\n        C_%s y%u;\n", type, i, type, i);
    }
    if (has_four(w))
        write_taken_four(w);
    for (uint32_t lane = 0; lane < 4; lane++) {
        text_add(w->out, "        element(i + %uu", lane);
        write_lane(w, lane);
        for (uint32_t i = 0; i < w->program->num_insns; i++)
            if (takes_four(w, i))
                text_add(w->out, ", FROM_%s(f%u[%u])",
                         dtype_glsl(glsl_operand_dtype(w, w->program->insns[i].a)), i,
                         lane);
        for (uint32_t i = 0; i < class->num_outputs; i++)
            text_add(w->out, ", y%u", i);
        text_add(w->out, ");\n");
        for (uint32_t i = 0; i < class->num_outputs; i++)
            text_add(w->out, "        o%u[%u] = TO_%s(y%u);\n", i, lane,
                     dtype_glsl(w->program->output_dtypes[i]), i);
    }
    for (uint32_t i = 0; i < class->num_outputs; i++)
        write_store_four(w, i);
}

static void write_main(const struct glsl_writer *w)
{
    text_add(w->out,
             "void main()\n{\n"
             "    uint i = (group_number() * %uu + gl_LocalInvocationIndex) * %uu;\n"
             "    uint n = A(0);\n"
             "    if (i >= n)\n        return;\n",
             PROGRAM_GROUP, w->class->per_item);
    glsl_write_positions(w);
    if (w->class->per_item == 1) {
        write_single(w, "    ", "0u");
        text_add(w->out, "}\n");
        return;
    }
    if (has_four(w)) { // rows are multiples of four
        text_add(w->out, "    {\n");
        write_four(w);
        text_add(w->out, "    }\n}\n");
        return;
    }
    text_add(w->out, "    if (n - i >= 4u) {\n");
    write_four(w);
    text_add(w->out, "    } else for (uint lane = 0u; lane < n - i; lane++) {\n");
    write_single(w, "        ", "lane");
    text_add(w->out, "    }\n}\n");
}

uint32_t program_count_params(const tn_expr_program *program)
{
    uint32_t words = 0;
    for (uint32_t i = 0; i < program->num_insns; i++)
        words += param_words(&program->insns[i]);
    return words;
}

void glsl_begin(struct glsl_writer *w, struct text *out, const tn_expr_program *program,
                const struct program_class *class)
{
    *w = (struct glsl_writer){.out = out, .program = program, .class = class};
    w->first_extent = 1 + class->num_inputs + class->num_outputs;
    w->first_stride = w->first_extent + program_extent_words(class);
    w->first_param = w->first_stride;
    for (uint32_t i = 0; i < class->num_inputs + class->num_outputs; i++)
        w->first_param += access_has_strides(class->access[i]) ? class->rank : 0;
    w->num_args = w->first_param + program_count_params(program);
}

void program_write_glsl(struct text *out, const char *prelude, const char *complex_prelude,
                        const tn_expr_program *program, const struct program_class *class)
{
    if (class->lanes > 0) {
        program_write_rows_glsl(out, prelude, program, class);
        return;
    }
    struct glsl_writer w;
    glsl_begin(&w, out, program, class);
    text_add(out, "#version 460\n");
    glsl_write_needs(&w);
    text_add(out, "%s", prelude);
    if (program_dtypes(program) & TN_COMPLEX_DTYPES)
        text_add(out, "%s", complex_prelude);
    text_add(out, GLSL_PROGRAM_LINES);
    glsl_write_bindings(&w);
    if (has_four(&w))
        write_places(&w);
    glsl_write_element(&w);
    write_main(&w);
}
