// SPDX-License-Identifier: MIT
// The constant expressions of #if, #elif and #line, in 64-bit integers that wrap around.
#include "preprocess.h"

struct expression {
    struct preprocessor *pp;
    const char *what; // the directive
    struct position end;
    struct lexeme token; // the next one
    uint32_t depth;
    bool is_skipped; // it does not count: `0 && ...`
};

static void condition_next(struct expression *e)
{
    preprocess_next(e->pp, &e->token);
    if (e->token.kind == LEXEME_END)
        e->token.at = e->end;
}

static bool condition_is_at(const struct expression *e, uint32_t punctuator)
{
    return e->token.kind == LEXEME_PUNCTUATOR && e->token.punctuator == punctuator;
}

static _Noreturn void fail_expected(const struct expression *e, const char *expected)
{
    char text[61];
    size_t size = lexeme_spell(&e->token, text, sizeof(text) - 1);
    text[cut(size)] = 0;
    if (e->token.kind == LEXEME_END)
        compiler_fail(e->pp->compiler, &e->token.at, "%s ends here: expected %s", e->what,
                      expected);
    compiler_fail(e->pp->compiler, &e->token.at, "'%s' is in %s: expected %s", text,
                  e->what, expected);
}

// Two's complement, without C's undefined overflow.
static int64_t condition_wrap(uint64_t bits)
{
    return bits <= INT64_MAX ? (int64_t)bits : -(int64_t)(UINT64_MAX - bits) - 1;
}

static int64_t condition_parse(struct expression *e, int least);

static int64_t condition_parse_primary(struct expression *e)
{
    int64_t value = 0;
    if (condition_is_at(e, '(')) {
        condition_next(e);
        value = condition_parse(e, 1);
        if (!condition_is_at(e, ')'))
            fail_expected(e, "')'");
    } else if (e->token.kind == LEXEME_NUMBER) {
        struct glsl_token number;
        lexeme_number(e->pp->compiler, &e->token, &number);
        if (number.kind >= TOKEN_FLOAT)
            fail_expected(e, "an integer");
        value = condition_wrap(number.integer);
    } else if (e->token.kind == LEXEME_NAME && e->is_skipped) {
        value = 0;
    } else if (e->token.kind == LEXEME_NAME) {
        fail_expected(e, "a number: no macro has this name, and #ifdef asks for one");
    } else {
        fail_expected(e, "a number, or a macro that is one");
    }
    condition_next(e);
    return value;
}

static int64_t condition_parse_unary(struct expression *e)
{
    static const char operators[] = "-+!~";
    uint32_t op = 0;
    for (size_t i = 0; i < sizeof(operators) - 1; i++)
        op = condition_is_at(e, (unsigned char)operators[i]) ? (unsigned char)operators[i]
                                                             : op;
    if (++e->depth > MOST_EXPRESSION_DEPTH)
        compiler_fail(e->pp->compiler, &e->token.at,
                      "the expression is nested: expected at most %d levels",
                      MOST_EXPRESSION_DEPTH);
    int64_t value;
    if (op == 0) {
        value = condition_parse_primary(e);
    } else {
        condition_next(e);
        value = condition_parse_unary(e);
    }
    e->depth--;
    switch (op) {
    case '-':
        return value == INT64_MIN ? value : -value;
    case '!':
        return !value;
    case '~':
        return ~value;
    default:
        return value;
    }
}

static const struct operation {
    uint32_t punctuator;
    int level; // those of higher levels bind first
} operations[] = {
    {PUNCTUATOR('|', '|'), 1},
    {PUNCTUATOR('&', '&'), 2},
    {'|', 3},
    {'^', 4},
    {'&', 5},
    {PUNCTUATOR('=', '='), 6},
    {PUNCTUATOR('!', '='), 6},
    {'<', 7},
    {'>', 7},
    {PUNCTUATOR('<', '='), 7},
    {PUNCTUATOR('>', '='), 7},
    {PUNCTUATOR('<', '<'), 8},
    {PUNCTUATOR('>', '>'), 8},
    {'+', 9},
    {'-', 9},
    {'*', 10},
    {'/', 10},
    {'%', 10},
};

static int64_t condition_divide(struct expression *e, const struct position *at,
                                uint32_t op, int64_t a, int64_t b)
{
    if (b == 0 && !e->is_skipped)
        compiler_fail(e->pp->compiler, at, "%s divides by zero", e->what);
    if (b == 0)
        return 0;
    if (b == -1) // INT64_MIN / -1 is not in range
        return op == '%' ? 0 : a == INT64_MIN ? a : -a;
    return op == '%' ? a % b : a / b;
}

static int64_t condition_shift(struct expression *e, const struct position *at, uint32_t op,
                               int64_t a, int64_t b)
{
    if ((b < 0 || b > 63) && !e->is_skipped)
        compiler_fail(e->pp->compiler, at, "%s shifts by %lld bits: expected 0 to 63",
                      e->what, (long long)b);
    if (b < 0 || b > 63)
        return 0;
    if (op == PUNCTUATOR('<', '<')) // bits that are shifted out are cut before
        return b == 0 ? a : condition_wrap(((uint64_t)a & (UINT64_MAX >> b)) << b);
    return a < 0 ? ~(~a >> b) : a >> b;
}

