// SPDX-License-Identifier: MIT
// Which built-in function a call means.
#include "builtins.h"

#include <stdio.h>
#include <string.h>

// The first row of a name, by bisection. NULL: none.
static const struct builtin *builtin_find(const struct name *name)
{
    uint32_t low = 0, high = builtin_table_size;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (strcmp(builtin_table[middle].name, name->text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < builtin_table_size && strcmp(builtin_table[low].name, name->text) == 0)
        return &builtin_table[low];
    return NULL;
}

static bool is_row_of(const struct builtin *b, const struct name *name)
{
    return b < builtin_table + builtin_table_size && strcmp(b->name, name->text) == 0;
}

bool builtin_exists(const struct name *name)
{
    return builtin_find(name) != NULL;
}

// --- patterns --------------------------------------------------------------------------

static enum base base_of_letter(char letter)
{
    switch (letter) {
    case 'b':
    case 'B':
        return TYPE_BOOL;
    case 'i':
    case 'I':
        return TYPE_INT32;
    case 'u':
    case 'U':
        return TYPE_UINT32;
    case 'f':
    case 'F':
        return TYPE_FLOAT32;
    case 'd':
        return TYPE_FLOAT64;
    case 'h':
        return TYPE_FLOAT16;
    case 'w':
        return TYPE_BFLOAT16;
    case 'l':
        return TYPE_INT64;
    case 'L':
        return TYPE_UINT64;
    case 'c':
        return TYPE_INT8;
    case 'C':
        return TYPE_UINT8;
    case 'k':
        return TYPE_INT16;
    case 'K':
        return TYPE_UINT16;
    default:
        return TYPE_VOID;
    }
}

// The type that a pattern's next letters mean for a class's base and a size.
static const struct type *next_type(struct translator *t, const char **pattern,
                                    enum base base, uint32_t rows)
{
    char letter = *(*pattern)++;
    if (letter == '&' || letter == '*')
        letter = *(*pattern)++;
    if (letter == 'T' || letter == 'V')
        return type_number(t, base, 1, rows);
    if (letter == 't' || letter == 's')
        return type_scalar(t, base);
    enum base own = base_of_letter(letter);
    if (letter == 'B' || letter == 'I' || letter == 'U' || letter == 'F')
        return type_number(t, own, 1, rows);
    if (**pattern >= '2' && **pattern <= '4')
        return type_vector(t, own, (uint32_t)(*(*pattern)++ - '0'));
    return type_scalar(t, own);
}

static uint32_t num_arguments(const char *pattern)
{
    uint32_t count = 0;
    for (pattern = strchr(pattern, ':') + 1; *pattern != 0; pattern++)
        count +=
            *pattern != '&' && *pattern != '*' && !(*pattern >= '2' && *pattern <= '4');
    return count;
}

bool builtin_is_lvalue(const struct builtin *b, uint32_t argument)
{
    const char *pattern = strchr(b->pattern, ':');
    if (pattern == NULL) { // of these the first argument is an output, the second memory
        bool is_load = b->how == HOW_COOPMAT_LOAD || b->how == HOW_COOPMAT_LOAD_TENSOR;
        bool is_store = b->how == HOW_COOPMAT_STORE || b->how == HOW_COOPMAT_STORE_TENSOR;
        return (argument == 0 && (is_load || b->how >= HOW_COOPMAT_REDUCE)) ||
               (argument == 1 && (is_load || is_store));
    }
    for (pattern++;; pattern++) {
        bool is_lvalue = *pattern == '&' || *pattern == '*';
        pattern += is_lvalue;
        if (argument == 0)
            return is_lvalue;
        argument--;
        if (pattern[1] >= '2' && pattern[1] <= '4')
            pattern++;
    }
}

// The size that the arguments for T, V, B and so on have.
static uint32_t size_of_arguments(const struct builtin *b, struct tree_expr **arguments)
{
    const char *pattern = strchr(b->pattern, ':') + 1;
    for (uint32_t i = 0; *pattern != 0; pattern++) {
        if (*pattern == '&' || *pattern == '*' || (*pattern >= '2' && *pattern <= '4'))
            continue;
        bool is_sized = strchr("TVBIUF", *pattern) != NULL;
        if (is_sized && type_is_number(arguments[i]->type))
            return arguments[i]->type->rows;
        i++;
    }
    return 1;
}

// The cost of a call, RANK_NONE where it does not fit.
static uint32_t cost_of(struct translator *t, const struct builtin *b, enum base base,
                        uint32_t rows, struct tree_expr **arguments, uint32_t count)
{
    const char *pattern = strchr(b->pattern, ':') + 1;
    uint32_t cost = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool is_lvalue = *pattern == '&' || *pattern == '*';
        bool is_vector = *pattern == 'V';
        const struct type *type = next_type(t, &pattern, base, rows);
        uint32_t rank = convert_rank(t, arguments[i]->type, type);
        if (rank == RANK_NONE || (is_lvalue && rank != RANK_EXACT) ||
            (is_vector && rows == 1))
            return RANK_NONE;
        cost += rank;
    }
    return cost < RANK_NONE ? cost : RANK_NONE - 1;
}

