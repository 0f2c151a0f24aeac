// SPDX-License-Identifier: MIT
// The program behind `tenon generate`, `chat`, `embed`, `perplexity`, `bench llm`,
// `train lora` and `model show --where`: its own, so that the command itself does not load
// the library of language models.
#ifndef TOOLS_LM_LM_H
#define TOOLS_LM_LM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/lm_image.h>
#include "given.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// An open model with its runtime.
struct opened {
    tn_runtime *runtime;
    tn_lm *lm;
    tn_lm_sequence *sequence;
    double begin, seconds; // when opening began; how long it and loading took
    bool is_drawn;         // a line on standard error tells how far loading is
};

// Prints "tenon: TEXT" on standard error, with control characters escaped. Returns 1.
int stop(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same for the library's last failure.
int stop_lm(void);
// Out of memory.
int stop_memory(void);

// Seconds of a clock that only moves forwards.
double now(void);

// Opens the model of a file, or of the dimensions that --random gave. Under `tenon run` all
// processes open it: rank 0 returns, the other ranks serve rank 0 and exit with it.
int open_model(const struct lm_options *given, struct opened *out);
// The same, without a sequence, in this process alone.
int open_alone(const struct lm_options *given, struct opened *out);
void close_model(struct opened *opened);

// Gives the bytes of a file, "-" being standard input, for free().
int read_text(const char *path, char **out_text, uint64_t *out_size);

// Gives a text of the command line for free(): "-" is what standard input has, without the
// end of its last line.
int read_argument(const char *argument, char **out_text);

// Opens the grammar that --grammar or --json-schema names; NULL where there is none.
int open_grammar(const struct lm_options *given, tn_lm_grammar **out_grammar);

// Images of the prompt that is being made.
struct pictures {
    tn_lm_image *items[64];
    uint64_t count;
};

// Opens an image, and appends it.
int add_picture(const struct opened *opened, const char *path, struct pictures *pictures);
// Opens the images of --image.
int open_pictures(const struct opened *opened, const struct lm_options *given,
                  struct pictures *pictures);
void close_pictures(struct pictures *pictures);

// Reads --bias into `out`, which has room for all of given->biases.items.
int read_biases(const struct lm_options *given, tn_lm_bias *out);

// Gives the parts of the model, for free(), also on failure.
int list_parts(const struct opened *opened, tn_lm_part **out_parts, uint64_t *out_count);

// Prints on standard error which model runs on what.
void tell_model(const struct opened *opened);

// Writes text as it comes; a terminal gets control characters escaped.
void write_piece(const char *text, uint64_t size);

// A source of random weights: "layers=22,width=2048,heads=32,kv_heads=4,inner=5632,..." .
int random_source(tn_runtime *runtime, const char *dimensions, tn_lm_source *out_source);

int run_generate(const struct lm_options *given);
int run_chat(const struct lm_options *given);
int run_embed(const struct lm_options *given);
int run_perplexity(const struct lm_options *given);
int run_bench(const struct lm_options *given);
int run_lora(const struct lm_options *given);
int run_imatrix(const struct lm_options *given);
int run_where(const struct lm_options *given);

#endif // TOOLS_LM_LM_H
