// SPDX-License-Identifier: MIT
// Works: starting them, the steps from agreement to the last element, waiting for them.
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "group.h"

// A wait first polls, then yields to other threads, then sleeps between polls.
enum { SPINS = 2000, YIELDS = 20000, TURNS_A_LOOK = 64 };
static const int64_t MILLISECOND = 1000000;

// How long the watch, or a note, may take to tell the cause of a failure that MPI reported
// first.
static const int64_t NAMING_NS = 3000 * INT64_C(1000000);
static const int64_t NOTING_NS = 500 * INT64_C(1000000);

// Time between looks of a member that does not wait.
static const int64_t LOOK_NS = 500 * INT64_C(1000000);

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

// A member that sent a note before it ended gives the reason there; its end has none.
static tn_status break_by(tn_collective_work *work, const struct watch_failure *failure)
{
    char text[128];
    notes_drain(work->group);
    move_print(work->record, text, sizeof(text));
    return group_break(work->group, TN_ERR_IO, "rank %d %s; rank %d was in %s",
                       failure->rank, failure->words, work->group->world_rank, text);
}

// Waits for the watch where MPI reported a failure first: the watch knows rank and cause. A
// member that ended the group has sent a note, which breaks it here.
static const struct watch_failure *await_failure(tn_group *group)
{
    const struct watch_failure *failure = group_failure(group);
    int64_t until = clock_ns() + (group->watch->fd >= 0 ? NAMING_NS : NOTING_NS);
    for (; !failure && !group->broken[0] && clock_ns() < until; pause_ns(MILLISECOND)) {
        notes_drain(group);
        failure = group_failure(group);
    }
    return failure;
}

static tn_status break_by_mpi(tn_collective_work *work, int code)
{
    const struct watch_failure *failure = await_failure(work->group);
    char text[128];
    if (failure)
        return break_by(work, failure);
    if (work->group->broken[0])
        return work->group->broken_status;
    move_print(work->record, text, sizeof(text));
    return group_mpi_failed(work->group, code, text);
}

// --- agreement --------------------------------------------------------------------------

static bool is_of_two(const tn_collective_call *call)
{
    return call->kind == TN_COLLECTIVE_SEND || call->kind == TN_COLLECTIVE_RECEIVE;
}

static void write_record(tn_collective_work *work)
{
    const tn_collective_call *call = &work->call;
    int64_t *record = work->record;
    record[RECORD_SEQUENCE] = work->group->sequence;
    record[RECORD_KIND] = call->kind;
    record[RECORD_DTYPE] = call->dtype;
    record[RECORD_REDUCTION] = is_of_two(call) ? call->tag : call->reduction;
    record[RECORD_PEER] = call->peer;
    record[RECORD_COUNT] = (int64_t)call->count;
}

static tn_status start_agreement(tn_collective_work *work)
{
    work->stage = AGREEING;
    int code = agree_begin(work);
    return code ? break_by_mpi(work, code) : TN_OK;
}

// All members know that their records differ, so all of them exchange the records.
static tn_status start_comparison(tn_collective_work *work)
{
    tn_group *group = work->group;
    const struct mpi_library *mpi = group->library;
    work->all = calloc((size_t)group->facts.size, sizeof(work->record));
    if (!work->all)
        return group_break(group, TN_ERR_MEMORY, "out of memory");
    work->stage = COMPARING;
    int code =
        mpi->Iallgather(work->record, RECORD_SIZE, mpi->types[TN_I64], work->all,
                        RECORD_SIZE, mpi->types[TN_I64], group->agreements, &work->request);
    return code ? break_by_mpi(work, code) : TN_OK;
}

static tn_status tell_difference(tn_collective_work *work)
{
    char mine[128], theirs[128];
    const int64_t *other = work->all, *record = work->record;
    int32_t rank = 0;
    while (rank < work->group->facts.size - 1 &&
           memcmp(other, record, sizeof(work->record)) == 0)
        other += RECORD_SIZE, rank++;
    move_print(record, mine, sizeof(mine));
    move_print(other, theirs, sizeof(theirs));
    return group_break(work->group, TN_ERR_ARGUMENT,
                       "members disagree: call %" PRId64 " of rank %d is %s, of rank %d %s",
                       record[RECORD_SEQUENCE], work->group->facts.rank, mine, rank,
                       theirs);
}

