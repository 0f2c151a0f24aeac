// SPDX-License-Identifier: MIT
// The queue: points, order from submission to submission, replay, and threads that wait.
#include "checks.h"
#include "draft.h"
#include "lost.h"

#include <pthread.h>

enum { N = 4000, CHAIN = 100, REPLAYS = 300, THREADS = 3 };

static struct draft draft;
static struct program affine;

// out = 3 * x + 1 over N numbers, as slots 0 and 1. NULL: skipped or failed.
static tn_executable *start(struct bench *b)
{
    uint32_t dtypes = b->info.dtypes ? b->info.dtypes : TN_ALL_DTYPES;
    if (!bench_consumes(b, TN_FAMILY_EXPR) || !(dtypes & TN_DTYPE_BIT(TN_I32))) {
        check_skip(b->kit, "it runs no programs of i32");
        return NULL;
    }
    draft_start(&draft);
    program_affine(&affine, TN_I32);
    draft_slot(&draft, 0, N * 4);
    draft_slot(&draft, 0, N * 4);
    tn_value in = flat_value(0, TN_I32, N), out = flat_value(1, TN_I32, N);
    draft_program(&draft, &affine, &in, &out, 3, 1);
    return bench_compile(b, &draft.segment);
}

static tn_buffer *filled(struct bench *b, uint64_t size, uint32_t first)
{
    static uint32_t values[2 * N];
    for (uint32_t i = 0; i < 2 * N; i++)
        values[i] = first + i;
    tn_buffer *buffer = bench_buffer(b, size);
    return buffer && bench_write(b, buffer, 0, values, size) ? buffer : NULL;
}

// Element i is first + i after `times` of 3 * x + 1.
static void expect(struct bench *b, tn_buffer *buffer, uint64_t offset, uint32_t first,
                   int times, const char *what)
{
    static uint32_t got[N];
    if (!bench_computes(b))
        check_skip(b->kit, "it computes nothing");
    if (!bench_computes(b) || !bench_read(b, buffer, offset, got, sizeof(got)))
        return;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t want = first + i;
        for (int n = 0; n < times; n++)
            want = want * 3 + 1;
        if (got[i] != want) {
            check_fail(b->kit, "%s: element %u is %u, expected %u", what, i, got[i], want);
            return;
        }
    }
}

// --- points ----------------------------------------------------------------------------

static void check_points(struct bench *b)
{
    uint64_t points[CHAIN], last = 0;
    tn_executable *executable = start(b);
    tn_buffer *buffers[2] = {filled(b, N * 4, 0), filled(b, N * 4, 0)};
    if (!executable || !buffers[0] || !buffers[1])
        return;
    tn_binding bindings[2] = {{buffers[0], 0}, {buffers[1], 0}};
    for (int i = 0; i < CHAIN; i++) {
        uint32_t flags = i % 3 ? TN_SUBMIT_ASYNC : 0;
        if (!bench_submit(b, executable, bindings, 2, flags, &points[i]))
            return;
        check_case(b->kit);
        if (points[i] <= last) {
            check_fail(b->kit, "submission %d has point %llu, the one before %llu", i,
                       (unsigned long long)points[i], (unsigned long long)last);
            return;
        }
        last = points[i];
    }
    static const int order[] = {50, 99, 0, 99, 7, 98}; // any, again, and long gone
    for (size_t i = 0; i < COUNT(order); i++)
        if (!bench_wait(b, points[order[i]]))
            return;
}

// --- order -----------------------------------------------------------------------------

// Each submission reads what the one before wrote; nothing is waited for in between.
static void check_order(struct bench *b)
{
    tn_executable *executable = start(b);
    tn_buffer *buffers[2] = {filled(b, N * 4, 9), filled(b, N * 4, 0)};
    if (!executable || !buffers[0] || !buffers[1])
        return;
    for (int i = 0; i < CHAIN; i++) {
        tn_binding bindings[2] = {{buffers[i % 2], 0}, {buffers[1 - i % 2], 0}};
        uint32_t flags = random_below(b->kit, 4) ? TN_SUBMIT_ASYNC : 0;
        check_case(b->kit);
        if (!bench_submit(b, executable, bindings, 2, flags, NULL))
            return;
    }
    if (bench_wait(b, b->point))
        expect(b, buffers[0], 0, 9, CHAIN, "submissions that depend on each other");
}

// The work is done when its point is reached: large enough not to be done by chance.
static void check_done(struct bench *b)
{
    enum { MANY = 1 << 20 };
    uint32_t *values = malloc(MANY * sizeof(*values));
    uint64_t point;
    if (!start(b) || !values) {
        free(values);
        return;
    }
    draft_start(&draft);
    draft_slot(&draft, 0, MANY * 4);
    draft_slot(&draft, 0, MANY * 4);
    tn_value in = flat_value(0, TN_I32, MANY), out = flat_value(1, TN_I32, MANY);
    for (int i = 0; i < 8; i++) // back and forth
        draft_program(&draft, &affine, i % 2 ? &out : &in, i % 2 ? &in : &out, 3, 1);
    tn_executable *executable = bench_compile(b, &draft.segment);
    tn_binding bindings[2] = {{bench_buffer(b, MANY * 4), 0},
                              {bench_buffer(b, MANY * 4), 0}};
    memset(values, 0, MANY * sizeof(*values));
    if (executable && bindings[0].buffer && bindings[1].buffer &&
        bench_write(b, bindings[0].buffer, 0, values, MANY * 4) &&
        bench_submit(b, executable, bindings, 2, TN_SUBMIT_ASYNC, &point) &&
        bench_wait(b, point) && bench_read(b, bindings[0].buffer, 0, values, MANY * 4) &&
        bench_computes(b))
        for (int i = 0; i < MANY; i++)
            if (values[i] != 3280) { // 8 times 3x + 1, from 0
                check_fail(b->kit,
                           "when its point is reached element %d is %u, expected "
                           "3280",
                           i, values[i]);
                break;
            }
    if (!bench_computes(b))
        check_skip(b->kit, "it computes nothing");
    free(values);
}

