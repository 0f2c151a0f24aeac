// SPDX-License-Identifier: MIT
// Applies operators: first arrays by position, then attributes by position; then either by
// name. A string by position is the next text attribute wherever it stands, so that
// einsum('ij->i', x) reads as in NumPy, and a list of arrays is as many arrays where any
// number of them is taken: stack([a, b]).
#include "ops/describe.h"
#include "evaluator.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ATTRS 32

// One application while its arguments are collected.
struct lang_call {
    struct evaluator *e;
    const struct lang_node *node;
    const tn_primitive *primitive;
    const tn_array **inputs; // owned
    uint32_t num_inputs;
    tn_attr attrs[MAX_ATTRS];
    struct attr_lists lists[MAX_ATTRS];
    void *values[MAX_ATTRS]; // owned: of `lists`
    uint32_t num_attrs;
    const struct lang_node *bodies[MAX_ATTRS]; // of attributes that are graphs; else NULL
};

// --- finding the operator --------------------------------------------------------------

static int unknown_operator(struct evaluator *e, const struct lang_node *node)
{
    const char *name = node_text(e, node);
    const char *why = tn_last_error();
    if (why && why[0])
        return node_oops(e, node, "%s", why);
    return node_oops(e, node, "no operator '%s'; 'tenon ops' lists them", name);
}

// --- attributes ------------------------------------------------------------------------

// The field with this name; of kind 0: there is none.
static tn_attr_field field_named(const tn_primitive *primitive, const char *name)
{
    for (uint32_t i = 0; i < primitive->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&primitive->attrs, i);
        if (strcmp(field.name, name) == 0)
            return field;
    }
    return (tn_attr_field){0};
}

// Sets an attribute from a word or a string. A text is left out by the word `none`.
static void lang_apply_set_text(struct lang_call *call, tn_attr *attr,
                                const struct lang_node *node)
{
    const char *text = node_text(call->e, node);
    uint32_t kind = field_named(call->primitive, attr->name).kind;
    bool is_string = kind == TN_ATTR_STRING;
    if (kind == TN_ATTR_GRAPH && node->kind == LANG_TEXT) {
        attr->kind = kind; // traced when all inputs are known
        attr->text = text;
        call->bodies[call->num_attrs] = node;
        return;
    }
    bool is_none = is_string && node->kind == LANG_NAME && strcmp(text, "none") == 0;
    attr->kind = is_string ? TN_ATTR_STRING : TN_ATTR_TEXT;
    attr->text = is_none ? NULL : text;
}

// Sets an attribute from a list.
static int set_list(struct lang_call *call, tn_attr *attr, uint32_t index)
{
    uint32_t n = call->num_attrs, count = call->e->tree->nodes[index].count;
    call->values[n] = calloc(count + 1, 8);
    return call->values[n]
               ? literal_list(call->e, index, call->values[n], &call->lists[n], attr)
               : oops_memory();
}

// Whether an attribute is set already.
static bool lang_apply_is_set(const struct lang_call *call, const char *name)
{
    for (uint32_t i = 0; i < call->num_attrs; i++)
        if (strcmp(call->attrs[i].name, name) == 0)
            return true;
    return false;
}

// Whether an integer above INT64_MAX is a double, too: its 53 leading bits say all.
static bool is_exact(const struct lang_value *value)
{
    return ((uint64_t)value->i & 0x7ff) == 0;
}

// Sets the next attribute from the node at `index`.
static int set_attr(struct lang_call *call, const char *name, uint32_t index)
{
    struct evaluator *e = call->e;
    const struct lang_node *node = &e->tree->nodes[index];
    const struct lang_value *value = &e->values[index];
    if (call->num_attrs >= MAX_ATTRS)
        return node_oops(e, node, "more than %d attributes", MAX_ATTRS);
    if (lang_apply_is_set(call, name))
        return node_oops(e, node, "attribute '%s' is given twice", name);
    tn_attr *attr = &call->attrs[call->num_attrs];
    *attr = (tn_attr){.name = name};
    if (value->is_number) {
        if (value->kind == LANG_UINT && !is_exact(value))
            return node_oops(e, node, "attribute '%s': %" PRIu64 " is not exact as an f64",
                             name, (uint64_t)value->i);
        attr->kind = value->kind == LANG_FLOAT || value->kind == LANG_UINT ? TN_ATTR_F64
                     : value->kind == LANG_BOOL                            ? TN_ATTR_BOOL
                                                                           : TN_ATTR_I64;
        attr->i = value->i;
        attr->f = value->f;
    } else if (value->array && field_named(call->primitive, name).flags & TN_ATTR_RUNTIME) {
        attr->kind = TN_ATTR_ARRAY;
        attr->array = value->array;
    } else if (node->kind == LANG_TEXT || node->kind == LANG_NAME) {
        lang_apply_set_text(call, attr, node);
    } else if (node->kind == LANG_LIST || node->kind == LANG_TUPLE) {
        int failed = set_list(call, attr, index);
        if (failed)
            return failed;
    } else {
        return node_oops(e, node,
                         "attribute '%s' is known before anything is computed: "
                         "expected a number, a list, a word or a string",
                         name);
    }
    call->num_attrs++;
    return 0;
}

