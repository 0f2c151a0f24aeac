// SPDX-License-Identifier: MIT
// The vision encoder of a model: finds and opens it, reads its weights with the first
// image, and runs it on tiles.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/lm_image.h>
#include "../base/fail.h"
#include "../engine/devices.h"
#include "../engine/parts.h"
#include "../engine/source.h"
#include "../engine/step.h"
#include "../engine/tokens.h"
#include "../engine/weights.h"
#include "vision.h"

#define KEY "clip.projector_type"

void lm_vision_close(tn_lm *model)
{
    struct lm_vision *vision = &model->vision;
    tn_function_destroy(vision->function);
    lm_model_close(vision->encoder);
    vision->function = NULL;
    vision->encoder = NULL;
    vision->is_ready = false;
}

// --- opening ---------------------------------------------------------------------------

static tn_status vision_find_plugin(tn_lm *encoder, const tn_vision **out_ops)
{
    const tn_metadata_list *list = encoder->source.metadata;
    const void *interface;
    char kind[64];
    tn_text text;
    if (!tn_metadata_text(tn_metadata_find(list, KEY), &text) || text.size >= sizeof(kind))
        return lm_fail(TN_ERR_UNSUPPORTED,
                       "%s reads no images: " KEY " is missing (models of GGUF have their "
                       "vision encoder in a file of its own, mmproj)",
                       list->name);
    memcpy(kind, text.data, text.size);
    kind[text.size] = 0;
    tn_status status = tn_provider_find(encoder->runtime, TN_IFACE_VISION, "projector",
                                        kind, &encoder->plugin);
    if (status == TN_OK)
        status = tn_provider_load(encoder->runtime, TN_IFACE_VISION, encoder->plugin,
                                  &interface, &encoder->host);
    if (status != TN_OK)
        return lm_fail(status, "%s: images for the projector '%s': %s", list->name, kind,
                       tn_last_error());
    const tn_vision *ops = interface;
    if (!TN_HAS(ops, write) || !TN_HAS(ops, cut) || !TN_HAS(ops, facts) ||
        !TN_HAS(ops, encoder) || !TN_HAS(ops->encoder, build) ||
        !TN_HAS(ops->encoder, open) || !TN_HAS(ops->encoder, close) ||
        !TN_HAS(ops->encoder, weights))
        return lm_fail(TN_ERR_REFUSED,
                       "%s: its table of " TN_IFACE_VISION " lacks a function",
                       encoder->plugin);
    encoder->ops = ops->encoder;
    *out_ops = ops;
    return TN_OK;
}

// Refuses facts that are not positive: the library computes with them, whatever the plugin
// says.
static tn_status vision_check_facts(const tn_lm *model, const tn_lm *encoder,
                                    const tn_vision_facts *facts)
{
    bool fits = encoder->facts->layers > 0 && facts->tile > 0 &&
                facts->tile <= TN_VISION_MOST_TILE && facts->tokens > 0 &&
                facts->tokens <= facts->tile * facts->tile &&
                facts->filter <= TN_VISION_BICUBIC && facts->mark && facts->mark[0];
    for (int i = 0; i < 3; i++)
        fits = fits && facts->deviation[i] > 0;
    if (!fits)
        return lm_fail(TN_ERR_INTERNAL,
                       "%s: %" PRId64 " layers, tiles of %" PRId64 " pixels, %" PRId64
                       " tokens, filter %u: expected positive numbers, and a mark",
                       encoder->plugin, encoder->facts->layers, facts->tile, facts->tokens,
                       facts->filter);
    if (encoder->facts->width == model->facts->width)
        return TN_OK;
    return lm_fail(TN_ERR_REFUSED,
                   "%s: its vision encoder gives rows of %" PRId64 ", expected the %" PRId64
                   " of the model",
                   encoder->source.metadata->name, encoder->facts->width,
                   model->facts->width);
}

static tn_status open_facts(const tn_lm *model, struct lm_vision *vision, tn_lm *encoder)
{
    struct lm_model_source source;
    lm_model_source_init(&encoder->source, &source);
    tn_status status = vision_find_plugin(encoder, &vision->ops);
    if (status == TN_OK)
        status = lm_fail_core(encoder->ops->open(encoder->host, &source.base,
                                                 &encoder->self, &encoder->facts));
    if (status != TN_OK)
        return status;
    vision->facts = vision->ops->facts(encoder->self);
    status = vision_check_facts(model, encoder, vision->facts);
    return status == TN_OK ? lm_weights_check(encoder) : status;
}

// Opens the vision encoder of a source; closes the source on failure, too.
static tn_status open_encoder(tn_lm *model, const tn_lm_source *source)
{
    struct lm_vision *vision = &model->vision;
    tn_lm *encoder = lm_alloc(1, sizeof(*encoder));
    if (!encoder) {
        if (source->close)
            source->close(source);
        return TN_ERR_MEMORY;
    }
    encoder->runtime = model->runtime;
    encoder->source = *source;
    encoder->context = 1;
    lm_model_init(encoder);
    tn_status status = open_facts(model, vision, encoder);
    if (status == TN_OK)
        vision->encoder = encoder;
    else
        lm_model_close(encoder);
    return status;
}

