// SPDX-License-Identifier: MIT
// Rules that build graphs: derivatives and batching, and how rules treat NULL arguments and
// failures of the builder. All run on the CPU; graphs that rules build run on any device.
#include <math.h>
#include "rules.h"

static bool all_finite(const struct sample *s, const struct array *out)
{
    for (uint32_t o = 0; o < s->num_outputs; o++)
        for (int64_t i = 0; i < out[o].count; i++)
            if (!isfinite(array_get(&out[o], i)))
                return false;
    return true;
}

bool rules_fill(struct kit *k, struct pack *pack, struct sample *s,
                struct array out[MAX_OUT])
{
    static const double ranges[][2] = {{0, 0}, {0.1, 0.9}, {1.1, 2}};
    for (size_t i = 0; i < COUNT(ranges); i++) {
        struct sample copy = *s;
        if (i)
            copy.low = ranges[i][0], copy.high = ranges[i][1];
        sample_fill(k, &copy);
        if (!apply_definition(&pack->maker, &copy, out)) {
            double bound = 4 * sample_tolerance(&copy, true);
            if (all_finite(&copy, out) && apply_is_sound(&pack->maker, &copy, out, bound)) {
                *s = copy;
                return true;
            }
            outputs_free(out);
        }
        sample_free(&copy);
    }
    return false;
}

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
        }
        if ((p->vjp && p->num_outputs > 1) || (p->jvp && p->num_inputs > 1))
            rules_partial(k, &pack, p);
        if (p->vjp || p->jvp || p->vmap || p->decompose)
            rules_failure(k, &pack, p);
        if (p->num_inputs && (p->vmap || p->expr || p->decompose))
            rules_vmap(k, &pack, p);
    }
    pack_close(&pack);
}
