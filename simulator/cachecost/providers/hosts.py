"""Hosts: which one serves a call, how it spells model ids, and its rule file.

The host of a call is what its recording says, else what the address, the id of the message, `--host` or the model's
name shows (hosts.toml). An address that nobody knows is a host without rules and prices, and named as it is written,
unless `--host` says what is behind it. A rule file holds the dated, sourced rows of a host, on their own or over those
of its base host; a `Catalogue` looks up a model's row on a day.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from re import Pattern
from typing import Any

import msgspec

from cachecost.base.errors import CannotEvaluate, nearest, nearest_name
from cachecost.base.structs import replace
from cachecost.providers.usage import TOKEN_CLASSES

FILE = Path(__file__).with_name("hosts.toml")
AUTO_HOST = "auto"
"""What `--host` is where nobody gave one."""
DEFAULT_HOST = "anthropic"
"""The host of a model that nobody knows, so that the nearest name can be shown."""
NEVER = re.compile(r"(?!)")
MACHINE = re.compile(r"[a-z\d.-]+|\[[\da-f:.]+\]")
"""What a machine's name is made of; what a recorder wrote in its place often is not."""
LOCAL = re.compile(
    r"[^.]*|.*\.(local|localhost|internal)|(127|10|0)\.[\d.]+|192\.168\.[\d.]+|172\.(1[6-9]|2\d|3[01])\.[\d.]+"
)
"""Machines of one's own: a proxy there says nothing of who serves a model behind it."""
WINDOW = re.compile(r"\[\w+\]$")
"""How Claude Code writes a context window behind a model's name ("[1m]")."""


@dataclass(frozen=True, slots=True)
class HostNames:
    """A table of hosts.toml."""

    providers: frozenset[str]
    addresses: Pattern[str]
    message_ids: Pattern[str]
    ids: Pattern[str]
    models: Pattern[str]
    open_models: Pattern[str]
    claude: str | None
    others: str | None


@cache
def host_names() -> dict[str, HostNames]:
    """Every host that hosts.toml names."""

    def pattern(text: str | None) -> Pattern[str]:
        return NEVER if text is None else re.compile(text)

    return {
        host: HostNames(
            frozenset((_plain(host), *row.get("providers", ()))),
            pattern(row.get("addresses")),
            pattern(row.get("message_ids")),
            pattern(row.get("ids")),
            pattern(row.get("models")),
            pattern(row.get("open_models")),
            row.get("claude"),
            row.get("others"),
        )
        for host, row in tomllib.loads(FILE.read_text(encoding="utf-8")).items()
    }


def host_of(stated: str | None, default: str, model: str) -> str:
    """The host of a call. `stated` is what was recorded of it, `default` what `--host` says (AUTO_HOST: nothing)."""
    if stated and (default == AUTO_HOST or stated in host_names()):
        return stated
    return default if default != AUTO_HOST else host_of_model(model) or DEFAULT_HOST


@lru_cache(maxsize=4096)
def host_of_model(model: str) -> str:
    """The host that a model's name shows: one that alone writes ids so, a gateway's prefix, its maker; "" for none."""
    return (
        next((host for host, names in host_names().items() if names.ids.fullmatch(model)), "")
        or parse_model_name(model)[1]
        or maker_of(model)
    )


@lru_cache(maxsize=4096)
def maker_of(model: str) -> str:
    """The host of a model's maker; "" for a model of another maker."""
    name = WINDOW.sub("", model).rpartition("/")[2].lower()
    return next((host for host, names in host_names().items() if names.models.fullmatch(name)), "")


def host_of_provider(provider: str, model: str = "") -> str | None:
    """The host of a provider as tracers, gateways and agents name it; None for one that is unknown."""
    name = _plain(provider)
    found = next((host for host, names in host_names().items() if name in names.providers), None)
    return serving_host(found, model) if found else None


def host_of_message(message: str) -> str | None:
    """The host that an answer's id shows."""
    ids = ((host, names.message_ids) for host, names in host_names().items() if names.message_ids is not NEVER)
    return next((host for host, pattern in ids if pattern.fullmatch(message)), None)


