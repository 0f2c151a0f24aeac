// SPDX-License-Identifier: MIT
// Expected outputs of a step, computed on the host; see oracle.h.
#include "oracle.h"

#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../graph/rules.h"
#include "../transform/decompose.h"
#include "../plan/plan.h"

// The registry's entry of a step's primitive: steps point to its member `record`.
static const struct prim *prim_of(const tn_primitive *record)
{
    return (const struct prim *)((const char *)record - offsetof(struct prim, record));
}

bool oracle_knows(const tn_step *step)
{
    if (step->program)
        return true;
    const tn_primitive *record = step->primitive;
    return record && (record->reference || record->expr || record->decompose);
}

// --- programs ----------------------------------------------------------------------------

void *tensor_element(const tn_tensor *tensor, int64_t offset)
{
    return (char *)tensor->data + offset * (int64_t)dtype_size(tensor->layout.dtype);
}

int64_t tensor_offset(const tn_layout *layout, const int64_t *at)
{
    int64_t offset = layout->offset;
    for (int32_t i = 0; i < layout->rank; i++)
        offset += at[i] * layout->stride[i];
    return offset;
}

void tensor_next(const tn_layout *layout, int64_t *at)
{
    for (int32_t i = layout->rank; i-- > 0;) {
        if (++at[i] < layout->extent[i])
            return;
        at[i] = 0;
    }
}

// Both tensors have the same dtype and extents.
static void oracle_copy(const tn_tensor *to, const tn_tensor *from)
{
    int64_t at[TN_MAX_RANK] = {0}, count = layout_elements(&to->layout);
    size_t size = dtype_size(to->layout.dtype);
    for (int64_t i = 0; i < count; i++) {
        memcpy(tensor_element(to, tensor_offset(&to->layout, at)),
               tensor_element(from, tensor_offset(&from->layout, at)), size);
        tensor_next(&to->layout, at);
    }
}

static void oracle_store(const tn_tensor *tensor, const int64_t *at, uint64_t bits)
{
    dtype_store_bits(tensor->layout.dtype,
                     tensor_element(tensor, tensor_offset(&tensor->layout, at)), bits);
}

// --- one operation -----------------------------------------------------------------------

// A primitive or an expression with operands in host memory.
struct host_op {
    tn_runtime *runtime;
    const struct prim *prim; // NULL: an expression alone
    const struct expr *expr; // may be NULL
    const tn_attr_table *table;
    const void *attrs;
    const tn_tensor *inputs, *outputs;
    const uint8_t *weak_kinds; // by input: tn_array.weak_kind; NULL: all 0
    uint32_t num_inputs, num_outputs;
    uint32_t depth; // of nested decompositions
};

static tn_status oracle_apply(const struct host_op *a);

static void loop_here(const tn_cpu_call *call, int64_t n, int64_t grain,
                      void (*body)(void *context, int64_t begin, int64_t end,
                                   uint32_t worker),
                      void *context)
{
    (void)call, (void)grain;
    if (n > 0)
        body(context, 0, n, 0);
}

// The bytes of scratch memory that the reference needs, in the layouts of the operands.
static tn_status oracle_ask_scratch(const struct host_op *a, uint64_t *out_size)
{
    uint32_t count = a->num_inputs + a->num_outputs;
    tn_layout *layouts = mem_zalloc((count + 1) * sizeof(*layouts));
    if (!layouts)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < a->num_inputs; i++)
        layouts[i] = a->inputs[i].layout;
    for (uint32_t i = 0; i < a->num_outputs; i++)
        layouts[a->num_inputs + i] = a->outputs[i].layout;
    const tn_kernel_query query = {.struct_size = sizeof(query),
                                   .inputs = layouts,
                                   .outputs = layouts + a->num_inputs,
                                   .attrs = a->attrs,
                                   .num_inputs = a->num_inputs,
                                   .num_outputs = a->num_outputs,
                                   .num_workers = 1};
    tn_status status = rule_reference_scratch(a->prim, &query, out_size);
    mem_free(layouts);
    return status;
}

static void *align_64(char *memory)
{
    return memory + (64 - (uintptr_t)memory % 64) % 64;
}

