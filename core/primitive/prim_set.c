// SPDX-License-Identifier: MIT
// The registry: adds primitives, and finds them by id, name and role.
#include "prim_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/config.h"
#include "../base/fail.h"
#include "registry.h"

// A result of prim_names. Callers borrow it until the runtime closes, so old lists stay.
struct name_list {
    struct name_list *older;
    const char *names[];
};

// Runs once for each plugin, or before a failure: small rather than quick.
#define RARE __attribute__((cold))

tn_status prim_set_create(tn_runtime *runtime)
{
    struct prim_set *set = mem_zalloc(sizeof(*set));
    if (!set)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&set->lock, NULL);
    runtime->prims = set;
    return TN_OK;
}

void prim_set_destroy(tn_runtime *runtime)
{
    struct prim_set *set = runtime->prims;
    if (!set)
        return;
    for (struct name_list *list = set->name_lists, *older; list; list = older) {
        older = list->older;
        mem_free(list);
    }
    lookup_finish(&set->by_id);
    lookup_finish(&set->by_text);
    lookup_finish(&set->by_role);
    mem_free(set->prims);
    arena_finish(&set->arena);
    pthread_mutex_destroy(&set->lock);
    mem_free(set);
    runtime->prims = NULL;
}

// --- adding ----------------------------------------------------------------------------

static const char *owner_of(const struct prim *prim)
{
    return prim->plugin_id ? prim->plugin_id : "the core";
}

RARE static tn_status prim_set_add(struct prim_set *set, const struct prim *like)
{
    struct prim *known = lookup_get(&set->by_id, like->id_hash);
    if (known)
        return fail(TN_ERR_REFUSED, "primitive '%s': %s has registered it already",
                    like->record.id, owner_of(known));
    struct prim *prim = arena_alloc(&set->arena, sizeof(*prim));
    tn_status status = prim ? mem_grow((void **)&set->prims, &set->max_prims,
                                       set->num_prims + 1, sizeof(*set->prims))
                            : TN_ERR_MEMORY;
    if (status != TN_OK)
        return status;
    *prim = *like;
    kernels_move_waiting(set, prim);
    // A short name may now be ambiguous, or mean a newer revision.
    status = lookup_clear(&set->by_text);
    if (status == TN_OK) {
        set->num_texts = 0;
        status = lookup_put(&set->by_id, prim->id_hash, prim);
    }
    if (status == TN_OK)
        set->prims[set->num_prims++] = prim;
    else
        kernels_return_waiting(set, prim);
    return status;
}

// Numbers the domains of effects in the order in which they are first named. The lock is
// held.
RARE static tn_status number_domain(struct prim_set *set, struct prim *prim)
{
    const char *name = prim->record.effects;
    uint32_t i = 0;
    if (!name)
        return TN_OK;
    while (i < set->num_domains && strcmp(set->domains[i], name) != 0)
        i++;
    if (i == MAX_DOMAINS)
        return fail(TN_ERR_REFUSED,
                    "primitive '%s': effects '%s' is domain number %d, at "
                    "most %d are possible",
                    prim->record.id, name, MAX_DOMAINS + 1, MAX_DOMAINS);
    if (i == set->num_domains && !(set->domains[i] = arena_strdup(&set->arena, name)))
        return TN_ERR_MEMORY;
    set->num_domains += i == set->num_domains;
    prim->domain = i + 1;
    return TN_OK;
}

// Copies an array into the arena and writes its new address to the pointer at `array`;
// NULL stays NULL.
static bool prim_set_keep(struct arena *arena, void *array, uint64_t bytes)
{
    void *from;
    memcpy(&from, array, sizeof(from)); // a pointer to any type
    if (!from || !bytes)
        return true;
    void *copy = arena_alloc(arena, bytes);
    if (copy)
        memcpy(copy, from, bytes);
    memcpy(array, &copy, sizeof(copy));
    return copy != NULL;
}

// Copies the tables of a checked record into the arena.
RARE static bool keep_tables(struct arena *arena, tn_primitive *p)
{
    return prim_set_keep(arena, &p->inputs, p->num_inputs * sizeof(*p->inputs)) &&
           prim_set_keep(arena, &p->outputs, p->num_outputs * sizeof(*p->outputs)) &&
           prim_set_keep(arena, &p->in_place, p->num_in_place * sizeof(*p->in_place)) &&
           prim_set_keep(arena, &p->pair_rules,
                         p->num_pair_rules * sizeof(*p->pair_rules)) &&
           prim_set_keep(arena, &p->attrs.fields,
                         p->attrs.num_fields * sizeof(*p->attrs.fields));
}

