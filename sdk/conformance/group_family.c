// SPDX-License-Identifier: MIT
// The families of kernels that a backend says it consumes: kernels of the kit's own see
// what <tenon/kernel.h> promises them, and what goes wrong in them is reported.
#include <stdarg.h>
#include <stdatomic.h>
#include "checks.h"
#include "draft.h"
#include "family_shader.h" // family_glsl_code, family_spirv_code

enum { N = 1000, GAP = 3, SCRATCH = 5000, ADD = 11 };

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
    .inputs = inputs,
    .num_inputs = 2,
    .num_outputs = 1,
    .attrs = {.fields = fields,
              .num_fields = 1,
              .field_size = sizeof(fields[0]),
              .size = sizeof(struct attrs)},
    .reference = double_it,
};

// --- a cpu.c/1 kernel that looks around ------------------------------------------------

static struct {
    bool was_called, should_fail;
    char failure[300];
    bool should_loop;
    uint64_t live;
    const struct fake_host *host;
} seen;

static void see(const char *format, ...) PRINTF_LIKE(1, 2);
static void see(const char *format, ...)
{
    va_list list;
    if (seen.failure[0])
        return;
    va_start(list, format);
    vsnprintf(seen.failure, sizeof(seen.failure), format, list);
    va_end(list);
}

static void see_layout(const char *what, const tn_layout *got, int64_t stride)
{
    if (got->dtype != TN_I32 || got->rank != 1 || got->extent[0] != N ||
        got->stride[0] != stride || got->offset != stride)
        see("the layout of %s is not the step's", what);
}

static void see_call(const tn_cpu_call *call)
{
    if (call->struct_size < TN_END_OF(call, parallel_for) || call->flags)
        see("struct_size is %u, flags are %#x", call->struct_size, call->flags);
    if (!call->host || !call->host->fail)
        see("there is no host");
    if (call->attrs != &attrs)
        see("attrs are not the step's");
    if (call->num_inputs != 2 || call->num_outputs != 1)
        see("got %u inputs and %u outputs, expected 2 and 1", call->num_inputs,
            call->num_outputs);
    else if (call->inputs[1].data || call->inputs[1].layout.dtype != TN_DTYPE_NONE)
        see("an input that is not given has data");
    if (call->num_threads < 1)
        see("num_threads is 0");
    if (!call->parallel_for)
        see("parallel_for is NULL");
    see_layout("the input", &call->inputs[0].layout, GAP);
    see_layout("the output", &call->outputs[0].layout, 1);
}

static void see_scratch(const tn_cpu_call *call)
{
    if (call->scratch_size != SCRATCH || !call->scratch)
        see("asked for %d bytes of scratch, got %llu at %p", SCRATCH,
            (unsigned long long)call->scratch_size, call->scratch);
    else if ((uintptr_t)call->scratch % 64)
        see("scratch lies at %p, not aligned to 64", call->scratch);
    else
        memset(call->scratch, 0xee, SCRATCH);
}

// --- loops -----------------------------------------------------------------------------

struct loop {
    _Atomic uint8_t visits[N];
    int64_t n, grain;
    _Atomic int wrong;
};

static void visit(void *context, int64_t begin, int64_t end)
{
    struct loop *loop = context;
    if (begin < 0 || end > loop->n || begin >= end ||
        (end - begin < loop->grain && end != loop->n))
        loop->wrong = 1;
    for (int64_t i = begin; i < end && i < N && i >= 0; i++)
        loop->visits[i]++;
}

