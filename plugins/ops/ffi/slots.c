// SPDX-License-Identifier: MIT
// Rules of a pack's functions: a table of small functions, each with its number in it. So a
// pack needs no memory that is written and executed, and leaves none behind.
#include "gradient.h"
#include "rules.h"

static struct function *const *slots; // constant once filled

#define SLOT(digits)                                                                       \
    static tn_status launch_##digits(const tn_cpu_call *call)                              \
    {                                                                                      \
        return function_launch(slots[0x##digits], call);                                   \
    }                                                                                      \
    static tn_status infer_##digits(const tn_infer *infer, tn_type *types)                 \
    {                                                                                      \
        return function_infer(slots[0x##digits], infer, types);                            \
    }                                                                                      \
    static uint64_t scratch_##digits(const tn_kernel_query *query)                         \
    {                                                                                      \
        return function_scratch(slots[0x##digits], query);                                 \
    }                                                                                      \
    static tn_status vjp_##digits(const tn_build *build, const tn_rule *rule,              \
                                  tn_array *const *cotangents, const uint64_t *wanted,     \
                                  tn_array **gradients)                                    \
    {                                                                                      \
        return gradients_build(slots[0x##digits], build, rule, cotangents, wanted,         \
                               gradients);                                                 \
    }                                                                                      \
    static tn_status vmap_##digits(const tn_build *build, const tn_rule *rule,             \
                                   const int32_t *axes, int64_t size, tn_array **outputs,  \
                                   int32_t *out_axes)                                      \
    {                                                                                      \
        (void)size;                                                                        \
        return function_vmap(slots[0x##digits], build, rule, axes, outputs, out_axes);     \
    }
#define RULES(digits)                                                                      \
    {launch_##digits, infer_##digits, scratch_##digits, vjp_##digits, vmap_##digits},

// All numbers of two hexadecimal digits: MAX_FUNCTIONS of them.
// clang-format off
#define OF_DIGIT(M, high)                                  \
    M(high##0) M(high##1) M(high##2) M(high##3) M(high##4) \
    M(high##5) M(high##6) M(high##7) M(high##8) M(high##9) \
    M(high##a) M(high##b) M(high##c) M(high##d) M(high##e) M(high##f)
#define ALL(M)                                                              \
    OF_DIGIT(M, 0) OF_DIGIT(M, 1) OF_DIGIT(M, 2) OF_DIGIT(M, 3) OF_DIGIT(M, 4) \
    OF_DIGIT(M, 5) OF_DIGIT(M, 6) OF_DIGIT(M, 7) OF_DIGIT(M, 8) OF_DIGIT(M, 9) \
    OF_DIGIT(M, a) OF_DIGIT(M, b) OF_DIGIT(M, c) OF_DIGIT(M, d) OF_DIGIT(M, e) \
    OF_DIGIT(M, f)
// clang-format on

ALL(SLOT)
static const struct rules table[] = {ALL(RULES)};
_Static_assert(sizeof(table) / sizeof(table[0]) == MAX_FUNCTIONS, "one a function");

const struct rules *slot_rules(uint32_t number)
{
    return &table[number];
}

void slots_fill(struct function *const *functions)
{
    slots = functions;
}
