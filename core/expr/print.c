// SPDX-License-Identifier: MIT
// Prints trees as text that parses back to the same trees. Shared subexpressions become
// definitions, so the text is linear in the number of nodes.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tree.h"

struct printer {
    const struct walk *walk;
    const char *const *input_names;
    uint32_t *definition; // by node: number of its definition + 1; 0: printed in place
    char prefix[16];      // of names of definitions; clashes with no input or attribute
    char *text;
    uint32_t size, capacity;
    tn_status status;
};

static void expr_print_put(struct printer *p, const char *text)
{
    uint32_t size = (uint32_t)strlen(text);
    if (p->status == TN_OK)
        p->status = mem_grow((void **)&p->text, &p->capacity, p->size + size + 1, 1);
    if (p->status != TN_OK)
        return;
    memcpy(p->text + p->size, text, size + 1);
    p->size += size;
}

static void expr_print_put_double(struct printer *p, double value)
{
    char buffer[40];
    if (isnan(value) || isinf(value)) {
        expr_print_put(p, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buffer, sizeof(buffer), "%.*g", digits, value);
        double back = 0;
        if (sscanf(buffer, "%lf", &back) == 1 && back == value)
            break;
    }
    char *comma = strchr(buffer, ','); // the decimal separator of the process's locale
    if (comma)
        *comma = '.';
    if (!strpbrk(buffer, ".e"))
        strcat(buffer, ".0");
    expr_print_put(p, buffer);
}

static void expr_print_put_number(struct printer *p, const struct expr_node *node)
{
    char buffer[32];
    if (node->kind == KIND_FLOAT || node->kind == KIND_COMPLEX) {
        expr_print_put_double(p, bits_to_double(node->bits));
        expr_print_put(p, node->kind == KIND_COMPLEX ? "j" : "");
        return;
    }
    if (node->kind == KIND_BOOL)
        snprintf(buffer, sizeof(buffer), "%s", node->bits ? "true" : "false");
    else if (node->kind == KIND_UNSIGNED)
        snprintf(buffer, sizeof(buffer), "%llu", (unsigned long long)node->bits);
    else
        snprintf(buffer, sizeof(buffer), "%lld", (long long)node->bits);
    expr_print_put(p, buffer);
}

static void put_tree(struct printer *p, const struct expr_node *node, int least,
                     bool named);

static void put_call(struct printer *p, const struct expr_node *node)
{
    expr_print_put(p, node->op == TN_EXPR_CAST ? dtype_name(node->dtype)
                                               : op_table[node->op].text);
    expr_print_put(p, "(");
    for (uint32_t i = 0; i < node->num_args; i++) {
        expr_print_put(p, i ? ", " : "");
        put_tree(p, node->args[i], 0, true);
    }
    expr_print_put(p, ")");
}

static void put_operator(struct printer *p, const struct expr_node *node)
{
    const struct op_info *info = &op_table[node->op];
    int precedence = op_precedence[node->op];
    if (node->num_args == 1) {
        expr_print_put(p, info->text);
        put_tree(p, node->args[0], PREC_UNARY, true);
        return;
    }
    if (precedence == PREC_POWER) {
        put_tree(p, node->args[0], PREC_ATOM, true);
        expr_print_put(p, "**");
        put_tree(p, node->args[1], PREC_UNARY, true);
        return;
    }
    bool chains = precedence != PREC_COMPARE;
    put_tree(p, node->args[0], chains ? precedence : precedence + 1, true);
    expr_print_put(p, " ");
    expr_print_put(p, info->text);
    expr_print_put(p, " ");
    put_tree(p, node->args[1], precedence + 1, true);
}

static bool is_negative(const struct expr_node *node)
{
    if (node->op != TREE_NUMBER || node->kind == KIND_UNSIGNED || node->kind == KIND_BOOL)
        return false;
    return node->bits >> 63 &&
           !(node->kind == KIND_FLOAT && isnan(bits_to_double(node->bits)));
}

