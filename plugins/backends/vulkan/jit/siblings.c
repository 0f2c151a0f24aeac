// SPDX-License-Identifier: MIT
// Finds sibling reductions, and plans their launches.
#include "siblings.h"

#include <stdio.h>
#include <stdlib.h>
#include "jit.h"
#include "../dispatch/plan_fused.h"

// --- steps -----------------------------------------------------------------------------

static bool is_own_reduction(const struct vk_plan *plan, const tn_step *step)
{
    return plan_own_kind(plan->device, step) == KERNEL_REDUCTION;
}

// The program before the reduction, or NULL.
static const tn_fused *program_before(const tn_step *step)
{
    for (uint32_t i = 0; i < step->num_fused; i++)
        if (tn_step_fused(step, i)->operand == 0)
            return tn_step_fused(step, i);
    return NULL;
}

// Whether the program is a function of its inputs' elements alone.
static bool jit_siblings_is_plain(const tn_expr_program *program)
{
    for (uint32_t i = 0; i < program->num_insns; i++)
        if (program->insns[i].op == TN_EXPR_INDEX)
            return false;
    return !(program->flags & (TN_EXPR_TAKES | TN_EXPR_ROWS)) && program->num_inputs > 0;
}

// Strides of the elements of `from` by the axes of `to`, which has as many. False: an axis
// of `to` is none of `from`, and no part of one.
static bool find_strides(const tn_layout *from, const tn_layout *to,
                         int64_t stride[TN_MAX_RANK])
{
    int32_t axis = from->rank - 1;
    int64_t inner = 1; // elements of `axis` that the axes so far have
    for (int32_t left = to->rank; left > 0; left--) {
        int64_t extent = to->extent[left - 1];
        stride[left - 1] = 0;
        if (extent == 1)
            continue;
        while (axis >= 0 && from->extent[axis] == inner) {
            axis--;
            inner = 1;
        }
        if (axis < 0 || from->extent[axis] % (inner * extent) != 0)
            return false;
        stride[left - 1] = from->stride[axis] * inner;
        inner *= extent;
    }
    return true;
}

// The dtype in which a reduction accumulates: that of its result, but for extrema.
static tn_dtype computed_in(const struct sibling *own)
{
    bool is_extremum = own->op[0] == 'a' || (own->op[0] == 'm' && own->length == 3);
    return is_extremum ? own->in : own->out;
}

static uint32_t accumulator_bytes(const struct sibling *own)
{
    bool has_two = own->op[0] == 'a' || own->op[0] == 'l';
    uint32_t bytes = dtype_bytes(own->computed) == 8    ? 8
                     : dtype_bytes(own->computed) == 16 ? 16
                                                        : 4;
    return has_two ? 2 * bytes : bytes;
}

// --- collecting ------------------------------------------------------------------------

// A launch before its axes are merged. Strides are by the axes of x.
struct finding {
    struct siblings *s;
    const tn_layout *x; // of the first step
    uint32_t reduced;   // its axes
    int64_t stride[SIBLINGS_OPERANDS][TN_MAX_RANK];
};

static bool same_strides(const struct finding *f, uint32_t operand,
                         const int64_t stride[TN_MAX_RANK])
{
    return memcmp(f->stride[operand], stride, (size_t)f->x->rank * sizeof(*stride)) == 0;
}

// The number of an array among the operands, which may become one more. False: there are
// too many.
static bool jit_siblings_add_operand(struct finding *f, const tn_value *value, uint8_t *out,
                                     bool *out_is_shared)
{
    struct siblings *s = f->s;
    int64_t stride[TN_MAX_RANK] = {0};
    if (!find_strides(&value->layout, f->x, stride))
        return false;
    for (uint32_t i = 0; i < s->num_operands; i++) {
        const tn_value *other = s->operands[i].value;
        if (other->slot == value->slot && other->offset == value->offset &&
            other->layout.dtype == value->layout.dtype &&
            other->layout.offset == value->layout.offset && same_strides(f, i, stride)) {
            *out = (uint8_t)i;
            *out_is_shared = true;
            return true;
        }
    }
    if (s->num_operands == SIBLINGS_OPERANDS)
        return false;
    memcpy(f->stride[s->num_operands], stride, sizeof(stride));
    s->operands[s->num_operands].value = value;
    *out = (uint8_t)s->num_operands++;
    return true;
}

