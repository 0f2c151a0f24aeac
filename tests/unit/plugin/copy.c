// SPDX-License-Identifier: MIT
// What is loaded is what was hashed: while the file is rewritten in place, and whatever the
// place that a copy can be made in.
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../../fixtures/fixture.h"
#include "stage.h"

// In the place of the C library's: without memory files when a test says so.
static bool has_no_memory_files;
static atomic_int num_memory_files;
int memfd_create(const char *name, unsigned flags)
{
    atomic_fetch_add(&num_memory_files, 1);
    if (has_no_memory_files) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_memfd_create, name, flags);
}

// In the place of the C library's: the date is later by so much.
static time_t seconds_later;
int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (clock == CLOCK_REALTIME)
        out->tv_sec += seconds_later;
    return result;
}

static const char *const unloading[] = {"TENON_DLCLOSE=1", "TENON_LOG=off"};

static struct fixture_probe *probe_of(tn_runtime *runtime)
{
    const tn_plugin *entry = NULL;
    for (uint32_t i = 0; i < runtime->plugins->count; i++)
        if (runtime->plugins->plugins[i]->state == TN_PLUGIN_LOADED)
            entry = runtime->plugins->plugins[i]->entry;
    cr_assert(ne(ptr, entry, NULL));
    return (struct fixture_probe *)entry->query(FIXTURE_PROBE);
}

// Over what is there, as cp does.
static void rewrite(const char *path, const char *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    cr_assert(fd >= 0);
    cr_assert(eq(int, ftruncate(fd, (off_t)size), 0));
    cr_assert(eq(i64, pwrite(fd, bytes, size, 0), size));
    close(fd);
}

static char *read_fixture(const char *name, size_t *out_size)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/fixture-%s.so", getenv("TENON_TEST_FIXTURES"), name);
    return stage_read(path, out_size);
}

// --- rewritten in place ----------------------------------------------------------------

struct writer {
    const char *path;
    char *versions[2];
    size_t sizes[2];
    _Atomic bool ends;
};

static void *write_on(void *context)
{
    struct writer *writer = context;
    for (int i = 0; !atomic_load(&writer->ends); i++)
        rewrite(writer->path, writer->versions[i % 2], writer->sizes[i % 2]);
    return NULL;
}

TestSuite(copy, .init = stage_setup, .fini = stage_teardown);

// The manifest is the first version's: the second is either refused or not seen.
Test(copy, a_file_rewritten_while_it_is_loaded_is_never_taken_for_another)
{
    char path[256];
    snprintf(path, sizeof(path), "%s", stage_path("p/com.acme.good/plugin.so"));
    stage_fixture("p", "com.acme.good", "number-1");
    struct writer writer = {.path = path};
    for (int i = 0; i < 2; i++)
        writer.versions[i] = read_fixture(i ? "number-2" : "number-1", &writer.sizes[i]);
    pthread_t thread;
    cr_assert(eq(int, pthread_create(&thread, NULL, write_on, &writer), 0));
    int num_loaded = 0, num_refused = 0;
    for (int i = 0; i < 300; i++) {
        tn_runtime *runtime =
            stage_runtime(stage_path("p"), unloading[0], unloading[1], NULL);
        if (tn_plugin_load(runtime, "com.acme.good") == TN_OK) {
            cr_assert(eq(u64, probe_of(runtime)->number, 1));
            num_loaded++;
        } else {
            num_refused++;
        }
        tn_runtime_close(runtime);
    }
    atomic_store(&writer.ends, true);
    pthread_join(thread, NULL);
    fprintf(stderr, "# %d loaded, %d refused\n", num_loaded, num_refused);
    free(writer.versions[0]);
    free(writer.versions[1]);
}

// Names of descriptors come again, and the inode is the same.
Test(copy, versions_loaded_one_after_the_other_differ)
{
    for (uint64_t i = 0; i < 20; i++) {
        stage_fixture("p", "com.acme.good", i % 2 ? "number-1" : "number-2");
        tn_runtime *runtime =
            stage_runtime(stage_path("p"), unloading[0], unloading[1], NULL);
        check_status(tn_plugin_load(runtime, "com.acme.good"), TN_OK);
        cr_assert(eq(i64, probe_of(runtime)->number, i % 2 ? 1 : 2));
        tn_runtime_close(runtime);
    }
}

Test(copy, the_same_content_is_one_module)
{
    stage_fixture("a", "com.acme.good", "number-1");
    stage_fixture("b", "com.acme.good", "number-1");
    tn_runtime *first = stage_runtime(stage_path("a"), NULL);
    tn_runtime *second = stage_runtime(stage_path("b"), NULL);
    check_status(tn_plugin_load(first, "com.acme.good"), TN_OK);
    check_status(tn_plugin_load(second, "com.acme.good"), TN_OK);
    cr_assert(eq(ptr, probe_of(first), probe_of(second)));
    cr_assert(eq(uint, probe_of(first)->num_inits, 2));
    tn_runtime_close(second);
    tn_runtime_close(first);
}

