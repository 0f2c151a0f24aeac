// SPDX-License-Identifier: MIT
// A host for one backend, without the core: what the tests of kernels need to load a
// plugin, make segments by hand and run them.
#ifndef TESTS_BENCH_HOST_H
#define TESTS_BENCH_HOST_H

#include <stdint.h>
#include <tenon/plugin.h>

// Values of TENON_THREADS and so on for the next device; NULL: unset.
extern const char *bench_threads;

// The last message that fail() recorded on this thread.
extern _Thread_local char bench_message[1024];

extern const tn_host bench_host;

// Loads a plugin; ends the program with a message when it cannot.
const tn_plugin *bench_load(const char *path);

// Prints which device it has and with which driver, as a comment of a test.
void bench_print_device(const tn_plugin *plugin);

// Allocations that were not freed.
int64_t bench_leaks(void);

// A device with steps under construction.
#define BENCH_MAX_STEPS 256
#define BENCH_MAX_SLOTS 1024
struct bench {
    const tn_backend *backend;
    tn_device *device;
    tn_step steps[BENCH_MAX_STEPS];
    tn_value values[BENCH_MAX_STEPS * 8];
    tn_slot slots[BENCH_MAX_SLOTS];
    tn_binding bindings[BENCH_MAX_SLOTS];
    tn_executable *executable;
    uint32_t num_steps, num_values, num_slots;
};

void bench_open(struct bench *b, const tn_plugin *plugin);
void bench_close(struct bench *b);

// Forgets steps, frees buffers and the executable.
void bench_clear(struct bench *b);

// A new slot of `size` bytes, bound to a buffer; gives its number.
uint32_t bench_slot(struct bench *b, uint64_t size);
void *bench_memory(struct bench *b, uint32_t slot);

tn_layout bench_layout(tn_dtype dtype, int32_t rank, const int64_t *extent); // row-major
uint64_t bench_bytes(const tn_layout *layout);
int64_t bench_count(const tn_layout *layout);

// A step under construction: inputs first, then outputs.
tn_step *bench_step(struct bench *b, uint32_t num_inputs, uint32_t num_outputs);
void bench_set(tn_step *step, uint32_t operand, uint32_t slot, const tn_layout *layout);

// Gives scratch memory as the step's kernel asks for.
void bench_scratch(struct bench *b, tn_step *step);

// Compiles what is there, and submits and waits.
tn_status bench_compile(struct bench *b);
tn_status bench_submit(struct bench *b, uint32_t flags, uint64_t *out_point);
tn_status bench_run(struct bench *b);

// The kernel of the plugin for a primitive and name; NULL when it has none.
const tn_kernel *bench_kernel(const tn_plugin *plugin, const char *primitive,
                              const char *name);

uint64_t bench_now_ns(void);

#endif // TESTS_BENCH_HOST_H
