// SPDX-License-Identifier: MIT
// tenon cache: the disk cache of compiled kernels. This file lists it; prune.c, warm.c and
// ship.c have the other subcommands.
#include "commands.h"
#include "base/table.h"
#include "entry.h"

#include <stdlib.h>
#include <string.h>

static json_t *cache_command_row_of(const struct cache_entry *entry)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:I, s:I}", "kind",
                     json_text(entry->kind), "name", json_text(entry->kernel), "plugin",
                     json_text(entry->plugin), "device", json_text(entry->device), "state",
                     cache_state_name(entry->state), "file", json_text(entry->name),
                     "bytes", (json_int_t)entry->bytes, "used",
                     (json_int_t)entry->used.tv_sec);
}

static int by_plugin(const void *a, const void *b)
{
    const struct cache_entry *x = a, *y = b;
    const char *pairs[][2] = {{x->plugin, y->plugin},
                              {x->kind, y->kind},
                              {x->device, y->device},
                              {x->kernel, y->kernel},
                              {x->name, y->name}};
    int order = (x->state != CACHE_SOUND) - (y->state != CACHE_SOUND);
    for (size_t i = 0; i < COUNT(pairs) && order == 0; i++)
        order = strcmp(pairs[i][0], pairs[i][1]);
    return order;
}

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

// The row for people: size and time as text; a file that is no entry is shown by its name.
static json_t *printed_row(const struct cache_entry *entry)
{
    char size[SIZE_TEXT], when[64] = "-";
    struct tm parts;
    bool sound = entry->state == CACHE_SOUND;
    if (localtime_r(&entry->used.tv_sec, &parts))
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &parts);
    const char *kind = sound ? or_dash(entry->kind) : cache_state_name(entry->state);
    const char *name = sound ? or_dash(entry->kernel) : entry->name;
    return json_pack("{s:o, s:o, s:o, s:o, s:s, s:s}", "kind", json_text(kind), "name",
                     json_text(name), "plugin", json_text(or_dash(entry->plugin)), "device",
                     json_text(or_dash(entry->device)), "size",
                     size_text(entry->bytes, size), "used", when);
}

static int cache_command_print_list(const struct folder *folder,
                                    const struct cache_list *list)
{
    static const struct column columns[] = {{"kind", "what"},     {"name", "of"},
                                            {"plugin", "plugin"}, {"device", "device"},
                                            {"size", "size"},     {"used", "last used"}};
    char size[SIZE_TEXT];
    json_t *rows = json_array();
    int failed = 0;
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(rows, printed_row(&list->entries[i]));
    if (list->count > 0)
        failed = table_print(rows, columns, COUNT(columns));
    if (!failed && list->count == 0)
        say("%s is empty: kernels are kept there when they are compiled\n", folder->path);
    else if (!failed)
        say("\n%s: %zu entr%s, %s\n", folder->path, list->sound,
            list->sound == 1 ? "y" : "ies", size_text(list->sound_bytes, size));
    if (!failed && list->sound < list->count)
        say("%zu other file%s: 'tenon cache prune' removes those that were the cache's\n",
            list->count - list->sound, list->count - list->sound == 1 ? "" : "s");
    json_decref(rows);
    return failed;
}

static int print_list_json(const struct folder *folder, const struct cache_list *list)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(rows, cache_command_row_of(&list->entries[i]));
    json_t *all = json_pack("{s:o, s:I, s:I, s:o}", "folder", json_text(folder->path),
                            "entries", (json_int_t)list->sound, "bytes",
                            (json_int_t)list->sound_bytes, "files", rows);
    int failed = json_print(all);
    json_decref(all);
    return failed;
}

static int cache_command_run_list(const struct command *self, int argc, char **argv)
{
    bool json = false;
    const struct option options[] = {{"json", 0, NULL, "print JSON", NULL, &json}};
    struct args args;
    struct folder folder;
    struct cache_list list;
    int failed = args_parse(self, options, COUNT(options), 0, 0, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = cache_reach(false, &folder);
    if (failed)
        return failed;
    failed = cache_list(&folder, &list);
    if (!failed) {
        if (list.count > 0)
            qsort(list.entries, list.count, sizeof(*list.entries), by_plugin);
        failed = json ? print_list_json(&folder, &list)
                      : cache_command_print_list(&folder, &list);
        cache_list_finish(&list);
    }
    folder_close(&folder);
    return failed;
}

static const struct command cache_commands[] = {
    {"cache list", "[--json]", "list what is in the cache",
     "What each entry is, of which kernel, whose it is, for which device and driver, and\n"
     "when it was used last. An entry that is damaged, or of another version, is named as\n"
     "such: programs do not believe it, and compile anew.\n",
     cache_command_run_list},
    {"cache prune", "[--older-than DAYS] [--max-size SIZE] [--all] [--dry-run]",
     "remove entries of the cache",
     "Removes what is damaged, of another version or left over, and what the options say.\n"
     "Programs that run meanwhile are not disturbed: what is gone they compile anew. "
     "Notes\n"
     "of plugins that crashed stay ('tenon plugin retry' removes them).\n"
     "\n"
     "  tenon cache prune --older-than 30\n"
     "  tenon cache prune --max-size 64M --dry-run\n",
     cmd_cache_prune},
    {"cache warm", "'EXPR'|@FILE [NAME=VALUE ...] [--json]",
     "compile what an expression or a saved graph needs",
     "Compiles for the devices of TENON_BACKEND, as 'tenon eval' would, and computes\n"
     "nothing. Of a saved graph (@FILE, @FILE:SIGNATURE) the values may be left out: it\n"
     "knows their types.\n"
     "\n"
     "  TENON_BACKEND=vulkan-jit tenon cache warm 'softmax(x @ w)' x=x.npy w=w.npy\n"
     "  TENON_BACKEND=vulkan-jit tenon cache warm @step.graph\n",
     cmd_cache_warm},
    {"cache pack", "FILE", "make an archive of the cache, for other machines",
     "A tar compressed by zstd, with all sound entries. Compiled sources serve any "
     "device,\n"
     "pipelines the same device and driver only.\n"
     "\n"
     "  tenon cache pack warm.tnc\n",
     cmd_cache_pack},
    {"cache unpack", "FILE", "add an archive's entries to the cache",
     "Every entry is checked before the first is added; what is there already stays. Code\n"
     "in an archive runs on your devices: unpack what you trust.\n"
     "\n"
     "  tenon cache unpack warm.tnc\n",
     cmd_cache_unpack},
};

int cmd_cache(const struct command *self, int argc, char **argv)
{
    static const struct command_group group = {
        "tenon cache", "Compiled kernels, which are kept on disk (TENON_CACHE_DIR).",
        cache_commands, COUNT(cache_commands)};
    (void)self;
    return commands_run(&group, argc, argv);
}
