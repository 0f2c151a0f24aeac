// SPDX-License-Identifier: MIT
// tenon model: files of models.
#include "model.h"
#include "commands.h"
#include "programs/commands.h"

static const struct command model_commands[] = {
    {"model show", "FILE|FOLDER [--arrays] [--metadata] [--where] [--json]",
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
     "  tenon model show SmolLM2-135M --metadata\n"
     "  TENON_BACKEND=vulkan:0,cpu-blas tenon model show big.gguf --where --context 8192\n",
     cmd_model_show},
    {"model convert", "IN OUT [--type f32|f16|bf16]",
     "write a model's file in another format of files",
     "IN is a GGUF file, the first one of several, or a folder of Hugging Face; OUT is a\n"
     "GGUF file, or one of safetensors, by its name. A GGUF file gets all that llama.cpp\n"
     "expects: metadata, the tokenizer, names, and the order of rows that are turned.\n"
     "Matrices stay as they are, or become --type; what has one axis is f32 in GGUF. One\n"
     "array at a time is in memory, and OUT appears complete or not at all; what cannot\n"
     "be carried over is said.\n"
     "\n"
     "  tenon model convert SmolLM2-135M SmolLM2-135M.gguf\n"
     "  tenon model convert model-q4_0.gguf model-f32.gguf --type f32\n"
     "  tenon model convert big-00001-of-00005.gguf big.gguf\n",
     cmd_model_convert},
    {"model quantize",
     "IN OUT --format FORMAT [--imatrix FILE] [--tensor PATTERN=FORMAT,...]",
     "write a model's file with weights of fewer bits",
     "IN is as for 'tenon model convert', OUT a GGUF file. FORMAT is a mixture: most\n"
     "matrices get the format of its name, and those that matter most get more bits; the\n"
     "table is in docs/model-files.md. Blocks are those of least squared error. Norms and\n"
     "biases stay f32. Rows that the blocks of a format do not divide get another one,\n"
     "which is said. With --tensor, matrices whose names match (as file names do in a\n"
     "shell) get a format of their own; the first pattern that matches counts. With\n"
     "--imatrix, errors count by how important the columns are ('tenon model imatrix').\n"
     "\n"
     "  tenon model quantize SmolLM2-135M small.gguf --format q4_k_m\n"
     "  tenon model quantize model.gguf small.gguf --format q4_0 \\\n"
     "      --tensor 'token_embd.weight=q8_0,blk.0.*=f16'\n",
     cmd_model_quantize},
    {"model imatrix", "MODEL TEXT [-o FILE] [--tokens N] [--context N]",
     "measure which columns of a model's weights matter, for quantising it",
     "The model reads the file TEXT, which may be - for standard input, in windows; what "
     "its\n"
     "products read is squared and summed by column. FILE is one of llama.cpp's imatrix, "
     "which\n"
     "'tenon model quantize --imatrix' takes, as it takes those that llama.cpp writes.\n"
     "\n"
     "  tenon model imatrix SmolLM2.gguf book.txt -o book.gguf --tokens 20000\n"
     "  tenon model quantize SmolLM2.gguf small.gguf --format q3_k_m --imatrix book.gguf\n",
     cmd_lm},
    {"model tokens", "FILE|FOLDER TEXT [--special] [--raw] [--json]",
     "say which tokens of a model a text becomes",
     "A line for each token: its number, and the text that it stands for, in quotes, as\n"
     "JSON has it. Reads the vocabulary alone.\n"
     "\n"
     "  tenon model tokens SmolLM2.gguf 'Once upon a time'\n"
     "  tenon model tokens SmolLM2.gguf '<|im_start|>user' --special\n",
     cmd_model_tokens},
};

int cmd_model(const struct command *self, int argc, char **argv)
{
    static const struct command_group group = {"tenon model", "Files of language models.",
                                               model_commands, COUNT(model_commands)};
    (void)self;
    return commands_run(&group, argc, argv);
}
