// SPDX-License-Identifier: MIT
// Sharing: arrays of the application's memory, used in place and released
// once.
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../support/common.h"

#include "base/memory.h"

// --- memory before a page that cannot be accessed ---------------------------------------

struct fenced {
    char *pages;
    size_t size; // bytes before the fence
};

static struct fenced fenced_new(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct fenced fenced = {.size = (size + 2 * page - 1) / page * page};
    fenced.pages = mmap(NULL, fenced.size + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(fenced.pages != MAP_FAILED);
    cr_assert(eq(int, mprotect(fenced.pages + fenced.size, page, PROT_NONE), 0));
    return fenced;
}

static void fenced_seal(struct fenced *fenced)
{
    cr_assert(eq(int, mprotect(fenced->pages, fenced->size, PROT_READ), 0));
}

// --- counting releases ------------------------------------------------------------------

static void count_release(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
}

static tn_array *import_f32(tn_scope *s, int64_t rows, int64_t columns, const void *data,
                            uint32_t flags, atomic_int *released)
{
    return tn_array_import_host(s, TN_F32, TN_SHAPE(rows, columns),
                                &(tn_host_memory){.struct_size = sizeof(tn_host_memory),
                                                  .flags = flags,
                                                  .data = (void *)(uintptr_t)data,
                                                  .release = count_release,
                                                  .context = released});
}

TestSuite(share, .init = setup, .fini = teardown);

Test(share, memory_is_used_in_place_and_released_when_the_scope_is_closed)
{
    float data[6] = {1, 2, 3, 4, 5, 6};
    atomic_int released = 0;
    uint64_t before = stats_of(runtime).buffer_bytes;
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = import_f32(s, 2, 3, data, TN_MEMORY_NO_COPY, &released);
    cr_assert(eq(ptr, (void *)(uintptr_t)tn_data(s, x), data));
    cr_assert(eq(u64, stats_of(runtime).buffer_bytes, before));
    cr_assert(tn_item(s, un(s, "base.sum", x)) == 21);
    cr_assert(eq(int, released, 0));
    tn_scope_close(s);
    cr_assert(eq(int, released, 1));
}

Test(share, a_kept_array_keeps_the_memory)
{
    float data[2] = {1, 2};
    atomic_int released = 0;
    tn_scope *s = tn_scope_open(runtime);
    tn_array *kept = tn_keep(s, import_f32(s, 1, 2, data, 0, &released));
    tn_scope_close(s);
    cr_assert(eq(int, released, 0));
    tn_release(kept);
    cr_assert(eq(int, released, 1));
}

Test(share, a_view_keeps_the_memory)
{
    float data[4] = {1, 2, 3, 4};
    atomic_int released = 0;
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = import_f32(s, 2, 2, data, 0, &released);
    tn_array *kept = tn_keep(s, un(s, "base.transpose", x));
    tn_scope_close(s);
    cr_assert(eq(int, released, 0));
    s = tn_scope_open(runtime);
    float out[4];
    must(s, tn_read(s, kept, out, sizeof(out)));
    cr_assert(out[1] == 3 && out[2] == 2);
    tn_scope_close(s);
    tn_release(kept);
    cr_assert(eq(int, released, 1));
}

// --- alignment --------------------------------------------------------------------------

// The elements of both arrays agree, bit for bit.
static void same(tn_scope *s, tn_array *got, tn_array *want)
{
    const tn_type *type = tn_array_type(want);
    if (!want)
        cr_fatal("%s", tn_scope_error(s));
    uint64_t size = (uint64_t)tn_dtype_bytes(type->dtype);
    for (int32_t i = 0; i < type->rank; i++)
        size *= (uint64_t)type->extent[i];
    const void *a = tn_data(s, got), *b = tn_data(s, want);
    if (!a || !b)
        cr_fatal("%s", tn_scope_error(s));
    cr_assert(memcmp(a, b, size) == 0);
}

// At each distance from a vector's alignment, up against the fence, read-only: the results
// are those of a copy of the same elements.
DTYPE_TEST(alignment, kernels_take_any_from_the_dtypes_on, dtype, TN_BOOL)
{
    enum { ROWS = 13, COLUMNS = 17 };
    size_t size = (size_t)tn_dtype_bytes(dtype), bytes = ROWS * COLUMNS * size;
    runtime = open_with(NULL);
    for (size_t shift = 0; shift < 64 && shift < 8 * size; shift += size) {
        struct fenced fenced = fenced_new(bytes + 64);
        char *data = fenced.pages + fenced.size - bytes - shift;
        tn_scope *s = tn_scope_open(runtime);
        for (size_t i = 0; i < ROWS * COLUMNS; i++) {
            double number = dtype == TN_BOOL ? i % 3 == 0 : (double)(i % 29);
            tn_array *one = tn_scalar(s, dtype, number);
            must(s, tn_read(s, one, data + i * size, size));
        }
        tn_array *copy = tn_from_data(s, dtype, TN_SHAPE(ROWS, COLUMNS), data);
        fenced_seal(&fenced);
        tn_array *x = tn_array_import_host(s, dtype, TN_SHAPE(ROWS, COLUMNS),
                                           &(tn_host_memory){.data = data});
        same(s, bin(s, "base.equal", x, copy), bin(s, "base.equal", copy, copy));
        same(s, un(s, "base.transpose", x), un(s, "base.transpose", copy));
        if (tn_dtype_in(dtype, TN_FIRST_DTYPES))
            same(s, un(s, "base.max", x), un(s, "base.max", copy));
        if (dtype != TN_BOOL && !tn_dtype_in(dtype, TN_FLOAT8_DTYPES)) {
            tn_array *xt = un(s, "base.transpose", x), *ct = un(s, "base.transpose", copy);
            same(s, bin(s, "base.add", x, x), bin(s, "base.add", copy, copy));
            same(s, un(s, "base.sum", x), un(s, "base.sum", copy));
            same(s, bin(s, "base.matmul", x, xt), bin(s, "base.matmul", copy, ct));
        }
        if (tn_is_float(dtype)) {
            same(s, un(s, "nn.softmax", x), un(s, "nn.softmax", copy));
            same(s, un(s, "base.tanh", x), un(s, "base.tanh", copy));
        }
        must(s, tn_scope_status(s));
        tn_scope_close(s);
        munmap(fenced.pages, fenced.size + (size_t)sysconf(_SC_PAGESIZE));
    }
    tn_runtime_close(runtime);
}

// --- strides ----------------------------------------------------------------------------

static void strided(const char *backend)
{
    float data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, out[6];
    tn_runtime *rt = open_on(backend);
    tn_scope *s = tn_scope_open(rt);
    // Rows backwards, every second column: 8, 10, 4, 6, 0, 2.
    tn_array *x = tn_array_import_host(
        s, TN_F32, TN_SHAPE(3, 2),
        &(tn_host_memory){.data = &data[8], .strides = (const int64_t[]){-4, 2}});
    must(s, tn_read(s, x, out, sizeof(out)));
    static const float want[6] = {8, 10, 4, 6, 0, 2};
    cr_assert(memcmp(out, want, sizeof(out)) == 0);
    cr_assert(tn_item(s, un(s, "base.sum", x)) == 30);
    x = tn_array_import_host(
        s, TN_F32, TN_SHAPE(2, 3),
        &(tn_host_memory){.data = &data[5], .strides = (const int64_t[]){0, 0}});
    cr_assert(tn_item(s, un(s, "base.sum", x)) == 30);
    // One row: its stride is never used.
    x = tn_array_import_host(
        s, TN_F32, TN_SHAPE(1, 2),
        &(tn_host_memory){.data = &data[5], .strides = (const int64_t[]){INT64_MIN, -5}});
    cr_assert(tn_item(s, un(s, "base.sum", x)) == 5);
    tn_scope_close(s);
    tn_runtime_close(rt);
}

Test(share, strides_of_any_sign_on_the_cpu)
{
    strided("cpu-blas");
}

Test(share, strides_of_any_sign_by_a_copy)
{
    need_device("vulkan");
    strided("vulkan");
}

Test(share, arrays_without_elements_and_scalars)
{
    float one = 7;
    atomic_int released = 0;
    tn_scope *s = tn_scope_open(runtime);
    tn_array *none = tn_array_import_host(s, TN_F32, TN_SHAPE(3, 0),
                                          &(tn_host_memory){.flags = TN_MEMORY_NO_COPY,
                                                            .release = count_release,
                                                            .context = &released});
    cr_assert(eq(int, released, 1)); // nothing is there to be used
    cr_assert(tn_item(s, un(s, "base.sum", none)) == 0);
    tn_array *x =
        tn_array_import_host(s, TN_F32, TN_SCALAR, &(tn_host_memory){.data = &one});
    cr_assert(tn_item(s, x) == 7);
    must(s, tn_scope_status(s));
    tn_scope_close(s);
}

// --- donated ----------------------------------------------------------------------------

static tn_status increment(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                           tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs, (void)user;
    outputs[0] = bin(s, "base.add", inputs[0], tn_float(s, 1));
    return tn_scope_status(s);
}

static const void *donate(tn_runtime *rt, tn_scope *s, tn_array *x)
{
    tn_function *f = NULL;
    tn_array *y = NULL;
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = &(const uint32_t){0}, .num_donated = 1};
    must(NULL, tn_function_create(rt, increment, NULL, &options, &f));
    must(s, tn_function_call(f, s, &x, 1, &y, 1));
    const float *data = tn_data(s, y);
    cr_assert(data && data[0] == 2 && data[31] == 33);
    tn_function_destroy(f);
    return data;
}

