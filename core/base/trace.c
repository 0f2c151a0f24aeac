// SPDX-License-Identifier: MIT
// The trace of TENON_TRACE, in Chrome's trace-event JSON. Events are written as they come;
// the file is valid JSON once the runtime closes.
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <tenon/tenon.h>
#include "fail.h"
#include "file.h"
#include "memory.h"
#include "thread.h"

#define MAX_TRACKS 64 // names beyond these share one row without a name

struct trace {
    pthread_mutex_t lock;
    FILE *file;               // under the lock, as all fields below
    char *tracks[MAX_TRACKS]; // names of Perfetto's rows, by "tid"; owned
    uint32_t num_tracks;
    bool any; // an event was written: the next one needs a comma
};

static void trace_write_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; text && *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20)
            fprintf(file, "\\u%04x", c);
        else
            fputc(c, file);
    }
    fputc('"', file);
}

static void begin_event(struct trace *trace)
{
    fputs(trace->any ? ",\n" : "\n", trace->file);
    trace->any = true;
}

static uint32_t track_number(struct trace *trace, const char *name)
{
    for (uint32_t i = 0; i < trace->num_tracks; i++)
        if (strcmp(trace->tracks[i], name) == 0)
            return i;
    if (trace->num_tracks == MAX_TRACKS)
        return MAX_TRACKS;
    char *copy = mem_strdup(name);
    if (!copy)
        return MAX_TRACKS;
    trace->tracks[trace->num_tracks] = copy;
    begin_event(trace);
    fprintf(trace->file,
            "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%u,"
            "\"args\":{\"name\":",
            trace->num_tracks);
    trace_write_text(trace->file, name);
    fputs("}}", trace->file);
    return trace->num_tracks++;
}

// Writes an event up to the "{" of its arguments, which the caller writes and closes. The
// lock is held.
static void write_span(struct trace *trace, const char *track, uint64_t begin,
                       uint64_t duration, const char *name)
{
    uint32_t number = track_number(trace, track);
    begin_event(trace);
    fprintf(trace->file,
            "{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"name\":", number,
            (double)begin * 1e-3, (double)duration * 1e-3);
    trace_write_text(trace->file, name);
    fputs(",\"args\":{", trace->file);
}

void trace_kernel(struct trace *trace, const char *track, uint64_t begin_ns,
                  uint64_t duration_ns, const char *name, const char *kernel)
{
    pthread_mutex_lock(&trace->lock);
    write_span(trace, track ? track : "", begin_ns, duration_ns, name);
    fputs("\"kernel\":", trace->file);
    trace_write_text(trace->file, kernel ? kernel : "");
    fputs("}}", trace->file);
    pthread_mutex_unlock(&trace->lock);
}

// --- spans of host work ----------------------------------------------------------------

static uint64_t trace_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

// Spans of one track must nest, so each thread has a track of its own.
static const char *own_track(char track[24])
{
    snprintf(track, 24, "host %u", thread_number());
    return track;
}

uint64_t trace_begin(const struct trace *trace)
{
    return trace ? trace_now() : 0;
}

void trace_end(struct trace *trace, uint64_t begin, const char *name, const char *members,
               ...)
{
    uint64_t end = begin ? trace_now() : 0;
    char track[24];
    if (!begin)
        return;
    va_list list;
    va_start(list, members);
    pthread_mutex_lock(&trace->lock);
    write_span(trace, own_track(track), begin, end - begin, name);
    vfprintf(trace->file, members, list);
    fputs("}}", trace->file);
    pthread_mutex_unlock(&trace->lock);
    va_end(list);
}

// --- opening and closing ---------------------------------------------------------------

tn_status trace_create(const struct config *config, struct trace **out_trace)
{
    const char *path = config_get(config, "TENON_TRACE");
    *out_trace = NULL;
    if (!path || !*path)
        return TN_OK;
    int file = file_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);
    if (file < 0)
        return fail(TN_ERR_IO, "TENON_TRACE: cannot write %s: %s", path, strerror(errno));
    struct trace *trace = mem_zalloc(sizeof(*trace));
    if (!trace) {
        close(file);
        return TN_ERR_MEMORY;
    }
    trace->file = fdopen(file, "w");
    if (!trace->file) {
        close(file);
        mem_free(trace);
        return fail(TN_ERR_IO, "TENON_TRACE: cannot write %s: %s", path, strerror(errno));
    }
    pthread_mutex_init(&trace->lock, NULL);
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", trace->file);
    *out_trace = trace;
    return TN_OK;
}

void trace_destroy(struct trace *trace, const struct config *config)
{
    if (!trace)
        return;
    fputs("\n]}\n", trace->file);
    if (fclose(trace->file) != 0)
        log_write(config, TN_LOG_WARN, "trace", "the trace is incomplete: %s",
                  strerror(errno));
    for (uint32_t i = 0; i < trace->num_tracks; i++)
        mem_free(trace->tracks[i]);
    pthread_mutex_destroy(&trace->lock);
    mem_free(trace);
}
