// SPDX-License-Identifier: MIT
// The lazy graph: nodes and the arrays that are their outputs.
//
// Nothing here recurses over the graph's depth: a chain of a million nodes builds, is
// walked and freed. A node belongs to its scope's arena and dies with the scope; data that
// outlives it (kept arrays) is counted.
#ifndef CORE_GRAPH_GRAPH_H
#define CORE_GRAPH_GRAPH_H

#include <stdatomic.h>
#include <tenon/tenon.h>
#include "../base/hash.h"
#include "../base/memory.h"
#include "../expr/expr.h"
#include "../primitive/prim_set.h"
#include "../runtime.h"

// How many attributes an expression without a primitive may have.
#define MAX_EXPR_ATTRS 32

enum node_kind {
    NODE_DATA,   // a leaf: its array has data
    NODE_NUMBER, // a scalar known when the graph was built: value in `number`
    NODE_PRIM,   // a primitive
    NODE_EXPR,   // an expression without a primitive
    NODE_INPUT,  // an argument of a function that is being traced
};

// Elements in a device's memory (sched/device.h). Counted, shared by arrays.
struct value;

struct node {
    uint32_t kind;
    uint32_t num_inputs, num_outputs;
    uint32_t serial;         // grows within a scope: inputs have smaller ones
    struct hash hash;        // structure: operations, attributes, types, leaves by identity
    const struct prim *prim; // NODE_PRIM
    const struct expr *expr; // NODE_EXPR, and NODE_PRIM when it has one
    const tn_attr_table *table; // of attrs; NULL without
    void *attrs;                // NODE_PRIM, NODE_EXPR; NULL without
    tn_array **inputs;          // NULL entries: optional ones not given
    tn_array *outputs;          // num_outputs arrays, in place
    uint64_t number;            // NODE_NUMBER: bits of a double or an int64_t
    uint32_t mark, position; // scratch of one walk at a time: valid when mark is its epoch
};

struct tn_array {
    struct node *node;
    tn_scope *scope;   // NULL once kept
    uint32_t output;   // of the node
    uint8_t weak_kind; // 0, KIND_SIGNED or KIND_FLOAT: a number without dtype
    uint8_t donated;   // given away: reading it is an error
    uint16_t reserved;
    tn_type type;
    struct value *value; // NULL until evaluated
    const char *name;    // that the application gave it; or NULL
    atomic_uint refs;    // kept arrays only
    uint32_t mark, id;   // scratch of one evaluation: valid when mark is its epoch
};

struct tn_scope {
    tn_runtime *runtime;
    struct arena arena;
    tn_status status; // the first failure
    char *error;
    struct map imports;   // kept array -> its stand-in in this scope
    tn_array **evaluated; // arrays whose values the scope releases
    uint32_t num_evaluated, max_evaluated;
    struct expr_set **exprs; // that its nodes refer to; held
    uint32_t num_exprs, max_exprs;
    uint32_t serial, epoch;
    bool tracing; // belongs to a function: evaluation is an error
};

// A list that a public function is given: of `count` pointers, NULL only when there are
// none.
struct given {
    const char *name; // of the argument
    const void *list;
    uint64_t count;
};

// At the begin of a public function: the scope's failure, or that of a scope or a list that
// is NULL, or of more than MAX_GIVEN entries. `given` ends with a name that is NULL.
#define MAX_GIVEN (UINT32_MAX / 16)
tn_status scope_begin(tn_scope *scope, const char *function, const struct given *given);
#define GIVEN(...)                                                                         \
    (const struct given[])                                                                 \
    {                                                                                      \
        __VA_ARGS__,                                                                       \
        {                                                                                  \
            0                                                                              \
        }                                                                                  \
    }
#define NO_LISTS ((const struct given[]){{0}})

// The arrays as this scope knows them, in a new list (mem_free). NULL with the scope's
// failure set when one is NULL or belongs elsewhere.
tn_array **scope_locals(tn_scope *scope, const char *function, tn_array *const *arrays,
                        uint64_t count);

// The array as this scope knows it: itself, or the stand-in of a kept one. NULL with the
// scope's failure set when it belongs to another scope or was donated.
tn_array *scope_local(tn_scope *scope, const tn_array *array);

// The set of expressions that this scope's texts go to. NULL with the scope's failure set.
struct expr_set *scope_exprs(tn_scope *scope);

// Gives the array a value (takes the reference): it is data from now on.
tn_status scope_set_value(tn_scope *scope, tn_array *array, struct value *value);

// A leaf of this type without value: data to be, or an argument (NODE_DATA, NODE_INPUT).
tn_array *leaf_create(tn_scope *scope, uint32_t kind, const tn_type *type);

// A new node with its arrays (types not yet set), or NULL with the scope's failure set.
// `table`/`attrs` are copied.
struct node *node_create(tn_scope *scope, uint32_t kind, const tn_array *const *inputs,
                         uint32_t num_inputs, uint32_t num_outputs,
                         const tn_attr_table *table, const void *attrs);

// Applies a primitive whose attributes are filled in already. Gives outputs[num_outputs].
tn_status graph_apply(tn_scope *scope, const struct prim *prim,
                      const tn_array *const *inputs, uint32_t num_inputs, const void *attrs,
                      tn_array **outputs);

// Applies an expression; inputs broadcast; attrs by the given table. The outputs' dtypes as
// inferred, or `dtypes` when not NULL.
tn_status graph_apply_expr(tn_scope *scope, const struct expr *expr,
                           const tn_array *const *inputs, uint32_t num_inputs,
                           const tn_attr_table *table, const void *attrs,
                           const tn_dtype *dtypes, tn_array **outputs);

// The table of building slots for rules, over `scope`.
tn_build graph_build(tn_scope *scope, const tn_host *host);

// Nodes that `arrays` depend on, inputs before users, into a new array (mem_free). Stops at
// arrays that have data unless `through_data`.
tn_status graph_order(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                      bool through_data, struct node ***out_nodes, uint32_t *out_count);

// Turns the thread's failure into the scope's (the first one stays). Returns its status.
tn_status scope_take_failure(tn_scope *scope, tn_status status);

#endif // CORE_GRAPH_GRAPH_H
