// SPDX-License-Identifier: MIT
// Shared by cond, while_loop, scan and checkpoint: checks of graphs against types, lists of
// operands, and graphs made of graphs.
#ifndef BASE_CONTROL_H
#define BASE_CONTROL_H

#include "../pack.h"

// --- types ------------------------------------------------------------------------------

#define TYPE_TEXT (SHAPE_TEXT + 16)
// Writes "f32[256, 512]" to `buffer`, and returns `buffer`.
const char *type_text(const tn_type *type, char buffer[TYPE_TEXT]);
int same_type(const tn_type *a, const tn_type *b);

// Fails unless the graph in attribute `name` takes inputs of the first of `types`. `what`
// names the operands in the message: "x".
tn_status check_graph(const tn_host *host, const char *name, const tn_graph *graph,
                      const char *what, const tn_type *types, uint32_t count);
// Fails unless `graph` gives one bool.
tn_status check_condition(const tn_host *host, const char *name, const tn_graph *graph);
// Fails unless the first `count` outputs of the body have the types of the carried values.
tn_status check_carried(const tn_host *host, const tn_graph *body, const tn_type *types,
                        uint32_t count);

// --- operands ---------------------------------------------------------------------------

// The position among an outer graph's inputs of an operand (`value`) and of its tangent
// (`other`); -1: none.
struct control_position {
    int32_t value, other;
};

// A list of operands, and the types that a graph's inputs have for them. Rules also store,
// by their own input, whether it takes part (in gradients, tangents, a batch) and its
// position.
struct control_args {
    const tn_build *build;
    tn_array **at;
    tn_type *types;
    uint8_t *takes_part;
    struct control_position *positions;
    uint32_t count;
};
// args_finish() is due after a failure, too.
tn_status args_init(struct control_args *args, const tn_build *build, uint64_t room);
tn_status args_init_rule(struct control_args *args, const tn_build *build,
                         const tn_rule *rule, uint64_t room);
void args_finish(struct control_args *args);

// The list without its first operand, borrowed.
static inline struct control_args args_behind(const struct control_args *args)
{
    return (struct control_args){.build = args->build,
                                 .at = args->at + 1,
                                 .types = args->types + 1,
                                 .count = args->count - 1};
}
void args_add(struct control_args *args, tn_array *array);
// Adds an array whose slices the graph takes: the input's type lacks the first axis.
void args_add_slices(struct control_args *args, tn_array *array);

// Traces `body` with inputs of the types in `control_args`. NULL after a failure.
const tn_graph *args_trace(const struct control_args *args, tn_build_body body, void *user,
                           uint64_t num_outputs);

// Applies a primitive of this pack to the operands.
tn_status args_apply(const struct control_args *args, const char *primitive,
                     tn_attr_list attrs, tn_array **outputs, uint64_t num_outputs);

static inline int is_float_array(const tn_build *build, const tn_array *array)
{
    const tn_type *type = build->type(array);
    return type && tn_is_float(type->dtype);
}

// --- graphs of graphs -------------------------------------------------------------------

// The most inputs of a graph that has derivatives or is mapped. More are refused with a
// message.
#define MOST_INPUTS 4096
tn_status check_room(const tn_build *build, uint32_t num_inputs);

// Builds the outputs and output tangents of `graph`, for inputs at `in`. Writes output i to
// outputs[out[i].value], and its tangent, or zeros, to outputs[out[i].other].
struct tangents {
    const tn_graph *graph;
    const struct control_position *in, *out;
};
tn_status build_tangents(const tn_build *build, const struct tangents *t,
                         tn_array *const *inputs, tn_array **outputs);
// Traces such a graph. NULL after a failure.
const tn_graph *args_trace_tangents(const struct control_args *args,
                                    const struct tangents *t, uint64_t num_outputs);

// Builds the gradients of a graph's inputs from `cotangents`, one for each output, NULL for
// zero. Gives those that `wanted`, one byte for each input, asks for, in input order.
tn_status build_gradients(const tn_build *build, const tn_graph *graph,
                          tn_array *const *inputs, uint32_t num_inputs,
                          tn_array *const *cotangents, const uint8_t *wanted,
                          tn_array **gradients);

// Adds the rule's inputs from `first` on and the given cotangents. Marks in takes_part,
// from its start, the inputs whose gradients are wanted; returns their number.
uint32_t args_add_gradients(struct control_args *args, const tn_rule *rule, uint32_t first,
                            tn_array *const *cotangents, const uint64_t *wanted);
// Stores the gradients that were built, in the order of the inputs that want one.
void args_give_gradients(const struct control_args *args, const tn_rule *rule,
                         uint32_t first, tn_array *const *found, tn_array **gradients);

// Builds the outputs of `graph` for a batch, whose axis is the first of each. Input i has
// the batch as its first axis, too, where batched[i].
tn_status build_batch(const tn_build *build, const tn_graph *graph, tn_array *const *inputs,
                      const uint8_t *batched, int64_t size, tn_array **outputs);
// Traces such a graph. NULL after a failure.
const tn_graph *args_trace_batch(const struct control_args *args, const tn_graph *graph,
                                 const uint8_t *batched, int64_t size,
                                 uint64_t num_outputs);

// outputs[i] has the slices of a[i] where `pred`, one bool for each slice, holds, and else
// those of b[i]. Slices are along the first axis.
tn_status choose_by_slice(const tn_build *build, tn_array *pred, tn_array *const *a,
                          tn_array *const *b, uint64_t count, tn_array **outputs);

// Sets the batch axis of all outputs of the rule to 0.
static inline void batch_in_front(const tn_rule *rule, int32_t *out_axes)
{
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        out_axes[i] = 0;
}

#endif // BASE_CONTROL_H
