// SPDX-License-Identifier: MIT
#include "opcode.h"

#include <stddef.h>

enum {
#define ROW(name, number, pattern) ROW_##name,
    SPIRV_OPS(ROW) NUM_ROWS
#undef ROW
};

enum { CORE_END = 512 };

// Patterns are arrays within the rows: a table of pointers would need relocations.
static const struct {
    uint16_t op;
    char pattern[12];
} rows[] = {
#define ROW(name, number, pattern) {number, pattern},
    SPIRV_OPS(ROW)
#undef ROW
};

// For each instruction's number below CORE_END: its row + 1, or 0.
static const uint16_t core[CORE_END] = {
#define ROW(name, number, pattern) [number] = ROW_##name + 1,
    SPIRV_OPS_CORE(ROW)
#undef ROW
};

uint32_t spirv_op_row(uint32_t op)
{
    if (op < CORE_END)
        return core[op] ? core[op] - 1U : SPIRV_NO_ROW;
    uint32_t low = 0, high = NUM_ROWS;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (rows[middle].op < op)
            low = middle + 1;
        else
            high = middle;
    }
    return low < NUM_ROWS && rows[low].op == op ? low : SPIRV_NO_ROW;
}

const char *spirv_pattern(uint32_t op)
{
    uint32_t row = spirv_op_row(op);
    return row != SPIRV_NO_ROW ? rows[row].pattern : NULL;
}
