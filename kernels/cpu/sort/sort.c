// SPDX-License-Identifier: MIT
// Keys of elements, and the two kinds of items.
#include "sort.h"

#include <string.h>
#include <tenon/types.h>

#define RUN_ITEMS 16       // most items that are sorted by insertion
#define LEAST_RADIX 768    // fewer items are sorted by merging
#define FEW_ITEMS 32       // largest k that select_few() takes
#define LEAST_SPREAD 65536 // least number of items for sort_spread()
#define LOOK_AT 16         // elements that find_...() skips at once
#define DIGIT_BITS CPU_SORT_DIGIT_BITS
#define NUM_DIGITS CPU_SORT_DIGITS

struct wide_item {
    uint64_t key, index;
};

// The key of a float: keys have the order of the values; NaN is the greatest, and both
// zeros have the same key.
static uint64_t float_key(uint64_t bits, uint32_t width, uint64_t infinity)
{
    uint64_t sign = UINT64_C(1) << (width - 1), size = bits & (sign - 1);
    if (size > infinity)
        return sign | (sign - 1);
    return size == 0 ? sign : bits & sign ? sign - 1 - size : sign | size;
}

// The key of element i of a packed row; complemented within the element's width if the
// order is descending.
static inline uint64_t sort_elements_key_of(const struct cpu_sort *s, const void *row,
                                            int64_t i)
{
    uint64_t bits, ones = UINT64_MAX >> (64 - 8 * s->size);
    switch (s->size) {
    case 1:
        bits = ((const uint8_t *)row)[i];
        break;
    case 2:
        bits = ((const uint16_t *)row)[i];
        break;
    case 4:
        bits = ((const uint32_t *)row)[i];
        break;
    default:
        bits = ((const uint64_t *)row)[i];
    }
    switch (s->dtype) {
    case TN_F16:
        bits = float_key(bits, 16, 0x7c00);
        break;
    case TN_BF16:
        bits = float_key(bits, 16, 0x7f80);
        break;
    case TN_F32:
        bits = float_key(bits, 32, 0x7f800000);
        break;
    case TN_F64:
        bits = float_key(bits, 64, UINT64_C(0x7ff0000000000000));
        break;
    default:
        if (tn_is_signed(s->dtype))
            bits ^= UINT64_C(1) << (8 * s->size - 1);
    }
    return s->descending ? bits ^ ones : bits;
}

// Defines the search for the first of elements [i, n) that may come before `last`, with n
// if there is none. NaN always may.
#define FIND(T)                                                                            \
    static int64_t find_##T(const T *x, int64_t i, int64_t n, T last, bool descending)     \
    {                                                                                      \
        for (int any = 0; i + LOOK_AT <= n; i += LOOK_AT) {                                \
            if (descending)                                                                \
                for (int64_t k = 0; k < LOOK_AT; k++)                                      \
                    any |= !(x[i + k] <= last);                                            \
            else                                                                           \
                for (int64_t k = 0; k < LOOK_AT; k++)                                      \
                    any |= !(x[i + k] >= last);                                            \
            if (any)                                                                       \
                break;                                                                     \
        }                                                                                  \
        while (i < n && (descending ? x[i] <= last : x[i] >= last))                        \
            i++;                                                                           \
        return i;                                                                          \
    }
FIND(float)
FIND(double)
FIND(int32_t)
FIND(int64_t)
#undef FIND

// The position from i on of the first element that may come before element `last` of the
// row, or n.
static int64_t next_candidate(const struct cpu_sort *s, const void *row, int64_t i,
                              int64_t last)
{
    switch (s->dtype) {
    case TN_F32:
        return find_float(row, i, s->n, ((const float *)row)[last], s->descending);
    case TN_F64:
        return find_double(row, i, s->n, ((const double *)row)[last], s->descending);
    case TN_I32:
        return find_int32_t(row, i, s->n, ((const int32_t *)row)[last], s->descending);
    case TN_I64:
        return find_int64_t(row, i, s->n, ((const int64_t *)row)[last], s->descending);
    default:
        return i;
    }
}

