// SPDX-License-Identifier: MIT
// tenon train: the example application that trains LeNet-5 on Fashion-MNIST, and adapters
// of language models.
#include "commands.h"
#include "program.h"

static const char lenet_details[] =
    "Trains LeNet-5 on the 60,000 images of Fashion-MNIST with Adam, tests it on 10,000\n"
    "others, and saves it after each epoch. Ctrl-C saves and stops; --resume continues\n"
    "exactly where the file stands. The same seed gives the same result on one backend.\n"
    "\n"
    "  tenon train lenet                              three epochs, some minutes at most\n"
    "  tenon train lenet --resume lenet.safetensors --epochs 6\n"
    "  tenon train lenet --resume lenet.safetensors --classify\n"
    "  TENON_BACKEND=vulkan tenon train lenet --steps 20 --test 1000\n";

static int cmd_lenet(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = lenet_details;
    const char *data = NULL, *save = NULL, *resume = NULL, *epochs = NULL, *steps = NULL,
               *batch = NULL, *seed = NULL, *lr = NULL, *test = NULL;
    bool json = false, classify = false;
    const struct option options[] = {
        {"epochs", 0, "N", "passes over the images, in all (3)", &epochs, NULL},
        {"steps", 0, "N", "stop after step N instead", &steps, NULL},
        {"batch", 0, "N", "images a step (64)", &batch, NULL},
        {"lr", 0, "RATE", "learning rate of Adam (0.001)", &lr, NULL},
        {"seed", 0, "N", "of the first weights and the order of images (0)", &seed, NULL},
        {"test", 0, "N", "test on the first N images only (all)", &test, NULL},
        {"data", 0, "DIR", "where the IDX files are", &data, NULL},
        {"save", 0, "FILE", "what to save (lenet.safetensors)", &save, NULL},
        {"resume", 0, "FILE", "continue from this file", &resume, NULL},
        {"classify", 0, NULL, "only test the network of --resume", NULL, &classify},
        {"json", 0, NULL, "print a JSON object a line", NULL, &json},
    };
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 0, 0, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    char name[] = "lenet", *network[] = {name, NULL};
    const struct args named = {.items = network, .count = 1};
    return program_run(
        "tenon-train", "../../docs/examples/lenet",
        "tenon-train is not installed: it is built with the op packs base and "
        "nn",
        options, COUNT(options), &named);
}

static const struct command train_commands[] = {
    {"train lenet", "[--epochs N] [--resume FILE]", "train a network on real data", NULL,
     cmd_lenet},
    {"train lora", "MODEL TEXT [-o FILE] [--steps N]", "adapt a language model to a text",
     NULL, cmd_lm},
};

int cmd_train(const struct command *self, int argc, char **argv)
{
    static const struct command_group group = {"tenon train", "Training.", train_commands,
                                               COUNT(train_commands)};
    (void)self;
    return commands_run(&group, argc, argv);
}
