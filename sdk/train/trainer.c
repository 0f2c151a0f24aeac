// SPDX-License-Identifier: MIT
// One step as one traced function: loss, gradients of all parameters, clipping, optimiser.
//
// Inputs of the function: the batch, the step's number, a key, the parameters, then their
// states. Parameters and states are carried to the outputs behind the loss.
//
// In a group of processes a step is two functions: the first gives loss and means of
// gradients, the second is the optimiser. When a member fails, the first function fails,
// which writes over no parameter.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common.h"

// --- optimisers -------------------------------------------------------------------------

// An optimiser of pack "optim", with arrays of state beside the parameters.
struct optim_step {
    const char *name;
    int states;
    bool counts;         // it takes the step's number
    const char *vectors; // optimiser of parameters with fewer than two axes; NULL: this
};
static const struct optim_step optimisers[] = {
    {"adam", 2, true, NULL},
    {"adamw", 2, true, NULL},
    {"amsgrad", 3, true, NULL},
    {"adamax", 2, true, NULL},
    {"adagrad", 1, true, NULL},
    {"adadelta", 2, false, NULL},
    {"rmsprop", 1, false, NULL},
    {"rmsprop_momentum", 2, false, NULL},
    {"rmsprop_centered", 3, false, NULL},
    {"sgd", 1, true, NULL},
    {"lion", 1, false, NULL},
    {"adafactor", 2, true, "adafactor_vector"},
    {"adafactor_vector", 1, true, NULL},
    {"muon", 1, false, "adamw"},
};
enum { NUM_OPTIMISERS = sizeof(optimisers) / sizeof(optimisers[0]), MOST_ATTRS = 8 };

static const struct optim_step *find_optimiser(const char *name)
{
    for (int i = 0; i < NUM_OPTIMISERS; i++)
        if (strcmp(optimisers[i].name, name) == 0)
            return &optimisers[i];
    char list[400] = "";
    for (int i = 0; i < NUM_OPTIMISERS; i++)
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "",
                 optimisers[i].name);
    train_fail(TN_ERR_ARGUMENT, "optimiser '%s' is not known, expected one of: %s", name,
               list);
    return NULL;
}

// The optimiser of a parameter of this type.
static const struct optim_step *optimiser_for(const struct optim_step *o,
                                              const tn_type *type)
{
    return o->vectors && type->rank < 2 ? find_optimiser(o->vectors) : o;
}

static tn_shape state_shape(const struct optim_step *o, const tn_type *type, int k)
{
    tn_shape shape = {.rank = type->rank};
    memcpy(shape.extent, type->extent, sizeof(shape.extent));
    if (strcmp(o->name, "adafactor") == 0) // state k: mean along axis rank - 1 - k
        shape.extent[type->rank - 1 - k] = 1;
    return shape;
}

// --- the trainer ------------------------------------------------------------------------

struct tn_trainer {
    struct tn_params *params;
    tn_loss_body loss;
    void *user;
    const struct optim_step *optimiser;
    double lr, clip;
    tn_array *(*schedule)(tn_scope *scope, tn_array *step, void *user);
    tn_attr attrs[MOST_ATTRS];
    char names[MOST_ATTRS][32];
    uint64_t num_attrs, num_batch;
    struct train_group group;
    tn_function *function; // in a group: without the optimiser
    tn_function *update;   // in a group: the optimiser
    tn_array **arrays;     // room for inputs, then outputs
    uint64_t num_inputs, num_carried;
};

enum { BEHIND_BATCH = 2 }; // the step's number and the key

