// SPDX-License-Identifier: MIT
// See processors.h. A quota in /proc/self/cgroup's terms: each line there names a hierarchy
// and this process's group in it; /proc/self/mountinfo says where hierarchies are mounted.
#include "processors.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A mounted hierarchy that has quotas.
struct hierarchy {
    bool is_v2;
    char root[PATH_MAX];  // the group that is at the mount point
    char mount[PATH_MAX]; // the mount point
};

// Whether `word` is in a list by comma.
static bool processors_lists(const char *list, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += size)
        if ((at == list || at[-1] == ',') && (!at[size] || at[size] == ','))
            return true;
    return false;
}

// Reads one line of mountinfo: "31 23 0:28 ROOT MOUNT OPTIONS... - TYPE SOURCE OPTIONS".
static bool read_mount(const char *line, struct hierarchy *out)
{
    char type[32], options[256];
    const char *rest = strstr(line, " - ");
    if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", out->root, out->mount) != 2 ||
        sscanf(rest, " - %31s %*s %255s", type, options) != 2)
        return false;
    out->is_v2 = strcmp(type, "cgroup2") == 0;
    return out->is_v2 || (strcmp(type, "cgroup") == 0 && processors_lists(options, "cpu"));
}

// Reads the group of this process in the hierarchy: "ID:CONTROLLERS:GROUP".
static bool processors_find_group(const char *root, const struct hierarchy *h,
                                  char out[PATH_MAX])
{
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && !found && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        found = h->is_v2 ? !controllers[1] : processors_lists(controllers + 1, "cpu");
        if (found)
            snprintf(out, PATH_MAX, "%s", group);
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

// Reads up to two numbers of a file of the group; "max" is -1. The count, 0: no file.
static int processors_read_numbers(const char *folder, const char *name, long long out[2])
{
    char path[2 * PATH_MAX], text[64] = "";
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    bool read = fgets(text, sizeof(text), file);
    fclose(file);
    if (!read)
        return 0;
    if (strncmp(text, "max", 3) == 0) {
        out[0] = -1;
        return 1;
    }
    return sscanf(text, "%lld %lld", &out[0], &out[1]);
}

// The processors that one group may use; UINT32_MAX: any.
static uint32_t group_quota(const char *folder, bool is_v2)
{
    long long quota[2] = {-1, 100000}, period[2] = {0};
    if (is_v2)
        processors_read_numbers(folder, "cpu.max", quota);
    else if (processors_read_numbers(folder, "cpu.cfs_quota_us", quota) >= 1 &&
             processors_read_numbers(folder, "cpu.cfs_period_us", period) >= 1)
        quota[1] = period[0];
    if (quota[0] < 0 || quota[1] < 1)
        return UINT32_MAX;
    long long count = quota[0] / quota[1] + (quota[0] % quota[1] != 0);
    return count < 1 ? 1 : count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

// The least quota of the group and of those around it, up to the mount point.
static uint32_t hierarchy_quota(const char *root, const struct hierarchy *h)
{
    char group[PATH_MAX], folder[2 * PATH_MAX];
    uint32_t least = UINT32_MAX;
    if (!processors_find_group(root, h, group))
        return least;
    size_t inside = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root);
    bool is_below = strncmp(group, h->root, inside) == 0 &&
                    (group[inside] == '/' || !group[inside]) && !strstr(group, "/..");
    int size = snprintf(folder, sizeof(folder), "%s%s%s", root, h->mount,
                        is_below ? group + inside : "");
    size_t top = strlen(root) + strlen(h->mount);
    if (size < 0 || (size_t)size >= sizeof(folder))
        return least;
    for (;;) {
        uint32_t quota = group_quota(folder, h->is_v2);
        least = quota < least ? quota : least;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < top)
            return least;
        *slash = 0;
    }
}

uint32_t processors_quota(const char *root)
{
    struct hierarchy h;
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    uint32_t least = UINT32_MAX;
    snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
    FILE *file = fopen(path, "re");
    while (file && getline(&line, &room, file) > 0)
        if (read_mount(line, &h)) {
            uint32_t quota = hierarchy_quota(root, &h);
            least = quota < least ? quota : least;
        }
    free(line);
    if (file)
        fclose(file);
    return least;
}

uint32_t processors_usable(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    uint32_t quota = processors_quota(""), mask = count < 1 ? 1 : (uint32_t)count;
    return quota < mask ? quota : mask;
}
