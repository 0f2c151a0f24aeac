// SPDX-License-Identifier: MIT
// Links a program's function into a kernel's module. The kernel's ids stay; what the
// function needs of the program's module gets ids behind them. Types that the kernel has
// are taken from it, since a module declares a type once.
#include "spirv_fuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "spirv_ids.h"

#define HEADER_WORDS 5
#define WITH_VARIABLES 0x00010400u // from SPIR-V 1.4 on, entry points list all variables
#define DECORATION_BINDING 33
#define CAPABILITY_INT16 22
#define MAX_NESTED 64 // calls and types within each other

struct words {
    uint32_t *data;
    size_t count, capacity;
};

// A module that is read. By id: `at` is the word where the instruction with this result
// begins; 0: none is known.
struct module {
    const uint32_t *words;
    size_t count;
    size_t functions; // the word where they begin
    uint32_t bound;
    uint32_t *at;
};

struct fuser {
    const struct spirv_fused *fused;
    struct module kernel, program;
    uint32_t *map;    // by id of the program: that of the linked module; 0: not needed
    bool *is_written; // by id of the program: its instruction is in the linked module
    uint32_t next_id;
    uint32_t *numbers; // by id of the kernel: of an access chain the id of the number; or 0
    bool *is_target;   // by id of the kernel: a variable at the binding
    // Of the linked module: what comes from the program, and the kernel's functions.
    struct words imports, decorations, globals, code, body;
    // Ids there: the function; the types of numbers, of elements and of its result.
    uint32_t function, number_type, element_type, result_type;
    bool needs_i16; // the linked module looks at the bits of 16-bit floats
    bool failed;    // out of memory
    char *reason;   // "": nothing was refused
};

static bool refuse(struct fuser *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool refuse(struct fuser *f, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(f->reason, VK_REASON, format, list);
    va_end(list);
    return false;
}

// --- words -----------------------------------------------------------------------------

static void append(struct fuser *f, struct words *to, const uint32_t *words, size_t count)
{
    if (to->count + count > to->capacity) {
        size_t capacity = 2 * to->capacity + count + 256;
        uint32_t *moved = realloc(to->data, capacity * sizeof(*moved));
        f->failed = f->failed || !moved;
        if (!moved)
            return;
        to->data = moved;
        to->capacity = capacity;
    }
    if (count > 0)
        memcpy(to->data + to->count, words, count * sizeof(*words));
    to->count += count;
}

// Appends an instruction with these operands.
static void write_insn(struct fuser *f, struct words *to, uint32_t op,
                       const uint32_t *operands, uint32_t count)
{
    append(f, to, &(uint32_t){op | (count + 1) << 16}, 1);
    append(f, to, operands, count);
}

static uint32_t op_at(const struct module *m, size_t at)
{
    return m->words[at] & 0xffff;
}

static uint32_t num_operands(const struct module *m, size_t at)
{
    return (m->words[at] >> 16) - 1;
}

static size_t next_at(const struct module *m, size_t at)
{
    return at + (m->words[at] >> 16);
}

// The operands of the instruction that makes an id, if it is this one and has so many at
// least; else NULL.
static const uint32_t *made_by(const struct module *m, uint32_t id, uint32_t op,
                               uint32_t operands)
{
    if (id >= m->bound || m->at[id] == 0)
        return NULL;
    size_t at = m->at[id];
    return op_at(m, at) == op && num_operands(m, at) >= operands ? &m->words[at + 1] : NULL;
}

static bool is_type(const struct module *m, uint32_t id)
{
    return id < m->bound && m->at[id] != 0 && spirv_is_type(op_at(m, m->at[id]));
}

// The type of a value; 0: it is not known.
static uint32_t type_of(const struct module *m, uint32_t id)
{
    if (id >= m->bound || m->at[id] == 0 || is_type(m, id) ||
        num_operands(m, m->at[id]) < 2 || !is_type(m, m->words[m->at[id] + 1]))
        return 0;
    return m->words[m->at[id] + 1];
}

// Fills *m. Types stand before what has them, so that a result is known by its type, also
// of instructions that are not known.
static void index_module(struct fuser *f, struct module *m, const struct vk_code *code)
{
    m->words = code->words;
    m->count = code->size / sizeof(uint32_t);
    m->bound = m->words[3];
    m->functions = m->count;
    m->at = calloc((size_t)m->bound + 1, sizeof(*m->at));
    f->failed = f->failed || !m->at;
    for (size_t at = HEADER_WORDS; m->at && at < m->count; at = next_at(m, at)) {
        uint32_t op = op_at(m, at), count = num_operands(m, at), result = count;
        if (op == OP_FUNCTION && m->functions == m->count)
            m->functions = at;
        if (spirv_is_type(op) || op == OP_IMPORT || op == OP_LABEL)
            result = 0;
        else if (count >= 2 && is_type(m, m->words[at + 1]))
            result = 1;
        if (result < count && m->words[at + 1 + result] < m->bound)
            m->at[m->words[at + 1 + result]] = (uint32_t)at;
    }
}

// --- the program -----------------------------------------------------------------------

// The function that is linked: that of the entry point, or the one which that calls. 0:
// there is none.
static uint32_t find_function(const struct module *m)
{
    uint32_t entry = 0;
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at))
        if (op_at(m, at) == OP_ENTRY_POINT)
            entry = m->words[at + 2];
    if (!made_by(m, entry, OP_FUNCTION, 4))
        return 0;
    for (size_t at = m->at[entry]; at < m->count; at = next_at(m, at)) {
        if (op_at(m, at) == OP_FUNCTION_PARAMETER)
            return entry;
        if (op_at(m, at) == OP_FUNCTION_CALL)
            return m->words[at + 3];
    }
    return 0;
}

