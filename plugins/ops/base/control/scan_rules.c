// SPDX-License-Identifier: MIT
// Derivatives and batches of scan. Each is another scan.
#include "scan.h"

// --- gradients --------------------------------------------------------------------------

// The scan of gradients goes backwards through the positions. It carries the cotangents of
// carried floats, and the sums of gradients of constants. Its slices are the carried values
// before each position, the arrays to be sliced, and the given cotangents of stacks; its
// constants are the scan's.
struct scan_backward {
    struct scan scan;
    tn_array *const *cotangents; // by output of the scan; NULL: not given
    const uint8_t *wanted;       // by input of the body: whether its gradient is built
    uint32_t num_carried;        // of the scan of gradients
};

static int carries_float(const struct scan *s, uint32_t i)
{
    return tn_is_float(s->attrs->body->outputs[i].dtype);
}

// `operands` has room for the body's inputs, `gradients` for the wanted ones.
static tn_status position_gradients(const tn_build *build, const struct scan_backward *b,
                                    tn_array *const *inputs, tn_array **operands,
                                    tn_array **gradients)
{
    const struct scan *s = &b->scan;
    tn_array *cotangents[TN_MAX_OUTPUTS] = {NULL};
    uint32_t at = b->num_carried, own = 0, count = s->carries + s->slices;
    for (uint32_t i = 0; i < count; i++)
        operands[i] = inputs[at++];
    for (uint32_t i = 0; i < s->carries; i++)
        if (carries_float(s, i))
            cotangents[i] = inputs[own++];
    for (uint32_t i = s->carries; i < s->carries + s->stacked; i++)
        cotangents[i] = b->cotangents[i] ? inputs[at++] : NULL;
    for (uint32_t i = 0; i < s->carries; i++) // saved values' cotangents come later
        at += b->cotangents[s->carries + s->stacked + i] != NULL;
    for (uint32_t i = 0; i < s->constants; i++)
        operands[count + i] = inputs[at++];
    return build_gradients(build, s->attrs->body, operands, count + s->constants,
                           cotangents, b->wanted, gradients);
}

// The position, among the inputs, of the first saved value's cotangent.
static uint32_t saved_at(const struct scan_backward *b)
{
    const struct scan *s = &b->scan;
    uint32_t at = b->num_carried + s->carries + s->slices;
    for (uint32_t i = s->carries; i < s->carries + s->stacked; i++)
        at += b->cotangents[i] != NULL;
    return at;
}

static tn_status backward_body(const tn_build *build, tn_array *const *inputs,
                               uint64_t num_inputs, tn_array **outputs,
                               uint64_t num_outputs, void *user)
{
    const struct scan_backward *b = user;
    const struct scan *s = &b->scan;
    const tn_host *host = build->host;
    uint64_t room = (uint64_t)s->carries + s->slices + s->constants + 1;
    tn_array **operands = host->alloc(host, 2 * room * sizeof(*operands), 0);
    if (!operands)
        return TN_ERR_MEMORY;
    tn_array **gradients = operands + room;
    tn_status status = position_gradients(build, b, inputs, operands, gradients);
    uint32_t next = 0, k = 0, saved = saved_at(b);
    for (uint32_t i = 0; i < s->carries && !status; i++) {
        tn_array *more =
            b->cotangents[s->carries + s->stacked + i] ? inputs[saved++] : NULL;
        if (carries_float(s, i))
            outputs[next++] = tn_add_terms(build, gradients[k++], more);
    }
    // Gradients list slices before constants; the outputs list constants first.
    uint32_t of_slices = k;
    for (uint32_t i = 0; i < s->slices; i++)
        k += b->wanted[s->carries + i];
    for (; next < b->num_carried && !status; next++)
        outputs[next] = tn_add_terms(build, inputs[next], gradients[k++]);
    for (; next < num_outputs && !status; next++)
        outputs[next] = gradients[of_slices++];
    (void)num_inputs;
    host->free(host, operands);
    return status;
}

// Adds the operands of the scan of gradients, and counts carried values and slices.
static void backward_args(const tn_rule *rule, const struct scan *s,
                          tn_array *const *cotangents, const uint8_t *wanted,
                          struct control_args *args, uint32_t *num_carried,
                          uint32_t *num_slices)
{
    const tn_build *build = args->build;
    uint32_t count = s->carries + s->slices, begin;
    for (uint32_t i = 0; i < s->carries; i++)
        if (carries_float(s, i))
            args_add(args, cotangents[i] ? cotangents[i]
                                         : zeros_like(build, rule->inputs[i],
                                                      s->attrs->body->outputs[i].dtype));
    for (uint32_t i = count; i < rule->num_inputs; i++)
        if (wanted[i])
            args_add(args, zeros_like(build, rule->inputs[i],
                                      build->type(rule->inputs[i])->dtype));
    *num_carried = begin = args->count;
    for (uint32_t i = 0; i < s->carries; i++)
        args_add_slices(args, rule->outputs[s->carries + s->stacked + i]);
    for (uint32_t i = s->carries; i < count; i++)
        args_add_slices(args, rule->inputs[i]);
    for (uint32_t i = s->carries; i < rule->num_outputs; i++)
        if (cotangents[i])
            args_add_slices(args, cotangents[i]);
    *num_slices = args->count - begin;
    for (uint32_t i = count; i < rule->num_inputs; i++)
        args_add(args, rule->inputs[i]);
}

