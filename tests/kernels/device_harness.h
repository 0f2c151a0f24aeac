// SPDX-License-Identifier: MIT
// A harness for one backend without the core: a host, and a device on which tests of
// kernels run segments whose steps they make by hand.
#ifndef TESTS_DEVICE_HARNESS_H
#define TESTS_DEVICE_HARNESS_H

#include <stdint.h>
#include <tenon/plugin.h>

// TENON_THREADS for the next device; NULL: unset.
extern const char *harness_threads;

// TENON_CPU_STREAM, likewise.
extern const char *harness_stream;

// The last message that fail() recorded on this thread.
extern _Thread_local char harness_message[1024];

extern const tn_host harness_host;

// Loads a plugin; ends the program with a message when it cannot.
const tn_plugin *harness_load(const char *path);

// Prints the plugin's first device and its driver, as a TAP comment.
void harness_print_device(const tn_plugin *plugin);

// Number of the host's allocations that are not freed yet.
int64_t harness_leaks(void);

// An open device, and the segment under construction.
#define HARNESS_MAX_STEPS 256
#define HARNESS_MAX_SLOTS 1024
struct device_harness {
    const tn_backend *backend;
    tn_device *device;
    tn_step steps[HARNESS_MAX_STEPS];
    tn_value values[HARNESS_MAX_STEPS * 8];
    tn_slot slots[HARNESS_MAX_SLOTS];
    tn_binding bindings[HARNESS_MAX_SLOTS];
    tn_executable *executable;
    uint32_t num_steps, num_values, num_slots;
    uint32_t num_workers; // as the device says
};

void harness_open(struct device_harness *h, const tn_plugin *plugin);
void harness_close(struct device_harness *h);

// Empties the segment; destroys its buffers and the executable.
void harness_clear(struct device_harness *h);

// A new slot of `size` bytes, bound to a buffer; gives its number.
uint32_t harness_slot(struct device_harness *h, uint64_t size);
void *harness_memory(struct device_harness *h, uint32_t slot);

tn_layout harness_layout(tn_dtype dtype, int32_t rank, const int64_t *extent); // row-major
uint64_t harness_bytes(const tn_layout *layout);
int64_t harness_count(const tn_layout *layout);

// A step under construction: inputs first, then outputs.
tn_step *harness_step(struct device_harness *h, uint32_t num_inputs, uint32_t num_outputs);
void harness_set(tn_step *step, uint32_t operand, uint32_t slot, const tn_layout *layout);

// Adds a slot of the scratch memory that the step's kernel asks for.
void harness_scratch(struct device_harness *h, tn_step *step);

// Compiles the segment, replacing h->executable; submits the executable; or does both,
// compiling only when there is no executable, and waits.
tn_status harness_compile(struct device_harness *h);
tn_status harness_submit(struct device_harness *h, uint32_t flags, uint64_t *out_point);
tn_status harness_run(struct device_harness *h);

// The kernel of the plugin for a primitive and name; NULL when it has none.
const tn_kernel *harness_kernel(const tn_plugin *plugin, const char *primitive,
                                const char *name);

uint64_t harness_now_ns(void);

#endif // TESTS_DEVICE_HARNESS_H
