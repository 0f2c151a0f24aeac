// SPDX-License-Identifier: MIT
// Sequences in files: what attention keeps of their positions, and their tokens, as arrays
// of safetensors.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>
#include <tenon/ops/base_attrs.h>
#include "../base/fail.h"
#include "caches.h"
#include "devices.h"
#include "hash.h"
#include "sequence.h"

#define PLUGIN "org.tenon.safetensors"
#define KEY_MODEL "tenon.lm.model"
#define KEY_CACHE "tenon.lm.cache"
#define KEY_ADAPTER "tenon.lm.adapter"
#define NO_ADAPTER "none"
#define IDS "ids"
#define ELSEWHERE                                                                          \
    "its caches are on several processes: sequences of these are not saved or restored"
#define HASH_TEXT 17 // bytes of a hash as text

// --- which model -----------------------------------------------------------------------

// Whether a weight is listed already: the same weight on another device.
static bool is_on_another(const tn_lm *model, uint64_t index)
{
    const struct lm_weight *items = model->weights.items;
    for (uint64_t i = 0; i < index; i++)
        if (items[i].device != items[index].device &&
            strcmp(items[i].name, items[index].name) == 0)
            return true;
    return false;
}

// Hashes the metadata, and names, formats and extents of the loaded weights.
static void hash_model(const tn_lm *model, char out[HASH_TEXT])
{
    uint64_t hash = LM_HASH_BEGIN;
    const int64_t numbers[] = {model->first, model->end, model->facts->layers};
    lm_hash_bytes(&hash, numbers, sizeof(numbers));
    lm_hash_metadata(&hash, model->source.metadata);
    for (uint64_t i = 0; i < model->weights.count; i++) {
        if (!is_on_another(model, i)) // a file does not depend on the devices
            lm_hash_weight(&hash, model, model->weights.items[i].name);
    }
    snprintf(out, HASH_TEXT, "%016" PRIx64, hash);
}

static void hash_array(uint64_t *hash, tn_scope *scope, tn_array *array)
{
    const tn_type *type = tn_array_type(array);
    const void *data = tn_data(scope, array);
    lm_hash_bytes(hash, type->extent, 2 * sizeof(type->extent[0]));
    if (data)
        lm_hash_bytes(hash, data,
                      (uint64_t)(type->extent[0] * type->extent[1]) * sizeof(float));
}

// Hashes the adapter: names, scales and elements; NO_ADAPTER where there is none.
static tn_status hash_adapter(const tn_lm *model, tn_scope *scope, char out[HASH_TEXT])
{
    const struct lm_adapter *adapter = &model->adapter;
    const double scales[] = {adapter->alpha, adapter->scale};
    uint64_t hash = LM_HASH_BEGIN;
    lm_hash_bytes(&hash, scales, sizeof(scales));
    for (uint64_t i = 0; i < adapter->count; i++) {
        const struct lm_low_rank *item = &adapter->items[i];
        lm_hash_bytes(&hash, item->name, strlen(item->name) + 1);
        hash_array(&hash, scope, item->down);
        hash_array(&hash, scope, item->up);
    }
    if (adapter->count)
        snprintf(out, HASH_TEXT, "%016" PRIx64, hash);
    else
        snprintf(out, HASH_TEXT, NO_ADAPTER);
    return lm_fail_scope(scope);
}

// --- arrays ----------------------------------------------------------------------------

static void name_cache(uint64_t index, char out[32])
{
    snprintf(out, 32, "cache.%" PRIu64, index);
}

// The part of a cache that a sequence of `length` positions fills.
static tn_type saved_part_of(const tn_type *cache, int64_t length)
{
    tn_type part = *cache;
    part.extent[0] = 1;
    part.extent[2] = length;
    return part;
}

// Fails for caches whose third axis is not that of positions: they cannot be cut to a
// length.
static tn_status check_caches(const tn_lm *model, const struct lm_caches *caches)
{
    for (uint64_t i = 0; i < caches->count; i++) {
        const tn_type *type = tn_array_type(caches->arrays[i]);
        if (type->rank != 4 || type->extent[2] != model->capacity)
            return lm_fail(TN_ERR_UNSUPPORTED,
                           "%s: its caches are not of [1, kv_heads, positions, width]",
                           model->plugin);
    }
    return TN_OK;
}

