// SPDX-License-Identifier: MIT
// Operations on f16 and bf16, which MPI lacks: the functions that MPI calls for them.
#include <tenon/ops/reference.h>
#include "library.h"

static float halves_add(float a, float b)
{
    return a + b;
}

static float halves_multiply(float a, float b)
{
    return a * b;
}

static float halves_least(float a, float b)
{
    return a < b || a != a ? a : b;
}

static float halves_greatest(float a, float b)
{
    return a > b || a != a ? a : b;
}

// X(name, operation) for each of TN_COLLECTIVE_SUM ... MAXIMUM.
#define OPERATIONS(X, format)                                                              \
    X(format, halves_add)                                                                  \
    X(format, halves_multiply)                                                             \
    X(format, halves_least)                                                                \
    X(format, halves_greatest)
#define FUNCTION(format, operation)                                                        \
    static void format##_##operation(void *in, void *inout, int *count, handle *datatype)  \
    {                                                                                      \
        const uint16_t *a = in;                                                            \
        uint16_t *b = inout;                                                               \
        (void)datatype;                                                                    \
        for (int i = 0; i < *count; i++)                                                   \
            b[i] = tn_##format##_of_f32(                                                   \
                operation(tn_f32_of_##format(a[i]), tn_f32_of_##format(b[i])));            \
    }
OPERATIONS(FUNCTION, f16)
OPERATIONS(FUNCTION, bf16)
#undef FUNCTION

static reduce_function *const functions[2][NUM_OPERATIONS] = {
#define POINTER(format, operation) format##_##operation,
    {OPERATIONS(POINTER, f16)}, {OPERATIONS(POINTER, bf16)}
#undef POINTER
};

reduce_function *halves_function(bool is_bf16, int32_t operation)
{
    return functions[is_bf16][operation];
}

int halves_create(struct mpi_library *library)
{
    int code = 0;
    for (int i = 0; i < 2 && code == 0; i++)
        for (int k = 0; k < NUM_OPERATIONS && code == 0; k++)
            code = library->Op_create(functions[i][k], 1, &library->halves[i][k]);
    return code;
}
