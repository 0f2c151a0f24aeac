// SPDX-License-Identifier: MIT
// Plays libcuda.so.1 and libnccl.so.2 for processes of one machine, whose devices are
// Mesa's software driver: memory of Vulkan is a file, which is mapped, and members meet in
// a file of shared memory. A call is begun when it is asked for, and done piece by piece
// while somebody asks for the stream. FAKE_NCCL says what goes wrong:
//
//   same-gpu   all processes have one GPU
//   error      the second call of rank 1 ends with an error
//   dies       rank 1 is killed in its second call
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "library.h"

#pragma GCC visibility push(default)

enum { MOST_RANKS = 8, NOT_FOUND = 500, SYSTEM_ERROR = 2, INVALID = 4, FOREIGN = 101 };
static const size_t SLOT = 4 << 20; // bytes of a member's elements, at most

static bool fake_is(const char *what)
{
    const char *value = getenv("FAKE_NCCL");
    return value && strcmp(value, what) == 0;
}

static int own_rank(void)
{
    const char *run = getenv("TENON_RUN");
    int rank = 0;
    return run && sscanf(run, "rank=%d", &rank) == 1 ? rank : 0;
}

// --- CUDA -------------------------------------------------------------------------------

struct cuda_memory {
    unsigned char *map;
    size_t size;
};
static struct cuda_context {
    int unused;
} context;
static cuda_context *current;

int cuInit(unsigned flags)
{
    return flags == 0 ? CUDA_OK : INVALID;
}

int cuGetErrorString(int code, const char **out)
{
    *out = code == CUDA_OK ? "no error" : "the fake driver refuses";
    return CUDA_OK;
}

int cuDeviceGetCount(int *out)
{
    *out = 1;
    return CUDA_OK;
}

int cuDeviceGet(int *out, int number)
{
    *out = number;
    return number == 0 ? CUDA_OK : FOREIGN;
}

// The UUID of Mesa's software driver is told by who runs the test.
int cuDeviceGetUuid_v2(unsigned char out[16], int device)
{
    const char *text = getenv("FAKE_CUDA_UUID");
    for (int i = 0; i < 16; i++) {
        unsigned byte = 0;
        if (text && sscanf(text + 2 * i, "%2x", &byte) != 1)
            return INVALID;
        out[i] = (unsigned char)byte;
    }
    return device == 0 && text ? CUDA_OK : INVALID;
}

int cuDeviceGetPCIBusId(char *out, int size, int device)
{
    snprintf(out, (size_t)size, "0000:%02x:00.0",
             (unsigned)(fake_is("same-gpu") ? 0 : own_rank() + 1));
    return device == 0 ? CUDA_OK : FOREIGN;
}

int cuDevicePrimaryCtxRetain(cuda_context **out, int device)
{
    *out = &context;
    return device == 0 ? CUDA_OK : FOREIGN;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    return device == 0 ? CUDA_OK : FOREIGN;
}

int cuCtxSetCurrent(cuda_context *it)
{
    current = it;
    return CUDA_OK;
}

int cuCtxGetCurrent(cuda_context **out)
{
    *out = current;
    return CUDA_OK;
}

int cuImportExternalMemory(cuda_memory **out, const cuda_memory_handle *handle)
{
    struct stat file;
    cuda_memory *memory = calloc(1, sizeof(*memory));
    if (!memory || !current || handle->type != CUDA_OPAQUE_FD ||
        fstat(handle->handle.fd, &file) || (uint64_t)file.st_size < handle->size) {
        free(memory);
        return INVALID;
    }
    // Mesa has a page of its own before the elements, and something behind them.
    off_t before = (file.st_size - (off_t)handle->size) / 4096 * 4096;
    void *map = mmap(NULL, handle->size, PROT_READ | PROT_WRITE, MAP_SHARED,
                     handle->handle.fd, before);
    if (map == MAP_FAILED) {
        free(memory);
        return INVALID;
    }
    *memory = (cuda_memory){.map = map, .size = handle->size};
    close(handle->handle.fd);
    *out = memory;
    return CUDA_OK;
}

int cuExternalMemoryGetMappedBuffer(cuda_address *out, cuda_memory *memory,
                                    const cuda_memory_range *range)
{
    if (range->offset + range->size > memory->size)
        return INVALID;
    *out = (cuda_address)(uintptr_t)(memory->map + range->offset);
    return CUDA_OK;
}

int cuDestroyExternalMemory(cuda_memory *memory)
{
    munmap(memory->map, memory->size);
    free(memory);
    return CUDA_OK;
}