// --- bindings --------------------------------------------------------------------------

// One executable, other buffers each time; the array of bindings is the caller's again at
// once, and the offsets of bindings count.
static void check_bindings(struct bench *b)
{
    enum { PAIRS = 20 };
    tn_buffer *in[PAIRS], *out[PAIRS];
    uint64_t alignment = b->info.buffer_alignment ? b->info.buffer_alignment : 1;
    tn_executable *executable = start(b);
    if (!executable || alignment * 3 > N * 4)
        return;
    for (uint32_t i = 0; i < PAIRS; i++) {
        in[i] = filled(b, 2 * N * 4, i * 1000);
        out[i] = filled(b, 2 * N * 4, 0);
        if (!in[i] || !out[i])
            return;
    }
    for (uint32_t i = 0; i < PAIRS; i++) {
        tn_binding bindings[2] = {{in[i], i % 3 * alignment}, {out[i], i % 4 * alignment}};
        check_case(b->kit);
        if (!bench_submit(b, executable, bindings, 2, TN_SUBMIT_ASYNC, NULL))
            return;
        memset(bindings, 0xff, sizeof(bindings));
    }
    if (!bench_wait(b, b->point) || alignment % 4)
        return;
    for (uint32_t i = 0; i < PAIRS; i++)
        expect(b, out[i], i % 4 * alignment, i * 1000 + i % 3 * (uint32_t)(alignment / 4),
               1, "one executable with other buffers");
}

// --- again and again -------------------------------------------------------------------

static void check_replay(struct bench *b)
{
    uint64_t live = 0;
    tn_executable *executable = start(b);
    tn_buffer *buffers[2] = {filled(b, N * 4, 4), filled(b, N * 4, 0)};
    if (!executable || !buffers[0] || !buffers[1])
        return;
    tn_binding bindings[2] = {{buffers[0], 0}, {buffers[1], 0}};
    for (int i = 0; i < REPLAYS; i++) {
        check_case(b->kit);
        if (!bench_submit(b, executable, bindings, 2, i % 2 ? TN_SUBMIT_ASYNC : 0, NULL) ||
            (i % 16 == 15 && !bench_wait(b, b->point)))
            return;
        if (i == REPLAYS / 3 / 16 * 16 - 1)
            live = b->host.live; // nothing is on its way, and caches are filled
    }
    if (!bench_wait(b, b->point))
        return;
    expect(b, buffers[1], 0, 4, 1, "submitted again and again");
    if (b->host.live > live + 8)
        check_fail(b->kit, "%d submissions leave %llu blocks of the host's",
                   REPLAYS * 2 / 3, (unsigned long long)(b->host.live - live));
}

// --- threads ---------------------------------------------------------------------------

struct waiter {
    struct bench *bench;
    const uint64_t *points;
    tn_buffer *buffer; // of this thread alone
    const char *failure;
};

static void *wait_and_copy(void *context)
{
    struct waiter *w = context;
    const tn_backend *t = w->bench->backend;
    tn_device *device = w->bench->device;
    for (uint32_t i = 0; i < CHAIN && !w->failure; i++) {
        uint32_t back = 0;
        if (t->buffer_write(device, w->buffer, 4 * i, &i, 4) != TN_OK ||
            t->buffer_read(device, w->buffer, 4 * i, &back, 4) != TN_OK || back != i)
            w->failure = "a copy to another buffer while work runs goes wrong";
        else if (i % 10 == 9 && t->wait(device, w->points[i]) != TN_OK)
            w->failure = "a wait fails";
    }
    return NULL;
}

static void check_threads(struct bench *b)
{
    struct waiter waiters[THREADS];
    pthread_t threads[THREADS];
    uint64_t points[CHAIN];
    tn_executable *executable = start(b);
    tn_buffer *buffers[2] = {filled(b, N * 4, 2), filled(b, N * 4, 0)};
    if (!executable || !buffers[0] || !buffers[1])
        return;
    for (int i = 0; i < CHAIN; i++) {
        tn_binding bindings[2] = {{buffers[i % 2], 0}, {buffers[1 - i % 2], 0}};
        if (!bench_submit(b, executable, bindings, 2, TN_SUBMIT_ASYNC, &points[i]))
            return;
    }
    for (int i = 0; i < THREADS; i++) {
        waiters[i] = (struct waiter){b, points, bench_buffer(b, CHAIN * 4), NULL};
        if (!waiters[i].buffer ||
            pthread_create(&threads[i], NULL, wait_and_copy, &waiters[i]))
            abort(); // a process of its own: the parent sees it
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (waiters[i].failure)
            check_fail(b->kit, "%d threads at once: %s", THREADS, waiters[i].failure);
    }
    if (bench_wait(b, b->point))
        expect(b, buffers[0], 0, 2, CHAIN, "work that several threads wait for");
}

static const struct bench_check checks[] = {
    {"queue.points", check_points}, {"queue.order", check_order},
    {"queue.done", check_done},     {"queue.bindings", check_bindings},
    {"queue.replay", check_replay}, {"queue.threads", check_threads},
    {"queue.lost", check_lost},
};

void group_queue(struct kit *k)
{
    bench_run(k, checks, COUNT(checks));
}
