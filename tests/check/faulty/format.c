// SPDX-License-Identifier: MIT
// A format of files, with one fault each; see ops.c. A file is "ACME", the numbers of
// arrays, texts and metadata, a record of each, and the elements.
#include <string.h>
#include <tenon/format.h>
#include <tenon/ops/quant.h>
#include <tenon/plugin.h>

#define NAME_SIZE 32

struct head {
    char magic[4];
    uint32_t num_arrays, num_texts, num_metadata;
};
struct array_record {
    char name[NAME_SIZE], block_format[NAME_SIZE]; // "": elements of `type`
    tn_type type;
};
struct text_record {
    char key[NAME_SIZE], value[NAME_SIZE];
};
// Single integers and texts: other metadata are refused.
struct pair_record {
    char key[NAME_SIZE], text[NAME_SIZE];
    int64_t integer;
    tn_text value; // in memory: the text
    uint32_t kind, reserved;
};
// What `list` allocates: the arrays, texts and records follow.
struct file {
    tn_format_content content;
    struct array_record *arrays;
    struct text_record *texts;
    struct pair_record *pairs;
};

static tn_status refuse(const tn_host *host, const tn_format_source *source,
                        const char *why)
{
#ifdef FAULT_FORMAT_DAMAGE_WORDS
    (void)source;
    return host->fail(host, TN_ERR_REFUSED, "the file %s", why);
#else
    return host->fail(host, TN_ERR_REFUSED, "%s: the file %s", source->name, why);
#endif
}

static uint64_t records_size(const struct head *head)
{
    return head->num_arrays * (uint64_t)sizeof(struct array_record) +
           head->num_texts * (uint64_t)sizeof(struct text_record) +
           head->num_metadata * (uint64_t)sizeof(struct pair_record);
}

static tn_status read_head(const tn_host *host, const tn_format_source *source,
                           struct head *head)
{
    if (source->size < sizeof(*head))
        return refuse(host, source, "is too short");
    tn_status status = source->read(source, 0, head, sizeof(*head));
#ifdef FAULT_FORMAT_SOURCE
    status = TN_OK;
#endif
    if (status == TN_OK && memcmp(head->magic, "ACME", 4) != 0)
        return refuse(host, source, "does not begin with ACME");
#ifndef FAULT_FORMAT_DAMAGE
    if (status == TN_OK && records_size(head) > source->size - sizeof(*head))
        return refuse(host, source, "ends before its records");
#endif
    return status;
}

static int ends(const char name[NAME_SIZE])
{
    return memchr(name, 0, NAME_SIZE) != NULL;
}

static tn_status fill_array(const tn_host *host, const tn_format_source *source,
                            const struct array_record *from, uint64_t at,
                            tn_format_array *to)
{
    if (from->type.dtype <= TN_DTYPE_NONE || from->type.dtype >= TN_NUM_DTYPES ||
        from->type.rank < 0 || from->type.rank > TN_MAX_RANK || !ends(from->name) ||
        !ends(from->block_format))
        return refuse(host, source, "has an array of no name or type");
    for (int32_t i = 0; i < from->type.rank; i++)
        if (from->type.extent[i] < 0)
            return refuse(host, source, "has an array of a negative extent");
    *to = (tn_format_array){
        .name = from->name, .type = from->type, .offset = at, .flags = TN_FORMAT_IN_PLACE};
    if (!tn_format_bytes(&to->type, &to->size))
        return refuse(host, source, "has an array of over 2^63 bytes");
    const tn_quant_format *blocks = tn_quant_find(from->block_format);
    if (from->block_format[0] && (!blocks || to->type.rank < 1 || to->type.dtype != TN_U8))
        return refuse(host, source, "has no blocks where it says so");
    if (blocks) {
        to->columns = to->type.extent[to->type.rank - 1] / blocks->bytes * blocks->block;
        to->block_format = blocks->name;
    }
#ifdef FAULT_FORMAT_BLOCKS
    to->block_format = NULL;
#endif
#ifdef FAULT_FORMAT_BLOCKS_COLUMNS
    if (blocks)
        to->columns += blocks->block;
#endif
#ifndef FAULT_FORMAT_DAMAGE_WITHIN
    if (at > source->size || to->size > source->size - at)
        return refuse(host, source, "ends before its elements");
#endif
    return TN_OK;
}

