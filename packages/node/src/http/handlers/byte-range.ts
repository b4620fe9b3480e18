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
 * The requested range of a file; undefined means the whole file. An empty range is an error. Headers with several
 * ranges or other units than bytes are ignored, as HTTP allows.
 */
export function byteRange(request: RangeRequest, sizeBytes: number): ByteRange | undefined {
  const { header, offset, lengthBytes } = request;
  const isInQuery = (offset ?? 0) > 0 || lengthBytes !== undefined;
  if (isInQuery && header !== null) throw twoRanges();
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
  throw new SandboxError("range_not_satisfiable", {
    message: `no bytes at offset ${offset}: the file has ${sizeBytes} bytes`,
    details: { sizeBytes },
  });
}

function twoRanges(): SandboxError {
  return new SandboxError("invalid_query", {
    message: "the request has a range both in the query and in the Range header",
    hint: "use one of them",
  });
}
