# SPDX-License-Identifier: MIT
"""MLX's devices, streams and memory.

mx.cpu is cpu-blas, which is opened beside whatever TENON_BACKEND names; mx.gpu are the devices of the list that are no
CPU, in its order. A stream is a device and a number: on one device operations run in order whatever their stream."""

import enum
import functools
import os
import platform
import threading

from .. import _core
from .table import _ON_GPU, _STREAM, put

CPU = "cpu-blas"  # the backend that mx.cpu stands for


def _backends():
    return [name.strip() for name in os.environ.get("TENON_BACKEND", "").split(",") if name.strip()]


def open_beside():
    """Before the first operation: the CPU stands behind the other backends of the list, as MLX's default device is a GPU where there
    is one, and joins a list that lacks it, as MLX always has it."""
    names = _backends()
    if names and not _core.is_open():
        of_cpu = [name for name in names if name.partition(":")[0] == CPU] or [CPU]
        os.environ["TENON_BACKEND"] = ",".join([*(name for name in names if name not in of_cpu), *of_cpu])


class DeviceType(enum.Enum):
    """The kind of a device."""

    cpu = 0
    gpu = 1

    def __repr__(self):
        return f"DeviceType.{self.name}"

    def __eq__(self, other):
        if isinstance(other, Device):
            return other == self
        return self is other

    __hash__ = enum.Enum.__hash__


cpu, gpu = DeviceType.cpu, DeviceType.gpu


class Device:
    """A device: its kind and its number among those."""

    __slots__ = ("type", "index")

    def __init__(self, type, index=0):
        if isinstance(type, Device):
            type, index = type.type, type.index
        if not isinstance(type, DeviceType):
            raise TypeError(f"Device: got {type!r}, expected mx.cpu or mx.gpu")
        self.type, self.index = type, index

    def __repr__(self):
        return f"Device({self.type.name}, {self.index})"

    def __eq__(self, other):
        if isinstance(other, DeviceType):
            return self.type is other and self.index == 0
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type.name, self.index))


@functools.cache
def _table():
    """The runtime's devices by kind: (name for tenon, what tenon tells about it), in its order."""
    rows = sorted((row for row in _core.devices() if row["selected"] and row["backend"] != "null"),
                  key=lambda row: row["selected"])
    table = {cpu: [], gpu: []}
    for row in rows:
        table[cpu if row["backend"] == CPU else gpu].append((f"{row['backend']}:{row['index']}", row))
    return table


def device_count(device_type):
    """How many devices there are of a kind."""
    return len(_table()[device_type]) if device_type is gpu else 1


def is_available(device):
    """Whether there is such a device."""
    device = Device(device)
    return device.index < device_count(device.type)


def _check(device, what):
    device = Device(device)
    if not is_available(device):
        raise ValueError(f"[{what}] Cannot use {device} without a gpu backend: TENON_BACKEND names none.")
    return device


@functools.cache
def _name(device):
    """Where tenon applies operations of a device: a name; None where the first device that can is the one."""
    rows = _table()[device.type]
    if not rows:
        return f"{CPU}:0"
    first = min(row["selected"] for of_kind in _table().values() for _, row in of_kind)
    name, row = rows[device.index]
    return None if row["selected"] == first else name


# --- streams -------------------------------------------------------------------------------------


class Stream:
    """A stream of operations on a device, of the thread that made it."""

    __slots__ = ("device", "index", "thread")

    def __init__(self, device, index, thread=None):
        self.device, self.index, self.thread = device, index, thread

    def __repr__(self):
        return f"Stream({self.device}, {self.index})"

    def __eq__(self, other):
        return isinstance(other, Stream) and (self.device, self.index) == (other.device, other.index)

    def __hash__(self):
        return hash((self.device, self.index))


class ThreadLocalStream:
    """A stream that is another one in each thread."""

    __slots__ = ("device", "index")

    def __init__(self, device, index):
        self.device, self.index = device, index

    def __repr__(self):
        return f"ThreadLocalStream({self.device}, {self.index})"

    def __eq__(self, other):
        return isinstance(other, ThreadLocalStream) and (self.device, self.index) == (other.device, other.index)

    def __hash__(self):
        return hash((self.device, self.index))


