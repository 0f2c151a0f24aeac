// SPDX-License-Identifier: MIT
// Memory of a device that others use, too: arrays exported and imported by file descriptor,
// between processes and runtimes. TENON_TEST_PEER says where the other process's program
// is; for the rest see shared.h.
#include "base/memory.h"
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shared.h"
#include "shared_peer.h"

extern char **environ;

static int num_fds(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    cr_assert(ne(ptr, folder, NULL));
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

TestSuite(shared, .init = load, .fini = teardown);

static tn_shared_memory export_of(tn_scope *s, tn_array *x)
{
    tn_shared_memory memory = {.struct_size = sizeof(memory), .fd = -1};
    must(s, tn_array_export_fd(s, x, &memory));
    cr_assert(memory.fd >= 0 && memory.kind > 0);
    cr_assert(fcntl(memory.fd, F_GETFD) & FD_CLOEXEC);
    return memory;
}

static void holds(tn_scope *s, tn_array *x, int count, float first, float step)
{
    float got[PEER_COUNT];
    must(s, tn_read(s, x, got, (uint64_t)count * sizeof(*got)));
    for (int i = 0; i < count; i++)
        if (got[i] != first + step * (float)i)
            cr_fatal("element %d is %g, expected %g", i, (double)got[i],
                     (double)(first + step * (float)i));
}

static tn_array *line(tn_scope *s, float first)
{
    float data[PEER_COUNT];
    for (int i = 0; i < PEER_COUNT; i++)
        data[i] = first + (float)i;
    return tn_from_data(s, TN_F32, TN_SHAPE(PEER_COUNT), data);
}

// --- another process ---------------------------------------------------------------------

static pid_t start_peer(int *out_socket)
{
    int ends[2];
    pid_t child = -1;
    posix_spawn_file_actions_t actions;
    char *const arguments[] = {"shared_peer", (char *)(uintptr_t)backend, NULL};
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    cr_assert(eq(int,
                 posix_spawn(&child, check_getenv("TENON_TEST_PEER"), &actions, NULL,
                             arguments, environ),
                 0));
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *out_socket = ends[0];
    return child;
}

static double hear(int socket)
{
    struct peer_answer answer;
    cr_assert(eq(i64, read(socket, &answer, sizeof(answer)), sizeof(answer)));
    cr_assert(eq(int, answer.status, TN_OK));
    return answer.number;
}

Test(shared, another_process_reads_and_writes_the_same_bytes)
{
    int socket, status = -1;
    pid_t child = start_peer(&socket);
    tn_scope *s = tn_scope_open(runtime);
    tn_shared_memory memory = export_of(s, line(s, 3));
    tn_array *here = tn_array_import_fd(s, TN_F32, TN_SHAPE(PEER_COUNT), &memory);
    holds(s, here, PEER_COUNT, 3, 1);
    cr_assert(peer_send(socket, &memory));
    close(memory.fd);
    cr_assert(hear(socket) == PEER_COUNT * (3 + 3 + PEER_COUNT - 1) / 2.0);
    hear(socket); // it has written there
    holds(s, here, PEER_COUNT, 4, 1);
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_assert(eq(int, status, 0));
    holds(s, here, PEER_COUNT, 4, 1); // and has gone
    close(socket);
    tn_scope_close(s);
}

// --- whose memory ------------------------------------------------------------------------

Test(shared, a_file_descriptor_alone_keeps_the_memory)
{
    int before = 0;
    for (int round = 0; round < 2; round++) { // the first opens the device
        tn_runtime *rt = open_on(backend);
        tn_scope *s = tn_scope_open(rt);
        tn_shared_memory memory = export_of(s, line(s, 7));
        tn_scope_close(s);
        check_status(tn_runtime_close(rt), TN_OK);
        s = tn_scope_open(runtime);
        tn_array *x = tn_array_import_fd(s, TN_F32, TN_SHAPE(PEER_COUNT), &memory);
        close(memory.fd);
        holds(s, bin(s, "base.multiply", x, tn_float(s, 2)), PEER_COUNT, 14, 2);
        tn_scope_close(s);
        cr_assert(round == 0 || num_fds() == before);
        before = num_fds();
    }
}

static tn_status increment(tn_scope *s, tn_array *const *in, uint64_t num_in,
                           tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = bin(s, "base.add", in[0], tn_float(s, 1));
    return tn_scope_status(s);
}

Test(shared, results_are_handed_over_again_and_again_without_a_copy)
{
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = &(const uint32_t){0}, .num_donated = 1};
    tn_function *f = NULL;
    must(NULL, tn_function_create(runtime, increment, NULL, &options, &f));
    tn_scope *s = tn_scope_open(runtime);
    tn_shared_memory memory = export_of(s, line(s, 0));
    tn_array *reader = tn_array_import_fd(s, TN_F32, TN_SHAPE(PEER_COUNT), &memory);
    memory.flags = TN_MEMORY_WRITABLE;
    tn_array *mine = tn_array_import_fd(s, TN_F32, TN_SHAPE(PEER_COUNT), &memory);
    for (int i = 1; i <= 3; i++) {
        tn_array *next = NULL;
        must(s, tn_function_call(f, s, &mine, 1, &next, 1));
        must(s, tn_eval(s, next));
        holds(s, reader, PEER_COUNT, (float)i, 1);
        mine = next;
    }
    // What lies in shared memory is exported as it is: another reader sees the next write.
    tn_shared_memory again = export_of(s, mine);
    cr_assert(eq(u64, again.size, memory.size));
    cr_assert(eq(u64, again.offset, 0));
    tn_array *other = tn_array_import_fd(s, TN_F32, TN_SHAPE(PEER_COUNT), &again), *next;
    must(s, tn_function_call(f, s, &mine, 1, &next, 1));
    must(s, tn_eval(s, next));
    holds(s, other, PEER_COUNT, 4, 1);
    // Without the flag nothing is written.
    must(s, tn_function_call(f, s, &other, 1, &next, 1));
    must(s, tn_eval(s, next));
    holds(s, next, PEER_COUNT, 5, 1);
    holds(s, reader, PEER_COUNT, 4, 1);
    close(memory.fd);
    close(again.fd);
    tn_scope_close(s);
    tn_function_destroy(f);
}

