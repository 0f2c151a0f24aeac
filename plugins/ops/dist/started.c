// SPDX-License-Identifier: MIT
// all_reduce_start and all_reduce_finish: an all-reduce as two operations, so that
// operations that do not need its result run meanwhile.
//
// Arrays are copied into one buffer, which belongs to a work of the group until its ticket
// is finished; tickets are numbers, in a list of the process.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "pack.h"

struct ticket {
    struct ticket *next;
    int64_t number;
    char name[64]; // of the group
    tn_collective_work *work;
    void *memory; // malloc's, leaked after a failure: the library may write to it
    uint64_t count;
    tn_dtype dtype;
};

static struct {
    pthread_mutex_t lock; // guards the members below
    struct ticket *first;
    int64_t last; // the last number that was given
} tickets = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void ticket_number(struct ticket *ticket)
{
    pthread_mutex_lock(&tickets.lock);
    ticket->number = ++tickets.last;
    pthread_mutex_unlock(&tickets.lock);
}

static void ticket_list(struct ticket *ticket)
{
    pthread_mutex_lock(&tickets.lock);
    ticket->next = tickets.first;
    tickets.first = ticket;
    pthread_mutex_unlock(&tickets.lock);
}

// Takes the ticket with this number from the list; NULL: there is none.
static struct ticket *ticket_take(int64_t number)
{
    pthread_mutex_lock(&tickets.lock);
    struct ticket **at = &tickets.first;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    struct ticket *found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&tickets.lock);
    return found;
}

// --- start ------------------------------------------------------------------------------

static tn_status start_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *x = &infer->types[1];
    if (infer->types[0].rank != 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "after has %d axes, expected a ticket, one number",
                                 infer->types[0].rank);
    for (uint32_t i = 2; i < infer->num_inputs; i++)
        if (infer->types[i].dtype != x->dtype)
            return infer->host->fail(
                infer->host, TN_ERR_ARGUMENT, "array %u is of %s, expected %s as the first",
                i - 1, tn_dtype_name(infer->types[i].dtype), tn_dtype_name(x->dtype));
    tn_status status = dist_check_reduction(infer, x->dtype);
    if (status == TN_OK)
        types[0] = (tn_type){.dtype = TN_I64};
    return status;
}

static uint64_t input_bytes(const tn_run *run, uint32_t i, tn_type *type)
{
    tn_run_memory_of(run)->type(run, run->inputs[i], type);
    return dist_elements(type) * (uint64_t)tn_dtype_bytes(type->dtype);
}

// Copies the arrays into the ticket's memory, one behind the other.
static tn_status gather_arrays(const tn_run *run, struct ticket *ticket)
{
    tn_type type;
    uint64_t bytes = 0, at = 0;
    for (uint32_t i = 1; i < run->num_inputs; i++)
        bytes += input_bytes(run, i, &type);
    ticket->dtype = type.dtype;
    ticket->count = bytes / (uint64_t)tn_dtype_bytes(type.dtype);
    tn_status status = dist_take_memory(run->host, bytes, &ticket->memory);
    for (uint32_t i = 1; i < run->num_inputs && status == TN_OK; i++) {
        uint64_t size = input_bytes(run, i, &type);
        status = run->read(run, run->inputs[i], (char *)ticket->memory + at, size);
        at += size;
    }
    return status;
}

// Owns the ticket's memory: frees it before the call has started, and leaks it after a
// failure of the call, as the library may use it.
static tn_status start_ticket(const tn_run *run, struct ticket *ticket)
{
    const tn_dist_reduce_attrs *attrs = run->attrs;
    struct group_use use;
    tn_status status = groups_take(run->host, attrs->group, &use);
    if (status != TN_OK) {
        free(ticket->memory);
        return status;
    }
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .flags = TN_COLLECTIVE_IN_BACKGROUND,
                                     .kind = TN_COLLECTIVE_ALL_REDUCE,
                                     .dtype = ticket->dtype,
                                     .reduction = (int32_t)attrs->reduction,
                                     .count = ticket->count,
                                     .input = ticket->memory,
                                     .output = ticket->memory};
    status = use.table->start(use.host, use.group, &call, &ticket->work);
    groups_give(&use);
    return status;
}

