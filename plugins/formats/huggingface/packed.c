// SPDX-License-Identifier: MIT
// Quantised weights as MLX has them: NAME.weight of u32, whose bits are fractions of a few
// bits, packed along a row; NAME.scales and NAME.biases, with one value for each group of
// elements. An element is scale * fraction + bias.
//
// Fractions of up to 4 bits are listed as blocks of q4_1, of 5 bits as q5_1, with the
// group's scale and bias in each of its blocks: the same numbers, as far as scales fit an
// f16 (all do from 2^-14 on; of bf16 scales those from 2^-17 on). Other weights are listed
// as f32. Four bits without biases are mxfp4, whose scales are exponents.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/quant.h>
#include <tenon/checked.h>
#include "huggingface.h"

#define BLOCK 32

// --- arrays by name ---------------------------------------------------------------------

struct hf_entry {
    const tn_format_array *stored;
    const tn_format_source *source;
};

static int packed_by_name(const void *a, const void *b)
{
    const struct hf_entry *x = a, *y = b;
    return strcmp(x->stored->name, y->stored->name);
}

tn_status hf_sort_entries(struct hf *hf)
{
    for (const struct hf_shard *s = hf->shards; s; s = s->next)
        hf->num_entries += s->header.num_arrays;
    hf->entries = hf_alloc(hf, (hf->num_entries + 1) * sizeof(*hf->entries));
    if (!hf->entries)
        return TN_ERR_MEMORY;
    uint64_t at = 0;
    for (const struct hf_shard *s = hf->shards; s; s = s->next)
        for (size_t i = 0; i < s->header.num_arrays; i++)
            hf->entries[at++] = (struct hf_entry){&s->header.arrays[i], s->header.source};
    qsort(hf->entries, at, sizeof(*hf->entries), packed_by_name);
    return TN_OK;
}

// The array whose name is `name` with its last part, `own`, replaced by `part`; NULL: there
// is none, or the last part is another.
static const struct hf_entry *hf_packed_find_part(const struct hf *hf, const char *name,
                                                  const char *own, const char *part)
{
    char other[512];
    const char *point = strrchr(name, '.');
    if (!point || strcmp(point + 1, own) != 0)
        return NULL;
    int size = snprintf(other, sizeof(other), "%.*s.%s", (int)(point - name), name, part);
    const tn_format_array wanted = {.name = other};
    const struct hf_entry key = {&wanted, NULL};
    return size < 0 || (size_t)size >= sizeof(other)
               ? NULL
               : bsearch(&key, hf->entries, hf->num_entries, sizeof(key), packed_by_name);
}

static bool is_packed(const struct hf_entry *entry)
{
    return entry && entry->stored->type.dtype == TN_U32;
}

bool hf_is_part(const struct hf *hf, const char *name)
{
    return is_packed(hf_packed_find_part(hf, name, "scales", "weight")) ||
           is_packed(hf_packed_find_part(hf, name, "biases", "weight"));
}

// --- the list ----------------------------------------------------------------------------

static tn_status hf_packed_wrong(const struct hf *hf, const struct hf_array *array,
                                 const char *what)
{
    return hf->host->fail(hf->host, TN_ERR_REFUSED,
                          "%s: '%s' is quantised, and %s (config.json, \"quantization\")",
                          array->source->name, array->stored->name, what);
}

// A quantisation number of the array's layer in config.json, or the number for all layers.
static int64_t hf_packed_number(const struct hf *hf, const char *name, const char *member)
{
    char layer[512];
    const char *point = strrchr(name, '.');
    const json_t *all = json_object_get(hf->config, "quantization");
    if (!json_is_object(all))
        all = json_object_get(hf->config, "quantization_config");
    snprintf(layer, sizeof(layer), "%.*s", (int)(point - name), name);
    const json_t *own = json_object_get(json_object_get(all, layer), member);
    return json_integer_value(own ? own : json_object_get(all, member));
}

static bool packed_is_float(tn_dtype dtype)
{
    return dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16;
}