Test(shared, views_begin_where_their_elements_are)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_shared_memory memory = export_of(s, line(s, 0));
    tn_array *x = tn_array_import_fd(s, TN_F32, TN_SHAPE(10, 100), &memory);
    tn_array *rows =
        tn_op(s, "base.slice", TN_IN(x), tn_attrs("start", TN_INTS(3), "stop", TN_INTS(5)));
    tn_shared_memory part = export_of(s, rows);
    cr_assert(eq(u64, part.offset, 3 * 100 * sizeof(float)));
    holds(s, tn_array_import_fd(s, TN_F32, TN_SHAPE(200), &part), 200, 300, 1);
    // A column, and backwards: 905, 805, ..., 5.
    tn_shared_memory column = memory;
    column.offset = 905 * sizeof(float);
    column.strides = (const int64_t[]){-100};
    holds(s, tn_array_import_fd(s, TN_F32, TN_SHAPE(10), &column), 10, 905, -100);
    // A view with gaps is copied to memory of its own.
    tn_shared_memory packed = export_of(s, un(s, "base.transpose", x));
    cr_assert(eq(u64, packed.offset, 0));
    tn_array *y = tn_array_import_fd(s, TN_F32, TN_SHAPE(100, 10), &packed);
    holds(s, un(s, "base.transpose", y), PEER_COUNT, 0, 1);
    close(memory.fd);
    close(part.fd);
    close(packed.fd);
    tn_scope_close(s);
}

