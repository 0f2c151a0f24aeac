// SPDX-License-Identifier: MIT
// Caches of keys and values: several sequences share arrays, each with a slot of its own,
// so that one step serves them all.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/quant.h>
#include "../base/fail.h"
#include "caches.h"
#include "devices.h"

// --- types -----------------------------------------------------------------------------

// Names by which options choose the elements of caches.
static const struct cache_kind {
    const char *name;
    tn_dtype dtype;
    const char *format; // of blocks; NULL: floats
} kinds[] = {{"f16", TN_F16, NULL}, {"f32", TN_F32, NULL}, {"q8_0", TN_U8, "q8_0"}};

tn_status lm_caches_choose(tn_lm *model, const char *name)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (name && strcmp(name, kinds[i].name) != 0)
            continue;
        model->cache_name = kinds[i].name;
        model->cache_dtype = kinds[i].dtype;
        model->cache_format = kinds[i].format;
        return TN_OK;
    }
    return lm_fail(TN_ERR_ARGUMENT, "caches of '%s', expected f16, f32 or q8_0", name);
}

// Gives a cache type the elements and slots of the options, if its layout is one that
// sequences can share.
static tn_status caches_adapt(const tn_lm *model, tn_type *type)
{
    bool is_shared = type->dtype == TN_F32 && type->rank == 4 && type->extent[0] == 1;
    if (!is_shared && (model->slots > 1 || model->cache_format))
        return lm_fail(TN_ERR_UNSUPPORTED,
                       "%s: its caches are not of f32 [1, kv_heads, positions, width]: "
                       "sequences cannot share them, nor are they kept as blocks",
                       model->plugin);
    if (!is_shared)
        return TN_OK;
    type->extent[0] = model->slots;
    type->dtype = model->cache_dtype;
    if (!model->cache_format)
        return TN_OK;
    const tn_quant_format *format = tn_quant_find(model->cache_format);
    if (type->extent[3] % format->block)
        return lm_fail(TN_ERR_ARGUMENT,
                       "caches of %s need heads of a multiple of %" PRId64
                       " elements, this model's have %" PRId64,
                       model->cache_name, format->block, type->extent[3]);
    type->extent[3] = type->extent[3] / format->block * format->bytes;
    return TN_OK;
}

tn_status lm_caches_types(const tn_lm *model, int64_t layer, tn_type *out)
{
    tn_status status = lm_fail_core(
        model->ops->caches(model->host, model->self, layer, model->capacity, out));
    for (uint32_t i = 0; i < model->facts->num_caches && status == TN_OK; i++)
        status = caches_adapt(model, &out[i]);
    return status;
}

uint64_t lm_type_bytes(const tn_type *type)
{
    uint64_t bytes = (uint64_t)tn_dtype_bytes(type->dtype);
    for (int32_t i = 0; i < type->rank; i++)
        bytes *= (uint64_t)type->extent[i];
    return bytes;
}

// --- memory ----------------------------------------------------------------------------

// A cache of zeros whose pages the system gives when they are first written.
static tn_array *cache_make(tn_scope *scope, const tn_type *type)
{
    uint64_t bytes = (lm_type_bytes(type) + 63) / 64 * 64;
    tn_shape shape = {.rank = type->rank};
    memcpy(shape.extent, type->extent, (size_t)type->rank * sizeof(shape.extent[0]));
    void *memory = calloc(1, bytes + 64);
    if (!memory) {
        tn_scope_fail(scope, TN_ERR_MEMORY,
                      "out of memory for a cache of %" PRIu64 " bytes", bytes);
        return NULL;
    }
    char *aligned = (char *)memory + (64 - (uintptr_t)memory % 64) % 64;
    const tn_host_memory given = {.struct_size = sizeof(given),
                                  .flags = TN_MEMORY_WRITABLE,
                                  .data = aligned,
                                  .release = free,
                                  .context = memory};
    return tn_array_import_host(scope, type->dtype, &shape, &given);
}

static tn_status caches_make_arrays(const tn_lm *model, struct lm_caches *caches)
{
    uint32_t each = model->facts->num_caches;
    tn_scope *scope = tn_scope_open(model->runtime);
    tn_status status = lm_fail_scope(scope);
    for (uint64_t i = 0; i < caches->count && status == TN_OK; i += each) {
        tn_type types[TN_MODEL_CACHES];
        status = lm_caches_types(model, model->first + (int64_t)(i / each), types);
        lm_scope_on(&model->division, lm_part_of_cache(model, i), scope);
        for (uint32_t k = 0; k < each && status == TN_OK; k++) {
            caches->arrays[i + k] = tn_keep(scope, cache_make(scope, &types[k]));
            status = lm_fail_scope(scope);
        }
    }
    tn_scope_close(scope);
    return status;
}

