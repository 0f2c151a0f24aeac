// SPDX-License-Identifier: MIT
// Which plugin uses interfaces of which other plugin. A plugin is unloaded before the
// plugins that it needs; needs form no cycle.
#include "load.h"

#include "../../base/fail.h"
#include "../../base/memory.h"

bool plugin_needs(const struct plugin *asker, const struct plugin *provider)
{
    for (uint32_t i = 0; i < asker->num_needs; i++)
        if (asker->needs[i] == provider)
            return true;
    return false;
}

// Directly or through other plugins. The recursion ends, because needs form no cycle.
static bool needs_at_all(const struct plugin *asker, const struct plugin *provider)
{
    bool found = plugin_needs(asker, provider);
    for (uint32_t i = 0; i < asker->num_needs && !found; i++)
        found = needs_at_all(asker->needs[i], provider);
    return found;
}

// The entry stays when the provider cannot be loaded afterwards: another thread of the
// asker may have loaded the provider meanwhile.
tn_status plugin_need(struct plugin *asker, struct plugin *provider, const char *interface)
{
    struct plugin_set *set = asker->set;
    tn_status status = TN_OK;
    pthread_mutex_lock(&set->lock);
    bool is_cycle = asker == provider || needs_at_all(provider, asker);
    bool is_known = plugin_needs(asker, provider);
    if (!is_cycle && !is_known)
        status = mem_grow((void **)&asker->needs, &asker->max_needs, asker->num_needs + 1,
                          sizeof(struct plugin *));
    if (!is_cycle && !is_known && status == TN_OK)
        asker->needs[asker->num_needs++] = provider;
    pthread_mutex_unlock(&set->lock);
    if (is_cycle)
        return fail(TN_ERR_REFUSED,
                    "plugin %s asks for the interface '%s' of plugin %s, which needs %s "
                    "itself: one of them has to do without the other",
                    asker->manifest.id, interface, provider->manifest.id,
                    asker->manifest.id);
    return status;
}

void plugin_drop_needs(struct plugin *asker)
{
    pthread_mutex_lock(&asker->set->lock);
    mem_free(asker->needs);
    asker->needs = NULL;
    asker->num_needs = asker->max_needs = 0;
    pthread_mutex_unlock(&asker->set->lock);
}
