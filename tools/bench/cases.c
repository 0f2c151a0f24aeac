// SPDX-License-Identifier: MIT
// The table of cases. Images are channels last, filters O, kH, kW, C, on both sides.
#include "cases.h"

// clang-format off
#define BOTH (GOAL_CPU | GOAL_GPU)
// Product of m x k by k x n; of `b` pairs.
#define PRODUCT(dtype, m, k, n, ...) \
    {"products", dtype " " #m "x" #k " by " #k "x" #n, "x:" dtype "[" #m "," #k "] w:" dtype "[" #k "," #n "]", "x @ w", \
     .work = 2.0 * m * k * n, __VA_ARGS__}
#define PRODUCTS(dtype, b, m, k, n, ...) \
    {"products", dtype " " #b " of " #m "x" #k "x" #n, "x:" dtype "[" #b "," #m "," #k "] w:" dtype "[" #b "," #k "," #n "]", \
     "x @ w", .work = 2.0 * b * m * k * n, __VA_ARGS__}
#define MATRIX_VECTOR(dtype, m, k, ...) \
    {"products", dtype " " #m "x" #k " by a vector", "x:" dtype "[" #m "," #k "] w:" dtype "[" #k "]", "x @ w", \
     .work = 2.0 * m * k, __VA_ARGS__}
#define TRANSPOSED(dtype, m, k, n, ...) \
    {"products", dtype " " #m "x" #k " by the transpose of " #n "x" #k, "x:" dtype "[" #m "," #k "] w:" dtype "[" #n "," #k "]", \
     "x @ w.T", .work = 2.0 * m * k * n, __VA_ARGS__}
// Gradient of weights k x n of m rows.
#define OF_WEIGHTS(dtype, k, m, n, ...) \
    {"products", dtype " weights' gradient " #k "x" #m "x" #n, "x:" dtype "[" #m "," #k "] g:" dtype "[" #m "," #n "]", \
     "x.T @ g", .work = 2.0 * m * k * n, __VA_ARGS__}
// 96 products in a row, 12 times 8 weights.
#define ONE(i) "x = 0.86 * (x @ w[" #i "]); "
#define EIGHT ONE(0) ONE(1) ONE(2) ONE(3) ONE(4) ONE(5) ONE(6) ONE(7)
#define CHAIN(dtype, m, ...) \
    {"products", dtype " 96 in a row, " #m "x4096 by 4096x4096", "x:" dtype "[" #m ",4096] w:" dtype "~[8,4096,4096]", \
     EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT "x", "chain(x, w, 12)", \
     .work = 96 * 2.0 * m * 4096 * 4096, .allowed = 0.1, __VA_ARGS__}

// Images b x h x h of c channels, o filters of f x f.
#define CONV(dtype, b, h, c, o, f, attrs, each, ...) \
    {"convolutions", dtype " " #f "x" #f " of " #b "x" #h "x" #h "x" #c " to " #o " " attrs, \
     "x:" dtype "[" #b "," #h "," #h "," #c "] w:" dtype "[" #o "," #f "," #f "," #c "]", \
     "conv2d(x, w, " attrs ")", .work = 2.0 * b * h * h * c * o * f * f / each, __VA_ARGS__}
#define CONV_GRADIENTS(dtype, b, h, c, o, f, pad, ...) \
    {"convolutions", dtype " " #f "x" #f " of " #b "x" #h "x" #h "x" #c ", images' gradient", \
     "x:" dtype "[" #b "," #h "," #h "," #c "] w:" dtype "[" #o "," #f "," #f "," #c "] g:" dtype "[" #b "," #h "," #h "," #o "]", \
     "conv2d_input(g, w, padding=" #pad ", extent=[" #h "," #h "])", "conv2d_grad(g, x, w, 0, padding=" #pad ")", \
     .work = 2.0 * b * h * h * c * o * f * f, __VA_ARGS__}, \
    {"convolutions", dtype " " #f "x" #f " of " #b "x" #h "x" #h "x" #c ", filters' gradient", \
     "x:" dtype "[" #b "," #h "," #h "," #c "] w:" dtype "[" #o "," #f "," #f "," #c "] g:" dtype "[" #b "," #h "," #h "," #o "]", \
     "conv2d_weight(x, g, padding=" #pad ", extent=[" #f "," #f "])", "conv2d_grad(g, x, w, 1, padding=" #pad ")", \
     .work = 2.0 * b * h * h * c * o * f * f, __VA_ARGS__}

