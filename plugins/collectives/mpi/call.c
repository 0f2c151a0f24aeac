// SPDX-License-Identifier: MIT
// Works: starting them, the steps from agreement to the last element, waiting for them.
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "group.h"

// A wait looks at once, then lets others run, then sleeps.
enum { SPINS = 2000, YIELDS = 20000, TURNS_A_LOOK = 64 };
static const int64_t MILLISECOND = 1000000;

// How long the watch may take to name a failure that MPI told first.
static const int64_t NAMING_NS = 3000 * INT64_C(1000000);

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static const struct watch_failure *failure_of(const tn_group *group)
{
    return watch_poll(group->watch, group->members, group->facts.size);
}

static tn_status break_by(const tn_host *host, tn_collective_work *work,
                          const struct watch_failure *failure)
{
    char text[128];
    move_print(work->mine, text, sizeof(text));
    return group_break(host, work->group, TN_ERR_IO, "rank %d %s; rank %d was in %s",
                       failure->rank, failure->words, work->group->world_rank, text);
}

// MPI may tell of a failure before the watch, which knows more.
static tn_status break_by_mpi(const tn_host *host, tn_collective_work *work, int code)
{
    const struct watch_failure *failure = failure_of(work->group);
    int64_t until = clock_ns() + NAMING_NS;
    char text[128];
    while (!failure && work->group->watch->fd >= 0 && clock_ns() < until) {
        pause_ns(MILLISECOND);
        failure = failure_of(work->group);
    }
    if (failure)
        return break_by(host, work, failure);
    move_print(work->mine, text, sizeof(text));
    return group_mpi_failed(host, work->group, code, text);
}

// --- agreement --------------------------------------------------------------------------

static bool is_of_two(const tn_collective_call *call)
{
    return call->kind == TN_COLLECTIVE_SEND || call->kind == TN_COLLECTIVE_RECEIVE;
}

static void write_record(tn_collective_work *work)
{
    const tn_collective_call *call = &work->call;
    work->mine[RECORD_SEQUENCE] = work->group->sequence;
    work->mine[RECORD_KIND] = call->kind;
    work->mine[RECORD_DTYPE] = call->dtype;
    work->mine[RECORD_REDUCTION] = call->reduction;
    work->mine[RECORD_PEER] = call->peer;
    work->mine[RECORD_COUNT] = (int64_t)call->count;
    for (int i = 0; i < RECORD_SIZE; i++)
        work->mine[RECORD_SIZE + i] = -work->mine[i];
}

static int start_agreement(tn_collective_work *work)
{
    const struct mpi_library *mpi = work->group->library;
    return mpi->Iallreduce(work->mine, work->most, 2 * RECORD_SIZE, mpi->types[TN_I64],
                           mpi->operations[TN_COLLECTIVE_MAXIMUM], work->group->agreements,
                           &work->request);
}

// All members see that they differ, so all of them exchange their records.
static tn_status start_comparison(const tn_host *host, tn_collective_work *work)
{
    const tn_group *group = work->group;
    const struct mpi_library *mpi = group->library;
    work->all = calloc((size_t)group->facts.size, RECORD_SIZE * sizeof(*work->all));
    if (!work->all)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    work->stage = COMPARING;
    int code =
        mpi->Iallgather(work->mine, RECORD_SIZE, mpi->types[TN_I64], work->all, RECORD_SIZE,
                        mpi->types[TN_I64], group->agreements, &work->request);
    return code ? break_by_mpi(host, work, code) : TN_OK;
}

static tn_status tell_difference(const tn_host *host, tn_collective_work *work)
{
    char mine[128], theirs[128];
    const int64_t *other = work->all;
    int32_t rank = 0;
    while (memcmp(other, work->mine, RECORD_SIZE * sizeof(*other)) == 0)
        other += RECORD_SIZE, rank++;
    move_print(work->mine, mine, sizeof(mine));
    move_print(other, theirs, sizeof(theirs));
    return group_break(host, work->group, TN_ERR_ARGUMENT,
                       "members disagree: call %" PRId64 " of rank %d is %s, of rank %d %s",
                       work->mine[RECORD_SEQUENCE], work->group->facts.rank, mine, rank,
                       theirs);
}

// --- steps ------------------------------------------------------------------------------

static tn_status start_moving(const tn_host *host, tn_collective_work *work)
{
    bool more = false, moves = work->call.kind < TN_COLLECTIVE_BARRIER;
    work->stage = moves ? MOVING : ENDED;
    int code = moves ? move_start(work, &more) : 0;
    work->has_more = more;
    return code ? break_by_mpi(host, work, code) : TN_OK;
}

static tn_status check_received(const tn_host *host, tn_collective_work *work,
                                const void *status)
{
    const tn_collective_call *call = &work->call;
    const struct mpi_library *mpi = work->group->library;
    int count = 0;
    if (call->kind != TN_COLLECTIVE_RECEIVE)
        return TN_OK;
    int code = mpi->Get_count(status, mpi->types[call->dtype], &count);
    if (code)
        return break_by_mpi(host, work, code);
    return count == work->part
               ? TN_OK
               : group_break(host, work->group, TN_ERR_ARGUMENT,
                             "receive from rank %d: got %d elements, expected %d",
                             call->peer, count, work->part);
}

static tn_status end_moving(const tn_host *host, tn_collective_work *work,
                            const void *mpi_status)
{
    tn_status status = check_received(host, work, mpi_status);
    if (status != TN_OK || work->has_more)
        return status != TN_OK ? status : start_moving(host, work);
    move_finish(work);
    work->stage = ENDED;
    return TN_OK;
}

