// SPDX-License-Identifier: MIT
// The order of the passes.
#include "optimise.h"

// Each pass begins with empty scratch memory.
static void optimise_function(struct optimiser *o, struct ir_function *f, uint32_t passes)
{
    if (passes & PASS_FLOW)
        opt_flow(o, f);
    ir_scratch_reset(o->ir);
    if (passes & PASS_SPLIT)
        opt_split(o, f);
    ir_scratch_reset(o->ir);
    if (passes & PASS_SSA)
        opt_ssa(o, f);
    ir_scratch_reset(o->ir);
    if (passes & PASS_VALUES)
        opt_values(o, f, (passes & PASS_MEMORY) != 0);
    ir_scratch_reset(o->ir);
    // Values that were conditions are constants now: what is left has fewer paths.
    if ((passes & PASS_FLOW) && opt_flow(o, f) && (passes & PASS_VALUES)) {
        ir_scratch_reset(o->ir);
        opt_values(o, f, (passes & PASS_MEMORY) != 0);
        ir_scratch_reset(o->ir);
        opt_flow(o, f);
    }
    ir_scratch_reset(o->ir);
}

void ir_optimise_with(struct ir *ir, uint32_t passes)
{
    const struct glsl_source *source = ir->compiler->source;
    struct optimiser *o = optimiser_create(ir);
    o->keeps_functions = source && (source->flags & GLSL_KEEPS_FUNCTIONS) != 0;
    ir->at = NULL;
    if (passes & PASS_DEAD)
        opt_uncalled(o);
    for (struct ir_function *f = ir->functions; f; f = f->next)
        if (f->first) {
            ir_scratch_reset(ir);
            opt_unreachable(o, f);
        }
    if ((passes & PASS_INLINE) && !o->keeps_functions)
        opt_inline(o, (passes & PASS_RETURN) != 0);
    ir_scratch_reset(ir);
    if (passes & PASS_DEAD)
        opt_dead(o, false); // functions that were inlined need no more passes
    ir_scratch_reset(ir);
    if ((passes & PASS_PRIVATE) && !o->keeps_functions)
        opt_private(o);
    ir_scratch_reset(ir);
    for (struct ir_function *f = ir->functions; f; f = f->next)
        if (f->first)
            optimise_function(o, f, passes);
    if (passes & PASS_DEAD) {
        opt_dead(o, true);
        ir_scratch_reset(ir);
        opt_compact(o);
    }
}

void ir_optimise(struct ir *ir)
{
    ir_optimise_with(ir, PASS_ALL);
}
