// SPDX-License-Identifier: MIT
// Several queues, which wait for each other, or for the host, only where a submission says
// so; and several threads that submit at once, to one or several queues, with one
// executable.
#include "queues.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include "../segment/arithmetic.h"

enum { N = 4000, CHAIN = 100 };

static struct draft draft;
static struct arithmetic work;

static bool has_queues(struct fixture *f)
{
    if (fixture_num_queues(f) > 1)
        return true;
    check_skip(f->kit, "its devices have one queue");
    return false;
}

// Drafts out = 3 * x + 1 (arithmetic.h) over `count` elements; slot 0 is x, slot 1 is out.
// False: skipped.
static bool queues_draft(struct fixture *f, int64_t count)
{
    if (!arithmetic_begin(f, &work))
        return false;
    draft_start(&draft);
    draft_slot(&draft, 0, (uint64_t)count * 4);
    draft_slot(&draft, 0, (uint64_t)count * 4);
    tn_value in = arithmetic_value(&work, 0, count),
             out = arithmetic_value(&work, 1, count);
    draft_affine(&draft, &work, &in, &out, 3, 1);
    return true;
}

// The element that `times` runs make of the number n.
static uint32_t kit_queues_worked(uint32_t n, int times)
{
    return affine_repeated(&work, element_of(&work, n), 3, 1, times);
}

