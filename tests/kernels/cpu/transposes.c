// SPDX-License-Identifier: MIT
// Transposes of every variant that this processor can run: each element lies where it
// should, and nothing outside the result is written.
#include "check.h"

#include <time.h>
#include "cpu/cpu.h"

static uint64_t seed, state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 8;
}

static void draw_seed(void)
{
    seed = check_seed((uint64_t)time(NULL) % 1000000 + 1);
    state = seed * UINT64_C(0x9e3779b97f4a7c15);
}

static bool runs_here(const struct cpu_kernels *k)
{
    return (k->needs & cpu_features()) == k->needs;
}

TestSuite(cpu_transposes, .init = draw_seed);

#define MAX_SIDE 150

static void check_transpose(const struct cpu_kernels *k, uint32_t size_log2, int64_t rows,
                            int64_t columns)
{
    static unsigned char from[(MAX_SIDE + 3) * (MAX_SIDE + 3) * 8], to[sizeof(from)];
    int64_t in = columns + (int64_t)(draw() % 3), out = rows + (int64_t)(draw() % 3);
    size_t size = (size_t)1 << size_log2;
    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (unsigned char)draw();
    memset(to, 0xa5, sizeof(to));
    k->transpose[size_log2](to + size, out, from, in, rows, columns);
    for (int64_t c = 0; c <= columns; c++)
        for (int64_t r = 0; r < out; r++) {
            const unsigned char *got_at = to + (size_t)(1 + c * out + r) * size;
            bool inside = c < columns && r < rows;
            if (inside ? memcmp(got_at, from + (size_t)(r * in + c) * size, size) != 0
                       : *got_at != 0xa5)
                cr_fatal("%s transpose of %lldx%lld, %zu bytes each, seed %llu: [%lld, "
                         "%lld] is wrong",
                         k->name, (long long)rows, (long long)columns, size,
                         (unsigned long long)seed, (long long)r, (long long)c);
        }
    for (size_t i = 0; i < size; i++)
        cr_assert(eq(u8, to[i], 0xa5));
}

Test(cpu_transposes, transposes_turn_matrices)
{
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        for (uint32_t size_log2 = 0; size_log2 < 4 && runs_here(*k); size_log2++)
            for (int round = 0; round < 60; round++) {
                uint64_t most = round % 2 ? MAX_SIDE : 9;
                check_transpose(*k, size_log2, (int64_t)(draw() % (most + 1)),
                                (int64_t)(draw() % (most + 1)));
            }
}