// Sorts words of a key and a position. No two are equal, so that any sort of them is
// stable. False: there is no sort in vectors.
static bool sort_words(const struct cpu_sort *s, uint64_t *items, uint64_t *other,
                       int64_t n)
{
    if (s->quick->sort_64)
        s->quick->sort_64(items, other, n);
    return s->quick->sort_64 != NULL;
}

#define ITEM uint64_t
#define QUICK(s, items, other, n) sort_words(s, items, other, n)
#define NAME(word) word##_narrow
#define DIGIT(item, pass) ((item) >> (32 + (pass)*DIGIT_BITS) & (NUM_DIGITS - 1))
#define BEFORE(a, b) ((a) >> 32 < (b) >> 32)
static inline uint64_t item_narrow(const struct cpu_sort *s, const void *row, int64_t i)
{
    return sort_elements_key_of(s, row, i) << 32 | (uint64_t)i;
}
static inline int64_t position_narrow(uint64_t item)
{
    return (int64_t)(item & UINT32_MAX);
}
#include "sort_items.inc.h"
#undef ITEM
#undef QUICK
#undef NAME
#undef DIGIT
#undef BEFORE

#define ITEM struct wide_item
#define QUICK(s, items, other, n) false
#define NAME(word) word##_wide
#define DIGIT(item, pass) ((item).key >> ((pass)*DIGIT_BITS) & (NUM_DIGITS - 1))
#define BEFORE(a, b) ((a).key < (b).key)
static inline struct wide_item item_wide(const struct cpu_sort *s, const void *row,
                                         int64_t i)
{
    return (struct wide_item){sort_elements_key_of(s, row, i), (uint64_t)i};
}
static inline int64_t position_wide(struct wide_item item)
{
    return (int64_t)item.index;
}
#include "sort_items.inc.h"
#undef ITEM
#undef QUICK
#undef NAME
#undef DIGIT
#undef BEFORE

// The position of the i-th element in order.
static inline uint64_t sort_elements_position_of(const uint64_t *narrow,
                                                 const struct wide_item *wide, int64_t i)
{
    return narrow ? narrow[i] & UINT32_MAX : wide[i].index;
}

#define WRITE_VALUES(U)                                                                    \
    for (int64_t i = begin; i < end; i++)                                                  \
    ((U *)s->values)[at + i * s->inner] =                                                  \
        ((const U *)row)[sort_elements_position_of(narrow, wide, i)]

// Writes positions [begin, end) in order, and the elements there, to the output's row that
// begins with element `at`.
static void sort_elements_write_row(const struct cpu_sort *s, const void *row,
                                    const uint64_t *narrow, const struct wide_item *wide,
                                    int64_t at, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end && s->indices; i++)
        s->indices[at + i * s->inner] = (int64_t)sort_elements_position_of(narrow, wide, i);
    if (!s->values)
        return;
    if (s->size == 1)
        WRITE_VALUES(uint8_t);
    else if (s->size == 2)
        WRITE_VALUES(uint16_t);
    else if (s->size == 4)
        WRITE_VALUES(uint32_t);
    else
        WRITE_VALUES(uint64_t);
}
#undef WRITE_VALUES

static struct cpu_keys sort_elements_keys_of(const struct cpu_sort *s)
{
    return (struct cpu_keys){.is_float = tn_is_float(s->dtype),
                             .is_signed = tn_is_signed(s->dtype),
                             .descending = s->descending};
}

// Byte number `byte` of an item's key, from the least significant one on.
static inline uint32_t sort_elements_byte_of(uint64_t item, int byte)
{
    return (uint8_t)(item >> (32 + 8 * byte));
}

// Moves each item to position ends[its byte]++. At first `ends` has the positions where
// items of each byte begin.
static void move_by_byte(const uint64_t *from, uint64_t *to, int64_t n, int byte,
                         uint32_t ends[256])
{
    for (int64_t i = 0; i < n; i++)
        to[ends[sort_elements_byte_of(from[i], byte)]++] = from[i];
}

