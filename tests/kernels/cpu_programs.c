// SPDX-License-Identifier: MIT
// The CPU backend's programs against an interpreter that runs the definitions element by
// element: random programs, layouts and values. TENON_TEST_PLUGIN names
// the plugin.
//
// Only operations that are exact take part, so that results must agree to the bit; the
// accuracy of functions is cpu_maps' business.
#include "check.h"

#include <math.h>
#include "../sanitized.h"
#include "device_harness.h"
#include "cpu/ref/ops_ref.h"

static const tn_plugin *cpu;
static struct device_harness harness;
static uint64_t seed, state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(draw() % (uint64_t)(high - low + 1));
}

// --- programs --------------------------------------------------------------------------

struct example {
    tn_expr_program program;
    tn_expr_insn insns[TN_EXPR_MAX_INSNS];
    uint64_t constants[8], params[8];
    tn_dtype input_dtypes[TN_EXPR_MAX_INPUTS], output_dtypes[TN_EXPR_MAX_OUTPUTS];
    uint32_t outputs[TN_EXPR_MAX_OUTPUTS];
    tn_layout layouts[TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS];
    uint32_t slots[TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS];
    void *copies[TN_EXPR_MAX_INPUTS]; // of inputs, as they were before
    int64_t row;                      // elements of a row, in a row program; else 0
};

static int32_t computed_dtype(int32_t dtype)
{
    return dtype == TN_F16 || dtype == TN_BF16 ? TN_F32 : dtype;
}

static uint64_t draw_bits(int32_t dtype)
{
    double f = (double)between(-40, 40) / 7;
    int64_t i = between(0, 3) ? between(0, 9) : between(-1000000, 1000000);
    uint64_t bits;
    if (dtype == TN_BOOL)
        i &= 1;
    memcpy(&bits, tn_is_float(dtype) ? (void *)&f : (void *)&i, sizeof(bits));
    return bits;
}

#define MOST_ROW 25000 // in a row program
#define ONE_BLOCK 70   // the row is certainly one block

// An earlier instruction of this dtype, or -1.
static int64_t find_value(const struct example *e, int32_t dtype)
{
    for (int tries = 0; tries < 30 && e->program.num_insns > 0; tries++) {
        int64_t i = between(0, e->program.num_insns - 1);
        if (e->insns[i].dtype == dtype)
            return i;
    }
    return -1;
}

static void add(struct example *e, uint32_t op, int32_t dtype, int64_t a, int64_t b,
                int64_t c)
{
    e->insns[e->program.num_insns++] = (tn_expr_insn){
        (uint16_t)op, (uint16_t)dtype, (uint32_t)a, (uint32_t)b, (uint32_t)c};
}

static bool is_exact(uint32_t op)
{
    uint32_t kind = tn_expr_class(op);
    return kind != TN_EXPR_CLASS_FUNCTION && kind != TN_EXPR_CLASS_CIRCULAR &&
           kind != TN_EXPR_CLASS_POWER;
}

static void add_operation(struct example *e, const int32_t *dtypes)
{
    int32_t dtype = dtypes[between(0, 2)];
    uint32_t op = (uint32_t)between(TN_EXPR_NEG, TN_EXPR_SELECT);
    if (between(0, 2) == 0) // what gets fused
        op = (uint32_t)between(TN_EXPR_ADD, TN_EXPR_MUL);
    uint64_t zero[3] = {0}, result;
    const void *in[] = {&zero[0], &zero[1], &zero[2]};
    int64_t a = find_value(e, dtype), b = find_value(e, dtype), c = find_value(e, TN_BOOL);
    if (between(0, 9) == 0) {
        int32_t to = dtypes[between(0, 2)];
        bool safe = !tn_is_float(dtype) || tn_is_float(to) || to == TN_BOOL;
        if (a >= 0 && safe)
            add(e, TN_EXPR_CAST, to, a, 0, 0);
        return;
    }
    if (a < 0 || b < 0 || !is_exact(op) || !cpu_ref_op((int32_t)op, dtype, &result, in))
        return;
    if (op == TN_EXPR_SELECT) {
        if (c >= 0)
            add(e, op, dtype, c, a, b);
        return;
    }
    add(e, op, cpu_ref_result((int32_t)op, dtype), a, b, 0);
}

