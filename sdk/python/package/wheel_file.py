# SPDX-License-Identifier: MIT
"""Wheels as folders, and back: archives whose RECORD lists each file's hash."""

import base64
import hashlib
import pathlib
import re
import zipfile

EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def unpack(wheel, folder):
    """Unpacks a wheel into a folder that is not there yet."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)


def info_folder(folder):
    """The folder NAME-VERSION.dist-info of an unpacked wheel."""
    return next(folder.glob("*.dist-info"))


def set_tag(folder, tag):
    """Says in WHEEL for which interpreters and systems the wheel is: "cp311-abi3-linux_x86_64"."""
    file = info_folder(folder) / "WHEEL"
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("Tag:")]
    file.write_text("\n".join([*lines, f"Tag: {tag}", ""]))


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def pack(folder, directory, tag):
    """Writes the wheel of a folder, with its RECORD, and gives the file's path."""
    set_tag(folder, tag)
    info = info_folder(folder)
    record = info / "RECORD"
    record.unlink(missing_ok=True)
    wheel = pathlib.Path(directory) / f"{re.sub('.dist-info$', '', info.name)}-{tag}.whl"
    rows = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        # By convention dist-info is last.
        for file in sorted((f for f in folder.rglob("*") if f.is_file()), key=lambda f: (info in f.parents, f)):
            data, name = file.read_bytes(), file.relative_to(folder).as_posix()
            rows.append(f"{name},sha256={_digest(data)},{len(data)}")
            _add(archive, name, data)
        name = record.relative_to(folder).as_posix()
        _add(archive, name, "\n".join([*rows, f"{name},,", ""]).encode())
    return wheel


def _add(archive, name, data):
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.external_attr = (0o100755 if ".so" in pathlib.PurePath(name).name else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)
