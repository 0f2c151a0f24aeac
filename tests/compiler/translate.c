// SPDX-License-Identifier: MIT
// The kernel compiler's front end: the place and the words of each error, the values of
// constant expressions, and an end in bounded time and memory for hostile texts.
#include "check.h"
#include "compiler.h"

#include <stdlib.h>
#include <time.h>

// Five lines: the rows' places count from the line behind them.
#define HEAD                                                                               \
    "#version 460\n"                                                                       \
    "layout(local_size_x = 1) in;\n"                                                       \
    "layout(std430, binding = 0) buffer B { uint u; int i; float f; vec4 v; readonly "     \
    "uint r;"                                                                              \
    " bool ok; uint arr[]; } b;\n"                                                         \
    "struct S { vec3 a; int k[2]; };\n"                                                    \
    "layout(constant_id = 1) const int SP = 3;\n"

static struct glsl_result compile(const char *head, const char *text, uint32_t flags)
{
    size_t size = strlen(head) + strlen(text);
    char *all = malloc(size + 1);
    snprintf(all, size + 1, "%s%s", head, text);
    struct glsl_source source = {
        .text = all, .size = size, .name = "main.comp", .flags = flags};
    struct glsl_result result;
    cr_assert(eq(int, glsl_compile(&source, &result), result.words != NULL));
    free(all);
    return result;
}

// --- the device's capabilities ---------------------------------------------------------

#define EXTENSIONS                                                                         \
    "#version 460\n"                                                                       \
    "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"                       \
    "#extension GL_EXT_shader_atomic_int64 : require\n"                                    \
    "#extension GL_EXT_shader_atomic_float : require\n"                                    \
    "#extension GL_KHR_shader_subgroup_arithmetic : require\n"                             \
    "layout(binding = 0) buffer B { uint u; float f; uint64_t l; } b;\n"

// What the device has not is named, where the shader needs it first.
Test(translate, capabilities_that_the_target_lacks)
{
    static const struct {
        const char *text, *says; // NULL: nothing is lacking
        int line, column;
    } rows[] = {
        {"void main() { b.u = 1u; }", NULL, 0, 0},
        {"void main() {\nb.f = float(double(b.f) * 2.0lf);\n}", "Float64 (10 of SPIR-V)", 2,
         27},
        {"void main() {\n\natomicAdd(b.l, 1ul);\n}", "Int64Atomics (12 of SPIR-V)", 3, 19},
        {"void main() {\natomicAdd(b.f, 1.0);\n}", "AtomicFloat32AddEXT (6033 of SPIR-V)",
         2, 19},
        {"void main() {\nb.u = subgroupAdd(b.u);\n}", "GroupNonUniform (61 of SPIR-V)", 2,
         22},
    };
    static const uint32_t has[] = {0, 1, 11}; // Matrix, Shader, Int64
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[1024], says[128];
        int size = snprintf(text, sizeof(text), EXTENSIONS "%s", rows[i].text);
        struct glsl_source source = {
            .text = text, .size = (size_t)size, .capabilities = has};
        struct glsl_result result;
        source.num_capabilities = sizeof(has) / sizeof(has[0]);
        cr_assert(eq(int, glsl_compile(&source, &result), rows[i].says == NULL), "%s",
                  text);
        snprintf(says, sizeof(says),
                 "this needs the capability %s, which the device does not have",
                 rows[i].says ? rows[i].says : "");
        cr_assert(eq(str, result.message, rows[i].says ? says : (char *)""), "%s", text);
        cr_assert(eq(int, result.line, rows[i].line + 6 * (rows[i].says != NULL)), "%s",
                  text);
        cr_assert(eq(int, result.column, rows[i].column), "%s", text);
        glsl_result_finish(&result);
    }
}
#undef EXTENSIONS

// --- errors ------------------------------------------------------------------------------

