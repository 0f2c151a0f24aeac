// SPDX-License-Identifier: MIT
#include "spirv_read_check.h"
#include "../ir/flow.h"
#include "../../spirv/numbers.h"

#include <stddef.h>
#include <string.h>

struct spirv_read_check {
    struct ir *ir;
    uint32_t *owner; // by id: number of the function that it is of; 0: of the module
    uint32_t function;
};

static _Noreturn void spirv_read_check_refuse(const struct ir *ir,
                                              const struct ir_inst *inst, const char *what)
{
    compiler_fail(ir->compiler, NULL, "Op%s of id %u: %s", spirv_op_name(inst->op),
                  inst->id, what);
}

static uint32_t op_of(const struct ir *ir, uint32_t id)
{
    return id < ir->bound && ir->definitions[id] ? ir->definitions[id]->op : OpNop;
}

static uint32_t spirv_read_check_type_of(const struct ir *ir, uint32_t id)
{
    return id < ir->bound && ir->definitions[id] ? ir->definitions[id]->type : 0;
}

// Tells whether the rest of a pattern may be missing when the operands are used up.
static bool may_end(const char *pattern)
{
    while (*pattern == '!' || *pattern == '~' || *pattern == 't' || *pattern == 'r')
        pattern++;
    return *pattern == '\0' || strchr("?ILmP", *pattern) != NULL;
}

// The operands are as many as the pattern wants, and ids are ids.
static void spirv_read_check_operands(const struct ir *ir, const struct ir_inst *inst)
{
    // The selector's width says how long the literals are.
    if (inst->op == OpSwitch && inst->num_operands &&
        op_of(ir, spirv_read_check_type_of(ir, inst->operands[0])) != OpTypeInt)
        spirv_read_check_refuse(ir, inst, "its selector is no integer");
    struct spirv_ids ids = ir_ids_by_pattern(ir, inst);
    for (uint32_t *id; (id = spirv_next_id(&ids)) != NULL;)
        if (*id == 0 || *id >= ir->bound)
            spirv_read_check_refuse(ir, inst, "an operand is no id");
    if (ids.next < ids.end && *ids.pattern != 'L')
        spirv_read_check_refuse(ir, inst, "too many operands");
    if (!may_end(ids.pattern) || (ids.behind && !may_end(ids.behind)))
        spirv_read_check_refuse(ir, inst, "too few operands");
    if (ids.behind && *ids.pattern)
        spirv_read_check_refuse(ir, inst, "too few memory operands");
}

static void spirv_read_check_type(const struct ir *ir, const struct ir_inst *inst)
{
    if (inst->type && !spirv_is_type_op(op_of(ir, inst->type)))
        spirv_read_check_refuse(ir, inst, "its type is no type");
}

// The type of what a pointer points to; 0: no pointer.
static uint32_t spirv_read_check_pointee(const struct ir *ir, uint32_t type)
{
    return op_of(ir, type) == OpTypePointer ? ir->definitions[type]->operands[1] : 0;
}

// --- globals -----------------------------------------------------------------------------

static void spirv_read_check_number(const struct ir *ir, const struct ir_inst *inst)
{
    uint32_t width = inst->operands[0];
    if (width != 8 && width != 16 && width != 32 && width != 64)
        spirv_read_check_refuse(ir, inst, "expected a width of 8, 16, 32 or 64");
}

static void check_scalar_constant(const struct ir *ir, const struct ir_inst *inst)
{
    uint32_t op = op_of(ir, inst->type);
    if (op != OpTypeInt && op != OpTypeFloat)
        spirv_read_check_refuse(ir, inst, "expected the type of a number");
    uint32_t words = ir->definitions[inst->type]->operands[0] > 32 ? 2 : 1;
    if (inst->num_operands != words)
        spirv_read_check_refuse(ir, inst, "expected as many words as its type has");
}

