// SPDX-License-Identifier: MIT
// An op pack of one line.
#include <tenon/pack.h>

TN_EXPR_OP(axpby, "museum.axpby/1", (x, y), (alpha, 1, beta, 1), "alpha * x + beta * y");

TN_PACK("org.tenon.museum.expression", "1.0.0", "Tenon", TN_PRIMITIVES(&axpby));
