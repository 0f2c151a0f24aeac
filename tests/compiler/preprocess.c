// SPDX-License-Identifier: MIT
// The kernel compiler's preprocessor: tokens for texts, the place and the reason of each
// error, and an end in bounded time for hostile texts.
#include <time.h>
#include "check.h"
#include "compiler.h"
#include "preprocess/lex.h"

#define V "#version 450\n"

// --- files that texts include ------------------------------------------------------------

static const struct file {
    const char *name, *text;
} files[] = {
    {"one.glsl", "1 __LINE__"},
    {"two.glsl", "\n#include \"one.glsl\"\n2 __LINE__"},
    {"wrong.glsl", "a\n\n  #oops\n"},
    {"cycle.glsl", "#include \"cycle.glsl\"\n"},
    {"open.glsl", "#if 1\n"},
    {"close.glsl", "#endif\n"},
    {"call.glsl", "f\n"},
    {"defines.glsl", "#define TWO 2"},
};

struct names {
    char from[64];
};

static const char *include(void *context, const char *name, const char *from, size_t *size)
{
    struct names *names = context;
    snprintf(names->from, sizeof(names->from), "%s", from);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (strcmp(files[i].name, name) == 0) {
            *size = strlen(files[i].text);
            return files[i].text;
        }
    return NULL;
}

static struct names names;

static struct glsl_source source_of(const char *text, size_t size)
{
    return (struct glsl_source){.text = text,
                                .size = size,
                                .name = "main.comp",
                                .include = include,
                                .include_context = &names};
}

// --- tokens ------------------------------------------------------------------------------

