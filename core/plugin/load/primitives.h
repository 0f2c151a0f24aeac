// SPDX-License-Identifier: MIT
// Finds primitives by name or role, and loads the packs that have them.
//
// Threads. Any.
#ifndef CORE_PLUGIN_LOAD_PRIMITIVES_H
#define CORE_PLUGIN_LOAD_PRIMITIVES_H

#include "../../primitive/prim_set.h"

// Finds a primitive by id, with or without revision, or by the last part of the id alone.
// Loads its pack if needed.
tn_status prim_find(tn_runtime *runtime, const char *name, const struct prim **out_prim);

// Finds the primitive with this role (TN_ROLE_...): base.<the role's name>, whose pack is
// loaded if needed, or else any registered primitive with the role.
tn_status prim_find_role(tn_runtime *runtime, const char *role,
                         const struct prim **out_prim);

#endif // CORE_PLUGIN_LOAD_PRIMITIVES_H
