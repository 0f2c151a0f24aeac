// SPDX-License-Identifier: MIT
// The run-time compiler: right words for right text, the line and the reason for wrong
// text, no harm from hostile text, and many compilations, one after the other and side by
// side.
//
//   compiler [SPIRV_VAL]
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>
#include "check.h"
#include "compiler.h"

static const char *spirv_val; // or NULL

static const char scale[] = "#version 460\n"
                            "layout(local_size_x = WIDTH) in;\n"
                            "layout(std430, binding = 0) buffer X { TYPE x[]; };\n"
                            "void main()\n"
                            "{\n"
                            "    x[gl_GlobalInvocationID.x] *= TYPE(FACTOR);\n"
                            "}\n";

static struct glsl_source source_of(const char *text)
{
    return (struct glsl_source){.text = text, .size = strlen(text)};
}

static bool compile_scale(const char *width, const char *type, struct glsl_result *out)
{
    const struct glsl_define defines[] = {
        {"WIDTH", width}, {"TYPE", type}, {"FACTOR", "3"}};
    struct glsl_source source = source_of(scale);
    source.defines = defines;
    source.num_defines = 3;
    return glsl_compile(&source, out);
}

// --- what comes out ----------------------------------------------------------------------

// The first instruction of this kind: its words, without the first. NULL: none.
static const uint32_t *find(const struct glsl_result *result, uint32_t op)
{
    for (size_t at = 5; at < result->num_words; at += result->words[at] >> 16) {
        cr_assert(result->words[at] >> 16 > 0);
        cr_assert(at + (result->words[at] >> 16) <= result->num_words);
        if ((result->words[at] & 0xffff) == op)
            return &result->words[at + 1];
    }
    return NULL;
}

static void check_module(const struct glsl_result *result, uint32_t width)
{
    enum { ENTRY_POINT = 15, EXECUTION_MODE = 16, LOCAL_SIZE = 17, GL_COMPUTE = 5 };
    cr_assert(result->num_words > 5);
    cr_assert(eq(uint, result->words[0], 0x07230203));
    cr_assert(eq(uint, result->words[1], 0x00010300)); // SPIR-V 1.3
    const uint32_t *entry = find(result, ENTRY_POINT), *mode = find(result, EXECUTION_MODE);
    cr_assert(ne(ptr, entry, NULL));
    cr_assert(eq(uint, entry[0], GL_COMPUTE));
    cr_assert(eq(str, (const char *)&entry[2], "main"));
    cr_assert(ne(ptr, mode, NULL));
    cr_assert(eq(uint, mode[1], LOCAL_SIZE));
    cr_assert(eq(uint, mode[2], width));
}

static void validate(const struct glsl_result *result)
{
    if (!spirv_val)
        return;
    char path[] = "/tmp/tenon-compiler-XXXXXX", command[512];
    int file = mkstemp(path);
    cr_assert(file >= 0);
    size_t size = result->num_words * sizeof(uint32_t);
    cr_assert(eq(i64, write(file, result->words, size), size));
    close(file);
    snprintf(command, sizeof(command), "'%s' --target-env vulkan1.1 %s", spirv_val, path);
    int status = system(command);
    unlink(path);
    cr_assert(eq(int, status, 0));
}

static void find_validator(void)
{
    spirv_val = getenv("TENON_TEST_SPIRV_VAL");
}

TestSuite(compiler, .init = find_validator, .fini = glsl_compiler_unload);

Test(compiler, right_text_becomes_a_valid_module)
{
    struct glsl_result result;
    cr_assert(compile_scale("64", "float", &result));
    check_module(&result, 64);
    validate(&result);
    glsl_result_finish(&result);
    cr_assert(eq(ptr, result.words, NULL));
}

Test(compiler, definitions_are_seen)
{
    struct glsl_result narrow, wide, other;
    cr_assert(compile_scale("32", "float", &narrow));
    cr_assert(compile_scale("128", "float", &wide));
    cr_assert(compile_scale("32", "uint", &other));
    check_module(&narrow, 32);
    check_module(&wide, 128);
    check_module(&other, 32);
    validate(&other);
    enum { TYPE_INT = 21, TYPE_FLOAT = 22 };
    cr_assert(ne(ptr, find(&narrow, TYPE_FLOAT), NULL));
    cr_assert(eq(ptr, find(&other, TYPE_FLOAT), NULL));
    cr_assert(ne(ptr, find(&other, TYPE_INT), NULL));
    glsl_result_finish(&narrow);
    glsl_result_finish(&wide);
    glsl_result_finish(&other);

    // A flag, with no value; and one that nobody asks for.
    const struct glsl_define flags[] = {{"FLAG", ""}, {"UNUSED", "1 +"}};
    struct glsl_source source = source_of("#version 460\n"
                                          "#ifndef FLAG\n"
                                          "#error no flag\n"
                                          "#endif\n"
                                          "layout(local_size_x = 7) in;\n"
                                          "void main() {}");
    struct glsl_result result;
    cr_assert(not(glsl_compile(&source, &result)));
    cr_assert(eq(int, result.line, 3));
    check_says(result.message, "no flag");
    source.defines = flags;
    source.num_defines = 2;
    cr_assert(glsl_compile(&source, &result));
    check_module(&result, 7);
    glsl_result_finish(&result);
}

