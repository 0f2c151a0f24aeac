#version 460
// SPDX-License-Identifier: MIT
// x with a border of one value: each element of the result is x's at its position, or the value. Both
// are contiguous; elements of SIZE bytes.
#include "program/types.glsl"
#include "program/divide.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint RANK = 1;

#define S_1 uint8_t
#define S_2 uint16_t
#define S_4 uint
#define S_8 uvec2
#define S_16 uvec4
#define W_1 uint // in registers
#define W_2 uint
#define W_4 uint
#define W_8 uvec2
#define W_16 uvec4
#define FILL_1 args.fill[0]
#define FILL_2 args.fill[0]
#define FILL_4 args.fill[0]
#define FILL_8 uvec2(args.fill[0], args.fill[1])
#define FILL_16 uvec4(args.fill[0], args.fill[1], args.fill[2], args.fill[3])
#define S PASTE(S_, SIZE)
#define W PASTE(W_, SIZE)
layout(std430, binding = 0) readonly buffer In { S d[]; } source;
layout(std430, binding = 1) writeonly buffer Out { S d[]; } result;
layout(push_constant) uniform Args {
    uint n, in_offset, out_offset;
    uint extent[3]; // of axes 1 to 3 of the result
    uint size[4];   // extents of x
    uint before[4];
    uint by[4]; // what divides by the extents of the last axis, and of the one before
    uint fill[4];
} args;

#define AT_ONCE 4u

// rest / the extent of an axis.
uint quotient(uint rest, uint axis)
{
    uint from_last = RANK - 1u - axis;
    return from_last < 2u ? divide(rest, args.by[2u * from_last], args.by[2u * from_last + 1u])
                          : rest / args.extent[axis - 1u];
}

// The element of x at the position of element i, or x's first one; whether there is one.
bool find(uint i, out uint at)
{
    uint rest = i, step = 1u, sum = 0u;
    bool is_inside = true;
    for (uint axis = RANK; axis-- > 0u;) {
        uint next = axis > 0u ? quotient(rest, axis) : 0u;
        uint c = (axis > 0u ? rest - next * args.extent[axis - 1u] : rest) - args.before[axis];
        is_inside = is_inside && c < args.size[axis];
        sum += c * step;
        step *= args.size[axis];
        rest = next;
    }
    at = is_inside ? sum : 0u;
    return is_inside;
}

void main()
{
    uint first = group_number() * (AT_ONCE * 256u) + gl_LocalInvocationIndex;
    W x[AT_ONCE];
    bool is_inside[AT_ONCE];
    [[unroll]] for (uint k = 0u; k < AT_ONCE; k++) {
        uint at;
        is_inside[k] = find(min(first + k * 256u, args.n - 1u), at);
        x[k] = W(source.d[args.in_offset + at]);
    }
    [[unroll]] for (uint k = 0u; k < AT_ONCE; k++) {
        if (!is_inside[k])
            x[k] = PASTE(FILL_, SIZE);
        if (first + k * 256u < args.n)
            result.d[args.out_offset + first + k * 256u] = S(x[k]);
    }
}
