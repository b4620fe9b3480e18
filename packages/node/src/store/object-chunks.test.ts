import { MemoryStore } from "@sandpiper/core/testing";
import { expect, it } from "vitest";
import { ObjectChunks } from "./object-chunks.ts";

it("looks up one absent chunk in eight after 16 in a row, and every chunk again once one is found", async () => {
  let heads = 0;
  const store = new MemoryStore({
    fault: ({ operation }) => {
      if (operation === "head") heads += 1;
      return undefined;
    },
  });
  const chunks = new ObjectChunks(store);
  const present = hashOf("f");
  await chunks.openSession().put(present, [Uint8Array.of(1)]);

  const session = chunks.openSession();
  for (let n = 0; n < 116; n += 1) expect(await session.find(hashOf(`${n % 10}`))).toBeUndefined();
  expect(heads).toBe(16 + 12);
  heads = 0;
  // The session reports seven of these as absent without a lookup.
  while ((await session.find(present)) === undefined);
  expect(heads).toBe(1);
  for (let n = 0; n < 10; n += 1) expect(await session.find(present)).toMatchObject({ hash: present });
  expect(heads).toBe(11);
});

function hashOf(digit: string): string {
  return digit.repeat(64);
}
