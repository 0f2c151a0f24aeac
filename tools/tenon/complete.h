// SPDX-License-Identifier: MIT
// What the scripts of `tenon completion` are made from, and the parts that write one each.
#ifndef TOOLS_TENON_COMPLETE_H
#define TOOLS_TENON_COMPLETE_H

#include <jansson.h>
#include "tool.h"

// What may stand at one place of a command line.
struct choice {
    enum { NOTHING, WORD, FILES, FOLDERS, PLUGINS, OPERATORS, BACKENDS } kind;
    char word[32]; // of WORD
};

#define MAX_CHOICES 16

// Choices for the words of a command that are no options, from its usage ("ID | DIR"), at
// most `max`. Words that follow a fixed word ("plugin ID") are not among them.
size_t choices_of(const json_t *command, struct choice *out, size_t max);

// The fixed word number `i` of a command's usage that has something behind it ("plugin
// ID"), and what; false when there are no more.
bool choice_behind(const json_t *command, size_t i, char word[32], struct choice *out);

// What the value of an option is, from its placeholder ("FILE").
struct choice choice_of_option(const json_t *option);

// The value of a member as text; "" when it has none.
const char *member_text(const json_t *object, const char *key);

// One script each, to standard output, from the rows of commands_describe().
void complete_bash(const json_t *rows);
void complete_zsh(const json_t *rows);
void complete_fish(const json_t *rows);

#endif // TOOLS_TENON_COMPLETE_H
