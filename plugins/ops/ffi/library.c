// SPDX-License-Identifier: MIT
// Foreign libraries: opened at the first call of one of their functions. Never closed: a
// library may have started threads, which run its code.
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include "openblas/openblas.h"
#include "pack.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all libraries' handles

static tn_status no_library(const struct library *library, struct problem *problem)
{
    char list[300] = "";
    const char *reason = dlerror();
    for (size_t i = 0, at = 0; library->names[i] && at < sizeof(list); i++)
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s'%.100s'", i ? " or " : "",
                               library->names[i]);
    return problem_set(
        problem, TN_ERR_NOT_FOUND, "library %s cannot be opened (%.150s): %s", list,
        reason ? reason : "unknown",
        library->remedy ? library->remedy : "install it where the dynamic linker looks");
}

static tn_status no_symbol(const struct library *library, const char *symbol,
                           struct problem *problem)
{
    return problem_set(problem, TN_ERR_NOT_FOUND,
                       "library '%s' has no symbol '%s': install a version that has it%s%s",
                       library->names[0], symbol, library->remedy ? "; " : "",
                       library->remedy ? library->remedy : "");
}

// Makes one set-up call, whose arguments are constants.
static tn_status set_up(const struct library *library, const struct callee *callee,
                        void *handle, struct problem *problem)
{
    union argument_value values[MAX_ARGS];
    void *pointers[MAX_ARGS], *slots[MAX_ARGS];
    union result result = {.bytes = {0}};
    void *address = dlsym(handle, callee->symbols[0]);
    if (!address)
        return no_symbol(library, callee->symbols[0], problem);
    for (uint32_t i = 0; i < callee->num_args; i++) {
        const struct argument *arg = &callee->args[i];
        number_store(&values[i], arg->type, arg->integer, arg->real);
        pointers[i] = &values[i];
        slots[i] = arg->by_pointer ? (void *)&pointers[i] : &values[i];
    }
    ffi_call(&callee->cifs[0], FFI_FN(address), &result, slots);
    int64_t status =
        callee->returns == RETURNS_STATUS ? integer_load(&result, callee->return_type) : 0;
    if (!status_fails(callee->fails, status))
        return TN_OK;
    return problem_set(problem, TN_ERR_UNSUPPORTED,
                       "library '%s' cannot be set up: %s returned status %" PRId64 "%s%s",
                       library->names[0], callee->symbols[0], status,
                       library->remedy ? ": " : "", library->remedy ? library->remedy : "");
}

// The lock is held. After a failed set-up call the library counts as not opened: the next
// call of a function tries all set-up calls again.
static tn_status ffi_open_library(struct library *library, struct problem *problem)
{
    void *handle = library->handle;
    if (handle)
        return TN_OK;
    for (size_t i = 0; library->names[i] && !handle; i++)
        handle = openblas_dlopen(library->names[i]);
    if (!handle)
        return no_library(library, problem);
    for (uint32_t i = 0; i < library->num_setups; i++) {
        tn_status status = set_up(library, &library->setups[i], handle, problem);
        if (status != TN_OK)
            return status;
    }
    library->handle = handle;
    return TN_OK;
}

// Stores the address of a symbol in *address, once. Opens its library first.
static tn_status find_symbol(struct library *library, const char *symbol,
                             _Atomic(void *) *address, struct problem *problem)
{
    if (atomic_load_explicit(address, memory_order_acquire))
        return TN_OK;
    pthread_mutex_lock(&lock);
    tn_status status = ffi_open_library(library, problem);
    void *found = status == TN_OK ? dlsym(library->handle, symbol) : NULL;
    pthread_mutex_unlock(&lock);
    if (status != TN_OK)
        return status;
    if (!found)
        return no_symbol(library, symbol, problem);
    atomic_store_explicit(address, found, memory_order_release);
    return TN_OK;
}

// Finds the functions that create and destroy the function's handles.
static tn_status find_handles(struct ffi_function *function, uint32_t variant,
                              struct problem *problem)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < function->num_handles && status == TN_OK; i++) {
        struct callee *both[] = {&function->handles[i].create,
                                 &function->handles[i].destroy};
        for (int k = 0; k < 2 && status == TN_OK; k++)
            status = find_symbol(function->library, both[k]->symbols[variant],
                                 &both[k]->addresses[variant], problem);
    }
    return status;
}

tn_status variant_find(struct ffi_function *function, uint32_t index, void **out_address,
                       struct problem *problem)
{
    struct variant *variant = &function->variants[index];
    if (function->library) {
        tn_status status =
            find_symbol(function->library, variant->symbol, &variant->address, problem);
        if (status != TN_OK)
            return status;
    }
    *out_address = atomic_load_explicit(&variant->address, memory_order_acquire);
    return find_handles(function, index, problem);
}
