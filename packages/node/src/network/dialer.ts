import { connect, isIPv6, type Socket } from "node:net";
import type { Clock } from "@sandpiper/core";

export interface DialOptions {
  /** Checked addresses, the preferred first. */
  readonly addresses: readonly string[];
  readonly port: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export type DialFailure = "connect_failed" | "connect_timeout";

const CONNECT_TIMEOUT_MS = 15_000;
/** As RFC 8305 recommends. */
const NEXT_ATTEMPT_MS = 250;
const KEEP_ALIVE_MS = 60_000;

/** Thrown when no address could be connected to. */
export class DialError extends Error {
  readonly reason: DialFailure;

  constructor(reason: DialFailure, options?: ErrorOptions) {
    super(`the connection could not be opened: ${reason}`, options);
    this.reason = reason;
  }
}

/** Connects to exactly one of the addresses: tries the next when one fails or takes long, and keeps the first that answers. */
export function dial({ addresses, port, clock, signal }: DialOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const waiting = [...addresses];
    const attempts = new Set<Socket>();
    let stopStagger = () => {};
    let lastError: unknown;
    const settle = (work: () => void, keep?: Socket) => {
      stopStagger();
      stopTimeout();
      signal.removeEventListener("abort", onAbort);
      for (const socket of attempts) if (socket !== keep) socket.destroy();
      work();
    };
    const fail = (reason: DialFailure) => settle(() => reject(new DialError(reason, { cause: lastError })));
    const onAbort = () => settle(() => reject(signal.reason));
    const stopTimeout = clock.schedule(CONNECT_TIMEOUT_MS, () => fail("connect_timeout"));
    const next = () => {
      stopStagger();
      const address = waiting.shift();
      if (address === undefined) {
        if (attempts.size === 0) fail("connect_failed");
        return;
      }
      const socket = open(address, port);
      attempts.add(socket);
      const onError = (error: Error) => {
        lastError = error;
        attempts.delete(socket);
        next();
      };
      socket.once("connect", () => {
        socket.off("error", onError);
        settle(() => resolve(socket), socket);
      });
      socket.once("error", onError);
      if (waiting.length > 0) stopStagger = clock.schedule(NEXT_ATTEMPT_MS, next);
    };
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort);
    next();
  });
}

function open(address: string, port: number): Socket {
  const socket = connect({
    // An address is never looked up, so this is the one that was checked.
    host: address,
    port,
    family: isIPv6(address) ? 6 : 4,
    autoSelectFamily: false,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  });
  // A loser of the race may fail while it is being destroyed.
  socket.on("error", () => {});
  return socket;
}
