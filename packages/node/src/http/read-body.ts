import { SandboxError } from "@sandpiper/core";
import type { z } from "zod";
import { parseInput } from "./parse-input.ts";

const MAX_DEPTH = 64;
const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** Reads a JSON body by a schema, and no more of it than is allowed. */
export async function readJsonBody(
  schema: z.ZodType,
  request: Request,
  options: { readonly limitBytes: number },
): Promise<unknown> {
  return parseInput(schema, await readJson(request, options), "body");
}

/** Whatever JSON it is. */
export async function readJson(request: Request, options: { readonly limitBytes: number }): Promise<unknown> {
  const type = request.headers.get("content-type");
  const bytes = await readWholeBody(request, options);
  if (bytes.length > 0 && !JSON_TYPE.test(type ?? "")) throw notJson(type);
  const value = parseJson(bytes);
  requireShallow(value);
  return value;
}

/** The body's bytes, when there are not too many. */
export async function readWholeBody(
  request: Request,
  { limitBytes }: { readonly limitBytes: number },
): Promise<Uint8Array> {
  const length = lengthOf(request);
  if (length !== undefined && length > limitBytes) throw bodyTooLarge(limitBytes);
  try {
    // With a length, the server reads exactly that much.
    if (length !== undefined) return new Uint8Array(await request.arrayBuffer());
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const piece of request.body ?? []) {
      size += piece.length;
      if (size > limitBytes) throw bodyTooLarge(limitBytes);
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  } catch (thrown) {
    throw thrown instanceof SandboxError ? thrown : callerLeft(thrown);
  }
}

/** As the caller announced it; undefined when the end tells. */
export function lengthOf(request: Request): number | undefined {
  const text = request.headers.get("content-length");
  return text === null ? undefined : Number(text);
}

/** Why a body ends before its end. */
export function callerLeft(cause?: unknown): SandboxError {
  const message = "the caller left before the end of the request's body";
  return new SandboxError("canceled", { reason: "aborted", message, cause });
}

export function bodyTooLarge(limitBytes: number): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "body_too_large",
    message: `the body of the request is larger than ${limitBytes} bytes`,
    hint: "send less at once",
    details: { limitBytes },
  });
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return bytes.length === 0 ? {} : JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (thrown) {
    throw new SandboxError("invalid_argument", {
      reason: "malformed_json",
      message: `the body of the request is no JSON: ${(thrown as Error).message}`,
      hint: "send one JSON object in UTF-8",
    });
  }
}

/** Everything that reads a body after this does so by calling itself. */
function requireShallow(body: unknown): void {
  let level: unknown[] = [body];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw tooDeep();
    level = level.flatMap((value) => (typeof value === "object" && value !== null ? Object.values(value) : []));
  }
}

function tooDeep(): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "body_too_deep",
    message: `the body of the request is nested more than ${MAX_DEPTH} levels deep`,
    hint: "send something flatter, or as a text",
    details: { maxDepth: MAX_DEPTH },
  });
}

function notJson(type: string | null): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "unsupported_media_type",
    message: `the body of the request is ${type === null ? "of no type" : `of the type ${type.slice(0, 128)}`}`,
    hint: "send JSON, with the header Content-Type: application/json",
  });
}