// clang-format off
static const struct {
    const char *text;
    int line, column; // 0, 0: of the whole shader
    const char *says;
} wrong[] = {
    {"void main() { b.u = x; }",
     1, 21, "'x' is not declared"},
    {"void main() { b.u = f(1); }",
     1, 21, "function 'f' is not declared"},
    {"float f(float a, vec2 c) { return a; } void main() { b.f = f(1.0); }",
     1, 60, "no 'f' fits arguments (float), expected (float, vec2)"},
    {"float f(float a) { return a; } void main() { b.f = f(true); }",
     1, 52, "no 'f' fits arguments (bool), expected (float)"},
    {"void main() { b.f = sin(true); }",
     1, 21, "no 'sin' fits arguments (bool), expected (float)"},
    {"void main() { b.f = sin(1.0, 2.0); }",
     1, 21, "no 'sin' fits arguments (float, float), expected (float)"},
    {"void main() { b.f = min(1.0, vec2(2)); }",
     1, 21, "no 'min' fits arguments (float, vec2), expected (number, number) or (number, scalar)"},
    {"void main() { const int c = 1; c = 2; }",
     1, 32, "'c' is constant, expected something that operator = can write"},
    {"void main() { b.r = 2u; }",
     1, 17, "'r' is readonly, expected something that operator = can write"},
    {"void main() { (b.u + 1u) = 2u; }",
     1, 20, "a value is no variable, expected something that operator = can write"},
    {"void main() { gl_LocalInvocationID.x = 2u; }",
     1, 36, "'gl_LocalInvocationID' is constant, expected something that operator = can write"},
    {"float f() { } void main() { }",
     1, 13, "'f' returns no value, expected one of type 'float'"},
    {"float f() { return; } void main() { }",
     1, 13, "'return' has no value, expected one of type 'float'"},
    {"void f() { return 1; } void main() { }",
     1, 12, "'return' has a value, and 'f' has no result"},
    {"void main() { b.u = 1.5; }",
     1, 21, "the assigned value is of type 'float', expected 'uint'"},
    {"void main() { int a = 1u; }",
     1, 23, "the initial value is of type 'uint', expected 'int'"},
    {"void main() { b.u = 1u }",
     1, 24, "found '}', expected ';' behind a statement"},
    {"void main() { b.u = 1u;",
     1, 24, "found the end of the source, expected '}'"},
    {"int8_t f() { return int8_t(1); } void main() {}",
     1, 1, "'int8_t' needs '#extension GL_EXT_shader_8bit_storage : require'"},
    {"void main() { int64_t a; }",
     1, 15, "'int64_t' needs '#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require'"},
    {"void main() { [[unroll]] for (;;) break; }",
     1, 15, "'[[...]]' needs '#extension GL_EXT_control_flow_attributes : require'"},
    {"void f() { f(); } void main() { f(); }",
     1, 12, "'f' calls itself, which GLSL does not have"},
    {"void g(); void f() { g(); } void g() { f(); } void main() { f(); }",
     1, 22, "'g' calls itself by others, which GLSL does not have"},
    {"void g(); void main() { g(); }",
     1, 25, "'g' is called, and has no body"},
    {"void main() { float a[3]; a[3] = 1.0; }",
     1, 29, "the index 3 is out of range, expected less than 3"},
    {"void main() { vec3 a; a[-1] = 1.0; }",
     1, 25, "the index -1 is negative"},
    {"void main() { vec3 a; a.xw = vec2(1); }",
     1, 25, "'xw' is no swizzle of type 'vec3'"},
    {"void main() { vec3 a; a.xx = vec2(1); }",
     1, 25, "a component is written twice by operator ="},
    {"void main() { vec3 a; a.foo = 1; }",
     1, 25, "'foo' is no swizzle of type 'vec3'"},
    {"void main() { int a; float a; }",
     1, 28, "'a' is declared twice: it is a variable of line 6"},
    {"struct T { int a; float a; }; void main() { }",
     1, 25, "'a' is a member twice: see line 6"},
    {"void main() { sampler2D s; }",
     1, 15, "'sampler2D' is reserved or not supported, expected an expression"},
    {"uniform sampler2D s; void main() { }",
     1, 9, "'sampler2D' is not supported, expected a type"},
    {"void main() { texture(1); }",
     1, 15, "function 'texture' is not supported"},
    {"void main() { goto x; }",
     1, 15, "'goto' is reserved or not supported, expected an expression"},
    {"void main() { if (1) b.u = 1u; }",
     1, 19, "the condition of 'if' is of type 'int', expected 'bool'"},
    {"void main() { b.u = true ? 1u : vec2(1); }",
     1, 26, "?: chooses between types 'uint' and 'vec2', expected one type"},
    {"void main() { b.v = b.v + true; }",
     1, 25, "operator '+' has operands of types 'vec4' and 'bool', expected numbers"},
    {"void main() { b.v = b.v % 2; }",
     1, 25, "operator '%' has operands of types 'vec4' and 'int', expected integers"},
    {"void main() { b.u = b.v < b.v; }",
     1, 25, "operator '<' has operands of types 'vec4' and 'vec4', expected scalars: vectors have lessThan() and so on"},
    {"void main() { b.v = vec4(1, 2); }",
     1, 21, "'vec4' is made of 2 components, expected 4"},
    {"void main() { b.v = vec4(1, 2, 3, 4, 5); }",
     1, 38, "'vec4' is made of too many values, expected 4"},
    {"void main() { S s = S(vec3(1)); }",
     1, 21, "'S' is made of 1 values, expected 2"},
    {"void main() { S s = S(vec3(1), 2); }",
     1, 32, "a member is of type 'int', expected 'int[2]'"},
    {"void main() { break; }",
     1, 15, "'break' is outside of a loop or switch"},
    {"void main() { continue; }",
     1, 15, "'continue' is outside of a loop"},
    {"void main() { switch (b.i) { case 1: case 1: ; } }",
     1, 38, "a switch has two cases of 1"},
    {"void main() { switch (b.f) { case 1: ; } }",
     1, 25, "a switch is over type 'float', expected an integer"},
    {"void main() { switch (b.i) { b.i = 1; } }",
     1, 30, "found 'b', expected a case"},
    {"layout(std430, binding=0) buffer C { uint x; }; layout(std430) buffer D { uint y; }; void main() {}",
     1, 49, "block 'D' has no binding, expected 'layout(binding = ...)'"},
    {"layout(local_size_y=0) in; void main() {}",
     1, 8, "'local_size_y' is 0, expected at least 1"},
    {"layout(location=0) in; void main() {}",
     1, 8, "layout 'location' is not supported"},
    {"int main() { }",
     1, 5, "main() has parameters or a result, expected 'void main()'"},
    {"void f() {}",
     0, 0, "the shader has no 'void main()'"},
    {"const float a = b.f; void main() {}",
     1, 19, "constant 'a' has no constant value"},
    {"void main() { float a[b.i]; }",
     1, 23, "the size of an array is no constant integer"},
    {"void main() { float a[0]; }",
     1, 23, "the size of an array is 0, expected 1 to 2147483647"},
    {"void main() { b.arr = b.arr; }",
     1, 21, "an array without a size is assigned, expected an element"},
    {"void main() { uint a = b.arr.length; }",
     1, 30, "a value of type 'uint[]' has no member 'length'"},
    {"void main() { barrier; }",
     1, 15, "'barrier' is a function, expected '(' behind it"},
    {"void main() { main(); }",
     1, 15, "'main' calls itself, which GLSL does not have"},
    {"void main() { S = 1; }",
     1, 17, "found '=', expected a name to declare"},
    {"void main() { discard; }",
     1, 15, "found 'discard', expected a statement"},
    {"void main() { int gl_x; }",
     1, 19, "'gl_x' begins with gl_, which is reserved for built-in names"},
    {"void main() { atomicAdd(b.f, 1.0); }",
     1, 15, "'atomicAdd' needs '#extension GL_EXT_shader_atomic_float : require'"},
    {"void main() { uint x; atomicAdd(x, 1u); }",
     1, 23, "'atomicAdd' of a local variable, expected one in a buffer or shared"},
    {"void main() { b.u = subgroupAdd(1u); }",
     1, 21, "'subgroupAdd' needs '#extension GL_KHR_shader_subgroup_arithmetic : require'"},
    {"void main() { b.u = gl_SubgroupSize; }",
     1, 21, "'gl_SubgroupSize' needs '#extension GL_KHR_shader_subgroup_basic : require'"},
    {"void main() { ++b.u++; }",
     1, 20, "a value is no variable, expected something that ++ can write"},
    {"void main() { void x; }",
     1, 20, "variable 'x' is of type 'void'"},
    {"void f(int a, int a) { } void main() {}",
     1, 19, "'a' is declared twice: it is a variable of line 6"},
    {"int f(int a) { return 1; } float f(int a) { return 1.0; } void main() {}",
     1, 34, "'f' returns 'float', expected 'int' as on line 6"},
    {"void f(int a) { } void f(int a) { } void main() {}",
     1, 24, "'f' has two bodies with the same parameters"},
    {"void main() { else b.u = 1u; }",
     1, 15, "found 'else', expected a statement"},
    {"void main() { do b.u = 1u; }",
     1, 28, "found '}', expected 'while' behind the body of 'do'"},
    {"float f(int a) {return 1.0;} float f(uint a) {return 2.0;} void main() { b.f = f(1.0); }",
     1, 80, "no 'f' fits arguments (float), expected (uint) or (int)"},
    {"void main() { int x = int[](1,2)[2]; }",
     1, 34, "the index 2 is out of range, expected less than 2"},
    {"void main() { int a[2] = {1, 2, 3}; }",
     1, 26, "'int[2]' is made of 3 values, expected 2"},
    {"void main() { b.u = 08u; }",
     1, 21, "'08u' is no number: expected octal digits behind the leading 0"},
    {"void main() { b.u = (1u; }",
     1, 24, "found ';', expected ')' behind an expression"},
    {"void main() { b.u = 1u +; }",
     1, 25, "found ';', expected an expression"},
    {"void main() { int if = 1; }",
     1, 19, "'if' is a keyword, expected a name to declare"},
    {"void f(in float x) const { } void main() { }",
     1, 20, "found 'const', expected '{' before the function's body"},
    {"void main() { ((((b.u)))) = 1u; b.u = b.u.x.xxx; }",
     1, 45, "the assigned value is of type 'uvec3', expected 'uint'"},
    {"void main() { mat3 m = mat3(1) * vec2(1); }",
     1, 32, "operator '*' has operands of types 'mat3' and 'vec2', expected matching sizes"},
    {"void main() { b.u = uint(); }",
     1, 21, "'uint' is made of no values, expected at least one"},
    {"shared float s = 1.0; void main() { }",
     1, 14, "shared variable 's' has a value"},
    {"layout(constant_id=2) const vec2 c = vec2(1); void main() { }",
     1, 34, "specialisation constant 'c' is not of a scalar type with a constant value"},
    {"layout(constant_id=1) const float c = 1.0; void main() { }",
     1, 35, "constant_id 1 is declared twice, with different types"},
    {"void main() { out float x; }",
     1, 25, "'x' is declared in a function, expected a local variable"},
    {"layout(push_constant) uniform A { int a; } p; layout(push_constant) uniform C { int c; } q; void main() { }",
     1, 47, "'C' is a second push_constant block, expected one"},
    {"void main() { S s; if (s == 1) ; }",
     1, 26, "operator '==' has operands of types 'S' and 'int', expected operands of one type"},
    {"layout(binding=2, std430) buffer E { float a[]; int b; } e; void main() { }",
     1, 44, "an array without a size is not the last member"},
    {"coopmat<float, 3, 16, 16, 2> m; void main() { }",
     1, 1, "'coopmat' needs '#extension GL_KHR_cooperative_matrix : require'"},
    {"void main() { uint x = b.u; x.y = 2u; }",
     1, 31, "'y' is no swizzle of type 'uint'"},
};
// clang-format on

