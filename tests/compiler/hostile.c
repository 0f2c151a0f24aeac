// SPDX-License-Identifier: MIT
// Shaders made to take long, much memory, or the stack: each ends in bounded time, compiled
// or with an error that has a reason.
#include "check.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include "compiler.h"

enum { MOST_SECONDS = 10, MOST_BYTES = 1 << 30 }; // of the processor; of memory

struct builder {
    char *text;
    size_t size, capacity;
};

static void add(struct builder *b, const char *text, size_t times)
{
    size_t length = strlen(text);
    while (b->size + length * times + 1 > b->capacity) {
        b->capacity = 2 * b->capacity + 4096;
        b->text = realloc(b->text, b->capacity);
        cr_assert(ne(ptr, b->text, NULL));
    }
    for (size_t i = 0; i < times; i++, b->size += length)
        memcpy(b->text + b->size, text, length);
    b->text[b->size] = '\0';
}

static void begin(struct builder *b)
{
    add(b, "#version 460\nlayout(binding = 0) buffer B { uint d[]; } b;\n", 1);
}

// Compiles, with and without the passes. Whether that is done in time is the processor's
// limit to say.
static void compile(struct builder *b)
{
    for (uint32_t flags = 0; flags <= GLSL_NOT_OPTIMISED; flags += GLSL_NOT_OPTIMISED) {
        struct glsl_source source = {.text = b->text, .size = b->size, .flags = flags};
        struct glsl_result result;
        struct timespec t;
        bool done = glsl_compile(&source, &result);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        fprintf(stderr, "# %zu bytes of text, %s%s, %zu words, after %.2f s\n", b->size,
                done ? "compiled" : "refused: ", result.message, result.num_words,
                (double)t.tv_sec + (double)t.tv_nsec * 1e-9);
        if (!done)
            cr_assert(result.message[0] != '\0');
        glsl_result_finish(&result);
    }
    free(b->text);
}

static void set_limits(void)
{
    struct rlimit seconds = {MOST_SECONDS, MOST_SECONDS};
    setrlimit(RLIMIT_CPU, &seconds);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rlimit memory = {MOST_BYTES, MOST_BYTES};
    setrlimit(RLIMIT_AS, &memory);
#endif
}

TestSuite(hostile, .init = set_limits);

// What stands before the middle, in it and behind it, so many times.
static const struct nesting {
    const char *name, *before, *middle, *after;
} nestings[] = {
    {"parentheses", "(", "1u", ")"},
    {"signs", "- ", "1u", ""},
    {"negations", "~", "1u", ""},
    {"choices", "true ? 1u : ", "1u", ""},
    {"conditions", "true ? ", "1u", " : 2u"},
    {"sums", "", "1u", " + b.d[1]"},
    {"constant sums", "", "1u", " + 1u"},
    {"assignments", "b.d[0] = ", "1u", ""},
    {"indices", "b.d[", "0", "]"},
    {"constructors", "uint(", "1", ")"},
    {"calls", "max(1u, ", "1u", ")"},
    {"products", "uint(true) * ", "1u", ""},
    {"commas", "", "1u", ", 2u"},
};

Test(hostile, expressions_of_any_depth_end)
{
    for (size_t i = 0; i < sizeof(nestings) / sizeof(nestings[0]); i++)
        for (size_t times = 200; times <= 20000; times *= 100) {
            struct builder b = {0};
            fprintf(stderr, "# %zu %s\n", times, nestings[i].name);
            begin(&b);
            add(&b, "void main() { b.d[0] = ", 1);
            add(&b, nestings[i].before, times);
            add(&b, nestings[i].middle, 1);
            add(&b, nestings[i].after, times);
            add(&b, "; }\n", 1);
            compile(&b);
        }
}

static const struct nesting blocks[] = {
    {"blocks", "{", "b.d[0]++;", "}"},
    {"selections", "if (b.d[1] > 1u) {", "b.d[0]++;", "}"},
    {"other ways", "if (b.d[1] > 1u) b.d[2]++; else ", "b.d[0]++;", ""},
    {"loops", "for (uint i = 0u; i < b.d[1]; i++) {", "b.d[0]++;", "}"},
    {"loops behind", "do {", "b.d[0]++;", "} while (b.d[1]++ > 2u);"},
    {"switches", "switch (b.d[1]) { case 1u:", "b.d[0]++;", "}"},
    {"empty statements", ";", "", ""},
    {"statements", "b.d[0]++;", "", ""},
    {"selections in a row", "if (b.d[1] > 1u) b.d[0]++;", "", ""},
    {"variables", "{ uint x = b.d[1]; b.d[0] += x; }", "", ""},
};

Test(hostile, statements_of_any_number_end)
{
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        for (size_t times = 100; times <= 10000; times *= 100) {
            struct builder b = {0};
            fprintf(stderr, "# %zu %s\n", times, blocks[i].name);
            begin(&b);
            add(&b, "void main() { ", 1);
            add(&b, blocks[i].before, times);
            add(&b, blocks[i].middle, 1);
            add(&b, blocks[i].after, times);
            add(&b, " }\n", 1);
            compile(&b);
        }
}

// Each function calls the one before twice: inlined, 2^n calls.
Test(hostile, functions_that_double_end)
{
    struct builder b = {0};
    char text[128];
    begin(&b);
    add(&b, "uint f0(uint x) { return x * b.d[x]; }\n", 1);
    for (unsigned i = 1; i < 40; i++) {
        snprintf(text, sizeof(text), "uint f%u(uint x) { return f%u(x) + f%u(x + 1u); }\n",
                 i, i - 1, i - 1);
        add(&b, text, 1);
    }
    add(&b, "void main() { b.d[0] = f39(b.d[1]); }\n", 1);
    compile(&b);
}

