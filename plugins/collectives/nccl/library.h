// SPDX-License-Identifier: MIT
// NCCL and CUDA's driver, opened by name: the functions in use, and structs and numbers of
// their binary interfaces. No header of either is used.
#ifndef NCCL_LIBRARY_H
#define NCCL_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --- CUDA's driver ----------------------------------------------------------------------

typedef struct cuda_context cuda_context;
typedef struct cuda_stream cuda_stream;
typedef struct cuda_memory cuda_memory;       // external memory
typedef struct cuda_semaphore cuda_semaphore; // external semaphore
typedef uint64_t cuda_address;

enum {
    CUDA_OK = 0,
    CUDA_NO_DEVICE = 100,
    CUDA_NOT_READY = 600,
    CUDA_NON_BLOCKING = 1, // of a stream: it does not wait for the default one
    CUDA_OPAQUE_FD = 1,    // type of external memory
    CUDA_DEDICATED = 1,    // of external memory: an allocation for one buffer
    CUDA_TIMELINE_FD = 9,  // type of external semaphores: Vulkan's timelines
};

// Type, handle (a file descriptor, taken on success), and size of external memory.
typedef struct cuda_memory_handle {
    uint32_t type;
    uint32_t padding;
    union {
        int fd;
        void *pointers[2];
    } handle;
    uint64_t size; // bytes, of the allocation
    uint32_t flags;
    uint32_t reserved[17];
} cuda_memory_handle;

typedef struct cuda_memory_range {
    uint64_t offset, size; // bytes
    uint32_t flags;
    uint32_t reserved[17];
} cuda_memory_range;

typedef struct cuda_semaphore_handle {
    uint32_t type;
    uint32_t padding;
    union {
        int fd;
        void *pointers[2];
    } handle;
    uint32_t flags;
    uint32_t reserved[17];
} cuda_semaphore_handle;

// Value that a stream waits for, or signals.
typedef struct cuda_semaphore_value {
    uint64_t value;
    uint32_t reserved[34];
} cuda_semaphore_value;

_Static_assert(sizeof(cuda_memory_handle) == 104, "104 bytes");
_Static_assert(offsetof(cuda_memory_handle, size) == 24, "behind the handle");
_Static_assert(sizeof(cuda_memory_range) == 88, "88 bytes");
_Static_assert(sizeof(cuda_semaphore_handle) == 96, "96 bytes");
_Static_assert(offsetof(cuda_semaphore_handle, flags) == 24, "behind the handle");
_Static_assert(sizeof(cuda_semaphore_value) == 144, "144 bytes");

// The functions: X(name, symbol, arguments). All give a code, 0 when they succeed.
// clang-format off
#define CUDA_FUNCTIONS(X)                                                                  \
    X(Init, "cuInit", (unsigned flags))                                                    \
    X(GetErrorString, "cuGetErrorString", (int code, const char **out))                    \
    X(DeviceGetCount, "cuDeviceGetCount", (int *out))                                      \
    X(DeviceGet, "cuDeviceGet", (int *out_device, int number))                             \
    X(DeviceGetUuid, "cuDeviceGetUuid_v2", (unsigned char out[16], int device))            \
    X(DeviceGetBus, "cuDeviceGetPCIBusId", (char *out, int size, int device))              \
    X(PrimaryRetain, "cuDevicePrimaryCtxRetain", (cuda_context **out, int device))         \
    X(PrimaryRelease, "cuDevicePrimaryCtxRelease_v2", (int device))                        \
    X(CtxSetCurrent, "cuCtxSetCurrent", (cuda_context *context))                           \
    X(CtxGetCurrent, "cuCtxGetCurrent", (cuda_context **out))                              \
    X(StreamCreate, "cuStreamCreate", (cuda_stream **out, unsigned flags))                 \
    X(StreamDestroy, "cuStreamDestroy_v2", (cuda_stream *stream))                          \
    X(StreamQuery, "cuStreamQuery", (cuda_stream *stream))                                 \
    X(CopyOnDevice, "cuMemcpyDtoDAsync_v2",                                                \
      (cuda_address to, cuda_address from, size_t size, cuda_stream *stream))              \
    X(MemAlloc, "cuMemAlloc_v2", (cuda_address *out, size_t size))                         \
    X(MemFree, "cuMemFree_v2", (cuda_address address))                                     \
    X(ImportMemory, "cuImportExternalMemory",                                              \
      (cuda_memory **out, const cuda_memory_handle *handle))                               \
    X(MapMemory, "cuExternalMemoryGetMappedBuffer",                                        \
      (cuda_address *out, cuda_memory *memory, const cuda_memory_range *range))            \
    X(DestroyMemory, "cuDestroyExternalMemory", (cuda_memory *memory))                     \
    X(ImportSemaphore, "cuImportExternalSemaphore",                                        \
      (cuda_semaphore **out, const cuda_semaphore_handle *handle))                         \
    X(DestroySemaphore, "cuDestroyExternalSemaphore", (cuda_semaphore *semaphore))         \
    X(Signal, "cuSignalExternalSemaphoresAsync",                                           \
      (cuda_semaphore *const *semaphores, const cuda_semaphore_value *values,              \
       unsigned count, cuda_stream *stream))                                               \
    X(Wait, "cuWaitExternalSemaphoresAsync",                                               \
      (cuda_semaphore *const *semaphores, const cuda_semaphore_value *values,              \
       unsigned count, cuda_stream *stream))

