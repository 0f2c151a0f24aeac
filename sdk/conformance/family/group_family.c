// SPDX-License-Identifier: MIT
// Kernel families of a backend: the kit's own kernels check that they get the call that
// <tenon/kernel.h> promises, and that their failures are reported.
#include <stdatomic.h>
#include "groups.h"
#include "../segment/draft.h"
#include "family.h"
#include "family_shader.h" // family_glsl_code, family_spirv_code

enum { N = 1000, GAP = 3, SCRATCH = 5000, ADD = 11, MOST_WORKERS = 1024 };

// --- the primitive ---------------------------------------------------------------------

struct attrs {
    int64_t add;
};

static const tn_attr_field fields[] = {
    {.name = "add",
     .kind = TN_ATTR_I64,
     .offset = offsetof(struct attrs, add),
     .doc = "what is added"},
};
static const struct attrs attrs = {ADD};
static const tn_input_info inputs[] = {
    {.name = "x", .doc = "what is doubled"},
    {.name = "bias", .flags = TN_INPUT_OPTIONAL, .doc = "never given"},
};

static tn_status double_it(const tn_cpu_call *call);

static const tn_primitive primitive = {
    .struct_size = sizeof(primitive),
    .id = "conformance.double/1",
    .doc = "2 x + its extent + add.",
    TN_INPUTS(inputs),
    .num_outputs = 1,
    .attrs = {.fields = fields,
              .num_fields = 1,
              .field_size = sizeof(fields[0]),
              .size = sizeof(struct attrs)},
    .reference = double_it,
};

// --- a cpu.c/1 kernel that checks its call ---------------------------------------------

// How the kernel shall behave, and what it observes. Cleared by family_group_consumes().
static struct {
    bool was_called, should_fail;
    bool should_loop;
    uint64_t live;
    const struct fake_host *host;
} seen;

static void see_layout(const char *what, const tn_layout *got, int64_t stride)
{
    if (got->dtype != TN_I32 || got->rank != 1 || got->extent[0] != N ||
        got->stride[0] != stride || got->offset != stride)
        fault_note("the layout of %s is not the step's", what);
}

static void see_call(const tn_cpu_call *call)
{
    if (call->struct_size < TN_END_OF(call, parallel_for) || call->flags)
        fault_note("struct_size is %u, flags are %#x", call->struct_size, call->flags);
    if (!call->host || !call->host->fail)
        fault_note("there is no host");
    if (call->attrs != &attrs)
        fault_note("attrs are not the step's");
    if (call->num_inputs != 2 || call->num_outputs != 1)
        fault_note("got %u inputs and %u outputs, expected 2 and 1", call->num_inputs,
                   call->num_outputs);
    else if (call->inputs[1].data || call->inputs[1].layout.dtype != TN_DTYPE_NONE)
        fault_note("an input that is not given has data");
    if (call->num_threads < 1)
        fault_note("num_threads is 0");
    if (!call->parallel_for)
        fault_note("parallel_for is NULL");
    see_layout("the input", &call->inputs[0].layout, GAP);
    see_layout("the output", &call->outputs[0].layout, 1);
}

static void see_scratch(const tn_cpu_call *call)
{
    if (call->scratch_size != SCRATCH || !call->scratch)
        fault_note("asked for %d bytes of scratch, got %llu at %p", SCRATCH,
                   (unsigned long long)call->scratch_size, call->scratch);
    else if ((uintptr_t)call->scratch % 64)
        fault_note("scratch lies at %p, not aligned to 64", call->scratch);
    else
        memset(call->scratch, 0xee, SCRATCH);
}

// --- loops -----------------------------------------------------------------------------

struct family_loop {
    _Atomic uint8_t visits[N];
    int64_t n, grain;
    uint32_t num_threads;
    _Atomic uint8_t busy[MOST_WORKERS];
    _Atomic int wrong, wrong_worker;
};

static void family_group_visit(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    struct family_loop *loop = context;
    if (begin < 0 || end > loop->n || begin >= end ||
        (end - begin < loop->grain && end != loop->n))
        loop->wrong = 1;
    bool is_own = worker < loop->num_threads && worker < MOST_WORKERS &&
                  atomic_exchange(&loop->busy[worker], 1) == 0;
    if (!is_own)
        loop->wrong_worker = 1;
    for (int64_t i = begin; i < end && i < N && i >= 0; i++)
        loop->visits[i]++;
    if (is_own)
        loop->busy[worker] = 0;
}

