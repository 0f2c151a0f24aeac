// SPDX-License-Identifier: MIT
// The set of programs: one generator a kind, each of which counts its cases down.
#include "programs.h"

#include <stdio.h>
#include <string.h>
#include <tenon/expr.h>
#include <tenon/types.h>

// --- instructions ----------------------------------------------------------------------

static uint32_t add(struct program_case *c, uint32_t op, tn_dtype dtype, uint32_t a,
                    uint32_t b)
{
    c->insns[c->program.num_insns] = (tn_expr_insn){(uint16_t)op, (uint16_t)dtype, a, b, 0};
    return c->program.num_insns++;
}

static uint32_t load(struct program_case *c, tn_dtype dtype)
{
    c->inputs[c->program.num_inputs] = dtype;
    return add(c, TN_EXPR_LOAD, tn_dtype_computed(dtype), c->program.num_inputs++, 0);
}

static void give(struct program_case *c, tn_dtype dtype, uint32_t position)
{
    c->outputs[c->program.num_outputs] = dtype;
    c->positions[c->program.num_outputs++] = position;
}

static uint64_t bits_of(tn_dtype dtype, double value)
{
    uint64_t bits = (uint64_t)(int64_t)value;
    if (tn_is_float(dtype) || tn_is_complex(dtype))
        memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint32_t constant(struct program_case *c, tn_dtype dtype, double value)
{
    c->constants[c->program.num_constants] = bits_of(dtype, value);
    return add(c, TN_EXPR_CONST, dtype, c->program.num_constants++, 0);
}

static uint32_t param(struct program_case *c, tn_dtype dtype, double value)
{
    c->params[c->program.num_params] = bits_of(dtype, value);
    return add(c, TN_EXPR_PARAM, dtype, c->program.num_params++, 0);
}

// --- layouts ---------------------------------------------------------------------------

enum form { FLAT, LOOSE, GAPS, COLUMNS, ONE, LAST, ROWS, NUM_FORMS };
static const char *const form_names[] = {"flat",     "from 1 on",   "rows with gaps",
                                         "columns",  "one for all", "a row for all",
                                         "one a row"};

// rank 3, of extents 3, 5 and `last`.
static tn_layout lay_out(tn_dtype dtype, int64_t last, enum form form)
{
    tn_layout out = {
        .dtype = dtype, .rank = 3, .extent = {3, 5, last}, .stride = {5 * last, last, 1}};
    if (form == LOOSE)
        out.offset = 1;
    if (form == GAPS) {
        out.stride[1] = last + 4;
        out.stride[0] = 5 * (last + 4);
    }
    if (form == COLUMNS) {
        out.stride[0] = 1;
        out.stride[1] = 3;
        out.stride[2] = 15;
    }
    if (form == ONE || form == LAST)
        out.stride[0] = out.stride[1] = 0;
    if (form == ONE || form == ROWS)
        out.stride[2] = 0;
    if (form == ROWS) {
        out.stride[0] = 5;
        out.stride[1] = 1;
    }
    return out;
}

// Inputs have `form` and those after it; outputs are flat, or have the form where it has an
// element of memory for each element.
static void finish(struct program_case *c, const char *name, tn_dtype dtype, int64_t last,
                   enum form form)
{
    tn_expr_program *p = &c->program;
    for (uint32_t i = 0; i < p->num_inputs; i++)
        c->values[i].layout =
            lay_out(c->inputs[i], last, (enum form)(((uint32_t)form + i) % NUM_FORMS));
    for (uint32_t i = 0; i < p->num_outputs; i++)
        c->values[p->num_inputs + i].layout =
            lay_out(c->outputs[i], last, form <= COLUMNS ? form : FLAT);
    p->struct_size = sizeof(*p);
    p->insns = c->insns;
    p->constants = c->constants;
    p->input_dtypes = c->inputs;
    p->output_dtypes = c->outputs;
    p->outputs = c->positions;
    p->name = "a case";
    c->step = (tn_step){.struct_size = sizeof(tn_step),
                        .program = p,
                        .params = c->params,
                        .inputs = c->values,
                        .outputs = c->values + p->num_inputs,
                        .num_inputs = p->num_inputs,
                        .num_outputs = p->num_outputs,
                        .value_size = sizeof(tn_value),
                        .label = "a case"};
    snprintf(c->name, sizeof(c->name), "program %s %s %s", name, tn_dtype_name(dtype),
             form_names[form]);
}

// --- kinds of cases --------------------------------------------------------------------
// Each makes its case *number, or takes the number of its cases from *number.

static const tn_dtype dtypes[] = {
    TN_BOOL, TN_I8,      TN_U8,      TN_I16,       TN_U16,       TN_I32,
    TN_U32,  TN_I64,     TN_U64,     TN_F16,       TN_BF16,      TN_F32,
    TN_F64,  TN_F8_E4M3, TN_F8_E5M2, TN_COMPLEX64, TN_COMPLEX128};
#define NUM_DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

static bool is_exact(uint32_t op)
{
    uint32_t class = tn_expr_class(op);
    return class != TN_EXPR_CLASS_FUNCTION && class != TN_EXPR_CLASS_CIRCULAR &&
           class != TN_EXPR_CLASS_POWER;
}

static void make_single(struct program_case *c, uint32_t op, tn_dtype dtype, uint32_t at)
{
    uint32_t operands[3] = {0};
    for (uint32_t i = 0; i < tn_expr_operands(op); i++)
        operands[i] = load(c, op == TN_EXPR_SELECT && i == 0 ? TN_BOOL : dtype);
    tn_dtype own = tn_dtype_computed(dtype), result = tn_expr_result(op, own);
    uint32_t position = add(c, op, result, operands[0], operands[1]);
    c->insns[position].c = operands[2];
    give(c, result == own ? dtype : result, position);
    c->is_exact = is_exact(op);
    finish(c, tn_expr_name(op), dtype, at % 2 ? 8 : 7, (enum form)(at % NUM_FORMS));
}

static bool single(struct program_case *c, uint32_t *number)
{
    for (uint32_t op = 0; op < TN_EXPR_NUM_OPS; op++)
        for (uint32_t i = 0; i < NUM_DTYPES; i++) {
            if (op == TN_EXPR_CAST || tn_expr_operands(op) == 0 ||
                tn_expr_class(op) == TN_EXPR_CLASS_REDUCE ||
                !tn_dtype_in(dtypes[i], tn_expr_dtypes(op)))
                continue;
            if (*number == 0) {
                make_single(c, op, dtypes[i], op + i);
                return true;
            }
            --*number;
        }
    return false;
}

static bool cast(struct program_case *c, uint32_t *number)
{
    for (uint32_t i = 0; i < NUM_DTYPES; i++)
        for (uint32_t k = 1; k < NUM_DTYPES; k += 2) {
            tn_dtype from = dtypes[i], to = dtypes[(i + k) % NUM_DTYPES];
            tn_dtype own = tn_dtype_computed(from), other = tn_dtype_computed(to);
            char name[32];
            if (*number > 0) {
                --*number;
                continue;
            }
            uint32_t at = load(c, from);
            give(c, to, own == other ? at : add(c, TN_EXPR_CAST, other, at, 0));
            snprintf(name, sizeof(name), "cast to %s from", tn_dtype_name(to));
            c->is_exact = true;
            finish(c, name, from, 8, (enum form)(k % NUM_FORMS));
            return true;
        }
    return false;
}

static const tn_dtype computed[] = {TN_I32, TN_U32, TN_I64, TN_U64,
                                    TN_F32, TN_F64, TN_F16, TN_I8};
#define NUM_COMPUTED (sizeof(computed) / sizeof(computed[0]))

// A chain of ten instructions with a constant, a parameter and the element's number; other
// instructions in each form.
static bool chain(struct program_case *c, uint32_t *number)
{
    static const uint8_t ops[] = {TN_EXPR_ADD, TN_EXPR_MUL, TN_EXPR_SUB, TN_EXPR_MIN,
                                  TN_EXPR_MAX, TN_EXPR_DIV, TN_EXPR_MOD};
    if (*number >= NUM_COMPUTED * NUM_FORMS) {
        *number -= NUM_COMPUTED * NUM_FORMS;
        return false;
    }
    tn_dtype dtype = computed[*number % NUM_COMPUTED], t = tn_dtype_computed(dtype);
    uint32_t form = *number / NUM_COMPUTED;
    uint32_t values[16], count = 0;
    values[count++] = load(c, dtype);
    values[count++] = load(c, dtype);
    values[count++] = load(c, dtype);
    values[count++] = constant(c, t, 3);
    values[count++] = param(c, t, 5);
    values[count++] = add(c, TN_EXPR_CAST, t, add(c, TN_EXPR_INDEX, TN_I64, 0, 0), 0);
    if (t == TN_I64)
        values[count - 1] = c->program.num_insns - 2;
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t op = ops[(i * 3 + form) % 7];
        values[count] =
            add(c, op, t, values[count - 1], values[(i * 5 + form) % (count - 1)]);
        count++;
    }
    uint32_t less = add(c, TN_EXPR_LT, TN_BOOL, values[7], values[9]);
    uint32_t choice = add(c, TN_EXPR_SELECT, t, less, values[count - 1]);
    c->insns[choice].c = values[count - 2];
    give(c, dtype, choice);
    give(c, TN_BOOL, less);
    c->is_exact = true;
    finish(c, "chain", dtype, form % 2 ? 7 : 8, (enum form)form);
    return true;
}

