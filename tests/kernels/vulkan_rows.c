// SPDX-License-Identifier: MIT
// Row programs on a Vulkan backend against <tenon/ops/program_rows.h>: lengths around the
// borders of the kernels' classes, layouts, dtypes. Once as on a GPU, whose lanes are
// folded by shuffles, and once as on a software driver, by shared memory. TENON_TEST_PLUGIN
// names the backend.
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <tenon/ops/program_rows.h>
#include "vulkan_bench.h"

static struct vulkan_bench bench;
static uint64_t state;

static double draw(void) // -1 to 1
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 40) * 0x1p-23 - 1;
}

// --- programs --------------------------------------------------------------------------

struct made {
    tn_expr_program program;
    tn_expr_insn insns[24];
    uint64_t constants[1], params[2];
    tn_dtype inputs[3], outputs[6];
    uint32_t positions[6];
    bool is_row[6]; // the output has one element a row
};

static uint32_t add(struct made *m, uint16_t op, tn_dtype dtype, uint32_t a, uint32_t b)
{
    m->insns[m->program.num_insns] = (tn_expr_insn){op, (uint16_t)dtype, a, b, 0};
    return m->program.num_insns++;
}

static uint32_t load(struct made *m, tn_dtype dtype)
{
    m->inputs[m->program.num_inputs] = dtype;
    return add(m, TN_EXPR_LOAD, tn_dtype_computed(dtype), m->program.num_inputs++, 0);
}

static void give(struct made *m, tn_dtype dtype, uint32_t position, bool is_row)
{
    m->is_row[m->program.num_outputs] = is_row;
    m->outputs[m->program.num_outputs] = dtype;
    m->positions[m->program.num_outputs++] = position;
}

static void write_softmax(struct made *m, tn_dtype dtype)
{
    tn_dtype t = tn_dtype_computed(dtype);
    uint32_t x = load(m, dtype);
    uint32_t d = add(m, TN_EXPR_SUB, t, x, add(m, TN_EXPR_REDUCE_MAX, t, x, 0));
    uint32_t e = add(m, TN_EXPR_EXP, t, d, 0);
    give(m, dtype, add(m, TN_EXPR_DIV, t, e, add(m, TN_EXPR_REDUCE_SUM, t, e, 0)), false);
}

static uint32_t mean(struct made *m, tn_dtype t, uint32_t x, uint32_t count)
{
    return add(m, TN_EXPR_DIV, t, add(m, TN_EXPR_REDUCE_SUM, t, x, 0), count);
}

// Layer norm times w, plus eps times the row's y; the mean is an output, too.
static void write_norm(struct made *m, tn_dtype dtype)
{
    tn_dtype t = tn_dtype_computed(dtype);
    double eps = 1e-3;
    memcpy(&m->params[0], &eps, sizeof(eps));
    uint32_t x = load(m, dtype), w = load(m, dtype), y = load(m, dtype);
    uint32_t n = add(m, TN_EXPR_CAST, t, add(m, TN_EXPR_EXTENT, TN_I64, 0, 0), 0);
    uint32_t middle = mean(m, t, x, n), d = add(m, TN_EXPR_SUB, t, x, middle);
    uint32_t var = mean(m, t, add(m, TN_EXPR_MUL, t, d, d), n);
    uint32_t by = add(m, TN_EXPR_PARAM, t, 0, 0);
    uint32_t scale = add(m, TN_EXPR_RSQRT, t, add(m, TN_EXPR_ADD, t, var, by), 0);
    uint32_t out = add(m, TN_EXPR_MUL, t, add(m, TN_EXPR_MUL, t, d, scale), w);
    give(m, dtype, add(m, TN_EXPR_ADD, t, out, add(m, TN_EXPR_MUL, t, y, by)), false);
    give(m, dtype, middle, true);
}

// All reductions, in one phase; the index of the first greatest element; what is spread
// over a row.
static void write_totals(struct made *m, tn_dtype dtype)
{
    tn_dtype t = tn_dtype_computed(dtype);
    uint32_t x = load(m, dtype);
    uint32_t most = add(m, TN_EXPR_REDUCE_MAX, t, x, 0);
    uint32_t index = add(m, TN_EXPR_INDEX, TN_I64, 0, 0);
    uint32_t high = add(m, TN_EXPR_CONST, TN_I64, 0, 0);
    m->constants[0] = INT64_MAX;
    uint32_t equal = add(m, TN_EXPR_EQ, TN_BOOL, x, most),
             at = add(m, TN_EXPR_SELECT, TN_I64, equal, index);
    m->insns[at].c = high;
    if (t != TN_BOOL) {
        give(m, dtype, add(m, TN_EXPR_REDUCE_SUM, t, x, 0), true);
        give(m, dtype, add(m, TN_EXPR_REDUCE_PROD, t, x, 0), true);
    }
    give(m, dtype, add(m, TN_EXPR_REDUCE_MIN, t, x, 0), true);
    give(m, dtype, most, false);
    give(m, TN_I64, add(m, TN_EXPR_REDUCE_MIN, TN_I64, at, 0), true);
}

