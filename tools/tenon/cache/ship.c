// SPDX-License-Identifier: MIT
// tenon cache pack and unpack: takes the compiled code of one machine to another, as an
// archive. What an archive holds is checked as a whole before anything of it is used.
#include "commands.h"
#include "entry.h"
#include "files/paths.h"
#include "files/tree.h"
#include "plugins/tnp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "tenon-cache" // what an archive's files lie in

struct cache_ship_count {
    size_t entries, kept; // kept: entries that existed already
    uint64_t bytes;
};

static void say_count(const char *what, const struct cache_ship_count *count)
{
    char size[SIZE_TEXT];
    say("%s %zu entr%s, %s", what, count->entries, count->entries == 1 ? "y" : "ies",
        size_text(count->bytes, size));
}

// --- packing ---------------------------------------------------------------------------

struct cache_ship_packing {
    const struct folder *to;
    struct cache_ship_count *count;
};

// Copies one entry if it is sound.
static int cache_ship_copy(const struct folder *at, const char *name, void *context)
{
    struct cache_ship_packing *packing = context;
    struct cache_entry entry;
    char *data;
    int fd = -1, failed = cache_read(at, name, &entry, &data);
    if (!failed && data && !cache_is_note(&entry)) {
        failed = tree_make_file(packing->to, name, false, &fd);
        if (!failed)
            failed = write_whole(fd, data, entry.bytes, name);
        if (fd >= 0 && close(fd) && !failed)
            failed =
                oops("cannot write %s/%s: %s", packing->to->path, name, strerror(errno));
        packing->count->entries++;
        packing->count->bytes += entry.bytes;
    }
    free(data);
    cache_entry_finish(&entry);
    return failed;
}

static int cache_ship_pack(const struct folder *cache, const char *path,
                           struct cache_ship_count *count)
{
    struct folder workplace, content;
    int failed = temporary_folder(&workplace);
    if (failed)
        return failed;
    failed = tree_make_folder(&workplace, FOLDER);
    if (!failed)
        failed = folder_enter(&workplace, FOLDER, &content);
    if (!failed) {
        struct cache_ship_packing packing = {&content, count};
        failed = cache->fd < 0 ? 0 : folder_each(cache, cache_ship_copy, &packing);
        if (!failed && count->entries == 0)
            failed =
                oops("%s has nothing to pack: 'tenon cache warm' fills it", cache->path);
        if (!failed)
            failed = archive_pack(&content, FOLDER, path);
        folder_about(&content, cache->path);
        folder_close(&content);
    }
    folder_discard(&workplace);
    return failed;
}

int cmd_cache_pack(const struct command *self, int argc, char **argv)
{
    struct args args;
    struct cache_ship_count count = {0};
    struct folder cache;
    int failed = args_parse(self, NULL, 0, 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = cache_reach(false, &cache);
    if (failed)
        return failed;
    failed = cache_ship_pack(&cache, args.items[0], &count);
    if (!failed) {
        say_count("packed", &count);
        say(", as %s\n", args.items[0]);
    }
    folder_close(&cache);
    return failed;
}

// --- unpacking -------------------------------------------------------------------------

struct cache_ship_unpacking {
    const char *path; // the archive's
    const struct folder *cache;
    struct cache_ship_count *count;
};

static int cache_ship_check(const struct folder *at, const char *name, void *context)
{
    const struct cache_ship_unpacking *unpacking = context;
    struct cache_entry entry;
    int failed = cache_read(at, name, &entry, NULL);
    if (!failed && entry.state != CACHE_SOUND)
        failed = oops("%s: '%s' is no sound entry of a cache (%s): nothing was unpacked",
                      unpacking->path, name, cache_state_name(entry.state));
    else if (!failed && cache_is_note(&entry))
        failed = oops("%s: '%s' is a note of a plugin that crashed, expected compiled "
                      "code: nothing was unpacked",
                      unpacking->path, name);
    cache_entry_finish(&entry);
    return failed;
}

// Stores an entry unless it exists: a driver's existing pipelines may be more than the
// archive's.
static int cache_ship_put(const struct folder *at, const char *name, void *context)
{
    const struct cache_ship_unpacking *unpacking = context;
    const struct folder *cache = unpacking->cache;
    struct cache_entry mine, theirs;
    int failed = cache_read(cache, name, &mine, NULL);
    bool keep = !failed && mine.state == CACHE_SOUND;
    cache_entry_finish(&mine);
    if (!failed)
        failed = cache_read(at, name, &theirs, NULL);
    if (failed)
        return failed;
    if (keep) {
        unpacking->count->kept++;
    } else if (fchmodat(at->fd, name, 0600, 0) || renameat(at->fd, name, cache->fd, name)) {
        failed = oops("cannot write %s/%s: %s", cache->path, name, strerror(errno));
    } else {
        unpacking->count->entries++;
        unpacking->count->bytes += theirs.bytes;
    }
    cache_entry_finish(&theirs);
    return failed;
}

static int unpack_at(const struct folder *stage, struct cache_ship_unpacking *unpacking)
{
    struct folder content;
    struct stat info;
    int failed = archive_unpack(unpacking->path, stage, "cache");
    if (!failed && fstatat(stage->fd, FOLDER, &info, AT_SYMLINK_NOFOLLOW))
        failed = oops("%s holds no folder '%s': 'tenon cache pack' makes such archives",
                      unpacking->path, FOLDER);
    if (!failed)
        failed = folder_enter(stage, FOLDER, &content);
    if (failed)
        return failed;
    failed = folder_each(&content, cache_ship_check, unpacking);
    if (!failed)
        failed = folder_each(&content, cache_ship_put, unpacking);
    folder_close(&content);
    return failed;
}

static int cache_ship_unpack(const char *path, const struct folder *cache,
                             struct cache_ship_count *count)
{
    struct folder stage;
    struct cache_ship_unpacking unpacking = {path, cache, count};
    int failed = folder_stage(cache, ".unpack-", &stage);
    if (failed)
        return failed;
    failed = unpack_at(&stage, &unpacking);
    folder_discard(&stage);
    return failed;
}

int cmd_cache_unpack(const struct command *self, int argc, char **argv)
{
    struct args args;
    struct cache_ship_count count = {0};
    struct folder cache;
    int failed = args_parse(self, NULL, 0, 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = cache_reach(true, &cache);
    if (failed)
        return failed;
    failed = cache_ship_unpack(args.items[0], &cache, &count);
    if (!failed) {
        say_count("added", &count);
        say(" to %s; %zu were there\n", cache.path, count.kept);
    }
    folder_close(&cache);
    return failed;
}
