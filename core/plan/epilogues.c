// SPDX-License-Identifier: MIT
// Epilogues and prologues: elementwise programs become part of a kernel's step. A program
// that reads a kernel's output element by element, before anybody else, becomes the
// kernel's epilogue; one whose only reader is an input of a kernel becomes a prologue
// there, or of several kernels that a device may join (may_repeat). The kernel declares the
// operand (TN_OPERAND_FUSES) and accepts, and so does the device; otherwise both stay steps
// of their own.
//
// A fused operation stands where its later part stood. So operations only move down, past
// others that read nothing of theirs, and the lists of readers stay good: a reader that is
// listed first still runs first.
#include <stdio.h>
#include <string.h>
#include "../base/shape.h"
#include "../expr/expr.h"
#include "fuse/fuse.h"
#include "plan.h"

struct epilogue_fuser {
    struct plan_work *work;
    uint32_t *epilogue; // by operation: 1 + the operation that has its step now; 0: itself
    bool *gone;         // by operation: it has become part of another operation
};

// --- conditions ------------------------------------------------------------------------

static bool may_fuse(const struct plan_work *work, const struct plan_op *op)
{
    const struct device *device = work->devices[op->device];
    if (op->kind != OP_KERNEL || !(device->info.flags & TN_DEVICE_FUSES) ||
        !TN_HAS(device->ops, step_check) || op->prim->record.flags & TN_PRIM_EFFECT)
        return false;
    for (uint32_t i = 0; i < op->kernel->num_operands; i++)
        if (op->kernel->operands[i].flags & TN_OPERAND_FUSES)
            return true;
    return false;
}

// Whether the kernel's rule for this operand has TN_OPERAND_FUSES. Scalars of runtime
// attributes have no rule.
static bool epilogue_declares(const struct plan_op *op, uint32_t operand)
{
    uint32_t num_inputs = op_num_inputs(op), visible = num_inputs - op->prim->num_runtime;
    if (operand >= 64 || (operand >= visible && operand < num_inputs))
        return false;
    uint32_t rule = operand < visible ? operand : operand - op->prim->num_runtime;
    return kernel_rule(op->kernel, rule)->flags & TN_OPERAND_FUSES;
}

static bool is_elementwise(const struct plan_op *op, uint32_t device)
{
    return op->kind == OP_PROGRAM && op->device == device &&
           !(op->program->flags & TN_EXPR_ROWS);
}

// Whether something comes from another device or from the host between the operations: the
// first one would wait for it.
static bool waits_between(const struct plan_work *work, uint32_t from, uint32_t to)
{
    for (uint32_t i = from + 1; i < to; i++) {
        const struct plan_op *op = &work->ops[i];
        bool is_brought =
            op->kind == OP_TRANSFER && !work->values[op->inputs[0].value].is_number;
        if (op->kind == OP_HOST || (is_brought && work->num_devices > 1))
            return true;
    }
    return false;
}

// Whether the operand is all elements of the value, in its order.
static bool reads_all(const struct operand *in, const struct plan_value *base)
{
    return in->layout.dtype == base->layout.dtype && in->layout.offset == 0 &&
           layout_is_contiguous(&in->layout) &&
           layout_elements(&in->layout) == layout_elements(&base->layout);
}

static bool epilogue_is_of(const struct plan_work *work, const struct operand *in,
                           uint32_t base)
{
    return in->value != NONE && work->values[in->value].base == base;
}

// --- programs --------------------------------------------------------------------------

// Gives the program with one more output, its input `input`.
static tn_status with_output(struct plan_work *work, const tn_expr_program *from,
                             uint32_t input, const tn_expr_program **out)
{
    tn_dtype outputs[TN_EXPR_MAX_OUTPUTS];
    uint32_t insns[TN_EXPR_MAX_OUTPUTS], count = from->num_outputs, load = 0;
    while (from->insns[load].op != TN_EXPR_LOAD || from->insns[load].a != input)
        load++;
    memcpy(outputs, from->output_dtypes, count * sizeof(*outputs));
    memcpy(insns, from->outputs, count * sizeof(*insns));
    outputs[count] = from->input_dtypes[input];
    insns[count] = load;
    tn_expr_program program = *from;
    program.output_dtypes = outputs;
    program.outputs = insns;
    program.num_outputs = count + 1;
    return program_intern(work->exprs, &program, out);
}

