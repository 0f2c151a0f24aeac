// SPDX-License-Identifier: MIT
// Choices for the words of a command line, and the writers of a script for each shell.
#ifndef TOOLS_TENON_COMPLETE_COMPLETE_H
#define TOOLS_TENON_COMPLETE_COMPLETE_H

#include <jansson.h>
#include "base/tool.h"

// A choice for one word of a command line.
struct complete_choice {
    enum { NOTHING, WORD, FILES, FOLDERS, PLUGINS, OPERATORS, BACKENDS } kind;
    char word[32]; // of WORD
};

#define MAX_CHOICES 16

// Gives at most `max` choices for a command's operands, from its usage ("ID DIR"). Words
// that follow a fixed word ("plugin ID") are left out. Returns the number of choices.
size_t choices_of(const json_t *command, struct complete_choice *out, size_t max);

// Fixed word number `i` of a command's usage that another word follows ("plugin ID"), and
// the choice for the other word. False when there are no more.
bool choice_behind(const json_t *command, size_t i, char word[32],
                   struct complete_choice *out);

// The choice for the value of an option, from its placeholder ("FILE").
struct complete_choice choice_of_option(const json_t *option);

// Write a shell's script to standard output, from the rows of commands_describe().
void complete_bash(const json_t *rows);
void complete_zsh(const json_t *rows);
void complete_fish(const json_t *rows);

#endif // TOOLS_TENON_COMPLETE_COMPLETE_H