// A reduction over the row, or the row's extent, and what norms make of it: centred
// elements, their squares, the sum of these, and centred elements times it.
static void add_reduction(struct example *e, int32_t dtype)
{
    // The order of a sum is one for rows of one block only.
    uint32_t sum = e->row <= ONE_BLOCK ? TN_EXPR_REDUCE_SUM : TN_EXPR_REDUCE_MAX;
    int64_t a = find_value(e, dtype);
    if (!tn_is_float(dtype) || a < 0)
        return;
    if (between(0, 3) == 0) {
        add(e, TN_EXPR_EXTENT, TN_I64, 0, 0, 0);
        add(e, TN_EXPR_CAST, dtype, e->program.num_insns - 1, 0, 0);
    } else {
        add(e, between(0, 2) ? sum : TN_EXPR_REDUCE_MIN, dtype, a, 0, 0);
    }
    int64_t centred = e->program.num_insns, steps = between(0, 5);
    if (steps > 0)
        add(e, TN_EXPR_SUB, dtype, a, centred - 1, 0);
    if (steps > 1)
        add(e, TN_EXPR_MUL, dtype, centred, between(0, 3) ? centred : a, 0);
    if (steps > 2)
        add(e, sum, dtype, centred + 1, 0, 0);
    if (steps > 3)
        add(e, TN_EXPR_MUL, dtype, centred, centred + 2, 0);
    for (int64_t k = 4; k < steps + between(0, 2); k++) {
        int64_t other = find_value(e, dtype);
        add(e, between(0, 2) ? TN_EXPR_MUL : TN_EXPR_ADD, dtype, e->program.num_insns - 1,
            other, 0);
    }
}

static void draw_program(struct example *e)
{
    static const int32_t all[] = {TN_F32, TN_F32, TN_F32, TN_F64,  TN_I32, TN_I64,
                                  TN_U8,  TN_I16, TN_U64, TN_BOOL, TN_F16, TN_BF16};
    int32_t stored[3], dtypes[3];
    for (int i = 0; i < 3; i++) {
        stored[i] = all[between(0, 11)];
        dtypes[i] = computed_dtype(stored[i]);
    }
    e->program.num_inputs = (uint32_t)between(1, 4);
    for (uint32_t i = 0; i < e->program.num_inputs; i++) {
        e->input_dtypes[i] = stored[between(0, 2)];
        add(e, TN_EXPR_LOAD, computed_dtype(e->input_dtypes[i]), i, 0, 0);
    }
    e->program.num_constants = e->program.num_params = 8;
    for (uint32_t i = 0; i < 2; i++) {
        int32_t dtype = dtypes[between(0, 2)];
        e->constants[i] = draw_bits(dtype);
        add(e, TN_EXPR_CONST, dtype, i, 0, 0);
        dtype = dtypes[between(0, 2)];
        e->params[i] = draw_bits(dtype);
        add(e, TN_EXPR_PARAM, dtype, i, 0, 0);
    }
    if (between(0, 4) == 0)
        add(e, TN_EXPR_INDEX, TN_I64, 0, 0, 0);
    int64_t most = e->row > 0 ? 25 : 100;
    for (int64_t i = between(0, between(0, 3) ? 12 : most); i > 0; i--) {
        if (e->row > 0 && between(0, 4) == 0)
            add_reduction(e, dtypes[between(0, 2)]);
        add_operation(e, dtypes);
    }
    e->program.num_outputs = (uint32_t)between(1, 3);
    for (uint32_t k = 0; k < e->program.num_outputs; k++) {
        e->outputs[k] = between(0, 1) ? e->program.num_insns - 1
                                      : (uint32_t)between(0, e->program.num_insns - 1);
        int32_t dtype = e->insns[e->outputs[k]].dtype;
        e->output_dtypes[k] =
            dtype == TN_F32 ? (int32_t[]){TN_F32, TN_F32, TN_F16, TN_BF16}[between(0, 3)]
                            : dtype;
    }
}

