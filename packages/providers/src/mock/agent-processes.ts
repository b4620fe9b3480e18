import { SandboxError } from "@sandpiper/core";
import type { AgentParams } from "@sandpiper/protocol";
import type { Handlers, MockAgent } from "./agent.ts";
import { HOME } from "./file-tree.ts";
import { MockProcess, type ProcessSpec } from "./process.ts";
import { programs } from "./program.ts";
import { SHELL } from "./shell.ts";

const DEFAULT_JOURNAL_BYTES = 64 * 1024 * 1024;

export const processHandlers: Handlers = {
  "process.spawn"(agent, params) {
    const { id, pid } = spawn(agent, params).state.spec;
    return { process: id, pid };
  },

  async "process.output"(agent, { process: id, offset = 0, window }, call) {
    const { state, journal } = find(agent, id);
    const cursor = journal.attach(offset);
    call.grant(window);
    try {
      for (;;) {
        const piece = cursor.position < state.journal.end ? journal.read(cursor, await call.room()) : undefined;
        if (piece !== undefined) {
          const { bytes, dropped, ...fields } = piece;
          call.sendData(bytes, dropped > 0 ? { ...fields, dropped } : fields);
        } else if (state.status !== undefined) return { offset: cursor.position };
        else await call.wait(journal.changed);
      }
    } finally {
      journal.detach(cursor);
    }
  },

  "process.stdin"(agent, { process: id, offset: at, close }, call) {
    const process = find(agent, id);
    const taken = process.state.stdinOffset;
    if (at !== undefined && at > taken) {
      const message = `${at} is beyond the ${taken} bytes of input accepted so far`;
      throw new SandboxError("stdin_gap", { message });
    }
    const offset = process.feed(call.request.attachment.subarray(at === undefined ? 0 : taken - at), close === true);
    if (offset !== undefined) return { offset };
    throw new SandboxError("stdin_closed", { message: `process ${id} has no standard input` });
  },

  "process.signal"(agent, { process: id, signal }) {
    find(agent, id).kill(signal);
    return {};
  },

  "process.resize"(agent, { process: id }) {
    if (find(agent, id).info().pty) return {};
    throw new SandboxError("no_terminal", { message: `process ${id} has no terminal` });
  },

  async "process.wait"(agent, { process: id }, call) {
    const { state, exited } = find(agent, id);
    while (state.status === undefined) await call.wait(exited);
    return { status: state.status, duration_ms: state.durationMs, end_offset: state.journal.end };
  },

  "process.list": (agent) => ({ processes: [...agent.processes.values()].map((process) => process.info()) }),

  "process.forget"(agent, { process: id }) {
    if (find(agent, id).state.status === undefined) {
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
  const pid = agent.nextPid++;
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
  if (command !== undefined) return { argv: [SHELL, "-c", command], script: { text: command, name: "sh" } };
  if (code !== undefined) {
    const source = new TextDecoder().decode(agent.files.read(code.path));
    if (code.ephemeral) agent.files.remove(code.path, { recursive: false, missingOk: true });
    requireLanguage(agent, code.language);
    return { argv: ["sh", code.path], script: { text: source, name: code.path } };
  }
  if (argv === undefined) return { argv: [SHELL], script: undefined };
  const name = argv[0] ?? "";
  if (Object.hasOwn(programs, name)) return { argv, script: undefined };
  throw new SandboxError("no_such_program", { message: `program ${name} not found` });
}

function requireLanguage(agent: MockAgent, language: string): void {
  if (agent.languages.includes(language)) return;
  const message = `${language} is an unknown language; known ones: ${agent.languages.join(", ")}`;
  throw new SandboxError("unknown_language", { message });
}
