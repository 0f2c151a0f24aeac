// SPDX-License-Identifier: MIT
// Derivatives of whole expressions, and copies with other leaves. Nodes are transformed in
// topological order, so there is no recursion and shared subexpressions are derived once.
// Results are cached in the expression's set.
#include <stdio.h>
#include <string.h>
#include "../attr/attrs.h"
#include "tree.h"

typedef const struct expr_node *subtree;

// The cached result of a derivative that is zero everywhere.
static const struct expr zero_everywhere;

struct derivation {
    struct tree tree;
    const struct expr *expr;
    struct walk walk;
    subtree *derived; // by node: its tangent (NULL: zero), or its copy with other leaves
    bool *is_complex; // by node, with tree.has_complex
};

// The lookup key of transformation `what` (a number for each kind) with parameters `a` and
// `b`. Addresses identify expressions, because these are interned and live as long as their
// set.
static struct hash derivation_key(const struct expr *expr, uint64_t what, uint64_t a,
                                  uint64_t b)
{
    struct hash h = hash_u64(hash_start(4), (uint64_t)(uintptr_t)expr);
    return hash_u64(hash_u64(hash_u64(h, what), a), b);
}

static bool find_derived(struct expr_set *set, struct hash key,
                         const struct expr **out_expr)
{
    const struct expr *known = lookup_get(&set->derived, key);
    if (known)
        *out_expr = known == &zero_everywhere ? NULL : known;
    return known != NULL;
}

static tn_status store_derived(struct expr_set *set, struct hash key,
                               const struct expr *expr)
{
    pthread_mutex_lock(&set->lock);
    tn_status status =
        lookup_put(&set->derived, key, (void *)(expr ? expr : &zero_everywhere));
    pthread_mutex_unlock(&set->lock);
    return status;
}

static tn_status expr_derivation_init(struct derivation *d, struct expr_set *set,
                                      const struct expr *expr)
{
    *d = (struct derivation){.tree = {.set = set}, .expr = expr};
    d->tree.status = walk_init(&d->walk, expr->outputs, expr->num_outputs);
    if (d->tree.status == TN_OK) {
        d->derived = mem_zalloc(d->walk.count * sizeof(*d->derived) + 1);
        d->tree.status = d->derived ? TN_OK : TN_ERR_MEMORY;
    }
    return d->tree.status;
}

// Finds which nodes are complex when these inputs are (bit i: input i).
static tn_status find_complex(struct derivation *d, uint64_t inputs)
{
    d->is_complex = mem_zalloc(d->walk.count * sizeof(*d->is_complex) + 1);
    if (!d->is_complex)
        return TN_ERR_MEMORY;
    d->tree.has_complex = walk_complex(&d->walk, inputs, d->is_complex);
    return TN_OK;
}

// Ends a derivation: interns the expression `root` of inputs `derivation_names` and caches
// the result under `key`. A NULL root is zero everywhere.
static tn_status derivation_end(struct derivation *d, subtree root, struct hash key,
                                const char *const *names, uint32_t num_names,
                                const struct expr **out_expr)
{
    const struct expr *expr = NULL;
    if (d->tree.status == TN_OK && root)
        expr = tree_expr(&d->tree, &root, 1, names, num_names);
    mem_free(d->derived);
    mem_free(d->is_complex);
    walk_finish(&d->walk);
    if (d->tree.status == TN_OK)
        d->tree.status = store_derived(d->tree.set, key, expr);
    if (d->tree.status == TN_OK)
        *out_expr = expr;
    else if (d->tree.status == TN_ERR_ARGUMENT)
        fail_prefix("derivative of '%.80s': ", d->expr->text);
    return d->tree.status;
}

// --- names of cotangents and tangents --------------------------------------------------

struct derivation_names {
    const char **list;
    char *texts;
    uint32_t count;
};

static bool is_used(const struct expr *expr, const char *prefix)
{
    size_t size = strlen(prefix);
    bool used = false;
    for (uint32_t i = 0; i < expr->num_inputs + expr->num_attrs; i++) {
        const char *name = i < expr->num_inputs ? expr->input_names[i]
                                                : expr->attr_names[i - expr->num_inputs];
        used |= strncmp(name, prefix, size) == 0;
    }
    return used;
}

