// SPDX-License-Identifier: MIT
// Parser (recursive descent) and stack machine of expressions over extents.
#include "extent.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct extent_parser {
    struct ffi_arena *arena;
    struct extent *out;
    extent_lookup lookup;
    void *context;
    struct problem *problem;
    const char *at; // next character of out->text
    int depth;      // levels of nesting around `at`
};

static void ffi_extent_parse_sum(struct extent_parser *p);

static bool ffi_extent_ok(const struct extent_parser *p)
{
    return p->problem->status == TN_OK;
}

// Records a syntax error at p->at.
static void ffi_extent_wrong(struct extent_parser *p, const char *expected)
{
    const char *got = *p->at ? p->at : "the end";
    problem_set(p->problem, TN_ERR_ARGUMENT,
                "\"%.80s\", column %zu: got %s%.20s%s, expected %s", p->out->text,
                (size_t)(p->at - p->out->text) + 1, *p->at ? "'" : "", got,
                *p->at ? "'" : "", expected);
}

static char ffi_extent_peek(struct extent_parser *p)
{
    while (*p->at == ' ')
        p->at++;
    return *p->at;
}

static bool ffi_extent_accept(struct extent_parser *p, char c)
{
    if (ffi_extent_peek(p) != c)
        return false;
    p->at++;
    return true;
}

static void ffi_extent_expect(struct extent_parser *p, char c, const char *name)
{
    if (ffi_extent_ok(p) && !ffi_extent_accept(p, c))
        ffi_extent_wrong(p, name);
}

static void ffi_extent_emit(struct extent_parser *p, char what, int64_t value)
{
    if (!ffi_extent_ok(p))
        return;
    p->out->steps[p->out->num_steps++] = (struct extent_step){what, value};
}

static void ffi_extent_parse_number(struct extent_parser *p)
{
    char *end;
    errno = 0;
    long long value = strtoll(p->at, &end, 10);
    if (errno || isalnum((unsigned char)*end))
        ffi_extent_wrong(p, "an integer of 63 bits");
    p->at = end;
    ffi_extent_emit(p, 'n', value);
}

static void ffi_extent_parse_name(struct extent_parser *p)
{
    char name[64];
    const char *start = p->at;
    size_t length = 0;
    while (isalnum((unsigned char)start[length]) || start[length] == '_')
        length++;
    if (length >= sizeof(name)) {
        ffi_extent_wrong(p, "a name of at most 63 bytes");
        return;
    }
    memcpy(name, start, length);
    name[length] = 0;
    bool least = strcmp(name, "min") == 0, most = strcmp(name, "max") == 0;
    p->at += length;
    if ((least || most) && ffi_extent_accept(p, '(')) {
        ffi_extent_parse_sum(p);
        ffi_extent_expect(p, ',', "','");
        ffi_extent_parse_sum(p);
        ffi_extent_expect(p, ')', "')'");
        ffi_extent_emit(p, least ? '<' : '>', 0);
        return;
    }
    int variable = p->lookup(p->context, name);
    p->at = start;
    if (variable < 0)
        ffi_extent_wrong(p,
                         "a name that an input's shape, an attribute or \"extents\" gives");
    p->at = start + length;
    ffi_extent_emit(p, 'v', variable);
}

static void ffi_extent_parse_atom(struct extent_parser *p)
{
    char c = ffi_extent_peek(p);
    if (!ffi_extent_ok(p))
        return;
    if (++p->depth > EXTENT_MAX_DEPTH) {
        ffi_extent_wrong(p, "fewer levels of nesting");
    } else if (isdigit((unsigned char)c)) {
        ffi_extent_parse_number(p);
    } else if (isalpha((unsigned char)c) || c == '_') {
        ffi_extent_parse_name(p);
    } else if (ffi_extent_accept(p, '-')) {
        ffi_extent_parse_atom(p);
        ffi_extent_emit(p, '~', 0);
    } else if (ffi_extent_accept(p, '(')) {
        ffi_extent_parse_sum(p);
        ffi_extent_expect(p, ')', "')'");
    } else {
        ffi_extent_wrong(p, "a number, a name or '('");
    }
    p->depth--;
}

