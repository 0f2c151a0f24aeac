// SPDX-License-Identifier: MIT
// Checkpoints: a safetensors file of parameters ("block0.q.weight") and states
// ("optim.0.block0.q.weight"), with step, seed and optimiser as texts.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>
#include "common.h"

#define FORMAT "tenon.train/1"
#define PLUGIN "org.tenon.safetensors" // whatever the file's name is
#define STATE "optim."

// --- saving -----------------------------------------------------------------------------

// Refuses values that are not finite: an earlier checkpoint is worth more than one from
// which no training can go on.
static tn_status check_finite(tn_scope *scope, const struct tn_params *params,
                              tn_array *array, const char *name)
{
    const float *values = tn_data(scope, array);
    uint64_t count = train_elements(tn_array_type(array));
    for (uint64_t i = 0; values && i < count; i++)
        if (!isfinite(values[i]))
            return train_fail(TN_ERR_ARGUMENT,
                              "parameter '%s' has %s behind step %" PRIu64
                              ": a lower learning rate may help",
                              name, isnan(values[i]) ? "a NaN" : "an infinity",
                              params->step);
    return values ? TN_OK : train_fail_scope(scope);
}

// Lists arrays and names in the file's order; the names are to be freed.
static uint64_t checkpoint_list_arrays(const struct tn_params *params, tn_array **arrays,
                                       char **names)
{
    uint64_t count = 0;
    for (int k = -1; k < MOST_STATES; k++) {
        for (uint64_t i = 0; i < params->count; i++) {
            const struct train_param *item = &params->items[i];
            tn_array *array = k < 0 ? item->value : item->state[k];
            if (!array)
                continue;
            arrays[count] = array;
            size_t size = strlen(item->name) + 32;
            names[count] = malloc(size);
            if (names[count] && k < 0)
                snprintf(names[count], size, "%s", item->name);
            else if (names[count])
                snprintf(names[count], size, STATE "%d.%s", k, item->name);
            count++;
        }
    }
    return count;
}

static tn_status checkpoint_save_arrays(tn_scope *scope, const struct tn_params *params,
                                        const char *path, tn_array **arrays, char **names,
                                        uint64_t count)
{
    enum { OWN = 5 };
    struct train_note_list list;
    const char *keys[OWN + MOST_NOTES] = {"format", "step", "seed", "optimiser", "notes"};
    char step[32], seed[32];
    snprintf(step, sizeof(step), "%" PRIu64, params->step);
    snprintf(seed, sizeof(seed), "%" PRIu64, params->seed);
    const char *texts[OWN + MOST_NOTES] = {FORMAT, step, seed, params->optimiser, list.all};
    list_notes(params, &list);
    for (uint64_t i = 0; i < params->num_notes; i++) {
        keys[OWN + i] = list.keys[i];
        texts[OWN + i] = params->notes[i].text;
    }
    const tn_save_options options = {.struct_size = sizeof(options),
                                     .plugin = PLUGIN,
                                     .keys = keys,
                                     .texts = texts,
                                     .num_texts = OWN + params->num_notes};
    for (uint64_t i = 0; i < count; i++) {
        tn_status status = names[i] ? check_finite(scope, params, arrays[i], names[i])
                                    : train_fail_memory();
        if (status != TN_OK)
            return status;
    }
    tn_save(scope, path, arrays, (const char *const *)names, count, &options);
    return train_fail_scope(scope);
}

tn_status tn_params_save(tn_params *params, const char *path)
{
    uint64_t most = params->count * (1 + MOST_STATES) + 1;
    tn_array **arrays = calloc((size_t)most, sizeof(*arrays));
    char **names = calloc((size_t)most, sizeof(*names));
    tn_scope *scope = tn_scope_open(params->runtime);
    tn_status status = arrays && names ? train_fail_scope(scope) : train_fail_memory();
    if (status == TN_OK) {
        uint64_t count = checkpoint_list_arrays(params, arrays, names);
        status = checkpoint_save_arrays(scope, params, path, arrays, names, count);
    }
    for (uint64_t i = 0; names && i < most; i++)
        free(names[i]);
    free(names);
    free(arrays);
    tn_scope_close(scope);
    return status;
}

// --- reading ----------------------------------------------------------------------------

