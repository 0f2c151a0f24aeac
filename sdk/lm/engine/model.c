// SPDX-License-Identifier: MIT
// Opening and closing models, and facts about them.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "caches.h"
#include "devices.h"
#include "low_rank.h"
#include "parts.h"
#include "source.h"
#include "step.h"
#include "weights.h"

// Positions behind the context, so that the last chunk of a prompt may be padded.
#define PADDING 8

// --- opening ---------------------------------------------------------------------------

static void copy_text(const tn_metadata_list *list, const char *key, char *out, size_t size)
{
    tn_text text = {"", 0};
    tn_metadata_text(tn_metadata_find(list, key), &text);
    snprintf(out, size, "%.*s", (int)(text.size < size ? text.size : size - 1), text.data);
}

// Finds the plugin of the architecture, and opens the model with it.
static tn_status open_architecture(tn_lm *model)
{
    const tn_metadata_list *list = model->source.metadata;
    const void *interface;
    copy_text(list, "general.name", model->name, sizeof(model->name));
    copy_text(list, "general.architecture", model->architecture,
              sizeof(model->architecture));
    if (!model->architecture[0])
        return lm_fail(TN_ERR_REFUSED, "%s: general.architecture is missing: no model",
                       list->name);
    tn_status status = tn_provider_find(model->runtime, TN_IFACE_MODEL, "architecture",
                                        model->architecture, &model->plugin);
    if (status == TN_OK)
        status = tn_provider_load(model->runtime, TN_IFACE_MODEL, model->plugin, &interface,
                                  &model->host);
    if (status != TN_OK)
        return lm_fail(status, "%s: the architecture '%s': %s", list->name,
                       model->architecture, tn_last_error());
    const tn_model *ops = interface;
    if (!TN_HAS(ops, build) || !TN_HAS(ops, open) || !TN_HAS(ops, close) ||
        !TN_HAS(ops, weights) || !TN_HAS(ops, caches))
        return lm_fail(TN_ERR_REFUSED, "%s: its table of tn.model/1 lacks a function",
                       model->plugin);
    model->ops = ops;
    struct lm_model_source source;
    lm_model_source_init(&model->source, &source);
    return lm_fail_core(ops->open(model->host, &source.base, &model->self, &model->facts));
}

// Refuses facts that are not positive: the library computes with them, whatever the plugin
// says.
static tn_status engine_model_check_facts(const tn_lm *model)
{
    const tn_model_facts *f = model->facts;
    if (f->layers > 0 && f->width > 0 && f->vocabulary > 0 && f->context > 0 &&
        f->vocabulary <= INT32_MAX && f->num_caches > 0 && f->num_caches <= TN_MODEL_CACHES)
        return TN_OK;
    return lm_fail(TN_ERR_INTERNAL,
                   "%s: %" PRId64 " layers, width %" PRId64 ", vocabulary %" PRId64
                   ", context %" PRId64 ", %u caches: expected positive numbers",
                   model->plugin, f->layers, f->width, f->vocabulary, f->context,
                   f->num_caches);
}

static tn_status choose_context(tn_lm *model, int64_t asked)
{
    int64_t trained = model->facts->context;
    if (asked < 0 || asked > INT32_MAX - 2 * PADDING)
        return lm_fail(TN_ERR_ARGUMENT, "a context of %" PRId64 " positions", asked);
    model->context = asked                           ? asked
                     : trained < TN_LM_USUAL_CONTEXT ? trained
                                                     : TN_LM_USUAL_CONTEXT;
    model->capacity = model->context + PADDING;
    return TN_OK;
}

static tn_status choose_caches(tn_lm *model, const tn_lm_options *options)
{
    tn_type types[TN_MODEL_CACHES];
    if (options->sequences < 0 || options->sequences > TN_LM_MOST_SEQUENCES)
        return lm_fail(TN_ERR_ARGUMENT,
                       "%" PRId64 " sequences that share caches, expected 0 to %d",
                       options->sequences, TN_LM_MOST_SEQUENCES);
    model->slots = options->sequences ? options->sequences : 1;
    tn_status status = lm_caches_choose(model, options->cache);
    return status == TN_OK ? lm_caches_types(model, 0, types) : status;
}

// Copies the option `split`. Numbers that do not fit are reported when the devices are
// known.
static tn_status keep_split(tn_lm *model, const char *split)
{
    if (!split)
        return TN_OK;
    model->split = lm_alloc(strlen(split) + 1, 1);
    if (!model->split)
        return TN_ERR_MEMORY;
    strcpy(model->split, split);
    return TN_OK;
}

void lm_model_init(tn_lm *model)
{
    pthread_mutex_init(&model->lock, NULL);
    pthread_mutex_init(&model->vision.lock, NULL);
    atomic_flag_clear(&model->tokenizer_lock);
}

