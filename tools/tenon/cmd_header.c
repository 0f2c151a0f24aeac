// SPDX-License-Identifier: MIT
// tenon header: writes a C header with one typed function for each operator of a plugin.
//
// Up to two attributes are plain arguments; more are a struct whose NAME_defaults() gives
// what the record says, so that a field that is set to zero is zero.
#include "commands.h"
#include "describe.h"
#include "file.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME 160
#define PLAIN_ATTRS 2 // more of them become a struct

static const char details[] =
    "The functions are static and inline: they call tn_op with the operator's id, and "
    "need\n"
    "nothing but <tenon/tenon.h>. Operators of Tenon's own packs are tn_NAME, those of\n"
    "others PACK_NAME.\n"
    "\n"
    "  tenon header com.acme.axpby -o acme.h\n";

// --- names -----------------------------------------------------------------------------

// What a name must not be: words of C and C++, and what <tenon/tenon.h> declares.
static const char *const taken[] = {
    "and",
    "auto",
    "bool",
    "break",
    "case",
    "char",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "export",
    "extern",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "namespace",
    "new",
    "not",
    "operator",
    "or",
    "private",
    "public",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "try",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
    "scope_",
    "inputs_",
    "attrs_",
    "outputs_",
    "count_",
    "list_",
    "options",
    "tn_array",
    "tn_array_op",
    "tn_array_type",
    "tn_attr",
    "tn_attr_field",
    "tn_attr_list",
    "tn_attr_table",
    "tn_attrs",
    "tn_attrs_print",
    "tn_axis",
    "tn_axis_set",
    "tn_bool",
    "tn_build",
    "tn_config",
    "tn_data",
    "tn_device",
    "tn_devices",
    "tn_dtype",
    "tn_eval",
    "tn_eval_async",
    "tn_explain",
    "tn_expr",
    "tn_f32",
    "tn_f64",
    "tn_float",
    "tn_from_data",
    "tn_function",
    "tn_graph_dot",
    "tn_host",
    "tn_i32",
    "tn_i64",
    "tn_infer",
    "tn_int",
    "tn_ints",
    "tn_item",
    "tn_jvp",
    "tn_keep",
    "tn_kernel",
    "tn_last_error",
    "tn_layout",
    "tn_note",
    "tn_op",
    "tn_op_n",
    "tn_ops",
    "tn_plugin",
    "tn_primitive",
    "tn_read",
    "tn_release",
    "tn_rule",
    "tn_runtime",
    "tn_scalar",
    "tn_scope",
    "tn_segment",
    "tn_shape",
    "tn_stats",
    "tn_status",
    "tn_tensor",
    "tn_type",
    "tn_view",
    "tn_vjp",
    NULL,
};

// An identifier made of `text`: other characters become '_', and what is taken gets one
// more.
static void identifier(const char *text, size_t length, char out[MAX_NAME])
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

static bool is_ours(const char *plugin)
{
    return strncmp(plugin, "org.tenon.", 10) == 0;
}

// "base.add/1" of our own pack: tn_add; "acme.axpby/1": acme_axpby. An older revision that
// a newer one stands beside has its number added.
static void function_name(const char *plugin, const char *id, bool newest,
                          char out[MAX_NAME])
{
    char text[MAX_NAME];
    size_t bare = strcspn(id, "/");
    const char *dot = memchr(id, '.', bare);
    const char *name = dot ? dot + 1 : id;
    const char *revision = newest || !id[bare] ? "" : id + bare + 1;
    if (is_ours(plugin))
        snprintf(text, sizeof(text), "tn_%.*s", (int)(bare - (size_t)(name - id)), name);
    else
        snprintf(text, sizeof(text), "%.*s", (int)bare, id);
    if (*revision)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "_%s", revision);
    identifier(text, strlen(text), out);
}

// --- one operator ----------------------------------------------------------------------

struct emitter {
    FILE *out;
    const tn_primitive *primitive;
    char name[MAX_NAME];
    bool has_struct;
};

