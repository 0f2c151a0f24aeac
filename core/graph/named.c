// SPDX-License-Identifier: MIT
// Applies primitives by name, in a scope or as arrays that outlive it.
#include "apply.h"

#include <string.h>
#include <tenon/retain.h>
#include "../base/fail.h"
#include "../plugin/load/primitives.h"
#include "counted.h"

// An application by name: the primitive, and its attributes in `attrs`.
struct graph_named {
    const struct prim *prim;
    _Alignas(16) unsigned char small[512];
    void *attrs;
    const tn_array *arrays[MAX_ATTR_FIELDS]; // by field: of runtime attributes
};

static void named_finish(struct graph_named *named)
{
    if (named->attrs != named->small)
        mem_free(named->attrs);
}

static tn_status find_named(tn_scope *scope, const char *name, const struct prim **out_prim)
{
    tn_status status = life_check(&scope->runtime->life);
    if (status == TN_OK)
        status = prim_find(scope->runtime, name, out_prim);
    return scope_take_failure(scope, status);
}

// Fills the primitive's attributes, which `refs` hold. On failure, which is the scope's
// then, nothing needs finishing.
static tn_status named_fill(struct graph_named *named, tn_scope *scope,
                            const struct prim *prim, struct intern_refs *refs,
                            tn_attr_list list)
{
    const tn_attr_table *table = &prim->record.attrs;
    tn_status status = TN_OK;
    named->prim = prim;
    named->attrs = named->small;
    if (table->num_fields > 0)
        memset(named->arrays, 0, sizeof(named->arrays));
    if (table->size > sizeof(named->small) && !(named->attrs = mem_alloc(table->size)))
        return scope_take_failure(scope, TN_ERR_MEMORY);
    if (table->size > 0 || list.count > 0)
        status = attrs_fill(refs, table, list, named->attrs, named->arrays);
    if (status != TN_OK) {
        fail_prefix("%s: ", prim->record.id);
        scope_take_failure(scope, status);
        named_finish(named);
    }
    return status;
}

static tn_status named_init(struct graph_named *named, tn_scope *scope, const char *name,
                            tn_attr_list list)
{
    const struct prim *prim = NULL;
    tn_status status = find_named(scope, name, &prim);
    return status == TN_OK ? named_fill(named, scope, prim, &scope->interned, list)
                           : status;
}

tn_status tn_op_n(tn_scope *scope, const char *name, const tn_array *const *inputs,
                  uint64_t num_inputs, tn_attr_list attrs, tn_array **outputs,
                  uint64_t num_outputs)
{
    struct graph_named named;
    if (scope_begin(scope, "op",
                    GIVEN({"inputs", inputs, num_inputs}, {"outputs", outputs, num_outputs},
                          {"attrs.items", attrs.items, attrs.count})) != TN_OK)
        return scope ? scope->status : TN_ERR_ARGUMENT;
    tn_status status = named_init(&named, scope, name, attrs);
    if (status != TN_OK)
        return status;
    if (named.prim->num_runtime)
        status = apply_runtime(scope, named.prim, inputs, (uint32_t)num_inputs, named.attrs,
                               named.arrays, outputs, num_outputs);
    else
        status = graph_apply(scope, named.prim, inputs, (uint32_t)num_inputs, named.attrs,
                             outputs, num_outputs);
    named_finish(&named);
    return scope->status != TN_OK ? scope->status : status;
}

uint64_t tn_op_outputs(tn_scope *scope, const char *name, const tn_array *const *inputs,
                       uint64_t num_inputs, tn_attr_list attrs)
{
    struct graph_named named;
    uint32_t count = 0;
    if (scope_begin(scope, "op_outputs",
                    GIVEN({"inputs", inputs, num_inputs},
                          {"attrs.items", attrs.items, attrs.count})) != TN_OK ||
        named_init(&named, scope, name, attrs) != TN_OK)
        return 0;
    tn_status status = apply_check_inputs(named.prim, inputs, (uint32_t)num_inputs);
    if (status == TN_OK)
        status = apply_count_outputs(named.prim, inputs, (uint32_t)num_inputs, named.attrs,
                                     &count);
    if (status != TN_OK) {
        apply_prefix(named.prim, inputs, (uint32_t)num_inputs);
        scope_take_failure(scope, status);
    }
    named_finish(&named);
    return status == TN_OK ? count : 0;
}

tn_array *tn_op(tn_scope *scope, const char *name, const tn_array *const *inputs,
                uint64_t num_inputs, tn_attr_list attrs)
{
    tn_array *out = NULL;
    tn_status status = tn_op_n(scope, name, inputs, num_inputs, attrs, &out, 1);
    return status == TN_OK ? out : NULL;
}

// --- arrays that outlive their scope ----------------------------------------------------

// Whether the attribute of the result's dtype is among those given.
static bool gives_dtype(const struct prim *prim, tn_attr_list attrs)
{
    for (uint64_t i = 0; prim->result_dtype && i < attrs.count; i++) {
        tn_attr room;
        const tn_attr *item = attr_list_item(attrs, i, &room);
        const tn_attr_field *field =
            attrs_field(&prim->record.attrs, prim->result_dtype - 1);
        if (item->name && strcmp(item->name, field->name) == 0)
            return true;
    }
    return false;
}

