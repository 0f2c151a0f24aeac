// SPDX-License-Identifier: MIT
// Executables: a launch for each step of the segment. Launches are constant. Data that a
// run changes is in frames, of which each queue has its own.
#ifndef CPU_BLAS_EXECUTABLE_H
#define CPU_BLAS_EXECUTABLE_H

#include "program/program.h"

// An operand's address: an offset into the binding of a slot.
struct cpu_operand {
    uint32_t slot;
    bool has_memory; // false: an input that was not given, or one that is fused
    uint64_t offset; // bytes
};

// A program that an operand of a launch's function passes through.
struct launch_fused {
    struct program *program;
    uint32_t operand;             // of the step: inputs, then outputs
    uint32_t through;             // set of the program's operands that are this operand
    struct cpu_operand *operands; // of the program; those in `through` are not set
};

struct launch {
    struct program *program; // NULL: `function` is called
    tn_status (*function)(const tn_cpu_call *call);
    void *state;                  // what the kernel's prepare gave, if it has one
    bool is_prepared;             // the state is there to be finished
    const tn_step *step;          // of `function`; NULL for a program
    struct cpu_operand *operands; // of the step: inputs, then outputs
    struct launch_fused *fused;
    uint32_t num_operands, num_fused;
    const char *label, *detail, *plugin; // for messages and traces; plugin NULL: no kernel
};

// A call with the state behind it that load and store need.
struct launch_call {
    tn_cpu_call call; // first: cast back in fused_of
    struct cpu_queue *queue;
    const struct launch *launch;
    struct program_frame *fused; // one for each of launch->fused
};

// A launch with all its arguments prepared: a run sets the addresses and calls.
struct launch_frame {
    struct program_frame program; // of a launch with a program
    struct launch_call *call;     // of a launch with a function
    tn_tensor *tensors;           // of `call`: inputs, then outputs
};

struct tn_executable {
    struct cpu_arena arena;
    struct launch *launches;
    uint32_t num_launches;
    // One array for each queue, made by the first run there. No lock: a queue runs one
    // submission at a time.
    struct launch_frame *frames[TN_MAX_QUEUES];
};

#endif // CPU_BLAS_EXECUTABLE_H
