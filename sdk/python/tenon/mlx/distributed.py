# SPDX-License-Identifier: MIT
"""mlx.core.distributed: a group of one, to which everything that is asked of others comes back."""

from .table import base, function, put


class Group:
    """A group of processes: this one."""

    def rank(self):
        """The number of this process."""
        return 0

    def size(self):
        """How many processes there are."""
        return 1

    def split(self, color, key=-1):
        """A part of the group. There is none of one process."""
        raise RuntimeError("[distributed] Cannot split the distributed group: it has one process")


_group = Group()


def is_available(backend="any"):
    """Whether processes can talk to each other."""
    return False


def init(strict=False, backend="any", *, all_gather_factory=None):
    """The group of all processes."""
    if strict:
        raise RuntimeError(f"[distributed] Couldn't initialize distributed backend '{backend}': tenon.mlx has groups of one process")
    return _group


def _check(group):
    if group is not None and not isinstance(group, Group):
        raise TypeError(f"got {group!r}, expected a Group or None")


def _alone(name, doc):
    def body(x, *, group=None):
        _check(group)
        return base.copy(x)

    body.__doc__ = doc
    function(body, of="distributed", name=name)


for _name, _doc in [("all_sum", "The sum over the group: x."), ("all_max", "The greatest over the group: x."),
                    ("all_min", "The least over the group: x."), ("all_gather", "The arrays of the group joined: x."),
                    ("sum_scatter", "A part of the sum over the group: x.")]:
    _alone(_name, _doc)


def _nobody(name):
    def call(*args, group=None, stream=None):
        raise ValueError(f"[{name}] Cannot {name.partition('_')[0]} in a group of one process.")

    call.__name__, call.__doc__ = name, "There is nobody to talk to: an error."
    put(name, call, of="distributed")


for _name in ("send", "recv", "recv_like"):
    _nobody(_name)
for _each in (Group, is_available, init):
    put(_each.__name__, _each, of="distributed")