tn_status tn_trainer_create(tn_params *params, tn_loss_body loss, void *user,
                            const tn_trainer_options *options, tn_trainer **out_trainer)
{
    static const tn_trainer_options none = {0};
    tn_trainer_options given;
    const tn_trainer_options *o = &given;
    train_read_options(&given, sizeof(given), options ? options : &none,
                       options ? options->struct_size : 0,
                       offsetof(tn_trainer_options, group));
    if (!params || !loss || !out_trainer)
        return train_fail(TN_ERR_ARGUMENT, "tn_trainer_create: an argument is NULL");
    const struct optim_step *optimiser =
        find_optimiser(o->optimiser ? o->optimiser : "adam");
    if (!optimiser)
        return TN_ERR_ARGUMENT;
    if (!(o->lr >= 0) || !(o->clip >= 0) || o->attrs.count > MOST_ATTRS)
        return train_fail(TN_ERR_ARGUMENT,
                          "tn_trainer_create: lr is %g, clip %g, with %llu attributes; "
                          "expected numbers of at least 0, and at most %d attributes",
                          o->lr, o->clip, (unsigned long long)o->attrs.count, MOST_ATTRS);
    struct train_group group;
    tn_status status = group_find(params->runtime, o->group, &group);
    if (status != TN_OK)
        return status;
    struct tn_trainer *t = calloc(1, sizeof(*t));
    if (!t)
        return train_fail_memory();
    *t = (struct tn_trainer){.params = params,
                             .group = group,
                             .loss = loss,
                             .user = user,
                             .optimiser = optimiser,
                             .lr = o->lr,
                             .clip = o->clip,
                             .schedule = o->schedule,
                             .num_attrs = o->attrs.count};
    for (uint64_t i = 0; i < t->num_attrs; i++) {
        t->attrs[i] = o->attrs.items[i];
        snprintf(t->names[i], sizeof(t->names[i]), "%s", o->attrs.items[i].name);
        t->attrs[i].name = t->names[i];
    }
    *out_trainer = t;
    return TN_OK;
}

void tn_trainer_destroy(tn_trainer *trainer)
{
    if (!trainer)
        return;
    tn_function_destroy(trainer->function);
    tn_function_destroy(trainer->update);
    free(trainer->arrays);
    free(trainer);
}

tn_params *trainer_params(const tn_trainer *trainer)
{
    return trainer->params;
}

const struct train_group *trainer_group(const tn_trainer *trainer)
{
    return &trainer->group;
}

int32_t tn_trainer_rank(const tn_trainer *trainer)
{
    return trainer->group.rank;
}

int32_t tn_trainer_size(const tn_trainer *trainer)
{
    return trainer->group.size;
}

// --- the body ---------------------------------------------------------------------------

// Rates and gradients of one step.
struct step_update {
    tn_array *step, *factor, *lr;
};

static tn_array *clip_factor(const struct tn_trainer *t, tn_scope *s,
                             tn_array *const *gradients, uint64_t count)
{
    if (t->clip <= 0)
        return NULL;
    tn_array *norm = tn_op(s, "optim.global_norm/1", (const tn_array *const *)gradients,
                           count, TN_NO_ATTRS);
    return tn_expr(s, "norm -> min(1, most / (norm + 1e-6))", TN_IN(norm),
                   tn_attrs("most", t->clip));
}

// Applies the optimiser; writes the new parameter, then its new states, to `out`.
static tn_status apply_optimiser(const struct tn_trainer *t, tn_scope *s,
                                 const struct step_update *u, tn_array *const *carried,
                                 tn_array *gradient, tn_array **out)
{
    const struct optim_step *o = optimiser_for(t->optimiser, tn_array_type(carried[0]));
    const tn_array *inputs[3 + MOST_STATES];
    tn_attr attrs[MOST_ATTRS + 1];
    char id[64];
    uint64_t num_inputs = 0, num_attrs = t->num_attrs;
    inputs[num_inputs++] = carried[0];
    inputs[num_inputs++] =
        u->factor ? tn_expr(s, "g, f -> g * f", TN_IN(gradient, u->factor), TN_NO_ATTRS)
                  : gradient;
    for (int k = 0; k < o->states; k++)
        inputs[num_inputs++] = carried[1 + k];
    if (o->counts)
        inputs[num_inputs++] = u->step;
    memcpy(attrs, t->attrs, sizeof(t->attrs));
    if (u->lr)
        attrs[num_attrs++] = (tn_attr){.name = "lr", .kind = TN_ATTR_ARRAY, .array = u->lr};
    else if (t->lr > 0)
        attrs[num_attrs++] = (tn_attr){.name = "lr", .kind = TN_ATTR_F64, .f = t->lr};
    snprintf(id, sizeof(id), "optim.%s/1", o->name);
    return tn_op_n(s, id, inputs, num_inputs, TN_ATTR_LIST(attrs, num_attrs), out,
                   1 + (uint64_t)o->states);
}

