// SPDX-License-Identifier: MIT
// tenon cache warm: plans an expression or a saved graph, which compiles all that it needs,
// and runs nothing.
#include "commands.h"
#include "base/table.h"
#include "entry.h"
#include "lang/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <tenon/stats.h>
#include <unistd.h>

struct cache_warm_outcome {
    uint64_t compiled, found, unstored; // sources
    double seconds;
};

static double cache_warm_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Opens the devices, by making data, before cached kernels are counted: opening a device
// also reads its driver's pipelines from the cache.
static int open_devices(const struct session *session)
{
    const float number = 0;
    return tn_from_data(session->scope, TN_F32, TN_SCALAR, &number)
               ? 0
               : oops_scope(session->scope);
}

static int cache_warm_compile(char *const *items, int count, struct cache_warm_outcome *out)
{
    struct session session;
    tn_stats before = {.struct_size = sizeof(before)}, after = before;
    int failed = session_open_warm(&session, items, count);
    if (failed)
        return failed;
    failed = open_devices(&session);
    tn_runtime_stats(session.runtime, &before);
    double begin = cache_warm_now();
    if (!failed)
        failed = session_plan(&session);
    out->seconds = cache_warm_now() - begin;
    tn_runtime_stats(session.runtime, &after);
    out->compiled = after.cache_missed - before.cache_missed;
    out->found = after.cache_found - before.cache_found;
    out->unstored = after.cache_unstored - before.cache_unstored;
    session_close(&session); // drivers' pipelines are stored when their devices close
    return failed;
}

static int cache_warm_check_writable(const struct folder *folder)
{
    return faccessat(folder->fd, ".", W_OK | X_OK, AT_EACCESS)
               ? oops("%s cannot be written: %s", folder->path, strerror(errno))
               : 0;
}

static int cache_warm_report(const struct folder *folder,
                             const struct cache_warm_outcome *outcome, bool json)
{
    struct cache_list list;
    char size[SIZE_TEXT];
    int failed = cache_list(folder, &list);
    if (failed)
        return failed;
    if (json) {
        json_t *row = json_pack(
            "{s:I, s:I, s:f, s:o, s:I, s:I}", "compiled", (json_int_t)outcome->compiled,
            "found", (json_int_t)outcome->found, "seconds", outcome->seconds, "folder",
            json_text(folder->path), "entries", (json_int_t)list.sound, "bytes",
            (json_int_t)list.sound_bytes);
        failed = json_print(row);
        json_decref(row);
    } else {
        say("compiled %" PRIu64 " kernel%s in %.2f s, %" PRIu64 " were there; %s has %zu "
            "entr%s, %s\n",
            outcome->compiled, outcome->compiled == 1 ? "" : "s", outcome->seconds,
            outcome->found, folder->path, list.sound, list.sound == 1 ? "y" : "ies",
            size_text(list.sound_bytes, size));
        if (outcome->compiled + outcome->found == 0)
            say("Nothing here has source to compile: the kernels of these devices come "
                "compiled.\n");
    }
    cache_list_finish(&list);
    return failed;
}

int cmd_cache_warm(const struct command *self, int argc, char **argv)
{
    bool json = false;
    const struct option options[] = {{"json", 0, NULL, "print JSON", NULL, &json}};
    struct args args;
    struct folder folder;
    struct cache_warm_outcome outcome = {0};
    int failed = args_parse(self, options, COUNT(options), 1, -1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = cache_reach(true, &folder);
    if (failed)
        return failed;
    failed = cache_warm_check_writable(&folder);
    if (!failed)
        failed = cache_warm_compile(args.items, args.count, &outcome);
    if (!failed && outcome.unstored > 0)
        failed = oops("%" PRIu64 " of %" PRIu64 " compiled kernels could not be stored in "
                      "%s: is there room?",
                      outcome.unstored, outcome.compiled, folder.path);
    if (!failed)
        failed = cache_warm_report(&folder, &outcome, json);
    folder_close(&folder);
    return failed;
}