def host_at(address: str, model: str = "") -> str | None:
    """The host at a machine ("api.z.ai", with a port or not); its own name where nobody knows it.

    None where it shows nothing: a proxy on a machine of one's own, unless a model whose weights are public may run
    there, or an address that was taken out of a recording.
    """
    name = re.sub(r":\d*$", "", address.rpartition("@")[2]).lower()
    found = next((host for host, names in host_names().items() if names.addresses.fullmatch(name)), None)
    if found:
        return serving_host(found, model) or name
    maker = host_names().get(maker_of(model))
    is_open = maker is not None and maker.open_models.fullmatch(own_name(model).lower()) is not None
    return name if MACHINE.fullmatch(name) and (is_open or not LOCAL.fullmatch(name)) else None


def host_of_named(host: str | None, address: str, model: str) -> str | None:
    """The host of a call whose log names one, and an address ("https://api.z.ai/v1", "api.z.ai").

    An instrumentation calls each server of a protocol by the name of its client library, so that the address decides
    where the name is that of a protocol, or its machine is known.
    """
    at = host_at(address.rpartition("://")[2].partition("/")[0], model) if address else None
    return at if at in host_names() or (host in (None, "openai", "anthropic") and at) else host


def serving_host(host: str, model: str) -> str | None:
    """The host that serves the model where its provider has two; None where it cannot be this one."""
    names, maker = host_names().get(host), maker_of(model)
    if names is None or not model:
        return host
    instead = names.claude if maker == "anthropic" or "claude" in model else names.others
    return host if instead is None else instead or None


def parse_model_name(model: str, provider: str = "") -> tuple[str, str | None]:
    """(the model's own id, the host that the provider or a prefix of the id names).

    The host is None where neither names it: a gateway's prefix with the model's maker says who made it.
    """
    known = host_of_provider(provider)
    head, _, rest = model.partition("/")
    of_head = host_of_provider(head) if rest else None
    if rest and (of_head or _plain(head) == _plain(provider)):
        model = rest
        if known is None and of_head != maker_of(rest):
            known = of_head
    if known == "bedrock":
        at = model.find("arn:")  # an ARN is an id; else what stands before it is a route and a region
        model = model[at:] if at >= 0 else model.rpartition("/")[2]
    elif known == "openrouter":
        model = model.rpartition("/")[2]
    return model, serving_host(known, model) if known else None


def own_name(model: str) -> str:
    """A model's name without a gateway's prefix and a context window."""
    return WINDOW.sub("", model).rpartition("/")[2]


def _plain(provider: str) -> str:
    return provider.strip().lower().replace("-", "_").replace(" ", "_")


ANY_ENDPOINT = "*"


class Naming(msgspec.Struct, frozen=True):
    """The ids of a host. `pattern` has the groups `model` and, where ids have them, `endpoint` and `version`.

    `endpoints` maps an endpoint ("us", "global"; "*" for any other) to the price modifiers it implies;
    `default` is the endpoint of an id that names none; `spelling` writes an id that names another.
    """

    pattern: re.Pattern[str]
    spelling: str
    default: str
    endpoints: Mapping[str, tuple[str, ...]]
    spellings: Mapping[str, str] = msgspec.field(default_factory=dict)
    """As `spelling`, at an endpoint of that name, or for models whose name begins so."""
    at_breakpoints: str = ""
    """The endpoint of a request with breakpoints, where that is not the default one."""

    def read(self, name: str) -> tuple[str, str] | None:
        """The model's own name and the endpoint in `name`; None if this host has no such ids."""
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        groups = found.groupdict()
        endpoint = groups.get("endpoint") or self.default
        if endpoint not in self.endpoints and ANY_ENDPOINT not in self.endpoints:
            return None
        # Anthropic writes `claude-opus-4-5@20251101` as claude-opus-4-5-20251101; @default names no day
        model, version = groups["model"] or "", groups.get("version") or ""
        return f"{model}-{version}" if version.isdigit() else model, endpoint

    def write(self, model: str, endpoint: str) -> str:
        """The id of `model` at `endpoint`: its own name at the default one. `read` understands it."""
        own = (spelling for key, spelling in self.spellings.items() if key == endpoint or model.startswith(key))
        spelling = next(own, self.spelling)
        return model if endpoint == self.default else spelling.format(model=model, endpoint=endpoint)

    def modifiers(self, endpoint: str) -> tuple[str, ...]:
        """The price modifiers of `endpoint`."""
        return self.endpoints.get(endpoint, self.endpoints.get(ANY_ENDPOINT, ()))


