// SPDX-License-Identifier: MIT
// Elementwise programs on a Vulkan backend against the core's scalar interpreter: every
// operation in every dtype, layouts, casts, chains. TENON_TEST_PLUGIN names the backend.
#include "expr/expr.h"
#include "check.h"

#include <float.h>
#include <math.h>
#include <tenon/ops/reference.h>
#include "vulkan_bench.h"

static struct vulkan_bench bench;
static uint64_t seed, state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

// --- programs by hand ------------------------------------------------------------------

struct made {
    tn_expr_program program;
    tn_expr_insn insns[64];
    uint64_t constants[8];
    tn_dtype inputs[8], outputs[4];
    uint32_t positions[4];
};

static tn_dtype computed(tn_dtype dtype)
{
    return dtype == TN_F16 || dtype == TN_BF16 ? TN_F32 : dtype;
}

static struct made *made_new(void)
{
    struct made *m = calloc(1, sizeof(*m));
    cr_assert(ne(ptr, m, NULL));
    m->program = (tn_expr_program){.struct_size = sizeof(m->program),
                                   .insns = m->insns,
                                   .constants = m->constants,
                                   .input_dtypes = m->inputs,
                                   .output_dtypes = m->outputs,
                                   .outputs = m->positions,
                                   .name = "made by hand"};
    return m;
}

static uint32_t add_load(struct made *m, tn_dtype dtype)
{
    tn_expr_program *p = &m->program;
    m->inputs[p->num_inputs] = dtype;
    m->insns[p->num_insns] =
        (tn_expr_insn){TN_EXPR_LOAD, (uint16_t)computed(dtype), p->num_inputs++, 0, 0};
    return p->num_insns++;
}

static uint32_t add_op(struct made *m, uint16_t op, tn_dtype dtype, uint32_t a, uint32_t b,
                       uint32_t c)
{
    m->insns[m->program.num_insns] = (tn_expr_insn){op, (uint16_t)dtype, a, b, c};
    return m->program.num_insns++;
}

static void add_output(struct made *m, tn_dtype dtype, uint32_t position)
{
    m->outputs[m->program.num_outputs] = dtype;
    m->positions[m->program.num_outputs++] = position;
}

// --- values ----------------------------------------------------------------------------

static const double special[] = {
    0.0,           -0.0,   1.0,    -1.0,    0.5,      -0.5,   2.0,    -2.0,
    10.0,          1e-3,   100.0,  1e4,     3.5,      2.5,    -2.5,   INFINITY,
    -INFINITY,     NAN,    1e30,   -1e30,   127.5,    128.0,  255.9,  256.0,
    -129,          65504,  65519,  65520,   65536,    -32769, 0x1p31, -0x1p31,
    0x1.fffffep30, 0x1p32, 0x1p63, -0x1p63, 0x1.8p63, 0x1p64, 6e-8,   1e-4};
static const int64_t special_integers[] = {
    0,         1,        -1,        2,         -2,         7,         8,
    15,        16,       31,        32,        33,         63,        64,
    65,        127,      128,       -128,      255,        256,       32767,
    -32768,    65535,    INT32_MAX, INT32_MIN, UINT32_MAX, 1LL << 32, (1LL << 32) + 1,
    INT64_MAX, INT64_MIN};
#define NUM_SPECIAL (sizeof(special) / sizeof(special[0]))
#define NUM_INTEGERS (sizeof(special_integers) / sizeof(special_integers[0]))

// Whether values are drawn below the normal range of f32, which a device may take for 0.
static bool draws_subnormals;

static double draw_float(tn_dtype dtype, bool hostile)
{
    if (draws_subnormals && draw() % 8 == 0)
        return draw() % 2 ? 1e-40 : -3e-42;
    if (hostile && draw() % 3 == 0)
        return special[draw() % NUM_SPECIAL];
    double value = ((double)(draw() % 2000001) - 1000000.0) / 100000.0;
    return dtype == TN_F64 ? value : (float)value;
}

