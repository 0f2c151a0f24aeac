// SPDX-License-Identifier: MIT
// A matcher of grammars from within: for match.c and mask.c.
#ifndef LM_GRAMMAR_MATCH_H
#define LM_GRAMMAR_MATCH_H

#include "grammar.h"

// Classes of bytes that most grammars treat alike.
#define GRAMMAR_COARSE 18

// Bounds: of a matcher's items and rows, and of steps for a byte or for a mask.
#define MOST_ITEMS (UINT64_C(1) << 22)
#define MOST_ROWS (UINT64_C(1) << 23)
#define MOST_SETS (UINT64_C(1) << 19)
#define MOST_WORK (UINT64_C(1) << 18) // of one byte
#define MOST_MASK_WORK (UINT64_C(1) << 22)
#define MOST_MASK_WORDS (UINT64_C(1) << 20)

// Where a byte leads to that has not been followed, where no text goes on, and where bytes
// of one coarse class part.
enum { PARTS = -3, UNKNOWN = -2, DEAD = -1 };

struct item {
    int32_t state, frame;
};

struct frame {
    int32_t rule, set; // set -1: of the whole text
};

struct item_set {
    uint64_t hash;
    int32_t kernel, num_kernel; // of the pool of items: in order
    int32_t scans, num_scans;   // that wait for a byte
    int32_t calls, num_calls;   // that wait for the end of a rule
    int32_t mask;               // -1: not made
    bool may_end;
};

struct grammar_matcher {
    const struct grammar_network *network; // borrowed
    tn_status status;                      // of what grows
    struct item *items;
    struct frame *frames;
    struct item_set *sets;
    int32_t *rows;    // of each set, num_classes: the set behind a byte
    int32_t *coarse;  // of each set, GRAMMAR_COARSE: the set behind any byte of a class
    int32_t *buckets; // sets by their hash, plus 1
    uint64_t num_items, num_frames, num_sets, num_rows, num_buckets;
    uint64_t room_items, room_frames, room_sets, room_rows, room_coarse;
    uint64_t work, most_work;
    bool is_slow; // the failure is of steps, not of memory
    // While a set is made:
    struct item *todo;
    uint64_t *seen; // items that were taken, hashed; with the number of the making above
    int32_t *frame_of, *frame_set; // of each rule that this set calls
    uint64_t num_todo, room_todo, num_seen, room_seen;
    uint8_t representative[256]; // a byte of each class
    // The text so far.
    char *text;
    uint64_t size, room_text;
    int32_t at;
    // Masks of tokens, and the vocabulary that they are of.
    uint64_t *masks;
    uint64_t num_masks, room_masks, serial;
};

// Makes room for more of what the matcher keeps. False, and a failure, where it is full.
bool grammar_matcher_grow(struct grammar_matcher *m, void *items, uint64_t used,
                          uint64_t count, uint64_t *room, uint64_t size, uint64_t most);

// The set behind a byte; DEAD where there is none, and after a failure.
int32_t grammar_matcher_next(struct grammar_matcher *m, int32_t set, uint8_t byte);

// Forgets all sets but those of the text so far.
tn_status grammar_matcher_rebuild(struct grammar_matcher *m);

#endif // LM_GRAMMAR_MATCH_H
