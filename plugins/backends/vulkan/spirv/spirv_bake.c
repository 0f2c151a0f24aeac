// SPDX-License-Identifier: MIT
// A load whose position is known becomes a constant of the words there. Where an index is
// known only when the kernel runs, in a loop say, the variable stays as one of the
// invocation whose initial value is the words: the driver's compiler knows them when it
// unrolls the loop.
#include "spirv_baker.h"

#include <stdlib.h>
#include <string.h>

// --- constants -------------------------------------------------------------------------

static void spirv_bake_write_global(struct baker *b, uint32_t op, const uint32_t *operands,
                                    uint32_t count)
{
    fuser_write(&b->f, &b->f.globals, op, operands, count);
}

// How many elements lie in an array from a byte on.
static uint32_t spirv_bake_length_of(const struct baker *b,
                                     const struct bake_target *target, uint32_t type,
                                     uint32_t offset, uint32_t stride)
{
    const struct parsed_module *m = &b->f.kernel;
    const uint32_t *words = made_by(m, type, OpTypeVector, 3);
    uint32_t length = 0, bytes = target->list->count * 4;
    if (words)
        return words[2];
    words = made_by(m, type, OpTypeArray, 3);
    if (words)
        return baker_value_of(b, words[2], &length) ? length : 0;
    return bytes > offset && stride > 0 ? (bytes - offset) / stride : 0;
}

static uint32_t write_scalar(struct baker *b, const struct bake_target *target,
                             uint32_t type, uint32_t offset, uint32_t id)
{
    const uint32_t *integer = made_by(&b->f.kernel, type, OpTypeInt, 3);
    uint32_t size = baker_size_of(&b->f.kernel, type);
    uint32_t words[] = {type, id, baker_word_at(target, offset),
                        baker_word_at(target, offset + 4)};
    if (size < 4) {
        uint32_t sign = UINT32_C(1) << (size * 8 - 1);
        words[2] = words[2] >> offset % 4 * 8 & (sign | (sign - 1));
        if (integer && integer[2] && (words[2] & sign))
            words[2] |= ~(sign | (sign - 1));
    }
    spirv_bake_write_global(b, OpConstant, words, size == 8 ? 4 : 3);
    return id;
}

static uint32_t spirv_bake_write_constant(struct baker *b, const struct bake_target *target,
                                          uint32_t type, uint32_t offset, uint32_t id,
                                          uint32_t depth);

// Writes a composite of `count` members behind its type, and frees them.
static uint32_t write_composite(struct baker *b, uint32_t *words, uint32_t count,
                                uint32_t type, uint32_t id)
{
    words[0] = b->known[type].clone ? b->known[type].clone : type;
    words[1] = id;
    spirv_bake_write_global(b, OpConstantComposite, words, count + 2);
    free(words);
    return id;
}

static uint32_t spirv_bake_write_members(struct baker *b, const struct bake_target *target,
                                         uint32_t type, uint32_t offset, uint32_t id,
                                         uint32_t depth)
{
    const struct parsed_module *m = &b->f.kernel;
    const uint32_t *members = made_by(m, type, OpTypeStruct, 2);
    uint32_t stride = 0, element = members ? 0 : baker_element_of(b, type, &stride);
    uint32_t count = members ? num_operands(m, m->at[type]) - 1
                             : spirv_bake_length_of(b, target, type, offset, stride);
    bool fits = (members || element) && count > 0 && count <= 2 * SPIRV_MOST_BAKED;
    uint32_t *words = fits ? malloc((count + 2) * sizeof(*words)) : NULL;
    b->f.failed |= fits && !words;
    for (uint32_t i = 0; words && i < count; i++) {
        uint32_t at = i * stride;
        fits = fits && (!members || baker_decoration_of(b, type, i, DecorationOffset, &at));
        words[2 + i] =
            fits ? spirv_bake_write_constant(b, target, members ? members[1 + i] : element,
                                             offset + at, 0, depth + 1)
                 : 0;
        fits = fits && words[2 + i] != 0;
    }
    if (fits && words)
        return write_composite(b, words, count, type, id);
    free(words);
    (void)fuser_refuse(&b->f, "has constants of a type %u that cannot be baked", type);
    return 0;
}

