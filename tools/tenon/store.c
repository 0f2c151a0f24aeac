// SPDX-License-Identifier: MIT
// Installed plugins: the lock, the exchange, and what is done about those who were killed.
#include "store.h"
#include "place.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAGING ".install-"
#define OLD ".old" // in a staging folder: what could not be exchanged in one step

int store_place(const char *prefix, bool system, bool user, char **out_path)
{
    if (!!prefix + system + user > 1)
        return misuse("--user, --system and --prefix exclude each other");
    char *path = NULL;
    if (prefix || system)
        path = strdup(prefix ? prefix : TN_SYSTEM_PLUGIN_DIR);
    else if (!user_data("tenon/plugins", &path))
        return oops("no place for plugins: neither XDG_DATA_HOME nor HOME is set; "
                    "give --prefix DIR");
    *out_path = path;
    return path ? 0 : oops_memory();
}

// --- leftovers -------------------------------------------------------------------------

// A plugin that was moved aside and whose successor never came goes back to its place.
static void put_back(const struct store *store, const char *staging)
{
    char *aside = path_join(staging, OLD);
    DIR *stream = aside ? opendir(aside) : NULL;
    struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        if (entry->d_name[0] == '.' || store_has(store, entry->d_name))
            continue;
        renameat(dirfd(stream), entry->d_name, store->fd, entry->d_name);
    }
    if (stream)
        closedir(stream);
    free(aside);
}

static void sweep(const struct store *store)
{
    DIR *stream = opendir(store->path);
    struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        if (strncmp(entry->d_name, STAGING, strlen(STAGING)) != 0)
            continue;
        char *path = path_join(store->path, entry->d_name);
        if (path) {
            put_back(store, path);
            tree_remove(path);
        }
        free(path);
    }
    if (stream)
        closedir(stream);
}

// --- one at a time ---------------------------------------------------------------------

static int lock(int fd)
{
    int status;
    while ((status = flock(fd, LOCK_EX)) && errno == EINTR)
        ;
    return status;
}

int store_open(struct store *store, const char *path, bool make)
{
    *store = (struct store){.fd = -1};
    int failed = make ? folder_make(path) : 0;
    if (!failed && !(store->path = strdup(path)))
        failed = oops_memory();
    if (!failed)
        store->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!failed && store->fd < 0)
        failed = oops("cannot open %s: %s", path, strerror(errno));
    if (!failed && lock(store->fd))
        failed = oops("cannot lock %s: %s", path, strerror(errno));
    if (failed)
        store_close(store);
    else
        sweep(store);
    return failed;
}

int store_stage(struct store *store)
{
    store->staging = path_join(store->path, STAGING "XXXXXX");
    if (!store->staging)
        return oops_memory();
    if (mkdtemp(store->staging))
        return 0;
    int failed = oops("cannot make a folder in %s: %s", store->path, strerror(errno));
    free(store->staging);
    store->staging = NULL;
    return failed;
}

void store_close(struct store *store)
{
    if (store->staging)
        tree_remove(store->staging);
    if (store->fd >= 0)
        close(store->fd);
    free(store->staging);
    free(store->path);
    *store = (struct store){.fd = -1};
}

// --- changes ---------------------------------------------------------------------------

bool store_has(const struct store *store, const char *id)
{
    struct stat info;
    return fstatat(store->fd, id, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

// For file systems that cannot exchange. Between the two renames there is no plugin; a
// process that ends there leaves the old one to be put back by the next.
static int replace_in_steps(struct store *store, const char *fresh, const char *id)
{
    char *aside = path_join(store->staging, OLD);
    char *old = aside ? path_join(aside, id) : NULL;
    int failed = old ? 0 : oops_memory();
    if (!failed && (mkdir(aside, 0700) || renameat(store->fd, id, AT_FDCWD, old)))
        failed = oops("cannot move %s/%s aside: %s", store->path, id, strerror(errno));
    if (!failed && renameat(AT_FDCWD, fresh, store->fd, id)) {
        failed =
            oops("cannot put the plugin at %s/%s: %s", store->path, id, strerror(errno));
        renameat(AT_FDCWD, old, store->fd, id);
    }
    free(old);
    free(aside);
    return failed;
}

static int exchange(struct store *store, const char *fresh, const char *id)
{
    unsigned flags = store_has(store, id) ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (renameat2(AT_FDCWD, fresh, store->fd, id, flags) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return oops("cannot put the plugin at %s/%s: %s", store->path, id, strerror(errno));
    if (flags == RENAME_EXCHANGE)
        return replace_in_steps(store, fresh, id);
    return renameat(AT_FDCWD, fresh, store->fd, id)
               ? oops("cannot put the plugin at %s/%s: %s", store->path, id,
                      strerror(errno))
               : 0;
}

int store_put(struct store *store, const char *id)
{
    char *fresh = path_join(store->staging, id);
    int failed = fresh ? tree_sync(fresh) : oops_memory();
    if (!failed)
        failed = exchange(store, fresh, id);
    free(fresh);
    return failed ? failed : folder_sync(store->path);
}

int store_remove(struct store *store, const char *id)
{
    struct stat info;
    if (fstatat(store->fd, id, &info, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(info.st_mode))
        return oops("'%s' is not installed in %s; 'tenon plugin show %s' says where it is",
                    id, store->path, id);
    int failed = store_stage(store);
    char *doomed = failed ? NULL : path_join(store->staging, id);
    if (!failed && !doomed)
        failed = oops_memory();
    if (!failed && renameat(store->fd, id, AT_FDCWD, doomed))
        failed = oops("cannot remove %s/%s: %s", store->path, id, strerror(errno));
    free(doomed);
    return failed ? failed : folder_sync(store->path);
}