// --- layouts ---------------------------------------------------------------------------

// Short rows side by side; now and then one row for all, or an element for each.
static void draw_groups(struct example *e, int64_t row)
{
    int32_t rank = (int32_t)between(2, 3);
    int64_t extent[3] = {between(0, 70), row, row};
    if (rank == 3)
        extent[1] = between(1, 5);
    for (uint32_t i = 0; i < e->program.num_inputs + e->program.num_outputs; i++) {
        bool is_input = i < e->program.num_inputs;
        uint32_t k = is_input ? i : i - e->program.num_inputs;
        int32_t dtype = is_input ? e->input_dtypes[k] : e->output_dtypes[k];
        tn_layout *layout = &e->layouts[i];
        int64_t kind = is_input ? between(0, 7) : 0;
        *layout = harness_layout(dtype, rank, extent);
        for (int32_t axis = 0; axis < rank && kind > 3; axis++) {
            bool is_last = axis == rank - 1;
            if (kind == 4 || (kind < 7 && !is_last))
                layout->stride[axis] = 0;
            else if (kind == 7)
                layout->stride[axis] = is_last ? 0 : axis == rank - 2 ? 1 : extent[1];
        }
    }
}

static void draw_layouts(struct example *e)
{
    int32_t rank = (int32_t)between(0, 3);
    int64_t extent[3], most = between(0, 9) == 0 ? 120 : 12;
    for (int32_t i = 0; i < rank; i++)
        extent[i] = between(between(0, 19) ? 1 : 0, most);
    if (between(0, 19) == 0 && rank == 1)
        extent[0] = between(1000, 90000);
    if (e->row > 0) {
        rank = rank == 0 || e->row > ONE_BLOCK ? 1 : rank;
        extent[rank - 1] = e->row;
    }
    for (uint32_t i = 0; i < e->program.num_inputs; i++) {
        tn_layout *layout = &e->layouts[i];
        *layout = harness_layout(e->input_dtypes[i], rank, extent);
        int kind = (int)between(0, 5);
        for (int32_t axis = 0; axis < rank && kind > 2; axis++) {
            if (kind == 3)
                layout->stride[axis] = 0;
            else if (kind == 4 && between(0, 1))
                layout->stride[axis] = 0;
            else if (kind == 5 && extent[axis] > 0) { // with gaps, and backwards
                layout->offset += (extent[axis] - 1) * layout->stride[axis] * 2;
                layout->stride[axis] *= -2;
            }
        }
    }
    for (uint32_t k = 0; k < e->program.num_outputs; k++)
        e->layouts[e->program.num_inputs + k] =
            harness_layout(e->output_dtypes[k], rank, extent);
}

static uint64_t span(const tn_layout *layout)
{
    int64_t last = layout->offset;
    for (int32_t i = 0; i < layout->rank; i++)
        if (layout->stride[i] > 0 && layout->extent[i] > 0)
            last += (layout->extent[i] - 1) * layout->stride[i];
    return (uint64_t)(last + 1) * cpu_dtype_size(layout->dtype);
}

// --- the interpreter -------------------------------------------------------------------

static int64_t offset_at(const tn_layout *layout, int64_t element)
{
    int64_t offset = layout->offset;
    for (int32_t i = layout->rank - 1; i >= 0; i--) {
        offset += element % layout->extent[i] * layout->stride[i];
        element /= layout->extent[i];
    }
    return offset;
}

