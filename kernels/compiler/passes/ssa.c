// SPDX-License-Identifier: MIT
// Local variables to values: phis where paths meet that bring different values (Cytron et
// al.), only where the variable is read again.
//
// A variable becomes values where each use of it is a load, a store, or a load or store of
// a member that constants name.
#include "optimise.h"
#include "../../spirv/numbers.h"

#include <string.h>

struct ssa_pass_variable {
    struct ir_inst *inst;
    uint32_t type;    // of its value
    uint32_t value;   // where the walk is; 0: undefined
    uint32_t *stores; // numbers of blocks, each once
    uint32_t num_stores, stores_capacity;
    uint32_t *reads; // of blocks that read it before they write it
    uint32_t num_reads, reads_capacity;
};

// A phi for a variable, in the list of its block.
struct placed {
    struct ir_inst *phi;
    uint32_t variable;
    struct placed *next;
};

struct change { // of a variable's value, to be undone
    uint32_t variable, value;
};

struct ssa {
    struct optimiser *o;
    struct ir_function *function;
    const struct ir_flow *flow;
    struct ssa_pass_variable *variables;
    uint32_t num;
    uint32_t *number; // by id: of a variable, or of a chain into one, + 1; 0: neither
    uint32_t bound;   // of number
    uint32_t *first_join, *joins; // dominance frontier of block i
    uint32_t *fixed_pred;         // label of a branch back that no path leads to, or 0
    struct placed **placed;       // by number of a block
    struct change *changes;
    uint32_t num_changes, changes_capacity;
};

// --- which variables ---------------------------------------------------------------------

static bool ssa_pass_is_chain(const struct ir_inst *inst)
{
    return inst->op == OpAccessChain || inst->op == OpInBoundsAccessChain;
}

// Whether constants lead the chain to a member that there is.
static bool is_constant_chain(const struct ssa *s, const struct ir_inst *chain)
{
    const struct ir *ir = s->o->ir;
    uint32_t type = s->variables[s->number[chain->operands[0]] - 1].type;
    if (ir_definition(ir, chain->operands[0])->op != OpVariable)
        return false;
    for (uint32_t i = 1; i < chain->num_operands; i++) {
        uint64_t index;
        if (!opt_constant(ir, chain->operands[i], &index) || index > UINT32_MAX)
            return false;
        type = ir_member_type(ir, type, (uint32_t)index);
        if (!type)
            return false;
    }
    return true;
}

static bool is_volatile(const struct ir_inst *inst, uint32_t mask_at)
{
    return inst->num_operands > mask_at && (inst->operands[mask_at] & MemoryAccessVolatile);
}

// Whether operand `i`, a variable or a chain, is used in a way that values can stand for.
// Gives chains the number of their variable.
static bool ssa_pass_is_good_use(struct ssa *s, const struct ir_inst *inst, uint32_t i)
{
    if (inst->op == OpLoad)
        return !is_volatile(inst, 1);
    if (inst->op == OpStore)
        return i == 0 && !is_volatile(inst, 2);
    if (!ssa_pass_is_chain(inst) || i != 0 || !is_constant_chain(s, inst))
        return false;
    s->number[inst->id] = s->number[inst->operands[0]];
    return true;
}

static bool ssa_pass_is_candidate(const struct ssa *s, const struct ir_inst *inst)
{
    return inst->op == OpVariable && !(s->o->flags[inst->id] & IS_DECORATED);
}

static void ssa_pass_find_variables(struct ssa *s)
{
    struct ir *ir = s->o->ir;
    uint32_t count = 0;
    for (struct ir_inst *i = s->function->first->insts.first; i; i = i->next)
        count += ssa_pass_is_candidate(s, i);
    if (!count)
        return;
    s->bound = ir->bound;
    s->number = ir_scratch(ir, s->bound * sizeof(*s->number));
    s->variables = ir_scratch(ir, count * sizeof(*s->variables));
    for (struct ir_inst *i = s->function->first->insts.first; i; i = i->next)
        if (ssa_pass_is_candidate(s, i)) {
            s->variables[s->num].inst = i;
            s->variables[s->num++].type = ir_definition(ir, i->type)->operands[1];
            s->number[i->id] = s->num;
        }
}

// Drops the variables that have other uses. Definitions come before uses in this order.
static void ssa_pass_reject_bad_uses(struct ssa *s)
{
    for (struct ir_block *b = s->function->first; b; b = b->next)
        for (struct ir_inst *inst = b->insts.first; inst; inst = inst->next) {
            struct spirv_ids ids = ir_ids_quick(s->o->ir, inst);
            for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;) {
                uint32_t number = s->number[*id];
                if (number &&
                    !ssa_pass_is_good_use(s, inst, (uint32_t)(id - inst->operands)))
                    s->variables[number - 1].inst = NULL;
            }
        }
}

