// SPDX-License-Identifier: MIT
// Loading: what is refused and why, and what several threads and runtimes may do.
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../fixtures/fixture.h"
#include "plugin/load/primitives.h"
#include "stage.h"

static struct fixture_probe *probe_of(tn_runtime *runtime, const char *id)
{
    for (uint32_t i = 0; i < runtime->plugins->count; i++) {
        struct plugin *plugin = runtime->plugins->plugins[i];
        if (plugin->state == TN_PLUGIN_LOADED && strcmp(plugin->manifest.id, id) == 0)
            return (struct fixture_probe *)plugin->entry->query(FIXTURE_PROBE);
    }
    cr_fatal("%s is not loaded", id);
    return NULL;
}

// --- a good one ------------------------------------------------------------------------

TestSuite(load, .init = stage_setup, .fini = stage_teardown);

Test(load, a_good_plugin_is_listed_and_loaded_when_used)
{
    stage_fixture("p", "com.acme.good", "good");
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    cr_assert(eq(u64, tn_plugin_count(runtime), 1));
    tn_plugin_info info = stage_find(runtime, "com.acme.good", TN_PLUGIN_FOUND);
    cr_assert(eq(str, info.version, "1.0.0"));
    cr_assert(eq(str, info.vendor, "Acme"));
    cr_assert(eq(str, info.file, stage_path("p/com.acme.good/plugin.so")));
    cr_assert(eq(str, info.primitives[0], "fixture.twice/1"));
    cr_assert(eq(str, info.kernels[0], "fixture.twice/1 cpu.c/1 plain"));
    cr_assert(eq(str, info.reason, ""));
    cr_assert(eq(str, tn_primitive_names(runtime)[0], "fixture.twice/1"));
    stage_find(runtime, "com.acme.good", TN_PLUGIN_FOUND); // names alone load nothing

    const struct prim *prim = NULL;
    check_status(prim_find(runtime, "fixture.twice", &prim), TN_OK);
    stage_find(runtime, "com.acme.good", TN_PLUGIN_LOADED);
    cr_assert(eq(uint, probe_of(runtime, "com.acme.good")->num_inits, 1));
    cr_assert(eq(str, prim->kernels->kernel.name, "plain"));
    check_status(tn_plugin_load(runtime, "com.acme.good"), TN_OK);
    check_status(tn_plugin_verify(stage_path("p/com.acme.good")), TN_OK);
    tn_runtime_close(runtime);
}

Test(load, a_description_is_the_same_every_time)
{
    stage_fixture("p", "com.acme.good", "good");
    char *first, *second;
    const char *file = stage_path("p/com.acme.good/plugin.so");
    tn_runtime *runtime = stage_runtime(NULL, NULL);
    check_status(tn_plugin_describe(runtime, file, &first), TN_OK);
    check_status(tn_plugin_describe(runtime, file, &second), TN_OK);
    cr_assert(eq(str, first, second));
    tn_text_free(first);
    tn_text_free(second);
    check_status(tn_plugin_describe(runtime, "/nowhere.so", &first), TN_ERR_IO);
    check_says(tn_last_error(), "/nowhere.so: No such file");
    tn_runtime_close(runtime);
}

Test(load, the_host_serves_its_plugin)
{
    stage_fixture("p", "com.acme.good", "good");
    tn_runtime *runtime = stage_runtime(stage_path("p"), "TENON_THREADS=3", NULL);
    check_status(tn_plugin_load(runtime, "com.acme.good"), TN_OK);
    const tn_host *host = probe_of(runtime, "com.acme.good")->host;
    cr_assert(eq(uint, host->abi_minor, TN_ABI_MINOR));
    cr_assert(eq(str, host->config(host, "TENON_THREADS"), "3"));
    cr_assert(eq(ptr, host->config(host, "HOME"), NULL));
    cr_assert(eq(ptr, host->query(host, "no.such/1"), NULL));
    cr_assert(ne(ptr, host->query(host, TN_HOST_CACHE), NULL));
    cr_assert(eq(ptr, host->query(host, TN_HOST_TRACE), NULL)); // TENON_TRACE is unset
    void *memory = host->alloc(host, 10, 4096);
    cr_assert(eq(u64, (uintptr_t)memory % 4096, 0));
    host->free(host, memory);
    host->free(host, NULL);
    cr_assert(eq(ptr, host->alloc(host, 10, 3), NULL));
    cr_assert(eq(ptr, host->alloc(host, UINT64_MAX, 0), NULL));
    check_status(host->fail(host, TN_ERR_ARGUMENT, "axis %d", 3), TN_ERR_ARGUMENT);
    cr_assert(eq(str, tn_last_error(), "axis 3"));
    tn_runtime_close(runtime);
}

