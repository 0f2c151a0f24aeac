// SPDX-License-Identifier: MIT
// Cooperative matrices, bfloat16_t and tensors: the instructions and capabilities that
// texts become, and the place and the words of each error.
#include "check.h"
#include "compiler.h"

// The rows' places count from the line behind this.
#define NUM_HEAD_LINES 16
static const char head[] =
    "#version 460\n"
    "#extension GL_KHR_cooperative_matrix : require\n"
    "#extension GL_KHR_memory_scope_semantics : require\n"
    "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
    "#extension GL_EXT_bfloat16 : require\n"
    "#define M(T, rows, columns, use) coopmat<T, gl_ScopeSubgroup, rows, columns, use>\n"
    "#define A(T) M(T, 16, 8, gl_MatrixUseA)\n"
    "#define B(T) M(T, 8, 16, gl_MatrixUseB)\n"
    "#define C(T) M(T, 16, 16, gl_MatrixUseAccumulator)\n"
    "layout(local_size_x = 32) in;\n"
    "layout(constant_id = 0) const uint ROWS = 16;\n"
    "layout(binding = 0) buffer H { float16_t d[]; } h;\n"
    "layout(binding = 1) buffer F { float plain; float d[]; } f;\n"
    "layout(binding = 2) volatile buffer V { u8vec4 d[]; } v;\n"
    "layout(binding = 3) buffer W { bfloat16_t d[]; } w;\n"
    "shared uvec4 s[64];\n";

static struct glsl_result compile(const char *extension, const char *text, bool is_plain)
{
    size_t size = strlen(head) + strlen(extension) + strlen(text) + 2;
    char *all = malloc(size);
    size = (size_t)snprintf(all, size, "%s%s\n%s", head, extension, text);
    struct glsl_source source = {.text = all, .size = size, .name = "main.comp"};
    source.flags = is_plain ? GLSL_NOT_OPTIMISED : 0;
    struct glsl_result result;
    cr_assert(eq(int, glsl_compile(&source, &result), result.words != NULL));
    free(all);
    return result;
}

static unsigned count_of(const struct glsl_result *result, uint32_t op)
{
    unsigned count = 0;
    for (size_t at = 5; at < result->num_words; at += result->words[at] >> 16)
        count += (result->words[at] & 0xffff) == op;
    return count;
}

// Whether an instruction with these first operands is there.
static bool has(const struct glsl_result *result, uint32_t op, unsigned count,
                const uint32_t *operands)
{
    for (size_t at = 5; at < result->num_words; at += result->words[at] >> 16)
        if ((result->words[at] & 0xffff) == op && result->words[at] >> 16 > count &&
            memcmp(&result->words[at + 1], operands, count * sizeof *operands) == 0)
            return true;
    return false;
}

enum {
    OP_CAPABILITY = 17,
    OP_MEMORY_MODEL = 14,
    OP_LOAD = 61,
    OP_STORE = 62,
    TYPE_MATRIX = 4456,
    LOAD = 4457,
    STORE = 4458,
    MULTIPLY = 4459,
    LENGTH = 4460,
    TIMES_SCALAR = 143,
    F_CONVERT = 115,
    S_TO_F = 111,
    F_NEGATE = 127,
    F_ADD = 129,
    F_SUB = 131,
    F_MUL = 133,
    F_DIV = 136,
    CONVERT_USE = 5293,
    LOAD_TENSOR = 5367,
    STORE_TENSOR = 5368,
    CREATE_LAYOUT = 5372,
    CREATE_VIEW = 5377,
    SLICE = 5375,
    MATRIX = 6022,
    BFLOAT16 = 5116,
    BFLOAT16_MATRIX = 5118,
    VULKAN_MODEL = 5345,
    DEVICE_SCOPE = 5346,
    TENSORS = 5433,
    PER_ELEMENT = 5369,
    REDUCE = 5366,
    FUNCTION = 54,
    PER_ELEMENT_NEED = 5432,
    REDUCTIONS = 5430,
    ADDRESSING = 5439,
    CONVERSIONS = 5431,
    INT8 = 39,
    FLOAT16 = 9,
    BUFFER_16 = 4433,
    BUFFER_8 = 4448,
};