// The block format that holds the fractions, or NULL.
static const tn_quant_format *format_for(const struct hf_packed *p)
{
    bool has_halves = p->scales->type.dtype != TN_F32;
    if (!p->biases)
        return tn_quant_find("mxfp4");
    if (p->group % BLOCK || !has_halves || p->bits > 5)
        return NULL;
    return tn_quant_find(p->bits == 5 ? "q5_1" : "q4_1");
}

static tn_status packed_check_parts(const struct hf *hf, const struct hf_array *array,
                                    const struct hf_packed *p)
{
    const tn_type *words = &array->stored->type, *scales = &p->scales->type;
    int64_t columns;
    if (p->group < 1 || p->group > 65536 || p->bits < 2 || p->bits > 8 || p->bits == 7)
        return hf_packed_wrong(hf, array,
                               "expected a group_size from 1 on, and 2 to 6 or 8 bits");
    bool fits = words->rank == 2 && scales->rank == 2 &&
                scales->extent[0] == words->extent[0] &&
                tn_checked_multiply_extents(scales->extent[1], p->group, &columns) &&
                columns < INT64_MAX / 64 && columns * p->bits == words->extent[1] * 32 &&
                columns % BLOCK == 0;
    if (p->biases)
        fits = fits && packed_is_float(scales->dtype) &&
               p->biases->type.dtype == scales->dtype && p->biases->type.rank == 2 &&
               p->biases->type.extent[0] == scales->extent[0] &&
               p->biases->type.extent[1] == scales->extent[1];
    else
        fits = fits && scales->dtype == TN_U8 && p->bits == 4 && p->group == BLOCK;
    return fits ? TN_OK
                : hf_packed_wrong(
                      hf, array,
                      "its scales and biases do not fit it, with this group_size and "
                      "these bits");
}

tn_status hf_list_packed(struct hf *hf, struct hf_array *array)
{
    const tn_format_array *stored = array->stored;
    const struct hf_entry *scales =
        hf_packed_find_part(hf, stored->name, "weight", "scales");
    const struct hf_entry *biases =
        hf_packed_find_part(hf, stored->name, "weight", "biases");
    if (stored->type.dtype != TN_U32 || !scales)
        return TN_OK;
    struct hf_packed *p = hf_alloc(hf, sizeof(*p));
    if (!p)
        return TN_ERR_MEMORY;
    *p = (struct hf_packed){.scales = scales->stored,
                            .scales_source = scales->source,
                            .biases = biases ? biases->stored : NULL,
                            .biases_source = biases ? biases->source : NULL,
                            .group = hf_packed_number(hf, stored->name, "group_size"),
                            .bits = hf_packed_number(hf, stored->name, "bits")};
    tn_status status = packed_check_parts(hf, array, p);
    if (status != TN_OK)
        return status;
    p->columns = p->scales->type.extent[1] * p->group;
    p->format = format_for(p);
    array->packed = p;
    array->array.flags = 0;
    array->array.type.dtype = p->format ? TN_U8 : TN_F32;
    array->array.type.extent[1] =
        p->format ? p->columns / BLOCK * p->format->bytes : p->columns;
    if (p->format) {
        array->array.block_format = p->format->name;
        array->array.columns = p->columns;
    }
    uint64_t bytes; // of the listed array; array->size stays the file's
    return tn_format_bytes(&array->array.type, &bytes)
               ? TN_OK
               : hf_packed_wrong(hf, array, "its bytes overflow 63 bits");
}

// --- elements ---------------------------------------------------------------------------

// Fraction i of a row.
static int32_t fraction_at(const uint8_t *row, int64_t bits, int64_t i)
{
    int64_t at = i * bits;
    uint32_t two = row[at / 8];
    if (at % 8 + bits > 8)
        two |= (uint32_t)row[at / 8 + 1] << 8;
    return (int32_t)(two >> at % 8 & ((1u << bits) - 1));
}

