// SPDX-License-Identifier: MIT
// Makes nodes and leaves in the scope's arena, which frees them.
#include "counted.h"

#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../device/device.h"

static struct hash hash_node(const struct node *node)
{
    struct hash h = hash_start(node->kind);
    if (node->prim)
        h = hash_join(h, node->prim->id_hash);
    else if (node->expr)
        h = hash_join(h, node->expr->hash);
    if (node->table)
        h = attrs_hash(h, node->table, node->attrs);
    if (node->device)
        h = hash_u64(h, node->device);
    return h;
}

static tn_status node_take_inputs(tn_scope *scope, struct node *node,
                                  const tn_array *const *inputs)
{
    for (uint32_t i = 0; i < node->num_inputs; i++) {
        if (!inputs[i])
            continue; // an optional input
        node->inputs[i] = scope_local(scope, inputs[i]);
        if (!node->inputs[i])
            return scope->status;
    }
    return TN_OK;
}

struct node *node_create(tn_scope *scope, uint32_t kind, const tn_array *const *inputs,
                         uint32_t num_inputs, uint32_t num_outputs,
                         const tn_attr_table *table, const void *attrs)
{
    if (scope_begin(scope, "building an array", NO_LISTS) != TN_OK)
        return NULL;
    size_t attrs_size = table ? (table->size + 15u) & ~15u : 0;
    size_t inputs_size = (num_inputs * sizeof(tn_array *) + 15u) & ~(size_t)15;
    bool is_direct = scope->direct != NULL;
    size_t node_size =
        ((is_direct ? sizeof(struct counted) : sizeof(struct node)) + 15u) & ~(size_t)15;
    size_t size = node_size + attrs_size + inputs_size + num_outputs * sizeof(tn_array);
    unsigned char *memory =
        is_direct ? direct_begin(scope, size) : arena_alloc(&scope->arena, size);
    if (!memory) {
        scope_take_failure(scope, TN_ERR_MEMORY);
        return NULL;
    }
    struct node *node = (struct node *)memory;
    node->kind = kind;
    node->num_inputs = num_inputs;
    node->num_outputs = num_outputs;
    node->serial = is_direct ? 0 : scope->serial++;
    node->device = scope->device;
    if (attrs_size > 0) {
        node->table = table;
        node->attrs = memory + node_size;
        memcpy(node->attrs, attrs, table->size);
    }
    node->inputs = (tn_array **)(memory + node_size + attrs_size);
    node->outputs = (tn_array *)(memory + node_size + attrs_size + inputs_size);
    for (uint32_t i = 0; i < num_outputs; i++) {
        node->outputs[i].node = node;
        node->outputs[i].scope = is_direct ? NULL : scope;
        node->outputs[i].output = i;
    }
    if ((is_direct ? direct_inputs : node_take_inputs)(scope, node, inputs) != TN_OK)
        return NULL;
    node->hash = hash_node(node);
    return node;
}

void node_order_effects(tn_scope *scope, struct node *node)
{
    if (!node->prim || !node->prim->domain)
        return;
    node->number = 1 + atomic_fetch_add_explicit(&scope->runtime->num_effects, 1,
                                                 memory_order_relaxed);
    scope->has_effects = true;
}

struct expr_input array_promoted(const tn_array *array)
{
    return (struct expr_input){.dtype = array->type.dtype,
                               .weak_kind = array->weak_kind,
                               .is_known =
                                   array->weak_kind && array->node->kind == NODE_NUMBER,
                               .bits = array->node->number};
}

void node_types(const struct node *node, struct expr_types *out)
{
    for (uint32_t i = 0; i < node->num_inputs; i++)
        out->inputs[i] = array_promoted(node->inputs[i]);
    for (uint32_t i = 0; i < node->num_outputs; i++)
        out->outputs[i] = node->outputs[i].type.dtype;
}

int32_t node_axis(const struct node *node)
{
    return node->expr && node->expr->reduces
               ? expr_axis(node->table, node->attrs, node->outputs[0].type.rank)
               : -1;
}

tn_status node_program_expr(const struct node *node, const struct expr **out_expr)
{
    *out_expr = node->expr;
    return node->expr->reduces ? expr_row_last(node->expr, &node->outputs[0].type,
                                               node_axis(node), out_expr)
                               : TN_OK;
}

tn_array *leaf_create(tn_scope *scope, uint32_t kind, const tn_type *type)
{
    struct node *node = node_create(scope, kind, NULL, 0, 1, NULL, NULL);
    if (!node)
        return NULL;
    node->outputs[0].type = *type;
    return &node->outputs[0];
}

tn_array *number_create(tn_scope *scope, tn_dtype dtype, uint64_t bits, int weak_kind)
{
    tn_type type = {.dtype = dtype};
    tn_array *array = leaf_create(scope, NODE_NUMBER, &type);
    if (!array)
        return NULL;
    array->weak_kind = (uint8_t)weak_kind;
    array->node->number = bits;
    return array;
}

tn_array *runtime_number(tn_scope *scope, tn_dtype dtype, uint64_t bits, uint8_t weak_kind)
{
    const tn_type type = {.dtype = dtype};
    unsigned char element[DTYPE_MAX_SIZE] = {0};
    struct value *value = NULL;
    dtype_store_bits(dtype, element, bits);
    if (scope->tracing)
        return number_create(scope, dtype, dtype_load_bits(dtype, element), weak_kind);
    tn_status status =
        value_from_host(scope->runtime, scope_data_device(scope), &type, element, &value);
    if (status != TN_OK) {
        scope_take_failure(scope, status);
        return NULL;
    }
    tn_array *array = leaf_create(scope, NODE_DATA, &type);
    if (!array) {
        value_release(value);
        return NULL;
    }
    array->weak_kind = weak_kind;
    return scope_set_value(scope, array, value) == TN_OK ? array : NULL;
}

