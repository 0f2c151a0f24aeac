// SPDX-License-Identifier: MIT
#include "translator.h"

#include <stdio.h>
#include <string.h>

// By enum base: width in bits, OpTypeInt's sign, and what using it needs.
static const struct {
    const char *text, *prefix; // of a scalar; of vectors and matrices
    uint8_t width, narrow;
    uint64_t needs;
} bases[] = {
    [TYPE_VOID] = {"void", "", 0, 0, 0},
    [TYPE_BOOL] = {"bool", "b", 1, 0, 0},
    [TYPE_INT8] = {"int8_t", "i8", 8, NARROW_INT8, 0},
    [TYPE_UINT8] = {"uint8_t", "u8", 8, NARROW_INT8, 0},
    [TYPE_INT16] = {"int16_t", "i16", 16, NARROW_INT16, 0},
    [TYPE_UINT16] = {"uint16_t", "u16", 16, NARROW_INT16, 0},
    [TYPE_INT32] = {"int", "i", 32, 0, 0},
    [TYPE_UINT32] = {"uint", "u", 32, 0, 0},
    [TYPE_INT64] = {"int64_t", "i64", 64, 0, NEED(INT64)},
    [TYPE_UINT64] = {"uint64_t", "u64", 64, 0, NEED(INT64)},
    [TYPE_FLOAT16] = {"float16_t", "f16", 16, NARROW_FLOAT16, 0},
    [TYPE_BFLOAT16] = {"bfloat16_t", "bf16", 16, NARROW_BFLOAT16, NEED(BFLOAT16)},
    [TYPE_FLOAT32] = {"float", "", 32, 0, 0},
    [TYPE_FLOAT64] = {"double", "d", 64, 0, NEED(FLOAT64)},
};

uint32_t base_width(enum base base)
{
    return base < NUM_SCALARS ? bases[base].width : 0;
}

const char *type_base_text(enum base base)
{
    return base < NUM_SCALARS ? bases[base].text : "";
}

// --- making ----------------------------------------------------------------------------

const struct type *type_number(struct translator *t, enum base base, uint32_t columns,
                               uint32_t rows)
{
    struct type **at = &t->numbers[base][columns][rows];
    if (*at == NULL) {
        struct type *type = compiler_allocate(t->c, sizeof *type);
        *type = (struct type){.base = (uint8_t)base,
                              .rows = (uint8_t)rows,
                              .columns = (uint8_t)columns,
                              .narrow = bases[base].narrow,
                              .components = rows * columns,
                              .needs = bases[base].needs};
        *at = type;
    }
    return *at;
}

const struct type *type_scalar(struct translator *t, enum base base)
{
    return type_number(t, base, base != TYPE_VOID, base != TYPE_VOID);
}

const struct type *type_vector(struct translator *t, enum base base, uint32_t rows)
{
    return type_number(t, base, 1, rows);
}

const struct type *type_like(struct translator *t, const struct type *type, enum base base)
{
    if (type->base == TYPE_COOPMAT)
        return type_coopmat(t, type_scalar(t, base), type->scope, type->matrix_rows,
                            type->matrix_columns, type->use);
    return type_number(t, base, type->columns, type->rows);
}

const struct type *type_array(struct translator *t, const struct type *element,
                              uint32_t length, uint32_t length_id)
{
    struct type *first = element->arrays, *type = first;
    for (; type != NULL; type = type->next_array)
        if (type->base == TYPE_ARRAY && type->length == length &&
            type->length_id == length_id)
            return type;
    type = compiler_allocate(t->c, sizeof *type);
    uint64_t components = (uint64_t)element->components * length;
    *type = (struct type){.base = TYPE_ARRAY,
                          .narrow = element->narrow,
                          .components = COMPONENTS_UNKNOWN,
                          .element = element,
                          .length = length,
                          .length_id = length_id,
                          .needs = element->needs,
                          .next_array = first};
    if (length != 0 && components <= MOST_COMPONENTS)
        type->components = (uint32_t)components;
    ((struct type *)element)->arrays = type; // types are made by this file alone
    return type;
}

const struct type *type_struct(struct translator *t, struct record *record)
{
    struct type *type = compiler_allocate(t->c, sizeof *type);
    type->base = TYPE_STRUCT;
    type->record = record;
    uint64_t components = 0;
    for (uint32_t i = 0; i < record->num_members; i++) {
        const struct type *member = record->members[i].type;
        components += member->components;
        type->needs |= member->needs;
        type->narrow |= member->narrow;
    }
    type->components =
        components <= MOST_COMPONENTS ? (uint32_t)components : COMPONENTS_UNKNOWN;
    return type;
}