static tn_status fill_pair(const tn_host *host, const tn_format_source *source,
                           struct pair_record *from, tn_metadata *to)
{
    if (!ends(from->key) || !ends(from->text) || from->value.size >= NAME_SIZE ||
        from->text[from->value.size] ||
        (from->kind != TN_METADATA_TEXT && from->kind != TN_METADATA_INTEGER))
        return refuse(host, source, "has metadata of no kind");
    from->value.data = from->text;
    *to = (tn_metadata){.key = from->key, .count = 1, .kind = from->kind};
    to->data = &from->integer;
    if (from->kind == TN_METADATA_TEXT)
        to->data = &from->value;
    return TN_OK;
}

static tn_status fill(const tn_host *host, const tn_format_source *source,
                      const struct head *head, struct file *f, tn_format_array *arrays,
                      tn_format_text *texts, tn_metadata *metadata)
{
    uint64_t at = sizeof(*head) + records_size(head);
    tn_status status = source->read(source, sizeof(*head), f->arrays, records_size(head));
    for (uint32_t i = 0; i < head->num_arrays && status == TN_OK; i++) {
        status = fill_array(host, source, &f->arrays[i], at, &arrays[i]);
        at += arrays[i].size;
    }
    for (uint32_t i = 0; i < head->num_texts && status == TN_OK; i++) {
        if (!ends(f->texts[i].key) || !ends(f->texts[i].value))
            return refuse(host, source, "has a text without an end");
        texts[i] = (tn_format_text){f->texts[i].key, f->texts[i].value};
    }
    for (uint32_t i = 0; i < head->num_metadata && status == TN_OK; i++) {
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(f->pairs[i].key, f->pairs[k].key) == 0)
                return refuse(host, source, "has metadata of one key twice");
        status = fill_pair(host, source, &f->pairs[i], &metadata[i]);
    }
    return status;
}

#ifdef FAULT_FORMAT_FILES
static const tn_format_source *kept_source;
#endif

static tn_status list(const tn_host *host, const tn_format_source *source,
                      const tn_format_content **out_content)
{
    struct head head = {0};
    tn_status status = read_head(host, source, &head);
    if (status != TN_OK)
        return status;
    uint64_t arrays_size = head.num_arrays * (uint64_t)sizeof(tn_format_array);
    uint64_t texts_size = head.num_texts * (uint64_t)sizeof(tn_format_text);
    uint64_t metadata_size = head.num_metadata * (uint64_t)sizeof(tn_metadata);
    uint64_t size = sizeof(struct file) + arrays_size + texts_size + metadata_size +
                    records_size(&head);
    struct file *f = host->alloc(host, size, 0);
    if (!f)
#ifdef FAULT_FORMAT_MEMORY
        return refuse(host, source, "is too large");
#else
        return TN_ERR_MEMORY;
#endif
    memset(f, 0, size);
    tn_format_array *arrays = (tn_format_array *)(f + 1);
    tn_format_text *texts = (tn_format_text *)((char *)arrays + arrays_size);
    tn_metadata *metadata = (tn_metadata *)((char *)texts + texts_size);
    f->arrays = (struct array_record *)((char *)metadata + metadata_size);
    f->texts = (struct text_record *)(f->arrays + head.num_arrays);
    f->pairs = (struct pair_record *)(f->texts + head.num_texts);
    f->content = (tn_format_content){.struct_size = sizeof(f->content),
                                     .arrays = arrays,
                                     .texts = texts,
                                     .num_arrays = head.num_arrays,
                                     .num_texts = head.num_texts,
                                     .array_size = sizeof(*arrays),
                                     .text_size = sizeof(*texts),
                                     .metadata = metadata,
                                     .num_metadata = head.num_metadata,
                                     .metadata_size = sizeof(*metadata)};
    status = fill(host, source, &head, f, arrays, texts, metadata);
#ifdef FAULT_FORMAT_VALUES
    if (status == TN_OK && head.num_arrays > 1)
        arrays[1].offset = arrays[0].offset;
#endif
#ifdef FAULT_FORMAT_FILES_NUMBER
    if (status == TN_OK && head.num_arrays > 0)
        arrays[0].file = 1;
#endif
#ifdef FAULT_FORMAT_METADATA
    for (uint32_t i = 0; status == TN_OK && i < head.num_metadata; i++)
        if (metadata[i].kind == TN_METADATA_INTEGER)
            f->pairs[i].integer &= 0xffffffff;
#endif
#ifdef FAULT_FORMAT_METADATA_ENDS
    for (uint32_t i = 0; status == TN_OK && i < head.num_metadata; i++)
        memset(f->pairs[i].text + f->pairs[i].value.size, 1, 1);
#endif
#ifdef FAULT_FORMAT_FILES
    kept_source = source;
#endif
    if (status == TN_OK)
        *out_content = &f->content;
#ifndef FAULT_FORMAT_DAMAGE_FREES
    else
        host->free(host, f);
#endif
    return status;
}

