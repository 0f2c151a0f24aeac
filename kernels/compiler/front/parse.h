// SPDX-License-Identifier: MIT
// What the parser's files share.
#ifndef KERNELS_COMPILER_PARSE_H
#define KERNELS_COMPILER_PARSE_H

#include "../emit/emit.h"

// Where `break` and `continue` go.
struct target {
    struct target *outer;
    struct ir_block *on_break, *on_continue; // NULL: a switch has none
    bool is_broken;                          // a `break` has gone there
};

struct initial {
    struct initial *next;
    struct symbol *symbol;
    struct tree_expr *value;
};

// tokens (parse.c)
bool next_is(const struct translator *t, uint32_t punctuator);
bool next_is_keyword(const struct translator *t, enum keyword keyword);
bool accept(struct translator *t, uint32_t punctuator);
bool accept_keyword(struct translator *t, enum keyword keyword);
void expect(struct translator *t, uint32_t punctuator, const char *after);
const struct name *expect_identifier(struct translator *t, const char *what);
void enter_level(struct translator *t); // and `level--` when it ends

// expressions (expression.c)
struct tree_expr *parse_expression(struct translator *t);
struct tree_expr *parse_assignment(struct translator *t); // without commas
struct tree_expr *parse_conditional(struct translator *t);
struct tree_expr *parse_additive(struct translator *t); // without comparisons and shifts
struct tree_expr *parse_initialiser(struct translator *t, const struct type *type);
// A constant integer from 0 on, for a layout or an array.
uint32_t parse_constant_uint(struct translator *t, const char *what);

// types (type.c)
const struct type *parse_type(struct translator *t);
bool type_is_next(struct translator *t);
const struct type *parse_array_suffix(struct translator *t, const struct type *type);

// declarations, functions, statements (declare.c, functions.c, statement.c)
void parse_declaration(struct translator *t); // at the end of the tokens: none
bool declaration_is_next(struct translator *t);
void function_declare(struct translator *t, const struct type *result,
                      const struct name *name, const struct position *at);
void functions_finish(struct translator *t);
void parse_body(struct translator *t, struct function *f);

#endif // KERNELS_COMPILER_PARSE_H