static tn_status start_run(const tn_run *run)
{
    const tn_dist_reduce_attrs *attrs = run->attrs;
    const tn_run_memory *memory = tn_run_memory_of(run);
    struct ticket *ticket = calloc(1, sizeof(*ticket));
    if (!memory || !ticket) {
        free(ticket);
        return dist_no_memory(run->host, memory != NULL);
    }
    snprintf(ticket->name, sizeof(ticket->name), "%s", group_name(attrs->group));
    ticket_number(ticket);
    tn_status status = gather_arrays(run, ticket);
    if (status == TN_OK) // before the call is started, which then has to be finished
        status = memory->write(run, 0, &ticket->number, sizeof(ticket->number));
    if (status != TN_OK) {
        free(ticket->memory);
        free(ticket);
        return status;
    }
    status = start_ticket(run, ticket);
    if (status == TN_OK)
        ticket_list(ticket);
    else
        free(ticket);
    return status;
}

// --- finish -----------------------------------------------------------------------------

static tn_status finish_infer(const tn_infer *infer, tn_type *types)
{
    const tn_dist_finish_attrs *attrs = infer->attrs;
    if (infer->types[0].rank != 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "ticket has %d axes, expected one number",
                                 infer->types[0].rank);
    if (attrs->count < 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "count is %" PRId64 ", expected at least 0", attrs->count);
    types[0] =
        (tn_type){.dtype = (tn_dtype)attrs->dtype, .rank = 1, .extent = {attrs->count}};
    return TN_OK;
}

static tn_status finish_ticket(const tn_run *run, struct ticket *ticket)
{
    const tn_dist_finish_attrs *attrs = run->attrs;
    struct group_use use;
    tn_status status = groups_take(run->host, ticket->name, &use);
    if (status != TN_OK)
        return status;
    status = use.table->wait(use.host, ticket->work);
    groups_give(&use);
    if (status != TN_OK)
        return status; // leaked: the library may use the memory
    uint64_t bytes = ticket->count * (uint64_t)tn_dtype_bytes(ticket->dtype);
    if (ticket->count != (uint64_t)attrs->count || ticket->dtype != (tn_dtype)attrs->dtype)
        status = run->host->fail(run->host, TN_ERR_ARGUMENT,
                                 "the ticket is of %" PRIu64 " %s, expected %" PRId64 " %s",
                                 ticket->count, tn_dtype_name(ticket->dtype), attrs->count,
                                 tn_dtype_name((tn_dtype)attrs->dtype));
    else
        status = tn_run_memory_of(run)->write(run, 0, ticket->memory, bytes);
    free(ticket->memory);
    return status;
}

static tn_status finish_run(const tn_run *run)
{
    int64_t number = 0;
    if (!tn_run_memory_of(run))
        return dist_no_memory(run->host, false);
    tn_status status = run->read(run, run->inputs[0], &number, sizeof(number));
    if (status != TN_OK)
        return status;
    struct ticket *ticket = ticket_take(number);
    if (!ticket)
        return run->host->fail(run->host, TN_ERR_ARGUMENT,
                               "no all-reduce has ticket %" PRId64
                               ": it was not started, or is finished already",
                               number);
    status = finish_ticket(run, ticket);
    free(ticket);
    return status;
}

static const tn_input_info start_inputs[] = {
    {"after", "a ticket: what it stands for is started before", TN_INPUT_CONSTANT,
     TN_DTYPE_BIT(TN_I64)},
    {"x", "this member's arrays, of one dtype", TN_INPUT_VARIADIC, DTYPES_ALL}};
static const tn_attr_field start_fields[] = {
    REDUCTION_FIELD(tn_dist_reduce_attrs),
    GROUP_FIELD(tn_dist_reduce_attrs),
};
static const tn_input_info finish_inputs[] = {
    {"ticket", "of all_reduce_start", TN_INPUT_CONSTANT, TN_DTYPE_BIT(TN_I64)}};
static const tn_attr_field finish_fields[] = {
    TN_REQUIRED_FIELD(tn_dist_finish_attrs, count, TN_ATTR_I64, "elements of the arrays"),
    TN_REQUIRED_FIELD(tn_dist_finish_attrs, dtype, TN_ATTR_DTYPE, "their dtype"),
};

const tn_primitive dist_all_reduce_start = {
    DIST_EFFECT_OF(TN_PRIM_STARTS),
    .id = "dist.all_reduce_start/1",
    .doc = "Starts to reduce arrays of all members; gives a ticket for all_reduce_finish.",
    TN_INPUTS(start_inputs),
    .attrs = TN_ATTR_TABLE(tn_dist_reduce_attrs, start_fields),
    .infer = start_infer,
    .run = start_run,
};

const tn_primitive dist_all_reduce_finish = {
    DIST_EFFECT_OF(0),
    .id = "dist.all_reduce_finish/1",
    .doc = "The elements of the arrays of a ticket, reduced, behind each other.",
    TN_INPUTS(finish_inputs),
    .attrs = TN_ATTR_TABLE(tn_dist_finish_attrs, finish_fields),
    .infer = finish_infer,
    .run = finish_run,
};
