// SPDX-License-Identifier: MIT
// The world of a process, and the groups made from it.
#include "group.h"
#include "join.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// MPI is started and ended once a process.
enum process_state {
    APART,
    JOINING, // a thread is joining, without holding the lock
    JOINED,
    LEFT, // MPI was finalised, or cannot be used any more
};
static struct {
    pthread_mutex_t lock; // guards state, world and references
    pthread_cond_t joined;
    enum process_state state;
    tn_group *world;     // once the process has joined
    uint32_t references; // to the world
    tn_group *groups;    // all of them; used between progress_enter and progress_leave
    bool is_lost;        // a thread was left behind in MPI; used as `groups` is
    bool has_pending;    // MPI has calls of a broken group; used as `groups` is
    bool is_ours;        // we initialised MPI, so we finalise it
    struct watch watch;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER,
             .joined = PTHREAD_COND_INITIALIZER,
             .watch = {.fd = -1}};

// --- failures ---------------------------------------------------------------------------

tn_status group_tell(const tn_host *host, const tn_group *group, tn_status status)
{
    return status == TN_OK    ? TN_OK
           : group->broken[0] ? host->fail(host, group->broken_status, "%s", group->broken)
                              : host->fail(host, status, "out of memory");
}

tn_status group_break(tn_group *group, tn_status status, const char *format, ...)
{
    va_list arguments;
    if (!group->broken[0]) {
        va_start(arguments, format);
        vsnprintf(group->broken, sizeof(group->broken), format, arguments);
        va_end(arguments);
        group->broken_status = status;
        // Lets go of members that wait for this one in MPI, where the library can revoke.
        if (group->library->Comm_revoke && group->facts.size > 1 && !process.is_lost) {
            group->library->Comm_revoke(group->calls);
            if (!group->keeps_notes)
                group->library->Comm_revoke(group->agreements);
        }
    }
    return group->broken_status;
}

void groups_break(tn_status status, const char *why)
{
    process.is_lost = true;
    for (tn_group *group = process.groups; group; group = group->next)
        group_break(group, status, "%s", why);
}

void groups_have_pending(void)
{
    process.has_pending = true;
}

bool groups_are_lost(void)
{
    progress_enter();
    bool is_lost = process.is_lost;
    progress_leave();
    return is_lost;
}

const struct watch_failure *group_failure(const tn_group *group)
{
    const struct watch_failure *failure =
        watch_poll(group->watch, group->members, group->facts.size);
    // Without fault tolerance the first lost rank is the cause, a member or not.
    const struct watch_failure *lost =
        group->library->Comm_shrink ? NULL : watch_find_lost(group->watch);
    failure = lost ? lost : failure;
    return !failure && group->parent ? group_failure(group->parent) : failure;
}

void group_print_failure(const struct mpi_library *library, int code, const char *what,
                         char *out)
{
    static const int MOST = 2048; // MPI_MAX_ERROR_STRING is 256 to 1,024
    char text[2048 + 1] = "";
    int size = 0;
    if (library->Error_string(code, text, &size) != 0 || size > MOST)
        snprintf(text, sizeof(text), "error %d", code);
    text[strcspn(text, "\n")] = 0;
    if (!code || strstr(text, "ERR_REVOKED"))
        snprintf(out, REASON, "%s: another member ended the group, and says why", what);
    else
        snprintf(out, REASON, "%s: MPI says: %.300s", what, text);
}

tn_status group_mpi_failed(tn_group *group, int code, const char *what)
{
    char text[REASON];
    group_print_failure(group->library, code, what, text);
    return group_break(group, TN_ERR_IO, "%s", text);
}

void mpi_abort(const tn_host *host, tn_group *group, const char *reason)
{
    (void)host;
    progress_enter();
    group_end(group, TN_ERR_IO, "the group was ended: %s", reason);
    progress_leave();
}

// --- making groups ----------------------------------------------------------------------

