// SPDX-License-Identifier: MIT
// Builds expression programs, steps and segments by hand.
#include "draft.h"

// --- programs --------------------------------------------------------------------------

// Dtype in which an instruction on `dtype` computes.
static uint16_t dtype_wide(tn_dtype dtype)
{
    return (uint16_t)tn_dtype_computed(dtype);
}

static uint32_t segment_draft_add_insn(struct draft_program *p, tn_expr_insn insn)
{
    p->insns[p->record.num_insns] = insn;
    return p->record.num_insns++;
}

// Extends a program's 128-bit cache key: FNV-1a in the first word, another hash in the
// second.
static void segment_draft_hash_bytes(uint64_t hash[2], const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = ((const uint8_t *)data)[i];
        hash[0] = (hash[0] ^ byte) * UINT64_C(0x100000001b3);
        hash[1] = (hash[1] + byte) * UINT64_C(0x9e3779b97f4a7c15);
        hash[1] ^= hash[1] >> 29;
    }
}

static void program_start(struct draft_program *p, tn_dtype input, uint32_t num_inputs,
                          tn_dtype output)
{
    *p = (struct draft_program){.inputs = {input, input}, .output = output};
    p->record = (tn_expr_program){.struct_size = sizeof(p->record),
                                  .insns = p->insns,
                                  .input_dtypes = p->inputs,
                                  .output_dtypes = &p->output,
                                  .outputs = &p->result,
                                  .num_inputs = num_inputs,
                                  .num_outputs = 1,
                                  .name = "kit"};
}

static void program_finish(struct draft_program *p, uint32_t num_params)
{
    tn_expr_program *r = &p->record;
    p->result = r->num_insns - 1;
    r->num_params = num_params;
    r->hash[0] = UINT64_C(0xcbf29ce484222325);
    segment_draft_hash_bytes(r->hash, p->insns, r->num_insns * sizeof(p->insns[0]));
    segment_draft_hash_bytes(r->hash, p->inputs, sizeof(p->inputs));
    segment_draft_hash_bytes(r->hash, &p->output, sizeof(p->output));
    segment_draft_hash_bytes(r->hash, &r->num_inputs, sizeof(r->num_inputs));
}

void program_affine(struct draft_program *p, tn_dtype dtype)
{
    uint16_t w = dtype_wide(dtype);
    program_start(p, dtype, 1, dtype);
    uint32_t x = segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_LOAD, w, 0, 0, 0});
    if (dtype == TN_BOOL) {
        segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_NOT, w, x, 0, 0});
        program_finish(p, 0);
        return;
    }
    uint32_t a = segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_PARAM, w, 0, 0, 0});
    uint32_t b = segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_PARAM, w, 1, 0, 0});
    uint32_t ax = segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_MUL, w, x, a, 0});
    segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_ADD, w, ax, b, 0});
    program_finish(p, 2);
}

void program_combine(struct draft_program *p, tn_dtype dtype)
{
    uint16_t w = dtype_wide(dtype);
    program_start(p, dtype, 2, dtype);
    uint32_t x = segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_LOAD, w, 0, 0, 0});
    uint32_t y = segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_LOAD, w, 1, 0, 0});
    if (dtype == TN_BOOL) {
        segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_XOR, w, x, y, 0});
        program_finish(p, 0);
        return;
    }
    uint32_t a = segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_PARAM, w, 0, 0, 0});
    uint32_t ax = segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_MUL, w, x, a, 0});
    segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_ADD, w, ax, y, 0});
    program_finish(p, 1);
}

void program_single(struct draft_program *p, uint16_t op, uint32_t operands,
                    tn_dtype operand, tn_dtype result)
{
    uint16_t w = dtype_wide(operand);
    program_start(p, operand, operands > 1 ? 2 : 1, result);
    uint32_t x = segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_LOAD, w, 0, 0, 0});
    uint32_t y = operands > 1
                     ? segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_LOAD, w, 1, 0, 0})
                     : x;
    if (operands == 3) {
        uint32_t less =
            segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_LT, TN_BOOL, x, y, 0});
        segment_draft_add_insn(p, (tn_expr_insn){op, dtype_wide(result), less, x, y});
    } else {
        segment_draft_add_insn(
            p, (tn_expr_insn){op, dtype_wide(result), x, operands > 1 ? y : 0, 0});
    }
    program_finish(p, 0);
    if (tn_expr_class(op) == TN_EXPR_CLASS_REDUCE)
        p->record.flags = TN_EXPR_ROWS;
}

void program_take(struct draft_program *p, enum take_form form, tn_dtype table,
                  tn_dtype indices)
{
    uint16_t w = dtype_wide(table);
    program_start(p, table, 2, table);
    p->inputs[1] = indices;
    uint32_t at = segment_draft_add_insn(
        p, (tn_expr_insn){TN_EXPR_LOAD, dtype_wide(indices), 1, 0, 0});
    uint32_t by = at;
    if (form == TAKE_AT_MOST)
        by = segment_draft_add_insn(
            p, (tn_expr_insn){TN_EXPR_REDUCE_MAX, dtype_wide(indices), at, 0, 0});
    uint32_t x = segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_TAKE, w, 0, by, 0});
    if (form == TAKE_CENTRED) {
        uint32_t sum =
            segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_REDUCE_SUM, w, x, 0, 0});
        segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_SUB, w, x, sum, 0});
    } else if (form == TAKE_AT_MOST) {
        segment_draft_add_insn(p, (tn_expr_insn){TN_EXPR_ADD, w, x, at, 0});
    }
    program_finish(p, 2);
    p->record.flags = TN_EXPR_TAKES | (form == TAKE_ELEMENT ? 0 : TN_EXPR_ROWS);
}

