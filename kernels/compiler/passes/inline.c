// SPDX-License-Identifier: MIT
// Inlines calls: bottom up, so that a body has no calls that could be inlined.
//
// Every call is inlined but these: of functions without exactly one return outside of
// selections and loops; recursive ones; and, when the caller has grown to more than
// MOST_INSTS instructions, calls of functions that are neither small nor called once. The
// only call of a function gets the body itself, others a copy.
#include "optimise.h"
#include "../../spirv/numbers.h"

#include <string.h>

enum { MOST_INSTS = 30000, SMALL = 40 };

// Function with the facts that inlining needs.
struct inline_pass_body {
    struct ir_function *function;
    uint32_t num_insts, num_calls; // num_calls: calls of the function
    bool has_changed;
    enum { NEW, OPEN, DONE } state;
    bool can_inline;
    struct ir_block *block; // where the search for calls goes on
    struct ir_inst *inst;
};

struct inlining {
    struct optimiser *o;
    bool merges_returns;
    struct inline_pass_body *bodies; // by mark of the function
    uint32_t *map;     // ids of the body that is being copied to those of its copy
    uint32_t capacity; // of map
};

static struct inline_pass_body *inline_pass_body_of(const struct inlining *in, uint32_t id)
{
    const struct ir_function *function = opt_function(in->o, id);
    return &in->bodies[function->mark];
}

// --- a copy of a body --------------------------------------------------------------------

struct inline_pass_copy {
    struct inlining *in;
    struct ir_function *from;
    struct ir_inst *call;
    struct ir_block *into;  // where the copy goes on
    struct ir_block *after; // what follows the call
};

static uint32_t inline_pass_mapped(const struct inlining *in, uint32_t id)
{
    id = opt_same(in->o, id);
    return id < in->capacity && in->map[id] ? in->map[id] : id;
}

static void make_map(struct inlining *in, const struct ir_function *from)
{
    struct ir *ir = in->o->ir;
    if (in->capacity < ir->bound) {
        in->capacity = ir->bound * 2;
        in->map = compiler_allocate(ir->compiler, in->capacity * sizeof(*in->map));
    }
    for (const struct ir_block *block = from->first; block; block = block->next) {
        if (block != from->first) {
            struct ir_block *made = ir_block(ir);
            in->map[block->id] = made->id;
        }
        for (const struct ir_inst *inst = block->insts.first; inst; inst = inst->next)
            if (inst->id)
                in->map[inst->id] = ir_new_id(ir);
    }
    optimiser_grow(in->o);
}

static void clear_map(struct inlining *in, const struct ir_function *from)
{
    for (const struct ir_inst *p = from->parameters.first; p; p = p->next)
        in->map[p->id] = 0;
    for (const struct ir_block *block = from->first; block; block = block->next) {
        in->map[block->id] = 0;
        for (const struct ir_inst *inst = block->insts.first; inst; inst = inst->next)
            in->map[inst->id] = 0;
    }
}

// A variable goes to the caller's first block. Its initial value is stored where the call
// was, each time.
static void copy_variable(struct inline_pass_copy *copy, const struct ir_inst *inst)
{
    struct optimiser *o = copy->in->o;
    struct ir_block *first = copy->call->block->function->first;
    uint32_t id = copy->in->map[inst->id];
    ir_insert(first, first->insts.first,
              ir_inst(o->ir, OpVariable, inst->type, id, 1, inst->operands));
    opt_copy_decorations(o, inst->id, id);
    if (inst->num_operands > 1)
        ir_insert(copy->into, copy->after ? NULL : copy->call,
                  opt_make(o, OpStore, 0, 2, (uint32_t[]){id, inst->operands[1]}));
}

static void copy_inst(struct inline_pass_copy *copy, const struct ir_inst *inst)
{
    struct inlining *in = copy->in;
    struct optimiser *o = in->o;
    struct ir_inst *made = ir_inst(o->ir, inst->op, inst->type, in->map[inst->id],
                                   inst->num_operands, inst->operands);
    struct spirv_ids ids = ir_ids(o->ir, inst);
    for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;)
        made->operands[id - inst->operands] = inline_pass_mapped(in, *id);
    // The copy of a body of one block stands before the call, in its block.
    ir_insert(copy->into, copy->after ? NULL : copy->call, made);
    if (inst->id && o->flags[inst->id])
        opt_copy_decorations(o, inst->id, made->id);
}

static void copy_return(struct inline_pass_copy *copy, const struct ir_inst *inst)
{
    struct optimiser *o = copy->in->o;
    if (inst->op == OpReturnValue)
        opt_replace(o, copy->call->id, inline_pass_mapped(copy->in, inst->operands[0]));
    if (copy->after)
        ir_insert(copy->into, NULL, opt_make(o, OpBranch, 0, 1, &copy->after->id));
}

