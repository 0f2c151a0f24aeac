// SPDX-License-Identifier: MIT
// Applications of primitives, collected into one segment, run, and compared with the
// references; the bytes around each output must stay as they were.
#ifndef TESTS_VULKAN_CHECK_H
#define TESTS_VULKAN_CHECK_H

#include "vulkan_bench.h"

extern struct vulkan_bench bench;
extern const tn_plugin *packs[3]; // base, nn and, where the test names it, linalg
extern uint64_t seed;

tn_layout row_major(tn_dtype dtype, int32_t rank, const int64_t *extent);
#define LAYOUT(dtype, ...)                                                                 \
    row_major(dtype, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                   \
              (int64_t[]){__VA_ARGS__})
#define INTS(...)                                                                          \
    {                                                                                      \
        .count = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .given = 1,           \
        .value = {                                                                         \
            __VA_ARGS__                                                                    \
        }                                                                                  \
    }

tn_layout transposed(tn_layout layout, int32_t a, int32_t b);

// Bytes from the buffer's start to the last element's end.
uint64_t span(const tn_layout *layout);

// Random values; integers from [-limit, limit].
void fill(unsigned char *memory, tn_dtype dtype, uint64_t bytes, int64_t limit);

struct application {
    const char *primitive;
    const void *attrs;
    uint32_t num_inputs;
    tn_layout operands[6]; // inputs, then the output
    double tolerance;      // of |reference| + 1, in f32; 1e-8 of that in f64
    int64_t limit;         // integers are drawn from [-limit, limit]
    bool exact;            // no difference at all is borne
    bool in_place;         // the output is the first input
};

// A test's beginning: a device, or it is skipped; and its end: nothing was leaked, and the
// validation layers were silent.
void begin_checks(void);
void end_checks(void);
int64_t random_between(int64_t low, int64_t high);
// The step may be changed, and bench.memory of its inputs, until run_checks().
tn_step *add_check(const struct application *a);
void run_checks(void);

#endif // TESTS_VULKAN_CHECK_H
