// SPDX-License-Identifier: MIT
// tenon train: LeNet-5 on Fashion-MNIST.
#include "commands.h"
#include "train.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char details[] =
    "Trains LeNet-5 on the 60,000 images of Fashion-MNIST with Adam, tests it on 10,000\n"
    "others, and saves it after each epoch. Ctrl-C saves and stops; --resume continues\n"
    "exactly where the file stands. The same seed gives the same result on one backend.\n"
    "\n"
    "  tenon train lenet                              three epochs, some minutes at most\n"
    "  tenon train lenet --resume lenet.safetensors --epochs 6\n"
    "  tenon train lenet --resume lenet.safetensors --classify\n"
    "  TENON_BACKEND=vulkan tenon train lenet --steps 20 --test 1000\n";

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

static int read_numbers(const struct texts *texts, struct train_options *o)
{
    int failed = 0;
    if (texts->epochs)
        failed = args_integer("epochs", texts->epochs, 1, 1000000, &o->epochs);
    if (!failed && texts->steps)
        failed = args_integer("steps", texts->steps, 1, INT64_C(1) << 40, &o->steps);
    if (!failed && texts->batch)
        failed = args_integer("batch", texts->batch, 1, 1 << 20, &o->batch);
    if (!failed && texts->seed)
        failed = args_integer("seed", texts->seed, 0, INT64_MAX, &o->seed);
    if (!failed && texts->test)
        failed = args_integer("test", texts->test, 1, INT64_MAX, &o->test);
    if (!failed && texts->lr)
        failed = args_number("lr", texts->lr, 1e-12, 1e6, &o->lr);
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
        failed = misuse("--classify needs a trained network: --resume FILE");
    if (!failed)
        *out = o;
    return failed;
}

// --- running ---------------------------------------------------------------------------

static void announce(const struct trainer *t)
{
    if (t->options.json)
        say("{\"event\": \"start\", \"images\": %lld, \"batch\": %lld, \"seed\": %lld, "
            "\"first\": %llu, \"steps\": %llu}\n",
            (long long)t->train.count, (long long)t->options.batch,
            (long long)t->options.seed, (unsigned long long)t->done,
            (unsigned long long)t->total);
    else
        say("LeNet-5 on %lld images, batches of %lld, seed %lld: steps %llu to %llu\n",
            (long long)t->train.count, (long long)t->options.batch,
            (long long)t->options.seed, (unsigned long long)t->done + 1,
            (unsigned long long)t->total);
    fflush(stdout);
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
        say("saved %s\n", options->save);
    struct train_options saved = *options;
    saved.resume = options->save;
    return classify(&saved);
}

int cmd_train(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    struct texts texts = {0};
    const struct option options[] = {
        {"epochs", 0, "N", "passes over the images, in all (3)", &texts.epochs, NULL},
        {"steps", 0, "N", "stop after step N instead", &texts.steps, NULL},
        {"batch", 0, "N", "images a step (64)", &texts.batch, NULL},
        {"lr", 0, "RATE", "learning rate of Adam (0.001)", &texts.lr, NULL},
        {"seed", 0, "N", "of the first weights and the order of images (0)", &texts.seed,
         NULL},
        {"test", 0, "N", "test on the first N images only (all)", &texts.test, NULL},
        {"data", 0, "DIR", "where the IDX files are", &texts.data, NULL},
        {"save", 0, "FILE", "what to save (lenet.safetensors)", &texts.save, NULL},
        {"resume", 0, "FILE", "continue from this file", &texts.resume, NULL},
        {"classify", 0, NULL, "only test the network of --resume", NULL, &texts.classify},
        {"json", 0, NULL, "print a JSON object a line", NULL, &texts.json},
    };
    struct args args;
    struct train_options train_options;
    int failed = args_parse(&mine, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    if (strcmp(args.items[0], "lenet") != 0)
        return misuse("no network '%s'; expected lenet", args.items[0]);
    failed = read_options(&texts, &train_options);
    if (failed)
        return failed;
    return texts.classify ? classify(&train_options) : train(&train_options);
}
