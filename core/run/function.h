// SPDX-License-Identifier: MIT
// Traced functions: what calls (function.c) and tracing (function_trace.c) share.
#ifndef CORE_RUN_FUNCTION_H
#define CORE_RUN_FUNCTION_H

#include "../base/thread.h"
#include "run.h"

#define MAX_RECENT 16

// Input as a signature describes it.
struct traced_input {
    tn_type type;
    uint32_t device;
    bool is_donated;
};

// The trace of one signature. Constant once it is in the cache.
struct trace_entry {
    struct lru_entry entry; // key: the signature of the inputs
    struct plan *plan;
    tn_runtime *runtime;     // counts the trace; NULL while it is made
    struct value **captured; // data that the body used beside its inputs; with references
    struct traced_input *inputs;
    tn_type *output_types;
    uint32_t num_captured, num_outputs, num_inputs;
};

// A donated input, by its number.
struct donated {
    uint32_t input;
    uint32_t output; // output that becomes the input's array, or UINT32_MAX: none
};

struct tn_function {
    tn_runtime *runtime;
    tn_function_body body;
    void *user;
    struct donated *donated; // by number, ascending
    uint32_t num_donated;
    bool carries; // some donated inputs are carried to an output
    struct lru traces;
    _Atomic uint64_t num_dropped; // traces, by the cache
    // The trace of a thread's last call, with a reference, so that a thread which repeats a
    // call shares no lock and no counter with others. Each entry is for one thread or few.
    struct {
        char apart[LINES_APART];
        _Atomic(struct trace_entry *) entry; // NULL: none, or in use
    } recent[MAX_RECENT];
};

// Call as the body and the plan see it.
struct function_call {
    tn_array *const *inputs; // plain
    const uint8_t *donated;  // by input, as task.donated; NULL: none
    uint32_t num_inputs, num_outputs;
};

// The number of the device where an evaluated array lies.
static inline uint32_t device_of(const tn_array *array)
{
    return array->value->storage->device->number;
}

// Traces the body for a call with this signature, and plans. Gives the trace, with a
// reference; the cache has one, too. When two threads trace one signature at the same time,
// the cache keeps one of the traces.
tn_status trace_make(tn_function *function, const struct function_call *call,
                     struct hash signature, struct trace_entry **out_entry);

// Builds the body's graph in `scope`, which is being traced itself.
tn_status trace_inline(tn_function *function, tn_scope *scope, tn_array *const *inputs,
                       uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs);

#endif // CORE_RUN_FUNCTION_H
