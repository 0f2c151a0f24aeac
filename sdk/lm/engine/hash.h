// SPDX-License-Identifier: MIT
// Hashes of models, by which two models are compared.
#ifndef LM_HASH_H
#define LM_HASH_H

#include "model.h"

// FNV-1a (Fowler, Noll, Vo), 64 bits.
#define LM_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
void lm_hash_bytes(uint64_t *hash, const void *data, uint64_t size);

// Hashes all pairs, in their order.
void lm_hash_metadata(uint64_t *hash, const tn_metadata_list *list);

// Hashes name, format and extents of a weight; nothing if the model does not have it.
void lm_hash_weight(uint64_t *hash, const tn_lm *model, const char *name);

// Hashes metadata and all weights of a model, loaded or not: names, formats, extents; and
// in *out_sample some bytes of each weight, if weights are in a file that a device of the
// host reads, else 0.
tn_status lm_hash_whole(const tn_lm *model, uint64_t *out, uint64_t *out_sample);

#endif // LM_HASH_H
