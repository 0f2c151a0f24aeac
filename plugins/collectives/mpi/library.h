// SPDX-License-Identifier: MIT
// An MPI library, opened by name: its functions, and the handles of one of three binary
// interfaces. No header of MPI is used.
//
// A handle is a pointer in Open MPI and in the standard ABI, and an int in MPICH. Both
// travel in one register of x86-64 and AArch64, and an int is the lower half of what a
// little-endian pointer has in memory, so `handle` stands for either; one that a function
// writes begins as 0.
#ifndef MPI_LIBRARY_H
#define MPI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/collective.h>

typedef uintptr_t handle;

// Reduces `in` and `inout` into `inout`: *count elements of *datatype.
typedef void reduce_function(void *in, void *inout, int *count, handle *datatype);

// The functions: X(result, name without "MPI_", arguments).
// clang-format off
#define MPI_FUNCTIONS(X)                                                                   \
    X(int, Init_thread, (int *argc, char ***argv, int required, int *provided))            \
    X(int, Initialized, (int *flag))                                                       \
    X(int, Finalized, (int *flag))                                                         \
    X(int, Finalize, (void))                                                               \
    X(int, Query_thread, (int *provided))                                                  \
    X(int, Get_library_version, (char *text, int *size))                                   \
    X(int, Error_string, (int code, char *text, int *size))                                \
    X(int, Comm_rank, (handle comm, int *rank))                                            \
    X(int, Comm_size, (handle comm, int *size))                                            \
    X(int, Comm_dup, (handle comm, handle *out))                                           \
    X(int, Comm_split, (handle comm, int color, int key, handle *out))                     \
    X(int, Comm_free, (handle *comm))                                                      \
    X(int, Comm_set_errhandler, (handle comm, handle handler))                             \
    X(int, Op_create, (reduce_function *function, int commutes, handle *out))              \
    X(int, Iallreduce, (const void *in, void *out, int count, handle type, handle op,      \
                        handle comm, handle *request))                                     \
    X(int, Ireduce_scatter_block, (const void *in, void *out, int count, handle type,      \
                                   handle op, handle comm, handle *request))               \
    X(int, Iallgather, (const void *in, int count, handle type, void *out, int out_count,  \
                        handle out_type, handle comm, handle *request))                    \
    X(int, Ialltoall, (const void *in, int count, handle type, void *out, int out_count,   \
                       handle out_type, handle comm, handle *request))                     \
    X(int, Ibcast, (void *data, int count, handle type, int root, handle comm,             \
                    handle *request))                                                      \
    X(int, Isend, (const void *in, int count, handle type, int to, int tag, handle comm,   \
                   handle *request))                                                       \
    X(int, Irecv, (void *out, int count, handle type, int from, int tag, handle comm,      \
                   handle *request))                                                       \
    X(int, Iprobe, (int from, int tag, handle comm, int *flag, void *status))              \
    X(int, Test, (handle *request, int *flag, void *status))                               \
    X(int, Get_count, (const void *status, handle type, int *count))

// Functions of fault tolerance (ULFM): NULL in most libraries.
#define MPI_OPTIONAL(X)                                                                    \
    X(int, Comm_revoke, (handle comm))                                                     \
    X(int, Comm_is_revoked, (handle comm, int *flag))                                      \
    X(int, Comm_shrink, (handle comm, handle *out))
// clang-format on

// Datatypes by the dtype that they carry: X(dtype, name of Open MPI, of MPICH, of the
// standard ABI). f16 and bf16 travel as integers, bool as bytes; operations on them are
// ours or those of bytes.
#define MPI_TYPES(X)                                                                       \
    X(BOOL, "uint8_t", 0x4c00013b, 0x241)                                                  \
    X(I8, "int8_t", 0x4c000137, 0x240)                                                     \
    X(I16, "int16_t", 0x4c000238, 0x248)                                                   \
    X(I32, "int32_t", 0x4c000439, 0x250)                                                   \
    X(I64, "int64_t", 0x4c00083a, 0x258)                                                   \
    X(U8, "uint8_t", 0x4c00013b, 0x241)                                                    \
    X(U16, "uint16_t", 0x4c00023c, 0x249)                                                  \
    X(U32, "uint32_t", 0x4c00043d, 0x251)                                                  \
    X(U64, "uint64_t", 0x4c00083e, 0x259)                                                  \
    X(F16, "uint16_t", 0x4c00023c, 0x249)                                                  \
    X(BF16, "uint16_t", 0x4c00023c, 0x249)                                                 \
    X(F32, "float", 0x4c00040a, 0x210)                                                     \
    X(F64, "double", 0x4c00080b, 0x214)                                                    \
    X(COMPLEX64, "c_float_complex", 0x4c000840, 0x212)                                     \
    X(COMPLEX128, "c_double_complex", 0x4c001041, 0x216)                                   \
    X(F8_E4M3, "uint8_t", 0x4c00013b, 0x241)                                               \
    X(F8_E5M2, "uint8_t", 0x4c00013b, 0x241)

// Operations by TN_COLLECTIVE_..., as above.
#define MPI_OPERATIONS(X)                                                                  \
    X(SUM, "sum", 0x58000003, 0x21)                                                        \
    X(PRODUCT, "prod", 0x58000004, 0x24)                                                   \
    X(MINIMUM, "min", 0x58000002, 0x22)                                                    \
    X(MAXIMUM, "max", 0x58000001, 0x23)

enum { NUM_OPERATIONS = TN_COLLECTIVE_MAXIMUM + 1, LIBRARY_VERSION = 8192 };

// A library that is open. Constant after library_open().
struct mpi_library {
#define MPI_MEMBER(result, name, arguments) result(*name) arguments;
    MPI_FUNCTIONS(MPI_MEMBER)
    MPI_OPTIONAL(MPI_MEMBER)
#undef MPI_MEMBER
    handle world, errors_return;
    handle types[TN_NUM_DTYPES]; // by dtype
    handle operations[NUM_OPERATIONS];
    // Operations on f16 and bf16, which MPI does not know; made by halves_create().
    handle halves[2][NUM_OPERATIONS];
    void *in_place;    // MPI_IN_PLACE
    int serialized;    // MPI_THREAD_SERIALIZED
    char version[128]; // "Open MPI v4.1.4"
};

// The number of processes that the launcher says it started, and the variable that says so;
// 0: no launcher is known.
int32_t library_find_started(const char **out_variable);

// Opens the library `name` (TENON_MPI: a path or a soname; NULL: the first that is found),
// once a process; it stays open. TN_ERR_NOT_FOUND names a package that has one. One thread
// at a time.
tn_status library_open(const tn_host *host, const char *name, struct mpi_library **out);

// Makes the operations on f16 and bf16, once MPI is initialised. Returns an error code of
// MPI.
int halves_create(struct mpi_library *library);

// The function of an operation on f16, or bf16.
reduce_function *halves_function(bool is_bf16, int32_t operation);

#endif // MPI_LIBRARY_H
