// SPDX-License-Identifier: MIT
// Calls: the agreement of members, the NCCL functions, and waiting for the GPU.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "group.h"

// Queries of the GPU between two looks for failures.
enum { LOOKS = 256 };

// How long the watch may take to name a member whose failure NCCL reported first.
enum { NAMING_MS = 1500 };

// A record of a call, which members compare before they make it.
struct call_record {
    int32_t kind, reduction, peer;
    int32_t dtype;
    uint64_t count;
    int32_t can; // whether this member's operands are in memory that CUDA uses
    int32_t reserved;
    char location[NCCL_LOCATION]; // of its GPU
};

// X(dtype, NCCL's number of a type, how many elements of that type an element is). Other
// dtypes are moved as bytes.
#define NCCL_TYPES(X)                                                                      \
    X(I8, 0, 1)                                                                            \
    X(U8, 1, 1)                                                                            \
    X(BOOL, 1, 1)                                                                          \
    X(I32, 2, 1)                                                                           \
    X(U32, 3, 1)                                                                           \
    X(I64, 4, 1)                                                                           \
    X(U64, 5, 1)                                                                           \
    X(F16, 6, 1)                                                                           \
    X(F32, 7, 1)                                                                           \
    X(F64, 8, 1)                                                                           \
    X(BF16, 9, 1)                                                                          \
    X(COMPLEX64, 7, 2)                                                                     \
    X(COMPLEX128, 8, 2)
static const struct {
    int number, elements;
} types[TN_NUM_DTYPES] = {
#define TYPE_ROW(dtype, number, elements) [TN_##dtype] = {number, elements},
    NCCL_TYPES(TYPE_ROW)
#undef TYPE_ROW
};
enum { NCCL_BYTES = 1 };

// NCCL's number of each TN_COLLECTIVE_SUM, ...
static const int operations[] = {[TN_COLLECTIVE_SUM] = 0,
                                 [TN_COLLECTIVE_PRODUCT] = 1,
                                 [TN_COLLECTIVE_MINIMUM] = 3,
                                 [TN_COLLECTIVE_MAXIMUM] = 2,
                                 [TN_COLLECTIVE_MEAN] = 4};

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static bool call_reduces(const tn_collective_call *call)
{
    return call->kind == TN_COLLECTIVE_ALL_REDUCE ||
           call->kind == TN_COLLECTIVE_REDUCE_SCATTER;
}

// Whether NCCL has the call, on any GPU.
static bool call_is_known(const tn_collective_call *call)
{
    bool is_complex = tn_dtype_kind(call->dtype) == TN_KIND_COMPLEX;
    if (call->kind < TN_COLLECTIVE_ALL_REDUCE || call->kind > TN_COLLECTIVE_ALL_TO_ALL)
        return false;
    if (!call_reduces(call))
        return true;
    return types[call->dtype].elements > 0 &&
           !(is_complex && call->reduction == TN_COLLECTIVE_PRODUCT);
}

// --- agreement --------------------------------------------------------------------------

static tn_status records_gather(tn_device_group *g, const struct call_record *mine,
                                struct call_record *all)
{
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .flags = TN_COLLECTIVE_ASIDE,
                                     .kind = TN_COLLECTIVE_ALL_GATHER,
                                     .dtype = TN_U8,
                                     .count = sizeof(*mine),
                                     .input = mine,
                                     .output = all};
    tn_collective_work *work;
    tn_status status = g->base->start(g->base_host, g->group, &call, &work);
    return status == TN_OK ? g->base->wait(g->base_host, work) : status;
}

// Logs once, on rank `rank`, why arrays go through the host's memory.
static void tell_once(const tn_host *host, tn_device_group *g, int32_t rank,
                      const char *why)
{
    if (!g->is_told && g->rank == rank)
        host->log(host, TN_LOG_WARN, "collective",
                  "rank %d: arrays go through the host's memory: %s", rank, why);
    g->is_told = true;
}

