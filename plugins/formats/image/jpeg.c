// SPDX-License-Identifier: MIT
// JPEG, read with libjpeg-turbo: grey and colours become bytes of red, green and blue,
// turned as Exif says.
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/provider.h>
#include "image.h"
#include "orientation.h"
// jpeglib.h needs the headers above.
#include <jerror.h>
#include <jpeglib.h>

#define BUFFER 65536
// The most scans of a progressive image: a small file may repeat the same pixels.
#define MOST_SCANS 500

struct jpeg_reading {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr input;
    struct jpeg_progress_mgr progress;
    const tn_host *host;
    const tn_format_source *source;
    uint64_t at; // position of the buffer's end in the file
    int32_t orientation;
    tn_status status; // of the failure
    jmp_buf out;
    JOCTET buffer[BUFFER];
};

// --- the library's calls ---------------------------------------------------------------

static struct jpeg_reading *reading_of(j_common_ptr jpeg)
{
    return jpeg->client_data;
}

// Leaves libjpeg by a jump to the setjmp of the function that called it.
static void jpeg_leave(struct jpeg_reading *r, tn_status status, const char *text)
{
    if (r->status == TN_OK)
        r->status =
            r->host->fail(r->host, status, "%s: damaged JPEG: %s", r->source->name, text);
    longjmp(r->out, 1);
}

static void jpeg_failed(j_common_ptr jpeg)
{
    char text[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, text);
    jpeg_leave(reading_of(jpeg),
               jpeg->err->msg_code == JERR_OUT_OF_MEMORY ? TN_ERR_MEMORY : TN_ERR_REFUSED,
               text);
}

// A warning means that libjpeg made up pixels that the file lacks.
static void jpeg_told(j_common_ptr jpeg, int level)
{
    if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA)
        jpeg_failed(jpeg);
}

static void source_ignore(j_decompress_ptr jpeg)
{
    (void)jpeg;
}

static boolean source_fill(j_decompress_ptr jpeg)
{
    struct jpeg_reading *r = reading_of((j_common_ptr)jpeg);
    uint64_t left = r->source->size - r->at, size = left < BUFFER ? left : BUFFER;
    if (size == 0)
        jpeg_leave(r, TN_ERR_REFUSED, "it ends too early");
    r->status = r->source->read(r->source, r->at, r->buffer, size);
    if (r->status != TN_OK)
        longjmp(r->out, 1);
    r->at += size;
    r->input.next_input_byte = r->buffer;
    r->input.bytes_in_buffer = size;
    return TRUE;
}

static void source_skip(j_decompress_ptr jpeg, long count)
{
    struct jpeg_reading *r = reading_of((j_common_ptr)jpeg);
    while (count > 0 && (size_t)count > r->input.bytes_in_buffer) {
        count -= (long)r->input.bytes_in_buffer;
        source_fill(jpeg);
    }
    r->input.next_input_byte += count > 0 ? count : 0;
    r->input.bytes_in_buffer -= count > 0 ? (size_t)count : 0;
}

static void jpeg_progressed(j_common_ptr jpeg)
{
    if (((j_decompress_ptr)jpeg)->input_scan_number > MOST_SCANS)
        jpeg_leave(reading_of(jpeg), TN_ERR_REFUSED, "more than 500 scans");
}

static void jpeg_reading_finish(struct jpeg_reading *r)
{
    jpeg_destroy_decompress(&r->jpeg);
    r->host->free(r->host, r);
}

// --- the format ------------------------------------------------------------------------

static tn_status jpeg_reading_header(struct jpeg_reading *r)
{
    if (setjmp(r->out))
        return r->status;
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.src = &r->input;
    r->jpeg.progress = &r->progress;
    jpeg_save_markers(&r->jpeg, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&r->jpeg, TRUE);
    r->orientation = 1;
    for (jpeg_saved_marker_ptr m = r->jpeg.marker_list; m && r->orientation == 1;
         m = m->next)
        r->orientation = orientation_read(m->data, m->data_length);
    J_COLOR_SPACE space = r->jpeg.jpeg_color_space;
    if (space != JCS_GRAYSCALE && space != JCS_YCbCr && space != JCS_RGB)
        return r->host->fail(r->host, TN_ERR_UNSUPPORTED,
                             "%s: a JPEG of %d colours, expected grey or red, green and "
                             "blue",
                             r->source->name, r->jpeg.num_components);
    r->jpeg.out_color_space = JCS_RGB;
    return TN_OK;
}

