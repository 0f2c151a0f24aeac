// SPDX-License-Identifier: MIT
// Expands macros, as C11 6.10.3 says. A macro is busy while tokens of its expansion are to
// be read: its name is not expanded among them, then or ever.
#include "preprocess.h"

#include <stdio.h>
#include <string.h>

// --- reading ----------------------------------------------------------------------------

static void macro_push(struct preprocessor *pp, struct expansion expansion)
{
    pp->expansions = compiler_grow(pp->compiler, pp->expansions, pp->num_expansions,
                                   &pp->max_expansions, sizeof(*pp->expansions));
    pp->expansions[pp->num_expansions++] = expansion;
}

void preprocess_begin_list(struct preprocessor *pp, const struct lexeme *tokens,
                           uint32_t count)
{
    macro_push(pp, (struct expansion){.at = tokens, .end = tokens + count});
}

void preprocess_end_list(struct preprocessor *pp)
{
    pp->num_expansions--;
}

static void count_work(struct preprocessor *pp, const struct position *at)
{
    if (++pp->work > MOST_WORK)
        compiler_fail(pp->compiler, at, "macros expand to more than %d tokens", MOST_WORK);
}

static void read_expansion(struct preprocessor *pp, struct expansion *top,
                           struct lexeme *out)
{
    *out = *top->at++;
    if (out->flags & LEXEME_OF_BODY) {
        out->flags = (uint8_t)(out->flags & ~LEXEME_OF_BODY);
        out->at = top->position;
    }
    count_work(pp, &out->at);
}

// The next token, whether it is a macro or not.
static void read_token(struct preprocessor *pp, struct lexeme *out)
{
    bool is_read = false;
    while (pp->num_expansions > 0 && !is_read) {
        struct expansion *top = &pp->expansions[pp->num_expansions - 1];
        if (top->at < top->end) {
            read_expansion(pp, top, out);
            is_read = true;
        } else if (!top->macro) {
            *out = (struct lexeme){.kind = LEXEME_END};
            return;
        } else {
            top->macro->is_busy = false;
            pp->num_expansions--;
        }
    }
    if (!is_read && pp->has_peeked) {
        *out = pp->peeked;
        pp->has_peeked = false;
    } else if (!is_read) {
        lex_to(&pp->input->lexer, out);
    }
    if (out->kind == LEXEME_NAME && out->name->macro && out->name->macro->is_busy)
        out->flags |= LEXEME_NOT_EXPANDED;
}

static void macro_unread(struct preprocessor *pp, const struct lexeme *token)
{
    if (pp->num_expansions == 0) {
        pp->peeked = *token;
        pp->has_peeked = true;
    } else if (token->kind != LEXEME_END) {
        pp->expansions[pp->num_expansions - 1].at--;
    }
}

// --- lists ------------------------------------------------------------------------------

// Room for a token on the scratch stack.
static struct lexeme *macro_room(struct preprocessor *pp)
{
    pp->scratch = compiler_grow(pp->compiler, pp->scratch, pp->num_scratch,
                                &pp->max_scratch, sizeof(*pp->scratch));
    return &pp->scratch[pp->num_scratch];
}

void preprocess_collect(struct preprocessor *pp, const struct lexeme *token)
{
    *macro_room(pp) = *token;
    // A token that begins a line here stands in the middle of one where it is put.
    pp->scratch[pp->num_scratch++].flags &= (uint8_t)~LEXEME_AT_LINE_START;
}

bool preprocess_collect_next(struct preprocessor *pp, struct glsl_lexer *l)
{
    struct lexeme *token = macro_room(pp);
    lex_to(l, token);
    bool is_last = token->kind == LEXEME_NEWLINE || token->kind == LEXEME_END;
    pp->num_scratch += !is_last;
    return !is_last;
}

const struct lexeme *preprocess_take(struct preprocessor *pp, uint32_t count,
                                     uint32_t *out_count)
{
    uint32_t num = pp->num_scratch - count;
    struct lexeme *tokens = compiler_allocate(pp->compiler, num * sizeof(*tokens));
    if (num > 0)
        memcpy(tokens, pp->scratch + count, num * sizeof(*tokens));
    pp->num_scratch = count;
    *out_count = num;
    return tokens;
}

// --- arguments --------------------------------------------------------------------------

// Argument of a call: as it is written, and expanded when that is first asked for.
struct macro_argument {
    const struct lexeme *tokens, *expanded;
    uint32_t count, num_expanded;
};

