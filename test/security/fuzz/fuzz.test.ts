import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FuzzNode } from "./fuzz-node.ts";
import { fuzzInterface, interfaces } from "./interfaces.ts";

/** `npm run fuzz` sends 10,000 to each, with a new seed. */
const INPUTS = 100;
const SEED = 18;

describe("a node that receives malformed input", () => {
  let node: FuzzNode;
  beforeAll(async () => {
    node = await FuzzNode.start();
  });
  afterAll(() => node[Symbol.asyncDispose]());

  it.each(interfaces)("refuses it with a documented error, holds nothing of it, and continues: %s", async (name) => {
    const { outcomes } = await fuzzInterface(name, node, { inputs: INPUTS, seed: SEED });
    expect(Object.keys(outcomes).length).toBeGreaterThan(1);
  });
});