static int read_communicator(tn_group *group)
{
    const struct mpi_library *mpi = group->library;
    int code = mpi->Comm_set_errhandler(group->calls, mpi->errors_return);
    if (!code)
        code = mpi->Comm_rank(group->calls, &group->facts.rank);
    if (!code)
        code = mpi->Comm_size(group->calls, &group->facts.size);
    if (!code)
        code = mpi->Comm_dup(group->calls, &group->agreements);
    if (!code)
        code = mpi->Comm_set_errhandler(group->agreements, mpi->errors_return);
    return code;
}

tn_status group_create(struct mpi_library *library, handle comm, char *why,
                       tn_group **out_group)
{
    tn_group *group = calloc(1, sizeof(*group));
    snprintf(why, JOIN_REASON, "out of memory");
    if (!group)
        return TN_ERR_MEMORY;
    *group = (tn_group){
        .facts = {.struct_size = sizeof(group->facts),
                  .flags = library->Comm_shrink ? TN_GROUP_SHRINKS : 0,
                  .library = library->version},
        .library = library,
        .calls = comm,
        .watch = &process.watch,
    };
    int code = read_communicator(group);
    tn_status status = code ? group_mpi_failed(group, code, "a new group") : TN_OK;
    group->members = calloc((size_t)group->facts.size + 1, sizeof(*group->members));
    group->peers = calloc((size_t)group->facts.size + 1, sizeof(*group->peers));
    group->mine = calloc(1, sizeof(*group->mine));
    group->theirs = calloc(1, sizeof(*group->theirs));
    if (status == TN_OK &&
        !(group->members && group->peers && group->mine && group->theirs))
        status = TN_ERR_MEMORY;
    if (status == TN_OK) {
        *out_group = group;
        return TN_OK;
    }
    if (group->broken[0])
        snprintf(why, JOIN_REASON, "%s", group->broken);
    free(group->theirs);
    free(group->mine);
    free(group->peers);
    free(group->members);
    free(group);
    return status;
}

void group_enlist(tn_group *group)
{
    progress_enter();
    group->next = process.groups;
    process.groups = group;
    progress_leave();
}

void group_free(tn_group *group)
{
    tn_group **at = &process.groups;
    progress_enter();
    while (*at && *at != group)
        at = &(*at)->next;
    if (*at)
        *at = group->next;
    // A broken group's works may be pending: MPI may write to these, so they are not freed.
    if (!group->broken[0]) {
        notes_drain(group);
        group->library->Comm_free(&group->agreements);
        group->library->Comm_free(&group->calls);
        free(group->theirs);
        free(group->mine);
    }
    progress_leave();
    board_close(group->board);
    free(group->spare);
    waits_free(group);
    free(group->peers);
    free(group->members);
    free(group);
}

static tn_status group_call(const tn_host *host, tn_group *group,
                            const tn_collective_call *call)
{
    tn_collective_work *work;
    tn_status status = mpi_start(host, group, call, &work);
    return status == TN_OK ? mpi_wait(host, work) : status;
}

tn_status group_gather(const tn_host *host, tn_group *group, tn_dtype dtype, uint64_t count,
                       const void *mine, void *all)
{
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .flags = TN_COLLECTIVE_ASIDE,
                                     .kind = TN_COLLECTIVE_ALL_GATHER,
                                     .dtype = dtype,
                                     .count = count,
                                     .input = mine,
                                     .output = all};
    return group_call(host, group, &call);
}

// The sum of all members' numbers.
static tn_status group_count(const tn_host *host, tn_group *group, const int32_t *mine,
                             int32_t *out)
{
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .flags = TN_COLLECTIVE_ASIDE,
                                     .kind = TN_COLLECTIVE_ALL_REDUCE,
                                     .dtype = TN_I32,
                                     .count = 1,
                                     .input = mine,
                                     .output = out};
    return group_call(host, group, &call);
}

