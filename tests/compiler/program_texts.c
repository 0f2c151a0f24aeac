// SPDX-License-Identifier: MIT
// The GLSL of the set of programs.
#include <stdlib.h>
#include <string.h>
#include "embedded.h"
#include "program/program.h"
#include "program/program_rows.h"
#include "programs.h"
#include "texts.h"

// Words of push constants: few, so that some programs have their arguments in a buffer.
enum { PUSH_WORDS = 32, MOST_GROUP = 256 };

static void write_text(const struct program_case *c, struct text *out)
{
    struct program_class class;
    struct program_args args;
    const struct rows_device device = {c->subgroup, MOST_GROUP, c->subgroup == 0};
    if (c->is_rows)
        program_classify_rows(&c->step, &device, PUSH_WORDS, &class, &args);
    else if (c->is_function)
        program_classify_function(&c->step, &class, &args);
    else
        program_classify(&c->step, PUSH_WORDS, &class, &args);
    program_write_glsl(out, glsl_expression(), glsl_complex(), &c->program, &class);
}

void texts_add_programs(struct shader_texts *texts, const char *filter)
{
    struct program_case made;
    for (uint32_t i = 0; program_case_make(i, &made); i++) {
        struct text text = {0};
        if (filter && !strstr(made.name, filter))
            continue;
        write_text(&made, &text);
        if (text.failed)
            abort();
        texts_add(texts, filter, made.name, text.data, text.size, "");
        text_finish(&text);
    }
}
