// SPDX-License-Identifier: MIT
// Options of `tenon train NETWORK`.
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int read_integer(const char *name, const char *text, int64_t low, int64_t high,
                 int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < low || value > high)
        return misuse("%s: got '%s', expected a whole number from %" PRId64 " to %" PRId64,
                      name, text, low, high);
    *out = value;
    return 0;
}

int read_rate(const char *name, const char *text, double *out)
{
    const double low = 1e-12, high = 1e6;
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= low && value <= high))
        return misuse("%s: got '%s', expected a number from %g to %g", name, text, low,
                      high);
    *out = value;
    return 0;
}

// Options by their place in this list.
static const struct option list[] = {
    {"data", 1, NULL, 0},
    {"save", 1, NULL, 0},
    {"resume", 1, NULL, 0},
    {"epochs", 1, NULL, 0},
    {"steps", 1, NULL, 0},
    {"batch", 1, NULL, 0},
    {"seed", 1, NULL, 0},
    {"test", 1, NULL, 0},
    {"sample", 1, NULL, 0},
    {"lr", 1, NULL, 0},
    {"json", 0, NULL, 0},
    {"classify", 0, NULL, 0},
    {0},
};
enum { DATA, SAVE, RESUME, EPOCHS, STEPS, BATCH, SEED, TEST, SAMPLE, RATE, JSON, CLASSIFY };

static const int64_t ranges[][2] = {
    [EPOCHS] = {1, 1000000}, [STEPS] = {1, INT64_C(1) << 40}, [BATCH] = {1, 1 << 20},
    [SEED] = {0, INT64_MAX}, [TEST] = {1, INT64_MAX},         [SAMPLE] = {0, 1 << 20},
};

static int take_option(int index, const char *text, struct asked *o)
{
    const char **const texts[] = {&o->data, &o->save, &o->resume};
    int64_t *const numbers[] = {&o->epochs, &o->steps, &o->batch,
                                &o->seed,   &o->test,  &o->sample};
    char name[32];
    snprintf(name, sizeof(name), "--%s", list[index].name);
    o->has_seed |= index == SEED;
    if (index == JSON || index == CLASSIFY)
        *(index == JSON ? &o->json : &o->classify) = true;
    else if (index == RATE)
        return read_rate(name, text, &o->lr);
    else if (index < EPOCHS)
        *texts[index] = text;
    else
        return read_integer(name, text, ranges[index][0], ranges[index][1],
                            numbers[index - EPOCHS]);
    return 0;
}

int options_read(int argc, char **argv, struct asked *out)
{
    static char name[80];
    struct asked o = {.sample = 200};
    int found, index = 0, failed = 0;
    opterr = 0;
    while (!failed && (found = getopt_long(argc, argv, "", list, &index)) >= 0)
        failed = found ? misuse("wrong option %s; 'tenon train --help' lists them",
                                argv[optind - 1])
                       : take_option(index, optarg, &o);
    if (failed)
        return failed;
    if (optind == argc)
        return misuse("no network; expected mlp, lenet, resnet or transformer");
    o.network = argv[optind++];
    if (strcmp(o.network, "transformer") == 0 && optind < argc)
        o.data = argv[optind++];
    if (optind < argc)
        return misuse("unexpected argument '%s'", argv[optind]);
    if (o.classify && !o.resume)
        return misuse("--classify needs a trained network: --resume FILE");
    snprintf(name, sizeof(name), "%.60s.safetensors", o.network);
    o.save = o.save ? o.save : o.resume ? o.resume : name;
    *out = o;
    return 0;
}
