// SPDX-License-Identifier: MIT
// Points, order from submission to submission, bindings, replay, and threads that wait.
#include "../segment/arithmetic.h"
#include "groups.h"
#include "lost.h"
#include "queues.h"

#include <pthread.h>

enum { N = 4000, CHAIN = 100, REPLAYS = 300, THREADS = 3 };

static struct draft draft;
static struct arithmetic work;

// Compiles out = 3 * x + 1 (arithmetic.h) over N elements; slot 0 is x, slot 1 is out.
// NULL: skipped or failed.
static tn_executable *queue_start(struct fixture *f)
{
    if (!arithmetic_begin(f, &work))
        return NULL;
    draft_start(&draft);
    draft_slot(&draft, 0, N * 4);
    draft_slot(&draft, 0, N * 4);
    tn_value in = arithmetic_value(&work, 0, N), out = arithmetic_value(&work, 1, N);
    draft_affine(&draft, &work, &in, &out, 3, 1);
    return fixture_compile(f, &draft.segment);
}

static tn_buffer *queue_filled(struct fixture *f, uint64_t size, uint32_t first)
{
    static uint32_t values[2 * N];
    for (uint32_t i = 0; i < 2 * N; i++)
        values[i] = element_of(&work, first + i);
    tn_buffer *buffer = fixture_buffer(f, size);
    return buffer && fixture_write(f, buffer, 0, values, size) ? buffer : NULL;
}

// Expects element i to be first + i after 3 * x + 1 was applied `times` times.
static void queue_expect(struct fixture *f, tn_buffer *buffer, uint64_t offset,
                         uint32_t first, int times, const char *what)
{
    static uint32_t got[N];
    if (!fixture_computes(f))
        check_skip(f->kit, "it computes nothing");
    if (!fixture_computes(f) || !fixture_read(f, buffer, offset, got, sizeof(got)))
        return;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t want = affine_repeated(&work, element_of(&work, first + i), 3, 1, times);
        if (got[i] != want) {
            check_fail(f->kit, "%s: element %u is %.10g, expected %.10g", what, i,
                       element_value(&work, got[i]), element_value(&work, want));
            return;
        }
    }
}

// --- points ----------------------------------------------------------------------------

static uint32_t group_queue_of(const struct fixture *f, int submission)
{
    return (uint32_t)submission % fixture_num_queues(f);
}

// Point value 0 counts as reached at all times.
static bool zero_is_reached(struct fixture *f)
{
    for (uint32_t i = 0; i < fixture_num_queues(f); i++)
        if (!fixture_wait_for(f, (tn_point){.queue = i}))
            return false;
    return true;
}

static void check_queue_points(struct fixture *f)
{
    uint64_t points[CHAIN], last[TN_MAX_QUEUES] = {0};
    tn_executable *executable = queue_start(f);
    tn_buffer *in = queue_filled(f, N * 4, 0), *out[TN_MAX_QUEUES] = {NULL};
    for (uint32_t i = 0; i < fixture_num_queues(f); i++)
        out[i] = fixture_buffer(f, N * 4);
    if (!executable || !in || !out[fixture_num_queues(f) - 1] || !zero_is_reached(f))
        return;
    for (int i = 0; i < CHAIN; i++) {
        tn_binding bindings[2] = {{in, 0}, {out[group_queue_of(f, i)], 0}};
        const tn_submission submission = {.struct_size = sizeof(submission),
                                          .flags = i % 3 ? TN_SUBMIT_ASYNC : 0,
                                          .executable = executable,
                                          .bindings = bindings,
                                          .num_bindings = 2,
                                          .binding_size = sizeof(tn_binding),
                                          .queue = group_queue_of(f, i)};
        uint64_t *before = &last[submission.queue];
        if (!fixture_submit_to(f, &submission, &points[i]))
            return;
        check_case(f->kit);
        if (points[i] <= *before) {
            check_fail(f->kit,
                       "submission %d has point %llu of queue %u, the one before %llu", i,
                       (unsigned long long)points[i], submission.queue,
                       (unsigned long long)*before);
            return;
        }
        *before = points[i];
    }
    if (!zero_is_reached(f))
        return;
    static const int order[] = {50, 99, 0, 99, 7, 98}; // in any order, twice, long reached
    for (size_t i = 0; i < COUNT(order); i++)
        if (!fixture_wait_for(f,
                              (tn_point){points[order[i]], group_queue_of(f, order[i]), 0}))
            return;
}

// --- order -----------------------------------------------------------------------------

