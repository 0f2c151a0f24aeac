// SPDX-License-Identifier: MIT
// Directories of plugins for tests.
#include "stage.h"

#include <fcntl.h>
#include <ftw.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

char stage_root[64];

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    (void)info, (void)kind, (void)ftw;
    return remove(path);
}

void stage_setup(void)
{
    const char *doc, *name;
    for (uint32_t i = 0; (name = config_variable(i, &doc)); i++)
        unsetenv(name);
    umask(022);
    snprintf(stage_root, sizeof(stage_root), "/tmp/tenon-test-XXXXXX");
    cr_assert(ne(ptr, mkdtemp(stage_root), NULL));
    setenv("HOME", stage_root, 1); // no plugin or cache of the user
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_CACHE_HOME");
}

void stage_teardown(void)
{
    cr_assert(eq(int, nftw(stage_root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0));
}

char *stage_path(const char *format, ...)
{
    static char paths[64][4096];
    static int next;
    char *path = paths[next++ % 64];
    int at = snprintf(path, sizeof(paths[0]), "%s/", stage_root);
    va_list list;
    va_start(list, format);
    vsnprintf(path + at, sizeof(paths[0]) - (size_t)at, format, list);
    va_end(list);
    return path;
}

void stage_directory(const char *path)
{
    char copy[4096];
    snprintf(copy, sizeof(copy), "%s", path);
    for (char *slash = copy + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(copy, 0755);
    }
    mkdir(copy, 0755);
}

void stage_write(const char *path, const void *bytes, size_t size)
{
    unlink(path);
    FILE *file = fopen(path, "wb");
    cr_assert(ne(ptr, file, NULL));
    cr_assert(eq(sz, fwrite(bytes, 1, size, file), size));
    fclose(file);
}

char *stage_read(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    cr_assert(ne(ptr, file, NULL));
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *bytes = malloc((size_t)size + 1);
    cr_assert(eq(i64, fread(bytes, 1, (size_t)size, file), size));
    bytes[size] = 0;
    fclose(file);
    *out_size = (size_t)size;
    return bytes;
}

static char *copy_fixture(const char *directory, const char *id, const char *fixture,
                          size_t *out_size)
{
    char from[4096], *to = stage_path("%s/%s/plugin.so", directory, id);
    snprintf(from, sizeof(from), "%s/fixture-%s.so", getenv("TENON_TEST_FIXTURES"),
             fixture);
    stage_directory(stage_path("%s/%s", directory, id));
    char *bytes = stage_read(from, out_size);
    stage_write(to, bytes, *out_size);
    return bytes;
}

void stage_description(const char *directory, const char *file)
{
    char *json = NULL;
    char path[4096];
    snprintf(path, sizeof(path), "%.*s", (int)(strrchr(directory, '/') - directory),
             directory);
    tn_runtime *runtime = stage_runtime(path, NULL);
    if (tn_plugin_describe(runtime, file, &json) != TN_OK)
        cr_fatal("%s", tn_last_error());
    tn_runtime_close(runtime);
    snprintf(path, sizeof(path), "%s/plugin.json", directory);
    stage_write(path, json, strlen(json));
    tn_text_free(json);
}

void stage_fixture(const char *directory, const char *id, const char *fixture)
{
    size_t size;
    free(copy_fixture(directory, id, fixture, &size));
    stage_description(stage_path("%s/%s", directory, id),
                      stage_path("%s/%s/plugin.so", directory, id));
}

void stage_by_hand(const char *directory, const char *id, const char *version,
                   const char *fixture)
{
    unsigned char sha256[32];
    char hex[65], json[2048];
    size_t size;
    char *bytes = copy_fixture(directory, id, fixture, &size);
    crypto_hash_sha256(sha256, (unsigned char *)bytes, size);
    sodium_bin2hex(hex, sizeof(hex), sha256, 32);
    free(bytes);
    snprintf(
        json, sizeof(json),
        "{\"format\": 1, \"id\": \"%s\", \"version\": \"%s\", \"vendor\": \"Acme\", "
        "\"abi\": {\"major\": 1, \"minor_min\": 0, \"minor_max\": 0}, \"sanitizer\": %d, "
        "\"file\": \"plugin.so\", \"files\": [{\"name\": \"plugin.so\", \"size\": %zu, "
        "\"sha256\": \"%s\"}]}",
        id, version, TN_SANITIZER_HERE, size, hex);
    stage_write(stage_path("%s/%s/plugin.json", directory, id), json, strlen(json));
}

tn_runtime *stage_runtime(const char *path, ...)
{
    const char *variables[16] = {"TENON_PLUGINS_ONLY=1"};
    va_list list;
    va_start(list, path);
    for (int i = 1; i < 15 && (variables[i] = va_arg(list, const char *)); i++)
        continue;
    va_end(list);
    tn_runtime *runtime = NULL;
    tn_runtime_options options = {.plugin_path = path, .variables = variables};
    if (tn_runtime_open(&options, &runtime) != TN_OK)
        cr_fatal("%s", tn_last_error());
    return runtime;
}

tn_plugin_info stage_find(tn_runtime *runtime, const char *id, uint32_t state)
{
    tn_plugin_info info = {0};
    for (uint64_t i = 0; i < tn_plugin_count(runtime); i++) {
        info.struct_size = sizeof(info);
        check_status(tn_plugin_get(runtime, i, &info), TN_OK);
        if (info.state == state && strcmp(info.id, id) == 0)
            return info;
        fprintf(stderr, "# %s is %u: %s\n", info.id, info.state, info.reason);
    }
    cr_fatal("no plugin %s in state %u", id, state);
    return info;
}

static int saved_stderr = -1;
static FILE *heard;

void stage_listen(void)
{
    fflush(stderr);
    heard = tmpfile();
    saved_stderr = dup(2);
    dup2(fileno(heard), 2);
}

const char *stage_heard(void)
{
    static char text[8192];
    fflush(stderr);
    dup2(saved_stderr, 2);
    close(saved_stderr);
    rewind(heard);
    text[fread(text, 1, sizeof(text) - 1, heard)] = 0;
    fclose(heard);
    return text;
}
