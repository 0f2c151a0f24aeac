// SPDX-License-Identifier: MIT
// Values of the command line, and the one table of its options. `tenon` parses, and makes
// help, completions and man pages, by the table; tenon-lm stores values by it.
#ifndef TOOLS_LM_GIVEN_H
#define TOOLS_LM_GIVEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/lm.h>

// Texts that are separated by commas.
struct given_list {
    const char *items[16];
    int count;
};

// Texts are argv's.
struct lm_options {
    tn_lm_sampling sampling;
    const char *stop;
    const char *grammar, *schema; // files that constrain the text; NULL: none
    const char *pooling;          // of embeddings; NULL: mean
    struct given_list biases;     // "ID=NUMBER"
    int64_t top;                  // number of most probable tokens to print for each token
    bool plain;                   // embeddings are not normalised
    const char *random;           // dimensions of a model without a file
    const char *system;           // of a chat
    const char *template;         // the family of its form; NULL: the model's
    int64_t tokens;               // to generate, or to measure; 0: not given
    int64_t context;              // positions; 0: not given
    int64_t rounds;
    int64_t sequences;    // sequences that share a step; 0: not given
    int64_t prompt;       // positions of a prompt that is measured; 0: not given
    int64_t position;     // where steps are measured; -1: not given
    const char *cache;    // element type of the caches; NULL: the default
    const char *split;    // layers of each device, or process; NULL: by memory
    const char *parallel; // how processes divide the model; NULL: pipeline
    const char *save_to;  // a file for the sequence at the end of generation
    const char *load_from;
    const char *adapter; // a file
    double adapter_scale;
    const char *mmproj; // a file: the vision encoder that reads images
    struct given_list images;
    const char *weights; // weights that training adapts: "attn_q,attn_v"
    const char *output, *plot;
    int64_t rank, steps, window, batch; // of a training; 0: not given
    double alpha, rate;
    bool raw; // the prompt is tokenized as it is, without a beginning-of-text token
    bool json;
    char **items; // arguments that are no options
    int num_items;
};

// Commands that have options of the table: bits.
enum {
    FOR_GENERATE = 1,
    FOR_CHAT = 2,
    FOR_EMBED = 4,
    FOR_PERPLEXITY = 8,
    FOR_IMATRIX = 16,
    FOR_LORA = 32,
    FOR_BENCH = 64,
    FOR_SHOW = 128,
};

// How a value is read.
enum given_kind {
    GIVEN_ASIDE, // not read by tenon-lm: the command has acted on the option
    GIVEN_SWITCH,
    GIVEN_TEXT,
    GIVEN_NUMBER,
    GIVEN_INTEGER, // of 0 or more
    GIVEN_TOKENS,  // a list
    GIVEN_FILES,   // a list
};

// One option of some commands. Rows of one name are stored alike.
struct given_option {
    const char *name;  // without dashes
    char letter;       // 0: none
    const char *value; // a placeholder, "FILE"; NULL: it is a switch
    enum given_kind kind;
    size_t at;            // in struct given
    const char *help;     // for people
    const char *fallback; // the value where none is given; NULL: none
    uint32_t commands;
};

// In the order in which each command lists its options.
extern const struct given_option given_options[];
extern const size_t num_given_options;

#endif // TOOLS_LM_GIVEN_H
