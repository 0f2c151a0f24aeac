// SPDX-License-Identifier: MIT
// Compiles every shader of the project by glslang and by another compiler: both outputs are
// valid and have the same interface, and what one compiler refuses the other refuses.
//
//   compare-shaders [--other NAME] [--plant N] [--dump FOLDER] [--list] [FILTER]
//
// Prints a table of failures grouped by message, and the times and sizes of both. --dump
// writes the text, the modules and their disassembly of each shader that fails (with a
// FILTER: of each). --plant N: the other compiler is glslang with difference N planted.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "compilers.h"
#include "interface.h"
#include "texts.h"

enum { MOST_GROUPS = 256 };

struct group {
    char message[512];
    char example[128]; // the first shader that has it
    unsigned count;
};

// What one compiler took, over all shaders.
struct figures {
    double *ms;
    size_t count;
    size_t words, most_words;
    double slowest;
    char slowest_name[128];
};

struct run {
    const struct compiler_choice *other;
    const char *dump;
    bool dumps_all;
    struct group groups[MOST_GROUPS];
    unsigned num_groups, num_failed, num_refused, num_alone;
    struct figures oracle_figures, other_figures;
    const struct shader_text *text; // that is being compared
    bool failed;                    // it
};

// --- failures --------------------------------------------------------------------------

static void fail(struct run *run, const char *message)
{
    run->num_failed += !run->failed;
    run->failed = true;
    unsigned i = 0;
    while (i < run->num_groups && strcmp(run->groups[i].message, message) != 0)
        i++;
    if (i == MOST_GROUPS)
        return;
    struct group *group = &run->groups[i];
    if (i == run->num_groups) {
        run->num_groups++;
        *group = (struct group){.count = 0};
        snprintf(group->message, sizeof(group->message), "%s", message);
        snprintf(group->example, sizeof(group->example), "%s", run->text->name);
    }
    group->count++;
}

static void tell_difference(void *context, const char *what, const char *line)
{
    char message[512];
    snprintf(message, sizeof(message), "interface: %s %s", what, line);
    fail(context, message);
}

static int by_count(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return (x->count < y->count) - (x->count > y->count);
}

static void print_groups(struct run *run)
{
    qsort(run->groups, run->num_groups, sizeof(run->groups[0]), by_count);
    for (unsigned i = 0; i < run->num_groups; i++)
        printf("%6u  %s\n        first: %s\n", run->groups[i].count, run->groups[i].message,
               run->groups[i].example);
}

// --- times and sizes -------------------------------------------------------------------

