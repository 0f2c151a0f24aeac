// SPDX-License-Identifier: MIT
// Opens a backend for its checks, and creates buffers and executables on its device.
#include "fixture.h"

#include <dirent.h>
#include <fnmatch.h>
#include <time.h>

// --- the plugin ------------------------------------------------------------------------

static bool backend_is_complete(const tn_backend *t)
{
    return TN_HAS(t, name) && TN_HAS(t, families) && TN_HAS(t, device_count) &&
           TN_HAS(t, device_info) && TN_HAS(t, device_open) && TN_HAS(t, device_close) &&
           TN_HAS(t, buffer_create) && TN_HAS(t, buffer_destroy) &&
           TN_HAS(t, buffer_write) && TN_HAS(t, buffer_read) &&
           TN_HAS(t, segment_compile) && TN_HAS(t, executable_destroy) &&
           TN_HAS(t, submit) && TN_HAS(t, wait);
}

bool fixture_start(struct fixture *f, struct kit *k)
{
    *f = (struct fixture){.kit = k};
    if (!subject_open(&f->subject, &f->host, k))
        return false;
    f->backend = subject_backend(&f->subject);
    if (backend_is_complete(f->backend))
        return true;
    fixture_finish(f);
    return false;
}

uint64_t fixture_finish(struct fixture *f)
{
    fixture_close(f);
    subject_stop(&f->subject, &f->host);
    uint64_t left = f->host.live;
    subject_unload(&f->subject, &f->host);
    fake_host_finish(&f->host);
    return left;
}

uint32_t fixture_count(struct fixture *f, const char **out_why)
{
    uint32_t count = 0;
    *out_why = "there is no device";
    if (f->backend->device_count(f->host.table, &count) == TN_OK)
        return count;
    *out_why = f->host.text;
    return 0;
}

// --- the device ------------------------------------------------------------------------

bool fixture_open(struct fixture *f)
{
    f->info = (tn_device_info){.struct_size = sizeof(f->info)};
    fixture_listen(f);
    tn_status status = f->backend->device_info(f->host.table, f->index, &f->info);
    if (status == TN_OK)
        status = f->backend->device_open(f->host.table, f->index, &f->device);
    if (status == TN_OK && f->device)
        return true;
    f->device = NULL;
    check_fail(f->kit, "device %u cannot be opened: %s", f->index,
               status == TN_OK ? "it is NULL" : f->host.text);
    return false;
}

static void fixture_clear(struct fixture *f)
{
    for (uint32_t i = 0; i < TN_MAX_QUEUES; i++)
        if (f->points[i])
            f->backend->wait(f->device, i, f->points[i]);
    for (uint32_t i = 0; i < f->num_executables; i++)
        f->backend->executable_destroy(f->device, f->executables[i]);
    for (uint32_t i = 0; i < f->num_buffers; i++)
        f->backend->buffer_destroy(f->device, f->buffers[i]);
    f->num_executables = f->num_buffers = 0;
    memset(f->points, 0, sizeof(f->points));
}

void fixture_close(struct fixture *f)
{
    if (!f->device)
        return;
    fixture_clear(f);
    f->backend->device_close(f->device);
    f->device = NULL;
}

static void run_one(struct fixture *f, const struct fixture_check *check)
{
    if (!check_begin(f->kit, check->name, "%.60s:%u", f->backend->name, f->index))
        return;
    if (fixture_open(f)) {
        check->run(f);
        fixture_close(f);
    }
    if (f->host.misuses)
        check_fail(f->kit, "%s", f->host.misuse);
    f->host.misuses = 0;
    check_end(f->kit);
}

void fixture_run(struct kit *k, const struct fixture_check *checks, size_t count)
{
    static struct fixture f;
    const char *why;
    if (!fixture_start(&f, k))
        return;
    uint32_t num_devices = fixture_count(&f, &why);
    for (size_t i = 0; i < count && num_devices == 0; i++)
        skip(k, checks[i].name, why);
    for (f.index = 0; f.index < num_devices; f.index++)
        for (size_t i = 0; i < count && fixture_is_wanted(&f); i++)
            run_one(&f, &checks[i]);
    fixture_finish(&f);
}

bool fixture_is_wanted(const struct fixture *f)
{
    char name[80];
    format_text(name, sizeof(name), "%.60s:%u", f->backend->name, f->index);
    return !f->kit->devices || fnmatch(f->kit->devices, name, 0) == 0;
}

bool fixture_consumes(const struct fixture *f, const char *family)
{
    for (const char *const *name = f->backend->families; *name; name++)
        if (strcmp(*name, family) == 0)
            return true;
    return false;
}

bool fixture_computes(const struct fixture *f)
{
    return !(f->info.flags & TN_DEVICE_COMPUTES_NOTHING);
}

bool fixture_shares(const struct fixture *f)
{
    static const uint8_t none[sizeof(f->info.share_id)];
    return memcmp(f->info.share_id, none, sizeof(none)) != 0 &&
           TN_HAS(f->backend, buffer_export_fd) && TN_HAS(f->backend, buffer_import_fd);
}

