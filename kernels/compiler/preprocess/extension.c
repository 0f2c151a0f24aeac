// SPDX-License-Identifier: MIT
// The extensions of GLSL that the compiler knows: each is a macro as well.
#include "extension.h"
#include "preprocess.h"

#include <string.h>

static const char *const extensions[] = {
#define ROW(name, text, with) text,
    EXTENSIONS(ROW)
#undef ROW
        NULL};

const char *const *glsl_extensions(void)
{
    return extensions;
}

bool preprocess_extension(const char *name)
{
    for (const char *const *known = extensions; *known; known++)
        if (strcmp(*known, name) == 0)
            return true;
    return false;
}
