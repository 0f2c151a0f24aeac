// SPDX-License-Identifier: MIT
// Cases of group "nn": layers, losses and activations beside torch.nn.functional, forward,
// and with their derivatives.
#include "cases.h"

// clang-format off
// Channels last on our side; PyTorch gets the same memory as a tensor of channels first.
#define LAST(name, inputs, ours, theirs, ...) \
    {"nn", name ", channels last", inputs, ours, "last(" theirs ")", __VA_ARGS__}
#define FIRST(name, inputs, ours, theirs, ...) {"nn", name ", channels first", inputs, ours, theirs, __VA_ARGS__}
#define GRAD(name, inputs, ours, theirs, xs, ...) \
    {"nn", name ", gradients", inputs, "y = " ours "; y, grad(sum(y * g), " xs ")", "y = " theirs "; y, vjp(y, g, " xs ")", __VA_ARGS__}
// Input of 1,048,576 elements.
#define MILLION "x:f32[{{1024}},1024]"
#define ACTIVATION(call) {"nn", call, MILLION, call, "F." call}
#define ACTIVATION_GRAD(call) GRAD(call, MILLION " g:f32[{{1024}},1024]", call, "F." call, "x")
#define PAIR "x:f32[{{1024}},1024] t:f32[{{1024}},1024]"
#define LOSS(call, inputs) {"nn", call, inputs, call, "F." call}
#define LOSS_GRAD(call, inputs) {"nn", call ", gradient", inputs, "y = " call "; y, grad(y, x)", "y = F." call "; y, grad(y, x)"}

