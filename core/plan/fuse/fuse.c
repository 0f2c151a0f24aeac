// SPDX-License-Identifier: MIT
// Fuse: expressions over the same extents become one program.
//
// A group is a set of operations that will run as one program, at the position of its last
// operation. Operation C joins the group of one of its inputs when it reads that group's
// values element by element, and no operation outside the group reads one of them before C:
// so moving the group down to C keeps the topological order. A value that is read outside
// the group becomes an output of the program. Numbers become params, so that operations
// that differ only in numbers share a program.
//
// Reductions along the last axes of the group's extents are operations of a group as well,
// on devices that run row programs; fuse_rows.c tells how. Groups that read an array of
// rows side by side become one; fuse_siblings.c tells when. So are gathers on devices with
// TN_DEVICE_TAKES: fuse_take.c.
#include "group.h"

#include <stdio.h>
#include <string.h>
#include "../../base/dtype.h"
#include "../../base/fail.h"
#include "../../base/shape.h"
#include "../../expr/tree.h"

#define FUNCTION_WEIGHT 8 // of other instructions: TN_DEVICE_COMPILES

// --- conditions ------------------------------------------------------------------------

uint32_t fuse_find_group(const struct fuser *f, uint32_t op)
{
    uint32_t g = f->work->ops[op].group;
    if (g == NONE || f->groups[g].merged_into == NONE)
        return g;
    while (f->groups[g].merged_into != NONE)
        g = f->groups[g].merged_into;
    f->work->ops[op].group = g; // path compression
    return g;
}

uint32_t fuse_group_of_value(const struct fuser *f, uint32_t value)
{
    const struct plan_value *v = &f->work->values[value];
    if (v->is_number || v->producer == NONE)
        return NONE;
    return fuse_find_group(f, v->producer);
}

bool fuse_same_elements(const tn_layout *a, const tn_layout *b)
{
    if (a->rank != b->rank || a->offset != b->offset)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->extent[i] != b->extent[i] ||
            (a->extent[i] > 1 && a->stride[i] != b->stride[i]))
            return false;
    return true;
}

bool fuse_needed_before(struct fuser *f, uint32_t g, uint32_t op)
{
    struct plan_work *work = f->work;
    struct group *group = &f->groups[g];
    bool early = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < group->num_results; i++) {
        struct plan_value *v = &work->values[group->results[i].value];
        while (v->first_use != NONE && fuse_find_group(f, work->uses[v->first_use].op) == g)
            v->first_use = work->uses[v->first_use].next;
        if (v->first_use != NONE && work->uses[v->first_use].op < op)
            early = true;
        if (v->first_use != NONE || v->is_output)
            group->results[kept++] = group->results[i];
    }
    group->num_results = kept;
    return early;
}

static uint32_t weight_of_op(uint32_t op)
{
    uint32_t class = op_table[op].class;
    if (class == TN_EXPR_CLASS_FUNCTION)
        return FUNCTION_WEIGHT;
    return op != TN_EXPR_CONST && class != TN_EXPR_CLASS_SHIFT;
}

static uint32_t fuse_weight_of(const tn_expr_program *program)
{
    uint32_t weight = 0;
    for (uint32_t i = 0; i < program->num_insns; i++)
        weight += weight_of_op(program->insns[i].op);
    return weight;
}

// Whether a program is short enough for the device (TN_DEVICE_COMPILES).
static bool is_short(const struct device *device, uint32_t insns, uint32_t weight)
{
    bool compiles = device->info.flags & TN_DEVICE_COMPILES;
    return insns <= TN_EXPR_MAX_INSNS &&
           (compiles ? weight : insns) <= device->fusion_limit;
}

static bool fuse_may_join(struct fuser *f, uint32_t op, uint32_t g)
{
    const struct plan_op *c = &f->work->ops[op];
    const struct group *group = &f->groups[g];
    const tn_expr_program *program = f->members[op].program;
    if (group->device != c->device ||
        !is_short(f->work->devices[c->device], group->num_insns + program->num_insns,
                  group->weight + fuse_weight_of(program)))
        return false;
    if (group->num_inputs + c->num_inputs > TN_EXPR_MAX_INPUTS)
        return false;
    if (!fuse_fits(f, op, group) || !fuse_reads_in_order(f, op, g) ||
        fuse_needed_before(f, g, op))
        return false;
    return group->num_results + c->num_outputs <= TN_EXPR_MAX_OUTPUTS;
}

