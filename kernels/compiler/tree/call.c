// SPDX-License-Identifier: MIT
// Calls: which of the overloads fits.
#include "build.h"

#include <stdio.h>
#include <string.h>

// --- overloads -------------------------------------------------------------------------

static uint32_t argument_rank(struct translator *t, const struct function *f, uint32_t i,
                              const struct tree_expr *argument)
{
    const struct parameter *p = &f->parameters[i];
    uint32_t rank = RANK_EXACT;
    if (p->is_in)
        rank = convert_rank(t, argument->type, p->type);
    if (p->is_out && rank != RANK_NONE) {
        uint32_t back = convert_rank(t, p->type, argument->type);
        rank = back > rank ? back : rank;
    }
    return rank;
}

static bool tree_call_fits(struct translator *t, const struct function *f,
                           struct tree_expr **arguments, uint32_t count, bool must_be_exact)
{
    if (f->num_parameters != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = argument_rank(t, f, i, arguments[i]);
        if (rank == RANK_NONE || (must_be_exact && rank != RANK_EXACT))
            return false;
    }
    return true;
}

// Whether a is the better one for an argument and no worse for the others.
static bool tree_call_is_better(struct translator *t, const struct function *a,
                                const struct function *b, struct tree_expr **arguments,
                                uint32_t count)
{
    bool is_better_once = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank_a = argument_rank(t, a, i, arguments[i]);
        uint32_t rank_b = argument_rank(t, b, i, arguments[i]);
        if (rank_a > rank_b)
            return false;
        is_better_once = is_better_once || rank_a < rank_b;
    }
    return is_better_once;
}

static struct function *function_find(struct translator *t, struct symbol *symbol,
                                      struct tree_expr **arguments, uint32_t count,
                                      bool must_be_exact, const struct position *at)
{
    struct function *best = NULL;
    bool is_ambiguous = false;
    for (struct function *f = symbol->functions; f != NULL; f = f->next) {
        if (!tree_call_fits(t, f, arguments, count, must_be_exact))
            continue;
        if (best == NULL || tree_call_is_better(t, f, best, arguments, count)) {
            best = f;
            is_ambiguous = false;
        } else if (!tree_call_is_better(t, best, f, arguments, count)) {
            is_ambiguous = true;
        }
    }
    if (is_ambiguous)
        fail_at(t, at, "the call of '%.60s' is ambiguous: several functions fit as well",
                symbol->name->text);
    return best;
}

static void tree_call_append(char *text, size_t capacity, const char *more)
{
    size_t size = strlen(text);
    snprintf(text + size, capacity - size, "%s", more);
}

static void append_types(struct translator *t, char *text, size_t capacity,
                         struct tree_expr **arguments, const struct parameter *parameters,
                         uint32_t count)
{
    tree_call_append(text, capacity, "(");
    for (uint32_t i = 0; i < count; i++) {
        tree_call_append(text, capacity, i == 0 ? "" : ", ");
        tree_call_append(
            text, capacity,
            type_text(t, arguments != NULL ? arguments[i]->type : parameters[i].type));
    }
    tree_call_append(text, capacity, ")");
}

_Noreturn static void fail_call(struct translator *t, const struct name *name,
                                struct tree_expr **arguments, uint32_t count,
                                const struct position *at)
{
    char got[100] = "", candidates[100] = "";
    append_types(t, got, sizeof got, arguments, NULL, count);
    struct symbol *symbol = name->symbol;
    if (symbol != NULL && symbol->kind == SYMBOL_FUNCTION)
        for (struct function *f = symbol->functions; f != NULL; f = f->next) {
            tree_call_append(candidates, sizeof candidates,
                             candidates[0] == 0 ? "" : " or ");
            append_types(t, candidates, sizeof candidates, NULL, f->parameters,
                         f->num_parameters);
        }
    else
        tree_call_append(candidates, sizeof candidates, builtin_candidates(t, name));
    fail_at(t, at, "no '%.40s' fits arguments %s, expected %s", name->text, got,
            candidates);
}

// --- calls -----------------------------------------------------------------------------

static struct tree_expr *tree_call_of(struct translator *t, struct function *f,
                                      struct tree_expr **arguments, uint32_t count,
                                      const struct position *at)
{
    struct tree_expr *e = expr_new(t, EXPR_CALL, f->result, at);
    e->function = f;
    e->arguments = arguments;
    e->number = count;
    e->has_effects = true;
    for (uint32_t i = 0; i < count; i++) {
        if (f->parameters[i].is_out)
            expr_check_lvalue(t, arguments[i], "an out parameter");
        else
            arguments[i] =
                convert_to(t, arguments[i], f->parameters[i].type, "an argument");
        expr_child(t, e, arguments[i]);
    }
    if (t->function == NULL)
        fail_at(t, at, "'%.60s' is called outside of functions", f->name->text);
    struct call *call = compiler_allocate(t->c, sizeof *call);
    *call = (struct call){t->function->calls, f, *at};
    t->function->calls = call;
    return e;
}

struct tree_expr *function_value(struct translator *t, struct symbol *symbol,
                                 const struct position *at)
{
    struct function *f = symbol->functions;
    struct tree_expr *e = expr_new(t, EXPR_FUNCTION, type_scalar(t, TYPE_VOID), at);
    if (f->next != NULL || t->function == NULL)
        fail_at(t, at, "'%.60s' is an overloaded function, expected a single one",
                symbol->name->text);
    for (uint32_t i = 0; i < f->num_parameters; i++)
        if (!parameter_is_by_value(&f->parameters[i]))
            fail_at(t, at, "parameter %u of '%.60s' is not 'const in'", i + 1,
                    symbol->name->text);
    struct call *call = compiler_allocate(t->c, sizeof *call);
    *call = (struct call){t->function->calls, f, *at};
    t->function->calls = call;
    e->function = f;
    return e;
}

// GLSL's functions of images and of other stages.
static bool is_unsupported(const struct name *name)
{
    static const char *const beginnings[] = {
        "texture",       "texel",         "image",       "dFd",        "fwidth",
        "interpolateAt", "atomicCounter", "subpassLoad", "EmitVertex", "EmitStream",
        "EndPrimitive",  "EndStream",     "rayQuery",    "traceRay",   "debugPrintf"};
    for (uint32_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(name->text, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

struct tree_expr *expr_call(struct translator *t, const struct name *name,
                            struct tree_expr **arguments, uint32_t count,
                            const struct position *at)
{
    struct symbol *symbol = name->symbol;
    if (symbol != NULL && symbol->kind == SYMBOL_TYPE)
        return expr_construct(t, symbol->type, arguments, count, at);
    if (symbol != NULL && symbol->kind != SYMBOL_FUNCTION)
        fail_at(t, at, "'%.60s' is called, and is no function", name->text);
    bool is_builtin = builtin_exists(name);
    if (symbol == NULL && !is_builtin)
        fail_at(t, at, "function '%.60s' is not %s", name->text,
                is_unsupported(name) ? "supported" : "declared");
    for (uint32_t i = 0; i < 2; i++) { // exactly, then by conversions
        struct function *f =
            symbol == NULL ? NULL : function_find(t, symbol, arguments, count, i == 0, at);
        if (f != NULL)
            return tree_call_of(t, f, arguments, count, at);
        struct tree_expr *e =
            is_builtin ? builtin_call(t, name, arguments, count, i == 0, at) : NULL;
        if (e != NULL)
            return e;
    }
    fail_call(t, name, arguments, count, at);
}
