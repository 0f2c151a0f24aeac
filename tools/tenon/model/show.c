// SPDX-License-Identifier: MIT
// tenon model show: what is in a model's file.
#include "../../lm/given.h"
#include "model.h"
#include "programs/lm.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static json_int_t model_show_integer_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

// A number of parameters: "134.5 M". Returns `text`.
static const char *count_text(json_int_t count, char text[SIZE_TEXT])
{
    static const char *const units[] = {"", " k", " M", " G", " T"};
    double value = (double)count;
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < COUNT(units); unit++)
        value /= 1000;
    snprintf(text, SIZE_TEXT, "%.*f%s", unit ? 1 : 0, value, units[unit]);
    return text;
}

// A value of metadata as one line, shortened; free() it.
static char *model_show_value_text(const json_t *value)
{
    if (json_is_string(value))
        return strdup(json_string_value(value));
    const json_t *first = json_object_get(value, "first");
    char *text =
        json_dumps(first ? first : value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    json_int_t count = model_show_integer_of(value, "list");
    if (!text || !first || count <= (json_int_t)json_array_size(first))
        return text;
    json_t *all =
        json_sprintf("%.*s, ...] (%lld)", (int)strlen(text) - 1, text, (long long)count);
    free(text);
    text = all ? strdup(json_string_value(all)) : NULL;
    json_decref(all);
    return text;
}

// Appends a row of what and value.
static void model_show_add_row(json_t *rows, const char *what, const char *value)
{
    json_array_append_new(rows, json_pack("{s:s, s:s}", "what", what, "value", value));
}

static void model_show_add_tokenizer(json_t *rows, const json_t *tokenizer)
{
    const char *pre = text_of(tokenizer, "pre");
    json_t *text = json_sprintf(
        "%s%s%s%s, %lld tokens%s", text_of(tokenizer, "model"), *pre ? " (" : "", pre,
        *pre ? ")" : "", (long long)model_show_integer_of(tokenizer, "tokens"),
        json_is_true(json_object_get(tokenizer, "chat")) ? ", with a chat template" : "");
    model_show_add_row(rows, "tokenizer", text ? json_string_value(text) : "");
    json_decref(text);
}

// --- the tables -------------------------------------------------------------------------

static int print_summary(const json_t *model)
{
    static const struct column columns[] = {{"what", "MODEL"}, {"value", ""}};
    char text[SIZE_TEXT];
    const char *key;
    json_t *rows = json_array(), *value;
    static const char *const texts[] = {"name", "architecture"};
    for (size_t i = 0; i < COUNT(texts); i++)
        if (*text_of(model, texts[i]))
            model_show_add_row(rows, texts[i], text_of(model, texts[i]));
    model_show_add_row(rows, "parameters",
                       count_text(model_show_integer_of(model, "parameters"), text));
    model_show_add_row(rows, "size",
                       size_text((uint64_t)model_show_integer_of(model, "bytes"), text));
    json_object_foreach(json_object_get(model, "dimensions"), key, value)
    {
        char *line = model_show_value_text(value);
        model_show_add_row(rows, key, line ? line : "");
        free(line);
    }
    if (json_object_get(model, "tokenizer"))
        model_show_add_tokenizer(rows, json_object_get(model, "tokenizer"));
    int failed = table_print(rows, columns, COUNT(columns));
    json_decref(rows);
    return failed;
}

// Sets the members that the table of arrays has: "size" and "extents".
static void add_texts(json_t *row)
{
    char size[SIZE_TEXT], shape[SHAPE_TEXT];
    size_t axis;
    json_t *extent;
    tn_shape extents = {0};
    json_array_foreach(json_object_get(row, "shape"), axis, extent) if (axis < TN_MAX_RANK)
        extents.extent[extents.rank++] = json_integer_value(extent);
    json_object_set_new(row, "extents", json_string(shape_text(&extents, shape)));
    json_object_set_new(
        row, "size",
        json_string(size_text((uint64_t)model_show_integer_of(row, "bytes"), size)));
}

// "blk.12.attn_q.weight" as "blk.*.attn_q.weight". free() it.
static char *name_of_layers(const char *name)
{
    char *general = strdup(name);
    size_t prefix = strlen("blk.");
    if (!general || strncmp(name, "blk.", prefix) != 0 ||
        !isdigit((unsigned char)name[prefix]))
        return general;
    size_t digits = strspn(name + prefix, "0123456789");
    general[prefix] = '*';
    memmove(general + prefix + 1, name + prefix + digits,
            strlen(name + prefix + digits) + 1);
    return general;
}

// The row of `rows` that an array of this name counts in, made when there is none.
static json_t *model_show_row_of(json_t *rows, const char *name, const json_t *array)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i,
                       row) if (strcmp(text_of(row, "name"), name) == 0 &&
                                json_equal(json_object_get(row, "format"),
                                           json_object_get(array, "format")) &&
                                json_equal(json_object_get(row, "shape"),
                                           json_object_get(array, "shape"))) return row;
    row = json_copy((json_t *)(uintptr_t)array);
    json_object_set_new(row, "name", json_string(name));
    json_object_set_new(row, "bytes", json_integer(0));
    json_array_append_new(rows, row);
    return row;
}

