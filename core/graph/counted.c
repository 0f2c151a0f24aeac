// SPDX-License-Identifier: MIT
// Counted arrays, which outlive their scope: kept ones, which are data, and retained ones,
// which may be graph.
//
// A counted array is an output of a counted node: a copy of a scope's node in memory of its
// own, whose inputs are counted arrays. A scope that uses the array makes a node for it
// (node.counted), which is lazy: walks give it nodes for its inputs when they reach it.
// When each output that is referred to has a value, the counted node is data, and refers to
// its inputs no more.
//
// References to a counted array: the application's, which are also counted apart, those of
// counted nodes that read it, and those of scopes that have a node for it. A scope refers
// to all outputs of a counted node that is not data, so none of them is missing while the
// scope's node is in use.
//
// Threads. `refs` goes from 0 to 1 and from 1 to 0, and the members of a counted node
// change, under tn_runtime.counted_lock. Nothing of a plugin is called meanwhile. The last
// reference to a node of one output needs no lock (refs.c).
#include <string.h>
#include <tenon/retain.h>
#include "../base/fail.h"
#include "../device/device.h"
#include "../plugin/host/host.h"
#include "counted.h"

struct value *counted_empty(tn_array *counted)
{
    tn_runtime *runtime = counted_of(counted)->runtime;
    counted_lock(runtime);
    struct value *value = counted->value;
    counted->donated = 1;
    counted->value = NULL;
    counted_unlock(runtime);
    return value;
}

// --- making counted nodes --------------------------------------------------------------

// Divides memory into parts that are aligned to 16. `memory` NULL: only adds up `size`.
struct cutter {
    unsigned char *memory;
    size_t size;
};

static void *counted_cut(struct cutter *cutter, const void *content, size_t size)
{
    void *part = cutter->memory ? cutter->memory + cutter->size : NULL;
    cutter->size += (size + 15) & ~(size_t)15;
    if (part && content && size > 0)
        memcpy(part, content, size);
    return part;
}

// The table of an expression without a primitive lies in a scope; a primitive's does not.
static const tn_attr_table *cut_table(struct cutter *cutter, const struct node *from)
{
    if (!from->table || from->prim)
        return from->table;
    tn_attr_table *table = counted_cut(cutter, from->table, sizeof(*table));
    void *fields = counted_cut(cutter, from->table->fields,
                               (size_t)from->table->num_fields * from->table->field_size);
    if (table)
        table->fields = fields;
    return table;
}

// Fills `c`, or, without memory, measures it. `from` has no inputs where it is data.
static void cut_node(struct cutter *cutter, struct counted *c, const struct node *from,
                     const tn_array *outputs)
{
    struct node node = *from;
    (void)counted_cut(cutter, NULL, sizeof(*c));
    node.table = cut_table(cutter, from);
    node.attrs = from->table ? counted_cut(cutter, from->attrs, from->table->size) : NULL;
    node.inputs = counted_cut(cutter, NULL, from->num_inputs * sizeof(tn_array *));
    node.outputs = counted_cut(cutter, NULL, from->num_outputs * sizeof(tn_array));
    for (uint32_t i = 0; i < from->num_outputs; i++) {
        const char *name = outputs[i].name;
        name = name ? counted_cut(cutter, name, strlen(name) + 1) : NULL;
        if (!c)
            continue;
        tn_array *output = &node.outputs[i];
        *output = (tn_array){.node = &c->node,
                             .output = i,
                             .weak_kind = outputs[i].weak_kind,
                             .donated = outputs[i].donated,
                             .type = outputs[i].type,
                             .value = outputs[i].value,
                             .name = name};
        atomic_init(&output->refs, 1);
        if (output->value)
            value_retain(output->value);
        c->num_pending += counted_is_pending(output);
    }
    if (c)
        c->node = node;
}

static bool counted_computes(const struct node *node)
{
    return node->kind == NODE_PRIM || node->kind == NODE_EXPR;
}

