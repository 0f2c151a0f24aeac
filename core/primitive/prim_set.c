// SPDX-License-Identifier: MIT
// The registry: adding primitives, and finding them by id, by name and by role.
#include "prim_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/config.h"
#include "../base/fail.h"
#include "../plugin/plugin_set.h"
#include "registry.h"

struct name_list {
    struct name_list *older;
    const char *names[];
};

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
    return prim->plugin ? plugin_id(prim->plugin) : "the core";
}

static tn_status add(struct prim_set *set, const struct prim *like)
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
    kernels_adopt(set, prim);
    // Short names may mean another primitive now.
    status = lookup_clear(&set->by_text);
    if (status == TN_OK)
        status = lookup_put(&set->by_id, prim->id_hash, prim);
    if (status == TN_OK)
        set->prims[set->num_prims++] = prim;
    return status;
}

tn_status prim_register(tn_runtime *runtime, struct plugin *plugin, const tn_host *host,
                        const tn_primitive *record)
{
    struct prim_set *set = runtime->prims;
    struct prim prim = {.plugin = plugin, .host = host};
    struct arena arena = {0};
    tn_status status = prim_check(runtime, &arena, record, &prim);
    if (status == TN_OK) {
        prim.id_hash = hash_text(hash_start(0), prim.record.id);
        pthread_mutex_lock(&set->lock);
        uint32_t size = prim.record.attrs.num_fields * (uint32_t)sizeof(tn_attr_field);
        tn_attr_field *fields = size ? arena_alloc(&set->arena, size) : NULL;
        if (fields)
            memcpy(fields, prim.record.attrs.fields, size);
        prim.record.attrs.fields = fields;
        status = size && !fields ? TN_ERR_MEMORY : add(set, &prim);
        pthread_mutex_unlock(&set->lock);
    }
    arena_finish(&arena);
    if (status != TN_OK && plugin)
        fail_prefix("plugin %s: ", plugin_id(plugin));
    return status;
}

void prims_forget(tn_runtime *runtime, const struct plugin *plugin)
{
    struct prim_set *set = runtime->prims;
    pthread_mutex_lock(&set->lock);
    kernels_forget(set, plugin_id(plugin));
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
        kernels_leave(set, prim);
    }
    set->num_prims = kept;
    set->names_made_for = UINT32_MAX; // of no list
    pthread_mutex_unlock(&set->lock);
}

// --- finding ---------------------------------------------------------------------------

// "acme.axpby/2" in parts. The revision is 0 when not given.
struct parts {
    const char *start, *name; // from the pack on; from the name alone on
    size_t size, name_size;   // up to the revision
    long revision;
};

static struct parts split(const char *text)
{
    struct parts parts = {.start = text, .size = strcspn(text, "/")};
    const char *point = memrchr(text, '.', parts.size);
    parts.name = point ? point + 1 : text;
    parts.name_size = (size_t)(text + parts.size - parts.name);
    if (text[parts.size] == '/')
        parts.revision = strtol(text + parts.size + 1, NULL, 10);
    return parts;
}

static bool same(const char *a, size_t a_size, const char *b, size_t b_size)
{
    return a_size == b_size && memcmp(a, b, a_size) == 0;
}

static bool matches(const struct parts *asked, const struct parts *have)
{
    bool has_pack = asked->name != asked->start;
    if (asked->revision && asked->revision != have->revision)
        return false;
    if (has_pack)
        return same(asked->start, asked->size, have->start, have->size);
    return same(asked->name, asked->name_size, have->name, have->name_size);
}

static tn_status ambiguous(const struct prim_set *set, const struct parts *asked,
                           const char *text)
{
    char list[400] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < set->num_prims; i++) {
        struct parts have = split(set->prims[i]->record.id);
        if (matches(asked, &have) && used < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                     used ? ", " : "", set->prims[i]->record.id);
    }
    return fail(TN_ERR_ARGUMENT, "'%s' is ambiguous, it may be: %s", text, list);
}

// The newest match among registered primitives, or NULL. TN_ERR_ARGUMENT when several packs
// have one.
static tn_status find_registered(struct prim_set *set, const char *text, struct prim **out)
{
    struct parts asked = split(text), best = {0};
    *out = NULL;
    for (uint32_t i = 0; i < set->num_prims; i++) {
        struct parts have = split(set->prims[i]->record.id);
        if (!matches(&asked, &have))
            continue;
        if (*out && !same(best.start, best.size, have.start, have.size))
            return ambiguous(set, &asked, text);
        if (!*out || have.revision > best.revision) {
            *out = set->prims[i];
            best = have;
        }
    }
    return TN_OK;
}

static tn_status unknown(struct prim_set *set, const char *text)
{
    const char **names = mem_zalloc((set->num_prims + 1) * sizeof(*names));
    if (!names)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < set->num_prims; i++)
        names[i] = set->prims[i]->record.id;
    const char *near = config_nearest(text, names);
    mem_free(names);
    if (near)
        return fail(TN_ERR_NOT_FOUND, "unknown primitive '%.80s', did you mean '%s'?", text,
                    near);
    return fail(TN_ERR_NOT_FOUND, "unknown primitive '%.80s'", text);
}