// --- rows ------------------------------------------------------------------------------

static void write_softmax(struct program_case *c, tn_dtype dtype, tn_dtype t)
{
    uint32_t x = load(c, dtype);
    uint32_t d = add(c, TN_EXPR_SUB, t, x, add(c, TN_EXPR_REDUCE_MAX, t, x, 0));
    uint32_t e = add(c, TN_EXPR_EXP, t, d, 0);
    give(c, dtype, add(c, TN_EXPR_DIV, t, e, add(c, TN_EXPR_REDUCE_SUM, t, e, 0)));
}

static void write_norm(struct program_case *c, tn_dtype dtype, tn_dtype t)
{
    uint32_t x = load(c, dtype), y = load(c, dtype);
    uint32_t n = add(c, TN_EXPR_CAST, t, add(c, TN_EXPR_EXTENT, TN_I64, 0, 0), 0);
    uint32_t mean = add(c, TN_EXPR_DIV, t, add(c, TN_EXPR_REDUCE_SUM, t, x, 0), n);
    uint32_t d = add(c, TN_EXPR_SUB, t, x, mean);
    uint32_t square = add(c, TN_EXPR_MUL, t, d, d);
    uint32_t sum = add(c, TN_EXPR_REDUCE_SUM, t, square, 0);
    uint32_t scale =
        add(c, TN_EXPR_RSQRT, t, add(c, TN_EXPR_ADD, t, sum, param(c, t, 1)), 0);
    give(c, dtype, add(c, TN_EXPR_MUL, t, add(c, TN_EXPR_MUL, t, d, scale), y));
}

