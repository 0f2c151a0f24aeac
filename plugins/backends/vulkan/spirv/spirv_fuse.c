// SPDX-License-Identifier: MIT
// Rewrites the loads and stores of a kernel's module, and puts it together with what comes
// from the program.
#include "spirv_fuse.h"

#include <stdlib.h>
#include <string.h>
#include "spirv_fuser.h"

#define WITH_VARIABLES 0x00010400u // from SPIR-V 1.4 on, entry points list all variables

// --- the kernel ------------------------------------------------------------------------

// Bits of a scalar, or of a vector of scalars of 32 bits at least; 0: another type.
static uint32_t spirv_fuse_bits_of(const struct parsed_module *m, uint32_t type)
{
    const uint32_t *vector = made_by(m, type, OpTypeVector, 3);
    uint32_t count = vector ? vector[2] : 1, scalar = vector ? vector[1] : type;
    const uint32_t *words = made_by(m, scalar, OpTypeInt, 3);
    words = words ? words : made_by(m, scalar, OpTypeFloat, 2);
    bool fits = words && words[1] <= 64 && count <= 4 && (!vector || words[1] >= 32);
    return fits ? words[1] * count : 0;
}

// Checks that the variable's block is an array of elements and nothing else.
static bool spirv_fuse_check_block(struct spirv_fuser *f, uint32_t variable)
{
    const struct parsed_module *m = &f->kernel;
    const uint32_t *pointer = made_by(m, type_of(m, variable), OpTypePointer, 3);
    const uint32_t *block = pointer ? made_by(m, pointer[2], OpTypeStruct, 2) : NULL;
    const uint32_t *array = NULL;
    if (block && num_operands(m, m->at[pointer[2]]) == 2) {
        array = made_by(m, block[1], OpTypeRuntimeArray, 2);
        array = array ? array : made_by(m, block[1], OpTypeArray, 3);
    }
    if (!array)
        return fuser_refuse(f, "has at binding %u no array alone, expected one of dtype %s",
                            f->fused->binding, tn_dtype_name(f->fused->dtype));
    uint32_t bits = (uint32_t)tn_dtype_bytes(f->fused->dtype) * 8;
    bits *= f->fused->count > 1 ? f->fused->count : 1;
    if (spirv_fuse_bits_of(m, array[1]) == bits)
        return true;
    return fuser_refuse(f,
                        "has at binding %u elements of %u bits, expected %u for dtype %s",
                        f->fused->binding, spirv_fuse_bits_of(m, array[1]), bits,
                        tn_dtype_name(f->fused->dtype));
}

// Finds the variables at the binding.
static bool find_targets(struct spirv_fuser *f)
{
    const struct parsed_module *m = &f->kernel;
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at)) {
        const uint32_t *words = &m->words[at + 1];
        if (op_at(m, at) != OpDecorate || num_operands(m, at) < 3 ||
            words[1] != DecorationBinding || words[2] != f->fused->binding ||
            words[0] >= m->bound)
            continue;
        f->is_target[words[0]] = true;
    }
    for (uint32_t id = 0; id < m->bound; id++)
        if (f->is_target[id] && !spirv_fuse_check_block(f, id))
            return false;
    return true;
}

// Appends a conversion, if the types differ; gives the value's id.
static uint32_t spirv_fuse_convert(struct spirv_fuser *f, uint32_t value, uint32_t from,
                                   uint32_t to, uint32_t op)
{
    if (from == to)
        return value;
    uint32_t id = f->next_id++;
    fuser_write(f, &f->body, op, (const uint32_t[]){to, id, value}, 3);
    return id;
}

// The number of the element that an access chain points to, in the function's type.
static uint32_t spirv_fuse_write_number(struct spirv_fuser *f, uint32_t number)
{
    const struct parsed_module *m = &f->kernel;
    uint32_t type = type_of(m, number);
    const uint32_t *words = made_by(m, type, OpTypeInt, 3);
    return spirv_fuse_convert(f, number, type, f->number_type,
                              words && words[1] == 32 ? OpBitcast : OpUConvert);
}

