// SPDX-License-Identifier: MIT
// Plans: what the scheduler makes of a graph, and the work on the way there.
//
// The stages, in the order in which plan_create calls them, one file each:
//   simplify  nodes that compute the same become one
//   place     nodes become operations: device, kernel, views resolved, numbers folded
//   fuse      chains of expressions become one program
//   order     operations become segments with transfers between
//   assign    values get slots and offsets; memory is reused, donated inputs taken over
//   compile   the backends make executables
// and, each time the plan is run: submit.
//
// Nothing here recurses over the graph's depth; only decompositions nest, at most
// MAX_DECOMPOSITION deep.
#ifndef CORE_SCHED_PLAN_H
#define CORE_SCHED_PLAN_H

#include <jansson.h>
#include "../graph/graph.h"
#include "device.h"

#define MAX_DECOMPOSITION 16
#define NONE UINT32_MAX

// --- the graph as it comes in ----------------------------------------------------------

// What is to be computed: ordered nodes, their leaves, the wanted arrays. Each array in it
// has an id: array->id, valid when array->mark is `epoch`.
struct task {
    tn_scope *scope;
    uint32_t epoch;
    struct node **nodes;
    tn_array **leaves; // in the order of their first use; numbers are not among them
    tn_array *const *outputs;
    uint64_t donate; // bit i: leaf i is given away (tn_function)
    uint32_t num_nodes, num_leaves, max_leaves, num_outputs;
    uint32_t num_ids;
    struct hash signature;
};

// Orders the graph, numbers its arrays and computes the signature. `inputs` are leaves
// whatever they are, and come first.
tn_status task_create(tn_scope *scope, tn_array *const *outputs, uint32_t num_outputs,
                      tn_array *const *inputs, uint32_t num_inputs, struct task *out);
void task_finish(struct task *task);

// --- the work --------------------------------------------------------------------------

// A value while planning. `layout.offset` counts from the start of its base's memory.
struct pvalue {
    tn_layout layout;
    uint64_t number;   // when is_number: the bits
    uint32_t base;     // whose memory it lies in: itself, unless it is a view
    uint32_t producer; // operation, or NONE for leaves and numbers
    uint32_t leaf;     // number of the leaf, or NONE
    uint32_t device;   // number
    uint8_t is_number, is_output, weak_kind, reserved;
    uint32_t first_use; // head of the list of uses; NONE: none
    // assign:
    uint32_t birth, death; // positions of steps
    uint32_t home;         // enum home
    uint32_t home_index;   // of the leaf, or of the plan's storage
    uint64_t home_offset;  // bytes
};

struct operand {
    uint32_t value;
    tn_layout layout; // as read: broadcast to the operation's extents
};

enum op_kind { OP_PROGRAM, OP_KERNEL, OP_REFERENCE, OP_TRANSFER };

struct pop {
    uint32_t kind;
    uint32_t device;
    const struct node *node; // where it comes from, for people; may be NULL
    const struct prim *prim; // may be NULL
    const void *attrs;
    const tn_kernel *kernel;
    const tn_expr_program *program;
    const uint64_t *params;
    struct operand *inputs;
    uint32_t *outputs; // values
    uint32_t num_inputs, num_outputs;
    uint32_t group; // fuse: NONE until grouped
    uint64_t scratch_size;
    uint64_t scratch_offset;
    const char *label;
    const char *text; // of the expressions, when the label leaves some out; or NULL
    bool named;       // the label is the id of a primitive
};

// A use of a value by an operation, in lists in growing order of operations.
struct puse {
    uint32_t op, next;
};

struct plan_work {
    tn_runtime *runtime;
    struct arena *arena; // of the plan: what is made here lives as long as it
    const struct task *task;
    struct device **devices;
    uint32_t num_devices;
    struct pvalue *values;
    uint32_t num_values, max_values;
    struct pop *ops;
    uint32_t num_ops, max_ops;
    uint32_t *value_of; // by id of an array
    uint32_t *same_as;  // simplify: by node, an earlier equal node or itself
    struct puse *uses;
    uint32_t num_uses, max_uses;
    uint32_t *last_use; // tails of the lists
    tn_scope **scratch; // scopes of decompositions, closed with the work
    uint32_t num_scratch, max_scratch;
    uint32_t depth;            // of decomposition
    const struct prim *within; // the primitive that is decomposed; NULL at depth 0
    bool warned;               // of a fallback
    struct expr_set *exprs;    // of fused programs; held
    struct map moved;          // transfers: value and device -> value there + 1
    json_t *explain;           // object that tells how, when somebody asks; else NULL
    json_t *rejected;          // of the node at hand
};

tn_status work_add_value(struct plan_work *work, const tn_layout *layout, uint32_t device,
                         uint32_t *out_value);
tn_status work_add_op(struct plan_work *work, const struct pop *op, uint32_t *out_op);
// Lists, for each value that owns memory, the operations that read it.
tn_status work_list_uses(struct plan_work *work);
void work_finish(struct plan_work *work);
tn_type layout_type(const tn_layout *layout);

// --- labels (label.c) ------------------------------------------------------------------

// Operations and nodes have short names, for people: at most this many bytes with the
// terminator; what does not fit is an ellipsis.
#define LABEL_SIZE 64

