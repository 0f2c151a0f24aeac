// SPDX-License-Identifier: MIT
// Plans: graphs compiled for given devices. The state of the scheduler while it makes one
// is in work/work.h.
//
// The stages, in the order in which plan_create calls them, one file each:
//   prepare   devices are opened, plugins loaded (plan.c)
//   simplify  common subexpressions become one node
//   place     nodes become operations: device, kernel, views resolved, constants folded
//   fuse      chains of expressions become one program (fuse/)
//   epilogues programs before and behind a kernel become part of its step
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
#include "work/work.h"

// --- the plan --------------------------------------------------------------------------

// The memory that a value lies in.
enum home {
    HOME_NONE,
    HOME_LEAF,    // a leaf's memory
    HOME_ARENA,   // memory between the steps of a run, one arena a device
    HOME_STORAGE, // memory found for each run: outputs, and values that share their memory
    HOME_MADE,    // the memory of an output that a host operation gave in this run
};

// Memory that is found anew in each run. `index`: of the leaf, the device (arena), the
// storage or the host operation's output.
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

// A graph among the attributes of a host operation, with its plan for inputs that are not
// donated.
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

// The stages; `fuse` is in fuse/fuse.h.
tn_status plan_simplify(struct plan_work *work);
tn_status plan_place(struct plan_work *work);
tn_status plan_narrow(struct plan_work *work);
// Large results that live long are computed again by a program that reads the same array.
tn_status plan_recompute(struct plan_work *work);
tn_status plan_epilogues(struct plan_work *work);
tn_status plan_order(struct plan_work *work, struct plan *plan);
// Sets each value's producer to the position of the operation after sorting.
void plan_renumber(struct plan_work *work);
// On devices with TN_DEVICE_GROUPS: moves kernels that read one value first next to each
// other (siblings.c).
tn_status plan_siblings(struct plan_work *work);
// On one device, without effects: moves up what releases memory.
bool plan_may_advance(const struct plan_work *work);
tn_status plan_advance(struct plan_work *work);
tn_status plan_assign(struct plan_work *work, struct plan *plan);
tn_status plan_compile(struct plan_work *work, struct plan *plan);

// --- host operations (host.c) ----------------------------------------------------------

// Writes what a run needs of the operation, and plans the graphs among its attributes.
tn_status plan_write_host(struct plan_work *work, struct plan *plan,
                          const struct plan_op *op, struct plan_host *out);
void plan_host_finish(struct plan_host *host);

// Gives the plan, with a reference, of a graph whose inputs are contiguous, from the first
// byte of their memory on, on the first device: from the cache, or a new one. given[i] is 1
// for inputs that are donated and that nothing else refers to; NULL: none.
tn_status graph_plan(tn_runtime *runtime, const tn_graph *graph, const uint8_t *given,
                     struct plan **out_plan);

// Whether the value is a leaf whose memory the caller donated.
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
