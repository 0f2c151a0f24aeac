// SPDX-License-Identifier: MIT
// Parses plugin.json, which is untrusted: sizes, depth, types and names are checked.
#include "manifest.h"

#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <string.h>
#include "names.h"

// State of one parse. The first failure stays in `status`; the read_ functions do nothing
// after it.
struct manifest_reader {
    struct manifest *out;
    const char *path;
    struct reason *reason;
    tn_status status;
};

static void manifest_refuse(struct manifest_reader *reader, const char *format, ...)
    PRINTF_LIKE(2, 3);
static void manifest_refuse(struct manifest_reader *reader, const char *format, ...)
{
    if (reader->status != TN_OK)
        return;
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    reader->status = reason_record(reader->reason, TN_ERR_REFUSED, REASON_MANIFEST,
                                   reader->path, "%s: %s", reader->path, text);
}

static const char *manifest_type_name(const json_t *value)
{
    if (!value)
        return "nothing";
    static const char *const names[] = {"an object", "an array", "a string", "an integer",
                                        "a real",    "true",     "false",    "null"};
    return names[json_typeof(value)];
}

// --- JSON values -----------------------------------------------------------------------

// Cleared memory of the manifest's arena; NULL after a failure.
static void *manifest_take(struct manifest_reader *reader, size_t size)
{
    void *memory = reader->status == TN_OK ? arena_alloc(&reader->out->arena, size) : NULL;
    if (!memory && reader->status == TN_OK)
        reader->status = TN_ERR_MEMORY;
    return memory;
}

// Copies the text under `key`; "" after a failure, so that the caller needs no check.
static const char *manifest_read_text(struct manifest_reader *reader, const json_t *object,
                                      const char *key, size_t max_size)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value)) {
        manifest_refuse(reader, "\"%s\": got %s, expected a string", key,
                        manifest_type_name(value));
        return "";
    }
    size_t size = json_string_length(value);
    if (size > max_size) {
        manifest_refuse(reader, "\"%s\": %zu bytes, at most %zu", key, size, max_size);
        return "";
    }
    char *copy = manifest_take(reader, size + 1);
    if (!copy)
        return "";
    memcpy(copy, json_string_value(value), size);
    return copy;
}

static uint64_t manifest_read_number(struct manifest_reader *reader, const json_t *object,
                                     const char *key, uint64_t max)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) {
        manifest_refuse(reader, "\"%s\": got %s, expected an integer", key,
                        manifest_type_name(value));
        return 0;
    }
    json_int_t number = json_integer_value(value);
    if (number < 0 || (uint64_t)number > max) {
        manifest_refuse(reader, "\"%s\": %" JSON_INTEGER_FORMAT ", expected 0 .. %" PRIu64,
                        key, number, max);
        return 0;
    }
    return (uint64_t)number;
}

// The array under `key`; NULL and *out_count 0 when the key is absent.
static const json_t *manifest_read_list(struct manifest_reader *reader, const json_t *root,
                                        const char *key, uint32_t *out_count)
{
    const json_t *list = json_object_get(root, key);
    *out_count = 0;
    if (!list)
        return NULL;
    if (!json_is_array(list)) {
        manifest_refuse(reader, "\"%s\": got %s, expected an array", key,
                        manifest_type_name(list));
        return NULL;
    }
    if (json_array_size(list) > MANIFEST_MAX_RECORDS) {
        manifest_refuse(reader, "\"%s\": %zu elements, at most %d", key,
                        json_array_size(list), MANIFEST_MAX_RECORDS);
        return NULL;
    }
    *out_count = (uint32_t)json_array_size(list);
    return list;
}

static const json_t *manifest_read_item(struct manifest_reader *reader, const json_t *list,
                                        const char *key, uint32_t index)
{
    const json_t *item = json_array_get(list, index);
    if (!json_is_object(item)) {
        manifest_refuse(reader, "\"%s\"[%" PRIu32 "]: got %s, expected an object", key,
                        index, manifest_type_name(item));
        return NULL;
    }
    return item;
}

// --- parts of the manifest -------------------------------------------------------------

