// SPDX-License-Identifier: MIT
// Checks a primitive's record once, at registration. Later code relies on the checks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../expr/expr.h"
#include "../attr/fields.h"
#include "registry.h"

#define MAX_ATTRS_SIZE 4096

tn_status abi_struct_read(void *own, size_t own_size, const void *given,
                          uint32_t given_size, size_t least, const char *what)
{
    if (given_size < least || given_size > MAX_ABI_STRUCT)
        return fail(TN_ERR_REFUSED,
                    "%s: struct_size is %u, expected at least %zu and at "
                    "most %d",
                    what, given_size, least, MAX_ABI_STRUCT);
    size_t known = given_size < own_size ? given_size : own_size;
    memset(own, 0, own_size);
    memcpy(own, given, known);
    for (size_t i = own_size; i < given_size; i++)
        if (((const unsigned char *)given)[i])
            return fail(TN_ERR_REFUSED,
                        "%s: byte %zu is set, and this version knows only %zu bytes: it "
                        "needs a newer tenon",
                        what, i, own_size);
    return TN_OK;
}

tn_status abi_table_read(struct arena *arena, const void *given, uint64_t given_size,
                         uint32_t count, size_t own_size, const char *what, void *out)
{
    char *own = NULL;
    if (given && count > 0) {
        if (given_size == 0 || given_size > MAX_ABI_STRUCT)
            return fail(TN_ERR_REFUSED,
                        "%s: got elements of %llu bytes, expected %zu, the size of their "
                        "struct",
                        what, (unsigned long long)given_size, own_size);
        own = arena_alloc(arena, count * own_size);
        if (!own)
            return TN_ERR_MEMORY;
    }
    for (uint32_t i = 0; own && i < count; i++) {
        tn_status status = abi_struct_read(own + i * own_size, own_size,
                                           (const char *)given + i * given_size,
                                           (uint32_t)given_size, 1, what);
        if (status != TN_OK)
            return status;
    }
    memcpy(out, &own, sizeof(own)); // a pointer to any type
    return TN_OK;
}

static bool primitive_check_is_identifier(const char *name)
{
    size_t size = name ? strlen(name) : 0;
    if (!size || size > 63 || (name[0] >= '0' && name[0] <= '9'))
        return false;
    for (const char *c = name; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
              (*c >= '0' && *c <= '9') || *c == '_'))
            return false;
    return true;
}

tn_status check_id(const char *id, const char *what)
{
    static const char expected[] = "expected pack.name/revision, such as \"acme.axpby/1\"";
    if (!id)
        return fail(TN_ERR_REFUSED, "%s is NULL, %s", what, expected);
    size_t size = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789._-");
    const char *point = memrchr(id, '.', size);
    const char *revision = id + size + 1;
    bool ok = id[size] == '/' && size < 120 && point && point > id &&
              point < id + size - 1 && *revision >= '1' && *revision <= '9' &&
              strlen(revision) <= 6 && strspn(revision, "0123456789") == strlen(revision);
    if (!ok)
        return fail(TN_ERR_REFUSED, "%s is '%.60s', %s", what, id, expected);
    return TN_OK;
}

// Copies the inputs into the arena; an input that names no dtypes takes the first ones.
static tn_status read_inputs(struct arena *arena, tn_primitive *p)
{
    tn_input_info *inputs = NULL;
    if (p->num_inputs > MAX_INPUTS || (p->num_inputs && !p->inputs))
        return fail(TN_ERR_REFUSED, "inputs: got %u%s, expected at most %d", p->num_inputs,
                    p->inputs ? "" : " in no table", MAX_INPUTS);
    tn_status status = abi_table_read(arena, p->inputs, p->input_size, p->num_inputs,
                                      sizeof(*inputs), "inputs", &inputs);
    for (uint32_t i = 0; status == TN_OK && inputs && i < p->num_inputs; i++)
        inputs[i].dtypes = inputs[i].dtypes ? inputs[i].dtypes : TN_FIRST_DTYPES;
    p->inputs = inputs;
    p->input_size = sizeof(*inputs);
    return status;
}