// --- saving ----------------------------------------------------------------------------

static tn_status saved_save_arrays(const tn_lm_sequence *sequence, tn_scope *scope,
                                   const char *path, tn_array **arrays, char (*names)[32],
                                   const char **pointers)
{
    const tn_lm *model = sequence->model;
    uint64_t count = sequence->caches->count;
    char hash[HASH_TEXT], adapter[HASH_TEXT];
    const char *const keys[] = {KEY_MODEL, KEY_CACHE, KEY_ADAPTER};
    const char *const texts[] = {hash, model->cache_name, adapter};
    const tn_save_options options = {.struct_size = sizeof(options),
                                     .plugin = PLUGIN,
                                     .keys = keys,
                                     .texts = texts,
                                     .num_texts = COUNT(keys)};
    hash_model(model, hash);
    if (hash_adapter(model, scope, adapter))
        return lm_fail_scope(scope);
    for (uint64_t i = 0; i < count; i++) {
        int64_t slot = sequence->slot, length = sequence->length;
        lm_scope_on(&model->division, lm_part_of_cache(model, i), scope);
        arrays[i] = tn_op(scope, "base.slice/1", TN_IN(sequence->caches->arrays[i]),
                          tn_attrs("start", TN_INTS(slot, 0, 0), "stop",
                                   TN_INTS(slot + 1, TN_SLICE_END, length)));
        name_cache(i, names[i]);
        pointers[i] = names[i];
    }
    arrays[count] = tn_from_data(scope, TN_I32, TN_SHAPE(sequence->length), sequence->ids);
    pointers[count] = IDS;
    tn_save(scope, path, arrays, pointers, count + 1, &options);
    return lm_fail_scope(scope);
}

tn_status tn_lm_sequence_save(const tn_lm_sequence *sequence, const char *path)
{
    struct lm_caches *caches = sequence->caches;
    if (sequence->model->remote)
        return lm_fail(TN_ERR_UNSUPPORTED, "%s: %s", path, ELSEWHERE);
    if (sequence->length == 0)
        return lm_fail(TN_ERR_ARGUMENT, "%s: the sequence is empty: nothing to save", path);
    tn_array **arrays = lm_alloc(caches->count + 1, sizeof(tn_array *));
    char(*names)[32] = lm_alloc(caches->count + 1, sizeof(*names));
    const char **pointers = lm_alloc(caches->count + 1, sizeof(*pointers));
    tn_status status = arrays && names && pointers ? TN_OK : TN_ERR_MEMORY;
    tn_scope *scope = status == TN_OK ? tn_scope_open(sequence->model->runtime) : NULL;
    pthread_mutex_lock(&caches->lock);
    if (status == TN_OK)
        status = lm_caches_check(caches);
    if (status == TN_OK)
        status = check_caches(sequence->model, caches);
    if (status == TN_OK)
        status = scope ? saved_save_arrays(sequence, scope, path, arrays, names, pointers)
                       : lm_fail_scope(scope);
    tn_scope_close(scope);
    pthread_mutex_unlock(&caches->lock);
    free(arrays);
    free(names);
    free(pointers);
    return status;
}

// --- restoring -------------------------------------------------------------------------

static tn_status check_text(const tn_file *file, const char *path, const char *key,
                            const char *expected, const char *what)
{
    const char *got = tn_file_text(file, key);
    if (!got)
        return lm_fail(TN_ERR_REFUSED, "%s: is no saved sequence: %s is missing", path,
                       key);
    return strcmp(got, expected) == 0 ? TN_OK
                                      : lm_fail(TN_ERR_REFUSED, "%s: %s: %s, expected %s",
                                                path, what, got, expected);
}

static tn_status check_adapter(const tn_lm *model, const tn_file *file, const char *path,
                               tn_scope *scope)
{
    char expected[HASH_TEXT];
    tn_status status = hash_adapter(model, scope, expected);
    return status == TN_OK ? check_text(file, path, KEY_ADAPTER, expected,
                                        "was saved with another adapter")
                           : status;
}

