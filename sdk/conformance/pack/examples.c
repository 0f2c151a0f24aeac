// SPDX-License-Identifier: MIT
// Reads the examples that an author gives for a primitive, in JSON.
#include <jansson.h>
#include "sample.h"

static tn_dtype pack_examples_dtype_of(const char *name)
{
    for (tn_dtype dtype = TN_BOOL; name && dtype < TN_NUM_DTYPES; dtype++)
        if (strcmp(tn_dtype_name(dtype), name) == 0)
            return dtype;
    return TN_DTYPE_NONE;
}

// Reads one input, and bounds of its values into *s. Returns NULL or an error message.
static const char *pack_examples_read_input(json_t *json, tn_type *out, struct sample *s)
{
    const char *dtype = NULL;
    json_t *shape = NULL, *extent;
    size_t axis;
    *out = (tn_type){.dtype = TN_DTYPE_NONE};
    if (json_is_null(json))
        return NULL; // an optional input that is not given
    if (json_unpack(json, "{s:s, s:o, s?F, s?F}", "dtype", &dtype, "shape", &shape, "low",
                    &s->low, "high", &s->high) ||
        !json_is_array(shape) || json_array_size(shape) > TN_MAX_RANK)
        return "an input is {\"dtype\": ..., \"shape\": [...]} or null";
    out->dtype = pack_examples_dtype_of(dtype);
    out->rank = (int32_t)json_array_size(shape);
    json_array_foreach(shape, axis, extent)
    {
        out->extent[axis] = json_integer_value(extent);
        if (!json_is_integer(extent) || out->extent[axis] < 0)
            return "an input's shape has what is no extent";
    }
    return out->dtype ? NULL : "an input's dtype is none of bool, i8 ... f64";
}

static bool pack_examples_is_value(const tn_attr_field *field, int64_t value)
{
    int64_t count = 0;
    switch (field->kind) {
    case TN_ATTR_BOOL:
        return value == 0 || value == 1;
    case TN_ATTR_DTYPE:
        return value >= 0 && value < TN_NUM_DTYPES;
    case TN_ATTR_CHOICE:
        while (field->choices[count])
            count++;
        return value >= 0 && value < count;
    default:
        return true;
    }
}

// Reads a boolean, an integer, or the name of a dtype or choice. False: not a value of this
// field.
static bool pack_examples_read_integer(const tn_attr_field *field, json_t *value,
                                       int64_t *out)
{
    const char *text = json_string_value(value);
    *out = json_is_true(value) ? 1 : json_integer_value(value);
    if (!text)
        return (json_is_boolean(value) || json_is_integer(value)) &&
               pack_examples_is_value(field, *out);
    if (field->kind == TN_ATTR_DTYPE)
        return (*out = pack_examples_dtype_of(text)) != TN_DTYPE_NONE;
    for (; field->kind == TN_ATTR_CHOICE && field->choices[*out]; ++*out)
        if (strcmp(field->choices[*out], text) == 0)
            return true;
    return false;
}

static bool pack_examples_read_ints(json_t *list, tn_ints *out)
{
    size_t i;
    json_t *one;
    bool good = json_is_array(list) && json_array_size(list) <= TN_MAX_RANK;
    *out = (tn_ints){.given = 1};
    if (good)
        json_array_foreach(list, i, one)
        {
            good = good && json_is_integer(one);
            out->value[out->count++] = json_integer_value(one);
        }
    return good;
}

// Reads a text, or a list of any length. What the struct points to lives until the process
// ends, as samples are copied freely: a group reads few examples.
static bool pack_examples_read_value(const tn_attr_field *field, json_t *value,
                                     const void **out)
{
    const char *text = json_string_value(value);
    size_t count = json_array_size(value);
    double *floats = calloc(count + 1, sizeof(*floats));
    int64_t *ints = calloc(count + 1, sizeof(*ints));
    bool good = floats && ints && json_is_array(value);
    for (size_t i = 0; good && i < count; i++) {
        const json_t *one = json_array_get(value, i);
        good = field->kind == TN_ATTR_INT_LIST ? json_is_integer(one) : json_is_number(one);
        floats[i] = json_number_value(one);
        ints[i] = json_integer_value(one);
    }
    if (field->kind == TN_ATTR_STRING) {
        *out = text ? strdup(text) : NULL;
    } else if (field->kind == TN_ATTR_INT_LIST) {
        tn_int_list *list = malloc(sizeof(*list));
        if (list)
            *list = (tn_int_list){count, ints};
        *out = good ? list : NULL;
    } else {
        tn_float_list *list = malloc(sizeof(*list));
        if (list)
            *list = (tn_float_list){count, floats};
        *out = good ? list : NULL;
    }
    return *out != NULL;
}