class _Thread(threading.local):
    """State of a thread: the device of the context that it is in, default streams by device, its streams of ThreadLocalStreams,
    and `pending`, arrays of the last async_eval()."""

    def __init__(self):
        self.device, self.defaults, self.locals, self.pending = None, {}, {}, []


_thread = _Thread()
_lock = threading.Lock()
_counts = {"streams": 0, "locals": 0}
_default = None  # the device of the process; None: the first GPU, or the CPU
_cleared = []  # functions that clear_streams() calls


def _number(kind):
    with _lock:
        _counts[kind] += 1
        return _counts[kind] - 1


def default_device():
    """The device of operations that name none."""
    return _thread.device or _default or Device(gpu if device_count(gpu) else cpu)


def set_default_device(device):
    """Chooses the device of operations that name none, in all threads but those that are in a context of another one."""
    global _default
    _default = _check(device, "set_default_device")
    _core.set_process_device(_name(_default))
    if _thread.device is not None:
        _thread.device = _default
        _core.set_device(_name(_default))


def default_stream(device):
    """The stream of a device that operations of this thread go to."""
    device = _check(device, "default_stream")
    if device not in _thread.defaults:
        _thread.defaults[device] = new_stream(device)
    return _thread.defaults[device]


def set_default_stream(stream):
    """Makes a stream the default one of its device, in this thread."""
    _thread.defaults[_own(stream).device] = stream


def new_stream(device):
    """Another stream of a device, for this thread."""
    return Stream(_check(device, "new_stream"), _number("streams"), threading.get_ident())


def new_thread_unsafe_stream(device):
    """Another stream of a device, for any thread."""
    return Stream(_check(device, "new_thread_unsafe_stream"), _number("streams"))


def new_thread_local_stream(device):
    """A stream that is another one in each thread."""
    return ThreadLocalStream(_check(device, "new_thread_local_stream"), _number("locals"))


def clear_streams():
    """Lets go of this thread's streams and of its random numbers."""
    synchronize()
    _thread.defaults.clear()
    _thread.locals.clear()
    for function in _cleared:
        function()


def when_cleared(function):
    """Calls a function each time a thread's streams are cleared."""
    _cleared.append(function)


def _own(stream):
    """The stream of this thread that a stream stands for."""
    if isinstance(stream, ThreadLocalStream):
        if stream not in _thread.locals:
            _thread.locals[stream] = new_stream(stream.device)
        return _thread.locals[stream]
    if not isinstance(stream, Stream):
        raise TypeError(f"got {stream!r}, expected a Stream")
    if stream.thread is not None and stream.thread != threading.get_ident():
        raise RuntimeError(f"There is no {stream} in current thread.")
    return stream


def to_device(stream):
    """The device of a stream, a device, or None for the default one."""
    if stream is None:
        return default_device()
    if isinstance(stream, (Device, DeviceType)):
        return _check(stream, "stream")
    return _own(stream).device


class on:
    """Within: operations are applied on the device of a stream or device; None: where they were."""

    __slots__ = ("stream", "before")

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.before = _core.set_device(_name(to_device(self.stream)))

    def __exit__(self, *unused):
        if self.stream is not None:
            _core.set_device(self.before)


class StreamContext:
    """Within: the stream, or the device, is this thread's default."""

    def __init__(self, s):
        if s is None:
            raise RuntimeError("[StreamContext] Invalid argument, please specify a stream or device.")
        self._stream = s

    def __enter__(self):
        device = to_device(self._stream)
        stream = None if isinstance(self._stream, (Device, DeviceType)) else _own(self._stream)
        self._before = _thread.device, device, _thread.defaults.get(device), _core.set_device(_name(device))
        _thread.device = device
        if stream is not None:
            _thread.defaults[device] = stream

    def __exit__(self, *unused):
        _thread.device, device, stream, name = self._before
        if stream is None:
            _thread.defaults.pop(device, None)
        else:
            _thread.defaults[device] = stream
        _core.set_device(name)


def stream(s):
    """with mx.stream(s): the stream, or the device, is the default."""
    return StreamContext(s)


