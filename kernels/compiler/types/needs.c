// SPDX-License-Identifier: MIT
#include "translator.h"

#include <string.h>

static const uint16_t capabilities[] = {
#define ROW(name, capability) Capability##capability,
    NEEDS(ROW)
#undef ROW
};

static const struct {
    const char *text;
    uint64_t with;
} extensions_table[] = {
#define ROW(name, text, with) {text, with},
    EXTENSIONS(ROW)
#undef ROW
};

void needs_declare(struct translator *t, uint64_t needs)
{
    for (uint32_t i = 0; i < NUM_NEEDS; i++) {
        if (!(needs >> i & 1))
            continue;
        bool has_position = t->seen_needs >> i & 1;
        ir_capability(t->ir, capabilities[i], has_position ? &t->need_positions[i] : NULL);
        const char *extension = spirv_capability_extension(capabilities[i], t->ir->version);
        if (extension != NULL)
            ir_extension(t->ir, extension);
    }
}

void extensions_read(struct translator *t, const struct preprocessed *source)
{
    for (uint32_t i = 0; i < source->num_extensions; i++) {
        const struct extension *extension = &source->extensions[i];
        uint32_t number = 0;
        while (number < NUM_EXTENSIONS &&
               strcmp(extensions_table[number].text, extension->name->text) != 0)
            number++;
        if (number < NUM_EXTENSIONS && extension->is_required)
            t->extensions |= (uint64_t)1 << number | extensions_table[number].with;
        else if (number == NUM_EXTENSIONS && extension->is_required)
            fail_at(t, &extension->at, "extension '%.80s' is not supported",
                    extension->name->text);
    }
}

const char *extension_text(uint64_t extensions)
{
    for (uint32_t i = 0; i < NUM_EXTENSIONS; i++)
        if (extensions >> i & 1)
            return extensions_table[i].text;
    return "";
}

void extension_check(struct translator *t, uint64_t any_of, const struct position *at,
                     const char *what)
{
    if (any_of != 0 && (t->extensions & any_of) == 0)
        fail_at(t, at, "'%.60s' needs '#extension %s : require'", what,
                extension_text(any_of));
}
