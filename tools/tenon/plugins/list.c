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

// Interfaces that plugins offer beside operators, kernels and backends. A row has an
// interface, the kind of its selectors, if any, and its name in singular and plural.
static const struct plugin_offer {
    const char *interface, *kind, *one, *several;
} offers[] = {
    {"tn.format/1", "extension", "format", "formats"},
    {"tn.format/1", "folder", "folders with", "folders with"},
    {"tn.model/1", "architecture", "architecture", "architectures"},
    {"tn.tokenizer/1", "model", "tokenizer", "tokenizers"},
    {"tn.vision/1", "projector", "vision encoder", "vision encoders"},
    {"tn.graph_format/1", NULL, "files of graphs", NULL},
    {"tn.collective/1", NULL, "collectives", NULL},
    {"tn.collective.device/1", NULL, "collectives of GPUs", NULL},
    {"org.tenon.ffi/1", NULL, "C functions as operators", NULL},
};

// Lists the values of a plugin's selectors for an offer: "gguf, npy". False: there are
// none.
static bool offer_values(const struct plugin_offer *offer, const char *const *selectors,
                         char *values, size_t size, int *out_count)
{
    size_t length = strlen(offer->interface), kind = offer->kind ? strlen(offer->kind) : 0;
    *out_count = 0;
    values[0] = 0;
    for (const char *const *s = selectors; s && *s; s++) {
        const char *rest = *s + length;
        if (strncmp(*s, offer->interface, length) != 0 || *rest++ != ' ' ||
            strncmp(rest, offer->kind, kind) != 0 || rest[kind] != ' ')
            continue;
        size_t used = strlen(values);
        snprintf(values + used, size - used, "%s%s", used ? ", " : "", rest + kind + 1);
        ++*out_count;
    }
    return *out_count > 0;
}

// Appends what a plugin offers by one interface, if it does.
static void offer_tell(const struct plugin_offer *offer, const tn_provider *provider,
                       json_t *list)
{
    char values[512];
    int count;
    if (!offer->kind)
        json_array_append_new(list, json_string(offer->one));
    else if (offer_values(offer, provider->selectors, values, sizeof(values), &count))
        json_array_append_new(
            list, json_sprintf("%s %s", count > 1 ? offer->several : offer->one, values));
}

static void tell_offers(tn_runtime *runtime, const char *plugin, json_t *list)
{
    enum { MOST = 64 };
    for (size_t i = 0; i < COUNT(offers); i++) {
        tn_provider providers[MOST] = {{.struct_size = sizeof(tn_provider)}};
        uint64_t count = MOST;
        if (tn_providers(runtime, offers[i].interface, providers, &count))
            continue;
        for (uint64_t k = 0; k < count && k < MOST; k++)
            if (strcmp(providers[k].plugin, plugin) == 0)
                offer_tell(&offers[i], &providers[k], list);
    }
}

// Tells in a few words for the table what a plugin brings.
static json_t *plugin_list_brings(tn_runtime *runtime, const tn_plugin_info *info)
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
    if (plugin_is_in_use(info))
        tell_offers(runtime, info->id, list);
    return list;
}

static json_t *plugin_list_row_of(tn_runtime *runtime, const tn_plugin_info *info)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", //
                     "id", info->id, "version", info->version,                  //
                     "state", plugin_state_name(info->state),                   //
                     "vendor", info->vendor, "directory", info->directory,      //
                     "file", info->file, "reason", info->reason,                //
                     "brings", plugin_list_brings(runtime, info), "backends",
                     json_strings(info->backends),                 //
                     "primitives", json_strings(info->primitives), //
                     "kernels", json_strings(info->kernels));
}

static json_t *plugin_list_collect(tn_runtime *runtime, bool all)
{
    json_t *rows = json_array();
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info))
            continue;
        if (all || plugin_is_in_use(&info) || info.state == TN_PLUGIN_REFUSED)
            json_array_append_new(rows, plugin_list_row_of(runtime, &info));
    }
    return rows;
}

static int plugin_list_print_rows(const json_t *rows)
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
    json_t *rows = plugin_list_collect(runtime, all);
    failed = json ? json_print(rows) : plugin_list_print_rows(rows);
    json_decref(rows);
    tn_runtime_close(runtime);
    return failed;
}