// Whether the program has an instruction `op`, LOAD or TAKE, that reads this input.
static bool epilogue_reads(const tn_expr_program *program, uint32_t input, uint32_t op)
{
    for (uint32_t i = 0; i < program->num_insns; i++)
        if (program->insns[i].op == op && program->insns[i].a == input)
            return true;
    return false;
}

// Fills *out with the program of `op`, over the operand's elements.
static tn_status start_fused(struct plan_work *work, const struct plan_op *op,
                             uint32_t operand, const tn_layout *layout,
                             const tn_layout *extents, struct plan_fused *out)
{
    tn_type type = layout_type(extents);
    type.dtype = layout->dtype;
    *out = (struct plan_fused){.operand = operand,
                               .program = op->program,
                               .params = op->params,
                               .num_inputs = op->num_inputs,
                               .num_outputs = op->num_outputs,
                               .layout = *layout,
                               .through = layout_contiguous(&type)};
    out->inputs = arena_alloc(work->arena, op->num_inputs * sizeof(*out->inputs) + 1);
    out->outputs = arena_alloc(work->arena, TN_EXPR_MAX_OUTPUTS * sizeof(*out->outputs));
    if (!out->inputs || !out->outputs)
        return TN_ERR_MEMORY;
    memcpy(out->inputs, op->inputs, op->num_inputs * sizeof(*op->inputs));
    memcpy(out->outputs, op->outputs, op->num_outputs * sizeof(*op->outputs));
    return TN_OK;
}

// --- consent ---------------------------------------------------------------------------

// The operands of a fused program, as step_check sees them.
static void fused_values(const struct plan_work *work, const struct plan_fused *fused,
                         tn_value *values, tn_fused *out)
{
    for (uint32_t i = 0; i < fused->num_inputs; i++) {
        bool through = fused->inputs[i].value == NONE;
        values[i] = (tn_value){.flags = through ? TN_VALUE_FUSED : 0,
                               .layout = fused->inputs[i].layout};
    }
    for (uint32_t i = 0; i < fused->num_outputs; i++) {
        tn_value *value = &values[fused->num_inputs + i];
        bool through = fused->outputs[i] == NONE;
        *value =
            (tn_value){.flags = through ? TN_VALUE_FUSED : 0, .layout = fused->through};
        if (!through)
            value->layout.dtype = work->values[fused->outputs[i]].layout.dtype;
    }
    *out = (tn_fused){.operand = fused->operand,
                      .program = fused->program,
                      .params = fused->params,
                      .inputs = values,
                      .outputs = values + fused->num_inputs,
                      .num_inputs = fused->num_inputs,
                      .num_outputs = fused->num_outputs};
}

// Fills the step of the kernel with these programs; `values` has room for all operands.
static void epilogue_write_step(const struct plan_work *work, const struct plan_op *op,
                                const struct plan_fused *fused, uint32_t count,
                                tn_value *values, tn_fused *records, tn_step *out)
{
    uint32_t num_inputs = op_num_inputs(op);
    const struct plan_fused *epilogue = op_epilogue(op);
    uint32_t num_outputs = epilogue ? 1 : op->num_outputs;
    for (uint32_t i = 0; i < num_inputs; i++)
        values[i] = (tn_value){.layout = op->inputs[i].layout};
    for (uint32_t i = 0; i < num_outputs; i++)
        values[num_inputs + i] = (tn_value){
            .layout = epilogue ? epilogue->layout : work->values[op->outputs[i]].layout};
    *out = (tn_step){.struct_size = sizeof(*out),
                     .primitive = &op->prim->record,
                     .attrs = op->attrs,
                     .kernel = op->kernel,
                     .inputs = values,
                     .outputs = values + num_inputs,
                     .num_inputs = num_inputs,
                     .num_outputs = num_outputs,
                     .value_size = sizeof(*values),
                     .plugin = kernel_plugin(op->kernel),
                     .fused = records,
                     .num_fused = count,
                     .fused_size = sizeof(*records)};
    tn_value *at = values + num_inputs + num_outputs;
    for (uint32_t i = 0; i < count; i++) {
        values[fused[i].operand].flags = TN_VALUE_FUSED;
        values[fused[i].operand].layout = fused[i].layout;
        fused_values(work, &fused[i], at, &records[i]);
        at += fused[i].num_inputs + fused[i].num_outputs;
    }
}

