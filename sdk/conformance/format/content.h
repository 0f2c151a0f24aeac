// SPDX-License-Identifier: MIT
// Random contents of files for checks of formats.
#ifndef CONFORMANCE_FORMAT_CONTENT_H
#define CONFORMANCE_FORMAT_CONTENT_H

#include <tenon/format.h>
#include "../kit/kit.h"

enum { CONTENT_ARRAYS = 5, CONTENT_TEXTS = 2 };

struct drawn_content {
    tn_format_content table;
    tn_format_array arrays[CONTENT_ARRAYS];
    unsigned char *data[CONTENT_ARRAYS];
};

extern const tn_format_text content_texts[CONTENT_TEXTS];

// Arrays of any shapes and some texts, as far as the format's flags allow. `dtype` NONE:
// any.
void content_draw(struct kit *k, struct drawn_content *c, const tn_format *format,
                  tn_dtype dtype);
// One array of this type, and no texts; the second one has one axis.
void content_draw_one(struct kit *k, struct drawn_content *c, const tn_format *format,
                      const tn_type *type);
void content_draw_row(struct kit *k, struct drawn_content *c, const tn_format *format,
                      tn_dtype dtype, int64_t extent);
void content_free(struct drawn_content *c);

#endif // CONFORMANCE_FORMAT_CONTENT_H
