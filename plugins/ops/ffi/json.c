// SPDX-License-Identifier: MIT
// JSON values, and failures with the line and path of their field.
#include "json.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool reading(const struct json_reader *reader)
{
    return reader->problem->status == TN_OK;
}

void *reader_alloc(struct json_reader *reader, size_t size)
{
    void *memory = reading(reader) ? arena_alloc(reader->arena, size) : NULL;
    if (!memory && reader->arena->is_full)
        problem_set(reader->problem, TN_ERR_ARGUMENT,
                    "%s: got a pack of more than %d bytes when read, expected less: make "
                    "several of it",
                    reader->path, ARENA_MAX);
    else if (!memory)
        problem_set(reader->problem, TN_ERR_MEMORY, "out of memory");
    return memory;
}

// --- lines of values -------------------------------------------------------------------

// A position in text that Jansson has read as JSON. Jansson keeps no lines of values.
struct ffi_json_walk {
    const char *at, *end;
};

// Skips white space, ',' and ':'. Returns the next character, or 0 at the end.
static char next_of(struct ffi_json_walk *walk)
{
    while (walk->at < walk->end &&
           (isspace((unsigned char)*walk->at) || *walk->at == ',' || *walk->at == ':'))
        walk->at++;
    return walk->at < walk->end ? *walk->at : 0;
}

static void skip_string(struct ffi_json_walk *walk)
{
    walk->at++;
    while (walk->at < walk->end && *walk->at != '"')
        walk->at += *walk->at == '\\' ? 2 : 1;
    walk->at++;
}

static void skip_value(struct ffi_json_walk *walk)
{
    int depth = 0;
    do {
        char c = next_of(walk);
        if (c == '"') {
            skip_string(walk);
        } else if (c == '{' || c == '[' || c == '}' || c == ']') {
            depth += c == '{' || c == '[' ? 1 : -1;
            walk->at++;
        } else {
            while (walk->at < walk->end && !memchr(",:]} \t\r\n", *walk->at, 8))
                walk->at++;
        }
    } while (depth > 0 && walk->at < walk->end);
}

// Moves from the start of an object or array to its value `field`. False: it has none.
static bool ffi_json_enter(struct ffi_json_walk *walk, const struct field *field)
{
    char opening = next_of(walk);
    if (opening != '{' && opening != '[')
        return false;
    walk->at++;
    for (size_t i = 0; next_of(walk) && *walk->at != '}' && *walk->at != ']'; i++) {
        if (opening == '{') {
            const char *key = walk->at + 1;
            size_t length = field->key ? strlen(field->key) : 0;
            skip_string(walk);
            bool here = field->key && (size_t)(walk->at - 1 - key) == length &&
                        memcmp(key, field->key, length) == 0;
            next_of(walk);
            if (here)
                return true;
        } else if (!field->key && i == field->index) {
            return true;
        }
        skip_value(walk);
    }
    return false;
}

// Moves from the root to the value of `field`, or to the object that lacks it.
static void go_to(struct ffi_json_walk *walk, const struct field *field)
{
    if (!field->parent)
        return;
    go_to(walk, field->parent);
    next_of(walk);
    struct ffi_json_walk inner = *walk;
    if (ffi_json_enter(&inner, field))
        *walk = inner;
}

static int ffi_json_line_of(const struct json_reader *reader, const struct field *field)
{
    struct ffi_json_walk walk = {reader->text, reader->text + reader->size};
    int line = 1;
    go_to(&walk, field);
    next_of(&walk);
    for (const char *c = reader->text; c < walk.at && c < walk.end; c++)
        line += *c == '\n';
    return line;
}

// Prints the path as a JSON pointer (RFC 6901), keys cut after 40 bytes. Returns its
// length.
static size_t print_pointer(const struct field *field, char *text, size_t size)
{
    size_t at = field->parent ? print_pointer(field->parent, text, size) : 0;
    if (!field->parent || at >= size)
        return at;
    if (!field->key)
        return at + (size_t)snprintf(text + at, size - at, "/%zu", field->index);
    at += (size_t)snprintf(text + at, size - at, "/");
    for (const char *c = field->key; *c && c < field->key + 40 && at < size; c++)
        at += (size_t)(*c == '~'   ? snprintf(text + at, size - at, "~0")
                       : *c == '/' ? snprintf(text + at, size - at, "~1")
                                   : snprintf(text + at, size - at, "%c", *c));
    return at;
}

// --- errors ----------------------------------------------------------------------------

