// SPDX-License-Identifier: MIT
// Loss of a device on purpose, while busy and while idle: status of every call afterwards,
// end of waits, other devices, and leaks.
#include "lost.h"

#include <pthread.h>
#include <stdatomic.h>
#include "../segment/arithmetic.h"

enum { N = 1 << 15, STEPS = 8 };
enum { SUBMISSIONS = 4, WAITERS = 3, COPY = 4096 };

static struct draft draft;
static struct arithmetic work;

struct scene {
    struct fixture *fixture;
    const tn_device_loss *loss;
    tn_executable *executable;
    tn_binding bindings[2];
    uint64_t points[SUBMISSIONS];
    int steps;           // number of steps in the work
    atomic_bool is_lost; // lost_queue_lose() has returned
};

static const tn_device_loss *find_loss(struct fixture *f)
{
    const tn_device_loss *loss = f->subject.entry->query(TN_IFACE_DEVICE_LOSS);
    return TN_HAS(loss, lose) ? loss : NULL;
}

// Drafts 3 * x + 1 (arithmetic.h), alternating between two slots. Returns the number of
// steps: 0 if the backend runs neither programs nor such a kernel.
static int lost_draft(const struct fixture *f)
{
    int steps = arithmetic_find(f, &work) ? STEPS : 0;
    draft_start(&draft);
    draft_slot(&draft, 0, N * 4);
    draft_slot(&draft, 0, N * 4);
    tn_value in = arithmetic_value(&work, 0, N), out = arithmetic_value(&work, 1, N);
    for (int i = 0; i < steps; i++)
        draft_affine(&draft, &work, i % 2 ? &out : &in, i % 2 ? &in : &out, 3, 1);
    return steps;
}

// --- a device that is not lost ---------------------------------------------------------

// Compiles the work, and creates its buffers, filled with ones.
static bool scene_prepare(struct scene *s)
{
    struct fixture *f = s->fixture;
    static uint32_t ones[N];
    s->steps = lost_draft(f);
    for (int i = 0; i < N; i++)
        ones[i] = element_of(&work, 1);
    s->executable = fixture_compile(f, &draft.segment);
    for (int i = 0; i < 2; i++) {
        s->bindings[i] = (tn_binding){fixture_buffer(f, N * 4), 0};
        if (!s->bindings[i].buffer ||
            !fixture_write(f, s->bindings[i].buffer, 0, ones, sizeof(ones)))
            return false;
    }
    return s->executable != NULL;
}

// Runs the work on the open device, and checks the result.
static void lost_queue_works(struct fixture *f, const char *what)
{
    static uint32_t got[N];
    struct scene s = {.fixture = f};
    check_case(f->kit);
    if (!scene_prepare(&s) || !fixture_submit(f, s.executable, s.bindings, 2, 0, NULL) ||
        !fixture_wait(f, f->points[0]) ||
        !fixture_read(f, s.bindings[0].buffer, 0, got, N * 4))
        return;
    uint32_t want = affine_repeated(&work, element_of(&work, 1), 3, 1, s.steps);
    if (fixture_computes(f) && got[N - 1] != want)
        check_fail(f->kit, "%s gives %.10g, expected %.10g", what,
                   element_value(&work, got[N - 1]), element_value(&work, want));
}

// --- the loss --------------------------------------------------------------------------

struct lost_waiter {
    const struct scene *scene;
    tn_buffer *buffer; // used by the copying thread alone
    tn_status status;
};

static void *lost_queue_wait_for_work(void *context)
{
    struct lost_waiter *w = context;
    const struct fixture *f = w->scene->fixture;
    w->status = f->backend->wait(f->device, 0, w->scene->points[SUBMISSIONS - 1]);
    return NULL;
}

static void *copy_until_lost(void *context)
{
    struct lost_waiter *w = context;
    const struct fixture *f = w->scene->fixture;
    unsigned char bytes[COPY] = {0};
    bool again = true;
    while (again && w->status == TN_OK) {
        again = !atomic_load(&w->scene->is_lost);
        w->status = f->backend->buffer_write(f->device, w->buffer, 0, bytes, COPY);
        if (w->status == TN_OK)
            w->status = f->backend->buffer_read(f->device, w->buffer, 0, bytes, COPY);
    }
    return NULL;
}

