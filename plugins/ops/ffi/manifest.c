// SPDX-License-Identifier: MIT
// A manifest as a whole: the plugin's identity and its functions.
#include "manifest.h"

#include <stdlib.h>
#include <string.h>

static void check_id(struct reader *reader, const struct field *field, const char *id)
{
    bool good =
        strchr(id, '.') && id[strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == 0;
    for (const char *part = id; good && part; part = strchr(part, '.')) {
        part += *part == '.';
        good = *part && *part != '.';
    }
    if (!good)
        refuse(reader, field,
               "got \"%s\", expected parts of [a-z0-9-] between dots, as com.acme.blas",
               id);
}

static void check_version(struct reader *reader, const struct field *field,
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

static void check_pack(struct reader *reader, const struct field *field, const char *pack)
{
    if (strspn(pack, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != strlen(pack) ||
        strchr(".-", pack[0]))
        refuse(reader, field, "got \"%s\", expected a name of [a-z0-9._-]", pack);
}

static void read_functions(struct reader *reader, const struct field *root,
                           const char *name, struct pack *pack)
{
    struct field list = member(root, "functions");
    struct library *library = read_library(reader, root);
    size_t count = expect_array(reader, &list, MAX_FUNCTIONS, false);
    pack->functions = take(reader, (count + 1) * sizeof(*pack->functions));
    for (size_t i = 0; i < count && reading(reader); i++) {
        struct field item = element(&list, i), id = member(&item, "name");
        struct function *function = take(reader, sizeof(*function));
        if (!function)
            return;
        function->pack = pack;
        read_function(reader, &item, name, library, function);
        struct field place = member(&item, "library");
        if (reading(reader) && !function->library)
            refuse(reader, &place, "neither the function nor the pack names a library");
        for (size_t k = 0; k < i && reading(reader); k++)
            if (strcmp(pack->functions[k]->id, function->id) == 0)
                refuse(reader, &id, "two functions are %s", function->id);
        pack->functions[i] = function;
    }
    pack->num_functions = (uint32_t)count;
    if (reading(reader) && count == 0)
        refuse(reader, &list, "no functions");
}

static void read_root(struct reader *reader, const struct field *root, struct pack *pack)
{
    static const char *const known[] = {"format", "id",        "version", "vendor",
                                        "doc",    "license",   "pack",    "library",
                                        "remedy", "functions", NULL};
    expect_object(reader, root, known);
    struct field format = member(root, "format"), id = member(root, "id");
    struct field version = member(root, "version"), vendor = member(root, "vendor");
    struct field name = member(root, "pack");
    if (reading(reader) && read_integer(reader, &format, 1, 1, 0) != 1)
        refuse(reader, &format, "got nothing, expected the format's number, 1");
    pack->id = read_text(reader, &id, 63, NULL);
    pack->version = read_text(reader, &version, 31, NULL);
    pack->vendor = read_text(reader, &vendor, 63, NULL);
    const char *text = read_text(reader, &name, 48, NULL);
    if (reading(reader))
        check_id(reader, &id, pack->id);
    if (reading(reader))
        check_version(reader, &version, pack->version);
    if (reading(reader))
        check_pack(reader, &name, text);
    if (reading(reader))
        read_functions(reader, root, text, pack);
}

tn_status pack_read(const char *text, size_t size, const char *path, struct pack *out,
                    struct problem *problem)
{
    json_error_t error = {0};
    *out = (struct pack){0};
    if (size > MANIFEST_MAX_SIZE)
        return problem_set(problem, TN_ERR_ARGUMENT, "%s: %zu bytes, at most %d", path,
                           size, MANIFEST_MAX_SIZE);
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        return problem_set(problem, TN_ERR_ARGUMENT, "%s:%d: %s", path, error.line,
                           error.text[0] ? error.text : "out of memory");
    struct reader reader = {&out->arena, problem, path, text, size};
    struct field root = {NULL, NULL, 0, json};
    read_root(&reader, &root, out);
    json_decref(json);
    for (uint32_t i = 0; i < out->num_functions && problem->status == TN_OK; i++)
        function_bind(out->functions[i], problem);
    if (problem->status != TN_OK)
        pack_finish(out);
    return problem->status;
}

void pack_finish(struct pack *pack)
{
    for (uint32_t i = 0; i < pack->num_functions; i++)
        if (pack->functions[i])
            function_unbind(pack->functions[i]);
    arena_finish(&pack->arena);
    *pack = (struct pack){0};
}
