// SPDX-License-Identifier: MIT
// What the parts of the program `speed` share: one device, one segment under construction,
// whose time is measured.
#ifndef TESTS_GPU_SPEED_H
#define TESTS_GPU_SPEED_H

#include "vulkan_bench.h"

extern struct vulkan_bench bench;
extern bool quick; // small sizes: whether it works

// Layouts in row-major order without gaps.
tn_layout dense(tn_dtype dtype, int32_t rank, const int64_t *extents);
tn_layout matrix(tn_dtype dtype, int64_t rows, int64_t columns);
uint64_t bytes_of(const tn_layout *layout);

// A slot of device memory alone: nothing is uploaded.
uint32_t device_slot(uint64_t size);
// Random rows below `rows`; 0: all the same.
void upload_indices(uint32_t slot, int64_t count, uint32_t rows);

// A step of the backend's own kernel, with memory for its operands: inputs, then outputs.
// Inputs of f32, f16 and bf16 hold numbers. Ends the program where there is no such kernel.
// `attrs` live until measure() returns.
void add_outputs(const char *primitive, const void *attrs, uint32_t num_inputs,
                 uint32_t num_outputs, const tn_layout *layouts);
void add_kernel(const char *primitive, const void *attrs, uint32_t num_inputs,
                const tn_layout *layouts); // with one output

// Seconds of one replay of the steps: the median of five rounds of as many as take a while.
// Clears the segment.
double measure(void);
// Prints a line of the table.
void report(const char *what, double amount, const char *unit);

// --- parts: speed_kernels.c --------------------------------------------------------------

void rows(void);
void convolutions(void);
void orders(void);
void others(void);
void quantised(void);
void small(void);
void decoding(void); // speed_decode.c

#endif // TESTS_GPU_SPEED_H
