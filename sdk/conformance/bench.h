// SPDX-License-Identifier: MIT
// A backend's device on the test bench: opened through the plugin's table, without a core.
//
//     static void check_copies(struct bench *b) { ... check_fail(b->kit, ...); }
//     static const struct bench_check checks[] = {{"buffer.copies", check_copies}, ...};
//     bench_run(k, checks, COUNT(checks));
//
// Each check gets a device of its own. What it makes through the bench is taken back when
// it ends, whichever way.
//
// Threads. As kit.h says, unless said otherwise.
#ifndef CONFORMANCE_BENCH_H
#define CONFORMANCE_BENCH_H

#include "kit.h"
#include "subject.h"

enum { BENCH_BUFFERS = 256, BENCH_EXECUTABLES = 128 };

struct bench {
    struct kit *kit;
    struct subject subject;
    struct fake_host host;
    const tn_backend *backend;
    uint32_t index; // of the device
    tn_device_info info;
    tn_device *device; // NULL: not open
    uint64_t heard;    // messages before bench_listen

    tn_buffer *buffers[BENCH_BUFFERS];
    tn_executable *executables[BENCH_EXECUTABLES];
    uint32_t num_buffers, num_executables;
    uint64_t point; // the last one submitted
};

struct bench_check {
    const char *name; // "buffer.copies"
    void (*run)(struct bench *b);
};

// Makes the checks on each device of the plugin's backend. Does nothing when it has none or
// cannot be started; without devices all are skipped, with the backend's own reason.
void bench_run(struct kit *k, const struct bench_check *checks, size_t count);

// Starts the plugin, with a host of its own. False: it cannot be, or its table lacks what
// must be there.
bool bench_start(struct bench *b, struct kit *k);
// Takes everything back. Returns the blocks of the host's that are left.
uint64_t bench_finish(struct bench *b);

// The number of devices; *out_why is why there are none.
uint32_t bench_count(struct bench *b, const char **out_why);
// Opens device b->index. False: the running check was failed.
bool bench_open(struct bench *b);
// Waits, destroys what the check made and closes the device.
void bench_close(struct bench *b);

// --- messages --------------------------------------------------------------------------

// A failing call says why, once: what is said after bench_listen counts.
void bench_listen(struct bench *b);
// Fails the running check unless `status` is TN_OK or was explained. Returns status.
tn_status bench_heard(struct bench *b, tn_status status, const char *what);

// --- what checks are made with ---------------------------------------------------------
// Where they cannot do what is asked they fail the running check and give NULL or false.

// A buffer; it is the bench's.
tn_buffer *bench_buffer(struct bench *b, uint64_t size);
void bench_destroy(struct bench *b, tn_buffer *buffer);
bool bench_write(struct bench *b, tn_buffer *buffer, uint64_t offset, const void *data,
                 uint64_t size);
bool bench_read(struct bench *b, tn_buffer *buffer, uint64_t offset, void *data,
                uint64_t size);

// An executable; it is the bench's.
tn_executable *bench_compile(struct bench *b, const tn_segment *segment);
// Each slot's binding. *out_point may be NULL.
bool bench_submit(struct bench *b, tn_executable *executable, const tn_binding *bindings,
                  uint64_t count, uint32_t flags, uint64_t *out_point);
bool bench_wait(struct bench *b, uint64_t point);

// Whether device b->index is one of those to be checked (--devices).
bool bench_is_wanted(const struct bench *b);
// Whether its backend lists this family.
bool bench_consumes(const struct bench *b, const char *family);
// Whether results mean anything: false for null.
bool bench_computes(const struct bench *b);

// The threads of this process, and those beyond `expected` that do not end within moments.
int count_threads(void);
int threads_beyond(int expected);

#endif // CONFORMANCE_BENCH_H
