import type { CallToolResult } from "@modelcontextprotocol/server";
import { type ErrorCode, SandboxError } from "@sandpiper/sdk";

/** The next step for a model, by code. */
const advice: Partial<Record<ErrorCode, string>> = {
  invalid_argument: "Correct the arguments and call again.",
  unauthenticated: "The key of this server is no longer valid. Tell the user; calling again does not help.",
  permission_denied: "The key of this server does not allow this. Tell the user; calling again does not help.",
  resource_exhausted: "Destroy a sandbox that is no longer needed (list_sandboxes, destroy_sandbox), or ask for less.",
  unavailable: "Try again in a moment.",
  conflict: "Read the current state and try again.",
  deadline_exceeded: "Try again, or with a longer timeout.",
};

/** More precise than the advice for the code. */
const adviceByReason: Readonly<Record<string, string>> = {
  no_such_file: "Call list_directory to see the files.",
  no_such_checkpoint: "Call list_checkpoints to see the checkpoints.",
};

/** Converts an error to an answer for a model: what happened, and the next step. */
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