static tn_status primitive_check_inputs(const tn_primitive *p)
{
    const uint32_t known = TN_INPUT_OPTIONAL | TN_INPUT_VARIADIC | TN_INPUT_CONSTANT;
    bool optional = false;
    for (uint32_t i = 0; i < p->num_inputs; i++) {
        const tn_input_info *input = &p->inputs[i];
        if (!primitive_check_is_identifier(input->name))
            return fail(TN_ERR_REFUSED,
                        "inputs[%u].name is '%.60s', expected an identifier", i,
                        input->name ? input->name : "NULL");
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(p->inputs[k].name, input->name) == 0)
                return fail(TN_ERR_REFUSED, "two inputs are named '%s'", input->name);
        if (input->flags & ~known)
            return fail(TN_ERR_REFUSED, "inputs[%u] ('%s'): unknown flags 0x%x", i,
                        input->name, input->flags & ~known);
        if (input->dtypes & ~TN_ALL_DTYPES)
            return fail(TN_ERR_REFUSED, "inputs[%u] ('%s'): unknown dtypes 0x%x", i,
                        input->name, input->dtypes & ~TN_ALL_DTYPES);
        if (optional && !(input->flags & TN_INPUT_OPTIONAL))
            return fail(TN_ERR_REFUSED, "input '%s' is required after an optional one",
                        input->name);
        optional |= (input->flags & TN_INPUT_OPTIONAL) != 0;
        if (input->flags & TN_INPUT_VARIADIC && i + 1 < p->num_inputs)
            return fail(TN_ERR_REFUSED, "input '%s' is variadic but not the last",
                        input->name);
        if (p->expr && input->flags & (TN_INPUT_OPTIONAL | TN_INPUT_VARIADIC))
            return fail(TN_ERR_REFUSED,
                        "input '%s' is optional or variadic: an expression needs all",
                        input->name);
    }
    return TN_OK;
}

static tn_status primitive_check_outputs(struct arena *arena, tn_primitive *p)
{
    if (p->num_outputs > MAX_NAMED_OUTPUTS)
        return fail(TN_ERR_REFUSED, "outputs: got %u, expected at most %d", p->num_outputs,
                    MAX_NAMED_OUTPUTS);
    if (!p->outputs && p->num_outputs > 1)
        return fail(TN_ERR_REFUSED, "%u outputs have no table of names", p->num_outputs);
    tn_status status = abi_table_read(arena, p->outputs, p->output_size, p->num_outputs,
                                      sizeof(*p->outputs), "outputs", &p->outputs);
    if (status != TN_OK)
        return status;
    p->output_size = sizeof(*p->outputs);
    for (uint32_t i = 0; p->outputs && i < p->num_outputs; i++) {
        if (!primitive_check_is_identifier(p->outputs[i].name))
            return fail(TN_ERR_REFUSED,
                        "outputs[%u].name is '%.60s', expected an identifier", i,
                        p->outputs[i].name ? p->outputs[i].name : "NULL");
        if (p->outputs[i].flags & ~(uint32_t)TN_OUTPUT_OPTIONAL || p->outputs[i].reserved)
            return fail(TN_ERR_REFUSED, "outputs[%u] ('%s'): unknown flags 0x%x", i,
                        p->outputs[i].name, p->outputs[i].flags);
    }
    return TN_OK;
}

