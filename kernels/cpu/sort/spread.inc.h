// SPDX-License-Identifier: MIT
// Finds the order of elements whose keys are spread evenly, as random words are. Included
// by quick.c where the processor packs lanes by a mask.
//
// Elements are distributed to parts by the upper bits of their keys. A part is a few
// hundred words, which have the next bits of the key above the element's position. The
// words of a part go to a table with eight times as many slots: each is inserted in order,
// from the slot that its upper bits name. The slots in use are then the part in order. At
// last words with equal bits of the key are compared by their whole keys.

#define PART_WORDS 512 // most words of a part on average
#define MOST_POSITION_BITS 19
#define MOST_PARTS (1 << (MOST_POSITION_BITS - 9))
#define PART_ROOM (PART_WORDS + PART_WORDS / 2 + 2 * LANES_32) // most words of a part
#define SLOT_BITS 12
#define SLOTS (1 << SLOT_BITS)
#define EMPTY UINT32_MAX
#define LEAST_ORDERED 16384 // fewer elements are sorted by quick sorts
#define KEYS_BLOCK 256

struct order_spread {
    const struct cpu_keys *of;
    const uint32_t *x;
    int64_t n;
    uint32_t position_bits, part_bits,
        room; // words of memory for a part: an odd number of vectors
    uint32_t *parts, counts[MOST_PARTS];
};

static uint32_t order_key_of(const struct order_spread *s, uint32_t word)
{
    uint32_t key, position = word & ((1u << s->position_bits) - 1);
    keys_32(s->of, s->x + position, &key, 1);
    return key;
}

// Distributes all elements to parts. False: a float shares its key, or a part is too long.
static bool order_part_keys(struct order_spread *s)
{
    uint32_t keys[KEYS_BLOCK], most = s->room - 1;
    uint32_t positions = (1u << s->position_bits) - 1, above = 32 - s->part_bits;
    memset(s->counts, 0, sizeof(s->counts));
    for (int64_t at = 0; at < s->n; at += KEYS_BLOCK) {
        int64_t count = s->n - at < KEYS_BLOCK ? s->n - at : KEYS_BLOCK;
        if (!keys_32(s->of, s->x + at, keys, count))
            return false;
        for (int64_t i = 0; i < count; i++) {
            uint32_t key = keys[i], part = key >> above, last = s->counts[part]++;
            s->parts[part * s->room + (last < most ? last : most)] =
                (key << s->part_bits & ~positions) | (uint32_t)(at + i);
        }
        if (at % (64 * KEYS_BLOCK) != 0 && at + count < s->n)
            continue;
        for (uint32_t i = 0; i < 1u << s->part_bits; i++)
            if (s->counts[i] > most)
                return false;
    }
    return true;
}

// Sorts a part to `out`, which has room for a vector more. False: too many words have the
// same slot.
static bool order_by_slots(const uint32_t *part, uint32_t n, uint32_t *out)
{
    uint32_t table[SLOTS + PART_ROOM + LANES_32];
    uint32_t steps = 0, used = 0;
    memset(table, 0xff, sizeof(table));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t word = part[i], *slot = table + (word >> (32 - SLOT_BITS));
        for (; *slot != EMPTY; slot++, steps++) {
            uint32_t other = *slot, lesser = other < word ? other : word;
            word = other < word ? word : other;
            *slot = lesser;
        }
        *slot = word;
        if (steps > 8 * PART_ROOM)
            return false;
    }
    const words32 empty = (words32){0} + EMPTY;
    for (uint32_t at = 0; used < n; at += LANES_32) {
        words32 v = *(const loose_32 *)(table + at);
        uint16_t mask = BELOW_32(v, empty, false);
        *(loose_32 *)(out + used) = COMPRESS_32(v, mask);
        used += (uint32_t)COUNT(mask);
    }
    return true;
}

// Inserts word i of a part in its position among the words before it that have the same
// bits of the key.
static void order_tie(const struct order_spread *s, uint32_t *words, uint32_t i)
{
    uint32_t word = words[i], key = order_key_of(s, word);
    for (; i > 0 && (words[i - 1] ^ word) >> s->position_bits == 0 &&
           order_key_of(s, words[i - 1]) > key;
         i--)
        words[i] = words[i - 1];
    words[i] = word;
}

static void order_ties(const struct order_spread *s, uint32_t *words, uint32_t n)
{
    const words32 unit = (words32){0} + (1u << s->position_bits);
    for (uint32_t i = 1; i < n; i += LANES_32) {
        words32 differ =
            *(const loose_32 *)(words + i) ^ *(const loose_32 *)(words + i - 1);
        if (!BELOW_32(differ, unit, false))
            continue;
        for (uint32_t k = i; k < n && k < i + LANES_32; k++)
            if ((words[k] ^ words[k - 1]) >> s->position_bits == 0)
                order_tie(s, words, k);
    }
}

static bool order_32(const struct cpu_keys *of, const void *x, uint64_t *positions,
                     void *other, int64_t n)
{
    uint32_t words[PART_ROOM + 2 * LANES_32] = {0}, last;
    struct order_spread s = {.of = of, .x = x, .n = n, .parts = other};
    if (n < LEAST_ORDERED || n > 1 << MOST_POSITION_BITS)
        return false;
    s.position_bits = 64 - (uint32_t)__builtin_clzll((uint64_t)n - 1);
    s.part_bits = s.position_bits - 9;
    uint32_t mean = (uint32_t)(n >> s.part_bits);
    s.room = ((mean + mean / 2) / LANES_32 | 1) * LANES_32;
    last = order_key_of(&s, (uint32_t)n - 1) << s.part_bits;
    if ((last | ((1u << s.position_bits) - 1)) == EMPTY || !order_part_keys(&s))
        return false;
    for (uint32_t part = 0; part < 1u << s.part_bits; part++) {
        uint32_t count = s.counts[part];
        if (!order_by_slots(s.parts + part * s.room, count, words))
            return false;
        order_ties(&s, words, count);
        for (uint32_t i = 0; i < count; i++)
            positions[i] = words[i] & ((1u << s.position_bits) - 1);
        positions += count;
    }
    return true;
}

#undef EMPTY