// The id of the type or import among instructions that says what `words` do; 0: none.
static uint32_t find_equal(const uint32_t *in, size_t count, const uint32_t *words)
{
    size_t size = words[0] >> 16;
    for (size_t at = 0; at < count; at += in[at] >> 16)
        if (in[at] == words[0] &&
            memcmp(&in[at + 2], &words[2], (size - 2) * sizeof(uint32_t)) == 0)
            return in[at + 1];
    return 0;
}

// Whether a module declares this once. Structs and arrays differ by their decorations.
static bool is_unique(uint32_t op)
{
    return op == OP_IMPORT || (spirv_is_type(op) && op != OP_TYPE_STRUCT &&
                               op != OP_TYPE_ARRAY && op != OP_TYPE_RUNTIME_ARRAY);
}

static void need(struct fuser *f, uint32_t id, uint32_t depth);

// Appends the program's instruction at a word, and before it what it needs.
static void take(struct fuser *f, struct words *to, size_t at, uint32_t depth)
{
    const struct module *m = &f->program;
    uint32_t op = op_at(m, at), count = num_operands(m, at);
    if (!spirv_is_known(op)) {
        (void)refuse(f, "meets a program with an instruction %u, which is not known", op);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        if (spirv_is_id(op, i))
            need(f, m->words[at + 1 + i], depth + 1);
    size_t begin = to->count;
    append(f, to, &m->words[at], (size_t)count + 1);
    if (f->failed || f->reason[0])
        return;
    uint32_t *words = &to->data[begin], result = spirv_result_at(op), equal = 0;
    for (uint32_t i = 0; i < count; i++)
        if (spirv_is_id(op, i))
            words[1 + i] = f->map[words[1 + i]];
    if (is_unique(op)) {
        equal = find_equal(f->kernel.words + HEADER_WORDS,
                           f->kernel.functions - HEADER_WORDS, words);
        equal = equal ? equal : find_equal(to->data, begin, words);
    }
    if (equal) {
        f->map[m->words[at + 1]] = equal;
        to->count = begin;
    } else if (result != UINT32_MAX) {
        f->is_written[m->words[at + 1 + result]] = true;
    }
}

// Appends a function to the code, behind those that it calls.
static void take_function(struct fuser *f, size_t at, uint32_t depth)
{
    struct words own = {0};
    uint32_t op;
    do {
        op = op_at(&f->program, at);
        take(f, &own, at, depth);
        at = next_at(&f->program, at);
    } while (op != OP_FUNCTION_END && at < f->program.count);
    append(f, &f->code, own.data, own.count);
    free(own.data);
}

// Gives an id of the program one in the linked module, and writes what makes it if that
// stands outside of functions or is a function.
static void need(struct fuser *f, uint32_t id, uint32_t depth)
{
    const struct module *m = &f->program;
    if (f->failed || f->reason[0] || f->map[id] != 0)
        return;
    if (depth > MAX_NESTED) {
        (void)refuse(f, "meets a program whose calls nest more than %d times", MAX_NESTED);
        return;
    }
    f->map[id] = f->next_id++;
    size_t at = m->at[id];
    if (at >= m->functions && op_at(m, at) == OP_FUNCTION)
        take_function(f, at, depth);
    else if (at != 0 && at < m->functions)
        take(f, op_at(m, at) == OP_IMPORT ? &f->imports : &f->globals, at, depth);
}

// The decorations of what was written, with the bindings of the launch.
static void take_decorations(struct fuser *f)
{
    const struct module *m = &f->program;
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at)) {
        uint32_t op = op_at(m, at), id = m->words[at + 1];
        if ((op != OP_DECORATE && op != OP_MEMBER_DECORATE) || !f->is_written[id])
            continue;
        size_t begin = f->decorations.count;
        append(f, &f->decorations, &m->words[at], (size_t)num_operands(m, at) + 1);
        if (f->failed)
            return;
        uint32_t *words = &f->decorations.data[begin];
        words[1] = f->map[id];
        if (op == OP_DECORATE && words[2] == DECORATION_BINDING)
            words[3] = words[3] < f->fused->num_bindings ? f->fused->bindings[words[3]] : 0;
    }
}

