import { SandboxError } from "@sandpiper/core";
import type { z } from "zod";
import type { BodyLimits, BodyMemory } from "./body-limits.ts";
import { parseInput } from "./parse-input.ts";

const MAX_DEPTH = 64;
const JSON_TYPE = /^application\/json\s*(;|$)/i;

export interface ReadBodyOptions {
  readonly limitBytes: number;
  readonly bodies: Pick<BodyLimits, "inTime">;
  /** Reserved for as long as the request needs the body. */
  readonly memory: BodyMemory;
  /** Called with the size of each part before the node keeps it in memory. Throws if a quota is used up. */
  readonly countBody?: ((sizeBytes: number) => void) | undefined;
}

/** Reads a JSON body up to a limit, and checks it. */
export async function readJsonBody(schema: z.ZodType, request: Request, options: ReadBodyOptions): Promise<unknown> {
  return parseInput(schema, await readJson(request, options), "body");
}

export async function readJson(request: Request, options: ReadBodyOptions): Promise<unknown> {
  const type = request.headers.get("content-type");
  const bytes = await readWholeBody(request, options);
  if (bytes.length > 0 && !JSON_TYPE.test(type ?? "")) throw notJson(type);
  const value = parseJson(bytes);
  requireShallow(value);
  return value;
}

/** Reads a body up to a limit. */
async function readWholeBody(request: Request, options: ReadBodyOptions): Promise<Uint8Array> {
  const { limitBytes, bodies, memory, countBody } = options;
  const length = lengthOf(request);
  if (length !== undefined && length > limitBytes) throw bodyTooLarge(limitBytes);
  try {
    if (length === undefined) return await bodies.inTime(readPieces(request, options));
    countBody?.(length);
    memory.add(length);
    // With a Content-Length, the server reads exactly that much.
    return new Uint8Array(await bodies.inTime(request.arrayBuffer()));
  } catch (thrown) {
    throw thrown instanceof SandboxError ? thrown : callerLeft(thrown);
  }
}

async function readPieces(request: Request, { limitBytes, memory, countBody }: ReadBodyOptions): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of request.body ?? []) {
    size += piece.length;
    if (size > limitBytes) throw bodyTooLarge(limitBytes);
    countBody?.(piece.length);
    memory.add(piece.length);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The Content-Length; undefined for a chunked body. */
export function lengthOf(request: Request): number | undefined {
  const text = request.headers.get("content-length");
  return text === null ? undefined : Number(text);
}

export function callerLeft(cause?: unknown): SandboxError {
  const message = "the caller disconnected before the end of the request's body";
  return new SandboxError("aborted", { message, cause });
}

export function bodyTooLarge(limitBytes: number): SandboxError {
  return new SandboxError("body_too_large", {
    message: `the request's body is larger than ${limitBytes} bytes`,
    hint: "send a smaller body",
    details: { limitBytes },
  });
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return bytes.length === 0 ? {} : JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (thrown) {
    throw new SandboxError("malformed_json", {
      message: `the request's body is not valid JSON: ${(thrown as Error).message}`,
    });
  }
}

/** Protects the recursive functions that read the body later from a stack overflow. */
function requireShallow(body: unknown): void {
  let level: unknown[] = [body];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw tooDeep();
    level = level.flatMap((value) => (typeof value === "object" && value !== null ? Object.values(value) : []));
  }
}

function tooDeep(): SandboxError {
  return new SandboxError("body_too_deep", {
    message: `the request's body is nested more than ${MAX_DEPTH} levels deep`,
    details: { maxDepth: MAX_DEPTH },
  });
}

function notJson(type: string | null): SandboxError {
  return new SandboxError("unsupported_media_type", {
    message: `the request's body has ${type === null ? "no content type" : `the content type ${type.slice(0, 128)}`}`,
  });
}
