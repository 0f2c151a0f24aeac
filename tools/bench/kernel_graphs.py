#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the graphs whose kernels are counted, and counts them with `tenon kernels`.

    TENON_BACKEND=vulkan tools/bench/kernel_graphs.py [--tenon TENON] [--keep FOLDER] [NAME ...]

encoder: a quantised BERT-like encoder of 12 layers: products of i8, and each tensor has a scale and a
zero point of its own. decoder: one step of a transformer's decoder of 8 layers in f32, with caches of
keys and values. resnet: ResNet-50 on one image. lenet: a step of LeNet's training by gradient descent.
transformer: a step of the training of a transformer of 4 layers with Adam. statistics: what a batch norm
and a watch on activations ask of one array, over its columns and over all of it. columns: what describes the
columns of a table. watch: norms, extrema, means and counts of 24 gradients. projections: those of 8
transformer layers on four rows, with adapters. gated: 16 gated linear units on four rows. recurrent: an LSTM
over 32 steps. Graphs that gather: edges, messages along the edges of a
graph that are summed at their ends; embeddings of words, positions and kinds; bilinear, an image between its
pixels. Values are zeros: only types matter. `tenon bench @FOLDER/NAME.graph` times a graph that --keep saved.
"""

import argparse
import json
import pathlib
import random
import subprocess
import tempfile

NPY_DTYPES = {"f32": "<f4", "i8": "|i1", "u8": "|u1", "i32": "<i4", "i64": "<i8"}
NPY_SIZES = {"f32": 4, "i8": 1, "u8": 1, "i32": 4, "i64": 8}


class Program:
    """An expression that is written statement by statement, and its inputs."""

    def __init__(self):
        self.statements, self.inputs, self.random = [], {}, random.Random(1)

    def let(self, value):
        name = f"t{len(self.statements)}"
        self.statements.append(f"{name} = {value}")
        return name

    def input(self, dtype, *shape):
        name = f"p{len(self.inputs)}"
        self.inputs[name] = (dtype, shape)
        return name

    def scale(self):
        return f"{self.random.uniform(0.01, 0.1):.6f}"

    def zero(self):
        return self.random.randrange(-20, 20)

    def text(self, *results):
        return "; ".join(self.statements + [", ".join(results)])


# --- the quantised encoder ---------------------------------------------------------------


class Tensor:
    """A quantised tensor: real values are (name - zero) * scale."""

    def __init__(self, name, scale, zero):
        self.name, self.scale, self.zero = name, scale, zero

    def real(self):
        return f"((astype({self.name}, f32) - {self.zero}) * {self.scale})"

    def centred(self):
        return f"(astype({self.name}, i32) - {self.zero})"


def quantise(p, value):
    scale, zero = p.scale(), p.zero()
    return Tensor(p.let(f"astype(clip(round({value} / {scale}) + {zero}, -128, 127), i8)"), scale, zero)


def product(p, a, b, then="{}"):
    """a @ b of quantised tensors, as f32, then quantised anew."""
    sums = f"astype({a.centred()} @ {b}, f32) * {p.scale()}"
    return quantise(p, then.format(f"({sums})"))


def linear(p, x, rows, columns, then="{}"):
    return product(p, x, f"astype({p.input('i8', rows, columns)}, i32)",
                   then.format("({} + " + p.input("f32", columns) + ")"))


def normalised(p, value, width):
    return quantise(p, f"layer_norm({value}, {p.input('f32', width)}, {p.input('f32', width)})")


def encoder(p, layers=12, length=128, width=256, heads=4):
    part = width // heads
    x = quantise(p, p.input("f32", length, width))

    def split(t):
        return Tensor(f"transpose(reshape({t.name}, shape=[{length}, {heads}, {part}]), axes=[1, 0, 2])", t.scale, t.zero)

    for _ in range(layers):
        q, k, v = (split(linear(p, x, width, width)) for _ in range(3))
        scores = product(p, q, f"{k.centred()}.mT")
        chances = quantise(p, f"softmax({scores.real()})")
        seen = product(p, chances, v.centred())
        joined = Tensor(f"reshape(transpose({seen.name}, axes=[1, 0, 2]), shape=[{length}, {width}])", seen.scale, seen.zero)
        out = linear(p, joined, width, width)
        x = normalised(p, f"{x.real()} + {out.real()}", width)
        inner = linear(p, x, width, 4 * width, "gelu({})")
        out = linear(p, inner, 4 * width, width)
        x = normalised(p, f"{x.real()} + {out.real()}", width)
    return p.text(x.name)


# --- a step of a decoder -----------------------------------------------------------------


def decoder(p, layers=8, width=256, heads=4, positions=256, words=1024):
    part = width // heads
    position, frequencies = p.input("i64", 1), p.input("f32", part // 2)
    start, lengths = p.let(f"concatenate([0, 0], {position}, [0])"), p.let(f"{position} + 1")
    x, results = p.input("f32", 1, width), []

    def weights(rows, columns):
        return p.input("f32", rows, columns)

    def heads_of(h):
        return f"reshape({h} @ {weights(width, width)}, shape=[1, {heads}, 1, {part}])"

    for _ in range(layers):
        h = p.let(f"rms_norm({x}, {p.input('f32', width)})")
        q = p.let(f"rope({heads_of(h)}, {frequencies}, {position})")
        k = p.let(f"rope({heads_of(h)}, {frequencies}, {position})")
        v = p.let(heads_of(h))
        keys, values = (p.let(f"dynamic_slice_update({p.input('f32', 1, heads, positions, part)}, {new}, {start})") for new in (k, v))
        seen = f"scaled_dot_product_attention({q}, {keys}, {values}, lengths={lengths})"
        x = p.let(f"{x} + reshape({seen}, shape=[1, {width}]) @ {weights(width, width)}")
        h = p.let(f"rms_norm({x}, {p.input('f32', width)})")
        gated = f"silu({h} @ {weights(width, 4 * width)}) * ({h} @ {weights(width, 4 * width)})"
        x = p.let(f"{x} + ({gated}) @ {weights(4 * width, width)}")
        results += [keys, values]
    x = f"argmax(rms_norm({x}, {p.input('f32', width)}) @ {weights(width, words)}, axis=-1)"
    return p.text(x, *results)


# --- ResNet-50 ---------------------------------------------------------------------------


def resnet(p, images=1, classes=1000):
    """Inference, with the norms' factors in the filters."""
    def conv(x, have, want, size, stride=1, then="relu({})"):
        weights, bias = p.input("f32", want, size, size, have), p.input("f32", want)
        made = f"conv2d({x}, {weights}, {bias}, stride=[{stride}, {stride}], padding=[{size // 2}, {size // 2}])"
        return p.let(then.format(made))

    x = conv(p.input("f32", images, 224, 224, 3), 3, 64, 7, 2)
    x = p.let(f"max_pool2d({x}, window=[3, 3], stride=[2, 2], padding=[1, 1])")
    have = 64
    for blocks, width, first in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for block in range(blocks):
            stride = first if block == 0 else 1
            beside = conv(x, have, 4 * width, 1, stride, "{}") if block == 0 else x
            x = conv(conv(x, have, width, 1), width, width, 3, stride)
            x, have = conv(x, width, 4 * width, 1, then=f"relu({{}} + {beside})"), 4 * width
    means = p.let(f"mean(reshape({x}, shape=[{images}, 49, {have}]), axis=1)")
    return p.text(f"softmax({means} @ {p.input('f32', have, classes)} + {p.input('f32', classes)})")


