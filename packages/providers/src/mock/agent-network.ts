import { SandboxError } from "@sandpiper/core";
import type { Handlers } from "./agent.ts";
import { Notifier } from "./notifier.ts";

/** The echo service, the only one in a mock. */
const ECHO_PORT = 7;
const echo = { port: ECHO_PORT, address: "127.0.0.1", pid: 1, program: "echo" };

/** Programs of a mock open no connections, so no flow or query ever comes. */
export const networkHandlers: Handlers = {
  async "net.serve"(_agent, { window }, call) {
    call.grant(window);
    await call.sendLine({ kind: "ready", redirected: false });
    await call.wait(new Notifier());
    return {};
  },

  "net.accept"(_agent, { flow }) {
    throw new SandboxError("no_such_flow", { message: `flow ${flow} does not wait` });
  },

  "net.refuse": () => ({}),

  "net.answer": () => ({}),

  "port.list": () => ({ ports: [echo] }),

  async "port.watch"(_agent, { window }, call) {
    call.grant(window);
    await call.sendLine({ kind: "opened", ...echo });
    await call.sendLine({ kind: "ready" });
    await call.wait(new Notifier());
    return {};
  },

  async "port.dial"(_agent, { port, path, window }, call) {
    if (port !== ECHO_PORT) {
      const message = `nothing listens on ${port ?? path}`;
      throw new SandboxError("connection_refused", { message });
    }
    call.grant(window);
    let bytes = 0;
    for await (const chunk of call.uploads()) {
      bytes += chunk.length;
      await call.sendAll(chunk);
    }
    call.sendEnd();
    return { sent: bytes, received: bytes };
  },
};
