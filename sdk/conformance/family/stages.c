// SPDX-License-Identifier: MIT
// Stages of cpu.c/1 kernels: state that prepare makes, launches use and finish frees; and
// operands of any family's kernels that pass through programs (tn_fused of
// <tenon/backend.h>).
#include "family.h"
#include "../segment/draft.h"
#include "family_shader.h" // family_glsl_code, family_spirv_code

enum { N = 1000, CHUNK = 64, MOST_STATES = 8 };

static const int32_t seven = 7; // a number that the graph holds

// Observations of the kernels. Cleared by each check.
static struct {
    const char *refuse; // the label of the attributes at which prepare fails
    void *states[MOST_STATES];
    int finished[MOST_STATES];
    int num_states, launches;
} seen;

// --- a kernel with stages --------------------------------------------------------------

struct stage_state {
    const void *attrs; // attributes of the step that the state was made for
    int32_t add;       // the constant
};

static void family_stages_count_all(void *context, int64_t begin, int64_t end,
                                    uint32_t worker)
{
    int64_t *sum = context;
    if (worker != 0)
        fault_note("a body of prepare runs as worker %u", worker);
    *sum += end - begin;
}

static void see_prepare(const tn_cpu_call *call)
{
    if (call->struct_size < TN_END_OF(call, state) || !call->host || !call->host->alloc)
        fault_note("prepare gets a call without a host, or of %u bytes", call->struct_size);
    if (call->num_inputs != 2 || call->num_outputs != 1 || call->num_threads < 1)
        fault_note(
            "prepare gets %u inputs, %u outputs and %u threads, expected 2, 1 and at least "
            "1",
            call->num_inputs, call->num_outputs, call->num_threads);
    if (call->inputs[0].layout.extent[0] != N || call->outputs[0].layout.extent[0] != N)
        fault_note("the layouts that prepare gets are not the step's");
    if (call->inputs[0].data || call->outputs[0].data || call->scratch)
        fault_note("prepare gets memory of operands that are known in a run only");
    if (!call->inputs[1].data || *(const int32_t *)call->inputs[1].data != seven)
        fault_note("prepare does not get the value of a constant");
    if (call->state)
        fault_note("prepare gets a state");
    int64_t sum = 0;
    call->parallel_for(call, N, 10, family_stages_count_all, &sum);
    if (sum != N)
        fault_note("parallel_for of prepare runs %lld of %d items", (long long)sum, N);
}

static tn_status stages_prepare(const tn_cpu_call *call, void **out_state)
{
    see_prepare(call);
    if (call->attrs && call->attrs == seen.refuse)
        return call->host->fail(call->host, TN_ERR_UNSUPPORTED, "the kit's prepare fails");
    struct stage_state *state = call->host->alloc(call->host, sizeof(*state), 0);
    if (!state)
        return TN_ERR_MEMORY;
    state->attrs = call->attrs;
    state->add = call->inputs[1].data ? *(const int32_t *)call->inputs[1].data : 0;
    if (seen.num_states < MOST_STATES)
        seen.states[seen.num_states++] = state;
    *out_state = state;
    return TN_OK;
}

static tn_status stages_launch(const tn_cpu_call *call)
{
    const struct stage_state *state = call->state;
    const int32_t *x = call->inputs[0].data;
    int32_t *y = call->outputs[0].data;
    seen.launches++;
    if (!state || state->attrs != call->attrs) {
        fault_note("a launch gets %s", state ? "the state of another step" : "no state");
        return TN_OK;
    }
    for (int64_t i = 0; i < N; i++)
        y[i] = x[i] + state->add;
    return TN_OK;
}

static void stages_finish(const tn_host *host, void *state)
{
    for (int i = 0; i < seen.num_states; i++)
        if (seen.states[i] == state && seen.finished[i]++ == 0) {
            host->free(host, state);
            return;
        }
    fault_note("finish gets what prepare did not give, or gets it twice");
}

static const tn_primitive primitive = {
    .struct_size = sizeof(primitive),
    .id = "conformance.stages/1",
    .num_inputs = 2,
    .num_outputs = 1,
    .reference = stages_launch,
};
static const tn_cpu_kernel stages_payload = {.struct_size = sizeof(stages_payload),
                                             .launch = stages_launch,
                                             .prepare = stages_prepare,
                                             .finish = stages_finish};