// What is mapped of external memory is freed first; it goes with the memory here.
int cuMemFree_v2(cuda_address address)
{
    return address ? CUDA_OK : INVALID;
}

int cuMemAlloc_v2(cuda_address *out, size_t size)
{
    *out = (cuda_address)(uintptr_t)malloc(size);
    return *out ? CUDA_OK : INVALID;
}

int cuMemcpyDtoDAsync_v2(cuda_address to, cuda_address from, size_t size,
                         cuda_stream *stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
    return CUDA_OK;
}

// Mesa's software driver shares no timelines.
int cuImportExternalSemaphore(cuda_semaphore **out, const cuda_semaphore_handle *handle)
{
    *out = NULL;
    return handle->type == CUDA_TIMELINE_FD ? NOT_FOUND : INVALID;
}

int cuDestroyExternalSemaphore(cuda_semaphore *semaphore)
{
    return semaphore ? INVALID : CUDA_OK;
}

int cuSignalExternalSemaphoresAsync(cuda_semaphore *const *semaphores,
                                    const cuda_semaphore_value *values, unsigned count,
                                    cuda_stream *stream)
{
    (void)semaphores, (void)values, (void)stream;
    return count ? INVALID : CUDA_OK;
}

int cuWaitExternalSemaphoresAsync(cuda_semaphore *const *semaphores,
                                  const cuda_semaphore_value *values, unsigned count,
                                  cuda_stream *stream)
{
    (void)semaphores, (void)values, (void)stream;
    return count ? INVALID : CUDA_OK;
}

// --- NCCL -------------------------------------------------------------------------------

enum operation { ALL_REDUCE = 1, BROADCAST, ALL_GATHER, REDUCE_SCATTER, EXCHANGE };

// What members have in common: which calls each has given its elements for, and done.
struct meeting {
    atomic_uint joined;
    atomic_uint given[MOST_RANKS], done[MOST_RANKS];
};

struct nccl_comm {
    int rank, size;
    struct meeting *meeting;
    unsigned char *slots;
    unsigned number; // of the call
    int error;
};

// The call of the one stream.
static struct pending {
    enum operation operation;
    bool is_under_way, is_given;
    const unsigned char *in;
    unsigned char *out;
    size_t count, give; // elements, and bytes that a member gives
    int type, op, root;
    nccl_comm *comm;
} pending;
static struct {
    bool is_open;
    int count;
} group;

static size_t type_bytes(int type)
{
    static const unsigned char bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return bytes[type];
}

// --- elements ---------------------------------------------------------------------------

static float half_to_float(uint16_t bits, bool is_bf16)
{
    uint32_t word = (uint32_t)bits << 16;
    float out;
    if (is_bf16) {
        memcpy(&out, &word, sizeof(out));
        return out;
    }
    int exponent = bits >> 10 & 31;
    float value = (float)(exponent ? (bits & 1023) + 1024 : bits & 1023);
    for (int i = exponent ? exponent : 1; i < 25; i++)
        value /= 2;
    for (int i = 25; i < exponent; i++)
        value *= 2;
    return bits >> 15 ? -value : value;
}

// Of small numbers, which is what the tests have: whole ones and halves.
static uint16_t half_of_float(float value, bool is_bf16)
{
    for (uint32_t bits = 0; bits < 65536; bits++)
        if (half_to_float((uint16_t)bits, is_bf16) == value)
            return (uint16_t)bits;
    return 0x7fff;
}

static double read_element(const unsigned char *at, int type)
{
    union {
        int8_t i8;
        uint8_t u8;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        uint16_t half;
        float f32;
        double f64;
    } e;
    memcpy(&e, at, type_bytes(type));
    switch (type) {
    case 0:
        return e.i8;
    case 1:
        return e.u8;
    case 2:
        return e.i32;
    case 3:
        return e.u32;
    case 4:
        return (double)e.i64;
    case 5:
        return (double)e.u64;
    case 7:
        return (double)e.f32;
    case 8:
        return e.f64;
    default:
        return (double)half_to_float(e.half, type == 9);
    }
}

static void write_element(unsigned char *at, int type, double value)
{
    float f32 = (float)value;
    int64_t whole = type < 6 ? (int64_t)value : 0; // the low bytes are those of all widths
    uint16_t half;
    if (type < 6)
        memcpy(at, &whole, type_bytes(type));
    else if (type == 7)
        memcpy(at, &f32, sizeof(f32));
    else if (type == 8)
        memcpy(at, &value, sizeof(value));
    else {
        half = half_of_float(f32, type == 9);
        memcpy(at, &half, sizeof(half));
    }
}

