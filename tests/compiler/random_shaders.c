// SPDX-License-Identifier: MIT
// Random kernels by glslang and by another compiler: both outputs are valid, and compute
// the same bits on the first device of Vulkan.
//
//   random-shaders [--seed N] [--count N] [--other NAME] [--plant N] [--print]
//   [--keep-going]
//
// --count: kernels; eight share a shader. A failure is shortened and printed, with the seed
// of its shader, from which `--seed N --count 8` makes it again; --brief: the seed alone.
// --print: prints the shaders and compiles nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "compilers.h"
#include "generate.h"
#include "gpu.h"
#include "reduce.h"

enum { KERNELS = 8, MOST_TRIES = 1500 };

struct options {
    uint64_t seed;
    uint32_t count;
    const struct compiler_choice *other;
    bool prints, keeps_going, is_brief;
};

// How a shader fares: a failure that is shortened stays of its kind.
enum outcome { SAME, REFUSED_BY_BOTH, REFUSED, NOT_VALID, NOT_RUN, DIFFERENT };

struct check {
    struct gpu *gpu; // NULL: nothing is run
    const struct compiler_choice *other;
    enum outcome outcome;
    char message[320];
};

// --- one shader ------------------------------------------------------------------------

static void run_both(struct check *check, const struct glsl_result *a,
                     const struct glsl_result *b)
{
    static uint32_t given[GENERATED_INPUT], result[GENERATED_GROUP * KERNELS];
    static const uint32_t push[GENERATED_PUSH] = {
        3, 0x80000001, 77, 0xfffffff0, (uint32_t)-5, 0x40b00000 /* 5.5 */, 9, 10};
    for (uint32_t i = 0; i < GENERATED_INPUT; i++)
        given[i] = i % 3 ? i * 2654435761u : i;
    memset(result, 0, sizeof(result));
    const struct gpu_job job = {.words = a->words,
                                .num_words = a->num_words,
                                .buffers = {given, result},
                                .sizes = {sizeof(given), sizeof(result)},
                                .num_buffers = 2,
                                .push = push,
                                .push_size = sizeof(push),
                                .spec_ids = {0, 1, 2},
                                .spec_values = {2, 77, 1},
                                .num_spec = GENERATED_SPEC,
                                .groups = {1, 1, 1}};
    uint32_t buffer = 0, got[2];
    size_t word = 0;
    char reason[128] = "";
    int same =
        gpu_run_pair(check->gpu, &job, b->words, b->num_words, &buffer, &word, got, reason);
    if (same < 0) {
        check->outcome = NOT_RUN;
        snprintf(check->message, sizeof(check->message), "not run: %s", reason);
    } else if (same == 0) {
        check->outcome = DIFFERENT;
        snprintf(check->message, sizeof(check->message),
                 "invocation %zu, kernel %zu: glslang's digest is %08x, the other's %08x",
                 word / KERNELS, word % KERNELS, got[0], got[1]);
    }
}

static void compare(struct check *check, const char *text)
{
    const struct glsl_source source = {.text = text, .size = strlen(text)};
    struct glsl_result a = {0}, b = {0};
    char reason[256];
    bool first = compiler_glslang.compile(&source, &a);
    bool second = check->other->compile(&source, &b);
    check->outcome = SAME;
    check->message[0] = '\0';
    if (!first || !second) {
        check->outcome = !first ? REFUSED_BY_BOTH : REFUSED;
        const struct glsl_result *wrong = first ? &b : &a;
        snprintf(check->message, sizeof(check->message), "%s: line %d: %s",
                 first ? "refused" : "glslang refuses it", wrong->line, wrong->message);
    } else if (!spirv_validate(b.words, b.num_words, reason)) {
        check->outcome = NOT_VALID;
        snprintf(check->message, sizeof(check->message), "not valid: %s", reason);
    } else if (check->gpu)
        run_both(check, &a, &b);
    compiler_glslang.finish(&a);
    check->other->finish(&b);
}

