// SPDX-License-Identifier: MIT
// The header of a file. It does not store its length, so it is walked twice: first to load
// it and to measure its values, then to extract them.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/checked.h>
#include "gguf.h"

#define FIRST_LOAD UINT64_C(65536)
#define MOST_HEADER (UINT64_C(1) << 32) // bytes

// For each type of values in the file: its size there, and its kind in memory. A text's
// length stands in front of it.
static const struct {
    uint8_t size;
    uint8_t memory;
    uint8_t kind;
} values[NUM_GGUF_VALUES] = {
    [GGUF_U8] = {1, 8, TN_METADATA_INTEGER},
    [GGUF_I8] = {1, 8, TN_METADATA_INTEGER},
    [GGUF_U16] = {2, 8, TN_METADATA_INTEGER},
    [GGUF_I16] = {2, 8, TN_METADATA_INTEGER},
    [GGUF_U32] = {4, 8, TN_METADATA_INTEGER},
    [GGUF_I32] = {4, 8, TN_METADATA_INTEGER},
    [GGUF_U64] = {8, 8, TN_METADATA_INTEGER},
    [GGUF_I64] = {8, 8, TN_METADATA_INTEGER},
    [GGUF_F32] = {4, 8, TN_METADATA_FLOAT},
    [GGUF_F64] = {8, 8, TN_METADATA_FLOAT},
    [GGUF_BOOL] = {1, 1, TN_METADATA_BOOL},
    [GGUF_TEXT] = {8, sizeof(tn_text), TN_METADATA_TEXT},
};

// Whether this walk extracts values; else it counts them.
static bool gguf_header_fills(const struct gguf_part *p)
{
    return p->metadata != NULL;
}

// --- bytes ------------------------------------------------------------------------------

// Loads at least `size` bytes from p->at on.
static tn_status part_load(struct gguf_part *p, uint64_t size, const char *what)
{
    const tn_host *host = p->host;
    uint64_t most = p->source->size;
    if (size > most - p->at) // p->at never passes the end
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: truncated: %s of %" PRIu64 " bytes at byte %" PRIu64
                          " of %" PRIu64,
                          p->source->name, what, size, p->at, most);
    if (p->at + size <= p->loaded)
        return TN_OK;
    if (p->at + size > MOST_HEADER)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: a header of over %" PRIu64 " bytes is not supported",
                          p->source->name, MOST_HEADER);
    uint64_t room = p->loaded * 2 > FIRST_LOAD ? p->loaded * 2 : FIRST_LOAD;
    room = room < p->at + size ? p->at + size : room;
    room = room < most ? room : most;
    unsigned char *more = host->alloc(host, room, 0);
    if (!more)
        return TN_ERR_MEMORY;
    if (p->loaded)
        memcpy(more, p->data, p->loaded);
    host->free(host, p->data);
    p->data = more;
    tn_status status =
        p->source->read(p->source, p->loaded, p->data + p->loaded, room - p->loaded);
    p->loaded = room;
    return status;
}

static uint64_t part_number(const unsigned char *from, uint64_t size)
{
    uint64_t number = 0;
    for (uint64_t i = 0; i < size; i++)
        number |= (uint64_t)from[i] << 8 * i;
    return number;
}

static tn_status take_u32(struct gguf_part *p, const char *what, uint32_t *out)
{
    tn_status status = part_load(p, 4, what);
    if (status == TN_OK) {
        *out = (uint32_t)part_number(p->data + p->at, 4);
        p->at += 4;
    }
    return status;
}

static tn_status take_u64(struct gguf_part *p, const char *what, uint64_t *out)
{
    tn_status status = part_load(p, 8, what);
    if (status == TN_OK) {
        *out = part_number(p->data + p->at, 8);
        p->at += 8;
    }
    return status;
}

// The text is valid until the next bytes are loaded. In the second walk it is valid until
// the end, with a zero byte behind it: for that it moves over the last byte of its length.
static tn_status part_take_text(struct gguf_part *p, const char *what, tn_text *out)
{
    tn_status status = take_u64(p, what, &out->size);
    if (status == TN_OK)
        status = part_load(p, out->size, what);
    if (status != TN_OK)
        return status;
    unsigned char *text = p->data + p->at;
    if (gguf_header_fills(p)) {
        memmove(text - 1, text, out->size);
        text--;
        text[out->size] = 0;
    }
    out->data = (const char *)text;
    p->at += out->size;
    return TN_OK;
}

