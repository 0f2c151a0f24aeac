// SPDX-License-Identifier: MIT
// The script that completes command lines in zsh.
#include "complete.h"
#include "base/table.h"

#include <stdio.h>
#include <string.h>

// Three tables by command, then one function that looks them up. "reply" holds words with
// their descriptions, "kinds" the sources of further words.
static const char head[] =
    "#compdef tenon\n"
    "# Completion for tenon in zsh. Made by 'tenon completion zsh'.\n\n";

static const char tail[] =
    "_tenon()\n"
    "{\n"
    "    local command='' word before=$words[CURRENT-1]\n"
    "    local -a reply kinds\n"
    "    for word in ${words[2,CURRENT-1]}; do\n"
    "        reply=()\n"
    "        [[ $word != -* ]] && _tenon_options \"${command:+$command }$word\"\n"
    "        (( $#reply )) || break\n"
    "        command=${command:+$command }$word\n"
    "    done\n"
    "    reply=()\n"
    "    if [[ $words[CURRENT] == -* ]]; then\n"
    "        _tenon_options \"$command\"\n"
    "        _describe -o option reply\n"
    "        return\n"
    "    fi\n"
    "    _tenon_behind \"$command $before\" || _tenon_operands \"$command\"\n"
    "    (( $#reply )) && _describe argument reply\n"
    "    for word in $kinds; do\n"
    "        case $word in\n"
    "        files) _files ;;\n"
    "        folders) _files -/ ;;\n"
    "        *) compadd -- ${(f)\"$($words[1] completion $word 2>/dev/null)\"} ;;\n"
    "        esac\n"
    "    done\n"
    "}\n\n"
    "if [[ $funcstack[1] == _tenon ]]; then _tenon \"$@\"; else compdef _tenon tenon; fi\n";

// Prints 'word:description'.
static void print_word(const char *dashes, const char *word, const char *meaning)
{
    printf(" '%s%s", dashes, word);
    if (*meaning)
        printf(":");
    for (; *meaning; meaning++)
        printf(*meaning == '\'' ? "'\\''" : "%c", *meaning);
    printf("'");
}

static void zsh_print_options(const json_t *command)
{
    size_t i;
    json_t *option;
    printf("    '%s') reply=(", text_of(command, "name"));
    if (!json_object_get(command, "options"))
        print_word("--", "help", "print this"); // groups have no options of their own
    json_array_foreach(json_object_get(command, "options"), i, option)
        print_word("--", text_of(option, "name"), text_of(option, "help"));
    printf(") ;;\n");
}

static void print_choices(const struct complete_choice *choices, size_t n)
{
    static const char *const kinds[] = {
        [NOTHING] = "",           [WORD] = "",
        [FILES] = " files",       [FOLDERS] = " folders",
        [PLUGINS] = " plugins",   [OPERATORS] = " ops",
        [BACKENDS] = " backends",
    };
    printf(" kinds=(");
    for (size_t i = 0; i < n; i++)
        printf("%s", kinds[choices[i].kind]);
    printf(") ;;\n");
}

static void zsh_print_operands(const json_t *command)
{
    struct complete_choice choices[MAX_CHOICES];
    size_t n = choices_of(command, choices, MAX_CHOICES), i;
    json_t *member;
    printf("    '%s') reply=(", text_of(command, "name"));
    json_array_foreach(json_object_get(command, "commands"), i, member)
        print_word("", text_of(member, "word"), text_of(member, "summary"));
    for (size_t c = 0; c < n; c++)
        if (choices[c].kind == WORD)
            print_word("", choices[c].word, "");
    printf(")");
    print_choices(choices, n);
}

// Prints the choices after each option that takes a value, and after each fixed word.
static void zsh_print_behind(const json_t *command)
{
    const char *name = text_of(command, "name");
    size_t i;
    json_t *option;
    struct complete_choice choice;
    char word[32];
    json_array_foreach(json_object_get(command, "options"), i, option)
    {
        if (!json_object_get(option, "value"))
            continue;
        printf("    '%s --%s'", name, text_of(option, "name"));
        if (json_object_get(option, "letter"))
            printf("|'%s -%s'", name, text_of(option, "letter"));
        printf(")");
        choice = choice_of_option(option);
        print_choices(&choice, 1);
    }
    for (i = 0; choice_behind(command, i, word, &choice); i++) {
        printf("    '%s %s')", name, word);
        print_choices(&choice, 1);
    }
}

static void zsh_print_table(const json_t *rows, const char *name, const char *otherwise,
                            void (*print)(const json_t *command))
{
    size_t i;
    json_t *command;
    printf("%s()\n{\n    case $1 in\n", name);
    json_array_foreach(rows, i, command) print(command);
    printf("    *) %s ;;\n    esac\n}\n\n", otherwise);
}

void complete_zsh(const json_t *rows)
{
    printf("%s", head);
    zsh_print_table(rows, "_tenon_options", "reply=()", zsh_print_options);
    zsh_print_table(rows, "_tenon_operands", "reply=() kinds=()", zsh_print_operands);
    zsh_print_table(rows, "_tenon_behind", "return 1", zsh_print_behind);
    printf("%s", tail);
}
