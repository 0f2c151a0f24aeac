// SPDX-License-Identifier: MIT
// Run by the build: writes the GLSL of kernels for single operations, as the core compiles
// them, one file each: make_programs PRELUDE OUT-FOLDER.
//
// Every operation of <tenon/expr.h> in f32, the whole-number ones in i32, comparisons,
// selections, casts between common dtypes, and copies of every size; for operands that are
// contiguous, single numbers, and (binary ones and copies) rows repeated or strided.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "program.h"

struct maker {
    const char *folder, *prelude;
    unsigned num_written;
};

static void write_file(struct maker *maker, const tn_expr_program *program,
                       const struct program_class *class)
{
    struct vk_hash hash = program_class_hash(program, class);
    char path[4096];
    struct text text = {0};
    snprintf(path, sizeof(path), "%s/p%016" PRIx64 "%016" PRIx64 ".comp", maker->folder,
             hash.hi, hash.lo);
    program_write_glsl(&text, maker->prelude, program, class);
    FILE *file = fopen(path, "w");
    if (!file || text.failed || fwrite(text.data, 1, text.size, file) != text.size ||
        fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    text_finish(&text);
    maker->num_written++;
}

// Access of each input, then of the output, with as many axes as the strided ones need.
static void write_class(struct maker *maker, const tn_expr_program *program,
                        const char *access, uint32_t rank, uint32_t per_item)
{
    struct program_class class = {.rank = rank,
                                  .per_item = per_item,
                                  .num_inputs = program->num_inputs,
                                  .num_outputs = program->num_outputs};
    memcpy(class.access, access, strlen(access));
    write_file(maker, program, &class);
}

#define MAX_OPERANDS 3
struct operation {
    uint16_t op;
    uint16_t result;
    uint32_t num;
    tn_dtype operands[MAX_OPERANDS];
    tn_dtype memory; // of inputs and output, when it is not what is computed with
};

// Loads in order, then the operation: what the core makes of `op(a, b)`.
static void build(const struct operation *operation, tn_expr_insn *insns, tn_dtype *inputs,
                  tn_dtype *output, uint32_t *position, tn_expr_program *out)
{
    for (uint32_t i = 0; i < operation->num; i++) {
        insns[i] = (tn_expr_insn){TN_EXPR_LOAD, (uint16_t)operation->operands[i], i, 0, 0};
        inputs[i] = operation->operands[i];
    }
    uint32_t num = operation->num;
    if (operation->op != TN_EXPR_LOAD)
        insns[num++] =
            (tn_expr_insn){operation->op, operation->result, 0, operation->num > 1 ? 1 : 0,
                           operation->num > 2 ? 2 : 0};
    *output = operation->memory ? operation->memory : operation->result;
    for (uint32_t i = 0; operation->memory && i < operation->num; i++)
        inputs[i] = operation->memory;
    *position = num - 1;
    *out = (tn_expr_program){.insns = insns,
                             .num_insns = num,
                             .num_inputs = operation->num,
                             .num_outputs = 1,
                             .input_dtypes = inputs,
                             .output_dtypes = output,
                             .outputs = position};
}

static void write_operation(struct maker *maker, const struct operation *operation)
{
    tn_expr_insn insns[MAX_OPERANDS + 1];
    tn_dtype inputs[MAX_OPERANDS], output;
    uint32_t position;
    tn_expr_program program;
    build(operation, insns, inputs, &output, &position, &program);
    if (operation->num == 1) {
        write_class(maker, &program, "FF", 0, 4);
        return;
    }
    if (operation->num == 3) {
        write_class(maker, &program, "FFFF", 0, 4);
        write_class(maker, &program, "FFSF", 0, 4);
        write_class(maker, &program, "FSFF", 0, 4);
        return;
    }
    write_class(maker, &program, "FFF", 0, 4);
    write_class(maker, &program, "FSF", 0, 4);
    write_class(maker, &program, "SFF", 0, 4);
    if (operation->op < TN_EXPR_ADD || operation->op > TN_EXPR_DIV)
        return;
    // A row or a column beside a matrix: biases and normalisations.
    write_class(maker, &program, "FRF", 2, 4);
    write_class(maker, &program, "FBF", 2, 4);
    write_class(maker, &program, "RFF", 2, 4);
    write_class(maker, &program, "BFF", 2, 4);
    write_class(maker, &program, "LXL", 2, 1);
    write_class(maker, &program, "XLL", 2, 1);
}

// Copies, converting: contiguous, filled from one number, and out of strides.
static void write_copy(struct maker *maker, tn_dtype from, tn_dtype to)
{
    static const char *const strided[] = {"XF", "RF", "BF"};
    bool half = from == TN_F16 || from == TN_BF16;
    tn_dtype loaded = half ? TN_F32 : from;
    bool half_out = to == TN_F16 || to == TN_BF16;
    tn_dtype result = half_out ? TN_F32 : to;
    tn_expr_insn insns[2] = {{TN_EXPR_LOAD, (uint16_t)loaded, 0, 0, 0},
                             {TN_EXPR_CAST, (uint16_t)result, 0, 0, 0}};
    uint32_t num = loaded == result ? 1 : 2;
    uint32_t position = num - 1;
    tn_expr_program program = {.insns = insns,
                               .num_insns = num,
                               .num_inputs = 1,
                               .num_outputs = 1,
                               .input_dtypes = &from,
                               .output_dtypes = &to,
                               .outputs = &position};
    write_class(maker, &program, "FF", 0, 4);
    write_class(maker, &program, "SF", 0, 4);
    for (uint32_t rank = 2; from == to && rank <= 4; rank++) {
        for (int i = 0; i < 3; i++)
            write_class(maker, &program, strided[i], rank, 4);
        write_class(maker, &program, "XL", rank, 1);
    }
}

static void write_floats(struct maker *maker)
{
    static const uint8_t operands[] = {
#define OPERANDS(name, text, num) num,
        TN_EXPR_OPS(OPERANDS)
#undef OPERANDS
    };
    for (uint16_t op = TN_EXPR_NEG; op < TN_EXPR_NUM_OPS; op++) {
        bool whole = op == TN_EXPR_NOT || op == TN_EXPR_INVERT ||
                     (op >= TN_EXPR_AND && op <= TN_EXPR_SHR) || op == TN_EXPR_CAST;
        bool to_bool = (op >= TN_EXPR_ISNAN && op <= TN_EXPR_ISFINITE) ||
                       (op >= TN_EXPR_EQ && op <= TN_EXPR_GE);
        if (whole)
            continue;
        struct operation operation = {.op = op,
                                      .result = to_bool ? TN_BOOL : TN_F32,
                                      .num = operands[op],
                                      .operands = {TN_F32, TN_F32, TN_F32}};
        if (op == TN_EXPR_SELECT)
            operation.operands[0] = TN_BOOL;
        write_operation(maker, &operation);
    }
}

static void write_integers(struct maker *maker)
{
    static const uint16_t ops[] = {TN_EXPR_ADD, TN_EXPR_SUB, TN_EXPR_MUL, TN_EXPR_MIN,
                                   TN_EXPR_MAX, TN_EXPR_AND, TN_EXPR_OR,  TN_EXPR_XOR};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        write_operation(maker, &(struct operation){.op = ops[i],
                                                   .result = TN_I32,
                                                   .num = 2,
                                                   .operands = {TN_I32, TN_I32}});
    for (uint16_t op = TN_EXPR_EQ; op <= TN_EXPR_GE; op++)
        write_operation(maker, &(struct operation){.op = op,
                                                   .result = TN_BOOL,
                                                   .num = 2,
                                                   .operands = {TN_I32, TN_I32}});
    for (uint16_t op = TN_EXPR_AND; op <= TN_EXPR_XOR; op++)
        write_operation(maker, &(struct operation){.op = op,
                                                   .result = TN_BOOL,
                                                   .num = 2,
                                                   .operands = {TN_BOOL, TN_BOOL}});
}

static void write_halves(struct maker *maker)
{
    static const tn_dtype halves[] = {TN_F16, TN_BF16};
    for (int i = 0; i < 2; i++)
        for (uint16_t op = TN_EXPR_ADD; op <= TN_EXPR_DIV; op++)
            write_operation(maker, &(struct operation){.op = op,
                                                       .result = TN_F32,
                                                       .num = 2,
                                                       .operands = {TN_F32, TN_F32},
                                                       .memory = halves[i]});
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || fread(text, 1, (1 << 20) - 1, file) == 0) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: make_programs PRELUDE OUT-FOLDER\n");
        return 2;
    }
    char *prelude = read_file(argv[1]);
    struct maker maker = {.folder = argv[2], .prelude = prelude};
    write_floats(&maker);
    write_integers(&maker);
    write_halves(&maker);
    static const tn_dtype common[] = {TN_BOOL, TN_U8, TN_I32, TN_F16, TN_BF16, TN_F32};
    for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
        for (size_t j = 0; j < sizeof(common) / sizeof(common[0]); j++)
            write_copy(&maker, common[i], common[j]);
    free(prelude);
    printf("%u kernels\n", maker.num_written);
    return 0;
}