// --- steps -----------------------------------------------------------------------------

struct check {
    struct made made;
    tn_step *step;
    unsigned char *want[6];
    int64_t rows, extent;
};
static struct check checks[VB_MAX_STEPS];
static uint32_t num_checks;

static uint64_t span(const tn_layout *layout)
{
    int64_t last = layout->offset;
    for (int32_t i = 0; i < layout->rank; i++)
        if (layout->stride[i] > 0 && layout->extent[i] > 0)
            last += (layout->extent[i] - 1) * layout->stride[i];
    return (uint64_t)((last + 1) * tn_dtype_bytes(layout->dtype));
}

// How an operand lies in memory.
enum form {
    DENSE,
    GAPS,    // from element 1 on, rows of an odd stride
    COLUMNS, // the elements of a column are adjacent
    TURNED,  // the outer axes in the other order
    OF_LAST, // one row for all
    OF_ROWS, // one element a row
};

static tn_layout lay_out(tn_dtype dtype, const tn_shape *shape, enum form form)
{
    tn_layout out = {.dtype = dtype, .rank = shape->rank};
    int32_t last = shape->rank - 1;
    int64_t stride = 1;
    memcpy(out.extent, shape->extent, sizeof(shape->extent));
    for (int32_t i = last; i >= 0; i--) {
        out.stride[i] = stride;
        stride *= shape->extent[i];
        if (i == last && form == GAPS)
            stride += 3 - stride % 2;
    }
    if (form == GAPS)
        out.offset = 1;
    if (form == TURNED && last == 2) {
        out.stride[0] = shape->extent[2];
        out.stride[1] = shape->extent[2] * shape->extent[0];
    }
    if (form == COLUMNS) {
        out.stride[0] = 1;
        out.stride[1] = shape->extent[0];
    }
    for (int32_t i = 0; i < last && form == OF_LAST; i++)
        out.stride[i] = 0;
    for (int32_t i = last - 1; i >= 0 && form == OF_ROWS; i--)
        out.stride[i] = i == last - 1 ? 1 : out.stride[i + 1] * shape->extent[i + 1];
    out.stride[last] = form == OF_ROWS ? 0 : out.stride[last];
    return out;
}

static void fill(unsigned char *memory, tn_dtype dtype, uint64_t bytes)
{
    tn_tensor tensor = {memory, {.dtype = dtype}};
    for (int64_t i = 0; i < (int64_t)(bytes / (uint64_t)tn_dtype_bytes(dtype)); i++) {
        if (tn_is_float(dtype))
            tn_set_f64(&tensor, i, draw());
        else
            tn_set_i64(&tensor, i,
                       dtype == TN_BOOL ? draw() > -0.9 : (int64_t)(draw() * 120));
    }
}

#define GUARD 64 // bytes after each output that must stay as they are
#define CANARY 0xa5

static void add_output(struct check *check, uint32_t i, const tn_shape *shape,
                       enum form form)
{
    const tn_expr_program *program = &check->made.program;
    tn_shape own = *shape;
    if (check->made.is_row[i])
        own.extent[own.rank - 1] = 1;
    tn_layout layout =
        lay_out(program->output_dtypes[i], &own, check->made.is_row[i] ? DENSE : form);
    uint64_t bytes = span(&layout) + GUARD;
    uint32_t slot = vb_slot(&bench, bytes);
    memset(bench.memory[slot], CANARY, bytes);
    vb_set(check->step, program->num_inputs + i, slot, &layout);
    check->want[i] = malloc(bytes);
    cr_assert(ne(ptr, check->want[i], NULL));
    memset(check->want[i], CANARY, bytes);
}