// The names of the expression's inputs and then `count` names "ct0", "ct1", ...; "cct0",
// ... where a name begins with "ct" already, as in a second derivative.
static tn_status names_init(struct derivation_names *names, const struct expr *expr,
                            const char *prefix, uint32_t count)
{
    char unique[256];
    snprintf(unique, sizeof(unique), "%s", prefix);
    while (is_used(expr, unique) && strlen(unique) < 200) {
        memmove(unique + 1, unique, strlen(unique) + 1);
        unique[0] = prefix[0];
    }
    size_t size = strlen(unique) + 12;
    names->count = expr->num_inputs + count;
    names->list = mem_alloc((names->count + 1) * sizeof(*names->list));
    names->texts = mem_alloc(count * size + 1);
    if (!names->list || !names->texts)
        return TN_ERR_MEMORY;
    memcpy(names->list, expr->input_names, expr->num_inputs * sizeof(*names->list));
    for (uint32_t i = 0; i < count; i++) {
        char *text = names->texts + i * size;
        snprintf(text, size, "%s%u", unique, i);
        names->list[expr->num_inputs + i] = text;
    }
    return TN_OK;
}

static void names_finish(struct derivation_names *names)
{
    mem_free(names->list);
    mem_free(names->texts);
}

// --- tangents --------------------------------------------------------------------------

// The tangent of an operation that is no reduction, from those of its arguments.
static subtree derivation_tangent_of(struct derivation *d, subtree node)
{
    struct tree *t = &d->tree;
    subtree tangent = NULL, tangents[3] = {NULL};
    for (uint32_t k = 0; k < node->num_args; k++)
        tangents[k] = d->derived[walk_position(&d->walk, node->args[k])];
    if (node->op == TN_EXPR_SELECT && tangents[1] && tangents[2])
        return tree_op(t, TN_EXPR_SELECT, node->args[0], tangents[1], tangents[2]);
    for (uint32_t k = 0; k < node->num_args; k++)
        tangent = derive_add(t, tangent, derive_chain(t, node, k, tangents[k]));
    return tangent;
}

// Computes the tangents of all nodes from the tangents of the inputs (NULL: zero).
static void push_forward(struct derivation *d, const subtree *seeds)
{
    struct tree *t = &d->tree;
    for (uint32_t i = 0; i < d->walk.count && t->status == TN_OK; i++) {
        subtree node = d->walk.nodes[i];
        if (node->op == TREE_INPUT)
            d->derived[i] = node->index < 64 ? seeds[node->index] : NULL;
        else if (op_reduces(node->op))
            d->derived[i] =
                derive_reduced(t, node, d->derived[walk_position(&d->walk, node->args[0])]);
        else
            d->derived[i] = derivation_tangent_of(d, node);
    }
}

// Whether, after a push, a tangent reaches an operation that is not holomorphic.
static bool leaves_complex(const struct derivation *d)
{
    for (uint32_t i = 0; i < d->walk.count; i++) {
        subtree node = d->walk.nodes[i];
        bool to_real = node->op == TN_EXPR_CAST && dtype_is_float(node->dtype);
        bool is_part = node->op == TN_EXPR_REAL || node->op == TN_EXPR_IMAG ||
                       node->op == TN_EXPR_CONJ || node->op == TN_EXPR_ABS ||
                       node->op == TN_EXPR_SIGN;
        if ((to_real || is_part) && d->derived[walk_position(&d->walk, node->args[0])])
            return true;
    }
    return false;
}

// Computes the tangents of all nodes when `from`, an input or a reduction, has tangent
// `seed`, and all other inputs and reductions have none: what depends on `from` at the same
// element.
static void push_at_element(struct derivation *d, subtree from, subtree seed)
{
    for (uint32_t i = 0; i < d->walk.count && d->tree.status == TN_OK; i++) {
        subtree node = d->walk.nodes[i];
        d->derived[i] = node == from ? seed
                        : node->op == TREE_INPUT || op_reduces(node->op)
                            ? NULL
                            : derivation_tangent_of(d, node);
    }
}
static subtree tangent_of_output(const struct derivation *d, uint32_t output)
{
    return d->derived[walk_position(&d->walk, d->expr->outputs[output])];
}