// --- metadata ---------------------------------------------------------------------------

static int64_t integer_at(const unsigned char *from, uint32_t type)
{
    uint64_t bits = part_number(from, values[type].size);
    switch (type) {
    case GGUF_I8:
        return (int8_t)(uint8_t)bits;
    case GGUF_I16:
        return (int16_t)(uint16_t)bits;
    case GGUF_I32:
        return (int32_t)(uint32_t)bits;
    default:
        return (int64_t)bits; // a larger number is TN_METADATA_UNSIGNED, with these bits
    }
}

static double part_float(const unsigned char *from, uint32_t type)
{
    uint64_t bits = part_number(from, values[type].size);
    uint32_t low = (uint32_t)bits;
    float single;
    double number;
    memcpy(&single, &low, sizeof(single));
    memcpy(&number, &bits, sizeof(number));
    return type == GGUF_F32 ? (double)single : number;
}

// Fills numbers and truth values from bytes that have been loaded.
static tn_status fill_numbers(const struct gguf_part *p, uint32_t type, tn_metadata *pair,
                              void *to)
{
    const unsigned char *from = p->data + p->at;
    int64_t *integers = to;
    double *floats = to;
    uint8_t *bools = to;
    for (uint64_t i = 0; i < pair->count; i++, from += values[type].size) {
        if (pair->kind == TN_METADATA_FLOAT) {
            floats[i] = part_float(from, type);
        } else if (pair->kind != TN_METADATA_BOOL) {
            integers[i] = integer_at(from, type);
            if (type == GGUF_U64 && integers[i] < 0)
                pair->kind = TN_METADATA_UNSIGNED;
        } else if (*from > 1) {
            return p->host->fail(p->host, TN_ERR_REFUSED,
                                 "%s: metadata '%s': a truth value is %u, expected 0 or 1",
                                 p->source->name, pair->key, *from);
        } else {
            bools[i] = *from;
        }
    }
    return TN_OK;
}

static tn_status walk_values(struct gguf_part *p, uint32_t type, tn_metadata *pair,
                             void *to)
{
    tn_status status = TN_OK;
    tn_text text;
    if (type == GGUF_TEXT) {
        for (uint64_t i = 0; i < pair->count && status == TN_OK; i++)
            status = part_take_text(p, "a text",
                                    gguf_header_fills(p) ? (tn_text *)to + i : &text);
        return status;
    }
    uint64_t size = pair->count * values[type].size;
    status = part_load(p, size, "values of metadata");
    if (status == TN_OK && gguf_header_fills(p))
        status = fill_numbers(p, type, pair, to);
    if (status == TN_OK)
        p->at += size;
    return status;
}

static tn_status take_value_type(struct gguf_part *p, const tn_text *key, uint32_t *type,
                                 tn_metadata *pair)
{
    const tn_host *host = p->host;
    int size = key->size < 100 ? (int)key->size : 100; // not zero-terminated yet
    tn_status status = take_u32(p, "a type", type);
    if (status == TN_OK && *type == GGUF_LIST) {
        pair->flags = TN_METADATA_LIST;
        status = take_u32(p, "a type", type);
        if (status == TN_OK)
            status = take_u64(p, "a count", &pair->count);
        if (status == TN_OK && *type == GGUF_LIST)
            return host->fail(host, TN_ERR_REFUSED,
                              "%s: metadata '%.*s': lists of lists are not supported",
                              p->source->name, size, key->data);
    }
    if (status != TN_OK)
        return status;
    if (*type >= NUM_GGUF_VALUES)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: metadata '%.*s': type %" PRIu32 ", expected 0 to %d",
                          p->source->name, size, key->data, *type, NUM_GGUF_VALUES - 1);
    uint64_t rest = p->source->size - p->at;
    if (pair->count > rest / values[*type].size)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: metadata '%.*s': %" PRIu64 " values, the file has %" PRIu64
                          " bytes from there on",
                          p->source->name, size, key->data, pair->count, rest);
    return TN_OK;
}

