// SPDX-License-Identifier: MIT
// How near the functions of map loops are held to what is defined, in units of the last
// place.
#ifndef TESTS_KERNELS_CPU_REF_MAP_BOUNDS_H
#define TESTS_KERNELS_CPU_REF_MAP_BOUNDS_H

#include <math.h>

#include "cpu/elementwise/map.h"
#include "erfinvl.h"

// Arithmetic is rounded once, as defined. Functions of f32 are held against f64, those of
// f64 against long double, or, where the C library's own are called, against themselves.
static const struct {
    int32_t op;
    double f32;
} bounds[] = {
    {TN_EXPR_EXP, 1},      {TN_EXPR_EXP2, 1},  {TN_EXPR_EXPM1, 1}, {TN_EXPR_LOG, 1},
    {TN_EXPR_LOG2, 1},     {TN_EXPR_LOG10, 1}, {TN_EXPR_LOG1P, 1}, {TN_EXPR_SIN, 1.5},
    {TN_EXPR_COS, 1.5},    {TN_EXPR_TAN, 1},   {TN_EXPR_ASIN, 1},  {TN_EXPR_ACOS, 1},
    {TN_EXPR_ATAN, 1},     {TN_EXPR_SINH, 1},  {TN_EXPR_COSH, 1},  {TN_EXPR_TANH, 1.5},
    {TN_EXPR_ERF, 1.5},    {TN_EXPR_ASINH, 1}, {TN_EXPR_ACOSH, 1}, {TN_EXPR_ATANH, 1},
    {TN_EXPR_ERFINV, 1.5}, {TN_EXPR_POW, 1},   {TN_EXPR_ATAN2, 1}, {CPU_OP_SUB_THEN_EXP, 1},
    {CPU_OP_SIGMOID, 3.2}, // 1.50, beside parts that round to 1.7
};

// Functions of f64 that have loops of their own, and their bounds.
typedef long double wide_fn(long double);
static long double wide_sigmoid(long double x)
{
    return x > 69.5L ? 1 : 1 / (1 + expl(-x));
}
static const struct {
    int32_t op;
    double f64;
    wide_fn *wide;
    long double (*wide2)(long double, long double); // of two operands
} wide_bounds[] = {
    // clang-format off
    {TN_EXPR_EXP, 1.2, expl}, {TN_EXPR_EXP2, 1.2, exp2l}, {TN_EXPR_EXPM1, 1.2, expm1l},
    {TN_EXPR_LOG, 1, logl}, {TN_EXPR_LOG2, 1, log2l}, {TN_EXPR_LOG10, 1, log10l},
    {TN_EXPR_LOG1P, 1, log1pl}, {TN_EXPR_SIN, 1, sinl}, {TN_EXPR_COS, 1, cosl},
    {TN_EXPR_TAN, 1, tanl}, {TN_EXPR_SINH, 1.5, sinhl}, {TN_EXPR_COSH, 1.2, coshl},
    {TN_EXPR_TANH, 1.2, tanhl}, {TN_EXPR_ASIN, 1.5, asinl}, {TN_EXPR_ACOS, 1.5, acosl},
    {TN_EXPR_ATAN, 1.5, atanl}, {TN_EXPR_ERF, 1.3, erfl}, {CPU_OP_SUB_THEN_EXP, 1.2, expl},
    {CPU_OP_SIGMOID, 1.5, wide_sigmoid}, {TN_EXPR_ATANH, 1.5, atanhl},
    {TN_EXPR_POW, 1.2, .wide2 = powl}, {TN_EXPR_ATAN2, 1.5, .wide2 = atan2l},
    {TN_EXPR_ERFINV, 1.5, erfinvl},
    // clang-format on
};

#endif // TESTS_KERNELS_CPU_REF_MAP_BOUNDS_H
