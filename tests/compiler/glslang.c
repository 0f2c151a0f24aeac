// SPDX-License-Identifier: MIT
// compiler.h by glslang's C library.
#include "compiler.h"

#include <glslang/Include/glslang_c_interface.h>
#include <glslang/build_info.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Limits that shaders are checked against at compile time. A device's own limits are
// checked when a pipeline is made.
static const glslang_resource_t limits = {
    .max_compute_work_group_count_x = 65535,
    .max_compute_work_group_count_y = 65535,
    .max_compute_work_group_count_z = 65535,
    .max_compute_work_group_size_x = 1024,
    .max_compute_work_group_size_y = 1024,
    .max_compute_work_group_size_z = 64,
    .max_compute_uniform_components = 1024,
    .max_combined_shader_output_resources = 8,
    .limits =
        {
            .non_inductive_for_loops = true,
            .while_loops = true,
            .do_while_loops = true,
            .general_uniform_indexing = true,
            .general_variable_indexing = true,
            .general_constant_matrix_vector_indexing = true,
        },
};

// Whether glslang is initialised, under the lock. It is once in the process.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;

static bool load(void)
{
    pthread_mutex_lock(&lock);
    if (!loaded)
        loaded = glslang_initialize_process() != 0;
    bool ready = loaded;
    pthread_mutex_unlock(&lock);
    return ready;
}

void glsl_compiler_unload(void)
{
    pthread_mutex_lock(&lock);
    if (loaded)
        glslang_finalize_process();
    loaded = false;
    pthread_mutex_unlock(&lock);
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
const char *glsl_compiler_version(void)
{
    return "glslang " TEXT(GLSLANG_VERSION_MAJOR) "." TEXT(GLSLANG_VERSION_MINOR) "." TEXT(
        GLSLANG_VERSION_PATCH);
}

// #line with a name, which our compiler takes without.
#define LINES "#extension GL_GOOGLE_cpp_style_line_directive : enable\n"

// The source with its definitions behind the first line, and a NUL at its end. NULL when
// out of memory.
static char *assemble(const struct glsl_source *source)
{
    const char *newline = memchr(source->text, '\n', source->size);
    size_t first = newline ? (size_t)(newline - source->text) + 1 : source->size;
    size_t size = source->size + sizeof(LINES) + 32;
    for (size_t i = 0; i < source->num_defines; i++)
        size += strlen(source->defines[i].name) + strlen(source->defines[i].value) + 12;
    char *text = malloc(size);
    if (!text)
        return NULL;
    memcpy(text, source->text, first);
    size_t at = first;
    if (newline)
        at += (size_t)snprintf(text + at, size - at, LINES);
    for (size_t i = 0; i < source->num_defines; i++)
        at += (size_t)snprintf(text + at, size - at, "#define %s %s\n",
                               source->defines[i].name, source->defines[i].value);
    if (newline)
        at += (size_t)snprintf(text + at, size - at, "#line 2\n");
    memcpy(text + at, source->text + first, source->size - first);
    text[at + source->size - first] = '\0';
    return text;
}

// Reads the first "ERROR: 0:<line>: <message>" of a log into *out.
static void read_log(struct glsl_result *out, const char *log)
{
    const char *error = log ? strstr(log, "ERROR: ") : NULL;
    if (!error) {
        snprintf(out->message, sizeof(out->message), "%s",
                 log && *log ? log : "no reason given");
        return;
    }
    error += strlen("ERROR: ");
    int used = 0;
    if (sscanf(error, "%*d:%d: %n", &out->line, &used) == 1 && used > 0)
        error += used;
    snprintf(out->message, sizeof(out->message), "%.*s", (int)strcspn(error, "\n"), error);
}

// Generates SPIR-V, not optimised: drivers optimise it themselves.
static bool take_words(struct glsl_result *out, glslang_program_t *program)
{
    glslang_spv_options_t options = {.disable_optimizer = true, .strip_debug_info = true};
    glslang_program_SPIRV_generate_with_options(program, GLSLANG_STAGE_COMPUTE, &options);
    out->num_words = glslang_program_SPIRV_get_size(program);
    out->words = out->num_words ? malloc(out->num_words * sizeof(uint32_t)) : NULL;
    if (!out->words) {
        snprintf(out->message, sizeof(out->message), "out of memory");
        return false;
    }
    glslang_program_SPIRV_get(program, out->words);
    return true;
}

static bool compile_text(const char *text, struct glsl_result *out)
{
    const int messages = GLSLANG_MSG_SPV_RULES_BIT | GLSLANG_MSG_VULKAN_RULES_BIT;
    glslang_input_t input = {
        .language = GLSLANG_SOURCE_GLSL,
        .stage = GLSLANG_STAGE_COMPUTE,
        .client = GLSLANG_CLIENT_VULKAN,
        .client_version = GLSLANG_TARGET_VULKAN_1_1,
        .target_language = GLSLANG_TARGET_SPV,
        .target_language_version = GLSLANG_TARGET_SPV_1_3,
        .code = text,
        .default_version = 460,
        .default_profile = GLSLANG_NO_PROFILE,
        .messages = (glslang_messages_t)messages,
        .resource = &limits,
    };
    bool done = false;
    glslang_program_t *program = NULL;
    glslang_shader_t *shader = glslang_shader_create(&input);
    if (!shader) {
        snprintf(out->message, sizeof(out->message), "out of memory");
        return false;
    }
    if (!glslang_shader_preprocess(shader, &input) ||
        !glslang_shader_parse(shader, &input)) {
        read_log(out, glslang_shader_get_info_log(shader));
        goto finish;
    }
    program = glslang_program_create();
    glslang_program_add_shader(program, shader);
    if (!glslang_program_link(program, messages)) {
        read_log(out, glslang_program_get_info_log(program));
        goto finish;
    }
    done = take_words(out, program);
finish:
    if (program)
        glslang_program_delete(program);
    glslang_shader_delete(shader);
    return done;
}

// Refuses a source with a NUL byte, at which the compiler would end the text. True when
// refused.
static bool refuse_nul(const struct glsl_source *source, struct glsl_result *out)
{
    const char *nul = source->size ? memchr(source->text, '\0', source->size) : NULL;
    if (!nul)
        return false;
    struct glsl_result result = {.line = 1};
    for (const char *at = source->text; at < nul; at++)
        result.line += *at == '\n';
    snprintf(result.message, sizeof(result.message), "a NUL byte, expected text");
    *out = result;
    return true;
}

bool glsl_compile(const struct glsl_source *source, struct glsl_result *out)
{
    struct glsl_result result = {0};
    struct glsl_source given = *source;
    if (!given.text)
        given = (struct glsl_source){.text = ""};
    if (refuse_nul(&given, out))
        return false;
    char *text = load() ? assemble(&given) : NULL;
    bool done = false;
    if (text)
        done = compile_text(text, &result);
    else
        snprintf(result.message, sizeof(result.message), "out of memory");
    free(text);
    *out = result;
    return done;
}

void glsl_result_finish(struct glsl_result *result)
{
    free(result->words);
    *result = (struct glsl_result){0};
}
