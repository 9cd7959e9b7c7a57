"""What every step needs: scenarios for a preset, warmgate and its reports, the file in the end."""

import datetime
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST_OF_A_FILE = 16 << 20
DONE, UNEXPECTED, NOT_OBSERVED = "as expected", "unexpected", "not observed"


def local(words):
    """A program of this folder: runs have a folder of their own."""
    if words and "/" in words[0] and os.path.exists(words[0]):
        return [os.path.abspath(words[0]), *words[1:]]
    return words


class NotObserved(Exception):
    """Why a step could not be made."""


class Unexpected(Exception):
    """What a step saw that it should not have seen."""


def refuse(text):
    """Bad usage."""
    print(f"ci/acceptance-engine: {text}", file=sys.stderr)
    sys.exit(2)


def find_warmgate():
    places = [os.environ.get("WARMGATE"), *(os.path.join(ROOT, at, "warmgate") for at in ("../bin", "build/bin", "build-dev/bin"))]
    for place in places:
        if place and os.access(place, os.X_OK):
            return place
    found = shutil.which("warmgate")
    if found is None:
        refuse("no warmgate: build it (ci/build release), or name it in WARMGATE")
    return found


def find_fixtures():
    for place in (os.environ.get("WARMGATE_FIXTURES"), os.path.join(ROOT, "fixtures")):
        if place and os.path.exists(os.path.join(place, "servers", "acceptance.json")):
            return place
    refuse("fixtures/servers/acceptance.json is nowhere; set WARMGATE_FIXTURES")


def faults(fixtures):
    with open(os.path.join(fixtures, "servers", "acceptance.json")) as file:
        return json.load(file)


