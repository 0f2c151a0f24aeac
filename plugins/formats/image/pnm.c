// SPDX-License-Identifier: MIT
// Netpbm's images of bytes: PPM (P6, colours) and PGM (P5, grey). The header is the magic,
// width, height and the greatest value as numbers in ASCII, white space and comments
// between them, and one byte of white space; then the rows.
#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <tenon/provider.h>
#include "image.h"

#define MOST_HEADER 4096

struct pnm_header {
    char text[MOST_HEADER + 1];
    uint64_t at, size; // bytes read, bytes in all
    uint64_t width, height;
    int is_grey;
};

// Skips white space and comments; gives a number of at most seven digits. 0: there is none.
static int take_number(struct pnm_header *h, uint64_t *out)
{
    while (h->at < h->size &&
           (isspace((unsigned char)h->text[h->at]) || h->text[h->at] == '#'))
        h->at += h->text[h->at] == '#' ? strcspn(h->text + h->at, "\r\n") : 1;
    uint64_t digits = 0, number = 0;
    for (; isdigit((unsigned char)h->text[h->at]) && digits < 8; h->at++, digits++)
        number = 10 * number + (uint64_t)(h->text[h->at] - '0');
    *out = number;
    return digits > 0 && digits < 8;
}

static tn_status pnm_header_read(const tn_host *host, const tn_format_source *source,
                                 struct pnm_header *h)
{
    uint64_t most = 0;
    memset(h, 0, sizeof(*h));
    h->size = source->size < MOST_HEADER ? source->size : MOST_HEADER;
    tn_status status = source->read(source, 0, h->text, h->size);
    if (status != TN_OK)
        return status;
    h->at = 2;
    h->is_grey = h->text[1] == '5';
    int fits = h->text[0] == 'P' && (h->text[1] == '6' || h->is_grey) &&
               take_number(h, &h->width) && take_number(h, &h->height) &&
               take_number(h, &most) && h->at < h->size &&
               isspace((unsigned char)h->text[h->at++]);
    if (!fits || most != 255)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: expected P6 or P5, the width, the height and 255",
                          source->name);
    return TN_OK;
}

static tn_status pnm_list(const tn_host *host, const tn_format_source *source,
                          const tn_format_content **out_content)
{
    struct pnm_header h;
    tn_status status = pnm_header_read(host, source, &h);
    if (status == TN_OK)
        status =
            image_list(host, source, h.height, h.width, h.is_grey ? 0 : h.at, out_content);
    if (status != TN_OK)
        return status;
    uint64_t needed = h.height * h.width * (h.is_grey ? 1 : IMAGE_CHANNELS);
    if (source->size - h.at >= needed)
        return TN_OK;
    image_close(host, *out_content);
    return host->fail(host, TN_ERR_REFUSED,
                      "%s: %" PRIu64 " bytes of pixels, expected %" PRIu64, source->name,
                      source->size - h.at, needed);
}

// Grey becomes three equal colours.
static tn_status pnm_read(const tn_host *host, const tn_format_source *source,
                          const tn_format_content *content, uint64_t index, void *data)
{
    struct pnm_header h;
    uint8_t *out = data;
    (void)content, (void)index;
    tn_status status = pnm_header_read(host, source, &h);
    uint64_t count = h.height * h.width;
    uint8_t *grey = out + 2 * count; // the last third, read before it is overwritten
    if (status == TN_OK)
        status = source->read(source, h.at, grey, count);
    for (uint64_t i = 0; status == TN_OK && i < count; i++) {
        uint8_t value = grey[i];
        out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = value;
    }
    return status;
}

static const tn_format format = {
    .struct_size = sizeof(format),
    .flags = TN_FORMAT_SINGLE,
    .list = pnm_list,
    .close = image_close,
    .read = pnm_read,
};

static const tn_selector selectors[] = {
    {TN_IFACE_FORMAT, "extension", "ppm"},
    {TN_IFACE_FORMAT, "extension", "pgm"},
    {TN_IFACE_FORMAT, "extension", "pnm"},
    {TN_IFACE_FORMAT, TN_SELECT_MAGIC, "50360a"},
    {TN_IFACE_FORMAT, TN_SELECT_MAGIC, "50350a"},
};

TN_PROVIDER("org.tenon.pnm", "0.1.0", "Tenon", TN_IFACE_FORMAT, format, selectors);
