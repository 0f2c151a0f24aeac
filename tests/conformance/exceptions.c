// SPDX-License-Identifier: MIT
// What backends cannot do: never, by their nature, or today, until somebody does it. A
// check listed here that passes fails the run.
#include "conformance.h"
#include <fnmatch.h>

// Functions that GLSL has for f32 only; those of wider integers are f64 too.
#define FUNCTIONS                                                                          \
    "@(exp|exp2|expm1|log|log2|log10|log1p|sin|cos|tan|arcsin|arccos|arctan|sinh|cosh|"    \
    "tanh|arcsinh|arccosh|arctanh|erf|sigmoid|arctan2)"

struct exception {
    const char *backend; // pattern
    const char *check;   // pattern of "test/check"
    const char *reason;
};

static const struct exception never[] = {
    {"vulkan*", "base." FUNCTIONS "/f64 *", "GLSL has this function for f32 only"},
    {"vulkan*", "base.power/f64 *", "GLSL has pow for f32 only"},
    {"vulkan*", "base." FUNCTIONS "/@(i32|i64|u32|u64) *",
     "the result is f64, and GLSL has this function for f32 only"},
    {"vulkan*", "@(base.logsumexp|nn.softmax|nn.log_softmax|nn.cross_entropy)/* f64 *",
     "GLSL has exp and log for f32 only"},
    {"vulkan*", "base.random_normal/f64 *", "GLSL has log and cos for f32 only"},
    {"vulkan*", "nn.adam/f64 *", "GLSL has exp and log for f32 only"},
};

static const struct exception today[] = {
    {"vulkan*", "base.matmul/* bool *", "no kernel for bool"},
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
    const char *reason = FIND(never);
    return reason ? reason : FIND(today);
}

const char *driver_exception_of(const char *backend, const char *name)
{
    return FIND(drivers);
}
