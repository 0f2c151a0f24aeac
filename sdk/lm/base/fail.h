// SPDX-License-Identifier: MIT
// Messages of libtenon-lm, memory, and option structs of applications of another version.
#ifndef LM_FAIL_H
#define LM_FAIL_H

#include <math.h>
#include <stdbool.h>
#include <tenon/lm.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// Replaces the thread's message; returns `status`.
tn_status lm_fail(tn_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The failure of the core's function that has just returned `status`, and of a scope.
tn_status lm_fail_core(tn_status status);
tn_status lm_fail_scope(const tn_scope *scope);

// NaN without its sign: messages have "nan" on every machine, never "-nan".
static inline double lm_unsigned_nan(double x)
{
    return isnan(x) ? fabs(x) : x;
}

// Fails where one of `count` values is NaN or infinite; the message begins with the
// formatted text, which names the values.
tn_status lm_check_numbers(const float *values, uint64_t count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Keeps the first of several failures. Zeros: none.
struct lm_failure {
    tn_status status;
    char text[1024];
};
void lm_failure_note(struct lm_failure *failure, tn_status status);
tn_status lm_failure_tell(const struct lm_failure *failure);

// Zeroed memory; records a failure when there is none.
void *lm_alloc(uint64_t count, uint64_t size);

// Copies an option struct of an application; fields from `size` on are zero.
// TN_ERR_ARGUMENT: the struct is longer, and sets fields that this library does not know.
tn_status lm_read_struct(void *mine, uint64_t size, const void *given, uint32_t given_size,
                         const char *what);
void lm_write_struct(void *out, uint32_t out_size, const void *mine, uint64_t size);

#endif // LM_FAIL_H
