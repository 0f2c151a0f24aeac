// SPDX-License-Identifier: MIT
// An operator pack opened for checking: what the groups that look at primitives begin with.
#ifndef CONFORMANCE_PACK_H
#define CONFORMANCE_PACK_H

#include "apply.h"
#include "subject.h"

struct pack {
    struct subject subject;
    struct fake_host host;
    struct sample_maker maker;
    const tn_ops *ops; // or NULL
};

// Starts the plugin, and a runtime that computes on the CPU when there is one.
// False: it cannot be started, which other groups say.
bool pack_open(struct pack *pack, struct kit *k);
void pack_close(struct pack *pack);

// The record of this id: the pack's own or, through the runtime, another's. NULL: none.
const tn_primitive *pack_primitive(const struct pack *pack, const char *id);

// NULL when results are the same, element by element, to within `tolerance`.
const char *outputs_compare(const struct sample *s, const struct array *got,
                            const struct array *want, double tolerance);

#endif // CONFORMANCE_PACK_H
