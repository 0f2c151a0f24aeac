// SPDX-License-Identifier: MIT
// The set of interned values, and references to them; see intern.h.
#include "intern.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include "fields.h"

// The bytes follow the entry. A text's pointer is to them, a list's to `list`.
struct intern_entry {
    struct hash key;
    uint64_t refs; // under the lock of the set
    union {
        tn_int_list ints;
        tn_float_list floats;
    } list;
    struct interned_graph *graph; // of a graph, which owns no bytes here
};

struct intern_set {
    pthread_mutex_t lock;
    struct map entries;
};

tn_status intern_set_create(struct intern_set **out_set)
{
    struct intern_set *set = mem_zalloc(sizeof(*set));
    if (!set)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&set->lock, NULL);
    *out_set = set;
    return TN_OK;
}

void intern_set_destroy(struct intern_set *set)
{
    if (!set)
        return;
    for (uint32_t i = 0; i < set->entries.capacity; i++)
        mem_free(set->entries.entries[i].value);
    map_finish(&set->entries);
    pthread_mutex_destroy(&set->lock);
    mem_free(set);
}

uint32_t intern_set_count(struct intern_set *set)
{
    pthread_mutex_lock(&set->lock);
    uint32_t count = set->entries.count;
    pthread_mutex_unlock(&set->lock);
    return count;
}

// --- references ------------------------------------------------------------------------

// A graph is destroyed without the lock: it holds references of its own.
static void entry_release(struct intern_set *set, struct intern_entry *entry)
{
    pthread_mutex_lock(&set->lock);
    bool is_last = --entry->refs == 0;
    if (is_last)
        map_remove(&set->entries, entry->key);
    pthread_mutex_unlock(&set->lock);
    if (is_last && entry->graph)
        entry->graph->destroy(entry->graph);
    if (is_last)
        mem_free(entry);
}

static void entry_retain(struct intern_set *set, struct intern_entry *entry)
{
    pthread_mutex_lock(&set->lock);
    entry->refs++;
    pthread_mutex_unlock(&set->lock);
}

void intern_refs_release(struct intern_refs *refs)
{
    for (uint32_t i = 0; i < refs->held.capacity; i++)
        if (refs->held.entries[i].value)
            entry_release(refs->set, refs->held.entries[i].value);
    map_finish(&refs->held);
}

// Takes one reference to the entry, which it returns on failure.
static tn_status intern_hold(struct intern_refs *refs, struct intern_entry *entry)
{
    tn_status status = map_put(&refs->held, entry->key, entry);
    if (status != TN_OK)
        entry_release(refs->set, entry);
    return status;
}

// --- values ----------------------------------------------------------------------------

static struct intern_entry *entry_new(uint32_t kind, struct hash key, const void *bytes,
                                      size_t size)
{
    struct intern_entry *entry =
        mem_zalloc(sizeof(*entry) + size + 1); // a text ends in a NUL
    if (!entry)
        return NULL;
    entry->key = key;
    if (size)
        memcpy(entry + 1, bytes, size);
    if (kind == TN_ATTR_INT_LIST)
        entry->list.ints = (tn_int_list){size / sizeof(int64_t), (int64_t *)(entry + 1)};
    if (kind == TN_ATTR_FLOAT_LIST)
        entry->list.floats = (tn_float_list){size / sizeof(double), (double *)(entry + 1)};
    return entry;
}

// Gives the entry of the set with this content, with a reference.
static tn_status entry_find(struct intern_set *set, uint32_t kind, struct hash key,
                            const void *bytes, size_t size, struct intern_entry **out)
{
    tn_status status = TN_OK;
    pthread_mutex_lock(&set->lock);
    struct intern_entry *entry = map_get(&set->entries, key);
    if (!entry) {
        entry = entry_new(kind, key, bytes, size);
        status = entry ? map_put(&set->entries, key, entry) : TN_ERR_MEMORY;
        if (status != TN_OK)
            mem_free(entry);
    }
    if (status == TN_OK) {
        entry->refs++;
        *out = entry;
    }
    pthread_mutex_unlock(&set->lock);
    return status;
}

static tn_status attr_intern(struct intern_refs *refs, uint32_t kind, const void *bytes,
                             size_t size, struct intern_entry **out)
{
    struct hash key = hash_u64(hash_start(kind), size);
    if (size)
        key = hash_bytes(key, bytes, size);
    *out = map_get(&refs->held, key);
    if (*out)
        return TN_OK;
    tn_status status = entry_find(refs->set, kind, key, bytes, size, out);
    return status == TN_OK ? intern_hold(refs, *out) : status;
}

