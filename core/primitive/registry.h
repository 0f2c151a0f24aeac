// SPDX-License-Identifier: MIT
// Shared by the files of the registry.
#ifndef CORE_PRIMITIVE_REGISTRY_H
#define CORE_PRIMITIVE_REGISTRY_H

#include <tenon/run_memory.h>
#include <pthread.h>
#include "../base/memory.h"
#include "../base/lookup.h"
#include "prim_set.h"

#define MAX_TEXTS 1024 // names in by_text; further ones are matched each time

#define NUM_RECENT 64

// Primitives in one list, in the order of their registration, and in lookup tables. by_text
// caches the results of prim_match until the next registration, by_role those of
// prim_with_role. Kernels of a primitive that is not registered wait in a list of their
// own.
struct prim_set {
    pthread_mutex_t lock; // for all writes; by_... and lists of kernels are read without it
    struct arena arena;
    struct lookup by_id, by_text, by_role;
    // Primitives that were found by their ids, by the address of the text.
    _Atomic(const struct prim *) recent[NUM_RECENT];
    uint32_t num_texts;               // in by_text, at most MAX_TEXTS
    const char *domains[MAX_DOMAINS]; // of effects, by number
    uint32_t num_domains;
    struct prim **prims;
    uint32_t num_prims, max_prims;
    const struct prim *copy; // tn.copy/1; not in the list
    struct waiting_kernels *waiting;
    struct name_list *name_lists; // the newest first; all live until the runtime closes
    uint32_t names_made_for;      // num_prims when the newest list was made
};

// Copies a struct from across the ABI, of `given_size` bytes in its caller's version, to
// `own`, of `own_size` bytes in this core's version. Missing fields are zero; bytes that
// this core does not know must be zero; at least `least` bytes must be there. `what` names
// the struct in errors.
tn_status abi_struct_read(void *own, size_t own_size, const void *given,
                          uint32_t given_size, size_t least, const char *what);

// As abi_struct_read for an array: copies `count` structs of `given_size` bytes each to the
// arena. Nothing is read, and *out is NULL, when `given` is.
tn_status abi_table_read(struct arena *arena, const void *given, uint64_t given_size,
                         uint32_t count, size_t own_size, const char *what, void *out);

// TN_ERR_REFUSED unless `id` is "[a-z0-9._-]+/REVISION", with a pack's name before the last
// point. `what` names the field in errors.
tn_status check_id(const char *id, const char *what);

// Checks a record and fills `prim` from it. The copied table of attributes goes to the
// arena. (check.c)
tn_status prim_check(tn_runtime *runtime, struct arena *arena, const tn_primitive *given,
                     struct prim *prim);

// Moves the kernels that wait for `prim` to its list. The lock is held. (kernels.c)
void kernels_move_waiting(struct prim_set *set, struct prim *prim);

// Moves the kernels of a removed primitive back to the waiting list. The lock is held.
// (kernels.c)
void kernels_return_waiting(struct prim_set *set, struct prim *prim);

// Removes the kernels of the plugin with this id from all lists. The lock is held.
// (kernels.c)
void kernels_remove(struct prim_set *set, const char *plugin_id);

// Registers the primitive of tn_custom_call for a set of rules (custom.c).
tn_status custom_register(tn_runtime *runtime, uint32_t given);

#endif // CORE_PRIMITIVE_REGISTRY_H
