import type { Clock } from "@sandpiper/core";
import type { MessageSocket } from "./message-socket.ts";

const INTERVAL_MS = 20_000;

export interface HeartbeatOptions {
  readonly clock: Clock;
}

/** Asks a client again and again whether it is there, and ends the connection of one that does not answer. */
export function startHeartbeat(socket: MessageSocket, { clock }: HeartbeatOptions): void {
  let stop = () => {};
  const beat = () => {
    if (!socket.beat()) {
      socket.terminate();
      return;
    }
    stop = clock.schedule(INTERVAL_MS, beat);
  };
  stop = clock.schedule(INTERVAL_MS, beat);
  socket.closed.then(() => stop());
}