// Whether the application makes exactly one node, with inputs that a counted node takes.
// An application to weak numbers alone may become a number instead.
static bool is_direct(const tn_scope *scope, const struct prim *prim,
                      const tn_array *const *inputs, uint64_t num_inputs,
                      tn_attr_list attrs)
{
    bool is_weak = num_inputs > 0;
    // An attribute for the result's dtype adds conversions before and behind the node.
    if (prim->num_runtime || prim_is_composite(prim) || gives_dtype(prim, attrs))
        return false;
    for (uint64_t i = 0; i < num_inputs; i++) {
        if (!direct_takes(scope, inputs[i]))
            return false;
        is_weak = is_weak && inputs[i] && inputs[i]->weak_kind;
    }
    return !is_weak;
}

// Gives the outputs of the counted node to the application, or frees it.
static tn_status direct_end(tn_scope *scope, const struct direct *direct, tn_status status)
{
    struct counted *c = direct->made;
    if (status != TN_OK) {
        counted_destroy(c);
        return status;
    }
    for (uint32_t i = 0; i < c->node.num_outputs; i++)
        atomic_init(&c->node.outputs[i].refs, OWN_REFERENCE);
    c->exprs = c->node.expr ? expr_set_share(c->node.expr) : NULL;
    c->has_effects |= c->node.prim->domain != 0;
    counts_add(&scope->runtime->life.in_use, LIFE_KEPT, c->node.num_outputs);
    return TN_OK;
}

static tn_status apply_direct(tn_scope *scope, const struct prim *prim,
                              const tn_array *const *inputs, uint32_t num_inputs,
                              tn_attr_list attrs, tn_array **outputs, uint64_t num_outputs)
{
    struct graph_named named;
    struct intern_refs refs = {.set = scope->interned.set};
    struct direct direct = {NULL};
    tn_status status = named_fill(&named, scope, prim, &refs, attrs);
    if (status == TN_OK) {
        scope->direct = &direct;
        status =
            graph_apply(scope, prim, inputs, num_inputs, named.attrs, outputs, num_outputs);
        scope->direct = NULL;
        named_finish(&named);
    }
    if (!direct.made) {
        intern_refs_release(&refs);
        return status;
    }
    direct.made->interned = refs;
    return direct_end(scope, &direct, status);
}

// Makes a stand-in for an array in another scope: a reference to release, or a new number
// where the array is one. NULL with the failure of either scope set.
static tn_array *carried_into(tn_scope *inner, tn_scope *scope, const tn_array *array)
{
    if (array->scope && direct_takes(scope, array))
        return number_create(inner, array->type.dtype, array->node->number,
                             array->weak_kind);
    return tn_retain(scope, (tn_array *)(uintptr_t)array);
}

// Applies the primitive in a scope of its own, and retains the outputs.
static tn_status named_apply_in_scope(tn_scope *scope, const char *name,
                                      const tn_array *const *inputs, uint64_t num_inputs,
                                      tn_attr_list attrs, tn_array **outputs,
                                      uint64_t num_outputs)
{
    tn_scope *inner = tn_scope_open(scope->runtime);
    const tn_array **given = mem_zalloc((num_inputs + num_outputs + 1) * sizeof(*given));
    tn_array **made = (tn_array **)(uintptr_t)(given ? given + num_inputs : NULL);
    tn_status status = inner && given ? TN_OK : TN_ERR_MEMORY;
    if (inner)
        inner->device = scope->device;
    for (uint64_t i = 0; i < num_inputs && status == TN_OK; i++) {
        given[i] = inputs[i] ? carried_into(inner, scope, inputs[i]) : NULL;
        status = scope->status != TN_OK ? scope->status : inner->status;
    }
    if (status == TN_OK)
        status = tn_op_n(inner, name, given, num_inputs, attrs, made, num_outputs);
    uint64_t count = 0;
    for (; count < num_outputs && status == TN_OK; count++) {
        outputs[count] = tn_retain(inner, made[count]);
        status = outputs[count] ? TN_OK : inner->status;
    }
    if (status != TN_OK)
        scope_take_failure(scope, status);
    for (uint64_t i = 0; status != TN_OK && i < count; i++)
        tn_release(outputs[i]);
    for (uint64_t i = 0; given && i < num_inputs; i++)
        tn_release((tn_array *)(uintptr_t)given[i]); // ignores a scope's number
    mem_free(given);
    tn_scope_close(inner);
    return scope->status;
}

tn_status tn_op_retained_n(tn_scope *scope, const char *name, const tn_array *const *inputs,
                           uint64_t num_inputs, tn_attr_list attrs, tn_array **outputs,
                           uint64_t num_outputs)
{
    const struct prim *prim = NULL;
    if (scope_begin(scope, "op_retained",
                    GIVEN({"inputs", inputs, num_inputs}, {"outputs", outputs, num_outputs},
                          {"attrs.items", attrs.items, attrs.count})) != TN_OK)
        return scope ? scope->status : TN_ERR_ARGUMENT;
    if (scope->tracing)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                             "op_retained: the arrays of a body end with it: tn_op_n gives "
                             "them");
    if (find_named(scope, name, &prim) != TN_OK)
        return scope->status;
    return is_direct(scope, prim, inputs, num_inputs, attrs)
               ? apply_direct(scope, prim, inputs, (uint32_t)num_inputs, attrs, outputs,
                              num_outputs)
               : named_apply_in_scope(scope, name, inputs, num_inputs, attrs, outputs,
                                      num_outputs);
}