CONFIDENCES = ("documented", "measured", "assumed", "unknown")
"""Confidence of a row: documented by the provider, measured, assumed by analogy, or a guess."""


class Source(msgspec.Struct, frozen=True):
    """The source of a row: title, the day it was read, and its confidence (one of CONFIDENCES)."""

    title: str
    date: date
    confidence: str


class DatedRow(msgspec.Struct, frozen=True):
    """One value of a rule: holds from `start` until the day before `end` (None: until a later row)."""

    value: Any
    start: date
    end: date | None
    source: Source
    confidence: str

    def holds(self, day: date) -> bool:
        return self.start <= day and (self.end is None or day < self.end)


class Rule(msgspec.Struct, frozen=True):
    """A rule's meaning, its unit ("" for none), and the rows that hold for all models."""

    name: str
    meaning: str
    unit: str
    rows: tuple[DatedRow, ...]


class Model(msgspec.Struct, frozen=True):
    """A model of a host: its ids, dates, and the rows of its own or its generation.

    `name` is its name in the rule file; `id` includes the endpoint where that is not the host's default.
    `modifiers` are the price modifiers of the endpoint. `ways` are the endpoints with their own rules that serve it,
    `own_ways` its rows at one of them; where `id` names one of these, `is_other_way` is set and it may have its own
    prices.
    """

    id: str
    aliases: tuple[str, ...]
    generation: str
    released: date
    retired: date | None
    source: Source
    rows: Mapping[str, tuple[DatedRow, ...]]
    name: str
    endpoint: str = ""
    modifiers: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    is_other_way: bool = False
    own_ways: Mapping[str, Mapping[str, tuple[DatedRow, ...]]] = msgspec.field(default_factory=dict)
    price: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """USD per 10**6 tokens by class, of `source`, from `released` on, until a price file says otherwise."""
    is_priced: bool = True
    """False: no price of it was found (`unpriced = true`); its calls need one with --prices."""

    @property
    def price_names(self) -> tuple[str, ...]:
        """The names under which prices may be listed; the last that has one wins."""
        return (self.name, self.id) if self.is_other_way else (self.name,)


class AliasRow(msgspec.Struct, frozen=True):
    """What an alias means from `start` on, until the day before `end` (None: until a later row of it)."""

    model: str
    start: date
    end: date | None
    source: Source


class AssumptionRows(msgspec.Struct, frozen=True):
    """Rows that hold under an assumption, for models whose id matches one of `models` (`*` matches any text)."""

    rows: Mapping[str, tuple[DatedRow, ...]]
    models: tuple[str, ...] = ("*",)


class RefutedRow(msgspec.Struct, frozen=True):
    """A published value that recordings of the same days contradict: shown, never used."""

    rule: str
    models: tuple[str, ...]
    row: DatedRow
    by: Source


Rows = Mapping[str, tuple[DatedRow, ...]]
FACTS = frozenset(
    {"id", "aliases", "released", "retired", "source", "generation", "family", "ways", "at", "price", "unpriced"}
)
"""Keys of a [[model]] other than rules."""
NO_ROWS: Mapping[Any, Rows] = {}
NO_ALIASES: Mapping[str, tuple[AliasRow, ...]] = {}
NO_READINGS: Mapping[tuple[str, str], AssumptionRows] = {}


class ParsedRules(msgspec.Struct, frozen=True):
    """The parsed content of a rule file."""

    rules: Mapping[str, Rule]
    models: Mapping[str, Model]
    refuted: tuple[RefutedRow, ...] = ()
    naming: Naming | None = None
    ways: Mapping[str, Rows] = NO_ROWS
    readings: Mapping[tuple[str, str], AssumptionRows] = NO_READINGS
    aliases: Mapping[str, tuple[AliasRow, ...]] = NO_ALIASES