tn_status expr_derive(const struct expr *expr, uint32_t output, uint32_t input,
                      const struct expr **out_expr)
{
    struct expr_set *set = expr_set_of(expr);
    struct hash key = derivation_key(expr, 0, output, input);
    if (find_derived(set, key, out_expr))
        return TN_OK;
    struct derivation d;
    subtree root = NULL;
    if (expr_derivation_init(&d, set, expr) == TN_OK) {
        subtree seeds[64] = {NULL};
        seeds[input & 63] = tree_int(&d.tree, 1);
        push_forward(&d, seeds);
        root = tangent_of_output(&d, output);
    }
    return derivation_end(&d, root, key, expr->input_names, expr->num_inputs, out_expr);
}

tn_status expr_jvp(const struct expr *expr, uint32_t output, uint64_t tangents_given,
                   uint64_t complex_inputs, const struct expr **out_expr)
{
    struct expr_set *set = expr_set_of(expr);
    struct hash key = derivation_key(expr, 1 | complex_inputs << 8, output, tangents_given);
    if (find_derived(set, key, out_expr))
        return TN_OK;
    struct derivation d;
    struct derivation_names names = {0};
    subtree root = NULL;
    if (expr_derivation_init(&d, set, expr) == TN_OK)
        d.tree.status = names_init(&names, expr, "t", expr->num_inputs);
    if (d.tree.status == TN_OK && (complex_inputs || expr->makes_complex))
        d.tree.status = find_complex(&d, complex_inputs);
    if (d.tree.status == TN_OK) {
        subtree seeds[64] = {NULL};
        for (uint32_t i = 0; i < expr->num_inputs && i < 64; i++)
            if (tangents_given >> i & 1)
                seeds[i] = tree_input(&d.tree, expr->num_inputs + i);
        push_forward(&d, seeds);
        root = tangent_of_output(&d, output);
    }
    tn_status status = derivation_end(&d, root, key, names.list, names.count, out_expr);
    names_finish(&names);
    return status;
}

// --- cotangents ------------------------------------------------------------------------

// At one element, an output is a function of the inputs and the row's reductions there, and
// so is a reduction's argument. Each such dependence is one number, so that the
// vector-Jacobian product equals the Jacobian-vector product with the cotangent as the
// tangent. Forward mode is also safer: a selection takes one of two tangents. In reverse
// mode both branches would get a cotangent, one of them 0, and 0 times the infinite slope
// of the branch not taken is NaN.
//
// With complex numbers (PyTorch's convention: the cotangent g of w is dL / dRe(w) + i dL /
// dIm(w), so that dL = Re(conj(g) dw)), a holomorphic dependence is a factor f, and the
// cotangent of `from` is g conj(f): the conjugate of what a push of conj(g) gives. Another
// dependence is pushed twice, for the real and the imaginary direction of `from`. A real
// `from` takes the real part.
static subtree pull_back(struct derivation *d, subtree from, subtree g, subtree target)
{
    struct tree *t = &d->tree;
    uint32_t at = walk_position(&d->walk, target);
    if (!t->has_complex) {
        push_at_element(d, from, g);
        return d->derived[at];
    }
    bool is_complex = d->is_complex[walk_position(&d->walk, from)];
    subtree conjugate = derive_part(t, TN_EXPR_CONJ, g), im = NULL;
    push_at_element(d, from, conjugate);
    if (!leaves_complex(d))
        return derive_part(t, is_complex ? TN_EXPR_CONJ : TN_EXPR_REAL, d->derived[at]);
    push_at_element(d, from, tree_int(t, 1));
    subtree re = derive_part(t, TN_EXPR_REAL, derive_product(t, conjugate, d->derived[at]));
    if (is_complex) {
        push_at_element(d, from, tree_imaginary(t, 1));
        im = derive_part(t, TN_EXPR_REAL, derive_product(t, conjugate, d->derived[at]));
    }
    return im ? tree_op(t, TN_EXPR_COMPLEX, re ? re : tree_int(t, 0), im, NULL) : re;
}

