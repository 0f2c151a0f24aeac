// SPDX-License-Identifier: MIT
// Finds plugins: reads the manifests in the directories of the search path, and chooses
// among several versions of a plugin. Loads no code.
#include "plugin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../base/file.h"
#include "abi.h"
#include "names.h"
#include "installation.h"
#include "trust.h"

// --- one plugin ------------------------------------------------------------------------

// Checks everything about the plugin but the content of its files, which is hashed when the
// plugin is loaded. *out_present is false when the directory holds no plugin.json.
static tn_status plugin_find_examine(struct plugin *plugin, const struct trust *trust,
                                     int at, const char *name, bool *out_present)
{
    const char *path = plugin->directory;
    struct reason *reason = &plugin->reason;
    int fd = -1;
    char *text = NULL;
    size_t size = 0;
    *out_present = true;
    tn_status status = trust_open_directory(at, name, path, &fd, reason);
    if (status == TN_OK)
        status = trust_read_file(fd, MANIFEST_FILE, MANIFEST_MAX_SIZE, path, &text, &size,
                                 reason);
    if (status == TN_ERR_NOT_FOUND)
        *out_present = false;
    if (status == TN_OK)
        status = manifest_parse(text, size, path, &plugin->manifest, reason);
    const struct manifest *manifest = &plugin->manifest;
    uint32_t minor;
    if (status == TN_OK && strcmp(strrchr(path, '/') + 1, manifest->id) != 0)
        status =
            reason_record(reason, TN_ERR_REFUSED, REASON_MANIFEST, path,
                          "%s holds the plugin %s: the names differ", path, manifest->id);
    if (status == TN_OK)
        status = trust_check_signature(trust, fd, path, text, size, reason);
    if (status == TN_OK)
        status = trust_check_files(trust, fd, path, manifest, reason);
    if (status == TN_OK)
        status = abi_negotiate(abi_host, manifest->abi, manifest->id, &minor, reason);
    if (status == TN_OK)
        status = abi_check_sanitizer(manifest->sanitizer, manifest->id, reason);
    mem_free(text);
    if (fd >= 0)
        close(fd);
    return status;
}

// Whether `name` is another directory than *info describes, because an upgrade replaced the
// directory. Updates *info.
static bool was_exchanged(int at, const char *name, struct stat *info)
{
    struct stat before = *info;
    return fstatat(at, name, info, AT_SYMLINK_NOFOLLOW) == 0 &&
           (before.st_ino != info->st_ino || before.st_dev != info->st_dev);
}

// Examines the directory again when an upgrade replaced it meanwhile: the failure of the
// old version says nothing about the new one.
static tn_status examine_newest(struct plugin *plugin, const struct trust *trust, int at,
                                const char *name, bool *out_present)
{
    struct stat info = {.st_ino = 0};
    was_exchanged(at, name, &info);
    tn_status status = plugin_find_examine(plugin, trust, at, name, out_present);
    for (int tries = 0; tries < 100 && status != TN_OK && status != TN_ERR_MEMORY &&
                        was_exchanged(at, name, &info);
         tries++) {
        manifest_finish(&plugin->manifest);
        status = plugin_find_examine(plugin, trust, at, name, out_present);
    }
    return status;
}

tn_status find_plugin_at(const struct trust *trust, int at, const char *name,
                         const char *directory, struct plugin **out_plugin)
{
    struct plugin *plugin = mem_zalloc(sizeof(*plugin));
    if (!plugin)
        return TN_ERR_MEMORY;
    bool present = true;
    tn_status status = TN_ERR_MEMORY;
    plugin->directory = mem_strdup(directory);
    if (plugin->directory)
        status = examine_newest(plugin, trust, at, name, &present);
    if (status != TN_ERR_MEMORY && plugin->manifest.file) {
        plugin->file = mem_printf("%s/%s", directory, plugin->manifest.file);
        if (!plugin->file)
            status = TN_ERR_MEMORY;
    }
    if (status == TN_ERR_MEMORY || !present) {
        plugin_destroy(plugin);
        *out_plugin = NULL;
        return present ? TN_ERR_MEMORY : TN_OK;
    }
    plugin->state = status == TN_OK ? TN_PLUGIN_FOUND : TN_PLUGIN_REFUSED;
    *out_plugin = plugin;
    return TN_OK;
}

