// SPDX-License-Identifier: MIT
// Buffers: their bytes, their sizes, and what is said about memory.
#include "bench.h"

#include <pthread.h>
#include "checks.h"

enum { MANY = 40, ROUNDS = 60, MAX_ALLOCATIONS = 100, THREADS = 4 };

// Byte `at` of pattern `seed`: neighbours, powers of two and other seeds differ.
static unsigned char pattern(uint64_t seed, uint64_t at)
{
    uint64_t x =
        (at + 1) * UINT64_C(0x9e3779b97f4a7c15) + seed * UINT64_C(0xbf58476d1ce4e5b9);
    return (unsigned char)(x >> 56);
}

static void fill(unsigned char *bytes, uint64_t size, uint64_t seed)
{
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = pattern(seed, i);
}

// The first byte that is not the pattern's, or `size`.
static uint64_t differs_at(const unsigned char *bytes, uint64_t size, uint64_t seed)
{
    uint64_t i = 0;
    while (i < size && bytes[i] == pattern(seed, i))
        i++;
    return i;
}

static unsigned char *memory(uint64_t size)
{
    unsigned char *bytes = malloc(size);
    if (!bytes)
        abort(); // a process of its own: the parent sees it
    return bytes;
}

static bool write_pattern(struct bench *b, tn_buffer *buffer, uint64_t size, uint64_t seed)
{
    unsigned char *bytes = memory(size);
    fill(bytes, size, seed);
    bool good = bench_write(b, buffer, 0, bytes, size);
    free(bytes);
    return good;
}

static void expect_pattern(struct bench *b, tn_buffer *buffer, uint64_t size, uint64_t seed)
{
    unsigned char *bytes = memory(size);
    memset(bytes, 0x5a, size);
    if (bench_read(b, buffer, 0, bytes, size)) {
        uint64_t at = differs_at(bytes, size, seed);
        if (at < size)
            check_fail(b->kit, "byte %llu of %llu is %#x, expected %#x, which was written",
                       (unsigned long long)at, (unsigned long long)size, bytes[at],
                       pattern(seed, at));
    }
    free(bytes);
}

// --- bytes -----------------------------------------------------------------------------

// All exist at once: what is written to one shows in no other.
static void check_sizes(struct bench *b)
{
    static const uint64_t usual[] = {1, 2, 3, 4, 31, 64, 65, 255, 256, 4095, 4096, 65537};
    tn_buffer *buffers[MANY];
    uint64_t sizes[MANY];
    for (int i = 0; i < MANY; i++) {
        check_case(b->kit);
        sizes[i] = i < (int)COUNT(usual) ? usual[i] : 1 + random_below(b->kit, 100000);
        if (i == MANY - 1)
            sizes[i] = (UINT64_C(9) << 20) + 1;
        buffers[i] = bench_buffer(b, sizes[i]);
        if (!buffers[i] || !write_pattern(b, buffers[i], sizes[i], (uint64_t)i))
            return;
    }
    for (int i = 0; i < MANY; i++)
        expect_pattern(b, buffers[i], sizes[i], (uint64_t)i);
}

// Pieces written into the middle of others, and read back alone.
static void check_copies(struct bench *b)
{
    enum { SIZE = 70000 };
    static unsigned char mirror[SIZE], piece[SIZE + 2];
    tn_buffer *buffer = bench_buffer(b, SIZE);
    fill(mirror, SIZE, 1);
    if (!buffer || !bench_write(b, buffer, 0, mirror, SIZE))
        return;
    for (int i = 0; i < ROUNDS && !check_failed(b->kit); i++) {
        uint64_t offset = random_below(b->kit, SIZE);
        uint64_t most = i % 2 ? 16 : SIZE;
        uint64_t size =
            random_below(b->kit, (SIZE - offset < most ? SIZE - offset : most) + 1);
        check_case(b->kit);
        fill(mirror + offset, size, 2 + (uint64_t)i);
        memset(piece, 0x5a, sizeof(piece)); // what lies around it is not to be written
        memcpy(piece + 1, mirror + offset, size);
        if (!bench_write(b, buffer, offset, piece + 1, size))
            return;
        offset = random_below(b->kit, SIZE);
        size = random_below(b->kit, SIZE - offset + 1);
        memset(piece, 0x5a, sizeof(piece));
        if (!bench_read(b, buffer, offset, piece + 1, size))
            return;
        if (memcmp(piece + 1, mirror + offset, size) != 0)
            check_fail(b->kit, "%llu bytes from %llu on are not those that were written",
                       (unsigned long long)size, (unsigned long long)offset);
        if (piece[0] != 0x5a || piece[size + 1] != 0x5a)
            check_fail(b->kit, "buffer_read writes outside of the bytes asked for");
    }
}

