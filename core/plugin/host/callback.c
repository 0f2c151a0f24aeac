// SPDX-License-Identifier: MIT
// Callbacks: application code that a kernel calls. Each thread has a stack of the runtimes
// whose kernels are calling back on it, so that waiting for one of these runtimes is
// refused instead of deadlocking.
#include "../../base/fail.h"
#include "host.h"

// One callback in progress; lives on the machine stack of call_back().
struct callback_call {
    const tn_runtime *runtime;
    const struct callback_call *outer; // the enclosing callback of this thread; NULL: none
};

static _Thread_local const struct callback_call *innermost;

static bool is_in(const tn_runtime *runtime)
{
    const struct callback_call *call = innermost;
    while (call && call->runtime != runtime)
        call = call->outer;
    return call;
}

tn_status callback_check(const tn_runtime *runtime)
{
    tn_status status = life_check(&runtime->life);
    if (status != TN_OK || !is_in(runtime))
        return status;
    return fail(TN_ERR_ARGUMENT,
                "a callback evaluates in the runtime that called it, which would wait for "
                "itself: evaluate what it needs before, or in another runtime");
}

bool callback_refuses(const tn_runtime *runtime, const char *what)
{
    if (!is_in(runtime))
        return false;
    fail(TN_ERR_ARGUMENT,
         "%s does nothing in a callback of the same runtime: it would wait for itself",
         what);
    log_write(runtime->config, TN_LOG_ERROR, "sched", "%s", fail_text());
    return true;
}

static void call_back(const tn_host *host, void (*body)(void *context), void *context)
{
    const struct callback_call call = {host->self->runtime, innermost};
    innermost = &call;
    body(context);
    innermost = call.outer;
}

static int32_t is_inside(const tn_host *host)
{
    return is_in(host->self->runtime);
}

const tn_host_callbacks *callbacks_service(void)
{
    static const tn_host_callbacks service = {
        .struct_size = sizeof(service),
        .call = call_back,
        .is_inside = is_inside,
    };
    return &service;
}
