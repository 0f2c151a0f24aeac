// SPDX-License-Identifier: MIT
// Functions: declarations, and which of them the shader reaches.
#include "parse.h"

#include <string.h>

// --- declarations ----------------------------------------------------------------------

static bool has_same_parameters(const struct function *f,
                                const struct parameter *parameters, uint32_t count)
{
    if (f->num_parameters != count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (f->parameters[i].type != parameters[i].type)
            return false;
    return true;
}

static void make_function(struct translator *t, struct function *f)
{
    uint32_t types[MOST_PARAMETERS], count = f->num_parameters;
    f->ids = compiler_allocate(t->c, (count + 1) * sizeof *f->ids);
    for (uint32_t i = 0; i < count; i++) {
        types[i] = type_id(t, f->parameters[i].type, LAYOUT_NONE);
        if (!parameter_is_by_value(&f->parameters[i]))
            types[i] = ir_pointer(t->ir, StorageClassFunction, types[i]);
    }
    f->ir = ir_function(t->ir, type_id(t, f->result, LAYOUT_NONE), count, types, f->ids);
    if (t->c->source->flags & (GLSL_KEEPS_FUNCTIONS | GLSL_NOT_OPTIMISED))
        ir_name(t->ir, f->ir->head->id, f->name->text);
}

static void check_redeclared(struct translator *t, const struct function *f,
                             const struct type *result, const struct parameter *parameters,
                             const struct position *at)
{
    if (f->result != result)
        fail_at(t, at, "'%.60s' returns '%s', expected '%s' as on line %u", f->name->text,
                type_text(t, result), type_text(t, f->result), f->at.line);
    for (uint32_t i = 0; i < f->num_parameters; i++)
        if (f->parameters[i].is_in != parameters[i].is_in ||
            f->parameters[i].is_out != parameters[i].is_out)
            fail_at(t, &parameters[i].at,
                    "parameter %u of '%.60s' differs in 'in' and 'out' from line %u", i + 1,
                    f->name->text, f->at.line);
}

static struct function *
front_functions_find_or_add(struct translator *t, const struct type *result,
                            const struct name *name, struct parameter *parameters,
                            uint32_t count, const struct position *at)
{
    struct symbol *symbol = name->symbol;
    if (symbol == NULL || symbol->kind != SYMBOL_FUNCTION)
        symbol = symbol_declare(t, SYMBOL_FUNCTION, name, NULL, at);
    for (struct function *f = symbol->functions; f != NULL; f = f->next)
        if (has_same_parameters(f, parameters, count)) {
            check_redeclared(t, f, result, parameters, at);
            return f;
        }
    struct function *f = compiler_allocate(t->c, sizeof *f);
    f->name = name;
    f->at = *at;
    f->result = result;
    f->parameters = compiler_allocate(t->c, (count + 1) * sizeof *parameters);
    if (count != 0)
        memcpy(f->parameters, parameters, count * sizeof *parameters);
    f->num_parameters = count;
    f->next = symbol->functions;
    symbol->functions = f;
    if (t->last_function != NULL)
        t->last_function->later = f;
    else
        t->functions = f;
    t->last_function = f;
    make_function(t, f);
    return f;
}

static void front_functions_parse_parameter(struct translator *t, struct parameter *p)
{
    *p = (struct parameter){.at = t->token->at};
    for (;; t->token++) {
        uint32_t keyword = t->token->kind == TOKEN_NAME ? t->token->name->keyword : 0;
        if (keyword == KEYWORD_const)
            p->is_const = true;
        else if (keyword == KEYWORD_in || keyword == KEYWORD_inout)
            p->is_in = true, p->is_out = p->is_out || keyword == KEYWORD_inout;
        else if (keyword == KEYWORD_out)
            p->is_out = true;
        else if (keyword == KEYWORD_precise)
            p->is_precise = true;
        else if (keyword == KEYWORD_readonly)
            p->memory |= MEMORY_READONLY;
        else if (!(keyword >= KEYWORD_coherent && keyword < KEYWORD_precise) &&
                 !(keyword >= KEYWORD_highp && keyword <= KEYWORD_lowp))
            break;
    }
    p->is_in = p->is_in || !p->is_out;
    p->type = parse_type(t);
    if (t->token->kind == TOKEN_NAME) {
        p->at = t->token->at;
        p->name = expect_identifier(t, "a parameter's name");
        p->type = parse_array_suffix(t, p->type);
    }
    if (p->type->base == TYPE_VOID || type_is_unsized(p->type))
        fail_at(t, &p->at, "a parameter is of type '%s', expected one with a size",
                type_text(t, p->type));
    if (p->is_const && p->is_out)
        fail_at(t, &p->at, "a parameter is const and out");
    p->memory &= (uint8_t)~MEMORY_READONLY;
}

static void front_functions_define(struct translator *t, struct function *f)
{
    if (f->is_defined)
        fail_at(t, &f->at, "'%.60s' has two bodies with the same parameters",
                f->name->text);
    f->is_defined = true;
    t->function = f;
    t->function_needs = &f->needs;
    scope_open(t);
    start_block(t, ir_block(t->ir));
    for (uint32_t i = 0; i < f->num_parameters; i++) {
        const struct parameter *p = &f->parameters[i];
        use_type(t, p->type);
        if (p->name == NULL)
            continue;
        struct symbol *symbol =
            symbol_declare(t, SYMBOL_VARIABLE, p->name, p->type, &p->at);
        if (!parameter_is_by_value(p))
            decorate_pointer(t, f->ids[i], p->type);
        else if (p->type->base == TYPE_REFERENCE)
            ir_decorate(t->ir, f->ids[i], DecorationAliased, 0, NULL);
        symbol->id = f->ids[i];
        symbol->storage = StorageClassFunction;
        symbol->is_readonly = p->is_const;
        symbol->is_precise = p->is_precise;
        if (parameter_is_by_value(p)) {
            symbol->kind = SYMBOL_VALUE;
            symbol->value = expr_spec(t, p->type, f->ids[i], &p->at);
            symbol->value->is_spec = false;
        }
    }
    parse_body(t, f);
    scope_close(t);
    if (f->has_precise)
        precise_spread(t, f);
    t->function = NULL;
    t->function_needs = NULL;
    t->ir->at = NULL;
}

void function_declare(struct translator *t, const struct type *result,
                      const struct name *name, const struct position *at)
{
    struct parameter parameters[MOST_PARAMETERS];
    uint32_t count = 0;
    if (t->depth != 0)
        fail_at(t, at, "function '%.60s' is declared inside a function", name->text);
    expect(t, '(', "before the parameters");
    if (next_is_keyword(t, KEYWORD_void) && t->token[1].kind == TOKEN_PUNCTUATOR &&
        t->token[1].punctuator == ')')
        t->token++;
    while (!next_is(t, ')')) {
        if (count == MOST_PARAMETERS)
            fail_at(t, at, "'%.60s' has too many parameters, expected at most %d",
                    name->text, MOST_PARAMETERS);
        front_functions_parse_parameter(t, &parameters[count++]);
        if (!accept(t, ','))
            break;
    }
    expect(t, ')', "behind the parameters");
    struct function *f =
        front_functions_find_or_add(t, result, name, parameters, count, at);
    if (name == t->name_main) {
        if (count != 0 || result->base != TYPE_VOID)
            fail_at(t, at, "main() has parameters or a result, expected 'void main()'");
        t->main = f;
    }
    if (accept(t, ';'))
        return;
    if (!next_is(t, '{'))
        expect(t, '{', "before the function's body");
    f->at = *at;
    for (uint32_t i = 0; i < count; i++) // its names are those of the definition
        f->parameters[i] = parameters[i];
    front_functions_define(t, f);
}

// --- the end ---------------------------------------------------------------------------

enum { UNVISITED, ON_THE_WAY, CHECKED };

static void front_functions_check_calls(struct translator *t, struct function *f,
                                        uint32_t depth)
{
    if (depth > MOST_LEVELS)
        fail_at(t, &f->at, "functions call each other deeper than %d levels", MOST_LEVELS);
    f->mark = ON_THE_WAY;
    for (struct call *call = f->calls; call != NULL; call = call->next) {
        if (call->callee->mark == ON_THE_WAY)
            fail_at(t, &call->at, "'%.60s' calls itself%s, which GLSL does not have",
                    call->callee->name->text, call->callee == f ? "" : " by others");
        if (!call->callee->is_defined)
            fail_at(t, &call->at, "'%.60s' is called, and has no body",
                    call->callee->name->text);
        if (call->callee->mark == UNVISITED)
            front_functions_check_calls(t, call->callee, depth + 1);
    }
    f->mark = CHECKED;
}

// Appends what a function calls, and then the function.
static void front_functions_keep(struct translator *t, struct function *f,
                                 struct ir_function **last)
{
    if (f->mark != CHECKED)
        return;
    f->mark = UNVISITED;
    for (struct call *call = f->calls; call != NULL; call = call->next)
        front_functions_keep(t, call->callee, last);
    t->needs |= f->needs;
    if (*last == NULL)
        t->ir->functions = f->ir;
    else
        (*last)->next = f->ir;
    *last = f->ir;
    f->ir->next = NULL;
}

void functions_finish(struct translator *t)
{
    struct ir_function *last = NULL;
    if (t->main == NULL || !t->main->is_defined)
        fail_at(t, NULL, "the shader has no 'void main()'");
    for (struct function *f = t->functions; f != NULL; f = f->later)
        if (f->is_defined && f->mark == UNVISITED)
            front_functions_check_calls(t, f, 0);
    front_functions_keep(t, t->main, &last);
    if (t->c->source->flags & (GLSL_KEEPS_FUNCTIONS | GLSL_NOT_OPTIMISED))
        for (struct function *f = t->functions; f != NULL; f = f->later)
            if (f->is_defined)
                front_functions_keep(t, f, &last);
    t->ir->last_function = last;
    ir_entry_point(t->ir, t->main->ir, "main");
}