// --- refused ---------------------------------------------------------------------------

Test(load, plugins_of_another_make_are_refused_with_a_reason)
{
    const struct {
        const char *id, *fixture, *says;
    } cases[] = {
        {"com.acme.fails", "init-fails", "the frobnicator is out of order"},
        {"com.acme.entry", "no-symbol", "exports no tn_plugin_v1"},
        {"com.acme.entry", "wrong-magic", "wrong magic"},
        {"com.acme.entry", "no-note", "no Tenon note"},
        {"com.acme.entry", "tail-set", "byte 80 of tn_plugin_v1 is set"},
        {"com.acme.entry", "other-id", "differ in id"},
        {"com.acme.empty", "no-meaning", "fixture.twice"},
        {"com.acme.long", "long-table", "its tn.ops/1 has 60000 bytes, expected"},
        {"com.acme.endless", "endless-list", "its list of kernels has 12000 entries"},
        {"com.acme.huge", "huge-list", "its list of kernels has 4294967295 entries"},
        {"com.acme.half", "no-submit", "lacks 'device_count'"},
        {"com.acme.unresolved", "unresolved", "nobody_has_this"},
        {"com.acme.older", "abi-older", "ABI"},
        {"com.acme.newer", "abi-newer", "ABI"},
        {"com.acme.sanitized", "sanitizer", "sanitizer"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *directory = stage_path("%zu", i);
        stage_by_hand(directory + strlen(stage_root) + 1, cases[i].id, "1.0.0",
                      cases[i].fixture);
        tn_runtime *runtime = stage_runtime(directory, "TENON_LOG=off", NULL);
        check_status(tn_plugin_load(runtime, cases[i].id), TN_ERR_REFUSED);
        check_says(tn_last_error(), cases[i].says);
        tn_plugin_info info = stage_find(runtime, cases[i].id, TN_PLUGIN_REFUSED);
        check_says(info.reason, cases[i].says);
        check_status(tn_plugin_load(runtime, cases[i].id), TN_ERR_REFUSED); // still
        tn_runtime_close(runtime);
    }
}

Test(load, abi_ranges_that_do_not_meet_are_both_shown)
{
    char *json;
    const char *newer = "fixture-abi-newer.so", *older = "fixture-abi-older.so";
    char path[4096];
    tn_runtime *runtime = stage_runtime(NULL, NULL);
    snprintf(path, sizeof(path), "%s/%s", getenv("TENON_TEST_FIXTURES"), newer);
    check_status(tn_plugin_describe(runtime, path, &json), TN_ERR_REFUSED);
    check_says(tn_last_error(),
               "com.acme.newer speaks ABI 1.7 to 1.9, this Tenon 1.0 to 1.0: rebuild");
    snprintf(path, sizeof(path), "%s/%s", getenv("TENON_TEST_FIXTURES"), older);
    check_status(tn_plugin_describe(runtime, path, &json), TN_ERR_REFUSED);
    check_says(tn_last_error(), "com.acme.older speaks ABI 0.0 to 0.0");
    tn_runtime_close(runtime);
    stage_fixture("p", "com.acme.wide", "abi-wide"); // 1.0 to 1.9: they meet at 1.0
    runtime = stage_runtime(stage_path("p"), NULL);
    check_status(tn_plugin_load(runtime, "com.acme.wide"), TN_OK);
    cr_assert(eq(uint, probe_of(runtime, "com.acme.wide")->host->abi_minor, TN_ABI_MINOR));
    tn_runtime_close(runtime);
}

Test(load, a_newer_struct_with_a_zero_tail_is_accepted)
{
    stage_fixture("p", "com.acme.entry", "tail-zero");
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    check_status(tn_plugin_load(runtime, "com.acme.entry"), TN_OK);
    tn_runtime_close(runtime);
}

// One change to a good installation, before the runtime opens or after it.
static void check_tampered(const char *says, bool late, void (*tamper)(const char *))
{
    static int number;
    char *name = stage_path("t%d", number++), *part = name + strlen(stage_root) + 1;
    tn_runtime *runtime = NULL;
    stage_fixture(part, "com.acme.good", "good");
    char *directory = stage_path("%s/com.acme.good", part);
    if (late)
        runtime = stage_runtime(name, "TENON_LOG=off", NULL);
    tamper(directory);
    if (!late)
        runtime = stage_runtime(name, "TENON_LOG=off", NULL);
    cr_assert(ne(int, tn_plugin_load(runtime, "com.acme.good"), TN_OK));
    check_says(tn_last_error(), says);
    cr_assert(ne(int, tn_plugin_verify(directory), TN_OK));
    check_says(tn_last_error(), says);
    tn_runtime_close(runtime);
}

static char *in(const char *directory, const char *name)
{
    return stage_path("%s/%s", directory + strlen(stage_root) + 1, name);
}
static void change_a_byte(const char *directory)
{
    size_t size;
    char *file = in(directory, "plugin.so"), *bytes = stage_read(file, &size);
    bytes[size - 1] ^= 1;
    stage_write(file, bytes, size);
    free(bytes);
}
static void cut(const char *directory)
{
    cr_assert(eq(int, truncate(in(directory, "plugin.so"), 100), 0));
}
static void remove_object(const char *directory)
{
    unlink(in(directory, "plugin.so"));
}
static void open_object_to_others(const char *directory)
{
    chmod(in(directory, "plugin.so"), 0757);
}
static void open_directory_to_others(const char *directory)
{
    chmod(directory, 0777);
}
static void open_manifest_to_others(const char *directory)
{
    chmod(in(directory, "plugin.json"), 0666);
}
static void link_object(const char *directory)
{
    rename(in(directory, "plugin.so"), stage_path("elsewhere.so"));
    cr_assert(eq(int, symlink(stage_path("elsewhere.so"), in(directory, "plugin.so")), 0));
}
static void link_directory(const char *directory)
{
    char *moved = stage_path("moved");
    rename(directory, moved);
    cr_assert(eq(int, symlink(moved, directory), 0));
}
static void make_object_a_fifo(const char *directory)
{
    unlink(in(directory, "plugin.so"));
    mkfifo(in(directory, "plugin.so"), 0644);
}
static void rename_directory(const char *directory)
{
    char *json = in(directory, "plugin.json");
    size_t size;
    char *text = stage_read(json, &size);
    memcpy(strstr(text, "com.acme.good"), "com.acme.evil", 13);
    stage_write(json, text, size);
    free(text);
}

Test(load, tampered_installations_are_refused)
{
    check_tampered("SHA-256", false, change_a_byte);
    check_tampered("SHA-256", true, change_a_byte);
    check_tampered("100 bytes", false, cut);
    check_tampered("100 bytes", true, cut);
    check_tampered("No such file", false, remove_object);
    check_tampered("chmod go-w", false, open_object_to_others);
    check_tampered("chmod go-w", true, open_object_to_others);
    check_tampered("chmod go-w", false, open_directory_to_others);
    check_tampered("chmod go-w", true, open_directory_to_others);
    check_tampered("chmod go-w", false, open_manifest_to_others);
    check_tampered("symbolic link", false, link_object);
    check_tampered("symbolic link", true, link_object);
    check_tampered("no regular file", false, make_object_a_fifo);
    check_tampered("names differ", false, rename_directory);
}

Test(load, a_linked_directory_is_refused)
{
    stage_fixture("p", "com.acme.good", "good");
    link_directory(stage_path("p/com.acme.good"));
    tn_runtime *runtime = stage_runtime(stage_path("p"), "TENON_LOG=off", NULL);
    check_status(tn_plugin_load(runtime, "com.acme.good"), TN_ERR_REFUSED);
    check_says(tn_last_error(), "symbolic link");
    tn_runtime_close(runtime);
}

Test(load, files_of_other_owners_are_refused)
{
    if (geteuid() != 0) // only root can give files away
        return;
    stage_fixture("p", "com.acme.good", "good");
    const char *object = stage_path("p/com.acme.good/plugin.so");
    cr_assert(eq(int, chown(object, 12345, 0), 0));
    check_status(tn_plugin_verify(stage_path("p/com.acme.good")), TN_ERR_REFUSED);
    check_says(tn_last_error(), "belongs to user 12345");
    cr_assert(eq(int, chown(object, 0, 12345), 0));
    cr_assert(eq(int, chmod(object, 0775), 0));
    check_status(tn_plugin_verify(stage_path("p/com.acme.good")), TN_ERR_REFUSED);
    check_says(tn_last_error(), "by its group");
    cr_assert(eq(int, chown(object, 0, 0), 0)); // the user's own group
    cr_assert(eq(int, chmod(object, 0775), 0));
    check_status(tn_plugin_verify(stage_path("p/com.acme.good")), TN_OK);
}

Test(load, nothing_of_a_refused_plugin_stays_registered)
{
    static const char *const cases[][3] = {
        {"com.acme.late", "last-wrong", "fixture.wrong"},
        {"com.acme.early", "init-adds", "frobnicator"},
    };
    for (size_t i = 0; i < 2; i++) {
        const char *id = cases[i][0], *where = stage_path("%zu", i);
        const struct prim *prim = NULL;
        const char *directory = where + strlen(stage_root) + 1;
        stage_by_hand(directory, id, "1.0.0", cases[i][1]); // the second cannot start
        stage_fixture(directory, "com.acme.good", "good");
        tn_runtime *runtime =
            stage_runtime(where, "TENON_LOG=off", "TENON_DLCLOSE=1", NULL);
        check_status(tn_plugin_load(runtime, id), TN_ERR_REFUSED);
        check_says(tn_last_error(), cases[i][2]);
        check_status(prim_find(runtime, "fixture.early", &prim), TN_ERR_NOT_FOUND);
        check_status(prim_find(runtime, "fixture.wrong", &prim), TN_ERR_NOT_FOUND);
        // The id and the kernel's name are free for the one that is right.
        if (prim_find(runtime, "fixture.twice", &prim) != TN_OK)
            cr_fatal("%s", tn_last_error());
        cr_assert(eq(str, prim->plugin_id, "com.acme.good"));
        cr_assert(ne(ptr, prim->kernels, NULL));
        cr_assert(eq(ptr, prim->kernels->next, NULL));
        cr_assert(eq(str, prim->kernels->plugin_id, "com.acme.good"));
        const char *const *names = tn_primitive_names(runtime);
        cr_assert(eq(str, names[0], "fixture.twice/1"));
        tn_runtime_close(runtime);
    }
}

// --- threads, runtimes, unloading ------------------------------------------------------

static void *load_slow(void *runtime)
{
    return (void *)(intptr_t)tn_plugin_load(runtime, "com.acme.slow");
}

Test(load, threads_that_want_one_plugin_load_it_once)
{
    stage_fixture("p", "com.acme.slow", "init-slow");
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        cr_assert(eq(int, pthread_create(&threads[i], NULL, load_slow, runtime), 0));
    for (int i = 0; i < 8; i++) {
        void *status;
        pthread_join(threads[i], &status);
        check_status((intptr_t)status, TN_OK);
    }
    cr_assert(eq(uint, probe_of(runtime, "com.acme.slow")->num_inits, 1));
    tn_runtime_close(runtime);
}

static void *open_load_close(void *path)
{
    tn_runtime *runtime = NULL;
    tn_runtime_options options = {.plugin_path = path,
                                  .variables = (const char *const[]){
                                      "TENON_PLUGINS_ONLY=1", "TENON_DLCLOSE=1", NULL}};
    tn_status status = tn_runtime_open(&options, &runtime);
    if (status == TN_OK)
        status = tn_plugin_load(runtime, "com.acme.good");
    tn_runtime_close(runtime);
    return (void *)(intptr_t)status;
}

Test(load, runtimes_of_several_threads_come_and_go)
{
    stage_fixture("p", "com.acme.good", "good");
    char *path = stage_path("p");
    for (int round = 0; round < 10; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            cr_assert(eq(int, pthread_create(&threads[i], NULL, open_load_close, path), 0));
        for (int i = 0; i < 4; i++) {
            void *status;
            pthread_join(threads[i], &status);
            check_status((intptr_t)status, TN_OK);
        }
    }
}

static tn_runtime *nested;
static tn_status load_itself(const tn_host *host)
{
    (void)host;
    return tn_plugin_load(nested, "com.acme.good");
}

Test(load, a_plugin_that_wants_itself_in_init_gets_an_error)
{
    stage_fixture("p", "com.acme.good", "good");
    tn_runtime *first = stage_runtime(stage_path("p"), NULL);
    nested = stage_runtime(stage_path("p"), "TENON_LOG=off", NULL);
    check_status(tn_plugin_load(first, "com.acme.good"), TN_OK);
    struct fixture_probe *probe = probe_of(first, "com.acme.good"); // shared by runtimes
    probe->during_init = load_itself;
    check_status(tn_plugin_load(nested, "com.acme.good"), TN_ERR_REFUSED);
    check_says(tn_last_error(), "asks for itself");
    probe->during_init = NULL;
    tn_runtime_close(nested);
    tn_runtime_close(first);
    cr_assert(eq(uint, probe->num_inits, 2));
    cr_assert(eq(uint, probe->num_deinits, 1)); // for the init that succeeded
}

// The same through another runtime, whose plugin is the same code.
Test(load, a_plugin_that_is_in_init_is_not_entered_again)
{
    stage_fixture("p", "com.acme.good", "good");
    tn_runtime *first = stage_runtime(stage_path("p"), NULL);
    tn_runtime *second = stage_runtime(stage_path("p"), "TENON_LOG=off", NULL);
    nested = stage_runtime(stage_path("p"), "TENON_LOG=off", NULL);
    check_status(tn_plugin_load(first, "com.acme.good"), TN_OK);
    struct fixture_probe *probe = probe_of(first, "com.acme.good");
    probe->during_init = load_itself;
    check_status(tn_plugin_load(second, "com.acme.good"), TN_ERR_REFUSED);
    check_says(tn_last_error(), "initialised from its own init");
    probe->during_init = NULL;
    tn_runtime_close(nested);
    tn_runtime_close(second);
    tn_runtime_close(first);
}

static bool is_mapped(const char *path)
{
    size_t size = 0;
    char line[8192];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof(line), maps))
        found |= strstr(line, path) != NULL, size++;
    fclose(maps);
    cr_assert(size > 0);
    return found;
}