// The value of instruction i, but of reductions, at an element. `in`: its operands' values.
static uint64_t value_at(const struct example *e, uint32_t i, int64_t element,
                         const void *const *in)
{
    const tn_expr_insn *insn = &e->insns[i];
    const uint64_t *number = insn->op == TN_EXPR_CONST ? e->constants : e->params;
    uint64_t value = 0;
    switch (insn->op) {
    case TN_EXPR_LOAD: {
        const tn_layout *layout = &e->layouts[insn->a];
        cpu_ref_cast(layout->dtype, insn->dtype, &value,
                     (char *)e->copies[insn->a] +
                         offset_at(layout, element) * cpu_dtype_size(layout->dtype));
        break;
    }
    case TN_EXPR_CONST:
    case TN_EXPR_PARAM:
        cpu_ref_cast(tn_is_float(insn->dtype) ? TN_F64 : TN_I64, insn->dtype, &value,
                     &number[insn->a]);
        break;
    case TN_EXPR_INDEX:
        return (uint64_t)element;
    case TN_EXPR_EXTENT:
        return (uint64_t)e->row;
    case TN_EXPR_CAST:
        cpu_ref_cast(e->insns[insn->a].dtype, insn->dtype, &value, in[0]);
        break;
    default: {
        uint32_t typed = insn->op == TN_EXPR_SELECT ? insn->b : insn->a;
        cr_assert(cpu_ref_op(insn->op, e->insns[typed].dtype, &value, in));
    }
    }
    return value;
}

// The reduction of n values by the kernel of the least instruction set, on their own: the
// order of a sum is part of its definition.
static uint64_t reduced(uint32_t op, int32_t dtype, const uint64_t *values, int64_t n)
{
    static double row[MOST_ROW];
    const struct cpu_kernels *least = cpu_pick(0);
    int32_t kind = op == TN_EXPR_REDUCE_SUM   ? CPU_REDUCE_SUM
                   : op == TN_EXPR_REDUCE_MAX ? CPU_REDUCE_MAX
                                              : CPU_REDUCE_MIN;
    union cpu_accumulator acc = {.f = kind == CPU_REDUCE_SUM   ? 0
                                      : kind == CPU_REDUCE_MAX ? -INFINITY
                                                               : INFINITY};
    uint32_t size = cpu_dtype_size(dtype);
    uint64_t result = 0;
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)row + i * size, &values[i], size);
    least->reduce->row[kind][dtype](&acc, row, n);
    cpu_ref_cast(TN_F64, dtype, &result, &acc.f);
    return result;
}

// The values of all instructions at elements [first, first + n): instruction i's are
// values[i * n ...]. The elements are a row, or any one.
static void interpret(const struct example *e, int64_t first, int64_t n, uint64_t *values)
{
    for (uint32_t i = 0; i < e->program.num_insns; i++) {
        const tn_expr_insn *insn = &e->insns[i];
        uint64_t *out = values + i * n;
        bool reduces = tn_expr_class(insn->op) == TN_EXPR_CLASS_REDUCE;
        if (reduces && n > 0)
            out[0] = reduced(insn->op, insn->dtype, values + insn->a * n, n);
        for (int64_t k = 0; k < n; k++) {
            const void *in[] = {&values[insn->a * n + k], &values[insn->b * n + k],
                                &values[insn->c * n + k]};
            out[k] = reduces ? out[0] : value_at(e, i, first + k, in);
        }
    }
}

static bool same(int32_t dtype, const void *a, const void *b)
{
    double x, y;
    if (memcmp(a, b, cpu_dtype_size(dtype)) == 0)
        return true;
    if (!tn_is_float(dtype))
        return false;
    cpu_ref_cast(dtype, TN_F64, &x, a);
    cpu_ref_cast(dtype, TN_F64, &y, b);
    return (isnan(x) && isnan(y)) || x == y; // zeros of either sign
}

static void compare(const struct example *e, int round)
{
    static uint64_t values[TN_EXPR_MAX_INSNS * MOST_ROW];
    int64_t count = harness_count(&e->layouts[e->program.num_inputs]);
    int64_t n = e->row > 0 ? e->row : 1, step = n == 1 && count > 3000 ? 37 : n;
    for (int64_t i = 0; i < count; i += step) { // samples of many elements
        interpret(e, i, n, values);
        for (uint32_t k = 0; k < e->program.num_outputs; k++) {
            uint32_t operand = e->program.num_inputs + k;
            int32_t dtype = e->output_dtypes[k];
            const tn_layout *layout = &e->layouts[operand];
            const char *memory = harness_memory(&harness, e->slots[operand]);
            for (int64_t at = 0; at < n; at++) {
                uint64_t want = 0;
                cpu_ref_cast(e->insns[e->outputs[k]].dtype, dtype, &want,
                             &values[e->outputs[k] * n + at]);
                if (!same(dtype, memory + offset_at(layout, i + at) * cpu_dtype_size(dtype),
                          &want))
                    cr_fatal("seed %llu, program %d: output %u, element %lld differs",
                             (unsigned long long)seed, round, k, (long long)(i + at));
            }
        }
    }
}

