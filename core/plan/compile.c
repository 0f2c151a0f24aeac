// SPDX-License-Identifier: MIT
// Compile: writes each segment's steps and slots as backends read them (tn_segment) and
// calls segment_compile. Values that share a leaf, an arena or a storage share a slot.
#include <string.h>
#include <tenon/checked.h>
#include <tenon/ops/stages.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "plan.h"

// The slots are those of the segment that is being compiled.
struct plan_compiler {
    struct plan_work *work;
    struct plan *plan;
    struct map slots; // (home, index) -> slot + 1
    struct plan_slot *slot_list;
    uint32_t num_slots, max_slots;
    struct map programs;  // address of an operation's program -> the plan's copy
    uint32_t *slot_flags; // by slot: TN_SLOT_...
    uint32_t max_flags;
    uint64_t
        *ids; // by value: its tn_value.id, when above first_id; below: not in this segment
    uint64_t first_id, last_id;
};

static tn_status slot_for(struct plan_compiler *c, uint32_t home, uint32_t index,
                          uint32_t flags, uint32_t *out_slot)
{
    struct hash key = {(uint64_t)home << 32 | index, 1};
    uintptr_t found = (uintptr_t)map_get(&c->slots, key);
    if (found) {
        c->slot_flags[found - 1] |= flags;
        *out_slot = (uint32_t)found - 1;
        return TN_OK;
    }
    tn_status status = mem_grow((void **)&c->slot_list, &c->max_slots, c->num_slots + 1,
                                sizeof(*c->slot_list));
    if (status == TN_OK)
        status = mem_grow((void **)&c->slot_flags, &c->max_flags, c->num_slots + 1,
                          sizeof(*c->slot_flags));
    if (status == TN_OK)
        status = map_put(&c->slots, key, (void *)(uintptr_t)(c->num_slots + 1));
    if (status != TN_OK)
        return status;
    c->slot_list[c->num_slots] = (struct plan_slot){home, index};
    c->slot_flags[c->num_slots] = flags | (home == HOME_ARENA ? TN_SLOT_SCRATCH : 0);
    *out_slot = c->num_slots++;
    return TN_OK;
}

// Numbers the contents of values from 1 in each segment.
static uint64_t id_of(struct plan_compiler *c, uint32_t base)
{
    if (c->ids[base] <= c->first_id)
        c->ids[base] = ++c->last_id;
    return c->ids[base] - c->first_id;
}

// Whether nobody needs the contents after operation `op`.
static bool is_last_use(const struct plan_work *work, const struct plan_value *base,
                        uint32_t op)
{
    return base->last_use == op && !base->is_output &&
           (base->home != HOME_LEAF || plan_is_donated(work, base));
}

static tn_status write_value(struct plan_compiler *c, uint32_t op, uint32_t value,
                             const tn_layout *layout, uint32_t flags, tn_value *out)
{
    const struct plan_value *v = &c->work->values[value];
    const struct plan_value *base = &c->work->values[v->base];
    *out = (tn_value){.flags = is_last_use(c->work, base, op) ? TN_VALUE_LAST : 0,
                      .offset = base->home_offset,
                      .id = id_of(c, v->base),
                      .layout = *layout};
    if (base->home == HOME_NONE)
        return fail(TN_ERR_INTERNAL, "operation %u: value %u has no memory", op, v->base);
    return slot_for(c, base->home, base->home_index, flags, &out->slot);
}

// Gives data that a function captured, for the state of a kernel on a device that computes
// in the host's memory. Waits for the work that writes the data.
static tn_status write_captured(struct plan_compiler *c, const struct plan_op *op,
                                const struct plan_value *base, const void **out_constant)
{
    const tn_step step = {.kernel = op->kernel};
    const struct task *task = c->work->task;
    const struct device *device = c->work->devices[op->device];
    if (base->home != HOME_LEAF || base->home_index < task->first_captured ||
        !(device->info.flags & TN_DEVICE_HOST_MEMORY) || !TN_HAS(device->ops, buffer_map) ||
        !tn_step_staged(&step))
        return TN_OK;
    const struct value *value = task->leaves[base->home_index]->value;
    tn_status status = storage_wait(value->storage);
    const char *bytes =
        status == TN_OK ? device->ops->buffer_map(device->handle, value->storage->buffer)
                        : NULL;
    if (bytes)
        *out_constant = bytes + value->offset + base->home_offset;
    return status;
}

// Gives the element of a number that is written to memory, for backends and kernels that
// look at it when they compile.
static tn_status plan_compile_write_constant(struct plan_compiler *c,
                                             const struct plan_op *op,
                                             const struct plan_value *v,
                                             const void **out_constant)
{
    if (!v->is_constant)
        return write_captured(c, op, &c->work->values[v->base], out_constant);
    void *element = arena_alloc(&c->plan->arena, sizeof(uint64_t));
    if (!element)
        return TN_ERR_MEMORY;
    dtype_store_bits(v->layout.dtype, element, v->number);
    *out_constant = element;
    return TN_OK;
}