Test(load, code_stays_unless_it_is_to_be_unloaded)
{
    stage_fixture("p", "com.acme.good", "good");
    const char *file = stage_path("p/com.acme.good/plugin.so");
    for (int i = 0; i < 100; i++) {
        tn_runtime *runtime = stage_runtime(stage_path("p"), "TENON_DLCLOSE=1", NULL);
        check_status(tn_plugin_load(runtime, "com.acme.good"), TN_OK);
        cr_assert(eq(uint, probe_of(runtime, "com.acme.good")->num_inits, 1)); // fresh code
        cr_assert(is_mapped(file));
        tn_runtime_close(runtime);
        cr_assert(not(is_mapped(file)));
    }
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    check_status(tn_plugin_load(runtime, "com.acme.good"), TN_OK);
    tn_runtime_close(runtime);
    cr_assert(is_mapped(file));
}

// The dynamic linker knows files by name too, and descriptors come again.
Test(load, plugins_are_never_taken_for_each_other)
{
    stage_fixture("p", "com.acme.good", "good");
    stage_fixture("p", "com.acme.slow", "init-slow");
    stage_fixture("p", "com.acme.wide", "abi-wide");
    tn_runtime *runtime = stage_runtime(stage_path("p"), "TENON_LOG=off", NULL);
    const char *ids[] = {"com.acme.good", "com.acme.slow", "com.acme.wide"};
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, tn_plugin_load(runtime, ids[i]), i ? TN_ERR_REFUSED : TN_OK));
    check_says(tn_last_error(), "fixture.twice"); // the same primitive, from another plugin
    cr_assert(eq(uint, probe_of(runtime, ids[0])->num_inits, 1));
    tn_runtime_close(runtime);
}

