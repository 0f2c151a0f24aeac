// SPDX-License-Identifier: MIT
// scan: a graph over the slices of arrays, in order, with carried values. It becomes a
// while_loop whose body cuts the slices and writes its outputs into stacks, in place.
#include "scan.h"

static const tn_input_info scan_inputs[] = {
    {"x", "carried values, arrays to be sliced, constants",
     TN_INPUT_OPTIONAL | TN_INPUT_VARIADIC, TN_ALL_DTYPES},
};
static const tn_output_info scan_outputs[] = {
    {"out", "last carried values, stacks, carried values before each position",
     TN_OUTPUT_OPTIONAL, 0}};
static const tn_attr_field scan_fields[] = {
    TN_REQUIRED_FIELD(tn_scan_attrs, body, TN_ATTR_GRAPH, "applied at each position"),
    TN_I64_FIELD(tn_scan_attrs, carries, 0, "number of carried values"),
    TN_I64_FIELD(tn_scan_attrs, slices, 0, "number of arrays to be sliced"),
    TN_I64_FIELD(tn_scan_attrs, length, -1, "number of positions; -1: that of the slices"),
    TN_BOOL_FIELD(tn_scan_attrs, reverse, 0, "from the last position to the first"),
};

// --- types ------------------------------------------------------------------------------

static tn_status scan_count(const tn_infer *infer, uint64_t *out_count)
{
    const tn_scan_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_graph *body = attrs->body;
    int64_t given = infer->num_inputs;
    if (!body)
        return host->fail(host, TN_ERR_ARGUMENT, "body is not given, expected a graph");
    if (attrs->carries < 0 || attrs->slices < 0 || attrs->carries > given ||
        attrs->slices > given - attrs->carries)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "%" PRId64 " carried values and %" PRId64
                          " arrays to slice, but there are %" PRId64 " inputs",
                          attrs->carries, attrs->slices, given);
    if (body->num_outputs < attrs->carries)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "body has %u outputs, expected at least %" PRId64
                          ", the carried values",
                          body->num_outputs, attrs->carries);
    *out_count = body->num_outputs + (uint64_t)attrs->carries;
    return TN_OK;
}

static tn_type scan_slice_type(const tn_type *type)
{
    tn_type slice = {.dtype = type->dtype, .rank = type->rank - 1};
    for (int32_t i = 0; i < slice.rank; i++)
        slice.extent[i] = type->extent[i + 1];
    return slice;
}

static tn_status stack_type(const tn_host *host, const tn_type *row, int64_t length,
                            tn_type *out)
{
    char text[TYPE_TEXT];
    if (row->rank == TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "a stack of %s would have more than %d axes",
                          type_text(row, text), TN_MAX_RANK);
    *out = (tn_type){.dtype = row->dtype, .rank = row->rank + 1, .extent = {length}};
    for (int32_t i = 0; i < row->rank; i++)
        out->extent[i + 1] = row->extent[i];
    return TN_OK;
}

static tn_status check_slices(const tn_host *host, const struct scan *s,
                              const tn_type *types)
{
    char text[TYPE_TEXT];
    for (uint32_t i = s->carries; i < s->carries + s->slices; i++)
        if (types[i].rank == 0 || types[i].extent[0] != s->length)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "x %u is %s, expected %" PRId64 " slices on its first axis",
                              i, type_text(&types[i], text), s->length);
    return TN_OK;
}

static tn_status check_body(const tn_host *host, const struct scan *s, const tn_type *types,
                            uint32_t num_inputs)
{
    const tn_graph *body = s->attrs->body;
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    if (body->num_inputs > num_inputs)
        return check_graph(host, "body", body, "x", types, num_inputs);
    for (uint32_t i = 0; i < body->num_inputs; i++) {
        int sliced = i >= s->carries && i < s->carries + s->slices;
        tn_type type = sliced ? scan_slice_type(&types[i]) : types[i];
        if (!same_type(&body->inputs[i], &type))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "body takes %s as input %u, %s x %u is %s",
                              type_text(&body->inputs[i], expected), i,
                              sliced ? "a slice of" : "", i, type_text(&type, got));
    }
    return check_carried(host, body, types, s->carries);
}

