// SPDX-License-Identifier: MIT
// All-reduce of arrays on GPUs beside NCCL's own call in CUDA's memory, in the same
// processes:
//   tenon run -n 2 --devices vulkan-jit:% build/tests/gpu/gpus [MIB...]
//
// Sizes are those of the array on each (256 and 1024, and 16 KiB first). Values are
// checked.
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tenon/dist.h>
#include <tenon/primitive.h>
#include <tenon/share.h>
#include <tenon/tenon.h>
#include "library.h"

enum { ROUNDS = 15, NCCL_F32 = 7, NCCL_SUM = 0 };

static tn_runtime *runtime;
static int rank, size;
static const struct nccl_library *library;
static cuda_stream *stream;
static nccl_comm *comm;

static void fail_unless(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    exit(1);
}

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_time(double *times)
{
    qsort(times, ROUNDS, sizeof(*times), compare_times);
    return times[ROUNDS / 2];
}

// --- ours -------------------------------------------------------------------------------

static tn_array *array_fill(tn_scope *s, int64_t count, double value)
{
    return tn_op(s, "base.full", NULL, 0,
                 tn_attrs("shape", TN_INTS(count), "value", value, "dtype", "f32"));
}

static double ours_time(uint64_t bytes)
{
    double times[ROUNDS];
    const int64_t count = (int64_t)(bytes / 4);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = array_fill(s, count, rank + 1.0);
    fail_unless(tn_eval(s, x) == TN_OK, tn_scope_error(s));
    x = tn_keep(s, x);
    for (int i = -2; i < ROUNDS; i++) {
        tn_scope *turn = tn_scope_open(runtime);
        double began = now_us();
        tn_array *y = tn_op(turn, "dist.all_reduce", TN_IN(x), TN_NO_ATTRS);
        fail_unless(tn_eval(turn, y) == TN_OK, tn_scope_error(turn));
        if (i >= 0)
            times[i] = now_us() - began;
        if (i < 0) {
            float ends[2], expected = (float)(size * (size + 1) / 2);
            tn_array *least = tn_op(turn, "base.min", TN_IN(y), TN_NO_ATTRS),
                     *most = tn_op(turn, "base.max", TN_IN(y), TN_NO_ATTRS);
            fail_unless(tn_read(turn, least, &ends[0], 4) == TN_OK &&
                            tn_read(turn, most, &ends[1], 4) == TN_OK,
                        tn_scope_error(turn));
            fail_unless(ends[0] == expected && ends[1] == expected, "a sum is wrong");
        }
        tn_scope_close(turn);
    }
    tn_release(x);
    tn_scope_close(s);
    return median_time(times);
}

// --- NCCL's -----------------------------------------------------------------------------

static void comm_wait(int code)
{
    while (code == NCCL_IN_PROGRESS)
        fail_unless(library->nccl.CommError(comm, &code) == NCCL_OK, "NCCL fails");
    fail_unless(code == NCCL_OK, library->nccl.GetErrorString(code));
}

static void stream_wait(void)
{
    int code;
    while ((code = library->cuda.StreamQuery(stream)) == CUDA_NOT_READY)
        ;
    fail_unless(code == CUDA_OK, cuda_error(library, code));
}

// The device that Tenon uses, by its UUID.
static int own_device(void)
{
    tn_shared_memory memory = {.struct_size = sizeof(memory), .fd = -1};
    unsigned char uuid[16];
    int count = 0, device;
    tn_scope *s = tn_scope_open(runtime);
    fail_unless(tn_array_export_fd(s, array_fill(s, 4, 1), &memory) == TN_OK,
                tn_scope_error(s));
    tn_scope_close(s);
    fail_unless(library->cuda.Init(0) == CUDA_OK, "CUDA does not start");
    library->cuda.DeviceGetCount(&count);
    for (int i = 0; i < count; i++)
        if (library->cuda.DeviceGet(&device, i) == CUDA_OK &&
            library->cuda.DeviceGetUuid(uuid, device) == CUDA_OK &&
            memcmp(uuid, memory.device, sizeof(uuid)) == 0)
            return device;
    fail_unless(false, "CUDA does not have the device");
    return 0;
}

static void nccl_begin(void)
{
    char why[512];
    nccl_id id = {{0}};
    cuda_context *context;
    nccl_config config = {
        .size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .version = NCCL_CONFIG_VERSION};
    library = nccl_library_open(getenv("TENON_NCCL"), why, sizeof(why));
    fail_unless(library != NULL, why);
    fail_unless(library->cuda.PrimaryRetain(&context, own_device()) == CUDA_OK &&
                    library->cuda.CtxSetCurrent(context) == CUDA_OK &&
                    library->cuda.StreamCreate(&stream, CUDA_NON_BLOCKING) == CUDA_OK,
                "CUDA does not begin");
    if (rank == 0)
        fail_unless(library->nccl.GetUniqueId(&id) == NCCL_OK, "NCCL makes no id");
    tn_scope *s = tn_scope_open(runtime);
    tn_array *mine = tn_from_data(s, TN_U8, TN_SHAPE(sizeof(id)), id.bytes);
    tn_array *all = tn_op(s, "dist.broadcast", TN_IN(mine), TN_NO_ATTRS);
    fail_unless(tn_read(s, all, id.bytes, sizeof(id)) == TN_OK, tn_scope_error(s));
    tn_scope_close(s);
    comm_wait(library->nccl.CommInit(&comm, size, id, rank, &config));
}

static double theirs_time(uint64_t bytes)
{
    double times[ROUNDS];
    cuda_address in, out;
    fail_unless(library->cuda.MemAlloc(&in, bytes) == CUDA_OK &&
                    library->cuda.MemAlloc(&out, bytes) == CUDA_OK,
                "CUDA has no memory");
    for (int i = -2; i < ROUNDS; i++) {
        double began = now_us();
        comm_wait(library->nccl.AllReduce((const void *)in, (void *)out, bytes / 4,
                                          NCCL_F32, NCCL_SUM, comm, stream));
        stream_wait();
        if (i >= 0)
            times[i] = now_us() - began;
    }
    library->cuda.MemFree(in);
    library->cuda.MemFree(out);
    return median_time(times);
}

static void size_measure(uint64_t bytes)
{
    double first = ours_time(bytes), theirs = theirs_time(bytes), ours = ours_time(bytes);
    ours = ours < first ? ours : first;
    if (rank == 0)
        printf("%10.3f MiB, %d ranks: %s %10.1f us (%.1f GB/s), dist.all_reduce %10.1f us "
               "(%.1f GB/s), %.2f of it\n",
               (double)bytes / 1048576, size, library->version, theirs,
               (double)bytes / theirs / 1e3, ours, (double)bytes / ours / 1e3,
               theirs / ours);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const tn_dist *dist;
    const tn_host *host;
    tn_group_facts facts;
    if (tn_runtime_open(NULL, &runtime) ||
        tn_interface_find(runtime, TN_IFACE_DIST, (const void **)&dist, &host) ||
        dist->find(host, NULL, &facts, sizeof(facts)))
        fail_unless(false, tn_last_error());
    rank = facts.rank;
    size = facts.size;
    nccl_begin();
    size_measure(16384);
    for (int i = 1; i < (argc > 1 ? argc : 3); i++)
        size_measure((argc > 1 ? strtoull(argv[i], NULL, 10) : i == 1 ? 256 : 1024) << 20);
    library->nccl.CommDestroy(comm);
    tn_runtime_close(runtime);
    return 0;
}