static void see_loops(const tn_cpu_call *call)
{
    static const int64_t sizes[][2] = {{0, 1}, {1, 1},  {2, 1},    {7, 3},
                                       {N, 1}, {N, 10}, {N, 2 * N}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        static struct family_loop loop;
        memset(&loop, 0, sizeof(loop));
        loop.n = sizes[i][0];
        loop.grain = sizes[i][1];
        loop.num_threads = call->num_threads;
        call->parallel_for(call, loop.n, loop.grain, family_group_visit, &loop);
        for (int64_t k = 0; k < N; k++)
            if (loop.visits[k] != (k < loop.n))
                fault_note(
                    "parallel_for over %lld, at least %lld at a time: %lld is visited %d "
                    "times",
                    (long long)loop.n, (long long)loop.grain, (long long)k, loop.visits[k]);
        if (loop.wrong_worker)
            fault_note(
                "parallel_for with %u threads: a worker's number is not below that, or two "
                "bodies that run at once have one",
                call->num_threads);
        if (loop.wrong)
            fault_note(
                "parallel_for over %lld, at least %lld at a time: a piece is shorter, "
                "empty "
                "or outside",
                (long long)loop.n, (long long)loop.grain);
    }
}

static tn_status double_it(const tn_cpu_call *call)
{
    seen.was_called = true;
    if (seen.should_fail)
        return call->host->fail(call->host, TN_ERR_UNSUPPORTED, "the kit's kernel fails");
    see_call(call);
    if (call->scratch_size)
        see_scratch(call);
    if (seen.should_loop)
        see_loops(call);
    const int32_t *x = call->inputs[0].data;
    int32_t *y = call->outputs[0].data;
    for (int64_t i = 0; i < N; i++)
        y[1 + i] =
            2 * x[GAP + i * GAP] + N + (int32_t)((const struct attrs *)call->attrs)->add;
    return TN_OK;
}

static const tn_cpu_kernel cpu_payload = {.struct_size = sizeof(cpu_payload),
                                          .launch = double_it};
static const tn_kernel cpu_kernel = {
    .struct_size = sizeof(cpu_kernel),
    .primitive = "conformance.double/1",
    .family = TN_FAMILY_CPU,
    .name = "kit",
    .payload = &cpu_payload,
};

// --- a step ----------------------------------------------------------------------------

static struct draft draft;

// Drafts a step y = double(x), run by `kernel` or, if NULL, by the reference. Slots: x, y,
// and a scratch slot if `scratch` is not 0.
static tn_step *draft_double(struct fixture *f, const tn_kernel *kernel, uint64_t scratch)
{
    draft_start(&draft);
    for (int i = 0; i < 2; i++)
        draft_slot(&draft, 0, (N + 1) * GAP * 4);
    tn_value in[2] = {flat_value(0, TN_I32, N), {.layout.dtype = TN_DTYPE_NONE}};
    tn_value out = flat_value(1, TN_I32, N);
    in[0].layout.stride[0] = in[0].layout.offset = GAP;
    out.layout.offset = 1;
    tn_step *step = draft_kernel(&draft, &primitive, kernel, in, 2, &out);
    step->attrs = &attrs;
    if (scratch) {
        uint64_t at = f->info.buffer_alignment > 64 ? f->info.buffer_alignment : 64;
        step->scratch_slot = draft_slot(&draft, TN_SLOT_SCRATCH, at + scratch);
        step->scratch_offset = at;
        step->scratch_size = scratch;
    }
    return step;
}

static bool family_group_bind_slots(struct fixture *f, tn_binding bindings[3])
{
    static int32_t x[(N + 1) * GAP];
    for (int i = 0; i < (N + 1) * GAP; i++)
        x[i] = i;
    for (uint32_t i = 0; i < draft.segment.num_slots; i++) {
        bindings[i] = (tn_binding){fixture_buffer(f, draft.slots[i].size), 0};
        if (!bindings[i].buffer ||
            (i < 2 && !fixture_write(f, bindings[i].buffer, 0, x, sizeof(x))))
            return false;
    }
    return true;
}

static void expect_doubled(struct fixture *f, tn_buffer *buffer)
{
    static int32_t y[N + 2];
    if (!fixture_computes(f) || !fixture_read(f, buffer, 0, y, sizeof(y)))
        return;
    for (int i = 0; i < N; i++)
        if (y[1 + i] != 2 * GAP * (1 + i) + N + ADD) {
            check_fail(f->kit, "element %d is %d, expected %d", i, y[1 + i],
                       2 * GAP * (1 + i) + N + ADD);
            return;
        }
    if (y[0] != 0 || y[N + 1] != N + 1)
        check_fail(f->kit, "something is written outside of the output");
}