static void inline_pass_copy_block(struct inline_pass_copy *copy,
                                   const struct ir_block *block)
{
    for (const struct ir_inst *inst = block->insts.first; inst; inst = inst->next)
        if (inst->op == OpVariable)
            copy_variable(copy, inst);
        else if (inst->op == OpReturn || inst->op == OpReturnValue)
            copy_return(copy, inst);
        else
            copy_inst(copy, inst);
}

static void copy_body(struct inline_pass_copy *copy)
{
    struct inlining *in = copy->in;
    struct ir *ir = in->o->ir;
    make_map(in, copy->from);
    in->map[copy->from->first->id] = copy->into->id;
    uint32_t i = 1;
    for (const struct ir_inst *p = copy->from->parameters.first; p; p = p->next)
        in->map[p->id] = copy->call->operands[i++];
    inline_pass_copy_block(copy, copy->from->first);
    for (const struct ir_block *block = copy->from->first->next; block;
         block = block->next) {
        struct ir_block *made = ir->labels[in->map[block->id]];
        opt_insert_block(copy->into, made);
        copy->into = made;
        inline_pass_copy_block(copy, block);
    }
    clear_map(in, copy->from);
}

// --- the body itself ---------------------------------------------------------------------

static void inline_pass_move_variable(struct inline_pass_copy *copy, struct ir_inst *inst)
{
    struct ir_block *first = copy->call->block->function->first;
    ir_remove(inst);
    ir_insert(first, first->insts.first, inst);
    if (inst->num_operands > 1)
        ir_insert(copy->into, copy->after ? NULL : copy->call,
                  opt_make(copy->in->o, OpStore, 0, 2,
                           (uint32_t[]){inst->id, inst->operands[1]}));
    inst->num_operands = 1;
}

static void move_insts(struct inline_pass_copy *copy, struct ir_block *block)
{
    for (struct ir_inst *inst = block->insts.first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->op == OpVariable) {
            inline_pass_move_variable(copy, inst);
        } else if (inst->op == OpReturn || inst->op == OpReturnValue) {
            ir_remove(inst);
            copy_return(copy, inst);
        } else if (block != copy->into) {
            ir_remove(inst);
            ir_insert(copy->into, copy->after ? NULL : copy->call, inst);
        }
    }
}

// The function is left without blocks.
static void move_body(struct inline_pass_copy *copy)
{
    struct optimiser *o = copy->in->o;
    struct ir_function *from = copy->from;
    struct ir_block *first = from->first;
    uint32_t i = 1;
    for (const struct ir_inst *p = from->parameters.first; p; p = p->next)
        opt_replace(o, p->id, copy->call->operands[i++]);
    opt_rename_pred(o, first->insts.last, first->id, copy->into->id);
    o->ir->labels[first->id] = NULL;
    for (struct ir_block *block = first, *next; block; block = next) {
        next = block->next;
        if (block != first) {
            opt_insert_block(copy->into, block);
            copy->into = block;
        }
        move_insts(copy, block);
    }
    from->first = from->last = NULL;
}

// --- the call's position -----------------------------------------------------------------

// Moves an instruction and what follows it to a new block behind its own, which has no
// terminator then.
static struct ir_block *split_before(struct optimiser *o, struct ir_inst *inst)
{
    struct ir_block *block = inst->block, *rest = ir_block(o->ir);
    optimiser_grow(o);
    opt_rename_pred(o, block->insts.last, block->id, rest->id);
    opt_insert_block(block, rest);
    rest->insts = (struct ir_insts){inst, block->insts.last};
    block->insts.last = inst->previous;
    *(inst->previous ? &inst->previous->next : &block->insts.first) = NULL;
    inst->previous = NULL;
    for (; inst; inst = inst->next)
        inst->block = rest;
    return rest;
}

// The head of a loop becomes a block of its own.
static void split_header(struct optimiser *o, struct ir_block *header)
{
    struct ir_inst *merge = merge_of(header), *first = header->insts.first;
    while (first->op == OpPhi)
        first = first->next;
    ir_remove(merge);
    struct ir_block *rest = split_before(o, first);
    if (merge->operands[1] == header->id)
        merge->operands[1] = rest->id;
    ir_insert(header, NULL, merge);
    ir_insert(header, NULL, opt_make(o, OpBranch, 0, 1, &rest->id));
}

static void inline_call(struct inlining *in, struct ir_inst *call,
                        const struct inline_pass_body *callee)
{
    struct ir_function *from = callee->function;
    struct inline_pass_copy copy = {.in = in, .from = from, .call = call};
    if (from->first->next) {
        const struct ir_inst *merge = merge_of(call->block);
        if (merge && merge->op == OpLoopMerge)
            split_header(in->o, call->block);
        copy.into = call->block;
        copy.after = split_before(in->o, call);
        call->block = copy.into; // for the caller's first block
    } else {
        copy.into = call->block;
    }
    if (callee->num_calls == 1)
        move_body(&copy);
    else
        copy_body(&copy);
    if (copy.after)
        call->block = copy.after;
    // A function that does not return leaves no value.
    if (!in->o->same[call->id] && ir_definition(in->o->ir, call->type)->op != OpTypeVoid)
        opt_replace(in->o, call->id, ir_undefined(in->o->ir, call->type));
    ir_remove(call);
}

