// SPDX-License-Identifier: MIT
// Statements.
#include "parse.h"

#include <string.h>

struct hints {
    uint32_t loop, selection; // control masks
    uint32_t length;          // operand of DependencyLength; 0: none
};

static void statement_parse_statement(struct translator *t);

// --- hints -----------------------------------------------------------------------------

static void set_hint(struct translator *t, struct hints *hints,
                     const struct glsl_token *token)
{
    const char *text = token->name->text;
    if (strcmp(text, "unroll") == 0)
        hints->loop |= LoopControlUnroll;
    else if (strcmp(text, "dont_unroll") == 0 || strcmp(text, "loop") == 0)
        hints->loop |= LoopControlDontUnroll;
    else if (strcmp(text, "dependency_infinite") == 0)
        hints->loop |= LoopControlDependencyInfinite;
    else if (strcmp(text, "flatten") == 0)
        hints->selection |= SelectionControlFlatten;
    else if (strcmp(text, "branch") == 0 || strcmp(text, "dont_flatten") == 0)
        hints->selection |= SelectionControlDontFlatten;
    else if (strcmp(text, "dependency_length") == 0) {
        expect(t, '(', "and a length");
        hints->loop |= LoopControlDependencyLength;
        hints->length = parse_constant_uint(t, "dependency_length");
        expect(t, ')', "behind the length");
    } else {
        fail_at(t, &token->at, "attribute '%.60s' is not supported", text);
    }
}

// [[unroll]] and so on.
static void parse_hints(struct translator *t, struct hints *hints)
{
    memset(hints, 0, sizeof *hints);
    while (next_is(t, '[') && t->token[1].kind == TOKEN_PUNCTUATOR &&
           t->token[1].punctuator == '[') {
        extension_check(t, EXTENSION_BIT(CONTROL_FLOW), &t->token->at, "[[...]]");
        t->token += 2;
        do {
            const struct glsl_token *token = t->token++;
            if (token->kind != TOKEN_NAME)
                fail_at(t, &token->at, "found %s, expected an attribute",
                        token_text(t, token));
            set_hint(t, hints, token);
        } while (accept(t, ','));
        expect(t, ']', "behind an attribute");
        expect(t, ']', "behind an attribute");
    }
}

// --- selections ------------------------------------------------------------------------

static void parse_scoped(struct translator *t)
{
    scope_open(t);
    statement_parse_statement(t);
    scope_close(t);
}

static struct tree_expr *parse_condition(struct translator *t, const char *what)
{
    if (declaration_is_next(t))
        fail_at(t, &t->token->at, "a declaration in the condition of '%s' is not supported",
                what);
    struct tree_expr *e = parse_expression(t);
    if (e->type != type_scalar(t, TYPE_BOOL))
        fail_at(t, &e->at, "the condition of '%s' is of type '%s', expected 'bool'", what,
                type_text(t, e->type));
    return e;
}

static void parse_if(struct translator *t, const struct hints *hints)
{
    expect(t, '(', "behind 'if'");
    uint32_t condition = emit_value(t, parse_condition(t, "if"));
    expect(t, ')', "behind the condition");
    struct ir_block *then = ir_block(t->ir), *merge = ir_block(t->ir);
    struct ir_block *header = t->ir->at, *otherwise = NULL;
    start_block(t, then);
    parse_scoped(t);
    branch_to(t, merge);
    struct ir_block *end = t->ir->at;
    if (accept_keyword(t, KEYWORD_else)) {
        otherwise = ir_block(t->ir);
        start_block(t, otherwise);
        parse_scoped(t);
        branch_to(t, merge);
        end = t->ir->at;
    }
    t->ir->at = header;
    IR_EMIT(t->ir, OpSelectionMerge, 0, merge->id, hints->selection);
    IR_EMIT(t->ir, OpBranchConditional, 0, condition, then->id,
            otherwise != NULL ? otherwise->id : merge->id);
    t->ir->at = end;
    start_block(t, merge);
}

struct switched {
    uint32_t *operands; // selector, default, then values and blocks
    uint32_t count, capacity;
    uint64_t *values; // so far
    uint32_t num_values, capacity_values;
    struct ir_block *otherwise, *label; // of the last case
    const struct type *type;
};