// The processor's time, so that what else runs does not count.
static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void add_figures(struct figures *f, const char *name, double ms, size_t words)
{
    f->ms[f->count++] = ms;
    f->words += words;
    f->most_words = words > f->most_words ? words : f->most_words;
    if (ms > f->slowest) {
        f->slowest = ms;
        snprintf(f->slowest_name, sizeof(f->slowest_name), "%s", name);
    }
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_figures(const char *name, struct figures *f)
{
    double sum = 0;
    if (f->count == 0)
        return;
    for (size_t i = 0; i < f->count; i++)
        sum += f->ms[i];
    qsort(f->ms, f->count, sizeof(f->ms[0]), by_time);
    printf("%-10s ms: least %.3f, median %.3f, most %.3f (%s), sum %.0f; words: mean %zu, "
           "most %zu\n",
           name, f->ms[0], f->ms[f->count / 2], f->slowest, f->slowest_name, sum,
           f->words / f->count, f->most_words);
}

// --- dumps -----------------------------------------------------------------------------

static void write_file(const struct run *run, const char *suffix, const void *data,
                       size_t size)
{
    char path[512], name[128];
    snprintf(name, sizeof(name), "%s", run->text->name);
    for (char *at = name; *at; at++)
        if (*at == '/' || *at == ' ')
            *at = '_';
    snprintf(path, sizeof(path), "%s/%s%s", run->dump, name, suffix);
    FILE *file = fopen(path, "w");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
}

static void dump_module(const struct run *run, const char *compiler,
                        const struct glsl_result *result)
{
    char suffix[64];
    if (!result->words)
        return;
    snprintf(suffix, sizeof(suffix), ".%s.spv", compiler);
    write_file(run, suffix, result->words, result->num_words * sizeof(uint32_t));
    char *text = spirv_text(result->words, result->num_words);
    snprintf(suffix, sizeof(suffix), ".%s.txt", compiler);
    write_file(run, suffix, text, strlen(text));
    free(text);
}

static void dump_text(const struct run *run)
{
    const struct shader_text *text = run->text;
    const char *newline = strchr(text->text, '\n');
    size_t first = newline ? (size_t)(newline - text->text) + 1 : text->size;
    size_t size = 0, room = text->size + 64;
    for (size_t i = 0; i < text->num_defines; i++)
        room += strlen(text->define[i].name) + strlen(text->define[i].value) + 16;
    char *out = malloc(room);
    if (!out)
        abort();
    memcpy(out, text->text, first);
    size = first;
    for (size_t i = 0; i < text->num_defines; i++)
        size += (size_t)snprintf(out + size, room - size, "#define %s %s\n",
                                 text->define[i].name, text->define[i].value);
    memcpy(out + size, text->text + first, text->size - first);
    write_file(run, ".comp", out, size + text->size - first);
    free(out);
}

// --- one shader ------------------------------------------------------------------------

static bool compile(struct run *run, const struct compiler_choice *compiler,
                    struct figures *figures, struct glsl_result *out)
{
    struct glsl_source source = texts_source(run->text);
    double begin = now_ms();
    bool done = compiler->compile(&source, out);
    double ms = now_ms() - begin;
    if (done)
        add_figures(figures, run->text->name, ms, out->num_words);
    return done;
}

static void compare_interfaces(struct run *run, const struct glsl_result *oracle,
                               const struct glsl_result *other)
{
    struct interface a = interface_read(oracle->words, oracle->num_words), needed = a;
    struct interface b = interface_read(other->words, other->num_words);
    struct glsl_result least = {0};
    if (a.count != b.count && spirv_drop_dead(oracle->words, oracle->num_words, &least))
        needed = interface_read(least.words, least.num_words);
    interface_compare(&a, &needed, &b, tell_difference, run);
    interface_free(&a);
    interface_free(&b);
    if (least.words)
        interface_free(&needed);
    compiler_glslang.finish(&least);
}

static void check_both(struct run *run, const struct glsl_result *oracle,
                       const struct glsl_result *other)
{
    char reason[256], message[512];
    if (!spirv_validate(oracle->words, oracle->num_words, reason)) {
        snprintf(message, sizeof(message), "glslang's is not valid: %s", reason);
        fail(run, message);
    }
    if (!spirv_validate(other->words, other->num_words, reason)) {
        snprintf(message, sizeof(message), "not valid: %s", reason);
        fail(run, message);
        return;
    }
    compare_interfaces(run, oracle, other);
}

static void compare(struct run *run, const struct shader_text *text)
{
    struct glsl_result oracle = {0}, other = {0};
    char message[512];
    run->text = text;
    run->failed = false;
    bool a = compile(run, &compiler_glslang, &run->oracle_figures, &oracle);
    bool b = compile(run, run->other, &run->other_figures, &other);
    if (a && b)
        check_both(run, &oracle, &other);
    else if (a) {
        snprintf(message, sizeof(message), "refused: %s", other.message);
        fail(run, message);
        if (run->dump)
            printf("%s:%d:%d: %s\n", text->name, other.line, other.column, other.message);
    } else if (b && strstr(oracle.message, "extension not supported")) {
        run->num_alone++; // cooperative matrices: newer than Debian 12's glslang
    } else if (b) {
        snprintf(message, sizeof(message), "taken, but glslang says: line %d: %s",
                 oracle.line, oracle.message);
        fail(run, message);
    } else
        run->num_refused++;
    if (run->dump && (run->failed || run->dumps_all)) {
        dump_text(run);
        dump_module(run, "glslang", &oracle);
        dump_module(run, run->other->name, &other);
    }
    compiler_glslang.finish(&oracle);
    run->other->finish(&other);
}

// --- options ---------------------------------------------------------------------------

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: compare-shaders [--other NAME] [--plant N] [--dump FOLDER] [--list] "
            "[FILTER]\n"
            "NAME: one of %s\n",
            compiler_names());
    for (unsigned i = 0; compiler_plant(i); i++)
        fprintf(stderr, "--plant %u: %s\n", i, compiler_plant(i));
    exit(2);
}

static const char *read_options(int argc, char **argv, struct run *run, bool *lists)
{
    const char *filter = NULL;
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--other") == 0 && has_value)
            run->other = compiler_find(argv[++i]);
        else if (strcmp(argv[i], "--plant") == 0 && has_value) {
            run->other = compiler_find("planted");
            if (!compiler_plant((unsigned)strtoul(argv[++i], NULL, 10)))
                usage();
        } else if (strcmp(argv[i], "--dump") == 0 && has_value)
            run->dump = argv[++i];
        else if (strcmp(argv[i], "--list") == 0)
            *lists = true;
        else if (argv[i][0] == '-' || filter)
            usage();
        else
            filter = argv[i];
    }
    if (!run->other)
        usage();
    run->dumps_all = filter != NULL;
    return filter;
}

int main(int argc, char **argv)
{
    static struct run run;
    bool lists = false;
    run.other = compiler_other();
    const char *filter = read_options(argc, argv, &run, &lists);
    struct shader_texts texts = texts_collect(filter);
    if (texts.count == 0) {
        fprintf(stderr, "no shader's name contains \"%s\"\n", filter ? filter : "");
        return 2;
    }
    if (run.dump && mkdir(run.dump, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "%s: %s\n", run.dump, strerror(errno));
        return 2;
    }
    run.oracle_figures.ms = calloc(texts.count, sizeof(double));
    run.other_figures.ms = calloc(texts.count, sizeof(double));
    if (!run.oracle_figures.ms || !run.other_figures.ms)
        return 2;
    for (size_t i = 0; i < texts.count; i++) {
        if (lists)
            printf("%s\n", texts.items[i].name);
        else
            compare(&run, &texts.items[i]);
    }
    if (!lists) {
        print_groups(&run);
        print_figures("glslang", &run.oracle_figures);
        print_figures(run.other->name, &run.other_figures);
        printf("%zu shaders, %u of them refused by both, %u with extensions that glslang "
               "lacks: "
               "%u differ between glslang and %s\n",
               texts.count, run.num_refused, run.num_alone, run.num_failed,
               run.other->name);
    }
    free(run.oracle_figures.ms);
    free(run.other_figures.ms);
    texts_free(&texts);
    run.other->unload();
    compiler_glslang.unload();
    return run.num_failed > 0;
}