// Links the function with all that it needs.
static bool take_program(struct fuser *f)
{
    const struct module *m = &f->program;
    uint32_t function = find_function(m), num_params = f->fused->is_output ? 2 : 1;
    const uint32_t *words = made_by(m, function, OP_FUNCTION, 4);
    const uint32_t *type =
        words ? made_by(m, words[3], OP_TYPE_FUNCTION, 2 + num_params) : NULL;
    if (!type)
        return refuse(f, "meets a program without a function");
    f->map = calloc(m->bound, sizeof(*f->map));
    f->is_written = calloc(m->bound, sizeof(*f->is_written));
    f->failed = f->failed || !f->map || !f->is_written;
    need(f, function, 0);
    if (f->failed || f->reason[0])
        return false;
    take_decorations(f);
    f->function = f->map[function];
    f->result_type = f->map[type[1]];
    f->number_type = f->map[type[2]];
    f->element_type = f->map[f->fused->is_output ? type[3] : type[1]];
    return !f->failed;
}

// --- the kernel ------------------------------------------------------------------------

// Bits of a scalar, or of a vector of scalars of 32 bits at least; 0: another type.
static uint32_t bits_of(const struct module *m, uint32_t type)
{
    const uint32_t *vector = made_by(m, type, OP_TYPE_VECTOR, 3);
    uint32_t count = vector ? vector[2] : 1, scalar = vector ? vector[1] : type;
    const uint32_t *words = made_by(m, scalar, OP_TYPE_INT, 3);
    words = words ? words : made_by(m, scalar, OP_TYPE_FLOAT, 2);
    bool fits = words && words[1] <= 64 && count <= 4 && (!vector || words[1] >= 32);
    return fits ? words[1] * count : 0;
}

// Checks that the variable's block is an array of elements and nothing else.
static bool check_block(struct fuser *f, uint32_t variable)
{
    const struct module *m = &f->kernel;
    const uint32_t *pointer = made_by(m, type_of(m, variable), OP_TYPE_POINTER, 3);
    const uint32_t *block = pointer ? made_by(m, pointer[2], OP_TYPE_STRUCT, 2) : NULL;
    const uint32_t *array = NULL;
    if (block && num_operands(m, m->at[pointer[2]]) == 2) {
        array = made_by(m, block[1], OP_TYPE_RUNTIME_ARRAY, 2);
        array = array ? array : made_by(m, block[1], OP_TYPE_ARRAY, 3);
    }
    if (!array)
        return refuse(f, "has at binding %u no array alone, expected one of dtype %s",
                      f->fused->binding, tn_dtype_name(f->fused->dtype));
    uint32_t bits = (uint32_t)tn_dtype_bytes(f->fused->dtype) * 8;
    if (bits_of(m, array[1]) == bits)
        return true;
    return refuse(f, "has at binding %u elements of %u bits, expected %u for dtype %s",
                  f->fused->binding, bits_of(m, array[1]), bits,
                  tn_dtype_name(f->fused->dtype));
}

