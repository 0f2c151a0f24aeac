// SPDX-License-Identifier: MIT
#include "../compiler.h"

#include <string.h>

bool glsl_macros_read(const char *text, struct glsl_macros *out)
{
    char *rest = NULL;
    size_t size = text ? strnlen(text, sizeof(out->text)) : 0;
    out->count = 0;
    out->wrong = "over 255 bytes";
    _Static_assert(sizeof(out->text) == 256 && GLSL_MOST_MACROS == 16, "as the texts say");
    if (size == sizeof(out->text))
        return false;
    memcpy(out->text, size ? text : "", size + 1);
    out->wrong = "over 16";
    for (char *word = strtok_r(out->text, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        if (equals)
            *equals = '\0';
        if (out->count == GLSL_MOST_MACROS)
            return false;
        out->all[out->count++] = (struct glsl_define){word, equals ? equals + 1 : ""};
    }
    out->wrong = NULL;
    return true;
}