// Texts and their tokens, a space between each two.
static const struct {
    const char *text, *tokens;
} good[] = {
    {V, ""},
    {"\n// first\n /* then */ #version 460 core // end\n__VERSION__", "460"},
    {V "VULKAN GL_core_profile GL_KHR_shader_subgroup_basic GL_NO", "100 1 1 GL_NO"},
    {V "#\n# // nothing\n#pragma anything \"goes' here\na", "a"},
    // Tokens.
    {V "a+++b--- -c<<=d>>=e<<f>>g<=h>=i==j!=k&&l||m^^n+=o-=p*=q/=r%=s&=t|=u^=v~w!x?y:z.x,;",
     "a ++ + b -- - - c <<= d >>= e << f >> g <= h >= i == j != k && l || m ^^ n += o -= p "
     "*= q /= r %= s &= t |= u ^= v ~ w ! x ? y : z . x , ;"},
    {V "1 1u 0x1F 017 1. .5 1.5e-3f 2e10 1.0hf 1.0LF 7ul 7S 7us 0xabcL 1.e+2lf",
     "1 1u 0x1F 017 1. .5 1.5e-3f 2e10 1.0hf 1.0LF 7ul 7S 7us 0xabcL 1.e+2lf"},
    {V "0xe+1 a1.x 1-1", "0xe + 1 a1 . x 1 - 1"},
    {V "a/* * / */b//c\\\nd\ne", "a b e"},
    {V "ab\\\ncd\\\r\nef 1\\\n2 +\\\n=", "abcdef 12 +="},
    {V "a\r\nb\tc\fd\ve", "a b c d e"},
    {V "// \xc3\xa4\xff\n/* \xe2\x82\xac */ a", "a"},
    // Macros.
    {V "#define A 1\nA A", "1 1"},
    {V "#define A\nA(A)A", "( )"},
    {V "#define A B\n#define B A\nA B", "A B"},
    {V "#define A A\nA", "A"},
    {V "#define A a A b A\nA", "a A b A"},
    {V "#define f(x) x x\nf(1) f((1,2)) f() f (3) f", "1 1 ( 1 , 2 ) ( 1 , 2 ) 3 3 f"},
    {V "#define f() 7\nf() f( ) f", "7 7 f"},
    {V "#define f(x,y) <x|y>\nf(,) f(1,) f((,),2)", "< | > < 1 | > < ( , ) | 2 >"},
    {V "#define f(x) g(x)\n#define g(x) f(x)\nf(1) g(2)", "f ( 1 ) g ( 2 )"},
    {V "#define f(x) f(x+1)\nf(f(1))", "f ( f ( 1 + 1 ) + 1 )"},
    {V "#define f(x) x f\nf(1)(2)", "1 f ( 2 )"},
    {V "#define f(x) [x]\n#define A f\nA(1) A\n(2)", "[ 1 ] [ 2 ]"},
    {V "#define f(x) [x]\n#define A f(\nA 1)", "[ 1 ]"},
    {V "#define f(x) [x]\nf\n\n(\n1\n)\nf // no call\nf", "[ 1 ] f f"},
    {V "#define f(x) [x]\nf\n#define y\n(1)", "f ( 1 )"},
    {V "#define f(a) a*g\n#define g(a) f(a)\nf(2)(9)", "2 * 9 * g"},
    {V "#define NIL(xxx) xxx\n#define G_0(arg) NIL(G_1)(arg)\n#define G_1(arg) NIL(arg)\n"
       "G_0(42)",
     "42"},
    // The example of C11 6.10.3.5.
    {V "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n"
       "#define z z[0]\n#define h g(~\n#define m(a) a(w)\n#define w 0,1\n#define t(a) a\n"
       "f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);\n"
       "g(x+(3,4)-w) | h 5) & m\n(f)^m(m);",
     "f ( 2 * ( y + 1 ) ) + f ( 2 * ( f ( 2 * ( z [ 0 ] ) ) ) ) % f ( 2 * ( 0 ) ) + t ( 1 "
     ") "
     "; f ( 2 * ( 2 + ( 3 , 4 ) - 0 , 1 ) ) | f ( 2 * ( ~ 5 ) ) & f ( 2 * ( 0 , 1 ) ) ^ m "
     "( "
     "0 , 1 ) ;"},
    // Pasting.
    {V "#define r(x,y) x ## y\nr(2,3) r(4,) r(,5) r(a,1) r(,) r(+,=) r(0x,f) r(1.,5e3)",
     "23 4 5 a1 += 0xf 1.5e3"},
    {V "#define t(x,y,z) x ## y ## z\nt(1,2,3) t(,4,5) t(6,,7) t(8,9,) t(10,,) t(,11,) "
       "t(,,12) t(,,)",
     "123 45 67 89 10 11 12"},
    {V "#define A 1\n#define r(x,y) x ## y\n#define s(x,y) r(x,y)\nr(A,A) s(A,A)", "AA 11"},
    {V "#define r(x,y) x ## y x\n#define a 1\nr(a, b)", "ab 1"},
    {V "#define A x ## y z\n#define xy 5\nA", "5 z"},
    {V "#define r(x) x ## x\n#define aa 1\nr(a b)", "a ba b"},
    {V
     "#define TYPE_f32 float\n#define T(x) TYPE_ ## x\n#define IN f32\n#define U(x) T(x)\n"
     "U(IN) T(IN)",
     "float TYPE_IN"},
    {V "#define A 1\n#define A 1\n#define f(x) x + 1\n#define f(x)  x  +  1 \nA", "1"},
    {V "#undef B\n#define A 1\n#undef A\nA\n#define A 2\nA", "A 2"},
    // __LINE__ and __FILE__.
    {V "__LINE__\n__LINE__ __FILE__\n\\\n__LINE__ /*\n\n*/ __LINE__", "2 3 0 5 7"},
    {V "#define L __LINE__\n\nL L(\n)L", "4 4 ( ) 5"},
    {V "#line 100\n__LINE__\n__LINE__\n#line 7 3\n__LINE__ __FILE__\n#define N 5\n#line N "
       "+ 1\n"
       "__LINE__\n#line 0\n__LINE__ __LINE__\n#line 9 \"x.comp\"\n__LINE__",
     "100 101 7 3 6 0 0 9"},
    // Conditions.
    {V "#if 1\na\n#else\nb\n#endif\n#if 0\nc\n#else\nd\n#endif", "a d"},
    {V "#if 0\na\n#elif 1\nb\n#elif 1\nc\n#elif oops oops\n#else\nd\n#endif", "b"},
    {V "#if 0\n#if 1\na\n#else\nb\n#endif\n#elif 1\nc\n#endif", "c"},
    {V
     "#ifdef A\na\n#endif\n#define A\n#ifdef A\nb\n#endif\n#ifndef A\nc\n#else\nd\n#endif",
     "b d"},
    {V "#if 0\n#oops ' \" \\ \x01\n/* #endif */ else\n// "
       "#endif\n#if\n#endif\n\"\n/*\n#endif\n*/\n"
       "#endif\na",
     "a"},
    {V "#if defined A || defined(B)\na\n#else\nb\n#endif\n#define B\n#if defined A || "
       "defined ( B )\nc\n#endif",
     "b c"},
    {V
     "#if 1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 10 - 4 - 3 == 3 && 7 / 2 == 3 && 7 % 4 == "
     "3 && -7 / 2 == -3\na\n#endif",
     "a"},
    {V "#if (1 << 4 | 3) == 19 && (6 & 3) == 2 && (6 ^ 3) == 5 && ~0 == -1 && !0 && !!5 && "
       "256 "
       ">> 4 == 16 && -8 >> 1 == -4\na\n#endif",
     "a"},
    {V "#if 1 < 2 && 2 <= 2 && 3 > 2 && 2 >= 2 && 1 != 2 && 0x10 == 020 && 1u == "
       "1\na\n#endif",
     "a"},
    {V "#if (0 && 1 / 0) || 1 || UNKNOWN || 1 / 0\na\n#endif\n"
       "#if 0 && UNKNOWN / 0\n#endif",
     "a"},
    {V "#if 1 || 0 && 0\na\n#endif\n#if 0x7fffffffffffffffl + 1 < 0\nb\n#endif", "a b"},
    {V "#define f(x) (x * 2)\n#define N 3\n#if f(N) == 6\na\n#endif", "a"},
    {V "#define N 16\n#if N > 8 // why\n#if N > 16 /* or\nnot "
       "*/\na\n#else\nb\n#endif\n#endif",
     "b"},
    // Includes.
    {V "#include \"one.glsl\"\n__LINE__", "1 1 3"},
    {V "#include <two.glsl> // twice\n#include \"two.glsl\"\n__LINE__",
     "1 1 2 3 1 1 2 3 4"},
    {V "#include \"defines.glsl\"\nTWO", "2"},
    {V "#define f(x) x\n#include \"call.glsl\"\n(1)", "f ( 1 )"},
    // Extensions and pragmas leave no tokens.
    {V "#extension GL_EXT_shader_16bit_storage : require\n#extension GL_NO_such : enable\n"
       "#extension all : warn\n#extension GL_EXT_bfloat16 : disable\na",
     "a"},
};

