// SPDX-License-Identifier: MIT
// The weights of the layers that are loaded: read once, converted or packed once, and
// shared by all plans.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/backend.h>
#include <tenon/ops/quant.h>
#include "../base/fail.h"
#include "devices.h"
#include "source.h"
#include "weights.h"

// The most weights that a layer may list.
#define MOST_WEIGHTS 4096
// The most weights whose rows are joined to one matrix.
#define MOST_JOINED 8

struct lm_weight *lm_weight_find(struct lm_weights *weights, const char *name,
                                 int64_t device)
{
    for (uint64_t i = 0; i < weights->count; i++) {
        uint64_t at = (weights->hint + i) % weights->count;
        if (weights->items[at].device == device &&
            strcmp(weights->items[at].name, name) == 0) {
            weights->hint = at;
            return &weights->items[at];
        }
    }
    return NULL;
}

struct lm_weight *lm_product_find(const tn_lm *model, const char *name)
{
    for (uint64_t i = 0; i < model->weights.count; i++) {
        struct lm_weight *weight = &model->weights.items[i];
        if (weight->flags & TN_MODEL_PRODUCT && strcmp(weight->name, name) == 0)
            return weight;
    }
    return NULL;
}

static struct lm_weight *weight_add(struct lm_weights *weights, const char *name,
                                    int64_t device)
{
    struct lm_weight *found = lm_weight_find(weights, name, device);
    if (found)
        return found;
    if (weights->count == weights->room) {
        uint64_t room = weights->room ? 2 * weights->room : 64;
        struct lm_weight *items = realloc(weights->items, room * sizeof(*items));
        if (!items) {
            lm_fail(TN_ERR_MEMORY, "out of memory for %" PRIu64 " weights", room);
            return NULL;
        }
        weights->items = items;
        weights->room = room;
    }
    found = &weights->items[weights->count++];
    *found = (struct lm_weight){.device = device};
    snprintf(found->name, sizeof(found->name), "%s", name);
    return found;
}

static void weight_finish(struct lm_weight *weight)
{
    tn_release(weight->plain);
    tn_release(weight->product);
    tn_release(weight->rows);
    weight->plain = weight->product = weight->rows = NULL;
}

void lm_weights_free(tn_lm *model)
{
    for (uint64_t i = 0; i < model->weights.count; i++)
        weight_finish(&model->weights.items[i]);
    free(model->weights.items);
    model->weights = (struct lm_weights){0};
}

// --- the list of a model ----------------------------------------------------------------

tn_status lm_weights_list(const tn_lm *model, int64_t layer, tn_model_weight **out,
                          uint64_t *count)
{
    *count = 0;
    tn_status status = model->ops->weights(model->host, model->self, layer, NULL, count);
    if (status != TN_OK)
        return lm_fail_core(status);
    if (*count > MOST_WEIGHTS)
        return lm_fail(TN_ERR_INTERNAL,
                       "%s: layer %" PRId64 " lists %" PRIu64
                       " weights, expected at most %d",
                       model->plugin, layer, *count, MOST_WEIGHTS);
    uint64_t room = *count;
    tn_model_weight *list = lm_alloc(room, sizeof(*list));
    if (!list)
        return TN_ERR_MEMORY;
    status = model->ops->weights(model->host, model->self, layer, list, count);
    if (status != TN_OK) {
        free(list);
        return lm_fail_core(status);
    }
    *count = *count < room ? *count : room;
    *out = list;
    return TN_OK;
}

