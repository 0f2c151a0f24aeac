// SPDX-License-Identifier: MIT
// Reading one function of a manifest: symbols, libraries, attributes, names in expressions,
// work arrays and derivatives.
#include "manifest.h"

#include <stdio.h>
#include <string.h>
#include "gradient.h"

// C's names of some dtypes.
#define C_TYPES(X)                                                                         \
    X(F32, "float")                                                                        \
    X(F64, "double")                                                                       \
    X(I8, "char")                                                                          \
    X(U64, "size_t")                                                                       \
    X(I32, "int")                                                                          \
    X(I64, "long")

// The words for types; `type_values` in the same order.
#define NAME(name, text, ...) text,
static const char *const type_names[] = {"T", TN_DTYPES(NAME) C_TYPES(NAME) NULL};
#undef NAME
#define VALUE(name, ...) TN_##name,
static const tn_dtype type_values[] = {TN_DTYPE_NONE, TN_DTYPES(VALUE) C_TYPES(VALUE)};
#undef VALUE

tn_dtype read_type(struct json_reader *reader, const struct field *field,
                   tn_dtype otherwise)
{
    return field->value ? type_values[read_choice(reader, field, type_names, 0)]
                        : otherwise;
}

int find_operand(const struct ffi_function *function, const char *name)
{
    for (uint32_t i = 0; i < function->num_inputs + function->num_outputs; i++)
        if (strcmp(function->operands[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int ffi_function_find_field(const struct ffi_function *function, const char *name)
{
    for (uint32_t i = 0; i < function->num_fields; i++)
        if (strcmp(function->fields[i].name, name) == 0)
            return (int)i;
    return -1;
}

int find_name(void *context, const char *name)
{
    const struct ffi_function *function = context;
    for (uint32_t i = 0; i < function->num_names; i++)
        if (strcmp(function->names[i].text, name) == 0)
            return (int)i;
    return -1;
}

void add_name(struct json_reader *reader, const struct field *field,
              struct ffi_function *function, const char *text, enum name_source source,
              uint32_t index)
{
    if (function->num_names == MAX_NAMES) {
        refuse(reader, field, "more than %d names in expressions", MAX_NAMES);
        return;
    }
    function->names[function->num_names++] = (struct ffi_name){text, source, index, {0}, 0};
}

// An extent is an expression in a string, or an integer.
void read_extent(struct json_reader *reader, const struct field *field,
                 struct ffi_function *function, struct extent *out)
{
    char number[32];
    const char *text = number;
    struct problem problem = {0};
    if (json_is_integer(field->value))
        snprintf(number, sizeof(number), "%lld",
                 (long long)json_integer_value(field->value));
    else
        text = read_text(reader, field, 200, NULL);
    if (!reading(reader))
        return;
    if (extent_parse(reader->arena, text, find_name, function, out, &problem))
        refuse(reader, field, "%s", problem.text);
}

// --- symbols and libraries -------------------------------------------------------------

struct library *read_library(struct json_reader *reader, const struct field *object)
{
    struct field field = member(object, "library"), remedy = member(object, "remedy");
    if (!field.value)
        return NULL;
    struct library *library = reader_alloc(reader, sizeof(*library));
    if (!library)
        return NULL;
    if (json_is_string(field.value))
        library->names[0] = read_text(reader, &field, 255, NULL);
    size_t count = json_is_string(field.value)
                       ? 0
                       : expect_array(reader, &field, MAX_LIBRARIES, false);
    for (size_t i = 0; i < count; i++) {
        struct field item = element(&field, i);
        library->names[i] = read_text(reader, &item, 255, NULL);
    }
    if (reading(reader) && !library->names[0])
        refuse(reader, &field, "got an empty list, expected a library's name");
    library->remedy = remedy.value ? read_text(reader, &remedy, 200, NULL) : NULL;
    if (reading(reader))
        read_setups(reader, object, library);
    return library;
}

static void ffi_function_read_symbols(struct json_reader *reader, const struct field *field,
                                      struct ffi_function *function)
{
    struct field symbol = member(field, "symbol"), dtype = member(field, "dtype");
    const char *key;
    json_t *value;
    size_t count = json_is_object(symbol.value) ? json_object_size(symbol.value) : 1;
    function->variants = reader_alloc(reader, (count + 1) * sizeof(*function->variants));
    if (!function->variants)
        return;
    if (json_is_string(symbol.value)) {
        function->variants[0].symbol = read_text(reader, &symbol, 255, NULL);
        function->variants[0].dtype = read_type(reader, &dtype, TN_DTYPE_NONE);
        if (function->variants[0].dtype == TN_DTYPE_NONE)
            refuse(reader, &dtype, "got %s, expected the dtype that T stands for",
                   dtype.value ? "T" : "nothing");
        function->num_variants = 1;
        return;
    }
    if (!json_is_object(symbol.value) || json_object_size(symbol.value) == 0)
        refuse_type(reader, &symbol, "a symbol, or an object of dtypes and symbols");
    if (dtype.value)
        refuse(reader, &dtype, "got a dtype, expected none: the symbols say them already");
    json_object_foreach((json_t *)symbol.value, key, value)
    {
        struct field item = {&symbol, key, 0, value};
        const char *const *dtypes = type_names + 1; // without "T"
        tn_dtype type = TN_DTYPE_NONE;
        for (size_t i = 0; dtypes[i] && type == TN_DTYPE_NONE; i++)
            if (strcmp(dtypes[i], key) == 0)
                type = type_values[i + 1];
        if (type == TN_DTYPE_NONE)
            refuse_name(reader, &item, key, dtypes);
        for (uint32_t i = 0; i < function->num_variants; i++)
            if (function->variants[i].dtype == type)
                refuse(reader, &item, "got a second symbol for %s, expected one",
                       tn_dtype_name(type));
        if (!reading(reader))
            return;
        struct variant *variant = &function->variants[function->num_variants++];
        variant->dtype = type;
        variant->symbol = read_text(reader, &item, 255, NULL);
    }
}

// Fails when there are several symbols but no input of dtype T, which chooses between them.
static void check_variants(struct json_reader *reader, const struct field *field,
                           const struct ffi_function *function)
{
    struct field symbol = member(field, "symbol");
    bool is_chosen = function->num_variants == 1;
    for (uint32_t i = 0; i < function->num_inputs; i++)
        is_chosen |= function->operands[i].dtype == TN_DTYPE_NONE;
    if (!is_chosen)
        refuse(reader, &symbol,
               "got %u symbols, expected one, or an input of dtype T, which chooses",
               function->num_variants);
}

// --- attributes ------------------------------------------------------------------------

static void read_choices(struct json_reader *reader, const struct field *field,
                         tn_attr_field *out)
{
    struct field choices = member(field, "choices"), value = member(field, "default");
    size_t count = expect_array(reader, &choices, 64, false);
    const char **names = reader_alloc(reader, (count + 1) * sizeof(*names));
    for (size_t i = 0; i < count && reading(reader); i++) {
        struct field item = element(&choices, i);
        names[i] = read_text(reader, &item, 63, NULL);
    }
    if (reading(reader) && count == 0)
        refuse(reader, &choices, "got an empty list, expected choices");
    out->choices = names;
    if (reading(reader) && value.value)
        out->default_i = read_choice(reader, &value, names, -1);
}

static void read_default(struct json_reader *reader, const struct field *field,
                         tn_attr_field *out)
{
    struct field value = member(field, "default");
    out->flags = value.value ? 0 : TN_ATTR_REQUIRED;
    if (out->kind == TN_ATTR_CHOICE)
        read_choices(reader, field, out);
    else if (out->kind == TN_ATTR_BOOL)
        out->default_i = read_bool(reader, &value, false);
    else if (out->kind == TN_ATTR_I64)
        out->default_i = read_integer(reader, &value, INT64_MIN, INT64_MAX, 0);
    else if (value.value && !json_is_number(value.value))
        refuse_type(reader, &value, "a number");
    else
        out->default_f = json_number_value(value.value);
}

// "min" and "max". Fails when the default lies outside.
static void read_limits(struct json_reader *reader, const struct field *field,
                        struct ffi_function *function)
{
    struct field min = member(field, "min"), max = member(field, "max");
    struct field value = member(field, "default");
    const tn_attr_field *out = &function->fields[function->num_fields];
    int64_t *least = &function->least[function->num_fields];
    int64_t *most = &function->most[function->num_fields];
    *least = read_integer(reader, &min, INT64_MIN, INT64_MAX, INT64_MIN);
    *most = read_integer(reader, &max, *least, INT64_MAX, INT64_MAX);
    if ((min.value || max.value) && out->kind != TN_ATTR_I64)
        refuse(reader, min.value ? &min : &max,
               "got a limit, expected none but with type \"i64\"");
    if (out->kind == TN_ATTR_I64 && value.value &&
        (out->default_i < *least || out->default_i > *most))
        refuse(reader, &value, "got %lld, expected %lld to %lld", (long long)out->default_i,
               (long long)*least, (long long)*most);
}

static void read_attribute(struct json_reader *reader, const struct field *field,
                           struct ffi_function *function)
{
    static const char *const known[] = {"name",    "doc", "type", "default",
                                        "choices", "min", "max",  NULL};
    static const char *const kinds[] = {"f64", "i64", "bool", "choice", NULL};
    static const uint32_t values[] = {TN_ATTR_F64, TN_ATTR_I64, TN_ATTR_BOOL,
                                      TN_ATTR_CHOICE};
    expect_object(reader, field, known);
    struct field name = member(field, "name"), doc = member(field, "doc");
    struct field type = member(field, "type"), choices = member(field, "choices");
    tn_attr_field *out = &function->fields[function->num_fields];
    *out = (tn_attr_field){.name = read_name(reader, &name),
                           .offset = function->num_fields * sizeof(int64_t)};
    out->doc = read_text(reader, &doc, 400, out->name);
    out->kind = values[read_choice(reader, &type, kinds, 0)];
    read_default(reader, field, out);
    read_limits(reader, field, function);
    if (choices.value && out->kind != TN_ATTR_CHOICE)
        refuse(reader, &choices, "got choices, expected none but with type \"choice\"");
    if (!reading(reader))
        return;
    if (ffi_function_find_field(function, out->name) >= 0 ||
        find_operand(function, out->name) >= 0 || find_name(function, out->name) >= 0)
        refuse(reader, &name, "\"%s\" is in use already", out->name);
    if (out->kind == TN_ATTR_I64 || out->kind == TN_ATTR_BOOL)
        add_name(reader, &name, function, out->name, NAME_ATTRIBUTE, function->num_fields);
    function->num_fields++;
}

// --- names -----------------------------------------------------------------------------

// Topological sort, depth first: appends a defined name behind all names that its
// expression uses. Meeting a name that is being visited is a cycle.
static void order_name(struct json_reader *reader, const struct field *field,
                       struct ffi_function *function, uint32_t index)
{
    struct ffi_name *name = &function->names[index];
    struct field here = member(field, name->text);
    if (name->state == 1)
        refuse(reader, &here, "\"%s\" needs itself, expected no circle", name->text);
    if (name->state || !reading(reader))
        return;
    name->state = 1;
    for (uint32_t i = 0; i < name->value.num_steps; i++) {
        const struct extent_step *step = &name->value.steps[i];
        if (step->what == 'v' && function->names[step->value].source == NAME_DEFINED)
            order_name(reader, field, function, (uint32_t)step->value);
    }
    name->state = 2;
    function->order[function->num_ordered++] = index;
}

// Defines "size", the number of elements of the leading axes "*".
static void add_size(struct json_reader *reader, const struct field *field,
                     struct ffi_function *function)
{
    struct field inputs = member(field, "inputs");
    if (find_name(function, "size") >= 0)
        refuse(reader, &inputs,
               "an axis is named \"size\", expected another name: beside "
               "\"*\" that is the number of its elements");
    add_name(reader, field, function, "size", NAME_SIZE, 0);
}

// "extents": names for expressions, in any order. Expressions may use later names, so all
// names are defined before any expression is read. order_name recurses at most MAX_NAMES
// deep.
static void ffi_function_read_defined(struct json_reader *reader, const struct field *field,
                                      struct ffi_function *function)
{
    struct field extents = member(field, "extents");
    uint32_t first = function->num_names;
    const char *key;
    json_t *value;
    if (!extents.value)
        return;
    if (!json_is_object(extents.value))
        refuse_type(reader, &extents, "an object of names and expressions");
    json_object_foreach((json_t *)extents.value, key, value)
    {
        struct field item = {&extents, key, 0, value};
        if (find_name(function, key) >= 0 || ffi_function_find_field(function, key) >= 0)
            refuse(reader, &item, "\"%.40s\" is in use already", key);
        const char *copy = reading(reader) ? arena_text(reader->arena, key) : NULL;
        if (copy)
            add_name(reader, &item, function, copy, NAME_DEFINED, 0);
    }
    for (uint32_t i = first; i < function->num_names && reading(reader); i++) {
        struct field item = member(&extents, function->names[i].text);
        read_extent(reader, &item, function, &function->names[i].value);
    }
    for (uint32_t i = first; i < function->num_names && reading(reader); i++)
        order_name(reader, &extents, function, i);
}

// --- conditions ------------------------------------------------------------------------

static const struct relation {
    const char *text;
    uint32_t accepted; // as of struct condition
} relations[] = {{">=", 6}, {"<=", 3}, {"==", 2}, {"!=", 5}, {">", 4}, {"<", 1}};

// Reads "k >= 1": two expressions with a relation between them.
static void read_condition(struct json_reader *reader, const struct field *field,
                           struct ffi_function *function)
{
    struct ffi_condition *condition = &function->conditions[function->num_conditions++];
    const char *text = read_text(reader, field, 200, NULL);
    const char *at = reading(reader) ? text + strcspn(text, "<>=!") : "";
    size_t which = 0;
    while (which < sizeof(relations) / sizeof(*relations) &&
           strncmp(at, relations[which].text, strlen(relations[which].text)) != 0)
        which++;
    if (which == sizeof(relations) / sizeof(*relations)) {
        refuse(reader, field,
               "expected a condition: two expressions with >=, <=, ==, !=, > "
               "or < between them");
        return;
    }
    char *left = reader_alloc(reader, (size_t)(at - text) + 1);
    struct problem problem = {0};
    if (!left)
        return;
    memcpy(left, text, (size_t)(at - text));
    for (char *end = left + (at - text); end > left && end[-1] == ' ';)
        *--end = 0;
    condition->text = text;
    condition->accepted = relations[which].accepted;
    if (extent_parse(reader->arena, left, find_name, function, &condition->left,
                     &problem) != TN_OK ||
        extent_parse(reader->arena, at + strlen(relations[which].text), find_name, function,
                     &condition->right, &problem) != TN_OK)
        refuse(reader, field, "%s", problem.text);
}

static void read_conditions(struct json_reader *reader, const struct field *field,
                            struct ffi_function *function)
{
    struct field list = member(field, "requires");
    size_t count = expect_array(reader, &list, MAX_CONDITIONS, true);
    for (size_t i = 0; i < count && reading(reader); i++) {
        struct field item = element(&list, i);
        read_condition(reader, &item, function);
    }
}

// --- work arrays -----------------------------------------------------------------------

static void read_work(struct json_reader *reader, const struct field *field,
                      struct ffi_function *function)
{
    static const char *const known[] = {"name", "dtype", "count", NULL};
    struct field list = member(field, "work");
    size_t count = expect_array(reader, &list, MAX_WORK, true);
    for (size_t i = 0; i < count && reading(reader); i++) {
        struct field item = element(&list, i);
        expect_object(reader, &item, known);
        struct field name = member(&item, "name"), dtype = member(&item, "dtype");
        struct field size = member(&item, "count");
        struct work_array *work = &function->work[function->num_work++];
        work->name = read_name(reader, &name);
        work->dtype = read_type(reader, &dtype, TN_DTYPE_NONE);
        read_extent(reader, &size, function, &work->count);
    }
}

// --- gradients -------------------------------------------------------------------------

static void read_gradients(struct json_reader *reader, const struct field *field,
                           struct ffi_function *function)
{
    struct field vjp = member(field, "vjp");
    const char *key;
    json_t *value;
    if (!vjp.value)
        return;
    if (!json_is_object(vjp.value))
        refuse_type(reader, &vjp, "an object of inputs and expressions");
    function->gradients = reader_alloc(reader, MAX_INPUTS * sizeof(*function->gradients));
    json_object_foreach((json_t *)vjp.value, key, value)
    {
        struct field item = {&vjp, key, 0, value};
        struct problem problem = {0};
        int index = find_operand(function, key);
        if (index < 0 || index >= (int)function->num_inputs)
            refuse(reader, &item, "got \"%.40s\", expected the name of an input", key);
        if (!reading(reader))
            return;
        function->has_zero_gradient[index] = json_is_null(value);
        if (json_is_null(value))
            continue;
        const char *text = read_text(reader, &item, 1000, NULL);
        if (reading(reader) && gradient_parse(reader->arena, text, function,
                                              &function->gradients[index], &problem))
            refuse(reader, &item, "%s", problem.text);
    }
}

// --- the function ----------------------------------------------------------------------

static void read_head(struct json_reader *reader, const struct field *field,
                      const char *pack, struct library *otherwise,
                      struct ffi_function *function)
{
    struct field name = member(field, "name"), doc = member(field, "doc");
    struct field revision = member(field, "revision"), safe = member(field, "thread_safe");
    function->name = read_name(reader, &name);
    if (strpbrk(function->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        refuse(reader, &name, "got \"%s\", expected small letters", function->name);
    long long number = read_integer(reader, &revision, 1, 9999, 1);
    char *id = reader_alloc(reader, strlen(pack) + strlen(function->name) + 16);
    if (!id)
        return;
    sprintf(id, "%s.%s/%lld", pack, function->name, number);
    function->id = id;
    function->doc = read_text(reader, &doc, 1000, function->name);
    struct field setup = member(field, "setup");
    function->library = read_library(reader, field);
    if (setup.value && !function->library)
        refuse(reader, &setup, "got set-up calls without a library beside them");
    if (!function->library)
        function->library = otherwise;
    function->is_serial = !read_bool(reader, &safe, true);
}

void read_function(struct json_reader *reader, const struct field *field, const char *pack,
                   struct library *otherwise, struct ffi_function *function)
{
    static const char *const known[] = {
        "name",   "doc",     "revision",   "symbol",   "dtype", "library",
        "remedy", "inputs",  "attributes", "outputs",  "work",  "extents",
        "args",   "returns", "fails",      "messages", "vjp",   "thread_safe",
        "setup",  "handles", "requires",   NULL};
    struct field attributes = member(field, "attributes");
    expect_object(reader, field, known);
    if (reading(reader))
        read_head(reader, field, pack, otherwise, function);
    if (reading(reader))
        ffi_function_read_symbols(reader, field, function);
    if (reading(reader))
        read_operands(reader, field, function);
    if (reading(reader))
        check_variants(reader, field, function);
    if (reading(reader) && function->lead == LEAD_WHOLE)
        add_size(reader, field, function);
    size_t count = expect_array(reader, &attributes, MAX_ATTRS, true);
    for (size_t i = 0; i < count && reading(reader); i++) {
        struct field item = element(&attributes, i);
        read_attribute(reader, &item, function);
    }
    if (reading(reader))
        ffi_function_read_defined(reader, field, function);
    if (reading(reader))
        read_conditions(reader, field, function);
    if (reading(reader))
        read_operand_axes(reader, field, function);
    if (reading(reader))
        check_outputs(reader, field, function);
    if (reading(reader))
        read_work(reader, field, function);
    if (reading(reader))
        read_handles(reader, field, function);
    if (reading(reader))
        read_arguments(reader, field, function);
    if (reading(reader))
        read_gradients(reader, field, function);
}