static void check_map(struct bench *b)
{
    enum { SIZE = 10000 };
    tn_buffer *buffer = bench_buffer(b, SIZE);
    unsigned char *seen = NULL, back[16];
    bool must = b->info.flags & TN_DEVICE_HOST_MEMORY;
    if (!buffer || !write_pattern(b, buffer, SIZE, 3))
        return;
    if (TN_HAS(b->backend, buffer_map))
        seen = b->backend->buffer_map(b->device, buffer);
    if (!seen && must)
        check_fail(b->kit, "its flags say HOST_MEMORY, but buffer_map gives nothing");
    else if (!seen)
        check_skip(b->kit, "the host does not see its buffers");
    if (!seen)
        return;
    if (seen != b->backend->buffer_map(b->device, buffer))
        check_fail(b->kit, "buffer_map gives another address each time");
    if (b->info.buffer_alignment && (uintptr_t)seen % b->info.buffer_alignment)
        check_fail(b->kit, "a buffer lies at %p, not aligned to its buffer_alignment, %llu",
                   (void *)seen, (unsigned long long)b->info.buffer_alignment);
    if (differs_at(seen, SIZE, 3) < SIZE)
        check_fail(b->kit, "what buffer_write wrote is not seen where buffer_map points");
    fill(seen + 5000, 16, 4);
    if (bench_read(b, buffer, 5000, back, 16) && differs_at(back, 16, 4) < 16)
        check_fail(b->kit, "buffer_read does not see what was written to mapped memory");
}

// --- sizes that cannot be --------------------------------------------------------------

static void check_huge(struct bench *b)
{
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 63, UINT64_MAX / 2 + 1,
                                     UINT64_C(1) << 62, UINT64_C(1) << 56};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        tn_buffer *buffer = NULL;
        check_case(b->kit);
        bench_listen(b);
        tn_status status = b->backend->buffer_create(b->device, sizes[i], &buffer);
        if (bench_heard(b, status, "buffer_create") == TN_OK)
            check_fail(b->kit, "a buffer of %llu bytes is made",
                       (unsigned long long)sizes[i]);
        else if (status != TN_ERR_MEMORY)
            check_fail(b->kit,
                       "for a buffer of %llu bytes the status is %d, expected %d: "
                       "out of memory",
                       (unsigned long long)sizes[i], status, TN_ERR_MEMORY);
    }
    tn_buffer *small = bench_buffer(b, 100);
    if (small && write_pattern(b, small, 100, 5))
        expect_pattern(b, small, 100, 5);
}

// A buffer made, used and destroyed with the n-th allocation failing. False: no n-th.
static bool create_poorly(struct bench *b, uint64_t n, uint64_t size)
{
    tn_buffer *buffer = NULL;
    uint64_t live = b->host.live;
    check_case(b->kit);
    b->host.fail_at = b->host.allocations + n;
    bench_listen(b);
    tn_status status = b->backend->buffer_create(b->device, size, &buffer);
    bool was_met = b->host.allocations >= b->host.fail_at;
    b->host.fail_at = 0;
    if (bench_heard(b, status, "buffer_create") == TN_OK) {
        b->backend->buffer_destroy(b->device, buffer);
        return was_met;
    }
    if (status != TN_ERR_MEMORY)
        check_fail(b->kit,
                   "allocation %llu fails, and buffer_create returns %d, expected "
                   "%d",
                   (unsigned long long)n, status, TN_ERR_MEMORY);
    if (b->host.live > live)
        check_fail(b->kit, "allocation %llu fails, and buffer_create leaves %llu blocks",
                   (unsigned long long)n, (unsigned long long)(b->host.live - live));
    return was_met;
}

static void check_memory(struct bench *b)
{
    for (uint64_t n = 1; n < MAX_ALLOCATIONS; n++) // sizes of their own: none is kept idle
        if (!create_poorly(b, n, n << 9) || check_failed(b->kit))
            return;
}

