// SPDX-License-Identifier: MIT
// Runs a collective between the steps of devices: on device memory where all members have a
// plugin for it, else on host memory, to and from which operands are copied.
#include <stdlib.h>
#include "pack.h"

// Operands on the host. After a failure the library may still write to this memory, so it
// comes from malloc() and is leaked then.
struct host_operands {
    void *in, *out;
    uint64_t in_bytes, out_bytes;
    tn_type in_type;
};

uint64_t dist_elements(const tn_type *type)
{
    uint64_t count = 1;
    for (int32_t i = 0; i < type->rank; i++)
        count *= (uint64_t)type->extent[i]; // fits: the array exists
    return count;
}

tn_status dist_take_memory(const tn_host *host, uint64_t bytes, void **out)
{
    *out = malloc(bytes ? bytes : 1);
    return *out
               ? TN_OK
               : host->fail(host, TN_ERR_MEMORY, "no %" PRIu64 " bytes on the host", bytes);
}

tn_status dist_no_memory(const tn_host *host, bool knows)
{
    return knows ? host->fail(host, TN_ERR_MEMORY, "out of memory")
                 : host->fail(host, TN_ERR_UNSUPPORTED,
                              "this version of Tenon has no <tenon/run_memory.h>");
}

static tn_status run_read_input(const tn_run *run, struct host_operands *o)
{
    if (run->num_inputs == 0)
        return TN_OK;
    tn_status status = dist_take_memory(run->host, o->in_bytes, &o->in);
    return status == TN_OK ? run->read(run, run->inputs[0], o->in, o->in_bytes) : status;
}

// Counts a member's elements, as the call's kind does, and the bytes of the output.
static void run_count(const struct host_operands *o, int32_t size, tn_collective_call *call,
                      uint64_t *out_bytes)
{
    uint64_t members = (uint64_t)size, count = dist_elements(&o->in_type);
    uint64_t one = (uint64_t)tn_dtype_bytes(call->dtype);
    switch (call->kind) {
    case TN_COLLECTIVE_ALL_GATHER:
        call->count = count;
        *out_bytes = count * members * one;
        break;
    case TN_COLLECTIVE_REDUCE_SCATTER:
        call->count = count / members;
        *out_bytes = call->count * one;
        break;
    case TN_COLLECTIVE_ALL_TO_ALL:
        call->count = count / members;
        *out_bytes = count * one;
        break;
    case TN_COLLECTIVE_RECEIVE: // only the attributes have the type
        *out_bytes = call->count * one;
        break;
    default:
        call->count = count;
        *out_bytes = count * one;
        break;
    }
}

static tn_status call_group(const struct group_use *use, struct host_operands *o,
                            tn_collective_call *call)
{
    // Kinds that work in place, or whose output is the input.
    bool in_place = call->kind == TN_COLLECTIVE_ALL_REDUCE ||
                    call->kind == TN_COLLECTIVE_BROADCAST ||
                    call->kind == TN_COLLECTIVE_SEND || call->kind == TN_COLLECTIVE_BARRIER;
    tn_collective_work *work;
    if (in_place)
        o->out = o->in;
    tn_status status =
        in_place ? TN_OK : dist_take_memory(use->host, o->out_bytes, &o->out);
    call->struct_size = sizeof(*call);
    call->input = o->in;
    call->output = call->kind == TN_COLLECTIVE_SEND ? NULL : o->out;
    if (status == TN_OK)
        status = use->table->start(use->host, use->group, call, &work);
    return status == TN_OK ? use->table->wait(use->host, work) : status;
}

static tn_status run_check_size(const tn_host *host, const struct group_use *use,
                                int64_t size)
{
    return size == 0 || size == use->facts->size
               ? TN_OK
               : host->fail(host, TN_ERR_ARGUMENT,
                            "size is %" PRId64 ", and the group has %d members", size,
                            use->facts->size);
}

static tn_status run_on_host(const tn_run *run, const struct group_use *use,
                             tn_collective_call *call, struct host_operands *o)
{
    tn_status status = run_read_input(run, o);
    if (status != TN_OK) {
        free(o->in);
        return status;
    }
    status = call_group(use, o, call);
    if (status != TN_OK)
        return status; // leaked: the library may use the memory
    status = tn_run_memory_of(run)->write(run, 0, o->out, o->out_bytes);
    if (o->out != o->in)
        free(o->out);
    free(o->in);
    return status;
}

static tn_status run_in_group(const tn_run *run, const struct group_use *use,
                              tn_collective_call *call, struct host_operands *o)
{
    const struct device_use *devices = use->devices;
    int32_t is_done = 0;
    call->struct_size = sizeof(*call);
    if (run->num_inputs > 0) {
        tn_run_memory_of(run)->type(run, run->inputs[0], &o->in_type);
        call->dtype = o->in_type.dtype;
    }
    o->in_bytes = dist_elements(&o->in_type) * (uint64_t)tn_dtype_bytes(call->dtype);
    run_count(o, use->facts->size, call, &o->out_bytes);
    tn_status status =
        devices->table && TN_RUN_EXPORTS(tn_run_memory_of(run))
            ? devices->table->run(devices->host, devices->group, call, run, &is_done)
            : TN_OK;
    return status == TN_OK && !is_done ? run_on_host(run, use, call, o) : status;
}

tn_status dist_run(const tn_run *run, const char *group, int64_t size,
                   tn_collective_call *call)
{
    const tn_run_memory *memory = tn_run_memory_of(run);
    struct host_operands operands = {0};
    struct group_use use;
    if (!memory)
        return dist_no_memory(run->host, false);
    tn_status status = groups_take(run->host, group, &use);
    if (status != TN_OK)
        return status;
    status = run_check_size(run->host, &use, size);
    if (status == TN_OK)
        status = run_in_group(run, &use, call, &operands);
    groups_give(&use);
    return status;
}
