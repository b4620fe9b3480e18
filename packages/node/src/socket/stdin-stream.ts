import { SandboxError } from "@sandpiper/core";
import type { ClientMessage } from "@sandpiper/protocol";
import type { StreamEnd, StreamSubject } from "./socket-stream.ts";

/** Writes input to a process. A byte that a client sends again after a reconnect is written once. */
export async function runStdinStream(
  { stream, live }: StreamSubject,
  message: Extract<ClientMessage, { kind: "stdin" }>,
): Promise<StreamEnd | undefined> {
  const [process, summary] = await Promise.all([live.attach(message.process, 0), live.process(message.process)]);
  let position = summary.stdinOffset;
  stream.opened({ offset: position });
  for await (const { offset, bytes, isLast } of stream.stdin ?? []) {
    live.touch("stdin");
    if (isLast && offset > position) throw stdinGap(offset, position);
    const writtenTo = await process.writeAt(offset, bytes, { close: isLast });
    if (isLast) return {};
    position = Math.max(position, writtenTo);
    stream.ack(position);
  }
  return undefined;
}

function stdinGap(offset: number, position: number): SandboxError {
  return new SandboxError("stdin_gap", {
    message: `cannot end the input at offset ${offset}: only ${position} bytes have arrived`,
    details: { offset, position },
  });
}