// Whether kernel and device take the programs in.
static tn_status epilogue_ask(struct plan_work *work, const struct plan_op *op,
                              const struct plan_fused *fused, uint32_t count,
                              bool *out_holds)
{
    const struct device *device = work->devices[op->device];
    uint64_t set = 0, num_values = op_num_inputs(op) + op->num_outputs;
    for (uint32_t i = 0; i < count; i++) {
        set |= UINT64_C(1) << fused[i].operand;
        num_values += fused[i].num_inputs + fused[i].num_outputs;
    }
    struct arena_mark mark = arena_mark(&work->stack);
    tn_value *values = arena_alloc(&work->stack, num_values * sizeof(*values));
    tn_fused *records = arena_alloc(&work->stack, count * sizeof(*records));
    if (!values || !records)
        return TN_ERR_MEMORY;
    tn_step step;
    const char *reason = "";
    epilogue_write_step(work, op, fused, count, values, records, &step);
    tn_status status = choose_ask_accepts(work, device, op->kernel, &step, set, out_holds);
    if (status == TN_OK && *out_holds)
        *out_holds = device->ops->step_check(device->handle, &step, &reason);
    arena_rewind(&work->stack, mark);
    return status;
}

// --- joining ---------------------------------------------------------------------------

// Fuses these programs with operation `op`, whose inputs are then the kernel's, followed by
// the programs' own in order.
static tn_status set_fused(struct plan_work *work, struct plan_op *op,
                           const struct plan_fused *fused, uint32_t count)
{
    uint32_t own = op_num_inputs(op), num_inputs = own;
    for (uint32_t i = 0; i < count; i++)
        num_inputs += fused[i].num_inputs;
    struct operand *inputs = arena_alloc(work->arena, num_inputs * sizeof(*inputs) + 1);
    struct plan_fused *list = arena_alloc(work->arena, count * sizeof(*list));
    if (!inputs || !list)
        return TN_ERR_MEMORY;
    memcpy(inputs, op->inputs, own * sizeof(*inputs));
    memcpy(list, fused, count * sizeof(*list));
    num_inputs = own;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < fused[i].num_inputs; k++)
            if (fused[i].inputs[k].value != NONE)
                inputs[num_inputs++] = fused[i].inputs[k];
        if (fused[i].operand < own)
            inputs[fused[i].operand] = (struct operand){NONE, fused[i].layout};
    }
    op->inputs = inputs;
    op->num_inputs = num_inputs;
    op->num_kernel_inputs = own;
    op->fused = list;
    op->num_fused = count;
    return TN_OK;
}

// Names `op` after both operations, which run in this order.
static tn_status epilogue_name(struct plan_work *work, struct plan_op *op,
                               const struct plan_op *a, const struct plan_op *b)
{
    const uint32_t next[] = {1, NONE};
    struct plan_op pair[] = {*a, *b};
    struct plan_work view = {.ops = pair, .arena = work->arena};
    char label[LABEL_SIZE] = "";
    if (label_add(label, a))
        (void)label_add(label, b);
    const char *text = work->watcher ? label_text(&view, next, 0) : NULL;
    op->label = arena_strdup(work->arena, label);
    op->text = text;
    op->named = false;
    return op->label && (text || !work->watcher) ? TN_OK : TN_ERR_MEMORY;
}

// Fills *out with the epilogue that operation `k` could have; out->program is NULL if there
// is none. *out_program: the operation of the program.
static tn_status find_epilogue(struct epilogue_fuser *a, uint32_t k, struct plan_fused *out,
                               uint32_t *out_program)
{
    struct plan_work *work = a->work;
    const struct plan_op *op = &work->ops[k];
    uint32_t v = op->outputs[0], input = NONE;
    const struct plan_value *value = &work->values[v];
    out->program = NULL;
    if (op->num_outputs != 1 || value->first_use == NONE ||
        !epilogue_declares(op, op->num_inputs))
        return TN_OK;
    const struct plan_use *first = &work->uses[value->first_use];
    const struct plan_op *p = &work->ops[first->op];
    bool is_kept = first->next != NONE || value->is_output;
    if (a->gone[first->op] || !is_elementwise(p, op->device) ||
        p->num_outputs + is_kept > TN_EXPR_MAX_OUTPUTS || waits_between(work, k, first->op))
        return TN_OK;
    for (uint32_t i = 0; i < p->num_inputs; i++) {
        if (!epilogue_is_of(work, &p->inputs[i], v))
            continue;
        if (!reads_all(&p->inputs[i], value) || epilogue_reads(p->program, i, TN_EXPR_TAKE))
            return TN_OK;
        if (epilogue_reads(p->program, i, TN_EXPR_LOAD))
            input = i;
    }
    if (input == NONE)
        return TN_OK;
    *out_program = first->op;
    tn_status status =
        start_fused(work, p, op->num_inputs, &value->layout, &p->inputs[input].layout, out);
    for (uint32_t i = 0; i < p->num_inputs && status == TN_OK; i++)
        if (epilogue_is_of(work, &p->inputs[i], v))
            out->inputs[i].value = NONE;
    if (is_kept && status == TN_OK) {
        out->outputs[out->num_outputs++] = v;
        status = with_output(work, p->program, input, &out->program);
    }
    return status;
}

