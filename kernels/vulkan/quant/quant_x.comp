#version 460
// SPDX-License-Identifier: MIT
// x as floats of 16 bits (OUT), which cooperative matrices multiply, in the order of parts and of
// part_halves() (quant.glsl): a workgroup a row. Rows follow each other; with TILED they lie in tiles
// of 16 rows and 16 elements, each a row of 32 bytes, and a row is multiplied by a power of two, so
// that its greatest magnitude is from 2^14 on below 2^15; the factor that undoes this is written behind the rows.
#include "program/types.glsl"
layout(local_size_x = 512) in;
layout(constant_id = 0) const uint TILED = 0;
layout(constant_id = 1) const uint X_ALIGNED = 0; // 1: x lies in memory from a multiple of 4 elements on
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 1) writeonly buffer Out { uvec4 d[]; } result;
layout(std430, binding = 2) readonly buffer Fours { vec4 d[]; } x_fours; // x
layout(push_constant) uniform Args {
    uint rows, parts; // of a row
    uint x_offset, scales_at; // of the result
} args;

shared uint most;

vec4 load_four(uint at)
{
    if (X_ALIGNED != 0u)
        return x_fours.d[at / 4u];
    return vec4(x_source.d[at], x_source.d[at + 1u], x_source.d[at + 2u], x_source.d[at + 3u]);
}

uvec2 four(vec4 x)
{
    uvec4 bits;
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        bits[i] = PASTE(TO_, OUT)(x[i]);
    return bits.xy | bits.zw << 16;
}

// The factor of a row. As integers the bits of magnitudes are in their order.
float find_factor(uint row)
{
    uint own = 0u;
    for (uint part = gl_LocalInvocationIndex; part < args.parts; part += 512u) {
        uint at = args.x_offset + (row * args.parts + part) * 8u;
        uvec4 sizes = floatBitsToUint(load_four(at)) & 0x7fffffffu;
        sizes = max(sizes, floatBitsToUint(load_four(at + 4u)) & 0x7fffffffu);
        own = max(own, max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)));
    }
    if (gl_LocalInvocationIndex == 0u)
        most = 0u;
    barrier();
    atomicMax(most, own);
    barrier();
    uint exponent = clamp(most >> 23, 15u, 254u);
    if (gl_LocalInvocationIndex == 0u)
        result.d[args.scales_at + row / 4u][row % 4u] = exponent - 14u << 23;
    return uintBitsToFloat(268u - exponent << 23);
}

void main()
{
    uint row = group_number();
    if (row >= args.rows)
        return;
    float factor = TILED != 0u ? find_factor(row) : 1.0;
    for (uint part = gl_LocalInvocationIndex; part < args.parts; part += 512u) {
        uint at = args.x_offset + (row * args.parts + part / 4u * 4u) * 8u + part % 4u * 4u;
        uint to = TILED != 0u ? (row / 16u * (args.parts / 2u) + part / 2u) * 32u + row % 16u * 2u + part % 2u
                              : row * args.parts + part;
        result.d[to] = uvec4(four(load_four(at) * factor), four(load_four(at + 16u) * factor));
    }
}