struct match {
    const struct builtin *builtin;
    enum base base;
    uint32_t rows, cost;
};

static void match_row(struct translator *t, const struct builtin *b,
                      struct tree_expr **arguments, struct match *best)
{
    uint32_t count = num_arguments(b->pattern);
    uint32_t rows = count > 0 ? size_of_arguments(b, arguments) : 1;
    uint32_t classes = b->classes != 0 ? b->classes : 1u << TYPE_VOID;
    for (enum base base = TYPE_VOID; base < NUM_SCALARS; base++) {
        if (!(classes >> base & 1))
            continue;
        uint32_t cost = cost_of(t, b, base, rows, arguments, count);
        if (cost < best->cost)
            *best = (struct match){b, base, rows, cost};
        if (cost == 0)
            return;
    }
}

static void check_narrow_group(struct translator *t, const struct builtin *b,
                               enum base base, const struct position *at)
{
    uint64_t extension = 0;
    bool is_group =
        b->how == HOW_GROUP || b->how == HOW_GROUP_REDUCE || b->how == HOW_GROUP_QUAD;
    if (!is_group)
        return;
    if (base_is_int(base) && base_width(base) == 8)
        extension = EXTENSION_BIT(GROUP_INT8);
    else if (base_is_int(base) && base_width(base) == 16)
        extension = EXTENSION_BIT(GROUP_INT16);
    else if (base_is_int(base) && base_width(base) == 64)
        extension = EXTENSION_BIT(GROUP_INT64);
    else if (base == TYPE_FLOAT16)
        extension = EXTENSION_BIT(GROUP_FLOAT16);
    extension_check(t, extension, at, b->name);
}

static struct tree_expr *builtin_call_of(struct translator *t, const struct match *match,
                                         struct tree_expr **arguments, uint32_t count,
                                         const struct type *type, const struct position *at)
{
    const struct builtin *b = match->builtin;
    extension_check(t, b->extensions, at, b->name);
    check_narrow_group(t, b, match->base, at);
    struct tree_expr *e = expr_new(t, EXPR_BUILTIN, type, at);
    e->builtin = b;
    e->arguments = arguments;
    e->number = count;
    e->op = match->base;
    for (uint32_t i = 0; i < count; i++) {
        if (builtin_is_lvalue(b, i)) {
            e->has_effects = true;
            bool is_read = b->how == HOW_COOPMAT_LOAD || b->how == HOW_COOPMAT_LOAD_TENSOR;
            if (b->code[0] != OpAtomicLoad && !(is_read && i == 1))
                expr_check_lvalue(t, arguments[i], b->name);
        }
        expr_child(t, e, arguments[i]);
    }
    struct tree_expr *folded = builtin_fold(t, e);
    return folded != NULL ? folded : e;
}

static struct tree_expr *call_by_pattern(struct translator *t, const struct match *match,
                                         struct tree_expr **arguments, uint32_t count,
                                         const struct position *at)
{
    const char *pattern = match->builtin->pattern;
    const struct type *result = next_type(t, &pattern, match->base, match->rows);
    pattern++;
    for (uint32_t i = 0; i < count; i++) {
        const struct type *type = next_type(t, &pattern, match->base, match->rows);
        if (arguments[i]->type != type)
            arguments[i] = convert_base(t, arguments[i], type->base);
    }
    return builtin_call_of(t, match, arguments, count, result, at);
}

static bool is_float_vector(const struct type *type)
{
    return type_is_vector(type) && base_is_float(type->base);
}

