// SPDX-License-Identifier: MIT
// Holds one rank's process.
//
// The rank's process gets one end of a socket, by which it learns of other ranks' failures;
// it need do nothing else. The process that holds it stays until all ranks have ended: some
// launchers end all ranks when one leaves.
#include "rank.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "wire.h"

struct rank {
    int number, size;  // in the world
    int local, locals; // on this machine
    struct wire wire;  // to the launching process; fd -1: gone
    int told;          // this end of the process's socket
    int theirs;        // the other end
    int signals;       // a signalfd
    pid_t pid;         // of the process; 0: it has ended
    int64_t alive_at;  // when the last sign of life was sent
    bool goes_first;   // exits as soon as the process has ended, not with all ranks
    bool is_over;      // all ranks have ended
    int status;        // of waitpid, once the process has ended
};

// --- who this is -------------------------------------------------------------------------

// The first of these variables that is set, as a number; `missing` when none is.
static int number_from(const char *const *names, int missing)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        if (text && *text)
            return atoi(text);
    }
    return missing;
}

static int rank_find(struct rank *rank)
{
    static const char *const number[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                         NULL};
    static const char *const size[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    static const char *const local[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        NULL};
    static const char *const locals[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                         NULL};
    rank->number = number_from(number, -1);
    rank->size = number_from(size, 1);
    rank->local = number_from(local, rank->number);
    rank->locals = number_from(locals, rank->size);
    return rank->number >= 0 ? 0
                             : oops("the launcher tells no rank: --as-rank is its option");
}

// The word behind `key` in TENON_RUN; false when there is none.
static bool given_word(const char *text, const char *key, char *out, size_t size)
{
    const char *at = text ? strstr(text, key) : NULL;
    if (!at)
        return false;
    at += strlen(key);
    snprintf(out, size, "%.*s", (int)strcspn(at, " "), at);
    return *out;
}

// --- the launching process ---------------------------------------------------------------

static int launcher_reach(const char *address, const char *port)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int fd = -1;
    if (getaddrinfo(address, port, &hints, &found))
        return -1;
    for (struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

static int run_rank_greet(struct rank *rank, const char *text)
{
    char address[256], token[64], host[128] = "?";
    if (!given_word(text, "launcher=", address, sizeof(address)) ||
        !given_word(text, "token=", token, sizeof(token)))
        return oops(
            "TENON_RUN names no launching process: --as-rank is the launcher's option");
    char *port = strrchr(address, ':');
    if (!port)
        return oops("TENON_RUN: '%s' has no port", address);
    *port++ = 0;
    rank->wire.fd = launcher_reach(address, port);
    if (rank->wire.fd < 0)
        return oops("rank %d cannot reach the launching process at %s port %s",
                    rank->number, address, port);
    gethostname(host, sizeof(host) - 1);
    wire_send(rank->wire.fd, "hello %s %d %s", token, rank->number, host);
    return 0;
}

// --- the process -------------------------------------------------------------------------

// Sets TENON_BACKEND to the device of --devices for this rank: the list's item at the
// rank's position on this machine, with a % replaced by that number. Ranks of a machine
// divide its threads.
static int run_rank_set_device(const struct rank *rank, const char *text)
{
    char devices[1024], mine[1100];
    if (given_word(text, "devices=", devices, sizeof(devices))) {
        char *at = devices, *percent = strchr(devices, '%');
        for (int i = 0; i < rank->local && at && !percent; i++)
            at = (at = strchr(at, ',')) ? at + 1 : NULL;
        if (!at)
            return oops(
                "--devices: '%s' has no device for rank %d, which is number %d on its "
                "machine",
                devices, rank->number, rank->local);
        if (percent)
            snprintf(mine, sizeof(mine), "%.*s%d%s", (int)(percent - devices), devices,
                     rank->local, percent + 1);
        else
            snprintf(mine, sizeof(mine), "%.*s", (int)strcspn(at, ","), at);
        setenv("TENON_BACKEND", mine, 1);
    }
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(mine, sizeof(mine), "%ld",
             processors > rank->locals ? processors / rank->locals : 1);
    return setenv("TENON_THREADS", mine, 0) ? oops_memory() : 0;
}

// Executes the command in the child; never returns.
static void rank_become(const struct rank *rank, pid_t parent, char **command)
{
    char text[128];
    struct stat about;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGUSR1, SIG_DFL);
    setpgid(0, 0); // its own group, which is ended as one
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent ||
        fstat(rank->theirs, &about))
        _exit(127);
    snprintf(text, sizeof(text), "rank=%d size=%d watch=%d:%llu", rank->number, rank->size,
             rank->theirs, (unsigned long long)about.st_ino);
    setenv("TENON_RUN", text, 1);
    execvp(command[0], command);
    snprintf(text, sizeof(text), "cannot run %.60s: %s", command[0], strerror(errno));
    complain(text);
    _exit(127);
}