static void close_file(const tn_host *host, const tn_format_content *content)
{
#ifdef FAULT_FORMAT_FILES
    const tn_format_source *other;
    (void)kept_source->open(kept_source, "other", &other);
#endif
    host->free(host, (void *)(uintptr_t)content);
}

static void set_name(char to[NAME_SIZE], const char *from)
{
    strncpy(to, from, NAME_SIZE - 1);
}

static int can_hold(const tn_metadata *pair)
{
    const tn_text *text = pair->data;
    return pair->flags == 0 &&
           (pair->kind == TN_METADATA_INTEGER ||
            (pair->kind == TN_METADATA_TEXT && text->size < NAME_SIZE - 1));
}

static void set_pair(struct pair_record *to, const tn_metadata *from)
{
    memset(to, 0, sizeof(*to));
    set_name(to->key, from->key);
    to->kind = from->kind;
    if (from->kind == TN_METADATA_TEXT) {
        const tn_text *text = from->data;
        memcpy(to->text, text->data, text->size);
        to->value.size = text->size;
    } else {
        to->integer = *(const int64_t *)from->data;
    }
}

static tn_status write_file(const tn_host *host, const tn_format_content *content,
                            const tn_format_sink *sink)
{
    struct head head = {{'A', 'C', 'M', 'E'},
                        (uint32_t)content->num_arrays,
                        (uint32_t)content->num_texts,
                        (uint32_t)content->num_metadata};
    for (uint32_t i = 0; i < head.num_metadata; i++)
        if (!can_hold(&content->metadata[i]))
            return host->fail(host, TN_ERR_UNSUPPORTED, "%s: metadata '%s'", sink->name,
                              content->metadata[i].key);
#ifdef FAULT_FORMAT_VALUES_TEXTS
    head.num_texts = 0;
#endif
    tn_status status = sink->write(sink, &head, sizeof(head));
#ifdef FAULT_FORMAT_VALUES_PARTLY
    for (uint32_t i = 0; i < head.num_arrays; i++)
        if (content->arrays[i].type.dtype == TN_I8)
            return host->fail(host, TN_ERR_UNSUPPORTED, "%s: got i8", sink->name);
#endif
    for (uint32_t i = 0; i < head.num_arrays && status == TN_OK; i++) {
        struct array_record record = {.type = content->arrays[i].type};
        const char *blocks = content->arrays[i].block_format;
        set_name(record.name, content->arrays[i].name);
        set_name(record.block_format, blocks ? blocks : "");
        status = sink->write(sink, &record, sizeof(record));
    }
    for (uint32_t i = 0; i < head.num_texts && status == TN_OK; i++) {
        struct text_record record = {{0}, {0}};
        set_name(record.key, content->texts[i].key);
        set_name(record.value, content->texts[i].value);
        status = sink->write(sink, &record, sizeof(record));
    }
    for (uint32_t i = 0; i < head.num_metadata && status == TN_OK; i++) {
        struct pair_record record;
        set_pair(&record, &content->metadata[i]);
        status = sink->write(sink, &record, sizeof(record));
    }
    for (uint32_t i = 0; i < head.num_arrays && status == TN_OK; i++) {
        const void *data = NULL;
#ifdef FAULT_FORMAT_IN_TURN
        (void)tn_format_elements(content, i, &data);
#endif
        status = tn_format_elements(content, i, &data);
        if (status == TN_OK)
            status = sink->write(sink, data, content->arrays[i].size);
    }
#ifdef FAULT_FORMAT_SINK
    status = TN_OK;
#endif
    return status;
}

static const tn_format format = {.struct_size = sizeof(format),
                                 .flags = TN_FORMAT_METADATA | TN_FORMAT_BLOCKS |
                                          TN_FORMAT_IN_TURN,
                                 .list = list,
                                 .close = close_file,
                                 .write = write_file};
static const tn_selector selectors[] = {{TN_IFACE_FORMAT, "extension", "faulty"}};
static const tn_selectors selector_list = {.struct_size = sizeof(selector_list),
                                           .items = selectors,
                                           .num_items = 1,
                                           .item_size = sizeof(selectors[0])};

static const void *query(const char *id)
{
    if (strcmp(id, TN_IFACE_SELECTORS) == 0)
        return &selector_list;
    return strcmp(id, TN_IFACE_FORMAT) == 0 ? &format : NULL;
}

TN_PLUGIN("com.acme.format", "1.0.0", "Acme", .query = query);
