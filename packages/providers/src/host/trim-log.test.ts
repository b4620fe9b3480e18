import { stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freshDirectory } from "./testing/shared.ts";
import { trimLog } from "./trim-log.ts";

const directory = freshDirectory("trim-log");
const at = (name: string) => join(directory, name);
const sizeOf = async (name: string) => (await stat(at(name))).size;

describe("trimLog", () => {
  it("empties a log of more than a megabyte, and keeps a smaller one", async () => {
    await writeFile(at("large"), Buffer.alloc(2 ** 20 + 4096, "x"));
    await writeFile(at("small"), Buffer.alloc(2 ** 19, "x"));
    await trimLog(at("large"));
    await trimLog(at("small"));
    expect([await sizeOf("large"), await sizeOf("small")]).toEqual([0, 2 ** 19]);
  });

  it("does not follow a link that a compromised emulator put there", async () => {
    await writeFile(at("precious"), Buffer.alloc(2 ** 21, "x"));
    await symlink(at("precious"), at("console.log"));
    await expect(trimLog(at("console.log"))).rejects.toThrow("ELOOP");
    expect(await sizeOf("precious")).toBe(2 ** 21);
  });
});
