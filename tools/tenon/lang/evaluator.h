// SPDX-License-Identifier: MIT
// Shared by the files that evaluate the language.
#ifndef TOOLS_TENON_LANG_EVALUATOR_H
#define TOOLS_TENON_LANG_EVALUATOR_H

#include <tenon/control.h>
#include "base/args.h"
#include "lang.h"

// The result of a node. A number becomes an array at its first use as an array, so that it
// can be an attribute or an index too.
struct lang_value {
    bool is_number;
    uint8_t kind;    // of a number: LANG_INT, LANG_UINT, LANG_FLOAT, LANG_BOOL
    int64_t i;       // INT, BOOL; of UINT the bits
    double f;        // any number
    tn_array *array; // NULL: not an array (yet)
    // Outputs of an operator with several: a range of evaluator.outputs.
    uint32_t first_output, num_outputs;
};

struct evaluator {
    const struct lang_tree *tree;
    tn_scope *scope;
    tn_runtime *runtime;
    struct lang_names *names;
    struct lang_value *values; // by node
    tn_array **outputs;        // of operators with several outputs
    uint32_t num_outputs;
};

static inline const char *node_text(const struct evaluator *e, const struct lang_node *node)
{
    return e->tree->texts + node->text;
}

#define node_oops(e, node, ...) lang_oops((e)->tree->source, (node)->at, __VA_ARGS__)

const struct lang_value *child_value(const struct evaluator *e,
                                     const struct lang_node *node, uint32_t i);
const struct lang_node *child_node(const struct evaluator *e, const struct lang_node *node,
                                   uint32_t i);
int value_array(struct evaluator *e, uint32_t index, tn_array **out_array);
// Fails with the scope's failure, shown at the node, if the scope has one.
int check_scope(struct evaluator *e, const struct lang_node *node);

// literal.c: the array of a LIST node.
int literal_array(struct evaluator *e, uint32_t index, tn_array **out_array);
// The numbers of a LIST or TUPLE node, as an attribute. `values` has room for one of 8
// bytes for each child; `lists` holds what the attribute points to.
struct attr_lists {
    tn_int_list ints;
    tn_float_list floats;
};
int literal_list(struct evaluator *e, uint32_t index, void *values,
                 struct attr_lists *lists, tn_attr *out);
// body.c: the graph of a text "x -> x / 2" for inputs of these types.
int eval_body(struct evaluator *e, const struct lang_node *node, const char *text,
              const tn_type *types, uint32_t num_types, tn_captures *captures,
              const tn_graph **out_graph);
// apply.c, grad.c, index.c
int eval_apply(struct evaluator *e, uint32_t index);
int eval_grad(struct evaluator *e, uint32_t index);
int eval_index(struct evaluator *e, uint32_t index);
int eval_property(struct evaluator *e, uint32_t index);

#endif // TOOLS_TENON_LANG_EVALUATOR_H