static bool is_punctuator(const struct lexeme *token, uint32_t punctuator)
{
    return token->kind == LEXEME_PUNCTUATOR && token->punctuator == punctuator;
}

// Reads an argument; true: another follows.
static bool macro_read_argument(struct preprocessor *pp, const struct macro *macro,
                                const struct lexeme *call, struct macro_argument *out)
{
    const char *name = macro->name->text;
    uint32_t first = pp->num_scratch, depth = 0;
    for (;;) {
        struct lexeme token;
        read_token(pp, &token);
        if (token.kind == LEXEME_END)
            compiler_fail(pp->compiler, &call->at,
                          "the arguments of the macro %.60s have no end: expected ')'",
                          name);
        if (token.kind == LEXEME_HASH && token.flags & LEXEME_AT_LINE_START)
            compiler_fail(
                pp->compiler, &token.at,
                "a directive is among the arguments of the macro %.60s: expected ')'",
                name);
        bool is_end = depth == 0 && is_punctuator(&token, ')');
        bool is_comma = depth == 0 && is_punctuator(&token, ',');
        if (is_end || is_comma) {
            out->tokens = preprocess_take(pp, first, &out->count);
            return is_comma;
        }
        depth += is_punctuator(&token, '(');
        depth -= is_punctuator(&token, ')');
        preprocess_collect(pp, &token);
    }
}

// Reads the arguments behind '('. Returns them: as many as the macro has parameters.
static struct macro_argument *macro_read_arguments(struct preprocessor *pp,
                                                   const struct macro *macro,
                                                   const struct lexeme *call)
{
    struct macro_argument arguments[MOST_PARAMETERS], extra;
    uint32_t count = 0;
    bool is_last = false;
    for (; !is_last; count++) {
        struct macro_argument *argument =
            count < MOST_PARAMETERS ? &arguments[count] : &extra;
        *argument = (struct macro_argument){0};
        is_last = !macro_read_argument(pp, macro, call, argument);
    }
    if (macro->num_parameters == 0 && count == 1 && arguments[0].count == 0)
        count = 0;
    if (count != macro->num_parameters)
        compiler_fail(pp->compiler, &call->at,
                      "the macro %.60s is given %u arguments: expected %u",
                      macro->name->text, count, macro->num_parameters);
    size_t size = count * sizeof(arguments[0]);
    return memcpy(compiler_allocate(pp->compiler, size + 1), arguments, size);
}

static void expand_argument(struct preprocessor *pp, struct macro_argument *argument,
                            const struct lexeme *call)
{
    if (pp->argument_depth == MOST_ARGUMENT_DEPTH)
        compiler_fail(pp->compiler, &call->at,
                      "macro calls are nested in arguments: expected at most %d levels",
                      MOST_ARGUMENT_DEPTH);
    pp->argument_depth++;
    uint32_t first = pp->num_scratch;
    preprocess_begin_list(pp, argument->tokens, argument->count);
    for (;;) {
        struct lexeme token;
        preprocess_next(pp, &token);
        if (token.kind == LEXEME_END)
            break;
        preprocess_collect(pp, &token);
    }
    preprocess_end_list(pp);
    argument->expanded = preprocess_take(pp, first, &argument->num_expanded);
    pp->argument_depth--;
}

// --- substitution -----------------------------------------------------------------------

// One token of the spellings of two.
static struct lexeme macro_paste(struct preprocessor *pp, const struct lexeme *left,
                                 const struct lexeme *right, const struct position *at)
{
    size_t sizes[2] = {lexeme_spell(left, NULL, 0), lexeme_spell(right, NULL, 0)};
    size_t size = sizes[0] + sizes[1];
    char *text = compiler_allocate(pp->compiler, size + 1);
    lexeme_spell(left, text, sizes[0]);
    lexeme_spell(right, text + sizes[0], sizes[1]);
    struct glsl_lexer lexer;
    lex_begin(&lexer, pp->compiler, text, size, at->file);
    bool is_comment = text[0] == '/' && (text[1] == '/' || text[1] == '*');
    struct lexeme token = is_comment ? (struct lexeme){0} : lex(&lexer);
    bool is_one = token.kind != LEXEME_OTHER && lexeme_spell(&token, NULL, 0) == size;
    token.at = left->at;
    token.flags = left->flags & (LEXEME_OF_BODY | LEXEME_AFTER_SPACE);
    if (!is_one)
        compiler_fail(pp->compiler, at, "## makes %.*s, which is not one token", cut(size),
                      text);
    return token;
}