void plugin_destroy(struct plugin *plugin)
{
    if (!plugin)
        return;
    plugin_destroy(plugin->newer);
    manifest_finish(&plugin->manifest);
    mem_free(plugin->directory);
    mem_free(plugin->file);
    mem_free(plugin);
}

// Adds the plugin to the set. Takes the plugin, on failure too.
static tn_status plugin_find_add(struct plugin_set *set, struct plugin *plugin)
{
    tn_status status = mem_grow((void **)&set->plugins, &set->capacity, set->count + 1,
                                sizeof(struct plugin *));
    if (status != TN_OK) {
        plugin_destroy(plugin);
        return status;
    }
    plugin->set = set;
    set->plugins[set->count++] = plugin;
    if (plugin->state == TN_PLUGIN_REFUSED)
        log_write(set->runtime->config, TN_LOG_INFO, "plugin", "refused: %s",
                  plugin->reason.text);
    return TN_OK;
}

// Warns of all refused plugins in one line. Plugins in quarantine got their own warning.
static void warn_refused(const struct plugin_set *set)
{
    const struct plugin *first = NULL;
    const char *unsigned_path = NULL; // of a plugin that only lacks a signature
    uint32_t refused = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct plugin *plugin = set->plugins[i];
        if (plugin->state != TN_PLUGIN_REFUSED || plugin->reason.code == REASON_QUARANTINED)
            continue;
        first = first ? first : plugin;
        refused++;
        if (plugin->reason.code == REASON_UNSIGNED && !unsigned_path)
            unsigned_path = plugin->directory;
    }
    if (refused == 1)
        log_write(set->runtime->config, TN_LOG_WARN, "plugin", "refused: %s",
                  first->reason.text);
    else if (refused)
        log_write(
            set->runtime->config, TN_LOG_WARN, "plugin",
            "%" PRIu32 " of %" PRIu32 " plugins are refused: 'tenon plugins' says why "
            "of each%s%.*s%s. The first: %s",
            refused, set->count,
            unsigned_path ? ", 'tenon plugin sign --all --prefix " : "",
            unsigned_path ? (int)(strrchr(unsigned_path, '/') - unsigned_path) : 0,
            unsigned_path ? unsigned_path : "",
            unsigned_path ? " KEYFILE' signs an installation" : "", first->reason.text);
}

// --- one directory of the search path --------------------------------------------------

// Lists an unusable search-path entry as a refused plugin, so that `tenon plugins` shows
// why.
static tn_status add_refused(struct plugin_set *set, const char *path,
                             const struct reason *reason)
{
    struct plugin *plugin = mem_zalloc(sizeof(*plugin));
    if (!plugin)
        return TN_ERR_MEMORY;
    plugin->state = TN_PLUGIN_REFUSED;
    plugin->reason = *reason;
    plugin->directory = mem_strdup(path);
    if (!plugin->directory) {
        plugin_destroy(plugin);
        return TN_ERR_MEMORY;
    }
    return plugin_find_add(set, plugin);
}

// Filter of scandirat. Symbolic links pass, so that they are refused with a reason.
static int plugin_find_is_candidate(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && entry->d_type != DT_REG && entry->d_type != DT_FIFO &&
           entry->d_type != DT_SOCK && entry->d_type != DT_CHR && entry->d_type != DT_BLK;
}

// Sorts by bytes, independently of the locale.
static int plugin_find_by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static tn_status add_from(struct plugin_set *set, int fd, const char *path,
                          const char *name)
{
    struct plugin *plugin = NULL;
    char *directory = mem_printf("%s/%s", path, name);
    if (!directory)
        return TN_ERR_MEMORY;
    tn_status status = find_plugin_at(&set->trust, fd, name, directory, &plugin);
    mem_free(directory);
    return status == TN_OK && plugin ? plugin_find_add(set, plugin) : status;
}

