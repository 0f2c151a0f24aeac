// SPDX-License-Identifier: MIT
// The arrays of a model's file, written anew.
#include "rewrite.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tenon/ops/quant.h>
#include <unistd.h>

#include "model.h"

#define PIECE_ELEMENTS (INT64_C(4) << 20) // elements of an array that are floats at once
#define MOST_F16 65504.0f

void note(const char *format, ...)
{
    char text[1024];
    va_list list;
    size_t at = (size_t)snprintf(text, sizeof(text), "note: ");
    va_start(list, format);
    vsnprintf(text + at, sizeof(text) - at, format, list);
    va_end(list);
    complain(text);
}

// --- opening ----------------------------------------------------------------------------

tn_dtype rewrite_dtype(const char *name)
{
    for (tn_dtype dtype = 1; dtype < TN_NUM_DTYPES; dtype++)
        if (strcmp(tn_dtype_name(dtype), name) == 0)
            return dtype;
    return TN_DTYPE_NONE;
}

// Whether elements can be converted: others, such as integers, are copied.
static bool has_floats(const char *format)
{
    tn_dtype dtype = rewrite_dtype(format);
    return tn_quant_find(format) || dtype == TN_F16 || dtype == TN_BF16 ||
           dtype == TN_F32 || dtype == TN_F64;
}

static bool model_rewrite_is_named(const char *name, const char *kind)
{
    const char *at = strstr(name, kind);
    return at && at[strlen(kind)] == '.' && at != name && at[-1] == '.';
}

// The heads of a matrix whose rows GGUF has in another order than the file; 0: same order.
static int64_t rotated_heads(const struct rewrite *r, const char *name)
{
    tn_text order = {"", 0}, architecture = {"", 0};
    const tn_metadata_list *list = tn_file_metadata(r->file);
    (void)tn_metadata_text(tn_metadata_find(list, "tenon.rope"), &order);
    (void)tn_metadata_text(tn_metadata_find(list, "general.architecture"), &architecture);
    if (strncmp(name, "blk.", 4) != 0) // of a vision encoder, say
        return 0;
    if (!r->is_gguf || strcmp(order.data, "halves") != 0 ||
        strcmp(architecture.data, "llama") != 0)
        return 0;
    int64_t heads = rewrite_number(r, ".attention.head_count", 0);
    if (model_rewrite_is_named(name, "attn_q"))
        return heads;
    return model_rewrite_is_named(name, "attn_k")
               ? rewrite_number(r, ".attention.head_count_kv", heads)
               : 0;
}

static int model_rewrite_list_array(struct rewrite *r, uint64_t index)
{
    const char *format = tn_file_format(r->file, index);
    const tn_type *type = tn_file_type(r->file, index);
    struct rewrite_array *a = &r->arrays[index];
    *a = (struct rewrite_array){.name = tn_file_name(r->file, index), .type = type};
    a->from = a->to = format ? format : dtype_name(type->dtype);
    a->columns = tn_file_columns(r->file, index);
    a->rows = 1;
    for (int32_t axis = 0; axis < type->rank - 1; axis++)
        a->rows *= type->extent[axis];
    a->heads = rotated_heads(r, a->name);
    if (a->heads > 0 && type->rank == 1) { // a bias: an element is a row
        a->rows = a->columns;
        a->columns = 1;
    }
    if (a->heads > 0 && (a->rows % a->heads || a->rows / a->heads < r->rotary))
        return oops("%s: '%s': %" PRId64 " rows, expected those of %" PRId64
                    " heads of %" PRId64 " or more",
                    r->in, a->name, a->rows, a->heads, r->rotary);
    if (format && !tn_quant_find(format))
        return oops("%s: '%s': blocks of %s, which Tenon does not read", r->in, a->name,
                    format);
    if (r->is_gguf && type->rank <= 1 && has_floats(a->from))
        a->to = "f32";
    if (!r->is_gguf && format)
        a->to = "f32";
    return 0;
}