bool fuse_have_room(const struct fuser *f, uint32_t op, uint32_t a, uint32_t b)
{
    static const struct plan_op none;
    static const tn_expr_program empty;
    const struct plan_op *c = op == NONE ? &none : &f->work->ops[op];
    const struct member own =
        op == NONE ? (struct member){.program = &empty} : f->members[op];
    const struct group *g = &f->groups[a], *h = &f->groups[b];
    uint32_t insns = g->num_insns + h->num_insns + own.program->num_insns;
    uint32_t reductions = g->num_reductions + h->num_reductions + own.num_reductions;
    uint32_t weight = g->weight + h->weight + fuse_weight_of(own.program);
    return is_short(f->work->devices[g->device], insns, weight) &&
           (!reductions || insns * (reductions + 1) <= TN_EXPR_MAX_INSNS) &&
           g->num_inputs + h->num_inputs + c->num_inputs <= TN_EXPR_MAX_INPUTS &&
           g->num_results + h->num_results + c->num_outputs <= TN_EXPR_MAX_OUTPUTS;
}

bool fuse_may_merge(const struct fuser *f, uint32_t op, uint32_t a, uint32_t b)
{
    return fuse_have_room(f, op, a, b) && fuse_same_rows(&f->groups[a], &f->groups[b]);
}

// --- writing programs ------------------------------------------------------------------

static tn_status fuse_emit(struct group *group, tn_expr_insn insn, bool number,
                           uint32_t *out)
{
    tn_status status = mem_grow((void **)&group->insns, &group->max_insns,
                                group->num_insns + 1, sizeof(*group->insns));
    if (status == TN_OK)
        status = mem_grow((void **)&group->is_number, &group->max_flags,
                          group->num_insns + 1, sizeof(*group->is_number));
    if (status != TN_OK)
        return status;
    group->is_number[group->num_insns] = number;
    *out = group->num_insns;
    group->insns[group->num_insns++] = insn;
    group->weight += weight_of_op(insn.op);
    return TN_OK;
}

static tn_status append_bits(uint64_t **list, uint32_t *count, uint32_t *capacity,
                             uint64_t bits)
{
    tn_status status = mem_grow((void **)list, capacity, *count + 1, sizeof(**list));
    if (status == TN_OK)
        (*list)[(*count)++] = bits;
    return status;
}

static tn_status fuse_emit_number(struct group *group, uint16_t dtype, uint64_t bits,
                                  uint32_t *out)
{
    tn_status status =
        append_bits(&group->params, &group->num_params, &group->max_params, bits);
    if (status != TN_OK)
        return status;
    group->rewritten = true;
    tn_expr_insn insn = {TN_EXPR_PARAM, dtype, group->num_params - 1, 0, 0};
    return fuse_emit(group, insn, true, out);
}

const struct group_result *fuse_find_result(const struct group *group, uint32_t value)
{
    for (int64_t i = (int64_t)group->num_results - 1; i >= 0; i--)
        if (group->results[i].value == value)
            return &group->results[i];
    return NULL;
}

bool fuse_same_operand(const struct operand *a, const struct operand *b)
{
    return a->value == b->value && fuse_same_elements(&a->layout, &b->layout);
}

static tn_status fuse_add_input(struct group *group, const struct operand *in)
{
    tn_status status = mem_grow((void **)&group->inputs, &group->max_inputs,
                                group->num_inputs + 1, sizeof(*group->inputs));
    if (status == TN_OK)
        group->inputs[group->num_inputs++] = *in;
    return status;
}

// Gives the instruction that computes operand `in`: the PARAM of a number, the instruction
// of a value that the group itself computes, or a LOAD, which equal operands share.
static tn_status emit_load(struct fuser *f, struct group *group, const struct operand *in,
                           uint16_t dtype, uint32_t *out)
{
    const struct plan_value *v = &f->work->values[in->value];
    if (v->is_number)
        return fuse_emit_number(group, dtype, v->number, out);
    const struct group_result *result = fuse_find_result(group, v->base);
    if (result) {
        *out = result->insn;
        return TN_OK;
    }
    for (uint32_t i = 0; i < group->num_insns; i++)
        if (group->insns[i].op == TN_EXPR_LOAD && group->insns[i].dtype == dtype &&
            fuse_same_operand(&group->inputs[group->insns[i].a], in)) {
            group->rewritten = true;
            *out = i;
            return TN_OK;
        }
    tn_status status = fuse_add_input(group, in);
    return status != TN_OK
               ? status
               : fuse_emit(group,
                           (tn_expr_insn){TN_EXPR_LOAD, dtype, group->num_inputs - 1, 0, 0},
                           false, out);
}

