// SPDX-License-Identifier: MIT
// What the readers of a manifest's parts share.
#ifndef FFI_MANIFEST_H
#define FFI_MANIFEST_H

#include "json.h"
#include "pack.h"

// A function from its object; its own library, or `otherwise`. `pack` is the primitives'
// pack: "blas" in "blas.axpby/1". (function.c)
void read_function(struct reader *reader, const struct field *field, const char *pack,
                   struct library *otherwise, struct function *function);

// Inputs and outputs: names, dtypes and layouts first, which give the names in shapes; then
// the shapes, which may use attributes and "extents" too; then what has to hold between
// them. (operands.c)
void read_operands(struct reader *reader, const struct field *field,
                   struct function *function);
void read_operand_axes(struct reader *reader, const struct field *field,
                       struct function *function);
void check_outputs(struct reader *reader, const struct field *field,
                   const struct function *function);

// The arguments, and what is returned. (arguments.c)
void read_arguments(struct reader *reader, const struct field *field,
                    struct function *function);

// One argument. Kinds other than those in `kinds`, as bits 1 << enum argument_kind, are
// refused; `what` says where it stands.
void read_argument(struct reader *reader, const struct field *field,
                   struct function *function, uint32_t kinds, const char *what,
                   struct argument *out);
tn_dtype read_integer_dtype(struct reader *reader, const struct field *field,
                            const struct function *function);

// "setup" of a library, "handles" of a function. (callee.c)
void read_setups(struct reader *reader, const struct field *object,
                 struct library *library);
void read_handles(struct reader *reader, const struct field *field,
                  struct function *function);

// {"library": "x.so" or [...], "setup": [...], "remedy": "..."}; NULL when the field is
// absent.
struct library *read_library(struct reader *reader, const struct field *object);

// "f32", "int", ... ; TN_DTYPE_NONE for "T".
tn_dtype read_type(struct reader *reader, const struct field *field, tn_dtype otherwise);

// Names in expressions. `context` is the function.
void add_name(struct reader *reader, const struct field *field, struct function *function,
              const char *text, enum name_source source, uint32_t index);
int find_name(void *context, const char *name);
void read_extent(struct reader *reader, const struct field *field,
                 struct function *function, struct extent *out);

// Numbers of what is called so, or -1.
int find_operand(const struct function *function, const char *name);
int find_field(const struct function *function, const char *name);

#endif // FFI_MANIFEST_H