static void add_check(void (*write)(struct made *, tn_dtype), tn_dtype dtype,
                      const tn_shape *shape, enum form form)
{
    struct check *check = &checks[num_checks++];
    struct made *m = &check->made;
    *check = (struct check){.extent = shape->extent[shape->rank - 1]};
    m->program = (tn_expr_program){.struct_size = sizeof(m->program),
                                   .flags = TN_EXPR_ROWS,
                                   .insns = m->insns,
                                   .constants = m->constants,
                                   .input_dtypes = m->inputs,
                                   .output_dtypes = m->outputs,
                                   .outputs = m->positions,
                                   .num_constants = 1,
                                   .num_params = 1,
                                   .name = "made by hand"};
    write(m, dtype);
    check->step = vb_step(&bench, m->program.num_inputs, m->program.num_outputs);
    check->step->program = &m->program;
    check->step->params = m->params;
    tn_tensor inputs[3], outputs[6];
    for (uint32_t i = 0; i < m->program.num_inputs; i++) {
        tn_layout layout = lay_out(m->inputs[i], shape,
                                   i == 0   ? form
                                   : i == 1 ? OF_LAST
                                            : OF_ROWS);
        uint32_t slot = vb_slot(&bench, span(&layout));
        fill(bench.memory[slot], layout.dtype, span(&layout));
        vb_set(check->step, i, slot, &layout);
        inputs[i] = (tn_tensor){bench.memory[slot], layout};
    }
    for (uint32_t i = 0; i < m->program.num_outputs; i++) {
        add_output(check, i, shape, form == COLUMNS ? DENSE : form);
        outputs[i] = (tn_tensor){check->want[i], tn_step_output(check->step, i)->layout};
    }
    tn_program_run_rows(&m->program, m->params, inputs, outputs);
}

// --- comparing -------------------------------------------------------------------------

// Sums of n numbers from -1 to 1, of which most errors cancel; functions within 4 units.
static double bound_of(tn_dtype dtype)
{
    return dtype == TN_F64 ? 1e-12 : dtype == TN_F32 ? 1e-5 : dtype == TN_F16 ? 2e-3 : 2e-2;
}

static void compare_output(const struct check *check, uint32_t i)
{
    const tn_value *value = tn_step_output(check->step, i);
    uint64_t bytes = span(&value->layout);
    const tn_tensor got = {bench.memory[value->slot], {.dtype = value->layout.dtype}};
    const tn_tensor want = {check->want[i], {.dtype = value->layout.dtype}};
    bool is_float = tn_is_float(value->layout.dtype);
    for (int64_t k = 0; k < (int64_t)bytes / tn_dtype_bytes(value->layout.dtype); k++) {
        double a = is_float ? tn_get_f64(&got, k) : (double)tn_get_i64(&got, k);
        double b = is_float ? tn_get_f64(&want, k) : (double)tn_get_i64(&want, k);
        double bound = is_float ? bound_of(value->layout.dtype) * (1 + fabs(b)) : 0;
        if (!(fabs(a - b) <= bound) && !(isnan(a) && isnan(b)) && a != b)
            cr_fatal("%s, rows of %lld, output %u: element %lld is %.9g, expected %.9g",
                     tn_dtype_name(check->made.inputs[0]), (long long)check->extent, i,
                     (long long)k, a, b);
    }
    for (uint64_t k = bytes; k < bytes + GUARD; k++)
        cr_assert(eq(u8, bench.memory[value->slot][k], CANARY));
}

static void run_checks(void)
{
    for (uint32_t i = 0; i < num_checks; i++) {
        const char *reason = NULL;
        if (!bench.backend->step_check(bench.device, checks[i].step, &reason))
            cr_fatal("rows of %lld: refused: %s", (long long)checks[i].extent, reason);
    }
    if (vb_run(&bench) != TN_OK)
        cr_fatal("%s", vb_failure);
    for (uint32_t i = 0; i < num_checks; i++)
        for (uint32_t k = 0; k < checks[i].made.program.num_outputs; k++) {
            compare_output(&checks[i], k);
            free(checks[i].want[k]);
        }
    num_checks = 0;
    vb_clear(&bench);
}

