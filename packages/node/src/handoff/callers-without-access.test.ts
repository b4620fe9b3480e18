import { rejection } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import type { Principal } from "../auth/principal.ts";
import { LEASE_MS, owner, ShakyStore, startShakyNode } from "./testing/shaky-node.ts";

const start = (shared: ShakyStore, name: string) =>
  startShakyNode(shared, name, new MockProvider({ clock: shared.clock }));

const outsiders: readonly Principal[] = [
  { ...owner, keyId: "other", tenant: "others" },
  { kind: "sandbox", sandboxId: createSandboxId(), keyId: "", tenant: "" },
];

async function twoNodes() {
  const shared = new ShakyStore();
  const [a, b] = [start(shared, "a"), start(shared, "b")];
  const { id } = await a.sandboxes.create(owner, { provider: "mock" });
  await a.checkpoints.create(owner, id, {});
  return { shared, a, b, id };
}

type TwoNodes = Awaited<ReturnType<typeof twoNodes>>;

/** Brings the sandbox into a state, and resolves to the node that then receives the requests. */
const cases: readonly (readonly [string, (nodes: TwoNodes) => Promise<TwoNodes["b"]>])[] = [
  ["runs on another node", async ({ b }) => b],
  [
    "is at rest",
    async ({ a, b }) => {
      await a.handoffs?.drain(new AbortController().signal);
      return b;
    },
  ],
  [
    "has a dead owner",
    async ({ a, b, shared }) => {
      a.leases.dispose();
      await shared.clock.advance(2 * LEASE_MS);
      return b;
    },
  ],
  [
    "was stopped by its node",
    async ({ a, id }) => {
      const { sandbox } = a.registry.instance(id);
      a.registry.detach(id);
      await sandbox.destroy();
      a.records.change(id, { state: "stopped" });
      return a;
    },
  ],
];

describe("a caller without access to a sandbox", () => {
  it.each(cases)("that %s is refused before the sandbox is moved or restored", async (_, arrange) => {
    const nodes = await twoNodes();
    const { shared, a, b, id } = nodes;
    const { locator } = await arrange(nodes);
    const snapshot = async () => ({
      lock: Buffer.from((await shared.store.get(`locks/${id}.lock`))?.bytes ?? []).toString(),
      instances: [await a.instances(), await b.instances()],
      states: [a, b].map(({ records }) => records.get(id)?.state),
    });
    const before = await snapshot();
    for (const outsider of outsiders) {
      const onWaiting = () => expect.unreachable("it is being restored");
      const refused = locator.bring(outsider, id, { takeover: true, onWaiting });
      expect(await rejection(refused)).toMatchObject({ code: "not_found", reason: "no_such_sandbox" });
      await locator.claim(outsider, id, { purpose: "use", readOnly: true });
      expect(await snapshot()).toEqual(before);
    }
  });
});
