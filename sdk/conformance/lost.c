// SPDX-License-Identifier: MIT
// A device that is lost on purpose, at work and idle: what each call says from then on,
// that waits end, that other devices go on, and that nothing is left behind.
#include "lost.h"

#include <pthread.h>
#include <stdatomic.h>
#include "draft.h"

enum { N = 1 << 15, STEPS = 8, RESULT = 3280 }; // 8 times 3x + 1, from 0
enum { SUBMISSIONS = 4, WAITERS = 3, COPY = 4096 };

static struct draft draft;
static struct program affine;

struct scene {
    struct bench *bench;
    const tn_device_loss *loss;
    tn_executable *executable;
    tn_binding bindings[2];
    uint64_t points[SUBMISSIONS];
    atomic_bool is_lost; // lose() has returned
};

static const tn_device_loss *find_loss(struct bench *b)
{
    const tn_device_loss *loss = b->subject.entry->query(TN_IFACE_DEVICE_LOSS);
    return TN_HAS(loss, lose) ? loss : NULL;
}

static bool runs_programs(const struct bench *b)
{
    uint32_t dtypes = b->info.dtypes ? b->info.dtypes : TN_ALL_DTYPES;
    return bench_consumes(b, TN_FAMILY_EXPR) && dtypes & TN_DTYPE_BIT(TN_I32);
}

// 3 * x + 1 back and forth between two slots, or no steps where no program runs.
static void draft_work(const struct bench *b)
{
    draft_start(&draft);
    program_affine(&affine, TN_I32);
    draft_slot(&draft, 0, N * 4);
    draft_slot(&draft, 0, N * 4);
    tn_value in = flat_value(0, TN_I32, N), out = flat_value(1, TN_I32, N);
    for (int i = 0; i < STEPS && runs_programs(b); i++)
        draft_program(&draft, &affine, i % 2 ? &out : &in, i % 2 ? &in : &out, 3, 1);
}

// --- a device that works ---------------------------------------------------------------

// Zeros in, work, and what it gives read back.
static bool prepare(struct scene *s)
{
    struct bench *b = s->bench;
    static const uint32_t zeros[N];
    draft_work(b);
    s->executable = bench_compile(b, &draft.segment);
    for (int i = 0; i < 2; i++) {
        s->bindings[i] = (tn_binding){bench_buffer(b, N * 4), 0};
        if (!s->bindings[i].buffer ||
            !bench_write(b, s->bindings[i].buffer, 0, zeros, sizeof(zeros)))
            return false;
    }
    return s->executable != NULL;
}

static void works(struct bench *b, const char *what)
{
    static uint32_t got[N];
    struct scene s = {.bench = b};
    check_case(b->kit);
    if (!prepare(&s) || !bench_submit(b, s.executable, s.bindings, 2, 0, NULL) ||
        !bench_wait(b, b->point) || !bench_read(b, s.bindings[0].buffer, 0, got, N * 4))
        return;
    if (bench_computes(b) && runs_programs(b) && got[N - 1] != RESULT)
        check_fail(b->kit, "%s gives %u, expected %d", what, got[N - 1], RESULT);
}

// --- losing it -------------------------------------------------------------------------

struct waiter {
    const struct scene *scene;
    tn_buffer *buffer; // of this thread alone: it copies
    tn_status status;
};

static void *wait_for_work(void *context)
{
    struct waiter *w = context;
    const struct bench *b = w->scene->bench;
    w->status = b->backend->wait(b->device, w->scene->points[SUBMISSIONS - 1]);
    return NULL;
}

static void *copy_until_lost(void *context)
{
    struct waiter *w = context;
    const struct bench *b = w->scene->bench;
    unsigned char bytes[COPY] = {0};
    bool again = true;
    while (again && w->status == TN_OK) {
        again = !atomic_load(&w->scene->is_lost);
        w->status = b->backend->buffer_write(b->device, w->buffer, 0, bytes, COPY);
        if (w->status == TN_OK)
            w->status = b->backend->buffer_read(b->device, w->buffer, 0, bytes, COPY);
    }
    return NULL;
}

static void lose(struct scene *s)
{
    struct bench *b = s->bench;
    bench_listen(b);
    tn_status status = s->loss->lose(b->device);
    check_case(b->kit);
    if (bench_heard(b, status, "lose") != TN_OK)
        check_fail(b->kit, "lose fails with status %d", status);
}

