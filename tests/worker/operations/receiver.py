"""A webhook's receiver on loopback that behaves as it is told: answers, is slow, fails, hangs, redirects."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

OK = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
HANG = b""


def status(code, *fields):
    extra = "".join(f"{item}\r\n" for item in fields)
    return f"HTTP/1.1 {code} X\r\n{extra}Content-Length: 0\r\n\r\n".encode()


@dataclass
class Receiver:
    """`script` holds the answers, the last one for ever; `got` what came: (path, fields, body)."""

    script: list[bytes]
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            body = await reader.readexactly(int(fields.get("content-length", "0")))
            answer = self.script[min(len(self.got), len(self.script) - 1)]
            self.got.append((head[0].split()[1], fields, body))
            self.arrived.set()
            if answer == HANG:
                await reader.read()  # until the sender gives up
            writer.write(answer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiving(*script):
    one = Receiver(list(script) or [OK])
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook/abcdefghijklmnopqrst"
    try:
        yield one
    finally:
        server.close()
        await server.wait_closed()