static void make_starts(uint32_t counts[256])
{
    uint32_t start = 0;
    for (int i = 0; i < 256; i++) {
        uint32_t count = counts[i];
        counts[i] = start;
        start += count;
    }
}

// Sorts items, which lie in `other`, by the lower three bytes of their keys, to `items`.
static void sort_by_bytes(uint64_t *items, uint64_t *other, int64_t n)
{
    uint32_t counts[3][256] = {{0}};
    for (int64_t i = 0; i < n; i++)
        for (int byte = 0; byte < 3; byte++)
            counts[byte][sort_elements_byte_of(other[i], byte)]++;
    for (int byte = 0; byte < 3; byte++)
        make_starts(counts[byte]);
    move_by_byte(other, items, n, 0, counts[0]);
    move_by_byte(items, other, n, 1, counts[1]);
    move_by_byte(other, items, n, 2, counts[2]);
}

// Sorts many items whose keys are spread evenly, as random words are: distributes them by
// the upper byte, then sorts each part, which fits into the caches. False: there are too
// few, or they are not spread evenly; they stay as they are. For 262,144 items it took 0.72
// of the time of a quick sort in vectors.
static bool sort_spread(uint64_t *items, uint64_t *other, int64_t n)
{
    uint32_t ends[256] = {0};
    if (n < LEAST_SPREAD || n > UINT32_MAX)
        return false;
    for (int64_t i = 0; i < n; i++)
        ends[sort_elements_byte_of(items[i], 3)]++;
    for (int i = 0; i < 256; i++)
        if (ends[i] > n / 64)
            return false;
    make_starts(ends);
    move_by_byte(items, other, n, 3, ends);
    for (int64_t i = 0, begin = 0; i < 256; begin = ends[i++])
        sort_by_bytes(items + begin, other + begin, ends[i] - begin);
    return true;
}

const void *cpu_sort_select(const struct cpu_sort *s, const void *row, void *items,
                            void *other, int64_t room, uint32_t *counts)
{
    const struct cpu_keys of = sort_elements_keys_of(s);
    if (s->is_wide)
        return select_wide(s, row, items, other, room, counts);
    if (s->k == s->n && s->size == 4 && s->quick->sort_64 &&
        s->quick->positions_32(&of, row, items, s->n)) {
        if (!sort_spread(items, other, s->n))
            s->quick->sort_64(items, other, s->n);
        return items;
    }
    return select_narrow(s, row, items, other, room, counts);
}

bool cpu_sort_keys(const struct cpu_sort *s, const void *row, void *keys, void *other,
                   int64_t at)
{
    const struct cpu_quick_kernels *quick = s->quick;
    const struct cpu_keys of = sort_elements_keys_of(s);
    bool is_whole = s->k == s->n && s->size >= 4 && quick->sort_32;
    if (is_whole && !s->values && s->size == 4 && s->inner == 1)
        return quick->order_32(&of, row, (uint64_t *)s->indices + at, other, s->n);
    if (!is_whole || s->indices)
        return false;
    if (s->size == 4) {
        if (!quick->keys_32(&of, row, keys, s->n))
            return false;
        quick->sort_32(keys, other, s->n);
        quick->elements_32(&of, keys, s->values + at * 4, s->inner, s->n);
    } else {
        if (!quick->keys_64(&of, row, keys, s->n))
            return false;
        quick->sort_64(keys, other, s->n);
        quick->elements_64(&of, keys, s->values + at * 8, s->inner, s->n);
    }
    return true;
}

// --- selection --------------------------------------------------------------------------

