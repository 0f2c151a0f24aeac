// SPDX-License-Identifier: MIT
// Checks and completes the list of files in plugin.json.
#include "seal.h"
#include "base/file.h"
#include "files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <nettle/sha2.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_MANIFEST (1u << 20)

bool is_plugin_id(const char *id)
{
    return id[0] && id[0] != '.' && strlen(id) < ID_SIZE &&
           strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-") == strlen(id);
}

// --- the manifest ----------------------------------------------------------------------

static int plugin_seal_parse(const char *text, const char *path, json_t **out)
{
    json_error_t error;
    *out = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    return *out ? 0 : oops("%s:%d: %s", path, error.line, error.text);
}

int manifest_read(const struct folder *folder, char **out_text, uint64_t *out_size)
{
    char *path = path_join(folder->path, MANIFEST);
    int failed =
        path ? file_read_from(open_below(folder->fd, MANIFEST, O_RDONLY | O_NONBLOCK, 0),
                              path, MAX_MANIFEST, out_text, out_size)
             : oops_memory();
    free(path);
    return failed;
}

static int read_manifest(const struct folder *folder, json_t **out)
{
    char *path = path_join(folder->path, MANIFEST), *text = NULL;
    uint64_t size;
    int failed = path ? manifest_read(folder, &text, &size) : oops_memory();
    if (!failed)
        failed = plugin_seal_parse(text, path, out);
    free(text);
    free(path);
    return failed;
}

int manifest_identity(const struct folder *folder, struct identity *out)
{
    json_t *manifest = NULL;
    int failed = read_manifest(folder, &manifest);
    if (failed)
        return failed;
    const char *id = json_string_value(json_object_get(manifest, "id"));
    const char *version = json_string_value(json_object_get(manifest, "version"));
    if (!id || !is_plugin_id(id))
        failed = oops("%s/" MANIFEST ": expected an \"id\" of [a-z0-9.-], got '%s'",
                      folder->path, id ? id : "");
    else if (!version || strlen(version) >= sizeof(out->version))
        failed = oops("%s/" MANIFEST ": expected a \"version\", got '%s'", folder->path,
                      version ? version : "");
    else
        snprintf(out->id, sizeof(out->id), "%s", id),
            snprintf(out->version, sizeof(out->version), "%s", version);
    json_decref(manifest);
    return failed;
}

// The manifest as text, formatted as by `tenon plugin describe`. Free it; NULL when out of
// memory.
static char *plugin_seal_print(const json_t *manifest)
{
    char *text = json_dumps(manifest, JSON_INDENT(1) | JSON_SORT_KEYS), *line = NULL;
    if (!text || asprintf(&line, "%s\n", text) < 0)
        line = NULL;
    free(text);
    return line;
}

// --- one file --------------------------------------------------------------------------

static int plugin_seal_hash(const struct folder *folder, const char *name, char hex[65])
{
    int fd = open_below(folder->fd, name, O_RDONLY | O_NONBLOCK, 0);
    unsigned char block[1 << 15], digest[32];
    struct sha256_ctx state;
    sha256_init(&state);
    ssize_t got = -1;
    while (fd >= 0 && (got = read(fd, block, sizeof(block))) > 0)
        sha256_update(&state, (size_t)got, block);
    int failed =
        got < 0 ? oops("cannot read %s/%s: %s", folder->path, name, strerror(errno)) : 0;
    sha256_digest(&state, 32, digest);
    sodium_bin2hex(hex, 65, digest, sizeof(digest));
    if (fd >= 0)
        close(fd);
    return failed;
}

static int plugin_seal_add_entry(json_t *list, const struct folder *folder,
                                 const struct tree_file *file)
{
    char hex[65];
    int failed = plugin_seal_hash(folder, file->name, hex);
    if (failed)
        return failed;
    json_t *entry = json_pack("{s:s, s:I, s:s}", "name", file->name, "size",
                              (json_int_t)file->size, "sha256", hex);
    return json_array_append_new(list, entry) ? oops_memory() : 0;
}

static const json_t *plugin_seal_find_entry(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const char *listed = json_string_value(json_object_get(entry, "name"));
        if (listed && strcmp(listed, name) == 0)
            return entry;
    }
    return NULL;
}

static int check_entry(const json_t *entry, const struct folder *folder,
                       const struct tree_file *file)
{
    json_int_t size = json_integer_value(json_object_get(entry, "size"));
    const char *listed = json_string_value(json_object_get(entry, "sha256"));
    char hex[65];
    if ((uint64_t)size != file->size)
        return oops("%s/%s has %" PRIu64 " bytes, plugin.json says %" JSON_INTEGER_FORMAT,
                    folder->path, file->name, file->size, size);
    int failed = plugin_seal_hash(folder, file->name, hex);
    if (!failed && (!listed || strcasecmp(listed, hex) != 0))
        failed = oops("%s/%s has SHA-256 %s, plugin.json says %s", folder->path, file->name,
                      hex, listed ? listed : "nothing");
    return failed;
}

// --- all files -------------------------------------------------------------------------

