import { SandboxError } from "@sandpiper/core";
import { resumeQuerySchema } from "@sandpiper/protocol";
import type { OutputPosition } from "./output-position.ts";

/** Where a client continues an execution. */
export interface Resume {
  readonly execution: string;
  readonly position: OutputPosition;
  /** The history that the position belongs to. */
  readonly rollbacks: number;
}

const CURSOR =
  /^(\d{1,15})(~r\d{1,9})?(~stdout\.\d{1,15}\.(?:[0-9a-f]{2}){1,3})?(~stderr\.\d{1,15}\.(?:[0-9a-f]{2}){1,3})?$/;

/** The `next` of an event: all that any node needs to continue, because another one may have to. */
export function formatCursor({ offset, held }: OutputPosition, rollbacks: number): string {
  const parts = (["stdout", "stderr"] as const).map((source) => {
    const left = held[source];
    return left === undefined ? "" : `~${source}.${left.at}.${Buffer.from(left.bytes).toString("hex")}`;
  });
  return [offset, rollbacks === 0 ? "" : `~r${rollbacks}`, ...parts].join("");
}

/** Undefined unless the query of `/attach/<id>` names an execution. */
export function parseResume(query: URLSearchParams): Resume | undefined {
  if (!query.has("execution") && !query.has("offset")) return undefined;
  const parsed = resumeQuerySchema.safeParse({
    execution: query.get("execution"),
    offset: query.get("offset") ?? "0",
  });
  const match = parsed.success ? CURSOR.exec(parsed.data.offset) : null;
  if (!parsed.success || match === null) throw invalid();
  const [, offset, rollbacks, stdout, stderr] = match;
  return {
    execution: parsed.data.execution,
    position: { offset: Number(offset), held: { stdout: parseHeld(stdout), stderr: parseHeld(stderr) } },
    rollbacks: Number(rollbacks?.slice(2) ?? 0),
  };
}

function parseHeld(text: string | undefined): OutputPosition["held"]["stdout"] {
  if (text === undefined) return undefined;
  const [, at, hex = ""] = text.split(".");
  return { at: Number(at), bytes: Buffer.from(hex, "hex") };
}

function invalid(): SandboxError {
  return new SandboxError("invalid_query", {
    message: "the query of /attach is invalid: it does not name an execution and an offset",
    hint: "pass the execution of an event, and its next as offset, unchanged but URL-encoded",
  });
}