static bool jit_siblings_same_extents(const tn_layout *a, const tn_layout *b)
{
    return a->rank == b->rank &&
           memcmp(a->extent, b->extent, (size_t)a->rank * sizeof(a->extent[0])) == 0;
}

static bool is_spread_alike(const struct reduction *a, const struct reduction *b)
{
    return a->lanes == b->lanes && a->splits == b->splits;
}

// Adds a step. False: it is no sibling of the earlier steps.
static bool jit_siblings_add_step(struct finding *f, const tn_step *step, bool is_software)
{
    struct siblings *s = f->s;
    struct sibling *own = &s->all[s->count];
    const tn_value *in = tn_step_input(step, 0), *out = tn_step_output(step, 0);
    const struct reduction shape =
        reduction_describe(&in->layout, reduction_axes(step), is_software);
    bool is_shared = false, done = true;
    if (s->count == 0)
        s->shape = shape;
    *own = (struct sibling){
        .in = in->layout.dtype, .out = out->layout.dtype, .before = program_before(step)};
    own->op = reduction_name(step, &own->length);
    own->computed = computed_in(own);
    if (!jit_siblings_same_extents(&in->layout, f->x) ||
        reduction_axes(step) != f->reduced || !is_spread_alike(&shape, &s->shape) ||
        shape.num_outputs == 0 || shape.num_reduced == 0 ||
        (shape.splits > 1 && step->scratch_size < reduction_splits_bytes(&shape)) ||
        (own->before && !jit_siblings_is_plain(own->before->program)))
        return false;
    if (!own->before)
        done = jit_siblings_add_operand(f, in, &own->operands[0], &is_shared);
    for (uint32_t i = 0; own->before && i < own->before->num_inputs && done; i++)
        done = jit_siblings_add_operand(f, tn_fused_input(step, own->before, i),
                                        &own->operands[i], &is_shared);
    return done && (is_shared || s->count == 0) && ++s->count > 0;
}

// Whether axis `axis` of x continues the last axis of the launch, in all operands.
static bool jit_siblings_continues(const struct finding *f, uint32_t last, int32_t axis)
{
    for (uint32_t i = 0; i < f->s->num_operands; i++)
        if (f->s->operands[i].stride[last] !=
            (uint32_t)(f->stride[i][axis] * f->x->extent[axis]))
            return false;
    return true;
}

// Appends the axes of x in `set`, adjacent ones merged, behind the first ones.
static void jit_siblings_merge_axes(struct finding *f, uint32_t set)
{
    struct siblings *s = f->s;
    uint32_t first = s->num_axes;
    for (int32_t axis = 0; axis < f->x->rank; axis++) {
        uint32_t extent = (uint32_t)f->x->extent[axis];
        if (!(set >> axis & 1) || extent == 1)
            continue;
        if (s->num_axes > first && jit_siblings_continues(f, s->num_axes - 1, axis))
            s->extent[s->num_axes - 1] *= extent;
        else
            s->extent[s->num_axes++] = extent;
        for (uint32_t i = 0; i < s->num_operands; i++)
            s->operands[i].stride[s->num_axes - 1] = (uint32_t)f->stride[i][axis];
    }
}

// Finds the operands that are loaded once for each output. One at least is not, since a
// struct has members.
static void find_kept(struct siblings *s)
{
    uint32_t num_kept = 0;
    for (uint32_t i = 0; i < s->num_operands; i++) {
        bool is_kept = true;
        for (uint32_t axis = s->num_kept; axis < s->num_axes; axis++)
            is_kept = is_kept && s->operands[i].stride[axis] == 0;
        s->operands[i].is_kept = is_kept && num_kept + 1 < s->num_operands;
        num_kept += s->operands[i].is_kept;
    }
}