// The text with each run of newlines as a space.
static char *one_line(char *text)
{
    for (char *p = text; *p; p++)
        if (*p == '\n')
            *p = p[1] ? ' ' : 0;
    return text;
}

Test(preprocess, tokens)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct glsl_source source = source_of(good[i].text, strlen(good[i].text));
        struct glsl_result result;
        char *text = glsl_preprocess(&source, &result);
        cr_assert(text != NULL, "%s\n%s:%d:%d: %s", good[i].text, result.file, result.line,
                  result.column, result.message);
        cr_assert(eq(str, one_line(text), good[i].tokens), "%s", good[i].text);
        free(text);
    }
}

Test(preprocess, definitions_of_the_source_act_behind_version)
{
    static const char text[] = "// a comment\n" V "N f(3) E __LINE__\n";
    const struct glsl_define defines[] = {{"N", "16"}, {"f(x)", "(x+N)"}, {"E", ""}};
    struct glsl_source source = source_of(text, strlen(text));
    source.defines = defines;
    source.num_defines = 3;
    struct glsl_result result;
    char *out = glsl_preprocess(&source, &result);
    cr_assert(out != NULL, "%s", result.message);
    cr_assert(eq(str, one_line(out), "16 ( 3 + 16 ) 3"));
    free(out);
}

Test(preprocess, includes_are_told_where_they_stand)
{
    static const char text[] = V "#include \"two.glsl\"\n";
    struct glsl_source source = source_of(text, strlen(text));
    struct glsl_result result;
    free(glsl_preprocess(&source, &result));
    cr_assert(eq(str, names.from, "two.glsl")); // of one.glsl, the last one
    static const char plain[] = V "#include \"one.glsl\"\n";
    source = source_of(plain, strlen(plain));
    free(glsl_preprocess(&source, &result));
    cr_assert(eq(str, names.from, ""));
}

// --- numbers -----------------------------------------------------------------------------

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 48271 % 0x7fffffff; // Lehmer
    return (uint32_t)*state;
}

