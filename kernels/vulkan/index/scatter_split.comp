#version 460
// SPDX-License-Identifier: MIT
// result[index] += updates[m] for many updates of a short vector, which are added in their order: they
// are moved first to where those of an element lie behind each other, in order.
//
//   OP_count  turns indices into keys of 16 bits, `extent` where they are out of range, and counts
//             these in each tile of TILE updates; INDEX: an integer dtype
//   OP_scan   turns the counts of an element into sums over the tiles before, and totals
//   OP_bases  turns totals into sums over the elements before
//   OP_write  moves updates, elements of SIZE bytes
//   OP_sum    adds the updates of each element; IN: a dtype
//
// Counts of a tile lie behind each other; totals and bases, and the sum of all, behind all counts.
#extension GL_KHR_shader_subgroup_basic : require
#include "program/types.glsl"
#ifdef OP_write
layout(local_size_x = 128) in;
#else
layout(local_size_x = 256) in;
#endif
layout(constant_id = 0) const uint SHARED_WORDS = 1; // OP_count: at least extent; OP_write: 8 * extent
layout(constant_id = 1) const uint BY_SUBGROUP = 0;  // 1: 32 successive invocations are one subgroup
layout(push_constant) uniform Args {
    uint count, first; // updates of this part, and where it begins
    uint extent, tiles;
    uint totals, bases; // where they begin
    uint index_offset, update_offset, out_offset;
} args;

#define TILE 8192u

#if defined(OP_count)
layout(std430, binding = 0) readonly buffer Index { PASTE(S_, INDEX) d[]; } indices;
layout(std430, binding = 1) writeonly buffer Keys { uint16_t d[]; } keys;
layout(std430, binding = 2) writeonly buffer Counts { uint d[]; } counts;
#include "program/index.glsl"
#define AT_ONCE 4u
shared uint bins[SHARED_WORDS];

void main()
{
    uint lane = gl_LocalInvocationIndex, tile = group_number();
    if (tile >= args.tiles)
        return;
    for (uint i = lane; i < args.extent; i += 256u)
        bins[i] = 0u;
    barrier();
    uint begin = tile * TILE, end = min(begin + TILE, args.count);
    for (uint first = begin; first < end; first += 256u * AT_ONCE) {
        uint key[AT_ONCE];
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++)
            key[k] = checked_index(args.first + min(first + k * 256u + lane, end - 1u), args.extent);
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++) {
            uint i = first + k * 256u + lane;
            if (i < end) {
                keys.d[i] = uint16_t(key[k]);
                if (key[k] < args.extent)
                    atomicAdd(bins[key[k]], 1u);
            }
        }
    }
    barrier();
    for (uint i = lane; i < args.extent; i += 256u)
        counts.d[tile * args.extent + i] = bins[i];
}

#elif defined(OP_scan)
layout(std430, binding = 0) buffer Counts { uint d[]; } counts;
#define AT_ONCE 16u // tiles whose counts are in flight for each invocation
shared uint sums[256];

// A workgroup for 16 elements; 16 invocations have some successive tiles of each.
void main()
{
    uint lane = gl_LocalInvocationIndex, key = group_number() * 16u + (lane & 15u);
    uint each = (args.tiles + 15u) / 16u, begin = min((lane >> 4) * each, args.tiles);
    uint end = key < args.extent ? min(begin + each, args.tiles) : begin, own = 0u, before = 0u;
    for (uint tile = begin; tile < end; tile += AT_ONCE) {
        uint count[AT_ONCE];
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++)
            count[k] = counts.d[min(tile + k, end - 1u) * args.extent + key];
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++)
            own += tile + k < end ? count[k] : 0u;
    }
    sums[lane] = own;
    barrier();
    for (uint other = lane & 15u; other < lane; other += 16u)
        before += sums[other];
    if (lane >= 240u && key < args.extent)
        counts.d[args.totals + key] = before + own;
    for (uint tile = begin; tile < end; tile += AT_ONCE) {
        uint count[AT_ONCE];
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++)
            count[k] = counts.d[min(tile + k, end - 1u) * args.extent + key];
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++) {
            if (tile + k < end)
                counts.d[(tile + k) * args.extent + key] = before;
            before += count[k];
        }
    }
}

#elif defined(OP_bases)
layout(std430, binding = 0) buffer Counts { uint d[]; } counts;
#define EACH 8u
shared uint sums[256];

// One workgroup, for at most 256 * EACH elements.
void main()
{
    uint lane = gl_LocalInvocationIndex, own[EACH], sum = 0u;
    [[unroll]] for (uint k = 0u; k < EACH; k++) {
        own[k] = lane * EACH + k < args.extent ? counts.d[args.totals + lane * EACH + k] : 0u;
        sum += own[k];
    }
    uint at = sum;
    sums[lane] = sum;
    [[unroll]] for (uint width = 1u; width < 256u; width <<= 1) {
        barrier();
        uint left = lane >= width ? sums[lane - width] : 0u;
        barrier();
        sum += left;
        sums[lane] = sum;
    }
    at = sum - at;
    [[unroll]] for (uint k = 0u; k < EACH; k++) {
        if (lane * EACH + k < args.extent)
            counts.d[args.bases + lane * EACH + k] = at;
        at += own[k];
    }
    if (lane == 255u)
        counts.d[args.bases + args.extent] = sum;
}