struct counted *counted_create(tn_scope *scope, const struct node *from,
                               const tn_array *outputs)
{
    struct cutter cutter = {0};
    cut_node(&cutter, NULL, from, outputs);
    struct counted *c = mem_zalloc(cutter.size);
    if (!c) {
        scope_take_failure(scope, TN_ERR_MEMORY);
        return NULL;
    }
    c->runtime = scope->runtime;
    c->interned.set = scope->interned.set;
    c->num_live = from->num_outputs;
    c->is_data = !counted_computes(from);
    cutter = (struct cutter){(unsigned char *)c, 0};
    cut_node(&cutter, c, from, outputs);
    c->node.counted = NULL;
    c->node.is_lazy = c->node.mark = 0;
    return c;
}

void counted_destroy(struct counted *c)
{
    for (uint32_t i = 0, count = c->node.num_outputs; i < count; i++)
        counted_release(&c->node.outputs[i]); // frees `c` in the end
}

tn_array *kept_create(tn_scope *scope, const tn_array *array)
{
    const struct node data = {.kind = NODE_DATA, .num_outputs = 1};
    struct counted *c = counted_create(scope, &data, array);
    if (!c)
        return NULL;
    c->node.outputs[0].weak_kind = 0;
    atomic_init(&c->node.outputs[0].refs, OWN_REFERENCE);
    life_add(&scope->runtime->life, LIFE_KEPT);
    return &c->node.outputs[0];
}

tn_array *counted_follow(tn_scope *scope, tn_array *counted, const tn_type *type,
                         struct value *value)
{
    const struct counted *c = counted_of(counted);
    // The only reference is the caller's, so nobody makes another one meanwhile.
    if (atomic_load_explicit(&counted->refs, memory_order_acquire) == OWN_REFERENCE &&
        c->node.kind == NODE_DATA && c->node.num_outputs == 1)
        return counted;
    const tn_array made = {.type = *type, .value = value};
    return kept_create(scope, &made);
}

void counted_fill(tn_array *counted, const tn_type *type, struct value *value)
{
    counted->type = *type;
    counted->weak_kind = 0;
    counted->value = value;
    counted->donated = 0;
}

// --- retaining -------------------------------------------------------------------------

// Makes the scope refer to the outputs of `c`, for which `node` stands from now on. Takes
// the references, on failure too.
static tn_status stand_for(tn_scope *scope, struct node *node, struct counted *c)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0, count = c->node.num_outputs; i < count; i++) {
        tn_array *counted = &c->node.outputs[i];
        if (status == TN_OK)
            status =
                map_put(&scope->imports, (struct hash){(uint64_t)(uintptr_t)counted, 0},
                        &node->outputs[i]);
        if (status != TN_OK)
            counted_release(counted);
    }
    if (status == TN_OK)
        node->counted = c;
    return scope_take_failure(scope, status);
}

static tn_status refuse_leaf(tn_scope *scope, const tn_array *leaf)
{
    if (leaf->donated)
        scope_refuse_donated(scope);
    return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                         "retain: it depends on what stands for a slice in vmap, which has "
                         "no data");
}

// Makes the counted node of a node whose inputs have counted nodes. A node with data
// becomes a leaf, without its inputs.
static tn_status counted_count_node(tn_scope *scope, struct node *node)
{
    const struct node data = {.kind = NODE_DATA, .num_outputs = node->num_outputs};
    bool is_graph = counted_computes(node) && !node_is_data(node);
    if (!is_graph && node->kind != NODE_NUMBER && !node_is_data(node))
        return refuse_leaf(scope, &node->outputs[0]);
    struct counted *c = counted_create(
        scope, is_graph || node->kind == NODE_NUMBER ? node : &data, node->outputs);
    if (!c)
        return scope->status;
    tn_status status = TN_OK;
    if (is_graph && node->table)
        status = intern_attrs(&c->interned, c->node.table, c->node.attrs);
    c->exprs = is_graph && node->expr ? expr_set_share(node->expr) : NULL;
    c->has_effects = is_graph && node->prim && node->prim->domain;
    for (uint32_t i = 0; i < c->node.num_inputs; i++) {
        const tn_array *input = node->inputs[i];
        if (!input)
            continue;
        c->node.inputs[i] = &input->node->counted->node.outputs[input->output];
        atomic_fetch_add_explicit(&c->node.inputs[i]->refs, 1, memory_order_relaxed);
        c->has_effects |= input->node->counted->has_effects;
    }
    if (status == TN_OK)
        return stand_for(scope, node, c);
    counted_destroy(c);
    return scope_take_failure(scope, status);
}