// --- arguments -------------------------------------------------------------------------

static uint32_t max_inputs(const tn_primitive *primitive)
{
    uint32_t n = primitive->num_inputs;
    return n && primitive->inputs[n - 1].flags & TN_INPUT_VARIADIC ? UINT32_MAX : n;
}

// The first text attribute that is not set; NULL: none.
static const char *next_text(const struct lang_call *call)
{
    for (uint32_t i = 0; i < call->primitive->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&call->primitive->attrs, i);
        if (field.kind == TN_ATTR_STRING && !lang_apply_is_set(call, field.name))
            return field.name;
    }
    return NULL;
}

// Whether a list holds arrays, not only numbers and lists of these.
static bool holds_arrays(const struct evaluator *e, const struct lang_node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (child_value(e, node, i)->array)
            return true;
    return false;
}

// Puts an array, or nothing for the word `none`, in the place of input `at`.
static int set_input(struct lang_call *call, uint32_t at, uint32_t index)
{
    struct evaluator *e = call->e;
    const struct lang_node *node = &e->tree->nodes[index];
    tn_array *array = NULL;
    bool is_none = node->kind == LANG_NAME && !e->values[index].array &&
                   strcmp(node_text(e, node), "none") == 0;
    int failed = 0;
    if (at < call->primitive->num_inputs && is_none &&
        call->primitive->inputs[at].flags & TN_INPUT_OPTIONAL)
        array = NULL;
    else
        failed = value_array(e, index, &array);
    call->inputs[at] = array;
    if (!failed && at >= call->num_inputs)
        call->num_inputs = at + 1;
    return failed;
}

// Adds an argument by position: an input, or the next attribute after the last input.
static int add_positional(struct lang_call *call, uint32_t index)
{
    const tn_primitive *primitive = call->primitive;
    struct evaluator *e = call->e;
    const struct lang_node *node = &e->tree->nodes[index];
    const char *text = node->kind == LANG_TEXT ? next_text(call) : NULL;
    if (text)
        return set_attr(call, text, index);
    if (call->num_inputs < max_inputs(primitive)) {
        bool many = call->num_inputs + 1 >= primitive->num_inputs &&
                    max_inputs(primitive) == UINT32_MAX;
        if (!many || (node->kind != LANG_LIST && node->kind != LANG_TUPLE) ||
            !holds_arrays(e, node))
            return set_input(call, call->num_inputs, index);
        int failed = 0;
        for (uint32_t i = 0; i < node->count && !failed; i++)
            failed = set_input(call, call->num_inputs, e->tree->children[node->first + i]);
        return failed;
    }
    if (call->num_attrs >= primitive->attrs.num_fields)
        return node_oops(e, &e->tree->nodes[index],
                         "too many arguments: %s has %u inputs "
                         "and %u attributes",
                         primitive->id, primitive->num_inputs, primitive->attrs.num_fields);
    return set_attr(call, attr_field(&primitive->attrs, call->num_attrs).name, index);
}

// Adds an argument by name: an input, of which those before it may be left out where they
// are optional, or an attribute.
static int add_named(struct lang_call *call, const struct lang_node *node)
{
    const tn_primitive *primitive = call->primitive;
    struct evaluator *e = call->e;
    const char *name = node_text(e, node);
    uint32_t value = e->tree->children[node->first];
    for (uint32_t i = 0; i < primitive->num_inputs; i++) {
        if (strcmp(primitive->inputs[i].name, name) != 0 ||
            primitive->inputs[i].flags & TN_INPUT_VARIADIC)
            continue;
        if (i < call->num_inputs && call->inputs[i])
            return node_oops(e, node, "input '%s' is given twice", name);
        return set_input(call, i, value);
    }
    return set_attr(call, name, value);
}

static int add_argument(struct lang_call *call, uint32_t index, bool *named)
{
    struct evaluator *e = call->e;
    const struct lang_node *node = &e->tree->nodes[index];
    if (node->kind == LANG_KEYWORD) {
        *named = true;
        return add_named(call, node);
    }
    if (*named)
        return node_oops(e, node, "arguments by position come before those by name");
    return add_positional(call, index);
}

// --- graphs ----------------------------------------------------------------------------

static bool lang_apply_has_role(const struct lang_call *call, const char *role)
{
    return call->primitive->role && strcmp(call->primitive->role, role) == 0;
}

static int64_t integer_attr(const struct lang_call *call, const char *name)
{
    for (uint32_t i = 0; i < call->num_attrs; i++)
        if (strcmp(call->attrs[i].name, name) == 0)
            return call->attrs[i].i;
    return 0;
}