static const tn_kernel stages_kernel = {.struct_size = sizeof(stages_kernel),
                                        .primitive = "conformance.stages/1",
                                        .family = TN_FAMILY_CPU,
                                        .name = "kit",
                                        .payload = &stages_payload};

// --- family.cpu-stages -----------------------------------------------------------------

static struct draft draft;
static const char labels[2][8] = {"first", "second"}; // stand for attributes

static bool stages_computes(struct fixture *f, const char *family)
{
    uint32_t dtypes = f->info.dtypes ? f->info.dtypes : TN_ALL_DTYPES;
    bool can =
        fixture_consumes(f, family) && fixture_computes(f) && dtypes & TN_DTYPE_BIT(TN_I32);
    if (!can)
        check_skip(f->kit, "it computes nothing with %s", family);
    memset(&seen, 0, sizeof(seen));
    fault_clear();
    return can;
}

// z = (x + 7) + 7, in two steps with a state each.
static void draft_two(void)
{
    draft_start(&draft);
    for (int i = 0; i < 3; i++)
        draft_slot(&draft, 0, N * 4);
    uint32_t scalar = draft_slot(&draft, 0, 4);
    for (uint32_t i = 0; i < 2; i++) {
        tn_value in[2] = {flat_value(i, TN_I32, N), flat_value(scalar, TN_I32, 1)};
        tn_value out = flat_value(i + 1, TN_I32, N);
        in[1].layout.rank = 0;
        in[1].constant = &seven;
        draft_kernel(&draft, &primitive, &stages_kernel, in, 2, &out)->attrs = labels[i];
    }
}

static bool stages_bind_slots(struct fixture *f, tn_binding *bindings)
{
    static int32_t numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = i;
    for (uint32_t i = 0; i < draft.segment.num_slots; i++) {
        uint64_t size = draft.slots[i].size;
        bindings[i] = (tn_binding){fixture_buffer(f, size), 0};
        const void *from = size == 4 ? (const void *)&seven : numbers;
        if (!bindings[i].buffer || !fixture_write(f, bindings[i].buffer, 0, from, size))
            return false;
    }
    return true;
}

static int count_finished(void)
{
    int count = 0;
    for (int i = 0; i < seen.num_states; i++)
        count += seen.finished[i];
    return count;
}

// A segment of which the second step's prepare fails.
static void check_stages_half(struct fixture *f)
{
    tn_executable *executable = NULL;
    uint64_t live = f->host.live;
    memset(&seen, 0, sizeof(seen));
    fault_clear();
    seen.refuse = labels[1];
    draft_two();
    check_case(f->kit);
    fixture_listen(f);
    tn_status status = f->backend->segment_compile(f->device, &draft.segment, &executable);
    if (fixture_heard(f, status, "segment_compile") != TN_ERR_UNSUPPORTED)
        check_fail(f->kit, "a prepare fails with status %d, segment_compile gives %d",
                   TN_ERR_UNSUPPORTED, status);
    if (status == TN_OK)
        f->backend->executable_destroy(f->device, executable);
    else if (seen.num_states != 1 || count_finished() != 1)
        check_fail(f->kit,
                   "the second prepare of a segment fails: of the first one's state, "
                   "finish is called %d times",
                   count_finished());
    else if (f->host.live != live)
        check_fail(f->kit, "a prepare fails, and %lld blocks are left",
                   (long long)(f->host.live - live));
}

static void check_stages(struct fixture *f)
{
    static int32_t z[N];
    tn_binding bindings[4];
    uint64_t point;
    if (!stages_computes(f, TN_FAMILY_CPU))
        return;
    draft_two();
    tn_executable *executable = NULL;
    tn_status status = f->backend->segment_compile(f->device, &draft.segment, &executable);
    if (status != TN_OK || !stages_bind_slots(f, bindings)) {
        check_fail(f->kit, "a kernel with prepare does not compile: status %d", status);
        return;
    }
    if (seen.num_states != 2)
        check_fail(f->kit, "prepare is called %d times for 2 steps", seen.num_states);
    for (int run = 0; run < 2; run++)
        if (!fixture_submit(f, executable, bindings, draft.segment.num_slots, 0, &point) ||
            !fixture_wait(f, point))
            return;
    if (seen.launches != 4 || seen.num_states != 2 || count_finished() != 0)
        check_fail(f->kit, "2 steps run twice: %d launches, %d times prepare, %d finish",
                   seen.launches, seen.num_states, count_finished());
    f->backend->executable_destroy(f->device, executable);
    if (count_finished() != seen.num_states)
        check_fail(f->kit, "prepare succeeded %d times, finish is called %d times",
                   seen.num_states, count_finished());
    if (fixture_read(f, bindings[2].buffer, 0, z, sizeof(z)) && z[N - 1] != N - 1 + 14)
        check_fail(f->kit, "element %d is %d, expected %d", N - 1, z[N - 1], N - 1 + 14);
    check_stages_half(f);
    if (fault_text()[0])
        check_fail(f->kit, "%s", fault_text());
}

