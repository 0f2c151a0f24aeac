// SPDX-License-Identifier: MIT
// Watches the ranks.
#include "watcher.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_STRANGERS = 64, ENDING_MS = 3000 };

static const char ENDED_WELL[] = "ended (status 0)";

// --- failures ----------------------------------------------------------------------------

static void tell_others(struct watcher *watcher, int number)
{
    for (int i = 0; i < watcher->count; i++)
        if (i != number)
            wire_send(watcher->ranks[i].wire.fd, "failed %d %s", number,
                      watcher->ranks[number].failure);
}

static void rank_failed(struct watcher *watcher, int number, const char *failure,
                        int status)
{
    struct watched_rank *rank = &watcher->ranks[number];
    char text[400];
    if (rank->failure[0])
        return;
    snprintf(rank->failure, sizeof(rank->failure), "%s", failure);
    rank->status = status;
    tell_others(watcher, number);
    if (watcher->is_ending)
        return;
    if (watcher->first < 0) {
        watcher->first = number;
        watcher->failed_at = wire_clock();
    }
    snprintf(text, sizeof(text), "rank %d on %s %s", number, rank->host, rank->failure);
    complain(text);
}

static void rank_ended(struct watcher *watcher, int number, const char *how, int value)
{
    struct watched_rank *rank = &watcher->ranks[number];
    char failure[200];
    rank->has_ended = true;
    if (strcmp(how, "signal") == 0)
        snprintf(failure, sizeof(failure), "was ended by signal %d (%s)", value,
                 strsignal(value));
    else
        snprintf(failure, sizeof(failure), "ended with status %d", value);
    if (strcmp(how, "signal") == 0 || value != 0) {
        rank_failed(watcher, number, failure,
                    strcmp(how, "signal") == 0 ? 128 + value : value);
        return;
    }
    // A rank that waits for this one would wait for ever: it is told of a failure. Other
    // ranks ignore the line.
    snprintf(rank->failure, sizeof(rank->failure), "%s", ENDED_WELL);
    tell_others(watcher, number);
    rank->failure[0] = 0;
}

static void rank_gone(struct watcher *watcher, int number)
{
    struct watched_rank *rank = &watcher->ranks[number];
    close(rank->wire.fd);
    rank->wire.fd = -1;
    if (rank->has_ended)
        return;
    rank->has_ended = true;
    rank_failed(watcher, number, "is gone, and the process that held it", 1);
}

// --- lines -------------------------------------------------------------------------------

static void watcher_hear(struct watcher *watcher, int number, const char *line)
{
    struct watched_rank *rank = &watcher->ranks[number];
    char how[16];
    int value = 0;
    if (sscanf(line, "ended %15s %d", how, &value) == 2) {
        rank_ended(watcher, number, how, value);
    } else if (sscanf(line, "stopped %d", &value) == 1) {
        rank->stopped_at = wire_clock();
        rank->stop_signal = value;
    } else if (strcmp(line, "continued") == 0) {
        rank->stopped_at = 0;
    }
}

static void see_rank(struct watcher *watcher, int number)
{
    struct watched_rank *rank = &watcher->ranks[number];
    char line[WIRE_LINE];
    bool is_open = wire_read(&rank->wire);
    rank->heard_at = wire_clock();
    while (wire_take(&rank->wire, line))
        watcher_hear(watcher, number, line);
    if (!is_open)
        rank_gone(watcher, number);
}

// A rank that is late hears of those that failed or ended before it came.
static void tell_past(const struct watcher *watcher, const struct watched_rank *rank)
{
    for (int i = 0; i < watcher->count; i++)
        if (watcher->ranks[i].failure[0])
            wire_send(rank->wire.fd, "failed %d %s", i, watcher->ranks[i].failure);
        else if (watcher->ranks[i].has_ended)
            wire_send(rank->wire.fd, "failed %d %s", i, ENDED_WELL);
    if (watcher->is_ending)
        wire_send(rank->wire.fd, "end");
}

// Takes a connection whose first line is a valid hello. False: it is no rank's.
static bool watcher_welcome(struct watcher *watcher, struct wire *wire, const char *line)
{
    char token[33], host[128];
    int number;
    if (sscanf(line, "hello %32s %d %127s", token, &number, host) != 3 ||
        strcmp(token, watcher->token) != 0 || number < 0 || number >= watcher->count ||
        watcher->ranks[number].has_come)
        return false;
    struct watched_rank *rank = &watcher->ranks[number];
    rank->wire = *wire;
    rank->has_come = true;
    rank->heard_at = wire_clock();
    snprintf(rank->host, sizeof(rank->host), "%s", host);
    tell_past(watcher, rank);
    return true;
}

static void see_stranger(struct watcher *watcher, int i)
{
    struct wire *wire = &watcher->strangers[i];
    char line[WIRE_LINE];
    bool is_open = wire_read(wire), is_known = wire_take(wire, line);
    if (is_open && !is_known)
        return;
    if (!is_known || !watcher_welcome(watcher, wire, line))
        close(wire->fd);
    *wire = watcher->strangers[--watcher->num_strangers];
}