static bool pack_examples_read_attr(struct sample *s, uint32_t index, json_t *value)
{
    const tn_attr_field *field = &s->primitive->attrs.fields[index];
    void *at = (char *)s->attrs + field->offset;
    s->given |= UINT64_C(1) << index;
    if (field->flags & TN_ATTR_RUNTIME) {
        s->runtime[index] = json_number_value(value);
        return field->kind == TN_ATTR_F64 ? json_is_number(value) : json_is_integer(value);
    }
    if (field->kind == TN_ATTR_INTS)
        return pack_examples_read_ints(value, at);
    if (field->kind > TN_ATTR_BITS)
        return pack_examples_read_value(field, value, at);
    if (field->kind != TN_ATTR_F64)
        return pack_examples_read_integer(field, value, at);
    *(double *)at = json_number_value(value);
    return json_is_number(value);
}

static const char *pack_examples_read_attrs(json_t *attrs, struct sample *s)
{
    const char *name;
    json_t *value;
    json_object_foreach(attrs, name, value)
    {
        uint32_t i = 0, count = s->primitive->attrs.num_fields;
        while (i < count && strcmp(s->primitive->attrs.fields[i].name, name) != 0)
            i++;
        if (i == count)
            return "an attribute is not one of the primitive's";
        if (s->primitive->attrs.fields[i].flags & TN_ATTR_RESULT)
            return "the dtype of a result is asked for by attrs.result alone";
        if (!pack_examples_read_attr(s, i, value))
            return "an attribute has what is no value of its kind";
    }
    return NULL;
}

static const char *read_example(json_t *json, struct sample *s)
{
    json_t *inputs = NULL, *attrs = NULL, *input;
    size_t i;
    if (json_unpack(json, "{s:o, s?o, s?F}", "inputs", &inputs, "attrs", &attrs,
                    "tolerance", &s->tolerance) ||
        !json_is_array(inputs) || json_array_size(inputs) > MAX_IN)
        return "an example is {\"inputs\": [...], \"attrs\": {...}}, at most 16 inputs";
    json_array_foreach(inputs, i, input)
    {
        const char *wrong = pack_examples_read_input(input, &s->types[i], s);
        if (wrong)
            return wrong;
    }
    s->num_inputs = (uint32_t)json_array_size(inputs);
    if (s->num_inputs < s->primitive->num_inputs)
        s->num_inputs = s->primitive->num_inputs; // missing inputs at the end are not given
    return attrs ? pack_examples_read_attrs(attrs, s) : NULL;
}

// Returns the list of a primitive's examples, borrowed from `entry`, or NULL. Fills *how
// from the members beside the list.
static json_t *read_how(struct kit *k, const tn_primitive *primitive, json_t *entry,
                        struct sampling *how)
{
    json_t *list = NULL;
    int random = 1;
    if (!json_is_object(entry))
        return entry;
    if (json_unpack(entry, "{s?o, s?b, s?F, s?F, s?F, s?F}", "examples", &list, "random",
                    &random, "tolerance", &how->tolerance, "low", &how->low, "high",
                    &how->high, "diagonal", &how->diagonal))
        check_fail(k,
                   "%s: %s: expected a list of examples, or {\"examples\": [...], "
                   "\"random\": ..., \"tolerance\": ..., \"low\": ..., \"high\": ..., "
                   "\"diagonal\": ...}",
                   k->examples, primitive->id);
    how->no_random = !random;
    return list;
}

uint32_t examples_read(struct kit *k, const tn_primitive *primitive, struct sample *out,
                       uint32_t max, struct sampling *how)
{
    json_error_t error;
    uint32_t count = 0;
    size_t i;
    json_t *one;
    *how = (struct sampling){.low = -2, .high = 2};
    if (!k->examples)
        return 0;
    json_t *root = json_load_file(k->examples, 0, &error);
    if (!root)
        check_fail(k, "%s:%d: %s", k->examples, error.line, error.text);
    json_t *list = read_how(k, primitive, json_object_get(root, primitive->id), how);
    json_array_foreach(list, i, one)
    {
        if (count == max)
            break;
        sample_defaults(primitive, &out[count]);
        sampling_apply(how, &out[count]);
        const char *wrong = read_example(one, &out[count]);
        if (wrong)
            check_fail(k, "%s: example %zu of %s: %s", k->examples, i, primitive->id,
                       wrong);
        else
            count++;
    }
    json_decref(root);
    return count;
}