static const char *c_type(const tn_attr_field *field)
{
    static const char *const types[] = {
        [TN_ATTR_BOOL] = "int32_t ",       [TN_ATTR_I64] = "int64_t ",
        [TN_ATTR_F64] = "double ",         [TN_ATTR_DTYPE] = "tn_dtype ",
        [TN_ATTR_CHOICE] = "const char *", [TN_ATTR_INTS] = "const tn_ints *",
        [TN_ATTR_BITS] = "uint64_t ",
    };
    return field->kind < COUNT(types) && types[field->kind] ? types[field->kind]
                                                            : "int64_t ";
}

// A record's text in a comment: on one line, and unable to end it.
static void emit_words(FILE *out, const char *text)
{
    for (; text && *text; text++)
        fputc((unsigned char)*text < ' ' || *text == '\\' ? ' ' : *text, out);
}

static void emit_comment(const struct emitter *e)
{
    const tn_primitive *p = e->primitive;
    char value[64];
    fprintf(e->out, "\n// %s: ", p->id);
    emit_words(e->out, p->doc);
    fprintf(e->out, "\n");
    for (uint32_t i = 0; i < p->num_inputs; i++) {
        fprintf(e->out, "//   %s: ", p->inputs[i].name);
        emit_words(e->out, p->inputs[i].doc);
        fprintf(e->out, "%s\n",
                p->inputs[i].flags & TN_INPUT_OPTIONAL ? "; may be NULL" : "");
    }
    for (uint32_t i = 0; i < p->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&p->attrs, i);
        fprintf(e->out, "//   %s: ", field.name);
        emit_words(e->out, field.doc);
        fprintf(e->out, " (%s)\n", attr_default(&field, value, sizeof(value)));
    }
}

static void emit_default(FILE *out, const tn_attr_field *field)
{
    switch (field->kind) {
    case TN_ATTR_F64:
        if (isinf(field->default_f))
            fprintf(out, "%s__builtin_inf()", field->default_f < 0 ? "-" : "");
        else
            fprintf(out, "%.17g", field->default_f);
        break;
    case TN_ATTR_INTS:
        fprintf(out, "NULL");
        break;
    case TN_ATTR_CHOICE:
        fprintf(out, "\"%s\"", field->choices ? field->choices[field->default_i] : "");
        break;
    case TN_ATTR_I64:
        if (field->default_i == INT64_MIN) {
            fprintf(out, "INT64_MIN");
            break;
        }
        // fall through
    default:
        fprintf(out, "%" PRId64, field->default_i);
    }
}

static void emit_struct(const struct emitter *e)
{
    const tn_attr_table *table = &e->primitive->attrs;
    char name[MAX_NAME];
    fprintf(e->out, "typedef struct %s_options {\n", e->name);
    for (uint32_t i = 0; i < table->num_fields; i++) {
        tn_attr_field field = attr_field(table, i);
        identifier(field.name, strlen(field.name), name);
        fprintf(e->out, "    %s%s;\n", c_type(&field), name);
    }
    fprintf(e->out, "} %s_options;\n", e->name);
    fprintf(e->out, "static inline %s_options %s_defaults(void)\n{\n", e->name, e->name);
    fprintf(e->out, "    %s_options options;\n", e->name);
    for (uint32_t i = 0; i < table->num_fields; i++) {
        tn_attr_field field = attr_field(table, i);
        identifier(field.name, strlen(field.name), name);
        fprintf(e->out, "    options.%s = ", name);
        emit_default(e->out, &field);
        fprintf(e->out, ";\n");
    }
    fprintf(e->out, "    return options;\n}\n");
}

static void emit_parameters(const struct emitter *e)
{
    const tn_primitive *p = e->primitive;
    char name[MAX_NAME];
    fprintf(e->out, "tn_scope *scope_");
    for (uint32_t i = 0; i < p->num_inputs; i++) {
        identifier(p->inputs[i].name, strlen(p->inputs[i].name), name);
        if (p->inputs[i].flags & TN_INPUT_VARIADIC)
            fprintf(e->out, ", const tn_array *const *%s, uint64_t num_%s", name, name);
        else
            fprintf(e->out, ", const tn_array *%s", name);
    }
    for (uint32_t i = 0; !e->has_struct && i < p->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&p->attrs, i);
        identifier(field.name, strlen(field.name), name);
        fprintf(e->out, ", %s%s", c_type(&field), name);
    }
    if (e->has_struct)
        fprintf(e->out, ", const %s_options *options", e->name);
    for (uint32_t i = 0; num_outputs(p) > 1 && i < num_outputs(p); i++) {
        tn_output_info output = output_info(p, i);
        identifier(output.name, strlen(output.name), name);
        fprintf(e->out, ", tn_array **out_%s", name);
    }
}