// --- steps ------------------------------------------------------------------------------

static tn_status start_moving(tn_collective_work *work)
{
    bool more = false, moves = work->call.kind < TN_COLLECTIVE_BARRIER;
    work->stage = moves ? MOVING : ENDED;
    int code = moves ? move_start(work, &more) : 0;
    work->has_more = more;
    return code ? break_by_mpi(work, code) : TN_OK;
}

static tn_status end_agreement(tn_collective_work *work)
{
    if (work->group->mine->differs)
        return start_comparison(work);
    if (!agree_carries(work))
        return start_moving(work);
    agree_unpack(work);
    move_finish(work);
    work->stage = ENDED;
    return TN_OK;
}

static tn_status check_received(tn_collective_work *work, const void *status)
{
    const tn_collective_call *call = &work->call;
    const struct mpi_library *mpi = work->group->library;
    int count = 0;
    if (call->kind != TN_COLLECTIVE_RECEIVE)
        return TN_OK;
    int code = mpi->Get_count(status, mpi->types[call->dtype], &count);
    if (code)
        return break_by_mpi(work, code);
    return count == work->part
               ? TN_OK
               : group_break(work->group, TN_ERR_ARGUMENT,
                             "receive from rank %d: got %d elements, expected %d",
                             call->peer, count, work->part);
}

// Open MPI 5 ends sends without an error when another member has ended the group.
static tn_status check_sent(tn_collective_work *work)
{
    const tn_group *group = work->group;
    int is_revoked = 0;
    if (work->call.kind != TN_COLLECTIVE_SEND || !group->library->Comm_is_revoked)
        return TN_OK;
    int code = group->library->Comm_is_revoked(group->calls, &is_revoked);
    return code || is_revoked ? break_by_mpi(work, code) : TN_OK;
}

static tn_status end_moving(tn_collective_work *work, const void *mpi_status)
{
    tn_status status = check_received(work, mpi_status);
    status = status == TN_OK ? check_sent(work) : status;
    if (status != TN_OK || work->has_more)
        return status != TN_OK ? status : start_moving(work);
    move_finish(work);
    work->stage = ENDED;
    return TN_OK;
}

static tn_status advance_agreement(tn_collective_work *work)
{
    bool has_ended = false;
    int code = agree_advance(work, &has_ended);
    return code ? break_by_mpi(work, code) : has_ended ? end_agreement(work) : TN_OK;
}

// Advances a work that has begun as far as possible without waiting.
static tn_status mpi_call_advance(tn_collective_work *work)
{
    _Alignas(16) unsigned char status[64] = {0}; // an MPI_Status of any library
    int has_come = 0;
    if (work->stage == ENDED)
        return TN_OK;
    if (work->stage == AGREEING)
        return advance_agreement(work);
    int code = work->group->library->Test(&work->request, &has_come, status);
    if (code)
        return break_by_mpi(work, code);
    if (!has_come)
        return TN_OK;
    return work->stage == COMPARING ? tell_difference(work) : end_moving(work, status);
}

// --- the queue --------------------------------------------------------------------------

// Calls reach MPI in the order in which they were started: a call begins once the last part
// of the call before it moves.
static bool moves_all(const tn_collective_work *work)
{
    return work->stage == ENDED || (work->stage == MOVING && !work->has_more);
}

static void queue_add(tn_collective_work *work)
{
    tn_collective_work **at = &work->group->queue;
    while (*at)
        at = &(*at)->next;
    *at = work;
}

static void queue_remove(tn_collective_work *work)
{
    tn_collective_work **at = &work->group->queue;
    while (*at && *at != work)
        at = &(*at)->next;
    if (*at)
        *at = work->next;
}

static tn_status mpi_call_work_begin(tn_collective_work *work)
{
    if (is_of_two(&work->call))
        return start_moving(work);
    return start_agreement(work);
}