// Number of the optimiser's state arrays of item i; a layer's state has none.
static uint64_t states_of(const struct tn_trainer *t, uint64_t i)
{
    if (t->params->items[i].is_state)
        return 0;
    const tn_type *type = tn_array_type(t->params->items[i].value);
    return (uint64_t)optimiser_for(t->optimiser, type)->states;
}

// Builds the loss, with `traced` in place of the parameters, and its gradients in the order
// of the trained parameters.
static tn_status loss_and_gradients(struct tn_trainer *t, tn_scope *s,
                                    tn_array *const *inputs, tn_array **traced,
                                    tn_array **wrt, tn_array **gradients,
                                    tn_array **out_loss)
{
    struct tn_params *params = t->params;
    tn_net net = {
        .params = params, .scope = s, .key = inputs[t->num_batch + 1], .training = 1};
    uint64_t count = 0;
    for (uint64_t i = 0; i < params->count; i++)
        if (!params->items[i].is_state)
            wrt[count++] = traced[i];
    params->traced = traced;
    *out_loss = t->loss(&net, inputs, t->user);
    params->traced = NULL;
    return tn_vjp(s, out_loss, NULL, 1, wrt, count, gradients);
}

// Builds the carried arrays behind the step: trained parameters and their states by the
// optimiser from `gradients`, and states of layers as `traced` has them.
static tn_status trainer_build_update(const struct tn_trainer *t, tn_scope *s,
                                      tn_array *step, tn_array *const *carried,
                                      tn_array *const *traced, tn_array *const *gradients,
                                      tn_array **out)
{
    const struct tn_params *params = t->params;
    struct step_update u = {.step = step};
    uint64_t trained = 0;
    tn_status status = tn_scope_status(s);
    for (uint64_t i = 0; i < params->count; i++)
        trained += !params->items[i].is_state;
    if (t->schedule)
        u.lr = t->schedule(s, tn_expr(s, "step -> step - 1", TN_IN(step), TN_NO_ATTRS),
                           t->user);
    u.factor = clip_factor(t, s, gradients, trained);
    for (uint64_t i = 0, at = 0, k = 0; i < params->count && status == TN_OK;
         at += 1 + states_of(t, i), i++) {
        if (params->items[i].is_state) // the layer's new value, or the old one
            out[at] = traced[i];
        else
            status = apply_optimiser(t, s, &u, carried + at, gradients[k++], out + at);
    }
    return status ? status : tn_scope_status(s);
}

static tn_status trainer_body(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                              tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct tn_trainer *t = user;
    tn_array *const *carried = inputs + t->num_batch + BEHIND_BATCH;
    uint64_t count = t->params->count;
    tn_array **room = calloc((size_t)(3 * count + 1), sizeof(tn_array *));
    (void)num_inputs, (void)num_outputs;
    if (!room)
        return tn_scope_fail(s, TN_ERR_MEMORY, "out of memory");
    tn_array **traced = room, **gradients = room + count;
    for (uint64_t i = 0, at = 0; i < count; at += 1 + states_of(t, i), i++)
        traced[i] = carried[at];
    tn_status status =
        loss_and_gradients(t, s, inputs, traced, room + 2 * count, gradients, &outputs[0]);
    if (status == TN_OK)
        status = trainer_build_update(t, s, inputs[t->num_batch], carried, traced,
                                      gradients, outputs + 1);
    free(room);
    return status;
}

// --- the bodies in a group ---------------------------------------------------------------

