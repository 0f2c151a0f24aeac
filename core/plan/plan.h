// SPDX-License-Identifier: MIT
// Plans: graphs compiled for given devices, and the state of the scheduler while it makes a
// plan.
//
// The stages, in the order in which plan_create calls them, one file each:
//   prepare   devices are opened, plugins loaded (plan.c)
//   simplify  common subexpressions become one node
//   place     nodes become operations: device, kernel, views resolved, constants folded
//   fuse      chains of expressions become one program
//   attach    programs beside a kernel become part of its step
//   order     operations become segments with transfers between
//   assign    values get slots and offsets; memory is reused, donated inputs taken over
//   compile   the backends make executables
// and, each time the plan is run: submit (core/run).
//
// Nothing here recurses over the graph's depth; only decompositions nest, at most
// MAX_DECOMPOSITION deep.
#ifndef CORE_PLAN_PLAN_H
#define CORE_PLAN_PLAN_H

#include "../base/lru.h"
#include "../device/device.h"
#include "../graph/graph.h"

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
    // tn_function: donated[i] is 1 when leaf i, one of the inputs, is donated and nothing
    // outside of the run can read it; num_donated entries. Borrowed.
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
};

struct operand {
    uint32_t value;   // NONE: an optional input that was not given
    tn_layout layout; // as read: for a program broadcast to its extents
};

// OP_HOST: a primitive's `run`, called while the plan runs; its operands lie on `device`.
enum op_kind { OP_PROGRAM, OP_KERNEL, OP_REFERENCE, OP_TRANSFER, OP_HOST };

// A program between an operation's kernel and one of its operands (stage attach).
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
// stage; fuse rewrites the last operation of a group, attach a kernel with its neighbours.
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
                      // once the last axes are one, there are so many
    struct operand *inputs;
    uint32_t *outputs; // values
    uint32_t num_inputs, num_outputs;
    struct plan_fused *fused; // attach
    uint32_t num_fused, num_kernel_inputs;
    uint32_t group;          // fuse: index of its group; NONE: none yet
    bool apart;              // fuse: it reduces, and the device declined a group with it
    bool only_child;         // fuse: the device declined siblings of its group
    uint64_t scratch_size;   // assign: bytes
    uint64_t scratch_offset; // assign: bytes, in the arena of its device
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

// --- the plan --------------------------------------------------------------------------

// The memory that a value lies in.
enum home {
    HOME_NONE,
    HOME_LEAF,    // a leaf's memory
    HOME_ARENA,   // memory between the steps of a run, one arena a device
    HOME_STORAGE, // memory found for each run: outputs, and what lies there before them
    HOME_MADE,    // the memory of what a host operation gave in this run
};

// Memory that is found anew in each run. `index`: of the leaf, the device (arena), the
// storage or what a host operation makes.
struct plan_slot {
    uint32_t home, index;
};

// Transfers, then host operations, and then one submission to one device.
struct plan_segment {
    uint32_t device;
    uint32_t first_step, num_steps; // in plan.steps
    uint64_t bytes_written;         // as tn_stats.bytes_written
    uint64_t effects;               // domains of its steps' effects: bits of prim.domain
    tn_segment segment;
    struct plan_slot *slots;                // by slot of `segment`
    tn_executable *executable;              // NULL: no steps
    uint32_t first_transfer, num_transfers; // in plan.transfers
    uint32_t first_host, num_hosts;         // in plan.hosts
};

// A graph among the attributes of a host operation, with its plan: that for inputs of which
// none is given away.
struct host_graph {
    const tn_graph *graph;
    struct plan *plan; // with a reference
};

struct host_input {
    struct plan_slot slot; // HOME_NONE: not given
    uint64_t offset;       // bytes
    tn_layout layout;      // contiguous
};

// A primitive's `run` (host.c; run/host.c).
struct plan_host {
    const struct prim *prim;
    const void *attrs;
    const char *label;
    struct host_input *inputs;
    tn_layout *outputs;
    struct host_graph *graphs;
    uint32_t num_inputs, num_outputs, num_graphs;
    uint32_t first_made; // of the outputs, as plan_slot.index
};

struct plan_transfer {
    uint32_t from_device, to_device;
    struct plan_slot from, to;
    uint64_t from_offset, to_offset, size; // bytes; contiguous on both sides
    uint64_t number; // from.home is HOME_NONE: the host fills `to` with these bits
    tn_dtype dtype;  // of the elements
};

struct plan_storage {
    uint32_t device;
    uint32_t donated_leaf; // the leaf whose memory it is, or NONE
    uint64_t size;         // bytes
};

struct plan_output {
    struct plan_slot slot;
    uint64_t offset; // bytes; the layout's offset counts from there
    tn_layout layout;
};

// State of one run (run/submit.c), pooled in its plan.
struct run_record;
#define MAX_IDLE_RUNS 16

