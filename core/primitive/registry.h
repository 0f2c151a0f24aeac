// SPDX-License-Identifier: MIT
// What the files of the registry share.
#ifndef CORE_PRIMITIVE_REGISTRY_H
#define CORE_PRIMITIVE_REGISTRY_H

#include <pthread.h>
#include "../base/memory.h"
#include "lookup.h"
#include "prim_set.h"

// Primitives in one list, in the order of their registration; by id; and by every text that
// was ever asked for, until the next registration. Kernels of a primitive that is not
// registered yet wait in a list of their own.
struct prim_set {
    pthread_mutex_t lock; // of all that adds
    struct arena arena;
    struct lookup by_id, by_text, by_role;
    struct prim **prims;
    uint32_t num_prims, max_prims;
    const struct prim *copy; // tn.copy/1; not in the list
    struct waiting_kernels *waiting;
    struct name_list *name_lists; // the newest first; all live until the end
    uint32_t names_made_for;      // num_prims then
};

// Reads `given` (of `given_size` bytes as its maker knew the struct) into `own`: what is
// missing is zero, what this core does not know must be zero. `what` names it in errors.
tn_status record_read(void *own, size_t own_size, const void *given, uint32_t given_size,
                      size_t least, const char *what);

// "[a-z0-9._-]+/REVISION" with a pack's name before the last point.
tn_status check_id(const char *id, const char *what);
bool is_identifier(const char *name);

// Checks a record and fills `prim` from it; its own tables go to the arena. (check.c)
tn_status prim_check(tn_runtime *runtime, struct arena *arena, const tn_primitive *given,
                     struct prim *prim);

// Moves kernels that waited for `prim` to it. The lock is held. (kernels.c)
void kernels_adopt(struct prim_set *set, struct prim *prim);

// Lets the kernels of a primitive that was taken back wait for it again. The lock is held.
// (kernels.c)
void kernels_leave(struct prim_set *set, struct prim *prim);

// Takes the kernels of the plugin with this id out of all lists. The lock is held.
// (kernels.c)
void kernels_forget(struct prim_set *set, const char *plugin_id);

#endif // CORE_PRIMITIVE_REGISTRY_H
