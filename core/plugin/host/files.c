// SPDX-License-Identifier: MIT
// The service TN_HOST_FILES: a plugin reads the files of its own directory, checked against
// plugin.json.
#include "host.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "../../base/fail.h"
#include "../find/names.h"
#include "../find/trust.h"

// The manifest of the version that is loaded.
static const struct manifest *manifest_of(const struct plugin *plugin)
{
    return plugin->newer ? &plugin->newer->manifest : &plugin->manifest;
}

const struct manifest_file *plugin_file(const struct plugin *plugin, const char *name)
{
    const struct manifest *manifest = manifest_of(plugin);
    for (uint32_t i = 0; i < manifest->num_files; i++)
        if (strcmp(manifest->files[i].name, name) == 0)
            return &manifest->files[i];
    return NULL;
}

static const char *files_directory(const tn_host *host)
{
    return host->self->plugin->directory;
}

tn_status plugin_read_file(const struct plugin *plugin, const char *name,
                           const struct manifest_file *listed, char **out_data,
                           size_t *out_size)
{
    const char *path = plugin->directory;
    struct reason reason;
    int directory = -1;
    tn_status status = trust_open_directory(AT_FDCWD, path, path, &directory, &reason);
    if (status != TN_OK)
        return status;
    if (listed)
        status = trust_read_listed(&plugin->set->trust, directory, path, listed, out_data,
                                   out_size, &reason);
    else
        status = trust_read_file(directory, name, INT64_MAX - 2, path, out_data, out_size,
                                 &reason);
    close(directory);
    return status;
}

static tn_status files_read(const tn_host *host, const char *name, void **out_data,
                            uint64_t *out_size)
{
    const struct plugin *plugin = host->self->plugin;
    const struct manifest_file *file = plugin_file(plugin, name);
    char *data = NULL;
    size_t size = 0;
    bool is_described = plugin->state == PLUGIN_DESCRIBED && file_name_valid(name);
    tn_status status = TN_ERR_NOT_FOUND;
    if (file || is_described)
        status = plugin_read_file(plugin, name, file, &data, &size);
    if (status == TN_ERR_NOT_FOUND)
        return fail(status, "'%s' is not among the files of %s%s", name, plugin->directory,
                    is_described ? "" : "/" MANIFEST_FILE);
    if (status != TN_OK)
        return status;
    *out_data = data;
    *out_size = size;
    return TN_OK;
}

const tn_host_files *files_service(void)
{
    static const tn_host_files service = {
        .struct_size = sizeof(service), .directory = files_directory, .read = files_read};
    return &service;
}