// The types that a graph's inputs have: those of the inputs, but for the condition of cond,
// and for the arrays that scan slices. Gives their number.
static uint32_t body_types(const struct lang_call *call, tn_type *types)
{
    uint32_t first = lang_apply_has_role(call, TN_ROLE_COND) && call->num_inputs > 0,
             count = 0;
    int64_t begin = call->num_inputs, end = begin;
    if (lang_apply_has_role(call, TN_ROLE_SCAN)) {
        begin = integer_attr(call, "carries");
        end = begin + integer_attr(call, "slices");
    }
    for (uint32_t i = first; i < call->num_inputs; i++) {
        const tn_type *type = call->inputs[i] ? tn_array_type(call->inputs[i]) : NULL;
        types[count] = type ? *type : (tn_type){0};
        if (type && i >= begin && i < end && type->rank > 0) {
            types[count].rank--;
            for (int32_t k = 0; k < type->rank; k++)
                types[count].extent[k] = k + 1 < type->rank ? type->extent[k + 1] : 0;
        }
        count++;
    }
    return count;
}

// Traces the bodies. What they use of the names around them becomes further inputs.
static int make_graphs(struct lang_call *call)
{
    tn_captures captures = {0};
    bool any = false;
    for (uint32_t i = 0; i < call->num_attrs; i++)
        any |= call->bodies[i] != NULL;
    if (!any)
        return 0;
    tn_type *types = calloc(call->num_inputs + 1, sizeof(*types));
    int failed = types ? 0 : oops_memory();
    uint32_t count = failed ? 0 : body_types(call, types);
    for (uint32_t i = 0; i < call->num_attrs && !failed; i++) {
        if (!call->bodies[i])
            continue;
        failed = eval_body(call->e, call->bodies[i], call->attrs[i].text, types, count,
                           &captures, &call->attrs[i].graph);
        call->attrs[i].text = NULL;
    }
    free(types);
    if (failed || captures.count == 0)
        return failed;
    const tn_array **all =
        realloc(call->inputs, (call->num_inputs + captures.count + 1) * sizeof(*all));
    if (!all)
        return oops_memory();
    call->inputs = all;
    for (uint64_t i = 0; i < captures.count; i++)
        all[call->num_inputs++] = captures.arrays[i];
    return 0;
}

// --- applying --------------------------------------------------------------------------

static int lang_apply(struct lang_call *call, struct lang_value *value)
{
    struct evaluator *e = call->e;
    const tn_attr_list attrs = TN_ATTR_LIST(call->attrs, call->num_attrs);
    uint32_t n = (uint32_t)tn_op_outputs(e->scope, call->primitive->id, call->inputs,
                                         call->num_inputs, attrs);
    int failed = check_scope(e, call->node);
    if (failed)
        return failed;
    tn_array **outputs = realloc(e->outputs, (e->num_outputs + n) * sizeof(*outputs));
    if (!outputs)
        return oops_memory();
    e->outputs = outputs;
    outputs += e->num_outputs;
    memset(outputs, 0, n * sizeof(*outputs));
    tn_op_n(e->scope, call->primitive->id, call->inputs, call->num_inputs, attrs, outputs,
            n);
    failed = check_scope(e, call->node);
    if (failed)
        return failed;
    if (n == 1) {
        value->array = outputs[0];
    } else {
        value->first_output = e->num_outputs;
        value->num_outputs = n;
        e->num_outputs += n;
    }
    return 0;
}

// Room for the inputs of a call: one for each argument, and each element of a list, or as
// many as the record has.
static size_t most_inputs(const struct lang_call *call)
{
    size_t most = (size_t)call->node->count + call->primitive->num_inputs + 1;
    for (uint32_t i = 0; i < call->node->count; i++)
        most += child_node(call->e, call->node, i)->count;
    return most;
}

int eval_apply(struct evaluator *e, uint32_t index)
{
    const struct lang_node *node = &e->tree->nodes[index];
    struct lang_call call = {.e = e, .node = node};
    call.primitive = tn_primitive_find(e->runtime, node_text(e, node));
    if (!call.primitive && strcmp(node_text(e, node), "grad") == 0)
        return eval_grad(e, index);
    if (!call.primitive)
        return unknown_operator(e, node);
    call.inputs = calloc(most_inputs(&call), sizeof(*call.inputs));
    int failed = call.inputs ? 0 : oops_memory();
    bool named = false;
    for (uint32_t i = 0; !failed && i < node->count; i++)
        failed = add_argument(&call, e->tree->children[node->first + i], &named);
    if (!failed)
        failed = make_graphs(&call);
    if (!failed)
        failed = lang_apply(&call, &e->values[index]);
    for (size_t i = 0; i < MAX_ATTRS; i++)
        free(call.values[i]);
    free(call.inputs);
    return failed;
}
