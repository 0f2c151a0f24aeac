// SPDX-License-Identifier: MIT
// One operator as a Python function, for type checkers: a stub (.pyi). Names, order and
// defaults of parameters are as in the package `tenon`.
#include "ops/describe.h"
#include "header.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_keyword(const char *name)
{
    static const char *const words[] = {
        "False",  "None",   "True",    "and",      "as",       "assert", "async",
        "await",  "break",  "class",   "continue", "def",      "del",    "elif",
        "else",   "except", "finally", "for",      "from",     "global", "if",
        "import", "in",     "is",      "lambda",   "nonlocal", "not",    "or",
        "pass",   "raise",  "return",  "try",      "while",    "with",   "yield"};
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return false;
}

// Writes a text into a Python string, without characters that would end or change it.
static void emit_quoted(FILE *out, const char *text)
{
    for (; text && *text; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', out);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
}

static void emit_type(FILE *out, const tn_attr_field *field)
{
    static const char *const types[] = {
        [TN_ATTR_BOOL] = "bool",
        [TN_ATTR_I64] = "int",
        [TN_ATTR_F64] = "float",
        [TN_ATTR_DTYPE] = "DTypeLike",
        [TN_ATTR_INTS] = "int | Sequence[int]",
        [TN_ATTR_BITS] = "int",
        [TN_ATTR_STRING] = "str",
        [TN_ATTR_INT_LIST] = "Sequence[int]",
        [TN_ATTR_FLOAT_LIST] = "Sequence[float]",
    };
    if (field->kind == TN_ATTR_CHOICE) {
        fprintf(out, "Literal[");
        for (const char *const *word = field->choices; word && *word; word++) {
            fprintf(out, "%s\"", word == field->choices ? "" : ", ");
            emit_quoted(out, *word);
            fprintf(out, "\"");
        }
        fprintf(out, "]");
    } else {
        const char *type = field->kind < COUNT(types) ? types[field->kind] : NULL;
        fprintf(out, "%s", type ? type : "Any");
    }
    if (field->flags & TN_ATTR_RUNTIME)
        fprintf(out, " | Array");
    if (!(field->flags & TN_ATTR_REQUIRED))
        fprintf(out, " | None");
}

// Writes a float as Python does, "2.0"; infinity as a literal too large for a double.
static void header_stubs_emit_number(FILE *out, double value)
{
    char text[40];
    if (isinf(value)) {
        fprintf(out, value < 0 ? "-1e999" : "1e999");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void header_stubs_emit_default(FILE *out, const tn_attr_field *field)
{
    double f = field->default_f;
    char name[64];
    switch (field->kind) {
    case TN_ATTR_BOOL:
        fprintf(out, "%s", field->default_i ? "True" : "False");
        return;
    case TN_ATTR_I64:
        if (field->default_i != INT64_MIN) {
            fprintf(out, "%" PRId64, field->default_i);
            return;
        }
        break; // not given
    case TN_ATTR_BITS:
        fprintf(out, "%" PRIu64, (uint64_t)field->default_i);
        return;
    case TN_ATTR_F64:
        if (!isnan(f)) {
            header_stubs_emit_number(out, f);
            return;
        }
        break;
    case TN_ATTR_DTYPE:
        if (!field->default_i)
            break;
        fprintf(out, "\"%s\"", attr_default(field, name, sizeof(name)));
        return;
    case TN_ATTR_CHOICE:
        fprintf(out, "\"");
        emit_quoted(out, field->choices[field->default_i]);
        fprintf(out, "\"");
        return;
    default:
        break;
    }
    fprintf(out, "None");
}

static void header_stubs_emit_parameters(FILE *out, const tn_primitive *p)
{
    bool has_default = false, by_name = false;
    for (uint32_t i = 0; i < p->num_inputs; i++) {
        bool is_optional = p->inputs[i].flags & TN_INPUT_OPTIONAL;
        bool is_many = p->inputs[i].flags & TN_INPUT_VARIADIC;
        fprintf(out, "%s%s: ArrayLike%s%s", i ? ", " : "", p->inputs[i].name,
                is_many ? " | Sequence[ArrayLike]" : "",
                is_optional ? " | None = None" : "");
        has_default = has_default || is_optional;
    }
    for (uint32_t i = 0; i < p->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&p->attrs, i);
        bool is_required = field.flags & TN_ATTR_REQUIRED;
        fprintf(out, "%s", i + p->num_inputs ? ", " : "");
        if (is_required && has_default && !by_name) {
            fprintf(out, "*, ");
            by_name = true;
        }
        fprintf(out, "%s: ", field.name);
        emit_type(out, &field);
        if (!is_required) {
            fprintf(out, " = ");
            header_stubs_emit_default(out, &field);
        }
        has_default = has_default || !is_required;
    }
}

static void emit_result(FILE *out, const tn_primitive *p)
{
    if (counts_outputs(p)) {
        fprintf(out, "tuple[Array, ...]");
        return;
    }
    if (num_outputs(p) == 1) {
        fprintf(out, "Array");
        return;
    }
    for (uint32_t i = 0; i < num_outputs(p); i++)
        fprintf(out, "%sArray", i ? ", " : "tuple[");
    fprintf(out, "]");
}

static bool has_keyword(const tn_primitive *p, const char *name)
{
    bool has = is_keyword(name);
    for (uint32_t i = 0; i < p->num_inputs; i++)
        has = has || is_keyword(p->inputs[i].name);
    for (uint32_t i = 0; i < p->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&p->attrs, i);
        has = has || is_keyword(field.name);
    }
    return has;
}

void header_emit_stub(FILE *out, const tn_primitive *primitive)
{
    char name[MAX_NAME];
    const char *dot = strchr(primitive->id, '.');
    const char *bare = dot ? dot + 1 : primitive->id;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(bare, "/"), bare);
    if (has_keyword(primitive, name)) {
        fprintf(out, "\n# %s: a name is a word of Python's\n", primitive->id);
        return;
    }
    fprintf(out, "\ndef %s(", name);
    header_stubs_emit_parameters(out, primitive);
    fprintf(out, ") -> ");
    emit_result(out, primitive);
    fprintf(out, ":\n    \"\"\"");
    emit_quoted(out, primitive->doc);
    fprintf(out, "\"\"\"\n");
}