static bool plugin_seal_is_listed(const struct tree_file *file)
{
    return !file->is_folder && strcmp(file->name, MANIFEST) != 0 &&
           strcmp(file->name, SIGNATURE) != 0;
}

static const struct tree_file *plugin_seal_find_file(const struct file_tree *tree,
                                                     const char *name)
{
    for (size_t i = 0; i < tree->count; i++)
        if (!tree->files[i].is_folder && strcmp(tree->files[i].name, name) == 0)
            return &tree->files[i];
    return NULL;
}

// Compares each file with its entry; adds missing entries if `may_add`, and counts them.
static int plugin_seal_complete(const struct file_tree *tree, const struct folder *folder,
                                json_t *list, bool may_add, size_t *out_added)
{
    *out_added = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct tree_file *file = &tree->files[i];
        if (!plugin_seal_is_listed(file))
            continue;
        const json_t *entry = plugin_seal_find_entry(list, file->name);
        if (!entry && !may_add)
            return oops("%s/%s is not listed in plugin.json: what nobody hashed or signed "
                        "is not installed",
                        folder->path, file->name);
        int failed = entry ? check_entry(entry, folder, file)
                           : plugin_seal_add_entry(list, folder, file);
        if (failed)
            return failed;
        *out_added += !entry;
    }
    return 0;
}

// Fails when a listed file is missing.
static int check_missing(const struct file_tree *tree, const struct folder *folder,
                         const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (!name || !plugin_seal_find_file(tree, name))
            return oops("%s/%s is listed in plugin.json but is not there", folder->path,
                        name ? name : "?");
    }
    return 0;
}

static int by_entry(const void *a, const void *b)
{
    json_t *const *x = a, *const *y = b;
    return strcmp(json_string_value(json_object_get(*x, "name")),
                  json_string_value(json_object_get(*y, "name")));
}

static int sort_entries(json_t *manifest)
{
    json_t *list = json_object_get(manifest, "files"), *sorted = json_array();
    size_t count = json_array_size(list);
    json_t **entries = calloc(count + 1, sizeof(json_t *));
    int failed = entries && sorted ? 0 : oops_memory();
    for (size_t i = 0; !failed && i < count; i++)
        entries[i] = json_array_get(list, i);
    if (!failed)
        qsort(entries, count, sizeof(json_t *), by_entry);
    for (size_t i = 0; !failed && i < count; i++)
        failed = json_array_append(sorted, entries[i]) ? oops_memory() : 0;
    free(entries);
    if (json_object_set_new(manifest, "files", sorted) && !failed)
        failed = oops_memory();
    return failed;
}

static int write_manifest(const struct folder *folder, json_t *manifest)
{
    int failed = sort_entries(manifest);
    char *path = path_join(folder->path, MANIFEST);
    char *text = failed ? NULL : plugin_seal_print(manifest);
    if (!failed)
        failed = path && text
                     ? file_write_at(folder->fd, MANIFEST, path, text, strlen(text))
                     : oops_memory();
    free(text);
    free(path);
    return failed;
}

int seal_text(const char *manifest, const char *name, const char *content,
              char **out_manifest)
{
    struct sha256_ctx state;
    unsigned char digest[32];
    char hex[65];
    json_t *root = NULL;
    int failed = plugin_seal_parse(manifest, MANIFEST, &root);
    if (failed)
        return failed;
    sha256_init(&state);
    sha256_update(&state, strlen(content), (const uint8_t *)content);
    sha256_digest(&state, sizeof(digest), digest);
    sodium_bin2hex(hex, sizeof(hex), digest, sizeof(digest));
    json_t *entry = json_pack("{s:s, s:I, s:s}", "name", name, "size",
                              (json_int_t)strlen(content), "sha256", hex);
    failed =
        json_array_append_new(json_object_get(root, "files"), entry) ? oops_memory() : 0;
    if (!failed)
        failed = sort_entries(root);
    if (!failed && !(*out_manifest = plugin_seal_print(root)))
        failed = oops_memory();
    json_decref(root);
    return failed;
}

int seal(const struct folder *folder, enum seal_mode mode)
{
    struct file_tree tree;
    json_t *manifest = NULL;
    size_t added;
    int failed = tree_list(folder, &tree);
    if (failed)
        return failed;
    failed = read_manifest(folder, &manifest);
    bool may_add = mode == SEAL_RENEW ||
                   (mode == SEAL_ADD && !plugin_seal_find_file(&tree, SIGNATURE));
    if (!failed && (mode == SEAL_RENEW || !json_object_get(manifest, "files")))
        failed = json_object_set_new(manifest, "files", json_array()) ? oops_memory() : 0;
    json_t *list = json_object_get(manifest, "files");
    if (!failed)
        failed = plugin_seal_complete(&tree, folder, list, may_add, &added);
    if (!failed)
        failed = check_missing(&tree, folder, list);
    if (!failed && added)
        failed = write_manifest(folder, manifest);
    json_decref(manifest);
    tree_finish(&tree);
    return failed;
}
