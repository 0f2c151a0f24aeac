// SPDX-License-Identifier: MIT
// The world of a process, and groups that are made of it.
#include "group.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// MPI is started and ended once a process.
static struct {
    pthread_mutex_t lock; // guards the members below
    tn_group *world;      // NULL: not joined
    uint32_t references;  // of it
    bool has_left;        // MPI was ended, or is of no use any more
    bool is_ours;         // we initialised MPI, so we finalise it
    struct watch watch;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .watch = {.fd = -1}};

// --- failures ---------------------------------------------------------------------------

tn_status group_broken(const tn_host *host, const tn_group *group)
{
    return host->fail(host, group->broken_status, "%s", group->broken);
}

tn_status group_break(const tn_host *host, tn_group *group, tn_status status,
                      const char *format, ...)
{
    va_list arguments;
    if (!group->broken[0]) {
        va_start(arguments, format);
        vsnprintf(group->broken, sizeof(group->broken), format, arguments);
        va_end(arguments);
        group->broken_status = status;
        // Members that wait for this one in MPI, where it knows how to let go of them.
        if (group->library->Comm_revoke && group->facts.size > 1) {
            group->library->Comm_revoke(group->calls);
            group->library->Comm_revoke(group->agreements);
        }
    }
    return group_broken(host, group);
}

tn_status group_mpi_failed(const tn_host *host, tn_group *group, int code, const char *what)
{
    static const int MOST = 2048; // MPI_MAX_ERROR_STRING is 256 to 1,024
    char text[2048 + 1] = "";
    int size = 0;
    if (group->library->Error_string(code, text, &size) != 0 || size > MOST)
        snprintf(text, sizeof(text), "error %d", code);
    text[strcspn(text, "\n")] = 0;
    if (strstr(text, "ERR_REVOKED"))
        return group_break(host, group, TN_ERR_IO,
                           "%s: another member ended the group, and says why", what);
    return group_break(host, group, TN_ERR_IO, "%s: MPI says: %.300s", what, text);
}

void mpi_abort(const tn_host *host, tn_group *group, const char *reason)
{
    group_break(host, group, TN_ERR_IO, "the group was ended: %s", reason);
}

// --- making groups ----------------------------------------------------------------------

// A group over communicator `comm`, which it takes.
static tn_status group_create(const tn_host *host, struct mpi_library *library, handle comm,
                              tn_group **out_group)
{
    tn_group *group = calloc(1, sizeof(*group));
    if (!group)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    *group = (tn_group){
        .facts = {.struct_size = sizeof(group->facts),
                  .flags = library->Comm_shrink ? TN_GROUP_SHRINKS : 0,
                  .library = library->version},
        .library = library,
        .calls = comm,
        .watch = &process.watch,
    };
    int code = library->Comm_set_errhandler(comm, library->errors_return);
    if (!code)
        code = library->Comm_rank(comm, &group->facts.rank);
    if (!code)
        code = library->Comm_size(comm, &group->facts.size);
    if (!code)
        code = library->Comm_dup(comm, &group->agreements);
    if (!code)
        code = library->Comm_set_errhandler(group->agreements, library->errors_return);
    group->members = calloc((size_t)group->facts.size + 1, sizeof(*group->members));
    tn_status status = !group->members ? host->fail(host, TN_ERR_MEMORY, "out of memory")
                       : code          ? group_mpi_failed(host, group, code, "a new group")
                                       : TN_OK;
    if (status == TN_OK) {
        *out_group = group;
        return TN_OK;
    }
    free(group->members);
    free(group);
    return status;
}

static void group_free(tn_group *group)
{
    // What is pending in a broken group would have to end first.
    if (!group->broken[0]) {
        group->library->Comm_free(&group->agreements);
        group->library->Comm_free(&group->calls);
    }
    free(group->members);
    free(group);
}

