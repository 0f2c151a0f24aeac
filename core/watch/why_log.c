// SPDX-License-Identifier: MIT
// The log file of TENON_WHY; see why_log.h.
#include "why_log.h"

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
#include "explain.h"

struct why_log {
    tn_runtime *runtime;
    pthread_mutex_t lock; // of all below; flock() excludes other processes
    int file;
    bool opened; // event "open" was written
    bool failed; // a write failed and the warning was logged
};

// --- the file --------------------------------------------------------------------------

// Drops the first lines, so that WHY_LOG_LIMIT / 2 bytes at most are left.
static bool drop_older_half(int file, off_t size)
{
    off_t from = size - WHY_LOG_LIMIT / 2;
    if (from <= 0) // the file is small: the event to append is long
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

// Appends `text` as a line, under the file's lock. A line that a crash cut short is ended
// first, so it spoils no other line.
static bool why_log_append(int file, char *text)
{
    struct stat state;
    size_t length = strlen(text);
    char last = '\n';
    text[length++] = '\n'; // replaces the terminator
    if (flock(file, LOCK_EX) != 0 || fstat(file, &state) != 0)
        return false;
    bool done = true;
    if (state.st_size + (off_t)length > WHY_LOG_LIMIT)
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
static void write_event(struct why_log *log, json_t *event)
{
    char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
    json_decref(event);
    if ((!text || !why_log_append(log->file, text)) && !log->failed) {
        log->failed = true;
        log_write(log->runtime->config, TN_LOG_WARN, "why",
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

// --- events ----------------------------------------------------------------------------

static json_t *variables_json(const tn_runtime *runtime)
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

static json_t *plugins_json(const tn_runtime *runtime)
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

static json_t *why_log_devices_json(const struct plan *plan)
{
    json_t *devices = json_array();
    for (uint32_t i = 0; plan && i < plan->num_devices; i++)
        json_array_append_new(devices,
                              json_pack("{s:s, s:s}", "device", plan->devices[i]->name,
                                        "name", plan->devices[i]->info.name));
    return devices;
}

// Writes event "open", before that of the first plan: program, variables, plugins, devices.
// Keeps the thread's message, which event "failure" needs.
static void write_open(struct why_log *log, const struct plan *plan)
{
    char program[256] = "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = 0;
    json_t *event = event_start("open");
    if (event) {
        json_object_set_new(event, "program", json_string(program));
        json_object_set_new(event, "variables", variables_json(log->runtime));
        json_object_set_new(event, "plugins", plugins_json(log->runtime));
        json_object_set_new(event, "devices", why_log_devices_json(plan));
    }
    write_event(log, event);
    log->opened = true;
}

// Adds the explanation. A plan with many steps would fill the file, so its leaves, segments
// and outputs are left out.
static void add_explanation(json_t *event, json_t *explanation, const struct plan *plan)
{
    static const char *const parts[] = {"leaves", "segments", "outputs"};
    json_t *nodes = json_object_get(explanation, "nodes");
    size_t count = json_array_size(nodes);
    while (json_array_size(nodes) > WHY_LOG_NODES)
        json_array_remove(nodes, json_array_size(nodes) - 1);
    json_object_set(event, "nodes", nodes);
    json_object_set_new(event, "num_nodes", json_integer((json_int_t)count));
    bool is_small = plan && plan->num_steps + plan->num_transfers <= WHY_LOG_NODES &&
                    plan->num_leaves <= WHY_LOG_NODES && plan->num_outputs <= WHY_LOG_NODES;
    for (size_t i = 0; is_small && i < sizeof(parts) / sizeof(*parts); i++)
        json_object_set(event, parts[i], json_object_get(explanation, parts[i]));
    if (!plan)
        json_object_set_new(event, "message", json_string(fail_text()));
}

void why_log_plan(tn_runtime *runtime, json_t *explanation, const struct plan *plan)
{
    struct why_log *log = runtime->why_log;
    pthread_mutex_lock(&log->lock);
    if (!log->opened)
        write_open(log, plan);
    json_t *event = event_start(plan ? "plan" : "failure");
    if (event)
        add_explanation(event, explanation, plan);
    write_event(log, event);
    pthread_mutex_unlock(&log->lock);
}

static struct plan_watcher *watch_plan(tn_runtime *runtime)
{
    return explain_for(runtime, why_log_plan);
}

// --- opening and closing ---------------------------------------------------------------

tn_status why_log_create(tn_runtime *runtime)
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
    struct why_log *log = mem_zalloc(sizeof(*log));
    if (!log) {
        close(file);
        return TN_ERR_MEMORY;
    }
    *log = (struct why_log){.runtime = runtime, .file = file};
    pthread_mutex_init(&log->lock, NULL);
    runtime->why_log = log;
    runtime->watch_plan = watch_plan;
    return TN_OK;
}

void why_log_destroy(tn_runtime *runtime)
{
    struct why_log *log = runtime->why_log;
    if (!log)
        return;
    close(log->file);
    pthread_mutex_destroy(&log->lock);
    mem_free(log);
    runtime->why_log = NULL;
}
