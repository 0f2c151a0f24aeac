// SPDX-License-Identifier: MIT
// Buffers: contents, sizes, mapping, and memory statistics.
#include "../kit/fixture.h"

#include <pthread.h>
#include "groups.h"

enum { MANY = 40, ROUNDS = 60, MAX_ALLOCATIONS = 100, THREADS = 4 };

// Byte `at` of the test pattern `seed`; adjacent offsets and other seeds differ.
static unsigned char buffer_group_pattern(uint64_t seed, uint64_t at)
{
    uint64_t x =
        (at + 1) * UINT64_C(0x9e3779b97f4a7c15) + seed * UINT64_C(0xbf58476d1ce4e5b9);
    return (unsigned char)(x >> 56);
}

static void buffer_group_fill(unsigned char *bytes, uint64_t size, uint64_t seed)
{
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = buffer_group_pattern(seed, i);
}

// Index of the first byte that differs from the pattern, or `size`.
static uint64_t differs_at(const unsigned char *bytes, uint64_t size, uint64_t seed)
{
    uint64_t i = 0;
    while (i < size && bytes[i] == buffer_group_pattern(seed, i))
        i++;
    return i;
}

static unsigned char *buffer_group_memory(uint64_t size)
{
    unsigned char *bytes = malloc(size);
    if (!bytes)
        abort(); // checks run in a child process: its parent reports the abort
    return bytes;
}

static bool write_pattern(struct fixture *f, tn_buffer *buffer, uint64_t size,
                          uint64_t seed)
{
    unsigned char *bytes = buffer_group_memory(size);
    buffer_group_fill(bytes, size, seed);
    bool good = fixture_write(f, buffer, 0, bytes, size);
    free(bytes);
    return good;
}

static void expect_pattern(struct fixture *f, tn_buffer *buffer, uint64_t size,
                           uint64_t seed)
{
    unsigned char *bytes = buffer_group_memory(size);
    memset(bytes, 0x5a, size);
    if (fixture_read(f, buffer, 0, bytes, size)) {
        uint64_t at = differs_at(bytes, size, seed);
        if (at < size)
            check_fail(f->kit, "byte %llu of %llu is %#x, expected %#x, which was written",
                       (unsigned long long)at, (unsigned long long)size, bytes[at],
                       buffer_group_pattern(seed, at));
    }
    free(bytes);
}

// --- bytes -----------------------------------------------------------------------------

// All buffers exist at once, so overlapping memory shows as changed bytes.
static void check_buffer_sizes(struct fixture *f)
{
    static const uint64_t usual[] = {1, 2, 3, 4, 31, 64, 65, 255, 256, 4095, 4096, 65537};
    tn_buffer *buffers[MANY];
    uint64_t sizes[MANY];
    for (int i = 0; i < MANY; i++) {
        check_case(f->kit);
        sizes[i] = i < (int)COUNT(usual) ? usual[i] : 1 + random_below(f->kit, 100000);
        if (i == MANY - 1)
            sizes[i] = (UINT64_C(9) << 20) + 1;
        buffers[i] = fixture_buffer(f, sizes[i]);
        if (!buffers[i] || !write_pattern(f, buffers[i], sizes[i], (uint64_t)i))
            return;
    }
    for (int i = 0; i < MANY; i++)
        expect_pattern(f, buffers[i], sizes[i], (uint64_t)i);
}

// Writes pieces at random offsets, and compares random ranges with a copy in host memory.
static void check_buffer_copies(struct fixture *f)
{
    enum { SIZE = 70000 };
    static unsigned char mirror[SIZE], piece[SIZE + 2];
    tn_buffer *buffer = fixture_buffer(f, SIZE);
    buffer_group_fill(mirror, SIZE, 1);
    if (!buffer || !fixture_write(f, buffer, 0, mirror, SIZE))
        return;
    for (int i = 0; i < ROUNDS && !check_failed(f->kit); i++) {
        uint64_t offset = random_below(f->kit, SIZE);
        uint64_t most = i % 2 ? 16 : SIZE;
        uint64_t size =
            random_below(f->kit, (SIZE - offset < most ? SIZE - offset : most) + 1);
        check_case(f->kit);
        buffer_group_fill(mirror + offset, size, 2 + (uint64_t)i);
        memset(piece, 0x5a, sizeof(piece)); // canaries around the piece
        memcpy(piece + 1, mirror + offset, size);
        if (!fixture_write(f, buffer, offset, piece + 1, size))
            return;
        offset = random_below(f->kit, SIZE);
        size = random_below(f->kit, SIZE - offset + 1);
        memset(piece, 0x5a, sizeof(piece));
        if (!fixture_read(f, buffer, offset, piece + 1, size))
            return;
        if (memcmp(piece + 1, mirror + offset, size) != 0)
            check_fail(f->kit, "%llu bytes from %llu on are not those that were written",
                       (unsigned long long)size, (unsigned long long)offset);
        if (piece[0] != 0x5a || piece[size + 1] != 0x5a)
            check_fail(f->kit, "buffer_read writes outside of the bytes asked for");
    }
}

