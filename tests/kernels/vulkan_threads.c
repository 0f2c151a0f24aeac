// SPDX-License-Identifier: MIT
// A Vulkan backend that several threads use at once: runs of one executable, in all queues,
// and programs made beyond what is kept.
// TENON_TEST_PLUGIN names the backend, TENON_TEST_OTHER (may be unset) the other Vulkan
// one.
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "vulkan_bench.h"

#define COUNT 64
#define BYTES (COUNT * sizeof(float))

static struct vulkan_bench bench;

static void begin(void)
{
    if (!vb_begin(&bench, check_getenv("TENON_TEST_PLUGIN")))
        cr_skip("no device is here");
}

static void end(void)
{
    cr_assert(vb_end(&bench));
}

TestSuite(vulkan_threads, .init = begin, .fini = end);

// --- programs that differ --------------------------------------------------------------

// x + x or x * 2, as the bits say: all compute x * 2^NUM_BITS.
#define NUM_BITS 10
struct doubling {
    tn_expr_insn insns[2 + NUM_BITS];
    uint64_t two;
    uint32_t output;
    tn_expr_program program;
};
static const tn_dtype f32 = TN_F32;

static void make_doubling(struct doubling *d, uint32_t bits)
{
    float two = 2;
    memset(d, 0, sizeof(*d));
    memcpy(&d->two, &(double){two}, sizeof(d->two));
    d->insns[0] = (tn_expr_insn){TN_EXPR_LOAD, TN_F32, 0, 0, 0};
    d->insns[1] = (tn_expr_insn){TN_EXPR_PARAM, TN_F32, 0, 0, 0};
    uint32_t last = 0;
    for (uint32_t i = 0; i < NUM_BITS; i++) {
        d->insns[2 + i] = bits >> i & 1 ? (tn_expr_insn){TN_EXPR_ADD, TN_F32, last, last, 0}
                                        : (tn_expr_insn){TN_EXPR_MUL, TN_F32, last, 1, 0};
        last = 2 + i;
    }
    d->output = last;
    d->program = (tn_expr_program){.struct_size = sizeof(d->program),
                                   .insns = d->insns,
                                   .input_dtypes = &f32,
                                   .output_dtypes = &f32,
                                   .outputs = &d->output,
                                   .num_insns = 2 + NUM_BITS,
                                   .num_params = 1,
                                   .num_inputs = 1,
                                   .num_outputs = 1,
                                   .name = "doubling"};
}

// Slot 0 to slot 2, by way of slot 1.
struct segment {
    tn_slot slots[3];
    tn_value values[4];
    tn_step steps[2];
    tn_executable *executable;
};

static tn_status compile(struct segment *s, const struct doubling *d)
{
    memset(s, 0, sizeof(*s));
    tn_layout layout = {.dtype = TN_F32, .rank = 1, .extent = {COUNT}, .stride = {1}};
    for (uint32_t i = 0; i < 3; i++)
        s->slots[i] = (tn_slot){.flags = TN_SLOT_READ | TN_SLOT_WRITE, .size = BYTES};
    for (uint32_t i = 0; i < 2; i++) {
        s->values[2 * i] = (tn_value){.slot = i, .layout = layout};
        s->values[2 * i + 1] = (tn_value){.slot = i + 1, .layout = layout};
        s->steps[i] = (tn_step){.struct_size = sizeof(s->steps[i]),
                                .program = &d->program,
                                .params = &d->two,
                                .inputs = &s->values[2 * i],
                                .outputs = &s->values[2 * i + 1],
                                .num_inputs = 1,
                                .num_outputs = 1,
                                .value_size = sizeof(tn_value),
                                .label = "doubling"};
    }
    return bench.backend->segment_compile(bench.device,
                                          &(tn_segment){.struct_size = sizeof(tn_segment),
                                                        .steps = s->steps,
                                                        .slots = s->slots,
                                                        .num_steps = 2,
                                                        .num_slots = 3,
                                                        .step_size = sizeof(tn_step),
                                                        .slot_size = sizeof(tn_slot)},
                                          &s->executable);
}
#define FACTOR ((float)(1u << 2 * NUM_BITS))

// --- threads ---------------------------------------------------------------------------

#define NUM_THREADS 6
#define NUM_ROUNDS 20
#define NUM_RUNS 5 // of a round, pending at once

