// SPDX-License-Identifier: MIT
// Segments of programs: their results, their order, the records they are made of.
#include <math.h>
#include "array.h"
#include "checks.h"
#include "draft.h"

enum { N = 3001, MAX_ALLOCATIONS = 300 };

static struct draft draft;
static struct program affine, combine;

// --- what all are made with ------------------------------------------------------------

// Skips the check where programs are not run at all.
static bool runs_programs(struct bench *b, tn_dtype dtype)
{
    uint32_t dtypes = b->info.dtypes ? b->info.dtypes : TN_ALL_DTYPES;
    bool can = bench_consumes(b, TN_FAMILY_EXPR) && dtypes & TN_DTYPE_BIT(dtype);
    if (!can)
        check_skip(b->kit, "it runs no programs of %s", tn_dtype_name(dtype));
    return can;
}

// Whether the backend takes the step; if not it must say why.
static bool takes(struct bench *b, const tn_step *step)
{
    const char *reason = NULL;
    if (!TN_HAS(b->backend, step_check) || b->backend->step_check(b->device, step, &reason))
        return true;
    if (!reason || !reason[0])
        check_fail(b->kit, "step_check refuses a step and gives no reason");
    return false;
}

static uint64_t aligned(const struct bench *b, uint64_t size)
{
    uint64_t a = b->info.buffer_alignment ? b->info.buffer_alignment : 1;
    return (size + a - 1) / a * a;
}

// Compiles the draft, runs it once and waits. `buffers` are bound from their beginning.
static bool run(struct bench *b, tn_buffer *const *buffers)
{
    tn_binding bindings[DRAFT_SLOTS] = {{0}};
    uint64_t point;
    tn_executable *executable = bench_compile(b, &draft.segment);
    for (uint32_t i = 0; i < draft.segment.num_slots; i++)
        bindings[i].buffer = buffers[i];
    return executable &&
           bench_submit(b, executable, bindings, draft.segment.num_slots, 0, &point) &&
           bench_wait(b, point);
}

// A buffer of N numbers.
static tn_buffer *numbers(struct bench *b, uint32_t *values)
{
    for (int i = 0; i < N; i++)
        values[i] = (uint32_t)random_bits(b->kit);
    tn_buffer *buffer = bench_buffer(b, N * sizeof(*values));
    return buffer && bench_write(b, buffer, 0, values, N * sizeof(*values)) ? buffer : NULL;
}

static void expect_numbers(struct bench *b, tn_buffer *buffer, const uint32_t *want,
                           const char *what)
{
    static uint32_t got[N];
    if (!bench_computes(b))
        check_skip(b->kit, "it computes nothing");
    if (!bench_computes(b) || !bench_read(b, buffer, 0, got, sizeof(got)))
        return;
    for (int i = 0; i < N; i++)
        if (got[i] != want[i]) {
            check_fail(b->kit, "%s: element %d is %d, expected %d", what, i,
                       (int32_t)got[i], (int32_t)want[i]);
            return;
        }
}

// --- values ----------------------------------------------------------------------------

// An array's memory in a buffer of its own.
static tn_value upload(struct bench *b, const struct array *a, tn_buffer **out_buffer)
{
    tn_value value = {.layout = a->tensor.layout};
    value.slot = draft_slot(&draft, 0, a->size);
    *out_buffer = bench_buffer(b, a->size);
    if (*out_buffer && !bench_write(b, *out_buffer, 0, a->memory, a->size))
        *out_buffer = NULL;
    return value;
}

static void expected(const struct array *x, struct array *out)
{
    bool is_bool = x->tensor.layout.dtype == TN_BOOL;
    for (int64_t i = 0; i < x->count; i++)
        array_set(out, i, is_bool ? !array_get(x, i) : 3 * array_get(x, i) + 7);
}

static void compare(struct bench *b, tn_buffer *buffer, struct array *got,
                    const struct array *want, const char *what)
{
    if (!bench_computes(b) || !bench_read(b, buffer, 0, got->memory, got->size))
        return;
    const char *failure = array_compare(got, want, 0, 0);
    if (failure)
        check_fail(b->kit, "%s: 3x + 7: %s", what, failure);
    else if (!array_guards_hold(got, 0x5a))
        check_fail(b->kit, "%s: something is written outside of the output", what);
}

