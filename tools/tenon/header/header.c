// SPDX-License-Identifier: MIT
// tenon header: writes a C header, or a stub for Python, with one typed function for each
// operator of a plugin.
#include "commands.h"
#include "plugins/find.h"
#include "base/file.h"
#include "header.h"
#include "ops/described.h"
#include "plugins/install.h"
#include "files/paths.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char details[] =
    "ID is an installed plugin, whose ops.json is read; an argument with a slash is a\n"
    "shared object, which is loaded. The functions are static and inline: they call tn_op\n"
    "with the operator's id, and need nothing but <tenon/tenon.h>. Operators of Tenon's "
    "own\n"
    "packs are tn_NAME, of pack random tn_rng_NAME, those of others PACK_NAME. Up to two\n"
    "attributes are plain arguments; more are a struct with a function that gives the\n"
    "defaults. With --python it is a stub for checkers of Python's types (.pyi), whose\n"
    "functions are those of tenon.PACK.\n"
    "\n"
    "  tenon header com.acme.axpby -o acme.h\n"
    "  tenon header build/com.acme.axpby.so\n"
    "  tenon header com.acme.axpby --python -o axpby.pyi\n";

// Request for a header: its contents and position.
struct header_request {
    const char *output;
    bool python;
};

static const char prologue[] =
    "#include <stddef.h>\n"
    "#include <tenon/tenon.h>\n"
    "\n"
    "#ifndef TENON_OPS_CALL\n"
    "#define TENON_OPS_CALL\n"
    "// Attributes of the calls below.\n"
    "static inline tn_attr tn_call_integer(const char *name, uint32_t kind, int64_t "
    "value)\n"
    "{\n"
    "    const tn_attr attr = {name, kind, 0, value, 0.0, NULL, NULL, NULL, NULL, NULL, "
    "NULL};\n"
    "    return attr;\n"
    "}\n"
    "static inline tn_attr tn_call_number(const char *name, double value)\n"
    "{\n"
    "    const tn_attr attr = {name, TN_ATTR_F64, 0, 0, value, NULL, NULL, NULL, NULL, "
    "NULL, NULL};\n"
    "    return attr;\n"
    "}\n"
    "static inline tn_attr tn_call_array(const char *name, const tn_array *value)\n"
    "{\n"
    "    const tn_attr attr = {name, TN_ATTR_ARRAY, 0, 0, 0.0, NULL, NULL, NULL, NULL, "
    "value, NULL};\n"
    "    return attr;\n"
    "}\n"
    "static inline tn_attr tn_call_ints(const char *name, const tn_ints *value)\n"
    "{\n"
    "    const tn_attr attr = {name, TN_ATTR_INTS, 0, 0, 0.0, value, NULL, NULL, NULL, "
    "NULL, NULL};\n"
    "    return attr;\n"
    "}\n"
    "static inline tn_attr tn_call_text(const char *name, const char *value)\n"
    "{\n"
    "    const tn_attr attr = {name, TN_ATTR_TEXT, 0, 0, 0.0, NULL, value, NULL, NULL, "
    "NULL, NULL};\n"
    "    return attr;\n"
    "}\n"
    "static inline tn_attr tn_call_int_list(const char *name, const tn_int_list *value)\n"
    "{\n"
    "    const tn_attr attr = {name, TN_ATTR_INT_LIST, 0, 0, 0.0, NULL, NULL, value, "
    "NULL, NULL, NULL};\n"
    "    return attr;\n"
    "}\n"
    "static inline tn_attr tn_call_float_list(const char *name, const tn_float_list "
    "*value)\n"
    "{\n"
    "    const tn_attr attr = {name, TN_ATTR_FLOAT_LIST, 0, 0, 0.0, NULL, NULL, NULL, "
    "value, NULL, NULL};\n"
    "    return attr;\n"
    "}\n"
    "static inline tn_attr tn_call_graph(const char *name, const tn_graph *value)\n"
    "{\n"
    "    const tn_attr attr = {name, TN_ATTR_GRAPH, 0, 0, 0.0, NULL, NULL, NULL, NULL, "
    "NULL, value};\n"
    "    return attr;\n"
    "}\n"
    "#endif // TENON_OPS_CALL\n";

// True when the next id in the sorted list is no revision of the same primitive.
static bool is_newest(const char *const *id)
{
    size_t bare = strcspn(id[0], "/");
    return !id[1] || strncmp(id[0], id[1], bare + 1) != 0;
}

