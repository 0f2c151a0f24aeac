// SPDX-License-Identifier: MIT
// How members agree that their records are equal. The elements of a call with few are
// reduced on the way. Members on one machine agree on a board, others by messages.
//
// Messages go by recursive doubling: in round k a member exchanges its message with the
// member whose number differs in bit k. Of n members, with p = 2^k <= n < 2 p, the first n
// - p at even ranks send their message to the next rank beforehand, and receive the result
// from it afterwards.
#include <string.h>
#include <tenon/ops/reference.h>
#include "group.h"

// --- elements ---------------------------------------------------------------------------

#define LOOP(type, wide, operation)                                                        \
    {                                                                                      \
        const type *restrict from = in;                                                    \
        type *restrict to = out;                                                           \
        for (uint64_t i = 0; i < count; i++) {                                             \
            wide a = from[i], b = to[i];                                                   \
            to[i] = (type)(operation);                                                     \
        }                                                                                  \
        break;                                                                             \
    }
// Sums and products of integers wrap, so they are computed unsigned; an extreme with NaN is
// NaN.
#define REDUCE(type, wide)                                                                 \
    switch (reduction) {                                                                   \
    case TN_COLLECTIVE_PRODUCT:                                                            \
        LOOP(type, wide, a *b)                                                             \
    case TN_COLLECTIVE_MINIMUM:                                                            \
        LOOP(type, type, a < b || a != a ? a : b)                                          \
    case TN_COLLECTIVE_MAXIMUM:                                                            \
        LOOP(type, type, a > b || a != a ? a : b)                                          \
    default:                                                                               \
        LOOP(type, wide, a + b)                                                            \
    }                                                                                      \
    break;

static void mpi_agree_multiply_complex(const void *in, void *out, uint64_t count,
                                       bool is_double)
{
    for (uint64_t i = 0; i < 2 * count; i += 2) {
        if (is_double) {
            const double *a = (const double *)in + i;
            double *b = (double *)out + i, re = a[0] * b[0] - a[1] * b[1];
            b[1] = a[0] * b[1] + a[1] * b[0];
            b[0] = re;
        } else {
            const float *a = (const float *)in + i;
            float *b = (float *)out + i, re = a[0] * b[0] - a[1] * b[1];
            b[1] = a[0] * b[1] + a[1] * b[0];
            b[0] = re;
        }
    }
}

// How elements of a dtype that is not complex are computed.
enum { OF_UNSIGNED = 0, OF_SIGNED = 1, OF_FLOAT = 2 };

static int mpi_agree_class_of(tn_dtype dtype)
{
    switch (tn_dtype_kind(dtype)) {
    case TN_KIND_BOOL:
    case TN_KIND_UNSIGNED:
        return OF_UNSIGNED;
    case TN_KIND_SIGNED:
        return OF_SIGNED;
    default:
        return OF_FLOAT;
    }
}

// out[i] = the reduction of in[i] and out[i]. A case is 4 * bytes of an element + its
// class.
static void reduce_elements(tn_dtype dtype, int64_t reduction, uint64_t count,
                            const void *in, void *out)
{
    if (tn_dtype_kind(dtype) == TN_KIND_COMPLEX) {
        if (reduction == TN_COLLECTIVE_PRODUCT) {
            mpi_agree_multiply_complex(in, out, count, dtype == TN_COMPLEX128);
            return;
        }
        count *= 2;
    }
    switch (4 * tn_dtype_bytes(tn_dtype_real(dtype)) + mpi_agree_class_of(dtype)) {
    case 4:
        REDUCE(uint8_t, uint32_t)
    case 8:
        REDUCE(uint16_t, uint32_t)
    case 16:
        REDUCE(uint32_t, uint32_t)
    case 32:
        REDUCE(uint64_t, uint64_t)
    case 4 + OF_SIGNED:
        REDUCE(int8_t, uint32_t)
    case 8 + OF_SIGNED:
        REDUCE(int16_t, uint32_t)
    case 16 + OF_SIGNED:
        REDUCE(int32_t, uint32_t)
    case 32 + OF_SIGNED:
        REDUCE(int64_t, uint64_t)
    case 16 + OF_FLOAT:
        REDUCE(float, float)
    default:
        REDUCE(double, double)
    }
}