#elif defined(OP_write)
#define S_2 uint16_t
#define S_4 uint
#define S_8 uvec2
#define S PASTE(S_, SIZE)
#define W_2 uint // in registers
#define W_4 uint
#define W_8 uvec2
#define W PASTE(W_, SIZE)
layout(std430, binding = 0) readonly buffer Keys { uint16_t d[]; } keys;
layout(std430, binding = 1) readonly buffer Counts { uint d[]; } counts;
layout(std430, binding = 2) readonly buffer Updates { S d[]; } updates;
layout(std430, binding = 3) writeonly buffer Values { S d[]; } values;

#define PART (TILE / 4u) // updates of 32 invocations, which rank these
#define AT_ONCE 8u
// By part and element: the position of its next update; behind these, a mask of the invocations of a
// round that have an update of it.
shared uint words[SHARED_WORDS];

void wait_for_warp()
{
    if (BY_SUBGROUP != 0u)
        subgroupBarrier();
    else
        barrier();
}

void main()
{
    uint lane = gl_LocalInvocationIndex, warp = lane >> 5, in_warp = lane & 31u, tile = group_number();
    uint own = warp * args.extent, marks = 4u * args.extent;
    if (tile >= args.tiles)
        return;
    for (uint i = lane; i < 8u * args.extent; i += 128u)
        words[i] = 0u;
    barrier();
    uint begin = tile * TILE + warp * PART, end = min(begin + PART, args.count);
    for (uint r = 0u; r < PART; r += 32u * AT_ONCE) {
        uint key[AT_ONCE];
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++) {
            uint i = begin + r + k * 32u + in_warp;
            key[k] = i < end ? uint(keys.d[min(i, args.count - 1u)]) : args.extent;
        }
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++)
            if (key[k] < args.extent)
                atomicAdd(words[own + key[k]], 1u);
    }
    barrier();
    for (uint key = lane; key < args.extent; key += 128u) {
        uint next = counts.d[args.bases + key] + counts.d[tile * args.extent + key];
        [[unroll]] for (uint w = 0u; w < 4u; w++) {
            uint count = words[w * args.extent + key];
            words[w * args.extent + key] = next;
            next += count;
        }
    }
    barrier();
    for (uint r = 0u; r < PART; r += 32u * AT_ONCE) {
        uint key[AT_ONCE];
        W x[AT_ONCE];
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++) {
            uint i = begin + r + k * 32u + in_warp, at = min(i, args.count - 1u);
            key[k] = i < end ? uint(keys.d[at]) : args.extent;
            x[k] = W(updates.d[args.update_offset + args.first + at]);
        }
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++) {
            bool has = key[k] < args.extent;
            uint at = own + (has ? key[k] : 0u);
            if (has)
                atomicOr(words[marks + at], 1u << in_warp);
            wait_for_warp();
            uint mark = words[marks + at], next = words[at];
            uint ahead = uint(bitCount(mark & ((1u << in_warp) - 1u)));
            wait_for_warp();
            if (has && ahead == 0u) {
                words[marks + at] = 0u;
                words[at] = next + uint(bitCount(mark));
            }
            wait_for_warp();
            if (has)
                values.d[next + ahead] = S(x[k]);
        }
    }
}

#else // OP_sum
layout(std430, binding = 0) readonly buffer Counts { uint d[]; } counts;
layout(std430, binding = 1) readonly buffer Values { PASTE(S_, IN) d[]; } values;
layout(std430, binding = 2) buffer Out { PASTE(S_, IN) d[]; } result;
#include "scatter.glsl"
#define CHUNK 2048u
#define LOADS (CHUNK / 256u)
#define AHEAD 16u // elements that are read before they are added
shared SUM chunk[CHUNK];
SUM loaded[LOADS];

void fetch(uint first, uint end)
{
    [[unroll]] for (uint i = 0u; i < LOADS; i++)
        loaded[i] = LOADED(values.d[min(first + i * 256u + gl_LocalInvocationIndex, end - 1u)]);
}

SUM plus_chunk(SUM sum, uint size)
{
    uint m = 0u;
    for (; m + AHEAD <= size; m += AHEAD) {
        SUM x[AHEAD];
        [[unroll]] for (uint i = 0u; i < AHEAD; i++)
            x[i] = chunk[m + i];
        [[unroll]] for (uint i = 0u; i < AHEAD; i++)
            sum = plus(sum, x[i]);
    }
    for (; m < size; m++)
        sum = plus(sum, chunk[m]);
    return sum;
}

// A workgroup for each element: all invocations fetch, and one adds.
void main()
{
    uint lane = gl_LocalInvocationIndex, key = group_number();
    if (key >= args.extent)
        return;
    uint begin = counts.d[args.bases + key], end = counts.d[args.bases + key + 1u];
    if (begin == end)
        return;
    SUM sum = LOADED(result.d[args.out_offset + key]);
    fetch(begin, end);
    for (uint first = begin; first < end; first += CHUNK) {
        [[unroll]] for (uint i = 0u; i < LOADS; i++)
            chunk[lane + i * 256u] = loaded[i];
        barrier();
        if (first + CHUNK < end) // the next ones, while one invocation adds these
            fetch(first + CHUNK, end);
        if (lane == 0u)
            sum = plus_chunk(sum, min(CHUNK, end - first));
        barrier();
    }
    if (lane == 0u)
        result.d[args.out_offset + key] = STORED(sum);
}
#endif
