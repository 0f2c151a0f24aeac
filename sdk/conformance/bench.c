// SPDX-License-Identifier: MIT
// Opening a backend for its checks, and making buffers and executables on it.
#include "bench.h"

#include <dirent.h>
#include <fnmatch.h>
#include <time.h>

// --- the plugin ------------------------------------------------------------------------

static bool is_complete(const tn_backend *t)
{
    return TN_HAS(t, name) && TN_HAS(t, families) && TN_HAS(t, device_count) &&
           TN_HAS(t, device_info) && TN_HAS(t, device_open) && TN_HAS(t, device_close) &&
           TN_HAS(t, buffer_create) && TN_HAS(t, buffer_destroy) &&
           TN_HAS(t, buffer_write) && TN_HAS(t, buffer_read) &&
           TN_HAS(t, segment_compile) && TN_HAS(t, executable_destroy) &&
           TN_HAS(t, submit) && TN_HAS(t, wait);
}

bool bench_start(struct bench *b, struct kit *k)
{
    *b = (struct bench){.kit = k};
    if (!subject_open(&b->subject, &b->host, k))
        return false;
    b->backend = subject_backend(&b->subject);
    if (is_complete(b->backend))
        return true;
    bench_finish(b);
    return false;
}

uint64_t bench_finish(struct bench *b)
{
    bench_close(b);
    subject_stop(&b->subject, &b->host);
    uint64_t left = b->host.live;
    subject_unload(&b->subject, &b->host);
    fake_host_finish(&b->host);
    return left;
}

uint32_t bench_count(struct bench *b, const char **out_why)
{
    uint32_t count = 0;
    *out_why = "there is no device";
    if (b->backend->device_count(b->host.table, &count) == TN_OK)
        return count;
    *out_why = b->host.text;
    return 0;
}

// --- the device ------------------------------------------------------------------------

bool bench_open(struct bench *b)
{
    b->info = (tn_device_info){.struct_size = sizeof(b->info)};
    bench_listen(b);
    tn_status status = b->backend->device_info(b->host.table, b->index, &b->info);
    if (status == TN_OK)
        status = b->backend->device_open(b->host.table, b->index, &b->device);
    if (status == TN_OK && b->device)
        return true;
    b->device = NULL;
    check_fail(b->kit, "device %u cannot be opened: %s", b->index,
               status == TN_OK ? "it is NULL" : b->host.text);
    return false;
}

static void clear(struct bench *b)
{
    if (b->point)
        b->backend->wait(b->device, b->point);
    for (uint32_t i = 0; i < b->num_executables; i++)
        b->backend->executable_destroy(b->device, b->executables[i]);
    for (uint32_t i = 0; i < b->num_buffers; i++)
        b->backend->buffer_destroy(b->device, b->buffers[i]);
    b->num_executables = b->num_buffers = 0;
    b->point = 0;
}

void bench_close(struct bench *b)
{
    if (!b->device)
        return;
    clear(b);
    b->backend->device_close(b->device);
    b->device = NULL;
}

static void run_one(struct bench *b, const struct bench_check *check)
{
    if (!check_begin(b->kit, check->name, "%.60s:%u", b->backend->name, b->index))
        return;
    if (bench_open(b)) {
        check->run(b);
        bench_close(b);
    }
    if (b->host.misuses)
        check_fail(b->kit, "%s", b->host.misuse);
    b->host.misuses = 0;
    check_end(b->kit);
}

void bench_run(struct kit *k, const struct bench_check *checks, size_t count)
{
    static struct bench b;
    const char *why;
    if (!bench_start(&b, k))
        return;
    uint32_t num_devices = bench_count(&b, &why);
    for (size_t i = 0; i < count && num_devices == 0; i++)
        skip(k, checks[i].name, why);
    for (b.index = 0; b.index < num_devices; b.index++)
        for (size_t i = 0; i < count && bench_is_wanted(&b); i++)
            run_one(&b, &checks[i]);
    bench_finish(&b);
}

bool bench_is_wanted(const struct bench *b)
{
    char name[80];
    format_text(name, sizeof(name), "%.60s:%u", b->backend->name, b->index);
    return !b->kit->devices || fnmatch(b->kit->devices, name, 0) == 0;
}

