import { SandboxError } from "@sandpiper/core";
import type { ClientMessage } from "@sandpiper/protocol";
import type { StreamEnd, StreamSubject } from "./socket-stream.ts";

/** Brings input to a process, each byte once, however often its client connects and sends it again. */
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
    const taken = await process.writeAt(offset, bytes, { close: isLast });
    if (isLast) return {};
    position = Math.max(position, taken);
    stream.ack(position);
  }
  return undefined;
}

function stdinGap(offset: number, position: number): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "stdin_gap",
    message: `input was to end at ${offset}, but only ${position} bytes of it have arrived`,
    hint: "send the bytes in between first",
    details: { offset, position },
  });
}