static uint64_t node_bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

tn_array *tn_f32(tn_scope *scope, float value)
{
    return number_create(scope, TN_F32, node_bits_of(value), 0);
}

tn_array *tn_f64(tn_scope *scope, double value)
{
    return number_create(scope, TN_F64, node_bits_of(value), 0);
}

tn_array *tn_i32(tn_scope *scope, int32_t value)
{
    return number_create(scope, TN_I32, (uint64_t)(int64_t)value, 0);
}

tn_array *tn_i64(tn_scope *scope, int64_t value)
{
    return number_create(scope, TN_I64, (uint64_t)value, 0);
}

tn_array *tn_bool(tn_scope *scope, int32_t value)
{
    return number_create(scope, TN_BOOL, value != 0, 0);
}

tn_array *tn_int(tn_scope *scope, int64_t value)
{
    return number_create(scope, TN_I64, (uint64_t)value, KIND_SIGNED);
}

tn_array *tn_uint(tn_scope *scope, uint64_t value)
{
    return number_create(scope, TN_U64, value, KIND_UNSIGNED);
}

tn_array *tn_float(tn_scope *scope, double value)
{
    return number_create(scope, TN_F64, node_bits_of(value), KIND_FLOAT);
}

tn_array *tn_complex(tn_scope *scope, double re, double im)
{
    const tn_complex128 number = {re, im};
    const tn_shape scalar = {0};
    tn_array *array = tn_from_data(scope, TN_COMPLEX128, &scalar, &number);
    if (array)
        array->weak_kind = KIND_COMPLEX;
    return array;
}

// The bits for node->number: `value` rounded to the dtype, then widened to 64 bits.
static uint64_t number_bits(tn_dtype dtype, double value)
{
    unsigned char element[DTYPE_MAX_SIZE] = {0};
    dtype_store(dtype, element, value);
    return dtype_load_bits(dtype, element);
}

tn_array *tn_scalar(tn_scope *scope, tn_dtype dtype, double value)
{
    if (scope_begin(scope, "scalar", NO_LISTS) != TN_OK)
        return NULL;
    if (!dtype_valid(dtype)) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "scalar: dtype %d is not a dtype",
                      (int)dtype);
        return NULL;
    }
    return number_create(scope, dtype, number_bits(dtype, value), 0);
}

tn_status type_from_shape(tn_dtype dtype, const tn_shape *shape, tn_type *out)
{
    if (!shape)
        return fail(TN_ERR_ARGUMENT, "shape is NULL");
    *out = (tn_type){.dtype = dtype, .rank = shape->rank};
    if (shape->rank >= 0 && shape->rank <= TN_MAX_RANK)
        for (int32_t i = 0; i < shape->rank; i++)
            out->extent[i] = shape->extent[i];
    return type_check(out);
}

tn_array *leaf_from_value(tn_scope *scope, const tn_type *type, struct value *value)
{
    if (scope->outer) // a graph has no data: it becomes an input
        return scope_local(scope, leaf_from_value(scope->outer, type, value));
    tn_array *array = leaf_create(scope, NODE_DATA, type);
    if (!array) {
        value_release(value);
        return NULL;
    }
    return scope_set_value(scope, array, value) == TN_OK ? array : NULL;
}

tn_array *tn_from_data(tn_scope *scope, tn_dtype dtype, const tn_shape *shape,
                       const void *data)
{
    if (scope_begin(scope, "from_data", NO_LISTS) != TN_OK)
        return NULL;
    tn_type type;
    struct value *value = NULL;
    tn_status status = type_from_shape(dtype, shape, &type);
    if (status == TN_OK && !data && type_elements(&type) > 0)
        status = fail(TN_ERR_ARGUMENT, "data is NULL");
    if (status != TN_OK)
        fail_prefix("tn_from_data: ");
    if (status == TN_OK) // its messages name the device
        status =
            value_from_host(scope->runtime, scope_data_device(scope), &type, data, &value);
    if (status != TN_OK) {
        scope_take_failure(scope, status);
        return NULL;
    }
    return leaf_from_value(scope, &type, value);
}

tn_array *tn_name(tn_scope *scope, tn_array *array, const char *name)
{
    tn_array *local = scope_local(scope, array);
    if (!local)
        return NULL;
    const char *copy = name ? arena_strdup(&scope->arena, name) : NULL;
    if (name && !copy) {
        scope_take_failure(scope, TN_ERR_MEMORY);
        return NULL;
    }
    local->name = copy;
    return local;
}

// Type of an array that failed: whatever is computed with it divides by no 0 and stays in
// bounds.
static const tn_type failed_type = {.rank = TN_MAX_RANK,
                                    .extent = {1, 1, 1, 1, 1, 1, 1, 1}};

const tn_type *tn_array_type(const tn_array *array)
{
    return array ? &array->type : &failed_type;
}

const tn_type *array_type_or_null(const tn_array *array)
{
    return array ? &array->type : NULL;
}

const char *tn_array_op(const tn_array *array)
{
    if (!array)
        return "";
    const struct node *node = array->node;
    return node->kind == NODE_PRIM   ? node->prim->record.id
           : node->kind == NODE_EXPR ? node->expr->text
                                     : "";
}