# --- steps of training -------------------------------------------------------------------


def gradients(p, loss, parameters):
    """The names of the gradients of a loss by each parameter."""
    names = [f"d{name}" for name in parameters]
    p.statements.append(f"{', '.join(names)} = grad({loss}, {', '.join(parameters)})")
    return names


def lenet(p, batch=64, images=60000):
    """LeNet-5 on images that lie on the device, as docs/examples/networks has it."""
    parameters = []

    def parameter(*shape):
        parameters.append(p.input("f32", *shape))
        return parameters[-1]

    def conv(x, have, want, padding):
        made = f"conv2d({x}, {parameter(want, 5, 5, have)}, {parameter(want)}, padding=[{padding}, {padding}])"
        return p.let(f"max_pool2d(relu({made}), window=[2, 2])")

    def dense(x, have, want, then="{}"):
        return p.let(then.format(f"{x} @ {parameter(have, want)} + {parameter(want)}"))

    picked = p.input("i32", batch)
    x, labels = (p.let(f"take({p.input('u8', *shape)}, {picked}, axis=0)") for shape in ((images, 28, 28), (images,)))
    x = p.let(f"reshape((astype({x}, f32) - 72.94) * {1 / 90.02:.6f}, shape=[{batch}, 28, 28, 1])")
    x = conv(conv(x, 1, 6, 2), 6, 16, 0)
    x = dense(dense(f"reshape({x}, shape=[{batch}, 400])", 400, 120, "relu({})"), 120, 84, "relu({})")
    loss = p.let(f"mean(cross_entropy({dense(x, 84, 10)}, astype({labels}, i32)))")
    return p.text(loss, *(f"{name} - 0.01 * {slope}" for name, slope in zip(parameters, gradients(p, loss, parameters))))


