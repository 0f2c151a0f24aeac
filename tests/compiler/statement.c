// SPDX-License-Identifier: MIT
// Random statements.
#include "generator.h"

#include <stdio.h>

// --- variables -------------------------------------------------------------------------

struct variable *add_variable(struct generator *g, const char *name, struct shape shape,
                              uint32_t elements, bool is_constant)
{
    if (g->num_variables == MOST_VARIABLES)
        return NULL;
    struct variable *v = &g->variables[g->num_variables++];
    *v =
        (struct variable){.shape = shape, .elements = elements, .is_constant = is_constant};
    snprintf(v->name, sizeof(v->name), "%s", name);
    return v;
}

const char *precision(const struct generator *g, enum kind kind)
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
    put(g, "%sStruct%u s%u = Struct%u(", precision(g, F32), number, id, number);
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

// --- assignments -----------------------------------------------------------------------

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
            put_argument(g, h->params[i], 1);
    }
    put(g, "));\n");
}

// --- control flow ----------------------------------------------------------------------

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
void share(struct generator *g)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "v%u", g->next_name++);
    begin_line(g);
    put(g, "shared_words[local] = ");
    put_expression(g, (struct shape){U32, 1}, 2);
    put(g, "; barrier(); uint %s = shared_words[(local + %uu) & %uu]; barrier();\n", name,
        random_below(g, GENERATED_GROUP / GENERATED_ALIKE) * GENERATED_ALIKE,
        GENERATED_GROUP - 1);
    add_variable(g, name, (struct shape){U32, 1}, 0, false);
}

// Atomics whose result is the same in each order.
void share_atomically(struct generator *g)
{
    static const char *const names[] = {"Add", "Or", "And", "Xor", "Max", "Min"};
    begin_line(g);
    put(g, "if (local == 0u) shared_sum = %uu; barrier(); atomic%s(shared_sum, ",
        random_below(g, 1000), names[random_below(g, 6)]);
    put_expression(g, (struct shape){U32, 1}, 1);
    put(g, "); barrier(); digest = fold(digest, shared_sum); barrier();\n");
}

// Subgroup operations whose result is the same for each size of subgroups.
void vote(struct generator *g)
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

void statement(struct generator *g, uint32_t depth, bool in_loop)
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

void statements(struct generator *g, uint32_t count, uint32_t depth, bool in_loop)
{
    for (uint32_t i = 0; i < count; i++)
        statement(g, depth, in_loop);
}
