// SPDX-License-Identifier: MIT
// Random statements, functions, and the shader around them.
#include "generator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- text
// ----------------------------------------------------------------------------------

uint32_t random_below(struct generator *g, uint32_t end)
{
    g->state ^= g->state << 13;
    g->state ^= g->state >> 7;
    g->state ^= g->state << 17;
    return (uint32_t)((g->state >> 33) % end);
}

void put(struct generator *g, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    size_t need = (size_t)vsnprintf(NULL, 0, format, list) + 1;
    va_end(list);
    if (g->size + need > g->capacity) {
        g->capacity = 2 * g->capacity + need + 4096;
        g->text = realloc(g->text, g->capacity);
        if (!g->text)
            abort();
    }
    g->size += (size_t)vsnprintf(g->text + g->size, need, format, again);
    va_end(again);
}

void begin_line(struct generator *g)
{
    put(g, "%*s", (int)(4 * g->indent), "");
}

static void open_block(struct generator *g)
{
    put(g, " {\n");
    g->indent++;
}

static void close_block(struct generator *g, const char *text)
{
    g->indent--;
    begin_line(g);
    put(g, "%s\n", text);
}

// --- variables
// -----------------------------------------------------------------------------

static struct variable *add_variable(struct generator *g, const char *name,
                                     struct shape shape, uint32_t elements,
                                     bool is_constant)
{
    if (g->num_variables == MOST_VARIABLES)
        return NULL;
    struct variable *v = &g->variables[g->num_variables++];
    *v =
        (struct variable){.shape = shape, .elements = elements, .is_constant = is_constant};
    snprintf(v->name, sizeof(v->name), "%s", name);
    return v;
}

static const char *precision(const struct generator *g, enum kind kind)
{
    return g->is_precise && is_float(kind) ? "precise " : "";
}

static void declare(struct generator *g)
{
    struct shape shape = random_shape(g);
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "v%u", g->next_name++);
    bool is_constant = chance(g, 10);
    begin_line(g);
    put(g, "%s%s%s %s = ", is_constant ? "const " : "", precision(g, shape.kind),
        type_name(shape), name);
    put_value(g, shape, 3);
    put(g, ";\n");
    add_variable(g, name, shape, 0, is_constant);
}

static void declare_array(struct generator *g)
{
    struct shape shape = random_shape(g);
    uint32_t elements = 2u << random_below(g, 3);
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "a%u", g->next_name++);
    begin_line(g);
    put(g, "%s%s %s[%u] = %s[](", precision(g, shape.kind), type_name(shape), name,
        elements, type_name(shape));
    for (uint32_t i = 0; i < elements; i++) {
        put(g, i ? ", " : "");
        put_value(g, shape, i < 2 ? 1 : 0);
    }
    put(g, ");\n");
    add_variable(g, name, shape, elements, false);
}

// The structs that all shaders have: their members, by letters a, b, ...
struct member {
    struct shape shape;
    uint32_t elements;
};
static const struct member structs[][4] = {
    {{{F32, 1}, 0}, {{I32, 2}, 0}, {{U32, 1}, 4}},
    {{{U8, 1}, 0}, {{I64, 1}, 0}, {{BOOL, 1}, 0}, {{F32, 3}, 2}},
};

static void declare_struct(struct generator *g)
{
    uint32_t number = random_below(g, 2), id = g->next_name++;
    char name[NAME_BYTES];
    begin_line(g);
    put(g, "Struct%u s%u = Struct%u(", number, id, number);
    for (uint32_t i = 0; i < 4 && structs[number][i].shape.width; i++) {
        const struct member *m = &structs[number][i];
        put(g, i ? ", " : "");
        if (m->elements)
            put(g, "%s[](", type_name(m->shape));
        for (uint32_t k = 0; k < m->elements + !m->elements; k++) {
            put(g, k ? ", " : "");
            put_value(g, m->shape, 1);
        }
        put(g, m->elements ? ")" : "");
    }
    put(g, ");\n");
    for (uint32_t i = 0; i < 4 && structs[number][i].shape.width; i++) {
        snprintf(name, sizeof(name), "s%u.%c", id, 'a' + (int)i);
        add_variable(g, name, structs[number][i].shape, structs[number][i].elements, false);
    }
}

// --- assignments
// ---------------------------------------------------------------------------

