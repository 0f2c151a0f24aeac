// SPDX-License-Identifier: MIT
// Reading the parts of a manifest. Each function fills its part of a struct function, and
// records a failure in the reader.
#ifndef FFI_MANIFEST_H
#define FFI_MANIFEST_H

#include "json.h"
#include "pack.h"

// A whole function. `otherwise` is the library of a function without one of its own. `pack`
// is the name of the pack: "blas" in "blas.axpby/1". (function.c)
void read_function(struct json_reader *reader, const struct field *field, const char *pack,
                   struct library *otherwise, struct ffi_function *function);

// Inputs and outputs, in three steps: names, dtypes and layouts, which define the names in
// shapes; then the extents, which may use attributes and "extents" as well; then conditions
// between operands. (operands.c)
void read_operands(struct json_reader *reader, const struct field *field,
                   struct ffi_function *function);
void read_operand_axes(struct json_reader *reader, const struct field *field,
                       struct ffi_function *function);
void check_outputs(struct json_reader *reader, const struct field *field,
                   const struct ffi_function *function);

// "args", "returns", "fails" and "messages". (arguments.c)
void read_arguments(struct json_reader *reader, const struct field *field,
                    struct ffi_function *function);

// One argument, of a kind in `kinds` (bits 1 << enum argument_kind). `what` names the
// argument list in messages.
void read_argument(struct json_reader *reader, const struct field *field,
                   struct ffi_function *function, uint32_t kinds, const char *what,
                   struct argument *out);
// "type" of an argument or a status: an integer type, `int` when absent.
tn_dtype read_integer_dtype(struct json_reader *reader, const struct field *field,
                            const struct ffi_function *function);

// "setup" of a library, "handles" of a function. (callee.c)
void read_setups(struct json_reader *reader, const struct field *object,
                 struct library *library);
void read_handles(struct json_reader *reader, const struct field *field,
                  struct ffi_function *function);

// {"library": "x.so" or [...], "setup": [...], "remedy": "..."}; NULL when "library" is
// absent.
struct library *read_library(struct json_reader *reader, const struct field *object);

// A dtype or C type: "f32", "int", ...; TN_DTYPE_NONE for "T". Absent: `otherwise`.
tn_dtype read_type(struct json_reader *reader, const struct field *field,
                   tn_dtype otherwise);

// Names in expressions. find_name is an extent_lookup, whose `context` is the function.
void add_name(struct json_reader *reader, const struct field *field,
              struct ffi_function *function, const char *text, enum name_source source,
              uint32_t index);
int find_name(void *context, const char *name);
void read_extent(struct json_reader *reader, const struct field *field,
                 struct ffi_function *function, struct extent *out);

// Number of the operand `name`, outputs behind inputs, or -1.
int find_operand(const struct ffi_function *function, const char *name);

#endif // FFI_MANIFEST_H