// Each submission reads the output of the one before, without a wait in between.
static void check_queue_order(struct fixture *f)
{
    tn_executable *executable = queue_start(f);
    tn_buffer *buffers[2] = {queue_filled(f, N * 4, 9), queue_filled(f, N * 4, 0)};
    if (!executable || !buffers[0] || !buffers[1])
        return;
    for (int i = 0; i < CHAIN; i++) {
        tn_binding bindings[2] = {{buffers[i % 2], 0}, {buffers[1 - i % 2], 0}};
        uint32_t flags = random_below(f->kit, 4) ? TN_SUBMIT_ASYNC : 0;
        check_case(f->kit);
        if (!fixture_submit(f, executable, bindings, 2, flags, NULL))
            return;
    }
    if (fixture_wait(f, f->points[0]))
        queue_expect(f, buffers[0], 0, 9, CHAIN, "submissions that depend on each other");
}

enum { MANY = 1 << 20 };

static bool wait_and_read(struct fixture *f, uint64_t point, tn_buffer *buffer,
                          uint32_t *values)
{
    return fixture_wait(f, point) && fixture_read(f, buffer, 0, values, MANY * 4);
}

static bool queue_group_read_after(struct fixture *f, uint64_t point, tn_buffer *buffer,
                                   uint32_t *values)
{
    fixture_listen(f);
    tn_status status = f->backend->buffer_read_after(f->device, buffer, 0, values, MANY * 4,
                                                     (tn_point){.value = point});
    if (fixture_heard(f, status, "buffer_read_after") == TN_OK)
        return true;
    check_fail(f->kit, "buffer_read_after fails: %s", f->host.text);
    return false;
}

// A point is reached only when its work is complete. The work is large, so that it is not
// complete by chance.
static void look_behind(struct fixture *f,
                        bool (*read)(struct fixture *, uint64_t, tn_buffer *, uint32_t *))
{
    uint32_t *values = malloc(MANY * sizeof(*values));
    uint64_t point;
    if (!queue_start(f) || !values) {
        free(values);
        return;
    }
    draft_start(&draft);
    draft_slot(&draft, 0, MANY * 4);
    draft_slot(&draft, 0, MANY * 4);
    tn_value in = arithmetic_value(&work, 0, MANY), out = arithmetic_value(&work, 1, MANY);
    const uint32_t one = element_of(&work, 1), want = affine_repeated(&work, one, 3, 1, 8);
    for (int i = 0; i < 8; i++) // alternates between the slots
        draft_affine(&draft, &work, i % 2 ? &out : &in, i % 2 ? &in : &out, 3, 1);
    tn_executable *executable = fixture_compile(f, &draft.segment);
    tn_binding bindings[2] = {{fixture_buffer(f, MANY * 4), 0},
                              {fixture_buffer(f, MANY * 4), 0}};
    for (int i = 0; i < MANY; i++)
        values[i] = one;
    if (executable && bindings[0].buffer && bindings[1].buffer &&
        fixture_write(f, bindings[0].buffer, 0, values, MANY * 4) &&
        fixture_submit(f, executable, bindings, 2, TN_SUBMIT_ASYNC, &point) &&
        read(f, point, bindings[0].buffer, values) && fixture_computes(f))
        for (int i = 0; i < MANY; i++)
            if (values[i] != want) {
                check_fail(f->kit,
                           "when its point is reached element %d is %.10g, expected %.10g",
                           i, element_value(&work, values[i]), element_value(&work, want));
                break;
            }
    if (!fixture_computes(f))
        check_skip(f->kit, "it computes nothing");
    free(values);
}

static void check_queue_done(struct fixture *f)
{
    look_behind(f, wait_and_read);
}

static void check_queue_read_after(struct fixture *f)
{
    if (TN_HAS(f->backend, buffer_read_after))
        look_behind(f, queue_group_read_after);
    else
        check_skip(f->kit, "it has no buffer_read_after");
}

// --- bindings --------------------------------------------------------------------------

// One executable with other buffers and offsets each time. The array of bindings is
// borrowed until submit returns, and is overwritten then.
static void check_queue_bindings(struct fixture *f)
{
    enum { PAIRS = 20 };
    tn_buffer *in[PAIRS], *out[PAIRS];
    uint64_t alignment = f->info.buffer_alignment ? f->info.buffer_alignment : 1;
    tn_executable *executable = queue_start(f);
    if (!executable || alignment * 3 > N * 4)
        return;
    for (uint32_t i = 0; i < PAIRS; i++) {
        in[i] = queue_filled(f, 2 * N * 4, i * 1000);
        out[i] = queue_filled(f, 2 * N * 4, 0);
        if (!in[i] || !out[i])
            return;
    }
    for (uint32_t i = 0; i < PAIRS; i++) {
        tn_binding bindings[2] = {{in[i], i % 3 * alignment}, {out[i], i % 4 * alignment}};
        check_case(f->kit);
        if (!fixture_submit(f, executable, bindings, 2, TN_SUBMIT_ASYNC, NULL))
            return;
        memset(bindings, 0xff, sizeof(bindings));
    }
    if (!fixture_wait(f, f->points[0]) || alignment % 4)
        return;
    for (uint32_t i = 0; i < PAIRS; i++)
        queue_expect(f, out[i], i % 4 * alignment,
                     i * 1000 + i % 3 * (uint32_t)(alignment / 4), 1,
                     "one executable with other buffers");
}

