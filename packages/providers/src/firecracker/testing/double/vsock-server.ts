import { createServer, type Server, type Socket } from "node:net";

const MAX_COMMAND_BYTES = 32;
/** The first host port that Firecracker uses. */
const FIRST_HOST_PORT = 2 ** 30;

/** `silent`: the guest does not answer, because its driver is not loaded or the device is blocked. */
export type VsockAnswer = "accepted" | "refused" | "silent";

/** Serves the socket of a vsock device; `accept` answers for the guest. */
export function serveVsock(path: string, accept: (port: number, socket: Socket) => VsockAnswer): Promise<Server> {
  let hostPort = FIRST_HOST_PORT;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    let command = "";
    const look = () => {
      for (;;) {
        const byte: Buffer | null = socket.read(1);
        if (byte === null) return;
        command += byte.toString("latin1");
        if (command.length > MAX_COMMAND_BYTES) return socket.destroy();
        if (!command.endsWith("\n")) continue;
        socket.off("readable", look);
        const port = /^CONNECT (\d+)\n$/.exec(command)?.[1];
        if (port === undefined) return socket.destroy();
        socket.pause();
        const answer = accept(Number(port), socket);
        if (answer === "refused") socket.destroy();
        if (answer === "accepted") socket.write(`OK ${hostPort++}\n`);
        return;
      }
    };
    socket.on("readable", look);
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path }, () => resolve(server));
  });
}
