"""A validation of several recordings: each file a cache of its own, judged one after another.

Which recordings are never used for fitting: a third of the files of each source, chosen by a hash of their names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from cachecost.analysis.fidelity.chains import check_steps
from cachecost.analysis.fidelity.checker import FidelityChecker
from cachecost.base.errors import Fault, InputError
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall, open_input
from cachecost.conversations.readers.claude_code.steps import read_steps, sniff
from cachecost.conversations.readers.detect import detect, read_calls
from cachecost.ledger.results import AssumptionSupport, Fidelity, Judgement
from cachecost.ledger.rows import WARM_START
from cachecost.prompts.render import TokenCounter
from cachecost.providers.assumptions import read_assumptions
from cachecost.providers.hosts import host_of
from cachecost.providers.listing import assumption_rows
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.calibration import CLAUDE
from cachecost.tokens.tokenizers import has_ctok

ONE_IN = 3
SUFFIXES = frozenset({".gz", ".jsonl", ".json", ".yaml", ".yml"})


def is_held_out(name: str) -> bool:
    """Whether the recording in a file of this name is held out: the SHA-256 of `recording_name`, modulo 3, is 0."""
    digest = hashlib.sha256(recording_name(name).encode()).digest()
    return int.from_bytes(digest, "big") % ONE_IN == 0


def recording_name(name: str) -> str:
    """The name of a file without folders, suffixes and "@commit".

    A recording that was made again at another commit is nearly the same: both are in the same part.
    """
    path = PurePath(name)
    while path.suffix in SUFFIXES:
        path = path.with_suffix("")
    return path.name.partition("@")[0]


def name_in_source(source: str, file: str) -> str:
    """The name under which a file of a repository is kept: "owner+repository__path_of_the_file"."""
    return f"{source.replace('/', '+')}__{file.replace('/', '_')}"


HEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Validation:
    """Recordings to be checked, and their setup. `tokens` names the counter for lengths that no bill gives.

    The default counter of Claude's tokens is ctok where it is installed, else tiktoken, that of all others tiktoken.
    Not `calibrated`: no bill sizes anything.
    """

    logs: Sequence[Path]
    setup: ReplaySetup
    tokens: str | None = None
    calibrated: bool = True
    format_: str = "auto"

    def fidelity(self) -> Fidelity:
        """Check every call. Files that cannot be read are in `not_judged`, one item per error, and in `faults`.

        A call that several files hold is a call of each of their caches, and one judgement.
        """
        setup = self.setup

        def counter_for(generation: str) -> TokenCounter:
            name = self.tokens or ("ctok" if generation.startswith(CLAUDE) and has_ctok() else "tiktoken")
            return replace(setup, tokens=name).counter(generation)

        checker = FidelityChecker(setup.rules, setup.prices, counter_for, setup.host, self.calibrated)
        judgements: list[Judgement] = []
        not_judged: list[tuple[str, str]] = []
        faults: list[Fault] = []
        known: set[object] = set()
        for log in self.logs:
            try:
                # A transcript is checked as chains, whose steps have usage and times alone; other logs by requests.
                name, _ = detect(log, self.format_, "request-log")
                is_transcript = name == "claude-code"
                if name == "recording":  # perhaps the content-free form of a transcript
                    with open_input(log) as stream:
                        is_transcript = sniff(stream.read(HEAD_BYTES)) is not None
                said: list[str] = []
                calls: Sequence[Call | BilledCall]
                if is_transcript:
                    steps = read_steps(log)
                    calls = [step.bill for step in steps]
                    made, left = check_steps(steps, str(log), checker.rules, checker.prices, checker.host)
                else:
                    calls = requests = list(read_calls(log, self.format_, said.append, says_format=False))
                    made, left = checker.check_calls(str(log), requests)
            except InputError as error:
                faults += error.faults
                not_judged += [(one.file, str(one).removeprefix(f"{one.file}:")) for one in error.faults]
                continue
            ids = {call.line: call.id for call in calls if call.id}
            new = [one for one in made if ids.get(one.line) not in known]
            known.update(ids[one.line] for one in new if one.line in ids)
            judgements += new
            not_judged += [*left, *((str(log), words) for words in said)]
        sources = "; ".join(sorted({counter.source for counter in setup.counters.values()}))
        source = ", then ".join(filter(None, ("bills of other calls", sources))) if self.calibrated else sources
        return Fidelity(judgements, source, not_judged, faults=faults)

    def estimates(self) -> list[Judgement]:
        """The same calls judged with estimated lengths alone, to check the error margins of the counters."""
        return replace(self, calibrated=False).fidelity().judgements

    def readings(self) -> Iterator[AssumptionSupport]:
        """How many calls are exactly right under each value of each assumption, defaults first."""
        places = {(one.host, one.source) for one in self.fidelity().judgements}
        hosts = {host_of(None, self.setup.host, ""), *(host for host, _ in places)}
        for switch in (one for one in assumption_rows(*hosts) if one.number is None and one.name != WARM_START):
            only = {source for host, source in places if host in switch.only_on}
            logs = [log for log in self.logs if str(log) in only] if switch.only_on else self.logs
            for value in (reading.value for reading in switch.readings):
                assumptions, _ = read_assumptions({switch.name: value})
                rules = RuleBook(assumptions, self.setup.day, self.setup.rules.own)
                judged = replace(self, logs=logs, setup=replace(self.setup, rules=rules)).fidelity().judgements
                exact = [one.exact for one in judged if one.kind in ("hit", "cold")]
                yield AssumptionSupport(switch.name, value, sum(exact), len(exact))