// NCCL takes one rank a GPU. Two ranks on a GPU are an error where the user asked for NCCL.
static tn_status check_devices(const tn_host *host, tn_device_group *g,
                               const struct call_record *all, bool *out_sound)
{
    const char *wanted = host->config(host, "TENON_NCCL");
    for (int32_t i = 1; i < g->size; i++)
        for (int32_t k = 0; k < i; k++)
            if (memcmp(all[i].location, all[k].location, NCCL_LOCATION) == 0) {
                *out_sound = false;
                if (wanted && *wanted)
                    return nccl_break(host, g, TN_ERR_ARGUMENT,
                                      "ranks %d and %d have the same GPU, and NCCL wants "
                                      "one for each: tenon run --devices vulkan-jit:%%",
                                      k, i);
                tell_once(host, g, i, "another rank has the same GPU");
                return TN_OK;
            }
    return TN_OK;
}

// Whether all members can make the call here. Differing records are reported by the group
// below, whose own calls follow.
static tn_status records_compare(const tn_host *host, tn_device_group *g,
                                 const struct call_record *all, bool *out_all)
{
    *out_all = true;
    for (int32_t i = 0; i < g->size; i++)
        *out_all &=
            all[i].can && memcmp(&all[i], &all[0], offsetof(struct call_record, can)) == 0;
    for (int32_t i = 0; i < g->size && !*out_all; i++)
        if (!all[i].can)
            tell_once(host, g, i, g->reason);
    return *out_all && !g->comm ? check_devices(host, g, all, out_all) : TN_OK;
}

static tn_status call_agree(const tn_host *host, tn_device_group *g,
                            const tn_collective_call *call, bool can, bool *out_all)
{
    struct call_record mine = {.kind = call->kind,
                               .reduction = call->reduction,
                               .peer = call->peer,
                               .dtype = call->dtype,
                               .count = call->count,
                               .can = can};
    struct call_record *all = calloc((size_t)g->size, sizeof(*all));
    if (!all)
        return nccl_break(host, g, TN_ERR_MEMORY, "out of memory");
    memcpy(mine.location, g->location, NCCL_LOCATION);
    tn_status status = records_gather(g, &mine, all);
    if (status != TN_OK)
        return status; // not freed: `all` may be written to later
    status = records_compare(host, g, all, out_all);
    free(all);
    return status;
}

// --- waiting ----------------------------------------------------------------------------

// Aborts the communicator after the group below, which has reported why, is broken.
static tn_status comm_drop(tn_device_group *g, tn_status status)
{
    if (g->comm)
        g->library->nccl.CommAbort(g->comm);
    g->comm = NULL;
    g->is_broken = true;
    return status;
}