static void check_frees(struct bench *b)
{
    uint64_t live = 0;
    for (int i = 0; i < 4 * ROUNDS; i++) {
        if (i == ROUNDS)
            live = b->host.live; // caches are filled
        tn_buffer *first = bench_buffer(b, 1000), *second = bench_buffer(b, 50000);
        if (!first || !second)
            return;
        bench_destroy(b, first);
        bench_destroy(b, second);
    }
    if (b->host.live > live)
        check_fail(b->kit, "%d buffers made and destroyed leave %llu blocks of the host's",
                   6 * ROUNDS, (unsigned long long)(b->host.live - live));
}

// --- memory_info -----------------------------------------------------------------------

static bool ask(struct bench *b, tn_memory_info *out)
{
    memset(out, 0x5a, sizeof(*out));
    out->struct_size = sizeof(*out);
    bench_listen(b);
    if (bench_heard(b, b->backend->memory_info(b->device, out), "memory_info") != TN_OK) {
        check_fail(b->kit, "memory_info fails: %s", b->host.text);
        return false;
    }
    if (out->flags)
        check_fail(b->kit, "memory_info: flags are %#x, expected 0", out->flags);
    if (out->used > out->peak || out->used > out->reserved)
        check_fail(b->kit, "used is %llu, more than peak (%llu) or reserved (%llu)",
                   (unsigned long long)out->used, (unsigned long long)out->peak,
                   (unsigned long long)out->reserved);
    return !check_failed(b->kit);
}

static void check_info(struct bench *b)
{
    enum { SIZE = 3 << 20 };
    tn_memory_info before, with, after, small;
    if (!TN_HAS(b->backend, memory_info)) {
        check_skip(b->kit, "it has no memory_info");
        return;
    }
    if (!ask(b, &before))
        return;
    tn_buffer *buffer = bench_buffer(b, SIZE);
    if (!buffer || !ask(b, &with))
        return;
    bench_destroy(b, buffer);
    if (!ask(b, &after))
        return;
    if (with.used < before.used + SIZE)
        check_fail(b->kit, "a buffer of %d bytes makes used %llu of %llu", SIZE,
                   (unsigned long long)with.used, (unsigned long long)before.used);
    if (after.used != before.used)
        check_fail(b->kit, "used was %llu, and when a buffer came and went it is %llu",
                   (unsigned long long)before.used, (unsigned long long)after.used);
    if (after.peak < with.used)
        check_fail(b->kit, "peak is %llu, after %llu were used",
                   (unsigned long long)after.peak, (unsigned long long)with.used);
    memset(&small, 0x5a, sizeof(small));
    small.struct_size = 16; // an older host's
    b->backend->memory_info(b->device, &small);
    if (small.peak != UINT64_C(0x5a5a5a5a5a5a5a5a))
        check_fail(b->kit, "memory_info writes behind a struct of 16 bytes");
}

// --- threads ---------------------------------------------------------------------------

struct worker {
    struct bench *bench;
    uint64_t number;
    char failure[200];
};

static void *work(void *context)
{
    enum { SIZE = 5000 };
    struct worker *w = context;
    const tn_backend *t = w->bench->backend;
    tn_device *device = w->bench->device;
    unsigned char bytes[SIZE];
    for (uint64_t i = 0; i < ROUNDS && !w->failure[0]; i++) {
        tn_buffer *buffer = NULL;
        uint64_t size = SIZE - i * 7, at = size;
        fill(bytes, size, w->number * 1000 + i);
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

static void check_threads(struct bench *b)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.bench = b, .number = i};
        if (pthread_create(&threads[i], NULL, work, &workers[i]))
            abort(); // a process of its own: the parent sees it
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (workers[i].failure[0])
            check_fail(b->kit, "%d threads use buffers of their own at once: %s", THREADS,
                       workers[i].failure);
    }
}

static const struct bench_check checks[] = {
    {"buffer.sizes", check_sizes},   {"buffer.copies", check_copies},
    {"buffer.map", check_map},       {"buffer.huge", check_huge},
    {"buffer.memory", check_memory}, {"buffer.frees", check_frees},
    {"buffer.info", check_info},     {"buffer.threads", check_threads},
};

void group_buffer(struct kit *k)
{
    bench_run(k, checks, COUNT(checks));
}