static tn_status checkpoint_number_of(const tn_file *file, const char *path,
                                      const char *key, uint64_t *out)
{
    const char *text = tn_file_text(file, key);
    char *end = NULL;
    errno = 0;
    unsigned long long value = text && *text != '-' ? strtoull(text, &end, 10) : 0;
    if (!end || end == text || *end || errno)
        return train_fail(TN_ERR_REFUSED, "%s: '%s' is '%s', expected a whole number", path,
                          key, text ? text : "(absent)");
    *out = value;
    return TN_OK;
}

// Takes an array of the file as the parameter or state that its name says.
static tn_status checkpoint_take_array(struct tn_params *params, tn_scope *scope,
                                       const tn_file *file, const char *path,
                                       uint64_t index)
{
    const char *name = tn_file_name(file, index);
    const char *bare = name;
    int64_t k = -1;
    struct train_param *item = NULL;
    if (tn_file_type(file, index)->dtype != TN_F32)
        return train_fail(TN_ERR_REFUSED, "%s: '%s' is %s, expected f32", path, name,
                          tn_dtype_name(tn_file_type(file, index)->dtype));
    if (strncmp(name, STATE, strlen(STATE)) == 0) {
        char *end;
        k = strtol(name + strlen(STATE), &end, 10);
        bare = *end == '.' ? end + 1 : name;
        int64_t at = params_find(params, bare);
        if (k < 0 || k >= MOST_STATES || at < 0 || params->items[at].state[k])
            return train_fail(TN_ERR_REFUSED, "%s: '%s' is the state of no parameter", path,
                              name);
        item = &params->items[at];
    }
    tn_array *array = tn_keep(scope, tn_file_array(scope, file, name));
    if (!array)
        return train_fail_scope(scope);
    if (item) {
        item->state[k] = array;
        return TN_OK;
    }
    tn_status status = params_add(params, name, array, &item);
    if (status != TN_OK)
        tn_release(array);
    return status;
}

static tn_status take_file(struct tn_params *params, const tn_file *file, const char *path)
{
    const char *format = tn_file_text(file, "format"), *o = tn_file_text(file, "optimiser");
    if (!format || strcmp(format, FORMAT) != 0)
        return train_fail(TN_ERR_REFUSED,
                          "%s: format '%s', expected a file of tn_params_save (%s)", path,
                          format ? format : "(absent)", FORMAT);
    tn_status status = checkpoint_number_of(file, path, "step", &params->step);
    if (status == TN_OK)
        status = checkpoint_number_of(file, path, "seed", &params->seed);
    snprintf(params->optimiser, sizeof(params->optimiser), "%s", o ? o : "");
    if (status == TN_OK)
        status = read_notes(params, file, path);
    tn_scope *scope = tn_scope_open(params->runtime);
    if (status == TN_OK)
        status = train_fail_scope(scope);
    // Parameters first, then states, which belong to parameters.
    for (int states = 0; states < 2; states++)
        for (uint64_t i = 0; status == TN_OK && tn_file_name(file, i); i++)
            if ((strncmp(tn_file_name(file, i), STATE, strlen(STATE)) == 0) == states)
                status = checkpoint_take_array(params, scope, file, path, i);
    tn_scope_close(scope);
    return status;
}

tn_status tn_params_load(tn_params *params, const char *path)
{
    tn_file *file = NULL;
    const tn_file_options options = {.struct_size = sizeof(options), .plugin = PLUGIN};
    struct tn_params *read = NULL;
    if (params->count)
        return train_fail(TN_ERR_ARGUMENT,
                          "%s: the set has %llu parameters already, expected an empty one",
                          path, (unsigned long long)params->count);
    tn_status status = tn_params_create(params->runtime, params->seed, &read);
    if (status == TN_OK)
        status = train_fail_core(tn_file_open(params->runtime, path, &options, &file));
    if (status == TN_OK)
        status = take_file(read, file, path);
    tn_file_close(file);
    if (status == TN_OK && !(read->source = strdup(path)))
        status = train_fail_memory();
    if (status == TN_OK) { // swaps the arrays that were read with the old ones, which
                           // cannot fail
        struct tn_params empty = *params;
        *params = *read;
        *read = empty;
    }
    tn_params_destroy(read);
    return status;
}