Test(translate, errors)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct glsl_result result = compile(HEAD, wrong[i].text, 0);
        cr_assert(result.words == NULL, "%s compiles", wrong[i].text);
        cr_assert(eq(str, result.message, (char *)wrong[i].says), "%s", wrong[i].text);
        int line = wrong[i].line == 0 ? 0 : wrong[i].line + 5;
        cr_assert(eq(int, result.line, line), "%s", wrong[i].text);
        cr_assert(eq(int, result.column, wrong[i].column), "%s", wrong[i].text);
        glsl_result_finish(&result);
    }
}

// --- values ------------------------------------------------------------------------------

// Expressions of constants, and their bits. Floats are computed as double and rounded once;
// 8 and 16-bit integers wrap.
static const struct {
    const char *type, *text;
    uint32_t bits;
} values[] = {
    {"uint", "3u * 7u % 5u - 2u", 0xffffffff},
    {"uint", "0xffffffffu + 2u", 1},
    {"uint", "~0u >> 28 | 1u << 31", 0x8000000f},
    {"int", "-7 / 2", 0xfffffffd},
    {"int", "-7 % 3", 0xffffffff},
    {"int", "int(0x80000000u) / -1", 0x80000000},
    {"int", "1 / 0", 0xffffffff},
    {"int", "-8 >> 1", 0xfffffffc},
    {"int", "int(-1.75)", 0xffffffff},
    {"uint", "uint(4294967295.0)", 0xffffffff},
    {"int", "int(uint8_t(300)) + int(int8_t(200))", 0xfffffff4},
    {"int", "int(int16_t(32767) + int16_t(1))", 0xffff8000},
    {"uint", "uint(uint16_t(65535) * uint16_t(3))", 65533},
    {"uint", "uint(0x123456789abcul >> 16)", 0x12345678},
    {"uint", "uint((1ul << 63) / 3ul >> 32)", 0x2aaaaaaa},
    {"uint", "uint(-5l >> 1 == -3l)", 1},
    {"float", "1.0 / 3.0 * 3.0", 0x3f800000},
    {"float", "0.1", 0x3dcccccd},
    {"float", "16777216.0 + 1.0 - 16777216.0", 0x3f800000}, // not rounded in between
    {"float", "float(0.1lf * 3.0lf)", 0x3e99999a},
    {"float", "1.0 / 0.0", 0x7f800000},
    {"float", "-1.0 / 0.0", 0xff800000},
    {"float", "float(float16_t(1.0) / float16_t(3.0))", 0x3eaaaaab},
    {"float", "sqrt(2.0) * sqrt(2.0)", 0x40000000},
    {"float", "floor(-1.5) + ceil(1.25) + trunc(-2.75) + roundEven(2.5)", 0x00000000},
    {"float", "min(1.0, 2.0) + max(3.0, 2.0) + clamp(5.0, 0.0, 1.5)", 0x40b00000},
    {"float", "abs(-2.5) * sign(-3.0)", 0xc0200000},
    {"uint", "floatBitsToUint(1.5)", 0x3fc00000},
    {"float", "uintBitsToFloat(0x40490fdbu)", 0x40490fdb},
    {"float", "vec4(1, 2, 3, 4).wzyx.y", 0x40400000},
    {"float", "mat2(1, 2, 3, 4)[1][0]", 0x40400000},
    {"float", "mat3(2.0)[2].z + mat3(2.0)[1].x", 0x40000000},
    {"float", "S(vec3(1, 2, 3), int[2](4, 5)).a.y", 0x40000000},
    {"int", "S(vec3(1, 2, 3), int[2](4, 5)).k[1]", 5},
    {"int", "int[](1, 2, 3).length() + vec3(0).length()", 6},
    {"uint", "uint(vec2(1, 2) == vec2(1, 2)) + uint(ivec2(1) != ivec2(1))", 1},
    {"uint", "true && false || !false ^^ true ? 1u : 2u", 2},
    {"uint", "3 > 2 && 2.0 <= 2.0 && 1u < 2u ? 7u : 8u", 7},
    {"float", "float(3) + 1u + 2", 0x40c00000},
    {"int", "010 + 0x10", 24},
};