static void check_composite(const struct ir *ir, const struct ir_inst *inst)
{
    uint32_t count = ir_num_members(ir, inst->type);
    if (count && count != inst->num_operands)
        spirv_read_check_refuse(ir, inst, "expected as many members as its type has");
    for (uint32_t i = 0; i < inst->num_operands; i++) {
        uint32_t member = ir_member_type(ir, inst->type, i);
        if (!spirv_is_constant_op(op_of(ir, inst->operands[i])) ||
            (member && member != spirv_read_check_type_of(ir, inst->operands[i])))
            spirv_read_check_refuse(ir, inst,
                                    "a member is no constant of the member's type");
    }
}

static void check_vector(const struct ir *ir, const struct ir_inst *inst)
{
    uint32_t op = op_of(ir, inst->operands[0]);
    bool fits = inst->op == OpTypeMatrix
                    ? op == OpTypeVector
                    : op == OpTypeInt || op == OpTypeFloat || op == OpTypeBool;
    if (!fits || inst->operands[1] < 2 || inst->operands[1] > 16)
        spirv_read_check_refuse(ir, inst, "expected 2 to 16 members that fit");
}

// Checks the meaning of the words, beside that the operands are there.
static void spirv_read_check_meaning(const struct ir *ir, const struct ir_inst *inst)
{
    switch (inst->op) {
    case OpTypeInt:
    case OpTypeFloat:
        spirv_read_check_number(ir, inst);
        break;
    case OpTypeVector:
    case OpTypeMatrix:
        check_vector(ir, inst);
        break;
    case OpTypeArray:
        if (!spirv_is_constant_op(op_of(ir, inst->operands[1])))
            spirv_read_check_refuse(ir, inst, "its length is no constant");
        break;
    case OpConstant:
    case OpSpecConstant:
        check_scalar_constant(ir, inst);
        break;
    case OpConstantTrue:
    case OpConstantFalse:
    case OpSpecConstantTrue:
    case OpSpecConstantFalse:
        if (op_of(ir, inst->type) != OpTypeBool)
            spirv_read_check_refuse(ir, inst, "its type is not bool");
        break;
    case OpConstantComposite:
    case OpSpecConstantComposite:
        check_composite(ir, inst);
        break;
    case OpVariable:
        if (!spirv_read_check_pointee(ir, inst->type) ||
            inst->operands[0] == StorageClassFunction)
            spirv_read_check_refuse(
                ir, inst, "expected a pointer type and a storage class of the module");
        break;
    default:
        break;
    }
}

void check_global(struct ir *ir, const struct ir_inst *inst)
{
    spirv_read_check_operands(ir, inst);
    spirv_read_check_type(ir, inst);
    bool is_forward = inst->op == OpTypeForwardPointer;
    bool wants_type = (spirv_is_type_op(inst->op) && inst->op != OpTypeStruct);
    struct spirv_ids ids = ir_ids(ir, inst);
    uint32_t index = 0;
    for (uint32_t *id; (id = ir_next_id(&ids)) != NULL; index++) {
        // A struct may have a pointer that is defined behind it.
        uint32_t op = op_of(ir, *id);
        if (!is_forward && inst->op != OpTypeStruct && op == OpNop)
            spirv_read_check_refuse(ir, inst, "an operand is not defined before");
        if (wants_type && (index == 0 || inst->op == OpTypeFunction) &&
            inst->op < OpTypeTensorLayoutNV && !spirv_is_type_op(op) && !is_forward)
            spirv_read_check_refuse(ir, inst, "expected a type");
    }
    spirv_read_check_meaning(ir, inst);
}

// --- functions ---------------------------------------------------------------------------

// Whether operand `i` is a label.
static bool is_label(const struct ir_inst *inst, uint32_t i)
{
    switch (inst->op) {
    case OpBranch:
    case OpLoopMerge:
    case OpSelectionMerge:
        return true;
    case OpBranchConditional:
    case OpSwitch:
        return i > 0;
    case OpPhi:
        return i % 2 == 1;
    default:
        return false;
    }
}

// Whether operand `i` is an instruction set or a type.
static bool may_be_no_value(const struct ir_inst *inst, ptrdiff_t i)
{
    return i == 0 && (inst->op == OpExtInst || inst->op == OpCooperativeMatrixLengthKHR ||
                      inst->op == OpCooperativeMatrixLengthNV);
}

