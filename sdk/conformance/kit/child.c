// SPDX-License-Identifier: MIT
// Starts a group in a child process, reads its result lines and interprets its exit.
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ENDS = 100, MAX_LINE = 16384, MAX_OUTPUT = 600 };

struct group_child {
    pid_t pid;
    int results; // read end of the pipe
    int output;  // memfd of the child's stdout and stderr
    int status;
    bool has_ended, is_late;
};

// Progress of a group, kept across the children that run it.
struct group_progress {
    uint64_t number;                // of the last check that began
    const struct check_info *check; // the last check that began, or NULL
    char subject[SUBJECT_SIZE];
    bool is_open; // `check` has begun and not ended
};

// --- starting --------------------------------------------------------------------------

static void become_child(const struct run_options *options, const char *group,
                         uint64_t resume, int results, int output)
{
    char seed[24], number[24];
    const char *argv[24] = {"tenon-conformance", "--child", group, "--folder",
                            options->folder};
    int n = 5;
    struct rlimit none = {0, 0};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &none);
    dup2(output, 1);
    dup2(output, 2);
    if (results == RESULTS_FD)
        fcntl(results, F_SETFD, 0);
    else
        dup2(results, RESULTS_FD);
    argv[n++] = "--seed";
    argv[n++] = format_text(seed, sizeof(seed), "%llu", (unsigned long long)options->seed);
    argv[n++] = "--resume";
    argv[n++] = format_text(number, sizeof(number), "%llu", (unsigned long long)resume);
    if (options->only) {
        argv[n++] = "--only";
        argv[n++] = options->only;
    }
    if (options->examples) {
        argv[n++] = "--examples";
        argv[n++] = options->examples;
    }
    if (options->samples) {
        argv[n++] = "--samples";
        argv[n++] = options->samples;
    }
    if (options->devices) {
        argv[n++] = "--devices";
        argv[n++] = options->devices;
    }
    if (options->with) {
        argv[n++] = "--with";
        argv[n++] = options->with;
    }
    argv[n++] = options->file;
    argv[n] = NULL;
    execv("/proc/self/exe", (char *const *)argv);
    _exit(127);
}