Test(share, donated_memory_is_written_only_when_it_may_be)
{
    struct fenced fenced = fenced_new(4096);
    float *data = (float *)(void *)fenced.pages;
    atomic_int released = 0;
    for (int i = 0; i < 64; i++)
        data[i] = (float)(i % 32 + 1);
    tn_scope *s = tn_scope_open(runtime);
    // Writable, and aligned for every dtype.
    cr_assert(eq(ptr,
                 (void *)(uintptr_t)donate(
                     runtime, s, import_f32(s, 4, 8, data, TN_MEMORY_WRITABLE, &released)),
                 data));
    cr_assert(eq(int, released, 0)); // the output lies there
    // Writable, but an output of another dtype might be misaligned.
    for (int i = 0; i < 32; i++)
        data[i + 1] = (float)(i + 1);
    cr_assert(
        ne(ptr,
           (void *)(uintptr_t)donate(
               runtime, s, import_f32(s, 4, 8, data + 1, TN_MEMORY_WRITABLE, &released)),
           data + 1));
    for (int i = 0; i < 32; i++)
        data[i] = (float)(i + 1);
    fenced_seal(&fenced); // a write ends the test
    donate(runtime, s, import_f32(s, 4, 8, data, 0, &released));
    tn_scope_close(s);
    cr_assert(eq(int, released, 3));
}

