// SPDX-License-Identifier: MIT
// Shared by the files of libtenon-train: messages, numbers from seeds, parameters.
#ifndef TRAIN_COMMON_H
#define TRAIN_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <tenon/file.h>
#include <tenon/train.h>

// --- messages (fail.c) ------------------------------------------------------------------

// Sets the message of tn_train_error(), and returns `status`.
__attribute__((format(printf, 2, 3))) tn_status train_fail(tn_status status,
                                                           const char *format, ...);
tn_status train_fail_memory(void);
// Reports the failure of the core's last call, or of a scope; TN_OK without one.
tn_status train_fail_core(tn_status status);
tn_status train_fail_scope(const tn_scope *scope);

// --- numbers ----------------------------------------------------------------------------

// A number that depends on nothing but its arguments (SplitMix64's mixing).
static inline uint64_t train_random(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) ^ stream << 40 ^ counter;
    for (int i = 0; i < 2; i++) {
        x += UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        x ^= x >> 31;
    }
    return x;
}

// Number of elements of a type; text of a shape, "[2, 3]".
uint64_t train_elements(const tn_type *type);
#define SHAPE_TEXT 200
const char *train_shape_text(const tn_type *type, char text[SHAPE_TEXT]);

// --- parameters (params.c) --------------------------------------------------------------

enum { MOST_STATES = 3, MOST_NOTES = 16 };

struct train_note {
    char key[32], text[256];
};

struct train_param {
    char *name;
    tn_array *value;              // kept
    tn_array *state[MOST_STATES]; // of the optimiser, kept; NULL: none yet
    bool used;                    // a layer has used it
    bool is_state;                // a layer's state, which is not trained
};

struct tn_params {
    tn_runtime *runtime;
    uint64_t seed, step;
    struct train_param *items;
    uint64_t count, room;
    bool fixed;    // the step is traced: no parameter can be added
    bool is_whole; // while a network is evaluated: none is made
    // While a body is traced: by parameter, the array that stands for it; for a layer's
    // state, its last value.
    tn_array **traced;
    char optimiser[32]; // the optimiser of the states; "": none
    char *source;       // the checkpoint that was read; NULL: none
    struct train_note notes[MOST_NOTES];
    uint64_t num_notes;
};

// The index of a parameter, or -1.
int64_t params_find(const struct tn_params *params, const char *name);

// Adds a parameter. Takes a reference to `value`, on success only.
tn_status params_add(struct tn_params *params, const char *name, tn_array *value,
                     struct train_param **out_param);

// --- notes (notes.c) --------------------------------------------------------------------

#define NOTE "note."
// The keys of all notes: as one list, and each as its name in a file.
struct train_note_list {
    char all[MOST_NOTES * sizeof(((struct train_note *)0)->key)];
    char keys[MOST_NOTES][sizeof(NOTE) + sizeof(((struct train_note *)0)->key)];
};
void list_notes(const struct tn_params *params, struct train_note_list *list);
tn_status read_notes(struct tn_params *params, const tn_file *file, const char *path);

// --- groups of processes (group.c) ------------------------------------------------------

struct train_group {
    char name[64];
    int32_t rank, size; // size 1: this process alone
};

// Finds the group of this name; NULL: this process alone.
tn_status group_find(tn_runtime *runtime, const char *name, struct train_group *out);

// Builds the means over the members of `count` arrays, in place (buckets.c).
tn_status group_average(const struct train_group *group, tn_scope *scope, tn_array **arrays,
                        uint64_t count);

// Sets *mine on all members if one of them has set it.
tn_status group_any(const struct train_group *group, tn_runtime *runtime, bool *mine);

// --- options ----------------------------------------------------------------------------

// Copies an option struct of a caller that may know fewer members: `given_size` bytes, or,
// for 0, `first`, the size of ABI 1.0. The other members become 0.
void train_read_options(void *out, uint64_t size, const void *given, uint32_t given_size,
                        uint64_t first);

// --- tables (table.c) -------------------------------------------------------------------

// Fails unless there are tables, each of as many rows as the first.
enum { MOST_TABLES = 16 };
tn_status train_check_tables(const tn_table *tables, uint64_t count);

// --- loaders (loader.c) -----------------------------------------------------------------

uint64_t loader_batch(const tn_loader *loader); // rows of a batch

// --- layers (layers.c) ------------------------------------------------------------------

// Fails with the layer's name and what it got, unless x has `least` to `most` axes.
bool layer_fits(tn_net *net, const char *layer, const char *name, const tn_array *x,
                int32_t least, int32_t most);
// The extent of the last axis: the number of channels.
int64_t layer_width(const tn_array *x);

// The set that a trainer changes, and the group that it is trained in (trainer.c).
tn_params *trainer_params(const tn_trainer *trainer);
const struct train_group *trainer_group(const tn_trainer *trainer);

#endif // TRAIN_COMMON_H