// Each macro is the one before twice.
Test(hostile, macros_that_double_end)
{
    struct builder b = {0};
    char text[64];
    begin(&b);
    add(&b, "#define M0 + b.d[1]\n", 1);
    for (unsigned i = 1; i < 40; i++) {
        snprintf(text, sizeof(text), "#define M%u M%u M%u\n", i, i - 1, i - 1);
        add(&b, text, 1);
    }
    add(&b, "void main() { b.d[0] = 1u M39; }\n", 1);
    compile(&b);
}

// Arguments that double: each call has the one before twice in its argument.
Test(hostile, arguments_that_double_end)
{
    struct builder b = {0};
    begin(&b);
    add(&b, "#define F(x) x + x\nvoid main() { b.d[0] = ", 1);
    add(&b, "F(", 40);
    add(&b, "1u", 1);
    add(&b, ")", 40);
    add(&b, "; }\n", 1);
    compile(&b);
}

// Structs that double in size, and their copies.
Test(hostile, types_that_double_end)
{
    struct builder b = {0};
    char text[96];
    begin(&b);
    add(&b, "struct S0 { uint x; };\n", 1);
    for (unsigned i = 1; i < 30; i++) {
        snprintf(text, sizeof(text), "struct S%u { S%u a; S%u b; };\n", i, i - 1, i - 1);
        add(&b, text, 1);
    }
    add(&b, "void main() { S29 s; S29 t = s; b.d[0] = s == t ? 1u : 2u; }\n", 1);
    compile(&b);
}

Test(hostile, large_arrays_end)
{
    static const char *const bodies[] = {
        "uint a[100000000]; a[b.d[1]] = 1u; b.d[0] = a[2];",
        "uint a[60000]; uint c[60000] = a; c[b.d[1]] = 2u; b.d[0] = c[0] + uint(a == c);",
        "uint a[1000][1000]; a[b.d[1]][3] = 1u; b.d[0] = a[2][2];",
        "uvec4 a[4096]; a[5] = uvec4(1u); a[6].y = 3u; b.d[0] = a[5].x + a[7].y;",
        "for (uint i = 0u; i < 4294967295u; i++) b.d[0] += i;",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct builder b = {0};
        fprintf(stderr, "# %s\n", bodies[i]);
        begin(&b);
        add(&b, "void main() { ", 1);
        add(&b, bodies[i], 1);
        add(&b, " }\n", 1);
        compile(&b);
    }
}

// The most that the process has had, in bytes: the peak of its resident memory.
static size_t peak_memory(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (size_t)used.ru_maxrss * 1024;
}

// More text than is read is not even copied; what includes multiply, or macros, is bounded.
Test(hostile, sources_of_100_mb_end_at_once)
{
    enum { MB = 1 << 20, SIZE = 100 * MB };
    struct builder b = {0};
    begin(&b);
    add(&b, "void f() { b.d[0] += 1u; }\n", SIZE / 27);
    size_t before = peak_memory();
    clock_t begun = clock();
    struct glsl_source source = {.text = b.text, .size = b.size};
    struct glsl_result result;
    cr_assert(eq(int, glsl_compile(&source, &result), false));
    cr_assert(eq(str, result.message + strcspn(result.message, ":"),
                 (char *)": expected at most 16 MiB"));
    double seconds = (double)(clock() - begun) / (double)CLOCKS_PER_SEC;
    cr_assert(seconds < 0.5);
    cr_assert(peak_memory() - before < 4 * MB);
    glsl_result_finish(&result);
    free(b.text);
}

static const char *include_itself(void *context, const char *name, const char *from,
                                  size_t *size)
{
    (void)name, (void)from;
    *size = strlen(context);
    return context;
}

// Each file includes the next one twice, 64 levels deep; and files of 16 MB again and
// again.
Test(hostile, includes_that_double_end)
{
    struct builder large = {0};
    add(&large, "#include \"a\"\n#include \"a\"\n", 1);
    struct builder wide = {0};
    add(&wide, "; ", 8 << 20);
    const char *const texts[] = {large.text, wide.text};
    for (size_t i = 0; i < 2; i++) {
        struct builder b = {0};
        begin(&b);
        add(&b, "#include \"a\"\n", i ? 1000 : 1);
        struct glsl_source source = {.text = b.text,
                                     .size = b.size,
                                     .include = include_itself,
                                     .include_context = (void *)(uintptr_t)texts[i]};
        struct glsl_result result;
        cr_assert(eq(int, glsl_compile(&source, &result), false));
        fprintf(stderr, "# %s, %zu MB\n", result.message, peak_memory() >> 20);
        cr_assert(result.message[0] != '\0');
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        cr_assert(peak_memory() < (size_t)400 << 20); // of a compilation 256 MiB
#endif
        glsl_result_finish(&result);
        free(b.text);
    }
    free(large.text);
    free(wide.text);
}

Test(hostile, long_texts_end)
{
    static const char *const pieces[] = {"x",
                                         "(",
                                         " ",
                                         "\n",
                                         "/*",
                                         "//\\\n",
                                         "\"",
                                         "#if 1\n",
                                         "0",
                                         ".",
                                         "#define A(x) A(A(x))\nA(1)\n",
                                         "\\\n",
                                         "a ## ",
                                         "\xff"};
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct builder b = {0};
        fprintf(stderr, "# %s\n", pieces[i]);
        begin(&b);
        add(&b, pieces[i], (4 << 20) / strlen(pieces[i]));
        compile(&b);
    }
}
