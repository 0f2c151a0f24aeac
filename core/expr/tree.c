// SPDX-License-Identifier: MIT
// Sets of expressions, and the interning of nodes and expressions in them. Trees refer to
// nodes of their own set and of the permanent set, so lookups search the permanent set
// first.
#include <stddef.h>
#include <string.h>
#include "tree.h"

// --- sets ------------------------------------------------------------------------------

static struct expr_set *set_create(struct expr_set *permanent)
{
    struct expr_set *set = mem_zalloc(sizeof(*set));
    if (!set)
        return NULL;
    pthread_mutex_init(&set->lock, NULL);
    set->permanent = permanent;
    atomic_init(&set->refs, 1);
    return set;
}

static void set_destroy(struct expr_set *set)
{
    struct lookup *lookups[] = {&set->names,    &set->nodes,   &set->exprs,
                                &set->parsed,   &set->derived, &set->compiled,
                                &set->programs, &set->inferred};
    for (size_t i = 0; i < sizeof(lookups) / sizeof(*lookups); i++)
        lookup_finish(lookups[i]);
    arena_finish(&set->arena);
    pthread_mutex_destroy(&set->lock);
    mem_free(set);
}

tn_status expr_set_create(tn_runtime *runtime)
{
    runtime->exprs = set_create(NULL);
    return runtime->exprs ? TN_OK : TN_ERR_MEMORY;
}

void expr_set_destroy(tn_runtime *runtime)
{
    if (!runtime->exprs)
        return;
    expr_set_release(runtime->exprs->current);
    set_destroy(runtime->exprs);
    runtime->exprs = NULL;
}

void expr_set_release(struct expr_set *set)
{
    if (set && atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) == 1)
        set_destroy(set);
}

struct expr_set *expr_set_share(const struct expr *expr)
{
    struct expr_set *set = expr_set_of(expr);
    if (!set->permanent)
        return NULL;
    atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
    return set;
}

bool expr_set_has_room(const struct expr_set *set)
{
    return !atomic_load_explicit(&set->full, memory_order_relaxed);
}

void expr_set_mark_full(struct expr_set *set)
{
    if (set->permanent && set->arena.bytes > EXPR_SET_LIMIT)
        atomic_store_explicit(&set->full, true, memory_order_relaxed);
}

struct expr_set *expr_set_hold(tn_runtime *runtime)
{
    struct expr_set *permanent = runtime->exprs, *retired = NULL;
    pthread_mutex_lock(&permanent->lock);
    if (!permanent->current || !expr_set_has_room(permanent->current)) {
        struct expr_set *next = set_create(permanent);
        retired = next ? permanent->current : NULL;
        permanent->current = next ? next : permanent->current;
    }
    struct expr_set *held = permanent->current;
    if (held)
        atomic_fetch_add_explicit(&held->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&permanent->lock);
    expr_set_release(retired);
    return held;
}

// Searches table `table` (an offset in struct expr_set) of the permanent set, then of
// `set`.
static void *find_at(const struct expr_set *set, size_t table, struct hash key)
{
    const struct expr_set *permanent = set->permanent;
    void *found = NULL;
    if (permanent)
        found = lookup_get(
            (const struct lookup *)(const void *)((const char *)permanent + table), key);
    return found
               ? found
               : lookup_get(
                     (const struct lookup *)(const void *)((const char *)set + table), key);
}
#define find_interned(set, table, key) find_at(set, offsetof(struct expr_set, table), key)

// --- nodes -----------------------------------------------------------------------------

static struct hash node_hash(const struct expr_node *node)
{
    struct hash h = hash_start(0x7265650000 + node->op);
    h = hash_u64(h, (uint64_t)node->kind << 48 | (uint64_t)node->dtype << 32 | node->index);
    h = hash_u64(h, node->bits);
    if (node->name)
        h = hash_text(h, node->name);
    for (uint32_t i = 0; i < node->num_args; i++)
        h = hash_join(h, node->args[i]->hash);
    return h;
}