static int copies_of_loading(tn_runtime **out_runtime)
{
    int before = atomic_load(&num_memory_files);
    *out_runtime = stage_runtime(stage_path("p"), unloading[0], unloading[1], NULL);
    check_status(tn_plugin_load(*out_runtime, "com.acme.good"), TN_OK);
    return atomic_load(&num_memory_files) - before;
}

// Of a file that changed a moment ago, the next change could not be seen.
Test(copy, a_file_is_copied_once_while_its_code_is_loaded)
{
    static const struct {
        time_t later;
        int copies; // of the second runtime
    } rows[] = {{0, 1}, {60, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_runtime *runtime[2];
        size_t size;
        stage_fixture("p", "com.acme.good", "number-1");
        seconds_later = rows[i].later;
        cr_assert(eq(int, copies_of_loading(&runtime[0]), 1));
        cr_assert(eq(int, copies_of_loading(&runtime[1]), rows[i].copies));
        cr_assert(eq(u64, probe_of(runtime[1])->number, 1));
        tn_runtime_close(runtime[1]);
        char *other = read_fixture("number-2", &size);
        rewrite(stage_path("p/com.acme.good/plugin.so"), other, size);
        free(other);
        runtime[1] = stage_runtime(stage_path("p"), unloading[0], unloading[1], NULL);
        check_status(tn_plugin_load(runtime[1], "com.acme.good"), TN_ERR_REFUSED);
        tn_runtime_close(runtime[1]);
        tn_runtime_close(runtime[0]);
    }
    seconds_later = 0;
}

Test(copy, rewriting_a_file_in_use_harms_nobody)
{
    stage_fixture("p", "com.acme.good", "number-1");
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    check_status(tn_plugin_load(runtime, "com.acme.good"), TN_OK);
    cr_assert(eq(int, truncate(stage_path("p/com.acme.good/plugin.so"), 0), 0));
    cr_assert(eq(u64, probe_of(runtime)->number, 1)); // a mapped file would be SIGBUS
    tn_runtime_close(runtime);
}

// --- places for the copy ---------------------------------------------------------------

static void load_once(const char *variable)
{
    tn_runtime *runtime =
        stage_runtime(stage_path("p"), unloading[0], unloading[1], variable, NULL);
    if (tn_plugin_load(runtime, "com.acme.good") != TN_OK)
        cr_fatal("%s", tn_last_error());
    cr_assert(eq(u64, probe_of(runtime)->number, 1));
    tn_runtime_close(runtime);
}

// Whether the code's file has no name any more, as all copies.
static bool is_copied(const char *variable)
{
    struct stat info;
    tn_runtime *runtime =
        stage_runtime(stage_path("p"), unloading[0], unloading[1], variable, NULL);
    check_status(tn_plugin_load(runtime, "com.acme.good"), TN_OK);
    const struct link_map *map;
    Dl_info where;
    cr_assert(dladdr1(probe_of(runtime), &where, (void **)&map, RTLD_DL_LINKMAP));
    cr_assert(eq(int, stat(map->l_name, &info), 0));
    tn_runtime_close(runtime);
    return info.st_nlink == 0;
}

Test(copy, without_memory_files_the_copy_lies_in_the_cache)
{
    stage_fixture("p", "com.acme.good", "number-1");
    char cache[256];
    snprintf(cache, sizeof(cache), "TENON_CACHE_DIR=%s", stage_path("cache"));
    cr_assert(is_copied(cache));
    has_no_memory_files = true;
    load_once(cache);
    cr_assert(is_copied(cache));
    cr_assert(eq(int, rmdir(stage_path("cache")), 0)); // nothing is left in it
    // Nothing can be made there: the file itself is loaded, and hashed once more.
    load_once("TENON_CACHE_DIR=/proc/tenon");
    cr_assert(not(is_copied("TENON_CACHE_DIR=/proc/tenon")));
    has_no_memory_files = false;
}

Test(copy, a_limit_on_file_sizes_sends_no_signal)
{
    stage_fixture("p", "com.acme.good", "number-1");
    struct rlimit limit, small;
    cr_assert(eq(int, getrlimit(RLIMIT_FSIZE, &limit), 0));
    small = limit;
    small.rlim_cur = 4096;
    cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &small), 0));
    load_once(NULL);
    cr_assert(not(is_copied(NULL)));
    cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &limit), 0));
}

Test(copy, with_trust_in_any_file_the_file_itself_is_loaded)
{
    stage_fixture("p", "com.acme.good", "number-1");
    cr_assert(not(is_copied("TENON_TRUST=any")));
    cr_assert(is_copied("TENON_TRUST=checksummed"));
}

// --- libraries in the folder -----------------------------------------------------------