Test(compiler, the_same_text_gives_the_same_words)
{
    struct glsl_result a, b;
    cr_assert(compile_scale("64", "int", &a));
    cr_assert(compile_scale("64", "int", &b));
    cr_assert(eq(u64, a.num_words, b.num_words));
    cr_assert(eq(mem, bytes_of(a.words, a.num_words * sizeof(uint32_t)),
                 bytes_of(b.words, a.num_words * sizeof(uint32_t))));
    glsl_result_finish(&a);
    glsl_result_finish(&b);
}

// --- wrong text --------------------------------------------------------------------------

static void refuses(const struct glsl_source *source, int line, const char *part)
{
    struct glsl_result result;
    if (glsl_compile(source, &result))
        cr_fatal("compiled, expected \"%s\" on line %d", part, line);
    cr_assert(eq(ptr, result.words, NULL));
    cr_assert(eq(u64, result.num_words, 0));
    if (line >= 0 && result.line != line)
        cr_fatal("line %d, expected %d: %s", result.line, line, result.message);
    cr_assert(result.message[0] != 0);
    cr_assert(eq(ptr, strchr(result.message, '\n'), NULL));
    if (!strstr(result.message, part))
        cr_fatal("\"%s\" does not say \"%s\"", result.message, part);
    glsl_result_finish(&result);
}

#define HEAD "#version 460\nlayout(local_size_x = 1) in;\n"

Test(compiler, wrong_text_gets_its_line_and_reason)
{
    static const struct {
        const char *text;
        int line;
        const char *part;
    } cases[] = {
        {HEAD "void main()\n{\n    x = 1;\n}\n", 5, "'x' is not declared"},
        {HEAD "void main()\n{\n    float y = 1\n}\n", 6, "expected ';'"},
        {HEAD "#include \"other.glsl\"\nvoid main() {}\n", 3, "other.glsl is included"},
        {HEAD "void main() { float f = vec2(1); }\n", 3,
         "of type 'vec2', expected 'float'"},
        {HEAD "void main() {}\nvoid main() {}\n", 4, "'main' has two bodies"},
        {HEAD "void helper() {}\n", 0, "no 'void main()'"},
        {"#version 460\nlayout(local_size_q = 1) in;\nvoid main() {}\n", 2, "local_size_q"},
        {"#version 460\nlayout(triangles) in;\nvoid main() {}\n", 2, "triangles"},
        {"#version 460\nvoid main() { gl_Position = vec4(0); }\n", 2, "gl_Position"},
        {"#version 460\n#extension GL_NO_such_thing : require\nvoid main() {}\n", 2,
         "GL_NO_such_thing"},
        {"#version 999\nvoid main() {}\n", 1, "'999' is in #version"},
    };
    const struct glsl_define defines[] = {{"A", "1"}, {"B", "2"}, {"C", "3"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct glsl_source source = source_of(cases[i].text);
        refuses(&source, cases[i].line, cases[i].part);
        source.defines = defines; // which are not counted
        source.num_defines = 3;
        refuses(&source, cases[i].line, cases[i].part);
    }
}

Test(compiler, hostile_text_is_refused_without_harm)
{
    enum { LONG = 1 << 20 };
    struct glsl_source source = {.text = ""};
    refuses(&source, -1, "");
    source = (struct glsl_source){.text = NULL};
    refuses(&source, -1, "");
    source = source_of("\n\n\n");
    refuses(&source, -1, "");
    source = source_of("this is no shader");
    refuses(&source, 1, "");
    source = (struct glsl_source){.text = "\xff\xfe\x80\x01", .size = 4};
    refuses(&source, -1, "");

    // Text that ends before its end.
    const char nul[] = HEAD "void main() {}\n\0 and more";
    source = (struct glsl_source){.text = nul, .size = sizeof(nul) - 1};
    refuses(&source, 4, "NUL");

    char *text = malloc(LONG + 128);
    cr_assert(ne(ptr, text, NULL));
    static const struct {
        const char *before;
        char filler;
    } lines[] = {{HEAD "int ", 'a'},
                 {HEAD "void main() { int a = ", '('},
                 {HEAD, '{'},
                 {HEAD "#define ", 'M'},
                 {HEAD "/*", '*'}};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        size_t head = strlen(lines[i].before);
        memcpy(text, lines[i].before, head);
        memset(text + head, lines[i].filler, LONG);
        source = (struct glsl_source){.text = text, .size = head + LONG};
        refuses(&source, -1, "");
    }

    // Long, and right.
    size_t head = strlen(HEAD "void main() {}");
    memcpy(text, HEAD "void main() {}", head);
    memset(text + head, ' ', LONG);
    source = (struct glsl_source){.text = text, .size = head + LONG};
    struct glsl_result result;
    cr_assert(glsl_compile(&source, &result));
    check_module(&result, 1);
    glsl_result_finish(&result);

    // No byte after `size` is read: there is none.
    char *exact = malloc(head);
    cr_assert(ne(ptr, exact, NULL));
    memcpy(exact, HEAD "void main() {}", head);
    source = (struct glsl_source){.text = exact, .size = head};
    cr_assert(glsl_compile(&source, &result));
    glsl_result_finish(&result);
    free(exact);
    free(text);
}