tn_status tn_lm_open_source(tn_runtime *runtime, const tn_lm_source *source,
                            const tn_lm_options *options, tn_lm **out_model)
{
    tn_lm_options mine;
    tn_status status = lm_read_struct(&mine, sizeof(mine), options,
                                      options ? options->struct_size : 0, "tn_lm_options");
    tn_lm *model = status == TN_OK ? lm_alloc(1, sizeof(*model)) : NULL;
    if (!model) {
        if (source->close)
            source->close(source);
        return status == TN_OK ? TN_ERR_MEMORY : status;
    }
    model->runtime = runtime;
    model->source = *source;
    lm_model_init(model);
    status = mine.flags ? lm_fail(TN_ERR_ARGUMENT, "tn_lm_options: flags 0x%x, expected 0",
                                  mine.flags)
                        : open_architecture(model);
    if (status == TN_OK)
        status = engine_model_check_facts(model);
    if (status == TN_OK)
        status = choose_context(model, mine.context);
    if (status == TN_OK)
        status = choose_caches(model, &mine);
    if (status == TN_OK)
        status = keep_split(model, mine.split);
    model->progress = mine.progress;
    model->progress_context = mine.progress_context;
    if (status == TN_OK)
        status = lm_weights_check(model);
    if (status == TN_OK)
        *out_model = model;
    else
        lm_model_close(model);
    return status;
}

tn_status lm_model_reopen(tn_lm *model, const tn_lm_source *source)
{
    int64_t context = model->context;
    lm_plans_destroy(model);
    lm_weights_free(model);
    model->first = model->end = 0;
    model->division.count = 0;
    model->ops->close(model->host, model->self);
    model->self = NULL;
    model->source = *source;
    tn_status status = open_architecture(model);
    if (status == TN_OK)
        status = engine_model_check_facts(model);
    if (status == TN_OK)
        status = choose_context(model, context);
    return status == TN_OK ? lm_weights_check(model) : status;
}

tn_status lm_check_here(const tn_lm *model)
{
    return !model->remote ? TN_OK
                          : lm_fail(TN_ERR_UNSUPPORTED,
                                    "a model that is on %d processes generates: it is not "
                                    "trained or measured",
                                    model->remote->size);
}

void lm_model_close(tn_lm *model)
{
    if (!model)
        return;
    if (model->remote)
        model->remote->close(model->remote);
    lm_plans_destroy(model);
    lm_adapter_free(&model->adapter);
    lm_weights_free(model);
    if (model->tokenizer)
        model->tokens->close(model->tokens_host, model->tokenizer);
    if (model->self)
        model->ops->close(model->host, model->self);
    if (model->source.close)
        model->source.close(&model->source);
    pthread_mutex_destroy(&model->vision.lock);
    pthread_mutex_destroy(&model->lock);
    free(model->split);
    free(model);
}

const tn_metadata_list *tn_lm_metadata(const tn_lm *model)
{
    return model->source.metadata;
}

// Bytes of one slot's caches.
static uint64_t engine_model_cache_bytes(const tn_lm *model)
{
    uint64_t bytes = 0;
    for (int64_t layer = model->first; layer < model->end; layer++) {
        tn_type types[TN_MODEL_CACHES];
        if (lm_caches_types(model, layer, types))
            continue;
        for (uint32_t i = 0; i < model->facts->num_caches; i++)
            bytes += lm_type_bytes(&types[i]) / (uint64_t)model->slots;
    }
    return bytes;
}

void tn_lm_describe(const tn_lm *model, tn_lm_info *out)
{
    tn_lm_info info = {
        .struct_size = sizeof(info),
        .name = model->name,
        .architecture = model->architecture,
        .plugin = model->plugin,
        .layers = model->facts->layers,
        .width = model->facts->width,
        .vocabulary = model->facts->vocabulary,
        .context = model->context,
        .trained = model->facts->context,
        .first = model->first,
        .end = model->end,
        .cache_bytes = engine_model_cache_bytes(model),
        .cache = model->cache_name,
        .sequences = model->slots,
    };
    for (uint64_t i = 0; i < model->weights.count; i++)
        info.weight_bytes += model->weights.items[i].bytes;
    lm_write_struct(out, out->struct_size, &info, sizeof(info));
}

tn_status tn_lm_ensure_shard(tn_lm *model, int64_t first, int64_t last)
{
    if (first < 0 || last < first || last >= model->facts->layers)
        return lm_fail(TN_ERR_ARGUMENT,
                       "layers %" PRId64 " to %" PRId64
                       " of a model whose last one is %" PRId64,
                       first, last, model->facts->layers - 1);
    if (model->remote)
        return first == 0 && last == model->facts->layers - 1
                   ? TN_OK
                   : lm_fail(TN_ERR_ARGUMENT,
                             "layers %" PRId64 " to %" PRId64 " of a model that is on %d "
                             "processes: tn_lm_distribute divides its layers",
                             first, last, model->remote->size);
    if (model->first == first && model->end == last + 1 && !lm_is_lost(model))
        return TN_OK;
    int sequences = atomic_load(&model->sequences);
    if (sequences > 0)
        return lm_fail(TN_ERR_ARGUMENT,
                       "the layers of a model that has %d sequence%s cannot change",
                       sequences, sequences == 1 ? "" : "s");
    struct lm_division division;
    tn_status status = lm_division_make(model, first, last + 1, &division);
    if (status != TN_OK)
        return status;
    lm_plans_destroy(model);
    lm_adapter_free(&model->adapter);
    model->first = model->end = 0;
    model->division = division;
    status = lm_weights_load(model, first, last + 1);
    if (status != TN_OK) {
        model->division.count = 0;
        return status;
    }
    model->first = first;
    model->end = last + 1;
    return lm_plans_make(model);
}
