// SPDX-License-Identifier: MIT
// plugin.json from the binary: the identity from its note, the rest from its tables.
#include "plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/fail.h"
#include "../primitive/prim_set.h"
#include "../base/file.h"
#include "abi.h"
#include "module.h"
#include "note.h"
#include "trust.h"

// What the description is made from.
struct subject {
    const char *file; // path
    tn_note note;
    struct objects objects; // the file alone
    struct module *module;
    const tn_plugin *entry;
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// --- parts of the text -----------------------------------------------------------------

static json_t *describe_files(const struct subject *subject)
{
    char hex[65];
    const struct content *content = &subject->objects.contents[0];
    sodium_bin2hex(hex, sizeof(hex), content->sha256, 32);
    return json_pack("[{s:s, s:I, s:s}]", "name", base_name(subject->file), "size",
                     (json_int_t)content->size, "sha256", hex);
}

static json_t *describe_interfaces(const struct subject *subject)
{
    static const char *const known[] = {TN_IFACE_BACKEND, "tn.collective/1", "tn.format/1",
                                        "tn.model/1", TN_IFACE_OPS};
    const char *const *own = subject->entry->query(TN_IFACE_LIST);
    json_t *list = json_array();
    for (size_t i = 0; list && i < sizeof(known) / sizeof(known[0]); i++)
        if (subject->entry->query(known[i]) &&
            json_array_append_new(list, json_string(known[i])))
            json_decref(list), list = NULL;
    for (uint32_t i = 0; list && own && own[i] && i < MAX_NAMES; i++)
        if (json_array_append_new(list, json_string(own[i])))
            json_decref(list), list = NULL;
    return list;
}

static json_t *describe_backends(const tn_backend *backend)
{
    json_t *families = backend ? json_array() : NULL;
    if (!backend)
        return json_array();
    for (const char *const *family = backend->families; *family; family++)
        json_array_append_new(families, json_string(*family));
    return json_pack("[{s:s, s:b, s:o}]", "name", backend->name, "default",
                     (int)(backend->flags & TN_BACKEND_DEFAULT), "families", families);
}

static int by_id(const void *a, const void *b)
{
    const json_t *const *x = a, *const *y = b;
    return strcmp(json_string_value(json_object_get(*x, "id")),
                  json_string_value(json_object_get(*y, "id")));
}

static int by_kernel(const void *a, const void *b)
{
    static const char *const keys[] = {"primitive", "family", "name"};
    const json_t *const *x = a, *const *y = b;
    int order = 0;
    for (int i = 0; i < 3 && !order; i++)
        order = strcmp(json_string_value(json_object_get(*x, keys[i])),
                       json_string_value(json_object_get(*y, keys[i])));
    return order;
}

// Takes `count` objects; NULL when one of them is.
static json_t *sorted_array(json_t **items, uint32_t count,
                            int (*order)(const void *, const void *))
{
    bool whole = true;
    for (uint32_t i = 0; i < count; i++)
        whole &= items[i] != NULL;
    if (whole && count)
        qsort(items, count, sizeof(*items), order);
    json_t *list = whole ? json_array() : NULL;
    for (uint32_t i = 0; i < count; i++)
        if (!list)
            json_decref(items[i]);
        else if (json_array_append_new(list, items[i]))
            whole = false;
    if (!whole)
        json_decref(list);
    return whole ? list : NULL;
}

static json_t *describe_primitives(const tn_ops *ops)
{
    uint32_t count = ops ? ops->num_primitives : 0;
    json_t **items = mem_zalloc((count + 1) * sizeof(json_t *));
    for (uint32_t i = 0; items && i < count; i++) {
        const tn_primitive *record = ops->primitives[i];
        items[i] = json_pack("{s:s, s:s*}", "id", record->id, "role", record->role);
    }
    json_t *list = items ? sorted_array(items, count, by_id) : NULL;
    mem_free(items);
    return list;
}

static json_t *describe_kernels(const tn_ops *ops)
{
    uint32_t count = ops ? ops->num_kernels : 0;
    json_t **items = mem_zalloc((count + 1) * sizeof(json_t *));
    for (uint32_t i = 0; items && i < count; i++) {
        const tn_kernel *record = ops->kernels[i];
        items[i] = json_pack("{s:s, s:s, s:s}", "primitive", record->primitive, "family",
                             record->family, "name", record->name);
    }
    json_t *list = items ? sorted_array(items, count, by_kernel) : NULL;
    mem_free(items);
    return list;
}

// --- the whole -------------------------------------------------------------------------

static json_t *describe_root(const struct subject *subject, const tn_ops *ops,
                             const tn_backend *backend)
{
    const tn_note *note = &subject->note;
    return json_pack(
        "{s:i, s:s, s:s, s:s, s:{s:I, s:I, s:I}, s:I, s:s, s:o, s:o, s:o, s:o, "
        "s:o}",
        "format", MANIFEST_FORMAT, "id", note->id, "version", note->version, "vendor",
        note->vendor, "abi", "major", (json_int_t)note->abi_major, "minor_min",
        (json_int_t)note->abi_minor_min, "minor_max", (json_int_t)note->abi_minor_max,
        "sanitizer", (json_int_t)note->sanitizer, "file", base_name(subject->file), "files",
        describe_files(subject), "interfaces", describe_interfaces(subject), "backends",
        describe_backends(backend), "primitives", describe_primitives(ops), "kernels",
        describe_kernels(ops));
}

// The text in memory of ours, ended by a newline.
static tn_status print(json_t *root, char **out_json)
{
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    json_decref(root);
    if (!text)
        return fail(TN_ERR_MEMORY, "out of memory, or a name in the plugin is not UTF-8");
    *out_json = mem_printf("%s\n", text);
    json_free_t release;
    json_get_alloc_funcs(NULL, &release);
    release(text);
    return *out_json ? TN_OK : TN_ERR_MEMORY;
}

static tn_status describe(const struct subject *subject, char **out_json)
{
    struct reason reason;
    const char *id = subject->note.id;
    const tn_ops *ops = subject->entry->query(TN_IFACE_OPS);
    const tn_backend *backend = subject->entry->query(TN_IFACE_BACKEND);
    tn_status status = ops ? abi_check_ops(ops, id, &reason) : TN_OK;
    if (status == TN_OK && backend)
        status = abi_check_backend(backend, id, &reason);
    if (status != TN_OK)
        return status;
    return print(describe_root(subject, ops, backend), out_json);
}

static tn_status load(struct subject *subject)
{
    struct reason reason;
    uint32_t minor;
    uint64_t symbol_size = 0;
    tn_status status =
        note_read(subject->objects.contents[0].fd, subject->file, &subject->note, &reason);
    const tn_note *note = &subject->note;
    if (status == TN_OK)
        status = abi_negotiate(
            abi_host,
            (struct abi_range){note->abi_major, note->abi_minor_min, note->abi_minor_max},
            note->id, &minor, &reason);
    if (status == TN_OK)
        status = abi_check_sanitizer(note->sanitizer, note->id, &reason);
    if (status == TN_OK)
        status =
            module_acquire(&subject->objects, subject->file, &subject->module, &reason);
    if (status != TN_OK)
        return status;
    subject->entry = module_entry(subject->module, &symbol_size);
    if (!subject->entry)
        return fail(TN_ERR_REFUSED, "%s exports no tn_plugin_v1", subject->file);
    return abi_check_entry(subject->entry, symbol_size, note, &reason);
}

tn_status tn_plugin_describe(const char *file, char **out_json)
{
    struct subject subject = {.file = file};
    tn_status status = fail_if_null("plugin_describe", "the file", file);
    if (status == TN_OK)
        status = fail_if_null("plugin_describe", "out_json", out_json);
    if (status != TN_OK)
        return status;
    int fd = file_open(AT_FDCWD, file, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return fail(TN_ERR_IO, "%s: %s", file, strerror(errno));
    struct objects *objects = &subject.objects;
    objects->names[0] = base_name(file);
    status = content_copy(fd, file, NULL, &objects->contents[0]);
    close(fd);
    objects->count = status == TN_OK;
    if (status == TN_OK)
        status = load(&subject);
    if (status == TN_OK)
        status = describe(&subject, out_json);
    objects_close(objects);
    module_release(subject.module, true);
    return status;
}
