// SPDX-License-Identifier: MIT
// Dead code elimination: removes instructions without effects whose results are not used,
// variables that are only written, functions that are not called, types, constants, names.
#include "optimise.h"
#include "../../spirv/numbers.h"

#include <string.h>

struct marking {
    struct optimiser *o;
    uint8_t *is_live; // by id
    uint32_t *queue;  // ids that are live, and are to be looked at
    uint32_t count;
    struct link { // the stores to local variables
        struct ir_inst *store;
        uint32_t next; // of the same variable, from 1
    } * links;
    uint32_t num_links, max_links;
    uint32_t *first_link; // by id of a variable, from 1
};

static void dead_pass_mark(struct marking *m, uint32_t id)
{
    if (m->is_live[id])
        return;
    m->is_live[id] = 1;
    m->queue[m->count++] = id;
}

static void mark_operands(struct marking *m, const struct ir_inst *inst)
{
    if (inst->type)
        dead_pass_mark(m, inst->type);
    struct spirv_ids ids = ir_ids_quick(m->o->ir, inst);
    for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;)
        dead_pass_mark(m, *id);
}

// The local variable that a pointer leads into, or NULL.
static struct ir_inst *local_of(const struct ir *ir, uint32_t pointer)
{
    struct ir_inst *inst = ir_definition(ir, pointer);
    while (inst && (inst->op == OpAccessChain || inst->op == OpInBoundsAccessChain ||
                    inst->op == OpCopyObject))
        inst = ir_definition(ir, inst->operands[0]);
    return inst && inst->op == OpVariable && inst->operands[0] == StorageClassFunction
               ? inst
               : NULL;
}

// Marks what a live function does, but for writes to local variables: they are live when
// the variable is read.
static void mark_function(struct marking *m, const struct ir_function *function)
{
    struct ir *ir = m->o->ir;
    mark_operands(m, function->head);
    for (const struct ir_inst *p = function->parameters.first; p; p = p->next)
        mark_operands(m, p);
    for (const struct ir_block *b = function->first; b; b = b->next)
        for (struct ir_inst *inst = b->insts.first; inst; inst = inst->next) {
            struct ir_inst *local =
                inst->op == OpStore ? local_of(ir, inst->operands[0]) : NULL;
            if (local) {
                m->links = compiler_grow(ir->compiler, m->links, m->num_links,
                                         &m->max_links, sizeof(*m->links));
                m->links[m->num_links++] = (struct link){inst, m->first_link[local->id]};
                m->first_link[local->id] = m->num_links;
                if (m->is_live[local->id])
                    mark_operands(m, inst);
            } else if (ir_has_effects(ir, inst)) {
                if (inst->id)
                    dead_pass_mark(m, inst->id);
                mark_operands(m, inst);
            }
        }
}

static void dead_pass_look_at(struct marking *m, uint32_t id)
{
    struct optimiser *o = m->o;
    const struct ir_inst *inst = ir_definition(o->ir, id);
    if (opt_function(o, id))
        mark_function(m, opt_function(o, id));
    else if (inst)
        mark_operands(m, inst);
    for (uint32_t link = m->first_link[id]; link; link = m->links[link - 1].next)
        mark_operands(m, m->links[link - 1].store);
    for (struct decoration *d = opt_decoration(o, id); d; d = opt_next_decoration(d, id))
        if (d->inst->op == OpDecorateId)
            mark_operands(m, d->inst);
}

// Marks the roots: entry points, their modes, the size of the workgroup where a constant
// says it, and specialisation constants, to which a launch gives values whether they are
// used or not.
static void mark_roots(struct marking *m)
{
    const struct ir *ir = m->o->ir;
    for (const struct ir_inst *inst = ir->entry_points.first; inst; inst = inst->next)
        dead_pass_mark(m, inst->operands[1]);
    for (const struct ir_inst *inst = ir->modes.first; inst; inst = inst->next)
        mark_operands(m, inst);
    for (const struct ir_inst *inst = ir->decorations.first; inst; inst = inst->next)
        if (inst->op == OpDecorate && inst->num_operands == 3 &&
            (inst->operands[1] == DecorationSpecId ||
             (inst->operands[1] == DecorationBuiltIn &&
              inst->operands[2] == BuiltInWorkgroupSize)))
            dead_pass_mark(m, inst->operands[0]);
    if (m->o->keeps_functions || !ir->entry_points.first)
        for (const struct ir_function *f = ir->functions; f; f = f->next)
            dead_pass_mark(m, f->head->id);
}

