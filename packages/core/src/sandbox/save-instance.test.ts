import { settle } from "@sandpiper/protocol/testing";
import { expect, it } from "vitest";
import { openTunnel } from "../agent/tunnel.ts";
import type { Instance } from "../provider.ts";
import { connectedAgent } from "../testing/scripted-agent.ts";
import { saveInstance } from "./save-instance.ts";

it.each([
  { keepsRunning: false, canceled: 1 },
  { keepsRunning: true, canceled: 0 },
])("ends connections out of the sandbox first only if it does not continue here: $keepsRunning", async (expected) => {
  const { agent, client } = await connectedAgent();
  const opening = openTunnel(client, "net.accept", { flow: 1 }, {});
  await settle();
  agent.credit(agent.sent("net.accept")[0] ?? {}, 1);
  const tunnel = await opening;
  tunnel.closed.catch(() => {});
  for (const method of ["system.quiesce", "system.thaw"]) agent.on(method, ({ message }) => agent.answer(message, {}));
  const instance = { checkpoint: async () => {} } as unknown as Instance;
  await saveInstance(instance, client, { directory: "/", keepsRunning: expected.keepsRunning });
  expect(agent.sent("cancel")).toHaveLength(expected.canceled);
  const methods = agent.received.map(({ message }) => message["method"]);
  expect(methods.indexOf("cancel")).toBeLessThan(methods.indexOf("system.quiesce"));
});