static void check_decimal(const char *text)
{
    double got = decimal_to_double(text, strlen(text)), expected = strtod(text, NULL);
    cr_assert(memcmp(&got, &expected, sizeof(got)) == 0, "%s: got %a, expected %a", text,
              got, expected);
}

// The test runs in the locale C, in which strtod() reads what GLSL means.
Test(preprocess, decimals_are_the_nearest_doubles)
{
    static const char *const texts[] = {
        "0",
        "0.0",
        "00.10",
        ".5e+3",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "1e400",
        "1e-400",
        "2.2250738585072011e-308",
        "9007199254740993",
        "1e22",
        "1e23",
        "0e99999999999999999999",
        "1e-99999999999999999999",
        "1e99999999999999999999",
        "1797693134862315807937289714053034150799341327100378269361737789804449682927647509"
        "46"
        "6490179775872070963302864166928879109465555478519404026306574886715058206819089020"
        "007"
        "0838367627385484581771153176447573027006985557136695962284291481986083493647529271"
        "907"
        "4168444365510704342711559699508093042880.0",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        check_decimal(texts[i]);
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        char text[1100];
        uint32_t size = 0, most = i % 8 ? 25 : 900;
        uint32_t digits = next_random(&state) % most + 1;
        uint32_t point = next_random(&state) % (digits + 1);
        for (uint32_t k = 0; k < digits; k++) {
            if (k == point)
                text[size++] = '.';
            text[size++] = (char)('0' + next_random(&state) % 10);
        }
        int exponent = (int)(next_random(&state) % 700) - 360;
        text[size] = '\0';
        if (i % 2)
            snprintf(text + size, sizeof(text) - size, "e%d", exponent);
        check_decimal(text);
        // Between two doubles there is a number of up to 767 digits: a tie.
        uint64_t bits = (uint64_t)next_random(&state) << 31 | next_random(&state);
        double low, high;
        memcpy(&low, &bits, sizeof(low));
        bits++;
        memcpy(&high, &bits, sizeof(high));
        if (i % 16 || high > 1e300)
            continue;
        snprintf(text, sizeof(text), "%.1070Lg",
                 ((long double)low + (long double)high) / 2);
        check_decimal(text);
    }
}

// --- errors ------------------------------------------------------------------------------

