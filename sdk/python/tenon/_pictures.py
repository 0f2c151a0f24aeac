# SPDX-License-Identifier: MIT
"""Pictures of graphs, by Graphviz."""

import subprocess


class Graph:
    """A graph in the language of Graphviz: str() gives the text, a notebook shows the picture, save() writes it."""

    def __init__(self, dot):
        self.dot = dot

    def __str__(self):
        return self.dot

    def __repr__(self):
        return f"<tenon graph of {self.dot.count(' -> ')} edges: print() gives its text, save('x.svg') its picture>"

    def svg(self):
        """The picture as text of SVG, by the program dot."""
        try:
            done = subprocess.run(["dot", "-Tsvg"], input=self.dot, capture_output=True, text=True, check=True)
        except OSError as error:
            raise NotImplementedError(f"graph: a picture needs the program dot, and it does not run ({error}): install "
                                      "graphviz, or use the text that str() gives") from None
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"graph: dot failed: {error.stderr.strip()}") from None
        return done.stdout

    def _repr_svg_(self):
        try:
            return self.svg()
        except (NotImplementedError, RuntimeError):
            return None  # without the program dot a notebook shows __repr__

    def save(self, path):
        """Writes the picture (.svg) or the text (.dot)."""
        text = str(path)
        if not text.endswith((".svg", ".dot")):
            raise ValueError(f"graph: got the path {text!r}, expected one that ends in .svg or .dot")
        content = self.svg() if text.endswith(".svg") else self.dot
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
