// SPDX-License-Identifier: MIT
// Sorts of words in vectors beside the C library's, of every variant that has some: edge
// lengths, equal words, rows in order and those that part unevenly; nothing outside is
// written.
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cpu/cpu.h"

#define MOST 5000
#define GUARD UINT64_C(0xa5a5a5a5a5a5a5a5)

static uint64_t wide[MOST + 1], wide_want[MOST], beside[MOST + 1];
static uint32_t narrow[MOST + 1], narrow_want[MOST], beside_narrow[MOST + 1];

static int by_wide(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int by_narrow(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t draw(void)
{
    static uint32_t state = 12345;
    state = state * 1664525 + 1013904223;
    return state ^ state >> 15;
}

// The places that give the pivot have the least words, again and again.
static void draw_uneven(uint64_t *x, int64_t n)
{
    static int64_t left[MOST];
    uint64_t least = 0;
    int64_t count = n;
    for (int64_t i = 0; i < n; i++) {
        x[i] = UINT64_MAX / 2 + draw();
        left[i] = i;
    }
    while (count >= 128) {
        int64_t step = count / 10, kept = 0;
        for (int64_t k = 1; k <= 9; k++)
            if (x[left[k * step]] >= UINT64_MAX / 2)
                x[left[k * step]] = least++;
        for (int64_t i = 0; i < count; i++)
            if (x[left[i]] >= UINT64_MAX / 2 || x[left[i]] + 5 >= least)
                left[kept++] = left[i];
        count = kept;
    }
}

enum { ANY, FEW, UP, DOWN, MOSTLY_LAST, UNEVEN, NUM_KINDS };

static uint64_t draw_word(int kind, int64_t i, int64_t n)
{
    if (kind == UP || kind == DOWN)
        return (uint64_t)(kind == UP ? i : n - i) << 31;
    if (kind == FEW)
        return draw() % 3;
    return kind == MOSTLY_LAST && draw() % 4 ? UINT64_MAX : (uint64_t)draw() << 32 | draw();
}

static void check_sorts(const struct cpu_kernels *k, int kind, int64_t n)
{
    for (int64_t i = 0; i < n && kind != UNEVEN; i++)
        wide[i] = draw_word(kind, i, n);
    if (kind == UNEVEN)
        draw_uneven(wide, n);
    for (int64_t i = 0; i < n; i++) {
        narrow[i] = narrow_want[i] = (uint32_t)(wide[i] >> (kind == UNEVEN ? 0 : 30));
        wide_want[i] = wide[i];
    }
    wide[n] = beside[n] = GUARD;
    narrow[n] = beside_narrow[n] = (uint32_t)GUARD;
    qsort(wide_want, (size_t)n, sizeof(*wide), by_wide);
    qsort(narrow_want, (size_t)n, sizeof(*narrow), by_narrow);
    k->quick->sort_64(wide, beside, n);
    k->quick->sort_32(narrow, beside_narrow, n);
    cr_assert(eq(int, memcmp(wide, wide_want, (size_t)n * sizeof(*wide)), 0),
              "%s kind %d of %d", k->name, kind, (int)n);
    cr_assert(eq(int, memcmp(narrow, narrow_want, (size_t)n * sizeof(*narrow)), 0),
              "%s kind %d of %d", k->name, kind, (int)n);
    cr_assert(wide[n] == GUARD && beside[n] == GUARD && narrow[n] == (uint32_t)GUARD &&
              beside_narrow[n] == (uint32_t)GUARD);
}

Test(cpu_sorts, words)
{
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
        if (((*k)->needs & cpu_features()) != (*k)->needs || !(*k)->quick->sort_32)
            continue;
        for (int kind = 0; kind < NUM_KINDS; kind++)
            for (int64_t n = 0; n <= MOST; n += n < 140 ? 1 : n < 700 ? 37 : 4300)
                check_sorts(*k, kind, n);
        for (int kind = 0; kind < NUM_KINDS; kind++)
            check_sorts(*k, kind, MOST);
    }
}

static void check_keys(const struct cpu_kernels *k, struct cpu_keys of, bool expected)
{
    float x[40], back[80];
    uint32_t keys[40];
    uint64_t items[40];
    for (int i = 0; i < 40; i++)
        x[i] = of.is_float ? (float)(i - 20) / 3 : 0;
    for (int i = 0; i < 40 && !of.is_float; i++)
        memcpy(&x[i], &(int32_t){(i - 20) * 100000000}, 4);
    if (!expected)
        x[17] = of.descending ? -0.0f : (float)NAN;
    cr_assert(eq(int, k->quick->keys_32(&of, x, keys, 40), expected));
    cr_assert(eq(int, k->quick->positions_32(&of, x, items, 40), expected));
    if (!expected)
        return;
    for (int i = 0; i < 40; i++)
        cr_assert(eq(u64, items[i], (uint64_t)keys[i] << 32 | (uint64_t)i));
    for (int i = 1; i < 40 && (of.is_float || of.is_signed); i++)
        cr_assert(of.descending ? keys[i] < keys[i - 1] : keys[i] > keys[i - 1]);
    k->quick->elements_32(&of, keys, back, 2, 40);
    for (int i = 0; i < 40; i++)
        cr_assert(eq(int, memcmp(&back[2 * i], &x[i], 4), 0));
}

Test(cpu_sorts, keys)
{
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
        if (((*k)->needs & cpu_features()) != (*k)->needs || !(*k)->quick->sort_32)
            continue;
        for (int i = 0; i < 8; i++)
            check_keys(*k, (struct cpu_keys){i % 4 == 0, i % 4 == 1, i & 4}, true);
        check_keys(*k, (struct cpu_keys){true, false, false}, false);
        check_keys(*k, (struct cpu_keys){true, false, true}, false);
    }
}