// `value` as the 8 bytes of a parameter or constant: a double for floating dtypes, else an
// integer.
static uint64_t word_of(tn_dtype dtype, int64_t value)
{
    double real = (double)value;
    uint64_t word = (uint64_t)value;
    if (TN_DTYPE_BIT(dtype) & (TN_FLOAT_DTYPES | TN_FLOAT8_DTYPES | TN_COMPLEX_DTYPES))
        memcpy(&word, &real, sizeof(word));
    return word;
}

// --- segments --------------------------------------------------------------------------

void draft_start(struct draft *d)
{
    memset(d, 0, sizeof(*d));
    d->segment = (tn_segment){.struct_size = sizeof(d->segment),
                              .steps = d->steps,
                              .slots = d->slots,
                              .step_size = sizeof(tn_step),
                              .slot_size = sizeof(tn_slot)};
}

uint32_t draft_slot(struct draft *d, uint32_t flags, uint64_t size)
{
    if (d->segment.num_slots == DRAFT_SLOTS)
        abort(); // a fault of the check, not of the plugin
    d->slots[d->segment.num_slots] = (tn_slot){.flags = flags, .size = size};
    return d->segment.num_slots++;
}

tn_value flat_value(uint32_t slot, tn_dtype dtype, int64_t count)
{
    return (tn_value){
        .slot = slot,
        .layout = {.dtype = dtype, .rank = 1, .extent = {count}, .stride = {1}}};
}

// True when axes `axis` and `axis + 1` lie in memory as one axis would.
static bool segment_draft_joins(const tn_layout *layout, int32_t axis)
{
    return layout->stride[axis] == layout->stride[axis + 1] * layout->extent[axis + 1];
}

static void layout_join_axes(tn_layout *layout, int32_t axis)
{
    layout->extent[axis + 1] *= layout->extent[axis];
    for (int32_t i = axis; i + 1 < layout->rank; i++) {
        layout->extent[i] = layout->extent[i + 1];
        layout->stride[i] = layout->stride[i + 1];
    }
    layout->rank--;
    layout->extent[layout->rank] = layout->stride[layout->rank] = 0;
}

void values_merge(tn_value *values, uint32_t count)
{
    for (int32_t axis = values[0].layout.rank - 2; axis >= 0; axis--) {
        bool all = true;
        for (uint32_t i = 0; i < count; i++)
            all = all && segment_draft_joins(&values[i].layout, axis);
        for (uint32_t i = 0; i < count && all; i++)
            layout_join_axes(&values[i].layout, axis);
    }
}

// The id of the contents at the value's first byte: that of the earlier step that wrote or
// read them, or a new one.
static uint64_t current_id(struct draft *d, uint32_t num_steps, const tn_value *value)
{
    for (uint32_t left = num_steps; left > 0; left--) {
        uint32_t n = left - 1;
        const tn_step *step = &d->steps[n];
        if (d->outputs[n].slot == value->slot && d->outputs[n].offset == value->offset)
            return d->outputs[n].id;
        for (uint32_t k = 0; k < step->num_inputs; k++)
            if (d->inputs[n][k].slot == value->slot &&
                d->inputs[n][k].offset == value->offset)
                return d->inputs[n][k].id;
    }
    return ++d->segment.num_values;
}

// Appends a step, and marks the slots that it reads and writes.
static tn_step *next_step(struct draft *d, const tn_value *in, uint32_t num_inputs,
                          const tn_value *out)
{
    uint32_t n = d->segment.num_steps++;
    if (n == DRAFT_STEPS || num_inputs > DRAFT_OPERANDS)
        abort(); // a fault of the check, not of the plugin
    if (num_inputs)
        memcpy(d->inputs[n], in, num_inputs * sizeof(*in));
    d->outputs[n] = *out;
    for (uint32_t i = 0; i < num_inputs; i++) {
        d->slots[in[i].slot].flags |= TN_SLOT_READ;
        if (in[i].layout.dtype != TN_DTYPE_NONE)
            d->inputs[n][i].id = current_id(d, n, &in[i]);
    }
    d->outputs[n].id = ++d->segment.num_values;
    d->slots[out->slot].flags |= TN_SLOT_WRITE;
    d->steps[n] = (tn_step){.struct_size = sizeof(tn_step),
                            .inputs = d->inputs[n],
                            .outputs = &d->outputs[n],
                            .num_inputs = num_inputs,
                            .num_outputs = 1,
                            .value_size = sizeof(tn_value),
                            .label = "kit"};
    return &d->steps[n];
}

tn_step *draft_program(struct draft *d, const struct draft_program *program,
                       const tn_value *in, const tn_value *out, int64_t a, int64_t b)
{
    tn_step *step = next_step(d, in, program->record.num_inputs, out);
    uint64_t *params = d->params[step - d->steps];
    params[0] = word_of(program->inputs[0], a);
    params[1] = word_of(program->inputs[0], b);
    step->program = &program->record;
    step->params = params;
    return step;
}

tn_step *draft_kernel(struct draft *d, const tn_primitive *primitive,
                      const tn_kernel *kernel, const tn_value *in, uint32_t num_inputs,
                      const tn_value *out)
{
    static const uint64_t no_attrs[1];
    tn_step *step = next_step(d, in, num_inputs, out);
    step->primitive = primitive;
    step->attrs = no_attrs;
    step->kernel = kernel;
    step->plugin = "org.tenon.conformance";
    return step;
}
