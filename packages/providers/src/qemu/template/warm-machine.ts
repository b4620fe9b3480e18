import type { Socket } from "node:net";
import { AgentClient, type Channel, type ChannelReceiver, exec } from "@sandpiper/core";
import { writePieces } from "../../host/write-pieces.ts";

/**
 * Runs commands in a guest so that its code is translated, and quiesces its agent. The socket can then be used like a
 * new one.
 */
export async function warmMachine(agent: Socket, signal: AbortSignal): Promise<void> {
  const connected = { channel: new LentChannel(agent), needsResync: false };
  const client = await AgentClient.open(connected, { signal });
  try {
    // Both ways to run a command.
    await exec(client, { argv: ["true"] });
    await client.exec("true");
    await exec(client, { argv: ["true"] });
    await client.quiesce({ signal });
  } finally {
    client.close();
  }
}

/** A channel that leaves its socket open when it closes. */
class LentChannel implements Channel {
  readonly #socket: Socket;
  #receiver: ChannelReceiver | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  open(receiver: ChannelReceiver): void {
    this.#receiver = receiver;
    this.#socket.on("data", this.#receive);
    this.#socket.on("close", this.#lose);
    this.#socket.resume();
  }

  write(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    return writePieces(this.#socket, pieces);
  }

  close(): void {
    this.#end(undefined);
  }

  readonly #receive = (chunk: Uint8Array): void => this.#receiver?.data(chunk);
  readonly #lose = (): void => this.#end(new Error("the machine has ended"));

  #end(cause: Error | undefined): void {
    this.#socket.off("data", this.#receive);
    this.#socket.off("close", this.#lose);
    this.#socket.pause();
    const receiver = this.#receiver;
    this.#receiver = undefined;
    receiver?.closed(cause);
  }
}
