# SPDX-License-Identifier: MIT
"""Wrong arguments of operators: each gives one sentence that says what was got, and what is expected. A bound that
is too small is none: the first elements are there, and `count` says how many there are."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import tap  # noqa: E402

GIVEN = ("x=[1.0, 2, 3]", "i=[1, 2, 3]")
WRONG = """
pad(x, before=[-1], after=[0])|before of axis 0 is -1, expected at least 0
pad(x[:0], before=[1], after=[0], mode=reflect)|axis 0 has no elements: only mode constant pads it
pad(x, before=[1, 1], after=[0])|before has 2 counts, expected one for each of 1 axes
pad_constant(x, before=[-1], after=[0])|before is -1 for axis 0, expected at least 0
zeros([-1, 2])|shape is [-1, 2], expected extents of at least 0
eye(-1)|n is -1 and m -1, expected n at least 0
tri(2, m=-3)|shape is [2, -3], expected extents of at least 0
linspace(0, 1, -1)|num -1, expected finite numbers and num at least 0
broadcast_to(x, [-1])|shape is [-1], expected extents of at least 0
tile(x, [-1])|reps[0] is -1, expected at least 0
repeat(x, [-1])|repeats[0] is -1, expected at least 0
resize(x, [-2])|shape is [-2], expected extents of at least 0
indices([-1])|shape is [-1], expected extents of at least 0
diag_indices(-1)|n is -1, expected at least 0
diag_indices(2, ndim=0)|ndim is 0, expected 1 .. 8
diag_indices_from(x)|x has shape [3], expected equal extents of 2 axes or more
tril_indices(-1)|-1 rows and -1 columns, expected 0 .. 1073741824
boolean_mask(x, [true], size=1)|mask has shape [1], expected the first extents of x, [3]
boolean_mask(x, [[true, false, true]], size=1)|mask has shape [1, 3], expected the first extents of x, [3]
boolean_mask(x, [true, false, true], size=-1)|size is -1, expected at least 0
nonzero(x, size=-1)|size is -1, expected at least 0
argwhere(x, size=-1)|size is -1, expected at least 0
unique_values(x, size=-2)|size is -2, expected at least 0
intersect1d(x, x, size=-1)|size is -1, expected at least 0
trim_zeros(x, size=-1)|size is -1, expected at least 0
trim_zeros([[1]], size=2)|x has rank 2, expected 1
bincount(i, length=-1)|length is -1, expected at least 0
histogram(x, bins=0)|bins is 0, expected at least 1
histogram2d(x, x[:2])|x has 3 elements, y 2
histogram2d(x, x, bins=[1, 2, 3])|bins has 3 values, expected 1 or 2
histogramdd(x)|sample has shape [3], expected rows of 1 .. 8 coordinates
histogramdd([[1.0, 2]], lo=[1])|lo or hi has another number of values than 2
unravel_index(i, [0, 2])|shape is [0, 2], expected extents of at least 1
unravel_index(i, [])|shape is [], expected at least one extent
ravel_multi_index(i, i, dims=[2])|2 arrays of indices, expected 1, one an extent
delete(x, [3])|index 3 is out of range for axis 0 with 3 elements
insert(x, 1.0, [-4])|index -4 is out of range for axis 0 with 3 elements
select([true], x, [true])|got 3 arrays, expected pairs of a condition and a choice
choose(x, x)|x is f64, expected an integer dtype
packbits(x)|x is f64, expected an integer dtype
unpackbits(i)|x is i64, expected u8
lexsort(x, [1, 2])|key 1 has shape [2], expected that of key 0, [3]
interp(x, [1.0, 2], [1.0])|xp has shape [2] and fp [1], expected equal vectors of at least one element
cov([[[1.0]]])|x has rank 3, expected at most 2
gradient(x[:1])|axis 0 has 1 elements, expected at least 2
gradient(x, x[:2])|spacing of axis 0 has rank 1 and 2 elements, expected a number or 3
gradient(x, edge_order=3)|edge_order is 3, expected 1 or 2
gradient(x, 1.0, 2.0)|got 2 spacings, expected one, or one for each of 1 axes
gradient(1.0)|no axis to go along
unwrap(x, axis=1)|axis 1 is out of range for rank 1
geomspace(-1, 1)|start is -1 and stop 1, expected finite numbers of one sign
vander(x, -2)|x has rank 1 and n is -2, expected rank 1 and at least 0
hadamard_transform([1, 2, 3, 4, 5, 6])|extent 6, expected a power of two, or 12, 20 or 28 times one
gcd(x, i)|x is f64, expected an integer dtype
ldexp(x, x)|i is f64, expected an integer dtype
sum(x, dtype=f8_e4m3)|input x is f8_e4m3, expected one of bool, i8
cumsum(x, axis=1, dtype=f32)|axis 1 is out of range for rank 1
nanargmax(x[:0])|x has shape [0], expected at least one element to reduce
split(x)|got neither sections nor indices, expected one of them
split(x, 1, indices=[1])|got both sections and indices, expected one of them
random_bits(x, [2])|key is f64[3], expected u32[2]
random_uniform(i[:2], [2])|key is i64[2], expected u32[2]
random_normal(astype(i[:2], u64), [2])|key is u64[2], expected u32[2]
random.bits(i[:2], [2])|key is i64[2], expected u32[2]: random.key makes one of a seed
random.uniform(astype(i, u32), [2])|key is u32[3], expected u32[2]: random.key makes one of a seed
random.normal(astype(i[:2], i32), [2])|key is i32[2], expected u32[2]: random.key makes one of a seed
random.split(1.0)|key is f64[], expected u32[2]: random.key makes one of a seed
random.split(random.key(1), -1)|num is -1, expected at least 0
random.uniform(random.key(1), shape=[-1])|shape is [-1], expected extents of at least 0
random.choice(random.key(1), x, shape=[5], replace=false)|5 of 3 are to be chosen, expected at most as many without replace
random.multivariate_normal(random.key(1), [1.0, 2], [[1.0]])|cov has shape [1, 1], expected [..., 2, 2] for means of 2
linalg.inv([[1.0, 2, 3]])|a has shape [1, 3], expected square matrices
linalg.cholesky(x)|a has shape [3], expected a matrix: at least 2 axes
linalg.solve_triangular([[1.0, 2], [0, 3]], x)|a has shape [2, 2] and b [3], expected 2 rows of b
linalg.cholesky([[1, 2], [2, 5]])|input a is i64, expected one of f32, f64, complex64, complex128
conv1d(x, x)|x has shape [3], expected 3 axes: N, L, C
conv1d(ones([1, 3, 1]), ones([1, 4, 1]))|w has 4 elements along L, which reach over 4, expected no more than the 3 of x with its padding
conv1d(ones([1, 3, 1]), ones([2, 1, 2]))|x has 1 channels, w takes 2 and has 2 filters: expected groups of them, groups is 1
conv1d(ones([1, 1, 3]), ones([2, 1, 2]), axis=0)|axis is 0, expected 1 or 2
conv2d(ones([1, 3, 3, 2]), ones([3, 2, 2, 1]), groups=2)|x has 2 channels, w takes 1 and has 3 filters: expected groups of them, groups is 2
conv2d(ones([1, 3, 3, 1]), ones([1, 2, 2, 1]), padding=[1, 2, 3])|padding has 3 values, expected 1, 2, or 4: two an axis
conv3d(ones([1, 3, 3, 3, 1]), ones([1, 2, 2, 2, 1]), stride=[1, 0, 1])|stride is 0, expected at least 1 and at most 2147483647
conv3d(ones([1, 3, 3, 3, 1]), ones([1, 2, 2, 2, 1]), ones([2]))|bias has shape [2], expected [1]
conv_transpose1d(ones([1, 3, 1]), ones([2, 3, 1]))|x has 1 channels, w takes 2: expected as many, in groups, and groups is 1
conv_transpose2d(ones([1, 1, 1, 1]), ones([1, 1, 1, 1]), padding=3)|padding is 3 and 3 along H, and nothing is left of the result: expected less than 1 together
conv_transpose1d(ones([1, 0, 1]), ones([1, 3, 1]))|x has 0 elements along L, expected at least 1, and at most 2147483647 of the result
conv_transpose1d(ones([1, 9, 1]), ones([1, 1, 1]), stride=2147483647)|x has 9 elements along L, expected at least 1, and at most 2147483647 of the result
conv1d(ones([1, 9, 1]), ones([1, 1, 1]), input_dilation=2147483647)|input_dilation is 2147483647, too much for 9 elements
max_pool1d(ones([1, 3, 1]), window=5)|window is 5, expected no more than the 3 elements of x with its padding, of which x has one
max_pool1d(ones([1, 3, 1]), window=2, padding=2)|padding is 2 and 2, expected at most half of the window's 2
avg_pool2d(ones([1, 3, 3]), window=2)|x has shape [1, 3, 3], expected 4 axes: N, H, W, C
avg_pool3d(ones([1, 3, 3, 3, 1]), window=[2, 2])|window has 2 values, expected 1, or 3 for depth, rows and columns
adaptive_avg_pool1d(ones([1, 3, 1]), output_size=0)|output_size is 0, expected at least 1 and at most 2147483647
adaptive_max_pool1d(ones([1, 0, 1]), output_size=2)|x has no elements along axis 1, expected at least 1
global_avg_pool(ones([2, 3]))|x has shape [2, 3] and axis is -1, expected 3 axes or more, and axis 1 or -1
mean_pool2d(ones([1, 3, 3, 1]), window=2, stride=2, before=0, after=0, extent=9)|9 windows of 2, 2 apart from -0 on, expected all to begin in 3 elements and 0 behind them, each number at most 536870911
celu(x, alpha=0)|alpha is 0, expected another number
glu(x)|x has 3 elements along axis 0, expected an even number: values and their gates
glu(ones([2, 2]), axis=2)|axis is 2, expected one of x's 2
prelu(ones([2, 3]), ones([2]))|weight has shape [2], expected [3]
mse_loss(x, x[:2])|target has shape [2], expected [3]
l1_loss(x, astype(x, f32))|target is f32, expected f64
binary_cross_entropy(x, x, x[:1])|weight has shape [1], expected [3]
kl_div(x, x[:1])|target has shape [1], expected [3]
gaussian_nll_loss(x, x, x[:2])|shape [2] does not broadcast to [3]
normalize(x, p=0)|p is 0, expected more than 0
margin_ranking_loss(x, x, x[:1])|target has shape [1], expected [3]
cosine_embedding_loss(ones([2, 2, 2]), ones([2, 2, 2]), ones([2, 2]))|x1 has shape [2, 2, 2], expected rank 2: N, D
triplet_margin_loss(x, x, x, p=-1)|p is -1, expected more than 0
nll_loss(ones([3, 2], dtype=f64), i[:2])|labels has shape [2], expected [3]
nll_loss(ones([3, 2], dtype=f64), i, x)|weight has shape [3], expected [2]
cross_entropy(ones([3, 2], dtype=f64), i, label_smoothing=2)|label_smoothing is 2, expected 0 to 1
cross_entropy(ones([3, 2], dtype=f64), x)|labels has shape [3], expected [3, 2]
cross_entropy(ones([3, 0], dtype=f64), i)|there are no classes along axis 1
linear(ones([2, 3]), ones([4, 2]))|x has shape [2, 3] and w [4, 2], expected 2 elements along the last axis of both
linear(ones([2, 3]), ones([4, 3]), ones([3]))|bias has shape [3], expected [4]
batch_norm(ones([2, 3]))|running_mean and running_var are not given, expected both, or in training neither
batch_norm(ones([2, 3]), ones([2]), ones([3]))|running_mean has shape [2], expected [3]
batch_norm(ones([1, 3]), training=true)|x has 1 elements a channel, expected more than 1 in training
batch_norm(ones([2, 3]), ones([3]), ones([3]), axis=2)|axis is 2, expected one of x's 2
instance_norm(ones([2, 3, 2]), ones([3]))|nn.group_norm/1: weight has shape [3], expected [2]
interpolate(ones([1, 3, 1]))|size and scale_factor are not given, expected one of both
interpolate(ones([1, 3, 1]), size=[2], scale_factor=[2])|size and scale_factor are both given, expected one of both
interpolate(ones([1, 3, 1]), size=[2, 2])|size has 2 values, expected 1
interpolate(ones([1, 3, 1]), scale_factor=[0.1])|axis 1 has 3 elements and would have 0, expected 1 to 2147483647
interpolate(ones([3, 1]), size=[2])|x has shape [3, 1], expected rank 4: images, or one axis less or more
lstm(ones([2, 3, 4]), ones([8, 4]), ones([8, 3]))|w_ih has shape [8, 4], expected [12, 4]
gru(ones([2, 3, 4]), ones([6, 4]), ones([6, 2]), ones([6]), ones([5]))|b_hh has shape [5], expected [6]
rnn(ones([4]), ones([2, 4]), ones([2, 2]))|x has shape [4], expected 2 axes, L, I, or 3: L, N, I
lstm(ones([2, 3, 4]), ones([8, 4]), ones([8, 2]), ones([8]), ones([8]), ones([2, 2]))|h has shape [2, 2], expected [3, 2]
causal_conv1d(ones([1, 3, 2]), ones([2, 3, 1]), ones([2]), ones([1, 3, 2]), groups=2)|state has shape [1, 3, 2], expected [1, 2, 2]
causal_conv1d(ones([1, 0, 2]), ones([2, 3, 2]))|x has no positions, expected at least 1
causal_conv1d(ones([1, 3, 2]), ones([2, 3, 2]), dilation=0)|dilation is 0 of 3 elements, expected at least 1, and a reach of at most 2147483647
max_pool1d(ones([1, 3, 1]), window=2, dilation=3)|window is 4, expected no more than the 3 elements of x with its padding, of which x has one
max_pool1d(ones([1, 3, 1]), window=2, dilation=0)|dilation is 0, expected at least 1 and at most 2147483647
max_pool1d(ones([1, 1, 1]), window=2, dilation=2, padding=1)|dilation is 2, expected at most the 1 elements of x, so that each window has one
max_pool2d_with_indices(ones([1, 3, 3, 1]), window=2, stride=-1)|stride is -1, expected at least 1 and at most 2147483647
max_pool2d_with_indices(ones([1, 3, 3]), window=2)|x has shape [1, 3, 3], expected 4 axes: N, H, W, C
adaptive_max_pool2d_with_indices(ones([1, 3, 3, 1]), output_size=[1, 2, 3])|output_size has 3 values, expected 1, or 2 for rows and columns
max_unpool1d(ones([1, 2, 1]), zeros([1, 1, 1], dtype=i64), window=2)|indices has shape [1, 1, 1], expected [1, 2, 1]
max_unpool1d(ones([1, 2, 1]), zeros([1, 2, 1], dtype=i64), window=2, padding=4)|an axis of 2 elements would have -4, expected 1 to 2147483647
lp_pool1d(ones([1, 4, 1]), 0, window=2)|norm_type is 0, expected a finite number above 0
lp_pool2d(ones([1, 4, 4, 1]), 2, window=5)|nn.avg_pool2d/1: window is 5, expected no more than the 4 elements of x with its padding
grid_sample(ones([1, 2, 2, 1]), ones([2, 2, 2, 2]))|grid has shape [2, 2, 2, 2], expected 1 grids of 2 axes, and 2 coordinates last
grid_sample(ones([1, 0, 2, 1]), ones([1, 2, 2, 2]))|x has shape [1, 0, 2, 1], expected elements along each axis of its images
grid_sample(ones([1, 2, 2, 2, 1]), ones([1, 2, 2, 2, 3]), mode=bicubic)|mode is bicubic and x has rank 5, expected 4: images
affine_grid(ones([1, 2, 3]), [1, 1, 2])|size has 3 values, expected 4 or 5
affine_grid(ones([1, 2, 3]), [1, 1, 0, 2])|size is 0 for axis 2, expected 1 to 2147483647
affine_grid(ones([1, 2, 2]), [1, 1, 2, 2])|theta has shape [1, 2, 2], expected [1, 2, 3]
ctc_loss(ones([5, 2, 3]), ones([2, 2], dtype=i64), [5, 5], [2, 2], blank=3)|blank is 3, expected one of 3 classes
ctc_loss(ones([5, 2, 3]), ones([3, 2], dtype=i64), [5, 5], [2, 2])|targets has shape [3, 2], expected [2, 2]
ctc_loss(ones([5, 2, 3]), ones([2, 2], dtype=i64), [5], [2, 2])|input_lengths has shape [1], expected [2]
ctc_loss(ones([5]), [1], 5, 1)|log_probs has shape [5], expected rank 3: T, N, C, or 2: T, C
pixel_shuffle(ones([1, 2, 2, 6]), 2)|upscale_factor is 2 and x has 6 channels, expected a number, 1 to 32767, with a square that divides them
pixel_shuffle(ones([1, 2, 2, 4]), 0)|upscale_factor is 0 and x has 4 channels
pixel_unshuffle(ones([1, 4, 3, 1]), 2)|downscale_factor is 2 and x has 3 columns, expected a number, 1 to 32767, that divides them
channel_shuffle(ones([1, 5]), 2)|groups is 2 and x has 5 channels
unfold(ones([1, 3, 3, 1]), [4])|a window reaches over 4 elements, expected no more than the 3 of an axis with its padding
unfold(ones([1, 3, 3, 1]), [2], stride=[-1])|stride is -1, expected at least 1 and at most 2147483647
unfold(ones([1, 3, 3, 1]), [2], dilation=[0])|dilation is 0, expected at least 1 and at most 2147483647
resample2d(ones([1, 2, 2, 1]), extent=[0])|extent is 0, expected at least 1 and at most 2147483647
resample2d(ones([1, 0, 2, 1]), extent=[3])|x has no elements along axis 1, expected at least 1
resample2d(ones([1, 2, 2, 1]), extent=[3], row_step=-1)|a step is -1, expected 0 to 2147483647
conv1d(ones([1, 3, 2]), ones([2, 2, 2]), stride=[-1])|stride is -1, expected at least 1 and at most 2147483647
conv1d(ones([1, 3, 2]), ones([2, 2, 2]), dilation=[-1])|dilation is -1, expected at least 1
conv1d(ones([1, 3, 2]), ones([2, 2, 2]), padding=[-1])|padding is -1, expected at least 0
conv1d(ones([1, 3, 2]), ones([2, 0, 2]))|w has no elements, expected at least 1 along axis 1
conv2d(ones([1, 4, 4, 3]), ones([2, 3, 3, 2]), groups=2)|x has 3 channels, w takes 2 and has 2 filters: expected groups of them, groups is 2
conv2d(ones([1, 4, 4, 4]), ones([4, 3, 3, 4]), groups=-2)|x has 4 channels, w takes 4 and has 4 filters: expected groups of them, groups is -2
conv3d(ones([1, 3, 3, 3, 2]), ones([2, 4, 2, 2, 2]))|w has 4 elements along D, which reach over 4, expected no more than the 3 of x with its padding
avg_pool1d(ones([1, 4, 1]), window=2, stride=-1)|stride is -1, expected at least 1
avg_pool2d(ones([1, 4, 4, 1]), window=[0, 2])|window is 0, expected at least 1
batch_norm(ones([0, 3]), training=true)|x has 0 elements a channel, expected more than 1 in training
unfold(ones([1, 1, 1, 1, 1]), [1], padding=[1000000])|all windows together have 8.00001e+18 elements, expected at most 2^48
adaptive_max_pool3d_with_indices(ones([1, 1, 1, 1, 1]), output_size=[2000000000])|all windows together have 6.4e+28 elements, expected at most 2^48
max_unpool3d(ones([1, 2, 2, 2, 1]), zeros([1, 2, 2, 2, 1], dtype=i64), window=[1], stride=[2000000000])|all windows together have 8e+27 elements, expected at most 2^48
unfold(ones([3, 3]), [2])|x has shape [3, 3], expected 4 axes: N, H, W, C
fold(ones([1, 3, 4]), [3, 3], [2])|x has shape [1, 3, 4], expected 4 windows and a multiple of their 4 elements
fold(ones([1, 4, 4]), [3, 3, 3, 3], [2])|output_size has 4 values, expected 1 to 3, one an axis
dropout2d(ones([2, 3, 4]))|x has shape [2, 3, 4], expected rank 4: N, H, W, C
dropout1d(ones([2, 3, 4]), p=2)|p is 2, expected 0 to 1
feature_alpha_dropout(x)|x has shape [3], expected 2 axes or more
alpha_dropout(x, p=-1)|p is -1, expected 0 to 1
rrelu(x, lower=1, upper=0)|lower is 1 and upper 0, expected lower to be no more
gumbel_softmax(x, tau=0)|tau is 0, expected more than 0
gumbel_softmax(x, axis=1)|axis is 1, expected one of x's 1
bilinear(ones([2, 3]), ones([2, 4]), ones([5, 4, 3]))|x1 has shape [2, 3] and x2 [2, 4], expected as many vectors of 4 and 3 elements
bilinear(ones([2, 3]), ones([2, 4]), ones([5, 3, 4]), ones([4]))|bias has shape [4], expected [5]
embedding_bag(i, ones([4, 2]))|x has shape [3], expected rank 2: N, L
embedding_bag([[1, 2]], ones([4, 2]), [0])|x has shape [1, 2], expected rank 1: L
embedding_bag(i, ones([4, 2]), [0], ones([3]), mode=max)|per_sample_weights are given and mode is max, expected sum
local_response_norm(ones([2, 3]), 0)|size is 0, expected 1 to 32767
multi_margin_loss(ones([3, 2]), [0, 1])|target has shape [2], expected [3]
multi_margin_loss(ones([2, 2]), [0, 1], p=3)|p is 3, expected 1 or 2
multilabel_margin_loss(ones([2, 0]), zeros([2, 0], dtype=i64))|x has no classes along its last axis
multilabel_soft_margin_loss(ones([2, 3]), ones([2, 3]), ones([2]))|weight has shape [2], expected [3]
pairwise_distance(x, x, p=0)|p is 0, expected more than 0
pdist(x)|x has shape [3], expected rank 2: N, D
attention_with_sinks(ones([2, 3, 4]), ones([2, 3, 4]), ones([2, 3, 4]), ones([3]))|sinks has shape [3], expected [2]
attention_with_sinks(ones([2, 3, 4]), ones([2, 3, 4]), ones([3, 3, 4]), ones([2]))|q has shape [2, 3, 4], k [2, 3, 4] and v [3, 3, 4], expected [..., H, L, E], [..., G, S, E] and [..., G, S, F] with H a multiple of G
"""
SMALL = """
unique_values([3, 1, 2, 1], size=2)|[1 2]|3
nonzero([5, 0, 7, 8], size=2)|[0 2]|3
boolean_mask(x, [true, true, true], size=0)|[]|3
setxor1d([1, 2], [2, 3, 4], size=1)|[1]|3
trim_zeros([0, 1, 2, 0], size=1)|[1]|2
"""


def rows(table):
    return [line.split("|") for line in table.strip().splitlines()]


def wrong_arguments_are_told():
    for call, sentence in rows(WRONG):
        message = tap.refused("eval", call, *GIVEN, saying=sentence).stderr
        first, *rest = message.splitlines()
        assert first.startswith(("tenon: base.", "tenon: random.", "tenon: linalg.", "tenon: nn.")) and sentence in first, f"{call}: {message}"
        assert all(line.startswith("  ") for line in rest), f"{call}: more than a sentence: {message}"


def a_small_bound_keeps_the_first():
    for call, values, count in rows(SMALL):
        out = tap.tenon("eval", call, *GIVEN).stdout.splitlines()
        assert [out[1], out[3]] == [values, count], f"{call}: {out}"


if __name__ == "__main__":
    tap.run([wrong_arguments_are_told, a_small_bound_keeps_the_first])