// Writes the constant of a type at a byte of the words; id 0: gives it a new one. 0: it was
// refused.
static uint32_t spirv_bake_write_constant(struct baker *b, const struct bake_target *target,
                                          uint32_t type, uint32_t offset, uint32_t id,
                                          uint32_t depth)
{
    const struct parsed_module *m = &b->f.kernel;
    bool is_vector = made_by(m, type, OpTypeVector, 3);
    id = id ? id : b->f.next_id++;
    if (!is_vector && baker_size_of(m, type) > 0 && baker_size_of(m, type) <= 8)
        return write_scalar(b, target, type, offset, id);
    if (depth > MAX_DEPTH || b->f.failed) {
        (void)fuser_refuse(&b->f, "has types that nest more than %d times", MAX_DEPTH);
        return 0;
    }
    return spirv_bake_write_members(b, target, type, offset, id, depth);
}

// --- variables of the invocation -------------------------------------------------------

static uint32_t clone_type(struct baker *b, const struct bake_target *target, uint32_t type,
                           uint32_t offset, uint32_t depth);

static uint32_t clone_struct(struct baker *b, const struct bake_target *target,
                             uint32_t type, uint32_t depth)
{
    const struct parsed_module *m = &b->f.kernel;
    const uint32_t *members = made_by(m, type, OpTypeStruct, 2);
    uint32_t count = num_operands(m, m->at[type]), offset = 0, id = b->f.next_id++;
    uint32_t *words = malloc(count * sizeof(*words));
    bool fits = words && depth < MAX_DEPTH;
    b->f.failed |= !words;
    for (uint32_t i = 1; fits && i < count; i++) {
        fits = baker_decoration_of(b, type, i - 1, DecorationOffset, &offset);
        words[i] = fits ? clone_type(b, target, members[i], offset, depth + 1) : 0;
        fits = fits && words[i] != 0;
    }
    if (fits) {
        words[0] = id;
        spirv_bake_write_global(b, OpTypeStruct, words, count);
    }
    free(words);
    return fits ? id : 0;
}

static uint32_t clone_array(struct baker *b, const struct bake_target *target,
                            uint32_t type, uint32_t offset, uint32_t depth)
{
    uint32_t stride, element = baker_element_of(b, type, &stride);
    uint32_t length = element ? spirv_bake_length_of(b, target, type, offset, stride) : 0;
    uint32_t inside = length > 0 && depth < MAX_DEPTH
                          ? clone_type(b, target, element, offset, depth + 1)
                          : 0;
    if (inside == 0)
        return 0;
    uint32_t constant = b->f.next_id++, id = b->f.next_id++;
    spirv_bake_write_global(
        b, OpConstant,
        (const uint32_t[]){fuser_find_type(&b->f, OpTypeInt, 32, 0), constant, length}, 3);
    spirv_bake_write_global(b, OpTypeArray, (const uint32_t[]){id, inside, constant}, 3);
    return id;
}

// The type without decorations, which variables of an invocation may not have; 0: there is
// none.
static uint32_t clone_type(struct baker *b, const struct bake_target *target, uint32_t type,
                           uint32_t offset, uint32_t depth)
{
    if (baker_size_of(&b->f.kernel, type) > 0 || b->known[type].clone)
        return b->known[type].clone ? b->known[type].clone : type;
    uint32_t id = made_by(&b->f.kernel, type, OpTypeStruct, 2)
                      ? clone_struct(b, target, type, depth)
                      : clone_array(b, target, type, offset, depth);
    b->known[type].clone = id;
    return id;
}

