// SPDX-License-Identifier: MIT
// Inputs whose outputs are finite and the same by all definitions.
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
