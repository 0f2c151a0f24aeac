// SPDX-License-Identifier: MIT
// Shape inference: the inputs' types give the names in a function's shapes their values;
// these give the outputs' types and the extents that are passed as arguments.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tenon/checked.h>
#include "pack.h"

enum { SHAPE_TEXT = 200 };

static const char *ffi_shape_text(int32_t rank, const int64_t *extent,
                                  char text[SHAPE_TEXT])
{
    size_t at = (size_t)snprintf(text, SHAPE_TEXT, "[");
    for (int32_t i = 0; i < rank && at < SHAPE_TEXT; i++)
        at += (size_t)snprintf(text + at, SHAPE_TEXT - at, "%s%" PRId64, i ? ", " : "",
                               extent[i]);
    if (at < SHAPE_TEXT)
        snprintf(text + at, SHAPE_TEXT - at, "]");
    return text;
}

// The operand's shape as the manifest has it: "[..., m, n]".
static const char *expected_text(const struct ffi_operand *operand, char text[SHAPE_TEXT])
{
    static const char *const leads[] = {"", "...", "*"};
    size_t at = (size_t)snprintf(text, SHAPE_TEXT, "[%s", leads[operand->lead]);
    for (uint32_t i = 0; i < operand->rank && at < SHAPE_TEXT; i++)
        at += (size_t)snprintf(text + at, SHAPE_TEXT - at, "%s%s",
                               i || operand->lead ? ", " : "", operand->axes[i].text);
    if (at < SHAPE_TEXT)
        snprintf(text + at, SHAPE_TEXT - at, "]");
    return text;
}

// --- dtypes ----------------------------------------------------------------------------

static tn_status unknown_dtype(const struct ffi_function *function, const char *name,
                               tn_dtype dtype, struct problem *problem)
{
    char list[120] = "";
    for (uint32_t i = 0, at = 0; i < function->num_variants && at < sizeof(list); i++)
        at += (uint32_t)snprintf(list + at, sizeof(list) - at, "%s%s", i ? " or " : "",
                                 tn_dtype_name(function->variants[i].dtype));
    return problem_set(problem, TN_ERR_ARGUMENT,
                       "%s is %s, expected %s: convert it with astype", name,
                       tn_dtype_name(dtype), list);
}

// The first input of dtype T chooses the variant. Without such an input there is one
// variant only (check_variants).
static tn_status bind_dtypes(const struct ffi_function *function, const tn_type *types,
                             struct bound *out, struct problem *problem)
{
    const struct ffi_operand *first = NULL;
    out->variant = 0;
    for (uint32_t i = 0; i < function->num_inputs; i++) {
        const struct ffi_operand *input = &function->operands[i];
        tn_dtype expected = dtype_or(input->dtype, function, out->variant);
        if (input->dtype == TN_DTYPE_NONE && !first) {
            first = input;
            while (out->variant < function->num_variants &&
                   function->variants[out->variant].dtype != types[i].dtype)
                out->variant++;
            if (out->variant == function->num_variants)
                return unknown_dtype(function, input->name, types[i].dtype, problem);
            expected = types[i].dtype;
        }
        if (types[i].dtype != expected)
            return problem_set(problem, TN_ERR_ARGUMENT,
                               "%s is %s, expected %s%s%s: convert one with astype",
                               input->name, tn_dtype_name(types[i].dtype),
                               tn_dtype_name(expected),
                               input->dtype == TN_DTYPE_NONE ? " as " : "",
                               input->dtype == TN_DTYPE_NONE ? first->name : "");
    }
    return TN_OK;
}

// --- leading axes ----------------------------------------------------------------------

// Broadcasts the leading axes of `input` with those of the inputs before.
static tn_status join_lead(const struct ffi_operand *input, const tn_type *type,
                           struct bound *out, struct problem *problem)
{
    char has[SHAPE_TEXT], other[SHAPE_TEXT];
    int32_t rank = type->rank - (int32_t)input->rank;
    int32_t joined = rank > out->lead_rank ? rank : out->lead_rank;
    int64_t lead[TN_MAX_RANK];
    for (int32_t i = 0; i < joined; i++) {
        int32_t mine = rank - joined + i, theirs = out->lead_rank - joined + i;
        int64_t a = mine >= 0 ? type->extent[mine] : 1;
        int64_t b = theirs >= 0 ? out->lead[theirs] : 1;
        if (a != b && a != 1 && b != 1)
            return problem_set(problem, TN_ERR_ARGUMENT,
                               "%s has shape %s, which does not broadcast with %s",
                               input->name, ffi_shape_text(type->rank, type->extent, has),
                               ffi_shape_text(out->lead_rank, out->lead, other));
        lead[i] = a == 1 ? b : a;
    }
    memcpy(out->lead, lead, (size_t)joined * sizeof(*lead));
    out->lead_rank = joined;
    return TN_OK;
}

