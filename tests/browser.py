#!/usr/bin/env python3
"""Looks at a page in a headless Chromium: browser.py PAGE OUT_DIR.

Writes facts.json, screenshots and page.pdf to OUT_DIR. Speaks Chrome's DevTools protocol over a
pipe (--remote-debugging-pipe: JSON between NUL bytes), which needs no driver and no library. It
judges nothing: tests/bats/page.bats does. Exit 1 when the browser cannot be used.
"""

import base64
import fcntl
import json
import os
import pathlib
import signal
import sys
import tempfile

import axe_core_python

HERE = pathlib.Path(__file__).resolve().parent
AXE = pathlib.Path(axe_core_python.__file__).parent / "axe.min.js"
CHROMIUM = "/usr/bin/chromium"
# A page that answers nothing for so long never will: everything here takes 20 s on two busy CPUs.
LIMIT_S = 120
# --no-sandbox: the tests may run as root or in a container, and they made the page themselves.
OPTIONS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
]  # fmt: skip
PHONE, DESKTOP = (360, 740), (1440, 900)
# A4 without the margins of @page, in CSS pixels of 1/96 inch: 210 - 24 mm.
PAPER = (703, 1000)
LOOKS = [
    ("phone-light", PHONE, "light"),
    ("phone-dark", PHONE, "dark"),
    ("desktop-light", DESKTOP, "light"),
    ("desktop-dark", DESKTOP, "dark"),
]
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]


