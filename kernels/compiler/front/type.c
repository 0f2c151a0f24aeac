// SPDX-License-Identifier: MIT
// The parser of types, structs and blocks.
#include "qualifiers.h"

// --- types -----------------------------------------------------------------------------

static const struct {
    uint8_t base, columns, rows;
} keyword_types[] = {
#define ROW(word, component, columns, rows) {TYPE_##component, columns, rows},
    KEYWORD_TYPES(ROW)
#undef ROW
};

// Fails where the type's extension is off. Storage extensions have the scalar types too.
static void check_extension(struct translator *t, enum base base,
                            const struct glsl_token *token)
{
    uint64_t any_of = 0;
    if (base == TYPE_INT8 || base == TYPE_UINT8)
        any_of = EXTENSION_BIT(STORAGE_8) | EXTENSION_BIT(INT8);
    else if (base == TYPE_INT16 || base == TYPE_UINT16)
        any_of = EXTENSION_BIT(STORAGE_16) | EXTENSION_BIT(INT16);
    else if (base == TYPE_INT64 || base == TYPE_UINT64)
        any_of = EXTENSION_BIT(INT64);
    else if (base == TYPE_FLOAT16)
        any_of = EXTENSION_BIT(STORAGE_16) | EXTENSION_BIT(FLOAT16);
    else if (base == TYPE_BFLOAT16)
        any_of = EXTENSION_BIT(BFLOAT16);
    extension_check(t, any_of, &token->at, token->name->text);
}

bool type_is_next(struct translator *t)
{
    const struct glsl_token *token = t->token;
    if (token->kind != TOKEN_NAME)
        return false;
    if (token->name->keyword != KEYWORD_NONE)
        return token->name->keyword < KEYWORDS_OF_TYPE_MAKERS;
    return token->name->symbol != NULL && token->name->symbol->kind == SYMBOL_TYPE;
}

// coopmat<type, scope, rows, columns, use>
static const struct type *parse_coopmat(struct translator *t)
{
    const struct glsl_token *token = t->token++;
    uint32_t ids[4];
    extension_check(t, EXTENSION_BIT(MATRIX), &token->at, "coopmat");
    expect(t, '<', "behind 'coopmat'");
    const struct glsl_token *at = t->token;
    const struct type *component = parse_type(t);
    if (!type_is_number(component) || !type_is_scalar(component) ||
        component->base == TYPE_BOOL)
        fail_at(t, &at->at, "a cooperative matrix of type '%s', expected a number's type",
                type_text(t, component));
    for (uint32_t i = 0; i < 4; i++) {
        expect(t, ',', "and five parameters of 'coopmat'");
        struct tree_expr *e = parse_additive(t);
        if (!expr_is_constant(e) || !base_is_int(e->type->base) || !type_is_scalar(e->type))
            fail_at(t, &e->at, "a parameter of 'coopmat' is no constant integer");
        coopmat_check_parameter(t, e, i);
        e = convert_base(t, e, TYPE_UINT32);
        ids[i] = e->is_spec ? e->id : ir_u32(t->ir, (uint32_t)e->bits[0]);
    }
    expect(t, '>', "behind the parameters of 'coopmat'");
    return type_coopmat(t, component, ids[0], ids[1], ids[2], ids[3]);
}

// tensorLayoutNV<dimensions, clamp mode>
// tensorViewNV<dimensions, has dimensions, permutation ...>
static const struct type *parse_tensor(struct translator *t, enum base base)
{
    const struct glsl_token *token = t->token++;
    uint64_t values[8] = {0};
    uint32_t count = 0;
    extension_check(t, EXTENSION_BIT(MATRIX_2), &token->at, token->name->text);
    expect(t, '<', "behind a tensor's type");
    do {
        struct tree_expr *e = parse_additive(t);
        if (e->kind != EXPR_CONSTANT || !type_is_number(e->type) ||
            !type_is_scalar(e->type) || base_is_float(e->type->base) || count == 7)
            fail_at(t, &e->at,
                    "a parameter of '%s' is no constant integer, or one too many",
                    token->name->text);
        values[count++] = e->bits[0];
    } while (accept(t, ','));
    expect(t, '>', "behind a tensor's parameters");
    if (values[0] < 1 || values[0] > 5)
        fail_at(t, &token->at, "'%s' has %u dimensions, expected 1 to 5", token->name->text,
                (uint32_t)values[0]);
    return type_tensor_of(t, base, values, count, &token->at);
}

