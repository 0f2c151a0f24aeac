// SPDX-License-Identifier: MIT
// Expressions over extents: values, and what overflows.
#include <inttypes.h>
#include "check.h"
#include "extent.h"

static int two_names(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "m") == 0 ? 0 : strcmp(name, "n") == 0 ? 1 : -1;
}

Test(extents, extents_are_computed_and_overflow_is_seen)
{
    static const struct {
        const char *text;
        int64_t m, n, value;
        bool good;
    } cases[] = {
        {"2 * m + 3 * n - 1", 5, 7, 30, true},
        {"m - n - 1", 10, 3, 6, true},
        {"(m + n) / 2 * 2", 3, 4, 6, true},
        {"-m / 2", 7, 0, -4, true}, // rounds down
        {"-m % 3", 7, 0, 2, true},
        {"max(1, min(m, n))", -3, 9, 1, true},
        {"min(max(m, n), m + n)", 4, 6, 6, true},
        {"- - m", 4, 0, 4, true},
        {"m * n", INT64_C(1) << 32, INT64_C(1) << 31, 0, false},
        {"m + n", INT64_MAX, 1, 0, false},
        {"m / n", 1, 0, 0, false},
        {"m % n", 1, 0, 0, false},
        {"m / n", INT64_MIN, -1, 0, false},
        {"m / n", -1, INT64_MIN, 0, true},
        {"m % n", -1, INT64_MIN, -1, true},
        {"m % n", 1, INT64_MIN, INT64_MIN + 1, true},
        {"m / n", 1, INT64_MIN, -1, true},
        {"-m", INT64_MIN, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ffi_arena arena = {0};
        struct problem problem = {0};
        struct extent extent;
        int64_t value = 0, values[] = {cases[i].m, cases[i].n};
        if (extent_parse(&arena, cases[i].text, two_names, NULL, &extent, &problem))
            cr_fatal("%s", problem.text);
        tn_status status = extent_eval(&extent, values, &value, &problem);
        if ((status == TN_OK) != cases[i].good ||
            (cases[i].good && value != cases[i].value))
            cr_fatal("%s: got %" PRId64 " %s", cases[i].text, value, problem.text);
        arena_finish(&arena);
    }
}
