// SPDX-License-Identifier: MIT
// Trains LeNet-5 on Fashion-MNIST and tests it. `tenon train lenet` runs this program, with
// the same options; 'tenon train --help' explains them.
#include "fail.h"
#include "train.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static volatile int stop;

static void ask_to_stop(int signal)
{
    (void)signal;
    stop = 1; // a second signal ends the process: see SA_RESETHAND
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = ask_to_stop, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

// --- options ---------------------------------------------------------------------------

struct texts {
    const char *data, *save, *resume, *epochs, *steps, *batch, *seed, *lr, *test;
    bool json, classify;
};

static int whole_number(const char *option, const char *text, int64_t low, int64_t high,
                        int64_t *out_value)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < low || value > high)
        return fail_usage("--%s: got '%s', expected a whole number from %" PRId64
                          " to %" PRId64,
                          option, text, low, high);
    *out_value = value;
    return 0;
}

static int learning_rate(const char *text, double *out_value)
{
    const double low = 1e-12, high = 1e6;
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= low && value <= high))
        return fail_usage("--lr: got '%s', expected a number from %g to %g", text, low,
                          high);
    *out_value = value;
    return 0;
}

static int read_numbers(const struct texts *texts, struct train_options *o)
{
    int failed = 0;
    if (texts->epochs)
        failed = whole_number("epochs", texts->epochs, 1, 1000000, &o->epochs);
    if (!failed && texts->steps)
        failed = whole_number("steps", texts->steps, 1, INT64_C(1) << 40, &o->steps);
    if (!failed && texts->batch)
        failed = whole_number("batch", texts->batch, 1, 1 << 20, &o->batch);
    if (!failed && texts->seed)
        failed = whole_number("seed", texts->seed, 0, INT64_MAX, &o->seed);
    if (!failed && texts->test)
        failed = whole_number("test", texts->test, 1, INT64_MAX, &o->test);
    if (!failed && texts->lr)
        failed = learning_rate(texts->lr, &o->lr);
    return failed;
}

static int read_options(const struct texts *texts, struct train_options *out)
{
    struct train_options o = {
        .data = texts->data ? texts->data : "/usr/share/datasets/fashion-mnist",
        .resume = texts->resume,
        .save = texts->save     ? texts->save
                : texts->resume ? texts->resume
                                : "lenet.safetensors",
        .epochs = 3,
        .batch = 64,
        .seed = 0,
        .lr = texts->resume ? 0 : 1e-3, // 0: the file's
        .json = texts->json,
        .given_seed = texts->seed != NULL,
        .given_batch = texts->batch != NULL,
    };
    int failed = read_numbers(texts, &o);
    if (!failed && texts->classify && !texts->resume)
        failed = fail_usage("--classify needs a trained network: --resume FILE");
    if (!failed)
        *out = o;
    return failed;
}

enum { OPTION_JSON = 'j', OPTION_CLASSIFY = 'c', OPTION_TEXT = 't' };

static int read_arguments(int argc, char **argv, struct texts *out)
{
    static const struct option options[] = {
        {"data", 1, NULL, OPTION_TEXT},         {"save", 1, NULL, OPTION_TEXT},
        {"resume", 1, NULL, OPTION_TEXT},       {"epochs", 1, NULL, OPTION_TEXT},
        {"steps", 1, NULL, OPTION_TEXT},        {"batch", 1, NULL, OPTION_TEXT},
        {"seed", 1, NULL, OPTION_TEXT},         {"lr", 1, NULL, OPTION_TEXT},
        {"test", 1, NULL, OPTION_TEXT},         {"json", 0, NULL, OPTION_JSON},
        {"classify", 0, NULL, OPTION_CLASSIFY}, {0}};
    const char **const values[] = {&out->data,   &out->save,  &out->resume,
                                   &out->epochs, &out->steps, &out->batch,
                                   &out->seed,   &out->lr,    &out->test};
    int found, index;
    opterr = 0;
    while ((found = getopt_long(argc, argv, "", options, &index)) >= 0) {
        if (found == OPTION_TEXT)
            *values[index] = optarg;
        else if (found == OPTION_JSON)
            out->json = true;
        else if (found == OPTION_CLASSIFY)
            out->classify = true;
        else
            return fail_usage("wrong option %s; 'tenon train --help' lists them",
                              argv[optind - 1]);
    }
    if (argc != optind + 1 || strcmp(argv[optind], "lenet") != 0)
        return fail_usage("no network '%s'; expected lenet",
                          optind < argc ? argv[optind] : "");
    return 0;
}

// --- running ---------------------------------------------------------------------------

static void announce(const struct trainer *t)
{
    if (t->options.json)
        printf("{\"event\": \"start\", \"images\": %lld, \"batch\": %lld, \"seed\": %lld, "
               "\"first\": %llu, \"steps\": %llu}\n",
               (long long)t->train.count, (long long)t->options.batch,
               (long long)t->options.seed, (unsigned long long)t->done,
               (unsigned long long)t->total);
    else
        printf("LeNet-5 on %lld images, batches of %lld, seed %lld: steps %llu to %llu\n",
               (long long)t->train.count, (long long)t->options.batch,
               (long long)t->options.seed, (unsigned long long)t->done + 1,
               (unsigned long long)t->total);
    fflush(stdout);
}

static void announce_saved(const char *path)
{
    printf("saved ");
    show(stdout, path, TN_TEXT_ONE_LINE);
    printf("\n");
}

// Loads the file afresh, and tests what is in it.
static int classify(const struct train_options *options)
{
    struct trainer trainer;
    struct evaluation evaluation;
    int failed = trainer_open(&trainer, options);
    if (failed)
        return failed;
    failed = evaluate(&trainer, &evaluation);
    if (!failed) {
        failed = evaluation_print(&trainer, &evaluation);
        evaluation_show_images(&trainer, &evaluation);
        evaluation_finish(&evaluation);
    }
    trainer_close(&trainer);
    return failed;
}

static int train(const struct train_options *options)
{
    struct trainer trainer;
    int failed = trainer_open(&trainer, options);
    if (failed)
        return failed;
    announce(&trainer);
    catch_signals();
    failed = trainer_run(&trainer, &stop);
    trainer_close(&trainer);
    if (failed)
        return failed;
    if (!options->json)
        announce_saved(options->save);
    struct train_options saved = *options;
    saved.resume = options->save;
    return classify(&saved);
}

static int run(int argc, char **argv)
{
    struct texts texts = {0};
    struct train_options options;
    int failed = read_arguments(argc, argv, &texts);
    if (!failed)
        failed = read_options(&texts, &options);
    if (failed)
        return failed;
    return texts.classify ? classify(&options) : train(&options);
}

int main(int argc, char **argv)
{
    // A limit on file sizes must be an error that is reported.
    signal(SIGXFSZ, SIG_IGN);
    int status = run(argc, argv);
    if ((fflush(stdout) || ferror(stdout)) && !status)
        status = fail("cannot write the output");
    if (status) {
        fprintf(stderr, "tenon: ");
        show(stderr, failure_text(), TN_TEXT_INDENT);
        fprintf(stderr, "\n");
    }
    return status;
}
