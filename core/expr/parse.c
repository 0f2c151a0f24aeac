// SPDX-License-Identifier: MIT
// Parses text to trees by precedence climbing. Operators are C's, with Python's // and **.
//
//   expression  = { name "=" value ";" } value { "," value }
//   value       = binary [ "?" value ":" value ]
//   binary      = unary { operator unary }        || && | ^ & compare << >> + - * / // %
//   unary       = ("-" | "+" | "~" | "!") unary | power
//   power       = atom [ "**" unary ]
//   atom        = number | name | name "(" value { "," value } ")" | "(" value ")"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../base/config.h"
#include "lex.h"

#define MAX_NAME 63

struct expr_parser {
    struct tree tree;
    struct lexer lexer;
    tn_status status; // the first failure
    const char *const *input_names;
    uint32_t num_inputs;
    const tn_attr_table *attrs; // NULL: any name is an attribute
    struct map definitions;     // name -> node
    uint32_t depth;             // of recursion, at most PARSE_MAX_DEPTH
};

typedef const struct expr_node *subtree; // NULL after a failure

static subtree expr_parse_value(struct expr_parser *p);
static subtree expr_parse_unary(struct expr_parser *p);

static void expr_parse_next(struct expr_parser *p)
{
    if (p->status == TN_OK)
        p->status = lex_next(&p->lexer);
}

static bool expr_parse_accept(struct expr_parser *p, const char *sign)
{
    if (p->status != TN_OK || !lex_is(&p->lexer, sign))
        return false;
    expr_parse_next(p);
    return true;
}

#define parse_fail(p, at, ...)                                                             \
    ((p)->status == TN_OK ? (p)->status = lex_fail(&(p)->lexer, at, __VA_ARGS__)           \
                          : (p)->status)

static const char *expr_parse_got(const struct expr_parser *p, char buffer[48])
{
    const struct token *token = &p->lexer.token;
    if (token->kind == TOKEN_END)
        return "the end";
    snprintf(buffer, 48, "'%.*s'", (int)(token->size < 40 ? token->size : 40), token->at);
    return buffer;
}

static void expr_parse_expect(struct expr_parser *p, const char *sign, const char *what)
{
    char buffer[48];
    if (!expr_parse_accept(p, sign))
        parse_fail(p, p->lexer.token.at, "expected '%s' %s, got %s", sign, what,
                   expr_parse_got(p, buffer));
}

// Takes over a failure of the tree's builder and limits the depth. NULL after a failure.
static subtree expr_parse_checked(struct expr_parser *p, subtree node, const char *at)
{
    if (p->status != TN_OK)
        return NULL;
    if (p->tree.status != TN_OK)
        p->status = p->tree.status;
    else if (node->depth > PARSE_MAX_TREE)
        parse_fail(p, at, "more than %d operations depend on each other: split it",
                   PARSE_MAX_TREE);
    return p->status == TN_OK ? node : NULL;
}

static subtree expr_parse_apply(struct expr_parser *p, int op, subtree a, subtree b,
                                subtree c, const char *at)
{
    return p->status == TN_OK ? expr_parse_checked(p, tree_op(&p->tree, op, a, b, c), at)
                              : NULL;
}

// --- names -----------------------------------------------------------------------------

static bool is_text(const struct token *token, const char *text)
{
    return strlen(text) == token->size && memcmp(text, token->at, token->size) == 0;
}

static const char *const reserved[] = {"true", "false", "inf", "nan", "index", NULL};
static const char *const constants[] = {"pi", "e", NULL};

static int expr_parse_position_of(const struct token *token, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (is_text(token, names[i]))
            return i;
    return -1;
}

static subtree parse_reserved(struct expr_parser *p, int which)
{
    struct tree *t = &p->tree;
    switch (which) {
    case 0:
    case 1:
        return tree_number(t, KIND_BOOL, which == 0);
    case 2:
        return tree_float(t, (double)INFINITY);
    case 3:
        return tree_float(t, (double)NAN);
    default:
        return tree_op(t, TN_EXPR_INDEX, NULL, NULL, NULL);
    }
}

// True for operations called by their name; casts are called by the name of a dtype.
static bool expr_parse_is_function(int op)
{
    return op_table[op].num_args && !op_precedence[op] && op != TN_EXPR_CAST;
}

