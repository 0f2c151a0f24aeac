// SPDX-License-Identifier: MIT
// The plugin: joins the files of a model.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/provider.h>
#include "../common/names.h"
#include "gguf.h"

#define SUFFIX_SIZE 32

// A content, with the memory that it points to.
struct gguf {
    tn_format_content content; // first: gguf is found from it by a cast
    struct gguf_part *parts;   // the first one has the metadata
    tn_format_array *arrays;   // of all parts together; NULL where there is one part
};

// --- models that are split --------------------------------------------------------------

static const char *gguf_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Gives the integer under a key; -1 when it is absent.
static int64_t gguf_integer_of(const tn_metadata_list *list, const char *key)
{
    int64_t value = -1;
    (void)tn_metadata_integer(tn_metadata_find(list, key), &value);
    return value;
}

// Reads part `number` (from 0), which lies beside the first one.
static tn_status gguf_read_part(const tn_host *host, const struct gguf_part *first,
                                int64_t number, int64_t count, struct gguf_part *part)
{
    char name[512], suffix[SUFFIX_SIZE];
    const char *base = gguf_base_name(first->source->name);
    size_t size = strlen(base);
    int suffix_size =
        snprintf(suffix, sizeof(suffix), "-00001-of-%05" PRId64 ".gguf", count);
    if (size < (size_t)suffix_size || size >= sizeof(name) ||
        strcmp(base + size - (size_t)suffix_size, suffix) != 0)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: it is the first of %" PRId64
                          " files, expected a name that ends with %s",
                          first->source->name, count, suffix);
    snprintf(name, sizeof(name), "%.*s-%05" PRId64 "-of-%05" PRId64 ".gguf",
             (int)(size - (size_t)suffix_size), base, number + 1, count);
    tn_status status = first->source->open(first->source, name, &part->source);
    if (status == TN_OK)
        status = gguf_part_read(part);
    if (status != TN_OK)
        return status;
    const tn_metadata_list list = gguf_part_metadata(part);
    int64_t no = gguf_integer_of(&list, "split.no"),
            of = gguf_integer_of(&list, "split.count");
    if (no != number || of != count)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: it says that it is split.no %" PRId64 " of %" PRId64
                          ", expected %" PRId64 " of %" PRId64,
                          part->source->name, no, of, number, count);
    return TN_OK;
}

static tn_status gguf_read_parts(const tn_host *host, struct gguf *g)
{
    struct gguf_part *last = g->parts;
    const tn_metadata_list list = gguf_part_metadata(last);
    int64_t count = gguf_integer_of(&list, "split.count"),
            no = gguf_integer_of(&list, "split.no");
    tn_status status = TN_OK;
    if (count > 1 && (count > 99999 || no != 0))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: it says that it is split.no %" PRId64 " of %" PRId64
                          ": open the first file, split.no 0",
                          last->source->name, no, count);
    for (int64_t i = 1; i < count && status == TN_OK; i++) {
        struct gguf_part *part = host->alloc(host, sizeof(*part), 0);
        if (!part)
            return TN_ERR_MEMORY;
        *part = (struct gguf_part){.host = host};
        last->next = part;
        last = part;
        status = gguf_read_part(host, g->parts, i, count, part);
    }
    return status;
}

// Joins the arrays of all parts in one list.
static tn_status join_arrays(const tn_host *host, struct gguf *g)
{
    const tn_metadata_list list = gguf_part_metadata(g->parts);
    int64_t said = gguf_integer_of(&list, "split.tensors.count");
    uint64_t count = 0;
    for (const struct gguf_part *p = g->parts; p; p = p->next)
        count += p->num_arrays;
    if (g->parts->next && said >= 0 && (uint64_t)said != count)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: its files hold %" PRIu64 " tensors, expected %" PRId64
                          " (split.tensors.count)",
                          g->parts->source->name, count, said);
    g->content.num_arrays = count;
    g->content.arrays = g->parts->arrays;
    if (!g->parts->next)
        return TN_OK;
    g->arrays = host->alloc(host, (count + 1) * sizeof(*g->arrays), 0);
    if (!g->arrays)
        return TN_ERR_MEMORY;
    uint64_t at = 0;
    for (const struct gguf_part *p = g->parts; p; p = p->next) {
        memcpy(g->arrays + at, p->arrays, p->num_arrays * sizeof(*g->arrays));
        at += p->num_arrays;
    }
    g->content.arrays = g->arrays;
    return TN_OK;
}

// --- the interface ----------------------------------------------------------------------

static void gguf_close(const tn_host *host, const tn_format_content *content)
{
    struct gguf *g = (void *)(uintptr_t)content;
    while (g->parts) {
        struct gguf_part *part = g->parts;
        g->parts = part->next;
        gguf_part_finish(part);
        host->free(host, part);
    }
    host->free(host, g->arrays);
    host->free(host, g);
}

static tn_status gguf_read_all(const tn_host *host, const tn_format_source *source,
                               struct gguf *g)
{
    g->parts = host->alloc(host, sizeof(*g->parts), 0);
    if (!g->parts)
        return TN_ERR_MEMORY;
    *g->parts = (struct gguf_part){.host = host, .source = source};
    tn_status status = gguf_part_read(g->parts);
    if (status == TN_OK)
        status =
            names_differ(host, source->name, "pairs of metadata", &g->parts->metadata->key,
                         sizeof(tn_metadata), g->parts->num_metadata);
    if (status == TN_OK)
        status = gguf_read_parts(host, g);
    if (status == TN_OK)
        status = join_arrays(host, g);
    if (status == TN_OK)
        status = names_differ(host, source->name, "tensors", &g->content.arrays->name,
                              sizeof(tn_format_array), g->content.num_arrays);
    return status;
}

static tn_status gguf_list(const tn_host *host, const tn_format_source *source,
                           const tn_format_content **out_content)
{
    struct gguf *g = host->alloc(host, sizeof(*g), 0);
    if (!g)
        return TN_ERR_MEMORY;
    *g = (struct gguf){.content = {.struct_size = sizeof(g->content),
                                   .array_size = sizeof(tn_format_array),
                                   .text_size = sizeof(tn_format_text),
                                   .metadata_size = sizeof(tn_metadata)}};
    tn_status status = gguf_read_all(host, source, g);
    if (status != TN_OK) {
        gguf_close(host, &g->content);
        return status;
    }
    g->content.metadata = g->parts->metadata;
    g->content.num_metadata = g->parts->num_metadata;
    *out_content = &g->content;
    return TN_OK;
}

static const tn_format format = {
    .struct_size = sizeof(format),
    .flags = TN_FORMAT_METADATA | TN_FORMAT_BLOCKS | TN_FORMAT_IN_TURN,
    .list = gguf_list,
    .close = gguf_close,
    .write = gguf_write,
};

static const tn_selector selectors[] = {
    {TN_IFACE_FORMAT, "extension", "gguf"},
    {TN_IFACE_FORMAT, TN_SELECT_MAGIC, "47475546"},
};

TN_PROVIDER("org.tenon.gguf", "0.1.0", "Tenon", TN_IFACE_FORMAT, format, selectors);
