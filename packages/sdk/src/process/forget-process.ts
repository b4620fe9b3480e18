import type { SandboxLink } from "../sandbox-link.ts";
import type { OpenMessage, SocketStream } from "../socket/socket-stream.ts";

/**
 * Has the node drop what it keeps of a process that has ended. Its own stream, opened once everything has arrived: had the
 * first stream asked for it, a connection lost with the last message would leave nothing to ask again.
 */
export function forgetProcess(link: SandboxLink, process: string): void {
  const stream: SocketStream = {
    openMessage(number): OpenMessage {
      return { type: "open", stream: number, kind: "forget", sandbox: link.id, process };
    },
    opened() {},
    end: () => link.forgotten.delete(process),
    fail: () => link.forgotten.delete(process),
  };
  link.forgotten.add(process);
  link.connection.open(stream, { isUrgent: false });
}