// Finds the variables at the binding.
static bool find_targets(struct fuser *f)
{
    const struct module *m = &f->kernel;
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at)) {
        const uint32_t *words = &m->words[at + 1];
        if (op_at(m, at) != OP_DECORATE || num_operands(m, at) < 3 ||
            words[1] != DECORATION_BINDING || words[2] != f->fused->binding ||
            words[0] >= m->bound)
            continue;
        f->is_target[words[0]] = true;
    }
    for (uint32_t id = 0; id < m->bound; id++)
        if (f->is_target[id] && !check_block(f, id))
            return false;
    return true;
}

// Appends a conversion, if the types differ; gives the value's id.
static uint32_t convert(struct fuser *f, uint32_t value, uint32_t from, uint32_t to,
                        uint32_t op)
{
    if (from == to)
        return value;
    uint32_t id = f->next_id++;
    write_insn(f, &f->body, op, (const uint32_t[]){to, id, value}, 3);
    return id;
}

// The number of the element that an access chain points to, in the function's type.
static uint32_t write_number(struct fuser *f, uint32_t number)
{
    const struct module *m = &f->kernel;
    uint32_t type = type_of(m, number);
    const uint32_t *words = made_by(m, type, OP_TYPE_INT, 3);
    return convert(f, number, type, f->number_type,
                   words && words[1] == 32 ? OP_BITCAST : OP_U_CONVERT);
}

// The type of the bits of an element that the kernel has in this type: the same, but for
// 16-bit floats.
static uint32_t bits_type(struct fuser *f, uint32_t type)
{
    const uint32_t *words = made_by(&f->kernel, type, OP_TYPE_FLOAT, 2);
    uint32_t insn[] = {OP_TYPE_INT | 4 << 16, 0, 16, 0}, id;
    if (!words || words[1] != 16)
        return type;
    f->needs_i16 = true;
    id = find_equal(f->kernel.words + HEADER_WORDS, f->kernel.functions - HEADER_WORDS,
                    insn);
    id = id ? id : find_equal(f->globals.data, f->globals.count, insn);
    if (id)
        return id;
    insn[1] = f->next_id++;
    append(f, &f->globals, insn, 4);
    return insn[1];
}

// The instruction between an element's bits and the function's element, which has 32 bits
// at least.
static uint32_t conversion(const struct fuser *f, bool to_signed)
{
    if (tn_dtype_bytes(f->fused->dtype) >= 4)
        return OP_BITCAST;
    return to_signed ? OP_S_CONVERT : OP_U_CONVERT;
}

// The number of the element that a pointer of the kernel points to; 0: it is no pointer to
// the operand.
static uint32_t number_of(const struct fuser *f, uint32_t id)
{
    return id < f->kernel.bound ? f->numbers[id] : 0;
}

static bool write_store(struct fuser *f, size_t at)
{
    const uint32_t *words = &f->kernel.words[at + 1];
    uint32_t type = type_of(&f->kernel, words[1]);
    if (type == 0)
        return refuse(f, "stores a value of unknown type to binding %u", f->fused->binding);
    bool is_signed = tn_is_signed(f->fused->dtype) && !tn_is_float(f->fused->dtype);
    uint32_t number = write_number(f, f->numbers[words[0]]), bits = bits_type(f, type);
    uint32_t value = convert(f, words[1], type, bits, OP_BITCAST);
    value = convert(f, value, bits, f->element_type, conversion(f, is_signed));
    const uint32_t call[] = {f->result_type, f->next_id++, f->function, number, value};
    write_insn(f, &f->body, OP_FUNCTION_CALL, call, 5);
    return true;
}

