// SPDX-License-Identifier: MIT
// PNG, read with libpng: all kinds become bytes of red, green and blue. Opacity and gamma
// are left out, as those programs do whose pixels models were trained on.
#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <tenon/provider.h>
#include "image.h"

// Deflate expands a byte to at most so many: a smaller file is damaged, whatever size it
// states, and nothing is allocated for it.
#define MOST_EXPANSION 1032

struct png_reading {
    const tn_host *host;
    const tn_format_source *source;
    uint64_t at;
    tn_status status; // of the source, or TN_ERR_REFUSED where libpng failed
    png_structp png;
    png_infop info;
};

// --- libpng's calls --------------------------------------------------------------------

// Leaves libpng by longjmp, to the setjmp of the function that called it.
static void png_failed(png_structp png, png_const_charp text)
{
    struct png_reading *r = png_get_error_ptr(png);
    if (r->status == TN_OK)
        r->status = r->host->fail(r->host, TN_ERR_REFUSED, "%s: damaged PNG: %s",
                                  r->source->name, text);
    png_longjmp(png, 1);
}

static void png_warned(png_structp png, png_const_charp text)
{
    (void)png, (void)text; // warnings concern chunks that are not read
}

static void png_reading_bytes(png_structp png, png_bytep out, size_t size)
{
    struct png_reading *r = png_get_io_ptr(png);
    if (r->source->size - r->at < size)
        png_error(png, "it ends too early");
    r->status = r->source->read(r->source, r->at, out, size);
    if (r->status != TN_OK)
        png_error(png, "it cannot be read");
    r->at += size;
}

static void png_reading_finish(struct png_reading *r)
{
    png_destroy_read_struct(&r->png, &r->info, NULL);
}

static tn_status png_reading_begin(struct png_reading *r, const tn_host *host,
                                   const tn_format_source *source)
{
    *r = (struct png_reading){.host = host, .source = source};
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, png_failed, png_warned);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    if (!r->info) {
        png_reading_finish(r);
        return host->fail(host, TN_ERR_MEMORY, "%s: out of memory", source->name);
    }
    png_set_read_fn(r->png, r, png_reading_bytes);
    png_set_user_limits(r->png, IMAGE_MOST_SIDE, IMAGE_MOST_SIDE);
    png_set_chunk_malloc_max(r->png, 1 << 24); // of texts and profiles
    png_set_chunk_cache_max(r->png, 64);
    return TN_OK;
}

// --- the format ------------------------------------------------------------------------

// Reads the header, and sets what rows become.
static tn_status png_reading_header(struct png_reading *r)
{
    if (setjmp(png_jmpbuf(r->png)))
        return r->status;
    png_read_info(r->png, r->info);
    png_set_expand(r->png);
    png_set_scale_16(r->png);
    png_set_gray_to_rgb(r->png);
    png_set_strip_alpha(r->png);
    return TN_OK;
}

static tn_status png_list(const tn_host *host, const tn_format_source *source,
                          const tn_format_content **out_content)
{
    struct png_reading r;
    tn_status status = png_reading_begin(&r, host, source);
    if (status != TN_OK)
        return status;
    status = png_reading_header(&r);
    if (status == TN_OK) {
        uint64_t height = png_get_image_height(r.png, r.info);
        uint64_t bytes = png_get_rowbytes(r.png, r.info) * height;
        status = bytes / MOST_EXPANSION > source->size
                     ? host->fail(host, TN_ERR_REFUSED,
                                  "%s: damaged PNG: %" PRIu64 " bytes cannot hold %" PRIu64
                                  " of pixels",
                                  source->name, source->size, bytes)
                     : image_list(host, source, height, png_get_image_width(r.png, r.info),
                                  0, out_content);
    }
    png_reading_finish(&r);
    return status;
}

static tn_status png_reading_rows(struct png_reading *r, png_bytepp rows)
{
    if (setjmp(png_jmpbuf(r->png)))
        return r->status;
    png_read_image(r->png, rows);
    png_read_end(r->png, NULL);
    return TN_OK;
}

// Checks a row's size, as the file may have changed since it was listed.
static tn_status png_reading_check_row(struct png_reading *r, const tn_type *type)
{
    if (setjmp(png_jmpbuf(r->png)))
        return r->status;
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    if (png_get_rowbytes(r->png, r->info) == (size_t)type->extent[1] * IMAGE_CHANNELS &&
        png_get_image_height(r->png, r->info) == (png_uint_32)type->extent[0])
        return TN_OK;
    return r->host->fail(r->host, TN_ERR_REFUSED, "%s: damaged PNG: its size has changed",
                         r->source->name);
}

static tn_status png_read_pixels(const tn_host *host, const tn_format_source *source,
                                 const tn_format_content *content, uint64_t index,
                                 void *data)
{
    const tn_type *type = &content->arrays[index].type;
    uint64_t height = (uint64_t)type->extent[0];
    struct png_reading r;
    tn_status status = png_reading_begin(&r, host, source);
    if (status != TN_OK)
        return status;
    png_bytepp rows = host->alloc(host, height * sizeof(*rows), 0);
    for (uint64_t i = 0; rows && i < height; i++)
        rows[i] = (png_bytep)data + i * (uint64_t)type->extent[1] * IMAGE_CHANNELS;
    status = rows ? png_reading_header(&r) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = png_reading_check_row(&r, type);
    if (status == TN_OK)
        status = png_reading_rows(&r, rows);
    host->free(host, rows);
    png_reading_finish(&r);
    return status;
}

static const tn_format format = {
    .struct_size = sizeof(format),
    .flags = TN_FORMAT_SINGLE,
    .list = png_list,
    .close = image_close,
    .read = png_read_pixels,
};

static const tn_selector selectors[] = {
    {TN_IFACE_FORMAT, "extension", "png"},
    {TN_IFACE_FORMAT, TN_SELECT_MAGIC, "89504e470d0a1a0a"},
};

TN_PROVIDER("org.tenon.png", "0.1.0", "Tenon", TN_IFACE_FORMAT, format, selectors);