#define NV "#extension GL_NV_cooperative_matrix2 : require"

// What each text becomes: instructions with their number, and capabilities besides Shader
// and VulkanMemoryModel, exactly.
static const struct {
    const char *extension, *text;
    struct {
        uint32_t op;
        unsigned count;
    } ops[5];
    uint32_t capabilities[7];
} right[] = {
    {"",
     "void main() { A(float16_t) a; B(float16_t) b; C(float) c = C(float)(0.5);"
     " coopMatLoad(a, h.d, 3, 8, gl_CooperativeMatrixLayoutRowMajor);"
     " coopMatLoad(b, s, 0, 2, gl_CooperativeMatrixLayoutColumnMajor);"
     " coopMatStore(coopMatMulAdd(a, b, c), f.d, 0, 16, "
     "gl_CooperativeMatrixLayoutRowMajor); }",
     {{LOAD, 2}, {STORE, 1}, {MULTIPLY, 1}, {TYPE_MATRIX, 3}},
     {MATRIX, FLOAT16, BUFFER_16}},
    {"",
     "void main() { C(float) c = C(float)(0.5); c = -c; c = c + c * 2.0; c -= c * c; c /= "
     "c;"
     " c[1] += float(c.length()); coopMatStore(c, f.d, 0, 16, 1); }",
     {{F_NEGATE, 1}, {TIMES_SCALAR, 1}, {F_MUL, 1}, {F_DIV, 1}, {LENGTH, 1}},
     {MATRIX}},
    {"",
     "C(float) k[2][2]; C(float) g(C(float) m, inout C(float) n) { n = m; return m * m; }"
     " void main() { k[f.d[0] > 1.0 ? 1 : 0][1] = C(float)(1.0);"
     " C(int) i = C(int)(7); C(float) q = C(float)(i), r; q = g(q, r);"
     " coopMatStore(k[1][0], f.d, 0, 16, 0); coopMatStore(q + r, f.d, 0, 16, 0); }",
     {{STORE, 2}, {F_MUL, 1}, {F_ADD, 1}, {S_TO_F, 1}},
     {MATRIX}},
    {"",
     "void main() { M(int8_t, ROWS, 8, gl_MatrixUseA) a; M(int8_t, 8, 16, gl_MatrixUseB) b;"
     " M(int, ROWS, 16, gl_MatrixUseAccumulator) c; coopMatLoad(a, v.d, 0, 2, 0);"
     " coopMatLoad(b, s, 0, 2, 0); c = M(int, ROWS, 16, gl_MatrixUseAccumulator)(0);"
     " c = coopMatMulAdd(a, b, c, gl_MatrixOperandsSaturatingAccumulation);"
     " coopMatStore(c, f.d, 0, 16, 0); }",
     {{MULTIPLY, 1}, {LOAD, 2}, {TYPE_MATRIX, 3}},
     {MATRIX, INT8, BUFFER_8}},
    {"",
     "void main() { A(bfloat16_t) a; B(bfloat16_t) b; C(float) c; coopMatLoad(a, w.d, 0, "
     "8, 0);"
     " coopMatLoad(b, s, 0, 1, 0); c = coopMatMulAdd(a, b, C(float)(0.0));"
     " coopMatStore(C(bfloat16_t)(c), w.d, 0, 16, 0); }",
     {{MULTIPLY, 1}, {F_CONVERT, 1}, {TYPE_MATRIX, 4}},
     {MATRIX, BFLOAT16, BFLOAT16_MATRIX, BUFFER_16}},
    {"",
     "void main() { bf16vec2 p = bf16vec2(f.d[0], f.d[1]); w.d[0] = p.x;"
     " f.d[2] = float(p.y) * 2.0; w.d[1] = bfloat16_t(f.d[3]); }",
     {{F_CONVERT, 4}, {TYPE_MATRIX, 0}},
     {BFLOAT16, BUFFER_16}},
    {NV,
     "void main() { coopmat<float, gl_ScopeWorkgroup, 16, 16, gl_MatrixUseAccumulator> c;"
     " tensorLayoutNV<2> l = createTensorLayoutNV(2); l = sliceTensorLayoutNV(l, 0, 16, 8, "
     "16);"
     " tensorViewNV<2, true, 1, 0> t = createTensorViewNV(2, true, 1, 0);"
     " coopMatLoadTensorNV(c, f.d, 0, l, t); coopMatStoreTensorNV(c, f.d, 4, l); }",
     {{LOAD_TENSOR, 1},
      {STORE_TENSOR, 1},
      {CREATE_LAYOUT, 1},
      {CREATE_VIEW, 1},
      {SLICE, 1}},
     {MATRIX, TENSORS, ADDRESSING}},
    {NV, // functions that nothing else calls
     "float twice(const in uint row, const in uint column, const in float x) { return x + "
     "x; }"
     " float most(const in float x, const in float y) { return max(x, y); }"
     " void main() { C(float) c = C(float)(1.0), n; coopMatPerElementNV(c, c, twice);"
     " coopMatReduceNV(n, c, gl_CooperativeMatrixReduceRowNV, most);"
     " coopMatStore(n, f.d, 0, 16, 0); }",
     {{PER_ELEMENT, 1}, {REDUCE, 1}, {FUNCTION, 3}},
     {MATRIX, PER_ELEMENT_NEED, REDUCTIONS}},
    {NV,
     "void main() { C(float16_t) c; coopMatLoad(c, h.d, 0, 16, 0);"
     " coopMatStore(M(float16_t, 16, 16, gl_MatrixUseA)(c), h.d, 0, 16, 0); }",
     {{CONVERT_USE, 1}, {F_CONVERT, 0}},
     {MATRIX, FLOAT16, BUFFER_16, CONVERSIONS}},
};