// The last constant of 32 bits that the module stores.
static bool find_stored(const struct glsl_result *result, uint32_t *out)
{
    enum { OP_CONSTANT = 43, OP_STORE = 62 };
    bool is_found = false;
    for (size_t at = 5; at < result->num_words; at += result->words[at] >> 16) {
        if ((result->words[at] & 0xffff) != OP_STORE)
            continue;
        uint32_t id = result->words[at + 2];
        for (size_t i = 5; i < result->num_words; i += result->words[i] >> 16)
            if ((result->words[i] & 0xffff) == OP_CONSTANT && result->words[i + 2] == id) {
                *out = result->words[i + 3];
                is_found = true;
            }
    }
    return is_found;
}

Test(translate, constants)
{
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "#version 460\n"
                 "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
                 "layout(std430, binding = 0) buffer B { %s x; };\n"
                 "struct S { vec3 a; int k[2]; };\n"
                 "const %s c = %s;\n"
                 "void main() { x = c; }\n",
                 values[i].type, values[i].type, values[i].text);
        struct glsl_result result = compile("", text, 0);
        cr_assert(result.words != NULL, "%s: %s", values[i].text, result.message);
        uint32_t bits = 0;
        cr_assert(find_stored(&result, &bits), "%s", values[i].text);
        cr_assert(eq(u32, bits, values[i].bits), "%s", values[i].text);
        glsl_result_finish(&result);
    }
}