static void reduce_data(const int64_t *record, int count, const void *in, void *out)
{
    tn_dtype dtype = (tn_dtype)record[RECORD_DTYPE];
    int32_t reduction = record[RECORD_REDUCTION] == TN_COLLECTIVE_MEAN
                            ? TN_COLLECTIVE_SUM
                            : (int32_t)record[RECORD_REDUCTION];
    if (dtype == TN_F16 || dtype == TN_BF16)
        halves_function(dtype == TN_BF16, reduction)((void *)(uintptr_t)in, out, &count,
                                                     NULL);
    else
        reduce_elements(dtype, reduction, (uint64_t)count, in, out);
}

// --- messages ---------------------------------------------------------------------------

// The bytes of elements that a call's message carries; 0: elements do not travel along.
static uint64_t carried_bytes(const int64_t *record, int32_t size)
{
    bool is_gather = record[RECORD_KIND] == TN_COLLECTIVE_ALL_GATHER;
    if (record[RECORD_KIND] != TN_COLLECTIVE_ALL_REDUCE &&
        record[RECORD_KIND] != TN_COLLECTIVE_BROADCAST && !is_gather)
        return 0;
    const uint64_t room = sizeof(((struct message *)0)->data);
    uint64_t count = (uint64_t)record[RECORD_COUNT];
    if (count > room || (is_gather && (uint64_t)size > room))
        return 0;
    uint64_t bytes = count * (uint64_t)tn_dtype_bytes((tn_dtype)record[RECORD_DTYPE]);
    bytes *= is_gather ? (uint64_t)size : 1;
    return bytes <= room ? bytes : 0;
}

// Merges message `in` into `out`: whether records differ, and the elements.
static void mpi_agree_combine(const struct message *in, struct message *out, int32_t size)
{
    out->differs |= in->differs || memcmp(in->record, out->record, sizeof(in->record)) != 0;
    uint64_t bytes = out->differs ? 0 : carried_bytes(out->record, size);
    if (bytes == 0)
        return;
    if (out->record[RECORD_KIND] == TN_COLLECTIVE_ALL_REDUCE)
        reduce_data(out->record, (int)out->record[RECORD_COUNT], in->data, out->data);
    else
        for (uint64_t i = 0; i < bytes; i++)
            out->data[i] |= in->data[i];
}

// --- rounds -----------------------------------------------------------------------------

// The ranks that a member sends to and receives from in a round; -1: none.
struct round {
    int32_t to, from;
    bool replaces; // the received message replaces this member's own
};

static int log2_of(int32_t size)
{
    int bits = 0;
    while ((INT64_C(2) << bits) <= size)
        bits++;
    return bits;
}

static struct round find_round(int32_t rank, int32_t size, int number)
{
    int bits = log2_of(size);
    int32_t more = size - (INT32_C(1) << bits); // members that send to the next rank
    bool is_paired = rank < 2 * more, gives = is_paired && rank % 2 == 0;
    bool is_last = number == bits + 1;
    struct round round = {.to = -1, .from = -1};
    if (number == 0 && is_paired) {
        round.to = gives ? rank + 1 : -1;
        round.from = gives ? -1 : rank - 1;
    } else if (is_last && is_paired) {
        round.to = gives ? -1 : rank - 1;
        round.from = gives ? rank + 1 : -1;
        round.replaces = gives;
    } else if (number > 0 && !is_last && !gives) {
        int32_t position = is_paired ? rank / 2 : rank - more;
        int32_t other = position ^ (INT32_C(1) << (number - 1));
        round.to = round.from = other < more ? 2 * other + 1 : other + more;
    }
    return round;
}