static const struct {
    const char *text;
    int line, column;
    const char *says, *file; // NULL: main.comp
} bad[] = {
    {"", 1, 1, "without #version"},
    {"\n  int", 2, 3, "without #version: expected #version 450 or #version 460"},
    {"#define A\n" V, 1, 2, "without #version"},
    {V V, 2, 2, "#version is in the middle"},
    {"#version 330\n", 1, 10, "'330' is in #version: expected 450 or 460"},
    {"#version\n", 1, 9, "#version ends here: expected 450 or 460"},
    {"#version 450 es\n", 1, 14, "'es' is in #version: expected core"},
    {"#version 4500\n", 1, 10, "'4500' is in #version"},
    {V "  #oops\n", 2, 4, "'oops' is in a line of #: expected a directive"},
    {V "#1\n", 2, 2, "'1' is in a line of #"},
    // Characters.
    {V "a @", 2, 3, "the character '@' begins no token"},
    {V "a \\ b", 2, 3, "the character '\\' begins no token"},
    {V "\n a\xc3\xa4", 3, 3, "the byte 0xC3 is in the code"},
    {V "a \x01", 2, 3, "the byte 0x01"},
    {V "\"a\"", 2, 1, "a string is in the code"},
    {V "\"a\n", 2, 1, "a string is in the code"},
    {V "a # b", 2, 3, "the character '#'"},
    {V "/* a\n", 2, 1, "the comment has no end"},
    {V "a\\\n  /*", 3, 3, "the comment has no end"},
    // Numbers.
    {V "1x", 2, 1, "'1x' is no number: expected digits, and a suffix"},
    {V "  1.5g", 2, 3, "'1.5g' is no number: expected digits, and a suffix of f"},
    {V "1.2.3", 2, 1, "expected one point"},
    {V "08", 2, 1, "expected octal digits"},
    {V "0x", 2, 1, "expected hexadecimal digits"},
    {V "1e+", 2, 1, "expected digits behind the exponent's e"},
    {V "1f", 2, 1, "a float has a point or an exponent"},
    {V "4294967296", 2, 1, "too large: expected at most 32 bits"},
    {V "65536us", 2, 1, "too large: expected at most 16 bits"},
    {V "18446744073709551616ul", 2, 1, "too large: expected at most 64 bits"},
    // Macros.
    {V "#define\n", 2, 8, "#define has no name"},
    {V "#define 1\n", 2, 9, "#define has no name"},
    {V "#define defined\n", 2, 9, "#define of defined"},
    {V "#define GL_A\n", 2, 9, "#define of GL_A"},
    {V "#undef __LINE__\n", 2, 8, "#undef of __LINE__"},
    {V "#undef A B\n", 2, 10, "'B' is in #undef: expected the end of the line"},
    {V "#define A 1\n#define A 2\n", 3, 9, "A is defined otherwise in line 2 of main.comp"},
    {V "#define f(x) x\n#define f(y) y\n#define f(y) y+1\n", 4, 9, "defined otherwise"},
    {V "#define f(x, x) 1\n", 2, 14, "two parameters have the name x"},
    {V "#define f(x y) 1\n", 2, 13, "expected ',' or ')' behind the parameter x"},
    {V "#define f(1) 1\n", 2, 11, "expected the name of a parameter"},
    {V "#define f(x\n", 2, 12, "expected ',' or ')'"},
    {V "#define A ## b\n", 2, 11, "## has nothing in front"},
    {V "#define A b ##\n", 2, 13, "## has nothing behind"},
    {V "#define f(x) x\n\n f(1", 4, 2, "the arguments of the macro f have no end"},
    {V "#define f(x) x\nf(1\n#define B\n)", 4, 1, "a directive is among the arguments"},
    {V "#define f(x) x\n f(1, 2)", 3, 2, "the macro f is given 2 arguments: expected 1"},
    {V "#define f(x, y) x\n f()", 3, 2, "given 1 arguments: expected 2"},
    {V "#define f() 1\n f(2)", 3, 2, "given 1 arguments: expected 0"},
    {V "#define r(x, y) x ## y\n\n  r(+, a)", 4, 3, "## makes +a, which is not one token"},
    {V "#define r(x, y) x ## y\nr(/, *)", 3, 1, "## makes /*"},
    {V "#define r(x, y) x ## y\nr(/, /)", 3, 1, "## makes //"},
    {V "#define A @\n#define B A\n\n  B", 5, 3, "the character '@'"},
    {V "#define f(x) x\n  f(1 + @)", 3, 9, "the character '@'"},
    // Conditions.
    {V "\n#if 1\n#if 1\n#endif\n", 3, 2, "the condition has no end: expected #endif"},
    {V "\n#if 0\n", 3, 2, "the condition has no end"},
    {V "#endif\n", 2, 2, "#endif is without its #if"},
    {V "#else\n", 2, 2, "#else is without its #if"},
    {V "#elif 1\n", 2, 2, "#elif is without its #if"},
    {V "#if 1\n#else\n#else\n#endif", 4, 2, "#else is behind #else"},
    {V "#if 0\n#else\n#elif 1\n#endif", 4, 2, "#elif is behind #else"},
    {V "#if 1\n#endif 1", 3, 8, "'1' is in #endif: expected the end of the line"},
    {V "#if\n#endif", 2, 4, "#if ends here: expected a number"},
    {V "#if A\n#endif", 2, 5, "'A' is in #if: expected a number"},
    {V "#if 1 +\n#endif", 2, 8, "#if ends here"},
    {V "#if 1 2\n#endif", 2, 7, "'2' is in #if: expected an operator"},
    {V "#if (1\n#endif", 2, 7, "#if ends here: expected ')'"},
    {V "#if 1.5\n#endif", 2, 5, "'1.5' is in #if: expected an integer"},
    {V "#if 1 / 0\n#endif", 2, 7, "#if divides by zero"},
    {V "#if 0\n#elif 1 % 0\n#endif", 3, 9, "#elif divides by zero"},
    {V "#if 1 << 64\n#endif", 2, 7, "shifts by 64 bits"},
    {V "#if defined\n#endif", 2, 12, "expected the name of a macro behind 'defined'"},
    {V "#if defined(A\n#endif", 2, 14, "expected ')' behind 'defined(A'"},
    {V "#ifdef\n#endif", 2, 7, "#ifdef ends here: expected the name of a macro"},
    {V "#ifndef 1\n#endif", 2, 9, "'1' is in #ifndef"},
    // Other directives.
    {V "#extension GL_NO_such_thing : require\n", 2, 12,
     "the extension GL_NO_such_thing is required"},
    {V "#extension all : require\n", 2, 18, "all extensions are asked for"},
    {V "#extension GL_EXT_bfloat16 require\n", 2, 28,
     "'require' is in #extension: expected ':'"},
    {V "#extension GL_EXT_bfloat16 : please\n", 2, 30, "'please' is in #extension"},
    {V "#extension\n", 2, 11, "#extension ends here"},
    {V "#error  it \xc3\xa4 is\xff wrong  \n", 2, 2, "#error: it \xc3\xa4 is? wrong"},
    {V "#line\n", 2, 6, "#line ends here"},
    {V "#line -1\n", 2, 6, "not in 0 to"},
    {V "#line 1 2 3\n", 2, 11, "'3' is in #line"},
    {V "#line 50\n\n@", 51, 1, "the character '@'"},
    {V "#line 50 \"other.comp\"\n@", 50, 1, "the character '@'", "other.comp"},
    // Includes.
    {V "#include\n", 2, 9, "#include names no file"},
    {V "#include \"\"\n", 2, 10, "#include names no file"},
    {V "#include \"one.glsl\n", 2, 10, "#include names no file"},
    {V "#include \"one.glsl\" 1\n", 2, 21, "'1' is in #include"},
    {V "#include \"no.glsl\"\n", 2, 10, "no.glsl is included: there is no such file"},
    {V "#include \"wrong.glsl\"\n", 3, 4, "'oops' is in a line of #", "wrong.glsl"},
    {V "#include \"cycle.glsl\"\n", 1, 10, "include each other", "cycle.glsl"},
    {V "#include \"open.glsl\"\n#endif", 1, 2, "the condition has no end", "open.glsl"},
    {V "#if 1\n#include \"close.glsl\"\n", 1, 2, "#endif is without its #if", "close.glsl"},
    {V "#define f(x) x\n#include \"call.glsl\"\n(1) @", 4, 5, "the character '@'"},
};

