// SPDX-License-Identifier: MIT
// The parser of expressions.
#include "parse.h"

static struct tree_expr *expression_parse_unary(struct translator *t);

// --- primary expressions ---------------------------------------------------------------

struct arguments {
    struct tree_expr **items;
    uint32_t count, capacity;
};

// Behind its opening parenthesis or brace.
static void parse_arguments(struct translator *t, struct arguments *out, uint32_t closing)
{
    *out = (struct arguments){NULL, 0, 0};
    if (next_is_keyword(t, KEYWORD_void) && closing == ')' &&
        t->token[1].kind == TOKEN_PUNCTUATOR && t->token[1].punctuator == ')')
        t->token++;
    while (!next_is(t, closing)) {
        struct tree_expr *e = parse_assignment(t);
        if (out->count == out->capacity)
            out->items = compiler_grow(t->c, out->items, out->count, &out->capacity,
                                       sizeof *out->items);
        out->items[out->count++] = e;
        if (!accept(t, ','))
            break;
    }
    expect(t, closing, "behind the arguments");
}

static struct tree_expr *parse_literal(struct translator *t)
{
    static const uint8_t bases[] = {
        [TOKEN_INT] = TYPE_INT32,      [TOKEN_UINT] = TYPE_UINT32,
        [TOKEN_INT16] = TYPE_INT16,    [TOKEN_UINT16] = TYPE_UINT16,
        [TOKEN_INT64] = TYPE_INT64,    [TOKEN_UINT64] = TYPE_UINT64,
        [TOKEN_FLOAT] = TYPE_FLOAT32,  [TOKEN_FLOAT16] = TYPE_FLOAT16,
        [TOKEN_DOUBLE] = TYPE_FLOAT64,
    };
    const struct glsl_token *token = t->token++;
    enum base base = bases[token->kind];
    uint64_t bits =
        base_is_float(base) ? double_bits(token->number) : fold_wrap(base, token->integer);
    use_needs(t, type_scalar(t, base)->needs);
    return expr_uint(t, base, bits, &token->at);
}

static struct tree_expr *parse_constructor(struct translator *t)
{
    struct position at = t->token->at;
    const struct type *type = parse_type(t);
    struct arguments arguments;
    expect(t, '(', "behind a type");
    parse_arguments(t, &arguments, ')');
    return expr_construct(t, type, arguments.items, arguments.count, &at);
}

static struct tree_expr *expression_parse_name(struct translator *t)
{
    const struct glsl_token *token = t->token;
    const struct name *name = expect_identifier(t, "an expression");
    if (next_is(t, '(')) {
        struct arguments arguments;
        t->token++;
        parse_arguments(t, &arguments, ')');
        return expr_call(t, name, arguments.items, arguments.count, &token->at);
    }
    struct symbol *symbol = symbol_find(t, name);
    if (symbol == NULL && builtin_exists(name))
        fail_at(t, &token->at, "'%.60s' is a function, expected '(' behind it", name->text);
    if (symbol == NULL)
        fail_at(t, &token->at, "'%.60s' is not declared", name->text);
    if (symbol->kind == SYMBOL_FUNCTION && t->extensions & EXTENSION_BIT(MATRIX_2))
        return function_value(t, symbol, &token->at);
    if (symbol->kind == SYMBOL_FUNCTION || symbol->kind == SYMBOL_TYPE)
        fail_at(t, &token->at, "'%.60s' is a %s, expected a value", name->text,
                symbol->kind == SYMBOL_TYPE ? "type" : "function");
    if (symbol->builtin != NULL && symbol->kind == SYMBOL_VALUE)
        return workgroup_size(t, &token->at);
    return expr_variable(t, symbol, &token->at);
}

static struct tree_expr *expression_parse_primary(struct translator *t)
{
    const struct glsl_token *token = t->token;
    if (token->kind >= TOKEN_INT)
        return parse_literal(t);
    if (next_is_keyword(t, KEYWORD_true) || next_is_keyword(t, KEYWORD_false)) {
        t->token++;
        return expr_uint(t, TYPE_BOOL, token->name->keyword == KEYWORD_true, &token->at);
    }
    if (accept(t, '(')) {
        enter_level(t);
        struct tree_expr *e = parse_expression(t);
        t->level--;
        expect(t, ')', "behind an expression");
        return e;
    }
    if (type_is_next(t))
        return parse_constructor(t);
    if (token->kind == TOKEN_NAME)
        return expression_parse_name(t);
    fail_at(t, &token->at, "found %s, expected an expression", token_text(t, token));
}