// Gives a TAKE from operand `in` at the index that instruction `index` computes. Those of
// the same elements share an input, views of one array, too.
static tn_status emit_take(const struct fuser *f, struct group *group,
                           const struct operand *in, const uint64_t params[2],
                           tn_expr_insn insn, uint32_t index, uint32_t *out)
{
    const struct plan_value *values = f->work->values;
    tn_status status = TN_OK;
    uint32_t input = group->num_inputs;
    for (uint32_t i = 0; i < group->num_insns && input == group->num_inputs; i++) {
        const tn_expr_insn *other = &group->insns[i];
        if (other->op == TN_EXPR_TAKE && group->params[other->c] == params[0] &&
            group->params[other->c + 1] == params[1] &&
            group->inputs[other->a].layout.dtype == in->layout.dtype &&
            fuse_same_elements(&group->inputs[other->a].layout, &in->layout) &&
            values[group->inputs[other->a].value].base == values[in->value].base)
            input = other->a;
    }
    if (input == group->num_inputs)
        status = fuse_add_input(group, in);
    for (uint32_t i = 0; i < 2 && status == TN_OK; i++)
        status =
            append_bits(&group->params, &group->num_params, &group->max_params, params[i]);
    if (status != TN_OK)
        return status;
    insn = (tn_expr_insn){TN_EXPR_TAKE, insn.dtype, input, index, group->num_params - 2};
    return fuse_emit(group, insn, false, out);
}

static tn_status emit_insn(struct fuser *f, struct group *group,
                           const tn_expr_program *program, const struct operand *inputs,
                           const uint64_t *params, uint32_t i, uint32_t *map)
{
    tn_expr_insn insn = program->insns[i];
    uint32_t num_operands;
    tn_status status;
    switch (insn.op) {
    case TN_EXPR_LOAD:
        return emit_load(f, group, &inputs[insn.a], insn.dtype, &map[i]);
    case TN_EXPR_TAKE:
        return emit_take(f, group, &inputs[insn.a], &params[insn.c], insn, map[insn.b],
                         &map[i]);
    case TN_EXPR_CONST:
        status = append_bits(&group->constants, &group->num_constants,
                             &group->max_constants, program->constants[insn.a]);
        insn.a = status == TN_OK ? group->num_constants - 1 : 0;
        break;
    case TN_EXPR_PARAM:
        status = append_bits(&group->params, &group->num_params, &group->max_params,
                             params[insn.a]);
        insn.a = status == TN_OK ? group->num_params - 1 : 0;
        break;
    case TN_EXPR_CAST: {
        uint32_t from = map[insn.a];
        if (group->is_number[from]) {
            const tn_expr_insn *param = &group->insns[from];
            return fuse_emit_number(
                group, insn.dtype,
                scalar_cast(param->dtype, insn.dtype, group->params[param->a]), &map[i]);
        }
        insn.a = from;
        status = TN_OK;
        break;
    }
    default:
        num_operands = tn_expr_operands(insn.op);
        insn.a = num_operands > 0 ? map[insn.a] : 0;
        insn.b = num_operands > 1 ? map[insn.b] : 0;
        insn.c = num_operands > 2 ? map[insn.c] : 0;
        status = TN_OK;
    }
    return status == TN_OK ? fuse_emit(group, insn, false, &map[i]) : status;
}

tn_status fuse_append(struct fuser *f, struct group *group, const tn_expr_program *program,
                      const struct operand *inputs, const uint64_t *params, uint32_t *map)
{
    tn_status status = TN_OK;
    // A number has no memory, also where no instruction reads it, so it is no operand.
    for (uint32_t i = 0; i < program->num_inputs; i++)
        group->rewritten |=
            inputs[i].value != NONE && f->work->values[inputs[i].value].is_number;
    for (uint32_t i = 0; i < program->num_insns && status == TN_OK; i++)
        status = emit_insn(f, group, program, inputs, params, i, map);
    return status;
}

tn_status fuse_add_result(struct group *group, uint32_t value, uint32_t insn, bool is_row)
{
    tn_status status = mem_grow((void **)&group->results, &group->max_results,
                                group->num_results + 1, sizeof(*group->results));
    if (status == TN_OK)
        group->results[group->num_results++] = (struct group_result){value, insn, is_row};
    return status;
}