static void write_shape(char *text, size_t size, int32_t rank, const int64_t *extent)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (int32_t i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i ? ", " : "",
                                 extent[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}

// Compares a weight of the file with the weight that the model expects.
static tn_status engine_check_weight(const tn_lm *model, const tn_model_weight *weight,
                                     bool *out_absent)
{
    tn_type type;
    const char *format = NULL, *file = model->source.metadata->name;
    *out_absent = !model->source.find(&model->source, weight->name, &type, &format);
    if (*out_absent)
        return weight->flags & TN_MODEL_OPTIONAL
                   ? TN_OK
                   : lm_fail(TN_ERR_REFUSED, "%s: the weight %s is missing", file,
                             weight->name);
    // Processes may share the output's rows, of which the plugin's numbers say nothing.
    int64_t shares = lm_output_shares(&model->partial, weight->name);
    bool fits = type.rank == weight->rank;
    for (int32_t i = 0; fits && i < type.rank; i++)
        fits = type.extent[i] * (i == 0 ? shares : 1) == weight->extent[i];
    if (!fits) {
        char got[96], expected[96];
        write_shape(got, sizeof(got), type.rank, type.extent);
        write_shape(expected, sizeof(expected), weight->rank, weight->extent);
        return lm_fail(TN_ERR_REFUSED, "%s: the weight %s has shape %s, expected %s", file,
                       weight->name, got, expected);
    }
    if (weight->paired &&
        (weight->head < 1 || weight->extent[0] % weight->head || weight->paired < 0 ||
         weight->paired > weight->head || weight->paired % 2))
        return lm_fail(TN_ERR_INTERNAL,
                       "%s: the weight %s has %" PRId64 " rows, of which %" PRId64
                       " of each %" PRId64 " are in pairs, expected an even number of a "
                       "head that divides the rows",
                       model->plugin, weight->name, weight->extent[0], weight->paired,
                       weight->head);
    if (!format && !tn_dtype_in(type.dtype, TN_FLOAT_DTYPES))
        return lm_fail(TN_ERR_REFUSED, "%s: the weight %s is %s, expected floats or blocks",
                       file, weight->name, tn_dtype_name(type.dtype));
    return TN_OK;
}

// Checks the weights of a part; with `division` also marks them as wanted.
static tn_status visit_part(tn_lm *model, int64_t layer, const struct lm_division *division)
{
    tn_model_weight *list = NULL;
    uint64_t count;
    tn_status status = lm_weights_list(model, layer, &list, &count);
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        bool is_absent;
        list[i].name[TN_MODEL_NAME - 1] = 0;
        status = engine_check_weight(model, &list[i], &is_absent);
        if (status != TN_OK || !division)
            continue;
        int64_t device = division->parts[lm_part_of(division, layer)].device;
        struct lm_weight *weight = weight_add(&model->weights, list[i].name, device);
        if (!weight) {
            status = TN_ERR_MEMORY;
            continue;
        }
        uint32_t flags = list[i].flags & (TN_MODEL_PRODUCT | TN_MODEL_ROWS);
        weight->flags = (weight->is_wanted ? weight->flags : 0) | (flags ? flags : 0);
        weight->head = list[i].head;
        weight->paired = list[i].paired;
        weight->part = layer;
        weight->joined = list[i].joined;
        weight->is_absent = is_absent;
        weight->is_wanted = true;
    }
    free(list);
    return status;
}

tn_status lm_weights_check(tn_lm *model)
{
    tn_status status = visit_part(model, TN_MODEL_EMBEDDING, NULL);
    for (int64_t i = 0; i < model->facts->layers && status == TN_OK; i++)
        status = visit_part(model, i, NULL);
    return status == TN_OK ? visit_part(model, TN_MODEL_OUTPUT, NULL) : status;
}

// --- sizes ------------------------------------------------------------------------------

// Whether a weight with these flags of TN_MODEL_PRODUCT and TN_MODEL_ROWS keeps the file's
// elements: half floats of a matrix. Others become f32.
static bool stays_half(uint32_t flags, tn_dtype dtype)
{
    const uint32_t halves = TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16);
    return flags & (TN_MODEL_PRODUCT | TN_MODEL_ROWS) && tn_dtype_in(dtype, halves);
}

// Bytes of a weight once it is loaded: blocks keep their size, in any packing; elements are
// half floats or f32. A format of another plugin counts as bytes.
static uint64_t engine_weights_loaded_bytes(const tn_type *type, const char *format,
                                            uint32_t flags)
{
    const tn_quant_format *known = format ? tn_quant_find(format) : NULL;
    uint64_t elements = 1;
    for (int32_t i = 0; i < type->rank; i++)
        elements *= (uint64_t)type->extent[i];
    if (format && !known)
        return elements;
    return known ? elements / (uint64_t)known->block * (uint64_t)known->bytes
           : stays_half(flags, type->dtype) ? elements * sizeof(uint16_t)
                                            : elements * sizeof(float);
}

static bool has_name(const tn_model_weight *list, uint64_t count, const char *name)
{
    for (uint64_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return true;
    return false;
}

tn_status lm_weights_bytes(const tn_lm *model, int64_t layer, uint64_t *bytes,
                           uint64_t *again)
{
    tn_model_weight *list = NULL, *first = NULL;
    uint64_t count = 0, num_first = 0;
    tn_status status = lm_weights_list(model, layer, &list, &count);
    if (status == TN_OK && again)
        status = lm_weights_list(model, TN_MODEL_EMBEDDING, &first, &num_first);
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        tn_type type;
        const char *format = NULL;
        list[i].name[TN_MODEL_NAME - 1] = 0;
        if (!model->source.find(&model->source, list[i].name, &type, &format))
            continue;
        bool is_shared = has_name(first, num_first, list[i].name);
        *(is_shared ? again : bytes) +=
            engine_weights_loaded_bytes(&type, format, list[i].flags);
    }
    free(first);
    free(list);
    return status;
}

