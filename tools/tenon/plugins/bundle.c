// SPDX-License-Identifier: MIT
// tenon plugin bundle: a folder with libtenon and the plugins that an application needs.
#include "base/file.h"
#include "commands.h"
#include "files/paths.h"
#include "find.h"
#include "install.h"
#include "files/tree.h"

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY_MAX_BYTES (UINT64_C(1) << 30)
#define ID_PREFIX "org.tenon." // of our own plugins, whose ids may be given without it

// Where a bundle's files go, and what the user asked for.
struct bundle {
    const char *directory;
    const char *plugins; // <directory>/lib/tenon/plugins
    uint64_t bytes;      // of the libraries and plugins copied
};

// --- libraries -------------------------------------------------------------------------

// Gives the absolute path of the loaded libtenon, as the linker names it (libtenon.so.0).
static int find_libtenon(char out_path[PATH_MAX])
{
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)tn_last_error, &info) || !info.dli_fname ||
        info.dli_fname[0] != '/')
        return oops(
            "libtenon was not loaded by an absolute path; write LD_LIBRARY_PATH with "
            "absolute paths");
    snprintf(out_path, PATH_MAX, "%s", info.dli_fname);
    return 0;
}

static int copy_library(struct bundle *bundle, const char *source)
{
    char *data = NULL, target[PATH_MAX];
    uint64_t size = 0;
    int length = snprintf(target, sizeof(target), "%s/lib/%s", bundle->directory,
                          strrchr(source, '/') + 1);
    if (length < 0 || (size_t)length >= sizeof(target))
        return oops("%s: the path is too long", bundle->directory);
    int failed = file_read(source, LIBRARY_MAX_BYTES, &data, &size);
    if (!failed)
        failed = file_write_new(target, 0755, data, size);
    free(data);
    if (!failed) {
        bundle->bytes += size;
        say("copied %s\n", target);
    }
    return failed;
}

// Calls `act` with the path of libtenon, then of those libraries of ours beside it that
// `names` lists ("lm,train"; NULL: none), until one fails.
static int each_library(struct bundle *bundle, const char *names,
                        int (*act)(struct bundle *bundle, const char *source))
{
    char libtenon[PATH_MAX], path[PATH_MAX];
    int failed = find_libtenon(libtenon);
    if (!failed)
        failed = act(bundle, libtenon);
    if (failed || !names)
        return failed;
    char *list = strdup(names), *rest = list;
    if (!list)
        return oops_memory();
    const char *slash = strrchr(libtenon, '/');
    const char *suffix = slash + strlen("/libtenon"); // ".so.0"
    for (char *name; !failed && (name = strsep(&rest, ","));) {
        int length = snprintf(path, sizeof(path), "%.*s/libtenon-%s%s",
                              (int)(slash - libtenon), libtenon, name, suffix);
        failed = length < 0 || (size_t)length >= sizeof(path) ? oops("%s: too long", name)
                                                              : act(bundle, path);
    }
    free(list);
    return failed;
}

static int check_library(struct bundle *bundle, const char *source)
{
    (void)bundle;
    return access(source, R_OK) ? oops("cannot read %s: %s; expected 'lm' or 'train' of an "
                                       "installation",
                                       source, strerror(errno))
                                : 0;
}

// --- plugins ---------------------------------------------------------------------------

// True when `pattern`, an id or a glob, with or without our prefix, means this plugin.
static bool is_meant(const char *pattern, const char *id)
{
    size_t prefix = strlen(ID_PREFIX);
    return fnmatch(pattern, id, 0) == 0 ||
           (strncmp(id, ID_PREFIX, prefix) == 0 && fnmatch(pattern, id + prefix, 0) == 0);
}

static uint64_t plugin_bundle_folder_bytes(const char *path)
{
    struct folder folder;
    struct file_tree tree = {0};
    uint64_t sum = 0;
    if (folder_open(path, &folder)) {
        forget_oops();
        return 0;
    }
    if (tree_list(&folder, &tree))
        forget_oops();
    for (size_t i = 0; i < tree.count; i++)
        sum += tree.files[i].size;
    tree_finish(&tree);
    folder_close(&folder);
    return sum;
}

// Copies the plugins in use that `pattern` means, or only finds out whether there is one.
static int copy_plugins(struct bundle *bundle, const tn_runtime *runtime,
                        const char *pattern, bool only_check)
{
    int found = 0, failed = 0;
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n && !failed; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info) || !plugin_is_in_use(&info) ||
            !is_meant(pattern, info.id))
            continue;
        found++;
        if (only_check)
            continue;
        failed = plugin_install(info.directory, bundle->plugins);
        bundle->bytes += failed ? 0 : plugin_bundle_folder_bytes(info.directory);
    }
    return failed || found ? failed : no_plugin(runtime, pattern);
}

static bool has_plugin(const struct bundle *bundle, const char *id)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s/plugin.json", bundle->plugins, id);
    return access(path, F_OK) == 0;
}

// --- the command -----------------------------------------------------------------------

// Makes `directory` with its folder lib. Fails where it has something in it.
static int make_directory(const char *directory)
{
    char lib[PATH_MAX];
    int length = snprintf(lib, sizeof(lib), "%s/lib", directory);
    if (length < 0 || (size_t)length >= sizeof(lib) - 32)
        return oops("%s: the path is too long", directory);
    if (mkdir(directory, 0755) && errno != EEXIST)
        return oops("cannot make %s: %s", directory, strerror(errno));
    if (mkdir(lib, 0755))
        return oops("cannot make %s: %s; a bundle is made in a new folder", lib,
                    strerror(errno));
    return 0;
}

// Nothing is made where a library or plugin is missing.
static int plugin_bundle_fill(struct bundle *bundle, const tn_runtime *runtime,
                              const char *libraries, char **patterns, int count)
{
    int failed = each_library(bundle, libraries, check_library);
    for (int i = 0; i < count && !failed; i++)
        failed = copy_plugins(bundle, runtime, patterns[i], true);
    if (!failed)
        failed = make_directory(bundle->directory);
    if (!failed)
        failed = each_library(bundle, libraries, copy_library);
    for (int i = 0; i < count && !failed; i++)
        failed = copy_plugins(bundle, runtime, patterns[i], false);
    if (failed)
        return failed;
    if (!has_plugin(bundle, ID_PREFIX "base"))
        say("note: " ID_PREFIX "base is not in it, of whose operators most packs make "
            "theirs\n");
    say("%s: %.1f MB\n", bundle->directory, (double)bundle->bytes / 1e6);
    return 0;
}

int cmd_plugin_bundle(const struct command *self, int argc, char **argv)
{
    const char *libraries = NULL;
    const struct option options[] = {
        {"libraries", 0, "LIST", "libraries to add, of lm and train", &libraries, NULL}};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 2, -1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    struct bundle bundle = {.directory = args.items[args.count - 1]};
    char *plugins = path_join(bundle.directory, "lib/tenon/plugins");
    tn_runtime *runtime;
    bundle.plugins = plugins;
    failed = plugins ? open_runtime(&runtime) : oops_memory();
    if (!failed) {
        failed =
            plugin_bundle_fill(&bundle, runtime, libraries, args.items, args.count - 1);
        tn_runtime_close(runtime);
    }
    free(plugins);
    return failed;
}