static void family_group_run(struct fixture *f)
{
    tn_binding bindings[3];
    uint64_t point;
    tn_executable *executable = fixture_compile(f, &draft.segment);
    if (executable && family_group_bind_slots(f, bindings) &&
        fixture_submit(f, executable, bindings, draft.segment.num_slots, 0, &point) &&
        fixture_wait(f, point))
        expect_doubled(f, bindings[1].buffer);
    if (!fixture_computes(f))
        check_skip(f->kit, "it computes nothing");
}

// --- cpu.c/1 ---------------------------------------------------------------------------

static bool family_group_consumes(struct fixture *f, const char *family)
{
    uint32_t dtypes = f->info.dtypes ? f->info.dtypes : TN_FIRST_DTYPES;
    bool can = fixture_consumes(f, family) && dtypes & TN_DTYPE_BIT(TN_I32);
    if (!can)
        check_skip(f->kit, "it does not consume %s", family);
    memset(&seen, 0, sizeof(seen));
    fault_clear();
    return can;
}

static void run_cpu(struct fixture *f, const tn_kernel *kernel, uint64_t scratch,
                    bool loops)
{
    if (!family_group_consumes(f, TN_FAMILY_CPU))
        return;
    seen.should_loop = loops;
    draft_double(f, kernel, scratch);
    family_group_run(f);
    if (fixture_computes(f) && !seen.was_called && !check_failed(f->kit))
        check_fail(f->kit, "the kernel is not called");
    if (fault_text()[0])
        check_fail(f->kit, "tn_cpu_call: %s", fault_text());
}

static void check_family_call(struct fixture *f)
{
    run_cpu(f, &cpu_kernel, 0, false);
}

static void check_family_scratch(struct fixture *f)
{
    run_cpu(f, &cpu_kernel, SCRATCH, false);
}

static void check_family_loop(struct fixture *f)
{
    run_cpu(f, &cpu_kernel, 0, true);
}

static void check_family_reference(struct fixture *f)
{
    run_cpu(f, NULL, 0, false);
}

// --- kernels with effects --------------------------------------------------------------

enum { EFFECTS = 12 };

// The numbers of the steps, in the order in which they ran.
static struct family_effects {
    atomic_uint count;
    int64_t numbers[EFFECTS];
} effects;

static tn_status launch_effect(const tn_cpu_call *call)
{
    uint32_t at = atomic_fetch_add(&effects.count, 1);
    if (at < EFFECTS)
        effects.numbers[at] = *(const int64_t *)call->attrs;
    return TN_OK;
}

// Steps without common bytes must still run in order, since they name one domain of
// effects.
static void check_family_effects(struct fixture *f)
{
    static const tn_primitive effect = {.struct_size = sizeof(effect),
                                        .flags = TN_PRIM_EFFECT,
                                        .id = "kit.effect/1",
                                        .effects = "kit.order"};
    static const tn_cpu_kernel payload = {sizeof(payload), 0, launch_effect};
    static const tn_kernel kernel = {.struct_size = sizeof(kernel),
                                     .family = TN_FAMILY_CPU,
                                     .name = "kit",
                                     .payload = &payload};
    static int64_t numbers[EFFECTS];
    const tn_value none = {0};
    if (!family_group_consumes(f, TN_FAMILY_CPU))
        return;
    draft_start(&draft);
    for (int64_t i = 0; i < EFFECTS; i++) {
        numbers[i] = i;
        tn_step *step = draft_kernel(&draft, &effect, &kernel, &none, 0, &none);
        step->num_outputs = 0;
        step->attrs = &numbers[i];
    }
    atomic_store(&effects.count, 0);
    tn_executable *executable = fixture_compile(f, &draft.segment);
    check_case(f->kit);
    if (!executable || !fixture_submit(f, executable, NULL, 0, TN_SUBMIT_ASYNC, NULL) ||
        !fixture_wait(f, f->points[0]) || !fixture_computes(f))
        return;
    if (effects.count != EFFECTS)
        check_fail(f->kit, "%u of %d steps with effects ran", effects.count, EFFECTS);
    for (uint32_t i = 0; i < EFFECTS && !check_failed(f->kit); i++)
        if (effects.numbers[i] != (int64_t)i)
            check_fail(f->kit, "of steps with effects of one domain number %d runs as %u",
                       (int)effects.numbers[i], i);
}

