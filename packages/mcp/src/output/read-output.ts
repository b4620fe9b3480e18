import type { Process, Sandbox } from "@sandpiper/sdk";
import { findProcess } from "../tool/process-row.ts";
import type { ToolCall } from "../tool/tool.ts";
import { tick } from "./ticking.ts";
import { joinBytes, textOf, withoutCutEnd } from "./utf8.ts";

export interface ReadOutputOptions {
  readonly offset: number;
  /** How long to wait for `waitFor`. */
  readonly waitMs: number;
  readonly waitFor: "output" | "exit";
  readonly call: ToolCall;
}

export interface ReadOutput {
  readonly text: string;
  readonly offset: number;
  readonly nextOffset: number;
}

/** Reads a process's output from an offset, as much as fits into one answer. */
export async function readOutput(sandbox: Sandbox, id: string, options: ReadOutputOptions): Promise<ReadOutput> {
  const { offset, waitMs, waitFor, call } = options;
  const { endOffset, isRunning } = await findProcess(sandbox, id, call.signal);
  const isWaiting = isRunning && waitMs > 0 && (waitFor === "exit" || endOffset <= offset);
  if (!isWaiting && endOffset <= offset) return { text: "", offset, nextOffset: offset };
  const process = await sandbox.attach(id, { offset, signal: call.signal });
  // Without output so far, the first chunk ends the wait.
  const until = isWaiting && waitFor === "exit" ? Number.POSITIVE_INFINITY : Math.max(endOffset, offset + 1);
  return await collect(process, { offset, until, isRunning, waitMs: isWaiting ? waitMs : undefined, call });
}

interface CollectOptions {
  readonly offset: number;
  readonly until: number;
  /** A running process may still write the rest of a character. */
  readonly isRunning: boolean;
  /** Undefined when there is nothing to wait for. */
  readonly waitMs: number | undefined;
  readonly call: ToolCall;
}

async function collect(process: Process, options: CollectOptions): Promise<ReadOutput> {
  const { offset, until, isRunning, waitMs, call } = options;
  const pieces: Uint8Array[] = [];
  let room = call.session.limits.outputBytes;
  let from: number | undefined;
  let position = offset;
  let mayGoOn = false;
  const stop = () => {
    mayGoOn = true;
    process.detach();
  };
  call.signal.addEventListener("abort", stop, { once: true });
  const timer = waitMs === undefined ? undefined : setTimeout(stop, waitMs);
  using _ = tick(call, (seconds) => `waiting for ${seconds} s, ${position} bytes of output`);
  try {
    for await (const chunk of process.output) {
      from ??= chunk.offset;
      const bytes = chunk.bytes.subarray(0, room);
      pieces.push(bytes);
      room -= bytes.length;
      position = chunk.offset + bytes.length;
      if (room > 0 && position < until) continue;
      mayGoOn = isRunning || position < until;
      break;
    }
  } finally {
    clearTimeout(timer);
    call.signal.removeEventListener("abort", stop);
    process.detach();
  }
  call.signal.throwIfAborted();
  const bytes = joinBytes(pieces);
  const whole = mayGoOn ? withoutCutEnd(bytes) : bytes;
  return { text: textOf(whole), offset: from ?? offset, nextOffset: position - (bytes.length - whole.length) };
}
