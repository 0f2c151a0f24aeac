// SPDX-License-Identifier: MIT
// The conformance suite: every primitive on one backend, against plain loops.
//
// A check is one comparison; checks are gathered in tests, one a primitive and group, each
// a line of TAP. What a backend cannot do stands in exceptions.c with the reason; a listed
// check that passes is a failure, so that the list stays true.
#ifndef SUITE_H
#define SUITE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/reference.h>
#include <tenon/tenon.h>
#include "kit/numbers.h"

struct suite {
    tn_runtime *runtime;
    const char *backend;
    const char *only; // substring of the tests to run, or NULL
    bool is_cpu;      // exact in f64, to a few ulps
    bool is_software; // a processor that emulates a device
    bool flushes;     // subnormal numbers of f32 are 0 to it
    bool verbose;     // each check is told
    bool partial;     // what the backend refuses is no failure
    uint64_t seed;    // of the run
    uint64_t share;   // one in so many of NumPy's cases is checked, by the seed
    uint64_t random;  // state of the generator
    uint32_t tests, failed_tests;
    // Of the test that is running.
    char name[160];
    uint32_t checks, failures, excepted, unexpected, unsupported;
};

// --- tests (suite.c) --------------------------------------------------------------------

// Begins a test named by printf's format; false when it was not asked for. Reseeds the
// generator from the name, so that one test replays alone.
bool test_begin(struct suite *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void test_end(struct suite *s);
// Whether the primitive has graphs among its attributes, which no case can write:
// tests/graphs/transform/control.c tests these.
bool takes_graphs(const tn_primitive *record);
// A test that cannot run here, with the reason.
void test_skip(struct suite *s, const char *name, const char *reason);

// Counts a check, `failure` being NULL when it passed; says which by printf's format.
void check(struct suite *s, const char *failure, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Why check `name` cannot pass on this backend, or NULL.
const char *exception_of(const char *backend, const char *name);
// Why it may fail on some drivers, or NULL.
const char *driver_exception_of(const char *backend, const char *name);

uint64_t random_bits(struct suite *s);
double random_in(struct suite *s, double lo, double hi);

// --- arrays on the host (host_array.c) --------------------------------------------------

// An array on the host, contiguous. tensor.data is owned.
struct host_array {
    tn_tensor tensor;
    int64_t count;
};

struct host_array host_array_new(tn_dtype dtype, int32_t rank, const int64_t *extent);
void host_array_free(struct host_array *host);
tn_type host_array_type(const struct host_array *host);
// Uniform in [lo, hi]; whole numbers within the dtype's range for integers; 0 or 1 for
// bool.
void host_array_fill(struct suite *s, struct host_array *host, double lo, double hi);
double host_array_get(const struct host_array *host, int64_t i);

// How the elements lie on the device. The values are the same.
enum layout_kind { PLAIN, TRANSPOSED, STRIDED, REVERSED, REPEATED, NUM_LAYOUTS };
extern const char *const layout_names[NUM_LAYOUTS];
// For REPEATED the host array's first axis is made constant.
tn_array *host_array_upload(tn_scope *scope, struct host_array *host,
                            enum layout_kind kind);

// Reads an array to the host. False: failed, with the scope's error.
bool host_array_read(tn_scope *scope, tn_array *array, struct host_array *out);
// Whether the last host_array_read failed because no device at hand can do it: says so
// once.
bool read_was_unsupported(void);

// NULL when `got` is `want` to within absolute or relative error, else a message in a
// static buffer. Integers must be equal when both bounds are 0, and floats to the bit,
// signs of zeros included but for NaNs, when `relative` is below 0.
const char *host_array_compare(const struct host_array *got, const struct host_array *want,
                               double relative, double absolute);

// Reads `array`, compares it with `want`, counts the check; takes `want`.
void check_array(struct suite *s, tn_scope *scope, tn_array *array, struct host_array *want,
                 double tolerance, const char *what);

// --- groups -----------------------------------------------------------------------------

void elementwise_tests(struct suite *s);
void hostile_tests(struct suite *s);
void index_tests(struct suite *s);
void primitive_tests(struct suite *s);
void random_tests(struct suite *s);
void optimiser_tests(struct suite *s);
void error_tests(struct suite *s);
void gradient_tests(struct suite *s);
void batching_tests(struct suite *s);
void accuracy_tests(struct suite *s);
void empty_tests(struct suite *s);
void golden_tests(struct suite *s, const char *file);
// Every primitive of the packs must be met by one of the above.
void coverage_test(struct suite *s);
void cover(const char *primitive);

#endif // SUITE_H
