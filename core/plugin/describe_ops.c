// SPDX-License-Identifier: MIT
// ops.json: what a plugin's operators take, for those who do not load it.
//
// {
//   "format": 1, "id": "com.acme.axpby", "version": "1.0.0",
//   "operators": [{
//     "id": "acme.axpby/1", "doc": "alpha * x + beta * y", "expr": "alpha * x + beta * y",
//     "inputs": [{"name": "x", "doc": "...", "dtypes": "f32 f64", "flags": "optional"}],
//     "outputs": [{"name": "out", "doc": "..."}],
//     "attributes": [{"name": "alpha", "doc": "...", "kind": "float", "default": 1.0,
//                     "flags": "runtime"}],
//     "rules": "vjp vmap"
//   }]
// }
//
// Words stand in one text with spaces between; empty members are left out, but for "doc".
// A default is a boolean (bool), an integer (int), a number or "nan", "inf", "-inf"
// (float), a word of "choices" (word), a dtype's name (dtype), hexadecimal digits (bits).
// Attributes of other kinds, and required ones, have no default.
#include "describe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../base/dtype.h"
#include "../primitive/registry.h"

#define MOST_WORDS 256

struct flag_name {
    uint64_t bit;
    const char *name;
};

// Sets `key` to the words whose bits are set, if any.
static int set_words(json_t *object, const char *key, const struct flag_name *words,
                     size_t count, uint64_t bits)
{
    char text[MOST_WORDS] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (bits & words[i].bit)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
                                     used ? " " : "", words[i].name);
    return used ? json_object_set_new(object, key, json_string(text)) : 0;
}

#define SET_WORDS(object, key, words, bits)                                                \
    set_words(object, key, words, sizeof(words) / sizeof((words)[0]), bits)

static int describe_ops_set_dtypes(json_t *object, uint32_t set)
{
    struct flag_name words[TN_NUM_DTYPES];
    for (tn_dtype i = 1; i < TN_NUM_DTYPES; i++)
        words[i - 1] = (struct flag_name){TN_DTYPE_BIT(i), dtype_name(i)};
    return set_words(object, "dtypes", words, TN_NUM_DTYPES - 1, set);
}

static json_t *named_object(const char *name, const char *doc)
{
    return json_pack("{s:s, s:s}", "name", name, "doc", doc ? doc : "");
}

// Takes `object`: adds it to the list, or drops it where building it has failed.
static int describe_ops_add_object(json_t *list, json_t *object, int failed)
{
    if (failed || !object) {
        json_decref(object);
        return -1;
    }
    return json_array_append_new(list, object);
}

static int describe_ops_add_input(json_t *list, const tn_input_info *input)
{
    static const struct flag_name flags[] = {{TN_INPUT_OPTIONAL, "optional"},
                                             {TN_INPUT_VARIADIC, "variadic"},
                                             {TN_INPUT_CONSTANT, "constant"}};
    json_t *object = named_object(input->name, input->doc);
    int failed = describe_ops_set_dtypes(object, input->dtypes);
    return describe_ops_add_object(
        list, object, failed | SET_WORDS(object, "flags", flags, input->flags));
}

static int describe_ops_add_output(json_t *list, const tn_output_info *output)
{
    static const struct flag_name flags[] = {{TN_OUTPUT_OPTIONAL, "optional"}};
    json_t *object = named_object(output->name, output->doc);
    return describe_ops_add_object(list, object,
                                   SET_WORDS(object, "flags", flags, output->flags));
}

