// SPDX-License-Identifier: MIT
// The disk cache: entries come back whole or not at all.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <tenon/cache_file.h>
#include <time.h>
#include <unistd.h>
#include "plugin/cache/cache.h"
#include "stage.h"

static tn_runtime runtime;
static struct tn_host_self self = {.runtime = &runtime};
static tn_host host;
static const tn_host_cache *cache;

static void setup(void)
{
    stage_setup();
    char variable[4096];
    snprintf(variable, sizeof(variable), "TENON_CACHE_DIR=%s", stage_path("deep/cache"));
    runtime = (tn_runtime){0};
    check_status(config_create_as(false, (const char *[]){variable, NULL}, &runtime.config),
                 TN_OK);
    host = host_table;
    host.self = &self;
    cache = host.query(&host, TN_HOST_CACHE);
    cr_assert(ne(ptr, cache, NULL));
}

static void teardown(void)
{
    config_destroy(runtime.config);
    stage_teardown();
}

static void put(const char *key, const char *text)
{
    cache->put(&host, key, strlen(key), text, strlen(text), NULL);
}

static bool has(const char *key, const char *text)
{
    void *data = NULL;
    uint64_t size = 0;
    tn_status status = cache->get(&host, key, strlen(key), &data, &size);
    if (status != TN_OK) {
        check_status(status, TN_ERR_NOT_FOUND);
        return false;
    }
    cr_assert(eq(sz, size, strlen(text)));
    cr_assert(eq(mem, bytes_of(data, size), bytes_of(text, size)));
    host.free(&host, data);
    return true;
}

// The path of the only entry, or NULL; *out_count files in all.
static char *only_entry(int *out_count)
{
    static char path[4096];
    DIR *directory = opendir(stage_path("deep/cache"));
    struct dirent *file;
    *out_count = 0;
    while ((file = readdir(directory)))
        if (file->d_name[0] != '.' || file->d_name[1] == 't') {
            snprintf(path, sizeof(path), "%s/%s", stage_path("deep/cache"), file->d_name);
            ++*out_count;
        }
    closedir(directory);
    return *out_count == 1 ? path : NULL;
}

TestSuite(cache, .init = setup, .fini = teardown);

Test(cache, what_is_put_is_got)
{
    fail_clear();
    cr_assert(not(has("key", "")));
    cr_assert(eq(str, fail_text(), "")); // not finding is no failure
    put("key", "value");
    put("another", "");
    cr_assert(has("key", "value"));
    cr_assert(has("another", ""));
    put("key", "newer");
    cr_assert(has("key", "newer"));
    struct stat info;
    cr_assert(eq(int, stat(stage_path("deep/cache"), &info), 0));
    cr_assert(eq(uint, info.st_mode & 07777, 0700));
}

// The four texts of the only entry, each ended by a newline.
static const char *only_texts(void)
{
    static char texts[TN_CACHE_NUM_TEXTS * TN_CACHE_MAX_TEXT + 1];
    int count;
    size_t size;
    tn_cache_header header;
    char *bytes = stage_read(only_entry(&count), &size);
    memcpy(&header, bytes, sizeof(header));
    cr_assert(eq(u64, sizeof(header) + header.size + header.texts_size, size));
    memcpy(texts, bytes + sizeof(header) + header.size, header.texts_size);
    texts[header.texts_size] = '\0';
    for (uint32_t i = 0; i < header.texts_size; i++)
        if (!texts[i])
            texts[i] = '\n';
    free(bytes);
    return texts;
}

Test(cache, an_entry_says_what_it_is)
{
    static struct plugin plugin = {.manifest = {.id = "com.acme.gpu"}};
    char longer[400], cut[TN_CACHE_MAX_TEXT + 32];
    memset(longer, 'x', sizeof(longer));
    longer[399] = '\0';
    snprintf(cut, sizeof(cut), "com.acme.gpu\n\n%.255s\n\n", longer);
    const struct {
        tn_cache_about about;
        const char *texts;
    } rows[] = {
        {{sizeof(tn_cache_about), 0, "SPIR-V", "acme.dot", "a GPU"},
         "com.acme.gpu\nSPIR-V\nacme.dot\na GPU\n"},
        {{sizeof(tn_cache_about), 0, "SPIR-V", NULL, NULL}, "com.acme.gpu\nSPIR-V\n\n\n"},
        {{8, 0, "SPIR-V", "of a host that is older", NULL}, "com.acme.gpu\n\n\n\n"},
        {{sizeof(tn_cache_about), 0, NULL, longer, NULL}, cut},
    };
    self.plugin = &plugin;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        cache->put(&host, "key", 3, "value", 5, &rows[i].about);
        cr_assert(eq(str, (char *)only_texts(), (char *)rows[i].texts), "row %zu", i);
        cr_assert(has("key", "value"));
    }
    self.plugin = NULL;
    put("key", "value");
    cr_assert(eq(str, (char *)only_texts(), "\n\n\n\n"));
}

