// SPDX-License-Identifier: MIT
// tenon-glslc: compiles a shader in a file to SPIR-V.
#include "compiler.h"
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: tenon-glslc [OPTION]... FILE\n"
    "\n"
    "Compiles a compute shader, in the subset of GLSL 4.60 that docs/glsl.md describes, "
    "to\n"
    "SPIR-V. FILE -: standard input.\n"
    "\n"
    "  -o FILE            where the words go; -: standard output. Without it: FILE.spv\n"
    "  -DNAME[=VALUE]     defines a macro behind #version; without a value as 1\n"
    "  -IFOLDER           where #include looks, behind the folder of the file it is in\n"
    "  --target TARGET    vulkan1.1 (SPIR-V 1.3, the default), vulkan1.2 (1.5) or\n"
    "                     vulkan1.3 (1.6)\n"
    "  --spirv VERSION    1.3, 1.4, 1.5 or 1.6\n"
    "  --functions        keeps functions, with their names, for programs that link them\n"
    "  -O0                leaves the code as the front end makes it\n"
    "  --preprocess       writes the text behind the preprocessor instead, by default to\n"
    "                     standard output\n"
    "  -MD                writes what the output was made of, for make and ninja: OUT.d\n"
    "  -MF FILE           the same, to FILE\n"
    "  --extensions       lists the extensions of GLSL that are known\n"
    "  --version          says name and version\n"
    "  --help             says this\n"
    "\n"
    "Exit status: 0, or 1 after an error in the shader or a file, 2 for wrong arguments.\n";

struct options {
    const char *input, *output, *dependencies; // NULL: not said
    bool writes_dependencies, preprocesses;
    uint32_t spirv_version, flags;
    struct glsl_define *defines;
    size_t num_defines;
    const char **folders;
    size_t num_folders;
};

static _Noreturn void tool_oops(const char *problem, const char *what)
{
    fprintf(stderr, "tenon-glslc: %s%s\nTry tenon-glslc --help.\n", problem, what);
    exit(2);
}

// --- arguments --------------------------------------------------------------------------

static const struct tool_version {
    const char *target, *spirv;
    uint32_t number;
} versions[] = {
    {"vulkan1.1", "1.3", 0x00010300},
    {"", "1.4", 0x00010400},
    {"vulkan1.2", "1.5", 0x00010500},
    {"vulkan1.3", "1.6", 0x00010600},
};

static uint32_t version_of(const char *text, bool is_target)
{
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        if (strcmp(is_target ? versions[i].target : versions[i].spirv, text) == 0 && *text)
            return versions[i].number;
    tool_oops(is_target ? "--target is not vulkan1.1, vulkan1.2 or vulkan1.3: "
                        : "--spirv is not 1.3, 1.4, 1.5 or 1.6: ",
              text);
}

static void add_define(struct options *options, char *text)
{
    char *equals = strchr(text, '=');
    if (equals)
        *equals = 0;
    options->defines[options->num_defines++] =
        (struct glsl_define){text, equals ? equals + 1 : "1"};
}

// The value of an option that has one: behind `name` in its argument, or the next argument.
// NULL: the argument is another one.
static char *tool_value_of(char **argv, int *at, const char *name, bool may_join)
{
    size_t size = strlen(name);
    char *argument = argv[*at];
    if (strncmp(argument, name, size) != 0)
        return NULL;
    if (argument[size] == '=' && !may_join)
        return argument + size + 1;
    if (argument[size] != 0)
        return may_join ? argument + size : NULL;
    if (!argv[*at + 1])
        tool_oops("a value is missing behind ", name);
    return argv[++*at];
}

static bool tool_read_flag(struct options *options, const char *argument)
{
    if (strcmp(argument, "--functions") == 0)
        options->flags |= GLSL_KEEPS_FUNCTIONS;
    else if (strcmp(argument, "-O0") == 0)
        options->flags |= GLSL_NOT_OPTIMISED;
    else if (strcmp(argument, "--preprocess") == 0)
        options->preprocesses = true;
    else if (strcmp(argument, "-MD") == 0)
        options->writes_dependencies = true;
    else
        return false;
    return true;
}

static void tool_read_argument(struct options *options, char **argv, int *at)
{
    char *value;
    if (tool_read_flag(options, argv[*at]))
        return;
    if ((value = tool_value_of(argv, at, "-MF", true))) {
        options->writes_dependencies = true;
        options->dependencies = value;
    } else if ((value = tool_value_of(argv, at, "-D", true))) {
        add_define(options, value);
    } else if ((value = tool_value_of(argv, at, "-I", true))) {
        options->folders[options->num_folders++] = value;
    } else if ((value = tool_value_of(argv, at, "-o", true))) {
        options->output = value;
    } else if ((value = tool_value_of(argv, at, "--target", false))) {
        options->spirv_version = version_of(value, true);
    } else if ((value = tool_value_of(argv, at, "--spirv", false))) {
        options->spirv_version = version_of(value, false);
    } else if (argv[*at][0] == '-' && argv[*at][1]) {
        tool_oops("unknown option ", argv[*at]);
    } else if (options->input) {
        tool_oops("a second file: ", argv[*at]);
    } else {
        options->input = argv[*at];
    }
}