// --- loading ----------------------------------------------------------------------------

static uint64_t engine_weights_bytes_of(const tn_array *array)
{
    const tn_type *type = tn_array_type(array);
    uint64_t bytes = (uint64_t)tn_dtype_bytes(type->dtype);
    for (int32_t i = 0; i < type->rank; i++)
        bytes *= (uint64_t)type->extent[i];
    return bytes;
}

// The array in the form that steps read: blocks, half floats of a matrix, or else f32.
static tn_array *as_read(tn_scope *scope, const struct lm_weight *weight, tn_array *array,
                         const char *format)
{
    if (format)
        return weight->flags ? array
                             : tn_op(scope, "quant.dequantize/1", TN_IN(array),
                                     tn_attrs("format", format));
    const tn_type *type = tn_array_type(array);
    return !array || type->dtype == TN_F32 || stays_half(weight->flags, type->dtype)
               ? array
               : tn_op(scope, "base.astype/1", TN_IN(array), tn_attrs("dtype", "f32"));
}

// The part on whose device a weight is.
static const struct lm_part *engine_weights_part_of(const tn_lm *model,
                                                    const struct lm_weight *weight)
{
    const struct lm_part *parts = model->division.parts;
    int64_t i = 0;
    while (i + 1 < model->division.count && parts[i].device != weight->device)
        i++;
    return &parts[i];
}

// Whether the weight's device computes in the host's memory, including mapped files.
static bool is_on_host(const tn_lm *model, const struct lm_weight *weight)
{
    return engine_weights_part_of(model, weight)->flags & TN_DEVICE_HOST_MEMORY;
}

// The packing in which kernels of the weight's device read blocks of `format` fastest, with
// all of these `flags`; NULL: plain rows. For a lost device NULL: the next call on it fails
// and reports the loss.
static const char *weight_packing(const tn_lm *model, const struct lm_weight *weight,
                                  const char *format, uint32_t flags)
{
    const tn_packing *packing = NULL;
    const char *device = engine_weights_part_of(model, weight)->name;
    return format &&
                   tn_selected_packing(model->runtime, device, format, &packing) == TN_OK &&
                   packing && (packing->flags & flags) == flags
               ? packing->id
               : NULL;
}

// Opens a scope on the weight's device.
static tn_status open_scope(const tn_lm *model, const struct lm_weight *weight,
                            tn_scope **out_scope)
{
    tn_scope *scope = tn_scope_open(model->runtime);
    if (scope)
        tn_scope_device(scope, engine_weights_part_of(model, weight)->name);
    tn_status status = lm_fail_scope(scope);
    if (status == TN_OK)
        *out_scope = scope;
    else
        tn_scope_close(scope);
    return status == TN_ERR_NOT_FOUND ? TN_ERR_DEVICE : status; // the device was lost
}

// Rows are whole blocks, so rows of any format are reordered as bytes.
tn_array *lm_rows_in_halves(tn_scope *scope, tn_array *array,
                            const struct lm_weight *weight, bool back)
{
    const tn_type *type = tn_array_type(array);
    if (!array || weight->paired == 0)
        return array;
    const tn_shape shape = {.rank = 1, .extent = {type->extent[0]}};
    int64_t *from = lm_alloc((uint64_t)shape.extent[0], sizeof(*from));
    if (!from) {
        tn_scope_fail(scope, TN_ERR_MEMORY, "out of memory for the order of %s",
                      weight->name);
        return NULL;
    }
    for (int64_t row = 0; row < shape.extent[0]; row++) {
        int64_t half = weight->paired / 2, i = row % weight->head;
        int64_t in_head = i < half ? 2 * i : i < 2 * half ? 2 * (i - half) + 1 : i;
        if (back)
            from[row - i + in_head] = row;
        else
            from[row] = row - i + in_head;
    }
    tn_array *ordered =
        tn_op(scope, "base.take/1", TN_IN(array, tn_from_data(scope, TN_I64, &shape, from)),
              TN_NO_ATTRS);
    free(from);
    return ordered;
}

