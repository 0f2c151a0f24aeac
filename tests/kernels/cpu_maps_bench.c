// SPDX-License-Identifier: MIT
// Times every loop over floats of every variant that this processor can run.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "cpu/cpu.h"
#include "cpu/ref/ops_ref.h"

static const struct {
    const char *name;
    int32_t operands;
} ops[] = {
#define ROW(name, text, operands, ...) {#name, operands},
#define FUSED(name, operands) {#name, operands},
    TN_EXPR_OPS(ROW) CPU_FUSED_OPS(FUSED)
#undef ROW
#undef FUSED
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// GB/s of operands and results in the first-level cache.
static void time_loop(const struct cpu_kernels *k, int32_t op, int32_t dtype)
{
    static unsigned char in[CPU_MAX_OPERANDS][8192], out[8192];
    const void *at[] = {in[0], in[1], in[2], in[3]};
    int64_t n = 512;
    uint32_t size = cpu_dtype_size(dtype);
    for (int32_t i = 0; i < ops[op].operands; i++)
        for (int64_t j = 0; j < n; j++) {
            double x = 0.1 + 0.8 * (double)rand() / RAND_MAX;
            cpu_ref_cast(TN_F64, dtype, in[i] + j * size, &x);
        }
    double best = INFINITY;
    for (int round = 0; round < 9; round++) {
        double begin = now_s();
        for (int i = 0; i < 300; i++)
            k->map[dtype][op](out, at, n, 0);
        double time = (now_s() - begin) / 300;
        best = time < best ? time : best;
    }
    printf("%-9s %-12s %s %7.1f GB/s %6.2f ns/element\n", k->name, ops[op].name,
           dtype == TN_F32 ? "f32" : "f64",
           (double)n * size * (ops[op].operands + 1) / best * 1e-9, best * 1e9 / (double)n);
}

int main(void)
{
    for (int32_t op = TN_EXPR_NEG; op < CPU_NUM_OPS; op++)
        for (int32_t dtype = TN_F32; dtype <= TN_F64; dtype++)
            for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
                if (((*k)->needs & cpu_features()) == (*k)->needs && (*k)->map[dtype][op])
                    time_loop(*k, op, dtype);
    return 0;
}