def transformer(p, layers=4, batch=4, length=64, width=128, heads=4, words=512):
    """Each layer normalises what it reads; Adam steps every parameter."""
    parameters, part = [], width // heads
    tokens, wanted, done = p.input("i32", batch, length), p.input("i32", batch, length), p.input("f32")

    def parameter(*shape):
        parameters.append((p.input("f32", *shape), shape))
        return parameters[-1][0]

    def normed(x):
        return p.let(f"layer_norm({x}, {parameter(width)}, {parameter(width)})")

    def head(h):
        split = f"reshape({h} @ {parameter(width, width)}, shape=[{batch}, {length}, {heads}, {part}])"
        return p.let(f"transpose({split}, axes=[0, 2, 1, 3])")

    x = p.let(f"take({parameter(words, width)}, {tokens}, axis=0) + {parameter(length, width)}")
    for _ in range(layers):
        h = normed(x)
        q, k, v = head(h), head(h), head(h)
        seen = f"transpose(scaled_dot_product_attention({q}, {k}, {v}, is_causal=true), axes=[0, 2, 1, 3])"
        x = p.let(f"{x} + reshape({seen}, shape=[{batch}, {length}, {width}]) @ {parameter(width, width)}")
        inner = f"gelu({normed(x)} @ {parameter(width, 4 * width)} + {parameter(4 * width)})"
        x = p.let(f"{x} + {inner} @ {parameter(4 * width, width)} + {parameter(width)}")
    scores = f"reshape({normed(x)} @ {parameter(width, words)}, shape=[{batch * length}, {words}])"
    loss = p.let(f"mean(cross_entropy({scores}, reshape({wanted}, shape=[{batch * length}])))")
    slopes, results, done = gradients(p, loss, [name for name, _ in parameters]), [], p.let(f"{done} + 1")
    for (name, shape), slope in zip(parameters, slopes):
        stepped = [f"{kind}{name}" for kind in ("n", "m", "v")]
        moments = f"{p.input('f32', *shape)}, {p.input('f32', *shape)}"
        p.statements.append(f"{', '.join(stepped)} = adam({name}, {slope}, {moments}, {done}, lr=0.001)")
        results += stepped
    return p.text(loss, done, *results)


# --- several results of one input --------------------------------------------------------


def statistics(p, rows=8192, columns=1024):
    x = p.input("f32", rows, columns)
    columns = [f"{op}, axis=0)" for op in (f"mean({x}", f"mean({x} * {x}", f"min({x}", f"max({x}", f"mean(abs({x})",
                                           f"argmax({x}")]
    whole = [f"{op})" for op in (f"sum({x}", f"sum({x} * {x}", f"max(abs({x})", f"sum(astype({x} == 0, f32)")]
    return p.text(*columns, *whole)


def columns(p, rows=200000, columns=64):
    """What describes the columns of a table."""
    x = p.input("f32", rows, columns)
    return p.text(*(f"{op}({x}, axis=0)" for op in ("mean", "var", "std", "min", "max", "argmin", "argmax")))


def watch(p, layers=12, width=1024):
    """What is watched of the gradients of a model while it is trained."""
    results = []
    for shape in [(width, width), (width, 4 * width)] * layers:
        g = p.input("f32", *shape)
        results += [f"sqrt(sum({g} * {g}))", f"max(abs({g}))", f"mean({g})", f"sum(astype(isfinite({g}), f32))"]
    return p.text(*results)


