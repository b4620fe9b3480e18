import { once } from "node:events";
import { connect } from "node:net";
import { SandboxError } from "@sandpiper/core";
import type { Handlers, MockAgent } from "./agent.ts";
import type { MockCall } from "./call.ts";
import { Notifier } from "./notifier.ts";

/** The echo service of every mock. */
const ECHO_PORT = 7;
/** A file here, named like a port, holds the port of the host's loopback at which a test serves that port. */
const PORTS = "/ports";

/** The services of a mock: an echo, and servers of the test. */
export const portHandlers: Handlers = {
  "port.list": (agent) => ({ ports: listening(agent) }),

  async "port.watch"(agent, { window }, call) {
    call.grant(window);
    const changed = new Notifier();
    const onChange = () => changed.notify();
    agent.files.listeners.add(onChange);
    try {
      let known: readonly Port[] = [];
      for (let isFirst = true; ; isFirst = false) {
        const now = listening(agent);
        for (const port of now) if (!includes(known, port)) await call.sendLine({ kind: "opened", ...port });
        for (const port of known) if (!includes(now, port)) await call.sendLine({ kind: "closed", ...port });
        known = now;
        if (isFirst) await call.sendLine({ kind: "ready" });
        await call.wait(changed);
      }
    } finally {
      agent.files.listeners.delete(onChange);
    }
  },

  async "port.dial"(agent, { port, path, window }, call) {
    const hostPort = `${PORTS}/${port}`;
    if (port !== ECHO_PORT && (port === undefined || !agent.files.has(hostPort))) {
      throw new SandboxError("connection_refused", { message: `nothing listens on ${port ?? path}` });
    }
    call.grant(window);
    if (port !== ECHO_PORT) return await bridge(call, Number(new TextDecoder().decode(agent.files.read(hostPort))));
    let bytes = 0;
    for await (const chunk of call.uploads()) {
      bytes += chunk.length;
      await call.sendAll(chunk);
    }
    call.sendEnd();
    return { sent: bytes, received: bytes };
  },
};

interface Port {
  readonly port: number;
  readonly address: string;
  readonly pid: number;
  readonly program: string;
}

function listening({ files }: MockAgent): readonly Port[] {
  const names = files.has(PORTS) ? files.list(PORTS, 1).map(({ path }) => path.split("/").pop()) : [];
  const ports = [ECHO_PORT, ...names.map(Number)].filter((port) => port > 0);
  return ports.map((port) => ({
    port,
    address: "127.0.0.1",
    pid: 1,
    program: port === ECHO_PORT ? "echo" : "server",
  }));
}

function includes(ports: readonly Port[], { port }: Port): boolean {
  return ports.some((other) => other.port === port);
}

/** Copies both directions to a server of the test; each can end alone. */
async function bridge(call: MockCall, port: number): Promise<object> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  call.canceled.signal.addEventListener("abort", () => socket.resetAndDestroy(), { once: true });
  await once(socket, "connect").catch(() => {
    throw new SandboxError("connection_refused", { message: `nothing listens on ${port}` });
  });
  const upload = async () => {
    for await (const chunk of call.uploads()) if (!socket.write(chunk)) await once(socket, "drain");
    socket.end();
  };
  const download = async () => {
    for await (const chunk of socket) await call.sendAll(chunk);
    call.sendEnd();
  };
  await Promise.all([upload(), download()]);
  return { sent: socket.bytesWritten, received: socket.bytesRead };
}