// While work runs, several threads wait for it and one copies.
static bool lose_at_work(struct scene *s)
{
    struct bench *b = s->bench;
    struct waiter waiters[WAITERS];
    pthread_t threads[WAITERS];
    tn_buffer *buffer = bench_buffer(b, COPY);
    if (!buffer || !prepare(s))
        return false;
    for (int i = 0; i < SUBMISSIONS; i++)
        if (!bench_submit(b, s->executable, s->bindings, 2, TN_SUBMIT_ASYNC, &s->points[i]))
            return false;
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){s, buffer, TN_OK};
        if (pthread_create(&threads[i], NULL, i ? wait_for_work : copy_until_lost,
                           &waiters[i]))
            abort(); // a process of its own: the parent sees it
    }
    lose(s);
    atomic_store(&s->is_lost, true);
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(threads[i], NULL);
        if (waiters[i].status != TN_OK && waiters[i].status != TN_ERR_DEVICE)
            check_fail(b->kit, "%s while the device is lost gives status %d",
                       i ? "a wait" : "a copy", waiters[i].status);
    }
    return true;
}

// --- what it says then -----------------------------------------------------------------

static void expect_lost(struct bench *b, tn_status status, bool is_untouched,
                        const char *what)
{
    check_case(b->kit);
    if (bench_heard(b, status, what) != TN_ERR_DEVICE)
        check_fail(b->kit, "%s on a lost device gives status %d, expected %d", what, status,
                   TN_ERR_DEVICE);
    else if (!is_untouched)
        check_fail(b->kit, "%s on a lost device writes its output", what);
    bench_listen(b);
}

static void check_calls(struct scene *s)
{
    struct bench *b = s->bench;
    const tn_backend *t = b->backend;
    tn_buffer *buffer = s->bindings[0].buffer, *made = NULL;
    tn_executable *compiled = NULL;
    uint64_t point = 0;
    uint32_t word = UINT32_C(0xa5a5a5a5);
    const tn_submission submission = {.struct_size = sizeof(submission),
                                      .executable = s->executable,
                                      .bindings = s->bindings,
                                      .num_bindings = 2};
    bench_listen(b);
    tn_status status = t->buffer_create(b->device, 64, &made);
    expect_lost(b, status, made == NULL, "buffer_create");
    status = t->segment_compile(b->device, &draft.segment, &compiled);
    expect_lost(b, status, compiled == NULL, "segment_compile");
    status = t->submit(b->device, &submission, &point);
    expect_lost(b, status, point == 0, "submit");
    if (status == TN_OK)
        t->wait(b->device, point); // what it uses goes next
    status = t->buffer_read(b->device, buffer, 4, &word, 4);
    expect_lost(b, status, word == UINT32_C(0xa5a5a5a5), "buffer_read");
    status = t->buffer_write(b->device, buffer, 4, &word, 4);
    expect_lost(b, status, true, "buffer_write");
    for (int i = 0; i < SUBMISSIONS; i++)
        expect_lost(b, t->wait(b->device, s->points[i]), true, "wait");
    if (TN_HAS(t, buffer_map) && t->buffer_map(b->device, buffer))
        check_fail(b->kit, "buffer_map on a lost device gives memory, expected NULL");
    tn_memory_info info = {.struct_size = sizeof(info)};
    if (TN_HAS(t, memory_info) && t->memory_info(b->device, &info) != TN_OK)
        check_fail(b->kit, "memory_info fails on a lost device");
    lose(s); // again
    t->buffer_destroy(b->device, made);
    t->executable_destroy(b->device, compiled);
}

// --- several devices -------------------------------------------------------------------

// Opened before the loss, it goes on after it; and another one can be opened then.
static void check_others(struct scene *s)
{
    struct bench *b = s->bench;
    tn_device *lost = b->device;
    b->device = NULL;
    if (!bench_open(b)) {
        b->device = lost;
        return;
    }
    tn_device *other = b->device;
    b->device = lost;
    lose(s);
    bench_close(b); // idle: nothing was made on it
    b->device = other;
    works(b, "another device, open when one is lost,");
    bench_close(b);
    if (bench_open(b))
        works(b, "a device that is opened after one was lost");
    bench_close(b);
}

static bool lose_one(struct scene *s)
{
    struct bench *b = s->bench;
    if (!bench_open(b))
        return false;
    if (lose_at_work(s))
        check_calls(s);
    bench_close(b);
    if (!bench_open(b))
        return false;
    check_others(s);
    return !check_failed(b->kit);
}

void check_lost(struct bench *b)
{
    const tn_device_loss *loss = find_loss(b);
    if (!loss) {
        check_skip(b->kit, "it offers no %s", TN_IFACE_DEVICE_LOSS);
        return;
    }
    bench_close(b);
    uint64_t live = 0;
    int threads = 0;
    for (int round = 0; round < 3; round++) {
        struct scene s = {.bench = b, .loss = loss};
        if (!lose_one(&s))
            return;
        if (round == 0) { // what is kept for good is there
            live = b->host.live;
            threads = count_threads();
        }
    }
    if (b->host.live > live)
        check_fail(b->kit, "devices that were lost leave %llu blocks of the host's",
                   (unsigned long long)(b->host.live - live));
    if (threads_beyond(threads))
        check_fail(b->kit, "devices that were lost leave threads");
}
