import { describe, expect, it } from "vitest";
import type { GuestFiles } from "./guest.ts";
import { interruptibleFiles } from "./interruptible-files.ts";

const never = new Promise<never>(() => {});

async function* stalled(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("first");
  await never;
}

describe("reading a file", () => {
  it("fails when it is interrupted, even while no bytes arrive", async () => {
    const controller = new AbortController();
    const files = interruptibleFiles({ read: stalled } as unknown as GuestFiles, controller.signal);
    const pieces: string[] = [];
    const reading = (async () => {
      for await (const bytes of files.read("x")) {
        pieces.push(Buffer.from(bytes).toString());
        setImmediate(() => controller.abort());
      }
    })();
    await expect(reading).rejects.toMatchObject({ code: "canceled" });
    expect(pieces).toEqual(["first"]);
  });

  it("reaches the end otherwise", async () => {
    const read = async function* () {
      yield Buffer.from("all");
    };
    const files = interruptibleFiles({ read } as unknown as GuestFiles, new AbortController().signal);
    expect(await Array.fromAsync(files.read("x"))).toEqual([Buffer.from("all")]);
  });
});