static tn_status group_gather(const tn_host *host, tn_group *group, tn_dtype dtype,
                              uint64_t count, const void *mine, void *all)
{
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .kind = TN_COLLECTIVE_ALL_GATHER,
                                     .dtype = dtype,
                                     .count = count,
                                     .input = mine,
                                     .output = all};
    tn_collective_work *work;
    tn_status status = mpi_start(host, group, &call, &work);
    return status == TN_OK ? mpi_wait(host, work) : status;
}

// --- the world --------------------------------------------------------------------------

// What members must have in common, and what they should.
struct introduction {
    char version[128];
    char backend[128];
};

static tn_status introductions_compare(const tn_host *host, const struct introduction *all,
                                       int32_t size)
{
    for (int32_t i = 1; i < size; i++)
        if (strcmp(all[i].version, all[0].version) != 0)
            return host->fail(
                host, TN_ERR_REFUSED,
                "members are of different versions: rank 0 has %s, rank %d %s",
                all[0].version, i, all[i].version);
    for (int32_t i = 1; i < size; i++)
        if (strcmp(all[i].backend, all[0].backend) != 0)
            host->log(host, TN_LOG_WARN, "collective",
                      "members have different devices: TENON_BACKEND of rank 0 is '%s', of "
                      "rank %d '%s': results may differ in their last bits",
                      all[0].backend, i, all[i].backend);
    return TN_OK;
}

static tn_status introduce(const tn_host *host, tn_group *world)
{
    const char *backend = host->config(host, "TENON_BACKEND");
    struct introduction mine = {0}, *all = calloc((size_t)world->facts.size, sizeof(*all));
    if (!all)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    snprintf(mine.version, sizeof(mine.version),
             "org.tenon.mpi " MPI_PLUGIN_VERSION ", ABI minor %u", host->abi_minor);
    snprintf(mine.backend, sizeof(mine.backend), "%s", backend ? backend : "");
    tn_status status = group_gather(host, world, TN_U8, sizeof(mine), &mine, all);
    if (status != TN_OK)
        return status; // `all` may be written to later
    status = introductions_compare(host, all, world->facts.size);
    free(all);
    world->sequence = 0; // the first call of an application is number 1
    return status;
}

static tn_status initialize(const tn_host *host, struct mpi_library *library)
{
    int provided = 0, is_on = 0, was_on = 0, code = library->Initialized(&is_on);
    if (!code)
        code = library->Finalized(&was_on);
    if (code || was_on)
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "MPI was finalised in this process, and starts once");
    code = is_on ? library->Query_thread(&provided)
                 : library->Init_thread(NULL, NULL, library->serialized, &provided);
    process.is_ours = !is_on;
    if (code || provided < library->serialized)
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          code ? "%s: MPI_Init_thread failed with code %d"
                               : "%s is not for several threads: level %d of MPI",
                          library->version, code ? code : provided);
    code = halves_create(library);
    return code ? host->fail(host, TN_ERR_INTERNAL, "MPI_Op_create failed with code %d",
                             code)
                : TN_OK;
}

static tn_status world_join(const tn_host *host)
{
    struct mpi_library *library;
    handle comm = 0;
    tn_group *world;
    tn_status status = library_open(host, host->config(host, "TENON_MPI"), &library);
    if (status == TN_OK)
        status = initialize(host, library);
    if (status != TN_OK)
        return status;
    watch_init(&process.watch, host, host->config(host, "TENON_RUN"));
    if (library->Comm_set_errhandler(library->world, library->errors_return) ||
        library->Comm_dup(library->world, &comm))
        return host->fail(host, TN_ERR_IO, "MPI's world cannot be copied");
    status = group_create(host, library, comm, &world);
    if (status != TN_OK)
        return status;
    for (int32_t i = 0; i < world->facts.size; i++)
        world->members[i] = i;
    world->world_rank = world->facts.rank;
    status = introduce(host, world);
    if (status == TN_OK)
        process.world = world;
    return status; // a world that failed stays as it is: MPI may use its memory
}