static void emit_attr(const struct emitter *e, const tn_attr_field *field)
{
    char bare[MAX_NAME], value[MAX_NAME + 16];
    identifier(field->name, strlen(field->name), bare);
    snprintf(value, sizeof(value), "%s%s", e->has_struct ? "options->" : "", bare);
    fprintf(e->out, "    ");
    if (field->kind == TN_ATTR_INTS || field->kind == TN_ATTR_CHOICE ||
        field->kind == TN_ATTR_DTYPE)
        fprintf(e->out, "if (%s)\n        ", value);
    fprintf(e->out, "attrs_[count_++] = ");
    if (field->kind == TN_ATTR_INTS)
        fprintf(e->out, "tn_call_ints(\"%s\", %s);\n", field->name, value);
    else if (field->kind == TN_ATTR_CHOICE)
        fprintf(e->out, "tn_call_text(\"%s\", %s);\n", field->name, value);
    else if (field->kind == TN_ATTR_F64)
        fprintf(e->out, "tn_call_number(\"%s\", %s);\n", field->name, value);
    else
        fprintf(e->out, "tn_call_integer(\"%s\", %u, (int64_t)%s);\n", field->name,
                field->kind, value);
}

static void emit_attrs(const struct emitter *e)
{
    const tn_attr_table *table = &e->primitive->attrs;
    if (e->has_struct)
        fprintf(e->out,
                "    const %s_options defaults_ = %s_defaults();\n"
                "    options = options ? options : &defaults_;\n",
                e->name, e->name);
    if (!table->num_fields) {
        fprintf(e->out, "    const tn_attr_list list_ = {NULL, 0};\n");
        return;
    }
    fprintf(e->out, "    tn_attr attrs_[%u];\n    uint64_t count_ = 0;\n",
            table->num_fields);
    for (uint32_t i = 0; i < table->num_fields; i++) {
        tn_attr_field field = attr_field(table, i);
        emit_attr(e, &field);
    }
    fprintf(e->out, "    const tn_attr_list list_ = {attrs_, count_};\n");
}

// Declares the inputs. `array` and `count` are what to pass on.
static void emit_inputs(const struct emitter *e, char array[MAX_NAME],
                        char count[MAX_NAME + 32])
{
    const tn_primitive *p = e->primitive;
    char name[MAX_NAME];
    strcpy(array, "NULL");
    strcpy(count, "0");
    if (!p->num_inputs)
        return;
    if (p->num_inputs == 1 && p->inputs[0].flags & TN_INPUT_VARIADIC) {
        identifier(p->inputs[0].name, strlen(p->inputs[0].name), array);
        snprintf(count, MAX_NAME + 32, "num_%s", array);
        return;
    }
    strcpy(array, "inputs_");
    fprintf(e->out, "    const tn_array *const inputs_[] = {");
    for (uint32_t i = 0; i < p->num_inputs; i++) {
        identifier(p->inputs[i].name, strlen(p->inputs[i].name), name);
        fprintf(e->out, "%s%s", i ? ", " : "", name);
    }
    fprintf(e->out, "};\n");
    snprintf(count, MAX_NAME, "%u", p->num_inputs);
    // Optional inputs stand last: those that are NULL at the end are left out.
    if (p->inputs[p->num_inputs - 1].flags & TN_INPUT_OPTIONAL) {
        uint32_t required = 0;
        while (!(p->inputs[required].flags & TN_INPUT_OPTIONAL))
            required++;
        fprintf(e->out,
                "    uint64_t given_ = %u;\n"
                "    while (given_ > %u && !inputs_[given_ - 1])\n"
                "        given_--;\n",
                p->num_inputs, required);
        strcpy(count, "given_");
    }
}

