// SPDX-License-Identifier: MIT
// tenon ops: lists operators.
#include "commands.h"
#include "describe.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char details[] =
    "PATTERN is a glob over ids (\"nn.*\"), or a part of one (\"conv\").\n"
    "\n"
    "  tenon ops random\n"
    "  tenon op nn.conv2d        the whole description of one\n";

static bool matches(const char *id, const char *pattern)
{
    char name[128];
    if (!pattern)
        return true;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(id, "/"), id);
    if (strpbrk(pattern, "*?["))
        return fnmatch(pattern, name, 0) == 0 || fnmatch(pattern, id, 0) == 0;
    return strstr(id, pattern) != NULL;
}

static json_t *row_of(tn_runtime *runtime, const char *id)
{
    const tn_primitive *primitive = tn_primitive_find(runtime, id);
    if (!primitive) // its pack cannot be loaded: the list is still worth printing
        return json_pack("{s:s, s:s, s:s}", "id", id, "signature", "", "doc",
                         tn_last_error());
    char *text = signature(primitive);
    json_t *row = json_pack("{s:s, s:s, s:s}", "id", id, "signature", text ? text : "",
                            "doc", primitive->doc ? primitive->doc : "");
    free(text);
    return row;
}

int cmd_ops(const struct command *self, int argc, char **argv)
{
    static const struct column columns[] = {{"id", "operator"}, {"signature", "call"}};
    struct command mine = *self;
    mine.details = details;
    bool json = false;
    const struct option options[] = {{"json", 0, NULL, "print JSON", NULL, &json}};
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 0, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    tn_runtime *runtime;
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    json_t *rows = json_array();
    const char *pattern = args.count ? args.items[0] : NULL;
    for (const char *const *id = tn_primitive_names(runtime); id && *id; id++)
        if (matches(*id, pattern))
            json_array_append_new(rows, row_of(runtime, *id));
    if (!json_array_size(rows) && pattern && !strpbrk(pattern, "*?["))
        failed = no_primitive(runtime, pattern);
    else if (!json_array_size(rows) && pattern)
        failed = oops("no operator matches '%s'", pattern);
    else
        failed = json ? json_print(rows) : table_print(rows, columns, COUNT(columns));
    json_decref(rows);
    tn_runtime_close(runtime);
    return failed;
}