// Bindings of the launch that has most.
static uint32_t jit_siblings_count_bindings(const struct siblings *s,
                                            const tn_step *const *steps)
{
    uint32_t most = s->num_operands > s->count ? s->num_operands : s->count;
    uint32_t bindings = most + s->count + 1;
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t k = 0; k < steps[i]->num_fused; k++) {
            const tn_fused *fused = tn_step_fused(steps[i], k);
            if (fused->operand != 0)
                bindings += fused->num_inputs + fused->num_outputs;
        }
    return bindings;
}

static uint32_t jit_siblings_shared_bytes(const struct siblings *s)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < s->count; i++)
        bytes += (accumulator_bytes(&s->all[i]) + 7) / 8 * 8;
    return bytes * REDUCE_GROUP;
}

// Describes the launch of the steps. False: they do not fit one.
static bool jit_siblings_describe(const struct vk_plan *plan, const tn_step *const *steps,
                                  uint32_t count, struct siblings *out)
{
    const tn_vulkan_limits *limits = &plan->device->facts.limits;
    bool is_software = limits->features & TN_VULKAN_IS_SOFTWARE;
    struct finding f = {.s = out,
                        .x = &tn_step_input(steps[0], 0)->layout,
                        .reduced = reduction_axes(steps[0])};
    out->count = out->num_operands = out->num_axes = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!jit_siblings_add_step(&f, steps[i], is_software))
            return false;
    jit_siblings_merge_axes(&f, ~f.reduced);
    out->num_kept = out->num_axes;
    jit_siblings_merge_axes(&f, f.reduced);
    find_kept(out);
    uint32_t most =
        limits->max_operands < VK_MAX_OPERANDS ? limits->max_operands : VK_MAX_OPERANDS;
    return jit_siblings_count_bindings(out, steps) <= most &&
           jit_siblings_shared_bytes(out) <= limits->max_shared;
}

static bool siblings_fit(const struct vk_plan *plan, const tn_step *const *steps,
                         uint32_t count)
{
    struct siblings s;
    return is_own_reduction(plan, steps[count - 1]) &&
           jit_siblings_describe(plan, steps, count, &s);
}

// --- launches --------------------------------------------------------------------------

#define NAME_SIZE 96

struct jit_siblings_launch {
    const struct siblings *s;
    enum siblings_role role;
    bool args_in_buffer;
    char name[NAME_SIZE];
    struct fused_binding fused[SIBLINGS_MAX];
    uint32_t num_fused;
    struct vk_launch launch;
};

static tn_status get_code(tn_device *device, void *context, struct vk_code *out)
{
    const struct jit_siblings_launch *l = context;
    struct text text = {0};
    char reason[VK_REASON] = "";
    tn_status status = siblings_write_glsl(&text, l->s, l->role, l->args_in_buffer);
    if (status != TN_OK)
        device->host->fail(device->host, status, "out of memory");
    else
        status = jit_compile_text(device, l->name, &text, 0, out);
    text_finish(&text);
    if (status == TN_OK && l->num_fused > 0)
        status = plan_fused_link(device, l->fused, l->num_fused, out, reason);
    if (status != TN_OK && reason[0])
        return device->host->fail(device->host, status, "%s: %s", l->name, reason);
    return status;
}

