// SPDX-License-Identifier: MIT
// A host and a segment under construction for tests of the Vulkan backends: slots have a
// copy in ordinary memory, which is uploaded before a run and downloaded after it.
#ifndef TESTS_VULKAN_BENCH_H
#define TESTS_VULKAN_BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/plugin.h>

#define VB_MAX_STEPS 512
#define VB_MAX_SLOTS 2048
#define VB_MAX_VALUES 4096

struct vulkan_bench {
    const tn_plugin *plugin;
    const tn_backend *backend;
    tn_device *device;
    tn_device_info info;
    tn_step steps[VB_MAX_STEPS];
    tn_value values[VB_MAX_VALUES];
    tn_slot slots[VB_MAX_SLOTS];
    tn_binding bindings[VB_MAX_SLOTS];
    unsigned char *memory[VB_MAX_SLOTS];
    tn_executable *executable;
    uint32_t num_steps, num_values, num_slots;
};

// What the host saw: lines at WARN and ERROR, allocations not freed, the last failure.
extern atomic_int vb_messages, vb_allocations;
extern _Thread_local char vb_failure[1024];
// Ask for the kernels that GPUs get; set before opening.
extern bool vb_as_gpu;
extern const tn_host vb_host;
// Called with every line, of any level; NULL: nobody listens. Set while one thread runs.
extern void (*vb_on_log)(const char *line);

// A disk cache in memory: entries found and stored, and a switch that damages what is
// found.
extern int vb_cache_hits, vb_cache_puts;
extern bool vb_cache_damages;
void vb_cache_clear(void);

// Loads a plugin; ends the program with a message when it cannot.
const tn_plugin *vb_load(const char *path);

// False when there is no device.
bool vb_open(struct vulkan_bench *b, const tn_plugin *plugin);
void vb_close(struct vulkan_bench *b);

// A test program's beginning: loads a backend and opens its device, with validation layers
// where TENON_VULKAN_VALIDATION is set. False when there is no device.
bool vb_begin(struct vulkan_bench *b, const char *path);
// And its end: closes the device and the plugin. False when allocations are left or the
// host saw messages, whose numbers are printed.
bool vb_end(struct vulkan_bench *b);

void vb_clear(struct vulkan_bench *b); // forgets steps and slots

uint32_t vb_slot(struct vulkan_bench *b, uint64_t size);
tn_step *vb_step(struct vulkan_bench *b, uint32_t num_inputs, uint32_t num_outputs);
void vb_set(tn_step *step, uint32_t operand, uint32_t slot, const tn_layout *layout);

// The plugin's own kernel for a primitive, and its scratch memory.
bool vb_use_kernel(struct vulkan_bench *b, tn_step *step, const char *primitive);

tn_status vb_compile(struct vulkan_bench *b);
tn_status vb_upload(struct vulkan_bench *b);
tn_status vb_download(struct vulkan_bench *b);
tn_status vb_submit(struct vulkan_bench *b, int times); // and waits
// All four; with TENON_TEST_DIGESTS the results' hashes go to a file, see pair.py.
tn_status vb_run(struct vulkan_bench *b);

uint64_t vb_now_ns(void);

#endif // TESTS_VULKAN_BENCH_H
