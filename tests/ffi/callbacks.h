// SPDX-License-Identifier: MIT
// What the tests of callbacks share.
#ifndef TESTS_FFI_CALLBACKS_H
#define TESTS_FFI_CALLBACKS_H

#include <math.h>
#include "check.h"
#include <tenon/ffi.h>

typedef void (*function)(void);

static tn_runtime *runtime; // of the test that runs

static inline void open_runtime(void)
{
    check_status(tn_runtime_open(NULL, &runtime), TN_OK);
}

static inline void close_runtime(void)
{
    tn_runtime_close(runtime);
}

static inline void add(tn_runtime *rt, const char *id, const char *signature, function f,
                       void *user)
{
    if (tn_callback_add(rt, id, signature, f, user))
        cr_fatal("%s", tn_last_error());
}

static inline tn_status add_flags(tn_runtime *rt, uint32_t flags, const char *id,
                                  const char *signature, function f, void *user)
{
    const tn_ffi *ffi = NULL;
    const tn_host *host = NULL;
    if (tn_ffi_find(rt, &ffi, &host))
        cr_fatal("%s", tn_last_error());
    const tn_callback callback = {sizeof(callback), flags, id, signature, f, user};
    return ffi->callback_add(host, &callback);
}

static inline tn_array *f64s(tn_scope *s, tn_shape shape, const double *data)
{
    return tn_from_data(s, TN_F64, &shape, data);
}

// Evaluates, and compares with `count` numbers.
static inline void expect(tn_scope *s, tn_array *y, const double *expected, size_t count)
{
    double got[64];
    if (tn_read(s, y, got, count * sizeof(*got)))
        cr_fatal("%s", tn_scope_error(s));
    for (size_t i = 0; i < count; i++)
        if (got[i] != expected[i])
            cr_fatal("element %zu: got %g, expected %g", i, got[i], expected[i]);
}

static inline double plus(double x)
{
    return x + 1;
}

static inline double negated(double x)
{
    return -x;
}

#endif // TESTS_FFI_CALLBACKS_H