// Case of b matrices of n x n, x, and a, whose diagonal is greater than the rest.
#define DOMINANT(what, dtype, b, n, ours, theirs, ...) \
    {"linalg", what " " #dtype " " #b " of " #n "x" #n, "x:" #dtype "~[" #b "," #n "," #n "]", \
     "a = x + 4 * eye(" #n ", dtype=" #dtype "); " ours, "a = x + 4 * torch.eye(" #n ").to(x); " theirs, __VA_ARGS__}

// Rows of n numbers, complex and real.
#define FFT_ROWS(rows, n) \
    {"fourier", "fft complex64 " #rows "x" #n, "x:complex64[" #rows "," #n "]", "fft(x)", "torch.fft.fft(x)", .where = ON_CPU}, \
    {"fourier", "rfft f32 " #rows "x" #n, "x:f32[" #rows "," #n "]", "rfft(x)", "torch.fft.rfft(x)", .where = ON_CPU}

#define MATRIX "x:f32[{2048},{2048}]"
// A function of each element, of f32 in MATRIX; of two arrays.
#define SPECIAL(name, ours, theirs, ...) {"special functions", name " f32 {2048}x{2048}", MATRIX, ours, theirs, __VA_ARGS__}
#define POSITIVE(name, ours, theirs, ...) \
    {"special functions", name " f32 {2048}x{2048}", "x:f32+[{2048},{2048}]", ours, theirs, __VA_ARGS__}
#define PAIRED(name, ours, theirs, ...) \
    {"special functions", name " f32 {2048}x{2048}", MATRIX " y:f32[{2048},{2048}]", ours, theirs, __VA_ARGS__}
// Random numbers of a distribution, 2048 x 2048; not compared, as PyTorch draws other numbers.
#define DRAWN(name, ours, theirs) \
    {"random", name " {2048}x{2048}", "k:u32<1000[2]", "random." ours, theirs, .allowed = -1}
#define PADDED(mode, torchs) \
    {"borders", "pad f32 {2048}x{2048}, " mode, MATRIX, "pad(x, before=[1,1], after=[1,1], mode=" mode ")", torchs}
#define NORM_GRADIENTS(rows, width, ...) \
    {"training", "layer norm of " #rows "x" #width ", gradients", \
     "x:f32[" #rows "," #width "] w:f32[" #width "] b:f32[" #width "] g:f32[" #rows "," #width "]", \
     "y = layer_norm(x, w, b); y, grad(sum(y * g), x, w, b)", "y = layer_norm(x, w, b); y, vjp(y, g, x, w, b)", \
     .allowed = 1e-3, __VA_ARGS__}
#define SOFTMAX_GRADIENT(rows, width, ...) \
    {"training", "softmax of " #rows "x" #width ", gradient", "x:f32[" #rows "," #width "] g:f32[" #rows "," #width "]", \
     "y = softmax(x); y, grad(sum(y * g), x)", "y = softmax(x); y, vjp(y, g, x)", __VA_ARGS__}

#define QKV(dtype, b, h, g, l, s, d) \
    "q:" dtype "[" #b "," #h "," #l "," #d "] k:" dtype "[" #b "," #g "," #s "," #d "] v:" dtype "[" #b "," #g "," #s "," #d "]"
#define ATTENTION(dtype, what, causal, b, h, g, l, s, d, ...) \
    {"attention", dtype " " #b "x" #h "x" #l "x" #d " over " #s what, QKV(dtype, b, h, g, l, s, d), \
     "scaled_dot_product_attention(q, k, v, is_causal=" causal ")", .work = (sizeof(causal) == sizeof("true") ? 2.0 : 4.0) * b * h * l * s * d, __VA_ARGS__}
#define ATTENTION_GRADIENTS(dtype, b, h, g, l, d, ...) \
    {"attention", dtype " " #b "x" #h "x" #l "x" #d " causal, with gradients", QKV(dtype, b, h, g, l, l, d) " g:" dtype "[" #b "," #h "," #l "," #d "]", \
     "y = scaled_dot_product_attention(q, k, v, is_causal=true); y, grad(sum(y * g), q, k, v)", \
     "y = scaled_dot_product_attention(q, k, v, is_causal=True); y, vjp(y, g, q, k, v)", \
     .work = 7.0 * b * h * l * l * d, .allowed = 2e-2, __VA_ARGS__}

// Where two elements of a window are nearly equal, or one is near 0, rounding decides where
// the gradient goes. Elements depend on the position of an input: in this order the batch
// of 64 has no such elements within 5.7e-5 in the first pooling, 3.2e-4 behind it. Of the
// 1.6 million windows of a batch of 1024 some are within rounding, which may change its
// gradients by 2.8e-3.
#define LENET(batch, ...) \
    {"training", "LeNet-5, batch of " #batch ": loss and gradients", \
     "j:f32[10] e:f32~[400,120] h:f32[84] a:f32[6,5,5,1] d:f32[16] c:f32[16,5,5,6] i:f32~[84,10] " \
     "x:f32[" #batch ",28,28,1] t:i64<10[" #batch "] b:f32[6] g:f32~[120,84] f:f32[120]", \
     "y = max_pool2d(relu(conv2d(x, a, b, padding=2)), window=2); y = max_pool2d(relu(conv2d(y, c, d)), window=2); " \
     "y = relu(relu(reshape(y, shape=[-1,400]) @ e + f) @ g + h) @ i + j; " \
     "loss = mean(cross_entropy(y, t)); loss, grad(loss, a, b, c, d, e, f, g, h, i, j)", \
     .whole = true, __VA_ARGS__}

// A layer of a transformer, weights with the suffix `s`: x becomes its result; b texts of l tokens, h heads of d.
#define LAYER_WEIGHTS(dtype, s, width, inner) \
    " a" s ":" dtype "+[" #width "] b" s ":" dtype "[" #width "] c" s ":" dtype "+[" #width "] d" s ":" dtype "[" #width "]" \
    " q" s ":" dtype "~[" #width "," #width "] k" s ":" dtype "~[" #width "," #width "] v" s ":" dtype "~[" #width "," #width "]" \
    " p" s ":" dtype "~[" #width "," #width "] u" s ":" dtype "~[" #width "," #inner "] o" s ":" dtype "~[" #inner "," #width "]"
#define HEADS(w, b, l, h, d) "transpose(reshape(n @ " w ", shape=[" #b "," #l "," #h "," #d "]), axes=[0,2,1,3])"
#define LAYER(s, b, l, h, d, width) \
    "n = layer_norm(x, a" s ", b" s "); " \
    "m = scaled_dot_product_attention(" HEADS("q" s, b, l, h, d) ", " HEADS("k" s, b, l, h, d) ", " HEADS("v" s, b, l, h, d) ", is_causal=true); " \
    "x = x + reshape(transpose(m, axes=[0,2,1,3]), shape=[" #b "," #l "," #width "]) @ p" s "; " \
    "x = x + gelu(layer_norm(x, c" s ", d" s ") @ u" s ") @ o" s "; "
#define TRANSFORMER(dtype, b, l, h, d, width, inner, ...) \
    {"networks", dtype " transformer's layer of " #width ", " #b "x" #l " tokens", \
     "x:" dtype "[" #b "," #l "," #width "]" LAYER_WEIGHTS(dtype, "", width, inner), LAYER("", b, l, h, d, width) "x", \
     .work = 2.0 * b * l * (4.0 * width * width + 2.0 * width * inner + 2.0 * l * width), .allowed = 3e-2, __VA_ARGS__}
#define LAYER_NAMES(s) "a" s ", b" s ", c" s ", d" s ", q" s ", k" s ", v" s ", p" s ", u" s ", o" s

const struct bench_case bench_cases[] = {
    {"machine", "copy f32 {4096}x8192", "x:f32[{4096},8192]", "copy(x)", "x.clone()"},
    {"machine", "product f32 2048x2048x2048", "x:f32[2048,2048] w:f32[2048,2048]", "x @ w", .work = 2.0 * 2048 * 2048 * 2048, .where = ON_CPU},
    {"machine", "product bf16 2048x2048x2048", "x:bf16[2048,2048] w:bf16[2048,2048]", "x @ w", .work = 2.0 * 2048 * 2048 * 2048, .where = ON_CPU},
    {"machine", "product f32 8192x8192x8192", "x:f32[8192,8192] w:f32[8192,8192]", "x @ w", .work = 2.0 * 8192 * 8192 * 8192, .where = ON_GPU},
    {"machine", "product f16 8192x8192x8192", "x:f16[8192,8192] w:f16[8192,8192]", "x @ w", .work = 2.0 * 8192 * 8192 * 8192, .where = ON_GPU},

    PRODUCT("f32", 1024, 1024, 1024, .goal = GOAL_CPU),
    PRODUCT("bf16", 1024, 1024, 1024, .goal = GOAL_CPU),
    PRODUCT("f16", 1024, 1024, 1024, .goal = GOAL_CPU),
    PRODUCT("f64", 512, 512, 512, .goal = GOAL_CPU),
    PRODUCT("complex64", 256, 256, 256, .goal = GOAL_CPU),
    PRODUCT("f32", 256, 256, 256),
    PRODUCT("f32", 64, 1024, 1024, .goal = GOAL_CPU),
    PRODUCT("f32", 2048, 64, 256, .goal = GOAL_CPU),
    PRODUCT("f32", 1, 4096, 4096, .goal = GOAL_CPU),
    PRODUCT("bf16", 1, 4096, 4096),
    MATRIX_VECTOR("f32", 4096, 4096, .goal = GOAL_CPU),
    MATRIX_VECTOR("f32", 8192, 8192, .goal = GOAL_GPU, .where = ON_GPU),
    MATRIX_VECTOR("f16", 8192, 8192, .goal = GOAL_GPU),
    TRANSPOSED("f32", 1024, 1024, 1024, .goal = GOAL_CPU),
    PRODUCTS("f32", 64, 128, 128, 128, .goal = GOAL_CPU),
    PRODUCT("f16", 4, 4096, 4096, .goal = GOAL_GPU),
    PRODUCT("f16", 8, 4096, 4096, .goal = GOAL_GPU),
    PRODUCT("bf16", 8, 4096, 4096, .goal = GOAL_GPU),
    PRODUCT("f16", 16, 4096, 4096, .goal = GOAL_GPU),
    PRODUCT("bf16", 16, 4096, 4096, .goal = GOAL_GPU),
    PRODUCT("f16", 32, 4096, 4096, .goal = GOAL_GPU),
    PRODUCT("f16", 4096, 4096, 1, .goal = GOAL_GPU),
    PRODUCT("f16", 4096, 4096, 4, .goal = GOAL_GPU),
    PRODUCT("f16", 4096, 4096, 8, .goal = GOAL_GPU),
    PRODUCT("f16", 4096, 4096, 16, .goal = GOAL_GPU),
    PRODUCT("bf16", 4096, 4096, 16, .goal = GOAL_GPU),
    PRODUCT("f16", 4096, 64, 4096, .goal = GOAL_GPU),
    PRODUCT("f32", 4096, 64, 4096),
    PRODUCT("f16", 4096, 4096, 4096, .where = ON_GPU),
    PRODUCT("bf16", 4096, 4096, 4096, .where = ON_GPU),
    PRODUCT("f32", 4096, 4096, 4096, .where = ON_GPU),
    PRODUCT("f32", 64, 8192, 8192, .goal = GOAL_GPU, .where = ON_GPU),
    OF_WEIGHTS("f16", 384, 16384, 384, .goal = GOAL_GPU),
    OF_WEIGHTS("f16", 384, 16384, 1536, .goal = GOAL_GPU, .where = ON_GPU),
    OF_WEIGHTS("f32", 384, 16384, 384, .goal = GOAL_GPU),
    CHAIN("f16", 8, .goal = GOAL_GPU, .where = ON_GPU),
    CHAIN("bf16", 16, .goal = GOAL_GPU, .where = ON_GPU),
    CHAIN("f16", 1, .goal = GOAL_GPU, .where = ON_GPU),
    {"products", "f32 linear and relu 64x1024x1024", "x:f32[64,1024] w:f32[1024,1024] b:f32[1024]", "relu(x @ w + b)", .work = 2.0 * 64 * 1024 * 1024, .goal = GOAL_CPU},
    {"products", "f32 linear and gelu 512x768x3072", "x:f32[512,768] w:f32[768,3072] b:f32[3072]", "gelu(x @ w + b)", .work = 2.0 * 512 * 768 * 3072},
    {"products", "f32 bhqd,bhkd->bhqk 4x8x256x64", "q:f32[4,8,256,64] k:f32[4,8,256,64]", "einsum('bhqd,bhkd->bhqk', q, k)", .work = 2.0 * 32 * 256 * 256 * 64, .goal = GOAL_CPU},
    {"products", "f32 bij,bjk->bik 64x128x128", "x:f32[64,128,128] w:f32[64,128,128]", "einsum('bij,bjk->bik', x, w)", .work = 2.0 * 64 * 128 * 128 * 128, .goal = GOAL_CPU},
    {"products", "f32 bij,bkj->ik 64x128x128", "x:f32[64,128,128] w:f32[64,128,128]", "einsum('bij,bkj->ik', x, w)", .work = 2.0 * 64 * 128 * 128 * 128},
    {"products", "f32 tensordot 64x32x64 by 32x64x128", "x:f32[64,32,64] y:f32[32,64,128]", "tensordot(x, y, axes=2)", "torch.tensordot(x, y, dims=2)"},
    {"products", "f32 kron {64}x32 by 32x64", "x:f32[{64},32] y:f32[32,64]", "kron(x, y)", "torch.kron(x, y)"},
    {"products", "f32 cross {{65536}}x3", "x:f32[{{65536}},3] y:f32[{{65536}},3]", "cross(x, y)", "torch.linalg.cross(x, y)"},
    {"products", "f32 vecdot {{8192}}x256", "x:f32[{{8192}},256] y:f32[{{8192}},256]", "vecdot(x, y)", "torch.linalg.vecdot(x, y)"},
    {"products", "f32 outer {2048} by {2048}", "x:f32[{2048}] y:f32[{2048}]", "outer(x, y)"},
    {"products", "f32 addmm 256x256x256", "x:f32[256,256] y:f32[256,256] z:f32[256,256]", "addmm(x, y, z)", "torch.addmm(x, y, z)"},
    {"products", "f32 hadamard transform {{2048}}x1024", "x:f32[{{2048}},1024]", "hadamard_transform(x)", "hadamard(x)"},
    {"products", "f32 convolve {{262144}} by 63", "x:f32[{{262144}}] y:f32[63]", "convolve(x, y, mode=same)", "F.conv1d(x[None, None], y.flip(0)[None, None], padding='same')[0, 0]"},
    {"products", "f64 convolve 16384 by 4096", "x:f64[16384] y:f64[4096]", "convolve(x, y)", "by_numpy(numpy.convolve, x, y)", .where = ON_CPU},

    CONV("f32", 8, 56, 64, 64, 3, "padding=1", 1, .goal = GOAL_CPU),
    CONV("f32", 8, 56, 64, 128, 3, "padding=1, stride=2", 4, .goal = GOAL_CPU),
    CONV("f32", 8, 112, 3, 64, 7, "padding=3, stride=2", 4, .goal = GOAL_CPU),
    CONV("f32", 8, 56, 64, 256, 1, "padding=0", 1, .goal = GOAL_CPU),
    CONV_GRADIENTS("f32", 8, 56, 64, 64, 3, 1, .goal = GOAL_CPU),
    {"convolutions", "f32 depthwise 3x3 of 8x56x56x64", "x:f32[8,56,56,64] w:f32[64,3,3,1]", "conv2d(x, w, padding=1, groups=64)", .goal = BOTH},
    {"convolutions", "f16 depthwise 3x3 of 32x56x56x128", "x:f16[32,56,56,128] w:f16[128,3,3,1]", "conv2d(x, w, padding=1, groups=128)", .goal = GOAL_GPU, .where = ON_GPU},
    {"convolutions", "f32 depthwise 3x3 of 32x56x56x128", "x:f32[32,56,56,128] w:f32[128,3,3,1]", "conv2d(x, w, padding=1, groups=128)", .goal = GOAL_GPU, .where = ON_GPU},
    CONV("f16", 64, 14, 256, 256, 3, "padding=1", 1, .goal = GOAL_GPU, .where = ON_GPU),
    CONV("bf16", 64, 14, 256, 256, 3, "padding=1", 1, .goal = GOAL_GPU, .where = ON_GPU),
    CONV("f32", 64, 14, 256, 256, 3, "padding=1", 1, .goal = GOAL_GPU, .where = ON_GPU),
    CONV_GRADIENTS("f16", 64, 14, 256, 256, 3, 1, .goal = GOAL_GPU, .where = ON_GPU),
    CONV_GRADIENTS("f32", 64, 14, 256, 256, 3, 1, .goal = GOAL_GPU, .where = ON_GPU),
    CONV("f16", 32, 56, 64, 64, 3, "padding=1", 1, .goal = GOAL_GPU, .where = ON_GPU),
    CONV("f32", 32, 56, 64, 64, 3, "padding=1", 1, .goal = GOAL_GPU, .where = ON_GPU),
    CONV_GRADIENTS("f16", 32, 56, 64, 64, 3, 1, .goal = GOAL_GPU, .where = ON_GPU),
    CONV("f16", 32, 56, 64, 256, 1, "padding=0", 1, .where = ON_GPU),
    {"convolutions", "f32 LeNet's first, batch 1024, filters' gradient", "x:f32[1024,28,28,1] w:f32[6,5,5,1] g:f32[1024,28,28,6]",
     "conv2d_weight(x, g, padding=2, extent=[5,5])", "conv2d_grad(g, x, w, 1, padding=2)", .work = 2.0 * 1024 * 784 * 25 * 6, .goal = GOAL_GPU},
    {"convolutions", "f32 max pool 2x2 of 32x56x56x64", "x:f32[32,56,56,64]", "max_pool2d(x, window=2)"},

    ATTENTION("f32", "", "false", 4, 8, 8, 256, 256, 64, .goal = GOAL_CPU),
    ATTENTION("f32", ", causal", "true", 1, 8, 8, 1024, 1024, 64),
    ATTENTION("bf16", ", causal", "true", 1, 8, 8, 1024, 1024, 64),
    ATTENTION("f16", ", one query", "false", 1, 32, 8, 1, 4096, 128),
    ATTENTION("f16", ", causal", "true", 1, 32, 8, 4096, 4096, 128, .where = ON_GPU),
    ATTENTION("f16", ", causal", "true", 8, 16, 16, 2048, 2048, 64, .where = ON_GPU),
    ATTENTION("f16", ", 32 texts", "false", 32, 32, 8, 1, 4096, 128, .where = ON_GPU),
    ATTENTION_GRADIENTS("f32", 4, 8, 8, 256, 64, .goal = GOAL_CPU),
    ATTENTION_GRADIENTS("f16", 1, 32, 8, 4096, 128, .where = ON_GPU),

    {"elementwise", "add f32 {2048}x{2048}", MATRIX " y:f32[{2048},{2048}]", "x + y"},
    {"elementwise", "add f16 {2048}x{2048}", "x:f16[{2048},{2048}] y:f16[{2048},{2048}]", "x + y", .goal = GOAL_CPU},
    {"elementwise", "add f32 1024", "x:f32[1024] y:f32[1024]", "x + y"},
    {"elementwise", "add a row f32 {2048}x{2048}", MATRIX " y:f32[{2048}]", "x + y"},
    {"elementwise", "multiply i32 {2048}x{2048}", "x:i32<1000[{2048},{2048}] y:i32<1000[{2048},{2048}]", "x * y"},
    {"elementwise", "4 * x + 2 * y f32 {2048}x{2048}", MATRIX " y:f32[{2048},{2048}]", "4 * x + 2 * y"},
    {"elementwise", "x**3 + 2 * x f32 {2048}x{2048}", MATRIX, "x**3 + 2 * x"},
    {"elementwise", "exp f32 {2048}x{2048}", MATRIX, "exp(x)"},
    {"elementwise", "exp f64 {{2048}}x1024", "x:f64[{{2048}},1024]", "exp(x)"},
    {"elementwise", "log1p f32 {2048}x{2048}", "x:f32+[{2048},{2048}]", "log1p(x)"},
    {"elementwise", "sin f32 {2048}x{2048}", MATRIX, "sin(x)"},
    {"elementwise", "tanh f32 {2048}x{2048}", MATRIX, "tanh(x)"},
    {"elementwise", "sigmoid f32 {2048}x{2048}", MATRIX, "sigmoid(x)"},
    {"elementwise", "gelu f32 {2048}x{2048}", MATRIX, "gelu(x)"},
    {"elementwise", "gelu f16 {2048}x{2048}", "x:f16[{2048},{2048}]", "gelu(x)"},
    {"elementwise", "silu(x) * y bf16 {2048}x{2048}", "x:bf16[{2048},{2048}] y:bf16[{2048},{2048}]", "silu(x) * y"},
    {"elementwise", "where f32 {2048}x{2048}", MATRIX " y:f32[{2048},{2048}]", "where(x > 0, x, y)"},
    {"elementwise", "clip f32 {2048}x{2048}", MATRIX, "clip(x, lo=-0.5, hi=0.5)", "clip(x, -0.5, 0.5)"},
    {"elementwise", "cast f32 to f16 {2048}x{2048}", MATRIX, "astype(x, dtype=f16)", "x.half()"},
    {"elementwise", "cast bf16 to f32 {2048}x{2048}", "x:bf16[{2048},{2048}]", "astype(x, dtype=f32)", "x.float()"},
    {"elementwise", "uniform f32 {2048}x{2048}", "k:u32<1000[2]", "random.uniform(k, shape=[{2048},{2048}])", "torch.rand({2048}, {2048}, device=device)", .allowed = -1},
    {"elementwise", "normal f32 {2048}x{2048}", "k:u32<1000[2]", "random.normal(k, shape=[{2048},{2048}])", "torch.randn({2048}, {2048}, device=device)", .allowed = -1},
    {"elementwise", "base.random_uniform f32 {2048}x{2048}", "k:u32<1000[2]", "base.random_uniform(k, shape=[{2048},{2048}])", "torch.rand({2048}, {2048}, device=device)", .allowed = -1},
    {"elementwise", "base.random_normal f32 {2048}x{2048}", "k:u32<1000[2]", "base.random_normal(k, shape=[{2048},{2048}])", "torch.randn({2048}, {2048}, device=device)", .allowed = -1},
    {"elementwise", "dropout f32 {2048}x{2048}", MATRIX, "dropout(x, p=0.1)", "F.dropout(x, 0.1)", .allowed = -1},
    {"elementwise", "floor_divide i32 {2048}x{2048}", "x:i32<100000[{2048},{2048}] y:i32<1000[{2048},{2048}]", "floor_divide(x, y + 1)", "torch.floor_divide(x, y + 1)"},
    {"elementwise", "mod i64 {2048}x{2048} by 17", "x:i64<1000000[{2048},{2048}]", "remainder(x, 17)", "torch.remainder(x, 17)"},
    {"elementwise", "gcd i64 {{1024}}x1024", "x:i64<100000[{{1024}},1024] y:i64<100000[{{1024}},1024]", "gcd(x, y)"},
    {"elementwise", "isclose f32 {2048}x{2048}", MATRIX " y:f32[{2048},{2048}]", "isclose(x, y)", "torch.isclose(x, y)"},
    {"elementwise", "nan_to_num f32 {2048}x{2048}", MATRIX, "nan_to_num(x)", "torch.nan_to_num(x)"},
    {"elementwise", "round to 2 decimals f32 {2048}x{2048}", MATRIX, "round(x, decimals=2)", "torch.round(x, decimals=2)"},
    {"elementwise", "abs complex64 {{1024}}x1024", "x:complex64[{{1024}},1024]", "abs(x)"},
    {"elementwise", "exp complex64 {{1024}}x1024", "x:complex64[{{1024}},1024]", "exp(x)"},
    {"elementwise", "multiply complex64 {{1024}}x1024", "x:complex64[{{1024}},1024] y:complex64[{{1024}},1024]", "x * y"},

    POSITIVE("lgamma", "lgamma(x)", "torch.lgamma(x)"),
    POSITIVE("digamma", "digamma(x)", "torch.digamma(x)", .allowed = 1e-3),
    POSITIVE("gamma", "gamma(x + 1)", "torch.lgamma(x + 1).exp()"),
    SPECIAL("i0e", "i0e(x)", "torch.special.i0e(x)"),
    SPECIAL("i0", "i0(x)", "torch.i0(x)"),
    SPECIAL("erf", "erf(x)", "torch.erf(x)"),
    SPECIAL("erfinv", "erfinv(x)", "torch.erfinv(x)"),
    SPECIAL("sinc", "sinc(x)", "torch.sinc(x)"),
    SPECIAL("cbrt", "cbrt(x)", "by_numpy(numpy.cbrt, x)", .where = ON_CPU),
    SPECIAL("asinh", "arcsinh(x)", "torch.asinh(x)"),
    SPECIAL("atanh", "arctanh(x)", "torch.atanh(x)"),
    PAIRED("logaddexp", "logaddexp(x, y)", "torch.logaddexp(x, y)"),
    PAIRED("hypot", "hypot(x, y)", "torch.hypot(x, y)"),
    PAIRED("atan2", "arctan2(x, y)", "torch.atan2(x, y)"),
    PAIRED("copysign", "copysign(x, y)", "torch.copysign(x, y)"),
    PAIRED("nextafter", "nextafter(x, y)", "torch.nextafter(x, y)"),
    PAIRED("fmod", "fmod(x, y)", "torch.fmod(x, y)", .allowed = 1e-3),
    {"special functions", "lgamma f64 {{1024}}x1024", "x:f64+[{{1024}},1024]", "lgamma(x)", "torch.lgamma(x)"},
    {"special functions", "digamma f64 {{1024}}x1024", "x:f64+[{{1024}},1024]", "digamma(x)", "torch.digamma(x)"},
    {"special functions", "i0e f64 {{1024}}x1024", "x:f64[{{1024}},1024]", "i0e(x)", "torch.special.i0e(x)"},

    DRAWN("bits u32", "bits(k, shape=[{2048},{2048}], dtype=u32)", "torch.randint(0, 1 << 31, ({2048}, {2048}), dtype=torch.int32, device=device)"),
    DRAWN("randint i32 below 100", "randint(k, low=0, high=100, shape=[{2048},{2048}], dtype=i32)", "torch.randint(0, 100, ({2048}, {2048}), dtype=torch.int32, device=device)"),
    DRAWN("bernoulli", "bernoulli(k, p=0.3, shape=[{2048},{2048}])", "torch.empty({2048}, {2048}, device=device).bernoulli_(0.3)"),
    DRAWN("exponential f32", "exponential(k, shape=[{2048},{2048}])", "torch.empty({2048}, {2048}, device=device).exponential_()"),
    DRAWN("gumbel f32", "gumbel(k, shape=[{2048},{2048}])", "-torch.empty({2048}, {2048}, device=device).exponential_().log()"),
    DRAWN("laplace f32", "laplace(k, shape=[{2048},{2048}])", "torch.distributions.Laplace(0.0, 1.0).sample(({2048}, {2048})).to(device)"),
    DRAWN("truncated normal f32", "truncated_normal(k, -2.0, 2.0, shape=[{2048},{2048}], dtype=f32)", "nn.init.trunc_normal_(torch.empty({2048}, {2048}, device=device))"),
    {"random", "gamma f32 {512}x{512}", "k:u32<1000[2] a:f32+[{512},{512}]", "random.gamma(k, a + 0.5)", "torch._standard_gamma(a + 0.5)", .allowed = -1},
    {"random", "poisson of 5 {512}x{512}", "k:u32<1000[2] a:f32+[{512},{512}]", "random.poisson(k, a + 5)", "torch.poisson(a + 5)", .allowed = -1},
    {"random", "categorical, {{2048}} of 1000", "k:u32<1000[2] x:f32[{{2048}},1000]", "random.categorical(k, x)", "torch.multinomial(torch.softmax(x, -1), 1)", .allowed = -1},
    {"random", "permutation of {{262144}}", "k:u32<1000[2]", "random.permutation(k, n={{262144}})", "torch.randperm({{262144}}, device=device)", .allowed = -1},
    {"random", "{{4096}} rows of 256 permuted", "k:u32<1000[2] x:f32[{{4096}},256]", "random.permutation(k, x)", "x[torch.randperm({{4096}}, device=device)]", .allowed = -1},

    {"reductions", "sum f32 {2048}x{2048}, all", MATRIX, "sum(x)", .allowed = 1e-2},
    {"reductions", "sum f32 {2048}x{2048}, rows", MATRIX, "sum(x, axis=1)"},
    {"reductions", "sum f32 {2048}x{2048}, columns", MATRIX, "sum(x, axis=0)", .goal = GOAL_CPU},
    {"reductions", "sum f32 64x{{512}}x512, the middle axis", "x:f32[64,{{512}},512]", "sum(x, axis=1)", .goal = GOAL_CPU},
    {"reductions", "sum f16 {2048}x{2048}, rows", "x:f16[{2048},{2048}]", "sum(x, axis=1)"},
    {"reductions", "max f32 {2048}x{2048}, rows", MATRIX, "max(x, axis=1)", "torch.amax(x, 1)"},
    {"reductions", "argmax f32 {2048}x{2048}, rows", MATRIX, "argmax(x, axis=1)", "torch.argmax(x, 1)"},
    {"reductions", "var f32 {2048}x{2048}, rows", MATRIX, "var(x, axis=1)", "torch.var(x, 1, correction=0)"},
    {"reductions", "logsumexp f32 {2048}x{2048}, rows", MATRIX, "logsumexp(x, axis=1)", "torch.logsumexp(x, 1)"},
    {"reductions", "cumsum f32 {2048}x{2048}, rows", MATRIX, "cumsum(x, axis=1)", "torch.cumsum(x, 1)"},
    {"reductions", "cumsum f32 {2048}x{2048}, columns", MATRIX, "cumsum(x, axis=0)", "torch.cumsum(x, 0)"},
    {"reductions", "norm of f32 {2048}x{2048}", MATRIX, "sqrt(sum(x * x))", "torch.linalg.vector_norm(x)"},
    {"reductions", "mean f32 {2048}x{2048}, rows", MATRIX, "mean(x, axis=1)", "torch.mean(x, 1)"},
    {"reductions", "prod f32 {2048}x{2048}, rows", MATRIX, "prod(x + 1, axis=1)", "torch.prod(x + 1, 1)", .allowed = -1},
    {"reductions", "any of f32 {2048}x{2048}, rows", MATRIX, "any(x > 2, axis=1)", "torch.any(x > 2, 1)"},
    {"reductions", "nansum f32 {2048}x{2048}, rows", MATRIX, "nansum(x, axis=1)", "torch.nansum(x, 1)"},
    {"reductions", "nanmean f32 {2048}x{2048}, rows", MATRIX, "nanmean(x, axis=1)", "torch.nanmean(x, 1)"},
    {"reductions", "nanmax f32 {2048}x{2048}, rows", MATRIX, "nanmax(x, axis=1)", "torch.where(x.isnan(), -math.inf, x).amax(1)"},
    {"reductions", "count_nonzero f32 {2048}x{2048}, rows", MATRIX, "count_nonzero(x, axis=1)", "torch.count_nonzero(x, 1)"},
    {"reductions", "count_nonzero bool {2048}x{2048}", "x:bool<2[{2048},{2048}]", "count_nonzero(x)", "torch.count_nonzero(x)"},
    {"reductions", "minmax f32 {2048}x{2048}, rows", MATRIX, "minmax(x, axis=1)", "torch.aminmax(x, dim=1)"},
    {"reductions", "minmax f32 {2048}x{2048}", MATRIX, "minmax(x)", "torch.aminmax(x)"},
    {"reductions", "sum i32 {2048}x{2048}, rows", "x:i32<1000[{2048},{2048}]", "sum(x, axis=1)"},
    {"reductions", "sum complex64 {{1024}}x1024, rows", "x:complex64[{{1024}},1024]", "sum(x, axis=1)"},
    {"reductions", "sum complex64 {{1024}}x1024, columns", "x:complex64[{{1024}},1024]", "sum(x, axis=0)"},
    {"reductions", "prod complex64 {{1024}}x1024, rows", "x:complex64[{{1024}},1024]", "prod(x, axis=1)", .allowed = -1},
    {"reductions", "var complex64 {{1024}}x1024, rows", "x:complex64[{{1024}},1024]", "var(x, axis=1)", "torch.var(x, 1, correction=0)"},
    {"reductions", "cumsum complex64 {{1024}}x1024, rows", "x:complex64[{{1024}},1024]", "cumsum(x, axis=1)"},
    {"reductions", "cumsum i64 {2048}x{2048}, rows", "x:i64<1000[{2048},{2048}]", "cumsum(x, axis=1)"},
    {"reductions", "cumprod f32 {2048}x{2048}, rows", MATRIX, "cumprod(x, axis=1)"},
    {"reductions", "cummax f32 {2048}x{2048}, rows", MATRIX, "cummax(x, axis=1)", "torch.cummax(x, 1)[0]"},
    {"reductions", "logcumsumexp f32 {2048}x{2048}, rows", MATRIX, "logcumsumexp(x, axis=1)", "torch.logcumsumexp(x, 1)"},
    {"reductions", "trace f32 {2048}x{2048}", MATRIX, "trace(x)", "torch.trace(x)"},

    {"norms", "softmax f32 {{2048}}x1024", "x:f32[{{2048}},1024]", "softmax(x)"},
    {"norms", "softmax f32 {{8192}}x128", "x:f32[{{8192}},128]", "softmax(x)"},
    {"norms", "softmax f16 {{2048}}x2048", "x:f16[{{2048}},2048]", "softmax(x)"},
    {"norms", "log softmax f32 {{2048}}x1024", "x:f32[{{2048}},1024]", "log_softmax(x)"},
    {"norms", "layer norm f32 {{2048}}x1024", "x:f32[{{2048}},1024] w:f32[1024] b:f32[1024]", "layer_norm(x, w, b)"},
    {"norms", "layer norm f16 {{2048}}x1024", "x:f16[{{2048}},1024] w:f16[1024] b:f16[1024]", "layer_norm(x, w, b)"},
    {"norms", "rms norm f32 {{2048}}x1024", "x:f32[{{2048}},1024] w:f32[1024]", "rms_norm(x, w)"},
    {"norms", "rms norm bf16 {{2048}}x1024", "x:bf16[{{2048}},1024] w:bf16[1024]", "rms_norm(x, w)"},
    {"norms", "group norm f32 8x56x56x64, channels last", "x:f32[8,56,56,64] w:f32[64] b:f32[64]", "group_norm(x, w, b, groups=4)"},
    {"norms", "group norm f32 8x64x56x56, channels first", "x:f32[8,64,56,56] w:f32[64] b:f32[64]", "group_norm(x, w, b, groups=4, axis=1)", "F.group_norm(x, 4, w, b)", .goal = GOAL_CPU},
    {"norms", "cross entropy f32 {{2048}}x1024", "x:f32[{{2048}},1024] t:i64<1024[{{2048}}]", "mean(cross_entropy(x, t))"},

    {"memory", "transpose f32 {2048}x{2048}", MATRIX, "copy(x.T)", "x.T.contiguous()"},
    {"memory", "transpose f16 {2048}x{2048}", "x:f16[{2048},{2048}]", "copy(x.T)", "x.T.contiguous()"},
    {"memory", "axes 0,2,1,3 of 16x{512}x8x64", "x:f32[16,{512},8,64]", "copy(transpose(x, axes=[0,2,1,3]))", "transpose(x, axes=[0,2,1,3]).contiguous()"},
    {"memory", "concatenate f32 4 of {1024}x1024", "x:f32[{1024},1024] y:f32[{1024},1024]", "concatenate(x, y, x, y, axis=1)", .goal = GOAL_CPU},
    {"memory", "stack f32 4 of {1024}x1024", "x:f32[{1024},1024] y:f32[{1024},1024]", "stack(x, y, x, y, axis=1)", .goal = GOAL_CPU},
    {"memory", "pad f32 {2048}x{2048}", MATRIX, "pad(x, before=[1,1], after=[1,1])", "F.pad(x, (1, 1, 1, 1))", .goal = GOAL_CPU},
    {"memory", "roll f32 {2048}x{2048}", MATRIX, "roll(x, shift=[3], axis=[1])", "torch.roll(x, 3, 1)", .goal = GOAL_CPU},
    {"memory", "repeat f32 {1024}x1024, 4 times", "x:f32[{1024},1024]", "repeat(x, repeats=[4], axis=1)", "torch.repeat_interleave(x, 4, 1)", .goal = GOAL_CPU},
    {"memory", "tile f32 {1024}x1024, 2x2", "x:f32[{1024},1024]", "tile(x, reps=[2,2])", "torch.tile(x, (2, 2))"},
    {"memory", "flip f32 {2048}x{2048}", MATRIX, "copy(flip(x, axis=[1]))", "torch.flip(x, (1,))"},
    {"memory", "tril f32 {2048}x{2048}", MATRIX, "tril(x)"},
    {"memory", "broadcast f32 {2048} to {2048}x{2048}", "x:f32[{2048}]", "copy(broadcast_to(x, shape=[{2048},{2048}]))", "x.expand({2048}, {2048}).contiguous()"},
    {"memory", "diff f32 {2048}x{2048}", MATRIX, "diff(x)", "torch.diff(x)"},
    {"memory", "diff f32 {2048}x{2048}, columns", MATRIX, "diff(x, axis=0)", "torch.diff(x, dim=0)"},
    {"memory", "diagonals f32 {{16384}} of 32x32", "x:f32[{{16384}},32,32]", "copy(diagonal(x, axis1=1, axis2=2))", "torch.diagonal(x, dim1=1, dim2=2).contiguous()"},
    {"memory", "diagonal matrix f32 {2048}x{2048}", "x:f32[{2048}]", "diag(x)", "torch.diag(x)"},
    {"memory", "windows of 64, {131072} at steps of 16", "x:f32[{4194304}]", "copy(as_strided(x, shape=[{131072},64], strides=[16,1]))", "torch.as_strided(x, ({131072}, 64), (16, 1)).contiguous()"},
    {"memory", "windows of 3x3, {1023}x1023", "x:f32[{2048},2048]", "copy(as_strided(x, shape=[{1023},1023,3,3], strides=[4096,2,2048,1]))", "torch.as_strided(x, ({1023}, 1023, 3, 3), (4096, 2, 2048, 1)).contiguous()"},
    {"memory", "gradient of windows of 64", "x:f32[{1048576}] g:f32[{32768},64]", "grad(sum(as_strided(x, shape=[{32768},64], strides=[16,1]) * g), x)", "vjp(torch.as_strided(x, ({32768}, 64), (16, 1)), g, x)[0]"},
    {"memory", "arange f32 {{1048576}}", "x:f32[1]", "arange(stop={{1048576}}, dtype=f32)", "torch.arange({{1048576}}, dtype=torch.float32, device=device)"},
    {"memory", "eye f32 {2048}", "x:f32[1]", "eye({2048})", "torch.eye({2048}, device=device)"},
    {"memory", "meshgrid f32 {2048} by {2048}", "x:f32[{2048}] y:f32[{2048}]", "x, y = meshgrid(x, y, indexing=ij); copy(x), copy(y)", "x, y = torch.meshgrid(x, y, indexing='ij'); x.contiguous(), y.contiguous()"},
    {"memory", "one_hot i64 {{8192}} of 128", "x:i64<128[{{8192}}]", "one_hot(x, 128)", "F.one_hot(x, 128)"},

    PADDED("edge", "F.pad(x[None], (1, 1, 1, 1), mode='replicate')[0]"),
    PADDED("reflect", "F.pad(x[None], (1, 1, 1, 1), mode='reflect')[0]"),
    PADDED("wrap", "F.pad(x[None], (1, 1, 1, 1), mode='circular')[0]"),
    {"borders", "pad f32 2048x2048, symmetric", "x:f32[2048,2048]", "pad(x, before=[8,8], after=[8,8], mode=symmetric)", "by_numpy(lambda x: numpy.pad(x, 8, mode='symmetric'), x)", .where = ON_CPU},
    {"borders", "pad f32 2048x2048, linear_ramp", "x:f32[2048,2048]", "pad(x, before=[8,8], after=[8,8], mode=linear_ramp)", "by_numpy(lambda x: numpy.pad(x, 8, mode='linear_ramp'), x)", .where = ON_CPU},
    {"borders", "pad f32 2048x2048, mean", "x:f32[2048,2048]", "pad(x, before=[8,8], after=[8,8], mode=mean)", "by_numpy(lambda x: numpy.pad(x, 8, mode='mean'), x)", .where = ON_CPU},
    {"borders", "pad f32 2048x2048, reflect, by NumPy", "x:f32[2048,2048]", "pad(x, before=[8,8], after=[8,8], mode=reflect)", "by_numpy(lambda x: numpy.pad(x, 8, mode='reflect'), x)", .where = ON_CPU},

    {"searching", "searchsorted f32 {1048576} in 65536", "v:f32<65536[{1048576}]", "searchsorted(arange(stop=65536, dtype=f32), v)", "torch.searchsorted(torch.arange(65536, dtype=torch.float32, device=device), v)"},
    {"searching", "searchsorted f32 {1048576} in 100", "v:f32<100[{1048576}]", "searchsorted(arange(stop=100, dtype=f32), v)", "torch.searchsorted(torch.arange(100, dtype=torch.float32, device=device), v)"},
    {"searching", "digitize f32 {1048576} by 10", "v:f32<10[{1048576}]", "digitize(v, arange(stop=10, dtype=f32))", "torch.bucketize(v, torch.arange(10, dtype=torch.float32, device=device), right=True)"},
    {"searching", "interp f64 1048576 in 1024", "v:f64+[1048576] y:f64[1024]", "interp(v * 1024, arange(stop=1024, dtype=f64), y)", "by_numpy(lambda v, y: numpy.interp(v * 1024, numpy.arange(1024), y), v, y)", .where = ON_CPU},
    {"searching", "isin i64 {1048576} of 1000", "x:i64<100000[{1048576}] y:i64<100000[1000]", "isin(x, y)", "torch.isin(x, y)"},
    {"searching", "bincount i64 {4194304} of 1000", "x:i64<1000[{4194304}]", "bincount(x, length=1000)", "torch.bincount(x, minlength=1000)"},
    {"searching", "bincount i64 {4194304} of 1000, weights", "x:i64<1000[{4194304}] w:f32+[{4194304}]", "bincount(x, w, length=1000)", "torch.bincount(x, w, 1000)", .allowed = 1e-3},
    {"searching", "histogram f32 {4194304}, 100 bins", "x:f32[{4194304}]", "c, e = histogram(x, bins=100, lo=-1.0, hi=1.0); c", "torch.histc(x, 100, -1, 1)", .allowed = 1e-3},
    {"searching", "unique i64 {1048576} of 1000", "x:i64<1000[{1048576}]", "v, n = unique_values(x, size=1000); v", "torch.unique(x)"},
    {"searching", "unique f32 {1048576}", "x:f32[{1048576}]", "v, n = unique_values(x, size={1048576}); v", "torch.unique(x)", .allowed = -1},
    {"searching", "unique i64 {1048576} of 1000, all", "x:i64<1000[{1048576}]", "v, i, n, c, m = unique_all(x, size=1000); v, n, c", "torch.unique(x, return_inverse=True, return_counts=True)"},
    {"searching", "nonzero of f32 {2048}x{2048}", MATRIX, "i, j, n = nonzero(x > 0.5, size={{1100000}}); i, j", "torch.nonzero(x > 0.5)", .allowed = -1},
    {"searching", "boolean mask of f32 {2048}x{2048}", MATRIX, "v, n = boolean_mask(x, x > 0.5, size={{1100000}}); v", "x[x > 0.5]", .allowed = -1},
    {"searching", "boolean mask of f32 {{16384}} rows of 256", "x:f32[{{16384}},256] m:bool<2[{{16384}}]", "v, n = boolean_mask(x, m, size={{8400}}); v", "x[m]", .allowed = -1},

    {"order", "median f32 {2048}x1023, rows", "x:f32[{2048},1023]", "median(x, axis=[1])", "torch.median(x, 1)[0]"},
    {"order", "median f32 1023x{2048}, columns", "x:f32[1023,{2048}]", "median(x, axis=[0])", "torch.median(x, 0)[0]"},
    {"order", "median f32 {1048577}", "x:f32[{1048577}]", "median(x)", "torch.median(x)", .whole = true},
    {"order", "quantiles f32 {2048}x1024, 4 of rows", "x:f32[{2048},1024] q:f32+[4]", "quantile(x, q, axis=[1])", "torch.quantile(x, q, 1)"},
    {"order", "partition f32 2048x1024", "x:f32[2048,1024]", "partition(x, kth=100)", "by_numpy(lambda x: numpy.partition(x, 100), x)", .allowed = -1, .where = ON_CPU},
    {"order", "argpartition f32 2048x1024", "x:f32[2048,1024]", "argpartition(x, kth=100)", "by_numpy(lambda x: numpy.argpartition(x, 100), x)", .allowed = -1, .where = ON_CPU},
    {"order", "lexsort of two i64 262144", "x:i64<100[262144] y:i64<1000[262144]", "lexsort(x, y)", "by_numpy(lambda x, y: numpy.lexsort((x, y)), x, y)", .where = ON_CPU},
    {"order", "sort i64 {1048576}", "x:i64<1000000[{1048576}]", "sort(x)", "torch.sort(x)[0]"},
    {"order", "sort f32 2048x{512}, columns", "x:f32[2048,{512}]", "sort(x, axis=0)", "torch.sort(x, 0)[0]"},

    {"indices", "take f32 {16384} rows of 512", "x:f32[20000,512] i:i64<20000[{16384}]", "take(x, i, axis=0)", "x[i]"},
    {"indices", "take f16 {16384} rows of 1024", "x:f16[20000,1024] i:i64<20000[{16384}]", "take(x, i, axis=0)", "x[i]"},
    {"indices", "gather f32 {4194304} of {2048}x{2048}", MATRIX " i:i64<{2048}[{4194304}] j:i64<{2048}[{4194304}]", "gather(x, i, j)", "x[i, j]", .goal = GOAL_CPU},
    {"indices", "take along axis f32 {{2048}}x1024", "x:f32[{{2048}},1024] i:i64<1024[{{2048}},1024]", "take_along_axis(x, i, axis=1)", "torch.gather(x, 1, i)"},
    {"indices", "scatter-add f32 {8192} rows of 512", "x:f32[20000,512] i:i64<20000[{8192}] u:f32[{8192},512]", "scatter_add(x, i, u, axis=0)", "torch.index_add(x, 0, i, u)"},
    {"indices", "embedding's gradient f32 {8192} rows of 512", "x:f32[20000,512] i:i64<20000[{8192}] g:f32[{8192},512]", "grad(sum(take(x, i, axis=0) * g), x)", "vjp(F.embedding(i, x), g, x)[0]"},
    {"indices", "put along axis f32 {{2048}}x1024", "x:f32[{{2048}},1024] i:i64<1024[{{2048}},64] v:f32[{{2048}},64]", "put_along_axis(x, i, v, axis=1, mode=add)", "torch.scatter_add(x, 1, i, v)"},
    {"indices", "scatter f32 {1048576} of {2048}x{2048}", MATRIX " i:i64<{2048}[{1048576}] j:i64<{2048}[{1048576}] v:f32[{1048576}]", "scatter(x, v, i, j, mode=add)", "x.index_put((i, j), v, accumulate=True)", .allowed = 1e-3},
    {"indices", "take f32 of {{262144}} in 1000000", "x:f32[1000000] i:i64<1000000[{{262144}}]", "take(x, i, axis=0)", "x[i]"},
    {"indices", "sort f32 {512}x2048", "x:f32[{512},2048]", "sort(x)", "torch.sort(x)[0]"},
    {"indices", "sort f32 {1048576}", "x:f32[{1048576}]", "sort(x)", "torch.sort(x)[0]"},
    {"indices", "argsort f32 {512}x2048", "x:f32[{512},2048]", "argsort(x)", "torch.argsort(x)", .allowed = -1},
    {"indices", "topk f32 16 of 64x32768", "x:f32[64,32768]", "y, i = topk(x, k=16); y", "torch.topk(x, 16)[0]", .goal = GOAL_GPU},
    {"indices", "topk f32 40 of 1x131072", "x:f32[1,131072]", "y, i = topk(x, k=40); y", "torch.topk(x, 40)[0]", .goal = GOAL_GPU},
    {"indices", "topk f32 8 of {{2048}}x1024", "x:f32[{{2048}},1024]", "y, i = topk(x, k=8); y", "torch.topk(x, 8)[0]", .goal = GOAL_GPU},

    FFT_ROWS(8192, 64), FFT_ROWS(2048, 256), FFT_ROWS(512, 1024), FFT_ROWS(256, 2048), FFT_ROWS(128, 4096),
    FFT_ROWS(1024, 360), FFT_ROWS(512, 1000), FFT_ROWS(256, 1536),
    FFT_ROWS(4096, 97), FFT_ROWS(2048, 251), FFT_ROWS(512, 1009), FFT_ROWS(128, 4099),
    {"fourier", "ifft complex64 512x1024", "x:complex64[512,1024]", "ifft(x)", "torch.fft.ifft(x)", .where = ON_CPU},
    {"fourier", "irfft f32 512x1024", "x:complex64[512,513]", "irfft(x)", "torch.fft.irfft(x)", .where = ON_CPU},
    {"fourier", "fft complex128 256x1024", "x:complex128[256,1024]", "fft(x)", "torch.fft.fft(x)", .where = ON_CPU},
    {"fourier", "rfft f64 512x1000", "x:f64[512,1000]", "rfft(x)", "torch.fft.rfft(x)", .where = ON_CPU},
    {"fourier", "fft complex128 128x4099", "x:complex128[128,4099]", "fft(x)", "torch.fft.fft(x)", .where = ON_CPU},
    {"fourier", "rfft f32 512x4096", "x:f32[512,4096]", "rfft(x)", "torch.fft.rfft(x)", .where = ON_CPU},
    {"fourier", "fft complex64 1x65536", "x:complex64[1,65536]", "fft(x)", "torch.fft.fft(x)", .where = ON_CPU},
    {"fourier", "fft2 complex64 1024x512", "x:complex64[1024,512]", "fft2(x)", "torch.fft.fft2(x)", .where = ON_CPU},
    {"fourier", "stft f32 16x65536, frames of 1024", "x:f32[16,65536] w:f32+[1024]", "stft(x, w, n_fft=1024, hop_length=256)", "torch.stft(x, 1024, 256, window=w, return_complex=True)", .where = ON_CPU},
    {"fourier", "stft f32 1x1048576, frames of 400", "x:f32[1,1048576] w:f32+[400]", "stft(x, w, n_fft=400, hop_length=160)", "torch.stft(x, 400, 160, window=w, return_complex=True)", .where = ON_CPU, .whole = true},
    {"fourier", "istft f32 16x513x257", "x:complex64[16,513,257] w:f32+[1024]", "istft(x, w, n_fft=1024, hop_length=256)", "torch.istft(x, 1024, 256, window=w)", .where = ON_CPU, .whole = true},

    DOMINANT("cholesky", f32, 1, 1024, "linalg.cholesky(a)", "torch.linalg.cholesky(a)"),
    DOMINANT("cholesky", f32, {{256}}, 32, "linalg.cholesky(a)", "torch.linalg.cholesky(a)"),
    DOMINANT("cholesky", f64, 1, 512, "linalg.cholesky(a)", "torch.linalg.cholesky(a)", .where = ON_CPU),
    DOMINANT("solve_triangular", f32, 1, 1024, "linalg.solve_triangular(a, x)", "torch.linalg.solve_triangular(a, x, upper=True)"),
    DOMINANT("solve_triangular", f32, {{256}}, 32, "linalg.solve_triangular(a, x)", "torch.linalg.solve_triangular(a, x, upper=True)"),
    DOMINANT("solve", f32, 1, 512, "linalg.solve(a, x)", "torch.linalg.solve(a, x)", .where = ON_CPU),
    DOMINANT("solve", f64, 256, 16, "linalg.solve(a, x)", "torch.linalg.solve(a, x)", .where = ON_CPU),
    DOMINANT("inv", f32, 1, 512, "linalg.inv(a)", "torch.linalg.inv(a)", .where = ON_CPU),
    DOMINANT("det", f32, 256, 16, "linalg.det(a * 0.25)", "torch.linalg.det(a * 0.25)", .where = ON_CPU),
    DOMINANT("solve", f32, 10000, 3, "linalg.solve(a, x)", "torch.linalg.solve(a, x)", .where = ON_CPU),
    DOMINANT("solve", f64, 4096, 8, "linalg.solve(a, x)", "torch.linalg.solve(a, x)", .where = ON_CPU),
    DOMINANT("inv", f32, 10000, 3, "linalg.inv(a)", "torch.linalg.inv(a)", .where = ON_CPU),
    DOMINANT("inv", f64, 256, 32, "linalg.inv(a)", "torch.linalg.inv(a)", .where = ON_CPU),
    DOMINANT("det", f32, 10000, 3, "linalg.det(a * 0.25)", "torch.linalg.det(a * 0.25)", .where = ON_CPU),
    DOMINANT("cholesky", f32, 10000, 4, "linalg.cholesky(a)", "torch.linalg.cholesky(a)", .where = ON_CPU),
    DOMINANT("qr", f32, 1, 512, "linalg.qr(a)", "torch.linalg.qr(a)", .where = ON_CPU, .allowed = -1),
    DOMINANT("eigenvectors", f64, 1000, 4, "linalg.eigh(a)", "torch.linalg.eigh(a)", .where = ON_CPU, .allowed = -1),
    DOMINANT("singular values", f32, 1, 256, "linalg.svdvals(a)", "torch.linalg.svdvals(a)", .where = ON_CPU),
    DOMINANT("eigenvalues", f32, 1, 256, "linalg.eigvalsh(a)", "torch.linalg.eigvalsh(a)", .where = ON_CPU),
    DOMINANT("expm", f32, 1, 256, "linalg.expm(x)", "torch.linalg.matrix_exp(x)", .where = ON_CPU),
    DOMINANT("expm", f64, 64, 16, "linalg.expm(x)", "torch.linalg.matrix_exp(x)", .where = ON_CPU),

    NORM_GRADIENTS(8192, 64, .goal = GOAL_CPU),
    NORM_GRADIENTS(4096, 256, .goal = GOAL_CPU),
    NORM_GRADIENTS(2048, 1024, .goal = GOAL_CPU),
    SOFTMAX_GRADIENT(8192, 64, .goal = GOAL_CPU),
    SOFTMAX_GRADIENT(2048, 1024),
    {"training", "cross entropy of 4096x1024, gradient", "x:f32[4096,1024] t:i64<1024[4096]",
     "loss = mean(cross_entropy(x, t)); loss, grad(loss, x)", "loss = mean(cross_entropy(x, t)); loss, grad(loss, x)"},
    {"training", "max pool 2x2 of 32x28x28x64, gradient", "x:f32[32,28,28,64] g:f32[32,14,14,64]",
     "y = max_pool2d(x, window=2); y, grad(sum(y * g), x)", "y = max_pool2d(x, window=2); y, vjp(y, g, x)"},
    {"training", "MLP of 784-128-10, batch of 64: loss and gradients",
     "x:f32[64,784] t:i64<10[64] w:f32~[784,128] b:f32[128] v:f32~[128,10] c:f32[10]",
     "loss = mean(cross_entropy(relu(x @ w + b) @ v + c, t)); loss, grad(loss, w, b, v, c)",
     "loss = mean(cross_entropy(relu(x @ w + b) @ v + c, t)); loss, grad(loss, w, b, v, c)"},
    {"training", "MLP of 1024-1024-1024, batch of 256: gradients",
     "x:f32[256,1024] g:f32[256,1024] w:f32~[1024,1024] b:f32[1024] v:f32~[1024,1024] c:f32[1024]",
     "y = gelu(x @ w + b) @ v + c; y, grad(sum(y * g), w, b, v, c)", "y = gelu(x @ w + b) @ v + c; y, vjp(y, g, w, b, v, c)",
     .work = 5 * 2.0 * 256 * 1024 * 1024, .goal = GOAL_CPU},
    {"training", "Adam's step of {{1024}}x4096 weights", "p:f32[{{1024}},4096] g:f32[{{1024}},4096] m:f32[{{1024}},4096] v:f32+[{{1024}},4096]",
     "adam(p, g, m, v, 3.0)", "adam(p, g, m, v)", .allowed = -1},
    LENET(64),
    LENET(1024, .allowed = 4e-3, .goal = GOAL_GPU),
    {"training", "transformer of 2 layers of 64, 8x64 tokens: loss and gradients",
     "i:i64<256[8,64] t:i64<256[8,64] e:f32[256,64]" LAYER_WEIGHTS("f32", "0", 64, 256) LAYER_WEIGHTS("f32", "1", 64, 256),
     "x = take(e, i, axis=0); " LAYER("0", 8, 64, 4, 16, 64) LAYER("1", 8, 64, 4, 16, 64)
     "loss = mean(cross_entropy(x @ e.T, t)); loss, grad(loss, e, " LAYER_NAMES("0") ", " LAYER_NAMES("1") ")",
     .goal = GOAL_CPU, .whole = true, .allowed = 1e-3},
    {"training", "residual block of 2 convolutions 3x3, 8x28x28x128: gradients",
     "x:f32[8,28,28,128] w:f32~[128,3,3,128] b:f32[128] v:f32~[128,3,3,128] c:f32[128] g:f32[8,28,28,128]",
     "y = relu(conv2d(relu(conv2d(x, w, b, padding=1)), v, c, padding=1) + x); y, grad(sum(y * g), x, w, b, v, c)",
     "y = relu(conv2d(relu(conv2d(x, w, b, padding=1)), v, c, padding=1) + x); y, vjp(y, g, x, w, b, v, c)",
     .work = 6 * 2.0 * 8 * 784 * 128 * 128 * 9, .allowed = 1e-3},

    {"networks", "f32 residual block of 2 convolutions 3x3, 8x28x28x128",
     "x:f32[8,28,28,128] w:f32~[128,3,3,128] b:f32[128] v:f32~[128,3,3,128] c:f32[128]",
     "relu(conv2d(relu(conv2d(x, w, b, padding=1)), v, c, padding=1) + x)", .work = 2 * 2.0 * 8 * 784 * 128 * 128 * 9},
    {"networks", "f16 residual block of 2 convolutions 3x3, 32x28x28x128",
     "x:f16[32,28,28,128] w:f16~[128,3,3,128] b:f16[128] v:f16~[128,3,3,128] c:f16[128]",
     "relu(conv2d(relu(conv2d(x, w, b, padding=1)), v, c, padding=1) + x)", .work = 2 * 2.0 * 32 * 784 * 128 * 128 * 9, .where = ON_GPU},
    {"networks", "f32 block of 1x1, depthwise 3x3, 1x1 of 8x28x28x64 to 256",
     "x:f32[8,28,28,64] w:f32~[256,1,1,64] v:f32[256,3,3,1] u:f32~[64,1,1,256]",
     "x + conv2d(relu(conv2d(relu(conv2d(x, w)), v, padding=1, groups=256)), u)", .work = 2.0 * 8 * 784 * 256 * (2 * 64 + 9)},
    {"networks", "f32 MLP of 784-512-512-10, batch of 1", "x:f32[1,784] w:f32~[784,512] b:f32[512] v:f32~[512,512] c:f32[512] u:f32~[512,10] d:f32[10]",
     "softmax(relu(relu(x @ w + b) @ v + c) @ u + d)"},
    {"networks", "f32 MLP of 784-512-512-10, batch of 256", "x:f32[256,784] w:f32~[784,512] b:f32[512] v:f32~[512,512] c:f32[512] u:f32~[512,10] d:f32[10]",
     "softmax(relu(relu(x @ w + b) @ v + c) @ u + d)", .work = 2.0 * 256 * (784 * 512 + 512 * 512 + 5120)},
    TRANSFORMER("f32", 4, 256, 8, 64, 512, 2048),
    TRANSFORMER("bf16", 4, 256, 8, 64, 512, 2048),
    TRANSFORMER("f16", 8, 1024, 16, 64, 1024, 4096, .where = ON_GPU),
};
// clang-format on
const size_t num_bench_cases = COUNT(bench_cases);
