// SPDX-License-Identifier: MIT
// The vision encoder of a model that reads images: "vision_config" of config.json, and the
// preparation of images in preprocessor_config.json. Keys are those of GGUF's vision
// encoders, "clip.vision.block_count"; beyond these "tenon.vision.splits" (large images
// become tiles), "tenon.vision.resizes" (images are resized first) and
// "tenon.vision.filter" (a filter's number in Pillow).
#include <math.h>
#include <string.h>
#include "huggingface.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// A number's names in the file and in the metadata, and its default.
struct number {
    const char *theirs, *ours;
    json_int_t otherwise;
};

static const struct number integers[] = {
    {"image_size", "clip.vision.image_size", 224},
    {"patch_size", "clip.vision.patch_size", 32},
    {"hidden_size", "clip.vision.embedding_length", 1152},
    {"intermediate_size", "clip.vision.feed_forward_length", 3072},
    {"num_hidden_layers", "clip.vision.block_count", 12},
    {"num_attention_heads", "clip.vision.attention.head_count", 16},
};

static tn_status add_encoder(struct hf *hf, const json_t *vision)
{
    static const char file[] = "config.json";
    for (size_t i = 0; i < COUNT(integers); i++) {
        const json_t *value = hf_member(vision, integers[i].theirs);
        if (value && (!json_is_integer(value) || json_integer_value(value) < 1))
            return hf_wrong(hf, file, integers[i].theirs, "a number from 1 on");
        hf_add_integer(hf, integers[i].ours,
                       value ? json_integer_value(value) : integers[i].otherwise);
    }
    const json_t *eps = hf_member(vision, "layer_norm_eps");
    const json_t *factor = hf_member(hf->config, "scale_factor");
    const json_t *function = hf_member(vision, "hidden_act");
    if (eps && !json_is_number(eps))
        return hf_wrong(hf, file, "layer_norm_eps", "a number");
    if (factor && !json_is_integer(factor))
        return hf_wrong(hf, file, "scale_factor", "a number from 1 on");
    if (function && (!json_string_value(function) ||
                     strcmp(json_string_value(function), "gelu_pytorch_tanh") != 0))
        return hf_wrong(hf, file, "hidden_act", "gelu_pytorch_tanh");
    hf_add_float(hf, "clip.vision.attention.layer_norm_epsilon",
                 eps ? json_number_value(eps) : 1e-6);
    hf_add_integer(hf, "clip.vision.projector.scale_factor",
                   factor ? json_integer_value(factor) : 2);
    return TN_OK;
}

// --- how images are made ready -----------------------------------------------------------

#define PROCESSOR "preprocessor_config.json"

// Reads the file of image preparation, or that of newer folders; both may be absent.
static tn_status read_processor(struct hf *hf)
{
    tn_status status = hf_read_json(hf, PROCESSOR, 0, &hf->processor);
    if (status != TN_ERR_NOT_FOUND)
        return status;
    json_t *all = NULL;
    status = hf_read_json(hf, "processor_config.json", 0, &all);
    hf->processor = json_incref(json_object_get(all, "image_processor"));
    json_decref(all);
    return status == TN_ERR_NOT_FOUND ? TN_OK : status;
}

// Three numbers, one for each colour.
static tn_status add_colours(struct hf *hf, const char *theirs, const char *ours)
{
    const json_t *list = hf_member(hf->processor, theirs);
    if (!list)
        return TN_OK;
    double *numbers = hf_alloc(hf, 3 * sizeof(*numbers));
    bool fits = json_array_size(list) == 3;
    for (size_t i = 0; numbers && fits && i < 3; i++) {
        fits = json_is_number(json_array_get(list, i));
        numbers[i] = json_number_value(json_array_get(list, i));
    }
    if (!fits)
        return hf_wrong(hf, PROCESSOR, theirs, "three numbers");
    hf_add_list(hf, ours, TN_METADATA_FLOAT, numbers, 3);
    return TN_OK;
}

// Adds the sizes of the image, and of tiles, which the vision encoder reads.
static tn_status add_sizes(struct hf *hf, const json_t *vision)
{
    const json_t *edge = hf_member(hf_member(hf->processor, "size"), "longest_edge");
    const json_t *tile =
        hf_member(hf_member(hf->processor, "max_image_size"), "longest_edge");
    const json_t *side = hf_member(vision, "image_size");
    if (edge && (!json_is_integer(edge) || json_integer_value(edge) < 1))
        return hf_wrong(hf, PROCESSOR, "size", "a longest_edge from 1 on");
    if (tile && json_integer_value(tile) !=
                    (side ? json_integer_value(side) : integers[0].otherwise))
        return hf_wrong(hf, PROCESSOR, "max_image_size",
                        "a longest_edge that is the image_size of config.json");
    if (edge)
        hf_add_integer(hf, "clip.vision.preproc_image_size", json_integer_value(edge));
    return TN_OK;
}

// Checks that the processor takes its usual steps, and adds the choices among them.
static tn_status vision_add_steps(struct hf *hf)
{
    static const char *const needed[] = {"do_rescale", "do_normalize", "do_convert_rgb"};
    const json_t *factor = hf_member(hf->processor, "rescale_factor");
    const json_t *filter = hf_member(hf->processor, "resample");
    for (size_t i = 0; i < COUNT(needed); i++)
        if (json_is_false(hf_member(hf->processor, needed[i])))
            return hf_wrong(hf, PROCESSOR, needed[i], "true");
    if (factor && !(fabs(json_number_value(factor) - 1.0 / 255) < 1e-9))
        return hf_wrong(hf, PROCESSOR, "rescale_factor", "1 / 255");
    hf_add_integer(hf, "tenon.vision.resizes",
                   !json_is_false(hf_member(hf->processor, "do_resize")));
    hf_add_integer(hf, "tenon.vision.splits",
                   !json_is_false(hf_member(hf->processor, "do_image_splitting")));
    if (json_is_integer(filter))
        hf_add_integer(hf, "tenon.vision.filter", json_integer_value(filter));
    return TN_OK;
}

// An unknown processor is named in the place of the projector. No plugin knows that name,
// so the model still reads texts.
static const char *projector_of(const struct hf *hf)
{
    static const char *const known[] = {"Idefics3ImageProcessor", "SmolVLMImageProcessor"};
    const char *name = json_string_value(hf_member(hf->processor, "image_processor_type"));
    for (size_t i = 0; name && i < COUNT(known); i++) {
        size_t size = strlen(known[i]);
        const char *rest = strncmp(name, known[i], size) == 0 ? name + size : "?";
        if (!*rest || strcmp(rest, "Fast") == 0 || strcmp(rest, "Pil") == 0)
            return hf->family->projector;
    }
    return name ? name : hf->family->projector;
}

tn_status hf_read_vision(struct hf *hf)
{
    const json_t *vision = hf_member(hf->config, "vision_config");
    if (!hf->family->projector || !json_is_object(vision))
        return TN_OK;
    tn_status status = read_processor(hf);
    if (status == TN_OK)
        status = add_encoder(hf, vision);
    if (status == TN_OK)
        status = add_sizes(hf, vision);
    if (status == TN_OK)
        status = vision_add_steps(hf);
    if (status == TN_OK)
        status = add_colours(hf, "image_mean", "clip.vision.image_mean");
    if (status == TN_OK)
        status = add_colours(hf, "image_std", "clip.vision.image_std");
    if (status == TN_OK)
        hf_add_text(hf, "clip.projector_type", projector_of(hf));
    return status;
}
