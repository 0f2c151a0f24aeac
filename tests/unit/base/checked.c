// SPDX-License-Identifier: MIT
// Checked sizes: what fits is exact, what does not is told and changes nothing.
#include <tenon/checked.h>

#include "../check.h"

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

static void sizes_do_not_wrap(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *row = &rows[i];
        uint64_t got = NO;
        if (row->run(row->a, row->b, &got) != (row->want != NO) || got != row->want)
            fail_msg("%s of row %zu: got %llu", row->name, i, (unsigned long long)got);
    }
}

static void extents_do_not_wrap(void **state)
{
    (void)state;
    int64_t got = NO;
    assert_int_equal(tn_saturated_add(MAX - 1, 1), MAX);
    assert_int_equal(tn_saturated_add(MAX, 2), MAX);
    assert_int_equal(tn_saturated_multiply(HALF, 3), MAX);
    assert_int_equal(tn_saturated_multiply(3, 5), 15);
    assert_true(tn_checked_add_signed(INT64_MAX, INT64_MIN, &got) && got == -1);
    assert_true(tn_checked_add_signed(INT64_MIN, 0, &got) && got == INT64_MIN);
    assert_true(tn_checked_multiply_extents(INT64_MAX, 1, &got) && got == INT64_MAX);
    assert_true(tn_checked_multiply_extents(0, INT64_MAX, &got) && got == 0);
    got = NO;
    assert_false(tn_checked_add_signed(INT64_MAX, 1, &got));
    assert_false(tn_checked_add_signed(INT64_MIN, -1, &got));
    assert_false(tn_checked_multiply_extents(INT64_MAX / 2 + 1, 2, &got));
    assert_int_equal(got, NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_do_not_wrap),
        cmocka_unit_test(extents_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