static tn_status oracle_apply_reference(const struct host_op *a)
{
    uint64_t size = 0;
    void *memory = NULL;
    tn_status status =
        a->prim->record.reference_scratch ? oracle_ask_scratch(a, &size) : TN_OK;
    if (status == TN_OK && size > 0 && !(memory = mem_alloc(size + 64)))
        status = TN_ERR_MEMORY;
    if (status != TN_OK)
        return status;
    const tn_cpu_call call = {.struct_size = sizeof(call),
                              .host = a->prim->host,
                              .inputs = a->inputs,
                              .outputs = a->outputs,
                              .attrs = a->attrs,
                              .scratch = memory ? align_64(memory) : NULL,
                              .scratch_size = size,
                              .num_inputs = a->num_inputs,
                              .num_outputs = a->num_outputs,
                              .num_threads = 1,
                              .parallel_for = loop_here};
    status = rule_reference(a->prim, &call);
    mem_free(memory);
    return status;
}

static tn_status oracle_apply_expr(const struct host_op *a)
{
    struct expr_types types;
    tn_tensor inputs[TN_EXPR_MAX_INPUTS], outputs[TN_EXPR_MAX_OUTPUTS];
    const tn_expr_program *program;
    const struct expr *expr = a->expr;
    const uint64_t *params;
    struct arena arena = {0};
    tn_type shape = layout_type(&a->outputs[0].layout);
    for (uint32_t i = 0; i < a->num_inputs; i++) {
        uint8_t weak_kind =
            a->weak_kinds ? a->weak_kinds[i] : prim_weak_kind(a->prim, i, a->num_inputs);
        types.inputs[i] =
            (struct expr_input){.dtype = a->inputs[i].layout.dtype, .weak_kind = weak_kind};
        inputs[i] =
            (tn_tensor){a->inputs[i].data, layout_broadcast(&a->inputs[i].layout, &shape)};
    }
    for (uint32_t i = 0; i < a->num_outputs; i++) {
        types.outputs[i] = a->outputs[i].layout.dtype;
        outputs[i] = a->outputs[i];
    }
    int32_t axis = expr->reduces ? expr_axis(a->table, a->attrs, shape.rank) : -1;
    tn_status status = axis >= 0 ? expr_row_last(expr, &shape, axis, &expr) : TN_OK;
    if (status == TN_OK)
        status = expr_compile(expr, types.inputs, types.outputs, &program);
    if (status == TN_OK)
        status = expr_params_in(&arena, program, expr, a->table, a->attrs, &params);
    for (uint32_t i = 0; i < a->num_inputs && axis >= 0; i++)
        inputs[i].layout = layout_axis_last(inputs[i].layout, axis);
    for (uint32_t i = 0; i < a->num_outputs && axis >= 0; i++)
        outputs[i].layout = layout_axis_last(outputs[i].layout, axis);
    if (status == TN_OK)
        program_run(program, params, inputs, outputs);
    arena_finish(&arena);
    return status;
}

// Copies the view's elements to the output. An input whose layout no view can express is
// made contiguous first.
static tn_status apply_view(const struct host_op *a)
{
    tn_type type = layout_type(&a->outputs[0].layout);
    tn_tensor from = a->inputs[0];
    tn_layout seen;
    void *memory = NULL;
    tn_status status = rule_view(a->prim, &from.layout, &type, a->attrs, &seen);
    if (status == TN_ERR_UNSUPPORTED) {
        tn_type own = layout_type(&from.layout);
        memory = mem_alloc(type_bytes(&own) + 8);
        if (!memory)
            return TN_ERR_MEMORY;
        from = (tn_tensor){memory, layout_contiguous(&own)};
        oracle_copy(&from, &a->inputs[0]);
        status = rule_view(a->prim, &from.layout, &type, a->attrs, &seen);
    }
    if (status == TN_OK)
        oracle_copy(&a->outputs[0], &(tn_tensor){from.data, seen});
    mem_free(memory);
    return status;
}

// --- decompositions ----------------------------------------------------------------------

// The decomposition of one operation. Its arrays are in the memory of its scope.
struct oracle_parts {
    const struct host_op *whole;
    struct decomposition of;
    struct task task;
    tn_tensor *tensors; // by id of the array
};

