// SPDX-License-Identifier: MIT
// Groups made of some members of another group.
//
// MPI makes communicators in calls that wait for all members, without a look at failures:
// they are made in a thread (join.h) while no other thread calls MPI. When such a thread is
// left behind, MPI cannot be used any more, and all groups are broken.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "group.h"
#include "join.h"

// A member of the parent: the part that it goes to (color), and its order there (key).
struct part_member {
    int32_t color, key, rank, world_rank; // `rank`: in the parent
};

// Arguments and result of making a part. Not freed where the thread, which uses it, is
// left.
struct mpi_part {
    tn_group *parent;
    uint32_t num_failures; // failures that the watch had told before
    bool shrinks;
    int color, key;
    tn_group *made; // NULL: this process is in no part
};

static tn_status part_run(void *user, char *why)
{
    static const int UNDEFINED = -32766; // MPI_UNDEFINED in all three binary interfaces
    struct mpi_part *part = user;
    struct mpi_library *mpi = part->parent->library;
    handle comm = 0, calls = part->parent->calls;
    int color = part->color < 0 ? UNDEFINED : part->color;
    int code = part->shrinks ? mpi->Comm_shrink(calls, &comm)
                             : mpi->Comm_split(calls, color, part->key, &comm);
    if (code)
        group_print_failure(mpi, code, part->shrinks ? "shrink" : "split", why);
    if (code)
        return TN_ERR_IO;
    return part->color < 0 ? TN_OK : group_create(mpi, comm, why, &part->made);
}

// A group shrinks after failures: those that the watch had told before do not count.
static const struct watch_failure *part_failure(void *user)
{
    const struct mpi_part *part = user;
    const struct watch *watch = part->parent->watch;
    const struct watch_failure *failure = group_failure(part->parent);
    if (!part->shrinks)
        return failure;
    return watch->num_failures > part->num_failures ? &watch->failures[part->num_failures]
                                                    : NULL;
}

// Makes the communicators of a part.
static tn_status part_make(const tn_host *host, struct mpi_part *part, tn_group **out_group)
{
    tn_group *parent = part->parent;
    char why[JOIN_REASON];
    bool is_left;
    const struct join_call call = {
        part_run,      part_failure,       part,
        parent->watch, parent->world_rank, part->shrinks ? "in shrink" : "in split"};
    if (groups_are_lost()) {
        free(part);
        return host->fail(host, TN_ERR_IO, "MPI did not come back from an earlier call");
    }
    part->num_failures = parent->watch->num_failures;
    progress_hold();
    tn_status status = join_run(&call, why, &is_left);
    progress_enter_held();
    if (is_left) {
        groups_break(status, why);
    } else if (status == TN_ERR_IO && !part->shrinks) {
        call_break(parent, CALL_SPLIT, why);
        snprintf(why, sizeof(why), "%s", parent->broken);
    }
    progress_leave();
    *out_group = is_left ? NULL : part->made;
    if (!is_left)
        free(part);
    return status == TN_OK ? TN_OK : host->fail(host, status, "%s", why);
}

// Closes a group whose members could not be made known to each other; the others are told.
static void part_discard(tn_group *group, tn_status status)
{
    progress_enter();
    group_end(group, status, "out of memory in a new group");
    progress_leave();
    group_free(group);
}

// Gives a part the settings of its parent, and lists it.
static void part_inherit(const tn_group *parent, tn_group *group)
{
    group->world_rank = parent->world_rank;
    group->deadline_ms = parent->deadline_ms;
    group_enlist(group);
}

// --- split ------------------------------------------------------------------------------

static int part_compare(const void *a, const void *b)
{
    const struct part_member *first = a, *second = b;
    return first->key != second->key
               ? (first->key > second->key) - (first->key < second->key)
               : first->rank - second->rank;
}

// Fills in the members of a split, which have one color, in MPI's order.
static void part_fill(tn_group *group, struct part_member *all, int32_t size, int32_t color)
{
    int32_t count = 0;
    qsort(all, (size_t)size, sizeof(*all), part_compare);
    for (int32_t i = 0; i < size && count < group->facts.size; i++)
        if (all[i].color == color)
            group->members[count++] = all[i].world_rank;
}

// Makes a group of the members with this one's color, after all have given theirs.
static tn_status part_split(const tn_host *host, tn_group *group, struct part_member *all,
                            const struct part_member *mine, tn_group **out_group)
{
    tn_group *made = NULL;
    struct mpi_part *part = malloc(sizeof(*part));
    if (!part)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    *part = (struct mpi_part){.parent = group, .color = mine->color, .key = mine->key};
    tn_status status = part_make(host, part, &made);
    if (status == TN_OK && made) {
        part_fill(made, all, group->facts.size, mine->color);
        part_inherit(group, made);
        made->parent = group;
        status = group_find_board(host, made);
        made->parent = NULL;
    }
    if (status == TN_OK)
        *out_group = made;
    else if (made)
        part_discard(made, status);
    return status;
}

tn_status mpi_split(const tn_host *host, tn_group *group, int32_t color, int32_t key,
                    tn_group **out_group)
{
    const struct part_member mine = {color, key, group->facts.rank, group->world_rank};
    const uint64_t words = sizeof(mine) / sizeof(int32_t);
    struct part_member *all = calloc((size_t)group->facts.size, sizeof(*all));
    if (!all)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    tn_status status = group_tell(host, group, call_agree(group, CALL_SPLIT));
    if (status == TN_OK)
        status = group_gather(host, group, TN_I32, words, &mine, all);
    if (status != TN_OK)
        return status; // not freed: MPI may write to `all`
    status = part_split(host, group, all, &mine, out_group);
    free(all);
    return status;
}

// --- shrink -----------------------------------------------------------------------------

// The members that are left tell each other their ranks in the world.
static tn_status part_introduce(const tn_host *host, tn_group *group)
{
    // No rank's failure is this group's until the members are known.
    for (int32_t i = 0; i < group->facts.size; i++)
        group->members[i] = -1;
    int32_t *all = calloc((size_t)group->facts.size, sizeof(*all));
    if (!all)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    tn_status status = group_gather(host, group, TN_I32, 1, &group->world_rank, all);
    if (status != TN_OK)
        return status; // not freed: MPI may write to `all`
    memcpy(group->members, all, (size_t)group->facts.size * sizeof(*all));
    free(all);
    return group_find_board(host, group);
}

tn_status mpi_shrink(const tn_host *host, tn_group *group, tn_group **out_group)
{
    tn_group *made = NULL;
    if (!group->library->Comm_shrink)
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "%s cannot go on without a member: Open MPI 5 can",
                          group->library->version);
    struct mpi_part *part = malloc(sizeof(*part));
    if (!part)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    *part = (struct mpi_part){.parent = group, .shrinks = true};
    tn_status status = part_make(host, part, &made);
    if (status == TN_OK) {
        part_inherit(group, made);
        status = part_introduce(host, made);
    }
    if (status == TN_OK)
        *out_group = made;
    else if (made)
        part_discard(made, status);
    return status;
}
