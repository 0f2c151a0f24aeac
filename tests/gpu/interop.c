// SPDX-License-Identifier: MIT
// What it takes to hand memory from Vulkan to CUDA and back, and to exchange it with
// another queue through memory of the host: run by hand on an NVIDIA GPU.
//
//   interop [--rounds N] [--nccl LIBRARY] [--no-cuda]
//
// Round trips: Vulkan copies 16 KiB, CUDA copies them (or NCCL reduces them in a group of
// one) behind that copy's point, Vulkan copies again behind CUDA's; all in shared
// timelines, or with the host waiting between. Exchange: two queues give each other 16 KiB
// through memory of the host inside their recorded commands, as two GPUs would, and add.
// Values are checked; medians of rounds. 77: there is no such device.
#include <stdlib.h>
#include <string.h>
#include "interop.h"

static cuda_stream *stream;

// --- round trips through CUDA -----------------------------------------------------------

enum trip { VULKAN_ALONE, ONE_SUBMISSION, SHARED_TIMELINES, HOST_WAITS, NUM_TRIPS };
static const char *const trips[NUM_TRIPS] = {
    "two submissions of Vulkan, one behind the other", "one submission of Vulkan",
    "Vulkan, CUDA, Vulkan, by shared timelines", "Vulkan, CUDA, Vulkan, the host waits"};

static struct {
    struct interop_buffer in, middle, out, last;
    VkSemaphore timelines[2]; // signalled by Vulkan, by CUDA
    cuda_semaphore *semaphores[2];
    VkCommandBuffer before, after;
    nccl_comm *comm; // NULL: CUDA copies
    uint64_t value;
} chain;

static void nccl_check(int code, const char *what)
{
    int state = code;
    while (code == NCCL_IN_PROGRESS && state == NCCL_IN_PROGRESS)
        interop_expect(interop_library->nccl.CommError(chain.comm, &state) == NCCL_OK, what,
                       state);
    if (state != NCCL_OK)
        printf("%s\n", interop_library->nccl.GetErrorString(state));
    interop_expect(state == NCCL_OK, what, state);
}

static void reduce_on_stream(const struct interop_buffer *in,
                             const struct interop_buffer *out, uint64_t bytes)
{
    if (chain.comm)
        nccl_check(interop_library->nccl.AllReduce((const void *)in->address,
                                                   (void *)out->address, bytes / 4, 7, 0,
                                                   chain.comm, stream),
                   "ncclAllReduce");
    else
        CU(interop_library->cuda.CopyOnDevice(out->address, in->address, bytes, stream));
}

static void stream_wait(void)
{
    int code;
    while ((code = interop_library->cuda.StreamQuery(stream)) == CUDA_NOT_READY)
        ;
    CU(code);
}

static void trip_run(enum trip trip)
{
    uint64_t first = chain.value + 1, second = chain.value + 2, third = chain.value + 3;
    bool is_cuda = trip == SHARED_TIMELINES || trip == HOST_WAITS;
    interop_submit(0, chain.before, VK_NULL_HANDLE, 0, chain.timelines[0], first);
    if (trip == HOST_WAITS)
        interop_timeline_wait(chain.timelines[0], first);
    if (trip == SHARED_TIMELINES)
        CU(interop_library->cuda.Wait(&chain.semaphores[0],
                                      &(cuda_semaphore_value){.value = first}, 1, stream));
    if (is_cuda)
        reduce_on_stream(&chain.middle, &chain.out, BYTES);
    if (trip == SHARED_TIMELINES)
        CU(interop_library->cuda.Signal(
            &chain.semaphores[1], &(cuda_semaphore_value){.value = second}, 1, stream));
    if (trip == HOST_WAITS)
        stream_wait();
    bool waits_for_cuda = trip == SHARED_TIMELINES;
    if (trip != ONE_SUBMISSION)
        interop_submit(0, chain.after, chain.timelines[waits_for_cuda],
                       waits_for_cuda ? second : first, chain.timelines[0], third);
    interop_timeline_wait(chain.timelines[0], trip == ONE_SUBMISSION ? first : third);
    chain.value += 3;
}

static void trip_measure(enum trip trip, const char *by)
{
    static double times[MOST_ROUNDS];
    bool is_cuda = trip == SHARED_TIMELINES || trip == HOST_WAITS;
    for (unsigned i = 0; i < interop_rounds + 20; i++) {
        for (unsigned k = 0; k < WORDS; k += 97)
            ((float *)chain.in.map)[k] = (float)(i * 3 + k);
        double began = interop_now_us();
        trip_run(trip);
        if (i >= 20)
            times[i - 20] = interop_now_us() - began;
        for (unsigned k = 0; k < WORDS && is_cuda; k += 97)
            interop_expect(((float *)chain.last.map)[k] == (float)(i * 3 + k), "the value",
                           (int)k);
    }
    printf("%-48s %-6s %8.1f us\n", trips[trip], by, interop_median(times, interop_rounds));
}

static void trips_prepare(void)
{
    struct interop_buffer *all[] = {&chain.in, &chain.middle, &chain.out, &chain.last};
    for (int i = 0; i < 4; i++)
        *all[i] = interop_buffer_make(BYTES, NULL, interop_library && (i == 1 || i == 2));
    for (int i = 0; i < 2; i++)
        chain.timelines[i] =
            interop_timeline_make(interop_library != NULL, &chain.semaphores[i]);
    if (interop_library)
        printf("importing 16 KiB into CUDA: %.0f us, %.0f us\n",
               interop_buffer_share(&chain.middle), interop_buffer_share(&chain.out));
    chain.before = interop_record_copy(&chain.in, 0, &chain.middle, 0);
    chain.after = interop_record_copy(&chain.out, 0, &chain.last, 0);
}