// The variable that the pointer `id` leads to, or NULL.
static struct ssa_pass_variable *variable_of(const struct ssa *s, uint32_t id)
{
    uint32_t number = id < s->bound ? s->number[id] : 0;
    return number && s->variables[number - 1].inst ? &s->variables[number - 1] : NULL;
}

// --- where phis go -----------------------------------------------------------------------

static void ssa_pass_push(struct ssa *s, uint32_t **items, uint32_t *count,
                          uint32_t *capacity, uint32_t item)
{
    if (*count && (*items)[*count - 1] == item)
        return;
    if (*count == *capacity)
        *items =
            compiler_grow(s->o->ir->compiler, *items, *count, capacity, sizeof(**items));
    (*items)[(*count)++] = item;
}

static void find_accesses(struct ssa *s)
{
    for (uint32_t at = 0; at < s->flow->num; at++)
        for (struct ir_inst *i = s->flow->blocks[at]->insts.first; i; i = i->next) {
            if (i->op != OpLoad && i->op != OpStore)
                continue;
            struct ssa_pass_variable *v = variable_of(s, i->operands[0]);
            if (!v)
                continue;
            bool is_written = v->num_stores && v->stores[v->num_stores - 1] == at;
            bool reads =
                i->op == OpLoad || ssa_pass_is_chain(opt_definition(s->o, i->operands[0]));
            if (reads && !is_written)
                ssa_pass_push(s, &v->reads, &v->num_reads, &v->reads_capacity, at);
            if (i->op == OpStore)
                ssa_pass_push(s, &v->stores, &v->num_stores, &v->stores_capacity, at);
        }
}

// The dominance frontiers, as ranges of one array.
static void find_joins(struct ssa *s)
{
    const struct ir_flow *flow = s->flow;
    size_t size = ((size_t)flow->num + 2) * sizeof(uint32_t);
    s->first_join = ir_scratch(s->o->ir, size);
    uint32_t *last = ir_scratch(s->o->ir, size);
    for (uint32_t pass = 0; pass < 2; pass++) {
        memset(last, 0, size);
        for (uint32_t i = 0; i < flow->num; i++) {
            uint32_t first = flow->first_pred[i], end = flow->first_pred[i + 1];
            for (uint32_t p = first; p < end && end - first > 1; p++)
                for (uint32_t at = flow->preds[p]; at != flow->dominator[i];
                     at = flow->dominator[at]) {
                    if (last[at] == i + 1)
                        continue;
                    last[at] = i + 1;
                    if (pass == 0)
                        s->first_join[at + 1]++;
                    else
                        s->joins[s->first_join[at]++] = i;
                }
        }
        if (pass == 1)
            break;
        for (uint32_t i = 0; i < flow->num; i++)
            s->first_join[i + 1] += s->first_join[i];
        s->joins = ir_scratch(s->o->ir, (s->first_join[flow->num] + 1) * sizeof(uint32_t));
    }
    memmove(s->first_join + 1, s->first_join, flow->num * sizeof(uint32_t));
    s->first_join[0] = 0;
}

// Marks by block, of one variable: the mark is the variable's number + 1.
struct ssa_pass_marks {
    uint32_t *is_live, *has_phi, *is_stored, *queue;
};

// Blocks at whose start the variable's value is needed.
static void find_live(struct ssa *s, struct ssa_pass_marks *m, uint32_t number)
{
    const struct ssa_pass_variable *v = &s->variables[number];
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->num_stores; i++)
        m->is_stored[v->stores[i]] = number + 1;
    for (uint32_t i = 0; i < v->num_reads; i++) {
        m->is_live[v->reads[i]] = number + 1;
        m->queue[count++] = v->reads[i];
    }
    while (count > 0) {
        uint32_t at = m->queue[--count];
        for (uint32_t p = s->flow->first_pred[at]; p < s->flow->first_pred[at + 1]; p++) {
            uint32_t pred = s->flow->preds[p];
            if (m->is_live[pred] == number + 1 || m->is_stored[pred] == number + 1)
                continue;
            m->is_live[pred] = number + 1;
            m->queue[count++] = pred;
        }
    }
}