static float packed_float(const tn_format_array *array, const uint8_t *data, int64_t i)
{
    uint32_t word = 0;
    uint64_t size = (uint64_t)tn_dtype_bytes(array->type.dtype);
    for (uint64_t k = 0; k < size; k++)
        word |= (uint32_t)data[(uint64_t)i * size + k] << 8 * k;
    float value;
    memcpy(&value, &word, sizeof(value));
    return array->type.dtype == TN_F32    ? value
           : array->type.dtype == TN_BF16 ? tn_f32_of_bf16((uint16_t)word)
                                          : tn_f32_of_f16((uint16_t)word);
}

static void put_half(uint8_t *to, float value)
{
    uint16_t bits = tn_f16_of_f32(value);
    to[0] = (uint8_t)(bits & 255);
    to[1] = (uint8_t)(bits >> 8);
}

// Writes a row of a block: the head, the fifth bits of q5_1, and 16 bytes of four bits.
static void put_block(const struct hf_packed *p, const uint8_t *row, int64_t first,
                      uint8_t *to, int64_t head)
{
    uint32_t high = 0;
    uint8_t *bytes = to + p->format->bytes - 16;
    memset(bytes, 0, 16);
    for (int32_t i = 0; i < BLOCK; i++) {
        int32_t q = fraction_at(row, p->bits, first + i);
        bytes[i % 16] = (uint8_t)(bytes[i % 16] | (q & 15) << i / 16 * 4);
        high |= (uint32_t)(q >> 4) << i;
    }
    for (int64_t i = head; i < p->format->bytes - 16; i++)
        to[i] = (uint8_t)(high >> 8 * (i - head));
}

// Bytes of an array's weight, scales and biases, as the files have them.
struct packed_parts {
    uint8_t *words, *scales, *biases;
};

static void unpack_row(const struct hf_packed *p, const struct packed_parts *parts,
                       int64_t row, const uint8_t *words, void *out)
{
    int64_t groups = p->scales->type.extent[1];
    for (int64_t first = 0; first < p->columns; first += BLOCK) {
        int64_t at = row * groups + first / p->group;
        if (p->format) {
            uint8_t *to = (uint8_t *)out + first / BLOCK * p->format->bytes;
            if (p->biases) {
                put_half(to, packed_float(p->scales, parts->scales, at));
                put_half(to + 2, packed_float(p->biases, parts->biases, at));
            } else {
                to[0] = parts->scales[at];
            }
            put_block(p, words, first, to, p->biases ? 4 : 1);
            continue;
        }
        for (int64_t i = first; i < first + BLOCK; i++) {
            at = row * groups + i / p->group;
            ((float *)out)[i] = packed_float(p->scales, parts->scales, at) *
                                    (float)fraction_at(words, p->bits, i) +
                                packed_float(p->biases, parts->biases, at);
        }
    }
}

// Loads the bytes of an array into *out, memory of host->alloc.
static tn_status packed_load(const tn_host *host, const tn_format_source *source,
                             const tn_format_array *array, uint8_t **out)
{
    *out = host->alloc(host, array->size + 1, 0);
    return *out ? source->read(source, array->offset, *out, array->size) : TN_ERR_MEMORY;
}

tn_status hf_read_packed(const tn_host *host, const struct hf_array *array, void *data)
{
    struct packed_parts parts = {NULL, NULL, NULL};
    const struct hf_packed *p = array->packed;
    const tn_type *type = &array->array.type;
    int64_t rows = p->columns > 0 ? type->extent[0] : 0,
            words = array->stored->type.extent[1] * 4;
    int64_t bytes = type->extent[1] * (int64_t)tn_dtype_bytes(type->dtype);
    tn_status status = packed_load(host, array->source, array->stored, &parts.words);
    if (status == TN_OK)
        status = packed_load(host, p->scales_source, p->scales, &parts.scales);
    if (status == TN_OK && p->biases)
        status = packed_load(host, p->biases_source, p->biases, &parts.biases);
    for (int64_t row = 0; row < rows && status == TN_OK; row++)
        unpack_row(p, &parts, row, parts.words + row * words,
                   (uint8_t *)data + row * bytes);
    host->free(host, parts.words);
    host->free(host, parts.scales);
    host->free(host, parts.biases);
    return status;
}
