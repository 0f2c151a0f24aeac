// SPDX-License-Identifier: MIT
// Copies and transfers, for operations whose inputs are on another device or not
// contiguous.
//
// A copy is placed like a node that applies tn.copy/1: the device runs its expression, a
// kernel, or its reference. Where the device runs none of these, another device of
// TENON_BACKEND makes the copy. The host uploads numbers that a device cannot write by a
// program.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../device/mover.h"
#include "place.h"

// A temporary node that applies tn.copy/1, for choose(). No operation refers to it.
struct copy_node {
    struct node node;
    tn_array *inputs[1];
    tn_array from, to;
};

static void copy_node_init(struct copy_node *c, const struct plan_work *work,
                           const tn_type *type)
{
    const struct prim *prim = prim_copy(work->runtime);
    *c = (struct copy_node){.node = {.kind = NODE_PRIM,
                                     .num_inputs = 1,
                                     .num_outputs = 1,
                                     .prim = prim,
                                     .expr = prim->expr,
                                     .inputs = c->inputs,
                                     .outputs = &c->to},
                            .inputs = {&c->from},
                            .from = {.node = &c->node, .type = *type},
                            .to = {.node = &c->node, .type = *type}};
}

static tn_status choose_copy(struct plan_work *work, uint32_t device,
                             const struct copy_node *c, const tn_layout *layout,
                             struct choice *out)
{
    const tn_value values[] = {{.layout = *layout},
                               {.layout = layout_contiguous(&c->from.type)}};
    return choose(work, work->devices[device], &c->node, values, out);
}

// Gives the device that makes the copy: `device` if it can, else the first that can, or
// NONE.
static tn_status find_copier(struct plan_work *work, uint32_t device,
                             const struct copy_node *c, const tn_layout *layout,
                             struct choice *out_choice, uint32_t *out_device)
{
    *out_device = NONE;
    for (uint32_t i = 0; i <= work->num_devices; i++) {
        uint32_t candidate = i == 0 ? device : i - 1;
        if (i > 0 && candidate == device)
            continue;
        tn_status status = choose_copy(work, candidate, c, layout, out_choice);
        if (status != TN_OK)
            return status;
        if (out_choice->kind != CHOICE_NONE) {
            *out_device = candidate;
            return TN_OK;
        }
    }
    return TN_OK;
}

bool copy_is_possible(struct plan_work *work, uint32_t device, const tn_layout *layout)
{
    struct copy_node c;
    struct choice choice;
    uint32_t copier;
    tn_type type = layout_type(layout);
    struct plan_watcher *watcher = work->watcher;
    copy_node_init(&c, work, &type);
    work->watcher = NULL; // placing the copy will report rejected candidates
    tn_status status = find_copier(work, device, &c, layout, &choice, &copier);
    work->watcher = watcher;
    return status == TN_OK && copier != NONE;
}

// --- operations of one input and one output --------------------------------------------

static tn_status add_unary(struct plan_work *work, struct plan_op *op, uint32_t from,
                           uint32_t *out_value)
{
    tn_layout layout = work->values[from].layout;
    tn_type type = layout_type(&layout);
    tn_layout contiguous = layout_contiguous(&type);
    op->num_inputs = op->num_outputs = 1;
    op->inputs = arena_alloc(work->arena, sizeof(*op->inputs));
    op->outputs = arena_alloc(work->arena, sizeof(*op->outputs));
    if (!op->inputs || !op->outputs)
        return TN_ERR_MEMORY;
    op->inputs[0] = (struct operand){from, layout};
    tn_status status = work_add_value(work, &contiguous, op->device, &op->outputs[0]);
    if (status == TN_OK)
        status = work_add_op(work, op, NULL);
    *out_value = op->outputs[0];
    return status;
}

static tn_status add_copy(struct plan_work *work, uint32_t device,
                          const struct choice *choice, uint32_t from, uint32_t *out_value)
{
    const struct prim *prim = prim_copy(work->runtime);
    struct plan_op op = {.kind = choice->kind,
                         .device = device,
                         .prim = prim,
                         .kernel = choice->kernel,
                         .label = prim->record.id,
                         .named = true};
    tn_dtype dtype = work->values[from].layout.dtype;
    tn_status status = choice->kind == OP_PROGRAM
                           ? program_cast(work->runtime, dtype, dtype, &op.program)
                           : TN_OK;
    return status == TN_OK ? add_unary(work, &op, from, out_value) : status;
}

static tn_status add_transfer(struct plan_work *work, uint32_t device, uint32_t from,
                              uint32_t *out_value)
{
    struct plan_op op = {
        .kind = OP_TRANSFER,
        .device = device,
        .label = work->values[from].is_number ? "upload" : "transfer",
    };
    return add_unary(work, &op, from, out_value);
}