static void check_buffer_map(struct fixture *f)
{
    enum { SIZE = 10000 };
    tn_buffer *buffer = fixture_buffer(f, SIZE);
    unsigned char *seen = NULL, back[16];
    bool must = f->info.flags & TN_DEVICE_HOST_MEMORY;
    if (!buffer || !write_pattern(f, buffer, SIZE, 3))
        return;
    if (TN_HAS(f->backend, buffer_map))
        seen = f->backend->buffer_map(f->device, buffer);
    if (!seen && must)
        check_fail(f->kit, "its flags say HOST_MEMORY, but buffer_map gives nothing");
    else if (!seen)
        check_skip(f->kit, "the host does not see its buffers");
    if (!seen)
        return;
    if (seen != f->backend->buffer_map(f->device, buffer))
        check_fail(f->kit, "buffer_map gives another address each time");
    if (f->info.buffer_alignment && (uintptr_t)seen % f->info.buffer_alignment)
        check_fail(f->kit, "a buffer lies at %p, not aligned to its buffer_alignment, %llu",
                   (void *)seen, (unsigned long long)f->info.buffer_alignment);
    if (differs_at(seen, SIZE, 3) < SIZE)
        check_fail(f->kit, "what buffer_write wrote is not seen where buffer_map points");
    buffer_group_fill(seen + 5000, 16, 4);
    if (fixture_read(f, buffer, 5000, back, 16) && differs_at(back, 16, 4) < 16)
        check_fail(f->kit, "buffer_read does not see what was written to mapped memory");
}

// --- impossible sizes ------------------------------------------------------------------

static void check_buffer_huge(struct fixture *f)
{
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 63, UINT64_MAX / 2 + 1,
                                     UINT64_C(1) << 62, UINT64_C(1) << 56};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        tn_buffer *buffer = NULL;
        check_case(f->kit);
        fixture_listen(f);
        tn_status status = f->backend->buffer_create(f->device, sizes[i], &buffer);
        if (fixture_heard(f, status, "buffer_create") == TN_OK)
            check_fail(f->kit, "a buffer of %llu bytes is made",
                       (unsigned long long)sizes[i]);
        else if (status != TN_ERR_MEMORY)
            check_fail(f->kit,
                       "for a buffer of %llu bytes the status is %d, expected %d: "
                       "out of memory",
                       (unsigned long long)sizes[i], status, TN_ERR_MEMORY);
    }
    tn_buffer *small = fixture_buffer(f, 100);
    if (small && write_pattern(f, small, 100, 5))
        expect_pattern(f, small, 100, 5);
}

// Creates and destroys a buffer while the n-th allocation fails. False: there was no n-th
// allocation.
static bool create_poorly(struct fixture *f, uint64_t n, uint64_t size)
{
    tn_buffer *buffer = NULL;
    uint64_t live = f->host.live;
    check_case(f->kit);
    f->host.fail_at = f->host.allocations + n;
    fixture_listen(f);
    tn_status status = f->backend->buffer_create(f->device, size, &buffer);
    bool was_met = f->host.allocations >= f->host.fail_at;
    f->host.fail_at = 0;
    if (fixture_heard(f, status, "buffer_create") == TN_OK) {
        f->backend->buffer_destroy(f->device, buffer);
        return was_met;
    }
    if (status != TN_ERR_MEMORY)
        check_fail(f->kit,
                   "allocation %llu fails, and buffer_create returns %d, expected "
                   "%d",
                   (unsigned long long)n, status, TN_ERR_MEMORY);
    if (f->host.live > live)
        check_fail(f->kit, "allocation %llu fails, and buffer_create leaves %llu blocks",
                   (unsigned long long)n, (unsigned long long)(f->host.live - live));
    return was_met;
}

static void check_buffer_memory(struct fixture *f)
{
    for (uint64_t n = 1; n < MAX_ALLOCATIONS; n++) // new sizes: no cached buffer fits
        if (!create_poorly(f, n, n << 9) || check_failed(f->kit))
            return;
}

static void check_buffer_frees(struct fixture *f)
{
    uint64_t live = 0;
    for (int i = 0; i < 4 * ROUNDS; i++) {
        if (i == ROUNDS)
            live = f->host.live; // the backend's caches are full now
        tn_buffer *first = fixture_buffer(f, 1000), *second = fixture_buffer(f, 50000);
        if (!first || !second)
            return;
        fixture_destroy(f, first);
        fixture_destroy(f, second);
    }
    if (f->host.live > live)
        check_fail(f->kit, "%d buffers made and destroyed leave %llu blocks of the host's",
                   6 * ROUNDS, (unsigned long long)(f->host.live - live));
}