static void lost_queue_lose(struct scene *s)
{
    struct fixture *f = s->fixture;
    fixture_listen(f);
    tn_status status = s->loss->lose(f->device);
    check_case(f->kit);
    if (fixture_heard(f, status, "lose") != TN_OK)
        check_fail(f->kit, "lose fails with status %d", status);
}

static bool has_host_points(const struct fixture *f)
{
    return (f->info.flags & TN_DEVICE_HOST_POINTS) && TN_HAS(f->backend, signal);
}

// Submits, behind all other work, work that waits for the host, which signals when the
// device is lost.
static bool wait_behind_host(struct scene *s)
{
    struct fixture *f = s->fixture;
    const tn_point host = {1, TN_QUEUE_HOST, 0};
    const tn_submission submission = {.struct_size = sizeof(submission),
                                      .flags = TN_SUBMIT_ASYNC,
                                      .executable = s->executable,
                                      .bindings = s->bindings,
                                      .num_bindings = 2,
                                      .binding_size = sizeof(tn_binding),
                                      .waits = &host,
                                      .num_waits = 1};
    return !has_host_points(f) || fixture_submit_to(f, &submission, NULL);
}

// Loses the device while work runs: the first thread copies, the others wait for the work.
static bool lose_at_work(struct scene *s)
{
    struct fixture *f = s->fixture;
    struct lost_waiter waiters[WAITERS];
    pthread_t threads[WAITERS];
    tn_buffer *buffer = fixture_buffer(f, COPY);
    if (!buffer || !scene_prepare(s))
        return false;
    for (int i = 0; i < SUBMISSIONS; i++)
        if (!fixture_submit(f, s->executable, s->bindings, 2, TN_SUBMIT_ASYNC,
                            &s->points[i]))
            return false;
    if (!wait_behind_host(s))
        return false;
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct lost_waiter){s, buffer, TN_OK};
        if (pthread_create(&threads[i], NULL,
                           i ? lost_queue_wait_for_work : copy_until_lost, &waiters[i]))
            abort(); // checks run in a child process: its parent reports the abort
    }
    lost_queue_lose(s);
    atomic_store(&s->is_lost, true);
    if (has_host_points(f) && f->backend->signal(f->device, 1) != TN_OK)
        check_fail(f->kit, "signal fails on a lost device, where work waits for it");
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(threads[i], NULL);
        if (waiters[i].status != TN_OK && waiters[i].status != TN_ERR_DEVICE)
            check_fail(f->kit, "%s while the device is lost gives status %d",
                       i ? "a wait" : "a copy", waiters[i].status);
    }
    return true;
}

// --- calls on a lost device ------------------------------------------------------------

static void expect_lost(struct fixture *f, tn_status status, bool is_untouched,
                        const char *what)
{
    check_case(f->kit);
    if (fixture_heard(f, status, what) != TN_ERR_DEVICE)
        check_fail(f->kit, "%s on a lost device gives status %d, expected %d", what, status,
                   TN_ERR_DEVICE);
    else if (!is_untouched)
        check_fail(f->kit, "%s on a lost device writes its output", what);
    fixture_listen(f);
}

// The optional slots on a lost device.
static void check_lost_copies(struct scene *s)
{
    struct fixture *f = s->fixture;
    const tn_backend *t = f->backend;
    tn_buffer *buffer = s->bindings[0].buffer;
    tn_buffer_fd memory = {.struct_size = sizeof(memory), .fd = -7};
    if (TN_HAS(t, buffer_copy))
        expect_lost(f, t->buffer_copy(f->device, buffer, 0, s->bindings[1].buffer, 4, 4),
                    true, "buffer_copy");
    if (!fixture_shares(f))
        return;
    tn_status status = t->buffer_export_fd(f->device, buffer, 0, 4, &memory);
    expect_lost(f, status, memory.fd == -7, "buffer_export_fd");
}