static void caches_free(struct lm_caches *caches)
{
    for (uint64_t i = 0; caches->arrays && i < caches->count; i++)
        tn_release(caches->arrays[i]);
    pthread_mutex_destroy(&caches->lock);
    free(caches->arrays);
    free(caches->is_taken);
    free(caches);
}

static tn_status caches_make(tn_lm *model, struct lm_caches **out_caches)
{
    struct lm_caches *caches = lm_alloc(1, sizeof(*caches));
    if (!caches)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&caches->lock, NULL);
    caches->count = (uint64_t)(model->end - model->first) * model->facts->num_caches;
    caches->arrays = lm_alloc(caches->count, sizeof(tn_array *));
    caches->is_taken = lm_alloc((uint64_t)model->slots, sizeof(bool));
    tn_status status = caches->arrays && caches->is_taken
                           ? caches_make_arrays(model, caches)
                           : TN_ERR_MEMORY;
    if (status == TN_OK)
        *out_caches = caches;
    else
        caches_free(caches);
    return status;
}

int64_t lm_part_of_cache(const tn_lm *model, uint64_t index)
{
    int64_t layer = model->first + (int64_t)(index / model->facts->num_caches);
    return lm_part_of(&model->division, layer);
}

void lm_caches_note(struct lm_caches *caches, tn_status status)
{
    struct lm_failure failure = {TN_OK, ""};
    bool is_taken = false;
    lm_failure_note(&failure, status);
    for (uint64_t i = 0; i < caches->count; i++) {
        tn_array *again = tn_retain(NULL, caches->arrays[i]);
        is_taken = is_taken || !again;
        tn_release(again);
    }
    if (is_taken) {
        caches->failure = failure;
        atomic_store(&caches->has_failed, true);
    }
    lm_failure_tell(&failure);
}

tn_status lm_caches_check(const struct lm_caches *caches)
{
    return caches->failure.status == TN_OK
               ? TN_OK
               : lm_fail(caches->failure.status,
                         "the sequence ended when a step of it failed: %s",
                         caches->failure.text);
}

// --- slots -----------------------------------------------------------------------------

static int64_t free_slot(const tn_lm *model, const struct lm_caches *caches)
{
    for (int64_t i = 0; i < model->slots; i++)
        if (!caches->is_taken[i])
            return i;
    return -1;
}

tn_status lm_caches_enter(tn_lm_sequence *sequence)
{
    tn_lm *model = sequence->model;
    tn_status status = TN_OK;
    pthread_mutex_lock(&model->lock);
    struct lm_caches *caches = model->caches;
    while (caches && (atomic_load(&caches->has_failed) || free_slot(model, caches) < 0))
        caches = caches->next;
    if (!caches) {
        status = caches_make(model, &caches);
        if (caches) {
            caches->number = ++model->num_caches_made;
            caches->next = model->caches;
            model->caches = caches;
        }
    }
    if (caches) {
        sequence->caches = caches;
        sequence->slot = free_slot(model, caches);
        caches->is_taken[sequence->slot] = true;
        caches->num_taken++;
    }
    pthread_mutex_unlock(&model->lock);
    return status == TN_ERR_DEVICE ? lm_tell_lost(model, status) : status;
}

void lm_caches_leave(tn_lm_sequence *sequence)
{
    tn_lm *model = sequence->model;
    struct lm_caches *caches = sequence->caches;
    if (!caches)
        return;
    pthread_mutex_lock(&model->lock);
    caches->is_taken[sequence->slot] = false;
    if (--caches->num_taken == 0) {
        struct lm_caches **at = &model->caches;
        while (*at != caches)
            at = &(*at)->next;
        *at = caches->next;
        if (model->remote)
            model->remote->forget(model->remote, caches->number);
        caches_free(caches);
    }
    pthread_mutex_unlock(&model->lock);
}

// --- for other processes -----------------------------------------------------------------

tn_status lm_caches_numbered(tn_lm *model, uint64_t number, struct lm_caches **out_caches)
{
    struct lm_caches *caches = model->caches;
    while (caches && caches->number != number)
        caches = caches->next;
    tn_status status = caches ? TN_OK : caches_make(model, &caches);
    if (status != TN_OK)
        return status;
    if (caches->number != number) {
        caches->number = number;
        caches->next = model->caches;
        model->caches = caches;
    }
    *out_caches = caches;
    return TN_OK;
}

void lm_caches_drop(tn_lm *model, uint64_t number)
{
    struct lm_caches **at = &model->caches, *caches;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    if (!(caches = *at))
        return;
    *at = caches->next;
    caches_free(caches);
}

void lm_caches_drop_all(tn_lm *model)
{
    while (model->caches)
        lm_caches_drop(model, model->caches->number);
}