static tn_status parts_build(struct oracle_parts *p)
{
    const struct host_op *a = p->whole;
    tn_type types[MAX_OUTPUTS];
    tn_status status =
        decomposition_open(a->runtime, a->num_inputs, a->num_outputs, &p->of);
    for (uint32_t i = 0; i < a->num_inputs && status == TN_OK; i++) {
        tn_type type = layout_type(&a->inputs[i].layout);
        if (type.dtype != TN_DTYPE_NONE)
            status = decomposition_add_input(&p->of, i, &type,
                                             prim_weak_kind(a->prim, i, a->num_inputs));
    }
    for (uint32_t i = 0; i < a->num_outputs; i++)
        types[i] = layout_type(&a->outputs[i].layout);
    if (status == TN_OK)
        status = decomposition_build(&p->of, a->prim, a->attrs, types);
    return status == TN_OK ? task_create(p->of.scope, p->of.outputs, a->num_outputs,
                                         p->of.leaves, p->of.num_leaves, &p->task)
                           : status;
}

// Allocates the array's elements in the scope's arena.
static tn_status parts_make(struct oracle_parts *p, const tn_array *array)
{
    void *data = arena_alloc(&p->of.scope->arena, type_bytes(&array->type) + 8);
    p->tensors[array->id] = (tn_tensor){data, layout_contiguous(&array->type)};
    return data ? TN_OK : TN_ERR_MEMORY;
}

// Gives the array's elements. Those of a number are written at its first use. A NULL array
// (an optional input) gives a tensor of dtype NONE; an input of no elements may have no
// data.
static tn_status parts_tensor(struct oracle_parts *p, const tn_array *array, tn_tensor *out)
{
    *out = (tn_tensor){0};
    if (!array)
        return TN_OK;
    bool is_made = p->tensors[array->id].layout.dtype != TN_DTYPE_NONE;
    if (!is_made && array->node->kind == NODE_NUMBER) {
        tn_status status = parts_make(p, array);
        if (status != TN_OK)
            return status;
        oracle_store(&p->tensors[array->id], (int64_t[TN_MAX_RANK]){0},
                     array->node->number);
    }
    *out = p->tensors[array->id];
    return out->layout.dtype != TN_DTYPE_NONE
               ? TN_OK
               : fail(TN_ERR_INTERNAL, "a node comes before its inputs");
}

static tn_status parts_run(struct oracle_parts *p, const struct node *node)
{
    uint32_t n = node->num_inputs;
    tn_tensor *tensors =
        arena_alloc(&p->of.scope->arena, (n + node->num_outputs) * sizeof(*tensors));
    uint8_t *weak_kinds = arena_alloc(&p->of.scope->arena, n + 1);
    if (!tensors || !weak_kinds)
        return TN_ERR_MEMORY;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < n && status == TN_OK; i++) {
        status = parts_tensor(p, node->inputs[i], &tensors[i]);
        weak_kinds[i] = node->inputs[i] ? node->inputs[i]->weak_kind : 0;
    }
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++) {
        status = parts_make(p, &node->outputs[i]);
        tensors[n + i] = p->tensors[node->outputs[i].id];
    }
    const struct host_op a = {.runtime = p->whole->runtime,
                              .prim = node->prim,
                              .expr = node->expr,
                              .table = node->table,
                              .attrs = node->attrs,
                              .inputs = tensors,
                              .outputs = tensors + n,
                              .weak_kinds = weak_kinds,
                              .num_inputs = n,
                              .num_outputs = node->num_outputs,
                              .depth = p->whole->depth + 1};
    return status == TN_OK ? oracle_apply(&a) : status;
}

static tn_status parts_compute(struct oracle_parts *p)
{
    const struct host_op *a = p->whole;
    p->tensors =
        arena_alloc(&p->of.scope->arena, (p->task.num_ids + 1) * sizeof(*p->tensors));
    if (!p->tensors)
        return TN_ERR_MEMORY;
    memset(p->tensors, 0, (p->task.num_ids + 1) * sizeof(*p->tensors));
    for (uint32_t i = 0; i < a->num_inputs; i++)
        if (p->of.inputs[i])
            p->tensors[p->of.inputs[i]->id] = a->inputs[i];
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < p->task.num_nodes && status == TN_OK; i++)
        if (p->task.nodes[i]->kind == NODE_PRIM || p->task.nodes[i]->kind == NODE_EXPR)
            status = parts_run(p, p->task.nodes[i]);
    for (uint32_t i = 0; i < a->num_outputs && status == TN_OK; i++) {
        tn_tensor result;
        status = parts_tensor(p, p->of.outputs[i], &result);
        if (status == TN_OK)
            oracle_copy(&a->outputs[i], &result);
    }
    return status;
}

