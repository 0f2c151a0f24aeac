// SPDX-License-Identifier: MIT
// Packs and their engine: how large packs are, that the engine is loaded once, whatever
// the number of packs, runtimes and lives, and what is said when it is missing.
#include "check.h"

#include <elf.h>
#include <ftw.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/plugin.h>
#include <tenon/tenon.h>
#include <unistd.h>

static const char *const packs[] = {"org.tenon.blas", "org.tenon.lapack", "org.tenon.libm"};
enum { NUM_PACKS = 3 };

// The built plugins, and a folder for those that a test makes.
static const char *staging;
static char folder[64];

static void setup(void)
{
    staging = getenv("TENON_TEST_STAGING");
    snprintf(folder, sizeof(folder), "/tmp/tenon-engine-XXXXXX");
    if (!staging || !mkdtemp(folder))
        cr_fatal("no plugins, or no folder");
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info, (void)type, (void)at;
    return remove(path);
}

static void teardown(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(engine, .init = setup, .fini = teardown);

// --- tools -----------------------------------------------------------------------------

static char *read_file(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info))
        cr_fatal("%s is missing", path);
    char *data = malloc((size_t)info.st_size + 1);
    *out_size = fread(data, 1, (size_t)info.st_size, file);
    data[*out_size] = 0;
    fclose(file);
    return data;
}

static void write_file(const char *path, const void *data, size_t size, const char *tail)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fputs(tail, file) < 0 ||
        fclose(file) || chmod(path, 0755))
        cr_fatal("%s cannot be written", path);
}

static tn_runtime *open_runtime(const char *path)
{
    tn_runtime *runtime = NULL;
    const tn_runtime_options options = {
        .plugin_path = path,
        .variables =
            (const char *const[]){"TENON_PLUGINS_ONLY=1", "TENON_DLCLOSE=1",
                                  "TENON_LOG=off", "TENON_BACKEND=cpu-blas", NULL}};
    check_status(tn_runtime_open(&options, &runtime), TN_OK);
    return runtime;
}

// Copies a plugin to folder/<where>/<id>. `tail`, behind its code's last byte, makes it
// another plugin of the same id: it is described anew.
static void copy_plugin(const char *where, const char *id, const char *tail)
{
    char from[PATH_MAX], to[PATH_MAX], directory[PATH_MAX], *json = NULL;
    size_t size;
    snprintf(directory, sizeof(directory), "%s/%s", folder, where);
    mkdir(directory, 0755);
    snprintf(directory, sizeof(directory), "%s/%s/%s", folder, where, id);
    mkdir(directory, 0755);
    snprintf(from, sizeof(from), "%s/%s/%s.so", staging, id, id);
    snprintf(to, sizeof(to), "%s/%s/%s/%s.so", folder, where, id, id);
    char *code = read_file(from, &size);
    write_file(to, code, size, tail);
    free(code);
    tn_runtime *runtime = open_runtime(staging);
    check_status(tn_plugin_describe(runtime, to, &json), TN_OK);
    tn_runtime_close(runtime);
    snprintf(to, sizeof(to), "%s/%s/%s/plugin.json", folder, where, id);
    write_file(to, json, strlen(json), "");
    tn_text_free(json);
}

static tn_runtime *open_folder(const char *where)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, where);
    return open_runtime(path);
}

// How often the code of a plugin is mapped: one executable part each.
static int count_mapped(const char *id)
{
    char line[PATH_MAX + 128];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof(line), maps))
        count += strstr(line, " r-xp ") && strstr(line, id);
    if (maps)
        fclose(maps);
    return count;
}

static double cube_root(tn_runtime *runtime, double x)
{
    tn_scope *s = tn_scope_open(runtime);
    double got = tn_item(s, tn_op(s, "libm.cbrt", TN_IN(tn_f64(s, x)), TN_NO_ATTRS));
    if (tn_scope_status(s))
        cr_fatal("%s", tn_scope_error(s));
    tn_scope_close(s);
    return got;
}

// --- sizes -----------------------------------------------------------------------------

// Bytes of memory that the file does not fill.
static uint64_t bss_of(const char *data)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    uint64_t bytes = 0;
    memcpy(&header, data, sizeof(header));
    for (uint32_t i = 0; i < header.e_phnum; i++) {
        memcpy(&segment, data + header.e_phoff + i * sizeof(segment), sizeof(segment));
        if (segment.p_type == PT_LOAD)
            bytes += segment.p_memsz - segment.p_filesz;
    }
    return bytes;
}