Test(shared, every_dtype_travels)
{
    char data[12 * 16], got[sizeof(data)];
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++) {
        size_t size = 12 * (size_t)tn_dtype_bytes(dtype);
        for (size_t i = 0; i < sizeof(data); i++)
            data[i] = (char)(i * 7 % (dtype == TN_BOOL ? 2 : 60));
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = tn_from_data(s, dtype, TN_SHAPE(3, 4), data);
        tn_shared_memory memory = export_of(s, x);
        x = tn_array_import_fd(s, dtype, TN_SHAPE(3, 4), &memory);
        must(s, tn_read(s, x, got, size));
        cr_assert(memcmp(got, data, size) == 0);
        close(memory.fd);
        tn_scope_close(s);
    }
}

// --- release -----------------------------------------------------------------------------

static void count_release(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
}

Test(shared, release_is_called_once_after_the_last_use)
{
    atomic_int released = 0;
    tn_runtime *rt = open_on(backend);
    tn_scope *s = tn_scope_open(rt);
    tn_shared_memory memory = export_of(s, line(s, 1));
    memory.release = count_release;
    memory.context = &released;
    tn_array *x = tn_array_import_fd(s, TN_F32, TN_SHAPE(PEER_COUNT), &memory);
    close(memory.fd);
    tn_array *y = un(s, "base.sum", x), *kept = tn_keep(s, y);
    must(s, tn_eval_async(s, y));
    tn_scope_close(s); // the sum may be on its way
    s = tn_scope_open(rt);
    cr_assert(tn_item(s, kept) == PEER_COUNT * (1 + PEER_COUNT) / 2.0);
    tn_scope_close(s);
    tn_release(kept);
    check_status(tn_runtime_close(rt), TN_OK); // at the latest
    cr_assert(eq(int, released, 1));
}

// --- bad input ---------------------------------------------------------------------------

static void refused(tn_shared_memory memory, tn_dtype dtype, const tn_shape *shape,
                    tn_status status, const char *says)
{
    atomic_int released = 0;
    memory.release = count_release;
    memory.context = &released;
    tn_scope *s = tn_scope_open(runtime);
    cr_assert(eq(ptr, tn_array_import_fd(s, dtype, shape, &memory), NULL));
    check_says(tn_scope_error(s), "array_import_fd: ");
    check_says(tn_scope_error(s), says);
    cr_assert(eq(int, tn_scope_status(s), status));
    cr_assert(eq(int, released, 1));
    tn_scope_close(s);
    tn_array_import_fd(NULL, dtype, shape, &memory);
    cr_assert(eq(int, released, 2));
}
#define REFUSED(change, dtype, shape, says)                                                \
    do {                                                                                   \
        tn_shared_memory memory = good;                                                    \
        change;                                                                            \
        refused(memory, dtype, shape, TN_ERR_ARGUMENT, says);                              \
    } while (0)

