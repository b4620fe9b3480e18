import type { Socket } from "node:net";
import type { ChannelEnds } from "./socket-channel.ts";
import { WriteMark } from "./write-mark.ts";

/** The two ends of a machine's port, which are one socket. */
export function agentChannelEnds(socket: Socket, directory: string): ChannelEnds {
  return {
    writer: socket,
    mark: new WriteMark(directory),
    // A socket that was read before is paused.
    startReader: (receive) => socket.on("data", receive).resume(),
  };
}