static tn_status scan_infer(const tn_infer *infer, tn_type *types)
{
    const tn_scan_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    struct scan s = scan_of(attrs, &infer->types[attrs->carries], infer->num_inputs);
    if (s.length < 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "nothing is sliced: expected `length`, got %" PRId64,
                          attrs->length);
    tn_status status = check_slices(host, &s, infer->types);
    if (!status)
        status = check_body(host, &s, infer->types, infer->num_inputs);
    for (uint32_t i = 0; i < infer->num_outputs && !status; i++) {
        uint32_t body_outputs = s.carries + s.stacked;
        if (i < s.carries)
            types[i] = infer->types[i];
        else
            status = stack_type(host,
                                i < body_outputs ? &attrs->body->outputs[i]
                                                 : &infer->types[i - body_outputs],
                                s.length, &types[i]);
    }
    return status;
}

// --- the loop ---------------------------------------------------------------------------

// One position: the loop carries the position's number, the carried values and the stacks
// that are read; its constants are the arrays to be sliced and the scan's constants.
struct scan_step {
    struct scan scan;
    uint64_t unread; // outputs of the scan that nothing reads, as bits
    uint32_t stacks; // number of stacks that are read
};

static int scan_is_read(const struct scan_step *step, uint32_t output)
{
    return !(step->unread >> output & 1);
}

static tn_array *slice_at(const tn_build *build, tn_array *x, tn_array *at)
{
    tn_ints shape = tn_extents(build, x), slice = {.given = 1};
    for (uint32_t i = 1; i < shape.count; i++)
        slice.value[slice.count++] = shape.value[i];
    tn_array *part = build->op(build, "base.dynamic_slice/1", TN_IN(x, at),
                               tn_attrs("sizes", TN_INTS(1)));
    return with_shape(build, "base.reshape/1", part, slice);
}

static tn_array *stack_at(const tn_build *build, tn_array *stack, tn_array *row,
                          tn_array *at)
{
    tn_ints shape = tn_extents(build, row);
    tn_array *part = with_shape(build, "base.reshape/1", row, tn_ints_after(1, &shape));
    return build->op(build, "base.dynamic_slice_update/1", TN_IN(stack, part, at),
                     TN_NO_ATTRS);
}

// Calls the body; `operands` has room for the scan's inputs, `results` for its outputs.
static tn_status step_call(const tn_build *build, const struct scan_step *step,
                           tn_array *const *inputs, tn_array *at, tn_array **operands,
                           tn_array **results)
{
    const struct scan *s = &step->scan;
    tn_array *const *slices = inputs + 1 + s->carries + step->stacks;
    for (uint32_t i = 0; i < s->carries; i++)
        operands[i] = inputs[1 + i];
    for (uint32_t i = 0; i < s->slices; i++)
        operands[s->carries + i] = slice_at(build, slices[i], at);
    for (uint32_t i = 0; i < s->constants; i++)
        operands[s->carries + s->slices + i] = slices[s->slices + i];
    for (uint32_t i = 0; i < s->carries; i++)
        results[s->carries + s->stacked + i] = inputs[1 + i];
    return build->call(build, s->attrs->body, operands,
                       (uint64_t)s->carries + s->slices + s->constants, results,
                       s->attrs->body->num_outputs);
}

static tn_status step_body(const tn_build *build, tn_array *const *inputs,
                           uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                           void *user)
{
    const struct scan_step *step = user;
    const struct scan *s = &step->scan;
    const tn_host *host = build->host;
    tn_array *results[TN_MAX_OUTPUTS], *at = inputs[0];
    tn_array **operands = host->alloc(host, (num_inputs + 1) * sizeof(*operands), 0);
    if (!operands)
        return TN_ERR_MEMORY;
    if (s->attrs->reverse)
        at = build->expr(build, "last, i -> last - i",
                         TN_IN(build->scalar(build, TN_I64, (double)(s->length - 1)), at),
                         TN_NO_ATTRS);
    tn_status status = step_call(build, step, inputs, at, operands, results);
    host->free(host, operands);
    if (status)
        return status;
    uint32_t next = 0;
    outputs[next++] =
        build->expr(build, "i, one -> i + one",
                    TN_IN(inputs[0], build->scalar(build, TN_I64, 1)), TN_NO_ATTRS);
    for (uint32_t i = 0; i < s->carries; i++)
        outputs[next++] = results[i];
    for (uint32_t i = s->carries; next < num_outputs; i++)
        if (scan_is_read(step, i)) {
            outputs[next] = stack_at(build, inputs[next], results[i], at);
            next++;
        }
    return built(outputs[num_outputs - 1]);
}

