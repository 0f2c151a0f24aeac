// SPDX-License-Identifier: MIT
// Parser of derivatives (recursive descent), and the builder of their graph.
#include "gradient.h"

#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_STEPS = 128,
    MAX_DEPTH = 24,
    MAX_CALL_INPUTS = 4,
    MAX_CALL_ATTRS = 4,
    MAX_STACK = MAX_STEPS
};

enum step_kind {
    STEP_NUMBER,
    STEP_INPUT,
    STEP_OUTPUT,
    STEP_COTANGENT,
    STEP_ATTRIBUTE,
    STEP_CALL,
    STEP_SWAP
};

// One postfix step of a stack machine over arrays.
struct gradient_step {
    enum step_kind kind;
    uint32_t index; // of the input, output, cotangent or attribute
    double number;
    const char *call;               // the primitive
    uint32_t num_inputs, num_attrs; // of the call; STEP_SWAP has one input
    const char *attr_names[MAX_CALL_ATTRS], *attr_texts[MAX_CALL_ATTRS];
};

// The derivative with respect to one input; in the pack's arena.
struct ffi_gradient {
    struct gradient_step *steps;
    uint32_t num_steps;
};

struct gradient_parser {
    struct ffi_arena *arena;
    const struct ffi_function *function;
    struct ffi_gradient *out;
    struct problem problem;
    const char *text, *at;
    int depth;
};

static void ffi_gradient_parse_sum(struct gradient_parser *p);
static void ffi_gradient_parse_unary(struct gradient_parser *p);

// --- tokens and steps ------------------------------------------------------------------

static bool ffi_gradient_ok(const struct gradient_parser *p)
{
    return p->problem.status == TN_OK;
}

// Records a syntax error at p->at.
static void ffi_gradient_wrong(struct gradient_parser *p, const char *expected)
{
    problem_set(&p->problem, TN_ERR_ARGUMENT,
                "\"%.100s\", column %zu: got %s%.20s%s, "
                "expected %s",
                p->text, (size_t)(p->at - p->text) + 1, *p->at ? "'" : "",
                *p->at ? p->at : "the end", *p->at ? "'" : "", expected);
}

static char ffi_gradient_peek(struct gradient_parser *p)
{
    while (*p->at == ' ')
        p->at++;
    return *p->at;
}

static bool ffi_gradient_accept(struct gradient_parser *p, const char *token)
{
    ffi_gradient_peek(p);
    size_t length = strlen(token);
    if (strncmp(p->at, token, length) != 0)
        return false;
    p->at += length;
    return true;
}

static void ffi_gradient_expect(struct gradient_parser *p, const char *token)
{
    if (ffi_gradient_ok(p) && !ffi_gradient_accept(p, token))
        ffi_gradient_wrong(p, token);
}

// Appends a step. NULL after a failure.
static struct gradient_step *ffi_gradient_emit(struct gradient_parser *p,
                                               enum step_kind kind)
{
    if (ffi_gradient_ok(p) && p->out->num_steps == MAX_STEPS)
        ffi_gradient_wrong(p, "a shorter expression");
    if (!ffi_gradient_ok(p))
        return NULL;
    struct gradient_step *step = &p->out->steps[p->out->num_steps++];
    *step = (struct gradient_step){.kind = kind};
    return step;
}

static void ffi_gradient_emit_call(struct gradient_parser *p, const char *primitive,
                                   uint32_t num_inputs)
{
    struct gradient_step *step = ffi_gradient_emit(p, STEP_CALL);
    if (step) {
        step->call = primitive;
        step->num_inputs = num_inputs;
    }
}

// Takes a name, which may contain dots, and copies the name to the arena.
static const char *take_name(struct gradient_parser *p)
{
    size_t length = 0;
    while (isalnum((unsigned char)p->at[length]) || p->at[length] == '_' ||
           p->at[length] == '.')
        length++;
    char *name = length < 100 ? arena_alloc(p->arena, length + 8) : NULL;
    if (!name) {
        if (length >= 100)
            ffi_gradient_wrong(p, "a shorter name");
        problem_set(&p->problem, TN_ERR_MEMORY, "out of memory");
        return "";
    }
    memcpy(name, p->at, length);
    p->at += length;
    return name;
}

// --- names -----------------------------------------------------------------------------