static tn_status check_in_place(struct arena *arena, tn_primitive *p, struct prim *prim)
{
    const uint32_t most = MAX_INPUTS * MAX_NAMED_OUTPUTS;
    if (p->num_in_place > most || (p->num_in_place && !p->in_place))
        return fail(TN_ERR_REFUSED, "in_place: got %u pairs%s, expected at most %u",
                    p->num_in_place, p->in_place ? "" : " in no table", most);
    tn_status status = abi_table_read(arena, p->in_place, p->in_place_size, p->num_in_place,
                                      sizeof(*p->in_place), "in_place", &p->in_place);
    if (status != TN_OK)
        return status;
    p->in_place_size = sizeof(*p->in_place);
    for (uint32_t i = 0; i < p->num_in_place; i++) {
        tn_in_place pair = p->in_place[i];
        if (pair.input < 0 || pair.input >= (int32_t)p->num_inputs || pair.output < 0 ||
            pair.output >= (int32_t)p->num_outputs)
            return fail(TN_ERR_REFUSED,
                        "in_place[%u]: input %d and output %d, expected below %u and %u", i,
                        pair.input, pair.output, p->num_inputs, p->num_outputs);
        if (pair.update < 0 || pair.update > (int32_t)p->num_inputs || pair.reserved)
            return fail(
                TN_ERR_REFUSED,
                "in_place[%u]: update %d and reserved %d, expected at most %u and 0", i,
                pair.update, pair.reserved, p->num_inputs);
        prim->in_place_of[pair.output] = (uint32_t)pair.input + 1;
        prim->update_of[pair.output] = (uint32_t)pair.update;
    }
    return TN_OK;
}

static tn_status check_pair_rules(struct arena *arena, tn_primitive *p)
{
    if (p->num_pair_rules > MAX_PAIR_RULES || (p->num_pair_rules && !p->pair_rules))
        return fail(TN_ERR_REFUSED, "pair_rules: got %u%s, expected at most %u",
                    p->num_pair_rules, p->pair_rules ? "" : " in no table", MAX_PAIR_RULES);
    tn_status status =
        abi_table_read(arena, p->pair_rules, p->pair_rule_size, p->num_pair_rules,
                       sizeof(*p->pair_rules), "pair_rules", &p->pair_rules);
    p->pair_rule_size = sizeof(*p->pair_rules);
    for (uint32_t i = 0; i < p->num_pair_rules && status == TN_OK; i++) {
        const tn_pair_rule *n = &p->pair_rules[i];
        if (n->input >= p->num_inputs || !n->rewrite || n->reserved)
            return fail(TN_ERR_REFUSED, "pair_rules[%u]: input %u, expected below %u%s%s",
                        i, n->input, p->num_inputs, n->rewrite ? "" : ", and rewrite",
                        n->reserved ? "; reserved is not 0" : "");
        status = check_id(n->primitive, "pair_rules[].primitive");
    }
    return status;
}

// --- attributes ------------------------------------------------------------------------

static tn_status check_field_value(const tn_attr_field *field)
{
    int64_t value = field->default_i, count = 0;
    bool ok = true;
    switch (field->kind) {
    case TN_ATTR_BOOL:
        ok = value == 0 || value == 1;
        break;
    case TN_ATTR_DTYPE:
        ok = value == 0 || (value > 0 && value < TN_NUM_DTYPES);
        break;
    case TN_ATTR_CHOICE:
        if (!field->choices || !field->choices[0])
            return fail(TN_ERR_REFUSED, "attribute '%s' has no choices", field->name);
        while (count <= MAX_NAMES && field->choices[count])
            count++;
        if (count > MAX_NAMES)
            return fail(TN_ERR_REFUSED, "attribute '%s' has more than %d choices",
                        field->name, MAX_NAMES);
        ok = value >= 0 && value < count;
        break;
    case TN_ATTR_STRING:
    case TN_ATTR_INT_LIST:
    case TN_ATTR_FLOAT_LIST:
    case TN_ATTR_GRAPH:
        if (value)
            return fail(TN_ERR_REFUSED, "attribute '%s': default %lld, expected none",
                        field->name, (long long)value);
        break;
    }
    if (!ok)
        return fail(TN_ERR_REFUSED, "attribute '%s': default %lld, expected %s",
                    field->name, (long long)value, field_expects(field));
    return TN_OK;
}

static uint64_t field_bytes(const tn_attr_field *field)
{
    return field->kind == TN_ATTR_INTS ? sizeof(tn_ints) : sizeof(int64_t);
}

