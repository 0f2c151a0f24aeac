// SPDX-License-Identifier: MIT
// tenon plugin install, upgrade and remove.
#include "tnp.h"
#include "child.h"
#include "commands.h"
#include "file.h"
#include "install.h"
#include "seal.h"
#include "store.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIBE_SECONDS 60

// --- from a folder, an archive, a shared object ----------------------------------------

// Each of these makes <folder>/ID, and tells ID.

static int take_folder(const char *source, const char *folder, char id[ID_SIZE])
{
    struct identity identity;
    int failed = manifest_identity(source, &identity);
    char *fresh = failed ? NULL : path_join(folder, identity.id);
    if (!failed)
        failed = fresh ? tree_copy(source, fresh) : oops_memory();
    if (!failed)
        failed = seal(fresh, SEAL_ADD);
    free(fresh);
    if (!failed)
        memcpy(id, identity.id, ID_SIZE);
    return failed;
}

// The one folder of an archive that was unpacked.
static int find_folder(const char *folder, char id[ID_SIZE])
{
    DIR *stream = opendir(folder);
    struct dirent *entry;
    id[0] = '\0';
    while (stream && (entry = readdir(stream)))
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < ID_SIZE)
            memcpy(id, entry->d_name, strlen(entry->d_name) + 1);
    if (stream)
        closedir(stream);
    return id[0] ? 0 : oops("the archive's folder has no plugin's id for its name");
}

static int check_unpacked(const char *folder, char id[ID_SIZE])
{
    struct identity identity;
    int failed = find_folder(folder, id);
    char *fresh = failed ? NULL : path_join(folder, id);
    if (!failed)
        failed = fresh ? manifest_identity(fresh, &identity) : oops_memory();
    if (!failed && strcmp(identity.id, id) != 0)
        failed = oops("its folder is '%s', its plugin '%s': they have to be the same", id,
                      identity.id);
    if (!failed)
        failed = seal(fresh, SEAL_CHECK);
    free(fresh);
    return failed;
}

static int take_archive(const char *source, const char *folder, char id[ID_SIZE])
{
    int failed = archive_unpack(source, folder);
    if (failed || !check_unpacked(folder, id))
        return failed;
    // The failure speaks of files in a folder that is gone when it is read.
    char *fault = strdup(oops_text());
    forget_oops();
    failed = fault ? oops("%s: %s", source, fault) : oops_memory();
    free(fault);
    return failed;
}

// The manifest of a shared object, which is loaded in a process of its own.
static int describe(const char *file, char **out_text)
{
    const char *const args[] = {"plugin", "describe", file, NULL};
    char fault[CHILD_FAULT];
    struct child child;
    int failed = child_run(args, NULL, DESCRIBE_SECONDS, &child);
    if (failed)
        return failed;
    child.err[strcspn(child.err, "\n")] = '\0';
    if (child_fault(&child, fault))
        failed = oops("%s %s while it was loaded", file, fault);
    else if (child.status)
        failed = oops("%s", strncmp(child.err, "tenon: ", 7) ? child.err : child.err + 7);
    else if (!(*out_text = strdup(child.out)))
        failed = oops_memory();
    child_finish(&child);
    return failed;
}

static int write_described(const char *source, const char *text, const char *folder)
{
    const char *slash = strrchr(source, '/');
    const char *name = slash ? slash + 1 : source;
    char *data = NULL, *manifest = path_join(folder, "plugin.json");
    uint64_t size;
    int fd, failed = manifest ? folder_make(folder) : oops_memory();
    if (!failed)
        failed = file_write(manifest, text, strlen(text));
    if (!failed)
        failed = file_read(source, ARCHIVE_MAX_BYTES, &data, &size);
    if (!failed)
        failed = tree_make_file(folder, name, true, &fd);
    if (!failed) {
        failed = write_whole(fd, data, size, name);
        close(fd);
    }
    free(data);
    free(manifest);
    return failed;
}

int plugin_of_object(const char *file, const char *folder, char id[ID_SIZE])
{
    char *text = NULL, *described = path_join(folder, ".described"), *fresh = NULL;
    struct identity identity;
    int failed = described ? describe(file, &text) : oops_memory();
    if (!failed)
        failed = write_described(file, text, described);
    if (!failed)
        failed = manifest_identity(described, &identity);
    if (!failed)
        failed = (fresh = path_join(folder, identity.id)) ? 0 : oops_memory();
    if (!failed && rename(described, fresh))
        failed = oops("cannot write %s: %s", fresh, strerror(errno));
    if (!failed)
        failed = seal(fresh, SEAL_CHECK); // it may have changed while it was described
    if (!failed)
        memcpy(id, identity.id, ID_SIZE);
    free(fresh);
    free(described);
    free(text);
    return failed;
}