Test(cache, what_is_found_and_missed_is_counted)
{
    has("key", "value");
    put("key", "value");
    has("key", "value");
    has("key", "value");
    cr_assert(eq(u64, runtime.cache_missed, 1));
    cr_assert(eq(u64, runtime.cache_found, 2));
    cr_assert(eq(u64, runtime.cache_unstored, 0));
    chmod(stage_path("deep/cache"), 0777);
    put("key", "value");
    cr_assert(eq(u64, runtime.cache_unstored, 1));
}

Test(cache, a_damaged_entry_is_absent_and_removed)
{
    int count;
    size_t size;
    put("key", "value");
    char *path = only_entry(&count);
    cr_assert(ne(ptr, path, NULL));
    char *bytes = stage_read(path, &size);
    for (size_t i = 0; i < size; i++) { // each byte of the file counts
        bytes[i] ^= 1;
        stage_write(path, bytes, size);
        cr_assert(not(has("key", "value")));
        cr_assert(eq(int, access(path, F_OK), -1));
        bytes[i] ^= 1;
    }
    for (size_t cut = 0; cut < size; cut++) {
        stage_write(path, bytes, cut);
        cr_assert(not(has("key", "value")));
    }
    stage_write(path, bytes, size);
    cr_assert(has("key", "value"));
    free(bytes);
}

Test(cache, an_entry_under_the_wrong_name_is_not_believed)
{
    int count;
    put("key", "value");
    char first[4096];
    snprintf(first, sizeof(first), "%s", only_entry(&count));
    size_t size;
    char *bytes = stage_read(first, &size);
    unlink(first);
    put("other", "x");
    stage_write(only_entry(&count), bytes, size);
    cr_assert(not(has("other", "value")));
    free(bytes);
}

Test(cache, a_directory_that_others_can_change_is_not_used)
{
    put("key", "value");
    chmod(stage_path("deep/cache"), 0777);
    cr_assert(not(has("key", "value")));
    put("second", "x");
    chmod(stage_path("deep/cache"), 0700);
    cr_assert(not(has("second", "x")));
    cr_assert(has("key", "value"));
}

Test(cache, the_longest_unused_go_first)
{
    char text[1000];
    memset(text, 'x', sizeof(text));
    text[999] = 0;
    for (int i = 0; i < 10; i++) {
        put(&"0123456789"[i], text); // keys are suffixes, all different
        int count;
        only_entry(&count);
        cr_assert(eq(int, count, i + 1));
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    const uint64_t entry_size = sizeof(tn_cache_header) + 999 + TN_CACHE_NUM_TEXTS;
    cr_assert(has("0123456789", text)); // the oldest, but just used
    int directory = open(stage_path("deep/cache"), O_RDONLY | O_DIRECTORY);
    cr_assert(eq(i64, cache_prune(directory, 20000), (int64_t)(10 * entry_size)));
    uint64_t left = cache_prune(directory, 6000);
    close(directory);
    check_within(u64, left, 3000, 4500);
    cr_assert(has("0123456789", text));
    cr_assert(not(has("123456789", text)));
    cr_assert(has("9", text));
}

Test(cache, a_place_that_cannot_be_is_no_error)
{
    stage_directory(stage_path("deep"));
    stage_write(stage_path("deep/cache"), "a file", 6);
    put("key", "value");
    cr_assert(not(has("key", "value")));
}

Test(cache, running_out_of_memory_is_no_error)
{
    put("key", "value");
    for (int64_t n = 1; n < 8; n++) {
        mem_fail_nth(n);
        has("key", "value");
        put("key", "value");
        mem_fail_nth(0);
    }
    cr_assert(has("key", "value"));
}