def parse(data: Mapping[str, Any], base: ParsedRules | None = None) -> ParsedRules:
    """Parse the tables of a rule file. Raises ValueError or KeyError if it is malformed."""
    return _File(data, base or ParsedRules({}, {})).parsed()


class _File:
    """The tables of a rule file, and the parsed base."""

    def __init__(self, data: Mapping[str, Any], base: ParsedRules) -> None:
        self._data = data
        self._base = base
        self._naming: Naming | None = None
        if "naming" in data:
            row = data["naming"]
            endpoints = {name: tuple(modifiers) for name, modifiers in row["endpoints"].items()}
            patterns = re.compile(row["pattern"]), row["spelling"]
            more = row.get("spellings", {}), row.get("at_breakpoints", "")
            self._naming = Naming(*patterns, row["default"], endpoints, *more)
        self._sources: dict[str, Source] = {}
        for key, source in data.get("sources", {}).items():
            confidence = _known_confidence(f"source {key}", source.get("confidence"))
            self._sources[key] = Source(source["title"], source["date"], confidence)
        self._rule_tables: Mapping[str, Any] = data.get("rules", {})
        self._rules = dict(base.rules)
        for name, stated in self._rule_tables.items():  # meaning, unit and rows for all models may be those of the base
            known = base.rules.get(name)
            meaning = stated["meaning"] if known is None else stated.get("meaning", known.meaning)
            unit = stated.get("unit", known.unit if known else "")
            rows = self._rows(name, stated["default"], None) if "default" in stated else (known.rows if known else ())
            self._rules[name] = Rule(name, meaning, unit, rows)

    def parsed(self) -> ParsedRules:
        data, sources, base = self._data, self._sources, self._base.models
        lacks = frozenset(data["data"].get("lacks", ()))
        if unknown := lacks - set(base):
            raise ValueError(f"lacks: its base has no {', '.join(sorted(unknown))}")
        own = {entry["id"]: entry for entry in data.get("model", [])}
        models = {
            name: self._over(model, own.pop(name, {"id": name})) for name, model in base.items() if name not in lacks
        }
        models |= {name: self._new(entry) for name, entry in own.items()}
        models = dict(sorted(models.items(), key=lambda item: item[1].released, reverse=True))
        ways = {name: self._stated(f"way {name}", stated, None) for name, stated in data.get("ways", {}).items()}
        readings: dict[tuple[str, str], AssumptionRows] = {}
        for entry in data.get("assumption", []):
            stated = {name: value for name, value in entry.items() if name not in ("name", "value", "models")}
            rows = self._stated(f"assumption {entry['name']}", stated, None)
            readings[entry["name"], entry["value"]] = AssumptionRows(rows, tuple(entry.get("models", "*")))
        refuted: list[RefutedRow] = []
        for entry in data.get("refuted", []):
            source = sources[entry["source"]]
            row = DatedRow(entry["value"], entry["from"], entry["to"], source, source.confidence)
            refuted.append(RefutedRow(entry["rule"], tuple(entry["models"]), row, sources[entry["by"]]))
        aliases: dict[str, tuple[AliasRow, ...]] = {}
        for entry in sorted(data.get("alias", []), key=lambda entry: entry["from"]):
            if entry["model"] not in models:
                raise ValueError(f"alias {entry['name']}: no model is called {entry['model']}")
            meant = AliasRow(entry["model"], entry["from"], entry.get("to"), sources[entry["source"]])
            aliases[entry["name"]] = (*aliases.get(entry["name"], ()), meant)
        return ParsedRules(self._rules, models, tuple(refuted), self._naming, ways, readings, aliases)

    def _new(self, entry: Mapping[str, Any]) -> Model:
        """A model of this file: its own rows win over those of its family, these over its generation's."""
        released = entry["released"]
        family: Mapping[str, Any] = self._data["families"][entry["family"]] if "family" in entry else {}
        found = {name: value for name, value in family.items() if name != "ways"}
        group = {**self._data["generations"][entry["generation"]], **found}
        price: Mapping[str, Any] = entry.get("price", {})
        if unknown := set(price) - set(TOKEN_CLASSES):
            raise ValueError(f"model {entry['id']}: price: no token class is called {', '.join(sorted(unknown))}")
        at: Mapping[str, Any] = entry.get("at", {})
        return self._at_default(
            Model(
                entry["id"],
                tuple(entry.get("aliases", ())),
                entry["generation"],
                entry["released"],
                entry.get("retired"),
                self._sources[entry["source"]],
                {**self._stated(f"model {entry['id']}", group, released), **self._own(entry, released)},
                entry["id"],
                ways=tuple(entry.get("ways", family.get("ways", self._data.get("ways", {})))),
                own_ways={
                    way: self._stated(f"model {entry['id']} at {way}", stated, released) for way, stated in at.items()
                },
                price=price,
                is_priced=not entry.get("unpriced", False),
            )
        )

    def _over(self, model: Model, entry: Mapping[str, Any]) -> Model:
        """A model of the base with the changes of this file. Retirements are not inherited, nor are rows of rules that
        this file states for all models."""
        head = self._data["data"]
        released = entry["released"] if "released" in entry else max(model.released, head["since"])
        kept = model.retired if head.get("retires_with_base") else None
        rows = {name: row for name, row in model.rows.items() if not self._rule_tables.get(name, {}).get("over_models")}
        return self._at_default(
            replace(
                model,
                aliases=(*model.aliases, *entry.get("aliases", ())),
                released=released,
                retired=entry.get("retired", kept),
                source=self._sources[entry["source"]] if "source" in entry else model.source,
                ways=tuple(way for way in model.ways if way in self._data.get("ways", {})),
                rows={**rows, **self._own(entry, released)},
            )
        )

    def _at_default(self, model: Model) -> Model:
        naming = self._naming
        return replace(model, endpoint=naming.default, modifiers=naming.modifiers(naming.default)) if naming else model

    def _own(self, entry: Mapping[str, Any], released: date) -> Rows:
        stated = {name: value for name, value in entry.items() if name not in FACTS}
        return self._stated(f"model {entry['id']}", stated, released)

    def _stated(self, what: str, stated: Mapping[str, Any], released: date | None) -> Rows:
        if unknown := [name for name in stated if name not in self._rules]:
            raise ValueError(f"{what}: no rule is called {', '.join(unknown)}")
        return {name: self._rows(name, value, released) for name, value in stated.items()}

    def _rows(self, rule: str, value: Any, released: date | None) -> tuple[DatedRow, ...]:
        """The three ways to write a value, as rows. A list without rows in it is a value."""
        is_history = isinstance(value, list) and value and all(_is_row(item) for item in value)
        rows = []
        for item in value if is_history else [value]:
            entry = item if _is_row(item) else {"value": item}
            start = entry.get("from", released)
            source = entry.get("source") or self._rule_tables.get(rule, {}).get("source")
            if start is None:
                raise ValueError(f"rule {rule}: a row that holds for all models needs a 'from'")
            if source is None:
                raise ValueError(f"rule {rule}: a row of it needs a 'source', as the rule names none here")
            read = self._sources[source]
            sure = _known_confidence(f"rule {rule}", entry.get("confidence", read.confidence))
            rows.append(DatedRow(entry["value"], start, entry.get("to"), read, sure))
        return tuple(rows)


