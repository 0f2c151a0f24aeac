// SPDX-License-Identifier: MIT
// Powers of square matrices, by repeated squaring: matrix_power.
#include "pack.h"

static const tn_input_info function_inputs[] = {
    {"a", "square matrices", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};

// --- matrix_power -----------------------------------------------------------------------

typedef struct {
    int64_t n;
} matrix_power_attrs;

static const tn_attr_field matrix_power_fields[] = {
    TN_REQUIRED_FIELD(matrix_power_attrs, n, TN_ATTR_I64,
                      "how many factors; below 0: of the inverse"),
};

DECOMPOSE(matrix_power)
{
    const matrix_power_attrs *attrs = rule->attrs;
    tn_array *a = rule->inputs[0], *power = NULL;
    const tn_type given = *build->type(a), *type;
    uint64_t left = attrs->n < 0 ? ~(uint64_t)attrs->n + 1 : (uint64_t)attrs->n;
    tn_status status = check_square(build->host, "a", &given);
    if (status)
        return status;
    if (attrs->n < 0) {
        bool is_known = tn_dtype_in(given.dtype, TN_FLOAT_DTYPES | TN_COMPLEX_DTYPES);
        const tn_type wide = {.dtype = is_known ? tn_dtype_computed(given.dtype) : TN_F64};
        a = build->op(build, "linalg.inv/1", TN_IN(in_dtype(build, a, &wide)), TN_NO_ATTRS);
        a = is_known ? in_dtype(build, a, &given) : a;
    }
    type = build->type(a);
    if (!type)
        return TN_ERR_ARGUMENT;
    for (tn_array *square = a; left > 0; left >>= 1) {
        if (left & 1)
            power = power ? product(build, power, square) : square;
        if (left > 1)
            square = product(build, square, square);
    }
    if (!power) {
        tn_ints shape = tn_extents(build, a);
        tn_array *one = identity(build, type->extent[type->rank - 1], type->dtype);
        power =
            build->op(build, "base.broadcast_to/1", TN_IN(one), tn_attrs("shape", &shape));
    }
    outputs[0] = power;
    return built(outputs[0]);
}

COMPOSITE(matrix_power, "Products of a matrix with itself.", TN_INPUTS(function_inputs),
          .attrs = TN_ATTR_TABLE(matrix_power_attrs, matrix_power_fields));