// Keeps `made`, which is computed before the next weight is read, so that intermediate
// values of two weights are never in memory at once. Gives back the pages of the file's
// arrays that it was made of; a GPU has these in memory of its own.
static tn_array *engine_weights_settle(const tn_lm *model, tn_scope *scope,
                                       const struct lm_weight *weight, tn_array *made,
                                       tn_array *const *read, int64_t count)
{
    tn_array *kept = tn_keep(scope, made);
    if (!kept || made == read[0] || tn_eval(scope, kept) != TN_OK)
        return kept;
    for (int64_t i = 0; i < count && is_on_host(model, weight); i++)
        lm_source_forget(model, scope, read[i]);
    return kept;
}

// --- weights that share a product --------------------------------------------------------

// Whether the weight has yet to be loaded, and may share a matrix with others. A weight
// that products read in the file's own memory stays there, alone.
static bool engine_weights_may_join(const tn_lm *model, const struct lm_weight *weight,
                                    const char *format, const tn_type *type)
{
    bool is_in_place =
        is_on_host(model, weight) &&
        (format ? !weight_packing(model, weight, format, 0)
                : type->dtype == TN_F32 || stays_half(weight->flags, type->dtype));
    return weight->joined > 0 && weight->flags == TN_MODEL_PRODUCT && !weight->is_absent &&
           !weight->product && !is_in_place;
}

// Lists the weights that share a matrix with this one, itself included: at most
// MOST_JOINED.
static int64_t engine_weights_list_joined(tn_lm *model, const struct lm_weight *weight,
                                          struct lm_weight **out)
{
    tn_type type, other;
    const char *format = NULL, *others = NULL;
    int64_t count = 0;
    if (!model->source.find(&model->source, weight->name, &type, &format) ||
        !engine_weights_may_join(model, weight, format, &type))
        return 0;
    for (uint64_t i = 0; i < model->weights.count && count < MOST_JOINED; i++) {
        struct lm_weight *item = &model->weights.items[i];
        if (item->part != weight->part || item->joined != weight->joined ||
            item->device != weight->device ||
            !model->source.find(&model->source, item->name, &other, &others) ||
            !engine_weights_may_join(model, item, others, &other))
            continue;
        bool is_alike = format && others ? strcmp(format, others) == 0 : format == others;
        if (is_alike && type.dtype == other.dtype && type.extent[1] == other.extent[1])
            out[count++] = item;
    }
    return count;
}

// Rows of the weights, one weight behind the other, in the packing `packed` unless it is
// NULL.
static tn_array *engine_weights_join_rows(const tn_lm *model, tn_scope *scope,
                                          struct lm_weight *const *joined, int64_t count,
                                          const char *packed)
{
    tn_array *read[MOST_JOINED], *parts[MOST_JOINED];
    for (int64_t i = 0; i < count; i++) {
        read[i] = model->source.load(&model->source, scope, joined[i]->name);
        parts[i] =
            as_read(scope, joined[i], lm_rows_in_halves(scope, read[i], joined[i], false),
                    joined[i]->format);
    }
    tn_array *all = tn_op(scope, "base.concatenate/1", (const tn_array *const *)parts,
                          (uint64_t)count, tn_attrs("axis", (int64_t)0));
    if (packed)
        all = tn_op(scope, "quant.pack/1", TN_IN(all),
                    tn_attrs("format", joined[0]->format, "to", packed));
    return engine_weights_settle(model, scope, joined[0], all, read, count);
}

// Loads weights as rows of one matrix.
static tn_status load_joined(tn_lm *model, struct lm_weight *const *joined, int64_t count)
{
    tn_type type;
    tn_scope *scope;
    int64_t rows = 0;
    tn_status status = open_scope(model, joined[0], &scope);
    if (status != TN_OK)
        return status;
    for (int64_t i = 0; i < count; i++) {
        struct lm_weight *weight = joined[i];
        weight_finish(weight);
        weight->format = NULL;
        model->source.find(&model->source, weight->name, &type, &weight->format);
        weight->first = rows;
        weight->count = type.extent[0];
        rows += type.extent[0];
    }
    const char *format = joined[0]->format,
               *packed = weight_packing(model, joined[0], format, 0);
    tn_array *all = engine_weights_join_rows(model, scope, joined, count, packed);
    for (int64_t i = 0; i < count && all; i++) {
        joined[i]->packed = packed ? packed : format;
        joined[i]->product = tn_retain(NULL, all);
        joined[i]->bytes =
            engine_weights_bytes_of(all) / (uint64_t)rows * (uint64_t)joined[i]->count;
    }
    tn_release(all);
    status = lm_fail_scope(scope);
    tn_scope_close(scope);
    return status;
}

