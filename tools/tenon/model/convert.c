// SPDX-License-Identifier: MIT
// tenon model convert, tenon model quantize: write a model's file anew.
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/quant.h>

#include "mixture.h"
#include "model.h"
#include "rewrite.h"

#define NAMES 512 // bytes of a list of names

// --- messages ---------------------------------------------------------------------------

static double model_convert_bytes_of(const struct rewrite_array *a, const char *format)
{
    const tn_quant_format *blocks = tn_quant_find(format);
    double count = (double)a->rows * (double)a->columns;
    if (blocks)
        return count / (double)blocks->block * (double)blocks->bytes;
    return count * (double)tn_dtype_bytes(rewrite_dtype(format));
}

static void say_result(const struct rewrite *r)
{
    double before = 0, after = 0, count = 0;
    char size[SIZE_TEXT];
    for (uint64_t i = 0; i < r->count; i++) {
        const struct rewrite_array *a = &r->arrays[i];
        count += (double)a->rows * (double)a->columns;
        before += model_convert_bytes_of(a, a->from);
        after += model_convert_bytes_of(a, a->to);
    }
    count = count > 0 ? count : 1;
    say_line("%s: %" PRIu64 " arrays, %s, %.2f bits a weight (%.2f in %s)", r->out,
             r->count, size_text((uint64_t)after, size), 8 * after / count,
             8 * before / count, r->in);
}

// --- convert ----------------------------------------------------------------------------

static bool model_convert_is_float(const struct rewrite_array *a)
{
    return tn_quant_find(a->from) || rewrite_file_type(a->from) >= 0 ||
           strcmp(a->from, "f64") == 0;
}

// Sets the type of matrices; rewrite_open() has set the type of arrays of one axis.
static void model_convert_set_types(struct rewrite *r, const char *type)
{
    int64_t rounded = 0;
    for (uint64_t i = 0; i < r->count; i++) {
        struct rewrite_array *a = &r->arrays[i];
        if (!model_convert_is_float(a) || !a->type || (a->type->rank <= 1 && r->is_gguf))
            continue;
        a->to = type;
        rounded += strcmp(a->from, type) != 0 &&
                   (strcmp(type, "f32") != 0 || strcmp(a->from, "f64") == 0);
    }
    if (rounded)
        note("%" PRId64 " arrays are rounded to %s", rounded, type);
    rewrite_set_type(r, rewrite_file_type(type));
}