tn_status group_find_board(const tn_host *host, tn_group *group)
{
    struct board_offer mine, *all = calloc((size_t)group->facts.size, sizeof(*all));
    struct board *board = NULL;
    int32_t has_board = 0, count = 0;
    if (!all)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    const char *by_messages = host->config(host, "TENON_MPI_MESSAGES");
    board_make_offer(by_messages && strcmp(by_messages, "1") == 0 ? -1 : group->facts.rank,
                     group->facts.size, &mine, &board);
    tn_status status = group_gather(host, group, TN_U8, sizeof(mine), &mine, all);
    if (status != TN_OK) {
        board_close(board);
        return status; // `all` is not freed: MPI may write to it
    }
    if (group->facts.rank > 0)
        board = board_open(all, group->facts.size);
    has_board = board != NULL;
    free(all);
    status = group_count(host, group, &has_board, &count);
    if (board)
        board_end_offer(board);
    if (status == TN_OK && count == group->facts.size)
        group->board = board;
    else
        board_close(board);
    host->log(host, TN_LOG_INFO, "collective", "%d members %s", group->facts.size,
              group->board ? "share memory" : "agree by messages");
    return status;
}

// --- the world --------------------------------------------------------------------------

// The library, and the world that arrive() makes after MPI has begun.
struct world_arrival {
    struct mpi_library *library;
    tn_group *world;
};

// Joining waits for all ranks, so any rank's failure counts.
static const struct watch_failure *arrival_failure(void *user)
{
    (void)user;
    return watch_poll(&process.watch, NULL, 0);
}

static tn_status mpi_group_initialize(struct mpi_library *library, char *why)
{
    int provided = 0, is_on = 0, was_on = 0, code = library->Initialized(&is_on);
    if (!code)
        code = library->Finalized(&was_on);
    if (code || was_on) {
        snprintf(why, JOIN_REASON, "MPI was finalised in this process, and starts once");
        return TN_ERR_UNSUPPORTED;
    }
    code = is_on ? library->Query_thread(&provided)
                 : library->Init_thread(NULL, NULL, library->serialized, &provided);
    process.is_ours = !is_on;
    if (code || provided < library->serialized) {
        snprintf(why, JOIN_REASON,
                 code ? "%s: MPI_Init_thread failed with code %d"
                      : "%s is not for several threads: level %d of MPI",
                 library->version, code ? code : provided);
        return TN_ERR_UNSUPPORTED;
    }
    code = halves_create(library);
    snprintf(why, JOIN_REASON, "MPI_Op_create failed with code %d", code);
    return code ? TN_ERR_INTERNAL : TN_OK;
}

static tn_status arrive(void *user, char *why)
{
    struct world_arrival *arrival = user;
    struct mpi_library *library = arrival->library;
    handle comm = 0;
    tn_status status = mpi_group_initialize(library, why);
    if (status != TN_OK)
        return status;
    if (library->Comm_set_errhandler(library->world, library->errors_return) ||
        library->Comm_dup(library->world, &comm)) {
        snprintf(why, JOIN_REASON, "MPI's world cannot be copied");
        return TN_ERR_IO;
    }
    return group_create(library, comm, why, &arrival->world);
}

// The rank of this process as TENON_RUN says; -1: unknown.
static int32_t rank_of_run(const char *text)
{
    int rank = -1;
    return text && sscanf(text, "rank=%d", &rank) == 1 ? rank : -1;
}

static tn_status mpi_group_world_join(const tn_host *host, tn_group **out_world)
{
    static struct world_arrival
        arrival; // static, as a thread that was left behind uses it; joined once
    const char *text = host->config(host, "TENON_RUN");
    char why[JOIN_REASON];
    bool is_left;
    tn_status status =
        library_open(host, host->config(host, "TENON_MPI"), &arrival.library);
    if (status != TN_OK)
        return status;
    watch_init(&process.watch, host, text);
    const struct join_call call = {
        arrive,         arrival_failure,   &arrival,
        &process.watch, rank_of_run(text), "joining the world, for which all wait"};
    status = join_run(&call, why, &is_left);
    if (status != TN_OK)
        return host->fail(host, status, "%s", why);
    tn_group *world = arrival.world;
    for (int32_t i = 0; i < world->facts.size; i++)
        world->members[i] = i;
    world->world_rank = world->facts.rank;
    group_enlist(world);
    status = world_introduce(host, world);
    if (status == TN_OK)
        status = group_find_board(host, world);
    if (status == TN_OK)
        *out_world = world;
    return status; // a world that failed stays as it is: MPI may use its memory
}

