// SPDX-License-Identifier: MIT
// tenon model: files of models.
#include "model.h"
#include "commands.h"

static const struct command model_commands[] = {
    {"model show", "FILE|FOLDER [--arrays] [--metadata] [--json]",
     "say what is in a model's file",
     "Its architecture and dimensions, how its weights are stored, its tokenizer, and its\n"
     "arrays with their shapes: rows and columns of numbers, however they are packed. "
     "Reads\n"
     "no weights. Of a model in several files the first one is named, and of a folder "
     "with\n"
     "a config.json the folder.\n"
     "\n"
     "  tenon model show SmolLM2-135M-Instruct.Q4_1.gguf\n"
     "  tenon model show big-00001-of-00005.gguf --arrays\n"
     "  tenon model show SmolLM2-135M --metadata\n",
     cmd_model_show},
};

int cmd_model(const struct command *self, int argc, char **argv)
{
    static const struct command_group group = {"tenon model", "Files of language models.",
                                               model_commands, COUNT(model_commands)};
    (void)self;
    return commands_run(&group, argc, argv);
}
