"""Takes keys, e-mail addresses and names out of calls and conversations whose content is kept.

Two passes: `learn` everything first, then redact. A name may be found late and must be hidden in earlier blocks, too: a
text that differs between two calls would end the prefix that they share.

What stays as it was: which blocks are equal and which are not, so prefixes and cache hits; kinds, numbers and (where a
placeholder can be as long as its secret) sizes of blocks; images, documents and signatures in base64; keys of objects
outside of tool inputs; models, hosts, source, licence, times and bills. Token counts are then no longer exact.

keys.py, mail.py and names.py say what is found. They go by how secrets look, so check a redacted recording before you
share it. Blocks without content are unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, takewhile
from typing import Any

from cachecost.conversations.block_rewriting import BlockRewriter
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.model import Conversation, ConversationState, Inquiry
from cachecost.conversations.redaction.names import Names
from cachecost.conversations.redaction.text import SecretHider, rewrite_texts
from cachecost.prompts.blocks import Block, Thread, digest_of
from cachecost.prompts.wire import block_of

Identity = tuple[bytes, int]
"""What a recording knows a block by: digest and size."""
NAMES_OF_CALL = ("workspace", "session", "project", "agent")
"""The fields of a call that hold names."""


class Redactor:
    """Redacts the calls or conversations of one recording. `counts` says how much was hidden, by kind.

    A block counts once, however often it is sent: so often it is written.
    """

    def __init__(self) -> None:
        self._names = Names()
        self._hider = SecretHider(self._names)
        self._learned: set[Identity | Thread | str] = set()
        self._blocks: dict[Identity, Block] = {}
        self._texts: dict[tuple[str, str], str] = {}
        self._strangers: dict[bytes, int] = {}
        self._rewriter = BlockRewriter(self._block)
        self._has_begun = False

    @property
    def counts(self) -> Counter[str]:
        return self._hider.counts

    def learn(self, made: RecordedCall | Conversation) -> None:
        """Learn the names in a call or a conversation. Raises RuntimeError after the first redaction."""
        if self._has_begun:
            raise RuntimeError("learn everything before the first redaction: a name learned now may be written already")
        blocks, values = self._in_call(made) if isinstance(made, RecordedCall) else _in_conversation(made)
        for block in blocks:
            if block.content is not None and self._is_new((block.digest, block.size)):
                rewrite_texts([block.content, *block.brought], self._learn_in)
        for value in values:
            rewrite_texts(value, lambda _, text: self._learn_in(_, text) if self._is_new(text) else text)

    def call(self, call: RecordedCall) -> RecordedCall:
        """The call without secrets."""
        self._has_begun = True
        made = self._rewriter.call(call)
        fault = made.request.fault
        request = replace(
            made.request,
            params=self._params(made.request.params),
            fault=None if fault is None else self.text(fault),
            deferred={},
        )
        names: dict[str, Any] = {name: self.text(getattr(call, name)) for name in NAMES_OF_CALL}
        return replace(made, request=request, **names)

    def conversation(self, conversation: Conversation) -> Conversation:
        """The conversation without secrets. Raises ValueError for one that was found in calls: redact those."""
        self._has_begun = True
        made = self._rewriter.conversation(conversation)
        events = (
            replace(event, answer_type=self.text(event.answer_type), tool_use=self.text(event.tool_use))
            if isinstance(event, Inquiry)
            else event
            for event in made.events
        )
        name, params = self.text(conversation.name), self._params(conversation.params)
        return replace(made, name=name, events=tuple(events), params=params)

    def text(self, text: str) -> str:
        """A text next to the content, such as the name of a recording, without secrets."""
        return self._field("", text)

    def _params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = rewrite_texts(dict(params), self._field)
        return made

    def _field(self, name: str, text: str) -> str:
        key = (name, text)
        if key not in self._texts:
            self._texts[key] = self._hider.field(name, text)
        return self._texts[key]

    # -------------------------------------------------------------------------------------- learning

    def _learn_in(self, _: str, text: str) -> str:
        self._names.learn(text)
        return text

    def _is_new(self, what: Identity | Thread | str) -> bool:
        known = len(self._learned)
        self._learned.add(what)
        return len(self._learned) > known

    def _in_call(self, call: RecordedCall) -> tuple[Iterable[Block], Iterable[Any]]:
        """The blocks that may be new with a call, and the texts next to them."""
        request = call.request
        new = takewhile(self._is_new, request.thread.back())
        messages = [node.message.blocks for node in new if node.message]
        blocks = chain(request.tools.blocks, request.system.blocks, *messages, call.response)
        return blocks, (dict(request.params), *(getattr(call, name) for name in NAMES_OF_CALL), request.fault)

    # ----------------------------------------------------------------------------------------- blocks

    def _block(self, block: Block) -> Block:
        identity = (block.digest, block.size)
        if block.content is None:
            return block
        if identity not in self._blocks:
            shown = self._redact(block, self._hider.value(block.content))
            self._blocks[identity] = replace(shown, brought=tuple(map(self._hider.value, block.brought)))
        return self._blocks[identity]

    def _redact(self, block: Block, content: Mapping[str, Any]) -> Block:
        if content == block.content:
            return block
        assert block.content is not None
        was, now = block_of(block.role, block.content), block_of(block.role, content)
        digest = now.digest if block.digest == was.digest else self._stranger(block, now.digest)
        return replace(block, content=content, digest=digest, size=now.size if block.size == was.size else block.size)

    def _stranger(self, block: Block, digest: bytes) -> bytes:
        """For a block that is not only its content (it brings tools in, or has a name): as much another one as it was.

        Its own digest would tell who guesses a secret whether the guess is right.
        """
        number = self._strangers.setdefault(block.digest, len(self._strangers))
        return digest_of(block.role, block.kind, digest + number.to_bytes(8, "big"))


def _in_conversation(conversation: Conversation) -> tuple[Iterable[Block], Iterable[Any]]:
    made = [
        (event.question, event.answer) if isinstance(event, Inquiry) else event.blocks
        for event in conversation.events
        if isinstance(event, ConversationState)
    ]
    words = [event.answer_type for event in conversation.inquiries]
    blocks = chain(conversation.tools.blocks, conversation.system.blocks, *made)
    return blocks, (dict(conversation.params), conversation.name, *words)
