// SPDX-License-Identifier: MIT
// The table of options. A macro has the facts that all rows of an option share: its name,
// letter, kind of value, and struct member. A row has the help of the option for some
// commands.
#include "given.h"

#define AT(member) offsetof(struct lm_options, member)

#define ADAPTER "adapter", 0, "FILE", GIVEN_TEXT, AT(adapter)
#define ADAPTER_SCALE "adapter-scale", 0, "F", GIVEN_NUMBER, AT(adapter_scale)
#define ALPHA "alpha", 0, "F", GIVEN_NUMBER, AT(alpha)
#define ARRAYS "arrays", 0, NULL, GIVEN_ASIDE, 0
#define BATCH "batch", 0, "N", GIVEN_INTEGER, AT(batch)
#define BIAS "bias", 0, "ID=X", GIVEN_TOKENS, AT(biases)
#define CACHE "cache", 0, "TYPE", GIVEN_TEXT, AT(cache)
#define CONTEXT "context", 0, "N", GIVEN_INTEGER, AT(context)
#define FREQUENCY "frequency", 0, "X", GIVEN_NUMBER, AT(sampling.frequency)
#define GRAMMAR "grammar", 0, "FILE", GIVEN_TEXT, AT(grammar)
#define IMAGE "image", 0, "FILE,...", GIVEN_FILES, AT(images)
#define JSON "json", 0, NULL, GIVEN_SWITCH, AT(json)
#define JSON_SCHEMA "json-schema", 0, "FILE", GIVEN_TEXT, AT(schema)
#define LOAD_CACHE "load-cache", 0, "FILE", GIVEN_TEXT, AT(load_from)
#define METADATA "metadata", 0, NULL, GIVEN_ASIDE, 0
#define MIN_P "min-p", 0, "P", GIVEN_NUMBER, AT(sampling.min_p)
#define MMPROJ "mmproj", 0, "FILE", GIVEN_TEXT, AT(mmproj)
#define OUTPUT "output", 'o', "FILE", GIVEN_TEXT, AT(output)
#define PARALLEL "parallel", 0, "HOW", GIVEN_TEXT, AT(parallel)
#define PENALTY "penalty", 0, "F", GIVEN_NUMBER, AT(sampling.penalty)
#define PENALTY_LAST "penalty-last", 0, "N", GIVEN_INTEGER, AT(sampling.penalty_last)
#define PLAIN "plain", 0, NULL, GIVEN_SWITCH, AT(plain)
#define PLOT "plot", 0, "FILE", GIVEN_TEXT, AT(plot)
#define POOLING "pooling", 0, "NAME", GIVEN_TEXT, AT(pooling)
#define POSITION "position", 0, "N", GIVEN_INTEGER, AT(position)
#define PRESENCE "presence", 0, "X", GIVEN_NUMBER, AT(sampling.presence)
#define PROMPT "prompt", 0, "N", GIVEN_INTEGER, AT(prompt)
#define PYTHON "python", 0, "PYTHON", GIVEN_ASIDE, 0
#define RANDOM "random", 0, "DIMENSIONS", GIVEN_TEXT, AT(random)
#define RANK "rank", 0, "N", GIVEN_INTEGER, AT(rank)
#define RATE "rate", 0, "RATE", GIVEN_NUMBER, AT(rate)
#define RAW "raw", 0, NULL, GIVEN_SWITCH, AT(raw)
#define ROUNDS "rounds", 0, "N", GIVEN_INTEGER, AT(rounds)
#define SAVE_CACHE "save-cache", 0, "FILE", GIVEN_TEXT, AT(save_to)
#define SEED "seed", 0, "N", GIVEN_INTEGER, AT(sampling.seed)
#define SEQUENCES "sequences", 0, "N", GIVEN_INTEGER, AT(sequences)
#define SPLIT "split", 0, "LIST", GIVEN_TEXT, AT(split)
#define STEPS "steps", 0, "N", GIVEN_INTEGER, AT(steps)
#define STOP "stop", 0, "TEXT", GIVEN_TEXT, AT(stop)
#define SYSTEM "system", 0, "TEXT", GIVEN_TEXT, AT(system)
#define TEMPERATURE "temperature", 't', "T", GIVEN_NUMBER, AT(sampling.temperature)
#define TEMPLATE "template", 0, "NAME", GIVEN_TEXT, AT(template)
#define THREADS "threads", 0, "N", GIVEN_ASIDE, 0
#define TOKENS "tokens", 'n', "N", GIVEN_INTEGER, AT(tokens)
#define TOKENS_OF_BENCH "tokens", 0, "N", GIVEN_INTEGER, AT(tokens)
#define TOP "top", 0, "N", GIVEN_INTEGER, AT(top)
#define TOP_K "top-k", 0, "K", GIVEN_INTEGER, AT(sampling.top_k)
#define TOP_P "top-p", 0, "P", GIVEN_NUMBER, AT(sampling.top_p)
#define WEIGHTS "weights", 0, "LIST", GIVEN_TEXT, AT(weights)
#define WHERE "where", 0, NULL, GIVEN_ASIDE, 0
#define WINDOW "window", 0, "N", GIVEN_INTEGER, AT(window)

