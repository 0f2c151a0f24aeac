// SPDX-License-Identifier: MIT
// The preprocessor's own: what its files share. It is that of C, without # (GLSL has no
// strings) and without variadic macros.
#ifndef KERNELS_COMPILER_PREPROCESS_H
#define KERNELS_COMPILER_PREPROCESS_H

#include "lex.h"

enum {
    MOST_INCLUDES = 64,        // files within files
    MOST_CONDITIONS = 256,     // groups within groups
    MOST_PARAMETERS = 64,      // of a macro
    MOST_ARGUMENT_DEPTH = 256, // macro calls within arguments of macro calls
    MOST_EXPRESSION_DEPTH = 256,
    MOST_WORK = 1 << 21, // tokens that expansions yield, all together
};

enum macro_kind {
    MACRO_PLAIN,
    MACRO_LINE, // __LINE__
    MACRO_FILE, // __FILE__
};

struct macro {
    struct name *name;
    struct position at;
    uint8_t kind; // enum macro_kind
    bool is_function, is_busy, has_paste, is_predefined;
    uint32_t num_parameters, num_body;
    const struct lexeme *body;
};

// A text that is read, within the one that includes it.
struct input {
    struct input *previous;
    const char *name;
    struct glsl_lexer lexer;
    uint32_t num_conditions; // that were open where it began
    uint32_t number;         // __FILE__
};

// An open #if.
struct condition {
    struct position at;
    bool was_taken; // this group or one before it
    bool has_else;
};

// Tokens that are read before the text goes on: a macro's, or a list of its own.
struct expansion {
    const struct lexeme *at, *end;
    struct macro *macro;      // NULL: a list, which ends with LEXEME_END until it is popped
    struct position position; // of tokens from the body
};

// Tokens as text.
struct preprocessed_text {
    char *text;
    uint32_t size, capacity;
    struct position last; // of the last token
};

struct preprocessor {
    struct compiler *compiler;
    struct preprocessed *out;
    struct input *input;
    uint32_t num_inputs;
    struct condition conditions[MOST_CONDITIONS];
    uint32_t num_conditions;
    struct expansion *expansions; // the innermost last
    uint32_t num_expansions, max_expansions;
    struct lexeme peeked; // of the text
    bool has_peeked;
    struct lexeme *scratch; // a stack of tokens that are being collected
    uint32_t num_scratch, max_scratch;
    uint32_t argument_depth;
    uint32_t work;
    uint32_t max_tokens, max_extensions;
    const struct name *directives[16];
    struct name *defined;
};

// --- input.c

// Reads a text from now on, up to its end.
void preprocess_begin_input(struct preprocessor *pp, const char *name, const char *text,
                            size_t size, uint32_t number);
bool preprocess_is_end(const struct lexeme *token); // of a line
// Fails unless the directive's line ends here.
void preprocess_end_line(struct preprocessor *pp, struct glsl_lexer *lexer,
                         const char *what);
_Noreturn void preprocess_fail_found(struct preprocessor *pp, const struct lexeme *token,
                                     const char *what, const char *expected);
_Noreturn void preprocess_no_version(struct preprocessor *pp, const struct position *at);

// --- macro.c

// The next token that is no macro. LEXEME_END: of the text or the list.
void preprocess_next(struct preprocessor *pp, struct lexeme *out);
// Appends a token to the scratch stack.
void preprocess_collect(struct preprocessor *pp, const struct lexeme *token);
// Reads a token of a directive to the top of the scratch stack. False: its line ends, and
// what ends it lies behind the top.
bool preprocess_collect_next(struct preprocessor *pp, struct glsl_lexer *lexer);
// Pops the scratch stack down to `count` tokens, and returns a copy of what was above.
const struct lexeme *preprocess_take(struct preprocessor *pp, uint32_t count,
                                     uint32_t *out_count);
// Reads tokens from a list from now on, up to LEXEME_END; then goes on as before.
void preprocess_begin_list(struct preprocessor *pp, const struct lexeme *tokens,
                           uint32_t count);
void preprocess_end_list(struct preprocessor *pp);

// --- define.c

void preprocess_define(struct preprocessor *pp, struct glsl_lexer *lexer);
void preprocess_undefine(struct preprocessor *pp, struct glsl_lexer *lexer);
// Defines the macros that need no #define. `version`: that of #version.
void preprocess_predefine(struct preprocessor *pp, uint32_t version);

// --- directive.c

// Reads the line behind a # that begins one.
void preprocess_directive(struct preprocessor *pp);
void preprocess_directive_names(struct preprocessor *pp);

// --- condition.c

// Reads the rest of the line as a constant expression; its macros are expanded.
int64_t preprocess_expression(struct preprocessor *pp, struct glsl_lexer *lexer,
                              const char *what);
struct line_numbers {
    int64_t line, file;
    bool has_file;
    struct lexeme name; // LEXEME_STRING; otherwise none
};
// Reads the rest of a line of #line.
void preprocess_line_numbers(struct preprocessor *pp, struct glsl_lexer *lexer,
                             struct line_numbers *out);

// --- extension.c

bool preprocess_extension(const char *name); // whether the compiler knows it

// Cuts a text for an error message: for %.*s.
static inline int cut(size_t size)
{
    return size < 60 ? (int)size : 60;
}

#endif // KERNELS_COMPILER_PREPROCESS_H
