// SPDX-License-Identifier: MIT
// tenon plugin sign: signs plugin.json, which lists every file.
#include "commands.h"
#include "base/file.h"
#include "install.h"
#include "keys.h"
#include "files/paths.h"
#include "seal.h"
#include "store.h"
#include "tnp.h"
#include "files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SIGNATURE 4096

// --- one folder ------------------------------------------------------------------------

static int write_signature(const struct folder *folder, const struct secret_key *key)
{
    char *data = NULL, *text = NULL;
    uint64_t size;
    int failed = manifest_read(folder, &data, &size);
    if (!failed)
        failed = key_sign(key, data, (size_t)size, "file:" MANIFEST "\thashed", &text);
    if (!failed)
        failed = file_write_at(folder->fd, SIGNATURE, SIGNATURE, text, strlen(text));
    free(text);
    free(data);
    return failed;
}

static int drop_signature(const struct folder *folder)
{
    return unlinkat(folder->fd, SIGNATURE, 0) && errno != ENOENT
               ? oops("cannot write %s/" SIGNATURE ": %s", folder->path, strerror(errno))
               : 0;
}

// Signs a copy of a plugin, whose files have to be as its manifest lists them.
static int sign_copy(const struct folder *copy, const struct secret_key *key)
{
    int failed = drop_signature(copy);
    if (!failed)
        failed = seal(copy, SEAL_ADD);
    return failed ? failed : write_signature(copy, key);
}

static void plugin_sign_tell(const struct identity *identity, const struct secret_key *key,
                             const char *where)
{
    char number[KEY_NUMBER_SIZE];
    key_number(key->number, number);
    say("signed %s %s with key %s%s%s\n", identity->id, identity->version, number,
        where ? ": " : "", where ? where : "");
}

static int sign_folder(const char *path, const struct secret_key *key)
{
    struct identity identity;
    struct folder folder;
    int failed = folder_open(path, &folder);
    if (failed)
        return failed;
    failed = manifest_identity(&folder, &identity);
    if (!failed)
        failed = seal(&folder, SEAL_RENEW);
    if (!failed)
        failed = write_signature(&folder, key);
    if (!failed)
        plugin_sign_tell(&identity, key, NULL);
    folder_close(&folder);
    return failed;
}

// --- archives and shared objects -------------------------------------------------------

static int pack_signed(const struct folder *copy, const struct secret_key *key,
                       const char *archive)
{
    struct identity identity;
    char *own = NULL;
    int failed = manifest_identity(copy, &identity);
    if (!failed && !archive &&
        asprintf(&own, "%s-%s.tnp", identity.id, identity.version) < 0)
        failed = oops_memory();
    if (!failed)
        failed = sign_copy(copy, key);
    if (!failed)
        failed = archive_pack(copy, identity.id, archive ? archive : own);
    if (!failed)
        plugin_sign_tell(&identity, key, archive ? archive : own);
    free(own);
    return failed;
}

// An archive is replaced; for a shared object an archive is made.
static int sign_file(const char *path, bool is_object, const struct secret_key *key)
{
    char id[ID_SIZE];
    struct folder workplace, copy;
    int failed = temporary_folder(&workplace);
    if (failed)
        return failed;
    failed = is_object ? plugin_of_object(path, &workplace, id)
                       : plugin_of_archive(path, &workplace, id);
    if (!failed)
        failed = folder_enter(&workplace, id, &copy);
    if (!failed) {
        failed = pack_signed(&copy, key, is_object ? NULL : path);
        folder_close(&copy);
    }
    folder_about(&workplace, path);
    folder_discard(&workplace);
    return failed;
}

static int sign_source(const char *source, const struct secret_key *key)
{
    enum source_kind kind;
    int failed = source_kind(source, &kind);
    if (failed)
        return failed;
    return kind == SOURCE_FOLDER ? sign_folder(source, key)
                                 : sign_file(source, kind == SOURCE_OBJECT, key);
}

// --- an installation -------------------------------------------------------------------

struct signing {
    struct store *store;
    const struct secret_key *key;
    bool force;
    size_t found, done, left;
};

// Signs a copy in the staging folder and exchanges it with the plugin, so that a complete
// plugin is in place at each moment.
static int sign_staged(struct signing *signing, const struct folder *plugin,
                       const struct identity *identity)
{
    struct folder copy;
    int failed = tree_copy(plugin, &signing->store->staging, identity->id);
    if (!failed)
        failed = folder_enter(&signing->store->staging, identity->id, &copy);
    if (failed)
        return failed;
    failed = sign_copy(&copy, signing->key);
    folder_about(&copy, plugin->path);
    folder_close(&copy);
    return failed ? failed : store_put(signing->store, identity->id);
}

