// SPDX-License-Identifier: MIT
// The registry of primitives and kernels.
//
// Threads. Any. Entries never move and live until the runtime closes, so pointers to them
// are borrowed for as long.
#ifndef CORE_PRIMITIVE_PRIM_SET_H
#define CORE_PRIMITIVE_PRIM_SET_H

#include <tenon/kernel.h>
#include <tenon/primitive.h>
#include "../attr/attrs.h"
#include "../base/hash.h"
#include "../base/runtime.h"

// Limits on the inputs and outputs that a primitive names, and on those of a node.
#define MAX_INPUTS 64
#define MAX_NAMED_OUTPUTS 8
#define MAX_PAIR_RULES 16
#define MAX_OUTPUTS TN_MAX_OUTPUTS

// Limits on what is read from a plugin: bytes of a struct, of this version or a later one,
// and entries of a list that ends with NULL. A larger size is taken for corrupt, because
// reading that far could leave the plugin's memory.
#define MAX_ABI_STRUCT 1024
#define MAX_NAMES 256

// Limit on the domains of effects (tn_primitive.effects) in one runtime: sets of domains
// have a bit for each.
#define MAX_DOMAINS 64

struct plugin;
struct expr;

// The plugin that registers a primitive or kernel. NULL instead: the core or an
// application.
struct provider {
    struct plugin *plugin;
    const char *id;      // of the plugin; borrowed until the runtime closes
    const tn_host *host; // passed to the plugin's functions
};

struct kernel_entry {
    tn_kernel
        kernel; // first; a copy as this core's version, with at least one operand rule
    const char *plugin_id;     // borrowed
    uint32_t specificity;      // dtypes accepted, summed over operands; fewer are preferred
    struct kernel_entry *next; // of the same primitive, in the order of preference; see
                               // kernels.c
};

// The rule for operand `k`: the last rule holds for all operands that follow.
static inline const tn_operand_rule *kernel_rule(const tn_kernel *kernel, uint32_t k)
{
    uint32_t last = kernel->num_operands - 1;
    return &kernel->operands[k < last ? k : last];
}

// The id of the plugin that registered the kernel.
static inline const char *kernel_plugin(const tn_kernel *kernel)
{
    return ((const struct kernel_entry *)kernel)->plugin_id; // `kernel` is its first field
}

// A registered primitive. Constant but for `kernels`. Texts in `record` are borrowed from
// the registering plugin or application; tables are copies, as this core's versions of
// their structs.
struct prim {
    tn_primitive record; // a copy as this core's version of the struct; num_outputs >= 1
    struct hash id_hash;
    struct plugin *plugin;        // NULL when the core or an application registered it
    const char *plugin_id;        // NULL when `plugin` is
    const tn_host *host;          // of the plugin
    const struct expr *expr;      // parsed record.expr, or NULL; see num_runtime
    struct kernel_entry *kernels; // under the lock of prim_set; read without; see kernels.c
    int32_t reduction;            // by its role: TN_EXPR_REDUCE_..., EXPR_MEAN, or 0
    bool is_take;                 // it has TN_ROLE_TAKE
    // By output: 1 + number of the input whose buffer the output may reuse; 0: none.
    uint32_t in_place_of[MAX_OUTPUTS];
    uint32_t update_of[MAX_OUTPUTS]; // by output: as tn_in_place.update
    // Runtime attributes: their fields in the table. Each is an input of every node, behind
    // the record's, and of `expr`.
    uint32_t num_runtime;
    uint8_t runtime[MAX_ATTR_FIELDS];
    uint32_t result_dtype; // 1 + number of the field with TN_ATTR_RESULT; 0: none
    uint32_t domain;       // 1 + the number of its record.effects in this runtime; 0: none
};

// Whether an application is replaced by its decomposition at once, which types follow from.
static inline bool prim_is_composite(const struct prim *prim)
{
    return !prim->record.infer && !prim->expr;
}

// The kind of weak number that input i of a node of the primitive, which has `num_inputs`,
// is by its declaration: KIND_FLOAT or KIND_SIGNED for a runtime attribute; else 0.
uint8_t prim_weak_kind(const struct prim *prim, uint32_t i, uint32_t num_inputs);

// Checks a record (id, names, tables, at least one meaning, the expression parses) and adds
// a copy to the registry. Errors name the plugin, the primitive and the field.
tn_status prim_register(tn_runtime *runtime, const struct provider *provider,
                        const tn_primitive *record);
tn_status kernel_register(tn_runtime *runtime, const struct provider *provider,
                          const tn_kernel *record);

// Removes all primitives and kernels of a plugin that is refused after it registered some.
// Their memory stays, because another thread may have found an entry already.
void prims_forget(tn_runtime *runtime, const struct plugin *plugin, const char *plugin_id);

// The registered primitive with this id, or the cached result of prim_match for this name.
// NULL: neither. Takes no lock.
const struct prim *prim_recall(struct prim_set *set, const char *name);

// Finds a registered primitive by its id, by its id without a revision, or by its name
// without the pack; of several revisions the newest. *out_prim is NULL when none matches.
// Of several packs' base's is meant; TN_ERR_ARGUMENT when none of them is base.
tn_status prim_match(struct prim_set *set, const char *name, const struct prim **out_prim);

// TN_ERR_NOT_FOUND: records that no primitive is named `name`, and the nearest registered
// id.
tn_status prim_unknown(struct prim_set *set, const char *name);

// The first registered primitive with this role (TN_ROLE_...), `usual` before all others
// (may be NULL). NULL: none.
const struct prim *prim_with_role(struct prim_set *set, const char *role,
                                  const struct prim *usual);
// The cached result of prim_with_role for this role; NULL: none. Takes no lock.
const struct prim *prim_recall_role(const struct prim_set *set, const char *role);

// Ids of registered primitives and of `installed` (ended by NULL; may be NULL), in byte
// order, each once, ended by NULL. Borrowed until the runtime closes. NULL when out of
// memory.
const char *const *prim_names(struct prim_set *set, const char *const *installed);

// tn.copy/1, the core's own: the elements of its input, in order.
const struct prim *prim_copy(const tn_runtime *runtime);

// The primitives of tn_custom_call (custom.c): the id of that for a set of rules.
enum { CUSTOM_VJP = 1, CUSTOM_JVP = 2, CUSTOM_VMAP = 4, CUSTOM_SETS = 8 };
const char *custom_id(uint32_t given);

// Creates and destroys runtime->prims.
tn_status prim_set_create(tn_runtime *runtime);
void prim_set_destroy(tn_runtime *runtime);
// Registers tn.copy/1 and the primitives of tn_custom_call.
tn_status prim_register_own(tn_runtime *runtime);

#endif // CORE_PRIMITIVE_PRIM_SET_H
