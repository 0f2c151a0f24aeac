// SPDX-License-Identifier: MIT
// Registered kernels. Each primitive has a list of its kernels, sorted by preference:
// higher priority, then more specific predicates, then plugin id and kernel name. The order
// does not depend on the order in which plugins were loaded.
//
// Threads. Writers hold the set's lock. Readers take no lock: entries are never freed while
// the runtime is open, and links into a list are stored with release and loaded with
// acquire.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "registry.h"

// The kernels of a primitive that is not registered.
struct waiting_kernels {
    struct waiting_kernels *next;
    struct hash id_hash; // of the primitive's id
    struct kernel_entry *first;
};

// The number of dtypes that the kernel accepts, summed over the primitive's operands. The
// last operand rule holds for all further operands.
static uint32_t count_dtypes(const tn_kernel *kernel, const struct prim *prim)
{
    uint32_t operands =
        prim ? prim->record.num_inputs + prim->record.num_outputs : kernel->num_operands;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < operands; i++) {
        sum += (uint32_t)__builtin_popcount(kernel_rule(kernel, i)->dtypes);
    }
    return sum;
}

static bool is_preferred(const struct kernel_entry *a, const struct kernel_entry *b)
{
    if (a->kernel.priority != b->kernel.priority)
        return a->kernel.priority > b->kernel.priority;
    if (a->specificity != b->specificity)
        return a->specificity < b->specificity;
    int order = strcmp(a->plugin_id, b->plugin_id);
    if (order == 0)
        order = strcmp(a->kernel.name, b->kernel.name);
    if (order == 0)
        order = strcmp(a->kernel.family, b->kernel.family);
    return order < 0;
}

static void kernel_set_insert(struct kernel_entry **first, struct kernel_entry *entry)
{
    while (*first && is_preferred(*first, entry))
        first = &(*first)->next;
    entry->next = *first;
    __atomic_store_n(first, entry, __ATOMIC_RELEASE); // readers hold no lock
}

void kernels_move_waiting(struct prim_set *set, struct prim *prim)
{
    struct waiting_kernels **link = &set->waiting;
    while (*link && !hash_equal((*link)->id_hash, prim->id_hash))
        link = &(*link)->next;
    struct waiting_kernels *found = *link;
    if (!found)
        return;
    *link = found->next;
    for (struct kernel_entry *entry = found->first, *next; entry; entry = next) {
        next = entry->next;
        entry->specificity = count_dtypes(&entry->kernel, prim);
        kernel_set_insert(&prim->kernels, entry);
    }
}

static void remove_plugin(struct kernel_entry **first, const char *plugin_id)
{
    while (*first) {
        if (strcmp((*first)->plugin_id, plugin_id) == 0) // for readers, entry->next stays
            __atomic_store_n(first, (*first)->next, __ATOMIC_RELEASE);
        else
            first = &(*first)->next;
    }
}

void kernels_remove(struct prim_set *set, const char *plugin_id)
{
    for (uint32_t i = 0; i < set->num_prims; i++)
        remove_plugin(&set->prims[i]->kernels, plugin_id);
    for (struct waiting_kernels *list = set->waiting; list; list = list->next)
        remove_plugin(&list->first, plugin_id);
}

// Checks payloads of the kernel families that the SDK defines. Backends check the payloads
// of their own.
static tn_status kernel_set_check_payload(const tn_kernel *kernel)
{
    const tn_cpu_kernel *cpu = kernel->payload;
    const tn_vulkan_kernel *vulkan = kernel->payload;
    if (strcmp(kernel->family, TN_FAMILY_CPU) == 0) {
        tn_cpu_kernel own;
        if (!TN_HAS(cpu, launch))
            return fail(TN_ERR_REFUSED, "kernel family %s needs a payload with `launch`",
                        TN_FAMILY_CPU);
        return abi_struct_read(&own, sizeof(own), cpu, cpu->struct_size, sizeof(uint32_t),
                               "tn_cpu_kernel");
    }
    if (vulkan && (strcmp(kernel->family, TN_FAMILY_VULKAN_GLSL) == 0 ||
                   strcmp(kernel->family, TN_FAMILY_VULKAN_SPIRV) == 0)) {
        tn_vulkan_kernel own;
        tn_status status = abi_struct_read(&own, sizeof(own), vulkan, vulkan->struct_size,
                                           TN_END_OF(vulkan, plan), "tn_vulkan_kernel");
        if (status == TN_OK && (own.num_modules == 0 || !own.modules || !own.module_size))
            return fail(
                TN_ERR_REFUSED, "modules: got %u%s of %u bytes each, expected at least one",
                own.num_modules, own.modules ? "" : " in no table", own.module_size);
        if (status == TN_OK && (own.num_push > 32 || (own.num_push && !own.push)))
            return fail(TN_ERR_REFUSED, "push: got %u fields%s, expected at most 32",
                        own.num_push, own.push ? "" : " in no table");
        return status;
    }
    return TN_OK;
}

