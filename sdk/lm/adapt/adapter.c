// SPDX-License-Identifier: MIT
// Reads adapters of a model from files, and writes them to files.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/file.h>
#include <tenon/lm_adapter.h>
#include "../base/fail.h"
#include "../engine/devices.h"
#include "../engine/low_rank.h"
#include "../engine/step.h"
#include "../engine/weights.h"
#include "adapter.h"
#include "peft.h"

#define KEY_ALPHA "adapter.lora.alpha"
// Ends of the names of an adapter's arrays, behind the name of the weight.
#define DOWN ".lora_a"
#define UP ".lora_b"

tn_status lm_adapter_check(tn_lm *model)
{
    int sequences = atomic_load(&model->sequences);
    if (sequences > 0)
        return lm_fail(TN_ERR_ARGUMENT,
                       "the adapter of a model that has %d sequence%s cannot change",
                       sequences, sequences == 1 ? "" : "s");
    if (model->partial.has)
        return lm_fail(TN_ERR_UNSUPPORTED,
                       "adapters of a model whose products are divided among processes "
                       "are not supported: divide its layers (pipeline)");
    return model->end > model->first
               ? TN_OK
               : tn_lm_ensure_shard(model, 0, model->facts->layers - 1);
}

tn_status lm_adapter_use(tn_lm *model, struct lm_adapter *adapter)
{
    lm_plans_destroy(model);
    lm_adapter_free(&model->adapter);
    model->adapter = *adapter;
    *adapter = (struct lm_adapter){0};
    return lm_plans_make(model);
}

// --- reading ---------------------------------------------------------------------------

// An adapter's file that is being read.
struct adapter_source {
    tn_file *file;
    const char *path; // as it was given
    bool is_peft;     // by PEFT's names, with rows in the order of halves
};

// Name of the weight that an array of the file belongs to; `is_up`: the array is B, else A.
static bool weight_name(const struct adapter_source *s, const char *array, bool is_up,
                        char out[TN_MODEL_NAME])
{
    const char *end = is_up ? UP : DOWN;
    size_t size = strlen(array), tail = strlen(end);
    bool is_theirs_up;
    if (s->is_peft)
        return peft_weight(array, out, &is_theirs_up) && is_theirs_up == is_up;
    if (size <= tail || size - tail >= TN_MODEL_NAME || strcmp(array + size - tail, end))
        return false;
    memcpy(out, array, size - tail);
    out[size - tail] = 0;
    return true;
}

// Number under a key of the file, in its metadata or its texts.
static bool adapter_read_number(const tn_file *file, const char *key, double *out)
{
    if (tn_metadata_number(tn_metadata_find(tn_file_metadata(file), key), out))
        return true;
    const char *text = tn_file_text(file, key);
    char *end = NULL;
    if (text)
        *out = strtod(text, &end);
    return end && end != text && !*end;
}

// Whether another process has the weight: each process reads its layers' part of an
// adapter.
static bool is_elsewhere(const tn_lm *model, const char *name)
{
    long long layer;
    if (!model->remote)
        return false;
    if (sscanf(name, "blk.%lld.", &layer) == 1)
        return layer >= 0 && layer < model->facts->layers &&
               (layer < model->first || layer >= model->end);
    return strcmp(name, "output.weight") == 0 && model->end < model->facts->layers;
}

