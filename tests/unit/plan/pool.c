// SPDX-License-Identifier: MIT
// The arena's free ranges beside a plain list of its units.
#include "plan/pool.h"

#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "base/fail.h"
#include "base/memory.h"

#define UNITS 4096 // of 64 bytes, that the list knows
#define LIVE 200
#define ROUNDS 20000

static bool used[UNITS]; // by unit
static uint32_t num_units;

// Where the smallest free range of at least `units` begins, the lowest of equal ones.
static uint32_t list_take(uint32_t units)
{
    uint32_t best = UNITS, best_size = UNITS + 1;
    for (uint32_t i = 0, n; i < num_units; i += n ? n : 1) {
        for (n = 0; i + n < num_units && !used[i + n];)
            n++;
        if (n >= units && n < best_size) {
            best = i;
            best_size = n;
        }
    }
    if (best == UNITS) { // at the end, where a free range may lie
        best = num_units;
        while (best > 0 && !used[best - 1])
            best--;
        num_units = best + units;
    }
    memset(used + best, true, units);
    return best;
}

// More ranges than are compared with each other, of which some LIVE are in use at once.
Test(pool, many_ranges_lie_where_a_list_has_them)
{
    static struct pool_range ranges[ROUNDS];
    uint32_t current[LIVE], count = 0; // index + 1 of a range
    srand(7);
    memset(current, 0, sizeof(current));
    for (uint32_t step = 0; step < ROUNDS; step++) {
        uint32_t *r = &current[rand() % LIVE];
        if (*r) {
            ranges[*r - 1].last = step;
            *r = 0;
            continue;
        }
        ranges[count] =
            (struct pool_range){.size = 1 + (uint64_t)(rand() % (step % 3 ? 200 : 900)),
                                .first = step,
                                .last = ROUNDS};
        *r = ++count;
    }
    cr_assert(count > 4096);
    struct arena stack = {0};
    uint64_t end;
    check_status(pool_assign("test:0", 64, &stack, ranges, count, &end), TN_OK);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++)
            if (ranges[k].last < ranges[i].first &&
                (i == 0 || ranges[k].last >= ranges[i - 1].first))
                memset(used + ranges[k].offset / 64, false, (size_t)ranges[k].size / 64);
        uint32_t first = list_take((uint32_t)(ranges[i].size / 64));
        cr_assert(eq(u64, ranges[i].offset / 64, first));
        cr_assert(num_units < UNITS);
    }
    cr_assert(eq(u64, end / 64, num_units));
    arena_finish(&stack);
}

Test(pool, what_does_not_fit_64_bits_is_refused)
{
    static const uint64_t sizes[][2] = {{64, UINT64_MAX}, {UINT64_MAX - 127, 128}};
    for (uint32_t i = 0; i < 2; i++) {
        struct pool_range ranges[] = {{.size = sizes[i][0]}, {.size = sizes[i][1]}};
        struct arena stack = {0};
        uint64_t end = 7;
        check_status(pool_assign("test:0", 64, &stack, ranges, 2, &end), TN_ERR_MEMORY);
        check_says(fail_text(), "device test:0: values of this graph do not fit 64 bits");
        cr_assert(eq(u64, end, 7));
        ranges[1].size = 64;
        ranges[1].first = ranges[1].last = 1; // behind the other
        check_status(pool_assign("test:0", 64, &stack, ranges, 2, &end), TN_OK);
        arena_finish(&stack);
    }
}

static bool pool_ranges_meet(const struct pool_range *a, const struct pool_range *b)
{
    return a->first <= b->last && b->first <= a->last && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

// Assigns offsets, and checks that ranges of one time lie apart, and all of them below the
// end. Gives the end.
static uint64_t pool_end_of(struct pool_range *ranges, uint32_t count)
{
    struct arena stack = {0};
    uint64_t end;
    check_status(pool_assign("test:0", 64, &stack, ranges, count, &end), TN_OK);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert(ranges[i].offset % 64 == 0 && ranges[i].size <= end - ranges[i].offset);
        for (uint32_t k = 0; k < i; k++)
            cr_assert(not(pool_ranges_meet(&ranges[i], &ranges[k])), "%u and %u", k, i);
    }
    arena_finish(&stack);
    return end;
}

Test(pool, a_gap_that_nothing_larger_fits_is_closed)
{
    // By step the small range takes the front of the memory that the large one left.
    struct pool_range ranges[] = {
        {.size = 1000000, .first = 0, .last = 1},
        {.size = 100, .first = 2, .last = 4},
        {.size = 999999, .first = 3, .last = 3},
    };
    cr_assert(eq(u64, pool_end_of(ranges, 3), 1000000 + 128));
    cr_assert(eq(u64, ranges[1].size, 128));
    cr_assert(eq(u64, pool_end_of(ranges, 0), 0));
}

Test(pool, ranges_of_one_time_lie_apart)
{
    static struct pool_range ranges[5000]; // more than are compared with each other
    srand(5);
    for (uint32_t count = 8; count <= 5000; count *= 5) {
        uint64_t live[5040] = {0}, most = 0;
        for (uint32_t i = 0; i < count; i++) {
            ranges[i] = (struct pool_range){
                .size = 64 << rand() % 12, .first = i, .last = i + (uint32_t)(rand() % 40)};
            for (uint32_t step = i; step <= ranges[i].last; step++) {
                live[step] += ranges[i].size;
                most = live[step] > most ? live[step] : most;
            }
        }
        uint64_t end = pool_end_of(ranges, count);
        cr_assert(end >= most && end <= most + most / 8, "%u", count);
    }
}
