// SPDX-License-Identifier: MIT
// The preprocessor's directives. A directive reads its line from the text's lexer; the
// newline is left to it.
#include "preprocess.h"

#include <string.h>

enum directive {
    DIRECTIVE_DEFINE,
    DIRECTIVE_UNDEF,
    DIRECTIVE_IF,
    DIRECTIVE_IFDEF,
    DIRECTIVE_IFNDEF,
    DIRECTIVE_ELIF,
    DIRECTIVE_ELSE,
    DIRECTIVE_ENDIF,
    DIRECTIVE_VERSION,
    DIRECTIVE_EXTENSION,
    DIRECTIVE_PRAGMA,
    DIRECTIVE_LINE,
    DIRECTIVE_INCLUDE,
    DIRECTIVE_ERROR,
    NUM_DIRECTIVES,
};

static const char texts[NUM_DIRECTIVES][10] = {
    [DIRECTIVE_DEFINE] = "define",   [DIRECTIVE_UNDEF] = "undef",
    [DIRECTIVE_IF] = "if",           [DIRECTIVE_IFDEF] = "ifdef",
    [DIRECTIVE_IFNDEF] = "ifndef",   [DIRECTIVE_ELIF] = "elif",
    [DIRECTIVE_ELSE] = "else",       [DIRECTIVE_ENDIF] = "endif",
    [DIRECTIVE_VERSION] = "version", [DIRECTIVE_EXTENSION] = "extension",
    [DIRECTIVE_PRAGMA] = "pragma",   [DIRECTIVE_LINE] = "line",
    [DIRECTIVE_INCLUDE] = "include", [DIRECTIVE_ERROR] = "error",
};

void preprocess_directive_names(struct preprocessor *pp)
{
    _Static_assert(sizeof(pp->directives) / sizeof(pp->directives[0]) >= NUM_DIRECTIVES,
                   "all directives have their names");
    for (int i = 0; i < NUM_DIRECTIVES; i++)
        pp->directives[i] = compiler_name(pp->compiler, texts[i], strlen(texts[i]));
}

static enum directive find_directive(const struct preprocessor *pp,
                                     const struct lexeme *name)
{
    int i = name->kind == LEXEME_NAME ? 0 : NUM_DIRECTIVES;
    while (i < NUM_DIRECTIVES && pp->directives[i] != name->name)
        i++;
    return (enum directive)i;
}

// --- texts ------------------------------------------------------------------------------

static void directive_include(struct preprocessor *pp, struct glsl_lexer *l)
{
    struct compiler *c = pp->compiler;
    struct lexeme header = lex_header(l);
    if (header.kind != LEXEME_STRING || header.size == 0)
        compiler_fail(c, &header.at, "#include names no file: expected \"name\"");
    if (header.size > MOST_NAME)
        compiler_fail(c, &header.at, "the file name has %u bytes: expected at most %d",
                      header.size, MOST_NAME);
    preprocess_end_line(pp, l, "#include");
    if (pp->num_inputs == MOST_INCLUDES)
        compiler_fail(c, &header.at, "files include each other: expected at most %d levels",
                      MOST_INCLUDES);
    char *name = compiler_allocate(c, header.size + 1);
    memcpy(name, header.text, header.size);
    if (!c->source->include)
        compiler_fail(c, &header.at, "%.120s is included: expected a source of one file",
                      name);
    size_t size = 0;
    const char *from = pp->input->previous ? pp->input->name : "";
    const char *text = c->source->include(c->source->include_context, name, from, &size);
    if (!text)
        compiler_fail(c, &header.at, "%.120s is included: there is no such file", name);
    l->in_directive = false;
    preprocess_begin_input(pp, name, text, size, 0);
}

// --- conditions -------------------------------------------------------------------------

static void begin_condition(struct preprocessor *pp, const struct position *at)
{
    if (pp->num_conditions == MOST_CONDITIONS)
        compiler_fail(pp->compiler, at, "conditions are nested: expected at most %d levels",
                      MOST_CONDITIONS);
    pp->conditions[pp->num_conditions++] = (struct condition){.at = *at};
}

// The innermost condition that this text has opened.
static struct condition *condition_of(struct preprocessor *pp, const struct position *at,
                                      const char *what)
{
    if (pp->num_conditions == pp->input->num_conditions)
        compiler_fail(pp->compiler, at, "%s is without its #if", what);
    return &pp->conditions[pp->num_conditions - 1];
}

static bool directive_is_defined(struct preprocessor *pp, struct glsl_lexer *l,
                                 const char *what)
{
    struct lexeme name = lex(l);
    if (name.kind != LEXEME_NAME)
        preprocess_fail_found(pp, &name, what, "the name of a macro");
    preprocess_end_line(pp, l, what);
    return name.name->macro;
}

