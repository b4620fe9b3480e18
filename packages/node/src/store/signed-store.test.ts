import { FakeClock, MemoryStore, rejection } from "@sandpiper/core/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { Keyring } from "../auth/keyring.ts";
import { SignedStore } from "./signed-store.ts";

const ring = (...secrets: [string, ...string[]]) => new Keyring({ secrets, salt: "a-cluster" });
const text = (content: string) => Buffer.from(content);
const clock = new FakeClock();

describe("a control object", () => {
  let raw: MemoryStore;
  const open = (...secrets: [string, ...string[]]) => new SignedStore({ store: raw, keyring: ring(...secrets), clock });
  const rawBytes = async (key: string) => (await raw.get(key))?.bytes ?? new Uint8Array();
  const read = async (store: SignedStore, key: string) => Buffer.from((await store.get(key))?.bytes ?? []).toString();

  beforeEach(() => {
    raw = new MemoryStore();
  });

  it("is read by every node with the secret, and its size is that of its content", async () => {
    await open("secret").put("keys.json", text("{}"));
    const other = open("secret");
    expect(await read(other, "keys.json")).toBe("{}");
    expect(await other.head("keys.json")).toMatchObject({ size: 2 });
    expect(await Array.fromAsync(other.list("keys"), ({ size }) => size)).toEqual([2]);
  });

  it("is refused without a signature, with a changed byte, under another key, and with an unknown secret", async () => {
    const store = open("secret");
    const signed = async (key: string) => {
      await open("secret").put(key, text('{"owner":"a"}'));
      return await rawBytes(key);
    };
    const good = await signed("locks/one.lock");
    await signed("nodes/a.json");
    const forgeries: [string, Uint8Array][] = [
      ["locks/two.lock", good],
      ["locks/three.lock", text('{"owner":"a"}')],
      ["locks/four.lock", new Uint8Array()],
      ["quotas/five.json", good.map((byte, index) => (index === 3 ? byte ^ 1 : byte))],
      ["nodes/six.json", good.subarray(0, -1)],
    ];
    for (const [key, bytes] of forgeries) {
      await raw.put(key, bytes);
      const tag = (await raw.head(key))?.tag;
      expect(await rejection(store.get(key)), key).toMatchObject({
        code: "data_loss",
        reason: "object_forged",
        details: { key, tag },
      });
    }
    expect(await rejection(open("another").get("locks/one.lock"))).toMatchObject({ reason: "object_forged" });
    expect(await read(store, "locks/one.lock")).toBe('{"owner":"a"}');
  });

  it("is refused when it is older than a version that the node has read, written or deleted", async () => {
    const [writer, reader, fresh] = [open("secret"), open("secret"), open("secret")];
    await writer.put("keys.json", text("1"));
    const old = await rawBytes("keys.json");
    await writer.put("keys.json", text("2"));
    await reader.get("keys.json");
    const newest = await rawBytes("keys.json");
    await raw.put("keys.json", old);
    for (const store of [writer, reader]) {
      expect(await rejection(store.get("keys.json"))).toMatchObject({ code: "data_loss", reason: "object_replayed" });
    }
    expect(await read(fresh, "keys.json"), "a node that has seen nothing").toBe("1");
    await raw.put("keys.json", newest);
    await writer.delete("keys.json");
    await raw.put("keys.json", newest);
    expect(await rejection(writer.get("keys.json"))).toMatchObject({ reason: "object_replayed" });
    await writer.put("keys.json", text("3"));
    expect(await read(reader, "keys.json")).toBe("3");
  });

  it("is read with an accepted secret, and written with the current one, during a replacement", async () => {
    await open("old").put("keys.json", text("1"));
    const [behind, ahead] = [open("old", "new"), open("new", "old")];
    expect(await read(ahead, "keys.json")).toBe("1");
    await ahead.put("keys.json", text("2"));
    expect(await read(behind, "keys.json")).toBe("2");
    expect(await read(open("new"), "keys.json")).toBe("2");
  });

  it("leaves other objects unchanged", async () => {
    await open("secret").put("chunks/ab/cd", text("x"));
    expect(Buffer.from(await rawBytes("chunks/ab/cd")).toString()).toBe("x");
  });
});
