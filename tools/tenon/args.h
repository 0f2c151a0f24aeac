// SPDX-License-Identifier: MIT
// Subcommands and their options: parsing, help that teaches, nearest matches.
#ifndef TOOLS_TENON_ARGS_H
#define TOOLS_TENON_ARGS_H

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
    const char *name;    // "plugin install"; the last word is what is matched
    const char *usage;   // "DIR [--prefix DIR]"
    const char *summary; // one line
    const char *details; // paragraphs and examples, ended by a newline
    int (*run)(const struct command *self, int argc, char **argv); // argv[0] is the name
};

struct args {
    char **items; // what is no option, in order; borrowed from argv
    int count;
    bool help_shown; // --help was given and printed: the command is done
};

// Parses argv[1 ..], moving what is no option to the front. Fails on unknown options, with
// the nearest match, and when there are fewer than `min` or more than `max` items.
int args_parse(const struct command *command, const struct option *options,
               size_t num_options, int min, int max, int argc, char **argv,
               struct args *out);

// Runs the command that argv[1] names, or prints the list. `group` is "tenon" or
// "tenon plugin".
int commands_run(const struct command *commands, size_t num_commands, const char *group,
                 const char *about, int argc, char **argv);

// Appends what every command says of itself, without running any: an object for each with
// its "name" ("plugin install"), "usage", "summary", "details" and "options", and for a
// group ("" is that of all) its "about" and the "commands" in it.
int commands_describe(const struct command *commands, size_t num_commands,
                      const char *group, const char *about, json_t *rows);

// A number of an option, within [low, high].
int args_integer(const char *option, const char *text, int64_t low, int64_t high,
                 int64_t *out_value);
int args_number(const char *option, const char *text, double low, double high,
                double *out_value);

// The name most like `word`, or NULL when none is near. `names` ends with NULL.
const char *nearest(const char *word, const char *const *names);

#endif // TOOLS_TENON_ARGS_H
