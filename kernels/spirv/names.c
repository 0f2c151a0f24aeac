// SPDX-License-Identifier: MIT
// Names of instructions, for error messages. Programs that need operands alone do not link
// this file.
#include "opcode.h"

#include <stddef.h>

static const char names[] =
#define ROW(name, number, pattern) #name "\0"
    SPIRV_OPS(ROW)
#undef ROW
    ;

const char *spirv_op_name(uint32_t op)
{
    uint32_t row = spirv_op_row(op);
    if (row == SPIRV_NO_ROW)
        return NULL;
    const char *name = names;
    for (; row > 0; row--)
        while (*name++)
            ;
    return name;
}
