// SPDX-License-Identifier: MIT
// Random functions, and the shader around them.
#include "generator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- text ------------------------------------------------------------------------------

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

void open_block(struct generator *g)
{
    put(g, " {\n");
    g->indent++;
}

void close_block(struct generator *g, const char *text)
{
    g->indent--;
    begin_line(g);
    put(g, "%s\n", text);
}

// --- functions -------------------------------------------------------------------------

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
        {{F32, 4}, "vec4(ivec4(id, gl_WorkGroupSize.x, id & 3u, push.number)) * 0.5"},
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

// --- the shader ------------------------------------------------------------------------

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
           "uint zero = 0u;\n"
           "int spec_int = SPEC_INT * 3 - 1;\n"
           "uint spec_uint = (SPEC_UINT << 2u) ^ 5u;\n"
           "bool spec_bool = SPEC_BOOL && SPEC_INT < 3;\n"
           "uint local = gl_LocalInvocationID.x;\n");
    put(g, "uint id = gl_GlobalInvocationID.x / %uu;\n", GENERATED_ALIKE);
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
        put(&g,
            "digest = %uu; kernel%u(); result.d[local * %uu + %uu] = digest; barrier();\n",
            i, i, kernels, i);
    }
    close_block(&g, "}");
    return g.text;
}