static tn_status queue_advance(tn_group *group)
{
    tn_status status = TN_OK;
    while (group->queue && status == TN_OK) {
        tn_collective_work *first = group->queue;
        status = first->stage == QUEUED ? mpi_call_work_begin(first) : TN_OK;
        if (status == TN_OK && !moves_all(first))
            status = mpi_call_advance(first);
        if (!moves_all(first))
            break;
        group->queue = first->next;
        first->next = NULL;
    }
    return status;
}

tn_status work_advance(tn_collective_work *work)
{
    tn_group *group = work->group;
    tn_status status = group->broken[0] ? group->broken_status : queue_advance(group);
    return status == TN_OK && work->stage == MOVING ? mpi_call_advance(work) : status;
}

// --- waiting ----------------------------------------------------------------------------

// Breaks the group when a rank failed, or a member ended it.
static tn_status look_for_failures(tn_collective_work *work)
{
    const struct watch_failure *failure = group_failure(work->group);
    return failure ? break_by(work, failure) : notes_read(work->group);
}

// Members whose calls all end at once look, too, before a call: they never wait.
static tn_status look_before(tn_group *group, const tn_collective_call *call)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    int64_t now = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
    if (now - group->looked_ns < LOOK_NS)
        return TN_OK;
    group->looked_ns = now;
    tn_collective_work work = {.group = group, .call = *call};
    write_record(&work);
    return look_for_failures(&work);
}

tn_status work_look(tn_collective_work *work)
{
    tn_group *group = work->group;
    char text[128];
    tn_status status = look_for_failures(work);
    if (status != TN_OK)
        return status;
    work->began_ns = work->began_ns ? work->began_ns : clock_ns();
    if (!group->deadline_ms ||
        clock_ns() - work->began_ns < (int64_t)group->deadline_ms * MILLISECOND)
        return TN_OK;
    move_print(work->record, text, sizeof(text));
    return group_end(group, TN_ERR_IO, "%s did not end within the deadline of %llu ms",
                     text, (unsigned long long)group->deadline_ms);
}

// work_look() for a work in which this process waits: also looks at notes.
static tn_status work_look_waiting(tn_collective_work *work)
{
    tn_status status = work_look(work);
    return status == TN_OK ? waits_look(work, clock_ns() - work->began_ns) : status;
}

static bool has_begun(const tn_collective_work *work)
{
    return work->stage != QUEUED;
}

static bool has_ended(const tn_collective_work *work)
{
    return work->stage == ENDED;
}

// Logs each lost rank once, where groups without it go on.
static void tell_lost(const tn_host *host, struct watch *watch)
{
    for (; watch->num_told < watch->num_failures; watch->num_told++) {
        const struct watch_failure *failure = &watch->failures[watch->num_told];
        if (!failure->is_end)
            host->log(host, TN_LOG_WARN, "collective",
                      "rank %d %s; groups without it go on", failure->rank, failure->words);
    }
}

// Advances the work until `is_enough`.
static tn_status mpi_call_drive(const tn_host *host, tn_collective_work *work,
                                bool (*is_enough)(const tn_collective_work *work))
{
    tn_status status = TN_OK;
    bool is_done = false;
    for (uint64_t turn = 0; status == TN_OK && !is_done; turn++) {
        if (turn > YIELDS)
            pause_ns(MILLISECOND / 20);
        else if (turn > SPINS)
            sched_yield();
        progress_enter();
        is_done = is_enough(work);
        if (!is_done)
            status = work_advance(work);
        is_done = is_enough(work);
        if (status == TN_OK && !is_done &&
            (turn % TURNS_A_LOOK == TURNS_A_LOOK - 1 || turn > YIELDS))
            status = work_look_waiting(work);
        if (status == TN_OK && host)
            tell_lost(host, work->group->watch);
        progress_leave();
    }
    return status;
}

// --- slots ------------------------------------------------------------------------------