// --- kernels that fail -----------------------------------------------------------------

static tn_status wait_failing(struct fixture *f, uint64_t point)
{
    fixture_listen(f);
    return fixture_heard(f, f->backend->wait(f->device, 0, point), "wait");
}

// Submits and waits. Returns the first failing status; *out_point is the point to wait for,
// or 0 when submit failed.
static tn_status run_failing(struct fixture *f, tn_executable *executable,
                             const tn_binding *bindings, uint32_t flags,
                             uint64_t *out_point)
{
    tn_submission submission = {.struct_size = sizeof(submission),
                                .flags = flags,
                                .executable = executable,
                                .bindings = bindings,
                                .num_bindings = draft.segment.num_slots,
                                .binding_size = sizeof(tn_binding)};
    *out_point = 0;
    fixture_listen(f);
    tn_status status = f->backend->submit(f->device, &submission, out_point);
    if (fixture_heard(f, status, "submit") != TN_OK) {
        *out_point = 0;
        return status;
    }
    return wait_failing(f, *out_point);
}

// Failed work of queue 0 must not fail other queues: neither where their points have the
// same values, nor where their work waits for the failed point.
static void expect_others_work(struct fixture *f, tn_executable *executable,
                               const tn_binding *bindings)
{
    enum { TIMES = 8 };
    uint64_t failed = 0;
    if (fixture_num_queues(f) < 2)
        return;
    seen.should_fail = true;
    run_failing(f, executable, bindings, TN_SUBMIT_ASYNC, &failed);
    seen.should_fail = false;
    const tn_point waits[] = {{.value = failed, .queue = 0}};
    const tn_submission submission = {.struct_size = sizeof(submission),
                                      .executable = executable,
                                      .bindings = bindings,
                                      .num_bindings = draft.segment.num_slots,
                                      .binding_size = sizeof(tn_binding),
                                      .waits = waits,
                                      .num_waits = 1,
                                      .queue = 1};
    for (int i = 0; i < TIMES; i++) {
        check_case(f->kit);
        if (!fixture_submit_to(f, &submission, NULL) ||
            !fixture_wait_for(f, (tn_point){f->points[1], 1, 0}))
            return;
    }
}

static void check_family_failure(struct fixture *f)
{
    tn_binding bindings[3];
    if (!family_group_consumes(f, TN_FAMILY_CPU))
        return;
    draft_double(f, &cpu_kernel, 0);
    tn_executable *executable = fixture_compile(f, &draft.segment);
    if (!executable || !family_group_bind_slots(f, bindings))
        return;
    if (!fixture_computes(f)) {
        check_skip(f->kit, "it computes nothing");
        return;
    }
    for (uint32_t flags = 0; flags <= TN_SUBMIT_ASYNC; flags++) {
        uint64_t failed, point;
        seen.should_fail = true;
        tn_status status = run_failing(f, executable, bindings, flags, &failed);
        check_case(f->kit);
        if (status != TN_ERR_UNSUPPORTED)
            check_fail(
                f->kit,
                "a kernel fails with status %d, but neither submit nor wait does: %d",
                TN_ERR_UNSUPPORTED, status);
        seen.should_fail = false;
        status = run_failing(f, executable, bindings, flags, &point);
        if (status != TN_OK)
            check_fail(f->kit, "what is submitted after a failure fails too: %s",
                       f->host.text);
        if (failed && wait_failing(f, failed) != TN_ERR_UNSUPPORTED)
            check_fail(f->kit, "wait tells of a failure once, and later says that the work "
                               "of this point went well");
    }
    expect_others_work(f, executable, bindings);
    expect_doubled(f, bindings[1].buffer);
}

// --- vulkan.glsl/1 and vulkan.spirv/1 --------------------------------------------------

static const tn_push_field push[] = {
    {TN_PUSH_COUNT, 0, 0},   {TN_PUSH_OFFSET, 0, 0},  {TN_PUSH_OFFSET, 0, 1},
    {TN_PUSH_STRIDE, -1, 0}, {TN_PUSH_EXTENT, -1, 0}, {TN_PUSH_ATTR_I32, 0, 0},
};

struct shader {
    tn_vulkan_module module;
    tn_vulkan_kernel payload;
    tn_kernel kernel;
};

