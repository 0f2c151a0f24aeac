// SPDX-License-Identifier: MIT
// Translates a primitive's expression to C or GLSL, in f32: a first kernel for another
// plugin's elementwise operator.
#ifndef TOOLS_TENON_NEW_TRANSLATE_H
#define TOOLS_TENON_NEW_TRANSLATE_H

#include "base/tool.h"

#define TRANSLATION_SIZE 4096

enum language { IN_C, IN_GLSL };

// A translation, and which functions it calls: max_of(a, b), min_of(a, b),
// choose(condition, a, b).
struct translation {
    char text[TRANSLATION_SIZE];
    bool max, min, choose;
};

// False when the language lacks something in the expression, or there are several outputs.
// Inputs become "x[i * row->step[0]]" in C and "x[x_at + i]" in GLSL; numeric attributes
// keep their names.
bool translate(const tn_primitive *primitive, enum language language,
               struct translation *out);

#endif // TOOLS_TENON_NEW_TRANSLATE_H