static const struct type *parse_struct_type(struct translator *t)
{
    struct record *record = compiler_allocate(t->c, sizeof *record);
    struct qualifiers none = {.set = UINT32_MAX};
    record->at = t->token++->at;
    if (!next_is(t, '{'))
        record->name = expect_identifier(t, "a struct's name");
    parse_struct(t, record, &none);
    const struct type *type = type_struct(t, record);
    record->contents = type;
    if (record->name != NULL)
        symbol_declare(t, SYMBOL_TYPE, record->name, type, &record->at);
    return type;
}

static const struct type *parse_plain_type(struct translator *t)
{
    const struct glsl_token *token = t->token;
    if (!type_is_next(t)) {
        if (token->kind == TOKEN_NAME && token->name->keyword >= KEYWORDS_TAKEN)
            fail_at(t, &token->at, "'%.60s' is not supported, expected a type",
                    token->name->text);
        fail_at(t, &token->at, "found %s, expected a type", token_text(t, token));
    }
    uint32_t keyword = token->name->keyword;
    if (keyword == KEYWORD_struct)
        return parse_struct_type(t);
    if (keyword == KEYWORD_coopmat)
        return parse_coopmat(t);
    if (keyword == KEYWORD_tensorLayoutNV || keyword == KEYWORD_tensorViewNV)
        return parse_tensor(t, keyword == KEYWORD_tensorLayoutNV ? TYPE_TENSOR_LAYOUT
                                                                 : TYPE_TENSOR_VIEW);
    t->token++;
    if (keyword == KEYWORD_NONE)
        return token->name->symbol->type;
    if (keyword >= KEYWORDS_OF_TYPES)
        fail_at(t, &token->at, "'%.60s' is not supported, expected another type",
                token->name->text);
    check_extension(t, keyword_types[keyword - 1].base, token);
    return type_number(t, keyword_types[keyword - 1].base,
                       keyword_types[keyword - 1].columns, keyword_types[keyword - 1].rows);
}

// One [...]: the length, or the id of a specialisation constant, or neither.
static void parse_length(struct translator *t, uint32_t *length, uint32_t *id)
{
    *length = 0;
    *id = 0;
    if (accept(t, ']'))
        return;
    struct position at = t->token->at;
    struct tree_expr *e = parse_conditional(t);
    if (!expr_is_constant(e) || !base_is_int(e->type->base) || !type_is_scalar(e->type))
        fail_at(t, &at, "the size of an array is no constant integer");
    if (e->kind == EXPR_CONSTANT && (e->bits[0] == 0 || e->bits[0] > INT32_MAX))
        fail_at(t, &at, "the size of an array is %lld, expected 1 to %d",
                (long long)e->bits[0], INT32_MAX);
    if (e->is_spec)
        *id = e->id;
    else
        *length = (uint32_t)e->bits[0];
    expect(t, ']', "behind the size of an array");
}

const struct type *parse_array_suffix(struct translator *t, const struct type *type)
{
    enum { MOST_DIMENSIONS = 16 };
    uint32_t lengths[MOST_DIMENSIONS], ids[MOST_DIMENSIONS], count = 0;
    struct position at = t->token->at;
    while (accept(t, '[')) {
        if (count == MOST_DIMENSIONS)
            fail_at(t, &at, "an array has too many dimensions, expected at most %d",
                    MOST_DIMENSIONS);
        parse_length(t, &lengths[count], &ids[count]);
        count++;
    }
    for (uint32_t left = count; left > 0; left--) {
        if (type->base == TYPE_VOID || type_is_unsized(type))
            fail_at(t, &at, "an array of type '%s', expected elements with a size",
                    type_text(t, type));
        type = type_array(t, type, lengths[left - 1], ids[left - 1]);
    }
    return type;
}

const struct type *parse_type(struct translator *t)
{
    enter_level(t);
    const struct type *type = parse_array_suffix(t, parse_plain_type(t));
    t->level--;
    return type;
}

