// SPDX-License-Identifier: MIT
// Local arrays, structs and matrices that are indexed by constants become variables for
// their members, so that these can become values.
#include "optimise.h"
#include "../../spirv/numbers.h"

#include <string.h>

enum { MOST_MEMBERS = 64, MOST_PIECES = 4096, MOST_ROUNDS = 8 };

// A variable that may be split.
struct split_pass_candidate {
    struct ir_inst *variable; // NULL: it may not
    uint32_t num_members;
    uint32_t *members; // ids of the new variables
};

struct splitting {
    struct optimiser *o;
    struct ir_function *function;
    struct split_pass_candidate *candidates;
    uint32_t num;
    uint32_t *number; // by id below `bound`: of a candidate, + 1
    uint32_t bound;
    uint32_t num_pieces;
};

static uint32_t pointee_of(const struct ir *ir, const struct ir_inst *variable)
{
    return ir_definition(ir, variable->type)->operands[1];
}

static bool is_splittable(const struct splitting *s, const struct ir_inst *inst)
{
    const struct ir *ir = s->o->ir;
    uint32_t type = pointee_of(ir, inst), op = ir_definition(ir, type)->op;
    uint32_t count = ir_num_members(ir, type);
    if ((op != OpTypeArray && op != OpTypeStruct && op != OpTypeMatrix) || count == 0 ||
        count > MOST_MEMBERS || (s->o->flags[inst->id] & IS_DECORATED))
        return false;
    if (inst->num_operands < 2)
        return true;
    uint32_t initial = ir_definition(ir, inst->operands[1])->op;
    return initial == OpConstantComposite || initial == OpConstantNull;
}

static void find_candidates(struct splitting *s)
{
    struct ir *ir = s->o->ir;
    uint32_t count = 0;
    s->num = 0;
    for (struct ir_inst *i = s->function->first->insts.first; i; i = i->next)
        count += i->op == OpVariable && is_splittable(s, i);
    if (!count)
        return;
    s->candidates = ir_scratch(ir, count * sizeof(*s->candidates));
    s->bound = ir->bound; // members that are made in this round are not candidates
    s->number = ir_scratch(ir, ir->bound * sizeof(*s->number));
    for (struct ir_inst *i = s->function->first->insts.first; i; i = i->next)
        if (i->op == OpVariable && is_splittable(s, i)) {
            s->candidates[s->num++] = (struct split_pass_candidate){
                i, ir_num_members(ir, pointee_of(ir, i)), NULL};
            s->number[i->id] = s->num;
        }
}

static struct split_pass_candidate *candidate_of(const struct splitting *s, uint32_t id)
{
    return id < s->bound && s->number[id] ? &s->candidates[s->number[id] - 1] : NULL;
}

static bool split_pass_is_plain(const struct ir_inst *inst, uint32_t mask_at)
{
    return inst->num_operands <= mask_at ||
           !(inst->operands[mask_at] & MemoryAccessVolatile);
}

static bool split_pass_is_chain(const struct ir_inst *inst)
{
    return inst->op == OpAccessChain || inst->op == OpInBoundsAccessChain;
}

// Whether operand `i` uses a candidate in a way that its members can stand for.
static bool split_pass_is_good_use(const struct splitting *s, const struct ir_inst *inst,
                                   uint32_t i)
{
    uint64_t index;
    if (inst->op == OpLoad)
        return split_pass_is_plain(inst, 1);
    if (inst->op == OpStore)
        return i == 0 && split_pass_is_plain(inst, 2);
    return split_pass_is_chain(inst) && i == 0 && inst->num_operands > 1 &&
           opt_constant(s->o->ir, inst->operands[1], &index) &&
           index < candidate_of(s, inst->operands[0])->num_members;
}

static void split_pass_reject_bad_uses(struct splitting *s)
{
    for (struct ir_block *b = s->function->first; b; b = b->next)
        for (struct ir_inst *inst = b->insts.first; inst; inst = inst->next) {
            struct spirv_ids ids = ir_ids_quick(s->o->ir, inst);
            for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;) {
                struct split_pass_candidate *c = candidate_of(s, *id);
                if (c && !split_pass_is_good_use(s, inst, (uint32_t)(id - inst->operands)))
                    c->variable = NULL;
            }
        }
}

static uint32_t initial_of(struct splitting *s, const struct ir_inst *variable, uint32_t i,
                           uint32_t type)
{
    if (variable->num_operands < 2)
        return 0;
    const struct ir_inst *initial = ir_definition(s->o->ir, variable->operands[1]);
    return initial->op == OpConstantComposite ? initial->operands[i]
                                              : ir_null(s->o->ir, type);
}

static void make_members(struct splitting *s, struct split_pass_candidate *c)
{
    struct optimiser *o = s->o;
    struct ir *ir = o->ir;
    c->members = ir_scratch(ir, c->num_members * sizeof(*c->members));
    for (uint32_t i = 0; i < c->num_members; i++) {
        uint32_t type = ir_member_type(ir, pointee_of(ir, c->variable), i);
        uint32_t initial = initial_of(s, c->variable, i, type);
        struct ir_inst *made =
            opt_make(o, OpVariable, ir_pointer(ir, StorageClassFunction, type),
                     initial ? 2 : 1, (uint32_t[]){StorageClassFunction, initial});
        ir_insert(s->function->first, c->variable, made);
        c->members[i] = made->id;
    }
}