// Several different letters: ".zx".
static void put_target_letters(struct generator *g, uint32_t width, uint32_t count)
{
    char letters[] = "xyzw";
    put(g, ".");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = i + random_below(g, width - i);
        char letter = letters[k];
        letters[k] = letters[i];
        letters[i] = letter;
        put(g, "%c", letter);
    }
}

static void assign_swizzle(struct generator *g)
{
    struct shape shape = {(enum kind)random_below(g, NUM_KINDS), 2 + random_below(g, 3)};
    const struct variable *v = pick_variable(g, shape, false, true);
    if (!v)
        return;
    uint32_t count = 1 + random_below(g, shape.width);
    begin_line(g);
    put(g, "%s", v->name);
    put_target_letters(g, shape.width, count);
    put(g, " = ");
    put_value(g, (struct shape){shape.kind, count}, 2);
    put(g, ";\n");
}

static void assign_element(struct generator *g)
{
    struct shape shape = random_shape(g);
    const struct variable *v = pick_variable(g, shape, true, true);
    if (!v)
        return;
    begin_line(g);
    put(g, "%s[", v->name);
    if (chance(g, 50))
        put(g, "%u] = ", random_below(g, v->elements));
    else {
        put(g, "(");
        put_expression(g, (struct shape){U32, 1}, 1);
        put(g, ") & %uu] = ", v->elements - 1);
    }
    put_value(g, shape, 2);
    put(g, ";\n");
}

static void assign_compound(struct generator *g)
{
    static const char *const ops[] = {"+=", "-=", "*=", "&=", "|=", "^="};
    struct shape shape = {(enum kind)(1 + random_below(g, NUM_KINDS - 1)),
                          1 + random_below(g, 3)};
    const struct variable *v = pick_variable(g, shape, false, true);
    if (!v)
        return;
    begin_line(g);
    if (is_float(shape.kind)) {
        put(g, "%s %s ", v->name, ops[random_below(g, 3)]);
        put_sum(g, shape);
        put(g, "; %s = fit(%s);\n", v->name, v->name);
    } else if (shape.width == 1 && chance(g, 30)) {
        bool up = chance(g, 50);
        // A helper leaves the digest alone: the order of calls is not defined.
        if (chance(g, 50) || g->is_helper)
            put(g, "%s%s;\n", v->name, up ? "++" : "--");
        else
            put(g, "digest = fold(digest, %s%s);\n", up ? "++" : "--", v->name);
    } else if (chance(g, 20)) {
        put(g, "%s %s %s(%u);\n", v->name,
            chance(g, 50) ? "<<=" : ">>=", type_name((struct shape){shape.kind, 1}),
            random_below(g, kind_bits(shape.kind)));
    } else {
        put(g, "%s %s ", v->name, ops[random_below(g, 6)]);
        put_expression(g, shape, 2);
        put(g, ";\n");
    }
}

static void assign(struct generator *g)
{
    struct shape shape = random_shape(g);
    const struct variable *v = pick_variable(g, shape, false, true);
    switch (random_below(g, 6)) {
    case 0:
        assign_swizzle(g);
        return;
    case 1:
        assign_element(g);
        return;
    case 2:
        assign_compound(g);
        return;
    default:
        if (!v)
            return;
        begin_line(g);
        put(g, "%s = ", v->name);
        put_value(g, shape, 3);
        put(g, ";\n");
    }
}

// A call with parameters that come back: a variable is passed once.
static void call(struct generator *g)
{
    if (g->num_helpers == 0 || g->is_helper)
        return;
    const struct helper *h = &g->helpers[random_below(g, g->num_helpers)];
    const struct variable *passed[MOST_PARAMS] = {NULL};
    for (uint32_t i = 0; i < h->num_params; i++) {
        if (h->modes[i] == 'i')
            continue;
        passed[i] = pick_variable(g, h->params[i], false, true);
        for (uint32_t k = 0; passed[i] && k < i; k++)
            if (passed[k] == passed[i])
                passed[i] = NULL;
        if (!passed[i])
            return;
    }
    begin_line(g);
    put(g, "digest = fold(digest, %s(", h->name);
    for (uint32_t i = 0; i < h->num_params; i++) {
        put(g, i ? ", " : "");
        if (passed[i])
            put(g, "%s", passed[i]->name);
        else
            put_value(g, h->params[i], 1);
    }
    put(g, "));\n");
}