static void try_layout(struct bench *b, tn_dtype dtype, enum layout_kind kind)
{
    tn_type type = {.dtype = dtype, .rank = 2, .extent = {13, 37}};
    tn_buffer *buffers[2];
    char what[60];
    struct array plain = array_new(&type, PLAIN, 0);
    array_fill(b->kit, &plain, 0, 9);
    for (int64_t i = 0; i < plain.count; i++) // small whole numbers are exact everywhere
        array_set(&plain, i, floor(array_get(&plain, i)));
    struct array x = array_laid_out(&plain, kind);
    struct array out = array_new(&type, kind == PLAIN ? PLAIN : SHIFTED, 0x5a);
    struct array want = array_new(&type, PLAIN, 0);
    expected(&x, &want);
    draft_start(&draft);
    program_affine(&affine, dtype);
    tn_value values[2] = {upload(b, &x, &buffers[0]), upload(b, &out, &buffers[1])};
    values_merge(values, 2);
    tn_step *step = draft_program(&draft, &affine, &values[0], &values[1], 3, 7);
    format_text(what, sizeof(what), "%s, %s", tn_dtype_name(dtype), layout_names[kind]);
    check_case(b->kit);
    if (!takes(b, step))
        check_fail(b->kit, "%s: step_check refuses a dtype that its info lists", what);
    else if (buffers[0] && buffers[1] && run(b, buffers))
        compare(b, buffers[1], &out, &want, what);
    for (uint32_t i = 0; i < 2; i++)
        if (buffers[i])
            bench_destroy(b, buffers[i]);
    array_free(&plain);
    array_free(&x);
    array_free(&out);
    array_free(&want);
}

static void check_values(struct bench *b)
{
    if (!bench_consumes(b, TN_FAMILY_EXPR)) {
        check_skip(b->kit, "it runs no programs");
        return;
    }
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++) {
        if (b->info.dtypes && !(b->info.dtypes & TN_DTYPE_BIT(dtype)))
            continue;
        bool every = dtype == TN_F32 || dtype == TN_I32;
        for (int kind = PLAIN; kind < (every ? NUM_LAYOUTS : PLAIN + 1); kind++)
            if (!check_failed(b->kit))
                try_layout(b, dtype, (enum layout_kind)kind);
    }
    if (!bench_computes(b))
        check_skip(b->kit, "it computes nothing");
}

// --- order -----------------------------------------------------------------------------

enum { PLACES = 8, OF_SCRATCH = 4, STEPS = 48 };

// A place for N numbers: a slot of its own, or a part of the scratch slot.
static tn_value place_value(const struct bench *b, uint32_t place)
{
    tn_value value = flat_value(place < OF_SCRATCH ? 0 : place - OF_SCRATCH + 1, TN_I32, N);
    value.offset = place < OF_SCRATCH ? place * aligned(b, N * 4) : 0;
    return value;
}

static void random_step(struct bench *b, uint32_t values[PLACES][N])
{
    uint32_t x = (uint32_t)random_below(b->kit, PLACES);
    uint32_t y = (uint32_t)random_below(b->kit, PLACES);
    uint32_t to = (uint32_t)random_below(b->kit, PLACES);
    uint32_t a = (uint32_t)random_below(b->kit, 9), c = (uint32_t)random_below(b->kit, 100);
    while (to == x || to == y)
        to = (to + 1) % PLACES;
    tn_value in[2] = {place_value(b, x), place_value(b, y)}, out = place_value(b, to);
    bool two = random_below(b->kit, 2);
    draft_program(&draft, two ? &combine : &affine, in, &out, a, c);
    for (int i = 0; i < N; i++)
        values[to][i] = values[x][i] * a + (two ? values[y][i] : c);
}

