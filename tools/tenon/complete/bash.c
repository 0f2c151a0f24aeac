// SPDX-License-Identifier: MIT
// The script that completes command lines in bash.
#include "complete.h"
#include "base/table.h"

#include <stdio.h>

// Three tables by command, then one function that looks them up.
static const char head[] =
    "# Completion for tenon in bash. Made by 'tenon completion bash'.\n\n";

static const char tail[] =
    "_tenon_add()\n"
    "{\n"
    "    local line\n"
    "    while IFS= read -r line; do COMPREPLY+=(\"$line\"); done\n"
    "}\n\n"
    "_tenon()\n"
    "{\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local command='' word choice i\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        [[ $word != -* && -n $(_tenon_options \"${command:+$command }$word\") ]] || "
    "break\n"
    "        command=${command:+$command }$word\n"
    "    done\n"
    "    COMPREPLY=()\n"
    "    if [[ $current == -* ]]; then\n"
    "        _tenon_add < <(compgen -W \"$(_tenon_options \"$command\")\" -- "
    "\"$current\")\n"
    "        return\n"
    "    fi\n"
    "    choice=$(_tenon_behind \"$command $before\")\n"
    "    [[ -n $choice ]] || choice=$(_tenon_operands \"$command\")\n"
    "    for word in $choice; do\n"
    "        case $word in\n"
    "        :none) ;;\n"
    "        :file) _tenon_add < <(compgen -f -- \"$current\") ;;\n"
    "        :folder) _tenon_add < <(compgen -d -- \"$current\") ;;\n"
    "        :*) _tenon_add < <(compgen -W \"$(\"${COMP_WORDS[0]}\" completion ${word#:} "
    "2>/dev/null)\" -- \"$current\") ;;\n"
    "        *) _tenon_add < <(compgen -W \"$word\" -- \"$current\") ;;\n"
    "        esac\n"
    "    done\n"
    "}\n\n"
    "complete -o filenames -F _tenon tenon\n";

static void bash_print_choice(const struct complete_choice *choice)
{
    static const char *const words[] = {
        [NOTHING] = ":none",      [WORD] = "",
        [FILES] = ":file",        [FOLDERS] = ":folder",
        [PLUGINS] = ":plugins",   [OPERATORS] = ":ops",
        [BACKENDS] = ":backends",
    };
    printf(" %s", choice->kind == WORD ? choice->word : words[choice->kind]);
}

static void bash_print_options(const json_t *command)
{
    size_t i;
    json_t *option;
    printf("    '%s') echo '", text_of(command, "name"));
    if (!json_object_get(command, "options"))
        printf("--help"); // groups have no options of their own
    json_array_foreach(json_object_get(command, "options"), i, option)
        printf("%s--%s", i ? " " : "", text_of(option, "name"));
    printf("' ;;\n");
}

static void bash_print_operands(const json_t *command)
{
    struct complete_choice choices[MAX_CHOICES];
    size_t n = choices_of(command, choices, MAX_CHOICES), i;
    json_t *member;
    printf("    '%s') echo '", text_of(command, "name"));
    json_array_foreach(json_object_get(command, "commands"), i, member)
        printf(" %s", text_of(member, "word"));
    for (size_t c = 0; c < n; c++)
        bash_print_choice(&choices[c]);
    printf("' ;;\n");
}

// Prints the choices after each option that takes a value, and after each fixed word.
static void bash_print_behind(const json_t *command)
{
    const char *name = text_of(command, "name");
    size_t i;
    json_t *option;
    json_array_foreach(json_object_get(command, "options"), i, option)
    {
        if (!json_object_get(option, "value"))
            continue;
        struct complete_choice choice = choice_of_option(option);
        printf("    '%s --%s'", name, text_of(option, "name"));
        if (json_object_get(option, "letter"))
            printf("|'%s -%s'", name, text_of(option, "letter"));
        printf(") echo '");
        bash_print_choice(&choice);
        printf("' ;;\n");
    }
    char word[32];
    struct complete_choice choice;
    for (i = 0; choice_behind(command, i, word, &choice); i++) {
        printf("    '%s %s') echo '", name, word);
        bash_print_choice(&choice);
        printf("' ;;\n");
    }
}

static void bash_print_table(const json_t *rows, const char *name,
                             void (*print)(const json_t *command))
{
    size_t i;
    json_t *command;
    printf("%s()\n{\n    case $1 in\n", name);
    json_array_foreach(rows, i, command) print(command);
    printf("    esac\n}\n\n");
}

void complete_bash(const json_t *rows)
{
    printf("%s", head);
    bash_print_table(rows, "_tenon_options", bash_print_options);
    bash_print_table(rows, "_tenon_operands", bash_print_operands);
    bash_print_table(rows, "_tenon_behind", bash_print_behind);
    printf("%s", tail);
}
