// SPDX-License-Identifier: MIT
// The content of a file that is an image.
#include "image.h"
#include <inttypes.h>
#include <string.h>

struct image_content {
    tn_format_content content; // first: the image's struct is found from it by a cast
    tn_format_array array;
};

tn_status image_list(const tn_host *host, const tn_format_source *source, uint64_t height,
                     uint64_t width, uint64_t offset, const tn_format_content **out_content)
{
    if (height < 1 || width < 1 || height > IMAGE_MOST_SIDE || width > IMAGE_MOST_SIDE ||
        height * width > (uint64_t)IMAGE_MOST_PIXELS)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: an image of %" PRIu64 " x %" PRIu64
                          " pixels, expected 1 to %" PRId64 ", and at most %d a side",
                          source->name, width, height, IMAGE_MOST_PIXELS, IMAGE_MOST_SIDE);
    struct image_content *mine = host->alloc(host, sizeof(*mine), 0);
    if (!mine)
        return TN_ERR_MEMORY;
    memset(mine, 0, sizeof(*mine));
    mine->array = (tn_format_array){
        .name = "",
        .type = {.dtype = TN_U8,
                 .rank = 3,
                 .extent = {(int64_t)height, (int64_t)width, IMAGE_CHANNELS}},
        .offset = offset,
        .size = offset ? height * width * IMAGE_CHANNELS : source->size,
        .flags = offset ? TN_FORMAT_IN_PLACE : 0};
    mine->content = (tn_format_content){.struct_size = sizeof(mine->content),
                                        .arrays = &mine->array,
                                        .num_arrays = 1,
                                        .array_size = sizeof(mine->array),
                                        .text_size = sizeof(tn_format_text),
                                        .metadata_size = sizeof(tn_metadata)};
    *out_content = &mine->content;
    return TN_OK;
}

void image_close(const tn_host *host, const tn_format_content *content)
{
    host->free(host, (void *)(uintptr_t)content);
}
