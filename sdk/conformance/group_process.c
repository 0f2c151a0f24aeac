// SPDX-License-Identifier: MIT
// What belongs to the whole process and so to the application: a plugin that is loaded,
// started, asked and unloaded leaves all of it as it was.
#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"
#include "checks.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

extern char **environ;

enum { MAX_FILES = 256 };

struct state {
    char locale[256];
    int rounding;
    uint64_t control; // of floating point
    struct sigaction actions[NSIG];
    sigset_t mask;
    char directory[PATH_MAX];
    uint64_t environment; // hash
    mode_t umask;
    struct rlimit limits[RLIM_NLIMITS];
    bool files[MAX_FILES];
    char file_names[MAX_FILES][64];
    int num_threads;
};

static uint64_t float_control(void)
{
#if defined(__x86_64__)
    return _mm_getcsr() & 0xffc0; // without the flags that operations raise
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
    uint64_t hash = 0; // of a set: order does not count
    for (char **p = environ; p && *p; p++) {
        uint64_t one = UINT64_C(0xcbf29ce484222325);
        for (const char *c = *p; *c; c++)
            one = (one ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
        hash += one;
    }
    return hash;
}

static void look_at_files(struct state *state)
{
    char path[64];
    for (int i = 0; i < MAX_FILES; i++) {
        format_text(path, sizeof(path), "/proc/self/fd/%d", i);
        ssize_t n = readlink(path, state->file_names[i], sizeof(state->file_names[i]) - 1);
        state->files[i] = n >= 0;
        state->file_names[i][n > 0 ? n : 0] = 0;
    }
}

static void look(struct state *state)
{
    *state = (struct state){.rounding = fegetround(), .control = float_control()};
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

// --- the trip --------------------------------------------------------------------------

struct trip {
    bool is_made;
    struct state before, after;
    int threads_before_init, threads_after_init, threads_left;
    off_t printed;
    char output[200];
};

// Asks for everything that looking at a plugin asks for.
static void ask(const struct subject *s)
{
    s->entry->query("tn.nothing/1");
    subject_ops(s);
    subject_backend(s);
}

static const char *travel(struct kit *k, struct trip *trip)
{
    struct subject s;
    struct fake_host host;
    const char *why = NULL;
    look(&trip->before);
    if (!subject_load(&s, k->file, &why) || !s.entry->query)
        return why ? why : "it has no query";
    if (!fake_host_init(&host, 0))
        return "out of memory";
    trip->threads_before_init = count_threads();
    if (subject_start(&s, &host) != TN_OK)
        why = "init fails: see entry.init";
    trip->threads_after_init = count_threads();
    if (!why)
        ask(&s);
    subject_stop(&s, &host);
    trip->threads_left = threads_beyond(trip->threads_before_init);
    if (!trip->threads_left) { // its code would be taken away under them
        subject_unload(&s, &host);
        fake_host_finish(&host);
        trip->threads_left = threads_beyond(trip->before.num_threads);
    }
    look(&trip->after);
    return why;
}

// With standard output and error caught.
static void travel_quietly(struct kit *k, struct trip *trip)
{
    int out = dup(1), err = dup(2), caught = memfd_create("printed", 0);
    setenv("LC_ALL", "C.UTF-8", 1); // so that setlocale(LC_ALL, "") shows
    fflush(NULL);
    dup2(caught, 1);
    dup2(caught, 2);
    const char *why = travel(k, trip);
    fflush(NULL);
    dup2(out, 1);
    dup2(err, 2);
    trip->printed = lseek(caught, 0, SEEK_END);
    ssize_t n = pread(caught, trip->output, sizeof(trip->output) - 1, 0);
    trip->output[n > 0 ? n : 0] = 0;
    close(caught);
    close(out);
    close(err);
    trip->is_made = why == NULL;
    if (why)
        check_fail(k, "%s", why);
}

// --- comparing -------------------------------------------------------------------------

static bool same_signals(const struct state *a, const struct state *b, int *out_signal)
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

static void check_signals(struct kit *k, const struct trip *trip)
{
    int number;
    if (!check_begin(k, "process.signals", NULL))
        return;
    bool same = same_signals(&trip->before, &trip->after, &number);
    if (!same && number)
        check_fail(k, "the handler of signal %d (%s) was changed", number,
                   strsignal(number));
    else if (!same)
        check_fail(k, "the mask of blocked signals was changed");
    check_end(k);
}

static void check_files(struct kit *k, const struct trip *trip)
{
    if (!check_begin(k, "process.files", NULL))
        return;
    for (int i = 0; i < MAX_FILES; i++)
        if (trip->after.files[i] != trip->before.files[i])
            check_fail(k, "descriptor %d (%s) was %s", i,
                       trip->after.files[i] ? trip->after.file_names[i]
                                            : trip->before.file_names[i],
                       trip->after.files[i] ? "left open" : "closed");
    check_end(k);
}

static void check_threads(struct kit *k, const struct trip *trip)
{
    if (check_begin(k, "process.init-threads", NULL)) {
        if (trip->threads_after_init > trip->threads_before_init)
            check_fail(k, "init started %d threads",
                       trip->threads_after_init - trip->threads_before_init);
        check_end(k);
    }
    if (check_begin(k, "process.threads", NULL)) {
        if (trip->threads_left)
            check_fail(k, "%d threads are left", trip->threads_left);
        check_end(k);
    }
}

static void check_plain(struct kit *k, const struct trip *trip)
{
    const struct state *a = &trip->before, *b = &trip->after;
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
        if (trip->printed)
            check_fail(k, "it printed %lld bytes: %s", (long long)trip->printed,
                       trip->output);
        check_end(k);
    }
}

// Functions for the process's end (on_exit, signal handlers, destructors of threads' data)
// must not lie in code that is gone.
static void check_exit(struct kit *k)
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
    static struct trip trip;
    bool begun = check_begin(k, "process.survives", NULL);
    if (begun || k->resume == 0) // not wanted itself, but those below are
        travel_quietly(k, &trip);
    if (begun)
        check_end(k);
    if (!trip.is_made)
        return;
    check_plain(k, &trip);
    check_signals(k, &trip);
    check_files(k, &trip);
    check_threads(k, &trip);
    check_exit(k);
}