static int start_round(tn_collective_work *work)
{
    tn_group *group = work->group;
    const struct mpi_library *mpi = group->library;
    struct round round = find_round(group->facts.rank, group->facts.size, work->round);
    handle bytes = mpi->types[TN_U8], comm = group->agreements;
    uint64_t size = offsetof(struct message, data);
    int code = 0;
    if (!group->mine->differs)
        size += carried_bytes(group->mine->record, group->facts.size);
    work->is_under_way[0] = round.to >= 0;
    work->is_under_way[1] = round.from >= 0;
    if (round.from >= 0)
        code = mpi->Irecv(group->theirs, (int)sizeof(struct message), bytes, round.from, 0,
                          comm, &work->requests[1]);
    if (!code && round.to >= 0)
        code = mpi->Isend(group->mine, (int)size, bytes, round.to, 0, comm,
                          &work->requests[0]);
    return code;
}

// Both members of a pair combine in the same order: their results are equal to the bit.
static void end_round(tn_collective_work *work)
{
    tn_group *group = work->group;
    struct round round = find_round(group->facts.rank, group->facts.size, work->round);
    struct message *mine = group->mine, *theirs = group->theirs;
    if (round.from < 0)
        return;
    bool is_theirs = round.replaces || group->facts.rank < round.from;
    if (!round.replaces)
        mpi_agree_combine(is_theirs ? mine : theirs, is_theirs ? theirs : mine,
                          group->facts.size);
    group->mine = is_theirs ? theirs : mine;
    group->theirs = is_theirs ? mine : theirs;
}

_Static_assert((int)RECORD_SIZE == (int)BOARD_RECORD, "a record fits a slot's");

// --- on the board -----------------------------------------------------------------------

// The most bytes of elements that a member reads from the board, all members' together.
enum { BOARD_MOST = 8 * BOARD_ROOM, TURNS_A_PROBE = 32 };

static uint64_t board_carries(const int64_t *record, int32_t size)
{
    int64_t kind = record[RECORD_KIND];
    uint64_t count = (uint64_t)record[RECORD_COUNT];
    if (count > BOARD_ROOM ||
        (kind != TN_COLLECTIVE_ALL_REDUCE && kind != TN_COLLECTIVE_BROADCAST &&
         kind != TN_COLLECTIVE_ALL_GATHER))
        return 0;
    uint64_t bytes = count * (uint64_t)tn_dtype_bytes((tn_dtype)record[RECORD_DTYPE]);
    return bytes <= BOARD_ROOM && bytes * (uint64_t)size <= BOARD_MOST ? bytes : 0;
}

static void board_put(tn_collective_work *work)
{
    const tn_collective_call *call = &work->call;
    const tn_group *group = work->group;
    int32_t rank = group->facts.rank;
    uint64_t bytes = board_carries(work->record, group->facts.size);
    void *data = board_begin(group->board, rank, work->record);
    if (bytes > 0 && (call->kind != TN_COLLECTIVE_BROADCAST || call->peer == rank))
        memcpy(data, call->input, bytes);
    board_say(group->board, rank);
}

// MPI moves requests on, and reports failures, only in a process that calls it.
static int board_probe(tn_collective_work *work)
{
    _Alignas(16) unsigned char status[64]; // an MPI_Status of any library
    tn_group *group = work->group;
    int has_come = 0;
    if (++work->turns % TURNS_A_PROBE)
        return 0;
    int from = (int)(work->turns / TURNS_A_PROBE % (uint64_t)group->facts.size);
    return group->library->Iprobe(from, 1, group->agreements, &has_come, status);
}

static int board_advance(tn_collective_work *work, bool *out_ended)
{
    tn_group *group = work->group;
    *out_ended = board_is_full(group->board);
    if (!*out_ended)
        return board_probe(work);
    group->mine->differs = 0;
    for (int32_t i = 0; i < group->facts.size; i++)
        group->mine->differs |=
            memcmp(board_record(group->board, i), work->record, sizeof(work->record)) != 0;
    return 0;
}

