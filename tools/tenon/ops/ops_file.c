// SPDX-License-Identifier: MIT
// Parses ops.json, which is untrusted: types, words and sizes are checked.
#include "described.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OPERATORS 16384
#define MOST_PARTS 64 // inputs, outputs, attributes of one operator
#define FORMAT 1

struct ops_file {
    json_t *root; // owns all texts
    tn_primitive *records;
    void **parts; // memory of the records' tables
    uint32_t count, num_parts, max_parts;
};

// Where the reader is, for messages.
struct ops_reader {
    struct ops_file *file;
    const char *path, *id, *part; // part: "input 'x'"
    char label[96];
};

static int ops_refuse(const struct ops_reader *r, const char *key, const char *expected)
{
    return oops("%s: operator '%s'%s%s: \"%s\" is not %s", r->path, r->id,
                r->part ? ": " : "", r->part ? r->part : "", key, expected);
}

// Memory of the file's, all 0; `count` may be 0.
static void *ops_parts(struct ops_reader *r, size_t count, size_t size)
{
    struct ops_file *file = r->file;
    if (file->num_parts == file->max_parts) {
        uint32_t most = file->max_parts ? 2 * file->max_parts : 64;
        void **grown = realloc(file->parts, most * sizeof(*grown));
        if (!grown)
            return NULL;
        file->parts = grown;
        file->max_parts = most;
    }
    void *memory = calloc(count + 1, size);
    if (memory)
        file->parts[file->num_parts++] = memory;
    return memory;
}

// --- values ----------------------------------------------------------------------------

static int ops_read_text(const struct ops_reader *r, const json_t *object, const char *key,
                         bool must, const char **out)
{
    const json_t *value = json_object_get(object, key);
    *out = value ? json_string_value(value) : NULL;
    return *out || (!value && !must) ? 0 : ops_refuse(r, key, "a text");
}

static bool ops_is_identifier(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t size = strlen(name);
    return size > 0 && size < 64 && strspn(name, letters) == size &&
           !(name[0] >= '0' && name[0] <= '9');
}

static int ops_read_named(struct ops_reader *r, const json_t *object, const char *what,
                          const char **out_name, const char **out_doc)
{
    int failed = ops_read_text(r, object, "name", true, out_name);
    if (!failed && !ops_is_identifier(*out_name))
        failed = ops_refuse(r, "name", "an identifier");
    if (failed)
        return failed;
    snprintf(r->label, sizeof(r->label), "%s '%s'", what, *out_name);
    r->part = r->label;
    return ops_read_text(r, object, "doc", true, out_doc);
}

struct ops_word {
    uint64_t bit;
    const char *name;
};

// The bits of the words of a text; none where the key is absent.
static int ops_read_words(const struct ops_reader *r, const json_t *object, const char *key,
                          const struct ops_word *words, size_t count, uint64_t *out)
{
    const char *text;
    char expected[512] = "words of";
    int failed = ops_read_text(r, object, key, false, &text);
    *out = 0;
    while (!failed && text && *text) {
        size_t length = strcspn(text, " "), i = 0;
        while (i < count && (strlen(words[i].name) != length ||
                             strncmp(words[i].name, text, length) != 0))
            i++;
        if (i == count)
            break;
        *out |= words[i].bit;
        text += length + (text[length] == ' ');
    }
    if (failed || !text || !*text)
        return failed;
    for (size_t i = 0, used = strlen(expected); i < count && used < sizeof(expected); i++)
        used += (size_t)snprintf(expected + used, sizeof(expected) - used, " %s",
                                 words[i].name);
    return ops_refuse(r, key, expected);
}

#define READ_WORDS(r, object, key, words, out)                                             \
    ops_read_words(r, object, key, words, COUNT(words), out)

static int ops_read_list(const struct ops_reader *r, const json_t *object, const char *key,
                         const json_t **out)
{
    static const char expected[] = "a list of at most 64 objects";
    *out = json_object_get(object, key);
    if (!json_is_array(*out) || json_array_size(*out) > MOST_PARTS)
        return ops_refuse(r, key, expected);
    for (size_t i = 0; i < json_array_size(*out); i++)
        if (!json_is_object(json_array_get(*out, i)))
            return ops_refuse(r, key, expected);
    return 0;
}

// --- inputs and outputs ----------------------------------------------------------------

