// SPDX-License-Identifier: MIT
// The table of cases. Images are channels last, filters O, kH, kW, C, on both sides.
#include "cases.h"

// clang-format off
const struct bench_case bench_cases[] = {
    {"machine", "copy f32 64M", "x:f32[67108864]", "copy(x)", "x.clone()"},
    {"machine", "f32 2048x2048x2048", "x:f32[2048,2048] w:f32[2048,2048]", "x @ w", .work = 2.0 * 2048 * 2048 * 2048, .where = ON_CPU},
    {"machine", "bf16 2048x2048x2048", "x:bf16[2048,2048] w:bf16[2048,2048]", "x @ w", .work = 2.0 * 2048 * 2048 * 2048, .where = ON_CPU},
    {"machine", "f32 8192x8192x8192", "x:f32[8192,8192] w:f32[8192,8192]", "x @ w", .work = 2.0 * 8192 * 8192 * 8192, .where = ON_GPU},
    {"machine", "f16 8192x8192x8192", "x:f16[8192,8192] w:f16[8192,8192]", "x @ w", .work = 2.0 * 8192 * 8192 * 8192, .where = ON_GPU},
    {"products", "f32 1024x1024x1024", "x:f32[1024,1024] w:f32[1024,1024]", "x @ w", .work = 2.0 * 1024 * 1024 * 1024},
    {"products", "bf16 1024x1024x1024", "x:bf16[1024,1024] w:bf16[1024,1024]", "x @ w", .work = 2.0 * 1024 * 1024 * 1024},
    {"products", "f16 1024x1024x1024", "x:f16[1024,1024] w:f16[1024,1024]", "x @ w", .work = 2.0 * 1024 * 1024 * 1024},
    {"products", "f32 1x4096x4096", "x:f32[1,4096] w:f32[4096,4096]", "x @ w"},
    {"products", "f16 8x4096x4096", "x:f16[8,4096] w:f16[4096,4096]", "x @ w"},
    {"products", "f16 16x4096x4096", "x:f16[16,4096] w:f16[4096,4096]", "x @ w"},
    {"products", "bf16 16x4096x4096", "x:bf16[16,4096] w:bf16[4096,4096]", "x @ w"},
    {"products", "f16 4096x4096x16", "x:f16[4096,4096] w:f16[4096,16]", "x @ w"},
    {"products", "f16 4096x4096x4096", "x:f16[4096,4096] w:f16[4096,4096]", "x @ w", .work = 2.0 * 4096 * 4096 * 4096, .where = ON_GPU},
    {"convolutions", "3x3 f32 8x56x56x64 to 64", "x:f32[8,56,56,64] w:f32[64,3,3,64]", "conv2d(x, w, padding=1)",
     .work = 2.0 * 8 * 56 * 56 * 64 * 64 * 9},
    {"convolutions", "depthwise 3x3 f32 8x56x56x64", "x:f32[8,56,56,64] w:f32[64,3,3,1]", "conv2d(x, w, padding=1, groups=64)"},
    {"memory", "add f32 16M", "x:f32[16777216] y:f32[16777216]", "x + y"},
    {"memory", "concatenate f32 4 of 1024x1024", "x:f32[1024,1024]", "concatenate(x, x, x, x, axis=1)", "cat((x, x, x, x), 1)"},
    {"training", "MLP 64x784x128x10, loss and gradients",
     "x:f32[64,784] t:i64<10[64] w:f32~[784,128] b:f32[128] v:f32~[128,10] c:f32[10]",
     "loss = mean(cross_entropy(relu(x @ w + b) @ v + c, t)); loss, grad(loss, w, b, v, c)",
     "loss := F.cross_entropy(relu(x @ w + b) @ v + c, t), *grads(loss, w, b, v, c)"},
};
// clang-format on
const size_t num_bench_cases = COUNT(bench_cases);
