// SPDX-License-Identifier: MIT
// The types of GLSL. A type is made once, so that types are equal where their pointers are.
//
// A type has an id in SPIR-V for each layout: a struct in a buffer, which has offsets, is
// another type than the same struct in registers.
#ifndef KERNELS_COMPILER_TYPES_H
#define KERNELS_COMPILER_TYPES_H

#include "../ir/ir.h"

struct translator;

enum base {
    TYPE_VOID,
    TYPE_BOOL,
    TYPE_INT8,
    TYPE_UINT8,
    TYPE_INT16,
    TYPE_UINT16,
    TYPE_INT32,
    TYPE_UINT32,
    TYPE_INT64,
    TYPE_UINT64,
    TYPE_FLOAT16,
    TYPE_BFLOAT16,
    TYPE_FLOAT32,
    TYPE_FLOAT64,
    NUM_SCALARS,
    TYPE_STRUCT = NUM_SCALARS, // or the contents of a block
    TYPE_ARRAY,
    TYPE_REFERENCE, // to a block in memory
    TYPE_COOPMAT,
    TYPE_TENSOR_LAYOUT, // how a tensor lies in memory
    TYPE_TENSOR_VIEW,
};

enum layout {
    LAYOUT_NONE, // registers, local variables, shared memory
    LAYOUT_STD140,
    LAYOUT_STD430,
    LAYOUT_SCALAR,
    NUM_LAYOUTS,
    LAYOUT_ROW_MAJOR = NUM_LAYOUTS, // added to a layout
};

// Widths below 32 bits that a type has inside.
enum { NARROW_INT8 = 1, NARROW_INT16 = 2, NARROW_FLOAT16 = 4, NARROW_BFLOAT16 = 8 };

// The components of a type are its scalars, one behind the other.
enum { MOST_COMPONENTS = 1 << 16, COMPONENTS_UNKNOWN = 1 << 30 };

struct type {
    uint8_t base;
    uint8_t rows, columns; // of a scalar 1, 1; of a vector n, 1; of others 0
    uint8_t narrow;        // NARROW_*
    uint32_t components;   // COMPONENTS_UNKNOWN: not known at compile time, or too many
    // Element of an array or of a cooperative matrix, whose parameters are ids of
    // constants.
    const struct type *element;
    uint32_t length, length_id; // 0, 0: not known; 0, id: a specialisation constant
    uint32_t scope, matrix_rows, matrix_columns, use;
    // Ids of the parameters of a tensor's layout or view, the number of dimensions first.
    uint32_t parameters[8], num_parameters, dimensions;
    struct record *record; // of a struct or a reference
    uint64_t needs;        // NEED_* of using it
    uint32_t ids[2 * NUM_LAYOUTS];
    struct {
        uint32_t size, align; // 0, 0: not measured yet
    } measures[2 * NUM_LAYOUTS];
    struct type *arrays, *next_array; // arrays of it; the next array of the same element
};

// Qualifiers of memory in a declaration.
enum memory {
    MEMORY_READONLY = 1,
    MEMORY_WRITEONLY = 2,
    MEMORY_COHERENT = 4,
    MEMORY_VOLATILE = 8,
    MEMORY_RESTRICT = 16,
    MEMORY_NONPRIVATE = 32,
    // Scope of coherent memory, two bits: 0 is the queue family, others are SPIR-V's
    // scopes.
    MEMORY_SCOPE = 192,
    MEMORY_SCOPE_AT = 6,
    MEMORY_SCOPE_DEVICE = 1,
    MEMORY_SCOPE_WORKGROUP = 2,
    MEMORY_SCOPE_SUBGROUP = 3,
};

struct type_member {
    const struct name *name;
    const struct type *type;
    struct position at;
    uint32_t offset, align; // said by the source; UINT32_MAX, 0: not said
    uint8_t memory;
    bool is_row_major;
    uint32_t byte; // in its block's layout, filled with the block's SPIR-V type
};

struct record {
    const struct name *name; // NULL: none
    struct position at;
    struct type_member *members;
    uint32_t num_members;
    uint8_t layout;  // of a block; LAYOUT_NONE: a struct
    bool is_uniform; // a block that is not written: std140's rules for arrays hold in it
    uint32_t reference_align;    // of references to the block
    const struct type *contents; // the struct type
    struct ir_inst *forward;     // of a reference
};

const struct type *type_number(struct translator *t, enum base base, uint32_t columns,
                               uint32_t rows);
const struct type *type_scalar(struct translator *t, enum base base);
const struct type *type_vector(struct translator *t, enum base base, uint32_t rows);
// The same type with components of another base.
const struct type *type_like(struct translator *t, const struct type *type, enum base base);
// An array; length 0, 0: not known.
const struct type *type_array(struct translator *t, const struct type *element,
                              uint32_t length, uint32_t length_id);
const struct type *type_struct(struct translator *t, struct record *record);
const struct type *type_reference(struct translator *t, struct record *record);
const struct type *type_coopmat(struct translator *t, const struct type *component,
                                uint32_t scope, uint32_t rows, uint32_t columns,
                                uint32_t use);

// Type of a tensor with these parameters, as GLSL writes them. NULL: there is no such type.
const struct type *type_tensor_of(struct translator *t, enum base base, uint64_t *values,
                                  uint32_t count, const struct position *at);
const struct type *type_tensor(struct translator *t, enum base base, uint32_t dimensions,
                               const uint32_t *parameters, uint32_t count);

// The type's id in a layout.
uint32_t type_id(struct translator *t, const struct type *type, uint32_t layout);
// Bytes in a layout, and from element to element.
uint32_t type_size(struct translator *t, const struct type *type, uint32_t layout,
                   uint32_t *align);
uint32_t type_stride(struct translator *t, const struct type *element, uint32_t layout);

// The type as GLSL writes it, in the compilation's memory.
const char *type_text(struct translator *t, const struct type *type);
const char *type_base_text(enum base base);

// The type of a part: column of a matrix, component of a vector, element of an array.
const struct type *type_part(struct translator *t, const struct type *type);

static inline bool type_is_number(const struct type *type)
{
    return type->base < NUM_SCALARS && type->base != TYPE_VOID;
}
static inline bool type_is_scalar(const struct type *type)
{
    return type->rows == 1 && type->columns == 1;
}
static inline bool type_is_vector(const struct type *type)
{
    return type->rows > 1 && type->columns == 1;
}
static inline bool type_is_matrix(const struct type *type)
{
    return type->columns > 1;
}
static inline bool base_is_float(enum base base)
{
    return base >= TYPE_FLOAT16 && base <= TYPE_FLOAT64;
}
static inline bool base_is_int(enum base base)
{
    return base >= TYPE_INT8 && base <= TYPE_UINT64;
}
static inline bool base_is_signed(enum base base)
{
    return base_is_int(base) && (base - TYPE_INT8) % 2 == 0;
}
static inline bool type_is_unsized(const struct type *type)
{
    return type->base == TYPE_ARRAY && type->length == 0 && type->length_id == 0;
}
uint32_t base_width(enum base base); // bits; bool 1, void 0

#endif // KERNELS_COMPILER_TYPES_H