static tn_status append_op(struct fuser *f, uint32_t g, uint32_t op)
{
    uint32_t map[TN_EXPR_MAX_INSNS];
    struct operand moved[TN_EXPR_MAX_INPUTS];
    struct plan_op *c = &f->work->ops[op];
    struct group *group = &f->groups[g];
    const struct member *member = &f->members[op];
    const struct operand *inputs = member->inputs;
    for (uint32_t i = 0; i < c->num_inputs && member->role == ROLE_ROWS; i++) {
        inputs = moved;
        moved[i].value = member->inputs[i].value;
        (void)fuse_layout(group, member, &member->inputs[i], &moved[i].layout);
    }
    tn_status status = fuse_append(f, group, member->program, inputs, member->params, map);
    for (uint32_t k = 0; k < c->num_outputs && status == TN_OK; k++)
        status = fuse_add_result(group, c->outputs[k], map[member->program->outputs[k]],
                                 member->role != ROLE_ELEMENTS);
    group->num_reductions += member->num_reductions;
    group->row_axes |= member->row_axes; // equal, or one of them is 0
    c->group = g;
    if (group->num_ops++ > 0)
        f->next_member[group->last_op] = op;
    f->next_member[op] = NONE;
    group->last_op = op;
    return status;
}

// Merges the lists of operations, both of which ascend.
static void fuse_merge_members(struct fuser *f, struct group *to, const struct group *from)
{
    uint32_t a = to->first_op, b = from->first_op, first = NONE, *link = &first;
    while (a != NONE || b != NONE) {
        uint32_t *next = b == NONE || (a != NONE && a < b) ? &a : &b;
        to->last_op = *link = *next;
        *next = f->next_member[*next];
        link = &f->next_member[*link];
    }
    to->first_op = first;
}

tn_status fuse_merge(struct fuser *f, uint32_t to, uint32_t from)
{
    uint32_t map[TN_EXPR_MAX_INSNS];
    struct group *source = &f->groups[from], *target = &f->groups[to];
    tn_expr_program program = {.insns = source->insns,
                               .constants = source->constants,
                               .num_insns = source->num_insns};
    uint8_t *numbers = source->is_number;
    tn_status status =
        fuse_append(f, target, &program, source->inputs, source->params, map);
    for (uint32_t i = 0; i < source->num_insns && status == TN_OK; i++)
        if (numbers[i])
            target->is_number[map[i]] = 1;
    for (uint32_t i = 0; i < source->num_results && status == TN_OK; i++)
        status = fuse_add_result(target, source->results[i].value,
                                 map[source->results[i].insn], source->results[i].is_row);
    target->num_reductions += source->num_reductions;
    target->row_axes |= source->row_axes;
    target->num_ops += source->num_ops;
    fuse_merge_members(f, target, source);
    source->merged_into = to;
    return status;
}

// --- joining ----------------------------------------------------------------------------

static tn_status new_group(struct fuser *f, uint32_t number, uint32_t *out)
{
    const struct plan_op *op = &f->work->ops[number];
    tn_status status = mem_grow((void **)&f->groups, &f->max_groups, f->num_groups + 1,
                                sizeof(*f->groups));
    if (status != TN_OK)
        return status;
    *out = f->num_groups++;
    f->groups[*out] = (struct group){.merged_into = NONE,
                                     .device = op->device,
                                     .first_op = number,
                                     .shape = *fuse_extents(f, number)};
    return TN_OK;
}

// Merges groups `home` and `g`, both read by the operation, where one has rows and the
// other computes one element for each row.
static tn_status fuse_join_rows(struct fuser *f, uint32_t op, uint32_t g, uint32_t *home,
                                enum role *role)
{
    bool is_home = f->groups[*home].num_reductions > 0;
    uint32_t rows = is_home ? *home : g, single = is_home ? g : *home;
    if (f->work->ops[op].siblings_refused || !fuse_may_join(f, op, g) ||
        (is_home ? *role : f->members[op].role) != ROLE_ROWS ||
        !fuse_are_row_values(&f->groups[rows], &f->groups[single]) ||
        !fuse_have_room(f, op, rows, single))
        return TN_OK;
    fuse_spread_row_values(&f->groups[rows], &f->groups[single]);
    *home = rows;
    *role = ROLE_ROWS;
    return fuse_merge(f, rows, single);
}

static tn_status join_op(struct fuser *f, uint32_t op)
{
    struct plan_op *c = &f->work->ops[op];
    uint32_t home = NONE;
    enum role role = f->members[op].role;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < c->num_inputs && status == TN_OK; i++) {
        uint32_t g = fuse_group_of_value(f, c->inputs[i].value);
        if (g == NONE || g == home)
            continue;
        // Two groups differ in extents: the operation goes to the first one, or to the one
        // with rows.
        if (home != NONE &&
            !fuse_same_elements(&f->groups[home].shape, &f->groups[g].shape)) {
            status = fuse_join_rows(f, op, g, &home, &role);
            continue;
        }
        if (!fuse_may_join(f, op, g))
            continue;
        if (home == NONE) {
            home = g;
            role = f->members[op].role;
        } else if (fuse_may_merge(f, op, home, g)) {
            status = fuse_merge(f, home, g);
        }
    }
    f->members[op].role = role; // its role in `home`: fuse_may_join() has changed it
    if (home == NONE && status == TN_OK)
        status = new_group(f, op, &home);
    return status == TN_OK ? append_op(f, home, op) : status;
}

