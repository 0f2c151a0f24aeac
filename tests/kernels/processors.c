// SPDX-License-Identifier: MIT
// Quotas of control groups, read from made-up trees.
#include "processors.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "check.h"

#define ANY UINT32_MAX
#define V2 "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
#define V1 "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
#define V1_SET "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
#define CPU "sys/fs/cgroup/cpu,cpuacct"

static const struct tree {
    const char *what, *groups, *mounts; // of /proc/self/cgroup and mountinfo
    struct {
        const char *folder, *name, *text;
    } files[6];
    uint32_t quota;
} trees[] = {
    {"no files at all", NULL, NULL, {{0}}, ANY},
    {"no quota", "0::/a\n", V2, {{"sys/fs/cgroup/a", "cpu.max", "max 100000\n"}}, ANY},
    {"no file of the group", "0::/a\n", V2, {{"sys/fs/cgroup/a", "other", "1\n"}}, ANY},
    {"whole", "0::/a\n", V2, {{"sys/fs/cgroup/a", "cpu.max", "300000 100000\n"}}, 3},
    {"rounded up", "0::/a\n", V2, {{"sys/fs/cgroup/a", "cpu.max", "250000 100000\n"}}, 3},
    {"one", "0::/a\n", V2, {{"sys/fs/cgroup/a", "cpu.max", "100000 100000\n"}}, 1},
    {"less than one", "0::/a\n", V2, {{"sys/fs/cgroup/a", "cpu.max", "1000 100000\n"}}, 1},
    {"another period", "0::/a\n", V2, {{"sys/fs/cgroup/a", "cpu.max", "20001 10000\n"}}, 3},
    {"the period of old kernels",
     "0::/a\n",
     V2,
     {{"sys/fs/cgroup/a", "cpu.max", "150000\n"}},
     2},
    {"the least of all around",
     "0::/a/b/c\n",
     V2,
     {{"sys/fs/cgroup/a/b/c", "cpu.max", "900000 100000\n"},
      {"sys/fs/cgroup/a/b", "cpu.max", "max 100000\n"},
      {"sys/fs/cgroup/a", "cpu.max", "500000 100000\n"},
      {"sys/fs/cgroup", "cpu.max", "700000 100000\n"}},
     5},
    {"the root's", "0::/\n", V2, {{"sys/fs/cgroup", "cpu.max", "200000 100000\n"}}, 2},
    {"not what is above the mount",
     "0::/a\n",
     V2,
     {{"sys/fs/cgroup/a", "cpu.max", "max 100000\n"},
      {"sys/fs", "cpu.max", "100000 100000\n"}},
     ANY},
    {"damaged", "0::/a\n", V2, {{"sys/fs/cgroup/a", "cpu.max", "many\n"}}, ANY},
    {"a period of 0", "0::/a\n", V2, {{"sys/fs/cgroup/a", "cpu.max", "100000 0\n"}}, ANY},
    {"empty", "0::/a\n", V2, {{"sys/fs/cgroup/a", "cpu.max", ""}}, ANY},
    {"damaged lines", "\n:\n0:\nx\n", "a\n - \n1 2 3 4\n" V2, {{0}}, ANY},
    {"v1",
     "5:memory:/m\n3:cpu,cpuacct:/a\n0::/\n",
     V1_SET V1,
     {{CPU "/a", "cpu.cfs_quota_us", "350000\n"},
      {CPU "/a", "cpu.cfs_period_us", "100000\n"}},
     4},
    {"v1 without a quota",
     "3:cpuacct,cpu:/a\n",
     V1,
     {{CPU "/a", "cpu.cfs_quota_us", "-1\n"}, {CPU "/a", "cpu.cfs_period_us", "100000\n"}},
     ANY},
    {"v1, around",
     "3:cpu,cpuacct:/a/b\n",
     V1,
     {{CPU "/a/b", "cpu.cfs_quota_us", "-1\n"},
      {CPU "/a/b", "cpu.cfs_period_us", "100000\n"},
      {CPU "/a", "cpu.cfs_quota_us", "50000\n"},
      {CPU "/a", "cpu.cfs_period_us", "25000\n"}},
     2},
    {"v1 in a container, whose group is at the mount point",
     "3:cpu,cpuacct:/docker/f00/inner\n",
     "32 31 0:29 /docker/f00 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
     "rw,cpu,cpuacct\n",
     {{CPU, "cpu.cfs_quota_us", "300000\n"},
      {CPU, "cpu.cfs_period_us", "100000\n"},
      {CPU "/inner", "cpu.cfs_quota_us", "-1\n"},
      {CPU "/inner", "cpu.cfs_period_us", "100000\n"}},
     3},
    {"a group outside of what is mounted: the mount point's",
     "0::/../b\n",
     V2,
     {{"sys/fs/cgroup", "cpu.max", "200000 100000\n"}},
     2},
    {"a group of another name that begins alike",
     "0::/docker/f00d\n",
     "41 31 0:38 /docker/f00 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
     {{"sys/fs/cgroup", "cpu.max", "200000 100000\n"},
      {"sys/fs/cgroupd", "cpu.max", "100000 100000\n"}},
     2},
    {"both",
     "3:cpu,cpuacct:/a\n0::/b\n",
     V1 "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
     {{CPU "/a", "cpu.cfs_quota_us", "600000\n"},
      {CPU "/a", "cpu.cfs_period_us", "100000\n"},
      {"sys/fs/cgroup/unified/b", "cpu.max", "400000 100000\n"}},
     4},
    {"a controller of a longer name",
     "3:cpuset:/a\n",
     V1_SET,
     {{"sys/fs/cgroup/cpuset/a", "cpu.cfs_quota_us", "100000\n"},
      {"sys/fs/cgroup/cpuset/a", "cpu.cfs_period_us", "100000\n"}},
     ANY},
};

static void put(const char *root, const char *folder, const char *name, const char *text)
{
    char path[512];
    int size = snprintf(path, sizeof(path), "%s/%s/", root, folder);
    for (char *at = path + strlen(root); (at = strchr(at + 1, '/'));) {
        *at = 0;
        cr_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    snprintf(path + size, sizeof(path) - (size_t)size, "%s", name);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void put_tree(const char *root, const struct tree *t)
{
    cr_assert(eq(int, mkdir(root, 0700), 0));
    if (t->groups)
        put(root, "proc/self", "cgroup", t->groups);
    if (t->mounts)
        put(root, "proc/self", "mountinfo", t->mounts);
    for (size_t k = 0; k < 6 && t->files[k].folder; k++)
        put(root, t->files[k].folder, t->files[k].name, t->files[k].text);
}

Test(processors, quotas_of_made_up_trees)
{
    char folder[] = "/tmp/tenon-groups-XXXXXX", root[64], command[64];
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    for (size_t i = 0; i < sizeof(trees) / sizeof(*trees); i++) {
        snprintf(root, sizeof(root), "%s/%u", folder, (unsigned)i);
        put_tree(root, &trees[i]);
        uint32_t got = processors_quota(root);
        cr_expect_eq(got, trees[i].quota, "%s: got %u, expected %u", trees[i].what, got,
                     trees[i].quota);
    }
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    cr_assert(eq(int, system(command), 0));
}

Test(processors, what_may_be_used_is_within_the_mask)
{
    cpu_set_t set;
    cr_assert(eq(int, sched_getaffinity(0, sizeof(set), &set), 0));
    uint32_t mask = (uint32_t)CPU_COUNT(&set), usable = processors_usable();
    cr_assert(usable >= 1 && usable <= mask, "%u of %u", usable, mask);
}
