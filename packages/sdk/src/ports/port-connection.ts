import { SandboxError } from "@sandpiper/protocol";
import type { SandboxLink } from "../sandbox-link.ts";
import { PortStream, type PortStreamOptions } from "./port-stream.ts";

/** A TCP connection to a port of a sandbox. Each direction ends separately. A lost connection to the node ends both. */
export interface PortConnection extends AsyncIterable<Uint8Array>, AsyncDisposable {
  /** Resolves when the connection has accepted the bytes; they must not change before. */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends the writing direction after all bytes written so far. */
  end(): Promise<void>;
  /** Drops the connection. */
  close(): void;
  /** Resolves when both directions have ended; rejects when the connection broke. */
  readonly closed: Promise<void>;
}

/** Resolves when the server in the sandbox has accepted the connection. */
export async function connectPort(link: SandboxLink, options: PortStreamOptions): Promise<PortConnection> {
  const stream = new PortStream(link, options);
  await stream.ready;
  const close = () =>
    stream.stop(new SandboxError("tunnel_closed", { message: "the connection was closed by its caller" }));
  return {
    write: (bytes) => stream.write(bytes),
    end: () => stream.finish(),
    close,
    closed: stream.closed,
    [Symbol.asyncIterator]: () => stream.read(),
    async [Symbol.asyncDispose]() {
      close();
    },
  };
}
