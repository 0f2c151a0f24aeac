// SPDX-License-Identifier: MIT
// Segments: results, order of steps, and records longer than known. Programs, or kernels
// where the backend runs none (arithmetic.h).
#include <math.h>
#include "arithmetic.h"
#include "groups.h"
#include "segment.h"

enum { N = 3001, MAX_ALLOCATIONS = 300 };

static struct draft draft;
static struct arithmetic work;
static struct draft_program single;

// --- helpers ---------------------------------------------------------------------------

// Skips the check when the backend runs no programs of `dtype`.
static bool runs_programs(struct fixture *f, tn_dtype dtype)
{
    uint32_t dtypes = f->info.dtypes ? f->info.dtypes : TN_FIRST_DTYPES;
    bool can = fixture_consumes(f, TN_FAMILY_EXPR) && dtypes & TN_DTYPE_BIT(dtype);
    if (!can)
        check_skip(f->kit, "it runs no programs of %s", tn_dtype_name(dtype));
    return can;
}

static uint64_t segment_group_aligned(const struct fixture *f, uint64_t size)
{
    uint64_t a = f->info.buffer_alignment ? f->info.buffer_alignment : 1;
    return (size + a - 1) / a * a;
}

static bool segment_group_run(struct fixture *f, tn_buffer *const *buffers)
{
    return segment_run(f, &draft, buffers);
}

// Creates a buffer of N random elements, and stores them in `values` too.
static tn_buffer *segment_group_numbers(struct fixture *f, uint32_t *values)
{
    for (int i = 0; i < N; i++)
        values[i] = element_of(&work, (uint32_t)random_below(f->kit, 1 << 12));
    tn_buffer *buffer = fixture_buffer(f, N * sizeof(*values));
    return buffer && fixture_write(f, buffer, 0, values, N * sizeof(*values)) ? buffer
                                                                              : NULL;
}

static void expect_numbers(struct fixture *f, tn_buffer *buffer, const uint32_t *want,
                           const char *what)
{
    static uint32_t got[N];
    if (!fixture_computes(f))
        check_skip(f->kit, "it computes nothing");
    if (!fixture_computes(f) || !fixture_read(f, buffer, 0, got, sizeof(got)))
        return;
    for (int i = 0; i < N; i++)
        if (got[i] != want[i]) {
            check_fail(f->kit, "%s: element %d is %.10g, expected %.10g", what, i,
                       element_value(&work, got[i]), element_value(&work, want[i]));
            return;
        }
}

// --- values ----------------------------------------------------------------------------

static void segment_group_expected(const struct array *x, struct array *out)
{
    bool is_bool = x->tensor.layout.dtype == TN_BOOL;
    for (int64_t i = 0; i < x->count; i++)
        array_set(out, i,
                  work.kernel ? 2 * array_get(x, i)
                  : is_bool   ? !array_get(x, i)
                              : 3 * array_get(x, i) + 7);
}

static void try_layout(struct fixture *f, tn_dtype dtype, enum layout_kind kind)
{
    tn_type type = {.dtype = dtype, .rank = 2, .extent = {13, 37}};
    tn_buffer *buffers[2];
    char what[60];
    struct array plain = array_new(&type, PLAIN, 0);
    array_fill(f->kit, &plain, 0, 9);
    for (int64_t i = 0; i < plain.count; i++) // small integers are exact in any dtype
        array_set(&plain, i, floor(array_get(&plain, i)));
    struct array x = array_laid_out(&plain, kind);
    struct array out = array_new(&type, kind == PLAIN ? PLAIN : SHIFTED, 0x5a);
    struct array want = array_new(&type, PLAIN, 0);
    segment_group_expected(&x, &want);
    draft_start(&draft);
    program_affine(&work.affine, dtype);
    tn_value values[2] = {segment_upload(f, &draft, &x, &buffers[0]),
                          segment_upload(f, &draft, &out, &buffers[1])};
    values_merge(values, 2);
    tn_step *step = draft_affine(&draft, &work, &values[0], &values[1], 3, 7);
    format_text(what, sizeof(what), "%s: %s, %s", work.kernel ? "x + x" : "3x + 7",
                tn_dtype_name(dtype), layout_names[kind]);
    check_case(f->kit);
    if (!segment_accepts(f, step))
        check_fail(f->kit, "%s: step_check refuses a dtype that its info lists", what);
    else if (buffers[0] && buffers[1] && segment_group_run(f, buffers))
        segment_compare(f, buffers[1], &out, &want, what);
    for (uint32_t i = 0; i < 2; i++)
        if (buffers[i])
            fixture_destroy(f, buffers[i]);
    array_free(&plain);
    array_free(&x);
    array_free(&out);
    array_free(&want);
}