// Inputs: the batch, the step's number, a key, the parameters and states of layers.
// Outputs: the mean of the loss, then by item the mean of a parameter's gradient, or of a
// layer's state behind the step.
static tn_status gradients_body(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                                tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct tn_trainer *t = user;
    uint64_t count = t->params->count;
    tn_array **room = calloc((size_t)(3 * count + 1), sizeof(tn_array *));
    (void)num_inputs;
    if (!room)
        return tn_scope_fail(s, TN_ERR_MEMORY, "out of memory");
    tn_array **traced = room, **gradients = room + count;
    memcpy(traced, inputs + t->num_batch + BEHIND_BATCH, count * sizeof(tn_array *));
    tn_status status =
        loss_and_gradients(t, s, inputs, traced, room + 2 * count, gradients, &outputs[0]);
    for (uint64_t i = 0, k = 0; i < count && status == TN_OK; i++)
        outputs[1 + i] = t->params->items[i].is_state ? traced[i] : gradients[k++];
    if (status == TN_OK)
        status = group_average(&t->group, s, outputs, num_outputs);
    free(room);
    return status;
}

// Inputs: the step's number, the outputs of gradients_body behind the loss, then the
// carried arrays. Outputs: the new carried arrays.
static tn_status update_body(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                             tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct tn_trainer *t = user;
    uint64_t count = t->params->count, trained = 0;
    tn_array **gradients = calloc((size_t)count + 1, sizeof(tn_array *));
    (void)num_inputs, (void)num_outputs;
    if (!gradients)
        return tn_scope_fail(s, TN_ERR_MEMORY, "out of memory");
    for (uint64_t i = 0; i < count; i++)
        if (!t->params->items[i].is_state)
            gradients[trained++] = inputs[1 + i];
    tn_status status = trainer_build_update(t, s, inputs[0], inputs + 1 + count, inputs + 1,
                                            gradients, outputs);
    free(gradients);
    return status;
}

// --- before the first step --------------------------------------------------------------

// Runs the loss as plain graph, so that layers make their parameters.
static tn_status make_parameters(struct tn_trainer *t, tn_scope *s, tn_array *const *batch)
{
    struct tn_params *params = t->params;
    const uint32_t zeros[2] = {0, 0};
    tn_net net = {.params = params, .scope = s, .training = 1};
    net.key = tn_from_data(s, TN_U32, TN_SHAPE(2), zeros);
    tn_array *loss = t->loss(&net, batch, t->user);
    if (tn_scope_status(s))
        return tn_scope_status(s);
    if (!loss)
        return tn_scope_fail(s, TN_ERR_ARGUMENT, "the loss is NULL, expected one number");
    if (tn_array_type(loss)->rank != 0)
        return tn_scope_fail(s, TN_ERR_ARGUMENT,
                             "the loss has rank %d, expected one number",
                             tn_array_type(loss)->rank);
    if (net.path[0])
        return tn_scope_fail(s, TN_ERR_ARGUMENT, "tn_net_leave is missing behind '%s'",
                             net.path);
    if (tn_params_elements(params) == 0)
        return tn_scope_fail(s, TN_ERR_ARGUMENT, "the loss has no parameters");
    for (uint64_t i = 0; i < params->count; i++)
        if (!params->items[i].used)
            return tn_scope_fail(s, TN_ERR_ARGUMENT,
                                 "parameter '%s' of %s belongs to no layer: the file is "
                                 "another model's",
                                 params->items[i].name, params->source);
    if (params->optimiser[0] && strcmp(params->optimiser, t->optimiser->name) != 0)
        return tn_scope_fail(
            s, TN_ERR_ARGUMENT, "the optimiser is '%s', %s has the state of '%s'",
            t->optimiser->name, params->source ? params->source : "the set",
            params->optimiser);
    return TN_OK;
}