static const struct expr_node *expr_tree_add_node(struct tree *t,
                                                  const struct expr_node *node)
{
    struct expr_set *set = t->set;
    pthread_mutex_lock(&set->lock);
    struct expr_node *added = find_interned(set, nodes, node->hash);
    if (!added) {
        added = arena_alloc(&set->arena, sizeof(*added));
        if (added)
            *added = *node;
        if (!added || lookup_put(&set->nodes, node->hash, added) != TN_OK) {
            t->status = TN_ERR_MEMORY;
            added = NULL;
        }
    }
    pthread_mutex_unlock(&set->lock);
    return added;
}

static const struct expr_node *expr_tree_intern(struct tree *t, struct expr_node *node)
{
    if (t->status != TN_OK)
        return NULL;
    for (uint32_t i = 0; i < node->num_args; i++)
        if (node->args[i]->depth >= node->depth)
            node->depth = node->args[i]->depth + 1;
    if (node->depth > TREE_MAX_DEPTH) {
        t->status = fail(TN_ERR_ARGUMENT,
                         "the expression is more than %d operations deep: split it into "
                         "several",
                         TREE_MAX_DEPTH);
        return NULL;
    }
    node->hash = node_hash(node);
    const struct expr_node *found = find_interned(t->set, nodes, node->hash);
    return found ? found : expr_tree_add_node(t, node);
}

const struct expr_node *tree_number(struct tree *t, int kind, uint64_t bits)
{
    if (kind == KIND_UNSIGNED && bits <= INT64_MAX)
        kind = KIND_SIGNED;
    return expr_tree_intern(
        t, &(struct expr_node){.op = TREE_NUMBER, .kind = (uint8_t)kind, .bits = bits});
}

const struct expr_node *tree_int(struct tree *t, int64_t value)
{
    return tree_number(t, KIND_SIGNED, (uint64_t)value);
}

const struct expr_node *tree_float(struct tree *t, double value)
{
    if (value != value)
        value = (double)__builtin_nanf("");
    return tree_number(t, KIND_FLOAT, double_to_bits(value));
}

const struct expr_node *tree_imaginary(struct tree *t, double value)
{
    return tree_number(t, KIND_COMPLEX, double_to_bits(value));
}

const struct expr_node *tree_input(struct tree *t, uint32_t index)
{
    return expr_tree_intern(t, &(struct expr_node){.op = TREE_INPUT, .index = index});
}

// Interns a name: one pointer for equal texts, valid as long as the set.
static const char *intern_name(struct expr_set *set, const char *name)
{
    struct hash key = hash_text(hash_start(1), name);
    char *found = find_interned(set, names, key);
    if (found)
        return found;
    pthread_mutex_lock(&set->lock);
    found = find_interned(set, names, key);
    if (!found) {
        found = arena_strdup(&set->arena, name);
        if (found && lookup_put(&set->names, key, found) != TN_OK)
            found = NULL;
    }
    pthread_mutex_unlock(&set->lock);
    return found;
}

const struct expr_node *tree_attr(struct tree *t, const char *name, int kind)
{
    const char *interned = intern_name(t->set, name);
    if (!interned) {
        t->status = TN_ERR_MEMORY;
        return NULL;
    }
    return expr_tree_intern(
        t, &(struct expr_node){.op = TREE_ATTR, .kind = (uint8_t)kind, .name = interned});
}

const struct expr_node *tree_cast(struct tree *t, tn_dtype dtype, const struct expr_node *a)
{
    if (!a)
        return NULL;
    return expr_tree_intern(
        t, &(struct expr_node){
               .op = TN_EXPR_CAST, .num_args = 1, .dtype = dtype, .args = {a}});
}

// --- constant folding ------------------------------------------------------------------

// True for operations that are folded when all operands are literals and the result is a
// float.
bool op_folds(int op)
{
    switch (op_table[op].class) {
    case TN_EXPR_CLASS_SIGN:
    case TN_EXPR_CLASS_ROOT:
    case TN_EXPR_CLASS_FUNCTION:
    case TN_EXPR_CLASS_CIRCULAR:
    case TN_EXPR_CLASS_ARITHMETIC:
    case TN_EXPR_CLASS_EXTREME:
    case TN_EXPR_CLASS_DIVIDE:
    case TN_EXPR_CLASS_POWER:
        return true;
    default:
        return false;
    }
}

