// SPDX-License-Identifier: MIT
// tn_plugin_describe(), tn_plugin_describe_ops(): make the texts of plugin.json and
// ops.json for a shared object. The identity comes from the ELF note; the rest from the
// plugin's tables, for which the plugin is initialised.
#include "describe.h"
#include "load/load.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tenon/format.h>
#include "../base/fail.h"
#include "../base/file.h"
#include "../primitive/prim_set.h"
#include "find/abi.h"
#include "load/module.h"
#include "load/note.h"
#include "find/trust.h"

// The plugin being described.
struct plugin_describe_subject {
    const char *file; // path
    tn_note note;
    struct objects objects; // the file alone
    struct plugin plugin;   // uses the runtime's set, but is not listed there
};

static const char *plugin_describe_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// --- parts of plugin.json --------------------------------------------------------------

static json_t *describe_files(const struct plugin_describe_subject *subject)
{
    char hex[65];
    const struct content *content = &subject->objects.contents[0];
    sodium_bin2hex(hex, sizeof(hex), content->sha256, 32);
    return json_pack("[{s:s, s:I, s:s}]", "name", plugin_describe_base_name(subject->file),
                     "size", (json_int_t)content->size, "sha256", hex);
}

static json_t *describe_interfaces(const struct plugin_describe_subject *subject)
{
    static const char *const known[] = {TN_IFACE_BACKEND, "tn.collective/1",
                                        TN_IFACE_FORMAT,  "tn.model/1",
                                        TN_IFACE_OPS,     "tn.tokenizer/1"};
    const char *const *own = subject->plugin.entry->query(TN_IFACE_LIST);
    json_t *list = json_array();
    for (size_t i = 0; list && i < sizeof(known) / sizeof(known[0]); i++)
        if (subject->plugin.entry->query(known[i]) &&
            json_array_append_new(list, json_string(known[i])))
            json_decref(list), list = NULL;
    for (uint32_t i = 0; list && own && own[i] && i < MAX_NAMES; i++)
        if (json_array_append_new(list, json_string(own[i])))
            json_decref(list), list = NULL;
    return list;
}

static json_t *describe_selectors(const struct plugin_describe_subject *subject)
{
    const tn_selectors *own = subject->plugin.entry->query(TN_IFACE_SELECTORS);
    json_t *list = json_array();
    uint32_t count = TN_HAS(own, item_size) ? own->num_items : 0;
    for (uint32_t i = 0; list && i < count && i < MAX_NAMES; i++) {
        const tn_selector *selector =
            (const void *)((const char *)own->items + (uint64_t)i * own->item_size);
        if (json_array_append_new(
                list, json_pack("{s:s, s:s, s:s}", "interface", selector->interface, "kind",
                                selector->kind, "value", selector->value)))
            json_decref(list), list = NULL;
    }
    return list;
}

static json_t *describe_backends(const tn_backend *backend)
{
    json_t *families = backend ? json_array() : NULL;
    if (!backend)
        return json_array();
    bool whole = families != NULL;
    for (const char *const *family = backend->families; *family && whole; family++)
        whole = json_array_append_new(families, json_string(*family)) == 0;
    if (!whole) {
        json_decref(families);
        return NULL;
    }
    return json_pack("[{s:s, s:b, s:o}]", "name", backend->name, "default",
                     (int)(backend->flags & TN_BACKEND_DEFAULT), "families", families);
}

static int plugin_describe_by_id(const void *a, const void *b)
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

// Gives a sorted array of `count` objects, and takes the objects, on failure too. NULL when
// an object is NULL or memory is short.
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
        const tn_primitive *primitive = ops->primitives[i];
        items[i] = json_pack("{s:s, s:s*}", "id", primitive->id, "role", primitive->role);
    }
    json_t *list = items ? sorted_array(items, count, plugin_describe_by_id) : NULL;
    mem_free(items);
    return list;
}

