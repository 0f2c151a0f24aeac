// SPDX-License-Identifier: MIT
// tenon generate, chat, embed, perplexity, train lora, model imatrix; and for bench llm and
// model show --where how their options are parsed, and how tenon-lm is run.
#include "lm.h"
#include "../../lm/given.h"
#include "commands.h"
#include "program.h"

#include <stdlib.h>
#include <string.h>

static const struct lm_command {
    const char *name, *mode;
    uint32_t options; // FOR_...
    int min, max;     // arguments that are no options
    const char *details;
} lm_commands[] = {
    {"generate", "generate", FOR_GENERATE, 2, -1,
     "MODEL is a file or folder that holds a language model, such as a GGUF file. The\n"
     "words of the prompt are joined by spaces; - alone is what standard input has.\n"
     "Without a temperature the most probable token is taken each time; the same seed\n"
     "gives the same text on one backend. What ran, and how fast, is told on standard\n"
     "error.\n"
     "\n"
     "  tenon generate SmolLM2.gguf Once upon a time\n"
     "  tenon generate SmolLM2.gguf --temperature 0.8 --top-p 0.95 --seed 7 Once\n"
     "  tenon generate SmolLM2.gguf --json-schema person.json Describe Ada Lovelace\n"
     "  tenon generate SmolVLM/ --image photo.png What is in this picture?\n"},
    {"chat", "chat", FOR_CHAT, 1, 1,
     "Reads lines, and writes a reply to each as it comes. Ctrl-C ends a reply, Ctrl-D\n"
     "the program. The form of a conversation is recognised from the model's own\n"
     "template; --template names one where it is not. Tokens are drawn, since a small\n"
     "model that always takes the most probable one soon repeats itself.\n"
     "A line '/image FILE' puts an image in front of what is said next, where the "
     "model\n"
     "reads images; '/clear' begins anew, '/exit' ends, '/help' lists these.\n"
     "\n"
     "  tenon chat SmolLM2.gguf --system 'Answer in one sentence.'\n"},
    {"embed", "embed", FOR_EMBED, 2, -1,
     "Prints a list in JSON: of each text its tokens and the embedding, hidden states "
     "of\n"
     "the last layer behind its norm. They are of length 1, unless --plain says not.\n"
     "A text may be -, for standard input.\n"
     "\n"
     "  tenon embed SmolLM2.gguf 'a cat' 'a dog' 'the weather'\n"},
    {"perplexity", "perplexity", FOR_PERPLEXITY, 2, 2,
     "The text is cut into windows; the model reads each from its beginning and\n"
     "predicts each token but the first. The perplexity is e to the mean surprise.\n"
     "FILE may be -, for standard input.\n"
     "\n"
     "  tenon perplexity SmolLM2.gguf book.txt --tokens 1000\n"},
    {"train lora", "lora", FOR_LORA, 2, 2,
     "Trains low-rank additions to some of a language model's products (LoRA) on a text,\n"
     "with Adam: each step reads windows of it, drawn at random. The model's own weights\n"
     "stay as they are, quantised or not. --adapter goes on with an earlier one. Ctrl-C\n"
     "stops and saves. The same seed gives the same adapter on one backend.\n"
     "\n"
     "  tenon train lora SmolLM2.gguf poems.txt -o poems.safetensors --plot loss.svg\n"
     "  tenon generate SmolLM2.gguf --adapter poems.safetensors The moon\n"},
    {"model imatrix", "imatrix", FOR_IMATRIX, 2, 2, NULL},
};

int lm_parse(const struct command *self, uint32_t command, int min, int max, int argc,
             char **argv, struct lm_parsed *out)
{
    size_t n = 0;
    for (size_t i = 0; i < num_given_options; i++) {
        const struct given_option *row = &given_options[i];
        if (!(row->commands & command))
            continue;
        if (n == LM_OPTIONS)
            return oops("more than %d options of %s", LM_OPTIONS, self->name);
        out->texts[n] = row->fallback;
        out->flags[n] = false;
        out->is_aside[n] = row->kind == GIVEN_ASIDE;
        out->options[n] = (struct option){row->name, row->letter,    row->value,
                                          row->help, &out->texts[n], &out->flags[n]};
        n++;
    }
    out->count = n;
    return args_parse(self, out->options, n, min, max, argc, argv, &out->args);
}

static size_t lm_option_of(const struct lm_parsed *line, const char *name)
{
    size_t i = 0;
    while (i < line->count && strcmp(line->options[i].name, name) != 0)
        i++;
    return i;
}

const char *lm_text(const struct lm_parsed *line, const char *name)
{
    size_t i = lm_option_of(line, name);
    return i < line->count ? line->texts[i] : NULL;
}

bool lm_is_given(const struct lm_parsed *line, const char *name)
{
    size_t i = lm_option_of(line, name);
    return i < line->count && (line->texts[i] || line->flags[i]);
}

int lm_run(const char *mode, struct lm_parsed *line)
{
    char **items = calloc((size_t)line->args.count + 2, sizeof(*items));
    if (!items)
        return oops_memory();
    items[0] = (char *)(uintptr_t)mode;
    for (int i = 0; i < line->args.count; i++)
        items[i + 1] = line->args.items[i];
    for (size_t i = 0; i < line->count; i++)
        if (line->is_aside[i]) {
            line->texts[i] = NULL;
            line->flags[i] = false;
        }
    const struct args with_mode = {.items = items, .count = line->args.count + 1};
    int failed = program_run("tenon-lm", "../lm", "tenon-lm is not installed",
                             line->options, line->count, &with_mode);
    free(items);
    return failed;
}

int cmd_lm(const struct command *self, int argc, char **argv)
{
    const struct lm_command *own = lm_commands;
    struct command mine = *self;
    struct lm_parsed line;
    while (strcmp(own->name, self->name) != 0) // each row of this function has one
        own++;
    if (own->details)
        mine.details = own->details;
    int failed = lm_parse(&mine, own->options, own->min, own->max, argc, argv, &line);
    return failed || line.args.help_shown ? failed : lm_run(own->mode, &line);
}
