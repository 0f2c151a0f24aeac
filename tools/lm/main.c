// SPDX-License-Identifier: MIT
// Stores the options that the command `tenon` has parsed, and runs the mode that it names.
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../tenon/base/shortened.h"
#include "lm.h"

static int lm_read_number(const char *name, const char *text, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    if (!errno && end != text && !*end && *out == *out)
        return 0;
    stop("--%s is '%s', expected a number", name, text);
    return 2;
}

static int lm_read_integer(const char *name, const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (!errno && end != text && !*end && *out >= 0)
        return 0;
    stop("--%s is '%s', expected an integer of 0 or more", name, text);
    return 2;
}

// Cuts a list such as "5=1,7=-inf" at its commas, in place.
static int lm_store_list(const char *name, char *text, const char *what,
                         struct given_list *out)
{
    for (char *one; (one = strsep(&text, ","));) {
        if (out->count == COUNT(out->items)) {
            stop("--%s: more than %zu %s", name, COUNT(out->items), what);
            return 2;
        }
        out->items[out->count++] = one;
    }
    return 0;
}

// Stores an option; `text`: its value, NULL for a switch.
static int store_option(const struct given_option *option, char *text,
                        struct lm_options *given)
{
    void *to = (char *)given + option->at;
    switch (option->kind) {
    case GIVEN_ASIDE:
        return 0;
    case GIVEN_SWITCH:
        *(bool *)to = true;
        return 0;
    case GIVEN_TEXT:
        *(const char **)to = text;
        return 0;
    case GIVEN_NUMBER:
        return lm_read_number(option->name, text, to);
    case GIVEN_INTEGER:
        return lm_read_integer(option->name, text, to);
    case GIVEN_TOKENS:
        return lm_store_list(option->name, text, "tokens", to);
    case GIVEN_FILES:
        return lm_store_list(option->name, text, "files", to);
    }
    return 0;
}

static const struct given_option *given_find(const char *name)
{
    for (size_t i = 0; i < num_given_options; i++)
        if (strcmp(given_options[i].name, name) == 0)
            return &given_options[i];
    return NULL;
}

// Stores the options in front of the mode, as the command writes them: "--NAME VALUE" or
// "--NAME". *out_end: index of the word behind them; 0: not words that the command writes.
static int store_options(int argc, char **argv, struct lm_options *given, int *out_end)
{
    int i = 1;
    *out_end = 0;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0 && argv[i][2]; i++) {
        const struct given_option *option = given_find(argv[i] + 2);
        if (!option || (option->value && i + 1 == argc))
            return 0;
        int failed = store_option(option, option->value ? argv[++i] : NULL, given);
        if (failed)
            return failed;
    }
    *out_end = i + (i < argc && strcmp(argv[i], "--") == 0);
    return 0;
}

// Fails where the printed text has not arrived: nothing else tells a full disk.
static int lm_end_output(int failed)
{
    bool is_lost = fflush(stdout) != 0;
    is_lost |= ferror(stdout) != 0;
    return is_lost && !failed ? stop("cannot write the output") : failed;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct lm_options *given);
    } modes[] = {{"generate", run_generate}, {"chat", run_chat},
                 {"embed", run_embed},       {"perplexity", run_perplexity},
                 {"bench", run_bench},       {"lora", run_lora},
                 {"where", run_where},       {"imatrix", run_imatrix}};
    struct lm_options given = {.sampling = {.struct_size = sizeof(given.sampling)},
                               .adapter_scale = 1,
                               .position = -1};
    tell_shortened_files();
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 1 << 20); // else freed matrices stay in the heap
#endif
    int at, failed = store_options(argc, argv, &given, &at);
    if (failed)
        return failed;
    const char *mode = at > 0 && at < argc ? argv[at] : "";
    given.items = argv + at + 1;
    given.num_items = at < argc ? argc - at - 1 : 0;
    for (size_t i = 0; i < COUNT(modes); i++)
        if (strcmp(modes[i].name, mode) == 0)
            return lm_end_output(modes[i].run(&given));
    stop("this program is run by 'tenon generate' and its like");
    return 2;
}