// The key of the code: of all that siblings_write_glsl and the programs behind depend on.
static struct vk_hash jit_siblings_key_of(const struct jit_siblings_launch *l)
{
    const struct siblings *s = l->s;
    struct vk_hash h = {8, (uint64_t)l->role << 1 | l->args_in_buffer};
    h = vk_hash_u64(h, (uint64_t)s->num_operands << 32 | s->num_kept << 16 | s->num_axes);
    for (uint32_t i = 0; i < s->num_operands; i++)
        h = vk_hash_u64(h, (uint64_t)s->operands[i].value->layout.dtype << 1 |
                               s->operands[i].is_kept);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct sibling *own = &s->all[i];
        h = vk_hash_bytes(h, own->op, own->length);
        h = vk_hash_u64(h, (uint64_t)own->in << 32 | (uint64_t)own->out);
        h = vk_hash_bytes(h, own->operands, sizeof(own->operands));
        if (own->before) {
            const struct program_class class = {.num_inputs = own->before->num_inputs,
                                                .num_outputs = 1};
            const struct vk_hash program = program_class_hash(own->before->program, &class);
            h = vk_hash_u64(vk_hash_u64(h, program.lo), program.hi);
        }
    }
    return plan_fused_key(h, l->fused, l->num_fused);
}

// Writes the arguments.
static void jit_siblings_list_args(const struct jit_siblings_launch *l,
                                   const tn_step *const *steps, struct program_args *args)
{
    const struct siblings *s = l->s;
    bool is_second = l->role == SIBLINGS_SECOND;
    args->num_words = 0;
    args->values = 0;
    program_add_arg(args, s->shape.num_outputs);
    program_add_arg(args, is_second ? s->shape.splits : s->shape.num_reduced);
    program_add_arg(args, is_second ? 1 : s->shape.splits);
    program_add_arg(args, s->shape.num_reduced);
    for (uint32_t axis = 0; axis < s->num_axes; axis++)
        program_add_arg(args, s->extent[axis]);
    for (uint32_t i = 0; i < s->num_operands; i++) {
        program_add_arg(args, (uint64_t)s->operands[i].value->layout.offset);
        for (uint32_t axis = 0; axis < s->num_axes; axis++)
            program_add_arg(args, s->operands[i].stride[axis]);
    }
    for (uint32_t i = 0; i < s->count; i++)
        program_add_arg(args, (uint64_t)tn_step_output(steps[i], 0)->layout.offset);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->all[i].before) {
            const tn_step program = {.program = s->all[i].before->program,
                                     .params = s->all[i].before->params};
            program_add_params(&program, args);
        }
}

// Binds the result of reduction `i`: its memory, or the arguments of the program behind it.
static tn_status bind_result(struct jit_siblings_launch *l, struct vk_plan *plan,
                             const tn_step *step, struct fused_part *parts)
{
    const tn_value *out = tn_step_output(step, 0);
    struct fused_part *part = plan_fused_find(parts, step->num_fused, step->num_inputs);
    struct vk_operand operand;
    tn_status status = TN_OK;
    if (part) {
        l->fused[l->num_fused++] = (struct fused_binding){
            .part = part, .binding = l->launch.num_operands, .dtype = out->layout.dtype};
        status = plan_fused_args(plan, part, &operand);
    } else {
        operand = plan_operand(out, VK_WRITES);
    }
    if (status == TN_OK)
        launch_bind(&l->launch, operand);
    return status;
}

static tn_status jit_siblings_bind(struct jit_siblings_launch *l, struct vk_plan *plan,
                                   const tn_step *const *steps,
                                   struct fused_part *const *parts)
{
    const struct siblings *s = l->s;
    tn_status status = TN_OK;
    for (uint32_t i = 0; l->role != SIBLINGS_SECOND && i < s->num_operands; i++)
        launch_bind(&l->launch, plan_operand(s->operands[i].value, VK_READS));
    for (uint32_t i = 0; l->role != SIBLINGS_WHOLE && i < s->count; i++) {
        struct vk_operand kept =
            plan_scratch(steps[i], 0, reduction_splits_bytes(&s->shape));
        kept.access = l->role == SIBLINGS_FIRST ? VK_WRITES : VK_READS;
        launch_bind(&l->launch, kept);
    }
    for (uint32_t i = 0; l->role != SIBLINGS_FIRST && i < s->count && status == TN_OK; i++)
        status = bind_result(l, plan, steps[i], parts[i]);
    return status;
}