static void ffi_extent_parse_product(struct extent_parser *p)
{
    ffi_extent_parse_atom(p);
    for (char c = ffi_extent_peek(p);
         ffi_extent_ok(p) && (c == '*' || c == '/' || c == '%'); c = ffi_extent_peek(p)) {
        p->at++;
        ffi_extent_parse_atom(p);
        ffi_extent_emit(p, c, 0);
    }
}

static void ffi_extent_parse_sum(struct extent_parser *p)
{
    ffi_extent_parse_product(p);
    for (char c = ffi_extent_peek(p); ffi_extent_ok(p) && (c == '+' || c == '-');
         c = ffi_extent_peek(p)) {
        p->at++;
        ffi_extent_parse_product(p);
        ffi_extent_emit(p, c, 0);
    }
}

tn_status extent_parse(struct ffi_arena *arena, const char *text, extent_lookup lookup,
                       void *context, struct extent *out, struct problem *problem)
{
    struct problem failure = {0};
    struct extent_parser p = {arena, out, lookup, context, &failure, NULL, 0};
    size_t length = strlen(text);
    if (length > 200)
        return problem_set(problem, TN_ERR_ARGUMENT,
                           "an expression of %zu bytes, at most 200", length);
    // Each byte of the text gives at most one step.
    *out = (struct extent){
        .text = arena_text(arena, text),
        .steps = arena_alloc(arena, (length + 1) * sizeof(struct extent_step))};
    if (!out->text || !out->steps)
        return problem_set(problem, TN_ERR_MEMORY, "out of memory");
    p.at = out->text;
    ffi_extent_parse_sum(&p);
    if (ffi_extent_ok(&p) && ffi_extent_peek(&p))
        ffi_extent_wrong(&p, "an operator or the end");
    return ffi_extent_ok(&p) ? TN_OK
                             : problem_set(problem, failure.status, "%s", failure.text);
}

int extent_variable(const struct extent *extent)
{
    bool alone = extent->num_steps == 1 && extent->steps[0].what == 'v';
    return alone ? (int)extent->steps[0].value : -1;
}

// --- running ---------------------------------------------------------------------------

// The quotient rounded down, or the remainder, which has the divisor's sign. The caller
// excludes b == 0 and INT64_MIN / -1.
static int64_t ffi_extent_divide(char what, int64_t a, int64_t b)
{
    int64_t quotient = a / b, rest = a % b;
    bool adjust = rest != 0 && (rest < 0) != (b < 0);
    if (what == '/')
        return adjust ? quotient - 1 : quotient;
    return adjust ? rest + b : rest;
}

// False on overflow and division by zero.
static bool ffi_extent_apply(char what, int64_t a, int64_t b, int64_t *out)
{
    switch (what) {
    case '+':
        return !__builtin_add_overflow(a, b, out);
    case '-':
        return !__builtin_sub_overflow(a, b, out);
    case '*':
        return !__builtin_mul_overflow(a, b, out);
    case '<':
        *out = a < b ? a : b;
        return true;
    case '>':
        *out = a > b ? a : b;
        return true;
    }
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    *out = ffi_extent_divide(what, a, b);
    return true;
}

tn_status extent_eval(const struct extent *extent, const int64_t *values, int64_t *out,
                      struct problem *problem)
{
    // Each level of nesting leaves at most three values on the stack: the left operands of
    // a sum and of a product, and the first argument of min or max.
    int64_t stack[EXTENT_MAX_DEPTH * 3 + 4];
    uint32_t depth = 0;
    bool good = true;
    for (uint32_t i = 0; good && i < extent->num_steps; i++) {
        const struct extent_step *step = &extent->steps[i];
        if (step->what == 'n' || step->what == 'v') {
            stack[depth++] = step->what == 'n' ? step->value : values[step->value];
        } else if (step->what == '~') {
            good = !__builtin_sub_overflow((int64_t)0, stack[depth - 1], &stack[depth - 1]);
        } else {
            depth--;
            good = ffi_extent_apply(step->what, stack[depth - 1], stack[depth],
                                    &stack[depth - 1]);
        }
    }
    if (!good)
        return problem_set(problem, TN_ERR_ARGUMENT,
                           "\"%s\" overflows 64 bits or divides by zero", extent->text);
    *out = stack[0];
    return TN_OK;
}
