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

// No upper bound of a repetition.
#define GRAMMAR_MANY UINT32_MAX

// Groups within groups, and schemas within schemas.
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
    int32_t first; // of children, ranges or bytes; a rule
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

// Each gives a node. Of no child: the empty text for a sequence, nothing at all for a
// choice.
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

// A rule that has no body yet, by a name of `size` bytes that is copied, or NULL. Negative
// after a failure.
int32_t grammar_rule_add(struct grammar_builder *b, const char *name, uint64_t size);

// A call of a new rule that is this node.
grammar_node grammar_own_rule(struct grammar_builder *b, grammar_node node);

// The same for each 64th node of a list that is joined one by one, so that trees stay low.
grammar_node grammar_lower(struct grammar_builder *b, grammar_node node, uint64_t index);

// The rule of that name, or -1.
int32_t grammar_rule_find(const struct grammar_builder *b, const char *name, uint64_t size);

// Ranges in ascending order that neither touch nor overlap, without what is no character;
// `is_negated`: all other characters. `out` has room for count + 3. Returns their number.
uint64_t grammar_ranges_tidy(struct grammar_range *ranges, uint64_t count, bool is_negated,
                             struct grammar_range *out);

// Makes room for `count` more of a growing array. False, with the failure recorded, where
// there is no memory, or where it would pass `most`.
bool grammar_grow(tn_status *status, void *items, uint64_t used, uint64_t count,
                  uint64_t *room, uint64_t size, uint64_t most, const char *what);

// Read a text into rules; matching begins at rule 0. `what` begins messages.
tn_status grammar_read_gbnf(struct grammar_builder *b, const char *text, uint64_t size);
tn_status grammar_read_schema(struct grammar_builder *b, const char *text, uint64_t size);

// A pattern of JSON schema, as the characters between the quotes of a string, of which
// there are min to max. `where` begins messages.
grammar_node grammar_read_pattern(struct grammar_builder *b, const char *pattern,
                                  uint32_t min, uint32_t max, const char *where);

// --- networks --------------------------------------------------------------------------

enum { GRAMMAR_ACCEPT, GRAMMAR_SPLIT, GRAMMAR_BYTES, GRAMMAR_CALL, GRAMMAR_FAIL };

// State 0 is the one that accepts, of every rule.
struct grammar_state {
    uint8_t kind;
    uint8_t is_productive; // some text leads to the end of the rule
    uint8_t is_tail;       // a call behind which the rule ends
    uint8_t reserved;
    int32_t next;  // of SPLIT, BYTES and CALL
    int32_t other; // of SPLIT, the second way; of BYTES, the set; of CALL, the rule
};

struct grammar_set {
    uint64_t bits[4];
};

struct grammar_network {
    struct grammar_state *states;
    struct grammar_set *sets; // of classes of bytes
    int32_t *starts;          // of each rule
    uint8_t *is_nullable;     // a rule that has the empty text
    uint64_t num_states, num_sets, num_rules;
    uint64_t room_states, room_sets, room_rules, room_nullable;
    uint8_t class_of[256]; // bytes of one class are in the same sets
    uint32_t num_classes;
};

// Compiles the rules. TN_ERR_REFUSED: rule 0 has no text at all.
tn_status grammar_compile(struct grammar_builder *b, struct grammar_network *out);
void grammar_network_finish(struct grammar_network *n);

// --- matching --------------------------------------------------------------------------

// Runs a network over texts. Positions of texts are numbers of sets of items, equal for
// equal futures, and -1 where no text goes on.
struct grammar_matcher;

tn_status grammar_matcher_open(const struct grammar_network *network,
                               struct grammar_matcher **out_matcher);
void grammar_matcher_close(struct grammar_matcher *m);

// Goes back to the beginning.
tn_status grammar_matcher_reset(struct grammar_matcher *m);

// Appends bytes. *out_fits is whether some text of the grammar begins so; the matcher is
// unchanged where none does.
tn_status grammar_matcher_append(struct grammar_matcher *m, const char *bytes,
                                 uint64_t size, bool *out_fits);

bool grammar_matcher_may_end(const struct grammar_matcher *m);
bool grammar_matcher_may_go_on(const struct grammar_matcher *m);

// A vocabulary as a tree of bytes.
struct grammar_vocabulary;

// `bytes` of each token, of which those of no bytes never match. Borrows them for the call.
tn_status grammar_vocabulary_make(const tn_text *bytes, int32_t count,
                                  struct grammar_vocabulary **out_vocabulary);
void grammar_vocabulary_destroy(struct grammar_vocabulary *v);

// Gives the tokens that may be appended, a bit each, valid until the matcher is changed.
// `serial` tells vocabularies apart.
tn_status grammar_matcher_mask(struct grammar_matcher *m,
                               const struct grammar_vocabulary *v, uint64_t serial,
                               const uint64_t **out_mask);

#endif // LM_GRAMMAR_H