Test(load, code_changed_in_place_is_not_mixed_with_the_old)
{
    stage_fixture("p", "com.acme.good", "good");
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    check_status(tn_plugin_load(runtime, "com.acme.good"), TN_OK);
    // Bytes after the last section: another content, and so another module.
    FILE *file = fopen(stage_path("p/com.acme.good/plugin.so"), "ab");
    fputs("more", file);
    fclose(file);
    char *json;
    struct fixture_probe *probe = probe_of(runtime, "com.acme.good");
    check_status(
        tn_plugin_describe(runtime, stage_path("p/com.acme.good/plugin.so"), &json), TN_OK);
    tn_text_free(json);
    cr_assert(eq(uint, probe->num_inits, 1));
    tn_runtime *second = stage_runtime(stage_path("p"), "TENON_TRUST=any", NULL);
    check_status(tn_plugin_load(second, "com.acme.good"), TN_OK);
    cr_assert(ne(ptr, probe_of(second, "com.acme.good"), probe));
    cr_assert(eq(uint, probe->num_inits, 1));
    tn_runtime_close(second);
    tn_runtime_close(runtime);
}

// --- out of memory ---------------------------------------------------------------------

static tn_status open_and_load(const char *path)
{
    tn_runtime *runtime = NULL;
    tn_runtime_options options = {
        .plugin_path = path,
        .variables = (const char *const[]){"TENON_PLUGINS_ONLY=1",
                                           "TENON_PLUGINS_DISABLE=com.acme.slow", NULL}};
    tn_status status = tn_runtime_open(&options, &runtime);
    cr_assert(eq(int, status == TN_OK, runtime != NULL));
    if (status == TN_OK)
        status = tn_plugin_load(runtime, "com.acme.good");
    if (status == TN_ERR_MEMORY && runtime) // it may be tried again
        check_status(tn_plugin_load(runtime, "com.acme.good"), TN_OK);
    tn_runtime_close(runtime);
    return status;
}

