// SPDX-License-Identifier: MIT
// Reading auxiliary functions (struct callee): set-up calls of a library, and the functions
// that create and destroy handles. Also converts numbers to C arguments and back.
#include <string.h>
#include <tenon/ops/reference.h>
#include "manifest.h"

enum {
    MAX_CALLEE_ARGS = 24,
    // Bits of the argument kinds of set-up calls, of `destroy` and of `create`.
    CONSTANTS = 1 << ARG_CONSTANT,
    OF_HANDLES = 1 << ARG_CONSTANT | 1 << ARG_HANDLE,
    OF_CREATE = OF_HANDLES | 1 << ARG_OPERAND | 1 << ARG_WORK | 1 << ARG_EXTENT |
                1 << ARG_STRIDE | 1 << ARG_ATTRIBUTE | 1 << ARG_CHARACTER,
};

// --- numbers ---------------------------------------------------------------------------

void number_store(union argument_value *value, tn_dtype type, int64_t integer, double real)
{
    switch (type) {
    case TN_F32:
        value->f32 = (float)real;
        break;
    case TN_F64:
        value->f64 = real;
        break;
    case TN_I64:
    case TN_U64:
        value->i = integer;
        break;
    case TN_I32:
    case TN_U32:
        value->i32 = (int32_t)integer;
        break;
    case TN_I16:
    case TN_U16:
        value->i16 = (int16_t)integer;
        break;
    default:
        value->i8 = (int8_t)integer;
    }
}

int64_t integer_load(const void *value, tn_dtype type)
{
    tn_tensor tensor = {(void *)value, {.dtype = type}};
    return tn_get_i64(&tensor, 0);
}

bool status_fails(enum failure fails, int64_t status)
{
    return fails == FAILS_NEGATIVE   ? status < 0
           : fails == FAILS_POSITIVE ? status > 0
                                     : status != 0;
}

// --- symbols ---------------------------------------------------------------------------

// "symbol": one for all variants, or an object with one for each variant's dtype.
static void ffi_callee_read_symbols(struct json_reader *reader, const struct field *field,
                                    const struct ffi_function *function, struct callee *out)
{
    struct field symbol = member(field, "symbol");
    for (uint32_t i = 0; i < out->num_variants && reading(reader); i++) {
        struct field one = symbol;
        if (json_is_object(symbol.value))
            one = member(&symbol, tn_dtype_name(function->variants[i].dtype));
        out->symbols[i] = read_text(reader, &one, 255, NULL);
    }
}

static void read_callee_arguments(struct json_reader *reader, const struct field *field,
                                  struct ffi_function *function, uint32_t kinds,
                                  const char *what, struct callee *out)
{
    struct field args = member(field, "args");
    out->num_args = (uint32_t)expect_array(reader, &args, MAX_CALLEE_ARGS, true);
    out->args = reader_alloc(reader, (out->num_args + 1) * sizeof(*out->args));
    for (uint32_t i = 0; i < out->num_args && reading(reader); i++) {
        struct field item = element(&args, i);
        read_argument(reader, &item, function, kinds, what, &out->args[i]);
    }
}

static void ffi_callee_read_status(struct json_reader *reader, const struct field *field,
                                   const struct ffi_function *function,
                                   enum returns otherwise, struct callee *out)
{
    static const char *const known[] = {"kind", "type", NULL};
    static const char *const kinds[] = {"void", "status", "handle", NULL};
    static const enum returns values[] = {RETURNS_VOID, RETURNS_STATUS, RETURNS_HANDLE};
    static const char *const ways[] = {"nonzero", "negative", "positive", NULL};
    struct field returns = member(field, "returns"), fails = member(field, "fails");
    out->returns = otherwise;
    out->fails = (enum failure)read_choice(reader, &fails, ways, FAILS_NONZERO);
    if (!returns.value)
        return;
    expect_object(reader, &returns, known);
    struct field kind = member(&returns, "kind");
    out->returns = values[read_choice(reader, &kind, kinds, -1)];
    if (reading(reader) && out->returns == RETURNS_HANDLE && otherwise != RETURNS_HANDLE)
        refuse(reader, &kind, "got \"handle\", expected void or status");
    if (reading(reader) && out->returns == RETURNS_STATUS)
        out->return_type = read_integer_dtype(reader, &returns, function);
}

// `kinds` and `what` as in read_argument. `otherwise` is the kind of "returns" when absent.
static void read_callee(struct json_reader *reader, const struct field *field,
                        struct ffi_function *function, uint32_t kinds, const char *what,
                        enum returns otherwise, struct callee *out)
{
    static const char *const known[] = {"symbol", "args", "returns", "fails", NULL};
    uint32_t n = function->num_variants;
    expect_object(reader, field, known);
    out->num_variants = n;
    out->symbols = reader_alloc(reader, n * sizeof(*out->symbols));
    out->addresses = reader_alloc(reader, n * sizeof(*out->addresses));
    out->cifs = reader_alloc(reader, n * sizeof(*out->cifs));
    if (reading(reader))
        ffi_callee_read_symbols(reader, field, function, out);
    if (reading(reader))
        read_callee_arguments(reader, field, function, kinds, what, out);
    if (reading(reader))
        ffi_callee_read_status(reader, field, function, otherwise, out);
}

