// SPDX-License-Identifier: MIT
// quant.cache_update and quant.cached_attention: caches of the keys and values of several
// sequences, [slots, groups, capacity, width], in floats or in blocks.
#include "pack.h"

static const tn_input_info update_inputs[] = {
    {"cache", "slots, key-value heads, capacity, width: floats, or u8 rows of blocks",
     TN_INPUT_CONSTANT, TN_FLOAT_DTYPES | TN_DTYPE_BIT(TN_U8)},
    {"rows", "sequences, key-value heads, count, width: what is written", TN_INPUT_CONSTANT,
     TN_FLOAT_DTYPES},
    {"positions", "integers, one a sequence: of its first row", TN_INPUT_CONSTANT,
     TN_INTEGER_DTYPES},
    {"slots", "integers, one a sequence: where it is in the cache", TN_INPUT_CONSTANT,
     TN_INTEGER_DTYPES},
};
static const tn_attr_field update_fields[] = {
    TN_STRING_FIELD(tn_quant_cache_update_attrs, format,
                    "name of the format of a cache of blocks"),
};
static const tn_in_place update_in_place[] = {{.update = 1 + 1}};

static const tn_input_info attention_inputs[] = {
    {"q", "sequences, heads, L, E", 0, TN_FLOAT_DTYPES},
    {"k", "slots, key-value heads, S, E: of q's dtype, or u8 rows of blocks", 0,
     TN_FLOAT_DTYPES | TN_DTYPE_BIT(TN_U8)},
    {"v", "slots, key-value heads, S, F: as k", 0, TN_FLOAT_DTYPES | TN_DTYPE_BIT(TN_U8)},
    {"lengths", "integers, one a sequence: keys there are", TN_INPUT_CONSTANT,
     TN_INTEGER_DTYPES},
    {"slots", "integers, one a sequence: where it is in k and v", TN_INPUT_CONSTANT,
     TN_INTEGER_DTYPES},
};
static const tn_attr_field attention_fields[] = {
    TN_F64_FIELD(tn_quant_cached_attention_attrs, scale, 0,
                 "of the scores; 0: 1 / sqrt(E)"),
    TN_BOOL_FIELD(tn_quant_cached_attention_attrs, is_causal, 0,
                  "keys up to a query's own position"),
    TN_I64_FIELD(tn_quant_cached_attention_attrs, window, 0,
                 "keys up to a query's position; 0: all"),
    TN_F64_FIELD(tn_quant_cached_attention_attrs, soft_cap, 0,
                 "bound of the scores; 0: none"),
    TN_STRING_FIELD(tn_quant_cached_attention_attrs, format,
                    "name of the format of k and v in blocks"),
};

// --- types ------------------------------------------------------------------------------

// The type of a cache in elements: its last axis counts elements, also where it has blocks.
static tn_status cache_elements(const tn_host *host, const char *name, const tn_type *cache,
                                const char *format_name, tn_type *out)
{
    char text[SHAPE_TEXT];
    struct format format;
    *out = *cache;
    if (cache->rank != 4)
        return host->fail(
            host, TN_ERR_ARGUMENT,
            "%s has shape %s, expected [slots, key-value heads, capacity, width]", name,
            shape_text(cache, text));
    if ((cache->dtype == TN_U8) != (format_name != NULL))
        return host->fail(host, TN_ERR_ARGUMENT, "%s is %s, expected %s", name,
                          tn_dtype_name(cache->dtype),
                          format_name ? "u8, as it has a format"
                                      : "floats, or a format of its blocks");
    if (!format_name)
        return TN_OK;
    tn_status status = find_format(host, format_name, &format);
    if (status == TN_OK && (format.packing || !format_encoder(format.plain)))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "format is \"%s\", expected one with a plain rule, as q8_0",
                          format_name);
    return status ? status
                  : check_weights(host, format_name, &format, cache, &out->extent[3]);
}

static tn_status quant_cache_check_numbers(const tn_host *host, const char *name,
                                           const tn_type *type, int64_t count)
{
    char text[SHAPE_TEXT];
    return type->rank == 1 && type->extent[0] == count
               ? TN_OK
               : host->fail(host, TN_ERR_ARGUMENT,
                            "%s has shape %s, expected [%" PRId64 "], one a sequence", name,
                            shape_text(type, text), count);
}