// Declares the variable anew, with the words as its initial value.
static bool keep_variable(struct baker *b, const struct bake_target *target)
{
    b->looked_at = target->list;
    uint32_t type = clone_type(b, target, target->type, 0, 0);
    if (type == 0)
        return fuser_refuse(&b->f, "has constants of a type %u that cannot be baked",
                            target->type);
    uint32_t value = spirv_bake_write_constant(b, target, target->type, 0, 0, 0);
    uint32_t pointer = fuser_find_type(&b->f, OpTypePointer, StorageClassPrivate, type);
    spirv_bake_write_global(
        b, OpVariable,
        (const uint32_t[]){pointer, target->kept, StorageClassPrivate, value}, 4);
    for (uint32_t id = 0; id < b->f.kernel.bound; id++)
        b->known[id].clone = 0; // lists of another variable may be longer
    return value != 0;
}

// --- the baked module ------------------------------------------------------------------

// An access chain into a variable that is kept: its type is that of a pointer into it.
static bool write_chain(struct baker *b, size_t at)
{
    struct spirv_fuser *f = &b->f;
    const uint32_t *words = &f->kernel.words[at];
    uint32_t type = b->known[words[2]].type;
    size_t begin = f->body.count;
    if (baker_size_of(&f->kernel, type) == 0)
        return true; // nothing is loaded by it
    fuser_append(f, &f->body, words, words[0] >> 16);
    if (f->failed)
        return true;
    f->body.data[begin + 1] =
        fuser_find_type(&b->f, OpTypePointer, StorageClassPrivate, type);
    f->body.data[begin + 3] = b->targets[b->known[words[2]].target - 1].kept;
    return true;
}

static bool spirv_bake_rewrite(struct baker *b, size_t at)
{
    struct spirv_fuser *f = &b->f;
    const struct parsed_module *m = &f->kernel;
    const uint32_t *words = &m->words[at + 1];
    if (baker_named_target(b, at) == 0) {
        fuser_append(f, &f->body, &m->words[at], m->words[at] >> 16);
        return true;
    }
    uint32_t pointer = op_at(m, at) == OpLoad ? words[2] : words[1];
    const struct known *position = &b->known[pointer];
    const struct bake_target *target = &b->targets[position->target - 1];
    if (target->is_open && !baker_is_baked(b, position)) {
        fuser_append(f, &f->body, &m->words[at], m->words[at] >> 16);
        return true;
    }
    if (baker_is_chain(op_at(m, at)))
        return !target->is_kept || position->is_fixed || write_chain(b, at);
    if (position->is_fixed)
        return spirv_bake_write_constant(b, target, words[0], position->offset, words[1],
                                         0) != 0;
    fuser_write(f, &f->body, OpLoad, words, 3);
    return true;
}

// --- values first ----------------------------------------------------------------------

// Whether a pointer is one access chain by constants to a value that is read from a buffer.
static bool spirv_bake_is_value(const struct baker *b, uint32_t pointer)
{
    const struct parsed_module *m = &b->f.kernel;
    if (!baker_is_target(b, pointer))
        return false;
    const struct known *position = &b->known[pointer];
    if (!position->is_fixed || baker_is_baked(b, position))
        return false;
    const struct bake_target *target = &b->targets[position->target - 1];
    size_t at = m->at[pointer];
    if (target->list->moved == SPIRV_PUSH || !baker_is_chain(op_at(m, at)) ||
        m->words[at + 3] != target->variable)
        return false;
    for (uint32_t i = 3; i < num_operands(m, at); i++)
        if (!made_by(m, m->words[at + 1 + i], OpConstant, 3))
            return false;
    return true;
}

// Whether an instruction makes a pointer to a value, or loads one.
static bool reads_value(const struct baker *b, size_t at)
{
    const uint32_t *words = &b->f.kernel.words[at + 1];
    uint32_t op = op_at(&b->f.kernel, at);
    return (op == OpLoad && spirv_bake_is_value(b, words[2])) ||
           (baker_is_chain(op) && spirv_bake_is_value(b, words[1]));
}