// Now and then an output takes over the memory of an input.
static uint32_t output_slot(struct example *e, uint32_t k, uint32_t *taken)
{
    const tn_layout *out = &e->layouts[e->program.num_inputs + k];
    for (uint32_t i = 0; i < e->program.num_inputs && between(0, 1); i++)
        if (!(*taken >> i & 1) && memcmp(out, &e->layouts[i], sizeof(*out)) == 0) {
            *taken |= 1u << i;
            return e->slots[i];
        }
    return harness_slot(&harness, harness_bytes(out));
}

static void run_example(struct example *e, int round)
{
    uint32_t taken = 0;
    tn_step *step = harness_step(&harness, e->program.num_inputs, e->program.num_outputs);
    e->program.struct_size = sizeof(e->program);
    e->program.flags = e->row > 0 ? TN_EXPR_ROWS : 0;
    e->program.insns = e->insns;
    e->program.constants = e->constants;
    e->program.input_dtypes = e->input_dtypes;
    e->program.output_dtypes = e->output_dtypes;
    e->program.outputs = e->outputs;
    step->program = &e->program;
    step->params = e->params;
    for (uint32_t i = 0; i < e->program.num_inputs; i++) {
        uint64_t bytes = span(&e->layouts[i]);
        uint32_t size = cpu_dtype_size(e->input_dtypes[i]);
        e->slots[i] = harness_slot(&harness, bytes);
        e->copies[i] = malloc(bytes);
        for (uint64_t at = 0; at < bytes; at += size) {
            uint64_t bits = draw_bits(e->input_dtypes[i]);
            cpu_ref_cast(tn_is_float(e->input_dtypes[i]) ? TN_F64 : TN_I64,
                         e->input_dtypes[i], (char *)e->copies[i] + at, &bits);
        }
        memcpy(harness_memory(&harness, e->slots[i]), e->copies[i], bytes);
        harness_set(step, i, e->slots[i], &e->layouts[i]);
    }
    for (uint32_t k = 0; k < e->program.num_outputs; k++) {
        uint32_t operand = e->program.num_inputs + k;
        e->slots[operand] = output_slot(e, k, &taken);
        harness_set(step, operand, e->slots[operand], &e->layouts[operand]);
    }
    cr_assert(eq(int, harness_run(&harness), TN_OK));
    compare(e, round);
    for (uint32_t i = 0; i < e->program.num_inputs; i++)
        free(e->copies[i]);
    harness_clear(&harness);
}

static void open_device(void)
{
    cpu = harness_load(check_getenv("TENON_TEST_PLUGIN"));
    seed = check_seed(harness_now_ns() % 1000000 + 1);
    state = seed * UINT64_C(0x9e3779b97f4a7c15);
    harness_print_device(cpu);
    harness_open(&harness, cpu);
}

static void close_device(void)
{
    harness_close(&harness);
    cr_assert(eq(i64, harness_leaks(), 0));
}

TestSuite(cpu_programs, .init = open_device, .fini = close_device);

// In the second half of the rounds results are written past the caches.
static void stream_from(int round, int rounds)
{
    if (round != rounds / 2)
        return;
    harness_close(&harness);
    harness_stream = "1";
    harness_open(&harness, cpu);
}

Test(cpu_programs, random_programs_agree)
{
    for (int round = 0; round < ROUNDS(1500); round++) {
        stream_from(round, ROUNDS(1500));
        struct example e = {0};
        draw_program(&e);
        draw_layouts(&e);
        run_example(&e, round);
    }
}

