// SPDX-License-Identifier: MIT
// tenon plugin: show, describe, verify and retry. install.c, pack.c and sign.c have the
// others.
#include "commands.h"
#include "find.h"
#include "seal.h"
#include "base/table.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void plugins_command_print_list(const char *title, const char *const *list)
{
    if (!list || !*list)
        return;
    say("%s:\n", title);
    for (; *list; list++)
        say_line("  %s", *list);
}

static int show_json(const tn_plugin_info *info)
{
    json_t *row = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "id", info->id, "version",
        info->version, "vendor", info->vendor, "state", plugin_state_name(info->state),
        "directory", info->directory, "file", info->file, "reason", info->reason,
        "backends", json_strings(info->backends), "primitives",
        json_strings(info->primitives), "kernels", json_strings(info->kernels));
    int failed = json_print(row);
    json_decref(row);
    return failed;
}

static int plugins_command_show(const tn_plugin_info *info)
{
    say_line("%s %s", info->id, info->version);
    say_line("  vendor     %s", info->vendor);
    say_line("  state      %s", plugin_state_name(info->state));
    say_line("  directory  %s", info->directory);
    say_line("  file       %s", info->file);
    if (info->reason && info->reason[0])
        say_line("  reason     %s", info->reason);
    plugins_command_print_list("backends", info->backends);
    plugins_command_print_list("operators", info->primitives);
    plugins_command_print_list("kernels (operator, kernel family, name)", info->kernels);
    return 0;
}

static int run_show(const struct command *self, int argc, char **argv)
{
    bool json = false;
    const struct option options[] = {{"json", 0, NULL, "print JSON", NULL, &json}};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    tn_runtime *runtime;
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    tn_plugin_info info;
    if (!plugin_find(runtime, args.items[0], &info))
        failed = no_plugin(runtime, args.items[0]);
    else
        failed = json ? show_json(&info) : plugins_command_show(&info);
    tn_runtime_close(runtime);
    return failed;
}

// Writes ops.json if the plugin has operators, and lists the file in the manifest.
static int describe_ops(tn_runtime *runtime, const char *file, const char *output,
                        char **manifest)
{
    char *text = NULL, *whole = NULL;
    const char *slash = strrchr(output, '/');
    if (tn_plugin_describe_ops(runtime, file, &text))
        return oops_library();
    if (!text)
        return 0;
    int failed = text_write(output, text);
    if (!failed)
        failed = seal_text(*manifest, slash ? slash + 1 : output, text, &whole);
    tn_text_free(text);
    if (failed)
        return failed;
    free(*manifest);
    *manifest = whole;
    return 0;
}

static int plugins_command_describe(const char *file, const char *ops, char **out_text)
{
    char *text = NULL;
    tn_runtime *runtime;
    int failed = open_runtime(&runtime);
    if (failed)
        return failed;
    if (tn_plugin_describe(runtime, file, &text))
        failed = oops_library();
    else if (!(*out_text = strdup(text)))
        failed = oops_memory();
    else if (ops)
        failed = describe_ops(runtime, file, ops, out_text);
    tn_text_free(text);
    tn_runtime_close(runtime);
    return failed;
}

static int run_describe(const struct command *self, int argc, char **argv)
{
    const char *output = "-", *ops = NULL;
    char *text = NULL;
    const struct option options[] = {
        {"output", 'o', "FILE", "write the manifest there", &output, NULL},
        {"ops", 0, "FILE", "file for records of the operators; the manifest lists it", &ops,
         NULL}};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = plugins_command_describe(args.items[0], ops, &text);
    if (!failed)
        failed = text_write(output, text);
    if (!failed && strcmp(output, "-") == 0 && text[0] && text[strlen(text) - 1] != '\n')
        putchar('\n');
    free(text);
    return failed;
}

// Prints one verdict. True: the directory passes.
static bool verify_one(const char *name, const char *directory)
{
    bool good = tn_plugin_verify(directory) == TN_OK;
    say("%-7s %s: %s\n", good ? "good" : "REFUSED", name,
        good ? directory : tn_last_error());
    return good;
}

static int verify_installed(const tn_runtime *runtime, const char *id)
{
    uint64_t seen = 0, bad = 0;
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info) || (id && strcmp(info.id, id) != 0))
            continue;
        seen++;
        bad += !verify_one(info.id[0] ? info.id : info.directory, info.directory);
    }
    if (id && !seen)
        return no_plugin(runtime, id);
    return bad ? oops("%llu of %llu plugins refused", (unsigned long long)bad,
                      (unsigned long long)seen)
               : 0;
}

