// SPDX-License-Identifier: MIT
// The script that completes command lines in fish.
#include "complete.h"
#include "base/table.h"

#include <stdio.h>
#include <string.h>

static const char head[] =
    "# Completion for tenon in fish. Made by 'tenon completion fish'.\n\n";

static const char functions[] =
    "function __tenon_command\n"
    "    set -l command\n"
    "    for word in (commandline -opc)[2..-1]\n"
    "        contains -- (string join ' ' $command $word) $__tenon_commands; or break\n"
    "        set command (string join ' ' $command $word)\n"
    "    end\n"
    "    echo $command\n"
    "end\n\n"
    "function __tenon_is\n"
    "    test \"$(__tenon_command)\" = $argv[1]\n"
    "end\n\n"
    "function __tenon_behind\n"
    "    test \"$(__tenon_command)\" = $argv[1]; and test (commandline -opc)[-1] = "
    "$argv[2]\n"
    "end\n\n"
    "complete -c tenon -f\n";

// Prints 'text', with fish's two escapes.
static void print_quoted(const char *text)
{
    printf("'");
    for (; *text; text++)
        printf("%s%c", strchr("'\\", *text) ? "\\" : "", *text);
    printf("'");
}

static void fish_print_choice(const struct complete_choice *choice)
{
    static const char *const arguments[] = {
        [NOTHING] = "",
        [FILES] = " -F",
        [FOLDERS] = " -a '(__fish_complete_directories)'",
        [PLUGINS] = " -a '(tenon completion plugins 2>/dev/null)'",
        [OPERATORS] = " -a '(tenon completion ops 2>/dev/null)'",
        [BACKENDS] = " -a '(tenon completion backends 2>/dev/null)'",
    };
    if (choice->kind == WORD)
        printf(" -a %s", choice->word);
    else
        printf("%s", arguments[choice->kind]);
}

static void fish_start(const char *condition, const char *name)
{
    printf("complete -c tenon -n \"%s '%s'", condition, name);
}

static void fish_print_options(const json_t *command)
{
    size_t i;
    json_t *option;
    json_array_foreach(json_object_get(command, "options"), i, option)
    {
        fish_start("__tenon_is", text_of(command, "name"));
        printf("\" -l %s", text_of(option, "name"));
        if (json_object_get(option, "letter"))
            printf(" -s %s", text_of(option, "letter"));
        struct complete_choice choice = choice_of_option(option);
        if (json_object_get(option, "value"))
            printf(choice.kind == FILES ? " -r" : " -x");
        fish_print_choice(&choice);
        printf(" -d ");
        print_quoted(text_of(option, "help"));
        printf("\n");
    }
}

static void print_members(const json_t *command)
{
    size_t i;
    json_t *member;
    json_array_foreach(json_object_get(command, "commands"), i, member)
    {
        fish_start("__tenon_is", text_of(command, "name"));
        printf("\" -a %s -d ", text_of(member, "word"));
        print_quoted(text_of(member, "summary"));
        printf("\n");
    }
}

static void fish_print_operands(const json_t *command)
{
    const char *name = text_of(command, "name");
    struct complete_choice choices[MAX_CHOICES], choice;
    size_t n = choices_of(command, choices, MAX_CHOICES);
    char word[32];
    for (size_t i = 0; i < n; i++) {
        fish_start("__tenon_is", name);
        printf("\"");
        fish_print_choice(&choices[i]);
        printf("\n");
    }
    for (size_t i = 0; choice_behind(command, i, word, &choice); i++) {
        fish_start("__tenon_behind", name);
        printf(" '%s'\"", word);
        fish_print_choice(&choice);
        printf("\n");
    }
}

void complete_fish(const json_t *rows)
{
    size_t i;
    json_t *command;
    printf("%sset -g __tenon_commands", head);
    json_array_foreach(rows, i, command)
    {
        const char *name = text_of(command, "name");
        if (*name)
            printf(" '%s'", name);
    }
    printf("\n\n%s", functions);
    json_array_foreach(rows, i, command)
    {
        print_members(command);
        fish_print_options(command);
        fish_print_operands(command);
    }
}