// --- fused operations -------------------------------------------------------------------

// The group's last operation becomes the fused one; remove_merged() drops the others, and
// all operations of a group whose values no operation outside reads.
static tn_status finish_group(struct fuser *f, uint32_t g)
{
    struct group *group = &f->groups[g];
    struct plan_op *last = &f->work->ops[group->last_op];
    if (group->num_ops == 1 && (!group->rewritten || last->kind != OP_PROGRAM))
        return TN_OK;
    if (group->num_ops > 1)
        fuse_needed_before(f, g, NONE); // drops values that are not read outside
    if (group->num_results == 0) { // such as an output of a decomposition that nobody reads
        group->last_op = NONE;
        return TN_OK;
    }
    return fuse_write_op(f, g, last);
}

static tn_status remove_merged(struct fuser *f)
{
    bool *gone = mem_alloc(f->work->num_ops + 1);
    for (uint32_t i = 0; i < f->work->num_ops && gone; i++) {
        uint32_t g = fuse_find_group(f, i);
        gone[i] = g != NONE && f->groups[g].last_op != i;
    }
    if (gone)
        work_remove_ops(f->work, gone);
    mem_free(gone);
    return gone ? TN_OK : TN_ERR_MEMORY;
}

void fuse_free_group(struct group *group)
{
    mem_free(group->insns);
    mem_free(group->constants);
    mem_free(group->params);
    mem_free(group->inputs);
    mem_free(group->results);
    mem_free(group->is_number);
}

static void fuser_finish(struct fuser *f)
{
    for (uint32_t i = 0; i < f->num_groups; i++)
        fuse_free_group(&f->groups[i]);
    mem_free(f->next_member);
    mem_free(f->members);
    mem_free(f->groups);
}

static tn_status form_groups(struct fuser *f)
{
    struct plan_work *work = f->work;
    tn_status status = work_list_uses(work);
    f->next_member = mem_alloc((work->num_ops + 1) * sizeof(*f->next_member));
    f->members = mem_zalloc((work->num_ops + 1) * sizeof(*f->members));
    if (!f->next_member || !f->members)
        status = TN_ERR_MEMORY;
    for (uint32_t i = 0; i < work->num_ops; i++)
        work->ops[i].group = NONE; // of the round before
    for (uint32_t i = 0; i < work->num_ops && status == TN_OK; i++) {
        status = fuse_classify(f, i);
        if (status == TN_OK && f->members[i].program)
            status = join_op(f, i);
    }
    for (uint32_t g = 0; g < f->num_groups && status == TN_OK; g++)
        status = fuse_siblings(f, g);
    return status;
}

// Asks devices for groups with rows. When one declines, *out_again is set.
static tn_status ask_devices(struct fuser *f, bool *out_again)
{
    tn_status status = TN_OK;
    *out_again = false;
    for (uint32_t g = 0; g < f->num_groups && status == TN_OK; g++) {
        struct group *group = &f->groups[g];
        const tn_expr_program *program;
        char name[LABEL_SIZE];
        bool runs = true;
        if (group->merged_into != NONE || !group->num_reductions || group->num_ops == 1)
            continue;
        fuse_needed_before(f, g, NONE);
        if (group->num_results == 0)
            continue;
        status = fuse_make_program(f, g, name, &program);
        if (status == TN_OK)
            runs = fuse_ask_device(f, group, program);
        *out_again |= !runs;
    }
    return status;
}

// Each round that has to begin again leaves fewer reductions that may join groups.
tn_status plan_fuse(struct plan_work *work)
{
    bool again = true;
    tn_status status = TN_OK;
    while (again && status == TN_OK) {
        struct fuser f = {.work = work};
        status = form_groups(&f);
        if (status == TN_OK)
            status = ask_devices(&f, &again);
        for (uint32_t g = 0; g < f.num_groups && status == TN_OK && !again; g++)
            if (f.groups[g].merged_into == NONE)
                status = finish_group(&f, g);
        if (status == TN_OK && !again)
            status = remove_merged(&f);
        fuser_finish(&f);
    }
    return status == TN_OK ? fuse_indices(work) : status;
}
