// SPDX-License-Identifier: MIT
// Interned values of attributes: texts, lists and graphs, each once in a runtime, so that
// equal values have equal pointers and structs of attributes are copied as bytes.
//
// A value lives as long as somebody refers to it: the scope in which it was given, or a
// plan of which a step reads it.
//
// Threads. A set: any. A list of references: one thread at a time.
#ifndef CORE_ATTR_INTERN_H
#define CORE_ATTR_INTERN_H

#include <tenon/attr.h>
#include "../base/hash.h"

struct intern_set;

tn_status intern_set_create(struct intern_set **out_set);
// Destroys a set once no value in it is referred to. NULL is fine.
void intern_set_destroy(struct intern_set *set);
// The number of values in the set, for tests.
uint32_t intern_set_count(struct intern_set *set);

// References to values of one set. Without values it needs no release.
struct intern_refs {
    struct intern_set *set;
    struct map held; // hash of the content -> the entry
};
void intern_refs_release(struct intern_refs *refs);

// Give the interned value, and hold a reference to it.
tn_status intern_text(struct intern_refs *refs, const char *text, size_t size,
                      const char **out);
tn_status intern_ints(struct intern_refs *refs, const int64_t *values, uint64_t count,
                      const tn_int_list **out);
// All NaNs become one.
tn_status intern_floats(struct intern_refs *refs, const double *values, uint64_t count,
                        const tn_float_list **out);

// The head of a graph as core/graph makes it.
struct interned_graph {
    tn_graph graph; // first: attributes point here
    struct intern_set *set;
    struct intern_entry *entry; // the set's
    void (*destroy)(struct interned_graph *graph);
};

// Gives the graph with this key, and holds a reference to it: `graph` itself, which the set
// destroys with its last reference, or an equal one, and then `graph` is destroyed at once,
// as after a failure.
tn_status intern_graph(struct intern_refs *refs, struct interned_graph *graph,
                       struct hash key, const tn_graph **out);
// Holds a reference to a graph of this set, which lives.
tn_status intern_hold_graph(struct intern_refs *refs, const tn_graph *graph);
// Adds and drops a reference without a list.
void intern_graph_retain(const tn_graph *graph);
void intern_graph_release(const tn_graph *graph);

// Holds references to the values in a struct of attributes that attrs_fill filled.
tn_status intern_attrs(struct intern_refs *refs, const tn_attr_table *table,
                       const void *attrs);

// The hash of the content of an interned value; `kind`: of its field.
struct hash interned_hash(uint32_t kind, const void *value);

// Whether a struct's member is a pointer to an interned value.
static inline bool attr_is_interned(uint32_t kind)
{
    return kind >= TN_ATTR_STRING && kind <= TN_ATTR_GRAPH;
}

#endif // CORE_ATTR_INTERN_H