const struct type *type_reference(struct translator *t, struct record *record)
{
    struct type *type = compiler_allocate(t->c, sizeof *type);
    *type = (struct type){.base = TYPE_REFERENCE,
                          .components = COMPONENTS_UNKNOWN,
                          .record = record,
                          .needs = NEED(PHYSICAL)};
    return type;
}

const struct type *type_coopmat(struct translator *t, const struct type *component,
                                uint32_t scope, uint32_t rows, uint32_t columns,
                                uint32_t use)
{
    struct type *first = component->arrays, *type = first;
    for (; type != NULL; type = type->next_array)
        if (type->base == TYPE_COOPMAT && type->scope == scope &&
            type->matrix_rows == rows && type->matrix_columns == columns &&
            type->use == use)
            return type;
    type = compiler_allocate(t->c, sizeof *type);
    *type = (struct type){
        .base = TYPE_COOPMAT,
        .narrow = component->narrow,
        .components = COMPONENTS_UNKNOWN,
        .element = component,
        .scope = scope,
        .matrix_rows = rows,
        .matrix_columns = columns,
        .use = use,
        .needs = component->needs | NEED(MATRIX) | NEED(VULKAN_MODEL) |
                 (component->base == TYPE_BFLOAT16 ? NEED(BFLOAT16_MATRIX) : 0),
        .next_array = first};
    ((struct type *)component)->arrays = type;
    return type;
}

const struct type *type_tensor(struct translator *t, enum base base, uint32_t dimensions,
                               const uint32_t *parameters, uint32_t count)
{
    struct type *type = t->tensors;
    for (; type != NULL; type = type->next_array)
        if (type->base == base && type->num_parameters == count &&
            memcmp(type->parameters, parameters, count * sizeof *parameters) == 0)
            return type;
    type = compiler_allocate(t->c, sizeof *type);
    type->base = (uint8_t)base;
    type->components = COMPONENTS_UNKNOWN;
    type->dimensions = dimensions;
    type->num_parameters = count;
    memcpy(type->parameters, parameters, count * sizeof *parameters);
    type->needs = NEED(TENSOR_ADDRESSING);
    type->next_array = t->tensors;
    t->tensors = type;
    return type;
}

const struct type *type_part(struct translator *t, const struct type *type)
{
    if (type->base == TYPE_ARRAY || type->base == TYPE_COOPMAT)
        return type->element;
    return type_is_matrix(type) ? type_vector(t, type->base, type->rows)
                                : type_scalar(t, type->base);
}

// --- layouts ---------------------------------------------------------------------------

static uint32_t types_round_up(uint32_t size, uint32_t align)
{
    return align == 0 ? size : (size + align - 1) / align * align;
}

static uint32_t checked_size(struct translator *t, uint64_t size, const struct type *type)
{
    if (size > INT32_MAX)
        fail_at(t, &t->token->at, "type '%s' has more than 2 GiB", type_text(t, type));
    return (uint32_t)size;
}

static void measure_vector(uint32_t layout, uint32_t width, uint32_t rows, uint32_t *size,
                           uint32_t *align)
{
    *size = width * rows;
    *align = width;
    if (layout % NUM_LAYOUTS != LAYOUT_SCALAR && rows > 1)
        *align = rows == 2 ? 2 * width : 4 * width;
}

// From column to column, or with LAYOUT_ROW_MAJOR from row to row.
static uint32_t matrix_stride(const struct type *type, uint32_t layout, uint32_t *align)
{
    uint32_t size, width = base_width(type->base) / 8;
    bool is_row_major = layout >= LAYOUT_ROW_MAJOR;
    measure_vector(layout, width, is_row_major ? type->columns : type->rows, &size, align);
    if (layout % NUM_LAYOUTS == LAYOUT_STD140)
        *align = types_round_up(*align, 16);
    return types_round_up(size, *align);
}

static uint32_t member_layout(const struct type_member *member, uint32_t layout)
{
    return layout % NUM_LAYOUTS + (member->is_row_major ? LAYOUT_ROW_MAJOR : 0);
}