// --- transfers -------------------------------------------------------------------------

// Gives the range of elements from the lowest to the highest that the layout reaches, gaps
// included.
static void find_span(const tn_layout *layout, int64_t *out_first, int64_t *out_count)
{
    struct span bytes = {0};
    int64_t size = (int64_t)dtype_size(layout->dtype);
    bool any = layout_elements(layout) > 0 && layout_span(layout, &bytes);
    *out_first = any ? bytes.low / size : layout->offset;
    *out_count = any ? (bytes.high - bytes.low) / size : 0;
}

static tn_status add_view(struct plan_work *work, uint32_t base, const tn_layout *layout,
                          uint32_t *out_value)
{
    tn_status status = work_add_value(work, layout, work->values[base].device, out_value);
    if (status != TN_OK)
        return status;
    struct plan_value *v = &work->values[*out_value];
    v->base = work->values[base].base;
    v->leaf = work->values[base].leaf;
    v->producer = work->values[base].producer;
    return TN_OK;
}

// Transfers the whole range that the value's layout reaches, so the strides stay the same.
static tn_status transfer_span(struct plan_work *work, uint32_t device, uint32_t from,
                               uint32_t *out_value)
{
    tn_layout layout = work->values[from].layout;
    tn_type type = {.dtype = layout.dtype, .rank = 1};
    int64_t first;
    uint32_t span, there;
    find_span(&layout, &first, &type.extent[0]);
    tn_layout range = layout_contiguous(&type);
    range.offset = first;
    layout.offset -= first;
    tn_status status = add_view(work, from, &range, &span);
    if (status == TN_OK)
        status = add_transfer(work, device, span, &there);
    return status == TN_OK ? add_view(work, there, &layout, out_value) : status;
}

// Copies a value with gaps to contiguous memory before the transfer, where its device can.
static tn_status transfer_sparse(struct plan_work *work, uint32_t device, uint32_t from,
                                 uint32_t *out_value)
{
    const tn_layout layout = work->values[from].layout;
    uint32_t own = work->values[from].device, source;
    tn_type type = layout_type(&layout);
    struct copy_node c;
    struct choice choice;
    copy_node_init(&c, work, &type);
    tn_status status = choose_copy(work, own, &c, &layout, &choice);
    if (status == TN_OK && choice.kind == CHOICE_NONE)
        return transfer_span(work, device, from, out_value);
    if (status == TN_OK)
        status = place_copy(work, own, from, &source);
    return status == TN_OK ? add_transfer(work, device, source, out_value) : status;
}

static tn_status plan_copy_transfer(struct plan_work *work, uint32_t device, uint32_t from,
                                    uint32_t *out_value)
{
    const tn_layout *layout = &work->values[from].layout;
    int64_t first, count;
    find_span(layout, &first, &count);
    if (work->values[from].is_number || layout_is_contiguous(layout))
        return add_transfer(work, device, from, out_value);
    return count <= layout_elements(layout)
               ? transfer_span(work, device, from, out_value)
               : transfer_sparse(work, device, from, out_value);
}

// --- data that a function captured -----------------------------------------------------

static bool is_captured(const struct plan_work *work, uint32_t value)
{
    uint32_t leaf = work->values[value].leaf;
    return leaf != NONE && leaf >= work->task->first_captured &&
           work->task->leaves[leaf]->value;
}

// Copies `count` elements of a leaf's memory, from element `first` on, to a new leaf on the
// device. Waits for the work that writes them.
static tn_status copy_leaf(struct plan_work *work, struct device *device,
                           const struct value *from, const tn_type *type, int64_t first,
                           tn_array **out_leaf)
{
    struct storage *to = NULL;
    struct value *value = NULL;
    uint64_t element = dtype_size(type->dtype), size = type_bytes(type);
    tn_layout layout = layout_contiguous(type);
    tn_status status = storage_wait(from->storage);
    if (status == TN_OK)
        status = storage_create(device, size, QUEUE_HOST, &to);
    if (status != TN_OK)
        return status;
    if (size > 0)
        status = buffers_copy(from->storage->device, from->storage->buffer,
                              from->offset + (uint64_t)first * element, device, to->buffer,
                              0, size);
    if (status == TN_OK)
        status = value_create(to, 0, &layout, &value);
    if (status != TN_OK) {
        storage_release(to);
        return status;
    }
    stats_count(work->runtime, STATS_TRANSFERS, 1);
    *out_leaf = leaf_from_value(work->task->scope, type, value);
    return *out_leaf ? TN_OK : work->task->scope->status;
}