// Steps at random over a few places: each reads what earlier ones wrote, and overwrites
// what earlier ones read.
static void check_order(struct bench *b)
{
    static uint32_t values[PLACES][N];
    tn_buffer *buffers[1 + PLACES - OF_SCRATCH];
    if (!runs_programs(b, TN_I32))
        return;
    program_affine(&affine, TN_I32);
    program_combine(&combine, TN_I32);
    draft_start(&draft);
    uint64_t scratch = OF_SCRATCH * aligned(b, N * 4);
    draft_slot(&draft, TN_SLOT_SCRATCH, scratch);
    buffers[0] = bench_buffer(b, scratch);
    for (uint32_t i = OF_SCRATCH; i < PLACES; i++) {
        draft_slot(&draft, 0, N * 4);
        buffers[i - OF_SCRATCH + 1] = numbers(b, values[i]);
    }
    for (uint32_t i = 0; i < OF_SCRATCH; i++) { // scratch holds nothing before
        tn_value in = place_value(b, PLACES - 1), out = place_value(b, i);
        draft_program(&draft, &affine, &in, &out, i, 5);
        for (int n = 0; n < N; n++)
            values[i][n] = values[PLACES - 1][n] * i + 5;
    }
    for (int i = 0; i < STEPS; i++)
        random_step(b, values);
    if (check_failed(b->kit) || !run(b, buffers))
        return;
    for (uint32_t i = OF_SCRATCH; i < PLACES; i++)
        expect_numbers(b, buffers[i - OF_SCRATCH + 1], values[i],
                       "steps that depend on each other");
}

// An output that takes over an input's memory: who still needs the input goes first.
static void check_alias(struct bench *b)
{
    static uint32_t x[N], y[N];
    if (!runs_programs(b, TN_I32))
        return;
    program_affine(&affine, TN_I32);
    draft_start(&draft);
    for (int i = 0; i < 3; i++)
        draft_slot(&draft, 0, N * 4);
    draft.slots[2].alias = 1; // slot 2 may be slot 0
    tn_value in = flat_value(0, TN_I32, N), other = flat_value(1, TN_I32, N);
    tn_value over = flat_value(2, TN_I32, N);
    draft_program(&draft, &affine, &in, &other, 2, 0);
    draft_program(&draft, &affine, &in, &over, 5, 1);
    tn_buffer *first = numbers(b, x), *second = numbers(b, y);
    if (!first || !second || !run(b, (tn_buffer *const[]){first, second, first}))
        return;
    for (int i = 0; i < N; i++) {
        y[i] = x[i] * 2;
        x[i] = x[i] * 5 + 1;
    }
    expect_numbers(b, second, y, "an input that is overwritten by a later step");
    expect_numbers(b, first, x, "an output in an input's memory");
}

// --- records ---------------------------------------------------------------------------

// out = 3 * x + 7 over N numbers, as slots 0 and 1.
static void draft_plain(void)
{
    draft_start(&draft);
    program_affine(&affine, TN_I32);
    draft_slot(&draft, 0, N * 4);
    draft_slot(&draft, 0, N * 4);
    tn_value in = flat_value(0, TN_I32, N), out = flat_value(1, TN_I32, N);
    draft_program(&draft, &affine, &in, &out, 3, 7);
}

static void expect_plain(struct bench *b, tn_executable *executable, const char *what)
{
    static uint32_t x[N], y[N];
    uint64_t point;
    tn_binding bindings[2] = {{numbers(b, x), 0}, {numbers(b, y), 0}};
    if (!bindings[0].buffer || !bindings[1].buffer ||
        !bench_submit(b, executable, bindings, 2, 0, &point) || !bench_wait(b, point))
        return;
    for (int i = 0; i < N; i++)
        x[i] = x[i] * 3 + 7;
    expect_numbers(b, bindings[1].buffer, x, what);
}

