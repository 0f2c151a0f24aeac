// SPDX-License-Identifier: MIT
// Hashes of models: whether two are the same.
#ifndef LM_HASH_H
#define LM_HASH_H

#include "model.h"

// FNV-1a (Fowler, Noll, Vo), 64 bits.
#define LM_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
void lm_hash_bytes(uint64_t *hash, const void *data, uint64_t size);

// All pairs, in their order.
void lm_hash_metadata(uint64_t *hash, const tn_metadata_list *list);

// The name of a weight, its format and its extents; nothing where there is none.
void lm_hash_weight(uint64_t *hash, const tn_lm *model, const char *name);

// The metadata and all weights of a model, whatever is loaded: names, formats, extents; and
// in *out_sample some bytes of each weight, where these are in a file that a device of the
// host reads, else 0.
tn_status lm_hash_whole(const tn_lm *model, uint64_t *out, uint64_t *out_sample);

#endif // LM_HASH_H