static tn_status bind_leads(const struct ffi_function *function, const tn_type *types,
                            struct bound *out, struct problem *problem)
{
    char expected[SHAPE_TEXT];
    out->lead_rank = 0;
    for (uint32_t i = 0; i < function->num_inputs; i++) {
        const struct ffi_operand *input = &function->operands[i];
        int32_t rank = (int32_t)input->rank;
        if (types[i].rank < rank || (input->lead == LEAD_NONE && types[i].rank != rank))
            return problem_set(problem, TN_ERR_ARGUMENT,
                               "%s has rank %d, expected %s%d: %s", input->name,
                               types[i].rank, input->lead == LEAD_NONE ? "" : "at least ",
                               rank, expected_text(input, expected));
        tn_status status =
            input->lead == LEAD_NONE ? TN_OK : join_lead(input, &types[i], out, problem);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

// --- names -----------------------------------------------------------------------------

// The extents of the operand's own axes.
static const int64_t *own_axes(const struct ffi_operand *operand, const tn_type *type)
{
    return type->extent + type->rank - (int32_t)operand->rank;
}

static void bind_shape_names(const struct ffi_function *function, const tn_type *types,
                             struct bound *out)
{
    bool is_bound[MAX_NAMES] = {false};
    for (uint32_t i = 0; i < function->num_inputs; i++) {
        const struct ffi_operand *input = &function->operands[i];
        for (uint32_t k = 0; k < input->rank; k++) {
            int name = extent_variable(&input->axes[k]);
            if (name < 0 || function->names[name].source != NAME_SHAPE || is_bound[name])
                continue;
            is_bound[name] = true;
            out->values[name] = own_axes(input, &types[i])[k];
        }
    }
}

static tn_status ffi_shape_count_elements(const struct bound *bound, int64_t *out,
                                          struct problem *problem)
{
    *out = 1;
    for (int32_t i = 0; i < bound->lead_rank; i++)
        if (!tn_checked_multiply_extents(*out, bound->lead[i], out))
            return problem_set(problem, TN_ERR_ARGUMENT,
                               "the number of elements overflows 63 bits");
    return TN_OK;
}

// Names of attributes, "size", and then the defined names in topological order.
static tn_status bind_other_names(const struct ffi_function *function, const void *attrs,
                                  struct bound *out, struct problem *problem)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < function->num_names && status == TN_OK; i++) {
        const struct ffi_name *name = &function->names[i];
        if (name->source == NAME_ATTRIBUTE)
            out->values[i] = ((const int64_t *)attrs)[name->index];
        else if (name->source == NAME_SIZE)
            status = ffi_shape_count_elements(out, &out->values[i], problem);
    }
    for (uint32_t i = 0; i < function->num_ordered && status == TN_OK; i++)
        status = extent_eval(&function->names[function->order[i]].value, out->values,
                             &out->values[function->order[i]], problem);
    return status;
}

// Fails unless each input's own axes have the extents of the manifest's expressions.
static tn_status ffi_shape_check_axes(const struct ffi_function *function,
                                      const tn_type *types, const struct bound *bound,
                                      struct problem *problem)
{
    for (uint32_t i = 0; i < function->num_inputs; i++) {
        const struct ffi_operand *input = &function->operands[i];
        for (uint32_t k = 0; k < input->rank; k++) {
            int64_t expected = 0, got = own_axes(input, &types[i])[k];
            char has[SHAPE_TEXT], wants[SHAPE_TEXT];
            tn_status status =
                extent_eval(&input->axes[k], bound->values, &expected, problem);
            if (status != TN_OK)
                return status;
            if (got != expected)
                return problem_set(
                    problem, TN_ERR_ARGUMENT,
                    "%s has shape %s, expected %s with %s = %" PRId64, input->name,
                    ffi_shape_text(types[i].rank, types[i].extent, has),
                    expected_text(input, wants), input->axes[k].text, expected);
        }
    }
    return TN_OK;
}