static void say_and_exit(const char *argument)
{
    if (strcmp(argument, "--help") == 0) {
        fputs(usage, stdout);
    } else if (strcmp(argument, "--version") == 0) {
        puts(glsl_compiler_version());
    } else if (strcmp(argument, "--extensions") == 0) {
        for (const char *const *name = glsl_extensions(); *name; name++)
            puts(*name);
    } else {
        return;
    }
    exit(fflush(stdout) || ferror(stdout) ? 1 : 0);
}

// --- errors -----------------------------------------------------------------------------

// The line of an error and a caret below its column.
static void show_line(const struct file *file, int line, int column)
{
    const char *at = file->text, *end = file->text + file->size;
    for (int i = 1; i < line && at; i++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    enum { MOST = 160 };
    const char *last = at ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    int size = at ? (int)((last ? last : end) - at) : 0;
    if (size <= 0 || column > size + 1 || column > MOST)
        return;
    fprintf(stderr, "%.*s\n", size < MOST ? size : MOST, at);
    for (int i = 0; i < column - 1; i++)
        fputc(at[i] == '\t' ? '\t' : ' ', stderr);
    fputs("^\n", stderr);
}

static int show_error(const struct files *files, const struct glsl_result *result)
{
    const struct file *file = files_find(files, result->file);
    const char *name = file ? file->path : result->file;
    if (strcmp(name, "-") == 0)
        name = "<stdin>";
    if (result->line > 0)
        fprintf(stderr, "%s:%d:%d: error: %s\n", name, result->line, result->column,
                result->message);
    else
        fprintf(stderr, "%s: error: %s\n", files->first->name, result->message);
    if (file && result->line > 0)
        show_line(file, result->line, result->column);
    return 1;
}

static int show_errno(const char *path)
{
    fprintf(stderr, "tenon-glslc: %s: %s\n", path, strerror(errno));
    return 1;
}

// --- the work ---------------------------------------------------------------------------

static char *with_end(const char *path, const char *end)
{
    size_t size = strlen(path) + strlen(end) + 1;
    char *out = malloc(size);
    if (out)
        snprintf(out, size, "%s%s", path, end);
    return out;
}

static int tool_write_output(const struct options *options, const struct files *files,
                             const void *data, size_t size)
{
    bool is_piped = options->preprocesses || strcmp(options->input, "-") == 0;
    char *made = with_end(is_piped ? "-" : options->input, is_piped ? "" : ".spv");
    const char *output = options->output ? options->output : made;
    if (!output)
        return show_errno(options->input);
    bool has_target = options->dependencies || strcmp(output, "-") != 0;
    if (options->writes_dependencies && !has_target)
        tool_oops("-MD has no file to write: expected -o or -MF", "");
    int status = file_write(output, data, size) ? 0 : show_errno(output);
    char *made_dependencies = with_end(output, ".d");
    const char *dependencies =
        options->dependencies ? options->dependencies : made_dependencies;
    if (status == 0 && options->writes_dependencies &&
        !files_write_dependencies(files, dependencies, output))
        status = show_errno(dependencies);
    free(made_dependencies);
    free(made);
    return status;
}

static int tool_compile(const struct options *options, struct files *files)
{
    const struct file *file = files_read_source(files, options->input);
    if (!file)
        return show_errno(options->input);
    const struct glsl_source source = {
        .text = file->text,
        .size = file->size,
        .defines = options->defines,
        .num_defines = options->num_defines,
        .name = file->name,
        .include = files_include,
        .include_context = files,
        .spirv_version = options->spirv_version,
        .flags = options->flags,
    };
    struct glsl_result result;
    if (options->preprocesses) {
        char *text = glsl_preprocess(&source, &result);
        int status = text ? tool_write_output(options, files, text, strlen(text))
                          : show_error(files, &result);
        free(text);
        return status;
    }
    if (!glsl_compile(&source, &result))
        return show_error(files, &result);
    int status = tool_write_output(options, files, result.words,
                                   result.num_words * sizeof(uint32_t));
    glsl_result_finish(&result);
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    options.defines = calloc((size_t)argc + 1, sizeof(*options.defines));
    options.folders = calloc((size_t)argc + 1, sizeof(*options.folders));
    if (!options.defines || !options.folders)
        return show_errno("arguments");
    for (int i = 1; i < argc; i++) {
        say_and_exit(argv[i]);
        tool_read_argument(&options, argv, &i);
    }
    if (!options.input)
        tool_oops("no file", "");
    struct files files = {.folders = options.folders, .num_folders = options.num_folders};
    int status = tool_compile(&options, &files);
    files_finish(&files);
    free(options.folders);
    free(options.defines);
    return status;
}
