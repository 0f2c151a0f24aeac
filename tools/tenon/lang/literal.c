// SPDX-License-Identifier: MIT
// Lists in brackets: arrays of numbers, stacks of arrays, and lists for attributes.
#include "evaluator.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// --- a nested list of numbers ----------------------------------------------------------

struct literal {
    struct evaluator *e;
    tn_shape shape;
    tn_dtype dtype;
    bool has_negative; // a number below 0, which u64 does not hold
    bool has_arrays;   // an element is an array: literal_stack() is used
    union {
        void *bytes;
        double *f;
        int64_t *i;
        uint8_t *b;
    } data;
    uint64_t filled;
};

static tn_dtype literal_wider(tn_dtype a, tn_dtype b)
{
    return a > b ? a : b; // NONE < BOOL < I64 < U64 < F64
}

static tn_dtype literal_number_dtype(uint8_t kind)
{
    return kind == LANG_FLOAT  ? TN_F64
           : kind == LANG_UINT ? TN_U64
           : kind == LANG_INT  ? TN_I64
                               : TN_BOOL;
}

// Takes the shape from the first element of each list, and checks the others against it.
static int literal_measure(struct literal *l, uint32_t index, int32_t depth)
{
    struct evaluator *e = l->e;
    const struct lang_node *node = &e->tree->nodes[index];
    if (depth >= TN_MAX_RANK)
        return node_oops(e, node,
                         "lists nested more than %d deep: arrays have at most %d axes",
                         TN_MAX_RANK, TN_MAX_RANK);
    if (depth >= l->shape.rank) {
        l->shape.rank = depth + 1;
        l->shape.extent[depth] = node->count;
    } else if (l->shape.extent[depth] != node->count) {
        return node_oops(e, node, "this list has %u elements, the one before it %" PRId64,
                         node->count, l->shape.extent[depth]);
    }
    int failed = 0;
    for (uint32_t i = 0; !failed && i < node->count; i++) {
        const struct lang_value *value = child_value(e, node, i);
        bool is_list = child_node(e, node, i)->kind == LANG_LIST;
        if (!is_list && !value->is_number)
            l->has_arrays = true;
        else if (is_list)
            failed = literal_measure(l, e->tree->children[node->first + i], depth + 1);
        else
            l->dtype = literal_wider(l->dtype, literal_number_dtype(value->kind));
        l->has_negative |= value->is_number && value->kind == LANG_INT && value->i < 0;
    }
    return failed;
}

static int literal_fill(struct literal *l, uint32_t index, int32_t depth)
{
    struct evaluator *e = l->e;
    const struct lang_node *node = &e->tree->nodes[index];
    for (uint32_t i = 0; i < node->count; i++) {
        const struct lang_value *value = child_value(e, node, i);
        bool is_list = child_node(e, node, i)->kind == LANG_LIST;
        if (is_list != (depth + 1 < l->shape.rank))
            return node_oops(e, child_node(e, node, i),
                             "expected %s here, as in the lists before",
                             is_list ? "a number" : "a list");
        if (is_list) {
            int failed = literal_fill(l, e->tree->children[node->first + i], depth + 1);
            if (failed)
                return failed;
        } else if (l->dtype == TN_F64) {
            l->data.f[l->filled++] = value->f;
        } else if (l->dtype == TN_I64 || l->dtype == TN_U64) {
            l->data.i[l->filled++] = value->i;
        } else {
            l->data.b[l->filled++] = value->i != 0;
        }
    }
    return 0;
}

// --- a list with arrays in it ----------------------------------------------------------

// Adds an axis in front of each element, and concatenates along it. Beside complex numbers
// all become complex.
static int literal_stack(struct evaluator *e, const struct lang_node *node,
                         tn_array **out_array)
{
    const tn_array **items = calloc(node->count + 1, sizeof(*items));
    int failed = items ? 0 : oops_memory();
    bool has_complex = false;
    for (uint32_t i = 0; !failed && i < node->count; i++) {
        tn_array *item;
        failed = value_array(e, e->tree->children[node->first + i], &item);
        if (failed)
            break;
        items[i] = item;
        has_complex |= tn_is_complex(tn_array_type(item)->dtype);
    }
    for (uint32_t i = 0; !failed && i < node->count; i++) {
        const tn_array *item = items[i];
        if (has_complex && !tn_is_complex(tn_array_type(item)->dtype))
            item = tn_op(e->scope, "base.astype", TN_IN(item),
                         tn_attrs("dtype", (int64_t)TN_COMPLEX128));
        items[i] =
            tn_op(e->scope, "base.expand_dims", TN_IN(item), tn_attrs("axis", TN_INTS(0)));
    }
    if (!failed) {
        *out_array =
            tn_op(e->scope, "base.concatenate", items, node->count, tn_attrs("axis", 0));
        failed = check_scope(e, node);
    }
    free(items);
    return failed;
}

int literal_array(struct evaluator *e, uint32_t index, tn_array **out_array)
{
    struct literal l = {.e = e};
    int failed = literal_measure(&l, index, 0);
    if (failed)
        return failed;
    const struct lang_node *node = &e->tree->nodes[index];
    if (l.has_arrays)
        return literal_stack(e, node, out_array);
    if (l.dtype == TN_DTYPE_NONE)
        l.dtype = TN_F64; // empty, as in NumPy
    if (l.dtype == TN_U64 && l.has_negative)
        return node_oops(e, node,
                         "neither i64 nor u64 holds all numbers of this list: write one as "
                         "a float");
    uint64_t elements, bytes;
    if (!type_bytes(l.dtype, &l.shape, &elements, &bytes))
        return node_oops(e, node, "the list is too large");
    l.data.bytes = malloc(bytes ? bytes : 1);
    failed = l.data.bytes ? literal_fill(&l, index, 0) : oops_memory();
    if (!failed) {
        *out_array = tn_from_data(e->scope, l.dtype, &l.shape, l.data.bytes);
        failed = check_scope(e, node);
    }
    free(l.data.bytes);
    return failed;
}

// --- lists for attributes --------------------------------------------------------------

int literal_list(struct evaluator *e, uint32_t index, void *values,
                 struct attr_lists *lists, tn_attr *out)
{
    const struct lang_node *node = &e->tree->nodes[index];
    int64_t *ints = values;
    double *floats = values;
    bool any_float = false;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct lang_value *value = child_value(e, node, i);
        if (!value->is_number || value->kind == LANG_BOOL)
            return node_oops(e, child_node(e, node, i), "expected a number here");
        if (value->kind == LANG_UINT)
            return node_oops(e, child_node(e, node, i), "the number does not fit i64");
        any_float |= value->kind == LANG_FLOAT;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        const struct lang_value *value = child_value(e, node, i);
        if (any_float)
            floats[i] = value->f;
        else
            ints[i] = value->i;
    }
    lists->ints = (tn_int_list){node->count, ints};
    lists->floats = (tn_float_list){node->count, floats};
    out->kind = any_float ? TN_ATTR_FLOAT_LIST : TN_ATTR_INT_LIST;
    out->int_list = any_float ? NULL : &lists->ints;
    out->float_list = any_float ? &lists->floats : NULL;
    return 0;
}