// --- work on its way ---------------------------------------------------------------------

Test(share, memory_is_released_after_the_work_that_reads_it)
{
    enum { N = 600, ROUNDS = 20 };
    struct fenced fenced = fenced_new((size_t)N * N * sizeof(float));
    float *data = (float *)(void *)fenced.pages;
    atomic_int released = 0;
    tn_runtime *rt = open_with(NULL);
    tn_array *kept[ROUNDS];
    for (int i = 0; i < N * N; i++)
        data[i] = (float)(i % 3);
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = import_f32(s, N, N, data, 0, &released);
    tn_array *y = x;
    for (int i = 0; i < ROUNDS; i++) {
        y = bin(s, "base.matmul", y, x);
        must(s, tn_eval_async(s, y));
        kept[i] = tn_keep(s, un(s, "base.sum", x));
    }
    tn_scope_close(s); // the products are on their way
    for (int i = 0; i < ROUNDS; i++) {
        s = tn_scope_open(rt);
        cr_assert(tn_item(s, kept[i]) == N * N); // a third each of 0, 1, 2; exact in f32
        tn_scope_close(s);
        tn_release(kept[i]);
    }
    check_status(tn_runtime_close(rt), TN_OK); // at the latest
    cr_assert(eq(int, released, 1));
}

struct importer {
    tn_runtime *runtime;
    const float *data;
    atomic_int released;
    bool wrong;
};

