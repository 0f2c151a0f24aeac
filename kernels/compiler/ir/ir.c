// SPDX-License-Identifier: MIT
// The module: ids, lists, functions and blocks. types.c has types and constants.
#include "ir.h"
#include "../../spirv/numbers.h"
#include "intern.h"

#include <string.h>

static uint8_t ir_shape_of(const char *pattern)
{
    while (*pattern == '!' || *pattern == '~' || *pattern == 't' || *pattern == 'r')
        pattern++;
    uint8_t count = 0;
    for (; *pattern == 'i'; pattern++)
        count++;
    if (*pattern == 'I' || *pattern == '\0')
        return SHAPE_ALL;
    if (*pattern == 'm' && pattern[1] == '\0')
        return SHAPE_MEMORY | count;
    return strcspn(pattern, "iImPo") == strlen(pattern) ? count : SHAPE_OTHER;
}

static void note_shapes(struct ir_intern *interned)
{
    for (uint32_t op = 0; op < NUM_SHAPES; op++) {
        const char *pattern = spirv_pattern(op);
        interned->shapes[op] = pattern ? ir_shape_of(pattern) : SHAPE_OTHER;
        interned->kinds[op] = !pattern || spirv_has_effects(pattern) ? HAS_EFFECTS
                              : spirv_is_pure(pattern)               ? IS_PURE
                                                                     : 0;
    }
}

struct ir *ir_create(struct compiler *c, uint32_t version)
{
    struct ir *ir = compiler_allocate(c, sizeof(*ir));
    ir->compiler = c;
    ir->version = version;
    ir->bound = 1;
    ir->memory_model = MemoryModelGLSL450;
    ir->interned = compiler_allocate(c, sizeof(*ir->interned));
    note_shapes(ir->interned);
    ir->shapes = ir->interned->shapes;
    return ir;
}

void ir_reserve_ids(struct ir *ir, uint32_t bound)
{
    while (bound > ir->capacity) {
        uint32_t capacity = ir->capacity, same = ir->capacity;
        ir->definitions = compiler_grow(ir->compiler, ir->definitions, ir->capacity,
                                        &capacity, sizeof(*ir->definitions));
        ir->labels = compiler_grow(ir->compiler, ir->labels, ir->capacity, &same,
                                   sizeof(*ir->labels));
        ir->capacity = capacity < same ? capacity : same;
    }
    if (bound > ir->bound)
        ir->bound = bound;
}

uint32_t ir_new_id(struct ir *ir)
{
    ir_reserve_ids(ir, ir->bound + 1);
    return ir->bound - 1;
}

enum { FIRST_SCRATCH = 64 << 10 };

void *ir_scratch_raw(struct ir *ir, size_t size)
{
    struct ir_intern *interned = ir->interned;
    size = (size + 15) & ~(size_t)15;
    if (size > interned->scratch_size - interned->scratch_used) {
        size_t twice = interned->scratch_size * 2;
        interned->scratch_size = twice > size ? twice : size;
        if (interned->scratch_size < FIRST_SCRATCH)
            interned->scratch_size = FIRST_SCRATCH;
        interned->scratch = compiler_allocate(ir->compiler, interned->scratch_size);
        interned->scratch_used = 0;
    }
    void *memory = interned->scratch + interned->scratch_used;
    interned->scratch_used += size;
    return memory;
}

void *ir_scratch(struct ir *ir, size_t size)
{
    return memset(ir_scratch_raw(ir, size), 0, size);
}

void ir_scratch_reset(struct ir *ir)
{
    ir->interned->scratch_used = 0;
}

// --- lists -------------------------------------------------------------------------------

struct ir_inst *ir_inst(struct ir *ir, uint32_t op, uint32_t type, uint32_t id,
                        uint32_t count, const uint32_t *operands)
{
    struct ir_inst *inst =
        compiler_allocate(ir->compiler, sizeof(*inst) + count * sizeof(*operands));
    inst->op = (uint16_t)op;
    inst->type = type;
    inst->id = id;
    inst->num_operands = count;
    inst->operands = (uint32_t *)(inst + 1);
    if (count)
        memcpy(inst->operands, operands, count * sizeof(*operands));
    if (id)
        ir->definitions[id] = inst;
    return inst;
}

