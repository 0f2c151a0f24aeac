# SPDX-License-Identifier: MIT
"""Devices, streams, memory."""

from .table import put


class DeviceType:
    """mx.cpu or mx.gpu."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"DeviceType.{self.name}"


cpu, gpu = DeviceType("cpu"), DeviceType("gpu")


class Device:
    """A device of a type."""

    def __init__(self, type, index=0):
        self.type, self.index = type, index

    def __eq__(self, other):
        return other is self.type or isinstance(other, Device) and (other.type, other.index) == (self.type, self.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __repr__(self):
        return f"Device({self.type.name}, {self.index})"


_default = Device(cpu)


def default_device():
    """The device on which operations are applied."""
    return _default


def set_default_device(device):
    """Chooses it."""


def clear_streams():
    """There are none."""


for _value in (DeviceType, Device, default_device, set_default_device, clear_streams):
    put(_value.__name__, _value)
put("cpu", cpu)
put("gpu", gpu)
