import type { Socket } from "node:net";
import { SocketChannel } from "../../host/socket-channel.ts";
import { WriteMark } from "../../host/write-mark.ts";

/** A channel over the port of a machine, which is one socket in both directions. Calls `onHeard` for each chunk. */
export function agentChannel(socket: Socket, directory: string, onHeard = () => {}): SocketChannel {
  return new SocketChannel({
    writer: socket,
    mark: new WriteMark(directory),
    startReader: (receive) => {
      socket.on("data", (chunk: Uint8Array) => {
        onHeard();
        receive(chunk);
      });
      // A socket that was read before is paused.
      return socket.resume();
    },
  });
}
