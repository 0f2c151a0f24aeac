// SPDX-License-Identifier: MIT
// The least of Vulkan that runs a compute shader: a device, storage buffers at bindings 0,
// 1, ... of set 0, push constants, specialisation constants.
//
// One thread.
#ifndef TESTS_COMPILER_GPU_H
#define TESTS_COMPILER_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPU_MOST_BUFFERS = 8, GPU_MOST_SPEC = 16 };

struct gpu;

struct gpu_job {
    const uint32_t *words; // the module; its entry point is "main"
    size_t num_words;
    void *buffers[GPU_MOST_BUFFERS]; // what they hold before and after the run
    size_t sizes[GPU_MOST_BUFFERS];  // bytes
    uint32_t num_buffers;
    const void *push;
    uint32_t push_size;
    uint32_t spec_ids[GPU_MOST_SPEC], spec_values[GPU_MOST_SPEC]; // 4 bytes each
    uint32_t num_spec;
    uint32_t groups[3];
    uint32_t times; // dispatches, with a barrier between; 0: 1
};

// The first device, with all features that it has. NULL: there is none.
struct gpu *gpu_open(void);
void gpu_close(struct gpu *gpu);
const char *gpu_name(const struct gpu *gpu);
// Whether the device has floats of 16 bits, and subgroup operations in compute shaders.
bool gpu_has_f16(const struct gpu *gpu);

// False, and the reason, when a call fails.
bool gpu_run(struct gpu *gpu, const struct gpu_job *job, char reason[128]);

// Runs two modules on the same data: 1: the same bits, 0: not, -1: one could not run.
// *buffer and *word say where the first difference is; `got` has both words.
int gpu_run_pair(struct gpu *gpu, const struct gpu_job *job, const uint32_t *other,
                 size_t num_other, uint32_t *buffer, size_t *word, uint32_t got[2],
                 char reason[128]);

#endif // TESTS_COMPILER_GPU_H
