// SPDX-License-Identifier: MIT
// tenon completion: scripts that complete command lines in bash, zsh and fish, made from
// the descriptions of the commands.
#include "commands.h"
#include "base/table.h"
#include "complete.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char details[] =
    "Installing Tenon installs them; to try one here:\n"
    "\n"
    "  source <(tenon completion bash)\n"
    "  tenon completion zsh > ~/.zfunc/_tenon\n"
    "  tenon completion fish > ~/.config/fish/completions/tenon.fish\n"
    "\n"
    "The scripts ask for installed names with 'tenon completion plugins', 'ops' and\n"
    "'backends', which print one a line.\n";

// --- reading a usage -------------------------------------------------------------------

static bool completion_is_fixed(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz-");
    return n > 0 && !word[n];
}

// The choice for a word of a usage. `before` is the fixed word before it.
static struct complete_choice completion_choice_of(const char *word, const char *before)
{
    static const struct {
        const char *word, *before;
        int kind;
    } known[] = {
        {"ID", NULL, PLUGINS},         {"DIR", NULL, FOLDERS},
        {"FILE", NULL, FILES},         {"MANIFEST", NULL, FILES},
        {"KEY", NULL, FILES},          {"NAME=VALUE", NULL, FILES},
        {"NAME", "backend", BACKENDS}, {"NAME", "op", OPERATORS},
        {"PATTERN", "ops", OPERATORS},
    };
    struct complete_choice choice = {.kind = NOTHING};
    for (size_t i = 0; i < COUNT(known); i++)
        if (strcmp(word, known[i].word) == 0 &&
            (!known[i].before || strcmp(before, known[i].before) == 0))
            choice.kind = known[i].kind;
    if (completion_is_fixed(word)) {
        choice.kind = WORD;
        snprintf(choice.word, sizeof(choice.word), "%s", word);
    } else if (strchr(word, '.') && isalnum((unsigned char)word[strlen(word) - 1])) {
        choice.kind = FILES; // "PLUGIN.so"
    }
    return choice;
}

// A position in a usage: the word last read, and the text after it.
struct usage {
    const char *at;
    char word[32];
    bool first; // `word` is the first of an alternative
};

static struct usage usage_of(const json_t *command)
{
    return (struct usage){.at = text_of(command, "usage")};
}

// Reads the next word. False at the usage's end and where its options start.
static bool next_word(struct usage *usage)
{
    const char *text = usage->at + strspn(usage->at, " |[]'");
    if (!*text || *text == '-')
        return false;
    usage->first =
        !usage->word[0] || memchr(usage->at, '|', (size_t)(text - usage->at)) != NULL;
    size_t size = strcspn(text, " |[]'");
    snprintf(usage->word, sizeof(usage->word), "%.*s", (int)size, text);
    usage->at = text + size;
    return true;
}

static const char *own_word(const json_t *command)
{
    const char *name = text_of(command, "name"), *space = strrchr(name, ' ');
    return space ? space + 1 : name;
}

static void completion_add(struct complete_choice choice, struct complete_choice *out,
                           size_t max, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        if ((out[i].kind == choice.kind && strcmp(out[i].word, choice.word) == 0) ||
            (out[i].kind == FILES && choice.kind == FOLDERS)) // folders are among the files
            return;
    if (choice.kind != NOTHING && *n < max)
        out[(*n)++] = choice;
}

size_t choices_of(const json_t *command, struct complete_choice *out, size_t max)
{
    struct usage usage = usage_of(command);
    bool behind_fixed = false;
    size_t n = 0;
    while (next_word(&usage)) {
        behind_fixed = behind_fixed && !usage.first;
        if (!behind_fixed)
            completion_add(completion_choice_of(usage.word, own_word(command)), out, max,
                           &n);
        behind_fixed = behind_fixed || completion_is_fixed(usage.word);
    }
    return n;
}

bool choice_behind(const json_t *command, size_t i, char fixed[32],
                   struct complete_choice *out)
{
    struct usage usage = usage_of(command);
    size_t skipped = 0; // choices after a fixed word
    char before[32] = "";
    while (next_word(&usage)) {
        struct complete_choice choice = completion_choice_of(usage.word, before);
        if (!usage.first && before[0] && choice.kind != NOTHING && skipped++ == i) {
            snprintf(fixed, 32, "%s", before);
            *out = choice;
            return true;
        }
        snprintf(before, sizeof(before), "%s",
                 completion_is_fixed(usage.word) ? usage.word : "");
    }
    return false;
}

struct complete_choice choice_of_option(const json_t *option)
{
    const char *value = text_of(option, "value");
    struct complete_choice choice = {.kind = NOTHING};
    if (!strchr(value, '|'))
        choice = completion_choice_of(value, "");
    return choice;
}

// --- installed names -------------------------------------------------------------------

// Shells expand completions, so only names of plain characters are offered.
static void completion_offer(const char *name, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._-";
    if (size && strspn(name, plain) >= size)
        say("%.*s\n", (int)size, name);
}

static int print_plugins(tn_runtime *runtime, bool backends)
{
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info))
            continue;
        if (!backends)
            completion_offer(info.id, strlen(info.id));
        for (const char *const *name = info.backends; backends && *name; name++)
            completion_offer(*name, strlen(*name));
    }
    return 0;
}

static int print_ops(tn_runtime *runtime)
{
    const char *const *names = tn_primitive_names(runtime);
    for (; names && *names; names++)
        completion_offer(*names, strcspn(*names, "/"));
    return names ? 0 : oops_library();
}

static int print_installed(const char *what)
{
    // Warnings must not appear while a command line is typed.
    static const char *const quiet[] = {"TENON_LOG=off", NULL};
    const tn_runtime_options options = {.struct_size = sizeof(options), .variables = quiet};
    tn_runtime *runtime;
    if (tn_runtime_open(&options, &runtime))
        return oops_library();
    int failed = strcmp(what, "ops") == 0
                     ? print_ops(runtime)
                     : print_plugins(runtime, strcmp(what, "backends") == 0);
    tn_runtime_close(runtime);
    return failed;
}

// --- the command -----------------------------------------------------------------------

static int print_script(void (*write)(const json_t *rows))
{
    json_t *rows = json_array();
    int failed = commands_describe(rows);
    if (!failed)
        write(rows);
    json_decref(rows);
    return failed;
}

int cmd_completion(const struct command *self, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(const json_t *rows);
    } shells[] = {{"bash", complete_bash}, {"zsh", complete_zsh}, {"fish", complete_fish}};
    static const char *const names[] = {"bash", "zsh",      "fish", "plugins",
                                        "ops",  "backends", NULL};
    struct command mine = *self;
    mine.details = details;
    struct args args;
    int failed = args_parse(&mine, NULL, 0, 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    const char *what = args.items[0];
    for (size_t i = 0; i < COUNT(shells); i++)
        if (strcmp(what, shells[i].name) == 0)
            return print_script(shells[i].write);
    for (const char *const *name = names; *name; name++)
        if (strcmp(what, *name) == 0)
            return print_installed(what);
    const char *near = nearest(what, names);
    return misuse("completion: got '%s', expected bash, zsh, fish, plugins, ops or "
                  "backends%s%s%s",
                  what, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}