static void read_identity(struct manifest_reader *reader, const json_t *root)
{
    struct manifest *out = reader->out;
    out->id = manifest_read_text(reader, root, "id", 63);
    if (!id_valid(out->id))
        manifest_refuse(reader, "\"id\": '%s', expected parts of [a-z0-9-] between dots",
                        out->id);
    out->version = manifest_read_text(reader, root, "version", 31);
    if (!version_valid(out->version))
        manifest_refuse(reader, "\"version\": '%s', expected a semantic version",
                        out->version);
    out->vendor = manifest_read_text(reader, root, "vendor", 63);
    const json_t *abi = json_object_get(root, "abi");
    if (!json_is_object(abi))
        manifest_refuse(reader, "\"abi\": got %s, expected an object",
                        manifest_type_name(abi));
    out->abi.major = (uint32_t)manifest_read_number(reader, abi, "major", UINT32_MAX);
    out->abi.minor_min =
        (uint32_t)manifest_read_number(reader, abi, "minor_min", UINT32_MAX);
    out->abi.minor_max =
        (uint32_t)manifest_read_number(reader, abi, "minor_max", UINT32_MAX);
    if (out->abi.minor_min > out->abi.minor_max)
        manifest_refuse(reader,
                        "\"abi\": minor_min %" PRIu32 " is above minor_max %" PRIu32,
                        out->abi.minor_min, out->abi.minor_max);
    out->sanitizer = (uint32_t)manifest_read_number(reader, root, "sanitizer", UINT32_MAX);
}

static void manifest_read_file(struct manifest_reader *reader, const json_t *item,
                               struct manifest_file *file)
{
    file->name = manifest_read_text(reader, item, "name", 255);
    if (!file_name_valid(file->name))
        manifest_refuse(reader,
                        "\"files\": the name '%s' does not lie plainly in the directory",
                        file->name);
    file->size = manifest_read_number(reader, item, "size", INT64_MAX);
    const char *hex = manifest_read_text(reader, item, "sha256", 64);
    size_t size = 0;
    if (sodium_hex2bin(file->sha256, 32, hex, strlen(hex), NULL, &size, NULL) || size != 32)
        manifest_refuse(reader, "\"files\": '%s': sha256 is not 64 hexadecimal digits",
                        file->name);
}

static void read_files(struct manifest_reader *reader, const json_t *root)
{
    struct manifest *out = reader->out;
    uint32_t count;
    const json_t *list = manifest_read_list(reader, root, "files", &count);
    out->files = manifest_take(reader, (count + 1) * sizeof(*out->files));
    for (uint32_t i = 0; i < count && reader->status == TN_OK; i++)
        manifest_read_file(reader, manifest_read_item(reader, list, "files", i),
                           &out->files[i]);
    out->num_files = count;
    out->file = manifest_read_text(reader, root, "file", 255);
    if (reader->status == TN_OK && !manifest_object(out))
        manifest_refuse(reader, "\"file\": '%s' is not among \"files\"", out->file);
}

static void read_backends(struct manifest_reader *reader, const json_t *root)
{
    struct manifest *out = reader->out;
    uint32_t count;
    const json_t *list = manifest_read_list(reader, root, "backends", &count);
    out->backends = manifest_take(reader, (count + 1) * sizeof(*out->backends));
    out->backend_names = manifest_take(reader, (count + 1) * sizeof(*out->backend_names));
    for (uint32_t i = 0; i < count && reader->status == TN_OK; i++) {
        const json_t *item = manifest_read_item(reader, list, "backends", i);
        const json_t *flag = json_object_get(item, "default");
        if (flag && !json_is_boolean(flag))
            manifest_refuse(reader, "\"default\": got %s, expected true or false",
                            manifest_type_name(flag));
        out->backends[i].is_default = json_is_true(flag);
        out->backends[i].name = manifest_read_text(reader, item, "name", 63);
        out->backend_names[i] = out->backends[i].name;
    }
    out->num_backends = count;
}