static void check_segment_values(struct fixture *f)
{
    if (!arithmetic_begin(f, &work))
        return;
    uint32_t dtypes = f->info.dtypes ? f->info.dtypes : TN_FIRST_DTYPES;
    if (work.kernel) { // other layouts, as the kernel's rules allow: device.layouts
        try_layout(f, work.dtype, PLAIN);
        dtypes = 0;
    }
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++) {
        if (!tn_dtype_in(dtype, dtypes))
            continue;
        bool every = dtype == TN_F32 || dtype == TN_I32;
        for (int kind = PLAIN; kind < (every ? NUM_LAYOUTS : PLAIN + 1); kind++)
            if (!check_failed(f->kit))
                try_layout(f, dtype, (enum layout_kind)kind);
    }
    if (!fixture_computes(f))
        check_skip(f->kit, "it computes nothing");
}

// --- order -----------------------------------------------------------------------------

enum { REGIONS = 8, SCRATCH_REGIONS = 4, STEPS = 48 };

// Region of N numbers: a part of the scratch slot, or a slot of its own.
static tn_value region_value(const struct fixture *f, uint32_t region)
{
    tn_value value = arithmetic_value(
        &work, region < SCRATCH_REGIONS ? 0 : region - SCRATCH_REGIONS + 1, N);
    value.offset = region < SCRATCH_REGIONS ? region * segment_group_aligned(f, N * 4) : 0;
    return value;
}

static void random_step(struct fixture *f, uint32_t values[REGIONS][N])
{
    uint32_t x = (uint32_t)random_below(f->kit, REGIONS);
    uint32_t y = (uint32_t)random_below(f->kit, REGIONS);
    uint32_t to = (uint32_t)random_below(f->kit, REGIONS);
    uint32_t a = (uint32_t)random_below(f->kit, 9), c = (uint32_t)random_below(f->kit, 100);
    while (to == x || to == y)
        to = (to + 1) % REGIONS;
    tn_value in[2] = {region_value(f, x), region_value(f, y)}, out = region_value(f, to);
    bool two = random_below(f->kit, 2);
    if (two)
        draft_combine(&draft, &work, in, &out, a);
    else
        draft_affine(&draft, &work, in, &out, a, c);
    for (int i = 0; i < N; i++)
        values[to][i] = two ? combine_of(&work, values[x][i], values[y][i], a)
                            : affine_of(&work, values[x][i], a, c);
}

// Random steps over a few regions: steps read outputs of earlier steps and overwrite their
// inputs.
static void check_segment_order(struct fixture *f)
{
    static uint32_t values[REGIONS][N];
    tn_buffer *buffers[1 + REGIONS - SCRATCH_REGIONS];
    if (!arithmetic_begin(f, &work))
        return;
    draft_start(&draft);
    uint64_t scratch = SCRATCH_REGIONS * segment_group_aligned(f, N * 4);
    draft_slot(&draft, TN_SLOT_SCRATCH, scratch);
    buffers[0] = fixture_buffer(f, scratch);
    for (uint32_t i = SCRATCH_REGIONS; i < REGIONS; i++) {
        draft_slot(&draft, 0, N * 4);
        buffers[i - SCRATCH_REGIONS + 1] = segment_group_numbers(f, values[i]);
    }
    for (uint32_t i = 0; i < SCRATCH_REGIONS; i++) { // scratch memory is uninitialised
        tn_value in = region_value(f, REGIONS - 1), out = region_value(f, i);
        draft_affine(&draft, &work, &in, &out, i, 5);
        for (int n = 0; n < N; n++)
            values[i][n] = affine_of(&work, values[REGIONS - 1][n], i, 5);
    }
    for (int i = 0; i < STEPS; i++)
        random_step(f, values);
    if (check_failed(f->kit) || !segment_group_run(f, buffers))
        return;
    for (uint32_t i = SCRATCH_REGIONS; i < REGIONS; i++)
        expect_numbers(f, buffers[i - SCRATCH_REGIONS + 1], values[i],
                       "steps that depend on each other");
}

