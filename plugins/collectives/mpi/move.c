// SPDX-License-Identifier: MIT
// The MPI functions that each kind of call is made of.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tenon/ops/reference.h>
#include "group.h"

// The most elements of a part, as MPI's counts are ints.
static const uint64_t MOST = UINT64_C(1) << 30;

static const char *const kinds[] = {
    [TN_COLLECTIVE_ALL_REDUCE] = "all_reduce",
    [TN_COLLECTIVE_ALL_GATHER] = "all_gather",
    [TN_COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
    [TN_COLLECTIVE_BROADCAST] = "broadcast",
    [TN_COLLECTIVE_ALL_TO_ALL] = "all_to_all",
    [TN_COLLECTIVE_SEND] = "send",
    [TN_COLLECTIVE_RECEIVE] = "receive",
    [TN_COLLECTIVE_BARRIER] = "barrier",
};
static const char *const reductions[] = {"sum", "product", "minimum", "maximum", "mean"};

const char *move_name(int32_t kind)
{
    return kind == CALL_SPLIT   ? "split"
           : kind == CALL_LEAVE ? "the end of its program"
                                : kinds[kind];
}

static bool mpi_move_reduces(int64_t kind)
{
    return kind == TN_COLLECTIVE_ALL_REDUCE || kind == TN_COLLECTIVE_REDUCE_SCATTER;
}

void move_print(const int64_t *record, char *text, size_t size)
{
    int32_t kind = (int32_t)record[RECORD_KIND];
    if (kind >= TN_COLLECTIVE_BARRIER)
        snprintf(text, size, "%s", move_name(kind));
    else if (kind == TN_COLLECTIVE_SEND || kind == TN_COLLECTIVE_RECEIVE)
        snprintf(text, size, "%s of %" PRId64 " %s %s rank %" PRId64 " (tag %" PRId64 ")",
                 move_name(kind), record[RECORD_COUNT],
                 tn_dtype_name((tn_dtype)record[RECORD_DTYPE]),
                 kind == TN_COLLECTIVE_SEND ? "to" : "from", record[RECORD_PEER],
                 record[RECORD_REDUCTION]);
    else if (mpi_move_reduces(kind))
        snprintf(text, size, "%s (%s) of %" PRId64 " %s", move_name(kind),
                 reductions[record[RECORD_REDUCTION]], record[RECORD_COUNT],
                 tn_dtype_name((tn_dtype)record[RECORD_DTYPE]));
    else if (kind == TN_COLLECTIVE_BROADCAST)
        snprintf(text, size, "broadcast of %" PRId64 " %s from rank %" PRId64,
                 record[RECORD_COUNT], tn_dtype_name((tn_dtype)record[RECORD_DTYPE]),
                 record[RECORD_PEER]);
    else
        snprintf(text, size, "%s of %" PRId64 " %s", move_name(kind), record[RECORD_COUNT],
                 tn_dtype_name((tn_dtype)record[RECORD_DTYPE]));
}

// --- what is wrong by itself -------------------------------------------------------------

static tn_status mpi_move_check_reduction(const tn_host *host,
                                          const tn_collective_call *call)
{
    int32_t op = call->reduction;
    bool is_sound = true;
    if (op < TN_COLLECTIVE_SUM || op > TN_COLLECTIVE_MEAN)
        return host->fail(host, TN_ERR_ARGUMENT, "%s: reduction %d, expected 0 .. %d",
                          kinds[call->kind], op, TN_COLLECTIVE_MEAN);
    switch (tn_dtype_kind(call->dtype)) {
    case TN_KIND_BOOL:
        is_sound = op == TN_COLLECTIVE_MINIMUM || op == TN_COLLECTIVE_MAXIMUM;
        break;
    case TN_KIND_SIGNED:
    case TN_KIND_UNSIGNED:
        is_sound = op != TN_COLLECTIVE_MEAN;
        break;
    case TN_KIND_COMPLEX:
        is_sound = op != TN_COLLECTIVE_MINIMUM && op != TN_COLLECTIVE_MAXIMUM;
        break;
    case TN_KIND_FLOAT8:
        is_sound = false;
        break;
    default:
        break;
    }
    return is_sound
               ? TN_OK
               : host->fail(host, TN_ERR_ARGUMENT, "%s: %s has no %s here",
                            kinds[call->kind], tn_dtype_name(call->dtype), reductions[op]);
}

static tn_status check_memory(const tn_host *host, const tn_collective_call *call)
{
    bool reads =
        call->kind != TN_COLLECTIVE_RECEIVE && call->kind != TN_COLLECTIVE_BROADCAST;
    bool writes = call->kind != TN_COLLECTIVE_SEND;
    if (call->count > 0 && ((reads && !call->input) || (writes && !call->output)))
        return host->fail(host, TN_ERR_ARGUMENT, "%s: the %s is NULL", kinds[call->kind],
                          reads && !call->input ? "input" : "output");
    bool in_parts = call->kind == TN_COLLECTIVE_ALL_REDUCE ||
                    call->kind == TN_COLLECTIVE_BROADCAST ||
                    call->kind == TN_COLLECTIVE_SEND || call->kind == TN_COLLECTIVE_RECEIVE;
    if (!in_parts && call->count > MOST)
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "%s of %" PRIu64 " elements a member, expected at most %" PRIu64,
                          kinds[call->kind], call->count, MOST);
    return TN_OK;
}