RARE tn_status prim_register(tn_runtime *runtime, const struct provider *provider,
                             const tn_primitive *record)
{
    struct prim_set *set = runtime->prims;
    struct prim prim = {0};
    if (provider) {
        prim.plugin = provider->plugin;
        prim.plugin_id = provider->id;
        prim.host = provider->host;
    }
    struct arena arena = {0}; // a refused primitive leaves nothing in the set's arena
    tn_status status = prim_check(runtime, &arena, record, &prim);
    if (status == TN_OK) {
        prim.id_hash = hash_text(hash_start(0), prim.record.id);
        pthread_mutex_lock(&set->lock);
        status = number_domain(set, &prim);
        if (status == TN_OK)
            status = keep_tables(&set->arena, &prim.record) ? prim_set_add(set, &prim)
                                                            : TN_ERR_MEMORY;
        pthread_mutex_unlock(&set->lock);
    }
    arena_finish(&arena);
    if (status != TN_OK && provider)
        fail_prefix("plugin %s: ", provider->id);
    return status;
}

RARE void prims_forget(tn_runtime *runtime, const struct plugin *plugin,
                       const char *plugin_id)
{
    struct prim_set *set = runtime->prims;
    pthread_mutex_lock(&set->lock);
    kernels_remove(set, plugin_id);
    for (uint32_t i = 0; i < NUM_RECENT; i++)
        atomic_store(&set->recent[i], NULL);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->num_prims; i++) {
        struct prim *prim = set->prims[i];
        if (prim->plugin != plugin) {
            set->prims[kept++] = prim;
            continue;
        }
        lookup_remove(&set->by_id, prim);
        lookup_remove(&set->by_text, prim);
        lookup_remove(&set->by_role, prim);
        kernels_return_waiting(set, prim);
    }
    set->num_prims = kept;
    set->names_made_for = UINT32_MAX; // outdated: prim_names makes a new list
    pthread_mutex_unlock(&set->lock);
}

// --- finding ---------------------------------------------------------------------------

// "acme.axpby/2", split. The revision is 0 when not given.
struct prim_set_parts {
    const char *start, *name; // "acme.axpby" and "axpby", not ended by NUL
    size_t size, name_size;   // of these
    long revision;
};

static struct prim_set_parts prim_set_split(const char *text)
{
    struct prim_set_parts parts = {.start = text, .size = strcspn(text, "/")};
    const char *point = memrchr(text, '.', parts.size);
    parts.name = point ? point + 1 : text;
    parts.name_size = (size_t)(text + parts.size - parts.name);
    if (text[parts.size] == '/')
        parts.revision = strtol(text + parts.size + 1, NULL, 10);
    return parts;
}

static bool prim_set_same(const char *a, size_t a_size, const char *b, size_t b_size)
{
    return a_size == b_size && memcmp(a, b, a_size) == 0;
}

static bool prim_set_matches(const struct prim_set_parts *asked,
                             const struct prim_set_parts *have)
{
    bool has_pack = asked->name != asked->start;
    if (asked->revision && asked->revision != have->revision)
        return false;
    if (has_pack)
        return prim_set_same(asked->start, asked->size, have->start, have->size);
    return prim_set_same(asked->name, asked->name_size, have->name, have->name_size);
}

RARE static tn_status prim_set_ambiguous(const struct prim_set *set,
                                         const struct prim_set_parts *asked,
                                         const char *text)
{
    char list[400] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < set->num_prims; i++) {
        struct prim_set_parts have = prim_set_split(set->prims[i]->record.id);
        if (prim_set_matches(asked, &have) && used < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                     used ? ", " : "", set->prims[i]->record.id);
    }
    return fail(TN_ERR_ARGUMENT, "'%s' is ambiguous, it may be: %s", text, list);
}

// Ranks the pack that a bare name means: base, whose names are NumPy's, then nn, then none.
static int prim_set_rank_of(const struct prim_set_parts *parts)
{
    return strncmp(parts->start, "base.", 5) == 0 ? 2
                                                  : strncmp(parts->start, "nn.", 3) == 0;
}

// The newest revision among the registered primitives that match, or NULL. Where those of
// several packs do it is the one of the highest rank; else TN_ERR_ARGUMENT.
static tn_status find_registered(struct prim_set *set, const char *text, struct prim **out)
{
    struct prim_set_parts asked = prim_set_split(text), best = {0};
    int best_rank = 0;
    bool several = false;
    *out = NULL;
    for (uint32_t i = 0; i < set->num_prims; i++) {
        struct prim_set_parts have = prim_set_split(set->prims[i]->record.id);
        if (!prim_set_matches(&asked, &have))
            continue;
        bool other = *out && !prim_set_same(best.start, best.size, have.start, have.size);
        int rank = prim_set_rank_of(&have);
        several |= other;
        if (!*out || (other ? rank > best_rank : have.revision > best.revision)) {
            *out = set->prims[i];
            best = have;
            best_rank = rank;
        }
    }
    return several && !best_rank ? prim_set_ambiguous(set, &asked, text) : TN_OK;
}