// Makes the stack of an output, before the first position. NULL after a failure.
static tn_array *new_stack(const tn_build *build, const tn_rule *rule, const struct scan *s,
                           uint32_t output)
{
    tn_type type;
    uint32_t body_outputs = s->carries + s->stacked;
    const tn_type *row = output < body_outputs
                             ? &s->attrs->body->outputs[output]
                             : build->type(rule->inputs[output - body_outputs]);
    if (!row || stack_type(build->host, row, s->length, &type))
        return NULL;
    return with_shape(build, "base.broadcast_to/1", build->scalar(build, type.dtype, 0),
                      ints_of(type.rank, type.extent));
}

// Builds the loop's operands from the scan's.
static tn_status step_args(const tn_build *build, const tn_rule *rule,
                           struct scan_step *step, struct control_args *args)
{
    const struct scan *s = &step->scan;
    args_add(args, build->scalar(build, TN_I64, 0));
    for (uint32_t i = 0; i < s->carries; i++)
        args_add(args, rule->inputs[i]);
    for (uint32_t i = s->carries; i < rule->num_outputs; i++) {
        if (!scan_is_read(step, i))
            continue;
        tn_array *stack = new_stack(build, rule, s, i);
        if (!stack)
            return TN_ERR_ARGUMENT;
        args_add(args, stack);
        step->stacks++;
    }
    for (uint32_t i = s->carries; i < rule->num_inputs; i++)
        args_add(args, rule->inputs[i]);
    return TN_OK;
}

// A scan without positions: the carried values, and empty stacks.
static tn_status no_positions(const tn_build *build, const tn_rule *rule,
                              const struct scan_step *step, tn_array **outputs)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < rule->num_outputs && !status; i++) {
        outputs[i] = NULL;
        if (i < step->scan.carries)
            outputs[i] = rule->inputs[i];
        else if (scan_is_read(step, i))
            status = built(outputs[i] = new_stack(build, rule, &step->scan, i));
    }
    return status;
}

static tn_status scan_decompose(const tn_build *build, const tn_rule *rule,
                                tn_array **outputs)
{
    struct scan_step step = {.scan = scan_of_rule(build, rule), .unread = rule->unread};
    tn_array *results[TN_MAX_OUTPUTS + 1];
    struct control_args args;
    if (step.scan.length == 0)
        return no_positions(build, rule, &step, outputs);
    tn_status status =
        args_init(&args, build, (uint64_t)rule->num_inputs + TN_MAX_OUTPUTS + 1);
    if (!status)
        status = step_args(build, rule, &step, &args);
    uint32_t carried = 1 + step.scan.carries + step.stacks;
    if (!status && carried > TN_MAX_OUTPUTS)
        status = build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                                   "%u carried values and stacks, expected at most %d",
                                   carried - 1, TN_MAX_OUTPUTS - 1);
    const tn_graph *body = status ? NULL : args_trace(&args, step_body, &step, carried);
    if (!status)
        status = body ? args_apply(&args, "base.while_loop/1",
                                   tn_attrs("body", body, "times", step.scan.length),
                                   results, carried)
                      : TN_ERR_ARGUMENT;
    args_finish(&args);
    for (uint32_t i = 0, next = 1; i < rule->num_outputs && !status; i++)
        outputs[i] =
            i < step.scan.carries || scan_is_read(&step, i) ? results[next++] : NULL;
    return status;
}

const tn_primitive base_scan = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.scan/1",
    .role = TN_ROLE_SCAN,
    .doc = "Applies a graph to the slices of arrays in order, with values that are carried "
           "from one to the next, and stacks what it gives.",
    TN_INPUTS(scan_inputs),
    TN_OUTPUTS(scan_outputs),
    .attrs = TN_ATTR_TABLE(tn_scan_attrs, scan_fields),
    .infer = scan_infer,
    .decompose = scan_decompose,
    .vjp = scan_vjp,
    .jvp = scan_jvp,
    .vmap = scan_vmap,
    .count_outputs = scan_count,
};
