// SPDX-License-Identifier: MIT
// The kernel compiler's preprocessor: what it makes of a text is a text of the same tokens.
#include "fuzz.h"
#include "compiler.h"

// A file that includes the text behind it, so that texts include themselves.
static const char *include(void *context, const char *name, const char *from, size_t *size)
{
    const struct glsl_source *source = context;
    FUZZ_CHECK(name[0] && from, "a file has a name");
    *size = source->size;
    return source->text;
}

static char *preprocess_text(const char *text, size_t size, struct glsl_result *result)
{
    struct glsl_source source = {.text = text, .size = size};
    const struct glsl_define define = {"GIVEN", "1"};
    source.defines = &define;
    source.num_defines = 1;
    // A text without its first line has no #version of its own.
    const char *newline = memchr(text, '\n', size);
    struct glsl_source rest = {.text = newline ? newline : text,
                               .size = newline ? (size_t)(text + size - newline) : 0};
    source.include = include;
    source.include_context = &rest;
    return glsl_preprocess(&source, result);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    static const char version[] = "#version 450\n";
    struct glsl_result result;
    char *first = preprocess_text((const char *)data, size, &result);
    if (!first) {
        FUZZ_CHECK(result.message[0], "a failure has a reason");
        FUZZ_CHECK(result.line >= 0 && result.column >= 0, "an error has a place");
        return;
    }
    size_t whole = sizeof(version) - 1 + strlen(first);
    char *text = malloc(whole + 1);
    FUZZ_CHECK(text, "out of memory");
    memcpy(text, version, sizeof(version));
    strcpy(text + sizeof(version) - 1, first);
    char *second = preprocess_text(text, whole, &result);
    // The tokens of many expansions may be too many as a text.
    FUZZ_CHECK(second || strstr(result.message, "bytes") || strstr(result.message, "MiB"),
               "tokens are tokens again: %s", result.message);
    FUZZ_CHECK(!second || strcmp(first, second) == 0, "tokens stay the same");
    free(second);
    free(text);
    free(first);
}