static void check_error(const struct glsl_source *source, int line, int column,
                        const char *says, const char *file)
{
    struct glsl_result result;
    char *text = glsl_preprocess(source, &result);
    cr_assert(text == NULL, "%.200s\nis no error: %s", source->text, says);
    check_says(result.message, says);
    cr_assert(eq(int, result.line, line), "%.200s\n%s", source->text, result.message);
    cr_assert(eq(int, result.column, column), "%.200s\n%s", source->text, result.message);
    cr_assert(eq(str, result.file, (char *)file), "%s", result.message);
    cr_assert(result.words == NULL && result.num_words == 0);
}

Test(preprocess, errors)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct glsl_source source = source_of(bad[i].text, strlen(bad[i].text));
        check_error(&source, bad[i].line, bad[i].column, bad[i].says,
                    bad[i].file ? bad[i].file : "main.comp");
    }
}

Test(preprocess, errors_of_sources)
{
    static const char text[] = V "a\n#include \"one.glsl\"\n";
    struct glsl_source source = source_of(text, strlen(text));
    source.include = NULL;
    check_error(&source, 3, 10, "expected a source of one file", "main.comp");
    source.name = NULL;
    check_error(&source, 3, 10, "expected a source of one file", "");
    source = source_of("a\n\nb\0c", 6);
    check_error(&source, 3, 2, "a NUL byte", "main.comp");

    struct glsl_define define = {"1", "2"};
    source = source_of(text, strlen(text));
    source.defines = &define;
    source.num_defines = 1;
    check_error(&source, 1, 1, "#define has no name", "<definitions>");
    define = (struct glsl_define){"A", "2\n#define B 3"};
    check_error(&source, 1, 4, "the definition of A has a second line", "<definitions>");

    char name[201] = "";
    memset(name, 'x', sizeof(name) - 1);
    memcpy(name + sizeof(name) - 7, "e.comp", 6);
    source = source_of("", 0);
    source.name = name;
    struct glsl_result result;
    cr_assert(glsl_preprocess(&source, &result) == NULL);
    cr_assert(eq(sz, strlen(result.file), sizeof(result.file) - 1));
    check_says(result.file, "xe.comp"); // its end
}

