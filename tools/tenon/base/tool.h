// SPDX-License-Identifier: MIT
// Shared by all parts of the command: failures, output, element types, and host arrays.
//
// Failures. Code that finds a fault calls oops() or misuse() once and returns the result;
// callers return this unchanged, and main() prints the message. 0 is success throughout.
//
// Threads. The command has one thread of its own.
#ifndef TOOLS_TENON_BASE_TOOL_H
#define TOOLS_TENON_BASE_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/tenon.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { EXIT_OOPS = 1, EXIT_MISUSE = 2 };

// Records why the command fails; the first message stays. Returns EXIT_OOPS.
int oops(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same for wrong usage. Returns EXIT_MISUSE.
int misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Out of memory.
int oops_memory(void);
// Standard output is full or closed.
int oops_output(void);
// Record the library's last failure, or a scope's.
int oops_library(void);
int oops_scope(const tn_scope *scope);

// Replaces `from` by `to` in the recorded message: a temporary path tells people nothing.
void oops_about(const char *from, const char *to);

// The recorded message, or "". forget_oops() clears it.
const char *oops_text(void);
void forget_oops(void);

// Prints to standard output like printf(), with control characters escaped. All text that
// may come from plugins, archives and files is printed so.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same for one line: newlines in the text are escaped, and one is added at its end.
void say_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Prints "tenon: TEXT" on standard error, escaped likewise.
void complain(const char *text);
// Shows one line on standard error, where that is a terminal, in place of the last such
// line; NULL takes it away.
void progress(const char *text);
// tn_text_printable() into new memory: free it. NULL when out of memory.
char *printable(const char *text, uint32_t flags);
// Writes a text to a file; "-" is standard output, where a terminal gets it escaped.
int text_write(const char *path, const char *text);

// Gives a runtime with the environment's configuration.
int open_runtime(tn_runtime **out_runtime);

// Name of a dtype, "f32"; "?" for an invalid number.
const char *dtype_name(tn_dtype dtype);
// Bytes of an element; 0 for an invalid number.
uint64_t dtype_size(tn_dtype dtype);
// Elements and bytes of an array of this type; false when they overflow 63 bits.
bool type_bytes(tn_dtype dtype, const tn_shape *shape, uint64_t *out_elements,
                uint64_t *out_bytes);

// Writes a shape as NumPy does, "(2, 3)". Returns `text`.
#define SHAPE_TEXT 192
const char *shape_text(const tn_shape *shape, char text[SHAPE_TEXT]);

// Writes a number of bytes, "1.5 MB". Returns `text`.
#define SIZE_TEXT 32
const char *size_text(uint64_t bytes, char text[SIZE_TEXT]);

// True when `text` ends with `end` and has something before it.
bool ends_with(const char *text, const char *end);

// An array in the command's own memory, row-major without gaps.
struct host_array {
    tn_dtype dtype;
    tn_shape shape;
    void *data;     // owned
    uint64_t bytes; // of data
};

void host_array_finish(struct host_array *array);
// Evaluates `array` and copies its elements. Fails with the scope's failure.
int host_array_read(tn_scope *scope, tn_array *array, struct host_array *out);
// Element `i` as a number.
double host_array_number(const struct host_array *array, uint64_t i);

#endif // TOOLS_TENON_BASE_TOOL_H