static const tn_type *saved_type_of(const tn_file *file, const char *name)
{
    for (uint64_t i = 0; tn_file_name(file, i); i++)
        if (strcmp(tn_file_name(file, i), name) == 0)
            return tn_file_type(file, i);
    return NULL;
}

static tn_status saved_check_part(const tn_file *file, const char *path, const char *name,
                                  const tn_type *expected)
{
    const tn_type *got = saved_type_of(file, name);
    bool fits = got && got->dtype == expected->dtype && got->rank == expected->rank;
    for (int32_t i = 0; fits && i < got->rank; i++)
        fits = got->extent[i] == expected->extent[i];
    if (fits)
        return TN_OK;
    return lm_fail(TN_ERR_REFUSED,
                   "%s: the array %s is missing, or not %s [1, %" PRId64 ", %" PRId64
                   ", %" PRId64 "] as its tokens ask for",
                   path, name, tn_dtype_name(expected->dtype), expected->extent[1],
                   expected->extent[2], expected->extent[3]);
}

// Gives the number of positions, once everything in the file fits the model.
static tn_status saved_check_file(const tn_lm_sequence *sequence, const tn_file *file,
                                  const char *path, tn_scope *scope, int64_t *out_length)
{
    const tn_lm *model = sequence->model;
    const tn_type *ids = saved_type_of(file, IDS);
    char hash[HASH_TEXT], name[32];
    hash_model(model, hash);
    tn_status status = check_text(file, path, KEY_MODEL, hash,
                                  "was saved with another model, or other layers");
    if (status == TN_OK)
        status = check_text(file, path, KEY_CACHE, model->cache_name,
                            "has caches of other elements");
    if (status == TN_OK)
        status = check_adapter(model, file, path, scope);
    if (status == TN_OK && (!ids || ids->dtype != TN_I32 || ids->rank != 1))
        status = lm_fail(TN_ERR_REFUSED, "%s: the array " IDS " is missing, or not i32 [n]",
                         path);
    if (status == TN_OK && (ids->extent[0] < 1 || ids->extent[0] > model->context))
        status = lm_fail(TN_ERR_ARGUMENT,
                         "%s: has %" PRId64 " positions, the context has %" PRId64, path,
                         ids->extent[0], model->context);
    for (uint64_t i = 0; i < sequence->caches->count && status == TN_OK; i++) {
        tn_type part =
            saved_part_of(tn_array_type(sequence->caches->arrays[i]), ids->extent[0]);
        name_cache(i, name);
        status = saved_check_part(file, path, name, &part);
    }
    if (status == TN_OK)
        *out_length = ids->extent[0];
    return status;
}

// Reads the arrays into memory; the tokens into `ids`.
static tn_status saved_read_file(const tn_lm_sequence *sequence, const tn_file *file,
                                 const char *path, tn_scope *scope, int64_t length,
                                 int32_t *ids, tn_array **out_parts)
{
    char name[32];
    for (uint64_t i = 0; i < sequence->caches->count; i++) {
        name_cache(i, name);
        lm_scope_on(&sequence->model->division, lm_part_of_cache(sequence->model, i),
                    scope);
        out_parts[i] = tn_file_array(scope, file, name);
        if (out_parts[i])
            tn_eval(scope, out_parts[i]);
    }
    tn_read(scope, tn_file_array(scope, file, IDS), ids, (uint64_t)length * sizeof(*ids));
    tn_status status = lm_fail_scope(scope);
    for (int64_t i = 0; i < length && status == TN_OK; i++)
        if ((ids[i] < -1 && ids[i] >= INT32_MIN + LM_IMAGE_IDS) ||
            ids[i] >= sequence->model->facts->vocabulary)
            status = lm_fail(TN_ERR_REFUSED,
                             "%s: token %" PRId64 " is %d, expected -1 to %" PRId64, path,
                             i, ids[i], sequence->model->facts->vocabulary - 1);
    return status;
}

// Indices at which a part is written into a cache.
struct update {
    const tn_lm *model;
    int64_t part;
};