// Stores the results: cotangents of carried floats, sums of constants, stacks of slices.
static void give_gradients(const struct scan *s, const uint64_t *wanted,
                           uint32_t num_inputs, tn_array *const *results,
                           tn_array **gradients)
{
    uint32_t next = 0, count = s->carries + s->slices;
    for (uint32_t i = 0; i < s->carries; i++)
        if (carries_float(s, i)) {
            if (wants(wanted, i))
                gradients[i] = results[next];
            next++;
        }
    for (uint32_t i = count; i < num_inputs; i++)
        if (wants(wanted, i))
            gradients[i] = results[next++];
    for (uint32_t i = s->carries; i < count; i++)
        if (wants(wanted, i))
            gradients[i] = results[next++];
}

static tn_status go_back(const tn_rule *rule, tn_array *const *cotangents,
                         const uint64_t *wanted, struct control_args *args,
                         tn_array **gradients)
{
    const tn_build *build = args->build;
    uint8_t *takes_part = args->takes_part;
    struct scan_backward b = {scan_of_rule(build, rule), cotangents, takes_part, 0};
    const struct scan *s = &b.scan;
    tn_array *results[TN_MAX_OUTPUTS];
    uint32_t num_outputs, num_slices = 0;
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        takes_part[i] = i < s->carries ? carries_float(s, i) != 0 : wants(wanted, i) != 0;
    backward_args(rule, s, cotangents, takes_part, args, &b.num_carried, &num_slices);
    num_outputs = b.num_carried;
    for (uint32_t i = s->carries; i < s->carries + s->slices; i++)
        num_outputs += takes_part[i];
    // The scan has these outputs and its own saved values.
    if (num_outputs + b.num_carried > TN_MAX_OUTPUTS)
        return build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                                 "gradients of %u carried values and constants and of %u "
                                 "slices, expected at most %d, the former counted twice",
                                 b.num_carried, num_outputs - b.num_carried,
                                 TN_MAX_OUTPUTS);
    if (num_outputs == 0)
        return TN_OK;
    const tn_graph *body = args_trace(args, backward_body, &b, num_outputs);
    if (!body)
        return TN_ERR_ARGUMENT;
    tn_status status =
        args_apply(args, "base.scan/1",
                   tn_attrs("body", body, "carries", (int64_t)b.num_carried, "slices",
                            (int64_t)num_slices, "length", s->length, "reverse",
                            (int64_t)!s->attrs->reverse),
                   results, (uint64_t)num_outputs + b.num_carried);
    if (!status)
        give_gradients(s, wanted, rule->num_inputs, results, gradients);
    return status;
}

tn_status scan_vjp(const tn_build *build, const tn_rule *rule, tn_array *const *cotangents,
                   const uint64_t *wanted, tn_array **gradients)
{
    struct control_args args;
    tn_status status = args_init_rule(
        &args, build, rule, 2 * (uint64_t)rule->num_inputs + 3 * (uint64_t)TN_MAX_OUTPUTS);
    if (!status)
        status = go_back(rule, cotangents, wanted, &args, gradients);
    args_finish(&args);
    return status;
}

// --- tangents ---------------------------------------------------------------------------

static void push_part(const tn_rule *rule, const struct scan *s, tn_array *const *tangents,
                      struct control_args *args, uint32_t from, uint32_t end)
{
    const tn_build *build = args->build;
    struct control_position *in = args->positions;
    void (*add)(struct control_args *, tn_array *) =
        from == s->carries && end == s->carries + s->slices ? args_add_slices : args_add;
    for (uint32_t i = from; i < end; i++) {
        in[i] = (struct control_position){(int32_t)args->count, -1};
        add(args, rule->inputs[i]);
    }
    for (uint32_t i = from; i < end; i++) {
        tn_array *tangent = tangents[i];
        if (!tangent && i < s->carries && carries_float(s, i))
            tangent = zeros_like(build, rule->inputs[i], s->attrs->body->outputs[i].dtype);
        if (!tangent)
            continue;
        in[i].other = (int32_t)args->count;
        add(args, tangent);
    }
}

