import { rejection } from "@sandpiper/protocol/testing";
import type { ObjectStore } from "../store/object-store.ts";
import { isEqualBytes } from "./contract-sandbox.ts";
import type { TestFramework } from "./provider-contract.ts";

const RIVALS = 20;
const HOSTILE_PATHS = ["", "/", "/etc/x", "..", "a/../b", "../a", "a/..", ".", "a/./b", "a//b", "a/"];
const HOSTILE_CHARACTERS = ["a\0b", "a\\b", "ä", "a\nb", "a%2fb"];

/**
 * The promises of every store, as tests against the real one. Each `open` returns a handle on the same, initially
 * empty, store.
 */
export function describeStore(
  name: string,
  open: () => ObjectStore | Promise<ObjectStore>,
  options: { readonly framework: TestFramework },
): void {
  const { describe, it, beforeAll, expect } = options.framework;

  describe(`store ${name}`, () => {
    let made: ObjectStore | undefined;
    const store = () => made as ObjectStore;
    beforeAll(async () => {
      made = await open();
    });

    it("finds nothing before the first put", async () => {
      expect(await store().get("nothing/here")).toBe(undefined);
      expect(await store().head("nothing/here")).toBe(undefined);
      expect(await keysOf(store(), "nothing/")).toEqual([]);
      expect(await store().delete("nothing/here")).toBe(true);
    });

    it("returns an object with its size and tag, and its time on request", async () => {
      const beganAtMs = Date.now();
      const tag = await store().put("plain/one", text("hello"));
      const object = await store().get("plain/one");
      expect(object).toMatchObject({ key: "plain/one", size: 5, tag });
      expect(decode(object?.bytes)).toBe("hello");
      const head = await store().head("plain/one");
      expect(head).toEqual({ key: "plain/one", size: 5, tag, modifiedAt: head?.modifiedAt });
      // The store's clock may differ from this machine's.
      expect(Math.abs((head?.modifiedAt.getTime() ?? 0) - beganAtMs) < 600_000).toBe(true);
    });

    it("keeps objects of any bytes, empty ones, and a megabyte", async () => {
      const all = Uint8Array.from({ length: 256 }, (_, index) => index);
      const many = Uint8Array.from({ length: 1024 * 1024 }, (_, index) => (index * 31) ^ (index >> 8));
      for (const [index, bytes] of [all, new Uint8Array(0), many].entries()) {
        await store().put(`bytes/${index}`, bytes);
        const object = await store().get(`bytes/${index}`);
        expect(object?.size).toBe(bytes.length);
        expect(object !== undefined && isEqualBytes(object.bytes, bytes)).toBe(true);
      }
    });

    it("refuses to read an object that is larger than nodes write, before it is in memory", async () => {
      await store().put("chunks/00/huge", new Uint8Array(2 * 1024 * 1024 + 1));
      const error = await rejection(store().get("chunks/00/huge"));
      expect([error.reason, error.details["key"]]).toEqual(["object_damaged", "chunks/00/huge"]);
      expect(await store().delete("chunks/00/huge")).toBe(true);
    });

    it("stores only the visible part of a view into a larger buffer", async () => {
      await store().put("bytes/view", text("..view..").subarray(2, 6));
      expect(decode((await store().get("bytes/view"))?.bytes)).toBe("view");
    });

    it("replaces a whole object, even with the same bytes, and changes its tag each time", async () => {
      const tags = [];
      for (const content of ["a longer first version", "second", "second"]) {
        tags.push(await store().put("plain/two", text(content)));
        expect(decode((await store().get("plain/two"))?.bytes)).toBe(content);
      }
      expect(new Set(tags).size).toBe(3);
      expect((await store().head("plain/two"))?.tag).toBe(tags[2]);
    });

    it("deletes an object completely", async () => {
      await store().put("plain/three", text("x"));
      expect(await store().delete("plain/three")).toBe(true);
      expect(await store().get("plain/three")).toBe(undefined);
      expect(await keysOf(store(), "plain/three")).toEqual([]);
      expect(typeof (await store().put("plain/three", text("y"), { ifAbsent: true }))).toBe("string");
    });

    it("creates an object only where none exists", async () => {
      const tag = await store().put("once/one", text("first"), { ifAbsent: true });
      expect(typeof tag).toBe("string");
      expect(await store().put("once/one", text("second"), { ifAbsent: true })).toBe(undefined);
      expect(decode((await store().get("once/one"))?.bytes)).toBe("first");
    });

    it("swaps only an object with the tag, and never with an earlier tag", async () => {
      const first = await put(store(), "swap/one", "A");
      const second = await store().put("swap/one", text("B"), { ifMatch: first });
      expect(typeof second).toBe("string");
      expect(await store().put("swap/one", text("C"), { ifMatch: first })).toBe(undefined);
      await put(store(), "swap/one", "A");
      expect(await store().put("swap/one", text("D"), { ifMatch: first })).toBe(undefined);
      expect(decode((await store().get("swap/one"))?.bytes)).toBe("A");
    });

    it("swaps nothing where no object exists", async () => {
      const tag = await put(store(), "swap/two", "A");
      await store().delete("swap/two");
      expect(await store().put("swap/two", text("B"), { ifMatch: tag })).toBe(undefined);
      expect(await store().put("swap/never", text("B"), { ifMatch: tag })).toBe(undefined);
      expect(await keysOf(store(), "swap/two")).toEqual([]);
    });

    it("deletes by tag only an object with the tag", async () => {
      const first = await put(store(), "swap/three", "A");
      const second = await put(store(), "swap/three", "A");
      expect(await store().delete("swap/three", { ifMatch: first })).toBe(false);
      expect(decode((await store().get("swap/three"))?.bytes)).toBe("A");
      expect(await store().delete("swap/three", { ifMatch: second })).toBe(true);
      expect(await store().delete("swap/three", { ifMatch: second })).toBe(false);
    });

    it(`lets one of ${RIVALS} create an object, each through its own handle`, async () => {
      for (let round = 0; round < 5; round += 1) {
        const key = `race/create-${round}`;
        const outcomes = await race(async (handle, rival) => handle.put(key, text(`${rival}`), { ifAbsent: true }));
        const winner = onlyWinner(outcomes);
        expect(decode((await store().get(key))?.bytes)).toBe(`${winner}`);
      }
    });

    it(`lets one of ${RIVALS} swap an object that all have seen`, async () => {
      for (let round = 0; round < 5; round += 1) {
        const key = `race/swap-${round}`;
        const ifMatch = await put(store(), key, "start");
        const outcomes = await race(async (handle, rival) => handle.put(key, text(`${rival}`), { ifMatch }));
        const winner = onlyWinner(outcomes);
        expect(decode((await store().get(key))?.bytes)).toBe(`${winner}`);
      }
    });

    // A deletion that loses the race may fail or succeed.
    it(`lets either one of ${RIVALS} swap an object that all have seen, or a deletion win`, async () => {
      for (let round = 0; round < 5; round += 1) {
        const key = `race/delete-${round}`;
        const ifMatch = await put(store(), key, "start");
        const outcomes = await race(async (handle, rival) =>
          rival % 2 === 0
            ? (await handle.delete(key, { ifMatch })) || undefined
            : handle.put(key, text(`${rival}`), { ifMatch }),
        );
        const content = decode((await store().get(key))?.bytes);
        const winners = [...outcomes.keys()].filter((rival) => outcomes[rival] !== undefined);
        if (content !== undefined) expect(winners).toEqual([Number(content)]);
        else expect(winners.length > 0 && winners.every((rival) => rival % 2 === 0)).toBe(true);
      }
    });

    it("loses no update when many increment one object", async () => {
      await put(store(), "race/counter", "0");
      await race(async (handle) => {
        for (;;) {
          const object = await handle.get("race/counter");
          if (object === undefined) throw new Error("the counter was missing for a moment");
          const next = text(`${Number(decode(object.bytes)) + 1}`);
          if ((await handle.put("race/counter", next, { ifMatch: object.tag })) !== undefined) return;
        }
      });
      expect(decode((await store().get("race/counter"))?.bytes)).toBe(`${RIVALS}`);
    });

    it("returns only complete versions, never one that was replaced before the read began", async () => {
      await put(store(), "race/reader", "0".repeat(5000));
      const reader = await open();
      let written = 0;
      let isDone = false;
      const writing = (async () => {
        for (let version = 1; version <= 30; version += 1) {
          await put(store(), "race/reader", String(version % 10).repeat(5000 + version));
          written = version;
        }
        isDone = true;
      })();
      while (!isDone) {
        const atLeast = written;
        const object = await reader.get("race/reader");
        const content = decode(object?.bytes) ?? "";
        const version = content.length - 5000;
        expect(content).toBe(String(version % 10).repeat(5000 + version));
        expect(version >= atLeast).toBe(true);
      }
      await writing;
    });

    it("lists all objects with a prefix, at any boundary", async () => {
      for (const key of ["list/a/b", "list/a/c/d", "list/ab", "list/b", "list2/a"]) await put(store(), key, key);
      expect(await keysOf(store(), "list/")).toEqual(["list/a/b", "list/a/c/d", "list/ab", "list/b"]);
      expect(await keysOf(store(), "list/a")).toEqual(["list/a/b", "list/a/c/d", "list/ab"]);
      expect(await keysOf(store(), "list/a/")).toEqual(["list/a/b", "list/a/c/d"]);
      expect(await keysOf(store(), "list")).toEqual(["list/a/b", "list/a/c/d", "list/ab", "list/b", "list2/a"]);
      expect((await keysOf(store(), "")).includes("list/a/c/d")).toBe(true);
    });

    it("lists the same data as head", async () => {
      await put(store(), "list3/one", "12345");
      for await (const info of store().list("list3/")) expect(await store().head("list3/one")).toEqual(info);
      expect(await Array.fromAsync(store().list("list3/"))).toEqual([{ ...(await store().head("list3/one")) }]);
    });

    it("lists more than a page of objects", async () => {
      const keys = Array.from({ length: 1100 }, (_, index) => `pages/${String(index).padStart(4, "0")}`);
      for (let index = 0; index < keys.length; index += 50) {
        await Promise.all(keys.slice(index, index + 50).map((key) => store().put(key, text("x"))));
      }
      expect(await keysOf(store(), "pages/")).toEqual(keys);
    });

    it("refuses names that lead elsewhere, before any effect", async () => {
      const before = await keysOf(store(), "");
      for (const key of [...HOSTILE_PATHS, ...HOSTILE_CHARACTERS, "x".repeat(300), "a/".repeat(600)]) {
        for (const attempt of [
          () => store().get(key),
          () => store().head(key),
          () => store().put(key, text("x")),
          () => store().put(key, text("x"), { ifAbsent: true }),
          () => store().delete(key),
          () => store().delete(key, { ifMatch: "x" }),
        ]) {
          expect(await rejection(attempt()), key).toMatchObject({ code: "invalid_argument", reason: "bad_store_key" });
        }
      }
      for (const prefix of ["/", "../", "a/../", "a//", "\0"]) {
        expect(await rejection(keysOf(store(), prefix)), prefix).toMatchObject({ reason: "bad_store_key" });
      }
      expect(await keysOf(store(), "")).toEqual(before);
    });

    async function race<T>(run: (handle: ObjectStore, rival: number) => Promise<T>): Promise<T[]> {
      const handles = await Promise.all(Array.from({ length: RIVALS }, open));
      return Promise.all(handles.map(run));
    }

    function onlyWinner(outcomes: readonly unknown[]): number {
      const winners = [...outcomes.keys()].filter((rival) => outcomes[rival] !== undefined);
      expect(winners.length).toBe(1);
      return winners[0] ?? -1;
    }
  });
}

async function put(store: ObjectStore, key: string, content: string): Promise<string> {
  const tag = await store.put(key, text(content));
  if (tag === undefined) throw new Error(`an unconditional put of ${key} was refused`);
  return tag;
}

async function keysOf(store: ObjectStore, prefix: string): Promise<string[]> {
  return (await Array.fromAsync(store.list(prefix))).map(({ key }) => key).sort();
}

function text(content: string): Uint8Array {
  return new TextEncoder().encode(content);
}

function decode(bytes: Uint8Array | undefined): string | undefined {
  return bytes && new TextDecoder().decode(bytes);
}
