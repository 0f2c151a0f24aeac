// SPDX-License-Identifier: MIT
// tenon new kernels: values for the templates, from the record of another plugin's
// primitive.
#include "ops/describe.h"
#include "new.h"
#include "translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPERANDS 8      // of a row
#define MAX_PUSH_OPERANDS 4 // of TN_PUSH_OFFSETS
#define MAX_PUSH_NUMBERS 4  // of TN_PUSH_NUMBERS

// A text under construction.
struct new_kernels_text {
    FILE *out;
    char *data; // owned, valid after text_set
    size_t size;
};

static int text_open(struct new_kernels_text *text)
{
    text->data = NULL;
    text->out = open_memstream(&text->data, &text->size);
    return text->out ? 0 : oops_memory();
}

// Closes the text, and sets the template's value `key` to it.
static int text_set(struct new_kernels_text *text, struct project *project, const char *key)
{
    int failed =
        fclose(text->out) ? oops_memory() : project_set(project, key, "%s", text->data);
    free(text->data);
    return failed;
}

// --- attributes ------------------------------------------------------------------------

static bool all_numbers(const tn_primitive *p)
{
    for (uint32_t i = 0; i < p->attrs.num_fields; i++)
        if (attr_field(&p->attrs, i).kind != TN_ATTR_F64)
            return false;
    return true;
}

static const char *member_type(uint32_t kind)
{
    return kind == TN_ATTR_F64          ? "double "
           : kind == TN_ATTR_INTS       ? "tn_ints "
           : kind == TN_ATTR_BITS       ? "uint64_t "
           : kind == TN_ATTR_STRING     ? "const char *"
           : kind == TN_ATTR_INT_LIST   ? "const tn_int_list *"
           : kind == TN_ATTR_FLOAT_LIST ? "const tn_float_list *"
           : kind == TN_ATTR_GRAPH      ? "const tn_graph *"
                                        : "int64_t ";
}

// Writes the members in the order of their offsets; the table may list them in any order.
static void new_kernels_write_members(FILE *out, const tn_attr_table *table)
{
    for (uint64_t next = 0; next < table->size; next++)
        for (uint32_t i = 0; i < table->num_fields; i++) {
            tn_attr_field field = attr_field(table, i);
            if (field.offset == next)
                fprintf(out, "    %s%s; // %s\n", member_type(field.kind), field.name,
                        field.doc ? field.doc : "");
        }
}

// True when the table's fields fill the struct.
static bool new_kernels_is_whole(const tn_attr_table *table)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < table->num_fields; i++)
        size += attr_field(table, i).kind == TN_ATTR_INTS ? sizeof(tn_ints) : 8;
    return size == table->size;
}

static int set_attrs(struct project *project, const tn_primitive *p)
{
    struct new_kernels_text text;
    if (p->attrs.num_fields == 0 || !new_kernels_is_whole(&p->attrs))
        return 0;
    int failed = text_open(&text);
    if (failed)
        return failed;
    fprintf(text.out, "typedef struct %s_attrs {\n", project->name);
    new_kernels_write_members(text.out, &p->attrs);
    fprintf(text.out, "} %s_attrs;", project->name);
    return text_set(&text, project, "ATTRS");
}

// --- whether f32 gives f32 -------------------------------------------------------------

// Sets the attributes that have no default to 2. Returns how many there are.
static uint64_t new_kernels_required(const tn_primitive *p, tn_attr attrs[static 32])
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < p->attrs.num_fields && i < 32; i++) {
        tn_attr_field field = attr_field(&p->attrs, i);
        if (field.flags & TN_ATTR_REQUIRED)
            attrs[count++] = (tn_attr){.name = field.name, .kind = TN_ATTR_F64, .f = 2};
    }
    return count;
}

// False for comparisons, which give booleans, and for operators that take them.
static bool is_float_to_float(tn_runtime *runtime, const tn_primitive *p)
{
    tn_scope *scope = tn_scope_open(runtime);
    const float data[2] = {0};
    const tn_array *inputs[MAX_OPERANDS];
    tn_attr attrs[32];
    for (uint32_t i = 0; i < p->num_inputs && i < MAX_OPERANDS; i++)
        inputs[i] = tn_from_data(scope, TN_F32, TN_SHAPE(2), data);
    const tn_type *type =
        p->num_inputs > MAX_OPERANDS
            ? NULL
            : tn_array_type(tn_op(scope, p->id, inputs, p->num_inputs,
                                  TN_ATTR_LIST(attrs, new_kernels_required(p, attrs))));
    bool is_so = type && type->dtype == TN_F32;
    tn_scope_close(scope);
    return is_so;
}

// --- shared by all forms ---------------------------------------------------------------

static int set_signature(struct project *project, const tn_primitive *p)
{
    struct new_kernels_text text;
    int failed = text_open(&text);
    if (failed)
        return failed;
    for (uint32_t i = 0; i < p->num_inputs; i++)
        fprintf(text.out, "//   %s: %s%s", p->inputs[i].name, p->inputs[i].doc,
                i + 1 < p->num_inputs ? "\n" : "");
    return text_set(&text, project, "SIGNATURE");
}

// --- kernel in C -----------------------------------------------------------------------

static int set_c(struct project *project, const tn_primitive *p,
                 const struct translation *translation)
{
    struct new_kernels_text text;
    int failed = text_open(&text);
    if (failed)
        return failed;
    for (uint32_t i = 0; i < p->num_inputs; i++)
        fprintf(text.out, "    const float *%s = row->data[%u];\n", p->inputs[i].name, i);
    for (uint32_t i = 0; i < p->attrs.num_fields; i++) {
        const char *name = attr_field(&p->attrs, i).name;
        fprintf(text.out, "    const float %s = (float)attrs->%s;\n", name, name);
    }
    fprintf(text.out, "    float *out = row->data[%u];", p->num_inputs);
    failed = text_set(&text, project, "LOCALS");
    failed = failed ? failed : project_set(project, "OUT", "%u", p->num_inputs);
    return failed ? failed : project_set(project, "C_EXPR", "%s", translation->text);
}

