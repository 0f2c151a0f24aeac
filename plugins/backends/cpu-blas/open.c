// SPDX-License-Identifier: MIT
// The only device: all processors that this process may use.
#include "open.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "blas/matmul.h"
#include "device/device.h"
#include "run/run.h"

#if defined(__x86_64__)
#include <cpuid.h>

// The processor's brand string from CPUID, without leading blanks.
static void cpu_open_processor_name(char *out, size_t size)
{
    uint32_t words[13] = {0};
    for (uint32_t i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1],
                         &words[4 * i + 2], &words[4 * i + 3]))
            words[0] = 0;
    const char *name = (const char *)words;
    while (*name == ' ')
        name++;
    snprintf(out, size, "%s", *name ? name : "CPU");
}
#else
static void cpu_open_processor_name(char *out, size_t size)
{
    snprintf(out, size, "CPU");
}
#endif

static uint32_t num_processors; // set once: device_info promises a constant

static void count_processors(void)
{
    num_processors = pool_processors();
}

// The value of TENON_THREADS, or the number of processors in the affinity mask when the
// process first asked. 0: the value is no number of threads.
static uint32_t cpu_open_count_threads(const tn_host *host)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *text = host->config(host, "TENON_THREADS");
    pthread_once(&once, count_processors);
    if (!text || !*text)
        return num_processors;
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || value > 256)
        return 0;
    return (uint32_t)value;
}

// Bytes of the last-level cache that the first processor has a part in.
static uint64_t cpu_open_cache_bytes(void)
{
    uint64_t kilobytes = 8192; // where the system does not tell
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
    if (file) {
        if (fscanf(file, "%" SCNu64 "K", &kilobytes) != 1 || kilobytes > UINT32_MAX)
            kilobytes = 8192;
        fclose(file);
    }
    return kilobytes * 1024;
}

// The value of TENON_CPU_STREAM, or, as in the C library's memcpy, three quarters of the
// cache.
static uint64_t find_stream_from(const tn_host *host)
{
    const char *text = host->config(host, "TENON_CPU_STREAM");
    char *end = NULL;
    unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    if (value > 0 && isdigit((unsigned char)*text) && !*end)
        return value;
    return cpu_open_cache_bytes() / 4 * 3;
}

// The instruction sets of the processor that TENON_CPU allows: with each name those of the
// names before it, too.
static uint32_t find_features(const tn_host *host)
{
    static const struct {
        const char *name;
        uint32_t features;
    } most[] = {
        {"baseline", 0},
        {"avx2", CPU_HAS_AVX2},
        {"avx512", CPU_HAS_AVX2 | CPU_HAS_AVX512 | CPU_HAS_VNNI},
    };
    const char *text = host->config(host, "TENON_CPU");
    for (size_t i = 0; text && i < sizeof(most) / sizeof(most[0]); i++)
        if (strcmp(text, most[i].name) == 0)
            return cpu_features() & most[i].features;
    return cpu_features();
}

static uint32_t num_queues; // set once: device_info promises a constant

static void count_queues(void)
{
    uint32_t processors = pool_processors();
    num_queues = processors < 2 ? 2 : processors;
    if (num_queues > TN_MAX_QUEUES)
        num_queues = TN_MAX_QUEUES;
}

// One queue for each processor, since as many can compute at once. At least two, so that
// one queue runs while another waits.
static uint32_t find_num_queues(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, count_queues);
    return num_queues;
}

tn_status cpu_device_count(const tn_host *host, uint32_t *out_count)
{
    (void)host;
    *out_count = 1;
    return TN_OK;
}

tn_status cpu_device_info(const tn_host *host, uint32_t index, tn_device_info *out)
{
    tn_device_info info = {
        .flags = TN_DEVICE_HOST_MEMORY | TN_DEVICE_ROWS | TN_DEVICE_FUSES |
                 TN_DEVICE_HOST_POINTS,
        .features = "f16,bf16,f64,i8,i16,i64",
        .memory_size = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
        .buffer_alignment = CPU_ALIGNMENT,
        .dtypes = TN_ALL_DTYPES,
        .num_queues = find_num_queues(),
        .num_workers = cpu_open_count_threads(host),
    };
    uint32_t size = out->struct_size < sizeof(info) ? out->struct_size : sizeof(info);
    (void)index;
    info.struct_size = size;
    cpu_open_processor_name(info.name, sizeof(info.name));
    snprintf(info.driver, sizeof(info.driver), "%s kernels",
             cpu_pick(find_features(host))->name);
    memcpy(out, &info, size);
    return TN_OK;
}

