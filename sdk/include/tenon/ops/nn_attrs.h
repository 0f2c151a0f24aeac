// SPDX-License-Identifier: MIT
// Attribute structs of the primitives of pack "nn": for plugins that bring kernels or rules
// for these primitives. Each struct is frozen with the revision of its primitives.
//
//   // In a kernel for "nn.softmax/1"; tn_axis() is in <tenon/ops/base_attrs.h>.
//   const tn_softmax_attrs *attrs = call->attrs;
//   int32_t axis = tn_axis(attrs->axis, call->inputs[0].layout.rank);
//
// The core fills the structs, defaults included; they are borrowed for the call, and infer
// has accepted the values. Inputs are floats unless said otherwise. N, H, W, C are the axes
// of images: number, rows, columns, channels.
//
// Threads. Plain data: any thread.
#ifndef TENON_OPS_NN_ATTRS_H
#define TENON_OPS_NN_ATTRS_H

#include <tenon/attr.h>
#include <tenon/types.h>

// nn.conv2d/1 (x: N,H,W,C; w: O,kH,kW,C/groups; optional bias: O) -> N,oH,oW,O:
// cross-correlation, as torch.nn.functional.conv2d; the layout (channels last) is that of
// mlx.core.conv2d. An output has (H + 2 * padding - dilation * (kH - 1) - 1) / stride + 1
// rows, rounded down, and columns likewise.
//
// nn.conv2d_input/1 (gradient, w) -> x and nn.conv2d_weight/1 (x, gradient) -> w are the
// transposes of conv2d in x and in w: its derivatives.
//
// Each list has two numbers (rows, columns), or one for both.
typedef struct tn_conv2d_attrs {
    tn_ints stride;   // elements between windows, at least 1; not given: 1
    tn_ints padding;  // zeros on each side of x; not given: 0
    tn_ints dilation; // elements between those of a window, at least 1; not given: 1
    tn_ints extent;   // of the transposes only, required: rows and columns of x or w
    int64_t groups;   // parts that channels and filters are split into; default 1
} tn_conv2d_attrs;

// nn.max_pool2d/1 (x: N,H,W,C) -> N,oH,oW,C: the greatest element of each window, channel
// by channel, as torch.nn.functional.max_pool2d. nn.max_pool2d_grad/1 (x, out, gradient) ->
// x: its derivative, which gives each gradient to the first maximum of its window in
// row-major order. Lists as in tn_conv2d_attrs.
typedef struct tn_pool2d_attrs {
    tn_ints window; // rows and columns of a window; required
    tn_ints stride; // elements between windows; not given: the window's extents
    tn_ints
        padding; // minus infinities on each side, at most half of the window; not given: 0
} tn_pool2d_attrs;

// nn.mean_pool2d/1 (x: N,H,W,C) -> N,extent,C: the mean of each window, channel by channel,
// where x has zeros around: what average pooling is made of. Window i of an axis begins at
// element i * stride - before. nn.mean_pool2d_input/1 (gradient) -> N,extent,C, the images,
// is its transpose. Each list has two numbers, of rows and columns, or one for both.
typedef struct tn_mean_pool2d_attrs {
    tn_ints window; // rows and columns of a window; required, as all lists
    tn_ints stride; // elements between windows
    tn_ints before; // zeros above and left of x
    tn_ints after;  // zeros below and right of x that count; those behind them do not
    tn_ints extent; // rows and columns of the result
    int64_t count_padding; // 0: a mean is of elements of x alone; default 1
    int64_t divisor;       // what sums are divided by; 0: the elements that count
} tn_mean_pool2d_attrs;

// nn.resample2d/1 (x: N,H,W,C) -> N,extent,C: rows, then columns, each a sum of x's, by
// indices and weights that depend on its number alone (<tenon/ops/resample.h>): what
// interpolation and adaptive means are made of. nn.resample2d_input/1 (gradient) ->
// N,extent,C, the images, is its transpose. Steps of 0 are x's extent over the result's.
typedef struct tn_resample2d_attrs {
    tn_ints extent;        // rows and columns of the result; required
    double row_step;       // of x's rows from one of the result to the next; default 0
    double column_step;    // likewise
    int64_t mode;          // TN_RESAMPLE_...; default linear
    int64_t align_corners; // of linear and cubic: result 0 is element 0; default 0
} tn_resample2d_attrs;