static double reduce_two(int op, double a, double b)
{
    return op == 1 ? a * b : op == 2 ? (a > b ? a : b) : op == 3 ? (a < b ? a : b) : a + b;
}

// Elements `from` .. `from` + `count` of all members.
static void reduce_all(const struct pending *p, size_t from)
{
    size_t one = type_bytes(p->type);
    for (size_t i = 0; i < p->count; i++) {
        double value = read_element(p->comm->slots + (from + i) * one, p->type);
        for (int r = 1; r < p->comm->size; r++)
            value = reduce_two(
                p->op, value,
                read_element(p->comm->slots + (size_t)r * SLOT + (from + i) * one,
                             p->type));
        write_element(p->out + i * one, p->type,
                      p->op == 4 ? value / p->comm->size : value);
    }
}

static void take_elements(const struct pending *p)
{
    size_t bytes = p->count * type_bytes(p->type);
    for (int r = 0; r < p->comm->size; r++) {
        const unsigned char *theirs = p->comm->slots + (size_t)r * SLOT;
        if (p->operation == ALL_GATHER)
            memcpy(p->out + (size_t)r * bytes, theirs, bytes);
        else if (p->operation == EXCHANGE)
            memcpy(p->out + (size_t)r * bytes, theirs + (size_t)p->comm->rank * bytes,
                   bytes);
        else if (p->operation == BROADCAST && r == p->root)
            memcpy(p->out, theirs, bytes);
    }
    if (p->operation == ALL_REDUCE || p->operation == REDUCE_SCATTER)
        reduce_all(p, p->operation == ALL_REDUCE ? 0 : (size_t)p->comm->rank * p->count);
}

// --- moving -----------------------------------------------------------------------------

static bool all_at(atomic_uint *counters, const nccl_comm *comm, unsigned number)
{
    for (int r = 0; r < comm->size; r++)
        if (atomic_load(&counters[r]) < number)
            return false;
    return true;
}

// Does what can be done now; true when the call has ended.
static bool pending_advance(struct pending *p)
{
    struct meeting *meeting = p->comm->meeting;
    unsigned number = p->comm->number;
    if (!p->is_given && all_at(meeting->done, p->comm, number - 1)) {
        memcpy(p->comm->slots + (size_t)p->comm->rank * SLOT, p->in, p->give);
        atomic_store(&meeting->given[p->comm->rank], number);
        p->is_given = true;
    }
    if (!p->is_given || !all_at(meeting->given, p->comm, number))
        return false;
    take_elements(p);
    atomic_store(&meeting->done[p->comm->rank], number);
    p->is_under_way = false;
    return true;
}

int cuStreamCreate(cuda_stream **out, unsigned flags)
{
    *out = (cuda_stream *)&pending;
    return flags == CUDA_NON_BLOCKING && current ? CUDA_OK : FOREIGN;
}

int cuStreamDestroy_v2(cuda_stream *stream)
{
    return stream == (cuda_stream *)&pending ? CUDA_OK : INVALID;
}

int cuStreamQuery(cuda_stream *stream)
{
    if (stream != (cuda_stream *)&pending || !current)
        return INVALID;
    return !pending.is_under_way || pending_advance(&pending) ? CUDA_OK : CUDA_NOT_READY;
}

static int call_begin(struct pending p)
{
    if (pending.is_under_way || p.give > SLOT || !current)
        return INVALID;
    p.comm->number++;
    if (fake_is("error") && p.comm->rank == 1 && p.comm->number == 2)
        p.comm->error = SYSTEM_ERROR;
    if (fake_is("dies") && p.comm->rank == 1 && p.comm->number == 2)
        raise(SIGKILL);
    p.is_under_way = true;
    pending = p;
    return NCCL_IN_PROGRESS;
}

int ncclGetVersion(int *out)
{
    *out = 22799;
    return NCCL_OK;
}

const char *ncclGetErrorString(int code)
{
    return code == SYSTEM_ERROR ? "a fake system error" : "a fake error";
}

int ncclGetUniqueId(nccl_id *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    memset(out, 0, sizeof(*out));
    snprintf((char *)out->bytes, sizeof(out->bytes), "/tenon-fake-%d-%ld", (int)getpid(),
             now.tv_nsec);
    return NCCL_OK;
}