int cmd_model_convert(const struct command *self, int argc, char **argv)
{
    const char *type = NULL;
    const struct option options[] = {{"type", 0, "TYPE",
                                      "store matrices as f32, f16 or bf16 (as they are)",
                                      &type, NULL}};
    struct args args;
    struct rewrite r;
    int failed = args_parse(self, options, COUNT(options), 2, 2, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    if (type && rewrite_file_type(type) < 0)
        return misuse("--type is '%s', expected f32, f16 or bf16 ('tenon model quantize' "
                      "makes blocks)",
                      type);
    failed = rewrite_open(&r, args.items[0], args.items[1]);
    if (!failed && type)
        model_convert_set_types(&r, type);
    if (!failed)
        failed = rewrite_save(&r);
    if (!failed)
        say_result(&r);
    rewrite_close(&r);
    return failed;
}

// --- quantize ---------------------------------------------------------------------------

static bool is_format(const char *name)
{
    return tn_quant_find(name) || rewrite_file_type(name) >= 0;
}

// The formats that --tensor names, by comma: "PATTERN=FORMAT". The first that fits counts.
struct model_convert_override {
    char *pattern, *format; // in `text`
    bool is_used;
};
struct overrides {
    char *text; // owned
    struct model_convert_override *items;
    size_t count;
};

static int read_overrides(const char *given, struct overrides *out)
{
    size_t most = 1;
    for (const char *c = given; *c; c++)
        most += *c == ',';
    *out = (struct overrides){.text = strdup(given),
                              .items = calloc(most, sizeof(*out->items))};
    if (!out->text || !out->items)
        return oops_memory();
    char *rest = out->text;
    for (char *item; (item = strsep(&rest, ",")) != NULL;) {
        char *equals = strrchr(item, '=');
        if (!equals || equals == item || !is_format(equals + 1))
            return misuse("--tensor: '%s', expected PATTERN=FORMAT with a block format, "
                          "such as q8_0 or q6_k, or f32, f16 or bf16",
                          item);
        *equals = 0;
        out->items[out->count++] = (struct model_convert_override){item, equals + 1, false};
    }
    return 0;
}

static const char *model_convert_overriding(struct overrides *overrides, const char *name)
{
    for (size_t i = 0; i < overrides->count; i++)
        if (fnmatch(overrides->items[i].pattern, name, 0) == 0) {
            overrides->items[i].is_used = true;
            return overrides->items[i].format;
        }
    return NULL;
}

static void finish_overrides(struct overrides *overrides)
{
    free(overrides->text);
    free(overrides->items);
}

static struct mixture_model model_of(const struct rewrite *r)
{
    int64_t heads = rewrite_number(r, ".attention.head_count", 1);
    int64_t groups = rewrite_number(r, ".attention.head_count_kv", heads);
    struct mixture_model model = {.layers = rewrite_number(r, ".block_count", 0),
                                  .sharing = groups > 0 ? heads / groups : 1,
                                  .experts = rewrite_number(r, ".expert_count", 0)};
    for (uint64_t i = 0; i < r->count; i++)
        model.has_output |= strcmp(r->arrays[i].name, "output.weight") == 0;
    return model;
}

// How many arrays did not get the format that was chosen, by the two formats' names.
struct fallbacks {
    const char *wanted, *got;
    int64_t columns, count;
};

static void count_fallback(struct fallbacks *list, size_t size, const char *wanted,
                           const char *got, int64_t columns)
{
    for (size_t i = 0; i < size; i++) {
        struct fallbacks *f = &list[i];
        if (f->count && (strcmp(f->wanted, wanted) != 0 || f->columns != columns))
            continue;
        *f = (struct fallbacks){wanted, got, columns, f->count + 1};
        return;
    }
}

// Chooses the format of each array, and notes the arrays that get another one than asked.
static int set_formats(struct rewrite *r, const struct mixture *mixture,
                       struct overrides *overrides)
{
    struct fallbacks fallbacks[16] = {{0}};
    struct mixture_model model = model_of(r);
    int64_t again = 0;
    const char *kept = NULL;
    for (uint64_t i = 0; i < r->count; i++) {
        struct rewrite_array *a = &r->arrays[i];
        bool is_matrix = a->type && a->type->rank > 1 && model_convert_is_float(a);
        const char *wanted =
            is_matrix ? model_convert_overriding(overrides, a->name) : NULL;
        if (is_matrix && !wanted)
            wanted = mixture_format(mixture, &model, a->name);
        if (!wanted) { // norms of two axes and the like: as readers expect them
            a->to = model_convert_is_float(a) ? "f32" : a->from;
            continue;
        }
        a->to = mixture_fallback(wanted, a->columns);
        if (a->to != wanted)
            count_fallback(fallbacks, COUNT(fallbacks), wanted, a->to, a->columns);
        if (tn_quant_find(a->from) && strcmp(a->from, a->to) != 0) {
            again++;
            kept = a->from;
        }
    }
    for (size_t i = 0; i < overrides->count; i++)
        if (!overrides->items[i].is_used)
            return misuse("--tensor: '%s' is no matrix of %s", overrides->items[i].pattern,
                          r->in);
    for (size_t i = 0; i < COUNT(fallbacks) && fallbacks[i].count; i++)
        note("%" PRId64 " %s rows of %" PRId64 ", which the blocks of %s do not "
             "divide: they become %s",
             fallbacks[i].count, fallbacks[i].count == 1 ? "array has" : "arrays have",
             fallbacks[i].columns, fallbacks[i].wanted, fallbacks[i].got);
    if (again)
        note("%" PRId64 " arrays are in blocks already (%s, say): quantised twice, they "
             "lose more than weights that never were",
             again, kept);
    return 0;
}

static int model_convert_quantize(const char *in, const char *out,
                                  const struct mixture *mixture,
                                  struct overrides *overrides, const char *imatrix)
{
    struct rewrite r;
    int failed = rewrite_open(&r, in, out);
    if (!failed)
        failed = set_formats(&r, mixture, overrides);
    if (!failed && imatrix)
        failed = rewrite_importance(&r, imatrix);
    if (!failed) {
        rewrite_set_type(&r, mixture_number(mixture));
        failed = rewrite_save(&r);
    }
    if (!failed)
        say_result(&r);
    rewrite_close(&r);
    return failed;
}

int cmd_model_quantize(const struct command *self, int argc, char **argv)
{
    const char *format = NULL, *given = NULL, *imatrix = NULL;
    char names[NAMES];
    const struct option options[] = {
        {"format", 'f', "FORMAT", "the mixture of formats, such as q4_k_m", &format, NULL},
        {"imatrix", 0, "FILE", "importance of columns, by 'tenon model imatrix'", &imatrix,
         NULL},
        {"tensor", 0, "PATTERN=FORMAT,...", "other formats for arrays of these names",
         &given, NULL}};
    struct args args;
    struct overrides overrides = {NULL, NULL, 0};
    int failed = args_parse(self, options, COUNT(options), 2, 2, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    const struct mixture *mixture = format ? mixture_find(format) : NULL;
    if (!mixture)
        return misuse("--format is %s%s%s, expected one of %s", format ? "'" : "",
                      format ? format : "not given", format ? "'" : "",
                      mixture_known(names, sizeof(names)));
    if (!ends_with(args.items[1], ".gguf"))
        return misuse(
            "%s: expected a name that ends with .gguf: other files hold no blocks",
            args.items[1]);
    failed = given ? read_overrides(given, &overrides) : 0;
    if (!failed)
        failed = model_convert_quantize(args.items[0], args.items[1], mixture, &overrides,
                                        imatrix);
    finish_overrides(&overrides);
    return failed;
}
