// SPDX-License-Identifier: MIT
// What is known in a kernel's module of the words that are baked into it.
#include "spirv_baker.h"

bool baker_decoration_of(const struct baker *b, uint32_t id, int64_t member,
                         uint32_t decoration, uint32_t *out)
{
    const struct parsed_module *m = &b->f.kernel;
    return spirv_find_decoration(m->words, m->functions, id, member, decoration, out);
}

// The value of a constant, or of an id that becomes one.
bool baker_value_of(const struct baker *b, uint32_t id, uint32_t *out)
{
    const struct parsed_module *m = &b->f.kernel;
    const uint32_t *constant = made_by(m, id, OpConstant, 3);
    if (constant)
        *out = constant[2];
    else if (id < m->bound && b->known[id].has_value)
        *out = b->known[id].value;
    else
        return false;
    return true;
}

static bool add_target(struct baker *b, uint32_t variable, const struct spirv_words *list)
{
    const struct parsed_module *m = &b->f.kernel;
    const uint32_t *pointer = made_by(m, type_of(m, variable), OpTypePointer, 3);
    if (!pointer)
        return fuser_refuse(&b->f, "has a variable %u without a type", variable);
    if (b->num_targets == MAX_TARGETS)
        return fuser_refuse(&b->f, "has over %d variables of constants", MAX_TARGETS);
    b->is_moved |= list->open != 0 && list->moved != SPIRV_PUSH;
    b->targets[b->num_targets++] =
        (struct bake_target){.list = list,
                             .variable = variable,
                             .type = pointer[2],
                             .is_open = list->open != 0,
                             .kept = list->open ? b->f.next_id++ : variable};
    b->known[variable] =
        (struct known){.target = b->num_targets, .type = pointer[2], .is_fixed = true};
    return true;
}

// Whether the list is for the variable that these words declare.
static bool spirv_bake_known_is_at(const struct baker *b, const struct spirv_words *list,
                                   const uint32_t *words)
{
    uint32_t binding;
    if (list->binding == SPIRV_PUSH)
        return words[2] == StorageClassPushConstant;
    return words[2] != StorageClassPushConstant &&
           baker_decoration_of(b, words[1], -1, DecorationBinding, &binding) &&
           binding == list->binding;
}

bool baker_find_targets(struct baker *b, const struct spirv_words *lists, uint32_t count)
{
    const struct parsed_module *m = &b->f.kernel;
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at))
        for (uint32_t i = 0; op_at(m, at) == OpVariable && i < count; i++)
            if (spirv_bake_known_is_at(b, &lists[i], &m->words[at + 1]) &&
                !add_target(b, m->words[at + 2], &lists[i]))
                return false;
    return true;
}

// Bytes of a scalar or a vector; 0: it is neither.
uint32_t baker_size_of(const struct parsed_module *m, uint32_t type)
{
    const uint32_t *vector = made_by(m, type, OpTypeVector, 3);
    const uint32_t *words = made_by(m, vector ? vector[1] : type, OpTypeInt, 3);
    words = words ? words : made_by(m, vector ? vector[1] : type, OpTypeFloat, 2);
    return words ? words[1] / 8 * (vector ? vector[2] : 1) : 0;
}

// Whether all words from a byte on are known.
static bool is_closed(const struct bake_target *target, uint32_t offset, uint32_t bytes)
{
    uint32_t first = offset / 4, count = bytes / 4 + (bytes % 4 > 0);
    if (!target->is_open)
        return true;
    if (first >= 64 || count > 64 - first)
        return false;
    for (uint32_t i = first; i < first + count; i++)
        if (target->list->open >> i & 1)
            return false;
    return true;
}

// Whether a load from a position becomes a constant, or one of a variable of the
// invocation.
bool baker_is_baked(const struct baker *b, const struct known *position)
{
    const struct bake_target *target = &b->targets[position->target - 1];
    uint32_t size = baker_size_of(&b->f.kernel, position->type);
    return !target->is_open ||
           (size > 0 && is_closed(target, position->offset,
                                  position->is_fixed ? size : position->reach));
}

// The type of a type's elements, and the bytes from one to the next; 0: it has no elements
// of one type.
uint32_t baker_element_of(const struct baker *b, uint32_t type, uint32_t *stride)
{
    const struct parsed_module *m = &b->f.kernel;
    const uint32_t *words = made_by(m, type, OpTypeVector, 3);
    if (words) {
        *stride = baker_size_of(m, words[1]);
        return words[1];
    }
    words = made_by(m, type, OpTypeArray, 3);
    words = words ? words : made_by(m, type, OpTypeRuntimeArray, 2);
    return words && baker_decoration_of(b, type, -1, DecorationArrayStride, stride)
               ? words[1]
               : 0;
}