// Constant once it is made, so any number of threads may run it at the same time. Only its
// runs write the last two groups.
struct plan {
    struct lru_entry entry; // of the cache
    tn_runtime *runtime;
    struct arena arena;
    struct intern_refs interned; // texts and lists in the attributes of the steps
    struct device **devices;     // borrowed from the device set
    uint32_t num_devices;
    struct plan_segment *segments;
    struct plan_transfer *transfers;
    struct plan_storage *storages;
    struct plan_output *outputs;
    tn_step *steps;
    uint32_t num_segments, num_transfers, num_storages, num_outputs, num_steps, num_leaves;
    struct plan_host *hosts;
    uint64_t *made_bytes; // by plan_slot.index of HOME_MADE
    uint32_t num_hosts, num_made;
    uint32_t max_slots;   // of a segment
    uint64_t *arena_size; // by device, bytes

    // By device and queue: the greatest value of a timeline point that a run was submitted
    // with. Executables are destroyed after these points.
    struct {
        atomic_uint_fast64_t value;
        char apart[LINES_APART];
    } * last_use;

    // Idle run records, each taken and left by one thread or few (submit.c).
    struct {
        char apart[LINES_APART];
        _Atomic(struct run_record *) record; // NULL: none
    } idle[MAX_IDLE_RUNS];
};

static inline atomic_uint_fast64_t *plan_last_use(const struct plan *plan, uint32_t device,
                                                  uint32_t queue)
{
    return &plan->last_use[device * TN_MAX_QUEUES + queue].value;
}

// Gives a plan. `watcher` (NULL: that of the runtime, if any) is told how it is made, also
// when planning fails.
tn_status plan_create(tn_runtime *runtime, struct task *task, struct plan_watcher *watcher,
                      struct plan **out_plan);
void plan_retain(struct plan *plan);
void plan_release(struct plan *plan);

// The stages.
tn_status plan_simplify(struct plan_work *work);
tn_status plan_place(struct plan_work *work);
tn_status plan_fuse(struct plan_work *work);
// Whether each reader of the program's elements may compute them anew: few instructions, no
// functions, no numbers of elements, no gathers, no reductions.
bool fuse_is_cheap(const tn_expr_program *program);
tn_status plan_attach(struct plan_work *work);
tn_status plan_order(struct plan_work *work, struct plan *plan);
// Sets each value's producer to the position of the operation after sorting.
void plan_renumber(struct plan_work *work);
// On devices with TN_DEVICE_GROUPS: moves kernels that read one value first next to each
// other (neighbours.c).
tn_status plan_gather(struct plan_work *work);
tn_status plan_assign(struct plan_work *work, struct plan *plan);
tn_status plan_compile(struct plan_work *work, struct plan *plan);

// --- host operations (host.c) ----------------------------------------------------------

// Writes what a run needs of the operation, and plans the graphs among its attributes.
tn_status plan_write_host(struct plan_work *work, struct plan *plan,
                          const struct plan_op *op, struct plan_host *out);
void plan_host_finish(struct plan_host *host);

// Gives the plan, with a reference, of a graph whose inputs are contiguous, from the first
// byte of their memory on, on the first device: from the cache, or a new one. given[i] is 1
// for inputs that are given away and that nothing else refers to; NULL: none.
tn_status graph_plan(tn_runtime *runtime, const tn_graph *graph, const uint8_t *given,
                     struct plan **out_plan);

// Whether the value is a leaf whose memory the caller gave away.
bool plan_is_donated(const struct plan_work *work, const struct plan_value *value);

// The implementation of a node on one device (choose.c). `values` of choose() are the
// layouts of the operands, inputs first, and nothing else.
struct choice {
    uint32_t kind; // OP_PROGRAM, OP_KERNEL, OP_REFERENCE, or CHOICE_...
    const tn_kernel *kernel;
    const struct expr *expr; // OP_PROGRAM: what was compiled
    const tn_expr_program *program;
};
// CHOICE_SPLIT: the expression is built from elementwise ones and reductions.
enum { CHOICE_DECOMPOSE = 100, CHOICE_SPLIT = 101, CHOICE_NONE = 102 };
tn_status choose(struct plan_work *work, struct device *device, const struct node *node,
                 const tn_value *values, struct choice *out);

// Whether the kernel's own predicate holds. `fused`: as tn_kernel_query.fused.
tn_status choose_ask_accepts(struct plan_work *work, const struct device *device,
                             const tn_kernel *kernel, const tn_step *step, uint64_t fused,
                             bool *out_holds);

// Whether some device can copy a value of this layout, which lies on `device`, to
// contiguous memory (copy.c).
bool copy_is_possible(struct plan_work *work, uint32_t device, const tn_layout *layout);

// --- the cache -------------------------------------------------------------------------

// Bounds of the cache: bytes of host memory, and plans.
#define PLAN_CACHE_LIMIT (UINT64_C(64) << 20)
#define MAX_PLANS 256

// The plan of this signature, with a reference, or NULL.
struct plan *plan_cache_get(tn_runtime *runtime, struct hash signature);
void plan_cache_put(tn_runtime *runtime, struct plan *plan);
uint64_t plan_cache_bytes(const tn_runtime *runtime);

// Called by runtime creation and destruction.
tn_status plan_cache_create(tn_runtime *runtime);
void plan_cache_destroy(tn_runtime *runtime);

#endif // CORE_PLAN_PLAN_H