static tn_status update_infer(const tn_infer *infer, tn_type *types)
{
    const tn_quant_cache_update_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *rows = &infer->types[1];
    char got[SHAPE_TEXT], expected[SHAPE_TEXT];
    tn_type cache;
    tn_status status =
        cache_elements(host, "cache", &infer->types[0], attrs->format, &cache);
    if (status)
        return status;
    if (rows->rank != 4 || rows->extent[1] != cache.extent[1] ||
        rows->extent[3] != cache.extent[3])
        return host->fail(host, TN_ERR_ARGUMENT,
                          "rows has shape %s, which does not fit a cache of %s elements: "
                          "expected its heads and its width",
                          shape_text(rows, got), shape_text(&cache, expected));
    for (uint32_t i = 2; i < 4 && status == TN_OK; i++)
        status = quant_cache_check_numbers(host, update_inputs[i].name, &infer->types[i],
                                           rows->extent[0]);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

static tn_status attention_infer(const tn_infer *infer, tn_type *types)
{
    const tn_quant_cached_attention_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *q = &infer->types[0];
    char a[SHAPE_TEXT], b[SHAPE_TEXT], c[SHAPE_TEXT];
    tn_type k, v;
    tn_status status = cache_elements(host, "k", &infer->types[1], attrs->format, &k);
    if (status == TN_OK)
        status = cache_elements(host, "v", &infer->types[2], attrs->format, &v);
    if (status)
        return status;
    bool fits = q->rank == 4 && q->extent[3] == k.extent[3] && k.extent[0] > 0 &&
                k.extent[1] > 0 && q->extent[1] % k.extent[1] == 0;
    for (int i = 0; i < 3; i++)
        fits = fits && k.extent[i] == v.extent[i];
    if (!fits || k.dtype != v.dtype || (!attrs->format && k.dtype != q->dtype))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "q has shape %s (%s), k %s (%s) and v %s (%s) in elements, "
                          "expected [N, H, L, E], [slots, G, S, E] and [slots, G, S, F] of "
                          "a dtype, with H a multiple of G",
                          shape_text(q, a), tn_dtype_name(q->dtype), shape_text(&k, b),
                          tn_dtype_name(k.dtype), shape_text(&v, c),
                          tn_dtype_name(v.dtype));
    if (!isfinite(attrs->scale) || !(attrs->soft_cap >= 0) || attrs->window < 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "scale is %g, soft_cap %g and window %" PRId64
                          ", expected a finite scale, and the others at least 0",
                          attrs->scale, attrs->soft_cap, attrs->window);
    for (uint32_t i = 3; i < 5 && status == TN_OK; i++)
        status = quant_cache_check_numbers(host, attention_inputs[i].name, &infer->types[i],
                                           q->extent[0]);
    if (status)
        return status;
    types[0] = *q;
    types[0].extent[3] = v.extent[3];
    return TN_OK;
}

// --- the reference of cache_update -------------------------------------------------------

// Gives the elements of a row for one block of the cache; in `values` where they are not
// adjacent floats.
static const float *block_values(const tn_tensor *rows, int64_t from, int64_t count,
                                 float *values)
{
    int64_t step = rows->layout.stride[3];
    if (rows->layout.dtype == TN_F32 && step == 1)
        return (const float *)rows->data + from;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)tn_get_f64(rows, from + i * step);
    return values;
}

// Writes one row of `width` elements in the cache's format.
static void quant_cache_write_row(const tn_tensor *rows, const int64_t *from,
                                  encode_fn *encode, const struct format *format,
                                  const tn_tensor *out, const int64_t *to)
{
    int64_t in = tn_offset_at(&rows->layout, from), at = tn_offset_at(&out->layout, to);
    int64_t width = rows->layout.extent[3], step = rows->layout.stride[3];
    int64_t next = out->layout.stride[3];
    bool is_plain = rows->layout.dtype == TN_F32 && step == 1 && next == 1;
    float values[TN_QUANT_MAX_BLOCK];
    uint8_t block[TN_QUANT_MAX_BYTES], *bytes = out->data;
    const float *floats = (const float *)rows->data + in;
    if (!encode && is_plain && out->layout.dtype == TN_F32)
        memcpy((float *)out->data + at, floats, (size_t)width * sizeof(float));
    else if (!encode && is_plain && out->layout.dtype == TN_F16)
        for (int64_t i = 0; i < width; i++)
            ((uint16_t *)out->data)[at + i] = tn_f16_of_f32(floats[i]);
    else
        for (int64_t i = 0; i < width && !encode; i++)
            tn_set_f64(out, at + i * next, tn_get_f64(rows, in + i * step));
    for (int64_t i = 0; encode && i < width; i += format->plain->block) {
        encode(block_values(rows, in + i * step, format->plain->block, values), block);
        for (int64_t j = 0; j < format->plain->bytes; j++, at += next)
            bytes[at] = block[j];
    }
}