// Makes zeros for states that do not exist; states from a checkpoint have to fit.
static tn_status trainer_make_states(struct tn_trainer *t, tn_scope *s,
                                     struct train_param *item)
{
    const tn_type *type = tn_array_type(item->value);
    const struct optim_step *o = optimiser_for(t->optimiser, type);
    const int states = item->is_state ? 0 : o->states;
    for (int k = 0; k < MOST_STATES; k++) {
        tn_shape shape = k < states ? state_shape(o, type, k) : (tn_shape){0};
        const tn_type *have = tn_array_type(item->state[k]);
        if (item->state[k] &&
            (k >= states || have->dtype != TN_F32 || have->rank != shape.rank ||
             memcmp(have->extent, shape.extent, sizeof(int64_t) * (size_t)shape.rank) != 0))
            return tn_scope_fail(s, TN_ERR_ARGUMENT,
                                 "state %d of parameter '%s' does not fit optimiser '%s'",
                                 k, item->name, o->name);
        if (item->state[k] || k >= states)
            continue;
        if (t->params->optimiser[0])
            return tn_scope_fail(s, TN_ERR_ARGUMENT,
                                 "state %d of parameter '%s' is not in %s", k, item->name,
                                 t->params->source ? t->params->source : "the set");
        tn_ints extents = {.count = (uint32_t)shape.rank, .given = 1};
        memcpy(extents.value, shape.extent, sizeof(extents.value));
        const tn_ints *list = &extents;
        tn_array *zeros = tn_op(s, "base.zeros/1", NULL, 0, tn_attrs("shape", list));
        item->state[k] = tn_keep(s, tn_op(s, "base.copy/1", TN_IN(zeros), TN_NO_ATTRS));
    }
    return tn_scope_status(s);
}

// Creates a function whose inputs from `first` on are carried to the outputs from `to` on,
// and whose inputs from `given` up to `first` are donated.
static tn_status trainer_create_function(struct tn_trainer *t, tn_scope *s,
                                         tn_function_body body, uint64_t given,
                                         uint64_t first, uint64_t to, tn_function **out)
{
    uint64_t count = first + t->num_carried - given;
    uint32_t *donated = calloc((size_t)(2 * count + 1), sizeof(*donated));
    if (!donated)
        return tn_scope_fail(s, TN_ERR_MEMORY, "out of memory");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t input = given + i;
        donated[i] = (uint32_t)input;
        donated[count + i] = input < first ? UINT32_MAX : (uint32_t)(to + input - first);
    }
    const tn_function_options options = {.struct_size = sizeof(options),
                                         .donated = donated,
                                         .num_donated = count,
                                         .carried_to = donated + count};
    tn_status status = tn_function_create(t->params->runtime, body, t, &options, out);
    free(donated);
    return status ? tn_scope_fail(s, TN_ERR_ARGUMENT, "%s", tn_last_error()) : TN_OK;
}

static tn_status trace_step(struct tn_trainer *t, tn_scope *s)
{
    uint64_t count = t->params->count, first = t->num_batch + BEHIND_BATCH;
    t->num_carried = 0;
    for (uint64_t i = 0; i < count; i++)
        t->num_carried += 1 + states_of(t, i);
    t->num_inputs = first + t->num_carried;
    uint64_t room = t->num_batch + 2 * (t->num_carried + count) + 4;
    t->arrays = calloc((size_t)room, sizeof(tn_array *));
    if (!t->arrays)
        return tn_scope_fail(s, TN_ERR_MEMORY, "out of memory");
    if (t->group.size == 1)
        return trainer_create_function(t, s, trainer_body, first, first, 1, &t->function);
    if (tn_function_create(t->params->runtime, gradients_body, t, NULL, &t->function))
        return tn_scope_fail(s, TN_ERR_ARGUMENT, "%s", tn_last_error());
    return trainer_create_function(t, s, update_body, 1, 1 + count, 0, &t->update);
}

