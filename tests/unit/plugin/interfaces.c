// SPDX-License-Identifier: MIT
// Interfaces that plugins find by the host's service: who is loaded, kept, and refused.
#include "../../fixtures/asker.h"
#include "stage.h"

#include <pthread.h>

TestSuite(interfaces, .init = stage_setup, .fini = stage_teardown);

static const char *const unloading = "TENON_DLCLOSE=1";

// As stage_fixture, for a plugin whose init fails while it is described: the manifest says
// by hand what it offers.
static void stage_offering(const char *id, const char *fixture, const char *interface)
{
    char *path = stage_path("p/%s/plugin.json", id), json[4096];
    size_t size;
    stage_by_hand("p", id, "1.0.0", fixture);
    char *made = stage_read(path, &size);
    snprintf(json, sizeof(json), "%.*s, \"interfaces\": [\"%s\"]}", (int)size - 1, made,
             interface);
    stage_write(path, json, strlen(json));
    free(made);
}

// Each needs the one before; their ids are in no order of that.
static void stage_chain(void)
{
    stage_fixture("p", "com.acme.m-asked", "asked");
    stage_fixture("p", "com.acme.a-asker", "asker-early");
    stage_fixture("p", "com.acme.z-asker", "asker-late");
}

static int count_lives(tn_runtime *runtime, const char *interface)
{
    const void *table = NULL;
    const tn_host *host = NULL;
    check_status(tn_interface_find(runtime, interface, &table, &host), TN_OK);
    return ((const struct asker *)table)->count_lives();
}

Test(interfaces, a_plugin_that_asks_has_its_provider_loaded)
{
    stage_chain();
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    check_status(tn_plugin_load(runtime, "com.acme.a-asker"), TN_OK);
    stage_find(runtime, "com.acme.m-asked", TN_PLUGIN_LOADED);
    stage_find(runtime, "com.acme.z-asker", TN_PLUGIN_FOUND);
    check_status(tn_plugin_load(runtime, "com.acme.z-asker"), TN_OK);
    cr_assert(eq(int, count_lives(runtime, "com.acme.asked/1"), 1));
    tn_runtime_close(runtime);
}

static bool is_mapped(const char *id)
{
    char line[4400];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof(line), maps))
        found |= strstr(line, id) != NULL;
    fclose(maps);
    return found;
}

// A deinit that finds its provider gone aborts or crashes: see asker.c.
Test(interfaces, providers_outlive_their_askers_a_hundred_times)
{
    stage_chain();
    for (int i = 0; i < 100; i++) {
        tn_runtime *runtime = stage_runtime(stage_path("p"), unloading, NULL);
        check_status(tn_plugin_load(runtime, "com.acme.z-asker"), TN_OK);
        stage_find(runtime, "com.acme.m-asked", TN_PLUGIN_LOADED);
        cr_assert(eq(int, count_lives(runtime, "com.acme.asked/1"), 1));
        tn_runtime_close(runtime);
        cr_assert(not(is_mapped("com.acme.m-asked")));
    }
}

Test(interfaces, two_runtimes_have_a_provider_each)
{
    stage_chain();
    tn_runtime *first = stage_runtime(stage_path("p"), unloading, NULL);
    tn_runtime *second = stage_runtime(stage_path("p"), unloading, NULL);
    check_status(tn_plugin_load(first, "com.acme.z-asker"), TN_OK);
    check_status(tn_plugin_load(second, "com.acme.a-asker"), TN_OK);
    cr_assert(eq(int, count_lives(second, "com.acme.asked/1"), 2));
    tn_runtime_close(first);
    cr_assert(eq(int, count_lives(second, "com.acme.asked/1"), 1));
    tn_runtime_close(second);
}

