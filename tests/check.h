// SPDX-License-Identifier: MIT
// Criterion, with assertions that show values, and checks of statuses.
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assertion.h"
#include <criterion/parameterized.h>
#include <tenon/tenon.h>

// The status that a call returns; if it is another, its name and the thread's reason are
// shown. For programs that link libtenon.
#define check_status(call, expected)                                                       \
    do {                                                                                   \
        tn_status checked_status = (call);                                                 \
        cr_assert(eq(int, checked_status, expected), "%s returned \"%s\": %s", #call,      \
                  tn_status_name(checked_status), tn_last_error());                        \
    } while (0)

// Not inline: where the address of a thread-local array is compared with NULL,
// binutils 2.40 replaces the `add` whose flags are looked at by a `lea`, which sets none.
__attribute__((noinline, unused)) static bool text_holds(const char *text, const char *part)
{
    return text && strstr(text, part);
}

// That a text holds a part of it.
#define check_says(text, part)                                                             \
    do {                                                                                   \
        const char *checked_text = (text);                                                 \
        cr_assert(text_holds(checked_text, part), "\"%s\" does not say \"%s\"",            \
                  checked_text, part);                                                     \
    } while (0)

// low <= value <= high, in a type of Criterion's. Its own all() leaks what it compares.
#define check_within(tag, value, low, high)                                                \
    do {                                                                                   \
        cr_assert(ge(tag, value, low));                                                    \
        cr_assert(le(tag, value, high));                                                   \
    } while (0)

// What the build tells a test, by the environment: its workers inherit it.
static inline const char *check_getenv(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        cr_fatal("%s is not set: `meson test` sets it", name);
    return value;
}

// A test with a dtype as its parameter, `first` and all after it: each in a process of its
// own. The body follows. FIRST_DTYPE_TEST: the dtypes of TN_FIRST_DTYPES.
#define DTYPE_TEST(suite, name, dtype, first)                                              \
    DTYPE_TEST_UNTIL(suite, name, dtype, first, TN_NUM_DTYPES)
#define FIRST_DTYPE_TEST(suite, name, dtype, first)                                        \
    DTYPE_TEST_UNTIL(suite, name, dtype, first, TN_F64 + 1)
#define DTYPE_TEST_UNTIL(suite, name, dtype, first, end)                                   \
    ParameterizedTestParameters(suite, name)                                               \
    {                                                                                      \
        static tn_dtype dtypes[TN_NUM_DTYPES];                                             \
        for (tn_dtype i = TN_BOOL; i < TN_NUM_DTYPES; i++)                                 \
            dtypes[i] = i;                                                                 \
        return cr_make_param_array(tn_dtype, dtypes + (first), (end) - (first));           \
    }                                                                                      \
    static void suite##_##name##_of(tn_dtype dtype);                                       \
    ParameterizedTest(tn_dtype *parameter, suite, name)                                    \
    {                                                                                      \
        fprintf(stderr, "# %s: %s\n", #name, tn_dtype_name(*parameter));                   \
        suite##_##name##_of(*parameter);                                                   \
    }                                                                                      \
    static void suite##_##name##_of(tn_dtype dtype)

// A seed that the environment may give, so that a failure can be repeated.
static inline uint64_t check_seed(uint64_t otherwise)
{
    const char *text = getenv("TENON_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : otherwise;
    fprintf(stderr, "# TENON_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

// For eq(mem, ...).
static inline struct cr_mem bytes_of(const void *data, size_t size)
{
    return (struct cr_mem){data, size};
}

#endif // TESTS_CHECK_H
