// SPDX-License-Identifier: MIT
// The tiles of AMX, all of 16 rows of 64 bytes: four of them hold 32 by 32 sums, two hold
// operands of the rows and two operands of the columns. Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 2, LDTILECFG.
#ifndef KERNELS_CPU_AMX_H
#define KERNELS_CPU_AMX_H

#include <immintrin.h>
#include <stdint.h>

// Tile registers of the sums; 4 to 7 are the operands'.
#define SUMS_00 0
#define SUMS_01 1
#define SUMS_10 2
#define SUMS_11 3

#define TILE 512 // 16-bit elements of a tile: 1024 bytes

// gcc 12 does not know that tiles are loaded from memory and stored to it.
#define MEMORY __asm__ volatile("" ::: "memory")

struct amx_config { // the 64 bytes that LDTILECFG loads
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

// After _tile_release() a thread's tile registers are zeros, so context switches need not
// save them.
static inline void amx_begin(void)
{
    static const struct amx_config config = {.palette = 1,
                                             .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                             .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _Static_assert(sizeof(config) == 64, "what LDTILECFG reads");
    _tile_loadconfig(&config);
}

#endif // KERNELS_CPU_AMX_H