static void statement_add_word(struct translator *t, struct switched *s, uint32_t word)
{
    if (s->count == s->capacity)
        s->operands =
            compiler_grow(t->c, s->operands, s->count, &s->capacity, sizeof *s->operands);
    s->operands[s->count++] = word;
}

// `case VALUE:` or `default:`. Labels behind each other are one block's.
static void parse_case(struct translator *t, struct switched *s, bool is_first)
{
    struct position at = t->token->at;
    struct ir_block *block = t->ir->at;
    if (is_first || block != s->label || block->insts.first != NULL) {
        s->label = block = ir_block(t->ir);
        if (!is_first)
            branch_to(t, block);
        start_block(t, block);
    }
    if (accept_keyword(t, KEYWORD_default)) {
        if (s->otherwise != NULL)
            fail_at(t, &at, "a switch has two defaults");
        s->otherwise = block;
    } else {
        t->token++;
        struct tree_expr *e = parse_expression(t);
        if (e->kind != EXPR_CONSTANT || !base_is_int(e->type->base) ||
            !type_is_scalar(e->type))
            fail_at(t, &at, "a case has no constant integer");
        e = convert_base(t, e, s->type->base);
        for (uint32_t i = 0; i < s->num_values; i++)
            if (s->values[i] == e->bits[0])
                fail_at(t, &at, "a switch has two cases of %lld", (long long)e->bits[0]);
        if (s->num_values == 4096)
            fail_at(t, &at, "a switch has more than 4096 cases");
        if (s->num_values == s->capacity_values)
            s->values = compiler_grow(t->c, s->values, s->num_values, &s->capacity_values,
                                      sizeof *s->values);
        s->values[s->num_values++] = e->bits[0];
        statement_add_word(t, s, (uint32_t)(e->bits[0] & 0xffffffffu));
        if (base_width(s->type->base) == 64)
            statement_add_word(t, s, (uint32_t)(e->bits[0] >> 32));
        statement_add_word(t, s, block->id);
    }
    expect(t, ':', "behind a case");
}

static void parse_cases(struct translator *t, struct switched *s)
{
    bool is_first = true;
    while (!next_is(t, '}')) {
        if (next_is_keyword(t, KEYWORD_case) || next_is_keyword(t, KEYWORD_default)) {
            parse_case(t, s, is_first);
            is_first = false;
        } else {
            if (is_first)
                fail_at(t, &t->token->at, "found %s, expected a case",
                        token_text(t, t->token));
            statement_parse_statement(t);
        }
    }
    if (is_first)
        fail_at(t, &t->token->at, "a switch has no cases");
}

static void parse_switch(struct translator *t, const struct hints *hints)
{
    struct target target = {t->target, ir_block(t->ir), NULL, false};
    struct switched s = {0};
    expect(t, '(', "behind 'switch'");
    struct tree_expr *e = parse_expression(t);
    if (!base_is_int(e->type->base) || !type_is_scalar(e->type))
        fail_at(t, &e->at, "a switch is over type '%s', expected an integer",
                type_text(t, e->type));
    s.type = e->type;
    statement_add_word(t, &s, emit_value(t, e));
    statement_add_word(t, &s, target.on_break->id);
    expect(t, ')', "behind the value of 'switch'");
    expect(t, '{', "before the cases");
    struct ir_block *header = t->ir->at;
    t->target = &target;
    scope_open(t);
    parse_cases(t, &s);
    scope_close(t);
    t->token++;
    t->target = target.outer;
    branch_to(t, target.on_break);
    struct ir_block *end = t->ir->at;
    t->ir->at = header;
    if (s.otherwise != NULL)
        s.operands[1] = s.otherwise->id;
    IR_EMIT(t->ir, OpSelectionMerge, 0, target.on_break->id, hints->selection);
    ir_emit(t->ir, OpSwitch, 0, s.count, s.operands);
    t->ir->at = end;
    start_block(t, target.on_break);
}

// --- loops -----------------------------------------------------------------------------

struct loop {
    struct target target;
    struct ir_block *header, *body;
};

static void open_loop(struct translator *t, struct loop *loop)
{
    loop->target = (struct target){t->target, ir_block(t->ir), ir_block(t->ir), false};
    loop->header = ir_block(t->ir);
    loop->body = ir_block(t->ir);
    branch_to(t, loop->header);
    start_block(t, loop->header);
}