static const struct expr_node *expr_tree_fold(struct tree *t, const struct expr_node *node)
{
    struct value_type args[3] = {{0}}, type;
    uint64_t values[3] = {0};
    for (uint32_t i = 0; i < node->num_args; i++) {
        struct value_type none[1] = {{0}};
        if (node_type(node->args[i], NULL, none, &args[i]) != TN_OK)
            return NULL;
        values[i] = node->args[i]->bits;
    }
    // Type errors are reported when the expression is used, when all dtypes are known.
    if (!op_folds(node->op) || args[0].dtype || args[1].dtype ||
        node_type(node, NULL, args, &type) != TN_OK)
        return NULL;
    if (type.kind != KIND_FLOAT || args[0].kind == KIND_COMPLEX)
        return NULL;
    for (uint32_t i = 0; i < node->num_args; i++)
        values[i] = scalar_cast(type_to_dtype(args[i]), TN_F64, values[i]);
    return tree_float(t, bits_to_double(scalar_op(node->op, TN_F64, TN_F64, values[0],
                                                  values[1], values[2])));
}

// The number that an operation on integer literals gives; NULL: it is not folded.
static const struct expr_node *fold_literals(struct tree *t, const struct expr_node *node)
{
    int kind, kinds[3] = {KIND_SIGNED, KIND_SIGNED, KIND_SIGNED};
    uint64_t bits, values[3] = {0};
    for (uint32_t i = 0; i < node->num_args; i++) {
        kinds[i] = node->args[i]->kind;
        values[i] = node->args[i]->bits;
        if (kinds[i] != KIND_SIGNED && kinds[i] != KIND_UNSIGNED)
            return NULL;
    }
    t->status = fold_integers(node->op, kinds, values, &kind, &bits);
    return t->status == TN_OK && kind ? tree_number(t, kind, bits) : NULL;
}

const struct expr_node *tree_op(struct tree *t, int op, const struct expr_node *a,
                                const struct expr_node *b, const struct expr_node *c)
{
    struct expr_node node = {
        .op = (uint16_t)op, .num_args = op_table[op].num_args, .args = {a, b, c}};
    bool all_numbers = node.num_args > 0;
    for (uint32_t i = 0; i < node.num_args; i++) {
        if (!node.args[i] || t->status != TN_OK)
            return NULL;
        all_numbers &= node.args[i]->op == TREE_NUMBER;
    }
    const struct expr_node *number = all_numbers ? fold_literals(t, &node) : NULL;
    if (all_numbers && !number && t->status == TN_OK)
        number = expr_tree_fold(t, &node);
    return number ? number : expr_tree_intern(t, &node);
}

// --- expressions -----------------------------------------------------------------------

static bool is_complex_itself(const struct expr_node *node)
{
    return node->op == TN_EXPR_COMPLEX ||
           (node->op == TN_EXPR_CAST && tn_is_complex(node->dtype)) ||
           (node->op == TREE_NUMBER && node->kind == KIND_COMPLEX);
}

// Fills attr_names (in the order of first appearance), scalars, inputs_used, and the flags.
// The set's lock is held.
static tn_status collect_leaves(struct expr *expr, struct expr_set *set,
                                const struct walk *walk)
{
    const char *names[TREE_MAX_NODES];
    for (uint32_t i = 0; i < walk->count; i++) {
        const struct expr_node *node = walk->nodes[i];
        if (node->op == TREE_INPUT && node->index < 64)
            expr->inputs_used |= UINT64_C(1) << node->index;
        expr->uses_index |= node->op == TN_EXPR_INDEX;
        expr->num_operations += node->num_args > 0;
        expr->num_reductions += op_reduces(node->op);
        expr->makes_complex |= is_complex_itself(node);
        bool known = node->op != TREE_ATTR;
        for (uint32_t k = 0; !known && k < expr->num_attrs; k++)
            known = names[k] == node->name;
        if (!known)
            names[expr->num_attrs++] = node->name;
    }
    expr->reduces = expr->num_reductions > 0;
    const char **copy = arena_alloc(&set->arena, (expr->num_attrs + 1) * sizeof(*copy));
    if (!copy)
        return TN_ERR_MEMORY;
    memcpy(copy, names, expr->num_attrs * sizeof(*copy));
    expr->attr_names = copy;
    return scalars_collect(expr, &set->arena, walk);
}

