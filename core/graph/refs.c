// SPDX-License-Identifier: MIT
// References to counted arrays (counted.c), which bindings of languages add and drop for
// each of their objects.
#include <tenon/retain.h>
#include "../device/device.h"
#include "counted.h"

static void graph_refs_counted_free(struct counted *c)
{
    for (uint32_t i = 0; i < c->node.num_outputs; i++)
        value_release(c->node.outputs[i].value);
    expr_set_release(c->exprs);
    intern_refs_release(&c->interned);
    mem_free(c);
}

void counted_refer(tn_array *array)
{
    struct counted *c = counted_of(array);
    if (references_of(atomic_fetch_add_explicit(&array->refs, 1, memory_order_relaxed)) > 0)
        return;
    c->num_live++;
    c->num_pending += counted_is_pending(array);
}

static void graph_refs_look_at(struct settling *s, struct counted *c)
{
    if (c->is_listed || (c->num_live > 0 && (c->is_data || c->num_pending > 0)))
        return;
    c->is_listed = true;
    c->next = s->list;
    s->list = c;
}

void settling_drop(struct settling *s, tn_array *array, uint64_t amount)
{
    struct counted *c = counted_of(array);
    if (atomic_fetch_sub_explicit(&array->refs, amount, memory_order_acq_rel) != amount)
        return;
    c->num_live--;
    c->num_pending -= counted_is_pending(array);
    graph_refs_look_at(s, c);
    // Without memory for the list, the value goes with its node.
    if (!array->value || c->num_live == 0 ||
        mem_grow((void **)&s->values, &s->max_values, s->num_values + 1,
                 sizeof(struct value *)) != TN_OK)
        return;
    s->values[s->num_values++] = array->value;
    array->value = NULL;
}

// A chain of nodes goes without recursion.
void settling_end(struct settling *s)
{
    while (s->list) {
        struct counted *c = s->list;
        s->list = c->next;
        c->is_listed = false;
        if (c->num_live == 0) {
            c->next = s->dead;
            s->dead = c;
        } else if (c->num_pending > 0) {
            continue; // another thread refers to an output again
        }
        for (uint32_t i = 0; i < c->node.num_inputs && !c->is_data; i++)
            if (c->node.inputs[i])
                settling_drop(s, c->node.inputs[i], 1);
        // This thread's last access to a live node: counted_drop() may free it from now on.
        __atomic_store_n(&c->is_data, true, __ATOMIC_RELEASE);
    }
    counted_unlock(s->runtime);
    for (uint32_t i = 0; i < s->num_values; i++)
        value_release(s->values[i]);
    mem_free(s->values);
    while (s->dead) {
        struct counted *c = s->dead;
        s->dead = c->next;
        graph_refs_counted_free(c);
    }
}

// In a child of fork() that inherited the runtime the lock may be held for ever: graph
// stays where it is, in memory that goes with the process.
static void release_inherited(tn_array *array, uint64_t amount)
{
    struct counted *c = counted_of(array);
    if (atomic_fetch_sub(&array->refs, amount) != amount || !c->is_data ||
        c->node.num_outputs > 1)
        return;
    value_release(array->value);
    mem_free(c);
}

// Drops a reference. Gives the node, for the caller to free, where the reference was the
// last one and no lock is needed: the node has one output, so nobody can make another
// reference, and the thread that gave it a value no longer accesses it.
static struct counted *counted_drop(tn_array *counted, uint64_t amount)
{
    struct counted *c = counted_of(counted);
    uint64_t refs = atomic_load_explicit(&counted->refs, memory_order_acquire);
    if (refs == amount && c->node.num_outputs == 1 &&
        (__atomic_load_n(&c->is_data, __ATOMIC_ACQUIRE) || counted_is_pending(counted)))
        return c;
    while (references_of(refs) > 1)
        if (atomic_compare_exchange_weak_explicit(&counted->refs, &refs, refs - amount,
                                                  memory_order_release,
                                                  memory_order_relaxed))
            return NULL;
    struct settling s = {.runtime = c->runtime};
    counted_lock(c->runtime);
    settling_drop(&s, counted, amount);
    settling_end(&s);
    return NULL;
}

static void graph_refs_give_back(tn_array *counted, uint64_t amount)
{
    if (life_is_inherited(&counted_of(counted)->runtime->life)) {
        release_inherited(counted, amount);
        return;
    }
    struct counted *dead = counted_drop(counted, amount), *next;
    if (dead)
        dead->next = NULL;
    for (; dead; dead = next) {
        next = dead->next;
        for (uint32_t i = 0; i < dead->node.num_inputs && !dead->is_data; i++) {
            tn_array *input = dead->node.inputs[i];
            struct counted *c = input ? counted_drop(input, 1) : NULL;
            if (!c)
                continue;
            c->next = next;
            next = c;
        }
        graph_refs_counted_free(dead);
    }
}

void counted_release(tn_array *counted)
{
    graph_refs_give_back(counted, 1);
}

void settling_fill(struct settling *s, tn_array *counted, struct value *value)
{
    struct counted *c = counted_of(counted);
    if (!counted_is_pending(counted) || references_of(counted->refs) == 0)
        return;
    value_retain(value);
    __atomic_store_n(&counted->value, value, __ATOMIC_RELEASE);
    c->num_pending--;
    graph_refs_look_at(s, c);
}

void counted_publish(tn_array *counted, struct value *value)
{
    struct settling s = {.runtime = counted_of(counted)->runtime};
    counted_lock(s.runtime);
    settling_fill(&s, counted, value);
    settling_end(&s);
}

void tn_release(tn_array *array)
{
    if (!array || array->scope) // arrays that are not counted belong to their scope
        return;
    struct life *life = &counted_of(array)->runtime->life;
    graph_refs_give_back(array, OWN_REFERENCE);
    life_remove(life, LIFE_KEPT);
}