static tn_status settle_failed(const tn_host *host, tn_device_group *g,
                               const tn_collective_call *call, bool is_cuda, int code)
{
    // NCCL may report a failed member before the watch, which knows the rank.
    for (int i = 0; i < NAMING_MS; i++) {
        tn_status status = g->base->check(g->base_host, g->group, call, clock_ns());
        if (status != TN_OK)
            return comm_drop(g, status);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return nccl_break(
        host, g, TN_ERR_DEVICE, "%s: rank %d: %s", g->library->version, g->rank,
        is_cuda ? cuda_error(g->library, code) : g->library->nccl.GetErrorString(code));
}

tn_status nccl_settle(const tn_host *host, tn_device_group *g,
                      const tn_collective_call *call, int code, bool on_stream)
{
    const int64_t began = clock_ns();
    int state = code, stream = CUDA_NOT_READY;
    for (uint64_t look = 1;; look++) {
        if (state == NCCL_IN_PROGRESS || look % LOOKS == 0) {
            int asked = g->library->nccl.CommError(g->comm, &state);
            state = asked == NCCL_OK ? state : asked;
        }
        if (state != NCCL_OK && state != NCCL_IN_PROGRESS)
            return settle_failed(host, g, call, false, state);
        if (state == NCCL_OK)
            stream = on_stream ? g->library->cuda.StreamQuery(g->stream) : CUDA_OK;
        if (state == NCCL_OK && stream != CUDA_NOT_READY)
            return stream == CUDA_OK ? TN_OK : settle_failed(host, g, call, true, stream);
        if (look % LOOKS)
            continue;
        tn_status status = g->base->check(g->base_host, g->group, call, began);
        if (status != TN_OK)
            return comm_drop(g, status);
        sched_yield();
    }
}

// --- calls ------------------------------------------------------------------------------

// Sends each member its block and receives its block from it, as one NCCL group.
static int all_to_all(tn_device_group *g, cuda_address in, cuda_address out, size_t count,
                      int type, size_t bytes)
{
    int code = g->library->nccl.GroupStart();
    for (int32_t i = 0; i < g->size && code == NCCL_OK; i++) {
        size_t at = (size_t)i * bytes;
        code = g->library->nccl.Send((const void *)(in + at), count, type, i, g->comm,
                                     g->stream);
        if (code == NCCL_OK || code == NCCL_IN_PROGRESS)
            code = g->library->nccl.Recv((void *)(out + at), count, type, i, g->comm,
                                         g->stream);
        if (code == NCCL_IN_PROGRESS)
            code = NCCL_OK;
    }
    int ended = g->library->nccl.GroupEnd();
    return code == NCCL_OK ? ended : code;
}

static int call_start(tn_device_group *g, const tn_collective_call *call, cuda_address in,
                      cuda_address out)
{
    const struct nccl_library *l = g->library;
    const void *from = (const void *)in;
    void *to = (void *)out;
    size_t bytes = call->count * (size_t)tn_dtype_bytes(call->dtype), count = bytes;
    int type = NCCL_BYTES, op = operations[call->reduction];
    if (call_reduces(call)) {
        type = types[call->dtype].number;
        count = call->count * (size_t)types[call->dtype].elements;
    }
    switch (call->kind) {
    case TN_COLLECTIVE_ALL_REDUCE:
        return l->nccl.AllReduce(from, to, count, type, op, g->comm, g->stream);
    case TN_COLLECTIVE_ALL_GATHER:
        return l->nccl.AllGather(from, to, count, type, g->comm, g->stream);
    case TN_COLLECTIVE_REDUCE_SCATTER:
        return l->nccl.ReduceScatter(from, to, count, type, op, g->comm, g->stream);
    case TN_COLLECTIVE_BROADCAST:
        return l->nccl.Broadcast(from, to, count, type, call->peer, g->comm, g->stream);
    default:
        return all_to_all(g, in, out, count, type, bytes);
    }
}

// Makes a call that all members agreed on. A member that fails to ends the group.
static tn_status call_move(const tn_host *host, tn_device_group *g,
                           const tn_collective_call *call, const tn_run *run)
{
    cuda_address in = 0, out = 0;
    struct nccl_context context;
    if (!nccl_context_begin(g, &context))
        return nccl_break(host, g, TN_ERR_DEVICE, "rank %d: CUDA has no context", g->rank);
    tn_status status = nccl_connect(host, g, call);
    if (status == TN_OK) {
        status = nccl_operand(host, g, run, 0, &in);
        if (status == TN_OK)
            status = nccl_operand(host, g, run, run->num_inputs, &out);
        if (status != TN_OK)
            nccl_break(host, g, status, "rank %d has no memory for NCCL", g->rank);
    }
    if (status == TN_OK)
        status = nccl_settle(host, g, call, call_start(g, call, in, out), true);
    nccl_context_end(g, &context);
    return status;
}

// Whether CUDA can use the memory of both operands; creates the output.
static bool operands_serve(tn_device_group *g, const tn_run *run)
{
    const tn_run_memory *memory = tn_run_memory_of(run);
    tn_run_export in = {.struct_size = sizeof(in)}, out = {.struct_size = sizeof(out)};
    g->reason = "its arrays are not in memory that others can use in place";
    if (g->is_broken || run->num_inputs < 1 ||
        memory->operand_export(run, 0, 0, &in) != TN_OK ||
        memory->operand_export(run, run->num_inputs, 0, &out) != TN_OK)
        return false;
    bool serves = nccl_find_device(g, in.device) && nccl_find_device(g, out.device);
    g->reason = g->refused[0] ? g->refused : "its arrays are on two devices";
    return serves;
}

tn_status nccl_run(const tn_host *host, tn_device_group *g, const tn_collective_call *call,
                   const tn_run *run, int32_t *out_done)
{
    bool all = false;
    uint64_t bytes = call->count * (uint64_t)tn_dtype_bytes(call->dtype);
    *out_done = 0;
    if (!call_is_known(call) || bytes == 0 || bytes < g->least)
        return TN_OK;
    tn_status status = call_agree(host, g, call, operands_serve(g, run), &all);
    if (status == TN_OK && all) {
        status = call_move(host, g, call, run);
        *out_done = status == TN_OK;
    }
    if (!*out_done && run->outputs[0]) { // the path through the host makes its own output
        run->release(run, run->outputs[0]);
        run->outputs[0] = NULL;
    }
    return status;
}