// --- structs and blocks ----------------------------------------------------------------

static void add_member(struct translator *t, struct record *record, uint32_t *capacity,
                       const struct type_member *member)
{
    for (uint32_t i = 0; i < record->num_members; i++)
        if (record->members[i].name == member->name)
            fail_at(t, &member->at, "'%.60s' is a member twice: see line %u",
                    member->name->text, record->members[i].at.line);
    if (record->num_members == 1024)
        fail_at(t, &member->at, "a struct has more than 1024 members");
    if (record->num_members > 0 &&
        type_is_unsized(record->members[record->num_members - 1].type))
        fail_at(t, &record->members[record->num_members - 1].at,
                "an array without a size is not the last member");
    if (record->num_members == *capacity)
        record->members = compiler_grow(t->c, record->members, record->num_members,
                                        capacity, sizeof *member);
    record->members[record->num_members++] = *member;
}

static void check_member(struct translator *t, const struct qualifiers *of,
                         const struct qualifiers *q, const struct type_member *member)
{
    bool is_buffer = of->is_buffer;
    if (member->type->base == TYPE_VOID)
        fail_at(t, &member->at, "member '%.60s' is of type 'void'", member->name->text);
    if (type_is_unsized(member->type) && !is_buffer)
        fail_at(t, &member->at, "member '%.60s' is an array without a size",
                member->name->text);
    if (q->is_uniform || q->is_buffer || q->is_shared || q->is_const || q->is_in ||
        q->is_out || q->binding != UINT32_MAX)
        fail_at(t, &q->at, "member '%.60s' has a qualifier that members do not have",
                member->name->text);
    const struct type *type = member->type;
    while (type->base == TYPE_ARRAY)
        type = type->element;
    if (type->base >= TYPE_COOPMAT && of->layout != LAYOUT_NONE)
        fail_at(t, &member->at, "a block has a member of type '%s'", type_text(t, type));
}

// The members in braces. `of`: the block's qualifiers.
void parse_struct(struct translator *t, struct record *record, const struct qualifiers *of)
{
    uint32_t capacity = 0;
    expect(t, '{', "before the members");
    enter_level(t);
    while (!next_is(t, '}')) {
        struct qualifiers q;
        parse_qualifiers(t, &q);
        const struct type *type = parse_type(t);
        do {
            struct type_member member = {.at = t->token->at,
                                         .offset = q.offset,
                                         .align = q.align != 0 ? q.align : of->align,
                                         .memory = memory_join(q.memory, of->memory)};
            member.is_row_major =
                q.is_row_major || (of->is_row_major && !q.is_column_major);
            member.name = expect_identifier(t, "a member's name");
            member.type = parse_array_suffix(t, type);
            check_member(t, of, &q, &member);
            add_member(t, record, &capacity, &member);
        } while (accept(t, ','));
        expect(t, ';', "behind a member");
    }
    t->level--;
    if (record->num_members == 0)
        fail_at(t, &t->token->at, "a struct has no members, expected at least one");
    expect(t, '}', "behind the members");
}

bool block_is_next(struct translator *t, const struct qualifiers *q)
{
    const struct glsl_token *token = t->token;
    return (q->is_buffer || q->is_uniform || q->is_shared) && token->kind == TOKEN_NAME &&
           token->name->keyword == KEYWORD_NONE && token[1].kind == TOKEN_PUNCTUATOR &&
           (token[1].punctuator == '{' || (q->is_reference && token[1].punctuator == ';'));
}

// layout(buffer_reference) buffer Name; and then with its members.
static void parse_reference(struct translator *t, const struct qualifiers *q,
                            const struct name *name, const struct position *at)
{
    struct symbol *symbol = name->symbol;
    struct record *record;
    if (symbol == NULL || symbol->kind != SYMBOL_TYPE ||
        symbol->type->base != TYPE_REFERENCE || symbol->type->record->contents != NULL) {
        record = compiler_allocate(t->c, sizeof *record);
        record->name = name;
        record->at = *at;
        symbol = symbol_declare(t, SYMBOL_TYPE, name, type_reference(t, record), at);
    }
    record = symbol->type->record;
    if (accept(t, ';'))
        return;
    record->layout = q->layout != LAYOUT_NONE ? q->layout : LAYOUT_STD430;
    record->reference_align = q->reference_align != 0 ? q->reference_align : 16;
    parse_struct(t, record, q);
    record->contents = type_struct(t, record);
    const struct type *contents = record->contents;
    ((struct type *)symbol->type)->needs |=
        contents->needs | (contents->narrow & NARROW_INT8 ? NEED(BUFFER_8) : 0) |
        (contents->narrow & ~NARROW_INT8 ? NEED(BUFFER_16) : 0);
    expect(t, ';', "behind a block");
}

