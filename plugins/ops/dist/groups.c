// SPDX-License-Identifier: MIT
// Named groups of each runtime: the table tn_dist, and the use of groups by primitives.
#include "pack.h"

#include <pthread.h>
#include <stdlib.h>

enum { MOST_NAME = 63 };

struct named_group {
    struct named_group *next;
    char name[MOST_NAME + 1];
    tn_group *group;
    bool is_used; // a thread uses the group
    struct device_use devices;
};

// Groups of one runtime. A list, as runtimes are few.
struct runtime_groups {
    struct runtime_groups *next;
    const tn_host *host;
    pthread_mutex_t lock; // guards the members below
    pthread_cond_t changed;
    bool is_joining; // a thread joins the world, without holding the lock
    const tn_collective *table;
    const tn_host *table_host;
    struct named_group *groups; // the world is the last
};

static pthread_mutex_t runtimes_lock = PTHREAD_MUTEX_INITIALIZER; // guards `runtimes`
static struct runtime_groups *runtimes;

static struct runtime_groups *groups_of_runtime(const tn_host *host)
{
    pthread_mutex_lock(&runtimes_lock);
    struct runtime_groups *found = runtimes;
    while (found && found->host != host)
        found = found->next;
    pthread_mutex_unlock(&runtimes_lock);
    return found;
}

tn_status groups_init(const tn_host *host)
{
    struct runtime_groups *mine = calloc(1, sizeof(*mine));
    if (!mine)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    mine->host = host;
    pthread_mutex_init(&mine->lock, NULL);
    pthread_cond_init(&mine->changed, NULL);
    pthread_mutex_lock(&runtimes_lock);
    mine->next = runtimes;
    runtimes = mine;
    pthread_mutex_unlock(&runtimes_lock);
    return TN_OK;
}

// The lock of `mine` is held.
static bool has_used_group(const struct runtime_groups *mine)
{
    const struct named_group *group = mine->groups;
    while (group && !group->is_used)
        group = group->next;
    return group != NULL;
}

static void leave_all(struct runtime_groups *mine)
{
    pthread_mutex_lock(&mine->lock);
    while (has_used_group(mine))
        pthread_cond_wait(&mine->changed, &mine->lock);
    struct named_group *next = mine->groups;
    mine->groups = NULL;
    pthread_mutex_unlock(&mine->lock);
    while (next) {
        struct named_group *group = next;
        next = group->next;
        device_use_close(&group->devices);
        mine->table->close(mine->table_host, group->group);
        free(group);
    }
}

void groups_deinit(const tn_host *host)
{
    struct runtime_groups **at = &runtimes, *mine = NULL;
    pthread_mutex_lock(&runtimes_lock);
    while (*at && (*at)->host != host)
        at = &(*at)->next;
    if (*at) {
        mine = *at;
        *at = mine->next;
    }
    pthread_mutex_unlock(&runtimes_lock);
    if (!mine)
        return;
    leave_all(mine);
    pthread_cond_destroy(&mine->changed);
    pthread_mutex_destroy(&mine->lock);
    free(mine);
}

// --- names ------------------------------------------------------------------------------

static const char *dist_groups_full_name(const char *name)
{
    return name && *name ? name : "world";
}

// The lock of `mine` is held.
static struct named_group *dist_group_find(const struct runtime_groups *mine,
                                           const char *name)
{
    struct named_group *group = mine->groups;
    while (group && strcmp(group->name, name) != 0)
        group = group->next;
    return group;
}

// Lists a group under a name; takes the group.
static tn_status group_list(struct runtime_groups *mine, const char *name, tn_group *group)
{
    struct named_group *entry = calloc(1, sizeof(*entry));
    if (!entry) {
        mine->table->close(mine->table_host, group);
        return mine->host->fail(mine->host, TN_ERR_MEMORY, "out of memory");
    }
    memcpy(entry->name, name, strlen(name));
    entry->group = group;
    tn_status status =
        device_use_open(mine->host, mine->table, mine->table_host, group, &entry->devices);
    if (status != TN_OK) {
        free(entry); // the group stays open: a library may be using it
        return status;
    }
    pthread_mutex_lock(&mine->lock);
    entry->next = mine->groups;
    mine->groups = entry;
    pthread_mutex_unlock(&mine->lock);
    return TN_OK;
}

static tn_status group_check_name(const tn_host *host, const char *name)
{
    return strlen(name) <= MOST_NAME
               ? TN_OK
               : host->fail(host, TN_ERR_ARGUMENT,
                            "the name of a group has %zu bytes, expected at most %d",
                            strlen(name), MOST_NAME);
}

// Joins the world, through the one plugin with collectives.
static tn_status dist_groups_world_join(struct runtime_groups *mine)
{
    const tn_host *host = mine->host;
    const tn_host_interfaces *interfaces = host->query(host, TN_HOST_INTERFACES);
    const void *table = NULL;
    tn_group *world;
    if (!interfaces)
        return host->fail(host, TN_ERR_UNSUPPORTED, "this host has no service %s",
                          TN_HOST_INTERFACES);
    tn_status status = interfaces->find(
        host, TN_IFACE_COLLECTIVE, "the plugin org.tenon.mpi", &table, &mine->table_host);
    if (status != TN_OK)
        return status;
    mine->table = table;
    if (!TN_HAS(mine->table, abort))
        return host->fail(host, TN_ERR_REFUSED, "the plugin's %s is cut off",
                          TN_IFACE_COLLECTIVE);
    status = mine->table->open(mine->table_host, &world);
    return status == TN_OK ? group_list(mine, "world", world) : status;
}

