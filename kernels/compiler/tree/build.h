// SPDX-License-Identifier: MIT
// Makes expressions of expressions: their types, conversions and constants.
#ifndef KERNELS_COMPILER_BUILD_H
#define KERNELS_COMPILER_BUILD_H

#include "expr.h"

// operators (build.c), parts of values and values made of parts (parts.c)
struct tree_expr *expr_unary(struct translator *t, uint32_t op, struct tree_expr *e,
                             const struct position *at);
struct tree_expr *expr_binary(struct translator *t, uint32_t op, struct tree_expr *left,
                              struct tree_expr *right, const struct position *at);
struct tree_expr *expr_logical(struct translator *t, uint32_t op, struct tree_expr *left,
                               struct tree_expr *right, const struct position *at);
struct tree_expr *expr_select(struct translator *t, struct tree_expr *condition,
                              struct tree_expr *left, struct tree_expr *right,
                              const struct position *at);
struct tree_expr *expr_assign(struct translator *t, uint32_t op, struct tree_expr *left,
                              struct tree_expr *right, const struct position *at);
struct tree_expr *expr_increment(struct translator *t, uint32_t op, struct tree_expr *left,
                                 bool is_post, const struct position *at);
struct tree_expr *expr_index(struct translator *t, struct tree_expr *left,
                             struct tree_expr *right, const struct position *at);
struct tree_expr *expr_field(struct translator *t, struct tree_expr *left,
                             const struct name *name, const struct position *at);
struct tree_expr *expr_length(struct translator *t, struct tree_expr *left,
                              const struct position *at);
struct tree_expr *expr_construct(struct translator *t, const struct type *type,
                                 struct tree_expr **arguments, uint32_t count,
                                 const struct position *at);

// calls (call.c)
struct tree_expr *expr_call(struct translator *t, const struct name *name,
                            struct tree_expr **arguments, uint32_t count,
                            const struct position *at);
// A function as an argument of a built-in one.
struct tree_expr *function_value(struct translator *t, struct symbol *symbol,
                                 const struct position *at);

// conversions (convert.c)
enum { RANK_EXACT, RANK_PROMOTION, RANK_CONVERSION, RANK_NONE = 255 };
uint32_t convert_rank(struct translator *t, const struct type *from, const struct type *to);
// Converts implicitly; fails where GLSL has no such conversion. `what` names the operand in
// the message.
struct tree_expr *convert_to(struct translator *t, struct tree_expr *e,
                             const struct type *type, const char *what);
struct tree_expr *convert_base(struct translator *t, struct tree_expr *e, enum base base);
uint32_t convert_spec(struct translator *t, uint32_t id, const struct type *from,
                      enum base to); // 0: no such operation
enum base common_base(struct translator *t, enum base a, enum base b); // TYPE_VOID: none

// constants (fold.c)
uint64_t fold_wrap(enum base base, uint64_t bits);
uint64_t fold_convert(enum base from, enum base to, uint64_t bits);
double bits_double(uint64_t bits);
uint64_t double_bits(double value);
struct tree_expr *fold_unary(struct translator *t, uint32_t op, const struct tree_expr *e,
                             const struct position *at);
struct tree_expr *fold_binary(struct translator *t, uint32_t op, const struct type *type,
                              const struct tree_expr *left, const struct tree_expr *right,
                              const struct position *at);
uint32_t constant_id(struct translator *t, const struct type *type, const uint64_t *bits);
uint32_t constant_scalar(struct translator *t, enum base base, uint64_t bits);
uint64_t constant_bits(enum base base, uint64_t bits); // as a scalar of SPIR-V
// All components of a type the same.
uint32_t constant_splat(struct translator *t, const struct type *type, double value);

// specialisation constants (specialise.c)
// The constant with this number, made where there is none.
uint32_t spec_of_number(struct translator *t, uint32_t number, uint64_t bits,
                        uint32_t type);
struct tree_expr *workgroup_size(struct translator *t, const struct position *at);
void local_size_finish(struct translator *t);

// built-in functions (builtins.c)
bool builtin_exists(const struct name *name);
// A call of the overload that fits best; converts the arguments. NULL: none fits.
struct tree_expr *builtin_call(struct translator *t, const struct name *name,
                               struct tree_expr **arguments, uint32_t count,
                               bool must_be_exact, const struct position *at);
struct tree_expr *builtin_fold(struct translator *t,
                               const struct tree_expr *call); // NULL: cannot
const char *builtin_candidates(struct translator *t, const struct name *name);
// Fails unless `e` can be scope, rows, columns or use of a matrix, by its number.
void coopmat_check_parameter(struct translator *t, const struct tree_expr *e,
                             uint32_t number);

#endif // KERNELS_COMPILER_BUILD_H