RARE tn_status prim_unknown(struct prim_set *set, const char *text)
{
    pthread_mutex_lock(&set->lock);
    const char **names = mem_zalloc((set->num_prims + 1) * sizeof(*names));
    for (uint32_t i = 0; names && i < set->num_prims; i++)
        names[i] = set->prims[i]->record.id;
    pthread_mutex_unlock(&set->lock);
    if (!names)
        return TN_ERR_MEMORY;
    const char *near = config_nearest(text, names);
    mem_free(names);
    if (near)
        return fail(TN_ERR_NOT_FOUND, "unknown primitive '%.80s', did you mean '%s'?", text,
                    near);
    return fail(TN_ERR_NOT_FOUND, "unknown primitive '%.80s'", text);
}

static struct hash prim_set_key_of(const char *text)
{
    return hash_text(hash_start(0), text);
}

// Under the lock: what prims_forget() has removed is not found any more.
static const struct prim *prim_set_remember(struct prim_set *set,
                                            _Atomic(const struct prim *) *entry,
                                            struct hash key)
{
    pthread_mutex_lock(&set->lock);
    const struct prim *prim = lookup_get(&set->by_id, key);
    atomic_store_explicit(entry, prim, memory_order_release);
    pthread_mutex_unlock(&set->lock);
    return prim;
}

const struct prim *prim_recall(struct prim_set *set, const char *name)
{
    uintptr_t at = (uintptr_t)name;
    _Atomic(const struct prim *) *entry = &set->recent[(at >> 3 ^ at >> 9) % NUM_RECENT];
    const struct prim *prim = atomic_load_explicit(entry, memory_order_acquire);
    if (prim && strcmp(prim->record.id, name) == 0)
        return prim;
    struct hash key = prim_set_key_of(name);
    prim = lookup_get(&set->by_id, key);
    return prim ? prim_set_remember(set, entry, key) : lookup_get(&set->by_text, key);
}

tn_status prim_match(struct prim_set *set, const char *name, const struct prim **out_prim)
{
    struct prim *found = NULL;
    pthread_mutex_lock(&set->lock);
    tn_status status = find_registered(set, name, &found);
    if (status == TN_OK && found && set->num_texts < MAX_TEXTS) {
        status = lookup_put(&set->by_text, prim_set_key_of(name), found);
        set->num_texts++;
    }
    pthread_mutex_unlock(&set->lock);
    *out_prim = status == TN_OK ? found : NULL;
    return status;
}

static bool prim_set_has_role(const struct prim *prim, const char *role)
{
    return prim && prim->record.role && strcmp(prim->record.role, role) == 0;
}

const struct prim *prim_recall_role(const struct prim_set *set, const char *role)
{
    return lookup_get(&set->by_role, prim_set_key_of(role));
}

const struct prim *prim_with_role(struct prim_set *set, const char *role,
                                  const struct prim *usual)
{
    const struct prim *found = prim_set_has_role(usual, role) ? usual : NULL;
    pthread_mutex_lock(&set->lock);
    for (uint32_t i = 0; i < set->num_prims && !found; i++)
        if (prim_set_has_role(set->prims[i], role))
            found = set->prims[i];
    if (found) // when out of memory, the next call searches again
        (void)lookup_put(&set->by_role, prim_set_key_of(role), (void *)found);
    pthread_mutex_unlock(&set->lock);
    return found;
}

// --- names -----------------------------------------------------------------------------

static int prim_set_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct name_list *make_names(const struct prim_set *set,
                                    const char *const *installed)
{
    uint32_t count = set->num_prims, used = 0;
    for (uint32_t i = 0; installed && installed[i]; i++)
        count++;
    struct name_list *list =
        mem_zalloc(sizeof(*list) + (count + 1) * sizeof(list->names[0]));
    if (!list)
        return NULL;
    for (uint32_t i = 0; i < set->num_prims; i++)
        list->names[used++] = set->prims[i]->record.id;
    for (uint32_t i = 0; installed && installed[i]; i++)
        list->names[used++] = installed[i];
    qsort(list->names, used, sizeof(list->names[0]), prim_set_compare_names);
    count = 0;
    for (uint32_t i = 0; i < used; i++)
        if (i == 0 || strcmp(list->names[i], list->names[count - 1]) != 0)
            list->names[count++] = list->names[i];
    list->names[count] = NULL;
    return list;
}

const char *const *prim_names(struct prim_set *set, const char *const *installed)
{
    pthread_mutex_lock(&set->lock);
    if (!set->name_lists || set->names_made_for != set->num_prims) {
        struct name_list *list = make_names(set, installed);
        if (list) {
            list->older = set->name_lists;
            set->name_lists = list;
            set->names_made_for = set->num_prims;
        }
    }
    const char *const *names = set->name_lists ? set->name_lists->names : NULL;
    pthread_mutex_unlock(&set->lock);
    return names;
}