static void collect_all(struct preprocessor *pp, const struct lexeme *tokens,
                        uint32_t count, const struct position *at)
{
    for (uint32_t i = 0; i < count; i++) {
        count_work(pp, at);
        preprocess_collect(pp, &tokens[i]);
    }
}

// Collects the right operand of ##, its first token pasted to the last one collected;
// `left`: how many there were in front of the left operand.
static void collect_pasted(struct preprocessor *pp, const struct lexeme *tokens,
                           uint32_t count, uint32_t left, const struct position *at)
{
    if (count > 0 && pp->num_scratch > left) {
        pp->scratch[pp->num_scratch - 1] =
            macro_paste(pp, &pp->scratch[pp->num_scratch - 1], &tokens[0], at);
        tokens++;
        count--;
    }
    collect_all(pp, tokens, count, at);
}

// Collects the macro's body with its parameters replaced, and pasted.
static void macro_substitute(struct preprocessor *pp, const struct macro *macro,
                             struct macro_argument *arguments, const struct lexeme *call)
{
    const struct lexeme *body = macro->body;
    uint32_t left = pp->num_scratch; // tokens in front of the last operand
    for (uint32_t i = 0; i < macro->num_body; i++) {
        bool is_right = body[i].kind == LEXEME_PASTE;
        i += is_right;
        bool is_left = i + 1 < macro->num_body && body[i + 1].kind == LEXEME_PASTE;
        const struct lexeme *tokens = &body[i];
        uint32_t count = 1;
        if (body[i].kind == LEXEME_PARAMETER) {
            struct macro_argument *argument = &arguments[body[i].parameter];
            bool is_raw = is_left || is_right;
            if (!is_raw && !argument->expanded)
                expand_argument(pp, argument, call);
            tokens = is_raw ? argument->tokens : argument->expanded;
            count = is_raw ? argument->count : argument->num_expanded;
        }
        if (is_right) {
            collect_pasted(pp, tokens, count, left, &call->at);
            continue;
        }
        left = pp->num_scratch;
        collect_all(pp, tokens, count, &call->at);
    }
}

// --- calls ------------------------------------------------------------------------------

static struct lexeme number_token(struct preprocessor *pp, uint32_t value)
{
    char *text = compiler_allocate(pp->compiler, 16);
    int size = snprintf(text, 16, "%u", value);
    return (struct lexeme){.kind = LEXEME_NUMBER,
                           .flags = LEXEME_OF_BODY,
                           .text = text,
                           .size = (uint32_t)size};
}

// Reads from the macro's expansion from now on, if `call` is a call of it.
static bool macro_expand(struct preprocessor *pp, const struct lexeme *call)
{
    struct macro *macro = call->name->macro;
    struct macro_argument *arguments = NULL;
    if (macro->is_function) {
        struct lexeme token;
        read_token(pp, &token);
        if (!is_punctuator(&token, '(')) {
            macro_unread(pp, &token);
            return false;
        }
        arguments = macro_read_arguments(pp, macro, call);
    }
    const struct lexeme *tokens = macro->body;
    uint32_t count = macro->num_body;
    if (macro->is_function || macro->has_paste) {
        uint32_t first = pp->num_scratch;
        macro_substitute(pp, macro, arguments, call);
        tokens = preprocess_take(pp, first, &count);
    } else if (macro->kind != MACRO_PLAIN) {
        uint32_t value = macro->kind == MACRO_LINE ? call->at.line : pp->input->number;
        struct lexeme number = number_token(pp, value);
        preprocess_collect(pp, &number);
        tokens = preprocess_take(pp, pp->num_scratch - 1, &count);
    }
    if (count > 0) {
        macro->is_busy = true;
        macro_push(pp, (struct expansion){.at = tokens,
                                          .end = tokens + count,
                                          .macro = macro,
                                          .position = call->at});
    }
    return true;
}

void preprocess_next(struct preprocessor *pp, struct lexeme *out)
{
    do {
        read_token(pp, out);
    } while (out->kind == LEXEME_NAME && out->name->macro &&
             !(out->flags & LEXEME_NOT_EXPANDED) && macro_expand(pp, out));
}
