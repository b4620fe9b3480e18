import { abortError, type ExecOptions, ExecOutput, type ExecResult, SandboxError } from "@sandpiper/protocol";
import type { AgentCall } from "../agent/agent-call.ts";
import type { AgentClient } from "../agent/agent-client.ts";
import { DEFAULT_WINDOW_BYTES, InboundFlow } from "../agent/inbound-flow.ts";
import { type SpawnTarget, spawnOptions } from "./command.ts";
import { processExit } from "./process-exit.ts";
import { stdinPieces } from "./stdin-pieces.ts";

/** Exec reads from the start and has no later readers, so a small journal in the agent's memory is enough. */
const EXEC_JOURNAL_BYTES = 256 * 1024;

/** Runs a command to its end. Spawn, output and wait are sent in one write, without waiting for each other's answers. */
export async function exec(client: AgentClient, target: SpawnTarget, options: ExecOptions = {}): Promise<ExecResult> {
  const { signal, timeoutMs } = options;
  if (signal?.aborted) throw abortError(signal, `exec on ${client.label}`);
  const process = client.randomUuid();
  const unlimited = { timeoutMs: Number.POSITIVE_INFINITY };
  const stdin = typeof options.stdin === "string" ? new TextEncoder().encode(options.stdin) : options.stdin;
  const hasStdin = stdin !== undefined && stdin.length > 0;
  const interruption = Promise.withResolvers<never>();
  const collected = new ExecOutput(options);

  const spawn = client.begin("process.spawn", {
    process,
    ...target,
    ...spawnOptions(options),
    stdin: hasStdin,
    journal_bytes: EXEC_JOURNAL_BYTES,
  });
  const output = client.begin(
    "process.output",
    { process, window: DEFAULT_WINDOW_BYTES },
    {
      ...unlimited,
      prepare: (call) => collectInto(call, collected, interruption.reject),
    },
  );
  const wait = client.begin("process.wait", { process }, unlimited);
  if (hasStdin) feed(client, process, stdin).catch(() => {});

  const abort = () => interruption.reject(abortError(signal as AbortSignal, `exec on ${client.label}`));
  signal?.addEventListener("abort", abort, { once: true });
  // The agent enforces the time limit; this only ends the wait for an agent that does not.
  const stopTimer =
    timeoutMs === undefined
      ? undefined
      : client.clock.schedule(timeoutMs + client.rpcTimeoutMs, () =>
          interruption.reject(client.timeoutError("process.wait", timeoutMs + client.rpcTimeoutMs)),
        );
  try {
    const finished = finish(spawn, output, wait);
    const exit = processExit(await Promise.race([finished, interruption.promise]));
    forget(client, process);
    return collected.result(exit);
  } catch (thrown) {
    client.begin("process.signal", { process, signal: "SIGKILL", target: "tree" });
    output.cancel(SandboxError.from(thrown));
    wait.result.then(
      () => forget(client, process),
      () => {},
    );
    throw thrown;
  } finally {
    stopTimer?.();
    signal?.removeEventListener("abort", abort);
  }
}

/** `interrupt` receives an error that the caller's callback throws. */
function collectInto(
  call: AgentCall<"process.output">,
  collected: ExecOutput,
  interrupt: (thrown: unknown) => void,
): void {
  const flow = new InboundFlow({
    windowBytes: DEFAULT_WINDOW_BYTES,
    journalOffset: 0,
    grant: (bytes) => call.grant(bytes),
  });
  call.endOffset = (result) => result.offset;
  call.inbound = {
    flow,
    chunk(chunk) {
      try {
        collected.add(chunk);
      } catch (thrown) {
        interrupt(thrown);
      }
      flow.take(chunk.bytes.length);
    },
    ended() {},
    finish() {},
    fail() {},
  };
}

/** If the command did not start, that error wins over those of the other two calls. */
async function finish(
  spawn: AgentCall<"process.spawn">,
  output: AgentCall<"process.output">,
  wait: AgentCall<"process.wait">,
) {
  try {
    const [waited] = await Promise.all([wait.result, output.result, spawn.result]);
    return waited;
  } catch (thrown) {
    await spawn.result;
    throw thrown;
  }
}

/** A command may end without reading all of its input, as in a shell's pipe. */
async function feed(client: AgentClient, process: string, stdin: Uint8Array): Promise<void> {
  let sent = 0;
  for (const attachment of stdinPieces(stdin)) {
    sent += attachment.length;
    const close = sent === stdin.length;
    await client.call("process.stdin", { process, close }, { attachment, timeoutMs: Number.POSITIVE_INFINITY });
  }
}

function forget(client: AgentClient, process: string): void {
  client.begin("process.forget", { process });
}