Test(shared, bad_memory_is_refused_and_released)
{
    tn_scope *s = tn_scope_open(runtime);
    const tn_shared_memory good = export_of(s, line(s, 0));
    tn_scope_close(s);
    const tn_shape *shape = TN_SHAPE(PEER_COUNT);
    int before = num_fds(), zero = open("/dev/null", O_RDWR | O_CLOEXEC),
        small = memfd_create("small", MFD_CLOEXEC),
        plain = memfd_create("plain", MFD_CLOEXEC);
    cr_assert(eq(int, ftruncate(small, 64), 0));
    cr_assert(eq(int, ftruncate(plain, 1 << 20), 0));
    REFUSED(memory.fd = 1000, TN_F32, shape, "file descriptor 1000 is not open");
    REFUSED(memory.fd = -1, TN_F32, shape, "file descriptor -1 is not open");
    REFUSED(memory.fd = zero, TN_F32, shape, "it is another kind of file: expected what");
    REFUSED(memory.fd = small, TN_F32, shape, "it is shorter");
    REFUSED(memory.fd = plain, TN_F32, shape,
            "expected what an export by this device gave");
    REFUSED(memory.size = 1 << 30, TN_F32, shape, "memory of 1073741824 bytes");
    REFUSED(memory.size = UINT64_MAX, TN_F32, shape, "a buffer cannot have this size");
    REFUSED(memory.kind = 99, TN_F32, shape, "kind 99: the device has no such memory");
    REFUSED(memory.device[3] ^= 1, TN_F32, shape, "byte 3 of its id is 0x");
    REFUSED(memory.device[31] ^= 1, TN_F32, shape, "memory of another device than ");
    REFUSED(memory.offset = 2, TN_F32, TN_SHAPE(1),
            "offset 2, expected a multiple of 4 bytes, the size of f32");
    REFUSED(memory.offset = 4, TN_F64, TN_SHAPE(1), "expected a multiple of 8 bytes");
    REFUSED(memory.size = 0, TN_F32, shape, "reach outside of 0 bytes");
    REFUSED(memory.offset = memory.size, TN_F32, TN_SHAPE(1), "reach outside of ");
    REFUSED(memory.offset = UINT64_MAX - 3, TN_F32, TN_SHAPE(1), "reach outside of ");
    REFUSED(memory.offset = UINT64_MAX, TN_U8, TN_SHAPE(1), "reach outside of ");
    REFUSED(memory.strides = (const int64_t[]){-1}, TN_F32, TN_SHAPE(2), "outside of ");
    REFUSED((void)0, TN_F32, TN_SHAPE(PEER_COUNT, 2), "reach outside of ");
    REFUSED((void)0, TN_F32, TN_SHAPE(0), "an array without elements has no memory");
    REFUSED((void)0, TN_F32, NULL, "shape is NULL");
    REFUSED((void)0, TN_DTYPE_NONE, shape, "dtype");
    REFUSED(memory.flags = 2, TN_F32, shape, "tn_shared_memory: flags 0x2 are unknown");
    close(zero);
    close(small);
    close(plain);
    cr_assert(eq(int, num_fds(), before));
    s = tn_scope_open(runtime); // and the good one is as good as before
    holds(s, tn_array_import_fd(s, TN_F32, shape, &good), PEER_COUNT, 0, 1);
    cr_assert(eq(ptr, tn_array_import_fd(s, TN_F32, shape, NULL), NULL));
    check_says(tn_scope_error(s), "array_import_fd: the memory is NULL");
    tn_scope_close(s);
    close(good.fd);
}

static void export_fails(tn_runtime *rt, tn_scope *s, tn_array *x, tn_shared_memory *out,
                         tn_status status, const char *says)
{
    (void)rt;
    int before = num_fds();
    cr_assert(eq(int, tn_array_export_fd(s, x, out), status));
    check_says(tn_scope_error(s), "array_export_fd: ");
    check_says(tn_scope_error(s), says);
    cr_assert(eq(int, num_fds(), before));
    tn_scope_clear_error(s);
}

Test(shared, what_cannot_be_exported_says_why)
{
    tn_runtime *null = open_on("null");
    tn_shared_memory memory = {.struct_size = sizeof(memory), .fd = -7};
    tn_scope *s = tn_scope_open(null);
    const char *says = "device null:0 shares no memory by file descriptors";
    export_fails(null, s, ramp(s, 1, 3, 0, 1), &memory, TN_ERR_UNSUPPORTED, says);
    cr_assert(eq(ptr, tn_array_import_fd(s, TN_F32, TN_SHAPE(1), &memory), NULL));
    check_says(tn_scope_error(s), says);
    cr_assert(eq(int, tn_scope_status(s), TN_ERR_UNSUPPORTED));
    tn_scope_close(s);
    tn_runtime_close(null);
    s = tn_scope_open(runtime);
    export_fails(runtime, s, ramp(s, 0, 3, 0, 1), &memory, TN_ERR_ARGUMENT,
                 "an array without elements has no memory");
    export_fails(runtime, s, ramp(s, 1, 3, 0, 1), NULL, TN_ERR_ARGUMENT,
                 "the record is NULL");
    export_fails(runtime, s, NULL, &memory, TN_ERR_ARGUMENT, "the array is NULL");
    memory.struct_size = 24;
    export_fails(runtime, s, ramp(s, 1, 3, 0, 1), &memory, TN_ERR_ARGUMENT,
                 "a record of 24 bytes, expected 64 or more");
    cr_assert(eq(int, memory.fd, -7));
    memory.struct_size = 0; // that of ABI 1.0
    must(s, tn_array_export_fd(s, ramp(s, 1, 3, 0, 1), &memory));
    close(memory.fd);
    tn_scope_close(s);
}