static void ffi_gradient_add_operand(struct gradient_parser *p, uint32_t index)
{
    uint32_t num_inputs = p->function->num_inputs;
    struct gradient_step *step =
        ffi_gradient_emit(p, index < num_inputs ? STEP_INPUT : STEP_OUTPUT);
    if (step)
        step->index = index < num_inputs ? index : index - num_inputs;
}

static bool add_cotangent(struct gradient_parser *p, const char *name)
{
    const struct ffi_function *function = p->function;
    for (uint32_t i = 0; i < function->num_outputs && name[0] == 'g'; i++) {
        const char *output = function->operands[function->num_inputs + i].name;
        bool alone = function->num_outputs == 1 && !name[1];
        if (!alone && (name[1] != '_' || strcmp(name + 2, output) != 0))
            continue;
        struct gradient_step *step = ffi_gradient_emit(p, STEP_COTANGENT);
        if (step)
            step->index = i;
        return true;
    }
    return false;
}

static void ffi_gradient_parse_name(struct gradient_parser *p, const char *name,
                                    const char *start)
{
    for (uint32_t i = 0; i < p->function->num_inputs + p->function->num_outputs; i++)
        if (strcmp(p->function->operands[i].name, name) == 0) {
            ffi_gradient_add_operand(p, i);
            return;
        }
    for (uint32_t i = 0; i < p->function->num_fields; i++)
        if (strcmp(p->function->fields[i].name, name) == 0) {
            struct gradient_step *step = ffi_gradient_emit(p, STEP_ATTRIBUTE);
            if (step)
                step->index = i;
            return;
        }
    if (add_cotangent(p, name))
        return;
    p->at = start;
    ffi_gradient_wrong(p, "an input, an output, an attribute or g");
}

// --- calls -----------------------------------------------------------------------------

// Takes the text of an attribute's value, which is parsed as on the command line.
static const char *take_value(struct gradient_parser *p)
{
    ffi_gradient_peek(p);
    size_t length = *p->at == '[' ? strcspn(p->at, "]") + 1 : strcspn(p->at, ",)");
    if (length > strlen(p->at) || length > 100 || length == 0) {
        ffi_gradient_wrong(p, "an attribute's value");
        return "";
    }
    char *text = arena_alloc(p->arena, length + 1);
    if (!text) {
        problem_set(&p->problem, TN_ERR_MEMORY, "out of memory");
        return "";
    }
    memcpy(text, p->at, length);
    p->at += length;
    return text;
}

// Whether an attribute comes next: a name and "=".
static bool is_attribute(struct gradient_parser *p)
{
    ffi_gradient_peek(p);
    const char *at = p->at;
    while (isalnum((unsigned char)*at) || *at == '_')
        at++;
    while (*at == ' ')
        at++;
    return at != p->at && *at == '=' && isalpha((unsigned char)*p->at);
}

static void ffi_gradient_parse_call(struct gradient_parser *p, const char *name)
{
    struct gradient_step call = {.kind = STEP_CALL, .call = name};
    do {
        if (!is_attribute(p)) {
            ffi_gradient_parse_sum(p);
            if (++call.num_inputs > MAX_CALL_INPUTS)
                ffi_gradient_wrong(p, "at most 4 inputs");
            continue;
        }
        if (call.num_attrs == MAX_CALL_ATTRS) {
            ffi_gradient_wrong(p, "at most 4 attributes");
            return;
        }
        call.attr_names[call.num_attrs] = take_name(p);
        ffi_gradient_expect(p, "=");
        call.attr_texts[call.num_attrs++] = take_value(p);
    } while (ffi_gradient_ok(p) && ffi_gradient_accept(p, ","));
    ffi_gradient_expect(p, ")");
    if (strcmp(name, "mT") == 0) {
        call.kind = STEP_SWAP;
        if (call.num_inputs != 1 || call.num_attrs)
            ffi_gradient_wrong(p, "one input of mT");
    } else if (!strchr(name, '.')) {
        char *full = arena_alloc(p->arena, strlen(name) + 8);
        if (full)
            sprintf(full, "base.%s", name);
        else
            problem_set(&p->problem, TN_ERR_MEMORY, "out of memory");
        call.call = full;
    }
    struct gradient_step *step = ffi_gradient_emit(p, call.kind);
    if (step)
        *step = call;
}

// In the "C" locale: the program's own may have a decimal comma.
static double ffi_gradient_parse_number(const char *text, char **end)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double number = plain ? strtod_l(text, end, plain) : strtod(text, end);
    if (plain)
        freelocale(plain);
    return number;
}

// --- the grammar -----------------------------------------------------------------------