// The sum over outputs and reduced arguments of what each gives to `from` at the same
// element. `given`: the cotangent of each reduction's argument, by node; NULL: none, or not
// known yet.
static subtree cotangent_at_element(struct derivation *d, subtree from,
                                    uint64_t cotangents_given, const subtree *given)
{
    subtree sum = NULL;
    for (uint32_t i = 0; i < d->expr->num_outputs; i++) {
        if (!(cotangents_given >> i & 1))
            continue;
        sum = derive_add(&d->tree, sum,
                         pull_back(d, from, tree_input(&d->tree, d->expr->num_inputs + i),
                                   d->expr->outputs[i]));
    }
    for (uint32_t i = 0; i < d->walk.count; i++) {
        if (!given[i])
            continue;
        sum = derive_add(&d->tree, sum,
                         pull_back(d, from, given[i], d->walk.nodes[i]->args[0]));
    }
    return sum;
}

// Computes the cotangents of reductions in reverse order, as each needs those behind it.
static subtree cotangent_of_input(struct derivation *d, uint32_t input,
                                  uint64_t cotangents_given)
{
    subtree result = NULL, *given = mem_zalloc(d->walk.count * sizeof(*given) + 1);
    if (!given) {
        d->tree.status = TN_ERR_MEMORY;
        return NULL;
    }
    for (uint32_t left = d->walk.count; left > 0; left--) {
        uint32_t i = left - 1;
        subtree node = d->walk.nodes[i];
        if (op_reduces(node->op))
            given[i] = derive_spread(
                &d->tree, node, cotangent_at_element(d, node, cotangents_given, given));
    }
    // Several nodes may be the input: the permanent set may have got an equal node after
    // some of the trees were made, and later trees refer to that one.
    for (uint32_t i = 0; i < d->walk.count; i++)
        if (d->walk.nodes[i]->op == TREE_INPUT && d->walk.nodes[i]->index == input)
            result = derive_add(
                &d->tree, result,
                cotangent_at_element(d, d->walk.nodes[i], cotangents_given, given));
    mem_free(given);
    return result;
}

tn_status expr_vjp(const struct expr *expr, uint32_t input, uint64_t cotangents_given,
                   uint64_t complex_inputs, const struct expr **out_expr)
{
    struct expr_set *set = expr_set_of(expr);
    struct hash key =
        derivation_key(expr, 2 | complex_inputs << 8, input, cotangents_given);
    if (find_derived(set, key, out_expr))
        return TN_OK;
    struct derivation d;
    struct derivation_names names = {0};
    subtree root = NULL;
    if (expr_derivation_init(&d, set, expr) == TN_OK)
        d.tree.status = names_init(&names, expr, "ct", expr->num_outputs);
    if (d.tree.status == TN_OK && (complex_inputs || expr->makes_complex))
        d.tree.status = find_complex(&d, complex_inputs);
    if (d.tree.status == TN_OK)
        root = cotangent_of_input(&d, input, cotangents_given);
    tn_status status = derivation_end(&d, root, key, names.list, names.count, out_expr);
    names_finish(&names);
    return status;
}

// --- substitution of leaves ------------------------------------------------------------

// A substitution of the leaves of an expression.
struct substitution {
    const uint32_t *number_of;  // new number by old number of an input; NULL: unchanged
    const tn_attr_table *attrs; // new kinds of attributes; NULL: unchanged
    const char *const *names;   // of the new inputs
    uint32_t num_inputs;
    int64_t period;     // `index` becomes index % period; 0: unchanged
    int64_t row, inner; // `index` as in expr_row_last; 0: unchanged
};

// The number in the order of axes outer, row, inner of the element with number `index` in
// the order outer, inner, row.
static subtree turned_index(struct tree *t, subtree index, int64_t row, int64_t inner)
{
    subtree rows = tree_int(t, row), width = tree_int(t, inner);
    subtree others = tree_op(t, TN_EXPR_FLOOR_DIV, index, rows, NULL);
    subtree outer = tree_op(t, TN_EXPR_FLOOR_DIV, others, width, NULL);
    subtree line = tree_op(t, TN_EXPR_ADD, tree_op(t, TN_EXPR_MUL, outer, rows, NULL),
                           tree_op(t, TN_EXPR_MOD, index, rows, NULL), NULL);
    return tree_op(t, TN_EXPR_ADD, tree_op(t, TN_EXPR_MUL, line, width, NULL),
                   tree_op(t, TN_EXPR_MOD, others, width, NULL), NULL);
}

