// SPDX-License-Identifier: MIT
// Nodes of counted arrays (counted.c), for the files that make them and count references.
#ifndef CORE_GRAPH_COUNTED_H
#define CORE_GRAPH_COUNTED_H

#include "graph.h"

struct held_graph;

struct counted {
    struct node node; // first: arrays point to it. Constant
    tn_runtime *runtime;
    struct expr_set *exprs;      // holds node.expr
    struct intern_refs interned; // hold node.attrs
    struct counted *next;        // in a list of struct settling
    uint32_t num_live;           // outputs with references
    uint32_t num_pending;        // outputs with references and without a value
    bool is_data;                // the node has no references to inputs any more
    bool has_effects;            // the node, or a node that it depends on, has effects
    bool is_listed;              // in settling.list
    // The evaluation that may be writing over the node's inputs (held.c); NULL: none.
    const struct held_graph *taken_by;
};

static inline struct counted *counted_of(const tn_array *array)
{
    return (struct counted *)array->node;
}

// A reference of a node or a scope is 1; the application's counts in the upper half, too.
#define OWN_REFERENCE (UINT64_C(1) << 32 | 1)
static inline uint32_t references_of(uint64_t refs)
{
    return (uint32_t)refs;
}
static inline uint32_t own_references_of(uint64_t refs)
{
    return (uint32_t)(refs >> 32);
}

// Whether the application refers to it.
static inline bool counted_is_held(const tn_array *counted)
{
    return own_references_of(atomic_load_explicit(&counted->refs, memory_order_relaxed)) >
           0;
}

// Whether the array has yet to be computed.
static inline bool counted_is_pending(const tn_array *counted)
{
    return !counted->value && !counted->donated;
}

// Makes a counted node like `from`, without inputs. The caller has one reference to each
// output. NULL with the scope's failure set.
struct counted *counted_create(tn_scope *scope, const struct node *from,
                               const tn_array *outputs);

// Drops one reference to each output.
void counted_destroy(struct counted *c);

// --- under the lock ---------------------------------------------------------------------

// Locks all counted nodes of a runtime.
static inline void counted_lock(tn_runtime *runtime)
{
    pthread_mutex_lock(&runtime->counted_lock);
}
static inline void counted_unlock(tn_runtime *runtime)
{
    pthread_mutex_unlock(&runtime->counted_lock);
}

// Adds a reference of a node or a scope.
void counted_refer(tn_array *counted);

// Waits until an evaluation gives back nodes that it took. Counted nodes that were looked
// at before may be changed or freed then. Fails in a callback.
tn_status counted_wait(tn_runtime *runtime);

// Nodes without references are collected, and freed at the end. The caller sets `runtime`.
struct settling {
    tn_runtime *runtime;
    struct counted *list; // nodes that may be dead, or data by now
    struct counted *dead;
    struct value **values;
    uint32_t num_values, max_values;
};

// `amount`: 1, or OWN_REFERENCE for the application's.
void settling_drop(struct settling *s, tn_array *counted, uint64_t amount);
// As counted_publish().
void settling_fill(struct settling *s, tn_array *counted, struct value *value);
void settling_end(struct settling *s); // releases the lock

// --- in place of a scope's node (direct.c) ---------------------------------------------

// A counted node that node_create() makes in place of the scope's.
struct direct {
    struct counted *made; // NULL: none yet
};

// Gives `size` bytes, all 0, for the counted node with its parts. NULL: memory is short.
void *direct_begin(tn_scope *scope, size_t size);

// Gives the node references to its inputs, which are counted arrays or numbers of the
// scope. From then on the node is a counted one, with a reference to each output, also when
// an input was refused.
tn_status direct_inputs(tn_scope *scope, struct node *node, const tn_array *const *inputs);

// Whether direct_inputs() takes the array: NULL, counted, or a number of the scope.
static inline bool direct_takes(const tn_scope *scope, const tn_array *array)
{
    return !array || !array->scope ||
           (array->scope == scope && array->node->kind == NODE_NUMBER);
}

#endif // CORE_GRAPH_COUNTED_H
