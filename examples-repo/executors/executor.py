#!/usr/bin/env python3
"""Does every task of one name that launchway leaves to executors, one after the other, by running a command."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

LARGEST_ANSWER = 4 << 20  # bytes
MOST_PAGES = 50
KEPT_OUTPUT = 2000  # characters; the data of a whole sequence may have 64 KiB
LONGEST_PAUSE = 30.0
GRACE = 10.0  # seconds between asking a command to end and ending it

stop = threading.Event()


class Refused(Exception):
    """The server has answered, and will answer the same again."""

    def __init__(self, status, told):
        super().__init__(f"{status}: {told}")
        self.is_about_access = status in (401, 403)


class Server:
    def __init__(self, address, token):
        self.address, self.token = address.rstrip("/"), token

    def ask(self, path, parameters=None, body=None):
        """Asks once. An OSError or a ValueError may go away by itself."""
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        request = urllib.request.Request(self.address + path + query, method="POST" if body else "GET")
        request.add_header("content-type", "application/json")
        if self.token:
            request.add_header("authorization", "Bearer " + self.token)
        try:
            with urllib.request.urlopen(request, json.dumps(body).encode() if body else None, timeout=10) as answer:
                return json.loads(answer.read(LARGEST_ANSWER))
        except urllib.error.HTTPError as error:
            told = error.read(LARGEST_ANSWER).decode(errors="replace")
            if error.code < 500 and error.code not in (408, 429):
                raise Refused(error.code, told) from None
            raise OSError(f"{error.code}: {told}") from None

    def events(self, path, parameters):
        """All pages, as far as they are bounded here."""
        found, parameters = [], dict(parameters, pageSize=20)
        for _ in range(MOST_PAGES):
            page = self.ask(path, parameters)
            found += page["events"]
            if page.get("nextPageKey", "0") == "0":
                break
            parameters["nextPageKey"] = page["nextPageKey"]
        return found


def patiently(ask):
    """Asks until there is an answer; nothing, if this program is to end meanwhile."""
    pause = 1.0
    while not stop.is_set():
        try:
            return ask()
        except (OSError, ValueError) as error:
            log(f"no answer, asks again in {pause:.0f}s: {error}")
        stop.wait(pause)
        pause = min(LONGEST_PAUSE, pause * 2)
    return None


class Executor:
    def __init__(self, server, options):
        self.server, self.options = server, options
        self.type = f"sh.keptn.event.{options.task}"
        self.done = set()  # what is open although it is done here: others have not finished it

    def open(self):
        return self.server.events(f"/api/controlPlane/v1/event/triggered/{self.type}.triggered", {})

    def is_open(self, event):
        return any(it["id"] == event["id"] for it in self.open())

    def run(self):
        taken = 0
        while not stop.is_set():
            events = patiently(self.open) or []
            self.done &= {event["id"] for event in events}
            for event in events:
                if event["id"] not in self.done and not stop.is_set():
                    self.take(event)
                    taken += 1
                if taken and taken == self.options.count:
                    return
            stop.wait(self.options.poll)

    def take(self, event):
        """Does a task. Whatever is sent again after a crash is the same by its id, and changes nothing."""
        try:
            if not patiently(lambda: self.was_told(event, "finished")):
                self.tell(event, "started", {})
                outcome = None if stop.is_set() else self.do(event)
                if outcome is None:  # this program is to end, and begins the task anew after its next start
                    return
                self.tell(event, "finished", outcome)
        except Refused as refused:
            if refused.is_about_access:
                raise
            log(f"{event['id']} is refused: {refused}")
        if not stop.is_set():
            self.done.add(event["id"])

    def was_told(self, event, word):
        parameters = {"keptnContext": event["shkeptncontext"], "eventID": self.id(event, word)}
        return bool(self.server.events("/api/v1/event", parameters))

    def id(self, event, word):
        return f"{event['id']}.{self.options.name}.{word}"

    def tell(self, event, word, data):
        answer = patiently(lambda: self.tell_once(event, word, self.id(event, word), data))
        if answer:
            log(f"{event['id']} {word}" + (f", ignored: {answer['ignored']}" if answer.get("ignored") else ""))

    def tell_once(self, event, word, id_, data):
        scope = {key: event["data"][key] for key in ("project", "stage", "service")}
        return self.server.ask("/api/v1/event", body={
            "specversion": "1.0",
            "id": id_,
            "source": self.options.name,
            "type": f"{self.type}.{word}",
            "shkeptncontext": event["shkeptncontext"],
            "triggeredid": event["id"],
            "data": {**scope, **data},
        })

    def report(self, event, output):
        """Says that it is still at it. The next time is soon, so that nobody has to hear of this one."""
        lines = output.strip().splitlines()
        try:
            # Each has an id of its own, also after a restart: one that was sent before would not count.
            id_ = self.id(event, f"status.changed-{time.time_ns()}")
            self.tell_once(event, "status.changed", id_, {"message": lines[-1] if lines else "at work"})
        except (OSError, ValueError, Refused) as error:
            log(f"{event['id']} status.changed is not told: {error}")

    def do(self, event):
        """Runs the command; says how it went, or nothing if this program is to end."""
        begun = time.monotonic()
        try:
            command = Command(self.options.command, event)
        except OSError as error:
            return {"status": "errored", "result": "fail", "message": str(error)}
        heartbeat = self.options.heartbeat or self.options.timeout
        reported = begun
        while not command.wait(min(self.options.poll, heartbeat)):
            if time.monotonic() - reported >= heartbeat:
                reported = time.monotonic()
                self.report(event, command.output)
            if stop.is_set():
                command.end()
                return None
            if time.monotonic() - begun > self.options.timeout:
                command.end()
                return {"status": "errored", "result": "fail", "message": f"not done after {self.options.timeout:.0f}s"}
            if not self.still_wanted(event):
                command.end()
                return {"status": "aborted", "result": "fail", "message": "ended, because the task is to end"}
        code, output = command.result()
        told = {"exitCode": code, "seconds": round(time.monotonic() - begun, 1), "output": output}
        lines = output.strip().splitlines()
        message = lines[-1] if lines else f"exit code {code}"
        return {"status": "succeeded", "result": "fail" if code else "pass", "message": message, self.options.task: told}

    def still_wanted(self, event):
        try:
            return self.is_open(event)
        except (OSError, ValueError, Refused):
            return True  # as far as is known


class Command:
    """A process with a group of its own, the event at its standard input, and the end of what it prints."""

    def __init__(self, words, event):
        names = {"PROJECT": "project", "STAGE": "stage", "SERVICE": "service"}
        surroundings = {key: value for key, value in os.environ.items() if key != "LAUNCHWAY_TOKEN"}
        surroundings.update({key: event["data"][name] for key, name in names.items()})
        surroundings["COMMIT"] = event.get("gitcommitid", "")
        with tempfile.TemporaryFile() as told:
            told.write(json.dumps(event).encode())
            told.seek(0)
            self.process = subprocess.Popen(words, stdin=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                            env=surroundings, start_new_session=True, text=True, errors="replace")
        self.output = ""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in iter(lambda: self.process.stdout.readline(4096), ""):
            print(line, end="", flush=True)
            self.output = (self.output + line)[-KEPT_OUTPUT:]

    def wait(self, seconds):
        try:
            self.process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            return False

    def end(self):
        for signal_, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
            try:
                os.killpg(self.process.pid, signal_)
            except ProcessLookupError:
                pass
            if self.wait(seconds):
                return

    def result(self):
        self.reader.join(GRACE)  # what it has left behind may hold its output open
        return self.process.returncode, self.output


def log(text):
    print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default=os.environ.get("LAUNCHWAY_SERVER", "http://127.0.0.1:8787"),
                        help="where launchway listens [default: LAUNCHWAY_SERVER]; the token is in LAUNCHWAY_TOKEN")
    parser.add_argument("--task", required=True, help="the name of the tasks that it does")
    parser.add_argument("--name", help="what it calls itself; two that do the same tasks have two names [default: TASK-executor]")
    parser.add_argument("--poll", type=float, default=2.0, help="seconds between two looks [default: 2]")
    parser.add_argument("--heartbeat", type=float, default=0.0,
                        help="seconds between two words of how far it is; less than the `heartbeat` of the task [default: says nothing]")
    parser.add_argument("--timeout", type=float, default=600.0, help="the most seconds that the command may take [default: 600]")
    parser.add_argument("--count", type=int, default=0, help="ends after so many tasks [default: never]")
    parser.add_argument("command", nargs="+", help="what does a task: fails it with another exit code than 0")
    options = parser.parse_args()
    options.name = options.name or f"{options.task}-executor"
    for signal_ in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_, lambda *_: stop.set())
    try:
        Executor(Server(options.server, os.environ.get("LAUNCHWAY_TOKEN", "")), options).run()
    except Refused as refused:
        sys.exit(f"refused: {refused}")


if __name__ == "__main__":
    main()