// nn.softmax/1 (x): exp(x) / sum(exp(x)) along an axis. nn.log_softmax/1 (x): its
// logarithm, x - log(sum(exp(x))). Both subtract the maximum first, so that exp does not
// overflow. Of integers they are f64.
typedef struct tn_softmax_attrs {
    int64_t axis; // negative: from the end; default -1
} tn_softmax_attrs;

// nn.layer_norm/1 (x, weight, bias): with d = x - mean(x) along an axis,
// d / sqrt(mean(d * d) + eps) * weight + bias, as torch.nn.functional.layer_norm over one
// axis. weight and bias broadcast with x: for the last axis they have its extent, or are
// scalars. Half floats are computed in f32.
// nn.layer_norm_grad/1 (x, weight: n; gradient: x's type) -> the gradients of x, weight and
// bias, of rows along the last axis, of n elements: weight has x's dtype.
typedef struct tn_layer_norm_attrs {
    double eps;   // added to the variance; default 1e-5
    int64_t axis; // negative: from the end; default -1
} tn_layer_norm_attrs;

// nn.rms_norm/1 (x, weight): x / sqrt(mean(x * x) + eps) * weight, the mean along an axis,
// as torch.nn.functional.rms_norm over one axis. weight broadcasts with x, as above.
typedef struct tn_rms_norm_attrs {
    double eps;   // added to the mean of the squares; default 1e-5
    int64_t axis; // negative: from the end; default -1
} tn_rms_norm_attrs;

// nn.group_norm/1 (x: N, ..., C, ...; optional weight: C; optional bias: C) -> x's type: of
// each sample the channels in groups of adjacent ones, each with its mean m and variance v
// over its channels and all other axes: (x - m) / sqrt(v + eps) * weight + bias, as
// torch.nn.functional.group_norm. Channels are last, as in nn.conv2d; axis 1 is that of
// PyTorch. Half floats are computed in f32.
typedef struct tn_group_norm_attrs {
    int64_t groups; // a divisor of the number of channels; required
    double eps;     // added to the variance; default 1e-5
    int64_t axis;   // of channels, never the first one; default -1
} tn_group_norm_attrs;

// nn.cross_entropy/1 (logits: ..., classes; labels: integers ...) -> ...: the loss of each
// sample, log(sum(exp(logits))) - logits[label]. A label that is no class gives 0.
typedef struct tn_cross_entropy_attrs {
    int64_t reserved; // 0
} tn_cross_entropy_attrs;

// nn.gelu/1 (x): x times the normal distribution up to x, as torch.nn.functional.gelu.
typedef struct tn_gelu_attrs {
    int64_t approximate; // 0, "none": by erf. 1, "tanh": by a tanh, off by 1e-3 at most;
                         // 2, "sigmoid": x * sigmoid(1.702 * x), off by 0.02
} tn_gelu_attrs;

// nn.dropout/1 (x): x with each element zero with probability p, and the others divided by
// 1 - p, as torch.nn.functional.dropout. Which ones are zero follows from the seed and the
// element's number alone (base.random_bits): equal seeds give equal masks on each device.
typedef struct tn_dropout_attrs {
    double p;         // 0 to 1; default 0.5
    int64_t training; // 0: x as it is; default 1
    int64_t seed;     // a runtime attribute; default 0
} tn_dropout_attrs;

// nn.rope/1 (x: ..., T, ..., D; frequencies: R/2, R at most D; optional offset: integers)
// -> x: rotary position embedding (Su et al., "RoFormer: enhanced transformer with rotary
// position embedding", 2021). The pair i of the vector at position t is turned by
// (t + offset) * frequencies[i] radians; elements from R on stay as they are. Angles are
// computed in f32, or f64 for x of f64. `offset` is a number, or has one for each index of
// x's first axis.
typedef struct tn_rope_attrs {
    int64_t interleaved; // 1: pair i is elements 2i and 2i + 1; 0: i and i + R/2; default 0
    int64_t axis;        // of positions; default -2
} tn_rope_attrs;

