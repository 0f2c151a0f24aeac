// SPDX-License-Identifier: MIT
// For applications: arrays that are counted and outlive their scope unevaluated, as the
// objects of a language with a garbage collector do.
//
//   tn_scope *s = tn_scope_open(rt);
//   tn_array *y = tn_retain(s, tn_op(s, "exp", TN_IN(x), TN_NO_ATTRS));
//   tn_scope_close(s); // nothing was computed
//   ...
//   tn_read(other_scope, y, data, size); // computes it, for all scopes
//   tn_release(y);
//
// Life. A retained array is graph, with the data that this depends on, until it is
// evaluated, in whatever scope. Then it has its value in all of them, and is data in the
// scopes that use it from then on: derivatives stop there, and the graph behind it is
// freed. Each node goes when nothing refers to it any more. Work that fails after
// tn_eval_async_n has begun it is an error of whoever reads the array, each time; an
// evaluation that fails at once leaves the graph as it was.
//
// Use. In the scope that retained it, it stands for the array itself; elsewhere for the
// same graph, which can be extended, evaluated, differentiated by what it depends on, and
// given to functions. Within a function's body it becomes part of the function's graph, and
// is computed in each call. An array that depends on one whose memory was donated to a
// function before fails when it is evaluated.
//
// Threads. What is retained may be used in any scopes of its runtime, by several threads at
// once. References may be taken and released by any thread.
#ifndef TENON_RETAIN_H
#define TENON_RETAIN_H

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

// Gives a reference to an array, which tn_release takes back, without evaluating it. Of an
// array that tn_keep or tn_retain gave, it gives one more reference, the same pointer; then
// `scope` may be NULL. The reference counts as in use: until it is released,
// tn_runtime_close refuses.
//
// NULL on failure: for the arrays of a function's body and those that stand for a slice in
// vmap, which have no data, and for an array that was donated.
TN_API tn_array *tn_retain(tn_scope *scope, tn_array *array);

// As tn_op_n, but gives references to arrays that outlive the scope, each as
// tn_retain would: for languages whose objects hold arrays. Where all inputs are such
// arrays or numbers of `scope` (tn_float), the scope keeps nothing of the node, so
// that one long-lived scope for each thread is enough. A primitive with runtime
// attributes, or one that is a composite, takes about as long as with a scope of its
// own.
//
// Gives outputs on success only. A function's body has tn_op_n alone.
TN_API tn_status tn_op_retained_n(tn_scope *scope, const char *name,
                                  const tn_array *const *inputs, uint64_t num_inputs,
                                  tn_attr_list attrs, tn_array **outputs,
                                  uint64_t num_outputs);

enum {
    TN_EVAL_ASYNC = 1, // as tn_eval_async_n: returns as soon as the work is queued
    // Fails with TN_ERR_UNSUPPORTED, and computes nothing, where the work may last: it has
    // loops, waits for work that may last, moves more than 1 MiB, or has yet to be planned.
    // For threads that have to stay responsive: they leave it to another one then.
    TN_EVAL_BRIEF = 2,
};

// Whether the caller's reference to an array that tn_retain or tn_op_retained_n gave counts
// as held for tn_eval_held_n: at first it does, and when tn_release takes it it has to. A
// reference that does not leaves the array graph, which derivatives still go through.
TN_API void tn_hold(tn_array *array, int32_t held);

// Computes arrays that outlive their scopes, and with them the held arrays of their graph
// (tn_hold), so that none of these is computed twice: a loop whose step updates held
// arrays, and names one result, has steps of one length. Held arrays that the named ones do
// not depend on stay graph.
//
// Writes results over data that nothing but this graph refers to, also where the run
// before is still reading it: x = f(x) needs no memory of its own once the old x was
// released. Other threads that use the same graph meanwhile wait for its values. When a
// run fails after it has begun, what was computed in place of that data is lost, and its
// users fail from then on as those of an array that was donated.
//
// `flags`: of TN_EVAL_... `scope` is where failures go; data that is made here goes to
// its device.
TN_API tn_status tn_eval_held_n(tn_scope *scope, tn_array *const *arrays,
                                uint64_t num_arrays, uint32_t flags);

// The elements of an array that outlives its scopes, row-major without gaps, where they
// need neither be computed nor waited for nor copied; else NULL. They stay while the
// reference does and nothing gives the array away.
TN_API const void *tn_array_elements(const tn_array *array);

enum {
    TN_ERROR_OF_DTYPE = 1, // the primitive takes other dtypes than that of an input
};

// The kind of TN_ERR_ARGUMENT that the scope's failure is, for languages that tell them
// apart: TN_ERROR_OF_DTYPE, or 0 for all else, among that refusals of dtypes by a pack's
// rule.
TN_API uint32_t tn_scope_error_kind(const tn_scope *scope);

#ifdef __cplusplus
}
#endif

#endif // TENON_RETAIN_H