// One thread joins, and the others wait for it.
static tn_status world_find(const tn_host *host)
{
    tn_group *world = NULL;
    pthread_mutex_lock(&process.lock);
    while (process.state == JOINING)
        pthread_cond_wait(&process.joined, &process.lock);
    bool joins = process.state == APART;
    if (joins)
        process.state = JOINING;
    pthread_mutex_unlock(&process.lock);
    if (!joins)
        return TN_OK;
    tn_status status = mpi_group_world_join(host, &world);
    pthread_mutex_lock(&process.lock);
    process.state = status == TN_OK ? JOINED : LEFT;
    process.world = world;
    pthread_cond_broadcast(&process.joined);
    pthread_mutex_unlock(&process.lock);
    return status;
}

tn_status mpi_open(const tn_host *host, tn_group **out_group)
{
    tn_status status = world_find(host);
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&process.lock);
    bool has_joined = process.state == JOINED;
    if (has_joined) {
        process.references++;
        *out_group = process.world;
    }
    pthread_mutex_unlock(&process.lock);
    return has_joined ? TN_OK
                      : host->fail(host, TN_ERR_UNSUPPORTED,
                                   "this process has left its group, and joins it once: "
                                   "keep one runtime open");
}

static tn_status finalize(void *user, char *why)
{
    struct mpi_library *library = user;
    why[0] = 0;
    library->Finalize();
    return TN_OK;
}

// A rank that ended well has finalised MPI, so its end is no failure here.
static const struct watch_failure *finalize_failure(void *user)
{
    (void)user;
    watch_poll(&process.watch, NULL, 0);
    return watch_find_lost(&process.watch);
}

// Whether MPI can be finalised: all members leave, and none has calls of a broken group,
// which some libraries wait for.
static bool world_can_finalize(const tn_host *host, tn_group *world)
{
    int32_t pending = process.has_pending, count = 0;
    return !world->broken[0] && call_agree(world, CALL_LEAVE) == TN_OK &&
           group_count(host, world, &pending, &count) == TN_OK && count == 0;
}

// Finalises MPI, which waits for all members: after a failure it would wait for ever.
static void world_leave(const tn_host *host, tn_group *world)
{
    struct mpi_library *library = world->library;
    int32_t rank = world->world_rank;
    bool is_sound = world_can_finalize(host, world), is_left = false;
    char why[JOIN_REASON];
    progress_stop();
    if (!is_sound) {
        host->log(host, TN_LOG_INFO, "collective", "MPI is not finalised: %s",
                  world->broken[0] ? world->broken : "it has calls of a broken group");
        return;
    }
    group_free(world);
    const struct join_call call = {finalize, finalize_failure,   library, &process.watch,
                                   rank,     "leaving the world"};
    if (process.is_ours && join_run(&call, why, &is_left) != TN_OK)
        host->log(host, TN_LOG_INFO, "collective", "MPI is not finalised: %s", why);
    if (!is_left)
        watch_finish(&process.watch);
}

void mpi_close(const tn_host *host, tn_group *group)
{
    if (!group)
        return;
    pthread_mutex_lock(&process.lock);
    bool is_world = group == process.world;
    bool leaves = is_world && --process.references == 0;
    if (leaves) {
        process.world = NULL;
        process.state = LEFT;
    }
    pthread_mutex_unlock(&process.lock);
    if (leaves)
        world_leave(host, group);
    else if (!is_world)
        group_free(group);
}

// --- slots ------------------------------------------------------------------------------

const tn_group_facts *mpi_facts(const tn_group *group)
{
    return &group->facts;
}

void mpi_set_deadline(tn_group *group, uint64_t milliseconds)
{
    progress_enter();
    group->deadline_ms = milliseconds;
    progress_leave();
}