void refuse(struct json_reader *reader, const struct field *field, const char *format, ...)
{
    char pointer[200] = "", text[400];
    va_list list;
    if (!reading(reader))
        return;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    print_pointer(field, pointer, sizeof(pointer));
    if (reader->text)
        problem_set(reader->problem, TN_ERR_ARGUMENT, "%s:%d: %s: %s", reader->path,
                    ffi_json_line_of(reader, field), *pointer ? pointer : "/", text);
    else
        problem_set(reader->problem, TN_ERR_ARGUMENT, "%s", text);
}

static const char *ffi_json_type_name(const json_t *value)
{
    static const char *const names[] = {"an object", "an array", "a string", "an integer",
                                        "a real",    "true",     "false",    "null"};
    return value ? names[json_typeof(value)] : "nothing";
}

void refuse_type(struct json_reader *reader, const struct field *field,
                 const char *expected)
{
    refuse(reader, field, "got %s, expected %s", ffi_json_type_name(field->value),
           expected);
}

void refuse_name(struct json_reader *reader, const struct field *field, const char *got,
                 const char *const *known)
{
    char list[200] = "";
    const char *nearest = nearest_name(got, known);
    for (size_t i = 0, at = 0; known[i] && at < sizeof(list); i++)
        at +=
            (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "", known[i]);
    refuse(reader, field, "got \"%.60s\", expected one of %s%s%s%s", got, list,
           nearest ? "; did you mean \"" : "", nearest ? nearest : "",
           nearest ? "\"?" : "");
}

// --- values ----------------------------------------------------------------------------

struct field member(const struct field *object, const char *key)
{
    return (struct field){object, key, 0, json_object_get(object->value, key)};
}

struct field element(const struct field *array, size_t index)
{
    return (struct field){array, NULL, index, json_array_get(array->value, index)};
}

void expect_object(struct json_reader *reader, const struct field *field,
                   const char *const *known)
{
    const char *key;
    json_t *value;
    if (!json_is_object(field->value)) {
        refuse_type(reader, field, "an object");
        return;
    }
    json_object_foreach((json_t *)field->value, key, value)
    {
        bool is_known = false;
        for (size_t i = 0; known[i] && !is_known; i++)
            is_known = strcmp(known[i], key) == 0;
        struct field inner = {field, key, 0, value};
        if (!is_known)
            refuse_name(reader, &inner, key, known);
    }
}

size_t expect_array(struct json_reader *reader, const struct field *field, size_t max,
                    bool is_optional)
{
    if (!field->value && is_optional)
        return 0;
    if (!json_is_array(field->value)) {
        refuse_type(reader, field, "an array");
        return 0;
    }
    if (json_array_size(field->value) > max) {
        refuse(reader, field, "got %zu elements, expected at most %zu",
               json_array_size(field->value), max);
        return 0;
    }
    return json_array_size(field->value);
}

const char *read_text(struct json_reader *reader, const struct field *field,
                      size_t max_size, const char *otherwise)
{
    if (!field->value && otherwise)
        return otherwise;
    if (!json_is_string(field->value)) {
        refuse_type(reader, field, "a string");
        return "";
    }
    const char *text = json_string_value(field->value);
    size_t size = json_string_length(field->value);
    if (size == 0 || size > max_size || strlen(text) != size) {
        refuse(reader, field, "got a string of %zu bytes, expected 1 to %zu", size,
               max_size);
        return "";
    }
    char *copy = reader_alloc(reader, size + 1);
    return copy ? memcpy(copy, text, size) : "";
}

const char *read_name(struct json_reader *reader, const struct field *field)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const char *name = read_text(reader, field, 63, NULL);
    if (strspn(name, letters) != strlen(name) || isdigit((unsigned char)*name))
        refuse(reader, field, "got \"%s\", expected a name of letters, digits and _", name);
    return name;
}

int read_choice(struct json_reader *reader, const struct field *field,
                const char *const *names, int otherwise)
{
    if (!field->value && otherwise >= 0)
        return otherwise;
    const char *text = read_text(reader, field, 63, NULL);
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    refuse_name(reader, field, text, names);
    return 0;
}

int64_t read_integer(struct json_reader *reader, const struct field *field, int64_t least,
                     int64_t most, int64_t otherwise)
{
    if (!field->value)
        return otherwise;
    if (!json_is_integer(field->value)) {
        refuse_type(reader, field, "an integer");
        return otherwise;
    }
    int64_t value = json_integer_value(field->value);
    if (value < least || value > most)
        refuse(reader, field, "got %lld, expected %lld to %lld", (long long)value,
               (long long)least, (long long)most);
    return value;
}

bool read_bool(struct json_reader *reader, const struct field *field, bool otherwise)
{
    if (!field->value)
        return otherwise;
    if (!json_is_boolean(field->value))
        refuse_type(reader, field, "true or false");
    return json_is_true(field->value);
}