static int model_rewrite_list_arrays(struct rewrite *r)
{
    while (tn_file_name(r->file, r->count))
        r->count++;
    r->arrays = calloc(r->count + 1, sizeof(*r->arrays));
    if (!r->arrays)
        return oops_memory();
    int64_t heads = rewrite_number(r, ".attention.head_count", 1);
    int64_t width = rewrite_number(r, ".embedding_length", 0);
    r->rotary = rewrite_number(r, ".attention.key_length", heads > 0 ? width / heads : 0);
    r->rotary = rewrite_number(r, ".rope.dimension_count", r->rotary);
    int failed = 0;
    for (uint64_t i = 0; i < r->count && !failed; i++)
        failed = model_rewrite_list_array(r, i);
    int64_t factors = failed || !r->is_gguf ? 0 : rewrite_factors(r, r->factors);
    if (factors > 0)
        r->arrays[r->count++] = (struct rewrite_array){.name = "rope_freqs.weight",
                                                       .from = "f32",
                                                       .to = "f32",
                                                       .rows = 1,
                                                       .columns = factors,
                                                       .made = r->factors};
    return failed;
}

int rewrite_open(struct rewrite *r, const char *in, const char *out)
{
    static const char *const cpu[] = {"TENON_BACKEND=cpu-blas", NULL};
    static const tn_runtime_options options = {.struct_size = sizeof(options),
                                               .variables = cpu};
    static const tn_file_options map = {.struct_size = sizeof(map), .flags = TN_FILE_MAP};
    *r = (struct rewrite){.in = in, .out = out, .is_gguf = ends_with(out, ".gguf")};
    if (!r->is_gguf && !ends_with(out, ".safetensors"))
        return misuse("%s: expected a name that ends with .gguf or .safetensors", out);
    if (tn_runtime_open(&options, &r->runtime) ||
        tn_file_open(r->runtime, in, &map, &r->file))
        return oops_library();
    int failed = model_rewrite_list_arrays(r);
    return failed ? failed : rewrite_metadata(r);
}

// --- elements ---------------------------------------------------------------------------

// State of one array while it is written.
struct rewrite_state {
    struct rewrite *r;
    tn_scope *scope;  // of the array as it is in the file
    const void *data; // its bytes, and how many
    uint64_t size;
    uint8_t *rows;  // of a piece, in their new order
    uint8_t *bytes; // of the array, as it is written
};

static int64_t model_rewrite_row_bytes(const struct rewrite_array *a, const char *format)
{
    const tn_quant_format *blocks = tn_quant_find(format);
    return blocks ? a->columns / blocks->block * blocks->bytes
                  : a->columns * (int64_t)tn_dtype_bytes(rewrite_dtype(format));
}

// Where row `row` of the new array is in the file: GGUF has the two elements that are
// rotated together beside each other, the file half a head apart.
static int64_t old_row(const struct rewrite *r, const struct rewrite_array *a, int64_t row)
{
    int64_t head = a->heads > 0 ? a->rows / a->heads : a->rows;
    int64_t at = row % head;
    if (a->heads <= 0 || at >= r->rotary)
        return row;
    return row - at + at % 2 * (r->rotary / 2) + at / 2;
}

// Fails where the format cannot hold the floats; notes NaN and infinities once an array.
static int check_floats(const struct rewrite *r, struct rewrite_array *a,
                        const float *values, int64_t count)
{
    bool is_blocks = tn_quant_find(a->to) != NULL, is_half = strcmp(a->to, "f16") == 0;
    for (int64_t i = 0; i < count; i++) {
        bool is_finite = isfinite(values[i]);
        if (is_finite && (!is_half || fabsf(values[i]) <= MOST_F16))
            continue;
        double value = isnan(values[i]) ? fabs((double)values[i]) : (double)values[i];
        if (is_finite || is_blocks)
            return oops("%s: '%s' has a value of %g, which %s cannot hold: name another "
                        "format for it, f32 or bf16",
                        r->in, a->name, value, a->to);
        if (a->is_told)
            continue;
        progress(NULL);
        note("%s: '%s' has a value of %g, which %s has, too: what the model computes "
             "with it is no number",
             r->in, a->name, value, r->out);
        a->is_told = true;
    }
    return 0;
}

// Rows of one matrix, which share one importance of columns.
static int64_t rows_of_matrix(const struct rewrite_array *a)
{
    return a->importance && a->matrices > 1 ? a->rows / a->matrices : a->rows;
}

