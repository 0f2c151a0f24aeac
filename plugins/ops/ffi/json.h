// SPDX-License-Identifier: MIT
// Reading a manifest's JSON: values with their place in the text, so that each error points
// at the field it is about. The first failure sticks; readers do nothing after it.
#ifndef FFI_JSON_H
#define FFI_JSON_H

#include <jansson.h>
#include <tenon/types.h>
#include "arena.h"

struct reader {
    struct arena *arena;
    struct problem *problem;
    const char *path; // of the file, for messages; "" when there is none
    const char *text; // for line numbers
    size_t size;
};

// A value and how it was reached.
struct field {
    const struct field *parent; // NULL: the root
    const char *key;            // NULL: an element of an array
    size_t index;
    const json_t *value; // NULL: absent
};

bool reading(const struct reader *reader);

// "axpby.json:7: /functions/0/args/2/kind: ...".
void refuse(struct reader *reader, const struct field *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// got an integer, expected a string.
void refuse_type(struct reader *reader, const struct field *field, const char *expected);
// got "inptu", expected one of input, output; did you mean "input"?
void refuse_name(struct reader *reader, const struct field *field, const char *got,
                 const char *const *known);

struct field member(const struct field *object, const char *key);
struct field element(const struct field *array, size_t index);

// Fails unless the field is an object that has none but these members (ended by NULL).
void expect_object(struct reader *reader, const struct field *field,
                   const char *const *known);
// The elements of an array; 0 when it is absent and may be. Fails above `max`.
size_t expect_array(struct reader *reader, const struct field *field, size_t max,
                    bool may_lack);

// A string's copy. `otherwise` when absent; NULL `otherwise`: it may not be.
const char *read_text(struct reader *reader, const struct field *field, size_t max_size,
                      const char *otherwise);
// The same of the form [a-z_][a-z0-9_]*, which the core's names have.
const char *read_name(struct reader *reader, const struct field *field);
// The number of the string in `names`; `otherwise` when absent, and -1: it may not be.
int read_choice(struct reader *reader, const struct field *field, const char *const *names,
                int otherwise);
int64_t read_integer(struct reader *reader, const struct field *field, int64_t least,
                     int64_t most, int64_t otherwise);
bool read_bool(struct reader *reader, const struct field *field, bool otherwise);

void *take(struct reader *reader, size_t size);

#endif // FFI_JSON_H
