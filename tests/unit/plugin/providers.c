// SPDX-License-Identifier: MIT
// Providers of one interface: found by their selectors, with nothing loaded; and what two
// of them for one selector say.
#include "../../fixtures/asker.h"
#include "stage.h"

#include <tenon/file.h>
#include <tenon/format.h>

TestSuite(providers, .init = stage_setup, .fini = stage_teardown);

#define SHAPES "com.acme.shapes/1"

// A plugin that says by hand that it provides an interface, with these selectors.
static void stage_as(const char *interface, const char *id, const char *selectors)
{
    char *path = stage_path("p/%s/plugin.json", id), json[4096];
    size_t size;
    stage_by_hand("p", id, "1.0.0", "asked");
    char *made = stage_read(path, &size);
    snprintf(json, sizeof(json), "%.*s, \"interfaces\": [\"%s\"], \"selectors\": [%s]}",
             (int)size - 1, made, interface, selectors);
    stage_write(path, json, strlen(json));
    free(made);
}

static void stage_provider(const char *id, const char *selectors)
{
    stage_as(SHAPES, id, selectors);
}

#define SELECTOR(kind, value)                                                              \
    "{\"interface\": \"" SHAPES "\", \"kind\": \"" kind "\", \"value\": \"" value "\"}"

static void stage_two(void)
{
    stage_provider("com.acme.round", SELECTOR("extension", "disc") ", " //
                   SELECTOR("extension", "ball") ", " SELECTOR("magic", "4f4f"));
    stage_provider("com.acme.angular", SELECTOR("extension", "cube") ", " //
                   SELECTOR("magic", "4f4f??5b"));
}

static const char *find(tn_runtime *runtime, const char *value)
{
    const char *plugin = NULL;
    check_status(tn_provider_find(runtime, SHAPES, "extension", value, &plugin), TN_OK);
    return plugin;
}

Test(providers, one_is_found_by_its_selector_and_none_is_loaded)
{
    stage_two();
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    cr_assert(eq(str, find(runtime, "ball"), "com.acme.round"));
    cr_assert(eq(str, find(runtime, "cube"), "com.acme.angular"));
    stage_find(runtime, "com.acme.round", TN_PLUGIN_FOUND);
    stage_find(runtime, "com.acme.angular", TN_PLUGIN_FOUND);
    tn_runtime_close(runtime);
}

Test(providers, all_are_listed_by_id_with_their_selectors)
{
    stage_two();
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    uint64_t count = 0;
    check_status(tn_providers(runtime, SHAPES, NULL, &count), TN_OK);
    cr_assert(eq(u64, count, 2));
    tn_provider list[3] = {{.struct_size = sizeof(tn_provider)}};
    count = 3;
    check_status(tn_providers(runtime, SHAPES, list, &count), TN_OK);
    cr_assert(eq(u64, count, 2));
    cr_assert(eq(str, list[0].plugin, "com.acme.angular"));
    cr_assert(eq(str, list[1].plugin, "com.acme.round"));
    cr_assert(eq(str, list[1].selectors[1], SHAPES " extension ball"));
    cr_assert(eq(ptr, (void *)(uintptr_t)list[0].selectors[2], NULL));
    count = 1;
    list[1].plugin = NULL;
    check_status(tn_providers(runtime, SHAPES, list, &count), TN_OK);
    cr_assert(eq(u64, count, 2));
    cr_assert(eq(ptr, (void *)(uintptr_t)list[1].plugin, NULL));
    check_status(tn_providers(runtime, "com.acme.none/1", NULL, &count), TN_OK);
    cr_assert(eq(u64, count, 0));
    tn_runtime_close(runtime);
}

Test(providers, the_longest_beginning_of_a_file_counts)
{
    stage_two();
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    const char *plugin = NULL;
    check_status(tn_provider_match(runtime, SHAPES, "OOxy", 4, &plugin), TN_OK);
    cr_assert(eq(str, plugin, "com.acme.round"));
    check_status(tn_provider_match(runtime, SHAPES, "OOx[", 4, &plugin), TN_OK);
    cr_assert(eq(str, plugin, "com.acme.angular"));
    check_status(tn_provider_match(runtime, SHAPES, "OOx", 3, &plugin), TN_OK);
    cr_assert(eq(str, plugin, "com.acme.round"));
    check_status(tn_provider_match(runtime, SHAPES, "O", 1, &plugin), TN_ERR_NOT_FOUND);
    check_status(tn_provider_match(runtime, SHAPES, NULL, 0, &plugin), TN_ERR_NOT_FOUND);
    check_says(tn_last_error(), "for magic (the file's first bytes)");
    tn_runtime_close(runtime);
}

