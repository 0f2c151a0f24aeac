#version 460
// SPDX-License-Identifier: MIT
// Reductions over any axes of an array with any strides.
//
// OP_x: sum, mean, prod, max, min, argmax, logsumexp. IN, OUT: dtypes. ACC: the type of the
// accumulator's numbers. IS_COMPLEX: they are pairs. An output is computed by LANES invocations of a
// workgroup: by one, or by a power of two of them. With `splits` above 1 each output is reduced in
// parts, whose accumulators go to `partial`, and a second dispatch (FROM_PARTIAL) combines them.
#if defined(OP_max) || defined(OP_min)
#define NEED_MAX
#endif
#ifdef OP_logsumexp
#define NEED_EXP
#define NEED_LOG
#endif
#include "types.glsl"
#include "scalar.glsl"
#include "functions.glsl"
#include "functions_f64.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint NUM_KEPT = 1;    // axes, first in `extent` and `stride`
layout(constant_id = 1) const uint NUM_REDUCED = 1; // axes, after them
layout(constant_id = 2) const uint LANES = 1;
layout(constant_id = 3) const uint TO_PARTIAL = 0;
layout(constant_id = 4) const uint FROM_PARTIAL = 0;

struct accumulator {
    ACC value;
#if defined(OP_argmax)
    uint index;
#elif defined(OP_logsumexp)
    ACC sum; // of exp(x - value)
#endif
};

layout(std430, binding = 0) readonly buffer In { PASTE(S_, IN) d[]; } source;
layout(std430, binding = 1) writeonly buffer Out { PASTE(S_, OUT) d[]; } result;
layout(std430, binding = 2) buffer Partial { accumulator d[]; } partial;
layout(push_constant) uniform Args {
    uint num_outputs, num_reduced, splits, in_offset, out_offset;
    uint extent[8];
    uint stride[8];
} args;

shared accumulator lanes[256];

// Loads in flight. They hide the latency of memory: a sum waits for each of its terms.
#define AT_ONCE 8u

accumulator combine(accumulator a, accumulator b)
{
#if defined(OP_sum) || defined(OP_mean)
    a.value += b.value;
    return a;
#elif defined(OP_prod) && defined(IS_COMPLEX)
    ACC x = a.value, y = b.value;
    a.value = ACC(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
    return a;
#elif defined(OP_prod)
    a.value *= b.value;
    return a;
#elif defined(OP_max)
    a.value = op_MAX(a.value, b.value);
    return a;
#elif defined(OP_min)
    a.value = op_MIN(a.value, b.value);
    return a;
#elif defined(OP_argmax)
    // The first of equal elements; a NaN is larger than every number.
#ifdef IS_FLOAT
    bool a_nan = is_nan(a.value), b_nan = is_nan(b.value);
    bool b_larger = (b_nan && !a_nan) || (!a_nan && b.value > a.value);
    bool equal = (a_nan && b_nan) || a.value == b.value;
#else
    bool b_larger = b.value > a.value;
    bool equal = a.value == b.value;
#endif
    if (b_larger || (equal && b.index < a.index))
        return b;
    return a;
#else
    if (is_nan(a.value) || is_nan(b.value))
        return accumulator(ACC(not_a_number()), ACC(not_a_number()));
    ACC high = max(a.value, b.value);
    if (is_inf(high)) // the sum is infinite, or has no terms yet
        return accumulator(high, a.value == high && b.value == high ? a.sum + b.sum
                                 : a.value == high                  ? a.sum
                                                                    : b.sum);
    ACC sum = a.sum * op_EXP(a.value - high) + b.sum * op_EXP(b.value - high);
    return accumulator(high, sum);
#endif
}

accumulator load_element(uint at, uint index)
{
    ACC x = ACC(PASTE(FROM_, IN)(PASTE(W_, IN)(source.d[at])));
#if defined(OP_argmax)
    return accumulator(x, index);
#elif defined(OP_logsumexp)
    return accumulator(x, ACC(1));
#else
    return accumulator(x);
#endif
}

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

accumulator load_one(uint kept_at, uint output_index, uint r)
{
    if (FROM_PARTIAL != 0u)
        return partial.d[output_index + args.num_outputs * r];
    return load_element(kept_at + walk(r, NUM_KEPT, NUM_REDUCED), r);
}

void write_result(uint unit, uint output_index, accumulator a)
{
    if (TO_PARTIAL != 0u) {
        partial.d[unit] = a;
        return;
    }
#if defined(OP_argmax)
    result.d[args.out_offset + output_index] = int64_t(a.index);
#elif defined(OP_logsumexp)
    ACC y = is_inf(a.value) ? a.value : a.value + op_LOG(a.sum);
    result.d[args.out_offset + output_index] = PASTE(S_, OUT)(PASTE(TO_, OUT)(y));
#elif defined(OP_mean)
    uint count = FROM_PARTIAL != 0u ? args.extent[0] : args.num_reduced;
    result.d[args.out_offset + output_index] =
        PASTE(S_, OUT)(PASTE(TO_, OUT)(a.value / ACC(count)));
#else
    result.d[args.out_offset + output_index] =
        PASTE(S_, OUT)(PASTE(TO_, OUT)(PASTE(C_, OUT)(a.value)));
#endif
}

// The result of a reduction of no elements: the identity. max, min and argmax have none and are
// never dispatched so.
accumulator neutral()
{
#if defined(OP_argmax)
    return accumulator(ACC(0), 0u);
#elif defined(OP_logsumexp)
    return accumulator(ACC(-infinity()), ACC(0));
#elif defined(OP_prod) && defined(IS_COMPLEX)
    return accumulator(ACC(1, 0));
#elif defined(OP_prod)
    return accumulator(ACC(1));
#else
    return accumulator(ACC(0));
#endif
}

// Splits are chosen so that no part of a reduction with elements is empty.
void main()
{
    uint number = gl_LocalInvocationIndex;
    uint unit = group_number() * (256u / LANES) + number / LANES;
    uint lane = number % LANES;
    bool is_unit = unit < args.num_outputs * args.splits;
    if (LANES == 1u && !is_unit)
        return;
    unit = is_unit ? unit : 0u; // and takes part in barriers
    uint output_index = unit % args.num_outputs;
    uint split = unit / args.num_outputs;
    uint chunk = (args.num_reduced + args.splits - 1u) / args.splits;
    uint begin = split * chunk;
    uint end = min(begin + chunk, args.num_reduced);
    uint kept_at = args.in_offset + walk(output_index, 0u, NUM_KEPT);

    uint r = begin + lane;
    bool has = r < end;
    accumulator a = neutral();
    if (has)
        a = load_one(kept_at, output_index, r);
    r += LANES;
    uint left = r < end ? (end - r + LANES - 1u) / LANES : 0u;
    for (; left >= AT_ONCE; left -= AT_ONCE, r += AT_ONCE * LANES) {
        accumulator x[AT_ONCE];
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++)
            x[i] = load_one(kept_at, output_index, r + i * LANES);
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++)
            a = combine(a, x[i]);
    }
    for (; left > 0u; left--, r += LANES)
        a = combine(a, load_one(kept_at, output_index, r));
    if (LANES == 1u) {
        write_result(unit, output_index, a);
        return;
    }
    uint count = min(LANES, end - begin);
    lanes[number] = a;
    for (uint width = LANES / 2u; width > 0u; width >>= 1) {
        barrier();
        if (lane < width && lane + width < count)
            lanes[number] = combine(lanes[number], lanes[number + width]);
    }
    if (is_unit && lane == 0u)
        write_result(unit, output_index, lanes[number]);
}
