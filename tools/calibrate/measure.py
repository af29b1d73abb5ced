"""Calibrations from samples, and their errors on sources that the fit did not see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from cachecost.analysis.fidelity.validation import is_held_out
from cachecost.base.structs import replace
from cachecost.prompts.blocks import Block, Layer
from cachecost.prompts.output_format import schema_text
from cachecost.prompts.request import Breakpoint
from cachecost.tokens.calibration import KINDS, LATIN, Calibration, prose_of_texts, script_data
from cachecost.tokens.hidden import has_citations
from cachecost.tokens.parts import constant_of, facts_of, parts_of, prose_of
from cachecost.tokens.textcounter import Tally, TextCounter, count_texts
from cachecost.tokens.tokenizers import VERSIONS, Cl100k, Ctok
from tools.calibrate.fit import (
    Bill,
    Text,
    blended_ratios,
    is_filler,
    least_absolute,
    median,
    percentile,
    ratio,
    tokens_per_byte,
)
from tools.calibrate.samples import Sample, length, length_to, parallel_runs
from tools.calibrate.texts import texts_in

GENERATIONS = tuple(VERSIONS)
"""Oldest first: each starts from the constants of the one before it, grown as its tokens did."""
BEFORE: Mapping[str, float] = {
    "tool": 0,
    "system": 0,
    "tool_use": 30,
    "parameter": 14,
    "tool_result": 9,
    "error": 7,
    "parallel": 20,
    "thinking": 7,
    "format": 80,
    "image": 3,
    "document": 38,
    "page": 40,
    "citations": 474,
    "sentence": 20,
    "cited": 17,
    "reference": 4,
    "container_upload": 6,
    "server_result": 21,
    "found": 100,
}
"""Where the oldest generation's constants start: a fit of others on 3,156 requests (2026-11-21), and from `image`
on what single recordings tell that are no samples of a fit."""
HELD = ("tool_result", "thinking", "sentence", "cited", "reference", "container_upload", "server_result", "found")
"""Bills only tell a call and its result together, so one of them stays (outputs of calls tell how they divide).
Thinking is 7 where all of the reasoning is shown (22 calls of eight models); where it is not, a fit would make up for
its length. The others occur in calls of several passes, whose bills are sums, or always with what is fitted."""
PROMPTS = ("format", "citations")
"""Constants that are prose, which a newer tokenizer cuts finer; breakpoints stay what they are."""
COUNTERS = ("tiktoken", "ctok")
TOOLS, SCHEMA = "tools", "schema"
"""The content kinds of a tool definition and of a schema that structured output shows."""


class RememberedTally:
    """A tally that counts each text once."""

    def __init__(self, tally: Tally) -> None:
        self.key = tally.key
        self.advice = tally.advice
        self._tally = tally
        self._known: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        tokens = self._known.get(text)
        if tokens is None:
            tokens = self._known[text] = self._tally(text)
        return tokens


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of a prompt's length, of one counter on one generation."""

    values: tuple[float, ...]
    sources: tuple[str, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def p95(self) -> float:
        return percentile(self.values, 95)


class FitTrials:
    """Fits and measures. Keeps what was counted, so that leaving out one source after another is cheap."""

    def __init__(self, day: date) -> None:
        self.day = day
        self.cl100k = RememberedTally(Cl100k())
        self.ctok = {generation: RememberedTally(Ctok(generation)) for generation in GENERATIONS}

    def texts(self, samples: Iterable[Sample], files: Iterable[Path]) -> list[Text]:
        """The texts that tell ratios: every block's, the schemas of tools as structured output shows one, and the
        long strings of those `files` that are not held out; each once."""
        known: dict[tuple[str, str, str], Text] = {}
        for sample in samples:
            for block in sample.blocks:
                self._add(known, sample.source, *_texts_of(block))
                if block.kind == "tool":
                    self._add(known, sample.source, SCHEMA, (schema_text((block.content or {}).get("input_schema")),))
        for file in files:
            for text in () if is_held_out(file.name) else texts_in(file):
                self._add(known, str(file), prose_of_texts((text,)), (text,))
        return list(known.values())

    def _add(self, known: dict[tuple[str, str, str], Text], source: str, kind: str, texts: tuple[str, ...]) -> None:
        whole = "\n".join(texts)
        key = (source, kind, whole if kind == SCHEMA else whole[:64])
        if not whole or key in known or is_filler(whole):
            return
        tokens = {generation: count_texts(tally, texts) for generation, tally in self.ctok.items()}
        known[key] = Text(source, kind, len(whole.encode("utf-8", "replace")), count_texts(self.cl100k, texts), tokens)

    def fit(self, samples: Sequence[Sample], texts: Sequence[Text]) -> dict[str, Calibration]:
        """A calibration of each generation, its error bands still to be measured."""
        found: dict[str, Calibration] = {}
        for generation in GENERATIONS:
            blank = Calibration(
                generation,
                _ratios(texts, generation),
                {"unseen": tokens_per_byte(texts, "text", generation)},
                0,
                dict.fromkeys(COUNTERS, 0.0),
                self.day,
            )
            mine = [sample for sample in samples if sample.generation == generation]
            older = list(found.values())[-1] if found else None
            known = _grown(older, blank) if older else BEFORE
            fitted = replace(blank, structure={**self._structure(blank, mine, known), **blank.structure})
            found[generation] = replace(fitted, tool_prompt_head=self._head(fitted, mine, older))
        return found

    def _structure(self, blank: Calibration, samples: Sequence[Sample], known: Mapping[str, float]) -> dict[str, float]:
        counter = self.counter("ctok", blank)
        bills = [Bill(_features(sample), sample.total - length(sample, counter), sample.total) for sample in samples]
        return least_absolute(bills, known, HELD)

    def _head(self, fitted: Calibration, samples: Sequence[Sample], older: Calibration | None) -> int:
        """Tokens of the tool-use prompt before the end of the system layer, where a bill tells."""
        counter = self.counter("ctok", fitted)
        told = [
            billed - length_to(sample, breakpoint, counter)
            for sample in samples
            if sample.request.tools.blocks and not sample.request.params.get("thinking")
            for breakpoint, billed in _told_before_messages(sample)
        ]
        if told or not older:
            return round(median(told))
        return round(older.tool_prompt_head * _growth(older, fitted))

    def counter(self, name: str, calibration: Calibration) -> TextCounter:
        """The counter that a calibration makes, with remembered counts."""
        if name == "tiktoken":
            return TextCounter(name, "", calibration, self.cl100k, calibration.ratio)
        tally = self.ctok[calibration.generation]
        return TextCounter(name, "", calibration, tally, dict.fromkeys(KINDS, 1.0))

    def errors(self, samples: Sequence[Sample], fitted: Mapping[str, Calibration], name: str) -> dict[str, list[float]]:
        """Relative errors of `samples` by generation."""
        found: dict[str, list[float]] = {generation: [] for generation in GENERATIONS}
        counters = {generation: self.counter(name, fitted[generation]) for generation in GENERATIONS}
        for sample in samples:
            predicted = length(sample, counters[sample.generation])
            found[sample.generation].append(abs(predicted - sample.total) / sample.total)
        return found

    def errors_on(self, samples: Sequence[Sample], fitted: Mapping[str, Calibration]) -> dict[tuple[str, str], Errors]:
        """Errors by (generation, counter) of samples that the fit has not seen."""
        sources = {one: tuple(sorted({s.source for s in samples if s.generation == one})) for one in GENERATIONS}
        found = {name: self.errors(samples, fitted, name) for name in COUNTERS}
        return {(one, name): Errors(tuple(found[name][one]), sources[one]) for name in COUNTERS for one in GENERATIONS}

    def held_out(self, samples: Sequence[Sample], texts: Sequence[Text]) -> dict[tuple[str, str], Errors]:
        """Errors by (generation, counter): each source judged by a fit on all the others."""
        values: dict[tuple[str, str], list[float]] = {(g, name): [] for g in GENERATIONS for name in COUNTERS}
        for source in sorted({sample.source for sample in samples}):
            fitted = self.fit([s for s in samples if s.source != source], [t for t in texts if t.source != source])
            mine = [sample for sample in samples if sample.source == source]
            for name in COUNTERS:
                for generation, errors in self.errors(mine, fitted, name).items():
                    values[generation, name] += errors
        return {
            key: Errors(tuple(found), tuple(sorted({s.source for s in samples if s.generation == key[0]})))
            for key, found in values.items()
        }


def _ratios(texts: Sequence[Text], generation: str) -> dict[str, float]:
    """Of the kinds that blend, and of definitions and schemas, which are all of one."""
    blends = [kind for kind in LATIN if kind != TOOLS]
    alone = {kind: ratio(texts, kind, generation) for kind in (TOOLS, SCHEMA)}
    return {**blended_ratios(texts, blends, generation), **alone, **script_data()["ratio"][generation]}


def _growth(older: Calibration, newer: Calibration) -> float:
    """How many more tokens the same markup is in the newer tokenizer."""
    return newer.ratio["tools"] / older.ratio["tools"]


def _grown(older: Calibration, newer: Calibration) -> dict[str, float]:
    """The older constants, as far as the newer generation's bills do not tell better."""
    growth = newer.ratio["text"] / older.ratio["text"]
    return {name: older.structure[name] * (growth if name in PROMPTS else 1) for name in BEFORE}


def _texts_of(block: Block) -> tuple[str, tuple[str, ...]]:
    parts = parts_of(block.kind, block.content or {})
    return prose_of(block.kind, parts), tuple(text for text in parts.texts if text)


def _features(sample: Sample) -> dict[str, int]:
    found = {
        "format": int(sample.has_format),
        "citations": int(has_citations(sample.request)),
        "parallel": parallel_runs(sample.blocks),
    }
    for block in sample.blocks:
        for fact, number in {**facts_of(block), **parts_of(block.kind, block.content or {}).facts}.items():
            name = constant_of(fact)
            found[name] = found.get(name, 0) + number
    return {name: number for name, number in found.items() if number}


def _told_before_messages(sample: Sample) -> list[tuple[Breakpoint, int]]:
    """(breakpoint, billed tokens up to it) where the bill tells a prefix that ends before the messages."""
    breakpoints = sample.request.breakpoints
    last = breakpoints[-1] if breakpoints and sample.request.automatic is None else None
    hours = [breakpoint for breakpoint in breakpoints if breakpoint.ttl == "1h"]
    told: list[tuple[Breakpoint, int]] = []
    if last and last.layer is not Layer.MESSAGES and sample.cached:
        told.append((last, sample.cached))
    elif hours and hours[-1].layer is not Layer.MESSAGES and sample.read_and_1h:
        told.append((hours[-1], sample.read_and_1h))
    return told