// Checks the shapes of A and B against the weight that they are added to.
static tn_status adapter_check_item(tn_lm *model, const char *file, const tn_type *down,
                                    const tn_type *up, const char *name)
{
    tn_type type;
    const char *format;
    const struct lm_weight *weight = lm_product_find(model, name);
    if (!weight || !model->source.find(&model->source, name, &type, &format) ||
        type.rank != 2)
        return lm_fail(TN_ERR_REFUSED,
                       "%s: adds to %s, which no product of the loaded layers has", file,
                       name);
    if (!up)
        return lm_fail(TN_ERR_REFUSED, "%s: %s has " DOWN ", but no " UP, file, name);
    if (down->rank == 2 && up->rank == 2 && down->extent[0] > 0 &&
        down->extent[1] == type.extent[1] && up->extent[0] == type.extent[0] &&
        up->extent[1] == down->extent[0] && tn_dtype_in(down->dtype, TN_FLOAT_DTYPES) &&
        tn_dtype_in(up->dtype, TN_FLOAT_DTYPES))
        return TN_OK;
    return lm_fail(TN_ERR_REFUSED,
                   "%s: %s" DOWN " and " UP
                   " are %s of rank %d and %s of rank %d, expected "
                   "floats of [r, %" PRId64 "] and [%" PRId64 ", r]",
                   file, name, tn_dtype_name(down->dtype), down->rank,
                   tn_dtype_name(up->dtype), up->rank, type.extent[1], type.extent[0]);
}

static tn_array *adapter_read_array(tn_scope *scope, const tn_file *file, uint64_t index)
{
    return tn_op(scope, "base.astype/1",
                 TN_IN(tn_file_array(scope, file, tn_file_name(file, index))),
                 tn_attrs("dtype", "f32"));
}

static tn_status adapter_read_item(tn_lm *model, tn_scope *scope,
                                   const struct adapter_source *s, uint64_t index,
                                   struct lm_low_rank *item)
{
    const tn_type *up = NULL;
    char other[TN_MODEL_NAME];
    uint64_t at = 0;
    for (uint64_t i = 0; !up && tn_file_name(s->file, i); i++)
        if (weight_name(s, tn_file_name(s->file, i), true, other) &&
            strcmp(other, item->name) == 0) {
            up = tn_file_type(s->file, i);
            at = i;
        }
    tn_status status =
        adapter_check_item(model, s->path, tn_file_type(s->file, index), up, item->name);
    if (status != TN_OK)
        return status;
    const struct lm_weight *weight = lm_product_find(model, item->name);
    lm_scope_on(&model->division, lm_part_of(&model->division, weight->part), scope);
    tn_array *rows = adapter_read_array(scope, s->file, at);
    if (!s->is_peft)
        rows = lm_rows_in_halves(scope, rows, weight, false);
    item->down = tn_keep(scope, adapter_read_array(scope, s->file, index));
    item->up = tn_keep(scope, rows);
    return lm_fail_scope(scope);
}

static tn_status read_items(tn_lm *model, const struct adapter_source *s,
                            struct lm_adapter *out)
{
    uint64_t count = 0, ups = 0, elsewhere = 0;
    while (tn_file_name(s->file, count))
        count++;
    tn_scope *scope = tn_scope_open(model->runtime);
    tn_status status = lm_fail_scope(scope);
    out->items = status == TN_OK ? lm_alloc(count, sizeof(*out->items)) : NULL;
    if (!out->items && status == TN_OK)
        status = TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        char name[TN_MODEL_NAME];
        const char *array = tn_file_name(s->file, i);
        if (weight_name(s, array, true, name)) {
            ups++;
        } else if (s->is_peft && peft_is_base(array)) {
            continue;
        } else if (weight_name(s, array, false, out->items[out->count].name)) {
            if (is_elsewhere(model, out->items[out->count].name)) {
                elsewhere++;
                continue;
            }
            status = adapter_read_item(model, scope, s, i, &out->items[out->count++]);
        } else {
            status = lm_fail(TN_ERR_REFUSED,
                             "%s: the array '%s' is none of an adapter: expected ...%s "
                             "and ...%s",
                             s->path, array, s->is_peft ? ".lora_A.weight" : DOWN,
                             s->is_peft ? ".lora_B.weight" : UP);
        }
    }
    if (status == TN_OK && (ups != out->count + elsewhere || ups == 0))
        status = lm_fail(TN_ERR_REFUSED,
                         "%s: has %" PRIu64 " arrays ..." DOWN " and %" PRIu64 " ..." UP
                         ", expected pairs",
                         s->path, out->count + elsewhere, ups);
    tn_scope_close(scope);
    return status;
}

