import { SandboxError } from "@sandpiper/core";
import type { AgentParams, AgentResult } from "@sandpiper/protocol";
import type { Handler, MockAgent } from "./agent.ts";
import { HOME } from "./file-tree.ts";
import { MockProcess, type ProcessSpec } from "./process.ts";
import { programs } from "./program.ts";

const DEFAULT_JOURNAL_BYTES = 64 * 1024 * 1024;

type ProcessMethod =
  | "exec"
  | "exec_code"
  | "process.spawn"
  | "process.output"
  | "process.stdin"
  | "process.signal"
  | "process.resize"
  | "process.wait"
  | "process.list"
  | "process.forget";

export const processHandlers: Readonly<Record<ProcessMethod, Handler>> = {
  async exec(agent, { cmd, stdin, ...options }: AgentParams<"exec">, call) {
    return runToEnd(
      agent,
      spawn(agent, { command: cmd, ...options, stdin: stdin !== undefined }),
      stdin,
      call.canceled.signal,
    );
  },

  async exec_code(agent, { lang, code, stdin, ...options }: AgentParams<"exec_code">, call) {
    requireLanguage(agent, lang);
    return runToEnd(
      agent,
      spawn(agent, { command: code, ...options, stdin: stdin !== undefined }),
      stdin,
      call.canceled.signal,
    );
  },

  "process.spawn"(agent, params: AgentParams<"process.spawn">) {
    const { id, pid } = spawn(agent, params);
    return { process: id, pid };
  },

  async "process.output"(agent, { process: id, offset = 0, window }: AgentParams<"process.output">, call) {
    const process = find(agent, id);
    const reader = process.journal.attach(offset);
    call.grant(window);
    try {
      for (;;) {
        if (reader.hasMore) {
          const piece = reader.read(await call.room());
          if (piece === undefined) continue;
          const dropped = piece.dropped > 0 ? { dropped: piece.dropped } : {};
          call.sendData(piece.bytes, { offset: piece.offset, source: piece.source, ...dropped });
        } else if (process.status !== undefined) return { offset: reader.position };
        else await call.wait(process.journal.changed);
      }
    } finally {
      reader.detach();
    }
  },

  "process.stdin"(agent, { process: id, offset: at, close }: AgentParams<"process.stdin">, call) {
    const process = find(agent, id);
    const taken = process.stdinOffset;
    if (at !== undefined && at > taken) {
      const message = `${at} is beyond the ${taken} bytes of input accepted so far`;
      throw new SandboxError("stdin_gap", { message });
    }
    const offset = process.feed(call.attachment.subarray(at === undefined ? 0 : taken - at), close === true);
    if (offset !== undefined) return { offset };
    throw new SandboxError("stdin_closed", { message: `process ${id} has no standard input` });
  },

  "process.signal"(agent, { process: id, signal }: AgentParams<"process.signal">) {
    find(agent, id).kill(signal);
    return {};
  },

  "process.resize"(agent, { process: id }: AgentParams<"process.resize">) {
    if (find(agent, id).info().pty) return {};
    throw new SandboxError("no_terminal", { message: `process ${id} has no terminal` });
  },

  async "process.wait"(agent, { process: id }: AgentParams<"process.wait">, call) {
    const process = find(agent, id);
    while (process.status === undefined) await call.wait(process.exited);
    return { status: process.status, duration_ms: process.durationMs, end_offset: process.journal.end };
  },

  "process.list": (agent) => ({ processes: [...agent.processes.values()].map((process) => process.info()) }),

  "process.forget"(agent, { process: id }: AgentParams<"process.forget">) {
    if (find(agent, id).status === undefined) {
      throw new SandboxError("still_running", { message: `process ${id} is running` });
    }
    agent.processes.delete(id);
    return {};
  },
};

function find(agent: MockAgent, id: string): MockProcess {
  const process = agent.processes.get(id);
  if (process !== undefined) return process;
  throw new SandboxError("no_such_process", { message: `process ${id} not found` });
}

function spawn(agent: MockAgent, params: AgentParams<"process.spawn">): MockProcess {
  const pid = agent.nextPid();
  const id = params.process ?? `p${pid}`;
  if (agent.processes.has(id)) {
    throw new SandboxError("process_exists", { message: `process ${id} already exists` });
  }
  const cwd = agent.files.resolve(params.cwd ?? HOME);
  if (!agent.files.isDirectory(cwd)) {
    throw new SandboxError("no_such_directory", { message: `${cwd} is not a directory` });
  }
  const spec: ProcessSpec = {
    id,
    pid,
    ...programOf(agent, params),
    cwd,
    env: { ...params.env },
    hasStdin: params.stdin === true,
    hasPty: params.pty !== undefined,
    journalBytes: params.journal_bytes ?? DEFAULT_JOURNAL_BYTES,
    timeoutMs: params.timeout_ms,
  };
  const process = MockProcess.create(spec, agent);
  agent.processes.set(id, process);
  process.run();
  return process;
}

function programOf(
  agent: MockAgent,
  { argv, command, code }: AgentParams<"process.spawn">,
): Pick<ProcessSpec, "argv" | "script"> {
  if (command !== undefined) return { argv: ["/bin/sh", "-c", command], script: { text: command, name: "sh" } };
  if (code !== undefined) {
    const source = new TextDecoder().decode(agent.files.read(code.path));
    if (code.ephemeral) agent.files.remove(code.path, { recursive: false, missingOk: true });
    requireLanguage(agent, code.language);
    return { argv: ["sh", code.path], script: { text: source, name: code.path } };
  }
  const name = argv?.[0] ?? "";
  if (argv !== undefined && Object.hasOwn(programs, name)) return { argv, script: undefined };
  throw new SandboxError("no_such_program", { message: `program ${name} not found` });
}

function requireLanguage(agent: MockAgent, language: string): void {
  if (agent.languages.includes(language)) return;
  const message = `${language} is an unknown language; known ones: ${agent.languages.join(", ")}`;
  throw new SandboxError("unknown_language", { message });
}

async function runToEnd(
  agent: MockAgent,
  process: MockProcess,
  stdin: string | undefined,
  canceled: AbortSignal,
): Promise<AgentResult<"exec">> {
  process.isCollected = true;
  canceled.addEventListener("abort", () => process.kill("SIGKILL"), { once: true });
  if (stdin !== undefined) process.feed(new TextEncoder().encode(stdin), true);
  while (process.status === undefined) await process.exited.wait();
  agent.processes.delete(process.id);
  const text = { stdout: "", stderr: "", pty: "" };
  const reader = process.journal.attach(0);
  for (
    let piece = reader.read(Number.MAX_SAFE_INTEGER);
    piece !== undefined;
    piece = reader.read(Number.MAX_SAFE_INTEGER)
  ) {
    text[piece.source] += new TextDecoder().decode(piece.bytes);
  }
  const { exit_code, signal, timed_out, out_of_memory } = process.status;
  const { stdout, stderr } = text;
  return { exit_code: exit_code ?? 137, stdout, stderr, signal, timed_out, out_of_memory, truncated: false };
}