// The type of the bits of an element that the kernel has in this type: the same, but for
// 16-bit floats.
static uint32_t spirv_fuse_bits_type(struct spirv_fuser *f, uint32_t type)
{
    const uint32_t *words = made_by(&f->kernel, type, OpTypeFloat, 2);
    if (!words || words[1] != 16)
        return type;
    f->needs_i16 = true;
    return fuser_find_type(f, OpTypeInt, 16, 0);
}

// The instruction between an element's bits and the function's element, which has 32 bits
// at least.
static uint32_t spirv_fuse_conversion(const struct spirv_fuser *f, bool to_signed)
{
    if (tn_dtype_bytes(f->fused->dtype) >= 4)
        return OpBitcast;
    return to_signed ? OpSConvert : OpUConvert;
}

// The number of the element that a pointer of the kernel points to; 0: it is no pointer to
// the operand.
static uint32_t spirv_fuse_number_of(const struct spirv_fuser *f, uint32_t id)
{
    return id < f->kernel.bound ? f->numbers[id] : 0;
}

static bool write_store(struct spirv_fuser *f, size_t at)
{
    const uint32_t *words = &f->kernel.words[at + 1];
    uint32_t type = type_of(&f->kernel, words[1]);
    if (type == 0)
        return fuser_refuse(f, "stores a value of unknown type to binding %u",
                            f->fused->binding);
    bool is_signed = tn_is_signed(f->fused->dtype) && !tn_is_float(f->fused->dtype);
    uint32_t number = spirv_fuse_write_number(f, f->numbers[words[0]]),
             bits = spirv_fuse_bits_type(f, type);
    uint32_t value = spirv_fuse_convert(f, words[1], type, bits, OpBitcast);
    value = spirv_fuse_convert(f, value, bits, f->element_type,
                               spirv_fuse_conversion(f, is_signed));
    const uint32_t call[] = {f->result_type, f->next_id++, f->function, number, value};
    fuser_write(f, &f->body, OpFunctionCall, call, 5);
    return true;
}

// The last instruction gives the result that the load gave.
static bool spirv_fuse_write_load(struct spirv_fuser *f, size_t at)
{
    const uint32_t *words = &f->kernel.words[at + 1];
    const uint32_t *type = made_by(&f->kernel, words[0], OpTypeInt, 3);
    uint32_t number = spirv_fuse_write_number(f, f->numbers[words[2]]),
             bits = spirv_fuse_bits_type(f, words[0]);
    uint32_t op = spirv_fuse_conversion(f, type && type[2] != 0), value = f->next_id++;
    bool is_same = words[0] == f->element_type;
    const uint32_t call[] = {f->result_type, is_same ? words[1] : value, f->function,
                             number};
    fuser_write(f, &f->body, OpFunctionCall, call, 4);
    if (bits != words[0]) {
        value = spirv_fuse_convert(f, value, f->element_type, bits, op);
        op = OpBitcast;
    }
    if (!is_same)
        fuser_write(f, &f->body, op, (const uint32_t[]){words[0], words[1], value}, 3);
    return true;
}

// Whether an instruction has the id of a variable at the binding, or of a pointer into it.
static bool names_target(const struct spirv_fuser *f, size_t at)
{
    const struct parsed_module *m = &f->kernel;
    struct spirv_ids ids = ids_at(m, at);
    for (const uint32_t *id; (id = spirv_next_id(&ids)) != NULL;)
        if (*id < m->bound && (f->is_target[*id] || f->numbers[*id] != 0))
            return true;
    return false;
}

static void copy_insn(struct spirv_fuser *f, size_t at)
{
    fuser_append(f, &f->body, &f->kernel.words[at],
                 (size_t)num_operands(&f->kernel, at) + 1);
}

