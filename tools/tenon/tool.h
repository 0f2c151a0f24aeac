// SPDX-License-Identifier: MIT
// What every part of the command shares: how a failure is told, and element types by name.
//
// Failures. The line that finds a fault calls oops() or misuse() once and returns what they
// return; callers pass it on, and main() prints it. 0 is success throughout.
//
// Threads. The command has one thread of its own.
#ifndef TOOLS_TENON_TOOL_H
#define TOOLS_TENON_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/tenon.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { EXIT_OOPS = 1, EXIT_MISUSE = 2 };

// Records why the command fails, when nothing is recorded yet. Returns EXIT_OOPS.
int oops(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same for wrong usage. Returns EXIT_MISUSE.
int misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Out of memory.
int oops_memory(void);
// The library's last failure; a scope's failure.
int oops_library(void);
int oops_scope(const tn_scope *scope);

// Writes `to` for each `from` in what was recorded: a temporary name is nothing to people.
void oops_about(const char *from, const char *to);

// What was recorded, or "". forget_oops() clears it.
const char *oops_text(void);
void forget_oops(void);

// Prints to standard output for people: printf(), and nothing in it that a terminal would
// obey. All that may hold text from plugins, archives and files is printed so.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same for a line, which stays one: a newline is added at its end alone.
void say_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
// "tenon: TEXT" on standard error, likewise.
void complain(const char *text);
// tn_text_printable() in memory of its own: free it; NULL when out of memory.
char *printable(const char *text, uint32_t flags);
// Writes a text to a file; "-" is standard output, where a terminal gets it printable.
int text_write(const char *path, const char *text);

// Gives a runtime with the environment's configuration.
int open_runtime(tn_runtime **out_runtime);

// "f32"; "?" for a number that is none.
const char *dtype_name(tn_dtype dtype);
// Bytes of an element; 0 for a number that is none.
uint64_t dtype_size(tn_dtype dtype);
// The dtype of this name, or TN_DTYPE_NONE.
tn_dtype dtype_find(const char *name);

// Elements and bytes of an array of this type; false when they overflow 63 bits.
bool type_bytes(tn_dtype dtype, const tn_shape *shape, uint64_t *out_elements,
                uint64_t *out_bytes);

// "(2, 3)", as NumPy writes a shape, into `text`. Returns `text`.
#define SHAPE_TEXT 192
const char *shape_text(const tn_shape *shape, char text[SHAPE_TEXT]);

// Whether `text` ends with `end`, and has something before it.
bool ends_with(const char *text, const char *end);

// An array in the command's own memory, row-major without gaps.
struct host_array {
    tn_dtype dtype;
    tn_shape shape;
    void *data;     // owned
    uint64_t bytes; // of data
};

void host_array_finish(struct host_array *array);
// Evaluates and copies. Fails with the scope's failure.
int host_array_read(tn_scope *scope, tn_array *array, struct host_array *out);
// Element `i` as a number.
double host_array_number(const struct host_array *array, uint64_t i);

#endif // TOOLS_TENON_TOOL_H
