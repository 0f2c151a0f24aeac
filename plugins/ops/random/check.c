// SPDX-License-Identifier: MIT
// Checks of keys, parameters and extents, and pieces of graph that samplers share.
#include "pack.h"

#include <stdio.h>

const tn_input_info random_key_input[1] = {KEY_INPUT};
const char *const random_layouts[] = {"counters", "halves", NULL};

const char *random_shape_text(int32_t rank, const int64_t *extent, char buffer[SHAPE_TEXT])
{
    int at = snprintf(buffer, SHAPE_TEXT, "[");
    for (int32_t i = 0; i < rank; i++)
        at += snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "%s%" PRId64, i ? ", " : "",
                       extent[i]);
    snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "]");
    return buffer;
}

tn_status random_check_key(const tn_host *host, const tn_type *key)
{
    char text[SHAPE_TEXT];
    if (key->dtype == TN_U32 && key->rank == 1 && key->extent[0] == 2)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT,
                      "key is %s%s, expected u32[2]: random.key makes one of a seed",
                      tn_dtype_name(key->dtype),
                      random_shape_text(key->rank, key->extent, text));
}

tn_status random_check_shape(const tn_host *host, const tn_ints *shape)
{
    char text[SHAPE_TEXT];
    for (uint32_t i = 0; i < shape->count; i++)
        if (shape->value[i] < 0)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "shape is %s, expected extents of at least 0",
                              random_shape_text((int32_t)shape->count, shape->value, text));
    return TN_OK;
}

tn_status random_check_axis(const tn_host *host, int64_t axis, int32_t rank,
                            int32_t *out_axis)
{
    if (axis < -rank || axis >= rank)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "axis %" PRId64 " is out of range for rank %d", axis, rank);
    *out_axis = (int32_t)(axis < 0 ? axis + rank : axis);
    return TN_OK;
}

// --- parameters -------------------------------------------------------------------------

// Broadcasts *shape with the extents of x; with `fixed`, *shape may not change. False: they
// do not broadcast.
static bool broadcast_into(tn_ints *shape, const tn_type *x, bool fixed)
{
    uint32_t rank = (uint32_t)x->rank;
    if (fixed && rank > shape->count)
        return false;
    while (shape->count < rank) {
        memmove(shape->value + 1, shape->value, shape->count * sizeof(int64_t));
        shape->value[0] = 1;
        shape->count++;
    }
    for (uint32_t i = 0; i < rank; i++) {
        int64_t *extent = &shape->value[shape->count - rank + i], own = x->extent[i];
        if (own == *extent || own == 1)
            continue;
        if (fixed || *extent != 1)
            return false;
        *extent = own;
    }
    return true;
}

static tn_status find_shape(const tn_build *build, const tn_rule *rule, uint32_t first,
                            tn_ints *shape)
{
    const tn_host *host = build->host;
    bool fixed = shape->given;
    char of_x[SHAPE_TEXT], of_shape[SHAPE_TEXT];
    tn_status status = random_check_shape(host, shape);
    for (uint32_t i = first; i < rule->num_inputs && !status; i++) {
        const tn_type *x = build->type(rule->inputs[i]);
        const tn_ints before = *shape;
        if (x && !broadcast_into(shape, x, fixed))
            status = host->fail(
                host, TN_ERR_ARGUMENT, "input %u has shape %s, expected one that %s %s", i,
                random_shape_text(x->rank, x->extent, of_x),
                fixed ? "broadcasts to shape" : "broadcasts with the others,",
                random_shape_text((int32_t)before.count, before.value, of_shape));
    }
    shape->given = 1;
    return status;
}

tn_status read_sample(const tn_build *build, const tn_rule *rule,
                      const tn_random_bits_attrs *attrs, uint32_t first, struct drawn *out)
{
    const tn_host *host = build->host;
    *out = (struct drawn){
        .key = rule->inputs[0], .shape = attrs->shape, .layout = attrs->layout};
    tn_dtype dtype = (tn_dtype)attrs->dtype;
    for (uint32_t i = first; i < rule->num_inputs && !attrs->dtype; i++) {
        const tn_type *x = build->type(rule->inputs[i]);
        if (x && tn_is_float(x->dtype))
            dtype = dtype ? tn_dtype_promote(dtype, x->dtype) : x->dtype;
    }
    out->dtype = dtype ? dtype : TN_F32;
    tn_status status = random_check_key(host, build->type(rule->inputs[0]));
    if (!status && !tn_dtype_in(out->dtype, TN_FLOAT_DTYPES))
        status = host->fail(host, TN_ERR_ARGUMENT, "dtype is %s, expected a float dtype",
                            tn_dtype_name(out->dtype));
    if (!status)
        status = find_shape(build, rule, first, &out->shape);
    for (uint32_t i = first; i < rule->num_inputs && !status; i++)
        out->in[i - first] =
            rule->inputs[i] ? random_cast(build, rule->inputs[i], out->dtype) : NULL;
    return status;
}

// --- graph building ---------------------------------------------------------------------

tn_array *random_cast(const tn_build *build, tn_array *x, tn_dtype dtype)
{
    const tn_type *type = build->type(x);
    return type && type->dtype == dtype ? x
                                        : build->op(build, "base.astype/1", TN_IN(x),
                                                    tn_attrs("dtype", (int64_t)dtype));
}

tn_array *random_with_shape(const tn_build *build, const char *primitive, const tn_array *x,
                            const tn_ints *shape)
{
    return build->op(build, primitive, TN_IN(x), tn_attrs("shape", shape));
}

tn_array *draw_numbers(const tn_build *build, const char *primitive, tn_array *key,
                       const tn_ints *shape, tn_dtype dtype, int64_t layout)
{
    return build->op(build, primitive, TN_IN(key),
                     tn_attrs("shape", shape, "dtype", (int64_t)dtype, "layout", layout));
}

tn_array *draw_floats(const tn_build *build, const struct drawn *s)
{
    return draw_numbers(build, "random.random/1", s->key, &s->shape, s->dtype, s->layout);
}

tn_array *split_key(const tn_build *build, tn_array *key, int64_t num, int64_t index,
                    int64_t layout)
{
    tn_array *keys = build->op(build, "random.split/1", TN_IN(key),
                               tn_attrs("num", num, "layout", layout));
    tn_array *row =
        build->op(build, "base.slice/1", TN_IN(keys),
                  tn_attrs("start", TN_INTS(index), "stop", TN_INTS(index + 1)));
    const tn_ints two = {1, 1, {2}};
    return random_with_shape(build, "base.reshape/1", row, &two);
}

double least_normal(tn_dtype dtype)
{
    return dtype == TN_F16 ? 0x1p-14 : dtype == TN_F64 ? 0x1p-1022 : 0x1p-126;
}

double below_one(tn_dtype dtype)
{
    return 1 - (dtype == TN_F16    ? 0x1p-11
                : dtype == TN_BF16 ? 0x1p-8
                : dtype == TN_F32  ? 0x1p-24
                                   : 0x1p-53);
}