// Copies the rules into the arena; a rule that names no dtypes takes the first ones. A
// kernel without rules gets one rule. The lock is held.
static tn_status kernel_set_read_operands(struct prim_set *set, tn_kernel *kernel)
{
    static const tn_operand_rule any = {.dtypes = TN_FIRST_DTYPES, .needs = TN_NEEDS_ANY};
    tn_operand_rule *rules = NULL;
    const uint32_t most = MAX_INPUTS + MAX_NAMED_OUTPUTS;
    if (kernel->num_operands > most || (kernel->num_operands && !kernel->operands))
        return fail(TN_ERR_REFUSED, "operands: got %u rules%s, expected at most %u",
                    kernel->num_operands, kernel->operands ? "" : " in no table", most);
    tn_status status =
        abi_table_read(&set->arena, kernel->operands, kernel->operand_size,
                       kernel->num_operands, sizeof(*rules), "operands", &rules);
    for (uint32_t i = 0; status == TN_OK && rules && i < kernel->num_operands; i++)
        rules[i].dtypes = rules[i].dtypes ? rules[i].dtypes : TN_FIRST_DTYPES;
    kernel->operands = rules ? rules : &any;
    kernel->num_operands = rules ? kernel->num_operands : 1;
    kernel->operand_size = sizeof(*rules);
    return status;
}

static tn_status kernel_set_check(const tn_kernel *kernel)
{
    const uint32_t known = TN_KERNEL_NO_COPIES | TN_KERNEL_SAME_DTYPE;
    tn_status status = check_id(kernel->primitive, "primitive");
    if (status != TN_OK)
        return status;
    if (!kernel->family || !kernel->family[0] || !kernel->name || !kernel->name[0])
        return fail(TN_ERR_REFUSED, "kernel family and name are needed, got '%s' and '%s'",
                    kernel->family ? kernel->family : "NULL",
                    kernel->name ? kernel->name : "NULL");
    if (kernel->flags & ~known)
        return fail(TN_ERR_REFUSED, "unknown flags 0x%x", kernel->flags & ~known);
    for (uint32_t i = 0; i < kernel->num_operands; i++)
        if (kernel->operands[i].needs > TN_NEEDS_ROWS ||
            kernel->operands[i].flags & ~(uint32_t)TN_OPERAND_FUSES ||
            kernel->operands[i].dtypes & ~TN_ALL_DTYPES)
            return fail(TN_ERR_REFUSED,
                        "operands[%u]: dtypes 0x%x, needs %u, flags 0x%x: unknown", i,
                        kernel->operands[i].dtypes, kernel->operands[i].needs,
                        kernel->operands[i].flags);
    return kernel_set_check_payload(kernel);
}

static struct kernel_entry **list_for(struct prim_set *set, struct hash id_hash,
                                      const struct prim **out_prim)
{
    struct prim *prim = lookup_get(&set->by_id, id_hash);
    *out_prim = prim;
    if (prim)
        return &prim->kernels;
    struct waiting_kernels *waiting = set->waiting;
    while (waiting && !hash_equal(waiting->id_hash, id_hash))
        waiting = waiting->next;
    if (!waiting) {
        waiting = arena_alloc(&set->arena, sizeof(*waiting));
        if (!waiting)
            return NULL;
        *waiting = (struct waiting_kernels){.next = set->waiting, .id_hash = id_hash};
        set->waiting = waiting;
    }
    return &waiting->first;
}

void kernels_return_waiting(struct prim_set *set, struct prim *prim)
{
    const struct prim *none;
    struct kernel_entry *entry = prim->kernels, *next;
    struct kernel_entry **first = entry ? list_for(set, prim->id_hash, &none) : NULL;
    __atomic_store_n(&prim->kernels, NULL, __ATOMIC_RELEASE);
    for (; first && entry; entry = next) { // NULL when out of memory: kernels are lost
        next = entry->next;
        kernel_set_insert(first, entry);
    }
}

static tn_status kernel_set_add(struct prim_set *set, const struct kernel_entry *like)
{
    const struct prim *prim;
    struct kernel_entry **first =
        list_for(set, hash_text(hash_start(0), like->kernel.primitive), &prim);
    struct kernel_entry *entry = arena_alloc(&set->arena, sizeof(*entry));
    if (!first || !entry)
        return TN_ERR_MEMORY;
    *entry = *like;
    entry->specificity = count_dtypes(&entry->kernel, prim);
    for (const struct kernel_entry *other = *first; other; other = other->next)
        if (strcmp(other->plugin_id, entry->plugin_id) == 0 &&
            strcmp(other->kernel.family, entry->kernel.family) == 0 &&
            strcmp(other->kernel.name, entry->kernel.name) == 0)
            return fail(TN_ERR_REFUSED, "there is one of that name already");
    kernel_set_insert(first, entry);
    return TN_OK;
}

tn_status kernel_register(tn_runtime *runtime, const struct provider *provider,
                          const tn_kernel *record)
{
    struct prim_set *set = runtime->prims;
    struct kernel_entry entry = {0};
    tn_status status =
        abi_struct_read(&entry.kernel, sizeof(entry.kernel), record, record->struct_size,
                        TN_END_OF(record, payload), "tn_kernel");
    if (status == TN_OK) {
        pthread_mutex_lock(&set->lock);
        status = kernel_set_read_operands(set, &entry.kernel);
        pthread_mutex_unlock(&set->lock);
    }
    if (status == TN_OK)
        status = kernel_set_check(&entry.kernel);
    if (status == TN_OK) {
        entry.kernel.struct_size = sizeof(entry.kernel);
        pthread_mutex_lock(&set->lock);
        entry.plugin_id = arena_strdup(&set->arena, provider ? provider->id : "");
        status = entry.plugin_id ? kernel_set_add(set, &entry) : TN_ERR_MEMORY;
        pthread_mutex_unlock(&set->lock);
    }
    if (status != TN_OK)
        fail_prefix("kernel '%.60s' of '%.80s' from %s: ",
                    entry.kernel.name ? entry.kernel.name : "",
                    entry.kernel.primitive ? entry.kernel.primitive : "",
                    provider ? provider->id : "the core");
    return status;
}