static struct expr *make_expr(struct expr_set *set, const struct expr *like,
                              const struct walk *walk)
{
    struct interned_expr *interned = arena_alloc(&set->arena, sizeof(*interned));
    const char **names = arena_alloc(&set->arena, (like->num_inputs + 1) * sizeof(*names));
    const struct expr_node **outputs =
        arena_alloc(&set->arena, like->num_outputs * sizeof(*outputs));
    if (!interned || !names || !outputs)
        return NULL;
    struct expr *expr = &interned->expr;
    interned->set = set;
    *expr = *like;
    memcpy(outputs, like->outputs, like->num_outputs * sizeof(*outputs));
    memcpy(names, like->input_names, like->num_inputs * sizeof(*names));
    expr->outputs = outputs;
    expr->input_names = names;
    expr->text = arena_strdup(&set->arena, like->text);
    return expr->text && collect_leaves(expr, set, walk) == TN_OK ? expr : NULL;
}

static struct hash expr_key(struct expr *expr)
{
    struct hash h = hash_start(0x65787072);
    h = hash_u64(h, (uint64_t)expr->num_inputs << 32 | expr->num_outputs);
    for (uint32_t i = 0; i < expr->num_outputs; i++)
        h = hash_join(h, expr->outputs[i]->hash);
    expr->hash = h;
    for (uint32_t i = 0; i < expr->num_inputs; i++)
        h = hash_text(h, expr->input_names[i]);
    return h;
}

static const struct expr *add_expr(struct tree *t, const struct expr *like, struct hash key)
{
    struct expr_set *set = t->set;
    struct walk walk;
    t->status = walk_init(&walk, like->outputs, like->num_outputs);
    struct expr *expr = NULL;
    if (t->status == TN_OK) {
        pthread_mutex_lock(&set->lock);
        expr = find_interned(set, exprs, key);
        if (!expr) {
            expr = make_expr(set, like, &walk);
            if (!expr || lookup_put(&set->exprs, key, expr) != TN_OK) {
                t->status = TN_ERR_MEMORY;
                expr = NULL;
            }
            expr_set_mark_full(set);
        }
        pthread_mutex_unlock(&set->lock);
    }
    walk_finish(&walk);
    return expr;
}

const struct expr *tree_expr(struct tree *t, const struct expr_node *const *outputs,
                             uint32_t num_outputs, const char *const *input_names,
                             uint32_t num_inputs)
{
    if (t->status != TN_OK)
        return NULL;
    struct expr like = {.num_inputs = num_inputs, .num_outputs = num_outputs};
    const char **names = mem_alloc((num_inputs + 1) * sizeof(*names));
    like.input_names = names;
    like.outputs = outputs;
    t->status = names ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; t->status == TN_OK && i < num_inputs; i++)
        if (!(names[i] = intern_name(t->set, input_names[i])))
            t->status = TN_ERR_MEMORY;
    const struct expr *expr = NULL;
    if (t->status == TN_OK) {
        struct hash key = expr_key(&like);
        expr = find_interned(t->set, exprs, key);
        char *text = expr ? NULL : tree_print(outputs, num_outputs, names, num_inputs);
        like.text = text;
        if (!expr && text)
            expr = add_expr(t, &like, key);
        if (!expr && t->status == TN_OK)
            t->status = TN_ERR_MEMORY; // from tree_print
        mem_free(text);
    }
    mem_free(names);
    return expr;
}

int expr_is_input(const struct expr *expr)
{
    const struct expr_node *node = expr->outputs[0];
    return expr->num_outputs == 1 && node->op == TREE_INPUT ? (int)node->index : -1;
}

bool expr_is_product(const struct expr *expr)
{
    const struct expr_node *node = expr->outputs[0];
    return expr->num_inputs == 2 && node->op == TN_EXPR_MUL && node->depth == 1;
}