static tn_status work_read_call(const tn_host *host, const tn_collective_call *given,
                                tn_collective_call *out)
{
    const uint32_t known = TN_COLLECTIVE_IN_BACKGROUND | TN_COLLECTIVE_ASIDE;
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

// A new work at the end of its group's queue; NULL: memory is out.
static tn_collective_work *work_create(tn_group *group, const tn_collective_call *call)
{
    tn_collective_work *work = group->spare ? group->spare : malloc(sizeof(*work));
    if (!work)
        return NULL;
    group->spare = NULL;
    *work =
        (tn_collective_work){.group = group, .call = *call, .number = ++group->num_works};
    if (is_of_two(call) && !waits_count(work)) {
        group->spare = work;
        return NULL;
    }
    group->sequence += !is_of_two(call) && !(call->flags & TN_COLLECTIVE_ASIDE);
    write_record(work);
    queue_add(work);
    return work;
}

// Makes a work, and begins it unless a thread will. Memory that MPI may use is not freed.
static tn_status mpi_call_work_start(const tn_host *host, tn_group *group,
                                     const tn_collective_call *call,
                                     tn_collective_work **out_work)
{
    progress_enter();
    tn_status status = group->broken[0] ? group->broken_status : look_before(group, call);
    tn_collective_work *work = status == TN_OK ? work_create(group, call) : NULL;
    if (status == TN_OK && !work)
        status = TN_ERR_MEMORY;
    if (status == TN_OK)
        status = work_advance(work);
    bool is_background =
        (call->flags & TN_COLLECTIVE_IN_BACKGROUND) && work && progress_add(work);
    bool waits = !is_background && work && !has_begun(work);
    progress_leave();
    if (status == TN_OK && waits)
        status = mpi_call_drive(host, work, has_begun);
    *out_work = work;
    return status;
}

tn_status mpi_start(const tn_host *host, tn_group *group, const tn_collective_call *call,
                    tn_collective_work **out_work)
{
    tn_collective_call mine;
    tn_status status = work_read_call(host, call, &mine);
    if (status == TN_OK)
        status = move_check(host, group, &mine);
    return status == TN_OK
               ? group_tell(host, group, mpi_call_work_start(host, group, &mine, out_work))
               : status;
}

tn_status mpi_test(const tn_host *host, tn_collective_work *work, int32_t *out_done)
{
    progress_enter();
    tn_status status = work->stage == ENDED ? TN_OK : work_advance(work);
    if (status == TN_OK && work->stage != ENDED)
        status = work_look(work);
    if (status == TN_OK)
        *out_done = work->stage == ENDED;
    progress_leave();
    return group_tell(host, work->group, status);
}

// Keeps the memory of a work that has ended for the next one; false: it has not ended.
static bool work_take_ended(tn_collective_work *work)
{
    tn_group *group = work->group;
    if (!has_ended(work))
        return false;
    progress_remove(work);
    queue_remove(work);
    free(group->spare);
    group->spare = work;
    return true;
}

static tn_status mpi_call_work_wait(const tn_host *host, tn_collective_work *work)
{
    progress_enter();
    bool is_taken = work_take_ended(work);
    progress_leave();
    if (is_taken)
        return TN_OK;
    tn_status status = mpi_call_drive(host, work, has_ended);
    progress_enter();
    if (!work_take_ended(work)) { // not freed: MPI may write to it and its lists
        progress_remove(work);
        queue_remove(work);
        groups_have_pending();
    }
    progress_leave();
    return status;
}

tn_status mpi_wait(const tn_host *host, tn_collective_work *work)
{
    tn_group *group = work->group;
    return group_tell(host, group, mpi_call_work_wait(host, work));
}

tn_status mpi_check(const tn_host *host, tn_group *group, const tn_collective_call *call,
                    int64_t began_ns)
{
    tn_collective_work work = {.group = group, .call = *call, .began_ns = began_ns};
    write_record(&work);
    progress_enter();
    tn_status status = group->broken[0] ? group->broken_status : work_look(&work);
    progress_leave();
    return group_tell(host, group, status);
}

tn_status call_agree(tn_group *group, int32_t kind)
{
    const tn_collective_call call = {.struct_size = sizeof(call), .kind = kind};
    tn_collective_work *work;
    tn_status status = mpi_call_work_start(NULL, group, &call, &work);
    return status == TN_OK ? mpi_call_work_wait(NULL, work) : status;
}

tn_status call_break(tn_group *group, int32_t kind, const char *why)
{
    tn_collective_work work = {.group = group, .call = {.kind = kind}};
    const struct watch_failure *failure = await_failure(group);
    write_record(&work);
    return failure ? break_by(&work, failure) : group_break(group, TN_ERR_IO, "%s", why);
}
