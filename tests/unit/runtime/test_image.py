"""Mapped machine code: what the system says about its memory, and how long it stays."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.expect import raises_code
from tilewright.llvm.link import link
from tilewright.llvm.machine import object_of
from tilewright.runtime import _native
from tilewright.runtime.image import Image
from tilewright.target import Target

SEVEN = """\
target triple = "{triple}"
define i32 @seven() nounwind {{
  ret i32 7
}}
"""


def code_of_seven():
    target = Target.host()
    return link([object_of(SEVEN.format(triple=target.triple), target)]).code


def call(image):
    return ctypes.CFUNCTYPE(ctypes.c_int)(image.address)()


def rights_at(address):
    """What /proc says about the mapping of an address; empty if there is none."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
        if int(first, 16) <= address < int(last, 16):
            return rights
    return ""


def test_copied_code_runs_and_cannot_be_written():
    code = code_of_seven()
    image = Image.from_bytes(code)
    assert call(image) == 7
    assert rights_at(image.address) == "r-xp"
    assert image.bytes == code
    assert image.bytes.readonly
    assert re.fullmatch(rf"Image\({len(code)} bytes at 0x\w+\)", repr(image))


def test_code_of_a_file_is_mapped_as_it_is(tmp_path):
    code = code_of_seven()
    path = tmp_path / "code"
    path.write_bytes(bytes(65536) + code + b"more")
    with path.open("rb") as file:
        image = Image.from_file(file.fileno(), 65536, len(code))
    assert call(image) == 7
    assert rights_at(image.address) == "r-xp"
    assert image.bytes == code


def test_code_goes_with_its_last_owner():
    image = Image.from_bytes(code_of_seven() + bytes(1 << 22))
    address, view = image.address, image.bytes
    del image
    gc.collect()
    assert rights_at(address) == "r-xp"  # the view keeps it
    del view
    gc.collect()
    assert rights_at(address) != "r-xp"


def test_empty_image_has_no_address(tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(b"")
    with path.open("rb") as file:
        images = Image.from_bytes(b""), Image.from_file(file.fileno(), 0, 0)
    assert [(image.address, bytes(image.bytes)) for image in images] == [(0, b"")] * 2


@pytest.mark.parametrize(
    ("offset", "size_bytes"), [(0, 101), (4096, 1), (-4096, 10), (0, -1), (1 << 62, 4096), (1, 10)]
)
def test_image_rejects_a_part_that_the_file_does_not_have(offset, size_bytes, tmp_path):
    path = tmp_path / "code"
    path.write_bytes(bytes(100))
    with path.open("rb") as file, raises_code("A101"):
        Image.from_file(file.fileno(), offset, size_bytes)


def test_image_rejects_a_closed_file():
    with raises_code("A101", text=os.strerror(errno.EBADF)):
        Image.from_file(-1, 0, 10)


def test_native_image_takes_buffers_only():
    with pytest.raises(TypeError):
        _native.Image("text")
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        _native.Image(b"")


def test_code_is_copied_where_files_cannot_be_executed(tmp_path, monkeypatch):
    code = code_of_seven()
    path = tmp_path / "code"
    path.write_bytes(code)

    class Forbidding:
        def __new__(cls, content):
            return native(content)

        @staticmethod
        def map(*_):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    native = _native.Image
    monkeypatch.setattr(_native, "Image", Forbidding)
    with path.open("rb") as file:
        assert call(Image.from_file(file.fileno(), 0, len(code))) == 7


def test_image_names_the_policy_that_forbids_it(monkeypatch):
    def forbid(_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(_native, "Image", forbid)
    with raises_code("A101", text="execmem"):
        Image.from_bytes(b"code")


UNDER_A_POLICY = """\
import ctypes, sys
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) != 0:
    sys.exit("unsupported")
from tilewright.runtime.image import Image
image = Image.from_bytes(bytes.fromhex(sys.argv[1]))
print(ctypes.CFUNCTYPE(ctypes.c_int)(image.address)())
"""


def test_image_works_where_written_memory_may_not_become_executable():
    """Linux 6.3 can forbid it for a process; a file without a name is mapped instead."""
    command = [sys.executable, "-c", UNDER_A_POLICY, code_of_seven().hex()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.stderr.strip() == "unsupported":
        pytest.skip("this kernel has no such policy")
    assert (done.stdout, done.stderr) == ("7\n", "")
