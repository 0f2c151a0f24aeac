// SPDX-License-Identifier: MIT
// The state of the process belongs to the application: a plugin that is loaded, started,
// queried and unloaded must not change it.
#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../kit/fixture.h"
#include "groups.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

extern char **environ;

enum { MAX_FILES = 256 };

// A snapshot of the state of the process.
struct process_state {
    char locale[256];
    int rounding;
    uint64_t control; // floating-point control register
    struct sigaction actions[NSIG];
    sigset_t mask;
    char directory[PATH_MAX];
    uint64_t environment; // hash of all variables
    mode_t umask;
    struct rlimit limits[RLIM_NLIMITS];
    bool files[MAX_FILES];
    char file_names[MAX_FILES][64];
    int num_threads;
};

static uint64_t float_control(void)
{
#if defined(__x86_64__)
    return _mm_getcsr() & 0xffc0; // without the sticky exception flags
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return 0;
#endif
}

static uint64_t hash_environment(void)
{
    // A sum over the variables, so that their order does not matter.
    uint64_t hash = 0;
    for (char **p = environ; p && *p; p++) {
        uint64_t one = UINT64_C(0xcbf29ce484222325);
        for (const char *c = *p; *c; c++)
            one = (one ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
        hash += one;
    }
    return hash;
}

static void look_at_files(struct process_state *state)
{
    char path[64];
    for (int i = 0; i < MAX_FILES; i++) {
        format_text(path, sizeof(path), "/proc/self/fd/%d", i);
        ssize_t n = readlink(path, state->file_names[i], sizeof(state->file_names[i]) - 1);
        state->files[i] = n >= 0;
        state->file_names[i][n > 0 ? n : 0] = 0;
    }
}

static void process_group_look(struct process_state *state)
{
    *state = (struct process_state){.rounding = fegetround(), .control = float_control()};
    format_text(state->locale, sizeof(state->locale), "%s", setlocale(LC_ALL, NULL));
    for (int i = 1; i < NSIG; i++)
        sigaction(i, NULL, &state->actions[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &state->mask);
    if (!getcwd(state->directory, sizeof(state->directory)))
        state->directory[0] = 0;
    state->environment = hash_environment();
    umask(state->umask = umask(0));
    for (int i = 0; i < RLIM_NLIMITS; i++)
        getrlimit((unsigned)i, &state->limits[i]);
    look_at_files(state);
    state->num_threads = count_threads();
}

// --- one life --------------------------------------------------------------------------

struct plugin_life {
    bool is_complete;
    struct process_state before, after;
    int threads_before_init, threads_after_init, threads_left;
    off_t printed;
    char output[200];
};

// Queries the interfaces that the core queries.
static void process_group_ask(const struct subject *s)
{
    s->entry->query("tn.nothing/1");
    subject_ops(s);
    subject_backend(s);
}

static const char *process_group_live(struct kit *k, struct plugin_life *life)
{
    struct subject s;
    struct fake_host host;
    const char *why = NULL;
    process_group_look(&life->before);
    if (!subject_load(&s, k->file, &why) || !s.entry->query)
        return why ? why : "it has no query";
    if (!fake_host_init(&host, 0))
        return "out of memory";
    life->threads_before_init = count_threads();
    if (subject_start(&s, &host) != TN_OK)
        why = "init fails: see entry.init";
    life->threads_after_init = count_threads();
    if (!why)
        process_group_ask(&s);
    subject_stop(&s, &host);
    life->threads_left = threads_beyond(life->threads_before_init);
    if (!life->threads_left) { // unloading removes the code of threads that are left
        subject_unload(&s, &host);
        fake_host_finish(&host);
        life->threads_left = threads_beyond(life->before.num_threads);
    }
    process_group_look(&life->after);
    return why;
}

// Runs process_group_live() with standard output and standard error captured.
static void live_quietly(struct kit *k, struct plugin_life *life)
{
    int out = dup(1), err = dup(2), caught = memfd_create("printed", 0);
    setenv("LC_ALL", "C.UTF-8", 1); // so that setlocale(LC_ALL, "") changes something
    fflush(NULL);
    dup2(caught, 1);
    dup2(caught, 2);
    const char *why = process_group_live(k, life);
    fflush(NULL);
    dup2(out, 1);
    dup2(err, 2);
    life->printed = lseek(caught, 0, SEEK_END);
    ssize_t n = pread(caught, life->output, sizeof(life->output) - 1, 0);
    life->output[n > 0 ? n : 0] = 0;
    close(caught);
    close(out);
    close(err);
    life->is_complete = why == NULL;
    if (why)
        check_fail(k, "%s", why);
}

// --- comparing -------------------------------------------------------------------------

static bool same_signals(const struct process_state *a, const struct process_state *b,
                         int *out_signal)
{
    for (int i = 1; i < NSIG; i++)
        if (a->actions[i].sa_handler != b->actions[i].sa_handler) {
            *out_signal = i;
            return false;
        }
    *out_signal = 0;
    for (int i = 1; i < NSIG; i++)
        if (sigismember(&a->mask, i) != sigismember(&b->mask, i))
            return false;
    return true;
}

static void check_process_signals(struct kit *k, const struct plugin_life *life)
{
    int number;
    if (!check_begin(k, "process.signals", NULL))
        return;
    bool same = same_signals(&life->before, &life->after, &number);
    if (!same && number)
        check_fail(k, "the handler of signal %d (%s) was changed", number,
                   strsignal(number));
    else if (!same)
        check_fail(k, "the mask of blocked signals was changed");
    check_end(k);
}

static void check_process_files(struct kit *k, const struct plugin_life *life)
{
    if (!check_begin(k, "process.files", NULL))
        return;
    for (int i = 0; i < MAX_FILES; i++)
        if (life->after.files[i] != life->before.files[i])
            check_fail(k, "descriptor %d (%s) was %s", i,
                       life->after.files[i] ? life->after.file_names[i]
                                            : life->before.file_names[i],
                       life->after.files[i] ? "left open" : "closed");
    check_end(k);
}

static void check_process_threads(struct kit *k, const struct plugin_life *life)
{
    if (check_begin(k, "process.init-threads", NULL)) {
        if (life->threads_after_init > life->threads_before_init)
            check_fail(k, "init started %d threads",
                       life->threads_after_init - life->threads_before_init);
        check_end(k);
    }
    if (check_begin(k, "process.threads", NULL)) {
        if (life->threads_left)
            check_fail(k, "%d threads are left", life->threads_left);
        check_end(k);
    }
}

static void check_process_plain(struct kit *k, const struct plugin_life *life)
{
    const struct process_state *a = &life->before, *b = &life->after;
    const struct {
        const char *check;
        bool same;
        const char *what;
    } plain[] = {
        {"process.rounding", a->rounding == b->rounding && a->control == b->control,
         "the floating-point control word (rounding, denormals, traps) was changed; is it "
         "linked with -ffast-math?"},
        {"process.environment", a->environment == b->environment,
         "a variable of the environment was set, changed or removed"},
        {"process.umask", a->umask == b->umask, "the umask was changed"},
        {"process.limits", memcmp(a->limits, b->limits, sizeof(a->limits)) == 0,
         "a resource limit was changed"},
    };
    for (size_t i = 0; i < COUNT(plain); i++)
        if (check_begin(k, plain[i].check, NULL)) {
            if (!plain[i].same)
                check_fail(k, "%s", plain[i].what);
            check_end(k);
        }
    if (check_begin(k, "process.locale", NULL)) {
        if (strcmp(a->locale, b->locale) != 0)
            check_fail(k, "the locale was \"%s\" and is \"%s\"", a->locale, b->locale);
        check_end(k);
    }
    if (check_begin(k, "process.directory", NULL)) {
        if (strcmp(a->directory, b->directory) != 0)
            check_fail(k, "the working directory was %s and is %s", a->directory,
                       b->directory);
        check_end(k);
    }
    if (check_begin(k, "process.output", NULL)) {
        if (life->printed)
            check_fail(k, "it printed %lld bytes: %s", (long long)life->printed,
                       life->output);
        check_end(k);
    }
}

// Exit handlers, signal handlers and destructors of thread-specific data must not lie in
// unloaded code.
static void check_process_exit(struct kit *k)
{
    int status = 0;
    if (!check_begin(k, "process.exit", NULL))
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        exit(0);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        check_skip(k, "no process can be started");
    else if (WIFSIGNALED(status))
        check_fail(k,
                   "after it was unloaded the process ends with signal %d: something "
                   "was registered for its end",
                   WTERMSIG(status));
    else if (WEXITSTATUS(status))
        check_fail(k, "after it was unloaded the process ends with status %d",
                   WEXITSTATUS(status));
    check_end(k);
}

void group_process(struct kit *k)
{
    static struct plugin_life life;
    bool begun = check_begin(k, "process.survives", NULL);
    // The checks below need the results even if this one is not wanted.
    if (begun || k->resume == 0)
        live_quietly(k, &life);
    if (begun)
        check_end(k);
    if (!life.is_complete)
        return;
    check_process_plain(k, &life);
    check_process_signals(k, &life);
    check_process_files(k, &life);
    check_process_threads(k, &life);
    check_process_exit(k);
}
