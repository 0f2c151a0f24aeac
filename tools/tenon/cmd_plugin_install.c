// SPDX-License-Identifier: MIT
// tenon plugin install and remove.
//
// A plugin is copied to <plugins>/.install-XXXXXX/ID, checked there, and swapped into
// <plugins>/ID by one rename: at each moment a complete version is in place.
#include "commands.h"
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 8
#define MAX_MANIFEST (16u << 20)

// --- trees of files --------------------------------------------------------------------

static char *path_join(const char *directory, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

static void remove_tree(const char *path, int depth)
{
    DIR *directory = depth < MAX_DEPTH + 2 ? opendir(path) : NULL;
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *inner = path_join(path, entry->d_name);
        struct stat info;
        if (inner && lstat(inner, &info) == 0 && S_ISDIR(info.st_mode))
            remove_tree(inner, depth + 1);
        else if (inner)
            unlink(inner);
        free(inner);
    }
    if (directory)
        closedir(directory);
    rmdir(path);
}

static int copy_bytes(int from, int to, const char *source, const char *target)
{
    char block[1 << 16];
    ssize_t got;
    while ((got = read(from, block, sizeof(block))) > 0) {
        for (ssize_t done = 0; done < got;) {
            ssize_t put = write(to, block + done, (size_t)(got - done));
            if (put < 0)
                return oops("cannot write %s: %s", target, strerror(errno));
            done += put;
        }
    }
    if (got < 0)
        return oops("cannot read %s: %s", source, strerror(errno));
    return fsync(to) ? oops("cannot write %s: %s", target, strerror(errno)) : 0;
}

static int copy_file(const char *source, const char *target, mode_t mode)
{
    int from = open(source, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return oops("cannot read %s: %s", source, strerror(errno));
    int to = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0) {
        close(from);
        return oops("cannot write %s: %s", target, strerror(errno));
    }
    int failed = copy_bytes(from, to, source, target);
    fchmod(to, mode & 0111 ? 0755 : 0644);
    close(from);
    if (close(to) && !failed)
        failed = oops("cannot write %s: %s", target, strerror(errno));
    return failed;
}

static int copy_tree(const char *source, const char *target, int depth);

static int copy_entry(const char *source, const char *target, int depth)
{
    struct stat info;
    if (lstat(source, &info))
        return oops("cannot read %s: %s", source, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return copy_tree(source, target, depth + 1);
    if (S_ISREG(info.st_mode))
        return copy_file(source, target, info.st_mode);
    return oops("%s: a plugin holds files and directories only, no links or devices",
                source);
}

static int copy_tree(const char *source, const char *target, int depth)
{
    if (depth > MAX_DEPTH)
        return oops("%s: more than %d directories deep", source, MAX_DEPTH);
    DIR *directory = opendir(source);
    if (!directory)
        return oops("cannot read %s: %s", source, strerror(errno));
    int failed = 0;
    if (mkdir(target, 0755))
        failed = oops("cannot write %s: %s", target, strerror(errno));
    struct dirent *entry;
    while (!failed && (entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *from = path_join(source, entry->d_name);
        char *to = path_join(target, entry->d_name);
        failed = from && to ? copy_entry(from, to, depth) : oops_memory();
        free(from);
        free(to);
    }
    closedir(directory);
    return failed;
}

// --- where plugins live ----------------------------------------------------------------

static int make_directories(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        int bad = mkdir(path, 0755) && errno != EEXIST;
        *slash = '/';
        if (bad)
            return oops("cannot make the directories of %s: %s", path, strerror(errno));
    }
    if (mkdir(path, 0755) && errno != EEXIST)
        return oops("cannot make %s: %s", path, strerror(errno));
    return 0;
}

// Gives the directory of the user's plugins.
static char *plugin_home(const char *prefix)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (prefix)
        return strdup(prefix);
    if (data && data[0] == '/')
        return path_join(data, "tenon/plugins");
    return home && home[0] == '/' ? path_join(home, ".local/share/tenon/plugins") : NULL;
}

static bool is_id(const char *id)
{
    return id[0] && id[0] != '.' && strlen(id) < 64 &&
           strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-") == strlen(id);
}