tn_status intern_text(struct intern_refs *refs, const char *text, size_t size,
                      const char **out)
{
    struct intern_entry *entry;
    tn_status status = attr_intern(refs, TN_ATTR_STRING, text, size, &entry);
    if (status == TN_OK)
        *out = (const char *)(entry + 1);
    return status;
}

tn_status intern_ints(struct intern_refs *refs, const int64_t *values, uint64_t count,
                      const tn_int_list **out)
{
    struct intern_entry *entry;
    tn_status status =
        attr_intern(refs, TN_ATTR_INT_LIST, values, count * sizeof(*values), &entry);
    if (status == TN_OK)
        *out = &entry->list.ints;
    return status;
}

tn_status intern_floats(struct intern_refs *refs, const double *values, uint64_t count,
                        const tn_float_list **out)
{
    struct intern_entry *entry = NULL;
    double *copy = mem_alloc(count * sizeof(*copy) + 1);
    tn_status status = copy ? TN_OK : TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count && status == TN_OK; i++)
        copy[i] = isnan(values[i]) ? (double)NAN : values[i];
    if (status == TN_OK)
        status = attr_intern(refs, TN_ATTR_FLOAT_LIST, copy, count * sizeof(*copy), &entry);
    if (status == TN_OK)
        *out = &entry->list.floats;
    mem_free(copy);
    return status;
}

// --- graphs ----------------------------------------------------------------------------

tn_status intern_graph(struct intern_refs *refs, struct interned_graph *graph,
                       struct hash key, const tn_graph **out)
{
    struct intern_set *set = refs->set;
    struct intern_entry *made = mem_zalloc(sizeof(*made));
    tn_status status = made ? TN_OK : TN_ERR_MEMORY;
    pthread_mutex_lock(&set->lock);
    struct intern_entry *entry = map_get(&set->entries, key);
    if (!entry && status == TN_OK &&
        (status = map_put(&set->entries, key, made)) == TN_OK) {
        *made = (struct intern_entry){.key = key, .graph = graph};
        graph->set = set;
        graph->entry = entry = made;
    }
    if (entry && status == TN_OK)
        entry->refs++;
    pthread_mutex_unlock(&set->lock);
    if (status != TN_OK || entry != made) {
        mem_free(made);
        graph->destroy(graph);
    }
    if (status != TN_OK)
        return status;
    *out = &entry->graph->graph;
    if (map_get(&refs->held, key)) { // this list has its reference
        entry_release(set, entry);
        return TN_OK;
    }
    return intern_hold(refs, entry);
}

static const struct interned_graph *head_of(const tn_graph *graph)
{
    return (const struct interned_graph *)graph; // `graph` is its first member
}

tn_status intern_hold_graph(struct intern_refs *refs, const tn_graph *graph)
{
    struct intern_entry *entry = head_of(graph)->entry;
    if (head_of(graph)->set != refs->set)
        return fail(TN_ERR_ARGUMENT, "the graph belongs to another runtime");
    if (map_get(&refs->held, entry->key))
        return TN_OK;
    entry_retain(refs->set, entry);
    return intern_hold(refs, entry);
}

void intern_graph_retain(const tn_graph *graph)
{
    entry_retain(head_of(graph)->set, head_of(graph)->entry);
}

void intern_graph_release(const tn_graph *graph)
{
    entry_release(head_of(graph)->set, head_of(graph)->entry);
}

// --- structs of attributes -------------------------------------------------------------

static struct intern_entry *entry_of(uint32_t kind, const void *value)
{
    const char *at = value;
    if (kind == TN_ATTR_GRAPH)
        return head_of(value)->entry;
    return (struct intern_entry *)(at - (kind == TN_ATTR_STRING
                                             ? sizeof(struct intern_entry)
                                             : offsetof(struct intern_entry, list)));
}

struct hash interned_hash(uint32_t kind, const void *value)
{
    return entry_of(kind, value)->key;
}

tn_status intern_attrs(struct intern_refs *refs, const tn_attr_table *table,
                       const void *attrs)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < table->num_fields && status == TN_OK; i++) {
        const tn_attr_field *field = &table->fields[i];
        const void *value = NULL;
        if (attr_is_interned(field->kind))
            value = field_pointer(field, attrs);
        if (!value)
            continue;
        struct intern_entry *entry = entry_of(field->kind, value);
        if (map_get(&refs->held, entry->key))
            continue;
        entry_retain(refs->set, entry); // not the first: the caller's struct has one
        status = intern_hold(refs, entry);
    }
    return status;
}