// --- kernel in GLSL --------------------------------------------------------------------

static void write_push(FILE *out, const tn_primitive *p)
{
    fprintf(out, "    uint count");
    for (uint32_t i = 0; i < p->num_inputs; i++)
        fprintf(out, ", %s_at", p->inputs[i].name);
    fprintf(out, ", out_at;");
    for (uint32_t i = 0; i < p->attrs.num_fields; i++)
        fprintf(out, "%s%s", i ? ", " : "\n    float ", attr_field(&p->attrs, i).name);
    if (p->attrs.num_fields)
        fprintf(out, ";");
}

static int set_glsl(struct project *project, const tn_primitive *p,
                    const struct translation *translation)
{
    struct new_kernels_text text;
    int failed = text_open(&text);
    if (failed)
        return failed;
    for (uint32_t i = 0; i < p->num_inputs; i++)
        fprintf(text.out,
                "layout(std430, set = 0, binding = %u) readonly buffer In%u { float %s[]; "
                "};\n",
                i, i, p->inputs[i].name);
    fprintf(text.out,
            "layout(std430, set = 0, binding = %u) writeonly buffer Out { float result[]; "
            "};",
            p->num_inputs);
    failed = text_set(&text, project, "BINDINGS");
    failed = failed ? failed : text_open(&text);
    if (failed)
        return failed;
    write_push(text.out, p);
    failed = text_set(&text, project, "PUSH");
    failed = failed ? failed : text_open(&text);
    if (failed)
        return failed;
    fprintf(text.out, "TN_PUSH_THE_COUNT, TN_PUSH_OFFSETS(%u)", p->num_inputs + 1);
    if (p->attrs.num_fields)
        fprintf(text.out, ", TN_PUSH_NUMBERS(%u)", p->attrs.num_fields);
    failed = text_set(&text, project, "PUSH_FIELDS");
    return failed ? failed : project_set(project, "GLSL_EXPR", "%s", translation->text);
}

// --- choosing a form -------------------------------------------------------------------

static int set_helpers(struct project *project, const struct translation *t)
{
    int failed = project_set(project, "max", "%s", t->max ? "1" : "");
    failed = failed ? failed : project_set(project, "min", "%s", t->min ? "1" : "");
    return failed ? failed : project_set(project, "choose", "%s", t->choose ? "1" : "");
}

// Writes an application to numbers, for a test that asks which kernel runs.
static int set_example(struct project *project, const tn_primitive *p)
{
    struct new_kernels_text text;
    int failed = text_open(&text);
    if (failed)
        return failed;
    fprintf(text.out, "x = astype([0.25, 0.5], f32); %.*s(", (int)strcspn(p->id, "/"),
            p->id);
    for (uint32_t i = 0; i < p->num_inputs; i++)
        fprintf(text.out, "%sx", i ? ", " : "");
    for (uint32_t i = 0; i < p->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&p->attrs, i);
        if (field.flags & TN_ATTR_REQUIRED)
            fprintf(text.out, ", %s=2", field.name);
    }
    fprintf(text.out, ")");
    return text_set(&text, project, "EXAMPLE");
}

int new_kernels_add(struct project *project, const struct new_options *o)
{
    const tn_primitive *p = o->primitive;
    struct translation c, glsl;
    bool is_softmax = strcmp(p->id, "nn.softmax/1") == 0;
    bool in_c = translate(p, IN_C, &c) && all_numbers(p) &&
                new_kernels_is_whole(&p->attrs) && p->num_inputs < MAX_OPERANDS &&
                is_float_to_float(o->runtime, p);
    bool in_glsl = in_c && translate(p, IN_GLSL, &glsl) &&
                   p->num_inputs < MAX_PUSH_OPERANDS &&
                   p->attrs.num_fields <= MAX_PUSH_NUMBERS;
    if (o->glsl && !in_glsl)
        return misuse(
            "--glsl: no shader can be made of what %s means%s%s; leave --glsl out", p->id,
            p->expr ? ": " : "", p->expr ? p->expr : "");
    int failed = project_set(project, "FOR", "%s", p->id);
    failed = failed ? failed : project_set(project, "elementwise", "%s", in_c ? "1" : "");
    failed = failed ? failed : project_set(project, "softmax", "%s", is_softmax ? "1" : "");
    failed = failed ? failed : project_set(project, "EXPR", "%s", p->expr ? p->expr : "");
    failed = failed ? failed : set_signature(project, p);
    failed = failed ? failed : set_attrs(project, p);
    failed = failed ? failed : set_example(project, p);
    if (!failed && in_c)
        failed = set_c(project, p, &c);
    if (!failed && in_c)
        failed = set_helpers(project, &c);
    if (!failed && o->glsl)
        failed = set_glsl(project, p, &glsl);
    const char *source = is_softmax ? "kernels/softmax.c"
                         : in_c     ? "kernels/elementwise.c"
                                    : "kernels/other.c";
    failed = failed ? failed : project_add(project, source, "plugin.c");
    failed = failed ? failed : project_add(project, "kernels/meson.build", "meson.build");
    if (!failed && o->glsl) {
        char shader[NEW_MAX_NAME + 8];
        snprintf(shader, sizeof(shader), "%s.comp", o->name);
        failed = project_add(project, "kernels/shader.comp", shader);
    }
    return failed ? failed : project_add(project, "kernels/README.md", "README.md");
}