static int run_verify(const struct command *self, int argc, char **argv)
{
    struct args args;
    int failed = args_parse(self, NULL, 0, 0, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    const char *what = args.count ? args.items[0] : NULL;
    if (what && strchr(what, '/'))
        return verify_one(what, what) ? 0 : oops("refused");
    tn_runtime *runtime;
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    failed = verify_installed(runtime, what);
    tn_runtime_close(runtime);
    return failed;
}

static int run_retry(const struct command *self, int argc, char **argv)
{
    struct args args;
    int failed = args_parse(self, NULL, 0, 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    tn_runtime *runtime;
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    if (tn_plugin_quarantine(runtime, args.items[0], NULL))
        failed = oops_library();
    else
        say("%s is not in quarantine\n", args.items[0]);
    tn_runtime_close(runtime);
    return failed;
}

static const struct command plugin_commands[] = {
    {"plugin list", "[--all] [--json]", "list the installed plugins",
     "  tenon plugin list\n", cmd_plugins},
    {"plugin show", "ID [--json]", "say what one plugin is and brings",
     "  tenon plugin show org.tenon.base\n", run_show},
    {"plugin describe", "FILE [-o plugin.json]",
     "load a shared object and print its manifest",
     "The manifest is made from the binary, never written by hand. This loads FILE and\n"
     "runs its code: describe only what you would install.\n",
     run_describe},
    {"plugin install", "FILE.tnp|DIR|FILE.so [--system | --prefix DIR] [--force]",
     "check a plugin and add it to your plugins",
     "An archive, a folder with plugin.json and what belongs to it, or a shared object,\n"
     "which is loaded in a process of its own to make its plugin.json. The plugin is\n"
     "checked and appears at once: an older version stays in place until then, also when\n"
     "the machine goes down meanwhile. Plugins are native code with your rights: install\n"
     "what you trust.\n"
     "\n"
     "  tenon plugin install com.acme.axpby-1.0.0.tnp\n",
     cmd_plugin_install},
    {"plugin upgrade", "FILE.tnp|DIR|FILE.so [--system | --prefix DIR] [--force]",
     "replace an installed plugin by a newer version",
     "As 'tenon plugin install', for plugins that are there.\n"
     "\n"
     "  tenon plugin upgrade com.acme.axpby-1.1.0.tnp\n",
     cmd_plugin_upgrade},
    {"plugin remove", "ID [--system | --prefix DIR]", "remove one of your plugins",
     "  tenon plugin remove com.acme.axpby\n", cmd_plugin_remove},
    {"plugin verify", "[ID | DIR]", "check plugins as loading would, without loading",
     "Checks the manifest, owner, modes, hashes, the ELF note and what TENON_TRUST asks\n"
     "for. Without an argument: every plugin found. An argument with a slash is a\n"
     "plugin's directory.\n",
     run_verify},
    {"plugin retry", "ID", "take a plugin out of quarantine",
     "A backend that crashed or hung while 'tenon devices --probe' watched is not loaded\n"
     "until it changes. This tries it again, after a new driver for instance.\n",
     run_retry},
    {"plugin pack", "DIR [-o FILE.tnp]", "make an archive of a plugin",
     "A tar compressed by zstd, the same bytes each time. Files that DIR/plugin.json does\n"
     "not list are listed in the archive's, unless it is signed.\n"
     "\n"
     "  tenon plugin pack build/com.acme.axpby -o axpby.tnp\n",
     cmd_plugin_pack},
    {"plugin bundle", "PLUGIN... DIR [--libraries lm,train]",
     "make a folder with libtenon and the plugins that an application needs",
     "DIR/lib has libtenon, DIR/lib/tenon/plugins the plugins, which libtenon finds there\n"
     "without a variable. PLUGIN is an id, without 'org.tenon.' too, or a glob over ids. "
     "DIR\n"
     "is a new folder, or one without lib.\n"
     "\n"
     "  tenon plugin bundle base nn cpu-blas app\n",
     cmd_plugin_bundle},
    {"plugin sign",
     "DIR|FILE.tnp|FILE.so KEYFILE | --all [--system | --prefix DIR] [--force] KEYFILE",
     "sign a plugin, or every plugin of an installation",
     "Of a folder: lists all its files in its plugin.json and writes plugin.json.minisig.\n"
     "An archive is replaced by a signed one; of a shared object a signed archive is "
     "made.\n"
     "With --all: signs what is installed, whose files have to be as each plugin.json "
     "says.\n"
     "What another key signed is left as it is.\n"
     "\n"
     "  tenon trust new acme.key\n"
     "  tenon plugin sign build/com.acme.axpby acme.key\n"
     "  tenon plugin sign --all --system acme.key\n",
     cmd_plugin_sign},
};

int cmd_plugin(const struct command *self, int argc, char **argv)
{
    static const struct command_group group = {
        "tenon plugin", "One plugin at a time; 'tenon plugins' lists them.",
        plugin_commands, COUNT(plugin_commands)};
    (void)self;
    return commands_run(&group, argc, argv);
}