static void emit_loop_merge(struct translator *t, const struct loop *loop,
                            const struct hints *hints, struct ir_block *next)
{
    uint32_t operands[4] = {loop->target.on_break->id, loop->target.on_continue->id,
                            hints->loop, hints->length};
    ir_emit(t->ir, OpLoopMerge, 0, hints->loop & LoopControlDependencyLength ? 4 : 3,
            operands);
    IR_EMIT(t->ir, OpBranch, 0, next->id);
    start_block(t, next);
}

static bool is_always(const struct tree_expr *condition)
{
    return condition == NULL || (condition->kind == EXPR_CONSTANT && condition->bits[0]);
}

static void emit_test(struct translator *t, const struct loop *loop,
                      const struct tree_expr *condition, struct ir_block *on_true)
{
    if (is_always(condition))
        IR_EMIT(t->ir, OpBranch, 0, on_true->id);
    else
        IR_EMIT(t->ir, OpBranchConditional, 0, emit_value(t, condition), on_true->id,
                loop->target.on_break->id);
}

// The part that `for` and `while` share: test, body, step.
static void run_loop(struct translator *t, const struct hints *hints,
                     const struct tree_expr *condition, const struct tree_expr *step,
                     struct loop *loop)
{
    emit_loop_merge(t, loop, hints, ir_block(t->ir));
    emit_test(t, loop, condition, loop->body);
    start_block(t, loop->body);
    t->target = &loop->target;
    parse_scoped(t);
    t->target = loop->target.outer;
    branch_to(t, loop->target.on_continue);
    start_block(t, loop->target.on_continue);
    if (step != NULL)
        emit_effects(t, step);
    branch_to(t, loop->header);
    start_block(t, loop->target.on_break);
}

static void parse_for(struct translator *t, const struct hints *hints)
{
    struct loop loop;
    struct tree_expr *condition = NULL, *step = NULL;
    scope_open(t);
    expect(t, '(', "behind 'for'");
    if (!accept(t, ';'))
        statement_parse_statement(t);
    open_loop(t, &loop);
    if (!next_is(t, ';'))
        condition = parse_condition(t, "for");
    expect(t, ';', "behind the condition");
    if (!next_is(t, ')'))
        step = parse_expression(t);
    expect(t, ')', "behind the parts of 'for'");
    run_loop(t, hints, condition, step, &loop);
    scope_close(t);
}

static void parse_while(struct translator *t, const struct hints *hints)
{
    struct loop loop;
    expect(t, '(', "behind 'while'");
    open_loop(t, &loop);
    struct tree_expr *condition = parse_condition(t, "while");
    expect(t, ')', "behind the condition");
    run_loop(t, hints, condition, NULL, &loop);
}

static void parse_do(struct translator *t, const struct hints *hints)
{
    struct loop loop;
    open_loop(t, &loop);
    emit_loop_merge(t, &loop, hints, loop.body);
    t->target = &loop.target;
    parse_scoped(t);
    t->target = loop.target.outer;
    branch_to(t, loop.target.on_continue);
    start_block(t, loop.target.on_continue);
    if (!accept_keyword(t, KEYWORD_while))
        fail_at(t, &t->token->at, "found %s, expected 'while' behind the body of 'do'",
                token_text(t, t->token));
    expect(t, '(', "behind 'while'");
    struct tree_expr *condition = parse_condition(t, "while");
    emit_test(t, &loop, condition, loop.header);
    expect(t, ')', "behind the condition");
    expect(t, ';', "behind 'do'");
    start_block(t, loop.target.on_break);
}

// --- jumps -----------------------------------------------------------------------------

static void parse_jump(struct translator *t, bool is_break)
{
    const struct glsl_token *token = t->token - 1;
    struct target *target = t->target;
    while (target != NULL && !is_break && target->on_continue == NULL)
        target = target->outer;
    if (target == NULL)
        fail_at(t, &token->at, "'%s' is outside of a loop%s", token->name->text,
                is_break ? " or switch" : "");
    branch_to(t, is_break ? target->on_break : target->on_continue);
    expect(t, ';', is_break ? "behind 'break'" : "behind 'continue'");
}

