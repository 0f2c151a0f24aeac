// SPDX-License-Identifier: MIT
// Subcommands and their options: parsing, help, nearest matches.
#ifndef TOOLS_TENON_BASE_ARGS_H
#define TOOLS_TENON_BASE_ARGS_H

#include <jansson.h>
#include "tool.h"

// One option. With `value` (a placeholder, "FILE") it takes a value, stored through
// `text`; else it is a switch, stored through `flag`.
struct option {
    const char *name; // without dashes
    char letter;      // 0: none
    const char *value;
    const char *help;
    const char **text;
    bool *flag;
};

// One subcommand.
struct command {
    const char *name;    // "plugin install"; the last word is matched
    const char *usage;   // "DIR [--prefix DIR]"
    const char *summary; // one line
    const char *details; // paragraphs and examples, ended by a newline
    int (*run)(const struct command *self, int argc, char **argv); // argv[0] is the name
};

struct args {
    char **items; // arguments that are no options, in order; borrowed from argv
    int count;
    bool help_shown; // --help was given and printed: the command is done
};

// Parses argv[1 ..], and moves arguments that are no options to its front. Fails on unknown
// options, with the nearest match, and on fewer than `min` or more than `max` items; max
// -1: no limit.
int args_parse(const struct command *command, const struct option *options,
               size_t num_options, int min, int max, int argc, char **argv,
               struct args *out);

// A group of subcommands, which one word or two call.
struct command_group {
    const char *name; // "tenon", "tenon plugin"
    const char *about;
    const struct command *commands;
    size_t num_commands;
};

// Runs the command that argv[1] names, or prints the list.
int commands_run(const struct command_group *group, int argc, char **argv);

// Appends a description of every command of the group that was run first, without running
// any: an object with "name" ("plugin install"), "usage", "summary", "details" and
// "options"; for a group ("" is the outermost one) with "about" and "commands".
int commands_describe(json_t *rows);

// Parses the value of an option as an integer within [low, high].
int args_integer(const char *option, const char *text, int64_t low, int64_t high,
                 int64_t *out_value);

// The nearest name to `word`, or NULL when none is near. `names` ends with NULL.
const char *nearest(const char *word, const char *const *names);

#endif // TOOLS_TENON_BASE_ARGS_H
