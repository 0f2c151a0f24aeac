// SPDX-License-Identifier: MIT
// The lazy graph: nodes, and arrays, which are the outputs of nodes.
//
// No function recurses over the graph's depth, so a chain of a million nodes can be built,
// walked and freed. A node lives in its scope's arena and dies with the scope. Counted
// arrays, which outlive their scope, are outputs of counted nodes (counted.c).
#ifndef CORE_GRAPH_GRAPH_H
#define CORE_GRAPH_GRAPH_H

#include <stdatomic.h>
#include <tenon/control.h>
#include <tenon/tenon.h>
#include "../attr/attrs.h"
#include "../base/fail.h"
#include "../base/hash.h"
#include "../base/memory.h"
#include "../expr/expr.h"
#include "../primitive/prim_set.h"
#include "../base/runtime.h"

// The most attributes of an expression without a primitive.
#define MAX_EXPR_ATTRS 32

enum node_kind {
    NODE_DATA,   // a leaf whose array has a value
    NODE_NUMBER, // a scalar known when the graph is built: bits in `number`
    NODE_PRIM,   // applies a primitive
    NODE_EXPR,   // applies an expression without a primitive
    NODE_INPUT,  // a placeholder: an argument of a traced function or a decomposition
};

// The evaluated elements of an array, on a device (device/device.h).
struct value;

// A node that lives as long as its outputs are referred to, and one that is being made.
struct counted;
struct direct;

// One operation or leaf. Constant once built, but for `mark`, `position` and a lazy node.
struct node {
    uint32_t kind;
    uint32_t num_inputs, num_outputs;
    uint32_t serial;         // number in the scope, above its inputs'; 0 for `counted`
    struct hash hash;        // of this node alone: kind, operation, attributes; not inputs
    const struct prim *prim; // NODE_PRIM
    const struct expr *expr; // NODE_EXPR, and NODE_PRIM when it has one
    const tn_attr_table *table; // describes `attrs`; NULL: no attributes
    void *attrs;                // NODE_PRIM, NODE_EXPR; NULL: no attributes
    tn_array **inputs;          // NULL entries: optional inputs not given
    tn_array *outputs;          // num_outputs arrays, in the node's allocation
    // NODE_NUMBER: bits of a double or an int64_t. NODE_PRIM: 1 + serial number of this
    // effect in the runtime; 0: no effect.
    uint64_t number;
    struct counted *counted; // the counted node that this one stands for; NULL: none
    // 1 + number of the device that the application named, of a NODE_INPUT that of its
    // argument; 0: none was named, so the first device.
    uint32_t device;
    uint32_t is_lazy; // 1: without inputs until node_expand() takes those of `counted`
    uint32_t typed;   // NODE_EXPR: 1 when the outputs' dtypes were given, not inferred
    // Scratch of a graph walk: valid when mark is the walk's epoch. Of a counted node under
    // counted_lock, and mark is 0 when that is released.
    uint32_t mark, position;
};

// One output of a node. A counted array belongs to no scope.
struct tn_array {
    struct node *node;
    tn_scope *scope;   // NULL for a counted array
    uint32_t output;   // index among the node's outputs
    uint8_t weak_kind; // KIND_... of a weak number, which has no dtype of its own; else 0
    uint8_t donated;   // its memory was donated to a function: using the array is an error
    uint16_t reserved;
    tn_type type;
    struct value *value;   // NULL until evaluated; owns a reference. See array_value()
    const char *name;      // given by the application; NULL: none. Borrowed
    _Atomic uint64_t refs; // counted arrays only (counted.h)
    uint32_t mark, id;     // scratch of an evaluation, as the node's
};

struct tn_scope {
    tn_runtime *runtime;
    struct arena arena;
    struct arena scratch; // stack for temporary data of the current public function
    tn_status status;     // the first failure
    char *error;          // message of `status`; NULL with a failure: out of memory
    bool is_about_dtype;  // `error` is about the dtype of an operand
    struct map imports;   // counted array -> the array of this scope that stands for it
    tn_array **evaluated; // arrays whose values the scope releases
    uint32_t num_evaluated, max_evaluated;
    struct intern_refs interned; // texts and lists in the attributes of the nodes
    struct expr_set **exprs;     // sets that hold the nodes' expressions; owns references
    uint32_t num_exprs, max_exprs;
    uint32_t serial, epoch; // of the next node; of the latest walk
    uint32_t device;        // of the next node, as node.device
    bool has_effects;       // a node has effects of a domain, so their order counts
    uint32_t num_flows;     // transforms of this scope that are running
    bool tracing; // of a traced function or a decomposition: evaluation is an error
    bool frozen;  // holds the nodes of a graph: not counted as in use
    struct direct *direct; // the next node becomes a counted one; NULL: one of the scope
    // Scope around a graph that is being traced. The body may use its arrays.
    tn_scope *outer;
    const struct held_graph
        *taking;             // the graph that is computed by this scope's plan (held.h)
    struct capture *capture; // arrays of `outer` that the body used; NULL without `outer`
    const struct running_body *bodies; // functions whose bodies build in this scope
};