static tn_array *importance_of(tn_scope *s, const struct rewrite_array *a, int64_t first)
{
    return a->importance
               ? tn_from_data(s, TN_F32, TN_SHAPE(a->columns),
                              a->importance + first / rows_of_matrix(a) * a->columns)
               : NULL;
}

// Rows [first, first + count) of the new array, from those at `data`.
static int convert_piece(struct rewrite_state *t, struct rewrite_array *a,
                         const uint8_t *data, int64_t first, int64_t count)
{
    int64_t from = model_rewrite_row_bytes(a, a->from),
            to = model_rewrite_row_bytes(a, a->to);
    const uint8_t *rows = data + first * from;
    for (int64_t i = 0; i < count && a->heads > 0; i++)
        memcpy(t->rows + i * from, data + old_row(t->r, a, first + i) * from, (size_t)from);
    if (a->heads > 0)
        rows = t->rows;
    if (strcmp(a->from, a->to) == 0) {
        memcpy(t->bytes + first * to, rows, (size_t)(count * to));
        return 0;
    }
    tn_scope *s = tn_scope_open(t->r->runtime);
    const tn_quant_format *blocks = tn_quant_find(a->from);
    tn_array *x = tn_from_data(s, blocks ? TN_U8 : rewrite_dtype(a->from),
                               TN_SHAPE(count, blocks ? from : a->columns), rows);
    x = blocks ? tn_op(s, "quant.dequantize", TN_IN(x), tn_attrs("format", a->from))
               : tn_op(s, "base.astype", TN_IN(x), tn_attrs("dtype", "f32"));
    const float *values = tn_eval(s, x) ? NULL : tn_data(s, x);
    int failed = values ? check_floats(t->r, a, values, count * a->columns) : 0;
    tn_array *y = tn_quant_find(a->to)
                      ? tn_op(s, "quant.quantize", TN_IN(x, importance_of(s, a, first)),
                              tn_attrs("format", a->to))
                      : tn_op(s, "base.astype", TN_IN(x), tn_attrs("dtype", a->to));
    if (!failed && tn_read(s, y, t->bytes + first * to, (uint64_t)(count * to)))
        failed = oops_scope(s);
    tn_scope_close(s);
    return failed;
}

static int model_rewrite_convert(struct rewrite_state *t, struct rewrite_array *a,
                                 const uint8_t *data)
{
    int64_t each = a->columns > 0 ? PIECE_ELEMENTS / a->columns : a->rows;
    each = each < 1 ? 1 : each > a->rows ? a->rows : each;
    free(t->bytes);
    free(t->rows);
    t->bytes = malloc((size_t)(a->rows * model_rewrite_row_bytes(a, a->to)) + 1);
    t->rows = malloc((size_t)(each * model_rewrite_row_bytes(a, a->from)) + 1);
    int failed = t->bytes && t->rows ? 0 : oops_memory();
    for (int64_t first = 0, count; first < a->rows && a->columns > 0 && !failed;
         first += count) {
        int64_t of = rows_of_matrix(a), left = of - first % of;
        count = left < each ? left : each;
        failed = convert_piece(t, a, data, first, count);
    }
    return failed;
}

static void tell_progress(const struct rewrite_state *t, uint64_t index)
{
    const struct rewrite_array *a = &t->r->arrays[index];
    char line[256];
    snprintf(line, sizeof(line), "%" PRIu64 " of %" PRIu64 ", %.100s, %s", index + 1,
             t->r->count, a->name, a->to);
    progress(line);
}

// Ends the writing of an array, and gives back the pages of the file that it has read:
// those of a large model would fill the memory.
static void end_array(struct rewrite_state *t)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)t->data, end = (begin + t->size) / page * page;
    begin = (begin + page - 1) / page * page;
    if (t->data && begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED); // as good if it fails
    tn_scope_close(t->scope);
    t->scope = NULL;
    t->data = NULL;
}