// --- what is used ------------------------------------------------------------------------

enum {
    INT8 = 39,
    INT16 = 22,
    INT64 = 11,
    FLOAT16 = 9,
    FLOAT64 = 10,
    BUFFER_8 = 4448,
    BUFFER_16 = 4433,
    GROUP = 61,
    GROUP_ARITHMETIC = 63
};

// Capabilities besides Shader, exactly.
static const struct {
    const char *text;
    uint32_t capabilities[4];
} used[] = {
    {"void main() { x[0] = 1u; }", {0}},
    {"void main() { x[0] = uint(bytes.d[1]); }", {BUFFER_8}},
    {"void main() { bytes.d[0] = bytes.d[1]; }", {BUFFER_8}},
    {"void main() { bytes.d[0] = bytes.d[1] + uint8_t(1); }", {INT8, BUFFER_8}},
    {"void main() { x[0] = uint(words.d[1]); }", {BUFFER_16}},
    {"void main() { words.d[0] = words.d[1] * uint16_t(x[0]); }", {INT16, BUFFER_16}},
    {"void main() { halves.d[0] = float16_t(float(halves.d[1]) + 1.0); }", {BUFFER_16}},
    {"void main() { halves.d[0] = halves.d[1] + halves.d[2]; }", {FLOAT16, BUFFER_16}},
    {"double unused(double a) { return a * 2.0lf; } void main() { x[0] = 1u; }", {0}},
    {"uint used(double a) { return uint(a); } void main() { x[0] = used(double(x[1])); }",
     {FLOAT64}},
    {"void main() { x[0] = uint(uint64_t(x[1]) * 3ul >> 32); }", {INT64}},
    {"void main() { x[0] = gl_SubgroupSize; }", {GROUP}},
    {"void main() { x[0] = subgroupAdd(x[0]); }", {GROUP, GROUP_ARITHMETIC}},
};