// Rows with gaps between them, backwards, or one for all: the last axis of an input is
// adjacent but now and then. Rows are longer and shorter than blocks.
static void draw_long_rows(struct example *e)
{
    int32_t rank = (int32_t)between(2, 3), last = rank - 1;
    int64_t extent[3] = {between(1, 9), between(1, 3), between(200, 2500)};
    extent[last] = extent[2];
    for (uint32_t i = 0; i < e->program.num_inputs; i++) {
        tn_layout *layout = &e->layouts[i];
        *layout = harness_layout(e->input_dtypes[i], rank, extent);
        int64_t kind = between(0, 5), row = extent[last] + between(1, 40);
        layout->stride[last] = kind == 4 ? 2 : 1;
        layout->stride[last - 1] = kind == 0 ? extent[last] : kind == 1 ? 0 : 2 * row;
        if (rank == 3)
            layout->stride[0] = layout->stride[1] * extent[1];
        layout->offset = kind == 5 ? (extent[0] - 1) * layout->stride[0] : between(0, 3);
        layout->stride[0] *= kind == 5 ? -1 : 1;
    }
    for (uint32_t k = 0; k < e->program.num_outputs; k++)
        e->layouts[e->program.num_inputs + k] =
            harness_layout(e->output_dtypes[k], rank, extent);
}

Test(cpu_programs, random_long_rows_agree)
{
    for (int round = 0; round < ROUNDS(60); round++) {
        struct example e = {0};
        draw_program(&e);
        draw_long_rows(&e);
        run_example(&e, round);
    }
}

// Rows of one block, of several, and so long that none of their elements are kept.
Test(cpu_programs, random_row_programs_agree)
{
    for (int round = 0; round < ROUNDS(600); round++) {
        stream_from(round, ROUNDS(600));
        struct example e = {.row = between(1, ONE_BLOCK)};
        if (round % 60 == 0)
            e.row = round == 0 ? MOST_ROW : between(1000, 4000);
        draw_program(&e);
        draw_layouts(&e);
        run_example(&e, round);
    }
}

// Rows that are run in groups, and the last group with fewer; and programs that reduce
// nothing, and are run by rows where an input has one element for each.
Test(cpu_programs, random_groups_of_rows_agree)
{
    for (int round = 0; round < ROUNDS(600); round++) {
        stream_from(round, ROUNDS(600));
        int64_t row = between(1, 3) * (between(0, 1) ? 32 : between(1, 100));
        struct example e = {.row = round % 3 && row <= 150 ? row : 0};
        draw_program(&e);
        draw_groups(&e, row);
        run_example(&e, round);
    }
}

// Permuted axes, with gaps now and then, and elements that are repeated. Rows of the result
// are often short.
static void draw_permuted(struct example *e, int32_t dtype)
{
    int32_t rank = (int32_t)between(1, 4), order[4] = {0, 1, 2, 3};
    int64_t extent[4], most = rank < 3 ? 200 : rank == 3 ? 30 : 12, stride = 1;
    for (int32_t i = 0; i < rank; i++)
        extent[i] = between(1, most);
    if (between(0, 1) && rank > 1) {
        extent[rank - 1] = between(1, 9);
        extent[rank - 2] = between(1, rank == 2 ? 1500 : most);
    }
    e->layouts[1] = harness_layout(dtype, rank, extent);
    e->layouts[0] = e->layouts[1];
    for (int32_t i = rank - 1; i > 0; i--) {
        int32_t k = (int32_t)between(0, i), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    e->layouts[0].offset = between(0, 3);
    for (int32_t i = rank - 1; i >= 0; i--) {
        e->layouts[0].stride[order[i]] = between(0, 5) ? stride : 0;
        stride *= extent[order[i]] + (between(0, 3) == 0);
    }
}

Test(cpu_programs, copies_in_any_order_of_axes_agree)
{
    for (int round = 0; round < ROUNDS(300); round++) {
        struct example e = {0};
        int32_t dtype = (int32_t)between(TN_BOOL, TN_F64);
        add(&e, TN_EXPR_LOAD, computed_dtype(dtype), 0, 0, 0);
        e.program.num_inputs = e.program.num_outputs = 1;
        e.input_dtypes[0] = e.output_dtypes[0] = dtype;
        draw_permuted(&e, dtype);
        run_example(&e, round);
    }
}