static void check_capabilities(const char *text, const struct glsl_result *result,
                               const uint32_t *wanted)
{
    unsigned num_wanted = 1;
    for (; *wanted != 0; wanted++, num_wanted++)
        cr_assert(has(result, OP_CAPABILITY, 1, wanted), "%s: capability %u", text,
                  *wanted);
    num_wanted += has(result, OP_CAPABILITY, 1, (const uint32_t[]){VULKAN_MODEL});
    cr_assert(eq(uint, count_of(result, OP_CAPABILITY), num_wanted), "%s", text);
}

Test(matrices, instructions)
{
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        for (int is_plain = 0; is_plain < 2; is_plain++) {
            struct glsl_result result =
                compile(right[i].extension, right[i].text, is_plain);
            cr_assert(result.words != NULL, "%s: %s", right[i].text, result.message);
            for (size_t j = 0; j < 5 && right[i].ops[j].op != 0; j++)
                cr_assert(
                    eq(uint, count_of(&result, right[i].ops[j].op), right[i].ops[j].count),
                    "%s: %u", right[i].text, right[i].ops[j].op);
            if (!is_plain) // it keeps all blocks
                check_capabilities(right[i].text, &result, right[i].capabilities);
            bool has_matrix = count_of(&result, TYPE_MATRIX) > 0;
            cr_assert(eq(int, has(&result, OP_MEMORY_MODEL, 2, (const uint32_t[]){0, 3}),
                         has_matrix));
            glsl_result_finish(&result);
        }
}

// --- the memory model --------------------------------------------------------------------