tn_status cpu_device_details(const tn_host *host, uint32_t index, tn_device_details *out)
{
    tn_device_details details = {0};
    uint32_t size = out->struct_size;
    (void)host;
    (void)index;
    blas_details(&details);
    size = size < sizeof(details) ? size : sizeof(details);
    details.struct_size = size;
    memcpy(out, &details, size);
    return TN_OK;
}

static void close_queues(tn_device *device)
{
    for (uint32_t i = 0; i < device->num_open; i++)
        cpu_queue_finish(&device->queues[i]);
    device->num_open = 0;
}

// The registers of queue i lie behind those of the pool's threads and of earlier queues.
// The timeline of the host, which is the last, runs nothing and needs none.
static tn_status open_queues(tn_device *device)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i <= device->num_queues && status == TN_OK; i++) {
        struct cpu_queue *queue = &device->queues[i];
        *queue = (struct cpu_queue){
            .device = device,
            .index = i,
            .registers = i == device->num_queues
                             ? NULL
                             : device->registers + (uint64_t)(device->num_threads - 1 + i) *
                                                       CPU_REGISTER_BYTES,
        };
        cpu_host_init(queue);
        snprintf(queue->track, sizeof(queue->track),
                 i ? "cpu-blas:0 queue %u" : "cpu-blas:0", i);
        status = cpu_queue_init(queue);
        device->num_open += status == TN_OK;
    }
    return status;
}

static tn_status cpu_open_parts(tn_device *device)
{
    const tn_host *host = device->host;
    device->num_threads = cpu_open_count_threads(host);
    if (!device->num_threads)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "TENON_THREADS is \"%s\", expected a number from 1 to 256",
                          host->config(host, "TENON_THREADS"));
    device->stream_from = find_stream_from(host);
    tn_status status = pool_create(host, device->num_threads, &device->pool);
    if (status != TN_OK)
        return status;
    uint64_t threads = device->num_threads - 1 + find_num_queues();
    device->registers = host->alloc(host, threads * CPU_REGISTER_BYTES, 4096);
    device->queues = host->alloc(host, (find_num_queues() + 1) * sizeof(struct cpu_queue),
                                 _Alignof(struct cpu_queue));
    device->num_queues = find_num_queues();
    return device->registers && device->queues ? open_queues(device) : TN_ERR_MEMORY;
}

static void close_parts(tn_device *device)
{
    close_queues(device);
    pool_destroy(device->pool);
    device->host->free(device->host, device->queues);
    device->host->free(device->host, device->registers);
    device->host->free(device->host, device);
}

tn_status cpu_device_open(const tn_host *host, uint32_t index, tn_device **out_device)
{
    uint32_t features = find_features(host);
    product_limit(features);
    tn_device *device = host->alloc(host, sizeof(*device), CPU_ALIGNMENT);
    (void)index;
    if (!device)
        return TN_ERR_MEMORY;
    *device = (tn_device){
        .host = host,
        .kernels = cpu_pick(features),
        .cpu_features = (features & CPU_HAS_AVX2 ? TN_CPU_AVX2 : 0) |
                        (features & CPU_HAS_AVX512 ? TN_CPU_AVX512 : 0) |
                        (features & CPU_HAS_VNNI ? TN_CPU_VNNI : 0) |
                        (features & CPU_HAS_AMX ? TN_CPU_AMX : 0),
    };
    device->trace = host->query ? host->query(host, TN_HOST_TRACE) : NULL;

    tn_status status = cpu_open_parts(device);
    if (status == TN_OK)
        status = cpu_memory_init(device);
    if (status != TN_OK) {
        close_parts(device);
        return status;
    }
    host->log(host, TN_LOG_INFO, "cpu-blas",
              "%u thread%s, %u queues, %s kernels, norms of %" PRIu64
              " bytes past the caches",
              device->num_threads, device->num_threads == 1 ? "" : "s", device->num_queues,
              device->kernels->name, device->stream_from);
    *out_device = device;
    return TN_OK;
}

void cpu_device_close(tn_device *device)
{
    if (!device)
        return;
    close_queues(device);
    blas_close(device);
    cpu_memory_finish(device);
    close_parts(device);
}