// Appends `path` to set->directories.
static tn_status note_directory(struct plugin_set *set, const char *path)
{
    char *longer =
        set->directories ? mem_printf("%s, %s", set->directories, path) : mem_strdup(path);
    if (!longer)
        return TN_ERR_MEMORY;
    mem_free(set->directories);
    set->directories = longer;
    return TN_OK;
}

// Adds the plugins in the directory `path`. A missing directory is worth a warning only
// when the user asked for it.
static tn_status plugin_find_search(struct plugin_set *set, const char *path,
                                    bool is_asked_for)
{
    if (note_directory(set, path) != TN_OK)
        return TN_ERR_MEMORY;
    int fd = file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    struct dirent **entries = NULL;
    int count = fd < 0 ? -1
                       : scandirat(fd, ".", &entries, plugin_find_is_candidate,
                                   plugin_find_by_name);
    tn_status status = TN_OK;
    if (count < 0 && errno == ENOMEM)
        status = fail_memory(0);
    else if (count < 0 && (is_asked_for || (errno != ENOENT && errno != ENOTDIR)))
        log_write(set->runtime->config, TN_LOG_WARN, "plugin", "%s: %s", path,
                  strerror(errno));
    for (int i = 0; i < count; i++) {
        if (status == TN_OK)
            status = add_from(set, fd, path, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (fd >= 0)
        close(fd);
    return status;
}

// --- the search path -------------------------------------------------------------------

// Directories that were searched, by inode, so that a directory with two names is searched
// once. Only the first 64 are remembered.
struct searched {
    struct {
        dev_t device;
        ino_t inode;
    } seen[64];
    int count;
};

static bool is_new(struct searched *searched, const char *path)
{
    struct stat info;
    if (stat(path, &info))
        return true;
    for (int i = 0; i < searched->count; i++)
        if (searched->seen[i].device == info.st_dev &&
            searched->seen[i].inode == info.st_ino)
            return false;
    if (searched->count < 64) {
        searched->seen[searched->count].device = info.st_dev;
        searched->seen[searched->count++].inode = info.st_ino;
    }
    return true;
}

static tn_status search_entry(struct plugin_set *set, struct searched *searched,
                              const char *entry)
{
    if (entry[0] == '/')
        return is_new(searched, entry) ? plugin_find_search(set, entry, true) : TN_OK;
    // An empty or relative entry would mean the working directory, which is not trusted.
    struct reason reason;
    reason_record(&reason, TN_ERR_REFUSED, REASON_PATH, entry,
                  "the entry '%s' of the plugin path is not absolute", entry);
    return add_refused(set, entry, &reason);
}

static tn_status search_path(struct plugin_set *set, struct searched *searched,
                             const char *path)
{
    tn_status status = TN_OK;
    while (path && status == TN_OK) {
        size_t size = strcspn(path, ":");
        char *entry = mem_printf("%.*s", (int)size, path);
        if (!entry)
            return TN_ERR_MEMORY;
        while (size > 1 && entry[size - 1] == '/')
            entry[--size] = 0;
        status = search_entry(set, searched, entry);
        mem_free(entry);
        path = strchr(path, ':');
        path = path ? path + 1 : NULL;
    }
    return status;
}

static tn_status search_all(struct plugin_set *set, const char *extra_path)
{
    const struct config *config = set->runtime->config;
    struct searched searched = {.count = 0};
    tn_status status = search_path(set, &searched, extra_path);
    if (status == TN_OK)
        status = search_path(set, &searched, config_get(config, "TENON_PLUGIN_PATH"));
    if (status != TN_OK || config_switch(config, "TENON_PLUGINS_ONLY"))
        return status;
    const char *home = config_data_home(config);
    if (home) {
        char *path = mem_printf("%s/tenon/plugins", home);
        if (!path)
            return TN_ERR_MEMORY;
        if (is_new(&searched, path))
            status = plugin_find_search(set, path, false);
        mem_free(path);
    }
    const char *ours = installed_directory(INSTALLED_PLUGINS, config_is_elevated(config));
    const char *relative = installed_relative();
    if (relative)
        log_write(config, TN_LOG_WARN, "plugin",
                  "libtenon was loaded by the relative path %s: plugins are looked for in "
                  "%s, not beside it; write LD_LIBRARY_PATH with absolute paths",
                  relative, ours);
    if (status == TN_OK && is_new(&searched, ours))
        status = plugin_find_search(set, ours, false);
    return status;
}

// --- duplicates, disabled plugins -------------------------------------------------------

static void plugin_find_shadow(struct plugin *loser, const struct plugin *winner)
{
    reason_record(&loser->reason, TN_ERR_REFUSED, REASON_SHADOWED, winner->directory,
                  "%s %s in %s is shadowed by %s in %s", loser->manifest.id,
                  loser->manifest.version, loser->directory, winner->manifest.version,
                  winner->directory);
    loser->state = TN_PLUGIN_SHADOWED;
}

// The highest version wins; of equal versions the first in search order.
static void resolve_duplicates(struct plugin_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        for (uint32_t j = i + 1; j < set->count; j++) {
            struct plugin *a = set->plugins[i], *b = set->plugins[j];
            if (a->state != TN_PLUGIN_FOUND || b->state != TN_PLUGIN_FOUND ||
                strcmp(a->manifest.id, b->manifest.id) != 0)
                continue;
            bool later_wins = version_compare(a->manifest.version, b->manifest.version) < 0;
            plugin_find_shadow(later_wins ? a : b, later_wins ? b : a);
        }
    }
}

static bool plugin_find_disable(struct plugin_set *set, const char *pattern)
{
    bool matched = false;
    for (uint32_t i = 0; i < set->count; i++) {
        struct plugin *plugin = set->plugins[i];
        if (!plugin->manifest.id || fnmatch(pattern, plugin->manifest.id, 0) != 0)
            continue;
        matched = true;
        if (plugin->state != TN_PLUGIN_FOUND)
            continue;
        reason_record(&plugin->reason, TN_ERR_REFUSED, REASON_DISABLED, pattern,
                      "%s is disabled by TENON_PLUGINS_DISABLE", plugin->manifest.id);
        plugin->state = TN_PLUGIN_DISABLED;
    }
    return matched;
}

static tn_status plugin_find_warn_no_match(const struct plugin_set *set,
                                           const char *pattern)
{
    const char **ids = mem_zalloc((set->count + 1) * sizeof(*ids));
    if (!ids)
        return TN_ERR_MEMORY;
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++)
        if (set->plugins[i]->manifest.id)
            ids[count++] = set->plugins[i]->manifest.id;
    const char *nearest = config_nearest(pattern, ids);
    log_write(set->runtime->config, TN_LOG_WARN, "plugin",
              "TENON_PLUGINS_DISABLE: '%s' matches no plugin%s%s%s", pattern,
              nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    mem_free(ids);
    return TN_OK;
}

static tn_status disable_all(struct plugin_set *set)
{
    const char *list = config_get(set->runtime->config, "TENON_PLUGINS_DISABLE");
    tn_status status = TN_OK;
    while (list && *list && status == TN_OK) {
        size_t size = strcspn(list, ",");
        char *pattern = mem_printf("%.*s", (int)size, list);
        if (!pattern)
            return TN_ERR_MEMORY;
        if (*pattern && !plugin_find_disable(set, pattern))
            status = plugin_find_warn_no_match(set, pattern);
        mem_free(pattern);
        list += size + (list[size] == ',');
    }
    return status;
}

tn_status find_plugins(struct plugin_set *set, const char *extra_path)
{
    tn_status status = search_all(set, extra_path);
    if (status != TN_OK)
        return status;
    find_quarantined(set); // first: a version in quarantine must not shadow a lower one
    resolve_duplicates(set);
    warn_refused(set);
    status = disable_all(set);
    fail_clear(); // each plugin keeps its own reason
    return status;
}
