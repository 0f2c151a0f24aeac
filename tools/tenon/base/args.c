// SPDX-License-Identifier: MIT
// Option parsing, help, and dispatch of subcommands.
#include "args.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 64

// --- nearest match ---------------------------------------------------------------------

#define MAX_WORD 48

static unsigned args_min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

// Levenshtein distance; MAX_WORD for longer words.
static unsigned args_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    unsigned row[MAX_WORD + 1];
    if (na > MAX_WORD || nb > MAX_WORD)
        return MAX_WORD;
    for (size_t j = 0; j <= nb; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned cost = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = args_min3(row[j] + 1, row[j - 1] + 1, cost);
        }
    }
    return row[nb];
}

const char *nearest(const char *word, const char *const *names)
{
    const char *best = NULL;
    unsigned limit = (unsigned)strlen(word) / 3 + 1, least = limit + 1;
    for (; *names; names++) {
        unsigned d = args_distance(word, *names);
        if (d < least && d < strlen(word)) {
            least = d;
            best = *names;
        }
    }
    return best;
}

// --- help ------------------------------------------------------------------------------

static void args_print_options(const struct option *options, size_t num_options)
{
    printf("\nOptions:\n");
    for (size_t i = 0; i < num_options; i++) {
        char left[64], letter[8] = "    ";
        if (options[i].letter)
            snprintf(letter, sizeof(letter), "-%c, ", options[i].letter);
        snprintf(left, sizeof(left), "%s--%s%s%s", letter, options[i].name,
                 options[i].value ? " " : "", options[i].value ? options[i].value : "");
        printf("  %-24s %s\n", left, options[i].help);
    }
    printf("  %-24s %s\n", "-h, --help", "print this");
}

static void args_print_help(const struct command *command, const struct option *options,
                            size_t num_options)
{
    printf("Usage: tenon %s %s\n\n%s.\n", command->name, command->usage, command->summary);
    if (command->details)
        printf("\n%s", command->details);
    args_print_options(options, num_options);
}

// --- descriptions of commands ----------------------------------------------------------

// While this is set, args_parse() appends the command's description to it, and nothing else
// happens.
static json_t *descriptions;

static json_t *option_row(const struct option *option)
{
    json_t *row = json_pack("{s:s, s:s}", "name", option->name, "help", option->help);
    if (option->letter)
        json_object_set_new(row, "letter", json_stringn(&option->letter, 1));
    if (option->value)
        json_object_set_new(row, "value", json_string(option->value));
    return row;
}

static void args_describe(const struct command *command, const struct option *options,
                          size_t num_options)
{
    static const struct option help = {"help", 'h', NULL, "print this", NULL, NULL};
    json_t *list = json_array();
    for (size_t i = 0; i < num_options; i++)
        json_array_append_new(list, option_row(&options[i]));
    json_array_append_new(list, option_row(&help));
    json_array_append_new(
        descriptions, json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", command->name, "usage",
                                command->usage, "summary", command->summary, "details",
                                command->details ? command->details : "", "options", list));
}

// --- options ---------------------------------------------------------------------------

static int unknown_option(const struct command *command, const char *given,
                          const struct option *options, size_t num_options)
{
    const char *names[MAX_NAMES + 2];
    size_t n = 0;
    for (; n < num_options && n < MAX_NAMES; n++)
        names[n] = options[n].name;
    names[n++] = "help";
    names[n] = NULL;
    const char *bare = given + strspn(given, "-");
    const char *near = strlen(bare) > 1 ? nearest(bare, names) : NULL;
    if (near)
        return misuse("unknown option %s; did you mean --%s?", given, near);
    return misuse("unknown option %s; 'tenon %s --help' lists them (put -- before an "
                  "argument that starts with a dash)",
                  given, command->name);
}

// True when `given` names the option; *out_value is the text after "=", or NULL.
static bool names_option(const char *given, const char *name, char letter,
                         const char **out_value)
{
    *out_value = NULL;
    if (letter && given[0] == '-' && given[1] == letter && given[2] == '\0')
        return true;
    size_t length = strlen(name);
    if (strncmp(given, "--", 2) != 0 || strncmp(given + 2, name, length) != 0)
        return false;
    if (given[2 + length] == '=')
        *out_value = given + 3 + length;
    return given[2 + length] == '\0' || *out_value;
}

// True when `given` is an option of the command, so that it cannot be meant as a value.
static bool args_is_known(const struct option *options, size_t num_options,
                          const char *given)
{
    const char *value;
    for (size_t i = 0; i < num_options; i++)
        if (names_option(given, options[i].name, options[i].letter, &value))
            return true;
    return names_option(given, "help", 'h', &value);
}

// Stores one option; moves *at onto its value if this is an argument of its own.
static int take_option(const struct command *command, const struct option *options,
                       size_t num_options, int argc, char **argv, int *at)
{
    const char *given = argv[*at], *value;
    for (size_t i = 0; i < num_options; i++) {
        const struct option *option = &options[i];
        if (!names_option(given, option->name, option->letter, &value))
            continue;
        if (!option->value) {
            if (value)
                return misuse("--%s takes no value, got '%s'", option->name, value);
            *option->flag = true;
            return 0;
        }
        if (!value &&
            (*at + 1 >= argc || args_is_known(options, num_options, argv[*at + 1])))
            return misuse("--%s needs a value: --%s %s", option->name, option->name,
                          option->value);
        *option->text = value ? value : argv[++*at];
        return 0;
    }
    return unknown_option(command, given, options, num_options);
}