static subtree substitute_leaf(struct tree *t, subtree node, const struct substitution *to)
{
    if (node->op == TN_EXPR_INDEX && to->row)
        return turned_index(t, node, to->row, to->inner);
    if (node->op == TREE_INPUT && to->number_of)
        return tree_input(t, to->number_of[node->index]);
    if (node->op == TN_EXPR_INDEX && to->period)
        return tree_op(t, TN_EXPR_MOD, node, tree_int(t, to->period), NULL);
    if (node->op != TREE_ATTR || !to->attrs)
        return node;
    int index = attrs_field_index(to->attrs, node->name);
    if (index < 0)
        return node;
    bool is_float = attrs_field(to->attrs, (uint32_t)index)->kind == TN_ATTR_F64;
    return tree_attr(t, node->name, is_float ? KIND_FLOAT : KIND_SIGNED);
}

// The same operation on the derived arguments.
static subtree derivation_rebuilt(struct derivation *d, subtree node)
{
    subtree args[3] = {NULL};
    for (uint32_t k = 0; k < node->num_args; k++)
        args[k] = d->derived[walk_position(&d->walk, node->args[k])];
    return node->op == TN_EXPR_CAST
               ? tree_cast(&d->tree, node->dtype, args[0])
               : tree_op(&d->tree, node->op, args[0], args[1], args[2]);
}

static tn_status derivation_substitute(struct expr_set *set, const struct expr *expr,
                                       struct hash key, const struct substitution *to,
                                       const struct expr **out_expr)
{
    struct derivation d;
    subtree outputs[TN_EXPR_MAX_OUTPUTS];
    const struct expr *made = NULL;
    if (expr_derivation_init(&d, set, expr) == TN_OK) {
        struct tree *t = &d.tree;
        for (uint32_t i = 0; i < d.walk.count; i++) {
            subtree node = d.walk.nodes[i];
            d.derived[i] = node->num_args ? derivation_rebuilt(&d, node)
                                          : substitute_leaf(t, node, to);
        }
        for (uint32_t i = 0; i < expr->num_outputs; i++)
            outputs[i] = tangent_of_output(&d, i);
        made = tree_expr(t, outputs, expr->num_outputs, to->names, to->num_inputs);
    }
    mem_free(d.derived);
    walk_finish(&d.walk);
    if (d.tree.status == TN_OK)
        d.tree.status = store_derived(set, key, made);
    if (d.tree.status == TN_OK)
        *out_expr = made;
    return d.tree.status;
}

tn_status expr_prune(const struct expr *expr, const struct expr **out_expr, uint32_t *kept)
{
    struct expr_set *set = expr_set_of(expr);
    uint32_t count = 0, number_of[64] = {0};
    const char *names[64];
    for (uint32_t i = 0; i < expr->num_inputs && i < 64; i++)
        if (expr->inputs_used >> i & 1) {
            number_of[i] = count;
            names[count] = expr->input_names[i];
            kept[count++] = i;
        }
    struct hash key = derivation_key(expr, 3, 0, 0);
    if (find_derived(set, key, out_expr))
        return TN_OK;
    const struct substitution to = {
        .number_of = number_of, .names = names, .num_inputs = count};
    return derivation_substitute(set, expr, key, &to, out_expr);
}

tn_status expr_bind(const struct expr *expr, const tn_attr_table *attrs,
                    const struct expr **out_expr)
{
    struct expr_set *set = expr_set_of(expr);
    uint64_t floats = 0;
    for (uint32_t i = 0; i < expr->num_attrs && i < 64; i++) {
        int index = attrs_field_index(attrs, expr->attr_names[i]);
        if (index >= 0 && attrs_field(attrs, (uint32_t)index)->kind == TN_ATTR_F64)
            floats |= UINT64_C(1) << i;
    }
    struct hash key = derivation_key(expr, 4, floats, expr->num_attrs);
    if (find_derived(set, key, out_expr))
        return TN_OK;
    const struct substitution to = {
        .attrs = attrs, .names = expr->input_names, .num_inputs = expr->num_inputs};
    return derivation_substitute(set, expr, key, &to, out_expr);
}