// The fused operation takes the place of the program.
static tn_status try_epilogue(struct epilogue_fuser *a, uint32_t k)
{
    struct plan_work *work = a->work;
    struct plan_fused fused;
    uint32_t program = NONE;
    bool holds = false;
    tn_status status = find_epilogue(a, k, &fused, &program);
    if (status == TN_OK && fused.program)
        status = epilogue_ask(work, &work->ops[k], &fused, 1, &holds);
    if (status != TN_OK || !holds)
        return status;
    struct plan_op op = work->ops[k];
    status = set_fused(work, &op, &fused, 1);
    if (status == TN_OK)
        status = epilogue_name(work, &op, &work->ops[k], &work->ops[program]);
    op.outputs = fused.outputs;
    op.num_outputs = fused.num_outputs;
    work->ops[program] = op;
    a->epilogue[k] = program + 1;
    a->gone[k] = true;
    return status;
}

// Whether program `p` reads the array that operation `op` updates: as a prologue, `p` would
// keep `op` from updating the array in place.
static bool reads_updated(const struct plan_work *work, const struct plan_op *op,
                          const struct plan_op *p)
{
    for (uint32_t k = 0; k < op->num_outputs; k++) {
        uint32_t x = op->prim->in_place_of[k];
        if (x == 0 || x > op_num_inputs(op) || op->inputs[x - 1].value == NONE)
            continue;
        for (uint32_t i = 0; i < p->num_inputs; i++)
            if (epilogue_is_of(work, &p->inputs[i],
                               work->values[op->inputs[x - 1].value].base))
                return true;
    }
    return false;
}

// The operation that has a reader's step now; NULL: the reader is part of another one.
static const struct plan_op *epilogue_reader_of(const struct epilogue_fuser *a,
                                                uint32_t use)
{
    uint32_t op = a->work->uses[use].op;
    op = a->epilogue[op] ? a->epilogue[op] - 1 : op;
    return a->gone[op] ? NULL : &a->work->ops[op];
}

// Whether an operation reads the value's memory, other than as part of a kernel's step.
static bool epilogue_is_read(const struct epilogue_fuser *a, uint32_t base)
{
    bool is = false;
    for (uint32_t u = a->work->values[base].first_use; u != NONE && !is;
         u = a->work->uses[u].next) {
        const struct plan_op *op = epilogue_reader_of(a, u);
        for (uint32_t n = 0; op && n < op->num_inputs; n++)
            is |= epilogue_is_of(a->work, &op->inputs[n], base);
    }
    return is;
}

// Whether each reader of a cheap program's result may compute the result itself: kernels
// with a prologue there, on a device that may join them to one launch. The program has one
// input, so they read as many arrays as before.
static bool epilogue_may_repeat(const struct epilogue_fuser *a, const struct plan_op *p,
                                uint32_t base)
{
    const struct plan_work *work = a->work;
    bool may = work->devices[p->device]->info.flags & TN_DEVICE_GROUPS &&
               p->num_inputs == 1 && fuse_is_cheap(p->program);
    for (uint32_t u = work->values[base].first_use; u != NONE && may;
         u = work->uses[u].next) {
        const struct plan_op *op = epilogue_reader_of(a, u);
        may = op && op->kind == OP_KERNEL;
        for (uint32_t n = 0; may && n < op->num_inputs; n++)
            may = !epilogue_is_of(work, &op->inputs[n], base) ||
                  (n < op_num_inputs(op) && epilogue_declares(op, n));
    }
    return may;
}