static void check_lost_calls(struct scene *s)
{
    struct fixture *f = s->fixture;
    const tn_backend *t = f->backend;
    tn_buffer *buffer = s->bindings[0].buffer, *made = NULL;
    tn_executable *compiled = NULL;
    uint64_t point = 0;
    uint32_t word = UINT32_C(0xa5a5a5a5);
    const tn_submission submission = {.struct_size = sizeof(submission),
                                      .executable = s->executable,
                                      .bindings = s->bindings,
                                      .num_bindings = 2,
                                      .binding_size = sizeof(tn_binding)};
    fixture_listen(f);
    tn_status status = t->buffer_create(f->device, 64, &made);
    expect_lost(f, status, made == NULL, "buffer_create");
    status = t->segment_compile(f->device, &draft.segment, &compiled);
    expect_lost(f, status, compiled == NULL, "segment_compile");
    status = t->submit(f->device, &submission, &point);
    expect_lost(f, status, point == 0, "submit");
    if (status == TN_OK)
        t->wait(f->device, 0, point); // its buffers are destroyed next
    status = t->buffer_read(f->device, buffer, 4, &word, 4);
    expect_lost(f, status, word == UINT32_C(0xa5a5a5a5), "buffer_read");
    status = t->buffer_write(f->device, buffer, 4, &word, 4);
    expect_lost(f, status, true, "buffer_write");
    check_lost_copies(s);
    for (int i = 0; i < SUBMISSIONS; i++)
        expect_lost(f, t->wait(f->device, 0, s->points[i]), true, "wait");
    if (TN_HAS(t, buffer_map) && t->buffer_map(f->device, buffer))
        check_fail(f->kit, "buffer_map on a lost device gives memory, expected NULL");
    tn_memory_info info = {.struct_size = sizeof(info)};
    if (TN_HAS(t, memory_info) && t->memory_info(f->device, &info) != TN_OK)
        check_fail(f->kit, "memory_info fails on a lost device");
    lost_queue_lose(s); // losing a lost device again is allowed
    t->buffer_destroy(f->device, made);
    t->executable_destroy(f->device, compiled);
}

// --- several devices -------------------------------------------------------------------

// A device that was opened before the loss works after it, and a device can be opened then.
static void check_lost_others(struct scene *s)
{
    struct fixture *f = s->fixture;
    tn_device *lost = f->device;
    f->device = NULL;
    if (!fixture_open(f)) {
        f->device = lost;
        return;
    }
    tn_device *other = f->device;
    f->device = lost;
    lost_queue_lose(s);
    fixture_close(f); // closes the lost device, which was idle
    f->device = other;
    lost_queue_works(f, "another device, open when one is lost,");
    fixture_close(f);
    if (fixture_open(f))
        lost_queue_works(f, "a device that is opened after one was lost");
    fixture_close(f);
}

static bool lose_one(struct scene *s)
{
    struct fixture *f = s->fixture;
    if (!fixture_open(f))
        return false;
    if (lose_at_work(s))
        check_lost_calls(s);
    fixture_close(f);
    if (!fixture_open(f))
        return false;
    check_lost_others(s);
    return !check_failed(f->kit);
}

void check_queue_lost(struct fixture *f)
{
    const tn_device_loss *loss = find_loss(f);
    if (!loss) {
        check_skip(f->kit, "it offers no %s", TN_IFACE_DEVICE_LOSS);
        return;
    }
    fixture_close(f);
    uint64_t live = 0;
    int threads = 0;
    for (int round = 0; round < 3; round++) {
        struct scene s = {.fixture = f, .loss = loss};
        if (!lose_one(&s))
            return;
        if (round == 0) { // memory and threads that the driver keeps for good
            live = f->host.live;
            threads = count_threads();
        }
    }
    if (f->host.live > live)
        check_fail(f->kit, "devices that were lost leave %llu blocks of the host's",
                   (unsigned long long)(f->host.live - live));
    if (threads_beyond(threads))
        check_fail(f->kit, "devices that were lost leave threads");
}
