// SPDX-License-Identifier: MIT
// #define, #undef, and the macros that are defined from the start.
#include "preprocess.h"

#include <stdio.h>
#include <string.h>

static void check_definable(struct preprocessor *pp, const struct lexeme *name,
                            const char *what)
{
    if (name->kind != LEXEME_NAME)
        compiler_fail(pp->compiler, &name->at, "%s has no name: expected a macro's", what);
    const char *text = name->name->text;
    bool is_builtin = name->name->macro && name->name->macro->is_predefined;
    if (is_builtin || name->name == pp->defined || strncmp(text, "GL_", 3) == 0)
        compiler_fail(pp->compiler, &name->at,
                      "%s of %.60s: expected a name that the language does not define",
                      what, text);
}

// --- #define ----------------------------------------------------------------------------

// Reads parameters behind '(', up to and with ')'. Returns how many.
static uint32_t read_parameters(struct preprocessor *pp, struct glsl_lexer *l,
                                const struct name **out)
{
    struct lexeme token = lex(l);
    if (token.kind == LEXEME_PUNCTUATOR && token.punctuator == ')')
        return 0;
    for (uint32_t count = 0;;) {
        if (token.kind != LEXEME_NAME)
            compiler_fail(pp->compiler, &token.at, "expected the name of a parameter");
        if (count == MOST_PARAMETERS)
            compiler_fail(pp->compiler, &token.at, "the macro has more than %d parameters",
                          MOST_PARAMETERS);
        for (uint32_t i = 0; i < count; i++)
            if (out[i] == token.name)
                compiler_fail(pp->compiler, &token.at, "two parameters have the name %.60s",
                              token.name->text);
        out[count++] = token.name;
        token = lex(l);
        if (token.kind == LEXEME_PUNCTUATOR && token.punctuator == ')')
            return count;
        if (token.kind != LEXEME_PUNCTUATOR || token.punctuator != ',')
            compiler_fail(pp->compiler, &token.at,
                          "expected ',' or ')' behind the parameter %.60s",
                          out[count - 1]->text);
        token = lex(l);
    }
}

// A token of the body, the last of the scratch stack. `first`: where the body begins there.
static void read_body_token(struct preprocessor *pp, uint32_t first, struct macro *macro,
                            const struct name *const *parameters)
{
    struct lexeme *token = &pp->scratch[pp->num_scratch - 1];
    bool is_first = pp->num_scratch - 1 == first;
    for (uint32_t i = 0; i < macro->num_parameters && token->kind == LEXEME_NAME; i++)
        if (token->name == parameters[i]) {
            token->kind = LEXEME_PARAMETER;
            token->parameter = i;
        }
    bool is_paste = token->kind == LEXEME_PASTE;
    if (is_paste && (is_first || token[-1].kind == LEXEME_PASTE))
        compiler_fail(pp->compiler, &token->at, "## has nothing in front of it to paste");
    macro->has_paste |= is_paste;
    token->flags |= LEXEME_OF_BODY;
    if (is_first)
        token->flags &= (uint8_t)~LEXEME_AFTER_SPACE;
}

static void read_body(struct preprocessor *pp, struct glsl_lexer *l,
                      const struct lexeme *token, struct macro *macro,
                      const struct name *const *parameters)
{
    uint32_t first = pp->num_scratch;
    if (token->kind != LEXEME_NEWLINE && token->kind != LEXEME_END) {
        preprocess_collect(pp, token);
        do
            read_body_token(pp, first, macro, parameters);
        while (preprocess_collect_next(pp, l));
    }
    if (pp->num_scratch > first && pp->scratch[pp->num_scratch - 1].kind == LEXEME_PASTE)
        compiler_fail(pp->compiler, &pp->scratch[pp->num_scratch - 1].at,
                      "## has nothing behind it to paste");
    macro->body = preprocess_take(pp, first, &macro->num_body);
}