// Reduces the elements of member `rank` into `out`. They are copied first, as a copy
// fetches many lines of another processor's cache at once, and a loop over elements few.
static void board_reduce(const tn_collective_work *work, int32_t rank, char *out)
{
    _Alignas(64) unsigned char part[4096];
    const char *data = board_data(work->group->board, rank);
    uint64_t one = (uint64_t)tn_dtype_bytes(work->call.dtype);
    uint64_t left = work->call.count, most = sizeof(part) / one;
    while (left > 0) {
        uint64_t count = left < most ? left : most;
        memcpy(part, data, count * one);
        reduce_data(work->record, (int)count, part, out);
        data += count * one;
        out += count * one;
        left -= count;
    }
}

// All members reduce in the order of ranks: their results are equal to the bit.
static void board_take(tn_collective_work *work)
{
    const tn_collective_call *call = &work->call;
    const tn_group *group = work->group;
    uint64_t bytes = board_carries(work->record, group->facts.size);
    int32_t first = call->kind == TN_COLLECTIVE_BROADCAST ? call->peer : 0;
    memcpy(call->output, board_data(group->board, first), bytes);
    for (int32_t i = 1; i < group->facts.size; i++) {
        if (call->kind == TN_COLLECTIVE_ALL_REDUCE)
            board_reduce(work, i, call->output);
        else if (call->kind == TN_COLLECTIVE_ALL_GATHER)
            memcpy((char *)call->output + (uint64_t)i * bytes, board_data(group->board, i),
                   bytes);
    }
}

// --- agreements -------------------------------------------------------------------------

static void agree_pack(const tn_collective_work *work, unsigned char *data)
{
    const tn_collective_call *call = &work->call;
    int32_t rank = work->group->facts.rank;
    uint64_t bytes = call->count * (uint64_t)tn_dtype_bytes(call->dtype);
    if (call->kind != TN_COLLECTIVE_ALL_REDUCE)
        memset(data, 0, carried_bytes(work->record, work->group->facts.size));
    if (call->kind == TN_COLLECTIVE_BROADCAST && call->peer != rank)
        return;
    data += call->kind == TN_COLLECTIVE_ALL_GATHER ? (uint64_t)rank * bytes : 0;
    memcpy(data, call->input, bytes);
}

int agree_begin(tn_collective_work *work)
{
    struct message *mine = work->group->mine;
    if (work->group->board) {
        board_put(work);
        return 0;
    }
    memcpy(mine->record, work->record, sizeof(work->record));
    mine->differs = 0;
    if (agree_carries(work))
        agree_pack(work, mine->data);
    work->round = 0;
    return start_round(work);
}

int agree_advance(tn_collective_work *work, bool *out_ended)
{
    const struct mpi_library *mpi = work->group->library;
    _Alignas(16) unsigned char status[64]; // an MPI_Status of any library
    if (work->group->board)
        return board_advance(work, out_ended);
    *out_ended = false;
    for (;;) {
        for (int i = 0; i < 2; i++) {
            int has_come = 0;
            int code = work->is_under_way[i]
                           ? mpi->Test(&work->requests[i], &has_come, status)
                           : 0;
            if (code)
                return code;
            work->is_under_way[i] &= !has_come;
        }
        if (work->is_under_way[0] || work->is_under_way[1])
            return 0;
        end_round(work);
        if (work->round > log2_of(work->group->facts.size)) {
            *out_ended = true;
            return 0;
        }
        work->round++;
        int code = start_round(work);
        if (code)
            return code;
    }
}

bool agree_carries(const tn_collective_work *work)
{
    int32_t size = work->group->facts.size;
    return (work->group->board ? board_carries : carried_bytes)(work->record, size) > 0;
}

void agree_unpack(tn_collective_work *work)
{
    if (work->group->board) {
        board_take(work);
        return;
    }
    memcpy(work->call.output, work->group->mine->data,
           carried_bytes(work->record, work->group->facts.size));
}