// --- control flow
// --------------------------------------------------------------------------

static void statements(struct generator *g, uint32_t count, uint32_t depth, bool in_loop);

// A block's variables end with it.
static void block(struct generator *g, uint32_t count, uint32_t depth, bool in_loop)
{
    uint32_t kept = g->num_variables;
    statements(g, count, depth, in_loop);
    g->num_variables = kept;
}

static void choose(struct generator *g, uint32_t depth, bool in_loop)
{
    begin_line(g);
    put(g, "if (");
    put_expression(g, (struct shape){BOOL, 1}, 2);
    put(g, ")");
    open_block(g);
    block(g, 1 + random_below(g, 3), depth, in_loop);
    close_block(g, "}");
    if (chance(g, 50)) {
        begin_line(g);
        put(g, "else");
        open_block(g);
        block(g, 1 + random_below(g, 3), depth, in_loop);
        close_block(g, "}");
    }
}

static void loop(struct generator *g, uint32_t depth)
{
    uint32_t id = g->next_name++, kept = g->num_variables;
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "i%u", id);
    begin_line(g);
    switch (random_below(g, 3)) {
    case 0:
        put(g, "for (int %s = 0; %s < %s; %s++)", name, name,
            chance(g, 30) ? "(spec_int & 3)" : "3", name);
        add_variable(g, name, (struct shape){I32, 1}, 0, true);
        break;
    case 1:
        put(g, "for (uint %s = 5u; %s > 0u && ", name, name);
        put_expression(g, (struct shape){BOOL, 1}, 1);
        put(g, "; %s -= 2u, %s += 1u)", name, name);
        add_variable(g, name, (struct shape){U32, 1}, 0, true);
        break;
    default:
        put(g, "uint %s = 0u;\n", name);
        begin_line(g);
        put(g, "while (%s++ < 4u && ", name);
        put_expression(g, (struct shape){BOOL, 1}, 1);
        put(g, ")");
        add_variable(g, name, (struct shape){U32, 1}, 0, true);
    }
    open_block(g);
    block(g, 1 + random_below(g, 3), depth, true);
    close_block(g, "}");
    g->num_variables = kept;
}

static void loop_behind(struct generator *g, uint32_t depth)
{
    uint32_t id = g->next_name++;
    begin_line(g);
    put(g, "uint n%u = 0u;\n", id);
    begin_line(g);
    put(g, "do");
    open_block(g);
    block(g, 1 + random_below(g, 3), depth, true);
    g->indent--;
    begin_line(g);
    put(g, "} while (++n%u < %uu && ", id, 1 + random_below(g, 4));
    put_expression(g, (struct shape){BOOL, 1}, 1);
    put(g, ");\n");
}

static void choose_case(struct generator *g, uint32_t depth)
{
    uint32_t cases = 2 + random_below(g, 3);
    bool is_unsigned = chance(g, 50);
    begin_line(g);
    put(g, "switch ((");
    put_expression(g, (struct shape){is_unsigned ? U32 : I32, 1}, 1);
    put(g, ") & 7%s)", is_unsigned ? "u" : "");
    open_block(g);
    for (uint32_t i = 0; i <= cases; i++) {
        begin_line(g);
        if (i == cases)
            put(g, "default:");
        else
            put(g, "case %u%s:", 2 * i + (i > 1), is_unsigned ? "u" : "");
        open_block(g);
        block(g, 1 + random_below(g, 2), depth, false);
        close_block(g, "}");
        if (chance(g, 70) || i == cases) {
            begin_line(g);
            put(g, "break; //!\n");
        }
    }
    close_block(g, "}");
}

static void jump(struct generator *g)
{
    begin_line(g);
    put(g, "if (");
    put_expression(g, (struct shape){BOOL, 1}, 1);
    put(g, ") %s;\n", chance(g, 50) ? "break" : "continue");
}

// In uniform flow: what another invocation has stored.
static void share(struct generator *g)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "v%u", g->next_name++);
    begin_line(g);
    put(g, "shared_words[local] = ");
    put_expression(g, (struct shape){U32, 1}, 2);
    put(g, "; barrier(); uint %s = shared_words[(local + %uu) & %uu]; barrier();\n", name,
        random_below(g, GENERATED_GROUP), GENERATED_GROUP - 1);
    add_variable(g, name, (struct shape){U32, 1}, 0, false);
}