static tn_status give_elements(void *context, uint64_t index, const void **out_data)
{
    struct rewrite_state *t = context;
    struct rewrite_array *a = &t->r->arrays[index];
    tell_progress(t, index);
    end_array(t);
    if (a->made) {
        *out_data = a->made;
        return TN_OK;
    }
    t->scope = tn_scope_open(t->r->runtime);
    tn_array *array = tn_file_array(t->scope, t->r->file, a->name);
    const void *data = tn_data(t->scope, array);
    int failed = data ? 0 : oops_scope(t->scope);
    bool is_same = strcmp(a->from, a->to) == 0 && a->heads <= 0;
    t->data = data;
    t->size = (uint64_t)(a->rows * model_rewrite_row_bytes(a, a->from));
    if (!failed && is_same && strcmp(a->from, "f32") == 0)
        failed = check_floats(t->r, a, data, a->rows * a->columns);
    if (!failed && !is_same)
        failed = model_rewrite_convert(t, a, data);
    *out_data = is_same ? data : t->bytes;
    return failed ? TN_ERR_REFUSED : TN_OK;
}

// --- writing ----------------------------------------------------------------------------

// The types and the names of what is written.
struct model_rewrite_listing {
    tn_type *types;
    const char **names, **formats;
};

static void list_output(const struct rewrite *r, const struct model_rewrite_listing *out)
{
    for (uint64_t i = 0; i < r->count; i++) {
        const struct rewrite_array *a = &r->arrays[i];
        bool is_blocks = tn_quant_find(a->to) != NULL;
        tn_type type = a->type ? *a->type : (tn_type){.rank = 1};
        type.dtype = is_blocks ? TN_U8 : rewrite_dtype(a->to);
        bool is_bias = a->heads > 0 && type.rank == 1;
        if (type.rank > 0 && !is_bias)
            type.extent[type.rank - 1] =
                is_blocks ? model_rewrite_row_bytes(a, a->to) : a->columns;
        out->types[i] = type;
        out->names[i] = a->name;
        out->formats[i] = is_blocks ? a->to : NULL;
    }
}

static int model_rewrite_save(struct rewrite *r,
                              const struct model_rewrite_listing *listing)
{
    struct rewrite_state state = {.r = r};
    const tn_metadata_list metadata = {sizeof(metadata), sizeof(*r->pairs), r->pairs,
                                       r->num_pairs, r->out};
    const tn_save_options options = {.struct_size = sizeof(options),
                                     .elements = give_elements,
                                     .context = &state,
                                     .types = listing->types,
                                     .metadata = r->is_gguf ? &metadata : NULL,
                                     .block_formats = r->is_gguf ? listing->formats : NULL};
    tn_scope *s = tn_scope_open(r->runtime);
    int failed = tn_save(s, r->out, NULL, listing->names, r->count, &options)
                     ? oops_scope(s) // the first message stays
                     : 0;
    progress(NULL);
    tn_scope_close(s);
    end_array(&state);
    free(state.bytes);
    free(state.rows);
    return failed;
}

static void tell_losses(const struct rewrite *r)
{
    const tn_metadata_list *list = tn_file_metadata(r->file);
    if (!r->is_gguf && list->count)
        note("files of safetensors hold arrays alone: %" PRIu64
             " pairs of metadata, such as the dimensions and the tokenizer, stay behind",
             list->count);
    if (r->is_gguf && !tn_metadata_find(list, "tokenizer.ggml.tokens"))
        note("%s has no tokenizer that can be read, and so %s has none", r->in, r->out);
}

int rewrite_save(struct rewrite *r)
{
    struct model_rewrite_listing listing = {
        .types = calloc(r->count + 1, sizeof(*listing.types)),
        .names = calloc(r->count + 1, sizeof(*listing.names)),
        .formats = calloc(r->count + 1, sizeof(*listing.formats))};
    int failed = listing.types && listing.names && listing.formats ? 0 : oops_memory();
    if (!failed) {
        tell_losses(r);
        list_output(r, &listing);
        failed = model_rewrite_save(r, &listing);
    }
    free(listing.types);
    free(listing.names);
    free(listing.formats);
    return failed;
}

void rewrite_close(struct rewrite *r)
{
    tn_file_close(r->file);
    tn_runtime_close(r->runtime);
    for (uint64_t i = 0; r->arrays && i < r->count; i++)
        free(r->arrays[i].importance);
    free(r->arrays);
    free(r->pairs);
    free(r->floats);
    *r = (struct rewrite){.count = 0};
}
