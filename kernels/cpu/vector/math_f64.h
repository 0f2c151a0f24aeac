// SPDX-License-Identifier: MIT
// Functions of f64.
#define v_exp exp
#define v_exp2 exp2
#define v_expm1 expm1
#define v_log log
#define v_log2 log2
#define v_log10 log10
#define v_log1p log1p
#define v_tanh tanh
#define v_erf erf
