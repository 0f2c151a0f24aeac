// SPDX-License-Identifier: MIT
// Reads the interface of a module. Numbers are those of the SPIR-V specification 1.6.
#include "interface.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXTENSION = 10,
    MEMORY_MODEL = 14,
    ENTRY_POINT = 15,
    EXECUTION_MODE = 16,
    CAPABILITY = 17,
    TYPE_VOID = 19,
    TYPE_BOOL = 20,
    TYPE_INT = 21,
    TYPE_FLOAT = 22,
    TYPE_VECTOR = 23,
    TYPE_MATRIX = 24,
    TYPE_ARRAY = 28,
    TYPE_RUNTIME_ARRAY = 29,
    TYPE_STRUCT = 30,
    TYPE_POINTER = 32,
    TYPE_FORWARD_POINTER = 39,
    CONSTANT_TRUE = 41,
    CONSTANT_FALSE = 42,
    CONSTANT = 43,
    CONSTANT_COMPOSITE = 44,
    SPEC_TRUE = 48,
    SPEC_FALSE = 49,
    SPEC_CONSTANT = 50,
    SPEC_COMPOSITE = 51,
    SPEC_OP = 52,
    FUNCTION = 54,
    VARIABLE = 59,
    DECORATE = 71,
    MEMBER_DECORATE = 72,
    EXECUTION_MODE_ID = 331,
};
enum { SPEC_ID = 1, BUILT_IN = 11, BINDING = 33, SET = 34, ARRAY_STRIDE = 6 };
enum { IN_INPUT = 1, IN_WORKGROUP = 4, IN_FUNCTION = 7, IN_PRIVATE = 6 };
enum { MOST_LINE = 4096, MOST_DEPTH = 12 };

struct reader {
    const uint32_t *words;
    size_t count;
    const uint32_t **made; // by id: the instruction that makes it
    uint32_t bound;
    struct interface out;
};

// --- lines -----------------------------------------------------------------------------

