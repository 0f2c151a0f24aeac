// SPDX-License-Identifier: MIT
// A plugin with an interface that no host knows, and the host's services as a plugin uses
// them.
#include <string.h>
#include <tenon/plugin.h>

typedef struct greeting {
    uint32_t struct_size;
    uint32_t flags; // 0
    const char *(*hello)(void);
} greeting;

static char *text;

static const char *hello(void)
{
    return text;
}

static tn_status init(const tn_host *host)
{
    static const char words[] = "hello from the museum";
    if (host->query(host, "com.nobody.nothing/1"))
        return host->fail(host, TN_ERR_INTERNAL, "the host has a service %s",
                          "com.nobody.nothing/1");
    const tn_host_cache *cache = host->query(host, TN_HOST_CACHE);
    if (TN_HAS(cache, put))
        cache->put(host, "museum", 6, words, sizeof(words), NULL);
    const char *threads = host->config(host, "TENON_THREADS");
    host->log(host, TN_LOG_DEBUG, "museum", "TENON_THREADS is %s",
              threads ? threads : "unset");
    text = host->alloc(host, sizeof(words), 64);
    if (!text)
        return TN_ERR_MEMORY;
    memcpy(text, words, sizeof(words));
    return TN_OK;
}

static void deinit(const tn_host *host)
{
    host->free(host, text);
    text = NULL;
}

static const greeting table = {.struct_size = sizeof(table), .hello = hello};
static const char *const interfaces[] = {"com.museum.greeting/1", NULL};

static const void *query(const char *id)
{
    if (strcmp(id, TN_IFACE_LIST) == 0)
        return interfaces;
    return strcmp(id, interfaces[0]) == 0 ? &table : NULL;
}

TN_PLUGIN("org.tenon.museum.interface", "1.0.0", "Tenon", .init = init, .deinit = deinit,
          .query = query);
