// SPDX-License-Identifier: MIT
// Graphs as values: a function that was traced once, as an attribute of a primitive.
//
// A graph says how outputs follow from inputs of fixed types. It has no data: what its body
// read of the enclosing scope became further inputs (tn_captures). It is immutable, and
// interned: two graphs of one runtime have the same structure exactly when they have the
// same pointer, while both live. So plans are cached by it, as by any attribute.
//
//   typedef struct twice_attrs { const tn_graph *body; } twice_attrs;
//   static const tn_attr_field twice_fields[] = {
//       TN_REQUIRED_FIELD(twice_attrs, body, TN_ATTR_GRAPH, "applied two times"),
//   };
//
// A primitive with a graph among its attributes looks at its types in `infer`, puts its
// nodes in the place of an application (`call` of tn_build, in `decompose` and the rules
// for derivatives and batching), makes further graphs of it (`trace` there), or runs it
// while a plan runs (`call` of tn_run), as often as the data says: so cond and while_loop
// of pack "base" are made.
//
// Ownership. A graph lives as long as something refers to it: the scope in which it was
// made or given as an attribute, a plan, or tn_graph_retain of <tenon/control.h>.
//
// Threads. A graph: any. tn_run: the thread that called `run`.
#ifndef TENON_GRAPH_H
#define TENON_GRAPH_H

#include <tenon/host.h>
#include <tenon/status.h>
#include <tenon/types.h>

// The visible part of a graph. Filled by the core, constant while the graph lives; only the
// core makes graphs.
typedef struct tn_graph {
    uint32_t struct_size;   // sizeof(tn_graph) as the core was compiled
    uint32_t flags;         // 0
    const tn_type *inputs;  // num_inputs of them
    const tn_type *outputs; // num_outputs of them
    uint32_t num_inputs;
    uint32_t num_outputs;
    uint32_t num_nodes; // operations, without those of graphs that are their attributes
    uint32_t reserved;  // 0
    uint64_t hash[2];   // of the structure: equal graphs of one machine have equal hashes
} tn_graph;

// Arrays of the enclosing scope that bodies used beside their arguments. They are inputs of
// the graph behind its arguments, in this order, and whoever applies the graph gives them
// again. One list serves several bodies that are applied to the same inputs (the branches
// of a condition): a body finds there what earlier ones used, so its graph may have fewer
// inputs than a later one's. Begins as zeros.
typedef struct tn_captures {
    tn_array **arrays; // `count` of them, of the enclosing scope; the list is the scope's
    uint64_t count;
    uint64_t room; // the core's
} tn_captures;

// An array's elements on a device, while a plan runs. Opaque, counted.
typedef struct tn_elements tn_elements;

// Argument of a primitive's `run`: an application whose outputs are computed on the host's
// behalf, between the steps of devices. Filled by the core, borrowed for the call.
//
//   static tn_status cond_run(const tn_run *run)
//   {
//       const cond_attrs *attrs = run->attrs;
//       unsigned char pred;
//       tn_status status = run->read(run, run->inputs[0], &pred, sizeof(pred));
//       const tn_graph *branch = pred ? attrs->then : attrs->otherwise;
//       return status ? status : run->call(run, branch, run->inputs + 1,
//                                          run->num_inputs - 1, 0, run->outputs);
//   }
//
// All slots: on the thread that called `run`.
typedef struct tn_run tn_run;
struct tn_run {
    uint32_t struct_size;       // sizeof(tn_run) as the core was compiled
    uint32_t flags;             // 0
    const tn_host *host;        // for fail
    const void *attrs;          // the attribute struct
    tn_elements *const *inputs; // num_inputs of them, contiguous; NULL: not given
    // To be filled, each with a reference that the core takes: what `call` gives, or
    // `retain` of an input. Their types are those of infer. NULL until then; after a
    // failure the core releases those that are not.
    tn_elements **outputs;
    uint32_t num_inputs;
    uint32_t num_outputs;

    // Starts a graph of the attributes on the first of `inputs`, as many as the graph has,
    // and gives its outputs, with a reference each that the caller releases. The work goes
    // to the devices of TENON_BACKEND, with plans and memory as for any graph; the call
    // returns once it is queued.
    //
    // The first `num_given` inputs are donated: the call takes the caller's reference,
    // on failure too, and their memory may become an output's where nothing else refers to
    // it. TN_ERR_ARGUMENT: too few inputs, an input that is NULL or of another type, with
    // the number, what was got and what was expected.
    tn_status (*call)(const tn_run *run, const tn_graph *graph, tn_elements *const *inputs,
                      uint64_t num_inputs, uint64_t num_given, tn_elements **outputs);

    // Waits for the work that makes `data`, and copies its elements, row-major, to `bytes`.
    // `size` is their size in bytes.
    tn_status (*read)(const tn_run *run, const tn_elements *data, void *bytes,
                      uint64_t size);

    // One more reference, and one less; NULL is fine.
    tn_elements *(*retain)(const tn_run *run, tn_elements *data);
    void (*release)(const tn_run *run, tn_elements *data);
};

#endif // TENON_GRAPH_H