// Slot 2 may be bound to the memory of slot 0: the step that reads slot 0 must come before
// the step that writes slot 2.
static void check_segment_alias(struct fixture *f)
{
    static uint32_t x[N], y[N];
    if (!arithmetic_begin(f, &work))
        return;
    draft_start(&draft);
    for (int i = 0; i < 3; i++)
        draft_slot(&draft, 0, N * 4);
    draft.slots[2].alias = 1; // 1 + slot 0
    tn_value in = arithmetic_value(&work, 0, N), other = arithmetic_value(&work, 1, N);
    tn_value over = arithmetic_value(&work, 2, N);
    draft_affine(&draft, &work, &in, &other, 2, 0);
    draft_affine(&draft, &work, &in, &over, 5, 1);
    tn_buffer *first = segment_group_numbers(f, x), *second = segment_group_numbers(f, y);
    if (!first || !second ||
        !segment_group_run(f, (tn_buffer *const[]){first, second, first}))
        return;
    for (int i = 0; i < N; i++) {
        y[i] = affine_of(&work, x[i], 2, 0);
        x[i] = affine_of(&work, x[i], 5, 1);
    }
    expect_numbers(f, second, y, "an input that is overwritten by a later step");
    expect_numbers(f, first, x, "an output in an input's memory");
}

// --- records ---------------------------------------------------------------------------

// Drafts out = 3 * x + 7 over N elements; slot 0 is x, slot 1 is out.
static void draft_plain(void)
{
    draft_start(&draft);
    draft_slot(&draft, 0, N * 4);
    draft_slot(&draft, 0, N * 4);
    tn_value in = arithmetic_value(&work, 0, N), out = arithmetic_value(&work, 1, N);
    draft_affine(&draft, &work, &in, &out, 3, 7);
}

static void expect_plain(struct fixture *f, tn_executable *executable, const char *what)
{
    static uint32_t x[N], y[N];
    uint64_t point;
    tn_binding bindings[2] = {{segment_group_numbers(f, x), 0},
                              {segment_group_numbers(f, y), 0}};
    if (!bindings[0].buffer || !bindings[1].buffer ||
        !fixture_submit(f, executable, bindings, 2, 0, &point) || !fixture_wait(f, point))
        return;
    for (int i = 0; i < N; i++)
        x[i] = affine_of(&work, x[i], 3, 7);
    expect_numbers(f, bindings[1].buffer, x, what);
}

// A newer core's records are longer than in these headers by this number of bytes.
enum { MORE = 40 };

// Gives `count` records of `size` bytes, MORE bytes apart, in memory of static duration.
static const void *segment_group_lengthen(const void *records, uint32_t count, size_t size)
{
    static _Alignas(8) unsigned char room[16384];
    static size_t used;
    if (sizeof(room) - used < count * (size + MORE))
        used = 0;
    unsigned char *at = room + used;
    used += count * (size + MORE);
    memset(at, 0xff, count * (size + MORE));
    for (uint32_t i = 0; i < count; i++)
        memcpy(at + i * (size + MORE), (const char *)records + i * size, size);
    return at;
}

static void lengthen_draft(void)
{
    tn_segment *segment = &draft.segment;
    for (uint32_t i = 0; i < segment->num_steps; i++) {
        tn_step *step = &draft.steps[i];
        step->struct_size += MORE;
        step->inputs =
            segment_group_lengthen(step->inputs, step->num_inputs, sizeof(tn_value));
        step->outputs =
            segment_group_lengthen(step->outputs, step->num_outputs, sizeof(tn_value));
        step->value_size += MORE;
    }
    segment->steps =
        segment_group_lengthen(draft.steps, segment->num_steps, sizeof(tn_step));
    segment->slots =
        segment_group_lengthen(draft.slots, segment->num_slots, sizeof(tn_slot));
    segment->step_size += MORE;
    segment->slot_size += MORE;
}

