// SPDX-License-Identifier: MIT
// Launches of a backend's device, reported while they are planned: each launch of a kernel
// with its code and its constants. For tools that count kernels (`tenon kernels`), that
// look which launches could share code, and that measure what sharing costs. Not for
// computing.
//
//   const void *table;
//   const tn_host *host;
//   if (tn_provider_load(runtime, TN_IFACE_LAUNCHES, "org.tenon.vulkan", &table, &host))
//       return tn_last_error();
//   const tn_launches *launches = table;
//   launches->watch(host, count_launch, &count);
//   tn_explain(scope, arrays, num_arrays, &text); // plans, and runs nothing
//
// Threads. `watch` and `measure` are called while no other thread uses the runtime.
#ifndef TENON_LAUNCHES_H
#define TENON_LAUNCHES_H

#include <tenon/host.h>

// One launch. Borrowed, with all that it points to, until the function returns. Hashes are
// of 128 bits, and the same in each process.
typedef struct tn_planned_launch {
    uint32_t struct_size;      // sizeof(tn_planned_launch) as the backend was compiled
    uint32_t flags;            // 0
    const char *device;        // "vulkan:0"
    const char *step;          // the step's label: "base.matmul/1", or an expression
    const char *name;          // the kernel's, or its module's: "reduce_sum_f32"
    uint64_t code[2];          // hash of the code before specialisation
    uint64_t pipeline[2];      // hash of what the device compiles: code, specialisation
                               // constants, and the number of operands and pushed words
    uint64_t code_bytes;       // of the code, as SPIR-V
    const uint32_t *spec;      // 2 * num_spec words: the id of a constant, its value
    const uint32_t *push;      // words; those that say where constants lie are 0
    const uint32_t *constants; // words that the launch reads from a buffer of constants
    const uint64_t *ranges;    // 2 * num_operands: bytes, from the beginning of its memory
                               // to the operand, and of the operand
    uint32_t num_spec;
    uint32_t num_push;
    uint32_t num_constants;
    uint32_t num_operands;
    uint32_t groups[3]; // workgroups along x, y and z
    uint32_t reserved;  // 0
} tn_planned_launch;

// Time of a launch, beside that of a launch of *baked* code: the same code with all that
// the launch pushes, and all that it reads from buffers of constants, as constants in it,
// so that the device's compiler knows them. Times are the median of nine, of both kinds in
// turn, and include the wait for the launch before.
typedef struct tn_launch_cost {
    uint32_t struct_size; // sizeof(tn_launch_cost) as the backend was compiled
    uint32_t flags;       // 0
    const char *reason;   // why there is no baked code; NULL: there is. Borrowed
    double folded_ns;     // of a launch as it runs, in nanoseconds
    double baked_ns;      // of one of baked code; 0: there is none
    uint64_t baked_bytes; // of that code, as SPIR-V
    uint64_t differing;   // bytes, of all that the launch writes, in which the two differ
} tn_launch_cost;

// Optional interface of a backend's plugin, which its TN_IFACE_LIST names.
#define TN_IFACE_LAUNCHES "tn.launches/1"
typedef struct tn_launches {
    uint32_t struct_size; // sizeof(tn_launches)
    uint32_t flags;       // 0

    // From now on calls planned(context, launch) for each launch that a device of the
    // host's runtime plans, in the order in which they would run, on the thread that plans.
    // A loop's body counts once, however often it runs; launches of a plan that fails later
    // are reported as well. `planned` NULL: no more. One function at a time: the last call
    // counts. `planned` calls nothing of the runtime. Keeps `context` until the next call
    // or deinit. TN_ERR_MEMORY: nothing has changed.
    tn_status (*watch)(const tn_host *host,
                       void (*planned)(void *context, const tn_planned_launch *launch),
                       void *context);

    // From now on calls wanted(context, launch) for each launch that a device of the host's
    // runtime plans, behind `planned`. Where that gives a number other than 0, the launch
    // is measured when it runs for the first time, on the values that it finds then, and
    // measured(context, number, cost) is called on the thread that runs it; `cost` is
    // borrowed. Of the launches of a segment with equal numbers, which may differ in
    // `ranges` alone, the first is measured, and the others use its baked code. Before them
    // number 0 is measured: all launches of a segment as they run, in one command buffer;
    // its baked_ns is with the baked code of each launch that has some. Results are those
    // of any run. A launch that runs behind a point of the host is measured when it runs
    // without one. Both functions, or NULL and NULL: no more. One pair at a time; neither
    // function calls the runtime. Keeps `context` until the next call or deinit. NULL: the
    // backend measures nothing. TN_ERR_MEMORY: nothing has changed. A failure while
    // measuring fails the plan or the run.
    tn_status (*measure)(const tn_host *host,
                         uint64_t (*wanted)(void *context, const tn_planned_launch *launch),
                         void (*measured)(void *context, uint64_t number,
                                          const tn_launch_cost *cost),
                         void *context);
} tn_launches;

#endif // TENON_LAUNCHES_H