// Loads all values of the function that begins at `from`: they are on their way together
// then, and none waits behind a branch, or a store that the driver's compiler takes for one
// to their buffer.
static void write_values(struct baker *b, size_t from)
{
    const struct parsed_module *m = &b->f.kernel;
    for (size_t at = from; at < m->count && op_at(m, at) != OpFunctionEnd;
         at = next_at(m, at))
        if (reads_value(b, at))
            fuser_append(&b->f, &b->f.body, &m->words[at], m->words[at] >> 16);
}

// Writes the functions anew: values are loaded behind the variables of a function's first
// block.
static bool spirv_bake_rewrite_functions(struct baker *b)
{
    const struct parsed_module *m = &b->f.kernel;
    bool is_head = false, is_labelled = false;
    for (size_t at = m->functions; at < m->count && !b->f.failed; at = next_at(m, at)) {
        uint32_t op = op_at(m, at);
        is_head |= op == OpFunction;
        if (is_head && is_labelled && op != OpVariable) {
            write_values(b, at);
            is_head = is_labelled = false;
        }
        is_labelled |= is_head && op == OpLabel;
        if (!reads_value(b, at) && !spirv_bake_rewrite(b, at))
            return false;
    }
    return !b->f.failed;
}

// --- the module ------------------------------------------------------------------------

// An entry point without the variables that are gone.
static void spirv_bake_write_entry(struct baker *b, struct words *out, size_t at)
{
    const struct parsed_module *m = &b->f.kernel;
    size_t begin = out->count, end = next_at(m, at), name = at + 3;
    while (name < end && memchr(&m->words[name], 0, sizeof(uint32_t)) == NULL)
        name++;
    name = name < end ? name + 1 : end;
    fuser_append(&b->f, out, &m->words[at], name - at);
    for (; name < end; name++) {
        const struct bake_target *target =
            baker_is_target(b, m->words[name])
                ? &b->targets[b->known[m->words[name]].target - 1]
                : NULL;
        if (!target || target->is_open)
            fuser_append(&b->f, out, &m->words[name], 1);
        if (target && target->is_kept)
            fuser_append(&b->f, out, &target->kept, 1);
    }
    if (!b->f.failed)
        out->data[begin] = OpEntryPoint | (uint32_t)(out->count - begin) << 16;
}

// Whether the id is a variable that is gone.
static bool spirv_bake_is_gone(const struct baker *b, uint32_t id)
{
    return baker_is_target(b, id) && !b->targets[b->known[id].target - 1].is_open;
}

// Writes decorations of a buffer that takes the place of push constants with open words.
static void write_decorations(struct baker *b, struct words *out)
{
    for (uint32_t i = 0; i < b->num_targets; i++) {
        const struct bake_target *target = &b->targets[i];
        uint32_t id = target->variable;
        if (!target->is_open)
            continue;
        fuser_write(&b->f, out, OpDecorate,
                    (const uint32_t[]){id, DecorationDescriptorSet, 0}, 3);
        fuser_write(&b->f, out, OpDecorate,
                    (const uint32_t[]){id, DecorationBinding, target->list->moved}, 3);
        fuser_write(&b->f, out, OpDecorate, (const uint32_t[]){id, DecorationNonWritable},
                    2);
    }
}

// Appends a declaration, of push constants as that of a buffer where they are one.
static void write_declaration(struct baker *b, struct words *out, size_t at)
{
    const struct parsed_module *m = &b->f.kernel;
    uint32_t op = op_at(m, at);
    size_t begin = out->count, position = op == OpTypePointer ? 2 : 3;
    fuser_append(&b->f, out, &m->words[at], m->words[at] >> 16);
    if (!b->f.failed && b->is_moved && (op == OpTypePointer || op == OpVariable) &&
        out->data[begin + position] == StorageClassPushConstant)
        out->data[begin + position] = StorageClassStorageBuffer;
}