// --- messages --------------------------------------------------------------------------

void fixture_listen(struct fixture *f)
{
    f->heard = f->host.failures + f->host.refusals;
}

tn_status fixture_heard(struct fixture *f, tn_status status, const char *what)
{
    if (status == TN_OK)
        return status;
    if (status > 0 || status < TN_ERR_INTERNAL)
        check_fail(f->kit, "%s returns %d, which is no status", what, status);
    else if (f->host.failures + f->host.refusals == f->heard)
        check_fail(f->kit, "%s fails with status %d and does not say why", what, status);
    return status;
}

// Fails the check with the plugin's message unless `status` is TN_OK.
static bool fixture_expect(struct fixture *f, tn_status status, const char *what)
{
    if (status == TN_OK)
        return true;
    fixture_heard(f, status, what);
    check_fail(f->kit, "%s fails: %s", what, f->host.text);
    return false;
}

// --- buffers ---------------------------------------------------------------------------

tn_buffer *fixture_buffer(struct fixture *f, uint64_t size)
{
    tn_buffer *buffer = NULL;
    if (f->num_buffers == FIXTURE_BUFFERS)
        abort(); // a fault of the check, not of the plugin
    fixture_listen(f);
    tn_status status = f->backend->buffer_create(f->device, size, &buffer);
    if (!fixture_expect(f, status, "buffer_create"))
        return NULL;
    if (!buffer)
        check_fail(f->kit, "buffer_create of %llu bytes succeeds, and gives NULL",
                   (unsigned long long)size);
    else
        f->buffers[f->num_buffers++] = buffer;
    return buffer;
}

void fixture_destroy(struct fixture *f, tn_buffer *buffer)
{
    for (uint32_t i = 0; i < f->num_buffers; i++)
        if (f->buffers[i] == buffer) {
            f->buffers[i] = f->buffers[--f->num_buffers];
            break;
        }
    f->backend->buffer_destroy(f->device, buffer);
}

bool fixture_write(struct fixture *f, tn_buffer *buffer, uint64_t offset, const void *data,
                   uint64_t size)
{
    fixture_listen(f);
    return fixture_expect(
        f, f->backend->buffer_write(f->device, buffer, offset, data, size), "buffer_write");
}

bool fixture_read(struct fixture *f, tn_buffer *buffer, uint64_t offset, void *data,
                  uint64_t size)
{
    fixture_listen(f);
    return fixture_expect(f, f->backend->buffer_read(f->device, buffer, offset, data, size),
                          "buffer_read");
}

// --- work ------------------------------------------------------------------------------

tn_executable *fixture_compile(struct fixture *f, const tn_segment *segment)
{
    tn_executable *executable = NULL;
    if (f->num_executables == FIXTURE_EXECUTABLES)
        abort(); // a fault of the check, not of the plugin
    fixture_listen(f);
    tn_status status = f->backend->segment_compile(f->device, segment, &executable);
    if (!fixture_expect(f, status, "segment_compile"))
        return NULL;
    if (!executable)
        check_fail(f->kit, "segment_compile succeeds, and gives NULL");
    else
        f->executables[f->num_executables++] = executable;
    return executable;
}

bool fixture_submit_to(struct fixture *f, const tn_submission *submission,
                       uint64_t *out_point)
{
    uint64_t point = 0;
    fixture_listen(f);
    if (!fixture_expect(f, f->backend->submit(f->device, submission, &point), "submit"))
        return false;
    f->points[submission->queue] = point;
    if (out_point)
        *out_point = point;
    return true;
}

bool fixture_submit(struct fixture *f, tn_executable *executable,
                    const tn_binding *bindings, uint64_t count, uint32_t flags,
                    uint64_t *out_point)
{
    const tn_submission submission = {.struct_size = sizeof(submission),
                                      .flags = flags,
                                      .executable = executable,
                                      .bindings = bindings,
                                      .num_bindings = count,
                                      .binding_size = sizeof(tn_binding)};
    return fixture_submit_to(f, &submission, out_point);
}

bool fixture_wait_for(struct fixture *f, tn_point point)
{
    fixture_listen(f);
    return fixture_expect(f, f->backend->wait(f->device, point.queue, point.value), "wait");
}

bool fixture_wait(struct fixture *f, uint64_t point)
{
    return fixture_wait_for(f, (tn_point){.value = point});
}

bool fixture_wait_all(struct fixture *f)
{
    for (uint32_t i = 0; i < fixture_num_queues(f); i++)
        if (!fixture_wait_for(f, (tn_point){.value = f->points[i], .queue = i}))
            return false;
    return true;
}

uint32_t fixture_num_queues(const struct fixture *f)
{
    uint32_t count = f->info.num_queues ? f->info.num_queues : 1;
    return count < TN_MAX_QUEUES ? count : TN_MAX_QUEUES;
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

// A joined thread may stay listed in /proc for a moment, so the count is retried for 50 ms.
int threads_beyond(int expected)
{
    for (int i = 0; i < 50 && count_threads() > expected; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    int more = count_threads() - expected;
    return more > 0 ? more : 0;
}