Test(interfaces, what_nobody_offers_is_told_with_its_maker)
{
    stage_offering("com.acme.a-asker", "asker-early", "com.acme.early/1");
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    check_status(tn_plugin_load(runtime, "com.acme.a-asker"), TN_ERR_REFUSED);
    check_says(tn_last_error(),
               "com.acme.a-asker: init failed (not found): no installed plugin offers the "
               "interface 'com.acme.asked/1': install the one that has it");
    tn_runtime_close(runtime);
}

Test(interfaces, a_provider_that_is_refused_is_told_with_its_reason)
{
    stage_chain();
    tn_runtime *runtime =
        stage_runtime(stage_path("p"), "TENON_PLUGINS_DISABLE=com.acme.m-*", NULL);
    check_status(tn_plugin_load(runtime, "com.acme.a-asker"), TN_ERR_REFUSED);
    check_says(tn_last_error(), "com.acme.a-asker: init failed (refused): ");
    check_says(tn_last_error(), "take 'com.acme.m-*' out of TENON_PLUGINS_DISABLE");
    tn_runtime_close(runtime);
}

// --- cycles ----------------------------------------------------------------------------

static const char says_cycle[] = "itself: one of them has to do without the other";

Test(interfaces, plugins_that_ask_for_each_other_are_refused)
{
    stage_offering("com.acme.left", "asker-left", "com.acme.left/1");
    stage_offering("com.acme.right", "asker-right", "com.acme.right/1");
    stage_offering("com.acme.self", "asker-self", "com.acme.self/1");
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    check_status(tn_plugin_load(runtime, "com.acme.left"), TN_ERR_REFUSED);
    check_says(tn_last_error(),
               "plugin com.acme.right asks for the interface 'com.acme.left/1' of plugin "
               "com.acme.left, which needs com.acme.right itself");
    check_status(tn_plugin_load(runtime, "com.acme.right"), TN_ERR_REFUSED);
    check_status(tn_plugin_load(runtime, "com.acme.self"), TN_ERR_REFUSED);
    check_says(tn_last_error(), says_cycle);
    tn_runtime_close(runtime);
}

static void *load(void *place)
{
    void *const *both = place;
    return (void *)(intptr_t)tn_plugin_load(both[0], both[1]);
}

// Each of two threads would wait for what the other loads.
Test(interfaces, a_cycle_that_two_threads_load_at_once_ends)
{
    stage_offering("com.acme.left", "asker-left", "com.acme.left/1");
    stage_offering("com.acme.right", "asker-right", "com.acme.right/1");
    for (int i = 0; i < 20; i++) {
        pthread_t threads[2];
        tn_runtime *runtime = stage_runtime(stage_path("p"), "TENON_LOG=off", NULL);
        void *places[2][2] = {{runtime, (char *)"com.acme.left"},
                              {runtime, (char *)"com.acme.right"}};
        for (int k = 0; k < 2; k++)
            cr_assert(eq(int, pthread_create(&threads[k], NULL, load, places[k]), 0));
        for (int k = 0; k < 2; k++) {
            void *status;
            pthread_join(threads[k], &status);
            check_status((tn_status)(intptr_t)status, TN_ERR_REFUSED);
        }
        tn_runtime_close(runtime);
    }
}

// --- out of memory ---------------------------------------------------------------------

Test(interfaces, running_out_of_memory_leaves_a_plugin_that_can_be_loaded)
{
    int failures = 0;
    stage_chain();
    for (int64_t n = 1, quiet = 0; quiet < 20; n++) {
        tn_runtime *runtime = stage_runtime(stage_path("p"), unloading, NULL);
        mem_fail_nth(n);
        tn_status status = tn_plugin_load(runtime, "com.acme.z-asker");
        mem_fail_nth(0);
        cr_assert(status == TN_OK || status == TN_ERR_MEMORY);
        failures += status != TN_OK;
        quiet = status == TN_OK ? quiet + 1 : 0;
        check_status(tn_plugin_load(runtime, "com.acme.z-asker"), TN_OK);
        tn_runtime_close(runtime);
    }
    cr_assert(failures > 10);
}