static void phi_insert(struct ssa *s, uint32_t at, uint32_t number)
{
    struct optimiser *o = s->o;
    const struct ir_flow *flow = s->flow;
    uint32_t count = flow->first_pred[at + 1] - flow->first_pred[at], used = 0;
    uint32_t *operands =
        compiler_allocate(o->ir->compiler, (2 * count + 2) * sizeof(uint32_t));
    for (uint32_t p = flow->first_pred[at]; p < flow->first_pred[at + 1]; p++, used += 2)
        operands[used + 1] = flow->blocks[flow->preds[p]]->id;
    if (s->fixed_pred[at]) {
        operands[used] = ir_undefined(o->ir, s->variables[number].type);
        operands[used + 1] = s->fixed_pred[at];
        used += 2;
    }
    struct placed *placed = ir_scratch(o->ir, sizeof(*placed));
    struct ir_inst *phi = opt_make(o, OpPhi, s->variables[number].type, used, operands);
    *placed = (struct placed){phi, number, s->placed[at]};
    s->placed[at] = placed;
    ir_insert(flow->blocks[at], flow->blocks[at]->insts.first, placed->phi);
}

static void phis_insert(struct ssa *s, struct ssa_pass_marks *m, uint32_t number)
{
    const struct ssa_pass_variable *v = &s->variables[number];
    uint32_t count = 0;
    if (!v->num_reads)
        return; // never read, or only where it was written before
    find_live(s, m, number);
    for (uint32_t i = 0; i < v->num_stores; i++)
        m->queue[count++] = v->stores[i];
    while (count > 0) {
        uint32_t at = m->queue[--count];
        for (uint32_t k = s->first_join[at]; k < s->first_join[at + 1]; k++) {
            uint32_t join = s->joins[k];
            if (m->has_phi[join] == number + 1 || m->is_live[join] != number + 1)
                continue;
            m->has_phi[join] = number + 1;
            phi_insert(s, join, number);
            if (m->is_stored[join] != number + 1)
                m->queue[count++] = join;
        }
    }
}

// Branches back from blocks that no path leads to.
static void find_fixed_preds(struct ssa *s)
{
    s->fixed_pred = ir_scratch(s->o->ir, s->flow->num * sizeof(uint32_t));
    for (const struct ir_block *b = s->function->first; b; b = b->next)
        if (!b->mark && b->insts.last->op == OpBranch) {
            const struct ir_block *to = s->o->ir->labels[b->insts.last->operands[0]];
            if (to->mark)
                s->fixed_pred[to->mark - 1] = b->id;
        }
}

static void phis_insert_all(struct ssa *s)
{
    struct ir *ir = s->o->ir;
    size_t size = ((size_t)s->flow->num + 1) * sizeof(uint32_t);
    struct ssa_pass_marks m = {ir_scratch(ir, size), ir_scratch(ir, size),
                               ir_scratch(ir, size), ir_scratch(ir, 2 * size)};
    s->placed = ir_scratch(ir, s->flow->num * sizeof(struct placed *));
    find_fixed_preds(s);
    find_joins(s);
    for (uint32_t i = 0; i < s->num; i++)
        if (s->variables[i].inst)
            phis_insert(s, &m, i);
}

// --- values ------------------------------------------------------------------------------

static void ssa_pass_set_value(struct ssa *s, struct ssa_pass_variable *v, uint32_t value)
{
    if (s->num_changes == s->changes_capacity)
        s->changes = compiler_grow(s->o->ir->compiler, s->changes, s->num_changes,
                                   &s->changes_capacity, sizeof(*s->changes));
    s->changes[s->num_changes++] = (struct change){(uint32_t)(v - s->variables), v->value};
    v->value = value;
}

static uint32_t ssa_pass_value_of(struct ssa *s, struct ssa_pass_variable *v)
{
    return v->value ? v->value : ir_undefined(s->o->ir, v->type);
}

// The indices of a chain as literals behind `head`.
static uint32_t literal_path(const struct ssa *s, const struct ir_inst *chain,
                             uint32_t *operands, uint32_t used)
{
    for (uint32_t i = 1; i < chain->num_operands; i++) {
        uint64_t index = 0;
        opt_constant(s->o->ir, chain->operands[i], &index);
        operands[used++] = (uint32_t)index;
    }
    return used;
}

