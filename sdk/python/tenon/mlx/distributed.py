# SPDX-License-Identifier: MIT
"""mlx.core.distributed over tenon.dist: the processes of `tenon run` or another launcher of MPI. A process that none
started is a group of one, to which everything that is asked of others comes back.

Derivatives are MLX's, in which a gradient of a sum over members is what this member's loss owes to it; those of
tenon.dist are of the sum of all members' losses.
"""

import functools
import os

from .. import _core
from .._custom import custom_function
from . import transforms
from .convert import extents, tenon_dtype
from .table import base, function, put

# What launchers tell a process that they start: `tenon run`, Open MPI, MPICH.
_LAUNCHED = ("TENON_RUN", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_OTHERS = ("ring", "nccl", "jaccl")


class Group:
    """A group of processes."""

    def __init__(self, members):
        self._members = members  # of tenon.dist; None: this process alone

    def rank(self):
        """The number of this process."""
        return self._members.rank if self._members else 0

    def size(self):
        """How many processes there are."""
        return self._members.size if self._members else 1

    def split(self, color, key=-1):
        """The group of those processes that give the same color, in the order of key, or of their ranks."""
        if self.size() == 1:
            raise RuntimeError("[distributed] Cannot split the distributed group: it has one process")
        if color < 0:
            raise ValueError(f"[distributed] Cannot split by color {color}, expected 0 or more")
        return Group(self._members.split(color, key if key >= 0 else self.rank()))


def _is_launched():
    return any(name in os.environ for name in _LAUNCHED)


def is_available(backend="any"):
    """Whether this process was started with others to talk to."""
    return backend in ("any", "mpi") and _is_launched()


@functools.cache
def _world():
    from .. import dist

    return Group(dist.init() if _is_launched() else None)


def init(strict=False, backend="any", *, all_gather_factory=None):
    """The group of all processes. "any" and "mpi" are MPI by tenon.dist."""
    if backend not in ("any", "mpi", *_OTHERS):
        raise ValueError(f"[distributed] The only valid values for backend are 'any', 'mpi', 'nccl', 'jaccl' and 'ring' but '{backend}' was provided.")
    if all_gather_factory is not None:
        if not callable(all_gather_factory):
            raise TypeError(f"[distributed] all_gather_factory is {all_gather_factory!r}, expected a function")
        if backend != "jaccl":
            raise ValueError(f"[distributed] An all gather factory is only supported with the 'jaccl' backend but '{backend}' was provided.")
    if strict and backend in _OTHERS:
        raise RuntimeError(f"[distributed] Couldn't initialize distributed backend '{backend}': tenon.mlx has 'mpi' alone")
    if strict and not _is_launched():
        raise RuntimeError(f"[distributed] Couldn't initialize distributed backend '{backend}': no launcher started this process; tenon run -n 2 COMMAND does")
    return Group(None) if backend in _OTHERS else _world()


def _group(group):
    if group is not None and not isinstance(group, Group):
        raise TypeError(f"got {group!r}, expected a Group or None")
    return group or init()


# --- collectives ---------------------------------------------------------------------------------


def _reduced(members, x, reduction):
    if x.dtype.kind == "c" and reduction != "sum":  # MPI has no order of complex numbers
        from .table import NAMES, unwrapped, wrap

        every = members.all_gather(base.expand_dims(x, axis=0))
        return unwrapped(NAMES["max" if reduction == "maximum" else "min"](wrap(every), axis=0))
    return members.all_reduce(x, reduction)


def _own_part(members, g, shape):
    if not shape:
        return g[members.rank]
    return g[members.rank * shape[0] : (members.rank + 1) * shape[0]]


@functools.lru_cache(maxsize=256)
def _with_rules(apply, members, back):
    """The collective as a function with MLX's derivatives: `back` makes the gradient of a cotangent."""
    made = custom_function(functools.partial(apply, members), "distributed")
    made.vjp(lambda primals, cotangents, outputs: back(members, cotangents, primals.shape))
    made.jvp(lambda primals, tangents: apply(members, tangents))
    return made


def _collective(name, doc, apply, back):
    def body(x, *, group=None):
        members = _group(group)._members
        if members is None or members.size == 1:
            return base.copy(x)
        if transforms.is_deriving() or _core.is_tracing():
            return _with_rules(apply, members, back)(x)
        return apply(members, x)

    body.__doc__ = doc
    function(body, of="distributed", name=name)


def _unchanged(members, g, shape):
    return g


def _all_sum(members, x):
    return _reduced(members, x, "sum")


def _all_max(members, x):
    return _reduced(members, x, "maximum")


def _all_min(members, x):
    return _reduced(members, x, "minimum")


def _all_gather(members, x):
    return members.all_gather(x)


for _name, _doc, _apply, _back in [("all_sum", "The sum over the group.", _all_sum, _unchanged),
                                   ("all_max", "The greatest over the group.", _all_max, _unchanged),
                                   ("all_min", "The least over the group.", _all_min, _unchanged),
                                   ("all_gather", "The arrays of the group joined along the first axis.", _all_gather, _own_part)]:
    _collective(_name, _doc, _apply, _back)


@function(of="distributed")
def sum_scatter(x, *, group=None):
    """Of the sum over the group the part of the first axis with this process's number."""
    members = _group(group)._members
    if members is None or members.size == 1:
        return base.copy(x)
    if x.ndim == 0 or x.shape[0] % members.size:
        raise ValueError(f"[sum_scatter] Invalid shape={x.shape} for a group of size={members.size}. The first dimension must be divisible by the group size.")
    return members.reduce_scatter(x)


# --- messages ------------------------------------------------------------------------------------


def _peer(name, group, rank):
    """The members of a group of several, of which `rank` is one."""
    group = _group(group)
    if group.size() == 1:
        raise ValueError(f"[{name}] Cannot {name.partition('_')[0]} in a group of one process.")
    if not 0 <= rank < group.size():
        raise ValueError(f"[{name}] Invalid rank={rank} for a group of size={group.size()}")
    return group._members


@function(of="distributed")
def send(x, dst, *, group=None):
    """x, which the process dst of the group gets by recv when this is evaluated."""
    return _peer("send", group, dst).send(x, dst)


@function(of="distributed")
def recv(shape, dtype, src, *, group=None):
    """What the process src of the group sends, of this shape and dtype."""
    return _peer("recv", group, src).receive(extents(shape), tenon_dtype(dtype), src)


@function(of="distributed")
def recv_like(x, src, *, group=None):
    """What the process src of the group sends, of the shape and dtype of x."""
    return _peer("recv_like", group, src).receive(x.shape, x.dtype, src)


for _each in (Group, is_available, init):
    put(_each.__name__, _each, of="distributed")
