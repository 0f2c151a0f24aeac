// SPDX-License-Identifier: MIT
// The message of the last failure on this thread.
//
// The line that finds a fault calls fail() once; its callers pass the status on. A caller
// that knows the context ("base.matmul", "plugin com.acme.x") puts that in front with
// fail_prefix().
#ifndef CORE_BASE_FAIL_H
#define CORE_BASE_FAIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <tenon/status.h>

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
// Paths to these calls are compiled for size, apart from others.
#define FAIL_COLD __attribute__((cold))

// Replaces the thread's message; returns `status`.
FAIL_COLD tn_status fail(tn_status status, const char *format, ...) PRINTF_LIKE(2, 3);
FAIL_COLD tn_status fail_v(tn_status status, const char *format, va_list list);

// Says whether the thread's message is about the dtype of an operand; TN_ERR_ARGUMENT.
tn_status fail_set_dtype(bool is_dtype);
bool fail_is_dtype(void);

// Puts text in front of the thread's message: "base.matmul: " + "inner extents ...". The
// message stays as it is when the prefix fills the buffer.
FAIL_COLD void fail_prefix(const char *format, ...) PRINTF_LIKE(1, 2);
// Puts "NAME: " in front, unless one of the message's prefixes is that name already.
FAIL_COLD void fail_prefix_name(const char *name);

// TN_ERR_ARGUMENT with "FUNCTION: WHAT is NULL" for a null pointer, else TN_OK.
tn_status fail_if_null(const char *function, const char *what, const void *pointer);

// Checks the status that a plugin's function returned. An unknown code becomes
// TN_ERR_INTERNAL; a failure without a message gets one of `who` ("kernel cblas of
// org.tenon.cpu-blas") and the code. Call fail_clear() before the plugin's function.
tn_status fail_from(tn_status status, const char *who, ...) PRINTF_LIKE(2, 3);

// Records "out of memory" with the size in bytes; returns TN_ERR_MEMORY.
FAIL_COLD tn_status fail_memory(uint64_t size);

// The thread's message; "" when there is none. Valid until the next failure.
const char *fail_text(void);
void fail_clear(void);

// Copies the thread's message, and puts a copy back: around calls that may replace it.
#define FAIL_TEXT_SIZE 2048
void fail_save(char copy[FAIL_TEXT_SIZE]);
void fail_restore(const char copy[FAIL_TEXT_SIZE]);

#endif // CORE_BASE_FAIL_H