// The body of the vision encoder's function.
static tn_status build_tile(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs, void *user)
{
    tn_lm *model = user;
    tn_array *no_caches = NULL;
    tn_model_step step = {
        .count = 1, .capacity = 1, .input = inputs[0], .caches = &no_caches};
    const struct lm_cursor cursor = {.position = NULL};
    (void)num_inputs, (void)num_outputs;
    tn_status status =
        lm_build(model->vision.encoder, scope, &step, &cursor, NULL, NULL, NULL);
    const tn_type *type = status == TN_OK ? tn_array_type(step.output) : NULL;
    if (!type || type->dtype != TN_F32 || type->rank != 2 ||
        type->extent[0] != model->vision.facts->tokens ||
        type->extent[1] != model->facts->width)
        return status != TN_OK
                   ? status
                   : tn_scope_fail(scope, TN_ERR_INTERNAL,
                                   "%s: a tile became no f32 [%" PRId64 ", %" PRId64 "]",
                                   model->vision.encoder->plugin,
                                   model->vision.facts->tokens, model->facts->width);
    outputs[0] = step.output;
    return TN_OK;
}

// Finds the id of the mark, which has to be one token.
static tn_status find_mark(tn_lm *model)
{
    struct lm_vision *vision = &model->vision;
    int32_t *ids = NULL;
    uint64_t count = 0;
    const char *mark = vision->facts->mark;
    tn_status status =
        tn_lm_tokenize(model, mark, strlen(mark), TN_LM_PARSE_SPECIAL, &ids, &count);
    if (status == TN_OK && count != 1)
        status = lm_fail(TN_ERR_REFUSED,
                         "%s: the mark of images, '%s', is %" PRIu64
                         " tokens of its vocabulary, expected one",
                         model->source.metadata->name, mark, count);
    if (status == TN_OK)
        vision->mark = ids[0];
    tn_lm_free(ids);
    return status;
}

// Chooses the device for the vision encoder: that of the model's first layers, loaded or
// not.
static tn_status encoder_choose_device(tn_lm *model)
{
    tn_lm *encoder = model->vision.encoder;
    struct lm_division made = model->division;
    tn_status status = TN_OK;
    if (made.count == 0)
        status = lm_division_make(model, 0, model->facts->layers, &made);
    encoder->division.count = 1;
    encoder->division.parts[0] = made.parts[0];
    encoder->division.parts[0].first = 0;
    encoder->division.parts[0].end = encoder->facts->layers;
    return status;
}

// Opens and loads the encoder. The lock is held.
static tn_status make_ready(tn_lm *model)
{
    struct lm_vision *vision = &model->vision;
    tn_status status = TN_OK;
    if (vision->is_ready && !lm_is_lost(vision->encoder))
        return TN_OK;
    tn_function_destroy(vision->function);
    vision->function = NULL;
    vision->is_ready = false;
    if (!vision->encoder) {
        tn_lm_source source = model->source;
        source.close = NULL; // the model owns the source now
        status = open_encoder(model, &source);
    }
    if (status == TN_OK)
        status = find_mark(model);
    if (status == TN_OK)
        status = encoder_choose_device(model);
    if (status == TN_OK)
        status = lm_weights_load(vision->encoder, 0, vision->encoder->facts->layers);
    if (status != TN_OK)
        return status;
    vision->encoder->end = vision->encoder->facts->layers;
    status = lm_fail_core(
        tn_function_create(model->runtime, build_tile, model, NULL, &vision->function));
    vision->is_ready = status == TN_OK;
    return status;
}

tn_status lm_vision_ready(tn_lm *model)
{
    pthread_mutex_lock(&model->vision.lock);
    tn_status status = make_ready(model);
    pthread_mutex_unlock(&model->vision.lock);
    return status;
}

tn_status tn_lm_vision_load(tn_lm *model, const char *path)
{
    tn_lm_source source;
    if (model->vision.is_ready)
        return lm_fail(TN_ERR_ARGUMENT,
                       "%s: the model reads images with another vision encoder already",
                       path);
    tn_status status = lm_source_open(model->runtime, path, &source);
    if (status != TN_OK)
        return status;
    lm_vision_close(model);
    status = open_encoder(model, &source);
    return status;
}

tn_status tn_lm_image_mark(tn_lm *model, const char **out_mark)
{
    tn_status status = lm_vision_ready(model);
    if (status == TN_OK)
        *out_mark = model->vision.facts->mark;
    return status;
}

// --- running ---------------------------------------------------------------------------

tn_status lm_vision_encode(tn_lm *model, const float *tile, float *out_rows)
{
    const tn_vision_facts *facts = model->vision.facts;
    tn_scope *scope = tn_scope_open(model->runtime);
    if (!scope)
        return lm_fail_scope(NULL);
    lm_scope_on(&model->vision.encoder->division, 0, scope);
    tn_array *pixels =
        tn_from_data(scope, TN_F32, TN_SHAPE(3, facts->tile, facts->tile), tile);
    tn_array *rows = NULL;
    pthread_mutex_lock(&model->vision.lock);
    tn_function_call(model->vision.function, scope, &pixels, 1, &rows, 1);
    tn_read(scope, rows, out_rows,
            (uint64_t)(facts->tokens * model->facts->width) * sizeof(*out_rows));
    pthread_mutex_unlock(&model->vision.lock);
    tn_status status = lm_fail_scope(scope);
    tn_scope_close(scope);
    return status;
}
