// SPDX-License-Identifier: MIT
// The plugin.
#include <tenon/provider.h>
#include "huggingface.h"

static void hf_close(const tn_host *host, const tn_format_content *content)
{
    struct hf *hf = (void *)(uintptr_t)content;
    for (struct hf_shard *s = hf->shards; s; s = s->next)
        safetensors_finish(&s->header);
    json_decref(hf->config);
    json_decref(hf->tokenizer);
    json_decref(hf->tokenizer_config);
    json_decref(hf->index);
    json_decref(hf->processor);
    json_decref(hf->generation);
    host->free(host, hf->chat);
    hf_free_all(hf);
    host->free(host, hf);
}

static tn_status hf_list(const tn_host *host, const tn_format_source *source,
                         const tn_format_content **out_content)
{
    if (!(source->flags & TN_FORMAT_FOLDER))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: expected a folder with config.json, and it is a file",
                          source->name);
    struct hf *hf = host->alloc(host, sizeof(*hf), 0);
    if (!hf)
        return TN_ERR_MEMORY;
    *hf = (struct hf){.host = host,
                      .folder = source,
                      .content = {.struct_size = sizeof(hf->content),
                                  .text_size = sizeof(tn_format_text),
                                  .metadata_size = sizeof(tn_metadata)}};
    tn_status status = hf_read_config(hf);
    if (status == TN_OK)
        status = hf_read_vision(hf);
    if (status == TN_OK)
        status = hf_read_weights(hf);
    if (status == TN_OK)
        status = hf_read_tokenizer(hf); // lists as many tokens as the embedding has rows
    if (status == TN_OK && hf->out_of_memory)
        status = host->fail(host, TN_ERR_MEMORY, "%s: out of memory for its metadata",
                            source->name);
    if (status != TN_OK) {
        hf_close(host, &hf->content);
        return status;
    }
    hf->content.metadata = hf->metadata;
    hf->content.num_metadata = hf->num_metadata;
    *out_content = &hf->content;
    return TN_OK;
}

static tn_status hf_read(const tn_host *host, const tn_format_source *source,
                         const tn_format_content *content, uint64_t index, void *data)
{
    const struct hf *hf = (const void *)content;
    (void)source;
    return hf_read_elements(host, &hf->arrays[index], data);
}

static const tn_format format = {
    .struct_size = sizeof(format),
    .list = hf_list,
    .close = hf_close,
    .read = hf_read,
};

static const tn_selector selectors[] = {{TN_IFACE_FORMAT, "folder", "config.json"}};

TN_PROVIDER("org.tenon.huggingface", "0.1.0", "Tenon", TN_IFACE_FORMAT, format, selectors);
