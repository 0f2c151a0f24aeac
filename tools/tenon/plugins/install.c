// SPDX-License-Identifier: MIT
// tenon plugin install, upgrade and remove.
#include "tnp.h"
#include "base/child.h"
#include "commands.h"
#include "base/file.h"
#include "install.h"
#include "seal.h"
#include "store.h"
#include "files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIBE_SECONDS 60

// --- from a folder, an archive, a shared object ----------------------------------------

// Each function makes the plugin <folder>/ID, and gives ID.

static int seal_below(const struct folder *folder, const char *id, enum seal_mode mode)
{
    struct folder fresh;
    int failed = folder_enter(folder, id, &fresh);
    if (failed)
        return failed;
    failed = seal(&fresh, mode);
    folder_close(&fresh);
    return failed;
}

static int take_folder(const char *source, const struct folder *folder, char id[ID_SIZE])
{
    struct identity identity;
    struct folder from;
    int failed = folder_open(source, &from);
    if (failed)
        return failed;
    failed = manifest_identity(&from, &identity);
    if (!failed)
        failed = tree_copy(&from, folder, identity.id);
    if (!failed)
        failed = seal_below(folder, identity.id, SEAL_ADD);
    folder_close(&from);
    if (!failed)
        memcpy(id, identity.id, ID_SIZE);
    return failed;
}

static int note_id(const struct folder *at, const char *name, void *context)
{
    (void)at;
    if (is_plugin_id(name))
        memcpy(context, name, strlen(name) + 1);
    return 0;
}

// Checks the one folder of an unpacked archive, and gives its id.
static int check_unpacked(const struct folder *folder, char id[ID_SIZE])
{
    struct identity identity;
    struct folder fresh;
    id[0] = '\0';
    int failed = folder_each(folder, note_id, id);
    if (!failed && !id[0])
        failed = oops("the archive's folder has no plugin's id for its name");
    if (!failed)
        failed = folder_enter(folder, id, &fresh);
    if (failed)
        return failed;
    failed = manifest_identity(&fresh, &identity);
    if (!failed && strcmp(identity.id, id) != 0)
        failed = oops("its folder is '%s', its plugin '%s': they have to be the same", id,
                      identity.id);
    if (!failed)
        failed = seal(&fresh, SEAL_CHECK);
    folder_close(&fresh);
    return failed;
}

int plugin_of_archive(const char *file, const struct folder *folder, char id[ID_SIZE])
{
    int failed = archive_unpack(file, folder, "plugin");
    if (failed || !check_unpacked(folder, id))
        return failed;
    // The message is about a temporary folder, so the archive's name is put before it.
    char *fault = strdup(oops_text());
    forget_oops();
    failed = fault ? oops("%s: %s", file, fault) : oops_memory();
    free(fault);
    return failed;
}

// Gives the manifest of a shared object, which a child process loads, and writes ops.json.
static int plugin_install_describe(const char *file, const char *ops, char **out_text)
{
    const char *const args[] = {"plugin", "describe", file, "--ops", ops, NULL};
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

static int copy_object(const char *source, const struct folder *folder)
{
    const char *slash = strrchr(source, '/');
    const char *name = slash ? slash + 1 : source;
    char *data = NULL;
    uint64_t size;
    int fd, failed = file_read(source, ARCHIVE_MAX_BYTES, &data, &size);
    if (!failed)
        failed = tree_make_file(folder, name, true, &fd);
    if (!failed) {
        failed = write_whole(fd, data, size, name);
        if (close(fd) && !failed)
            failed = oops("cannot write %s: %s", name, strerror(errno));
    }
    free(data);
    return failed;
}

#define DESCRIBED ".described"
#define OPS "ops.json"

// Makes <folder>/.described with the object, the manifest, and ops.json where there is one.
static int write_described(const char *source, const char *text,
                           const struct folder *folder, struct identity *out)
{
    struct folder fresh;
    int failed = tree_make_folder(folder, DESCRIBED);
    if (!failed)
        failed = folder_enter(folder, DESCRIBED, &fresh);
    if (failed)
        return failed;
    failed = file_write_at(fresh.fd, MANIFEST, fresh.path, text, strlen(text));
    if (!failed)
        failed = copy_object(source, &fresh);
    if (!failed && renameat(folder->fd, OPS, fresh.fd, OPS) && errno != ENOENT)
        failed = oops("cannot write %s/" OPS ": %s", fresh.path, strerror(errno));
    if (!failed)
        failed = manifest_identity(&fresh, out);
    folder_close(&fresh);
    return failed;
}

int plugin_of_object(const char *file, const struct folder *folder, char id[ID_SIZE])
{
    char *text = NULL, *ops = path_join(folder->path, OPS);
    struct identity identity;
    int failed = ops ? plugin_install_describe(file, ops, &text) : oops_memory();
    if (!failed)
        failed = write_described(file, text, folder, &identity);
    if (!failed && renameat(folder->fd, DESCRIBED, folder->fd, identity.id))
        failed = oops("cannot write %s/%s: %s", folder->path, identity.id, strerror(errno));
    if (!failed) // the file may have changed while it was described
        failed = seal_below(folder, identity.id, SEAL_CHECK);
    if (!failed)
        memcpy(id, identity.id, ID_SIZE);
    free(text);
    free(ops);
    return failed;
}

int source_kind(const char *source, enum source_kind *out)
{
    struct stat info;
    if (stat(source, &info))
        return oops("cannot read %s: %s", source, strerror(errno));
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))
        return oops("%s is neither a folder nor a file", source);
    *out = S_ISDIR(info.st_mode)      ? SOURCE_FOLDER
           : ends_with(source, ".so") ? SOURCE_OBJECT
                                      : SOURCE_ARCHIVE;
    return 0;
}

