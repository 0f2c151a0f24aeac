// SPDX-License-Identifier: MIT
// Finds an installed program, and executes it in place of this process.
#include "program.h"
#include "files/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Writes parsed options and arguments as words again, ended by NULL. `names` has room for
// the options.
static void write_words(const char *name, const struct option *options, size_t num_options,
                        const struct args *args, const char **words, char *names)
{
    size_t n = 0;
    words[n++] = name;
    for (size_t i = 0; i < num_options; i++) {
        const struct option *option = &options[i];
        if (option->value ? !*option->text : !*option->flag)
            continue;
        words[n++] = names;
        names += sprintf(names, "--%s", option->name) + 1;
        if (option->value)
            words[n++] = *option->text;
    }
    bool is_dashed = false; // an argument would be taken for an option without "--"
    for (int i = 0; i < args->count; i++)
        is_dashed |= args->items[i][0] == '-';
    if (is_dashed)
        words[n++] = "--";
    for (int i = 0; i < args->count; i++)
        words[n++] = args->items[i];
    words[n] = NULL;
}

int program_run(const char *name, const char *built, const char *missing,
                const struct option *options, size_t num_options, const struct args *args)
{
    const char *const folders[] = {"../" TN_LIBEXEC, built};
    char path[PATH_MAX];
    size_t names_size = 0;
    for (size_t i = 0; i < num_options; i++)
        names_size += strlen(options[i].name) + sizeof("--");
    if (!find_beside(folders, COUNT(folders), name, path))
        return oops("%s", missing);
    const char **words = calloc(2 * num_options + (size_t)args->count + 3, sizeof(*words));
    char *names = malloc(names_size + 1);
    int failed = words && names ? 0 : oops_memory();
    if (!failed) {
        write_words(name, options, num_options, args, words, names);
        fflush(NULL);
        execv(path, (char *const *)words);
        failed = oops("cannot run %s: %s", path, strerror(errno));
    }
    free(words);
    free(names);
    return failed;
}
