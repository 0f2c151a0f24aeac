// SPDX-License-Identifier: MIT
// For applications: graphs as values, and the conditions, loops and checkpoints that are
// made of them.
//
//   static tn_status halve(tn_scope *s, tn_array *const *in, uint64_t num_in,
//                          tn_array **out, uint64_t num_out,
//                          void *user)
//   {
//       out[0] = tn_expr(s, "x -> x / 2", TN_IN(in[0]), TN_NO_ATTRS);
//       return TN_OK;
//   }
//   tn_array *y; // x / 2 / 2 ..., until it is no longer large
//   tn_while_call(s, is_large, halve, NULL, -1, TN_ARRAYS(x), &y);
//
// Bodies run once, during the call, and build graph, as that of a tn_function does. A body
// may use any array of the scope, weights for instance, and kept arrays: each becomes an
// input of its graph, and derivatives reach it. A body may use these functions, too. `user`
// goes to each body.
//
// Loops and conditions run on the devices of TENON_BACKEND, on the first of which their
// inputs and results lie. The host reads the condition, so evaluating it waits for the work
// that computes it, also in tn_eval_async_n; a loop with a number of times instead waits
// for nothing. <tenon/ops/base_attrs.h> describes the primitives behind, which tn_op_n
// applies as well.
//
// Errors. Each function returns the scope's first failure. TN_ERR_NOT_FOUND: no installed
// plugin has the primitive; pack "base" has all.
//
// Threads. As for the building functions of <tenon/tenon.h>: one thread at a time for a
// scope. A graph may be used by any thread.
#ifndef TENON_CONTROL_H
#define TENON_CONTROL_H

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

// --- graphs as values ------------------------------------------------------------------

// As num_outputs of tn_graph_trace: the body says how many outputs there are. It is called
// with `outputs` NULL and 0 of them, and calls tn_graph_outputs: a language whose functions
// give lists learns the number by calling one.
#define TN_OUTPUTS_ANY UINT64_MAX

// Traces `body` for inputs of these types, and gives its graph, for an attribute of a
// primitive or tn_graph_call. The scope holds the graph: it lives until the scope is
// closed, or longer by tn_graph_retain.
//
// Arrays of `scope` that the body uses are inputs of the graph behind those of `inputs`,
// and `captures` lists them (tn_captures, zeros at first); with NULL using one fails with
// TN_ERR_ARGUMENT.
TN_API tn_status tn_graph_trace(tn_scope *scope, tn_function_body body, void *user,
                                const tn_type *inputs, uint64_t num_inputs,
                                uint64_t num_outputs, tn_captures *captures,
                                const tn_graph **out_graph);

// Gives the outputs of a body that is traced with TN_OUTPUTS_ANY, in its scope, once, and
// copies the list. Returns the scope's first failure. TN_ERR_ARGUMENT: an output is NULL, a
// second call, another scope.
TN_API tn_status tn_graph_outputs(tn_scope *scope, tn_array *const *outputs,
                                  uint64_t num_outputs);

// Puts the nodes of a graph in the scope: gives outputs[0 .. num_outputs), as many as the
// graph has, for the first of `inputs`. Nodes keep the device that the body chose
// (tn_scope_device); others get the scope's. TN_ERR_ARGUMENT: fewer inputs than the graph
// has, or one of another type; the message has the number, what was got and what was
// expected.
TN_API tn_status tn_graph_call(tn_scope *scope, const tn_graph *graph,
                               tn_array *const *inputs, uint64_t num_inputs,
                               tn_array **outputs, uint64_t num_outputs);

// One more reference to a graph that lives, so that it outlives its scope, and one less.
// The runtime cannot be closed while an application has such references. NULL is fine. Any
// thread.
TN_API const tn_graph *tn_graph_retain(const tn_graph *graph);
TN_API void tn_graph_release(const tn_graph *graph);

// --- conditions, loops, checkpoints ----------------------------------------------------

// Where `pred`, one bool, holds, the arrays that `then` builds from the inputs, else those
// that `otherwise` builds; both give outputs of the same types. Only the taken body runs.
// Mapped over a batch of conditions (tn_vmap_call) both run, and each slice takes its own.
TN_API tn_status tn_cond_call(tn_scope *scope, tn_array *pred, tn_function_body then,
                              tn_function_body otherwise, void *user,
                              tn_array *const *inputs, uint64_t num_inputs,
                              tn_array **outputs, uint64_t num_outputs);