def _known_confidence(what: str, stated: str | None) -> str:
    if stated not in CONFIDENCES:
        raise ValueError(f"{what}: confidence is one of {', '.join(CONFIDENCES)}; got {stated!r}")
    return stated


def _is_row(item: Any) -> bool:
    return isinstance(item, dict) and "value" in item


__all__ = ["Catalogue", "DatedRow", "Model", "RefutedRow", "Rule", "Source", "catalogue", "hosts"]

FOLDER = Path(__file__).with_name("rules")
NO_HOST = frozenset({"assumptions"})
ANY = "*"
"""Stands for any text in the id of a model that its user names."""


class Catalogue(msgspec.Struct, frozen=True):
    """One host's rule file. `data_date` is that of the shipped data.

    `base` is the host whose rows are inherited where this file has none. `ways` are the rows of an endpoint, `readings`
    those of an assumption (name, value); both replace the model's own. A host that `is_priced` has public prices in
    dollars.
    """

    host: str
    data_date: date
    rules: Mapping[str, Rule]
    models: Mapping[str, Model]
    names: Mapping[str, Model]
    """Models by id and by alias."""
    refuted: tuple[RefutedRow, ...]
    base: str | None = None
    naming: Naming | None = None
    ways: Mapping[str, Rows] = NO_ROWS
    readings: Mapping[tuple[str, str], AssumptionRows] = NO_READINGS
    is_priced: bool = True
    aliases: Mapping[str, tuple[AliasRow, ...]] = NO_ALIASES
    """Aliases whose meaning changed, in the order of the days."""

    def model(self, name: str, day: date | None = None) -> Model:
        """The model of an alias, or of an id as this host writes it, on `day` (None: that of the shipped data).

        Raises CannotEvaluate naming the nearest.
        """
        found = self._known(name, day) or self._spelt(name, day)
        if found is None:  # a self-hosted model: the first of the file whose id, with `*` for any text, fits the name
            open_ids = (model for key, model in self.models.items() if ANY in key and fnmatchcase(name, key))
            if fitting := next(open_ids, None):
                return replace(fitting, id=name, name=name)
        if found is None and (own := own_name(name)) != name:
            found = self._known(own, day) or self._spelt(own, day)
        if found is None:
            raise CannotEvaluate(f"unknown model '{name}' on host {self.host}{near_model(self.host, name)}")
        return found

    def inherits(self, name: str) -> bool:
        """Whether the model is its base's: a host may serve other makers' models beside those."""
        return self.base is not None and name in catalogue(self.base).models

    def _known(self, name: str, day: date | None) -> Model | None:
        """The model of an id or alias. After the last day of an alias its last meaning is kept, as a retired model."""
        when = day or self.data_date
        rows = self.aliases.get(name, ())
        begun = [row for row in rows if row.start <= when]
        if not begun:
            if rows and name not in self.names:
                known = f"known from {rows[0].start}: --as-of {rows[0].start}"
                raise CannotEvaluate(f"what '{name}' meant on host {self.host} on {when} is not known; {known}")
            return self.names.get(name)
        meant = self.names[begun[-1].model]
        ends = [end for end in (meant.retired, begun[-1].end) if end]
        return replace(meant, retired=min(ends, default=None))

    def _spelt(self, name: str, day: date | None) -> Model | None:
        read = self.naming.read(name) if self.naming else None
        known = self._known(read[0], day) if read else None
        if self.naming is None or read is None or known is None:
            return None
        endpoint = read[1]
        found = replace(
            known,
            id=self.naming.write(known.name, endpoint),
            endpoint=endpoint,
            modifiers=self.naming.modifiers(endpoint),
        )
        if endpoint not in self.ways:
            return found
        rows = {**known.rows, **self.ways[endpoint], **known.own_ways.get(endpoint, {})}
        return replace(found, rows=rows, is_other_way=True) if endpoint in known.ways else None

    def other_ways(self, model: Model) -> Iterator[Model]:
        """The model under each id that selects another way of caching."""
        if self.naming:
            yield from (self.model(self.naming.write(model.name, way)) for way in model.ways)

    def under(self, model: Model, assumptions: object) -> Model:
        """The model with the rows of the current assumptions."""
        read = [one for (name, value), one in self.readings.items() if getattr(assumptions, name) == value]
        fitting = (one for one in read if any(fnmatchcase(model.name, pattern) for pattern in one.models))
        rows = (one.rows.items() for one in fitting)
        return replace(model, rows={**model.rows, **{key: row for items in rows for key, row in items}})

    def states(self, model: Model, rule: str) -> bool:
        """Whether the host has the rule, and says it of all models or of this one."""
        return rule in self.rules and bool(model.rows.get(rule) or self.rules[rule].rows)

    def value(self, model: Model, rule: str, day: date) -> Any:
        """The value of `rule` for `model` on `day`. Raises CannotEvaluate if no row matches."""
        rows = model.rows.get(rule) or self.rules[rule].rows
        for row in reversed(rows):
            if row.holds(day):
                return row.value
        known = f"known from {rows[0].start} on: --as-of {rows[0].start}" if rows else "not known"
        raise CannotEvaluate(f"{model.id} on host {self.host} has no rule {rule} for {day}: it is {known}")


