import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findRunsc } from "./find-runsc.ts";
import { runscRelease } from "./runsc-release.ts";
import { freshDirectory, putScript } from "./testing/shared.ts";

const directory = freshDirectory("runsc");

const official = (path: string, version: string) => ({ path, version, build: `release-${version}` });
const fakeRunsc = (path: string, version: string) =>
  putScript(join(directory, path), `echo 'runsc version release-${version}'`);
const environment = (extra: Record<string, string> = {}) => ({
  PATH: join(directory, "bin"),
  XDG_CACHE_HOME: join(directory, "cache"),
  ...extra,
});
const cachedPath = `cache/sandpiper/runsc/${runscRelease.moduleVersion}/runsc`;

describe("findRunsc", () => {
  it("prefers the configured path, then the environment", async () => {
    const configured = await fakeRunsc("configured", "20270101.0");
    const named = await fakeRunsc("named", "20280101.0");
    await fakeRunsc("bin/runsc", "20990101.0");
    const both = environment({ SANDPIPER_RUNSC: named });
    expect(await findRunsc(configured, both)).toEqual(official(configured, "20270101.0"));
    expect(await findRunsc(undefined, both)).toEqual(official(named, "20280101.0"));
  });

  it("accepts a configured runsc without a release number, and refuses one that is too old", async () => {
    const own = await fakeRunsc("own", "built-by-hand");
    expect(await findRunsc(own, environment())).toEqual(official(own, "built-by-hand"));
    const old = await fakeRunsc("old", "20220101.0");
    expect(await findRunsc(old, environment())).toMatchObject({
      reason: expect.stringContaining("20220101.0 is older"),
    });
  });

  it("prefers a recent runsc on the PATH to the cached build", async () => {
    const installed = await fakeRunsc("bin/runsc", "20990101.0");
    await fakeRunsc(cachedPath, runscRelease.version);
    expect(await findRunsc(undefined, environment())).toEqual(official(installed, "20990101.0"));
  });

  it("prefers the cached build to an old runsc on the PATH", async () => {
    await fakeRunsc("bin/runsc", "20220101.0");
    const cached = await fakeRunsc(cachedPath, runscRelease.version);
    expect(await findRunsc(undefined, environment())).toEqual({
      path: cached,
      version: runscRelease.version,
      build: runscRelease.version,
    });
  });

  it("reports what to do when there is none, and that an old one is too old", async () => {
    await fakeRunsc("bin/runsc", "20220101.0");
    expect(await findRunsc(undefined, environment())).toEqual({
      reason: expect.stringMatching(/20220101\.0, which is too old/),
      hint: expect.stringContaining("npm run setup"),
    });
  });

  it("does not fall back when the configured runsc does not work", async () => {
    await fakeRunsc(cachedPath, runscRelease.version);
    expect(await findRunsc("/bin/false", environment())).toMatchObject({
      reason: expect.stringContaining("/bin/false"),
    });
  });
});