// --- NCCL -------------------------------------------------------------------------------

typedef struct nccl_comm nccl_comm;
typedef struct nccl_id {
    unsigned char bytes[128];
} nccl_id;

// Options of a communicator: its calls return before they are done.
typedef struct nccl_config {
    size_t size;
    uint32_t magic;
    uint32_t version; // of the interface that this struct belongs to
    int32_t blocking;
    int32_t padding;
} nccl_config;

enum {
    NCCL_OK = 0,
    NCCL_IN_PROGRESS = 7,
    NCCL_CONFIG_VERSION = 21400,
};
#define NCCL_CONFIG_MAGIC 0xcafebeefu

#define NCCL_FUNCTIONS(X)                                                                  \
    X(GetVersion, "ncclGetVersion", (int *out))                                            \
    X(GetUniqueId, "ncclGetUniqueId", (nccl_id *out))                                      \
    X(CommInit, "ncclCommInitRankConfig",                                                  \
      (nccl_comm **out, int size, nccl_id id, int rank, nccl_config *config))              \
    X(CommFinalize, "ncclCommFinalize", (nccl_comm *comm))                                 \
    X(CommDestroy, "ncclCommDestroy", (nccl_comm *comm))                                   \
    X(CommAbort, "ncclCommAbort", (nccl_comm *comm))                                       \
    X(CommError, "ncclCommGetAsyncError", (nccl_comm *comm, int *out))                     \
    X(GroupStart, "ncclGroupStart", (void))                                                \
    X(GroupEnd, "ncclGroupEnd", (void))                                                    \
    X(AllReduce, "ncclAllReduce",                                                          \
      (const void *in, void *out, size_t count, int type, int op, nccl_comm *comm,         \
       cuda_stream *stream))                                                               \
    X(Broadcast, "ncclBroadcast",                                                          \
      (const void *in, void *out, size_t count, int type, int root, nccl_comm *comm,       \
       cuda_stream *stream))                                                               \
    X(AllGather, "ncclAllGather",                                                          \
      (const void *in, void *out, size_t count, int type, nccl_comm *comm,                 \
       cuda_stream *stream))                                                               \
    X(ReduceScatter, "ncclReduceScatter",                                                  \
      (const void *in, void *out, size_t count, int type, int op, nccl_comm *comm,         \
       cuda_stream *stream))                                                               \
    X(Send, "ncclSend",                                                                    \
      (const void *in, size_t count, int type, int peer, nccl_comm *comm,                  \
       cuda_stream *stream))                                                               \
    X(Recv, "ncclRecv",                                                                    \
      (void *out, size_t count, int type, int peer, nccl_comm *comm, cuda_stream *stream))
// clang-format on

// Both libraries, open. Constant after nccl_library_open().
struct nccl_library {
    struct {
#define CUDA_MEMBER(name, symbol, arguments) int(*name) arguments;
        CUDA_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
    } cuda;
    struct {
#define NCCL_MEMBER(name, symbol, arguments) int(*name) arguments;
        NCCL_FUNCTIONS(NCCL_MEMBER)
#undef NCCL_MEMBER
        const char *(*GetErrorString)(int code);
    } nccl;
    char version[32]; // "NCCL 2.30.7"
};

// Opens both, once a process; they stay open. `name`: NCCL's path or soname; NULL: a
// library that the process has loaded, the system's, or that of a Python beside this plugin
// or on PATH. NULL on failure: `why` names what is missing and a package that has it. Any
// thread.
const struct nccl_library *nccl_library_open(const char *name, char *why, size_t size);

// Text of a code of CUDA's.
const char *cuda_error(const struct nccl_library *library, int code);

#endif // NCCL_LIBRARY_H