// Evaluates the line of a condition behind its first word.
static bool directive_evaluate(struct preprocessor *pp, struct glsl_lexer *l,
                               enum directive directive)
{
    switch (directive) {
    case DIRECTIVE_IFDEF:
        return directive_is_defined(pp, l, "#ifdef");
    case DIRECTIVE_IFNDEF:
        return !directive_is_defined(pp, l, "#ifndef");
    case DIRECTIVE_IF:
        return preprocess_expression(pp, l, "#if") != 0;
    default:
        return preprocess_expression(pp, l, "#elif") != 0;
    }
}

// Does #elif, #else or #endif. True: the text behind it counts.
static bool continue_condition(struct preprocessor *pp, struct glsl_lexer *l,
                               enum directive directive, const struct position *at)
{
    static const char *const names[] = {"#elif", "#else", "#endif"};
    const char *what = names[directive - DIRECTIVE_ELIF];
    struct condition *condition = condition_of(pp, at, what);
    if (directive == DIRECTIVE_ENDIF) {
        pp->num_conditions--;
        preprocess_end_line(pp, l, what);
        return true;
    }
    if (condition->has_else)
        compiler_fail(pp->compiler, at, "%s is behind #else: expected #endif", what);
    if (directive == DIRECTIVE_ELSE) {
        condition->has_else = true;
        preprocess_end_line(pp, l, what);
    }
    if (condition->was_taken)
        return false;
    condition->was_taken =
        directive == DIRECTIVE_ELSE || directive_evaluate(pp, l, directive);
    return condition->was_taken;
}

// Skips groups of the innermost condition, up to one that counts or the end.
static void skip_groups(struct preprocessor *pp, struct glsl_lexer *l)
{
    uint32_t depth = 0;
    struct lexeme hash;
    while (lex_skip_to_directive(l, &hash)) {
        struct lexeme name = lex(l);
        enum directive directive = find_directive(pp, &name);
        if (directive >= DIRECTIVE_IF && directive <= DIRECTIVE_IFNDEF)
            depth++;
        else if (depth > 0 && directive == DIRECTIVE_ENDIF)
            depth--;
        else if (depth == 0 && directive >= DIRECTIVE_ELIF &&
                 directive <= DIRECTIVE_ENDIF &&
                 continue_condition(pp, l, directive, &name.at))
            return;
    }
}

// --- the others -------------------------------------------------------------------------

// The definitions that come with the source, as lines of a text of their own.
static void directive_define_given(struct preprocessor *pp)
{
    struct compiler *c = pp->compiler;
    uint32_t file = compiler_file(c, "<definitions>");
    for (size_t i = 0; i < c->source->num_defines; i++) {
        const struct glsl_define *define = &c->source->defines[i];
        size_t size = strlen(define->name), value_size = strlen(define->value);
        char *text = compiler_allocate(c, size + value_size + 2);
        memcpy(text, define->name, size);
        text[size] = ' ';
        memcpy(text + size + 1, define->value, value_size);
        struct glsl_lexer lexer;
        lex_begin(&lexer, c, text, size + 1 + value_size, file);
        lexer.in_directive = true;
        preprocess_define(pp, &lexer);
        struct position at = lex_position(&lexer);
        if (lexer.at != lexer.end)
            compiler_fail(c, &at, "the definition of %.60s has a second line",
                          define->name);
    }
}

static void directive_version(struct preprocessor *pp, struct glsl_lexer *l,
                              const struct position *at)
{
    if (pp->out->version)
        compiler_fail(pp->compiler, at, "#version is in the middle: expected it first");
    struct lexeme number = lex(l);
    char text[4] = "";
    size_t size = lexeme_spell(&number, text, 3);
    bool is_450 = size == 3 && strcmp(text, "450") == 0;
    if (number.kind != LEXEME_NUMBER ||
        (!is_450 && (size != 3 || strcmp(text, "460") != 0)))
        preprocess_fail_found(pp, &number, "#version", "450 or 460");
    struct lexeme profile = lex(l);
    if (profile.kind == LEXEME_NAME && strcmp(profile.name->text, "core") == 0)
        profile = lex(l);
    if (!preprocess_is_end(&profile))
        preprocess_fail_found(pp, &profile, "#version", "core, or the end of the line");
    pp->out->version = is_450 ? 450 : 460;
    preprocess_predefine(pp, pp->out->version);
    directive_define_given(pp);
}

