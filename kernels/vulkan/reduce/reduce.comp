#version 460
// SPDX-License-Identifier: MIT
// Reductions over any axes of an array with any strides: reduce_op.glsl says which. With `splits`
// above 1 each output is reduced in parts, whose accumulators go to `partial`, and a second dispatch
// (FROM_PARTIAL) combines them.
#if defined(OP_max) || defined(OP_min)
#define NEED_MAX
#endif
#ifdef OP_logsumexp
#define NEED_EXP
#define NEED_LOG
#endif
#include "program/types.glsl"
#include "program/scalar.glsl"
#include "program/functions.glsl"
#include "program/functions_f64.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint NUM_KEPT = 1;       // axes, first in `extent` and `stride`
layout(constant_id = 1) const uint NUM_REDUCED_AXES = 1; // after them
layout(constant_id = 2) const uint LANES = 1;
layout(constant_id = 3) const uint TO_PARTIAL = 0;
layout(constant_id = 4) const uint FROM_PARTIAL = 0;

#include "reduce_op.glsl"

layout(std430, binding = 0) readonly buffer In { PASTE(S_, IN) d[]; } source;
layout(std430, binding = 1) writeonly buffer Out { PASTE(S_, OUT) d[]; } result;
layout(std430, binding = 2) buffer Partial { accumulator d[]; } partial;
layout(push_constant) uniform Args {
    uint num_outputs, num_reduced, splits, in_offset, out_offset;
    uint extent[8];
    uint stride[8];
} args;
#define NUM_OUTPUTS args.num_outputs
#define NUM_REDUCED args.num_reduced
#define SPLITS args.splits

uint walk(uint rest, uint first, uint count)
{
    uint at = 0u;
    for (uint axis = first + count; axis-- > first;) {
        uint next = axis > first ? rest / args.extent[axis] : 0u;
        at += (rest - next * args.extent[axis]) * args.stride[axis];
        rest = next;
    }
    return at;
}

#define neutral_all neutral
#define position uint
#define loaded accumulator
#define taken(from, x, r) (x)

uint position_of(uint output_index)
{
    return args.in_offset + walk(output_index, 0u, NUM_KEPT);
}

accumulator load(uint kept_at, uint output_index, uint r)
{
    if (FROM_PARTIAL != 0u)
        return partial.d[output_index + args.num_outputs * r];
    return accumulate(PASTE(W_, IN)(source.d[kept_at + walk(r, NUM_KEPT, NUM_REDUCED_AXES)]), r);
}

void write_result(uint unit, uint output_index, accumulator a)
{
    if (TO_PARTIAL != 0u)
        partial.d[unit] = a;
    else
        result.d[args.out_offset + output_index] =
            PASTE(S_, OUT)(result_of(a, FROM_PARTIAL != 0u ? args.extent[0] : args.num_reduced));
}

#include "reduce_loop.glsl"
