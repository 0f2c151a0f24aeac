// SPDX-License-Identifier: MIT
// tenon generate, tenon chat, tenon embed, tenon perplexity, tenon bench llm: a program of
// their own, which links the library of language models.
#include "lm.h"
#include "commands.h"
#include "program.h"

#include <stdlib.h>

#define SPLIT_HELP "layers of each device of TENON_BACKEND, 16,14 (by their memory)"
#define TOP_P_HELP "among the most probable ones that together have P"
#define LAST_HELP "tokens that the penalties look back (64)"
#define PRESENCE_HELP "take X from the logits of each of them"
#define FREQUENCY_HELP "take X for each time that one of them came"
#define CACHE_HELP "elements of the caches: f16 (where nothing is said), f32 or q8_0"

int lm_run(const char *mode, const struct option *options, size_t num_options,
           const struct args *args)
{
    char **items = calloc((size_t)args->count + 2, sizeof(*items));
    if (!items)
        return oops_memory();
    items[0] = (char *)(uintptr_t)mode;
    for (int i = 0; i < args->count; i++)
        items[i + 1] = args->items[i];
    const struct args with_mode = {.items = items, .count = args->count + 1};
    int failed = program_run("tenon-lm", "../lm", "tenon-lm is not installed", options,
                             num_options, &with_mode);
    free(items);
    return failed;
}

int cmd_generate(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details =
        "MODEL is a file or folder that holds a language model, such as a GGUF file. The\n"
        "words of the prompt are joined by spaces; - alone is what standard input has.\n"
        "Without a temperature the most probable token is taken each time; the same seed\n"
        "gives the same text on one backend. What ran, and how fast, is told on standard\n"
        "error.\n"
        "\n"
        "  tenon generate SmolLM2.gguf Once upon a time\n"
        "  tenon generate SmolLM2.gguf --temperature 0.8 --top-p 0.95 --seed 7 Once\n"
        "  tenon generate SmolLM2.gguf --json-schema person.json Describe Ada Lovelace\n"
        "  tenon generate SmolVLM/ --image photo.png What is in this picture?\n";
    const char *tokens = "200", *context = NULL, *temperature = NULL, *top_k = NULL,
               *top_p = NULL, *min_p = NULL, *penalty = NULL, *penalty_last = NULL,
               *presence = NULL, *frequency = NULL, *seed = NULL, *stop = NULL,
               *grammar = NULL, *schema = NULL, *bias = NULL, *top = NULL, *adapter = NULL,
               *adapter_scale = NULL, *cache = NULL, *save = NULL, *load = NULL,
               *split = NULL, *image = NULL, *mmproj = NULL;
    bool raw = false, json = false;
    const struct option options[] = {
        {"tokens", 'n', "N", "generate at most N tokens (200; 0: no bound)", &tokens, NULL},
        {"context", 0, "N", "positions that there is room for (the model's, to 4096)",
         &context, NULL},
        {"temperature", 't', "T", "draw from the softmax of logits / T (0: do not draw)",
         &temperature, NULL},
        {"top-k", 0, "K", "draw among the K most probable tokens", &top_k, NULL},
        {"top-p", 0, "P", TOP_P_HELP " (0 or 1: all)", &top_p, NULL},
        {"min-p", 0, "P", "among those with P times the greatest probability", &min_p,
         NULL},
        {"penalty", 0, "F", "divide the logits of the last 64 tokens by F", &penalty, NULL},
        {"penalty-last", 0, "N", LAST_HELP, &penalty_last, NULL},
        {"presence", 0, "X", PRESENCE_HELP, &presence, NULL},
        {"frequency", 0, "X", FREQUENCY_HELP, &frequency, NULL},
        {"seed", 0, "N", "of the random numbers (0)", &seed, NULL},
        {"stop", 0, "TEXT", "end where the model writes TEXT", &stop, NULL},
        {"grammar", 0, "FILE", "hold the text to a grammar in GBNF", &grammar, NULL},
        {"json-schema", 0, "FILE", "hold the text to JSON that is valid by a schema",
         &schema, NULL},
        {"bias", 0, "ID=X", "add X to the logits of token ID (-inf: never); ID=X,...",
         &bias, NULL},
        {"top", 0, "N", "with --json: the N most probable tokens in place of each", &top,
         NULL},
        {"cache", 0, "TYPE", CACHE_HELP, &cache, NULL},
        {"split", 0, "LIST", SPLIT_HELP, &split, NULL},
        {"save-cache", 0, "FILE", "keep what was read and written in FILE", &save, NULL},
        {"load-cache", 0, "FILE", "go on from what FILE keeps", &load, NULL},
        {"adapter", 0, "FILE", "an adapter, as tenon train lora makes them", &adapter,
         NULL},
        {"adapter-scale", 0, "F", "multiply what it adds by F (1)", &adapter_scale, NULL},
        {"image", 0, "FILE,...", "images: in front of the prompt, or at its marks", &image,
         NULL},
        {"mmproj", 0, "FILE", "what reads images, of a model in GGUF", &mmproj, NULL},
        {"raw", 0, NULL, "do not begin as prompts of this model do", NULL, &raw},
        {"json", 0, NULL, "print the text and its tokens in JSON at the end", NULL, &json},
    };
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 2, -1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    return lm_run("generate", options, COUNT(options), &args);
}

