#!/usr/bin/env python3
"""Unpacks PyTorch into .frameworks, for tests on CPUs: 0.6 GB to download, 0.7 GB of disk, under a minute.

Its wheel is that for GPUs, since registries have no other; of what is CUDA's in it the large parts are left out, and
small libraries stand in for them and for the 2.5 GB of further wheels (cuda_stand_ins.py). Only the stage `torch` of
tools/run_tests.py calls this. A stamp of the inputs makes a second run take no time.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import cuda_stand_ins
import setup

FRAMEWORKS = setup.ROOT / ".frameworks"
REQUIREMENTS = setup.ROOT / "requirements-frameworks.txt"
# Of the wheel: what is for GPUs, and a compiler that nothing here calls.
LEFT_OUT = re.compile(r"^torch/(lib/lib(torch_cuda|torch_cuda_linalg|torch_nvshmem|caffe2_nvrtc)\.so|bin/protoc.*)$")


def unpack_wheel(wheel: pathlib.Path, target: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if LEFT_OUT.match(member.filename):
                continue
            path = pathlib.Path(archive.extract(member, target))
            if member.external_attr >> 16 & 0o111 and path.is_file():
                path.chmod(0o755)


def fetch_torch(fresh: pathlib.Path) -> None:
    pip, env = setup.pip_command(setup.VENV / "bin" / "python")
    named = [line for line in REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")]
    torch = next(line for line in named if line.startswith("torch=="))
    others = [line for line in named if line != torch]
    quiet = ["--quiet", "--no-deps", "--no-cache-dir"]
    setup.run([*pip, "install", *quiet, "--target", str(fresh), *others], env=env)
    download = fresh / "download"
    setup.run([*pip, "download", *quiet, "-d", str(download), torch], env=env)
    unpack_wheel(next(download.glob("torch-*.whl")), fresh)
    shutil.rmtree(download)
    # Kernels for GPUs that take the place of PyTorch's own, which are not here.
    kernels = fresh / "torch" / "_native" / "ops" / "__init__.py"
    if kernels.exists():
        kernels.write_text('"""Kernels for GPUs: left out."""\n')
    cuda_stand_ins.make(fresh / "torch" / "lib")
    subprocess.run(
        [str(setup.VENV / "bin" / "python"), "-c", "import torch"], env={**env, "PYTHONPATH": str(fresh)}, check=True
    )


def main() -> int:
    texts = [REQUIREMENTS.read_text(), LEFT_OUT.pattern, pathlib.Path(cuda_stand_ins.__file__).read_text(), sys.version]
    want = setup.digest(*texts)
    if setup.stamp_is(FRAMEWORKS / ".stamp", want):
        return 0
    setup.say("unpacking PyTorch, which tests of brant.torch use, into .frameworks (about 560 MB to download)")
    fresh = setup.ROOT / ".frameworks.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    try:
        fetch_torch(fresh)
    except (setup.SetupError, OSError, StopIteration, subprocess.CalledProcessError) as error:
        shutil.rmtree(fresh, ignore_errors=True)
        print(f"setup: {error}\nsetup: going on WITHOUT PyTorch: the tests of brant.torch are skipped", file=sys.stderr)
        return 1
    (fresh / ".stamp").write_text(want)
    shutil.rmtree(FRAMEWORKS, ignore_errors=True)
    fresh.rename(FRAMEWORKS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
