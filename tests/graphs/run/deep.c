// SPDX-License-Identifier: MIT
// Depth: a chain of a million nodes builds, differentiates, evaluates and frees; under
// sanitizers an eighth of it, still more frames than a stack has room for.
#include "../../sanitized.h"
#include "../support/common.h"

#define DEPTH ROUNDS(1000000)

static tn_array *chain(tn_scope *s, tn_array *x, int length)
{
    tn_array *step = ramp(s, 1, 4, 1e-6f, 0);
    for (int i = 0; i < length; i++)
        x = bin(s, "add", x, step);
    return x;
}

TestSuite(deep, .init = setup, .fini = teardown);

Test(deep, a_chain_of_a_million_nodes_evaluates)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *y = chain(s, ramp(s, 1, 4, 0, 0), DEPTH);
    float out[4];
    must(s, tn_read(s, y, out, sizeof(out)));
    // A million additions of 1e-6 in f32: the rounding errors add up to about one percent.
    const float sum = DEPTH * 1e-6f;
    for (int i = 0; i < 4; i++)
        cr_assert(fabsf(out[i] - sum) < 0.02f * sum);
    tn_scope_close(s);
}

Test(deep, a_chain_of_a_million_nodes_differentiates)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 1, 4, 0, 1);
    tn_array *y = un(s, "sum", chain(s, x, DEPTH)), *gradient;
    must(s, tn_vjp(s, &y, NULL, 1, &x, 1, &gradient));
    float out[4];
    must(s, tn_read(s, gradient, out, sizeof(out)));
    for (int i = 0; i < 4; i++)
        cr_assert(out[i] == 1);
    tn_scope_close(s);
}

Test(deep, a_long_chain_is_freed_without_being_evaluated)
{
    tn_scope *s = tn_scope_open(runtime);
    cr_assert(ne(ptr, chain(s, ramp(s, 1, 4, 0, 0), DEPTH), NULL));
    tn_scope_close(s);
}