static double adapter_rank_of(const struct lm_adapter *adapter, uint64_t item)
{
    return (double)tn_array_type(adapter->items[item].down)->extent[0];
}

// Sets alpha, which is divided by the rank here, and for rsLoRA by its square root in PEFT.
static tn_status take_config(const struct adapter_source *s,
                             const struct peft_config *config, struct lm_adapter *out)
{
    double rank = out->count ? adapter_rank_of(out, 0) : 1,
           alpha = config->alpha > 0 ? config->alpha : 8;
    for (uint64_t i = 1; i < out->count && config->is_root; i++)
        if (adapter_rank_of(out, i) != rank)
            return lm_fail(TN_ERR_UNSUPPORTED,
                           "%s: use_rslora with ranks %g and %g, expected one rank",
                           s->path, rank, adapter_rank_of(out, i));
    out->alpha = config->is_root ? alpha * sqrt(rank) : alpha;
    return TN_OK;
}

static tn_status read_adapter(tn_lm *model, struct adapter_source *s,
                              struct lm_adapter *out)
{
    char arrays[PATH_MAX];
    struct peft_config config = {0};
    s->is_peft = peft_is_folder(s->path);
    tn_status status = s->is_peft ? peft_read_config(s->path, &config) : TN_OK;
    if (status == TN_OK)
        status = lm_fail_core(tn_file_open(
            model->runtime, s->is_peft ? peft_arrays(s->path, arrays) : s->path, NULL,
            &s->file));
    if (status == TN_OK)
        status = read_items(model, s, out);
    if (status == TN_OK && s->is_peft)
        return take_config(s, &config, out);
    if (status == TN_OK && !adapter_read_number(s->file, KEY_ALPHA, &out->alpha))
        out->alpha = adapter_rank_of(out, 0);
    return status;
}

tn_status tn_lm_adapter_load(tn_lm *model, const char *path, double scale)
{
    struct lm_adapter adapter = {.scale = scale};
    struct adapter_source source = {.path = path};
    tn_status status = lm_adapter_check(model);
    if (status == TN_OK && path)
        status = read_adapter(model, &source, &adapter);
    tn_file_close(source.file);
    if (status == TN_OK)
        status = lm_adapter_use(model, &adapter);
    lm_adapter_free(&adapter);
    return status;
}

// --- writing ---------------------------------------------------------------------------

struct adapter_named_arrays {
    tn_array **arrays;
    const char **names;
    char (*texts)[PEFT_NAME];
};

static tn_status name_array(tn_lm *model, const char *weight, bool is_up, bool is_peft,
                            char out[PEFT_NAME])
{
    if (!is_peft)
        snprintf(out, PEFT_NAME, "%s%s", weight, is_up ? UP : DOWN);
    else if (!peft_array(model, weight, is_up, out))
        return lm_fail(TN_ERR_UNSUPPORTED, "PEFT has no name for the weight %s", weight);
    return TN_OK;
}

static tn_status name_arrays(tn_lm *model, tn_scope *scope, bool is_peft,
                             const struct adapter_named_arrays *out)
{
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < model->adapter.count; i++) {
        const struct lm_low_rank *item = &model->adapter.items[i];
        const struct lm_weight *weight = lm_product_find(model, item->name);
        out->arrays[2 * i] = item->down;
        out->arrays[2 * i + 1] =
            is_peft ? item->up : lm_rows_in_halves(scope, item->up, weight, true);
        for (uint64_t k = 2 * i; k < 2 * i + 2 && status == TN_OK; k++) {
            status = name_array(model, item->name, k % 2, is_peft, out->texts[k]);
            out->names[k] = out->texts[k];
        }
    }
    return status;
}