@lru_cache(maxsize=1024)
def model_at(name: str, way: str) -> str:
    """The id of a model where its maker's host caches in the `way` that a request asks for ("": the one of requests
    with breakpoints); `name` where it has no such way.
    """
    host = host_of_model(name)
    naming = catalogue(host).naming if host in hosts() else None
    asked = naming and (way or naming.at_breakpoints)
    if naming is None or not asked or naming.read(name):
        return name
    found = naming.write(name, asked)
    return name if unknown_model(host, found) else found


@lru_cache(maxsize=1024)
def near_model(host: str, name: str) -> str:
    """ " (did you mean 'x'?)" for the nearest model, with the day it was retired on; "" where none is near.

    Cached, as every call of a log may name the same unknown model.
    """
    book = catalogue(host)
    found = nearest_name(name, book.models) or nearest_name(name, (*book.names, *book.aliases))
    if not found:
        elsewhere = [] if host != DEFAULT_HOST else [one for one in hosts() if own_name(name) in catalogue(one).names]
        return f": {', '.join(elsewhere)} may have served it; name the host with --host" if elsewhere else ""
    retired = book.model(found).retired
    ended = f" It was retired on {retired}." if retired and retired <= book.data_date else ""
    return f" (did you mean '{found}'?{ended})"


@cache
def hosts() -> tuple[str, ...]:
    """Every host that has a rule file, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem not in NO_HOST))


def unknown_model(host: str, name: object) -> str:
    """Why a host has no such model; "" where it has."""
    try:
        catalogue(host).model(str(name))
    except CannotEvaluate as error:
        return str(error)
    return ""


@lru_cache(maxsize=4096)
def served_model(host: str | None, asked: str, answered: str) -> str:
    """The name of the model that served a call: the one that was asked for, or that of the answer, where it is one that
    the host knows and the other is none (a router, a preset, a deployment), or an alias of another model by now."""
    host = host_of(host, AUTO_HOST, asked)
    name = parse_model_name(answered, host)[0]
    if name == asked or host not in hosts() or unknown_model(host, name):
        return asked
    if unknown_model(host, asked):
        return name
    book = catalogue(host)
    is_alias = asked in book.aliases or (asked in book.names and asked not in book.models)
    return name if is_alias and book.model(asked).name != book.model(name).name else asked


def unknown_host(what: str, host: str) -> CannotEvaluate:
    """That nothing is known of a host: a name that is mistyped, or the machine of a recording."""
    if "." in host:
        return CannotEvaluate(f"no {what} for host '{host}': name the host behind it with --host")
    return CannotEvaluate(f"no {what} for host '{host}'{nearest(host, hosts())}; known: {', '.join(hosts())}")


@cache
def catalogue(host: str) -> Catalogue:
    """The rule file of `host`, read once. Raises CannotEvaluate for a host that has none."""
    if host not in hosts():
        raise unknown_host("rules", host)
    data = tomllib.loads((FOLDER / f"{host}.toml").read_text(encoding="utf-8"))
    head = data["data"]
    base = catalogue(head["base"]) if "base" in head else None
    read = parse(data, ParsedRules(base.rules, base.models) if base else None)
    return Catalogue(
        head["host"],
        head["date"],
        read.rules,
        read.models,
        {name: model for model in read.models.values() for name in (model.id, *model.aliases)},
        read.refuted,
        head.get("base"),
        read.naming,
        read.ways,
        read.readings,
        head.get("is_priced", True),
        read.aliases,
    )