void ir_set_operands(struct ir *ir, struct ir_inst *inst, uint32_t count,
                     const uint32_t *operands)
{
    if (count > inst->num_operands)
        inst->operands = compiler_allocate(ir->compiler, count * sizeof(*operands));
    if (count)
        memmove(inst->operands, operands, count * sizeof(*operands));
    inst->num_operands = count;
}

static void link_before(struct ir_insts *list, struct ir_inst *before, struct ir_inst *inst)
{
    inst->next = before;
    inst->previous = before ? before->previous : list->last;
    *(inst->previous ? &inst->previous->next : &list->first) = inst;
    *(before ? &before->previous : &list->last) = inst;
}

void ir_append(struct ir_insts *section, struct ir_inst *inst)
{
    link_before(section, NULL, inst);
}

void ir_remove_from(struct ir_insts *section, struct ir_inst *inst)
{
    *(inst->previous ? &inst->previous->next : &section->first) = inst->next;
    *(inst->next ? &inst->next->previous : &section->last) = inst->previous;
    inst->previous = inst->next = NULL;
}

void ir_insert(struct ir_block *block, struct ir_inst *before, struct ir_inst *inst)
{
    inst->block = block;
    link_before(&block->insts, before, inst);
}

void ir_remove(struct ir_inst *inst)
{
    ir_remove_from(&inst->block->insts, inst);
    inst->block = NULL;
}

// --- the module --------------------------------------------------------------------------

// Whether the source's target has the capability.
static bool is_available(const struct ir *ir, uint32_t capability)
{
    const struct glsl_source *source = ir->compiler->source;
    if (!source || !source->capabilities)
        return true;
    for (size_t i = 0; i < source->num_capabilities; i++)
        if (source->capabilities[i] == capability)
            return true;
    return false;
}

void ir_capability(struct ir *ir, uint32_t capability, const struct position *at)
{
    for (uint32_t i = 0; i < ir->num_capabilities; i++)
        if (ir->capabilities[i] == capability)
            return;
    if (!is_available(ir, capability)) {
        const char *name = spirv_capability_name(capability);
        compiler_fail(ir->compiler, at,
                      "this needs the capability %s (%u of SPIR-V), which the device does "
                      "not have",
                      name ? name : "without a name", capability);
    }
    uint32_t *capacity = &ir->interned->capability_capacity;
    if (ir->num_capabilities == *capacity)
        ir->capabilities =
            compiler_grow(ir->compiler, ir->capabilities, ir->num_capabilities, capacity,
                          sizeof(*ir->capabilities));
    ir->capabilities[ir->num_capabilities++] = capability;
}

// An instruction whose operands are some words, a text as SPIR-V has texts, and more words.
static struct ir_inst *inst_of_text(struct ir *ir, uint32_t op, uint32_t id,
                                    uint32_t before, const uint32_t *words,
                                    const char *text)
{
    size_t size = strlen(text);
    if (size > UINT16_MAX)
        compiler_fail(ir->compiler, NULL, "a name of %zu bytes, expected at most %u", size,
                      UINT16_MAX);
    uint32_t count = before + (uint32_t)size / 4 + 1;
    uint32_t *operands = compiler_allocate(ir->compiler, count * sizeof(*operands));
    if (before)
        memcpy(operands, words, before * sizeof(*words));
    for (size_t i = 0; i < size; i++)
        operands[before + i / 4] |= (uint32_t)(unsigned char)text[i] << 8 * (i % 4);
    return ir_inst(ir, op, 0, id, count, operands);
}

// Finds, or appends, OpExtension or OpExtInstImport.
static struct ir_inst *say_once(struct ir *ir, struct ir_insts *section, uint32_t op,
                                const char *name)
{
    struct ir_inst *made = inst_of_text(ir, op, 0, 0, NULL, name);
    for (struct ir_inst *inst = section->first; inst; inst = inst->next)
        if (inst->num_operands == made->num_operands &&
            !memcmp(inst->operands, made->operands, made->num_operands * sizeof(uint32_t)))
            return inst;
    ir_append(section, made);
    return made;
}

void ir_extension(struct ir *ir, const char *name)
{
    say_once(ir, &ir->extensions, OpExtension, name);
}

uint32_t ir_import(struct ir *ir, const char *name)
{
    struct ir_inst *inst = say_once(ir, &ir->imports, OpExtInstImport, name);
    if (!inst->id) {
        inst->id = ir_new_id(ir);
        ir->definitions[inst->id] = inst;
    }
    return inst->id;
}

