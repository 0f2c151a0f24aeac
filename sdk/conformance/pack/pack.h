// SPDX-License-Identifier: MIT
// An operator pack that is open for its checks: the set-up of groups that check primitives.
#ifndef CONFORMANCE_PACK_PACK_H
#define CONFORMANCE_PACK_PACK_H

#include "apply.h"
#include "../kit/subject.h"

struct pack {
    struct subject subject;
    struct fake_host host;
    struct sample_maker maker;
    const tn_ops *ops; // NULL: the plugin is no operator pack
};

// Starts the plugin, and a runtime that computes on the CPU (maker.runtime is NULL if there
// is none). False: the plugin cannot be started; other groups report why.
bool pack_open(struct pack *pack, struct kit *k);
void pack_close(struct pack *pack);

// The primitive of this id: the pack's own or, through the runtime, an installed one. NULL:
// none.
const tn_primitive *pack_primitive(const struct pack *pack, const char *id);

#endif // CONFORMANCE_PACK_PACK_H