// nn.scaled_dot_product_attention/1 (q: ..., H, L, E; k: ..., G, S, E; v: ..., G, S, F;
// optional mask; optional lengths: integers) -> ..., H, L, F: softmax(q k' * scale) v, as
// torch.nn.functional.scaled_dot_product_attention. H is a multiple of G: query head h
// reads head h / (H / G). With rank 3 the one leading axis is that of heads, with rank 2
// there are none. `mask` broadcasts to ..., H, L, S: bool, true where a key is seen, or of
// q's dtype, added to the scores. `lengths` is a number, or has one for each index of the
// first axis (rank 4 and more): keys from there on are not seen. A query that sees no key
// gives zeros.
//
// The position of query i is i; with `lengths` it is length - L + i: queries are the last
// ones of the sequence, as in a cache of keys and values that a step has just grown.
//
// nn.attention_grad/1 (q, k, v, out, gradient: ..., H, L, F; optional mask; optional
// lengths) -> q, k, v: its reverse-mode derivative, from its output `out` and that output's
// gradient, which computes the scores again instead of keeping them. Kernels of both have
// no buffer of L x S elements. Second and forward-mode derivatives, and the gradient of an
// added mask, come from the definition, which has such buffers.
//
// nn.attention_with_sinks/1 (q; k; v; sinks: H; optional mask; optional lengths): each head
// has one score more, its sink, which belongs to no key: the softmax divides by exp(sink),
// too. nn.attention_with_sinks_grad/1 (q, k, v, sinks, out, gradient, mask, lengths) -> q,
// k, v, and ..., H, L: what each query gives its sink, in f32 for half floats.
typedef struct tn_attention_attrs {
    double scale;      // of the scores; 0: 1 / sqrt(E)
    int64_t is_causal; // 1: a query sees keys up to its own position; default 0
    int64_t window;    // keys that a query sees up to its position; 0: all
    double soft_cap;   // scores become soft_cap * tanh(score / soft_cap); 0: they stay
} tn_attention_attrs;

// nn.recurrence/1 (given: L,N,G*H; w: G*H,H; h: N,H; c: N,H of an LSTM; optional b: G*H, of
// a GRU 4*H) -> out: L,N,H: what nn.lstm, nn.gru and nn.rnn are made of. `given` is the
// input's share of the gates of H units, w the weight of the output of the position before;
// h and c are the state before the first position. b is added to the sums of gates; of a
// GRU to r, z, given's share of n, and w's share of n. Gates are PyTorch's, in its order:
// i, f, g, o of an LSTM (G is 4), r, z, n of a GRU (3), and one else. Behind out, an LSTM
// has the outputs c: N,H, of the last position, cells: L,N,H and gates: L,N,4*H; a GRU has
// own: L,N,H, w's share of n with the last of b, and gates: L,N,3*H.
//
// nn.recurrence_steps/1, with the same inputs, is the primitive that nn.recurrence becomes
// on a device, and that kernels are for. With `keeps` 0 it has no output for derivatives:
// an LSTM has out and c, others out alone.
//
// nn.recurrence_grad/1 (gradient: L,N,H; w; out; h; gates; cells or own; c; gradient_c) ->
// given: L,N,G*H; h: N,H; and c: N,H of an LSTM, or own: L,N,H of a GRU: the derivative in
// reverse mode, but for w's, which is a product over all positions at once. Kinds without
// gates have the first four inputs, a GRU the first six.
enum { TN_RECURRENCE_LSTM, TN_RECURRENCE_GRU, TN_RECURRENCE_TANH, TN_RECURRENCE_RELU };
typedef struct tn_recurrence_attrs {
    int64_t kind;    // TN_RECURRENCE_...; default LSTM
    int64_t reverse; // 1: from the last position to the first; default 0
    int64_t keeps;   // of nn.recurrence_steps: 1: gives what derivatives need; default 1
} tn_recurrence_attrs;

// nn.sgd/1 (p, g, m) -> p, m: one step of gradient descent with momentum, as
// torch.optim.SGD: m' = momentum * m + g + weight_decay * p; p' = p - lr * m'. All arrays
// have p's extents; outputs may take over the memory of p and m.
typedef struct tn_sgd_attrs {
    double lr;           // learning rate, a runtime attribute; default 0.01
    double momentum;     // default 0
    double weight_decay; // default 0
} tn_sgd_attrs;

// nn.adam/1 (p, g, m, v, step: scalar, from 1) -> p, m, v: one step of Adam (Kingma and
// Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1) with decoupled
// weight decay (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019),
// which is torch.optim.AdamW. The weight decay of torch.optim.Adam, which is part of the
// gradient, is that of optim.adam/1.
typedef struct tn_adam_attrs {
    double lr;           // learning rate, a runtime attribute; default 1e-3
    double beta1;        // share of the first moment m that stays; default 0.9
    double beta2;        // share of the second moment v that stays; default 0.999
    double eps;          // added to the square root of v; default 1e-8
    double weight_decay; // decoupled: share of p that a step of lr 1 takes away; default 0
} tn_adam_attrs;

#endif // TENON_OPS_NN_ATTRS_H
