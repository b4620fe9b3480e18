import { usageError } from "../command/usage-error.ts";

/** A TCP port that an operand names. */
export function parsePort(text: string, { allowsZero = false } = {}): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : -1;
  if (port >= (allowsZero ? 0 : 1) && port <= 65_535) return port;
  throw usageError(`${JSON.stringify(text)} is not a port`, "use a number from 1 to 65535");
}