def projections(p, layers=8, rows=4, width=1024, rank=16):
    """Queries, keys and values with adapters of a low rank; the values alone go on."""
    x, results = p.input("f32", rows, width), []

    def weights(have, want):
        return p.input("f32", have, want)

    for _ in range(layers):
        h = p.let(f"rms_norm({x}, {p.input('f32', width)})")
        made = [p.let(f"{h} @ {weights(width, columns)} + ({h} @ {weights(width, rank)}) @ {weights(rank, columns)}")
                for columns in (width, width // 4, width)]
        x = p.let(f"{x} + {made[2]}")
        results += made[:2]
    return p.text(x, *results)


# --- products whose results one program reads ---------------------------------------------


def gated(p, layers=16, rows=4, width=1024):
    """Gated linear units with biases, one behind the other, each beside its input."""
    x = p.input("f32", rows, width)
    for _ in range(layers):
        values, gates = (f"({x} @ {p.input('f32', width, width)} + {p.input('f32', width)})" for _ in range(2))
        x = p.let(f"{x} + {values} * sigmoid({gates})")
    return p.text(x)


def recurrent(p, steps=32, rows=4, width=512):
    """An LSTM: what the inputs of all steps give is computed at once, then one step follows another."""
    x, h, c = p.input("f32", steps * rows, width), p.input("f32", rows, width), p.input("f32", rows, width)
    given = [p.let(f"{x} @ {p.input('f32', width, width)} + {p.input('f32', width)}") for _ in range(4)]
    factors, results = [p.input("f32", width, width) for _ in range(4)], []
    for step in range(steps):
        slice_text = f"start=[{step * rows}, 0], stop=[{(step + 1) * rows}, {width}]"
        i, f, g, o = (p.let(f"slice({a}, {slice_text}) + {h} @ {b}") for a, b in zip(given, factors))
        c = p.let(f"sigmoid({f}) * {c} + sigmoid({i}) * tanh({g})")
        h = p.let(f"sigmoid({o}) * tanh({c})")
        results.append(h)
    return p.text(c, *results)


# --- gathers -----------------------------------------------------------------------------


def edges(p, nodes=20000, edges=200000, width=64, kinds=16):
    x, w, b = p.input("f32", nodes, width), p.input("f32", kinds, width), p.input("f32", kinds, width)
    source, to, kind = (p.input("i32", edges) for _ in range(3))
    sent = p.let(f"nn.gelu(take({x}, {source}, axis=0) * take({w}, {kind}, axis=0) + take({b}, {kind}, axis=0))")
    return p.text(f"scatter_add({x}, {to}, {sent}, axis=0)")


def embeddings(p, batch=64, length=512, width=768, words=30000):
    at = [p.input("i32", batch, length) for _ in range(3)]
    tables = [p.input("f32", rows, width) for rows in (words, length, 2)]
    parts = [f"take({t}, {i}, axis=0)" for t, i in zip(tables, at)]
    return p.text(f"{parts[0]} * 27.7 + {parts[1]} + {parts[2]}")


def embed_norm(p, batch=64, length=512, width=768, words=30000):
    at = [p.input("i32", batch, length) for _ in range(4)]
    tables = [p.input("f32", rows, width) for rows in (words, length, 2, 16)]
    weight, bias = p.input("f32", width), p.input("f32", width)
    parts = [f"take({t}, {i}, axis=0)" for t, i in zip(tables, at)]
    return p.text(f"nn.layer_norm({' + '.join(parts)}, {weight}, {bias})")


def bilinear(p, rows=2048, columns=2048):
    image, a, b = (p.input("f32", rows, columns) for _ in range(3))
    y, x = p.input("i32", rows, columns), p.input("i32", rows, columns)
    near = p.let(f"gather({image}, {y}, {x}) * (1 - {b}) + gather({image}, {y}, {x} + 1) * {b}")
    far = p.let(f"gather({image}, {y} + 1, {x}) * (1 - {b}) + gather({image}, {y} + 1, {x} + 1) * {b}")
    return p.text(f"{near} * (1 - {a}) + {far} * {a}")


# --- saving and counting -----------------------------------------------------------------


def write_zeros(path, dtype, shape):
    size = NPY_SIZES[dtype]
    for extent in shape:
        size *= extent
    header = repr({"descr": NPY_DTYPES[dtype], "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        file.truncate(file.tell() + size)


def save(tenon, folder, name, make):
    p = Program()
    text = make(p)
    values = []
    for key, (dtype, shape) in p.inputs.items():
        path = folder / f"{dtype}_{'_'.join(map(str, shape))}.npy"
        if not path.exists():
            write_zeros(path, dtype, shape)
        values.append(f"{key}={path}")
    graph = folder / f"{name}.graph"
    subprocess.run([tenon, "eval", text, *values, "--save", graph], check=True, stdout=subprocess.DEVNULL)
    return graph


GRAPHS = {"encoder": encoder, "decoder": decoder, "resnet": resnet, "lenet": lenet, "transformer": transformer,
          "statistics": statistics, "columns": columns, "watch": watch, "projections": projections,
          "gated": gated, "recurrent": recurrent,
          "edges": edges, "embeddings": embeddings, "embed_norm": embed_norm, "bilinear": bilinear}


def main():
    parser = argparse.ArgumentParser(description="Counts the kernels of graphs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(GRAPHS))
    parser.add_argument("--tenon", default="tenon", help="the command")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="save the graphs here")
    args = parser.parse_args()
    for name in args.names:
        if name not in GRAPHS:
            parser.error(f"no graph is named '{name}': expected {', '.join(GRAPHS)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{'graph':12}{'launches':>10}{'baked':>8}{'exact':>8}{'folded':>8}{'modules':>9}{'SPIR-V':>12}")
        for name in args.names or GRAPHS:
            graph = save(args.tenon, folder, name, GRAPHS[name])
            done = subprocess.run([args.tenon, "kernels", f"@{graph}", "--json"], check=True, stdout=subprocess.PIPE)
            r = json.loads(done.stdout)
            print(f"{name:12}" + "".join(f"{r[k]:{w}}" for k, w in
                  (("launches", 10), ("baked", 8), ("exact", 8), ("folded", 8), ("modules", 9))) +
                  f"{r['code_bytes']['modules']:12}", flush=True)


if __name__ == "__main__":
    main()