// Atomics whose result is the same in each order.
static void share_atomically(struct generator *g)
{
    static const char *const names[] = {"Add", "Or", "And", "Xor", "Max", "Min"};
    begin_line(g);
    put(g, "if (local == 0u) shared_sum = %uu; barrier(); atomic%s(shared_sum, ",
        random_below(g, 1000), names[random_below(g, 6)]);
    put_expression(g, (struct shape){U32, 1}, 1);
    put(g, "); barrier(); digest = fold(digest, shared_sum); barrier();\n");
}

// Subgroup operations whose result is the same for each size of subgroups.
static void vote(struct generator *g)
{
    static const char *const forms[] = {
        "subgroupInclusiveAdd(%s) - subgroupExclusiveAdd(%s)", "subgroupAll(%s == %s)",
        "subgroupBroadcastFirst(push.words[0]) + %s - %s",
        "subgroupShuffle(%s, gl_SubgroupInvocationID) ^ (%s << 1u)",
        "subgroupInclusiveXor(%s) ^ subgroupExclusiveXor(%s)"};
    const struct variable *v = pick_variable(g, (struct shape){U32, 1}, false, false);
    if (!v)
        return;
    const char *form = forms[random_below(g, 5)];
    char text[160], *at = text;
    for (; *form && at < text + sizeof(text) - NAME_BYTES - 1; form++)
        if (form[0] == '%') {
            at += snprintf(at, NAME_BYTES, "%s", v->name);
            form++;
        } else
            *at++ = *form;
    *at = '\0';
    begin_line(g);
    put(g, "digest = fold(digest, %s);\n", text);
}

static void statement(struct generator *g, uint32_t depth, bool in_loop)
{
    uint32_t what = random_below(g, 24);
    if (g->budget == 0)
        return;
    g->budget--;
    if (what < 6)
        declare(g);
    else if (what == 6)
        declare_array(g);
    else if (what == 7)
        declare_struct(g);
    else if (what == 8)
        call(g);
    else if (what == 9 && in_loop)
        jump(g);
    else if (what < 16 || depth == 0)
        assign(g);
    else if (what < 19)
        choose(g, depth - 1, in_loop);
    else if (what < 21)
        loop(g, depth - 1);
    else if (what == 21)
        loop_behind(g, depth - 1);
    else if (what == 22)
        choose_case(g, depth - 1);
    else
        assign_swizzle(g);
}

static void statements(struct generator *g, uint32_t count, uint32_t depth, bool in_loop)
{
    for (uint32_t i = 0; i < count; i++)
        statement(g, depth, in_loop);
}

// --- functions
// -----------------------------------------------------------------------------

static void helper_head(struct generator *g, struct helper *h)
{
    put(g, "%s %s(", type_name(h->result), h->name);
    for (uint32_t i = 0; i < h->num_params; i++) {
        char name[NAME_BYTES];
        const char *mode = h->modes[i] == 'o'   ? "out "
                           : h->modes[i] == 'b' ? "inout "
                           : chance(g, 30)      ? "const in "
                                                : "";
        snprintf(name, sizeof(name), "p%u", i);
        put(g, "%s%s%s %s", i ? ", " : "", mode, type_name(h->params[i]), name);
        // A parameter that is const, or that is not: neither is assigned.
        add_variable(g, name, h->params[i], 0, h->modes[i] == 'i');
    }
    put(g, ")");
    open_block(g);
}

