import { settle } from "@sandpiper/core/testing";
import { MockProvider } from "@sandpiper/providers";
import { expect, it, onTestFinished } from "vitest";
import { parseNodeConfig } from "../config/load-node-config.ts";
import type { CheckpointStore } from "../store/checkpoint-store.ts";
import { mockNode } from "../testing/mock-node.ts";
import { startHousekeeping } from "./housekeeping.ts";

it("collects garbage every minute, never twice at the same time", async () => {
  const node = mockNode({ provider: new MockProvider() });
  const runs: PromiseWithResolvers<void>[] = [];
  const collectGarbage = () => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  };
  const housekeeping = startHousekeeping({
    config: parseNodeConfig({ home: node.home }),
    domain: node,
    checkpointStore: { collectGarbage } as unknown as CheckpointStore,
    releases: { prune: async () => [], refresh: async () => {} },
    onError: (error) => node.errors.push(error),
  });
  onTestFinished(() => housekeeping[Symbol.asyncDispose]());
  await expect.poll(() => runs).toHaveLength(1);
  await node.clock.advance(180_000);
  expect(runs).toHaveLength(1);
  runs[0]?.resolve();
  await expect.poll(() => runs).toHaveLength(2);
  runs[1]?.resolve();
  await settle();
  await node.clock.advance(60_000);
  await expect.poll(() => runs).toHaveLength(3);
  runs[2]?.resolve();
  expect(node.errors).toEqual([]);
});