// Fills in the members' offsets.
static uint32_t measure_record(struct translator *t, struct record *record, uint32_t layout,
                               uint32_t *align)
{
    uint64_t end = 0;
    *align = 1;
    for (uint32_t i = 0; i < record->num_members; i++) {
        struct type_member *member = &record->members[i];
        uint32_t wants,
            size = type_size(t, member->type, member_layout(member, layout), &wants);
        wants = member->align > wants ? member->align : wants;
        end = types_round_up(checked_size(t, end, record->contents), wants);
        if (member->offset != UINT32_MAX) {
            if (member->offset % wants != 0 || member->offset < end)
                fail_at(
                    t, &member->at,
                    "member '%.60s' has offset %u, expected a multiple of %u from %u on",
                    member->name->text, member->offset, wants, (uint32_t)end);
            end = member->offset;
        }
        member->byte = (uint32_t)end;
        end += size;
        *align = wants > *align ? wants : *align;
    }
    if (layout % NUM_LAYOUTS == LAYOUT_STD140)
        *align = types_round_up(*align, 16);
    return types_round_up(checked_size(t, end, record->contents), *align);
}

uint32_t type_stride(struct translator *t, const struct type *element, uint32_t layout)
{
    uint32_t align, size = type_size(t, element, layout, &align);
    if (layout % NUM_LAYOUTS == LAYOUT_STD140)
        align = types_round_up(align, 16);
    return types_round_up(size, align);
}

static uint32_t types_measure(struct translator *t, const struct type *type,
                              uint32_t layout, uint32_t *align)
{
    uint32_t size = 0;
    if (type->base == TYPE_STRUCT)
        return measure_record(t, type->record, layout, align);
    if (type->base == TYPE_REFERENCE) {
        *align = 8;
        return 8;
    }
    if (type->base == TYPE_ARRAY) {
        size = type_stride(t, type->element, layout);
        type_size(t, type->element, layout, align);
        if (layout % NUM_LAYOUTS == LAYOUT_STD140)
            *align = types_round_up(*align, 16);
        return checked_size(t, (uint64_t)size * type->length, type);
    }
    if (type_is_matrix(type)) {
        bool is_row_major = layout >= LAYOUT_ROW_MAJOR;
        return matrix_stride(type, layout, align) *
               (is_row_major ? type->rows : type->columns);
    }
    uint32_t width = type->base == TYPE_BOOL ? 4 : base_width(type->base) / 8;
    measure_vector(layout, width, type->rows, &size, align);
    return size;
}

uint32_t type_size(struct translator *t, const struct type *type, uint32_t layout,
                   uint32_t *align)
{
    struct type *cached = (struct type *)type;
    if (cached->measures[layout].align == 0) {
        uint32_t wants, size = types_measure(t, type, layout, &wants);
        cached->measures[layout].size = size;
        cached->measures[layout].align = wants == 0 ? 1 : wants;
    }
    *align = type->measures[layout].align;
    return type->measures[layout].size;
}

// --- types of SPIR-V -------------------------------------------------------------------

static uint32_t scalar_id(struct translator *t, enum base base)
{
    struct ir *ir = t->ir;
    uint32_t width = base_width(base);
    if (base == TYPE_VOID)
        return ir_type(ir, OpTypeVoid, 0, NULL);
    if (base == TYPE_BOOL)
        return ir_type(ir, OpTypeBool, 0, NULL);
    if (base == TYPE_BFLOAT16)
        return ir_type(ir, OpTypeFloat, 2, (uint32_t[]){16, 0});
    if (base_is_float(base))
        return ir_type(ir, OpTypeFloat, 1, &width);
    return ir_type(ir, OpTypeInt, 2, (uint32_t[]){width, base_is_signed(base)});
}

static uint32_t number_id(struct translator *t, const struct type *type, uint32_t layout)
{
    if (type_is_matrix(type)) {
        uint32_t column = type_id(t, type_vector(t, type->base, type->rows), LAYOUT_NONE);
        return ir_type(t->ir, OpTypeMatrix, 2, (uint32_t[]){column, type->columns});
    }
    // A bool in a buffer is a uint.
    enum base base =
        type->base == TYPE_BOOL && layout != LAYOUT_NONE ? TYPE_UINT32 : type->base;
    if (!type_is_vector(type))
        return scalar_id(t, base);
    uint32_t component = type_id(t, type_scalar(t, base), LAYOUT_NONE);
    return ir_type(t->ir, OpTypeVector, 2, (uint32_t[]){component, type->rows});
}

