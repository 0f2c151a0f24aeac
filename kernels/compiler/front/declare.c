// SPDX-License-Identifier: MIT
// Declarations: variables, constants, specialisation constants, and the shader's layouts.
#include "qualifiers.h"

bool declaration_is_next(struct translator *t)
{
    const struct glsl_token *token = t->token;
    if (token->kind != TOKEN_NAME)
        return false;
    uint32_t keyword = token->name->keyword;
    if (keyword == KEYWORD_struct || keyword == KEYWORD_coopmat ||
        keyword == KEYWORD_tensorLayoutNV || keyword == KEYWORD_tensorViewNV ||
        (keyword >= KEYWORDS_OF_TYPE_MAKERS && keyword < KEYWORDS_OF_QUALIFIERS))
        return true;
    if (!type_is_next(t))
        return false;
    return !(token[1].kind == TOKEN_PUNCTUATOR && token[1].punctuator == '(');
}

// --- constants -------------------------------------------------------------------------

static void declare_spec(struct translator *t, const struct qualifiers *q,
                         const struct type *type, const struct name *name,
                         struct tree_expr *value, const struct position *at)
{
    if (t->depth != 0 || !q->is_const)
        fail_at(t, at, "specialisation constant '%.60s' is no const of the whole shader",
                name->text);
    if (!type_is_number(type) || !type_is_scalar(type) || value == NULL ||
        value->kind != EXPR_CONSTANT)
        fail_at(t, at,
                "specialisation constant '%.60s' is not of a scalar type with a "
                "constant value",
                name->text);
    uint32_t type_of = type_id(t, type, LAYOUT_NONE);
    // The same number for a size of workgroups and a constant is one constant.
    uint32_t id = spec_of_number(t, q->constant_id,
                                 constant_bits(type->base, value->bits[0]), type_of);
    if (t->ir->definitions[id]->type != type_of)
        fail_at(t, at, "constant_id %u is declared twice, with different types",
                q->constant_id);
    if (t->c->source->flags & (GLSL_KEEPS_FUNCTIONS | GLSL_NOT_OPTIMISED))
        ir_name(t->ir, id, name->text);
    struct symbol *symbol = symbol_declare(t, SYMBOL_VALUE, name, type, at);
    symbol->value = expr_spec(t, type, id, at);
    symbol->is_readonly = true;
}

// --- variables -------------------------------------------------------------------------

static const struct type *with_size(struct translator *t, const struct type *type,
                                    const struct tree_expr *value,
                                    const struct position *at)
{
    if (!type_is_unsized(type))
        return type;
    if (value == NULL)
        fail_at(t, at, "an array has no size and no values");
    return value->type;
}

static void declare_local(struct translator *t, const struct qualifiers *q,
                          const struct type *type, const struct name *name,
                          struct tree_expr *value, const struct position *at)
{
    type = with_size(t, type, value, at);
    if (q->is_const && value == NULL)
        fail_at(t, at, "constant '%.60s' has no value", name->text);
    if (q->is_const && expr_is_constant(value)) {
        struct symbol *symbol = symbol_declare(t, SYMBOL_VALUE, name, type, at);
        symbol->value = value;
        symbol->is_readonly = true;
        return;
    }
    uint32_t id = value != NULL ? emit_value(t, value) : 0;
    struct symbol *symbol = variable_local(t, name, type, at);
    symbol->is_readonly = q->is_const;
    symbol->is_precise = q->is_precise;
    t->function->has_precise = t->function->has_precise || q->is_precise;
    if (q->is_precise)
        precise_mark(t, symbol->id);
    if (value != NULL) {
        struct access access;
        local_access(type, symbol->id, &access);
        access_store(t, &access, id);
    }
}

static void add_initial(struct translator *t, struct symbol *symbol,
                        struct tree_expr *value)
{
    if (t->main != NULL && t->main->is_defined) {
        if (value->kind != EXPR_CONSTANT)
            fail_at(t, &symbol->at,
                    "'%.60s' is computed behind main(), expected a constant value",
                    symbol->name->text);
        symbol->initial = constant_id(t, value->type, value->bits);
        return;
    }
    struct initial *initial = compiler_allocate(t->c, sizeof *initial);
    *initial = (struct initial){NULL, symbol, value};
    *t->last_initial = initial;
    t->last_initial = &initial->next;
}