static int64_t quant_cache_number_at(const tn_tensor *list, int64_t i)
{
    return tn_get_i64(list, list->layout.offset + i * list->layout.stride[0]);
}

// Whether a later sequence writes to the slot of sequence n, too.
static bool is_replaced(const tn_tensor *slots, int64_t n)
{
    for (int64_t later = n + 1; later < slots->layout.extent[0]; later++)
        if (quant_cache_number_at(slots, later) == quant_cache_number_at(slots, n))
            return true;
    return false;
}

static tn_status update_reference(const tn_cpu_call *call)
{
    const tn_quant_cache_update_attrs *attrs = call->attrs;
    const tn_tensor *cache = &call->inputs[0], *rows = &call->inputs[1];
    const tn_tensor *positions = &call->inputs[2], *slots = &call->inputs[3];
    const tn_tensor *out = &call->outputs[0];
    const int64_t *extent = out->layout.extent;
    int64_t index[4] = {0};
    struct format format = {NULL};
    tn_status status =
        attrs->format ? find_format(call->host, attrs->format, &format) : TN_OK;
    if (status)
        return status;
    encode_fn *encode = attrs->format ? format_encoder(format.plain) : NULL;
    if (cache->data != out->data || cache->layout.offset != out->layout.offset)
        tn_copy_region(out, cache);
    if (tn_layout_count(&rows->layout) == 0)
        return TN_OK;
    do {
        int64_t slot = quant_cache_number_at(slots, index[0]),
                first = quant_cache_number_at(positions, index[0]);
        if (slot < 0 || slot >= extent[0] || first < -extent[2] || first >= extent[2] ||
            is_replaced(slots, index[0]))
            continue; // keeps the sum in range, too
        int64_t to[4] = {slot, index[1], first + index[2], 0};
        if (to[2] >= 0 && to[2] < extent[2])
            quant_cache_write_row(rows, index, encode, &format, out, to);
    } while (tn_index_next(3, rows->layout.extent, index));
    return TN_OK;
}

// --- decompositions ---------------------------------------------------------------------

static tn_array *quant_cache_shaped(const tn_build *build, tn_array *x, int64_t a,
                                    int64_t b, int64_t c, int64_t d)
{
    const tn_ints shape = {.count = 4, .given = 1, .value = {a, b, c, d}};
    return build->op(build, "base.reshape/1", TN_IN(x), tn_attrs("shape", &shape));
}

static tn_array *quant_cache_exchanged(const tn_build *build, tn_array *x)
{
    return build->op(build, "base.transpose/1", TN_IN(x),
                     tn_attrs("axes", TN_INTS(0, 2, 1, 3)));
}

// 0, 1, ... n - 1: i64, with `behind` axes of extent 1 behind it.
static tn_array *quant_cache_counted(const tn_build *build, int64_t n, int32_t behind)
{
    tn_array *x = build->op(build, "base.arange/1", NULL, 0,
                            tn_attrs("stop", (double)n, "dtype", (int64_t)TN_I64));
    const tn_ints shape = {
        .count = (uint32_t)behind + 1, .given = 1, .value = {n, 1, 1, 1}};
    return build->op(build, "base.reshape/1", TN_IN(x), tn_attrs("shape", &shape));
}

