import { SandboxError } from "@sandpiper/core";
import type { Handlers } from "./agent.ts";
import { Notifier } from "./notifier.ts";

/** Programs of a mock open no connections, so no flow or query ever comes. */
export const networkHandlers: Handlers = {
  async "net.serve"(_agent, { window }, call) {
    call.grant(window);
    await call.sendLine({ kind: "ready", redirected: true });
    await call.wait(new Notifier());
    return {};
  },

  "net.accept"(_agent, { flow }) {
    throw new SandboxError("no_such_flow", { message: `flow ${flow} does not wait` });
  },

  "net.refuse": () => ({}),

  "net.answer": () => ({}),
};
