// SPDX-License-Identifier: MIT
// Installed plugins: the lock, the exchange, and recovery after processes that were killed.
#include "store.h"
#include "files/paths.h"
#include "seal.h"
#include "files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAGING ".install-"
#define OLD ".old" // in a staging folder: the old plugin, during replace_in_steps()

int store_path(const char *prefix, bool system, bool user, char **out_path)
{
    if (!!prefix + system + user > 1)
        return misuse("--user, --system and --prefix exclude each other");
    char *path = NULL;
    if (prefix || system)
        path = strdup(prefix ? prefix : tn_installed_folder("plugins"));
    else if (!user_data("tenon/plugins", &path))
        return oops("no folder for plugins: neither XDG_DATA_HOME nor HOME is set; "
                    "give --prefix DIR");
    *out_path = path;
    return path ? 0 : oops_memory();
}

// --- presence --------------------------------------------------------------------------

bool store_has(const struct store *store, const char *id)
{
    struct stat info;
    return fstatat(store->at.fd, id, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

// True when <at>/<name> is a folder that this user owns.
static bool is_own_folder(int at, const char *name)
{
    struct stat info;
    return fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode) &&
           is_own(&info);
}

// Fails when a plugin's name is taken by anything but a folder that this user owns.
static int check_own(const struct store *store, const char *id)
{
    struct stat info;
    if (fstatat(store->at.fd, id, &info, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT
                   ? 0
                   : oops("cannot read %s/%s: %s", store->at.path, id, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return oops("%s/%s is %s, not a plugin's folder: it stays as it is; take it away "
                    "and try again",
                    store->at.path, id,
                    S_ISLNK(info.st_mode) ? "a symbolic link" : "a file");
    return is_own(&info)
               ? 0
               : oops("%s/%s was made by user %u, not by this user (%u): it stays "
                      "as it is; take it away and try again",
                      store->at.path, id, (unsigned)info.st_uid, (unsigned)geteuid());
}

// --- leftovers -------------------------------------------------------------------------

static int put_back_plugin(const struct folder *aside, const char *name, void *context)
{
    const struct store *store = context;
    if (is_plugin_id(name) && is_own_folder(aside->fd, name) && !store_has(store, name))
        renameat(aside->fd, name, store->at.fd, name);
    return 0;
}

// Moves plugins back that a killed process had moved aside and not replaced.
static int put_back(const struct folder *at, const char *name, void *context)
{
    struct folder aside, staging;
    if (strncmp(name, STAGING, strlen(STAGING)) != 0 || !is_own_folder(at->fd, name))
        return 0;
    if (folder_enter(at, name, &staging)) {
        forget_oops();
        return 0;
    }
    if (is_own_folder(staging.fd, OLD) && folder_enter(&staging, OLD, &aside) == 0) {
        folder_each(&aside, put_back_plugin, context);
        folder_close(&aside);
    }
    folder_close(&staging);
    forget_oops();
    return 0;
}

// --- the lock --------------------------------------------------------------------------

static int plugin_store_lock(const struct folder *folder)
{
    int status;
    while ((status = flock(folder->fd, LOCK_EX)) && errno == EINTR)
        ;
    return status ? oops("cannot lock %s: %s", folder->path, strerror(errno)) : 0;
}

int store_open(struct store *store, const char *path, bool make)
{
    *store = (struct store){.at.fd = -1, .staging.fd = -1};
    int failed = folder_reach(path, make, &store->at);
    if (!failed)
        failed = folder_check_private(&store->at);
    if (!failed)
        failed = plugin_store_lock(&store->at);
    if (!failed)
        failed = folder_each(&store->at, put_back, store);
    if (failed)
        store_close(store);
    else
        folder_sweep(&store->at, STAGING);
    return failed;
}

int store_stage(struct store *store)
{
    return folder_stage(&store->at, STAGING, &store->staging);
}

void store_close(struct store *store)
{
    folder_discard(&store->staging);
    folder_close(&store->at);
}

// --- changes ---------------------------------------------------------------------------

static int cannot_put(const struct store *store, const char *id)
{
    return oops("cannot put the plugin at %s/%s: %s", store->at.path, id, strerror(errno));
}

// For file systems without RENAME_EXCHANGE. Between the two renames there is no plugin; if
// the process ends there, the next one puts the old plugin back.
static int replace_in_steps(struct store *store, const char *id)
{
    struct folder aside;
    int failed = tree_make_folder(&store->staging, OLD);
    if (!failed)
        failed = folder_enter(&store->staging, OLD, &aside);
    if (failed)
        return failed;
    if (renameat(store->at.fd, id, aside.fd, id))
        failed = oops("cannot move %s/%s aside: %s", store->at.path, id, strerror(errno));
    if (!failed && renameat(store->staging.fd, id, store->at.fd, id)) {
        failed = cannot_put(store, id);
        renameat(aside.fd, id, store->at.fd, id);
    }
    folder_close(&aside);
    return failed;
}

static int plugin_store_exchange(struct store *store, const char *id)
{
    int from = store->staging.fd, to = store->at.fd;
    unsigned flags = store_has(store, id) ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (renameat2(from, id, to, id, flags) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return cannot_put(store, id);
    if (flags == RENAME_EXCHANGE)
        return replace_in_steps(store, id);
    return renameat(from, id, to, id) ? cannot_put(store, id) : 0;
}

int store_put(struct store *store, const char *id)
{
    struct folder fresh;
    int failed = check_own(store, id);
    if (!failed)
        failed = folder_enter(&store->staging, id, &fresh);
    if (failed)
        return failed;
    failed = tree_sync(&fresh);
    if (!failed)
        failed = plugin_store_exchange(store, id);
    folder_close(&fresh);
    return failed ? failed : folder_sync(&store->at);
}

int store_remove(struct store *store, const char *id)
{
    int failed = check_own(store, id);
    if (!failed && !store_has(store, id))
        failed =
            oops("'%s' is not installed in %s; 'tenon plugin show %s' says where it is", id,
                 store->at.path, id);
    if (!failed)
        failed = store_stage(store);
    if (!failed && renameat(store->at.fd, id, store->staging.fd, id))
        failed = oops("cannot remove %s/%s: %s", store->at.path, id, strerror(errno));
    return failed ? failed : folder_sync(&store->at);
}
