import { SandboxError } from "@sandpiper/core";
import { type ClientMessage, clientMessageSchema } from "@sandpiper/protocol";

/** A message that could not be read, and the stream it was about as far as that is known. */
export class UnreadableMessage {
  readonly error: SandboxError;
  readonly stream: number | undefined;

  constructor(problem: string, stream: number | undefined) {
    this.stream = stream;
    this.error = new SandboxError("invalid_argument", {
      reason: "malformed_message",
      message: `a message of the client was not understood: ${problem}`,
      hint: "docs/sockets.md describes the messages",
    });
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

interface Issue {
  readonly code?: string | undefined;
  readonly message: string;
  readonly path: readonly PropertyKey[];
  readonly errors?: readonly (readonly Issue[])[];
}

/** Of all the messages it might have been it is the one with the fewest problems. */
function problemOf({ issues }: { readonly issues: readonly unknown[] }): string {
  const [first] = issues as readonly Issue[];
  const candidates = first?.code === "invalid_union" ? (first.errors ?? []) : [issues as readonly Issue[]];
  const nearest = candidates.toSorted((one, other) => one.length - other.length)[0] ?? [];
  return nearest.map(({ path, message }) => `${path.map(String).join(".")}: ${message}`).join("; ");
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