struct thread {
    pthread_t handle;
    uint32_t number;
    const struct segment *shared;
    tn_buffer *in, *between, *out[NUM_RUNS];
    char failure[256];
};

static bool ok(struct thread *t, tn_status status)
{
    if (status != TN_OK && !t->failure[0])
        snprintf(t->failure, sizeof(t->failure), "%.255s", vb_failure);
    return status == TN_OK;
}

static uint32_t num_queues(void)
{
    return bench.info.num_queues ? bench.info.num_queues : 1;
}

// Runs the executable into every output, each run in the next queue and after the run
// before it, whose memory it uses.
static bool run(struct thread *t, tn_executable *executable, tn_point *last)
{
    for (uint32_t i = 0; i < NUM_RUNS; i++) {
        const tn_binding bindings[] = {{t->in, 0}, {t->between, 0}, {t->out[i], 0}};
        uint32_t queue = (t->number + i) % num_queues();
        const tn_submission submission = {.struct_size = sizeof(submission),
                                          .flags = TN_SUBMIT_ASYNC,
                                          .executable = executable,
                                          .bindings = bindings,
                                          .num_bindings = 3,
                                          .binding_size = sizeof(tn_binding),
                                          .waits = last,
                                          .num_waits = i > 0 && queue != last->queue,
                                          .queue = queue};
        tn_point point = {.queue = queue};
        if (!ok(t, bench.backend->submit(bench.device, &submission, &point.value)))
            return false;
        if (i > 0 && queue == last->queue && point.value <= last->value) {
            snprintf(t->failure, sizeof(t->failure), "a queue's points do not grow");
            return false;
        }
        *last = point;
    }
    return true;
}

static bool round_is_right(struct thread *t, uint32_t round, tn_executable *executable)
{
    float values[COUNT];
    tn_point last = {0};
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = (float)(t->number * 1000 + round * 10 + i);
    if (!ok(t, bench.backend->buffer_write(bench.device, t->in, 0, values, BYTES)))
        return false;
    bool submitted = run(t, executable, &last);
    if (last.value > 0 && !ok(t, bench.backend->wait(bench.device, last.queue, last.value)))
        return false;
    for (uint32_t k = 0; k < NUM_RUNS && submitted; k++) {
        float got[COUNT];
        if (!ok(t, bench.backend->buffer_read(bench.device, t->out[k], 0, got, BYTES)))
            return false;
        for (uint32_t i = 0; i < COUNT; i++)
            if (got[i] != values[i] * FACTOR) {
                snprintf(t->failure, sizeof(t->failure),
                         "thread %u, round %u, run %u, element %u: got %g, expected %g",
                         t->number, round, k, i, (double)got[i],
                         (double)(values[i] * FACTOR));
                return false;
            }
    }
    return submitted;
}

// All rounds with the shared executable but every fourth, which makes and drops its own.
static void *work(void *context)
{
    struct thread *t = context;
    bool good = ok(t, bench.backend->buffer_create(bench.device, BYTES, &t->in)) &&
                ok(t, bench.backend->buffer_create(bench.device, BYTES, &t->between));
    for (uint32_t i = 0; i < NUM_RUNS && good; i++)
        good = ok(t, bench.backend->buffer_create(bench.device, BYTES, &t->out[i]));
    for (uint32_t round = 0; round < NUM_ROUNDS && good; round++) {
        struct doubling d;
        struct segment own = {0};
        bool is_own = round % 4 == 3;
        make_doubling(&d, round * 31 + t->number % 2);
        good = !is_own || ok(t, compile(&own, &d));
        good = good &&
               round_is_right(t, round, is_own ? own.executable : t->shared->executable);
        bench.backend->executable_destroy(bench.device, own.executable);
    }
    bench.backend->buffer_destroy(bench.device, t->in);
    bench.backend->buffer_destroy(bench.device, t->between);
    for (uint32_t i = 0; i < NUM_RUNS; i++)
        bench.backend->buffer_destroy(bench.device, t->out[i]);
    return NULL;
}

