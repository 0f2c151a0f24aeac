// SPDX-License-Identifier: MIT
// tenon trust: the keys whose signatures count with TENON_TRUST=signed.
#include "commands.h"
#include "base/table.h"
#include "base/file.h"
#include "keys.h"
#include "files/paths.h"
#include "files/tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE 16384

// Gives the folder of trusted keys. Free it.
static int trust_path(bool system, char **out_path)
{
    char *path = NULL;
    if (system)
        path = strdup(tn_installed_folder("trust"));
    else if (!user_data("tenon/trust", &path))
        return oops("no folder for keys: neither XDG_DATA_HOME nor HOME is set");
    *out_path = path;
    return path ? 0 : oops_memory();
}

// <folder>/<number>.pub. Free it; NULL when out of memory.
static char *key_path(const char *folder, const unsigned char number[8])
{
    char text[KEY_NUMBER_SIZE], *path = NULL;
    key_number(number, text);
    return asprintf(&path, "%s/%s.pub", folder, text) < 0 ? NULL : path;
}

// --- add -------------------------------------------------------------------------------

// Reads a key from a file, or from the key's line itself.
static int plugin_trust_read_key(const char *given, struct public_key *out)
{
    char *text = NULL;
    uint64_t size;
    if (key_parse_public(given, out))
        return 0;
    int failed = file_read(given, MAX_FILE, &text, &size);
    if (!failed && !key_parse_public(text, out))
        failed = oops("%s holds no public key of minisign", given);
    free(text);
    return failed;
}

static int plugin_trust_write_key(const struct public_key *key, const char *path)
{
    char line[KEY_TEXT_SIZE], number[KEY_NUMBER_SIZE], text[200];
    key_text(key, line);
    key_number(key->number, number);
    snprintf(text, sizeof(text), "untrusted comment: minisign public key %s\n%s\n", number,
             line);
    int failed = file_write(path, text, strlen(text));
    if (!failed && chmod(path, 0644)) // whatever the umask is
        failed = oops("cannot write %s: %s", path, strerror(errno));
    return failed;
}

// Fails when `path` holds another key of the same number, which would be lost.
static int check_other(const struct public_key *key, const char *path)
{
    struct public_key other;
    if (access(path, F_OK))
        return 0;
    int failed = plugin_trust_read_key(path, &other);
    return failed || memcmp(other.key, key->key, sizeof(key->key)) == 0
               ? failed
               : oops("%s is another key of this number: remove it first", path);
}

static int run_add(const struct command *self, int argc, char **argv)
{
    bool system = false;
    const struct option options[] = {{"system", 0, NULL, "for all users", NULL, &system}};
    struct args args;
    struct public_key key;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    char *folder = NULL, *path = NULL, number[KEY_NUMBER_SIZE];
    failed = plugin_trust_read_key(args.items[0], &key);
    if (!failed)
        failed = trust_path(system, &folder);
    if (!failed)
        failed = folder_make(folder);
    if (!failed)
        failed = (path = key_path(folder, key.number)) ? 0 : oops_memory();
    if (!failed)
        failed = check_other(&key, path);
    if (!failed)
        failed = plugin_trust_write_key(&key, path);
    if (!failed) {
        key_number(key.number, number);
        say("trusted: key %s, in %s\n", number, path);
    }
    free(path);
    free(folder);
    return failed;
}

// --- list ------------------------------------------------------------------------------

static void plugin_trust_add_row(json_t *rows, const char *folder, const char *name)
{
    char *path = path_join(folder, name), line[KEY_TEXT_SIZE], number[KEY_NUMBER_SIZE];
    struct public_key key;
    if (path && plugin_trust_read_key(path, &key) == 0) {
        key_text(&key, line);
        key_number(key.number, number);
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "number", number, "key",
                                              line, "file", path));
    } else if (path) {
        forget_oops();
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "number", "no key", "key",
                                              "", "file", path));
    }
    free(path);
}