// Gives a reading that has read the header.
static tn_status jpeg_reading_begin(const tn_host *host, const tn_format_source *source,
                                    struct jpeg_reading **out)
{
    struct jpeg_reading *r = host->alloc(host, sizeof(*r), 0);
    if (!r)
        return TN_ERR_MEMORY;
    memset(r, 0, sizeof(*r));
    r->host = host;
    r->source = source;
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->jpeg.client_data = r;
    r->errors.error_exit = jpeg_failed;
    r->errors.emit_message = jpeg_told;
    r->progress.progress_monitor = jpeg_progressed;
    r->input = (struct jpeg_source_mgr){.init_source = source_ignore,
                                        .fill_input_buffer = source_fill,
                                        .skip_input_data = source_skip,
                                        .resync_to_restart = jpeg_resync_to_restart,
                                        .term_source = source_ignore};
    tn_status status = jpeg_reading_header(r);
    if (status == TN_OK)
        *out = r;
    else
        jpeg_reading_finish(r);
    return status;
}

static tn_status jpeg_list(const tn_host *host, const tn_format_source *source,
                           const tn_format_content **out_content)
{
    struct jpeg_reading *r = NULL;
    tn_status status = jpeg_reading_begin(host, source, &r);
    if (status != TN_OK)
        return status;
    int32_t swaps = orientation_swaps(r->orientation);
    status = image_list(host, source, swaps ? r->jpeg.image_width : r->jpeg.image_height,
                        swaps ? r->jpeg.image_height : r->jpeg.image_width, 0, out_content);
    jpeg_reading_finish(r);
    return status;
}

// Reads `height` rows of `width` pixels, as they are stored.
static tn_status jpeg_reading_rows(struct jpeg_reading *r, int64_t height, int64_t width,
                                   JSAMPLE *out)
{
    if (setjmp(r->out))
        return r->status;
    jpeg_start_decompress(&r->jpeg);
    if (r->jpeg.output_height != (JDIMENSION)height ||
        r->jpeg.output_width != (JDIMENSION)width ||
        r->jpeg.output_components != IMAGE_CHANNELS)
        jpeg_leave(r, TN_ERR_REFUSED, "its size has changed");
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        JSAMPROW row =
            out + (uint64_t)r->jpeg.output_scanline * (uint64_t)width * IMAGE_CHANNELS;
        jpeg_read_scanlines(&r->jpeg, &row, 1);
    }
    jpeg_finish_decompress(&r->jpeg);
    return TN_OK;
}

static tn_status jpeg_read_pixels(const tn_host *host, const tn_format_source *source,
                                  const tn_format_content *content, uint64_t index,
                                  void *data)
{
    struct jpeg_reading *r = NULL;
    tn_status status = jpeg_reading_begin(host, source, &r);
    if (status != TN_OK)
        return status;
    const int64_t *extent = content->arrays[index].type.extent;
    int32_t swaps = orientation_swaps(r->orientation);
    int64_t height = extent[swaps], width = extent[!swaps];
    uint64_t size = (uint64_t)(height * width) * IMAGE_CHANNELS;
    JSAMPLE *stored = r->orientation == 1 ? data : host->alloc(host, size, 0);
    status = stored ? jpeg_reading_rows(r, height, width, stored) : TN_ERR_MEMORY;
    if (status == TN_OK && r->orientation != 1)
        orientation_apply(r->orientation, stored, height, width, data);
    if (r->orientation != 1)
        host->free(host, stored);
    jpeg_reading_finish(r);
    return status;
}

static const tn_format format = {
    .struct_size = sizeof(format),
    .flags = TN_FORMAT_SINGLE,
    .list = jpeg_list,
    .close = image_close,
    .read = jpeg_read_pixels,
};

static const tn_selector selectors[] = {
    {TN_IFACE_FORMAT, "extension", "jpg"},
    {TN_IFACE_FORMAT, "extension", "jpeg"},
    {TN_IFACE_FORMAT, TN_SELECT_MAGIC, "ffd8ff"},
};

TN_PROVIDER("org.tenon.jpeg", "0.1.0", "Tenon", TN_IFACE_FORMAT, format, selectors);