static void ffi_gradient_parse_atom(struct gradient_parser *p)
{
    char c = ffi_gradient_peek(p);
    const char *start = p->at;
    if (isdigit((unsigned char)c)) {
        char *end;
        double number = ffi_gradient_parse_number(p->at, &end);
        struct gradient_step *step = ffi_gradient_emit(p, STEP_NUMBER);
        if (step)
            step->number = number;
        p->at = end;
    } else if (isalpha((unsigned char)c)) {
        const char *name = take_name(p);
        if (ffi_gradient_accept(p, "("))
            ffi_gradient_parse_call(p, name);
        else
            ffi_gradient_parse_name(p, name, start);
    } else if (ffi_gradient_accept(p, "(")) {
        ffi_gradient_parse_sum(p);
        ffi_gradient_expect(p, ")");
    } else {
        ffi_gradient_wrong(p, "a number, a name or '('");
    }
}

static void ffi_gradient_parse_power(struct gradient_parser *p)
{
    ffi_gradient_parse_atom(p);
    if (ffi_gradient_ok(p) && ffi_gradient_accept(p, "**")) {
        ffi_gradient_parse_unary(p);
        ffi_gradient_emit_call(p, "base.power", 2);
    }
}

static void ffi_gradient_parse_unary(struct gradient_parser *p)
{
    if (!ffi_gradient_ok(p))
        return;
    if (++p->depth > MAX_DEPTH)
        ffi_gradient_wrong(p, "fewer levels of nesting");
    if (ffi_gradient_ok(p) && ffi_gradient_accept(p, "-")) {
        ffi_gradient_parse_unary(p);
        ffi_gradient_emit_call(p, "base.negative", 1);
    } else if (ffi_gradient_ok(p)) {
        ffi_gradient_parse_power(p);
    }
    p->depth--;
}

static void ffi_gradient_parse_product(struct gradient_parser *p)
{
    ffi_gradient_parse_unary(p);
    while (ffi_gradient_ok(p)) {
        const char *call = ffi_gradient_accept(p, "*")   ? "base.multiply"
                           : ffi_gradient_accept(p, "/") ? "base.divide"
                           : ffi_gradient_accept(p, "@") ? "base.matmul"
                                                         : NULL;
        if (!call)
            return;
        ffi_gradient_parse_unary(p);
        ffi_gradient_emit_call(p, call, 2);
    }
}

static void ffi_gradient_parse_sum(struct gradient_parser *p)
{
    ffi_gradient_parse_product(p);
    while (ffi_gradient_ok(p)) {
        const char *call = ffi_gradient_accept(p, "+")   ? "base.add"
                           : ffi_gradient_accept(p, "-") ? "base.subtract"
                                                         : NULL;
        if (!call)
            return;
        ffi_gradient_parse_product(p);
        ffi_gradient_emit_call(p, call, 2);
    }
}

tn_status gradient_parse(struct ffi_arena *arena, const char *text,
                         const struct ffi_function *function, struct ffi_gradient **out,
                         struct problem *problem)
{
    struct gradient_step steps[MAX_STEPS];
    struct ffi_gradient read = {steps, 0}, *gradient = NULL;
    struct gradient_parser p = {
        .arena = arena, .function = function, .out = &read, .text = text, .at = text};
    ffi_gradient_parse_sum(&p);
    if (ffi_gradient_ok(&p) && ffi_gradient_peek(&p))
        ffi_gradient_wrong(&p, "an operator or the end");
    if (!ffi_gradient_ok(&p))
        return problem_set(problem, p.problem.status, "%s", p.problem.text);
    gradient = arena_alloc(arena, sizeof(*gradient));
    if (gradient)
        gradient->steps = arena_alloc(arena, read.num_steps * sizeof(struct gradient_step));
    if (!gradient || !gradient->steps)
        return problem_set(problem, TN_ERR_MEMORY, "out of memory");
    gradient->num_steps = read.num_steps;
    memcpy(gradient->steps, steps, read.num_steps * sizeof(struct gradient_step));
    *out = gradient;
    return TN_OK;
}

// --- building --------------------------------------------------------------------------

struct builder {
    const struct ffi_function *function;
    const tn_build *build;
    const tn_rule *rule;
    tn_array *const *cotangents;
};

// The dtype of numbers and attributes: that of the first cotangent.
static tn_dtype ffi_gradient_number_dtype(const struct builder *b)
{
    for (uint32_t i = 0; i < b->function->num_outputs; i++)
        if (b->cotangents[i])
            return b->build->type(b->cotangents[i])->dtype;
    return TN_F64;
}