// Sets the positions of outputs [from, end) of the body and the tangents of the floats
// among them.
static void position_outputs(const struct scan *s, struct control_position *out,
                             uint32_t from, uint32_t end, uint32_t *next)
{
    for (uint32_t i = from; i < end; i++)
        out[i] = (struct control_position){(int32_t)(*next)++, -1};
    for (uint32_t i = from; i < end; i++)
        if (carries_float(s, i))
            out[i].other = (int32_t)(*next)++;
}

// Positions of the body's inputs and outputs and their tangents. Inputs: carried values,
// tangents of their floats, slices and their given tangents, constants likewise. Outputs:
// carried values and tangents, then stacks and tangents.
static tn_status scan_rules_push(const tn_rule *rule, tn_array *const *tangents,
                                 struct control_args *args, tn_array **out_tangents)
{
    const tn_build *build = args->build;
    struct scan s = scan_of_rule(build, rule);
    tn_array *results[TN_MAX_OUTPUTS];
    struct control_position out[TN_MAX_OUTPUTS];
    const struct tangents t = {s.attrs->body, args->positions, out};
    uint32_t next = 0, count = s.carries + s.slices, num_slices;
    push_part(rule, &s, tangents, args, 0, s.carries);
    uint32_t num_carried = args->count;
    push_part(rule, &s, tangents, args, s.carries, count);
    num_slices = args->count - num_carried;
    push_part(rule, &s, tangents, args, count, rule->num_inputs);
    position_outputs(&s, out, 0, s.carries, &next);
    position_outputs(&s, out, s.carries, s.carries + s.stacked, &next);
    if (next + num_carried > TN_MAX_OUTPUTS)
        return build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                                 "with tangents the scan has %u outputs, expected at most "
                                 "%d",
                                 next + num_carried, TN_MAX_OUTPUTS);
    const tn_graph *body = args_trace_tangents(args, &t, next);
    if (!body)
        return TN_ERR_ARGUMENT;
    tn_status status = args_apply(args, "base.scan/1",
                                  tn_attrs("body", body, "carries", (int64_t)num_carried,
                                           "slices", (int64_t)num_slices, "length",
                                           s.length, "reverse", s.attrs->reverse),
                                  results, (uint64_t)next + num_carried);
    for (uint32_t i = 0; i < rule->num_outputs && !status; i++) {
        uint32_t saved = s.carries + s.stacked;
        int32_t at = out[i < saved ? i : i - saved].other;
        if (at >= 0)
            out_tangents[i] = results[i < saved ? at : (int32_t)next + at];
    }
    return status;
}

tn_status scan_jvp(const tn_build *build, const tn_rule *rule, tn_array *const *tangents,
                   tn_array **out_tangents)
{
    struct control_args args;
    tn_status status = args_init_rule(&args, build, rule, 2 * (uint64_t)rule->num_inputs);
    if (!status)
        status = scan_rules_push(rule, tangents, &args, out_tangents);
    args_finish(&args);
    return status;
}

// --- batches ----------------------------------------------------------------------------

// Carried values have the batch in front, slices behind their first axis.
static void scan_rules_batch_args(const tn_rule *rule, const struct scan *s,
                                  const int32_t *axes, int64_t size,
                                  struct control_args *args)
{
    const tn_build *build = args->build;
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        tn_array *x = rule->inputs[i];
        args->takes_part[i] = i < s->carries || axes[i] >= 0;
        if (i < s->carries)
            args_add(args, tn_batch_whole(build, x, axes[i], size));
        else if (i < s->carries + s->slices)
            args_add_slices(args, axes[i] < 0 ? x : tn_move_axis(build, x, axes[i], 1));
        else
            args_add(args, axes[i] < 0 ? x : tn_move_axis(build, x, axes[i], 0));
    }
}

tn_status scan_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                    int64_t size, tn_array **outputs, int32_t *out_axes)
{
    struct scan s = scan_of(rule->attrs, NULL, rule->num_inputs);
    struct control_args args;
    tn_status status = args_init_rule(&args, build, rule, rule->num_inputs);
    if (s.length < 0) // the first extent of a batched array's slice
        s.length = build->type(rule->inputs[s.carries])->extent[axes[s.carries] == 0];
    if (!status) {
        scan_rules_batch_args(rule, &s, axes, size, &args);
        const tn_graph *body = args_trace_batch(&args, s.attrs->body, args.takes_part, size,
                                                s.carries + s.stacked);
        status = body ? args_apply(&args, "base.scan/1",
                                   tn_attrs("body", body, "carries", s.attrs->carries,
                                            "slices", s.attrs->slices, "length", s.length,
                                            "reverse", s.attrs->reverse),
                                   outputs, rule->num_outputs)
                      : TN_ERR_ARGUMENT;
    }
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        out_axes[i] = i >= s.carries; // stacks have their positions in front of the batch
    args_finish(&args);
    return status;
}