// A newer core's records are longer than those of these headers.
static void check_records(struct bench *b)
{
    enum { MORE = 40 };
    static unsigned char steps[4 * (sizeof(tn_step) + MORE)];
    static unsigned char slots[4 * (sizeof(tn_slot) + MORE)];
    if (!runs_programs(b, TN_I32))
        return;
    draft_plain(); // and a second step, that reads what the first wrote
    tn_value in = flat_value(1, TN_I32, N), out = flat_value(2, TN_I32, N);
    draft_slot(&draft, 0, N * 4);
    draft_program(&draft, &affine, &in, &out, 1, 1);
    memset(steps, 0xff, sizeof(steps));
    memset(slots, 0xff, sizeof(slots));
    for (uint32_t i = 0; i < draft.segment.num_steps; i++) {
        draft.steps[i].struct_size += MORE;
        memcpy(steps + i * (sizeof(tn_step) + MORE), &draft.steps[i], sizeof(tn_step));
    }
    for (uint32_t i = 0; i < draft.segment.num_slots; i++)
        memcpy(slots + i * (sizeof(tn_slot) + MORE), &draft.slots[i], sizeof(tn_slot));
    draft.segment.steps = (const tn_step *)(const void *)steps;
    draft.segment.slots = (const tn_slot *)(const void *)slots;
    draft.segment.step_size = sizeof(tn_step) + MORE;
    draft.segment.slot_size = sizeof(tn_slot) + MORE;
    static uint32_t x[N], y[N], z[N];
    tn_buffer *buffers[3] = {numbers(b, x), numbers(b, y), numbers(b, z)};
    if (!buffers[0] || !buffers[1] || !buffers[2] || !run(b, buffers))
        return;
    for (int i = 0; i < N; i++)
        x[i] = x[i] * 3 + 8;
    expect_numbers(b, buffers[2], x, "records longer than this plugin knows");
}

// The struct is borrowed until segment_compile returns; what it points to stays.
static void check_borrows(struct bench *b)
{
    if (!runs_programs(b, TN_I32))
        return;
    draft_plain();
    tn_executable *executable = bench_compile(b, &draft.segment);
    memset(&draft.segment, 0xff, sizeof(draft.segment));
    if (executable)
        expect_plain(b, executable, "after the caller's tn_segment is gone");
}

static void check_empty(struct bench *b)
{
    static uint32_t x[N], y[N];
    if (!runs_programs(b, TN_I32))
        return;
    tn_buffer *buffers[2] = {numbers(b, x), numbers(b, y)};
    if (!buffers[0] || !buffers[1])
        return;
    draft_start(&draft); // no step at all
    run(b, NULL);
    draft_plain();
    draft.inputs[0][0].layout.extent[0] = draft.outputs[0].layout.extent[0] = 0;
    if (run(b, buffers))
        expect_numbers(b, buffers[1], y, "a step over no elements");
}

// --- operations ------------------------------------------------------------------------

static uint32_t operands_of(uint16_t op)
{
#define OPERANDS(name, text, operands) operands,
    static const uint8_t counts[] = {TN_EXPR_OPS(OPERANDS)};
#undef OPERANDS
    return counts[op];
}

static void try_operation(struct bench *b, uint16_t op, tn_dtype dtype)
{
    bool is_question = (op >= TN_EXPR_EQ && op <= TN_EXPR_GE) ||
                       (op >= TN_EXPR_ISNAN && op <= TN_EXPR_ISFINITE);
    program_single(&affine, op, operands_of(op), dtype, is_question ? TN_BOOL : dtype);
    draft_start(&draft);
    for (int i = 0; i < 3; i++)
        draft_slot(&draft, 0, 64 * 8);
    tn_value in[2] = {flat_value(0, dtype, 64), flat_value(1, dtype, 64)};
    tn_value out = flat_value(2, is_question ? TN_BOOL : dtype, 64);
    tn_step *step = draft_program(&draft, &affine, in, &out, 0, 0);
    check_case(b->kit);
    if (!takes(b, step))
        return;
    tn_executable *executable = bench_compile(b, &draft.segment);
    if (!executable)
        return; // with the check failed
    b->num_executables--;
    b->backend->executable_destroy(b->device, executable);
}