class Kit:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.warmgate, self.fixtures = find_warmgate(), find_fixtures()
        table = faults(self.fixtures)
        if args.preset not in table["presets"]:
            refuse(f"no preset '{args.preset}'; there are {', '.join(table['presets'])}")
        self.reasons = table["reasons"]
        self.how, self.default_config = table["presets"][args.preset], os.path.join(self.fixtures, table["config"])
        self.deadline = time.monotonic() + 60 * args.minutes
        self.model, self.healthy, self.files = args.model, None, []
        self.steps, self.out_of_time = [], False

    # What is started.

    def command(self):
        words = self.args.command or self.how.get("command") or []
        root = os.path.dirname(os.path.abspath(self.fixtures))
        return local([word.replace("{root}", root) for word in words])

    def side(self, text):
        """venv=…, wheel=…, image=…, worktree=REV[@REPO] with venv=…, args=…, command=…; joined by commas."""
        overlay, server = {}, {}
        for part in text.split(","):
            key, _, value = part.partition("=")
            if key in ("args", "command"):
                server[key] = local(shlex.split(value)) if key == "command" else shlex.split(value)
            elif key == "worktree":
                revision, _, repo = value.partition("@")
                overlay["worktree"] = {"revision": revision, **({"repo": os.path.abspath(repo)} if repo else {})}
            elif key in ("venv", "wheel"):
                overlay[key] = os.path.abspath(value)
            elif key == "image":
                overlay[key] = value
            else:
                refuse(f"'{part}' is none of venv=, wheel=, image=, worktree=, args=, command=")
        if "worktree" in overlay and "venv" in overlay:
            overlay["worktree"]["native"] = {"venv": overlay.pop("venv")}
        return overlay, server

    def variant(self, args=(), env=None, overlay=None, command=None, **server):
        """`server` are keys of target.server."""
        whole = {"args": [*self.how.get("args", []), *self.args.arg, *args], **server}
        if command:
            whole["command"] = command
        if env:
            whole["env"] = env
        return {**(overlay or {}), "target": {"server": whole}}

    def scenario(self, name, variants, **more):
        server = {"preset": self.args.preset}
        if self.command():
            server["command"] = self.command()
        if self.model:
            server["model"] = self.model
        body = {
            "scenario": name, "target": {"server": server},
            "workload": {"requests": 3, "prompt_tokens": 32, "output_tokens": 8}, "variants": variants, **more,
        }
        path = os.path.join(self.folder, "scenarios", f"{name}.yaml")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            json.dump(body, file, indent=1)  # JSON is YAML
        self.files.append(f"scenarios/{name}.yaml")
        return path

    def below(self, folder):
        found = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
        return sorted(os.path.relpath(path, self.folder) for path in found if not os.path.islink(path))

    # warmgate, and what it says.

    def run(self, verb, name, *words, during=None):
        """The report of a command that writes one, as JSON; (report, exit code)."""
        report = os.path.join(self.folder, f"{name}.json")
        kept = os.path.join(self.folder, "kept", name)
        argv = [self.warmgate, verb, *words, "--json", report, "--keep", kept, "--no-github"]
        left = max(1, self.deadline - time.monotonic())
        with open(os.path.join(self.folder, f"{name}.txt"), "wb") as out:
            process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            try:
                if during:
                    during(process)
                process.wait(left)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                process.wait()
                self.out_of_time = True
                raise NotObserved(f"no time left ({self.args.minutes:g} minutes in all)") from None
            except BaseException:
                process.send_signal(signal.SIGINT)
                process.wait()
                raise
        self.files += [name + ".json", name + ".txt", *self.below(kept)]
        try:
            with open(report) as file:
                return json.load(file), process.returncode
        except (OSError, ValueError):
            with open(os.path.join(self.folder, f"{name}.txt"), errors="replace") as file:
                tail = file.read()[-400:].strip()
            raise Unexpected(f"warmgate {verb} ended with {process.returncode} and no report: {tail}") from None

    def one(self, name, variant, during=None):
        """One start of one variant: its run as the report tells it."""
        report, code = self.run("run", name, self.scenario(name, {"A": variant}), "--variant", "A", during=during)
        run = first_run(report)
        if code == 4 or run is None:
            raise NotObserved(f"the machine was at fault, or nothing ran: {reason_of(report)}")
        return run

    def step(self, name, work):
        begun = time.monotonic()
        try:
            if time.monotonic() > self.deadline:
                self.out_of_time = True
                raise NotObserved(f"no time left ({self.args.minutes:g} minutes in all)")
            if name not in ("doctor", "weightless start") and self.healthy is None:
                raise NotObserved("the engine did not start")
            state, text = DONE, work()
        except NotObserved as reason:
            state, text = NOT_OBSERVED, str(reason)
        except Unexpected as reason:
            state, text = UNEXPECTED, str(reason)
        text = " ".join(text.split())
        seconds = round(time.monotonic() - begun, 1)
        self.steps.append({"step": name, "state": state, "seen": self.masked(text), "seconds": seconds})
        print(f"{state:13} {name:22} {self.masked(text)[:300]}  ({seconds} s)", flush=True)

    def as_unpacked(self, name, text):
        """Paths of our folder, which is gone in the end, as they are where the result is unpacked: the
        repeat lines name files of it, a scenario what lies beside its own folder."""
        up = "../" if name.startswith("scenarios/") else ""
        return text.replace(self.folder + "/", up)

    def masked(self, text):
        for secret in secrets(self.args.command or []):
            text = text.replace(secret, "***")
        return text

    def pack(self):
        result = {
            "schema": "acceptance/1.0", "preset": self.args.preset, "taken_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": [self.masked(word) for word in self.args.command or []], "steps": self.steps,
            "repeat": "ci/acceptance-engine with the same words; a file of scenarios/ repeats one start alone, without the port that "
                      "was held, the store that was damaged or the worker that was killed",
            "counts": {state: sum(step["state"] == state for step in self.steps) for state in (DONE, UNEXPECTED, NOT_OBSERVED)},
        }
        with tarfile.open(self.args.out, "w:gz") as archive:
            def put(name, text):
                raw = self.masked(self.as_unpacked(name, text)).encode()
                entry = tarfile.TarInfo(f"acceptance-{self.args.preset}/{name}")
                entry.size, entry.mtime, entry.mode = len(raw), int(time.time()), 0o644
                archive.addfile(entry, io.BytesIO(raw))

            put("result.json", json.dumps(result, indent=1) + "\n")
            for name in dict.fromkeys(self.files):
                path = os.path.join(self.folder, name)
                if os.path.exists(path):
                    with open(path, errors="replace") as file:
                        put(name, file.read(MOST_OF_A_FILE))
        return result


def first_run(report):
    for scenario in report.get("scenarios", []):
        for variant in scenario["variants"]:
            if variant["runs"]:
                return variant["runs"][0]
    return None


def reason_of(report):
    scenarios = report.get("scenarios", [])
    return scenarios[0].get("reason", "") if scenarios else report.get("verdict", "")


def broken(run):
    """Contracts that broke beyond what is allowed; sorted."""
    return sorted({contract["contract"] for contract in run.get("contracts", []) if contract["state"] == "broken"})


def told(run):
    """Whatever says why a run ended: its reason, what broke, the lines that look like a cause."""
    texts = [run.get("reason", ""), run.get("kind", ""), run.get("signal", "")]
    texts += [finding.get("message", "") for contract in run.get("contracts", []) if contract["contract"] == "starts" for finding in contract.get("findings", [])]
    texts += [line for output in run.get("outputs", []) for line in output.get("matched", [])]
    return [text for text in texts if isinstance(text, str)]


def summary(run):
    return run["outcome"] + (f" in {run['phase']}" if run.get("phase") else "")


def secrets(words):
    """Values that nobody should read: of the environment by name, of arguments after a telling option."""
    telling = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "CREDENTIAL")
    found = [value for name, value in os.environ.items() if any(word in name.upper() for word in telling)]
    for option, value in zip(words, words[1:] + [""]):
        name, _, inline = option.partition("=")
        if name.startswith("--") and any(word in name.upper().replace("-", "_") for word in telling):
            found.append(inline or value)
    return sorted({value for value in found if len(value) >= 6}, key=len, reverse=True)
