#version 460
// SPDX-License-Identifier: MIT
// Running sums, products, maxima and minima along an axis of outer x n x inner elements, all
// contiguous. OP_x: sum, prod, max, min. IN, OUT: dtypes. ACC: the type that is computed in.
//
// COLUMNS: an invocation runs along a column; adjacent ones read adjacent elements. Otherwise a
// workgroup runs along a row, TILE elements at a time, and a few long rows are cut into parts: a
// first dispatch (TOTALS) writes the result of each part to `totals`, and in a second one each
// workgroup begins with the result of the parts before its own.
#if defined(OP_max) || defined(OP_min)
#define NEED_MAX
#endif
#include "program/types.glsl"
#include "program/scalar.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint COLUMNS = 0;
layout(constant_id = 1) const uint TOTALS = 0;
layout(constant_id = 2) const uint REVERSE = 0;
layout(std430, binding = 0) readonly buffer In { PASTE(S_, IN) d[]; } source;
layout(std430, binding = 1) writeonly buffer Out { PASTE(S_, OUT) d[]; } result;
layout(std430, binding = 2) buffer Totals { ACC d[]; } totals;
layout(push_constant) uniform Args {
    uint outer, n, inner;
    uint parts, part; // of a row: their number, at most 256, and elements
    uint in_offset, out_offset;
} args;

#define EACH 4u // elements of an invocation in a tile
#define TILE 1024u

shared ACC sums[256];

#define LEAST_float (-infinity())
#define LEAST_double double(-infinity())
#define LEAST_int int(0x80000000u)
#define LEAST_uint 0u
#define LEAST_int64_t I64_LEAST
#define LEAST_uint64_t uint64_t(0)
#define GREATEST_float infinity()
#define GREATEST_double double(infinity())
#define GREATEST_int 0x7fffffff
#define GREATEST_uint 0xffffffffu
#define GREATEST_int64_t I64_GREATEST
#define GREATEST_uint64_t packUint2x32(uvec2(0xffffffffu))

// The neutral element.
ACC neutral()
{
#if defined(OP_sum)
    return ACC(0);
#elif defined(OP_prod)
    return ACC(1);
#elif defined(OP_max)
    return PASTE(LEAST_, ACC);
#else
    return PASTE(GREATEST_, ACC);
#endif
}

ACC next(ACC a, ACC x)
{
#if defined(OP_sum)
    return a + x;
#elif defined(OP_prod)
    return a * x;
#elif defined(OP_max)
    return op_MAX(a, x);
#else
    return op_MIN(a, x);
#endif
}

// Element i of a row that begins at `base`; a reversed row is read from its end.
uint position(uint base, uint i)
{
    return base + (REVERSE != 0u ? args.n - 1u - i : i) * args.inner;
}

ACC load(uint at)
{
    return ACC(PASTE(FROM_, IN)(PASTE(W_, IN)(source.d[args.in_offset + at])));
}

void store(uint at, ACC x)
{
    result.d[args.out_offset + at] = PASTE(S_, OUT)(PASTE(TO_, OUT)(PASTE(C_, OUT)(x)));
}

uint base_of(uint row)
{
    uint first = row / args.inner;
    return first * args.n * args.inner + (row - first * args.inner);
}

void run_column(uint row)
{
    uint base = base_of(row);
    ACC a = neutral();
    for (uint i = 0u; i < args.n; i++) {
        a = next(a, load(position(base, i)));
        store(position(base, i), a);
    }
}

// Replaces sums[lane] by that of lanes 0 .. lane.
void run_lanes(uint lane)
{
    for (uint width = 1u; width < 256u; width <<= 1) {
        barrier();
        ACC left = lane >= width ? sums[lane - width] : neutral();
        barrier();
        sums[lane] = next(left, sums[lane]);
    }
    barrier();
}

// Runs along elements begin .. end - 1 of a row, from `before` on. Gives the last result.
ACC run_part(uint base, uint begin, uint end, ACC before)
{
    uint lane = gl_LocalInvocationIndex;
    for (uint tile = begin; tile < end; tile += TILE) {
        ACC x[EACH];
        uint first = tile + lane * EACH;
        [[unroll]] for (uint k = 0u; k < EACH; k++) {
            x[k] = neutral();
            if (first + k < end)
                x[k] = load(position(base, first + k));
            if (k > 0u)
                x[k] = next(x[k - 1u], x[k]);
        }
        barrier();
        sums[lane] = x[EACH - 1u];
        run_lanes(lane);
        ACC own = lane > 0u ? next(before, sums[lane - 1u]) : before;
        before = next(before, sums[255]);
        if (TOTALS == 0u)
            [[unroll]] for (uint k = 0u; k < EACH; k++)
                if (first + k < end)
                    store(position(base, first + k), next(own, x[k]));
    }
    return before;
}

void main()
{
    uint lane = gl_LocalInvocationIndex, unit = group_number();
    if (COLUMNS != 0u) {
        unit = unit * 256u + lane;
        if (unit < args.outer * args.inner)
            run_column(unit);
        return;
    }
    if (unit >= args.outer * args.inner * args.parts)
        return;
    uint row = unit / args.parts, part = unit - row * args.parts;
    uint begin = part * args.part, end = min(begin + args.part, args.n);
    ACC before = neutral();
    if (args.parts > 1u && TOTALS == 0u) {
        sums[lane] = lane < part ? totals.d[row * args.parts + lane] : neutral();
        run_lanes(lane);
        before = sums[255];
    }
    before = run_part(base_of(row), begin, end, before);
    if (TOTALS != 0u && lane == 0u)
        totals.d[unit] = before;
}
