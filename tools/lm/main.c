// SPDX-License-Identifier: MIT
// Reads the command line, which the command `tenon` has checked the names of.
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "lm.h"

enum {
    TEMPERATURE = 256,
    TOP_K,
    TOP_P,
    MIN_P,
    PENALTY,
    SEED,
    TOKENS,
    CONTEXT,
    ROUNDS,
    SEQUENCES,
    POSITION,
    CACHE,
    SAVE_CACHE,
    LOAD_CACHE,
    STOP,
    RANDOM,
    SYSTEM,
    TEMPLATE,
    RAW,
    JSON,
};

static const struct option options[] = {
    {"temperature", required_argument, NULL, TEMPERATURE},
    {"top-k", required_argument, NULL, TOP_K},
    {"top-p", required_argument, NULL, TOP_P},
    {"min-p", required_argument, NULL, MIN_P},
    {"penalty", required_argument, NULL, PENALTY},
    {"seed", required_argument, NULL, SEED},
    {"tokens", required_argument, NULL, TOKENS},
    {"context", required_argument, NULL, CONTEXT},
    {"rounds", required_argument, NULL, ROUNDS},
    {"sequences", required_argument, NULL, SEQUENCES},
    {"position", required_argument, NULL, POSITION},
    {"cache", required_argument, NULL, CACHE},
    {"save-cache", required_argument, NULL, SAVE_CACHE},
    {"load-cache", required_argument, NULL, LOAD_CACHE},
    {"stop", required_argument, NULL, STOP},
    {"random", required_argument, NULL, RANDOM},
    {"system", required_argument, NULL, SYSTEM},
    {"template", required_argument, NULL, TEMPLATE},
    {"raw", no_argument, NULL, RAW},
    {"json", no_argument, NULL, JSON},
    {NULL, 0, NULL, 0},
};

static const char *option_name(int number)
{
    for (size_t i = 0; options[i].name; i++)
        if (options[i].val == number)
            return options[i].name;
    return "?";
}

static int read_number(int number, const char *text, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    if (!errno && end != text && !*end && *out == *out)
        return 0;
    stop("--%s is '%s', expected a number", option_name(number), text);
    return 2;
}

static int read_integer(int number, const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (!errno && end != text && !*end && *out >= 0)
        return 0;
    stop("--%s is '%s', expected an integer of 0 or more", option_name(number), text);
    return 2;
}

static int read_option(struct given *given, int number, const char *text)
{
    tn_lm_sampling *s = &given->sampling;
    int64_t seed;
    int failed;
    switch (number) {
    case TEMPERATURE:
        return read_number(number, text, &s->temperature);
    case TOP_P:
        return read_number(number, text, &s->top_p);
    case MIN_P:
        return read_number(number, text, &s->min_p);
    case PENALTY:
        return read_number(number, text, &s->penalty);
    case TOP_K:
        return read_integer(number, text, &s->top_k);
    case TOKENS:
        return read_integer(number, text, &given->tokens);
    case CONTEXT:
        return read_integer(number, text, &given->context);
    case ROUNDS:
        return read_integer(number, text, &given->rounds);
    case SEED:
        failed = read_integer(number, text, &seed);
        s->seed = failed ? 0 : (uint64_t)seed;
        return failed;
    case SEQUENCES:
        return read_integer(number, text, &given->sequences);
    case POSITION:
        return read_integer(number, text, &given->position);
    case CACHE:
        given->cache = text;
        return 0;
    case SAVE_CACHE:
        given->save_to = text;
        return 0;
    case LOAD_CACHE:
        given->load_from = text;
        return 0;
    case STOP:
        given->stop = text;
        return 0;
    case RANDOM:
        given->random = text;
        return 0;
    case SYSTEM:
        given->system = text;
        return 0;
    case TEMPLATE:
        given->template = text;
        return 0;
    case RAW:
        given->raw = true;
        return 0;
    case JSON:
        given->json = true;
        return 0;
    default:
        return 2; // getopt_long has told
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct given *given);
    } modes[] = {{"generate", run_generate},
                 {"chat", run_chat},
                 {"perplexity", run_perplexity},
                 {"bench", run_bench}};
    struct given given = {.sampling = {.struct_size = sizeof(given.sampling)},
                          .position = -1};
    for (int number; (number = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        int failed = read_option(&given, number, optarg);
        if (failed)
            return failed;
    }
    const char *mode = optind < argc ? argv[optind] : "";
    given.items = argv + optind + 1;
    given.num_items = optind < argc ? argc - optind - 1 : 0;
    for (size_t i = 0; i < COUNT(modes); i++)
        if (strcmp(modes[i].name, mode) == 0)
            return modes[i].run(&given);
    stop("this program is run by 'tenon generate' and its like");
    return 2;
}