// Steps, values, slots and bindings of a newer core are longer than in these headers. The
// second step is the last to read the result of the first.
static void check_segment_records(struct fixture *f)
{
    static uint32_t x[N], y[N], z[N];
    uint64_t point;
    if (!arithmetic_begin(f, &work))
        return;
    draft_plain();
    tn_value in[2] = {arithmetic_value(&work, 1, N), arithmetic_value(&work, 0, N)};
    tn_value out = arithmetic_value(&work, 2, N);
    in[0].flags = TN_VALUE_LAST;
    draft_slot(&draft, 0, N * 4);
    draft_combine(&draft, &work, in, &out, 5);
    lengthen_draft();
    const tn_binding bindings[3] = {{segment_group_numbers(f, x), 0},
                                    {segment_group_numbers(f, y), 0},
                                    {segment_group_numbers(f, z), 0}};
    tn_executable *executable = fixture_compile(f, &draft.segment);
    const tn_submission submission = {
        .struct_size = sizeof(submission),
        .executable = executable,
        .bindings = segment_group_lengthen(bindings, 3, sizeof(tn_binding)),
        .num_bindings = 3,
        .binding_size = sizeof(tn_binding) + MORE};
    if (!executable || !bindings[0].buffer || !bindings[1].buffer || !bindings[2].buffer ||
        !fixture_submit_to(f, &submission, &point) || !fixture_wait(f, point))
        return;
    for (int i = 0; i < N; i++)
        x[i] = combine_of(&work, affine_of(&work, x[i], 3, 7), x[i], 5);
    expect_numbers(f, bindings[2].buffer, x, "records longer than this plugin knows");
}

// tn_segment is borrowed until segment_compile returns; the arrays that it points to stay.
static void check_segment_borrows(struct fixture *f)
{
    if (!arithmetic_begin(f, &work))
        return;
    draft_plain();
    tn_executable *executable = fixture_compile(f, &draft.segment);
    memset(&draft.segment, 0xff, sizeof(draft.segment));
    if (executable)
        expect_plain(f, executable, "after the caller's tn_segment is gone");
}

static void check_segment_empty(struct fixture *f)
{
    static uint32_t x[N], y[N];
    if (!arithmetic_begin(f, &work))
        return;
    tn_buffer *buffers[2] = {segment_group_numbers(f, x), segment_group_numbers(f, y)};
    if (!buffers[0] || !buffers[1])
        return;
    draft_start(&draft); // no step at all
    segment_group_run(f, NULL);
    draft_plain();
    for (uint32_t i = 0; i < draft.steps[0].num_inputs; i++)
        draft.inputs[0][i].layout.extent[0] = 0;
    draft.outputs[0].layout.extent[0] = 0;
    if (segment_group_run(f, buffers))
        expect_numbers(f, buffers[1], y, "a step over no elements");
}

// --- operations ------------------------------------------------------------------------

static void try_operation(struct fixture *f, uint16_t op, tn_dtype dtype)
{
    tn_dtype result = tn_expr_result(op, dtype);
    program_single(&single, op, tn_expr_operands(op), dtype, result);
    draft_start(&draft);
    for (int i = 0; i < 3; i++)
        draft_slot(&draft, 0, 64 * 8);
    tn_value in[2] = {flat_value(0, dtype, 64), flat_value(1, dtype, 64)};
    tn_value out = flat_value(2, result, 64);
    tn_step *step = draft_program(&draft, &single, in, &out, 0, 0);
    check_case(f->kit);
    if (!segment_accepts(f, step))
        return;
    tn_executable *executable = fixture_compile(f, &draft.segment);
    if (!executable)
        return; // the check has failed
    f->num_executables--;
    f->backend->executable_destroy(f->device, executable);
}