// --- family.cpu-constants --------------------------------------------------------------

// An array that is the same in each run: every other element of a table, from its third on.
enum { FIRST = 3, APART = 2, TABLE = FIRST + APART * N };

static int32_t table_at(int64_t i)
{
    return (int32_t)(i * i % 1009);
}

static tn_status prepare_table(const tn_cpu_call *call, void **out_state)
{
    const tn_tensor *x = &call->inputs[1];
    int32_t *kept = call->host->alloc(call->host, N * sizeof(*kept), 0);
    if (!kept)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < N; i++) {
        kept[i] = x->data ? ((const int32_t *)x->data)[FIRST + APART * i] : 0;
        if (kept[i] != table_at(FIRST + APART * i))
            fault_note(
                "prepare does not get the elements of an array that is the same in each "
                "run");
    }
    if (x->layout.extent[0] != N || x->layout.stride[0] != APART ||
        x->layout.offset != FIRST)
        fault_note(
            "prepare does not get the layout of an array that is the same in each run");
    seen.states[seen.num_states++] = kept;
    *out_state = kept;
    return TN_OK;
}

static tn_status launch_table(const tn_cpu_call *call)
{
    const int32_t *kept = call->state, *x = call->inputs[0].data;
    int32_t *y = call->outputs[0].data;
    for (int64_t i = 0; i < N; i++)
        y[i] = x[i] + (kept ? kept[i] : 0);
    return TN_OK;
}

static const tn_cpu_kernel table_payload = {.struct_size = sizeof(table_payload),
                                            .launch = launch_table,
                                            .prepare = prepare_table,
                                            .finish = stages_finish};
static const tn_kernel table_kernel = {.struct_size = sizeof(table_kernel),
                                       .primitive = "conformance.stages/1",
                                       .family = TN_FAMILY_CPU,
                                       .name = "table",
                                       .payload = &table_payload};

// Slots 0: x, 1: the table behind `before` bytes, 2: the output.
static void check_stages_constants(struct fixture *f)
{
    static int32_t table[TABLE], x[N], z[N];
    tn_binding bindings[3];
    uint64_t point, before = 256;
    if (!stages_computes(f, TN_FAMILY_CPU))
        return;
    for (int64_t i = 0; i < TABLE; i++)
        table[i] = table_at(i);
    draft_start(&draft);
    draft_slot(&draft, 0, N * 4);
    draft_slot(&draft, 0, before + sizeof(table));
    draft_slot(&draft, 0, N * 4);
    tn_value in[2] = {flat_value(0, TN_I32, N), flat_value(1, TN_I32, N)};
    tn_value out = flat_value(2, TN_I32, N);
    in[1].offset = before;
    in[1].layout.offset = FIRST;
    in[1].layout.stride[0] = APART;
    in[1].constant = table;
    draft_kernel(&draft, &primitive, &table_kernel, in, 2, &out);
    tn_executable *executable = NULL;
    if (f->backend->segment_compile(f->device, &draft.segment, &executable) != TN_OK) {
        check_fail(f->kit, "a kernel with prepare does not compile");
        return;
    }
    bool is_bound = true;
    for (uint32_t i = 0; i < 3; i++) {
        bindings[i] = (tn_binding){fixture_buffer(f, draft.slots[i].size), 0};
        is_bound = is_bound && bindings[i].buffer;
    }
    if (is_bound && fixture_write(f, bindings[0].buffer, 0, x, sizeof(x)) &&
        fixture_write(f, bindings[1].buffer, before, table, sizeof(table)) &&
        fixture_submit(f, executable, bindings, 3, 0, &point) && fixture_wait(f, point))
        fixture_read(f, bindings[2].buffer, 0, z, sizeof(z));
    f->backend->executable_destroy(f->device, executable);
    for (int i = 0; i < N && !fault_text()[0]; i++)
        if (z[i] != table_at(FIRST + APART * i))
            fault_note("element %d is %d, expected %d", i, z[i],
                       table_at(FIRST + APART * i));
    if (fault_text()[0])
        check_fail(f->kit, "%s", fault_text());
}

