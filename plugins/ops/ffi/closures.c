// SPDX-License-Identifier: MIT
// Entry points of callbacks: closures, which libffi makes at run time.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "rules.h"

struct closure {
    struct closure *next;
    ffi_closure *memory;
    ffi_cif cif;
};

// A closure's code returns integers widened to ffi_arg, as libffi requires.
static void ffi_closures_launch(ffi_cif *cif, void *result, void **args, void *function)
{
    (void)cif;
    *(ffi_sarg *)result = function_launch(function, *(const tn_cpu_call **)args[0]);
}

static void ffi_closures_infer(ffi_cif *cif, void *result, void **args, void *function)
{
    (void)cif;
    *(ffi_sarg *)result =
        function_infer(function, *(const tn_infer **)args[0], *(tn_type **)args[1]);
}

static void ffi_closures_scratch_size(ffi_cif *cif, void *result, void **args,
                                      void *function)
{
    (void)cif;
    *(uint64_t *)result = function_scratch(function, *(const tn_kernel_query **)args[0]);
}

static void ffi_closures_vmap(ffi_cif *cif, void *result, void **args, void *function)
{
    (void)cif;
    *(ffi_sarg *)result = function_vmap(
        function, *(const tn_build **)args[0], *(const tn_rule **)args[1],
        *(const int32_t **)args[2], *(tn_array ***)args[4], *(int32_t **)args[5]);
}

typedef void (*body)(ffi_cif *, void *, void **, void *);

// Makes a closure with the first `num_args` of the parameter types, which calls `code` with
// `function`. Returns the closure's address; function->closures owns the closure.
static void *ffi_closures_make(struct ffi_function *function, body code, uint32_t num_args,
                               ffi_type *result, struct problem *problem)
{
    static ffi_type *types[] = {&ffi_type_pointer, &ffi_type_pointer, &ffi_type_pointer,
                                &ffi_type_sint64,  &ffi_type_pointer, &ffi_type_pointer};
    struct closure *closure = calloc(1, sizeof(*closure));
    void *address = NULL;
    if (closure)
        closure->memory = ffi_closure_alloc(sizeof(ffi_closure), &address);
    if (!closure || !closure->memory) {
        free(closure);
        problem_set(problem, TN_ERR_MEMORY, "out of memory for closures");
        return NULL;
    }
    closure->next = function->closures;
    function->closures = closure;
    if (ffi_prep_cif(&closure->cif, FFI_DEFAULT_ABI, num_args, result, types) != FFI_OK ||
        ffi_prep_closure_loc(closure->memory, &closure->cif, code, function, address) !=
            FFI_OK) {
        problem_set(problem, TN_ERR_UNSUPPORTED, "libffi cannot make closures here");
        return NULL;
    }
    return address;
}

// Keeps libffi loaded when this plugin is unloaded. libffi never unmaps the pages of its
// closures, but reuses them when the plugin is loaded again. The first allocation of a
// closure initialises libffi's allocator, which libffi does not guard against other
// threads.
static void prepare_libffi(void)
{
    Dl_info info;
    void *address;
    if (dladdr((const void *)&ffi_type_void, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
    ffi_closure *first = ffi_closure_alloc(sizeof(ffi_closure), &address);
    if (first)
        ffi_closure_free(first);
}

const struct rules *closures_make(struct ffi_function *function, struct problem *problem)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct rules *rules = arena_alloc(&function->pack->arena, sizeof(*rules));
    pthread_once(&once, prepare_libffi);
    void *at_launch =
        ffi_closures_make(function, ffi_closures_launch, 1, &ffi_type_sint32, problem);
    void *at_infer =
        ffi_closures_make(function, ffi_closures_infer, 2, &ffi_type_sint32, problem);
    void *at_scratch = ffi_closures_make(function, ffi_closures_scratch_size, 1,
                                         &ffi_type_uint64, problem);
    void *at_vmap =
        ffi_closures_make(function, ffi_closures_vmap, 6, &ffi_type_sint32, problem);
    if (!rules)
        problem_set(problem, TN_ERR_MEMORY, "out of memory");
    if (problem->status != TN_OK)
        return NULL;
    // POSIX allows code addresses in pointers to data. ISO C has no conversion, so copy.
    memcpy(&rules->launch, &at_launch, sizeof(at_launch));
    memcpy(&rules->infer, &at_infer, sizeof(at_infer));
    memcpy(&rules->scratch_size, &at_scratch, sizeof(at_scratch));
    memcpy(&rules->vmap, &at_vmap, sizeof(at_vmap));
    return rules;
}

void closures_free(struct ffi_function *function)
{
    for (struct closure *closure = function->closures, *next; closure; closure = next) {
        next = closure->next;
        ffi_closure_free(closure->memory);
        free(closure);
    }
    function->closures = NULL;
}