static tn_status check_field(const tn_attr_table *table, uint32_t index)
{
    const tn_attr_field *field = &table->fields[index];
    if (!primitive_check_is_identifier(field->name))
        return fail(TN_ERR_REFUSED, "attribute %u: name '%.60s', expected an identifier",
                    index, field->name ? field->name : "NULL");
    if (field->kind < TN_ATTR_BOOL || field->kind > TN_ATTR_GRAPH)
        return fail(TN_ERR_REFUSED, "attribute '%s': unknown kind %u", field->name,
                    field->kind);
    const uint32_t known = TN_ATTR_REQUIRED | TN_ATTR_RUNTIME | TN_ATTR_RESULT;
    if (field->flags & ~known)
        return fail(TN_ERR_REFUSED, "attribute '%s': unknown flags 0x%x", field->name,
                    field->flags & ~known);
    if (field->flags & TN_ATTR_RUNTIME && field->kind != TN_ATTR_F64 &&
        field->kind != TN_ATTR_I64)
        return fail(TN_ERR_REFUSED,
                    "attribute '%s': a runtime attribute of kind %u, expected F64 or I64",
                    field->name, field->kind);
    if (field->flags & TN_ATTR_RESULT &&
        (field->kind != TN_ATTR_DTYPE || field->flags != TN_ATTR_RESULT ||
         field->default_i))
        return fail(TN_ERR_REFUSED,
                    "attribute '%s': expected a dtype without a default, as "
                    "that of the result",
                    field->name);
    uint64_t size = field_bytes(field);
    if (field->offset % 8 || field->offset > table->size ||
        table->size - field->offset < size)
        return fail(TN_ERR_REFUSED,
                    "attribute '%s': %llu bytes at offset %llu, expected within the "
                    "struct's %u and at a multiple of 8",
                    field->name, (unsigned long long)size,
                    (unsigned long long)field->offset, table->size);
    for (uint32_t i = 0; i < index; i++) {
        const tn_attr_field *other = &table->fields[i];
        if (strcmp(other->name, field->name) == 0)
            return fail(TN_ERR_REFUSED, "two attributes are named '%s'", field->name);
        if (field->offset < other->offset + field_bytes(other) &&
            other->offset < field->offset + size)
            return fail(TN_ERR_REFUSED, "attributes '%s' and '%s' overlap", other->name,
                        field->name);
    }
    return check_field_value(field);
}

// Copies the fields into the arena, each as this core's version of the struct.
static tn_status read_table(struct arena *arena, tn_attr_table *table)
{
    if (table->size % 8 || table->size > MAX_ATTRS_SIZE)
        return fail(TN_ERR_REFUSED,
                    "attrs.size is %u, expected a multiple of 8, at most %d", table->size,
                    MAX_ATTRS_SIZE);
    if (table->num_fields > MAX_ATTR_FIELDS || (table->num_fields && !table->fields))
        return fail(TN_ERR_REFUSED, "attrs.num_fields is %u, expected at most %d",
                    table->num_fields, MAX_ATTR_FIELDS);
    if (!table->num_fields)
        return TN_OK;
    tn_status status =
        abi_table_read(arena, table->fields, table->field_size, table->num_fields,
                       sizeof(*table->fields), "attrs.fields", &table->fields);
    table->field_size = sizeof(*table->fields);
    return status;
}

static tn_status check_attrs(struct arena *arena, tn_primitive *p)
{
    tn_status status = read_table(arena, &p->attrs);
    for (uint32_t i = 0; status == TN_OK && i < p->attrs.num_fields; i++) {
        status = check_field(&p->attrs, i);
        for (uint32_t k = 0; status == TN_OK && k < p->num_inputs; k++)
            if (strcmp(p->inputs[k].name, p->attrs.fields[i].name) == 0)
                return fail(TN_ERR_REFUSED, "'%s' names an input and an attribute",
                            p->inputs[k].name);
    }
    return status;
}

// --- meaning ---------------------------------------------------------------------------

// The reduction that a role names: TN_EXPR_REDUCE_..., EXPR_MEAN, or 0.
static int32_t reduction_of_role(const char *role)
{
    static const struct {
        const char *role;
        int32_t reduction;
    } table[] = {{TN_ROLE_SUM, TN_EXPR_REDUCE_SUM},
                 {TN_ROLE_PROD, TN_EXPR_REDUCE_PROD},
                 {TN_ROLE_MEAN, EXPR_MEAN},
                 {TN_ROLE_MIN, TN_EXPR_REDUCE_MIN},
                 {TN_ROLE_MAX, TN_EXPR_REDUCE_MAX}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(role, table[i].role) == 0)
            return table[i].reduction;
    return 0;
}

