// SPDX-License-Identifier: MIT
// docs/glsl.md has the names that the compiler has, and no others: TENON_TEST_GLSL is its
// path.
#include <ctype.h>
#include "tree/builtins.h"
#include "check.h"
#include "compiler.h"

static char *section;

// Reads the part of the document behind a heading, up to the next one of its level.
static void read_section(const char *heading)
{
    const char *path = check_getenv("TENON_TEST_GLSL");
    FILE *file = fopen(path, "rb");
    cr_assert(file != NULL, "%s cannot be read", path);
    static char text[1 << 16];
    size_t size = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    cr_assert(lt(sz, size, sizeof(text) - 1));
    text[size] = 0;
    section = strstr(text, heading);
    cr_assert(section != NULL, "%s has no %s", path, heading);
    section += strlen(heading);
    char *end = strstr(section, "\n## ");
    if (end)
        *end = 0;
}

// Whether the section has `name`.
static bool has(const char *name)
{
    char quoted[128];
    snprintf(quoted, sizeof(quoted), "`%s`", name);
    return strstr(section, quoted);
}

// Copies the next `name` of a table's column (the first is 1), and moves *at behind it.
static bool next_name(const char **at, int column, char out[128])
{
    int in = 0;
    for (const char *p = section; *p; p++) {
        in = *p == '\n' ? 0 : *p == '|' ? in + 1 : in;
        if (*p != '`')
            continue;
        const char *end = strchr(p + 1, '`');
        cr_assert(end != NULL && end - p < 128);
        if (in == column && p >= *at) {
            snprintf(out, 128, "%.*s", (int)(end - p - 1), p + 1);
            *at = end + 1;
            return true;
        }
        p = end;
    }
    return false;
}

Test(document, functions)
{
    read_section("\n## Built-in functions\n");
    for (uint32_t i = 0; i < builtin_table_size; i++) {
        const struct builtin *b = &builtin_table[i];
        cr_assert(memchr(b->name, 0, sizeof(b->name)) != NULL, "row %u: a longer name", i);
        cr_assert(memchr(b->pattern, 0, sizeof(b->pattern)) != NULL, "%s: a longer pattern",
                  b->name);
        cr_expect(has(b->name), "%s is not in the document", b->name);
    }
    char name[128];
    for (const char *at = section; next_name(&at, 2, name);) {
        uint32_t i = 0;
        while (i < builtin_table_size && strcmp(builtin_table[i].name, name) != 0)
            i++;
        cr_expect(lt(u32, i, builtin_table_size), "%s is no function", name);
    }
}

Test(document, extensions)
{
    read_section("\n## Extensions\n");
    for (const char *const *name = glsl_extensions(); *name; name++)
        cr_expect(has(*name), "%s is not in the document", *name);
    char text[128];
    for (const char *at = section; next_name(&at, 1, text);) {
        const char *const *name = glsl_extensions();
        while (*name && strcmp(*name, text) != 0)
            name++;
        cr_expect(name[0] != NULL, "%s is no extension", text);
    }
}

// A shader that reads a variable or constant, with the extension of the third column.
static void compile_name(const char *name, const char *extension)
{
    char text[512];
    snprintf(text, sizeof(text),
             "#version 450\n#extension %s : enable\n"
             "layout(local_size_x = 1) in;\n"
             "layout(std430, binding = 0) buffer X { uint x; };\n"
             "void main() { x = uint(%s); }\n",
             extension, name);
    struct glsl_source source = {
        .text = text, .size = strlen(text), .spirv_version = 0x00010600};
    struct glsl_result result;
    cr_expect(glsl_compile(&source, &result), "%s: %s", name, result.message);
    glsl_result_finish(&result);
}

Test(document, variables)
{
    static const char *const extensions[] = {
        "GL_KHR_shader_subgroup_ballot", "GL_KHR_shader_subgroup_basic",
        "GL_KHR_memory_scope_semantics", "GL_KHR_cooperative_matrix",
        "GL_NV_cooperative_matrix2",
    };
    read_section("\n## Built-in variables and constants\n");
    char name[128];
    for (const char *at = section; next_name(&at, 1, name);) {
        const char *end = strchr(at, '\n'), *needs = "GL_KHR_shader_subgroup_basic";
        for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
            const char *found = strstr(at, extensions[i]);
            needs = found && end && found < end ? extensions[i] : needs;
        }
        compile_name(name, needs);
    }
}