static int ops_read_dtypes(const struct ops_reader *r, const json_t *object, uint32_t *out)
{
    struct ops_word words[TN_NUM_DTYPES];
    uint64_t set;
    for (tn_dtype i = 1; i < TN_NUM_DTYPES; i++)
        words[i - 1] = (struct ops_word){TN_DTYPE_BIT(i), dtype_name(i)};
    int failed = ops_read_words(r, object, "dtypes", words, TN_NUM_DTYPES - 1, &set);
    *out = (uint32_t)set;
    return failed;
}

static int ops_read_inputs(struct ops_reader *r, const json_t *object, tn_primitive *p)
{
    static const struct ops_word words[] = {{TN_INPUT_OPTIONAL, "optional"},
                                            {TN_INPUT_VARIADIC, "variadic"},
                                            {TN_INPUT_CONSTANT, "constant"}};
    const json_t *list;
    int failed = ops_read_list(r, object, "inputs", &list);
    if (failed)
        return failed;
    tn_input_info *inputs = ops_parts(r, json_array_size(list), sizeof(*inputs));
    if (!inputs)
        return oops_memory();
    for (size_t i = 0; i < json_array_size(list) && !failed; i++) {
        const json_t *item = json_array_get(list, i);
        uint64_t flags = 0;
        failed = ops_read_named(r, item, "input", &inputs[i].name, &inputs[i].doc);
        if (!failed)
            failed = READ_WORDS(r, item, "flags", words, &flags);
        if (!failed)
            failed = ops_read_dtypes(r, item, &inputs[i].dtypes);
        inputs[i].flags = (uint32_t)flags;
        r->part = NULL;
    }
    p->inputs = inputs;
    p->num_inputs = (uint32_t)json_array_size(list);
    p->input_size = sizeof(*inputs);
    return failed;
}

static int ops_read_outputs(struct ops_reader *r, const json_t *object, tn_primitive *p)
{
    static const struct ops_word words[] = {{TN_OUTPUT_OPTIONAL, "optional"}};
    const json_t *list;
    int failed = ops_read_list(r, object, "outputs", &list);
    if (!failed && json_array_size(list) == 0)
        failed = ops_refuse(r, "outputs", "a list of one or more");
    if (failed)
        return failed;
    tn_output_info *outputs = ops_parts(r, json_array_size(list), sizeof(*outputs));
    if (!outputs)
        return oops_memory();
    for (size_t i = 0; i < json_array_size(list) && !failed; i++) {
        const json_t *item = json_array_get(list, i);
        uint64_t flags = 0;
        failed = ops_read_named(r, item, "output", &outputs[i].name, &outputs[i].doc);
        if (!failed)
            failed = READ_WORDS(r, item, "flags", words, &flags);
        outputs[i].flags = (uint32_t)flags;
        r->part = NULL;
    }
    p->outputs = outputs;
    p->num_outputs = (uint32_t)json_array_size(list);
    p->output_size = sizeof(*outputs);
    return failed;
}

// --- attributes ------------------------------------------------------------------------

static int ops_read_choices(struct ops_reader *r, const json_t *item, tn_attr_field *field)
{
    static const char expected[] = "a list of words, the default one of them";
    const json_t *list = json_object_get(item, "choices");
    const char *chosen = json_string_value(json_object_get(item, "default"));
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count == 0 || count > 256 || !chosen)
        return ops_refuse(r, "choices", expected);
    const char **choices = ops_parts(r, count, sizeof(*choices));
    if (!choices)
        return oops_memory();
    field->default_i = -1;
    for (size_t i = 0; i < count; i++) {
        choices[i] = json_string_value(json_array_get(list, i));
        if (!choices[i])
            return ops_refuse(r, "choices", expected);
        if (strcmp(choices[i], chosen) == 0)
            field->default_i = (int64_t)i;
    }
    field->choices = choices;
    return field->default_i < 0 ? ops_refuse(r, "choices", expected) : 0;
}

static int ops_read_float(const struct ops_reader *r, const json_t *value, double *out)
{
    const char *text = json_string_value(value);
    *out = json_is_number(value)               ? json_number_value(value)
           : text && strcmp(text, "inf") == 0  ? INFINITY
           : text && strcmp(text, "-inf") == 0 ? -INFINITY
                                               : NAN;
    return json_is_number(value) || (text && (isinf(*out) || strcmp(text, "nan") == 0))
               ? 0
               : ops_refuse(r, "default", "a number, \"nan\", \"inf\" or \"-inf\"");
}

static int ops_read_dtype(const struct ops_reader *r, const json_t *value, int64_t *out)
{
    const char *text = json_string_value(value);
    for (tn_dtype i = 1; i < TN_NUM_DTYPES && text; i++)
        if (strcmp(dtype_name(i), text) == 0)
            *out = i;
    return !value || *out ? 0 : ops_refuse(r, "default", "a dtype's name");
}