// Whether nothing has to be loaded: the weight is loaded, or absent from the file.
static bool is_loaded(const struct lm_weight *weight)
{
    bool product = weight->flags & TN_MODEL_PRODUCT, rows = weight->flags & TN_MODEL_ROWS;
    return weight->is_absent || ((!product || weight->product) && (!rows || weight->rows) &&
                                 (product || rows || weight->plain));
}

// Loads a weight in the forms that the model asks for.
static tn_status weight_load(tn_lm *model, struct lm_weight *weight)
{
    tn_type type;
    const char *format = NULL;
    struct lm_weight *joined[MOST_JOINED];
    bool product = weight->flags & TN_MODEL_PRODUCT, rows = weight->flags & TN_MODEL_ROWS;
    if (is_loaded(weight))
        return TN_OK;
    int64_t count = engine_weights_list_joined(model, weight, joined);
    if (count > 1)
        return load_joined(model, joined, count);
    weight_finish(weight);
    weight->count = 0;
    model->source.find(&model->source, weight->name, &type, &format);
    tn_scope *scope;
    tn_status status = open_scope(model, weight, &scope);
    if (status != TN_OK)
        return status;
    uint32_t stacked = type.rank < 3 ? 0 : TN_PACKING_STACKED;
    const char *packed = product ? weight_packing(model, weight, format, stacked) : NULL;
    tn_array *read = model->source.load(&model->source, scope, weight->name);
    tn_array *array =
        as_read(scope, weight, lm_rows_in_halves(scope, read, weight, false), format);
    if (packed)
        array = tn_op(scope, "quant.pack/1", TN_IN(array),
                      tn_attrs("format", format, "to", packed));
    array = engine_weights_settle(model, scope, weight, array, &read, 1);
    // `rows` shares the array of `product`, so that the weight is in memory once.
    weight->format = weight->packed = packed ? packed : format;
    if (rows)
        weight->rows = array ? tn_retain(NULL, array) : NULL;
    if (product)
        weight->product = array;
    else if (rows)
        tn_release(array);
    else
        weight->plain = array;
    weight->bytes = array ? engine_weights_bytes_of(array) : 0;
    status = lm_fail_scope(scope);
    tn_scope_close(scope);
    return status;
}

// Bytes of a weight that have yet to be loaded.
static uint64_t missing_bytes(const tn_lm *model, const struct lm_weight *weight)
{
    tn_type type;
    const char *format = NULL;
    return !is_loaded(weight) &&
                   model->source.find(&model->source, weight->name, &type, &format)
               ? engine_weights_loaded_bytes(&type, format, weight->flags)
               : 0;
}

// Loads the wanted weights that are missing, and reports progress.
static tn_status load_missing(tn_lm *model)
{
    struct lm_weights *weights = &model->weights;
    uint64_t *bytes = lm_alloc(weights->count, sizeof(*bytes)), total = 0;
    if (!bytes)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < weights->count; i++)
        total += bytes[i] = missing_bytes(model, &weights->items[i]);
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < weights->count && status == TN_OK; i++) {
        if (is_loaded(&weights->items[i]))
            continue;
        status = weight_load(model, &weights->items[i]);
        uint64_t left = 0; // without weights that share its product
        for (uint64_t k = 0; k < weights->count; k++)
            left += is_loaded(&weights->items[k]) ? 0 : bytes[k];
        if (model->progress && status == TN_OK)
            model->progress(model->progress_context, total - left, total);
    }
    free(bytes);
    return status;
}

tn_status lm_weights_load(tn_lm *model, int64_t first, int64_t end)
{
    tn_status status = TN_OK;
    struct lm_weights *weights = &model->weights;
    const struct lm_division *division = &model->division;
    for (uint64_t i = 0; i < weights->count; i++)
        weights->items[i].is_wanted = false;
    if (first == 0)
        status = visit_part(model, TN_MODEL_EMBEDDING, division);
    for (int64_t i = first; i < end && status == TN_OK; i++)
        status = visit_part(model, i, division);
    if (status == TN_OK && end == model->facts->layers)
        status = visit_part(model, TN_MODEL_OUTPUT, division);
    for (uint64_t i = 0; i < weights->count && status == TN_OK;) {
        if (weights->items[i].is_wanted) {
            i++;
            continue;
        }
        weight_finish(&weights->items[i]);
        weights->items[i] = weights->items[--weights->count];
    }
    return status == TN_OK ? load_missing(model) : status;
}
