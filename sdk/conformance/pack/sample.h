// SPDX-License-Identifier: MIT
// Applications of a primitive: operands and attributes that its infer accepts.
//
// The kit knows a primitive only by its record, so shapes, dtypes and attributes are drawn
// at random from usual combinations (equal shapes, broadcasts, matrices, images, data with
// indices), and combinations that infer refuses are dropped. Where this finds nothing, the
// author gives examples in a JSON file:
//
//     {"acme.fft/1": [{"inputs": [{"dtype": "f32", "shape": [8, 2], "low": 0, "high": 1},
//                                 null],
//                      "attrs": {"axes": [0], "inverse": true}, "tolerance": 1e-4}],
//      "acme.log/1": {"low": 0.1, "high": 4, "tolerance": 1e-5, "random": true,
//                     "examples": []},
//      "acme.inverse/1": {"diagonal": 8}}
//
// `low` and `high` bound floating-point inputs; `diagonal` is added where the indices along
// the last two axes are equal, so that matrices are far from singular; `tolerance` is the
// allowed error, relative to the largest magnitude; with `random` false only the examples
// are used.
#ifndef CONFORMANCE_PACK_SAMPLE_H
#define CONFORMANCE_PACK_SAMPLE_H

#include <tenon/tenon.h>
#include "../kit/array.h"
#include "../kit/fake_host.h"

enum { MAX_IN = 16, MAX_OUT = 8, MAX_ATTR_BYTES = 1024, MAX_FIELDS = 32, MAX_SAMPLES = 24 };

struct sample {
    const tn_primitive *primitive; // borrowed
    uint32_t num_inputs, num_outputs;
    tn_type types[MAX_IN]; // dtype NONE: not given
    // Runtime attributes: their scalars stand behind the inputs in `types` and `in`, and
    // their values here, by field; in `attrs` they are at their defaults.
    uint32_t num_runtime;
    double runtime[MAX_FIELDS];
    tn_type outputs[MAX_OUT];
    uint64_t attrs[MAX_ATTR_BYTES / 8]; // the primitive's attribute struct
    uint64_t given;                     // bit i: field i is not at its default
    double low, high;                   // of floating-point inputs
    double diagonal;                    // added to the diagonals of their matrices
    double tolerance;                   // 0: computed from dtype and shapes
    struct array in[MAX_IN];            // filled by sample_fill
};

// Needed to make samples. Without a runtime (NULL) expressions cannot be evaluated.
struct sample_maker {
    struct kit *kit;
    struct fake_host *host;
    tn_runtime *runtime;
};

// False when the primitive has more inputs, outputs or attributes than a sample can hold.
bool sample_fits(const tn_primitive *primitive);

// The inputs with the scalars of runtime attributes, as functions of a record see them.
static inline uint32_t sample_operands(const struct sample *s)
{
    return s->num_inputs + s->num_runtime;
}

// Where a field is in the attribute struct.
static inline void *sample_field(struct sample *s, const tn_attr_field *field)
{
    return (char *)s->attrs + field->offset;
}

// Sets the types of the outputs, by the primitive's infer or by the core (draw.c, as
// what draws below). TN_OK: s->outputs is filled.
tn_status sample_infer(struct sample_maker *maker, struct sample *s);

// How many of at most `most` applications --samples takes; at least one.
uint32_t samples_limit(const struct kit *k, uint32_t most);

// Fills `out` with up to `max` accepted applications, examples first. Returns how many.
uint32_t samples_make(struct sample_maker *maker, const tn_primitive *primitive,
                      struct sample *out, uint32_t max);
// As samples_make, with only applications that `accepts` takes. These may all have one
// dtype and rank: then they differ in an extent at least.
uint32_t samples_make_for(struct sample_maker *maker, const tn_primitive *primitive,
                          bool (*accepts)(const struct sample *s, const void *context),
                          const void *context, struct sample *out, uint32_t max);
// Draws one application, whether or not infer accepts it.
void sample_draw(struct kit *k, const tn_primitive *primitive, struct sample *out);

// The number of inputs up to the last one given; true when an earlier one is not given.
uint32_t sample_given(const struct sample *s);
bool sample_has_gap(const struct sample *s);

// Allocates the inputs and fills them with random numbers.
void sample_fill(struct kit *k, struct sample *s);
void sample_free(struct sample *s);

// The least magnitude that a tolerance is relative to: that of the inputs if the output has
// few elements, which may all be small by cancellation; else 0.
double sample_magnitude(const struct sample *s, const struct array *output);

// Tolerance relative to the largest magnitude: a few roundings of the output's dtype for
// each term that enters an element; on devices whose functions are less exact than the C
// library's, at least 2e-3.
double sample_tolerance(const struct sample *s, bool is_exact);

// Lists the given attributes for tn_op; `items` has room for MAX_FIELDS.
tn_attr_list sample_attr_list(const struct sample *s, tn_attr *items);

// Describes the sample as "f32[2,3] f32[3], alpha=2". Static memory.
const char *sample_text(const struct sample *s);

// How random samples of a primitive are drawn.
struct sampling {
    double low, high, diagonal, tolerance; // as in struct sample
    bool no_random;
};
void sampling_apply(const struct sampling *how, struct sample *s);

// Reads a primitive's examples from the kit's file (examples.c), and how random samples are
// drawn. Returns how many; fails the running check when the file is wrong.
uint32_t examples_read(struct kit *k, const tn_primitive *primitive, struct sample *out,
                       uint32_t max, struct sampling *how);
// Starts a sample without inputs, with attributes at their defaults.
void sample_defaults(const tn_primitive *primitive, struct sample *s);

#endif // CONFORMANCE_PACK_SAMPLE_H
