// SPDX-License-Identifier: MIT
// Parameters by name, and their initial values, which depend on seed and name alone.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common.h"

tn_status tn_params_create(tn_runtime *runtime, uint64_t seed, tn_params **out_params)
{
    if (!runtime || !out_params)
        return train_fail(TN_ERR_ARGUMENT, "tn_params_create: an argument is NULL");
    struct tn_params *params = calloc(1, sizeof(*params));
    if (!params)
        return train_fail_memory();
    params->runtime = runtime;
    params->seed = seed;
    *out_params = params;
    return TN_OK;
}

void tn_params_destroy(tn_params *params)
{
    for (uint64_t i = 0; params && i < params->count; i++) {
        struct train_param *item = &params->items[i];
        tn_release(item->value);
        for (int k = 0; k < MOST_STATES; k++)
            tn_release(item->state[k]);
        free(item->name);
    }
    if (!params)
        return;
    free(params->items);
    free(params->source);
    free(params);
}

uint64_t tn_params_count(const tn_params *params)
{
    return params->count;
}

const char *tn_params_name(const tn_params *params, uint64_t index)
{
    return index < params->count ? params->items[index].name : NULL;
}

int64_t params_find(const struct tn_params *params, const char *name)
{
    for (uint64_t i = 0; i < params->count; i++)
        if (strcmp(params->items[i].name, name) == 0)
            return (int64_t)i;
    return -1;
}

tn_array *tn_params_array(const tn_params *params, const char *name)
{
    int64_t index = params_find(params, name);
    return index < 0 ? NULL : params->items[index].value;
}

uint64_t tn_params_elements(const tn_params *params)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < params->count; i++)
        if (!params->items[i].is_state)
            count += train_elements(tn_array_type(params->items[i].value));
    return count;
}

uint64_t tn_params_step(const tn_params *params)
{
    return params->step;
}

uint64_t tn_params_seed(const tn_params *params)
{
    return params->seed;
}

tn_status params_add(struct tn_params *params, const char *name, tn_array *value,
                     struct train_param **out_param)
{
    if (params->count == params->room) {
        uint64_t room = params->room ? 2 * params->room : 16;
        struct train_param *items = realloc(params->items, (size_t)room * sizeof(*items));
        if (!items)
            return train_fail_memory();
        params->items = items;
        params->room = room;
    }
    char *copy = strdup(name);
    if (!copy)
        return train_fail_memory();
    *out_param = &params->items[params->count++];
    **out_param = (struct train_param){.name = copy, .value = value};
    return TN_OK;
}

// --- initial values ---------------------------------------------------------------------

static uint64_t params_name_hash(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash & 0xffffff;
}

