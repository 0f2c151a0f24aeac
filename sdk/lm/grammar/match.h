// SPDX-License-Identifier: MIT
// The inside of a matcher, shared by match.c and mask.c.
#ifndef LM_GRAMMAR_MATCH_H
#define LM_GRAMMAR_MATCH_H

#include "grammar.h"

// Number of coarse classes: groups of bytes that most grammars treat alike.
#define GRAMMAR_COARSE 18

// Bounds of a matcher: of its items, rows and sets, and of the work for a byte and for a
// mask.
#define MOST_ITEMS (UINT64_C(1) << 22)
#define MOST_ROWS (UINT64_C(1) << 23)
#define MOST_SETS (UINT64_C(1) << 19)
#define MOST_WORK (UINT64_C(1) << 18) // items followed for one byte
#define MOST_MASK_WORK (UINT64_C(1) << 22)
#define MOST_MASK_WORDS (UINT64_C(1) << 20)

// Entries of rows and coarse that are no set: bytes of the coarse class lead to different
// sets; the byte has not been followed; no text continues so.
enum { PARTS = -3, UNKNOWN = -2, DEAD = -1 };

struct item {
    int32_t state, frame;
};

struct frame {
    int32_t rule, set; // the set that called the rule; -1: none, the whole text
};

struct item_set {
    uint64_t hash;
    int32_t kernel, num_kernel; // in the pool of items: sorted
    int32_t scans, num_scans;   // in the pool: items that wait for a byte
    int32_t calls, num_calls;   // in the pool: items that wait for a rule
    int32_t mask;               // -1: not made
    bool may_end;
};

struct grammar_matcher {
    const struct grammar_network *network; // borrowed
    tn_status status;                      // of growing an array
    struct item *items;
    struct frame *frames;
    struct item_set *sets;
    int32_t *rows;    // by set and class: the set that a byte leads to
    int32_t *coarse;  // by set and coarse class: the set that each of its bytes leads to
    int32_t *buckets; // sets by their hash, plus 1
    uint64_t num_items, num_frames, num_sets, num_rows, num_buckets;
    uint64_t room_items, room_frames, room_sets, room_rows, room_coarse;
    uint64_t work, most_work;
    bool is_slow; // the bound of work was passed, not that of memory
    // While a set is made:
    struct item *todo;
    uint64_t *seen; // hash set of followed items; the high bits number the construction
    int32_t *frame_of, *frame_set; // by rule: its frame, and the set that this is for
    uint64_t num_todo, room_todo, num_seen, room_seen;
    uint8_t representative[256]; // by class: one byte of it
    // The text so far.
    char *text;
    uint64_t size, room_text;
    int32_t at;
    // Masks of tokens; `serial` is the vocabulary's.
    uint64_t *masks;
    uint64_t num_masks, room_masks, serial;
};

// Makes room for more items of an array of the matcher. False, and a failure, when it is
// full.
bool grammar_matcher_grow(struct grammar_matcher *m, void *items, uint64_t used,
                          uint64_t count, uint64_t *room, uint64_t size, uint64_t most);

// The set that a byte leads to; DEAD where no text continues, and after a failure.
int32_t grammar_matcher_next(struct grammar_matcher *m, int32_t set, uint8_t byte);

// Forgets all sets, and makes those of the text so far again.
tn_status grammar_matcher_rebuild(struct grammar_matcher *m);

#endif // LM_GRAMMAR_MATCH_H
