// SPDX-License-Identifier: MIT
// The engine: opens packs for the shared objects that carry their manifests.
//
// A pack's memory is malloc's, not a host's: all runtimes of the process share the pack's
// tables, and the runtime that opened the pack may close before the others.
#include "engine.h"

#include <stdlib.h>
#include <string.h>
#include "gradient.h"
#include "make.h"
#include "rules.h"

// --- opening ---------------------------------------------------------------------------

static tn_status list_functions(struct ffi_pack *pack, struct problem *problem)
{
    uint32_t count = pack->num_functions;
    const tn_primitive **primitives =
        arena_alloc(&pack->arena, count * sizeof(*primitives));
    const tn_kernel **kernels = arena_alloc(&pack->arena, count * sizeof(*kernels));
    if (!primitives || !kernels)
        return problem_set(problem, TN_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        primitives[i] = &pack->functions[i]->primitive;
        kernels[i] = &pack->functions[i]->kernel;
    }
    pack->ops = (tn_ops){.struct_size = sizeof(tn_ops),
                         .primitives = primitives,
                         .kernels = kernels,
                         .num_primitives = count,
                         .num_kernels = count};
    return TN_OK;
}

static tn_status read_pack(const char *file, struct ffi_pack *pack, struct problem *problem)
{
    char *text = NULL;
    size_t size = 0;
    tn_status status = pack_find(file, &text, &size, problem);
    if (status == TN_OK && !text)
        status = problem_set(problem, TN_ERR_REFUSED,
                             "its manifest was cut off, by strip perhaps: make it again "
                             "with `tenon ffi make`");
    if (status == TN_OK)
        status = pack_read(text, size, "its manifest", false, pack, problem);
    free(text);
    if (status == TN_OK && pack->num_functions > pack->num_slots)
        status = problem_set(problem, TN_ERR_REFUSED,
                             "its manifest has %u functions, its code %llu: make it again "
                             "with `tenon ffi make`",
                             pack->num_functions, (unsigned long long)pack->num_slots);
    return status == TN_OK ? list_functions(pack, problem) : status;
}

static void engine_close(struct ffi_pack *pack)
{
    if (!pack)
        return;
    pack_finish(pack);
    free(pack);
}

static tn_status engine_open(const tn_host *host, const char *file,
                             const struct rules *slots, uint64_t num_slots,
                             struct ffi_pack **out_pack)
{
    struct problem problem = {0};
    struct ffi_pack *pack = malloc(sizeof(*pack));
    if (!pack)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    pack_init(pack, slots, num_slots);
    tn_status status = read_pack(file, pack, &problem);
    if (status != TN_OK) {
        engine_close(pack);
        return host->fail(host, status, "%s", problem.text);
    }
    *out_pack = pack;
    return TN_OK;
}

// --- an open pack ----------------------------------------------------------------------

static const tn_ops *engine_ops(const struct ffi_pack *pack)
{
    return &pack->ops;
}

static tn_status engine_check(const struct ffi_pack *pack, const tn_host *host,
                              const char *primitive)
{
    struct problem problem = {0};
    void *address;
    for (uint32_t i = 0; i < pack->num_functions; i++) {
        struct ffi_function *function = pack->functions[i];
        if (strcmp(function->id, primitive) != 0)
            continue;
        for (uint32_t k = 0; k < function->num_variants; k++)
            if (variant_find(function, k, &address, &problem) != TN_OK)
                return host->fail(host, problem.status, "%s", problem.text);
    }
    return TN_OK;
}

// --- entry points ----------------------------------------------------------------------

static tn_status engine_launch(const struct ffi_pack *pack, uint64_t number,
                               const tn_cpu_call *call)
{
    return function_launch(pack->functions[number], call);
}

static tn_status engine_infer(const struct ffi_pack *pack, uint64_t number,
                              const tn_infer *infer, tn_type *types)
{
    return function_infer(pack->functions[number], infer, types);
}

static uint64_t engine_scratch_size(const struct ffi_pack *pack, uint64_t number,
                                    const tn_kernel_query *query)
{
    return function_scratch(pack->functions[number], query);
}

static tn_status engine_vjp(const struct ffi_pack *pack, uint64_t number,
                            const tn_build *build, const tn_rule *rule,
                            tn_array *const *cotangents, const uint64_t *wanted,
                            tn_array **gradients)
{
    return gradients_build(pack->functions[number], build, rule, cotangents, wanted,
                           gradients);
}

static tn_status engine_vmap(const struct ffi_pack *pack, uint64_t number,
                             const tn_build *build, const tn_rule *rule,
                             const int32_t *axes, tn_array **outputs, int32_t *out_axes)
{
    return function_vmap(pack->functions[number], build, rule, axes, outputs, out_axes);
}

const struct engine ffi_engine = {
    .struct_size = sizeof(ffi_engine),
    .open = engine_open,
    .close = engine_close,
    .ops = engine_ops,
    .check = engine_check,
    .launch = engine_launch,
    .infer = engine_infer,
    .scratch_size = engine_scratch_size,
    .vjp = engine_vjp,
    .vmap = engine_vmap,
};