// A uniform random number in (0, 1).
static double draw_uniform(const struct tn_params *params, const char *name, uint64_t i)
{
    uint64_t bits = train_random(params->seed, params_name_hash(name), i);
    return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

static double draw_normal(const struct tn_params *params, const char *name, uint64_t i)
{
    double u = draw_uniform(params, name, 2 * i), v = draw_uniform(params, name, 2 * i + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

// Fills `out` with initial values. False: `init` is not a known name.
static bool fill_values(const struct tn_params *params, const char *name,
                        const tn_shape *shape, const char *init, double scale, float *out)
{
    double outputs = shape->rank ? (double)shape->extent[0] : 1, inputs = 1;
    uint64_t count = 1;
    for (int32_t i = 0; i < shape->rank; i++)
        count *= (uint64_t)shape->extent[i];
    for (int32_t i = 1; i < shape->rank; i++)
        inputs *= (double)shape->extent[i];
    bool is_normal = strcmp(init, "normal") == 0 || strcmp(init, "he") == 0;
    bool is_uniform = strcmp(init, "uniform") == 0 || strcmp(init, "xavier") == 0;
    if (strcmp(init, "he") == 0)
        scale *= sqrt(2 / inputs);
    if (strcmp(init, "xavier") == 0)
        scale *= sqrt(6 / (inputs + outputs));
    double constant = strcmp(init, "ones") == 0;
    for (uint64_t i = 0; i < count; i++)
        out[i] = (float)(is_normal    ? scale * draw_normal(params, name, i)
                         : is_uniform ? scale * (2 * draw_uniform(params, name, i) - 1)
                                      : constant);
    return is_normal || is_uniform || constant != 0 || strcmp(init, "zeros") == 0;
}

// Gives the initial value as a kept array; NULL with the failure in `scope`.
static tn_array *initial_value(tn_scope *scope, const struct tn_params *params,
                               const char *name, const tn_shape *shape, const char *init,
                               double scale)
{
    uint64_t count = 1;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->extent[i] < 0 ||
            __builtin_mul_overflow(count, (uint64_t)shape->extent[i], &count) ||
            count > UINT64_C(1) << 40) {
            tn_scope_fail(scope, TN_ERR_ARGUMENT, "parameter '%s': axis %d has extent %lld",
                          name, i, (long long)shape->extent[i]);
            return NULL;
        }
    }
    float *data = malloc((size_t)count * sizeof(*data) + 1);
    tn_array *value = NULL;
    if (!data)
        tn_scope_fail(scope, TN_ERR_MEMORY, "out of memory for parameter '%s'", name);
    else if (!fill_values(params, name, shape, init, scale, data))
        tn_scope_fail(
            scope, TN_ERR_ARGUMENT,
            "parameter '%s': init is '%s', expected zeros, ones, normal, uniform, "
            "xavier or he",
            name, init);
    else
        value = tn_keep(scope, tn_from_data(scope, TN_F32, shape, data));
    free(data);
    return value;
}

static bool params_has_shape(const tn_array *array, const tn_shape *shape)
{
    const tn_type *type = tn_array_type(array);
    return type->dtype == TN_F32 && type->rank == shape->rank &&
           memcmp(type->extent, shape->extent, sizeof(int64_t) * (size_t)shape->rank) == 0;
}

static tn_array *tell_misfit(const tn_net *net, const char *name, const tn_array *value,
                             const tn_shape *shape, bool is_state)
{
    char got[SHAPE_TEXT], wanted[SHAPE_TEXT];
    tn_type type = {.dtype = TN_F32, .rank = shape->rank};
    memcpy(type.extent, shape->extent, sizeof(type.extent));
    const tn_type *have = tn_array_type(value);
    tn_scope_fail(net->scope, TN_ERR_ARGUMENT, "%s '%s' is %s%s%s%s, its layer wants f32%s",
                  is_state ? "state" : "parameter", name, tn_dtype_name(have->dtype),
                  train_shape_text(have, got), net->params->source ? " in " : "",
                  net->params->source ? net->params->source : "",
                  train_shape_text(&type, wanted));
    return NULL;
}

enum { FULL_NAME = sizeof(((tn_net *)0)->path) + 128 };

static void params_full_name(const tn_net *net, const char *name, char full[FULL_NAME])
{
    snprintf(full, FULL_NAME, "%s%s", net->path, name);
}

// Array of an existing parameter; NULL with the failure in the scope.
static tn_array *params_value_of(tn_net *net, int64_t index, const char *full,
                                 const tn_shape *shape, bool is_state)
{
    struct train_param *item = &net->params->items[index];
    if (item->used && item->is_state != is_state) {
        tn_scope_fail(net->scope, TN_ERR_ARGUMENT,
                      "'%s' is a state of one layer and a parameter of another", full);
        return NULL;
    }
    item->used = true;
    item->is_state = is_state;
    if (!params_has_shape(item->value, shape))
        return tell_misfit(net, full, item->value, shape, is_state);
    return net->params->traced ? net->params->traced[index] : item->value;
}

static tn_array *find_or_make(tn_net *net, const char *name, const tn_shape *shape,
                              const char *init, double scale, bool is_state)
{
    struct tn_params *params = net->params;
    char full[FULL_NAME];
    if (tn_scope_status(net->scope))
        return NULL;
    params_full_name(net, name, full);
    int64_t index = params_find(params, full);
    if (index >= 0)
        return params_value_of(net, index, full, shape, is_state);
    if (params->source || params->is_whole) {
        tn_scope_fail(net->scope, TN_ERR_ARGUMENT, "%s '%s' is not in %s%s",
                      is_state ? "state" : "parameter", full,
                      params->source ? params->source : "the set",
                      params->source ? ": the file is another model's" : "");
        return NULL;
    }
    if (params->fixed) {
        tn_scope_fail(
            net->scope, TN_ERR_ARGUMENT,
            "parameter '%s' is new behind the first step, expected the same layers "
            "in each call of the loss",
            full);
        return NULL;
    }
    struct train_param *item;
    tn_array *value = initial_value(net->scope, params, full, shape, init, scale);
    if (value && params_add(params, full, value, &item)) {
        tn_scope_fail(net->scope, TN_ERR_MEMORY, "%s", tn_train_error());
        tn_release(value);
        return NULL;
    }
    if (value) {
        item->used = true;
        item->is_state = is_state;
    }
    return value;
}

tn_array *tn_net_param(tn_net *net, const char *name, const tn_shape *shape,
                       const char *init, double scale)
{
    return find_or_make(net, name, shape, init, scale, false);
}

tn_array *tn_net_state(tn_net *net, const char *name, const tn_shape *shape,
                       const char *init)
{
    return find_or_make(net, name, shape, init, 1, true);
}

void tn_net_set_state(tn_net *net, const char *name, tn_array *value)
{
    char full[FULL_NAME];
    if (!value || tn_scope_status(net->scope))
        return;
    params_full_name(net, name, full);
    int64_t index = params_find(net->params, full);
    if (index < 0 || !net->params->items[index].is_state) {
        tn_scope_fail(net->scope, TN_ERR_ARGUMENT, "'%s' is no state of a layer", full);
        return;
    }
    const tn_type *type = tn_array_type(net->params->items[index].value);
    tn_shape shape = {.rank = type->rank};
    memcpy(shape.extent, type->extent, sizeof(shape.extent));
    if (!params_has_shape(value, &shape))
        tell_misfit(net, full, value, &shape, true);
    else if (net->params->traced) // a plain graph keeps no states
        net->params->traced[index] = value;
}

// --- paths ------------------------------------------------------------------------------

void tn_net_enter(tn_net *net, const char *name, int64_t number)
{
    size_t used = strlen(net->path);
    const char *percent = strchr(name, '%');
    int length = snprintf(net->path + used, sizeof(net->path) - used, "%.*s",
                          percent ? (int)(percent - name) : (int)strlen(name), name);
    used += (size_t)length;
    if (percent && used < sizeof(net->path))
        used += (size_t)snprintf(net->path + used, sizeof(net->path) - used, "%lld%s",
                                 (long long)number, percent + 1);
    if (used + 1 < sizeof(net->path)) {
        strcpy(net->path + used, ".");
        return;
    }
    tn_scope_fail(net->scope, TN_ERR_ARGUMENT, "the path of layers at '%.40s' is too long",
                  name);
}

void tn_net_leave(tn_net *net)
{
    size_t length = strlen(net->path);
    length -= length > 0; // the dot at the end
    while (length > 0 && net->path[length - 1] != '.')
        length--;
    net->path[length] = '\0';
}