// Creates a buffer in which element i is first + i.
static tn_buffer *queues_filled(struct fixture *f, uint32_t count, uint32_t first)
{
    uint32_t values[N];
    for (uint32_t i = 0; i < count; i++)
        values[i] = element_of(&work, first + i);
    tn_buffer *buffer = fixture_buffer(f, count * 4);
    return buffer && fixture_write(f, buffer, 0, values, count * 4) ? buffer : NULL;
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

// --- independent queues ----------------------------------------------------------------

// State of a kernel that runs until the check opens the gate, or gives up after 3 s.
static struct gate {
    atomic_bool is_entered, is_open, gave_up;
    atomic_bool was_passed; // a kernel that waits for the gate's point has run
} gate;

static tn_status launch_gate(const tn_cpu_call *call)
{
    (void)call;
    atomic_store(&gate.is_entered, true);
    for (int i = 0; i < 3000 && !atomic_load(&gate.is_open); i++)
        pause_ms(1);
    atomic_store(&gate.gave_up, !atomic_load(&gate.is_open));
    return TN_OK;
}

static const tn_cpu_kernel gate_payload = {sizeof(gate_payload), 0, launch_gate};
static const tn_kernel gate_kernel = {.struct_size = sizeof(gate_kernel),
                                      .family = TN_FAMILY_CPU,
                                      .name = "kit",
                                      .payload = &gate_payload};

static tn_status launch_behind(const tn_cpu_call *call)
{
    (void)call;
    if (!atomic_load(&gate.is_open))
        atomic_store(&gate.was_passed, true);
    return TN_OK;
}

static const tn_cpu_kernel behind_payload = {sizeof(behind_payload), 0, launch_behind};
static const tn_kernel behind_kernel = {.struct_size = sizeof(behind_kernel),
                                        .family = TN_FAMILY_CPU,
                                        .name = "kit",
                                        .payload = &behind_payload};

// A thread that submits the gate's kernel.
struct visitor {
    struct fixture *fixture;
    tn_executable *executable;
    uint32_t queue;
    uint64_t point;
    tn_status status;
    atomic_bool has_returned;
};

// Runs on a thread of its own, because submit may execute the kernel before it returns.
static void *submit_gate(void *context)
{
    struct visitor *v = context;
    const tn_submission submission = {.struct_size = sizeof(submission),
                                      .flags = TN_SUBMIT_ASYNC,
                                      .executable = v->executable,
                                      .queue = v->queue};
    v->status = v->fixture->backend->submit(v->fixture->device, &submission, &v->point);
    atomic_store(&v->has_returned, true);
    return NULL;
}

// Compiles one step of the kernel, without operands. `gated` must outlive the executable.
static tn_executable *compile_kernel(struct fixture *f, struct draft *gated,
                                     const tn_kernel *kernel)
{
    static const tn_primitive primitive = {.struct_size = sizeof(primitive),
                                           .id = "kit.gate/1"};
    const tn_value none = {0};
    draft_start(gated);
    draft_kernel(gated, &primitive, kernel, &none, 0, &none)->num_outputs = 0;
    return fixture_compile(f, &gated->segment);
}

// Occupies the queue with the gate's kernel. False: the check has failed.
static bool close_gate(struct fixture *f, uint32_t queue, struct visitor *v,
                       pthread_t *thread)
{
    static struct draft gated;
    gate.is_entered = gate.is_open = gate.gave_up = gate.was_passed = false;
    *v = (struct visitor){.fixture = f, .queue = queue};
    v->executable = compile_kernel(f, &gated, &gate_kernel);
    if (!v->executable)
        return false;
    if (pthread_create(thread, NULL, submit_gate, v))
        abort(); // checks run in a child process: its parent reports the abort
    while (!atomic_load(&gate.is_entered) && !atomic_load(&v->has_returned))
        pause_ms(1);
    for (int i = 0; i < 3000 && !atomic_load(&gate.is_entered); i++)
        pause_ms(1);
    return true;
}

static void open_gate(struct fixture *f, struct visitor *v, pthread_t thread)
{
    atomic_store(&gate.is_open, true);
    pthread_join(thread, NULL);
    f->points[v->queue] = v->point;
    if (v->status != TN_OK)
        check_fail(f->kit, "submit to queue %u gives status %d", v->queue, v->status);
    fixture_wait_all(f);
}

// Runs work on each queue but `busy`, which the gate's kernel occupies.
static void run_elsewhere(struct fixture *f, uint32_t busy, tn_executable *executable)
{
    for (uint32_t i = 0; i < fixture_num_queues(f); i++) {
        uint32_t got = 0, count = N;
        tn_binding bindings[2] = {{queues_filled(f, count, i), 0},
                                  {queues_filled(f, count, 0), 0}};
        const tn_submission submission = {.struct_size = sizeof(submission),
                                          .flags = i % 2 ? TN_SUBMIT_ASYNC : 0,
                                          .executable = executable,
                                          .bindings = bindings,
                                          .num_bindings = 2,
                                          .binding_size = sizeof(tn_binding),
                                          .queue = i};
        if (i == busy)
            continue;
        check_case(f->kit);
        if (!bindings[0].buffer || !bindings[1].buffer ||
            !fixture_submit_to(f, &submission, NULL) ||
            !fixture_wait_for(f, (tn_point){f->points[i], i, 0}) ||
            !fixture_read(f, bindings[1].buffer, 0, &got, 4))
            return;
        if (atomic_load(&gate.gave_up))
            check_fail(f->kit, "work of queue %u waits for that of queue %u", i, busy);
        else if (got != kit_queues_worked(i, 1))
            check_fail(f->kit,
                       "queue %u computes %.10g while queue %u is busy, expected %.10g", i,
                       element_value(&work, got), busy,
                       element_value(&work, kit_queues_worked(i, 1)));
    }
}

// True when the backend runs C kernels: only they can wait for the check.
static bool runs_kernels(const struct fixture *f)
{
    return fixture_consumes(f, TN_FAMILY_CPU) && fixture_computes(f);
}

void check_queue_apart(struct fixture *f)
{
    if (!has_queues(f) || !queues_draft(f, N))
        return;
    if (!runs_kernels(f)) {
        check_skip(f->kit, "it runs no functions in C, which could take their time");
        return;
    }
    tn_executable *executable = fixture_compile(f, &draft.segment);
    for (uint32_t busy = 0; busy < 2 && executable && !check_failed(f->kit); busy++) {
        struct visitor visitor;
        pthread_t thread;
        if (!close_gate(f, busy, &visitor, &thread))
            return;
        run_elsewhere(f, busy, executable);
        open_gate(f, &visitor, thread);
    }
}

// --- queues that wait for each other ---------------------------------------------------

// Writes the points that a submission to `queue` waits for: the last point of queue
// `before` and, at random, of all other queues; none of `queue` itself. Returns how many.
static uint32_t points_before(struct fixture *f, uint32_t queue, uint32_t before,
                              tn_point *out)
{
    bool all = random_below(f->kit, 2);
    uint32_t count = 0;
    for (uint32_t i = 0; i < fixture_num_queues(f); i++)
        if (i != queue && (all || i == before))
            out[count++] = (tn_point){f->points[i], i, 0};
    return count;
}

// While the gate's kernel occupies queue 0, work of every other queue waits for its point.
static void check_queue_behind(struct fixture *f)
{
    static struct draft behind;
    struct visitor visitor;
    pthread_t thread;
    tn_executable *executable = compile_kernel(f, &behind, &behind_kernel);
    if (!executable || !close_gate(f, 0, &visitor, &thread))
        return;
    for (int i = 0; i < 500 && !atomic_load(&visitor.has_returned); i++)
        pause_ms(1);
    bool knows_point = atomic_load(&visitor.has_returned); // else submit runs the kernel
    for (uint32_t i = 1; knows_point && i < fixture_num_queues(f); i++) {
        const tn_point gate_point = {visitor.point, 0, 0};
        const tn_submission submission = {.struct_size = sizeof(submission),
                                          .flags = TN_SUBMIT_ASYNC,
                                          .executable = executable,
                                          .waits = &gate_point,
                                          .num_waits = 1,
                                          .queue = i};
        check_case(f->kit);
        if (!fixture_submit_to(f, &submission, NULL))
            break;
    }
    pause_ms(20);
    open_gate(f, &visitor, thread);
    if (gate.was_passed)
        check_fail(f->kit, "work begins before the point that it waits for is reached");
}

// Each submission reads the output of the one before, mostly on another queue. The array of
// points is borrowed until submit returns, and is overwritten then.
static void check_queue_chain(struct fixture *f)
{
    static uint32_t got[N];
    tn_point waits[TN_MAX_QUEUES];
    uint32_t before = 0;
    if (!queues_draft(f, N))
        return;
    tn_executable *executable = fixture_compile(f, &draft.segment);
    tn_buffer *buffers[2] = {queues_filled(f, N, 5), queues_filled(f, N, 0)};
    if (!executable || !buffers[0] || !buffers[1])
        return;
    for (int i = 0; i < CHAIN; i++) {
        tn_binding bindings[2] = {{buffers[i % 2], 0}, {buffers[1 - i % 2], 0}};
        uint32_t queue = (uint32_t)random_below(f->kit, fixture_num_queues(f));
        const tn_submission submission = {
            .struct_size = sizeof(submission),
            .flags = random_below(f->kit, 4) ? TN_SUBMIT_ASYNC : 0,
            .executable = executable,
            .bindings = bindings,
            .num_bindings = 2,
            .binding_size = sizeof(tn_binding),
            .waits = waits,
            .num_waits = points_before(f, queue, before, waits),
            .queue = queue,
        };
        check_case(f->kit);
        if (!fixture_submit_to(f, &submission, NULL))
            return;
        memset(waits, 0xff, sizeof(waits));
        before = queue;
    }
    if (!fixture_wait_for(f, (tn_point){f->points[before], before, 0}) ||
        !fixture_computes(f) || !fixture_read(f, buffers[0], 0, got, sizeof(got)))
        return;
    for (uint32_t i = 0; i < N; i++)
        if (got[i] != kit_queues_worked(5 + i, CHAIN)) {
            check_fail(f->kit,
                       "%d submissions, each after the one before on another queue: "
                       "element %u is %.10g, expected %.10g",
                       CHAIN, i, element_value(&work, got[i]),
                       element_value(&work, kit_queues_worked(5 + i, CHAIN)));
            return;
        }
}

void check_queue_waits(struct fixture *f)
{
    if (!has_queues(f))
        return;
    if (runs_kernels(f))
        check_queue_behind(f);
    if (!check_failed(f->kit))
        check_queue_chain(f);
}

// --- work that waits for the host ------------------------------------------------------

// A host thread that signals when it is told to, or gives up and signals after 2 s: then a
// call that should have returned has waited for it.
struct signaller {
    struct fixture *fixture;
    pthread_t thread;
    atomic_bool is_told, gave_up;
    tn_status status;
};

static void *signal_when_told(void *context)
{
    struct signaller *s = context;
    for (int i = 0; i < 2000 && !atomic_load(&s->is_told); i++)
        pause_ms(1);
    atomic_store(&s->gave_up, !atomic_load(&s->is_told));
    s->status = s->fixture->backend->signal(s->fixture->device, 3);
    return NULL;
}

static bool submit_after_host(struct fixture *f, tn_executable *executable,
                              const tn_binding *bindings, uint64_t value, uint32_t queue)
{
    const tn_point host = {value, TN_QUEUE_HOST, 0};
    const tn_submission submission = {.struct_size = sizeof(submission),
                                      .executable = executable,
                                      .bindings = bindings,
                                      .num_bindings = 2,
                                      .binding_size = sizeof(tn_binding),
                                      .waits = value ? &host : NULL,
                                      .num_waits = value > 0,
                                      .queue = queue};
    check_case(f->kit);
    return fixture_submit_to(f, &submission, NULL);
}

// Waits for the queue, and expects the program's result of numbers from `first` on.
static bool queues_computed(struct fixture *f, uint32_t queue, tn_buffer *buffer,
                            uint32_t first, const char *what)
{
    static uint32_t got[N];
    if (!fixture_wait_for(f, (tn_point){f->points[queue], queue, 0}) ||
        !fixture_read(f, buffer, 0, got, sizeof(got)))
        return false;
    for (uint32_t i = 0; i < N && fixture_computes(f); i++)
        if (got[i] != kit_queues_worked(first + i, 1)) {
            check_fail(f->kit, "%s: element %u is %.10g, expected %.10g", what, i,
                       element_value(&work, got[i]),
                       element_value(&work, kit_queues_worked(first + i, 1)));
            return false;
        }
    return true;
}

// While work of queue 0 waits for the host, `submit` returns, copies are made and other
// queues compute; the work sees what the host writes before it signals.
static void check_queue_signalled(struct fixture *f, tn_executable *executable,
                                  const tn_binding *bindings)
{
    struct signaller s = {.fixture = f};
    uint32_t other = fixture_num_queues(f) - 1, values[N];
    tn_binding apart[2] = {{queues_filled(f, N, 50), 0}, {queues_filled(f, N, 0), 0}};
    if (!apart[0].buffer || !apart[1].buffer)
        return;
    if (pthread_create(&s.thread, NULL, signal_when_told, &s))
        abort(); // checks run in a child process: its parent reports the abort
    bool ok = submit_after_host(f, executable, bindings, 2, 0);
    if (ok && other > 0)
        ok = submit_after_host(f, executable, apart, 0, other) &&
             queues_computed(f, other, apart[1].buffer, 50, "work of another queue");
    pause_ms(100); // work that wrongly does not wait would compute now
    for (uint32_t i = 0; i < N; i++)
        values[i] = element_of(&work, 7 + i);
    ok = ok && fixture_write(f, bindings[0].buffer, 0, values, sizeof(values));
    atomic_store(&s.is_told, true);
    pthread_join(s.thread, NULL);
    if (s.gave_up)
        check_fail(f->kit,
                   "submit, a copy or another queue waits for a point that the host "
                   "has not signalled yet");
    else if (s.status != TN_OK)
        check_fail(f->kit, "signal gives status %d", s.status);
    else if (ok)
        queues_computed(f, 0, bindings[1].buffer, 7, "work that waits for the host");
}

void check_queue_host(struct fixture *f)
{
    if (!(f->info.flags & TN_DEVICE_HOST_POINTS)) {
        check_skip(f->kit, "its devices do not wait for the host");
        return;
    }
    if (!TN_HAS(f->backend, signal)) {
        check_fail(f->kit, "TN_DEVICE_HOST_POINTS is set, and the backend has no signal");
        return;
    }
    if (!queues_draft(f, N))
        return;
    tn_executable *executable = fixture_compile(f, &draft.segment);
    tn_binding bindings[2] = {{queues_filled(f, N, 900), 0}, {queues_filled(f, N, 0), 0}};
    if (!executable || !bindings[0].buffer || !bindings[1].buffer)
        return;
    check_queue_signalled(f, executable, bindings);
    // Point 3 reached points 1 and 2, too. Point 4 is signalled before a submission waits
    // for it.
    if (!check_failed(f->kit) && submit_after_host(f, executable, bindings, 1, 0) &&
        queues_computed(f, 0, bindings[1].buffer, 7,
                        "work that waits for an earlier point") &&
        f->backend->signal(f->device, 4) == TN_OK &&
        submit_after_host(f, executable, bindings, 4, 0))
        queues_computed(f, 0, bindings[1].buffer, 7,
                        "work that waits for the point of now");
}

// --- threads that submit ---------------------------------------------------------------

enum { THREADS = 16, RUNS = 200, ELEMENTS = 256 };

struct submitter {
    struct fixture *fixture;
    tn_executable *executable; // shared by all threads
    tn_buffer *buffers[2];     // used by this thread alone
    uint32_t queue, first;
    char failure[160];
};

// Runs the program once, from one of the thread's buffers to the other.
static bool run_on(struct submitter *s, tn_executable *executable, int run, uint32_t flags,
                   bool waits)
{
    const tn_backend *t = s->fixture->backend;
    tn_device *device = s->fixture->device;
    tn_binding bindings[2] = {{s->buffers[run % 2], 0}, {s->buffers[1 - run % 2], 0}};
    const tn_submission submission = {.struct_size = sizeof(submission),
                                      .flags = flags,
                                      .executable = executable,
                                      .bindings = bindings,
                                      .num_bindings = 2,
                                      .binding_size = sizeof(tn_binding),
                                      .queue = s->queue};
    uint64_t point = 0;
    const char *what = "submit";
    tn_status status = t->submit(device, &submission, &point);
    if (status == TN_OK && waits) {
        what = "wait";
        status = t->wait(device, s->queue, point);
    }
    if (status != TN_OK)
        format_text(s->failure, sizeof(s->failure), "%s gives status %d", what, status);
    return status == TN_OK;
}

// Like run_on, with an executable that is compiled for this run.
static bool run_on_its_own(struct submitter *s, int run)
{
    const tn_backend *t = s->fixture->backend;
    tn_device *device = s->fixture->device;
    tn_executable *executable = NULL;
    tn_status status = t->segment_compile(device, &draft.segment, &executable);
    if (status != TN_OK) {
        format_text(s->failure, sizeof(s->failure), "segment_compile gives status %d",
                    status);
        return false;
    }
    bool ok = run_on(s, executable, run, 0, true);
    t->executable_destroy(device, executable);
    return ok;
}

// True when the thread's result after `runs` runs is right.
static bool submitter_holds(struct submitter *s, int runs)
{
    const tn_backend *t = s->fixture->backend;
    uint32_t got[ELEMENTS] = {0};
    t->buffer_read(s->fixture->device, s->buffers[runs % 2], 0, got, sizeof(got));
    for (uint32_t i = 0; i < ELEMENTS && fixture_computes(s->fixture); i++) {
        uint32_t want = kit_queues_worked(s->first + i, runs);
        if (got[i] != want) {
            format_text(s->failure, sizeof(s->failure),
                        "after %d runs element %u is %.10g, expected %.10g", runs, i,
                        element_value(&work, got[i]), element_value(&work, want));
            return false;
        }
    }
    return true;
}

static void *submit_often(void *context)
{
    struct submitter *s = context;
    for (int run = 0; run < RUNS; run++) {
        bool waits = run % 10 == 9;
        bool ok = run % 40 == 39
                      ? run_on_its_own(s, run)
                      : run_on(s, s->executable, run, run % 3 ? 0 : TN_SUBMIT_ASYNC, waits);
        if (!ok || (waits && !submitter_holds(s, run + 1)))
            break;
    }
    return NULL;
}

void check_queue_at_once(struct fixture *f)
{
    struct submitter submitters[THREADS];
    pthread_t threads[THREADS];
    if (!queues_draft(f, ELEMENTS))
        return;
    tn_executable *executable = fixture_compile(f, &draft.segment);
    for (uint32_t i = 0; i < THREADS; i++) {
        submitters[i] = (struct submitter){
            .fixture = f,
            .executable = executable,
            .buffers = {queues_filled(f, ELEMENTS, 100 * i), queues_filled(f, ELEMENTS, 0)},
            .queue = i % fixture_num_queues(f),
            .first = 100 * i,
        };
        if (!executable || !submitters[i].buffers[0] || !submitters[i].buffers[1])
            return;
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, submit_often, &submitters[i]))
            abort(); // checks run in a child process: its parent reports the abort
    for (int i = 0; i < THREADS; i++) {
        check_case(f->kit);
        pthread_join(threads[i], NULL);
        if (submitters[i].failure[0])
            check_fail(f->kit, "%d threads submit, each with buffers of its own: %s",
                       THREADS, submitters[i].failure);
    }
}
