"""A stand-in for torchrun: a store that speaks the protocol of torch's TCPStore, and an agent that starts processes.

    torchrun.py -n 3 [--restarts 1] PROGRAM ...

Written from the protocol (docs/gotchas/torchrun.md) and without brant's client in mind, so that both can be wrong in
their own ways only. As torchrun does it ends all processes when one fails; it ends with that one's exit code.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import struct
import subprocess
import sys
import threading
import time

VALIDATE, SET, COMPARE_SET, GET, ADD, CHECK, WAIT, NUM_KEYS, DELETE, APPEND, MULTI_GET, MULTI_SET, CANCEL, PING = range(
    14
)
MAGIC = 0x3C85F7CE


class Store:
    """One store. `dies_after`: it closes everything when so many questions were asked."""

    def __init__(self, dies_after: int | None = None):
        self.values: dict[bytes, bytes] = {}
        self.waiting: list[tuple[set[bytes], asyncio.StreamWriter]] = []
        self.left = dies_after
        self.port = 0
        self._ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        self._ready.wait()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await server.serve_forever()

    def _set(self, key: bytes, value: bytes) -> None:
        self.values[key] = value
        for keys, writer in list(self.waiting):
            keys.discard(key)
            if not keys:
                self.waiting.remove((keys, writer))
                writer.write(b"\0")

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def number(form: str) -> int:
            return struct.unpack("<" + form, await reader.readexactly(struct.calcsize("<" + form)))[0]

        async def run() -> bytes:
            return await reader.readexactly(await number("Q"))

        def answer(value: bytes) -> None:
            writer.write(struct.pack("<Q", len(value)) + value)

        try:
            assert await number("B") == VALIDATE
            assert await number("I") == MAGIC
            while True:
                ask = await number("B")
                if self.left is not None:
                    self.left -= 1
                    if self.left < 0:
                        return
                if ask == SET:
                    self._set(await run(), await run())
                elif ask == COMPARE_SET:
                    key, expected, wanted = await run(), await run(), await run()
                    if self.values.get(key, b"") == expected:
                        self.values[key] = wanted
                    answer(self.values.get(key, expected))
                elif ask == ADD:
                    key = await run()
                    value = int(self.values.get(key, b"0")) + await number("q")
                    self._set(key, str(value).encode())
                    writer.write(struct.pack("<q", value))
                elif ask in (CHECK, WAIT):
                    missing = {key for key in [await run() for _ in range(await number("Q"))] if key not in self.values}
                    if ask == CHECK:
                        writer.write(bytes([bool(missing)]))
                    elif missing:
                        self.waiting.append((missing, writer))
                    else:
                        writer.write(b"\0")
                elif ask == MULTI_GET:
                    for key in [await run() for _ in range(await number("Q"))]:
                        answer(self.values[key])
                elif ask == CANCEL:
                    self.waiting = [one for one in self.waiting if one[1] is not writer]
                    writer.write(b"\1")
                else:
                    raise AssertionError(f"question {ask} is not one that this store knows")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.waiting = [one for one in self.waiting if one[1] is not writer]
            writer.close()


def variables(rank: int, size: int, port: int, attempt: int = 0) -> dict[str, str]:
    """What torchrun gives its processes, on one host."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": str(attempt),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


def run_once(size: int, port: int, attempt: int, program: list[str]) -> int:
    """Starts them, and ends all when one fails: its exit code."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("BRANT_BOOT")}
    processes = [
        subprocess.Popen(program, env={**plain, **variables(rank, size, port, attempt)}) for rank in range(size)
    ]
    try:
        while True:
            codes = [process.poll() for process in processes]
            failed = [code for code in codes if code]
            if failed:
                return failed[0] if failed[0] > 0 else 128 - failed[0]
            if None not in codes:
                return 0
            time.sleep(0.01)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, required=True)
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    store = Store()
    for attempt in range(asked.restarts + 1):
        code = run_once(asked.n, store.port, attempt, asked.program)
        if code == 0:
            break
    return code


if __name__ == "__main__":
    sys.exit(main())
