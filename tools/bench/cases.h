// SPDX-License-Identifier: MIT
// One table of what people run, measured on processors and on GPUs, beside PyTorch.
#ifndef TOOLS_BENCH_CASES_H
#define TOOLS_BENCH_CASES_H

#include <jansson.h>
#include "bench.h"
#include "lang/lang.h"

enum { CASE_MAX_INPUTS = 32, CASE_MAX_OUTPUTS = 32 };

// A case: the same work as an expression of `tenon eval` and as one of Python.
//
// Inputs are "x:f32[4,8] i:i64<100[4]": a name, a dtype, what the elements are like, the
// extents. Floats are from -1 to 1, with + from 0 to 1, with ~ a 32nd of the former;
// integers are below the number behind <. An extent {n}, in any text, is 4 times as much on
// a GPU, {{n}} 16 times.
struct bench_case {
    const char *group, *name;
    const char *inputs;
    const char *ours;
    const char *theirs; // with the functions of peers.py; NULL: the same text
    double work;        // operations of arithmetic; 0: only bytes are counted
    double allowed;     // difference over the greatest element; 0: by dtype, < 0: any
    enum { ON_BOTH, ON_CPU, ON_GPU } where;
    enum { GOAL_CPU = 1, GOAL_GPU = 2 } goal; // where the case is in the mean with a goal
    bool whole; // --quick keeps the extents, and on a GPU leaves the case out
};

extern const struct bench_case bench_cases[], bench_nn_cases[];
extern const size_t num_bench_cases, num_bench_nn_cases;

enum case_size {
    SIZE_CPU,
    SIZE_GPU,
    SIZE_QUICK // numbers from 48 on are divided by 16, so products of extents stay products
};

// A text of a case with its extents. free() it; NULL: no memory.
char *case_text(const char *text, enum case_size size);

struct case_input {
    char name[16];
    tn_type type;
    int below;   // integers
    float scale; // floats are scale * u + offset, with u from 0 to 1
    float offset;
};

// The inputs of a text; their number, or -1 where it cannot be read.
int case_inputs(const char *text, struct case_input *out);
// The array of input `index`, kept. NULL after a failure, which the scope has.
tn_array *case_array(tn_scope *scope, const struct case_input *input, int index);
// Tells the peer how to make the same array. A new reference.
json_t *case_told(const struct case_input *input);
double case_bytes(const tn_type *type);

#endif // TOOLS_BENCH_CASES_H