// Each operation of programs is compiled, or refused by step_check.
static void check_operations(struct bench *b)
{
    if (!runs_programs(b, TN_F32) || !runs_programs(b, TN_I32))
        return;
    for (uint16_t op = TN_EXPR_NEG; op < TN_EXPR_NUM_OPS; op++) {
        bool of_bits = op == TN_EXPR_INVERT || (op >= TN_EXPR_AND && op <= TN_EXPR_SHR);
        bool of_bool = op == TN_EXPR_NOT;
        bool of_floats =
            (op >= TN_EXPR_FLOOR && op <= TN_EXPR_ISFINITE) || op == TN_EXPR_ATAN2;
        tn_dtype dtype = of_bits ? TN_I32 : of_bool ? TN_BOOL : TN_F32;
        if (!check_failed(b->kit))
            try_operation(b, op, dtype);
        if (!check_failed(b->kit) && !of_bits && !of_bool && !of_floats)
            try_operation(b, op, TN_I32);
    }
}

// --- memory ----------------------------------------------------------------------------

// Compiled, run and destroyed with the n-th allocation failing. False: no n-th.
static bool run_poorly(struct bench *b, uint64_t n, const tn_binding *bindings)
{
    tn_executable *executable = NULL;
    uint64_t live = b->host.live, point = 0;
    check_case(b->kit);
    b->host.fail_at = b->host.allocations + n;
    bench_listen(b);
    tn_status status = b->backend->segment_compile(b->device, &draft.segment, &executable);
    if (bench_heard(b, status, "segment_compile") == TN_OK) {
        tn_submission submission = {.struct_size = sizeof(submission),
                                    .flags = n % 2 ? 0 : TN_SUBMIT_ASYNC,
                                    .executable = executable,
                                    .bindings = bindings,
                                    .num_bindings = 2};
        status = b->backend->submit(b->device, &submission, &point);
        if (bench_heard(b, status, "submit") == TN_OK)
            status = bench_heard(b, b->backend->wait(b->device, point), "wait");
        b->backend->executable_destroy(b->device, executable);
    } else if (b->host.live > live) {
        check_fail(b->kit, "allocation %llu fails, and segment_compile leaves %llu blocks",
                   (unsigned long long)n, (unsigned long long)(b->host.live - live));
    }
    bool was_met = b->host.allocations >= b->host.fail_at;
    b->host.fail_at = 0;
    if (status != TN_OK && status != TN_ERR_MEMORY)
        check_fail(b->kit, "allocation %llu fails, and the status is %d, expected %d",
                   (unsigned long long)n, status, TN_ERR_MEMORY);
    return was_met;
}

static void check_memory(struct bench *b)
{
    static uint32_t x[N], y[N];
    if (!runs_programs(b, TN_I32))
        return;
    draft_plain();
    tn_binding bindings[2] = {{numbers(b, x), 0}, {numbers(b, y), 0}};
    if (!bindings[0].buffer || !bindings[1].buffer)
        return;
    for (uint64_t n = 1; n < MAX_ALLOCATIONS && run_poorly(b, n, bindings); n++)
        if (check_failed(b->kit))
            return;
    tn_executable *executable = bench_compile(b, &draft.segment);
    if (executable)
        expect_plain(b, executable, "after memory ran out");
}

static void check_frees(struct bench *b)
{
    uint64_t live = 0;
    if (!runs_programs(b, TN_I32))
        return;
    draft_plain();
    for (int i = 0; i < 40; i++) {
        if (i == 10)
            live = b->host.live; // caches are filled
        tn_executable *executable = bench_compile(b, &draft.segment);
        if (!executable)
            return;
        b->num_executables--;
        b->backend->executable_destroy(b->device, executable);
    }
    if (b->host.live > live)
        check_fail(b->kit, "30 segments compiled and destroyed leave %llu blocks",
                   (unsigned long long)(b->host.live - live));
}

static const struct bench_check checks[] = {
    {"segment.values", check_values},         {"segment.order", check_order},
    {"segment.alias", check_alias},           {"segment.records", check_records},
    {"segment.borrows", check_borrows},       {"segment.empty", check_empty},
    {"segment.operations", check_operations}, {"segment.memory", check_memory},
    {"segment.frees", check_frees},
};

void group_segment(struct kit *k)
{
    bench_run(k, checks, COUNT(checks));
}
