// SPDX-License-Identifier: MIT
// Text from outside, made harmless before people see it.
#ifndef CORE_BASE_TEXT_H
#define CORE_BASE_TEXT_H

#include <stddef.h>
#include <tenon/tenon.h>

// tn_text_printable() in place: what no longer fits into `size` bytes is cut off.
void text_make_printable(char *text, size_t size, unsigned flags);

#endif // CORE_BASE_TEXT_H
