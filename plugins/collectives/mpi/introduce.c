// SPDX-License-Identifier: MIT
// Members of the world compare facts when they have joined it: versions, devices, installed
// plugins, and whether their launcher started more of them than MPI sees.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/installed.h>
#include "group.h"

// Facts that members must (version) or should (backend) have in common. The layout never
// changes, so that members of other versions can compare it.
struct introduction {
    char version[128];
    char backend[128];
};

// "vulkan-jit:0,cpu-blas" without the numbers of devices, which differ between members on
// one machine.
static void backends_of(const char *list, char *out, size_t size)
{
    size_t used = 0;
    while (*list && used + 1 < size) {
        if (*list == ':')
            list += 1 + strspn(list + 1, "0123456789");
        else
            out[used++] = *list++;
    }
    out[used] = 0;
}

static tn_status introductions_compare(const tn_host *host, const void *list, int32_t size)
{
    const struct introduction *all = list;
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

// --- plugins ----------------------------------------------------------------------------

// A member's plugins: lines "id version". Lines that do not fit are left out.
struct plugin_list {
    char lines[8192];
};

static void plugins_list(const tn_host *host, struct plugin_list *out)
{
    const tn_host_installed *installed = host->query(host, TN_HOST_INSTALLED);
    const char *id, *version;
    size_t used = 0;
    for (uint64_t i = 0; installed && installed->get(host, i, &id, &version); i++) {
        size_t size = strlen(id) + strlen(version) + 2;
        if (used + size >= sizeof(out->lines))
            continue;
        snprintf(out->lines + used, sizeof(out->lines) - used, "%s %s\n", id, version);
        used += size;
    }
}

// The version of a plugin in a list, up to the end of its line; NULL: it is not there.
static const char *plugin_version(const struct plugin_list *list, const char *id,
                                  size_t size)
{
    const char *line = list->lines;
    while (*line && (strncmp(line, id, size) != 0 || line[size] != ' '))
        line += strcspn(line, "\n") + 1;
    return *line ? line + size + 1 : NULL;
}

// Compares the plugins of member `one` with those of `other`.
static tn_status plugins_compare_two(const tn_host *host, const struct plugin_list *all,
                                     int32_t one, int32_t other)
{
    const char *lacking = NULL;
    int lacking_size = 0, count = 0;
    for (const char *line = all[one].lines; *line; line += strcspn(line, "\n") + 1) {
        size_t size = strcspn(line, " ");
        const char *version = line + size + 1,
                   *theirs = plugin_version(&all[other], line, size);
        size_t length = strcspn(version, "\n");
        if (theirs &&
            (strcspn(theirs, "\n") != length || strncmp(theirs, version, length) != 0))
            return host->fail(host, TN_ERR_REFUSED,
                              "members have plugins of different versions: rank %d has "
                              "%.*s %.*s, rank %d %.*s",
                              one, (int)size, line, (int)length, version, other,
                              (int)strcspn(theirs, "\n"), theirs);
        if (theirs)
            continue;
        lacking = lacking ? lacking : line;
        lacking_size = lacking_size ? lacking_size : (int)size;
        count++;
    }
    if (lacking)
        host->log(
            host, TN_LOG_WARN, "collective",
            "members have different plugins: rank %d lacks %d of rank %d, the first is "
            "%.*s",
            other, count, one, lacking_size, lacking);
    return TN_OK;
}

static tn_status plugins_compare(const tn_host *host, const void *list, int32_t size)
{
    const struct plugin_list *all = list;
    tn_status status = TN_OK;
    for (int32_t i = 1; i < size && status == TN_OK; i++)
        if (all[0].lines[0] && all[i].lines[0]) // hosts that know <tenon/installed.h>
            status = plugins_compare_two(host, all, 0, i);
    for (int32_t i = 1; i < size && status == TN_OK; i++)
        if (all[0].lines[0] && all[i].lines[0])
            status = plugins_compare_two(host, all, i, 0);
    return status;
}

// --- all members ------------------------------------------------------------------------

// Gathers `size` bytes of each member, and compares them.
static tn_status
compare(const tn_host *host, tn_group *world, const void *mine, uint64_t size,
        tn_status (*compare_all)(const tn_host *host, const void *all, int32_t count))
{
    void *all = calloc((size_t)world->facts.size, size);
    if (!all)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    tn_status status = group_gather(host, world, TN_U8, size, mine, all);
    if (status != TN_OK)
        return status; // not freed: MPI may write to `all`
    status = compare_all(host, all, world->facts.size);
    free(all);
    return status;
}

// With another library than its launcher's, each process is a world of its own.
static tn_status check_started(const tn_host *host, const tn_group *world)
{
    const char *variable;
    int32_t count = library_find_started(&variable);
    return count <= 1 || world->facts.size > 1
               ? TN_OK
               : host->fail(host, TN_ERR_REFUSED,
                            "%s is %d, and %s sees this process alone: it is not the "
                            "library of the launcher, which TENON_MPI names, and `tenon "
                            "run` sets",
                            variable, count, world->library->version);
}

tn_status world_introduce(const tn_host *host, tn_group *world)
{
    const char *backend = host->config(host, "TENON_BACKEND");
    struct introduction mine = {0};
    struct plugin_list *plugins = calloc(1, sizeof(*plugins));
    if (!plugins)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    snprintf(mine.version, sizeof(mine.version),
             "org.tenon.mpi " MPI_PLUGIN_VERSION ", ABI minor %u", host->abi_minor);
    backends_of(backend ? backend : "", mine.backend, sizeof(mine.backend));
    plugins_list(host, plugins);
    tn_status status = check_started(host, world);
    if (status == TN_OK)
        status = compare(host, world, &mine, sizeof(mine), introductions_compare);
    if (status == TN_OK)
        status = compare(host, world, plugins, sizeof(*plugins), plugins_compare);
    if (!world->broken[0]) // else MPI may still read it
        free(plugins);
    return status;
}