// Joins the world in one thread, while others wait for it.
static tn_status group_join(struct runtime_groups *mine)
{
    pthread_mutex_lock(&mine->lock);
    while (mine->is_joining)
        pthread_cond_wait(&mine->changed, &mine->lock);
    bool joins = mine->is_joining = !dist_group_find(mine, "world");
    pthread_mutex_unlock(&mine->lock);
    if (!joins)
        return TN_OK;
    tn_status status = dist_groups_world_join(mine);
    pthread_mutex_lock(&mine->lock);
    mine->is_joining = false;
    pthread_cond_broadcast(&mine->changed);
    pthread_mutex_unlock(&mine->lock);
    return status;
}

// Finds a group of this runtime. The lock of *out->runtime is held after TN_OK.
static tn_status group_lock(const tn_host *host, const char *name, struct group_use *out)
{
    struct runtime_groups *mine = groups_of_runtime(host);
    if (!mine)
        return host->fail(host, TN_ERR_INTERNAL, "groups of a runtime that is closed");
    name = dist_groups_full_name(name);
    tn_status status = strcmp(name, "world") == 0 ? group_join(mine) : TN_OK;
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&mine->lock);
    struct named_group *entry = dist_group_find(mine, name);
    if (!entry) {
        pthread_mutex_unlock(&mine->lock);
        return host->fail(host, TN_ERR_NOT_FOUND,
                          "no group has the name '%s': split makes one", name);
    }
    *out = (struct group_use){
        mine->table, mine->table_host, entry->group, mine->table->facts(entry->group), mine,
        entry,       &entry->devices};
    return TN_OK;
}

tn_status groups_take(const tn_host *host, const char *name, struct group_use *out)
{
    tn_status status = group_lock(host, name, out);
    if (status != TN_OK)
        return status;
    while (out->entry->is_used)
        pthread_cond_wait(&out->runtime->changed, &out->runtime->lock);
    out->entry->is_used = true;
    pthread_mutex_unlock(&out->runtime->lock);
    return TN_OK;
}

void groups_give(struct group_use *use)
{
    pthread_mutex_lock(&use->runtime->lock);
    use->entry->is_used = false;
    pthread_cond_broadcast(&use->runtime->changed);
    pthread_mutex_unlock(&use->runtime->lock);
}

// --- slots of tn_dist -------------------------------------------------------------------

static tn_status dist_find(const tn_host *host, const char *name, tn_group_facts *out,
                           uint64_t size)
{
    struct group_use use;
    tn_status status = group_lock(host, name, &use);
    if (status != TN_OK)
        return status;
    memset(out, 0, size);
    memcpy(out, use.facts, size < use.facts->struct_size ? size : use.facts->struct_size);
    pthread_mutex_unlock(&use.runtime->lock);
    return TN_OK;
}

static tn_status check_made(const tn_host *host, const char *made)
{
    struct runtime_groups *mine = groups_of_runtime(host);
    made = dist_groups_full_name(made);
    tn_status status = group_check_name(host, made);
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&mine->lock);
    bool is_taken = dist_group_find(mine, made) || strcmp(made, "world") == 0;
    pthread_mutex_unlock(&mine->lock);
    return is_taken
               ? host->fail(host, TN_ERR_ARGUMENT, "there is a group '%s' already", made)
               : TN_OK;
}

static tn_status dist_split(const tn_host *host, const char *name, int32_t color,
                            int32_t key, const char *made)
{
    struct group_use use;
    tn_group *group = NULL;
    tn_status status = groups_take(host, name, &use);
    if (status != TN_OK)
        return status;
    status = check_made(host, made);
    if (status == TN_OK)
        status = use.table->split(use.host, use.group, color, key, &group);
    groups_give(&use);
    return status == TN_OK && group
               ? group_list(groups_of_runtime(host), dist_groups_full_name(made), group)
               : status;
}

static tn_status dist_shrink(const tn_host *host, const char *name, const char *made)
{
    struct group_use use;
    tn_group *group = NULL;
    tn_status status = groups_take(host, name, &use);
    if (status != TN_OK)
        return status;
    status = check_made(host, made);
    if (status == TN_OK && !TN_HAS(use.table, shrink))
        status = host->fail(host, TN_ERR_UNSUPPORTED,
                            "these collectives cannot go on without a member");
    if (status == TN_OK)
        status = use.table->shrink(use.host, use.group, &group);
    groups_give(&use);
    return status == TN_OK
               ? group_list(groups_of_runtime(host), dist_groups_full_name(made), group)
               : status;
}

// These two do not wait for a running call of another thread: they change how it ends.
static tn_status dist_set_deadline(const tn_host *host, const char *name,
                                   uint64_t milliseconds)
{
    struct group_use use;
    tn_status status = group_lock(host, name, &use);
    if (status != TN_OK)
        return status;
    use.table->set_deadline(use.group, milliseconds);
    pthread_mutex_unlock(&use.runtime->lock);
    return TN_OK;
}

static tn_status dist_abort(const tn_host *host, const char *name, const char *reason)
{
    struct group_use use;
    tn_status status = group_lock(host, name, &use);
    if (status != TN_OK)
        return status;
    use.table->abort(use.host, use.group, reason);
    pthread_mutex_unlock(&use.runtime->lock);
    return TN_OK;
}

static void dist_leave(const tn_host *host)
{
    struct runtime_groups *mine = groups_of_runtime(host);
    if (mine)
        leave_all(mine);
}

const tn_dist dist_groups = {
    .struct_size = sizeof(dist_groups),
    .find = dist_find,
    .split = dist_split,
    .set_deadline = dist_set_deadline,
    .shrink = dist_shrink,
    .abort = dist_abort,
    .leave = dist_leave,
};