// Writes the kernel's operands; one that is fused has no memory.
static tn_status write_operands(struct plan_compiler *c, uint32_t index, tn_value *values)
{
    const struct plan_op *op = &c->work->ops[index];
    const struct plan_fused *epilogue = op_epilogue(op);
    uint32_t num_inputs = op_num_inputs(op);
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < num_inputs && status == TN_OK; i++) {
        const struct operand *in = &op->inputs[i];
        if (in->value == NONE && in->layout.dtype != TN_DTYPE_NONE)
            values[i] = (tn_value){.flags = TN_VALUE_FUSED, .layout = in->layout};
        else if (in->value != NONE)
            status =
                write_value(c, index, in->value, &in->layout, TN_SLOT_READ, &values[i]);
        if (in->value != NONE && op->kernel && status == TN_OK)
            status = plan_compile_write_constant(c, op, &c->work->values[in->value],
                                                 &values[i].constant);
    }
    if (epilogue) {
        values[num_inputs] =
            (tn_value){.flags = TN_VALUE_FUSED, .layout = epilogue->layout};
        return status;
    }
    for (uint32_t i = 0; i < op->num_outputs && status == TN_OK; i++) {
        status =
            write_value(c, index, op->outputs[i], &c->work->values[op->outputs[i]].layout,
                        TN_SLOT_WRITE, &values[num_inputs + i]);
    }
    return status;
}

// Moves the row's axis behind the others, or makes the last axes one, and merges
// adjacent axes, as tn_step promises for programs.
static void plan_compile_collapse(tn_value *values, uint32_t count,
                                  const tn_expr_program *program, int32_t row_axis)
{
    tn_layout *layouts[TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS];
    bool has_rows = program->flags & TN_EXPR_ROWS;
    for (uint32_t i = 0; i < count; i++) {
        layouts[i] = &values[i].layout;
        if (has_rows && row_axis < 0)
            layout_fold(layouts[i], -row_axis);
        else if (has_rows)
            *layouts[i] = layout_axis_last(*layouts[i], row_axis);
    }
    if (has_rows)
        layouts_collapse_rows(layouts, count);
    else
        layouts_collapse(layouts, count);
}

// Gives the plan's copy of a program. The program lives only as long as its expr_set, which
// scopes hold, and plans outlive scopes.
static tn_status keep_program(struct plan_compiler *c, const tn_expr_program *program,
                              const tn_expr_program **out_program)
{
    struct hash key = {(uint64_t)(uintptr_t)program, 0};
    *out_program = program ? map_get(&c->programs, key) : NULL;
    if (!program || *out_program)
        return TN_OK;
    *out_program = program_copy(&c->plan->arena, program);
    return *out_program ? map_put(&c->programs, key, (void *)*out_program) : TN_ERR_MEMORY;
}

static tn_status write_fused_program(struct plan_compiler *c, uint32_t index,
                                     const struct plan_fused *fused, tn_fused *out)
{
    uint32_t count = fused->num_inputs + fused->num_outputs;
    tn_value *values = arena_alloc(&c->plan->arena, count * sizeof(*values));
    if (!values)
        return TN_ERR_MEMORY;
    *out = (tn_fused){.operand = fused->operand,
                      .params = fused->params,
                      .inputs = values,
                      .outputs = values + fused->num_inputs,
                      .num_inputs = fused->num_inputs,
                      .num_outputs = fused->num_outputs};
    tn_status status = keep_program(c, fused->program, &out->program);
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        bool is_input = i < fused->num_inputs;
        uint32_t value =
            is_input ? fused->inputs[i].value : fused->outputs[i - fused->num_inputs];
        tn_layout layout = is_input ? fused->inputs[i].layout : fused->through;
        if (value == NONE) {
            values[i] = (tn_value){.flags = TN_VALUE_FUSED, .layout = layout};
            continue;
        }
        layout.dtype = c->work->values[value].layout.dtype;
        status = write_value(c, index, value, &layout,
                             is_input ? TN_SLOT_READ : TN_SLOT_WRITE, &values[i]);
    }
    plan_compile_collapse(values, count, out->program, 0);
    return status;
}

static tn_status write_fused(struct plan_compiler *c, uint32_t index, tn_step *out)
{
    const struct plan_op *op = &c->work->ops[index];
    tn_fused *fused = arena_alloc(&c->plan->arena, op->num_fused * sizeof(*fused));
    tn_status status = fused ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < op->num_fused && status == TN_OK; i++)
        status = write_fused_program(c, index, &op->fused[i], &fused[i]);
    out->fused = fused;
    out->num_fused = op->num_fused;
    out->fused_size = sizeof(*fused);
    return status;
}