// Passes the arguments: pushed, or in the constants.
static tn_status pass_args(struct jit_siblings_launch *l, struct vk_plan *plan,
                           const struct program_args *args)
{
    uint32_t at;
    l->args_in_buffer = args->num_words > VK_MAX_PUSH;
    for (uint32_t i = 0; !l->args_in_buffer && i < args->num_words; i++)
        launch_push(&l->launch, args->words[i]);
    if (!l->args_in_buffer)
        return TN_OK;
    tn_status status =
        plan_constants_at(plan, args->words, args->num_words, TN_VULKAN_ALIGNMENT / 4, &at);
    if (status == TN_OK)
        launch_bind(&l->launch,
                    (struct vk_operand){VK_SLOT_CONSTANTS, VK_READS, (uint64_t)at * 4,
                                        (uint64_t)args->num_words * 4});
    return status;
}

// "reduce mean+max", shortened.
static void jit_siblings_write_name(struct jit_siblings_launch *l)
{
    size_t size = (size_t)snprintf(l->name, NAME_SIZE, "reduce ");
    for (uint32_t i = 0; i < l->s->count && size < NAME_SIZE - 16; i++)
        size += (size_t)snprintf(l->name + size, NAME_SIZE - size, "%s%.*s", i ? "+" : "",
                                 (int)l->s->all[i].length, l->s->all[i].op);
}

static tn_status jit_siblings_add_launch(struct vk_plan *plan, const struct siblings *s,
                                         enum siblings_role role,
                                         const tn_step *const *steps,
                                         struct fused_part *const *parts)
{
    struct jit_siblings_launch l = {.s = s, .role = role};
    struct program_args args;
    bool is_second = role == SIBLINGS_SECOND;
    uint32_t lanes = is_second ? reduction_second_lanes(&s->shape) : s->shape.lanes;
    uint64_t units = s->shape.num_outputs * (is_second ? 1 : s->shape.splits);
    jit_siblings_write_name(&l);
    jit_siblings_list_args(&l, steps, &args);
    tn_status status = jit_siblings_bind(&l, plan, steps, parts);
    if (status == TN_OK)
        status = pass_args(&l, plan, &args);
    if (status != TN_OK)
        return status;
    if (!plan_fused_operands(l.fused, l.num_fused, l.launch.operands,
                             &l.launch.num_operands, VK_MAX_OPERANDS))
        return plan->device->host->fail(plan->device->host, TN_ERR_INTERNAL,
                                        "%s: too many operands", l.name);
    launch_spec(&l.launch, lanes);
    l.launch.groups = ceil_div(units, REDUCE_GROUP / lanes);
    l.launch.pipeline =
        (struct vk_pipeline_desc){.name = l.name,
                                  .key = jit_siblings_key_of(&l),
                                  .values = l.args_in_buffer ? 0 : args.values,
                                  .code = get_code,
                                  .context = &l};
    return plan_launch(plan, &l.launch);
}

static tn_status siblings_plan(struct vk_plan *plan, const tn_step *const *steps,
                               uint32_t count)
{
    struct fused_part *parts[SIBLINGS_MAX] = {NULL};
    struct siblings s;
    tn_status status = TN_OK;
    if (!jit_siblings_describe(plan, steps, count, &s))
        return plan->device->host->fail(plan->device->host, TN_ERR_INTERNAL,
                                        "%u reductions fit no launch", count);
    for (uint32_t i = 0; i < count && status == TN_OK; i++)
        status = plan_fused_parts(plan, steps[i], &parts[i]);
    bool in_parts = s.shape.splits > 1;
    if (status == TN_OK)
        status = jit_siblings_add_launch(
            plan, &s, in_parts ? SIBLINGS_FIRST : SIBLINGS_WHOLE, steps, parts);
    if (status == TN_OK && in_parts)
        status = jit_siblings_add_launch(plan, &s, SIBLINGS_SECOND, steps, parts);
    for (uint32_t i = 0; i < count; i++)
        free(parts[i]);
    return status;
}

const struct vk_group_kind siblings_kind = {SIBLINGS_MAX, siblings_fit, siblings_plan};