static void write_totals(struct program_case *c, tn_dtype dtype, tn_dtype t)
{
    uint32_t x = load(c, dtype), most = add(c, TN_EXPR_REDUCE_MAX, t, x, 0);
    uint32_t least = add(c, TN_EXPR_REDUCE_MIN, t, x, 0);
    uint32_t equal = add(c, TN_EXPR_EQ, TN_BOOL, x, most);
    uint32_t index = add(c, TN_EXPR_INDEX, TN_I64, 0, 0);
    uint32_t high = constant(c, TN_I64, 1 << 30);
    uint32_t at = add(c, TN_EXPR_SELECT, TN_I64, equal, index);
    c->insns[at].c = high;
    give(c, dtype, add(c, TN_EXPR_SUB, t, add(c, TN_EXPR_MUL, t, x, most), least));
    give(c, dtype,
         add(c, TN_EXPR_ADD, t, add(c, TN_EXPR_REDUCE_PROD, t, x, 0),
             add(c, TN_EXPR_REDUCE_SUM, t, x, 0)));
    give(c, TN_I64, add(c, TN_EXPR_REDUCE_MIN, TN_I64, at, 0));
}

static bool rows(struct program_case *c, uint32_t *number)
{
    static void (*const write[])(struct program_case *, tn_dtype,
                                 tn_dtype) = {write_softmax, write_norm, write_totals};
    static const char *const names[] = {"softmax of rows", "norm of rows",
                                        "totals of rows"};
    static const int64_t extents[] = {8, 37, 640, 3000};
    static const enum form forms[] = {FLAT, GAPS, LOOSE, FLAT};
    const uint32_t all = 3 * NUM_COMPUTED * 4;
    if (*number >= all) {
        *number -= all;
        return false;
    }
    uint32_t kind = *number % 3, extent = *number / 3 / NUM_COMPUTED;
    tn_dtype dtype = computed[*number / 3 % NUM_COMPUTED], t = tn_dtype_computed(dtype);
    if (kind < 2 && !tn_is_float(t))
        kind = 2;
    write[kind](c, dtype, t);
    c->is_rows = true;
    c->is_exact = kind > 0;
    c->program.flags = TN_EXPR_ROWS;
    c->subgroup = extent % 2 ? 0 : 8;
    finish(c, names[kind], dtype, extents[extent], forms[extent]);
    return true;
}

// Beside a kernel: what it would store, times a bias of the row, or a sum that it would
// load.
static bool function(struct program_case *c, uint32_t *number)
{
    const uint32_t all = 2 * NUM_COMPUTED * 2;
    if (*number >= all) {
        *number -= all;
        return false;
    }
    tn_dtype dtype = computed[*number / 2 % NUM_COMPUTED], t = tn_dtype_computed(dtype);
    bool is_output = *number % 2;
    enum form form = *number / 2 / NUM_COMPUTED ? LOOSE : GAPS;
    uint32_t x = load(c, dtype), y = load(c, dtype);
    uint32_t sum = add(c, TN_EXPR_ADD, t, x, add(c, TN_EXPR_MUL, t, y, param(c, t, 2)));
    give(c, dtype, add(c, TN_EXPR_MAX, t, sum, constant(c, t, 0)));
    c->is_function = true;
    c->is_exact = true;
    finish(c, is_output ? "after a kernel" : "before a kernel", dtype, 8, form);
    c->values[is_output ? 0 : c->program.num_inputs].flags = TN_VALUE_FUSED;
    return true;
}

bool program_case_make(uint32_t number, struct program_case *out)
{
    static bool (*const kinds[])(struct program_case *, uint32_t *) = {single, cast, chain,
                                                                       rows, function};
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i](out, &number))
            return true;
    return false;
}
