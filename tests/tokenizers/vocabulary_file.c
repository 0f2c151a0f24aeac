// SPDX-License-Identifier: MIT
// Metadata as tests read them: from GGUF files, and from text (fixtures), both trusted.
#include "vocabulary_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Types of values in GGUF.
enum { U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, LIST, U64, I64, F64 };

static void take(FILE *in, void *out, size_t size)
{
    if (size && fread(out, 1, size, in) != size) {
        fprintf(stderr, "the file ends early\n");
        exit(1);
    }
}

static uint64_t take_u64(FILE *in)
{
    uint64_t value;
    take(in, &value, sizeof(value));
    return value;
}

static uint32_t take_u32(FILE *in)
{
    uint32_t value;
    take(in, &value, sizeof(value));
    return value;
}

static void *room(uint64_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory)
        abort();
    return memory;
}

static tn_text take_text(FILE *in)
{
    uint64_t size = take_u64(in);
    char *data = room(size, 1);
    take(in, data, size);
    return (tn_text){data, size};
}

static int64_t take_integer(FILE *in, uint32_t type)
{
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    uint64_t bits = 0;
    take(in, &bits, sizes[type]);
    switch (type) {
    case I8:
        return (int8_t)bits;
    case I16:
        return (int16_t)bits;
    case I32:
        return (int32_t)bits;
    default:
        return (int64_t)bits;
    }
}

static double take_float(FILE *in, uint32_t type)
{
    float single;
    double value;
    if (type == F64) {
        take(in, &value, sizeof(value));
        return value;
    }
    take(in, &single, sizeof(single));
    return (double)single;
}

// The values of a pair.
static void take_values(FILE *in, uint32_t type, tn_metadata *out)
{
    uint64_t n = out->count;
    if (type == TEXT) {
        tn_text *texts = room(n, sizeof(*texts));
        for (uint64_t i = 0; i < n; i++)
            texts[i] = take_text(in);
        out->kind = TN_METADATA_TEXT;
        out->data = texts;
    } else if (type == F32 || type == F64) {
        double *values = room(n, sizeof(*values));
        for (uint64_t i = 0; i < n; i++)
            values[i] = take_float(in, type);
        out->kind = TN_METADATA_FLOAT;
        out->data = values;
    } else if (type == BOOL) {
        uint8_t *values = room(n, 1);
        take(in, values, n);
        out->kind = TN_METADATA_BOOL;
        out->data = values;
    } else {
        int64_t *values = room(n, sizeof(*values));
        for (uint64_t i = 0; i < n; i++)
            values[i] = take_integer(in, type);
        out->kind = TN_METADATA_INTEGER;
        out->data = values;
    }
}

// --- pairs as text: a line "KEY KIND COUNT", COUNT "-" of a single value, and a line for
// each value; in texts "%20" is a byte

static tn_text read_text(const char *line)
{
    char *data = room(strlen(line), 1);
    uint64_t size = 0;
    for (const char *at = line; *at && *at != '\n'; at++) {
        char digits[3] = {0};
        if (*at == '%') {
            memcpy(digits, at + 1, 2);
            at += 2;
        }
        data[size++] = digits[0] ? (char)(unsigned char)strtoul(digits, NULL, 16) : *at;
    }
    return (tn_text){data, size};
}

static void read_values(FILE *in, const char *kind, tn_metadata *out)
{
    char line[1024];
    tn_text *texts = room(out->count, sizeof(*texts)); // the largest of the three
    int64_t *integers = (int64_t *)(void *)texts;
    double *floats = (double *)(void *)texts;
    out->data = texts;
    out->kind = strcmp(kind, "text") == 0      ? TN_METADATA_TEXT
                : strcmp(kind, "integer") == 0 ? TN_METADATA_INTEGER
                                               : TN_METADATA_FLOAT;
    for (uint64_t i = 0; i < out->count && fgets(line, sizeof(line), in); i++) {
        if (out->kind == TN_METADATA_TEXT)
            texts[i] = read_text(line);
        else if (out->kind == TN_METADATA_INTEGER)
            integers[i] = strtoll(line, NULL, 10);
        else
            floats[i] = strtod(line, NULL);
    }
}