// Overloads of few names, by their parameters: of one name all differ in the first's type.
static void write_helper(struct generator *g)
{
    struct helper *h = &g->helpers[g->num_helpers];
    *h = (struct helper){.result = random_shape(g), .is_pure = chance(g, 50)};
    h->num_params = 1 + random_below(g, 3);
    for (uint32_t i = 0; i < h->num_params; i++) {
        h->params[i] = random_shape(g);
        h->modes[i] = h->is_pure ? 'i' : "iob"[random_below(g, 3)];
    }
    bool overloads = true;
    for (uint32_t i = 0; i < g->num_helpers; i++)
        overloads = overloads && g->helpers[i].num_params != h->num_params;
    if (overloads)
        snprintf(h->name, sizeof(h->name), "helper");
    else
        snprintf(h->name, sizeof(h->name), "helper%u", g->num_helpers);
    g->num_variables = 0;
    g->budget = 8;
    g->is_helper = true;
    helper_head(g, h);
    for (uint32_t i = 0; i < h->num_params; i++)
        if (h->modes[i] == 'o') {
            begin_line(g);
            put(g, "p%u = %s(", i, type_name(h->params[i]));
            put_literal(g, h->params[i].kind);
            put(g, "); //!\n");
        }
    statements(g, 1 + random_below(g, 4), 1, false);
    if (chance(g, 40)) {
        begin_line(g);
        put(g, "if (");
        put_expression(g, (struct shape){BOOL, 1}, 1);
        put(g, ") return ");
        put_value(g, h->result, 1);
        put(g, ";\n");
    }
    begin_line(g);
    put(g, "return ");
    put_value(g, h->result, 2);
    put(g, "; //!\n");
    close_block(g, "}");
    g->is_helper = false;
    g->num_helpers++;
}

// The first variables of a kernel: what no compiler knows.
static void declare_inputs(struct generator *g)
{
    static const struct {
        struct shape shape;
        const char *value;
    } inputs[] = {
        {{U32, 1}, "given.d[id]"},
        {{I32, 1}, "int(given.d[id + 32u]) >> 8"},
        {{F32, 1}, "float(given.d[id + 64u] & 511u) * 0.125 - 32.0"},
        {{U32, 3}, "uvec3(given.d[id * 3u + 64u], id, push.words[id & 3u])"},
        {{F32, 4}, "vec4(ivec4(id, local, id & 3u, push.number)) * 0.5"},
        {{I32, 2}, "ivec2(push.number, given.d[id * 2u + 5u])"},
        {{BOOL, 1}, "(given.d[id + 128u] & 4u) != 0u"},
        {{U16, 1}, "uint16_t(given.d[id + 9u])"},
        {{I8, 1}, "int8_t(given.d[id + 10u] >> 7)"},
        {{I64, 1}, "int64_t(packUint2x32(uvec2(given.d[id + 11u], given.d[id])))"},
        {{U64, 2}, "u64vec2(uvec2(given.d[id + 12u], id)) * 65537UL"},
        {{F64, 1}, "double(given.d[id + 13u] & 255u) * 0.125LF"}};
    uint32_t first = random_below(g, 6);
    for (uint32_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        char name[NAME_BYTES];
        if (i > 2 && (i + first) % 3)
            continue;
        snprintf(name, sizeof(name), "v%u", g->next_name++);
        begin_line(g);
        put(g, "%s%s %s = %s;\n", precision(g, inputs[i].shape.kind),
            type_name(inputs[i].shape), name, inputs[i].value);
        add_variable(g, name, inputs[i].shape, 0, false);
    }
}

static void write_kernel(struct generator *g, uint32_t number)
{
    g->num_variables = 0;
    g->budget = 20;
    put(g, "void kernel%u()", number);
    open_block(g);
    declare_inputs(g);
    for (uint32_t i = 0; i < 8; i++) {
        statement(g, 2, false);
        uint32_t what = random_below(g, 24);
        if (what == 0)
            share(g);
        else if (what == 1)
            share_atomically(g);
        else if (what == 2)
            vote(g);
    }
    for (uint32_t i = 0; i < g->num_variables; i++) {
        const struct variable *v = &g->variables[i];
        for (uint32_t k = 0; k < v->elements + !v->elements; k++) {
            begin_line(g);
            if (v->elements)
                put(g, "digest = fold(digest, %s[%u]);\n", v->name, k);
            else
                put(g, "digest = fold(digest, %s);\n", v->name);
        }
    }
    close_block(g, "}");
}

// --- the shader
// ----------------------------------------------------------------------------