Test(compiler, text_cut_anywhere_is_harmless)
{
    struct glsl_source source =
        source_of(HEAD "layout(binding = 0) buffer X { float x[]; };\n"
                       "void main() { x[0] = 1; /* end */ }\n");
    size_t whole = source.size, num_right = 0;
    for (source.size = 0; source.size <= whole; source.size++) {
        struct glsl_result result;
        if (glsl_compile(&source, &result)) {
            check_module(&result, 1);
            num_right++;
        } else {
            cr_assert(result.message[0] != 0);
        }
        glsl_result_finish(&result);
    }
    cr_assert(eq(u64, num_right, 2)); // with and without the last line's end
}

// --- many --------------------------------------------------------------------------------

static void compile_both(const struct glsl_result *expected)
{
    struct glsl_result result;
    cr_assert(compile_scale("64", "float", &result));
    cr_assert(eq(u64, result.num_words, expected->num_words));
    cr_assert(eq(mem, bytes_of(result.words, result.num_words * 4),
                 bytes_of(expected->words, result.num_words * 4)));
    glsl_result_finish(&result);
    struct glsl_source source = source_of(HEAD "void main() { x = 1; }\n");
    refuses(&source, 3, "is not declared");
}

static size_t memory_in_use(void)
{
    return mallinfo2().uordblks;
}

Test(compiler, hundreds_of_compilations_take_no_more_memory)
{
    struct glsl_result expected;
    cr_assert(compile_scale("64", "float", &expected));
    for (int i = 0; i < 20; i++)
        compile_both(&expected);
    size_t before = memory_in_use();
    for (int i = 0; i < 200; i++)
        compile_both(&expected);
    size_t after = memory_in_use();
    if (after > before + 65536)
        cr_fatal("%zu bytes after 20 compilations, %zu after 220", before, after);
    glsl_result_finish(&expected);
}

Test(compiler, a_compiler_that_was_unloaded_compiles_again)
{
    for (int i = 0; i < 3; i++) {
        struct glsl_result result;
        cr_assert(compile_scale("16", "float", &result));
        check_module(&result, 16);
        glsl_result_finish(&result);
        glsl_compiler_unload();
        glsl_compiler_unload(); // twice does no harm
    }
}

struct worker {
    pthread_t thread;
    const struct glsl_result *expected;
    int wrong;
};

// Assertions are for the main thread.
static void *work(void *context)
{
    struct worker *worker = context;
    for (int i = 0; i < 25; i++) {
        struct glsl_result result;
        bool same =
            compile_scale("64", "float", &result) &&
            result.num_words == worker->expected->num_words &&
            memcmp(result.words, worker->expected->words, result.num_words * 4) == 0;
        worker->wrong += !same;
        glsl_result_finish(&result);
        struct glsl_source source = source_of(HEAD "void main() {\n\n x = 1; }\n");
        worker->wrong += glsl_compile(&source, &result) || result.line != 5;
        glsl_result_finish(&result);
    }
    return NULL;
}

Test(compiler, threads_compile_side_by_side)
{
    enum { COUNT = 6 };
    struct glsl_result expected;
    struct worker workers[COUNT];
    cr_assert(compile_scale("64", "float", &expected));
    glsl_compiler_unload(); // the first compilation is one of the race
    for (int i = 0; i < COUNT; i++) {
        workers[i] = (struct worker){.expected = &expected};
        cr_assert(eq(int, pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0));
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(workers[i].thread, NULL);
        cr_assert(eq(int, workers[i].wrong, 0));
    }
    glsl_result_finish(&expected);
}

Test(compiler, the_version_names_the_compiler)
{
    cr_assert(ne(ptr, strchr(glsl_compiler_version(), '.'), NULL));
    cr_assert(eq(str, glsl_compiler_version(), glsl_compiler_version()));
}