// --- hostile texts -----------------------------------------------------------------------

// A text of a head, `count` times `middle`, and a tail.
static char *repeated(const char *head, const char *middle, size_t count, const char *tail)
{
    size_t size = strlen(middle), at = strlen(head);
    char *text = malloc(at + count * size + strlen(tail) + 1);
    cr_assert(text != NULL);
    memcpy(text, head, at);
    if (size == 1) {
        memset(text + at, middle[0], count);
        at += count;
    }
    for (size_t i = 0; i < count && size > 1; i++, at += size)
        memcpy(text + at, middle, size);
    memcpy(text + at, tail, strlen(tail) + 1);
    return text;
}

#define DOUBLING                                                                           \
    "#define b a a\n#define c b b\n#define d c c\n#define e d d\n#define f e e\n"          \
    "#define g f f\n#define h g g\n#define i h h\n#define j i i\n#define k j j\n"          \
    "#define l k k\n#define m l l\n#define n m m\n#define o n n\n#define p o o\n"          \
    "#define q p p\n#define r q q\n#define s r r\n#define t s s\n#define u t t\n"          \
    "#define v u u\n#define w v v\n#define x w w\n#define y x x\n#define z y y\n"

static const struct {
    const char *head, *middle;
    size_t count;
    const char *tail;
    const char *says; // NULL: it is fine
} hostile[] = {
    {V, "(", 1000000, ""},
    {V "#define f(x) x\n", "f(", 100000, "", "no end"},
    {V "#define f(x) x\nf(", "(", 1000000, "", "no end"},
    {V "#define f(x) x\n", "f(", 200, "", "no end"},
    {V "#define a a a\n", "a ", 100000, ""},
    {V "#define f(x) f(f(x))\n", "f(1) ", 1000, ""},
    {V "#define f(x) x x\n", "f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(",
     1, "1))))))))))))))))))))))))))))))", "macros expand to more than"},
    {V "#define a 1\n" DOUBLING, "z", 1, "", "more than"},
    {V "#define a\n" DOUBLING, "z", 1, "", "macros expand to more than"},
    {V "#define p(x) x ## x\n#define q(x) p(x)\n",
     "q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(q(", 1,
     "a))))))))))))))))))))))))))))))", "characters: expected at most"},
    {V "#if ", "(", 100000, "\n#endif", "nested: expected at most 256"},
    {V "#if ", "!", 100000, "1\n#endif", "nested: expected at most 256"},
    {V "#if 0", "+1-1", 250000, "\n#endif"},
    {V, "#if 1\n", 1000, "", "conditions are nested: expected at most 256"},
    {V "#if 0\n", "#if 1\n", 1000000, "", "no end"},
    {V "#define f(", "x,", 100, "", "two parameters"},
    {V "#define f(x) x\nf(", ",", 1000000, ")", "1000001 arguments: expected 1"},
    {V, "a", 2000000, "", "characters: expected at most"},
    {V, "1", 2000000, "", "is too large"},
    {V "1.", "1", 2000000, "e-1000000000000000000000"},
    {V, "#define a\n#undef a\n", 100000, ""},
    {V, "\\\n", 1000000, "a"},
    {V, "/**/", 1000000, "a"},
    {V, "#extension GL_EXT_bfloat16 : enable\n", 100000, ""},
    {V "a", "\n", 100 << 20, "", "bytes: expected at most"},
    {V, "x ", 8000000, "", "MiB"},
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

Test(preprocess, hostile_texts_end)
{
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        char *text =
            repeated(hostile[i].head, hostile[i].middle, hostile[i].count, hostile[i].tail);
        struct glsl_source source = source_of(text, strlen(text));
        struct glsl_result result;
        double before = seconds();
        char *out = glsl_preprocess(&source, &result);
        double took = seconds() - before;
        cr_log_info("%zu: %.3f s", i, took);
        if (hostile[i].says)
            check_says(out ? "no error" : result.message, hostile[i].says);
        else
            cr_assert(out != NULL, "%zu: %s", i, result.message);
        cr_assert(lt(dbl, took, 30), "row %zu", i);
        free(out);
        free(text);
    }
}