static int ops_read_bits(const struct ops_reader *r, const json_t *value, int64_t *out)
{
    const char *text = json_string_value(value);
    size_t size = text ? strlen(text) : 0;
    if (size == 0 || size > 16 || strspn(text, "0123456789abcdef") != size)
        return ops_refuse(r, "default", "1 to 16 hexadecimal digits");
    *out = (int64_t)strtoull(text, NULL, 16);
    return 0;
}

static int ops_read_default(struct ops_reader *r, const json_t *item, tn_attr_field *field)
{
    const json_t *value = json_object_get(item, "default");
    if (field->flags & TN_ATTR_REQUIRED || field->kind == TN_ATTR_INTS ||
        field->kind >= TN_ATTR_STRING)
        return value ? ops_refuse(r, "default", "absent, as it has to be") : 0;
    switch (field->kind) {
    case TN_ATTR_BOOL:
        field->default_i = json_is_true(value);
        return json_is_boolean(value) ? 0 : ops_refuse(r, "default", "true or false");
    case TN_ATTR_I64:
        field->default_i = json_integer_value(value);
        return json_is_integer(value) ? 0 : ops_refuse(r, "default", "an integer");
    case TN_ATTR_F64:
        return ops_read_float(r, value, &field->default_f);
    case TN_ATTR_CHOICE:
        return ops_read_choices(r, item, field);
    case TN_ATTR_DTYPE:
        return ops_read_dtype(r, value, &field->default_i);
    default:
        return ops_read_bits(r, value, &field->default_i);
    }
}

static int ops_read_kind(const struct ops_reader *r, const json_t *item, uint32_t *out)
{
    static const char *const kinds[] = {"",      "bool",     "int",        "float",
                                        "dtype", "word",     "ints",       "bits",
                                        "text",  "int list", "float list", "graph"};
    const char *kind = json_string_value(json_object_get(item, "kind"));
    for (uint32_t i = TN_ATTR_BOOL; i < COUNT(kinds) && kind; i++)
        if (strcmp(kind, kinds[i]) == 0) {
            *out = i;
            return 0;
        }
    return ops_refuse(r, "kind", "a kind of attribute, such as \"float\"");
}

static int ops_read_attributes(struct ops_reader *r, const json_t *object, tn_primitive *p)
{
    static const struct ops_word words[] = {{TN_ATTR_REQUIRED, "required"},
                                            {TN_ATTR_RUNTIME, "runtime"},
                                            {TN_ATTR_RESULT, "result"}};
    const json_t *list;
    int failed = ops_read_list(r, object, "attributes", &list);
    if (failed)
        return failed;
    tn_attr_field *fields = ops_parts(r, json_array_size(list), sizeof(*fields));
    if (!fields)
        return oops_memory();
    for (size_t i = 0; i < json_array_size(list) && !failed; i++) {
        const json_t *item = json_array_get(list, i);
        uint64_t flags = 0;
        failed = ops_read_named(r, item, "attribute", &fields[i].name, &fields[i].doc);
        if (!failed)
            failed = ops_read_kind(r, item, &fields[i].kind);
        if (!failed)
            failed = READ_WORDS(r, item, "flags", words, &flags);
        fields[i].flags = (uint32_t)flags;
        if (!failed)
            failed = ops_read_default(r, item, &fields[i]);
        r->part = NULL;
    }
    p->attrs = (tn_attr_table){.num_fields = (uint32_t)json_array_size(list),
                               .field_size = sizeof(*fields),
                               .fields = fields};
    return failed;
}

// --- rules -----------------------------------------------------------------------------

// Stands for a rule of the operator: its pointer tells that the operator has the rule.
static void not_here(void)
{
}

#define SAY_RULE(bit, rule) p->rule = has & (bit) ? (__typeof__(p->rule))not_here : NULL

static int ops_read_rules(const struct ops_reader *r, const json_t *object, tn_primitive *p)
{
    static const struct ops_word words[] = {
        {1, "decompose"}, {2, "reference"}, {4, "infer"},
        {8, "view"},      {16, "vjp"},      {32, "jvp"},
        {64, "vmap"},     {128, "run"},     {256, "count_outputs"},
    };
    uint64_t has;
    int failed = READ_WORDS(r, object, "rules", words, &has);
    SAY_RULE(1, decompose);
    SAY_RULE(2, reference);
    SAY_RULE(4, infer);
    SAY_RULE(8, view);
    SAY_RULE(16, vjp);
    SAY_RULE(32, jvp);
    SAY_RULE(64, vmap);
    SAY_RULE(128, run);
    SAY_RULE(256, count_outputs);
    return failed;
}

