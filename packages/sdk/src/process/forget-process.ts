import type { SandboxLink } from "../sandbox-link.ts";
import type { OpenMessage, SocketStream } from "../socket/socket-stream.ts";

/**
 * Has the node drop what it keeps of a process that has ended. Its own stream, opened once everything has arrived: had the
 * first stream asked for it, a connection lost with the last message would leave nothing to ask again.
 */
export function forgetProcess(link: SandboxLink, process: string, offset: number): void {
  const stream: SocketStream = {
    openMessage(number): OpenMessage {
      const base = { type: "open", stream: number, kind: "process", sandbox: link.id, process } as const;
      return { ...base, forget: true, offset, window: 1 };
    },
    opened() {},
    end() {},
    fail() {},
  };
  link.connection.open(stream);
}