// "-3" and "-(x + 1)" are expressions, "-" is a file: none is an option.
static bool is_option(const char *text)
{
    return text[0] == '-' && (text[1] == '-' || isalpha((unsigned char)text[1]));
}

static int args_check_count(const struct command *command, int min, int max,
                            const struct args *args)
{
    if (args->count < min)
        return misuse("too few arguments; usage: tenon %s %s", command->name,
                      command->usage);
    if (max >= 0 && args->count > max)
        return misuse("unexpected argument '%s'; usage: tenon %s %s", args->items[max],
                      command->name, command->usage);
    return 0;
}

int args_parse(const struct command *command, const struct option *options,
               size_t num_options, int min, int max, int argc, char **argv,
               struct args *out)
{
    struct args mine = {.items = argv + 1};
    if (descriptions) {
        args_describe(command, options, num_options);
        *out = (struct args){.help_shown = true};
        return 0;
    }
    bool literal = false; // after "--"
    for (int i = 1; i < argc; i++) {
        if (!literal && strcmp(argv[i], "--") == 0) {
            literal = true;
        } else if (literal || !is_option(argv[i])) {
            mine.items[mine.count++] = argv[i];
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            args_print_help(command, options, num_options);
            mine.help_shown = true;
            *out = mine;
            return 0;
        } else {
            int failed = take_option(command, options, num_options, argc, argv, &i);
            if (failed)
                return failed;
        }
    }
    *out = mine;
    return args_check_count(command, min, max, &mine);
}

int args_integer(const char *option, const char *text, int64_t low, int64_t high,
                 int64_t *out_value)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < low || value > high)
        return misuse("--%s: got '%s', expected a whole number from %" PRId64
                      " to %" PRId64,
                      option, text, low, high);
    *out_value = value;
    return 0;
}

// --- subcommands -----------------------------------------------------------------------

static const char *last_word(const char *name)
{
    const char *space = strrchr(name, ' ');
    return space ? space + 1 : name;
}

static void list_commands(const struct command_group *group)
{
    printf("Usage: %s COMMAND ...\n\n%s\n\nCommands:\n", group->name, group->about);
    for (size_t i = 0; i < group->num_commands; i++)
        printf("  %-10s %s\n", last_word(group->commands[i].name),
               group->commands[i].summary);
    printf("\n'%s COMMAND --help' explains one.\n", group->name);
}

static int unknown_group_option(const char *group, const char *given)
{
    static const char *const names[] = {"help", "version", NULL};
    const char *near = nearest(given + strspn(given, "-"), names);
    if (near && (strcmp(near, "help") == 0 || !strchr(group, ' ')))
        return misuse("unknown option %s; did you mean %s --%s?", given, group, near);
    return misuse("unknown option %s; options stand behind the command: '%s --help' lists "
                  "commands",
                  given, group);
}

static int unknown_command(const struct command_group *group, const char *given)
{
    const char *names[MAX_NAMES + 1];
    size_t n = 0;
    for (; n < group->num_commands && n < MAX_NAMES; n++)
        names[n] = last_word(group->commands[n].name);
    names[n] = NULL;
    if (given[0] == '-')
        return unknown_group_option(group->name, given);
    const char *near = nearest(given, names);
    if (near)
        return misuse("no command '%s'; did you mean '%s %s'?", given, group->name, near);
    return misuse("no command '%s'; '%s --help' lists them", given, group->name);
}

// Describes the commands of a group by running each: args_parse(), which every command
// calls first, then only appends the description.
static int describe_all(const struct command_group *group)
{
    json_t *members = json_array();
    const char *space = strchr(group->name, ' ');
    json_array_append_new(descriptions,
                          json_pack("{s:s, s:s, s:o}", "name", space ? space + 1 : "",
                                    "about", group->about, "commands", members));
    for (size_t i = 0; i < group->num_commands; i++) {
        const struct command *command = &group->commands[i];
        char *argv[] = {(char *)last_word(command->name), NULL};
        size_t before = json_array_size(descriptions);
        int failed = command->run(command, 1, argv);
        if (failed)
            return failed;
        if (json_array_size(descriptions) == before)
            return oops("the command '%s' says nothing of itself", command->name);
        json_array_append_new(members,
                              json_pack("{s:s, s:s, s:s}", "name", command->name, "word",
                                        argv[0], "summary", command->summary));
        // A group has its summary from the list that contains it.
        json_t *row = json_array_get(descriptions, before);
        if (!json_object_get(row, "summary"))
            json_object_set_new(row, "summary", json_string(command->summary));
    }
    return 0;
}

static const struct command_group *all; // the group that was run first

int commands_describe(json_t *rows)
{
    descriptions = rows;
    int failed = describe_all(all);
    descriptions = NULL;
    return failed;
}

int commands_run(const struct command_group *group, int argc, char **argv)
{
    if (descriptions)
        return describe_all(group);
    if (!all)
        all = group;
    if (argc < 2)
        return misuse("no command given; '%s --help' lists them", group->name);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (strcmp(argv[1], "help") == 0 && argc == 2)) {
        list_commands(group);
        return 0;
    }
    for (size_t i = 0; i < group->num_commands; i++)
        if (strcmp(argv[1], last_word(group->commands[i].name)) == 0)
            return group->commands[i].run(&group->commands[i], argc - 1, argv + 1);
    return unknown_command(group, argv[1]);
}