tn_status mpi_open(const tn_host *host, tn_group **out_group)
{
    tn_status status = TN_OK;
    pthread_mutex_lock(&process.lock);
    if (process.has_left)
        status = host->fail(host, TN_ERR_UNSUPPORTED,
                            "this process has left its group, and joins it once: keep one "
                            "runtime open");
    else if (!process.world)
        status = world_join(host);
    process.has_left |= status != TN_OK;
    if (status == TN_OK) {
        process.references++;
        *out_group = process.world;
    }
    pthread_mutex_unlock(&process.lock);
    return status;
}

// MPI ends when all members are done; where one has failed that would wait for ever.
static void world_leave(const tn_host *host, tn_group *world)
{
    struct mpi_library *library = world->library;
    process.has_left = true;
    process.world = NULL;
    if (world->broken[0] || call_agree(host, world, CALL_LEAVE) != TN_OK) {
        host->log(host, TN_LOG_INFO, "collective", "MPI is not finalised: %s",
                  world->broken);
        return;
    }
    group_free(world);
    watch_finish(&process.watch);
    if (process.is_ours)
        library->Finalize();
}

void mpi_close(const tn_host *host, tn_group *group)
{
    if (!group)
        return;
    pthread_mutex_lock(&process.lock);
    if (group != process.world)
        group_free(group);
    else if (--process.references == 0)
        world_leave(host, group);
    pthread_mutex_unlock(&process.lock);
}

// --- slots ------------------------------------------------------------------------------

const tn_group_facts *mpi_facts(const tn_group *group)
{
    return &group->facts;
}

void mpi_set_deadline(tn_group *group, uint64_t milliseconds)
{
    group->deadline_ms = milliseconds;
}

// Fills in who the members of a new part of `parent` are.
static tn_status find_members(const tn_host *host, const tn_group *parent, tn_group *group)
{
    group->world_rank = parent->world_rank;
    group->deadline_ms = parent->deadline_ms;
    // Until the members are known: nobody's failure is this group's.
    for (int32_t i = 0; i < group->facts.size; i++)
        group->members[i] = -1;
    int32_t *all = calloc((size_t)group->facts.size, sizeof(*all));
    if (!all)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    tn_status status = group_gather(host, group, TN_I32, 1, &group->world_rank, all);
    if (status != TN_OK)
        return status; // MPI may write to `all`
    memcpy(group->members, all, (size_t)group->facts.size * sizeof(*all));
    free(all);
    return TN_OK;
}

static tn_status make_part(const tn_host *host, tn_group *parent, handle comm,
                           tn_group **out_group)
{
    tn_group *group;
    tn_status status = group_create(host, parent->library, comm, &group);
    if (status == TN_OK)
        status = find_members(host, parent, group);
    if (status == TN_OK)
        *out_group = group;
    return status;
}

tn_status mpi_split(const tn_host *host, tn_group *group, int32_t color, int32_t key,
                    tn_group **out_group)
{
    static const int UNDEFINED = -32766; // MPI_UNDEFINED of all three
    handle comm = 0;
    tn_status status = call_agree(host, group, CALL_SPLIT);
    if (status != TN_OK)
        return status;
    int code =
        group->library->Comm_split(group->calls, color < 0 ? UNDEFINED : color, key, &comm);
    if (code)
        return group_mpi_failed(host, group, code, "split");
    if (color < 0) {
        *out_group = NULL;
        return TN_OK;
    }
    return make_part(host, group, comm, out_group);
}

tn_status mpi_shrink(const tn_host *host, tn_group *group, tn_group **out_group)
{
    handle comm = 0;
    if (!group->library->Comm_shrink)
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "%s cannot go on without a member: Open MPI 5 can",
                          group->library->version);
    int code = group->library->Comm_shrink(group->calls, &comm);
    return code ? group_mpi_failed(host, group, code, "shrink")
                : make_part(host, group, comm, out_group);
}
