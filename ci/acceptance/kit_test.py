#!/usr/bin/env python3
"""What the kit makes of runs and files, without an engine and without warmgate."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from kit import NotObserved, Unexpected, faults, find_fixtures, told  # noqa: E402
from steps import Steps  # noqa: E402

TABLE = faults(find_fixtures())


def kit(folder="/nowhere", **how):
    made = Steps.__new__(Steps)
    made.args = types.SimpleNamespace(preset="standin", command=None, arg=[], out=os.path.join(folder, "out.tar.gz"))
    made.folder, made.how, made.reasons = folder, how, TABLE["reasons"]
    made.healthy, made.model = {"outcome": "passed"}, None
    made.files, made.steps, made.fixtures = [], [], find_fixtures()
    return made


def crash(reason, outcome="crashed", **more):
    return {"outcome": outcome, "phase": "bootstrap", "reason": reason, "contracts": [], "outputs": [], **more}


class Reasons(unittest.TestCase):
    FITTING = {
        "busy_port": [
            "rank 0 ended with code 1 in bootstrap: OSError: [Errno 98] Address already in use",
            "rank 0 ended with code 1: Error: listen EADDRINUSE: address already in use 127.0.0.1:8000",
            "couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080",
            "RuntimeError: port 8000 is already in use",
        ],
        "context_too_large": [
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 150.00 MiB.",
            "ValueError: To serve at least one request with the models's max seq len (4000000), 12 GiB KV cache is needed",
            "rank 0 ended by SIGKILL in kv, out of memory",
            "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 4096000000",
            "the context is larger than the model's",
        ],
        "killed_worker": ["rank 0 ended by SIGKILL in load", "RuntimeError: Engine core died", "WorkerProc was terminated"],
    }

    def test_a_crash_that_speaks_of_the_fault_is_as_expected(self):
        for fault, reasons in self.FITTING.items():
            for reason in reasons:
                with self.subTest(reason):
                    self.assertIn(reason, kit().must_crash(crash(reason), fault))

    def test_a_crash_for_another_reason_is_unexpected(self):
        for fault in self.FITTING:
            for reason in ("rank 0 ended with code 2 in bootstrap: error: unrecognized arguments: --port", "ModuleNotFoundError: No module named 'triton'", "rank 0 ended with code 1 before its first phase"):
                with self.subTest(f"{fault}: {reason}"), self.assertRaisesRegex(Unexpected, "^crashed for another reason: "):
                    kit().must_crash(crash(reason), fault)

    def test_a_line_of_its_output_may_say_it(self):
        run = crash("rank 0 ended with code 1", outputs=[{"matched": ["error: address already in use"]}])
        self.assertTrue(kit().must_crash(run, "busy_port"))
        self.assertIn("error: address already in use", told(run))

    def test_a_preset_may_have_words_of_its_own(self):
        made = kit(reasons={"busy_port": "gate is shut"})
        self.assertTrue(made.must_crash(crash("the gate is shut"), "busy_port"))

    def test_what_did_not_crash_and_what_never_started(self):
        with self.assertRaisesRegex(Unexpected, "cannot have started"):
            kit().must_crash(crash("", "passed"), "busy_port")
        made = kit()
        made.healthy = None
        with self.assertRaises(NotObserved):
            made.must_crash(crash("address already in use"), "busy_port")


class Packing(unittest.TestCase):
    def test_what_a_repeat_line_names_is_in_the_result(self):
        with tempfile.TemporaryDirectory() as folder:
            made = kit(folder)
            made.model = os.path.join(folder, "model")
            path = made.scenario("busy-port", {"A": made.variant()})
            for name, text in (("busy-port.txt", f"repeat: warmgate run {path} --variant A\n"), ("kept/busy-port/runs/A.0/rank0.stderr.log", "its log\n"), ("model/config.json", "{}")):
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            made.files += ["busy-port.txt", *made.below(os.path.join(folder, "kept/busy-port")), *made.below(made.model)]
            made.pack()
            with tarfile.open(made.args.out) as archive:
                held = {name.split("/", 1)[1]: archive.extractfile(name).read().decode() for name in archive.getnames()}
            self.assertIn("run scenarios/busy-port.yaml ", held["busy-port.txt"])
            self.assertEqual(json.loads(held["scenarios/busy-port.yaml"])["target"]["server"]["model"], "../model")
            self.assertEqual(held["kept/busy-port/runs/A.0/rank0.stderr.log"], "its log\n")
            self.assertIn("model/config.json", held)
            self.assertFalse([name for name, text in held.items() if folder in text])


class Usage(unittest.TestCase):
    def test_help_lists_presets_and_minutes(self):
        program = os.path.join(os.path.dirname(HERE), "acceptance-engine")
        done = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
        words = done.stdout.split()
        self.assertIn("--minutes", words)
        self.assertIn("default 15;", done.stdout.replace("\n", " "))
        for preset in TABLE["presets"]:
            self.assertIn(preset, done.stdout)
        self.assertEqual(subprocess.run([program, "nothing"], capture_output=True, check=False).returncode, 2)

    def test_what_is_wrong_is_said_before_anything_is_started(self):
        program = os.path.join(os.path.dirname(HERE), "acceptance-engine")
        for words in (["--config", "no.json"], ["--model", "./no.gguf"], ["--a", "foo=bar", "--b", "args=x"], ["--a", "args=x"], ["--minutes", "0"]):
            with self.subTest(words):
                done = subprocess.run([program, "standin", *words], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertTrue(done.stderr)

    def test_every_provoked_crash_has_words(self):
        for fault in ("busy_port", "context_too_large", "killed_worker"):
            self.assertTrue(TABLE["reasons"][fault])


if __name__ == "__main__":
    unittest.main()