bool bench_consumes(const struct bench *b, const char *family)
{
    for (const char *const *f = b->backend->families; *f; f++)
        if (strcmp(*f, family) == 0)
            return true;
    return false;
}

bool bench_computes(const struct bench *b)
{
    return !(b->info.flags & TN_DEVICE_COMPUTES_NOTHING);
}

// --- messages --------------------------------------------------------------------------

void bench_listen(struct bench *b)
{
    b->heard = b->host.failures + b->host.refusals;
}

tn_status bench_heard(struct bench *b, tn_status status, const char *what)
{
    if (status == TN_OK)
        return status;
    if (status > 0 || status < TN_ERR_INTERNAL)
        check_fail(b->kit, "%s returns %d, which is no status", what, status);
    else if (b->host.failures + b->host.refusals == b->heard)
        check_fail(b->kit, "%s fails with status %d and does not say why", what, status);
    return status;
}

// The check fails with what the call said.
static bool expect(struct bench *b, tn_status status, const char *what)
{
    if (status == TN_OK)
        return true;
    bench_heard(b, status, what);
    check_fail(b->kit, "%s fails: %s", what, b->host.text);
    return false;
}

// --- buffers ---------------------------------------------------------------------------

tn_buffer *bench_buffer(struct bench *b, uint64_t size)
{
    tn_buffer *buffer = NULL;
    if (b->num_buffers == BENCH_BUFFERS)
        abort(); // the kit's own fault
    bench_listen(b);
    tn_status status = b->backend->buffer_create(b->device, size, &buffer);
    if (!expect(b, status, "buffer_create"))
        return NULL;
    if (!buffer)
        check_fail(b->kit, "buffer_create of %llu bytes succeeds, and gives NULL",
                   (unsigned long long)size);
    else
        b->buffers[b->num_buffers++] = buffer;
    return buffer;
}

void bench_destroy(struct bench *b, tn_buffer *buffer)
{
    for (uint32_t i = 0; i < b->num_buffers; i++)
        if (b->buffers[i] == buffer) {
            b->buffers[i] = b->buffers[--b->num_buffers];
            break;
        }
    b->backend->buffer_destroy(b->device, buffer);
}

bool bench_write(struct bench *b, tn_buffer *buffer, uint64_t offset, const void *data,
                 uint64_t size)
{
    bench_listen(b);
    return expect(b, b->backend->buffer_write(b->device, buffer, offset, data, size),
                  "buffer_write");
}

bool bench_read(struct bench *b, tn_buffer *buffer, uint64_t offset, void *data,
                uint64_t size)
{
    bench_listen(b);
    return expect(b, b->backend->buffer_read(b->device, buffer, offset, data, size),
                  "buffer_read");
}

// --- work ------------------------------------------------------------------------------

tn_executable *bench_compile(struct bench *b, const tn_segment *segment)
{
    tn_executable *executable = NULL;
    if (b->num_executables == BENCH_EXECUTABLES)
        abort(); // the kit's own fault
    bench_listen(b);
    tn_status status = b->backend->segment_compile(b->device, segment, &executable);
    if (!expect(b, status, "segment_compile"))
        return NULL;
    if (!executable)
        check_fail(b->kit, "segment_compile succeeds, and gives NULL");
    else
        b->executables[b->num_executables++] = executable;
    return executable;
}

bool bench_submit(struct bench *b, tn_executable *executable, const tn_binding *bindings,
                  uint64_t count, uint32_t flags, uint64_t *out_point)
{
    uint64_t point = 0;
    tn_submission submission = {.struct_size = sizeof(submission),
                                .flags = flags,
                                .executable = executable,
                                .bindings = bindings,
                                .num_bindings = count};
    bench_listen(b);
    if (!expect(b, b->backend->submit(b->device, &submission, &point), "submit"))
        return false;
    b->point = point;
    if (out_point)
        *out_point = point;
    return true;
}

bool bench_wait(struct bench *b, uint64_t point)
{
    bench_listen(b);
    return expect(b, b->backend->wait(b->device, point), "wait");
}

// --- threads ---------------------------------------------------------------------------

int count_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks)) != NULL;)
        count += e->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return count;
}

// One that was joined may stand in the list for another moment.
int threads_beyond(int expected)
{
    for (int i = 0; i < 50 && count_threads() > expected; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    int more = count_threads() - expected;
    return more > 0 ? more : 0;
}
