// SPDX-License-Identifier: MIT
// Applications of a primitive: operands and attributes that its infer accepts.
//
// Of a primitive nothing is known but its record, so shapes, dtypes and attributes are
// drawn at random from what is usual (equal shapes, broadcasts, matrices, images, data with
// indices), and what infer refuses is dropped. Where that finds nothing the author gives
// examples: a JSON file,
//
//     {"acme.fft/1": [{"inputs": [{"dtype": "f32", "shape": [8, 2], "low": 0, "high": 1},
//                                 null],
//                      "attrs": {"axes": [0], "inverse": true}, "tolerance": 1e-4}],
//      "acme.log/1": {"low": 0.1, "high": 4, "tolerance": 1e-5, "random": true,
//                     "examples": []}}
//
// `low` and `high` bound floating-point inputs; `tolerance` is the error that is declared,
// as a part of the largest magnitude; without `random` there are the examples alone.
#ifndef CONFORMANCE_SAMPLE_H
#define CONFORMANCE_SAMPLE_H

#include <tenon/tenon.h>
#include "array.h"
#include "fake_host.h"

enum { MAX_IN = 16, MAX_OUT = 8, MAX_ATTR_BYTES = 1024, MAX_FIELDS = 32, MAX_SAMPLES = 24 };

struct sample {
    const tn_primitive *primitive; // borrowed
    uint32_t num_inputs, num_outputs;
    tn_type types[MAX_IN]; // dtype NONE: not given
    tn_type outputs[MAX_OUT];
    uint64_t attrs[MAX_ATTR_BYTES / 8]; // the struct
    uint64_t given;                     // bit i: field i is not at its default
    double low, high;                   // of floating-point inputs
    double tolerance;                   // 0: the kit's own
    struct array in[MAX_IN];            // filled by sample_fill
};

// What samples are made with. `runtime` may be NULL: then expressions are not understood.
struct sample_maker {
    struct kit *kit;
    struct fake_host *host;
    tn_runtime *runtime;
};

// False: more inputs, outputs or attributes than samples have room for; nothing is drawn.
bool sample_fits(const tn_primitive *primitive);

// Outputs' types by infer, or by the core. TN_OK: s->outputs is filled.
tn_status sample_infer(struct sample_maker *maker, struct sample *s);

// Fills `out` with up to `max` accepted applications, examples first. Returns how many.
uint32_t samples_make(struct sample_maker *maker, const tn_primitive *primitive,
                      struct sample *out, uint32_t max);
// Draws one at random, accepted or not.
void sample_draw(struct kit *k, const tn_primitive *primitive, struct sample *out);

// How many inputs are given, counted to the last; whether one before that is not.
uint32_t sample_given(const struct sample *s);
bool sample_has_gap(const struct sample *s);

// Makes the inputs and fills them.
void sample_fill(struct kit *k, struct sample *s);
void sample_free(struct sample *s);

// The magnitude below which an output's error does not shrink with the output: that of the
// inputs, where there are so few elements that all may be small by cancellation; else 0.
double sample_magnitude(const struct sample *s, const struct array *output);

// How far results may be apart, as a part of the largest: some roundings of the output's
// dtype for each term that goes into an element. On devices whose functions are less exact
// than the C library's, at least 2e-3.
double sample_tolerance(const struct sample *s, bool is_exact);

// The attributes for tn_op; `items` has room for MAX_FIELDS.
tn_attr_list sample_attr_list(const struct sample *s, tn_attr *items);

// "f32[2,3] f32[3], alpha=2" for messages. Static memory.
const char *sample_text(const struct sample *s);

// How samples of a primitive are made.
struct sampling {
    double low, high, tolerance; // as in struct sample
    bool no_random;
};
void sampling_apply(const struct sampling *how, struct sample *s);

// Examples of a primitive in the kit's file (examples.c), and how others are made. Returns
// how many; fails the running check when the file is wrong.
uint32_t examples_read(struct kit *k, const tn_primitive *primitive, struct sample *out,
                       uint32_t max, struct sampling *how);
// Attributes at their defaults.
void sample_defaults(const tn_primitive *primitive, struct sample *s);

#endif // CONFORMANCE_SAMPLE_H