class failing:
    """Within: what goes wrong while arrays are computed is MLX's RuntimeError."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is ValueError:
            raise RuntimeError(str(error)) from None


def synchronize(stream=None):
    """Waits for all that was begun, on every device; what went wrong in the last async_eval() of this thread is raised."""
    if stream is not None:
        to_device(stream)
    pending, _thread.pending = _thread.pending, []
    _core.trim(_WAIT)
    with failing():
        _core.eval(pending)


def begun(values):
    """Arrays of tenon that this thread has begun to compute last, for synchronize(): earlier ones may go, and their memory with them."""
    _thread.pending = values


# --- what devices are -----------------------------------------------------------------------------


def device_info(d=None):
    """Properties of a device, as a dict."""
    device = _check(default_device() if d is None else d, "device_info")
    rows = _table()[device.type]
    info = {"device_name": rows[device.index][1]["name"] if rows else platform.processor() or platform.machine(),
            "architecture": rows[device.index][1]["driver"] if rows else platform.machine()}
    memory = rows[device.index][1]["memory_size"] if rows else 0
    info["memory_size"] = info["total_memory"] = memory
    info["max_recommended_working_set_size"] = info["max_buffer_length"] = memory
    return info


# --- memory ---------------------------------------------------------------------------------------

_SPARE, _PEAK, _WAIT = 1, 2, 4  # flags of _core.trim
_limits = {"memory": None, "cache": None, "wired": 0}  # None: all that the device has


def _set_limit(name, limit):
    before = _limits[name]
    _limits[name] = int(limit)
    return sum(row["memory_size"] for rows in _table().values() for _, row in rows) if before is None else before


def get_active_memory():
    """Bytes of arrays and plans."""
    return _core.stats()["buffer_bytes"]


def get_peak_memory():
    """The most bytes there were since the process began, or reset_peak_memory()."""
    return _core.stats()["buffer_peak"]


def reset_peak_memory():
    """The peak counts from now on."""
    _core.trim(_PEAK)


def get_cache_memory():
    """Bytes that are kept for reuse: within the limit, if there is one."""
    spare = _core.stats()["spare_bytes"]
    if _limits["cache"] is None or spare <= _limits["cache"]:
        return spare
    _core.trim(_SPARE)
    return _core.stats()["spare_bytes"]


def set_memory_limit(limit):
    """Remembers a limit and gives the one before: tenon gives memory as long as the device has some."""
    return _set_limit("memory", limit)


def set_cache_limit(limit):
    """Sets how many bytes get_cache_memory() leaves for reuse, and gives the limit before."""
    before = _set_limit("cache", limit)
    get_cache_memory()
    return before


def set_wired_limit(limit):
    """Remembers a limit and gives the one before: nothing is wired."""
    return _set_limit("wired", limit)


def clear_cache():
    """Lets go of memory that is kept for reuse."""
    _core.trim(_SPARE)


def is_metal_available():
    """Metal is not there."""
    return False


def start_capture(path):
    """There is nothing to capture."""
    raise RuntimeError("[metal::start_capture] There is no Metal; tenon.profile() writes what kernels do.")


def stop_capture():
    """There is nothing to capture."""


def _is_on_gpu():
    """Whether this thread's operations are applied on a GPU."""
    name = _core.current_device()
    return device_count(gpu) > 0 if name is None else not name.startswith(CPU)


open_beside()
_STREAM[0], _ON_GPU[0] = on, _is_on_gpu
for _value in (DeviceType, Device, Stream, ThreadLocalStream, StreamContext, device_count, is_available, default_device,
               set_default_device, default_stream, set_default_stream, new_stream, new_thread_unsafe_stream,
               new_thread_local_stream, clear_streams, stream, synchronize, device_info, get_active_memory, get_peak_memory,
               reset_peak_memory, get_cache_memory, set_memory_limit, set_cache_limit, set_wired_limit, clear_cache):
    put(_value.__name__, _value)
put("cpu", cpu)
put("gpu", gpu)
for _value in (device_info, get_active_memory, get_peak_memory, reset_peak_memory, get_cache_memory, set_memory_limit,
               set_cache_limit, set_wired_limit, clear_cache, start_capture, stop_capture):
    put(_value.__name__, _value, of="metal")
put("is_available", is_metal_available, of="metal")
put("is_available", is_metal_available, of="cuda")