// Gives the id that a plugin directory's manifest states.
static int manifest_id(const char *directory, char **out_id)
{
    char *path = path_join(directory, "plugin.json"), *text = NULL;
    uint64_t size;
    int failed = path ? file_read(path, MAX_MANIFEST, &text, &size) : oops_memory();
    json_error_t error;
    json_t *manifest =
        failed ? NULL : json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    const char *id = json_string_value(json_object_get(manifest, "id"));
    if (!failed && !manifest)
        failed = oops("%s:%d: %s", path, error.line, error.text);
    else if (!failed && (!id || !is_id(id)))
        failed = oops("%s: expected an \"id\" of [a-z0-9.-], got '%s'", path, id ? id : "");
    if (!failed && !(*out_id = strdup(id)))
        failed = oops_memory();
    json_decref(manifest);
    free(text);
    free(path);
    return failed;
}

// --- install ---------------------------------------------------------------------------

// Puts `fresh` at `final`. What stood there stands at `fresh` afterwards.
static int swap_in(const char *fresh, const char *final)
{
    if (rename(fresh, final) == 0)
        return 0;
    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, final, RENAME_EXCHANGE) == 0)
        return 0;
    return oops("cannot put the plugin at %s: %s", final, strerror(errno));
}

static int install_into(const char *source, const char *id, const char *plugins)
{
    char *staging = path_join(plugins, ".install-XXXXXX");
    char *final = path_join(plugins, id), *fresh = NULL;
    int failed = staging && final ? 0 : oops_memory();
    bool made = !failed && mkdtemp(staging);
    if (!failed && !made)
        failed = oops("cannot make a directory in %s: %s", plugins, strerror(errno));
    if (!failed)
        failed =
            (fresh = path_join(staging, id)) ? copy_tree(source, fresh, 0) : oops_memory();
    if (!failed && tn_plugin_verify(fresh))
        failed = oops_library();
    if (!failed)
        failed = swap_in(fresh, final);
    if (made)
        remove_tree(staging, 0);
    if (!failed)
        printf("installed %s in %s\n", id, final);
    free(fresh);
    free(final);
    free(staging);
    return failed;
}

int cmd_plugin_install(const struct command *self, int argc, char **argv)
{
    const char *prefix = NULL;
    const struct option options[] = {
        {"prefix", 0, "DIR", "the directory of plugins to copy to", &prefix, NULL}};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    if (tn_plugin_verify(args.items[0]))
        return oops_library();
    char *id = NULL, *plugins = plugin_home(prefix);
    if (!plugins)
        return oops("no place for plugins: neither XDG_DATA_HOME nor HOME is set; "
                    "give --prefix DIR");
    failed = manifest_id(args.items[0], &id);
    if (!failed)
        failed = make_directories(plugins);
    if (!failed)
        failed = install_into(args.items[0], id, plugins);
    free(id);
    free(plugins);
    return failed;
}

// --- remove ----------------------------------------------------------------------------

// Takes the plugin out of sight by one rename, then deletes it at leisure.
static int remove_from(const char *id, const char *plugins)
{
    char *path = path_join(plugins, id), *staging = path_join(plugins, ".remove-XXXXXX");
    char *doomed = NULL;
    struct stat info;
    int failed = path && staging ? 0 : oops_memory();
    if (!failed && (lstat(path, &info) || !S_ISDIR(info.st_mode)))
        failed =
            oops("'%s' is not installed in %s; 'tenon plugin show %s' says where it is", id,
                 plugins, id);
    bool made = !failed && mkdtemp(staging);
    if (!failed && !made)
        failed = oops("cannot make a directory in %s: %s", plugins, strerror(errno));
    if (!failed && !(doomed = path_join(staging, id)))
        failed = oops_memory();
    if (!failed && rename(path, doomed))
        failed = oops("cannot remove %s: %s", path, strerror(errno));
    if (made)
        remove_tree(staging, 0);
    if (!failed)
        printf("removed %s\n", path);
    free(doomed);
    free(staging);
    free(path);
    return failed;
}

int cmd_plugin_remove(const struct command *self, int argc, char **argv)
{
    const char *prefix = NULL;
    const struct option options[] = {
        {"prefix", 0, "DIR", "the directory of plugins to remove from", &prefix, NULL}};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    if (!is_id(args.items[0]))
        return misuse("'%s' is no plugin id: expected [a-z0-9.-]", args.items[0]);
    char *plugins = plugin_home(prefix);
    if (!plugins)
        return oops("no place for plugins: neither XDG_DATA_HOME nor HOME is set; "
                    "give --prefix DIR");
    failed = remove_from(args.items[0], plugins);
    free(plugins);
    return failed;
}