// --- failing on the way ------------------------------------------------------------------

// Exports and imports; gives the scope's status.
static tn_status there_and_back(tn_runtime *rt)
{
    tn_shared_memory memory = {.struct_size = sizeof(memory), .fd = -1};
    tn_scope *s = tn_scope_open(rt);
    if (!s)
        return TN_ERR_MEMORY;
    tn_array *x = ramp(s, 1, PEER_COUNT, 0, 1), *y = NULL;
    if (tn_array_export_fd(s, x, &memory) == TN_OK)
        y = tn_array_import_fd(s, TN_F32, TN_SHAPE(PEER_COUNT), &memory);
    if (memory.fd >= 0)
        close(memory.fd);
    if (y && tn_item(s, un(s, "base.sum", y)) != PEER_COUNT * (PEER_COUNT - 1) / 2.0 &&
        tn_scope_status(s) == TN_OK)
        cr_fatal("the sum is another");
    tn_status status = tn_scope_status(s);
    if (status != TN_OK && (!tn_scope_error(s) || !*tn_scope_error(s)))
        cr_fatal("no message");
    tn_scope_close(s);
    return status;
}

Test(shared, each_call_of_vulkan_may_fail)
{
    static const VkResult results[] = {VK_ERROR_OUT_OF_HOST_MEMORY,
                                       VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                       VK_ERROR_INVALID_EXTERNAL_HANDLE};
    must(NULL, there_and_back(runtime));
    int before = num_fds();
    for (uint64_t n = 1;; n++) {
        arm(NULL, n, results[n % (sizeof(results) / sizeof(results[0]))]);
        there_and_back(runtime); // what fails last may only be asked again
        faults->nth = 0;
        cr_assert(eq(int, num_fds(), before), "after %s", faults->failed);
        if (atomic_load(&faults->num_failed) == 0) {
            cr_assert(gt(u64, n, 10));
            break;
        }
    }
    must(NULL, there_and_back(runtime));
    // Short of memory once, the export finds some that is spare.
    arm("vkAllocateMemory", 1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    must(NULL, there_and_back(runtime));
    cr_assert(eq(int, atomic_load(&faults->num_failed), 1));
    faults->nth = 0;
    tn_runtime_close(runtime);
    cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
    runtime = NULL; // closing none is fine
}

Test(shared, each_allocation_may_fail)
{
    must(NULL, there_and_back(runtime));
    int before = num_fds();
    for (int64_t n = 1;; n++) {
        mem_fail_nth(n);
        tn_status status = there_and_back(runtime);
        mem_fail_nth(0);
        cr_assert(eq(int, num_fds(), before));
        if (status == TN_OK && n > 5)
            break;
        cr_assert(status == TN_ERR_MEMORY || status == TN_OK);
    }
}

Test(shared, a_lost_device_shares_no_more)
{
    tn_runtime *rt = open_on(backend);
    must(NULL, there_and_back(rt));
    tn_scope *s = tn_scope_open(rt);
    tn_shared_memory memory = export_of(s, line(s, 0)), none = memory;
    arm("vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST);
    check_status(there_and_back(rt), TN_ERR_DEVICE);
    faults->nth = 0;
    cr_assert(eq(ptr, tn_array_import_fd(s, TN_F32, TN_SHAPE(PEER_COUNT), &memory), NULL));
    cr_assert(eq(int, tn_scope_status(s), TN_ERR_DEVICE));
    tn_scope_clear_error(s);
    cr_assert(ne(int, tn_array_export_fd(s, line(s, 0), &none), TN_OK));
    close(memory.fd);
    tn_scope_close(s);
    tn_runtime_close(rt);
}
