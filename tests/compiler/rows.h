// SPDX-License-Identifier: MIT
// Tables of small modules, and what passes make of them.
#ifndef TESTS_COMPILER_ROWS_H
#define TESTS_COMPILER_ROWS_H

#include "spirv_modules.h"

// What every module begins with. %out is an array of uint in a buffer, %in one of another.
static const char head[] = "OpCapability Shader\n"
                           "OpCapability Int64\n"
                           "OpCapability Float64\n"
                           "%glsl = OpExtInstImport \"GLSL.std.450\"\n"
                           "OpMemoryModel Logical GLSL450\n"
                           "OpEntryPoint GLCompute %main \"main\" %id\n"
                           "OpExecutionMode %main LocalSize 8 1 1\n"
                           "OpDecorate %id BuiltIn LocalInvocationIndex\n"
                           "OpDecorate %array ArrayStride 4\n"
                           "OpDecorate %buffer Block\n"
                           "OpMemberDecorate %buffer 0 Offset 0\n"
                           "OpDecorate %out DescriptorSet 0\n"
                           "OpDecorate %out Binding 0\n"
                           "OpDecorate %in DescriptorSet 0\n"
                           "OpDecorate %in Binding 1\n"
                           "OpDecorate %spec SpecId 3\n";
static const char types[] = "%void = OpTypeVoid\n"
                            "%bool = OpTypeBool\n"
                            "%uint = OpTypeInt 32 0\n"
                            "%int = OpTypeInt 32 1\n"
                            "%ulong = OpTypeInt 64 0\n"
                            "%float = OpTypeFloat 32\n"
                            "%double = OpTypeFloat 64\n"
                            "%v2uint = OpTypeVector %uint 2\n"
                            "%v3uint = OpTypeVector %uint 3\n"
                            "%pair = OpTypeStruct %uint %v2uint\n"
                            "%true = OpConstantTrue %bool\n"
                            "%false = OpConstantFalse %bool\n"
                            "%u0 = OpConstant %uint 0\n"
                            "%u1 = OpConstant %uint 1\n"
                            "%u2 = OpConstant %uint 2\n"
                            "%u3 = OpConstant %uint 3\n"
                            "%u4 = OpConstant %uint 4\n"
                            "%u264 = OpConstant %uint 264\n"
                            "%u32 = OpConstant %uint 32\n"
                            "%umax = OpConstant %uint 0xffffffff\n"
                            "%im7 = OpConstant %int -7\n"
                            "%i2 = OpConstant %int 2\n"
                            "%im2 = OpConstant %int -2\n"
                            "%ul0 = OpConstant %ulong 0\n"
                            "%f0 = OpConstant %float 0\n"
                            "%fm0 = OpConstant %float -0.0\n"
                            "%f1 = OpConstant %float 1\n"
                            "%f3h = OpConstant %float 3.5\n"
                            "%f0_1 = OpConstant %float 0.1\n"
                            "%f0_2 = OpConstant %float 0.2\n"
                            "%fbig = OpConstant %float 0x1p+127\n"
                            "%fmin = OpConstant %float 0x1p-126\n"
                            "%fsub = OpConstant %float 0x1p-140\n"
                            "%fnan = OpConstant %float 0x1.8p+128\n"
                            "%d3 = OpConstant %double 3\n"
                            "%null2 = OpConstantNull %v2uint\n"
                            "%c12 = OpConstantComposite %v2uint %u1 %u2\n"
                            "%spec = OpSpecConstant %uint 1\n"
                            "%array = OpTypeRuntimeArray %uint\n"
                            "%buffer = OpTypeStruct %array\n"
                            "%to_buffer = OpTypePointer StorageBuffer %buffer\n"
                            "%to_uint = OpTypePointer StorageBuffer %uint\n"
                            "%to_input = OpTypePointer Input %uint\n"
                            "%out = OpVariable %to_buffer StorageBuffer\n"
                            "%in = OpVariable %to_buffer StorageBuffer\n"
                            "%id = OpVariable %to_input Input\n"
                            "%four = OpTypeArray %uint %u4\n"
                            "%to_local = OpTypePointer Function %uint\n"
                            "%to_float = OpTypePointer Function %float\n"
                            "%to_four = OpTypePointer Function %four\n"
                            "%to_pair = OpTypePointer Function %pair\n"
                            "%to_v2 = OpTypePointer Function %v2uint\n"
                            "%to_shared = OpTypePointer Workgroup %uint\n"
                            "%shared = OpVariable %to_shared Workgroup\n"
                            "%other_shared = OpVariable %to_shared Workgroup\n"
                            "%to_private = OpTypePointer Private %uint\n"
                            "%to_privates = OpTypePointer Private %four\n"
                            "%private = OpVariable %to_private Private %u3\n"
                            "%privates = OpVariable %to_privates Private\n"

                            "%procedure = OpTypeFunction %void\n"
                            "%function = OpTypeFunction %uint %uint\n";