// The last instruction gives the result that the load gave.
static bool write_load(struct fuser *f, size_t at)
{
    const uint32_t *words = &f->kernel.words[at + 1];
    const uint32_t *type = made_by(&f->kernel, words[0], OP_TYPE_INT, 3);
    uint32_t number = write_number(f, f->numbers[words[2]]), bits = bits_type(f, words[0]);
    uint32_t op = conversion(f, type && type[2] != 0), value = f->next_id++;
    bool is_same = words[0] == f->element_type;
    const uint32_t call[] = {f->result_type, is_same ? words[1] : value, f->function,
                             number};
    write_insn(f, &f->body, OP_FUNCTION_CALL, call, 4);
    if (bits != words[0]) {
        value = convert(f, value, f->element_type, bits, op);
        op = OP_BITCAST;
    }
    if (!is_same)
        write_insn(f, &f->body, op, (const uint32_t[]){words[0], words[1], value}, 3);
    return true;
}

// Whether an instruction has the id of a variable at the binding, or of a pointer into it.
static bool names_target(const struct fuser *f, size_t at)
{
    const struct module *m = &f->kernel;
    uint32_t op = op_at(m, at);
    bool known = spirv_is_known(op);
    for (uint32_t i = 0; i < num_operands(m, at); i++) {
        uint32_t id = m->words[at + 1 + i];
        if ((!known || spirv_is_id(op, i)) && id < m->bound &&
            (f->is_target[id] || f->numbers[id] != 0))
            return true;
    }
    return false;
}

static void copy_insn(struct fuser *f, size_t at)
{
    append(f, &f->body, &f->kernel.words[at], (size_t)num_operands(&f->kernel, at) + 1);
}

// Rewrites an instruction that reaches the operand. An access chain stays: it does nothing.
static bool rewrite(struct fuser *f, size_t at)
{
    const struct module *m = &f->kernel;
    const uint32_t *words = &m->words[at + 1];
    uint32_t op = op_at(m, at), count = num_operands(m, at);
    bool is_output = f->fused->is_output;
    if ((op == OP_ACCESS_CHAIN || op == OP_IN_BOUNDS_ACCESS_CHAIN) && count == 5 &&
        words[2] < m->bound && f->is_target[words[2]] && words[1] < m->bound &&
        type_of(m, words[4]) != 0) {
        f->numbers[words[1]] = words[4];
        copy_insn(f, at);
        return true;
    }
    if (op == OP_STORE && count >= 2 && is_output && number_of(f, words[0]) != 0 &&
        number_of(f, words[1]) == 0)
        return write_store(f, at);
    if (op == OP_LOAD && count >= 3 && !is_output && number_of(f, words[2]) != 0)
        return write_load(f, at);
    return refuse(f,
                  "reaches binding %u by an instruction %u, expected that it only %s "
                  "single elements",
                  f->fused->binding, op, is_output ? "stores" : "loads");
}

static bool rewrite_functions(struct fuser *f)
{
    const struct module *m = &f->kernel;
    for (size_t at = m->functions; at < m->count && !f->failed; at = next_at(m, at)) {
        if (!names_target(f, at))
            copy_insn(f, at);
        else if (!rewrite(f, at))
            return false;
    }
    return !f->failed;
}

// --- the linked module -----------------------------------------------------------------

// The sections of a module, in their order. Debug information stands before decorations.
enum section { CAPABILITIES, EXTENSIONS, IMPORTS, ENTRIES, DECORATIONS, GLOBALS };

static enum section section_of(uint32_t op)
{
    if (op == OP_CAPABILITY)
        return CAPABILITIES;
    if (op == OP_EXTENSION)
        return EXTENSIONS;
    if (op == OP_IMPORT)
        return IMPORTS;
    bool describes =
        (op >= OP_DECORATE && op <= 75) || op == 332 || op == 5632 || op == 5633;
    if (op < OP_TYPE_VOID || op == 330 || op == 331)
        return ENTRIES;
    return describes ? DECORATIONS : GLOBALS;
}