static tn_status prepare_trainer(struct tn_trainer *t, tn_scope *s, tn_array *const *batch,
                                 uint64_t num_batch)
{
    if (t->function && num_batch != t->num_batch)
        return tn_scope_fail(
            s, TN_ERR_ARGUMENT, "the batch has %llu arrays, expected %llu as before",
            (unsigned long long)num_batch, (unsigned long long)t->num_batch);
    if (t->function)
        return TN_OK;
    t->num_batch = num_batch;
    tn_status status = make_parameters(t, s, batch);
    for (uint64_t i = 0; i < t->params->count && status == TN_OK; i++)
        status = trainer_make_states(t, s, &t->params->items[i]);
    if (status == TN_OK)
        status = trace_step(t, s);
    if (status == TN_OK) {
        t->params->fixed = true;
        snprintf(t->params->optimiser, sizeof(t->params->optimiser), "%s",
                 t->optimiser->name);
    }
    return status;
}

// --- the step ---------------------------------------------------------------------------

// Lists all carried arrays: parameters and states.
static void list_carried(const struct tn_trainer *t, tn_array **out)
{
    for (uint64_t i = 0; i < t->params->count; i++) {
        *out++ = t->params->items[i].value;
        for (uint64_t k = 0; k < states_of(t, i); k++)
            *out++ = t->params->items[i].state[k];
    }
}

static void take_carried(struct tn_trainer *t, tn_array *const *arrays)
{
    for (uint64_t i = 0; i < t->params->count; i++) {
        t->params->items[i].value = *arrays++;
        for (uint64_t k = 0; k < states_of(t, i); k++)
            t->params->items[i].state[k] = *arrays++;
    }
}

// One step in a group. `in` holds the batch, the step's number and a key.
static tn_status step_in_group(struct tn_trainer *t, tn_scope *s, tn_array **in,
                               tn_array **out_loss)
{
    uint64_t count = t->params->count, first = t->num_batch + BEHIND_BATCH;
    tn_array *step = in[t->num_batch];
    tn_array **means = in + first + count, **update = means;
    tn_array **out = update + 1 + count + t->num_carried;
    for (uint64_t i = 0; i < count; i++)
        in[first + i] = t->params->items[i].value;
    tn_status status =
        tn_function_call(t->function, s, in, first + count, means, 1 + count);
    if (status != TN_OK)
        return status;
    *out_loss = means[0];
    update[0] = step; // in front of the gradients
    list_carried(t, update + 1 + count);
    status = tn_function_call(t->update, s, update, 1 + count + t->num_carried, out,
                              t->num_carried);
    if (status == TN_OK)
        take_carried(t, out);
    return status;
}

static tn_status step_alone(struct tn_trainer *t, tn_scope *s, tn_array **in,
                            tn_array **out_loss)
{
    tn_array **out = in + t->num_inputs;
    list_carried(t, in + t->num_batch + BEHIND_BATCH);
    tn_status status =
        tn_function_call(t->function, s, in, t->num_inputs, out, 1 + t->num_carried);
    if (status != TN_OK)
        return status;
    take_carried(t, out + 1);
    *out_loss = out[0];
    return TN_OK;
}

tn_status tn_trainer_step(tn_trainer *t, tn_scope *s, tn_array *const *batch,
                          uint64_t num_batch, tn_array **out_loss)
{
    struct tn_params *params = t->params;
    tn_status status = tn_scope_status(s);
    if (status == TN_OK)
        status = prepare_trainer(t, s, batch, num_batch);
    if (status != TN_OK)
        return status;
    const float step = (float)(params->step + 1);
    // Members draw other numbers.
    uint64_t stream = 1 + ((uint64_t)t->group.rank << 8);
    uint64_t bits = train_random(params->seed, stream, params->step);
    const uint32_t key[2] = {(uint32_t)(bits >> 32), (uint32_t)bits};
    tn_array **in = t->arrays;
    memcpy(in, batch, (size_t)num_batch * sizeof(*in));
    in[num_batch] = tn_from_data(s, TN_F32, TN_SCALAR, &step);
    in[num_batch + 1] = tn_from_data(s, TN_U32, TN_SHAPE(2), key);
    status = t->group.size > 1 ? step_in_group(t, s, in, out_loss)
                               : step_alone(t, s, in, out_loss);
    if (status == TN_OK)
        params->step++;
    return status;
}
