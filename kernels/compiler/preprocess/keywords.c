// SPDX-License-Identifier: MIT
#include "keyword.h"
#include "token.h"

#include <string.h>

// By number, each with its NUL; the numbers that are no words have none. One text needs no
// relocations.
#define TEXT(word, ...) #word "\0"
// clang-format off
static const char texts[] = "\0"
    KEYWORD_TYPES(TEXT) "\0"
    KEYWORD_TYPE_MAKERS(TEXT) "\0"
    KEYWORD_QUALIFIERS(TEXT) "\0"
    KEYWORD_CONTROLS(TEXT)
    KEYWORD_VALUES(TEXT) "\0"
    KEYWORD_RESERVED(TEXT);
// clang-format on
#undef TEXT

void compiler_keywords(struct compiler *c)
{
    const char *text = texts;
    for (uint32_t i = 0; i < NUM_KEYWORDS; i++) {
        size_t size = strlen(text);
        if (size > 0)
            compiler_name(c, text, size)->keyword = i;
        text += size + 1;
    }
}
