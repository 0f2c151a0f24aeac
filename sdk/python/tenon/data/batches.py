# SPDX-License-Identifier: MIT
"""Batches of arrays, and a bar of progress."""

import queue
import random
import sys
import threading
import time

import tenon as tn


class Batches:
    """Batches of arrays that have one number of rows: `for images, labels in Batches((images, labels), 64, seed=0)`.

    shuffle: another order each epoch, of the seed. drop_last: a last batch that is shorter is left out. ahead: so many
    batches are taken from the arrays by a thread before they are asked for; 0: none. transform(*batch) runs there. Iterating
    again is the next epoch; state() and load_state() say and set which, so that a training that resumes goes on alike.
    """

    def __init__(self, arrays, size, shuffle=True, seed=0, drop_last=False, ahead=2, transform=None):
        self._alone = isinstance(arrays, tn.Array)
        self.arrays = (arrays,) if self._alone else tuple(arrays)
        rows = {array.shape[0] if array.ndim else None for array in self.arrays}
        if len(rows) != 1 or None in rows:
            raise ValueError(f"Batches: arrays of shapes {[array.shape for array in self.arrays]}, expected one number of rows")
        if size < 1:
            raise ValueError(f"Batches: size is {size}, expected at least 1")
        self.rows, self.size = rows.pop(), size
        self.shuffle, self.seed, self.drop_last, self.ahead, self.transform = shuffle, seed, drop_last, ahead, transform
        self.epoch = self.done = 0  # done: number of batches of this epoch that were given

    def __len__(self):
        return self.rows // self.size if self.drop_last else -(-self.rows // self.size)

    def state(self):
        """Where it is: epoch, and batches given in it."""
        return {"seed": self.seed, "epoch": self.epoch, "done": self.done}

    def load_state(self, state):
        """The next iteration goes on from there."""
        self.seed, self.epoch, self.done = state["seed"], state["epoch"], state["done"]

    def _order(self):
        order = list(range(self.rows))
        if self.shuffle:
            random.Random(f"{self.seed} {self.epoch}").shuffle(order)
        return order

    def _take(self, numbers):
        where = tn.array(numbers, tn.int64)
        batch = tuple(tn.take(array, where, 0) for array in self.arrays)
        if self.transform:
            return self.transform(*batch)
        return batch[0] if self._alone else batch

    def _made(self, order, first):
        for i in range(first, len(self)):
            batch = self._take(order[i * self.size : (i + 1) * self.size])
            tn.async_eval(batch)
            yield batch

    def __iter__(self):
        order, first = self._order(), self.done
        made = self._made(order, first) if self.ahead < 1 else _ahead(self._made(order, first), self.ahead)
        for batch in made:
            self.done += 1
            yield batch
        self.epoch, self.done = self.epoch + 1, 0


def _ahead(items, depth):
    """The items of an iterator, made by a thread, at most `depth` of them before they are asked for."""
    ready, end, stop = queue.Queue(depth), object(), threading.Event()

    def put(item):
        while not stop.is_set():
            try:
                return ready.put(item, timeout=0.1)
            except queue.Full:
                continue

    def run():
        try:
            for item in items:
                put((item, None))
                if stop.is_set():
                    return
            put((end, None))
        except BaseException as error:  # raised in the thread that iterates
            put((end, error))

    threading.Thread(target=run, daemon=True, name="tenon batches").start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is end:
                return
            yield item
    finally:
        stop.set()


def progress(items, total=None, text="", always=False, file=None):
    """The items; meanwhile a line with how many there were, how fast, and how long the rest takes. Only on a terminal,
    unless `always`. text: a string, or a function that gives one."""
    file = file or sys.stderr
    if not always and not file.isatty():
        yield from items
        return
    total = len(items) if total is None and hasattr(items, "__len__") else total
    begin, shown, count = time.monotonic(), 0.0, 0

    def show():
        seconds = max(time.monotonic() - begin, 1e-9)
        rate = count / seconds
        bar = ""
        if total:
            filled = 24 * min(count, total) // total
            bar = f"[{'#' * filled}{'.' * (24 - filled)}] "
        left = f", {(total - count) / rate:.0f} s left" if total and count and count < total else ""
        words = text() if callable(text) else text
        file.write(f"\r{bar}{count}{f'/{total}' if total else ''}  {rate:.1f}/s{left}  {words}\033[K")
        file.flush()

    try:
        for item in items:
            yield item
            count += 1
            if time.monotonic() - shown > 0.1:
                shown = time.monotonic()
                show()
    finally:
        show()
        file.write("\n")