static tn_status walk_pair(struct gguf_part *p, uint64_t index)
{
    tn_text key;
    uint32_t type;
    tn_metadata pair = {.count = 1};
    tn_status status = part_take_text(p, "a key of metadata", &key);
    if (status == TN_OK && (key.size == 0 || !gguf_is_text(&key)))
        return p->host->fail(p->host, TN_ERR_REFUSED,
                             "%s: the key of metadata %" PRIu64 " is empty, or no UTF-8",
                             p->source->name, index);
    if (status == TN_OK)
        status = take_value_type(p, &key, &type, &pair);
    if (status != TN_OK)
        return status;
    pair.key = key.data;
    pair.kind = values[type].kind;
    char *to = gguf_header_fills(p) ? p->values + p->num_bytes : NULL;
    pair.data = to;
    p->num_bytes += (pair.count * values[type].memory + 7) & ~UINT64_C(7);
    status = walk_values(p, type, &pair, to);
    if (status == TN_OK && gguf_header_fills(p))
        p->metadata[index] = pair;
    return status;
}

// --- tensors ----------------------------------------------------------------------------

static tn_status part_take_shape(struct gguf_part *p, const tn_text *name, tn_type *shape)
{
    uint32_t rank;
    const tn_host *host = p->host;
    int size = name->size < 100 ? (int)name->size : 100;
    tn_status status = take_u32(p, "a rank", &rank);
    if (status == TN_OK && rank > GGUF_MAX_RANK)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%.*s': %" PRIu32 " axes, expected at most %d",
                          p->source->name, size, name->data, rank, GGUF_MAX_RANK);
    for (uint32_t left = rank; left > 0 && status == TN_OK; left--) { // innermost first
        uint64_t extent;
        status = take_u64(p, "an extent", &extent);
        if (status == TN_OK && extent > INT64_MAX)
            return host->fail(host, TN_ERR_REFUSED,
                              "%s: '%.*s': extent %" PRIu64 " is over 2^63 - 1",
                              p->source->name, size, name->data, extent);
        if (status == TN_OK)
            shape->extent[left - 1] = (int64_t)extent;
    }
    if (status == TN_OK)
        shape->rank = (int32_t)rank;
    return status;
}

// Makes an array from its record; its offset still counts from the first element.
static tn_status fill_array(const struct gguf_part *p, tn_format_array *array,
                            uint32_t number)
{
    struct gguf_type type;
    const char *name;
    const tn_host *host = p->host;
    tn_type *shape = &array->type;
    if (!gguf_type_of_number(number, &type, &name))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s': elements of type %" PRIu32 " (%s) cannot be read",
                          p->source->name, array->name, number, name ? name : "unknown");
    shape->dtype = type.dtype;
    if (type.block_format) {
        int32_t last = shape->rank - 1;
        int64_t columns = last < 0 ? 1 : shape->extent[last];
        if (columns % type.elements != 0)
            return host->fail(host, TN_ERR_REFUSED,
                              "%s: '%s': rows of %" PRId64
                              " elements, expected blocks of %" PRId64 " (%s)",
                              p->source->name, array->name, columns, type.elements,
                              type.block_format);
        array->block_format = type.block_format;
        array->columns = columns;
        if (!tn_checked_multiply_extents(columns / type.elements, type.bytes,
                                         &shape->extent[last]))
            return host->fail(host, TN_ERR_REFUSED,
                              "%s: '%s': the bytes of its rows overflow 63 bits",
                              p->source->name, array->name);
    }
    array->flags = TN_FORMAT_IN_PLACE;
    if (!tn_format_bytes(shape, &array->size))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s': the bytes of its shape overflow 63 bits",
                          p->source->name, array->name);
    return TN_OK;
}

static tn_status walk_tensor(struct gguf_part *p, uint64_t index)
{
    tn_text name;
    uint32_t type;
    tn_format_array array = {0};
    tn_status status = part_take_text(p, "a name", &name);
    if (status == TN_OK && !gguf_is_text(&name))
        return p->host->fail(p->host, TN_ERR_REFUSED,
                             "%s: the name of tensor %" PRIu64 " is no UTF-8",
                             p->source->name, index);
    if (status == TN_OK)
        status = part_take_shape(p, &name, &array.type);
    if (status == TN_OK)
        status = take_u32(p, "a type", &type);
    if (status == TN_OK)
        status = take_u64(p, "an offset", &array.offset);
    if (status != TN_OK || !gguf_header_fills(p))
        return status;
    array.name = name.data;
    array.file = p->source->number;
    status = fill_array(p, &array, type);
    p->arrays[index] = array;
    return status;
}