enum { SPREAD, TIES, FULL_LAST, EQUAL_LOW, CROWDED, NUM_ORDERS };

static const struct {
    const char *name;
    uint32_t keep; // bits of a random word
    bool is_done;  // the keys are spread evenly
} orders[NUM_ORDERS] = {
    [SPREAD] = {"random words", UINT32_MAX, true},
    [TIES] = {"words of which many are equal", 0xfffc0000, true},
    [FULL_LAST] = {"a last word that is no word of a table", UINT32_MAX, false},
    [EQUAL_LOW] = {"parts of equal words", 0xff000000, false},
    [CROWDED] = {"small words", 0xffff, false},
};

static void check_order(const struct cpu_kernels *k, int kind, int64_t n, bool descending)
{
    const struct cpu_keys of = {.descending = descending};
    uint32_t *x = malloc((size_t)n * sizeof(*x));
    uint64_t *want = malloc((size_t)n * 8), *places = malloc((size_t)(n + 1) * 8);
    uint64_t *other = malloc((size_t)(n + 1) * 8);
    for (int64_t i = 0; i < n; i++)
        x[i] = (draw() ^ draw() << 16) & orders[kind].keep;
    if (kind == FULL_LAST)
        x[n - 1] = descending ? 0 : UINT32_MAX;
    for (int64_t i = 0; i < n; i++)
        want[i] = (uint64_t)(descending ? ~x[i] : x[i]) << 32 | (uint64_t)i;
    qsort(want, (size_t)n, sizeof(*want), by_wide);
    places[n] = other[n] = GUARD;
    cr_assert(eq(int, k->quick->order_32(&of, x, places, other, n), orders[kind].is_done),
              "%s: %s, %d", k->name, orders[kind].name, (int)n);
    for (int64_t i = 0; i < n && orders[kind].is_done; i++)
        cr_assert(places[i] == (want[i] & UINT32_MAX), "%s: %s, %d at %d", k->name,
                  orders[kind].name, (int)n, (int)i);
    cr_assert(places[n] == GUARD && other[n] == GUARD);
    free(x);
    free(want);
    free(places);
    free(other);
}

Test(cpu_sorts, orders)
{
    static const int64_t counts[] = {16384, 16385, 23001, 32768};
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
        if (((*k)->needs & cpu_features()) != (*k)->needs || !(*k)->quick->order_32)
            continue;
        for (int kind = 0; kind < NUM_ORDERS; kind++)
            for (int i = 0; i < 4; i++)
                if (kind != FULL_LAST || (counts[i] & (counts[i] - 1)) == 0)
                    check_order(*k, kind, counts[i], i % 2);
        check_order(*k, SPREAD, 1 << 19, false);
    }
}
