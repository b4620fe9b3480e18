import type { CallToolResult } from "@modelcontextprotocol/server";
import { type ErrorCode, SandboxError } from "@sandpiper/sdk";

/** What a model does next, where the error itself does not say. */
const advice: Partial<Record<ErrorCode, string>> = {
  invalid_argument: "Correct the arguments and call again.",
  unauthenticated: "The key of this server is not valid any more. Tell the user; calling again does not help.",
  permission_denied: "The key of this server does not allow this. Tell the user; calling again does not help.",
  resource_exhausted:
    "Destroy a sandbox that is not needed any more (list_sandboxes, destroy_sandbox), or ask for less.",
  unavailable: "Try again in a moment.",
  conflict: "Look at the current state and try again.",
  deadline_exceeded: "Try again, or with a longer timeout.",
};

/** More precise than what its code says. */
const adviceByReason: Readonly<Record<string, string>> = {
  no_such_file: "list_directory shows what is there.",
  no_such_checkpoint: "list_checkpoints shows those there are.",
};

/** A failure as an answer that a model reads: what happened, and what to do next. */
export function toolError(thrown: unknown, note?: string): CallToolResult {
  const error = SandboxError.from(thrown);
  const next = note ?? adviceByReason[error.reason] ?? advice[error.code];
  const lines = [`${sentence(error.message)} (${error.code}: ${error.reason})`];
  if (error.hint !== undefined) lines.push(sentence(error.hint));
  if (next !== undefined) lines.push(next);
  return { isError: true, content: [{ type: "text", text: lines.join("\n") }] };
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