// Whether the type is a pointer to local memory.
static bool points_to_local(const struct ir *ir, uint32_t type)
{
    return op_of(ir, type) == OpTypePointer &&
           ir->definitions[type]->operands[0] == StorageClassFunction;
}

static void check_uses(const struct spirv_read_check *check, const struct ir_inst *inst)
{
    const struct ir *ir = check->ir;
    spirv_read_check_operands(ir, inst);
    spirv_read_check_type(ir, inst);
    struct spirv_ids ids = ir_ids(ir, inst);
    for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;) {
        uint32_t owner = check->owner[*id];
        bool is_here = owner == 0 || owner == check->function;
        bool is_value =
            ir->definitions[*id] &&
            (ir->definitions[*id]->type || may_be_no_value(inst, id - inst->operands));
        bool fits = is_label(inst, (uint32_t)(id - inst->operands))
                        ? ir->labels[*id] && owner == check->function
                        : is_value && is_here;
        if (!fits)
            spirv_read_check_refuse(ir, inst,
                                    "an operand is not defined, or not in this function");
    }
}

static struct ir_function *spirv_read_check_function_of(const struct ir *ir, uint32_t id)
{
    struct ir_function *function = ir->functions;
    while (function && function->head->id != id)
        function = function->next;
    return function;
}

static void spirv_read_check_call(const struct ir *ir, const struct ir_inst *inst)
{
    struct ir_function *callee = spirv_read_check_function_of(ir, inst->operands[0]);
    uint32_t i = 1;
    const struct ir_inst *parameter = callee ? callee->parameters.first : NULL;
    for (; parameter && i < inst->num_operands; i++, parameter = parameter->next)
        if (spirv_read_check_type_of(ir, inst->operands[i]) != parameter->type)
            break;
    if (!callee || parameter || i < inst->num_operands || callee->head->type != inst->type)
        spirv_read_check_refuse(ir, inst, "the call does not fit the function");
}

static bool is_bad_memory_access(const struct ir *ir, const struct ir_inst *inst)
{
    uint32_t type =
        spirv_read_check_pointee(ir, spirv_read_check_type_of(ir, inst->operands[0]));
    return type == 0 ||
           type != (inst->op == OpLoad ? inst->type
                                       : spirv_read_check_type_of(ir, inst->operands[1]));
}

// Whether literal indices lead to a value of this type.
static bool is_bad_path(const struct ir *ir, uint32_t from, const struct ir_inst *inst,
                        uint32_t first, uint32_t to)
{
    for (uint32_t i = first; i < inst->num_operands && from; i++) {
        uint32_t op = op_of(ir, from);
        if (op == OpTypeCooperativeMatrixKHR || op == OpTypeCooperativeMatrixNV ||
            (op == OpTypeArray && ir_num_members(ir, from) == 0))
            from = ir->definitions[from]->operands[0];
        else
            from = ir_member_type(ir, from, inst->operands[i]);
    }
    return from == 0 || from != to;
}

