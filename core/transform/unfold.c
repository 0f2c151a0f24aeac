// SPDX-License-Identifier: MIT
// Expressions whose derivatives do not fit a program: builds their operations one by one,
// since the derivatives of each operation fit. The planner fuses the operations again.
#include "../base/dtype.h"
#include "../base/shape.h"
#include "flow.h"

// A program has at most 256 instructions, among them conversions and, of complex numbers
// and special functions, several an operation.
enum { MOST_OPERATIONS = 100, FEW_INPUTS = 6, FEW_OPERATIONS = 12 };

static bool is_large(const struct expr *derived)
{
    uint32_t inputs = (uint32_t)__builtin_popcountll(derived->inputs_used);
    return derived->num_inputs > 64 || derived->num_operations > MOST_OPERATIONS ||
           inputs + derived->num_reductions > TN_EXPR_MAX_INPUTS;
}

bool flow_outgrows(const struct node *node,
                   tn_status (*derive)(const struct expr *expr, uint32_t number,
                                       uint64_t given, uint64_t complex_inputs,
                                       const struct expr **out_expr),
                   uint32_t count, uint64_t given, uint64_t complex_inputs)
{
    bool any = false;
    if (node->num_inputs <= FEW_INPUTS && node->expr->num_operations <= FEW_OPERATIONS)
        return false;
    for (uint32_t i = 0; i < count && !any; i++) {
        const struct expr *derived = NULL;
        any = derive(node->expr, i, given, complex_inputs, &derived) == TN_OK && derived &&
              is_large(derived);
    }
    return any;
}

// `index` and reductions count the elements of the whole.
static tn_status transform_unfold_cover(struct flow *flow, const struct node *node,
                                        const struct expr *expr, const tn_array **input)
{
    const tn_type *whole = &node->outputs[0].type;
    tn_array *covered = (tn_array *)*input;
    tn_status status = TN_OK;
    if ((expr->reduces || expr->uses_index) && !shape_equal(&covered->type, whole))
        status = flow_reshape(flow, TN_ROLE_BROADCAST_TO, covered, whole, &covered);
    *input = covered;
    return status;
}

static tn_status apply_step(struct flow *flow, const struct node *node,
                            const struct expr_step *step, tn_array *const *results,
                            tn_array **out)
{
    const tn_array *inputs[3] = {NULL};
    struct expr_input types[3];
    tn_dtype dtype;
    const struct expr *expr = step->expr;
    for (uint32_t k = 0; k < step->num_inputs; k++) {
        int32_t from = step->from[k];
        inputs[k] = from < 0 ? node->inputs[-1 - from] : results[from];
        types[k] = array_promoted(inputs[k]);
    }
    tn_status status = transform_unfold_cover(flow, node, expr, &inputs[0]);
    if (status == TN_OK)
        status = expr_infer(expr, types, &dtype);
    if (status != TN_OK)
        return status;
    bool is_half = tn_dtype_computed(dtype) != dtype; // half floats are computed in f32
    bool has_attrs = expr->num_attrs > 0 || expr->reduces;
    dtype = tn_dtype_computed(dtype);
    return graph_apply_expr(flow->scope, expr, inputs, step->num_inputs,
                            has_attrs ? node->table : NULL, has_attrs ? node->attrs : NULL,
                            is_half ? &dtype : NULL, out);
}

tn_status flow_unfold(struct flow *flow, const struct node *node, tn_array **outputs)
{
    struct expr_step *steps = NULL;
    int32_t from[TN_EXPR_MAX_OUTPUTS];
    uint32_t count = 0;
    tn_status status = expr_unfold(node->expr, &steps, &count, from);
    tn_array **results = mem_alloc((count + 1) * sizeof(*results));
    if (!results)
        status = TN_ERR_MEMORY;
    for (uint32_t i = 0; i < count && status == TN_OK; i++)
        status = apply_step(flow, node, &steps[i], results, &results[i]);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        status = flow_fit(flow, from[i] < 0 ? node->inputs[-1 - from[i]] : results[from[i]],
                          &node->outputs[i].type, &outputs[i]);
    mem_free(results);
    mem_free(steps);
    return status;
}
