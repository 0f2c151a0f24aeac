// SPDX-License-Identifier: MIT
// The version of OpenBLAS before it is opened: of files' names, of the dynamic linker's
// cache in whatever bytes, and of the file that this process would open.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"
#include "openblas/openblas.h"
#include "openblas/version.h"

#define LIBRARY "libopenblas.so.0"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char *folder; // of the test's own

// --- names -----------------------------------------------------------------------------

static void make_folder(void)
{
    static char template[] = "/tmp/tenon-version-XXXXXX";
    folder = mkdtemp(template);
    cr_assert(ne(ptr, folder, NULL));
}

static void remove_folder(void)
{
    char command[256];
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    cr_assert(eq(int, system(command), 0));
}

TestSuite(version, .init = make_folder, .fini = remove_folder);

Test(version, names_tell_the_version)
{
    static const struct {
        const char *path;
        uint32_t version;
    } rows[] = {
        {"/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblasp-r0.3.21.so",
         BLAS_VERSION(0, 3, 21)},
        {"libopenblas-r0.3.9.so", BLAS_VERSION(0, 3, 9)},
        {"libopenblas_pthreads-r0.3.28.dev.so", BLAS_VERSION(0, 3, 28)},
        {"libopenblas64_p-r1.0.0.so.0", BLAS_VERSION(1, 0, 0)},
        {"/opt/x-r0.3.28.1/libopenblas.so.0", 0},
        {"libopenblas.so.0", 0},
        {"libopenblas-r0.3.so", 0},
        {"libopenblas-r0.300.1.so", 0},
        {"libopenblas-r.so", 0},
        {"libblas-r0.3.21.so", 0},
        {"", 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (blas_version_of(rows[i].path) != rows[i].version)
            cr_fatal("%s: %06x, expected %06x", rows[i].path,
                     (unsigned)blas_version_of(rows[i].path), (unsigned)rows[i].version);
    cr_assert(lt(uint, BLAS_VERSION(0, 3, 9), BLAS_VERSION(0, 3, 21)));
}

// --- the cache -------------------------------------------------------------------------

#if defined(__x86_64__) && defined(__LP64__)
#define MINE 0x0303
#else
#define MINE (-1)
#endif

struct entry {
    int32_t flags;
    uint32_t name, path, os_version;
    uint64_t hardware;
};

static const struct cache {
    char magic[20];
    uint32_t num_entries, more[6];
    struct entry entries[4];
    char a[20], b[16], c[16], d[16];
} cache = {
    "glibc-ld.so.cache1.1",
    4,
    {0},
    {{MINE, offsetof(struct cache, c), offsetof(struct cache, b), 0, 0},
     {MINE, offsetof(struct cache, a), offsetof(struct cache, c), 0, 0},
     {7, offsetof(struct cache, a), offsetof(struct cache, b), 0, 0}, // another processor's
     {MINE, offsetof(struct cache, a), offsetof(struct cache, d), 0, 0}},
    LIBRARY,
    "/b",
    "/c",
    "/d",
};

Test(version, the_cache_tells_each_path)
{
    uint32_t position = 0;
    cr_assert(eq(str, blas_path_in_cache(&cache, sizeof(cache), LIBRARY, &position), "/c"));
    cr_assert(eq(str, blas_path_in_cache(&cache, sizeof(cache), LIBRARY, &position), "/d"));
    cr_assert(eq(ptr, blas_path_in_cache(&cache, sizeof(cache), LIBRARY, &position), NULL));
    cr_assert(eq(ptr, blas_path_in_cache(&cache, sizeof(cache), LIBRARY, &position), NULL));
    position = 0;
    cr_assert(eq(
        ptr, blas_path_in_cache(&cache, sizeof(cache), "libopenblas.so", &position), NULL));
}

// Shorter than it says, and with each byte another: nothing outside is read.
Test(version, a_damaged_cache_is_survived)
{
    uint32_t position = 0;
    for (size_t size = 0; size < sizeof(cache); size++) {
        char *bytes = malloc(size + 1); // malloc(0) may be NULL
        memcpy(bytes, &cache, size);
        position = 0;
        while (blas_path_in_cache(bytes, size, LIBRARY, &position))
            cr_assert(position <= cache.num_entries);
        free(bytes);
    }
    for (size_t at = 0; at < sizeof(cache); at++) {
        char *bytes = malloc(sizeof(cache));
        memcpy(bytes, &cache, sizeof(cache));
        bytes[at] = (char)0xff;
        position = 0;
        while (blas_path_in_cache(bytes, sizeof(cache), LIBRARY, &position))
            cr_assert(position <= cache.num_entries);
        free(bytes);
    }
}

// --- this process ----------------------------------------------------------------------

// What a process that begins with this LD_LIBRARY_PATH finds.
static uint32_t found_with(const char *path, const char *name)
{
    char command[1024];
    unsigned found = UINT32_MAX;
    snprintf(command, sizeof(command),
             "LD_LIBRARY_PATH='%s'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\" '%s' '%s'",
             path, check_getenv("TENON_TEST_TELLER"), name);
    FILE *said = popen(command, "r");
    cr_assert(ne(ptr, said, NULL));
    cr_assert(eq(int, fscanf(said, "%x", &found), 1));
    cr_assert(eq(int, pclose(said), 0));
    return found;
}

static void make_library(const char *sub, const char *file)
{
    char path[512], link[512];
    snprintf(path, sizeof(path), "%s/%s", folder, sub);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%s/%s", folder, sub, file);
    snprintf(link, sizeof(link), "%s/%s/%s", folder, sub, LIBRARY);
    FILE *made = fopen(path, "w");
    cr_assert(ne(ptr, made, NULL));
    fclose(made);
    if (strcmp(file, LIBRARY) != 0)
        cr_assert(eq(int, symlink(file, link), 0));
}

Test(version, the_first_folder_counts)
{
    char one[512], both[1100];
    make_library("new", "libopenblasp-r9.8.7.so");
    make_library("old", "libopenblas-r0.3.10.so");
    make_library("plain", LIBRARY);
    snprintf(one, sizeof(one), "%s/new", folder);
    cr_assert(eq(uint, found_with(one, LIBRARY), BLAS_VERSION(9, 8, 7)));
    snprintf(both, sizeof(both), "%s/absent:%s/old:%s/new", folder, folder, folder);
    cr_assert(eq(uint, found_with(both, LIBRARY), BLAS_VERSION(0, 3, 10)));
    snprintf(both, sizeof(both), "%s/plain:%s/new", folder, folder);
    cr_assert(eq(uint, found_with(both, LIBRARY), 0));
    snprintf(both, sizeof(both), "%s/old/%s", folder, LIBRARY); // by its path
    cr_assert(eq(uint, found_with(one, both), BLAS_VERSION(0, 3, 10)));
    cr_assert(eq(uint, found_with(one, "libnothing.so.77"), 0));
    cr_assert(eq(uint, found_with(one, "./absent/libopenblas.so.0"), 0));
}

// The file that is opened, and that the library says is its version.
Test(version, what_is_found_is_what_is_opened)
{
    unsigned major, minor, patch;
    uint32_t found = blas_version_find(LIBRARY);
    const char *version = openblas_dlopen(LIBRARY) ? openblas_find()->version : "";
    if (found == 0 || sscanf(version, "%u.%u.%u", &major, &minor, &patch) != 3)
        return; // the file does not tell, or the library; or there is none
    cr_assert(eq(uint, found, BLAS_VERSION(major, minor, patch)));
}