static uint32_t array_id(struct translator *t, const struct type *type, uint32_t layout)
{
    uint32_t element = type_id(t, type->element, layout), id;
    bool is_block =
        type->element->base == TYPE_STRUCT && type->element->record->layout != LAYOUT_NONE;
    uint32_t length = type->length_id != 0 ? type->length_id
                      : type->length != 0  ? ir_u32(t->ir, type->length)
                                           : 0;
    uint32_t op = length != 0 ? OpTypeArray : OpTypeRuntimeArray;
    uint32_t operands[2] = {element, length}, count = length != 0 ? 2 : 1;
    if (layout == LAYOUT_NONE || is_block)
        return ir_type(t->ir, op, count, operands);
    id = ir_type_of_its_own(t->ir, op, count, operands);
    uint32_t stride = type_stride(t, type->element, layout);
    ir_decorate(t->ir, id, DecorationArrayStride, 1, &stride);
    return id;
}

static void decorate_member(struct translator *t, uint32_t id, uint32_t number,
                            const struct type_member *member, uint32_t layout)
{
    static const struct {
        uint32_t bit, decoration;
    } decorations[] = {{MEMORY_COHERENT, DecorationCoherent},
                       {MEMORY_VOLATILE, DecorationVolatile},
                       {MEMORY_RESTRICT, DecorationRestrict},
                       {MEMORY_READONLY, DecorationNonWritable},
                       {MEMORY_WRITEONLY, DecorationNonReadable}};
    const struct type *type = member->type;
    while (type->base == TYPE_ARRAY)
        type = type->element;
    if (type_is_matrix(type)) {
        uint32_t align, stride = matrix_stride(type, member_layout(member, layout), &align);
        ir_decorate_member(t->ir, id, number,
                           member->is_row_major ? DecorationRowMajor : DecorationColMajor,
                           0, NULL);
        ir_decorate_member(t->ir, id, number, DecorationMatrixStride, 1, &stride);
    }
    for (uint32_t i = 0; i < sizeof decorations / sizeof decorations[0]; i++)
        if (member->memory & decorations[i].bit &&
            !(t->has_vulkan_model &&
              (decorations[i].bit & (MEMORY_COHERENT | MEMORY_VOLATILE))))
            ir_decorate_member(t->ir, id, number, decorations[i].decoration, 0, NULL);
    ir_decorate_member(t->ir, id, number, DecorationOffset, 1, &member->byte);
}

static uint32_t struct_id(struct translator *t, const struct type *type, uint32_t layout)
{
    struct record *record = type->record;
    uint32_t *members =
        compiler_allocate(t->c, (record->num_members + 1) * sizeof *members);
    for (uint32_t i = 0; i < record->num_members; i++)
        members[i] =
            type_id(t, record->members[i].type,
                    layout == LAYOUT_NONE ? LAYOUT_NONE
                                          : member_layout(&record->members[i], layout));
    uint32_t id = ir_type_of_its_own(t->ir, OpTypeStruct, record->num_members, members);
    if (t->c->source->flags & (GLSL_KEEPS_FUNCTIONS | GLSL_NOT_OPTIMISED) &&
        record->name != NULL)
        ir_name(t->ir, id, record->name->text);
    if (layout == LAYOUT_NONE)
        return id;
    uint32_t align;
    measure_record(t, record, layout, &align);
    for (uint32_t i = 0; i < record->num_members; i++)
        decorate_member(t, id, i, &record->members[i], layout);
    if (record->layout != LAYOUT_NONE)
        ir_decorate(t->ir, id, DecorationBlock, 0, NULL);
    return id;
}

// A reference's type is declared before the block that it points to, since that may have
// references to itself.
static uint32_t reference_id(struct translator *t, struct type *type)
{
    struct record *record = type->record;
    if (record->contents->ids[record->layout] == 0 && type->ids[LAYOUT_NONE] == 0) {
        uint32_t id = ir_forward_pointer(t->ir, StorageClassPhysicalStorageBuffer);
        for (uint32_t i = 0; i < 2 * NUM_LAYOUTS; i++)
            type->ids[i] = id;
        uint32_t contents = type_id(t, record->contents, record->layout);
        ir_point(t->ir, id, StorageClassPhysicalStorageBuffer, contents);
        return id;
    }
    return ir_pointer(t->ir, StorageClassPhysicalStorageBuffer,
                      type_id(t, record->contents, record->layout));
}