static void directive_extension(struct preprocessor *pp, struct glsl_lexer *l)
{
    struct preprocessed *out = pp->out;
    struct lexeme name = lex(l);
    if (name.kind != LEXEME_NAME)
        preprocess_fail_found(pp, &name, "#extension", "the name of an extension");
    struct lexeme colon = lex(l);
    if (colon.kind != LEXEME_PUNCTUATOR || colon.punctuator != ':')
        preprocess_fail_found(pp, &colon, "#extension",
                              "':' and require, enable, warn or disable");
    struct lexeme behaviour = lex(l);
    const char *text = behaviour.kind == LEXEME_NAME ? behaviour.name->text : "";
    bool is_required = strcmp(text, "require") == 0, is_off = strcmp(text, "disable") == 0;
    bool is_on = is_required || strcmp(text, "enable") == 0 || strcmp(text, "warn") == 0;
    if (!is_on && !is_off)
        preprocess_fail_found(pp, &behaviour, "#extension",
                              "require, enable, warn or disable");
    preprocess_end_line(pp, l, "#extension");
    bool is_all = strcmp(name.name->text, "all") == 0;
    if (is_all && strcmp(text, "warn") != 0 && !is_off)
        compiler_fail(pp->compiler, &behaviour.at,
                      "all extensions are asked for: expected the name of one");
    bool is_known = preprocess_extension(name.name->text);
    if (is_required && !is_known)
        compiler_fail(pp->compiler, &name.at,
                      "the extension %.80s is required, and this compiler does not know it",
                      name.name->text);
    if (!is_known)
        return;
    out->extensions = compiler_grow(pp->compiler, out->extensions, out->num_extensions,
                                    &pp->max_extensions, sizeof(*out->extensions));
    out->extensions[out->num_extensions++] =
        (struct extension){.name = name.name, .at = name.at, .is_required = is_on};
}

static void directive_pragma(struct preprocessor *pp, struct glsl_lexer *l)
{
    struct lexeme name = lex_rest(l);
    static const char model[] = "use_vulkan_memory_model";
    if (name.size == sizeof(model) - 1 && memcmp(name.text, model, sizeof(model) - 1) == 0)
        pp->out->uses_vulkan_memory_model = true;
}

// #line LINE, #line LINE NUMBER, #line LINE "name". The line is that of the text behind.
static void set_line(struct preprocessor *pp, struct glsl_lexer *l)
{
    struct line_numbers numbers;
    struct position at = lex_position(l);
    preprocess_line_numbers(pp, l, &numbers);
    if (numbers.line < 0 || numbers.line > INT32_MAX || numbers.file < 0 ||
        numbers.file > INT32_MAX)
        compiler_fail(pp->compiler, &at, "#line has a number that is not in 0 to %d",
                      INT32_MAX);
    if (numbers.has_file)
        pp->input->number = (uint32_t)numbers.file;
    if (numbers.name.kind == LEXEME_STRING) {
        char *name = compiler_allocate(pp->compiler, numbers.name.size + 1);
        memcpy(name, numbers.name.text, numbers.name.size);
        l->file = compiler_file(pp->compiler, name);
    }
    lex_set_line(l, (uint32_t)numbers.line);
}

static _Noreturn void fail_with_text(struct preprocessor *pp, struct glsl_lexer *l,
                                     const struct position *at)
{
    struct lexeme text = lex_rest(l);
    compiler_fail(pp->compiler, at, "#error: %.*s", (int)text.size, text.text);
}

static void directive_condition(struct preprocessor *pp, struct glsl_lexer *l,
                                enum directive directive, const struct position *at)
{
    bool counts;
    if (directive <= DIRECTIVE_IFNDEF) {
        begin_condition(pp, at);
        counts = directive_evaluate(pp, l, directive);
        pp->conditions[pp->num_conditions - 1].was_taken = counts;
    } else {
        counts = continue_condition(pp, l, directive, at);
    }
    if (!counts)
        skip_groups(pp, l);
}

static void other_directive(struct preprocessor *pp, struct glsl_lexer *l,
                            enum directive directive, const struct lexeme *name)
{
    switch (directive) {
    case DIRECTIVE_DEFINE:
        preprocess_define(pp, l);
        break;
    case DIRECTIVE_UNDEF:
        preprocess_undefine(pp, l);
        break;
    case DIRECTIVE_VERSION:
        directive_version(pp, l, &name->at);
        break;
    case DIRECTIVE_EXTENSION:
        directive_extension(pp, l);
        break;
    case DIRECTIVE_PRAGMA:
        directive_pragma(pp, l);
        break;
    case DIRECTIVE_LINE:
        set_line(pp, l);
        break;
    case DIRECTIVE_INCLUDE:
        directive_include(pp, l);
        break;
    case DIRECTIVE_ERROR:
        fail_with_text(pp, l, &name->at);
    default:
        preprocess_fail_found(pp, name, "a line of #", "a directive");
    }
}

void preprocess_directive(struct preprocessor *pp)
{
    struct glsl_lexer *l = &pp->input->lexer;
    l->in_directive = true;
    struct lexeme name = lex(l);
    if (!preprocess_is_end(&name)) { // # alone does nothing
        enum directive directive = find_directive(pp, &name);
        if (!pp->out->version && directive != DIRECTIVE_VERSION)
            preprocess_no_version(pp, &name.at);
        if (directive >= DIRECTIVE_IF && directive <= DIRECTIVE_ENDIF)
            directive_condition(pp, l, directive, &name.at);
        else
            other_directive(pp, l, directive, &name);
    }
    l->in_directive = false;
}
