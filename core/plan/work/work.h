// SPDX-License-Identifier: MIT
// The graph to be planned, and the state of the scheduler while it makes a plan: values,
// operations, who reads what, labels. The stages (plan.h) read and write it.
#ifndef CORE_PLAN_WORK_WORK_H
#define CORE_PLAN_WORK_WORK_H

#include "../../device/device.h"
#include "../../graph/graph.h"

#define MAX_DECOMPOSITION 16
#define NONE UINT32_MAX // no index

// --- the graph to be planned -----------------------------------------------------------

// A graph to be computed. Each of its arrays has an id: array->id, valid when array->mark
// is `epoch`.
struct task {
    tn_scope *scope;
    uint32_t epoch;
    struct node **nodes;      // in topological order
    tn_array **leaves;        // in the order of their first use; without NODE_NUMBER
    tn_array *const *outputs; // borrowed
    // donated[i] is 1 when leaf i is donated and nothing outside of the run can read it: an
    // input of a tn_function, or what tn_eval_held_n takes; num_donated entries. Borrowed.
    const uint8_t *donated;
    uint32_t num_donated;
    bool plain_outputs; // they are to be contiguous, from the first byte of their memory on
    uint32_t num_nodes, num_leaves, max_leaves, num_outputs;
    // tn_function: leaves from this one on are data that the body captured, the same in
    // each run. NONE: leaves of later runs may have other data.
    uint32_t first_captured;
    uint32_t num_ids;      // ids are 0 .. num_ids - 1
    struct hash signature; // key of the plan cache
};

// Orders the graph, numbers its arrays and computes the signature. The first leaves are
// `inputs`, used or not.
tn_status task_create(tn_scope *scope, tn_array *const *outputs, uint32_t num_outputs,
                      tn_array *const *inputs, uint32_t num_inputs, struct task *out);
// The two parts of it: between them outputs may be added, which are arrays of the graph.
// `has_effects`: whether a node has some, known when the walk is done.
tn_status task_order(tn_scope *scope, tn_array *const *outputs, uint32_t num_outputs,
                     const bool *has_effects, struct task *out);
tn_status task_number(struct task *task, tn_array *const *inputs, uint32_t num_inputs);
// Donates leaves, which becomes part of the signature.
void task_donate(struct task *task, const uint8_t *donated);
void task_finish(struct task *task);
// Adds captured data that the graph does not name: a copy on another device.
tn_status task_add_captured(struct task *task, tn_array *leaf);

static inline bool task_donates(const struct task *task, uint32_t leaf)
{
    return leaf < task->num_donated && task->donated[leaf];
}

// --- the state of planning -------------------------------------------------------------

// An array's elements on one device, or a number: a scalar constant that is known now.
// Views share the memory of their base. Written by place but for the fields that name
// another stage.
struct plan_value {
    tn_layout layout;  // the offset counts from the start of the base's memory
    uint64_t number;   // when is_number or is_constant: the bits for dtype_store_bits
    uint32_t base;     // the value that owns the memory: this one, unless it is a view
    uint32_t producer; // operation, kept up by fuse, order; NONE: leaf, number
    uint32_t leaf;     // index in task.leaves; NONE: computed here
    uint32_t device;   // index in plan_work.devices
    uint8_t is_number, is_output, weak_kind;
    uint8_t is_constant; // memory that a number is written to
    uint8_t is_kept;     // assign, of the first value in its memory: an output is the last
    uint32_t first_use;  // fuse: first reader, in plan_work.uses; NONE: no reader
    // assign:
    uint32_t death;  // position of the last operation that uses it; NONE: then taken over
    uint32_t takes;  // the value whose memory it takes over, or NONE
    uint32_t memory; // the first value in its memory: itself, unless it takes over
    uint32_t home;   // enum home
    uint32_t home_index;  // as plan_slot.index
    uint64_t home_offset; // bytes
    uint32_t last_use;    // as `death`, but for values whose memory another one takes over
    uint32_t range;       // of its chain, in the arena of its device
};

struct operand {
    uint32_t value;   // NONE: an optional input that was not given
    tn_layout layout; // as read: for a program broadcast to its extents
};

// OP_HOST: a primitive's `run`, called while the plan runs; its operands lie on `device`.
enum op_kind { OP_PROGRAM, OP_KERNEL, OP_REFERENCE, OP_TRANSFER, OP_HOST };

// A program between an operation's kernel and one of its operands (stage epilogues).
struct plan_fused {
    uint32_t operand; // as tn_fused.operand
    const tn_expr_program *program;
    const uint64_t *params;
    struct operand *inputs; // value NONE: the operand
    uint32_t *outputs;      // values; NONE: the operand
    uint32_t num_inputs, num_outputs;
    tn_layout layout;  // of the operand as the kernel sees it
    tn_layout through; // of the operand over the program's extents
};

