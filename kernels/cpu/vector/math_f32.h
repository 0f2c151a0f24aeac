// SPDX-License-Identifier: MIT
// Functions of f32.
#define v_exp expf
#define v_exp2 exp2f
#define v_expm1 expm1f
#define v_log logf
#define v_log2 log2f
#define v_log10 log10f
#define v_log1p log1pf
#define v_tanh tanhf
#define v_erf erff