// `all`: each array; else those of all layers in one row.
static int print_arrays(const json_t *arrays, bool all)
{
    static const struct column columns[] = {{"name", "ARRAY"},
                                            {"count", "COUNT"},
                                            {"extents", "SHAPE"},
                                            {"format", "FORMAT"},
                                            {"size", "SIZE"}};
    json_t *rows = json_array(), *array;
    size_t i;
    json_array_foreach(arrays, i, array)
    {
        char *name =
            all ? strdup(text_of(array, "name")) : name_of_layers(text_of(array, "name"));
        if (!name) {
            json_decref(rows);
            return oops_memory();
        }
        json_t *row = model_show_row_of(rows, name, array);
        json_object_set_new(row, "count",
                            json_integer(model_show_integer_of(row, "count") + 1));
        json_object_set_new(row, "bytes",
                            json_integer(model_show_integer_of(row, "bytes") +
                                         model_show_integer_of(array, "bytes")));
        free(name);
    }
    json_array_foreach(rows, i, array) add_texts(array);
    int failed = json_array_size(rows) ? table_print(rows, columns, COUNT(columns)) : 0;
    json_decref(rows);
    return failed;
}

static int print_formats(const json_t *formats)
{
    static const struct column columns[] = {{"format", "FORMAT"},
                                            {"arrays", "ARRAYS"},
                                            {"share", "PARAMETERS"},
                                            {"size", "SIZE"}};
    char text[SIZE_TEXT];
    size_t i;
    json_t *row;
    json_array_foreach(formats, i, row)
    {
        json_object_set_new(
            row, "share",
            json_string(count_text(model_show_integer_of(row, "elements"), text)));
        json_object_set_new(
            row, "size",
            json_string(size_text((uint64_t)model_show_integer_of(row, "bytes"), text)));
    }
    return json_array_size(formats) ? table_print(formats, columns, COUNT(columns)) : 0;
}

static int print_metadata(const json_t *metadata)
{
    static const struct column columns[] = {{"what", "KEY"}, {"value", "VALUE"}};
    const char *key;
    json_t *rows = json_array(), *value;
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
    {
        char *text = model_show_value_text(value);
        model_show_add_row(rows, key, text ? text : "");
        free(text);
    }
    int failed = json_array_size(rows) ? table_print(rows, columns, COUNT(columns)) : 0;
    json_decref(rows);
    return failed;
}

static int print_model(const json_t *model, bool tensors, bool metadata)
{
    int failed = print_summary(model);
    if (!failed) {
        say_line("%s", "");
        failed = print_formats(json_object_get(model, "formats"));
    }
    if (!failed) {
        say_line("%s", "");
        failed = print_arrays(json_object_get(model, "arrays"), tensors);
    }
    if (!failed && metadata) {
        say_line("%s", "");
        failed = print_metadata(json_object_get(model, "metadata"));
    }
    return failed;
}

int cmd_model_show(const struct command *self, int argc, char **argv)
{
    static const tn_file_options map = {.struct_size = sizeof(map), .flags = TN_FILE_MAP};
    struct lm_parsed line;
    tn_runtime *runtime;
    tn_file *file = NULL;
    json_t *model = NULL;
    int failed = lm_parse(self, FOR_SHOW, 1, 1, argc, argv, &line);
    if (failed || line.args.help_shown)
        return failed;
    bool arrays = lm_is_given(&line, "arrays"), metadata = lm_is_given(&line, "metadata");
    bool where = lm_is_given(&line, "where");
    if (where && (arrays || metadata))
        return misuse("--where: expected no --arrays or --metadata with it");
    if (where)
        return lm_run("where", &line);
    if (lm_is_given(&line, "context") || lm_is_given(&line, "cache") ||
        lm_is_given(&line, "sequences") || lm_is_given(&line, "split"))
        return misuse("--context, --cache, --sequences and --split are for --where");
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    failed = tn_file_open(runtime, line.args.items[0], &map, &file)
                 ? oops_library()
                 : model_describe(file, line.args.items[0], &model);
    if (!failed)
        failed = lm_is_given(&line, "json") ? json_print(model)
                                            : print_model(model, arrays, metadata);
    json_decref(model);
    tn_file_close(file);
    tn_runtime_close(runtime);
    return failed;
}