// With matrices, what others see says so; the scope is the qualifier's.
static const struct {
    const char *qualifier, *text;
    uint32_t op, mask; // of the last memory operands
    uint32_t scope;    // 0: none
} model[] = {
    {"", "void main() { C(float) c; x.d[0] = 1.0; }", OP_STORE, 0, 0},
    {"coherent", "void main() { C(float) c; x.d[0] = 1.0; }", OP_STORE, 0x28, 5},
    {"devicecoherent", "void main() { C(float) c; x.d[0] = 1.0; }", OP_STORE, 0x28, 1},
    {"workgroupcoherent", "void main() { C(float) c; x.d[0] = 1.0; }", OP_STORE, 0x28, 2},
    {"subgroupcoherent", "void main() { C(float) c; x.d[0] = 1.0; }", OP_STORE, 0x28, 3},
    {"volatile", "void main() { C(float) c; x.d[0] = 1.0; }", OP_STORE, 0x29, 5},
    {"devicecoherent workgroupcoherent", "void main() { C(float) c; x.d[0] = 1.0; }",
     OP_STORE, 0x28, 1},
    {"coherent", "void main() { x.d[0] = 1.0; }", OP_STORE, 0, 0},
    {"coherent",
     "void main() { C(float) c; coopMatLoad(c, x.d, 0, 16, 0);"
     " coopMatStore(c, f.d, 0, 16, 0); }",
     LOAD, 0x30, 5},
    {"", "void main() { C(float) c = C(float)(0.0); coopMatStore(c, s, 0, 16, 0); }", STORE,
     0x28, 2},
};

static uint32_t value_of(const struct glsl_result *result, uint32_t id)
{
    for (size_t at = 5; at < result->num_words; at += result->words[at] >> 16)
        if ((result->words[at] & 0xffff) == 43 && result->words[at + 2] == id)
            return result->words[at + 3];
    return UINT32_MAX;
}

Test(matrices, memory)
{
    for (size_t i = 0; i < sizeof(model) / sizeof(model[0]); i++) {
        char declared[128];
        snprintf(declared, sizeof(declared),
                 "layout(binding = 4) %s buffer X { float d[]; } x;", model[i].qualifier);
        struct glsl_result result = compile(declared, model[i].text, false);
        cr_assert(result.words != NULL, "%s: %s", model[i].text, result.message);
        unsigned plain = model[i].op == OP_STORE ? 3 : model[i].op == LOAD ? 6 : 5;
        uint32_t mask = UINT32_MAX, scope = 0;
        for (size_t at = 5; at < result.num_words; at += result.words[at] >> 16) {
            uint32_t size = result.words[at] >> 16;
            if ((result.words[at] & 0xffff) != model[i].op)
                continue;
            mask = size > plain ? result.words[at + plain] : 0;
            scope = size > plain + 1 ? value_of(&result, result.words[at + plain + 1]) : 0;
        }
        cr_assert(eq(u32, mask, model[i].mask), "%s %s", model[i].qualifier, model[i].text);
        cr_assert(eq(u32, scope, model[i].scope), "%s %s", model[i].qualifier,
                  model[i].text);
        cr_assert(eq(int, has(&result, OP_CAPABILITY, 1, (const uint32_t[]){DEVICE_SCOPE}),
                     scope == 1));
        glsl_result_finish(&result);
    }
}

// --- errors ------------------------------------------------------------------------------

