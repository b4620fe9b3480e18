import type { Socket } from "node:net";
import type { ChannelEnds } from "./socket-channel.ts";
import { WriteMark } from "./write-mark.ts";

/** The ends of a machine's port, which are one socket. */
export function agentChannelEnds(socket: Socket, directory: string): ChannelEnds {
  return {
    writer: socket,
    mark: new WriteMark(directory),
    // It stands still when somebody else has read from it before.
    startReader: (receive) => socket.on("data", receive).resume(),
  };
}