// The attribute that the core sets when it applies a primitive of this role; NULL: unknown
// role.
static const char *role_attribute(const char *role)
{
    static const char *const table[][2] = {{TN_ROLE_SUM_TO, "shape"},
                                           {TN_ROLE_BROADCAST_TO, "shape"},
                                           {TN_ROLE_RESHAPE, "shape"},
                                           {TN_ROLE_TRANSPOSE, "axes"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(role, table[i][0]) == 0)
            return table[i][1];
    return reduction_of_role(role) ? "axis" : NULL;
}

// A reduction by role has one input, one output and `keepdims`.
static tn_status primitive_check_reduction(const tn_primitive *p)
{
    int keepdims = attrs_field_index(&p->attrs, "keepdims");
    if (keepdims < 0 || p->attrs.fields[keepdims].kind != TN_ATTR_BOOL)
        return fail(TN_ERR_REFUSED, "role %s needs an attribute `keepdims`, a bool",
                    p->role);
    if (p->num_inputs != 1 || p->num_outputs != 1)
        return fail(TN_ERR_REFUSED, "role %s needs one input and one output, got %u and %u",
                    p->role, p->num_inputs, p->num_outputs);
    return TN_OK;
}

// By role a take has two inputs, one output and `axis`, a number that plans depend on.
static tn_status check_take(const tn_primitive *p)
{
    int axis = attrs_field_index(&p->attrs, "axis");
    if (axis < 0 || p->attrs.fields[axis].kind != TN_ATTR_I64 ||
        p->attrs.fields[axis].flags & TN_ATTR_RUNTIME)
        return fail(TN_ERR_REFUSED,
                    "role %s needs an attribute `axis`, an integer that is no runtime "
                    "attribute",
                    p->role);
    if (p->num_inputs != 2 || p->num_outputs != 1)
        return fail(TN_ERR_REFUSED,
                    "role %s needs two inputs and one output, got %u and %u", p->role,
                    p->num_inputs, p->num_outputs);
    return TN_OK;
}

static bool is_take(const tn_primitive *p)
{
    return p->role && strcmp(p->role, TN_ROLE_TAKE) == 0;
}

static tn_status check_effects(const tn_primitive *p)
{
    bool has_effect = p->flags & TN_PRIM_EFFECT;
    const char *other = p->expr                   ? "expr"
                        : p->decompose            ? "decompose"
                        : p->flags & TN_PRIM_VIEW ? "TN_PRIM_VIEW"
                        : p->role                 ? "a role"
                                                  : NULL;
    if (has_effect && other)
        return fail(TN_ERR_REFUSED,
                    "TN_PRIM_EFFECT together with %s: the effect is that of `reference` "
                    "and of kernels",
                    other);
    if ((p->effects || p->flags & TN_PRIM_STARTS) && !has_effect)
        return fail(TN_ERR_REFUSED, "effects without the flag TN_PRIM_EFFECT");
    size_t length = p->effects ? strlen(p->effects) : 1;
    return length >= 1 && length <= 63
               ? TN_OK
               : fail(TN_ERR_REFUSED, "effects has %zu bytes, expected 1 .. 63", length);
}

// A composite has no nodes, so these members of its record would never be used: refused.
static tn_status composite_check(const tn_primitive *p)
{
    const struct {
        const char *name;
        bool given;
    } others[] = {{"reference", p->reference},
                  {"view", p->view},
                  {"run", p->run},
                  {"vjp", p->vjp},
                  {"jvp", p->jvp},
                  {"vmap", p->vmap},
                  {"role", p->role},
                  {"in_place", p->num_in_place},
                  {"flags", p->flags},
                  {"pair_rules", p->num_pair_rules}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (others[i].given)
            return fail(TN_ERR_REFUSED,
                        "infer is NULL, and %s is given: expected `infer` as well, or "
                        "decompose alone",
                        others[i].name);
    return TN_OK;
}

static tn_status primitive_check_meaning(const tn_primitive *p)
{
    const uint32_t known =
        TN_PRIM_VIEW | TN_PRIM_EFFECT | TN_PRIM_OWN_TYPE | TN_PRIM_STARTS;
    if (p->flags & ~known)
        return fail(TN_ERR_REFUSED, "unknown flags 0x%x", p->flags & ~known);
    bool is_view = p->flags & TN_PRIM_VIEW, has_role = p->role && role_attribute(p->role);
    if (!p->expr && !p->decompose && !p->reference && !p->run && !(is_view && p->view))
        return fail(TN_ERR_REFUSED, "it has no meaning: one of expr, decompose, reference "
                                    "and run is needed");
    if (p->run && (p->expr || is_view || p->num_in_place))
        return fail(TN_ERR_REFUSED, "run together with %s",
                    p->expr   ? "expr"
                    : is_view ? "a view"
                              : "in_place");
    if (!p->infer && !p->expr && p->decompose)
        return composite_check(p);
    if (!p->infer && (!p->expr || p->flags & TN_PRIM_OWN_TYPE))
        return fail(TN_ERR_REFUSED, "infer is NULL%s",
                    p->expr ? ", and TN_PRIM_OWN_TYPE says that it decides the type" : "");
    if (p->flags & TN_PRIM_VIEW && (!p->view || p->num_inputs == 0 || p->num_outputs != 1))
        return fail(TN_ERR_REFUSED, "TN_PRIM_VIEW needs `view`, an input and one output");
    if (has_role || is_view)
        for (uint32_t i = 0; i < p->attrs.num_fields; i++)
            if (p->attrs.fields[i].flags & TN_ATTR_RUNTIME)
                return fail(TN_ERR_REFUSED, "attribute '%s': %s has no runtime attribute",
                            p->attrs.fields[i].name, is_view ? "a view" : "a role");
    if (p->count_outputs &&
        (p->num_outputs > 1 || p->expr || is_view || has_role || p->num_in_place))
        return fail(TN_ERR_REFUSED, "count_outputs together with %s",
                    p->num_outputs > 1 ? "a number of outputs"
                    : p->expr          ? "expr"
                    : is_view          ? "a view"
                    : has_role         ? "a role"
                                       : "in_place");
    if (p->role) {
        const char *name = role_attribute(p->role);
        int index = name ? attrs_field_index(&p->attrs, name) : -1;
        if (name && (index < 0 || p->attrs.fields[index].kind != TN_ATTR_INTS))
            return fail(TN_ERR_REFUSED, "role %s needs an attribute `%s` of integers",
                        p->role, name);
        if (reduction_of_role(p->role))
            return primitive_check_reduction(p);
    }
    return is_take(p) ? check_take(p) : TN_OK;
}

uint8_t prim_weak_kind(const struct prim *prim, uint32_t i, uint32_t num_inputs)
{
    if (!prim || i + prim->num_runtime < num_inputs)
        return 0;
    uint32_t field = prim->runtime[i + prim->num_runtime - num_inputs];
    return prim->record.attrs.fields[field].kind == TN_ATTR_F64 ? KIND_FLOAT : KIND_SIGNED;
}

// An expression that reduces has an attribute `axis`. Appends it when the table has none.
static tn_status primitive_check_add_axis(struct arena *arena, tn_primitive *p)
{
    static const tn_attr_field axis = {.name = "axis",
                                       .doc = "axis of the rows that are reduced",
                                       .kind = TN_ATTR_I64,
                                       .default_i = -1};
    tn_attr_table *table = &p->attrs;
    int index = attrs_field_index(table, axis.name);
    if (index >= 0 && table->fields[index].flags & TN_ATTR_RUNTIME)
        return fail(TN_ERR_REFUSED, "attribute 'axis' is a runtime attribute, and a plan "
                                    "depends on the axis that the expression reduces");
    if (index >= 0)
        return table->fields[index].kind == TN_ATTR_I64
                   ? TN_OK
                   : fail(TN_ERR_REFUSED,
                          "attribute 'axis' is %s, expected an integer: the "
                          "expression reduces along it",
                          field_expects(&table->fields[index]));
    for (uint32_t i = 0; i < p->num_inputs; i++)
        if (strcmp(p->inputs[i].name, axis.name) == 0)
            return fail(TN_ERR_REFUSED, "input 'axis' has the name of the attribute along "
                                        "which the expression reduces");
    if (table->num_fields == MAX_ATTR_FIELDS || table->size + 8 > MAX_ATTRS_SIZE)
        return fail(TN_ERR_REFUSED, "no room for the attribute 'axis' of its reductions");
    tn_attr_field *fields = arena_alloc(arena, (table->num_fields + 1) * sizeof(*fields));
    if (!fields)
        return TN_ERR_MEMORY;
    if (table->num_fields)
        memcpy(fields, table->fields, table->num_fields * sizeof(*fields));
    fields[table->num_fields] = axis;
    fields[table->num_fields].offset = table->size;
    *table =
        (tn_attr_table){table->size + 8, table->num_fields + 1, sizeof(*fields), fields};
    return TN_OK;
}

// Collects the runtime attributes, and parses the expression, which has them as inputs.
static tn_status parse_meaning(tn_runtime *runtime, struct arena *arena, tn_primitive *p,
                               struct prim *prim)
{
    const char *names[MAX_INPUTS + MAX_ATTR_FIELDS];
    uint32_t num_names = 0;
    for (uint32_t i = 0; i < p->attrs.num_fields; i++)
        if (p->attrs.fields[i].flags & TN_ATTR_RUNTIME)
            prim->runtime[prim->num_runtime++] = (uint8_t)i;
        else if (p->attrs.fields[i].flags & TN_ATTR_RESULT) {
            if (prim->result_dtype || p->num_inputs == 0)
                return fail(TN_ERR_REFUSED, "the dtype of a result: one, and an input");
            prim->result_dtype = i + 1;
        }
    if (!p->expr)
        return TN_OK;
    for (uint32_t i = 0; i < p->num_inputs; i++)
        names[num_names++] = p->inputs[i].name;
    for (uint32_t i = 0; i < prim->num_runtime; i++)
        names[num_names++] = p->attrs.fields[prim->runtime[i]].name;
    tn_status status =
        expr_parse(runtime, p->expr, names, num_names, &p->attrs, &prim->expr);
    if (status == TN_OK && prim->expr->num_outputs != p->num_outputs)
        return fail(TN_ERR_REFUSED, "expr has %u outputs, the primitive %u",
                    prim->expr->num_outputs, p->num_outputs);
    if (status == TN_OK && prim->expr->reduces)
        return primitive_check_add_axis(arena, p);
    return status == TN_ERR_ARGUMENT ? TN_ERR_REFUSED : status;
}

tn_status prim_check(tn_runtime *runtime, struct arena *arena, const tn_primitive *given,
                     struct prim *prim)
{
    tn_primitive *p = &prim->record;
    tn_status status = abi_struct_read(p, sizeof(*p), given, given->struct_size,
                                       TN_END_OF(given, infer), "tn_primitive");
    if (status == TN_OK)
        status = check_id(p->id, "id");
    if (status != TN_OK)
        return status;
    p->struct_size = sizeof(*p);
    prim->reduction = p->role ? reduction_of_role(p->role) : 0;
    prim->is_take = is_take(p);
    p->num_outputs = p->num_outputs ? p->num_outputs : 1;
    status = read_inputs(arena, p);
    if (status == TN_OK)
        status = primitive_check_inputs(p);
    if (status == TN_OK)
        status = primitive_check_outputs(arena, p);
    if (status == TN_OK)
        status = check_in_place(arena, p, prim);
    if (status == TN_OK)
        status = check_pair_rules(arena, p);
    if (status == TN_OK)
        status = check_attrs(arena, p);
    if (status == TN_OK)
        status = primitive_check_meaning(p);
    if (status == TN_OK)
        status = check_effects(p);
    if (status == TN_OK)
        status = parse_meaning(runtime, arena, p, prim);
    if (status != TN_OK)
        fail_prefix("primitive '%.80s': ", p->id);
    return status;
}
