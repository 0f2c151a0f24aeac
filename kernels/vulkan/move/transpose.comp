#version 460
// SPDX-License-Identifier: MIT
// Copies elements of SIZE bytes to another order of axes. The source is adjacent along the axis
// that is axis `fast` of the copy; the copy is adjacent along its last axis.
//
// A workgroup copies a tile of TILE x TILE of these two axes by way of shared memory, so that both
// reads and writes are coalesced.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint NUM_OTHER = 0; // axes beside the two

#define S_1 uint8_t
#define S_2 uint16_t
#define S_4 uint
#define S_8 uvec2
#define S_16 uvec4
#define W_1 uint
#define W_2 uint
#define W_4 uint
#define W_8 uvec2
#define W_16 uvec4
#define S PASTE(S_, SIZE)
#define W PASTE(W_, SIZE)
layout(std430, binding = 0) readonly buffer From { S d[]; } from;
layout(std430, binding = 1) writeonly buffer To { S d[]; } to;

layout(push_constant) uniform Args {
    uint num_tiles;         // workgroups
    uint fast, last;        // extents of the two axes
    uint from_last, to_fast; // strides; from_fast and to_last are 1
    uint from_offset, to_offset;
    uint extent[6];
    uint from_stride[6];
    uint to_stride[6];
} args;

// Columns are permuted in each row, so that neither a row nor a column has two elements in one
// bank of shared memory.
shared W tile[TILE * TILE];
uint tile_index(uint row, uint column)
{
    return row * TILE + (column ^ (row % 32u));
}

#define ROWS (256u / TILE) // that the workgroup reads at a time

void main()
{
    uint rest = group_number();
    if (rest >= args.num_tiles)
        return;
    uint tiles_last = (args.last + TILE - 1u) / TILE;
    uint tiles_fast = (args.fast + TILE - 1u) / TILE;
    uint next = rest / tiles_last;
    uint last = (rest - next * tiles_last) * TILE;
    rest = next;
    next = rest / tiles_fast;
    uint fast = (rest - next * tiles_fast) * TILE;
    rest = next;
    uint from_at = args.from_offset, to_at = args.to_offset;
    for (uint axis = NUM_OTHER; axis-- > 0u;) {
        next = axis > 0u ? rest / args.extent[axis] : 0u;
        uint c = rest - next * args.extent[axis];
        from_at += c * args.from_stride[axis];
        to_at += c * args.to_stride[axis];
        rest = next;
    }
    uint x = gl_LocalInvocationIndex % TILE, y = gl_LocalInvocationIndex / TILE;
    [[unroll]] for (uint i = 0u; i < TILE; i += ROWS)
        if (fast + x < args.fast && last + y + i < args.last)
            tile[tile_index(y + i, x)] =
                W(from.d[from_at + (last + y + i) * args.from_last + fast + x]);
    barrier();
    [[unroll]] for (uint i = 0u; i < TILE; i += ROWS)
        if (last + x < args.last && fast + y + i < args.fast)
            to.d[to_at + (fast + y + i) * args.to_fast + last + x] =
                S(tile[tile_index(x, y + i)]);
}