// --- large arrays -----------------------------------------------------------------------

static double stream_time(const struct interop_buffer *in, const struct interop_buffer *out,
                          uint64_t bytes)
{
    double times[7];
    for (int i = 0; i < 8; i++) {
        double began = interop_now_us();
        reduce_on_stream(in, out, bytes);
        stream_wait();
        if (i > 0)
            times[i - 1] = interop_now_us() - began;
    }
    return interop_median(times, 7);
}

// All-reduce of a group of one in Vulkan's memory beside the same in CUDA's own.
static void large_measure(uint64_t bytes)
{
    struct interop_buffer shared[2], own[2] = {{0}};
    double shares = 0;
    for (int i = 0; i < 2; i++) {
        shared[i] = interop_buffer_make(bytes, NULL, true);
        shares += interop_buffer_share(&shared[i]);
        CU(interop_library->cuda.MemAlloc(&own[i].address, bytes));
    }
    for (unsigned k = 0; k < WORDS; k++)
        ((float *)chain.in.map)[k] = (float)(k % 1021);
    interop_run_copy(&chain.in, 0, &shared[0], 0);
    interop_run_copy(&chain.in, 0, &shared[0], bytes - BYTES);
    double ours = stream_time(&shared[0], &shared[1], bytes),
           theirs = stream_time(&own[0], &own[1], bytes);
    for (int end = 0; end < 2; end++) {
        interop_run_copy(&shared[1], end ? bytes - BYTES : 0, &chain.last, 0);
        for (unsigned k = 0; k < WORDS; k++)
            interop_expect(((float *)chain.last.map)[k] == (float)(k % 1021), "a value",
                           (int)k);
    }
    printf("%5llu MiB: in Vulkan's memory %8.1f us, in CUDA's %8.1f us, %.2f (imports %.0f "
           "us)\n",
           (unsigned long long)(bytes >> 20), ours, theirs, theirs / ours, shares);
    for (int i = 0; i < 2; i++)
        CU(interop_library->cuda.MemFree(own[i].address));
}

static bool cuda_begin(const char *name)
{
    char why[512];
    unsigned char uuid[16];
    int count = 0, device = -1;
    cuda_context *context;
    interop_library = nccl_library_open(name, why, sizeof(why));
    if (!interop_library) {
        printf("%s\n", why);
        return false;
    }
    CU(interop_library->cuda.Init(0));
    CU(interop_library->cuda.DeviceGetCount(&count));
    for (int i = 0; i < count && device < 0; i++) {
        int found;
        CU(interop_library->cuda.DeviceGet(&found, i));
        CU(interop_library->cuda.DeviceGetUuid(uuid, found));
        device = memcmp(uuid, interop_vulkan.uuid, 16) == 0 ? found : -1;
    }
    printf("%s; the device is %s\n", interop_library->version,
           device < 0 ? "none of CUDA's" : "found by its UUID");
    if (device < 0)
        return false;
    CU(interop_library->cuda.PrimaryRetain(&context, device));
    CU(interop_library->cuda.CtxSetCurrent(context));
    CU(interop_library->cuda.StreamCreate(&stream, CUDA_NON_BLOCKING));
    return true;
}

static void nccl_begin(void)
{
    nccl_id id;
    nccl_config config = {
        .size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .version = NCCL_CONFIG_VERSION};
    double began = interop_now_us();
    interop_expect(interop_library->nccl.GetUniqueId(&id) == NCCL_OK, "ncclGetUniqueId", 0);
    nccl_check(interop_library->nccl.CommInit(&chain.comm, 1, id, 0, &config),
               "ncclCommInit");
    printf("a communicator of one: %.0f ms\n", (interop_now_us() - began) / 1e3);
}

int main(int argc, char **argv)
{
    const char *name = NULL;
    bool is_wanted = true;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--no-cuda") == 0)
            is_wanted = false;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            interop_rounds = (unsigned)atoi(argv[++i]);
        else if (strcmp(argv[i], "--nccl") == 0 && i + 1 < argc)
            name = argv[++i];
        else
            return 2;
    }
    interop_rounds = interop_rounds < 1             ? 1
                     : interop_rounds > MOST_ROUNDS ? MOST_ROUNDS
                                                    : interop_rounds;
    if (!interop_open())
        return 77;
    printf("%s\n", interop_vulkan.name);
    bool has_cuda = is_wanted && cuda_begin(name);
    if (!has_cuda)
        interop_library = NULL;
    trips_prepare();
    trip_measure(ONE_SUBMISSION, "");
    trip_measure(VULKAN_ALONE, "");
    if (!has_cuda) {
        interop_exchange();
        return is_wanted ? 77 : 0;
    }
    trip_measure(SHARED_TIMELINES, "CUDA");
    trip_measure(HOST_WAITS, "CUDA");
    nccl_begin();
    trip_measure(SHARED_TIMELINES, "NCCL");
    trip_measure(HOST_WAITS, "NCCL");
    for (uint64_t bytes = UINT64_C(1) << 20; bytes <= UINT64_C(1) << 30; bytes <<= 4)
        large_measure(bytes);
    large_measure(UINT64_C(1) << 30);
    interop_exchange();
    return 0;
}