static tn_status count_graph(tn_scope *scope, tn_array *root)
{
    struct node **nodes = NULL;
    uint32_t count = 0;
    tn_status status = graph_order(scope, &root, 1, TO_COUNTED, &nodes, &count);
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        struct node *node = nodes[i];
        for (uint32_t k = 0; k < node->num_inputs && status == TN_OK; k++)
            if (node->inputs[k] && !node->inputs[k]->node->counted)
                status = counted_count_node(scope, node->inputs[k]->node);
        if (status == TN_OK)
            status = counted_count_node(scope, node);
    }
    if (status == TN_OK && !root->node->counted)
        status = counted_count_node(scope, root->node);
    mem_free(nodes);
    return scope_take_failure(scope, status);
}

// Adds a reference to an array that is counted already.
static tn_array *retain_again(tn_scope *scope, tn_array *counted)
{
    struct life *life = &counted_of(counted)->runtime->life;
    tn_status status = life_check(life);
    if (status == TN_OK && counted->donated)
        status = fail(TN_ERR_ARGUMENT, "retain: the array was donated and is empty now");
    if (status != TN_OK) {
        if (scope)
            scope_take_failure(scope, status);
        return NULL;
    }
    atomic_fetch_add_explicit(&counted->refs, OWN_REFERENCE, memory_order_relaxed);
    life_add(life, LIFE_KEPT);
    return counted;
}

tn_array *tn_retain(tn_scope *scope, tn_array *array)
{
    if (array && !array->scope)
        return retain_again(scope, array);
    if (scope_begin(scope, "retain", NO_LISTS) != TN_OK)
        return NULL;
    tn_status status = life_check(&scope->runtime->life);
    if (status == TN_OK && !array)
        status = fail(TN_ERR_ARGUMENT, "retain: the array is NULL");
    if (status == TN_OK && scope->tracing)
        status = fail(TN_ERR_ARGUMENT, "retain: the arrays of a body have no data and end "
                                       "with it: retain what its function gives");
    if (scope_take_failure(scope, status) != TN_OK)
        return NULL;
    tn_array *local = scope_local(scope, array);
    if (!local || count_graph(scope, local) != TN_OK)
        return NULL;
    tn_array *counted = &local->node->counted->node.outputs[local->output];
    return retain_again(scope, counted);
}

void tn_hold(tn_array *array, int32_t held)
{
    if (!array || array->scope)
        return;
    if (held)
        atomic_fetch_add_explicit(&array->refs, OWN_REFERENCE - 1, memory_order_relaxed);
    else
        atomic_fetch_sub_explicit(&array->refs, OWN_REFERENCE - 1, memory_order_relaxed);
}

// --- using counted arrays in a scope ---------------------------------------------------

// Gives the node the values that the counted one has; the lock is held.
static tn_status share_values(tn_scope *scope, struct node *node, const struct counted *c)
{
    tn_status status = TN_OK;
    node->counted = NULL; // values that were shared before stay
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++) {
        struct value *value = c->node.outputs[i].value;
        if (!value || node->outputs[i].value)
            continue;
        value_retain(value);
        status = scope_set_value(scope, &node->outputs[i], value);
    }
    return status;
}