static void *import_often(void *context)
{
    struct importer *me = context;
    for (int i = 0; i < 200; i++) {
        tn_scope *s = tn_scope_open(me->runtime);
        tn_array *x = import_f32(s, 16, 16, me->data, 0, &me->released);
        tn_array *y = un(s, "base.sum", bin(s, "base.matmul", x, x));
        me->wrong |= tn_eval_async(s, y) != TN_OK;
        if (i % 3)
            me->wrong |= tn_item(s, y) != 16 * 16 * 16;
        tn_scope_close(s);
    }
    return NULL;
}

Test(share, threads_import_the_same_memory)
{
    enum { THREADS = 4 };
    float data[256];
    struct importer importers[THREADS];
    pthread_t threads[THREADS];
    tn_runtime *rt = open_with(NULL);
    for (int i = 0; i < 256; i++)
        data[i] = 1;
    for (int i = 0; i < THREADS; i++) {
        importers[i] = (struct importer){.runtime = rt, .data = data};
        cr_assert(
            eq(int, pthread_create(&threads[i], NULL, import_often, &importers[i]), 0));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    check_status(tn_runtime_close(rt), TN_OK);
    for (int i = 0; i < THREADS; i++) {
        cr_assert(not(importers[i].wrong));
        cr_assert(eq(int, importers[i].released, 200));
    }
}

Test(share, a_child_of_fork_releases_nothing)
{
    float data[4] = {1, 2, 3, 4};
    atomic_int released = 0;
    tn_runtime *rt = open_with(NULL);
    tn_scope *s = tn_scope_open(rt);
    import_f32(s, 2, 2, data, 0, &released);
    pid_t child = fork();
    if (child == 0) {
        tn_scope_close(s);
        tn_runtime_close(rt);
        _exit(released);
    }
    int status = -1;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_assert(eq(int, WEXITSTATUS(status), 0));
    tn_scope_close(s);
    tn_runtime_close(rt);
    cr_assert(eq(int, released, 1));
}

// --- other devices -----------------------------------------------------------------------

Test(share, null_takes_memory_in_place)
{
    float data[4] = {1, 2, 3, 4};
    atomic_int released = 0;
    tn_runtime *rt = open_on("null");
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = import_f32(s, 2, 2, data, TN_MEMORY_NO_COPY, &released);
    cr_assert(eq(ptr, (void *)(uintptr_t)tn_data(s, x), data));
    tn_scope_close(s);
    tn_runtime_close(rt);
    cr_assert(eq(int, released, 1));
}

// A software driver, like a GPU beside the CPU, reaches the host's memory as its own.
static void in_place_on_vulkan(size_t offset, bool in_place, const char *says)
{
    enum { COUNT = 1500 };
    struct fenced fenced = fenced_new(COUNT * sizeof(float) + offset);
    float *data = (float *)(void *)(fenced.pages + offset);
    atomic_int released = 0;
    for (int i = 0; i < COUNT; i++)
        data[i] = (float)i;
    fenced_seal(&fenced);
    tn_runtime *rt = open_on("vulkan");
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = import_f32(s, 3, COUNT / 3, data, 0, &released);
    cr_assert(eq(int, released, in_place ? 0 : 1));
    const void *seen = tn_data(s, x);
    cr_assert(eq(int, seen == (const void *)data, in_place));
    cr_assert(tn_item(s, un(s, "base.sum", x)) == COUNT * (COUNT - 1) / 2);
    tn_array *most = un(s, "base.max", un(s, "base.transpose", x));
    cr_assert(tn_item(s, most) == COUNT - 1);
    x = import_f32(s, 3, COUNT / 3, data, TN_MEMORY_NO_COPY, &released);
    cr_assert(eq(int, tn_scope_status(s), in_place ? TN_OK : TN_ERR_UNSUPPORTED));
    if (says)
        check_says(tn_scope_error(s), says);
    tn_scope_close(s);
    tn_runtime_close(rt);
    cr_assert(eq(int, released, 2));
    munmap(fenced.pages, fenced.size + (size_t)sysconf(_SC_PAGESIZE));
}

Test(share, vulkan_takes_memory_in_place_where_its_address_permits)
{
    need_device("vulkan");
    in_place_on_vulkan(0, true, NULL);
    in_place_on_vulkan(16, true, NULL); // as NumPy has it
    in_place_on_vulkan(4, false, "its address is no multiple of 16");
}

Test(share, elsewhere_memory_is_copied_and_released_at_once)
{
    float data[4] = {1, 2, 3, 4};
    atomic_int released = 0;
    need_device("vulkan");
    tn_runtime *rt = open_on("vulkan");
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = import_f32(s, 2, 2, data, 0, &released);
    cr_assert(eq(int, released, 1));
    memset(data, 0, sizeof(data));
    cr_assert(tn_item(s, un(s, "base.sum", x)) == 10);
    cr_assert(eq(ptr, import_f32(s, 2, 2, data, TN_MEMORY_NO_COPY, &released), NULL));
    cr_assert(eq(int, tn_scope_status(s), TN_ERR_UNSUPPORTED));
    check_says(tn_scope_error(s), "array_import_host: device vulkan:0: ");
    check_says(tn_scope_error(s), "uses no memory of the host in place, 16 bytes at 0x");
    cr_assert(eq(int, released, 2));
    tn_scope_close(s);
    tn_runtime_close(rt);
}

Test(share, checked_results_read_it_too)
{
    float data[4] = {1, 2, 3, 4};
    atomic_int released = 0;
    tn_runtime *rt = open_with((const char *const[]){"TENON_CHECK=1", NULL});
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = import_f32(s, 2, 2, data, TN_MEMORY_NO_COPY, &released);
    cr_assert(tn_item(s, un(s, "base.sum", bin(s, "base.matmul", x, x))) == 54);
    cr_assert(gt(u64, stats_of(rt).checked, 0));
    cr_assert(eq(u64, stats_of(rt).differing, 0));
    tn_scope_close(s);
    tn_runtime_close(rt);
    cr_assert(eq(int, released, 1));
}

// --- a mapped file -----------------------------------------------------------------------

// Bytes of this process in memory that no file backs.
static uint64_t private_bytes(void)
{
    char line[256];
    unsigned long long kilobytes, sum = 0;
    FILE *status = fopen("/proc/self/status", "r");
    cr_assert(ne(ptr, status, NULL));
    while (fgets(line, sizeof(line), status))
        if (sscanf(line, "RssAnon: %llu kB", &kilobytes) == 1 ||
            sscanf(line, "RssShmem: %llu kB", &kilobytes) == 1)
            sum += kilobytes * 1024;
    fclose(status);
    return sum;
}

static void unmap(void *context)
{
    const struct fenced *mapped = context;
    munmap(mapped->pages, mapped->size);
}

// A file of zeros with a one in each MiB. TENON_TEST_MAPPED_MIB: its size.
static struct fenced map_file(int64_t mib)
{
    char path[] = "/tmp/tenon-share-XXXXXX";
    const float one = 1;
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    unlink(path);
    cr_assert(eq(int, ftruncate(fd, mib << 20), 0));
    for (int64_t i = 0; i < mib; i++)
        cr_assert(eq(i64, pwrite(fd, &one, sizeof(one), i << 20), sizeof(one)));
    struct fenced mapped = {.size = (size_t)mib << 20};
    mapped.pages = mmap(NULL, mapped.size, PROT_READ, MAP_PRIVATE, fd, 0);
    cr_assert(mapped.pages != MAP_FAILED);
    close(fd);
    return mapped;
}

Test(share, a_mapped_file_is_summed_in_place)
{
    const char *wanted = getenv("TENON_TEST_MAPPED_MIB");
    int64_t mib = wanted ? atoll(wanted) : 192;
    struct fenced mapped = map_file(mib);
    tn_scope *s = tn_scope_open(runtime);
    tn_item(s, un(s, "base.sum", ramp(s, 512, 512, 0, 0))); // threads, their memory, plans
    uint64_t before = private_bytes(), buffers = stats_of(runtime).buffer_peak;
    tn_array *x = tn_array_import_host(s, TN_F32, TN_SHAPE(mib, 512, 512),
                                       &(tn_host_memory){.flags = TN_MEMORY_NO_COPY,
                                                         .data = mapped.pages,
                                                         .release = unmap,
                                                         .context = &mapped});
    cr_assert(tn_item(s, un(s, "base.sum", x)) == (double)mib);
    uint64_t grown = private_bytes() - before, most = (uint64_t)mib << 20;
    fprintf(stderr, "# %lld MiB summed with %llu KiB more of memory of its own\n",
            (long long)mib, (unsigned long long)grown >> 10);
    cr_assert(lt(u64, grown, most / 11)); // under 100 MB for 1 GiB
    cr_assert(lt(u64, stats_of(runtime).buffer_peak - buffers, most / 11));
    tn_scope_close(s);
}

// --- bad input ---------------------------------------------------------------------------

static void refused(tn_dtype dtype, const tn_shape *shape, tn_host_memory memory,
                    const char *says)
{
    atomic_int released = 0;
    memory.release = count_release;
    memory.context = &released;
    tn_scope *s = tn_scope_open(runtime);
    cr_assert(eq(ptr, tn_array_import_host(s, dtype, shape, &memory), NULL));
    cr_assert(eq(int, tn_scope_status(s), TN_ERR_ARGUMENT));
    check_says(tn_scope_error(s), says);
    cr_assert(eq(int, released, 1));
    // The scope's first failure stays; the memory is released all the same.
    cr_assert(eq(ptr, tn_array_import_host(s, dtype, shape, &memory), NULL));
    check_says(tn_scope_error(s), says);
    cr_assert(eq(int, released, 2));
    tn_scope_close(s);
    tn_array_import_host(NULL, dtype, shape, &memory);
    cr_assert(eq(int, released, 3));
}

Test(share, bad_memory_is_refused_and_released)
{
    static double data[4];
    char *odd = (char *)data + 2;
    refused(TN_F32, TN_SHAPE(3), (tn_host_memory){.data = odd},
            "expected a multiple of 4 bytes, the size of f32");
    refused(TN_F64, TN_SHAPE(3), (tn_host_memory){.data = (char *)data + 4},
            "expected a multiple of 8 bytes, the size of f64");
    refused(TN_F32, TN_SHAPE(3), (tn_host_memory){0}, "array_import_host: data is NULL");
    refused(TN_DTYPE_NONE, TN_SHAPE(3), (tn_host_memory){.data = data}, "dtype");
    refused(TN_F32, TN_SHAPE(-1), (tn_host_memory){.data = data}, "-1");
    refused(TN_F32, NULL, (tn_host_memory){.data = data}, "shape is NULL");
    refused(TN_F32, TN_SHAPE(3), (tn_host_memory){.data = data, .flags = 64},
            "flags 0x40 are unknown");
    const char *space = "outside of the address space";
    refused(TN_F32, TN_SHAPE(3, 3),
            (tn_host_memory){.data = data, .strides = (const int64_t[]){INT64_MIN, 1}},
            space);
    refused(TN_F32, TN_SHAPE(3, 3),
            (tn_host_memory){.data = data, .strides = (const int64_t[]){INT64_MAX / 8, 1}},
            space);
    refused(TN_F32, TN_SHAPE(2),
            (tn_host_memory){.data = data, .strides = (const int64_t[]){-(INT64_MAX / 8)}},
            space);
}

Test(share, no_record_of_memory_is_an_error)
{
    tn_scope *s = tn_scope_open(runtime);
    cr_assert(eq(ptr, tn_array_import_host(s, TN_F32, TN_SCALAR, NULL), NULL));
    check_says(tn_scope_error(s), "array_import_host: the memory is NULL");
    tn_scope_close(s);
}

// Each allocation fails in turn: the memory is released once, whatever was made.
Test(share, no_memory_for_the_records)
{
    float data[6] = {1, 2, 3, 4, 5, 6};
    tn_scope *warm = tn_scope_open(runtime);
    tn_item(warm, un(warm, "base.sum", ramp(warm, 2, 2, 0, 1)));
    tn_scope_close(warm);
    for (int64_t n = 1;; n++) {
        atomic_int released = 0;
        tn_scope *s = tn_scope_open(runtime);
        mem_fail_nth(n);
        tn_array *x = import_f32(s, 2, 3, data, TN_MEMORY_NO_COPY, &released);
        mem_fail_nth(0);
        cr_assert(eq(int, released, x ? 0 : released));
        cr_assert(x || tn_scope_status(s) == TN_ERR_MEMORY);
        tn_scope_close(s);
        cr_assert(eq(int, released, 1));
        if (x) {
            cr_assert(gt(i64, n, 2));
            break;
        }
    }
}