// One kernel launch or transfer. Written by place but for the fields that name another
// stage; fuse rewrites the last operation of a group, epilogues a kernel with programs.
//
// With `fused`, `inputs` are the kernel's, num_kernel_inputs of them, and behind these the
// programs' own; one that is fused has value NONE and a dtype. `outputs` are those of the
// epilogue, if there is one.
struct plan_op {
    uint32_t kind;
    uint32_t device;                // it runs there; of a transfer: the destination
    const struct prim *prim;        // NULL: an expression, a fused program or a transfer
    const void *attrs;              // of `prim`; NULL for a program
    const tn_kernel *kernel;        // OP_KERNEL
    const tn_expr_program *program; // OP_PROGRAM
    const uint64_t *params;         // of the program
    int32_t row_axis; // of a row program: the axis of its rows, from the front; below 0:
                      // the last axes are the row, and with these as one the rank is
                      // -row_axis
    struct operand *inputs;
    uint32_t *outputs; // values
    uint32_t num_inputs, num_outputs;
    struct plan_fused *fused; // epilogues
    uint32_t num_fused, num_kernel_inputs;
    uint32_t group;          // fuse: index of its group; NONE: none yet
    bool reduction_refused;  // fuse: step_check refused to fuse this reduction
    bool siblings_refused;   // fuse: step_check refused siblings in its group
    uint32_t scratch_range;  // assign: in the arena of its device
    uint64_t scratch_size;   // assign: bytes
    uint64_t scratch_offset; // assign: bytes
    const char *label;
    const char *text; // for watchers: uncut text of its expressions, or NULL
    bool named;       // the label is the id of a primitive
};

// The operands of the operation's own kernel, without those of fused programs.
static inline uint32_t op_num_inputs(const struct plan_op *op)
{
    return op->num_fused ? op->num_kernel_inputs : op->num_inputs;
}

// The program that the output passes through, or NULL. Then the kernel has no other output.
static inline const struct plan_fused *op_epilogue(const struct plan_op *op)
{
    const struct plan_fused *last = op->num_fused ? &op->fused[op->num_fused - 1] : NULL;
    return last && last->operand == op->num_kernel_inputs ? last : NULL;
}

// An operation that reads a value's memory. Lists ascend by operation.
struct plan_use {
    uint32_t op, next;
};

struct plan_watcher;

// State of the stages, which run on one thread. Fields are grouped by the stage that writes
// them. The stages that read a field later follow "read by".
struct plan_work {
    // Set before the first stage; any stage reads them.
    tn_runtime *runtime;
    struct task *task;            // only task_add_captured() changes it
    struct intern_refs *interned; // the plan's
    struct arena *arena; // the plan's: what a stage allocates there the plan may keep
    struct plan_watcher *watcher; // NULL: nobody observes; place unsets it for a trial

    // prepare, which also allocates same_as and value_of:
    struct device **devices; // borrowed; read by place, fuse, assign, compile, watchers
    uint32_t num_devices;    // read by place, order, assign
    struct expr_set *exprs;  // for fused programs, with a reference; read by fuse

    // simplify:
    uint32_t *same_as; // by node: the first equal node, or itself; read by place

    // place:
    uint32_t *value_of; // by tn_array.id, NONE: no value; read by assign, watchers
    // Read by all later stages and watchers. Also written: producer by fuse and order,
    // first_use by fuse, the live range and the home by assign.
    struct plan_value *values;
    uint32_t num_values, max_values;
    // Read by all later stages and watchers. Also written: fuse joins operations, order
    // drops and sorts them, assign adds scratch memory.
    struct plan_op *ops;
    uint32_t num_ops, max_ops;
    struct map transferred; // (value, device) -> the transferred value + 1
    tn_scope **scopes;      // of decompositions; open until work_finish
    uint32_t num_scopes, max_scopes;
    uint32_t depth;                 // of nested decompositions; read by watchers
    const struct prim *decomposing; // primitive that is being decomposed; NULL at depth 0
    bool warned;                    // a fallback was logged, which is done once a plan
    // Kernels that were loaded lately: most graphs apply few primitives often.
    struct {
        const struct prim *prim;
        const char *family;
    } recent[16];

    // fuse (work_list_uses), which alone reads them:
    struct plan_use *uses; // a list for each base, from plan_value.first_use on
    uint32_t num_uses, max_uses;
    uint32_t *last_use; // by base: the end of its list

    // place and assign: temporary memory of one function, which rewinds it.
    struct arena stack;
};

tn_status work_add_value(struct plan_work *work, const tn_layout *layout, uint32_t device,
                         uint32_t *out_value);
tn_status work_add_op(struct plan_work *work, const struct plan_op *op, uint32_t *out_op);
// Lists, for each value that owns memory, the operations that read it.
tn_status work_list_uses(struct plan_work *work);
// Removes the operations that are marked, by their numbers; producers are kept up.
void work_remove_ops(struct plan_work *work, const bool *gone);
void work_finish(struct plan_work *work);
tn_type layout_type(const tn_layout *layout);

// --- labels (label.c) ------------------------------------------------------------------

// Labels are short names of operations and nodes for traces and explanations: at most this
// many bytes with the terminator. An ellipsis ends a label that was cut short.
#define LABEL_SIZE 64

// Sets the label to the beginning of a text.
void label_set(char label[LABEL_SIZE], const char *text);
// Appends the short name of another operation of a group, after a middle dot: "exp",
// "multiply". False when the label is full.
bool label_add(char label[LABEL_SIZE], const struct plan_op *op);
// The uncut names of a group's operations, expressions by their text, in the plan's arena.
// The operations are a list: `first`, then next[first] and so on. NULL when out of memory.
const char *label_text(const struct plan_work *work, const uint32_t *next, uint32_t first);
// The id of the node's primitive, or of the primitive that is being decomposed, or the
// beginning of the node's expression, written to `label`.
const char *node_label(const struct plan_work *work, const struct node *node,
                       char label[LABEL_SIZE]);

#endif // CORE_PLAN_WORK_WORK_H
