// SPDX-License-Identifier: MIT
// Translates expressions to C and GLSL. The grammar of docs/expressions.md has C's
// operators with C's precedence, except "**" and "//": functions are renamed, and numbers
// are written as floats.
#include "translate.h"
#include "ops/describe.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct translated_function {
    const char *name, *c, *glsl; // NULL: the language has no function that means the same
} functions[] = {
    {"abs", "fabsf", "abs"},        {"floor", "floorf", "floor"},
    {"ceil", "ceilf", "ceil"},      {"trunc", "truncf", "trunc"},
    {"round", "rintf", NULL},       {"sqrt", "sqrtf", "sqrt"},
    {"exp", "expf", "exp"},         {"exp2", "exp2f", "exp2"},
    {"expm1", "expm1f", NULL},      {"log", "logf", "log"},
    {"log2", "log2f", "log2"},      {"log10", "log10f", NULL},
    {"log1p", "log1pf", NULL},      {"sin", "sinf", "sin"},
    {"cos", "cosf", "cos"},         {"tan", "tanf", "tan"},
    {"asin", "asinf", "asin"},      {"acos", "acosf", "acos"},
    {"atan", "atanf", "atan"},      {"sinh", "sinhf", "sinh"},
    {"cosh", "coshf", "cosh"},      {"tanh", "tanhf", NULL},
    {"asinh", "asinhf", NULL},      {"acosh", "acoshf", NULL},
    {"atanh", "atanhf", NULL},      {"erf", "erff", NULL},
    {"pow", "powf", NULL},          {"atan2", "atan2f", NULL},
    {"max", "max_of", "max_of"},    {"min", "min_of", "min_of"},
    {"select", "choose", "choose"}, {"where", "choose", "choose"},
};

// Names that the code around the expression uses, and words of both languages.
static const char *const taken[] = {
    "i",     "row",   "out",   "attrs", "count",  "result", "in",    "input", "output",
    "float", "int",   "bool",  "main",  "buffer", "sample", "group", "if",    "for",
    "do",    "while", "const", "void",  "Push",   "layout", "choose"};

struct new_translator {
    const tn_primitive *primitive;
    enum language language;
    struct translation *out;
    size_t size;
    int depth; // of parentheses
};

static bool new_translate_put(struct new_translator *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool new_translate_put(struct new_translator *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(t->out->text + t->size, TRANSLATION_SIZE - t->size, format, list);
    va_end(list);
    t->size += n > 0 ? (size_t)n : 0;
    return n >= 0 && t->size < TRANSLATION_SIZE;
}

static bool is_called(const char *name, const char *text, size_t size)
{
    return strlen(name) == size && memcmp(name, text, size) == 0;
}

static bool new_translate_put_function(struct new_translator *t, const char *text,
                                       size_t size)
{
    for (size_t i = 0; i < COUNT(functions); i++) {
        if (!is_called(functions[i].name, text, size))
            continue;
        const char *name = t->language == IN_C ? functions[i].c : functions[i].glsl;
        t->out->max |= strcmp(functions[i].c, "max_of") == 0;
        t->out->min |= strcmp(functions[i].c, "min_of") == 0;
        t->out->choose |= strcmp(functions[i].c, "choose") == 0;
        return name && new_translate_put(t, "%s", name);
    }
    return false;
}

static bool put_name(struct new_translator *t, const char *text, size_t size)
{
    const tn_primitive *p = t->primitive;
    for (size_t i = 0; i < COUNT(taken); i++)
        if (is_called(taken[i], text, size))
            return false;
    for (uint32_t i = 0; i < p->num_inputs; i++)
        if (is_called(p->inputs[i].name, text, size))
            return t->language == IN_C
                       ? new_translate_put(t, "%s[i * row->step[%u]]", p->inputs[i].name, i)
                       : new_translate_put(t, "%s[%s_at + i]", p->inputs[i].name,
                                           p->inputs[i].name);
    for (uint32_t i = 0; i < p->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&p->attrs, i);
        if (is_called(field.name, text, size) && field.kind == TN_ATTR_F64)
            return new_translate_put(t, "%s", field.name);
    }
    return false;
}

static bool new_translate_put_number(struct new_translator *t, const char *text,
                                     size_t size)
{
    const char *suffix = t->language == IN_C ? "f" : "";
    bool whole = strcspn(text, ".eE") >= size;
    return new_translate_put(t, "%.*s%s%s", (int)size, text, whole ? ".0" : "", suffix);
}

// Length of a number (digits, a point, an exponent); 0: there is none.
static size_t number_size(const char *text)
{
    char *end;
    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return 0;
    strtod(text, &end);
    return text[0] == '0' && (text[1] | 32) == 'x' ? 0 : (size_t)(end - text);
}

// Length of an operator that both languages have; 0: there is none.
static size_t operator_size(const struct new_translator *t, const char *text)
{
    static const char *const two[] = {"<=", ">=", "==", "!=", "&&", "||"};
    for (size_t i = 0; i < COUNT(two); i++)
        if (strncmp(text, two[i], 2) == 0)
            return 2;
    static const char *const none[] = {"**", "//", "<<", ">>"};
    for (size_t i = 0; i < COUNT(none); i++)
        if (strncmp(text, none[i], 2) == 0)
            return 0;
    if (*text == ',' && t->depth == 0) // between several outputs
        return 0;
    return strchr("+-*/()<>?:,", *text) ? 1 : 0;
}

static bool translate_token(struct new_translator *t, const char **at)
{
    const char *text = *at;
    size_t size = number_size(text);
    if (size > 0) {
        *at += size;
        return new_translate_put_number(t, text, size);
    }
    if (isalpha((unsigned char)*text) || *text == '_') {
        while (isalnum((unsigned char)text[size]) || text[size] == '_')
            size++;
        *at += size;
        return text[size + strspn(text + size, " ")] == '('
                   ? new_translate_put_function(t, text, size)
                   : put_name(t, text, size);
    }
    size = *text == ' ' ? 1 : operator_size(t, text);
    t->depth += *text == '(' ? 1 : *text == ')' ? -1 : 0;
    *at += size;
    return size > 0 && new_translate_put(t, "%.*s", (int)size, text);
}

bool translate(const tn_primitive *primitive, enum language language,
               struct translation *out)
{
    struct new_translator t = {.primitive = primitive, .language = language, .out = out};
    const char *at = primitive->expr;
    *out = (struct translation){0};
    if (!at || num_outputs(primitive) != 1 || primitive->flags & TN_PRIM_OWN_TYPE)
        return false;
    // GLSL has no booleans in buffers: a comparison is translated only beside a choice.
    if (language == IN_GLSL && strpbrk(at, "<>=&|") && !strpbrk(at, "?") &&
        !strstr(at, "select(") && !strstr(at, "where("))
        return false;
    while (*at)
        if (!translate_token(&t, &at))
            return false;
    return t.size > 0;
}
