// SPDX-License-Identifier: MIT
// Metadata for checks of formats: pairs of every kind, and whether they came back.
#ifndef CONFORMANCE_FORMAT_METADATA_H
#define CONFORMANCE_FORMAT_METADATA_H

#include <tenon/format.h>
#include "../kit/kit.h"

extern const tn_metadata metadata_samples[];
extern const uint64_t num_metadata_samples;

// Puts some of the pairs, or none, in a content.
void metadata_draw(struct kit *k, tn_format_content *content);

// Fails the check unless the pair is in what was listed, with the same value.
void metadata_expect(struct kit *k, const tn_format_content *got, const tn_metadata *want);

// Fails the check unless each pair that was listed is one. The core relies on this.
void metadata_expect_valid(struct kit *k, const tn_format_content *got);

// The single text under `key` in what was listed, or NULL.
const tn_text *metadata_listed_text(const tn_format_content *got, const char *key);

#endif // CONFORMANCE_FORMAT_METADATA_H
