// SPDX-License-Identifier: MIT
// tenon ops: lists operators.
#include "commands.h"
#include "op.h"
#include "base/table.h"
#include "describe.h"
#include "described.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char details[] =
    "PATTERN is a glob over ids (\"nn.*\"), or a part of one (\"conv\"). Listing reads\n"
    "manifests only: no plugin's code is loaded.\n"
    "\n"
    "  tenon ops random\n"
    "  tenon ops 'nn.*' --calls  how each is called\n"
    "  tenon op nn.conv2d        the whole description of one\n";

static bool ops_command_matches(const char *id, const char *pattern)
{
    char name[128];
    if (!pattern)
        return true;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(id, "/"), id);
    if (strpbrk(pattern, "*?["))
        return fnmatch(pattern, name, 0) == 0 || fnmatch(pattern, id, 0) == 0;
    return strstr(id, pattern) != NULL;
}

// Adds to the row how the operator is called.
static void add_call(json_t *row, struct described *described, const char *id)
{
    const tn_primitive *primitive = NULL;
    int failed = described_find(described, id, &primitive);
    char *text = failed ? NULL : signature(primitive);
    json_object_set_new(row, "signature", json_string(text ? text : ""));
    // A pack that cannot be read leaves its failure in the row, and the list is printed.
    const char *doc = failed ? oops_text() : primitive->doc;
    json_object_set_new(row, "doc", json_string(doc ? doc : ""));
    if (failed)
        forget_oops();
    free(text);
}

static bool ops_command_is_listed(const tn_plugin_info *info, const char *id)
{
    bool is_usable = info->state == TN_PLUGIN_FOUND || info->state == TN_PLUGIN_LOADED;
    for (const char *const *name = info->primitives; is_usable && *name; name++)
        if (strcmp(*name, id) == 0)
            return true;
    return false;
}

// The plugin whose manifest lists the operator; "" for an operator that the program added.
static const char *plugin_of(const tn_runtime *runtime, const char *id)
{
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info) == TN_OK && ops_command_is_listed(&info, id))
            return info.id;
    }
    return "";
}

// All that `tenon op` tells of the operator; NULL where its pack cannot be read.
static json_t *ops_command_whole(const tn_runtime *runtime, struct described *described,
                                 const char *id)
{
    const tn_primitive *primitive = NULL;
    if (described_find(described, id, &primitive) == 0)
        return op_json(runtime, primitive);
    forget_oops();
    return NULL;
}

// `described`: NULL without calls.
static json_t *list_ops(tn_runtime *runtime, const char *pattern,
                        struct described *described, bool json)
{
    json_t *rows = json_array();
    for (const char *const *id = tn_primitive_names(runtime); id && *id; id++) {
        if (!ops_command_matches(*id, pattern))
            continue;
        json_t *row = described && json ? ops_command_whole(runtime, described, *id) : NULL;
        if (row) {
            json_array_append_new(rows, row);
            continue;
        }
        row = json_pack("{s:s, s:s}", "id", *id, "plugin", plugin_of(runtime, *id));
        if (described)
            add_call(row, described, *id);
        json_array_append_new(rows, row);
    }
    return rows;
}

int cmd_ops(const struct command *self, int argc, char **argv)
{
    static const struct column columns[] = {{"id", "operator"}, {"plugin", "plugin"}};
    static const struct column called[] = {{"id", "operator"}, {"signature", "call"}};
    struct command mine = *self;
    mine.details = details;
    bool json = false, calls = false;
    const struct option options[] = {
        {"calls", 0, NULL, "show how each operator is called; in JSON, all that op tells",
         NULL, &calls},
        {"json", 0, NULL, "print JSON", NULL, &json}};
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 0, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    tn_runtime *runtime;
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    const char *pattern = args.count ? args.items[0] : NULL;
    struct described *described = NULL;
    failed = calls ? described_create(runtime, &described) : 0;
    json_t *rows = failed ? NULL : list_ops(runtime, pattern, described, json);
    if (failed)
        ;
    else if (!json_array_size(rows) && pattern && !strpbrk(pattern, "*?["))
        failed = no_primitive(runtime, pattern);
    else if (!json_array_size(rows) && pattern)
        failed = oops("no operator matches '%s'", pattern);
    else
        failed = json ? json_print(rows) : table_print(rows, calls ? called : columns, 2);
    json_decref(rows);
    described_free(described);
    tn_runtime_close(runtime);
    return failed;
}
