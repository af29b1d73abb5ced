"""The lines of Claude Code transcripts, as templates of bytes: formatting them is what writes 380 MB in two seconds."""

LINE = (
    b'{"parentUuid":%b,"isSidechain":%b,"userType":"external","cwd":"%b","sessionId":"%b","version":"%b",'
    b'"gitBranch":"main",%b,"uuid":"%b","timestamp":"%b"}\n'
)
ANSWER = (
    b'"message":{"model":"%b","id":"msg_01%b","type":"message","role":"assistant","content":[%b],"stop_reason":null,'
    b'"stop_sequence":null,"usage":%b},"requestId":"req_011%b","type":"assistant"'
)
USAGE = (
    b'{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation":'
    b'{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d},"output_tokens":%%d,"service_tier":"standard"}'
)
BLOCKS = {
    b"thinking": b'{"type":"thinking","thinking":"%b","signature":""}',
    b"text": b'{"type":"text","text":"%b"}',
    b"tool_use": b'{"type":"tool_use","id":"toolu_01%b","name":"Bash","input":{"command":"%b"}}',
}
RESULT = (
    b'"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_01%b","type":"tool_result",'
    b'"content":"%b","is_error":false}]},"toolUseResult":%b'
)
BASH_RESULT = b'{"stdout":"%b","stderr":"","interrupted":false,"isImage":false}'
AGENT_RESULT = (
    b'{"status":"completed","content":[{"type":"text","text":"%b"}],"totalDurationMs":9000,"totalTokens":20503,'
    b'"totalToolUseCount":4,"usage":%b}'
)
HUMAN = b'"type":"user","message":{"role":"user","content":"%b"},"todos":[],"permissionMode":"default"'
PROGRESS = (
    b'"type":"progress","data":{"type":"bash_progress","output":"%b","elapsedTimeSeconds":2,"totalLines":2},'
    b'"toolUseID":"bash-progress-0-%b","parentToolUseID":"toolu_01%b"'
)
AGENT_PROGRESS = (
    b'"type":"progress","data":{"message":{"type":"assistant","message":{"model":"%b","id":"msg_02%b","type":"message",'
    b'"role":"assistant","content":[{"type":"text","text":"%b"}],"stop_reason":null,"usage":%b}},'
    b'"normalizedMessages":[],"type":"agent_progress","prompt":"","agentId":"a1"},"parentToolUseID":"toolu_01%b"'
)
ATTACHMENT = b'"type":"attachment","attachment":{"type":"hook_additional_context","content":["%b"]}'
TURN_DURATION = b'"type":"system","subtype":"turn_duration","durationMs":%d,"isMeta":false'
BOUNDARY = (
    b'"logicalParentUuid":%b,"type":"system","subtype":"compact_boundary","content":"Conversation compacted",'
    b'"level":"info","compactMetadata":{"trigger":"auto","preTokens":%d}'
)
SUMMARY = (
    b'"type":"user","message":{"role":"user","content":"%b"},"isVisibleInTranscriptOnly":true,"isCompactSummary":true'
)
SNAPSHOT = (
    b'{"type":"file-history-snapshot","messageId":"%b","snapshot":{"messageId":"%b","trackedFileBackups":{"a":"%b"},'
    b'"timestamp":"%b"},"isSnapshotUpdate":false}\n'
)