// --- family.cpu-fused ------------------------------------------------------------------

static void move_chunks(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const tn_cpu_call *call = context;
    int32_t values[CHUNK];
    if (worker >= call->num_threads)
        fault_note("worker %u of %u threads", worker, call->num_threads);
    for (int64_t i = begin; i < end; i += CHUNK) {
        int64_t n = end - i < CHUNK ? end - i : CHUNK;
        call->load(call, 0, i, n, values, worker);
        for (int64_t k = 0; k < n; k++)
            values[k] += 1;
        call->store(call, 0, i, n, values, worker);
    }
}

static tn_status launch_fused(const tn_cpu_call *call)
{
    seen.launches++;
    if (call->inputs[0].data || call->outputs[0].data)
        fault_note("a fused operand has memory");
    else if (!call->load || !call->store)
        fault_note("load or store is NULL");
    else if (call->inputs[0].layout.dtype != TN_I32 ||
             call->inputs[0].layout.extent[0] != N ||
             call->outputs[0].layout.extent[0] != N)
        fault_note("a fused operand has not its layout");
    else
        call->parallel_for(call, N, 100, move_chunks, (void *)(uintptr_t)call);
    return TN_OK;
}

static const tn_cpu_kernel fused_payload = {.struct_size = sizeof(fused_payload),
                                            .launch = launch_fused};
static const tn_operand_rule fused_rules[] = {
    {TN_DTYPE_BIT(TN_I32), TN_NEEDS_ANY, TN_OPERAND_FUSES}};
static const tn_kernel fused_kernel = {.struct_size = sizeof(fused_kernel),
                                       .primitive = "conformance.stages/1",
                                       .family = TN_FAMILY_CPU,
                                       .name = "fused",
                                       TN_OPERANDS(fused_rules),
                                       .payload = &fused_payload};

// Slots 0: x, 1: the array that both programs add, 2: the output; with `in_place` the
// output lies in slot 1.
static struct fused_draft {
    struct draft_program program; // a * first + second
    uint64_t params[2][1];
    tn_value inputs[2][2], outputs[2];
    tn_fused fused[2];
} parts;

static void draft_fused(const tn_kernel *kernel, bool in_place)
{
    tn_value none = {.flags = TN_VALUE_FUSED, .layout = flat_value(0, TN_I32, N).layout};
    draft_start(&draft);
    for (int i = 0; i < 3; i++)
        draft_slot(&draft, 0, N * 4);
    tn_step *step = draft_kernel(&draft, &primitive, kernel, &none, 1, &none);
    program_combine(&parts.program, TN_I32);
    for (uint32_t i = 0; i < 2; i++) {
        bool is_epilogue = i == 1;
        parts.params[i][0] = 3 + 2 * i;
        parts.inputs[i][0] = is_epilogue ? none : flat_value(0, TN_I32, N);
        parts.inputs[i][1] = flat_value(is_epilogue ? 1 : 0, TN_I32, N);
        parts.outputs[i] = is_epilogue ? flat_value(in_place ? 1 : 2, TN_I32, N) : none;
        parts.inputs[i][0].id = is_epilogue ? 0 : 1;
        parts.inputs[i][1].id = is_epilogue ? 2 : 1;
        parts.outputs[i].id = is_epilogue ? 3 : 0;
        parts.fused[i] = (tn_fused){.operand = i,
                                    .program = &parts.program.record,
                                    .params = parts.params[i],
                                    .inputs = parts.inputs[i],
                                    .outputs = &parts.outputs[i],
                                    .num_inputs = 2,
                                    .num_outputs = 1};
    }
    draft.segment.num_values = 3;
    draft.inputs[0][0].id = draft.outputs[0].id = 0;
    step->fused = parts.fused;
    step->num_fused = 2;
    step->fused_size = sizeof(parts.fused[0]);
    draft.slots[0].flags = draft.slots[1].flags = TN_SLOT_READ;
    draft.slots[in_place ? 1 : 2].flags |= TN_SLOT_WRITE;
}