tn_status move_check(const tn_host *host, const tn_group *group,
                     const tn_collective_call *call)
{
    if (call->kind < TN_COLLECTIVE_ALL_REDUCE || call->kind > TN_COLLECTIVE_BARRIER)
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "a collective of kind %d, expected 1 .. %d", call->kind,
                          TN_COLLECTIVE_BARRIER);
    if (call->kind == TN_COLLECTIVE_BARRIER)
        return TN_OK;
    if (call->dtype <= TN_DTYPE_NONE || call->dtype >= TN_NUM_DTYPES)
        return host->fail(host, TN_ERR_ARGUMENT, "%s: dtype %d is unknown",
                          kinds[call->kind], call->dtype);
    if (call->peer < 0 || call->peer >= group->facts.size)
        return host->fail(host, TN_ERR_ARGUMENT, "%s: rank %d, expected 0 .. %d",
                          kinds[call->kind], call->peer, group->facts.size - 1);
    if (call->tag < 0 || call->tag > 32767) // MPI_TAG_UB is at least this
        return host->fail(host, TN_ERR_ARGUMENT, "%s: tag %d, expected 0 .. 32767",
                          kinds[call->kind], call->tag);
    if ((call->kind == TN_COLLECTIVE_SEND || call->kind == TN_COLLECTIVE_RECEIVE) &&
        call->peer == group->facts.rank)
        return host->fail(host, TN_ERR_ARGUMENT, "%s: rank %d is this one",
                          kinds[call->kind], call->peer);
    tn_status status =
        mpi_move_reduces(call->kind) ? mpi_move_check_reduction(host, call) : TN_OK;
    return status == TN_OK ? check_memory(host, call) : status;
}

// --- moving -----------------------------------------------------------------------------

static handle operation_of(const struct mpi_library *library,
                           const tn_collective_call *call)
{
    int32_t op =
        call->reduction == TN_COLLECTIVE_MEAN ? TN_COLLECTIVE_SUM : call->reduction;
    bool is_half = call->dtype == TN_F16 || call->dtype == TN_BF16;
    return is_half ? library->halves[call->dtype == TN_BF16][op] : library->operations[op];
}

// Starts moving elements `from` .. `from` + `count` - 1 of each member.
static int start_part(tn_collective_work *work, uint64_t from, int count)
{
    const tn_collective_call *call = &work->call;
    const struct mpi_library *mpi = work->group->library;
    handle comm = work->group->calls, type = mpi->types[call->dtype];
    handle *request = &work->request;
    uint64_t offset = from * (uint64_t)tn_dtype_bytes(call->dtype);
    const char *in = call->input ? (const char *)call->input + offset : NULL;
    char *out = call->output ? (char *)call->output + offset : NULL;
    switch (call->kind) {
    case TN_COLLECTIVE_ALL_REDUCE:
        return mpi->Iallreduce(in == out ? mpi->in_place : in, out, count, type,
                               operation_of(mpi, call), comm, request);
    case TN_COLLECTIVE_ALL_GATHER:
        return mpi->Iallgather(in, count, type, out, count, type, comm, request);
    case TN_COLLECTIVE_REDUCE_SCATTER:
        return mpi->Ireduce_scatter_block(in, out, count, type, operation_of(mpi, call),
                                          comm, request);
    case TN_COLLECTIVE_BROADCAST:
        return mpi->Ibcast(out, count, type, call->peer, comm, request);
    case TN_COLLECTIVE_ALL_TO_ALL:
        return mpi->Ialltoall(in, count, type, out, count, type, comm, request);
    case TN_COLLECTIVE_SEND:
        return mpi->Isend(in, count, type, call->peer, call->tag, comm, request);
    default:
        return mpi->Irecv(out, count, type, call->peer, call->tag, comm, request);
    }
}

int move_start(tn_collective_work *work, bool *out_more)
{
    const tn_collective_call *call = &work->call;
    uint64_t left = call->count - work->moved, part = left < MOST ? left : MOST;
    *out_more = part < left;
    if (call->kind == TN_COLLECTIVE_BROADCAST && work->moved == 0 && call->count > 0 &&
        call->peer == work->group->facts.rank && call->input != call->output)
        memcpy(call->output, call->input,
               call->count * (uint64_t)tn_dtype_bytes(call->dtype));
    int code = start_part(work, work->moved, (int)part);
    work->part = (int)part;
    work->moved += part;
    return code;
}

static void divide_halves(uint16_t *out, uint64_t count, tn_dtype dtype, float by)
{
    for (uint64_t i = 0; i < count; i++)
        out[i] = dtype == TN_F16 ? tn_f16_of_f32(tn_f32_of_f16(out[i]) / by)
                                 : tn_bf16_of_f32(tn_f32_of_bf16(out[i]) / by);
}

void move_finish(tn_collective_work *work)
{
    const tn_collective_call *call = &work->call;
    int32_t size = work->group->facts.size;
    if (!mpi_move_reduces(call->kind) || call->reduction != TN_COLLECTIVE_MEAN)
        return;
    bool is_complex = tn_dtype_kind(call->dtype) == TN_KIND_COMPLEX;
    uint64_t count = is_complex ? 2 * call->count : call->count;
    tn_dtype dtype = tn_dtype_real(call->dtype);
    if (dtype == TN_F64)
        for (uint64_t i = 0; i < count; i++)
            ((double *)call->output)[i] /= size;
    else if (dtype == TN_F32)
        for (uint64_t i = 0; i < count; i++)
            ((float *)call->output)[i] /= (float)size;
    else
        divide_halves(call->output, count, dtype, (float)size);
}
