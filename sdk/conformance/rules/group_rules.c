// SPDX-License-Identifier: MIT
// Rules that build graphs: derivatives and batching, and how rules treat NULL arguments and
// failures of the builder. All run on the CPU; graphs that rules build run on any device.
#include "groups.h"
#include "rules.h"

static bool has_derivable_input(const tn_primitive *p)
{
    for (uint32_t i = 0; i < p->num_inputs; i++)
        if (!(p->inputs[i].flags & TN_INPUT_CONSTANT))
            return true;
    return false;
}

void group_rules(struct kit *k)
{
    struct pack pack;
    if (!pack_open(&pack, k))
        return;
    for (uint32_t i = 0; pack.ops && i < pack.ops->num_primitives; i++) {
        const tn_primitive *p = pack.ops->primitives[i];
        bool has_any = p->vjp || p->jvp || p->expr || p->decompose;
        if (has_any && has_derivable_input(p)) {
            rules_vjp(k, &pack, p);
            rules_jvp(k, &pack, p);
            rules_second(k, &pack, p);
        }
        if ((p->vjp && p->num_outputs > 1) || (p->jvp && p->num_inputs > 1))
            rules_partial(k, &pack, p);
        if (p->vjp || p->jvp || p->vmap || p->decompose)
            rules_failure(k, &pack, p);
        if (p->num_inputs && (p->vmap || p->expr || p->decompose)) {
            rules_vmap(k, &pack, p);
            rules_nested(k, &pack, p);
        }
    }
    pack_close(&pack);
}