// Fails each allocation in turn until several runs in a row notice nothing.
static void fail_each_allocation(bool in_json)
{
    int failures = 0;
    stage_fixture("p", "com.acme.good", "good");
    stage_fixture("p", "com.acme.slow", "init-slow");
    for (int64_t n = 1, quiet = 0; quiet < (in_json ? 200 : 20); n++) {
        mem_fail_nth(n);
        tn_status status = open_and_load(stage_path("p"));
        mem_fail_nth(0);
        bool refused = status == TN_ERR_REFUSED && in_json;
        if (status != TN_OK && status != TN_ERR_MEMORY && !refused)
            cr_fatal("allocation %d: %s", (int)n, tn_last_error());
        failures += status != TN_OK;
        quiet = status == TN_OK ? quiet + 1 : 0;
    }
    fprintf(stderr, "# %d allocations failed\n", failures);
    cr_assert(failures > 20);
}

Test(load, running_out_of_memory_at_any_time_is_survived)
{
    fail_each_allocation(false);
}

// Texts are parsed again when the JSON library fails. It cuts some strings short in silence
// when it cannot allocate: nothing leaks or breaks, but such a manifest is refused.
Test(load, running_out_of_memory_in_json_is_survived)
{
    setenv("TENON_LOG", "off", 1);
    json_set_alloc_funcs(mem_alloc, mem_free);
    fail_each_allocation(true);
    json_set_alloc_funcs(malloc, free);
}
