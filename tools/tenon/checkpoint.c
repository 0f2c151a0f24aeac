// SPDX-License-Identifier: MIT
// Checkpoints: the state's arrays and, as metadata, where training stands.
#include "safetensors.h"
#include "train.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "tenon.lenet/1"

// --- saving ----------------------------------------------------------------------------

static int note_position(const struct trainer *t, struct safetensors *file)
{
    int failed = safetensors_note(file, "format", FORMAT);
    if (!failed)
        failed = safetensors_note(file, "step", "%" PRIu64, t->done);
    if (!failed)
        failed = safetensors_note(file, "seed", "%" PRId64, t->options.seed);
    if (!failed)
        failed = safetensors_note(file, "batch", "%" PRId64, t->options.batch);
    if (!failed)
        failed = safetensors_note(file, "lr", "%.17g", t->options.lr);
    return failed;
}

int checkpoint_save(struct trainer *t, const char *path)
{
    struct safetensors file = {0};
    char name[LENET_NAME];
    tn_scope *scope = tn_scope_open(t->runtime);
    int failed = scope ? note_position(t, &file) : oops_memory();
    for (int i = 0; !failed && i < LENET_STATE; i++) {
        struct host_array array;
        failed = host_array_read(scope, t->state[i], &array);
        if (!failed)
            failed = safetensors_add(&file, lenet_state_name(i, name), &array);
    }
    if (!failed)
        failed = safetensors_write(path, &file);
    safetensors_finish(&file);
    tn_scope_close(scope);
    return failed;
}

// --- loading ---------------------------------------------------------------------------

static int metadata_integer(const char *path, const struct safetensors *file,
                            const char *key, int64_t low, int64_t high, int64_t *out_value)
{
    const char *text = json_string_value(json_object_get(file->metadata, key));
    char *end = NULL;
    errno = 0;
    long long value = text ? strtoll(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || value < low || value > high)
        return oops("%s: metadata '%s' is '%s'; expected a whole number from %" PRId64
                    " to %" PRId64,
                    path, key, text ? text : "(absent)", low, high);
    *out_value = value;
    return 0;
}

// The order of the images comes from seed and batch: another one would not continue.
static int check_agreement(struct trainer *t, const char *path, int64_t seed, int64_t batch)
{
    struct train_options *o = &t->options;
    if (o->given_seed && o->seed != seed)
        return misuse("--seed %" PRId64 ", but %s was made with %" PRId64, o->seed, path,
                      seed);
    if (o->given_batch && o->batch != batch)
        return misuse("--batch %" PRId64 ", but %s was made with %" PRId64, o->batch, path,
                      batch);
    o->seed = seed;
    o->batch = batch;
    return 0;
}

static int load_position(struct trainer *t, const char *path,
                         const struct safetensors *file)
{
    const char *format = json_string_value(json_object_get(file->metadata, "format"));
    const char *lr = json_string_value(json_object_get(file->metadata, "lr"));
    int64_t step, seed, batch;
    if (!format || strcmp(format, FORMAT) != 0)
        return oops("%s: format '%s'; expected a checkpoint of 'tenon train lenet' (%s)",
                    path, format ? format : "(none)", FORMAT);
    int failed = metadata_integer(path, file, "step", 0, INT64_MAX, &step);
    if (!failed)
        failed = metadata_integer(path, file, "seed", 0, INT64_MAX, &seed);
    if (!failed)
        failed = metadata_integer(path, file, "batch", 1, 1 << 20, &batch);
    if (!failed)
        failed = check_agreement(t, path, seed, batch);
    if (!failed && t->options.lr == 0)
        t->options.lr = lr ? strtod(lr, NULL) : 0;
    if (!failed && !(t->options.lr > 0))
        failed = oops("%s: metadata 'lr' is no positive number", path);
    if (!failed)
        t->done = (uint64_t)step;
    return failed;
}

static int load_array(struct trainer *t, const char *path, const struct safetensors *file,
                      int i)
{
    char name[LENET_NAME], got[SHAPE_TEXT], wanted[SHAPE_TEXT];
    const struct host_array *array = safetensors_find(file, lenet_state_name(i, name));
    tn_shape shape = lenet_state_shape(i);
    if (!array)
        return oops("%s: array '%s' is missing", path, name);
    if (array->dtype != TN_F32 || memcmp(&array->shape, &shape, sizeof(shape)) != 0)
        return oops("%s: '%s' is %s %s; expected f32 %s", path, name,
                    dtype_name(array->dtype), shape_text(&array->shape, got),
                    shape_text(&shape, wanted));
    tn_array *copy = tn_from_data(t->scope, TN_F32, &shape, array->data);
    t->state[i] = tn_keep(t->scope, copy);
    return t->state[i] ? 0 : oops_scope(t->scope);
}

int checkpoint_load(struct trainer *t, const char *path)
{
    struct safetensors file;
    int failed = safetensors_read(path, &file);
    if (failed)
        return failed;
    failed = load_position(t, path, &file);
    for (int i = 0; !failed && i < LENET_STATE; i++)
        failed = load_array(t, path, &file, i);
    safetensors_finish(&file);
    return failed;
}