// A kernel that gives factor * x + add, between the programs.
static void run_fused(struct fixture *f, const tn_kernel *kernel, int32_t factor,
                      int32_t add, bool in_place)
{
    static int32_t z[N];
    tn_binding bindings[3];
    const char *reason = NULL;
    uint64_t point;
    draft_fused(kernel, in_place);
    if (!f->backend->step_check(f->device, &draft.steps[0], &reason)) {
        check_skip(f->kit, "it takes no such step: %s", reason ? reason : "");
        return;
    }
    check_case(f->kit);
    tn_executable *executable = fixture_compile(f, &draft.segment);
    if (!executable || !stages_bind_slots(f, bindings) ||
        !fixture_submit(f, executable, bindings, draft.segment.num_slots, 0, &point) ||
        !fixture_wait(f, point) ||
        !fixture_read(f, bindings[in_place ? 1 : 2].buffer, 0, z, sizeof(z)))
        return;
    for (int i = 0; i < N; i++) {
        int32_t expected = 5 * (factor * 4 * i + add) + i;
        if (z[i] != expected) {
            check_fail(f->kit, "element %d of a fused step%s is %d, expected %d", i,
                       in_place ? " in place" : "", z[i], expected);
            return;
        }
    }
}

static bool family_stages_fuses(struct fixture *f, const char *family)
{
    if (!stages_computes(f, family))
        return false;
    bool can = f->info.flags & TN_DEVICE_FUSES && TN_HAS(f->backend, step_check);
    if (!can)
        check_skip(f->kit, "it fuses nothing with kernels");
    return can;
}

static void check_stages_fused(struct fixture *f)
{
    if (!family_stages_fuses(f, TN_FAMILY_CPU))
        return;
    run_fused(f, &fused_kernel, 1, 1, false);
    run_fused(f, &fused_kernel, 1, 1, true);
    if (fault_text()[0])
        check_fail(f->kit, "%s", fault_text());
}

// The shader of family.comp: 2 * x + the extent of x + the last pushed word, which is the
// extent as well.
static void stages_run_shader(struct fixture *f, const char *family, const void *code,
                              uint64_t size)
{
    static const tn_push_field push[] = {{TN_PUSH_COUNT, 0, 0},   {TN_PUSH_OFFSET, 0, 0},
                                         {TN_PUSH_OFFSET, 0, 1},  {TN_PUSH_STRIDE, -1, 0},
                                         {TN_PUSH_EXTENT, -1, 0}, {TN_PUSH_EXTENT, -1, 0}};
    if (!family_stages_fuses(f, family))
        return;
    const tn_vulkan_module module = {.code = code, .code_size = size};
    const tn_vulkan_kernel payload = {.struct_size = sizeof(payload),
                                      .modules = &module,
                                      .num_modules = 1,
                                      .module_size = sizeof(module),
                                      .push = push,
                                      .num_push = COUNT(push),
                                      .elements_per_group = 64};
    tn_kernel kernel = fused_kernel;
    kernel.family = family;
    kernel.payload = &payload;
    run_fused(f, &kernel, 2, 2 * N, false);
    run_fused(f, &kernel, 2, 2 * N, true);
}

static void check_stages_glsl_fused(struct fixture *f)
{
    stages_run_shader(f, TN_FAMILY_VULKAN_GLSL, family_glsl_code,
                      sizeof(family_glsl_code) - 1);
}

static void check_stages_spirv_fused(struct fixture *f)
{
    stages_run_shader(f, TN_FAMILY_VULKAN_SPIRV, family_spirv_code,
                      sizeof(family_spirv_code));
}

static const struct fixture_check checks[] = {
    {"family.cpu-stages", check_stages},
    {"family.cpu-constants", check_stages_constants},
    {"family.cpu-fused", check_stages_fused},
    {"family.glsl-fused", check_stages_glsl_fused},
    {"family.spirv-fused", check_stages_spirv_fused},
};

void family_stages(struct kit *k)
{
    fixture_run(k, checks, COUNT(checks));
}
