import { SandboxError } from "@sandpiper/core";

export interface ByteRange {
  readonly offset: number;
  readonly lengthBytes: number;
}

interface RangeRequest {
  /** The Range header. */
  readonly header: string | null;
  readonly offset?: number | undefined;
  readonly lengthBytes?: number | undefined;
}

const ONE_RANGE = /^bytes=(\d{0,15})-(\d{0,15})$/;

/**
 * Which bytes of a file are asked for; undefined: all of it. A range that holds no byte cannot be given. Headers that
 * ask for several ranges, or for units other than bytes, are not heeded, as HTTP allows.
 */
export function byteRange(asked: RangeRequest, sizeBytes: number): ByteRange | undefined {
  const { header, offset, lengthBytes } = asked;
  const isInQuery = (offset ?? 0) > 0 || lengthBytes !== undefined;
  if (isInQuery && header !== null) throw askedTwice();
  if (isInQuery) return clamp(offset ?? 0, lengthBytes ?? sizeBytes, sizeBytes);
  const [, first, last] = ONE_RANGE.exec(header ?? "") ?? [];
  if (first === undefined || last === undefined || (first === "" && last === "")) return undefined;
  if (first === "") return clamp(Math.max(0, sizeBytes - Number(last)), Number(last), sizeBytes);
  if (last === "") return clamp(Number(first), sizeBytes, sizeBytes);
  return Number(last) < Number(first) ? undefined : clamp(Number(first), Number(last) - Number(first) + 1, sizeBytes);
}

function clamp(offset: number, wanted: number, sizeBytes: number): ByteRange {
  const lengthBytes = Math.min(wanted, sizeBytes - offset);
  if (lengthBytes > 0) return { offset, lengthBytes };
  throw new SandboxError("invalid_argument", {
    reason: "range_not_satisfiable",
    message: `there are no bytes to read from ${offset} on: the file has ${sizeBytes}`,
    hint: "ask for a range inside the file",
    details: { sizeBytes },
  });
}

function askedTwice(): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "invalid_query",
    message: "a range was asked for both in the query and in the Range header",
    hint: "use one of them",
  });
}
