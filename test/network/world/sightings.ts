import type { Socket } from "node:net";

/** A connection that reached a server of the tests' internet. */
export interface Sighting {
  /** The address and port that it reached. */
  readonly address: string;
  readonly port: number;
  readonly peer: string;
}

const MAX_KEPT = 50_000;

/** Every connection that reached a server, so that a test can show that none reached a forbidden address. */
export class Sightings {
  readonly #all: Sighting[] = [];

  note = (socket: Socket): void => {
    if (this.#all.length >= MAX_KEPT) this.#all.shift();
    const address = (socket.localAddress ?? "").replace(/^::ffff:/, "");
    this.#all.push({ address, port: socket.localPort ?? 0, peer: socket.remoteAddress ?? "" });
  };

  get all(): readonly Sighting[] {
    return this.#all;
  }
}