static tn_status apply_decomposition(const struct host_op *a)
{
    if (a->depth == MAX_DECOMPOSITION)
        return fail(TN_ERR_INTERNAL, "decompositions nest deeper than %d",
                    MAX_DECOMPOSITION);
    struct oracle_parts p = {.whole = a};
    tn_status status = parts_build(&p);
    if (status == TN_OK)
        status = parts_compute(&p);
    task_finish(&p.task);
    if (p.of.scope)
        tn_scope_close(p.of.scope);
    return status;
}

// --- oracle_step -------------------------------------------------------------------------

static tn_status oracle_apply(const struct host_op *a)
{
    const tn_primitive *record = a->prim ? &a->prim->record : NULL;
    if (record && record->reference)
        return oracle_apply_reference(a);
    if (a->expr)
        return oracle_apply_expr(a);
    if (record && (record->flags & TN_PRIM_VIEW))
        return apply_view(a);
    if (record && record->decompose)
        return apply_decomposition(a);
    return fail(TN_ERR_UNSUPPORTED, "it has neither a reference nor an expression nor a "
                                    "decomposition");
}

// A step with fused programs: the kernel's operands, of which fused ones get memory here.
struct whole {
    const tn_step *step;
    const tn_tensor *inputs, *outputs; // as oracle_step's
    tn_tensor *own;                    // inputs, then outputs, of the kernel
};

static tn_status whole_open(struct whole *w)
{
    const tn_step *step = w->step;
    uint32_t count = step->num_inputs + step->num_outputs;
    w->own = mem_zalloc((count + 1) * sizeof(*w->own));
    if (!w->own)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        w->own[i] = i < step->num_inputs ? w->inputs[i] : w->outputs[i - step->num_inputs];
    for (uint32_t i = 0; i < step->num_fused; i++) {
        tn_tensor *operand = &w->own[tn_step_fused(step, i)->operand];
        tn_type type = layout_type(&operand->layout);
        operand->data = mem_zalloc(type_bytes(&type) + 8);
        if (!operand->data)
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}

// Runs the prologues, or the epilogues.
static void whole_run(const struct whole *w, bool prologues)
{
    const tn_step *step = w->step;
    const tn_tensor *inputs = w->inputs + step->num_inputs;
    const tn_tensor *outputs = w->outputs + step->num_outputs;
    for (uint32_t i = 0; i < step->num_fused; i++) {
        tn_tensor in[TN_EXPR_MAX_INPUTS], out[TN_EXPR_MAX_OUTPUTS];
        const tn_fused *fused = tn_step_fused(step, i);
        void *through = w->own[fused->operand].data;
        for (uint32_t k = 0; k < fused->num_inputs; k++) {
            in[k] = *inputs++;
            if (tn_fused_input(step, fused, k)->flags & TN_VALUE_FUSED)
                in[k].data = through;
        }
        for (uint32_t k = 0; k < fused->num_outputs; k++) {
            out[k] = *outputs++;
            if (tn_fused_output(step, fused, k)->flags & TN_VALUE_FUSED)
                out[k].data = through;
        }
        if (prologues == (fused->operand < step->num_inputs))
            program_run(fused->program, fused->params, in, out);
    }
}

static void whole_close(struct whole *w)
{
    for (uint32_t i = 0; w->own && i < w->step->num_fused; i++)
        mem_free(w->own[tn_step_fused(w->step, i)->operand].data);
    mem_free(w->own);
}

tn_status oracle_step(tn_runtime *runtime, const tn_step *step, const tn_tensor *inputs,
                      const tn_tensor *outputs)
{
    if (step->program) {
        program_run(step->program, step->params, inputs, outputs);
        return TN_OK;
    }
    const struct prim *prim = prim_of(step->primitive);
    struct whole whole = {.step = step, .inputs = inputs, .outputs = outputs};
    tn_status status = whole_open(&whole);
    const struct host_op a = {.runtime = runtime,
                              .prim = prim,
                              .expr = prim->expr,
                              .table = &prim->record.attrs,
                              .attrs = step->attrs,
                              .inputs = whole.own,
                              .outputs = whole.own + step->num_inputs,
                              .num_inputs = step->num_inputs,
                              .num_outputs = step->num_outputs};
    if (status == TN_OK) {
        whole_run(&whole, true);
        status = oracle_apply(&a);
    }
    if (status == TN_OK)
        whole_run(&whole, false);
    whole_close(&whole);
    if (status != TN_OK)
        fail_prefix("%s: ", prim->record.id);
    return status;
}