static int start_process(struct rank *rank, char **command)
{
    int ends[2];
    sigset_t mine;
    sigemptyset(&mine);
    sigaddset(&mine, SIGCHLD);
    sigaddset(&mine, SIGTERM);
    sigaddset(&mine, SIGINT);
    sigprocmask(SIG_BLOCK, &mine, NULL);
    signal(SIGUSR1, SIG_IGN); // Hydra's word that some rank ended
    rank->signals = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
    if (rank->signals < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
        return oops("cannot make a socket: %s", strerror(errno));
    rank->told = ends[0];
    rank->theirs = ends[1];
    fcntl(rank->told, F_SETFD, FD_CLOEXEC);
    pid_t parent = getpid();
    rank->pid = fork();
    if (rank->pid == 0)
        rank_become(rank, parent, command);
    close(rank->theirs);
    return rank->pid > 0 ? 0 : oops("cannot start a process: %s", strerror(errno));
}

// --- what happens ------------------------------------------------------------------------

static void end_process(const struct rank *rank, int signal)
{
    if (rank->pid <= 0)
        return;
    kill(-rank->pid, signal);
    kill(-rank->pid, SIGCONT); // a stopped process ends only once it continues
}

static void see_process(struct rank *rank)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (pid != rank->pid)
            continue;
        if (WIFSTOPPED(status)) {
            wire_send(rank->wire.fd, "stopped %d", WSTOPSIG(status));
        } else if (WIFCONTINUED(status)) {
            wire_send(rank->wire.fd, "continued");
        } else {
            rank->pid = 0;
            rank->status = status;
            rank->is_over = rank->is_over || rank->goes_first;
            wire_send(rank->wire.fd,
                      WIFSIGNALED(status) ? "ended signal %d" : "ended status %d",
                      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        }
    }
}

static void see_signals(struct rank *rank)
{
    struct signalfd_siginfo info;
    while (read(rank->signals, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo == SIGCHLD)
            see_process(rank);
        else
            end_process(rank, (int)info.ssi_signo);
}

static void see_lines(struct rank *rank)
{
    char line[WIRE_LINE];
    bool is_open = wire_read(&rank->wire);
    while (wire_take(&rank->wire, line)) {
        if (strncmp(line, "failed ", 7) == 0)
            (void)!send(rank->told, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
        else if (strcmp(line, "end") == 0)
            end_process(rank, SIGKILL);
        else if (strcmp(line, "bye") == 0)
            rank->is_over = true;
    }
    if (is_open)
        return;
    close(rank->wire.fd); // nobody launches any more
    rank->wire.fd = -1;
    end_process(rank, SIGKILL);
    rank->is_over = true;
}

static void rank_hold(struct rank *rank)
{
    while (!rank->is_over || rank->pid > 0) {
        struct pollfd fds[2] = {{rank->wire.fd, POLLIN, 0}, {rank->signals, POLLIN, 0}};
        poll(fds, 2, ALIVE_MS / 2);
        if (fds[1].revents)
            see_signals(rank);
        if (fds[0].revents)
            see_lines(rank);
        if (wire_clock() - rank->alive_at >= ALIVE_MS) {
            wire_send(rank->wire.fd, "alive");
            rank->alive_at = wire_clock();
        }
    }
}

int rank_run(char **command)
{
    const char *given = getenv("TENON_RUN");
    char *text = strdup(given ? given : "");
    struct rank rank = {.wire = {.fd = -1}};
    int failed = text ? rank_find(&rank) : oops_memory();
    if (!failed)
        failed = run_rank_greet(&rank, text);
    rank.goes_first = text && strstr(text, " survivors");
    if (!failed)
        failed = run_rank_set_device(&rank, text);
    if (!failed)
        failed = start_process(&rank, command);
    if (failed)
        wire_send(rank.wire.fd, "ended status %d", failed);
    else
        rank_hold(&rank);
    free(text);
    if (!failed && rank.goes_first && rank.status)
        kill(getpid(), SIGKILL); // Open MPI lets other ranks survive this end
    return failed;               // the launching process reports the rank's status
}
