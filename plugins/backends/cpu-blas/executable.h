// SPDX-License-Identifier: MIT
// Executables: a launch for each step of the segment. Launches are constant. Data that a
// run changes is in frames, of which each queue has its own.
#ifndef CPU_BLAS_EXECUTABLE_H
#define CPU_BLAS_EXECUTABLE_H

#include "program.h"

// An operand's address: an offset into the binding of a slot.
struct operand {
    uint32_t slot;
    uint32_t reserved;
    uint64_t offset; // bytes
};

struct launch {
    struct program *program; // NULL: `function` is called
    tn_status (*function)(const tn_cpu_call *call);
    const tn_step *step;      // of `function`; NULL for a program
    struct operand *operands; // of the step: inputs, then outputs
    uint32_t num_operands;
    const char *label, *detail, *plugin; // for messages and traces; plugin NULL: no kernel
};

// A launch with all its arguments prepared: a run sets the addresses and calls.
struct launch_frame {
    struct program_frame program; // of a launch with a program
    tn_cpu_call *call;            // of a launch with a function
    tn_tensor *tensors;           // of `call`: inputs, then outputs
};

struct tn_executable {
    struct arena arena;
    struct launch *launches;
    uint32_t num_launches;
    // One array for each queue, made by the first run there. No lock: a queue runs one
    // submission at a time.
    struct launch_frame *frames[TN_MAX_QUEUES];
};

#endif // CPU_BLAS_EXECUTABLE_H