#define HELP(text) text, NULL
// Help that contains an option's default value, and the default value.
#define USUALLY(value, before, behind) before value behind, value

#define DRAWN (FOR_GENERATE | FOR_CHAT)
#define READ (FOR_PERPLEXITY | FOR_IMATRIX)

const struct given_option given_options[] = {
    {ARRAYS, HELP("list each array, not those of all layers together"), FOR_SHOW},
    {METADATA, HELP("list the metadata, too"), FOR_SHOW},
    {WHERE, HELP("say instead which layers each device of TENON_BACKEND gets"), FOR_SHOW},
    {ROUNDS, HELP("times that each contestant runs (15)"), FOR_BENCH},
    {THREADS, HELP("threads of each contestant (2)"), FOR_BENCH},
    {PYTHON, HELP("a Python with torch or mlx"), FOR_BENCH},
    {RANDOM, HELP("llm: a model of random weights"), FOR_BENCH},
    {OUTPUT, USUALLY("adapter.safetensors", "what to write (", ")"), FOR_LORA},
    {OUTPUT, USUALLY("imatrix.gguf", "where to write it (", ")"), FOR_IMATRIX},
    {STEPS, HELP("steps of training (100)"), FOR_LORA},
    {WINDOW, HELP("tokens of a window (128)"), FOR_LORA},
    {BATCH, HELP("windows of a step, of all processes of `tenon run` (1 each)"), FOR_LORA},
    {RATE, HELP("learning rate of Adam (0.0003)"), FOR_LORA},
    {RANK, HELP("rank of the adapter (8)"), FOR_LORA},
    {ALPHA, HELP("scale the adapter by F / rank (twice the rank)"), FOR_LORA},
    {WEIGHTS, HELP("products to adapt (attn_q,attn_v)"), FOR_LORA},
    {ADAPTER, HELP("continue to train this adapter"), FOR_LORA},
    {SYSTEM, HELP("what the model is told before all else"), FOR_CHAT},
    {TEMPLATE, HELP("the form of the conversation (the model's)"), FOR_CHAT},
    {POOLING, HELP("pool positions by mean, last or cls, the first (mean)"), FOR_EMBED},
    {TOKENS, USUALLY("200", "generate at most N tokens (", "; 0: no bound)"), FOR_GENERATE},
    {TOKENS, USUALLY("1000", "at most N tokens a reply (", "; 0: no bound)"), FOR_CHAT},
    {TOKENS, HELP("measure the first N tokens (all)"), FOR_PERPLEXITY},
    {TOKENS, HELP("read the first N tokens (all)"), FOR_IMATRIX},
    {TOKENS_OF_BENCH, HELP("llm: tokens one by one (64)"), FOR_BENCH},
    {CONTEXT, HELP("capacity of the caches in positions (the model's, to 4096)"),
     FOR_GENERATE | FOR_CHAT | FOR_EMBED},
    {CONTEXT, HELP("tokens of a window (512)"), READ},
    {CONTEXT, HELP("llm: capacity of the caches in positions"), FOR_BENCH},
    {CONTEXT, HELP("where: positions (the model's, to 4096)"), FOR_SHOW},
    {TEMPERATURE, HELP("draw from the softmax of logits / T (0: do not draw)"),
     FOR_GENERATE},
    {TEMPERATURE,
     USUALLY("0.6", "draw from the softmax of logits / T (", "; 0: do not draw)"),
     FOR_CHAT},
    {TOP_K, HELP("draw among the K most probable tokens"), DRAWN},
    {TOP_P, HELP("among the most probable ones that together have P (0 or 1: all)"),
     FOR_GENERATE},
    {TOP_P,
     USUALLY("0.9", "among the most probable ones that together have P (",
             "; 0 or 1: all)"),
     FOR_CHAT},
    {MIN_P, HELP("among those with P times the greatest probability"), DRAWN},
    {PENALTY, HELP("divide the logits of the last 64 tokens by F"), FOR_GENERATE},
    {PENALTY, USUALLY("1.1", "divide the logits of the last 64 tokens by F (", ")"),
     FOR_CHAT},
    {PENALTY_LAST, HELP("tokens that the penalties look back (64)"), DRAWN},
    {PRESENCE, HELP("subtract X from the logits of those tokens"), DRAWN},
    {FREQUENCY, HELP("subtract X for each occurrence of such a token"), DRAWN},
    {SEED, HELP("seed of the random numbers (0)"), DRAWN},
    {SEED, HELP("seed of the windows and the first weights (0)"), FOR_LORA},
    {STOP, HELP("end where the model writes TEXT"), FOR_GENERATE},
    {GRAMMAR, HELP("constrain the text by a grammar in GBNF"), FOR_GENERATE},
    {GRAMMAR, HELP("constrain each reply by a grammar in GBNF"), FOR_CHAT},
    {JSON_SCHEMA, HELP("constrain the text to JSON valid by a schema"), FOR_GENERATE},
    {JSON_SCHEMA, HELP("constrain each reply to JSON valid by a schema"), FOR_CHAT},
    {BIAS, HELP("add X to the logits of token ID (-inf: never); ID=X,..."), FOR_GENERATE},
    {TOP, HELP("with --json: the N most probable tokens in place of each"), FOR_GENERATE},
    {SEQUENCES, HELP("llm: sequences that share each step (1)"), FOR_BENCH},
    {PROMPT, HELP("llm: tokens of the prompt (512)"), FOR_BENCH},
    {POSITION, HELP("llm: where steps are measured (512; of several, 64)"), FOR_BENCH},
    {CACHE, HELP("dtype of the caches: f16 (the default), f32 or q8_0"),
     DRAWN | FOR_PERPLEXITY},
    {CACHE, HELP("llm: dtype of the caches: f16, f32, q8_0"), FOR_BENCH},
    {CACHE, HELP("where: dtype of the caches: f16, f32, q8_0"), FOR_SHOW},
    {SEQUENCES, HELP("where: sequences that share each step (1)"), FOR_SHOW},
    {SPLIT, HELP("layers of each device of TENON_BACKEND, 16,14 (by their memory)"),
     DRAWN | FOR_EMBED | FOR_PERPLEXITY},
    {PARALLEL, HELP("under tenon run: pipeline (layers), tensor (products) or none"),
     DRAWN | FOR_EMBED | FOR_PERPLEXITY},
    {PARALLEL, HELP("llm: under tenon run: pipeline, tensor or none"), FOR_BENCH},
    {SPLIT, HELP("llm: layers of each device of TENON_BACKEND, 16,14"), FOR_BENCH},
    {SPLIT, HELP("where: layers of each device, 16,14 (by memory)"), FOR_SHOW},
    {SAVE_CACHE, HELP("write the cache, with its tokens, to FILE"), FOR_GENERATE},
    {LOAD_CACHE, HELP("go on from the cache in FILE"), FOR_GENERATE},
    {ADAPTER, HELP("an adapter, as tenon train lora makes them"), DRAWN | FOR_PERPLEXITY},
    {ADAPTER_SCALE, HELP("multiply the adapter by F (1)"), DRAWN | FOR_PERPLEXITY},
    {IMAGE, HELP("images: in front of the prompt, or at its marks"), FOR_GENERATE},
    {IMAGE, HELP("images in front of the first message"), FOR_CHAT},
    {MMPROJ, HELP("the file of the vision encoder, of a model in GGUF"), DRAWN},
    {PLAIN, HELP("do not scale vectors to length 1"), FOR_EMBED},
    {PLOT, HELP("draw the losses as SVG"), FOR_LORA},
    {RAW, HELP("do not begin as prompts of this model do"),
     FOR_GENERATE | FOR_EMBED | READ},
    {JSON, HELP("print the text and its tokens in JSON at the end"), FOR_GENERATE},
    {JSON, HELP("print JSON"), FOR_PERPLEXITY},
    {JSON, HELP("print a JSON object a step"), FOR_LORA},
    {JSON, HELP("llm: print JSON"), FOR_BENCH},
    {JSON, HELP("print JSON: all of it"), FOR_SHOW},
};
const size_t num_given_options = sizeof(given_options) / sizeof(given_options[0]);