// .name, or .length()
static struct tree_expr *parse_field(struct translator *t, struct tree_expr *left)
{
    struct position at = t->token->at;
    if (t->token->kind != TOKEN_NAME)
        fail_at(t, &at, "found %s, expected a member's name", token_text(t, t->token));
    const struct name *name = t->token++->name; // x of a swizzle may be any word
    if (!accept(t, '('))
        return expr_field(t, left, name, &at);
    if (name != t->name_length)
        fail_at(t, &at, "'%.60s' is no method, expected 'length'", name->text);
    expect(t, ')', "behind 'length('");
    return expr_length(t, left, &at);
}

static struct tree_expr *expression_parse_postfix(struct translator *t)
{
    struct tree_expr *e = expression_parse_primary(t);
    for (;;) {
        struct position at = t->token->at;
        if (accept(t, '[')) {
            enter_level(t);
            struct tree_expr *index = parse_expression(t);
            t->level--;
            expect(t, ']', "behind an index");
            e = expr_index(t, e, index, &at);
        } else if (accept(t, '.')) {
            e = parse_field(t, e);
        } else if (accept(t, PUNCTUATOR('+', '+'))) {
            e = expr_increment(t, '+', e, true, &at);
        } else if (accept(t, PUNCTUATOR('-', '-'))) {
            e = expr_increment(t, '-', e, true, &at);
        } else {
            return e;
        }
    }
}

static struct tree_expr *expression_parse_unary(struct translator *t)
{
    struct position at = t->token->at;
    uint32_t op = t->token->kind == TOKEN_PUNCTUATOR ? t->token->punctuator : 0;
    if (op != '-' && op != '+' && op != '!' && op != '~' && op != PUNCTUATOR('+', '+') &&
        op != PUNCTUATOR('-', '-'))
        return expression_parse_postfix(t);
    t->token++;
    enter_level(t);
    struct tree_expr *e = expression_parse_unary(t);
    t->level--;
    if (op > 255)
        return expr_increment(t, op & 255, e, false, &at);
    return expr_unary(t, op, e, &at);
}

// --- operators -------------------------------------------------------------------------

// 0: no binary operator; the larger, the tighter it binds.
static uint32_t precedence_of(const struct glsl_token *token)
{
    if (token->kind != TOKEN_PUNCTUATOR)
        return 0;
    switch (token->punctuator) {
    case PUNCTUATOR('|', '|'):
        return 1;
    case PUNCTUATOR('^', '^'):
        return 2;
    case PUNCTUATOR('&', '&'):
        return 3;
    case '|':
        return 4;
    case '^':
        return 5;
    case '&':
        return 6;
    case PUNCTUATOR('=', '='):
    case PUNCTUATOR('!', '='):
        return 7;
    case '<':
    case '>':
    case PUNCTUATOR('<', '='):
    case PUNCTUATOR('>', '='):
        return 8;
    case PUNCTUATOR('<', '<'):
    case PUNCTUATOR('>', '>'):
        return 9;
    case '+':
    case '-':
        return 10;
    case '*':
    case '/':
    case '%':
        return 11;
    default:
        return 0;
    }
}

static struct tree_expr *expression_parse_binary(struct translator *t, uint32_t least)
{
    struct tree_expr *left = expression_parse_unary(t);
    for (;;) {
        const struct glsl_token *token = t->token;
        uint32_t precedence = precedence_of(token);
        if (precedence == 0 || precedence < least)
            return left;
        t->token++;
        struct tree_expr *right = expression_parse_binary(t, precedence + 1);
        left = precedence <= 3
                   ? expr_logical(t, token->punctuator & 255, left, right, &token->at)
                   : expr_binary(t, token->punctuator, left, right, &token->at);
    }
}

struct tree_expr *parse_additive(struct translator *t)
{
    return expression_parse_binary(t, 10);
}