// A load of all is a load of each member.
static void split_load(struct splitting *s, const struct split_pass_candidate *c,
                       struct ir_inst *load)
{
    struct optimiser *o = s->o;
    uint32_t values[MOST_MEMBERS];
    for (uint32_t i = 0; i < c->num_members; i++) {
        struct ir_inst *made =
            opt_make(o, OpLoad, ir_member_type(o->ir, load->type, i), 1, &c->members[i]);
        ir_insert(load->block, load, made);
        values[i] = made->id;
    }
    load->op = OpCompositeConstruct;
    ir_set_operands(o->ir, load, c->num_members, values);
}

static void split_store(struct splitting *s, const struct split_pass_candidate *c,
                        struct ir_inst *store)
{
    struct optimiser *o = s->o;
    uint32_t value = store->operands[1], type = ir_definition(o->ir, value)->type;
    for (uint32_t i = 0; i < c->num_members; i++) {
        struct ir_inst *member =
            opt_make(o, OpCompositeExtract, ir_member_type(o->ir, type, i), 2,
                     (uint32_t[]){value, i});
        ir_insert(store->block, store, member);
        ir_insert(store->block, store,
                  opt_make(o, OpStore, 0, 2, (uint32_t[]){c->members[i], member->id}));
    }
    ir_remove(store);
}

static void split_chain(struct splitting *s, const struct split_pass_candidate *c,
                        struct ir_inst *chain)
{
    uint64_t index = 0;
    opt_constant(s->o->ir, chain->operands[1], &index);
    uint32_t member = c->members[index];
    if (chain->num_operands == 2) {
        opt_replace(s->o, chain->id, member);
        ir_remove(chain);
        return;
    }
    chain->operands[1] = member;
    chain->operands++;
    chain->num_operands--;
}

static void split_uses(struct splitting *s)
{
    for (struct ir_block *b = s->function->first; b; b = b->next)
        for (struct ir_inst *inst = b->insts.first, *next; inst; inst = next) {
            next = inst->next;
            if (inst->op != OpLoad && inst->op != OpStore && !split_pass_is_chain(inst))
                continue;
            const struct split_pass_candidate *c = candidate_of(s, inst->operands[0]);
            if (!c || !c->variable)
                continue;
            if (inst->op == OpLoad)
                split_load(s, c, inst);
            else if (inst->op == OpStore)
                split_store(s, c, inst);
            else
                split_chain(s, c, inst);
        }
}

// True: something was split, so that its members may be next.
static bool split_once(struct splitting *s)
{
    bool found = false;
    find_candidates(s);
    if (!s->num)
        return false;
    split_pass_reject_bad_uses(s);
    for (uint32_t i = 0; i < s->num; i++) {
        struct split_pass_candidate *c = &s->candidates[i];
        if (c->variable && s->num_pieces + c->num_members > MOST_PIECES)
            c->variable = NULL;
        if (!c->variable)
            continue;
        s->num_pieces += c->num_members;
        make_members(s, c);
        found = true;
    }
    if (!found)
        return false;
    split_uses(s);
    for (uint32_t i = 0; i < s->num; i++)
        if (s->candidates[i].variable)
            ir_remove(s->candidates[i].variable);
    opt_apply(s->o, s->function);
    return true;
}

// A chain that begins where another one ends begins where that one does.
static void split_pass_join_chains(struct optimiser *o, struct ir_function *function)
{
    for (struct ir_block *b = function->first; b; b = b->next)
        for (struct ir_inst *inst = b->insts.first, *next; inst; inst = next) {
            next = inst->next;
            if (!split_pass_is_chain(inst))
                continue;
            if (inst->num_operands == 1) {
                opt_replace(o, inst->id, inst->operands[0]);
                ir_remove(inst);
                continue;
            }
            const struct ir_inst *base =
                ir_definition(o->ir, opt_same(o, inst->operands[0]));
            if (!base || !split_pass_is_chain(base))
                continue;
            uint32_t count = base->num_operands + inst->num_operands - 1;
            uint32_t *operands =
                compiler_allocate(o->ir->compiler, count * sizeof(*operands));
            memcpy(operands, base->operands, base->num_operands * sizeof(*operands));
            memcpy(operands + base->num_operands, inst->operands + 1,
                   (inst->num_operands - 1) * sizeof(*operands));
            if (base->op == OpAccessChain)
                inst->op = OpAccessChain;
            ir_set_operands(o->ir, inst, count, operands);
        }
    opt_apply(o, function);
}

void opt_split(struct optimiser *o, struct ir_function *function)
{
    struct splitting s = {.o = o, .function = function};
    split_pass_join_chains(o, function);
    for (uint32_t round = 0; round < MOST_ROUNDS && split_once(&s); round++)
        ;
}