static tn_status plan_compile_write_step(struct plan_compiler *c, uint32_t index,
                                         tn_step *out)
{
    const struct plan_op *op = &c->work->ops[index];
    uint32_t num_inputs = op_num_inputs(op);
    uint32_t num_outputs = op_epilogue(op) ? 1 : op->num_outputs;
    tn_value *values =
        arena_alloc(&c->plan->arena, (num_inputs + num_outputs) * sizeof(*values));
    if (!values)
        return TN_ERR_MEMORY;
    const tn_expr_program *program;
    tn_status status = keep_program(c, op->program, &program);
    if (status == TN_OK)
        status = write_operands(c, index, values);
    if (op->kind == OP_PROGRAM && status == TN_OK)
        plan_compile_collapse(values, num_inputs + num_outputs, op->program, op->row_axis);
    *out = (tn_step){
        .struct_size = sizeof(*out),
        .primitive = op->prim && op->kind != OP_PROGRAM ? &op->prim->record : NULL,
        .attrs = op->attrs,
        .kernel = op->kernel,
        .program = program,
        .params = op->params,
        .inputs = values,
        .outputs = values + num_inputs,
        .num_inputs = num_inputs,
        .num_outputs = num_outputs,
        .value_size = sizeof(*values),
        .scratch_offset = op->scratch_offset,
        .scratch_size = op->scratch_size,
        .label = arena_strdup(&c->plan->arena, op->label ? op->label : ""),
        .plugin = op->kernel ? kernel_plugin(op->kernel) : NULL,
    };
    if (!out->label)
        return TN_ERR_MEMORY;
    if (op->num_fused > 0 && status == TN_OK)
        status = write_fused(c, index, out);
    if (op->scratch_size > 0 && status == TN_OK)
        status = slot_for(c, HOME_ARENA, op->device, TN_SLOT_READ | TN_SLOT_WRITE,
                          &out->scratch_slot);
    return status;
}

// The bytes of outputs that an operation writes; for an output that is updated in place,
// the bytes of the update.
static uint64_t bytes_written(const struct plan_work *work, const struct plan_op *op)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < op->num_outputs; k++) {
        const struct plan_value *out = &work->values[op->outputs[k]];
        uint32_t update =
            out->takes == NONE || !op->prim || op->kind == OP_PROGRAM || op_epilogue(op)
                ? 0
                : op->prim->update_of[k];
        uint64_t bytes = layout_bytes(&out->layout);
        if (update > 0 && update <= op_num_inputs(op) &&
            op->inputs[update - 1].layout.dtype != TN_DTYPE_NONE) {
            uint64_t part = layout_bytes(&op->inputs[update - 1].layout);
            bytes = part < bytes ? part : bytes;
        }
        sum = tn_saturated_add(sum, bytes);
    }
    return sum;
}

static uint64_t slot_size(const struct plan_compiler *c, const struct plan_slot *slot)
{
    if (slot->home == HOME_ARENA)
        return c->plan->arena_size[slot->index];
    if (slot->home == HOME_STORAGE)
        return c->plan->storages[slot->index].size;
    if (slot->home == HOME_MADE)
        return c->plan->made_bytes[slot->index];
    const tn_array *leaf = c->work->task->leaves[slot->index];
    return leaf->value ? leaf->value->storage->size - leaf->value->offset
                       : type_bytes(&leaf->type);
}

// As tn_slot.alias: 1 + the slot of the donated leaf whose memory the storage is; 0 when
// there is no such leaf in this segment.
static uint32_t find_alias(const struct plan_compiler *c, const struct plan_slot *slot)
{
    if (slot->home != HOME_STORAGE)
        return 0;
    uint32_t leaf = c->plan->storages[slot->index].donated_leaf;
    struct hash key = {(uint64_t)HOME_LEAF << 32 | leaf, 1};
    return leaf == NONE ? 0 : (uint32_t)(uintptr_t)map_get(&c->slots, key);
}

static tn_status write_slots(struct plan_compiler *c, struct plan_segment *segment)
{
    tn_slot *slots = arena_alloc(&c->plan->arena, (c->num_slots + 1) * sizeof(*slots));
    segment->slots =
        arena_alloc(&c->plan->arena, (c->num_slots + 1) * sizeof(*segment->slots));
    if (!slots || !segment->slots)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < c->num_slots; i++) {
        segment->slots[i] = c->slot_list[i];
        slots[i] = (tn_slot){.flags = c->slot_flags[i],
                             .alias = find_alias(c, &c->slot_list[i]),
                             .size = slot_size(c, &c->slot_list[i])};
    }
    segment->segment.slots = slots;
    segment->segment.num_slots = c->num_slots;
    if (c->num_slots > c->plan->max_slots)
        c->plan->max_slots = c->num_slots;
    return TN_OK;
}