// Appends the program's capabilities or extensions that the kernel has not.
static void add_missing(struct fuser *f, struct words *out, uint32_t wanted)
{
    const struct module *from = &f->program, *m = &f->kernel;
    for (size_t at = HEADER_WORDS; at < from->functions; at = next_at(from, at)) {
        size_t size = (from->words[at] >> 16) * sizeof(uint32_t), has = HEADER_WORDS;
        if (op_at(from, at) != wanted)
            continue;
        while (has < m->functions && (m->words[has] != from->words[at] ||
                                      memcmp(&m->words[has], &from->words[at], size) != 0))
            has = next_at(m, has);
        if (has >= m->functions)
            append(f, out, &from->words[at], size / sizeof(uint32_t));
    }
}

// Whether a module declares a capability.
static bool has_capability(const struct module *m, uint32_t capability)
{
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at))
        if (op_at(m, at) == OP_CAPABILITY && m->words[at + 1] == capability)
            return true;
    return false;
}

// Appends the program's part of a section.
static void add_section(struct fuser *f, struct words *out, enum section section)
{
    if (section == CAPABILITIES && f->needs_i16 &&
        !has_capability(&f->kernel, CAPABILITY_INT16) &&
        !has_capability(&f->program, CAPABILITY_INT16))
        write_insn(f, out, OP_CAPABILITY, (const uint32_t[]){CAPABILITY_INT16}, 1);
    if (section == CAPABILITIES || section == EXTENSIONS)
        add_missing(f, out, section == CAPABILITIES ? OP_CAPABILITY : OP_EXTENSION);
    else if (section == IMPORTS)
        append(f, out, f->imports.data, f->imports.count);
    else if (section == DECORATIONS)
        append(f, out, f->decorations.data, f->decorations.count);
    else if (section == GLOBALS)
        append(f, out, f->globals.data, f->globals.count);
}

// Appends an entry point with the variables that the program brings.
static void add_entry(struct fuser *f, struct words *out, size_t at)
{
    size_t begin = out->count;
    append(f, out, &f->kernel.words[at], f->kernel.words[at] >> 16);
    for (size_t i = 0; i < f->globals.count; i += f->globals.data[i] >> 16)
        if ((f->globals.data[i] & 0xffff) == OP_VARIABLE)
            append(f, out, &f->globals.data[i + 2], 1);
    if (!f->failed)
        out->data[begin] = OP_ENTRY_POINT | (uint32_t)(out->count - begin) << 16;
}

// Puts the program's part of each section behind the kernel's.
static void assemble(struct fuser *f, struct words *out)
{
    const struct module *m = &f->kernel;
    enum section section = CAPABILITIES;
    append(f, out, m->words, HEADER_WORDS);
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at)) {
        for (; section < section_of(op_at(m, at)); section++)
            add_section(f, out, section);
        if (op_at(m, at) == OP_ENTRY_POINT && m->words[1] >= WITH_VARIABLES)
            add_entry(f, out, at);
        else
            append(f, out, &m->words[at], m->words[at] >> 16);
    }
    for (; section <= GLOBALS; section++)
        add_section(f, out, section);
    append(f, out, f->body.data, f->body.count);
    append(f, out, f->code.data, f->code.count);
    if (f->failed)
        return;
    if (f->program.words[1] > out->data[1])
        out->data[1] = f->program.words[1];
    out->data[3] = f->next_id;
}

static void finish(struct fuser *f)
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
    struct fuser f = {.fused = fused, .reason = reason};
    struct words words = {0};
    reason[0] = '\0';
    index_module(&f, &f.kernel, kernel);
    index_module(&f, &f.program, fused->program);
    f.next_id = f.kernel.bound;
    f.numbers = calloc(f.kernel.bound, sizeof(*f.numbers));
    f.is_target = calloc(f.kernel.bound, sizeof(*f.is_target));
    f.failed = f.failed || !f.numbers || !f.is_target;
    bool done = !f.failed && find_targets(&f) && take_program(&f) && rewrite_functions(&f);
    if (done && f.needs_i16 && !fused->has_i16)
        done = refuse(&f, "has at binding %u floats of 16 bits, and the device no integers",
                      fused->binding);
    if (done)
        assemble(&f, &words);
    finish(&f);
    if (f.failed)
        (void)refuse(&f, "cannot be linked with a program: out of memory");
    if (!done || f.failed) {
        free(words.data);
        return false;
    }
    *out = (struct vk_code){.words = words.data,
                            .size = words.count * sizeof(uint32_t),
                            .release = release_words};
    return true;
}