// The body of main begins with these.
static const char start[] = "%main = OpFunction %void None %procedure\n"
                            "%entry = OpLabel\n";
static const char loads[] = "%p0 = OpAccessChain %to_uint %out %u0 %u0\n"
                            "%p1 = OpAccessChain %to_uint %in %u0 %u1\n"
                            "%x = OpLoad %uint %id\n";
static const char finish[] = "OpReturn\nOpFunctionEnd\n";
// Stores a float, or a bool, or a value of 64 bits, into %p0.
#define STORE_F(v) "%bits = OpBitcast %uint " v "\nOpStore %p0 %bits\n"
#define STORE_B(v) "%bits = OpSelect %uint " v " %u3 %u4\nOpStore %p0 %bits\n"

struct row {
    const char *what;
    const char *locals, *body;
    // Parts of the result, one a line: each is in it, or, behind '!', is not; behind a
    // number, as often.
    const char *expected;
    const char *functions; // further ones, or NULL
};

// Whether a text begins with a part, in which @ is a word.
static inline bool begins_with(const char *text, const char *part, size_t size)
{
    for (; size > 0; size--, part++)
        if (*part == '@')
            text += strcspn(text, " \n");
        else if (*text++ != *part)
            return false;
    return true;
}

// How often a text holds a part.
static inline int count_of(const char *text, const char *part, size_t size)
{
    int count = 0;
    for (; *text; text++)
        count += begins_with(text, part, size);
    return count;
}

static inline void check_line(const struct row *row, const char *text, const char *line,
                              size_t size)
{
    const char *part = line;
    int wanted = -1;
    if (*part == '!') {
        wanted = 0;
        part++;
    } else if (*part >= '0' && *part <= '9') {
        wanted = *part - '0';
        part += 2;
    }
    int found = count_of(text, part, size - (size_t)(part - line));
    cr_assert(wanted < 0 ? found > 0 : found == wanted, "%s: %d times: %.*s in\n%s",
              row->what, found, (int)size, line, text);
}

static inline void check_expected(const struct row *row, const char *text)
{
    for (const char *line = row->expected, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        check_line(row, text, line, (size_t)(end - line));
    }
}

static inline void check_row(const struct row *row, uint32_t passes, uint32_t flags)
{
    char *text = NULL;
    const char *more = row->functions ? row->functions : "";
    bool is_precise = strstr(row->body, "%precise") || strstr(more, "%precise");
    cr_assert(ge(int,
                 asprintf(&text, "%s%s%s%s%s%s%s%s%s", head,
                          is_precise ? "OpDecorate %precise NoContraction\n" : "", types,
                          start, row->locals, loads, row->body, finish, more),
                 0));
    size_t num_words;
    uint32_t *words = assemble(text, &num_words);
    validate(row->what, words, num_words);
    struct glsl_result result;
    bool fine = rewrite(words, num_words, passes, flags, &result);
    cr_assert(fine, "%s: %s", row->what, result.message);
    validate(row->what, result.words, result.num_words);
    char *out = disassemble(result.words, result.num_words);
    cr_assert(ne(ptr, out, NULL));
    check_expected(row, out);
    free(out);
    free(result.words);
    free(words);
    free(text);
}

static inline void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_row(&rows[i], PASS_ALL, 0);
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))
#define INTEGERS(op, a, b) "%r = Op" op " %uint " a " " b "\nOpStore %p0 %r\n"

#endif // TESTS_COMPILER_ROWS_H
