// SPDX-License-Identifier: MIT
// Shared by the files of functions that are traced once for all extents.
//
// A graph is read as a tape: words in a fixed order. Most words describe the graph (EXACT);
// the others are numbers that may follow from extents. Tapes of the same body for other
// extents show which numbers do, and how. The graph is rebuilt by reading it in the same
// order, with each number computed from the extents of the call.
#ifndef TRAIN_SHAPELESS_H
#define TRAIN_SHAPELESS_H

#include <tenon/graph_format.h>
#include "common.h"

enum { MOST_SYMBOLS = 12, MOST_PROBES = 3 * MOST_SYMBOLS + 2, WHY_TEXT = 240 };

// Kinds of words: a fixed one; a whole or a real number that may follow from extents.
enum shapeless_kind { EXACT, WHOLE, REAL };

struct shapeless_word {
    enum shapeless_kind kind;
    int64_t i;
    double f;          // the number of REAL
    const char *owner; // the operation: borrowed from the graph
    const char *name;  // the attribute; NULL: none
};

struct shapeless_tape {
    struct shapeless_word *words;
    uint64_t count, room;
    uint32_t num_arrays; // the greatest number of an array, plus one
    bool failed;         // memory is short
};

// Reads a graph, graphs among attributes included, onto the tape.
void tape_graph(const tn_host_graph_format *api, const tn_graph *graph,
                struct shapeless_tape *tape);
void tape_finish(struct shapeless_tape *tape);

// Whether an operation has this attribute.
bool node_has_field(const tn_graph_node *node, const tn_attr_field *field);

// --- formulas (shapeless_formula.c) -----------------------------------------------------

// A formula: base + sum of rise[k] (s[k] - first[k]) / run[k], or base times the product of
// s[k] / first[k] over the k with a rise; then a function of that.
struct shapeless_formula {
    bool is_constant, is_product;
    uint32_t function; // see functions in shapeless_formula.c
    int64_t base, rise[MOST_SYMBOLS], run[MOST_SYMBOLS];
    double constant;
};

// Extents of a probe, by symbol.
struct shapeless_extents {
    int64_t of[MOST_SYMBOLS];
};

// Finds a formula that gives `words[p]` for extents `at[p]`, p = 0 .. num_probes - 1. Probe
// 0 has the extents of the call, and probe 1 + 3 k moved symbol k alone; where words[p] is
// NULL, the probe failed. False: there is no such formula.
bool formula_find(const struct shapeless_word *const *words,
                  const struct shapeless_extents *at, uint32_t num_probes,
                  uint32_t num_symbols, struct shapeless_formula *out);

// The number for these extents. False: the formula gives no whole number.
bool formula_value(const struct shapeless_formula *f, const struct shapeless_extents *first,
                   const struct shapeless_extents *at, uint32_t num_symbols,
                   struct shapeless_word *out);

// --- building (shapeless_replay.c) ------------------------------------------------------

// Builds the graph in `scope` with numbers from `values`, which are read in the order of
// the tape.
struct shapeless_replaying {
    const tn_host_graph_format *api;
    const tn_graph *graph;
    const struct shapeless_word *values;
    uint64_t *at; // of the next word
};
tn_status replay_graph(struct shapeless_replaying *r, tn_scope *scope,
                       tn_array *const *inputs, tn_array **outputs);

#endif // TRAIN_SHAPELESS_H