static void read_lines(FILE *in, struct vocabulary_file *out)
{
    enum { MOST = 32 };
    char line[1024], key[128], kind[16], count[24];
    out->pairs = room(MOST + 8, sizeof(tn_metadata));
    while (out->list.count < MOST && fgets(line, sizeof(line), in) &&
           sscanf(line, "%127s %15s %23s", key, kind, count) == 3) {
        tn_metadata *pair = &out->pairs[out->list.count++];
        pair->key = strdup(key);
        pair->flags = count[0] == '-' ? 0 : TN_METADATA_LIST;
        pair->count = count[0] == '-' ? 1 : strtoull(count, NULL, 10);
        read_values(in, kind, pair);
    }
    out->list.entries = out->pairs;
}

static bool read_text_file(const char *path, struct vocabulary_file *out)
{
    FILE *in = fopen(path, "r");
    const char *slash = strrchr(path, '/');
    if (!in) {
        fprintf(stderr, "%s: cannot be opened\n", path);
        return false;
    }
    *out = (struct vocabulary_file){.list = {.struct_size = sizeof(out->list),
                                             .entry_size = sizeof(tn_metadata),
                                             .name = out->name}};
    snprintf(out->name, sizeof(out->name), "%s", slash ? slash + 1 : path);
    read_lines(in, out);
    fclose(in);
    return true;
}

// --- files

bool vocabulary_file_read(const char *path, struct vocabulary_file *out)
{
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".txt") == 0)
        return read_text_file(path, out);
    FILE *in = fopen(path, "rb");
    if (!in || take_u32(in) != 0x46554747) {
        fprintf(stderr, "%s: cannot be opened, or is no GGUF\n", path);
        if (in)
            fclose(in);
        return false;
    }
    (void)take_u32(in); // version
    (void)take_u64(in); // tensors
    uint64_t count = take_u64(in);
    const char *slash = strrchr(path, '/');
    *out = (struct vocabulary_file){.pairs = room(count + 8, sizeof(tn_metadata))};
    snprintf(out->name, sizeof(out->name), "%s", slash ? slash + 1 : path);
    for (uint64_t i = 0; i < count; i++) {
        tn_metadata *pair = &out->pairs[i];
        pair->key = take_text(in).data;
        uint32_t type = take_u32(in);
        pair->count = 1;
        if (type == LIST) {
            type = take_u32(in);
            pair->count = take_u64(in);
            pair->flags = TN_METADATA_LIST;
        }
        take_values(in, type, pair);
    }
    fclose(in);
    out->list = (tn_metadata_list){sizeof(out->list), sizeof(tn_metadata), out->pairs,
                                   count, out->name};
    return true;
}

static void free_values(const tn_metadata *pair)
{
    const tn_text *texts = pair->data;
    for (uint64_t i = 0; pair->kind == TN_METADATA_TEXT && i < pair->count; i++)
        free((void *)(uintptr_t)texts[i].data);
    free((void *)(uintptr_t)pair->data);
}

void vocabulary_file_finish(struct vocabulary_file *file)
{
    for (uint64_t i = 0; i < file->list.count; i++) {
        free((void *)(uintptr_t)file->pairs[i].key);
        free_values(&file->pairs[i]);
    }
    free(file->pairs);
    *file = (struct vocabulary_file){0};
}

void vocabulary_file_set(struct vocabulary_file *file, const char *key, const char *text)
{
    tn_metadata *pair = (tn_metadata *)(uintptr_t)tn_metadata_find(&file->list, key);
    tn_text *value = room(1, sizeof(*value));
    if (pair) {
        free_values(pair);
    } else {
        pair = &file->pairs[file->list.count++];
        pair->key = strdup(key);
    }
    *value = (tn_text){strdup(text), strlen(text)};
    pair->data = value;
    pair->count = 1;
    pair->kind = TN_METADATA_TEXT;
    pair->flags = 0;
}

tn_status open_tokenizer(tn_runtime *runtime, const tn_metadata_list *list,
                         struct open_tokenizer *out)
{
    tn_text model = {"", 0};
    const char *plugin;
    const void *ops;
    (void)tn_metadata_text(tn_metadata_find(list, "tokenizer.ggml.model"), &model);
    tn_status status =
        tn_provider_find(runtime, TN_IFACE_TOKENIZER, "model", model.data, &plugin);
    if (status == TN_OK)
        status = tn_provider_load(runtime, TN_IFACE_TOKENIZER, plugin, &ops, &out->host);
    if (status)
        return status;
    out->ops = ops;
    return out->ops->open(out->host, list, &out->tokenizer);
}
