# SPDX-License-Identifier: MIT
"""Losses: the operators of pack nn under MLX's names. reduction: "none", "mean" or "sum"."""

import tenon as tn


def _reduced(name, loss, reduction):
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{name}: reduction is {reduction!r}, expected 'none', 'mean' or 'sum'")
    return tn.mean(loss) if reduction == "mean" else tn.sum(loss)


def _like(targets, predictions):
    """Targets of integers and bools as floats of the predictions' dtype."""
    return targets if targets.dtype.kind == "f" else tn.astype(targets, predictions.dtype)


def cross_entropy(logits, targets, weights=None, axis=-1, label_smoothing=0.0, reduction="none"):
    """Of logits and classes, or probabilities of logits' shape; weights: a factor for each loss."""
    if targets.ndim == logits.ndim:
        own = -tn.sum(tn.log_softmax(logits, axis=axis) * _smoothed(targets, label_smoothing, axis), axis)
    else:
        own = tn.nn.cross_entropy(logits, targets, axis=axis, label_smoothing=label_smoothing)
    return _reduced("cross_entropy", own if weights is None else own * weights, reduction)


def _smoothed(targets, smoothing, axis):
    return targets * (1 - smoothing) + smoothing / targets.shape[axis] if smoothing else targets


def binary_cross_entropy(inputs, targets, weights=None, with_logits=True, reduction="mean"):
    """Of logits, or of probabilities."""
    targets = _like(targets, inputs)
    if with_logits:
        return tn.nn.binary_cross_entropy_with_logits(inputs, targets, weights, reduction=reduction)
    return tn.nn.binary_cross_entropy(inputs, targets, weights, reduction=reduction)


def nll_loss(inputs, targets, axis=-1, reduction="none"):
    """Less the log probabilities that the targets name."""
    return tn.nn.nll_loss(inputs, targets, axis=axis, reduction=reduction)


def kl_div_loss(inputs, targets, axis=-1, reduction="none"):
    """Of log probabilities both: sums along an axis of exp(targets) * (targets - inputs)."""
    return _reduced("kl_div_loss", tn.sum(tn.exp(targets) * (targets - inputs), axis), reduction)


def smooth_l1_loss(predictions, targets, beta=1.0, reduction="mean"):
    """Squares below beta, distances beyond."""
    return tn.nn.smooth_l1_loss(predictions, _like(targets, predictions), beta=beta, reduction=reduction)


def cosine_similarity_loss(x1, x2, axis=1, eps=1e-8, reduction="none"):
    """The cosine of the angle between vectors."""
    return _reduced("cosine_similarity_loss", tn.nn.cosine_similarity(x1, x2, axis=axis, eps=eps), reduction)


def margin_ranking_loss(inputs1, inputs2, targets, margin=0.0, reduction="none"):
    """max(0, -target * (x1 - x2) + margin)."""
    return tn.nn.margin_ranking_loss(inputs1, inputs2, _like(targets, inputs1), margin=margin, reduction=reduction)


def triplet_loss(anchors, positives, negatives, axis=-1, p=2, margin=1.0, eps=1e-6, reduction="none"):
    """Distances to the positives less those to the negatives, beyond -margin."""
    near = tn.nn.pairwise_distance(*(tn.moveaxis(x, axis, -1) for x in (anchors, positives)), p=p, eps=eps)
    far = tn.nn.pairwise_distance(*(tn.moveaxis(x, axis, -1) for x in (anchors, negatives)), p=p, eps=eps)
    return _reduced("triplet_loss", tn.maximum(near - far + margin, tn.zeros([], dtype=near.dtype)), reduction)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Less the log probability of labels over all alignments; log_probs: T, N, C."""
    return tn.nn.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=blank, reduction=reduction, zero_infinity=zero_infinity)


def cosine_embedding_loss(x1, x2, targets, margin=0.0, reduction="mean"):
    """1 - cosine where the target is 1, what the cosine has beyond margin where it is -1."""
    return tn.nn.cosine_embedding_loss(x1, x2, _like(targets, x1), margin=margin, reduction=reduction)


def gaussian_nll_loss(inputs, targets, vars, full=False, eps=1e-6, reduction="mean"):
    """Of means, targets and variances."""
    return tn.nn.gaussian_nll_loss(inputs, _like(targets, inputs), vars, full=full, eps=eps, reduction=reduction)


def _plain(operator, doc, reduction="mean", of_classes=False):
    """A loss of predictions and targets; of_classes: targets are numbers of classes."""
    default = reduction

    def loss(predictions, targets, reduction=default, **more):
        targets = targets if of_classes else _like(targets, predictions)
        return getattr(tn.nn, operator)(predictions, targets, reduction=reduction, **more)

    loss.__name__ = loss.__qualname__ = operator
    loss.__doc__ = doc
    return loss


l1_loss = _plain("l1_loss", "Distances of predictions and targets.")
mse_loss = _plain("mse_loss", "Squares of the distances of predictions and targets.")
huber_loss = _plain("huber_loss", "Squares below delta, distances beyond.", reduction="none")
hinge_loss = _plain("hinge_loss", "max(0, 1 - prediction * target).", reduction="none")
log_cosh_loss = _plain("log_cosh_loss", "log(cosh(distance)).", reduction="none")
poisson_nll_loss = _plain("poisson_nll_loss", "Of rates' logarithms and counts.")
soft_margin_loss = _plain("soft_margin_loss", "log(1 + exp(-target * prediction)).")
multi_margin_loss = _plain("multi_margin_loss", "Of scores and classes: how far others come near.", of_classes=True)
multilabel_margin_loss = _plain("multilabel_margin_loss", "Of scores and lists of classes.", of_classes=True)
multilabel_soft_margin_loss = _plain("multilabel_soft_margin_loss", "Of scores and marks of classes.")
hinge_embedding_loss = _plain("hinge_embedding_loss", "Of distances and marks, 1 or -1.")