static void spirv_bake_assemble(struct baker *b, struct words *out)
{
    const struct parsed_module *m = &b->f.kernel;
    bool is_decorated = !b->is_moved;
    fuser_append(&b->f, out, m->words, HEADER_WORDS);
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at)) {
        uint32_t op = op_at(m, at);
        if (!is_decorated && (op == OpDecorate || op == OpMemberDecorate)) {
            write_decorations(b, out);
            is_decorated = true;
        }
        bool describes = op == OpName || op == OpDecorate;
        if (op == OpEntryPoint)
            spirv_bake_write_entry(b, out, at);
        else if (!(describes && spirv_bake_is_gone(b, m->words[at + 1])) &&
                 !(op == OpVariable && spirv_bake_is_gone(b, m->words[at + 2])))
            write_declaration(b, out, at);
    }
    fuser_append(&b->f, out, b->f.globals.data, b->f.globals.count);
    fuser_append(&b->f, out, b->f.body.data, b->f.body.count);
    if (!b->f.failed)
        out->data[3] = b->f.next_id;
}

static bool spirv_bake_module(struct baker *b, const struct spirv_words *lists,
                              uint32_t num_lists)
{
    const struct parsed_module *m = &b->f.kernel;
    if (!baker_find_targets(b, lists, num_lists))
        return false;
    for (size_t at = m->functions; at < m->count; at = next_at(m, at))
        if (!baker_look_at(b, at))
            return false;
    for (uint32_t i = 0; i < b->num_targets; i++)
        if (b->targets[i].is_kept && !keep_variable(b, &b->targets[i]))
            return false;
    return spirv_bake_rewrite_functions(b);
}

static void release_words(struct vk_code *code)
{
    free((void *)(uintptr_t)code->words);
}

// False: *refused is the list that cannot be baked, or NULL where nothing can.
static bool spirv_bake_attempt(const struct vk_code *code, const struct spirv_words *lists,
                               uint32_t num_lists, struct words *out,
                               const struct spirv_words **refused, char reason[VK_REASON])
{
    struct baker b = {.f.reason = reason};
    reason[0] = '\0';
    fuser_index(&b.f, &b.f.kernel, code);
    b.f.next_id = b.f.kernel.bound;
    b.known = calloc(b.f.kernel.bound, sizeof(*b.known));
    b.f.failed |= !b.known;
    bool done = !b.f.failed && spirv_bake_module(&b, lists, num_lists);
    if (done)
        spirv_bake_assemble(&b, out);
    free(b.known);
    free(b.f.globals.data);
    free(b.f.body.data);
    free(b.f.kernel.at);
    if (b.f.failed)
        (void)fuser_refuse(&b.f, "cannot be baked: out of memory");
    *refused = b.f.failed ? NULL : b.looked_at;
    return done && !b.f.failed;
}

bool spirv_bake(const struct vk_code *code, const struct spirv_words *lists,
                uint32_t num_lists, struct vk_code *out, char reason[VK_REASON])
{
    struct spirv_words left[VK_MAX_OPERANDS + 1];
    const struct spirv_words *refused = NULL;
    struct words words = {0};
    bool done = false;
    if (num_lists > 0)
        memcpy(left, lists, num_lists * sizeof(left[0]));
    while (!(done = spirv_bake_attempt(code, left, num_lists, &words, &refused, reason)) &&
           refused && refused->binding != SPIRV_PUSH) {
        left[refused - left] = left[--num_lists];
        words.count = 0;
    }
    if (!done) {
        free(words.data);
        return false;
    }
    *out = (struct vk_code){.words = words.data,
                            .size = words.count * sizeof(uint32_t),
                            .release = release_words};
    return true;
}
