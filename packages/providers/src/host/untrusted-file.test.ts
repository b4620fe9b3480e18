import { constants } from "node:fs";
import { link, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { lastOutput } from "./emulator-start.ts";
import { freshDirectory } from "./testing/shared.ts";
import { openUntrusted } from "./untrusted-file.ts";

const directory = freshDirectory("untrusted");
const at = (name: string) => join(directory, name);
const refused = (name: string) => expect(openUntrusted(at(name), constants.O_RDWR)).rejects;

describe("openUntrusted", () => {
  it("opens regular files, and neither links nor anything else", async () => {
    await writeFile(at("secret"), "secret");
    await symlink(at("secret"), at("symbolic"));
    await refused("symbolic").toMatchObject({ code: "ELOOP" });
    await link(at("secret"), at("hard"));
    await refused("hard").toThrow("hard link");
    await expect(openUntrusted(directory, constants.O_RDONLY)).rejects.toThrow("not a regular file");
    await writeFile(at("plain"), "plain");
    await using file = await openUntrusted(at("plain"), constants.O_RDONLY);
    expect(await file.readFile("utf8")).toBe("plain");
  });
});

describe("lastOutput", () => {
  it("never contains another file than the log", async () => {
    await writeFile(at("target"), "host secret");
    await symlink(at("target"), at("linked.log"));
    await writeFile(at("console.log"), "panic\n");
    expect(await lastOutput([at("linked.log"), at("missing.log"), at("console.log")])).toBe("panic");
  });

  it("ends with the end of a long log, without the hole of a truncated one", async () => {
    await writeFile(at("long.log"), `${"\0".repeat(5000)}${"x".repeat(3000)}end`);
    const text = await lastOutput([at("long.log")]);
    expect(text).toMatch(/^x+end$/);
    expect(text.length).toBe(2000);
  });
});
