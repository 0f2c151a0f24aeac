// SPDX-License-Identifier: MIT
// Finds primitives by name or role; see primitives.h. And the check whether a primitive can
// run on this system (TN_IFACE_OPS_CHECK).
#include "primitives.h"

#include <stdio.h>
#include <string.h>
#include "../../base/fail.h"
#include "load.h"

// Loads the packs that may have the primitive, then looks the primitive up. prim_match
// remembers the answer for this text.
static tn_status find_slowly(tn_runtime *runtime, const char *name,
                             const struct prim **out_prim)
{
    tn_status loaded =
        runtime->plugins ? plugin_load_primitive(runtime, name) : TN_ERR_NOT_FOUND;
    tn_status status = prim_match(runtime->prims, name, out_prim);
    if (status != TN_OK || *out_prim)
        return status;
    return loaded == TN_OK || !runtime->plugins ? prim_unknown(runtime->prims, name)
                                                : loaded;
}

tn_status prim_find(tn_runtime *runtime, const char *name, const struct prim **out_prim)
{
    if (!name)
        return fail(TN_ERR_ARGUMENT, "the primitive's name is NULL");
    const struct prim *prim = prim_recall(runtime->prims, name);
    tn_status status = prim ? TN_OK : find_slowly(runtime, name, &prim);
    if (status == TN_OK)
        *out_prim = prim;
    return status;
}

tn_status prim_find_role(tn_runtime *runtime, const char *role,
                         const struct prim **out_prim)
{
    const struct prim *prim = prim_recall_role(runtime->prims, role);
    if (prim) {
        *out_prim = prim;
        return TN_OK;
    }
    // The primitive with role "tn.sum_to/1" is usually base.sum_to.
    size_t size = strcspn(role, "/");
    const char *point = memrchr(role, '.', size);
    const char *short_name = point ? point + 1 : role;
    char name[128];
    snprintf(name, sizeof(name), "base.%.*s", (int)(role + size - short_name), short_name);
    const struct prim *usual = NULL;
    (void)prim_find(runtime, name, &usual);
    prim = prim_with_role(runtime->prims, role, usual);
    if (!prim)
        return fail(TN_ERR_NOT_FOUND,
                    "no installed primitive has the role '%s': install the pack of base "
                    "primitives, which has '%s'",
                    role, name);
    *out_prim = prim;
    return TN_OK;
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

const char *const *tn_primitive_names(tn_runtime *runtime)
{
    static const char *const none[] = {NULL};
    if (!runtime || life_check(&runtime->life) != TN_OK)
        return none;
    const char *const *installed =
        runtime->plugins ? plugin_primitive_names(runtime) : NULL;
    const char *const *names = prim_names(runtime->prims, installed);
    return names ? names : none;
}

// --- can a primitive run on this system? -----------------------------------------------

tn_status tn_primitive_check(tn_runtime *runtime, const char *name)
{
    const struct prim *prim = NULL;
    if (!runtime)
        return fail(TN_ERR_ARGUMENT, "tn_primitive_check: the runtime is NULL");
    tn_status status = life_check(&runtime->life);
    if (status == TN_OK)
        status = prim_find(runtime, name, &prim);
    if (status != TN_OK || !prim->plugin)
        return status;
    const tn_ops_check *check = prim->plugin->entry->query(TN_IFACE_OPS_CHECK);
    if (!TN_HAS(check, check))
        return TN_OK;
    fail_clear();
    status = check->check(&prim->plugin->host, prim->record.id);
    if (status != TN_OK)
        fail_prefix("%s: ", prim->record.id);
    return status;
}
