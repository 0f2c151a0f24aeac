// SPDX-License-Identifier: MIT
// Memory of the host in a primitive's `run`: for primitives whose work is done there,
// whatever device their operands are on, such as collectives between processes.
//
//   static tn_status twice_run(const tn_run *run)
//   {
//       const tn_run_memory *memory = tn_run_memory_of(run);
//       double x;
//       if (!memory)
//           return run->host->fail(run->host, TN_ERR_UNSUPPORTED, "...");
//       tn_status status = run->read(run, run->inputs[0], &x, sizeof(x));
//       x *= 2;
//       return status ? status : memory->write(run, 0, &x, sizeof(x));
//   }
//
// The record that `run` gets has these members behind those of tn_run, in hosts that know
// them. So tn_run grows no more: what is added stands behind these.
//
// Threads. The thread that called `run`.
#ifndef TENON_RUN_MEMORY_H
#define TENON_RUN_MEMORY_H

#include <stddef.h>
#include <tenon/graph.h>
#include <tenon/export.h>

// A flag of a tn_primitive with TN_PRIM_EFFECT and `run`: it starts work that goes on
// beside the steps of devices, so a plan runs it as soon as its operands exist.
#define TN_PRIM_STARTS ((uint32_t)8)

// The whole record that `run` gets. Filled by the core, borrowed for the call.
typedef struct tn_run_memory {
    tn_run run; // its struct_size covers what is behind it

    // Gives the type of `data`, an input or what `call` gave.
    void (*type)(const tn_run *run, const tn_elements *data, tn_type *out);

    // Makes output `output`, which is NULL until then, of its elements: `size` bytes,
    // row-major, of the type that infer gave. Copies them. TN_ERR_ARGUMENT: there is no
    // such output, or its type has another size; the message has both.
    tn_status (*write)(const tn_run *run, uint32_t output, const void *bytes,
                       uint64_t size);

    // Tells where operand `operand` lies: inputs in order, then outputs. An output that is
    // NULL until then is made, with undefined elements, on the device of the first input:
    // they are written before `run` returns TN_OK. `wants`: TN_EXPORT_... .
    // TN_ERR_UNSUPPORTED: the device does not export its memory; use `read` and `write`
    // instead. Read through TN_RUN_EXPORTS.
    tn_status (*operand_export)(const tn_run *run, uint32_t operand, uint32_t wants,
                                tn_run_export *out);
} tn_run_memory;

// The whole record that `run` is a part of; NULL: this host has none.
static inline const tn_run_memory *tn_run_memory_of(const tn_run *run)
{
    return run->struct_size >= offsetof(tn_run_memory, operand_export)
               ? (const tn_run_memory *)run
               : NULL;
}

// Whether the host has `operand_export`.
#define TN_RUN_EXPORTS(memory)                                                             \
    ((memory)->run.struct_size >=                                                          \
     offsetof(tn_run_memory, operand_export) + sizeof((memory)->operand_export))

#endif // TENON_RUN_MEMORY_H