static json_t *describe_ops_number_of(double value)
{
    if (isfinite(value))
        return json_real(value);
    return json_string(isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
}

// The default value; NULL: none.
static json_t *default_of(const tn_attr_field *field)
{
    char text[24];
    if (field->flags & TN_ATTR_REQUIRED)
        return NULL;
    switch (field->kind) {
    case TN_ATTR_BOOL:
        return json_boolean(field->default_i);
    case TN_ATTR_I64:
        return json_integer(field->default_i);
    case TN_ATTR_F64:
        return describe_ops_number_of(field->default_f);
    case TN_ATTR_CHOICE:
        return json_string(field->choices[field->default_i]);
    case TN_ATTR_DTYPE:
        return field->default_i ? json_string(dtype_name((tn_dtype)field->default_i))
                                : NULL;
    case TN_ATTR_BITS:
        snprintf(text, sizeof(text), "%" PRIx64, (uint64_t)field->default_i);
        return json_string(text);
    default:
        return NULL;
    }
}

static int add_attribute(json_t *list, const tn_attr_field *field)
{
    static const char *const kinds[] = {"",      "bool",     "int",        "float",
                                        "dtype", "word",     "ints",       "bits",
                                        "text",  "int list", "float list", "graph"};
    static const struct flag_name flags[] = {{TN_ATTR_REQUIRED, "required"},
                                             {TN_ATTR_RUNTIME, "runtime"},
                                             {TN_ATTR_RESULT, "result"}};
    json_t *object = named_object(field->name, field->doc), *value = default_of(field);
    int failed = json_object_set_new(object, "kind", json_string(kinds[field->kind]));
    failed |= SET_WORDS(object, "flags", flags, field->flags);
    if (value)
        failed |= json_object_set_new(object, "default", value);
    json_t *words = field->kind == TN_ATTR_CHOICE ? json_array() : NULL;
    for (const char *const *word = field->choices; words && *word; word++)
        failed |= json_array_append_new(words, json_string(*word));
    if (field->kind == TN_ATTR_CHOICE)
        failed |= json_object_set_new(object, "choices", words);
    return describe_ops_add_object(list, object, failed);
}

static uint64_t describe_ops_rules_of(const tn_primitive *p)
{
    return (p->decompose ? 1u : 0) | (p->reference ? 2u : 0) | (p->infer ? 4u : 0) |
           (p->view ? 8u : 0) | (p->vjp ? 16u : 0) | (p->jvp ? 32u : 0) |
           (p->vmap ? 64u : 0) | (p->run ? 128u : 0) | (p->count_outputs ? 256u : 0);
}

// `p`: as prim_check() copied it.
static json_t *operator_of(const tn_primitive *p)
{
    static const struct flag_name rules[] = {
        {1, "decompose"}, {2, "reference"}, {4, "infer"},
        {8, "view"},      {16, "vjp"},      {32, "jvp"},
        {64, "vmap"},     {128, "run"},     {256, "count_outputs"},
    };
    static const tn_output_info out = {.name = "out", .doc = ""};
    json_t *inputs = json_array(), *outputs = json_array(), *attributes = json_array();
    json_t *pair_rules = p->num_pair_rules ? json_array() : NULL;
    int failed = 0;
    for (uint32_t i = 0; i < p->num_inputs; i++)
        failed |= describe_ops_add_input(inputs, &p->inputs[i]);
    for (uint32_t i = 0; i < p->num_outputs; i++)
        failed |= describe_ops_add_output(outputs, p->outputs ? &p->outputs[i] : &out);
    for (uint32_t i = 0; i < p->attrs.num_fields; i++)
        failed |= add_attribute(attributes, attrs_field(&p->attrs, i));
    for (uint32_t i = 0; i < p->num_pair_rules; i++)
        failed |=
            json_array_append_new(pair_rules, json_string(p->pair_rules[i].primitive));
    json_t *whole = json_pack("{s:s, s:s, s:s*, s:s*, s:o, s:o, s:o, s:o*}", "id", p->id,
                              "doc", p->doc ? p->doc : "", "expr", p->expr, "effects",
                              p->effects, "inputs", inputs, "outputs", outputs,
                              "attributes", attributes, "pair_rules", pair_rules);
    failed |= SET_WORDS(whole, "rules", rules, describe_ops_rules_of(p));
    if (!failed)
        return whole;
    json_decref(whole);
    return NULL;
}

tn_status describe_operator(tn_runtime *runtime, const tn_primitive *given, json_t **out)
{
    struct arena arena = {0};
    struct prim prim = {.record.id = NULL};
    tn_status status = prim_check(runtime, &arena, given, &prim);
    if (status == TN_OK && !(*out = operator_of(&prim.record)))
        status = fail(TN_ERR_MEMORY,
                      "out of memory, or a text of the primitive '%s' is not UTF-8",
                      prim.record.id);
    arena_finish(&arena);
    return status;
}
