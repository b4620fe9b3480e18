import { createSocket } from "node:dgram";
import { once } from "node:events";
import { ports } from "./addresses.ts";

/** Answers UDP at the ports where a test may send some: an escape would be seen by its answer. */
export async function serveDatagrams(): Promise<void> {
  for (const port of [ports.echo, ports.https]) {
    const socket = createSocket("udp6");
    socket.on("message", (_, { address, port: from }) => socket.send("reached over UDP", from, address));
    socket.bind(port, "::");
    await once(socket, "listening");
  }
}