// --- removal -----------------------------------------------------------------------------

static void sweep_section(struct marking *m, struct ir_insts *section, bool by_operand)
{
    for (struct ir_inst *inst = section->first, *next; inst; inst = next) {
        next = inst->next;
        bool is_live =
            by_operand || !inst->id ? m->is_live[inst->operands[0]] : m->is_live[inst->id];
        if (!is_live)
            ir_remove_from(section, inst);
    }
}

static bool dead_pass_is_needed(const struct marking *m, const struct ir_inst *inst)
{
    if (inst->op == OpStore) {
        const struct ir_inst *local = local_of(m->o->ir, inst->operands[0]);
        return !local || m->is_live[local->id];
    }
    return !inst->id || m->is_live[inst->id] || ir_has_effects(m->o->ir, inst);
}

static void sweep_function(struct marking *m, const struct ir_function *function)
{
    // From the last on: whether a store is needed is seen by pointers before it.
    for (struct ir_block *b = function->last; b; b = b->previous)
        for (struct ir_inst *inst = b->insts.last, *previous; inst; inst = previous) {
            previous = inst->previous;
            if (!dead_pass_is_needed(m, inst))
                ir_remove(inst);
        }
}

static void sweep_functions(struct marking *m)
{
    struct ir *ir = m->o->ir;
    struct ir_function **link = &ir->functions;
    ir->last_function = NULL;
    while (*link) {
        struct ir_function *function = *link;
        if (!m->is_live[function->head->id]) {
            *link = function->next;
            continue;
        }
        sweep_function(m, function);
        ir->last_function = function;
        link = &function->next;
    }
}

void opt_dead(struct optimiser *o, bool with_globals)
{
    struct ir *ir = o->ir;
    optimiser_grow(o);
    struct marking m = {.o = o};
    m.is_live = ir_scratch(ir, ir->bound);
    m.first_link = ir_scratch(ir, ir->bound * sizeof(*m.first_link));
    m.queue = ir_scratch_raw(ir, ir->bound * sizeof(*m.queue));
    mark_roots(&m);
    while (m.count > 0)
        dead_pass_look_at(&m, m.queue[--m.count]);
    sweep_functions(&m);
    if (!with_globals)
        return;
    sweep_section(&m, &ir->globals, false);
    sweep_section(&m, &ir->imports, false);
    sweep_section(&m, &ir->names, true);
    sweep_section(&m, &ir->decorations, true);
}

// --- functions that are not called -----------------------------------------------------

// Instructions that call a function: OpFunctionCall, and those of matrices that take one.
static bool dead_pass_calls(const struct ir_inst *inst)
{
    return inst->op == OpFunctionCall || inst->op == OpCooperativeMatrixPerElementOpNV ||
           inst->op == OpCooperativeMatrixReduceNV ||
           inst->op == OpCooperativeMatrixLoadTensorNV;
}

static void visit_calls(const struct optimiser *o, const struct ir_function *function,
                        bool *is_called, uint32_t *queue, uint32_t *count)
{
    for (const struct ir_block *b = function->first; b; b = b->next)
        for (const struct ir_inst *inst = b->insts.first; inst; inst = inst->next) {
            if (!dead_pass_calls(inst))
                continue;
            struct spirv_ids ids = ir_ids(o->ir, inst);
            for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;) {
                const struct ir_inst *callee = ir_definition(o->ir, *id);
                uint32_t mark = callee && callee->op == OpFunction ? callee->mark : 0;
                if (mark && !is_called[mark]) {
                    is_called[mark] = true;
                    queue[(*count)++] = mark;
                }
            }
        }
}

