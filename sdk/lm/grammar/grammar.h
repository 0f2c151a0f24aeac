// SPDX-License-Identifier: MIT
// Grammars: built as trees of rules, compiled to networks of states over bytes, and matched
// byte by byte.
//
// A tree is what GBNF and JSON schemas are read into. A network has one graph of states for
// each rule; edges are sets of bytes, or calls of rules. A matcher runs a network.
#ifndef LM_GRAMMAR_H
#define LM_GRAMMAR_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/lm.h>

// --- building --------------------------------------------------------------------------

// The upper bound of a repetition without one.
#define GRAMMAR_MANY UINT32_MAX

// The deepest nesting of groups, and of schemas.
#define GRAMMAR_DEPTH 128

#define GRAMMAR_BUCKETS 4096

// A node of a tree; negative after a failure, which the builder keeps.
typedef int32_t grammar_node;

// Characters first .. last.
struct grammar_range {
    uint32_t first, last;
};

enum { NODE_LITERAL, NODE_CLASS, NODE_SEQUENCE, NODE_CHOICE, NODE_REPEAT, NODE_CALL };

struct grammar_tree_node {
    uint32_t kind; // NODE_...
    int32_t first; // index of the first child, range or byte; or a rule
    uint32_t count;
    uint32_t min, max; // of a repetition
};

struct grammar_rule {
    char *name; // owned; NULL: made by the builder
    uint64_t name_size;
    int32_t same;      // another rule whose name has the same hash; -1: none
    grammar_node body; // negative: not defined
    uint64_t used_at;  // where a text first names it
};

struct grammar_builder {
    tn_status status; // the first failure; the message is the thread's
    struct grammar_tree_node *nodes;
    int32_t *children;
    struct grammar_range *ranges;
    char *bytes;
    struct grammar_rule *rules;
    int32_t by_name[GRAMMAR_BUCKETS]; // rules plus 1
    uint64_t num_nodes, num_children, num_ranges, num_bytes, num_rules;
    uint64_t room_nodes, room_children, room_ranges, room_bytes, room_rules;
};

void grammar_builder_finish(struct grammar_builder *b);

// Each function gives a node. Without children a sequence is the empty text, and a choice
// has no text at all.
grammar_node grammar_literal(struct grammar_builder *b, const char *bytes, uint64_t size);
grammar_node grammar_text(struct grammar_builder *b, const char *text);
grammar_node grammar_class(struct grammar_builder *b, const struct grammar_range *ranges,
                           uint64_t count);
grammar_node grammar_sequence(struct grammar_builder *b, const grammar_node *children,
                              uint64_t count);
grammar_node grammar_choice(struct grammar_builder *b, const grammar_node *children,
                            uint64_t count);
grammar_node grammar_repeat(struct grammar_builder *b, grammar_node child, uint32_t min,
                            uint32_t max);
grammar_node grammar_call(struct grammar_builder *b, int32_t rule);

#define GRAMMAR_NODES(...)                                                                 \
    (const grammar_node[]){__VA_ARGS__},                                                   \
        sizeof((const grammar_node[]){__VA_ARGS__}) / sizeof(grammar_node)

// Adds a rule without a body. The name, `size` bytes, is copied, and may be NULL. Negative
// after a failure.
int32_t grammar_rule_add(struct grammar_builder *b, const char *name, uint64_t size);

// Makes a rule whose body is this node, and gives a call of it.
grammar_node grammar_own_rule(struct grammar_builder *b, grammar_node node);

// As grammar_own_rule for every 64th node of a list that is joined one by one, so that
// trees stay low; other nodes are given back.
grammar_node grammar_lower(struct grammar_builder *b, grammar_node node, uint64_t index);

// The rule of that name, or -1.
int32_t grammar_rule_find(const struct grammar_builder *b, const char *name, uint64_t size);