// Does what can be done now, without waiting.
static tn_status advance(const tn_host *host, tn_collective_work *work)
{
    _Alignas(16) unsigned char status[64] = {0}; // an MPI_Status of any library
    int has_ended = 0;
    int code = work->group->library->Test(&work->request, &has_ended, status);
    if (code)
        return break_by_mpi(host, work, code);
    if (!has_ended)
        return TN_OK;
    switch (work->stage) {
    case AGREEING:
        return memcmp(work->mine, work->most, sizeof(work->mine)) == 0
                   ? start_moving(host, work)
                   : start_comparison(host, work);
    case COMPARING:
        return tell_difference(host, work);
    default:
        return end_moving(host, work, status);
    }
}

// --- waiting ----------------------------------------------------------------------------

static bool has_started(const tn_collective_work *work)
{
    return work->stage == ENDED || (work->stage == MOVING && !work->has_more);
}

// Whether somebody failed, or the deadline passed.
static tn_status work_look(const tn_host *host, tn_collective_work *work)
{
    tn_group *group = work->group;
    char text[128];
    const struct watch_failure *failure = failure_of(group);
    if (failure)
        return break_by(host, work, failure);
    if (!group->deadline_ms ||
        clock_ns() - work->began_ns < (int64_t)group->deadline_ms * MILLISECOND)
        return TN_OK;
    move_print(work->mine, text, sizeof(text));
    return group_break(host, group, TN_ERR_IO,
                       "%s did not end within the deadline of %llu ms", text,
                       (unsigned long long)group->deadline_ms);
}

// Works until `is_enough`.
static tn_status drive(const tn_host *host, tn_collective_work *work,
                       bool (*is_enough)(const tn_collective_work *work))
{
    tn_status status = work->group->broken[0] ? group_broken(host, work->group) : TN_OK;
    for (uint64_t turn = 1; status == TN_OK && !is_enough(work); turn++) {
        status = advance(host, work);
        if (status == TN_OK && !is_enough(work) &&
            (turn % TURNS_A_LOOK == 0 || turn > YIELDS))
            status = work_look(host, work);
        if (turn > YIELDS)
            pause_ns(MILLISECOND / 20);
        else if (turn > SPINS)
            sched_yield();
    }
    return status;
}

static bool has_ended(const tn_collective_work *work)
{
    return work->stage == ENDED;
}

// --- slots ------------------------------------------------------------------------------

static tn_status work_read_call(const tn_host *host, const tn_collective_call *given,
                                tn_collective_call *out)
{
    const uint32_t known = TN_COLLECTIVE_IN_BACKGROUND;
    if (given->struct_size < sizeof(*out) || given->flags & ~known)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "tn_collective_call: %u bytes and flags 0x%x, expected %zu and "
                          "no flags but 0x%x",
                          given->struct_size, given->flags, sizeof(*out), known);
    for (uint64_t i = sizeof(*out); i < given->struct_size; i++)
        if (((const unsigned char *)given)[i])
            return host->fail(host, TN_ERR_UNSUPPORTED,
                              "tn_collective_call: byte %llu is not 0, and this plugin "
                              "knows %zu",
                              (unsigned long long)i, sizeof(*out));
    memcpy(out, given, sizeof(*out));
    return TN_OK;
}

static tn_status work_start(const tn_host *host, tn_group *group,
                            const tn_collective_call *call, tn_collective_work **out_work)
{
    tn_collective_work *work = calloc(1, sizeof(*work));
    if (!work)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    *work = (tn_collective_work){.group = group, .call = *call, .began_ns = clock_ns()};
    tn_status status = TN_OK;
    if (is_of_two(call)) {
        write_record(work);
        status = start_moving(host, work);
    } else {
        group->sequence++;
        write_record(work);
        int code = start_agreement(work);
        status = code ? break_by_mpi(host, work, code) : TN_OK;
    }
    if (status != TN_OK)
        return status; // MPI may have the work: it is not freed
    group->last = *out_work = work;
    return TN_OK;
}

// Calls reach MPI in the order in which they were started.
static tn_status finish_starting(const tn_host *host, tn_group *group)
{
    if (group->broken[0])
        return group_broken(host, group);
    return group->last ? drive(host, group->last, has_started) : TN_OK;
}

tn_status mpi_start(const tn_host *host, tn_group *group, const tn_collective_call *call,
                    tn_collective_work **out_work)
{
    tn_collective_call mine;
    tn_status status = work_read_call(host, call, &mine);
    if (status == TN_OK)
        status = move_check(host, group, &mine);
    if (status == TN_OK)
        status = finish_starting(host, group);
    return status == TN_OK ? work_start(host, group, &mine, out_work) : status;
}

tn_status mpi_test(const tn_host *host, tn_collective_work *work, int32_t *out_done)
{
    tn_status status = work->group->broken[0] ? group_broken(host, work->group) : TN_OK;
    if (status == TN_OK && work->stage != ENDED)
        status = advance(host, work);
    if (status == TN_OK && work->stage != ENDED)
        status = work_look(host, work);
    if (status == TN_OK)
        *out_done = work->stage == ENDED;
    return status;
}

tn_status mpi_wait(const tn_host *host, tn_collective_work *work)
{
    tn_status status = work->stage == ENDED ? TN_OK : drive(host, work, has_ended);
    if (work->group->last == work)
        work->group->last = NULL;
    if (status == TN_OK)
        free(work); // else MPI may still write to it, and to what it lists
    return status;
}

tn_status call_agree(const tn_host *host, tn_group *group, int32_t kind)
{
    const tn_collective_call call = {.struct_size = sizeof(call), .kind = kind};
    tn_collective_work *work;
    tn_status status = finish_starting(host, group);
    if (status == TN_OK)
        status = work_start(host, group, &call, &work);
    return status == TN_OK ? mpi_wait(host, work) : status;
}
