// SPDX-License-Identifier: MIT
// tenon commands: lists all commands, from the tables that their --help is made of.
#include "commands.h"
#include "base/table.h"

#include <stdio.h>
#include <string.h>

static const char details[] =
    "With --json, also the usage, the explanation and the options of each: what the man\n"
    "pages and the scripts of 'tenon completion' are made from.\n";

int cmd_commands(const struct command *self, int argc, char **argv)
{
    static const struct column columns[] = {{"name", "command"},
                                            {"summary", "what it does"}};
    struct command mine = *self;
    mine.details = details;
    bool json = false;
    const struct option options[] = {{"json", 0, NULL, "print JSON", NULL, &json}};
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 0, 0, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    json_t *rows = json_array();
    failed = commands_describe(rows);
    if (!failed && json) {
        failed = json_print(rows);
    } else if (!failed) {
        json_array_remove(rows, 0); // the outermost group
        failed = table_print(rows, columns, COUNT(columns));
    }
    json_decref(rows);
    return failed;
}
