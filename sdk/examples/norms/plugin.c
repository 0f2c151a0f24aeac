// SPDX-License-Identifier: MIT
// An op pack of nine lines: norms and a loss as expressions. sum, mean and max of one
// argument are those of a row, along the attribute `axis`; the host derives shapes, both
// derivatives, batching, and one launch for each device.
#include <tenon/pack.h>

TN_EXPR_OP(rms_norm, "acme.rms_norm/1", (x, w), (eps, 1e-5),
           "x * rsqrt(mean(x * x) + eps) * w");
TN_EXPR_OP(softmax, "acme.softmax/1", (x), "e = exp(x - max(x)); e / sum(e)");
TN_EXPR_OP(huber, "acme.huber/1", (x, y), (delta, 1),
           "d = abs(x - y); d <= delta ? d * d / 2 : delta * (d - delta / 2)");

TN_PACK("com.acme.norms", "1.0.0", "Acme", TN_PRIMITIVES(&rms_norm, &softmax, &huber));