// --- set-up calls ----------------------------------------------------------------------

void read_setups(struct json_reader *reader, const struct field *object,
                 struct library *library)
{
    struct variant variant = {.dtype = TN_F64}; // T is the type of a real without one
    struct ffi_function no_function = {.variants = &variant, .num_variants = 1};
    struct field setup = member(object, "setup");
    size_t count = expect_array(reader, &setup, MAX_SETUPS, true);
    for (size_t i = 0; i < count && reading(reader); i++) {
        struct field item = element(&setup, i);
        struct callee *callee = &library->setups[i];
        read_callee(reader, &item, &no_function, CONSTANTS, "a set-up call", RETURNS_VOID,
                    callee);
        for (uint32_t k = 0; k < callee->num_args && reading(reader); k++)
            if (callee->args[k].type == TN_DTYPE_NONE)
                callee->args[k].type = TN_F64;
        if (reading(reader))
            callee_bind(callee, reader->arena, NULL, reader->problem);
    }
    library->num_setups = (uint32_t)count;
}

// --- handles ---------------------------------------------------------------------------

static bool has_kind(const struct callee *callee, enum argument_kind kind)
{
    for (uint32_t i = 0; i < callee->num_args; i++)
        if (callee->args[i].kind == kind)
            return true;
    return false;
}

// "create" returns the handle, or writes the handle through a pointer argument.
static void read_create(struct json_reader *reader, const struct field *field,
                        struct ffi_function *function, struct handle *out)
{
    struct field create = member(field, "create");
    read_callee(reader, &create, function, OF_CREATE, "creating a handle", RETURNS_HANDLE,
                &out->create);
    if (!reading(reader))
        return;
    uint32_t own = (uint32_t)(out - function->handles);
    bool is_written = false;
    for (uint32_t i = 0; i < out->create.num_args; i++) {
        struct argument *arg = &out->create.args[i];
        bool is_own = arg->kind == ARG_HANDLE && arg->index == own;
        arg->by_pointer |= is_own;
        is_written |= is_own;
    }
    if (is_written && out->create.returns == RETURNS_HANDLE)
        out->create.returns = RETURNS_VOID;
    if (!is_written && out->create.returns != RETURNS_HANDLE)
        refuse(reader, &create,
               "nothing gives the handle \"%s\", expected an argument of kind \"handle\" "
               "that names it, or \"returns\": {\"kind\": \"handle\"}",
               out->name);
    out->is_per_item =
        has_kind(&out->create, ARG_OPERAND) || has_kind(&out->create, ARG_WORK);
}

// "destroy" without "args" takes the handle alone.
static void read_destroy(struct json_reader *reader, const struct field *field,
                         struct ffi_function *function, struct handle *out)
{
    struct field destroy = member(field, "destroy"), args = member(&destroy, "args");
    read_callee(reader, &destroy, function, OF_HANDLES, "destroying a handle", RETURNS_VOID,
                &out->destroy);
    if (!reading(reader) || args.value)
        return;
    out->destroy.num_args = 1;
    out->destroy.args[0] = (struct argument){
        .kind = ARG_HANDLE, .type = TN_U64, .index = (uint32_t)(out - function->handles)};
}

void read_handles(struct json_reader *reader, const struct field *field,
                  struct ffi_function *function)
{
    static const char *const known[] = {"name",   "create",      "destroy",
                                        "remedy", "thread_safe", NULL};
    struct field list = member(field, "handles");
    size_t count = expect_array(reader, &list, MAX_HANDLES, true);
    for (size_t i = 0; i < count && reading(reader); i++) {
        struct field item = element(&list, i), name = member(&item, "name");
        struct field remedy = member(&item, "remedy"), safe = member(&item, "thread_safe");
        struct handle *handle = &function->handles[i];
        expect_object(reader, &item, known);
        handle->name = read_name(reader, &name);
        for (size_t k = 0; k < i && reading(reader); k++)
            if (strcmp(function->handles[k].name, handle->name) == 0)
                refuse(reader, &name, "two handles are named \"%s\", expected one",
                       handle->name);
        handle->remedy = remedy.value ? read_text(reader, &remedy, 200, NULL) : NULL;
        handle->is_serial = !read_bool(reader, &safe, true);
        function->num_handles = (uint32_t)i + 1; // arguments may name the handle itself
        if (reading(reader))
            read_create(reader, &item, function, handle);
        if (reading(reader))
            read_destroy(reader, &item, function, handle);
    }
}