class Browser:
    """One Chromium with one page: messages are answered in order, events kept in self.events."""

    def __init__(self, home):
        to_child, self.to = os.pipe()
        self.answers, from_child = os.pipe()
        # above 3 and 4, which the child's ends become
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (to_child, from_child)]
        quiet = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, quiet, fd) for fd in (0, 1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, ends[0], 3), (os.POSIX_SPAWN_DUP2, ends[1], 4)]
        argv = [CHROMIUM, *OPTIONS, f"--user-data-dir={home}", "about:blank"]
        self.pid = os.posix_spawn(
            CHROMIUM, argv, {**os.environ, "HOME": home}, file_actions=actions, setpgroup=0
        )
        for fd in (to_child, from_child, *ends, quiet):
            os.close(fd)
        self.rest, self.number, self.events, self.session = b"", 0, [], None
        page = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self):
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def message(self):
        while b"\0" not in self.rest:
            read = os.read(self.answers, 1 << 20)
            if not read:
                raise RuntimeError(f"{CHROMIUM} ended")
            self.rest += read
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def ask(self, method, **params):
        self.number += 1
        question = {"id": self.number, "method": method, "params": params}
        if self.session:
            question["sessionId"] = self.session
        os.write(self.to, json.dumps(question).encode() + b"\0")
        while (answer := self.message()).get("id") != self.number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait_for(self, event):
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self.message())

    def run(self, script):
        """The value of a JavaScript expression; `page` is tests/browser.js."""
        answer = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script[:80]}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, url):
        self.events = []
        self.ask("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")
        self.run("globalThis.page = " + (HERE / "browser.js").read_text(encoding="utf-8"))

    def show(self, size, scheme="light", media="screen"):
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=size[0],
            height=size[1],
            deviceScaleFactor=1,
            mobile=size == PHONE,
        )
        self.ask(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def key(self, key, code):
        for kind in ("rawKeyDown", "keyUp"):
            self.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def said(self):
        """Words on the console, and what was asked of network or disk besides the page itself."""
        words = [
            e["params"]
            for e in self.events
            if e.get("method")
            in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        ]
        asked = [
            e["params"]["request"]["url"]
            for e in self.events
            if e.get("method") == "Network.requestWillBeSent"
        ]
        return {"console": [json.dumps(w)[:300] for w in words], "requests": asked}


def keyboard(browser):
    """Tab through the whole page at a phone's width, then the skip link and the arrow keys."""
    browser.show(PHONE)
    expected, seen = browser.run("page.stops()"), []
    for _ in range(len(expected) + 1):
        browser.key("Tab", 9)
        seen.append(browser.run("page.focus()"))
        if seen[-1]["name"] is None:
            break
    facts = {
        "expected": expected,
        "reached": [s["name"] for s in seen if s["name"]],
        "unseen": [s["name"] for s in seen if s["name"] and not s["seen"]],
    }
    browser.run("document.querySelector('.scroll').focus(); null")
    browser.key("ArrowRight", 39)
    # scrolling is smooth: until it has begun, or two seconds
    facts["scrolled"] = browser.run(
        """new Promise(done => { const end = Date.now() + 2000, e = document.activeElement;
             (function look() {
               if (e.scrollLeft > 0 || Date.now() > end) done(e.scrollLeft);
               else setTimeout(look, 20);
             })(); })"""
    )
    browser.run("document.querySelector('.skip').focus(); null")
    browser.ask(
        "Input.dispatchKeyEvent",
        type="keyDown",
        key="Enter",
        code="Enter",
        windowsVirtualKeyCode=13,
        text="\r",
    )
    facts["skipped_to"] = browser.run("location.hash")
    return facts


def picture(browser, out, name):
    size = browser.ask("Page.getLayoutMetrics")["cssContentSize"]
    # 16,384 pixels are the most that Chromium draws at once
    clip = {
        "x": 0,
        "y": 0,
        "width": size["width"],
        "height": min(size["height"], 16384),
        "scale": 1,
    }
    shot = browser.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    (out / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


def screens(browser, out):
    """Layout and contrast at each size and in each scheme, with a picture of each."""
    facts = {}
    for name, size, scheme in LOOKS:
        browser.show(size, scheme)
        browser.run("scrollTo(0, 0); document.activeElement.blur(); null")
        facts[name] = {
            "layout": browser.run("page.layout()"),
            "contrast": browser.run("page.faint()"),
        }
        picture(browser, out, name)
    return facts


def paper(browser, out):
    """The page on paper, and as a PDF."""
    browser.show(PAPER, media="print")
    layout = browser.run("page.paper()") | {"contrast": browser.run("page.faint()")}
    answer = browser.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
    pdf = base64.b64decode(answer["data"])
    (out / "page.pdf").write_bytes(pdf)
    pages = sum(pdf.count(b"/Type /Page" + end) for end in (b"\n", b" ", b"/"))
    return {"paper": layout, "pdf": {"bytes": len(pdf), "pages": pages}}


def accessibility(browser, url):
    """What axe says of the unfolded page on a phone and on a dark desktop."""
    facts = {}
    # axe is a script, so that the page's own policy must be out of its way
    browser.ask("Page.setBypassCSP", enabled=True)
    browser.open(url)
    browser.run("page.unfold(); null")
    browser.run(AXE.read_text(encoding="utf-8") + "; null")
    for name, size, scheme in (LOOKS[0], LOOKS[-1]):
        browser.show(size, scheme)
        result = browser.run(
            f"axe.run(document, {{runOnly: {json.dumps(WCAG)}, "
            "resultTypes: ['violations', 'passes']})"
        )
        facts[name] = {
            "violations": [
                f"{v['id']}: {v['help']}: {v['nodes'][0]['html'][:120]}"
                for v in result["violations"]
            ],
            "passes": len(result["passes"]),
        }
    return facts


def look(browser, url, out):
    facts = {}
    browser.open(url)
    facts["whole"] = browser.run("page.whole()")
    browser.show(DESKTOP)
    facts["folded"] = browser.run("page.folded()")
    picture(browser, out, "folded")
    browser.show(PAPER, media="print")
    facts["paper_folded"] = browser.run("page.paper()")
    browser.run("page.unfold(); null")
    facts["keyboard"] = keyboard(browser)
    facts |= screens(browser, out)
    facts |= paper(browser, out)
    facts |= browser.said()  # before axe runs
    facts["axe"] = accessibility(browser, url)
    return facts


def main(page, out):
    out.mkdir(parents=True, exist_ok=True)
    signal.alarm(LIMIT_S)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        browser = Browser(home)
        try:
            facts = look(browser, page.resolve().as_uri(), out)
        finally:
            browser.close()
    (out / "facts.json").write_text(
        json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8"
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: browser.py PAGE OUT_DIR")
    try:
        main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    except (OSError, RuntimeError, StopIteration) as error:
        sys.exit(f"browser: {error}")