static void parse_return(struct translator *t)
{
    struct position at = t->token[-1].at;
    struct function *f = t->function;
    if (accept(t, ';')) {
        if (f->result->base != TYPE_VOID)
            fail_at(t, &at, "'return' has no value, expected one of type '%s'",
                    type_text(t, f->result));
        ir_emit(t->ir, OpReturn, 0, 0, NULL);
        return;
    }
    struct tree_expr *e = parse_expression(t);
    if (f->result->base == TYPE_VOID)
        fail_at(t, &at, "'return' has a value, and '%.60s' has no result", f->name->text);
    e = convert_to(t, e, f->result, "the returned value");
    uint32_t id = emit_value(t, e);
    use_type(t, f->result);
    IR_EMIT(t->ir, OpReturnValue, 0, id);
    f->returns_value = true;
    expect(t, ';', "behind 'return'");
}

// --- statements ------------------------------------------------------------------------

static void parse_compound(struct translator *t)
{
    enter_level(t);
    scope_open(t);
    while (!next_is(t, '}')) {
        if (t->token->kind == TOKEN_END)
            fail_at(t, &t->token->at, "found the end of the source, expected '}'");
        statement_parse_statement(t);
    }
    t->token++;
    scope_close(t);
    t->level--;
}

static bool parse_control(struct translator *t, uint32_t keyword, const struct hints *hints)
{
    switch (keyword) {
    case KEYWORD_if:
        parse_if(t, hints);
        return true;
    case KEYWORD_for:
        parse_for(t, hints);
        return true;
    case KEYWORD_while:
        parse_while(t, hints);
        return true;
    case KEYWORD_do:
        parse_do(t, hints);
        return true;
    case KEYWORD_switch:
        parse_switch(t, hints);
        return true;
    case KEYWORD_break:
    case KEYWORD_continue:
        parse_jump(t, keyword == KEYWORD_break);
        return true;
    case KEYWORD_return:
        parse_return(t);
        return true;
    default:
        return false;
    }
}

static void parse_simple(struct translator *t)
{
    if (declaration_is_next(t)) {
        parse_declaration(t);
        return;
    }
    struct tree_expr *e = parse_expression(t);
    emit_effects(t, e);
    expect(t, ';', "behind a statement");
}

static void statement_parse_statement(struct translator *t)
{
    struct hints hints;
    parse_hints(t, &hints);
    if (ir_is_ended(t->ir)) // what follows a jump is not reached
        start_block(t, ir_block(t->ir));
    if (accept(t, ';'))
        return;
    enter_level(t);
    uint32_t keyword = t->token->kind == TOKEN_NAME ? t->token->name->keyword : 0;
    bool is_control = keyword >= KEYWORD_if && keyword < KEYWORD_true;
    if (accept(t, '{')) {
        parse_compound(t);
    } else if (keyword == KEYWORD_discard || keyword == KEYWORD_case ||
               keyword == KEYWORD_default || keyword == KEYWORD_else) {
        fail_at(t, &t->token->at, "found '%s', expected a statement", t->token->name->text);
    } else if (is_control) {
        t->token++;
        parse_control(t, keyword, &hints);
    } else {
        parse_simple(t);
    }
    t->level--;
}

static void emit_initials(struct translator *t)
{
    for (struct initial *i = t->initials; i != NULL; i = i->next) {
        struct access access;
        struct tree_expr *variable = expr_variable(t, i->symbol, &i->symbol->at);
        access_of(t, variable, &access);
        access_store(t, &access, emit_value(t, i->value));
    }
}

void parse_body(struct translator *t, struct function *f)
{
    if (f == t->main)
        emit_initials(t);
    t->token++; // {
    while (!next_is(t, '}')) {
        if (t->token->kind == TOKEN_END)
            fail_at(t, &t->token->at, "found the end of the source, expected '}'");
        statement_parse_statement(t);
    }
    struct position at = t->token++->at;
    if (f->result->base != TYPE_VOID && !f->returns_value)
        fail_at(t, &at, "'%.60s' returns no value, expected one of type '%s'",
                f->name->text, type_text(t, f->result));
    if (ir_is_ended(t->ir))
        return;
    if (f->result->base == TYPE_VOID)
        ir_emit(t->ir, OpReturn, 0, 0, NULL);
    else
        IR_EMIT(t->ir, OpReturnValue, 0,
                ir_undefined(t->ir, type_id(t, f->result, LAYOUT_NONE)));
}