static int ops_read_pair_rules(struct ops_reader *r, const json_t *object, tn_primitive *p)
{
    const json_t *list = json_object_get(object, "pair_rules");
    size_t count = json_array_size(list);
    if (!list)
        return 0;
    if (!json_is_array(list) || count > MOST_PARTS)
        return ops_refuse(r, "pair_rules", "a list of at most 64 ids");
    tn_pair_rule *rules = ops_parts(r, count, sizeof(*rules));
    if (!rules)
        return oops_memory();
    for (size_t i = 0; i < count; i++) {
        rules[i].primitive = json_string_value(json_array_get(list, i));
        if (!rules[i].primitive)
            return ops_refuse(r, "pair_rules", "a list of at most 64 ids");
    }
    p->pair_rules = rules;
    p->num_pair_rules = (uint32_t)count;
    p->pair_rule_size = sizeof(*rules);
    return 0;
}

// --- the whole -------------------------------------------------------------------------

static int ops_read_operator(struct ops_reader *r, const json_t *object, tn_primitive *p)
{
    p->struct_size = sizeof(*p);
    r->id = "?";
    r->part = NULL;
    int failed = ops_read_text(r, object, "id", true, &p->id);
    if (failed)
        return failed;
    r->id = p->id;
    size_t bare = strspn(p->id, "abcdefghijklmnopqrstuvwxyz0123456789._-");
    if (bare == 0 || bare > 119 || p->id[bare] != '/' || strlen(p->id) > 127)
        return ops_refuse(r, "id", "pack.name/revision");
    failed = ops_read_text(r, object, "doc", true, &p->doc);
    if (!failed)
        failed = ops_read_text(r, object, "expr", false, &p->expr);
    if (!failed)
        failed = ops_read_text(r, object, "effects", false, &p->effects);
    if (!failed)
        failed = ops_read_inputs(r, object, p);
    if (!failed)
        failed = ops_read_outputs(r, object, p);
    if (!failed)
        failed = ops_read_attributes(r, object, p);
    if (!failed)
        failed = ops_read_pair_rules(r, object, p);
    return failed ? failed : ops_read_rules(r, object, p);
}

static int ops_read_root(struct ops_file *file, const char *path)
{
    struct ops_reader r = {.file = file, .path = path, .id = "?"};
    const json_t *list = json_object_get(file->root, "operators");
    const json_t *format = json_object_get(file->root, "format");
    if (!json_is_integer(format) || json_integer_value(format) != FORMAT)
        return oops("%s: \"format\" is not %d, which this version reads", path, FORMAT);
    if (!json_is_array(list) || json_array_size(list) > MOST_OPERATORS)
        return oops("%s: \"operators\" is not a list of at most %d", path, MOST_OPERATORS);
    file->records = calloc(json_array_size(list) + 1, sizeof(*file->records));
    if (!file->records)
        return oops_memory();
    for (size_t i = 0; i < json_array_size(list); i++) {
        int failed = ops_read_operator(&r, json_array_get(list, i), &file->records[i]);
        if (failed)
            return failed;
        file->count++;
    }
    return 0;
}

int ops_file_parse(const char *text, size_t size, const char *path, struct ops_file **out)
{
    json_error_t error = {0};
    struct ops_file *file = calloc(1, sizeof(*file));
    if (!file)
        return oops_memory();
    int failed = 0;
    if (size > OPS_MOST)
        failed = oops("%s: %zu bytes, at most %u", path, size, OPS_MOST);
    else if (memchr(text, 0, size))
        failed = oops("%s: a byte of 0, expected JSON", path);
    else if (!(file->root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error)))
        failed = oops("%s:%d: %s", path, error.line, error.text);
    if (!failed)
        failed = ops_read_root(file, path);
    if (failed)
        ops_file_free(file);
    else
        *out = file;
    return failed;
}

void ops_file_free(struct ops_file *file)
{
    if (!file)
        return;
    for (uint32_t i = 0; i < file->num_parts; i++)
        free(file->parts[i]);
    free(file->parts);
    free(file->records);
    json_decref(file->root);
    free(file);
}

uint32_t ops_file_count(const struct ops_file *file)
{
    return file->count;
}

const tn_primitive *ops_file_at(const struct ops_file *file, uint32_t i)
{
    return &file->records[i];
}