tn_status lm_adapter_check_numbers(const tn_lm *model, tn_array *const *parameters)
{
    tn_scope *scope = tn_scope_open(model->runtime);
    tn_status status = lm_fail_scope(scope);
    for (uint64_t i = 0; i < 2 * model->adapter.count && status == TN_OK; i++) {
        const struct lm_low_rank *item = &model->adapter.items[i / 2];
        tn_array *array = parameters ? parameters[i] : i % 2 ? item->up : item->down;
        const tn_type *type = tn_array_type(array);
        const float *values = tn_data(scope, array);
        status =
            values ? lm_check_numbers(values, (uint64_t)(type->extent[0] * type->extent[1]),
                                      "the adapter's %s%s", item->name, i % 2 ? UP : DOWN)
                   : lm_fail_scope(scope);
    }
    tn_scope_close(scope);
    return status;
}

static tn_status save_with(tn_lm *model, const char *path, bool is_peft,
                           const tn_save_options *options)
{
    uint64_t count = 2 * model->adapter.count;
    const struct adapter_named_arrays named = {lm_alloc(count, sizeof(*named.arrays)),
                                               lm_alloc(count, sizeof(*named.names)),
                                               lm_alloc(count, sizeof(*named.texts))};
    tn_status status = TN_ERR_MEMORY;
    if (named.arrays && named.names && named.texts) {
        tn_scope *scope = tn_scope_open(model->runtime);
        status = scope ? name_arrays(model, scope, is_peft, &named) : TN_OK;
        if (scope && status == TN_OK)
            tn_save(scope, path, named.arrays, named.names, count, options);
        if (status == TN_OK)
            status = lm_fail_scope(scope);
        tn_scope_close(scope);
    }
    free(named.arrays);
    free(named.names);
    free(named.texts);
    return status;
}

// Writes a folder as PEFT reads it, and makes the folder if need be; the configuration
// comes last.
static tn_status save_folder(tn_lm *model, const char *folder)
{
    char arrays[PATH_MAX];
    const char *key = "format", *text = "pt";
    const tn_save_options options = {
        .struct_size = sizeof(options), .keys = &key, .texts = &text, .num_texts = 1};
    if (mkdir(folder, 0777) && errno != EEXIST)
        return lm_fail(TN_ERR_IO, "%s: %s", folder, strerror(errno));
    tn_status status = save_with(model, peft_arrays(folder, arrays), true, &options);
    return status == TN_OK ? peft_write_config(model, folder) : status;
}

tn_status tn_lm_adapter_save(tn_lm *model, const char *path)
{
    char alpha[40];
    const char *key = KEY_ALPHA, *text = alpha;
    const tn_text kind = {"adapter", 7}, form = {"lora", 4},
                  family = {model->architecture, strlen(model->architecture)};
    const tn_metadata pairs[] = {
        {"general.type", &kind, 1, TN_METADATA_TEXT, 0},
        {"general.architecture", &family, 1, TN_METADATA_TEXT, 0},
        {"adapter.type", &form, 1, TN_METADATA_TEXT, 0},
        {KEY_ALPHA, &model->adapter.alpha, 1, TN_METADATA_FLOAT, 0},
    };
    const tn_metadata_list list = {sizeof(list), sizeof(pairs[0]), pairs, COUNT(pairs),
                                   path};
    const tn_save_options metadata = {.struct_size = sizeof(metadata), .metadata = &list};
    const tn_save_options texts = {
        .struct_size = sizeof(texts), .keys = &key, .texts = &text, .num_texts = 1};
    snprintf(alpha, sizeof(alpha), "%.17g", model->adapter.alpha);
    if (model->adapter.count == 0)
        return lm_fail(TN_ERR_ARGUMENT, "%s: the model has no adapter to write", path);
    tn_status status = lm_adapter_check_numbers(model, NULL);
    if (status != TN_OK)
        return status;
    if (peft_is_folder(path))
        return save_folder(model, path);
    status = save_with(model, path, false, &metadata);
    return status == TN_ERR_UNSUPPORTED ? save_with(model, path, false, &texts) : status;
}