// Each position of the cache takes the row that is written to it, or stays.
static tn_status update_decompose(const tn_build *build, const tn_rule *rule,
                                  tn_array **outputs)
{
    const tn_quant_cache_update_attrs *attrs = rule->attrs;
    tn_array *cache = rule->inputs[0], *rows = rule->inputs[1];
    const tn_type *type = build->type(cache), *given = build->type(rows);
    if (!type || !given)
        return TN_ERR_ARGUMENT;
    const int64_t *e = type->extent;
    int64_t count = given->extent[2], sequences = given->extent[0];
    if (sequences * count * e[0] * e[1] * e[2] * e[3] == 0) {
        outputs[0] = build->expr(build, "x -> x", TN_IN(cache), TN_NO_ATTRS);
        return built(outputs[0]);
    }
    rows = attrs->format ? build->op(build, "quant.quantize/1", TN_IN(rows),
                                     tn_attrs("format", attrs->format))
                         : cast(build, rows, type->dtype);
    // The number, from 1, of the sequence that is written to each slot, the last of
    // several.
    tn_array *hits =
        build->expr(build, "p, n, s -> select(i64(s) == p, n + 1, 0)",
                    TN_IN(quant_cache_counted(build, e[0], 1),
                          quant_cache_counted(build, sequences, 0), rule->inputs[3]),
                    TN_NO_ATTRS);
    tn_array *owner = build->op(build, "base.max/1", TN_IN(hits),
                                tn_attrs("axis", TN_INTS(1), "keepdims", (int64_t)1));
    tn_array *number = build->expr(build, "o -> max(o - 1, 0)", TN_IN(owner), TN_NO_ATTRS);
    tn_array *first = build->op(build, "base.take/1", TN_IN(rule->inputs[2], number),
                                tn_attrs("axis", (int64_t)0));
    tn_array *row =
        build->expr(build, "c, f -> c - i64(f)",
                    TN_IN(quant_cache_counted(build, e[2], 0), first), TN_NO_ATTRS);
    tn_array *inside =
        build->expr(build, "o, r, f -> o > 0 & r >= 0 & r < i64(l) & i64(f) > -i64(c)",
                    TN_IN(owner, row, first), tn_attrs("l", count, "c", e[2] + 1));
    tn_array *index = build->expr(build, "n, r -> n * i64(l) + min(max(r, 0), i64(l) - 1)",
                                  TN_IN(number, row), tn_attrs("l", count));
    const tn_ints flat = {
        .count = 2, .given = 1, .value = {sequences * count, e[1] * e[3]}};
    rows = build->op(build, "base.reshape/1", TN_IN(quant_cache_exchanged(build, rows)),
                     tn_attrs("shape", &flat));
    rows =
        build->op(build, "base.take/1", TN_IN(rows, index), tn_attrs("axis", (int64_t)0));
    rows = quant_cache_exchanged(build,
                                 quant_cache_shaped(build, rows, e[0], e[2], e[1], e[3]));
    outputs[0] =
        build->expr(build, "i, r, c -> select(i, r, c)",
                    TN_IN(quant_cache_shaped(build, inside, e[0], 1, e[2], 1), rows, cache),
                    TN_NO_ATTRS);
    return built(outputs[0]);
}

// Attention over the caches of these sequences alone, converted to floats.
static tn_status attention_decompose(const tn_build *build, const tn_rule *rule,
                                     tn_array **outputs)
{
    const tn_quant_cached_attention_attrs *attrs = rule->attrs;
    const tn_type *q = build->type(rule->inputs[0]), *k = build->type(rule->inputs[1]);
    tn_array *own[2];
    if (!q || !k)
        return TN_ERR_ARGUMENT;
    tn_array *slot =
        build->expr(build, "s -> min(max(i64(s), 0), i64(last))", TN_IN(rule->inputs[4]),
                    tn_attrs("last", k->extent[0] - 1));
    for (int i = 0; i < 2; i++) {
        own[i] = build->op(build, "base.take/1", TN_IN(rule->inputs[1 + i], slot),
                           tn_attrs("axis", (int64_t)0));
        if (attrs->format)
            own[i] =
                build->op(build, "quant.dequantize/1", TN_IN(own[i]),
                          tn_attrs("format", attrs->format, "dtype", (int64_t)q->dtype));
    }
    outputs[0] = build->op(build, "nn.scaled_dot_product_attention/1",
                           TN_IN(rule->inputs[0], own[0], own[1], NULL, rule->inputs[3]),
                           tn_attrs("scale", attrs->scale, "is_causal", attrs->is_causal,
                                    "window", attrs->window, "soft_cap", attrs->soft_cap));
    return built(outputs[0]);
}

const tn_primitive quant_cache_update = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.cache_update/1",
    .doc = "Writes rows of several sequences into their slots of a cache, each from a "
           "position of its own on.",
    TN_INPUTS(update_inputs),
    .attrs = TN_ATTR_TABLE(tn_quant_cache_update_attrs, update_fields),
    .in_place = update_in_place,
    .num_in_place = 1,
    .in_place_size = sizeof(tn_in_place),
    .infer = update_infer,
    .reference = update_reference,
    .decompose = update_decompose,
};

const tn_primitive quant_cached_attention = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.cached_attention/1",
    .doc =
        "Attention of several sequences, each over its own slot of the caches of keys and "
        "values, which may be in blocks.",
    TN_INPUTS(attention_inputs),
    .attrs = TN_ATTR_TABLE(tn_quant_cached_attention_attrs, attention_fields),
    .infer = attention_infer,
    .decompose = attention_decompose,
};

// The decomposition writes all of the cache; the reference writes the rows alone, in place.
static const tn_cpu_kernel update_payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = update_reference,
};
const tn_kernel quant_cache_update_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "quant.cache_update/1",
    .family = TN_FAMILY_CPU,
    .name = "rows",
    .priority = 50,
    .payload = &update_payload,
};
