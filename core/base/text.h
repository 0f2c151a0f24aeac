// SPDX-License-Identifier: MIT
// Foreign text (of plugins, files, applications), escaped before it is shown.
#ifndef CORE_BASE_TEXT_H
#define CORE_BASE_TEXT_H

#include <stddef.h>
#include <tenon/tenon.h>

// tn_text_printable() in place, cut after the last character that fits `size` (at most
// 4096) bytes.
void text_make_printable(char *text, size_t size, unsigned flags);

// The bytes of the longest beginning of `text` that is valid UTF-8.
size_t text_valid(const char *text);

#endif // CORE_BASE_TEXT_H