static unsigned num_of(const uint32_t *list)
{
    unsigned count = 0;
    while (count < 4 && list[count] != 0)
        count++;
    return count;
}

Test(translate, capabilities)
{
    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
        struct glsl_result result =
            compile("#version 460\n"
                    "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
                    "#extension GL_EXT_shader_8bit_storage : require\n"
                    "#extension GL_EXT_shader_16bit_storage : require\n"
                    "#extension GL_KHR_shader_subgroup_arithmetic : require\n"
                    "layout(std430, binding = 0) buffer X { uint x[]; };\n"
                    "layout(std430, binding = 1) buffer Bytes { uint8_t d[]; } bytes;\n"
                    "layout(std430, binding = 2) buffer Words { uint16_t d[]; } words;\n"
                    "layout(std430, binding = 3) buffer Halves { float16_t d[]; } halves;\n"
                    "layout(std430, binding = 4) buffer Doubles { double d[]; } doubles;\n",
                    used[i].text, 0);
        cr_assert(result.words != NULL, "%s: %s", used[i].text, result.message);
        unsigned num_found = 0, num_wanted = num_of(used[i].capabilities);
        for (size_t at = 5; at < result.num_words; at += result.words[at] >> 16) {
            if ((result.words[at] & 0xffff) != 17 || result.words[at + 1] == 1)
                continue;
            bool is_wanted = false;
            for (unsigned j = 0; j < num_wanted; j++)
                is_wanted = is_wanted || used[i].capabilities[j] == result.words[at + 1];
            cr_assert(is_wanted, "%s: capability %u", used[i].text, result.words[at + 1]);
            num_found++;
        }
        cr_assert(eq(uint, num_found, num_wanted), "%s", used[i].text);
        glsl_result_finish(&result);
    }
}