static void rename_load(struct ssa *s, struct ssa_pass_variable *v, struct ir_inst *load)
{
    struct ir *ir = s->o->ir;
    const struct ir_inst *pointer = ir_definition(ir, load->operands[0]);
    uint32_t value = ssa_pass_value_of(s, v);
    if (!ssa_pass_is_chain(pointer) || pointer->num_operands == 1) {
        opt_replace(s->o, load->id, value);
        ir_remove(load);
        return;
    }
    uint32_t *operands =
        compiler_allocate(ir->compiler, pointer->num_operands * sizeof(*operands));
    operands[0] = value;
    load->op = OpCompositeExtract;
    ir_set_operands(ir, load, literal_path(s, pointer, operands, 1), operands);
}

static void rename_store(struct ssa *s, struct ssa_pass_variable *v, struct ir_inst *store)
{
    struct optimiser *o = s->o;
    const struct ir_inst *pointer = opt_definition(o, store->operands[0]);
    uint32_t value = opt_same(o, store->operands[1]);
    if (ssa_pass_is_chain(pointer) && pointer->num_operands > 1) {
        uint32_t *operands = compiler_allocate(
            o->ir->compiler, (pointer->num_operands + 1) * sizeof(*operands));
        operands[0] = value;
        operands[1] = ssa_pass_value_of(s, v);
        uint32_t count = literal_path(s, pointer, operands, 2);
        struct ir_inst *made = opt_make(o, OpCompositeInsert, v->type, count, operands);
        ir_insert(store->block, store, made);
        value = made->id;
    }
    ssa_pass_set_value(s, v, value);
    ir_remove(store);
}

static void rename_block(struct ssa *s, uint32_t at)
{
    struct ir_block *block = s->flow->blocks[at];
    for (const struct placed *p = s->placed[at]; p; p = p->next)
        ssa_pass_set_value(s, &s->variables[p->variable], p->phi->id);
    for (struct ir_inst *inst = block->insts.first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->op != OpLoad && inst->op != OpStore)
            continue;
        struct ssa_pass_variable *v = variable_of(s, inst->operands[0]);
        if (v && inst->op == OpLoad)
            rename_load(s, v, inst);
        else if (v)
            rename_store(s, v, inst);
    }
    struct targets targets = targets_of(s->o->ir, block->insts.last);
    for (uint32_t i = 0; i < targets.count; i++) {
        uint32_t to = s->o->ir->labels[targets.first[i * targets.step]]->mark - 1;
        for (const struct placed *p = s->placed[to]; p; p = p->next)
            for (uint32_t k = 1; k < p->phi->num_operands; k += 2)
                if (p->phi->operands[k] == block->id)
                    p->phi->operands[k - 1] =
                        ssa_pass_value_of(s, &s->variables[p->variable]);
    }
}

// Walks over the dominator tree: values hold below the block that sets them.
static void rename_all(struct ssa *s)
{
    const struct ir_flow *flow = s->flow;
    struct ir *ir = s->o->ir;
    size_t size = ((size_t)flow->num + 1) * sizeof(uint32_t);
    uint32_t *stack = ir_scratch(ir, size), *undo = ir_scratch(ir, size),
             *next = ir_scratch(ir, size), depth = 1;
    memcpy(next, flow->first_child, flow->num * sizeof(*next));
    rename_block(s, 0);
    while (depth > 0) {
        uint32_t at = stack[depth - 1];
        if (next[at] < flow->first_child[at + 1]) {
            uint32_t child = flow->children[next[at]++];
            undo[depth] = s->num_changes;
            stack[depth++] = child;
            rename_block(s, child);
            continue;
        }
        for (depth--; s->num_changes > undo[depth];) {
            struct change change = s->changes[--s->num_changes];
            s->variables[change.variable].value = change.value;
        }
    }
}

static void remove_variables(struct ssa *s)
{
    for (struct ir_block *b = s->function->first; b; b = b->next)
        for (struct ir_inst *inst = b->insts.first, *next; inst; inst = next) {
            next = inst->next;
            if ((inst->op == OpVariable || ssa_pass_is_chain(inst)) &&
                variable_of(s, inst->id))
                ir_remove(inst);
        }
}

void opt_ssa(struct optimiser *o, struct ir_function *function)
{
    struct ssa s = {.o = o, .function = function};
    ssa_pass_find_variables(&s);
    if (!s.num)
        return;
    ssa_pass_reject_bad_uses(&s);
    s.flow = flow_of(o->ir, function);
    find_accesses(&s);
    phis_insert_all(&s);
    for (uint32_t i = 0; i < s.num; i++)
        if (s.variables[i].inst && s.variables[i].inst->num_operands > 1)
            s.variables[i].value = s.variables[i].inst->operands[1];
    rename_all(&s);
    remove_variables(&s);
    opt_apply(o, function);
}
