# SPDX-License-Identifier: MIT
"""Makes an unpacked wheel run without the libraries of the machine that built it, as auditwheel does.

Libraries that the wheel's files link with are copied to tenon/lib, but for the C library and its like. Their
names there have a hash of the content, so that another package's library of the same name is not taken for
one. OpenBLAS is opened when it is first needed, as tenon/lib/tenon/libopenblas.so.0 (plugins/common/openblas). Copying
changes the plugins' files, so their manifests, which have hashes, are written anew afterwards.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess

import backend

# Libraries that the rules for manylinux leave to the system. Vulkan's loader is the system's, too, opened at run time.
SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z))\.so\.\d+")
OPENBLAS = "libopenblas.so.0"
OLDEST_GLIBC = (2, 36)  # what Debian 12 has, and what packed relocations need


class RepairError(Exception):
    pass


def tell(*command):
    try:
        done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True,
                              env=os.environ | {"LC_ALL": "C"})
    except FileNotFoundError:
        raise RepairError(f"{command[0]} is not installed") from None
    if done.returncode:
        raise RepairError(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path):
    """The libraries that a shared object links with, but for the system's."""
    return [name for name in tell("patchelf", "--print-needed", path).split() if not SYSTEM.fullmatch(name)]


def found(path, name):
    """Where the dynamic loader finds a library that a shared object links with."""
    for line in tell("ldd", path).splitlines():
        match = re.fullmatch(r"\s*(\S+) => (/\S+) \(0x[0-9a-f]+\)", line)
        if match and match.group(1) == name:
            return pathlib.Path(match.group(2)).resolve()
    raise RepairError(f"{path} needs {name}, which is not installed here")


def system_library(name):
    """The system's library of a name, by the cache of the dynamic loader."""
    match = re.search(rf"^\s*{re.escape(name)} \(libc6,[^)]*64[^)]*\) => (\S+)$", tell("/sbin/ldconfig", "-p"), re.MULTILINE)
    if not match:
        raise RepairError(f"{name} is not installed here: install it (Debian: apt install libopenblas0-pthread), "
                          "or leave it out by --without-openblas")
    return pathlib.Path(match.group(1)).resolve()


def copyright_of(library):
    """The text that Debian's package of a library has on its licence; None elsewhere."""
    for path in (library, pathlib.Path(str(library).replace("/usr/lib/", "/lib/", 1))):
        done = subprocess.run(["dpkg", "-S", path], check=False, capture_output=True, text=True)
        text = pathlib.Path("/usr/share/doc", done.stdout.partition(":")[0], "copyright")
        if done.returncode == 0 and text.is_file():
            return text
    return None


class Repair:
    def __init__(self, folder, licenses):
        self.folder, self.lib, self.licenses = folder, folder / "tenon/lib", licenses
        self.names = {}  # names of copied libraries in the wheel, by the path of the original
        self.changed = []  # changed files of plugins

    def shared_objects(self):
        return [path for path in sorted(self.folder.rglob("*")) if path.is_file() and is_elf(path)]

    def carry(self, library, name, keeps_name=False):
        """Copies a library, and what it links with, into the wheel. Gives its name there."""
        if library in self.names:
            return self.names[library]
        stem, dot, rest = os.path.basename(name).partition(".so")
        digest = hashlib.sha256(library.read_bytes()).hexdigest()[:8]
        ours = self.names[library] = name if keeps_name else f"{stem}-{digest}{dot}{rest}"
        copy = self.lib / ours
        shutil.copyfile(library, copy)
        tell("patchelf", "--set-soname", copy.name, copy)
        self.link(copy, library)
        text = copyright_of(library)
        if text:
            shutil.copyfile(text, self.licenses / f"{stem}.txt")
        return ours

    def link(self, path, original=None):
        """Makes a shared object link with the wheel's libraries. `original`: the file before it was copied."""
        for name in needed(path):
            if not (self.lib / name).exists():
                tell("patchelf", "--replace-needed", name, self.carry(found(original or path, name), name), path)

    def set_path(self, path):
        """Where a shared object looks for libraries: in tenon/lib alone, if it needs any."""
        relative = os.path.relpath(self.lib, path.parent)
        if needed(path):
            tell("patchelf", "--set-rpath", "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}", path)
        elif tell("patchelf", "--print-rpath", path).strip():
            tell("patchelf", "--remove-rpath", path)

    def run(self, openblas):
        before = {path: path.read_bytes() for path in self.shared_objects()}
        for path in before:
            self.link(path)
        # Plugins are loaded from private copies, for which $ORIGIN means nothing, so libtenon links with their libraries.
        for name in self.names.values():
            if name not in needed(self.lib / backend.LIBRARY):
                tell("patchelf", "--add-needed", name, self.lib / backend.LIBRARY)
        if openblas:
            self.carry(openblas, f"tenon/{OPENBLAS}", keeps_name=True)
        for path in self.shared_objects():
            self.set_path(path)
        self.changed = [path for path in before if path.read_bytes() != before[path] and path.parent.parent.name == "plugins"]


def glibc_of(paths):
    """The oldest C library that shared objects run with."""
    versions = {OLDEST_GLIBC}
    for path in paths:
        versions |= {(int(a), int(b)) for a, b in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", tell("readelf", "-V", path))}
    return max(versions)


def write_manifests(folder, files, tenon, tool):
    """Writes plugin.json beside plugins' files, by the tool that does so for installations."""
    # The libtenon that opens them has to be the wheel's.
    variables = {"MESON_INSTALL_PREFIX": "/", "MESON_INSTALL_DESTDIR_PREFIX": "/",
                 "LD_LIBRARY_PATH": str(folder / "tenon/lib")}
    done = subprocess.run([tool, "manifest", "--tenon", tenon, "--", *files], check=False,
                          env=os.environ | variables)
    if done.returncode:
        raise RepairError("the manifests of plugins could not be written")
