"""Plans the calls of a main thread or of a sub-agent: when they are made, with which prompt, and after which event."""

from __future__ import annotations

from random import Random

import event_lines as lines
from event_cache import EMPTY, TTL_SECONDS, EventCall, Prefix
from event_lines import File

ANSWER_SECONDS = 6.0
STATIC_TOOLS, STATIC_SYSTEM = 15_200, 6_300
AGENT_TYPES = {"Explore": (5_200, 3_100), "general-purpose": (13_400, 4_600)}
"""Tokens of the tools and of the system prompt of each type of sub-agent."""
EXPLORE_MODEL = "claude-haiku-4-5-20251001"


class Thread:
    """Everything that one transcript contains. `clock` is the time of its last line, in seconds since the epoch."""

    def __init__(self, file: File, model: str, ttl: str, static: Prefix, start: float, random: Random) -> None:
        self.file, self.model, self.ttl, self.static = file, model, ttl, static
        self.prompt, self.clock, self.random = static, start, random
        self.calls: list[EventCall] = []
        self.copied = 0
        """Calls that the file begins with and that another file has too."""
        self.kind = ""
        """The type of a sub-agent."""
        self.event = ""
        self._before: EventCall | None = None
        self._base: EventCall | None = None
        self._parts = 0
        self._messages: list[int] = []

    def _add(self, tokens: int) -> None:
        """Append a part to the prompt."""
        self._parts += 1
        self._messages.append(tokens)
        self.prompt = self.prompt.then(f"{self.file.path} {self._parts}", tokens)

    def _happen(self, cause: str) -> None:
        """Let something happen before the next call. One call follows one event, so that its cause is certain."""
        assert not self.event, f"{cause} right after {self.event}"
        self.event = cause

    # ------------------------------------------------------------------------------------------- what people do

    def say(self, tokens: int, pause: float = 0.0) -> None:
        self.clock += pause
        self._add(tokens)
        self.file.records.append(lines.human(self.clock, lines.text_of(tokens)))

    def idle(self, seconds: float) -> None:
        """A pause that is longer than the TTL."""
        self._happen("ttl_expired")
        self.say(60, seconds)

    def wait_until(self, since_last: float) -> None:
        """Say something so long after the last call began: an event only if its cache has expired by then."""
        assert self.calls
        if since_last >= TTL_SECONDS[self.ttl]:
            self._happen("ttl_expired")
        self.say(60, max(0.0, self.calls[-1].start + since_last - self.clock))

    def lose(self) -> None:
        """The server loses all but the static prefix; nothing in the transcript tells."""
        self._happen("billed_not_explained")
        self.say(60, 9.0)

    def defer_tools(self) -> None:
        """An MCP server whose tools are deferred: a note at the end of the prompt, and no other list of tools."""
        names = [f"mcp__server_{len(self.file.records)}__search"]
        self._add(25)
        delta = {"addedNames": names, "addedLines": names, "removedNames": []}
        self.file.records.append(lines.attachment(self.clock, "deferred_tools_delta", **delta))

    def fail(self) -> None:
        """The API fails and the client says so in place of an answer; the person asks again."""
        self.say(40, 6.0)
        retry: lines.JSON = {"error": {"status": 529}, "retryInMs": 500}
        self.file.records.append(lines.system(self.clock + 1.0, "api_error", level="error", retryAttempt=1, **retry))
        self.file.records.append(lines.client_answer(self.clock + 2.0, "API Error: 529"))
        self.clock += 2.0

    def resume(self, seconds: float) -> None:
        """The session is left and resumed later in a new process: the same file goes on."""
        self._happen("ttl_expired")
        self._base = None
        records = self.file.records
        records.append(lines.outside_tree(self.clock, "last-prompt", lastPrompt="go on", sessionId=self.file.session))
        self.clock += seconds
        records.append(lines.outside_tree(self.clock, "mode", mode="default", sessionId=self.file.session))
        self._add(240)
        hook = {"hookName": "SessionStart:resume", "hookEvent": "SessionStart", "content": [lines.text_of(240)]}
        records.append(lines.attachment(self.clock, "hook_additional_context", **hook))
        self.say(45, 4.0)

    def switch_model(self, model: str) -> None:
        self._happen("model_changed")
        self.model = model
        self._command("model", f"Set model to {model}", 12.0)
        self.file.records.append(lines.attachment(self.clock, "model", identity={"modelId": model}))
        self.say(50, 8.0)

    def connect_server(self, name: str, tokens: int) -> None:
        """An MCP server connects: its tools stand in the list of tools, so every prompt from now on is another."""
        self._happen("tools_changed")
        tools = self.static.then(f"tools of {name}", tokens)
        self.static = EMPTY.then(f"tools and system with {tools.key}", tools.size)
        self._replay()
        self._add(180)
        added = {"addedNames": [name], "addedBlocks": [f"## {name}\n{lines.text_of(170)}"], "removedNames": []}
        self.file.records.append(lines.attachment(self.clock + 1.0, "mcp_instructions_delta", **added))
        self.say(70, 15.0)

    def compact(self, summary: int) -> None:
        """The summary takes the place of all messages. The call that writes it is in no transcript."""
        self._happen("compaction")
        before, self.clock = self.prompt.size, self.clock + 40.0
        self.prompt, self._messages, self._base = self.static, [], None
        metadata = {"trigger": "manual", "preTokens": before, "durationMs": 38_000}
        boundary = {"content": "Conversation compacted", "level": "info", "compactMetadata": metadata}
        self._add(summary)
        text = lines.text_of(summary)
        flags = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        self.file.records.append(lines.system(self.clock, "compact_boundary", cuts=True, **boundary))
        self.file.records.append(lines.human(self.clock, text, **flags))
        self._command("compact", "Compacted", 0.5)
        self.say(55, 20.0)

    def _command(self, name: str, output: str, pause: float) -> None:
        """A slash command and what it printed. The model sees the command."""
        self.clock += pause
        self._add(40)
        words = f"<command-name>/{name}</command-name>\n<command-args></command-args>"
        printed = f"<local-command-stdout>{output}</local-command-stdout>"
        run = {"command": name, "args": ""}
        self.file.records.append(lines.human(self.clock, words))
        self.file.records.append(lines.system(self.clock, "local_command", content=printed, commandRun=run))

    def _replay(self) -> None:
        """The same messages after another static prefix."""
        messages, self._messages, self.prompt = self._messages, [], self.static
        for number, tokens in enumerate(messages):
            self.prompt = self.prompt.then(f"{self.file.path} again {number}", tokens)
        self._messages = messages

    # --------------------------------------------------------------------------------------------- what agents do

    def call(self, uses: int, output: int) -> EventCall:
        """One call that begins at the last line; its answer uses so many tools."""
        number = self.copied + len(self.calls) + 1
        call = EventCall(self.file.session, self.file.agent, number, self.clock, self.model, self.ttl, self.static,
                         self.prompt, 2 + self.random.randrange(8), output)  # fmt: skip
        call.before, call.event = self._before, self.event
        call.id = f"msg_{lines.hex_of('message', self.file.path, number, length=24)}"
        call.messages, call.base, self._base = len(self._messages), self._base, call
        call.is_lost = call.event == "billed_not_explained"
        self.event, self._before = "", call
        self.calls.append(call)
        self.clock += 2.5
        self.file.records.append(lines.Record(self.clock, {}, call, self._answer(call, uses)))
        self.clock += ANSWER_SECONDS - 2.5 + 1.5 * uses
        self._add(output)
        return call

    def _answer(self, call: EventCall, uses: int) -> list[lines.JSON]:
        """The blocks of an answer: a text, and the tools that it uses."""
        text = {"type": "text", "text": lines.text_of(call.output // (uses + 1))}
        used = [{"type": "tool_use", "id": f"toolu_{call.id[4:]}{n}", "name": "Bash"} for n in range(uses)]
        return [text, *({**block, "input": {"command": lines.text_of(call.output // (uses + 1))}} for block in used)]

    def results(self, tokens: list[int], pause: float = 1.0) -> None:
        """The results of the tools that the last call used, a line each."""
        for number, size in enumerate(tokens):
            self.clock += pause
            self._add(size)
            use = f"toolu_{self.calls[-1].id[4:]}{number}"
            self.file.records.append(lines.tool_result(self.clock, use, size))

    def work(self, calls: int, tokens: int = 1_000, says: bool = True) -> None:
        """So many calls of one turn, the last without a tool; a person's message before them."""
        if says:
            self.say(40 + self.random.randrange(120), 5.0 + self.random.randrange(40))
        for left in range(calls - 1, -1, -1):
            uses = 0 if left == 0 else 2 if self.random.random() < 0.15 else 1
            self.call(uses, 120 + self.random.randrange(320))
            self.results([tokens // uses // 2 + self.random.randrange(tokens // uses) for _ in range(uses)])

    def work_until(self, size: int, tokens: int) -> None:
        """One turn until the prompt has so many tokens."""
        self.say(90, 20.0)
        while self.prompt.size < size:
            self.call(1, 200)
            self.results([min(tokens, max(20, size - self.prompt.size))])
        self.call(0, 200)


class MainThread(Thread):
    """The main thread of a session, which starts sub-agents."""

    def __init__(self, file: File, model: str, ttl: str, static: Prefix, start: float, random: Random) -> None:
        super().__init__(file, model, ttl, static, start, random)
        self.agents: list[Thread] = []

    def open(self) -> None:
        """The lines that a session begins with."""
        session, records = self.file.session, self.file.records
        message = lines.uuid_of(session, "snapshot")
        snapshot = {"messageId": message, "trackedFileBackups": {}, "timestamp": lines.iso_of(self.clock)}
        fields = {"messageId": message, "snapshot": snapshot, "isSnapshotUpdate": False}
        mode = {"permissionMode": "default", "sessionId": session}
        records.append(lines.outside_tree(self.clock, "permission-mode", **mode))
        records.append(lines.outside_tree(self.clock, "file-history-snapshot", **fields))
        names = ["WebFetch", "WebSearch"]
        self.say(2_400)
        self._add(30)
        delta = {"addedNames": names, "addedLines": names, "removedNames": []}
        records.append(lines.attachment(self.clock, "deferred_tools_delta", **delta))

    def start_agents(self, kinds: list[str], calls: int = 6) -> None:
        """Sub-agents at once: the main thread waits for the last of them."""
        self.call(len(kinds), 150 + 110 * len(kinds))
        ends = [self._run_agent(kind, self.clock + 0.05 * number, calls) for number, kind in enumerate(kinds)]
        self.clock = max(ends)
        self.results([500 + self.random.randrange(500) for _ in kinds], 0.2)
        self.work(1, says=False)

    def _run_agent(self, kind: str, start: float, calls: int) -> float:
        """When the agent is done."""
        agent = lines.hex_of(self.file.path, "agent", len(self.agents), length=17)
        path = f"{self.file.path.removesuffix('.jsonl')}/subagents/agent-{agent}.jsonl"
        file = File(path, self.file.session, agent, cwd=self.file.cwd, version=self.file.version)
        model = EXPLORE_MODEL if kind == "Explore" else self.model
        tools, system = AGENT_TYPES[kind]
        static = EMPTY.then(f"tools of {kind}", tools).then(f"system prompt of {kind}", system)
        thread = Thread(file, model, "5m", static, start, self.random)
        thread.kind = kind
        self.agents.append(thread)
        thread.say(300 + self.random.randrange(200))
        thread.work(calls, 700, says=False)
        return thread.clock

    def fork(self, file: File, pause: float) -> MainThread:
        """A session that begins with a copy of this one. What was compacted before is not copied."""
        other = MainThread(file, self.model, self.ttl, self.static, self.clock + pause, self.random)
        other.prompt, other._messages, other._before = self.prompt, list(self._messages), self._before
        compacted = [number for number, call in enumerate(self.calls) if call.event == "compaction"]
        other.copied = len(self.calls) - (compacted[-1] if compacted else 0) + (0 if compacted else self.copied)
        file.copied = self.file
        return other


def static_prefix() -> Prefix:
    return EMPTY.then("tools", STATIC_TOOLS).then("system prompt", STATIC_SYSTEM)
