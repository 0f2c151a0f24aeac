// SPDX-License-Identifier: MIT
// Messages of libtenon-lm, memory, and structs of applications that may be older or newer.
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

// NaN without its sign, which is no one's business: "nan" in messages on every machine.
static inline double lm_unsigned_nan(double x)
{
    return isnan(x) ? fabs(x) : x;
}

// Fails where one of `count` values is NaN or infinite; the message begins with what the
// values are.
tn_status lm_check_numbers(const float *values, uint64_t count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The first failure of several, which later ones do not replace. Zeros: none.
struct lm_failure {
    tn_status status;
    char text[1024];
};
void lm_failure_note(struct lm_failure *failure, tn_status status);
tn_status lm_failure_tell(const struct lm_failure *failure);

// Memory that is zero; records a failure when there is none.
void *lm_alloc(uint64_t count, uint64_t size);

// Copies a struct of an application, whose fields from `size` on are zero.
// TN_ERR_ARGUMENT: it is longer, and sets what this library does not know.
tn_status lm_read_struct(void *mine, uint64_t size, const void *given, uint32_t given_size,
                         const char *what);
void lm_write_struct(void *out, uint32_t out_size, const void *mine, uint64_t size);

#endif // LM_FAIL_H
