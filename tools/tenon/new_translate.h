// SPDX-License-Identifier: MIT
// A primitive's expression in C and in GLSL, in f32: a first kernel for somebody else's
// elementwise operator.
#ifndef TOOLS_TENON_NEW_TRANSLATE_H
#define TOOLS_TENON_NEW_TRANSLATE_H

#include "tool.h"

#define TRANSLATION_SIZE 4096

enum language { IN_C, IN_GLSL };

// What the text needs beside it: max_of(a, b), min_of(a, b), choose(condition, a, b).
struct translation {
    char text[TRANSLATION_SIZE];
    bool max, min, choose;
};

// False where the expression has something that the language has not, or several outputs.
// Inputs become "x[i * row->step[0]]" in C and "x[x_at + i]" in GLSL; numeric attributes
// keep their names.
bool translate(const tn_primitive *primitive, enum language language,
               struct translation *out);

#endif // TOOLS_TENON_NEW_TRANSLATE_H
