#version 460
// SPDX-License-Identifier: MIT
// Rows of quantised weights as floats of 16 bits (OUT), in rows that follow each other, in the order
// of parts (quant.glsl): four parts an invocation. Of packed rows, adjacent ones are the sixteen that
// share memory.
#include "program/types.glsl"
#ifndef IS_BF16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint W_ODD = 0;     // 1: w begins at an odd byte
layout(constant_id = 1) const uint IS_PACKED = 0; // 1: rows are packed 16 by 16; 2: from a multiple of 4 bytes on; 3: and all of them
layout(std430, binding = 1) writeonly buffer Out { uvec4 d[]; } result;
layout(push_constant) uniform Args {
    uint rows, row_32s; // 32 elements of a row
    uint w_offset; // in units (quant.glsl)
} args;
#define W_BINDING 0
#define PAIRS_BINDING 2
#define HALVES OUT
bool w_odd()
{
    return W_ODD != 0u;
}
bool w_in_pairs()
{
    return IS_PACKED >= 2u;
}
#include "quant.glsl"

#define LOADS 4u // parts of an invocation

// 16 rows and 64 elements of each are 32 invocations'. The row of load i, which half of these and
// the part there. Adjacent invocations read adjacent memory.
uvec3 loaded_position(uint own, uint i)
{
    if (IS_PACKED != 0u)
        return uvec3(own % 16u, i / 2u, i % 2u * 2u + own / 16u);
    return uvec3(own / 8u + i * 4u, own / 4u % 2u, own % 4u);
}

void main()
{
    uint own = group_number() * 256u + gl_LocalInvocationIndex, across = (args.row_32s + 1u) / 2u;
    uint first_row = own / 32u / across * 16u, first_32 = own / 32u % across * 2u;
    uint num_packed = IS_PACKED == 0u ? 0u : args.rows / 16u * 16u;
    uvec4 read[LOADS];
    Head heads[LOADS];
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uvec3 position = loaded_position(own % 32u, i);
        uint row = min(first_row + position.x, args.rows - 1u);
        if (IS_PACKED == 3u)
            num_packed = row + 1u;
        Row from = weight_row(args.w_offset, row, args.row_32s * 32u, num_packed);
        uint of_row = min(first_32 + position.y, args.row_32s - 1u);
        read[i] = part_fetch(from, of_row, position.z);
        heads[i] = head_fetch(from, of_row);
    }
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uvec3 position = loaded_position(own % 32u, i);
        uint row = first_row + position.x, of_row = first_32 + position.y;
        if (row < args.rows && of_row < args.row_32s)
            result.d[(row * args.row_32s + of_row) * 4u + position.z] = part_floats(part_unpack(read[i], heads[i], of_row, position.z));
    }
}
