"""Controls Chromium without a window over a pipe (the DevTools protocol)."""
import base64
import json
import os
import select
import shutil
import subprocess
import time

from harness import TIME_FACTOR

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 60 * TIME_FACTOR


class Browser:
    """One page, which uses the real clock. Raises TimeoutError if the browser does not answer."""

    def __init__(self, folder):
        ours, theirs = os.pipe(), os.pipe()  # it reads descriptor 3 and writes 4

        def set_up():
            fds = [os.dup(fd) for fd in (ours[0], theirs[1])]  # neither may be the other's number
            for number, fd in enumerate(fds, 3):
                os.dup2(fd, number)

        command = [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=set_up, close_fds=False)
        os.close(ours[0])
        os.close(theirs[1])
        self.requests, self.answers = ours[1], theirs[0]
        self.read, self.last, self.session = b"", 0, {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}

    def call(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters, **self.session}
        os.write(self.requests, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            while b"\0" not in self.read:
                ready, _, _ = select.select([self.answers], [], [], max(0, deadline - time.monotonic()))
                piece = os.read(self.answers, 1 << 20) if ready else b""
                if not piece:
                    raise TimeoutError(f"chromium does not answer {method}")
                self.read += piece
            text, _, self.read = self.read.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self.last:
                return answer["result"]

    def open(self, address):
        self.call("Page.navigate", url=address)

    def value_of(self, expression):
        """Returns the value of a JavaScript expression in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def show(self, address, width, scheme="light"):
        """Opens a page in a window of that width, and waits until it is whole."""
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.open(address)
        deadline = time.monotonic() + PATIENCE
        while self.value_of("document.readyState + location.href") != "complete" + address:
            if time.monotonic() > deadline:
                raise TimeoutError(f"chromium does not show {address}")
            time.sleep(0.01)

    def picture(self, path, width, scheme="light"):
        """Writes a picture of the whole page as PNG."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        os.close(self.requests)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)