// Type of a call whose pattern begins with '?'. NULL: it does not fit.
static const struct type *type_of_call(struct translator *t, const struct builtin *b,
                                       struct tree_expr **arguments, uint32_t count)
{
    const struct type *first = count > 0 ? arguments[0]->type : NULL;
    const struct type *second = count > 1 ? arguments[1]->type : NULL;
    if (b->how >= HOW_TENSOR)
        return tensor_check(t, b, arguments, count);
    if (b->how >= HOW_COOPMAT_LOAD)
        return coopmat_check(t, b, arguments, count);
    if (b->how == HOW_MATRIX && b->code[0] == OpOuterProduct)
        return count == 2 && is_float_vector(first) && is_float_vector(second) &&
                       first->base == second->base
                   ? type_number(t, first->base, second->rows, first->rows)
                   : NULL;
    if (first == NULL || !type_is_matrix(first))
        return NULL;
    if (b->how == HOW_MATRIX_PRODUCT)
        return count == 2 && second == first ? first : NULL;
    if (count != 1)
        return NULL;
    if (b->how == HOW_MATRIX)
        return type_number(t, first->base, first->rows, first->columns);
    if (first->rows != first->columns)
        return NULL;
    return b->code[0] == GlslDeterminant ? type_scalar(t, first->base) : first;
}

struct tree_expr *builtin_call(struct translator *t, const struct name *name,
                               struct tree_expr **arguments, uint32_t count,
                               bool must_be_exact, const struct position *at)
{
    struct match best = {NULL, TYPE_VOID, 0, must_be_exact ? 1 : RANK_NONE};
    for (const struct builtin *b = builtin_find(name); is_row_of(b, name); b++) {
        if (b->pattern[0] == '?') {
            const struct type *type = type_of_call(t, b, arguments, count);
            struct match match = {b, TYPE_VOID, 0, 0};
            if (type != NULL)
                return builtin_call_of(t, &match, arguments, count, type, at);
        } else if (num_arguments(b->pattern) == count) {
            match_row(t, b, arguments, &best);
        }
    }
    return best.builtin != NULL ? call_by_pattern(t, &best, arguments, count, at) : NULL;
}

// --- candidates ------------------------------------------------------------------------

// Names the types that T stands for.
static const char *class_text(const struct builtin *b)
{
    bool has_float = b->classes >> TYPE_FLOAT32 & 1, has_int = b->classes >> TYPE_INT32 & 1;
    return has_float && has_int            ? "number"
           : has_float                     ? "float"
           : b->classes == 1u << TYPE_BOOL ? "bool"
           : has_int                       ? "int"
           : b->classes >> TYPE_UINT32 & 1 ? "uint"
                                           : "T";
}

static void builtin_describe(char *text, size_t capacity, const struct builtin *b)
{
    const struct {
        char letter;
        const char *text;
    } letters[] = {{'T', class_text(b)}, {'t', "scalar"}, {'s', "scalar"}, {'V', "vector"},
                   {'B', "bvec"},        {'I', "ivec"},   {'U', "uvec"},   {'F', "vec"}};
    const char *pattern = strchr(b->pattern, ':');
    size_t size = strlen(text);
    bool is_first = true;
    size += (size_t)snprintf(text + size, capacity - size, "%s(", size == 0 ? "" : " or ");
    for (pattern = pattern == NULL ? "" : pattern + 1; *pattern != 0 && size < capacity;
         pattern++) {
        const char *letter = type_base_text(base_of_letter(*pattern));
        if (*pattern == '&' || *pattern == '*' || (*pattern >= '2' && *pattern <= '4'))
            continue;
        for (uint32_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
            if (letters[i].letter == *pattern)
                letter = letters[i].text;
        size += (size_t)snprintf(text + size, capacity - size, "%s%s%s%.1s",
                                 is_first ? "" : ", ", letter,
                                 pattern[1] >= '2' && pattern[1] <= '4' ? " of " : "",
                                 pattern[1] >= '2' && pattern[1] <= '4' ? pattern + 1 : "");
        is_first = false;
    }
    if (size < capacity)
        snprintf(text + size, capacity - size, "%s)", b->pattern[0] == '?' ? "matrix" : "");
}

const char *builtin_candidates(struct translator *t, const struct name *name)
{
    enum { CAPACITY = 100 };
    char *text = compiler_allocate(t->c, CAPACITY);
    for (const struct builtin *b = builtin_find(name); b != NULL && is_row_of(b, name); b++)
        if (strlen(text) + 1 < CAPACITY)
            builtin_describe(text, CAPACITY, b);
    return text;
}