// Lengths and dtypes in turns: each is a kernel to compile.
static void add_all(bool as_gpu)
{
    static const int64_t lengths[] = {3,   2,   31,  32,   33,    63,   64,   65,
                                      255, 256, 257, 1000, 40000, 4097, 20000};
    static const tn_dtype dtypes[] = {TN_F64, TN_F16, TN_BF16};
    static const tn_dtype integers[] = {TN_I8,  TN_U16,  TN_I32, TN_U64,
                                        TN_I64, TN_BOOL, TN_F32};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        if (as_gpu == (i % 3 == 0) || lengths[i] == 1000)
            add_check(i % 3 == 2 ? write_norm : write_softmax, TN_F32,
                      &(tn_shape){2, 0, {lengths[i] < 999 ? 9 : 2, lengths[i]}}, DENSE);
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        if (as_gpu == (i == 1))
            continue;
        add_check(write_softmax, dtypes[i], &(tn_shape){2, 0, {3, 96}}, DENSE);
        add_check(write_norm, dtypes[i], &(tn_shape){2, 0, {3, 515}}, DENSE);
    }
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
        if (as_gpu == (i % 2 == 0))
            add_check(write_totals, integers[i], &(tn_shape){2, 0, {5, i % 2 ? 50 : 200}},
                      DENSE);
    add_check(write_totals, TN_I32, &(tn_shape){1, 0, {9000}}, DENSE);
    add_check(write_norm, TN_F32, &(tn_shape){2, 0, {7, 64}}, GAPS);
    add_check(write_norm, TN_F32, &(tn_shape){3, 0, {4, 5, 64}}, TURNED);
    add_check(write_totals, TN_F32, &(tn_shape){4, 0, {2, 3, 4, 7}}, DENSE);
    add_check(write_norm, TN_F32, &(tn_shape){2, 0, {4100, 6}}, COLUMNS);
    add_check(write_totals, TN_I16, &(tn_shape){2, 0, {4096, 70}}, COLUMNS);
}

// --- tests -----------------------------------------------------------------------------

static void begin(bool as_gpu)
{
    vb_as_gpu = as_gpu;
    if (!vb_begin(&bench, check_getenv("TENON_TEST_PLUGIN")))
        cr_skip("no device is here");
}

static void end(void)
{
    cr_assert(vb_end(&bench));
}

TestSuite(vulkan_rows, .fini = end);

Test(vulkan_rows, kernels_of_gpus_agree_with_the_definition)
{
    begin(true);
    add_all(true);
    run_checks();
}

Test(vulkan_rows, kernels_of_software_drivers_agree_with_the_definition)
{
    begin(false);
    add_all(false);
    run_checks();
}

Test(vulkan_rows, nan_and_infinity_stay_in_their_row)
{
    begin(false);
    add_check(write_totals, TN_F32, &(tn_shape){2, 0, {3, 40}}, DENSE);
    const tn_value *x = tn_step_input(checks[0].step, 0);
    float *data = (float *)(void *)bench.memory[x->slot];
    data[17] = NAN;
    data[40 + 3] = -INFINITY;
    data[80 + 39] = INFINITY;
    tn_tensor outputs[6], input = {data, x->layout};
    for (uint32_t i = 0; i < checks[0].made.program.num_outputs; i++)
        outputs[i] =
            (tn_tensor){checks[0].want[i], tn_step_output(checks[0].step, i)->layout};
    tn_program_run_rows(&checks[0].made.program, checks[0].made.params, &input, outputs);
    run_checks();
}

// What the core runs otherwise.
Test(vulkan_rows, what_is_slower_or_impossible_is_refused)
{
    static const struct {
        tn_shape shape;
        enum form form;
        const char *reason;
    } cases[] = {
        {{2, 0, {3, 0}}, DENSE, "its rows have no elements"},
        {{2, 0, {3, 1}}, DENSE, "its rows have one element"},
        {{2, 0, {3, 70000}}, DENSE, "few rows as long as these"},
        {{2, 0, {100, 6}}, COLUMNS, "few rows with gaps"},
    };
    begin(false);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct made m = {
            .program = {.struct_size = sizeof(m.program), .flags = TN_EXPR_ROWS}};
        m.program.insns = m.insns;
        m.program.input_dtypes = m.inputs;
        m.program.output_dtypes = m.outputs;
        m.program.outputs = m.positions;
        write_softmax(&m, TN_F32);
        tn_step *step = vb_step(&bench, 1, 1);
        step->program = &m.program;
        for (uint32_t k = 0; k < 2; k++) {
            tn_layout layout = lay_out(TN_F32, &cases[i].shape, cases[i].form);
            vb_set(step, k, vb_slot(&bench, 4 + span(&layout)), &layout);
        }
        const char *reason = "";
        bool runs = bench.backend->step_check(bench.device, step, &reason);
        if (runs || !strstr(reason, cases[i].reason))
            cr_fatal("case %zu: %s \"%s\"", i, runs ? "runs" : "refused", reason);
    }
    vb_clear(&bench);
}