static int plugin_install_take(const char *source, const struct folder *folder,
                               char id[ID_SIZE])
{
    static int (*const takers[])(const char *, const struct folder *, char[ID_SIZE]) = {
        [SOURCE_FOLDER] = take_folder,
        [SOURCE_ARCHIVE] = plugin_of_archive,
        [SOURCE_OBJECT] = plugin_of_object,
    };
    enum source_kind kind;
    int failed = source_kind(source, &kind);
    return failed ? failed : takers[kind](source, folder, id);
}

// --- install and upgrade ---------------------------------------------------------------

// Request of the user.
struct plugin_install_request {
    const char *source;
    bool force, upgrade;
};

// Fails when `fresh` may not replace the installed version, which *out_old is.
static int check_request(const struct plugin_install_request *request,
                         const struct store *store, const struct identity *fresh,
                         struct identity *out_old)
{
    *out_old = (struct identity){0};
    if (!store_has(store, fresh->id))
        return request->upgrade
                   ? oops("'%s' is not installed in %s; 'tenon plugin install' "
                          "installs it",
                          fresh->id, store->at.path)
                   : 0;
    struct folder old = {.fd = -1};
    if (folder_enter(&store->at, fresh->id, &old) || manifest_identity(&old, out_old))
        forget_oops(); // the installed plugin is broken: any version may replace it
    folder_close(&old);
    if (request->force || !out_old->version[0] ||
        tn_version_compare(fresh->version, out_old->version) >= 0)
        return 0;
    return oops("%s %s is installed, and %s is older; --force puts the older one in its "
                "place",
                fresh->id, out_old->version, fresh->version);
}

static int check_fresh(const struct plugin_install_request *request,
                       const struct store *store, const struct folder *fresh,
                       struct identity *identity, struct identity *old)
{
    int failed = manifest_identity(fresh, identity);
    if (!failed && tn_plugin_verify(fresh->path))
        failed = oops_library();
    if (failed) // the failure is about the source, not about its copy
        folder_about(fresh, request->source);
    return failed ? failed : check_request(request, store, identity, old);
}

static int plugin_install_put(const struct plugin_install_request *request,
                              struct store *store)
{
    char id[ID_SIZE];
    struct identity identity = {0}, old = {0};
    struct folder fresh;
    int failed = plugin_install_take(request->source, &store->staging, id);
    if (!failed)
        failed = folder_enter(&store->staging, id, &fresh);
    if (failed)
        return failed;
    failed = check_fresh(request, store, &fresh, &identity, &old);
    if (!failed)
        failed = store_put(store, id);
    folder_close(&fresh);
    bool differs = strcmp(old.version, identity.version) != 0 && old.version[0];
    if (!failed)
        say("installed %s in %s/%s%s%s%s%s\n", id, store->at.path, id, differs ? ": " : "",
            differs ? identity.version : "", differs ? ", before " : "",
            differs ? old.version : "");
    return failed;
}

static int put_at(const struct plugin_install_request *request, const char *path)
{
    struct store store;
    int failed = store_open(&store, path, true);
    if (failed)
        return failed;
    failed = store_stage(&store);
    if (!failed)
        failed = plugin_install_put(request, &store);
    if (failed)
        folder_about(&store.staging, request->source);
    store_close(&store);
    return failed;
}

int plugin_install(const char *source, const char *prefix)
{
    char *path = NULL;
    int failed = store_path(prefix, false, false, &path);
    if (!failed)
        failed = put_at(&(struct plugin_install_request){.source = source}, path);
    free(path);
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
        {"force", 0, NULL, "also replace a newer version", NULL, &force},
    };
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    char *path = NULL;
    struct plugin_install_request request = {args.items[0], force, upgrade};
    failed = store_path(prefix, system, user, &path);
    if (!failed)
        failed = put_at(&request, path);
    free(path);
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
    char *path = NULL;
    struct store store;
    failed = store_path(prefix, system, user, &path);
    if (!failed && !(failed = store_open(&store, path, false))) {
        failed = store_remove(&store, args.items[0]);
        store_close(&store);
        if (!failed)
            say("removed %s/%s\n", path, args.items[0]);
    }
    free(path);
    return failed;
}
