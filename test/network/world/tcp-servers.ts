import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { ports } from "./addresses.ts";
import type { Sightings } from "./sightings.ts";

const PIECE = Buffer.alloc(256 * 1024, "sandpiper ");

/** Servers of plain TCP protocols. Each stays half-open until it ends its own side. */
export async function serveTcp(sightings: Sightings): Promise<void> {
  await listen(ports.echo, (socket) => socket.pipe(socket), sightings);
  await listen(ports.greeting, greet, sightings);
  await listen(ports.counter, count, sightings);
  await listen(ports.source, send, sightings);
}

function greet(socket: Socket): void {
  socket.write("220 site.example ready\r\n");
  socket.pipe(socket);
}

function count(socket: Socket): void {
  let bytes = 0;
  socket.on("data", (piece) => {
    bytes += piece.length;
  });
  socket.on("end", () => socket.end(`${bytes}\n`));
}

function send(socket: Socket): void {
  socket.once("data", (line) => {
    let left = Number(line.toString());
    const more = (): void => {
      while (left > 0) {
        const piece = left < PIECE.length ? PIECE.subarray(0, left) : PIECE;
        left -= piece.length;
        if (!socket.write(piece)) return;
      }
      socket.end();
    };
    socket.on("drain", more);
    more();
  });
}

async function listen(port: number, serve: (socket: Socket) => void, sightings: Sightings): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    sightings.note(socket);
    serve(socket);
  });
  server.listen(port, "::");
  await once(server, "listening");
  return server;
}
