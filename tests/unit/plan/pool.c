// SPDX-License-Identifier: MIT
// The arena's free ranges beside a plain list of its units.
#include "plan/pool.h"

#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "base/fail.h"

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

Test(pool, it_takes_and_gives_as_a_list_does)
{
    struct pool pool = {.alignment = 64, .device = "test:0"};
    struct {
        uint64_t offset, size;
    } live[LIVE] = {{0}};
    srand(7);
    for (int round = 0; round < ROUNDS; round++) {
        int i = rand() % LIVE;
        uint32_t first = (uint32_t)(live[i].offset / 64);
        if (live[i].size > 0) {
            check_status(pool_give(&pool, live[i].offset, live[i].size), TN_OK);
            memset(used + first, false, (size_t)(live[i].size + 63) / 64);
            live[i].size = 0;
            continue;
        }
        live[i].size = 1 + (uint64_t)(rand() % (round % 3 ? 200 : 900));
        check_status(pool_take(&pool, live[i].size, &live[i].offset), TN_OK);
        cr_assert(
            eq(sz, live[i].offset / 64, list_take((uint32_t)((live[i].size + 63) / 64))));
        cr_assert(eq(u64, pool.end / 64, num_units));
        cr_assert(num_units < UNITS);
    }
    pool_finish(&pool);
}

Test(pool, what_does_not_fit_64_bits_is_refused)
{
    struct pool pool = {.alignment = 64, .device = "test:0"};
    uint64_t offset = 7, first;
    check_status(pool_take(&pool, UINT64_MAX, &offset), TN_ERR_MEMORY);
    check_says(fail_text(), "test:0");
    check_status(pool_take(&pool, UINT64_MAX - 127, &first), TN_OK);
    check_status(pool_take(&pool, 128, &offset), TN_ERR_MEMORY);
    check_says(fail_text(), "do not fit 64 bits");
    cr_assert(offset == 7 && first == 0);
    pool_finish(&pool);
}
