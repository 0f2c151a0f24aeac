// SPDX-License-Identifier: MIT
// The file of TENON_WHY; see record.h.
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "../base/fail.h"
#include "../base/file.h"
#include "plan.h"

struct record {
    tn_runtime *runtime;
    pthread_mutex_t lock; // of writing, within this process; flock() is for others
    int file;
    bool opened; // "open" was written
    bool failed; // and told
};

// --- the file --------------------------------------------------------------------------

// Keeps the newer half, from the start of a line on.
static bool drop_older_half(int file, off_t size)
{
    off_t from = size - RECORD_LIMIT / 2;
    if (from <= 0) // one long event is what makes it large
        return true;
    size_t length = (size_t)(size - from);
    char *half = mem_alloc(length);
    bool done = half && pread(file, half, length, from) == (ssize_t)length;
    char *line = done ? memchr(half, '\n', length) : NULL;
    size_t skipped = line ? (size_t)(line - half) + 1 : length;
    length -= skipped;
    done = done && ftruncate(file, 0) == 0 &&
           (length == 0 || pwrite(file, half + skipped, length, 0) == (ssize_t)length);
    mem_free(half);
    return done;
}

// A whole line, so that a reader sees all of it or none; what a crash cut is left behind.
static bool append(int file, char *text)
{
    struct stat state;
    size_t length = strlen(text);
    char last = '\n';
    text[length++] = '\n'; // in place of the terminator
    if (flock(file, LOCK_EX) != 0 || fstat(file, &state) != 0)
        return false;
    bool done = true;
    if (state.st_size + (off_t)length > RECORD_LIMIT)
        done = drop_older_half(file, state.st_size) && fstat(file, &state) == 0;
    if (done && state.st_size > 0 && pread(file, &last, 1, state.st_size - 1) == 1 &&
        last != '\n')
        done = pwrite(file, "\n", 1, state.st_size++) == 1;
    done = done && pwrite(file, text, length, state.st_size) == (ssize_t)length;
    int error = errno;
    flock(file, LOCK_UN);
    errno = error;
    return done;
}

// Takes the object.
static void write_event(struct record *record, json_t *event)
{
    char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
    json_decref(event);
    if ((!text || !append(record->file, text)) && !record->failed) {
        record->failed = true;
        log_write(record->runtime->config, TN_LOG_WARN, "why",
                  "TENON_WHY: what was decided is not written any more: %s",
                  text ? strerror(errno) : "out of memory");
    }
    free(text);
}

static json_t *event_start(const char *name)
{
    return json_pack("{s:s, s:I, s:I}", "event", name, "time", (json_int_t)time(NULL),
                     "pid", (json_int_t)getpid());
}

// --- what is told ----------------------------------------------------------------------

static json_t *told_variables(const tn_runtime *runtime)
{
    json_t *variables = json_object();
    const char *doc, *name;
    for (uint32_t i = 0; (name = config_variable(i, &doc)); i++) {
        const char *value = config_get(runtime->config, name);
        if (value)
            json_object_set_new(variables, name, json_string(value));
    }
    return variables;
}

static json_t *told_plugins(const tn_runtime *runtime)
{
    json_t *plugins = json_array();
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info) != TN_OK)
            continue;
        json_array_append_new(
            plugins,
            json_pack("{s:s, s:s, s:s, s:b, s:s}", "id", info.id, "version", info.version,
                      "directory", info.directory, "usable",
                      info.state == TN_PLUGIN_FOUND || info.state == TN_PLUGIN_LOADED,
                      "reason", info.reason));
    }
    return plugins;
}

static json_t *told_devices(const struct plan *plan)
{
    json_t *devices = json_array();
    for (uint32_t i = 0; plan && i < plan->num_devices; i++)
        json_array_append_new(devices,
                              json_pack("{s:s, s:s}", "device", plan->devices[i]->name,
                                        "name", plan->devices[i]->info.name));
    return devices;
}

// Before the first plan: what the process found. The failure of the thread is kept.
static void write_open(struct record *record, const struct plan *plan)
{
    char program[256] = "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = 0;
    json_t *event = event_start("open");
    if (event) {
        json_object_set_new(event, "program", json_string(program));
        json_object_set_new(event, "variables", told_variables(record->runtime));
        json_object_set_new(event, "plugins", told_plugins(record->runtime));
        json_object_set_new(event, "devices", told_devices(plan));
    }
    write_event(record, event);
    record->opened = true;
}

// Plans of many steps would fill the file: their segments are not told.
static void add_told(json_t *event, json_t *told, const struct plan *plan)
{
    static const char *const parts[] = {"leaves", "segments", "outputs"};
    json_t *nodes = json_object_get(told, "nodes");
    size_t count = json_array_size(nodes);
    while (json_array_size(nodes) > RECORD_NODES)
        json_array_remove(nodes, json_array_size(nodes) - 1);
    json_object_set(event, "nodes", nodes);
    json_object_set_new(event, "num_nodes", json_integer((json_int_t)count));
    bool is_small = plan && plan->num_steps + plan->num_transfers <= RECORD_NODES &&
                    plan->num_leaves <= RECORD_NODES && plan->num_outputs <= RECORD_NODES;
    for (size_t i = 0; is_small && i < sizeof(parts) / sizeof(*parts); i++)
        json_object_set(event, parts[i], json_object_get(told, parts[i]));
    if (!plan)
        json_object_set_new(event, "message", json_string(fail_text()));
}

void record_plan(tn_runtime *runtime, json_t *told, const struct plan *plan)
{
    struct record *record = runtime->record;
    pthread_mutex_lock(&record->lock);
    if (!record->opened)
        write_open(record, plan);
    json_t *event = event_start(plan ? "plan" : "failure");
    if (event)
        add_told(event, told, plan);
    write_event(record, event);
    pthread_mutex_unlock(&record->lock);
}

// --- opening and closing ---------------------------------------------------------------

tn_status record_create(tn_runtime *runtime)
{
    const char *path = config_get(runtime->config, "TENON_WHY");
    if (!path || !*path)
        return TN_OK;
    int file = file_open(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    struct stat state;
    if (file >= 0 && (fstat(file, &state) != 0 || !S_ISREG(state.st_mode))) {
        close(file);
        return fail(TN_ERR_IO, "TENON_WHY: got %s, expected a regular file", path);
    }
    if (file < 0)
        return fail(TN_ERR_IO, "TENON_WHY: cannot write %s: %s", path, strerror(errno));
    struct record *record = mem_zalloc(sizeof(*record));
    if (!record) {
        close(file);
        return TN_ERR_MEMORY;
    }
    *record = (struct record){.runtime = runtime, .file = file};
    pthread_mutex_init(&record->lock, NULL);
    runtime->record = record;
    return TN_OK;
}

void record_destroy(tn_runtime *runtime)
{
    struct record *record = runtime->record;
    if (!record)
        return;
    close(record->file);
    pthread_mutex_destroy(&record->lock);
    mem_free(record);
    runtime->record = NULL;
}