// The operation whose only result is input `i` of operation `k`, where `k` is the only
// reader, or all readers may compute the result themselves; else NONE.
static uint32_t find_prologue(const struct epilogue_fuser *a, uint32_t k, uint32_t i)
{
    const struct plan_work *work = a->work;
    const struct plan_op *op = &work->ops[k];
    const struct operand *in = &op->inputs[i];
    if (in->value == NONE || !epilogue_declares(op, i))
        return NONE;
    uint32_t base = work->values[in->value].base, readers = 0;
    const struct plan_value *value = &work->values[base];
    if (value->producer == NONE || value->is_output || value->is_number)
        return NONE;
    const struct plan_op *p = &work->ops[value->producer];
    for (uint32_t n = 0; n < op->num_inputs; n++)
        readers += epilogue_is_of(work, &op->inputs[n], base);
    if (a->gone[value->producer] || !is_elementwise(p, op->device) || p->num_outputs != 1 ||
        readers != 1 || value->first_use == NONE || !reads_all(in, value) ||
        (work->uses[value->first_use].next != NONE && !epilogue_may_repeat(a, p, base)) ||
        reads_updated(work, op, p))
        return NONE;
    return value->producer;
}

static tn_status try_prologue(struct epilogue_fuser *a, uint32_t k, uint32_t i)
{
    struct plan_work *work = a->work;
    struct plan_op *op = &work->ops[k];
    uint32_t program = find_prologue(a, k, i), count = 0;
    bool holds = false;
    if (program == NONE)
        return TN_OK;
    struct plan_op *p = &work->ops[program];
    struct plan_fused *fused =
        arena_alloc(work->arena, (op->num_fused + 1) * sizeof(*fused));
    if (!fused)
        return TN_ERR_MEMORY;
    while (count < op->num_fused && op->fused[count].operand < i) {
        fused[count] = op->fused[count];
        count++;
    }
    tn_status status = start_fused(work, p, i, &op->inputs[i].layout,
                                   &work->values[p->outputs[0]].layout, &fused[count]);
    if (status != TN_OK)
        return status;
    fused[count].outputs[0] = NONE;
    for (uint32_t n = count; n < op->num_fused; n++)
        fused[n + 1] = op->fused[n];
    status = epilogue_ask(work, op, fused, op->num_fused + 1, &holds);
    if (status != TN_OK || !holds)
        return status;
    uint32_t result = work->values[p->outputs[0]].base;
    status = set_fused(work, op, fused, op->num_fused + 1);
    a->gone[program] = !epilogue_is_read(a, result);
    return status == TN_OK ? epilogue_name(work, op, p, &work->ops[k]) : status;
}

// --- plan_epilogues ---------------------------------------------------------------------

static tn_status fuse_all(struct epilogue_fuser *a)
{
    struct plan_work *work = a->work;
    tn_status status = work_list_uses(work);
    for (uint32_t k = 0; k < work->num_ops && status == TN_OK; k++)
        if (!a->gone[k] && may_fuse(work, &work->ops[k]) && !work->ops[k].num_fused)
            status = try_epilogue(a, k);
    for (uint32_t k = 0; k < work->num_ops && status == TN_OK; k++) {
        if (a->gone[k] || !may_fuse(work, &work->ops[k]))
            continue;
        uint32_t count = op_num_inputs(&work->ops[k]);
        for (uint32_t i = 0; i < count && status == TN_OK; i++)
            status = try_prologue(a, k, i);
    }
    if (status == TN_OK)
        work_remove_ops(a->work, a->gone);
    return status;
}

tn_status plan_epilogues(struct plan_work *work)
{
    bool any = false;
    for (uint32_t i = 0; i < work->num_ops && !any; i++)
        any = may_fuse(work, &work->ops[i]);
    if (!any)
        return TN_OK;
    struct epilogue_fuser a = {.work = work};
    a.epilogue = mem_zalloc((work->num_ops + 1) * (sizeof(*a.epilogue) + sizeof(*a.gone)));
    if (!a.epilogue)
        return TN_ERR_MEMORY;
    a.gone = (bool *)(a.epilogue + work->num_ops + 1);
    tn_status status = fuse_all(&a);
    mem_free(a.epilogue);
    return status;
}
