// SPDX-License-Identifier: MIT
// tenon why last: decisions of an application's last run, from the file of TENON_WHY.
#include "why.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/file.h"
#include "base/tool.h"
#include "base/table.h"

// Reads the events, one a line. A line that a crash cut short is left out.
static int read_events(const char *path, json_t *events)
{
    FILE *file;
    char *line = NULL;
    size_t room = 0;
    int64_t size;
    if (file_open(path, &file, &size))
        return EXIT_OOPS;
    while (getline(&line, &room, file) > 0) {
        json_t *event = json_loads(line, 0, NULL);
        if (event && json_is_string(json_object_get(event, "event")))
            json_array_append(events, event);
        json_decref(event);
    }
    int failed = ferror(file) ? oops("%s: %s", path, strerror(errno)) : 0;
    free(line);
    fclose(file);
    if (!failed && !json_array_size(events))
        failed = oops("%s holds no runs, expected a file that TENON_WHY names", path);
    return failed;
}

static json_int_t pid_of(const json_t *event)
{
    return json_integer_value(json_object_get(event, "pid"));
}

// Keeps the events of the last process, from its last "open" on.
static void keep_last(json_t *events)
{
    size_t i = json_array_size(events), begin = 0;
    json_int_t pid = i ? pid_of(json_array_get(events, i - 1)) : 0;
    for (; i > 0 && begin == 0; i--) {
        const json_t *event = json_array_get(events, i - 1);
        if (pid_of(event) == pid && strcmp(text_of(event, "event"), "open") == 0)
            begin = i;
    }
    json_t *kept = json_array();
    for (i = begin ? begin - 1 : 0; i < json_array_size(events); i++)
        if (pid_of(json_array_get(events, i)) == pid)
            json_array_append(kept, json_array_get(events, i));
    json_array_clear(events);
    json_array_extend(events, kept);
    json_decref(kept);
}

static void say_open(const json_t *event)
{
    char when[64] = "";
    time_t seconds = (time_t)json_integer_value(json_object_get(event, "time"));
    struct tm parts;
    if (localtime_r(&seconds, &parts))
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &parts);
    say("%s, process %" JSON_INTEGER_FORMAT ", %s.\n", text_of(event, "program"),
        pid_of(event), when);
    const char *name;
    json_t *item;
    size_t i;
    json_object_foreach(json_object_get(event, "variables"), name, item)
        say("  %s=%s\n", name, json_string_value(item));
    json_array_foreach(json_object_get(event, "devices"), i, item) say(
        "Device %zu is %s, %s.\n", i + 1, text_of(item, "device"), text_of(item, "name"));
    json_array_foreach(json_object_get(event, "plugins"), i, item)
    {
        if (!json_is_true(json_object_get(item, "usable")))
            say("Plugin %s in %s is not used: %s\n", text_of(item, "id"),
                text_of(item, "directory"), text_of(item, "reason"));
    }
}

static void say_event(const json_t *event, size_t number, bool full)
{
    const char *kind = text_of(event, "event");
    size_t listed = json_array_size(json_object_get(event, "nodes"));
    json_int_t all = json_integer_value(json_object_get(event, "num_nodes"));
    if (strcmp(kind, "open") == 0) {
        say_open(event);
        return;
    }
    bool failed = strcmp(kind, "failure") == 0;
    say("\nGraph %zu, %" JSON_INTEGER_FORMAT " node%s%s\n", number, all,
        all == 1 ? "" : "s", failed ? ", was not run:" : ":");
    if (failed)
        say("%s\n", text_of(event, "message"));
    if (listed || !failed)
        say_plan(event, full);
    if ((json_int_t)listed < all)
        say("  (the first %zu nodes)\n", listed);
}

int why_last(const char *path, bool all, bool json, bool full)
{
    const char *named = secure_getenv("TENON_WHY");
    path = path ? path : named;
    if (!path)
        return misuse("usage: tenon why last FILE, or set TENON_WHY to it");
    json_t *events = json_array();
    int failed = read_events(path, events);
    if (!failed && !all)
        keep_last(events);
    if (!failed && json) {
        failed = json_print(events);
    } else if (!failed) {
        size_t i, number = 0;
        json_t *event;
        json_array_foreach(events, i, event)
        {
            number = strcmp(text_of(event, "event"), "open") == 0 ? 0 : number + 1;
            say_event(event, number, full);
        }
    }
    json_decref(events);
    return failed;
}