// The beginning of any text.
void label_set(char label[LABEL_SIZE], const char *text);
// Adds one more operation of a group: "exp" and "multiply" give both with a dot between.
// False when there is no room for it, nor for those after it.
bool label_add(char label[LABEL_SIZE], const struct pop *op);
// All that the label of a group leaves out, for explanations: what its operations, a list
// by `next`, are called, expressions by their text. NULL when out of memory.
const char *label_text(const struct plan_work *work, const uint32_t *next, uint32_t first);
// The id of the node's primitive, or that of the primitive that is decomposed, or the
// beginning of the expression, for which there is room in `label`.
const char *node_label(const struct plan_work *work, const struct node *node,
                       char label[LABEL_SIZE]);

// --- the plan --------------------------------------------------------------------------

enum home {
    HOME_NONE,
    HOME_LEAF,    // a leaf's memory
    HOME_ARENA,   // the plan's own memory on its device
    HOME_STORAGE, // memory made for each run: outputs
};

struct plan_slot {
    uint32_t home, index;
};

struct plan_segment {
    uint32_t device;
    uint32_t first_step, num_steps;
    tn_segment segment;
    struct plan_slot *slots;
    tn_executable *executable;
    uint64_t last_point; // of its last submission
    struct fate *fate;   // of its submission in this run; NULL: none is needed
    bool is_submitted;   // in this run
    uint32_t first_transfer, num_transfers; // done before it
};

struct plan_transfer {
    uint32_t from_device, to_device;
    struct plan_slot from, to;
    uint64_t from_offset, to_offset, size; // bytes; contiguous on both sides
    uint64_t number; // `from` nowhere: bits of what the host fills `to` with
    tn_dtype dtype;  // of its elements
};

struct plan_storage {
    uint32_t device;
    uint32_t donated_leaf; // NONE, or the leaf whose memory it takes over
    uint64_t size;
};

struct plan_output {
    struct plan_slot slot;
    uint64_t offset;  // bytes
    tn_layout layout; // offset 0
    bool is_number;
};

struct plan {
    atomic_uint refs;
    struct hash signature;
    tn_runtime *runtime;
    struct arena arena;
    struct device **devices; // borrowed from the device set
    uint32_t num_devices;
    pthread_mutex_t lock; // one run at a time
    struct plan_segment *segments;
    struct plan_transfer *transfers;
    struct plan_storage *storages;
    struct plan_output *outputs;
    tn_step *steps;
    uint32_t num_segments, num_transfers, num_storages, num_outputs, num_steps, num_leaves;
    uint64_t *arena_size;              // by device, bytes
    struct storage **arenas;           // by device; NULL until first needed
    struct storage **scratch_storages; // num_storages: of the run at hand
    tn_binding *bindings;              // room for the largest segment
    struct plan *newer, *older;        // in the cache, by use
};

// Makes a plan. With `explain`, an empty object, also says how: see tn_explain. What is
// known of a graph that cannot be planned is there after a failure.
tn_status plan_create(tn_runtime *runtime, const struct task *task, json_t *explain,
                      struct plan **out_plan);
// Adds the plan to work->explain: leaves, segments, outputs. (explain.c)
void explain_plan(const struct plan_work *work, const struct plan *plan);
void plan_retain(struct plan *plan);
void plan_release(struct plan *plan);

// When a run comes back.
enum run_mode {
    RUN_WAIT,  // when the work is done
    RUN_START, // when the work is queued, or done here and now where that costs less
    RUN_ASYNC, // when the work is queued
};

// Runs it: leaves[i] is leaf i's value (borrowed, donated ones included); gives outputs.
tn_status plan_run(struct plan *plan, struct value *const *leaves, struct value **outputs,
                   enum run_mode mode);

// The stages.
tn_status plan_simplify(struct plan_work *work);
tn_status plan_place(struct plan_work *work);
tn_status plan_fuse(struct plan_work *work);
tn_status plan_order(struct plan_work *work, struct plan *plan);
tn_status plan_assign(struct plan_work *work, struct plan *plan);
tn_status plan_compile(struct plan_work *work, struct plan *plan);

// place/choose.c: the implementation of a node on one device.
struct choice {
    uint32_t kind; // OP_PROGRAM, OP_KERNEL, OP_REFERENCE, or CHOICE_DECOMPOSE, CHOICE_NONE
    const tn_kernel *kernel;
};
enum { CHOICE_DECOMPOSE = 100, CHOICE_NONE = 101 };
tn_status choose(struct plan_work *work, struct device *device, const struct node *node,
                 const tn_layout *inputs, const tn_layout *outputs, struct choice *out);

// Whether a value of this layout on this device can be made contiguous, there or on another
// device of the list. (copy.c)
bool copy_is_possible(struct plan_work *work, uint32_t device, const tn_layout *layout);

// Adds "candidate, reason" to the node at hand, when somebody asks.
void explain_reject(struct plan_work *work, const struct device *device,
                    const char *candidate, const char *format, ...) PRINTF_LIKE(4, 5);

// --- the cache -------------------------------------------------------------------------

// A plan of this signature with a reference, or NULL.
struct plan *plan_cache_get(tn_runtime *runtime, struct hash signature);
void plan_cache_put(tn_runtime *runtime, struct plan *plan);

// --- the trace -------------------------------------------------------------------------

struct tn_host_trace;
const struct tn_host_trace *trace_service(tn_runtime *runtime);

#endif // CORE_SCHED_PLAN_H