// A function whose body is running, and those around it.
struct running_body {
    const void *function;
    const struct running_body *outer;
};

// A list argument of a public function: `count` pointers, which may be NULL only when
// `count` is 0.
struct given {
    const char *name; // of the argument
    const void *list;
    uint64_t count;
};

// The first call in a public function. Returns the scope's first failure; or fails when the
// scope or a list is NULL, or when a list has more than MAX_GIVEN entries. `given` ends
// with a NULL name.
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

// Gives scope_local() of each array, in a new list (mem_free). NULL with the scope's
// failure set when an array is NULL or cannot be used in this scope.
tn_array **scope_locals(tn_scope *scope, const char *function, tn_array *const *arrays,
                        uint64_t count);

// The array itself, or for a counted array the one of this scope that stands for it. NULL
// with the scope's failure set when the array belongs to another scope or was donated.
tn_array *scope_local(tn_scope *scope, const tn_array *array);

// As tn_array_type(), but NULL for NULL, as rules of plugins expect.
const tn_type *array_type_or_null(const tn_array *array);

void scope_refuse_donated(tn_scope *scope); // an array that is empty

// The number of the device to which data of this scope goes.
static inline uint32_t scope_data_device(const tn_scope *scope)
{
    return scope->device ? scope->device - 1 : 0;
}

// The expression set to which texts of this scope are parsed. NULL with the scope's failure
// set.
struct expr_set *scope_exprs(tn_scope *scope);

// Sets the array's value, which makes the array data. Takes the reference, on failure too.
tn_status scope_set_value(tn_scope *scope, tn_array *array, struct value *value);

// --- counted arrays (counted.c) ---------------------------------------------------------

// A counted array that shares the value of `array`, which is evaluated, and is data. NULL
// with the scope's failure set.
tn_array *kept_create(tn_scope *scope, const tn_array *array);

// The array of this scope that stands for a counted one, made once. NULL with the scope's
// failure set.
tn_array *scope_import(tn_scope *scope, tn_array *counted);

// Sets the value of a counted array that is pending. Takes a reference of its own to it.
void counted_publish(tn_array *counted, struct value *value);

// Empties a counted array that is donated to a function, and gives the value.
struct value *counted_empty(tn_array *counted);

// Gives the array that follows a counted array whose data was donated: the same array,
// still empty, where nothing else refers to it, else a new kept array of `value`. NULL: out
// of memory.
tn_array *counted_follow(tn_scope *scope, tn_array *counted, const tn_type *type,
                         struct value *value);

// Puts data into a counted array that is empty and follows itself. Takes `value`.
void counted_fill(tn_array *counted, const tn_type *type, struct value *value);

// Drops a reference. [any-thread]
void counted_release(tn_array *counted);

// Gives a lazy node its inputs, or, when it is evaluated by now, its values.
tn_status counted_expand(tn_scope *scope, struct node *node);
static inline tn_status node_expand(tn_scope *scope, struct node *node)
{
    return node->is_lazy ? counted_expand(scope, node) : TN_OK;
}

// The value of an array that may be a counted one, to which another thread can give a value
// at any time; NULL until evaluated.
static inline struct value *array_value(const tn_array *array)
{
    return __atomic_load_n(&array->value, __ATOMIC_ACQUIRE);
}

// --- making nodes ----------------------------------------------------------------------

// A leaf of this type: NODE_DATA, whose value the caller sets, NODE_NUMBER or NODE_INPUT.
// NULL with the scope's failure set.
tn_array *leaf_create(tn_scope *scope, uint32_t kind, const tn_type *type);

// A number of this dtype, which takes the other operand's in an operation when `weak_kind`
// is not 0. In a trace it is a constant of the plan; else it is data, so that plans do not
// depend on it. `bits`: of a double for floats, else of an int64_t. NULL with the scope's
// failure set.
tn_array *runtime_number(tn_scope *scope, tn_dtype dtype, uint64_t bits, uint8_t weak_kind);

// A new node with its arrays, whose types the caller sets; NULL with the scope's failure
// set. Copies `attrs`, and keeps `table`, which describes them.
struct node *node_create(tn_scope *scope, uint32_t kind, const tn_array *const *inputs,
                         uint32_t num_inputs, uint32_t num_outputs,
                         const tn_attr_table *table, const void *attrs);

// Gives the dtypes of the node's inputs and outputs, to compile its expression.
void node_types(const struct node *node, struct expr_types *out);
// How an array takes part in promotion.
struct expr_input array_promoted(const tn_array *array);

// The axis, from the front, along which the node's expression reduces; -1: it does not, or
// the attribute is out of range.
int32_t node_axis(const struct node *node);