// The elements of a vector or an array; UINT16_MAX: of an array without a length.
static uint32_t spirv_bake_known_count_elements(const struct baker *b, uint32_t type)
{
    const struct parsed_module *m = &b->f.kernel;
    const uint32_t *words = made_by(m, type, OpTypeVector, 3);
    uint32_t length = 0;
    if (words)
        return words[2];
    words = made_by(m, type, OpTypeArray, 3);
    return words && baker_value_of(b, words[2], &length) && length < UINT16_MAX
               ? length
               : UINT16_MAX;
}

// Follows one index of an access chain. False: it was refused.
static bool spirv_bake_known_follow(struct baker *b, struct known *position, uint32_t index)
{
    const struct parsed_module *m = &b->f.kernel;
    const uint32_t *members = made_by(m, position->type, OpTypeStruct, 2);
    uint32_t value = 0, stride = 0, offset = 0;
    bool has_value = baker_value_of(b, index, &value);
    if (members && has_value && value + 1 < num_operands(m, m->at[position->type]) &&
        baker_decoration_of(b, position->type, value, DecorationOffset, &offset)) {
        position->type = members[1 + value];
        position->offset += position->is_fixed ? offset : 0;
        return true;
    }
    uint32_t element = members ? 0 : baker_element_of(b, position->type, &stride);
    if (!element || (has_value && value > UINT32_MAX / 2 / (stride + 1)))
        return fuser_refuse(&b->f, "has constants of a type %u that cannot be baked",
                            position->type);
    if (position->is_fixed && !has_value)
        position->reach = spirv_bake_known_count_elements(b, position->type) * stride;
    position->type = element;
    position->offset += position->is_fixed ? value * stride : 0;
    position->is_fixed = position->is_fixed && has_value;
    return true;
}

uint32_t baker_word_at(const struct bake_target *target, uint32_t offset)
{
    return offset / 4 < target->list->count ? target->list->words[offset / 4] : 0;
}

bool baker_is_target(const struct baker *b, uint32_t id)
{
    return id < b->f.kernel.bound && b->known[id].target > 0;
}

static bool look_at_load(struct baker *b, const uint32_t *words)
{
    const struct known *position = &b->known[words[2]];
    struct bake_target *target = &b->targets[position->target - 1];
    if (!baker_is_baked(b, position))
        return true;
    if (!position->is_fixed && baker_size_of(&b->f.kernel, words[0]) == 0)
        return fuser_refuse(&b->f, "loads a list of constants at a place that is computed");
    target->is_kept |= !position->is_fixed;
    if (position->is_fixed && baker_size_of(&b->f.kernel, words[0]) == 4) {
        b->known[words[1]].has_value = true;
        b->known[words[1]].value = baker_word_at(target, position->offset);
    }
    return true;
}

// The number of the variable of constants that an instruction names, or has a pointer into;
// 0: none.
uint32_t baker_named_target(const struct baker *b, size_t at)
{
    const struct parsed_module *m = &b->f.kernel;
    struct spirv_ids ids = ids_at(m, at);
    for (const uint32_t *id; (id = spirv_next_id(&ids)) != NULL;)
        if (baker_is_target(b, *id))
            return b->known[*id].target;
    return 0;
}

bool baker_is_chain(uint32_t op)
{
    return op == OpAccessChain || op == OpInBoundsAccessChain;
}

// Notes what an instruction makes known.
bool baker_look_at(struct baker *b, size_t at)
{
    const struct parsed_module *m = &b->f.kernel;
    const uint32_t *words = &m->words[at + 1];
    uint32_t op = op_at(m, at), count = num_operands(m, at), one, other;
    if (op == OpIAdd && baker_value_of(b, words[2], &one) &&
        baker_value_of(b, words[3], &other) && baker_size_of(m, words[0]) == 4) {
        b->known[words[1]].has_value = true;
        b->known[words[1]].value = (uint32_t)((uint64_t)one + other);
    }
    uint32_t target = baker_named_target(b, at);
    if (target == 0)
        return true;
    b->looked_at = b->targets[target - 1].list;
    if (op == OpLoad && count >= 3)
        return look_at_load(b, words);
    if (!baker_is_chain(op) || count < 4 || !baker_is_target(b, words[2]))
        return fuser_refuse(&b->f,
                            "reaches its constants by an instruction %u, expected "
                            "that it loads them",
                            op);
    struct known position = b->known[words[2]];
    for (uint32_t i = 3; i < count; i++)
        if (!spirv_bake_known_follow(b, &position, words[i]))
            return false;
    if (!position.is_fixed && words[2] != b->targets[position.target - 1].variable)
        return fuser_refuse(&b->f,
                            "reaches its constants by one access chain into another");
    b->known[words[1]] = position;
    return true;
}