// Turns offsets into those from the file's beginning; checks that the elements lie in it.
static tn_status arrays_assign_offsets(struct gguf_part *p)
{
    const tn_host *host = p->host;
    const tn_metadata_list metadata = gguf_part_metadata(p);
    uint64_t alignment, begin, end;
    tn_status status = gguf_alignment(host, p->source->name, &metadata, &alignment);
    if (status != TN_OK)
        return status;
    begin = (p->at + alignment - 1) & ~(alignment - 1);
    for (uint64_t i = 0; i < p->num_arrays; i++) {
        tn_format_array *array = &p->arrays[i];
        if (array->offset % alignment != 0)
            return host->fail(host, TN_ERR_REFUSED,
                              "%s: '%s': offset %" PRIu64 " is no multiple of %" PRIu64,
                              p->source->name, array->name, array->offset, alignment);
        if (!tn_checked_add(begin, array->offset, &array->offset) ||
            !tn_checked_add(array->offset, array->size, &end) || end > p->source->size)
            return host->fail(host, TN_ERR_REFUSED,
                              "%s: '%s': %" PRIu64 " bytes from byte %" PRIu64
                              " on, the file has %" PRIu64,
                              p->source->name, array->name, array->size, array->offset,
                              p->source->size);
    }
    return TN_OK;
}

// --- the file ---------------------------------------------------------------------------

static tn_status take_version(struct gguf_part *p)
{
    uint32_t magic, version;
    const tn_host *host = p->host;
    tn_status status = take_u32(p, "the beginning", &magic);
    if (status == TN_OK && magic != 0x46554747)
        return host->fail(host, TN_ERR_REFUSED, "%s: not a GGUF file: it begins otherwise",
                          p->source->name);
    if (status == TN_OK)
        status = take_u32(p, "the version", &version);
    if (status == TN_OK && version != 2 && version != 3)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: GGUF of version %" PRIu32 "%s, expected 2 or 3",
                          p->source->name, version,
                          version && version % 65536 == 0 ? " (big-endian)" : "");
    return status;
}

static tn_status take_counts(struct gguf_part *p)
{
    // The least bytes of records: of a tensor an empty name, a rank, a type and an offset;
    // of a pair a key of one byte, a type and a value of one byte.
    const uint64_t tensor = 24, pair = 14;
    tn_status status = take_u64(p, "a count", &p->num_arrays);
    if (status == TN_OK)
        status = take_u64(p, "a count", &p->num_metadata);
    if (status != TN_OK)
        return status;
    uint64_t rest = p->source->size - p->at;
    if (p->num_metadata > rest / pair ||
        p->num_arrays > (rest - p->num_metadata * pair) / tensor)
        return p->host->fail(p->host, TN_ERR_REFUSED,
                             "%s: %" PRIu64 " tensors and %" PRIu64
                             " pairs of metadata, in a file of %" PRIu64 " bytes",
                             p->source->name, p->num_arrays, p->num_metadata,
                             p->source->size);
    return TN_OK;
}

static tn_status gguf_header_walk(struct gguf_part *p)
{
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < p->num_metadata && status == TN_OK; i++)
        status = walk_pair(p, i);
    for (uint64_t i = 0; i < p->num_arrays && status == TN_OK; i++)
        status = walk_tensor(p, i);
    return status;
}

tn_status gguf_part_read(struct gguf_part *p)
{
    const tn_host *host = p->host;
    tn_status status = take_version(p);
    if (status == TN_OK)
        status = take_counts(p);
    uint64_t begin = p->at;
    if (status == TN_OK)
        status = gguf_header_walk(p);
    if (status != TN_OK)
        return status;
    p->arrays = host->alloc(host, (p->num_arrays + 1) * sizeof(*p->arrays), 0);
    p->values = p->arrays ? host->alloc(host, p->num_bytes + 8, 0) : NULL;
    p->metadata = p->values
                      ? host->alloc(host, (p->num_metadata + 1) * sizeof(*p->metadata), 0)
                      : NULL;
    if (!p->metadata)
        return TN_ERR_MEMORY;
    p->num_bytes = 0;
    p->at = begin;
    status = gguf_header_walk(p);
    return status == TN_OK ? arrays_assign_offsets(p) : status;
}

void gguf_part_finish(struct gguf_part *p)
{
    p->host->free(p->host, p->data);
    p->host->free(p->host, p->arrays);
    p->host->free(p->host, p->values);
    p->host->free(p->host, p->metadata);
}

tn_metadata_list gguf_part_metadata(const struct gguf_part *p)
{
    return (tn_metadata_list){.struct_size = sizeof(tn_metadata_list),
                              .entry_size = sizeof(*p->metadata),
                              .entries = p->metadata,
                              .count = p->num_metadata,
                              .name = p->source->name};
}