// --- replay ----------------------------------------------------------------------------

static void check_queue_replay(struct fixture *f)
{
    uint64_t live = 0;
    tn_executable *executable = queue_start(f);
    tn_buffer *buffers[2] = {queue_filled(f, N * 4, 4), queue_filled(f, N * 4, 0)};
    if (!executable || !buffers[0] || !buffers[1])
        return;
    tn_binding bindings[2] = {{buffers[0], 0}, {buffers[1], 0}};
    for (int i = 0; i < REPLAYS; i++) {
        check_case(f->kit);
        if (!fixture_submit(f, executable, bindings, 2, i % 2 ? TN_SUBMIT_ASYNC : 0,
                            NULL) ||
            (i % 16 == 15 && !fixture_wait(f, f->points[0])))
            return;
        if (i == REPLAYS / 3 / 16 * 16 - 1)
            live = f->host.live; // nothing is in flight, and caches are full
    }
    if (!fixture_wait(f, f->points[0]))
        return;
    queue_expect(f, buffers[1], 0, 4, 1, "submitted again and again");
    if (f->host.live > live + 8)
        check_fail(f->kit, "%d submissions leave %llu blocks of the host's",
                   REPLAYS * 2 / 3, (unsigned long long)(f->host.live - live));
}

// --- threads ---------------------------------------------------------------------------

struct waiter {
    struct fixture *fixture;
    const uint64_t *points;
    tn_buffer *buffer; // used by this thread alone
    const char *failure;
};

static void *wait_and_copy(void *context)
{
    struct waiter *w = context;
    const tn_backend *t = w->fixture->backend;
    tn_device *device = w->fixture->device;
    for (uint32_t i = 0; i < CHAIN && !w->failure; i++) {
        uint32_t back = 0;
        if (t->buffer_write(device, w->buffer, 4 * i, &i, 4) != TN_OK ||
            t->buffer_read(device, w->buffer, 4 * i, &back, 4) != TN_OK || back != i)
            w->failure = "a copy to another buffer while work runs goes wrong";
        else if (i % 10 == 9 && t->wait(device, 0, w->points[i]) != TN_OK)
            w->failure = "a wait fails";
    }
    return NULL;
}

static void check_queue_threads(struct fixture *f)
{
    struct waiter waiters[THREADS];
    pthread_t threads[THREADS];
    uint64_t points[CHAIN];
    tn_executable *executable = queue_start(f);
    tn_buffer *buffers[2] = {queue_filled(f, N * 4, 2), queue_filled(f, N * 4, 0)};
    if (!executable || !buffers[0] || !buffers[1])
        return;
    for (int i = 0; i < CHAIN; i++) {
        tn_binding bindings[2] = {{buffers[i % 2], 0}, {buffers[1 - i % 2], 0}};
        if (!fixture_submit(f, executable, bindings, 2, TN_SUBMIT_ASYNC, &points[i]))
            return;
    }
    for (int i = 0; i < THREADS; i++) {
        waiters[i] = (struct waiter){f, points, fixture_buffer(f, CHAIN * 4), NULL};
        if (!waiters[i].buffer ||
            pthread_create(&threads[i], NULL, wait_and_copy, &waiters[i]))
            abort(); // checks run in a child process: its parent reports the abort
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (waiters[i].failure)
            check_fail(f->kit, "%d threads at once: %s", THREADS, waiters[i].failure);
    }
    if (fixture_wait(f, f->points[0]))
        queue_expect(f, buffers[0], 0, 2, CHAIN, "work that several threads wait for");
}

static const struct fixture_check checks[] = {
    {"queue.points", check_queue_points},     {"queue.order", check_queue_order},
    {"queue.done", check_queue_done},         {"queue.read-after", check_queue_read_after},
    {"queue.bindings", check_queue_bindings}, {"queue.replay", check_queue_replay},
    {"queue.threads", check_queue_threads},   {"queue.apart", check_queue_apart},
    {"queue.waits", check_queue_waits},       {"queue.host", check_queue_host},
    {"queue.at-once", check_queue_at_once},   {"queue.lost", check_queue_lost},
};

void group_queue(struct kit *k)
{
    fixture_run(k, checks, COUNT(checks));
}