// --- hostile texts -----------------------------------------------------------------------

static const struct {
    const char *head, *middle;
    unsigned count;
    const char *tail;
    const char *says; // a part of the message; NULL: it compiles
} hostile[] = {
    {"void main() { b.u = ", "(", 100000, "", "nests deeper than"},
    {"void main() { b.u = ", "-", 100000, "b.u; }", "nests deeper than"},
    {"void main() { b.u = 1u", " + b.u", 900, "; }", NULL},
    {"void main() { b.u = 1u", " + b.u", 100000, "; }", "nests deeper than"},
    {"void main() { b.u = ", "b.ok ? 1u : ", 100000, "2u; }", "nests deeper than"},
    {"void main() { b.u = ", "b.arr[", 100000, "", "nests deeper than"},
    {"void main() { b.u", " = b.u", 100000, "; }", "nests deeper than"},
    {"void main() ", "{", 100000, "", "nests deeper than"},
    {"void main() {", "if (b.ok) ", 100000, "; }", "nests deeper than"},
    {"void main() {", "b.u = 1u;", 100000, "}", NULL},
    {"void main() {", "{ uint x = b.u; b.u = x; }", 20000, "}", NULL},
    {"void main() { float x", "[2]", 100000, "; }", "too many dimensions"},
    {"void main() { float x", "[2]", 16, "; x = x; }", NULL},
    {"", "struct T { float x; };", 2, "", "declared twice"},
    {"struct T0 { vec4 x[1000][1000]; }; void main() { const T0 y = T0(vec4[", "", 1,
     "1000][1000](vec4(0))); }", "made of"},
    {"void main() { switch (b.i) {", "case 1:", 100000, "} }", "two cases"},
    {"layout(binding = 1) buffer X { ", "float x[1073741824];", 1,
     "}; void main() { x[0] = 1.0; }", "more than 2 GiB"},
    {"", "void f();", 100000, "void main() { }", NULL},
    {"void f(", "int,", 100000, "int); void main() { }", "too many parameters"},
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

Test(translate, hostile_texts_end)
{
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        size_t head = strlen(hostile[i].head), middle = strlen(hostile[i].middle);
        size_t size = head + middle * hostile[i].count + strlen(hostile[i].tail);
        char *text = malloc(size + 1), *at = text + head;
        memcpy(text, hostile[i].head, head + 1);
        for (unsigned j = 0; j < hostile[i].count; j++, at += middle)
            memcpy(at, hostile[i].middle, middle);
        strcpy(at, hostile[i].tail);
        double before = seconds();
        struct glsl_result result = compile(HEAD, text, 0);
        double took = seconds() - before;
        if (hostile[i].says)
            check_says(result.words ? "no error" : result.message, hostile[i].says);
        else
            cr_assert(result.words != NULL, "%zu: %s", i, result.message);
        cr_assert(lt(dbl, took, 20), "row %zu", i);
        glsl_result_finish(&result);
        free(text);
    }
}

// --- extensions --------------------------------------------------------------------------

