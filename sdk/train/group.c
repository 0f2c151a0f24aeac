// SPDX-License-Identifier: MIT
// Groups of processes that train together, by pack "dist".
#include <stdio.h>
#include <string.h>
#include <tenon/dist.h>
#include "common.h"

tn_status group_find(tn_runtime *runtime, const char *name, struct train_group *out)
{
    const tn_dist *dist = NULL;
    const tn_host *host = NULL;
    tn_group_facts facts = {0};
    *out = (struct train_group){.size = 1};
    if (!name)
        return TN_OK;
    if (strlen(name) >= sizeof(out->name))
        return train_fail(TN_ERR_ARGUMENT,
                          "the group's name has %zu bytes, at most %zu fit", strlen(name),
                          sizeof(out->name) - 1);
    tn_status status =
        tn_interface_find(runtime, TN_IFACE_DIST, (const void **)&dist, &host);
    if (status == TN_OK)
        status = dist->find(host, name, &facts, sizeof(facts));
    if (status != TN_OK)
        return train_fail_core(status);
    snprintf(out->name, sizeof(out->name), "%s", name);
    out->rank = facts.rank;
    out->size = facts.size;
    return TN_OK;
}

tn_status group_any(const struct train_group *group, tn_runtime *runtime, bool *mine)
{
    const int32_t value = *mine;
    if (group->size == 1)
        return TN_OK;
    tn_scope *s = tn_scope_open(runtime);
    if (!s)
        return train_fail_core(TN_ERR_MEMORY);
    tn_array *all =
        tn_op(s, "dist.all_reduce/1", TN_IN(tn_from_data(s, TN_I32, TN_SHAPE(1), &value)),
              tn_attrs("reduction", "maximum", "group", group->name));
    int32_t most = 0;
    tn_read(s, all, &most, sizeof(most));
    tn_status status = train_fail_scope(s);
    tn_scope_close(s);
    if (status == TN_OK)
        *mine = most != 0;
    return status;
}

void train_read_options(void *out, uint64_t size, const void *given, uint32_t given_size,
                        uint64_t first)
{
    uint64_t known = given_size ? given_size : first;
    memset(out, 0, size);
    memcpy(out, given, known < size ? known : size);
}