// --- memory_info -----------------------------------------------------------------------

static bool buffer_ask_info(struct fixture *f, tn_memory_info *out)
{
    memset(out, 0x5a, sizeof(*out));
    out->struct_size = sizeof(*out);
    fixture_listen(f);
    if (fixture_heard(f, f->backend->memory_info(f->device, out), "memory_info") != TN_OK) {
        check_fail(f->kit, "memory_info fails: %s", f->host.text);
        return false;
    }
    if (out->flags)
        check_fail(f->kit, "memory_info: flags are %#x, expected 0", out->flags);
    if (out->used > out->peak || out->used > out->reserved)
        check_fail(f->kit, "used is %llu, more than peak (%llu) or reserved (%llu)",
                   (unsigned long long)out->used, (unsigned long long)out->peak,
                   (unsigned long long)out->reserved);
    return !check_failed(f->kit);
}

static void check_buffer_info(struct fixture *f)
{
    enum { SIZE = 3 << 20 };
    tn_memory_info before, with, after, small;
    if (!TN_HAS(f->backend, memory_info)) {
        check_skip(f->kit, "it has no memory_info");
        return;
    }
    if (!buffer_ask_info(f, &before))
        return;
    tn_buffer *buffer = fixture_buffer(f, SIZE);
    if (!buffer || !buffer_ask_info(f, &with))
        return;
    fixture_destroy(f, buffer);
    if (!buffer_ask_info(f, &after))
        return;
    if (with.used < before.used + SIZE)
        check_fail(f->kit, "a buffer of %d bytes makes used %llu of %llu", SIZE,
                   (unsigned long long)with.used, (unsigned long long)before.used);
    if (after.used != before.used)
        check_fail(f->kit, "used was %llu, and when a buffer came and went it is %llu",
                   (unsigned long long)before.used, (unsigned long long)after.used);
    if (after.peak < with.used)
        check_fail(f->kit, "peak is %llu, after %llu were used",
                   (unsigned long long)after.peak, (unsigned long long)with.used);
    memset(&small, 0x5a, sizeof(small));
    small.struct_size = 16; // an older host's struct
    f->backend->memory_info(f->device, &small);
    if (small.peak != UINT64_C(0x5a5a5a5a5a5a5a5a))
        check_fail(f->kit, "memory_info writes behind a struct of 16 bytes");
}

// --- threads ---------------------------------------------------------------------------

struct buffer_work {
    struct fixture *fixture;
    uint64_t number;
    char failure[200];
};

static void *buffer_worker(void *context)
{
    enum { SIZE = 5000 };
    struct buffer_work *w = context;
    const tn_backend *t = w->fixture->backend;
    tn_device *device = w->fixture->device;
    unsigned char bytes[SIZE];
    for (uint64_t i = 0; i < ROUNDS && !w->failure[0]; i++) {
        tn_buffer *buffer = NULL;
        uint64_t size = SIZE - i * 7, at = size;
        buffer_group_fill(bytes, size, w->number * 1000 + i);
        bool good = t->buffer_create(device, size, &buffer) == TN_OK &&
                    t->buffer_write(device, buffer, 0, bytes, size) == TN_OK;
        memset(bytes, 0, size);
        good = good && t->buffer_read(device, buffer, 0, bytes, size) == TN_OK;
        if (good)
            at = differs_at(bytes, size, w->number * 1000 + i);
        if (!good || at < size)
            format_text(w->failure, sizeof(w->failure),
                        good ? "byte %llu of a buffer is another thread's"
                             : "a call failed",
                        (unsigned long long)at);
        t->buffer_destroy(device, buffer);
    }
    return NULL;
}

static void check_buffer_threads(struct fixture *f)
{
    struct buffer_work workers[THREADS];
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct buffer_work){.fixture = f, .number = i};
        if (pthread_create(&threads[i], NULL, buffer_worker, &workers[i]))
            abort(); // checks run in a child process: its parent reports the abort
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (workers[i].failure[0])
            check_fail(f->kit, "%d threads use buffers of their own at once: %s", THREADS,
                       workers[i].failure);
    }
}

static const struct fixture_check checks[] = {
    {"buffer.sizes", check_buffer_sizes},   {"buffer.copies", check_buffer_copies},
    {"buffer.map", check_buffer_map},       {"buffer.huge", check_buffer_huge},
    {"buffer.memory", check_buffer_memory}, {"buffer.frees", check_buffer_frees},
    {"buffer.info", check_buffer_info},     {"buffer.threads", check_buffer_threads},
};

void group_buffer(struct kit *k)
{
    fixture_run(k, checks, COUNT(checks));
}