static json_t *describe_kernels(const tn_ops *ops)
{
    uint32_t count = ops ? ops->num_kernels : 0;
    json_t **items = mem_zalloc((count + 1) * sizeof(json_t *));
    for (uint32_t i = 0; items && i < count; i++) {
        const tn_kernel *kernel = ops->kernels[i];
        items[i] = json_pack("{s:s, s:s, s:s}", "primitive", kernel->primitive, "family",
                             kernel->family, "name", kernel->name);
    }
    json_t *list = items ? sorted_array(items, count, by_kernel) : NULL;
    mem_free(items);
    return list;
}

// --- the whole -------------------------------------------------------------------------

static json_t *describe_root(const struct plugin_describe_subject *subject)
{
    const tn_note *note = &subject->note;
    const tn_ops *ops = subject->plugin.ops;
    const tn_backend *backend = subject->plugin.backend;
    return json_pack(
        "{s:i, s:s, s:s, s:s, s:{s:I, s:I, s:I}, s:I, s:s, s:o, s:o, s:o, s:o, "
        "s:o, s:o}",
        "format", MANIFEST_FORMAT, "id", note->id, "version", note->version, "vendor",
        note->vendor, "abi", "major", (json_int_t)note->abi_major, "minor_min",
        (json_int_t)note->abi_minor_min, "minor_max", (json_int_t)note->abi_minor_max,
        "sanitizer", (json_int_t)note->sanitizer, "file",
        plugin_describe_base_name(subject->file), "files", describe_files(subject),
        "interfaces", describe_interfaces(subject), "selectors",
        describe_selectors(subject), "backends", describe_backends(backend), "primitives",
        describe_primitives(ops), "kernels", describe_kernels(ops));
}

// Gives the text in memory of mem_alloc, with a final newline. Takes `root`.
static tn_status plugin_describe_print(json_t *root, char **out_json)
{
    char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
    json_decref(root);
    if (!text)
        return fail(TN_ERR_MEMORY, "out of memory, or a name in the plugin is not UTF-8");
    *out_json = mem_printf("%s\n", text);
    json_free_t release;
    json_get_alloc_funcs(NULL, &release);
    release(text);
    return *out_json ? TN_OK : TN_ERR_MEMORY;
}

static tn_status open_note(struct plugin_describe_subject *subject, uint32_t *out_minor,
                           struct reason *reason)
{
    const tn_note *note = &subject->note;
    tn_status status =
        note_read(subject->objects.contents[0].fd, subject->file, &subject->note, reason);
    if (status == TN_OK)
        status = abi_negotiate(
            abi_host,
            (struct abi_range){note->abi_major, note->abi_minor_min, note->abi_minor_max},
            note->id, out_minor, reason);
    if (status == TN_OK)
        status = abi_check_sanitizer(note->sanitizer, note->id, reason);
    return status;
}

// Loads and initialises the plugin, without a manifest to check it against.
static tn_status plugin_describe_start(struct plugin_describe_subject *subject)
{
    struct reason reason;
    struct plugin *plugin = &subject->plugin;
    uint32_t minor = 0;
    uint64_t symbol_size = 0;
    tn_status status = open_note(subject, &minor, &reason);
    if (status == TN_OK)
        status = module_acquire(&subject->objects, subject->file, &plugin->module, &reason);
    if (status != TN_OK)
        return status;
    plugin->manifest.id = subject->note.id;
    plugin->entry = module_entry(plugin->module, &symbol_size);
    if (!plugin->entry)
        return fail(TN_ERR_REFUSED, "%s exports no tn_plugin_v1", subject->file);
    status = abi_check_entry(plugin->entry, symbol_size, &subject->note, &reason);
    return status == TN_OK ? plugin_start(plugin, minor, &reason) : status;
}

static void plugin_describe_finish(struct plugin_describe_subject *subject)
{
    struct plugin *plugin = &subject->plugin;
    plugin_stop(plugin);
    module_release(plugin->module, true);
    plugin_drop_needs(plugin);
    mem_free(plugin->directory);
    objects_close(&subject->objects);
}