tn_status expr_repeat(struct expr_set *set, const struct expr *expr, int64_t count,
                      const struct expr **out_expr)
{
    if (expr_set_of(expr)->permanent)
        set = expr_set_of(expr);
    *out_expr = expr;
    if (!expr->uses_index || count == 0)
        return TN_OK;
    struct hash key = derivation_key(expr, 5, (uint64_t)count, 0);
    if (find_derived(set, key, out_expr))
        return TN_OK;
    const struct substitution to = {
        .names = expr->input_names, .num_inputs = expr->num_inputs, .period = count};
    return derivation_substitute(set, expr, key, &to, out_expr);
}

tn_status expr_row_last(const struct expr *expr, const tn_type *type, int32_t axis,
                        const struct expr **out_expr)
{
    struct expr_set *set = expr_set_of(expr);
    int64_t row = type->extent[axis], inner = 1;
    for (int32_t i = axis + 1; i < type->rank; i++)
        inner *= type->extent[i];
    *out_expr = expr;
    if (!expr->uses_index || inner == 1 || row == 0 || inner == 0)
        return TN_OK;
    struct hash key = derivation_key(expr, 6, (uint64_t)row, (uint64_t)inner);
    if (find_derived(set, key, out_expr))
        return TN_OK;
    const struct substitution to = {.names = expr->input_names,
                                    .num_inputs = expr->num_inputs,
                                    .row = row,
                                    .inner = inner};
    return derivation_substitute(set, expr, key, &to, out_expr);
}

// --- parts between reductions ----------------------------------------------------------

tn_status expr_count_parts(const struct expr *expr, int32_t reductions[EXPR_MAX_REDUCTIONS],
                           uint32_t *out_reductions)
{
    struct walk walk;
    uint32_t count = 0;
    tn_status status = walk_init(&walk, expr->outputs, expr->num_outputs);
    for (uint32_t i = 0; i < walk.count && status == TN_OK; i++) {
        int op = walk.nodes[i]->op;
        if (!op_reduces(op))
            continue;
        if (count == EXPR_MAX_REDUCTIONS)
            status = fail(TN_ERR_UNSUPPORTED,
                          "expression '%.80s' has more than %d reductions: split it into "
                          "several",
                          expr->text, EXPR_MAX_REDUCTIONS);
        else
            reductions[count++] = op == TREE_MEAN ? EXPR_MEAN : op;
    }
    walk_finish(&walk);
    *out_reductions = count;
    return status;
}

// Rebuilds the trees with the first `part` reductions as inputs. Gives the outputs of the
// part.
static uint32_t rebuild_part(struct derivation *d, uint32_t part, subtree *outputs)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < d->walk.count && d->tree.status == TN_OK; i++) {
        subtree node = d->walk.nodes[i];
        if (op_reduces(node->op) && found == part) {
            outputs[0] = d->derived[walk_position(&d->walk, node->args[0])];
            return 1;
        }
        d->derived[i] = op_reduces(node->op)
                            ? tree_input(&d->tree, d->expr->num_inputs + found++)
                        : node->num_args ? derivation_rebuilt(d, node)
                                         : node;
    }
    for (uint32_t i = 0; i < d->expr->num_outputs; i++)
        outputs[i] = tangent_of_output(d, i);
    return d->expr->num_outputs;
}

tn_status expr_part(const struct expr *expr, uint32_t part, const struct expr **out_expr)
{
    struct expr_set *set = expr_set_of(expr);
    struct hash key = derivation_key(expr, 7, part, 0);
    if (find_derived(set, key, out_expr))
        return TN_OK;
    struct derivation d;
    struct derivation_names names = {0};
    subtree outputs[TN_EXPR_MAX_OUTPUTS];
    const struct expr *made = NULL;
    if (expr_derivation_init(&d, set, expr) == TN_OK)
        d.tree.status = names_init(&names, expr, "r", part);
    if (d.tree.status == TN_OK) {
        uint32_t count = rebuild_part(&d, part, outputs);
        made = tree_expr(&d.tree, outputs, count, names.list, names.count);
    }
    names_finish(&names);
    mem_free(d.derived);
    walk_finish(&d.walk);
    if (d.tree.status == TN_OK)
        d.tree.status = store_derived(set, key, made);
    if (d.tree.status == TN_OK)
        *out_expr = made;
    return d.tree.status;
}