// Fails unless the manifest's conditions hold.
static tn_status check_conditions(const struct ffi_function *function,
                                  const struct bound *bound, struct problem *problem)
{
    for (uint32_t i = 0; i < function->num_conditions; i++) {
        const struct ffi_condition *condition = &function->conditions[i];
        int64_t left = 0, right = 0;
        tn_status status = extent_eval(&condition->left, bound->values, &left, problem);
        if (status == TN_OK)
            status = extent_eval(&condition->right, bound->values, &right, problem);
        if (status != TN_OK)
            return status;
        uint32_t compared = left < right ? 1 : left == right ? 2 : 4;
        if (!(condition->accepted & compared))
            return problem_set(problem, TN_ERR_ARGUMENT, "%s = %" PRId64 ", expected %s",
                               condition->left.text, left, condition->text);
    }
    return TN_OK;
}

tn_status bind_types(const struct ffi_function *function, const tn_type *types,
                     const void *attrs, struct bound *out, struct problem *problem)
{
    tn_status status = bind_dtypes(function, types, out, problem);
    if (status == TN_OK)
        status = bind_leads(function, types, out, problem);
    if (status != TN_OK)
        return status;
    bind_shape_names(function, types, out);
    status = bind_other_names(function, attrs, out, problem);
    if (status == TN_OK)
        status = ffi_shape_check_axes(function, types, out, problem);
    return status == TN_OK ? check_conditions(function, out, problem) : status;
}

// --- outputs and arguments -------------------------------------------------------------

tn_status output_type(const struct ffi_function *function, const struct bound *bound,
                      uint32_t index, tn_type *out, struct problem *problem)
{
    const struct ffi_operand *output = &function->operands[function->num_inputs + index];
    int32_t lead = output->lead == LEAD_NONE ? 0 : bound->lead_rank;
    *out = (tn_type){.dtype = dtype_or(output->dtype, function, bound->variant)};
    if (lead + (int32_t)output->rank > TN_MAX_RANK)
        return problem_set(problem, TN_ERR_ARGUMENT, "%s would have rank %d, at most %d",
                           output->name, lead + (int32_t)output->rank, TN_MAX_RANK);
    memcpy(out->extent, bound->lead, (size_t)lead * sizeof(int64_t));
    out->rank = lead + (int32_t)output->rank;
    for (uint32_t i = 0; i < output->rank; i++) {
        int64_t *extent = &out->extent[lead + (int32_t)i];
        tn_status status = extent_eval(&output->axes[i], bound->values, extent, problem);
        if (status != TN_OK)
            return status;
        if (*extent < 0)
            return problem_set(problem, TN_ERR_ARGUMENT,
                               "axis %u of %s: %s = %" PRId64 ", expected at least 0", i,
                               output->name, output->axes[i].text, *extent);
    }
    return TN_OK;
}

bool fits(tn_dtype type, int64_t value)
{
    switch (type) {
    case TN_BOOL:
        return value == 0 || value == 1;
    case TN_I8:
        return value >= INT8_MIN && value <= INT8_MAX;
    case TN_I16:
        return value >= INT16_MIN && value <= INT16_MAX;
    case TN_I32:
        return value >= INT32_MIN && value <= INT32_MAX;
    case TN_U8:
        return value >= 0 && value <= UINT8_MAX;
    case TN_U16:
        return value >= 0 && value <= UINT16_MAX;
    case TN_U32:
        return value >= 0 && value <= UINT32_MAX;
    case TN_U64:
        return value >= 0;
    default:
        return true;
    }
}

tn_status check_extents(const struct ffi_function *function, const struct bound *bound,
                        struct problem *problem)
{
    for (uint32_t i = 0; i < function->num_args; i++) {
        const struct argument *arg = &function->args[i];
        int64_t value = 0;
        if (arg->kind != ARG_EXTENT)
            continue;
        tn_status status = extent_eval(&arg->value, bound->values, &value, problem);
        if (status != TN_OK)
            return status;
        if (!fits(arg->type, value))
            return problem_set(problem, TN_ERR_ARGUMENT,
                               "%s = %" PRId64 " does not fit argument %u of %s, %s",
                               arg->value.text, value, i,
                               function->variants[bound->variant].symbol,
                               tn_dtype_name(arg->type));
    }
    return TN_OK;
}

tn_status check_attributes(const struct ffi_function *function, const void *attrs,
                           struct problem *problem)
{
    const int64_t *values = attrs;
    for (uint32_t i = 0; i < function->num_fields; i++)
        if (function->fields[i].kind == TN_ATTR_I64 &&
            (values[i] < function->least[i] || values[i] > function->most[i]))
            return problem_set(problem, TN_ERR_ARGUMENT,
                               "%s = %" PRId64 ", expected %" PRId64 " to %" PRId64,
                               function->fields[i].name, values[i], function->least[i],
                               function->most[i]);
    return TN_OK;
}