// The cotangent of output `index`; an absent one is zero.
static tn_array *ffi_gradient_cotangent(const struct builder *b, uint32_t index)
{
    if (b->cotangents[index])
        return b->cotangents[index];
    const tn_type *type = b->build->type(b->rule->outputs[index]);
    tn_ints shape = {.count = (uint32_t)type->rank, .given = 1};
    memcpy(shape.value, type->extent, sizeof(shape.value));
    tn_array *zero = b->build->scalar(b->build, type->dtype, 0);
    return b->build->op(b->build, "base.broadcast_to", TN_IN(zero),
                        tn_attrs("shape", &shape));
}

static tn_array *ffi_gradient_attribute(const struct builder *b, uint32_t index)
{
    const tn_attr_field *field = &b->function->fields[index];
    const char *bytes = (const char *)b->rule->attrs + field->offset;
    double real;
    int64_t integer;
    memcpy(&real, bytes, sizeof(real));
    memcpy(&integer, bytes, sizeof(integer));
    return b->build->scalar(b->build, ffi_gradient_number_dtype(b),
                            field->kind == TN_ATTR_F64 ? real : (double)integer);
}

static tn_array *swap_axes(const struct builder *b, const tn_array *x)
{
    const tn_type *type = b->build->type(x);
    tn_ints axes = {.count = type ? (uint32_t)type->rank : 0, .given = 1};
    for (uint32_t i = 0; i < axes.count; i++)
        axes.value[i] = i;
    if (axes.count >= 2) {
        axes.value[axes.count - 1] = axes.count - 2;
        axes.value[axes.count - 2] = axes.count - 1;
    }
    return b->build->op(b->build, "base.transpose", TN_IN(x), tn_attrs("axes", &axes));
}

static tn_array *ffi_gradient_call(const struct builder *b,
                                   const struct gradient_step *step,
                                   tn_array *const *inputs)
{
    tn_attr attrs[MAX_CALL_ATTRS];
    for (uint32_t i = 0; i < step->num_attrs; i++)
        attrs[i] = (tn_attr){
            .name = step->attr_names[i], .kind = TN_ATTR_TEXT, .text = step->attr_texts[i]};
    return b->build->op(b->build, step->call, (const tn_array *const *)inputs,
                        step->num_inputs, TN_ATTR_LIST(attrs, step->num_attrs));
}

static tn_array *build_gradient(const struct builder *b,
                                const struct ffi_gradient *gradient)
{
    tn_array *stack[MAX_STACK];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < gradient->num_steps; i++) {
        const struct gradient_step *step = &gradient->steps[i];
        tn_array *made = NULL;
        if (step->kind == STEP_CALL || step->kind == STEP_SWAP)
            depth -= step->num_inputs;
        switch (step->kind) {
        case STEP_NUMBER:
            made = b->build->scalar(b->build, ffi_gradient_number_dtype(b), step->number);
            break;
        case STEP_INPUT:
            made = b->rule->inputs[step->index];
            break;
        case STEP_OUTPUT:
            made = b->rule->outputs[step->index];
            break;
        case STEP_COTANGENT:
            made = ffi_gradient_cotangent(b, step->index);
            break;
        case STEP_ATTRIBUTE:
            made = ffi_gradient_attribute(b, step->index);
            break;
        case STEP_SWAP:
            made = swap_axes(b, stack[depth]);
            break;
        default:
            made = ffi_gradient_call(b, step, &stack[depth]);
        }
        if (!made)
            return NULL;
        stack[depth++] = made;
    }
    return stack[0];
}

tn_status gradients_build(const struct ffi_function *function, const tn_build *build,
                          const tn_rule *rule, tn_array *const *cotangents,
                          const uint64_t *wanted, tn_array **gradients)
{
    struct builder b = {function, build, rule, cotangents};
    for (uint32_t i = 0; i < function->num_inputs; i++) {
        if (!(wanted[i / 64] >> i % 64 & 1) || function->has_zero_gradient[i])
            continue;
        if (!function->gradients[i])
            return build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                                     "its manifest has no derivative with respect to '%s'",
                                     function->operands[i].name);
        gradients[i] = build_gradient(&b, function->gradients[i]);
        if (!gradients[i])
            return TN_ERR_ARGUMENT;
    }
    return TN_OK;
}