struct tree_expr *parse_conditional(struct translator *t)
{
    struct tree_expr *condition = expression_parse_binary(t, 1);
    struct position at = t->token->at;
    if (!accept(t, '?'))
        return condition;
    enter_level(t);
    struct tree_expr *left = parse_expression(t);
    expect(t, ':', "in ?:");
    struct tree_expr *right = parse_assignment(t);
    t->level--;
    return expr_select(t, condition, left, right, &at);
}

// Gives the operator of op=, and 0 for =. False: no assignment.
static bool assignment_of(const struct glsl_token *token, uint32_t *op)
{
    if (token->kind != TOKEN_PUNCTUATOR)
        return false;
    uint32_t p = token->punctuator;
    *op = 0;
    if (p == '=')
        return true;
    if (p == PUNCTUATOR_3('<', '<', '=') || p == PUNCTUATOR_3('>', '>', '=')) {
        *op = p & 0xffff;
        return true;
    }
    if (p >> 8 != '=')
        return false;
    *op = p & 255;
    return *op == '+' || *op == '-' || *op == '*' || *op == '/' || *op == '%' ||
           *op == '&' || *op == '|' || *op == '^';
}

struct tree_expr *parse_assignment(struct translator *t)
{
    struct tree_expr *left = parse_conditional(t);
    const struct glsl_token *token = t->token;
    uint32_t op;
    if (!assignment_of(token, &op))
        return left;
    t->token++;
    enter_level(t);
    struct tree_expr *right = parse_assignment(t);
    t->level--;
    return expr_assign(t, op, left, right, &token->at);
}

struct tree_expr *parse_expression(struct translator *t)
{
    struct tree_expr *left = parse_assignment(t);
    for (;;) {
        struct position at = t->token->at;
        if (!accept(t, ','))
            return left;
        struct tree_expr *right = parse_assignment(t);
        struct tree_expr *e = expr_new(t, EXPR_COMMA, right->type, &at);
        e->left = left;
        e->right = right;
        expr_child(t, e, left);
        expr_child(t, e, right);
        left = e;
    }
}

// --- initialisers ----------------------------------------------------------------------

// { ... } for a type. If `type` is NULL or an array without a size, the elements decide.
static struct tree_expr *expression_parse_list(struct translator *t,
                                               const struct type *type)
{
    struct arguments out = {NULL, 0, 0};
    struct position at = t->token->at;
    expect(t, '{', "before a list of values");
    enter_level(t);
    while (!next_is(t, '}')) {
        const struct type *part = NULL;
        if (type->base == TYPE_STRUCT)
            part = out.count < type->record->num_members
                       ? type->record->members[out.count].type
                       : NULL;
        else if (type->base == TYPE_ARRAY || !type_is_scalar(type))
            part = type_part(t, type);
        if (part == NULL)
            fail_at(t, &t->token->at, "'%.60s' is made of too many values",
                    type_text(t, type));
        struct tree_expr *e = parse_initialiser(t, part);
        if (out.count == out.capacity)
            out.items =
                compiler_grow(t->c, out.items, out.count, &out.capacity, sizeof *out.items);
        out.items[out.count++] = e;
        if (!accept(t, ','))
            break;
    }
    t->level--;
    expect(t, '}', "behind a list of values");
    if (type_is_number(type) &&
        out.count != (type_is_matrix(type) ? type->columns : type->rows))
        fail_at(t, &at, "'%s' is made of %u values", type_text(t, type), out.count);
    return expr_construct(t, type, out.items, out.count, &at);
}

struct tree_expr *parse_initialiser(struct translator *t, const struct type *type)
{
    if (next_is(t, '{'))
        return expression_parse_list(t, type);
    struct tree_expr *e = parse_assignment(t);
    if (type_is_unsized(type) && e->type->base == TYPE_ARRAY &&
        e->type->element == type->element)
        return e;
    return convert_to(t, e, type, "the initial value");
}

uint32_t parse_constant_uint(struct translator *t, const char *what)
{
    struct position at = t->token->at;
    struct tree_expr *e = parse_conditional(t);
    if (e->kind != EXPR_CONSTANT || !base_is_int(e->type->base) || !type_is_scalar(e->type))
        fail_at(t, &at, "%s is no constant integer", what);
    if (e->bits[0] > INT32_MAX)
        fail_at(t, &at, "%s is out of range, expected 0 to %d", what, INT32_MAX);
    return (uint32_t)e->bits[0];
}