// clang-format off
static const struct {
    const char *extension, *text;
    int column;
    const char *says;
} wrong[] = {
    {"", "void main() { A(float) a; B(float) b; C(float) c; c = coopMatMulAdd(b, a, c); }",
     69, "operand 1 of 'coopMatMulAdd' is for gl_MatrixUseB, expected gl_MatrixUseA"},
    {"", "void main() { A(float) a; M(float, 16, 16, gl_MatrixUseB) b; C(float) c; c = coopMatMulAdd(a, b, c); }",
     95, "'coopMatMulAdd' has matrices of columns and rows 8 and 16, expected the same"},
    {"", "void main() { A(float) a; B(float) b; M(float, 16, 8, gl_MatrixUseAccumulator) c; c = coopMatMulAdd(a, b, c); }",
     107, "'coopMatMulAdd' has matrices of columns 16 and 8, expected the same"},
    {"", "void main() { A(float) a; B(int) b; C(float) c; c = coopMatMulAdd(a, b, c); }",
     70, "'coopMatMulAdd' has matrices of 'float' and 'int', expected floats or integers"},
    {"", "void main() { A(float) a; C(float) c; c = coopMatMulAdd(a, 1.0, c); }",
     60, "'coopMatMulAdd' has an operand of type 'float', expected a matrix"},
    {"", "void main() { A(float) a; B(float) b; C(float) c; c = coopMatMulAdd(a, b, c, f.d.length()); }",
     82, "the operands of 'coopMatMulAdd' are no constant"},
    {"", "void main() { int i = 3; coopmat<float, i, 16, 16, 0> m; }",
     41, "a parameter of 'coopmat' is no constant integer"},
    {"", "void main() { coopmat<float, gl_ScopeWorkgroup, 16, 16, 0> m; }",
     30, "a parameter of 'coopmat' is 2, expected gl_ScopeSubgroup"},
    {"", "void main() { coopmat<float, gl_ScopeSubgroup, 0, 16, 0> m; }",
     48, "a parameter of 'coopmat' is 0, expected a positive number of rows"},
    {"", "void main() { coopmat<float, gl_ScopeSubgroup, 16, 16, 3> m; }",
     56, "a parameter of 'coopmat' is 3, expected one of gl_MatrixUse*"},
    {"", "void main() { coopmat<bool, gl_ScopeSubgroup, 16, 16, 0> m; }",
     23, "a cooperative matrix of type 'bool', expected a number's type"},
    {"", "void main() { coopmat<float, gl_ScopeSubgroup, 16, 16> m; }",
     54, "found '>', expected ',' and five parameters of 'coopmat'"},
    {"", "void main() { C(float) c; coopMatLoad(c, f.d, 0, 16, f.d.length()); }",
     58, "the layout of 'coopMatLoad' is no constant"},
    {"", "void main() { C(float) c; coopMatLoad(c, f.plain, 0, 16, 0); }",
     44, "'coopMatLoad' has memory of type 'float', expected an array of numbers or vectors"},
    {"", "void main() { C(float) c; float l[256]; coopMatLoad(c, l, 0, 16, 0); }",
     56, "'coopMatLoad' of a variable, expected memory of a buffer or shared"},
    {"", "void main() { coopMatStore(1.0, f.d, 0, 16, 0); }",
     28, "'coopMatStore' has a first argument of type 'float', expected a cooperative matrix"},
    {"", "void main() { C(float) c; A(float) a; c = c + a; }",
     45, "operator '+' has operands of types 'coopmat<float, 3, 16, 16, 2>' and 'coopmat<float, 3, 16, 8, 0>', expected cooperative matrices of one type, or a factor"},
    {"", "void main() { C(float) c; bool b = c == c; }",
     38, "operator '==' has operands of types 'coopmat<float, 3, 16, 16, 2>' and 'coopmat<float, 3, 16, 16, 2>', expected types of known size"},
    {"", "void main() { C(bfloat16_t) c; c = c + c; }",
     38, "bfloat16_t has no arithmetic: convert it to float"},
    {"", "void main() { bfloat16_t c = w.d[0]; c = c * c; }",
     44, "bfloat16_t has no arithmetic: convert it to float"},
    {"", "void main() { C(float) c = C(float)(1.0); c = c % c; }",
     49, "operator '%' has operands of types 'coopmat<float, 3, 16, 16, 2>' and 'coopmat<float, 3, 16, 16, 2>', expected cooperative matrices of one type, or a factor"},
    {"", "void main() { C(int) c = ~C(int)(1); }",
     26, "operator '~' has an operand of type 'coopmat<int, 3, 16, 16, 2>', expected an integer"},
    {"", "void main() { C(float) c = A(float)(1.0); }",
     28, "the initial value is of type 'coopmat<float, 3, 16, 8, 0>', expected 'coopmat<float, 3, 16, 16, 2>'"},
    {"", "void main() { C(float) c = C(float)(A(float)(1.0)); }",
     28, "a cooperative matrix is made of one of another size or scope"},
    {"", "void main() { M(float, 16, 8, gl_MatrixUseAccumulator) c = M(float, 16, 8, gl_MatrixUseAccumulator)(A(float)(1.0)); }",
     60, "'a matrix of another use' needs '#extension GL_NV_cooperative_matrix2 : require'"},
    {"", "layout(binding = 5) buffer Q { C(float) c; } q; void main() { }",
     41, "a block has a member of type 'coopmat<float, 3, 16, 16, 2>'"},
    {"", "void main() { memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsMakeVisible); }",
     72, "these semantics of 'memoryBarrier' need '#pragma use_vulkan_memory_model'"},
    {NV, "void main() { tensorLayoutNV<6> l; }",
     15, "'tensorLayoutNV' has 6 dimensions, expected 1 to 5"},
    {NV, "void main() { tensorViewNV<2, true, 1, 1> l; }",
     15, "axis 1 of a tensor's view is out of range or named twice"},
    {NV, "void main() { tensorViewNV<2, true, 1> l; }",
     15, "a tensor of 2 dimensions has 3 parameters, expected 1, 2 or 4"},
    {NV, "void main() { tensorLayoutNV<2> l = createTensorLayoutNV(2); l = sliceTensorLayoutNV(l, 0, 1); }",
     86, "'sliceTensorLayoutNV' of 2 dimensions has 3 arguments, expected 5"},
    {NV, "void main() { tensorLayoutNV<2> l = createTensorLayoutNV(3); }",
     37, "the initial value is of type 'tensorLayoutNV<3, 0>', expected 'tensorLayoutNV<2, 0>'"},
    {NV, "void main() { tensorLayoutNV<2> l = createTensorLayoutNV(2); l = setTensorViewStrideNV(l, 0, 1); }",
     88, "'setTensorViewStrideNV' has an argument of type 'tensorLayoutNV<2, 0>', expected 'tensorViewNV'"},
    {NV, "void main() { tensorLayoutNV<2> l; coopMatLoadTensorNV(l, f.d, 0, l); }",
     56, "'coopMatLoadTensorNV' has a first argument of type 'tensorLayoutNV<2, 0>', expected a cooperative matrix"},
    {NV, "void main() { C(float) c; coopMatLoadTensorNV(c, f.d, 0, c); }",
     58, "'coopMatLoadTensorNV' has an argument of type 'coopmat<float, 3, 16, 16, 2>', expected 'tensorLayoutNV'"},
};
// clang-format on