static void add_file(json_t *files, const char *directory, const char *name)
{
    unsigned char sha256[32];
    char hex[65];
    size_t size;
    char *bytes = stage_read(stage_path("%s/%s", directory, name), &size);
    crypto_hash_sha256(sha256, (unsigned char *)bytes, size);
    sodium_bin2hex(hex, sizeof(hex), sha256, 32);
    json_array_append_new(files, json_pack("{s:s, s:I, s:s}", "name", name, "size",
                                           (json_int_t)size, "sha256", hex));
    free(bytes);
}

// A plugin whose folder holds `names`: fixtures under the names that it needs.
static void stage_needing(const char *const names[][2], size_t count)
{
    static const char directory[] = "p/com.acme.good";
    size_t size;
    stage_by_hand("p", "com.acme.good", "1.0.0", "needs");
    char *text = stage_read(stage_path("%s/plugin.json", directory), &size);
    json_t *root = json_loads(text, 0, NULL);
    free(text);
    for (size_t i = 0; i < count; i++) {
        char *bytes = read_fixture(names[i][0], &size);
        stage_write(stage_path("%s/%s", directory, names[i][1]), bytes, size);
        add_file(json_object_get(root, "files"), directory, names[i][1]);
        free(bytes);
    }
    json_object_set_new(root, "primitives", json_pack("[{s:s}]", "id", "fixture.twice/1"));
    text = json_dumps(root, 0);
    stage_write(stage_path("%s/plugin.json", directory), text, strlen(text));
    free(text);
    json_decref(root);
}

// In the order in which neither can be loaded before the other one.
static const char *const libraries[][2] = {{"library", "libfixture-helper.so"},
                                           {"deep", "libfixture-deep.so"}};

Test(copy, libraries_in_the_folder_are_hashed_and_loaded_with_it)
{
    for (int i = 0; i < 3; i++) {
        stage_needing(libraries, 2);
        tn_runtime *runtime =
            stage_runtime(stage_path("p"), unloading[0], unloading[1], NULL);
        if (tn_plugin_load(runtime, "com.acme.good") != TN_OK)
            cr_fatal("%s", tn_last_error());
        cr_assert(eq(u64, probe_of(runtime)->number, 42));
        tn_runtime_close(runtime);
    }
}

Test(copy, a_library_that_is_missing_or_altered_is_told)
{
    stage_needing(libraries, 1);
    tn_runtime *runtime = stage_runtime(stage_path("p"), unloading[0], unloading[1], NULL);
    check_status(tn_plugin_load(runtime, "com.acme.good"), TN_ERR_REFUSED);
    check_says(tn_last_error(), "libfixture-");
    tn_runtime_close(runtime);

    stage_needing(libraries, 2);
    FILE *file = fopen(stage_path("p/com.acme.good/libfixture-deep.so"), "rb+");
    fseek(file, 9, SEEK_SET); // padding of the header: nothing reads it
    fputs("x", file);
    fclose(file);
    runtime = stage_runtime(stage_path("p"), unloading[0], unloading[1], NULL);
    check_status(tn_plugin_load(runtime, "com.acme.good"), TN_ERR_REFUSED);
    check_says(tn_last_error(), "libfixture-deep.so has SHA-256");
    tn_runtime_close(runtime);
}

Test(copy, a_plugin_reads_the_files_in_its_folder_as_they_are_listed)
{
    const char *const *name = &libraries[1][1];
    stage_needing(libraries, 2);
    tn_runtime *runtime = stage_runtime(stage_path("p"), unloading[0], unloading[1], NULL);
    check_status(tn_plugin_load(runtime, "com.acme.good"), TN_OK);
    const tn_host *host = probe_of(runtime)->host;
    const tn_host_files *files = host->query(host, TN_HOST_FILES);
    cr_assert(eq(str, files->directory(host), stage_path("p/com.acme.good")));
    void *data = NULL;
    uint64_t size = 0;
    size_t expected;
    char *bytes = stage_read(stage_path("p/com.acme.good/%s", *name), &expected);
    check_status(files->read(host, *name, &data, &size), TN_OK);
    cr_assert(eq(u64, size, expected));
    cr_assert(eq(mem, bytes_of(data, expected), bytes_of(bytes, expected)));
    host->free(host, data);
    free(bytes);
    check_status(files->read(host, "plugin.json", &data, &size), TN_ERR_NOT_FOUND);
    check_status(files->read(host, "../x", &data, &size), TN_ERR_NOT_FOUND);
    FILE *file = fopen(stage_path("p/com.acme.good/%s", *name), "ab");
    fputs("x", file);
    fclose(file);
    check_status(files->read(host, *name, &data, &size), TN_ERR_REFUSED);
    cr_assert(eq(int, unlink(stage_path("p/com.acme.good/%s", *name)), 0));
    check_status(files->read(host, *name, &data, &size), TN_ERR_REFUSED);
    tn_runtime_close(runtime);
}