// True when the plugin has a signature; gives the number of its key.
static bool is_signed_by(const struct folder *plugin, unsigned char number[8])
{
    char *text = NULL;
    uint64_t size;
    int fd = open_below(plugin->fd, SIGNATURE, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0 || file_read_from(fd, SIGNATURE, MAX_SIGNATURE, &text, &size)) {
        forget_oops();
        return false;
    }
    bool is_signed = key_of_signature(text, number);
    free(text);
    return is_signed;
}

static int sign_plugin(struct signing *signing, const struct folder *plugin)
{
    struct identity identity;
    unsigned char number[8];
    char text[KEY_NUMBER_SIZE];
    int failed = manifest_identity(plugin, &identity);
    if (failed)
        return failed;
    bool is_signed = is_signed_by(plugin, number);
    if (is_signed && !signing->force && memcmp(number, signing->key->number, 8) != 0) {
        key_number(number, text);
        say("left as it is: %s %s, signed with key %s (--force signs it anew)\n",
            identity.id, identity.version, text);
        signing->left++;
        return 0;
    }
    failed = sign_staged(signing, plugin, &identity);
    if (!failed)
        plugin_sign_tell(&identity, signing->key, NULL);
    signing->done += !failed;
    return failed;
}

// Skips entries that are no plugins.
static int visit_plugin(const struct folder *at, const char *name, void *context)
{
    struct signing *signing = context;
    struct folder plugin;
    if (!is_plugin_id(name) || faccessat(at->fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
        return 0;
    int failed = folder_enter(at, name, &plugin);
    if (failed)
        return failed;
    if (faccessat(plugin.fd, MANIFEST, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        signing->found++;
        failed = sign_plugin(signing, &plugin);
    }
    folder_close(&plugin);
    return failed;
}

static int sign_installed(const char *path, bool force, const struct secret_key *key)
{
    struct store store;
    struct signing signing = {&store, key, force, 0, 0, 0};
    int failed = store_open(&store, path, false);
    if (failed)
        return failed;
    failed = store_stage(&store);
    if (!failed)
        failed = folder_each(&store.at, visit_plugin, &signing);
    store_close(&store);
    if (!failed && !signing.found)
        failed =
            oops("no plugin is installed in %s; --system or --prefix DIR names another "
                 "folder",
                 path);
    if (!failed)
        say("%zu of %zu plugins in %s signed\n", signing.done, signing.found, path);
    return failed;
}

// --- the command -----------------------------------------------------------------------

static int check_choice(const struct command *self, bool all, bool has_path, bool force,
                        int count)
{
    if (all && count != 1)
        return misuse("--all signs what is installed; usage: tenon %s --all [--system | "
                      "--prefix DIR] KEYFILE",
                      self->name);
    if (!all && (has_path || force))
        return misuse("--user, --system, --prefix and --force go with --all");
    return !all && count != 2
               ? misuse("too few arguments; usage: tenon %s %s", self->name, self->usage)
               : 0;
}

int cmd_plugin_sign(const struct command *self, int argc, char **argv)
{
    const char *prefix = NULL;
    bool all = false, system = false, user = false, force = false;
    const struct option options[] = {
        {"all", 0, NULL, "sign every plugin of an installation", NULL, &all},
        {"user", 0, NULL, "with --all: the user's plugins (the default)", NULL, &user},
        {"system", 0, NULL, "with --all: the plugins of all users", NULL, &system},
        {"prefix", 0, "DIR", "with --all: this folder of plugins", &prefix, NULL},
        {"force", 0, NULL, "with --all: also those that another key signed", NULL, &force},
    };
    struct args args;
    struct secret_key key;
    char *path = NULL;
    int failed = args_parse(self, options, COUNT(options), 1, 2, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = check_choice(self, all, prefix || system || user, force, args.count);
    if (!failed && all)
        failed = store_path(prefix, system, user, &path);
    if (!failed)
        failed = key_read_secret(args.items[args.count - 1], &key);
    if (!failed) {
        failed = all ? sign_installed(path, force, &key) : sign_source(args.items[0], &key);
        key_forget(&key);
    }
    free(path);
    return failed;
}
