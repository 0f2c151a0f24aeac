// SPDX-License-Identifier: MIT
// What the passes over the intermediate form share. Each pass is a file.
#ifndef KERNELS_COMPILER_OPTIMISE_H
#define KERNELS_COMPILER_OPTIMISE_H

#include "../ir/flow.h"
#include "../ir/ir.h"

// Passes that can be left out, for finding the one that is wrong.
enum {
    PASS_RETURN = 1,    // one return a function
    PASS_INLINE = 2,    // calls
    PASS_SPLIT = 4,     // local arrays and structs to their members
    PASS_SSA = 8,       // local variables to values
    PASS_VALUES = 16,   // constants, identities, equal values
    PASS_MEMORY = 32,   // loads of what was just stored or loaded; with PASS_VALUES
    PASS_FLOW = 64,     // branches on constants, blocks
    PASS_DEAD = 128,    // dead code
    PASS_PRIVATE = 256, // variables of the module to local ones
    PASS_ALL = 511,
};

// A decoration of an id.
struct decoration {
    struct ir_inst *inst;
    struct decoration *next; // of the same id, or of one with the same bucket
};

// Decorations that matter where values are compared.
enum { IS_PRECISE = 1, IS_RELAXED = 2, IS_DECORATED = 4 }; // IS_DECORATED: in other ways

// Tables by id have `capacity` items; optimiser_grow() makes them larger.
struct optimiser {
    struct ir *ir;
    uint32_t capacity;
    uint32_t *same;                 // the id that replaces it; 0: none
    uint8_t *flags;                 // IS_*
    struct decoration **buckets;    // of decorations, by id
    struct ir_function **functions; // by mark of their heads, from 1
    uint32_t num_functions;
    bool keeps_functions;
    bool has_replaced; // since opt_apply()
    bool delays; // opt_apply() does nothing: operands are what they were, opt_same() says
};

// ir_optimise() by some of the passes.
void ir_optimise_with(struct ir *ir, uint32_t passes);

struct optimiser *optimiser_create(struct ir *ir);
// Makes room for all ids. A pass calls it after it has made ids, before it looks them up.
void optimiser_grow(struct optimiser *o);

// Gives the id's replacement, or the id itself.
static inline uint32_t opt_same(const struct optimiser *o, uint32_t id)
{
    while (id < o->capacity && o->same[id])
        id = o->same[id];
    return id;
}

void opt_replace(struct optimiser *o, uint32_t id, uint32_t with);
// Rewrites the operands of all instructions of a function by the replacements.
void opt_apply(struct optimiser *o, const struct ir_function *function);
// The function whose id it is, or NULL.
static inline struct ir_function *opt_function(const struct optimiser *o, uint32_t id)
{
    const struct ir_inst *head = o->ir->definitions[id];
    return head && head->op == OpFunction ? o->functions[head->mark] : NULL;
}

// The first decoration of an id, and the next one; NULL: there is none.
struct decoration *opt_decoration(const struct optimiser *o, uint32_t id);
struct decoration *opt_next_decoration(struct decoration *decoration, uint32_t id);
// Gives `to` the decorations of `from`.
void opt_copy_decorations(struct optimiser *o, uint32_t from, uint32_t to);

// Puts a block behind another one.
void opt_insert_block(struct ir_block *after, struct ir_block *block);
void opt_remove_block(struct ir *ir, struct ir_block *block);
// In the phis of all blocks that `end` branches to: the predecessor `from` is `to` now.
void opt_rename_pred(struct optimiser *o, const struct ir_inst *end, uint32_t from,
                     uint32_t to);
// Drops the values that come from `pred` out of a block's phis.
void opt_drop_pred(struct ir_block *block, uint32_t pred);
// An instruction without a result, or with a new id where there is a type.
struct ir_inst *opt_make(struct optimiser *o, uint32_t op, uint32_t type, uint32_t count,
                         const uint32_t *operands);

static inline struct ir_inst *opt_definition(const struct optimiser *o, uint32_t id)
{
    return o->ir->definitions[id];
}

// The value of a scalar constant that cannot be specialised, by its bits: false: it is
// none.
bool opt_constant(const struct ir *ir, uint32_t id, uint64_t *bits);

// --- the passes ------------------------------------------------------------------------

// Gives the function one return. True: the function was changed.
bool opt_return(struct optimiser *o, struct ir_function *function);
// Whether the function has one return, outside of selections and loops.
bool opt_has_one_return(const struct ir *ir, const struct ir_function *function);
void opt_inline(struct optimiser *o, bool merges_returns);
void opt_private(struct optimiser *o);
void opt_split(struct optimiser *o, struct ir_function *function);
void opt_ssa(struct optimiser *o, struct ir_function *function);
void opt_values(struct optimiser *o, struct ir_function *function, bool forwards);
// Simplifies the control flow. True: there are fewer paths.
bool opt_flow(struct optimiser *o, struct ir_function *function);
// Drops blocks that no path leads to.
void opt_unreachable(struct optimiser *o, struct ir_function *function);
// Drops functions that no entry point leads to.
void opt_uncalled(struct optimiser *o);
// Types and constants are dropped with_globals only: what is made later may be of them.
void opt_dead(struct optimiser *o, bool with_globals);
// Numbers the ids from 1 on without gaps.
void opt_compact(struct optimiser *o);

// The id of the value that the instruction makes, where it is known without it, or 0. May
// rewrite the instruction to a simpler one.
uint32_t opt_simplify(struct optimiser *o, struct ir_inst *inst);
// The constant that an operation on constants gives, or 0.
uint32_t opt_fold(struct ir *ir, const struct ir_inst *inst);

#endif // KERNELS_COMPILER_OPTIMISE_H