static tn_status call_compile(struct plan_compiler *c, struct plan_segment *segment)
{
    struct device *device = c->work->devices[segment->device];
    segment->segment.struct_size = sizeof(segment->segment);
    segment->segment.steps = c->plan->steps + segment->first_step;
    segment->segment.num_steps = segment->num_steps;
    segment->segment.step_size = sizeof(tn_step);
    segment->segment.slot_size = sizeof(tn_slot);
    segment->segment.num_values = c->last_id - c->first_id;
    fail_clear();
    uint64_t begin = trace_begin(device->runtime->trace);
    tn_status status = device->ops->segment_compile(device->handle, &segment->segment,
                                                    &segment->executable);
    trace_end(device->runtime->trace, begin, "compile segment",
              "\"device\":\"%s\",\"steps\":%u", device->name, segment->num_steps);
    return status == TN_OK ? TN_OK : device_failed(device, "segment_compile", status);
}

static void plan_compile_write_transfer(struct plan_compiler *c, const struct plan_op *op,
                                        struct plan_transfer *out)
{
    const struct plan_value *values = c->work->values;
    const struct plan_value *from = &values[op->inputs[0].value],
                            *to = &values[op->outputs[0]];
    const struct plan_value *from_base = &values[from->base];
    uint64_t element = dtype_size(from->layout.dtype);
    bool upload = from->is_number;
    *out = (struct plan_transfer){
        .from_device = from->device,
        .to_device = to->device,
        .from = {upload ? HOME_NONE : from_base->home, from_base->home_index},
        .dtype = from->layout.dtype,
        .number = from->number,
        .to = {to->home, to->home_index},
        .from_offset = from_base->home_offset + (uint64_t)from->layout.offset * element,
        .to_offset = to->home_offset,
        .size = (uint64_t)layout_elements(&from->layout) * element,
    };
}

static uint64_t domain_bit(const struct plan_op *op)
{
    return op->prim && op->prim->domain ? UINT64_C(1) << (op->prim->domain - 1) : 0;
}

// Stage order left the operations by segment: its transfers, what the host runs, then its
// steps.
static tn_status compile_segment(struct plan_compiler *c, struct plan_segment *segment,
                                 uint32_t *next_op)
{
    tn_status status = TN_OK;
    map_finish(&c->slots);
    c->num_slots = 0;
    c->first_id = c->last_id;
    for (uint32_t i = 0; i < segment->num_transfers; i++)
        plan_compile_write_transfer(c, &c->work->ops[(*next_op)++],
                                    &c->plan->transfers[segment->first_transfer + i]);
    for (uint32_t i = 0; i < segment->num_hosts && status == TN_OK; i++)
        status = plan_write_host(c->work, c->plan, &c->work->ops[(*next_op)++],
                                 &c->plan->hosts[segment->first_host + i]);
    for (uint32_t i = 0; i < segment->num_steps && status == TN_OK; i++) {
        segment->bytes_written = tn_saturated_add(
            segment->bytes_written, bytes_written(c->work, &c->work->ops[*next_op]));
        segment->effects |= domain_bit(&c->work->ops[*next_op]);
        status = plan_compile_write_step(c, (*next_op)++,
                                         &c->plan->steps[segment->first_step + i]);
    }
    if (status == TN_OK)
        status = write_slots(c, segment);
    if (status == TN_OK && segment->num_steps > 0)
        status = call_compile(c, segment);
    return status;
}

tn_status plan_compile(struct plan_work *work, struct plan *plan)
{
    struct plan_compiler c = {.work = work, .plan = plan};
    uint32_t next_op = 0;
    plan->steps = arena_alloc(&plan->arena, (plan->num_steps + 1) * sizeof(*plan->steps));
    plan->transfers =
        arena_alloc(&plan->arena, (plan->num_transfers + 1) * sizeof(*plan->transfers));
    plan->hosts = arena_alloc(&plan->arena, (plan->num_hosts + 1) * sizeof(*plan->hosts));
    c.ids = mem_zalloc((work->num_values + 1) * sizeof(*c.ids));
    tn_status status =
        plan->steps && plan->transfers && plan->hosts && c.ids ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < plan->num_segments && status == TN_OK; i++)
        status = compile_segment(&c, &plan->segments[i], &next_op);
    map_finish(&c.slots);
    map_finish(&c.programs);
    mem_free(c.ids);
    mem_free(c.slot_list);
    mem_free(c.slot_flags);
    return status;
}