// --- failures --------------------------------------------------------------------------

struct wanted {
    struct check *check;
    enum outcome outcome;
    char message[320];
};

// Whether two messages of a validator or compiler are one but for ids and lines.
static bool is_alike(const char *a, const char *b)
{
    while (*a || *b) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b)
            return false;
        if (!*a)
            break;
        a++;
        b++;
    }
    return true;
}

static bool fails_alike(void *context, const char *text)
{
    struct wanted *wanted = context;
    compare(wanted->check, text);
    return wanted->check->outcome == wanted->outcome &&
           (wanted->outcome == DIFFERENT ||
            is_alike(wanted->check->message, wanted->message));
}

static void report(struct check *check, uint64_t seed, const char *text, bool is_brief)
{
    struct wanted wanted = {check, check->outcome, ""};
    memcpy(wanted.message, check->message, sizeof(wanted.message));
    printf("seed %llu: %s\n", (unsigned long long)seed, check->message);
    if (is_brief)
        return;
    char *shorter = reduce_text(text, fails_alike, &wanted, MOST_TRIES);
    compare(check, shorter);
    printf("--- shortened: %s\n%s---\n", check->message, shorter);
    fflush(stdout);
    free(shorter);
}

// --- options ---------------------------------------------------------------------------

static _Noreturn void usage(void)
{
    fprintf(
        stderr,
        "usage: random-shaders [--seed N] [--count N] [--other NAME] [--plant N] [--print] "
        "[--keep-going] [--brief]\nNAME: one of %s\n",
        compiler_names());
    exit(2);
}

static void read_options(int argc, char **argv, struct options *out)
{
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--seed") == 0 && has_value)
            out->seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--count") == 0 && has_value)
            out->count = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--other") == 0 && has_value)
            out->other = compiler_find(argv[++i]);
        else if (strcmp(argv[i], "--plant") == 0 && has_value) {
            out->other = compiler_find("planted");
            if (!compiler_plant((unsigned)strtoul(argv[++i], NULL, 10)))
                usage();
        } else if (strcmp(argv[i], "--print") == 0)
            out->prints = true;
        else if (strcmp(argv[i], "--keep-going") == 0)
            out->keeps_going = true;
        else if (strcmp(argv[i], "--brief") == 0)
            out->is_brief = true;
        else
            usage();
    }
    if (!out->other)
        usage();
}

int main(int argc, char **argv)
{
    struct options options = {.seed = 1, .count = 1000, .other = compiler_other()};
    uint32_t failed = 0, shaders;
    read_options(argc, argv, &options);
    shaders = (options.count + KERNELS - 1) / KERNELS;
    // One workgroup: the threads of the software driver would only wait for each other.
    setenv("LP_NUM_THREADS", "0", 0);
    setenv("LP_NATIVE_VECTOR_WIDTH", "128", 0); // see GENERATED_ALIKE
    struct check check = {.gpu = options.prints ? NULL : gpu_open(),
                          .other = options.other};
    printf("seed %llu, %u shaders of %d kernels, %s%s%s\n",
           (unsigned long long)options.seed, shaders, KERNELS, options.other->name,
           check.gpu ? " on " : "", check.gpu ? gpu_name(check.gpu) : ", not run");
    fflush(stdout);
    if (!check.gpu &&
        options.is_brief) // the tests of what is planted, which only bits show
        return 77;
    for (uint32_t i = 0; i < shaders && (failed == 0 || options.keeps_going); i++) {
        char *text = generate_shader(options.seed + i, KERNELS);
        if (options.prints)
            printf("%s", text);
        else
            compare(&check, text);
        if (check.outcome != SAME) {
            failed++;
            report(&check, options.seed + i, text, options.is_brief);
        }
        free(text);
    }
    if (check.gpu)
        gpu_close(check.gpu);
    printf("%u of %u shaders failed\n", failed, shaders);
    options.other->unload();
    compiler_glslang.unload();
    return failed > 0;
}