// Sorts and merges ranges, and leaves out numbers that are no characters; `is_negated`:
// gives all other characters. `out` has room for count + 3. Returns the number of ranges.
uint64_t grammar_ranges_tidy(struct grammar_range *ranges, uint64_t count, bool is_negated,
                             struct grammar_range *out);

// Makes room for `count` more items of a growing array. False, with the failure recorded,
// when there is no memory, or the array would have more than `most` items.
bool grammar_grow(tn_status *status, void *items, uint64_t used, uint64_t count,
                  uint64_t *room, uint64_t size, uint64_t most, const char *what);

// These read a text into rules; matching begins at rule 0. `what` begins messages.
tn_status grammar_read_gbnf(struct grammar_builder *b, const char *text, uint64_t size);
tn_status grammar_read_schema(struct grammar_builder *b, const char *text, uint64_t size);

// Reads a pattern of JSON schema, as min to max characters between the quotes of a string.
// `where` begins messages.
grammar_node grammar_read_pattern(struct grammar_builder *b, const char *pattern,
                                  uint32_t min, uint32_t max, const char *where);

// --- networks --------------------------------------------------------------------------

enum { GRAMMAR_ACCEPT, GRAMMAR_SPLIT, GRAMMAR_BYTES, GRAMMAR_CALL, GRAMMAR_FAIL };

// A state of a rule's graph. State 0 is the end of every rule.
struct grammar_state {
    uint8_t kind;
    uint8_t is_productive; // some text leads to the end of the rule
    uint8_t is_tail;       // a call behind which the rule ends
    uint8_t reserved;
    int32_t next;  // the next state of SPLIT, BYTES and CALL
    int32_t other; // SPLIT: the second next state; BYTES: the set; CALL: the rule
};

struct grammar_set {
    uint64_t bits[4];
};

struct grammar_network {
    struct grammar_state *states;
    struct grammar_set *sets; // sets of classes of bytes
    int32_t *starts;          // by rule: its first state
    uint8_t *is_nullable;     // by rule: it has the empty text
    uint64_t num_states, num_sets, num_rules;
    uint64_t room_states, room_sets, room_rules, room_nullable;
    uint8_t class_of[256]; // bytes of one class are in the same sets
    uint32_t num_classes;
};

// Compiles the rules. TN_ERR_REFUSED: rule 0 has no text at all.
tn_status grammar_compile(struct grammar_builder *b, struct grammar_network *out);
void grammar_network_finish(struct grammar_network *n);

// --- matching --------------------------------------------------------------------------

// Runs a network over texts. A position in a text is the number of a set of items, or -1
// where no text continues; positions with the same continuations have the same number.
struct grammar_matcher;

tn_status grammar_matcher_open(const struct grammar_network *network,
                               struct grammar_matcher **out_matcher);
void grammar_matcher_close(struct grammar_matcher *m);

// Goes back to the beginning.
tn_status grammar_matcher_reset(struct grammar_matcher *m);

// Appends bytes. *out_fits: some text of the grammar begins with the text so far and these
// bytes; else the matcher is unchanged.
tn_status grammar_matcher_append(struct grammar_matcher *m, const char *bytes,
                                 uint64_t size, bool *out_fits);

bool grammar_matcher_may_end(const struct grammar_matcher *m);
bool grammar_matcher_may_go_on(const struct grammar_matcher *m);

// A vocabulary as a tree of bytes.
struct grammar_vocabulary;

// Makes a vocabulary from the bytes of each token, borrowed for the call. A token without
// bytes never matches.
tn_status grammar_vocabulary_make(const tn_text *bytes, int32_t count,
                                  struct grammar_vocabulary **out_vocabulary);
void grammar_vocabulary_destroy(struct grammar_vocabulary *v);

// Gives a mask with one bit for each token that may be appended, valid until the matcher
// changes. `serial` identifies the vocabulary.
tn_status grammar_matcher_mask(struct grammar_matcher *m,
                               const struct grammar_vocabulary *v, uint64_t serial,
                               const uint64_t **out_mask);

#endif // LM_GRAMMAR_H