uint32_t type_id(struct translator *t, const struct type *type, uint32_t layout)
{
    struct type *cached = (struct type *)type;
    if (cached->ids[layout] != 0)
        return cached->ids[layout];
    uint32_t id;
    if (type->base == TYPE_STRUCT)
        id = struct_id(t, type, layout);
    else if (type->base == TYPE_ARRAY)
        id = array_id(t, type, layout);
    else if (type->base == TYPE_REFERENCE)
        id = reference_id(t, cached);
    else if (type->base == TYPE_COOPMAT)
        id = ir_type(t->ir, OpTypeCooperativeMatrixKHR, 5,
                     (uint32_t[]){type_id(t, type->element, LAYOUT_NONE), type->scope,
                                  type->matrix_rows, type->matrix_columns, type->use});
    else if (type->base == TYPE_TENSOR_LAYOUT || type->base == TYPE_TENSOR_VIEW)
        id = ir_type(t->ir,
                     type->base == TYPE_TENSOR_LAYOUT ? OpTypeTensorLayoutNV
                                                      : OpTypeTensorViewNV,
                     type->num_parameters, type->parameters);
    else
        id = number_id(t, type, layout);
    cached->ids[layout] = id;
    return id;
}

// --- text ------------------------------------------------------------------------------

static const char *types_number_text(struct translator *t, const struct type *type)
{
    if (type_is_scalar(type) || type->base == TYPE_VOID)
        return bases[type->base].text;
    char *text = compiler_allocate(t->c, 16);
    const char *prefix = bases[type->base].prefix;
    if (type_is_vector(type))
        snprintf(text, 16, "%svec%u", prefix, type->rows);
    else if (type->rows == type->columns)
        snprintf(text, 16, "%smat%u", prefix, type->rows);
    else
        snprintf(text, 16, "%smat%ux%u", prefix, type->columns, type->rows);
    return text;
}

// The numbers of a matrix or a tensor; ?: a specialisation constant.
static const char *parameters_text(struct translator *t, const struct type *type)
{
    enum { MOST_TEXT = 100 };
    uint32_t of_matrix[] = {type->scope, type->matrix_rows, type->matrix_columns,
                            type->use};
    bool is_matrix = type->base == TYPE_COOPMAT;
    const uint32_t *ids = is_matrix ? of_matrix : type->parameters;
    uint32_t count = is_matrix ? 4 : type->num_parameters;
    char *text = compiler_allocate(t->c, MOST_TEXT);
    size_t size = (size_t)snprintf(text, MOST_TEXT, "%s<%s",
                                   is_matrix                        ? "coopmat"
                                   : type->base == TYPE_TENSOR_VIEW ? "tensorViewNV"
                                                                    : "tensorLayoutNV",
                                   is_matrix ? type_text(t, type->element) : "");
    for (uint32_t i = 0; i < count; i++) {
        const struct ir_inst *inst = ir_definition(t->ir, ids[i]);
        const char *separator = is_matrix || i > 0 ? ", " : "";
        if (inst->op == OpConstant)
            size += (size_t)snprintf(text + size, MOST_TEXT - size, "%s%u", separator,
                                     inst->operands[0]);
        else
            size += (size_t)snprintf(text + size, MOST_TEXT - size, "%s%s", separator,
                                     inst->op == OpConstantTrue    ? "true"
                                     : inst->op == OpConstantFalse ? "false"
                                                                   : "?");
    }
    snprintf(text + size, MOST_TEXT - size, ">");
    return text;
}

const char *type_text(struct translator *t, const struct type *type)
{
    enum { MOST_TEXT = 80 };
    if (type->base < NUM_SCALARS)
        return types_number_text(t, type);
    if (type->base == TYPE_STRUCT || type->base == TYPE_REFERENCE)
        return type->record->name != NULL ? type->record->name->text : "struct";
    if (type->base >= TYPE_COOPMAT)
        return parameters_text(t, type);
    char *text = compiler_allocate(t->c, MOST_TEXT);
    const char *element = type_text(t, type->element);
    if (type->length != 0)
        snprintf(text, MOST_TEXT, "%.60s[%u]", element, type->length);
    else
        snprintf(text, MOST_TEXT, "%.60s[%s]", element,
                 type->length_id != 0 ? "specialised" : "");
    return text;
}
