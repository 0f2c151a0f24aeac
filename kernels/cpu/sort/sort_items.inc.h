// SPDX-License-Identifier: MIT
// A stable sort of items by their keys, in ascending order: few by merging, many by a radix
// sort. Included for each kind of item by sort.c, which defines
//   ITEM          the type of an item
//   NAME(word)    the names of this file's functions
//   DIGIT(item, pass)  DIGIT_BITS bits of the key, the lowest in pass 0
//   BEFORE(a, b)  whether a's key is less than b's
//   QUICK(s, items, other, n)  sorts items in vectors; false: it cannot
//   NAME(item), NAME(position)  the item of an element of a row, and back

static void NAME(insert)(ITEM *items, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        ITEM item = items[i];
        int64_t at = i;
        for (; at > 0 && BEFORE(item, items[at - 1]); at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

static void NAME(merge)(ITEM *to, const ITEM *a, int64_t n, const ITEM *b, int64_t m)
{
    int64_t i = 0, k = 0;
    while (i < n && k < m) {
        bool second = BEFORE(b[k], a[i]);
        *to++ = second ? b[k] : a[i];
        k += second;
        i += !second;
    }
    for (; i < n; i++)
        *to++ = a[i];
    for (; k < m; k++)
        *to++ = b[k];
}

// Sorts runs, and merges them in pairs until one is left. Returns the buffer it lies in.
static ITEM *NAME(merge_sort)(ITEM *items, ITEM *other, int64_t n)
{
    for (int64_t i = 0; i < n; i += RUN_ITEMS)
        NAME(insert)(items + i, n - i < RUN_ITEMS ? n - i : RUN_ITEMS);
    for (int64_t width = RUN_ITEMS; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t left = n - i < width ? n - i : width;
            int64_t right = n - i - left < width ? n - i - left : width;
            NAME(merge)(other + i, items + i, left, items + i + left, right);
        }
        ITEM *swap = items;
        items = other;
        other = swap;
    }
    return items;
}

// Makes one pass for each digit that is not the same in all items. Returns the buffer with
// the sorted items.
static ITEM *NAME(radix_sort)(ITEM *items, ITEM *other, int64_t n, uint32_t passes,
                              uint32_t *counts)
{
    memset(counts, 0, passes * NUM_DIGITS * sizeof(*counts));
    for (int64_t i = 0; i < n; i++)
        for (uint32_t pass = 0; pass < passes; pass++)
            counts[pass * NUM_DIGITS + DIGIT(items[i], pass)]++;
    for (uint32_t pass = 0; pass < passes; pass++) {
        uint32_t *count = counts + pass * NUM_DIGITS, sum = 0;
        if (count[DIGIT(items[0], pass)] == n)
            continue;
        for (uint32_t digit = 0; digit < NUM_DIGITS; digit++) {
            uint32_t own = count[digit];
            count[digit] = sum;
            sum += own;
        }
        for (int64_t i = 0; i < n; i++)
            other[count[DIGIT(items[i], pass)]++] = items[i];
        ITEM *swap = items;
        items = other;
        other = swap;
    }
    return items;
}

static ITEM *NAME(sort)(const struct cpu_sort *s, ITEM *items, ITEM *other, int64_t n,
                        uint32_t *counts)
{
    if (QUICK(s, items, other, n))
        return items;
    return n < LEAST_RADIX ? NAME(merge_sort)(items, other, n)
                           : NAME(radix_sort)(items, other, n, s->passes, counts);
}

// Makes the items of elements [begin, end) of a row, and sorts this range of `items`.
static void NAME(sort_part)(const struct cpu_sort *s, const void *row, ITEM *items,
                            ITEM *other, int64_t begin, int64_t end, uint32_t *counts)
{
    for (int64_t i = begin; i < end; i++)
        items[i] = NAME(item)(s, row, i);
    const ITEM *sorted = NAME(sort)(s, items + begin, other + begin, end - begin, counts);
    if (sorted != items + begin)
        memcpy(items + begin, sorted, (size_t)(end - begin) * sizeof(*sorted));
}

// How many of the first `count` items of the merge of a (n items) and b (m items) come from
// a. Of equal items those of a come first.
static int64_t NAME(count_first)(int64_t count, const ITEM *a, int64_t n, const ITEM *b,
                                 int64_t m)
{
    int64_t low = count > m ? count - m : 0, high = count < n ? count : n;
    while (low < high) {
        int64_t i = low + (high - low) / 2;
        if (BEFORE(b[count - i - 1], a[i]))
            high = i;
        else
            low = i + 1;
    }
    return low;
}

// Writes items [begin, end) of the merge of a pair of sorted parts: see cpu_sort_merge().
static void NAME(merge_part)(ITEM *to, const ITEM *items, int64_t n, int64_t width,
                             int64_t begin, int64_t end)
{
    int64_t first = begin / (2 * width) * (2 * width), left = n - first;
    int64_t of_a = left < width ? left : width;
    int64_t of_b = left - of_a < width ? left - of_a : width;
    const ITEM *a = items + first, *b = a + of_a;
    begin -= first;
    end -= first;
    int64_t i = NAME(count_first)(begin, a, of_a, b, of_b);
    int64_t k = NAME(count_first)(end, a, of_a, b, of_b);
    NAME(merge)(to + first + begin, a + i, k - i, b + begin - i, end - k - (begin - i));
}

// The first k of n items in order, for small k: each item is inserted in its position.
// Elements behind the k-th so far, which are most, are skipped without making a key.
static ITEM *NAME(select_few)(const struct cpu_sort *s, const void *row, ITEM *items)
{
    int64_t filled = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (filled == s->k) {
            i = next_candidate(s, row, i, NAME(position)(items[s->k - 1]));
            if (i == s->n)
                break;
        }
        ITEM item = NAME(item)(s, row, i);
        int64_t at = filled < s->k ? filled : s->k - 1;
        if (filled == s->k && !BEFORE(item, items[at]))
            continue;
        for (; at > 0 && BEFORE(item, items[at - 1]); at--)
            items[at] = items[at - 1];
        items[at] = item;
        filled += filled < s->k;
    }
    return items;
}

// The first k of n items in order: see cpu_sort_select().
static ITEM *NAME(select)(const struct cpu_sort *s, const void *row, ITEM *items,
                          ITEM *other, int64_t room, uint32_t *counts)
{
    int64_t filled = 0;
    bool full = false;
    if (s->k <= FEW_ITEMS && s->k < s->n)
        return NAME(select_few)(s, row, items);
    for (int64_t i = 0; i < s->n; i++) {
        i = full ? next_candidate(s, row, i, NAME(position)(items[s->k - 1])) : i;
        if (i == s->n)
            break;
        ITEM item = NAME(item)(s, row, i);
        if (full && !BEFORE(item, items[s->k - 1]))
            continue;
        items[filled++] = item;
        if (filled < room)
            continue;
        ITEM *sorted = NAME(sort)(s, items, other, filled, counts);
        if (sorted != items) {
            other = items;
            items = sorted;
        }
        filled = s->k;
        full = true;
    }
    return NAME(sort)(s, items, other, filled, counts);
}