// The known name that is nearest to `name`, for "did you mean".
static const char *expr_parse_nearest(const struct expr_parser *p, const char *name)
{
    const char *names[256] = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->num_inputs && n < 64; i++)
        names[n++] = p->input_names[i];
    for (uint32_t i = 0; p->attrs && i < p->attrs->num_fields && n < 96; i++)
        names[n++] = p->attrs->fields[i].name;
    for (int op = 0; op < TREE_NUM_OPS; op++)
        if (expr_parse_is_function(op))
            names[n++] = op_table[op].text;
    for (int i = 0; constants[i]; i++)
        names[n++] = constants[i];
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++)
        names[n++] = dtype_name(dtype);
    names[n++] = "index";
    return config_nearest(name, names);
}

static subtree expr_parse_unknown_name(struct expr_parser *p, const struct token *token,
                                       const char *what)
{
    char name[MAX_NAME + 1];
    snprintf(name, sizeof(name), "%.*s", (int)token->size, token->at);
    const char *near = expr_parse_nearest(p, name);
    parse_fail(p, token->at, "unknown %s '%s'%s%s%s", what, name,
               near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
    return NULL;
}

// The kind by which an attribute promotes; KIND_NONE for a text or a list, which has no
// value here.
static int attr_kind(uint32_t kind)
{
    return kind == TN_ATTR_F64                           ? KIND_FLOAT
           : kind == TN_ATTR_INTS || kind > TN_ATTR_BITS ? KIND_NONE
                                                         : KIND_SIGNED;
}

static subtree parse_attr(struct expr_parser *p, const struct token *token)
{
    char name[MAX_NAME + 1];
    if (token->size > MAX_NAME)
        return parse_fail(p, token->at, "a name has more than %d letters", MAX_NAME), NULL;
    snprintf(name, sizeof(name), "%.*s", (int)token->size, token->at);
    if (!p->attrs)
        return tree_attr(&p->tree, name, KIND_FLOAT);
    for (uint32_t i = 0; i < p->attrs->num_fields; i++) {
        const tn_attr_field *field = &p->attrs->fields[i];
        if (strcmp(field->name, name) != 0)
            continue;
        int kind = attr_kind(field->kind);
        if (kind == KIND_NONE)
            return parse_fail(p, token->at, "attribute '%s' is a %s, expected a number",
                              name,
                              field->kind == TN_ATTR_STRING  ? "text"
                              : field->kind == TN_ATTR_GRAPH ? "graph"
                                                             : "list"),
                   NULL;
        return tree_attr(&p->tree, name, kind);
    }
    int constant = expr_parse_position_of(token, constants);
    if (constant >= 0)
        return tree_float(&p->tree, constant == 0 ? M_PI : M_E);
    return expr_parse_unknown_name(p, token, "name");
}

static struct hash expr_parse_name_key(const struct token *token)
{
    return hash_bytes(hash_start(2), token->at, token->size);
}

static subtree expr_parse_name(struct expr_parser *p, const struct token *token)
{
    subtree defined = map_get(&p->definitions, expr_parse_name_key(token));
    if (defined)
        return defined;
    for (uint32_t i = 0; i < p->num_inputs; i++)
        if (is_text(token, p->input_names[i]))
            return tree_input(&p->tree, i);
    int which = expr_parse_position_of(token, reserved);
    if (which >= 0)
        return parse_reserved(p, which);
    if (!p->attrs && expr_parse_position_of(token, constants) >= 0)
        return tree_float(&p->tree, is_text(token, "pi") ? M_PI : M_E);
    return parse_attr(p, token);
}

// --- calls -----------------------------------------------------------------------------

static int function_named(const struct token *token)
{
    for (int op = 0; op < TREE_NUM_OPS; op++)
        if (expr_parse_is_function(op) && is_text(token, op_table[op].text))
            return op;
    return is_text(token, "pow")     ? TN_EXPR_POW
           : is_text(token, "where") ? TN_EXPR_SELECT
                                     : -1;
}

// min and max of one argument reduce.
static int expr_parse_function_of(int op, uint32_t num_args)
{
    if (num_args != 1)
        return op;
    return op == TN_EXPR_MIN   ? TN_EXPR_REDUCE_MIN
           : op == TN_EXPR_MAX ? TN_EXPR_REDUCE_MAX
                               : op;
}

// Refuses to reduce a value that is equal at all elements of every row.
static void check_reduced(struct expr_parser *p, const struct token *token, int op,
                          subtree arg)
{
    struct walk walk;
    bool varies = false;
    if (p->status != TN_OK || !op_reduces(op))
        return;
    p->status = walk_init(&walk, &arg, 1);
    for (uint32_t i = 0; i < walk.count && p->status == TN_OK; i++)
        varies |= walk.nodes[i]->op == TREE_INPUT || walk.nodes[i]->op == TN_EXPR_INDEX;
    walk_finish(&walk);
    if (!varies)
        parse_fail(p, token->at, "'%.*s' of a constant: expected an input in its argument",
                   (int)token->size, token->at);
}

static void expr_parse_check_count(struct expr_parser *p, const struct token *token, int op,
                                   uint32_t count)
{
    uint32_t expected = op_table[op].num_args;
    int size = (int)(token->size < 40 ? token->size : 40);
    if (p->status != TN_OK || count == expected)
        return;
    if (op == TN_EXPR_MIN || op == TN_EXPR_MAX)
        parse_fail(p, token->at, "'%.*s' takes 1 or 2 arguments, got %u", size, token->at,
                   count);
    else
        parse_fail(p, token->at, "'%.*s' takes %u argument%s, got %u", size, token->at,
                   expected, expected == 1 ? "" : "s", count);
}

static subtree expr_parse_call(struct expr_parser *p, const struct token *token)
{
    char name[16] = "";
    if (token->size < sizeof(name))
        memcpy(name, token->at, token->size);
    tn_dtype dtype = dtype_parse(name);
    int op = dtype ? TN_EXPR_CAST : function_named(token);
    if (op < 0)
        return expr_parse_unknown_name(p, token, "function");
    uint32_t count = 0;
    subtree args[3] = {NULL};
    if (!lex_is(&p->lexer, ")"))
        do {
            subtree arg = expr_parse_value(p);
            if (count < 3)
                args[count] = arg;
            count++;
        } while (expr_parse_accept(p, ","));
    op = expr_parse_function_of(op, count);
    expr_parse_check_count(p, token, op, count);
    expr_parse_expect(p, ")", "after the arguments");
    check_reduced(p, token, op, args[0]);
    if (op == TN_EXPR_CAST)
        return p->status == TN_OK
                   ? expr_parse_checked(p, tree_cast(&p->tree, dtype, args[0]), token->at)
                   : NULL;
    return expr_parse_apply(p, op, args[0], args[1], args[2], token->at);
}

// --- operators -------------------------------------------------------------------------

static subtree expr_parse_atom(struct expr_parser *p)
{
    struct token token = p->lexer.token;
    char buffer[48];
    if (expr_parse_accept(p, "(")) {
        subtree inner = expr_parse_value(p);
        expr_parse_expect(p, ")", "to close the bracket");
        return inner;
    }
    if (token.kind == TOKEN_NUMBER) {
        expr_parse_next(p);
        return expr_parse_checked(p, tree_number(&p->tree, token.number_kind, token.bits),
                                  token.at);
    }
    if (token.kind != TOKEN_NAME) {
        parse_fail(p, token.at, "expected a value, got %s", expr_parse_got(p, buffer));
        return NULL;
    }
    expr_parse_next(p);
    if (expr_parse_accept(p, "("))
        return expr_parse_call(p, &token);
    return p->status == TN_OK ? expr_parse_checked(p, expr_parse_name(p, &token), token.at)
                              : NULL;
}

static bool expr_parse_enter(struct expr_parser *p)
{
    if (p->status == TN_OK && ++p->depth > PARSE_MAX_DEPTH)
        parse_fail(p, p->lexer.token.at, "nested deeper than %d", PARSE_MAX_DEPTH);
    return p->status == TN_OK;
}

static subtree expr_parse_power(struct expr_parser *p)
{
    subtree base = expr_parse_atom(p);
    const char *at = p->lexer.token.at;
    if (!expr_parse_accept(p, "**"))
        return base;
    subtree exponent = expr_parse_unary(p);
    return expr_parse_apply(p, TN_EXPR_POW, base, exponent, NULL, at);
}

static subtree expr_parse_unary(struct expr_parser *p)
{
    static const struct {
        const char *sign;
        int op;
    } prefixes[] = {{"-", TN_EXPR_NEG}, {"~", TN_EXPR_INVERT}, {"!", TN_EXPR_NOT}};
    if (!expr_parse_enter(p))
        return NULL;
    const char *at = p->lexer.token.at;
    subtree result = NULL;
    bool found = false;
    for (int i = 0; i < 3 && !found; i++)
        if (expr_parse_accept(p, prefixes[i].sign)) {
            subtree operand = expr_parse_unary(p);
            result = expr_parse_apply(p, prefixes[i].op, operand, NULL, NULL, at);
            found = true;
        }
    if (!found)
        result = expr_parse_accept(p, "+") ? expr_parse_unary(p) : expr_parse_power(p);
    p->depth--;
    return result;
}

static int binary_operator(const struct expr_parser *p)
{
    for (int op = 0; op < TREE_NUM_OPS; op++) {
        const struct op_info *info = &op_table[op];
        if (info->num_args == 2 && op_precedence[op] && op_precedence[op] != PREC_POWER &&
            lex_is(&p->lexer, info->text))
            return op;
    }
    return -1;
}

static subtree expr_parse_binary(struct expr_parser *p, int least)
{
    subtree left = expr_parse_unary(p);
    bool compared = false;
    for (;;) {
        int op = p->status == TN_OK ? binary_operator(p) : -1;
        if (op < 0 || op_precedence[op] < least)
            return left;
        const char *at = p->lexer.token.at;
        bool is_comparison = op_precedence[op] == PREC_COMPARE;
        if (compared && is_comparison)
            return parse_fail(p, at, "comparisons do not chain: write a < b && b < c"),
                   NULL;
        compared = is_comparison;
        expr_parse_next(p);
        subtree right = expr_parse_binary(p, op_precedence[op] + 1);
        left = expr_parse_apply(p, op, left, right, NULL, at);
    }
}

static subtree expr_parse_value(struct expr_parser *p)
{
    if (!expr_parse_enter(p))
        return NULL;
    subtree result = expr_parse_binary(p, PREC_ANY);
    const char *at = p->lexer.token.at;
    if (expr_parse_accept(p, "?")) {
        subtree yes = expr_parse_value(p);
        expr_parse_expect(p, ":", "after the first choice of '?'");
        subtree no = expr_parse_value(p);
        result = expr_parse_apply(p, TN_EXPR_SELECT, result, yes, no, at);
    }
    p->depth--;
    return result;
}

// --- definitions and outputs -----------------------------------------------------------

// True at "name =". Looks one token ahead.
static bool at_definition(const struct expr_parser *p)
{
    struct lexer ahead = p->lexer;
    return p->status == TN_OK && ahead.token.kind == TOKEN_NAME &&
           lex_next(&ahead) == TN_OK && lex_is(&ahead, "=");
}

static bool expr_parse_is_taken(const struct expr_parser *p, const struct token *token)
{
    bool taken = expr_parse_position_of(token, reserved) >= 0 ||
                 map_get(&p->definitions, expr_parse_name_key(token));
    for (uint32_t i = 0; i < p->num_inputs; i++)
        taken |= is_text(token, p->input_names[i]);
    for (uint32_t i = 0; p->attrs && i < p->attrs->num_fields; i++)
        taken |= is_text(token, p->attrs->fields[i].name);
    return taken;
}

static void parse_definition(struct expr_parser *p)
{
    struct token name = p->lexer.token;
    if (expr_parse_is_taken(p, &name))
        parse_fail(p, name.at, "'%.*s' already has a meaning", (int)name.size, name.at);
    expr_parse_next(p); // past the name
    expr_parse_next(p); // past "="
    subtree node = expr_parse_value(p);
    expr_parse_expect(p, ";", "after a definition");
    if (p->status == TN_OK)
        p->status = map_put(&p->definitions, expr_parse_name_key(&name), (void *)node);
}

static const struct expr *expr_parse_outputs(struct expr_parser *p)
{
    subtree outputs[TN_EXPR_MAX_OUTPUTS];
    uint32_t count = 0;
    char buffer[48];
    while (at_definition(p))
        parse_definition(p);
    do {
        if (count == TN_EXPR_MAX_OUTPUTS)
            parse_fail(p, p->lexer.token.at, "more than %d outputs", TN_EXPR_MAX_OUTPUTS);
        else
            outputs[count++] = expr_parse_value(p);
    } while (expr_parse_accept(p, ","));
    if (p->status == TN_OK && p->lexer.token.kind != TOKEN_END)
        parse_fail(p, p->lexer.token.at, "expected an operator or the end, got %s",
                   expr_parse_got(p, buffer));
    if (p->status != TN_OK)
        return NULL;
    const struct expr *expr =
        tree_expr(&p->tree, outputs, count, p->input_names, p->num_inputs);
    p->status = p->tree.status;
    return expr;
}

static tn_status store_parsed(struct expr_set *set, struct hash key,
                              const struct expr *expr)
{
    pthread_mutex_lock(&set->lock);
    tn_status status = lookup_put(&set->parsed, key, (void *)expr);
    expr_set_mark_full(set);
    pthread_mutex_unlock(&set->lock);
    return status;
}

static tn_status expr_parse_finish(struct expr_parser *p, const struct expr *expr,
                                   struct hash key, const struct expr **out_expr)
{
    map_finish(&p->definitions);
    if (p->status == TN_OK)
        p->status = store_parsed(p->tree.set, key, expr);
    if (p->status != TN_OK) {
        if (p->status == TN_ERR_ARGUMENT)
            fail_prefix("expression: ");
        return p->status;
    }
    *out_expr = expr;
    return TN_OK;
}

tn_status expr_parse(tn_runtime *runtime, const char *text, const char *const *input_names,
                     uint32_t num_inputs, const tn_attr_table *attrs,
                     const struct expr **out_expr)
{
    struct hash key = hash_text(hash_start(2), text);
    for (uint32_t i = 0; i < num_inputs; i++)
        key = hash_text(key, input_names[i]);
    key = hash_u64(key, attrs ? attrs->num_fields : UINT64_MAX);
    for (uint32_t i = 0; attrs && i < attrs->num_fields; i++)
        key = hash_u64(hash_text(key, attrs->fields[i].name), attrs->fields[i].kind);
    const struct expr *known = lookup_get(&runtime->exprs->parsed, key);
    if (known) {
        *out_expr = known;
        return TN_OK;
    }
    struct expr_parser parser = {.tree = {.set = runtime->exprs},
                                 .input_names = input_names,
                                 .num_inputs = num_inputs,
                                 .attrs = attrs};
    parser.status = lex_init(&parser.lexer, text);
    const struct expr *expr = expr_parse_outputs(&parser);
    return expr_parse_finish(&parser, expr, key, out_expr);
}

// --- "x, y -> ..." ---------------------------------------------------------------------

#define MAX_ARROW_INPUTS 64

static void parse_arrow_names(struct expr_parser *p, char names[][MAX_NAME + 1])
{
    char buffer[48];
    while (p->status == TN_OK && !lex_is(&p->lexer, "->")) {
        struct token *token = &p->lexer.token;
        if (token->kind != TOKEN_NAME)
            parse_fail(p, token->at, "expected an input's name before '->', got %s",
                       expr_parse_got(p, buffer));
        else if (token->size > MAX_NAME)
            parse_fail(p, token->at, "a name has more than %d letters", MAX_NAME);
        else if (p->num_inputs == MAX_ARROW_INPUTS)
            parse_fail(p, token->at, "more than %d inputs", MAX_ARROW_INPUTS);
        else if (expr_parse_is_taken(p, token))
            parse_fail(p, token->at, "'%.*s' already has a meaning", (int)token->size,
                       token->at);
        if (p->status != TN_OK)
            return;
        snprintf(names[p->num_inputs++], MAX_NAME + 1, "%.*s", (int)token->size, token->at);
        expr_parse_next(p);
        if (!expr_parse_accept(p, ",") && !lex_is(&p->lexer, "->"))
            parse_fail(p, p->lexer.token.at, "expected ',' or '->', got %s",
                       expr_parse_got(p, buffer));
    }
    expr_parse_next(p);
}

tn_status expr_parse_arrow(tn_runtime *runtime, const char *text,
                           const struct expr **out_expr)
{
    return expr_parse_arrow_into(runtime->exprs, text, out_expr);
}

tn_status expr_parse_arrow_into(struct expr_set *set, const char *text,
                                const struct expr **out_expr)
{
    struct hash key = hash_text(hash_start(3), text);
    const struct expr *known = lookup_get(&set->parsed, key);
    if (known) {
        *out_expr = known;
        return TN_OK;
    }
    char names[MAX_ARROW_INPUTS][MAX_NAME + 1];
    const char *pointers[MAX_ARROW_INPUTS];
    for (uint32_t i = 0; i < MAX_ARROW_INPUTS; i++)
        pointers[i] = names[i];
    struct expr_parser parser = {.tree = {.set = set}, .input_names = pointers};
    parser.status = lex_init(&parser.lexer, text);
    parse_arrow_names(&parser, names);
    const struct expr *expr = expr_parse_outputs(&parser);
    return expr_parse_finish(&parser, expr, key, out_expr);
}