// Applies `body` to the carried values as long as `cond` builds true from them, at most
// `times` times (-1: any number); `cond` may be NULL: `times` times. `body` builds as many
// outputs as there are carried values, of the same types. Gives as many outputs.
//
// Forward-mode derivatives always exist. A reverse-mode one needs `times`, and computes and
// keeps as much as that many iterations do.
TN_API tn_status tn_while_call(tn_scope *scope, tn_function_body cond,
                               tn_function_body body, void *user, int64_t times,
                               tn_array *const *carried, uint64_t num_carried,
                               tn_array **outputs);

// Arguments of tn_scan_call. All zero is the default.
typedef struct tn_scan_call_options {
    uint32_t struct_size; // sizeof(tn_scan_call_options); 0: that of ABI 1.0
    uint32_t flags;       // 0
    uint64_t carries;     // the first inputs are carried from position to position; the
                          // others are cut into slices along their first axis
    int64_t length;       // the number of positions, where nothing is cut
    int64_t reverse;      // not 0: from the last position to the first
} tn_scan_call_options;

// Applies `body` at each position in order: from the carried values and the slices there it
// builds new carried values of the same types, then further outputs. Gives the last carried
// values, then the further outputs of all positions, stacked along a new first axis.
// `options` may be NULL. The reverse-mode derivative keeps the carried values, and computes
// what else it needs of the body again.
TN_API tn_status tn_scan_call(tn_scope *scope, tn_function_body body, void *user,
                              const tn_scan_call_options *options, tn_array *const *inputs,
                              uint64_t num_inputs, tn_array **outputs,
                              uint64_t num_outputs);

// The arrays that `body` builds. The reverse-mode derivative computes the body again
// instead of keeping the arrays in between, so that training takes less memory and more
// time.
TN_API tn_status tn_checkpoint_call(tn_scope *scope, tn_function_body body, void *user,
                                    tn_array *const *inputs, uint64_t num_inputs,
                                    tn_array **outputs, uint64_t num_outputs);

// --- rules of the application's own ----------------------------------------------------

// Rules for one function of the application, with the contracts of the members of
// tn_primitive that have these names, but that they build graph in `scope`. NULL: follows
// from the function's body.
typedef struct tn_custom_rules {
    uint32_t struct_size; // sizeof(tn_custom_rules); 0: that of ABI 1.0
    uint32_t flags;       // 0
    void *user;           // for the rules

    // Reverse mode.
    tn_status (*vjp)(tn_scope *scope, const tn_rule *rule, tn_array *const *cotangents,
                     const uint64_t *wanted, tn_array **gradients, void *user);
    // Forward mode.
    tn_status (*jvp)(tn_scope *scope, const tn_rule *rule, tn_array *const *tangents,
                     tn_array **out_tangents, void *user);
    // Batching.
    tn_status (*vmap)(tn_scope *scope, const tn_rule *rule, const int32_t *axes,
                      int64_t size, tn_array **outputs, int32_t *out_axes, void *user);
    // Called once for each tn_custom_call with these rules, with `user`, when no rule can
    // be called for that call any more, also where the call failed. From any thread, which
    // may hold locks of the application alone. NULL: the rules stay valid until the runtime
    // is closed.
    void (*destroy)(void *user);
} tn_custom_rules;

// The arrays that `body` builds from the inputs, with rules of its own: a gradient that is
// clipped or passed straight through, a derivative that is more exact than that of the
// parts. The body uses no array of the scope but its inputs, as the rules would not see it.
//
// Keeps `rules`, which stay as they are and valid until `destroy` is called. Without a vmap
// the body is mapped, and derivatives of the batch are then those of the body.
TN_API tn_status tn_custom_call(tn_scope *scope, tn_function_body body, void *user,
                                const tn_custom_rules *rules, tn_array *const *inputs,
                                uint64_t num_inputs, tn_array **outputs,
                                uint64_t num_outputs);

#ifdef __cplusplus
}
#endif

#endif // TENON_CONTROL_H
