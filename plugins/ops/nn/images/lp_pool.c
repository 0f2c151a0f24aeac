// SPDX-License-Identifier: MIT
// lp_pool of 1 to 3 dimensions: roots of sums of powers, by average pooling.
#include "images.h"
#include <tenon/ops/rules.h>

typedef struct {
    tn_ints window, stride;
    double norm_type;
    int64_t ceil_mode, axis;
} lp_attrs;
static const tn_attr_field lp_fields[] = {
    TN_REQUIRED_FIELD(lp_attrs, norm_type, TN_ATTR_F64, "power of the norm"),
    TN_REQUIRED_FIELD(lp_attrs, window, TN_ATTR_INTS,
                      "extents of a window, one for all or one an axis"),
    TN_INTS_FIELD(lp_attrs, stride, "distance of windows; not given: the window"),
    TN_BOOL_FIELD(lp_attrs, ceil_mode, 0, "windows may go beyond x"),
    AXIS_FIELD(lp_attrs),
};
static const tn_input_info lp_inputs[] = {
    {"x", "N, ..., C: channels last, or axis 1", 0, TN_FLOAT_DTYPES},
};

static tn_status lp_pool(const tn_build *build, const tn_rule *rule, int32_t n,
                         tn_array **outputs)
{
    static const char *const pools[] = {"nn.avg_pool1d/1", "nn.avg_pool2d/1",
                                        "nn.avg_pool3d/1"};
    const lp_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_dtype dtype = dtype_of(build, x), wide = tn_dtype_computed(dtype);
    int64_t window[MOST_SPATIAL];
    double elements = 1, p = attrs->norm_type;
    if (!(p > 0) || isinf(p))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "norm_type is %g, expected a finite number above 0", p);
    tn_status status = read_numbers(build->host, "window", &attrs->window, n, 0, 1, window);
    if (status)
        return status;
    for (int32_t i = 0; i < n; i++)
        elements *= (double)window[i];
    if (wide != dtype)
        x = cast(build, x, wide);
    if (p != 1)
        x = build->expr(build, p == 2 ? "x -> x * x" : "x -> pow(x, p)", TN_IN(x),
                        p == 2 ? TN_NO_ATTRS : tn_attrs("p", p));
    const tn_attr items[] = {
        TN_ATTR_INIT("window", &attrs->window),
        {.name = "ceil_mode", .kind = TN_ATTR_I64, .i = attrs->ceil_mode},
        {.name = "axis", .kind = TN_ATTR_I64, .i = attrs->axis},
        TN_ATTR_INIT("stride", &attrs->stride),
    };
    x = build->op(build, pools[n - 1], TN_IN(x),
                  TN_ATTR_LIST(items, attrs->stride.given ? 4 : 3));
    x = build->expr(build,
                    p == 1   ? "x -> x * n"
                    : p == 2 ? "x -> s = x * n; s == 0 ? 0 : sqrt(s == 0 ? 1 : s)"
                             : "x -> s = x * n; s == 0 ? 0 : pow(s == 0 ? 1 : s, q)",
                    TN_IN(x),
                    p == 1 || p == 2 ? tn_attrs("n", elements)
                                     : tn_attrs("n", elements, "q", 1 / p));
    outputs[0] = wide != dtype ? cast(build, x, dtype) : x;
    return built(outputs[0]);
}

#define LP_POOL(name, n)                                                                   \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return lp_pool(build, rule, n, outputs);                                           \
    }                                                                                      \
    COMPOSITE(name, #name "/1", "The root of the sum of powers of each window.",           \
              TN_INPUTS(lp_inputs), .attrs = TN_ATTR_TABLE(lp_attrs, lp_fields))
LP_POOL(lp_pool1d, 1);
LP_POOL(lp_pool2d, 2);
LP_POOL(lp_pool3d, 3);