static tn_status saved_build_update(tn_scope *scope, tn_array *const *inputs,
                                    uint64_t num_inputs, tn_array **outputs,
                                    uint64_t num_outputs, void *user)
{
    const struct update *update = user;
    (void)num_inputs, (void)num_outputs;
    lm_scope_on(&update->model->division, update->part, scope);
    outputs[0] = tn_op(scope, "base.dynamic_slice_update/1",
                       TN_IN(inputs[0], inputs[1], inputs[2]), TN_NO_ATTRS);
    return tn_scope_status(scope);
}

// Writes the parts of caches that are on one device into the sequence's slot, in place.
static tn_status write_on(tn_lm_sequence *sequence, tn_scope *scope, tn_array **parts,
                          struct update *where)
{
    struct lm_caches *caches = sequence->caches;
    const uint32_t first = 0;
    const tn_function_options options = {.struct_size = sizeof(options),
                                         .donated = &first,
                                         .num_donated = 1,
                                         .carried_to = &first};
    const int32_t start[] = {(int32_t)sequence->slot, 0, 0, 0};
    tn_function *update = NULL;
    tn_status status = lm_fail_core(tn_function_create(
        sequence->model->runtime, saved_build_update, where, &options, &update));
    lm_scope_on(&where->model->division, where->part, scope);
    tn_array *at = tn_from_data(scope, TN_I32, TN_SHAPE(4), start);
    for (uint64_t i = 0; i < caches->count && status == TN_OK; i++) {
        if (lm_part_of_cache(where->model, i) != where->part)
            continue;
        tn_array *inputs[] = {caches->arrays[i], parts[i], at}, *made = NULL;
        tn_function_call(update, scope, inputs, 3, &made, 1);
        status = lm_fail_scope(scope);
        if (status == TN_OK)
            caches->arrays[i] = made;
    }
    tn_function_destroy(update);
    return status;
}

static tn_status saved_write_parts(tn_lm_sequence *sequence, tn_scope *scope,
                                   tn_array **parts)
{
    tn_status status = TN_OK;
    struct update where = {.model = sequence->model};
    for (; where.part < where.model->division.count && status == TN_OK; where.part++)
        status = write_on(sequence, scope, parts, &where);
    if (status != TN_OK)
        lm_caches_note(sequence->caches, status);
    return status;
}

static tn_status saved_restore(tn_lm_sequence *sequence, const tn_file *file,
                               const char *path, tn_scope *scope)
{
    struct lm_caches *caches = sequence->caches;
    int64_t length = 0;
    tn_status status = lm_caches_check(caches);
    if (status == TN_OK)
        status = check_caches(sequence->model, caches);
    if (status == TN_OK)
        status = saved_check_file(sequence, file, path, scope, &length);
    if (status != TN_OK)
        return status;
    int32_t *ids = lm_alloc((uint64_t)length, sizeof(*ids));
    tn_array **parts = lm_alloc(caches->count, sizeof(tn_array *));
    status = ids && parts ? saved_read_file(sequence, file, path, scope, length, ids, parts)
                          : TN_ERR_MEMORY;
    if (status == TN_OK) {
        sequence->length = 0; // a failure from here on leaves the sequence empty
        status = saved_write_parts(sequence, scope, parts);
    }
    if (status == TN_OK) {
        memcpy(sequence->ids, ids, (size_t)length * sizeof(*ids));
        sequence->length = length;
    }
    free(ids);
    free(parts);
    return status;
}

tn_status tn_lm_sequence_restore(tn_lm_sequence *sequence, const char *path)
{
    const tn_file_options options = {.struct_size = sizeof(options), .plugin = PLUGIN};
    tn_file *file = NULL;
    if (sequence->model->remote)
        return lm_fail(TN_ERR_UNSUPPORTED, "%s: %s", path, ELSEWHERE);
    tn_status status =
        lm_fail_core(tn_file_open(sequence->model->runtime, path, &options, &file));
    if (status != TN_OK)
        return status;
    tn_scope *scope = tn_scope_open(sequence->model->runtime);
    pthread_mutex_lock(&sequence->caches->lock);
    status = scope ? saved_restore(sequence, file, path, scope) : lm_fail_scope(scope);
    tn_scope_close(scope);
    pthread_mutex_unlock(&sequence->caches->lock);
    tn_file_close(file);
    return status;
}
