// SPDX-License-Identifier: MIT
// Variables of the module that an invocation has for itself become local ones of the entry
// point, where no other function uses them: an entry point runs once.
#include "optimise.h"
#include "../../spirv/numbers.h"

#include <string.h>

struct privates {
    struct optimiser *o;
    const struct ir_function *entry;
    uint32_t *root; // by id: of a variable, or of a chain into one, the variable's id
    bool *is_local; // by id of a variable
    uint32_t bound; // of both
};

static bool private_pass_is_chain(const struct ir_inst *inst)
{
    return inst->op == OpAccessChain || inst->op == OpInBoundsAccessChain;
}

// The only entry point's function, or NULL.
static struct ir_function *only_entry(const struct optimiser *o)
{
    const struct ir_inst *entry = o->ir->entry_points.first;
    return entry && !entry->next ? opt_function(o, entry->operands[1]) : NULL;
}

static bool private_pass_find_variables(struct privates *p)
{
    struct ir *ir = p->o->ir;
    bool found = false;
    for (const struct ir_inst *inst = ir->globals.first; inst; inst = inst->next) {
        if (inst->op != OpVariable || inst->operands[0] != StorageClassPrivate ||
            (p->o->flags[inst->id] & IS_DECORATED))
            continue;
        if (!found) {
            p->bound = ir->bound;
            p->root = ir_scratch(ir, p->bound * sizeof(*p->root));
            p->is_local = ir_scratch(ir, p->bound * sizeof(*p->is_local));
        }
        found = true;
        p->root[inst->id] = inst->id;
        p->is_local[inst->id] = true;
    }
    return found;
}

// Whether operand `i` is used as any pointer can be.
static bool private_pass_is_good_use(const struct ir_inst *inst, uint32_t i)
{
    return i == 0 &&
           (inst->op == OpLoad || inst->op == OpStore || private_pass_is_chain(inst));
}

static void private_pass_look_at(struct privates *p, const struct ir_function *function)
{
    for (const struct ir_block *b = function->first; b; b = b->next)
        for (const struct ir_inst *inst = b->insts.first; inst; inst = inst->next) {
            struct spirv_ids ids = ir_ids(p->o->ir, inst);
            for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;) {
                uint32_t root = p->root[*id];
                if (!root)
                    continue;
                if (function != p->entry ||
                    !private_pass_is_good_use(inst, (uint32_t)(id - inst->operands)))
                    p->is_local[root] = false;
                if (private_pass_is_chain(inst))
                    p->root[inst->id] = root;
            }
        }
}

static uint32_t local_pointer(struct ir *ir, uint32_t pointer_type)
{
    return ir_pointer(ir, StorageClassFunction,
                      ir_definition(ir, pointer_type)->operands[1]);
}

static void private_pass_move_variable(struct privates *p, struct ir_inst *variable)
{
    struct ir *ir = p->o->ir;
    struct ir_block *first = p->entry->first;
    ir_remove_from(&ir->globals, variable);
    variable->operands[0] = StorageClassFunction;
    variable->type = local_pointer(ir, variable->type);
    ir_insert(first, first->insts.first, variable);
}

void opt_private(struct optimiser *o)
{
    struct privates p = {.o = o, .entry = only_entry(o)};
    struct ir *ir = o->ir;
    if (!p.entry || !private_pass_find_variables(&p))
        return;
    for (const struct ir_function *f = ir->functions; f; f = f->next)
        private_pass_look_at(&p, f);
    for (struct ir_inst *inst = ir->globals.first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->id < p.bound && p.is_local[inst->id])
            private_pass_move_variable(&p, inst);
    }
    for (struct ir_block *b = p.entry->first; b; b = b->next)
        for (struct ir_inst *inst = b->insts.first; inst; inst = inst->next)
            if (private_pass_is_chain(inst) && inst->id < p.bound && p.root[inst->id] &&
                p.is_local[p.root[inst->id]])
                inst->type = local_pointer(ir, inst->type);
}
