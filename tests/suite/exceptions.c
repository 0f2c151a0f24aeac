// SPDX-License-Identifier: MIT
// What backends cannot do today, until somebody does it. A check listed here that passes
// fails the run.
#include "suite.h"
#include <fnmatch.h>

struct exception {
    const char *backend; // pattern
    const char *check;   // pattern of "test/check"
    const char *reason;
};

static const struct exception today[] = {
    {"vulkan*", "base.matmul/* bool *", "no kernel for bool"},
    {"vulkan*", "what NumPy gives/fft.*", "transforms have kernels on the CPU alone"},
    {"vulkan*", "what NumPy gives/linalg.@(cond|expm|matrix_rank|pinv) *",
     "factors have kernels on the CPU alone"},
    {"vulkan*", "what NumPy gives/quant.groupwise_quantize *", "no kernel for encoding"},
};

// What some drivers get wrong: a pass is no surprise.
static const struct exception drivers[] = {
    {"vulkan*", "infinities*/round f64", "lavapipe rounds 1.5 in f64 to 1"},
};

static const char *find(const struct exception *list, size_t count, const char *backend,
                        const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (fnmatch(list[i].backend, backend, FNM_EXTMATCH) == 0 &&
            fnmatch(list[i].check, name, FNM_EXTMATCH) == 0)
            return list[i].reason;
    return NULL;
}

#define FIND(list) find(list, sizeof(list) / sizeof((list)[0]), backend, name)

const char *exception_of(const char *backend, const char *name)
{
    return FIND(today);
}

const char *driver_exception_of(const char *backend, const char *name)
{
    return FIND(drivers);
}
