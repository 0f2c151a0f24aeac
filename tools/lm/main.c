// SPDX-License-Identifier: MIT
// Reads the command line, which the command `tenon` has checked the names of.
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../tenon/base/shortened.h"
#include "lm.h"

enum {
    TEMPERATURE = 256,
    TOP_K,
    TOP_P,
    MIN_P,
    PENALTY,
    PENALTY_LAST,
    PRESENCE,
    FREQUENCY,
    SEED,
    TOKENS,
    CONTEXT,
    ROUNDS,
    SEQUENCES,
    POSITION,
    CACHE,
    SPLIT,
    SAVE_CACHE,
    LOAD_CACHE,
    STOP,
    RANDOM,
    SYSTEM,
    TEMPLATE,
    RAW,
    JSON,
    GRAMMAR,
    JSON_SCHEMA,
    BIAS,
    TOP,
    POOLING,
    PLAIN,
    ADAPTER,
    ADAPTER_SCALE,
    IMAGE,
    MMPROJ,
    WEIGHTS,
    OUTPUT,
    PLOT,
    RANK,
    ALPHA,
    STEPS,
    WINDOW,
    RATE,
};

static const struct option options[] = {
    {"temperature", required_argument, NULL, TEMPERATURE},
    {"top-k", required_argument, NULL, TOP_K},
    {"top-p", required_argument, NULL, TOP_P},
    {"min-p", required_argument, NULL, MIN_P},
    {"penalty", required_argument, NULL, PENALTY},
    {"penalty-last", required_argument, NULL, PENALTY_LAST},
    {"presence", required_argument, NULL, PRESENCE},
    {"frequency", required_argument, NULL, FREQUENCY},
    {"seed", required_argument, NULL, SEED},
    {"tokens", required_argument, NULL, TOKENS},
    {"context", required_argument, NULL, CONTEXT},
    {"rounds", required_argument, NULL, ROUNDS},
    {"sequences", required_argument, NULL, SEQUENCES},
    {"position", required_argument, NULL, POSITION},
    {"cache", required_argument, NULL, CACHE},
    {"split", required_argument, NULL, SPLIT},
    {"save-cache", required_argument, NULL, SAVE_CACHE},
    {"load-cache", required_argument, NULL, LOAD_CACHE},
    {"stop", required_argument, NULL, STOP},
    {"random", required_argument, NULL, RANDOM},
    {"system", required_argument, NULL, SYSTEM},
    {"template", required_argument, NULL, TEMPLATE},
    {"raw", no_argument, NULL, RAW},
    {"json", no_argument, NULL, JSON},
    {"grammar", required_argument, NULL, GRAMMAR},
    {"json-schema", required_argument, NULL, JSON_SCHEMA},
    {"bias", required_argument, NULL, BIAS},
    {"top", required_argument, NULL, TOP},
    {"pooling", required_argument, NULL, POOLING},
    {"plain", no_argument, NULL, PLAIN},
    {"adapter", required_argument, NULL, ADAPTER},
    {"adapter-scale", required_argument, NULL, ADAPTER_SCALE},
    {"image", required_argument, NULL, IMAGE},
    {"mmproj", required_argument, NULL, MMPROJ},
    {"weights", required_argument, NULL, WEIGHTS},
    {"output", required_argument, NULL, OUTPUT},
    {"plot", required_argument, NULL, PLOT},
    {"rank", required_argument, NULL, RANK},
    {"alpha", required_argument, NULL, ALPHA},
    {"steps", required_argument, NULL, STEPS},
    {"window", required_argument, NULL, WINDOW},
    {"rate", required_argument, NULL, RATE},
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

// "5=1,7=-inf": several are separated by commas, and cut in place.
static int add_bias(struct given *given, char *text)
{
    for (char *one; (one = strsep(&text, ","));) {
        if (given->num_biases == COUNT(given->biases)) {
            stop("--bias: more than %zu tokens", COUNT(given->biases));
            return 2;
        }
        given->biases[given->num_biases++] = one;
    }
    return 0;
}

// "one.png,two.jpg", cut in place.
static int add_images(struct given *given, char *text)
{
    for (char *one; (one = strsep(&text, ","));) {
        if (given->num_images == COUNT(given->images)) {
            stop("--image: more than %zu files", COUNT(given->images));
            return 2;
        }
        given->images[given->num_images++] = one;
    }
    return 0;
}

static int read_option(struct given *given, int number, const char *text)
{
    tn_lm_sampling *s = &given->sampling;
    const struct {
        int number;
        double *value;
    } numbers[] = {{TEMPERATURE, &s->temperature},
                   {TOP_P, &s->top_p},
                   {MIN_P, &s->min_p},
                   {PENALTY, &s->penalty},
                   {PRESENCE, &s->presence},
                   {FREQUENCY, &s->frequency},
                   {ADAPTER_SCALE, &given->adapter_scale},
                   {ALPHA, &given->alpha},
                   {RATE, &given->rate}};
    const struct {
        int number;
        int64_t *value;
    } integers[] = {{TOP_K, &s->top_k},           {PENALTY_LAST, &s->penalty_last},
                    {TOKENS, &given->tokens},     {CONTEXT, &given->context},
                    {ROUNDS, &given->rounds},     {RANK, &given->rank},
                    {STEPS, &given->steps},       {WINDOW, &given->window},
                    {SEED, (int64_t *)&s->seed},  {SEQUENCES, &given->sequences},
                    {POSITION, &given->position}, {TOP, &given->top}};
    const struct {
        int number;
        const char **value;
    } texts[] = {{STOP, &given->stop},
                 {RANDOM, &given->random},
                 {SYSTEM, &given->system},
                 {TEMPLATE, &given->template},
                 {ADAPTER, &given->adapter},
                 {MMPROJ, &given->mmproj},
                 {WEIGHTS, &given->weights},
                 {OUTPUT, &given->output},
                 {PLOT, &given->plot},
                 {CACHE, &given->cache},
                 {SPLIT, &given->split},
                 {SAVE_CACHE, &given->save_to},
                 {LOAD_CACHE, &given->load_from},
                 {GRAMMAR, &given->grammar},
                 {JSON_SCHEMA, &given->schema},
                 {POOLING, &given->pooling}};
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (numbers[i].number == number)
            return read_number(number, text, numbers[i].value);
    for (size_t i = 0; i < COUNT(integers); i++)
        if (integers[i].number == number)
            return read_integer(number, text, integers[i].value);
    for (size_t i = 0; i < COUNT(texts); i++)
        if (texts[i].number == number) {
            *texts[i].value = text;
            return 0;
        }
    if (number == BIAS)
        return add_bias(given, optarg);
    if (number == IMAGE)
        return add_images(given, optarg);
    if (number != RAW && number != JSON && number != PLAIN)
        return 2; // getopt_long has told
    *(number == RAW ? &given->raw : number == JSON ? &given->json : &given->plain) = true;
    return 0;
}

// What was printed has to have arrived: nothing else tells a full disk.
static int end_output(int failed)
{
    bool is_lost = fflush(stdout) != 0;
    is_lost |= ferror(stdout) != 0;
    return is_lost && !failed ? stop("cannot write the output") : failed;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct given *given);
    } modes[] = {{"generate", run_generate}, {"chat", run_chat},
                 {"embed", run_embed},       {"perplexity", run_perplexity},
                 {"bench", run_bench},       {"lora", run_lora},
                 {"where", run_where},       {"imatrix", run_imatrix}};
    struct given given = {.sampling = {.struct_size = sizeof(given.sampling)},
                          .adapter_scale = 1,
                          .position = -1};
    tell_shortened_files();
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 1 << 20); // or freed matrices stay in the heap
#endif
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
            return end_output(modes[i].run(&given));
    stop("this program is run by 'tenon generate' and its like");
    return 2;
}
