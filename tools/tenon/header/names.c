// SPDX-License-Identifier: MIT
// The names in a header of operators.
#include "header.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// Names that are in use: words of C and C++, <tenon/tenon.h>, and the functions' own
// variables.
// clang-format off
static const char *const taken[] = {
    "and", "auto", "bool", "break", "case", "char", "class", "const", "continue",
    "default", "delete", "do", "double", "else", "enum", "export", "extern", "float",
    "for", "friend", "goto", "if", "inline", "int", "long", "namespace", "new", "not",
    "operator", "or", "private", "public", "register", "restrict", "return", "short",
    "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw", "try",
    "typedef", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
    "while", "xor", "scope_", "inputs_", "attrs_", "outputs_", "count_", "list_",
    "options", "tn_array", "tn_array_op", "tn_array_type", "tn_attr", "tn_attr_field",
    "tn_attr_list", "tn_attr_table", "tn_attrs", "tn_attrs_print", "tn_axis",
    "tn_axis_set", "tn_bool", "tn_build", "tn_config", "tn_data", "tn_device",
    "tn_devices", "tn_dtype", "tn_eval", "tn_eval_async", "tn_explain", "tn_expr",
    "tn_f32", "tn_f64", "tn_float", "tn_float_list", "tn_from_data", "tn_function", "tn_graph_dot",
    "tn_host", "tn_i32", "tn_i64", "tn_infer", "tn_int", "tn_int_list", "tn_ints", "tn_item", "tn_jvp",
    "tn_keep", "tn_kernel", "tn_last_error", "tn_layout", "tn_name", "tn_note", "tn_op", "tn_op_n",
    "tn_op_outputs", "num_outputs_",
    "tn_ops", "tn_plugin", "tn_primitive", "tn_read", "tn_release", "tn_rule",
    "tn_runtime", "tn_scalar", "tn_scope", "tn_segment", "tn_shape", "tn_stats",
    "tn_status", "tn_tensor", "tn_type", "tn_view", "tn_vjp", "tn_vmap", "tn_vmap_call",
    NULL,
};
// clang-format on

void header_identifier(const char *text, size_t length, char out[MAX_NAME])
{
    size_t n = 0;
    if (isdigit((unsigned char)text[0]))
        out[n++] = '_';
    for (size_t i = 0; i < length && n + 2 < MAX_NAME; i++)
        out[n++] = isalnum((unsigned char)text[i]) ? text[i] : '_';
    out[n] = '\0';
    for (const char *const *word = taken; *word; word++)
        if (strcmp(*word, out) == 0)
            strcpy(out + n, "_");
}

static bool header_names_is_ours(const char *plugin)
{
    return strncmp(plugin, "org.tenon.", 10) == 0;
}

void header_function_name(const char *plugin, const char *id, bool newest,
                          char out[MAX_NAME])
{
    char text[MAX_NAME];
    size_t bare = strcspn(id, "/");
    const char *dot = memchr(id, '.', bare);
    const char *name = dot ? dot + 1 : id;
    const char *revision = newest || !id[bare] ? "" : id + bare + 1;
    // Names of random and optim get a prefix, since other packs have them: base has gamma,
    // split and random_uniform, nn has adam and sgd.
    const char *space = strcmp(plugin, "org.tenon.random") == 0  ? "rng_"
                        : strcmp(plugin, "org.tenon.optim") == 0 ? "optim_"
                                                                 : "";
    if (header_names_is_ours(plugin))
        snprintf(text, sizeof(text), "tn_%s%.*s", space, (int)(bare - (size_t)(name - id)),
                 name);
    else
        snprintf(text, sizeof(text), "%.*s", (int)bare, id);
    if (*revision)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "_%s", revision);
    header_identifier(text, strlen(text), out);
}