// fit() and fold() of each type.
static void write_functions(struct generator *g)
{
    put(g, "uint fold(uint d, uint x) { return (d ^ x) * 0x9e3779b1u + (d >> 15); }\n"
           "uint fold(uint d, int x) { return fold(d, uint(x)); }\n"
           "uint fold(uint d, bool x) { return fold(d, x ? 1u : 0u); }\n"
           "uint fold(uint d, float x) { return fold(d, x == 0.0 ? 0u : "
           "floatBitsToUint(x)); }\n"
           "uint fold(uint d, uint64_t x) { uvec2 b = unpackUint2x32(x); "
           "return fold(fold(d, b.x), b.y); }\n"
           "uint fold(uint d, int64_t x) { return fold(d, uint64_t(x)); }\n"
           "uint fold(uint d, double x) { uvec2 b = unpackDouble2x32(x); "
           "return x == 0.0LF ? fold(d, 0u) : fold(fold(d, b.x), b.y); }\n"
           "uint fold(uint d, uint8_t x) { return fold(d, uint(x)); }\n"
           "uint fold(uint d, int8_t x) { return fold(d, int(x)); }\n"
           "uint fold(uint d, uint16_t x) { return fold(d, uint(x)); }\n"
           "uint fold(uint d, int16_t x) { return fold(d, int(x)); }\n");
    for (uint32_t kind = 0; kind < NUM_KINDS; kind++)
        for (uint32_t width = 1; width <= 4; width++) {
            const char *type = type_name((struct shape){(enum kind)kind, width});
            if (is_float((enum kind)kind))
                put(g,
                    "%s fit(%s x) { return clamp(floor(x * 8.0%s) * 0.125%s, -64.0%s, "
                    "64.0%s); }\n",
                    type, type, kind == F64 ? "LF" : "", kind == F64 ? "LF" : "",
                    kind == F64 ? "LF" : "", kind == F64 ? "LF" : "");
            if (width == 1)
                continue;
            put(g,
                "uint fold(uint d, %s x) { for (int i = 0; i < %u; i++) d = fold(d, x[i]); "
                "return d; }\n",
                type, width);
        }
}

static void write_head(struct generator *g)
{
    put(g, "#version 460\n"
           "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
           "#extension GL_KHR_shader_subgroup_basic : require\n"
           "#extension GL_KHR_shader_subgroup_vote : require\n"
           "#extension GL_KHR_shader_subgroup_ballot : require\n"
           "#extension GL_KHR_shader_subgroup_shuffle : require\n"
           "#extension GL_KHR_shader_subgroup_arithmetic : require\n");
    put(g, "layout(local_size_x = %u) in;\n", GENERATED_GROUP);
    put(g, "layout(constant_id = 0) const int SPEC_INT = 1;\n"
           "layout(constant_id = 1) const uint SPEC_UINT = 2u;\n"
           "layout(constant_id = 2) const bool SPEC_BOOL = false;\n"
           "layout(std430, binding = 0) readonly buffer Given { uint d[]; } given;\n"
           "layout(std430, binding = 1) writeonly buffer Result { uint d[]; } result;\n"
           "layout(push_constant) uniform Push { uint words[4]; int number; float real; "
           "uvec2 pair; } push;\n");
    put(g, "shared uint shared_words[%u];\nshared uint shared_sum;\n", GENERATED_GROUP);
    put(g, "struct Struct0 { float a; ivec2 b; uint c[4]; };\n"
           "struct Struct1 { uint8_t a; int64_t b; bool c; vec3 d[2]; };\n"
           "uint digest = 0u;\n"
           "int spec_int = SPEC_INT * 3 - 1;\n"
           "uint spec_uint = (SPEC_UINT << 2u) ^ 5u;\n"
           "bool spec_bool = SPEC_BOOL && SPEC_INT < 3;\n"
           "uint id = gl_GlobalInvocationID.x;\n"
           "uint local = gl_LocalInvocationID.x;\n");
    write_functions(g);
}

char *generate_shader(uint64_t seed, uint32_t kernels)
{
    struct generator g = {.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    for (int i = 0; i < 8; i++)
        random_below(&g, 2);
    write_head(&g);
    uint32_t helpers = 1 + random_below(&g, 4);
    for (uint32_t i = 0; i < helpers; i++)
        write_helper(&g);
    for (uint32_t i = 0; i < kernels; i++) {
        g.is_precise = chance(&g, 25);
        write_kernel(&g, i);
    }
    put(&g, "void main()");
    open_block(&g);
    for (uint32_t i = 0; i < kernels; i++) {
        begin_line(&g);
        put(&g, "digest = %uu; kernel%u(); result.d[id * %uu + %uu] = digest; barrier();\n",
            i, i, kernels, i);
    }
    close_block(&g, "}");
    return g.text;
}