// Writes `words` to the output's row from element `at` on. If s->indices is set, or for
// elements of 1 or 2 bytes, `words` are positions, else the elements themselves.
#define WRITE_WORDS(WORD)                                                                  \
    static void write_words_##WORD(const struct cpu_sort *s, const void *row,              \
                                   const WORD *words, int64_t at, int64_t count)           \
    {                                                                                      \
        int64_t step = s->inner;                                                           \
        if (s->indices)                                                                    \
            for (int64_t i = 0; i < count; i++)                                            \
                s->indices[at + i * step] = (int64_t)words[i];                             \
        else if (s->size == 1)                                                             \
            for (int64_t i = 0; i < count; i++)                                            \
                s->values[at + i * step] = ((const char *)row)[words[i]];                  \
        else if (s->size == 2)                                                             \
            for (int64_t i = 0; i < count; i++)                                            \
                ((uint16_t *)s->values)[at + i * step] =                                   \
                    ((const uint16_t *)row)[words[i]];                                     \
        else if (step == 1)                                                                \
            memcpy((WORD *)s->values + at, words, (size_t)count * sizeof(WORD));           \
        else                                                                               \
            for (int64_t i = 0; i < count; i++)                                            \
                ((WORD *)s->values)[at + i * step] = words[i];                             \
    }
WRITE_WORDS(uint32_t)
WRITE_WORDS(uint64_t)
#undef WRITE_WORDS

#define PARTITION(WORD, BITS)                                                              \
    static void partition_##BITS(const struct cpu_sort *s, const void *row, WORD *items,   \
                                 WORD *other, int64_t at)                                  \
    {                                                                                      \
        const struct cpu_keys of = sort_elements_keys_of(s);                               \
        int64_t n = s->n, kth = s->kth, ties = kth;                                        \
        WORD *keys = items, *before = items + n + CPU_SPLIT_SLACK, own = 0;                \
        WORD *behind = other, *positions = other + n + CPU_SPLIT_SLACK;                    \
        const WORD *from = row;                                                            \
        if (s->size != sizeof(WORD) || !s->quick->keys_##BITS(&of, row, keys, n))          \
            for (int64_t i = 0; i < n; i++)                                                \
                keys[i] = (WORD)sort_elements_key_of(s, row, i);                           \
        memcpy(before, keys, (size_t)n * sizeof(WORD));                                    \
        WORD pivot = s->quick->select_##BITS(before, behind, n, kth);                      \
        for (int64_t i = 0; i < n; i++)                                                    \
            ties -= keys[i] < pivot;                                                       \
        for (int64_t i = 0; i < n && (s->indices || s->size < 4); i++)                     \
            positions[i] = (WORD)i;                                                        \
        if (s->indices || s->size < 4)                                                     \
            from = positions;                                                              \
        s->quick->split_##BITS(keys, from, n, pivot, ties, before, &own, behind);          \
        write_words_##WORD(s, row, before, at, kth);                                       \
        write_words_##WORD(s, row, &own, at + kth * s->inner, 1);                          \
        write_words_##WORD(s, row, behind, at + (kth + 1) * s->inner, n - kth - 1);        \
    }
PARTITION(uint32_t, 32)
PARTITION(uint64_t, 64)
#undef PARTITION

void cpu_sort_partition(const struct cpu_sort *s, const void *row, void *items, void *other,
                        int64_t at)
{
    if (s->is_wide)
        partition_64(s, row, items, other, at);
    else
        partition_32(s, row, items, other, at);
}

// --- parts of rows ----------------------------------------------------------------------

void cpu_sort_part(const struct cpu_sort *s, const void *row, void *items, void *other,
                   int64_t begin, int64_t end, uint32_t *counts)
{
    if (s->is_wide)
        sort_part_wide(s, row, items, other, begin, end, counts);
    else
        sort_part_narrow(s, row, items, other, begin, end, counts);
}

void cpu_sort_merge(const struct cpu_sort *s, void *to, const void *items, int64_t width,
                    int64_t begin, int64_t end)
{
    if (s->is_wide)
        merge_part_wide(to, items, s->n, width, begin, end);
    else
        merge_part_narrow(to, items, s->n, width, begin, end);
}

void cpu_sort_write(const struct cpu_sort *s, const void *row, const void *sorted,
                    int64_t at, int64_t begin, int64_t end)
{
    if (s->is_wide)
        sort_elements_write_row(s, row, NULL, sorted, at, begin, end);
    else
        sort_elements_write_row(s, row, sorted, NULL, at, begin, end);
}
