#version 460
// SPDX-License-Identifier: MIT
// x as two floats of 16 bits (FLOATS) each, which cooperative matrices multiply (quant_halves_matrix.comp):
// the nearest one, and the nearest one to what is left. All rows of the first lie before those of the
// second. A row of f16 is multiplied by a power of two, so that its greatest magnitude is from 2^14 on
// below 2^15; the factor that undoes this is written behind the rows. A workgroup a row.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint X_ALIGNED = 0; // 1: x begins at a multiple of 4 elements
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 1) writeonly buffer Out { uvec4 d[]; } result;
layout(std430, binding = 2) readonly buffer Fours { vec4 d[]; } x_fours; // x
layout(push_constant) uniform Args {
    uint rows, parts;         // eights of a row
    uint x_offset, scales_at; // of the result
} args;

shared uint most;

vec4 load_four(uint at)
{
    if (X_ALIGNED != 0u)
        return x_fours.d[at / 4u];
    return vec4(x_source.d[at], x_source.d[at + 1u], x_source.d[at + 2u], x_source.d[at + 3u]);
}

// The factor of a row. As integers the bits of magnitudes are in their order.
float find_factor(uint row)
{
    uint own = 0u;
    for (uint part = gl_LocalInvocationIndex; part < args.parts; part += 256u) {
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

// Four elements: the first floats in .xy, the second ones in .zw.
uvec4 four(vec4 x)
{
    uvec4 first, second;
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        first[i] = PASTE(TO_, FLOATS)(x[i]);
        second[i] = PASTE(TO_, FLOATS)(x[i] - PASTE(FROM_, FLOATS)(first[i]));
    }
    return uvec4(first.xz | first.yw << 16, second.xz | second.yw << 16);
}

void main()
{
    uint row = group_number();
    if (row >= args.rows)
        return;
#ifdef IS_BF16
    float factor = 1.0;
#else
    float factor = find_factor(row);
#endif
    for (uint part = gl_LocalInvocationIndex; part < args.parts; part += 256u) {
        uint to = row * args.parts + part, at = args.x_offset + to * 8u;
        uvec4 low = four(load_four(at) * factor), high = four(load_four(at + 4u) * factor);
        result.d[to] = uvec4(low.xy, high.xy);
        result.d[args.rows * args.parts + to] = uvec4(low.zw, high.zw);
    }
}