static bool child_start(struct group_child *child, const struct run_options *options,
                        const char *group, uint64_t resume)
{
    int ends[2];
    *child = (struct group_child){.output = memfd_create("output", MFD_CLOEXEC)};
    if (child->output < 0 || pipe2(ends, O_CLOEXEC))
        return false;
    child->results = ends[0];
    fflush(NULL);
    child->pid = fork();
    if (child->pid == 0)
        become_child(options, group, resume, ends[1], child->output);
    close(ends[1]);
    return child->pid > 0;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Processor time that the child has used, in seconds.
static double child_processor_seconds(const struct group_child *child)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(child->pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Whether a check takes longer than the timeout. A check that waits counts by the clock; a
// check that computes counts by its own processor time, since other processes take the
// processor from it, but to STARVED times the timeout by the clock.
#define STARVED 10
#define LEAST_SHARE 0.02 // of a processor; a check with less waits
static bool child_is_late(const struct group_child *child, double since,
                          double processor_since, double timeout)
{
    double passed = seconds_now() - since;
    double own = child_processor_seconds(child) - processor_since;
    if (passed <= timeout)
        return false;
    return own >= timeout || own < LEAST_SHARE * passed || passed > STARVED * timeout;
}

// --- reading ---------------------------------------------------------------------------

static enum outcome outcome_of(const char *text)
{
    return strcmp(text, "pass") == 0   ? PASSED
           : strcmp(text, "warn") == 0 ? WARNED
           : strcmp(text, "skip") == 0 ? SKIPPED
                                       : FAILED;
}

// A line is a JSON object: {"begin": ...} when a check begins, {"check": ...} when it ends.
static void take_line(struct report *report, const struct check_info *checks,
                      struct group_progress *progress, const char *line)
{
    const char *begin = NULL, *check = NULL, *subject = "", *outcome = "", *detail = "";
    json_int_t number = 0, cases = 0, failures = 0;
    json_t *object = json_loads(line, 0, NULL);
    json_unpack(object, "{s?s, s?s, s?s, s?s, s?s, s?I, s?I, s?I}", "begin", &begin,
                "check", &check, "subject", &subject, "outcome", &outcome, "detail",
                &detail, "number", &number, "cases", &cases, "failures", &failures);
    const struct check_info *info = begin ? check_find(checks, begin) : NULL;
    if (info) {
        progress->check = info;
        progress->number = (uint64_t)number;
        progress->is_open = true;
        format_text(progress->subject, sizeof(progress->subject), "%s", subject);
    } else if (check && (info = check_find(checks, check)) != NULL) {
        progress->is_open = false;
        report_add(report, info, subject, outcome_of(outcome), detail, (uint64_t)cases,
                   (uint64_t)failures);
    }
    json_decref(object);
}

// Reads until the pipe ends, the child ends, or a check takes too long.
static void child_watch(struct group_child *child, struct report *report,
                        const struct run_options *options, struct group_progress *progress)
{
    static char buffer[MAX_LINE];
    size_t filled = 0;
    double last = seconds_now(), last_own = child_processor_seconds(child);
    for (bool is_open = true; is_open && !child->is_late;) {
        struct pollfd wait = {.fd = child->results, .events = POLLIN};
        int ready = poll(&wait, 1, 50);
        if (ready == 0) {
            // The child's last lines are read before its end ends the loop.
            is_open = !child->has_ended;
            child->has_ended = !is_open || waitpid(child->pid, &child->status, WNOHANG) > 0;
            child->is_late =
                !child->has_ended && child_is_late(child, last, last_own, options->timeout);
            continue;
        }
        ssize_t n = read(child->results, buffer + filled, sizeof(buffer) - filled);
        is_open = n > 0;
        filled += n > 0 ? (size_t)n : 0;
        last = seconds_now();
        last_own = child_processor_seconds(child);
        char *end;
        while ((end = memchr(buffer, '\n', filled)) != NULL) {
            *end++ = 0;
            take_line(report, options->checks, progress, buffer);
            filled -= (size_t)(end - buffer);
            memmove(buffer, end, filled);
        }
        if (filled == sizeof(buffer))
            filled = 0; // no line of the kit is so long: the text is dropped
    }
}

// Waits for the process to end after its pipe closed; its exit handlers may hang.
static void child_reap(struct group_child *child, double timeout)
{
    double start_of_wait = seconds_now();
    while (!child->has_ended && !child->is_late) {
        child->has_ended = waitpid(child->pid, &child->status, WNOHANG) > 0;
        child->is_late = !child->has_ended && seconds_now() - start_of_wait > timeout;
        if (!child->has_ended)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(-child->pid, SIGKILL); // also the processes that the child started
    if (!child->has_ended)
        waitpid(child->pid, &child->status, 0);
    close(child->results);
}

// --- ends ------------------------------------------------------------------------------

// Returns the last part of the child's output: often the message of a sanitizer or of libc.
static const char *last_output(const struct group_child *child, char text[MAX_OUTPUT])
{
    off_t size = lseek(child->output, 0, SEEK_END);
    off_t from = size > MAX_OUTPUT - 1 ? size - (MAX_OUTPUT - 1) : 0;
    ssize_t n = pread(child->output, text, MAX_OUTPUT - 1, from);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static void describe_end(const struct group_child *child, double timeout, char *out,
                         size_t size)
{
    char output[MAX_OUTPUT], end[160];
    if (child->is_late)
        format_text(end, sizeof(end), "it did not end within %.0f s (--timeout)", timeout);
    else if (WIFSIGNALED(child->status))
        format_text(end, sizeof(end), "the process was killed by signal %d (%s)",
                    WTERMSIG(child->status), strsignal(WTERMSIG(child->status)));
    else
        format_text(end, sizeof(end), "the process exited with status %d",
                    WEXITSTATUS(child->status));
    last_output(child, output);
    format_text(out, size, "%s%s%s", end, output[0] ? "; it printed: " : "", output);
}

// Reports how a child ended. True when the group has to be restarted after the check that
// ended its child.
static bool settle_end(struct report *report, const struct run_options *options,
                       const struct group_child *child, struct group_progress *progress,
                       uint64_t resumed)
{
    char text[DETAIL_SIZE];
    bool ended_well =
        !child->is_late && WIFEXITED(child->status) && WEXITSTATUS(child->status) == 0;
    if (ended_well && !progress->is_open)
        return false;
    describe_end(child, options->timeout, text, sizeof(text));
    if (progress->is_open) {
        report_add(report, progress->check, progress->subject, FAILED, text, 0, 1);
        progress->is_open = false;
        return progress->number > resumed;
    }
    // The child ended between checks: in its exit handlers, or before the first check.
    report_add(report, check_find(options->checks, "run.ends"),
               progress->check ? progress->check->name : "before the first check", FAILED,
               text, 0, 1);
    return false;
}

void child_run(struct report *report, const struct run_options *options, const char *group)
{
    struct group_progress progress = {0};
    for (int ends = 0; ends < MAX_ENDS; ends++) {
        struct group_child child;
        uint64_t resumed = progress.number;
        if (!child_start(&child, options, group, resumed)) {
            report_add(report, check_find(options->checks, "run.ends"), group, FAILED,
                       "no process can be started", 0, 1);
            return;
        }
        child_watch(&child, report, options, &progress);
        child_reap(&child, options->timeout);
        bool again = settle_end(report, options, &child, &progress, resumed);
        close(child.output);
        if (!again)
            return;
    }
}
