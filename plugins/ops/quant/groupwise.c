// SPDX-License-Identifier: MIT
// Groupwise formats: from attributes; checks of codes, scales and biases; groups as floats.
#include "groupwise.h"

#include <tenon/ops/promote.h>

const char *const groupwise_modes[] = {
#define NAME(name, bits, group) #name,
    TN_GROUPWISE_MODES(NAME)
#undef NAME
        NULL};

static const struct groupwise defaults[] = {
#define DEFAULTS(name, bits, group) {TN_GROUPWISE_##name, bits, group},
    TN_GROUPWISE_MODES(DEFAULTS)
#undef DEFAULTS
};

tn_status groupwise_format(const tn_host *host, int64_t mode, int64_t bits, int64_t group,
                           struct groupwise *out)
{
    struct groupwise format = defaults[mode];
    format.bits = bits ? bits : format.bits;
    format.group = group ? group : format.group;
    if (mode == TN_GROUPWISE_affine &&
        !tn_groupwise_is_known(mode, format.bits, format.group))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "bits is %" PRId64 " and group %" PRId64
                          ", expected 2, 3, 4, 5, 6 or 8, and 32, 64 or 128, of affine",
                          format.bits, format.group);
    if (!tn_groupwise_is_known(mode, format.bits, format.group))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "bits is %" PRId64 " and group %" PRId64 ", expected %" PRId64
                          " and %" PRId64 ", which %s has",
                          format.bits, format.group, defaults[mode].bits,
                          defaults[mode].group, groupwise_modes[mode]);
    *out = format;
    return TN_OK;
}

// --- checks -----------------------------------------------------------------------------

static bool quant_groupwise_same_extents(const tn_type *a, const tn_type *b, int32_t count)
{
    bool same = true;
    for (int32_t i = 0; i < count; i++)
        same = same && a->extent[i] == b->extent[i];
    return same;
}

// Whether a row of `words` words has the codes of that many groups.
static bool words_fit(const struct groupwise *format, int64_t words, int64_t groups,
                      int64_t *out_k)
{
    int64_t bits, have;
    return tn_checked_multiply_extents(groups, format->group, out_k) &&
           tn_checked_multiply_extents(*out_k, format->bits, &bits) &&
           tn_checked_multiply_extents(words, 32, &have) && bits == have;
}

static tn_status check_biases(const tn_infer *infer, const struct groupwise *format,
                              uint32_t first)
{
    const tn_host *host = infer->host;
    const tn_type *scales = &infer->types[first + 1];
    const bool is_given = groupwise_given(infer, first + 2);
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    if (format->mode != TN_GROUPWISE_affine)
        return !is_given ? TN_OK
                         : host->fail(host, TN_ERR_ARGUMENT,
                                      "biases are given, expected none: %s has only scales",
                                      groupwise_modes[format->mode]);
    if (!is_given)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "no biases are given, expected those of the groups: affine has "
                          "scales and biases");
    const tn_type *biases = &infer->types[first + 2];
    if (biases->rank != scales->rank ||
        !quant_groupwise_same_extents(biases, scales, scales->rank))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "biases have shape %s, expected %s, that of scales",
                          shape_text(biases, text), shape_text(scales, other));
    return TN_OK;
}

tn_status groupwise_check(const tn_infer *infer, const struct groupwise *format,
                          uint32_t first, int64_t *out_k)
{
    const tn_host *host = infer->host;
    const tn_type *w = &infer->types[first], *scales = &infer->types[first + 1];
    const bool is_u8 = scales->dtype == TN_U8;
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    int32_t last = w->rank - 1;
    if (is_u8 != (format->mode != TN_GROUPWISE_affine))
        return host->fail(host, TN_ERR_ARGUMENT, "scales are %s, expected %s in mode %s",
                          tn_dtype_name(scales->dtype), is_u8 ? "f16, bf16 or f32" : "u8",
                          groupwise_modes[format->mode]);
    if (last < 0 || scales->rank != w->rank ||
        !quant_groupwise_same_extents(w, scales, last) ||
        !words_fit(format, w->extent[last], scales->extent[last], out_k))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "w has shape %s and scales %s, expected the same rows, with "
                          "%" PRId64 " words for each scale: codes of %" PRId64
                          " bits in groups of %" PRId64,
                          shape_text(w, text), shape_text(scales, other),
                          format->group * format->bits / 32, format->bits, format->group);
    return check_biases(infer, format, first);
}

