import type { Clock } from "@sandpiper/core";
import type { MessageSocket } from "./message-socket.ts";

const INTERVAL_MS = 20_000;

export interface HeartbeatOptions {
  readonly clock: Clock;
  /** Throws when the client may not be here any more: its key was revoked, or has expired. */
  readonly stillAllowed: () => void;
  readonly expired: (thrown: unknown) => void;
}

/** Asks a client again and again whether it is there, and ends the connection of one that does not answer. */
export function startHeartbeat(socket: MessageSocket, { clock, stillAllowed, expired }: HeartbeatOptions): void {
  let stop = () => {};
  const beat = () => {
    if (!socket.beat()) {
      socket.terminate();
      return;
    }
    try {
      stillAllowed();
    } catch (thrown) {
      expired(thrown);
      return;
    }
    stop = clock.schedule(INTERVAL_MS, beat);
  };
  stop = clock.schedule(INTERVAL_MS, beat);
  socket.closed.then(() => stop());
}