static void declare_members(struct translator *t, struct symbol *block)
{
    const struct record *record = block->type->record;
    for (uint32_t i = 0; i < record->num_members; i++) {
        const struct type_member *member = &record->members[i];
        struct symbol *symbol =
            symbol_declare(t, SYMBOL_MEMBER, member->name, member->type, &member->at);
        symbol->block = block;
        symbol->member = i;
    }
}

static uint32_t block_storage(const struct qualifiers *q)
{
    return q->is_push_constant ? StorageClassPushConstant
           : q->is_uniform     ? StorageClassUniform
                               : StorageClassStorageBuffer;
}

static void front_type_check_block(struct translator *t, const struct qualifiers *q,
                                   const struct name *name)
{
    if (t->depth != 0)
        fail_at(t, &q->at, "block '%.60s' is declared in a function", name->text);
    if (q->is_shared)
        fail_at(t, &q->at, "a shared block is not supported");
    if (q->is_push_constant && !q->is_uniform)
        fail_at(t, &q->at, "a push_constant block is no uniform block");
    if (!q->is_push_constant && q->binding == UINT32_MAX)
        fail_at(t, &q->at, "block '%.60s' has no binding, expected 'layout(binding = ...)'",
                name->text);
    if (q->is_push_constant && t->has_push_constant)
        fail_at(t, &q->at, "'%.60s' is a second push_constant block, expected one",
                name->text);
    t->has_push_constant = t->has_push_constant || q->is_push_constant;
    if (q->is_push_constant && (q->binding != UINT32_MAX || q->set != UINT32_MAX))
        fail_at(t, &q->at, "a push_constant block has a set or binding");
}

void parse_block(struct translator *t, const struct qualifiers *q)
{
    struct position at = t->token->at;
    const struct name *name = expect_identifier(t, "a block's name");
    struct qualifiers with = *q;
    if (q->layout == LAYOUT_NONE)
        with.layout =
            q->is_push_constant ? LAYOUT_STD430 : t->default_layout[q->is_uniform ? 0 : 1];
    with.is_row_major = q->is_row_major || (t->default_row_major[q->is_uniform ? 0 : 1] &&
                                            !q->is_column_major);
    if (q->is_reference) {
        parse_reference(t, &with, name, &at);
        return;
    }
    front_type_check_block(t, q, name);
    struct record *record = compiler_allocate(t->c, sizeof *record);
    *record = (struct record){.name = name, .at = at, .is_uniform = q->is_uniform};
    parse_struct(t, record, &with);
    record->layout = with.layout;
    const struct type *type = record->contents = type_struct(t, record);
    struct symbol *symbol;
    if (next_is(t, ';')) { // its members are known by their own names
        symbol = compiler_allocate(t->c, sizeof *symbol);
        symbol->kind = SYMBOL_VARIABLE;
        symbol->name = name;
        symbol->type = type;
        symbol->at = at;
        declare_members(t, symbol);
    } else {
        at = t->token->at;
        const struct name *instance =
            expect_identifier(t, "a name of the block's instance");
        type = parse_array_suffix(t, type);
        symbol = symbol_declare(t, SYMBOL_VARIABLE, instance, type, &at);
    }
    symbol->storage = block_storage(q);
    symbol->layout = with.layout;
    symbol->set = q->set != UINT32_MAX ? q->set : 0;
    symbol->binding = q->binding;
    symbol->is_readonly = q->is_uniform;
    expect(t, ';', "behind a block");
    // Code that is not optimised has its interface whole: tools read it.
    if (t->c->source->flags & GLSL_NOT_OPTIMISED)
        symbol_id(t, symbol);
}
