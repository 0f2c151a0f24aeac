// SPDX-License-Identifier: MIT
// Foreign libraries: opened when a function of theirs is first called, and never closed,
// because many start threads of their own.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include "openblas.h"
#include "pack.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static tn_status no_library(const struct library *library, struct problem *problem)
{
    char list[300] = "";
    const char *said = dlerror();
    for (size_t i = 0, at = 0; library->names[i] && at < sizeof(list); i++)
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s'%.100s'", i ? " or " : "",
                               library->names[i]);
    return problem_set(
        problem, TN_ERR_NOT_FOUND, "library %s cannot be opened (%.150s): %s", list,
        said ? said : "unknown",
        library->remedy ? library->remedy : "install it where the dynamic linker looks");
}

// The lock is held.
static tn_status open_library(struct library *library, struct problem *problem)
{
    for (size_t i = 0; library->names[i] && !library->handle; i++)
        library->handle = openblas_dlopen(library->names[i]);
    return library->handle ? TN_OK : no_library(library, problem);
}

static tn_status find_symbol(struct function *function, struct variant *variant,
                             struct problem *problem)
{
    tn_status status = open_library(function->library, problem);
    if (status != TN_OK)
        return status;
    void *address = dlsym(function->library->handle, variant->symbol);
    if (!address)
        return problem_set(
            problem, TN_ERR_NOT_FOUND,
            "library '%s' has no symbol '%s': install a version that has it%s%s",
            function->library->names[0], variant->symbol,
            function->library->remedy ? "; " : "",
            function->library->remedy ? function->library->remedy : "");
    atomic_store_explicit(&variant->address, address, memory_order_release);
    return TN_OK;
}

tn_status variant_find(struct function *function, uint32_t index, void **out_address,
                       struct problem *problem)
{
    struct variant *variant = &function->variants[index];
    void *address = atomic_load_explicit(&variant->address, memory_order_acquire);
    if (!address && function->library) {
        pthread_mutex_lock(&lock);
        tn_status status = find_symbol(function, variant, problem);
        pthread_mutex_unlock(&lock);
        if (status != TN_OK)
            return status;
        address = atomic_load_explicit(&variant->address, memory_order_acquire);
    }
    *out_address = address;
    return TN_OK;
}
