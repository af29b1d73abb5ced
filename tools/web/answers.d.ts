/** What the API of `cachecost view` answers, for JSDoc types of the modules. USD are decimal strings. */

type Usd = string;
type TokenClass = "read" | "write_1h" | "write_5m" | "input";
type Breakpoint = [tokens: number, ttl: string];

interface NamedCause {
  cause: string;
  name: string;
}

interface StartAnswer {
  kind: string;
  title: string;
  version: string;
  command: string;
  /** Where the bill is as JSON, from the page; "" or absent without one. */
  bill?: string;
  colours: { light: Record<string, string>; dark: Record<string, string> };
}

interface SessionRow {
  id: string;
  name: string;
  /** Of a conversation that has no project; "" for others. */
  title: string;
  session: string;
  project: string;
  client: string;
  models: string[];
  agents: number;
  first: string | null;
  last: string | null;
  calls: number;
  hit_rate: number | null;
  cost_usd: Usd | null;
  rewritten_usd: Usd | null;
  most: string;
}

interface SessionsAnswer {
  total: {
    cost_usd: Usd;
    rewritten_usd: Usd;
    necessary_usd: Usd;
    calls: number;
    sessions: number;
    hit_rate: number | null;
    saved_by_caching_usd: Usd;
    first: string | null;
    last: string | null;
  };
  sessions: SessionRow[];
  skipped: { file: string; line: number | null; reason: string }[];
}

/** Columns: one array each, all as long as there are calls. Not every answer has every column. */
interface CallColumns {
  number?: number[];
  start?: (number | null)[];
  model?: number[];
  agent?: number[];
  read: number[];
  write_5m: number[];
  write_1h: number[];
  input: number[];
  output?: number[];
  cost_usd: (Usd | null)[];
  rewritten_usd?: (Usd | null)[];
  rewritten_tokens?: number[];
  cause: number[];
  is_human?: boolean[];
  idle_s?: (number | null)[];
  event?: string[];
  breakpoints?: Breakpoint[][];
}

interface ColumnLists {
  causes?: NamedCause[];
  models?: string[];
  agents?: string[];
}

interface Moment {
  call: number;
  cost_usd: Usd;
  words: string;
}

interface SessionAnswer extends ColumnLists {
  id: string;
  name: string;
  title: string;
  session: string;
  project: string;
  client: string;
  headline: string;
  facts: [string, string][];
  has_text: boolean;
  has_blocks: boolean;
  has_bill: boolean;
  calls: CallColumns;
  moments: Moment[];
}

interface SimulatedAnswer extends ColumnLists {
  cost_usd: Usd;
  billed_usd: Usd | null;
  tokens_from: string;
  calls: CallColumns;
}

interface Usage {
  input_tokens: number;
  cache_read_input_tokens: number;
  cache_creation_input_tokens: number;
  cache_creation?: { ephemeral_5m_input_tokens: number; ephemeral_1h_input_tokens: number };
  output_tokens: number;
}

interface PromptBlock {
  n: number;
  layer: string;
  role: string;
  kind: string;
  name: string;
  tokens: number;
  size: number;
  digest: string;
  text: string;
}

interface ComparedBlock extends PromptBlock {
  state: string;
  breakpoint: string | null;
  change: "same" | "changed" | "new";
  before_n: number | null;
}

interface Difference {
  block: number;
  before_block: number | null;
  at: number;
  before: string;
  was: string;
  now: string;
  after: string;
}

interface CallAnswer {
  call: {
    number: number;
    time: string | null;
    model: string;
    agent: string;
    file: string;
    line: number;
    usage: Usage;
    cost_usd: Usd | null;
    cost_by_class_usd: Record<string, Usd>;
    cause: string;
    cause_name: string;
    message: string | null;
    event: string;
    idle_s: number | null;
    cache_miss_reason: string | null;
  };
  simulated: { usage: Usage; cost_usd: Usd } | null;
  before: number | null;
  blocks: ComparedBlock[];
  gone: PromptBlock[];
  difference: Difference | null;
  has_text: boolean;
}

interface BlockAnswer extends PromptBlock {
  is_cut: boolean;
  before: string | null;
  parts: ["same" | "gone" | "new", string][];
}

interface OptionsAnswer {
  ttl: string[];
  breakpoints: { name: string; words: string }[];
  models: string[];
  hosts: string[];
  keep_alive: string[];
  compaction: string[];
}

/** Tokens of all calls by class, and how many calls there are. */
interface ClassTotals {
  read: number;
  write_1h: number;
  write_5m: number;
  input: number;
  output: number;
  calls: number;
}

interface WhatIfAnswer extends ColumnLists {
  basis: ClassTotals;
  cost_usd: Usd;
  basis_usd: Usd;
  difference_usd: Usd;
  words: string;
  extra_calls: number;
  calls: CallColumns;
  command: string;
  yaml: string;
  errors: string[];
}

interface StrategyAnswer {
  name: string;
  cost_usd: Usd;
  difference_usd: Usd | null;
  calls: CallColumns | null;
  refused: number;
  findings: string[];
}

interface RunAnswer extends ColumnLists {
  name: string;
  question: string;
  about: string;
  answer: string;
  compare_to: string;
  strategies: StrategyAnswer[];
  other: ({ title: string; strategies: StrategyAnswer[] } & ColumnLists) | null;
}

interface ComparedSide extends ColumnLists {
  title: string;
  headline: string;
  cost_usd: Usd;
  rewritten_usd: Usd;
  hit_rate: number | null;
  calls: CallColumns;
}

interface CompareAnswer {
  left: ComparedSide;
  right: ComparedSide;
  pairs: [number, number][];
  difference_usd: Usd;
  words: string;
}

interface BillShare {
  name: string;
  calls: number;
  usage: Usage;
  cache_hit_rate: number | null;
  cost_usd: Usd;
  cost_by_class_usd: Record<string, Usd>;
  without_caching_usd: Usd;
  never_read: { tokens: number };
}

interface BillAnswer {
  verdict: string;
  facts: string[];
  total: BillShare;
  workspaces: BillShare[];
  models: BillShare[];
  conversations: BillShare[];
  uncached_loops: {
    conversation: string;
    later_calls: number;
    tokens_again: number;
    tokens_sent_before: number;
    cost_usd: Usd;
    avoidable_usd: Usd;
    why: string;
  }[];
  tokens: { source: string; error_margin: number };
}

interface LiveCalls extends ColumnLists {
  session?: string;
  from: number;
  calls: CallColumns;
  total?: { cost_usd?: Usd; rewritten_usd?: Usd };
  headline?: string;
  moments?: Moment[];
}
