// SPDX-License-Identifier: MIT
// The disk cache: entries come back whole or not at all.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "plugin/cache.h"
#include "stage.h"

static tn_runtime runtime;
static struct tn_host_self self = {.runtime = &runtime};
static tn_host host;
static const tn_host_cache *cache;

static int setup(void **state)
{
    if (stage_setup(state))
        return 1;
    char variable[4096];
    snprintf(variable, sizeof(variable), "TENON_CACHE_DIR=%s", stage_path("deep/cache"));
    runtime = (tn_runtime){0};
    if (config_create_as(false, (const char *[]){variable, NULL}, &runtime.config))
        return 1;
    host_init(&host, &self, 0);
    cache = host.query(&host, TN_HOST_CACHE);
    return cache ? 0 : 1;
}

static int teardown(void **state)
{
    config_destroy(runtime.config);
    return stage_teardown(state);
}

static void put(const char *key, const char *text)
{
    cache->put(&host, key, strlen(key), text, strlen(text));
}

static bool has(const char *key, const char *text)
{
    void *data = NULL;
    uint64_t size = 0;
    tn_status status = cache->get(&host, key, strlen(key), &data, &size);
    if (status != TN_OK) {
        assert_int_equal(status, TN_ERR_NOT_FOUND);
        return false;
    }
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
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

static void what_is_put_is_got(void **state)
{
    (void)state;
    fail_clear();
    assert_false(has("key", ""));
    assert_string_equal(fail_text(), ""); // not finding is no failure
    put("key", "value");
    put("another", "");
    assert_true(has("key", "value"));
    assert_true(has("another", ""));
    put("key", "newer");
    assert_true(has("key", "newer"));
    struct stat info;
    assert_int_equal(stat(stage_path("deep/cache"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
}

static void a_damaged_entry_is_absent_and_removed(void **state)
{
    (void)state;
    int count;
    size_t size;
    put("key", "value");
    char *path = only_entry(&count);
    assert_non_null(path);
    char *bytes = stage_read(path, &size);
    for (size_t i = 0; i < size; i++) { // each byte of the file counts
        bytes[i] ^= 1;
        stage_write(path, bytes, size);
        assert_false(has("key", "value"));
        assert_int_equal(access(path, F_OK), -1);
        bytes[i] ^= 1;
    }
    for (size_t cut = 0; cut < size; cut++) {
        stage_write(path, bytes, cut);
        assert_false(has("key", "value"));
    }
    stage_write(path, bytes, size);
    assert_true(has("key", "value"));
    free(bytes);
}

static void an_entry_under_the_wrong_name_is_not_believed(void **state)
{
    (void)state;
    int count;
    put("key", "value");
    char first[4096];
    snprintf(first, sizeof(first), "%s", only_entry(&count));
    size_t size;
    char *bytes = stage_read(first, &size);
    unlink(first);
    put("other", "x");
    stage_write(only_entry(&count), bytes, size);
    assert_false(has("other", "value"));
    free(bytes);
}

static void a_directory_that_others_can_change_is_not_used(void **state)
{
    (void)state;
    put("key", "value");
    chmod(stage_path("deep/cache"), 0777);
    assert_false(has("key", "value"));
    put("second", "x");
    chmod(stage_path("deep/cache"), 0700);
    assert_false(has("second", "x"));
    assert_true(has("key", "value"));
}

static void the_longest_unused_go_first(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof(text));
    text[999] = 0;
    for (int i = 0; i < 10; i++) {
        put(&"0123456789"[i], text); // keys are suffixes, all different
        int count;
        only_entry(&count);
        assert_int_equal(count, i + 1);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_true(has("0123456789", text)); // the oldest, but just used
    int directory = open(stage_path("deep/cache"), O_RDONLY | O_DIRECTORY);
    assert_int_equal(cache_prune(directory, 20000), 10 * 1079);
    uint64_t left = cache_prune(directory, 6000);
    close(directory);
    assert_in_range(left, 3000, 4500);
    assert_true(has("0123456789", text));
    assert_false(has("123456789", text));
    assert_true(has("9", text));
}

static void a_place_that_cannot_be_is_no_error(void **state)
{
    (void)state;
    stage_directory(stage_path("deep"));
    stage_write(stage_path("deep/cache"), "a file", 6);
    put("key", "value");
    assert_false(has("key", "value"));
}

static void running_out_of_memory_is_no_error(void **state)
{
    (void)state;
    put("key", "value");
    for (int64_t n = 1; n < 8; n++) {
        mem_fail_nth(n);
        has("key", "value");
        put("key", "value");
        mem_fail_nth(0);
    }
    assert_true(has("key", "value"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_put_is_got),
        TEST(a_damaged_entry_is_absent_and_removed),
        TEST(an_entry_under_the_wrong_name_is_not_believed),
        TEST(a_directory_that_others_can_change_is_not_used),
        TEST(the_longest_unused_go_first),
        TEST(a_place_that_cannot_be_is_no_error),
        TEST(running_out_of_memory_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