void ir_entry_point(struct ir *ir, const struct ir_function *function, const char *name)
{
    const uint32_t words[] = {ExecutionModelGLCompute, function->head->id};
    ir_append(&ir->entry_points, inst_of_text(ir, OpEntryPoint, 0, 2, words, name));
}

void ir_mode(struct ir *ir, uint32_t op, const struct ir_function *function, uint32_t mode,
             uint32_t count, const uint32_t *operands)
{
    uint32_t *words = compiler_allocate(ir->compiler, (count + 2) * sizeof(*words));
    words[0] = function->head->id;
    words[1] = mode;
    if (count)
        memcpy(words + 2, operands, count * sizeof(*words));
    ir_append(&ir->modes, ir_inst(ir, op, 0, 0, count + 2, words));
}

void ir_name(struct ir *ir, uint32_t id, const char *text)
{
    ir_append(&ir->names, inst_of_text(ir, OpName, 0, 1, &id, text));
}

static void compiler_ir_decorate(struct ir *ir, uint32_t op, const uint32_t *head,
                                 uint32_t num_head, uint32_t count,
                                 const uint32_t *literals)
{
    uint32_t *words = compiler_allocate(ir->compiler, (count + num_head) * sizeof(*words));
    memcpy(words, head, num_head * sizeof(*words));
    if (count)
        memcpy(words + num_head, literals, count * sizeof(*words));
    ir_append(&ir->decorations, ir_inst(ir, op, 0, 0, count + num_head, words));
}

void ir_decorate(struct ir *ir, uint32_t id, uint32_t decoration, uint32_t count,
                 const uint32_t *literals)
{
    compiler_ir_decorate(ir, OpDecorate, (uint32_t[]){id, decoration}, 2, count, literals);
    ir_note_decoration(ir, id, decoration);
}

void ir_decorate_member(struct ir *ir, uint32_t id, uint32_t member, uint32_t decoration,
                        uint32_t count, const uint32_t *literals)
{
    compiler_ir_decorate(ir, OpMemberDecorate, (uint32_t[]){id, member, decoration}, 3,
                         count, literals);
}

// --- functions ---------------------------------------------------------------------------

struct ir_function *ir_function(struct ir *ir, uint32_t result, uint32_t count,
                                const uint32_t *types, uint32_t *parameters)
{
    uint32_t *signature = compiler_allocate(ir->compiler, (count + 1) * sizeof(*signature));
    signature[0] = result;
    if (count)
        memcpy(signature + 1, types, count * sizeof(*types));
    uint32_t type = ir_type(ir, OpTypeFunction, count + 1, signature);
    struct ir_function *function = compiler_allocate(ir->compiler, sizeof(*function));
    function->head = ir_inst(ir, OpFunction, result, ir_new_id(ir), 2,
                             (uint32_t[]){FunctionControlNone, type});
    for (uint32_t i = 0; i < count; i++) {
        parameters[i] = ir_new_id(ir);
        ir_append(&function->parameters,
                  ir_inst(ir, OpFunctionParameter, types[i], parameters[i], 0, NULL));
    }
    ir_add_function(ir, function);
    return function;
}

void ir_add_function(struct ir *ir, struct ir_function *function)
{
    *(ir->last_function ? &ir->last_function->next : &ir->functions) = function;
    ir->last_function = function;
}

struct ir_block *ir_block(struct ir *ir)
{
    struct ir_block *block = compiler_allocate(ir->compiler, sizeof(*block));
    block->id = ir_new_id(ir);
    ir->labels[block->id] = block;
    return block;
}

void ir_append_block(struct ir *ir, struct ir_function *function, struct ir_block *block)
{
    block->function = function;
    block->previous = function->last;
    *(function->last ? &function->last->next : &function->first) = block;
    function->last = block;
    ir->at = block;
}

uint32_t ir_local(struct ir *ir, uint32_t pointer_type)
{
    struct ir_block *first = ir->at->function->first;
    struct ir_intern *interned = ir->interned;
    struct ir_inst *inst = ir_inst(ir, OpVariable, pointer_type, ir_new_id(ir), 1,
                                   (uint32_t[]){StorageClassFunction});
    // Variables come first, in the order in which they were made.
    bool is_next = interned->last_local && interned->last_local->block == first;
    ir_insert(first, is_next ? interned->last_local->next : first->insts.first, inst);
    interned->last_local = inst;
    return inst->id;
}