Test(matrices, errors)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct glsl_result result = compile(wrong[i].extension, wrong[i].text, false);
        cr_assert(result.words == NULL, "%s compiles", wrong[i].text);
        cr_assert(eq(str, result.message, (char *)wrong[i].says), "%s", wrong[i].text);
        cr_assert(eq(int, result.line, NUM_HEAD_LINES + 2), "%s", wrong[i].text);
        cr_assert(eq(int, result.column, wrong[i].column), "%s", wrong[i].text);
        glsl_result_finish(&result);
    }
}

Test(matrices, needs_extension)
{
    static const char *const texts[][2] = {
        {"coopmat<float, 3, 16, 16, 0> m; void main() { }",
         "'coopmat' needs '#extension GL_KHR_cooperative_matrix : require'"},
        {"bfloat16_t b; void main() { }",
         "'bfloat16_t' needs '#extension GL_EXT_bfloat16 : require'"},
        {"tensorLayoutNV<2> l; void main() { }",
         "'tensorLayoutNV' needs '#extension GL_NV_cooperative_matrix2 : require'"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char text[256];
        int size = snprintf(text, sizeof(text), "#version 460\n%s", texts[i][0]);
        struct glsl_source source = {.text = text, .size = (size_t)size};
        struct glsl_result result;
        cr_assert(eq(int, glsl_compile(&source, &result), false), "%s", text);
        cr_assert(eq(str, result.message, (char *)texts[i][1]));
        cr_assert(eq(int, result.line, 2));
        cr_assert(eq(int, result.column, 1));
        glsl_result_finish(&result);
    }
}
