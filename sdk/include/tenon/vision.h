// SPDX-License-Identifier: MIT
// Vision encoders: plugins that build the part of a language model that reads images, for
// the library of <tenon/lm_image.h>.
//
//   static const tn_vision vision = {.struct_size = sizeof(vision), .encoder = &encoder,
//                                    .facts = facts, .cut = cut, .write = write};
//   static const tn_selector selectors[] = {{TN_IFACE_VISION, "projector", "acme"}};
//
// A vision encoder turns a square of pixels, a tile, into rows that stand in a prompt as if
// they were embeddings of tokens. It is beside the model of the text, whose architecture
// does not know of it: <tenon/model.h>'s plugins stay as they are.
// plugins/models/idefics3.c is one, and docs/model-guide.md goes through it.
//
// The plugin says how an image is cut into tiles and which text stands around their rows,
// and builds the vision encoder's graph. Files of images, resizing, weights, plans and
// putting rows in their places are the library's.
//
// Metadata are untrusted, as <tenon/model.h> says.
//
// Threads. Every slot is [any]: several threads may call it at once, for one vision encoder
// too.
#ifndef TENON_VISION_H
#define TENON_VISION_H

#include <tenon/host.h>
#include <tenon/model.h>
#include <tenon/status.h>

// The id by which query() is asked for a tn_vision. Its kind of selector is "projector":
// values of the key "clip.projector_type".
#define TN_IFACE_VISION "tn.vision/1"

// Filters by which images are resized, on pixels of 8 bits; where an image becomes smaller,
// its filter is widened.
enum {
    TN_VISION_LANCZOS = 0, // of three lobes
    TN_VISION_BILINEAR = 1,
    TN_VISION_BICUBIC = 2, // a = -0.5
};

// Facts about a vision encoder that the library needs. Owned by the plugin, constant until
// it closes.
typedef struct tn_vision_facts {
    uint32_t struct_size; // sizeof(tn_vision_facts)
    uint32_t filter;      // TN_VISION_...
    int64_t tile;         // side of a tile, pixels: 1 to TN_VISION_MOST_TILE
    int64_t tokens;       // rows that a tile becomes
    double mean[3];       // what the network reads of a byte b of red, green or blue:
    double deviation[3];  // (b / 255 - mean) / deviation; above 0
    const char *mark;     // the token whose place a row takes, "<image>"; a prompt has one
                          // for each image
} tn_vision_facts;

// The most pixels of a tile's side, of the side of an image that was resized, and the most
// sizes of a cut.
#define TN_VISION_MOST_TILE 4096
#define TN_VISION_MOST_SIDE 65536
#define TN_VISION_SIZES 2

// How an image becomes tiles: it is resized to each of the sizes in turn, then cut into
// rows x columns tiles, row by row. The last tile, of every image, is all of it, resized.
typedef struct tn_vision_cut {
    uint32_t struct_size;             // sizeof(tn_vision_cut); set by the library
    uint32_t num_sizes;               // 0 .. TN_VISION_SIZES
    int64_t size[TN_VISION_SIZES][2]; // height, width; the last one is rows * tile and
                                      // columns * tile where there are rows
    int64_t rows, columns;            // 0, 0: the image is not cut
} tn_vision_cut;

// The interface of a vision encoder.
typedef struct tn_vision {
    uint32_t struct_size; // sizeof(tn_vision)
    uint32_t flags;       // 0

    // Dimensions, weights and graph. As of an architecture, but for this: its facts have
    // `layers` and `width`, that of the rows, and zeros; it has no caches, and `caches` may
    // be NULL. In `build`, step->input is a tile, f32 [3, tile, tile], and step->output
    // becomes f32 [tokens, width]; count, capacity, context and sequences are 1, and
    // positions NULL.
    const tn_model *encoder;

    // Facts that the library needs. [any]
    const tn_vision_facts *(*facts)(const tn_model_self *self);

    // How an image of this height and width, 1 or more, becomes tiles. Fills the members
    // behind out->struct_size, which begin as zeros. [any]
    tn_status (*cut)(const tn_host *host, const tn_model_self *self, int64_t height,
                     int64_t width, tn_vision_cut *out);

    // Writes the text that stands for an image of rows x columns tiles, with the mark once
    // for each row of its tiles' results. Writes at most `size` bytes, a zero byte
    // included, and sets *out_size to the text's bytes without it; `out` may be NULL. [any]
    tn_status (*write)(const tn_host *host, const tn_model_self *self, int64_t rows,
                       int64_t columns, char *out, uint64_t size, uint64_t *out_size);
} tn_vision;

#endif // TENON_VISION_H
