// SPDX-License-Identifier: MIT
// Shared by attention and its derivative: loading, and which keys a query sees. Included behind
// the buffers `lengths` and `batches` and the push constants `args`. SHARED_CACHES: behind `seen`, too, which
// has the slots (i32) of caches that sequences share, if HAS_SLOTS is set: the mask's offset and its
// stride from key to key are then those of the slots; its stride from row to row is the last slot.
const uint IS_CAUSAL = 1u, HAS_ADDED = 2u, HAS_SEEN = 4u, HAS_LENGTHS = 8u, IS_SIGNED = 16u;
const uint HAS_SLOTS = 32u;
const uint LENGTH_SHIFT = 8u; // from this bit on: bytes of a length
const int FAR = 1 << 30;      // no position is beyond it

uint total_rows, q_start, k_start, v_start, mask_start;

// --- loading ------------------------------------------------------------------------------

// Vector `column` of a row of `count` elements that begins at `at`; zeros behind its end.
#ifdef VECTORS
#define LOAD(buffer, at, step, column, count)                                                      \
    ((column) * 4u < (count) ? PASTE(WIDEN_, IN)(buffer.d[(at) / 4u + (column)]) : vec4(0))
#else
#define COMPONENT(buffer, at, step, i, count)                                                      \
    ((i) < (count) ? PASTE(FROM_, IN)(PASTE(W_, IN)(buffer.d[(at) + (i) * (step)])) : 0.0)
#define LOAD(buffer, at, step, column, count)                                                      \
    vec4(COMPONENT(buffer, at, step, (column) * 4u, count),                                        \
         COMPONENT(buffer, at, step, (column) * 4u + 1u, count),                                   \
         COMPONENT(buffer, at, step, (column) * 4u + 2u, count),                                   \
         COMPONENT(buffer, at, step, (column) * 4u + 3u, count))
#endif

// Number of a row's head among those that share keys. A division takes longer than a load's other arithmetic.
uint head_of(uint row)
{
    return args.heads == 1u ? 0u : row / args.queries;
}

// Where a row of q begins.
uint q_start_of_row(uint row)
{
    uint head = head_of(row), query = row - head * args.queries;
    return q_start + head * args.q_head + query * args.q_row;
}

// The number of keys for an index of the first axis, clamped to -FAR .. FAR.
int length_of(uint index)
{
    if ((args.flags & HAS_LENGTHS) == 0u)
        return int(args.keys);
    uint size = args.flags >> LENGTH_SHIFT;
    uint at = (args.lengths_offset + index * args.lengths_stride) * size;
    uint bytes[8]; // all are loaded before one is needed
    [[unroll]] for (uint i = 0u; i < 8u; i++)
        bytes[i] = uint(lengths.d[at + min(i, size - 1u)]);
    bool is_negative = (args.flags & IS_SIGNED) != 0u && bytes[7] > 127u;
    uint low = is_negative ? 0xffffffffu : 0u, high = low;
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        if (i < size)
            low = (low & ~(0xffu << i * 8u)) | bytes[i] << i * 8u;
        if (i + 4u < size)
            high = (high & ~(0xffu << i * 8u)) | bytes[i + 4u] << i * 8u;
    }
    if (is_negative)
        return high == 0xffffffffu && low > 0xc0000000u ? int(low) : -FAR;
    return high == 0u && low < uint(FAR) ? int(low) : FAR;
}

// --- rows ---------------------------------------------------------------------------------

// The keys that query `query` sees by position.
ivec2 key_range(uint query, int length)
{
    bool has_lengths = (args.flags & HAS_LENGTHS) != 0u;
    int at = int(query) + (has_lengths ? length - int(args.queries) : 0);
    int high = min(length, int(args.keys)), low = 0;
    if ((args.flags & IS_CAUSAL) != 0u)
        high = min(high, at + 1);
    if (args.window > 0)
        low = max(at - args.window + 1, 0);
    high = max(high, 0);
    return ivec2(min(low, high), high);
}

// Keys that any of `count` rows from `first_row` on sees by position.
uvec2 visible_keys(uint first_row, uint count, int length)
{
    uint last_row = min(first_row + count, total_rows) - 1u;
    uint first = first_row % args.queries, last = last_row % args.queries;
    if (first_row / args.queries != last_row / args.queries) {
        first = 0u;
        last = args.queries - 1u;
    }
    return uvec2(key_range(first, length).x, key_range(last, length).y);
}

// cap * tanh(score / cap). Near 0 its error is that of a number near the cap, which a score of
// softmax bears.
vec4 capped(vec4 scores)
{
    float cap = args.soft_cap;
    return cap - 2.0 * cap / (exp(scores * (2.0 / cap)) + 1.0);
}

// A score of minus infinity has no weight, also where an approximation of exp() gives it some.
float weight(float score, float shift)
{
    return score == -infinity() ? 0.0 : exp(score - shift);
}

vec4 weights(vec4 scores, vec4 shift)
{
    return vec4(weight(scores.x, shift.x), weight(scores.y, shift.y), weight(scores.z, shift.z),
                weight(scores.w, shift.w));
}

float add_dot(float sum, vec4 a, vec4 b)
{
    sum += a.x * b.x;
    sum += a.y * b.y;
    sum += a.z * b.z;
    sum += a.w * b.w;
    return sum;
}

#ifdef SHARED_CACHES
// The slot of a sequence in the caches.
uint slot_of(uint index)
{
    uint at = (args.mask_offset + index * args.mask_key) * 4u, bits = 0u;
    for (uint i = 0u; i < 4u; i++)
        bits |= uint(seen.d[at + i]) << (i * 8u);
    return uint(clamp(int(bits), 0, int(args.mask_row)));
}
#endif

// Sets where the operands of a batch begin; gives the index of its first axis.
uint start_batch(uint batch, uint group)
{
    uint rest = batch, index = 0u;
    q_start = args.q_offset + group * args.heads * args.q_head;
    k_start = args.k_offset + group * args.k_head;
    v_start = args.v_offset + group * args.v_head;
    mask_start = args.mask_offset + group * args.heads * args.mask_head;
    for (uint axis = args.num_batch; axis-- > 0u;) {
        uint next = 0u;
        index = rest;
        if (axis > 0u) {
            uint extent = batches.d[axis * 5u];
            next = rest / extent;
            index = rest - next * extent;
        }
        uint slot = index;
#ifdef SHARED_CACHES
        if ((args.flags & HAS_SLOTS) != 0u)
            slot = slot_of(index);
#endif
        q_start += index * batches.d[axis * 5u + 1u];
        k_start += slot * batches.d[axis * 5u + 2u];
        v_start += slot * batches.d[axis * 5u + 3u];
        mask_start += index * batches.d[axis * 5u + 4u];
        rest = next;
    }
    return index;
}
