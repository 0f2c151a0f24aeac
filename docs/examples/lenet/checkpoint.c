// SPDX-License-Identifier: MIT
// Checkpoints: a safetensors file of the state's arrays and, as texts, where training
// stands.
#include "fail.h"
#include "train.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>

#define FORMAT "tenon.lenet/1"
#define PLUGIN "org.tenon.safetensors" // whatever the file's name is

// --- saving ----------------------------------------------------------------------------

// An earlier checkpoint is worth more than one that no training can go on from.
static int check_numbers(tn_scope *scope, tn_array *array, const char *name)
{
    const tn_type *type = tn_array_type(array);
    const float *values = tn_data(scope, array);
    int64_t count = 1;
    for (int32_t i = 0; values && i < type->rank; i++)
        count *= type->extent[i];
    for (int64_t i = 0; values && i < count; i++)
        if (!isfinite(values[i]))
            return fail("'%s' is no number any more: a lower --lr may help", name);
    return values ? 0 : fail_scope(scope);
}

int checkpoint_save(struct trainer *t, const char *path)
{
    static const char *const keys[] = {"format", "step", "seed", "batch", "lr"};
    char names[LENET_STATE][LENET_NAME], numbers[4][32];
    const char *list[LENET_STATE];
    const char *const texts[] = {FORMAT, numbers[0], numbers[1], numbers[2], numbers[3]};
    snprintf(numbers[0], sizeof(numbers[0]), "%" PRIu64, t->done);
    snprintf(numbers[1], sizeof(numbers[1]), "%" PRId64, t->options.seed);
    snprintf(numbers[2], sizeof(numbers[2]), "%" PRId64, t->options.batch);
    snprintf(numbers[3], sizeof(numbers[3]), "%.17g", t->options.lr);
    for (int i = 0; i < LENET_STATE; i++)
        list[i] = lenet_state_name(i, names[i]);
    const tn_save_options options = {.struct_size = sizeof(options),
                                     .plugin = PLUGIN,
                                     .keys = keys,
                                     .texts = texts,
                                     .num_texts = COUNT(texts)};
    tn_scope *scope = tn_scope_open(t->runtime);
    int failed = scope ? 0 : fail_memory();
    for (int i = 0; i < LENET_STATE && !failed; i++)
        failed = check_numbers(scope, t->state[i], names[i]);
    if (!failed && tn_save(scope, path, t->state, list, LENET_STATE, &options))
        failed = fail_scope(scope);
    tn_scope_close(scope);
    return failed;
}

// --- where training stands -------------------------------------------------------------

struct checkpoint {
    const char *path;
    tn_file *file;
};

static const char *text_of(const struct checkpoint *c, const char *key)
{
    const char *text = tn_file_text(c->file, key);
    return text ? text : "(absent)";
}

static int integer_of(const struct checkpoint *c, const char *key, int64_t low,
                      int64_t high, int64_t *out_value)
{
    const char *text = text_of(c, key);
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < low || value > high)
        return fail("%s: metadata '%s' is '%s'; expected a whole number from %" PRId64
                    " to %" PRId64,
                    c->path, key, text, low, high);
    *out_value = value;
    return 0;
}

// The order of the images comes from seed and batch: another one would not continue.
static int check_agreement(struct trainer *t, const char *path, int64_t seed, int64_t batch)
{
    struct train_options *o = &t->options;
    if (o->given_seed && o->seed != seed)
        return fail_usage("--seed %" PRId64 ", but %s was made with %" PRId64, o->seed,
                          path, seed);
    if (o->given_batch && o->batch != batch)
        return fail_usage("--batch %" PRId64 ", but %s was made with %" PRId64, o->batch,
                          path, batch);
    o->seed = seed;
    o->batch = batch;
    return 0;
}

static int load_position(struct trainer *t, const struct checkpoint *c)
{
    const char *format = text_of(c, "format");
    int64_t step, seed, batch;
    if (strcmp(format, FORMAT) != 0)
        return fail("%s: format '%s'; expected a checkpoint of 'tenon train lenet' (%s)",
                    c->path, format, FORMAT);
    int failed = integer_of(c, "step", 0, INT64_MAX, &step);
    if (!failed)
        failed = integer_of(c, "seed", 0, INT64_MAX, &seed);
    if (!failed)
        failed = integer_of(c, "batch", 1, 1 << 20, &batch);
    if (!failed)
        failed = check_agreement(t, c->path, seed, batch);
    if (!failed && t->options.lr == 0)
        t->options.lr = strtod(text_of(c, "lr"), NULL);
    if (!failed && !(t->options.lr > 0))
        failed = fail("%s: metadata 'lr' is no positive number", c->path);
    if (!failed)
        t->done = (uint64_t)step;
    return failed;
}

// --- the arrays ------------------------------------------------------------------------

static const char *shape_text(char text[96], int32_t rank, const int64_t *extent)
{
    size_t used = 0;
    for (int32_t i = 0; i < rank && used < 96; i++)
        used += (size_t)snprintf(text + used, 96 - used, "%s%" PRId64, i ? ", " : "",
                                 extent[i]);
    return used ? text : "";
}

// Fails unless the file's array of this name is f32 of the state's shape.
static int check_type(const struct checkpoint *c, int i, const char *name)
{
    tn_shape wanted = lenet_state_shape(i);
    char got_text[96], wanted_text[96];
    uint64_t at = 0;
    while (tn_file_name(c->file, at) && strcmp(tn_file_name(c->file, at), name) != 0)
        at++;
    const tn_type *got = tn_file_type(c->file, at);
    if (!got)
        return fail("%s: array '%s' is missing", c->path, name);
    if (got->dtype == TN_F32 && got->rank == wanted.rank &&
        memcmp(got->extent, wanted.extent, sizeof(int64_t) * (size_t)got->rank) == 0)
        return 0;
    return fail("%s: '%s' is %s[%s]; expected f32[%s]", c->path, name,
                tn_dtype_name(got->dtype), shape_text(got_text, got->rank, got->extent),
                shape_text(wanted_text, wanted.rank, wanted.extent));
}

static int load_array(struct trainer *t, const struct checkpoint *c, int i)
{
    char name[LENET_NAME];
    int failed = check_type(c, i, lenet_state_name(i, name));
    if (failed)
        return failed;
    t->state[i] = tn_keep(t->scope, tn_file_array(t->scope, c->file, name));
    return t->state[i] ? 0 : fail_scope(t->scope);
}

int checkpoint_load(struct trainer *t, const char *path)
{
    const tn_file_options options = {.struct_size = sizeof(options), .plugin = PLUGIN};
    struct checkpoint c = {.path = path};
    if (tn_file_open(t->runtime, path, &options, &c.file))
        return fail_library();
    int failed = load_position(t, &c);
    for (int i = 0; !failed && i < LENET_STATE; i++)
        failed = load_array(t, &c, i);
    tn_file_close(c.file);
    return failed;
}
