import { SandboxError } from "@sandpiper/core";
import { type ClientMessage, clientMessageSchema } from "@sandpiper/protocol";
import type { z } from "zod";

/** A malformed message, and its stream if that is known. */
export class UnreadableMessage {
  readonly error: SandboxError;
  readonly stream: number | undefined;

  constructor(problem: string, stream: number | undefined) {
    this.stream = stream;
    this.error = new SandboxError("malformed_message", { message: `malformed message: ${problem}` });
  }
}

export function readClientMessage(text: string): ClientMessage | UnreadableMessage {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return new UnreadableMessage("it is not JSON", undefined);
  }
  const parsed = clientMessageSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { type, kind, stream } = fieldsOf(value);
  const what = `type ${JSON.stringify(type)}${kind === undefined ? "" : `, kind ${JSON.stringify(kind)}`}`;
  const isNumber = Number.isInteger(stream) && (stream as number) >= 0 && (stream as number) < 2 ** 32;
  return new UnreadableMessage(
    `${what}: ${problemOf(parsed.error)}`.slice(0, 1000),
    isNumber ? (stream as number) : undefined,
  );
}

function problemOf({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => `${path.map(String).join(".")}: ${message}`).join("; ");
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
