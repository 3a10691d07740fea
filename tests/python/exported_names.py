"""What a shared library gives to those that are linked with it."""

import subprocess


def exported(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines()}
