// SPDX-License-Identifier: MIT
// Plugins of one interface that are found by selectors, as formats of files, tokenizers and
// architectures of language models are: the symbol, query and the list of selectors. C
// only.
//
//   #include <tenon/provider.h>
//
//   static const tn_format format = {.struct_size = sizeof(format), ...};
//   static const tn_selector selectors[] = {{TN_IFACE_FORMAT, "extension", "acme"}};
//   TN_PROVIDER("com.acme.format", "1.0.0", "Acme", TN_IFACE_FORMAT, format, selectors);
//
// A plugin that needs init, deinit or further interfaces writes query and TN_PLUGIN of
// <tenon/plugin.h> out.
//
// Threads. What the macro writes is constant, and its query may be called from any thread.
#ifndef TENON_PROVIDER_H
#define TENON_PROVIDER_H

#include <stddef.h>
#include <tenon/plugin.h>

#ifndef __cplusplus

// Defines the plugin, once a shared object: its id, version and vendor, as TN_PLUGIN takes
// them, the interface's id, and two names of objects at file scope: the interface's table,
// and an array of selectors.
#define TN_PROVIDER(plugin_id, plugin_version, plugin_vendor, interface_id, table,         \
                    selectors)                                                             \
    static const tn_selectors tn_provider_selectors_ = {                                   \
        .struct_size = sizeof(tn_selectors),                                               \
        .items = selectors,                                                                \
        .num_items = sizeof(selectors) / sizeof(selectors[0]),                             \
        .item_size = sizeof(selectors[0])};                                                \
    static const void *tn_provider_query_(const char *asked)                               \
    {                                                                                      \
        if (__builtin_strcmp(asked, TN_IFACE_SELECTORS) == 0)                              \
            return &tn_provider_selectors_;                                                \
        return __builtin_strcmp(asked, interface_id) == 0 ? &table : NULL;                 \
    }                                                                                      \
    TN_PLUGIN(plugin_id, plugin_version, plugin_vendor, .query = tn_provider_query_)

#endif // __cplusplus

#endif // TENON_PROVIDER_H
