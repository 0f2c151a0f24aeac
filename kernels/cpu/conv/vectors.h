// SPDX-License-Identifier: MIT
// Sums of products over the windows of a vector:
//
//   out[i] = sum over j < m of x[i + j] * v[j]
#ifndef KERNELS_CPU_CONV_VECTORS_H
#define KERNELS_CPU_CONV_VECTORS_H

#include <stdint.h>

// Each lane of a vector computes a range of `part` outputs, so that no load is unaligned:
// lane l of row r of `rows` is x[l * part + r].
struct cpu_windows {
    const void *rows, *v; // rows: part + m - 1 rows of `lanes` elements each
    void *out;            // `part` rows of `lanes` elements, ordered as `rows`
    int64_t m;
};

struct cpu_windows_kernels {
    int64_t lanes_f32, lanes_f64;
    // Compute rows [begin, end) of `out`; threads may share the rows.
    void (*sum_f32)(const struct cpu_windows *w, int64_t begin, int64_t end);
    void (*sum_f64)(const struct cpu_windows *w, int64_t begin, int64_t end);
};

#endif // KERNELS_CPU_CONV_VECTORS_H