const struct bench_case bench_nn_cases[] = {
    FIRST("conv1d of 16x64x1024", "x:f32[16,64,1024] w:f32[64,64,3]", "conv1d(x, w, padding=1, axis=1)", "F.conv1d(x, w, padding=1)", .work = 2.0 * 16 * 64 * 64 * 1024 * 3),
    LAST("conv1d of 16x1024x64", "x:f32[16,1024,64] w:f32[64,3,64]", "conv1d(x, w, padding=1)", "F.conv1d(first(x), first(w), padding=1)", .work = 2.0 * 16 * 64 * 64 * 1024 * 3),
    FIRST("conv3d of 2x32x16x16x16", "x:f32[2,32,16,16,16] w:f32[32,32,3,3,3]", "conv3d(x, w, padding=1, axis=1)", "F.conv3d(x, w, padding=1)", .work = 2.0 * 2 * 4096 * 32 * 32 * 27),
    LAST("conv3d of 2x16x16x16x32", "x:f32[2,16,16,16,32] w:f32[32,3,3,3,32]", "conv3d(x, w, padding=1)", "F.conv3d(first(x), first(w), padding=1)", .work = 2.0 * 2 * 4096 * 32 * 32 * 27),
    FIRST("conv3d of 4x3x16x32x32 to 16", "x:f32[4,3,16,32,32] w:f32[16,3,3,3,3]", "conv3d(x, w, padding=1, axis=1)", "F.conv3d(x, w, padding=1)", .work = 2.0 * 4 * 16384 * 3 * 16 * 27),
    LAST("conv3d of 4x16x32x32x3 to 16", "x:f32[4,16,32,32,3] w:f32[16,3,3,3,3]", "conv3d(x, w, padding=1)", "F.conv3d(first(x), first(w), padding=1)", .work = 2.0 * 4 * 16384 * 3 * 16 * 27),
    GRAD("conv3d of 2x16x16x16x32", "x:f32[2,16,16,16,32] w:f32[32,3,3,3,32] g:f32[2,16,16,16,32]", "conv3d(x, w, padding=1)", "last(F.conv3d(first(x), first(w), padding=1))", "x, w", .work = 6.0 * 2 * 4096 * 32 * 32 * 27),
    FIRST("conv_transpose1d of 16x64x512 by 2", "x:f32[16,64,512] w:f32[64,64,4]", "conv_transpose1d(x, w, stride=2, padding=1, axis=1)", "F.conv_transpose1d(x, w, stride=2, padding=1)"),
    LAST("conv_transpose2d of 8x28x28x64 by 2", "x:f32[8,28,28,64] w:f32[64,4,4,32]", "conv_transpose2d(x, w, stride=2, padding=1)", "F.conv_transpose2d(first(x), first(w), stride=2, padding=1)"),
    FIRST("conv_transpose2d of 8x64x28x28 by 2", "x:f32[8,64,28,28] w:f32[64,32,4,4]", "conv_transpose2d(x, w, stride=2, padding=1, axis=1)", "F.conv_transpose2d(x, w, stride=2, padding=1)"),
    LAST("conv_transpose3d of 2x8x8x8x32 by 2", "x:f32[2,8,8,8,32] w:f32[32,2,2,2,16]", "conv_transpose3d(x, w, stride=2)", "F.conv_transpose3d(first(x), first(w), stride=2)"),

    FIRST("max_pool1d of 32x64x1024", "x:f32[32,64,1024]", "max_pool1d(x, window=2, axis=1)", "F.max_pool1d(x, 2)"),
    LAST("max_pool1d of 32x1024x64", "x:f32[32,1024,64]", "max_pool1d(x, window=2)", "F.max_pool1d(first(x), 2)"),
    FIRST("max_pool2d 3x3 by 2 of 16x64x56x56", "x:f32[16,64,56,56]", "max_pool2d(x, window=3, stride=2, padding=1, axis=1)", "F.max_pool2d(x, 3, 2, 1)"),
    LAST("max_pool2d 3x3 by 2 of 16x56x56x64", "x:f32[16,56,56,64]", "max_pool2d(x, window=3, stride=2, padding=1)", "F.max_pool2d(first(x), 3, 2, 1)"),
    FIRST("max_pool3d of 4x32x16x28x28", "x:f32[4,32,16,28,28]", "max_pool3d(x, window=2, axis=1)", "F.max_pool3d(x, 2)"),
    LAST("max_pool3d of 4x16x28x28x32", "x:f32[4,16,28,28,32]", "max_pool3d(x, window=2)", "F.max_pool3d(first(x), 2)"),
    FIRST("avg_pool1d of 32x64x1024", "x:f32[32,64,1024]", "avg_pool1d(x, window=2, axis=1)", "F.avg_pool1d(x, 2)"),
    FIRST("avg_pool2d of 16x64x56x56", "x:f32[16,64,56,56]", "avg_pool2d(x, window=2, axis=1)", "F.avg_pool2d(x, 2)"),
    LAST("avg_pool2d of 16x56x56x64", "x:f32[16,56,56,64]", "avg_pool2d(x, window=2)", "F.avg_pool2d(first(x), 2)"),
    LAST("avg_pool2d 3x3 of 16x56x56x64", "x:f32[16,56,56,64]", "avg_pool2d(x, window=3, stride=1, padding=1)", "F.avg_pool2d(first(x), 3, 1, 1)"),
    LAST("avg_pool3d of 4x16x28x28x32", "x:f32[4,16,28,28,32]", "avg_pool3d(x, window=2)", "F.avg_pool3d(first(x), 2)"),
    LAST("adaptive_avg_pool2d of 16x56x56x64 to 7", "x:f32[16,56,56,64]", "adaptive_avg_pool2d(x, output_size=7)", "F.adaptive_avg_pool2d(first(x), 7)"),
    FIRST("adaptive_avg_pool2d of 16x64x50x50 to 7", "x:f32[16,64,50,50]", "adaptive_avg_pool2d(x, output_size=7, axis=1)", "F.adaptive_avg_pool2d(x, 7)"),
    LAST("adaptive_avg_pool2d of 16x50x50x64 to 7", "x:f32[16,50,50,64]", "adaptive_avg_pool2d(x, output_size=7)", "F.adaptive_avg_pool2d(first(x), 7)"),
    FIRST("adaptive_max_pool2d of 16x64x50x50 to 7", "x:f32[16,64,50,50]", "adaptive_max_pool2d(x, output_size=7, axis=1)", "F.adaptive_max_pool2d(x, 7)"),
    LAST("global_avg_pool of 32x28x28x128", "x:f32[32,28,28,128]", "global_avg_pool(x)", "F.adaptive_avg_pool2d(first(x), 1)"),
    FIRST("global_avg_pool of 32x128x28x28", "x:f32[32,128,28,28]", "global_avg_pool(x, axis=1)", "F.adaptive_avg_pool2d(x, 1)"),
    GRAD("max_pool2d 3x3 by 2 of 16x56x56x64", "x:f32[16,56,56,64] g:f32[16,28,28,64]", "max_pool2d(x, window=3, stride=2, padding=1)", "last(F.max_pool2d(first(x), 3, 2, 1))", "x", .whole = true),
    GRAD("max_pool3d of 4x16x28x28x32", "x:f32[4,16,28,28,32] g:f32[4,8,14,14,32]", "max_pool3d(x, window=2)", "last(F.max_pool3d(first(x), 2))", "x"),
    GRAD("avg_pool2d of 16x56x56x64", "x:f32[16,56,56,64] g:f32[16,28,28,64]", "avg_pool2d(x, window=2)", "last(F.avg_pool2d(first(x), 2))", "x", .whole = true),
    GRAD("avg_pool2d of 16x64x56x56", "x:f32[16,64,56,56] g:f32[16,64,28,28]", "avg_pool2d(x, window=2, axis=1)", "F.avg_pool2d(x, 2)", "x", .whole = true),

    LAST("interpolate nearest of 8x28x28x64 by 2", "x:f32[8,28,28,64]", "interpolate(x, scale_factor=[2])", "F.interpolate(first(x), scale_factor=2)"),
    FIRST("interpolate nearest of 8x64x28x28 by 2", "x:f32[8,64,28,28]", "interpolate(x, scale_factor=[2], axis=1)", "F.interpolate(x, scale_factor=2)"),
    FIRST("interpolate nearest of 8x64x28x28 to 50", "x:f32[8,64,28,28]", "interpolate(x, size=[50], axis=1)", "F.interpolate(x, 50)"),
    LAST("interpolate linear of 8x28x28x64 by 2", "x:f32[8,28,28,64]", "interpolate(x, scale_factor=[2], mode=linear)", "F.interpolate(first(x), scale_factor=2, mode='bilinear')"),
    FIRST("interpolate linear of 8x64x28x28 by 2", "x:f32[8,64,28,28]", "interpolate(x, scale_factor=[2], mode=linear, axis=1)", "F.interpolate(x, scale_factor=2, mode='bilinear')"),
    FIRST("interpolate cubic of 4x16x56x56 by 2", "x:f32[4,16,56,56]", "interpolate(x, scale_factor=[2], mode=cubic, axis=1)", "F.interpolate(x, scale_factor=2, mode='bicubic')"),
    GRAD("interpolate linear of 8x28x28x64 by 2", "x:f32[8,28,28,64] g:f32[8,56,56,64]", "interpolate(x, scale_factor=[2], mode=linear)", "last(F.interpolate(first(x), scale_factor=2, mode='bilinear'))", "x", .whole = true),
    GRAD("interpolate nearest of 8x28x28x64 by 2", "x:f32[8,28,28,64] g:f32[8,56,56,64]", "interpolate(x, scale_factor=[2])", "last(F.interpolate(first(x), scale_factor=2))", "x", .whole = true),

    LAST("batch_norm of 16x28x28x128", "x:f32[16,28,28,128] m:f32[128] v:f32+[128] w:f32[128] b:f32[128]", "batch_norm(x, m, v, w, b)[0]", "F.batch_norm(first(x), m, v, w, b)"),
    FIRST("batch_norm of 16x128x28x28", "x:f32[16,128,28,28] m:f32[128] v:f32+[128] w:f32[128] b:f32[128]", "batch_norm(x, m, v, w, b, axis=1)[0]", "F.batch_norm(x, m, v, w, b)"),
    LAST("batch_norm of 16x28x28x128, training", "x:f32[16,28,28,128] m:f32[128] v:f32+[128] w:f32[128] b:f32[128]", "batch_norm(x, m, v, w, b, training=true)[0]", "F.batch_norm(first(x), m, v, w, b, True)"),
    FIRST("batch_norm of 16x128x28x28, training", "x:f32[16,128,28,28] m:f32[128] v:f32+[128] w:f32[128] b:f32[128]", "batch_norm(x, m, v, w, b, training=true, axis=1)[0]", "F.batch_norm(x, m, v, w, b, True)"),
    GRAD("batch_norm of 16x28x28x128", "x:f32[16,28,28,128] m:f32[128] v:f32+[128] w:f32[128] b:f32[128] g:f32[16,28,28,128]", "batch_norm(x, m, v, w, b, training=true)[0]", "last(F.batch_norm(first(x), None, None, w, b, True))", "x, w, b"),
    GRAD("batch_norm of 16x128x28x28", "x:f32[16,128,28,28] m:f32[128] v:f32+[128] w:f32[128] b:f32[128] g:f32[16,128,28,28]", "batch_norm(x, m, v, w, b, training=true, axis=1)[0]", "F.batch_norm(x, None, None, w, b, True)", "x, w, b"),
    {"nn", "pixel_shuffle of 8x64x56x56", "x:f32[8,64,56,56]", "pixel_shuffle(x, 2, axis=1)", "F.pixel_shuffle(x, 2)"},
    {"nn", "unfold 3x3 of 8x16x56x56", "x:f32[8,16,56,56]", "unfold(x, window=[3], padding=[1], axis=1)", "F.unfold(x, 3, padding=1)"},
    {"nn", "fold 3x3 of 8x16x56x56", "x:f32[8,144,3136]", "fold(x, output_size=[56,56], window=[3], padding=[1], axis=1)", "F.fold(x, 56, 3, padding=1)", .whole = true},
    {"nn", "embedding bags of 4096x8", "i:i64<10000[4096,8] w:f32[10000,64]", "embedding_bag(i, w)", "F.embedding_bag(i, w)"},
    FIRST("instance_norm of 16x64x56x56", "x:f32[16,64,56,56] w:f32[64] b:f32[64]", "instance_norm(x, w, b, axis=1)", "F.instance_norm(x, None, None, w, b)"),
    LAST("instance_norm of 16x56x56x64", "x:f32[16,56,56,64] w:f32[64] b:f32[64]", "instance_norm(x, w, b)", "F.instance_norm(first(x), None, None, w, b)"),
    FIRST("local_response_norm of 8x64x56x56", "x:f32[8,64,56,56]", "local_response_norm(x, size=5, axis=1)", "F.local_response_norm(x, 5)"),
    GRAD("group norm of 8x56x56x64", "x:f32[8,56,56,64] w:f32[64] b:f32[64] g:f32[8,56,56,64]", "group_norm(x, w, b, groups=4)", "group_norm(x, w, b, 4)", "x, w, b"),

    LOSS("mse_loss(x, t)", PAIR), LOSS("l1_loss(x, t)", PAIR), LOSS("huber_loss(x, t)", PAIR), LOSS("smooth_l1_loss(x, t)", PAIR),
    LOSS("binary_cross_entropy_with_logits(x, t)", PAIR), LOSS("kl_div(x, t)", "x:f32[{{1024}},1024] t:f32+[{{1024}},1024]"),
    LOSS("binary_cross_entropy(x, t)", "x:f32+[{{1024}},1024] t:f32+[{{1024}},1024]"),
    LOSS("nll_loss(x, t)", "x:f32[{{2048}},1024] t:i64<1024[{{2048}}]"),
    LOSS("cosine_similarity(x, t, -1)", PAIR), LOSS("normalize(x, 2, -1)", MILLION),
    LOSS_GRAD("mse_loss(x, t)", PAIR), LOSS_GRAD("huber_loss(x, t)", PAIR), LOSS_GRAD("binary_cross_entropy_with_logits(x, t)", PAIR),
    LOSS_GRAD("nll_loss(x, t)", "x:f32[{{2048}},1024] t:i64<1024[{{2048}}]"),

    ACTIVATION("relu(x)"), ACTIVATION("relu6(x)"), ACTIVATION("leaky_relu(x, 0.1)"), ACTIVATION("elu(x)"), ACTIVATION("selu(x)"),
    ACTIVATION("celu(x, 2.0)"), ACTIVATION("silu(x)"), ACTIVATION("mish(x)"), ACTIVATION("hardswish(x)"), ACTIVATION("hardsigmoid(x)"),
    ACTIVATION("hardtanh(x)"), ACTIVATION("softplus(x)"), ACTIVATION("softsign(x)"), ACTIVATION("softshrink(x)"), ACTIVATION("logsigmoid(x)"),
    ACTIVATION("tanhshrink(x)"), ACTIVATION("glu(x)"),
    {"nn", "gelu(x), tanh", MILLION, "gelu(x, tanh)", "F.gelu(x, approximate='tanh')"},
    {"nn", "prelu of 16x64x28x28", "x:f32[16,64,28,28] w:f32[64]", "prelu(x, w, axis=1)", "F.prelu(x, w)"},
    ACTIVATION_GRAD("silu(x)"), ACTIVATION_GRAD("mish(x)"), ACTIVATION_GRAD("hardswish(x)"), ACTIVATION_GRAD("elu(x)"), ACTIVATION_GRAD("softplus(x)"),
    ACTIVATION_GRAD("relu(x)"), ACTIVATION_GRAD("gelu(x)"), ACTIVATION_GRAD("leaky_relu(x, 0.1)"),
};
// clang-format on
const size_t num_bench_nn_cases = COUNT(bench_nn_cases);