// Rewrites an instruction that reaches the operand. An access chain stays: it does nothing.
static bool spirv_fuse_rewrite(struct spirv_fuser *f, size_t at)
{
    const struct parsed_module *m = &f->kernel;
    const uint32_t *words = &m->words[at + 1];
    uint32_t op = op_at(m, at), count = num_operands(m, at);
    bool is_output = f->fused->is_output;
    if ((op == OpAccessChain || op == OpInBoundsAccessChain) && count == 5 &&
        words[2] < m->bound && f->is_target[words[2]] && words[1] < m->bound &&
        type_of(m, words[4]) != 0) {
        f->numbers[words[1]] = words[4];
        copy_insn(f, at);
        return true;
    }
    if (op == OpStore && count >= 2 && is_output &&
        spirv_fuse_number_of(f, words[0]) != 0 && spirv_fuse_number_of(f, words[1]) == 0)
        return write_store(f, at);
    if (op == OpLoad && count >= 3 && !is_output && spirv_fuse_number_of(f, words[2]) != 0)
        return spirv_fuse_write_load(f, at);
    return fuser_refuse(f,
                        "reaches binding %u by an instruction %u, expected that it only %s "
                        "single elements",
                        f->fused->binding, op, is_output ? "stores" : "loads");
}

static bool spirv_fuse_rewrite_functions(struct spirv_fuser *f)
{
    const struct parsed_module *m = &f->kernel;
    for (size_t at = m->functions; at < m->count && !f->failed; at = next_at(m, at)) {
        if (!names_target(f, at))
            copy_insn(f, at);
        else if (!spirv_fuse_rewrite(f, at))
            return false;
    }
    return !f->failed;
}

// --- the linked module -----------------------------------------------------------------

// The sections of a module, in their order. Debug information stands before decorations.
enum section { CAPABILITIES, EXTENSIONS, IMPORTS, ENTRIES, DECORATIONS, GLOBALS };

static enum section spirv_fuse_section_of(uint32_t op)
{
    if (op == OpCapability)
        return CAPABILITIES;
    if (op == OpExtension)
        return EXTENSIONS;
    if (op == OpExtInstImport)
        return IMPORTS;
    enum { GROUP_MEMBER_DECORATE = 75, DECORATE_STRING = 5632 }; // the table has none
    bool describes = (op >= OpDecorate && op <= GROUP_MEMBER_DECORATE) ||
                     op == OpDecorateId || op == DECORATE_STRING ||
                     op == DECORATE_STRING + 1;
    if (op < OpTypeVoid || op == OpModuleProcessed || op == OpExecutionModeId)
        return ENTRIES;
    return describes ? DECORATIONS : GLOBALS;
}

// Appends the program's capabilities or extensions that the kernel has not.
static void add_missing(struct spirv_fuser *f, struct words *out, uint32_t wanted)
{
    const struct parsed_module *from = &f->program, *m = &f->kernel;
    for (size_t at = HEADER_WORDS; at < from->functions; at = next_at(from, at)) {
        size_t size = (from->words[at] >> 16) * sizeof(uint32_t), has = HEADER_WORDS;
        if (op_at(from, at) != wanted)
            continue;
        while (has < m->functions && (m->words[has] != from->words[at] ||
                                      memcmp(&m->words[has], &from->words[at], size) != 0))
            has = next_at(m, has);
        if (has >= m->functions)
            fuser_append(f, out, &from->words[at], size / sizeof(uint32_t));
    }
}

// Whether a module declares a capability.
static bool has_capability(const struct parsed_module *m, uint32_t capability)
{
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at))
        if (op_at(m, at) == OpCapability && m->words[at + 1] == capability)
            return true;
    return false;
}

// Appends the program's part of a section.
static void add_section(struct spirv_fuser *f, struct words *out, enum section section)
{
    if (section == CAPABILITIES && f->needs_i16 &&
        !has_capability(&f->kernel, CapabilityInt16) &&
        !has_capability(&f->program, CapabilityInt16))
        fuser_write(f, out, OpCapability, (const uint32_t[]){CapabilityInt16}, 1);
    if (section == CAPABILITIES || section == EXTENSIONS)
        add_missing(f, out, section == CAPABILITIES ? OpCapability : OpExtension);
    else if (section == IMPORTS)
        fuser_append(f, out, f->imports.data, f->imports.count);
    else if (section == DECORATIONS)
        fuser_append(f, out, f->decorations.data, f->decorations.count);
    else if (section == GLOBALS)
        fuser_append(f, out, f->globals.data, f->globals.count);
}

