// SPDX-License-Identifier: MIT
// How long our compiler takes for each shader of the project: compile-times [--repeat N]
// [--all] [WORD]. Processor time of the least of N compilations, as in a process that has
// compiled before; and of the first one of the process. Without --all the slowest alone.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "texts.h"

enum { SHOWN = 20 };

struct timed {
    const struct shader_text *text;
    double us;
};

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

// Negative: the shader is one of those that are wrong on purpose.
static double compile(const struct shader_text *text)
{
    const struct glsl_source source = texts_source(text);
    struct glsl_result result;
    double begin = now_us();
    bool compiled = glsl_compile(&source, &result);
    double us = compiled ? now_us() - begin : -1;
    glsl_result_finish(&result);
    return us;
}

static int slowest_first(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    return x->us < y->us ? 1 : x->us > y->us ? -1 : 0;
}

int main(int argc, char **argv)
{
    int repeat = 5;
    bool all = false;
    const char *word = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0)
            all = true;
        else if (strcmp(argv[i], "--repeat") == 0 && i + 1 < argc)
            repeat = atoi(argv[++i]);
        else if (argv[i][0] != '-' && !word)
            word = argv[i];
        else
            return fprintf(stderr, "usage: compile-times [--repeat N] [--all] [WORD]\n"), 2;
    }
    struct shader_texts texts = texts_collect(word);
    struct timed *times = calloc(texts.count + 1, sizeof(*times));
    if (!times || texts.count == 0)
        return fprintf(stderr, "no shader\n"), 1;
    double sum = 0, first = compile(&texts.items[0]);
    size_t count = 0;
    for (size_t i = 0; i < texts.count; i++) {
        double least = compile(&texts.items[i]);
        for (int k = 1; k < repeat && least >= 0; k++) {
            double us = compile(&texts.items[i]);
            least = us < least ? us : least;
        }
        if (least < 0)
            continue;
        times[count++] = (struct timed){&texts.items[i], least};
        sum += least;
    }
    qsort(times, count, sizeof(*times), slowest_first);
    for (size_t i = 0; i < count && (all || i < SHOWN); i++)
        printf("%9.1f us  %s\n", times[i].us, times[i].text->name);
    printf("%zu shaders: slowest %.1f us, median %.1f us, fastest %.1f us, all %.1f ms; "
           "the first of "
           "the process %.1f us\n",
           count, times[0].us, times[count / 2].us, times[count - 1].us, sum * 1e-3, first);
    free(times);
    texts_free(&texts);
    glsl_compiler_unload();
    return 0;
}