int cmd_chat(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details =
        "Reads lines, and writes a reply to each as it comes. Ctrl-C ends a reply, Ctrl-D\n"
        "the program. The form of a conversation is recognised from the model's own\n"
        "template; --template names one where it is not. Tokens are drawn, since a small\n"
        "model that always takes the most probable one soon repeats itself.\n"
        "A line '/image FILE' puts an image in front of what is said next, where the "
        "model\n"
        "reads images; '/clear' begins anew, '/exit' ends, '/help' lists these.\n"
        "\n"
        "  tenon chat SmolLM2.gguf --system 'Answer in one sentence.'\n";
    const char *tokens = "1000", *context = NULL, *temperature = "0.6", *top_p = "0.9",
               *min_p = NULL, *penalty = "1.1", *penalty_last = NULL, *presence = NULL,
               *frequency = NULL, *top_k = NULL, *seed = NULL, *system = NULL, *form = NULL,
               *grammar = NULL, *schema = NULL, *adapter = NULL, *adapter_scale = NULL,
               *cache = NULL, *split = NULL, *image = NULL, *mmproj = NULL;
    const struct option options[] = {
        {"system", 0, "TEXT", "what the model is told before all else", &system, NULL},
        {"template", 0, "NAME", "the form of the conversation (the model's)", &form, NULL},
        {"tokens", 'n', "N", "at most N tokens a reply (1000; 0: no bound)", &tokens, NULL},
        {"context", 0, "N", "positions that there is room for (the model's, to 4096)",
         &context, NULL},
        {"temperature", 't', "T",
         "draw from the softmax of logits / T (0.6; 0: do not draw)", &temperature, NULL},
        {"top-k", 0, "K", "draw among the K most probable tokens", &top_k, NULL},
        {"top-p", 0, "P", TOP_P_HELP " (0.9; 0 or 1: all)", &top_p, NULL},
        {"min-p", 0, "P", "among those with P times the greatest probability", &min_p,
         NULL},
        {"penalty", 0, "F", "divide the logits of the last 64 tokens by F (1.1)", &penalty,
         NULL},
        {"penalty-last", 0, "N", LAST_HELP, &penalty_last, NULL},
        {"presence", 0, "X", PRESENCE_HELP, &presence, NULL},
        {"frequency", 0, "X", FREQUENCY_HELP, &frequency, NULL},
        {"seed", 0, "N", "of the random numbers (0)", &seed, NULL},
        {"grammar", 0, "FILE", "hold each reply to a grammar in GBNF", &grammar, NULL},
        {"json-schema", 0, "FILE", "hold each reply to JSON that is valid by a schema",
         &schema, NULL},
        {"cache", 0, "TYPE", CACHE_HELP, &cache, NULL},
        {"split", 0, "LIST", SPLIT_HELP, &split, NULL},
        {"adapter", 0, "FILE", "an adapter, as tenon train lora makes them", &adapter,
         NULL},
        {"adapter-scale", 0, "F", "multiply what it adds by F (1)", &adapter_scale, NULL},
        {"image", 0, "FILE,...", "images in front of the first message", &image, NULL},
        {"mmproj", 0, "FILE", "what reads images, of a model in GGUF", &mmproj, NULL},
    };
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    return lm_run("chat", options, COUNT(options), &args);
}