#define MATRICES                                                                           \
    "#version 460\n"                                                                       \
    "#extension GL_NV_cooperative_matrix2 : require\n"                                     \
    "#extension GL_EXT_integer_dot_product : require\n"                                    \
    "#extension GL_EXT_buffer_reference2 : require\n"                                      \
    "#extension GL_EXT_bfloat16 : require\n"                                               \
    "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"                       \
    "layout(constant_id = 0) const uint M = 16;\n"                                         \
    "#define MAT(T, R, C, USE) coopmat<T, gl_ScopeSubgroup, R, C, gl_MatrixUse##USE>\n"    \
    "layout(std430, binding = 0) buffer A { float16_t d[]; } a;\n"                         \
    "layout(std430, binding = 1) buffer C { float d[]; } c;\n"                             \
    "layout(std430, binding = 2) buffer I { int i; uint u; i8vec4 s; u8vec4 t; } n;\n"     \
    "layout(buffer_reference, std430) buffer List { float x; List next; };\n"              \
    "layout(push_constant) uniform P { List list; } p;\n"                                  \
    "shared bfloat16_t tile[256];\n"                                                       \
    "float most(const in float x, const in float y) { return max(x, y); }\n"               \
    "float twice(const in uint r, const in uint c, const in float e) { return e + e; }\n"

// An instruction that a text is made of, and how often.
static const struct {
    const char *text;
    uint32_t op, count;
} made[] = {
    {"MAT(float16_t, M, 16, A) x; coopMatLoad(x, a.d, 3u, 16u, 0);", 4457, 1},
    {"MAT(bfloat16_t, M, 16, B) x; coopMatLoad(x, tile, 0, 16, 1);", 4457, 1},
    {"MAT(float, M, 16, Accumulator) x = MAT(float, M, 16, Accumulator)(1.0);"
     " coopMatStore(x, c.d, 0, 16, 0);",
     4458, 1},
    {"MAT(float16_t, M, 16, A) x = MAT(float16_t, M, 16, A)(1.0);"
     "MAT(float16_t, 16, M, B) y = MAT(float16_t, 16, M, B)(2.0);"
     "MAT(float, M, M, Accumulator) z = MAT(float, M, M, Accumulator)(0.0);"
     "z = coopMatMulAdd(x, y, z); coopMatStore(z * 2.0 + z, c.d, 0, 16, 0);",
     4459, 1},
    {"MAT(float, M, M, Accumulator) z = MAT(float, M, M, Accumulator)(0.0), r;"
     "coopMatReduceNV(r, z, gl_CooperativeMatrixReduceRowNV, most);"
     "coopMatStore(r, c.d, 0, 16, 0);",
     5366, 1},
    {"MAT(float, M, M, Accumulator) z = MAT(float, M, M, Accumulator)(0.0);"
     "coopMatPerElementNV(z, z, twice); coopMatStore(z, c.d, 0, 16, 0);",
     5369, 1},
    {"tensorLayoutNV<2> t = createTensorLayoutNV(2); t = setTensorLayoutDimensionNV(t, 9, "
     "9);"
     "MAT(float, M, M, Accumulator) z = MAT(float, M, M, Accumulator)(0.0);"
     "coopMatLoadTensorNV(z, c.d, 0, sliceTensorLayoutNV(t, 0, M, 0, M));"
     "coopMatStoreTensorNV(z, c.d, 0, t);",
     5367, 1},
    {"n.i = dotEXT(n.s, n.s) + dotEXT(n.s, n.t) + dotEXT(n.t, n.s);", 4452, 2},
    {"n.u = dotPacked4x8AccSatEXT(n.u, n.u, 7u);", 4454, 1},
    {"p.list.next.next.x = 1.0;", 62, 1},
    {"List l = p.list + 3; l.x += l[1].x;", 120, 2},
};

Test(translate, extensions)
{
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        char text[1024];
        snprintf(text, sizeof(text), "void main() { %s }\n", made[i].text);
        struct glsl_result result = compile(MATRICES, text, GLSL_NOT_OPTIMISED);
        cr_assert(result.words != NULL, "%s: %d: %s", made[i].text, result.column,
                  result.message);
        uint32_t count = 0;
        for (size_t at = 5; at < result.num_words; at += result.words[at] >> 16)
            count += (result.words[at] & 0xffff) == made[i].op;
        cr_assert(eq(u32, count, made[i].count), "%s", made[i].text);
        glsl_result_finish(&result);
    }
}