void opt_uncalled(struct optimiser *o)
{
    struct ir *ir = o->ir;
    if (o->keeps_functions || !ir->entry_points.first)
        return;
    bool *is_called = ir_scratch(ir, o->num_functions + 1);
    uint32_t *queue = ir_scratch(ir, (o->num_functions + 1) * sizeof(*queue)), count = 0;
    for (const struct ir_inst *e = ir->entry_points.first; e; e = e->next) {
        uint32_t mark = ir_definition(ir, e->operands[1])->mark;
        if (!is_called[mark])
            queue[count++] = mark;
        is_called[mark] = true;
    }
    while (count > 0) {
        uint32_t mark = queue[--count];
        visit_calls(o, o->functions[mark], is_called, queue, &count);
    }
    struct ir_function **link = &ir->functions;
    ir->last_function = NULL;
    for (struct ir_function *f = ir->functions; f; f = f->next) {
        if (!is_called[f->head->mark])
            continue;
        *link = ir->last_function = f;
        link = &f->next;
    }
    *link = NULL;
}

// --- ids ---------------------------------------------------------------------------------

static uint32_t dead_pass_number_of(uint32_t *numbers, uint32_t *count, uint32_t id)
{
    if (id && !numbers[id])
        numbers[id] = ++*count;
    return numbers[id];
}

static void number_inst(const struct ir *ir, struct ir_inst *inst, uint32_t *numbers,
                        uint32_t *count)
{
    struct spirv_ids ids = ir_ids(ir, inst);
    if (inst->op == OpSwitch)
        ids.width = inst->mark;
    for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;)
        *id = dead_pass_number_of(numbers, count, *id);
    inst->type = dead_pass_number_of(numbers, count, inst->type);
    inst->id = dead_pass_number_of(numbers, count, inst->id);
}

static void number_list(const struct ir *ir, const struct ir_insts *insts,
                        uint32_t *numbers, uint32_t *count)
{
    for (struct ir_inst *inst = insts->first; inst; inst = inst->next)
        number_inst(ir, inst, numbers, count);
}

static void number_functions(const struct ir *ir, uint32_t *numbers, uint32_t *count)
{
    for (struct ir_function *f = ir->functions; f; f = f->next) {
        number_inst(ir, f->head, numbers, count);
        number_list(ir, &f->parameters, numbers, count);
        for (struct ir_block *b = f->first; b; b = b->next) {
            number_list(ir, &b->insts, numbers, count);
            b->id = dead_pass_number_of(numbers, count, b->id);
        }
    }
}

// Literals of a switch are as wide as its selector's type, which cannot be looked up while
// ids change: marks have their widths.
static void mark_switches(const struct ir *ir)
{
    for (const struct ir_function *f = ir->functions; f; f = f->next)
        for (const struct ir_block *b = f->first; b; b = b->next)
            if (b->insts.last->op == OpSwitch)
                b->insts.last->mark = (uint16_t)ir_ids(ir, b->insts.last).width;
}

void opt_compact(struct optimiser *o)
{
    struct ir *ir = o->ir;
    uint32_t count = 0;
    uint32_t *numbers = ir_scratch(ir, ir->bound * sizeof(*numbers));
    mark_switches(ir);
    number_list(ir, &ir->imports, numbers, &count);
    number_list(ir, &ir->entry_points, numbers, &count);
    number_list(ir, &ir->modes, numbers, &count);
    number_list(ir, &ir->names, numbers, &count);
    number_list(ir, &ir->decorations, numbers, &count);
    number_list(ir, &ir->globals, numbers, &count);
    number_functions(ir, numbers, &count);
    struct ir_inst **definitions =
        compiler_allocate(ir->compiler, ir->bound * sizeof(struct ir_inst *));
    struct ir_block **labels =
        compiler_allocate(ir->compiler, ir->bound * sizeof(struct ir_block *));
    for (uint32_t id = 1; id < ir->bound; id++) {
        if (!numbers[id])
            continue;
        definitions[numbers[id]] = ir->definitions[id];
        labels[numbers[id]] = ir->labels[id];
    }
    ir->definitions = definitions;
    ir->labels = labels;
    ir->capacity = ir->bound;
    ir->bound = count + 1;
}