static void declare_global(struct translator *t, const struct qualifiers *q,
                           const struct type *type, const struct name *name,
                           struct tree_expr *value, const struct position *at)
{
    type = with_size(t, type, value, at);
    if (q->is_const && (value == NULL || !expr_is_constant(value)))
        fail_at(t, value != NULL ? &value->at : at,
                "constant '%.60s' has no constant value", name->text);
    if (q->is_const) {
        struct symbol *symbol = symbol_declare(t, SYMBOL_VALUE, name, type, at);
        symbol->value = value;
        symbol->is_readonly = true;
        return;
    }
    if (q->is_uniform || q->is_buffer || q->is_in || q->is_out)
        fail_at(t, at, "'%.60s' is a %s outside of a block, which kernels do not have",
                name->text,
                q->is_uniform  ? "uniform"
                : q->is_buffer ? "buffer"
                               : "stage's input or output");
    if (q->is_shared && value != NULL)
        fail_at(t, at, "shared variable '%.60s' has a value", name->text);
    struct symbol *symbol = symbol_declare(t, SYMBOL_VARIABLE, name, type, at);
    symbol->storage = q->is_shared ? StorageClassWorkgroup : StorageClassPrivate;
    symbol->memory = q->memory;
    if (value != NULL)
        add_initial(t, symbol, value);
}

static void declare_variable(struct translator *t, const struct qualifiers *q,
                             const struct type *type, const struct name *name,
                             const struct position *at)
{
    struct tree_expr *value = NULL;
    if (type->base == TYPE_VOID)
        fail_at(t, at, "variable '%.60s' is of type 'void'", name->text);
    type = parse_array_suffix(t, type);
    if (accept(t, '='))
        value = parse_initialiser(t, type);
    if (q->constant_id != UINT32_MAX)
        declare_spec(t, q, type, name, value, at);
    else if (t->depth == 0)
        declare_global(t, q, type, name, value, at);
    else if (q->is_shared || q->is_uniform || q->is_buffer || q->is_in || q->is_out)
        fail_at(t, at, "'%.60s' is declared in a function, expected a local variable",
                name->text);
    else
        declare_local(t, q, type, name, value, at);
}

// --- declarations ----------------------------------------------------------------------

// layout(...) in;  layout(...) buffer;  layout(...) uniform;
static void declare_layout(struct translator *t, const struct qualifiers *q)
{
    if (q->is_in && q->has_local_size)
        return;
    if (!q->has_layout || (!q->is_buffer && !q->is_uniform))
        fail_at(t, &q->at, "qualifiers without a declaration");
    if (q->layout != LAYOUT_NONE)
        t->default_layout[q->is_buffer] = q->layout;
    if (q->is_row_major || q->is_column_major)
        t->default_row_major[q->is_buffer] = q->is_row_major;
}

static void check_qualifiers(struct translator *t, const struct qualifiers *q)
{
    if (q->has_local_size && !q->is_in)
        fail_at(t, &q->at, "local_size is no layout of 'in'");
    if (q->is_const + q->is_uniform + q->is_buffer + q->is_shared + q->is_in + q->is_out >
        1)
        fail_at(t, &q->at,
                "qualifiers exclude each other, expected one of 'const', "
                "'uniform', 'buffer' and 'shared'");
}

// name ... of a type, until the semicolon.
static void declare_names(struct translator *t, const struct qualifiers *q,
                          const struct type *type)
{
    for (;;) {
        struct position at = t->token->at;
        const struct name *name = expect_identifier(t, "a name to declare");
        if (next_is(t, '(') && t->depth == 0) {
            function_declare(t, type, name, &at);
            return;
        }
        declare_variable(t, q, type, name, &at);
        if (!accept(t, ','))
            break;
    }
    if (!next_is(t, ';'))
        fail_at(t, &t->token->at, "found %s, expected ';' behind a declaration",
                token_text(t, t->token));
    t->token++;
}

// precision highp float;
static bool skip_precision(struct translator *t)
{
    if (!accept_keyword(t, KEYWORD_precision))
        return false;
    struct qualifiers q;
    parse_qualifiers(t, &q);
    parse_type(t);
    expect(t, ';', "behind a precision");
    return true;
}

void parse_declaration(struct translator *t)
{
    struct qualifiers q;
    if (skip_precision(t))
        return;
    parse_qualifiers(t, &q);
    check_qualifiers(t, &q);
    if (q.is_any && accept(t, ';')) {
        declare_layout(t, &q);
        return;
    }
    if (block_is_next(t, &q)) {
        parse_block(t, &q);
        return;
    }
    if (q.is_any && !type_is_next(t) && t->token->kind == TOKEN_NAME &&
        t->token->name->symbol != NULL) { // `precise x;`, `coherent x;`
        struct symbol *symbol = t->token++->name->symbol;
        symbol->is_precise = symbol->is_precise || q.is_precise;
        if (q.is_precise && t->function != NULL && symbol->kind == SYMBOL_VARIABLE) {
            t->function->has_precise = true;
            precise_mark(t, symbol_id(t, symbol));
        }
        expect(t, ';', "behind a qualified name");
        return;
    }
    const struct type *type = parse_type(t);
    if (!accept(t, ';')) // a struct alone declares its name
        declare_names(t, &q, type);
}