// The bounds: 256 functions' addresses, five each, are 60 KiB; instrumented code is larger.
Test(engine, packs_are_small)
{
    bool is_plain = TN_SANITIZER_HERE == TN_SANITIZER_NONE;
    for (int i = 0; i < NUM_PACKS; i++) {
        char path[PATH_MAX];
        size_t size;
        snprintf(path, sizeof(path), "%s/%s/%s.so", staging, packs[i], packs[i]);
        char *data = read_file(path, &size);
        uint64_t manifest = 0;
        memcpy(&manifest, data + size - 16, sizeof(manifest)); // behind it: see make.h
        cr_assert(lt(u64, manifest, size));
        cr_assert(lt(u64, size - manifest, is_plain ? 68 << 10 : 512 << 10));
        cr_assert(lt(u64, bss_of(data), is_plain ? 1 << 10 : 64 << 10));
        free(data);
    }
}

// --- lives -----------------------------------------------------------------------------

Test(engine, three_packs_have_one_engine)
{
    tn_runtime *runtime = open_runtime(staging);
    cr_assert(eq(int, count_mapped("org.tenon.ffi"), 0));
    for (int i = 0; i < NUM_PACKS; i++) {
        check_status(tn_plugin_load(runtime, packs[i]), TN_OK);
        cr_assert(eq(int, count_mapped(packs[i]), 1));
        cr_assert(eq(int, count_mapped("org.tenon.ffi"), 1));
    }
    tn_runtime_close(runtime);
    cr_assert(eq(int, count_mapped("org.tenon."), 0));
}

Test(engine, a_hundred_lives_leave_nothing, .timeout = 120)
{
    uint64_t before = 0;
    for (int i = 0; i < 110; i++) {
        if (i == 10) // what others keep is there by now
            before = mallinfo2().uordblks;
        tn_runtime *runtime = open_runtime(staging);
        cr_assert(eq(dbl, cube_root(runtime, 8), 2));
        check_status(tn_plugin_load(runtime, "org.tenon.lapack"), TN_OK);
        tn_runtime_close(runtime);
        cr_assert(eq(int, count_mapped("org.tenon.ffi"), 0));
        cr_assert(eq(int, count_mapped("org.tenon.libm"), 0));
    }
    if (TN_SANITIZER_HERE == TN_SANITIZER_NONE) // a pack read is tens of KiB
        cr_assert(lt(u64, mallinfo2().uordblks, before + (64 << 10)));
}

Test(engine, a_pack_outlives_the_runtime_that_opened_it)
{
    tn_runtime *first = open_runtime(staging), *second = open_runtime(staging);
    cr_assert(eq(dbl, cube_root(first, 8), 2));
    cr_assert(eq(dbl, cube_root(second, 8), 2));
    cr_assert(eq(int, count_mapped("org.tenon.ffi"), 1));
    tn_runtime_close(first);
    cr_assert(eq(dbl, cube_root(second, 8), 2));
    tn_runtime_close(second);
    cr_assert(eq(int, count_mapped("org.tenon."), 0));
}

// --- another engine, or none -----------------------------------------------------------

Test(engine, one_process_gives_a_pack_one_engine)
{
    copy_plugin("other", "org.tenon.ffi", "another version");
    copy_plugin("other", "org.tenon.libm", "");
    tn_runtime *first = open_runtime(staging), *second = open_folder("other");
    check_status(tn_plugin_load(first, "org.tenon.libm"), TN_OK);
    check_status(tn_plugin_load(second, "org.tenon.libm"), TN_ERR_REFUSED);
    check_says(tn_last_error(),
               "another runtime of this process uses the pack with another "
               "version of org.tenon.ffi");
    cr_assert(eq(dbl, cube_root(first, 8), 2));
    tn_runtime_close(second);
    tn_runtime_close(first);
    second = open_folder("other"); // now alone
    check_status(tn_plugin_load(second, "org.tenon.libm"), TN_OK);
    tn_runtime_close(second);
}

Test(engine, without_an_engine_a_pack_says_what_to_install)
{
    copy_plugin("alone", "org.tenon.libm", "");
    tn_runtime *runtime = open_folder("alone");
    check_status(tn_plugin_load(runtime, "org.tenon.libm"), TN_ERR_REFUSED);
    check_says(tn_last_error(), "org.tenon.libm: init failed (not found): no installed "
                                "plugin offers the interface 'org.tenon.ffi.engine/1': "
                                "install the plugin org.tenon.ffi");
    tn_scope *s = tn_scope_open(runtime);
    tn_op(s, "libm.cbrt", TN_IN(tn_f64(s, 8)), TN_NO_ATTRS);
    check_says(tn_scope_error(s), "install the plugin org.tenon.ffi");
    tn_scope_close(s);
    tn_runtime_close(runtime);
}
