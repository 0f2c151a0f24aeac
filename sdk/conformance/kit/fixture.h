// SPDX-License-Identifier: MIT
// Test fixture of the backend checks: a plugin's backend with its fake host and one device,
// called through the plugin's table, without a core.
//
//     static void check_copies(struct fixture *f) { ... check_fail(f->kit, ...); }
//     static const struct fixture_check checks[] = {{"buffer.copies", check_copies}, ...};
//     fixture_run(k, checks, COUNT(checks));
//
// Each check gets a freshly opened device. Buffers and executables created through the
// fixture belong to it and are destroyed when the check ends, also after a failure.
//
// Threads. As in kit.h, unless a function says otherwise.
#ifndef CONFORMANCE_KIT_FIXTURE_H
#define CONFORMANCE_KIT_FIXTURE_H

#include "kit.h"
#include "subject.h"

enum { FIXTURE_BUFFERS = 256, FIXTURE_EXECUTABLES = 128 };

struct fixture {
    struct kit *kit;
    struct subject subject;
    struct fake_host host;
    const tn_backend *backend;
    uint32_t index; // of the device
    tn_device_info info;
    tn_device *device; // NULL: not open
    uint64_t heard;    // messages recorded before fixture_listen

    tn_buffer *buffers[FIXTURE_BUFFERS];
    tn_executable *executables[FIXTURE_EXECUTABLES];
    uint32_t num_buffers, num_executables;
    uint64_t points[TN_MAX_QUEUES]; // the last point submitted to each queue
};

struct fixture_check {
    const char *name; // "buffer.copies"
    void (*run)(struct fixture *f);
};

// Runs the checks on each device of the plugin's backend. Does nothing when the plugin has
// no backend or cannot be started; without devices skips all checks with the backend's
// reason.
void fixture_run(struct kit *k, const struct fixture_check *checks, size_t count);

// Starts the plugin with a fake host of its own. False: it cannot be started, or its table
// lacks a required slot.
bool fixture_start(struct fixture *f, struct kit *k);
// Closes the device and unloads the plugin. Returns the number of blocks that the plugin
// has not freed.
uint64_t fixture_finish(struct fixture *f);

// The number of devices; if 0, *out_why is the reason.
uint32_t fixture_count(struct fixture *f, const char **out_why);
// Opens device f->index. False: the running check has been failed.
bool fixture_open(struct fixture *f);
// Waits for all queues, destroys what the check created and closes the device.
void fixture_close(struct fixture *f);

// --- messages --------------------------------------------------------------------------

// A failing call must record a message: fixture_heard counts messages from this call on.
void fixture_listen(struct fixture *f);
// Fails the running check when `status` is an error without a message. Returns `status`.
tn_status fixture_heard(struct fixture *f, tn_status status, const char *what);

// --- calls that must succeed -----------------------------------------------------------
// On failure the running check fails, and the result is NULL or false.

// Creates a buffer, owned by the fixture.
tn_buffer *fixture_buffer(struct fixture *f, uint64_t size);
void fixture_destroy(struct fixture *f, tn_buffer *buffer);
bool fixture_write(struct fixture *f, tn_buffer *buffer, uint64_t offset, const void *data,
                   uint64_t size);
bool fixture_read(struct fixture *f, tn_buffer *buffer, uint64_t offset, void *data,
                  uint64_t size);

// Compiles a segment; the fixture owns the executable.
tn_executable *fixture_compile(struct fixture *f, const tn_segment *segment);
// Submits to queue 0; bindings[i] is for slot i. *out_point may be NULL.
bool fixture_submit(struct fixture *f, tn_executable *executable,
                    const tn_binding *bindings, uint64_t count, uint32_t flags,
                    uint64_t *out_point);
// Submits to the queue that `submission` names. *out_point may be NULL.
bool fixture_submit_to(struct fixture *f, const tn_submission *submission,
                       uint64_t *out_point);
// Waits for a point of queue 0.
bool fixture_wait(struct fixture *f, uint64_t point);
bool fixture_wait_for(struct fixture *f, tn_point point);
// Waits for the last submission to each queue.
bool fixture_wait_all(struct fixture *f);

// The number of queues that the core would use, at least 1.
uint32_t fixture_num_queues(const struct fixture *f);

// True when --devices names device f->index.
bool fixture_is_wanted(const struct fixture *f);
// True when the backend lists this family.
bool fixture_consumes(const struct fixture *f, const char *family);
// False for the backend null, whose results mean nothing.
bool fixture_computes(const struct fixture *f);

// True when the device exports and imports memory by file descriptor.
bool fixture_shares(const struct fixture *f);

// The threads of this process; and how many beyond `expected` remain after 50 ms.
int count_threads(void);
int threads_beyond(int expected);

#endif // CONFORMANCE_KIT_FIXTURE_H