static void fill(unsigned char *memory, tn_dtype dtype, int64_t n, bool hostile)
{
    tn_tensor tensor = {memory, {.dtype = dtype}};
    for (int64_t i = 0; i < n; i++) {
        if (tn_dtype_in(dtype, TN_FLOAT_DTYPES))
            tn_set_f64(&tensor, i, draw_float(dtype, hostile));
        else if (dtype == TN_BOOL)
            tn_set_i64(&tensor, i, (int64_t)(draw() % 2));
        else if (hostile && draw() % 2)
            tn_set_i64(&tensor, i, special_integers[draw() % NUM_INTEGERS]);
        else if (draw() % 2)
            tn_set_i64(&tensor, i, (int64_t)(draw() % 40) - 12);
        else
            tn_set_i64(&tensor, i, (int64_t)(draw() << 16 ^ draw()));
    }
}

static uint64_t read_bits(const tn_tensor *tensor, int64_t at)
{
    if (!tn_dtype_in(tensor->layout.dtype, TN_FLOAT_DTYPES))
        return (uint64_t)tn_get_i64(tensor, at);
    double value = tn_get_f64(tensor, at);
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

// --- one check -------------------------------------------------------------------------

struct check {
    struct made *made;
    tn_step *step;
    const char *name;
    double tolerance; // relative; below 0: none, half floats included
    uint64_t params[4];
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

static tn_layout row_major(tn_dtype dtype, int32_t rank, const int64_t *extent)
{
    tn_layout layout = {.dtype = dtype, .rank = rank};
    int64_t stride = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        layout.extent[i] = extent[i];
        layout.stride[i] = stride;
        stride *= extent[i];
    }
    return layout;
}

#define GUARD 64 // elements after each output that must stay as they are
#define CANARY 0xa5

// Adds a step for a program; layouts of inputs, or NULL for row-major ones.
static struct check *add_check(struct made *made, const char *name, double tolerance,
                               int32_t rank, const int64_t *extent, const tn_layout *inputs,
                               bool hostile)
{
    const tn_expr_program *program = &made->program;
    tn_step *step = vb_step(&bench, program->num_inputs, program->num_outputs);
    struct check *check = &checks[num_checks++];
    *check = (struct check){made, step, name, tolerance, {0}};
    step->program = program;
    step->params = check->params;
    for (uint32_t i = 0; i < program->num_inputs; i++) {
        tn_layout layout =
            inputs ? inputs[i] : row_major(program->input_dtypes[i], rank, extent);
        layout.dtype = program->input_dtypes[i];
        uint32_t slot = vb_slot(&bench, span(&layout));
        fill(bench.memory[slot], layout.dtype,
             (int64_t)span(&layout) / tn_dtype_bytes(layout.dtype), hostile);
        vb_set(step, i, slot, &layout);
    }
    for (uint32_t i = 0; i < program->num_outputs; i++) {
        tn_layout layout = row_major(program->output_dtypes[i], rank, extent);
        uint64_t bytes = span(&layout) + GUARD * 8;
        uint32_t slot = vb_slot(&bench, bytes);
        memset(bench.memory[slot], CANARY, bytes);
        vb_set(step, program->num_inputs + i, slot, &layout);
    }
    return check;
}

static bool is_near(double got, double want, double tolerance, bool signs_count)
{
    if (isnan(got) && isnan(want))
        return true;
    if (got == want)
        return got != 0 || !signs_count || signbit(got) == signbit(want);
    // Results below the normal range may be flushed to zero.
    return fabs(got - want) <= tolerance * fabs(want) + 1.2e-38;
}

static void compare_element(const struct check *check, const uint64_t *inputs,
                            int64_t index)
{
    const tn_expr_program *program = &check->made->program;
    uint64_t want[4];
    program_run_scalar(program, inputs, check->params, index, want);
    for (uint32_t i = 0; i < program->num_outputs; i++) {
        const tn_value *value = tn_step_output(check->step, i);
        tn_tensor got = {bench.memory[value->slot], value->layout};
        uint64_t bits = read_bits(&got, value->layout.offset + index);
        if (bits == want[i])
            continue;
        double x, y;
        memcpy(&x, &bits, sizeof(x));
        memcpy(&y, &want[i], sizeof(y));
        double tolerance = check->tolerance > 0 ? check->tolerance : 0;
        if (value->layout.dtype == TN_F16 && check->tolerance >= 0)
            tolerance += 1.0 / 1024; // rounding may fall the other way
        if (value->layout.dtype == TN_BF16 && check->tolerance >= 0)
            tolerance += 1.0 / 128;
        if (tn_dtype_in(value->layout.dtype, TN_FLOAT_DTYPES) &&
            is_near(x, y, tolerance, check->tolerance <= 0))
            continue;
        char text[256] = "";
        for (uint32_t k = 0; k < program->num_inputs; k++) {
            double v;
            memcpy(&v, &inputs[k], sizeof(v));
            snprintf(text + strlen(text), sizeof(text) - strlen(text), " %.9g/%lld", v,
                     (long long)inputs[k]);
        }
        cr_fatal("%s of dtype %d, seed %llu: element %lld of%s is %.9g (%lld), expected "
                 "%.9g (%lld)",
                 check->name, program->input_dtypes[program->num_inputs - 1],
                 (unsigned long long)seed, (long long)index, text, x, (long long)bits, y,
                 (long long)want[i]);
    }
}

static void compare(const struct check *check)
{
    const tn_expr_program *program = &check->made->program;
    const tn_layout *common = &tn_step_output(check->step, 0)->layout;
    int64_t index[TN_MAX_RANK] = {0}, n = 0;
    if (tn_layout_count(common) == 0)
        return;
    do {
        uint64_t inputs[8];
        for (uint32_t i = 0; i < program->num_inputs; i++) {
            const tn_value *value = tn_step_input(check->step, i);
            tn_tensor tensor = {bench.memory[value->slot], value->layout};
            inputs[i] = read_bits(&tensor, tn_offset_at(&value->layout, index));
        }
        compare_element(check, inputs, n++);
    } while (tn_index_next(common->rank, common->extent, index));
    for (uint32_t i = 0; i < program->num_outputs; i++) {
        const tn_value *value = tn_step_output(check->step, i);
        uint64_t bytes = span(&value->layout);
        for (uint64_t k = 0; k < GUARD * 8; k++)
            cr_assert(eq(u8, bench.memory[value->slot][bytes + k], CANARY));
    }
}

static void run_checks(void)
{
    for (uint32_t i = 0; i < num_checks; i++) {
        const char *reason = NULL;
        if (!bench.backend->step_check(bench.device, checks[i].step, &reason))
            cr_fatal("%s: refused: %s", checks[i].name, reason);
    }
    if (vb_run(&bench) != TN_OK)
        cr_fatal("%s", vb_failure);
    for (uint32_t i = 0; i < num_checks; i++) {
        compare(&checks[i]);
        free(checks[i].made);
    }
    num_checks = 0;
    vb_clear(&bench);
}

// --- operations ------------------------------------------------------------------------

// What scalar.glsl promises, and 2.5 units for division and square roots, as Vulkan does.
static double tolerance_of(uint16_t op)
{
    const double ulp = 1.2e-7;
    if (op == TN_EXPR_POW)
        return 64 * ulp;
    switch (tn_expr_class(op)) {
    case TN_EXPR_CLASS_CIRCULAR:
        return 16 * ulp; // near their zeros the reduced angle's error shows
    case TN_EXPR_CLASS_FUNCTION:
        return 8 * ulp;
    case TN_EXPR_CLASS_EXTREME:
        return DBL_MIN; // exact, but for the sign of a zero
    case TN_EXPR_CLASS_DIVIDE:
    case TN_EXPR_CLASS_ROOT:
        return 3 * ulp;
    default:
        return 0;
    }
}

static struct made *single(uint16_t op, tn_dtype dtype)
{
    struct made *m = made_new();
    uint32_t operands[3] = {0};
    for (uint32_t i = 0; i < tn_expr_operands(op); i++)
        operands[i] = add_load(m, op == TN_EXPR_SELECT && i == 0 ? TN_BOOL : dtype);
    tn_dtype result = tn_expr_result(op, computed(dtype));
    uint32_t at = add_op(m, op, result, operands[0], operands[1], operands[2]);
    add_output(m, result == computed(dtype) ? dtype : result, at);
    return m;
}

// Which operations give the right result for what is subnormal as well, on every device:
// by the bits.
static bool keeps_subnormals(uint16_t op)
{
    return op == TN_EXPR_SIGN || op == TN_EXPR_MOD || op == TN_EXPR_FLOOR_DIV ||
           op == TN_EXPR_NEG || op == TN_EXPR_ABS || op == TN_EXPR_SELECT ||
           tn_expr_class(op) == TN_EXPR_CLASS_TEST;
}

static void begin(void)
{
    seed = check_seed(1);
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    if (!vb_begin(&bench, check_getenv("TENON_TEST_PLUGIN")))
        cr_skip("no device is here");
}

static void end(void)
{
    cr_assert(vb_end(&bench));
}

TestSuite(vulkan_programs, .init = begin, .fini = end);

FIRST_DTYPE_TEST(vulkan_programs, every_operation_agrees_with_the_scalar_interpreter, dtype,
                 TN_BOOL)
{
    for (uint16_t op = 0; op < TN_EXPR_NUM_OPS; op++) {
        if (!tn_dtype_in(dtype, tn_expr_dtypes(op)) ||
            tn_expr_class(op) == TN_EXPR_CLASS_REDUCE ||
            tn_expr_class(op) == TN_EXPR_CLASS_JOIN) // makes complex numbers
            continue;
        int64_t n = 2021;
        double tolerance = tolerance_of(op);
        if (dtype == TN_F64 && tolerance > 1e-14)
            tolerance = 1e-14;
        draws_subnormals = keeps_subnormals(op);
        add_check(single(op, dtype), tn_expr_name(op), tolerance, 1, &n, NULL, true);
        draws_subnormals = false;
    }
    run_checks();
}

// Operands of all exponents: the remainder and its quotient are exact however far apart
// they are.
static void check_far_apart(uint16_t op)
{
    for (tn_dtype dtype = TN_F32; dtype <= TN_F64; dtype++) {
        int most = dtype == TN_F32 ? 125 : 1020;
        int64_t n = 4001;
        struct check *check =
            add_check(single(op, dtype), tn_expr_name(op), 0, 1, &n, NULL, false);
        for (int k = 0; k < 2; k++) {
            const tn_value *value = tn_step_input(check->step, k);
            tn_tensor x = {bench.memory[value->slot], value->layout};
            for (int64_t i = 0; i < n; i++) {
                double mantissa = 1 + (double)draw() * 0x1p-48;
                int exponent = (int)(draw() % (uint64_t)(2 * most)) - most;
                tn_set_f64(&x, i, ldexp(draw() % 2 ? mantissa : -mantissa, exponent));
            }
        }
    }
    run_checks();
}

Test(vulkan_programs, remainders_of_numbers_far_apart_are_exact)
{
    check_far_apart(TN_EXPR_MOD);
}

Test(vulkan_programs, quotients_of_numbers_far_apart_are_exact)
{
    check_far_apart(TN_EXPR_FLOOR_DIV);
}

// (a + b) - a, a - a, -a + a: each is rounded, and NaN where a is infinite. Of a * b - b *
// a a GPU's compiler may make one fused operation, which is not 0.
static struct made *cancelling(tn_dtype dtype)
{
    struct made *m = made_new();
    uint32_t a = add_load(m, dtype), b = add_load(m, dtype);
    uint32_t sum = add_op(m, TN_EXPR_ADD, dtype, a, b, 0);
    uint32_t negative = add_op(m, TN_EXPR_NEG, dtype, a, 0, 0);
    add_output(m, dtype, add_op(m, TN_EXPR_SUB, dtype, sum, a, 0));
    add_output(m, dtype, add_op(m, TN_EXPR_SUB, dtype, a, a, 0));
    add_output(m, dtype, add_op(m, TN_EXPR_ADD, dtype, negative, a, 0));
    return m;
}

Test(vulkan_programs, drivers_reorder_no_sums)
{
    int64_t n = 1021;
    add_check(cancelling(TN_F32), "cancelling", 0, 1, &n, NULL, true);
    add_check(cancelling(TN_F64), "cancelling f64", 0, 1, &n, NULL, true);
    run_checks();
}

Test(vulkan_programs, casts_between_all_dtypes_agree)
{
    for (tn_dtype from = TN_BOOL; from <= TN_F64; from++) {
        for (tn_dtype to = TN_BOOL; to <= TN_F64; to++) {
            struct made *m = made_new();
            uint32_t at = add_load(m, from);
            if (computed(from) != computed(to))
                at = add_op(m, TN_EXPR_CAST, computed(to), at, 0, 0);
            add_output(m, to, at);
            int64_t n = 509;
            draws_subnormals = !tn_dtype_in(to, TN_FLOAT_DTYPES);
            add_check(m, "cast", -1, 1, &n, NULL, true);
            draws_subnormals = false;
        }
        run_checks();
    }
}

// a * b + p, where p is a parameter.
static struct made *chain(tn_dtype dtype)
{
    struct made *m = made_new();
    uint32_t a = add_load(m, dtype), b = add_load(m, dtype);
    uint32_t p = add_op(m, TN_EXPR_PARAM, dtype, 0, 0, 0);
    uint32_t ab = add_op(m, TN_EXPR_SUB, dtype, a, b, 0);
    add_output(m, dtype, add_op(m, TN_EXPR_ADD, dtype, ab, p, 0));
    add_output(m, dtype, ab);
    m->program.num_params = 1;
    return m;
}

static tn_layout strided(const int64_t *extent, int32_t rank, int kind)
{
    tn_layout layout = row_major(TN_F32, rank, extent);
    int64_t stride = 1;
    switch (kind) {
    case 0: // contiguous, somewhere within
        layout.offset = (int64_t)(draw() % 9);
        break;
    case 1: // one number
        memset(layout.stride, 0, sizeof(layout.stride));
        layout.offset = 3;
        break;
    case 2: // axes in reverse order
        for (int32_t i = 0; i < rank; i++) {
            layout.stride[i] = stride;
            stride *= extent[i];
        }
        break;
    case 3: // a row for all
        for (int32_t i = 0; i < rank - 1; i++)
            layout.stride[i] = 0;
        break;
    case 4: // a column for all
        layout.stride[rank - 1] = 0;
        for (int32_t i = 0; i < rank - 1; i++)
            layout.stride[i] /= extent[rank - 1];
        break;
    case 5: // every other element, backwards
        for (int32_t i = 0; i < rank; i++)
            layout.stride[i] *= 2;
        layout.offset = layout.stride[0] * (extent[0] - 1);
        layout.stride[0] *= -1;
        break;
    default: // rows with gaps
        for (int32_t i = 0; i < rank - 1; i++)
            layout.stride[i] *= 4;
    }
    return layout;
}

Test(vulkan_programs, operands_of_any_layout_are_read_where_they_lie)
{
    static const int64_t shapes[][5] = {{7, 5},    {8, 12},      {1, 4},         {4, 1},
                                        {3, 5, 8}, {2, 3, 5, 7}, {2, 3, 2, 5, 4}};
    static const int32_t ranks[] = {2, 2, 2, 2, 3, 4, 5};
    for (int shape = 0; shape < 7; shape++) {
        for (int kind = 0; kind < 49; kind++) {
            struct made *m = chain(TN_F32);
            tn_layout layouts[2] = {strided(shapes[shape], ranks[shape], kind / 7),
                                    strided(shapes[shape], ranks[shape], kind % 7)};
            struct check *check =
                add_check(m, "strided", 0, ranks[shape], shapes[shape], layouts, false);
            double p = 2.5;
            memcpy(&check->params[0], &p, sizeof(p));
        }
        run_checks();
    }
}

Test(vulkan_programs, lengths_around_those_of_vectors_and_groups_are_right)
{
    static const int64_t lengths[] = {0,   1,   2,    3,    4,    5,    7,    8,
                                      255, 256, 1023, 1024, 1025, 1027, 4099, 300001};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct check *check =
            add_check(chain(TN_I32), "length", 0, 1, &lengths[i], NULL, false);
        check->params[0] = (uint64_t)-7;
        check = add_check(chain(TN_I64), "length i64", 0, 1, &lengths[i], NULL, false);
        check->params[0] = UINT64_C(0x123456789abcd);
    }
    run_checks();
}

// The number of the element, constants, and more inputs than push constants have room for.
Test(vulkan_programs, wide_programs_get_their_arguments)
{
    int64_t extent[] = {3, 4, 5, 6};
    struct made *m = made_new();
    m->constants[0] = (uint64_t)INT64_C(1000000007);
    uint32_t at = add_op(m, TN_EXPR_INDEX, TN_I64, 0, 0, 0);
    uint32_t constant = add_op(m, TN_EXPR_CONST, TN_I64, 0, 0, 0);
    m->program.num_constants = 1;
    at = add_op(m, TN_EXPR_MUL, TN_I64, at, constant, 0);
    tn_layout layouts[8];
    for (int i = 0; i < 6; i++) {
        layouts[i] = strided(extent, 4, 2 + i % 5);
        uint32_t x = add_load(m, TN_I64);
        at = add_op(m, TN_EXPR_ADD, TN_I64, at, x, 0);
    }
    add_output(m, TN_I64, at);
    add_check(m, "wide", 0, 4, extent, layouts, false);
    run_checks();
}
