// SPDX-License-Identifier: MIT
#include "opcode.h"
#include "spirv.h"

#include <stddef.h>

enum {
#define ROW(name, number, pattern) ROW_##name,
    SPIRV_OPS(ROW) NUM_ROWS
#undef ROW
};

enum { CORE_END = 512 };

// Texts inside of the rows: a table of pointers would need relocations.
static const struct {
    uint16_t op;
    char pattern[12];
} rows[] = {
#define ROW(name, number, pattern) {number, pattern},
    SPIRV_OPS(ROW)
#undef ROW
};

// Rows by number, from 1: 0 is no row.
static const uint16_t core[CORE_END] = {
#define ROW(name, number, pattern) [number] = ROW_##name + 1,
    SPIRV_OPS_CORE(ROW)
#undef ROW
};

static const char names[] =
#define ROW(name, number, pattern) #name "\0"
    SPIRV_OPS(ROW)
#undef ROW
    ;

// NUM_ROWS: there is none.
static uint32_t row_of(uint32_t op)
{
    if (op < CORE_END)
        return core[op] ? core[op] - 1U : NUM_ROWS;
    uint32_t low = 0, high = NUM_ROWS;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (rows[middle].op < op)
            low = middle + 1;
        else
            high = middle;
    }
    return low < NUM_ROWS && rows[low].op == op ? low : NUM_ROWS;
}

const char *spirv_pattern(uint32_t op)
{
    uint32_t row = row_of(op);
    return row < NUM_ROWS ? rows[row].pattern : NULL;
}

// Item `index` of texts one behind the other.
static const char *text_at(const char *text, uint32_t index)
{
    for (; index > 0; index--)
        while (*text++)
            ;
    return text;
}

const char *spirv_op_name(uint32_t op)
{
    uint32_t row = row_of(op);
    return row < NUM_ROWS ? text_at(names, row) : NULL;
}

static const uint16_t capabilities[] = {
#define CAPABILITY(name, number) number,
    SPIRV_CAPABILITIES(CAPABILITY)
#undef CAPABILITY
};

static const char capability_names[] =
#define CAPABILITY(name, number) #name "\0"
    SPIRV_CAPABILITIES(CAPABILITY)
#undef CAPABILITY
    ;

const char *spirv_capability_name(uint32_t capability)
{
    for (uint32_t i = 0; i < sizeof(capabilities) / sizeof(*capabilities); i++)
        if (capabilities[i] == capability)
            return text_at(capability_names, i);
    return NULL;
}