static int take(const char *source, const char *folder, char id[ID_SIZE])
{
    struct stat info;
    if (stat(source, &info))
        return oops("cannot read %s: %s", source, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return take_folder(source, folder, id);
    if (!S_ISREG(info.st_mode))
        return oops("%s is neither a folder nor a file", source);
    return ends_with(source, ".so") ? plugin_of_object(source, folder, id)
                                    : take_archive(source, folder, id);
}

// --- install and upgrade ---------------------------------------------------------------

struct order {
    const char *source;
    bool force, upgrade;
};

// Whether `fresh` may come in the place of what is installed, whose version this gives.
static int check_order(const struct order *order, const struct store *store,
                       const struct identity *fresh, struct identity *out_old)
{
    *out_old = (struct identity){0};
    if (!store_has(store, fresh->id))
        return order->upgrade ? oops("'%s' is not installed in %s; 'tenon plugin install' "
                                     "installs it",
                                     fresh->id, store->path)
                              : 0;
    char *path = path_join(store->path, fresh->id);
    if (!path)
        return oops_memory();
    if (manifest_identity(path, out_old)) // broken: anything is better
        forget_oops();
    free(path);
    if (order->force || !out_old->version[0] ||
        tn_version_compare(fresh->version, out_old->version) >= 0)
        return 0;
    return oops("%s %s is installed, and %s is older; --force puts the older one in its "
                "place",
                fresh->id, out_old->version, fresh->version);
}

static int put(const struct order *order, struct store *store)
{
    char id[ID_SIZE];
    struct identity identity = {0}, old = {0};
    int failed = take(order->source, store->staging, id);
    char *fresh = failed ? NULL : path_join(store->staging, id);
    if (!failed)
        failed = fresh ? manifest_identity(fresh, &identity) : oops_memory();
    if (!failed && tn_plugin_verify(fresh))
        failed = oops_library();
    if (!failed)
        failed = check_order(order, store, &identity, &old);
    if (!failed)
        failed = store_put(store, id);
    bool differs = strcmp(old.version, identity.version) != 0 && old.version[0];
    if (!failed)
        printf("installed %s in %s/%s%s%s%s%s\n", id, store->path, id, differs ? ": " : "",
               differs ? identity.version : "", differs ? ", before " : "",
               differs ? old.version : "");
    free(fresh);
    return failed;
}

static int put_at(const struct order *order, const char *place)
{
    struct store store;
    int failed = store_open(&store, place, true);
    if (failed)
        return failed;
    failed = store_stage(&store);
    if (!failed)
        failed = put(order, &store);
    store_close(&store);
    return failed;
}

int plugin_install(const char *source, const char *prefix)
{
    char *place = NULL;
    int failed = store_place(prefix, false, false, &place);
    if (!failed)
        failed = put_at(&(struct order){.source = source}, place);
    free(place);
    return failed;
}

static int run_install(const struct command *self, bool upgrade, int argc, char **argv)
{
    const char *prefix = NULL;
    bool system = false, user = false, force = false;
    const struct option options[] = {
        {"user", 0, NULL, "to the user's plugins (the default)", NULL, &user},
        {"system", 0, NULL, "to the plugins of all users", NULL, &system},
        {"prefix", 0, "DIR", "to this folder of plugins", &prefix, NULL},
        {"force", 0, NULL, "also in the place of a newer version", NULL, &force},
    };
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    char *place = NULL;
    struct order order = {args.items[0], force, upgrade};
    failed = store_place(prefix, system, user, &place);
    if (!failed)
        failed = put_at(&order, place);
    free(place);
    return failed;
}

int cmd_plugin_install(const struct command *self, int argc, char **argv)
{
    return run_install(self, false, argc, argv);
}

int cmd_plugin_upgrade(const struct command *self, int argc, char **argv)
{
    return run_install(self, true, argc, argv);
}

// --- remove ----------------------------------------------------------------------------

int cmd_plugin_remove(const struct command *self, int argc, char **argv)
{
    const char *prefix = NULL;
    bool system = false, user = false;
    const struct option options[] = {
        {"user", 0, NULL, "from the user's plugins (the default)", NULL, &user},
        {"system", 0, NULL, "from the plugins of all users", NULL, &system},
        {"prefix", 0, "DIR", "from this folder of plugins", &prefix, NULL},
    };
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    if (!is_plugin_id(args.items[0]))
        return misuse("'%s' is no plugin id: expected [a-z0-9.-]", args.items[0]);
    char *place = NULL;
    struct store store;
    failed = store_place(prefix, system, user, &place);
    if (!failed && !(failed = store_open(&store, place, false))) {
        failed = store_remove(&store, args.items[0]);
        store_close(&store);
        if (!failed)
            printf("removed %s/%s\n", place, args.items[0]);
    }
    free(place);
    return failed;
}