static int emit_header(FILE *out, struct described *described, const tn_plugin_info *info)
{
    char guard[MAX_NAME];
    header_identifier(info->id, strlen(info->id), guard);
    for (char *c = guard; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    fprintf(
        out,
        "// SPDX-License-Identifier: MIT\n"
        "// Operators of plugin %s, version %s. Made by `tenon header`: do not edit.\n"
        "//\n"
        "// Each function builds graph in a scope, as tn_op does: NULL after a failure,\n"
        "// which the scope keeps. Threads: as for tn_op.\n"
        "#ifndef %s_OPS_H\n#define %s_OPS_H\n\n%s",
        info->id, info->version, guard, guard, prologue);
    for (const char *const *id = info->primitives; id && *id; id++) {
        const tn_primitive *primitive = NULL;
        int failed = described_find(described, *id, &primitive);
        if (failed)
            return failed;
        header_emit(out, info->id, primitive, is_newest(id));
    }
    fprintf(out, "\n#endif // %s_OPS_H\n", guard);
    return 0;
}

static int emit_stubs(FILE *out, struct described *described, const tn_plugin_info *info)
{
    fprintf(out,
            "# SPDX-License-Identifier: MIT\n"
            "# Operators of plugin %s, version %s. Made by `tenon header --python`: do not "
            "edit.\n"
            "from collections.abc import Sequence\n"
            "from typing import Any, Literal\n"
            "\n"
            "from tenon import Array\n"
            "from tenon._types import ArrayLike, DTypeLike\n",
            info->id, info->version);
    for (const char *const *id = info->primitives; id && *id; id++) {
        const tn_primitive *primitive = NULL;
        int failed = is_newest(id) ? described_find(described, *id, &primitive) : 0;
        if (failed)
            return failed;
        if (primitive)
            header_emit_stub(out, primitive);
    }
    return 0;
}

static int header_write_header(tn_runtime *runtime, const char *id,
                               const struct header_request *wanted)
{
    tn_plugin_info info;
    if (!plugin_find(runtime, id, &info))
        return no_plugin(runtime, id);
    if (!info.primitives || !*info.primitives)
        return oops("plugin %s has no operators%s%s", id,
                    info.reason && info.reason[0] ? ": " : "",
                    info.reason ? info.reason : "");
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return oops_memory();
    struct described *described = NULL;
    int failed = described_create(runtime, &described);
    if (!failed)
        failed = wanted->python ? emit_stubs(stream, described, &info)
                                : emit_header(stream, described, &info);
    described_free(described);
    if (fclose(stream))
        failed = oops_memory();
    if (!failed)
        failed = text_write(wanted->output, text);
    free(text);
    return failed;
}

static int header_of_installed(const char *id, const struct header_request *wanted)
{
    tn_runtime *runtime;
    int failed = open_runtime(&runtime);
    if (failed)
        return failed;
    failed = header_write_header(runtime, id, wanted);
    tn_runtime_close(runtime);
    return failed;
}

// --- a shared object that is not installed ----------------------------------------------

static int header_of_plugin_in(const char *folder, const char *id,
                               const struct header_request *wanted)
{
    const char *const variables[] = {"TENON_PLUGINS_ONLY=1", NULL};
    const tn_runtime_options options = {
        .struct_size = sizeof(options), .plugin_path = folder, .variables = variables};
    tn_runtime *runtime = NULL;
    if (tn_runtime_open(&options, &runtime))
        return oops_library();
    int failed = header_write_header(runtime, id, wanted);
    tn_runtime_close(runtime);
    return failed;
}

static int header_of_file(const char *file, const struct header_request *wanted)
{
    struct folder folder;
    char id[ID_SIZE];
    int failed = temporary_folder(&folder);
    if (failed)
        return failed;
    failed = plugin_of_object(file, &folder, id);
    if (!failed)
        failed = header_of_plugin_in(folder.path, id, wanted);
    folder_discard(&folder);
    return failed;
}

int cmd_header(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    struct header_request wanted = {.output = "-"};
    const struct option options[] = {
        {"output", 'o', "FILE", "write the header there", &wanted.output, NULL},
        {"python", 0, NULL, "a stub for Python (.pyi), not a header", NULL,
         &wanted.python}};
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    const char *what = args.items[0];
    return strchr(what, '/') || ends_with(what, ".so") ? header_of_file(what, &wanted)
                                                       : header_of_installed(what, &wanted);
}
