// SPDX-License-Identifier: MIT
// tenon plugins: lists the installed plugins, from manifests alone.
#include "commands.h"
#include "find.h"
#include "base/table.h"

#include <stdio.h>
#include <string.h>

static const char details[] =
    "A plugin is a directory DIR/ID with a plugin.json and a shared object, found in\n"
    "TENON_PLUGIN_PATH, then the user's plugins, then the system's. Listing reads\n"
    "manifests only: no plugin's code is loaded.\n"
    "\n"
    "  tenon plugins             those that can be used, and those refused, with reasons\n"
    "  tenon plugins --all       also those shadowed by a higher version or disabled\n";

// Tells in a few words for the table what a plugin brings.
static json_t *brings(const tn_plugin_info *info)
{
    json_t *list = json_array();
    for (const char *const *b = info->backends; b && *b; b++)
        json_array_append_new(list, json_sprintf("backend %s", *b));
    size_t primitives = 0, kernels = 0;
    while (info->primitives && info->primitives[primitives])
        primitives++;
    while (info->kernels && info->kernels[kernels])
        kernels++;
    if (primitives)
        json_array_append_new(
            list, json_sprintf("%zu operator%s", primitives, primitives == 1 ? "" : "s"));
    if (kernels)
        json_array_append_new(
            list, json_sprintf("%zu kernel%s", kernels, kernels == 1 ? "" : "s"));
    return list;
}

static json_t *row_of(const tn_plugin_info *info)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}",        //
                     "id", info->id, "version", info->version,                         //
                     "state", plugin_state_name(info->state),                          //
                     "vendor", info->vendor, "directory", info->directory,             //
                     "file", info->file, "reason", info->reason,                       //
                     "brings", brings(info), "backends", json_strings(info->backends), //
                     "primitives", json_strings(info->primitives),                     //
                     "kernels", json_strings(info->kernels));
}

static json_t *collect(const tn_runtime *runtime, bool all)
{
    json_t *rows = json_array();
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info))
            continue;
        if (all || plugin_is_in_use(&info) || info.state == TN_PLUGIN_REFUSED)
            json_array_append_new(rows, row_of(&info));
    }
    return rows;
}

static int print_rows(const json_t *rows)
{
    static const struct column columns[] = {
        {"id", "plugin"},     {"version", "version"}, {"state", "state"},
        {"brings", "brings"}, {"directory", "where"},
    };
    if (!json_array_size(rows)) {
        say("no plugins found; TENON_PLUGIN_PATH names directories to search\n");
        return 0;
    }
    int failed = table_print(rows, columns, COUNT(columns));
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *reason = json_string_value(json_object_get(row, "reason"));
        const char *id = json_string_value(json_object_get(row, "id"));
        if (reason && reason[0])
            say("\n%s: %s\n", id && id[0] ? id : "?", reason);
    }
    return failed;
}

int cmd_plugins(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    bool all = false, json = false;
    const struct option options[] = {
        {"all", 'a', NULL, "also shadowed and disabled plugins", NULL, &all},
        {"json", 0, NULL, "print JSON", NULL, &json},
    };
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 0, 0, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    tn_runtime *runtime;
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    json_t *rows = collect(runtime, all);
    failed = json ? json_print(rows) : print_rows(rows);
    json_decref(rows);
    tn_runtime_close(runtime);
    return failed;
}
