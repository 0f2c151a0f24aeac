// SPDX-License-Identifier: MIT
// Checked sizes: what fits is exact, what does not is told and changes nothing.
#include <tenon/checked.h>

#include "check.h"

#define MAX UINT64_MAX
#define HALF (UINT64_C(1) << 63)
#define NO 77 // what *out keeps when a result does not fit

typedef int32_t (*checked_fn)(uint64_t a, uint64_t b, uint64_t *out);

static const struct row {
    const char *name;
    checked_fn run;
    uint64_t a, b, want; // NO: does not fit
} rows[] = {
    {"add", tn_checked_add, 0, 0, 0},
    {"add", tn_checked_add, MAX - 1, 1, MAX},
    {"add", tn_checked_add, MAX, 1, NO},
    {"add", tn_checked_add, 1, MAX, NO},
    {"add", tn_checked_add, HALF, HALF, NO},
    {"multiply", tn_checked_multiply, 0, MAX, 0},
    {"multiply", tn_checked_multiply, MAX, 0, 0},
    {"multiply", tn_checked_multiply, MAX, 1, MAX},
    {"multiply", tn_checked_multiply, HALF, 2, NO},
    {"multiply", tn_checked_multiply, UINT32_MAX, UINT64_C(1) << 32, MAX - UINT32_MAX},
    {"multiply", tn_checked_multiply, UINT64_C(1) << 32, UINT64_C(1) << 32, NO},
    {"round_up", tn_checked_round_up, 0, 256, 0},
    {"round_up", tn_checked_round_up, 1, 256, 256},
    {"round_up", tn_checked_round_up, 256, 256, 256},
    {"round_up", tn_checked_round_up, 10, 3, 12},
    {"round_up", tn_checked_round_up, MAX, 1, MAX},
    {"round_up", tn_checked_round_up, MAX - 255, 256, MAX - 255},
    {"round_up", tn_checked_round_up, MAX - 254, 256, NO},
};

Test(checked, sizes_do_not_wrap)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *row = &rows[i];
        uint64_t got = NO;
        if (row->run(row->a, row->b, &got) != (row->want != NO) || got != row->want)
            cr_fatal("%s of row %zu: got %llu", row->name, i, (unsigned long long)got);
    }
}

Test(checked, extents_do_not_wrap)
{
    int64_t got = NO;
    cr_assert(eq(u64, tn_saturated_add(MAX - 1, 1), MAX));
    cr_assert(eq(u64, tn_saturated_add(MAX, 2), MAX));
    cr_assert(eq(u64, tn_saturated_multiply(HALF, 3), MAX));
    cr_assert(eq(u64, tn_saturated_multiply(3, 5), 15));
    cr_assert(tn_checked_add_signed(INT64_MAX, INT64_MIN, &got) && got == -1);
    cr_assert(tn_checked_add_signed(INT64_MIN, 0, &got) && got == INT64_MIN);
    cr_assert(tn_checked_multiply_extents(INT64_MAX, 1, &got) && got == INT64_MAX);
    cr_assert(tn_checked_multiply_extents(0, INT64_MAX, &got) && got == 0);
    got = NO;
    cr_assert(not(tn_checked_add_signed(INT64_MAX, 1, &got)));
    cr_assert(not(tn_checked_add_signed(INT64_MIN, -1, &got)));
    cr_assert(not(tn_checked_multiply_extents(INT64_MAX / 2 + 1, 2, &got)));
    cr_assert(eq(i64, got, NO));
}