tn_status groupwise_check_factor(const tn_infer *infer, const struct groupwise *format,
                                 uint32_t i)
{
    const tn_host *host = infer->host;
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    if (!groupwise_given(infer, i))
        return TN_OK;
    if (format->mode != TN_GROUPWISE_nvfp4)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "global_scale is given in mode %s, expected it in nvfp4 alone",
                          groupwise_modes[format->mode]);
    const tn_type *type = &infer->types[i], *w = &infer->types[0];
    bool fits = type->rank <= w->rank;
    for (int32_t axis = 0; fits && axis < type->rank; axis++)
        fits = type->extent[axis] == 1 ||
               (axis + 1 < w->rank && type->extent[axis] == w->extent[axis]);
    return fits ? TN_OK
                : host->fail(host, TN_ERR_ARGUMENT,
                             "global_scale has shape %s, expected one element, or one for "
                             "each index of the first axes of w, %s",
                             shape_text(type, text), shape_text(w, other));
}

tn_dtype groupwise_dtype(tn_dtype x, tn_dtype scales, tn_dtype biases)
{
    return scales == TN_U8 ? x : tn_dtype_promote(x, tn_dtype_promote(scales, biases));
}

// --- values -----------------------------------------------------------------------------

void groupwise_decode(const struct groupwise *format, const tn_tensor *w,
                      const tn_tensor *scales, const tn_tensor *biases, float factor,
                      const int64_t *index, float *out)
{
    const int32_t last = w->layout.rank - 1, bits = (int32_t)format->bits;
    const int64_t words = format->group * bits / 32;
    const bool is_affine = format->mode == TN_GROUPWISE_affine;
    uint32_t group[GROUPWISE_MAX_GROUP * 8 / 32];
    int64_t from = tn_offset_at(&w->layout, index),
            at = tn_offset_at(&scales->layout, index),
            beside = is_affine ? tn_offset_at(&biases->layout, index) : 0;
    for (int64_t g = 0; g < scales->layout.extent[last]; g++, out += format->group) {
        for (int64_t i = 0; i < words; i++, from += w->layout.stride[last])
            group[i] = (uint32_t)tn_get_i64(w, from);
        float scale, bias = 0;
        if (is_affine) {
            scale = (float)tn_get_f64(scales, at);
            bias = (float)tn_get_f64(biases, beside);
            beside += biases->layout.stride[last];
        } else {
            scale = tn_groupwise_scale(format->mode, (uint8_t)tn_get_i64(scales, at));
            scale *= factor;
        }
        at += scales->layout.stride[last];
        for (int64_t i = 0; i < format->group; i++) {
            uint32_t code = tn_groupwise_code(group, i, bits);
            out[i] = is_affine ? tn_groupwise_affine(code, scale, bias)
                               : tn_groupwise_float(format->mode, code) * scale;
        }
    }
}

// --- gradients --------------------------------------------------------------------------

// The sums of groups along the last axis of `matrix`.
static tn_array *sums_of_groups(const tn_build *build, tn_array *matrix, int64_t group)
{
    tn_ints shape = tn_extents(build, matrix);
    if (shape.count < 1 || shape.count >= TN_MAX_RANK)
        return NULL;
    shape.value[shape.count] = group;
    shape.value[shape.count - 1] /= group;
    shape.count++;
    matrix = build->op(build, "base.reshape/1", TN_IN(matrix),
                       tn_attrs("shape", (const tn_ints *)&shape));
    return build->op(build, "base.sum/1", TN_IN(matrix), tn_attrs("axis", TN_INTS(-1)));
}

// An array of the type of `like`, filled with `value`.
tn_array *groupwise_filled(const tn_build *build, tn_array *like, double value)
{
    const tn_type *type = build->type(like);
    tn_ints shape = tn_extents(build, like);
    return !type ? NULL
                 : build->op(build, "base.broadcast_to/1",
                             TN_IN(build->scalar(build, type->dtype, value)),
                             tn_attrs("shape", (const tn_ints *)&shape));
}

tn_status groupwise_gradients(const tn_build *build, const tn_rule *rule,
                              const struct groupwise *format, uint32_t first,
                              tn_array *matrix, const uint64_t *wanted,
                              tn_array **gradients)
{
    tn_array *scales = rule->inputs[first + 1];
    const tn_type *type = build->type(matrix);
    if (format->mode != TN_GROUPWISE_affine || !type)
        return TN_OK;
    if (groupwise_is_wanted(wanted, first + 2))
        gradients[first + 2] = sums_of_groups(build, matrix, format->group);
    if (!groupwise_is_wanted(wanted, first + 1))
        return TN_OK;
    tn_array *codes = build->op(
        build, "quant.groupwise_dequantize/1",
        TN_IN(rule->inputs[first], groupwise_filled(build, scales, 1),
              groupwise_filled(build, scales, 0)),
        tn_attrs("mode", format->mode, "bits", format->bits, "group", format->group,
                 "dtype", (int64_t)(type->dtype == TN_F64 ? TN_F64 : TN_F32)));
    gradients[first + 1] = sums_of_groups(
        build, build->expr(build, "m, c -> m * c", TN_IN(matrix, codes), TN_NO_ATTRS),
        format->group);
    return TN_OK;
}
