// SPDX-License-Identifier: MIT
// Scopes: they own arrays, keep the first error, and know arrays that outlive them.
#include "graph.h"

#include <stdio.h>
#include <string.h>
#include <tenon/retain.h>
#include "../base/fail.h"
#include "../device/device.h"
#include "counted.h"

tn_scope *tn_scope_open(tn_runtime *runtime)
{
    if (fail_if_null("scope_open", "the runtime", runtime) != TN_OK ||
        life_check(&runtime->life) != TN_OK)
        return NULL;
    tn_scope *scope = mem_zalloc(sizeof(*scope));
    if (!scope)
        return NULL;
    scope->runtime = runtime;
    scope->interned.set = runtime->interned;
    life_add(&runtime->life, LIFE_SCOPES);
    return scope;
}

void tn_scope_close(tn_scope *scope)
{
    if (!scope)
        return;
    for (uint32_t i = 0; i < scope->num_evaluated; i++)
        value_release(scope->evaluated[i]->value);
    for (uint32_t i = 0; i < scope->imports.capacity; i++) {
        struct map_entry *entry = &scope->imports.entries[i];
        if (entry->value)
            counted_release((tn_array *)(uintptr_t)entry->key.lo);
    }
    for (uint32_t i = 0; i < scope->num_exprs; i++)
        expr_set_release(scope->exprs[i]);
    intern_refs_release(&scope->interned);
    mem_free(scope->exprs);
    mem_free(scope->evaluated);
    map_finish(&scope->imports);
    arena_finish(&scope->scratch);
    arena_finish(&scope->arena);
    mem_free(scope->error);
    if (!scope->frozen)
        life_remove(&scope->runtime->life, LIFE_SCOPES);
    mem_free(scope);
}

tn_status tn_scope_device(tn_scope *scope, const char *device)
{
    struct device *found = NULL;
    tn_status status = scope_begin(scope, "scope_device", NO_LISTS);
    if (status != TN_OK)
        return status;
    if (device)
        status = device_find(scope->runtime, "scope_device", device, &found);
    if (status != TN_OK)
        return scope_take_failure(scope, status);
    scope->device = found ? found->number + 1 : 0;
    return TN_OK;
}

tn_status tn_scope_status(const tn_scope *scope)
{
    tn_status status = fail_if_null("scope_status", "the scope", scope);
    return status == TN_OK ? scope->status : status;
}

const char *tn_scope_error(const tn_scope *scope)
{
    if (!scope)
        return "the scope is NULL";
    if (scope->status == TN_OK)
        return "";
    return scope->error ? scope->error : "out of memory";
}

void tn_scope_clear_error(tn_scope *scope)
{
    if (!scope)
        return;
    scope->status = TN_OK;
    mem_free(scope->error);
    scope->error = NULL;
}

uint32_t tn_scope_error_kind(const tn_scope *scope)
{
    return scope && scope->status == TN_ERR_ARGUMENT && scope->is_about_dtype
               ? TN_ERROR_OF_DTYPE
               : 0;
}

tn_status scope_take_failure(tn_scope *scope, tn_status status)
{
    if (status != TN_OK && scope->status == TN_OK) {
        scope->status = status;
        scope->error = mem_strdup(fail_text());
        scope->is_about_dtype = fail_is_dtype();
    }
    return scope->status;
}

tn_status tn_scope_fail(tn_scope *scope, tn_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fail_v(status, format, list);
    va_end(list);
    return scope ? scope_take_failure(scope, status) : status;
}

tn_runtime *tn_scope_runtime(const tn_scope *scope)
{
    return scope ? scope->runtime : NULL;
}

tn_status scope_begin(tn_scope *scope, const char *function, const struct given *given)
{
    tn_status status = fail_if_null(function, "the scope", scope);
    if (status != TN_OK || scope->status != TN_OK)
        return scope ? scope->status : status;
    for (; given->name; given++) {
        if (given->count > MAX_GIVEN)
            return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                                 "%s: %s has %llu entries, expected at most %u", function,
                                 given->name, (unsigned long long)given->count, MAX_GIVEN);
        if (given->count > 0 && !given->list)
            return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                                 "%s: %s is NULL, expected a list of %llu", function,
                                 given->name, (unsigned long long)given->count);
    }
    return TN_OK;
}

void scope_refuse_donated(tn_scope *scope)
{
    tn_scope_fail(scope, TN_ERR_ARGUMENT,
                  "the array was donated to a function and is empty now");
}

tn_array *scope_local(tn_scope *scope, const tn_array *array)
{
    if (!array || scope->status != TN_OK)
        return NULL;
    if (array->donated) {
        scope_refuse_donated(scope);
        return NULL;
    }
    if (array->scope == scope)
        return (tn_array *)array;
    if (scope->outer)
        return graph_capture(scope, array);
    if (!array->scope)
        return scope_import(scope, (tn_array *)array);
    tn_scope_fail(
        scope, TN_ERR_ARGUMENT,
        "the array belongs to another scope: tn_keep or tn_retain makes one to use here");
    return NULL;
}

tn_array **scope_locals(tn_scope *scope, const char *function, tn_array *const *arrays,
                        uint64_t count)
{
    tn_array **locals = mem_alloc((count + 1) * sizeof(*locals));
    if (!locals)
        scope_take_failure(scope, TN_ERR_MEMORY);
    for (uint64_t i = 0; i < count && scope->status == TN_OK; i++) {
        locals[i] = scope_local(scope, arrays[i]);
        if (!arrays[i])
            tn_scope_fail(scope, TN_ERR_ARGUMENT, "%s: array %llu is NULL", function,
                          (unsigned long long)i);
    }
    if (scope->status == TN_OK)
        return locals;
    mem_free(locals);
    return NULL;
}

struct expr_set *scope_exprs(tn_scope *scope)
{
    uint32_t n = scope->num_exprs;
    if (n > 0 && expr_set_has_room(scope->exprs[n - 1]))
        return scope->exprs[n - 1];
    tn_status status = mem_grow((void **)&scope->exprs, &scope->max_exprs, n + 1,
                                sizeof(struct expr_set *));
    struct expr_set *held = status == TN_OK ? expr_set_hold(scope->runtime) : NULL;
    if (!held) {
        scope_take_failure(scope, TN_ERR_MEMORY);
        return NULL;
    }
    scope->exprs[scope->num_exprs++] = held;
    return held;
}

tn_status scope_set_value(tn_scope *scope, tn_array *array, struct value *value)
{
    tn_status status = mem_grow((void **)&scope->evaluated, &scope->max_evaluated,
                                scope->num_evaluated + 1, sizeof(*scope->evaluated));
    if (status != TN_OK) {
        value_release(value);
        return scope_take_failure(scope, status);
    }
    if (array->value)
        value_release(array->value); // already in scope->evaluated
    else
        scope->evaluated[scope->num_evaluated++] = array;
    array->value = value;
    if (array->node->counted)
        counted_publish(&array->node->counted->node.outputs[array->output], value);
    return TN_OK;
}