static void make_shader(struct shader *s, const char *family, const void *code,
                        uint64_t size)
{
    s->module = (tn_vulkan_module){.code = code, .code_size = size};
    s->payload = (tn_vulkan_kernel){.struct_size = sizeof(s->payload),
                                    .modules = &s->module,
                                    .num_modules = 1,
                                    .module_size = sizeof(s->module),
                                    .push = push,
                                    .num_push = COUNT(push),
                                    .elements_per_group = 64};
    s->kernel = cpu_kernel;
    s->kernel.family = family;
    s->kernel.payload = &s->payload;
}

// Drops the optional input: the shader has no binding for it.
static void draft_shader(struct fixture *f, const tn_kernel *kernel)
{
    tn_step *step = draft_double(f, kernel, 0);
    step->num_inputs = 1;
}

static void run_shader(struct fixture *f, const char *family, const void *code,
                       uint64_t size)
{
    static struct shader shader;
    if (!family_group_consumes(f, family))
        return;
    make_shader(&shader, family, code, size);
    draft_shader(f, &shader.kernel);
    family_group_run(f);
}

static void check_family_glsl(struct fixture *f)
{
    run_shader(f, TN_FAMILY_VULKAN_GLSL, family_glsl_code, sizeof(family_glsl_code) - 1);
}

static void check_family_spirv(struct fixture *f)
{
    run_shader(f, TN_FAMILY_VULKAN_SPIRV, family_spirv_code, sizeof(family_spirv_code));
}

static void family_group_expect_refusal(struct fixture *f, const char *family,
                                        const void *code, uint64_t size, const char *what)
{
    static struct shader shader;
    uint64_t live = f->host.live;
    if (!fixture_consumes(f, family))
        return;
    make_shader(&shader, family, code, size);
    draft_shader(f, &shader.kernel);
    tn_executable *executable = NULL;
    check_case(f->kit);
    fixture_listen(f);
    tn_status status = f->backend->segment_compile(f->device, &draft.segment, &executable);
    if (fixture_heard(f, status, "segment_compile") != TN_OK && f->host.live > live)
        check_fail(f->kit, "%s is refused, and %llu blocks are left", what,
                   (unsigned long long)(f->host.live - live));
    if (status == TN_OK) {
        check_fail(f->kit, "%s is compiled", what);
        f->backend->executable_destroy(f->device, executable);
    }
}

static void check_family_damaged(struct fixture *f)
{
    static const char text[] = "#version 460\nvoid main() { this is no GLSL }\n";
    static const uint32_t words[] = {0x07230203, 0x00010500, 0, 7, 0, 0x7fff0001, 3, 3};
    if (!fixture_computes(f) || (!fixture_consumes(f, TN_FAMILY_VULKAN_GLSL) &&
                                 !fixture_consumes(f, TN_FAMILY_VULKAN_SPIRV))) {
        check_skip(f->kit, "it takes no code that could be damaged");
        return;
    }
    family_group_expect_refusal(f, TN_FAMILY_VULKAN_GLSL, text, sizeof(text) - 1,
                                "GLSL with an error");
    family_group_expect_refusal(f, TN_FAMILY_VULKAN_GLSL, "", 0, "GLSL of no bytes");
    family_group_expect_refusal(f, TN_FAMILY_VULKAN_SPIRV, words, sizeof(words),
                                "damaged SPIR-V");
    family_group_expect_refusal(f, TN_FAMILY_VULKAN_SPIRV, words, 10,
                                "SPIR-V that is cut off");
    family_group_expect_refusal(f, TN_FAMILY_VULKAN_SPIRV, text, 44, "text as SPIR-V");
}

static const struct fixture_check checks[] = {
    {"family.cpu-call", check_family_call},
    {"family.cpu-scratch", check_family_scratch},
    {"family.cpu-loop", check_family_loop},
    {"family.cpu-effects", check_family_effects},
    {"family.cpu-reference", check_family_reference},
    {"family.cpu-failure", check_family_failure},
    {"family.glsl", check_family_glsl},
    {"family.spirv", check_family_spirv},
    {"family.glsl-plan", check_glsl_plan},
    {"family.spirv-plan", check_spirv_plan},
    {"family.plan", check_wrong_plans},
    {"family.damaged", check_family_damaged},
};

void group_family(struct kit *k)
{
    fixture_run(k, checks, COUNT(checks));
    family_stages(k);
}
