"""The steps, in order. Each returns what it saw, or raises NotObserved or Unexpected."""

import json
import os
import re
import socket
import subprocess

from kit import Kit, NotObserved, Unexpected, broken, reason_of, summary, told
from processes import kill_worker


class Steps(Kit):
    def doctor(self):
        done = subprocess.run([self.warmgate, "doctor"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False)
        with open(os.path.join(self.folder, "doctor.txt"), "w") as file:
            file.write(done.stdout + done.stderr)
        self.files.append("doctor.txt")
        if done.returncode not in (0, 1):
            raise Unexpected(f"warmgate doctor ended with {done.returncode}")
        rows = [line.split(None, 2) for line in done.stdout.splitlines() if line.startswith(("there", "limited", "missing"))]
        lacks = [line[1] for line in rows if line[0] == "missing"]
        return f"{sum(line[0] == 'there' for line in rows)} of {len(rows)} things are there" + (f"; missing: {', '.join(lacks)}" if lacks else "")

    def weightless_start(self):
        installed = self.how.get("installed")
        if installed and not self.args.command and not os.path.exists(os.path.join(self.fixtures, "..", installed)):
            raise NotObserved(f"the engine is not installed here ({self.how['install']})")
        if not self.model and self.how.get("model"):
            self.model = os.path.join(os.path.dirname(os.path.abspath(self.fixtures)), self.how["model"])
        if not self.model and self.how.get("shrink"):
            self.model = self.shrink()
        self.healthy = self.one("start", self.variant())
        seen = summary(self.healthy)
        if self.healthy["outcome"] in ("crashed", "hung") or self.healthy["figures"].get("requests_ok") == 0:
            raise Unexpected(f"{seen}: {self.healthy['reason']}")
        return f"{seen}; ready after {self.healthy['figures'].get('time_to_ready_s', float('nan')):.1f} s"

    def shrink(self):
        config = self.args.config or self.default_config
        out = os.path.join(self.folder, "model")
        done = subprocess.run(
            [self.warmgate, "shrink", "--config", config, "--out", out, "--tokenizer", "stub"],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
        )
        with open(os.path.join(self.folder, "shrink.txt"), "w") as file:
            file.write(done.stdout + done.stderr)
        self.files.append("shrink.txt")
        if done.returncode != 0:
            raise NotObserved(f"warmgate shrink ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}")
        self.files += self.below(out)
        return out

    def same_engine_twice(self):
        gate = {"kv_bytes": {"regress": {"by": "1 %"}, "direction": "higher"}, "compiles_after_ready": {"new": 0}}
        path = self.scenario("aa", {"A": self.variant(), "B": self.variant()}, gate=gate)
        report, code = self.run("gate", "aa", path)
        sides = [side["runs"][0] for side in report["scenarios"][0]["variants"] if side["runs"]]
        if code == 4 or len(sides) != 2:
            raise NotObserved(f"a side did not run: {reason_of(report)}")
        told = [broken(side) for side in sides]
        differ = [found for found in report["scenarios"][0]["comparisons"] if found["state"] == "broken"]
        if sides[0]["outcome"] != sides[1]["outcome"] or told[0] != told[1]:
            raise Unexpected(f"{summary(sides[0])} against {summary(sides[1])}, of one engine")
        if differ:
            raise Unexpected(f"{differ[0]['contract']}: {differ[0]['why']}")
        if self.healthy is None or self.healthy["outcome"] in ("crashed", "hung"):
            raise NotObserved("it does not start: two failures are alike whatever they are of")
        if told[0]:
            return f"nothing tells them apart; both break {', '.join(told[0])}"
        return "nothing to report"

    def busy_port(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen(64)
            # the last --port counts; warmgate itself asks a port of its own, where nobody will answer
            words = [self.how.get("port_option", "--port"), str(holder.getsockname()[1])]
            run = self.one("busy-port", self.variant(words))
        return self.must_crash(run, "busy_port")

    def context_too_large(self):
        how = self.provoke("context_too_large")
        more = {"memory": how["memory"]} if how.get("memory") else {}
        return self.must_crash(self.one("context-too-large", self.variant(how.get("args", ()), how.get("env"), **more)), "context_too_large")

    def damaged_cache_entry(self):
        store = self.how.get("store")
        if not store:
            raise NotObserved("this engine keeps no compiled files between starts")
        folder = os.path.join(self.folder, "store")
        os.makedirs(folder, exist_ok=True)
        self.one("fill-the-store", self.variant(cache={store: folder}))
        files = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
        files = [path for path in files if not os.path.islink(path) and os.path.getsize(path) > 16]
        if not files:
            raise NotObserved(f"the store '{store}' stayed empty")
        victim = max(files, key=lambda path: (os.path.getsize(path), path))
        size = os.path.getsize(victim)
        with open(victim, "r+b") as file:
            file.truncate(size // 2)
        run = self.one("damaged-store", self.variant(cache={store: folder}))
        if run["outcome"] == "hung":
            raise Unexpected(f"half of {os.path.relpath(victim, folder)} missing, and it hangs: {run['reason']}")
        again = os.path.exists(victim) and os.path.getsize(victim) == size
        return f"half of {os.path.relpath(victim, folder)} missing: {summary(run)}, the file {'is whole again' if again else 'is as it was left'}"

    def warmup_switched_off(self):
        how = self.provoke("warmup_off")
        run = self.one("warmup-off", self.variant(how.get("args", ()), how.get("env")))
        seen, before = run["figures"], (self.healthy or {}).get("figures", {})
        told = [f"{name} {before.get(name, 0):g} -> {seen[name]:g}" for name in ("skips", "compiles_after_ready") if seen.get(name, 0) > before.get(name, 0)]
        phases = set((self.healthy or {}).get("phases_ended", [])) - set(run.get("phases_ended", []))
        told += [f"phase {name} is gone" for name in sorted(phases)]
        first, usual = seen.get("ttft_first_ms"), before.get("ttft_first_ms")
        if first and usual and first > 1.5 * usual and first > usual + 50:
            told.append(f"first token {usual:.0f} -> {first:.0f} ms")
        if not told:
            raise NotObserved("nothing in log, stores or times differs from the start with warmup")
        return f"{summary(run)}: {'; '.join(told)}"

    def killed_worker(self):
        killed = []
        # what starts faster than one can look is slowed down where its preset says how
        slow = self.how.get("killed_worker", {}).get("args", ())
        run = self.one("killed-worker", self.variant(slow), during=lambda process: killed.extend(kill_worker(process, self.how["worker"])))
        if not killed:
            raise NotObserved(f"no process of the run is called {' or '.join(self.how['worker'])} (a container hides them)")
        return f"{killed[0]}: {self.must_crash(run, 'killed_worker')}"

    def two_sides(self):
        a, b = self.args.a, self.args.b
        if a and b:
            sides = {name: self.variant(overlay=overlay, **server) for name, (overlay, server) in {"A": self.side(a), "B": self.side(b)}.items()}
        elif self.how.get("b"):
            sides = {"A": self.variant(**self.how["a"]), "B": self.variant(**self.how["b"])}
        else:
            raise NotObserved("no --a and --b were given")
        gate = {"kv_bytes": {"regress": {"by": "1 %"}, "direction": "higher"}}
        report, code = self.run("ab", "ab", self.scenario("ab", sides, gate=gate), "A", "B")
        if code in (3, 4):
            raise NotObserved(f"{'the machine was at fault' if code == 4 else 'a side was not seen'}: {reason_of(report)}")
        if not (a and b) and '"kv_bytes": ' not in json.dumps(report):
            raise NotObserved("nobody told the size of the cache (doctor says whether logs can be read)")
        told = f"{report['verdict']}: {reason_of(report)}"
        if not (a and b) and self.how.get("b_is_worse") and (code != 1 or self.how["b_is_worse"] not in told):
            raise Unexpected(f"B has a smaller cache, and the verdict is {told}")
        return told

    def provoke(self, what):
        if not self.how.get(what):
            raise NotObserved("this engine has no switch for it")
        return self.how[what]

    def must_crash(self, run, fault):
        if self.healthy is None or self.healthy["outcome"] in ("crashed", "hung"):
            raise NotObserved("it does not start without the fault either")
        if run["outcome"] not in ("crashed", "hung"):
            raise Unexpected(f"{summary(run)}, though it cannot have started")
        wanted = self.how.get("reasons", {}).get(fault) or self.reasons[fault]
        if not any(re.search(wanted, text, re.IGNORECASE) for text in told(run)):
            raise Unexpected(f"{run['outcome']} for another reason: {summary(run)}: {run['reason']}")
        return f"{summary(run)}: {run['reason']}"