// Captured data travels now, not in each run: the plan gets a leaf on the device.
static tn_status transfer_captured(struct plan_work *work, uint32_t device, uint32_t from,
                                   uint32_t *out_value)
{
    tn_layout layout = work->values[from].layout;
    const tn_array *source = work->task->leaves[work->values[from].leaf];
    tn_type type = {.dtype = layout.dtype, .rank = 1};
    tn_array *leaf = NULL;
    int64_t first;
    uint32_t base;
    find_span(&layout, &first, &type.extent[0]);
    tn_layout range = layout_contiguous(&type);
    layout.offset -= first;
    tn_status status =
        copy_leaf(work, work->devices[device], source->value, &type, first, &leaf);
    if (status == TN_OK) {
        leaf->name = source->name;
        status = work_add_value(work, &range, device, &base);
    }
    if (status != TN_OK)
        return status;
    work->values[base].leaf = work->task->num_leaves;
    status = task_add_captured(work->task, leaf);
    return status == TN_OK ? add_view(work, base, &layout, out_value) : status;
}

// Transfers each value to a device at most once, however many operations read it there.
static tn_status transfer_once(struct plan_work *work, uint32_t device, uint32_t from,
                               uint32_t *out_value)
{
    struct hash key = {from, device};
    uintptr_t known = (uintptr_t)map_get(&work->transferred, key);
    if (known) {
        *out_value = (uint32_t)known - 1;
        return TN_OK;
    }
    tn_status status = is_captured(work, from)
                           ? transfer_captured(work, device, from, out_value)
                           : plan_copy_transfer(work, device, from, out_value);
    return status == TN_OK
               ? map_put(&work->transferred, key, (void *)((uintptr_t)*out_value + 1))
               : status;
}

tn_status place_bring(struct plan_work *work, uint32_t device, bool numbers, uint32_t value,
                      uint32_t *out_value)
{
    const struct plan_value *v = &work->values[value];
    *out_value = value;
    if (v->is_number)
        return numbers ? TN_OK : place_copy(work, device, value, out_value);
    return v->device == device ? TN_OK : transfer_once(work, device, value, out_value);
}

// --- copies ----------------------------------------------------------------------------

// Copies on device `copier`. Where this is not `device`, the value is transferred to the
// copier and the copy back.
static tn_status copy_there(struct plan_work *work, uint32_t device, uint32_t copier,
                            const struct choice *choice, uint32_t from, uint32_t *out_value)
{
    uint32_t there = from, copied;
    if (copier == device)
        return add_copy(work, device, choice, from, out_value);
    tn_status status = transfer_span(work, copier, from, &there);
    if (status == TN_OK)
        status = add_copy(work, copier, choice, there, &copied);
    return status == TN_OK ? add_transfer(work, device, copied, out_value) : status;
}

// Writes a number to memory. Only programs take numbers, as params; where the device's copy
// is not a program, the host uploads the elements.
static tn_status place_number(struct plan_work *work, const struct copy_node *c,
                              uint32_t device, uint32_t from, uint32_t *out_value)
{
    tn_layout layout = layout_contiguous(&c->from.type);
    struct choice choice;
    tn_status status = choose_copy(work, device, c, &layout, &choice);
    if (status != TN_OK)
        return status;
    if (choice.kind != OP_PROGRAM) {
        status = transfer_once(work, device, from, out_value);
    } else {
        watch_placed(work, &c->node, device, NONE, &choice);
        status = add_copy(work, device, &choice, from, out_value);
    }
    if (status == TN_OK) {
        work->values[*out_value].is_constant = 1;
        work->values[*out_value].number = work->values[from].number;
    }
    return status;
}

static tn_status place_memory(struct plan_work *work, const struct copy_node *c,
                              uint32_t device, uint32_t from, uint32_t *out_value)
{
    tn_layout layout = work->values[from].layout;
    struct choice choice;
    uint32_t copier;
    tn_status status = find_copier(work, device, c, &layout, &choice, &copier);
    if (status != TN_OK)
        return status;
    if (copier == NONE)
        return place_fail(work, &c->node);
    watch_placed(work, &c->node, copier, copier == device ? NONE : device, &choice);
    if (copier != device)
        status = place_fallback(work, &c->node, device, copier);
    return status == TN_OK ? copy_there(work, device, copier, &choice, from, out_value)
                           : status;
}

tn_status place_copy(struct plan_work *work, uint32_t device, uint32_t from,
                     uint32_t *out_value)
{
    struct copy_node c;
    tn_type type = layout_type(&work->values[from].layout);
    copy_node_init(&c, work, &type);
    watch_begin(work);
    tn_status status = work->values[from].is_number
                           ? place_number(work, &c, device, from, out_value)
                           : place_memory(work, &c, device, from, out_value);
    watch_end(work);
    return status;
}