// Operators of a precedence below `least` get brackets. With `named`, a node that has a
// definition is printed as the definition's name.
static void put_tree(struct printer *p, const struct expr_node *node, int least, bool named)
{
    uint32_t number = named ? p->definition[walk_position(p->walk, node)] : 0;
    char buffer[40];
    if (number) {
        snprintf(buffer, sizeof(buffer), "%s%u", p->prefix, number - 1);
        expr_print_put(p, buffer);
        return;
    }
    const struct op_info *info = &op_table[node->op];
    if (node->op == TREE_INPUT) {
        expr_print_put(p, p->input_names[node->index]);
    } else if (node->op == TREE_ATTR) {
        expr_print_put(p, node->name);
    } else if (node->op == TN_EXPR_INDEX) {
        expr_print_put(p, "index");
    } else if (info->num_args && !op_precedence[node->op]) {
        put_call(p, node);
    } else {
        int precedence = is_negative(node) ? PREC_UNARY : op_precedence[node->op];
        expr_print_put(p, precedence < least ? "(" : "");
        if (node->op == TREE_NUMBER)
            expr_print_put_number(p, node);
        else
            put_operator(p, node);
        expr_print_put(p, precedence < least ? ")" : "");
    }
}

// Chooses the prefix "t", "tt", ... so that prefix and number are no name in use.
static void choose_prefix(struct printer *p, uint32_t num_inputs)
{
    size_t size = 1;
    for (uint32_t i = 0; i < num_inputs + p->walk->count; i++) {
        const char *name =
            i < num_inputs ? p->input_names[i] : p->walk->nodes[i - num_inputs]->name;
        size_t run = name ? strspn(name, "t") : 0;
        // Only names of t's and then digits can clash: t1, tt2.
        if (run && strspn(name + run, "0123456789") == strlen(name + run) && run >= size)
            size = run + 1;
    }
    if (size >= sizeof(p->prefix)) // a name begins with fifteen t's
        snprintf(p->prefix, sizeof(p->prefix), "shared_");
    else
        memset(p->prefix, 't', size);
}

static void put_definitions(struct printer *p)
{
    uint32_t *uses = mem_zalloc(p->walk->count * sizeof(*uses) + 1);
    p->status = uses ? TN_OK : TN_ERR_MEMORY;
    uint32_t count = 0;
    for (uint32_t i = 0; uses && i < p->walk->count; i++)
        for (uint32_t k = 0; k < p->walk->nodes[i]->num_args; k++)
            uses[walk_position(p->walk, p->walk->nodes[i]->args[k])]++;
    for (uint32_t i = 0; uses && i < p->walk->count; i++) {
        const struct expr_node *node = p->walk->nodes[i];
        if (uses[i] < 2 || node->num_args == 0)
            continue;
        p->definition[i] = ++count;
        put_tree(p, node, 0, true);
        expr_print_put(p, " = ");
        put_tree(p, node, 0, false);
        expr_print_put(p, "; ");
    }
    mem_free(uses);
}

char *tree_print(const struct expr_node *const *outputs, uint32_t num_outputs,
                 const char *const *input_names, uint32_t num_inputs)
{
    struct walk walk;
    struct printer p = {.walk = &walk, .input_names = input_names};
    p.status = walk_init(&walk, outputs, num_outputs);
    if (p.status == TN_OK) {
        p.definition = mem_zalloc(walk.count * sizeof(*p.definition) + 1);
        p.status = p.definition ? TN_OK : TN_ERR_MEMORY;
    }
    if (p.status == TN_OK) {
        choose_prefix(&p, num_inputs);
        put_definitions(&p);
    }
    for (uint32_t i = 0; p.status == TN_OK && i < num_outputs; i++) {
        expr_print_put(&p, i ? ", " : "");
        put_tree(&p, outputs[i], 0, true);
    }
    mem_free(p.definition);
    walk_finish(&walk);
    if (p.status == TN_OK)
        return p.text;
    mem_free(p.text);
    return NULL;
}
