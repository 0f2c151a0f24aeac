// SPDX-License-Identifier: MIT
// Shared by spirv_fuse.c (the kernel's module) and spirv_fuse_program.c (the program's).
#ifndef VULKAN_SPIRV_SPIRV_FUSER_H
#define VULKAN_SPIRV_SPIRV_FUSER_H

#include "spirv_fuse.h"
#include "spirv/numbers.h"
#include "spirv/read.h"

#define HEADER_WORDS 5

struct words {
    uint32_t *data;
    size_t count, capacity;
};

// A module that is read. By id: `at` is the word where the instruction with this result
// begins; 0: none is known.
struct parsed_module {
    const uint32_t *words;
    size_t count;
    size_t functions; // the word where they begin
    uint32_t bound;
    uint32_t *at;
};

struct spirv_fuser {
    const struct spirv_fused *fused;
    struct parsed_module kernel, program;
    uint32_t *map;    // by id of the program: that of the linked module; 0: not needed
    bool *is_written; // by id of the program: its instruction is in the linked module
    uint32_t next_id;
    uint32_t *numbers; // by id of the kernel: of an access chain the id of the number; or 0
    bool *is_target;   // by id of the kernel: a variable at the binding
    // Sections of the linked module: the program's part, and the kernel's functions.
    struct words imports, decorations, globals, code, body;
    // Ids there: the function; the types of numbers, of elements and of its result.
    uint32_t function, number_type, element_type, result_type;
    bool needs_i16; // the linked module looks at the bits of 16-bit floats
    bool failed;    // out of memory
    char *reason;   // "": nothing was refused
};

// Says what cannot be linked; returns false.
bool fuser_refuse(struct spirv_fuser *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Appends words; an instruction with these operands. Out of memory: f->failed is set.
void fuser_append(struct spirv_fuser *f, struct words *to, const uint32_t *words,
                  size_t count);
void fuser_write(struct spirv_fuser *f, struct words *to, uint32_t op,
                 const uint32_t *operands, uint32_t count);

// Fills *m.
void fuser_index(struct spirv_fuser *f, struct parsed_module *m,
                 const struct vk_code *code);

// The id of the type or import among instructions that is equal to `words`; 0: none.
uint32_t fuser_find_equal(const uint32_t *in, size_t count, const uint32_t *words);

// The id of a type of two operands that a module declares once, such as a pointer or an
// integer; declares it where neither the kernel nor what is linked does.
uint32_t fuser_find_type(struct spirv_fuser *f, uint32_t op, uint32_t one, uint32_t other);

// Links the program's function with all that it needs. False: it failed or was refused.
bool fuser_take_program(struct spirv_fuser *f);

// --- reading ---------------------------------------------------------------------------

static inline uint32_t op_at(const struct parsed_module *m, size_t at)
{
    return m->words[at] & 0xffff;
}

static inline uint32_t num_operands(const struct parsed_module *m, size_t at)
{
    return (m->words[at] >> 16) - 1;
}

static inline size_t next_at(const struct parsed_module *m, size_t at)
{
    return at + (m->words[at] >> 16);
}

// The operands of the instruction that makes an id, if it is `op` with at least `operands`
// of them; else NULL.
static inline const uint32_t *made_by(const struct parsed_module *m, uint32_t id,
                                      uint32_t op, uint32_t operands)
{
    if (id >= m->bound || m->at[id] == 0)
        return NULL;
    size_t at = m->at[id];
    return op_at(m, at) == op && num_operands(m, at) >= operands ? &m->words[at + 1] : NULL;
}

// The ids among an instruction's operands, which are only read.
static inline struct spirv_ids ids_at(const struct parsed_module *m, size_t at)
{
    return spirv_ids(op_at(m, at), (uint32_t *)(uintptr_t)&m->words[at + 1],
                     num_operands(m, at));
}

static inline bool is_type(const struct parsed_module *m, uint32_t id)
{
    return id < m->bound && m->at[id] != 0 && spirv_is_type_op(op_at(m, m->at[id]));
}

// The type of a value; 0: it is not known.
static inline uint32_t type_of(const struct parsed_module *m, uint32_t id)
{
    if (id >= m->bound || m->at[id] == 0 || is_type(m, id) ||
        num_operands(m, m->at[id]) < 2 || !is_type(m, m->words[m->at[id] + 1]))
        return 0;
    return m->words[m->at[id] + 1];
}

#endif // VULKAN_SPIRV_SPIRV_FUSER_H