static void check_inst(const struct spirv_read_check *check, const struct ir_inst *inst)
{
    const struct ir *ir = check->ir;
    const struct ir_block *block = inst->block;
    uint32_t result = block->function->head->type;
    bool is_bad = false;
    check_uses(check, inst);
    switch (inst->op) {
    case OpFunctionCall:
        spirv_read_check_call(ir, inst);
        break;
    case OpVariable:
        is_bad = block != block->function->first ||
                 !spirv_read_check_pointee(ir, inst->type) ||
                 inst->operands[0] != StorageClassFunction;
        break;
    case OpLoad:
    case OpStore:
        is_bad = is_bad_memory_access(ir, inst);
        break;
    case OpAccessChain:
    case OpInBoundsAccessChain:
        is_bad =
            !spirv_read_check_pointee(ir, inst->type) ||
            !spirv_read_check_pointee(ir, spirv_read_check_type_of(ir, inst->operands[0]));
        break;
    case OpCompositeExtract:
        is_bad = is_bad_path(ir, spirv_read_check_type_of(ir, inst->operands[0]), inst, 1,
                             inst->type);
        break;
    case OpCompositeInsert:
        is_bad = spirv_read_check_type_of(ir, inst->operands[1]) != inst->type ||
                 is_bad_path(ir, inst->type, inst, 2,
                             spirv_read_check_type_of(ir, inst->operands[0]));
        break;
    case OpReturn:
        is_bad = op_of(ir, result) != OpTypeVoid;
        break;
    case OpReturnValue:
        is_bad = spirv_read_check_type_of(ir, inst->operands[0]) != result;
        break;
    case OpPhi:
        is_bad = (inst->previous && inst->previous->op != OpPhi) ||
                 points_to_local(ir, inst->type);
        break;
    case OpLoopMerge:
    case OpSelectionMerge:
        is_bad = !inst->next || !spirv_is_end(inst->next->op);
        break;
    default:
        is_bad = spirv_is_type_op(inst->op) ||
                 (spirv_is_constant_op(inst->op) && inst->op != OpUndef) ||
                 inst->op == OpFunctionParameter || !spirv_pattern(inst->op);
        break;
    }
    if (is_bad)
        spirv_read_check_refuse(ir, inst, "it does not fit its operands or its position");
}

// --- what needs the control flow ---------------------------------------------------------

struct order {
    const struct ir_flow *flow;
    uint32_t *position; // by id: rising in the order of the blocks' list
};

static void check_phi(const struct ir *ir, const struct ir_flow *flow, uint32_t at,
                      const struct ir_inst *phi)
{
    uint32_t first = flow->first_pred[at], count = flow->first_pred[at + 1] - first;
    bool fits = phi->num_operands % 2 == 0;
    uint32_t reachable = 0; // values that come from blocks with a path to them
    for (uint32_t k = 1; k < phi->num_operands; k += 2)
        reachable += ir->labels[phi->operands[k]]->mark != 0;
    fits = fits && reachable == count;
    for (uint32_t i = 0; i < count && fits; i++) {
        uint32_t pred = flow->blocks[flow->preds[first + i]]->id, found = 0;
        for (uint32_t k = 1; k < phi->num_operands; k += 2)
            found += phi->operands[k] == pred;
        fits = found == 1;
    }
    if (!fits)
        spirv_read_check_refuse(ir, phi, "expected one value for each predecessor");
}

// Whether the definition of an id stands before the end of a path to `block`, or before
// `position` in it.
static bool spirv_read_check_is_before(const struct ir *ir, const struct order *order,
                                       uint32_t id, const struct ir_block *block,
                                       uint32_t position)
{
    const struct ir_inst *definition = ir->definitions[id];
    if (!definition || !definition->block)
        return true; // a global or a parameter
    if (!block->mark)
        return true;
    if (definition->block == block)
        return order->position[id] < position;
    return definition->block->mark &&
           flow_dominates(order->flow, definition->block->mark - 1, block->mark - 1);
}

static void spirv_read_check_order(const struct ir *ir, const struct order *order,
                                   const struct ir_inst *inst, uint32_t position)
{
    if (inst->op == OpPhi) {
        for (uint32_t i = 0; i < inst->num_operands; i += 2)
            if (!spirv_read_check_is_before(ir, order, inst->operands[i],
                                            ir->labels[inst->operands[i + 1]], UINT32_MAX))
                spirv_read_check_refuse(
                    ir, inst, "a value is not defined on the path that brings it");
        return;
    }
    struct spirv_ids ids = ir_ids(ir, inst);
    for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;)
        if (ir->definitions[*id] &&
            !spirv_read_check_is_before(ir, order, *id, inst->block, position))
            spirv_read_check_refuse(ir, inst, "an operand is not defined before");
}