static void see_listener(struct watcher *watcher)
{
    int fd = accept4(watcher->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (watcher->num_strangers == MOST_STRANGERS)
        close(fd);
    else
        watcher->strangers[watcher->num_strangers++] = (struct wire){.fd = fd};
}

// --- time --------------------------------------------------------------------------------

static void see_silence(struct watcher *watcher)
{
    int64_t now = wire_clock();
    char failure[200];
    for (int i = 0; i < watcher->count; i++) {
        const struct watched_rank *rank = &watcher->ranks[i];
        if (!rank->has_come || rank->has_ended)
            continue;
        if (now - rank->heard_at > SILENT_MS) {
            snprintf(failure, sizeof(failure),
                     "does not answer: its machine, or the process "
                     "that held it, is stopped or gone");
            rank_failed(watcher, i, failure, 1);
        } else if (rank->stopped_at && now - rank->stopped_at > STOPPED_MS) {
            snprintf(failure, sizeof(failure), "is stopped by signal %d (%s)",
                     rank->stop_signal, strsignal(rank->stop_signal));
            rank_failed(watcher, i, failure, 1);
            wire_send(rank->wire.fd, "end"); // the other ranks go on without it
        }
    }
}

static void end_all(struct watcher *watcher)
{
    if (watcher->is_ending)
        return;
    watcher->is_ending = true;
    watcher->failed_at = wire_clock();
    for (int i = 0; i < watcher->count; i++)
        wire_send(watcher->ranks[i].wire.fd, "end");
}

// Whether watching is over. After a failure, ranks that do not end within the grace time
// are told to end, and given up after ENDING_MS.
static bool is_over(struct watcher *watcher)
{
    bool have_ended = true;
    int64_t since = wire_clock() - watcher->failed_at;
    for (int i = 0; i < watcher->count; i++)
        have_ended = have_ended && watcher->ranks[i].has_ended;
    if (!have_ended && watcher->first >= 0 && watcher->grace_ms >= 0 &&
        since > watcher->grace_ms && !watcher->is_ending) {
        complain("ranks that are left did not end: they are ended now");
        end_all(watcher);
    }
    return have_ended || (watcher->is_ending && since > ENDING_MS);
}

// --- the loop ----------------------------------------------------------------------------

static void watcher_see(struct watcher *watcher, struct pollfd *fds)
{
    int n = 0;
    fds[n++] = (struct pollfd){watcher->listener, POLLIN, 0};
    for (int i = 0; i < watcher->count; i++)
        fds[n++] = (struct pollfd){watcher->ranks[i].wire.fd, POLLIN, 0};
    for (int i = 0; i < watcher->num_strangers; i++)
        fds[n++] = (struct pollfd){watcher->strangers[i].fd, POLLIN, 0};
    if (poll(fds, (nfds_t)n, 100) <= 0)
        return;
    for (int i = n - 1; i > watcher->count; i--) // from the last: one may leave the list
        if (fds[i].revents)
            see_stranger(watcher, i - 1 - watcher->count);
    for (int i = 0; i < watcher->count; i++)
        if (fds[1 + i].revents)
            see_rank(watcher, i);
    if (fds[0].revents)
        see_listener(watcher);
}

static bool has_gone(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid;
}

int watcher_run(struct watcher *watcher, pid_t pid, const volatile bool *stop)
{
    struct pollfd *fds = calloc((size_t)watcher->count + MOST_STRANGERS + 1, sizeof(*fds));
    if (!fds)
        return oops_memory();
    bool is_gone = false;
    while (!is_over(watcher) && !is_gone) {
        is_gone = has_gone(pid);
        watcher_see(watcher, fds);
        see_silence(watcher);
        if (*stop)
            end_all(watcher);
    }
    for (int i = 0; i < watcher->count; i++)
        wire_send(watcher->ranks[i].wire.fd, "bye");
    free(fds);
    bool have_come = true;
    for (int i = 0; i < watcher->count; i++)
        have_come = have_come && watcher->ranks[i].has_come;
    return watcher->first >= 0 ? watcher->ranks[watcher->first].status
           : *stop             ? 130
           : have_come         ? 0
                               : -1;
}

// --- beginning and end -------------------------------------------------------------------

int watcher_init(struct watcher *watcher, int count, bool is_remote, double grace)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    unsigned char bytes[16];
    *watcher = (struct watcher){.listener = -1, .count = count, .first = -1};
    watcher->grace_ms = grace < 0 ? -1 : (int64_t)(grace * 1000);
    watcher->ranks = calloc((size_t)count, sizeof(*watcher->ranks));
    watcher->strangers = calloc(MOST_STRANGERS, sizeof(*watcher->strangers));
    if (!watcher->ranks || !watcher->strangers)
        return oops_memory();
    for (int i = 0; i < count; i++)
        watcher->ranks[i].wire.fd = -1;
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return oops("no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(watcher->token + 2 * i, 3, "%02x", bytes[i]);
    address.sin_addr.s_addr = htonl(is_remote ? INADDR_ANY : INADDR_LOOPBACK);
    watcher->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (watcher->listener < 0 ||
        bind(watcher->listener, (struct sockaddr *)&address, sizeof(address)) ||
        listen(watcher->listener, MOST_STRANGERS) ||
        getsockname(watcher->listener, (struct sockaddr *)&address, &size))
        return oops("cannot listen for ranks: %s", strerror(errno));
    snprintf(watcher->port, sizeof(watcher->port), "%u", ntohs(address.sin_port));
    return 0;
}

void watcher_finish(struct watcher *watcher)
{
    for (int i = 0; i < watcher->count && watcher->ranks; i++)
        if (watcher->ranks[i].wire.fd >= 0)
            close(watcher->ranks[i].wire.fd);
    for (int i = 0; i < watcher->num_strangers; i++)
        close(watcher->strangers[i].fd);
    if (watcher->listener >= 0)
        close(watcher->listener);
    free(watcher->ranks);
    free(watcher->strangers);
}
