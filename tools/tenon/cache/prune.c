// SPDX-License-Identifier: MIT
// tenon cache prune: removes entries of the disk cache. Each is removed at once, and a
// program that reads it meanwhile has it whole; one that was used or replaced after it was
// listed stays.
#include "commands.h"
#include "entry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAY 86400

struct cache_prune_rules {
    int64_t oldest; // seconds since 1970: entries last used earlier are removed
    uint64_t max_bytes;
    bool all, dry;
};

struct cache_prune_outcome {
    size_t removed, in_use; // in_use: used since it was listed
    uint64_t bytes;         // bytes of removed entries
};

static int read_size(const char *text, uint64_t *out)
{
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (text[0] < '0' || text[0] > '9' || errno || end[unit ? 1 : 0] ||
        number > UINT64_MAX >> shift)
        return misuse("--max-size: got '%s', expected bytes, or a number with K, M or G "
                      "behind it",
                      text);
    *out = (uint64_t)number << shift;
    return 0;
}

static int read_rules(const char *days, const char *size, struct cache_prune_rules *rules)
{
    int64_t number = 0;
    int failed = days ? args_integer("--older-than", days, 0, 100000, &number) : 0;
    rules->oldest = days ? (int64_t)time(NULL) - number * DAY : INT64_MIN;
    rules->max_bytes = UINT64_MAX;
    return failed || !size ? failed : read_size(size, &rules->max_bytes);
}

// Removes the file unless it has changed since it was listed.
static int cache_prune_drop(const struct folder *folder, const struct cache_entry *entry,
                            const struct cache_prune_rules *rules,
                            struct cache_prune_outcome *outcome)
{
    struct stat now;
    bool is_there = fstatat(folder->fd, entry->name, &now, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && (now.st_mtim.tv_sec != entry->used.tv_sec ||
                     now.st_mtim.tv_nsec != entry->used.tv_nsec)) {
        outcome->in_use++;
        return 0;
    }
    if (!rules->dry && unlinkat(folder->fd, entry->name, 0) && errno != ENOENT)
        return oops("cannot remove %s/%s: %s", folder->path, entry->name, strerror(errno));
    outcome->removed++;
    outcome->bytes += entry->bytes;
    return 0;
}

static int by_use(const void *a, const void *b)
{
    const struct cache_entry *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

// Whether the rules remove the entry whatever the size of the cache. Notes of crashed
// plugins stay: they are no compiled code.
static bool must_go(const struct cache_entry *entry, const struct cache_prune_rules *rules)
{
    if (entry->state != CACHE_SOUND)
        return entry->state == CACHE_DAMAGED || entry->state == CACHE_VERSION ||
               entry->state == CACHE_LEFT;
    return !cache_is_note(entry) && (rules->all || entry->used.tv_sec < rules->oldest);
}

// Removes entries by the rules; for the limit of size, the longest unused first.
static int cache_prune_all(const struct folder *folder, struct cache_list *list,
                           const struct cache_prune_rules *rules,
                           struct cache_prune_outcome *outcome)
{
    int failed = 0;
    uint64_t left = 0;
    if (list->count > 0)
        qsort(list->entries, list->count, sizeof(*list->entries), by_use);
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].state == CACHE_SOUND && !must_go(&list->entries[i], rules))
            left += list->entries[i].bytes;
    for (size_t i = 0; !failed && i < list->count; i++) {
        const struct cache_entry *entry = &list->entries[i];
        bool goes = must_go(entry, rules);
        bool too_much = !goes && entry->state == CACHE_SOUND && !cache_is_note(entry) &&
                        left > rules->max_bytes;
        if (too_much)
            left -= entry->bytes;
        if (goes || too_much)
            failed = cache_prune_drop(folder, entry, rules, outcome);
    }
    return failed;
}

static int cache_prune_report(const struct folder *folder,
                              const struct cache_prune_rules *rules,
                              const struct cache_prune_outcome *outcome)
{
    struct cache_list list;
    char removed[SIZE_TEXT], left[SIZE_TEXT];
    int failed = cache_list(folder, &list);
    if (failed)
        return failed;
    say("%s %zu file%s, %s", rules->dry ? "would remove" : "removed", outcome->removed,
        outcome->removed == 1 ? "" : "s", size_text(outcome->bytes, removed));
    if (!rules->dry)
        say("; %zu are left, %s", list.sound, size_text(list.sound_bytes, left));
    if (outcome->in_use)
        say("; %zu are in use", outcome->in_use);
    say("\n");
    cache_list_finish(&list);
    return 0;
}

int cmd_cache_prune(const struct command *self, int argc, char **argv)
{
    const char *days = NULL, *size = NULL;
    struct cache_prune_rules rules = {0};
    const struct option options[] = {
        {"older-than", 0, "DAYS", "remove what was not used for so many days", &days, NULL},
        {"max-size", 0, "SIZE", "remove the longest unused until the rest is no larger",
         &size, NULL},
        {"all", 'a', NULL, "remove all compiled code", NULL, &rules.all},
        {"dry-run", 'n', NULL, "say what would be removed", NULL, &rules.dry}};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 0, 0, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    struct folder folder;
    struct cache_list list;
    struct cache_prune_outcome outcome = {0};
    failed = read_rules(days, size, &rules);
    if (!failed)
        failed = cache_reach(false, &folder);
    if (failed)
        return failed;
    failed = cache_list(&folder, &list);
    if (!failed) {
        failed = cache_prune_all(&folder, &list, &rules, &outcome);
        cache_list_finish(&list);
    }
    if (!failed)
        failed = cache_prune_report(&folder, &rules, &outcome);
    folder_close(&folder);
    return failed;
}
