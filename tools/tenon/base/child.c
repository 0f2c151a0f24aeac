// SPDX-License-Identifier: MIT
// Runs this program again in a child process.
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ARGS 16
#define MAX_TEXT (UINT64_C(1) << 20) // bytes of each stream; the rest is dropped

struct stream {
    int fd;
    char *text;
    size_t size;
};

static int64_t child_milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Reads what is available. False at the end of the stream.
static bool child_read_some(struct stream *stream)
{
    char block[4096];
    ssize_t got = read(stream->fd, block, sizeof(block));
    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    if (got == 0)
        return false;
    size_t kept = stream->size + (size_t)got <= MAX_TEXT ? (size_t)got : 0;
    char *grown = realloc(stream->text, stream->size + kept + 1);
    if (grown) {
        memcpy(grown + stream->size, block, kept);
        stream->size += kept;
        grown[stream->size] = '\0';
        stream->text = grown;
    }
    return true;
}

// Reads both streams to their ends, or until the time `end`.
static void read_both(struct stream streams[2], int64_t end)
{
    int64_t left;
    int open = 2;
    while (open > 0 && (left = end - child_milliseconds()) > 0) {
        struct pollfd fds[2] = {{streams[0].fd, POLLIN, 0}, {streams[1].fd, POLLIN, 0}};
        if (poll(fds, 2, (int)left) <= 0)
            continue;
        for (int i = 0; i < 2; i++)
            if (fds[i].revents && !child_read_some(&streams[i])) {
                close(streams[i].fd);
                streams[i].fd = -1;
                open--;
            }
    }
}

// Executes this program in the child; never returns.
static void child_become(pid_t parent, const char *const *args,
                         const char *const *variables, int out, int err)
{
    const char *argv[MAX_ARGS + 2] = {"tenon"};
    for (size_t i = 0; args[i] && i < MAX_ARGS; i++)
        argv[i + 1] = args[i];
    for (; variables && *variables; variables++)
        putenv((char *)*variables);
    setpgid(0, 0); // its own process group: base_child_finish() kills all of it
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
        _exit(127); // the parent is gone: nobody would end this child
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2)
        execv("/proc/self/exe", (char *const *)argv);
    _exit(127);
}

// Waits for the child to exit, at most until `end`: it may have closed its streams earlier.
// Kills its process group then.
static void base_child_finish(pid_t pid, int64_t end, struct child *out)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    siginfo_t info = {0};
    int status = 0;
    while (!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid &&
           child_milliseconds() < end)
        nanosleep(&moment, NULL);
    siginfo_t stop = {0};
    out->stopped = !waitid(P_PID, (id_t)pid, &stop, WSTOPPED | WNOHANG | WNOWAIT) &&
                   stop.si_pid == pid;
    kill(-pid, SIGKILL); // and processes that the child started
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    out->timed_out = !info.si_pid;
    out->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int child_run(const char *const *args, const char *const *variables, int seconds,
              struct child *out)
{
    int pipes[2][2];
    if (pipe2(pipes[0], O_CLOEXEC))
        return oops("cannot make a pipe: %s", strerror(errno));
    if (pipe2(pipes[1], O_CLOEXEC)) {
        close(pipes[0][0]);
        close(pipes[0][1]);
        return oops("cannot make a pipe: %s", strerror(errno));
    }
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        child_become(parent, args, variables, pipes[0][1], pipes[1][1]);
    close(pipes[0][1]);
    close(pipes[1][1]);
    struct stream streams[2] = {{.fd = pipes[0][0]}, {.fd = pipes[1][0]}};
    if (pid > 0) {
        setpgid(pid, pid); // child_become() does the same; either process may come first
        int64_t end = child_milliseconds() + seconds * INT64_C(1000);
        read_both(streams, end);
        base_child_finish(pid, end, out);
        out->seconds = seconds;
    }
    for (int i = 0; i < 2; i++)
        if (streams[i].fd >= 0)
            close(streams[i].fd);
    out->out = streams[0].text ? streams[0].text : calloc(1, 1);
    out->err = streams[1].text ? streams[1].text : calloc(1, 1);
    if (pid > 0 && out->out && out->err)
        return 0;
    child_finish(out);
    return pid > 0 ? oops_memory() : oops("cannot start a process: %s", strerror(errno));
}

static bool is_own_signal(int signal)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < COUNT(own); i++)
        if (own[i] == signal)
            return true;
    return false;
}

bool child_is_to_blame(const struct child *child)
{
    return child->timed_out ? !child->stopped : is_own_signal(child->signal);
}

bool child_fault(const struct child *child, char text[CHILD_FAULT])
{
    if (child->timed_out)
        snprintf(text, CHILD_FAULT, "%s within %d s",
                 child->stopped ? "was stopped and did not go on" : "did not answer",
                 child->seconds);
    else if (child->signal && !is_own_signal(child->signal))
        snprintf(text, CHILD_FAULT, "was ended from outside (%s)",
                 strsignal(child->signal));
    else if (child->signal)
        snprintf(text, CHILD_FAULT, "crashed (%s)", strsignal(child->signal));
    return child->timed_out || child->signal;
}

void child_finish(struct child *child)
{
    free(child->out);
    free(child->err);
    *child = (struct child){0};
}