static bool is_same_token(const struct lexeme *a, const struct lexeme *b)
{
    if (a->kind != b->kind || (a->flags ^ b->flags) & LEXEME_AFTER_SPACE)
        return false;
    switch (a->kind) {
    case LEXEME_NAME:
        return a->name == b->name;
    case LEXEME_PUNCTUATOR:
    case LEXEME_PARAMETER:
        return a->punctuator == b->punctuator;
    case LEXEME_NUMBER:
    case LEXEME_STRING:
    case LEXEME_OTHER:
        return a->size == b->size && !memcmp(a->text, b->text, a->size);
    default:
        return true;
    }
}

static bool is_same_macro(const struct macro *a, const struct macro *b)
{
    if (a->is_function != b->is_function || a->num_parameters != b->num_parameters ||
        a->num_body != b->num_body)
        return false;
    for (uint32_t i = 0; i < a->num_body; i++)
        if (!is_same_token(&a->body[i], &b->body[i]))
            return false;
    return true;
}

void preprocess_define(struct preprocessor *pp, struct glsl_lexer *l)
{
    struct compiler *c = pp->compiler;
    struct lexeme name = lex(l);
    check_definable(pp, &name, "#define");
    struct macro *macro = compiler_allocate(c, sizeof(*macro));
    *macro = (struct macro){.name = name.name, .at = name.at};
    const struct name *parameters[MOST_PARAMETERS];
    struct lexeme token = lex(l);
    bool has_space = token.flags & LEXEME_AFTER_SPACE;
    if (token.kind == LEXEME_PUNCTUATOR && token.punctuator == '(' && !has_space) {
        macro->is_function = true;
        macro->num_parameters = read_parameters(pp, l, parameters);
        token = lex(l);
    }
    read_body(pp, l, &token, macro, parameters);
    const struct macro *old = name.name->macro;
    if (old && !is_same_macro(old, macro))
        compiler_fail(
            c, &name.at,
            "the macro %.60s is defined otherwise in line %u%s%.80s: expected #undef "
            "in front of a new definition",
            name.name->text, old->at.line, *c->files[old->at.file] ? " of " : "",
            c->files[old->at.file]);
    name.name->macro = macro;
}

void preprocess_undefine(struct preprocessor *pp, struct glsl_lexer *l)
{
    struct lexeme name = lex(l);
    check_definable(pp, &name, "#undef");
    name.name->macro = NULL;
    preprocess_end_line(pp, l, "#undef");
}

// --- macros from the start --------------------------------------------------------------

static struct macro *define_predefine(struct preprocessor *pp, const char *text)
{
    struct name *name = compiler_name(pp->compiler, text, strlen(text));
    name->macro = compiler_allocate(pp->compiler, sizeof(*name->macro));
    name->macro->name = name;
    name->macro->is_predefined = true;
    return name->macro;
}

static const struct lexeme *number_body(struct preprocessor *pp, const char *text)
{
    struct lexeme *body = compiler_allocate(pp->compiler, sizeof(*body));
    *body = (struct lexeme){.kind = LEXEME_NUMBER,
                            .flags = LEXEME_OF_BODY,
                            .text = text,
                            .size = (uint32_t)strlen(text)};
    return body;
}

static void predefine_number(struct preprocessor *pp, const char *name,
                             const struct lexeme *body)
{
    struct macro *macro = define_predefine(pp, name);
    macro->body = body;
    macro->num_body = 1;
}

void preprocess_predefine(struct preprocessor *pp, uint32_t version)
{
    define_predefine(pp, "__LINE__")->kind = MACRO_LINE;
    define_predefine(pp, "__FILE__")->kind = MACRO_FILE;
    predefine_number(pp, "__VERSION__", number_body(pp, version == 460 ? "460" : "450"));
    predefine_number(pp, "VULKAN", number_body(pp, "100"));
    const struct lexeme *one = number_body(pp, "1");
    predefine_number(pp, "GL_core_profile", one);
    for (const char *const *name = glsl_extensions(); *name; name++)
        predefine_number(pp, *name, one);
}
