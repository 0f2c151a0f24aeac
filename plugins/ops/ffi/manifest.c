// SPDX-License-Identifier: MIT
// Reading a whole manifest: the plugin's identity and its functions.
#include "manifest.h"

#include <string.h>
#include "rules.h"

static void ffi_manifest_check_id(struct json_reader *reader, const struct field *field,
                                  const char *id)
{
    bool good =
        strchr(id, '.') && id[strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == 0;
    for (const char *part = id; good && part; part = strchr(part, '.')) {
        part += *part == '.';
        good = *part && *part != '.';
    }
    if (strcmp(id, "org.tenon.ffi") == 0)
        refuse(reader, field, "got \"%s\", expected an id of the pack's own", id);
    if (!good)
        refuse(reader, field,
               "got \"%s\", expected parts of [a-z0-9-] between dots, as com.acme.blas",
               id);
}

static void check_version(struct json_reader *reader, const struct field *field,
                          const char *version)
{
    const char *at = version;
    for (int i = 0; i < 3 && at; i++) {
        size_t digits = strspn(at, "0123456789");
        at = digits && (i == 2 || at[digits] == '.') ? at + digits + (i < 2) : NULL;
    }
    if (!at || (*at && *at != '-' && *at != '+'))
        refuse(reader, field, "got \"%s\", expected a semantic version, as 1.0.0", version);
}

static void check_pack(struct json_reader *reader, const struct field *field,
                       const char *pack)
{
    if (strspn(pack, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != strlen(pack) ||
        strchr(".-", pack[0]))
        refuse(reader, field, "got \"%s\", expected a name of [a-z0-9._-]", pack);
}

static void read_functions(struct json_reader *reader, const struct field *root,
                           const char *name, struct ffi_pack *pack)
{
    struct field list = member(root, "functions");
    struct library *library = read_library(reader, root);
    size_t count = expect_array(reader, &list, MAX_FUNCTIONS, false);
    pack->functions = reader_alloc(reader, (count + 1) * sizeof(*pack->functions));
    for (size_t i = 0; i < count && reading(reader); i++) {
        struct field item = element(&list, i), id = member(&item, "name");
        struct ffi_function *function = reader_alloc(reader, sizeof(*function));
        if (!function)
            return;
        function->pack = pack;
        read_function(reader, &item, name, library, function);
        struct field own = member(&item, "library");
        if (reading(reader) && !function->library)
            refuse(reader, &own, "got nothing, expected a library here or in the pack");
        for (size_t k = 0; k < i && reading(reader); k++)
            if (strcmp(pack->functions[k]->id, function->id) == 0)
                refuse(reader, &id, "two functions are %s, expected one", function->id);
        pack->functions[i] = function;
    }
    pack->num_functions = (uint32_t)count;
    if (reading(reader) && count == 0)
        refuse(reader, &list, "got an empty list, expected functions");
}

static void ffi_manifest_read_root(struct json_reader *reader, const struct field *root,
                                   struct ffi_pack *pack)
{
    static const char *const known[] = {"format", "id",        "version", "vendor",
                                        "doc",    "license",   "pack",    "library",
                                        "remedy", "functions", "setup",   NULL};
    expect_object(reader, root, known);
    struct field format = member(root, "format"), id = member(root, "id");
    struct field version = member(root, "version"), vendor = member(root, "vendor");
    struct field name = member(root, "pack"), doc = member(root, "doc");
    struct field license = member(root, "license");
    if (reading(reader) && read_integer(reader, &format, 1, 1, 0) != 1)
        refuse(reader, &format, "got nothing, expected the format's number, 1");
    pack->id = read_text(reader, &id, 63, NULL);
    pack->version = read_text(reader, &version, 31, NULL);
    pack->vendor = read_text(reader, &vendor, 63, NULL);
    read_text(reader, &doc, 1000, "");
    read_text(reader, &license, 100, "");
    const char *text = read_text(reader, &name, 48, NULL);
    if (reading(reader))
        ffi_manifest_check_id(reader, &id, pack->id);
    if (reading(reader))
        check_version(reader, &version, pack->version);
    if (reading(reader))
        check_pack(reader, &name, text);
    if (reading(reader))
        read_functions(reader, root, text, pack);
}

void pack_init(struct ffi_pack *pack, const struct rules *slots, uint64_t num_slots)
{
    *pack = (struct ffi_pack){.slots = slots, .num_slots = num_slots};
    pthread_mutex_init(&pack->serial, NULL);
}

// Looks up all symbols of a function. A failure has the line of the missing library or
// symbol.
static void ffi_manifest_find_symbols(struct json_reader *reader, const struct field *root,
                                      struct ffi_function *function, uint32_t index)
{
    struct field list = member(root, "functions"), item = element(&list, index);
    struct field own = member(&item, "library"), shared = member(root, "library");
    struct field symbol = member(&item, "symbol");
    for (uint32_t i = 0; i < function->num_variants && reading(reader); i++) {
        struct field one = member(&symbol, tn_dtype_name(function->variants[i].dtype));
        struct problem problem = {0};
        void *address;
        if (variant_find(function, i, &address, &problem) == TN_OK)
            continue;
        const struct field *missing = json_is_object(symbol.value) ? &one : &symbol;
        if (!function->library->handle)
            missing = own.value ? &own : &shared;
        refuse(reader, missing, "%s", problem.text);
    }
}

// A NUL is refused here, because Jansson skips one behind a number.
static tn_status refuse_nul(const char *path, const char *text, const char *nul,
                            struct problem *problem)
{
    int line = 1;
    for (const char *c = text; c < nul; c++)
        line += *c == '\n';
    return problem_set(problem, TN_ERR_ARGUMENT, "%s:%d: got a byte of 0, expected JSON",
                       path, line);
}

tn_status pack_read(const char *text, size_t size, const char *path, bool finds_symbols,
                    struct ffi_pack *out, struct problem *problem)
{
    static const struct rules no_rules; // of functions without slots, which are never
                                        // called
    json_error_t error = {0};
    if (size > MANIFEST_MAX_SIZE)
        return problem_set(problem, TN_ERR_ARGUMENT,
                           "%s: got %zu bytes, expected at most %d", path, size,
                           MANIFEST_MAX_SIZE);
    const char *nul = memchr(text, 0, size);
    if (nul)
        return refuse_nul(path, text, nul, problem);
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        return problem_set(problem, TN_ERR_ARGUMENT, "%s:%d: %s", path, error.line,
                           error.text[0] ? error.text : "out of memory");
    struct json_reader reader = {&out->arena, problem, path, text, size};
    struct field root = {NULL, NULL, 0, json};
    ffi_manifest_read_root(&reader, &root, out);
    for (uint32_t i = 0; i < out->num_functions && problem->status == TN_OK; i++)
        function_bind(out->functions[i], i < out->num_slots ? &out->slots[i] : &no_rules,
                      problem);
    for (uint32_t i = 0;
         finds_symbols && i < out->num_functions && problem->status == TN_OK; i++)
        ffi_manifest_find_symbols(&reader, &root, out->functions[i], i);
    json_decref(json);
    return problem->status;
}

void pack_finish(struct ffi_pack *pack)
{
    arena_finish(&pack->arena);
    pthread_mutex_destroy(&pack->serial);
    pack->functions = NULL;
    pack->num_functions = 0;
}
