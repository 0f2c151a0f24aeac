# SPDX-License-Identifier: MIT
"""Groups of processes that were started together (`tenon run -n 4 python3 program.py`): tenon.dist.

    world = tenon.dist.init()
    total = world.all_reduce(x)                     # a part of the graph, with derivatives
    pair = world.split(world.rank // 2)

A collective is computed when its result is, in the order in which they were applied, and each member of the group
applies the same ones. One that fails raises where the result is read: RankError, an OSError, where a member ended or
was stopped, with its rank; OSError where one did not come in time; ValueError where members disagree on what to do. The group is broken then:
its collectives raise the same again.
"""

import functools
import itertools
import math

from . import _core
from ._core import Array, RankError
from ._tree import flatten, unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._types import ArrayLike, DTypeLike
del TYPE_CHECKING

__all__ = ["Group", "RankError", "init", "leave"]

_numbers = itertools.count(1)  # of groups that were made


class Group:
    """A group that this process is a member of. Its methods apply the operators of pack dist in it.

    name: what the operators' attribute `group` takes; rank: of this process, 0 to size - 1; size: members; library:
    "Open MPI v4.1.4", say; can_shrink: whether the members that are left can go on when one has failed."""

    name: str
    rank: int
    size: int
    library: str
    can_shrink: bool

    def __init__(self, name: str = "world"):
        self.name = name
        self.rank, self.size, self.library, can_shrink = _core.group_find(name)
        self.can_shrink = bool(can_shrink)

    def __repr__(self) -> str:
        return f"Group('{self.name}', rank {self.rank} of {self.size})"

    # --- groups ---

    def split(self, color: int, key: int = 0, name: str | None = None) -> "Group | None":
        """The group of those members that give the same color, in the order of key, then of rank. With a color below 0
        this process is in none: None. All members call it."""
        made = name or f"{self.name[:40]}.{next(_numbers)}"
        _core.group_split(self.name, color, key, made)
        return Group(made) if color >= 0 else None

    def shrink(self, name: str | None = None) -> "Group":
        """The group of the members that are left when one has failed; all of these call it. Open MPI 5 can
        (can_shrink); elsewhere NotImplementedError."""
        made = name or f"{self.name[:40]}.{next(_numbers)}"
        _core.group_shrink(self.name, made)
        return Group(made)

    def set_deadline(self, seconds: float | None) -> None:
        """Collectives of the group end within this time from their start, or raise; None: however long they take."""
        _core.group_set_deadline(self.name, 0 if seconds is None else max(1, round(1000 * seconds)))

    def abort(self, reason: str) -> None:
        """Breaks the group: its collectives raise with this reason."""
        _core.group_abort(self.name, reason)

    # --- collectives ---

    def all_reduce(self, x: "ArrayLike", reduction: str = "sum") -> Array:
        """The elements of all members reduced: "sum", "product", "minimum", "maximum" or "mean"."""
        return _apply("all_reduce", x, reduction=reduction, group=self.name)

    def average(self, tree, bucket_bytes: int = 4 << 20):
        """The means over all members of a tree of arrays, such as gradients, as a tree. Arrays are reduced in buckets
        of some bucket_bytes, from the last one on, as gradients of the last layers are there first: a bucket moves
        while the next one is computed."""
        leaves, structure = flatten(tree)
        leaves = [leaf if isinstance(leaf, Array) else _core.array(leaf) for leaf in leaves]
        buckets = _buckets(leaves, bucket_bytes)
        tickets, after = [], _core.array(0, "int64")
        for first, end in buckets:
            after = _apply("all_reduce_start", after, leaves[first:end], reduction="mean", group=self.name)
            tickets.append(after)
        for (first, end), ticket in zip(buckets, tickets):
            sizes = [math.prod(leaf.shape) for leaf in leaves[first:end]]
            flat, at = _apply("all_reduce_finish", ticket, count=sum(sizes), dtype=leaves[first].dtype), 0
            for i, size in enumerate(sizes, first):
                leaves[i] = flat[at:at + size].reshape(leaves[i].shape)
                at += size
        return unflatten(structure, leaves)

    def reduce_scatter(self, x: "ArrayLike", reduction: str = "sum") -> Array:
        """Of the elements of all members reduced the block of axis 0 with this member's rank."""
        return _apply("reduce_scatter", x, reduction=reduction, group=self.name, size=self.size)

    def all_gather(self, x: "ArrayLike") -> Array:
        """The arrays of all members, joined along axis 0."""
        return _apply("all_gather", x, group=self.name, size=self.size)

    def all_to_all(self, x: "ArrayLike") -> Array:
        """Block i of axis 0 is the block with this member's rank of member i."""
        return _apply("all_to_all", x, group=self.name, size=self.size)

    def broadcast(self, x: "ArrayLike", root: int = 0) -> Array:
        """The array of one member."""
        return _apply("broadcast", x, root=root, group=self.name)

    def send(self, x: "ArrayLike", to: int, tag: int = 0) -> Array:
        """x, which the member `to` gets by receive. It is sent when the result is computed."""
        return _apply("send", x, root=to, tag=tag, group=self.name)

    def receive(self, shape: "tuple[int, ...] | list[int]", dtype: "DTypeLike", source: int, tag: int = 0) -> Array:
        """What the member `source` sends: an array of this shape and dtype."""
        return _apply("receive", shape=list(shape), dtype=dtype, source=source, tag=tag, group=self.name)

    def barrier(self) -> None:
        """Returns when all members have come here."""
        _core.eval(_apply("barrier", _core.array(0, "int32"), group=self.name))


def _buckets(leaves, most):
    """Ranges of leaves, from the last on: of one dtype, and of at most `most` bytes unless one leaf has more."""
    found, end = [], len(leaves)
    while end > 0:
        first, size = end - 1, leaves[end - 1].nbytes
        while first > 0 and end - first < 256 and leaves[first - 1].dtype == leaves[end - 1].dtype:
            size += leaves[first - 1].nbytes
            if size > most:
                break
            first -= 1
        found.append((first, end))
        end = first
    return found


@functools.cache
def _operator(name):
    return _core.operator(f"dist.{name}/1")


def _apply(name, *inputs, **attributes):
    return _operator(name)(*inputs, **attributes)


def init() -> Group:
    """The group of all processes that were started together, the world, which the first call joins; of this one alone
    where no launcher started it."""
    return Group()


def leave() -> None:
    """Leaves all groups, the world last, which waits for its other members; the end of the program does so, too. A
    process joins once."""
    _core.group_leave()