// Loads what may have it, looks, and remembers the answer for this very text.
static tn_status find_slowly(tn_runtime *runtime, const char *text, struct hash key,
                             struct prim **out)
{
    struct prim_set *set = runtime->prims;
    tn_status loaded = TN_ERR_NOT_FOUND;
    *out = lookup_get(&set->by_id, key);
    if (*out)
        return TN_OK;
    if (runtime->plugins)
        loaded = plugin_load_primitive(runtime, text);
    pthread_mutex_lock(&set->lock);
    tn_status status = find_registered(set, text, out);
    if (status == TN_OK && *out)
        status = lookup_put(&set->by_text, key, *out);
    else if (status == TN_OK && (loaded == TN_OK || !runtime->plugins))
        status = unknown(set, text);
    else if (status == TN_OK)
        status = loaded;
    pthread_mutex_unlock(&set->lock);
    return status;
}

tn_status prim_find(tn_runtime *runtime, const char *name, const struct prim **out_prim)
{
    struct prim_set *set = runtime->prims;
    if (!name)
        return fail(TN_ERR_ARGUMENT, "the primitive's name is NULL");
    struct hash key = hash_text(hash_start(0), name);
    struct prim *prim = lookup_get(&set->by_id, key);
    if (!prim)
        prim = lookup_get(&set->by_text, key);
    tn_status status = prim ? TN_OK : find_slowly(runtime, name, key, &prim);
    if (status == TN_OK)
        *out_prim = prim;
    return status;
}

static bool has_role(const struct prim *prim, const char *role)
{
    return prim->record.role && strcmp(prim->record.role, role) == 0;
}

static struct prim *find_by_role(struct prim_set *set, const char *role)
{
    struct prim *found = NULL;
    for (uint32_t i = 0; i < set->num_prims && !found; i++)
        if (has_role(set->prims[i], role))
            found = set->prims[i];
    return found;
}

tn_status prim_find_role(tn_runtime *runtime, const char *role,
                         const struct prim **out_prim)
{
    struct prim_set *set = runtime->prims;
    struct hash key = hash_text(hash_start(0), role);
    struct prim *prim = lookup_get(&set->by_role, key);
    if (prim) {
        *out_prim = prim;
        return TN_OK;
    }
    // "tn.sum_to/1": as a rule the primitive of that name in pack "base" has it.
    struct parts parts = split(role);
    char name[128];
    snprintf(name, sizeof(name), "base.%.*s", (int)parts.name_size, parts.name);
    const struct prim *usual = NULL;
    tn_status status = prim_find(runtime, name, &usual);
    pthread_mutex_lock(&set->lock);
    prim = status == TN_OK && has_role(usual, role) ? (struct prim *)usual
                                                    : find_by_role(set, role);
    if (prim)
        status = lookup_put(&set->by_role, key, prim);
    else
        status = fail(TN_ERR_NOT_FOUND,
                      "no installed primitive has the role '%s': install the pack of base "
                      "primitives, which has '%s'",
                      role, name);
    pthread_mutex_unlock(&set->lock);
    if (status == TN_OK)
        *out_prim = prim;
    return status;
}

const tn_primitive *tn_primitive_find(tn_runtime *runtime, const char *name)
{
    const struct prim *prim = NULL;
    if (!runtime) {
        fail(TN_ERR_ARGUMENT, "tn_primitive_find: the runtime is NULL");
        return NULL;
    }
    tn_status status = life_check(&runtime->life);
    if (status == TN_OK)
        status = prim_find(runtime, name, &prim);
    return status == TN_OK ? &prim->record : NULL;
}

// --- names -----------------------------------------------------------------------------

static int compare_names(const void *a, const void *b)
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
    qsort(list->names, used, sizeof(list->names[0]), compare_names);
    count = 0;
    for (uint32_t i = 0; i < used; i++)
        if (i == 0 || strcmp(list->names[i], list->names[count - 1]) != 0)
            list->names[count++] = list->names[i];
    list->names[count] = NULL;
    return list;
}

const char *const *tn_primitive_names(tn_runtime *runtime)
{
    static const char *const none[] = {NULL};
    if (!runtime || life_check(&runtime->life) != TN_OK)
        return none;
    struct prim_set *set = runtime->prims;
    const char *const *installed =
        runtime->plugins ? plugin_primitive_names(runtime) : NULL;
    pthread_mutex_lock(&set->lock);
    if (!set->name_lists || set->names_made_for != set->num_prims) {
        struct name_list *list = make_names(set, installed);
        if (list) {
            list->older = set->name_lists;
            set->name_lists = list;
            set->names_made_for = set->num_prims;
        }
    }
    const char *const *names = set->name_lists ? set->name_lists->names : none;
    pthread_mutex_unlock(&set->lock);
    return names;
}