// Gives the absolute path of the directory that holds `file`.
static tn_status plugin_describe_find_directory(const char *file, char **out_directory)
{
    char *whole = realpath(file, NULL);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    if (!slash)
        return fail(TN_ERR_IO, "%s: %s", file, strerror(errno));
    *out_directory = mem_printf("%.*s", slash == whole ? 1 : (int)(slash - whole), whole);
    free(whole);
    return *out_directory ? TN_OK : TN_ERR_MEMORY;
}

static tn_status plugin_describe_open_file(struct plugin_describe_subject *subject)
{
    struct objects *objects = &subject->objects;
    int fd = file_open(AT_FDCWD, subject->file, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return fail(TN_ERR_IO, "%s: %s", subject->file, strerror(errno));
    objects->names[0] = plugin_describe_base_name(subject->file);
    tn_status status = content_copy(fd, subject->file, NULL, &objects->contents[0]);
    close(fd);
    objects->count = status == TN_OK;
    return status;
}

static tn_status check_arguments(const char *function, tn_runtime *runtime,
                                 const char *file, char **out_json)
{
    tn_status status = fail_if_null(function, "the runtime", runtime);
    if (status == TN_OK)
        status = fail_if_null(function, "the file", file);
    if (status == TN_OK)
        status = fail_if_null(function, "out_json", out_json);
    return status == TN_OK ? life_check(&runtime->life) : status;
}

static tn_status plugin_describe_begin(struct plugin_describe_subject *subject)
{
    tn_status status = plugin_describe_open_file(subject);
    if (status == TN_OK)
        status = plugin_describe_find_directory(subject->file, &subject->plugin.directory);
    return status == TN_OK ? plugin_describe_start(subject) : status;
}

tn_status tn_plugin_describe(tn_runtime *runtime, const char *file, char **out_json)
{
    tn_status status = check_arguments("plugin_describe", runtime, file, out_json);
    if (status != TN_OK)
        return status;
    struct plugin_describe_subject subject = {
        .file = file,
        .plugin = {.set = runtime->plugins, .state = PLUGIN_DESCRIBED},
    };
    status = plugin_describe_begin(&subject);
    if (status == TN_OK)
        status = plugin_describe_print(describe_root(&subject), out_json);
    plugin_describe_finish(&subject);
    return status;
}

static tn_status describe_operators(tn_runtime *runtime,
                                    const struct plugin_describe_subject *subject,
                                    char **out_json)
{
    const tn_ops *ops = subject->plugin.ops;
    uint32_t count = ops->num_primitives, made = 0;
    json_t **items = mem_zalloc((count + 1) * sizeof(json_t *));
    tn_status status = items ? TN_OK : TN_ERR_MEMORY;
    while (made < count && status == TN_OK) {
        status = describe_operator(runtime, ops->primitives[made], &items[made]);
        made += status == TN_OK;
    }
    json_t *list = items ? sorted_array(items, made, plugin_describe_by_id) : NULL;
    mem_free(items);
    if (status == TN_OK)
        return plugin_describe_print(json_pack("{s:i, s:s, s:s, s:o}", "format", OPS_FORMAT,
                                               "id", subject->note.id, "version",
                                               subject->note.version, "operators", list),
                                     out_json);
    json_decref(list);
    return status;
}

tn_status tn_plugin_describe_ops(tn_runtime *runtime, const char *file, char **out_json)
{
    tn_status status = check_arguments("plugin_describe_ops", runtime, file, out_json);
    if (status != TN_OK)
        return status;
    struct plugin_describe_subject subject = {
        .file = file,
        .plugin = {.set = runtime->plugins, .state = PLUGIN_DESCRIBED},
    };
    char *text = NULL;
    status = plugin_describe_begin(&subject);
    if (status == TN_OK && subject.plugin.ops && subject.plugin.ops->num_primitives)
        status = describe_operators(runtime, &subject, &text);
    if (status == TN_OK)
        *out_json = text;
    plugin_describe_finish(&subject);
    return status;
}