int ncclCommInitRankConfig(nccl_comm **out, int size, nccl_id id, int rank,
                           nccl_config *config)
{
    const size_t bytes = 4096 + MOST_RANKS * SLOT;
    if (config->magic != NCCL_CONFIG_MAGIC || config->blocking || size > MOST_RANKS)
        return INVALID;
    if (strcmp(getenv("NCCL_NVLS_ENABLE") ? getenv("NCCL_NVLS_ENABLE") : "", "0") != 0)
        return INVALID;
    int fd = shm_open((const char *)id.bytes, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes))
        return SYSTEM_ERROR;
    unsigned char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    nccl_comm *comm = calloc(1, sizeof(*comm));
    if (map == MAP_FAILED || !comm)
        return SYSTEM_ERROR;
    *comm = (nccl_comm){
        .rank = rank, .size = size, .meeting = (struct meeting *)map, .slots = map + 4096};
    if ((int)atomic_fetch_add(&comm->meeting->joined, 1) + 1 == size)
        shm_unlink((const char *)id.bytes);
    *out = comm;
    return NCCL_IN_PROGRESS;
}

int ncclCommGetAsyncError(nccl_comm *comm, int *out)
{
    bool has_all = (int)atomic_load(&comm->meeting->joined) >= comm->size;
    *out = comm->error ? comm->error : has_all ? NCCL_OK : NCCL_IN_PROGRESS;
    return NCCL_OK;
}

int ncclCommFinalize(nccl_comm *comm)
{
    return comm->error;
}

int ncclCommDestroy(nccl_comm *comm)
{
    fprintf(stderr, "fake NCCL: rank %d of %d made %u calls\n", comm->rank, comm->size,
            comm->number);
    munmap(comm->meeting, 4096 + MOST_RANKS * SLOT);
    free(comm);
    return NCCL_OK;
}

int ncclCommAbort(nccl_comm *comm)
{
    pending.is_under_way = false;
    return ncclCommDestroy(comm);
}

int ncclAllReduce(const void *in, void *out, size_t count, int type, int op,
                  nccl_comm *comm, cuda_stream *stream)
{
    (void)stream;
    return call_begin((struct pending){.operation = ALL_REDUCE,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .give = count * type_bytes(type),
                                       .type = type,
                                       .op = op,
                                       .comm = comm});
}

int ncclBroadcast(const void *in, void *out, size_t count, int type, int root,
                  nccl_comm *comm, cuda_stream *stream)
{
    (void)stream;
    return call_begin((struct pending){.operation = BROADCAST,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .give = count * type_bytes(type),
                                       .type = type,
                                       .root = root,
                                       .comm = comm});
}

int ncclAllGather(const void *in, void *out, size_t count, int type, nccl_comm *comm,
                  cuda_stream *stream)
{
    (void)stream;
    return call_begin((struct pending){.operation = ALL_GATHER,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .give = count * type_bytes(type),
                                       .type = type,
                                       .comm = comm});
}

int ncclReduceScatter(const void *in, void *out, size_t count, int type, int op,
                      nccl_comm *comm, cuda_stream *stream)
{
    (void)stream;
    return call_begin(
        (struct pending){.operation = REDUCE_SCATTER,
                         .in = in,
                         .out = out,
                         .count = count,
                         .give = count * (size_t)comm->size * type_bytes(type),
                         .type = type,
                         .op = op,
                         .comm = comm});
}

// A group of messages is one exchange of blocks; the first ones tell where these begin.
int ncclGroupStart(void)
{
    group.is_open = true;
    group.count = 0;
    return NCCL_OK;
}

static struct pending exchange;

int ncclSend(const void *in, size_t count, int type, int peer, nccl_comm *comm,
             cuda_stream *stream)
{
    (void)stream;
    if (!group.is_open || peer != group.count)
        return INVALID;
    if (peer == 0)
        exchange = (struct pending){.operation = EXCHANGE,
                                    .in = in,
                                    .count = count,
                                    .give = count * (size_t)comm->size * type_bytes(type),
                                    .type = type,
                                    .comm = comm};
    return NCCL_OK;
}

int ncclRecv(void *out, size_t count, int type, int peer, nccl_comm *comm,
             cuda_stream *stream)
{
    (void)stream, (void)comm;
    if (!group.is_open || peer != group.count || count != exchange.count ||
        type != exchange.type)
        return INVALID;
    if (peer == 0)
        exchange.out = out;
    group.count++;
    return NCCL_OK;
}

int ncclGroupEnd(void)
{
    bool is_whole = group.is_open && group.count == exchange.comm->size;
    group.is_open = false;
    return is_whole ? call_begin(exchange) : INVALID;
}