// Makes a node with the outputs of a counted one; the lock is held.
static struct node *node_for(tn_scope *scope, const struct counted *c)
{
    const struct node *from = &c->node;
    bool is_graph = counted_computes(from) && !c->is_data;
    uint32_t kind = counted_computes(from) && c->is_data ? NODE_DATA : from->kind;
    struct node *node = node_create(scope, kind, NULL, 0, from->num_outputs,
                                    is_graph ? from->table : NULL, from->attrs);
    if (!node)
        return NULL;
    node->serial = 0; // it is older than all that the scope builds
    node->number = from->number;
    if (is_graph) {
        node->prim = from->prim;
        node->expr = from->expr;
        node->hash = from->hash;
        node->typed = from->typed;
        node->device = from->device;
        node->is_lazy = from->num_inputs > 0;
        scope->has_effects |= c->has_effects;
    }
    for (uint32_t i = 0; i < from->num_outputs; i++) {
        node->outputs[i].type = from->outputs[i].type;
        node->outputs[i].weak_kind = from->outputs[i].weak_kind;
        node->outputs[i].donated = from->outputs[i].donated;
        node->outputs[i].name = from->outputs[i].name;
    }
    return node;
}

tn_array *scope_import(tn_scope *scope, tn_array *counted)
{
    struct counted *c = counted_of(counted);
    struct hash key = {(uint64_t)(uintptr_t)counted, 0};
    tn_array *local = map_get(&scope->imports, key);
    if (local)
        return local;
    if (c->runtime != scope->runtime) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "the array belongs to another runtime");
        return NULL;
    }
    if (counted->donated) { // an input of graph that was retained before
        scope_refuse_donated(scope);
        return NULL;
    }
    counted_lock(c->runtime);
    struct node *node = node_for(scope, c);
    tn_status status = node ? share_values(scope, node, c) : scope->status;
    if (status == TN_OK)
        for (uint32_t i = 0; i < c->node.num_outputs; i++)
            counted_refer(&c->node.outputs[i]);
    counted_unlock(c->runtime);
    if (status != TN_OK || stand_for(scope, node, c) != TN_OK)
        return NULL;
    return &node->outputs[counted->output];
}

tn_status counted_wait(tn_runtime *runtime)
{
    tn_status status = callback_check(runtime); // it would wait for itself
    if (status == TN_OK)
        pthread_cond_wait(&runtime->counted_returned, &runtime->counted_lock);
    return status;
}

// Waits while another scope's evaluation may write over the node's inputs; it gives the
// node a value. The lock is held.
static tn_status wait_until_given(const tn_scope *scope, struct counted *c)
{
    tn_status status = TN_OK;
    while (c->taken_by && c->taken_by != scope->taking && status == TN_OK)
        status = counted_wait(c->runtime);
    return status;
}

tn_status counted_expand(tn_scope *scope, struct node *node)
{
    struct counted *c = node->counted;
    uint32_t count = c->node.num_inputs;
    tn_array **inputs = arena_alloc(&scope->arena, count * sizeof(*inputs));
    if (!inputs)
        return scope_take_failure(scope, TN_ERR_MEMORY);
    counted_lock(c->runtime);
    tn_status status = wait_until_given(scope, c);
    bool is_data = c->is_data;
    if (status == TN_OK && is_data)
        status = share_values(scope, node, c);
    for (uint32_t i = 0; i < count && !is_data && status == TN_OK; i++)
        if (c->node.inputs[i])
            counted_refer(c->node.inputs[i]);
    counted_unlock(c->runtime);
    node->counted = c;
    if (status != TN_OK)
        return scope_take_failure(scope, status);
    for (uint32_t i = 0; i < count && !is_data; i++) {
        tn_array *input = c->node.inputs[i];
        if (!input)
            continue;
        inputs[i] = scope_import(scope, input);
        status = inputs[i] ? status : scope->status;
        counted_release(input);
    }
    if (status != TN_OK)
        return status;
    node->kind = is_data ? NODE_DATA : node->kind;
    node->inputs = inputs;
    node->num_inputs = is_data ? 0 : count;
    node->is_lazy = 0;
    return TN_OK;
}
