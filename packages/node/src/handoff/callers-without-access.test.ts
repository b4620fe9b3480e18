import { rejection } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import type { Principal } from "../auth/principal.ts";
import { LEASE_MS, owner, ShakyStore, startShakyNode } from "./testing/shaky-node.ts";

function start(shared: ShakyStore, name: string) {
  const node = startShakyNode(shared, name, new MockProvider({ clock: shared.clock }));
  node.handoffs?.open();
  return node;
}

const strangers: readonly Principal[] = [
  { ...owner, keyId: "other", tenant: "others" },
  { kind: "sandbox", sandboxId: createSandboxId(), tenant: "" },
];

async function twoNodes() {
  const shared = new ShakyStore();
  const stack = new AsyncDisposableStack();
  const [a, b] = [stack.use(start(shared, "a")), stack.use(start(shared, "b"))];
  const { id } = await a.sandboxes.create(owner, { provider: "mock" });
  await a.checkpoints.create(owner, id, {});
  return { shared, a, b, id, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

type Bed = Awaited<ReturnType<typeof twoNodes>>;

/** What has become of the sandbox, and the node that is then asked for it. */
const cases: readonly (readonly [string, (bed: Bed) => Promise<Bed["b"]>])[] = [
  ["runs on another node", async ({ b }) => b],
  [
    "was given up",
    async ({ a, b }) => {
      await a.handoffs?.drain(new AbortController().signal);
      return b;
    },
  ],
  [
    "has lost its node",
    async ({ a, b, shared }) => {
      a.leases.dispose();
      await shared.clock.advance(2 * LEASE_MS);
      return b;
    },
  ],
  [
    "was found stopped by its node",
    async ({ a, id }) => {
      const { sandbox } = a.registry.instance(id);
      a.registry.detach(id);
      await sandbox.destroy();
      a.records.change(id, { state: "stopped" });
      return a;
    },
  ],
];

describe("a sandbox that is asked for by somebody whom it does not belong to", () => {
  it.each(cases)("and %s is neither moved nor restored before they are refused", async (_, happen) => {
    await using bed = await twoNodes();
    const { shared, a, b, id } = bed;
    const asked = await happen(bed);
    const whole = async () => ({
      lock: Buffer.from((await shared.store.get(`locks/${id}.lock`))?.bytes ?? []).toString(),
      instances: [await a.instances(), await b.instances()],
      states: [a, b].map(({ records }) => records.get(id)?.state),
    });
    const before = await whole();
    for (const stranger of strangers) {
      const onWaiting = () => expect.unreachable("it is being restored");
      const refused = asked.locator.bring(stranger, id, { takeover: true, onWaiting });
      expect(await rejection(refused)).toMatchObject({ code: "not_found", reason: "no_such_sandbox" });
      await asked.locator.claim(stranger, id, { purpose: "use", readOnly: true });
      expect(await whole()).toEqual(before);
    }
  });
});