Test(providers, what_nobody_provides_is_told_with_what_is_known)
{
    stage_two();
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    const char *plugin = "untouched";
    check_status(tn_provider_find(runtime, SHAPES, "extension", "cone", &plugin),
                 TN_ERR_NOT_FOUND);
    check_says(tn_last_error(),
               "no installed plugin provides " SHAPES " for extension cone (known: ");
    check_says(tn_last_error(), "cube");
    check_says(tn_last_error(), "disc, ball");
    cr_assert(eq(str, plugin, "untouched"));
    check_status(tn_provider_find(runtime, "com.acme.none/1", "a", "b", &plugin),
                 TN_ERR_NOT_FOUND);
    check_says(tn_last_error(), "(known: none)");
    tn_runtime_close(runtime);
}

Test(providers, two_for_one_selector_are_both_named)
{
    stage_two();
    stage_provider("com.acme.both", SELECTOR("extension", "ball"));
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    const char *plugin = NULL;
    check_status(tn_provider_find(runtime, SHAPES, "extension", "ball", &plugin),
                 TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "two plugins provide " SHAPES " for extension ball: "
                                "com.acme.both and com.acme.round");
    cr_assert(eq(str, find(runtime, "disc"), "com.acme.round"));
    tn_runtime_close(runtime);
    // The remedy that the message names.
    runtime = stage_runtime(stage_path("p"), "TENON_PLUGINS_DISABLE=com.acme.both", NULL);
    cr_assert(eq(str, find(runtime, "ball"), "com.acme.round"));
    tn_runtime_close(runtime);
}

// A file is not opened by one of two formats at random.
Test(providers, two_formats_for_one_file_are_both_named)
{
#define OF_FORMAT(kind, value)                                                             \
    "{\"interface\": \"" TN_IFACE_FORMAT "\", \"kind\": \"" kind "\", \"value\": \"" value \
    "\"}"
    const char *selectors = OF_FORMAT("extension", "ball") ", " OF_FORMAT("magic", "4f4f");
    stage_as(TN_IFACE_FORMAT, "com.acme.left", selectors);
    stage_as(TN_IFACE_FORMAT, "com.acme.right", selectors);
    stage_write(stage_path("x.ball"), "text", 4);
    stage_write(stage_path("magic"), "OO..", 4);
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    tn_file *file = NULL;
    check_status(tn_file_open(runtime, stage_path("x.ball"), NULL, &file), TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "two plugins provide tn.format/1 for extension ball: "
                                "com.acme.left and com.acme.right");
    check_status(tn_file_open(runtime, stage_path("magic"), NULL, &file), TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "com.acme.left and com.acme.right");
    tn_runtime_close(runtime);
#undef OF_FORMAT
}

Test(providers, one_that_is_left_out_is_told_with_its_reason)
{
    stage_two();
    tn_runtime *runtime =
        stage_runtime(stage_path("p"), "TENON_PLUGINS_DISABLE=com.acme.round", NULL);
    const char *plugin = NULL;
    cr_assert(
        ne(int, tn_provider_find(runtime, SHAPES, "extension", "ball", &plugin), TN_OK));
    check_says(tn_last_error(), "com.acme.round is disabled by TENON_PLUGINS_DISABLE");
    tn_runtime_close(runtime);
}

Test(providers, the_manifest_is_made_of_the_plugins_own_selectors)
{
    stage_fixture("p", "com.acme.m-asked", "asked");
    tn_runtime *runtime = stage_runtime(stage_path("p"), NULL);
    const char *plugin = NULL;
    check_status(tn_provider_match(runtime, "com.acme.asked/1", "AbCd", 4, &plugin), TN_OK);
    cr_assert(eq(str, plugin, "com.acme.m-asked"));
    stage_find(runtime, plugin, TN_PLUGIN_FOUND);
    const void *table = NULL;
    const tn_host *host = NULL;
    check_status(tn_provider_load(runtime, "com.acme.asked/1", plugin, &table, &host),
                 TN_OK);
    stage_find(runtime, plugin, TN_PLUGIN_LOADED);
    cr_assert(eq(int, ((const struct asker *)table)->count_lives(), 1));
    check_status(tn_provider_load(runtime, SHAPES, plugin, &table, &host),
                 TN_ERR_NOT_FOUND);
    check_says(tn_last_error(), "plugin com.acme.m-asked does not provide " SHAPES);
    check_status(tn_provider_load(runtime, SHAPES, "com.acme.nobody", &table, &host),
                 TN_ERR_NOT_FOUND);
    check_says(tn_last_error(), "plugin com.acme.nobody is not installed");
    check_status(tn_provider_find(runtime, NULL, "a", "b", &plugin), TN_ERR_ARGUMENT);
    check_status(tn_provider_find(runtime, SHAPES, NULL, "b", &plugin), TN_ERR_ARGUMENT);
    tn_runtime_close(runtime);
}