// --- the functions -----------------------------------------------------------------------

static bool inline_pass_is_wanted(const struct inline_pass_body *caller,
                                  const struct inline_pass_body *callee)
{
    return callee->num_calls == 1 || callee->num_insts <= SMALL ||
           caller->num_insts + callee->num_insts <= MOST_INSTS;
}

static void inline_into(struct inlining *in, struct inline_pass_body *body)
{
    bool changed = false;
    for (struct ir_block *block = body->function->first; block; block = block->next)
        for (struct ir_inst *inst = block->insts.first, *next; inst; inst = next) {
            next = inst->next;
            if (inst->op != OpFunctionCall)
                continue;
            struct inline_pass_body *callee = inline_pass_body_of(in, inst->operands[0]);
            if (!callee->can_inline || !inline_pass_is_wanted(body, callee))
                continue;
            bool is_one_block = !callee->function->first->next;
            inline_call(in, inst, callee);
            body->num_insts += callee->num_insts;
            changed = true;
            if (!is_one_block)
                break; // the rest is in a block behind
        }
    body->has_changed = changed;
}

static void inline_pass_finish(struct inlining *in, struct inline_pass_body *body)
{
    struct optimiser *o = in->o;
    inline_into(in, body);
    ir_scratch_reset(o->ir);
    bool is_entry = false;
    for (const struct ir_inst *e = o->ir->entry_points.first; e; e = e->next)
        is_entry = is_entry || e->operands[1] == body->function->head->id;
    if (in->merges_returns && !is_entry && opt_return(o, body->function))
        body->has_changed = true;
    optimiser_grow(o);
    if (body->has_changed)
        opt_unreachable(o, body->function);
    body->can_inline = opt_has_one_return(o->ir, body->function);
    body->state = DONE;
}

// The next function that `body` calls and that was not visited yet.
static struct inline_pass_body *find_callee(struct inlining *in,
                                            struct inline_pass_body *body)
{
    while (body->block) {
        for (; body->inst; body->inst = body->inst->next)
            if (body->inst->op == OpFunctionCall &&
                inline_pass_body_of(in, body->inst->operands[0])->state == NEW)
                return inline_pass_body_of(in, body->inst->operands[0]);
        body->block = body->block->next;
        body->inst = body->block ? body->block->insts.first : NULL;
    }
    return NULL;
}

static void inline_pass_count_all(struct inlining *in)
{
    uint32_t count = 0;
    for (struct ir_function *f = in->o->ir->functions; f; f = f->next)
        f->mark = count++;
    in->bodies = compiler_allocate(in->o->ir->compiler, (count + 1) * sizeof(*in->bodies));
    for (struct ir_function *f = in->o->ir->functions; f; f = f->next) {
        struct inline_pass_body *body = &in->bodies[f->mark];
        body->function = f;
        body->block = f->first;
        if (f->first)
            body->inst = f->first->insts.first;
        else
            body->state = DONE;
        for (const struct ir_block *b = f->first; b; b = b->next)
            for (const struct ir_inst *inst = b->insts.first; inst; inst = inst->next) {
                body->num_insts++;
                if (inst->op == OpFunctionCall)
                    inline_pass_body_of(in, inst->operands[0])->num_calls++;
            }
    }
    // An entry point is called from outside, too: its body stays.
    for (const struct ir_inst *e = in->o->ir->entry_points.first; e; e = e->next)
        inline_pass_body_of(in, e->operands[1])->num_calls++;
}

// Bodies that move from function to function are rewritten once, where they stay.
static void apply_all(struct optimiser *o)
{
    bool has_replaced = o->has_replaced;
    o->delays = false;
    for (const struct ir_function *f = o->ir->functions; f; f = f->next) {
        o->has_replaced = has_replaced;
        opt_apply(o, f);
    }
}

void opt_inline(struct optimiser *o, bool merges_returns)
{
    struct inlining in = {.o = o, .merges_returns = merges_returns};
    o->delays = true;
    inline_pass_count_all(&in);
    uint32_t count = o->ir->last_function ? o->ir->last_function->mark + 1 : 0, depth = 0;
    struct inline_pass_body **stack =
        compiler_allocate(o->ir->compiler, (count + 1) * sizeof(*stack));
    for (uint32_t i = 0; i < count; i++) {
        if (in.bodies[i].state == NEW)
            stack[depth++] = &in.bodies[i];
        while (depth > 0) {
            struct inline_pass_body *top = stack[depth - 1];
            top->state = OPEN; // on the way: a call of it is recursive, and stays
            struct inline_pass_body *callee = find_callee(&in, top);
            if (callee) {
                stack[depth++] = callee;
            } else {
                inline_pass_finish(&in, top);
                depth--;
            }
        }
    }
    apply_all(o);
}