static int plugin_trust_add_rows(json_t *rows, bool system)
{
    char *folder = NULL;
    if (trust_path(system, &folder)) { // no home: only the system's keys
        forget_oops();
        return 0;
    }
    struct dirent **names = NULL;
    int count = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *dot = strrchr(names[i]->d_name, '.');
        if (dot && dot != names[i]->d_name && strcmp(dot, ".pub") == 0)
            plugin_trust_add_row(rows, folder, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    free(folder);
    return 0;
}

static int plugin_trust_run_list(const struct command *self, int argc, char **argv)
{
    static const struct column columns[] = {
        {"number", "number"}, {"key", "key"}, {"file", "file"}};
    bool json = false;
    const struct option options[] = {{"json", 0, NULL, "print JSON", NULL, &json}};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 0, 0, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    json_t *rows = json_array();
    plugin_trust_add_rows(rows, false);
    plugin_trust_add_rows(rows, true);
    if (json)
        failed = json_print(rows);
    else if (json_array_size(rows))
        failed = table_print(rows, columns, COUNT(columns));
    else
        say("no key is trusted; 'tenon trust add KEY' adds one\n");
    json_decref(rows);
    return failed;
}

// --- remove ----------------------------------------------------------------------------

static bool plugin_trust_is_number(const char *text)
{
    return strlen(text) == 16 && strspn(text, "0123456789ABCDEFabcdef") == 16;
}

static int remove_key(const char *folder, const char *number)
{
    char name[KEY_NUMBER_SIZE + 4];
    snprintf(name, sizeof(name), "%s.pub", number);
    for (size_t i = 0; i < 16; i++)
        if (name[i] >= 'a')
            name[i] = (char)(name[i] - 'a' + 'A');
    char *path = path_join(folder, name);
    if (!path)
        return oops_memory();
    int failed = unlink(path) == 0 ? 0
                 : errno == ENOENT ? oops("no key %s in %s; 'tenon trust list' lists them",
                                          number, folder)
                                   : oops("cannot remove %s: %s", path, strerror(errno));
    if (!failed)
        say("no longer trusted: key %s\n", number);
    free(path);
    return failed;
}

static int run_remove(const struct command *self, int argc, char **argv)
{
    bool system = false;
    const struct option options[] = {{"system", 0, NULL, "for all users", NULL, &system}};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    char number[KEY_NUMBER_SIZE], *folder = NULL;
    struct public_key key;
    snprintf(number, sizeof(number), "%s", args.items[0]);
    if (!plugin_trust_is_number(args.items[0])) {
        failed = plugin_trust_read_key(args.items[0], &key);
        if (failed)
            return failed;
        key_number(key.number, number);
    }
    failed = trust_path(system, &folder);
    if (!failed)
        failed = remove_key(folder, number);
    free(folder);
    return failed;
}

// --- new -------------------------------------------------------------------------------

static int run_new(const struct command *self, int argc, char **argv)
{
    struct args args;
    int failed = args_parse(self, NULL, 0, 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    const char *secret = args.items[0];
    size_t size = strlen(secret);
    bool has_end = size > 4 && strcmp(secret + size - 4, ".key") == 0;
    char *path = NULL, line[KEY_TEXT_SIZE];
    struct public_key key;
    if (asprintf(&path, "%.*s.pub", (int)(has_end ? size - 4 : size), secret) < 0)
        return oops_memory();
    failed = key_make(secret, path, &key);
    if (!failed) {
        key_text(&key, line);
        say("%s: the secret key, which signs as you: keep it, and keep it to yourself\n"
            "%s: the public key, to publish: %s\n",
            secret, path, line);
    }
    free(path);
    return failed;
}

static const struct command trust_commands[] = {
    {"trust add", "KEY [--system]", "trust what a key signs",
     "KEY is a file with a public key of minisign, or the line of it. It counts with\n"
     "TENON_TRUST=signed.\n"
     "\n"
     "  tenon trust add acme.pub\n",
     run_add},
    {"trust list", "[--json]", "list the trusted keys", "  tenon trust list\n",
     plugin_trust_run_list},
    {"trust remove", "KEY [--system]", "trust a key no longer",
     "KEY is its number, its file or the line of it.\n"
     "\n"
     "  tenon trust remove 1A2B3C4D5E6F7081\n",
     run_remove},
    {"trust new", "FILE.key", "make a key of your own",
     "Writes FILE.key, the secret key, and FILE.pub. The secret key has no password;\n"
     "'minisign -G' makes one with, and either program takes the other's.\n"
     "\n"
     "  tenon trust new acme.key\n",
     run_new},
};

int cmd_trust(const struct command *self, int argc, char **argv)
{
    static const struct command_group group = {
        "tenon trust",
        "Keys whose signatures count. With TENON_TRUST=signed no other plugin is loaded.",
        trust_commands, COUNT(trust_commands)};
    (void)self;
    return commands_run(&group, argc, argv);
}
