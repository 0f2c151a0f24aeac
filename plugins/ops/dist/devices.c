// SPDX-License-Identifier: MIT
// Finds a plugin that moves memory of devices between the members of a group, and has all
// members agree on whether they have it.
#include <stdio.h>
#include <stdlib.h>
#include "pack.h"

// A member's message on its plugins.
struct device_words {
    int32_t status; // result of `ready`
    char why[252];
};

static bool table_find(const tn_host *host, struct device_use *out)
{
    const tn_host_interfaces *interfaces = host->query(host, TN_HOST_INTERFACES);
    const void *table = NULL;
    if (!interfaces || interfaces->find(host, TN_IFACE_DEVICE_COLLECTIVE, NULL, &table,
                                        &out->host) != TN_OK)
        return false;
    out->table = table;
    return TN_HAS(out->table, run);
}

static tn_status words_gather(const tn_collective *table, const tn_host *table_host,
                              tn_group *group, const struct device_words *mine,
                              struct device_words *all)
{
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .flags = TN_COLLECTIVE_ASIDE,
                                     .kind = TN_COLLECTIVE_ALL_GATHER,
                                     .dtype = TN_U8,
                                     .count = sizeof(*mine),
                                     .input = mine,
                                     .output = all};
    tn_collective_work *work;
    tn_status status = table->start(table_host, group, &call, &work);
    return status == TN_OK ? table->wait(table_host, work) : status;
}

// Whether all members are ready. Fails, alike on all of them, where one requires it.
static tn_status words_compare(const tn_host *host, const struct device_words *all,
                               int32_t size, bool *out_ready)
{
    *out_ready = true;
    for (int32_t i = 0; i < size; i++)
        if (all[i].status == TN_ERR_NOT_FOUND)
            return host->fail(host, TN_ERR_NOT_FOUND, "rank %d: %s", i, all[i].why);
    for (int32_t i = 0; i < size && *out_ready; i++)
        if (all[i].status != TN_OK) {
            *out_ready = false;
            host->log(host, TN_LOG_INFO, "collective",
                      "arrays go through the host's memory: rank %d: %s", i, all[i].why);
        }
    return TN_OK;
}

tn_status device_use_open(const tn_host *host, const tn_collective *table,
                          const tn_host *table_host, tn_group *group,
                          struct device_use *out)
{
    int32_t size = table->facts(group)->size;
    struct device_words mine = {.status = TN_ERR_UNSUPPORTED}, *all;
    bool is_ready = false;
    *out = (struct device_use){0};
    all = calloc((size_t)size, sizeof(*all));
    if (!all)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    snprintf(mine.why, sizeof(mine.why), "no plugin moves memory of devices");
    if (table_find(host, out))
        mine.status = out->table->ready(out->host, mine.why, sizeof(mine.why));
    tn_status status = words_gather(table, table_host, group, &mine, all);
    if (status != TN_OK)
        return status; // not freed: `all` may be written to later
    status = words_compare(host, all, size, &is_ready);
    free(all);
    if (status == TN_OK && is_ready && TN_HAS(table, check))
        status = out->table->open(out->host, table, table_host, group, &out->group);
    if (!out->group)
        *out = (struct device_use){0};
    return status;
}

void device_use_close(struct device_use *use)
{
    if (use->table)
        use->table->close(use->host, use->group);
    *use = (struct device_use){0};
}