static int64_t condition_apply(struct expression *e, const struct position *at, uint32_t op,
                               int64_t a, int64_t b)
{
    int64_t result;
    switch (op) {
    case PUNCTUATOR('|', '|'):
        return a || b;
    case PUNCTUATOR('&', '&'):
        return a && b;
    case '|':
        return a | b;
    case '^':
        return a ^ b;
    case '&':
        return a & b;
    case PUNCTUATOR('=', '='):
        return a == b;
    case PUNCTUATOR('!', '='):
        return a != b;
    case '<':
        return a < b;
    case '>':
        return a > b;
    case PUNCTUATOR('<', '='):
        return a <= b;
    case PUNCTUATOR('>', '='):
        return a >= b;
    case PUNCTUATOR('<', '<'):
    case PUNCTUATOR('>', '>'):
        return condition_shift(e, at, op, a, b);
    case '+':
        __builtin_add_overflow(a, b, &result);
        return result;
    case '-':
        __builtin_sub_overflow(a, b, &result);
        return result;
    case '*':
        __builtin_mul_overflow(a, b, &result);
        return result;
    default:
        return condition_divide(e, at, op, a, b);
    }
}

static const struct operation *operation_at(const struct expression *e)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        if (condition_is_at(e, operations[i].punctuator))
            return &operations[i];
    return NULL;
}

// Operators of level `least` and higher.
static int64_t condition_parse(struct expression *e, int least)
{
    int64_t value = condition_parse_unary(e);
    for (;;) {
        const struct operation *op = operation_at(e);
        if (!op || op->level < least)
            return value;
        struct position at = e->token.at;
        bool was_skipped = e->is_skipped;
        // The second operand of || and && counts where the first one leaves it open.
        e->is_skipped |= (op->level == 1 && value) || (op->level == 2 && !value);
        condition_next(e);
        int64_t right = condition_parse(e, op->level + 1);
        e->is_skipped = was_skipped;
        value = condition_apply(e, &at, op->punctuator, value, right);
    }
}

// Reads `defined NAME` or `defined(NAME)`, behind the first word, as 0 or 1.
static struct lexeme condition_read_defined(struct preprocessor *pp, struct glsl_lexer *l,
                                            struct lexeme token)
{
    struct lexeme name = lex(l);
    bool has_parenthesis = name.kind == LEXEME_PUNCTUATOR && name.punctuator == '(';
    if (has_parenthesis)
        name = lex(l);
    if (name.kind != LEXEME_NAME)
        compiler_fail(pp->compiler, &name.at,
                      "expected the name of a macro behind 'defined'");
    token.kind = LEXEME_NUMBER;
    token.text = name.name->macro ? "1" : "0";
    token.size = 1;
    if (!has_parenthesis)
        return token;
    struct lexeme end = lex(l);
    if (end.kind != LEXEME_PUNCTUATOR || end.punctuator != ')')
        compiler_fail(pp->compiler, &end.at, "expected ')' behind 'defined(%.60s'",
                      name.name->text);
    return token;
}

static struct expression begin_line(struct preprocessor *pp, struct glsl_lexer *l,
                                    const char *what)
{
    struct expression e = {.pp = pp, .what = what};
    uint32_t first = pp->num_scratch, count;
    while (preprocess_collect_next(pp, l)) {
        struct lexeme *token = &pp->scratch[pp->num_scratch - 1];
        if (token->kind == LEXEME_NAME && token->name == pp->defined)
            *token = condition_read_defined(pp, l, *token);
    }
    e.end = pp->scratch[pp->num_scratch].at;
    const struct lexeme *tokens = preprocess_take(pp, first, &count);
    preprocess_begin_list(pp, tokens, count);
    condition_next(&e);
    return e;
}

static void end_line(struct expression *e)
{
    if (e->token.kind != LEXEME_END)
        fail_expected(e, "an operator, or the end of the line");
    preprocess_end_list(e->pp);
}

int64_t preprocess_expression(struct preprocessor *pp, struct glsl_lexer *l,
                              const char *what)
{
    struct expression e = begin_line(pp, l, what);
    int64_t value = condition_parse(&e, 1);
    end_line(&e);
    return value;
}

void preprocess_line_numbers(struct preprocessor *pp, struct glsl_lexer *l,
                             struct line_numbers *out)
{
    struct expression e = begin_line(pp, l, "#line");
    *out = (struct line_numbers){.line = condition_parse(&e, 1)};
    if (e.token.kind == LEXEME_STRING) {
        out->name = e.token;
        condition_next(&e);
    } else if (e.token.kind != LEXEME_END) {
        out->file = condition_parse(&e, 1);
        out->has_file = true;
    }
    end_line(&e);
}