int cmd_embed(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details =
        "Prints a list in JSON: of each text its tokens and the embedding, hidden states "
        "of\n"
        "the last layer behind its norm. They are of length 1, unless --plain says not.\n"
        "A text may be -, for standard input.\n"
        "\n"
        "  tenon embed SmolLM2.gguf 'a cat' 'a dog' 'the weather'\n";
    const char *pooling = NULL, *context = NULL, *split = NULL;
    bool raw = false, plain = false;
    const struct option options[] = {
        {"pooling", 0, "NAME", "of the positions: mean, last or cls, the first (mean)",
         &pooling, NULL},
        {"context", 0, "N", "positions that there is room for (the model's, to 4096)",
         &context, NULL},
        {"split", 0, "LIST", SPLIT_HELP, &split, NULL},
        {"plain", 0, NULL, "of the length that they have", NULL, &plain},
        {"raw", 0, NULL, "do not begin as prompts of this model do", NULL, &raw},
    };
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 2, -1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    return lm_run("embed", options, COUNT(options), &args);
}

int cmd_perplexity(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details =
        "The text is cut into windows; the model reads each from its beginning and\n"
        "predicts each token but the first. The perplexity is e to the mean surprise.\n"
        "FILE may be -, for standard input.\n"
        "\n"
        "  tenon perplexity SmolLM2.gguf book.txt --tokens 1000\n";
    const char *tokens = NULL, *context = NULL, *cache = NULL, *adapter = NULL,
               *adapter_scale = NULL, *split = NULL;
    bool raw = false, json = false;
    const struct option options[] = {
        {"tokens", 'n', "N", "measure the first N tokens (all)", &tokens, NULL},
        {"context", 0, "N", "tokens of a window (512)", &context, NULL},
        {"cache", 0, "TYPE", CACHE_HELP, &cache, NULL},
        {"split", 0, "LIST", SPLIT_HELP, &split, NULL},
        {"adapter", 0, "FILE", "an adapter, as tenon train lora makes them", &adapter,
         NULL},
        {"adapter-scale", 0, "F", "multiply what it adds by F (1)", &adapter_scale, NULL},
        {"raw", 0, NULL, "do not begin as prompts of this model do", NULL, &raw},
        {"json", 0, NULL, "print JSON", NULL, &json},
    };
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 2, 2, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    return lm_run("perplexity", options, COUNT(options), &args);
}

int cmd_model_imatrix(const struct command *self, int argc, char **argv)
{
    const char *tokens = NULL, *context = NULL, *output = NULL;
    bool raw = false;
    const struct option options[] = {
        {"output", 'o', "FILE", "where to write it (imatrix.gguf)", &output, NULL},
        {"tokens", 'n', "N", "read the first N tokens (all)", &tokens, NULL},
        {"context", 0, "N", "tokens of a window (512)", &context, NULL},
        {"raw", 0, NULL, "do not begin as prompts of this model do", NULL, &raw},
    };
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 2, 2, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    return lm_run("imatrix", options, COUNT(options), &args);
}