struct line {
    char text[MOST_LINE];
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void say(struct line *line, const char *format,
                                                      ...)
{
    va_list list;
    va_start(list, format);
    int size = vsnprintf(line->text + line->size, MOST_LINE - line->size, format, list);
    va_end(list);
    line->size += size > 0 ? (size_t)size : 0;
    line->size = line->size < MOST_LINE ? line->size : MOST_LINE - 1;
}

static void end(struct reader *r, const struct line *line)
{
    r->out.lines = realloc(r->out.lines, (r->out.count + 1) * sizeof(*r->out.lines));
    if (!r->out.lines)
        abort();
    r->out.lines[r->out.count] = strdup(line->text);
    if (!r->out.lines[r->out.count++])
        abort();
}

// --- instructions ----------------------------------------------------------------------

static uint32_t op_of(const uint32_t *inst)
{
    return inst[0] & 0xffff;
}

static uint32_t size_of(const uint32_t *inst)
{
    return inst[0] >> 16;
}

static const uint32_t *made(const struct reader *r, uint32_t id)
{
    static const uint32_t nothing[8] = {0};
    return id < r->bound && r->made[id] ? r->made[id] : nothing;
}

// The decorations of an id's member, or of the id itself (-1), in the order of the table.
static void say_decorations(const struct reader *r, struct line *line, uint32_t id,
                            int64_t member)
{
    // Restrict, Aliased, RowMajor, ColMajor, ArrayStride, MatrixStride, Volatile, Coherent,
    // NonWritable, NonReadable, Offset, AliasedPointer and RestrictPointer.
    static const struct {
        uint32_t number;
        const char *name;
    } told[] = {{4, "row major"},     {5, "column major"}, {6, "array stride"},
                {7, "matrix stride"}, {19, "restrict"},    {20, "aliased"},
                {21, "volatile"},     {23, "coherent"},    {24, "not written"},
                {25, "not read"},     {35, "offset"},      {2, "block"},
                {3, "buffer block"},  {44, "alignment"}};
    for (size_t k = 0; k < sizeof(told) / sizeof(told[0]); k++)
        for (size_t at = 5; at < r->count && op_of(&r->words[at]) != FUNCTION;
             at += size_of(&r->words[at])) {
            const uint32_t *inst = &r->words[at];
            bool is_member = op_of(inst) == MEMBER_DECORATE;
            if ((op_of(inst) != DECORATE && !is_member) || inst[1] != id ||
                is_member != (member >= 0) || (is_member && inst[2] != (uint32_t)member))
                continue;
            const uint32_t *what = inst + 2 + is_member;
            if (what[0] != told[k].number)
                continue;
            say(line, " %s", told[k].name);
            if (size_of(inst) > 3u + is_member)
                say(line, " %u", what[1]);
        }
}

static const uint32_t *decoration(const struct reader *r, uint32_t id, uint32_t number)
{
    for (size_t at = 5; at < r->count && op_of(&r->words[at]) != FUNCTION;
         at += size_of(&r->words[at]))
        if (op_of(&r->words[at]) == DECORATE && r->words[at + 1] == id &&
            r->words[at + 2] == number)
            return &r->words[at + 3];
    return NULL;
}

// --- constants and types ---------------------------------------------------------------

static void say_type(const struct reader *r, struct line *line, uint32_t id, int depth);

static void say_constant(const struct reader *r, struct line *line, uint32_t id, int depth)
{
    const uint32_t *inst = made(r, id), *spec = decoration(r, id, SPEC_ID);
    uint32_t op = op_of(inst);
    if (depth > MOST_DEPTH)
        return;
    if (spec)
        say(line, "spec %u = ", spec[0]);
    if (op == CONSTANT_TRUE || op == SPEC_TRUE || op == CONSTANT_FALSE || op == SPEC_FALSE)
        say(line, op == CONSTANT_TRUE || op == SPEC_TRUE ? "true" : "false");
    else if (op == CONSTANT || op == SPEC_CONSTANT)
        for (uint32_t i = 3; i < size_of(inst); i++)
            say(line, "%s%" PRIu32, i > 3 ? ":" : "", inst[i]);
    else if (op == CONSTANT_COMPOSITE || op == SPEC_COMPOSITE)
        for (uint32_t i = 3; i < size_of(inst); i++) {
            say(line, i > 3 ? ", " : "(");
            say_constant(r, line, inst[i], depth + 1);
            say(line, i + 1 == size_of(inst) ? ")" : "");
        }
    else
        say(line, op == SPEC_OP ? "of specialisation" : "a constant %u", op);
}

// Of a vector of constants: values, and the numbers of those that are specialised.
static void say_spec_ids(const struct reader *r, struct line *line, uint32_t id)
{
    const uint32_t *inst = made(r, id);
    for (uint32_t i = 3; i < size_of(inst); i++) {
        const uint32_t *spec = decoration(r, inst[i], SPEC_ID);
        if (spec)
            say(line, " spec %u", spec[0]);
        else {
            say(line, " ");
            say_constant(r, line, inst[i], 0);
        }
    }
}

static void say_struct(const struct reader *r, struct line *line, uint32_t id, int depth)
{
    const uint32_t *inst = made(r, id);
    say(line, "struct");
    say_decorations(r, line, id, -1);
    say(line, " {");
    for (uint32_t i = 2; i < size_of(inst); i++) {
        say(line, i > 2 ? "; " : "");
        say_type(r, line, inst[i], depth + 1);
        say_decorations(r, line, id, i - 2);
    }
    say(line, "}");
}

static void say_type(const struct reader *r, struct line *line, uint32_t id, int depth)
{
    const uint32_t *inst = made(r, id);
    if (depth > MOST_DEPTH) {
        say(line, "...");
        return;
    }
    switch (op_of(inst)) {
    case TYPE_VOID:
        say(line, "void");
        break;
    case TYPE_BOOL:
        say(line, "bool");
        break;
    case TYPE_INT:
        say(line, "%c%u", inst[3] ? 'i' : 'u', inst[2]);
        break;
    case TYPE_FLOAT:
        say(line, "f%u%s", inst[2], size_of(inst) > 3 ? " of its own encoding" : "");
        break;
    case TYPE_VECTOR:
    case TYPE_MATRIX:
        say(line, op_of(inst) == TYPE_VECTOR ? "vector %u of " : "matrix %u of ", inst[3]);
        say_type(r, line, inst[2], depth + 1);
        break;
    case TYPE_ARRAY:
    case TYPE_RUNTIME_ARRAY:
        say(line, "[");
        if (op_of(inst) == TYPE_ARRAY)
            say_constant(r, line, inst[3], 0);
        say(line, "] of ");
        say_type(r, line, inst[2], depth + 1);
        say_decorations(r, line, id, -1);
        break;
    case TYPE_STRUCT:
        say_struct(r, line, id, depth);
        break;
    case TYPE_POINTER:
        say(line, "pointer %u to ", inst[2]);
        say_type(r, line, inst[3], depth + 5);
        break;
    default:
        say(line, "type %u", op_of(inst));
    }
}

// --- the module ------------------------------------------------------------------------

static void read_variable(struct reader *r, const uint32_t *inst)
{
    struct line line = {"", 0};
    uint32_t id = inst[2], class = inst[3];
    if (class == IN_FUNCTION || class == IN_PRIVATE)
        return;
    const uint32_t *set = decoration(r, id, SET), *binding = decoration(r, id, BINDING);
    const uint32_t *built_in = decoration(r, id, BUILT_IN);
    if (class == IN_INPUT)
        say(&line, "input %u ", built_in ? built_in[0] : UINT32_MAX);
    else if (class == IN_WORKGROUP)
        say(&line, "shared ");
    else
        say(&line, "variable in %u", class);
    if (set)
        say(&line, " set %u", set[0]);
    if (binding)
        say(&line, " binding %u", binding[0]);
    say_decorations(r, &line, id, -1);
    say(&line, ": ");
    say_type(r, &line, made(r, inst[1])[3], 0);
    end(r, &line);
}

static void read_mode(struct reader *r, const uint32_t *inst)
{
    struct line line = {"", 0};
    say(&line, "mode %u:", inst[2]);
    for (uint32_t i = 3; i < size_of(inst); i++) {
        say(&line, " ");
        if (op_of(inst) == EXECUTION_MODE)
            say(&line, "%u", inst[i]);
        else
            say_constant(r, &line, inst[i], 0);
    }
    end(r, &line);
}

static void read_inst(struct reader *r, const uint32_t *inst)
{
    struct line line = {"", 0};
    switch (op_of(inst)) {
    case CAPABILITY:
        say(&line, "capability %u", inst[1]);
        end(r, &line);
        break;
    case EXTENSION:
        say(&line, "extension %s", (const char *)&inst[1]);
        end(r, &line);
        break;
    case MEMORY_MODEL:
        say(&line, "memory model %u, addressing %u", inst[2], inst[1]);
        end(r, &line);
        break;
    case ENTRY_POINT:
        say(&line, "entry point %s of model %u", (const char *)&inst[3], inst[1]);
        end(r, &line);
        break;
    case EXECUTION_MODE:
    case EXECUTION_MODE_ID:
        read_mode(r, inst);
        break;
    case VARIABLE:
        read_variable(r, inst);
        break;
    case DECORATE:
        if (inst[2] == SPEC_ID ||
            (inst[2] == BUILT_IN && op_of(made(r, inst[1])) != VARIABLE)) {
            say(&line, "constant%s: ", inst[2] == BUILT_IN ? ", a built-in" : "");
            say_type(r, &line, made(r, inst[1])[1], 0);
            say(&line, " ");
            // glslang gives the numbers of the local size defaults of their own.
            if (inst[2] == BUILT_IN)
                say_spec_ids(r, &line, inst[1]);
            else
                say_constant(r, &line, inst[1], 0);
            end(r, &line);
        }
        break;
    default:
        break;
    }
}

// Where an instruction outside of functions has its result.
static uint32_t result_at(const uint32_t *inst)
{
    uint32_t op = op_of(inst);
    if (op == TYPE_FORWARD_POINTER)
        return 0;
    if (op >= TYPE_VOID && op < TYPE_FORWARD_POINTER)
        return 1;
    return (op >= CONSTANT_TRUE && op <= SPEC_OP) || op == VARIABLE ? 2 : 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct interface interface_read(const uint32_t *words, size_t count)
{
    struct reader r = {.words = words, .count = count, .bound = words[3]};
    r.made = calloc(r.bound + 1, sizeof(*r.made));
    if (!r.made)
        abort();
    for (size_t at = 5; at < count && op_of(&words[at]) != FUNCTION;
         at += size_of(&words[at])) {
        uint32_t result = result_at(&words[at]);
        if (result && words[at + result] < r.bound)
            r.made[words[at + result]] = &words[at];
    }
    for (size_t at = 5; at < count && op_of(&words[at]) != FUNCTION;
         at += size_of(&words[at]))
        read_inst(&r, &words[at]);
    free(r.made);
    if (r.out.count)
        qsort(r.out.lines, r.out.count, sizeof(*r.out.lines), by_text);
    return r.out;
}

void interface_free(struct interface *interface)
{
    for (size_t i = 0; i < interface->count; i++)
        free(interface->lines[i]);
    free(interface->lines);
    *interface = (struct interface){0};
}

static bool has_line(const struct interface *interface, const char *line)
{
    for (size_t i = 0; i < interface->count; i++)
        if (strcmp(interface->lines[i], line) == 0)
            return true;
    return false;
}

static bool is_needed(const char *line, const struct interface *needed)
{
    static const char *const free_to_lack[] = {"capability ", "extension ", "input ",
                                               "shared "};
    for (size_t i = 0; i < sizeof(free_to_lack) / sizeof(free_to_lack[0]); i++)
        if (strncmp(line, free_to_lack[i], strlen(free_to_lack[i])) == 0)
            return false;
    return has_line(needed, line);
}

void interface_compare(const struct interface *oracle, const struct interface *needed,
                       const struct interface *other,
                       void (*tell)(void *context, const char *what, const char *line),
                       void *context)
{
    size_t a = 0, b = 0;
    while (a < oracle->count || b < other->count) {
        int order = a == oracle->count  ? 1
                    : b == other->count ? -1
                                        : strcmp(oracle->lines[a], other->lines[b]);
        if (order < 0 && is_needed(oracle->lines[a], needed))
            tell(context, "lacks", oracle->lines[a]);
        if (order > 0)
            tell(context, "adds", other->lines[b]);
        a += order <= 0;
        b += order >= 0;
    }
}