// Each operation either compiles, or step_check refuses it with a reason.
static void check_segment_operations(struct fixture *f)
{
    if (!runs_programs(f, TN_F32) || !runs_programs(f, TN_I32))
        return;
    static const tn_dtype dtypes[] = {TN_F32, TN_I32, TN_BOOL};
    for (uint16_t op = 0; op < TN_EXPR_NUM_OPS; op++) {
        for (size_t i = 0; i < COUNT(dtypes) && !check_failed(f->kit); i++)
            if (tn_dtype_in(dtypes[i], tn_expr_dtypes(op)))
                try_operation(f, op, dtypes[i]);
    }
}

// --- memory ----------------------------------------------------------------------------

// Compiles, runs and destroys the draft while the n-th allocation fails. False: there was
// no n-th allocation.
static bool run_poorly(struct fixture *f, uint64_t n, const tn_binding *bindings)
{
    tn_executable *executable = NULL;
    uint64_t live = f->host.live, point = 0;
    check_case(f->kit);
    f->host.fail_at = f->host.allocations + n;
    fixture_listen(f);
    tn_status status = f->backend->segment_compile(f->device, &draft.segment, &executable);
    if (fixture_heard(f, status, "segment_compile") == TN_OK) {
        tn_submission submission = {.struct_size = sizeof(submission),
                                    .flags = n % 2 ? 0 : TN_SUBMIT_ASYNC,
                                    .executable = executable,
                                    .bindings = bindings,
                                    .num_bindings = 2,
                                    .binding_size = sizeof(tn_binding)};
        status = f->backend->submit(f->device, &submission, &point);
        if (fixture_heard(f, status, "submit") == TN_OK)
            status = fixture_heard(f, f->backend->wait(f->device, 0, point), "wait");
        f->backend->executable_destroy(f->device, executable);
    } else if (f->host.live > live) {
        check_fail(f->kit, "allocation %llu fails, and segment_compile leaves %llu blocks",
                   (unsigned long long)n, (unsigned long long)(f->host.live - live));
    }
    bool was_met = f->host.allocations >= f->host.fail_at;
    f->host.fail_at = 0;
    if (status != TN_OK && status != TN_ERR_MEMORY)
        check_fail(f->kit, "allocation %llu fails, and the status is %d, expected %d",
                   (unsigned long long)n, status, TN_ERR_MEMORY);
    return was_met;
}

static void check_segment_memory(struct fixture *f)
{
    static uint32_t x[N], y[N];
    if (!arithmetic_begin(f, &work))
        return;
    draft_plain();
    tn_binding bindings[2] = {{segment_group_numbers(f, x), 0},
                              {segment_group_numbers(f, y), 0}};
    if (!bindings[0].buffer || !bindings[1].buffer)
        return;
    for (uint64_t n = 1; n < MAX_ALLOCATIONS && run_poorly(f, n, bindings); n++)
        if (check_failed(f->kit))
            return;
    tn_executable *executable = fixture_compile(f, &draft.segment);
    if (executable)
        expect_plain(f, executable, "after memory ran out");
}

static void check_segment_frees(struct fixture *f)
{
    uint64_t live = 0;
    if (!arithmetic_begin(f, &work))
        return;
    draft_plain();
    for (int i = 0; i < 40; i++) {
        if (i == 10)
            live = f->host.live; // caches are full
        tn_executable *executable = fixture_compile(f, &draft.segment);
        if (!executable)
            return;
        f->num_executables--;
        f->backend->executable_destroy(f->device, executable);
    }
    if (f->host.live > live)
        check_fail(f->kit, "30 segments compiled and destroyed leave %llu blocks",
                   (unsigned long long)(f->host.live - live));
}

static const struct fixture_check checks[] = {
    {"segment.values", check_segment_values},
    {"segment.order", check_segment_order},
    {"segment.alias", check_segment_alias},
    {"segment.records", check_segment_records},
    {"segment.borrows", check_segment_borrows},
    {"segment.empty", check_segment_empty},
    {"segment.operations", check_segment_operations},
    {"segment.memory", check_segment_memory},
    {"segment.frees", check_segment_frees},
};

void group_segment(struct kit *k)
{
    fixture_run(k, checks, COUNT(checks));
    segment_takes(k);
}
