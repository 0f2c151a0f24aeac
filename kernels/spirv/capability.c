// SPDX-License-Identifier: MIT
#include "numbers.h"

#include <stddef.h>

// Item `index` of NUL-terminated texts that follow each other.
static const char *capability_text_at(const char *text, uint32_t index)
{
    for (; index > 0; index--)
        while (*text++)
            ;
    return text;
}

enum extension {
    CORE,
#define EXTENSION(name) EXTENSION_##name,
    SPIRV_EXTENSIONS(EXTENSION)
#undef EXTENSION
};
#define EXTENSION_CORE CORE

static const struct {
    uint16_t number;
    uint8_t extension, minor; // minor version of SPIR-V that needs no extension for it
} capabilities[] = {
#define NEVER UINT8_MAX
#define CAPABILITY(name, number, extension, minor) {number, EXTENSION_##extension, minor},
    SPIRV_CAPABILITIES(CAPABILITY)
#undef CAPABILITY
#undef NEVER
};

static const char capability_names[] =
#define CAPABILITY(name, number, extension, minor) #name "\0"
    SPIRV_CAPABILITIES(CAPABILITY)
#undef CAPABILITY
    ;

static const char extension_names[] =
#define EXTENSION(name) "SPV_" #name "\0"
    SPIRV_EXTENSIONS(EXTENSION)
#undef EXTENSION
    ;

enum { NUM_CAPABILITIES = sizeof(capabilities) / sizeof(*capabilities) };

static uint32_t find_capability(uint32_t number)
{
    uint32_t i = 0;
    while (i < NUM_CAPABILITIES && capabilities[i].number != number)
        i++;
    return i;
}

const char *spirv_capability_name(uint32_t capability)
{
    uint32_t i = find_capability(capability);
    return i < NUM_CAPABILITIES ? capability_text_at(capability_names, i) : NULL;
}

const char *spirv_capability_extension(uint32_t capability, uint32_t version)
{
    uint32_t i = find_capability(capability);
    if (i == NUM_CAPABILITIES || capabilities[i].extension == CORE ||
        (version >> 8 & 0xff) >= capabilities[i].minor)
        return NULL;
    return capability_text_at(extension_names, capabilities[i].extension - 1U);
}
