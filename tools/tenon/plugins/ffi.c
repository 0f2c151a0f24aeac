// SPDX-License-Identifier: MIT
// tenon ffi: op packs from text manifests of C functions, with the plugin org.tenon.ffi.
#include "commands.h"
#include "install.h"
#include "files/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <tenon/ffi.h>

static const char about[] =
    "A manifest says how functions of a C library are called (docs/ffi.md); a pack made "
    "of\n"
    "it is a plugin like any other, and no C is written.\n"
    "\n"
    "  tenon ffi check zlib.json             is the manifest right, is the library there?\n"
    "  tenon ffi make zlib.json              make the pack, and install it for this user\n"
    "  tenon ffi make zlib.json -o plugins   ... in the directory plugins\n";

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

static int plugin_ffi_make_in(const char *folder, const char *manifest, char **out_object)
{
    char id[64];
    tn_runtime *runtime;
    int failed = open_runtime(&runtime);
    if (failed)
        return failed;
    failed = pack_make(runtime, manifest, folder, id);
    tn_runtime_close(runtime);
    if (!failed && asprintf(out_object, "%s/%s/%s.so", folder, id, id) < 0)
        failed = oops_memory();
    return failed;
}

static int make_and_install(const char *manifest, const char *plugins)
{
    struct folder folder;
    char *object = NULL;
    int failed = temporary_folder(&folder);
    if (failed)
        return failed;
    failed = plugin_ffi_make_in(folder.path, manifest, &object);
    if (!failed) {
        failed = plugin_install(object, plugins);
        free(object);
    }
    folder_discard(&folder);
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

static int plugin_ffi_run_check(const struct command *self, int argc, char **argv)
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
        say("%s: the pack %s is described correctly\n", args.items[0], id);
    tn_runtime_close(runtime);
    return failed;
}

int cmd_ffi(const struct command *self, int argc, char **argv)
{
    static const struct command commands[] = {
        {"ffi make", "MANIFEST [-o DIR]", "make a pack and install it", about, run_make},
        {"ffi check", "MANIFEST", "check a manifest", about, plugin_ffi_run_check},
    };
    static const struct command_group group = {"tenon ffi", about, commands,
                                               COUNT(commands)};
    (void)self;
    return commands_run(&group, argc, argv);
}
