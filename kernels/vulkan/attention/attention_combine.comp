#version 460
// SPDX-License-Identifier: MIT
// The output of attention whose keys were computed in splits: see attention.comp, and there IN and
// VECTORS. SINKS: each head has a score more, of no key.
#include "program/types.glsl"
#include "program/scalar.glsl"
#include "program/fours.glsl"
#define GROUP 256u
#define MOST_SPLITS 64u
#define AHEAD 4u // loads at a time
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer Parts { vec4 d[]; } sums;
layout(std430, binding = 1) writeonly buffer Out { ELEMENT d[]; } result;
#ifdef SINKS
layout(std430, binding = 2) readonly buffer Sinks { PASTE(S_, IN) d[]; } sinks;
#endif
layout(push_constant) uniform Args {
    uint rows, width, splits, out_offset;
#ifdef SINKS
    uint queries, heads, sinks_offset, sinks_stride;
#endif
} args;

shared vec2 states[MOST_SPLITS]; // the greatest score and the sum of weights; then their scale
shared vec4 exchange[GROUP];

// A row for each workgroup. The sums of split p of a row are (width + 3) / 4 vectors of values, and
// one of the greatest score and the sum of weights. Invocations share the splits of a column.
void main()
{
    uint lane = gl_LocalInvocationIndex, row = group_number();
    uint columns = (args.width + 3u) / 4u, pitch = columns + 1u, lanes = 16u;
    while (lanes < columns)
        lanes *= 2u;
    uint column = lane % lanes, shares = GROUP / lanes;
    uint first = row * args.splits * pitch;
    if (row >= args.rows)
        return;
    if (lane < args.splits)
        states[lane] = sums.d[first + lane * pitch + columns].xy;
    barrier();
    float most = -infinity(), sum = 0.0;
    for (uint p = 0u; p < args.splits; p++)
        most = max(most, states[p].x);
#ifdef SINKS
    uint sink_at = args.sinks_offset + row / args.queries % args.heads * args.sinks_stride;
    float sink = PASTE(FROM_, IN)(PASTE(W_, IN)(sinks.d[sink_at]));
    most = max(most, sink);
    sum = sink == most ? 1.0 : exp(sink - most);
#endif
    barrier();
    if (lane < args.splits) {
        vec2 state = states[lane];
        // A split without keys does not count; a split whose sum is NaN does.
        bool is_whole = state.x == most || is_nan(state.y);
        states[lane].x = state.y == 0.0 ? 0.0 : is_whole ? 1.0 : exp(state.x - most);
    }
    barrier();
    for (uint p = 0u; p < args.splits; p++)
        sum += states[p].x == 0.0 ? 0.0 : states[p].y * states[p].x;
    vec4 values = vec4(0);
    for (uint p = lane / lanes; p < args.splits && column < columns; p += shares * AHEAD) {
        vec4 next[AHEAD];
        [[unroll]] for (uint i = 0u; i < AHEAD; i++) {
            uint at = p + i * shares;
            bool has_split = at < args.splits && states[min(at, args.splits - 1u)].x != 0.0;
            next[i] = has_split ? sums.d[first + at * pitch + column] : vec4(0);
        }
        [[unroll]] for (uint i = 0u; i < AHEAD; i++)
            values += next[i] * states[min(p + i * shares, args.splits - 1u)].x;
    }
    exchange[lane] = values;
    barrier();
    if (lane >= columns)
        return;
    for (uint i = 1u; i < shares; i++)
        values += exchange[lane + i * lanes];
    values = sum == 0.0 ? vec4(0) : values / sum;
    uint at = args.out_offset + row * args.width + column * 4u;
    STORE(at, args.out_offset + (row + 1u) * args.width, values);
}