static void check_flow(const struct spirv_read_check *check,
                       const struct ir_function *function)
{
    struct ir *ir = check->ir;
    struct order order = {flow_of(ir, function), check->owner};
    const struct ir_flow *flow = order.flow;
    if (flow->first_pred[1] != 0)
        compiler_fail(ir->compiler, NULL, "a branch to the first block of function %u",
                      function->head->id);
    uint32_t position = 1;
    for (const struct ir_block *b = function->first; b; b = b->next)
        for (const struct ir_inst *inst = b->insts.first; inst; inst = inst->next)
            order.position[inst->id] = position++;
    position = 1;
    for (const struct ir_block *b = function->first; b; b = b->next)
        for (const struct ir_inst *inst = b->insts.first; inst;
             inst = inst->next, position++) {
            if (!b->mark)
                continue;
            if (inst->op == OpPhi)
                check_phi(ir, flow, b->mark - 1, inst);
            spirv_read_check_order(ir, &order, inst, position);
        }
}

static void spirv_read_check_own(struct spirv_read_check *check,
                                 const struct ir_function *function)
{
    for (const struct ir_inst *p = function->parameters.first; p; p = p->next)
        check->owner[p->id] = check->function;
    for (const struct ir_block *block = function->first; block; block = block->next) {
        check->owner[block->id] = check->function;
        for (const struct ir_inst *inst = block->insts.first; inst; inst = inst->next)
            check->owner[inst->id] = check->function;
    }
    check->owner[0] = 0;
}

static void check_function(struct spirv_read_check *check,
                           const struct ir_function *function)
{
    const struct ir *ir = check->ir;
    const struct ir_inst *head = function->head;
    spirv_read_check_operands(ir, head);
    spirv_read_check_type(ir, head);
    const struct ir_inst *type = ir->definitions[head->operands[1]];
    uint32_t i = 1;
    if (!type || type->op != OpTypeFunction || type->operands[0] != head->type)
        spirv_read_check_refuse(ir, head, "its type is not that of such a function");
    for (const struct ir_inst *p = function->parameters.first; p; p = p->next, i++)
        if (i >= type->num_operands || type->operands[i] != p->type)
            spirv_read_check_refuse(ir, p, "it is not as its function's type says");
    if (i != type->num_operands)
        spirv_read_check_refuse(ir, head, "it has fewer parameters than its type says");
    for (const struct ir_block *block = function->first; block; block = block->next)
        for (const struct ir_inst *inst = block->insts.first; inst; inst = inst->next)
            check_inst(check, inst);
}

static void check_section(const struct ir *ir, const struct ir_insts *section)
{
    for (const struct ir_inst *inst = section->first; inst; inst = inst->next) {
        spirv_read_check_operands(ir, inst);
        if ((inst->op == OpEntryPoint || inst->op == OpExecutionMode ||
             inst->op == OpExecutionModeId) &&
            !spirv_read_check_function_of(ir, inst->operands[inst->op == OpEntryPoint]))
            spirv_read_check_refuse(ir, inst, "expected a function");
    }
}

void check_module(struct ir *ir)
{
    struct spirv_read_check check = {
        .ir = ir, .owner = compiler_allocate(ir->compiler, ir->bound * sizeof(uint32_t))};
    check_section(ir, &ir->extensions);
    check_section(ir, &ir->imports);
    check_section(ir, &ir->entry_points);
    check_section(ir, &ir->modes);
    check_section(ir, &ir->names);
    check_section(ir, &ir->decorations);
    for (const struct ir_inst *inst = ir->globals.first; inst; inst = inst->next)
        if (inst->op == OpTypeStruct || inst->op == OpTypeForwardPointer)
            for (uint32_t i = 0; i < inst->num_operands; i++)
                if ((i == 0 || inst->op == OpTypeStruct) &&
                    !spirv_is_type_op(op_of(ir, inst->operands[i])))
                    spirv_read_check_refuse(ir, inst, "a member is no type");
    for (const struct ir_function *f = ir->functions; f; f = f->next) {
        check.function++;
        spirv_read_check_own(&check, f);
    }
    check.function = 0;
    for (const struct ir_function *f = ir->functions; f; f = f->next) {
        check.function++;
        check_function(&check, f);
    }
    // Here the owners are not needed any longer, and their table has the positions.
    for (const struct ir_function *f = ir->functions; f; f = f->next)
        check_flow(&check, f);
}
