import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type ListenOptions } from "node:net";
import { HOST_PORT, HOST_SOCKET } from "./attempt.ts";

let visits = 0;

const places: readonly ListenOptions[] = [{ port: HOST_PORT, host: "::" }, { path: `\0${HOST_SOCKET}` }];
for (const place of places) {
  const server = createServer((socket) => {
    visits++;
    socket.on("error", () => undefined).end("HTTP/1.1 200 OK\r\n\r\nreached the host\n");
  });
  server.listen(place);
  await once(server, "listening");
}
const datagrams = createSocket("udp6");
datagrams.on("message", (_, { address, port }) => {
  visits++;
  datagrams.send("reached the host over UDP", port, address);
});
datagrams.bind(HOST_PORT, "::");
await once(datagrams, "listening");
process.send?.("ready");
process.on("message", () => process.send?.(visits));
process.on("disconnect", () => process.exit(0));
