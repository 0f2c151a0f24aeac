// SPDX-License-Identifier: MIT
// The operator suite over base and nn, run on the backend in a process of its own: odd
// values, every dtype and layout, derivatives, random numbers, optimisers.
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../kit/fixture.h"
#include "groups.h"

extern char **environ;

enum { LINE = 1024 };

// Finds tenon-suite beside the kit, or in a build folder.
static bool find_suite(char path[PATH_MAX])
{
    static const char *const files[] = {"tenon-suite", "../../tests/suite/tenon-suite"};
    char self[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[size > 0 ? size : 0] = 0;
    char *slash = strrchr(self, '/');
    if (!slash)
        return false;
    slash[1] = 0;
    for (size_t i = 0; i < COUNT(files); i++) {
        format_text(path, PATH_MAX, "%.3000s%s", self, files[i]);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

// Starts the suite with the staged plugin first in TENON_PLUGIN_PATH. Gives a stream of its
// output, and *out_pid. NULL: the suite is not installed or cannot be started.
static FILE *suite_start(struct kit *k, const char *backend, pid_t *out_pid)
{
    char path[PATH_MAX], plugins[2 * PATH_MAX], seed[24];
    const char *old = getenv("TENON_PLUGIN_PATH");
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (!find_suite(path) || pipe(ends))
        return NULL;
    format_text(plugins, sizeof(plugins), "%s/plugins%s%s", k->folder, old ? ":" : "",
                old ? old : "");
    format_text(seed, sizeof(seed), "%llu", (unsigned long long)k->seed);
    setenv("TENON_PLUGIN_PATH", plugins, 1);
    setenv("TENON_FALLBACK", "allow", 1); // to the backends of --with
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    posix_spawn_file_actions_addclose(&actions, RESULTS_FD);
    const char *argv[] = {path,     backend, "--partial",
                          "--seed", seed,    k->with ? "--with" : NULL,
                          k->with,  NULL};
    int error = posix_spawn(out_pid, path, &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (!error)
        return fdopen(ends[0], "r");
    close(ends[0]);
    return NULL;
}

// --- the suite's output ----------------------------------------------------------------

// Reports a line of TAP, "ok 7 - base.add (14 checks) # SKIP why", as a check. `note` is
// the first comment line before it.
static void take_test(struct kit *k, const char *backend, const char *line,
                      const char *note)
{
    bool failed = strncmp(line, "not ok", 6) == 0;
    const char *name = strstr(line, " - "), *why = strstr(line, "# SKIP ");
    unsigned checks = 0;
    if (!name)
        return;
    name += 3;
    const char *end = strrchr(name, '(');
    int size = end && end > name ? (int)(end - name) : (int)strcspn(name, "#");
    while (size > 0 && name[size - 1] == ' ')
        size--;
    if (!check_begin(k, "suite.test", "%.40s %.*s", backend, size, name))
        return;
    if (end)
        checks = (unsigned)strtoul(end + 1, NULL, 10);
    for (unsigned i = 0; i < checks; i++)
        check_case(k);
    if (failed)
        check_fail(k, "%s", note[0] ? note : line);
    else if (why)
        check_skip(k, "%s", why + 7);
    check_end(k);
}

static void check_suite_ends(struct kit *k, const char *backend, int status, bool is_whole)
{
    if (!check_begin(k, "suite.ends", "%.40s", backend))
        return;
    if (WIFSIGNALED(status))
        check_fail(k, "the suite is killed by signal %d (%s)", WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
    else if (!is_whole)
        check_fail(k, "the suite ends early, with status %d", WEXITSTATUS(status));
    check_end(k);
}

static void run_suite(struct kit *k, const char *backend)
{
    char line[LINE], note[LINE] = "";
    bool is_whole = false; // the last line, "1..N", was read
    int status = 0;
    pid_t pid;
    FILE *output = suite_start(k, backend, &pid);
    if (!output) {
        skip(k, "suite.test", "tenon-suite is not installed");
        return;
    }
    while (fgets(line, sizeof(line), output)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '#' && !note[0])
            format_text(note, sizeof(note), "%s", line + 1 + (line[1] == ' '));
        is_whole |= strncmp(line, "1..", 3) == 0;
        if (strncmp(line, "ok", 2) != 0 && strncmp(line, "not ok", 6) != 0)
            continue;
        take_test(k, backend, line, note);
        note[0] = 0;
    }
    fclose(output);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    check_suite_ends(k, backend, status, is_whole);
}

// --- the backend -----------------------------------------------------------------------

// Returns NULL when the suite runs on the backend's first device, or why it does not.
static const char *suite_group_refusal(struct fixture *f)
{
    const char *why;
    tn_device_info info = {.struct_size = sizeof(info)};
    if (fixture_count(f, &why) == 0)
        return why;
    if (f->backend->device_info(f->host.table, 0, &info) != TN_OK)
        return "its device cannot be described";
    if (info.flags & TN_DEVICE_COMPUTES_NOTHING)
        return "it computes nothing";
    if (!fixture_is_wanted(f))
        return "its first device is none of --devices";
    if (info.flags & TN_DEVICE_SOFTWARE && !f->kit->only)
        return "it takes minutes on a device that is emulated: --only 'suite.*'";
    return NULL;
}

void group_suite(struct kit *k)
{
    static struct fixture f;
    char backend[64];
    const char *why = NULL;
    if (!fixture_start(&f, k))
        return;
    format_text(backend, sizeof(backend), "%.63s", f.backend->name);
    const char *refused = suite_group_refusal(&f);
    if (refused)
        skip(k, "suite.test", refused);
    fixture_finish(&f);
    if (refused)
        return;
    tn_runtime *runtime = subject_runtime(k, NULL, &why); // also stages the plugin
    bool has_packs = runtime && tn_primitive_find(runtime, "base.add/1") &&
                     tn_primitive_find(runtime, "nn.relu/1");
    tn_runtime_close(runtime);
    if (has_packs)
        run_suite(k, backend);
    else
        skip(k, "suite.test", runtime ? "base and nn are not installed" : why);
}
