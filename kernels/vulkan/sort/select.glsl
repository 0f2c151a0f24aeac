// SPDX-License-Identifier: MIT
// The first k elements along an axis of outer x n x inner elements, in the order of argsort.comp:
// keys, and positions where these are equal, so that no two elements are. They are found by the digits
// of key and position: how many elements have which highest digit, then, of those with the digit of the
// k-th element, which next one.
//
// BITS: an unsigned dtype as wide as the elements. DIGIT: bits of a digit.
#include "program/types.glsl"
#include "keys.glsl"
layout(local_size_x = 256) in;
layout(push_constant) uniform Args {
    uint rows, n, inner; // rows: outer times inner
    uint count;          // elements or pairs of a row
    uint parts, part;    // of a row, and the elements of one
    uint k, most;        // most: at least k are listed, at most this
    uint width;          // several rows in a workgroup: a power of two for each; 0: one
    uint in_offset, values_offset, indices_offset;
} args;

#define LANES 256u
#define NONE 0xffffffffu // the position of no element
#define BINS (1u << DIGIT)
#define BINS_EACH (BINS / LANES)
#define AT_ONCE 4u // elements of an invocation that are fetched together
shared uint bins[BINS];
shared uint sums[LANES];
shared uint sums_of_16[16];
shared uint found[3]; // a digit, the elements before it, those with it

// The head that the first k elements have, or come before: the bits of key and position above these.
KEY key_head = KEY(0);
uint key_shift = WIDTH;
uint position_head = 0u, position_shift;

// 0: the element is before those with the head; 1: it has the head; 2: it is behind.
uint side_of(KEY key, uint position)
{
    if (position == NONE)
        return 2u;
    if (key_shift < WIDTH) {
        KEY head = key >> key_shift;
        if (head != key_head)
            return head < key_head ? 0u : 2u;
    }
    uint head = position_shift < 32u ? position >> position_shift : 0u;
    return head < position_head ? 0u : head == position_head ? 1u : 2u;
}

uint base_of(uint row, uint length)
{
    uint first = row / args.inner;
    return first * length * args.inner + (row - first * args.inner);
}

// Finds the digit of element `wanted`, from 1, of those that are counted.
void find_digit(uint wanted)
{
    uint lane = gl_LocalInvocationIndex, sum = 0u, before = 0u;
    barrier();
    [[unroll]] for (uint i = 0u; i < BINS_EACH; i++)
        sum += bins[lane * BINS_EACH + i];
    sums[lane] = sum;
    barrier();
    if (lane < 16u) {
        uint all = 0u;
        [[unroll]] for (uint i = 0u; i < 16u; i++)
            all += sums[lane * 16u + i];
        sums_of_16[lane] = all;
    }
    barrier();
    [[unroll]] for (uint i = 0u; i < 16u; i++) {
        before += i < lane / 16u ? sums_of_16[i] : 0u;
        before += i < lane % 16u ? sums[lane / 16u * 16u + i] : 0u;
    }
    if (before < wanted && wanted <= before + sum) {
        uint bin = lane * BINS_EACH;
        while (before + bins[bin] < wanted)
            before += bins[bin++];
        found[0] = bin;
        found[1] = before;
        found[2] = bins[bin];
    }
    barrier();
}

// Appends the digits that were found to the head.
void learn(uint digits)
{
    if (key_shift > 0u) {
        key_head = (key_head << digits) | KEY(found[0]);
        key_shift -= digits;
    } else {
        position_head = (position_head << digits) | found[0];
        position_shift -= digits;
    }
}

// Bits of the next digit.
uint next_digits()
{
    return min(uint(DIGIT), key_shift > 0u ? key_shift : position_shift);
}

// The next digit of an element that is looked at.
uint digit_of(KEY key, uint position)
{
    uint digits = next_digits(), mask = (1u << digits) - 1u;
    return (key_shift > 0u ? uint(key >> (key_shift - digits)) : position >> (position_shift - digits)) & mask;
}

void clear_bins()
{
    [[unroll]] for (uint i = 0u; i < BINS_EACH; i++)
        bins[i * LANES + gl_LocalInvocationIndex] = 0u;
}
