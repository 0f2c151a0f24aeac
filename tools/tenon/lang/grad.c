// SPDX-License-Identifier: MIT
// grad(y, x, ...): the gradient of y, or of the sum of its elements, by each of the others.
#include "evaluator.h"

#include <stdlib.h>
#include <string.h>

int lang_gradients(tn_scope *scope, tn_array *result, tn_array *const *wrt, size_t count,
                   tn_array **out, const char **needs)
{
    const tn_type *type = tn_array_type(result);
    *needs = NULL;
    if (tn_is_complex(type->dtype))
        *needs = "a real result, take real(), imag() or abs() of it";
    else if (!(TN_DTYPE_BIT(type->dtype) & TN_FLOAT_DTYPES))
        *needs = "a floating-point result";
    if (*needs)
        return EXIT_OOPS;
    if (type->rank)
        result = tn_op(scope, "base.sum", TN_IN(result), TN_NO_ATTRS);
    return tn_vjp(scope, &result, NULL, 1, wrt, count, out) ? EXIT_OOPS : 0;
}

// The arrays of all arguments.
static int list_arguments(struct evaluator *e, const struct lang_node *node, tn_array **out)
{
    for (uint32_t i = 0; i < node->count; i++) {
        const struct lang_node *argument = child_node(e, node, i);
        if (argument->kind == LANG_KEYWORD)
            return node_oops(e, argument, "grad has no argument with a name");
        int failed = value_array(e, e->tree->children[node->first + i], &out[i]);
        if (failed)
            return failed;
    }
    return 0;
}

static int lang_grad_differentiate(struct evaluator *e, const struct lang_node *node,
                                   tn_array **all, struct lang_value *value)
{
    uint32_t count = node->count - 1;
    const char *needs;
    tn_array **outputs = realloc(e->outputs, (e->num_outputs + count) * sizeof(*outputs));
    if (!outputs)
        return oops_memory();
    e->outputs = outputs;
    outputs += e->num_outputs;
    memset(outputs, 0, count * sizeof(*outputs));
    if (lang_gradients(e->scope, all[0], all + 1, count, outputs, &needs))
        return needs ? node_oops(e, node, "grad needs %s; this one is %s", needs,
                                 dtype_name(tn_array_type(all[0])->dtype))
                     : check_scope(e, node);
    if (count == 1) {
        value->array = outputs[0];
        return 0;
    }
    value->first_output = e->num_outputs;
    value->num_outputs = count;
    e->num_outputs += count;
    return 0;
}

int eval_grad(struct evaluator *e, uint32_t index)
{
    const struct lang_node *node = &e->tree->nodes[index];
    if (node->count < 2)
        return node_oops(e, node,
                         "grad(y, x, ...) takes a result and what it depends on, "
                         "got %u of these",
                         node->count);
    tn_array **all = calloc(node->count, sizeof(*all));
    int failed = all ? list_arguments(e, node, all) : oops_memory();
    if (!failed)
        failed = lang_grad_differentiate(e, node, all, &e->values[index]);
    free(all);
    return failed;
}
