// SPDX-License-Identifier: MIT
// Reading a manifest's JSON. A field knows its path from the root, so that each failure has
// the line and path of its field. Only the first failure is kept.
#ifndef FFI_JSON_H
#define FFI_JSON_H

#include <jansson.h>
#include <tenon/types.h>
#include "arena.h"

struct json_reader {
    struct ffi_arena *arena;
    struct problem *problem;
    const char *path; // of the file, for messages; "" when there is none
    const char *text; // for line numbers; NULL: messages have neither line nor path
    size_t size;
};

// A JSON value and its path from the root. Borrows the parent, the key and the value.
struct field {
    const struct field *parent; // NULL: the root
    const char *key;            // NULL: an element of an array
    size_t index;
    const json_t *value; // NULL: absent
};

// Whether nothing has failed yet.
bool reading(const struct json_reader *reader);

// Records a failure: "axpby.json:7: /functions/0/args/2/kind: ...".
void refuse(struct json_reader *reader, const struct field *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Records: got an integer, expected a string.
void refuse_type(struct json_reader *reader, const struct field *field,
                 const char *expected);
// Records: got "inptu", expected one of input, output; did you mean "input"?
void refuse_name(struct json_reader *reader, const struct field *field, const char *got,
                 const char *const *known);

struct field member(const struct field *object, const char *key);
struct field element(const struct field *array, size_t index);

// Fails unless the field is an object whose members are all in `known` (ended by NULL).
void expect_object(struct json_reader *reader, const struct field *field,
                   const char *const *known);
// The number of elements of an array; fails above `max`. An absent array has 0 elements
// when `is_optional`, and fails otherwise.
size_t expect_array(struct json_reader *reader, const struct field *field, size_t max,
                    bool is_optional);

// A copy of a string of 1 to `max_size` bytes, in the arena. Absent: `otherwise`, or a
// failure when that is NULL.
const char *read_text(struct json_reader *reader, const struct field *field,
                      size_t max_size, const char *otherwise);
// Likewise a name of the form [A-Za-z_][A-Za-z0-9_]*; fails when absent.
const char *read_name(struct json_reader *reader, const struct field *field);
// The index of a string in `names` (ended by NULL). Absent: `otherwise`, or a failure when
// that is -1.
int read_choice(struct json_reader *reader, const struct field *field,
                const char *const *names, int otherwise);
// Absent: `otherwise`.
int64_t read_integer(struct json_reader *reader, const struct field *field, int64_t least,
                     int64_t most, int64_t otherwise);
bool read_bool(struct json_reader *reader, const struct field *field, bool otherwise);

// Zeroed memory in the arena. NULL after a failure; running out of memory is one.
void *reader_alloc(struct json_reader *reader, size_t size);

#endif // FFI_JSON_H
