// SPDX-License-Identifier: MIT
// tenon ffi: op packs from text manifests of C functions, with the plugin org.tenon.ffi.
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/ffi.h>
#include <unistd.h>

static const char about[] =
    "A manifest says how functions of a C library are called (docs/ffi.md); a pack made "
    "of\n"
    "it is a plugin like any other, and no C is written.\n"
    "\n"
    "  tenon ffi check zlib.json             is the manifest right, is the library there?\n"
    "  tenon ffi make zlib.json              make the pack, and install it for this user\n"
    "  tenon ffi make zlib.json -o plugins   ... in the directory plugins\n";

enum { PATH_ROOM = 4096 };

// --- pieces ----------------------------------------------------------------------------

static int pack_make(tn_runtime *runtime, const char *manifest, const char *directory,
                     char id[64])
{
    const tn_ffi *ffi = NULL;
    const tn_host *host = NULL;
    if (tn_ffi_find(runtime, &ffi, &host) || ffi->pack_make(host, manifest, directory, id))
        return oops_library();
    return 0;
}

// Writes plugin.json beside the pack's shared object.
static int write_manifest(const char *directory, const char *id)
{
    char object[PATH_ROOM], path[PATH_ROOM], *json = NULL;
    int failed = 0;
    snprintf(object, sizeof(object), "%s/%s/%s.so", directory, id, id);
    snprintf(path, sizeof(path), "%s/%s/plugin.json", directory, id);
    if (tn_plugin_describe(object, &json))
        failed = oops_library();
    FILE *file = failed ? NULL : fopen(path, "we");
    if (!failed && (!file || fputs(json, file) < 0))
        failed = oops("cannot write %s: %s", path, strerror(errno));
    if (file && fclose(file) && !failed)
        failed = oops("cannot write %s: %s", path, strerror(errno));
    tn_text_free(json);
    return failed;
}

// The directory of one plugin in `directory`, and that itself.
static void remove_made(const char *directory, const char *id)
{
    static const char *const files[] = {"plugin.json", ".so"};
    char path[PATH_ROOM];
    for (size_t i = 0; i < COUNT(files) && *id; i++) {
        snprintf(path, sizeof(path), "%s/%s/%s%s", directory, id, i ? id : "", files[i]);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/%s", directory, id);
    rmdir(path);
    rmdir(directory);
}

static int install(const char *directory, const char *id, const char *plugins)
{
    struct command command = {.name = "plugin install", .run = cmd_plugin_install};
    char source[PATH_ROOM];
    snprintf(source, sizeof(source), "%s/%s", directory, id);
    char *argv[] = {(char *)"install", source, (char *)"--prefix", (char *)plugins, NULL};
    return cmd_plugin_install(&command, plugins ? 4 : 2, argv);
}

static int make_and_install(const char *manifest, const char *plugins)
{
    const char *given = getenv("TMPDIR"), *parent = given && *given ? given : "/tmp";
    char directory[PATH_ROOM - 256], id[64] = "";
    tn_runtime *runtime;
    if (snprintf(directory, sizeof(directory), "%s/tenon-ffi-XXXXXX", parent) >=
        (int)sizeof(directory))
        return oops("TMPDIR is a path of %zu bytes, expected less than %zu", strlen(parent),
                    sizeof(directory));
    int failed = open_runtime(&runtime);
    if (failed)
        return failed;
    if (!mkdtemp(directory))
        failed = oops("cannot make a directory in %s: %s", parent, strerror(errno));
    bool made = !failed;
    if (!failed)
        failed = pack_make(runtime, manifest, directory, id);
    tn_runtime_close(runtime);
    if (!failed)
        failed = write_manifest(directory, id);
    if (!failed)
        failed = install(directory, id, plugins);
    if (made)
        remove_made(directory, id);
    return failed;
}

// --- subcommands -----------------------------------------------------------------------

static int run_make(const struct command *self, int argc, char **argv)
{
    const char *plugins = NULL;
    const struct option options[] = {
        {"output", 'o', "DIR", "the directory of plugins to install to", &plugins, NULL}};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    return make_and_install(args.items[0], plugins);
}

static int run_check(const struct command *self, int argc, char **argv)
{
    struct args args;
    char id[64];
    tn_runtime *runtime;
    int failed = args_parse(self, NULL, 0, 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    failed = pack_make(runtime, args.items[0], NULL, id);
    if (!failed)
        printf("%s: the pack %s is described correctly\n", args.items[0], id);
    tn_runtime_close(runtime);
    return failed;
}

int cmd_ffi(const struct command *self, int argc, char **argv)
{
    static const struct command commands[] = {
        {"ffi make", "MANIFEST [-o DIR]", "make a pack and install it", about, run_make},
        {"ffi check", "MANIFEST", "check a manifest", about, run_check},
    };
    (void)self;
    return commands_run(commands, COUNT(commands), "tenon ffi", about, argc, argv);
}