static void see_loops(const tn_cpu_call *call)
{
    static const int64_t sizes[][2] = {{0, 1}, {1, 1},  {2, 1},    {7, 3},
                                       {N, 1}, {N, 10}, {N, 2 * N}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        static struct loop loop;
        memset(&loop, 0, sizeof(loop));
        loop.n = sizes[i][0];
        loop.grain = sizes[i][1];
        call->parallel_for(call, loop.n, loop.grain, visit, &loop);
        for (int64_t k = 0; k < N; k++)
            if (loop.visits[k] != (k < loop.n))
                see("parallel_for over %lld, at least %lld at a time: %lld is visited %d "
                    "times",
                    (long long)loop.n, (long long)loop.grain, (long long)k, loop.visits[k]);
        if (loop.wrong)
            see("parallel_for over %lld, at least %lld at a time: a piece is shorter, "
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

// y = double(x) by `kernel`, or by the reference; slots x, y and scratch.
static tn_step *draft_double(struct bench *b, const tn_kernel *kernel, uint64_t scratch)
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
        uint64_t at = b->info.buffer_alignment > 64 ? b->info.buffer_alignment : 64;
        step->scratch_slot = draft_slot(&draft, TN_SLOT_SCRATCH, at + scratch);
        step->scratch_offset = at;
        step->scratch_size = scratch;
    }
    return step;
}

static bool bind_slots(struct bench *b, tn_binding bindings[3])
{
    static int32_t x[(N + 1) * GAP];
    for (int i = 0; i < (N + 1) * GAP; i++)
        x[i] = i;
    for (uint32_t i = 0; i < draft.segment.num_slots; i++) {
        bindings[i] = (tn_binding){bench_buffer(b, draft.slots[i].size), 0};
        if (!bindings[i].buffer ||
            (i < 2 && !bench_write(b, bindings[i].buffer, 0, x, sizeof(x))))
            return false;
    }
    return true;
}

static void expect_doubled(struct bench *b, tn_buffer *buffer)
{
    static int32_t y[N + 2];
    if (!bench_computes(b) || !bench_read(b, buffer, 0, y, sizeof(y)))
        return;
    for (int i = 0; i < N; i++)
        if (y[1 + i] != 2 * GAP * (1 + i) + N + ADD) {
            check_fail(b->kit, "element %d is %d, expected %d", i, y[1 + i],
                       2 * GAP * (1 + i) + N + ADD);
            return;
        }
    if (y[0] != 0 || y[N + 1] != N + 1)
        check_fail(b->kit, "something is written outside of the output");
}

static void run(struct bench *b)
{
    tn_binding bindings[3];
    uint64_t point;
    tn_executable *executable = bench_compile(b, &draft.segment);
    if (executable && bind_slots(b, bindings) &&
        bench_submit(b, executable, bindings, draft.segment.num_slots, 0, &point) &&
        bench_wait(b, point))
        expect_doubled(b, bindings[1].buffer);
    if (!bench_computes(b))
        check_skip(b->kit, "it computes nothing");
}

// --- cpu.c/1 ---------------------------------------------------------------------------

static bool consumes(struct bench *b, const char *family)
{
    uint32_t dtypes = b->info.dtypes ? b->info.dtypes : TN_ALL_DTYPES;
    bool can = bench_consumes(b, family) && dtypes & TN_DTYPE_BIT(TN_I32);
    if (!can)
        check_skip(b->kit, "it does not consume %s", family);
    memset(&seen, 0, sizeof(seen));
    return can;
}

static void run_cpu(struct bench *b, const tn_kernel *kernel, uint64_t scratch, bool loops)
{
    if (!consumes(b, TN_FAMILY_CPU))
        return;
    seen.should_loop = loops;
    draft_double(b, kernel, scratch);
    run(b);
    if (bench_computes(b) && !seen.was_called && !check_failed(b->kit))
        check_fail(b->kit, "the kernel is not called");
    if (seen.failure[0])
        check_fail(b->kit, "tn_cpu_call: %s", seen.failure);
}

static void check_call(struct bench *b)
{
    run_cpu(b, &cpu_kernel, 0, false);
}

static void check_scratch(struct bench *b)
{
    run_cpu(b, &cpu_kernel, SCRATCH, false);
}

static void check_loop(struct bench *b)
{
    run_cpu(b, &cpu_kernel, 0, true);
}

static void check_reference(struct bench *b)
{
    run_cpu(b, NULL, 0, false);
}

// --- kernels that fail -----------------------------------------------------------------

static tn_status wait_failing(struct bench *b, uint64_t point)
{
    bench_listen(b);
    return bench_heard(b, b->backend->wait(b->device, point), "wait");
}

// The status of a submission, or of waiting for it: then its point is given.
static tn_status run_failing(struct bench *b, tn_executable *executable,
                             const tn_binding *bindings, uint32_t flags,
                             uint64_t *out_point)
{
    tn_submission submission = {.struct_size = sizeof(submission),
                                .flags = flags,
                                .executable = executable,
                                .bindings = bindings,
                                .num_bindings = draft.segment.num_slots};
    *out_point = 0;
    bench_listen(b);
    tn_status status = b->backend->submit(b->device, &submission, out_point);
    if (bench_heard(b, status, "submit") != TN_OK) {
        *out_point = 0;
        return status;
    }
    return wait_failing(b, *out_point);
}

static void check_failure(struct bench *b)
{
    tn_binding bindings[3];
    if (!consumes(b, TN_FAMILY_CPU))
        return;
    draft_double(b, &cpu_kernel, 0);
    tn_executable *executable = bench_compile(b, &draft.segment);
    if (!executable || !bind_slots(b, bindings))
        return;
    if (!bench_computes(b)) {
        check_skip(b->kit, "it computes nothing");
        return;
    }
    for (uint32_t flags = 0; flags <= TN_SUBMIT_ASYNC; flags++) {
        uint64_t failed, point;
        seen.should_fail = true;
        tn_status status = run_failing(b, executable, bindings, flags, &failed);
        check_case(b->kit);
        if (status != TN_ERR_UNSUPPORTED)
            check_fail(
                b->kit,
                "a kernel fails with status %d, but neither submit nor wait does: %d",
                TN_ERR_UNSUPPORTED, status);
        seen.should_fail = false;
        status = run_failing(b, executable, bindings, flags, &point);
        if (status != TN_OK)
            check_fail(b->kit, "what is submitted after a failure fails too: %s",
                       b->host.text);
        if (failed && wait_failing(b, failed) != TN_ERR_UNSUPPORTED)
            check_fail(b->kit, "wait tells of a failure once, and later says that the work "
                               "of this point went well");
    }
    expect_doubled(b, bindings[1].buffer);
}

// --- vulkan.glsl/1 and vulkan.spirv/1 --------------------------------------------------

static const tn_push_field push[] = {
    {TN_PUSH_COUNT, 0, 0},   {TN_PUSH_OFFSET, 0, 0},  {TN_PUSH_OFFSET, 0, 1},
    {TN_PUSH_STRIDE, -1, 0}, {TN_PUSH_EXTENT, -1, 0}, {TN_PUSH_ATTR_I32, 0, 0},
};

struct shader {
    tn_vulkan_kernel payload;
    tn_kernel kernel;
};

static void make_shader(struct shader *s, const char *family, const void *code,
                        uint64_t size)
{
    s->payload = (tn_vulkan_kernel){.struct_size = sizeof(s->payload),
                                    .code = code,
                                    .code_size = size,
                                    .push = push,
                                    .num_push = COUNT(push),
                                    .elements_per_group = 64};
    s->kernel = cpu_kernel;
    s->kernel.family = family;
    s->kernel.payload = &s->payload;
}

// The optional input would be a binding: shaders get one input.
static void draft_shader(struct bench *b, const tn_kernel *kernel)
{
    tn_step *step = draft_double(b, kernel, 0);
    step->num_inputs = 1;
}

static void run_shader(struct bench *b, const char *family, const void *code, uint64_t size)
{
    static struct shader shader;
    if (!consumes(b, family))
        return;
    if (!size) {
        check_skip(b->kit, "this kit was built without glslc, which makes SPIR-V");
        return;
    }
    make_shader(&shader, family, code, size);
    draft_shader(b, &shader.kernel);
    run(b);
}

static void check_glsl(struct bench *b)
{
    run_shader(b, TN_FAMILY_VULKAN_GLSL, family_glsl_code, sizeof(family_glsl_code) - 1);
}

static void check_spirv(struct bench *b)
{
#ifdef HAS_SPIRV
    run_shader(b, TN_FAMILY_VULKAN_SPIRV, family_spirv_code, sizeof(family_spirv_code));
#else
    run_shader(b, TN_FAMILY_VULKAN_SPIRV, NULL, 0);
#endif
}

static void expect_refusal(struct bench *b, const char *family, const void *code,
                           uint64_t size, const char *what)
{
    static struct shader shader;
    uint64_t live = b->host.live;
    if (!bench_consumes(b, family))
        return;
    make_shader(&shader, family, code, size);
    draft_shader(b, &shader.kernel);
    tn_executable *executable = NULL;
    check_case(b->kit);
    bench_listen(b);
    tn_status status = b->backend->segment_compile(b->device, &draft.segment, &executable);
    if (bench_heard(b, status, "segment_compile") != TN_OK && b->host.live > live)
        check_fail(b->kit, "%s is refused, and %llu blocks are left", what,
                   (unsigned long long)(b->host.live - live));
    if (status == TN_OK) {
        check_fail(b->kit, "%s is compiled", what);
        b->backend->executable_destroy(b->device, executable);
    }
}

static void check_damaged(struct bench *b)
{
    static const char text[] = "#version 460\nvoid main() { this is no GLSL }\n";
    static const uint32_t words[] = {0x07230203, 0x00010500, 0, 7, 0, 0x7fff0001, 3, 3};
    if (!bench_computes(b) || (!bench_consumes(b, TN_FAMILY_VULKAN_GLSL) &&
                               !bench_consumes(b, TN_FAMILY_VULKAN_SPIRV))) {
        check_skip(b->kit, "it takes no code that could be damaged");
        return;
    }
    expect_refusal(b, TN_FAMILY_VULKAN_GLSL, text, sizeof(text) - 1, "GLSL with an error");
    expect_refusal(b, TN_FAMILY_VULKAN_GLSL, "", 0, "GLSL of no bytes");
    expect_refusal(b, TN_FAMILY_VULKAN_SPIRV, words, sizeof(words), "damaged SPIR-V");
    expect_refusal(b, TN_FAMILY_VULKAN_SPIRV, words, 10, "SPIR-V that is cut off");
    expect_refusal(b, TN_FAMILY_VULKAN_SPIRV, text, 44, "text as SPIR-V");
}

static const struct bench_check checks[] = {
    {"family.cpu-call", check_call},       {"family.cpu-scratch", check_scratch},
    {"family.cpu-loop", check_loop},       {"family.cpu-reference", check_reference},
    {"family.cpu-failure", check_failure}, {"family.glsl", check_glsl},
    {"family.spirv", check_spirv},         {"family.damaged", check_damaged},
};

void group_family(struct kit *k)
{
    bench_run(k, checks, COUNT(checks));
}