Test(vulkan_threads, threads_run_one_executable_at_once)
{
    static struct thread threads[NUM_THREADS];
    struct doubling d;
    struct segment shared;
    make_doubling(&d, 0);
    if (compile(&shared, &d) != TN_OK)
        cr_fatal("%s", vb_failure);
    for (uint32_t i = 0; i < NUM_THREADS; i++) {
        threads[i] = (struct thread){.number = i, .shared = &shared};
        cr_assert(pthread_create(&threads[i].handle, NULL, work, &threads[i]) == 0);
    }
    for (uint32_t i = 0; i < NUM_THREADS; i++)
        pthread_join(threads[i].handle, NULL);
    bench.backend->executable_destroy(bench.device, shared.executable);
    for (uint32_t i = 0; i < NUM_THREADS; i++)
        if (threads[i].failure[0])
            cr_fatal("%s", threads[i].failure);
}

// --- what is kept of programs ----------------------------------------------------------

#define MAX_KEPT 512 // pipelines, as the backend promises: fewer where their code is large
#define NUM_DROPS 50
static uint32_t num_drops, num_made, least_left, most_left;

static void on_log(const char *line)
{
    unsigned left;
    num_made += strncmp(line, "made the pipeline", 17) == 0;
    if (sscanf(line, "dropped pipelines that nobody uses: %u are left", &left) != 1)
        return;
    num_drops++;
    least_left = left < least_left ? left : least_left;
    most_left = left > most_left ? left : most_left;
}

static bool computes(struct segment *s)
{
    struct thread t = {0};
    bool good = ok(&t, bench.backend->buffer_create(bench.device, BYTES, &t.in)) &&
                ok(&t, bench.backend->buffer_create(bench.device, BYTES, &t.between));
    for (uint32_t i = 0; i < NUM_RUNS && good; i++)
        good = ok(&t, bench.backend->buffer_create(bench.device, BYTES, &t.out[i]));
    good = good && round_is_right(&t, 1, s->executable);
    bench.backend->buffer_destroy(bench.device, t.in);
    bench.backend->buffer_destroy(bench.device, t.between);
    for (uint32_t i = 0; i < NUM_RUNS; i++)
        bench.backend->buffer_destroy(bench.device, t.out[i]);
    if (!good)
        printf("# %s\n", t.failure);
    return good;
}

Test(vulkan_threads, programs_beyond_the_bound_are_dropped)
{
    struct doubling used, d;
    struct segment held, s;
    least_left = UINT32_MAX;
    vb_on_log = on_log;
    make_doubling(&used, 1023);
    cr_assert(compile(&held, &used) == TN_OK);
    for (uint32_t i = 0; i < MAX_KEPT + NUM_DROPS && num_drops < NUM_DROPS; i++) {
        make_doubling(&d, 300 + i);
        if (compile(&s, &d) != TN_OK)
            cr_fatal("%s", vb_failure);
        bench.backend->executable_destroy(bench.device, s.executable);
    }
    cr_assert(num_drops == NUM_DROPS);
    cr_assert(least_left >= MAX_KEPT / 2 && most_left <= MAX_KEPT);
    cr_assert(most_left - least_left <= 1);
    cr_assert(computes(&held)); // the oldest, but in use
    uint32_t before = num_made;
    cr_assert(compile(&s, &d) == TN_OK); // the last is there
    bench.backend->executable_destroy(bench.device, s.executable);
    cr_assert(num_made == before);
    make_doubling(&d, 300); // the first is made again
    cr_assert(compile(&s, &d) == TN_OK);
    cr_assert(num_made == before + 1);
    cr_assert(computes(&s));
    bench.backend->executable_destroy(bench.device, s.executable);
    bench.backend->executable_destroy(bench.device, held.executable);
    vb_on_log = NULL;
}

// --- fork ------------------------------------------------------------------------------

// The drivers that this process has opened are those that the other plugin would open.
Test(vulkan_threads, a_child_by_fork_opens_no_other_plugin)
{
    int status = 0;
    const char *other = getenv("TENON_TEST_OTHER");
    if (!other)
        cr_skip("one Vulkan plugin is built");
    pid_t child = fork();
    if (child == 0) {
        uint32_t count;
        const tn_backend *backend = vb_load(other)->query(TN_IFACE_BACKEND);
        tn_status got = backend->device_count(&vb_host, &count);
        _exit(got == TN_ERR_NOT_FOUND && strstr(vb_failure, "before fork()") ? 0 : 1);
    }
    cr_assert(child > 0);
    cr_assert(waitpid(child, &status, 0) == child);
    cr_assert(status == 0);
}
