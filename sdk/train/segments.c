// SPDX-License-Identifier: MIT
// Chains of functions whose derivative keeps the arrays between segments, and computes the
// others again.
//
// This holds for the last segment, too: plans compute gradients in the order in which they
// are asked for, and those of the first functions come first, so that all arrays of the
// last segment would be kept until its own gradients are computed.
#include <stdlib.h>
#include <string.h>
#include <tenon/control.h>
#include "common.h"

// First of `count` links in segment `number`; sizes of segments differ by one at most.
static uint64_t segment_start(uint64_t count, uint64_t segments, uint64_t number)
{
    return count / segments * number + count % segments * number / segments;
}

static tn_status check_segments(tn_scope *scope, const char *function, uint64_t count,
                                uint64_t segments)
{
    if (tn_scope_status(scope) || (count && segments >= 1 && segments <= count))
        return tn_scope_status(scope);
    return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                         "%s: %llu segments of %llu functions, expected 1 to as many as "
                         "there are functions, at least one",
                         function, (unsigned long long)segments, (unsigned long long)count);
}

// --- functions --------------------------------------------------------------------------

struct chain_segment {
    const tn_function_body *bodies;
    void *const *users; // NULL: all are NULL
    uint64_t first, end;
};

static tn_status run_segment(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                             tn_array **outputs, uint64_t num_outputs, void *user)
{
    const struct chain_segment *s = user;
    tn_array **now = malloc((num_inputs + 1) * sizeof(*now));
    tn_status status = now ? TN_OK : TN_ERR_MEMORY;
    if (now)
        memcpy(now, inputs, num_inputs * sizeof(*now));
    for (uint64_t i = s->first; i < s->end && status == TN_OK; i++) {
        memset(outputs, 0, num_outputs * sizeof(*outputs));
        status = s->bodies[i](scope, now, num_inputs, outputs, num_outputs,
                              s->users ? s->users[i] : NULL);
        for (uint64_t k = 0; k < num_outputs && status == TN_OK; k++)
            if (!outputs[k] && tn_scope_status(scope) == TN_OK)
                status = tn_scope_fail(scope, TN_ERR_ARGUMENT,
                                       "checkpoint_sequential: function %llu left output "
                                       "%llu NULL",
                                       (unsigned long long)i, (unsigned long long)k);
        if (status == TN_OK && (status = tn_scope_status(scope)) == TN_OK)
            memcpy(now, outputs, num_outputs * sizeof(*now));
    }
    free(now);
    return status;
}

tn_status tn_checkpoint_sequential(tn_scope *scope, const tn_function_body *bodies,
                                   void *const *users, uint64_t num_bodies,
                                   uint64_t segments, tn_array *const *inputs,
                                   uint64_t num_inputs, tn_array **outputs)
{
    tn_status status =
        check_segments(scope, "checkpoint_sequential", bodies ? num_bodies : 0, segments);
    if (status == TN_OK && (!inputs || !outputs || !num_inputs))
        status = tn_scope_fail(scope, TN_ERR_ARGUMENT,
                               "checkpoint_sequential: no inputs, or outputs is NULL");
    tn_array *const *now = inputs;
    for (uint64_t i = 0; i < segments && status == TN_OK; i++) {
        struct chain_segment s = {bodies, users, segment_start(num_bodies, segments, i),
                                  segment_start(num_bodies, segments, i + 1)};
        status = segments > 1
                     ? tn_checkpoint_call(scope, run_segment, &s, now, num_inputs, outputs,
                                          num_inputs)
                     : run_segment(scope, now, num_inputs, outputs, num_inputs, &s);
        now = outputs;
    }
    return status;
}

// --- layers -----------------------------------------------------------------------------

struct net_segment {
    tn_net *net;
    tn_net_layer layer;
    void *user;
    uint64_t first, end;
};

static tn_array *train_segments_run_layers(const struct net_segment *s, tn_array *x)
{
    for (uint64_t i = s->first; i < s->end && x; i++)
        x = s->layer(s->net, x, i, s->user);
    return x;
}

// Gives the last layer's result, then the states behind the segment. Puts the states' own
// arrays back, as the arrays of the body end with it.
static tn_status layers_body(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                             tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct net_segment *s = user;
    struct tn_params *params = s->net->params;
    tn_scope *around = s->net->scope;
    tn_array **before = malloc((params->count + 1) * sizeof(*before));
    (void)num_inputs, (void)num_outputs;
    if (!before)
        return TN_ERR_MEMORY;
    memcpy(before, params->traced, params->count * sizeof(*before));
    s->net->scope = scope;
    outputs[0] = train_segments_run_layers(s, inputs[0]);
    s->net->scope = around;
    for (uint64_t i = 0, k = 1; i < params->count; i++)
        if (params->items[i].is_state)
            outputs[k++] = params->traced[i];
    memcpy(params->traced, before, params->count * sizeof(*before));
    free(before);
    return tn_scope_status(scope);
}

static tn_array *checkpoint_layers(struct net_segment *s, tn_array *x)
{
    struct tn_params *params = s->net->params;
    uint64_t count = 1;
    for (uint64_t i = 0; i < params->count; i++)
        count += params->items[i].is_state;
    tn_array **outputs = calloc(count, sizeof(*outputs)), *out = NULL;
    if (!outputs)
        tn_scope_fail(s->net->scope, TN_ERR_MEMORY, "net_segments: out of memory");
    else if (tn_checkpoint_call(s->net->scope, layers_body, s, &x, 1, outputs, count) ==
             TN_OK)
        out = outputs[0];
    for (uint64_t i = 0, k = 1; i < params->count && out; i++)
        if (params->items[i].is_state)
            params->traced[i] = outputs[k++];
    free(outputs);
    return out;
}

tn_array *tn_net_segments(tn_net *net, tn_net_layer layer, void *user, uint64_t count,
                          uint64_t segments, tn_array *x)
{
    if (check_segments(net->scope, "net_segments", layer ? count : 0, segments))
        return NULL;
    // Without derivatives, or where parameters are made, there is nothing to compute again.
    bool is_plain = !net->params->traced;
    for (uint64_t i = 0; i < segments && x; i++) {
        struct net_segment s = {net, layer, user, segment_start(count, segments, i),
                                segment_start(count, segments, i + 1)};
        x = is_plain || segments == 1 ? train_segments_run_layers(&s, x)
                                      : checkpoint_layers(&s, x);
    }
    return x;
}