static void emit_outputs(const struct emitter *e, const char *array, const char *count)
{
    const tn_primitive *p = e->primitive;
    char name[MAX_NAME];
    uint32_t n = num_outputs(p);
    if (n == 1) {
        fprintf(e->out, "    return tn_op(scope_, \"%s\", %s, %s, list_);\n", p->id, array,
                count);
        return;
    }
    fprintf(
        e->out,
        "    tn_array *outputs_[%u] = {NULL};\n"
        "    const tn_status status_ = tn_op_n(scope_, \"%s\", %s, %s, list_, outputs_, "
        "%u);\n",
        n, p->id, array, count, n);
    for (uint32_t i = 0; i < n; i++) {
        tn_output_info output = output_info(p, i);
        identifier(output.name, strlen(output.name), name);
        fprintf(e->out, "    *out_%s = outputs_[%u];\n", name, i);
    }
    fprintf(e->out, "    return status_;\n");
}

// Variadic inputs that follow others would need an array made here; no record has them yet
// in this place, so they are left to tn_op.
static bool can_emit(const tn_primitive *p)
{
    return p->num_inputs <= 1 || !(p->inputs[p->num_inputs - 1].flags & TN_INPUT_VARIADIC);
}

static void emit_function(FILE *out, const char *plugin, const tn_primitive *primitive,
                          bool newest)
{
    struct emitter e = {.out = out,
                        .primitive = primitive,
                        .has_struct = primitive->attrs.num_fields > PLAIN_ATTRS};
    char array[MAX_NAME], count[MAX_NAME + 32];
    function_name(plugin, primitive->id, newest, e.name);
    if (!can_emit(primitive)) {
        fprintf(out, "\n// %s: call it through tn_op.\n", primitive->id);
        return;
    }
    emit_comment(&e);
    if (e.has_struct)
        emit_struct(&e);
    fprintf(out, "static inline %s%s(",
            num_outputs(primitive) > 1 ? "tn_status " : "tn_array *", e.name);
    emit_parameters(&e);
    fprintf(out, ")\n{\n");
    emit_inputs(&e, array, count);
    emit_attrs(&e);
    emit_outputs(&e, array, count);
    fprintf(out, "}\n");
}

// --- the header ------------------------------------------------------------------------

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
    "    const tn_attr attr = {name, kind, 0, value, 0.0, NULL, NULL};\n"
    "    return attr;\n"
    "}\n"
    "static inline tn_attr tn_call_number(const char *name, double value)\n"
    "{\n"
    "    const tn_attr attr = {name, TN_ATTR_F64, 0, 0, value, NULL, NULL};\n"
    "    return attr;\n"
    "}\n"
    "static inline tn_attr tn_call_ints(const char *name, const tn_ints *value)\n"
    "{\n"
    "    const tn_attr attr = {name, TN_ATTR_INTS, 0, 0, 0.0, value, NULL};\n"
    "    return attr;\n"
    "}\n"
    "static inline tn_attr tn_call_text(const char *name, const char *value)\n"
    "{\n"
    "    const tn_attr attr = {name, TN_ATTR_TEXT, 0, 0, 0.0, NULL, value};\n"
    "    return attr;\n"
    "}\n"
    "#endif // TENON_OPS_CALL\n";

// Whether no later id in the sorted list is the same primitive.
static bool is_newest(const char *const *id)
{
    size_t bare = strcspn(id[0], "/");
    return !id[1] || strncmp(id[0], id[1], bare + 1) != 0;
}

static int emit_header(FILE *out, tn_runtime *runtime, const tn_plugin_info *info)
{
    char guard[MAX_NAME];
    identifier(info->id, strlen(info->id), guard);
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
        const tn_primitive *primitive = tn_primitive_find(runtime, *id);
        if (!primitive)
            return oops_library();
        emit_function(out, info->id, primitive, is_newest(id));
    }
    fprintf(out, "\n#endif // %s_OPS_H\n", guard);
    return 0;
}

static int write_header(tn_runtime *runtime, const char *id, const char *output)
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
    int failed = emit_header(stream, runtime, &info);
    if (fclose(stream))
        failed = oops_memory();
    if (!failed)
        failed = file_write(output, text, size);
    free(text);
    return failed;
}

int cmd_header(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    const char *output = "-";
    const struct option options[] = {
        {"output", 'o', "FILE", "write the header there", &output, NULL}};
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    tn_runtime *runtime;
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    failed = write_header(runtime, args.items[0], output);
    tn_runtime_close(runtime);
    return failed;
}