// Appends an entry point with the variables that the program brings.
static void spirv_fuse_add_entry(struct spirv_fuser *f, struct words *out, size_t at)
{
    size_t begin = out->count;
    fuser_append(f, out, &f->kernel.words[at], f->kernel.words[at] >> 16);
    for (size_t i = 0; i < f->globals.count; i += f->globals.data[i] >> 16)
        if ((f->globals.data[i] & 0xffff) == OpVariable)
            fuser_append(f, out, &f->globals.data[i + 2], 1);
    if (!f->failed)
        out->data[begin] = OpEntryPoint | (uint32_t)(out->count - begin) << 16;
}

// Puts the program's part of each section behind the kernel's.
static void spirv_fuse_assemble(struct spirv_fuser *f, struct words *out)
{
    const struct parsed_module *m = &f->kernel;
    enum section section = CAPABILITIES;
    fuser_append(f, out, m->words, HEADER_WORDS);
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at)) {
        for (; section < spirv_fuse_section_of(op_at(m, at)); section++)
            add_section(f, out, section);
        if (op_at(m, at) == OpEntryPoint && m->words[1] >= WITH_VARIABLES)
            spirv_fuse_add_entry(f, out, at);
        else
            fuser_append(f, out, &m->words[at], m->words[at] >> 16);
    }
    for (; section <= GLOBALS; section++)
        add_section(f, out, section);
    fuser_append(f, out, f->body.data, f->body.count);
    fuser_append(f, out, f->code.data, f->code.count);
    if (f->failed)
        return;
    if (f->program.words[1] > out->data[1])
        out->data[1] = f->program.words[1];
    out->data[3] = f->next_id;
}

static void spirv_fuse_finish(struct spirv_fuser *f)
{
    struct words *all[] = {&f->imports, &f->decorations, &f->globals, &f->code, &f->body};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]->data);
    free(f->kernel.at);
    free(f->program.at);
    free(f->map);
    free(f->is_written);
    free(f->numbers);
    free(f->is_target);
}

static void release_words(struct vk_code *code)
{
    free((void *)(uintptr_t)code->words);
}

bool spirv_fuse(const struct vk_code *kernel, const struct spirv_fused *fused,
                struct vk_code *out, char reason[VK_REASON])
{
    struct spirv_fuser f = {.fused = fused, .reason = reason};
    struct words words = {0};
    reason[0] = '\0';
    fuser_index(&f, &f.kernel, kernel);
    fuser_index(&f, &f.program, fused->program);
    f.next_id = f.kernel.bound;
    f.numbers = calloc(f.kernel.bound, sizeof(*f.numbers));
    f.is_target = calloc(f.kernel.bound, sizeof(*f.is_target));
    f.failed = f.failed || !f.numbers || !f.is_target;
    bool done = !f.failed && find_targets(&f) && fuser_take_program(&f) &&
                spirv_fuse_rewrite_functions(&f);
    if (done && f.needs_i16 && !fused->has_i16)
        done = fuser_refuse(
            &f, "has at binding %u floats of 16 bits, and the device no integers",
            fused->binding);
    if (done && f.next_id > SPIRV_MAX_BOUND)
        done = fuser_refuse(&f, "has %u ids with the program, expected at most %u",
                            f.next_id, SPIRV_MAX_BOUND);
    if (done)
        spirv_fuse_assemble(&f, &words);
    spirv_fuse_finish(&f);
    if (f.failed)
        (void)fuser_refuse(&f, "cannot be linked with a program: out of memory");
    if (!done || f.failed) {
        free(words.data);
        return false;
    }
    *out = (struct vk_code){.words = words.data,
                            .size = words.count * sizeof(uint32_t),
                            .release = release_words};
    return true;
}