uint32_t ir_emit(struct ir *ir, uint32_t op, uint32_t type, uint32_t count,
                 const uint32_t *operands)
{
    uint32_t id = type ? ir_new_id(ir) : 0;
    struct ir_inst *inst = ir_inst(ir, op, type, id, count, operands);
    if (ir->at)
        ir_insert(ir->at, NULL, inst);
    return id;
}

uint32_t ir_extended(struct ir *ir, uint32_t number, uint32_t type, uint32_t count,
                     const uint32_t *operands)
{
    enum { MOST = 8 };
    uint32_t words[2 + MOST] = {ir_import(ir, "GLSL.std.450"), number};
    if (count > MOST)
        compiler_fail(ir->compiler, NULL,
                      "%u operands of an extended instruction, expected at most %d", count,
                      MOST);
    memcpy(words + 2, operands, count * sizeof(*operands));
    return ir_emit(ir, OpExtInst, type, 2 + count, words);
}

bool ir_is_ended(const struct ir *ir)
{
    const struct ir_inst *last = ir->at ? ir->at->insts.last : NULL;
    return last && spirv_is_end(last->op);
}

// --- operands ----------------------------------------------------------------------------

struct spirv_ids ir_ids(const struct ir *ir, const struct ir_inst *inst)
{
    uint32_t shape = inst->op < NUM_SHAPES ? ir->shapes[inst->op] : SHAPE_OTHER;
    uint32_t count =
        shape == SHAPE_ALL ? inst->num_operands : shape & ~(uint32_t)SHAPE_MEMORY;
    // A mask and an alignment bring no ids; scopes do.
    enum { HAS_SCOPES = 0x18 };
    bool is_other =
        shape == SHAPE_OTHER || count > inst->num_operands ||
        ((shape & SHAPE_MEMORY) && inst->num_operands > count &&
         (inst->num_operands > count + 2 || inst->operands[count] & HAS_SCOPES));
    if (is_other)
        return ir_ids_by_pattern(ir, inst);
    return (struct spirv_ids){"I", NULL, inst->operands, inst->operands + count, 1, 0};
}

struct spirv_ids ir_ids_by_pattern(const struct ir *ir, const struct ir_inst *inst)
{
    uint32_t width = 1;
    if (inst->op == OpSwitch && inst->num_operands) {
        const struct ir_inst *selector = ir_definition(ir, inst->operands[0]);
        const struct ir_inst *type = selector ? ir_definition(ir, selector->type) : NULL;
        width = type && type->op == OpTypeInt && type->operands[0] > 32 ? 2 : 1;
    }
    return spirv_ids_behind_result(inst->op, inst->operands, inst->num_operands, width);
}

// Tells whether OpExtInst has effects: known of GLSL.std.450, whose instructions write
// through pointers or do not; assumed of other sets.
static bool extended_has_effects(const struct ir *ir, const struct ir_inst *inst)
{
    const struct ir_inst *set = ir_definition(ir, inst->operands[0]);
    static const uint32_t glsl[] = {0x4c534c47, 0x6474732e, 0x3035342e, 0};
    if (!set || set->num_operands != 4 || memcmp(set->operands, glsl, sizeof(glsl)) != 0)
        return true;
    return inst->operands[1] == GlslModf || inst->operands[1] == GlslFrexp;
}

// Properties of an instruction by its number.
static uint32_t ir_kind_of(const struct ir *ir, uint32_t op)
{
    if (op < NUM_SHAPES)
        return ir->interned->kinds[op];
    const char *pattern = spirv_pattern(op);
    return !pattern || spirv_has_effects(pattern) ? HAS_EFFECTS
           : spirv_is_pure(pattern)               ? IS_PURE
                                                  : 0;
}

bool ir_has_effects(const struct ir *ir, const struct ir_inst *inst)
{
    if (inst->op == OpLoad)
        return inst->num_operands > 1 && (inst->operands[1] & MemoryAccessVolatile);
    return (ir_kind_of(ir, inst->op) & HAS_EFFECTS) ||
           (inst->op == OpExtInst && extended_has_effects(ir, inst));
}

bool ir_is_pure(const struct ir *ir, const struct ir_inst *inst)
{
    return (ir_kind_of(ir, inst->op) & IS_PURE) &&
           (inst->op != OpExtInst || !extended_has_effects(ir, inst));
}
