// SPDX-License-Identifier: MIT
// For authors of backends that consume cpu.c/1: the stages of its kernels. A backend calls
// `prepare` of a step's kernel once, when the segment is compiled, passes the state to each
// launch, and calls `finish` once when the executable is destroyed.
//
//   struct tn_executable {
//       tn_segment segment; // its steps, which live as long as the executable
//       void **states;      // one for each step
//   };
//
//   // in segment_compile, the last thing that may fail; by members, since the segment of
//   // an older core is shorter:
//   executable->segment.steps = segment->steps;
//   executable->segment.num_steps = segment->num_steps;
//   executable->segment.step_size = segment->step_size;
//   executable->states = host->alloc(host, (segment->num_steps + 1) * sizeof(void *), 0);
//   tn_status status = TN_ERR_MEMORY;
//   if (executable->states)
//       status = tn_segment_prepare(host, segment, features, 1, executable->states);
//   if (status != TN_OK) {
//       host->free(host, executable->states);
//       host->free(host, executable);
//       return status;
//   }
//
//   // in each launch of step i, beside its operands, attributes and scratch memory:
//   call.state = executable->states[i];
//
//   // in executable_destroy, which is called when all runs have ended:
//   tn_segment_finish(host, &executable->segment, executable->states);
//   host->free(host, executable->states);
//
// A step without such a kernel (a program, a reference, a kernel without prepare, or one of
// another family) has no state: its pointer becomes NULL, which is what its launches pass
// on. So a backend treats all steps alike.
//
// What prepare sees is what all launches of the step have in common. So the layouts are
// those of the step, operands have no memory, and a backend that compiles a segment more
// than once prepares its steps each time. `features` are the bits TN_CPU_... that launches
// will see: a kernel may choose its loops then.
//
// Ownership. The states belong to the kernels, the array of pointers to the caller, who
// keeps it as long as the executable. Whatever is begun is undone on failure: a caller
// whose tn_segment_prepare failed has nothing to finish, and frees its array.
//
// Threads. Any. The kernels' functions run on the calling thread; one array of states is
// written by one thread at a time. Launches of one step that run at the same time share its
// state: see tn_cpu_kernel.prepare.
#ifndef TENON_OPS_STAGES_H
#define TENON_OPS_STAGES_H

#include <tenon/backend.h>

// The step's kernel if it is one of cpu.c/1 that has a prepare, else NULL. Payloads of
// other families are not looked at: they are structs of another kind.
static inline const tn_cpu_kernel *tn_step_staged(const tn_step *step)
{
    const char *a = step->kernel ? step->kernel->family : "", *b = TN_FAMILY_CPU;
    while (*a && *a == *b) {
        a++;
        b++;
    }
    if (*a || *b)
        return 0;
    const tn_cpu_kernel *kernel = (const tn_cpu_kernel *)step->kernel->payload;
    return TN_HAS(kernel, prepare) ? kernel : 0;
}

// tn_cpu_call.parallel_for on the calling thread alone: one body, which is worker 0. For
// prepare, and for launches of a device that has one thread.
static inline void tn_loop_here(const tn_cpu_call *call, int64_t n, int64_t grain,
                                void (*body)(void *context, int64_t begin, int64_t end,
                                             uint32_t worker),
                                void *context)
{
    (void)call;
    (void)grain;
    if (n > 0)
        body(context, 0, n, 0);
}

// Makes the state of a step: calls its prepare with the step's layouts and attributes, and
// with the elements of inputs that are the same in each run (tn_value.constant). Sets
// *out_state, to NULL where there is nothing to prepare. `cpu_features` and `num_threads`
// are those that launches will have in their tn_cpu_call. Memory comes from `host`, and
// nothing of `step` is kept but what the kernel keeps, which lives as long as the segment.
//
// Fails as prepare does, which has recorded why, or with TN_ERR_MEMORY. A failure leaves
// nothing behind.
static inline tn_status tn_step_prepare(const tn_host *host, const tn_step *step,
                                        uint32_t cpu_features, uint32_t num_threads,
                                        void **out_state)
{
    const tn_cpu_kernel *kernel = tn_step_staged(step);
    uint64_t count = (uint64_t)step->num_inputs + step->num_outputs;
    tn_cpu_call call;
    *out_state = 0;
    if (!kernel)
        return TN_OK;
    tn_tensor *operands = (tn_tensor *)host->alloc(host, count * sizeof(*operands), 0);
    if (!operands)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        int32_t is_input = i < step->num_inputs;
        const tn_value *value =
            is_input ? tn_step_input(step, i) : tn_step_output(step, i - step->num_inputs);
        operands[i].data = is_input ? (void *)(uintptr_t)value->constant : 0;
        operands[i].layout = value->layout;
    }
    call.struct_size = sizeof(call);
    call.flags = 0;
    call.host = host;
    call.inputs = operands;
    call.outputs = operands + step->num_inputs;
    call.attrs = step->attrs;
    call.num_inputs = step->num_inputs;
    call.num_outputs = step->num_outputs;
    call.cpu_features = cpu_features;
    call.num_threads = num_threads;
    call.parallel_for = tn_loop_here;
    call.scratch = call.state = 0; // of launches
    call.scratch_size = 0;
    call.load = 0;
    call.store = 0;
    tn_status status = kernel->prepare(&call, out_state);
    host->free(host, operands);
    return status;
}

// Frees the state that tn_step_prepare gave for this step, once no launch uses it. Does
// nothing for steps without stages, and for kernels whose states need no freeing.
static inline void tn_step_finish(const tn_host *host, const tn_step *step, void *state)
{
    const tn_cpu_kernel *kernel = tn_step_staged(step);
    if (kernel && TN_HAS(kernel, finish))
        kernel->finish(host, state);
}

// Makes the states of all steps of a segment, in order: states[0 .. num_steps), which need
// not be set before. When one fails, frees those before it and returns the status of the
// failed one, with its message recorded: segment_compile then fails with it.
static inline tn_status tn_segment_prepare(const tn_host *host, const tn_segment *segment,
                                           uint32_t cpu_features, uint32_t num_threads,
                                           void **states)
{
    for (uint32_t i = 0; i < segment->num_steps; i++) {
        tn_status status = tn_step_prepare(host, tn_segment_step(segment, i), cpu_features,
                                           num_threads, &states[i]);
        if (status == TN_OK)
            continue;
        for (uint32_t k = 0; k < i; k++)
            tn_step_finish(host, tn_segment_step(segment, k), states[k]);
        return status;
    }
    return TN_OK;
}

// Frees the states of all steps, after a tn_segment_prepare that succeeded. `segment` is a
// copy of the struct or the one that was compiled; its steps live as long as executables.
static inline void tn_segment_finish(const tn_host *host, const tn_segment *segment,
                                     void *const *states)
{
    for (uint32_t i = 0; i < segment->num_steps; i++)
        tn_step_finish(host, tn_segment_step(segment, i), states[i]);
}

#endif // TENON_OPS_STAGES_H