static void read_primitives(struct manifest_reader *reader, const json_t *root)
{
    struct manifest *out = reader->out;
    uint32_t count;
    const json_t *list = manifest_read_list(reader, root, "primitives", &count);
    out->primitives = manifest_take(reader, (count + 1) * sizeof(*out->primitives));
    out->primitive_ids = manifest_take(reader, (count + 1) * sizeof(*out->primitive_ids));
    for (uint32_t i = 0; i < count && reader->status == TN_OK; i++) {
        const json_t *item = manifest_read_item(reader, list, "primitives", i);
        if (json_object_get(item, "role"))
            out->primitives[i].role = manifest_read_text(reader, item, "role", 127);
        out->primitives[i].id = manifest_read_text(reader, item, "id", 127);
        out->primitive_ids[i] = out->primitives[i].id;
    }
    out->num_primitives = count;
}

static void read_kernel(struct manifest_reader *reader, const json_t *item,
                        struct manifest_kernel *kernel, const char **out_text)
{
    kernel->primitive = manifest_read_text(reader, item, "primitive", 127);
    kernel->family = manifest_read_text(reader, item, "family", 127);
    kernel->name = manifest_read_text(reader, item, "name", 127);
    size_t size =
        strlen(kernel->primitive) + strlen(kernel->family) + strlen(kernel->name) + 3;
    char *text = manifest_take(reader, size);
    if (text)
        snprintf(text, size, "%s %s %s", kernel->primitive, kernel->family, kernel->name);
    *out_text = text;
}

static void read_kernels(struct manifest_reader *reader, const json_t *root)
{
    struct manifest *out = reader->out;
    uint32_t count;
    const json_t *list = manifest_read_list(reader, root, "kernels", &count);
    out->kernels = manifest_take(reader, (count + 1) * sizeof(*out->kernels));
    out->kernel_texts = manifest_take(reader, (count + 1) * sizeof(*out->kernel_texts));
    for (uint32_t i = 0; i < count && reader->status == TN_OK; i++)
        read_kernel(reader, manifest_read_item(reader, list, "kernels", i),
                    &out->kernels[i], &out->kernel_texts[i]);
    out->num_kernels = count;
}

static void read_interfaces(struct manifest_reader *reader, const json_t *root)
{
    struct manifest *out = reader->out;
    uint32_t count;
    const json_t *list = manifest_read_list(reader, root, "interfaces", &count);
    out->interfaces = manifest_take(reader, (count + 1) * sizeof(*out->interfaces));
    for (uint32_t i = 0; i < count && reader->status == TN_OK; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_string(item) || json_string_length(item) > 127) {
            manifest_refuse(reader,
                            "\"interfaces\"[%" PRIu32 "]: got %s, expected a short string",
                            i, manifest_type_name(item));
            return;
        }
        out->interfaces[i] = arena_strdup(&out->arena, json_string_value(item));
        if (!out->interfaces[i])
            reader->status = TN_ERR_MEMORY;
    }
}

// "INTERFACE KIND VALUE" in the arena; "" after a failure.
static const char *selector_text(struct manifest_reader *reader,
                                 const struct manifest_selector *selector)
{
    size_t size =
        strlen(selector->interface) + strlen(selector->kind) + strlen(selector->value) + 3;
    char *text = manifest_take(reader, size);
    if (text)
        snprintf(text, size, "%s %s %s", selector->interface, selector->kind,
                 selector->value);
    return text ? text : "";
}

static void read_selectors(struct manifest_reader *reader, const json_t *root)
{
    struct manifest *out = reader->out;
    uint32_t count;
    const json_t *list = manifest_read_list(reader, root, "selectors", &count);
    out->selectors = manifest_take(reader, (count + 1) * sizeof(*out->selectors));
    out->selector_texts = manifest_take(reader, (count + 1) * sizeof(*out->selector_texts));
    for (uint32_t i = 0; i < count && reader->status == TN_OK; i++) {
        const json_t *item = manifest_read_item(reader, list, "selectors", i);
        struct manifest_selector *selector = &out->selectors[i];
        selector->interface = manifest_read_text(reader, item, "interface", 127);
        selector->kind = manifest_read_text(reader, item, "kind", 31);
        selector->value = manifest_read_text(reader, item, "value", 127);
        if (!selector_valid(selector->kind, selector->value))
            manifest_refuse(reader,
                            "\"selectors\"[%" PRIu32
                            "]: '%s' '%s', expected a kind of [a-z0-9-] and "
                            "a value, which for \"magic\" is hexadecimal",
                            i, selector->kind, selector->value);
        out->selector_texts[i] = selector_text(reader, selector);
    }
    out->num_selectors = count;
}