// Gives the node's expression as a program runs it: of one that reduces, for operands with
// the row's axis last.
tn_status node_program_expr(const struct node *node, const struct expr **out_expr);

// Numbers a node whose primitive has effects.
void node_order_effects(tn_scope *scope, struct node *node);

// A scalar constant with these bits. NULL with the scope's failure set.
tn_array *number_create(tn_scope *scope, tn_dtype dtype, uint64_t bits, int weak_kind);

// Applies a primitive; `attrs` is its filled attribute struct. The inputs are a node's: the
// scalars of runtime attributes are the last. Gives outputs[num_outputs], as many as the
// application has.
tn_status graph_apply(tn_scope *scope, const struct prim *prim,
                      const tn_array *const *inputs, uint32_t num_inputs, const void *attrs,
                      tn_array **outputs, uint64_t num_outputs);

// Applies an expression to inputs that broadcast; `table` describes `attrs`. `dtypes` of
// the outputs may be NULL: they are inferred.
tn_status graph_apply_expr(tn_scope *scope, const struct expr *expr,
                           const tn_array *const *inputs, uint32_t num_inputs,
                           const tn_attr_table *table, const void *attrs,
                           const tn_dtype *dtypes, tn_array **outputs);

// Calls the body of a tn_function, of a graph or of tn_vmap_call. An output left NULL is a
// failure. Gives outputs that belong to `scope`. Every failure becomes the scope's.
tn_status body_call(tn_function_body body, void *user, tn_scope *scope,
                    tn_array *const *inputs, uint64_t num_inputs, tn_array **outputs,
                    uint64_t num_outputs);

// An expression that was given as text, and its attributes.
struct text_expr {
    const struct expr *expr;
    tn_attr_table *table; // of the scope; NULL: no attributes
    uint64_t *values;
};

// Parses a text with an arrow, and takes the attributes that it names. Failures have the
// text.
tn_status text_expr_init(struct text_expr *out, tn_scope *scope, const char *text,
                         tn_attr_list attrs, uint64_t num_outputs);

// --- graphs as values (traced.c) -------------------------------------------------------

// A value of the application that is released with a graph; `release` NULL: none.
struct graph_owned {
    void (*release)(void *user);
    void *user;
    const void *key; // graphs with different ones are different graphs
};

// `head` comes first: attributes point to its tn_graph. In a graph, tn_array.id numbers the
// arrays: inputs first, then, in topological order, constants at their first use and
// outputs of nodes.
struct graph {
    struct interned_graph head;
    struct graph_owned owned;
    tn_runtime *runtime;
    tn_scope *scope;     // owns the nodes
    struct node **nodes; // in topological order
    tn_array **inputs, **outputs;
    uint32_t num_ids;
};

static inline const struct graph *graph_of(const tn_graph *graph)
{
    return (const struct graph *)graph; // it is the first member of the first member
}

// Request to trace a body.
struct trace_request {
    tn_function_body body;
    void *user;
    const tn_type *inputs;
    uint64_t num_inputs, num_outputs;
    tn_captures *captures;    // NULL: using an array of the scope around it is an error
    struct graph_owned owned; // the graph's; released where there is none
};

// Gives the graph of a body, held by the scope. Every failure becomes the scope's.
tn_status graph_trace(tn_scope *scope, const struct trace_request *request,
                      const tn_graph **out_graph);

// Puts the graph's nodes in the scope, which then holds the graph. Failures are the
// scope's.
tn_status graph_inline(tn_scope *scope, const tn_graph *graph, tn_array *const *inputs,
                       uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs);

// The input of the graph being traced in `scope` that stands for an array of the scope
// around it. NULL with the scope's failure set.
tn_array *graph_capture(tn_scope *scope, const tn_array *array);

// The key of the graph among all values of attributes.
struct hash graph_key(const tn_graph *graph);

// Gives the operations that `arrays` depend on, in topological order, in a new list
// (mem_free), and sets each node's `position` to its index there.
enum graph_part {
    TO_DATA,    // stops at arrays that have a value
    TO_COUNTED, // stops at nodes that stand for counted ones or whose outputs have values
};
tn_status graph_order(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                      enum graph_part part, struct node ***out_nodes, uint32_t *out_count);

// Whether each output of the node has a value.
bool node_is_data(const struct node *node);

// A new leaf with this value, whose reference it takes, on failure too. NULL with the
// scope's failure set.
tn_array *leaf_from_value(tn_scope *scope, const tn_type *type, struct value *value);

// The type of a dtype and a shape, checked. NULL shape: TN_ERR_ARGUMENT.
tn_status type_from_shape(tn_dtype dtype, const tn_shape *shape, tn_type *out);

// Makes the thread's failure the scope's, unless the scope has one already. Returns the
// scope's status.
FAIL_COLD tn_status scope_take_failure(tn_scope *scope, tn_status status);

#endif // CORE_GRAPH_GRAPH_H
