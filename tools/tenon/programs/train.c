// SPDX-License-Identifier: MIT
// tenon train: the example application that trains networks, on Fashion-MNIST and texts,
// and adapters of language models.
#include "commands.h"
#include "program.h"

#include <string.h>

static const char lenet_details[] =
    "Trains LeNet-5 on the 60,000 images of Fashion-MNIST with Adam, tests it on 10,000\n"
    "others, and saves it after each epoch. Ctrl-C saves and stops; --resume continues\n"
    "exactly where the file stands. The same seed gives the same result on one backend.\n"
    "\n"
    "  tenon train lenet                              three epochs, some minutes at most\n"
    "  tenon train lenet --resume lenet.safetensors --epochs 6\n"
    "  tenon train lenet --resume lenet.safetensors --classify\n"
    "  TENON_BACKEND=vulkan tenon train lenet --steps 20 --test 1000\n";
static const char mlp_details[] =
    "Trains a perceptron of two hidden layers on Fashion-MNIST, as 'tenon train lenet'\n"
    "trains its network, by gradient descent with momentum.\n"
    "\n"
    "  tenon train mlp\n"
    "  tenon train mlp --resume mlp.safetensors --classify\n";
static const char resnet_details[] =
    "Trains a residual network of 14 layers with batch norm on Fashion-MNIST, as 'tenon\n"
    "train lenet' trains its network, by gradient descent with momentum and decay.\n"
    "\n"
    "  tenon train resnet --steps 500\n"
    "  tenon train resnet --resume resnet.safetensors --classify\n";
static const char transformer_details[] =
    "Trains a transformer of two layers on the bytes of a text with AdamW, saves it, and\n"
    "prints bytes that it draws. Ctrl-C saves and stops; --resume continues exactly where\n"
    "the file stands.\n"
    "\n"
    "  tenon train transformer book.txt\n"
    "  tenon train transformer book.txt --resume transformer.safetensors --steps 3000\n";

// Options of all four commands, and of some.
struct train_options {
    const char *data, *save, *resume, *epochs, *steps, *batch, *seed, *lr, *test, *sample;
    bool json, classify;
};

static int run_network(const struct command *self, const struct option *options,
                       size_t num_options, int items, int argc, char **argv)
{
    struct args args;
    int failed = args_parse(self, options, num_options, items, items, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    const char *name = strrchr(self->name, ' ') + 1;
    char *words[] = {(char *)(uintptr_t)name, items ? args.items[0] : NULL};
    const struct args named = {.items = words, .count = 1 + items};
    return program_run(
        "tenon-train", "../../docs/examples/networks",
        "tenon-train is not installed: it is built with the op packs base and "
        "nn",
        options, num_options, &named);
}

static int cmd_images(const struct command *self, int argc, char **argv)
{
    static const struct {
        const char *network, *details, *save, *lr, *epochs;
    } rows[] = {
        {"lenet", lenet_details, "what to save (lenet.safetensors)",
         "learning rate of Adam (0.001)", "passes over the images, in all (3)"},
        {"mlp", mlp_details, "what to save (mlp.safetensors)", "learning rate (0.05)",
         "passes over the images, in all (3)"},
        {"resnet", resnet_details, "what to save (resnet.safetensors)",
         "learning rate (0.05)", "passes over the images, in all (1)"},
    };
    struct command mine = *self;
    struct train_options o = {0};
    size_t i = 0;
    while (i + 1 < COUNT(rows) &&
           strcmp(strrchr(self->name, ' ') + 1, rows[i].network) != 0)
        i++;
    mine.details = rows[i].details;
    const struct option options[] = {
        {"epochs", 0, "N", rows[i].epochs, &o.epochs, NULL},
        {"steps", 0, "N", "stop after step N instead", &o.steps, NULL},
        {"batch", 0, "N", "images a step (64)", &o.batch, NULL},
        {"lr", 0, "RATE", rows[i].lr, &o.lr, NULL},
        {"seed", 0, "N", "seed of the first weights and the order of images (0)", &o.seed,
         NULL},
        {"test", 0, "N", "test on the first N images only (all)", &o.test, NULL},
        {"data", 0, "DIR", "where the IDX files are", &o.data, NULL},
        {"save", 0, "FILE", rows[i].save, &o.save, NULL},
        {"resume", 0, "FILE", "continue from this file", &o.resume, NULL},
        {"classify", 0, NULL, "only test the network of --resume", NULL, &o.classify},
        {"json", 0, NULL, "print a JSON object a line", NULL, &o.json},
    };
    return run_network(&mine, options, COUNT(options), 0, argc, argv);
}

static int cmd_transformer(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    struct train_options o = {0};
    mine.details = transformer_details;
    const struct option options[] = {
        {"epochs", 0, "N", "passes over the text instead of steps", &o.epochs, NULL},
        {"steps", 0, "N", "stop after step N (1000)", &o.steps, NULL},
        {"batch", 0, "N", "pieces of 64 bytes a step (32)", &o.batch, NULL},
        {"lr", 0, "RATE", "learning rate of AdamW (0.001)", &o.lr, NULL},
        {"seed", 0, "N", "seed of the first weights, the order and the sample (0)", &o.seed,
         NULL},
        {"save", 0, "FILE", "what to save (transformer.safetensors)", &o.save, NULL},
        {"resume", 0, "FILE", "continue from this file", &o.resume, NULL},
        {"sample", 0, "N", "bytes to print when trained (200)", &o.sample, NULL},
        {"json", 0, NULL, "print a JSON object a line", NULL, &o.json},
    };
    return run_network(&mine, options, COUNT(options), 1, argc, argv);
}

static const struct command train_commands[] = {
    {"train mlp", "[--epochs N] [--resume FILE]", "train a perceptron on real images", NULL,
     cmd_images},
    {"train lenet", "[--epochs N] [--resume FILE]", "train a network on real images", NULL,
     cmd_images},
    {"train resnet", "[--steps N] [--resume FILE]",
     "train a residual network on real images", NULL, cmd_images},
    {"train transformer", "TEXT [--steps N] [--resume FILE]",
     "train a transformer on the bytes of a text", NULL, cmd_transformer},
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
