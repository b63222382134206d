#!/usr/bin/env python3
"""A simulated switch over ssh: answers commands with recorded outputs, whose counters grow.

    simulator.py --port-file FILE [--mute WORDS] VARIANT
    simulator.py --port-file FILE --refuse

VARIANT is a folder of tests/fixtures/switches. A command that holds the words of `words.json` is
that answer. Its counters grow with the time since the start, as from before/ to after/.
--mute never answers a command that holds these words, and --refuse rejects every login. It listens
on 127.0.0.1, writes the port to FILE when it is ready, logs each command to standard error, and
ends with its parent.
"""

import argparse
import asyncio
import json
import os
import pathlib
import re
import sys
import time

import asyncssh
from growth import grown

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "switches"


class Server(asyncssh.SSHServer):
    def __init__(self, refuse):
        self.refuse = refuse

    def begin_auth(self, username):
        return True

    def public_key_auth_supported(self):
        return True

    def validate_public_key(self, username, key):
        return not self.refuse  # with any key; this is a test's own loopback

    def password_auth_supported(self):
        return False


class Switch:
    """What the fixtures say, and since when."""

    def __init__(self, variant):
        self.folder = FIXTURES / variant
        words = json.loads((FIXTURES / "words.json").read_text())
        self.words = words[variant.split("-")[0]]
        self.began = time.monotonic()

    def answer(self, command):
        # the longest words that are in the command: "... counters detail" holds "... counters", too
        names = [name for name, words in self.words.items() if words in command]
        name = max(names, key=lambda n: len(self.words[n]), default=None)
        if name is None:
            return "% Invalid input (at token 1: 'show')\n"
        before, after = (self.folder / phase / name for phase in ("before", "after"))
        if not before.exists():
            return "% Invalid input (at token 1: 'show')\n"
        seconds = time.monotonic() - self.began
        return grown(before.read_text(), after.read_text(), seconds)


async def serve(args):
    switch = Switch(args.variant) if args.variant else None

    async def session(process):
        command = process.command or ""
        print(command, file=sys.stderr, flush=True)
        # sudo's part, where Ansible asks for root
        process.stdout.write(
            "".join(f"{word}\n" for word in re.findall(r"BECOME-SUCCESS-\w+", command)[:1])
        )
        if args.mute and args.mute in command:
            await process.wait_closed()  # until the client has left
            return
        process.stdout.write(switch.answer(command))
        process.exit(0)

    server = await asyncssh.create_server(
        lambda: Server(args.refuse),
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        process_factory=session,
    )
    part = pathlib.Path(f"{args.port_file}.part")
    part.write_text(f"{server.get_port()}\n")
    part.rename(args.port_file)
    parent = os.getppid()
    while os.getppid() == parent:  # a test that was killed leaves no switch behind
        await asyncio.sleep(0.5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--refuse", action="store_true")
    parser.add_argument("--mute")
    parser.add_argument("variant", nargs="?")
    asyncio.run(serve(parser.parse_args()))


main()