// --- the document ----------------------------------------------------------------------

// The index of the quotation mark that ends the string which begins behind `at`, or `size`.
static size_t end_of_string(const char *text, size_t size, size_t at)
{
    while (++at < size && text[at] != '"')
        if (text[at] == '\\')
            at++;
    return at;
}

// Depth of nesting, outside strings. Computed before the recursive parser sees the text.
static int manifest_depth_of(const char *text, size_t size)
{
    int depth = 0, deepest = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '"')
            i = end_of_string(text, size, i);
        else if (c == '{' || c == '[')
            deepest = ++depth > deepest ? depth : deepest;
        else if (c == '}' || c == ']')
            depth--;
    }
    return deepest;
}

static void manifest_read_root(struct manifest_reader *reader, const json_t *root)
{
    if (!json_is_object(root)) {
        manifest_refuse(reader, "got %s, expected an object", manifest_type_name(root));
        return;
    }
    uint64_t format = manifest_read_number(reader, root, "format", UINT32_MAX);
    if (format != MANIFEST_FORMAT)
        manifest_refuse(reader, "format %" PRIu64 ", this version reads %d", format,
                        MANIFEST_FORMAT);
    if (reader->status == TN_OK)
        read_identity(reader, root);
    if (reader->status == TN_OK)
        read_files(reader, root);
    if (reader->status == TN_OK)
        read_backends(reader, root);
    if (reader->status == TN_OK)
        read_primitives(reader, root);
    if (reader->status == TN_OK)
        read_kernels(reader, root);
    if (reader->status == TN_OK)
        read_interfaces(reader, root);
    if (reader->status == TN_OK)
        read_selectors(reader, root);
}

// Jansson reports some failed allocations as syntax errors, and cuts strings short at
// others. So enough memory for the whole text is allocated and freed first, and a text is
// refused only when parsing fails twice. NULL with *out_status TN_OK: the text is refused,
// as `error` says.
static json_t *parse_json(const char *text, size_t size, json_error_t *error,
                          tn_status *out_status)
{
    void *room = mem_alloc(32 * size + 65536); // of at most MANIFEST_MAX_SIZE bytes of text
    *out_status = room ? TN_OK : TN_ERR_MEMORY;
    mem_free(room);
    json_t *root = NULL;
    for (int tries = 0; room && !root && tries < 2; tries++)
        root = json_loadb(text, size, JSON_REJECT_DUPLICATES, error);
    if (room && !root &&
        (!error->text[0] || json_error_code(error) == json_error_out_of_memory))
        *out_status = fail_memory(size);
    return root;
}

tn_status manifest_parse(const char *text, size_t size, const char *path,
                         struct manifest *out, struct reason *reason)
{
    struct manifest made = {0};
    struct manifest_reader reader = {&made, path, reason, TN_OK};
    json_t *root = NULL;
    json_error_t error = {0};
    if (size > MANIFEST_MAX_SIZE)
        manifest_refuse(&reader, "%zu bytes, at most %" PRIu64, size, MANIFEST_MAX_SIZE);
    else if (manifest_depth_of(text, size) > MANIFEST_MAX_DEPTH)
        manifest_refuse(&reader, "nested more than %d deep", MANIFEST_MAX_DEPTH);
    else if (memchr(text, 0, size)) // Jansson ignores a zero byte after a number
        manifest_refuse(&reader, "a byte of 0, expected JSON");
    else
        root = parse_json(text, size, &error, &reader.status);
    if (root)
        manifest_read_root(&reader, root);
    else if (reader.status == TN_OK)
        manifest_refuse(&reader, "line %d: %s", error.line, error.text);
    json_decref(root);
    if (reader.status != TN_OK) {
        manifest_finish(&made);
        return reader.status;
    }
    *out = made;
    return TN_OK;
}

void manifest_finish(struct manifest *manifest)
{
    arena_finish(&manifest->arena);
    *manifest = (struct manifest){0};
}

const struct manifest_file *manifest_object(const struct manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->num_files; i++)
        if (strcmp(manifest->files[i].name, manifest->file) == 0)
            return &manifest->files[i];
    return NULL;
}
